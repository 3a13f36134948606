"""Check `expert_dispatch`: tokens grouped by expert, and the way back. The order inside a group is free."""

from typing import Any

import torch

from autograder.compare import same
from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.scaling_up import CHAPTER
from autograder.program import Program, Run, call
from autograder.values import Raised, describe
from course_lib.training import parallel


def drawn(draw: Draw, tokens: int | None = None, experts: int | None = None) -> Program:
    """Draw tokens that are all different, for experts that get unequal numbers of them."""
    tokens, experts = tokens or draw.integer(17, 23), experts or draw.integer(4, 6)
    chosen = draw.random.choice(experts, tokens, p=[(1 + e) / (experts * (experts + 1) / 2) for e in range(experts)])
    return call(draw.normal(tokens, draw.integer(2, 3)), draw.array(chosen, "int64"), experts)


def fixed(draw: Draw, chosen: list[int], experts: int) -> Program:
    """Take a choice of experts that decides."""
    return call(draw.normal(len(chosen), 3), torch.tensor(chosen), experts)


def _parts(outcome: Any) -> str | None:
    if not isinstance(outcome, (list, tuple)) or len(outcome) != 2:
        return f"expected a pair (grouped, restore), but the result is {describe(outcome)}"
    return None


def groups_and_back(program: Program, found: Run) -> str | None:
    """Give a sentence when tokens are lost, mixed up, not side by side, or not brought back."""
    x, expert_index, _ = program.steps[0].args
    problem = _parts(found.outcomes[0])
    if problem:
        return problem
    grouped, restore = found.outcomes[0]
    if not isinstance(grouped, torch.Tensor) or grouped.shape != x.shape or grouped.dtype != x.dtype:
        wanted = f"{tuple(x.shape)} and dtype {str(x.dtype).removeprefix('torch.')}"
        return f"expected grouped to be a tensor of shape {wanted}, but it is {describe(grouped)}"
    if not isinstance(restore, torch.Tensor) or restore.shape != (len(x),) or restore.dtype != torch.int64:
        return f"expected restore to be an int64 tensor of shape ({len(x)},), but it is {describe(restore)}"
    if len(x) and not bool((restore.sort().values == torch.arange(len(x))).all()):
        return "expected restore to name every row of grouped once, and it does not"
    if not torch.equal(grouped[restore], x):
        wrong = int((grouped[restore] != x).any(1).sum())
        return f"grouped[restore] should be x, but {wrong} of its {len(x)} rows are not"
    order = torch.empty_like(restore)
    order[restore] = torch.arange(len(x))
    experts = expert_index[order]
    if bool((experts[1:] < experts[:-1]).any()):
        return f"the rows of grouped belong to the experts {experts.tolist()}: those of one expert must be side by side"
    return None


def same_result(program: Program, ours: Run, theirs: Run) -> bool:
    """Tell whether two runs give the same pair, or fail alike."""
    first, second = ours.outcomes[0], theirs.outcomes[0]
    if isinstance(first, Raised) or isinstance(second, Raised):
        return first == second
    return same(first, second)


def case(name: str, program, hidden: bool = False, dtype: str | None = None) -> Case:
    """Make a case that accepts any order inside a group."""
    return Case(name, program, hidden=hidden, dtype=dtype, judge=groups_and_back, alike=same_result)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=parallel.expert_dispatch,
    returns=("grouped", "restore"),
    cases=[
        case("7 tokens, 3 experts", lambda draw: fixed(draw, [2, 0, 1, 0, 2, 1, 0], 3)),
        case("uneven loads", drawn),
        case("an expert without tokens", lambda draw: fixed(draw, [3, 0, 3, 2, 0, 2, 3, 0, 2], 5), hidden=True),
        case("all to one expert", lambda draw: fixed(draw, [1] * 6, 3), hidden=True),
        case("one token", lambda draw: fixed(draw, [2], 4), hidden=True),
        case("many tokens", lambda draw: drawn(draw, 200, 7), hidden=True),
        case("float64", drawn, hidden=True, dtype="float64"),
        case("in half precision", drawn, hidden=True, dtype="bfloat16"),
    ],
)


def orders(expert_index):
    order = torch.argsort(expert_index, stable=True)
    restore = torch.empty_like(order)
    restore[order] = torch.arange(len(order))
    return order, restore


