"""No hostile submission gains a point, does harm, or changes what an honest student gets."""

import pytest

from autograder.grading.attacks.class_of_attackers import HONEST, Graded, grade_attackers
from autograder.grading.attacks.handing_in import HAND_INS, HandIn
from autograder.grading.pool import KernelPool

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, warm_pool: KernelPool) -> dict[str, Graded]:
    """Give what every student of the class got."""
    return grade_attackers(tmp_path_factory.mktemp("attackers"), warm_pool)


@pytest.mark.parametrize("attack", HAND_INS, ids=lambda attack: attack.key)
def test_a_hostile_submission_gets_what_it_deserves(attack: HandIn, graded: dict[str, Graded]) -> None:
    assert graded[attack.key] == Graded(attack.deserved, [])


def test_an_honest_student_in_their_midst_gets_all_points(graded: dict[str, Graded]) -> None:
    assert graded[HONEST.key] == Graded(HONEST.deserved, [])
