"""Check `masked_softmax`: hidden keys get nothing, rows that see nothing get zeros, and no gradient is NaN."""

import math

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.masking import CHAPTER
from autograder.program import Program, Run, call
from course_lib import masks

LOUD = 30.0  # a hidden score that would win, were it not hidden
SINGLE_PRECISION = {"float64": 1e-5}  # computing in float32 is fine, as long as the dtype comes back
ROW_SUM_TOLERANCE = 2e-2  # coarse on purpose: it only picks the sentence, the values decide


def partly_hidden(draw: Draw, *leading: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw scores and a mask in which every row hides some keys and shows some; each row's loudest key is hidden."""
    n_q, n_k = 5, 7
    scores, mask = draw.normal(*leading, n_q, n_k), draw.mask(n_q, n_k)
    return scores.masked_fill(mask & (draw.normal(n_q, n_k) > 0), LOUD), mask


def empty_row(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Hide everything from one of the queries."""
    scores, mask = partly_hidden(draw, 2)
    mask[draw.integer(1, 3)] = True
    return scores, mask


def forward(draw: Draw) -> Program:
    """Draw rows that all see something."""
    return call(*partly_hidden(draw))


def batch_and_heads(draw: Draw) -> Program:
    """Draw scores of several heads, and a padding mask that broadcasts over heads and queries."""
    scores = draw.normal(2, 3, 4, 6)
    return call(scores, draw.mask(2, 1, 1, 6))


def with_gradients(draw: Draw) -> Program:
    """Look at the weights of rows that see nothing, and then at the gradients of the scores."""
    scores, mask = empty_row(draw)
    return call(scores, mask).gradients(scores, mask, wrt=(0,), weighted=True)


def far_from_zero(draw: Draw) -> Program:
    """Draw scores so low that many a large negative number is not low enough, and some that are high."""
    scores, mask = partly_hidden(draw)
    return call(scores - 20_000, mask).call(scores + 500, mask)


def low_in_half(draw: Draw) -> Program:
    """Draw visible scores far below a hidden one, and a row that sees nothing, in half precision."""
    scores, mask = empty_row(draw)
    return call(scores, mask).gradients(scores, mask, wrt=(0,), weighted=True)


def nothing_hidden(draw: Draw) -> Program:
    """Hide nothing."""
    return call(draw.normal(3, 5), torch.zeros(3, 5, dtype=torch.bool))


def rows_are_shares(program: Program, found: Run) -> str | None:
    """Give a sentence about hidden keys with weights, or about a row that sums to neither 1 nor 0."""
    scores, mask = program.steps[0].args
    weights = found.outcomes[0].double()
    if weights.isnan().any():
        return None
    hidden = mask.expand(scores.shape)
    if weights[hidden].abs().max() > 0:
        return f"a hidden key has the weight {weights[hidden].abs().max().item():.3g}, but it should have 0"
    sums = weights.sum(-1)
    wrong = (~hidden.all(-1)) & ((sums - 1).abs() > ROW_SUM_TOLERANCE)
    if not wrong.any():
        return None
    return f"the visible keys of a row share {sums[wrong][0].item():.3g} among them, but they should share 1"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=masks.masked_softmax,
    properties=[rows_are_shares],
    tolerance=SINGLE_PRECISION,
    forbids=["torch.nn.functional.scaled_dot_product_attention"],
    cases=[
        Case("5 queries over 7 keys", forward),
        Case("a query that sees nothing", with_gradients),
        Case("batch and heads", batch_and_heads),
        Case("scores far from zero", far_from_zero, hidden=True),
        Case("a query that sees nothing, in float16", low_in_half, hidden=True, dtype="float16"),
        Case("a query that sees nothing, in bfloat16", low_in_half, hidden=True, dtype="bfloat16"),
        Case("another query that sees nothing, in float64", with_gradients, hidden=True, dtype="float64"),
        Case("nothing hidden", nothing_hidden, hidden=True),
    ],
)


def _safe(scores, mask):
    return masks.masked_softmax(scores, mask)


@exercise.misconception("""
    A query that sees nothing becomes NaN. Its row is -inf everywhere, and -inf minus -inf has no value. One such row
    is enough: in the next layer it is a key, and everyone who looks at it is NaN too. Decide what the row should give;
    in this course, zeros.
""")
def nan_where_all_is_hidden(scores, mask):
    return torch.softmax(scores.masked_fill(mask, -math.inf), dim=-1)


@exercise.misconception("""
    A query that sees nothing gets equal shares of keys that it must not see: a large negative number stands in for
    -inf, and when a whole row has it, it cancels out. In this course such a row has the weights 0. (In half precision
    the number may not exist at all.)
""")
def even_where_all_is_hidden(scores, mask):
    return torch.softmax(scores.masked_fill(mask, torch.finfo(scores.dtype).min), dim=-1)


@exercise.misconception("""
    Your weights are right and your gradient is NaN. The row that sees nothing was NaN on the way, and you replaced it
    afterwards; the way back passes through the NaN all the same, since 0 times NaN is NaN. Where in your code does the
    first NaN arise, and could the scores be cut off from it?
""")
def nan_in_the_gradient(scores, mask):
    return torch.softmax(scores + masks.additive_mask(mask, scores.dtype), dim=-1).nan_to_num(0.0)


@exercise.misconception("""
    Hidden keys get weight 0, good, but the visible ones share less than 1: the softmax had already paid for the hidden
    keys when you removed them, and a hidden score still moves the others. What must a score be, before the softmax, so
    that its share is exactly 0?
""")
def hidden_after_the_softmax(scores, mask):
    return torch.softmax(scores, dim=-1).masked_fill(mask, 0)


@exercise.misconception("""
    You remove the hidden keys after the softmax and divide by what is left. That is the same on paper. But a hidden
    score far above the others makes all visible weights 0 first, and 0 / 0 is no answer. Hide before the softmax.
""")
def renormalized_afterwards(scores, mask):
    weights = torch.softmax(scores, dim=-1).masked_fill(mask, 0)
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total == 0, 1, total)


@exercise.misconception("""
    Your mask works the wrong way round: the weights lie exactly on the hidden keys. In this course True hides. (In
    `F.scaled_dot_product_attention` True takes part; if you looked there, that is why.)
""")
def mask_inverted(scores, mask):
    return _safe(scores, ~mask)


@exercise.misconception("""
    A hidden key gets the score 0 in your code, and exp(0) = 1 is not nothing: it takes a share. Which score has the
    share 0?
""")
def hidden_scores_zeroed(scores, mask):
    return torch.softmax(scores.masked_fill(mask, 0), dim=-1)


@exercise.misconception("""
    You fill hidden scores with 1e-9, a number just above 0, and exp of it is 1: hidden keys take a full share. The
    customary number is -1e9. Better still is -inf.
""")
def tiny_positive_fill(scores, mask):
    weights = torch.softmax(scores.masked_fill(mask, 1e-9) + 0.0, dim=-1)
    return torch.where(mask.expand(scores.shape).all(-1, keepdim=True), 0, weights)


@exercise.misconception("""
    You add the mask itself, so that a hidden key gains 1. A mask that is added holds 0 and -inf. Every row still sums
    to 1, which is why a test of the sums does not notice.
""")
def mask_added(scores, mask):
    return torch.softmax(scores + mask, dim=-1)


@exercise.misconception("""
    Your mask has no effect: hidden keys still get weight. `masked_fill` returns a new tensor and leaves the old one as
    it was. Keep what it returns.
""")
def fill_not_kept(scores, mask):
    return torch.softmax(scores, dim=-1)


@exercise.misconception("""
    Your fill value, -10000, is not low enough: with visible scores of -20000 the hidden keys win. No finite number is
    safe against every score.
""")
def fill_not_low_enough(scores, mask):
    weights = torch.softmax(scores.masked_fill(mask, -1e4), dim=-1)
    return torch.where(mask.expand(scores.shape).all(-1, keepdim=True), 0, weights)


@exercise.misconception("""
    All is well until half precision, where -1e9 does not exist: the largest float16 is 65504. -inf exists in every
    dtype.
""")
def fill_beyond_half_precision(scores, mask):
    weights = torch.softmax(scores.masked_fill(mask, -1e9), dim=-1)
    return torch.where(mask.expand(scores.shape).all(-1, keepdim=True), 0, weights)


@exercise.misconception("""
    Each column of your weights sums to 1, but each row should: a row shares out one query's attention over the keys.
    Which axis is the last one?
""")
def softmax_over_queries(scores, mask):
    return _safe(scores.mT, mask.expand(scores.shape).mT).mT


@exercise.misconception("""
    Your weights are float32, whatever the scores are. Compute in float32 if you like, but hand back the dtype that
    came.
""")
def always_single_precision(scores, mask):
    return _safe(scores.float(), mask)


@exercise.misconception("""
    Your weights carry no gradient: something on the way (`detach`, `no_grad`, `.data`, a trip through NumPy) cut them
    off from the scores, and no query or key could ever learn.
""")
def cut_off_from_the_scores(scores, mask):
    return _safe(scores.detach(), mask)


@exercise.misconception("""
    The weights of a query that sees nothing are 1 at one place: you gave it the first key, so that the row is not
    empty. It must not see that one either; in this course it gets zeros.
""")
def first_key_given(scores, mask):
    hidden = mask.expand(scores.shape).clone()
    hidden[..., 0] &= ~hidden.all(-1)
    return _safe(scores, hidden)


@exercise.alternative
def filled_twice(scores, mask):
    return torch.softmax(scores.masked_fill(mask, -math.inf), dim=-1).masked_fill(mask, 0)


@exercise.alternative
def empty_rows_left_open(scores, mask):
    hidden = mask.expand(scores.shape)
    empty = hidden.all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(hidden & ~empty, -math.inf), dim=-1)
    return torch.where(empty, 0, weights)


@exercise.alternative
def exponentials_by_hand(scores, mask):
    precise = torch.where(mask, -math.inf, scores.double())
    peak = precise.amax(-1, keepdim=True).detach()
    exponentials = torch.exp(precise - torch.where(peak.isinf(), 0, peak))
    total = exponentials.sum(-1, keepdim=True)
    return (exponentials / torch.where(total == 0, 1, total)).to(scores.dtype)


@exercise.alternative
def added_then_zeroed(scores, mask):
    empty = mask.all(-1, keepdim=True)
    shown = torch.where(mask & ~empty, -math.inf, 0.0).to(scores.dtype)
    return torch.softmax(scores + shown, dim=-1).masked_fill(empty, 0)


@exercise.alternative
def in_single_precision_and_back(scores, mask):
    hidden = scores.float().masked_fill(mask, -math.inf)
    exponentials = torch.exp(hidden - hidden.amax(-1, keepdim=True).detach().clamp(min=torch.finfo(torch.float32).min))
    return (exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-30)).to(scores.dtype)


@exercise.alternative
def with_a_key_for_rows_that_see_nothing(scores, mask):
    empty = mask.expand(scores.shape).all(-1, keepdim=True)
    sink = torch.zeros_like(scores[..., :1]).masked_fill(~empty, -math.inf)
    return torch.cat([scores.masked_fill(mask, -math.inf), sink], dim=-1).softmax(-1)[..., :-1]


@exercise.alternative
def row_by_row(scores, mask):
    hidden = mask.expand(scores.shape).reshape(-1, scores.shape[-1])
    rows = []
    for row, gone in zip(scores.reshape(hidden.shape), hidden, strict=True):
        weights = torch.zeros_like(row)
        if not gone.all():
            weights = weights.masked_scatter(~gone, torch.softmax(row[~gone], dim=-1))
        rows.append(weights)
    return torch.stack(rows).reshape(scores.shape)
