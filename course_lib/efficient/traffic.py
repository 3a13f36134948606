"""Count what attention moves between a processor's large, slow memory and its small, fast one, in numbers.

On a GPU the large memory is its main memory (HBM) and the small one lies on the chip (SRAM). FLOPs say what is
calculated; this says what has to be fetched for it and written back.

Source: Dao et al. 2022, Algorithms 0 and 1 and theorem 2, arXiv 2205.14135.
"""


def standard_traffic(length: int, d_head: int) -> int:
    """Count the numbers moved by plain attention of one head: 4 n d + 4 n².

    Queries and keys are read and the scores written; the scores are read and the weights written; weights and values
    are read and the output written.
    """
    return 4 * length * d_head + 4 * length**2


def tiled_traffic(length: int, d_head: int, fast_memory: int) -> int:
    """Count the numbers moved by tiled attention of one head, whose tiles fill the fast memory.

    Each tile of keys and values is read once. For each of them, every tile of queries is read with its output so
    far, largest score and sum, and the last three are written back.

    Args:
        length: tokens.
        d_head: width of queries, keys and values.
        fast_memory: how many numbers the small memory holds.

    Raises:
        ValueError: the fast memory does not even hold tiles of one token.
    """
    columns = fast_memory // (4 * d_head)
    if columns < 1:
        raise ValueError(
            f"`fast_memory` must hold at least {4 * d_head} numbers for width {d_head}; got {fast_memory}."
        )
    key_tiles = -(-length // columns)
    each_time = length * (3 * d_head + 4)  # query and output in, output out; two statistics in and out
    return 2 * length * d_head + key_tiles * each_time


def document_flops(length: int, d_head: int, fast_memory: int) -> float:
    """Give what document B's formula says: n² d / M."""
    return length**2 * d_head / fast_memory
