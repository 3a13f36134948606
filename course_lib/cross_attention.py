"""Cross-attention: the queries come from one sequence, the keys and values from another, the memory.

The documents' names map to ours as H → `x`, the decoder's states, and E → `memory`, what the encoder returned.
"""

import math

from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.multi_head import head_width, merge_heads, split_heads
from course_lib.tensor_attention import require_mask, tensor_attention


class CrossAttention(nn.Module):
    """Let every token of `x` look through the memory: queries from x, keys and values from the memory.

    output = Concat(head_1 … head_h) w_o with head_i = attention(x w_q_i, memory w_k_i, memory w_v_i)

    Source: Vaswani et al. 2017, §3.2.3, "encoder-decoder attention", arXiv 1706.03762.
    """

    def __init__(self, d_model: int, num_heads: int) -> None:
        """Create the four projections.

        Raises:
            ValueError: `num_heads` does not divide `d_model`.
        """
        super().__init__()
        self.d_head = head_width(d_model, num_heads)
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        x: Float[Tensor, "batch target d_model"],
        memory: Float[Tensor, "batch source d_model"],
        memory_mask: Bool[Tensor, "batch source"] | None = None,
    ) -> tuple[Float[Tensor, "batch target d_model"], Float[Tensor, "batch heads target source"]]:
        """Return the output and the weights of every head; where `memory_mask` is True nobody looks.

        Raises:
            TypeError: `memory_mask` is not boolean.
            ValueError: `memory_mask` has not one entry for every token of the memory.
        """
        key, value = cache_memory(self, memory)
        return attend(self, x, key, value, memory_mask)


def cache_memory(
    cross_attention: CrossAttention, memory: Float[Tensor, "batch source d_model"]
) -> tuple[Float[Tensor, "batch heads source d_head"], Float[Tensor, "batch heads source d_head"]]:
    """Project the memory to the keys and values of every head: all that a decoder needs of it, at every step.

    The memory does not change while the decoder writes, so this runs once: two matrix products.
    """
    key, value = cross_attention.w_k(memory), cross_attention.w_v(memory)
    return split_heads(key, cross_attention.num_heads), split_heads(value, cross_attention.num_heads)


def attend(
    cross_attention: CrossAttention,
    x: Float[Tensor, "batch target d_model"],
    key: Float[Tensor, "batch heads source d_head"],
    value: Float[Tensor, "batch heads source d_head"],
    memory_mask: Bool[Tensor, "batch source"] | None = None,
) -> tuple[Float[Tensor, "batch target d_model"], Float[Tensor, "batch heads target source"]]:
    """Look through a memory whose keys and values are ready; return the output and the weights of every head.

    Raises:
        TypeError: `memory_mask` is not boolean.
        ValueError: `memory_mask` has not one entry for every token of the memory.
    """
    if memory_mask is not None:
        memory_mask = require_mask(memory_mask, (key.shape[0], key.shape[2]))[:, None, None, :]
    query = split_heads(cross_attention.w_q(x), cross_attention.num_heads)
    output, weights = tensor_attention(query, key, value, memory_mask)
    return cross_attention.w_o(merge_heads(output)), weights


def single_head_cross_attention(
    x: Float[Tensor, "*batch target d_model"],
    memory: Float[Tensor, "*batch source d_memory"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_memory d_k"],
    w_v: Float[Tensor, "d_memory d_v"],
) -> Float[Tensor, "*batch target d_v"]:
    """Look through the memory with one head: softmax(x w_q (memory w_k)ᵀ / √d_k) memory w_v.

    The two sides may differ in length and in width.

    Source: Vaswani et al. 2017, §3.2.1, eq. 1, arXiv 1706.03762, with the sides of §3.2.3.
    """
    query, key, value = x @ w_q, memory @ w_k, memory @ w_v
    return (query @ key.mT / math.sqrt(query.shape[-1])).softmax(dim=-1) @ value
