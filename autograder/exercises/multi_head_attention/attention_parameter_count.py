"""Check `attention_parameter_count`: what a layer learns, and what the number of heads has to do with it."""

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.multi_head_attention import CHAPTER
from autograder.program import Program, call
from course_lib import multi_head


def drawn(draw: Draw, bias: bool) -> Program:
    """Draw a layer with at least 2 heads of at least 3 features."""
    heads, d_head = draw.integer(2, 6), draw.integer(3, 9)
    return call(heads * d_head, heads, bias)


def same_width_more_heads(draw: Draw) -> Program:
    """Ask for one width with several numbers of heads."""
    width = 12 * draw.integer(1, 4)
    return call(width, 1).call(width, 3).call(width, 12)


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=multi_head.attention_parameter_count,
    returns=("the count",),
    cases=[
        Case("512 features, 8 heads", lambda draw: call(512, 8)),
        Case("without biases", lambda draw: drawn(draw, bias=False)),
        Case("one width, 1, 3 and 12 heads", same_width_more_heads, hidden=True),
        Case("with biases", lambda draw: drawn(draw, bias=True), hidden=True),
        Case("bias given by name", lambda draw: call(draw.integer(2, 9) * 4, 4, bias=False), hidden=True),
        Case("GPT-2's layer", lambda draw: call(768, 12), hidden=True),
    ],
)


@exercise.misconception("""
    Your count grows with the number of heads. Heads cut the same matrices into pieces: h heads of d_model / h
    features are d_model features. Build a layer with 1 head and one with 12 and count both.
""")
def times_the_heads(d_model, num_heads, bias=True):
    return num_heads * multi_head.attention_parameter_count(d_model, num_heads, bias)


@exercise.misconception("""
    In your count every head projects to the full width d_model. A head projects to d_model / num_heads
    features only; together the heads have one square matrix each for queries, keys and values.
""")
def heads_of_full_width(d_model, num_heads, bias=True):
    return (3 * num_heads + 1) * (d_model * d_model + (d_model if bias else 0))


@exercise.misconception("""
    Your count has a term d_model · num_heads. One of the documents prints such a formula; no array in a layer
    has that size. Which of the layer's parameters would it be?
""")
def a_term_for_the_heads(d_model, num_heads, bias=True):
    return 4 * d_model * d_model + d_model * num_heads


@exercise.misconception("""
    Your count is short by one matrix: queries, keys and values are there, the output projection is missing.
""")
def output_projection_forgotten(d_model, num_heads, bias=True):
    return 3 * (d_model * d_model + (d_model if bias else 0))


@exercise.misconception("""
    You count the matrices and leave out the biases. There is one bias for every output feature of every
    projection, unless `bias` is False.
""")
def biases_forgotten(d_model, num_heads, bias=True):
    return 4 * d_model * d_model


@exercise.misconception("""
    You count the biases even when `bias` is False. Such a layer has only its four matrices.
""")
def biases_always(d_model, num_heads, bias=True):
    return 4 * (d_model * d_model + d_model)


@exercise.misconception("""
    You count one bias vector for the whole layer. Each of the four projections has its own.
""")
def one_bias_for_all(d_model, num_heads, bias=True):
    return 4 * d_model * d_model + (d_model if bias else 0)


@exercise.misconception("""
    You count one bias for each projection, a single number. A bias is a vector: one number for each output
    feature.
""")
def a_bias_of_one_number(d_model, num_heads, bias=True):
    return 4 * (d_model * d_model + (1 if bias else 0))


@exercise.misconception("""
    You count a single head: matrices of d_model by d_model / num_heads. All heads together are asked for.
""")
def one_head_only(d_model, num_heads, bias=True):
    return 4 * (d_model + (1 if bias else 0)) * (d_model // num_heads)


@exercise.alternative
def factored(d_model, num_heads, bias=True):
    return 4 * d_model * (d_model + bool(bias))


@exercise.alternative
def head_by_head(d_model, num_heads, bias=True):
    d_head = d_model // num_heads
    inputs = 3 * num_heads * (d_model * d_head + (d_head if bias else 0))
    return inputs + num_heads * d_head * d_model + (d_model if bias else 0)


@exercise.alternative
def over_a_real_layer(d_model, num_heads, bias=True):
    return sum(weight.numel() for weight in multi_head.MultiHeadAttention(d_model, num_heads, bias).parameters())
