"""From GPT-2 to Llama: one block, five edits, each with a switch of its own."""

from dataclasses import dataclass, fields, replace
from itertools import accumulate

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.feed_forward import FeedForward, GatedFeedForward, matched_hidden_size
from course_lib.masks import causal_mask
from course_lib.models.gpt import WIDENING, initial_std, require_length, start_small
from course_lib.multi_head import head_width, merge_heads, split_heads
from course_lib.residual import pre_norm_step
from course_lib.rotary import apply_rotary
from course_lib.tensor_attention import tensor_attention

NORM_EPS = 1e-5  # of GPT-2's layer norms and of Llama 2's RMS norms alike


@dataclass(frozen=True)
class Edits:
    """What is changed in a GPT-2 block; with nothing changed it is GPT-2's, with everything it is Llama's.

    Source: Touvron et al. 2023, §2.2, arXiv 2302.13971 (norm, SwiGLU, rotary positions; its published layers have no
    biases); Touvron et al. 2023, "Llama 2", §2.2, arXiv 2307.09288 (grouped queries).
    """

    rms_norm: bool = False
    no_biases: bool = False
    rotary: bool = False
    swiglu: bool = False
    grouped_queries: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Name the edits that are made."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name))


ALL_EDITS = Edits(*(True for _ in fields(Edits)))


def one_after_another() -> list[Edits]:
    """Give GPT-2's block and what it becomes after each edit in turn, up to Llama's."""
    names = [field.name for field in fields(Edits)]
    return list(accumulate(names, lambda edits, name: replace(edits, **{name: True}), initial=Edits()))


@dataclass(frozen=True)
class BlockSizes:
    """The widths of a block.

    Args:
        d_model: features of a token.
        num_heads: heads of queries.
        d_ff: width inside the feed-forward network.
        kv_heads: heads of keys and values where queries are grouped; else there are as many as of queries.
    """

    d_model: int
    num_heads: int
    d_ff: int
    kv_heads: int


class EditedAttention(nn.Module):
    """Attend with several heads; turn queries and keys by their places and share keys among queries, if so edited.

    Query head i reads key head ⌊i · kv_heads / num_heads⌋.
    """

    def __init__(self, sizes: BlockSizes, edits: Edits) -> None:
        """Create the projections.

        Raises:
            ValueError: the heads do not divide the width, or the key heads do not divide the query heads.
        """
        super().__init__()
        d_head = head_width(sizes.d_model, sizes.num_heads)
        self.kv_heads = sizes.kv_heads if edits.grouped_queries else sizes.num_heads
        if self.kv_heads < 1 or sizes.num_heads % self.kv_heads:
            raise ValueError(
                f"`kv_heads` must divide `num_heads`: {self.kv_heads} key heads do not share {sizes.num_heads} query "
                "heads evenly."
            )
        self.num_heads, self.rotary, bias = sizes.num_heads, edits.rotary, not edits.no_biases
        self.w_q = nn.Linear(sizes.d_model, sizes.d_model, bias=bias)
        self.w_k = nn.Linear(sizes.d_model, self.kv_heads * d_head, bias=bias)
        self.w_v = nn.Linear(sizes.d_model, self.kv_heads * d_head, bias=bias)
        self.w_o = nn.Linear(sizes.d_model, sizes.d_model, bias=bias)

    def forward(
        self, x: Float[Tensor, "batch sequence d_model"], mask: Bool[Tensor, "query key"] | None = None
    ) -> Float[Tensor, "batch sequence d_model"]:
        """Return what every token found; True in `mask` hides."""
        query = split_heads(self.w_q(x), self.num_heads)
        key, value = (split_heads(projection(x), self.kv_heads) for projection in (self.w_k, self.w_v))
        if self.rotary:
            places = torch.arange(x.shape[1], device=x.device)
            query, key = apply_rotary(query, places), apply_rotary(key, places)
        # The queries of a group get an axis of their own, against which the one key of the group broadcasts.
        grouped = query.unflatten(1, (self.kv_heads, -1))
        output, _ = tensor_attention(grouped, key[:, :, None], value[:, :, None], mask)
        return self.w_o(merge_heads(output.flatten(1, 2)))


