# ---
# title: "Start here"
# ---

# %% [markdown] role="opening" minutes=10
# # Start here
#
# This course builds a transformer block piece by piece: attention, heads, norms, feed-forward networks, positions,
# masks, what it all costs, how to make it cheaper, and the models made of it. You write each piece yourself, and a
# check tells you at once what is right and, where it can, which idea led astray.
#
# **On this page** you see whether your machine is ready, how checks, hints and Validate work, and where the chapters
# are. It takes a quarter of an hour.

# %% [markdown]
# ## Is this machine ready?
#
# Run the next cell: click into it and press Shift+Enter. That key runs any cell and goes on to the next. Without a
# mouse, the arrow keys go from cell to cell, Enter goes into one and Esc leaves it; Tab goes to hints and links, and
# Space folds a hint out.

# %%
from autograder.learning.doctor import EnvironmentCheck

EnvironmentCheck()

# %% [markdown]
# Where a row says "look here", the text beside it says what to type in a terminal. `course doctor` prints the same
# table there. Every chapter runs on a CPU, without the network, in about a minute and with less than 1.5 GB of memory.

# %% [markdown]
# ## How an exercise works
#
# An exercise has a text that says what is asked, three folded hints, a cell for your answer, and a check. Here is a
# small one. Run the imports in the next cell, read the contract, replace the two marked lines, run the cell, and run
# the check below it.

# %%
import textwrap

import numpy as np
from jaxtyping import Float

from autograder import check, evaluate
from course_lib.weighted_mean import weighted_mean as finished

# %% [markdown] exercise="weighted_mean" role="header" minutes=5 lines=1 difficulty=1
# ## Exercise: the weighted mean
#
# Average some values, where each counts as much as its weight says:
#
# $$\text{mean} = \frac{\sum_i w_i v_i}{\sum_i w_i}$$
#
# **Why it matters.** Attention computes such a mean for every position of a text, in every head of every layer: the
# smallest GPT-2 has 12 layers of 12 heads. Chapter 1 asks where the weights come from.
#
# **Contract.** `values` and `weights` are arrays of the same length; the weights are not negative, at least one is
# positive, and they need not sum to 1. The result is one number.
#
# <details><summary>Hint 1: the idea</summary>
#
# A weight of 2 counts a value twice. How would you write the mean of 10, 10, 20 with two values and two weights?
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# NumPy multiplies two arrays of the same length value by value; `.sum()` adds an array up.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Multiply the values with their weights and add that up; then divide by one more sum. Of what?
#
# </details>


# %% exercise="weighted_mean" role="answer"
def weighted_mean(
    values: Float[np.ndarray, "value"],
    weights: Float[np.ndarray, "value"],
) -> float:
    """Average values, each counting as much as its weight says."""
    # BEGIN SOLUTION
    return float((weights * values).sum() / weights.sum())
    # END SOLUTION


# %% exercise="weighted_mean" points=1 role="test"
from autograder import check

check(weighted_mean)

# %% exercise="weighted_mean" points=1 role="hidden test"
from autograder import check

check(weighted_mean, hidden=True)

# %% [markdown]
# A pass is one quiet line. Before you write anything, the check says that nothing is written yet. And what does it say
# to a wrong answer? The next cell asks about two of them. `evaluate` gives the same verdict as `check` without stopping
# the notebook.


# %%
def forgetful(values, weights):
    return values.mean()


def heavy(values, weights):
    return (weights * values).sum()


for attempt in (forgetful, heavy):
    for line in evaluate(attempt, "weighted_mean", seed=7).message.splitlines():
        print(textwrap.fill(line, width=88))
    print()

# %% [markdown]
# Three things to see:
#
# - **The first difference** comes first: which case, what came, what was expected.
# - **The idea behind it** follows, where the check knows it. It asks a question; it never prints the solution.
# - **The seed** repeats the inputs: `check(weighted_mean, seed=7)`. Without one, every run draws new inputs.
#
# A hidden case asks for the same contract on other inputs. It runs when the notebook is graded, and whenever you ask
# for it: `check(weighted_mean, hidden=True)`. Nothing is graded by the clock, and a wrong answer in one exercise
# spoils no other: after each exercise the notebook goes on with the finished function from `course_lib`, as here:

# %%
finished(np.array([10.0, 20.0, 40.0]), np.array([2.0, 1.0, 1.0]))

# %% [markdown]
# ## Hints, answers, and starting over
#
# Fold out one hint at a time; the third nearly gives the line. In a terminal (File, New, Terminal) there is more:
#
# | you type | it does |
# |---|---|
# | `course answer softmax` | shows the model answer, after asking whether you want it |
# | `course reset softmax` | puts the starter back and keeps a copy of what you wrote |
# | `course update 1` | takes a corrected chapter into your notebook; your answers stay |
# | `course progress` | shows what passed, what was tried and what is untouched |
# | `course progress 1` | shows the same for one chapter, exercise by exercise |
# | `course doctor` | looks at the machine, as above |
#
# If the terminal does not know `course`, write `.venv/bin/course` from the course's folder (on Windows
# `.venv\Scripts\course`).
#
# ## Validate
#
# The button **Validate** at the top of the notebook runs all of it from the start, in a fresh kernel, and says which
# checks fail. Use it before you hand in: it finds an answer that works only because you ran the cells in another order.
# Save first. Long cells shorten themselves when Validate or a grader runs them.

# %% [markdown]
# ## The chapters
#
# Take them in order, or follow your interest: each says what it needs. Run the cell for the list; a click opens a
# chapter.

# %%
from autograder.learning.contents import chapter_table

chapter_table()

# %% [markdown]
# ## How far you are
#
# This table reads your saved notebooks and nothing else, so save first. It counts exercises and written questions:
#
# - **passed**: the check passed when it last ran;
# - **answered**: a written answer is there, and a person reads it;
# - **tried**: something was changed, and the check has not passed since;
# - **untouched**: all is as it was handed out.

# %%
from autograder.learning.contents import progress_table

progress_table()

# %% [markdown]
# **Next:** chapter 1, scaled dot-product attention.
