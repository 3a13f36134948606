"""Carry out every attack of the catalogue and write down what came of it.

    python benchmarks/attack_table.py          all attacks, about two minutes
    python benchmarks/attack_table.py --page   only the page, from the results that are there

It makes `benchmarks/results/attacks.json`, and from it `docs/attacks.md`.
"""

import json
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder.grading.attacks.attack import Attack
from autograder.grading.attacks.catalogue import CELL_ATTACKS, COPIED_ANSWER, WALLED_ATTACKS
from autograder.grading.attacks.class_of_attackers import grade_attackers
from autograder.grading.attacks.stage import Stage
from autograder.grading.attacks.table import attack_page
from autograder.grading.attacks.trying import MAXIMUM, try_attack
from autograder.grading.pool import KernelPool
from autograder.grading.sandbox import LANDLOCK

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "attacks.json", ROOT / "docs" / "attacks.md"


def carry_out(attacks: Iterable[Attack], pool: KernelPool, stage: Stage) -> dict[str, Any]:
    """Return points and harm of each attack."""
    found = {}
    for attack in attacks:
        outcome = try_attack(attack, pool, stage)
        found[attack.key] = {"status": outcome.status, "points": outcome.points, "harm": outcome.harm}
        print(pool.kind, attack.key, found[attack.key], flush=True)
    return found


def measure() -> dict[str, Any]:
    """Carry out all attacks, those on the walls in the weaker sandbox as well."""
    with tempfile.TemporaryDirectory() as folder, KernelPool() as pool:
        stage = Stage(Path(folder, "stage"))
        results: dict[str, Any] = {"maximum": MAXIMUM, "sandbox": pool.kind, "weaker": {}}
        results["cells"] = carry_out([*CELL_ATTACKS, COPIED_ANSWER], pool, stage)
        results["hand_ins"] = {name: asdict(found) for name, found in grade_attackers(Path(folder), pool).items()}
        if pool.kind != LANDLOCK and pool.try_kind(LANDLOCK).works:
            pool.kind = LANDLOCK
            results["weaker"] = carry_out(WALLED_ATTACKS, pool, stage)
        stage.close()
    return results


def main() -> None:
    """Measure, unless only the page is wanted, and write both files."""
    if "--page" not in sys.argv:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(attack_page(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
