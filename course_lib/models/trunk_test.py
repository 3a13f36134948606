"""The trunk obeys the mask that it is given, and only that, and knows the order of what it sees."""

import pytest
import torch

from course_lib.documentation_text import (
    all_windows,
    bigram_loss,
    bigram_table,
    documentation_text,
    neighbor_loss,
    windows,
)
from course_lib.masks import causal_mask
from course_lib.models.trunk import Trunk
from course_lib.objectives import mask_tokens, masked_lm_loss, next_token_loss
from course_lib.training.loop import forever, train

SAME, MOVED = 1e-5, 1e-4  # float32


@pytest.fixture
def trunk():
    torch.manual_seed(0)
    return Trunk(vocab_size=11, d_model=12, num_heads=3, num_layers=2).eval()


TOKENS = torch.tensor([[1, 5, 2, 9, 0, 4]])
CHANGED = torch.tensor([[1, 5, 2, 7, 0, 4]])


def test_logits_are_given_for_every_place(trunk):
    assert trunk(TOKENS).shape == (1, 6, 11)


def test_under_a_causal_mask_a_token_moves_itself_and_what_follows(trunk):
    moves = (trunk(TOKENS, causal_mask(6)) - trunk(CHANGED, causal_mask(6))).abs().amax(-1)[0]
    assert (moves[:3] < SAME).all()
    assert (moves[3:] > MOVED).all()


def test_without_a_mask_a_token_moves_all_places(trunk):
    assert ((trunk(TOKENS) - trunk(CHANGED)).abs().amax(-1) > MOVED).all()


def test_order_matters(trunk):
    swapped = TOKENS[:, [1, 0, 2, 3, 4, 5]]
    assert (trunk(TOKENS) - trunk(swapped))[0, 5].abs().max() > MOVED


def test_positions_are_relative(trunk):
    longer = torch.cat([torch.tensor([[3]]), TOKENS], dim=1)
    hide_first = causal_mask(7)
    hide_first[1:, 0] = True
    shifted = trunk(longer, hide_first)[:, 1:]
    assert (shifted - trunk(TOKENS, causal_mask(6))).abs().max() < SAME


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="num_heads"):
        Trunk(5, 10, 3, 1)


# What chapter 09's training cells reach, in nats per character; versions of Python differ a little in their text.
WRITER_BAND = (1.35, 1.75)
READER_BAND = (1.4, 1.8)
LENGTH, WIDTH, HEADS, BATCH = 64, 64, 4, 16


def trained(model, stages, draw, loss):
    for steps, rate in stages:
        train(model, forever(draw), steps=steps, learning_rate=rate, loss=loss)
    return model.eval()


@pytest.mark.slow
def test_the_chapters_writer_beats_counting_pairs_by_a_wide_margin():
    text = documentation_text()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    mask = causal_mask(LENGTH)
    writer = trained(
        Trunk(text.vocab_size, WIDTH, HEADS, 1),
        [(400, 0.004), (150, 0.001)],
        lambda: windows(text.train, BATCH, LENGTH, generator),
        lambda model, tokens: next_token_loss(model(tokens, mask), tokens),
    )
    tokens = all_windows(text.validation, LENGTH)
    with torch.no_grad():
        loss = next_token_loss(writer(tokens, mask), tokens).item()
    assert WRITER_BAND[0] < loss < WRITER_BAND[1]
    assert loss < bigram_loss(bigram_table(text.train, text.vocab_size), text.validation) - 0.5


@pytest.mark.slow
def test_the_chapters_reader_fills_gaps_better_than_both_neighbors_tell():
    text = documentation_text()
    mask_id = text.vocab_size
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)

    def loss(model, tokens):
        inputs, labels = mask_tokens(tokens, mask_id, mask_id + 1, [], generator, p=0.25)
        return masked_lm_loss(model(inputs), labels)

    reader = trained(
        Trunk(mask_id + 1, WIDTH, HEADS, 1),
        [(450, 0.005), (200, 0.001)],
        lambda: windows(text.train, BATCH, LENGTH, generator),
        loss,
    )
    tokens = all_windows(text.validation, LENGTH)
    middle = LENGTH // 2
    inputs, labels = tokens.clone(), torch.full_like(tokens, -100)
    inputs[:, middle], labels[:, middle] = mask_id, tokens[:, middle]
    gaps = torch.stack([torch.arange(len(tokens)), torch.full((len(tokens),), middle)], dim=1)
    with torch.no_grad():
        found = masked_lm_loss(reader(inputs), labels).item()
    assert READER_BAND[0] < found < READER_BAND[1]
    assert found < neighbor_loss(text.train, tokens, gaps, text.vocab_size) - 0.05
