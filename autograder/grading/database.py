"""Where the gradebook lies: in a SQLite file or in PostgreSQL, by a URL that nbgrader's own tools take as well."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from autograder.errors import CourseError

BUSY_SECONDS = 30  # how long the database waits while another program, formgrader for one, writes
SECONDS_TO_CONNECT = "10"
SQLITE, POSTGRESQL = "sqlite", "postgresql"
DRIVER = "postgresql+psycopg"
EVERYBODYS_NAMES = ("postgres", POSTGRESQL, DRIVER)
TABLE_OF_A_GRADEBOOK = "submitted_assignment"
STUDENTS_WITH_WORK = text(
    "SELECT submission.student_id FROM submitted_assignment AS submission "
    "JOIN assignment ON assignment.id = submission.assignment_id WHERE assignment.name = :chapter"
)
UNNAMED_COURSE = "default_course"  # nbgrader's own tools make it in passing
EXAMPLES = f"{SQLITE}:///gradebook.db or {POSTGRESQL}://USER:PASSWORD@HOST/NAME"


def database_url(given: str, course: Path) -> str:
    """Return the URL as SQLAlchemy takes it.

    Args:
        given: A SQLite or PostgreSQL URL; a SQLite file without a full path lies in the course's folder.
        course: The course's folder.

    Raises:
        CourseError: It is no such URL.
    """
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        raise CourseError(f"The database {given!r} is no URL; it must be like {EXAMPLES}.") from None
    if url.drivername in EVERYBODYS_NAMES:
        waits = {} if "connect_timeout" in url.query else {"connect_timeout": SECONDS_TO_CONNECT}
        url = url.set(drivername=DRIVER).update_query_dict(waits)
    elif url.drivername != SQLITE or not url.database:
        raise CourseError(f"The database {shown(url)} must be like {EXAMPLES}.")
    else:
        if not url.database.startswith(("/", "file:", ":")):
            url = url.set(database=str(course / url.database))
        url = url.update_query_dict({} if "timeout" in url.query else {"timeout": str(BUSY_SECONDS)})
    return url.render_as_string(hide_password=False)


def shown(url: URL | str) -> str:
    """Return a URL as it may be shown and logged: without its password."""
    return make_url(url).set(query={}).render_as_string(hide_password=True)


def words(error: SQLAlchemyError) -> str:
    """Return the database's own words about an error, its first line."""
    said = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    lines = str(said).strip().splitlines()
    return lines[0].strip().rstrip(".;") if lines else type(said).__name__


@contextmanager
def opened(open_book: Callable[[], Gradebook], url: str = "") -> Iterator[Gradebook]:
    """Open the gradebook for a run.

    Args:
        open_book: Opens it.
        url: Where it is, to say so.

    Raises:
        CourseError: It cannot be opened, or is no gradebook.
    """
    where = f" {shown(url)}" if url else ""
    try:
        book = open_book()
    except SQLAlchemyError as error:
        raise CourseError(f"The gradebook{where} cannot be opened: {words(error)}.") from error
    except ModuleNotFoundError as error:
        install = 'pip install -c constraints.txt -e ".[instructor]"'
        raise CourseError(f"The gradebook{where} needs the package {error.name}: {install}") from error
    try:
        yield book
    finally:
        book.close()


def refuse_foreign(url: str, course_id: str) -> None:
    """Refuse a database that holds something else than this course's gradebook, before anything is written to it.

    Raises:
        CourseError: It holds other tables, or the gradebook of another course alone.
        SQLAlchemyError: It cannot be read.
    """
    engine = create_engine(url)
    try:
        tables = set(inspect(engine).get_table_names())
        if not tables:
            return
        if TABLE_OF_A_GRADEBOOK not in tables:
            raise CourseError(f"{shown(url)} holds something else than a gradebook; name another database.")
        if "course" in tables:
            with engine.connect() as connection:
                courses = {str(name) for (name,) in connection.execute(text("SELECT id FROM course"))}
            if courses - {UNNAMED_COURSE} and course_id not in courses:
                others = ", ".join(sorted(courses - {UNNAMED_COURSE}))
                raise CourseError(f"{shown(url)} is the gradebook of {others}, not of {course_id}.")
    finally:
        engine.dispose()


def students_with_work(url: str, course_id: str, chapter: str) -> set[str]:
    """Return whose submissions of a chapter a gradebook knows; nothing is made or written.

    Raises:
        CourseError: It cannot be read, or is no gradebook of this course.
    """
    where = make_url(url)
    if where.drivername == SQLITE and not Path(str(where.database)).is_file():
        return set()  # to connect would make the file
    engine = create_engine(url)
    try:
        refuse_foreign(url, course_id)
        if TABLE_OF_A_GRADEBOOK not in inspect(engine).get_table_names():
            return set()
        with engine.connect() as connection:
            return {str(name) for (name,) in connection.execute(STUDENTS_WITH_WORK, {"chapter": chapter})}
    except SQLAlchemyError as error:
        raise CourseError(f"The gradebook {shown(url)} cannot be read: {words(error)}.") from error
    finally:
        engine.dispose()


def be_patient(gradebook: Gradebook) -> None:
    """Let PostgreSQL wait for other programs, yet not for ever; SQLite's URL says how long it waits."""
    if gradebook.engine.dialect.name == SQLITE:
        return

    @event.listens_for(gradebook.engine, "connect")
    def set_timeout(connection: Any, _: Any) -> None:
        connection.autocommit = True  # a setting made inside a transaction would end with it
        connection.execute(f"SET lock_timeout = '{BUSY_SECONDS}s'")
        connection.autocommit = False

    gradebook.db.remove()
    gradebook.engine.dispose()  # connections made before this do not know it
