"""T5: an encoder reads a text, a decoder writes another; where tokens stand is told by biases on the scores alone."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib import decoding
from course_lib.buckets import NUM_BUCKETS, relative_position_bucket
from course_lib.masks import causal_mask
from course_lib.multi_head import head_width, merge_heads, split_heads

NORM_EPS = 1e-6  # of the code published with Raffel et al. 2020
START = 0  # the decoder's first input is the padding token


class RelativeBias(nn.Module):
    """Learn one number per head and bucket of distances, to add to the scores of a whole stack.

    Source: Raffel et al. 2020, §2.1, arXiv 1910.10683.
    """

    def __init__(self, num_heads: int, bidirectional: bool) -> None:
        super().__init__()
        self.bidirectional = bidirectional
        self.table = nn.Embedding(NUM_BUCKETS, num_heads)

    def forward(self, length: int) -> Float[Tensor, "heads query key"]:
        """Give the bias of every pair of places."""
        places = torch.arange(length, device=self.table.weight.device)
        buckets = relative_position_bucket(places[None, :] - places[:, None], self.bidirectional)
        return self.table(buckets).permute(2, 0, 1)


class T5Attention(nn.Module):
    """Attend with several heads, without biases in the projections and without dividing by √d_head.

    weights = softmax(query keyᵀ + bias). The division is folded into the start of `w_q`, which is √d_head times
    smaller than that of the others.

    Source: Raffel et al. 2020, §2.1, arXiv 1910.10683; the start is that of the code published with it.
    """

    def __init__(self, d_model: int, num_heads: int) -> None:
        """Create the four projections.

        Raises:
            ValueError: `num_heads` does not divide `d_model`.
        """
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        for projection in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.normal_(projection.weight, std=1 / math.sqrt(d_model))
        with torch.no_grad():
            self.w_q.weight.div_(math.sqrt(head_width(d_model, num_heads)))

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        memory: Float[Tensor, "batch key d_model"],
        bias: Float[Tensor, "heads query key"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """Let `query` look at `memory`; True in `mask` hides, and every query must see a key."""
        q, k, v = (
            split_heads(projection(x), self.num_heads)
            for projection, x in ((self.w_q, query), (self.w_k, memory), (self.w_v, memory))
        )
        scores = q @ k.mT
        if bias is not None:
            scores = scores + bias
        if mask is not None:
            scores = scores.masked_fill(mask, -math.inf)
        return self.w_o(merge_heads(torch.softmax(scores, dim=-1) @ v))


class PlainFeedForward(nn.Module):
    """Transform every token by two matrices with ReLU between them, without biases."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.linear_1 = nn.Linear(d_model, d_ff, bias=False)
        self.linear_2 = nn.Linear(d_ff, d_model, bias=False)
        nn.init.normal_(self.linear_1.weight, std=1 / math.sqrt(d_model))
        nn.init.normal_(self.linear_2.weight, std=1 / math.sqrt(d_ff))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Return the transformed tokens."""
        return self.linear_2(F.relu(self.linear_1(x)))


class T5Block(nn.Module):
    """Attend, look at the memory if there is one, transform: x + sublayer(norm(x)) each time, with RMS norms."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, crosses: bool) -> None:
        """Create the sublayers; `crosses` says whether the block reads an encoder's output."""
        super().__init__()
        self.attention = T5Attention(d_model, num_heads)
        self.norm_attention = nn.RMSNorm(d_model, eps=NORM_EPS)
        self.cross = T5Attention(d_model, num_heads) if crosses else None
        self.norm_cross = nn.RMSNorm(d_model, eps=NORM_EPS) if crosses else None
        self.ffn: nn.Module = PlainFeedForward(d_model, d_ff)
        self.norm_ffn = nn.RMSNorm(d_model, eps=NORM_EPS)

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        bias: Float[Tensor, "heads query query"],
        mask: Bool[Tensor, "..."] | None = None,
        memory: Float[Tensor, "batch key d_model"] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """Return the new tokens; the bias belongs to attention among them, never to looks at the memory."""
        normalized = self.norm_attention(x)
        x = x + self.attention(normalized, normalized, bias, mask)
        if self.cross is not None and self.norm_cross is not None and memory is not None:
            x = x + self.cross(self.norm_cross(x), memory, mask=memory_mask)
        return x + self.ffn(self.norm_ffn(x))


class T5Stack(nn.Module):
    """Run blocks that share one table of biases, and normalize at the end."""

    def __init__(self, d_model: int, num_heads: int, num_layers: int, d_ff: int, decodes: bool) -> None:
        """Create the table, the blocks and the last norm; a stack that `decodes` is causal and reads a memory."""
        super().__init__()
        self.decodes = decodes
        self.bias = RelativeBias(num_heads, bidirectional=not decodes)
        nn.init.normal_(self.bias.table.weight, std=1 / math.sqrt(d_model))
        self.blocks = nn.ModuleList(T5Block(d_model, num_heads, d_ff, decodes) for _ in range(num_layers))
        self.norm = nn.RMSNorm(d_model, eps=NORM_EPS)

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        memory: Float[Tensor, "batch key d_model"] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """Run the stack; True hides."""
        bias = self.bias(x.shape[1])
        if self.decodes:
            mask = causal_mask(x.shape[1]).to(x.device)
        for block in self.blocks:
            x = block(x, bias, mask, memory, memory_mask)
        return self.norm(x)


class T5(nn.Module):
    """Turn a text into a text: encode the input, decode the target from what stands before each place.

    logits = (decoder output / √d_model) · token embeddingᵀ, one embedding for both sides and the head.

    Source: Raffel et al. 2020, §2.1, arXiv 1910.10683, in the size-independent form of the first release: ReLU and a
    tied head. The paper drops entries out while training; here nothing is dropped.
    """

    def __init__(self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, d_ff: int | None = None) -> None:
        """Create the embedding and two stacks of `num_layers` blocks each.

        Raises:
            ValueError: `num_heads` does not divide `d_model`.
        """
        super().__init__()
        d_ff = 4 * d_model if d_ff is None else d_ff
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.encoder = T5Stack(d_model, num_heads, num_layers, d_ff, decodes=False)
        self.decoder = T5Stack(d_model, num_heads, num_layers, d_ff, decodes=True)

    def forward(
        self,
        inputs: Int[Tensor, "batch source"],
        targets: Int[Tensor, "batch target"],
        padding: Bool[Tensor, "batch source"] | None = None,
    ) -> Float[Tensor, "batch target vocab"]:
        """Give the logits of every target token; the decoder reads the targets one place late.

        Args:
            inputs: what the encoder reads.
            targets: what the decoder should write; -100 marks a place that does not count.
            padding: True hides an input token; every row must keep one.
        """
        hidden = None if padding is None else padding[:, None, None, :]
        memory = self.encoder(self.embedding(inputs), hidden)
        decoded = self.decoder(self.embedding(shift_right(targets)), memory=memory, memory_mask=hidden)
        return F.linear(decoded / math.sqrt(decoded.shape[-1]), self.embedding.weight)


def shift_right(targets: Int[Tensor, "batch target"], start: int = START) -> Int[Tensor, "batch target"]:
    """Give the decoder's input: the start token, then the targets without the last; ignored labels become `start`.

    Source: the code published with Raffel et al. 2020, whose start token is the padding token.
    """
    late = decoding.shift_right(targets, start)
    return late.masked_fill(late < 0, start)
