"""Check `apply_rotary`: given positions, values as well as what a rotation keeps."""

from __future__ import annotations

import torch

from autograder.exercise import Case, Exercise
from autograder.exercises.positional_encoding import CHAPTER
from autograder.exercises.positional_encoding.rotary_inputs import (
    fractional,
    gaps,
    half_precision,
    heads,
    many_heads,
    one_head,
    one_new_token,
    position_twice,
)
from autograder.exercises.positional_encoding.rotations import ACCEPTED_ROTATIONS, BASE, angles_of, refuse_odd, turn
from autograder.program import Program, Run, call
from course_lib import rotary

ROWS = 100  # of a table of angles that is long enough for all positions that can be looked up in it
# Half precision rounds at every product, and angles may be computed in float32 for float64 inputs.
TOLERANCE = {"float64": 2e-4, "float32": 2e-4, "bfloat16": 0.15}
LENGTH_SLACK = 1e-3


def lengths_stay(program: Program, found: Run) -> str | None:
    """Look at the length of every token's vector, which a rotation keeps."""
    x, turned = program.steps[0].args[0].double(), found.outcomes[0].double()
    if x.shape != turned.shape:
        return None
    before, after = x.norm(dim=-1), turned.norm(dim=-1)
    wrong = ((after - before).abs() > LENGTH_SLACK * before).nonzero()
    if not len(wrong) or found.outcomes[0].dtype == torch.bfloat16:
        return None
    place = tuple(wrong[0].tolist())
    position = program.steps[0].args[1][place[-1]].item()
    return (
        f"at position {position:g} the length of a vector changes from {before[place]:.4g} to {after[place]:.4g}, but "
        "a rotation changes no length"
    )


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=rotary.apply_rotary,
    returns=("the turned tokens",),
    properties=[lengths_stay],
    tolerance=TOLERANCE,
    forbids=["course_lib.rotary.apply_rotary_half_split"],
    cases=[
        Case("positions 0, 1, 2, 3 and 7", one_head),
        Case("heads, and positions with gaps", heads),
        Case("another base", lambda draw: heads(draw, base=draw.number(20.0, 500.0)), hidden=True),
        Case("as many heads as tokens", many_heads, hidden=True),
        Case("one new token", one_new_token, hidden=True),
        Case("one position twice", position_twice, hidden=True),
        Case("positions between whole numbers", fractional, hidden=True),
        Case("float64", heads, hidden=True, dtype="float64"),
        Case("bfloat16, late positions", half_precision, hidden=True, dtype="bfloat16"),
        Case("an odd width", lambda draw: call(draw.normal(4, 7), gaps(draw, 4)), hidden=True),
        Case("two features", lambda draw: call(draw.normal(3, 4, 2), gaps(draw, 4)), hidden=True),
    ],
)


@exercise.misconception("""
    Lengths and distances are right, only the values differ: you pair feature i with feature i + d/2, as GPT-NeoX and
    Hugging Face's Llama do. This course pairs neighbors, (0, 1), (2, 3), …, as the paper does. The two layouts are a
    permutation of columns apart; the next exercise builds it.
""")
def half_split_pairing(x, positions, base=BASE):
    return rotary.apply_rotary_half_split(x, positions, base)


@exercise.misconception("""
    At position 0 all is well, but elsewhere the lengths of vectors change, and a rotation never changes a length. Your
    angles are laid out for neighbors (0,1), (2,3), … while the rotation pairs i with i + d/2. Both pairings are in use;
    take the neighbors, in both places.
""")
def two_pairings_mixed(x, positions, base=BASE):
    angles = angles_of(x, positions, base).repeat_interleave(2, dim=-1)
    left, right = x.double().chunk(2, dim=-1)
    return (x * angles.cos() + torch.cat([-right, left], dim=-1) * angles.sin()).to(x.dtype)


@exercise.misconception("""
    You turn the right pairs, and then lay the results out in halves: all first members, then all second ones. Each
    result belongs into the column that its feature came from.
""")
def results_laid_out_in_halves(x, positions, base=BASE):
    return rotary.to_half_split(rotary.apply_rotary(x, positions, base))


@exercise.misconception("""
    You turn the other way round. Scores between two turned vectors do not notice, since both turn backward, but weights
    that others trained do, and so does code that mixes the two. Turn (1, 0) by a small angle: the second number should
    become positive.
""")
def turned_backward(x, positions, base=BASE):
    return turn(x, -angles_of(x, positions, base))


@exercise.misconception("""
    Vectors change their length away from position 0: your two products with the sine have the same sign. That is not a
    rotation. One of them has a minus: turn (0, 1) by a small angle on paper.
""")
def minus_missing(x, positions, base=BASE):
    return turn(x, angles_of(x, positions, base), signs=(1, 1))


@exercise.misconception("""
    All pairs turn by the same angle. Lengths and distances survive that, but one speed repeats itself after 2π = 6.3
    positions, and then near and far look alike. Each pair has its own frequency.
""")
def one_speed_for_all(x, positions, base=BASE):
    return turn(x, angles_of(x, positions, base, exponent=0.0))


