"""Check `shift_matrix`: moving by an offset is one rotation, the same for every position."""

from __future__ import annotations

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.positional_encoding import CHAPTER
from autograder.exercises.positional_encoding.waves import BASE, refuse_odd
from autograder.program import Program, Run, call
from course_lib import positions

Array = np.ndarray
SLACK = 1e-6
FEW = 3  # positions that a hasty fit would look at


def forward(draw: Draw) -> Program:
    """Move ahead by a drawn offset."""
    return call(draw.integer(2, 9), 2 * draw.integer(3, 5))


def another_base(draw: Draw) -> Program:
    """Draw a base other than the default."""
    return call(draw.integer(2, 9), 2 * draw.integer(3, 5), base=draw.number(20.0, 900.0))


def moves_every_position(program: Program, found: Run) -> str | None:
    """Try the matrix on positions, and say at which one it goes wrong."""
    offset, d_model, *rest = program.steps[0].args
    base = program.steps[0].kwargs.get("base", rest[0] if rest else BASE)
    start = abs(offset)
    encoding = positions.sinusoidal_encoding(2 * start + 20, d_model, base)
    for position in range(start, start + 20):
        gap = float(np.abs(encoding[position] @ found.outcomes[0] - encoding[position + offset]).max())
        if gap > SLACK:
            return (
                f"with your M, PE[{position}] @ M differs from PE[{position + offset}] by up to {gap:.3g}, but the two "
                "should be equal"
            )
    return None


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=positions.shift_matrix,
    returns=("M",),
    properties=[moves_every_position],
    cases=[
        Case("3 positions ahead, 8 columns", lambda draw: call(3, 8)),
        Case("5 positions back, 6 columns", lambda draw: call(-5, 6)),
        Case("a drawn offset", forward, hidden=True),
        Case("another base", another_base, hidden=True),
        Case("a drawn offset back", lambda draw: call(-draw.integer(2, 9), 2 * draw.integer(3, 5)), hidden=True),
        Case("far ahead", lambda draw: call(draw.integer(500, 900), 6), hidden=True),
        Case("no shift", lambda draw: call(0, 2 * draw.integer(2, 5)), hidden=True),
        Case("two columns", lambda draw: call(draw.integer(2, 9), 2), hidden=True),
        Case("an odd width", lambda draw: call(draw.integer(2, 9), 2 * draw.integer(2, 5) + 1), hidden=True),
    ],
)


def _blocks(angles: Array, signs: tuple[int, int] = (-1, 1), cosine: float = 1.0) -> Array:
    """Build M from the pairs' angles, with signs for the sines above and below the diagonal."""
    matrix = np.zeros((2 * len(angles),) * 2)
    for pair, angle in enumerate(angles):
        rows = slice(2 * pair, 2 * pair + 2)
        above, below = signs
        matrix[rows, rows] = [
            [cosine * np.cos(angle), above * np.sin(angle)],
            [below * np.sin(angle), cosine * np.cos(angle)],
        ]
    return matrix


@exercise.misconception("""
    Your M moves by the opposite offset: it is the transpose of what is asked. With rows as vectors, PE[p] stands
    on the left of M; for columns, M would be the other way round. Multiply PE[4] by your M: which row comes out?
""")
def transposed(offset, d_model, base=BASE):
    return positions.shift_matrix(offset, d_model, base).T


