"""Check `switch_route`: one expert per token, first come first kept, and a gate that is a probability."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.variants import CHAPTER
from autograder.program import Program, Run, call
from course_lib import routing

EXPERTS, TOKENS = 3, 13  # tokens enough for every expert to be asked twice, whatever is drawn


def scores(draw: Draw, scale: float = 1.0) -> torch.Tensor:
    """Draw scores whose favorite expert changes from token to token; each expert is somebody's favorite."""
    logits = draw.normal(TOKENS, EXPERTS, scale=scale)
    favorites = draw.random.permutation([0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 1, 0, 1]).tolist()
    for token, favorite in enumerate(favorites):
        highest = int(logits[token].argmax())
        logits[token, [favorite, highest]] = logits[token, [highest, favorite]]
    return logits


def routed(draw: Draw, capacity: int, scale: float = 1.0) -> Program:
    """Route with a capacity that some experts exceed, or none."""
    return call(scores(draw, scale), capacity)


def rush(draw: Draw) -> Program:
    """Send nearly all tokens to one expert, so that idle experts stand beside a full one."""
    logits = draw.normal(9, 4, scale=0.5)
    logits[:, 2] += 4.0
    logits[4, 0] += 9.0
    return call(logits, 3)


def probabilities(program: Program, found: Run) -> str | None:
    """Give a sentence when a gate cannot be a probability of the chosen expert."""
    _, gate, _ = found.outcomes[0]
    experts = program.steps[0].args[0].shape[-1]
    outside = (gate < 1 / experts - 1e-4) | (gate > 1 + 1e-4)
    if not outside.any():
        return None
    token = int(outside.nonzero()[0])
    return (
        f"the gate of token {token} is {gate[token].item():.4g}, but the probability of the likeliest of {experts} "
        f"experts lies between 1/{experts} and 1"
    )


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=routing.switch_route,
    returns=("the expert index", "the gate", "the kept tokens"),
    properties=[probabilities],
    cases=[
        Case("13 tokens, 3 experts, capacity 3", lambda draw: routed(draw, 3)),
        Case("room for all", lambda draw: routed(draw, TOKENS)),
        Case("a rush on one expert", rush),
        Case("capacity 1", lambda draw: routed(draw, 1), hidden=True),
        Case("capacity 0", lambda draw: routed(draw, 0), hidden=True),
        Case("scores near 300", lambda draw: routed(draw, 2, scale=150.0), hidden=True),
        Case("float64", lambda draw: routed(draw, 2), hidden=True, dtype="float64"),
    ],
)


def _parts(router_logits):
    expert_index = router_logits.argmax(-1)
    return expert_index, router_logits.softmax(-1).amax(-1), _places(router_logits, expert_index)


def _places(router_logits, expert_index):
    """Count, for each token, the tokens before it that chose the same expert."""
    chosen = torch.nn.functional.one_hot(expert_index, router_logits.shape[-1])
    return (chosen.cumsum(0) - chosen).gather(-1, expert_index[:, None]).squeeze(-1)


@exercise.misconception("""
    Your gate is the raw score. It can be negative, or 5. The gate is the **probability** that the router gives the
    chosen expert, so it needs a softmax over the experts.
""")
def raw_score_as_gate(router_logits, capacity):
    expert_index, _, places = _parts(router_logits)
    return expert_index, router_logits.amax(-1), places < capacity


@exercise.misconception("""
    All your gates are 1. A softmax over a single chosen score is always 1, and then the router gets no gradient and
    never learns. Take the softmax over **all** experts, and choose afterwards.
""")
def softmax_after_choosing(router_logits, capacity):
    expert_index, gate, places = _parts(router_logits)
    return expert_index, torch.ones_like(gate), places < capacity


@exercise.misconception("""
    Your gate squeezes each score by itself, with a sigmoid. Some routers do; Switch takes the softmax, in which the
    experts of one token compete.
""")
def sigmoid_gate(router_logits, capacity):
    expert_index, _, places = _parts(router_logits)
    return expert_index, router_logits.amax(-1).sigmoid(), places < capacity


@exercise.misconception("""
    Your softmax runs over the tokens: the columns sum to 1, and tokens compete for an expert. Each token shares 1 out
    among the experts. (Letting experts choose their tokens exists, Zhou et al. 2022, and is another method.)
""")
def softmax_over_tokens(router_logits, capacity):
    expert_index, _, places = _parts(router_logits)
    gate = router_logits.softmax(0).gather(-1, expert_index[:, None]).squeeze(-1)
    return expert_index, gate, places < capacity


@exercise.misconception("""
    Dropped tokens have the gate 0 in your answer. That is the place of `kept`; the gate is pinned as the router's
    probability for every token, so that what the router thinks can be seen even where an expert was full.
""")
def dropped_gate_is_zero(router_logits, capacity):
    expert_index, gate, places = _parts(router_logits)
    kept = places < capacity
    return expert_index, gate * kept, kept


@exercise.misconception("""
    Dropped tokens have no expert in your answer (−1). The index says which expert was **chosen**; `kept` says whether
    there was room. The balance loss needs both apart.
""")
def dropped_index_is_minus_one(router_logits, capacity):
    expert_index, gate, places = _parts(router_logits)
    kept = places < capacity
    return expert_index.masked_fill(~kept, -1), gate, kept


