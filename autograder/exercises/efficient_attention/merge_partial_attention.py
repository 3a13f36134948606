"""Check `merge_partial_attention`: two softmaxes over two sets of keys become one over both."""

import math

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.efficient_attention import CHAPTER
from autograder.program import Program, Run, call
from course_lib.efficient import flash

FAR_APART = 60.0  # between log-sum-exps: the larger set then takes all but a trace
BEYOND_EXP = 900.0  # exp of it overflows in every dtype of the cases


def partial(draw: Draw, *axes: int, spread: float = 2.0, mean: float = 0.0) -> tuple[torch.Tensor, ...]:
    """Draw outputs and log-sum-exps over two sets of keys."""
    d_v = axes[-1]
    tensors = []
    for _ in range(2):
        tensors += [draw.normal(*axes[:-1], d_v), draw.normal(*axes[:-1], scale=spread, mean=mean)]
    return tuple(tensors)


def attended(draw: Draw) -> Program:
    """Attend over two sets of keys for real, and give both results."""
    heads, n_q, d_k, d_v = draw.sizes(4, low=2, high=7)
    query, parts = draw.normal(heads, n_q, d_k, scale=2), []
    for n_k in draw.sizes(2, low=3, high=9):
        key, value = draw.normal(heads, n_k, d_k), draw.normal(heads, n_k, d_v)
        scores = query @ key.mT / math.sqrt(d_k)
        parts += [scores.softmax(-1) @ value, scores.logsumexp(-1)]
    return call(*parts)


def in_heads(draw: Draw, spread: float = 2.0, mean: float = 0.0) -> Program:
    """Draw results for a batch of heads."""
    return call(*partial(draw, *draw.sizes(4, low=2, high=6), spread=spread, mean=mean))


def one_far_above(draw: Draw) -> Program:
    """Let one set weigh far more, in some rows the first and in some the second."""
    out_a, lse_a, out_b, lse_b = partial(draw, *draw.sizes(2, low=4, high=7))
    sign = torch.tensor([1.0, -1.0] * lse_a.numel())[: lse_a.numel()].to(lse_a)
    return call(out_a, lse_a + FAR_APART * sign, out_b, lse_b)


def nothing_seen(draw: Draw) -> Program:
    """Let some queries see nothing in the first set, some in the second, and one in neither."""
    out_a, lse_a, out_b, lse_b = partial(draw, 5, draw.integer(2, 7))
    for out, lse, blind in ((out_a, lse_a, [0, 2]), (out_b, lse_b, [1, 2])):
        out[blind], lse[blind] = 0, -math.inf
    return call(out_a, lse_a, out_b, lse_b)


def finite_outputs(program: Program, found: Run) -> str | None:
    """Say when an output is not finite, which no merged average can be."""
    out = found.outcomes[0][0]
    rows = (~out.isfinite()).any(-1).nonzero()
    if not len(rows):
        return None
    row = tuple(rows[0].tolist())
    lse_a, lse_b = program.steps[0].args[1][row], program.steps[0].args[3][row]
    return f"out[{', '.join(map(str, row))}] is not finite, where lse_a is {lse_a:.4g} and lse_b is {lse_b:.4g}"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=flash.merge_partial_attention,
    returns=("out", "lse"),
    properties=[finite_outputs],
    cases=[
        Case("attention over two sets of keys", attended),
        Case("a batch of heads", in_heads),
        Case("one query sees nothing in either set", nothing_seen),
        Case("attention in float64", attended, hidden=True, dtype="float64"),
        Case("one set weighs far more", one_far_above, hidden=True),
        Case("log-sum-exps near 900", lambda draw: in_heads(draw, mean=BEYOND_EXP), hidden=True),
        Case("log-sum-exps near -900", lambda draw: in_heads(draw, mean=-BEYOND_EXP), hidden=True),
        Case("equal log-sum-exps", lambda draw: in_heads(draw, spread=0.0), hidden=True),
        Case("nothing seen, in float64", nothing_seen, hidden=True, dtype="float64"),
    ],
)


def _merged(share_a, out_a, share_b, out_b):
    return share_a.unsqueeze(-1) * out_a + share_b.unsqueeze(-1) * out_b


@exercise.misconception("""
    You give both parts the same say. A part that met a strong key, or many keys, holds more of the softmax's mass;
    its log-sum-exp says how much. What should happen when one of the two saw almost nothing?
""")
def plain_mean(out_a, lse_a, out_b, lse_b):
    return (out_a + out_b) / 2, torch.logaddexp(lse_a, lse_b)


@exercise.misconception("""
    Your log-sum-exp is right, but the outputs are simply added. Each of them was divided by its own sum, so together
    they hold the mass of two softmaxes. Merge two parts whose values are all 1: the result should be 1 again.
""")
def outputs_added(out_a, lse_a, out_b, lse_b):
    return out_a + out_b, torch.logaddexp(lse_a, lse_b)


