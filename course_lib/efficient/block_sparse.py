"""Block-sparse attention: whole blocks of keys are skipped, so that what is hidden is never computed."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from course_lib.tensor_attention import require_mask


def block_sparse_attention(
    query: Float[Tensor, "... token d_k"],
    key: Float[Tensor, "... token d_k"],
    value: Float[Tensor, "... token d_v"],
    block_mask: Bool[Tensor, "query_block key_block"],
    block_size: int,
) -> Float[Tensor, "... token d_v"]:
    """Attend from each block of queries to those blocks of keys that `block_mask` shows; True hides.

    One softmax runs over all visible keys of a query, whatever blocks they lie in. Scores are computed for visible
    blocks alone. A block of queries that sees no block gets 0.

    Raises:
        TypeError: `block_mask` is not a boolean tensor.
        ValueError: the tokens do not divide into blocks, or `block_mask` does not have a row and a column for each.

    Source: Child et al. 2019, §5.5, arXiv 1904.10509 (block-sparse kernels); Zaheer et al. 2020, appendix D, arXiv
    2007.14062 (patterns of blocks).
    """
    blocks = _count_blocks(query.shape[-2], block_size)
    require_mask(block_mask, (blocks, blocks))
    scale = 1 / math.sqrt(query.shape[-1])
    query_blocks, key_blocks, value_blocks = (
        tensor.unflatten(-2, (blocks, block_size)) for tensor in (query, key, value)
    )
    outputs = []
    for row, hidden in enumerate(block_mask):
        seen = (~hidden).nonzero().squeeze(-1)
        if len(seen) == 0:
            outputs.append(torch.zeros_like(value_blocks[..., row, :, :]))
            continue
        keys = key_blocks[..., seen, :, :].flatten(-3, -2)
        values = value_blocks[..., seen, :, :].flatten(-3, -2)
        scores = query_blocks[..., row, :, :] @ keys.mT * scale
        outputs.append(torch.softmax(scores, dim=-1) @ values)
    return torch.cat(outputs, dim=-2)


def expand_block_mask(block_mask: Bool[Tensor, "query_block key_block"], block_size: int) -> Bool[Tensor, "query key"]:
    """Spread every cell of a mask of blocks over `block_size` queries and as many keys."""
    return block_mask.repeat_interleave(block_size, dim=-2).repeat_interleave(block_size, dim=-1)


def block_cover(mask: Bool[Tensor, "query key"], block_size: int) -> Bool[Tensor, "query_block key_block"]:
    """Find the blocks that a kernel may skip for a mask: those in which every pair is hidden.

    Raises:
        ValueError: the tokens do not divide into blocks.
    """
    rows, columns = (_count_blocks(length, block_size) for length in mask.shape[-2:])
    tiles = mask.unflatten(-1, (columns, block_size)).unflatten(-3, (rows, block_size))
    return tiles.all(dim=-1).all(dim=-2)


def _count_blocks(length: int, block_size: int) -> int:
    if block_size < 1 or length % block_size:
        raise ValueError(f"`block_size` must divide the number of tokens, got {block_size} for {length} tokens.")
    return length // block_size
