"""ALiBi: no position vectors at all; every head subtracts from each score in proportion to the distance."""

import torch
from jaxtyping import Float
from torch import Tensor

REACH = 8  # the last head's slope is 2^-8: Press et al. 2022, §3


def alibi_slopes(num_heads: int) -> Float[Tensor, "heads"]:
    """Give every head its slope: 2^(-8/n), 2^(-16/n), …, 2^(-8) for n heads, if n is a power of two.

    Otherwise take the slopes of the largest power of two below n, then fill up with every second slope, from the
    first on, of the next power of two.

    Raises:
        ValueError: `num_heads` is below 1.

    Source: Press et al. 2022, §3, arXiv 2108.12409. The rule for other counts is in the code that the authors
    published (`get_slopes`), not in the text.
    """
    if num_heads < 1:
        raise ValueError(f"`num_heads` must be at least 1, got {num_heads}.")
    power = 2 ** (num_heads.bit_length() - 1)
    slopes = _geometric(power) + _geometric(2 * power)[0::2][: num_heads - power]
    return torch.tensor(slopes)


def alibi_bias(num_heads: int, n_q: int, n_k: int) -> Float[Tensor, "heads query key"]:
    """Give what is added to the scores: bias[h, i, j] = -slope_h · |i - j|.

    Queries are aligned with the last keys, so that with a cache of earlier keys the last query has distance 0 to
    the last key. Keys after the query are penalized like keys before it; hiding them is the mask's business.

    Raises:
        ValueError: a count is below 1.

    Source: Press et al. 2022, §3, arXiv 2108.12409. The paper is causal and writes the distance without a sign;
    here it is the absolute value, so that the bias serves encoders too.
    """
    for name, count in (("n_q", n_q), ("n_k", n_k)):
        if count < 1:
            raise ValueError(f"`{name}` must be at least 1, got {count}.")
    query_places = torch.arange(n_k - n_q, n_k)
    distance = (query_places[:, None] - torch.arange(n_k)).abs()
    return alibi_slopes(num_heads)[:, None, None] * -distance  # whole numbers have no -0


def _geometric(count: int) -> list[float]:
    """Divide 2^-8 into `count` equal factors, and give their running product."""
    return [2.0 ** (-REACH * place / count) for place in range(1, count + 1)]
