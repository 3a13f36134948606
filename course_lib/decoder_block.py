"""The decoder's block: look back at what is written, look through the memory, then transform every token."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.cross_attention import CrossAttention, attend, cache_memory
from course_lib.feed_forward import FeedForward
from course_lib.masks import causal_mask
from course_lib.multi_head import MultiHeadAttention


class DecoderBlock(nn.Module):
    """Add and normalize around three sublayers, in this order.

    a = norm_1(x + self_attention(x)), where the future is hidden
    b = norm_2(a + cross_attention(a, memory))
    output = norm_3(b + ffn(b))

    Source: Vaswani et al. 2017, §3.1 and fig. 1, arXiv 1706.03762. The paper drops entries out before each
    addition; here nothing is dropped.
    """

    def __init__(self, d_model: int, num_heads: int, d_ff: int) -> None:
        """Create two attentions, a feed-forward network with ReLU and three layer norms.

        Raises:
            ValueError: `num_heads` does not divide `d_model`.
        """
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = CrossAttention(d_model, num_heads)
        self.ffn = FeedForward(d_model, d_ff, "relu")
        self.norm_1 = nn.LayerNorm(d_model)
        self.norm_2 = nn.LayerNorm(d_model)
        self.norm_3 = nn.LayerNorm(d_model)

    def forward(
        self,
        x: Float[Tensor, "batch target d_model"],
        memory: Float[Tensor, "batch source d_model"],
        memory_mask: Bool[Tensor, "batch source"] | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        """Return the new tokens; where `memory_mask` is True nobody looks."""
        key, value = cache_memory(self.cross_attention, memory)
        return self.over_cache(x, key, value, memory_mask)[0]

    def over_cache(
        self,
        x: Float[Tensor, "batch target d_model"],
        key: Float[Tensor, "batch heads source d_head"],
        value: Float[Tensor, "batch heads source d_head"],
        memory_mask: Bool[Tensor, "batch source"] | None = None,
    ) -> tuple[Float[Tensor, "batch target d_model"], Float[Tensor, "batch heads target source"]]:
        """Return the new tokens and the weights over a memory whose keys and values are ready."""
        hidden = causal_mask(x.shape[1]).to(x.device)
        x = self.norm_1(x + self.self_attention(x, x, x, hidden)[0])
        found, weights = attend(self.cross_attention, x, key, value, memory_mask)
        x = self.norm_2(x + found)
        return self.norm_3(x + self.ffn(x)), weights
