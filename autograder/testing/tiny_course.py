"""A course of one tiny chapter, for the tests of grading: two exercises and a written question, no heavy import."""

import shutil
from collections.abc import Callable
from pathlib import Path

import nbformat

from autograder.build import answered_notebook
from autograder.course_folder import CONFIG_NAME, SOLUTIONS
from autograder.grading.results import ClassResult

CHAPTER = "01_tiny"
POINTS = {"double": 3.0, "triple": 3.0, "why": 2.0}
RIGHT = {"double": "def double(x):\n    return 2 * x", "triple": "def triple(x):\n    return 3 * x"}
SOURCE = '''
# %% [markdown] role="opening" minutes=1
# # Tiny
#
# Two functions and a question.

# %%
def verdict(name, passed, message, misconception=None):
    import os
    from IPython.display import publish_display_data

    if "NBGRADER_EXECUTION" in os.environ:
        fields = dict(passed=passed, exercise=name, case="one", misconception=misconception, message=message, seed=7)
        publish_display_data({"application/vnd.course.verdict+json": fields, "text/plain": ""})
    if not passed:
        raise AssertionError(message)


def check(function, hidden=False):
    factor, given = {"double": 2, "triple": 3}[function.__name__], 5 if hidden else 4
    found = function(given)
    belief = "squared" if found == given**2 else None
    message = "Right." if found == factor * given else f"Expected {factor} times {given}, got {found}."
    verdict(function.__name__, found == factor * given, message, belief)


# %% [markdown] exercise="double" role="header" minutes=1 lines=1
# ## Double it
#
# Give back twice the input.

# %% exercise="double" role="answer"
def double(x):
    """Double the input."""
    # BEGIN SOLUTION
    return 2 * x
    # END SOLUTION


# %% exercise="double" points=1 role="test"
check(double)

# %% exercise="double" points=2 role="hidden test"
check(double, hidden=True)

# %% [markdown] exercise="triple" role="header" minutes=1 lines=1
# ## Triple it
#
# Give back three times the input.

# %% exercise="triple" role="answer"
def triple(x):
    """Triple the input."""
    # BEGIN SOLUTION
    return 3 * x
    # END SOLUTION


# %% exercise="triple" points=1 role="test"
check(triple)

# %% exercise="triple" points=2 role="hidden test"
check(triple, hidden=True)

# %% [markdown] exercise="why" role="header" minutes=1
# ## Why
#
# Why is twice the input even?

# %% [markdown] exercise="why" points=2 role="written"
# Because two divides it.
'''.lstrip()


def make_tiny_course(folder: Path, cell_timeout: int | None = None) -> Path:
    """Make a course folder with this course's own configuration, and with another cell timeout if one is given."""
    (folder / SOLUTIONS).mkdir(parents=True)
    (folder / SOLUTIONS / f"{CHAPTER}.py").write_text(SOURCE, encoding="utf-8")
    config = folder / CONFIG_NAME
    shutil.copy(Path(__file__).parents[2] / CONFIG_NAME, config)
    if cell_timeout is not None:
        config.write_text(f"{config.read_text()}c.Execute.timeout = {cell_timeout}\n")
    return folder


def hand_in(course: Path, student: str, answers: dict[str, str], damage: Callable | None = None) -> Path:
    """Hand in the chapter with these answers; return the file."""
    notebook = answered_notebook(course, CHAPTER, answers)
    if damage is not None:
        damage(notebook)
    path = course / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


def points(result: ClassResult, student: str) -> dict[str, float]:
    """Return a student's points by exercise."""
    return {name: exercise.points for name, exercise in result.students[student].exercises.items()}
