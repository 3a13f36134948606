"""Check `linear_attention`: sums of features in place of a table of pairs."""

import torch
from torch.nn.functional import elu

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.efficient_attention import CHAPTER
from autograder.exercises.efficient_attention.budget import no_square
from autograder.program import Program, Run, call
from course_lib.efficient import linear
from course_lib.efficient.flash import flash_attention
from course_lib.efficient.linear import kernel_attention
from course_lib.masks import causal_mask

# A table of all pairs has at least 32 keys in a row. A sum per token, (d_k, d_v), stays smaller than that, and so do
# the features of all heads together, so that a copy of the keys is no table in any order of its axes.
D_K, D_V = 3, 4
LENGTHS = (32, 37)


def tensors(draw: Draw, n_q: int, n_k: int, leading: tuple[int, ...] | None = None) -> list:
    """Draw queries, keys and values for a batch of heads."""
    leading = tuple(draw.sizes(2, low=2, high=3)) if leading is None else leading
    shapes = ((n_q, D_K), (n_k, D_K), (n_k, D_V))
    return [draw.normal(*leading, *shape, mean=0.3 if shape[-1] == D_V else 0.0) for shape in shapes]


def whole(draw: Draw, causal: bool | None = None, leading: tuple[int, ...] | None = None) -> Program:
    """Give one sequence long enough that a table of its pairs would show."""
    length = draw.integer(*LENGTHS)
    given = tensors(draw, length, length, leading)
    return (call(*given) if causal is None else call(*given, causal=causal)).counting()


def other_lengths(draw: Draw, n_q: int, n_k: int, causal: bool) -> Program:
    """Give more keys than queries, or fewer."""
    return call(*tensors(draw, n_q, n_k), causal)


def averages(program: Program, found: Run) -> str | None:
    """Say when an output lies outside the values that it should average."""
    value, out = program.steps[0].args[2], found.outcomes[0]
    low, high = value.amin(-2, keepdim=True), value.amax(-2, keepdim=True)
    slack = 1e-3 * (high - low)
    if ((out >= low - slack) & (out <= high + slack)).all():
        return None
    return "an output lies outside the range of the values, so it is not an average: do your weights sum to 1, all ≥ 0?"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=linear.linear_attention,
    returns=("the output",),
    properties=[averages],
    forbids=["torch.nn.functional.scaled_dot_product_attention"],
    cases=[
        Case("every query sees every key", whole, limit=no_square),
        Case("causal", lambda draw: whole(draw, causal=True), limit=no_square),
        Case("without a batch", lambda draw: whole(draw, leading=()), hidden=True, limit=no_square),
        Case("causal, one head", lambda draw: whole(draw, True, leading=(3, 1)), hidden=True, limit=no_square),
        Case("float64", whole, hidden=True, dtype="float64", limit=no_square),
        Case("causal in float64", lambda draw: whole(draw, True), hidden=True, dtype="float64", limit=no_square),
        Case("more keys than queries", lambda draw: other_lengths(draw, 5, 9, causal=False), hidden=True),
        Case("causal over a cache", lambda draw: other_lengths(draw, 4, 11, causal=True), hidden=True),
        Case("causal, one query", lambda draw: other_lengths(draw, 1, 7, causal=True), hidden=True),
    ],
)


def _phi(x):
    return elu(x) + 1


def _sums(query, key, value, causal):
    """Give the weighted sums of values, and the sums of weights, from features."""
    counted = torch.cat([value, torch.ones_like(value[..., :1])], -1)
    if not causal:
        both = query @ (key.mT @ counted)
    else:
        states = (key.unsqueeze(-1) * counted.unsqueeze(-2)).cumsum(-3)
        states = states[..., key.shape[-2] - query.shape[-2] :, :, :]
        both = (query.unsqueeze(-2) @ states).squeeze(-2)
    return both[..., :-1], both[..., -1:]


@exercise.misconception("""
    The values are right, but you build the table of all pairs and divide its rows. Then nothing is linear any more.
    Matrix products may be grouped either way: (φ(q) φ(k)ᵀ) v = φ(q) (φ(k)ᵀ v). Which grouping never has n × n numbers?
""")
def table_of_all_pairs(query, key, value, causal=False):
    table = _phi(query) @ _phi(key).mT
    if causal:
        table = table.masked_fill(causal_mask(query.shape[-2], key.shape[-2]), 0)
    return table / table.sum(-1, keepdim=True) @ value


