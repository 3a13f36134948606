"""Check `successive_halving`: drop the weaker half early."""

import heapq
import itertools
import math
from collections.abc import Callable

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.training_in_practice import CHAPTER
from autograder.program import Program, Run, call
from autograder.values import Named
from course_lib.training import search

TRIES = 2000  # drawings of a table in which every belief finds another winner


class Bench:
    """A bench that knows the loss of every config at every budget."""

    def __init__(self, table: dict) -> None:
        self.table = table

    def evaluate(self, config: dict, budget: int) -> float:
        """Give the loss of a config after a budget."""
        losses = self.table[config["name"]]
        known = [int(other) for other in losses if int(other) <= budget]
        return losses[str(max(known))] if known else 9.0 + config["rate"]


def crossing(draw: Draw, count: int, budgets: list[int]) -> Program:
    """Draw losses at which the beliefs below find different winners."""
    totals = list(itertools.accumulate(budgets))
    steps = sorted({*budgets, *totals})
    names = [f"config {number}" for number in range(count)]
    configs = [{"name": name, "rate": draw.number(1e-4, 1e-2)} for name in names]
    for _ in range(TRIES):
        table = {name: {str(step): round(draw.number(0.1, 3.0), 6) for step in steps} for name in names}
        bench = Bench(table)
        winners = [belief(configs, bench.evaluate, budgets)["name"] for belief in DECIDED_BY_THE_TABLE]
        if search.successive_halving(configs, bench.evaluate, budgets)["name"] not in winners and _apart(winners):
            break
    return call(configs, Named("Bench", (table,), part="evaluate"), budgets)


def _apart(winners: list[str]) -> bool:
    return len(set(winners)) >= min(len(winners), 4)


def evaluated_as_often_as_needed(program: Program, found: Run) -> str | None:
    """Count the evaluations: each one may stand for hours of training."""
    configs, _, budgets = program.steps[0].args
    needed, left = 0, len(configs)
    for _ in budgets:
        needed, left = needed + left, math.ceil(left / 2)
    calls = found.calls.get("Bench.evaluate", 0)
    if calls > needed:
        return f"the winner is right, but `evaluate` was called {calls} times, and {needed} are enough"
    return None


def _case(name: str, count: int, budgets: list[int], hidden: bool = False) -> Case:
    return Case(
        name,
        lambda draw: crossing(draw, count, budgets),
        hidden=hidden,
        limit=evaluated_as_often_as_needed,
        alike=alike,
    )


def alike(program: Program, first: Run, second: Run) -> bool:
    """Tell whether two runs found the same and worked as much for it."""
    return first.outcomes == second.outcomes and first.calls == second.calls


def _rank(configs, evaluate, budget):
    losses = [evaluate(config, budget) for config in configs]
    return [configs[index] for index in sorted(range(len(configs)), key=losses.__getitem__)]


def _halve(configs, evaluate, budgets, kept: Callable[[int], int]):
    left = list(configs)
    for budget in budgets[:-1]:
        left = _rank(left, evaluate, budget)[: max(1, kept(len(left)))]
    return _rank(left, evaluate, budgets[-1])[0]


def rounds_down(configs, evaluate, budgets):
    return _halve(configs, evaluate, budgets, lambda count: count // 2)


def keeps_the_worst(configs, evaluate, budgets):
    return search.successive_halving(configs, lambda config, budget: -evaluate(config, budget), budgets)


def first_budget_decides(configs, evaluate, budgets):
    return _rank(configs, evaluate, budgets[0])[0]


def all_with_the_largest_budget(configs, evaluate, budgets):
    return _rank(configs, evaluate, budgets[-1])[0]


def no_last_round(configs, evaluate, budgets):
    left = list(configs)
    for budget in budgets[:-1]:
        left = _rank(left, evaluate, budget)[: math.ceil(len(left) / 2)]
    return left[0]


def budgets_added_up(configs, evaluate, budgets):
    return search.successive_halving(configs, evaluate, list(itertools.accumulate(budgets)))


def drops_one(configs, evaluate, budgets):
    return _halve(configs, evaluate, budgets, lambda count: count - 1)


def lowest_loss_ever(configs, evaluate, budgets):
    left, seen = list(configs), []
    for number, budget in enumerate(budgets):
        losses = [evaluate(config, budget) for config in left]
        seen += [(loss, config) for loss, config in zip(losses, left, strict=True)]
        order = sorted(range(len(left)), key=losses.__getitem__)
        if number < len(budgets) - 1:
            left = [left[index] for index in order[: math.ceil(len(left) / 2)]]
    return min(seen, key=lambda pair: pair[0])[1]


DECIDED_BY_THE_TABLE = (
    rounds_down,
    keeps_the_worst,
    first_budget_decides,
    all_with_the_largest_budget,
    no_last_round,
    budgets_added_up,
    drops_one,
    lowest_loss_ever,
)

exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=search.successive_halving,
    returns=("the best config",),
    named={"Bench": Bench},
    cases=[
        _case("7 configs, 3 budgets", 7, [10, 30, 90]),
        _case("9 configs, 3 budgets", 9, [5, 20, 40], hidden=True),
        _case("13 configs, 4 budgets", 13, [2, 4, 8, 16], hidden=True),
        _case("11 configs, 3 budgets", 11, [100, 200, 700], hidden=True),
    ],
)

