"""Padding: lengths decide and not ids, and what is hidden counts for nothing."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import jaxtyping
import pytest
import torch

from course_lib.padded_batches import masked_mean, pad_batch

PAD = 7


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def test_every_sequence_stands_at_the_left_of_its_row():
    tokens, mask = pad_batch([[3, 1, 4], [], [1, 5, 9, 2]], PAD)
    assert tokens.tolist() == [[3, 1, 4, PAD], [PAD] * 4, [1, 5, 9, 2]]
    assert mask.tolist() == [[False, False, False, True], [True] * 4, [False] * 4]
    assert tokens.dtype == torch.int64
    assert mask.dtype == torch.bool


def test_a_real_token_with_the_padding_id_stays_visible():
    tokens, mask = pad_batch([[PAD, 2, PAD], [1]], PAD)
    assert tokens.tolist() == [[PAD, 2, PAD], [1, PAD, PAD]]
    assert mask.tolist() == [[False, False, False], [False, True, True]]


def test_tensors_of_ids_and_lists_of_ids_are_padded_alike():
    lists = [[3, 1, 4], [1]]
    tensors = [torch.tensor(ids) for ids in lists]
    for one, other in zip(pad_batch(lists, PAD), pad_batch(tensors, PAD), strict=True):
        assert torch.equal(one, other)


def test_padding_equals_the_frameworks():
    sequences = [torch.tensor(ids) for ids in ([3, 1, 4], [1], [1, 5, 9, 2])]
    wanted = torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=PAD)
    assert torch.equal(pad_batch(sequences, PAD)[0], wanted)


def test_no_sequence_at_all_is_refused():
    with pytest.raises(ValueError, match="`sequences` is empty"):
        pad_batch([], PAD)


def drawn(dtype=torch.float64):
    x = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    mask = torch.arange(5) >= torch.tensor([3, 5, 0])[:, None]
    return x, mask


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float16, 2e-3), (torch.bfloat16, 2e-2), (torch.float32, 1e-6), (torch.float64, 0)]
)
def test_the_mean_is_that_of_the_visible_tokens(dtype, tolerance):
    x, mask = drawn(dtype)
    mean = masked_mean(x, mask)
    assert mean.dtype == dtype
    for row in range(2):
        wanted = x[row, ~mask[row]].double().mean(dim=0)
        torch.testing.assert_close(mean[row].double(), wanted, rtol=1e-12, atol=tolerance)
    assert (mean[2] == 0).all()


def test_hidden_tokens_have_no_influence_and_no_gradient():
    x, mask = drawn()
    spoiled = x.masked_fill(mask[..., None], float("nan")).requires_grad_()
    mean = masked_mean(spoiled, mask)
    assert torch.equal(mean, masked_mean(x, mask))
    mean.square().sum().backward()
    assert (spoiled.grad[mask] == 0).all()
    assert (spoiled.grad[~mask] != 0).all()


@pytest.mark.usefixtures("unchecked_annotations")
def test_a_mask_that_does_not_fit_is_refused():
    x, mask = drawn()
    with pytest.raises(ValueError, match=r"`mask` \(5, 3\) must have one entry for every token of `x` \(3, 5, 4\)"):
        masked_mean(x, mask.T)
    with pytest.raises(TypeError, match="`mask` must be boolean"):
        masked_mean(x, mask.float())