@exercise.misconception("""
    Your weights do not sum to 1: the division by φ(q) · Σ φ(k) is missing. Let all values be 1: the output should be 1,
    and yours grows with the number of keys.
""")
def never_divided(query, key, value, causal=False):
    return _sums(_phi(query), _phi(key), value, causal)[0]


@exercise.misconception("""
    You multiply by the normalizer φ(q) · Σ φ(k) where the weighted sum should be divided by it. Let all values be 1
    and see what comes out.
""")
def normalizer_multiplied(query, key, value, causal=False):
    weighted, total = _sums(_phi(query), _phi(key), value, causal)
    return weighted * total


@exercise.misconception("""
    You divide by the number of keys seen. That is the right divisor for equal weights only; here it is the sum of the
    weights, φ(q) · Σ φ(k).
""")
def divided_by_the_number_of_keys(query, key, value, causal=False):
    weighted, _ = _sums(_phi(query), _phi(key), value, causal)
    if not causal:
        return weighted / key.shape[-2]
    n_q, n_k = query.shape[-2], key.shape[-2]
    return weighted / (torch.arange(n_q) + 1 + n_k - n_q).unsqueeze(-1)


@exercise.misconception("""
    There is no feature map: your weights are q · k as they are. Some of them are negative, and their sum may be close
    to 0. φ = elu + 1 makes every feature positive.
""")
def no_feature_map(query, key, value, causal=False):
    weighted, total = _sums(query, key, value, causal)
    return weighted / total


@exercise.misconception("""
    Only the queries pass through φ, so weights can still be negative. Both sides need it: the weight of a pair is
    φ(q) · φ(k).
""")
def keys_without_feature_map(query, key, value, causal=False):
    weighted, total = _sums(_phi(query), key, value, causal)
    return weighted / total


@exercise.misconception("""
    Your feature map is elu without the + 1, which reaches down to −1. With the 1 every feature is positive, and so is
    every weight.
""")
def elu_without_one(query, key, value, causal=False):
    weighted, total = _sums(elu(query), elu(key), value, causal)
    return weighted / total


@exercise.misconception("""
    Your feature map is relu + 1, flat below 0. Here it is elu + 1, which falls to 0 as exp(x) there, so that two
    negative inputs still differ.
""")
def relu_and_one(query, key, value, causal=False):
    weighted, total = _sums(query.relu() + 1, key.relu() + 1, value, causal)
    return weighted / total


@exercise.misconception("""
    Your feature map is exp. It is positive as well, and used in other papers; here φ is elu + 1, as in the paper on
    linear attention, which grows slowly and does not overflow.
""")
def exponential_features(query, key, value, causal=False):
    weighted, total = _sums(query.exp(), key.exp(), value, causal)
    return weighted / total


@exercise.misconception("""
    Your features are softmaxes: over the features of each query, and over the tokens of the keys. That is a paper of
    its own, "efficient attention". Here both go through elu + 1, and one division at the end makes weights sum to 1.
""")
def softmaxes_as_features(query, key, value, causal=False):
    query, key = query.softmax(-1), key.softmax(-2)
    return _sums(query, key, value, causal)[0]


@exercise.misconception("""
    You divide the queries by √d_k first. That belongs to scores on their way into a softmax; there is none here, and
    φ is applied to the queries as they come.
""")
def scaled_first(query, key, value, causal=False):
    weighted, total = _sums(_phi(query / query.shape[-1] ** 0.5), _phi(key), value, causal)
    return weighted / total


@exercise.misconception("""
    With `causal=True` your result is the same as without. Change the last key and value: only the last output may
    move.
""")
def causal_ignored(query, key, value, causal=False):
    return linear.linear_attention(query, key, value)


@exercise.misconception("""
    Your causal sums of values run along, but they are divided by the sum over **all** keys. Let all values be 1: early
    outputs are too small. The normalizer is a running sum too.
""")
def divided_by_the_whole_sum(query, key, value, causal=False):
    features = _phi(query), _phi(key)
    return _sums(*features, value, causal)[0] / _sums(*features, value, False)[1]


