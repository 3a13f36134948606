"""Check `fused_qkv`: three projections in one matrix product."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.multi_head_attention import CHAPTER
from autograder.program import Program, Run, call
from course_lib import grouped_query


def drawn(draw: Draw, *leading: int, widths: tuple[int, int, int] | None = None) -> Program:
    """Draw tokens and three matrices; by default queries, keys and values all differ in width."""
    d_model, *drawn_widths = draw.sizes(4, high=9)
    matrices = [draw.normal(d_model, width) for width in widths or drawn_widths]
    return call(draw.normal(*leading, d_model), *matrices).counting()


def equal_widths(draw: Draw) -> Program:
    """Draw three matrices of the same width, as in a layer whose heads share nothing."""
    return drawn(draw, 2, 3, widths=(6, 6, 6))


def narrow_keys(draw: Draw) -> Program:
    """Draw keys and values of a third of the queries' width, as grouped queries have them."""
    return drawn(draw, 2, 4, widths=(12, 4, 4))


def one_product(program: Program, run: Run) -> str | None:
    """Say how many matrix products ran, if it was not one."""
    assert run.counts is not None
    found = run.counts.matrix_products
    return None if found == 1 else f"the values are right, but {found} matrix products ran and one is enough"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=grouped_query.fused_qkv,
    returns=("q", "k", "v"),
    cases=[
        Case("three matrices of one width", equal_widths, limit=one_product),
        Case("keys and values a third as wide", narrow_keys, hidden=True, limit=one_product),
        Case("three different widths", lambda draw: drawn(draw, 3, 2), hidden=True, limit=one_product),
        Case("one sequence without a batch", lambda draw: drawn(draw, 5), hidden=True, limit=one_product),
        Case("float64", lambda draw: drawn(draw, 3, 2), hidden=True, dtype="float64", limit=one_product),
    ],
)


def _product(x, *matrices):
    return x @ torch.cat(matrices, dim=-1)


@exercise.misconception("""
    The values are right, but three matrix products ran, one for each matrix. Each column of a product depends
    on one column of the right matrix alone: what happens if the three matrices stand side by side?
""")
def three_products(x, w_q, w_k, w_v):
    return x @ w_q, x @ w_k, x @ w_v


@exercise.misconception("""
    You cut the wide result into three equal pieces. That fits only while queries, keys and values are equally
    wide; with shared key heads the keys and values are narrower. Where do the three widths stand?
""")
def three_equal_pieces(x, w_q, w_k, w_v):
    return _product(x, w_q, w_k, w_v).tensor_split(3, dim=-1)


@exercise.misconception("""
    You cut the wide result into pieces as wide as the queries. That fits only while keys and values are as
    wide; with shared key heads the second piece swallows both of them. Each matrix tells its own width.
""")
def pieces_as_wide_as_the_queries(x, w_q, w_k, w_v):
    return _product(x, w_q, w_k, w_v).split(w_q.shape[-1], dim=-1)


@exercise.misconception("""
    The pieces come out in another order than they went in: your first result is the keys. Side by side as
    [w_q | w_k | w_v], the product reads queries, keys, values from left to right.
""")
def keys_first(x, w_q, w_k, w_v):
    query, key, value = grouped_query.fused_qkv(x, w_q, w_k, w_v)
    return key, query, value


@exercise.misconception("""
    The matrices lie one below the other in your code: that makes more input features, not more output
    features. They share the rows (the features of x) and add columns. Along which axis should `torch.cat`
    join them?
""")
def joined_along_the_rows(x, w_q, w_k, w_v):
    return (x @ torch.cat([w_q, w_k, w_v], dim=0)).split([w.shape[-1] for w in (w_q, w_k, w_v)], dim=-1)


@exercise.misconception("""
    Your results are interleaved: you read the wide result as (features, 3), with q, k and v changing fastest,
    but the matrices stand in three whole blocks. Both layouts exist in real models; a weight written in one
    must be read in the same one.
""")
def interleaved(x, w_q, w_k, w_v):
    wide = _product(x, w_q, w_k, w_v)
    return wide[..., 0::3], wide[..., 1::3], wide[..., 2::3]


@exercise.misconception("""
    You return the wide result uncut. The caller needs three tensors: cut it at the widths of the three
    matrices.
""")
def left_in_one_piece(x, w_q, w_k, w_v):
    return _product(x, w_q, w_k, w_v)


@exercise.alternative
def sliced(x, w_q, w_k, w_v):
    wide = torch.matmul(x, torch.hstack((w_q, w_k, w_v)))
    first, second = w_q.shape[1], w_q.shape[1] + w_k.shape[1]
    return wide[..., :first], wide[..., first:second], wide[..., second:]


@exercise.alternative
def by_linear(x, w_q, w_k, w_v):
    wide = torch.nn.functional.linear(x, torch.cat([w_q.T, w_k.T, w_v.T]))
    return wide.split([w_q.shape[1], w_k.shape[1], w_v.shape[1]], -1)


@exercise.alternative
def by_einsum(x, w_q, w_k, w_v):
    wide = torch.einsum("...d,de->...e", x, torch.cat([w_q, w_k, w_v], 1))
    return list(torch.tensor_split(wide, [w_q.shape[1], w_q.shape[1] + w_k.shape[1]], dim=-1))


@exercise.alternative
def by_tensordot(x, w_q, w_k, w_v):
    wide = torch.tensordot(x, torch.cat([w_q, w_k, w_v], 1), dims=1)
    return tuple(piece.contiguous() for piece in wide.split([w.shape[1] for w in (w_q, w_k, w_v)], -1))


@exercise.alternative
def tokens_in_one_long_list(x, w_q, w_k, w_v):
    wide = torch.mm(x.reshape(-1, x.shape[-1]), torch.cat([w_q, w_k, w_v], 1))
    pieces = wide.split([w.shape[1] for w in (w_q, w_k, w_v)], -1)
    return tuple(piece.reshape(*x.shape[:-1], -1) for piece in pieces)
