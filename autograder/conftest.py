"""What tests of grading and tests in the browser share: a PostgreSQL server."""

from collections.abc import Iterator

import pytest

from autograder.testing.private_postgres import PrivatePostgres, programs


@pytest.fixture(scope="session")
def postgres() -> Iterator[PrivatePostgres]:
    """Give a PostgreSQL server of this session's own."""
    found = programs()
    if found is None:
        pytest.skip("package: the gradebook in PostgreSQL needs `apt-get install postgresql`")
    server = PrivatePostgres(found)
    try:
        server.start()
        yield server
    finally:
        server.close()
