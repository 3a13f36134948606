"""Check `feed_forward_cost`: what the network weighs and what a pass costs."""

from torch import nn

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.feed_forward import CHAPTER
from autograder.program import Program, call
from course_lib import feed_forward


def network(draw: Draw) -> Program:
    """Draw sizes of which none is a multiple that hides another."""
    d_model = draw.integer(30, 70)
    return call(draw.integer(5, 25), d_model, 3 * d_model + draw.integer(1, 20))


def narrow(draw: Draw) -> Program:
    """Let the hidden layer be narrower than the tokens, and the sequence longer than both."""
    d_model = draw.integer(30, 70)
    return call(draw.integer(200, 900), d_model, d_model - draw.integer(5, 20))


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=feed_forward.feed_forward_cost,
    returns=("parameters", "flops"),
    cases=[
        Case("BERT base on 512 tokens", lambda draw: call(512, 768, 3072)),
        Case("all sizes differ", network),
        Case("a long sequence, a narrow hidden layer", narrow, hidden=True),
        Case("one token", lambda draw: call(1, draw.integer(30, 70), draw.integer(100, 200)), hidden=True),
    ],
)


@exercise.misconception("""
    Your parameters are short by d_ff + d_model: those are the biases. They are numbers that training changes, so they
    count.
""")
def biases_forgotten(sequence, d_model, d_ff):
    return 2 * d_model * d_ff, 4 * sequence * d_model * d_ff


@exercise.misconception("""
    Both your biases have d_ff entries. A bias has one entry for each **output** of its layer; the second layer's
    outputs are d_model.
""")
def biases_alike(sequence, d_model, d_ff):
    return 2 * d_model * d_ff + 2 * d_ff, 4 * sequence * d_model * d_ff


@exercise.misconception("""
    You count one matrix. There are two, up to d_ff and back, and both cost parameters and FLOPs.
""")
def one_matrix(sequence, d_model, d_ff):
    return d_model * d_ff + d_ff + d_model, 2 * sequence * d_model * d_ff


@exercise.misconception("""
    Your FLOPs are half of ours: you count a multiplication and the addition after it as one. That convention
    ("MACs") is common too; in this course they are 2.
""")
def multiply_adds(sequence, d_model, d_ff):
    return 2 * d_model * d_ff + d_ff + d_model, 2 * sequence * d_model * d_ff


@exercise.misconception("""
    The biases are in your FLOPs. They cost additions, it is true, but few; here they count in the parameters only.
""")
def biases_in_flops(sequence, d_model, d_ff):
    parameters = 2 * d_model * d_ff + d_ff + d_model
    return parameters, 4 * sequence * d_model * d_ff + sequence * (d_ff + d_model)


@exercise.misconception("""
    Your FLOPs are twice the parameters, times the tokens: a good rule of thumb, but it counts every bias as a
    multiply-add. Take the two matrices alone.
""")
def twice_the_parameters(sequence, d_model, d_ff):
    parameters = 2 * d_model * d_ff + d_ff + d_model
    return parameters, 2 * sequence * parameters


@exercise.misconception("""
    Your parameters grow with the sequence. All tokens share the same two matrices; that is what "position-wise" means.
""")
def parameters_per_token(sequence, d_model, d_ff):
    parameters = 2 * d_model * d_ff + d_ff + d_model
    return sequence * parameters, 4 * sequence * d_model * d_ff


@exercise.misconception("""
    Your FLOPs are those of one token. The same two products run for each token of the sequence.
""")
def flops_of_one_token(sequence, d_model, d_ff):
    return 2 * d_model * d_ff + d_ff + d_model, 4 * d_model * d_ff


@exercise.misconception("""
    Your FLOPs grow with the square of the sequence. Here no token meets another; the square belongs to attention.
""")
def squared_in_the_sequence(sequence, d_model, d_ff):
    return 2 * d_model * d_ff + d_ff + d_model, 4 * sequence**2 * d_model


@exercise.misconception("""
    Your numbers do not depend on d_ff: 4 d_model is built in. That is the usual choice, but only one.
""")
def four_times_built_in(sequence, d_model, d_ff):
    return 8 * d_model**2 + 5 * d_model, 16 * sequence * d_model**2


@exercise.misconception("""
    The two results are in the other order: parameters first, then FLOPs.
""")
def order_exchanged(sequence, d_model, d_ff):
    return 4 * sequence * d_model * d_ff, 2 * d_model * d_ff + d_ff + d_model


@exercise.alternative
def layer_by_layer(sequence, d_model, d_ff):
    first, second = (d_model + 1) * d_ff, (d_ff + 1) * d_model
    return first + second, sequence * (2 * d_model * d_ff) + sequence * (2 * d_ff * d_model)


@exercise.alternative
def counted_on_a_module(sequence, d_model, d_ff):
    layers = [nn.Linear(d_model, d_ff, device="meta"), nn.Linear(d_ff, d_model, device="meta")]
    parameters = sum(weight.numel() for layer in layers for weight in layer.parameters())
    return parameters, 2 * sequence * sum(layer.weight.numel() for layer in layers)


@exercise.alternative
def as_a_list(sequence, d_model, d_ff):
    return [2 * d_model * d_ff + d_ff + d_model, 4 * sequence * d_model * d_ff]