@exercise.misconception("""
    You choose the expert with the **lowest** score.
""")
def least_likely_expert(router_logits, capacity):
    expert_index = router_logits.argmin(-1)
    gate = router_logits.softmax(-1).amin(-1)
    return expert_index, gate, _places(router_logits, expert_index) < capacity


@exercise.misconception("""
    Nothing is ever dropped in your answer. An expert has room for `capacity` tokens; whoever comes later is not kept.
""")
def no_capacity(router_logits, capacity):
    expert_index, gate, places = _parts(router_logits)
    return expert_index, gate, torch.ones_like(places, dtype=torch.bool)


@exercise.misconception("""
    You keep the first tokens of the whole batch and drop the last ones, also those whose expert is idle. The capacity
    is a limit **per expert**: every expert counts its own queue.
""")
def one_queue_for_all(router_logits, capacity):
    expert_index, gate, places = _parts(router_logits)
    return expert_index, gate, torch.arange(len(places)) < capacity * router_logits.shape[-1]


@exercise.misconception("""
    Your queues run backward: the **last** tokens of an expert are kept and the first ones dropped. First come, first
    kept.
""")
def last_come_first_kept(router_logits, capacity):
    expert_index, gate, _ = _parts(router_logits)
    places = _places(router_logits.flip(0), expert_index.flip(0)).flip(0)
    return expert_index, gate, places < capacity


@exercise.misconception("""
    You keep the tokens with the highest gates. That is a good idea (V-MoE calls it priority routing), but not this
    contract: here an expert takes tokens in the order in which they stand.
""")
def surest_first(router_logits, capacity):
    expert_index, gate, _ = _parts(router_logits)
    order = gate.argsort(descending=True, stable=True)
    places = torch.empty_like(order)
    places[order] = _places(router_logits, expert_index[order])
    return expert_index, gate, places < capacity


@exercise.misconception("""
    Each expert keeps one token fewer than it has room for. If you count a token's place from 1, the last one to fit has
    the place `capacity` itself.
""")
def one_too_few(router_logits, capacity):
    expert_index, gate, places = _parts(router_logits)
    return expert_index, gate, places + 1 < capacity


@exercise.misconception("""
    Each expert keeps one token more than it has room for. If you count a token's place from 0, the place `capacity` is
    already outside.
""")
def one_too_many(router_logits, capacity):
    expert_index, gate, places = _parts(router_logits)
    return expert_index, gate, places <= capacity


@exercise.misconception("""
    `kept` is True where a token was dropped. Here True means that the expert had room.
""")
def kept_inverted(router_logits, capacity):
    expert_index, gate, places = _parts(router_logits)
    return expert_index, gate, places >= capacity


@exercise.misconception("""
    When an expert is full you send the token to its next choice. Some routers do; Switch does not: such a token is
    dropped, and the residual connection carries it on.
""")
def second_choice(router_logits, capacity):
    shares, room = router_logits.softmax(-1), [capacity] * router_logits.shape[-1]
    index, gate, kept = [], [], []
    for token in shares:
        ranked = token.argsort(descending=True).tolist()
        free = next((expert for expert in ranked if room[expert] > 0), None)
        expert = ranked[0] if free is None else free
        room[expert] -= 1
        index.append(expert)
        gate.append(token[expert])
        kept.append(free is not None)
    return torch.tensor(index), torch.stack(gate), torch.tensor(kept)


@exercise.alternative
def by_max(router_logits, capacity):
    gate, expert_index = torch.softmax(router_logits, dim=-1).max(dim=-1)
    place = torch.nn.functional.one_hot(expert_index, router_logits.shape[-1]).cumsum(0)
    return expert_index, gate, place[torch.arange(len(gate)), expert_index] <= capacity


@exercise.alternative
def token_by_token(router_logits, capacity):
    shares = router_logits.softmax(-1)
    expert_index, taken, kept = shares.argmax(-1), {}, []
    for expert in expert_index.tolist():
        kept.append(taken.get(expert, 0) < capacity)
        taken[expert] = taken.get(expert, 0) + 1
    return expert_index, shares.max(-1).values, torch.tensor(kept)


@exercise.alternative
def expert_by_expert(router_logits, capacity):
    gate, expert_index = router_logits.softmax(-1).topk(1, dim=-1)
    expert_index = expert_index.squeeze(-1)
    kept = torch.zeros_like(expert_index, dtype=torch.bool)
    for expert in range(router_logits.shape[-1]):
        kept[(expert_index == expert).nonzero().squeeze(-1)[:capacity]] = True
    return expert_index, gate.squeeze(-1), kept


@exercise.alternative
def each_token_counts_those_before(router_logits, capacity):
    expert_index = router_logits.argmax(-1)
    same = expert_index[:, None] == expert_index[None, :]
    gate = (router_logits.amax(-1) - router_logits.logsumexp(-1)).exp()
    return [expert_index, gate, same.tril(-1).sum(-1) < capacity]
