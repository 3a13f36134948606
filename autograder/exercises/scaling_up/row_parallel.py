"""Check `row_parallel`: partial products of every device, and one sum for the pair of layers."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.scaling_up import CHAPTER
from autograder.exercises.scaling_up.shards import same_calls, shapes_of
from autograder.program import Program, Run, call
from autograder.values import Named
from course_lib.training import parallel


def drawn(draw: Draw, shards: int, *leading: int) -> Program:
    """Draw features that are spread over devices, and a weight."""
    each, d_out = draw.integer(3, 5), draw.integer(31, 37)
    shape = leading or (draw.integer(6, 9),)
    xs = [draw.normal(*shape, each) for _ in range(shards)]
    return call(xs, draw.normal(shards * each, d_out), Named("all_reduce")).counting()


def one_sum(program: Program, found: Run) -> str | None:
    """Give a sentence when another number of sums was asked for, or when the features were gathered."""
    calls, d_in = found.calls.get("all_reduce", 0), program.steps[0].args[1].shape[0]
    if calls != 1:
        return f"the values are right, but `all_reduce` was called {calls} times; the pair of layers needs it once"
    if any(shape[-1:] == (d_in,) for shape in shapes_of(found)):
        return f"the values are right, but all {d_in} features were gathered in one place first"
    return None


def case(name: str, program, hidden: bool = False, dtype: str | None = None) -> Case:
    """Make a case that counts the sums."""
    return Case(name, program, hidden=hidden, dtype=dtype, limit=one_sum, alike=same_calls)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=parallel.row_parallel,
    returns=("the output",),
    named={"all_reduce": parallel.all_reduce},
    cases=[
        case("3 shards", lambda draw: drawn(draw, 3)),
        case("a batch on 2 shards", lambda draw: drawn(draw, 2, 3, 7)),
        case("one shard", lambda draw: drawn(draw, 1), hidden=True),
        case("5 shards", lambda draw: drawn(draw, 5, 2, 7), hidden=True),
        case("float64", lambda draw: drawn(draw, 4), hidden=True, dtype="float64"),
        case("four axes", lambda draw: drawn(draw, 2, 2, 3, 7), hidden=True),
    ],
)


def partials(xs, weight):
    return [x @ rows for x, rows in zip(xs, weight.chunk(len(xs), 0), strict=True)]


@exercise.misconception("""
    The values are right, but you add the partial results yourself. They lie on different devices; `all_reduce` is what
    carries and adds them, and its calls are what this layer costs.
""")
def summed_by_hand(xs, weight, all_reduce):
    return sum(partials(xs, weight))


@exercise.misconception("""
    The values are right, but you call `all_reduce` once for each device. It takes the list of **all** partial results
    and adds them in one go; every call is a round trip through the network.
""")
def one_call_each(xs, weight, all_reduce):
    return sum(all_reduce([part]) for part in partials(xs, weight))


@exercise.misconception("""
    The values are right, but you add them pair by pair, with an `all_reduce` for every pair. One call takes the whole
    list.
""")
def pair_by_pair(xs, weight, all_reduce):
    parts = partials(xs, weight)
    total = parts[0]
    for part in parts[1:]:
        total = all_reduce([total, part])
    return total if len(parts) > 1 else all_reduce(parts)


@exercise.misconception("""
    The values are right, but you gather all features in one place and multiply by the whole weight there. Each
    device has the rows for its own features: multiply first, then only results of the output's size are sent.
""")
def features_gathered(xs, weight, all_reduce):
    return all_reduce([torch.cat(list(xs), -1) @ weight])


@exercise.misconception("""
    Your output is the mean of the partial results. They are parts of one sum: the product over all rows is the sum of
    the products over some.
""")
def mean_for_sum(xs, weight, all_reduce):
    return all_reduce(partials(xs, weight)) / len(xs)


@exercise.misconception("""
    You put the partial results side by side. Every device has a summand of **every** feature of the output; they are
    added.
""")
def partials_joined(xs, weight, all_reduce):
    return torch.cat([all_reduce([part]) for part in partials(xs, weight)], -1)


@exercise.misconception("""
    Every device multiplies by the first block of rows. Device 1 holds other features, and they belong to other rows.
""")
def first_rows_everywhere(xs, weight, all_reduce):
    rows = weight[: weight.shape[0] // len(xs)]
    return all_reduce([x @ rows for x in xs])


@exercise.misconception("""
    Your rows are dealt out, every p-th to a device. The features come in blocks, so the rows are cut in blocks as
    well.
""")
def rows_dealt_out(xs, weight, all_reduce):
    return all_reduce([x @ weight[i :: len(xs)] for i, x in enumerate(xs)])


@exercise.misconception("""
    The blocks of rows go to the devices in the reverse order.
""")
def rows_reversed(xs, weight, all_reduce):
    return all_reduce([x @ rows for x, rows in zip(xs, weight.chunk(len(xs), 0)[::-1], strict=True)])


@exercise.misconception("""
    You add the features of all devices before the product. They are different features and not summands of one: sum
    what comes **out**.
""")
def inputs_summed(xs, weight, all_reduce):
    return all_reduce(list(xs)) @ weight[: weight.shape[0] // len(xs)]


@exercise.misconception("""
    Your result is the list of partial results. After the sum every device has the same output: return that one tensor.
""")
def partials_returned(xs, weight, all_reduce):
    all_reduce(partials(xs, weight))
    return partials(xs, weight)


@exercise.alternative
def with_a_loop(xs, weight, all_reduce):
    start, parts = 0, []
    for x in xs:
        parts.append(x @ weight[start : start + x.shape[-1]])
        start += x.shape[-1]
    return all_reduce(parts)


@exercise.alternative
def with_einsum(xs, weight, all_reduce):
    blocks = weight.reshape(len(xs), -1, weight.shape[-1])
    return all_reduce(tuple(torch.einsum("...i,io->...o", x, block) for x, block in zip(xs, blocks, strict=True)))


@exercise.alternative
def with_linear(xs, weight, all_reduce):
    rows = torch.tensor_split(weight, len(xs))
    return all_reduce([torch.nn.functional.linear(x, part.t()) for x, part in zip(xs, rows, strict=True)])
