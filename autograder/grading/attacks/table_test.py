"""The page about attacks shows the results that were measured, and a gain or a harm stands out in it."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from autograder.grading.attacks.catalogue import CELL_ATTACKS, COPIED_ANSWER, WALLED_ATTACKS
from autograder.grading.attacks.handing_in import HAND_INS
from autograder.grading.attacks.table import attack_page, missing_rows

ROOT = Path(__file__).parents[3]
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "attacks.json", ROOT / "docs" / "attacks.md"


@pytest.fixture
def results() -> dict[str, Any]:
    """Give the measured results."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def test_every_row_of_the_catalogue_is_carried_out_or_spoken_of() -> None:
    assert missing_rows() == []


def test_no_two_attacks_have_the_same_key() -> None:
    keys = [attack.key for attack in (*CELL_ATTACKS, *HAND_INS)]
    assert len(keys) == len(set(keys))


def test_the_page_is_made_from_the_results_that_are_there(results: dict[str, Any]) -> None:
    assert PAGE.read_text(encoding="utf-8") == attack_page(results)


def test_the_results_are_of_the_attacks_that_there_are(results: dict[str, Any]) -> None:
    assert set(results["cells"]) == {attack.key for attack in (*CELL_ATTACKS, COPIED_ANSWER)}
    assert set(results["hand_ins"]) >= {attack.key for attack in HAND_INS}
    assert set(results["weaker"]) in (set(), {attack.key for attack in WALLED_ATTACKS})


def test_a_gain_and_a_harm_stand_out(results: dict[str, Any]) -> None:
    worse = copy.deepcopy(results)
    worse["cells"][CELL_ATTACKS[0].key] |= {"points": 2.0, "harm": ["gradebook"]}
    worse["hand_ins"][HAND_INS[0].key] |= {"points": 9.0}
    page = attack_page(worse)
    assert "**2 of 3**" in page
    assert "**gradebook**" in page
    assert "**9**" in page
    before, after = (text.count(" 1 gained points") for text in (attack_page(results), page))
    assert after == before + 2
