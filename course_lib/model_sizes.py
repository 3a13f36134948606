"""Count what a whole model learns: embeddings, blocks, and the few parts around them."""

from course_lib.costs import block_parameter_count

NORM_VECTORS = 2  # gain and bias


def model_parameter_count(
    vocab_size: int,
    max_length: int,
    d_model: int,
    num_layers: int,
    d_ff: int,
    segments: int = 0,
    embedding_norm: bool = False,
    final_norm: bool = True,
    pooler: bool = False,
) -> int:
    """Count the parameters of a GPT or a BERT, with biases everywhere and the head tied to the token embedding.

    (vocab_size + max_length + segments) d_model for what is looked up, `block_parameter_count` for each block,
    2 d_model for each norm outside the blocks, and d_model² + d_model for a pooler. The head costs nothing: it is the
    token embedding once more.

    Args:
        vocab_size: rows of the token embedding.
        max_length: learned positions; 0 if positions are not learned.
        d_model: features of a token.
        num_layers: blocks.
        d_ff: the width inside the feed-forward network.
        segments: rows of the segment embedding; BERT has 2.
        embedding_norm: whether a norm follows the sum of the embeddings, as in BERT.
        final_norm: whether a norm follows the last block, as in every pre-norm stack.
        pooler: whether a layer reads the first token, as in BERT.

    Raises:
        ValueError: a size is negative, or a width or the vocabulary is 0.

    Source: Radford et al. 2019, §2.3 (GPT-2); Devlin et al. 2018, §3, arXiv 1810.04805 (BERT); Brown et al. 2020,
    table 2.1, arXiv 2005.14165 (GPT-3). Counted are the published weights: the heads of BERT's pretraining are left
    out, as they are from the models it is compared with.
    """
    sizes = {"vocab_size": vocab_size, "d_model": d_model, "d_ff": d_ff}
    _require_counts(1, **sizes)
    _require_counts(0, max_length=max_length, num_layers=num_layers, segments=segments)
    embeddings = (vocab_size + max_length + segments) * d_model
    norms = (bool(embedding_norm) + bool(final_norm)) * NORM_VECTORS * d_model
    pooling = d_model * d_model + d_model if pooler else 0
    return embeddings + num_layers * block_parameter_count(d_model, d_ff) + norms + pooling


def _require_counts(least: int, **sizes: int) -> None:
    for name, size in sizes.items():
        if size < least:
            raise ValueError(f"`{name}` must be at least {least}, got {size}.")
