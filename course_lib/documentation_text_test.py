"""Python's documentation as a text: no repeats across the split, windows at honest places, baselines by hand."""

import math
from collections import Counter
from pydoc_data.topics import topics

import pytest
import torch

from course_lib.documentation_text import (
    PAIR_SMOOTHING,
    Characters,
    all_windows,
    bigram_loss,
    bigram_table,
    character_shares,
    documentation_text,
    neighbor_loss,
    paragraphs,
    windows,
)

EXACT = 1e-12
SMALL_TEXT = torch.tensor([0, 1, 0, 2, 0, 1, 1, 2])


def test_a_text_survives_numbering():
    text = documentation_text()
    written = text.characters.decode(text.validation)
    assert torch.equal(text.characters.encode(written), text.validation)


def test_ids_without_a_character_are_shown_as_a_dot():
    characters = Characters("abc")
    assert characters.decode([0, 3, 2]) == "a·c"
    assert characters.decode(torch.tensor([-1]), beyond="?") == "?"


def test_an_unknown_character_is_named():
    with pytest.raises(ValueError, match="'z'"):
        Characters("abc").encode("abz")


def test_the_text_is_english_about_python_and_long_enough_to_learn_from():
    text = documentation_text()
    assert len(text.train) > 250_000
    assert 0.05 < len(text.validation) / (len(text.train) + len(text.validation)) < 0.2
    assert "iterator" in text.characters.decode(text.train)
    assert 80 < text.vocab_size < 200


def test_no_paragraph_stands_twice():
    counts = Counter(" ".join(paragraph.split()) for paragraph in paragraphs())
    assert counts.most_common(1)[0][1] == 1


def test_about_a_fifth_of_the_help_is_repeats():
    every = [" ".join(paragraph.split()) for topic in topics.values() for paragraph in topic.split("\n\n")]
    kept = sum(len(" ".join(paragraph.split())) for paragraph in paragraphs())
    assert 0.15 < 1 - kept / sum(map(len, every)) < 0.25


def test_no_paragraph_of_the_test_stands_in_training():
    text = documentation_text()
    trained = set(text.characters.decode(text.train).split("\n\n"))
    aside = set(text.characters.decode(text.validation).split("\n\n"))
    assert not trained & aside


def test_windows_are_pieces_of_the_text_and_cover_both_ends():
    tokens = torch.arange(10)
    cut = windows(tokens, 400, 4, torch.Generator().manual_seed(0))
    assert torch.equal(cut - cut[:, :1], torch.arange(4).expand(400, 4))
    assert set(cut[:, 0].tolist()) == set(range(7))


def test_windows_of_equal_generators_are_equal():
    first, second = (windows(torch.arange(99), 5, 7, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize(("batch", "length"), [(0, 3), (2, 0), (2, 9)])
def test_windows_that_cannot_be_cut_are_refused(batch, length):
    with pytest.raises(ValueError, match="must"):
        windows(torch.arange(8), batch, length)


def test_windows_side_by_side_hold_every_token_once():
    assert torch.equal(all_windows(torch.arange(11), 4), torch.arange(8).reshape(2, 4))
    with pytest.raises(ValueError, match="length"):
        all_windows(torch.arange(3), 4)


def test_character_shares_sum_to_one():
    assert torch.equal(character_shares(SMALL_TEXT, 4), torch.tensor([3, 3, 2, 0]).double() / 8)


def test_the_bigram_table_counts_pairs_one_by_one():
    table = bigram_table(SMALL_TEXT, 3)
    pairs = Counter(zip(SMALL_TEXT[:-1].tolist(), SMALL_TEXT[1:].tolist(), strict=True))
    for previous in range(3):
        total = sum(pairs[previous, other] for other in range(3)) + 3 * PAIR_SMOOTHING
        for following in range(3):
            wanted = (pairs[previous, following] + PAIR_SMOOTHING) / total
            assert abs(table[previous, following].item() - wanted) < EXACT


def test_the_bigram_loss_is_the_mean_surprise():
    table = bigram_table(SMALL_TEXT, 3)
    tokens = torch.tensor([1, 0, 2])
    wanted = -(math.log(table[1, 0]) + math.log(table[0, 2])) / 2
    assert abs(bigram_loss(table, tokens) - wanted) < EXACT


def test_the_neighbor_loss_weighs_every_character_by_both_sides():
    table = bigram_table(SMALL_TEXT, 3)
    tokens = torch.tensor([[0, 2, 1], [1, 1, 0]])
    wanted = 0.0
    for left, middle, right in tokens.tolist():
        joint = [table[left, x].item() * table[x, right].item() for x in range(3)]
        wanted -= math.log(joint[middle] / sum(joint)) / 2
    assert abs(neighbor_loss(SMALL_TEXT, tokens, torch.tensor([[0, 1], [1, 1]]), 3) - wanted) < EXACT


@pytest.mark.parametrize("place", [0, 2])
def test_a_place_at_the_end_of_a_row_lacks_a_neighbor(place):
    with pytest.raises(ValueError, match="chosen"):
        neighbor_loss(SMALL_TEXT, torch.tensor([[0, 2, 1]]), torch.tensor([[0, place]]), 3)


def test_both_neighbors_say_more_than_one():
    text = documentation_text()
    rows = all_windows(text.validation, 64)
    chosen = torch.tensor([[row, place] for row in range(len(rows)) for place in (9, 31, 50)])
    single = bigram_loss(bigram_table(text.train, text.vocab_size), text.validation)
    assert neighbor_loss(text.train, rows, chosen, text.vocab_size) < single < math.log(text.vocab_size)
