"""Linear attention: replace exp(q · k) by φ(q) · φ(k), and the product of keys and values can be taken first.

softmax(q kᵀ) v needs the table of all pairs before it meets the values. φ(q) (φ(k)ᵀ v) does not: φ(k)ᵀ v is a small
matrix that sums up all keys, and for causal attention a running sum of such matrices.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from course_lib.efficient.fitting import require_equal_size

LONGEST_CHUNK = 64  # tokens: inside a chunk the small table of its own pairs is cheaper than one sum per token


def elu_features(x: Float[Tensor, "*axes features"]) -> Float[Tensor, "*axes features"]:
    """Map every number to a positive one: elu(x) + 1, that is x + 1 above 0 and exp(x) below.

    Written as exp(x) − 1 + 1, the lower branch would round to 0 from about x = −6.2 on in bfloat16 and from about −8.3
    on in float16; as exp(x) it does not.

    Source: Katharopoulos et al. 2020, eq. 7, arXiv 2006.16236.
    """
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def linear_attention(
    query: Float[Tensor, "*axes query d_k"],
    key: Float[Tensor, "*axes key d_k"],
    value: Float[Tensor, "*axes key d_v"],
    causal: bool = False,
) -> Float[Tensor, "*axes query d_v"]:
    """Average the values with weights φ(q_i) · φ(k_j) / Σ_j φ(q_i) · φ(k_j), φ = elu + 1.

    Time and memory grow in proportion to the sequence, and no table of all pairs is made. With `causal` a query
    sees the keys up to its own place; with fewer or more queries than keys the last query sees every key.

    Raises:
        ValueError: widths or numbers of keys do not fit.

    Source: Katharopoulos et al. 2020, §3.2-3.3, eq. 5-9, arXiv 2006.16236.
    """
    require_equal_size("query", query, "key", key, axis=-1)
    precise = torch.promote_types(query.dtype, torch.float32)
    return kernel_attention(elu_features(query.to(precise)), elu_features(key.to(precise)), value, causal)


def kernel_attention(
    query_features: Float[Tensor, "*axes query features"],
    key_features: Float[Tensor, "*axes key features"],
    value: Float[Tensor, "*axes key d_v"],
    causal: bool = False,
) -> Float[Tensor, "*axes query d_v"]:
    """Average the values with weights in proportion to the products of features, which must not be negative.

    A query whose products are all 0, or that sees no key, gets output 0. The result has the values' dtype.

    Raises:
        ValueError: widths or numbers of keys do not fit.
    """
    require_equal_size("query_features", query_features, "key_features", key_features, axis=-1)
    require_equal_size("value", value, "key_features", key_features, axis=-2)
    # One more column of ones: what it averages to is the sum of the weights.
    counted = F.pad(value.to(key_features.dtype), (0, 1), value=1)
    if causal:
        sums = _causal_sums(query_features, key_features, counted)
    else:
        sums = query_features @ (key_features.mT @ counted)
    weighted, total = sums[..., :-1], sums[..., -1:]
    return (weighted / total.masked_fill(total == 0, 1)).to(value.dtype)


def _causal_sums(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Sum the values of the keys up to each query's place, weighted by products of features.

    The sequence is cut into chunks. Keys of earlier chunks arrive as one matrix, the running sum of keyᵀ value;
    keys of the query's own chunk as a small masked table.
    """
    n_q, n_k = query.shape[-2], key.shape[-2]
    length = max(n_q, n_k)
    chunk = max(1, min(LONGEST_CHUNK, math.isqrt(length)))
    rest = -length % chunk
    # Features of 0 weigh nothing: in front they align the last query with the last key, behind they fill a chunk.
    query = _chunked(F.pad(query, (0, 0, length - n_q, rest)), chunk)
    key = _chunked(F.pad(key, (0, 0, length - n_k, rest)), chunk)
    value = _chunked(F.pad(value, (0, 0, length - n_k, rest)), chunk)
    states = key.mT @ value
    before = F.pad(states.cumsum(-3)[..., :-1, :, :], (0, 0, 0, 0, 1, 0))
    sums = query @ before + (query @ key.mT).tril() @ value
    return sums.flatten(-3, -2)[..., length - n_q : length, :]


def _chunked(x: Tensor, chunk: int) -> Tensor:
    return x.unflatten(-2, (x.shape[-2] // chunk, chunk))


class LinearState:
    """Decode step by step with linear attention: a state of fixed size in place of a cache that grows."""

    def __init__(self) -> None:
        self.sums: Tensor | None = None  # Σ φ(k) vᵀ, with Σ φ(k) as its last column
        self.length = 0

    def append(
        self,
        query: Float[Tensor, "*axes token d_k"],
        key: Float[Tensor, "*axes token d_k"],
        value: Float[Tensor, "*axes token d_v"],
    ) -> Float[Tensor, "*axes token d_v"]:
        """Take the next tokens in and return their outputs, the same as in one causal pass over all tokens.

        Source: Katharopoulos et al. 2020, §3.4, eq. 16-20, arXiv 2006.16236.
        """
        precise = torch.promote_types(query.dtype, torch.float32)
        queries, keys = elu_features(query.to(precise)), elu_features(key.to(precise))
        counted = F.pad(value.to(precise), (0, 1), value=1)
        sums = _causal_sums(queries, keys, counted)
        if self.sums is not None:
            sums = sums + queries @ self.sums
        new = keys.mT @ counted
        self.sums = new if self.sums is None else self.sums + new
        self.length += key.shape[-2]
        total = sums[..., -1:]
        return (sums[..., :-1] / total.masked_fill(total == 0, 1)).to(value.dtype)
