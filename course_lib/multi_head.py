"""Multi-head attention: project once, cut the features into heads, let each head attend by itself, join them.

The paper's names map to ours as h → `num_heads`, d_k = d_v → `d_head` = d_model / num_heads, W^Q → `w_q` and so
on. Head i owns the features from i·d_head up to (i + 1)·d_head.
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.tensor_attention import tensor_attention

BATCHED_MASK_AXES = 4
MASK_AXES = (2, BATCHED_MASK_AXES)
PROJECTIONS = 4  # of the queries, keys and values, and of the output


def split_heads(
    x: Float[Tensor, "batch sequence d_model"], num_heads: int
) -> Float[Tensor, "batch heads sequence d_head"]:
    """Cut the features of every token into heads: result[b, h, n, j] = x[b, n, h·d_head + j].

    Raises:
        ValueError: `num_heads` does not divide the width of `x`.

    Source: Vaswani et al. 2017, §3.2.2, arXiv 1706.03762. The paper gives every head matrices of its own; side
    by side they are one matrix, whose product is cut here.
    """
    d_head = head_width(x.shape[-1], num_heads)
    return x.unflatten(-1, (num_heads, d_head)).transpose(-3, -2)


def merge_heads(
    x: Float[Tensor, "batch heads sequence d_head"],
) -> Float[Tensor, "batch sequence d_model"]:
    """Lay the heads of every token side by side again: the inverse of `split_heads`.

    Source: the Concat of Vaswani et al. 2017, §3.2.2, arXiv 1706.03762.
    """
    return x.transpose(-3, -2).flatten(-2)


def head_width(d_model: int, num_heads: int) -> int:
    """Give the features of one head: d_head = d_model / num_heads.

    Raises:
        ValueError: `num_heads` is below 1 or does not divide `d_model`.
    """
    if num_heads < 1 or d_model % num_heads:
        raise ValueError(
            f"`num_heads` must divide the width: {d_model} features do not go into {num_heads} equal heads."
        )
    return d_model // num_heads


class MultiHeadAttention(nn.Module):
    """Attend with several heads and mix what they found: Concat(head_1 … head_h) w_o.

    head_i = attention(query w_q_i, key w_k_i, value w_v_i), where w_q_i holds the i-th d_head columns of the
    projection `w_q`.

    Source: Vaswani et al. 2017, §3.2.2, arXiv 1706.03762. The paper's projections have no bias; here, as in the
    framework, they have one unless `bias` is False.
    """

    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        """Create the four projections.

        Raises:
            ValueError: `num_heads` does not divide `d_model`.
        """
        super().__init__()
        self.d_head = head_width(d_model, num_heads)
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_model"],
        value: Float[Tensor, "batch key d_model"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch query d_model"], Float[Tensor, "batch heads query key"]]:
        """Return the output and the weights of every head.

        Args:
            query: the tokens that look.
            key: the tokens that are looked at.
            value: what is fetched from them.
            mask: True hides; `(query, key)`, or `(batch or 1, heads or 1, query, key)`.

        Raises:
            TypeError: `mask` is not boolean.
            ValueError: `mask` has another number of axes. Three are ambiguous: the first could count batch
                rows or heads, and where the two numbers are equal a wrong guess would go unnoticed.
        """
        if isinstance(mask, Tensor) and mask.ndim not in MASK_AXES:
            raise ValueError(
                f"`mask` must have 2 axes (query, key) or 4 (batch or 1, heads or 1, query, key), got shape "
                f"{tuple(mask.shape)}; add the missing axis, as in `mask[:, None]` for one mask per batch row."
            )
        heads = (
            split_heads(projection(x), self.num_heads)
            for projection, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        output, weights = tensor_attention(*heads, mask=mask)
        return self.w_o(merge_heads(output)), weights


def multi_head_attention(
    x: Float[Tensor, "batch sequence d_model"],
    w_q: Float[Tensor, "d_model d_model"],
    w_k: Float[Tensor, "d_model d_model"],
    w_v: Float[Tensor, "d_model d_model"],
    w_o: Float[Tensor, "d_model d_model"],
    num_heads: int,
) -> Float[Tensor, "batch sequence d_model"]:
    """Let every token of `x` attend to all tokens with several heads; no biases, no mask.

    Raises:
        ValueError: `num_heads` does not divide the width.

    Source: Vaswani et al. 2017, §3.2.2, arXiv 1706.03762.
    """
    query, key, value = (split_heads(x @ matrix, num_heads) for matrix in (w_q, w_k, w_v))
    output, _ = tensor_attention(query, key, value)
    return merge_heads(output) @ w_o


def attention_parameter_count(d_model: int, num_heads: int, bias: bool = True) -> int:
    """Count the numbers that a layer learns: 4 d_model² weights, and 4 d_model biases if it has them.

    Heads cut the same matrices into pieces, so their number changes nothing.

    Raises:
        ValueError: `num_heads` does not divide `d_model`, so that there is no such layer.
    """
    head_width(d_model, num_heads)
    return PROJECTIONS * (d_model * d_model + (d_model if bias else 0))
