"""What goes between the grader and its judges; this module loads nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field

from autograder.verdict import Heard, Verdict

REQUEST_BYTES = 100_000
SERVE = "from autograder.grading.remote import serve_inherited; serve_inherited(globals())"  # in the student's process


class JudgeEndedError(Exception):
    """A judge has ended before its verdict, which says nothing of the work that it judged."""


@dataclass
class Judged:
    """A verdict, with what the solution printed and warned of on the way.

    Args:
        verdict: What the check found.
        answered: Whether the student's process gave proper answers; if not, the verdict's message says why.
        heard: What the solution printed and warned of.
        timed_out: Whether the solution did not return in time.
    """

    verdict: Verdict
    answered: bool = True
    heard: Heard = field(default_factory=Heard)
    timed_out: bool = False
