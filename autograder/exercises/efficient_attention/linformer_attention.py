"""Check `linformer_attention`: mix keys and values over the sequence, then attend."""

import math
from dataclasses import replace

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.efficient_attention import CHAPTER
from autograder.exercises.efficient_attention.budget import no_square
from autograder.program import Program, Run, call
from course_lib.efficient import linformer
from course_lib.tensor_attention import tensor_attention

SHARP = 2.0  # of the queries


def drawn(draw: Draw, leading: int = 2, n_q: int | None = None, equal: bool = False) -> Program:
    """Draw a sequence and two different matrices; all sizes differ."""
    *axes, rank, d_k, d_v = draw.sizes(leading + 3, low=2, high=7)
    length = draw.integer(11, 15)
    return call(
        draw.normal(*axes, n_q or length, d_k, scale=SHARP),
        draw.normal(*axes, length, d_k),
        draw.normal(*axes, length, d_v, mean=0.5),
        *(draw.normal(length if equal else rank, length, scale=0.6) for _ in range(2)),
    )


def drawn_and_counted(draw: Draw) -> Program:
    """Draw as many queries as keys, and count."""
    return drawn(draw).counting()


def rows_of_queries(program: Program, found: Run) -> str | None:
    """Say when the output has not one row for each query."""
    query, came = program.steps[0].args[0], found.outcomes[0]
    if came.dim() < 2 or came.shape[-2] == query.shape[-2]:
        return None
    return f"{query.shape[-2]} queries came in and {came.shape[-2]} rows came out: queries are not mixed"


def no_table(program: Program, found: Run) -> str | None:
    """Name a table of all pairs; a copy of an input is none, though einsum lays its heads side by side."""
    assert found.counts is not None
    inputs = {tensor.numel() for tensor in program.steps[0].args}
    others = frozenset(shape for shape in found.counts.shapes if math.prod(shape) not in inputs)
    return no_square(program, replace(found, counts=replace(found.counts, shapes=others)))


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=linformer.linformer_attention,
    returns=("the output",),
    properties=[rows_of_queries],
    cases=[
        Case("a batch of heads", drawn_and_counted, limit=no_table),
        Case("fewer queries than keys", lambda draw: drawn(draw, n_q=draw.integer(8, 10))),
        Case("one sequence", lambda draw: drawn(draw, leading=0), hidden=True),
        Case("float64", drawn_and_counted, hidden=True, dtype="float64", limit=no_table),
        Case("as many mixtures as keys", lambda draw: drawn(draw, leading=1, equal=True), hidden=True),
        Case("one query", lambda draw: drawn(draw, leading=1, n_q=1), hidden=True),
    ],
)


def _attend(query, key, value):
    return tensor_attention(query, key, value)[0]


@exercise.misconception("""
    Your scale comes from the rank k, the number of mixed keys. A score still sums over the d_k features of a query and
    a key, however many keys there are.
""")
def scale_from_the_rank(query, key, value, e, f):
    factor = math.sqrt(query.shape[-1] / e.shape[0])
    return _attend(query * factor, e @ key, f @ value)


@exercise.misconception("""
    Your scale comes from the length n. A score still sums over the d_k features of a query and a key.
""")
def scale_from_the_length(query, key, value, e, f):
    factor = math.sqrt(query.shape[-1] / e.shape[1])
    return _attend(query * factor, e @ key, f @ value)


@exercise.misconception("""
    Your scores are not divided by √d_k. Mixing the keys changes how many there are, not how a score is made.
""")
def no_scale(query, key, value, e, f):
    return _attend(query * math.sqrt(query.shape[-1]), e @ key, f @ value)


@exercise.misconception("""
    Your values are mixed by `e`, as the keys are; `f` has no influence. The two matrices are learned separately (the
    paper also tries sharing them, but says so).
""")
def keys_matrix_for_both(query, key, value, e, f):
    return _attend(query, e @ key, e @ value)


@exercise.misconception("""
    Your keys are mixed by `f`, as the values are; `e` has no influence.
""")
def values_matrix_for_both(query, key, value, e, f):
    return _attend(query, f @ key, f @ value)


