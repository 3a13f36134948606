"""Count what a transformer costs before it is built: parameters, floating-point operations and bytes.

A multiply-add counts 2 FLOPs. Counted are the matrix products, as every FLOP counter does; biases, norms,
softmax and activation are linear in what is counted here and left out. d_ff is the width inside the feed-forward
network.
"""

from dataclasses import dataclass

PROJECTIONS = 4  # of queries, keys and values, and of attention's output
FFN_MATRICES, NORMS, NORM_VECTORS = 2, 2, 2
MULTIPLY_ADD = 2  # FLOPs
ATTENTION_PRODUCTS = 2  # query keyᵀ, and weights times values
CACHED = 2  # keys and values
RECURRENT_GATES = {"rnn": 1, "gru": 3, "lstm": 4}
DEPTH_KINDS = ("rnn", "transformer", "decode")


@dataclass(frozen=True)
class BlockFlops:
    """The FLOPs of one block over one sequence, by what they are spent on."""

    projections: int
    attention: int
    feed_forward: int

    @property
    def total(self) -> int:
        """Return all FLOPs of the block."""
        return self.projections + self.attention + self.feed_forward

    @property
    def attention_share(self) -> float:
        """Return the share of the two products that grow with the square of the sequence."""
        return self.attention / self.total


def block_parameter_count(d_model: int, d_ff: int, bias: bool = True) -> int:
    """Count what a block learns: four projections, two feed-forward matrices, two norms.

    4 d_model² + 2 d_model d_ff, with biases 5 d_model + d_ff more, and for the norms 4 d_model. The number of heads
    plays no part: heads cut the same matrices into pieces. Without `bias` the norms keep gain and bias.

    Raises:
        ValueError: a size is below 1.
    """
    _require_sizes(d_model=d_model, d_ff=d_ff)
    weights = PROJECTIONS * d_model * d_model + FFN_MATRICES * d_model * d_ff
    biases = PROJECTIONS * d_model + d_ff + d_model if bias else 0
    return weights + biases + NORMS * NORM_VECTORS * d_model


def attention_flops(n_q: int, n_k: int, d_model: int) -> int:
    """Count the FLOPs of multi-head attention from `n_q` queries over `n_k` keys.

    Projections: 4 (n_q + n_k) d_model²; products: 4 n_q n_k d_model, whatever the number of heads, for each of h
    heads multiplies vectors h times shorter.

    Raises:
        ValueError: a size is below 1.

    Source: Kaplan et al. 2020, §2.1, table 1, arXiv 2001.08361, which gives them per token.
    """
    _require_sizes(n_q=n_q, n_k=n_k, d_model=d_model)
    projected = 2 * n_q + 2 * n_k  # tokens that go through a projection: queries, outputs, keys, values
    return MULTIPLY_ADD * d_model * (projected * d_model + ATTENTION_PRODUCTS * n_q * n_k)


def block_flops(sequence: int, d_model: int, d_ff: int) -> int:
    """Count the FLOPs of a forward pass of one block: 8 n d² + 4 n² d + 4 n d d_ff.

    Raises:
        ValueError: a size is below 1.
    """
    return block_flops_by_part(sequence, d_model, d_ff).total


def block_flops_by_part(sequence: int, d_model: int, d_ff: int) -> BlockFlops:
    """Count the FLOPs of one block, apart: projections 8 n d², attention 4 n² d, feed-forward network 4 n d d_ff.

    Raises:
        ValueError: a size is below 1.
    """
    _require_sizes(sequence=sequence, d_model=d_model, d_ff=d_ff)
    return BlockFlops(
        projections=MULTIPLY_ADD * PROJECTIONS * sequence * d_model**2,
        attention=MULTIPLY_ADD * ATTENTION_PRODUCTS * sequence**2 * d_model,
        feed_forward=MULTIPLY_ADD * FFN_MATRICES * sequence * d_model * d_ff,
    )


