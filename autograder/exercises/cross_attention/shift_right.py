"""Check `shift_right`: what a decoder reads while it learns."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.cross_attention import CHAPTER
from autograder.program import Program, call
from course_lib import decoding

LOWEST, HIGHEST = 20, 90  # token ids; the start lies below all of them


def drawn(draw: Draw, batch: int | None = None, length: int | None = None) -> Program:
    """Draw rows of tokens that all differ, and a start that none of them is."""
    rows, columns = draw.sizes(2, low=3)
    shape = (batch or rows, length or columns)
    tokens = draw.array(draw.random.permutation(range(LOWEST, HIGHEST))[: shape[0] * shape[1]].reshape(shape))
    return call(tokens, draw.integer(3, LOWEST - 1))


def repeated(draw: Draw) -> Program:
    """Draw tokens among which the start and 0 appear too."""
    start = draw.integer(3, 6)
    tokens = draw.array(draw.random.permutation([0, 0, start, start, 7, 8, 9, 10, 11, 12]).reshape(2, 5))
    return call(tokens, start)


def as_many_rows_as_tokens(draw: Draw) -> Program:
    """Draw a square of tokens."""
    return drawn(draw, 4, 4)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=decoding.shift_right,
    returns=("the result",),
    cases=[
        Case("tokens that all differ", drawn),
        Case("a single row", lambda draw: drawn(draw, batch=1)),
        Case("a single token in each row", lambda draw: drawn(draw, length=1), hidden=True),
        Case("start and 0 among the tokens", repeated, hidden=True),
        Case("as many rows as tokens", as_many_rows_as_tokens, hidden=True),
    ],
)


@exercise.misconception("""
    Your result is one token longer than the input: the last token is still there. The decoder would be asked for one
    more token than there are targets, and after the last one there is nothing to learn.
""")
def last_kept(tokens, start_id):
    return torch.cat([torch.full_like(tokens[:, :1], start_id), tokens], 1)


@exercise.misconception("""
    The last token comes out in front: `roll` carries around what falls off the end. The decoder would begin by reading
    the end of the very sequence that it is to write.
""")
def rolled(tokens, start_id):
    return tokens.roll(1, 1)


@exercise.misconception("""
    The first token is replaced, and nothing is shifted: each place would read the very token that it is to write.
    A model learns to copy it, and its loss looks wonderful.
""")
def first_replaced(tokens, start_id):
    return torch.cat([torch.full_like(tokens[:, :1], start_id), tokens[:, 1:]], 1)


@exercise.misconception("""
    You shift to the left: each place reads the token **after** the one that it is to write. What stands before
    the first token?
""")
def shifted_left(tokens, start_id):
    return torch.cat([tokens[:, 1:], torch.full_like(tokens[:, :1], start_id)], 1)


@exercise.misconception("""
    The last token is cut off, and no start comes in front: the first target would have nothing to be written from, and
    the lengths no longer fit. (It is the right way where the data already begin with a start; these do not.)
""")
def start_missing(tokens, start_id):
    return tokens[:, :-1]


@exercise.misconception("""
    The start is there twice: one place is lost, and the last two tokens are never read.
""")
def start_twice(tokens, start_id):
    return torch.cat([torch.full_like(tokens[:, :2], start_id), tokens[:, :-2]], 1)[:, : tokens.shape[1]]


@exercise.misconception("""
    Your first column is 0, whatever `start_id` is. In some models they are the same; here the caller says.
""")
def starts_with_zero(tokens, start_id):
    return torch.cat([torch.zeros_like(tokens[:, :1]), tokens[:, :-1]], 1)


@exercise.misconception("""
    You shift along the first axis: each row receives the tokens of the row before. Rows are separate sequences; time
    runs along the last axis.
""")
def shifted_over_rows(tokens, start_id):
    return torch.cat([torch.full_like(tokens[:1], start_id), tokens[:-1]], 0)


@exercise.misconception("""
    Your result holds the start and then zeros: an empty buffer was shifted, and the tokens never got into it.
""")
def empty_buffer(tokens, start_id):
    shifted = torch.zeros_like(tokens)
    shifted[:, 0] = start_id
    return shifted


@exercise.alternative
def by_slices(tokens, start_id):
    shifted = tokens.clone()
    shifted[:, 1:] = tokens[:, :-1]
    shifted[:, 0] = start_id
    return shifted


@exercise.alternative
def by_padding(tokens, start_id):
    return torch.nn.functional.pad(tokens, (1, 0), value=start_id)[:, :-1]


@exercise.alternative
def by_rolling(tokens, start_id):
    shifted = torch.roll(tokens, shifts=1, dims=-1)
    shifted[..., 0] = start_id
    return shifted


@exercise.alternative
def by_lists(tokens, start_id):
    return torch.tensor([[start_id, *row[:-1]] for row in tokens.tolist()])


@exercise.alternative
def by_new_full(tokens, start_id):
    return torch.hstack((tokens.new_full((len(tokens), 1), start_id), tokens[:, :-1]))