@exercise.misconception("""
    You turn the tokens by 0, 1, 2, … and not by the positions that were given. With a cache the next token is at
    position 17, say, and comes alone: it must be turned by 17.
""")
def positions_ignored(x, positions, base=BASE):
    return turn(x, angles_of(x, torch.arange(x.shape[-2]), base))


@exercise.misconception("""
    Your positions run along the wrong axis: heads turn by different angles, and the tokens of one head all by the same.
    Count axes from the end: features are the last one, tokens the last but one.
""")
def positions_along_the_heads(x, positions, base=BASE):
    if x.ndim < 4 or x.shape[1] != len(positions):
        angles = angles_of(x, positions, base)
        return turn(x, angles) if x.ndim < 4 else turn(x.transpose(1, 2), angles[:, None]).transpose(1, 2)
    return turn(x, angles_of(x, positions, base)[:, None])


@exercise.misconception("""
    Your pairs turn too slowly one after the other, or too fast: pair i has the frequency base^(-2i / d), and i counts
    pairs from 0 to d/2 - 1. Half the exponent came out.
""")
def exponent_halved(x, positions, base=BASE):
    return turn(x, angles_of(x, positions, base, exponent=1.0))


@exercise.misconception("""
    Your frequencies fall too fast: the 2 of the exponent 2i / d is in it twice. An `arange(0, d, 2)` already is 2i.
""")
def exponent_doubled(x, positions, base=BASE):
    return turn(x, angles_of(x, positions, base, exponent=4.0))


@exercise.misconception("""
    Your frequencies are upside down: the last pair should be the slowest, yours is the fastest. Lengths and distances
    are right all the same; only values show it.
""")
def frequencies_inverted(x, positions, base=BASE):
    return turn(x, angles_of(x, positions, base, exponent=-2.0))


@exercise.misconception("""
    You add the waves to the tokens. Rotary positions are not added to anything: they turn what is there, and leave its
    length as it was.
""")
def waves_added(x, positions, base=BASE):
    angles = angles_of(x, positions, base)
    return (x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)).to(x.dtype)


@exercise.misconception("""
    You turn only the first half of the features. Some models do so on purpose (GPT-NeoX turns a quarter of each head);
    here every pair is turned.
""")
def first_half_only(x, positions, base=BASE):
    refuse_odd(x)
    turned = rotary.apply_rotary(x, positions, base)
    cut = max(2, x.shape[-1] // 4 * 2)
    return torch.cat([turned[..., :cut], x[..., cut:]], dim=-1)


@exercise.misconception("""
    The base 10000 stands fixed in your code: another base changes nothing. Models for long texts raise it, so it is an
    argument.
""")
def base_ignored(x, positions, base=BASE):
    return rotary.apply_rotary(x, positions)


@exercise.misconception("""
    An odd width is not refused with a `ValueError`. Half a pair cannot turn: say so before you compute anything.
""")
def odd_width_breaks(x, positions, base=BASE):
    return rotary.apply_rotary(x, positions, base) if x.shape[-1] % 2 == 0 else x[..., 0::2] * x[..., 1::2]


@exercise.misconception("""
    An odd width goes through: the last feature is left as it was. The contract says that an odd width raises a
    `ValueError`.
""")
def odd_feature_left_alone(x, positions, base=BASE):
    even = x.shape[-1] // 2 * 2
    return torch.cat([rotary.apply_rotary(x[..., :even], positions, base), x[..., even:]], dim=-1)


@exercise.misconception("""
    Your result for bfloat16 is float32: a product with a float32 cosine widens it. Compute the angles in float32, and
    return the dtype of `x`.
""")
def widened_to_float32(x, positions, base=BASE):
    turned = rotary.apply_rotary(x.double(), positions, base)
    return turned.to(torch.promote_types(x.dtype, torch.float32))


@exercise.misconception("""
    Your angles were computed in the dtype of `x`. Between 1024 and 2048, bfloat16 holds only every eighth whole number,
    so neighbors get the same angle. Compute angles in float32 or float64, and cast at the end.
""")
def angles_in_half_precision(x, positions, base=BASE):
    refuse_odd(x)
    if x.dtype != torch.bfloat16:
        return rotary.apply_rotary(x, positions, base)
    rates = (base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])).to(x.dtype)
    return turn(x, positions.to(x.dtype)[:, None] * rates)


@exercise.misconception("""
    You cut the positions to whole numbers. They may be fractional: position interpolation squeezes a long text into
    the trained range that way.
""")
def positions_made_whole(x, positions, base=BASE):
    return rotary.apply_rotary(x, positions.long(), base)


@exercise.misconception("""
    Your result is `x` itself: nothing is turned. Lengths and distances are kept by that as well, which is why a test of
    invariants alone would let it pass.
""")
def nothing_turned(x, positions, base=BASE):
    refuse_odd(x)
    return x.clone()


@exercise.misconception("""
    You make a table of angles and look positions up in it as row numbers. Between whole numbers there is no row, and
    position interpolation asks for just that: multiply the positions with the frequencies instead.
""")
def positions_as_row_numbers(x, positions, base=BASE):
    return turn(x, angles_of(x, torch.arange(ROWS), base)[positions])


for form in ACCEPTED_ROTATIONS:
    exercise.alternative(form)