def crossover_length(d_model: int, d_ff: int) -> int:
    """Find the shortest sequence at which the products that are quadratic in it cost more than all the rest.

    4 n² d > 8 n d² + 4 n d d_ff exactly if n > 2 d + d_ff.

    Raises:
        ValueError: a size is below 1.
    """
    _require_sizes(d_model=d_model, d_ff=d_ff)
    return 2 * d_model + d_ff + 1


def attention_matrix_bytes(batch: int, heads: int, sequence: int, itemsize: int = 4) -> int:
    """Count the bytes of one copy of the attention weights of a layer: batch · heads · sequence² numbers.

    Args:
        batch: sequences.
        heads: each has a map of its own.
        sequence: tokens, as queries and as keys.
        itemsize: bytes of a number; 4 in float32, 2 in half precision.

    Raises:
        ValueError: a size is below 1.
    """
    _require_sizes(batch=batch, heads=heads, sequence=sequence, itemsize=itemsize)
    return batch * heads * sequence**2 * itemsize


def kv_cache_bytes(layers: int, kv_heads: int, d_head: int, sequence: int, batch: int = 1, itemsize: int = 2) -> int:
    """Count the bytes of the keys and values that generation keeps: 2 numbers per layer, head, feature and token.

    Args:
        layers: each keeps its own.
        kv_heads: heads of keys and values, with grouped queries fewer than heads of queries.
        d_head: features of one head.
        sequence: tokens read and written so far.
        batch: sequences.
        itemsize: bytes of a number.

    Raises:
        ValueError: a size is below 1.

    Source: Shazeer 2019, §3, arXiv 1911.02150 (why the cache sets the speed of decoding); Pope et al. 2022, §3.3,
    arXiv 2211.05102.
    """
    _require_sizes(layers=layers, kv_heads=kv_heads, d_head=d_head, sequence=sequence, batch=batch, itemsize=itemsize)
    return CACHED * layers * kv_heads * d_head * sequence * batch * itemsize


def sequential_depth(kind: str, sequence: int, layers: int) -> int:
    """Count the longest chain of layer applications that must wait for one another.

    Args:
        kind: "rnn", where layer l at step t waits for layer l at t − 1 and layer l − 1 at t, so that a wavefront
            crosses the table in sequence + layers − 1; "transformer", where a layer takes all tokens at once; or
            "decode", a transformer that writes token after token, each through all layers.
        sequence: tokens.
        layers: of the stack.

    Raises:
        ValueError: `kind` is another word, or a size is below 1.

    Source: Vaswani et al. 2017, table 1, arXiv 1706.03762, which counts sequential operations per layer.
    """
    if kind not in DEPTH_KINDS:
        raise ValueError(f"`kind` must be one of {', '.join(map(repr, DEPTH_KINDS))}, got {kind!r}.")
    _require_sizes(sequence=sequence, layers=layers)
    return {"rnn": sequence + layers - 1, "transformer": layers, "decode": sequence * layers}[kind]


def recurrent_parameter_count(kind: str, d_in: int, d_hidden: int) -> int:
    """Count what a recurrent layer of the framework learns: gates · d_hidden · (d_hidden + d_in + 2).

    A plain RNN has 1 gate, a GRU 3, an LSTM 4. The framework keeps two biases per gate, one with each matrix; the
    papers have one.

    Raises:
        ValueError: `kind` is none of "rnn", "gru" and "lstm", or a size is below 1.

    Source: Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000 (LSTM); Cho et al. 2014, §2.3,
    arXiv 1406.1078 (GRU).
    """
    return _recurrent_gates(kind, d_in, d_hidden) * d_hidden * (d_hidden + d_in + 2)


def _recurrent_gates(kind: str, d_in: int, d_hidden: int) -> int:
    if kind not in RECURRENT_GATES:
        raise ValueError(f"`kind` must be one of {', '.join(map(repr, RECURRENT_GATES))}, got {kind!r}.")
    _require_sizes(d_in=d_in, d_hidden=d_hidden)
    return RECURRENT_GATES[kind]


def _require_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"`{name}` must be at least 1, got {size}.")
