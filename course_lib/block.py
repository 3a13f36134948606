"""The transformer block: attention mixes tokens, a feed-forward network transforms each; both add to what came in."""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.feed_forward import FeedForward
from course_lib.multi_head import MultiHeadAttention
from course_lib.residual import post_norm_step, pre_norm_step

Layer = Callable[[Tensor], Tensor]


class TransformerBlock(nn.Module):
    """Let tokens attend to each other, then transform each one; add and normalize around both.

    Post-norm, the default: h = norm_1(x + attention(x)), output = norm_2(h + ffn(h)).
    Pre-norm, `norm_first`: h = x + attention(norm_1(x)), output = h + ffn(norm_2(h)).

    Source: Vaswani et al. 2017, §3.1, arXiv 1706.03762 (post-norm); Xiong et al. 2020, fig. 1, arXiv 2002.04745
    (pre-norm). The papers drop entries out before each addition; here nothing is dropped.
    """

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, norm_first: bool = False, activation: str = "relu"
    ) -> None:
        """Create attention, feed-forward network and two layer norms.

        Raises:
            ValueError: `num_heads` does not divide `d_model`, or `activation` is unknown.
        """
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.ffn = FeedForward(d_model, d_ff, activation)
        self.norm_1 = nn.LayerNorm(d_model)
        self.norm_2 = nn.LayerNorm(d_model)

    def forward(
        self, x: Float[Tensor, "batch sequence d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch sequence d_model"]:
        """Return the new tokens; where `mask` is True a token may not look, as in `MultiHeadAttention`."""
        step = pre_norm_step if self.norm_first else post_norm_step
        x = step(x, lambda tokens: self.attention(tokens, tokens, tokens, mask)[0], self.norm_1)
        return step(x, self.ffn, self.norm_2)


def pre_norm_block(
    x: Float[Tensor, "batch sequence d_model"],
    attention: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]],
    ffn: Layer,
    norm_1: Layer,
    norm_2: Layer,
) -> Float[Tensor, "batch sequence d_model"]:
    """Run a pre-norm block over parts that are given: h = x + attention(norm_1(x)), output = h + ffn(norm_2(h)).

    Args:
        x: the tokens.
        attention: takes queries, keys and values and returns a pair, output and weights.
        ffn: transforms every token.
        norm_1: what attention reads goes through it.
        norm_2: what the feed-forward network reads goes through it.

    Source: Xiong et al. 2020, fig. 1b, arXiv 2002.04745.
    """
    normalized = norm_1(x)
    attended, _ = attention(normalized, normalized, normalized)
    x = x + attended
    return x + ffn(norm_2(x))
