"""Checks that explain: what counts as right, and how wrong answers are recognized."""

from autograder.check import CheckFailed, check, evaluate
from autograder.exercise import UnknownExercise, exercise_names
from autograder.judge import Verdict

__all__ = ["CheckFailed", "UnknownExercise", "Verdict", "check", "evaluate", "exercise_names"]