class EditedBlock(nn.Module):
    """A pre-norm block in which each of the five edits is made or left out.

    Without an edit it is `TransformerBlock` with `norm_first` and GELU. The feed-forward network's hidden width is
    d_ff in both forms; `matched_hidden_size` keeps the number of weights when the gate comes in.
    """

    def __init__(self, sizes: BlockSizes, edits: Edits) -> None:
        """Create the parts that the edits ask for.

        Raises:
            ValueError: the heads do not divide the width, or the key heads do not divide the query heads.
        """
        super().__init__()
        self.attention = EditedAttention(sizes, edits)
        self.ffn = _feed_forward(sizes, edits)
        self.norm_1 = make_norm(sizes.d_model, edits)
        self.norm_2 = make_norm(sizes.d_model, edits)

    def forward(
        self, x: Float[Tensor, "batch sequence d_model"], mask: Bool[Tensor, "query key"] | None = None
    ) -> Float[Tensor, "batch sequence d_model"]:
        """Return the new tokens; True in `mask` hides."""
        x = pre_norm_step(x, lambda tokens: self.attention(tokens, mask), self.norm_1)
        return pre_norm_step(x, self.ffn, self.norm_2)


def _feed_forward(sizes: BlockSizes, edits: Edits) -> nn.Module:
    """Make the network: gated, which never has biases, or plain with or without them."""
    if edits.swiglu:
        return GatedFeedForward(sizes.d_model, sizes.d_ff)
    if not edits.no_biases:
        return FeedForward(sizes.d_model, sizes.d_ff)
    return nn.Sequential(
        nn.Linear(sizes.d_model, sizes.d_ff, bias=False), nn.GELU(), nn.Linear(sizes.d_ff, sizes.d_model, bias=False)
    )


def make_norm(d_model: int, edits: Edits) -> nn.Module:
    """Make a norm; without biases a layer norm keeps its gain alone, as an RMS norm has it."""
    if edits.rms_norm:
        return nn.RMSNorm(d_model, eps=NORM_EPS)
    return nn.LayerNorm(d_model, eps=NORM_EPS, bias=not edits.no_biases)


class EditedGPT(nn.Module):
    """A causal language model of edited blocks; with rotary positions it has no learned ones.

    Without an edit and with a tied head it is `GPT`. Llama's head is a matrix of its own.
    """

    def __init__(
        self, vocab_size: int, num_layers: int, max_length: int, sizes: BlockSizes, edits: Edits, tied: bool = True
    ) -> None:
        """Create the embeddings, the blocks, the last norm and, unless tied, the head.

        Raises:
            ValueError: the heads do not divide the width, or the key heads do not divide the query heads.
        """
        super().__init__()
        self.max_length = max_length
        self.token_embedding = nn.Embedding(vocab_size, sizes.d_model)
        self.position_embedding = None if edits.rotary else nn.Embedding(max_length, sizes.d_model)
        self.blocks = nn.ModuleList(EditedBlock(sizes, edits) for _ in range(num_layers))
        self.norm = make_norm(sizes.d_model, edits)
        self.head = None if tied else nn.Linear(sizes.d_model, vocab_size, bias=False)
        start_small(self, initial_std(sizes.d_model))

    def forward(self, tokens: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token vocab"]:
        """Give the logits of the token after each place.

        Raises:
            ValueError: there are more tokens than `max_length`.
        """
        length = tokens.shape[1]
        require_length(length, self.max_length)
        x = self.token_embedding(tokens)
        if self.position_embedding is not None:
            x = x + self.position_embedding(torch.arange(length, device=tokens.device))
        hidden = causal_mask(length).to(tokens.device)
        for block in self.blocks:
            x = block(x, hidden)
        x = self.norm(x)
        return F.linear(x, self.token_embedding.weight) if self.head is None else self.head(x)


def sizes_for(d_model: int, num_heads: int, kv_heads: int, edits: Edits) -> BlockSizes:
    """Choose GPT-2's d_ff = 4 d_model, or with the gate the hidden width that keeps the number of weights."""
    plain = WIDENING * d_model
    return BlockSizes(d_model, num_heads, matched_hidden_size(d_model, plain) if edits.swiglu else plain, kv_heads)
