"""Every rule against a table drawn by hand, and the places that queries stand at."""

import pytest
import torch

from course_lib.mask_rules import (
    causal,
    documents,
    either,
    nothing,
    padding,
    prefix,
    rule_mask,
    sliding,
    too_old,
)


def table(picture):
    """Read a mask from a picture: # hides, a dot shows."""
    return torch.tensor([[cell == "#" for cell in row] for row in picture.split()])


PICTURES = {
    "causal": (causal, ".### ..## ...# ...."),
    "nothing": (nothing, ".... .... .... ...."),
    "sliding": (sliding(2), ".### ..## #..# ##.."),
    "prefix": (prefix(2), "..## ..## ...# ...."),
    "documents": (either(causal, documents(torch.tensor([5, 5, 1, 1]))), ".### ..## ##.# ##.."),
}


@pytest.mark.parametrize(("rule", "picture"), PICTURES.values(), ids=PICTURES)
def test_a_rule_hides_what_its_picture_shows(rule, picture):
    assert torch.equal(rule_mask(rule, 4), table(picture))


def test_padding_gives_every_sequence_of_a_batch_its_own_table():
    mask = rule_mask(padding(torch.tensor([1, 3, 0])), 2, 3)
    assert mask.shape == (3, 2, 3)
    for sequence, row in zip(mask, (".##", "...", "###"), strict=True):
        assert torch.equal(sequence, table(f"{row} {row}"))


def test_rules_combine_with_padding():
    mask = rule_mask(either(causal, padding(torch.tensor([2, 3]))), 3)
    assert torch.equal(mask[0], table(".## ..# ..#"))
    assert torch.equal(mask[1], table(".## ..# ..."))


@pytest.mark.parametrize("name", PICTURES)
def test_the_last_queries_of_a_kept_sequence_see_what_they_saw_in_the_full_pass(name):
    rule, _ = PICTURES[name]
    for kept in range(4):
        assert torch.equal(rule_mask(rule, 4 - kept, 4), rule_mask(rule, 4)[kept:])


def test_a_window_without_a_place_is_refused():
    with pytest.raises(ValueError, match="`window` must be at least 1, got 0"):
        too_old(0)


@pytest.mark.parametrize("sizes", [(-1,), (2, -3)])
def test_a_negative_number_of_tokens_is_refused(sizes):
    with pytest.raises(ValueError, match="cannot be negative"):
        rule_mask(causal, *sizes)
