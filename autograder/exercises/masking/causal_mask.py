"""Check `causal_mask`: hide the future, also for queries that continue a sequence."""

import math

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.masking import CHAPTER
from autograder.exercises.masking.properties import boolean, hides_exactly_the_future
from autograder.program import Program, call
from course_lib import masks


def square(draw: Draw) -> Program:
    """Ask for as many queries as keys; two calls, so that nothing kept from the first can serve the second."""
    first, second = draw.sizes(2, low=3, high=7)
    return call(first).call(second)


def cached(draw: Draw) -> Program:
    """Ask for a few queries behind keys that were kept."""
    return call(2, draw.integer(4, 7))


def one_query(draw: Draw) -> Program:
    """Ask for the single query of a decoding step."""
    return call(1, draw.integer(4, 9))


def more_queries(draw: Draw) -> Program:
    """Ask for more queries than keys."""
    return call(draw.integer(6, 8), draw.integer(2, 4))


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=masks.causal_mask,
    returns=("the mask",),
    properties=[boolean, hides_exactly_the_future],
    cases=[
        Case("square", square),
        Case("2 queries behind kept keys", cached),
        Case("one query", one_query, hidden=True),
        Case("more queries than keys", more_queries, hidden=True),
        Case("n_k given by name", lambda draw: call(3, n_k=draw.integer(5, 8)), hidden=True),
        Case("one token", lambda draw: call(1), hidden=True),
    ],
)


def _sizes(n_q, n_k):
    return n_q, n_q if n_k is None else n_k


def _ones(n_q, n_k):
    return torch.ones(_sizes(n_q, n_k), dtype=torch.bool)


def _shift(n_q, n_k):
    n_q, n_k = _sizes(n_q, n_k)
    return n_k - n_q


@exercise.misconception("""
    Your mask is the other way round: it hides a query's own past and shows its future. In this course True hides.
    (A lower triangle of ones is the right start where True means "may be seen".) Should the top row of your table
    hold one True or all but one?
""")
def inverted(n_q, n_k=None):
    return ~masks.causal_mask(n_q, n_k)


@exercise.misconception("""
    A query cannot see itself in your mask: the diagonal is hidden, and the first query sees nothing at all. "No later
    position" leaves its own in. What does the number in `triu` move?
""")
def diagonal_hidden(n_q, n_k=None):
    return _ones(n_q, n_k).triu(_shift(n_q, n_k))


@exercise.misconception("""
    Each query sees one key too many: the next token, which is just the one that a language model should foretell.
    Check your first row: it should show one key.
""")
def next_token_visible(n_q, n_k=None):
    return _ones(n_q, n_k).triu(_shift(n_q, n_k) + 2)


@exercise.misconception("""
    Your mask hides the past, i > j, and shows the future. Document B writes the rule this way in its section on GPT,
    and the other way in its section on decoders; only one of them lets a model write. Rows are queries i, columns are
    keys j: which of the two must not be the larger one?
""")
def past_hidden(n_q, n_k=None):
    return _ones(n_q, n_k).tril(_shift(n_q, n_k) - 1)


@exercise.misconception("""
    With as many queries as keys your mask is right. With two new queries behind five keys, the first query is not at
    place 0, yet your mask shows it key 0 alone. Draw the 2 × 5 table: at which place does each query stand, and which
    cells should be open?
""")
def anchored_top_left(n_q, n_k=None):
    return _ones(n_q, n_k).triu(1)


@exercise.misconception("""
    Your mask has a column for every query and takes no notice of `n_k`. While a model writes, keys of earlier steps
    are kept, so that there are more keys than queries.
""")
def keys_not_counted(n_q, n_k=None):
    return masks.causal_mask(n_q)


@exercise.misconception("""
    The shift of your triangle has the wrong sign: with more keys than queries it should open more cells, and yours
    closes them. The last query sees every key. How far is it from the diagonal of a table that starts at the top left?
""")
def shifted_backward(n_q, n_k=None):
    return _ones(n_q, n_k).triu(1 - _shift(n_q, n_k))


@exercise.misconception("""
    Your table has a row for every key and a column for every query. Rows belong to queries, as in the scores that the
    mask is laid over.
""")
def keys_as_rows(n_q, n_k=None):
    return masks.causal_mask(n_q, n_k).T


@exercise.misconception("""
    You return numbers to be added, 0 and -inf. That form has its own exercise; this one asks for a boolean mask, in
    which True hides.
""")
def numbers_to_add(n_q, n_k=None):
    return torch.zeros(_sizes(n_q, n_k)).masked_fill(masks.causal_mask(n_q, n_k), -math.inf)


@exercise.misconception("""
    Your mask holds the numbers 0 and 1. The places are right, but a number does not say what it means: in some
    libraries 1 hides, in others it shows, and PyTorch would even add it to the scores. Make it boolean.
""")
def zeros_and_ones(n_q, n_k=None):
    return masks.causal_mask(n_q, n_k).float()


@exercise.alternative
def places_compared(n_q, n_k=None):
    n_k = n_q if n_k is None else n_k
    return torch.arange(n_k) > torch.arange(n_k - n_q, n_k)[:, None]


@exercise.alternative
def upper_triangle(n_q, n_k=None):
    n_k = n_q if n_k is None else n_k
    return torch.triu(torch.ones(n_q, n_k), diagonal=n_k - n_q + 1).bool()


@exercise.alternative
def lower_triangle_equals_zero(n_q, n_k=None):
    return _ones(n_q, n_k).int().tril(_shift(n_q, n_k)) == 0


@exercise.alternative
def complement_of_the_lower_triangle(n_q, n_k=None):
    return ~_ones(n_q, n_k).tril(_shift(n_q, n_k))


@exercise.alternative
def cell_by_cell(n_q, n_k=None):
    n_q, n_k = _sizes(n_q, n_k)
    mask = torch.zeros(n_q, n_k, dtype=torch.bool)
    for i in range(n_q):
        for j in range(n_k):
            mask[i, j] = j - n_k > i - n_q
    return mask


@exercise.alternative
def last_rows_of_a_square(n_q, n_k=None):
    n_q, n_k = _sizes(n_q, n_k)
    side = max(n_q, n_k)
    return torch.ones(side, side, dtype=torch.bool).triu(1)[side - n_q :, side - n_k :]
