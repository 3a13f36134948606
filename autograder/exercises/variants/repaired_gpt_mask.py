"""Check `repaired_gpt_mask`: a bug hunt. Document B's mask hides the past."""

import math

import torch

from autograder.compare import difference
from autograder.exercise import Case, Exercise
from autograder.exercises.variants import CHAPTER
from autograder.program import Program, Run, call
from course_lib import masks


def hides_the_future(program: Program, found: Run) -> str | None:
    """Judge a mask by what it hides; a boolean one and one of 0 and -inf are both right."""
    length, mask = program.steps[0].args[0], found.outcomes[0]
    wanted = masks.causal_mask(length)
    if not isinstance(mask, torch.Tensor) or mask.shape != wanted.shape:
        return difference(wanted, mask, "the mask")
    if mask.dtype.is_floating_point:
        unread = ~((mask == 0) | (mask == -math.inf))
        if unread.any():
            row, column = unread.nonzero()[0].tolist()
            return (
                f"a mask of numbers holds 0 and -inf, but yours holds {mask[row, column].item():g} at [{row}, {column}]"
            )
        hidden = mask == -math.inf
    elif mask.dtype == torch.bool:
        hidden = mask
    else:
        return difference(wanted, mask, "the mask")
    for query in range(length):
        visible = (~hidden[query]).nonzero().flatten().tolist()
        if visible != list(range(query + 1)):
            shown = ", ".join(map(str, visible)) or "nothing"
            return f"query {query} of {length} should see the keys 0 to {query}, but sees {shown}"
    return None


def judged(name: str, length: int, hidden: bool = False) -> Case:
    """Make a case of one length."""
    return Case(name, lambda draw: call(length), hidden=hidden, judge=hides_the_future)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=masks.causal_mask,
    name="repaired_gpt_mask",
    returns=("the mask",),
    cases=[
        judged("4 tokens", 4),
        judged("6 tokens", 6),
        judged("one token", 1, hidden=True),
        Case("any length", lambda draw: call(draw.integer(7, 12)), hidden=True, judge=hides_the_future),
    ],
)


def _indices(n):
    places = torch.arange(n)
    return places[:, None], places[None, :]


@exercise.misconception("""
    That is still document B's rule: hidden where i > j. Row i is the query. For the last row, which keys have a smaller
    number than it has, and does a writer know those already?
""")
def documents_rule(n):
    i, j = _indices(n)
    return i > j


@exercise.misconception("""
    That is document B's rule, written with −∞: hidden where i > j. Row i is the query. Print the softmax of M for four
    tokens: which keys does the first token read, and which the last?
""")
def documents_rule_in_numbers(n):
    i, j = _indices(n)
    return torch.zeros(n, n).masked_fill(i > j, -math.inf)


@exercise.misconception("""
    The future is hidden now, but a token does not see itself either, and the first one sees nothing: its softmax would
    have nothing to share out. The future begins behind the token.
""")
def token_cannot_see_itself(n):
    i, j = _indices(n)
    return i <= j


@exercise.misconception("""
    True stands where i ≥ j, just where a token may look. In this course True hides, so every token would see only what
    comes after it, and the last one nothing. (PyTorch's `scaled_dot_product_attention` reads a boolean mask the other
    way, which may be where this comes from.)
""")
def true_shows(n):
    i, j = _indices(n)
    return i >= j


@exercise.misconception("""
    You hide the very next token alone. Whoever may read the one after it is told the answer all the same.
""")
def only_the_next_token(n):
    i, j = _indices(n)
    return j == i + 1


@exercise.misconception("""
    You count from the other corner of the table. Query i stands in row i and key j in column j, both from the top left.
""")
def other_corner(n):
    i, j = _indices(n)
    return i + j >= n


@exercise.misconception("""
    You hide the future and the past; each token sees itself alone, and nothing is left to learn from.
""")
def nothing_but_itself(n):
    i, j = _indices(n)
    return i != j


@exercise.alternative
def columns_beyond_the_row(n):
    i, j = _indices(n)
    return j > i


@exercise.alternative
def upper_triangle(n):
    return torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)


@exercise.alternative
def lower_triangle_turned(n):
    return torch.ones(n, n).tril() == 0


@exercise.alternative
def minus_infinity_above(n):
    return torch.full((n, n), -math.inf).triu(1)


@exercise.alternative
def minus_infinity_filled(n):
    return torch.zeros(n, n).masked_fill(torch.ones(n, n).triu(1).bool(), float("-inf"))


@exercise.alternative
def cell_by_cell(n):
    return torch.tensor([[j > i for j in range(n)] for i in range(n)])
