"""An attack as data: a row of the catalogue, the cell that does it, and how it shows that it is no blank."""

from dataclasses import dataclass, field
from typing import Literal

EXERCISE = "softmax"
STARTER = f"import numpy as np\ndef {EXERCISE}(scores):\n    raise NotImplementedError()"
ASSERTS = f"import numpy as np\nassert np.allclose({EXERCISE}(np.zeros(2)), [0.5, 0.5])"
CHECKS = f"from autograder import check\ncheck({EXERCISE})"
LOOP_SECONDS = 1.0
PATIENCE = 30.0  # seconds that a loaded machine may need for what takes a moment

Proof = Literal["no error", "value", "harm", "seen seed", "stopped", "runs on"]
Harm = Literal["secret read", "gradebook", "others' files", "home", "process left", "connection", "grader", "limit"]


@dataclass(frozen=True)
class Attack:
    """One thing that a hostile student tries in a cell of an unsolved notebook; it deserves no point.

    Args:
        row: The catalogue's row, such as `A1`.
        name: A few words.
        sketch: What it does, in a sentence.
        stock: What unmodified nbgrader 0.9.6 made of it.
        cell: The cell. The names of `Stage.knowledge` are defined before it, as the attacker knows the place.
        proof: How one sees that the cell does what it is meant to: `no error`: a test in the student's own process
            is fooled into showing none; `value`: it is made to show points; `harm`: without walls, the harm is
            found; `seen seed`: it passes on inputs that it knows; `stopped`: its cell did not come to its end;
            `runs on`: it left a process that lives as long as the kernel does.
        aim: The harm that it is after, beside points.
        test: The test in the student's own process that it fools.
        exercise: The exercise that the notebook claims to have solved.
        seconds: How long the cell may run.
    """

    row: str
    name: str
    sketch: str
    stock: str
    cell: str
    proof: Proof
    aim: Harm | None = None
    test: str = ASSERTS
    exercise: str = EXERCISE
    seconds: float = PATIENCE

    @property
    def key(self) -> str:
        """Return the row with its few words, which is unique."""
        return f"{self.row} {self.name}"


@dataclass(frozen=True)
class Outcome:
    """What came of an attack.

    Args:
        status: How its cell ended, in the words of `Execution`.
        points: What the notebook got, of `MAXIMUM`.
        harm: The harm that was found.
        reasons: What the verdicts say.
        inside: What a test in the student's own process would have shown: `no error`, `value`, or nothing.
        seen_seed: Whether a verdict on inputs that the attacker knows would have passed.
        running: Whether it had started a process that was there when the notebook was done.
    """

    status: str
    points: float
    harm: list[str]
    reasons: list[str]
    inside: list[str] = field(default_factory=list)
    seen_seed: bool = False
    running: bool = False
