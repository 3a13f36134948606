"""A small chapter with every role in it, on which the tests of the build stand."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from autograder.course_folder import CONFIG_NAME, SOLUTIONS, source_path

NAME = "01_toy"
CONFIG = Path(__file__).parents[2] / CONFIG_NAME
TEXT = '''\
# ---
# title: "Toys: a first chapter"
# ---

# %% [markdown] role="opening" minutes=20
# # Toys
#
# You double numbers, and say why.

# %% [markdown]
# ## Ready
# The root of √d comes later.

# %% long=true
import math

# %% [markdown] exercise="double" role="header" minutes=10 lines=2 difficulty=2
# ## Double
#
# Return twice the number.

# %% exercise="double" role="answer"
def double(number):
    """Return twice the number."""
    # BEGIN SOLUTION
    twice_the_number = number + number + 0 * number
    return twice_the_number
    # END SOLUTION


# %% exercise="double" points=1 role="test"
from autograder import check

check(double)

# %% exercise="double" points=2 role="hidden test"
from autograder import check

check(double, hidden=True)

# %% [markdown] exercise="repaired" role="header" minutes=15
# ## Repair

# %% exercise="repaired" role="answer"
def repaired(number):
    # BEGIN SOLUTION
    return abs(number)
    # END SOLUTION
    # BEGIN STARTER
    # if number:
    #     return number
    #
    # return 0
    # END STARTER


# %% exercise="repaired" points=1 role="test"
check(repaired)

# %% exercise="repaired" points=1 role="hidden test"
check(repaired, hidden=True)

# %% [markdown]
# ## Why?
# Why does doubling commute with adding?

# %% [markdown] exercise="why_doubling" points=3 role="written"
# Because multiplication distributes over addition.
#
# - 2 points for naming the law
# - 1 point for an example
'''


@dataclass
class RegisteredExample:
    """What the build reads of a registered exercise."""

    name: str
    chapter: str = NAME
    forbids: tuple[str, ...] = ()
    misconceptions: dict = field(default_factory=dict)


def example_course(folder: Path, text: str = TEXT) -> Path:
    """Make a course in `folder` whose one chapter is `text`, with this course's own nbgrader config."""
    shutil.copy(CONFIG, folder / CONFIG_NAME)
    (folder / SOLUTIONS).mkdir()
    source_path(folder, NAME).write_text(text, encoding="utf-8")
    return folder


def changed(old: str, new: str, text: str = TEXT) -> str:
    """Return the example with a fault planted in it; the place must be there, once."""
    if text.count(old) != 1:
        raise ValueError(f"{old!r} stands {text.count(old)} times in the example, not once")
    return text.replace(old, new)
