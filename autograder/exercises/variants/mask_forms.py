"""Right ways to hide tokens, of other forms."""

import torch

from autograder.exercises.variants.chosen_tokens import IGNORED


def two_coins(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, labels = tokens.clone(), tokens.clone()
    chance = torch.full(tokens.shape, p)
    for special in special_ids:
        chance[tokens == special] = 0.0
    chosen = torch.bernoulli(chance, generator=generator).bool()
    labels[~chosen] = -100
    masked = torch.bernoulli(torch.full(tokens.shape, 0.8), generator=generator).bool() & chosen
    inputs[masked] = mask_id
    other = torch.bernoulli(torch.full(tokens.shape, 0.5), generator=generator).bool() & chosen & ~masked
    ordinary = torch.tensor([i for i in range(vocab_size) if i not in {mask_id, *special_ids}])
    words = ordinary[torch.randint(len(ordinary), tokens.shape, generator=generator)]
    inputs[other] = words[other]
    return inputs, labels


def one_number_decides_all(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    u = torch.rand(tokens.shape, generator=generator)
    u = torch.where(torch.isin(tokens, torch.tensor(special_ids)), torch.ones(()), u)
    ordinary = torch.tensor(sorted(set(range(vocab_size)) - set(special_ids) - {mask_id}))
    drawn = ordinary[(torch.rand(tokens.shape, generator=generator) * len(ordinary)).long()]
    inputs = torch.where(u < 0.8 * p, torch.full_like(tokens, mask_id), torch.where(u < 0.9 * p, drawn, tokens))
    return [inputs, torch.where(u < p, tokens, torch.full_like(tokens, IGNORED))]


def chosen_places_listed(tokens, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, labels = tokens.clone(), torch.full_like(tokens, IGNORED)
    allowed = torch.ones_like(tokens, dtype=torch.bool)
    for special in special_ids:
        allowed &= tokens != special
    places = ((torch.rand(tokens.shape, generator=generator) < p) & allowed).nonzero()
    labels[tuple(places.T)] = tokens[tuple(places.T)]
    fate = torch.multinomial(torch.tensor([0.8, 0.1, 0.1]), max(1, len(places)), True, generator=generator)
    fate = fate[: len(places)]
    inputs[tuple(places[fate == 0].T)] = mask_id
    weights = torch.ones(vocab_size)
    weights[[mask_id, *special_ids]] = 0
    replaced = places[fate == 1]
    if len(replaced):
        inputs[tuple(replaced.T)] = torch.multinomial(weights, len(replaced), True, generator=generator)
    return inputs, labels


ACCEPTED_FORMS = (two_coins, one_number_decides_all, chosen_places_listed)
