"""Check `alibi_bias`: a penalty in proportion to the distance, with queries aligned at the last key."""

from __future__ import annotations

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.positional_encoding import CHAPTER
from autograder.program import Program, Run, call
from course_lib import alibi


def cached(draw: Draw) -> Program:
    """Ask for fewer queries than keys, as with a cache."""
    heads, n_q = draw.sizes(2, low=2, high=5)
    return call(heads, n_q, n_q + draw.integer(3, 5))


def more_queries(draw: Draw) -> Program:
    """Ask for more queries than keys."""
    heads, n_k = draw.sizes(2, low=3, high=5)
    return call(heads, n_k + draw.integer(2, 4), n_k)


def own_place_costs_nothing(program: Program, found: Run) -> str | None:
    """Look where each query's bias is highest: at its own place."""
    bias = found.outcomes[0]
    heads, n_q, n_k = program.steps[0].args
    if tuple(bias.shape) != (heads, n_q, n_k) or not bias.isfinite().all():
        return None
    for query in range(n_q):
        own = n_k - n_q + query
        best = int(bias[0, query].argmax())
        if own >= 0 and best != own:
            return (
                f"query {query} of {n_q} over {n_k} keys stands at key {own}, but its highest bias is at key {best} "
                f"({bias[0, query, best]:.3g})"
            )
    return None


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=alibi.alibi_bias,
    returns=("the bias",),
    properties=[own_place_costs_nothing],
    cases=[
        Case("4 heads, 5 queries and keys", lambda draw: call(4, 5, 5)),
        Case("2 queries after 3 cached keys", lambda draw: call(4, 2, 5)),
        Case("fewer queries than keys", cached, hidden=True),
        Case("one query", lambda draw: call(8, 1, draw.integer(4, 9)), hidden=True),
        Case("more queries than keys", more_queries, hidden=True),
        Case("6 heads", lambda draw: call(6, 3, 4), hidden=True),
        Case("as many heads as queries", lambda draw: call(4, 4, 4), hidden=True),
    ],
)


def _signed_distance(n_q: int, n_k: int) -> torch.Tensor:
    """Give query minus key, queries aligned at the end."""
    return torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)


def _scaled(num_heads: int, distance: torch.Tensor) -> torch.Tensor:
    return -alibi.alibi_slopes(num_heads)[:, None, None] * distance


@exercise.misconception("""
    Your bias rises with the distance, so that far keys are favored. It is a penalty: minus slope times distance.
""")
def sign_missing(num_heads, n_q, n_k):
    return -alibi.alibi_bias(num_heads, n_q, n_k)


@exercise.misconception("""
    A full square is right. With one new query and five cached keys, yours has distance 0 to key 0, the oldest, and so
    prefers it. The new query stands at the end: at position n_k - n_q, counted from the first key. Draw the 1×5 row.
""")
def aligned_at_the_start(num_heads, n_q, n_k):
    return _scaled(num_heads, (torch.arange(n_q)[:, None] - torch.arange(n_k)).abs())


@exercise.misconception("""
    Keys after the query gain in your bias: the distance has kept its sign. Under a causal mask nobody notices, but an
    encoder would look into the future first. Take the absolute value.
""")
def distance_with_sign(num_heads, n_q, n_k):
    return _scaled(num_heads, _signed_distance(n_q, n_k))


@exercise.misconception("""
    Keys after the query cost nothing in your bias. The contract asks for the absolute distance, on both sides; hiding
    the future is the mask's business.
""")
def future_is_free(num_heads, n_q, n_k):
    return _scaled(num_heads, _signed_distance(n_q, n_k).clamp(min=0))


@exercise.misconception("""
    You put -inf on the keys after the query. That is a causal mask; keep it apart from the bias, so that encoders can
    use the same function. Here all numbers are finite.
""")
def future_is_masked(num_heads, n_q, n_k):
    distance = _signed_distance(n_q, n_k)
    return _scaled(num_heads, distance.abs()).masked_fill(distance < 0, -torch.inf)


@exercise.misconception("""
    Your bias depends on the key alone: slope times its position, as in BLOOM's code. Under a causal softmax that gives
    the same weights, since a row may be moved by any constant; but it is another matrix, and without the mask it is
    another model. The contract asks for minus slope times distance.
""")
def row_form(num_heads, n_q, n_k):
    return alibi.alibi_slopes(num_heads)[:, None, None] * torch.arange(n_k).expand(n_q, n_k)


@exercise.misconception("""
    All heads have the same slope. The heads should look differently far: each gets its own slope from `alibi_slopes`.
""")
def one_slope_for_all(num_heads, n_q, n_k):
    return (-alibi.alibi_slopes(num_heads)[0] * _signed_distance(n_q, n_k).abs()).expand(num_heads, n_q, n_k)


@exercise.misconception("""
    Your distances are squared. The published bias falls in a straight line.
""")
def distance_squared(num_heads, n_q, n_k):
    return _scaled(num_heads, _signed_distance(n_q, n_k) ** 2)


@exercise.misconception("""
    Your heads stand on the last axis. The bias is added to scores of shape (heads, query, key), so heads come first.
""")
def heads_last(num_heads, n_q, n_k):
    return alibi.alibi_bias(num_heads, n_q, n_k).movedim(0, -1)


@exercise.misconception("""
    Queries and keys have changed places: your last two axes are (key, query).
""")
def keys_before_queries(num_heads, n_q, n_k):
    return alibi.alibi_bias(num_heads, n_q, n_k).mT


@exercise.misconception("""
    For 6 heads your slopes are those of one geometric series. The published rule fills up from the next power of two;
    use your `alibi_slopes`.
""")
def one_series_for_every_count(num_heads, n_q, n_k):
    slopes = torch.tensor([2.0 ** (-8 * place / num_heads) for place in range(1, num_heads + 1)])
    return -slopes[:, None, None] * _signed_distance(n_q, n_k).abs()


@exercise.misconception("""
    There is an axis for the batch at the front. The contract asks for (heads, query, key); broadcasting serves the
    batch.
""")
def with_a_batch_axis(num_heads, n_q, n_k):
    return alibi.alibi_bias(num_heads, n_q, n_k)[None]


@exercise.alternative
def by_three_loops(num_heads, n_q, n_k):
    slopes = alibi.alibi_slopes(num_heads)
    bias = torch.zeros(num_heads, n_q, n_k)
    for head in range(num_heads):
        for i in range(n_q):
            for j in range(n_k):
                bias[head, i, j] = -slopes[head] * abs(i + n_k - n_q - j)
    return bias


@exercise.alternative
def by_einsum(num_heads, n_q, n_k):
    places = torch.arange(n_k, dtype=torch.float32)
    distance = (places[None, :] - (torch.arange(n_q, dtype=torch.float32) + (n_k - n_q))[:, None]).abs()
    return -torch.einsum("h,qk->hqk", alibi.alibi_slopes(num_heads), distance)


@exercise.alternative
def cut_from_the_largest_square(num_heads, n_q, n_k):
    longest = max(n_q, n_k)
    places = torch.arange(longest)
    square = -(places[:, None] - places).abs() * alibi.alibi_slopes(num_heads).view(-1, 1, 1)
    return square[:, -n_q:, -n_k:]
