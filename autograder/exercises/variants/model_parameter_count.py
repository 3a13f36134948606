"""Check `model_parameter_count`: what a whole model learns, against published numbers."""

from torch import nn

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.variants import CHAPTER
from autograder.program import Program, call
from course_lib import model_sizes

GPT_2 = (50257, 1024, 768, 12, 3072)
GPT_3 = (50257, 2048, 12288, 96, 49152)
BERT_BASE = (30522, 512, 768, 12, 3072)
BERT_PARTS = {"segments": 2, "embedding_norm": True, "final_norm": False, "pooler": True}


def sizes(draw: Draw) -> tuple[int, ...]:
    """Draw sizes that all differ, with a hidden layer that is not four times as wide."""
    vocab, longest, d_model, d_ff = (int(size) for size in draw.random.choice(range(11, 60), 4, replace=False))
    return vocab, longest, d_model, draw.integer(2, 7), d_ff + (d_ff == 4 * d_model)


def everything(draw: Draw) -> Program:
    """Count a model that has all parts."""
    return call(*sizes(draw), segments=draw.integer(3, 5), embedding_norm=True, final_norm=True, pooler=True)


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=model_sizes.model_parameter_count,
    returns=("the number of parameters",),
    cases=[
        Case("GPT-2", lambda draw: call(*GPT_2)),
        Case("BERT-base", lambda draw: call(*BERT_BASE, **BERT_PARTS)),
        Case("sizes that all differ", lambda draw: call(*sizes(draw))),
        Case("all parts", everything),
        Case("GPT-3", lambda draw: call(*GPT_3), hidden=True),
        Case("no last norm", lambda draw: call(*sizes(draw), final_norm=False), hidden=True),
        Case("a norm of the embeddings", lambda draw: call(*sizes(draw), embedding_norm=True), hidden=True),
        Case("segments by position", lambda draw: call(*sizes(draw), draw.integer(3, 5)), hidden=True),
        Case("a pooler", lambda draw: call(*sizes(draw), pooler=True), hidden=True),
    ],
)


def _block(d_model, d_ff, projections=4, biases=True, norms=4):
    weights = projections * d_model**2 + 2 * d_model * d_ff
    return weights + norms * d_model + (projections * d_model + d_ff + d_model if biases else 0)


def _belief(change):
    """Make a solution that counts part by part, with some parts changed."""

    def count(
        vocab_size,
        max_length,
        d_model,
        num_layers,
        d_ff,
        segments=0,
        embedding_norm=False,
        final_norm=True,
        pooler=False,
    ):
        parts = {
            "tokens": vocab_size * d_model,
            "positions": max_length * d_model,
            "segments": segments * d_model,
            "embedding_norm": 2 * d_model * embedding_norm,
            "blocks": num_layers * _block(d_model, d_ff),
            "final_norm": 2 * d_model * final_norm,
            "pooler": (d_model**2 + d_model) * pooler,
        }
        parts |= change(vocab_size, max_length, d_model, num_layers, d_ff, segments, pooler)
        return sum(parts.values())

    return count


def _add(name, words, change):
    function = _belief(change)
    function.__name__ = name
    exercise.misconception(words)(function)


