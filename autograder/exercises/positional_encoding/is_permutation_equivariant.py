"""Check `is_permutation_equivariant`: one property, asked of functions that look alike."""

from __future__ import annotations

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.positional_encoding import CHAPTER
from autograder.exercises.positional_encoding.mappings import NAMED
from autograder.program import Program, call
from autograder.values import Named
from course_lib import equivariance

TOKENS, WIDTH = 7, 4
MANY = 40  # enough terms that reordered sums differ in their last digits
ROUNDING = 1e-9
COARSE = 0.5  # a tolerance of half a feature's spread


def three_cycles(draw: Draw, length: int) -> np.ndarray:
    """Draw an order that is not its own inverse, moves the first place, and does not commute with reversing."""
    places = np.arange(length)
    while True:
        order = draw.random.permutation(length)
        own_inverse = np.array_equal(order[order], places)
        symmetric = np.array_equal(order[::-1], length - 1 - order)
        if not own_inverse and not symmetric and order[0] != 0 and order[-1] != length - 1:
            return order


def ask(name: str, tokens: int = TOKENS, width: int = WIDTH):
    """Make a case's program that asks about one function."""

    def program(draw: Draw) -> Program:
        return call(Named(name), draw.normal(tokens, width), draw.array(three_cycles(draw, tokens)))

    return program


def first_token_stays(draw: Draw) -> Program:
    """Shuffle all but the first token, whose causal output then stays as it was."""
    order = np.concatenate([[0], 1 + three_cycles(draw, TOKENS - 1)])
    return call(Named("causal_attention"), draw.normal(TOKENS, WIDTH), draw.array(order))


def last_token_stays(draw: Draw) -> Program:
    """Shuffle all but the last token, which sees the same tokens in another order and keeps its output."""
    order = np.concatenate([three_cycles(draw, TOKENS - 1), [TOKENS - 1]])
    return call(Named("causal_attention"), draw.normal(TOKENS, WIDTH), draw.array(order))


def both_ends_stay(draw: Draw) -> Program:
    """Shuffle the tokens between the first and the last, whose outputs stay as they were."""
    order = np.concatenate([[0], 1 + three_cycles(draw, TOKENS - 2), [TOKENS - 1]])
    return call(Named("causal_attention"), draw.normal(TOKENS, WIDTH), draw.array(order))


def neighbors_swapped(draw: Draw) -> Program:
    """Swap the last two tokens only."""
    order = np.arange(TOKENS)
    order[-2:] = order[:-3:-1]
    return call(Named("causal_attention"), draw.normal(TOKENS, WIDTH), draw.array(order))


def reversing_meets_its_own_order(draw: Draw) -> Program:
    """Ask of reversing with the reversed order, for which it does hold."""
    return call(Named("reversed_order"), draw.normal(TOKENS, WIDTH), draw.array(np.arange(TOKENS)[::-1]))


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=equivariance.is_permutation_equivariant,
    returns=("the answer",),
    named=NAMED,
    cases=[
        Case("attention", ask("attention_alone")),
        Case("attention with positions", ask("attention_with_positions")),
        Case("each token alone", ask("each_token_alone")),
        Case("causal attention", ask("causal_attention")),
        Case("attention over many tokens", ask("attention_alone", MANY, 6), hidden=True),
        Case("the mean, for every token", ask("mean_for_everyone"), hidden=True),
        Case("every feature sorted", ask("sorted_columns"), hidden=True),
        Case("the text turned around", ask("reversed_order"), hidden=True),
        Case("the text turned around, tried with that order", reversing_meets_its_own_order, hidden=True),
        Case("causal attention, the first token stays", first_token_stays, hidden=True),
        Case("causal attention, the last token stays", last_token_stays, hidden=True),
        Case("causal attention, both ends stay", both_ends_stay, hidden=True),
        Case("causal attention, the last two swapped", neighbors_swapped, hidden=True),
        Case("faint positions", ask("faint_positions"), hidden=True),
        Case("features rolled by place", ask("features_rolled_by_place"), hidden=True),
        Case("as many features as tokens", ask("attention_alone", TOKENS, TOKENS), hidden=True),
    ],
)


def _close(first, second, slack=ROUNDING):
    return bool(np.abs(np.asarray(first) - np.asarray(second)).max() <= slack)


@exercise.misconception("""
    You ask whether the outputs stay the same when the tokens are shuffled. That is invariance, and it says no to
    plain attention. Equivariance asks less: the outputs may move, but only along with their tokens. To what must
    you do the same shuffle before you compare?
""")
def asks_for_invariance(function, x, permutation):
    return _close(function(x[permutation]), function(x))


