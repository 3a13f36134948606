"""The feed-forward network: two layers with a nonlinearity between them, applied to every token by itself.

The first half works on NumPy arrays, the second on PyTorch modules. The paper's names map to ours as W_1 → `w_1`,
d_ff → `d_ff`; a matrix acts from the right on tokens that are rows, `x @ w_1`, so `w_1` is (d_model, d_ff).
"""

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from jaxtyping import Real as RealArray
from torch import Tensor, nn

from course_lib.arguments import as_floating, require_equal_axis, working

Array = np.ndarray
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
TANH_CUBIC = 0.044715  # fitted, in the source of `gelu_tanh`
GATED_MATRICES, PLAIN_MATRICES = 3, 2
GLOROT = 6  # a uniform number in [-b, b] has variance b²/3, and 2 / (d_in + d_out) is wanted


def relu(x: RealArray[Array, "..."]) -> Float[Array, "..."]:
    """Keep what is positive: max(0, x).

    Source: Nair and Hinton 2010, "Rectified Linear Units Improve Restricted Boltzmann Machines".
    """
    return np.asarray(np.maximum(as_floating("x", x, least_axes=0), 0))


def gelu(x: RealArray[Array, "..."]) -> Float[Array, "..."]:
    """Weight each number by the share of a standard normal distribution below it: x Φ(x), Φ(x) = (1 + erf(x/√2)) / 2.

    Source: Hendrycks and Gimpel 2016, §2, arXiv 1606.08415.
    """
    (x,), dtype = working(as_floating("x", x, least_axes=0))
    # NumPy has no error function. The complementary one keeps its digits where Φ is nearly 0.
    share = torch.special.erfc(torch.from_numpy(np.ascontiguousarray(-x / math.sqrt(2)))).numpy() / 2
    return np.asarray(x * share.reshape(x.shape), dtype=dtype)


def gelu_tanh(x: RealArray[Array, "..."]) -> Float[Array, "..."]:
    """Approximate `gelu` without the error function: x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2.

    Source: Hendrycks and Gimpel 2016, §2, arXiv 1606.08415.
    """
    (x,), dtype = working(as_floating("x", x, least_axes=0))
    inner = math.sqrt(2 / math.pi) * (x + TANH_CUBIC * x**3)
    return np.asarray(x * (1 + np.tanh(inner)) / 2, dtype=dtype)


def position_wise_ffn(
    x: RealArray[Array, "*batch d_model"],
    w_1: RealArray[Array, "d_model d_ff"],
    b_1: RealArray[Array, " d_ff"],
    w_2: RealArray[Array, "d_ff d_model"],
    b_2: RealArray[Array, " d_model"],
    activation: Callable[[Array], Array],
) -> Float[Array, "*batch d_model"]:
    """Transform every token by the same two layers: activation(x w_1 + b_1) w_2 + b_2.

    Raises:
        ValueError: widths do not fit.

    Source: Vaswani et al. 2017, §3.3, eq. 2, arXiv 1706.03762, where the activation is ReLU.
    """
    names = ("x", "w_1", "b_1", "w_2", "b_2")
    given = zip(names, (x, w_1, b_1, w_2, b_2), (1, 2, 1, 2, 1), strict=True)
    arrays, dtype = working(*(as_floating(name, array, axes) for name, array, axes in given))
    x, w_1, b_1, w_2, b_2 = arrays
    require_equal_axis("x", x, -1, "w_1", w_1, 0)
    require_equal_axis("b_1", b_1, 0, "w_1", w_1, 1)
    require_equal_axis("w_2", w_2, 0, "w_1", w_1, 1)
    require_equal_axis("b_2", b_2, 0, "w_2", w_2, 1)
    return (activation(x @ w_1 + b_1) @ w_2 + b_2).astype(dtype, copy=False)


