"""Searches: counted work, a double loop as oracle, and what a population may and may not change."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.training.search import exploit_and_explore, successive_halving


def halving_by_elimination(configs, losses, rounds):
    """Remove the worst one by one; an independent way to the same result."""
    left = list(configs)
    for number in range(rounds - 1):
        keep = -(-len(left) // 2)
        while len(left) > keep:
            left.remove(max(left, key=lambda config: losses[config][number]))
    return min(left, key=lambda config: losses[config][rounds - 1])


@given(st.integers(1, 13), st.integers(1, 4), st.integers(0, 10_000))
def test_it_finds_what_removing_the_worst_one_by_one_finds(count, rounds, seed):
    losses = np.random.default_rng(seed).permutation(count * rounds).reshape(count, rounds)
    calls = []

    def evaluate(config, budget):
        calls.append((config, budget))
        return float(losses[config][budget])

    found = successive_halving(range(count), evaluate, range(rounds))
    assert found == halving_by_elimination(range(count), losses, rounds)
    expected, left = 0, count
    for _ in range(rounds):
        expected, left = expected + left, math.ceil(left / 2)
    assert len(calls) == len(set(calls)) == expected


def test_a_run_that_became_nan_is_dropped_first():
    losses = {"a": 1.0, "b": math.nan, "c": 2.0}
    assert successive_halving(["b", "a", "c"], lambda config, budget: losses[config], [1, 2]) == "a"


def test_nothing_to_search_is_refused():
    with pytest.raises(ValueError, match="at least one entry"):
        successive_halving([], lambda config, budget: 0.0, [1])


def population_of(count, generator):
    return [
        {"score": float(score), "params": {"rate": 10.0 ** -(index + 1), "decay": 0.1 * (index + 1)}, "weights": index}
        for index, score in enumerate(generator.permutation(count))
    ]


@given(st.integers(2, 20), st.sampled_from([0.0, 0.1, 0.2, 0.5]), st.integers(0, 1000))
def test_only_the_lowest_change_and_into_copies_of_the_highest(count, fraction, seed):
    population = population_of(count, np.random.default_rng(seed))
    before = copy.deepcopy(population)
    renewed = exploit_and_explore(population, np.random.default_rng(seed), fraction)
    assert population == before
    replaced = min(round(fraction * count), count // 2)
    order = np.argsort([member["score"] for member in population])
    lowest, highest = set(order[:replaced]), [population[index] for index in order[count - replaced :]]
    for index, member in enumerate(renewed):
        if index not in lowest:
            assert member == population[index]
            continue
        (parent,) = [other for other in highest if other["weights"] == member["weights"]]
        for name, value in member["params"].items():
            assert any(value == pytest.approx(parent["params"][name] * factor) for factor in (0.8, 1.2))


def test_both_factors_occur_and_each_parameter_gets_its_own():
    population = population_of(10, np.random.default_rng(0))
    seen = set()
    for seed in range(40):
        for member in exploit_and_explore(population, np.random.default_rng(seed)):
            parent = population[member["weights"]]["params"]
            seen.add(tuple(round(member["params"][name] / parent[name], 3) for name in parent))
    assert seen == {(1.0, 1.0), (0.8, 0.8), (0.8, 1.2), (1.2, 0.8), (1.2, 1.2)}


@pytest.mark.parametrize(("changed", "named"), [({"fraction": 0.7}, "`fraction`"), ({"factors": ()}, "`factors`")])
def test_impossible_arguments_are_named(changed, named):
    with pytest.raises(ValueError, match=named):
        exploit_and_explore(population_of(4, np.random.default_rng(0)), np.random.default_rng(0), **changed)
