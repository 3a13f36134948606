"""Performer: random features whose products estimate exp(q · k), so that softmax attention becomes linear."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.efficient.fitting import require_equal_size
from course_lib.efficient.linear import kernel_attention


def performer_features(
    x: Float[Tensor, "*axes d"], projection: Float[Tensor, "d features"]
) -> Float[Tensor, "*axes features"]:
    """Map vectors to positive random features: exp(x W − |x|² / 2) / √m.

    For standard normal columns of W the expected product of φ(q) and φ(k) is exp(q · k). Scale queries and keys by
    d^(−1/4) each to estimate exp(q · k / √d).

    Args:
        x: vectors.
        projection: W, one random direction per column; m is the number of columns.

    Raises:
        ValueError: the widths do not fit.

    Source: Choromanski et al. 2021, lemma 1 and eq. 7, arXiv 2009.14794.
    """
    return _log_features(x, projection).exp() / math.sqrt(projection.shape[-1])


def trigonometric_features(
    x: Float[Tensor, "*axes d"], projection: Float[Tensor, "d features"]
) -> Float[Tensor, "*axes both_features"]:
    """Map vectors to the older, signed random features: exp(|x|² / 2) (cos x W, sin x W) / √m.

    Their products estimate exp(q · k) as well, but may be negative, and a sum of weights may come close to 0.

    Source: Rahimi & Recht 2007; as "trigonometric" in Choromanski et al. 2021, §2.3, arXiv 2009.14794.
    """
    _require_projection(x, projection)
    angles = x @ projection
    length = x.square().sum(-1, keepdim=True)
    return (length / 2).exp() * torch.cat([angles.cos(), angles.sin()], dim=-1) / math.sqrt(projection.shape[-1])


def gaussian_projection(
    d: int, features: int, generator: torch.Generator | None = None, dtype: torch.dtype | None = None
) -> Float[Tensor, "d features"]:
    """Draw independent standard normal directions, one per column."""
    return torch.randn(d, features, generator=generator, dtype=dtype)


def orthogonal_projection(
    d: int, features: int, generator: torch.Generator | None = None, dtype: torch.dtype | None = None
) -> Float[Tensor, "d features"]:
    """Draw standard normal directions that are orthogonal to each other, in groups of d columns.

    Each direction alone is distributed as before, so the estimate stays unbiased; that they spread out makes it
    vary less. The lengths are those of independent normal vectors.

    Source: Choromanski et al. 2021, §2.4 and theorem 2, arXiv 2009.14794.
    """
    groups = []
    for start in range(0, features, d):
        basis, triangle = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=dtype))
        # QR fixes signs in its own way; with a positive diagonal the basis is uniform among all of them.
        basis = basis * triangle.diagonal().sign()
        groups.append(basis[:, : min(d, features - start)])
    lengths = torch.randn(d, features, generator=generator, dtype=dtype).norm(dim=0)
    return torch.cat(groups, dim=1) * lengths


def performer_attention(
    query: Float[Tensor, "*axes query d_k"],
    key: Float[Tensor, "*axes key d_k"],
    value: Float[Tensor, "*axes key d_v"],
    projection: Float[Tensor, "d_k features"],
    causal: bool = False,
) -> Float[Tensor, "*axes query d_v"]:
    """Estimate softmax(query keyᵀ / √d_k) value from positive random features, in linear time and memory.

    Before exp, the largest exponent is subtracted: one per query, and one for all keys of a sequence together.
    Both cancel in the quotient; one per key would not, as it would change how the keys compare.

    Raises:
        ValueError: widths or numbers of keys do not fit.

    Source: Choromanski et al. 2021, §2.2-2.3 and Algorithm 1, arXiv 2009.14794. The paper's code adds a small
    number to each feature; here nothing is added.
    """
    require_equal_size("query", query, "key", key, axis=-1)
    precise = torch.promote_types(query.dtype, torch.float32)
    shrink = query.shape[-1] ** -0.25
    directions = projection.to(precise)
    queries = _log_features(query.to(precise) * shrink, directions)
    keys = _log_features(key.to(precise) * shrink, directions)
    queries = (queries - queries.amax(-1, keepdim=True)).exp()
    keys = (keys - keys.amax((-2, -1), keepdim=True)).exp()
    return kernel_attention(queries, keys, value, causal)


def _log_features(x: Tensor, projection: Tensor) -> Tensor:
    _require_projection(x, projection)
    return x @ projection - x.square().sum(-1, keepdim=True) / 2


def _require_projection(x: Tensor, projection: Tensor) -> None:
    if x.shape[-1] != projection.shape[0]:
        raise ValueError(
            f"`projection` {tuple(projection.shape)} must have as many rows as `x` {tuple(x.shape)} has features."
        )
