"""A course of one short chapter whose tests call `check`, as those of the real chapters do."""

import shutil
from pathlib import Path

from autograder.course_folder import CONFIG_NAME, SOLUTIONS

ROOT = Path(__file__).parents[2]
CHAPTER = "01_checked"
FIRST, SECOND = "attention_scores", "expected_score_std"
EXERCISE = """
# %% [markdown] exercise="{name}" role="header" minutes=1 lines=1
# ## {title}
#
# Write it.

# %% exercise="{name}" role="answer"
{answer}

# %% exercise="{name}" points=1 role="test"
from autograder import check

check({name})

# %% exercise="{name}" points=2 role="hidden test"
from autograder import check

check({name}, hidden=True)
"""
OPENING = """
# %% [markdown] role="opening" minutes=1
# # Checked
#
# Two functions and a question.

# %%
import numpy as np
"""
QUESTION = """
# %% [markdown] exercise="why" role="header" minutes=1
# ## Why
#
# Why is it so?

# %% [markdown] exercise="why" points=2 role="written"
# Because.
"""
POINTS = {FIRST: 3.0, SECOND: 3.0, "why": 2.0}


RIGHT = {
    FIRST: f"def {FIRST}(query, key):\n    return query @ np.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5",
    SECOND: f"def {SECOND}(d_k, scaled):\n    return 1.0 if scaled else d_k**0.5",
}


def make_checked_course(folder: Path, cell_timeout: int = 8) -> Path:
    """Make a course folder with this course's own configuration, and with another cell timeout."""
    (folder / SOLUTIONS).mkdir(parents=True)
    parts = [OPENING]
    for name, answer in RIGHT.items():
        head, _, body = answer.partition("\n")
        marked = f"{head}\n    # BEGIN SOLUTION\n{body}\n    # END SOLUTION"
        parts.append(EXERCISE.format(name=name, title=name.replace("_", " "), answer=marked))
    text = "".join([*parts, QUESTION]).lstrip()
    (folder / SOLUTIONS / f"{CHAPTER}.py").write_text(text, encoding="utf-8")
    config = folder / CONFIG_NAME
    shutil.copy(ROOT / CONFIG_NAME, config)
    config.write_text(f"{config.read_text()}c.Execute.timeout = {cell_timeout}\n")
    return folder
