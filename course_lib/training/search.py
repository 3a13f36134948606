"""Find hyperparameters with a budget: drop the weaker half early, or let a population learn from its best."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

Config = TypeVar("Config")
Member = dict[str, Any]


def successive_halving(
    configs: Sequence[Config], evaluate: Callable[[Config, int], float], budgets: Sequence[int]
) -> Config:
    """Try all with the first budget, keep the better half (rounded up) for the next one, and so on; return the best.

    Args:
        configs: what is to be compared.
        evaluate: gives the loss of a config that was trained with a budget; lower is better, NaN is worst.
        budgets: growing amounts of work, such as training steps.

    Raises:
        ValueError: there is no config or no budget.

    Source: Jamieson and Talwalkar 2016, fig. 2, arXiv 1502.07943. The paper splits one total budget evenly over the
    rounds; here the budgets are given.
    """
    if not len(configs) or not len(budgets):
        raise ValueError("`configs` and `budgets` must hold at least one entry each.")
    left = list(configs)
    for budget in budgets[:-1]:
        left = _ranked(left, evaluate, budget)[: math.ceil(len(left) / 2)]
    return _ranked(left, evaluate, budgets[-1])[0]


def _ranked(configs: list[Config], evaluate: Callable[[Config, int], float], budget: int) -> list[Config]:
    losses = [evaluate(config, budget) for config in configs]
    order = sorted(range(len(configs)), key=lambda index: _sortable(losses[index]))
    return [configs[index] for index in order]


def _sortable(loss: float) -> float:
    """Put NaN last: comparisons with it are all false, so sorting would leave it anywhere."""
    return math.inf if math.isnan(loss) else loss


def exploit_and_explore(
    population: Sequence[Mapping[str, Any]],
    generator: np.random.Generator,
    fraction: float = 0.2,
    factors: tuple[float, ...] = (0.8, 1.2),
) -> list[Member]:
    """Replace the lowest members by copies of the highest, each parameter multiplied by one of the factors.

    Args:
        population: members with a `score`, higher is better, and `params`, floats by name. Whatever else a member
            carries, such as its weights, is handed on with it.
        generator: chooses whom to copy, and a factor for each parameter.
        fraction: share of members that are replaced; their number is rounded, and is at most half.
        factors: what a parameter may be multiplied by.

    Returns:
        A new list in the old order; the members that stay are unchanged.

    Raises:
        ValueError: `fraction` is not between 0 and 0.5, or there are no factors.

    Source: Jaderberg et al. 2017, §4.1, arXiv 1711.09846: truncation selection of 20 % and perturbation by 0.8 or 1.2.
    """
    if not 0 <= fraction <= 0.5:
        raise ValueError(f"`fraction` must lie between 0 and 0.5, got {fraction}.")
    if not len(factors):
        raise ValueError("`factors` is empty; give at least one.")
    count = min(round(fraction * len(population)), len(population) // 2)
    order = sorted(range(len(population)), key=lambda index: population[index]["score"])
    best = order[len(order) - count :]
    renewed: list[Member] = [dict(member) for member in population]
    for index in order[:count]:
        model = population[best[generator.integers(count)]]
        moved = {name: value * float(generator.choice(factors)) for name, value in model["params"].items()}
        renewed[index] = {**model, "params": moved}
    return renewed