def xavier_uniform_bound(d_in: int, d_out: int, gain: float = 1.0) -> float:
    """Give b such that weights drawn uniformly from [-b, b] have variance gain² · 2 / (d_in + d_out).

    b = gain · √(6 / (d_in + d_out))

    Raises:
        ValueError: a size is below 1.

    Source: Glorot and Bengio 2010, eq. 16, "Understanding the difficulty of training deep feedforward neural
    networks". The paper has no gain; here, as in the framework, it makes up for what an activation loses.
    """
    _require_sizes(d_in=d_in, d_out=d_out)
    return gain * math.sqrt(GLOROT / (d_in + d_out))


class FeedForward(nn.Module):
    """Transform every token by the same two layers: linear_2(activation(linear_1(x))).

    Source: Vaswani et al. 2017, §3.3, eq. 2, arXiv 1706.03762. The paper uses ReLU; BERT and GPT use GELU, the
    default here.
    """

    def __init__(self, d_model: int, d_ff: int, activation: str = "gelu") -> None:
        """Create the two layers.

        Raises:
            ValueError: `activation` is neither "relu" nor "gelu".
        """
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"`activation` must be one of {', '.join(map(repr, ACTIVATIONS))}, got {activation!r}.")
        self.activation = activation
        self.linear_1 = nn.Linear(d_model, d_ff)
        self.linear_2 = nn.Linear(d_ff, d_model)

    def hidden(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_ff"]:
        """Return what the hidden units say, after the activation."""
        return ACTIVATIONS[self.activation](self.linear_1(x))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Return the transformed tokens."""
        return self.linear_2(self.hidden(x))


def swiglu(
    x: Float[Tensor, "*batch d_model"],
    w_gate: Float[Tensor, "d_model d_ff"],
    w_up: Float[Tensor, "d_model d_ff"],
    w_down: Float[Tensor, "d_ff d_model"],
) -> Float[Tensor, "*batch d_model"]:
    """Let one projection open and close the other: (silu(x w_gate) ⊙ x w_up) w_down, with silu(z) = z σ(z).

    Source: Shazeer 2020, eq. 6, arXiv 2002.05202, which writes W, V and W_2 for `w_gate`, `w_up` and `w_down` and
    has no biases either.
    """
    return (F.silu(x @ w_gate) * (x @ w_up)) @ w_down


class GatedFeedForward(nn.Module):
    """Hold the three matrices of `swiglu` as a module that fits where a `FeedForward` does."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Return the transformed tokens."""
        return swiglu(x, self.gate.weight.T, self.up.weight.T, self.down.weight.T)


def matched_hidden_size(d_model: int, d_ff: int, multiple_of: int = 1) -> int:
    """Give a gated network as many weights as a plain one: the least h with 3 d_model h ≥ 2 d_model d_ff.

    Then round up to a multiple of `multiple_of`. Biases are not counted.

    Raises:
        ValueError: a size is below 1.

    Source: Shazeer 2020, §3, arXiv 2002.05202: two thirds of d_ff. Touvron et al. 2023, §2.2, arXiv 2302.13971;
    their code rounds up to a multiple of 256.
    """
    _require_sizes(d_model=d_model, d_ff=d_ff, multiple_of=multiple_of)
    per_unit = GATED_MATRICES * d_model  # weights that one more hidden unit brings
    least = -(-PLAIN_MATRICES * d_model * d_ff // per_unit)
    return -(-least // multiple_of) * multiple_of


def feed_forward_cost(sequence: int, d_model: int, d_ff: int) -> tuple[int, int]:
    """Count the parameters of a two-layer network and the FLOPs of one pass over a sequence.

    parameters = 2 d_model d_ff + d_ff + d_model, FLOPs = 4 sequence d_model d_ff: a multiply-add counts 2, and
    biases and the activation, linear in the widths, are left out.

    Raises:
        ValueError: a size is below 1.

    Source: Kaplan et al. 2020, §2.1, table 1, arXiv 2001.08361, whose parameters leave out biases.
    """
    _require_sizes(sequence=sequence, d_model=d_model, d_ff=d_ff)
    weights = PLAIN_MATRICES * d_model * d_ff
    return weights + d_ff + d_model, 2 * sequence * weights


def _require_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"`{name}` must be at least 1, got {size}.")