@exercise.misconception("""
    You say no to plain attention: the outputs went back by the inverse order where they should follow the same one.
    Swapping two tokens cannot show it, since a swap is its own inverse. Try the order [1, 2, 0] on three tokens: which
    token is first in `x[permutation]`, and which output is first in yours?
""")
def compares_with_the_inverse_order(function, x, permutation):
    return _close(function(x[permutation]), function(x)[np.argsort(permutation)])


@exercise.misconception("""
    You say yes to a function that turns the text around: comparing sorted values finds the same numbers, wherever
    they stand. Where they stand is the question here.
""")
def compares_sorted_values(function, x, permutation):
    return _close(np.sort(function(x[permutation]), axis=0), np.sort(function(x), axis=0))


@exercise.misconception("""
    You say no to attention over many tokens, where shuffled and unshuffled outputs differ by 1e-16. A sum in another
    order rounds differently, so floats need a tolerance. `np.allclose` has one.
""")
def demands_equal_bits(function, x, permutation):
    return bool(np.array_equal(function(x[permutation]), function(x)[permutation]))


@exercise.misconception("""
    You say yes to a function that adds a little more at every later place: your tolerance is as large as the effect.
    Rounding makes differences of 1e-15 here; how much more than that do you need to allow?
""")
def tolerates_too_much(function, x, permutation):
    return _close(function(x[permutation]), function(x)[permutation], slack=COARSE * float(np.std(x)))


@exercise.misconception("""
    You look at the first output only. In causal attention the first token sees only itself, so its output survives a
    shuffle that leaves it in place, while others change. Compare all rows.
""")
def looks_at_the_first_row(function, x, permutation):
    return _close(function(x[permutation])[0], function(x)[permutation][0])


@exercise.misconception("""
    You look at the last output only. In causal attention the last token sees all others, in whatever order they come,
    so its output survives a shuffle that leaves it in place, while others change. Compare all rows.
""")
def looks_at_the_last_row(function, x, permutation):
    return _close(function(x[permutation])[-1], function(x)[permutation][-1])


@exercise.misconception("""
    You compare one number per token, such as the sum of its features. A function that moves features around inside a
    token keeps that number and changes the token. Compare every feature of every row.
""")
def compares_sums_of_features(function, x, permutation):
    return _close(function(x[permutation]).sum(axis=-1), function(x)[permutation].sum(axis=-1))


@exercise.misconception("""
    You answer yes for every function, even for one that turns the text around. Is the shuffle used on both sides, and
    are the two sides computed separately? With the tokens in their old order, any function agrees with itself.
""")
def never_shuffles(function, x, permutation):
    return True


@exercise.misconception("""
    You answer no for every function, even for plain attention, where only rounding differs between the two sides.
    Print the largest difference, and the two shapes.
""")
def always_says_no(function, x, permutation):
    return False


@exercise.misconception("""
    You shuffle the features of each token, not the tokens. Rows are tokens: which axis does `x[permutation]` reorder,
    and which one `x[:, permutation]`?
""")
def shuffles_the_features(function, x, permutation):
    return _close(function(x[:, permutation]), function(x)[:, permutation])


@exercise.misconception("""
    You shuffle the outputs but not the tokens, so you ask whether the outputs are the same in every order. Both sides
    need the shuffle: once before the function, once after it.
""")
def shuffles_only_the_outputs(function, x, permutation):
    return _close(function(x), function(x)[permutation])


@exercise.misconception("""
    You try an order of your own and not the one that was given. The answer may depend on the order: turning a text
    around goes well with the reversed order, and with few others. Use `permutation`.
""")
def tries_an_order_of_its_own(function, x, permutation):
    order = np.roll(np.arange(len(x)), 1)
    return _close(function(x[order]), function(x)[order])


@exercise.misconception("""
    You compare averages over all tokens. A mean forgets which output belongs to which token, and that is what the
    question is about. Compare row by row.
""")
def compares_means(function, x, permutation):
    return _close(function(x[permutation]).mean(axis=0), function(x)[permutation].mean(axis=0))


@exercise.alternative
def with_allclose(function, x, permutation):
    return np.allclose(function(x[permutation]), function(x)[permutation])


@exercise.alternative
def by_a_permutation_matrix(function, x, permutation):
    matrix = np.eye(len(x))[permutation]
    return bool(np.allclose(function(matrix @ x), matrix @ function(x), atol=1e-8))


@exercise.alternative
def undoing_the_shuffle(function, x, permutation):
    back = np.argsort(permutation)
    return bool(np.isclose(function(x[permutation])[back], function(x)).all())


@exercise.alternative
def row_by_row(function, x, permutation):
    plain, shuffled = function(x), function(x[permutation])
    return all(np.allclose(shuffled[place], plain[token]) for place, token in enumerate(permutation))


@exercise.alternative
def by_the_norm_of_the_difference(function, x, permutation):
    difference = np.take(function(x), permutation, axis=0) - function(np.take(x, permutation, axis=0))
    return np.linalg.norm(difference) < 1e-6
