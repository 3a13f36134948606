"""Check `document_mask`: several documents in one sequence, each causal and none seen by another."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.masking import CHAPTER
from autograder.exercises.masking.properties import boolean
from autograder.program import Program, Run, call
from course_lib import masks


def packed(draw: Draw, rising: bool = False) -> torch.Tensor:
    """Lay documents of different lengths one after another; their ids fall and rise unless asked otherwise."""
    lengths = draw.sizes(3, low=1, high=5)
    low, middle, high = sorted(int(number) for number in draw.random.choice(50, 3, replace=False))
    ids = [low, middle, high] if rising else [middle, high, low]
    return torch.tensor([number for number, length in zip(ids, lengths, strict=True) for _ in range(length)])


def equal_lengths(draw: Draw) -> Program:
    """Lay documents of equal lengths one after another."""
    return call(torch.tensor([4, 4, 4, 1, 1, 1, 9, 9, 9]))


def own_tokens_before(program: Program, found: Run) -> str | None:
    """Give a sentence about the first query that sees the wrong keys."""
    mask, ids = found.outcomes[0], program.steps[0].args[0].tolist()
    for query, own in enumerate(ids):
        for key, other in enumerate(ids):
            wanted = key > query or own != other
            if bool(mask[query, key]) != wanted:
                whose = "its own document" if own == other else "another document"
                when = "later" if key > query else "the query itself" if key == query else "earlier"
                return (
                    f"query {query} of document {own} should{' not' if wanted else ''} see key {key} "
                    f"({when}, in {whose})"
                )
    return None


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=masks.document_mask,
    returns=("the mask",),
    properties=[boolean, own_tokens_before],
    cases=[
        Case("three documents, numbered upward", lambda draw: call(packed(draw, rising=True))),
        Case("three documents, numbered in any order", lambda draw: call(packed(draw))),
        Case("equal lengths", equal_lengths, hidden=True),
        Case("one document", lambda draw: call(torch.full((draw.integer(3, 6),), 8)), hidden=True),
        Case("every token a document", lambda draw: call(draw.array(draw.random.permutation(5))), hidden=True),
    ],
)


def _same(document_ids):
    return document_ids[:, None] == document_ids[None, :]


def _future(document_ids):
    return masks.causal_mask(len(document_ids))


@exercise.misconception("""
    Your mask is causal over the whole sequence: the second document reads the first, as if one text went on. Two
    tokens may meet only if they belong to the same document.
""")
def documents_not_separated(document_ids):
    return _future(document_ids)


@exercise.misconception("""
    Your documents are well apart, but inside each one a token sees what comes later. Every packed document should be
    causal too.
""")
def future_visible(document_ids):
    return ~_same(document_ids)


@exercise.misconception("""
    Your mask is the other way round: True stands where a token may look. In this course True hides.
""")
def inverted(document_ids):
    return ~masks.document_mask(document_ids)


@exercise.misconception("""
    Your mask hides a key only if it is in another document **and** in the future. One of the two is reason enough.
""")
def both_reasons_needed(document_ids):
    return _future(document_ids) & ~_same(document_ids)


@exercise.misconception("""
    A token cannot see itself in your mask, so that each document's first token sees nothing. The future begins behind
    the token.
""")
def diagonal_hidden(document_ids):
    return _future(document_ids) | ~_same(document_ids) | torch.eye(len(document_ids), dtype=torch.bool)


@exercise.misconception("""
    Inside a document your tokens see what comes later and not what came before. Rows are queries, columns are keys;
    the key must not be the later one.
""")
def past_hidden(document_ids):
    return _future(document_ids).T | ~_same(document_ids)


@exercise.misconception("""
    You compare the ids by size, as if documents were numbered in their order. An id is a name: only equal and
    different mean anything.
""")
def ids_compared_by_size(document_ids):
    return _future(document_ids) | (document_ids[None, :] > document_ids[:, None])


@exercise.misconception("""
    Your documents are cut at equal lengths. Where one ends is told by the ids, and lengths may differ.
""")
def cut_at_equal_lengths(document_ids):
    length = len(document_ids)
    count = len(document_ids.unique())
    block = torch.arange(length) // -(-length // count)
    return _future(document_ids) | (block[:, None] != block[None, :])


@exercise.misconception("""
    Your mask holds numbers to be added. The places are right; here a boolean mask is asked for, True where a key is
    hidden.
""")
def numbers_to_add(document_ids):
    return masks.additive_mask(masks.document_mask(document_ids), torch.float32)


@exercise.alternative
def two_reasons(document_ids):
    return torch.logical_or(_future(document_ids), document_ids.unsqueeze(1) != document_ids.unsqueeze(0))


@exercise.alternative
def visible_triangle_turned(document_ids):
    return ~_same(document_ids).tril()


@exercise.alternative
def blocks_on_the_diagonal(document_ids):
    lengths = torch.unique_consecutive(document_ids, return_counts=True)[1].tolist()
    visible = torch.block_diag(*(torch.ones(length, length).tril() for length in lengths))
    return visible == 0


@exercise.alternative
def cell_by_cell(document_ids):
    ids = document_ids.tolist()
    return torch.tensor([[j > i or ids[i] != ids[j] for j in range(len(ids))] for i in range(len(ids))])
