"""Objectives against the framework's loss, by statistics, and by undoing what was done."""

# pyright: reportArgumentType=false
# Wrong arguments are passed on purpose.

import jaxtyping
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from course_lib.objectives import IGNORED, corrupt_spans, mask_tokens, masked_lm_loss, next_token_loss, restore_spans

TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float32: 1e-6, torch.float64: 1e-12}
EVERY_DTYPE = pytest.mark.parametrize("dtype", TOLERANCE)
BAND = 0.02  # five standard deviations of the rarest share below, or more
MASK_ID, VOCAB, SPECIAL = 61, 70, [0, 7, 69]


@pytest.fixture
def unchecked_annotations(monkeypatch):
    """Let a wrong argument reach the function's own message, past the annotation checks of the test run."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def drawn(batch=3, length=7, vocab=5, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(batch, length, vocab, generator=generator, dtype=torch.float64).to(dtype)
    return logits, torch.randint(vocab, (batch, length), generator=generator)


def large_text(seed=0):
    return torch.randint(VOCAB, (300, 150), generator=torch.Generator().manual_seed(seed))


@EVERY_DTYPE
def test_next_token_loss_is_the_frameworks_on_shifted_targets(dtype):
    logits, tokens = drawn(dtype=dtype)
    wanted = F.cross_entropy(logits[:, :-1].double().flatten(0, 1), tokens[:, 1:].flatten())
    loss = next_token_loss(logits, tokens)
    assert loss.dtype == dtype
    assert abs(loss.double() - wanted) < TOLERANCE[dtype]


def test_a_model_that_knows_the_next_token_has_no_loss_and_one_that_copies_has():
    tokens = torch.tensor([[0, 1, 2, 3, 4]])
    copies = 50 * F.one_hot(tokens, 5).double()
    assert next_token_loss(copies.roll(-1, dims=1), tokens) < TOLERANCE[torch.float64]
    assert next_token_loss(copies, tokens) > 49


def test_next_token_loss_leaves_ignored_targets_out():
    logits, tokens = drawn()
    tokens[0, 3:], tokens[2, 1] = 4, 4
    wanted = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=4)
    assert abs(next_token_loss(logits, tokens, ignore_index=4) - wanted) < TOLERANCE[torch.float64]


def test_the_gradient_of_next_token_loss_is_the_frameworks():
    logits, tokens = drawn()
    tokens[1, 2:] = IGNORED
    ours, theirs = (logits.clone().requires_grad_() for _ in range(2))
    next_token_loss(ours, tokens).backward()
    F.cross_entropy(theirs[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).backward()
    assert (ours.grad - theirs.grad).abs().max() < TOLERANCE[torch.float64]


@pytest.mark.parametrize("loss", [next_token_loss, masked_lm_loss], ids=["next token", "masked"])
def test_a_loss_that_counts_nothing_is_zero_with_zero_gradient(loss):
    logits, tokens = drawn()
    logits.requires_grad_()
    value = loss(logits, torch.full_like(tokens, IGNORED))
    value.backward()
    assert value.item() == 0
    assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_one_token_has_no_successor():
    logits, tokens = drawn(length=1)
    assert next_token_loss(logits, tokens).item() == 0


@EVERY_DTYPE
def test_masked_lm_loss_is_the_frameworks(dtype):
    logits, labels = drawn(dtype=dtype)
    labels[:, ::2] = IGNORED
    wanted = F.cross_entropy(logits.double().flatten(0, 1), labels.flatten())
    loss = masked_lm_loss(logits, labels)
    assert loss.dtype == dtype
    assert abs(loss.double() - wanted) < TOLERANCE[dtype]


def test_huge_logits_give_a_finite_loss():
    logits, tokens = drawn(dtype=torch.float32)
    assert torch.isfinite(next_token_loss(1e4 * logits, tokens))


@pytest.mark.parametrize("loss", [next_token_loss, masked_lm_loss], ids=["next token", "masked"])
def test_places_that_do_not_fit_are_refused(unchecked_annotations, loss):
    logits, tokens = drawn()
    with pytest.raises(ValueError, match="same batch and length"):
        loss(logits, tokens[:, :-1])


@pytest.mark.parametrize("p", [0.15, 0.5])
def test_chosen_tokens_are_masked_replaced_and_kept_in_the_papers_shares(p):
    tokens = large_text()
    inputs, labels = mask_tokens(tokens, MASK_ID, VOCAB, SPECIAL, torch.Generator().manual_seed(1), p)
    ordinary = ~torch.isin(tokens, torch.tensor(SPECIAL))
    chosen = labels != IGNORED
    assert not chosen[~ordinary].any()
    assert abs(chosen[ordinary].double().mean() - p) < BAND
    before, after = tokens[chosen & (tokens != MASK_ID)], inputs[chosen & (tokens != MASK_ID)]
    assert abs((after == MASK_ID).double().mean() - 0.8) < BAND
    assert abs((after == before).double().mean() - 0.1) < BAND
    replaced = (after != MASK_ID) & (after != before)
    assert not torch.isin(after[replaced], torch.tensor(SPECIAL)).any()
    assert len(after[replaced].unique()) == VOCAB - len(SPECIAL) - 1


def test_labels_are_the_original_tokens_and_the_rest_is_untouched():
    tokens = large_text()
    inputs, labels = mask_tokens(tokens, MASK_ID, VOCAB, SPECIAL, torch.Generator().manual_seed(2))
    chosen = labels != IGNORED
    assert torch.equal(labels[chosen], tokens[chosen])
    assert torch.equal(inputs[~chosen], tokens[~chosen])


def test_each_token_has_a_chance_of_its_own():
    tokens = torch.full((4000, 20), 5)
    _, labels = mask_tokens(tokens, MASK_ID, VOCAB, SPECIAL, torch.Generator().manual_seed(3))
    per_row = (labels != IGNORED).double().sum(dim=1)
    assert abs(per_row.var() - 20 * 0.15 * 0.85) < 0.3  # a binomial's variance; its own deviation is 0.06
    together = torch.corrcoef((labels != IGNORED).double().T) - torch.eye(20)
    assert together.abs().max() < 0.1


@pytest.mark.parametrize(("p", "share"), [(0.0, 0.0), (1.0, 1.0)])
def test_a_chance_of_none_or_all_chooses_none_or_all_ordinary_tokens(p, share):
    tokens = torch.tensor([[0, 3, 4, 7], [5, 5, 69, 0]])
    _, labels = mask_tokens(tokens, MASK_ID, VOCAB, SPECIAL, torch.Generator().manual_seed(4), p)
    assert torch.equal(labels != IGNORED, (~torch.isin(tokens, torch.tensor(SPECIAL))) & bool(share))


def test_equal_generators_mask_alike_and_others_do_not():
    texts = [mask_tokens(large_text(), MASK_ID, VOCAB, SPECIAL, torch.Generator().manual_seed(s))[0] for s in (5, 5, 6)]
    assert torch.equal(texts[0], texts[1])
    assert not torch.equal(texts[0], texts[2])


def test_masking_leaves_its_argument_alone():
    tokens = large_text()
    before = tokens.clone()
    mask_tokens(tokens, MASK_ID, VOCAB, SPECIAL, torch.Generator().manual_seed(7))
    assert torch.equal(tokens, before)


def test_impossible_masking_is_refused():
    tokens = torch.tensor([1, 2])
    with pytest.raises(ValueError, match="`p`"):
        mask_tokens(tokens, 0, 3, [], None, p=1.5)
    with pytest.raises(ValueError, match="none of the 3 ids"):
        mask_tokens(tokens, 0, 3, [1, 2], None)


def test_the_papers_own_example_is_corrupted_as_in_its_figure():
    words = ["Thank", "you", "for", "inviting", "me", "to", "your", "party", "last", "week", "."]
    inputs, targets = corrupt_spans(list(range(len(words))), [(2, 4), (8, 9)], 99)
    written = {99: "<X>", 98: "<Y>", 97: "<Z>"} | dict(enumerate(words))
    assert " ".join(written[i] for i in inputs) == "Thank you <X> me to your party <Y> week ."
    assert " ".join(written[i] for i in targets) == "<X> for inviting <Y> last <Z>"


def test_no_span_leaves_the_text_and_asks_for_nothing():
    assert corrupt_spans([4, 5], [], 50) == ([4, 5], [50])


def test_the_whole_text_may_be_one_span():
    assert corrupt_spans([4, 5], [(0, 2)], 50) == ([50], [50, 4, 5, 49])


@given(st.data())
def test_spans_can_be_put_back(data):
    tokens = data.draw(st.lists(st.integers(0, 40), max_size=20))
    ends = sorted(data.draw(st.lists(st.integers(0, len(tokens)), unique=True, max_size=8)))
    spans = list(zip(ends[::2], ends[1::2], strict=False))
    inputs, targets = corrupt_spans(tokens, spans, 99)
    assert restore_spans(inputs, targets, 99, len(spans)) == tokens
    assert len(inputs) + len(targets) == len(tokens) + 2 * len(spans) + 1


@pytest.mark.parametrize("spans", [[(1, 1)], [(2, 1)], [(0, 9)], [(-1, 2)], [(0, 3), (2, 4)], [(3, 4), (0, 1)]])
def test_spans_that_cannot_be_cut_are_refused(spans):
    with pytest.raises(ValueError, match=r"`spans\[\d\]` is"):
        corrupt_spans([1, 2, 3, 4, 5], spans, 50)


def test_a_missing_sentinel_is_named():
    with pytest.raises(ValueError, match="`targets` lacks the sentinel 49"):
        restore_spans([50], [50, 4], 50, 1)
