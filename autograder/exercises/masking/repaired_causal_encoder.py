"""Check `repaired_causal_encoder`: a bug hunt. The documents' causal encoder, which sees the future."""

import math

import torch
from torch import nn

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.masking import CHAPTER
from autograder.program import Program, Run, call
from autograder.values import Named
from course_lib import framework_encoder

WEIGHT_SCALE = 0.4  # large enough for every token to be felt


def build_encoder(
    d_model: int, heads: int, layers: int, seed: int, dtype: torch.dtype, norm_first: bool, training: bool
) -> nn.TransformerEncoder:
    """Build a stack of the framework, batch first and without dropout, with drawn weights."""
    layer = nn.TransformerEncoderLayer(
        d_model, heads, 2 * d_model, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    generator = torch.Generator().manual_seed(seed)
    for parameter in encoder.parameters():
        drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data = WEIGHT_SCALE * drawn + (parameter.ndim == 1)
        parameter.requires_grad_(training)
    return encoder.to(dtype).train(training)


def encoder(draw: Draw, dtype: torch.dtype, norm_first: bool = False, training: bool = True) -> Named:
    """Draw an encoder of two layers and two heads, of width 6."""
    return Named("encoder", (6, 2, 2, draw.integer(0, 2**31 - 1), dtype, norm_first, training))


def batch(draw: Draw, norm_first: bool = False, training: bool = True) -> Program:
    """Draw a batch whose size is smaller than its length."""
    dtype = getattr(torch, draw.dtype)
    return call(encoder(draw, dtype, norm_first, training), draw.normal(2, draw.integer(4, 7), 6))


def as_many_sequences_as_tokens(draw: Draw) -> Program:
    """Draw a batch whose size equals its length, where a mask of the wrong size raises no error."""
    side = draw.integer(3, 5)
    return call(encoder(draw, torch.float32), draw.normal(side, side, 6))


def one_sequence(draw: Draw) -> Program:
    """Draw a single sequence."""
    return call(encoder(draw, torch.float32), draw.normal(1, 5, 6))


def finite(program: Program, found: Run) -> str | None:
    """Give a sentence about outputs that are not numbers."""
    rows = found.outcomes[0].isnan().any(-1)
    if not rows.any():
        return None
    return (
        f"{int(rows.sum())} of {rows.numel()} output tokens are NaN: some query sees no key at all, and the next layer "
        "hands its NaN on"
    )


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=framework_encoder.causal_encoder,
    name="repaired_causal_encoder",
    returns=("the output",),
    properties=[finite],
    named={"encoder": build_encoder},
    cases=[
        Case("2 sequences", batch),
        Case("as many sequences as tokens", as_many_sequences_as_tokens),
        Case("pre-norm", lambda draw: batch(draw, norm_first=True), hidden=True),
        Case("in evaluation", lambda draw: batch(draw, training=False), hidden=True),
        Case("one sequence", one_sequence, hidden=True),
        Case("float64", batch, hidden=True, dtype="float64"),
    ],
)


def _future(length):
    return torch.ones(length, length, dtype=torch.bool).triu(1)


@exercise.misconception("""
    The framework's stack has no argument `src_mask`; each of its layers has one. What does the stack call its mask?
    This is the first of three faults, and the only one that speaks up: behind it wait the size and the direction of
    the mask.
""")
def keyword_left(encoder, x):
    causal_mask = torch.triu(torch.ones(len(x), len(x)), diagonal=1).bool()
    return encoder(x, src_mask=~causal_mask)


@exercise.misconception("""
    The keyword is mended; the mask has the wrong size and the wrong direction. Read off the length where tokens are
    counted, and then look at the first row of what you pass: which keys does the first token see?
""")
def keyword_mended(encoder, x):
    return encoder(x, mask=~_future(len(x)))


@exercise.misconception("""
    One fault is left, and it is the one that makes no noise: the mask is inverted. `causal_mask` is True at the future,
    and True hides, so it is ready to use. Turned round, it hides each token's own past and shows the future. Your loss
    would look better with it, not worse.
""")
def inversion_left(encoder, x):
    return encoder(x, mask=~_future(x.shape[1]))


@exercise.misconception("""
    The direction is right now. The size is not: you count sequences where you should count tokens. In a batch-first
    tensor the tokens lie along axis 1.
""")
def length_left(encoder, x):
    return encoder(x, mask=_future(len(x)))


@exercise.misconception("""
    Your encoder runs without a mask: every token sees the whole sequence, its future included.
""")
def mask_removed(encoder, x):
    return encoder(x)


@exercise.misconception("""
    You tell the stack that its mask is causal and give it none. `is_causal` is a hint about a mask that is there; by
    itself it hides nothing, and the framework refuses it.
""")
def hint_alone(encoder, x):
    return encoder(x, is_causal=True)


@exercise.misconception("""
    The diagonal is hidden too, so that a token cannot see itself and the first one sees nothing.
""")
def diagonal_hidden(encoder, x):
    length = x.shape[1]
    return encoder(x, mask=torch.ones(length, length, dtype=torch.bool).triu(0))


@exercise.misconception("""
    Each token still sees the next one, which is just what a language model is asked for.
""")
def next_token_visible(encoder, x):
    length = x.shape[1]
    return encoder(x, mask=torch.ones(length, length, dtype=torch.bool).triu(2))


@exercise.misconception("""
    You pass the table of ones as numbers. A mask of numbers is added to the scores: the future gains 1 and stays
    visible. `.bool()` was not one of the faults.
""")
def ones_added(encoder, x):
    length = x.shape[1]
    return encoder(x, mask=torch.ones(length, length, dtype=x.dtype).triu(1))


@exercise.alternative
def triangle_of_booleans(encoder, x):
    return encoder(x, mask=torch.triu(torch.ones(x.shape[1], x.shape[1]), diagonal=1).bool())


@exercise.alternative
def numbers_to_add(encoder, x):
    length = x.shape[1]
    return encoder(x, mask=torch.full((length, length), -math.inf, dtype=x.dtype).triu(1))


@exercise.alternative
def with_the_frameworks_helper(encoder, x):
    mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=x.dtype)
    return encoder(x, mask=mask, is_causal=True)


@exercise.alternative
def layer_by_layer(encoder, x):
    for layer in encoder.layers:
        x = layer(x, src_mask=_future(x.shape[1]))
    return x


@exercise.alternative
def lengthening_the_sequence(encoder, x):
    mask = _future(x.shape[1])
    return torch.cat([encoder(x[:, : n + 1], mask=mask[: n + 1, : n + 1])[:, -1:] for n in range(x.shape[1])], dim=1)
