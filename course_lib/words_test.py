"""Text alternatives: the sentences say what the numbers say."""

# pyright: reportArgumentType=false
import numpy as np
import pytest

from course_lib.words import describe_bars, describe_curves, describe_weights

WEIGHTS = np.array([[0.61, 0.3, 0.09], [0.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.97, 0.03, 0.0]])


def test_each_query_is_told_with_its_best_and_its_next_key():
    told = describe_weights(WEIGHTS, queries=["w1", "w2", "w3", "w4"], keys=["a", "b", "c"])
    assert told == (
        "Attention weights of 4 queries over 3 keys. "
        "Query 'w1' looks most at key 'a' (0.61), then at 'b' (0.30). "
        "Query 'w2' looks at nothing. "
        "Query 'w3' looks equally at every key (0.33). "
        "Query 'w4' looks most at key 'a' (0.97)."
    )


def test_a_hidden_cell_is_counted_and_never_named():
    told = describe_weights([[0.6, 0.4]], keys=["past", "future"], mask=np.array([[False, True]]))
    assert told == (
        "Attention weights of 1 query over 2 keys, 1 cell hidden. Query '0' looks most at key 'past' (0.60)."
    )


def test_a_large_table_is_told_in_part_and_then_in_sum():
    told = describe_weights(np.eye(40))
    assert told.count("looks most") == 12
    assert told.endswith("Over all queries the largest weight is 1.00 on average.")


def test_a_curve_that_turns_is_told_with_its_turning_point():
    x = np.array([4, 16, 64])
    told = describe_curves(x, {"raw": np.array([2.0, 4, 8]), "bent": np.array([3.0, 1, 2])}, "d_k", "score std")
    assert told == (
        "Score std over d_k, from 4 to 64. raw: 2 at the start, 8 at the end. "
        "bent: 3 at the start, 2 at the end, lowest 1 at 16."
    )


def test_bars_are_told_with_their_values():
    assert describe_bars({"with": 1.0, "without": 0.3207}, "accuracy", 2) == ("Bars of accuracy: with 1, without 0.32.")


@pytest.mark.parametrize(
    ("weights", "options", "error", "words"),
    [
        (np.zeros((2, 3, 4)), {}, ValueError, r"`weights` must be one \(query, key\) table, got shape \(2, 3, 4\)"),
        (np.zeros((0, 3)), {}, ValueError, "`weights` must be one"),
        (np.eye(2), {"queries": ["a"]}, ValueError, "`queries` has 1 labels; the table of weights needs 2"),
        (np.eye(2), {"keys": "abc"}, ValueError, "`keys` has 3 labels"),
        (np.eye(2), {"mask": np.eye(2)}, TypeError, "`mask` must be boolean"),
        (np.eye(2), {"mask": np.zeros((3, 2), dtype=bool)}, ValueError, r"`mask` has shape \(3, 2\)"),
    ],
)
def test_a_table_that_does_not_fit_is_named(weights, options, error, words):
    with pytest.raises(error, match=words):
        describe_weights(weights, **options)
