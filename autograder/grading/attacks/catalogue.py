"""The attacks that a cell can carry out, in the catalogue's order, and what no wall around a notebook can stop."""

from autograder.grading.attacks.answering import ANSWERING
from autograder.grading.attacks.attack import Attack
from autograder.grading.attacks.consuming import CONSUMING
from autograder.grading.attacks.patching import PATCHING
from autograder.grading.attacks.reaching import REACHING


def row_number(row: str) -> int:
    """Return a row's place in the catalogue."""
    return int(row.removeprefix("A"))


CELL_ATTACKS: list[Attack] = sorted(
    [*PATCHING, *ANSWERING, *REACHING, *CONSUMING], key=lambda attack: row_number(attack.row)
)
WALLED_ATTACKS = [attack for attack in CELL_ATTACKS if attack in (*REACHING, *CONSUMING)]

# The course's own code is public and lies where notebooks import it, so whoever wants to can copy from it.
COPIED_ANSWER = Attack(
    "A12",
    "copied from the library",
    "The function runs the course's public code, and switches off what would refuse that.",
    "full points",
    """
import sys
from course_lib import attention
def softmax(scores):
    sys.setprofile(None)
    return attention.softmax(scores)
""",
    "stopped",
)
NOT_STOPPED = {
    "A12": (
        "An answer that is copied from the course's public library or repository is a right answer; nothing in a "
        "notebook tells who wrote it. That a check refuses calls of the library is a help for the honest: it happens "
        "in the student's own process, where it can be switched off."
    ),
    "A34": (
        "The time of submission is what `timestamp.txt` says. Where it matters, let the system that takes the work "
        "in write that file, after the student's own files."
    ),
    "A35": (
        "Whose work it is, the folder's name says. The system that takes the work in must make sure of the sender."
    ),
    "A39": (
        "Inputs are drawn from a seed of each student's own, so what one learns by handing in again and again helps "
        "nobody else; how often somebody may hand in is for the system that takes the work in to limit."
    ),
}
