"""Check `performer_features`: positive random features whose products estimate exp(q · k)."""

import math

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.efficient_attention import CHAPTER
from autograder.program import Program, Run, call
from course_lib.efficient import performer

SHORT = 0.5  # length per feature at which the estimate is good
FAR = 20.0  # from the origin: exp(|x|² / 2) alone overflows in float32


def drawn(draw: Draw, *leading: int, scale: float = 1.0, square: bool = False) -> Program:
    """Draw vectors and directions; all sizes differ unless a square projection is asked for."""
    d, m = draw.sizes(2, low=3, high=8)
    return call(draw.normal(*leading, d, scale=scale), draw.normal(d, d if square else m))


def heads(draw: Draw) -> Program:
    """Draw vectors of a batch of heads."""
    batch, count, length = draw.sizes(3, low=2, high=6)
    return drawn(draw, batch, count, length)


def far_out(draw: Draw) -> Program:
    """Draw vectors so long that exp of a projection and exp of −|x|²/2 leave float32 when taken one by one."""
    d, m = draw.integer(10, 16), draw.integer(5, 9)
    x = FAR * torch.nn.functional.normalize(draw.normal(3, d), dim=-1)
    return call(x, x[:1].mT * torch.linspace(0.45, 0.52, m).to(x))


def positive(program: Program, found: Run) -> str | None:
    """Say when a feature is negative, which no exponential is."""
    negative = int((found.outcomes[0] < 0).sum())
    return f"{negative} of your features are negative, but an exponential never is" if negative else None


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=performer.performer_features,
    returns=("the features",),
    properties=[positive],
    cases=[
        Case("one sequence", lambda draw: drawn(draw, draw.integer(9, 12))),
        Case("a batch of heads", heads),
        Case("short vectors", lambda draw: drawn(draw, 9, scale=SHORT), hidden=True),
        Case("as many features as directions have entries", lambda draw: drawn(draw, 9, square=True), hidden=True),
        Case("float64", heads, hidden=True, dtype="float64"),
        Case("one vector", drawn, hidden=True),
        Case("long vectors along the directions", far_out, hidden=True),
    ],
)


def _features(x, projection, *, length=-0.5, scale=None):
    exponent = x @ projection + length * x.square().sum(-1, keepdim=True)
    return exponent.exp() / math.sqrt(projection.shape[-1] if scale is None else scale)


@exercise.misconception("""
    Your features lack −|x|²/2. E[exp(w · x)] over random w is exp(|x|²/2), not 1, so long vectors would come out too
    large: average φ(x) · φ(x) over many directions and compare it with exp(x · x).
""")
def length_forgotten(x, projection):
    return _features(x, projection, length=0.0)


@exercise.misconception("""
    You add |x|²/2 where it should be subtracted. It is there to take back what the random directions add on average;
    with the plus the estimate is too large twice over.
""")
def length_added(x, projection):
    return _features(x, projection, length=0.5)


@exercise.misconception("""
    You subtract |x|², twice what is needed. For a standard normal w, the mean of exp(w · x) is exp(|x|²/2): half the
    square.
""")
def whole_length(x, projection):
    return _features(x, projection, length=-1.0)


@exercise.misconception("""
    You subtract |x|/2: the length, not its square. The mean of exp(w · x) over random directions is exp(|x|²/2).
""")
def length_not_squared(x, projection):
    return (x @ projection - x.norm(dim=-1, keepdim=True) / 2).exp() / math.sqrt(projection.shape[-1])


@exercise.misconception("""
    Your features are not divided by √m, so a product of two of them is a sum over directions where it should be a
    mean: it grows with the number of features. Double m and see whether the estimate of exp(q · k) stays.
""")
def not_divided(x, projection):
    return _features(x, projection, scale=1)


@exercise.misconception("""
    You divide by m. Each of the two sides of a product brings its own factor, so that each takes the **root**: 1/√m
    times 1/√m makes the mean.
""")
def divided_by_the_count(x, projection):
    return _features(x, projection, scale=projection.shape[-1] ** 2)


@exercise.misconception("""
    You divide by the root of d, the width of x. The mean runs over the m directions, the columns of the projection.
""")
def divided_by_the_width(x, projection):
    return _features(x, projection, scale=x.shape[-1])


@exercise.misconception("""
    You scale x by d^(−1/4) inside. Then the products estimate exp(q · k / √d), which attention wants in the end, but
    here exp(q · k) is asked for: the caller scales queries and keys before.
""")
def scaled_inside(x, projection):
    return _features(x * x.shape[-1] ** -0.25, projection)


@exercise.misconception("""
    Your features are cosines. On average their products give cosh(q · k), half of exp(q · k) and half of exp(−q · k).
    With sines beside them they would estimate the exponential, and this was tried first, but products and sums of
    weights can be negative. Positive features are the Performer's point: use exp.
""")
def cosine_features(x, projection):
    return (x.square().sum(-1, keepdim=True) / 2).exp() * (x @ projection).cos() / math.sqrt(projection.shape[-1])


@exercise.misconception("""
    You subtract the largest exponent of each vector. Of a query that cancels later, in the division. A key's own
    maximum does not: it makes every key equally strong. These features serve both sides, so nothing is subtracted
    here.
""")
def own_maximum_subtracted(x, projection):
    exponent = x @ projection - x.square().sum(-1, keepdim=True) / 2
    return (exponent - exponent.amax(-1, keepdim=True)).exp() / math.sqrt(projection.shape[-1])


@exercise.misconception("""
    You subtract the largest exponent of all vectors and directions. In attention it cancels in the division, but as
    features the result is too small by that factor: φ(q) · φ(k) no longer estimates exp(q · k).
""")
def common_maximum_subtracted(x, projection):
    exponent = x @ projection - x.square().sum(-1, keepdim=True) / 2
    return (exponent - exponent.max()).exp() / math.sqrt(projection.shape[-1])


@exercise.misconception("""
    You use relu in place of exp. Performers with relu features exist and train well, but their products estimate
    another kernel than exp(q · k).
""")
def relu_features(x, projection):
    return (x @ projection).relu() / math.sqrt(projection.shape[-1])


@exercise.misconception("""
    Right for short vectors. For long ones you take exp(x W) and exp(−|x|²/2) one by one: the first overflows and the
    second becomes 0, though their product is an ordinary number. Add the exponents first.
""")
def two_exponentials(x, projection):
    shrink = (-x.square().sum(-1, keepdim=True) / 2).exp()
    return (x @ projection).exp() * shrink / math.sqrt(projection.shape[-1])


@exercise.alternative
def by_einsum(x, projection):
    exponent = torch.einsum("...d,dm->...m", x, projection) - 0.5 * torch.einsum("...d,...d->...", x, x)[..., None]
    return torch.exp(exponent) * projection.shape[1] ** -0.5


@exercise.alternative
def in_the_exponent(x, projection):
    exponent = x @ projection - x.norm(dim=-1, keepdim=True) ** 2 / 2
    return torch.exp(exponent - math.log(projection.shape[-1]) / 2)


@exercise.alternative
def direction_by_direction(x, projection):
    half_square = (x * x).sum(-1) / 2
    features = [torch.exp((x * direction).sum(-1) - half_square) for direction in projection.unbind(-1)]
    return torch.stack(features, dim=-1) / len(features) ** 0.5


@exercise.alternative
def by_matching_squares(x, projection):
    distance = (x.unsqueeze(-1) - projection).square().sum(-2)  # |x − w|² = |x|² − 2 x · w + |w|²
    return torch.exp((projection.square().sum(0) - distance) / 2) / math.sqrt(projection.shape[-1])
