"""Pairs of sentences: true successors where it says so, strangers otherwise, half of each."""

from collections import Counter

import numpy as np
import pytest

from course_lib.next_sentence import next_sentence_pairs

BAND = 0.06  # more than five standard deviations at the 2000 pairs below


def library(lengths=(700, 701, 602)):
    return [[f"{place}.{number}" for number in range(length)] for place, length in enumerate(lengths)]


def test_every_two_neighbors_give_one_pair_in_their_order():
    documents = library((4, 1, 3))
    pairs = next_sentence_pairs(documents, np.random.default_rng(0))
    assert [first for first, _, _ in pairs] == ["0.0", "0.1", "0.2", "2.0", "2.1"]


def test_a_true_pair_follows_and_a_random_one_comes_from_elsewhere():
    for first, second, is_next in next_sentence_pairs(library(), np.random.default_rng(1)):
        document, number = first.split(".")
        assert (second == f"{document}.{int(number) + 1}") == is_next
        assert (second.split(".")[0] == document) == is_next


def test_half_of_the_pairs_are_true():
    pairs = next_sentence_pairs(library(), np.random.default_rng(2))
    assert abs(np.mean([is_next for _, _, is_next in pairs]) - 0.5) < BAND


def test_random_sentences_come_from_everywhere_else():
    pairs = next_sentence_pairs(library((400, 400, 3)), np.random.default_rng(3))
    drawn = Counter(second.split(".")[0] for first, second, is_next in pairs if not is_next and first[0] == "0")
    assert drawn["1"] > 0
    assert len({second for _, second, is_next in pairs if not is_next}) > 200


def test_equal_generators_give_equal_pairs_and_others_do_not():
    first, second, third = (next_sentence_pairs(library(), np.random.default_rng(seed)) for seed in (4, 4, 5))
    assert first == second
    assert first != third


def test_short_documents_give_no_pair_and_a_lone_one_cannot_be_contrasted():
    assert next_sentence_pairs([["a"], [], ["b"]], np.random.default_rng(6)) == []
    with pytest.raises(ValueError, match="outside document 0"):
        next_sentence_pairs([["a", "b"]], np.random.default_rng(6))
