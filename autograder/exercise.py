"""Exercise, Case, Misconception, and the registry of all exercises."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from autograder.draw import Draw
from autograder.program import Program, Run

Function = TypeVar("Function", bound=Callable[..., Any])
DEFAULT_DTYPE = {"numpy": "float64", "torch": "float32"}


class UnknownExercise(LookupError):
    """No exercise has this name."""

    def _render_traceback_(self) -> list[str]:
        """Show only the sentence in a notebook."""
        return [str(self)]


@dataclass(frozen=True)
class Case:
    """One situation that a solution is put in.

    Args:
        name: What is special about it, in a few words.
        program: Draws the inputs and gives the program to run.
        hidden: Whether only the hidden tier runs it.
        dtype: The dtype of drawn floats; float64 in NumPy and float32 in PyTorch if not given.
        judge: Decides instead of the comparison with the reference: a sentence, or None if all is well.
        limit: Looks at the run's counts (and the program) after the values: a sentence, or None.
        alike: Tells whether two runs follow the same belief, where random results cannot be equal.
    """

    name: str
    program: Callable[[Draw], Program]
    hidden: bool = False
    dtype: str | None = None
    judge: Callable[[Program, Run], str | None] | None = None
    limit: Callable[[Program, Run], str | None] | None = None
    alike: Callable[[Program, Run, Run], bool] | None = None


@dataclass(frozen=True)
class Misconception:
    """A wrong belief: a solution that follows from it, and what to say to whoever holds it."""

    name: str
    words: str
    function: Callable[..., Any]


@dataclass(frozen=True)
class Alternative:
    """A right solution of another form, which every check must accept."""

    name: str
    function: Callable[..., Any]


class Exercise:
    """What counts as right for one exercise, and which beliefs lead astray."""

    def __init__(
        self,
        reference: Callable[..., Any],
        cases: Sequence[Case],
        *,
        chapter: str,
        library: str,
        name: str | None = None,
        returns: Sequence[str] = (),
        properties: Iterable[Callable[[Program, Run], str | None]] = (),
        forbids: Iterable[str] = (),
        forbids_because: str = "",
        named: Mapping[str, Callable[..., Any]] | None = None,
        tolerance: Mapping[str, float] | float | None = None,
    ):
        """Declare an exercise.

        Args:
            reference: The right answer, from `course_lib`.
            cases: Visible and hidden cases.
            chapter: The chapter's folder, such as `01_attention`.
            library: `numpy`, `torch` or `python`: what drawn arrays are made of.
            name: The exercise's name, if it is not the reference's.
            returns: A name for each part of the result, used in messages.
            properties: What holds for every right answer; each gives a sentence where it is broken.
            forbids: Dotted names of library functions that the learner should rebuild.
            forbids_because: The sentence that says what to build instead.
            named: Functions and modules that programs mention by name.
            tolerance: Relative tolerance, if it is not the dtype's own.
        """
        self.reference = reference
        self.cases = tuple(cases)
        self.chapter = chapter
        self.library = library
        self.name = name or reference.__name__
        self.returns = tuple(returns)
        self.properties = tuple(properties)
        self.forbids = tuple(forbids)
        self.forbids_because = forbids_because
        self.named = dict(named or {})
        self.tolerance = tolerance
        self.misconceptions: dict[str, Misconception] = {}
        self.alternatives: dict[str, Alternative] = {}
        register(self)

    def misconception(self, words: str) -> Callable[[Function], Function]:
        """Add a wrong belief, with what a tutor would say."""

        def add(function: Function) -> Function:
            name = function.__name__
            if name in self.misconceptions:
                raise ValueError(f"{self.name} has two misconceptions called {name}")
            self.misconceptions[name] = Misconception(name, _joined(words), function)
            return function

        return add

    def alternative(self, function: Function) -> Function:
        """Add a right answer of another form."""
        if function.__name__ in self.alternatives:
            raise ValueError(f"{self.name} has two alternatives called {function.__name__}")
        self.alternatives[function.__name__] = Alternative(function.__name__, function)
        return function

    def owns(self, solution: Any) -> bool:
        """Tell whether a function is the reference, a known wrong belief or an accepted form."""
        ours = [*self.misconceptions.values(), *self.alternatives.values()]
        return solution is self.reference or any(solution is item.function for item in ours)

    def tier(self, hidden: bool) -> tuple[Case, ...]:
        """Give the visible cases, or all of them for the hidden tier."""
        return tuple(case for case in self.cases if hidden or not case.hidden)

    def program(self, case: Case, seed: int) -> Program:
        """Draw a case's inputs from a seed."""
        library = "numpy" if self.library == "python" else self.library
        return case.program(Draw(seed, case.name, library, case.dtype or DEFAULT_DTYPE[library]))


def _joined(words: str) -> str:
    """Make each paragraph one line; whoever shows it wraps it to fit."""
    return "\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(words).split("\n\n"))


_registry: dict[str, Exercise] = {}
_loaded = False


def register(exercise: Exercise) -> None:
    """Add an exercise under its name."""
    if exercise.name in _registry:
        raise ValueError(f"two exercises are called {exercise.name}")
    _registry[exercise.name] = exercise


def all_exercises() -> list[Exercise]:
    """Give every exercise, by chapter and in the order of their modules."""
    global _loaded
    if not _loaded:
        package = importlib.import_module("autograder.exercises")
        for module in sorted(pkgutil.walk_packages(package.__path__, package.__name__ + "."), key=lambda m: m.name):
            if not module.name.endswith("_test"):
                importlib.import_module(module.name)
        _loaded = True
    return sorted(_registry.values(), key=lambda exercise: exercise.chapter)


def exercise_names() -> list[str]:
    """List the names of all exercises."""
    return [exercise.name for exercise in all_exercises()]


def find_exercise(name: str) -> Exercise:
    """Find an exercise by its name.

    Raises:
        UnknownExercise: When there is none; the message offers the nearest names.
    """
    names = exercise_names()
    if name in _registry:
        return _registry[name]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "autograder.exercise_names() lists them all."
    raise UnknownExercise(
        f"There is no exercise called {name!r}: {hint} "
        'If your function has another name, say which exercise it answers: check(my_function, "softmax").'
    )