@exercise.misconception("""
    You take the log-sum-exps themselves as weights. They are logarithms and may be negative; the mass of a part is
    exp(lse).
""")
def weighted_by_logarithms(out_a, lse_a, out_b, lse_b):
    total = lse_a + lse_b
    return _merged(lse_a / total, out_a, lse_b / total, out_b), torch.logaddexp(lse_a, lse_b)


@exercise.misconception("""
    The weights are swapped: the part with the larger log-sum-exp gets the smaller share. Try lse_a far above lse_b;
    the result should be close to out_a.
""")
def shares_swapped(out_a, lse_a, out_b, lse_b):
    return flash.merge_partial_attention(out_b, lse_a, out_a, lse_b)


@exercise.misconception("""
    Your outputs are right. The log-sum-exps are added, though, which would multiply the masses: two parts hold
    exp(lse_a) **plus** exp(lse_b), and the logarithm of that is asked for.
""")
def logarithms_added(out_a, lse_a, out_b, lse_b):
    return flash.merge_partial_attention(out_a, lse_a, out_b, lse_b)[0], lse_a + lse_b


@exercise.misconception("""
    Your outputs are right, but the log-sum-exp you return is the larger of the two. The smaller part's mass is lost,
    and the next merge will count too little for this side. Merge a part with itself: how much mass are two of it?
""")
def largest_alone(out_a, lse_a, out_b, lse_b):
    return flash.merge_partial_attention(out_a, lse_a, out_b, lse_b)[0], torch.maximum(lse_a, lse_b)


@exercise.misconception("""
    Each result takes the part with the larger log-sum-exp whole. That is a hard choice; a softmax shares, unless the
    two are far apart.
""")
def winner_takes_all(out_a, lse_a, out_b, lse_b):
    return torch.where((lse_a >= lse_b).unsqueeze(-1), out_a, out_b), torch.logaddexp(lse_a, lse_b)


@exercise.misconception("""
    You return the sum of the masses, not its logarithm. The name says log-sum-exp, and for a reason: the sum itself
    overflows as soon as a score passes 88 in float32.
""")
def sum_without_logarithm(out_a, lse_a, out_b, lse_b):
    out, lse = flash.merge_partial_attention(out_a, lse_a, out_b, lse_b)
    return out, lse.exp()


@exercise.misconception("""
    Right until a log-sum-exp leaves the range of `exp`: then your masses are infinite, or both 0, and their quotient
    is no number. Only the difference of the two matters, so subtract the larger one before `exp`, and add it again to
    the logarithm.
""")
def no_maximum_subtracted(out_a, lse_a, out_b, lse_b):
    mass_a, mass_b = lse_a.exp(), lse_b.exp()
    total = mass_a + mass_b
    blind = (lse_a == -math.inf) & (lse_b == -math.inf)
    total = total.masked_fill(blind, 1)
    return _merged(mass_a / total, out_a, mass_b / total, out_b), total.log().masked_fill(blind, -math.inf)


@exercise.misconception("""
    Where a query saw nothing on either side, both log-sum-exps are −∞, and −∞ − (−∞) is NaN. Such a query keeps output
    0 and log-sum-exp −∞. Which number could stand in for the −∞ that you subtract, without changing any other row?
""")
def nan_where_nothing_is_seen(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return _merged((lse_a - lse).exp(), out_a, (lse_b - lse).exp(), out_b), lse


@exercise.misconception("""
    The log-sum-exp has one number for each query, in the shape (..., n). Yours kept an axis of size 1 at the end,
    which is handy inside and unexpected outside.
""")
def axis_kept(out_a, lse_a, out_b, lse_b):
    out, lse = flash.merge_partial_attention(out_a, lse_a, out_b, lse_b)
    return out, lse.unsqueeze(-1)


@exercise.alternative
def by_logaddexp(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    origin = torch.where(torch.isinf(lse), torch.zeros_like(lse), lse)
    return torch.exp(lse_a - origin)[..., None] * out_a + torch.exp(lse_b - origin)[..., None] * out_b, lse


@exercise.alternative
def by_sigmoid(out_a, lse_a, out_b, lse_b):
    share = torch.nan_to_num(torch.sigmoid(lse_a - lse_b), nan=0.5).unsqueeze(-1)
    return share * out_a + (1 - share) * out_b, torch.logaddexp(lse_a, lse_b)


@exercise.alternative
def by_a_softmax_over_the_parts(out_a, lse_a, out_b, lse_b):
    masses = torch.stack([lse_a, lse_b])
    shares = masses.softmax(0).nan_to_num(0.0)
    return [torch.einsum("p...,p...d->...d", shares, torch.stack([out_a, out_b])), masses.logsumexp(0)]


@exercise.alternative
def with_the_maximum_as_in_the_papers(out_a, lse_a, out_b, lse_b):
    largest = torch.max(lse_a, lse_b)
    safe = largest.clamp(min=torch.finfo(largest.dtype).min)
    mass_a, mass_b = (lse_a - safe).exp(), (lse_b - safe).exp()
    total = mass_a + mass_b
    out = (mass_a[..., None] * out_a + mass_b[..., None] * out_b) / total.clamp(min=1e-30)[..., None]
    return out, torch.where(total > 0, safe + total.log(), largest)
