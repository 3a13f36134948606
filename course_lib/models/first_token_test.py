"""The task of distance, and its readers."""

import pytest
import torch

from course_lib.models.first_token import KINDS, FirstTokenReader, first_token_batch


def test_the_first_token_is_the_target_and_of_another_kind_than_the_rest():
    tokens, first = first_token_batch(50, 9, 4, torch.Generator().manual_seed(0))
    assert torch.equal(tokens[:, 0], first)
    assert set(first.tolist()) == set(range(4))
    assert set(tokens[:, 1:].flatten().tolist()) == set(range(4, 8))


@pytest.mark.parametrize("kind", KINDS)
def test_every_reader_names_one_of_the_choices_and_can_learn_to(kind):
    torch.manual_seed(0)
    model = FirstTokenReader(kind, choices=4, d_model=16)
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        tokens, first = first_token_batch(32, 4, 4, generator)
        loss = torch.nn.functional.cross_entropy(model(tokens), first)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert model(tokens).shape == (32, 4)
    assert (model(tokens).argmax(dim=-1) == first).float().mean() > 0.9


def test_influence_is_the_gradient_at_every_place():
    torch.manual_seed(0)
    model = FirstTokenReader("rnn", choices=3, d_model=8)
    tokens, _ = first_token_batch(5, 30, 3, torch.Generator().manual_seed(0))
    found = model.influence(tokens)
    assert found.shape == (30,)
    assert found[-1] > 100 * found[0]


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="got 'cnn'"):
        FirstTokenReader("cnn", 3, 8)
    with pytest.raises(ValueError, match="`length`"):
        first_token_batch(2, 1, 3)