@exercise.misconception("""
    Your running sum is read before the token's own key is added, so a token does not see itself, and the first one
    sees nothing. Add first, then read.
""")
def token_itself_left_out(query, key, value, causal=False):
    if not causal:
        return linear.linear_attention(query, key, value)
    n_q, n_k = query.shape[-2], key.shape[-2]
    counted = torch.cat([value, torch.ones_like(value[..., :1])], -1)
    states = (_phi(key).unsqueeze(-1) * counted.unsqueeze(-2)).cumsum(-3)
    states = torch.cat([torch.zeros_like(states[..., :1, :, :]), states[..., :-1, :, :]], -3)[..., n_k - n_q :, :, :]
    both = (_phi(query).unsqueeze(-2) @ states).squeeze(-2)
    return both[..., :-1] / both[..., -1:]


@exercise.misconception("""
    Your running sums run along the axis in front of the tokens, the heads: each head adds up the heads before it. Count
    from the end: with φ(k) vᵀ of shape (..., n, d_k, d_v), which axis is time?
""")
def summed_along_the_heads(query, key, value, causal=False):
    if not causal or query.dim() < 3:
        return linear.linear_attention(query, key, value, causal)
    counted = torch.cat([value, torch.ones_like(value[..., :1])], -1)
    states = (_phi(key).unsqueeze(-1) * counted.unsqueeze(-2)).cumsum(-4)[..., key.shape[-2] - query.shape[-2] :, :, :]
    both = (_phi(query).unsqueeze(-2) @ states).squeeze(-2)
    return both[..., :-1] / both[..., -1:]


@exercise.misconception("""
    With as many queries as keys your causal form is right. Otherwise query i reads the running sum after key i, but the
    last query stands beside the last key: it must see all of them.
""")
def counted_from_the_first_key(query, key, value, causal=False):
    n_q = query.shape[-2]
    seen = n_q if causal else key.shape[-2]
    return linear.linear_attention(query, key[..., :seen, :], value[..., :seen, :], causal)


@exercise.misconception("""
    Your result is softmax attention, cut into small pieces or not. Linear attention does not calculate the same
    weights faster; it uses other weights, φ(q) · φ(k), whose sums can be taken in advance.
""")
def softmax_in_pieces(query, key, value, causal=False):
    return flash_attention(query, key, value, 8, causal)


@exercise.alternative
def sums_per_token(query, key, value, causal=False):
    weighted, total = _sums(_phi(query), _phi(key), value, causal)
    return weighted / total


@exercise.alternative
def recurrent_state(query, key, value, causal=False):
    query, key = _phi(query), _phi(key)
    sums = torch.einsum("...kd,...kv->...dv", key, value)
    total = key.sum(-2)
    if not causal:
        return torch.einsum("...qd,...dv->...qv", query, sums) / (query @ total.unsqueeze(-1))
    sums, total, outputs = torch.zeros_like(sums), torch.zeros_like(total), []
    before = key.shape[-2] - query.shape[-2]
    for place in range(key.shape[-2]):
        sums = sums + key[..., place, :, None] * value[..., place, None, :]
        total = total + key[..., place, :]
        if place >= before:
            now = query[..., place - before, :]
            weighted = (now.unsqueeze(-2) @ sums).squeeze(-2)
            outputs.append(weighted / (now * total).sum(-1, keepdim=True))
    return torch.stack(outputs, dim=-2)


@exercise.alternative
def features_by_where(query, key, value, causal=False):
    def features(x):
        return torch.where(x > 0, x + 1, x.clamp(max=0).exp())

    return kernel_attention(features(query), features(key), value, causal)


@exercise.alternative
def by_einsum(query, key, value, causal=False):
    query, key = _phi(query), _phi(key)
    if causal:
        before = key.shape[-2] - query.shape[-2]
        sums = torch.einsum("...kd,...kv->...kdv", key, value).cumsum(-3)[..., before:, :, :]
        total = torch.einsum("...qd,...qd->...q", query, key.cumsum(-2)[..., before:, :])
        return torch.einsum("...qd,...qdv->...qv", query, sums) / total.unsqueeze(-1)
    weighted = torch.einsum("...qd,...dv->...qv", query, torch.einsum("...kd,...kv->...dv", key, value))
    return weighted / torch.einsum("...qd,...d->...q", query, key.sum(-2)).unsqueeze(-1)
