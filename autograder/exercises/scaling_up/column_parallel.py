"""Check `column_parallel`: every device makes its own features of the output."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.scaling_up import CHAPTER
from autograder.exercises.scaling_up.shards import whole_output_made
from autograder.program import Program, Run, call
from course_lib.training import parallel


def drawn(draw: Draw, shards: int, *leading: int) -> Program:
    """Draw tokens and a weight whose columns can be shared evenly."""
    d_in, each = 5 + draw.integer(0, 4), 3 + draw.integer(0, 3)
    return call(draw.normal(*(leading or (draw.integer(10, 14),)), d_in), draw.normal(d_in, shards * each), shards)


def uneven(draw: Draw) -> Program:
    """Draw a weight whose columns cannot be shared evenly."""
    return call(draw.normal(3, 4), draw.normal(4, 10), 3)


def only_shards(program: Program, found: Run) -> str | None:
    """Give a sentence when the whole output was made before it was cut."""
    if not whole_output_made(program, found):
        return None
    width = program.steps[0].args[1].shape[1]
    return (
        f"the values are right, but a tensor with all {width} features was made and then cut: every device would have "
        "computed, and held, the whole layer"
    )


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=parallel.column_parallel,
    returns=(),
    cases=[
        Case("3 shards", lambda draw: drawn(draw, 3).counting(), limit=only_shards),
        Case("a batch on 2 shards", lambda draw: drawn(draw, 2, 4, 11).counting(), limit=only_shards),
        Case("10 columns on 3 shards", uneven),
        Case("one shard", lambda draw: drawn(draw, 1), hidden=True),
        Case("5 shards", lambda draw: drawn(draw, 5, 2, 13).counting(), hidden=True, limit=only_shards),
        Case("four axes", lambda draw: drawn(draw, 4, 2, 3, 11), hidden=True),
        Case("float64", lambda draw: drawn(draw, 3), dtype="float64", hidden=True),
        Case("a column per shard", lambda draw: call(draw.normal(6, 5), draw.normal(5, 4), 4), hidden=True),
    ],
)


def checked(weight, shards):
    if weight.shape[1] % shards:
        raise ValueError("shards")
    return weight.shape[1] // shards


@exercise.misconception("""
    The values are right, but you compute the whole output and cut it afterwards. Each device would then hold the
    whole weight and do all of the work. Cut the **weight**, and multiply by the pieces.
""")
def whole_output_cut(x, weight, shards):
    return list((x @ weight).split(checked(weight, shards), dim=-1))


@exercise.misconception("""
    Your shards hold rows of the weight, so the devices' results are partial sums of all features. (That is the other
    half of the pair, row parallel.) Here each device makes some of the features, complete.
""")
def rows_instead(x, weight, shards):
    checked(weight, shards)
    return [a @ b for a, b in zip(x.tensor_split(shards, -1), weight.tensor_split(shards, 0), strict=True)]


@exercise.misconception("""
    Your shards take every p-th column. The numbers are right and in another place: the shards side by side should be
    the output of the whole layer, so device 0 has the first columns, device 1 the next ones.
""")
def columns_dealt_out(x, weight, shards):
    checked(weight, shards)
    return [x @ weight[:, i::shards] for i in range(shards)]


@exercise.misconception("""
    You cut the batch: each device has some of the tokens and the whole weight. That is data parallel. Here every
    device has all tokens and some of the columns.
""")
def tokens_cut(x, weight, shards):
    checked(weight, shards)
    return [part @ weight for part in x.tensor_split(shards, 0)]


@exercise.misconception("""
    All your devices hold the same columns, the first ones.
""")
def same_columns(x, weight, shards):
    return [x @ weight[:, : checked(weight, shards)]] * shards


@exercise.misconception("""
    Your result is one tensor. Nothing has been sent yet: give what each device has, as a list.
""")
def joined_again(x, weight, shards):
    checked(weight, shards)
    return torch.cat([x @ part for part in weight.chunk(shards, 1)], -1)


@exercise.misconception("""
    You understand `shards` as the number of columns per shard. It is the number of devices, and of results.
""")
def shards_as_width(x, weight, shards):
    checked(weight, shards)
    return [x @ part for part in weight.split(shards, dim=1)]


@exercise.misconception("""
    10 columns cannot be shared evenly among 3 devices, and you go on with uneven shards. The slowest
    device decides, and messages of equal size need equal shards, so the contract asks for a `ValueError`.
""")
def uneven_accepted(x, weight, shards):
    return [x @ part for part in weight.tensor_split(shards, dim=1)]


@exercise.misconception("""
    10 columns cannot be shared evenly among 3 devices, and one column belongs to nobody in your result. The contract
    asks for a `ValueError`.
""")
def rest_dropped(x, weight, shards):
    each = weight.shape[1] // shards
    return [x @ weight[:, i * each : (i + 1) * each] for i in range(shards)]


@exercise.alternative
def with_slices(x, weight, shards):
    each, rest = divmod(weight.shape[1], shards)
    if rest:
        raise ValueError(f"{shards} shards cannot share {weight.shape[1]} columns")
    return [x @ weight[:, i * each : (i + 1) * each] for i in range(shards)]


@exercise.alternative
def with_chunks(x, weight, shards):
    if weight.size(1) % shards != 0:
        raise ValueError("shards")
    return tuple(torch.einsum("...i,io->...o", x, part) for part in torch.chunk(weight, shards, dim=-1))


@exercise.alternative
def with_linear(x, weight, shards):
    parts = weight.tensor_split(shards, dim=1)
    if len({part.shape for part in parts}) > 1:
        raise ValueError("the columns cannot be shared evenly")
    return [torch.nn.functional.linear(x, part.T) for part in parts]