exercise.misconception("""
    You keep ⌊n/2⌋ configs. With an odd number, the contract keeps the larger half, ⌈n/2⌉: 7 leave 4, and 3 leave 2.
""")(rounds_down)
exercise.misconception("""
    You keep the configs with the highest `evaluate`. It returns a loss: lower is better.
""")(keeps_the_worst)
exercise.misconception("""
    You decide with the first budget alone. Early losses are cheap and misleading: that is why the better half gets a
    larger budget and is judged again.
""")(first_budget_decides)
exercise.misconception("""
    You try all configs with the largest budget. That finds the best one, at the price that halving should save: after
    each budget only half of the configs go on.
""")(all_with_the_largest_budget)
exercise.misconception("""
    You do not use the last budget: the winner of the round before is returned. With the last budget all that are left
    are judged once more, and nobody is dropped but the losers of that.
""")(no_last_round)
exercise.misconception("""
    You add the budgets up. Each one is the whole amount of work of its round, so it goes to `evaluate` as it is.
""")(budgets_added_up)
exercise.misconception("""
    You drop one config in each round. Half of them should go.
""")(drops_one)
exercise.misconception("""
    You return the config that had the lowest loss in any round. Losses of different budgets cannot be compared: the
    last budget decides, among those that are left.
""")(lowest_loss_ever)


@exercise.misconception("""
    You return the loss of the winner. The config is asked for.
""")
def returns_the_loss(configs, evaluate, budgets):
    left = list(configs)
    for budget in budgets[:-1]:
        left = _rank(left, evaluate, budget)[: math.ceil(len(left) / 2)]
    return min(evaluate(config, budgets[-1]) for config in left)


@exercise.misconception("""
    The winner is right, but you call `evaluate` more than once for the same config and budget. Each call may stand for
    hours of training: keep the losses in a list, and sort with them.
""")
def evaluates_again(configs, evaluate, budgets):
    left = list(configs)
    for budget in budgets[:-1]:
        losses = [evaluate(config, budget) for config in left]
        order = sorted(range(len(left)), key=lambda index: evaluate(left[index], budget) + 0 * losses[index])
        left = [left[index] for index in order[: math.ceil(len(left) / 2)]]
    return min(left, key=lambda config: evaluate(config, budgets[-1]))


@exercise.alternative
def sorting_with_a_key(configs, evaluate, budgets):
    survivors = list(configs)
    for budget in budgets[:-1]:
        survivors = sorted(survivors, key=lambda config: evaluate(config, budget))[: (len(survivors) + 1) // 2]
    return min(survivors, key=lambda config: evaluate(config, budgets[-1]))


@exercise.alternative
def with_a_heap(configs, evaluate, budgets):
    left = list(configs)
    for place, budget in enumerate(budgets):
        keep = 1 if place == len(budgets) - 1 else -(-len(left) // 2)
        scored = [(evaluate(config, budget), index) for index, config in enumerate(left)]
        left = [left[index] for _, index in heapq.nsmallest(keep, scored)]
    return left[0]


@exercise.alternative
def recursively(configs, evaluate, budgets):
    ranked = sorted(zip([evaluate(c, budgets[0]) for c in configs], range(len(configs)), strict=True))
    if len(budgets) == 1:
        return configs[ranked[0][1]]
    better = [configs[index] for _, index in ranked[: math.ceil(len(configs) / 2)]]
    return recursively(better, evaluate, budgets[1:])