@exercise.misconception("""
    Your second result says where each row of grouped came **from**; it is the order that you used. `grouped[restore]`
    should bring the tokens back, so it has to say where each token went **to**. With three tokens that change places in
    a ring, try both.
""")
def order_for_restore(x, expert_index, num_experts):
    order, _ = orders(expert_index)
    return x[order], order


@exercise.misconception("""
    The tokens are where they were: you did not group them. An expert gets one contiguous block, so that one message
    carries all of its tokens.
""")
def nothing_moved(x, expert_index, num_experts):
    return x.clone(), torch.arange(len(x))


@exercise.misconception("""
    You index with the experts' numbers: x[expert_index] takes row 2 for every token of expert 2. A choice of expert is
    not a place; which function turns choices into an order?
""")
def expert_as_place(x, expert_index, num_experts):
    return x[expert_index], expert_index.clone()


@exercise.misconception("""
    Your groups run from the last expert to the first. The devices expect the tokens of expert 0 first.
""")
def last_expert_first(x, expert_index, num_experts):
    order, restore = orders(-expert_index)
    return x[order], restore


@exercise.misconception("""
    You scatter the tokens with the order with which they should be gathered: `grouped[order] = x` and `x[order]` undo
    each other.
""")
def scattered(x, expert_index, num_experts):
    order, _ = orders(expert_index)
    grouped = torch.empty_like(x)
    grouped[order] = x
    return grouped, order


@exercise.misconception("""
    Your first result is a list with one tensor per expert. That is a natural form for a loop over experts; the
    contract asks for one tensor in which they follow each other, as an all-to-all sends it.
""")
def list_of_groups(x, expert_index, num_experts):
    return [x[expert_index == expert] for expert in range(num_experts)], orders(expert_index)[1]


@exercise.misconception("""
    Your groups are padded to equal lengths, (experts, capacity, d_model), as GShard and Switch do it on hardware that
    needs fixed shapes. The contract asks for the tokens themselves, one row each.
""")
def padded_groups(x, expert_index, num_experts):
    groups = [x[expert_index == expert] for expert in range(num_experts)]
    padded = torch.nn.utils.rnn.pad_sequence(groups, batch_first=True)
    return padded, orders(expert_index)[1]


@exercise.misconception("""
    Your second result is the number of tokens of each expert. An all-to-all needs that as well; the contract asks for
    the index that brings the tokens back.
""")
def counts_for_restore(x, expert_index, num_experts):
    return x[orders(expert_index)[0]], expert_index.bincount(minlength=num_experts)


@exercise.misconception("""
    Your second result is a permutation matrix. It does the same as an index, with n² numbers in place of n; the
    contract asks for the int64 index.
""")
def matrix_for_restore(x, expert_index, num_experts):
    order, restore = orders(expert_index)
    return x[order], torch.nn.functional.one_hot(restore, len(x))


@exercise.misconception("""
    Your second result is int32. As an index into a tensor the contract asks for int64, the dtype of `argsort`.
""")
def short_index(x, expert_index, num_experts):
    order, restore = orders(expert_index)
    return x[order], restore.int()


@exercise.misconception("""
    The tokens of the last expert are missing: the experts are 0 to num_experts - 1, and all of them get their tokens.
""")
def last_expert_forgotten(x, expert_index, num_experts):
    order = torch.cat([(expert_index == e).nonzero()[:, 0] for e in range(num_experts - 1)])
    return x[order], torch.argsort(order)


@exercise.alternative
def sorted_twice(x, expert_index, num_experts):
    order = expert_index.argsort()
    return x[order], order.argsort()


@exercise.alternative
def with_a_loop(x, expert_index, num_experts):
    order = torch.cat([(expert_index == expert).nonzero().squeeze(1) for expert in range(num_experts)])
    restore = torch.zeros(len(x), dtype=torch.long)
    for place, token in enumerate(order.tolist()):
        restore[token] = place
    return x.index_select(0, order), restore


@exercise.alternative
def by_counting(x, expert_index, num_experts):
    one_hot = torch.nn.functional.one_hot(expert_index, num_experts)
    starts = one_hot.sum(0).cumsum(0) - one_hot.sum(0)
    restore = (starts + one_hot.cumsum(0) - 1).gather(1, expert_index[:, None])[:, 0]
    grouped = torch.empty_like(x)
    grouped[restore] = x
    return [grouped, restore]


@exercise.alternative
def later_tokens_first(x, expert_index, num_experts):
    order = sorted(range(len(x)), key=lambda token: (int(expert_index[token]), -token))
    return torch.stack([x[token] for token in order]), torch.argsort(torch.tensor(order))
