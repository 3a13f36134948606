"""What a notebook calls: run the cases of an exercise, compare, explain."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import textwrap
from dataclasses import asdict
from numbers import Integral
from typing import Any

from autograder.exercise import UnknownExercise, find_exercise
from autograder.judge import judge, run_here
from autograder.values import describe, plain
from autograder.verdict import LARGEST_SEED, Heard, Verdict

VERDICT_MIME = "application/vnd.course.verdict+json"
SHOWN_WIDTH = 88  # characters of a line in a notebook's output


class CheckFailed(AssertionError):
    """A solution failed a check; a notebook shows the message without a traceback."""

    def __init__(self, verdict: Verdict):
        super().__init__(verdict.message)
        self.verdict = verdict
        self.exercise = verdict.exercise
        self.case = verdict.case
        self.misconception = verdict.misconception

    def _render_traceback_(self) -> list[str]:
        """Show only the message in a notebook, in lines that fit into a cell and into Validate's dialog."""
        return [line for text in str(self).splitlines() for line in textwrap.wrap(text, SHOWN_WIDTH) or [""]]


class BadSeed(ValueError):
    """A seed that is no whole number."""

    def _render_traceback_(self) -> list[str]:
        """Show only the sentence in a notebook."""
        return [str(self)]


def check(solution: Any, exercise: str | None = None, hidden: bool = False, seed: int | None = None) -> None:
    """Check a solution and print one line when it passes.

    Args:
        solution: The function or class to check.
        exercise: The exercise it answers, if it is not called like it.
        hidden: Run the hidden cases as well.
        seed: Seed of the inputs; a fresh one if not given. The message names it.

    Raises:
        CheckFailed: When it is not right yet; the message says what to look at.
        UnknownExercise: When there is no such exercise (a `LookupError`).
        BadSeed: When the seed is no whole number from 0 on (a `ValueError`).
    """
    heard = Heard()
    try:
        verdict = _evaluate(solution, exercise, hidden, seed, heard, ours=False)
    except KeyboardInterrupt as stop:
        vars(stop)["_render_traceback_"] = lambda: ["You stopped the check before it was done."]
        raise
    _tell(heard)
    published = _publish(verdict)
    if not verdict.passed:
        raise CheckFailed(verdict)
    if not published:
        print(verdict.message)


def evaluate(solution: Any, exercise: str | None = None, hidden: bool = False, seed: int | None = None) -> Verdict:
    """Check a solution and give the verdict, without raising and without printing.

    The reference itself and the registered forms and beliefs may be given too; `check` refuses a reference that is
    handed in as an answer.

    Args:
        solution: The function or class to check.
        exercise: The exercise it answers, if it is not called like it.
        hidden: Run the hidden cases as well.
        seed: Seed of the inputs; a fresh one if not given.

    Raises:
        UnknownExercise: When there is no such exercise (a `LookupError`).
    """
    return _evaluate(solution, exercise, hidden, seed, Heard(), ours=True)


def _evaluate(solution: Any, name: str | None, hidden: bool, seed: int | None, heard: Heard, ours: bool) -> Verdict:
    name = _name_of(solution) if name is None else name
    if not isinstance(name, str):
        raise UnknownExercise(
            f"`exercise` must be the name of an exercise, a text, but it is {describe(plain(name))}: "
            'check(my_function, "softmax", hidden=True).'
        )
    exercise = find_exercise(name)
    seed = _seed(seed)
    if not callable(solution):
        message = (
            f"{exercise.name}: give the function itself, check({exercise.name}), "
            f"not what a call of it returns; this is {describe(plain(solution))}."
        )
        return Verdict(False, exercise.name, None, None, message, seed)
    ours = ours and exercise.owns(solution)
    return judge(exercise, lambda program: run_here(exercise, solution, program, heard, ours), hidden, seed)


def _name_of(solution: Any) -> str:
    found = None
    with contextlib.suppress(Exception):  # an object may answer with an error of its own
        found = getattr(solution, "__name__", None)
        if found is None and callable(solution):
            found = getattr(getattr(solution, "func", solution), "__name__", None)
    return found if isinstance(found, str) else type(solution).__name__


def _seed(seed: Any) -> int:
    if seed is None:
        return secrets.randbelow(LARGEST_SEED)
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise BadSeed(f"seed must be a whole number from 0 on, got {describe(plain(seed))}")
    return int(seed)


def _tell(heard: Heard) -> None:
    """Pass on what the solution printed, cut short, and its warnings; never on stderr, which costs points."""
    if heard.printed:
        print(heard.printed, end="" if heard.printed.endswith("\n") else "\n")
    if heard.left_out:
        print(f"… and {heard.left_out:,} more characters that your code printed are left out.")
    for text in heard.warned:
        print(f"Your code warned: {text}")


def _publish(verdict: Verdict) -> bool:
    """Leave the verdict in a notebook that is being graded, where the grader reads it; say whether that is so."""
    if "NBGRADER_EXECUTION" not in os.environ or "IPython" not in sys.modules:
        return False
    from IPython.core.getipython import get_ipython
    from IPython.display import publish_display_data

    if get_ipython() is None:
        return False
    shown = verdict.message if verdict.passed else f"{verdict.exercise}: not yet"
    publish_display_data({VERDICT_MIME: asdict(verdict), "text/plain": shown})
    return True


__all__ = ["CheckFailed", "Verdict", "check", "evaluate"]
