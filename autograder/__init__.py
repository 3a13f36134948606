"""Checks that explain: what counts as right, and how wrong answers are recognized.

The names are found when they are asked for, so that `course --help` need not load PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograder.checking import CheckFailed, check, evaluate
    from autograder.exercise import UnknownExercise, exercise_names
    from autograder.verdict import Verdict

__all__ = ["CheckFailed", "UnknownExercise", "Verdict", "check", "evaluate", "exercise_names"]

_HOMES = ("autograder.checking", "autograder.exercise")


def __getattr__(name: str) -> Any:
    """Find a public name in the module that defines it."""
    if name in __all__:
        for home in map(import_module, _HOMES):
            if hasattr(home, name):
                return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
