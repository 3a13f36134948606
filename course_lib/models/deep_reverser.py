"""A deep stack that reverses digits, with its norms and skip paths where you want them, or without them."""

from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data import DIGITS
from course_lib.multi_head import MultiHeadAttention
from course_lib.residual import Layer, post_norm_step, pre_norm_step

NewNorm = Callable[[int], nn.Module]
HIDDEN_PER_FEATURE = 2  # width of the feed-forward part; the paper has 4, which only costs time here


def step_without_skip(x: Float[Tensor, "..."], sublayer: Layer, norm: Layer) -> Float[Tensor, "..."]:
    """Apply the sublayer to the normalized input and add nothing."""
    return sublayer(norm(x))


def step_without_norm(x: Float[Tensor, "..."], sublayer: Layer, norm: Layer) -> Float[Tensor, "..."]:
    """Add the sublayer's output and normalize nothing."""
    return x + sublayer(x)


def step_with_neither(x: Float[Tensor, "..."], sublayer: Layer, norm: Layer) -> Float[Tensor, "..."]:
    """Apply the sublayer alone, as in a plain deep network."""
    return sublayer(x)


STEPS: dict[str, Callable[[Tensor, Layer, Layer], Tensor]] = {
    "pre-norm": pre_norm_step,
    "post-norm": post_norm_step,
    "no skip": step_without_skip,
    "no norm": step_without_norm,
    "neither": step_with_neither,
}


class Block(nn.Module):
    """Attend, then bend each token: two sublayers, each in one step of the given kind."""

    def __init__(self, d_model: int, num_heads: int, kind: str, norm: NewNorm) -> None:
        super().__init__()
        self.step = STEPS[kind]
        self.attention = MultiHeadAttention(d_model, num_heads)
        hidden = HIDDEN_PER_FEATURE * d_model
        self.ffn = nn.Sequential(nn.Linear(d_model, hidden), nn.ReLU(), nn.Linear(hidden, d_model))
        self.norm_1, self.norm_2 = norm(d_model), norm(d_model)

    def forward(self, x: Float[Tensor, "batch sequence d_model"]) -> Float[Tensor, "batch sequence d_model"]:
        """Apply both sublayers."""
        x = self.step(x, lambda inner: self.attention(inner, inner, inner)[0], self.norm_1)
        return self.step(x, self.ffn, self.norm_2)


class DeepReverser(nn.Module):
    """Predict each digit of a reversed string from a stack of blocks of one kind.

    A pre-norm stack has one more norm at its end, as its stream was never normalized; the others have none.

    Source: Vaswani et al. 2017, §3.1, arXiv 1706.03762, for post-norm; Xiong et al. 2020, fig. 1b, arXiv
    2002.04745, for pre-norm. Positions are learned.
    """

    def __init__(
        self,
        length: int,
        kind: str,
        num_layers: int,
        d_model: int = 32,
        num_heads: int = 2,
        norm: NewNorm = nn.LayerNorm,
    ) -> None:
        """Build a stack.

        Args:
            length: digits in a string.
            kind: where the norms stand, one of `STEPS`.
            num_layers: blocks.
            d_model: features of a token.
            num_heads: heads of every attention.
            norm: makes a norm of a given width.

        Raises:
            ValueError: `kind` is none of those in `STEPS`.
        """
        super().__init__()
        if kind not in STEPS:
            raise ValueError(f"`kind` must be one of {', '.join(map(repr, STEPS))}, got {kind!r}.")
        self.digits, self.positions = nn.Embedding(DIGITS, d_model), nn.Embedding(length, d_model)
        self.blocks = nn.ModuleList(Block(d_model, num_heads, kind, norm) for _ in range(num_layers))
        self.final_norm = norm(d_model) if kind == "pre-norm" else nn.Identity()
        self.head = nn.Linear(d_model, DIGITS)

    def embed(self, tokens: Int[Tensor, "batch sequence"]) -> Float[Tensor, "batch sequence d_model"]:
        """Give what enters the first block."""
        return self.digits(tokens) + self.positions.weight[: tokens.shape[-1]]

    def forward(self, tokens: Int[Tensor, "batch sequence"]) -> Float[Tensor, "batch sequence digits"]:
        """Return the logits of every place."""
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.final_norm(x))
