"""No attack of the catalogue gains a point or does harm, and each of them bites where nothing stands in its way."""

from collections.abc import Iterator

import pytest

from autograder.grading.attacks.attack import Attack
from autograder.grading.attacks.catalogue import CELL_ATTACKS, COPIED_ANSWER, WALLED_ATTACKS
from autograder.grading.attacks.stage import Stage
from autograder.grading.attacks.trying import MAXIMUM, try_attack, was_proved
from autograder.grading.pool import KernelPool
from autograder.grading.sandbox import LANDLOCK, NONE

REACHES_OUT = [attack for attack in CELL_ATTACKS if attack.proof == "harm"]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Give a course to attack."""
    stage = Stage(tmp_path_factory.mktemp("stage"))
    yield stage
    stage.close()


@pytest.fixture
def weaker_pool(warm_pool: KernelPool) -> Iterator[KernelPool]:
    """Give the pool with the sandbox that needs no user namespaces."""
    report = warm_pool.try_kind(LANDLOCK)
    if not report.works:
        pytest.skip(f"kernel: {LANDLOCK} does not work here ({report.reason})")
    before, warm_pool.kind = warm_pool.kind, LANDLOCK
    yield warm_pool
    warm_pool.kind = before


@pytest.fixture
def unwalled_pool(warm_pool: KernelPool) -> Iterator[KernelPool]:
    """Give the pool without its sandbox."""
    before, warm_pool.kind = warm_pool.kind, NONE
    yield warm_pool
    warm_pool.kind = before


def gains_nothing_and_harms_nobody(attack: Attack, pool: KernelPool, stage: Stage) -> None:
    """Carry out an attack and look at what came of it."""
    outcome = try_attack(attack, pool, stage)
    assert outcome.points == 0, outcome.reasons
    assert outcome.harm == []
    assert all(outcome.reasons)
    assert attack.proof == "harm" or was_proved(attack, outcome), outcome


@pytest.mark.parametrize("attack", CELL_ATTACKS, ids=lambda attack: attack.key)
def test_an_attack_gains_no_point_and_does_no_harm(attack: Attack, warm_pool: KernelPool, stage: Stage) -> None:
    gains_nothing_and_harms_nobody(attack, warm_pool, stage)


@pytest.mark.parametrize("attack", WALLED_ATTACKS, ids=lambda attack: attack.key)
def test_the_weaker_sandbox_stops_it_too(attack: Attack, weaker_pool: KernelPool, stage: Stage) -> None:
    gains_nothing_and_harms_nobody(attack, weaker_pool, stage)


@pytest.mark.parametrize("attack", REACHES_OUT, ids=lambda attack: attack.key)
def test_without_walls_the_harm_is_found(attack: Attack, unwalled_pool: KernelPool, stage: Stage) -> None:
    outcome = try_attack(attack, unwalled_pool, stage)
    assert was_proved(attack, outcome), outcome


def test_a_copied_public_answer_gets_points_as_the_documents_say(warm_pool: KernelPool, stage: Stage) -> None:
    outcome = try_attack(COPIED_ANSWER, warm_pool, stage)
    assert outcome.points == MAXIMUM
    assert outcome.harm == []
