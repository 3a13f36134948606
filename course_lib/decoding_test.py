"""Decoding against exhaustive search, and the rules of starting, ending and filling up."""

import itertools
import math

import pytest
import torch

from course_lib.decoding import beam_search, greedy_decode, shift_right

START, END, VOCAB = 3, 0, 4


def table_step(seed: int, vocab: int = VOCAB):
    """Make a step whose logits depend on every token so far, and on nothing else."""

    def step(tokens):
        rows = []
        for row in tokens.tolist():
            generator = torch.Generator().manual_seed(hash((seed, *row)) % 2**31)
            rows.append(torch.randn(vocab, generator=generator))
        return torch.stack(rows)

    return step


def score_of(step, tokens):
    total = 0.0
    for place in range(1, len(tokens)):
        total += step(torch.tensor([tokens[:place]])).double().log_softmax(-1)[0, tokens[place]].item()
    return total / (len(tokens) - 1)


def every_sequence(max_length):
    """List the sequences that end with END, or are as long as allowed."""
    others = [token for token in range(VOCAB) if token != END]
    for length in range(max_length):
        for middle in itertools.product(others, repeat=length):
            if length < max_length - 1:
                yield [START, *middle, END]
            else:
                yield [START, *middle]


def test_shifting_puts_the_start_first_and_drops_the_last():
    tokens = torch.tensor([[5, 6, 7], [8, 9, 1]])
    assert shift_right(tokens, 2).tolist() == [[2, 5, 6], [2, 8, 9]]
    assert tokens.tolist() == [[5, 6, 7], [8, 9, 1]]


def test_shifting_one_token_leaves_the_start_alone():
    assert shift_right(torch.tensor([[5]]), 2).tolist() == [[2]]


def test_greedy_takes_the_likeliest_token_and_fills_up_ended_rows():
    script = {1: [2, 1, 2], 2: [END, 2, 1], 3: [1, END, 1], 4: [1, 1, END], 5: [1, 1, 1]}

    def step(tokens):
        return torch.nn.functional.one_hot(torch.tensor(script[tokens.shape[1]]), VOCAB).float()

    expected = [[3, 2, 0, 0, 0], [3, 1, 2, 0, 0], [3, 2, 1, 1, 0]]
    assert greedy_decode(step, START, END, 9, 3).tolist() == expected
    assert greedy_decode(step, START, END, 3, 3).tolist() == [row[:3] for row in expected]
    assert greedy_decode(step, START, END, 1, 3).tolist() == [[3], [3], [3]]


def test_greedy_may_start_with_the_token_that_ends():
    step = table_step(4)
    written = greedy_decode(step, END, END, 6, 1)[0].tolist()
    assert len(written) > 1
    assert END not in written[1:-1]


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_as_wide_as_everything_finds_the_best_sequence_of_all(seed):
    step, max_length = table_step(seed), 4
    best = max(every_sequence(max_length), key=lambda tokens: score_of(step, tokens))
    tokens, score = beam_search(step, START, END, max_length, VOCAB**max_length)
    assert tokens == best
    assert score == pytest.approx(score_of(step, best), rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_a_single_beam_is_greedy(seed):
    step = table_step(seed)
    tokens, _ = beam_search(step, START, END, 7, 1)
    greedy = greedy_decode(step, START, END, 7, 1)[0].tolist()
    assert tokens == greedy


def test_two_beams_find_what_greedy_misses():
    chances = {(3,): [0.0, 0.6, 0.4, 0.0], (3, 1): [0.25, 0.25, 0.25, 0.25], (3, 2): [0.9, 0.05, 0.05, 0.0]}

    def step(tokens):
        return torch.tensor([chances.get(tuple(row), [1.0, 0.0, 0.0, 0.0]) for row in tokens.tolist()]).log()

    assert greedy_decode(step, START, END, 3, 1).tolist()[0][1] == 1
    tokens, score = beam_search(step, START, END, 3, 2)
    assert tokens == [3, 2, 0]
    assert score == pytest.approx((math.log(0.4) + math.log(0.9)) / 2, rel=1e-6)


@pytest.mark.parametrize(("max_length", "beams"), [(1, 2), (5, 0)])
def test_no_room_or_no_beam_is_refused(max_length, beams):
    with pytest.raises(ValueError, match=f"got {max_length} and {beams}"):
        beam_search(table_step(0), START, END, max_length, beams)
