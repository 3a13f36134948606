"""Check `activation_bytes`: what a stack keeps between its two passes."""

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.scaling_up import CHAPTER
from autograder.program import Program, call
from course_lib import activation_memory


def drawn(draw: Draw, **given) -> Program:
    """Draw sizes that all differ, with more tokens than a small width hides."""
    batch, heads, layers = draw.sizes(3, low=3, high=12)
    return call(batch, draw.integer(100, 190), draw.integer(40, 90), heads, layers, **given)


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=activation_memory.activation_bytes,
    returns=("the number of bytes",),
    cases=[
        Case("GPT-3, one sequence", lambda draw: call(1, 2048, 12288, 96, 96)),
        Case("all sizes differ", drawn),
        Case("checkpointing", lambda draw: drawn(draw, checkpointing=True)),
        Case("float32", lambda draw: drawn(draw, itemsize=4), hidden=True),
        Case("checkpointing in float32", lambda draw: drawn(draw, checkpointing=True, itemsize=4), hidden=True),
        Case("one layer of one head", lambda draw: call(3, draw.integer(100, 190), 64, 1, 1), hidden=True),
        Case("a long sequence", lambda draw: call(2, draw.integer(5000, 9000), 256, 4, 3), hidden=True),
    ],
)


def total(batch, sequence, d_model, heads, layers, checkpointing, itemsize, *, linear=34, maps=5, kept=None):
    """Count with each part of the formula as it is or changed."""
    if checkpointing:
        return (layers * batch * sequence * d_model * itemsize) if kept is None else kept
    return layers * batch * sequence * (linear * d_model + maps * heads * sequence) * itemsize / 2


@exercise.misconception("""
    The maps are missing: without the term 5·heads·sequence / d_model your count is right only for short sequences.
    That term is the one that grows with the square of the length.
""")
def maps_forgotten(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    return total(batch, sequence, d_model, heads, layers, checkpointing, itemsize, maps=0)


@exercise.misconception("""
    One map per layer is in your count. Every head has a map of its own, and each is as large as all the others.
""")
def one_map_per_layer(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    return total(batch, sequence, d_model, 1, layers, checkpointing, itemsize)


@exercise.misconception("""
    Your count is that of one layer. Every layer keeps its own activations until the backward pass comes back to it.
""")
def one_layer(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    return total(batch, sequence, d_model, heads, 1, checkpointing, itemsize)


@exercise.misconception("""
    The batch has no influence on your count. Weights are shared by all sequences; activations are not.
""")
def batch_forgotten(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    return total(1, sequence, d_model, heads, layers, checkpointing, itemsize)


@exercise.misconception("""
    With checkpointing your count is as large as without: `checkpointing` has no influence. Each layer then keeps its
    input and nothing else.
""")
def checkpointing_ignored(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    return total(batch, sequence, d_model, heads, layers, False, itemsize)


@exercise.misconception("""
    With checkpointing you keep a single input for the whole stack. To compute a layer again one needs **its** input,
    so every layer keeps one.
""")
def one_checkpoint(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    kept = batch * sequence * d_model * itemsize
    return total(batch, sequence, d_model, heads, layers, checkpointing, itemsize, kept=kept)


@exercise.misconception("""
    With checkpointing your layers keep nothing at all. From what would they be computed again?
""")
def nothing_kept(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    return total(batch, sequence, d_model, heads, layers, checkpointing, itemsize, kept=0)


@exercise.misconception("""
    With checkpointing you count the inputs in numbers. Each takes `itemsize` bytes. (In the other formula the bytes
    are inside the 34 and the 5 already.)
""")
def inputs_in_numbers(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    kept = layers * batch * sequence * d_model
    return total(batch, sequence, d_model, heads, layers, checkpointing, itemsize, kept=kept)


@exercise.misconception("""
    With checkpointing you add a whole layer's activations to the inputs. That is what the backward pass needs for a
    moment, and a fair thing to plan for; the contract asks what is **kept** between the passes.
""")
def one_layer_added(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    kept = layers * batch * sequence * d_model * itemsize
    kept += total(batch, sequence, d_model, heads, 1, False, itemsize)
    return total(batch, sequence, d_model, heads, layers, checkpointing, itemsize, kept=kept)


@exercise.misconception("""
    Your count is twice what it should be in half precision: the 34 and the 5 are **bytes** at two bytes a number
    already, not numbers. Scale by itemsize / 2.
""")
def numbers_for_bytes(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    return total(batch, sequence, d_model, heads, layers, checkpointing, itemsize, linear=68, maps=10)


@exercise.misconception("""
    Two bytes a number are built in: `itemsize` has no influence.
""")
def two_bytes_built_in(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    return total(batch, sequence, d_model, heads, layers, checkpointing, 2)


@exercise.misconception("""
    The sequence stands squared in front of everything. Only the maps have an entry for every **pair** of tokens; the
    34 count what each token has.
""")
def everything_squared(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    if checkpointing:
        return total(batch, sequence, d_model, heads, layers, True, itemsize)
    return layers * batch * sequence**2 * (34 * d_model + 5 * heads * sequence) * itemsize / 2


@exercise.alternative
def as_in_the_paper(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    if checkpointing:
        return layers * batch * sequence * d_model * itemsize
    return layers * sequence * batch * d_model * (34 + 5 * heads * sequence / d_model) * (itemsize / 2)


@exercise.alternative
def in_whole_numbers(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    tokens = batch * sequence
    if checkpointing:
        return sum(tokens * d_model * itemsize for _ in range(layers))
    return layers * (17 * tokens * d_model * itemsize + 5 * batch * heads * sequence**2 * itemsize // 2)


@exercise.alternative
def part_by_part(batch, sequence, d_model, heads, layers, checkpointing=False, itemsize=2):
    one = batch * sequence * d_model
    if checkpointing:
        return float(layers * one * itemsize)
    attention = 11 * one + 5 * batch * heads * sequence**2
    return layers * (attention + 19 * one + 4 * one) * itemsize / 2