@exercise.misconception("""
    Your first block is right and is used for every pair. Each pair turns at its own speed, so its block needs its own
    angle.
""")
def one_angle_for_all(offset, d_model, base=BASE):
    refuse_odd(d_model)
    return _blocks(np.full(d_model // 2, float(offset)))


@exercise.misconception("""
    Your M has cosines on its diagonal and nothing beside it, so it shrinks every vector. A shifted sine is a mixture of
    the old sine and the old cosine: sin(a + b) = sin a cos b + cos a sin b. Where in M does the second term go?
""")
def cosines_only(offset, d_model, base=BASE):
    return np.diag(np.diagonal(positions.shift_matrix(offset, d_model, base)))


@exercise.misconception("""
    Both sines in your blocks have the same sign, which makes lengths change. Write out sin(a + b) and cos(a + b): one
    of the two has a minus.
""")
def signs_equal(offset, d_model, base=BASE):
    refuse_odd(d_model)
    return _blocks(offset * positions.frequencies(d_model, base), signs=(1, 1))


@exercise.misconception("""
    Your M was fitted on a few positions: it is right there and wrong elsewhere. Three rows cannot settle the columns of
    all pairs. The addition theorems give M for all positions at once, with no fit.
""")
def fitted_on_three_positions(offset, d_model, base=BASE):
    refuse_odd(d_model)
    start = max(0, -offset)
    encoding = positions.sinusoidal_encoding(start + FEW + max(0, offset), d_model, base)
    before = encoding[start : start + FEW]
    after = encoding[start + offset : start + offset + FEW]
    return np.linalg.pinv(before) @ after


@exercise.misconception("""
    Your M is right for all sines first, then all cosines. In this course a pair stands side by side: sine in column 2i,
    cosine in column 2i + 1. Where do the four numbers of a pair then stand in M?
""")
def sines_first_layout(offset, d_model, base=BASE):
    matrix = positions.shift_matrix(offset, d_model, base)
    order = np.r_[0:d_model:2, 1:d_model:2]
    return matrix[np.ix_(order, order)]


@exercise.misconception("""
    Your M works for shifts ahead, and for a negative offset it moves ahead as well. An angle has a sign: keep that of
    the offset.
""")
def offset_without_sign(offset, d_model, base=BASE):
    return positions.shift_matrix(abs(offset), d_model, base)


@exercise.misconception("""
    Your angles grow too slowly from pair to pair, or fall too fast: the exponent is 2i / d_model with i counting pairs.
    Use the frequencies of `sinusoidal_encoding`, exactly as they are there.
""")
def index_doubled(offset, d_model, base=BASE):
    refuse_odd(d_model)
    return _blocks(offset * base ** (-2 * np.arange(0, d_model, 2) / d_model))


@exercise.misconception("""
    Your angles grow from pair to pair: the frequencies are upside down. The first pair turns by one radian per
    position, every later one by less.
""")
def frequencies_inverted(offset, d_model, base=BASE):
    refuse_odd(d_model)
    return _blocks(offset / positions.frequencies(d_model, base))


@exercise.misconception("""
    The base 10000 stands fixed in your code: another base changes nothing, although the encoding it must move has
    changed.
""")
def base_ignored(offset, d_model, base=BASE):
    return positions.shift_matrix(offset, d_model)


@exercise.misconception("""
    An odd width is not refused. The contract says `ValueError`: half a pair cannot turn.
""")
def odd_width_accepted(offset, d_model, base=BASE):
    if d_model % 2 == 0:
        return positions.shift_matrix(offset, d_model, base)
    return _blocks(offset * base ** (-np.arange(0, d_model, 2) / d_model))[:d_model, :d_model]


@exercise.misconception("""
    Your M turns by one position, whatever the offset. Moving by an offset turns every pair by offset times its
    frequency.
""")
def offset_ignored(offset, d_model, base=BASE):
    return positions.shift_matrix(1, d_model, base)


@exercise.alternative
def block_by_block(offset, d_model, base=BASE):
    if d_model % 2:
        raise ValueError("an odd width has no pairs")
    matrix = np.zeros((d_model, d_model))
    for i in range(0, d_model, 2):
        angle = offset / base ** (i / d_model)
        matrix[i : i + 2, i : i + 2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return matrix


@exercise.alternative
def as_a_power_of_one_step(offset, d_model, base=BASE):
    refuse_odd(d_model)
    step = _blocks(base ** (-np.arange(0, d_model, 2) / d_model))
    return np.linalg.matrix_power(step.T if offset < 0 else step, abs(offset))


@exercise.alternative
def by_the_matrix_exponential(offset, d_model, base=BASE):
    refuse_odd(d_model)
    rates = base ** (-np.arange(0, d_model, 2) / d_model)
    turning = np.exp(1j * offset * rates)
    identity = np.eye(len(rates))
    return np.kron(identity * turning.real, np.eye(2)) + np.kron(identity * turning.imag, [[0, -1], [1, 0]])


@exercise.alternative
def from_two_rows_of_the_encoding(offset, d_model, base=BASE):
    if d_model % 2:
        raise ValueError("an odd width has no pairs")
    signed = np.sign(offset) if offset else 1
    row = positions.sinusoidal_encoding(abs(offset) + 1, d_model, base)[-1]
    matrix = np.diag(np.repeat(row[1::2], 2))
    even = np.arange(0, d_model, 2)
    matrix[even + 1, even] = signed * row[0::2]
    matrix[even, even + 1] = -signed * row[0::2]
    return matrix
