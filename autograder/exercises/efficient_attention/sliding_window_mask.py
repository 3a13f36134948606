"""Check `sliding_window_mask`: `window` keys that include the token itself, or as many on both sides."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.efficient_attention import CHAPTER
from autograder.exercises.efficient_attention.rows import boolean, first_wrong_row
from autograder.program import Program, Run, call
from course_lib.efficient import sparse


def causal(draw: Draw) -> Program:
    """Ask for a causal window, once by default and once in so many words."""
    window = draw.integer(2, 4)
    return call(draw.integer(8, 11), window).call(draw.integer(12, 14), window + 1, causal=True)


def both_sides(draw: Draw) -> Program:
    """Ask for a window that looks back and ahead."""
    return call(draw.integer(9, 12), draw.integer(3, 4), causal=False)


def wider_than_the_sequence(draw: Draw) -> Program:
    """Ask for a window that hides no past at all."""
    length = draw.integer(4, 6)
    return call(length, length + draw.integer(1, 3)).call(length, length + 2, causal=False)


def of_the_window(program: Program, found: Run) -> str | None:
    """Give a sentence about the first query that sees the wrong keys."""
    for step, mask in zip(program.steps, found.outcomes, strict=True):
        length, window = step.args[:2]
        back_only = step.kwargs.get("causal", True)
        sentence = first_wrong_row(
            mask, length, lambda i, j, w=window, c=back_only: 0 <= i - j < w if c else abs(i - j) < w
        )
        if sentence:
            return f"with window {window} {'(causal)' if back_only else '(both sides)'} {sentence}"
    return None


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=sparse.sliding_window_mask,
    returns=("the mask",),
    properties=[boolean, of_the_window],
    cases=[
        Case("a causal window", causal),
        Case("both sides", both_sides),
        Case("a window of one", lambda draw: call(draw.integer(4, 6), 1).call(5, 1, causal=False), hidden=True),
        Case("wider than the sequence", wider_than_the_sequence, hidden=True),
        Case("one token", lambda draw: call(1, draw.integer(1, 3)), hidden=True),
        Case("as wide as the sequence", lambda draw: call(6, 6).call(6, 6, causal=False), hidden=True),
    ],
)


def _distance(length):
    places = torch.arange(length)
    return places[:, None] - places[None, :]


@exercise.misconception("""
    Your window is one key too wide: a row shows `window` + 1 keys. Here the token itself is one of the `window`. (Both
    ways of counting are in use, which is why long-context models have been released with the wrong one.) How far away
    is the last key of a window of 1?
""")
def one_too_wide(length, window, causal=True):
    return sparse.sliding_window_mask(length, window + 1, causal)


@exercise.misconception("""
    A token does not see itself in your mask. It counts as the first of its `window` keys; what is the distance of a
    token from itself?
""")
def without_itself(length, window, causal=True):
    return sparse.sliding_window_mask(length, window, causal) | torch.eye(length, dtype=torch.bool)


@exercise.misconception("""
    Your window is one key too narrow: the farthest of the `window` keys is missing. Counting from the token itself,
    at distance 0, which distance does key number `window` have?
""")
def one_too_narrow(length, window, causal=True):
    mask = sparse.sliding_window_mask(length, max(window - 1, 1), causal)
    return mask if window > 1 else torch.ones(length, length, dtype=torch.bool)


@exercise.misconception("""
    Your mask is True where a token may look. In this course True hides.
""")
def inverted(length, window, causal=True):
    return ~sparse.sliding_window_mask(length, window, causal)


@exercise.misconception("""
    Almost nothing is hidden in your causal mask, the future included: you hide a key only if it is too far away **and**
    in the future. Either reason is enough by itself. What happens to a key that is next to the token, but ahead?
""")
def both_reasons_needed(length, window, causal=True):
    distance = _distance(length)
    far = distance.abs() >= window
    return far & (distance < 0) if causal else far


@exercise.misconception("""
    Without `causal` your window ends on one side only: a token sees everything that comes later. A distance can be
    negative; compare its size.
""")
def open_ahead(length, window, causal=True):
    distance = _distance(length)
    return (distance < 0) | (distance >= window) if causal else distance >= window


@exercise.misconception("""
    Your mask looks to both sides also when a causal window is asked for. Causal: a token sees itself and what came
    before.
""")
def always_both_sides(length, window, causal=True):
    return sparse.sliding_window_mask(length, window, causal=False)


@exercise.misconception("""
    Your mask looks back only, also when `causal` is False.
""")
def always_causal(length, window, causal=True):
    return sparse.sliding_window_mask(length, window)


@exercise.misconception("""
    Without `causal` you share the window out between the two sides, half of it back and half ahead, as Longformer
    does. Here it is `window` - 1 tokens on each side: |i - j| < window.
""")
def halved_for_two_sides(length, window, causal=True):
    if causal:
        return sparse.sliding_window_mask(length, window)
    return _distance(length).abs() > window // 2


@exercise.misconception("""
    Your tokens look ahead and not back. Rows are queries i, columns are keys j; a causal window shows j ≤ i.
""")
def looks_ahead(length, window, causal=True):
    return sparse.sliding_window_mask(length, window, causal).T


@exercise.misconception("""
    Your mask holds numbers. The places are right; make it boolean, True where a key is hidden.
""")
def zeros_and_ones(length, window, causal=True):
    return sparse.sliding_window_mask(length, window, causal).float()


@exercise.alternative
def band_of_two_triangles(length, window, causal=True):
    ones = torch.ones(length, length, dtype=torch.bool)
    ahead = 0 if causal else window - 1
    return ~(ones.tril(ahead) & ones.triu(1 - window))


@exercise.alternative
def cell_by_cell(length, window, causal=True):
    mask = torch.ones(length, length, dtype=torch.bool)
    for i in range(length):
        for j in range(length):
            if (0 <= i - j < window) if causal else abs(i - j) < window:
                mask[i, j] = False
    return mask


@exercise.alternative
def row_by_row(length, window, causal=True):
    mask = torch.full((length, length), True)
    for i in range(length):
        mask[i, max(0, i - window + 1) : (i + 1 if causal else i + window)] = False
    return mask


@exercise.alternative
def two_reasons_to_hide(length, window, causal=True):
    i, j = torch.meshgrid(torch.arange(length), torch.arange(length), indexing="ij")
    hidden = torch.logical_or(i - j > window - 1, j - i > window - 1)
    return hidden | (j > i) if causal else hidden
