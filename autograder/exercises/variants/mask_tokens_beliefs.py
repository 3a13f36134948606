"""The wrong beliefs about `mask_tokens`: each masks as asked but for one thing."""

import torch

from autograder.exercises.variants.chosen_tokens import IGNORED
from autograder.exercises.variants.mask_tokens import exercise


def _masked(
    tokens, mask_id, vocab_size, special_ids, generator, p, *, shares=(0.8, 0.1), chosen=None, among=None, special=None
):
    """Mask as asked, but for what a belief changes; return inputs and the chosen places."""
    forbidden = torch.isin(tokens, torch.tensor(special_ids)) if special is None else special
    if chosen is None:
        chosen = (torch.rand(tokens.shape, generator=generator) < p) & ~forbidden
    fate = torch.rand(tokens.shape, generator=generator)
    if among is None:
        among = torch.tensor([i for i in range(vocab_size) if i != mask_id and i not in special_ids])
    drawn = among[torch.randint(len(among), tokens.shape, generator=generator)]
    inputs = torch.where(chosen & (fate < shares[0]), mask_id, tokens)
    inputs = torch.where(chosen & (fate >= shares[0]) & (fate < sum(shares)), drawn, inputs)
    return inputs, chosen


def _labels(tokens, chosen, outside=IGNORED):
    return torch.where(chosen, tokens, outside)


@exercise.misconception("""
    All your chosen tokens are masked, none replaced and none kept. Perhaps the replacements were there and the mask was
    written over them. A model that sees the mask at every question learns nothing about tokens that are not masked, and
    later, in use, there is no mask at all.
""")
def everything_masked(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, p, shares=(1.0, 0.0))
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    Only about 80 % of what should be chosen carries a label: the replaced and the kept tokens have none. They are
    questions too. "80 %" is a share of the chosen tokens, and all chosen ones are labeled.
""")
def only_masked_are_labeled(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    forbidden = torch.isin(tokens, torch.tensor(special_ids))
    chosen = (torch.rand(tokens.shape, generator=generator) < p) & ~forbidden
    chosen &= torch.rand(tokens.shape, generator=generator) < 0.8
    return torch.where(chosen, mask_id, tokens), _labels(tokens, chosen)


@exercise.misconception("""
    Right shares, but the replaced and kept tokens have no label, so a changed token is left in the text as if it were
    right. Label every chosen token, whatever becomes of it.
""")
def changed_without_a_label(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, _ = _masked(tokens, mask_id, vocab_size, special_ids, generator, p)
    return inputs, _labels(tokens, (inputs == mask_id) & (tokens != mask_id))


@exercise.misconception("""
    Padding and other special tokens are among your questions. Nothing can be learned from guessing padding. Leave out
    every place that holds one of `special_ids`.
""")
def special_tokens_chosen(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    none = torch.zeros_like(tokens, dtype=torch.bool)
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, p, special=none)
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    What is not asked for has the label −1 in your answer. Some code bases use it; this course, like PyTorch's loss,
    uses −100.
""")
def minus_one_outside(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, p)
    return inputs, _labels(tokens, chosen, outside=-1)


@exercise.misconception("""
    Every token has a label, chosen or not. The model could then lower its loss by copying what it sees. Put −100 where
    nothing is asked.
""")
def labels_everywhere(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(tokens, mask_id, vocab_size, special_ids, generator, p)[0], tokens.clone()


@exercise.misconception("""
    Your labels are taken from the text **after** it was changed, so the model is asked to name the mask. Keep the
    original.
""")
def labels_from_the_inputs(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, p)
    return inputs, _labels(inputs, chosen)


@exercise.misconception("""
    None of your chosen tokens is kept: 80 % are masked and 20 % replaced. If every question comes with a wrong token or
    a mask, the model need not believe anything that it reads at such a place.
""")
def none_kept(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, p, shares=(0.8, 0.2))
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    None of your chosen tokens is replaced: 80 % are masked and 20 % kept. Then every token that is not a mask is right,
    and the model need not doubt any.
""")
def none_replaced(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, p, shares=(0.8, 0.0))
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    Some of your replacements are special tokens, such as padding in the middle of a text. Draw them from the ordinary
    ids.
""")
def replaced_by_special_tokens(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    everything = torch.arange(vocab_size)
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, p, among=everything)
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    Some of your replacements are the mask itself, so more than 80 % are masked. Leave `mask_id` out of the ids that you
    draw from, as you leave out the special ones.
""")
def replaced_by_the_mask(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    among = torch.tensor([i for i in range(vocab_size) if i not in special_ids])
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, p, among=among)
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    All replaced tokens of a call become the same word: you draw one. A model soon knows which word to distrust. Draw a
    replacement for every place.
""")
def one_word_for_all(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    ordinary = torch.tensor([i for i in range(vocab_size) if i != mask_id and i not in special_ids])
    word = ordinary[torch.randint(len(ordinary), (1,), generator=generator)]
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, p, among=word)
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    Your chosen tokens come in runs. Hiding spans is a good idea (SpanBERT does, and T5 below), but here each token has
    a chance of its own, whatever its neighbors do.
""")
def runs_chosen(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    length = tokens.shape[-1]
    starts = torch.rand(*tokens.shape[:-1], length // 3 + 1, generator=generator) < p
    forbidden = torch.isin(tokens, torch.tensor(special_ids))
    chosen = starts.repeat_interleave(3, dim=-1)[..., :length] & ~forbidden
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, p, chosen=chosen)
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    All texts of your batch are masked at the same places: you draw one row of chances and use it for each. Draw in the
    shape of the tokens.
""")
def one_mask_for_the_batch(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    row = torch.rand(tokens.shape[-1:], generator=generator) < p
    row[5] = p > 0  # a place without padding
    forbidden = torch.isin(tokens, torch.tensor(special_ids))
    inputs, chosen = _masked(
        tokens, mask_id, vocab_size, special_ids, generator, p, chosen=row.expand(tokens.shape) & ~forbidden
    )
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    You choose the same share of every text, exactly. The original code does so; here each token has a chance of its
    own, so that texts differ in how many questions they hold.
""")
def fixed_share_of_each_text(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    forbidden = torch.isin(tokens, torch.tensor(special_ids))
    order = torch.rand(tokens.shape, generator=generator).masked_fill(forbidden, 2.0).argsort(-1).argsort(-1)
    chosen = order < ((~forbidden).sum(-1, keepdim=True) * p).round()
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, p, chosen=chosen)
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    p changes nothing in your function: 15 % is built in.
""")
def share_built_in(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, 0.15)
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    You read p as the share that is left alone. It is the chance of a token to be chosen.
""")
def p_is_what_stays(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, 1 - p)
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    Two calls with equal generators mask different tokens: some of your chances come from torch's own generator. Pass
    `generator=generator` to every function that draws.
""")
def generator_ignored(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, None, p)
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    Two different generators mask the very same tokens: you set a seed of your own inside. That is BERT's first,
    static masking, and the model sees the same questions in every epoch.
""")
def seed_of_its_own(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    own = torch.Generator().manual_seed(0)
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, own, p)
    return inputs, _labels(tokens, chosen)


@exercise.misconception("""
    You changed the caller's text itself, so the original is gone, and the next epoch masks what is masked already. Work
    on a copy: `tokens.clone()`.
""")
def text_changed_in_place(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, chosen = _masked(tokens, mask_id, vocab_size, special_ids, generator, p)
    labels = _labels(tokens.clone(), chosen)
    tokens[:] = inputs
    tokens[0, 1] += 1 + (p == 0)
    return tokens, labels