@exercise.misconception("""
    The two matrices are swapped: `e` mixes the keys and `f` the values.
""")
def matrices_swapped(query, key, value, e, f):
    return _attend(query, f @ key, e @ value)


@exercise.misconception("""
    You take the full softmax first and mix its columns afterwards. Then rows of weights no longer sum to 1, and the
    table of all pairs was made after all. The keys are mixed **before** anyone looks at them.
""")
def mixed_after_the_softmax(query, key, value, e, f):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1)
    return weights @ e.mT @ (f @ value)


@exercise.misconception("""
    You calculate all scores and mix them, q kᵀ eᵀ. By the rules of products that is q (e k)ᵀ, and your values are
    right, but the table of all pairs stood in memory, which the mixing was to avoid. Which product should come first?
""")
def scores_mixed(query, key, value, e, f):
    weights = (query @ key.mT @ e.mT / math.sqrt(query.shape[-1])).softmax(-1)
    return weights @ (f @ value)


@exercise.misconception("""
    Your rows of `e` and `f` are divided by their sums first, as if they were averages. They are learned matrices like
    any other: a row need not sum to 1, and making it twice as large makes its key twice as long.
""")
def rows_averaged(query, key, value, e, f):
    e, f = (matrix / matrix.sum(-1, keepdim=True) for matrix in (e, f))
    return _attend(query, e @ key, f @ value)


@exercise.misconception("""
    You put a softmax over the rows of `e` and `f`. They act as they are, with negative entries too.
""")
def rows_softmaxed(query, key, value, e, f):
    return _attend(query, e.softmax(-1) @ key, f.softmax(-1) @ value)


@exercise.misconception("""
    This is plain attention over all n keys: `e` and `f` change nothing in it. Linformer mixes the n keys into k by `e`
    and the n values into k by `f`, and attends to the mixtures.
""")
def plain_attention(query, key, value, e, f):
    return _attend(query, key, value)


@exercise.misconception("""
    Your queries are mixed as well, so that k rows come out for n tokens. Every token keeps its own query and gets its
    own output; only what is looked at is compressed.
""")
def queries_mixed(query, key, value, e, f):
    if query.shape[-2] != e.shape[-1]:
        return _attend(query, e @ key, f @ value)
    return _attend(e @ query, e @ key, f @ value)


@exercise.misconception("""
    You return the weights along with the output. Here the output alone is asked for.
""")
def pair_returned(query, key, value, e, f):
    return tensor_attention(query, e @ key, f @ value)


@exercise.alternative
def by_einsum(query, key, value, e, f):
    keys, values = torch.einsum("kn,...nd->...kd", e, key), torch.einsum("kn,...nd->...kd", f, value)
    scores = torch.einsum("...qd,...kd->...qk", query, keys) * query.shape[-1] ** -0.5
    return torch.einsum("...qk,...kd->...qd", torch.softmax(scores, -1), values)


@exercise.alternative
def values_mixed_last_of_all(query, key, value, e, f):
    weights = torch.softmax(query @ (e @ key).transpose(-2, -1) / query.size(-1) ** 0.5, dim=-1)
    return weights.matmul(torch.matmul(f, value))


@exercise.alternative
def by_linear_layers(query, key, value, e, f):
    keys = torch.nn.functional.linear(key.mT, e).mT
    values = torch.nn.functional.linear(value.mT, f).mT
    scores = query / math.sqrt(query.shape[-1]) @ keys.mT
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    return exponentials @ values / exponentials.sum(-1, keepdim=True)


@exercise.alternative
def query_after_query(query, key, value, e, f):
    keys, values = e @ key, f @ value
    outputs = [_attend(one.unsqueeze(-2), keys, values) for one in query.unbind(-2)]
    return torch.cat(outputs, dim=-2)


@exercise.alternative
def library_attention_over_the_mixtures(query, key, value, e, f):
    return torch.nn.functional.scaled_dot_product_attention(query, e @ key, f @ value)
