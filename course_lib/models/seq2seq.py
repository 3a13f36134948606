"""The encoder-decoder of the paper, small: it reads one sequence and writes another, looking at the first."""

from typing import NamedTuple, cast

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.block import TransformerBlock
from course_lib.cross_attention import cache_memory
from course_lib.decoder_block import DecoderBlock

HeadKeys = Float[Tensor, "batch heads source d_head"]


class Memory(NamedTuple):
    """What the decoder needs of a source: the keys and values of every block, and where it is padding."""

    keys: list[HeadKeys]
    values: list[HeadKeys]
    mask: Bool[Tensor, "batch source"] | None


class Seq2Seq(nn.Module):
    """Read the source with an encoder, write the target with a decoder that attends to what was read.

    memory = encoder(embedding(source) + positions), logits = head(decoder(embedding(target) + positions, memory))

    Source: Vaswani et al. 2017, §3.1, arXiv 1706.03762. The paper adds sinusoids, drops entries out and shares the
    embeddings with the head; here positions are learned, nothing is dropped and nothing shared.
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        max_source: int,
        max_target: int,
        d_model: int = 64,
        num_heads: int = 4,
        num_layers: int = 1,
        d_ff: int = 128,
    ) -> None:
        """Create encoder and decoder, with as many blocks each."""
        super().__init__()
        self.source_embedding = nn.Embedding(source_vocab, d_model)
        self.target_embedding = nn.Embedding(target_vocab, d_model)
        self.source_positions = nn.Embedding(max_source, d_model)
        self.target_positions = nn.Embedding(max_target, d_model)
        self.encoder = nn.ModuleList(TransformerBlock(d_model, num_heads, d_ff) for _ in range(num_layers))
        self.decoder = nn.ModuleList(DecoderBlock(d_model, num_heads, d_ff) for _ in range(num_layers))
        self.head = nn.Linear(d_model, target_vocab)

    @property
    def decoder_blocks(self) -> list[DecoderBlock]:
        """List the decoder's blocks, the first one first."""
        return [cast(DecoderBlock, block) for block in self.decoder]

    def encode(
        self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"] | None = None
    ) -> Float[Tensor, "batch source d_model"]:
        """Read the source; where `mask` is True there is only padding."""
        x = self.source_embedding(source) + self.source_positions.weight[: source.shape[1]]
        hidden = None if mask is None else mask[:, None, None, :]
        for block in self.encoder:
            x = block(x, hidden)
        return x

    def remember(
        self, memory: Float[Tensor, "batch source d_model"], mask: Bool[Tensor, "batch source"] | None = None
    ) -> Memory:
        """Project what was read to the keys and values of every block of the decoder, once."""
        pairs = [cache_memory(block.cross_attention, memory) for block in self.decoder_blocks]
        return Memory([key for key, _ in pairs], [value for _, value in pairs], mask)

    def decode(
        self, tokens: Int[Tensor, "batch target"], memory: Memory
    ) -> tuple[Float[Tensor, "batch target vocab"], list[Float[Tensor, "batch heads target source"]]]:
        """Return the logits after every token, and the cross-attention weights of every block."""
        x = self.target_embedding(tokens) + self.target_positions.weight[: tokens.shape[1]]
        maps = []
        for block, key, value in zip(self.decoder_blocks, memory.keys, memory.values, strict=True):
            x, weights = block.over_cache(x, key, value, memory.mask)
            maps.append(weights)
        return self.head(x), maps

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        source_mask: Bool[Tensor, "batch source"] | None,
        tokens: Int[Tensor, "batch target"],
    ) -> Float[Tensor, "batch target vocab"]:
        """Return the logits after every token of a target that is known: teacher forcing, in one pass."""
        return self.decode(tokens, self.remember(self.encode(source, source_mask), source_mask))[0]