_add(
    "head_counted",
    """
    Your count is V · d_model too high: the head is counted besides the token embedding. Tied, they are one matrix,
    used twice and learned once. (GPT-2 would have 163 million parameters otherwise.)
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"head": v * d},
)
_add(
    "head_bias_counted",
    """
    Your count is V too high: a bias for the head. The tied head here is the embedding matrix alone.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"head": v},
)
_add(
    "positions_forgotten",
    """
    Your count is max_length · d_model short. Positions are learned in these models: a vector for each place.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"positions": 0},
)
_add(
    "embeddings_forgotten",
    """
    Only the blocks are in your count. In GPT-2 the embeddings are 39 of 124 million parameters: how many numbers does a
    table of V words hold?
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"tokens": 0, "positions": 0, "segments": 0},
)
_add(
    "biases_forgotten",
    """
    The biases of the linear layers are missing. Each of the six layers of a block has one number for every output.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"blocks": layers * _block(d, d_ff, biases=False)},
)
_add(
    "norms_of_blocks_forgotten",
    """
    The norms inside the blocks are missing: two in each, with a gain and a bias of d_model numbers.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"blocks": layers * _block(d, d_ff, norms=0)},
)
_add(
    "norms_without_bias",
    """
    Your norms inside the blocks have a gain and no bias, as RMS norms have. These are layer norms, which learn both.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"blocks": layers * _block(d, d_ff, norms=2)},
)
_add(
    "output_projection_forgotten",
    """
    Each of your blocks has three projections: queries, keys and values. A fourth mixes what the heads found.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"blocks": layers * _block(d, d_ff, projections=3)},
)
_add(
    "final_norm_always",
    """
    Your count has a norm after the last block whatever `final_norm` says. BERT, whose blocks end in a norm, has none.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"final_norm": 2 * d},
)
_add(
    "final_norm_never",
    """
    Your count is 2 · d_model short wherever `final_norm` is True: the norm after the last block is missing.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"final_norm": 0},
)
_add(
    "embedding_norm_never",
    """
    `embedding_norm` has no influence on your count. BERT normalizes the sum of its embeddings: a gain and a bias.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"embedding_norm": 0},
)
_add(
    "segments_forgotten",
    """
    `segments` has no influence on your count. BERT learns a vector for each of its two segments.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"segments": 0},
)
_add(
    "pooler_forgotten",
    """
    `pooler` has no influence on your count. BERT has a linear layer on top of its first token, d_model to d_model.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"pooler": 0},
)
_add(
    "pooler_without_bias",
    """
    Your pooler has no bias. Everywhere here a linear layer has one.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"pooler": d**2 * pooler},
)
_add(
    "four_times_built_in",
    """
    Your count does not depend on d_ff: 4 · d_model is built in. That is the usual choice, and only one.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"blocks": layers * _block(d, 4 * d)},
)
_add(
    "one_block",
    """
    Your count holds one block. There are num_layers of them, and each has weights of its own.
    """,
    lambda v, n, d, layers, d_ff, segments, pooler: {"blocks": _block(d, d_ff)},
)


@exercise.misconception("""
    Your count is 12 · layers · d_model², Kaplan's estimate: within 1 % for GPT-3, a third short for GPT-2. Embeddings,
    biases and norms count here, and d_ff is given.
""")
def twelve_squares(vocab_size, max_length, d_model, num_layers, *others, **named):
    return 12 * num_layers * d_model**2


@exercise.alternative
def counted_on_modules(
    vocab_size,
    max_length,
    d_model,
    num_layers,
    d_ff,
    segments=0,
    embedding_norm=False,
    final_norm=True,
    pooler=False,
):
    block = nn.TransformerEncoderLayer(d_model, 1, d_ff, device="meta")
    each = sum(weight.numel() for weight in block.parameters())
    rows = vocab_size + max_length + segments
    norms = 2 * d_model * (embedding_norm + final_norm)
    return rows * d_model + num_layers * each + norms + pooler * d_model * (d_model + 1)


@exercise.alternative
def added_up_step_by_step(vocab_size, max_length, d_model, num_layers, d_ff, segments=0, *flags, **named):
    names = ("embedding_norm", "final_norm", "pooler")
    has = {"embedding_norm": False, "final_norm": True, "pooler": False} | dict(zip(names, flags, strict=False)) | named
    total = (vocab_size + max_length) * d_model
    if segments:
        total += segments * d_model
    for _ in range(num_layers):
        total += 4 * (d_model * d_model + d_model) + (d_model * d_ff + d_ff) + (d_ff * d_model + d_model) + 4 * d_model
    for name in ("embedding_norm", "final_norm"):
        if has[name]:
            total += 2 * d_model
    if has["pooler"]:
        total += d_model * d_model + d_model
    return total
