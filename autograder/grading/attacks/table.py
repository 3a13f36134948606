"""Write what came of each attack as a Markdown page, from the results of an actual run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autograder.grading.attacks.attack import Attack
from autograder.grading.attacks.catalogue import CELL_ATTACKS, COPIED_ANSWER, NOT_STOPPED, row_number
from autograder.grading.attacks.handing_in import HAND_INS, HandIn

LAST_ROW = 42
INTRODUCTION = """\
# Attacks on the grader, and what came of them

Each row is something that a hostile student has tried on a notebook grader. The first table has the attacks that sit
in a cell of an otherwise unsolved notebook: none of them deserves a point. The second has the ones that lie in what is
handed in. Points are of {maximum:g} in the first table, and of what the student had really solved in the second.

`Harm` is what probes found after the attack: a changed gradebook, changed files of other students or of the course, a
file in the grader's home, a process left behind, a connection made, a secret read, the grader's process ended, a limit
passed, or another grade for the next student. A dash in the last column: the row aims at the verdict, which is made
in another process with either sandbox. The tests in `autograder/grading/attacks/` run every row, show for each
that its cell does what it says, and show that the probes find the harm where there is no sandbox. This page is made by
`python benchmarks/attack_table.py`.
"""
CELL_HEAD = ("Row", "What it tries", "Stock nbgrader 0.9.6", "Points here", "Harm here", "In the weaker sandbox")
HAND_IN_HEAD = ("Row", "What it tries", "Stock nbgrader 0.9.6", "Points here", "Deserved", "Harm here")
BEYOND = """\
## What no grader can stop

"""
NO_HARM = "none"


def missing_rows() -> list[str]:
    """Return the catalogue's rows about which this page says nothing."""
    covered = {attack.row for attack in (*CELL_ATTACKS, *HAND_INS)} | set(NOT_STOPPED)
    return [f"A{number}" for number in range(1, LAST_ROW + 1) if f"A{number}" not in covered]


def attack_page(results: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        results: `maximum`; `cells`, the `points` and `harm` of each cell's attack by its key; `weaker`, the same in
            the sandbox without user namespaces, or nothing; `hand_ins`, the same of each submission.

    Raises:
        KeyError: The results are of another catalogue.
    """
    maximum, weaker = results["maximum"], results["weaker"]
    cells = [cell_row(attack, results["cells"], weaker, maximum) for attack in CELL_ATTACKS]
    hand_ins = [hand_in_row(attack, results["hand_ins"][attack.key]) for attack in HAND_INS]
    copied = results["cells"][COPIED_ANSWER.key]["points"]
    beyond = [f"- {row}: {words}" for row, words in sorted(NOT_STOPPED.items(), key=lambda item: row_number(item[0]))]
    return "\n".join(
        [
            INTRODUCTION.format(maximum=maximum),
            "## In a cell\n",
            *markdown_table(CELL_HEAD, cells),
            "",
            totals(results["cells"], [attack.key for attack in CELL_ATTACKS], dict.fromkeys(results["cells"], 0.0)),
            "",
            "## In what is handed in\n",
            *markdown_table(HAND_IN_HEAD, hand_ins),
            "",
            totals(results["hand_ins"], [a.key for a in HAND_INS], {a.key: a.deserved for a in HAND_INS}),
            "",
            BEYOND + "\n".join(beyond),
            "",
            f"The copied answer of A12 got {copied:g} of {maximum:g} points.",
            "",
        ]
    )


def cell_row(attack: Attack, full: Mapping[str, Any], weaker: Mapping[str, Any], maximum: float) -> list[str]:
    """Return one attack's cells of the table."""
    found, other = full[attack.key], weaker.get(attack.key)
    again = "–" if other is None else short(other, maximum)
    return [attack.row, attack.sketch, attack.stock, points(found["points"], maximum), harm(found), again]


def hand_in_row(attack: HandIn, found: Mapping[str, Any]) -> list[str]:
    """Return one submission's cells of the table."""
    got = f"{found['points']:g}" if found["points"] <= attack.deserved else f"**{found['points']:g}**"
    return [attack.row, attack.sketch, attack.stock, got, f"{attack.deserved:g}", harm(found)]


def points(got: float, maximum: float) -> str:
    """Return points of an attack, in bold where there are any."""
    return f"**{got:g} of {maximum:g}**" if got else "0"


def harm(found: Mapping[str, Any]) -> str:
    """Return the harm in words, in bold where there is any."""
    return f"**{', '.join(found['harm'])}**" if found["harm"] else NO_HARM


def short(found: Mapping[str, Any], maximum: float) -> str:
    """Return points and harm together."""
    return f"{points(found['points'], maximum)}, harm {harm(found)}"


def totals(results: Mapping[str, Any], keys: Sequence[str], deserved: Mapping[str, float]) -> str:
    """Return a sentence that sums up a table."""
    gained = sum(results[key]["points"] > deserved[key] for key in keys)
    harmed = sum(bool(results[key]["harm"]) for key in keys)
    return f"Of {len(keys)} attacks, {gained} gained points and {harmed} did harm."


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines]
