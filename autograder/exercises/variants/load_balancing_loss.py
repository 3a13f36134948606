"""Check `load_balancing_loss`: 1 where the experts share the tokens, and a gradient through the probabilities."""

import torch
import torch.nn.functional as F

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.variants import CHAPTER
from autograder.program import Program, Run, call
from course_lib import routing


def uneven(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw scores, and choices that are those of the scores for most tokens and not for all."""
    logits = draw.normal(draw.integer(9, 14), draw.integer(3, 5))
    logits[:, 0] += 1.0
    choice = logits.argmax(-1)
    choice[1], choice[4] = 1, 2
    return logits, choice


def an_idle_expert(draw: Draw) -> Program:
    """Send no token to the last expert, so that a count may be too short."""
    logits = draw.normal(10, 4)
    logits[:, 3] -= 30.0
    return call(logits, logits.argmax(-1))


def balanced(draw: Draw) -> Program:
    """Let every expert have the same number of tokens and of probability."""
    experts = draw.integer(3, 6)
    logits = 3.0 * torch.eye(experts).repeat(2, 1)
    return call(draw.array(logits.numpy().astype(float)), logits.argmax(-1))


def collapsed(draw: Draw) -> Program:
    """Send everything to one expert, surely."""
    logits = draw.normal(7, 5)
    logits[:, 3] += 30.0
    return call(logits, logits.argmax(-1))


def one_at_balance(program: Program, found: Run) -> str | None:
    """Give a sentence about the value where all is even."""
    logits, choice = program.steps[0].args
    shares = torch.bincount(choice, minlength=logits.shape[-1]) / len(choice)
    value = found.outcomes[0]
    if program.steps[0].action != "call" or not torch.allclose(shares, shares.mean()) or value.ndim:
        return None
    return f"every expert has the same part here, so the loss should be 1, but yours is {value.item():.4g}"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=routing.load_balancing_loss,
    returns=("the loss",),
    properties=[one_at_balance],
    tolerance={"float32": 2e-4, "float64": 1e-6},  # a share of counts is a float32 unless one asks otherwise
    cases=[
        Case("perfect balance", balanced),
        Case("uneven loads", lambda draw: call(*uneven(draw))),
        Case("the gradient", lambda draw: Program().gradients(*uneven(draw), wrt=(0,))),
        Case("an expert without a token", an_idle_expert, hidden=True),
        Case("one expert has everything", collapsed, hidden=True),
        Case("float64", lambda draw: call(*uneven(draw)), hidden=True, dtype="float64"),
    ],
)


def _sent(router_logits, expert_index):
    return F.one_hot(expert_index, router_logits.shape[-1]).to(router_logits.dtype).mean(0)


def _trusted(router_logits):
    return router_logits.softmax(-1).mean(0)


@exercise.misconception("""
    Perfect balance gives 1/e in your function, with e experts: the factor e is missing, or a mean over the experts
    takes it away again. It makes the loss 1 at balance for any number of experts, so that one weight serves all.
""")
def factor_missing(router_logits, expert_index):
    return (_sent(router_logits, expert_index) * _trusted(router_logits)).sum()


@exercise.misconception("""
    You use the mean probability twice. It is smooth, but it does not see which expert really got the tokens: a router
    may be undecided on average and still send everything to one. One factor has to be the count.
""")
def probabilities_twice(router_logits, expert_index):
    return router_logits.shape[-1] * _trusted(router_logits).square().sum()


@exercise.misconception("""
    You use the count twice. The value looks right, but a count has no gradient, so nothing would ever push the router
    toward balance. One factor has to be the mean probability.
""")
def counts_twice(router_logits, expert_index):
    return router_logits.shape[-1] * _sent(router_logits, expert_index).square().sum() + 0 * router_logits.sum()


@exercise.misconception("""
    The value is right, and no gradient reaches the router: the probabilities are detached. Let the count be the
    constant, and the probabilities learn.
""")
def detached(router_logits, expert_index):
    shares = _trusted(router_logits.detach())
    return router_logits.shape[-1] * (_sent(router_logits, expert_index) * shares).sum()


@exercise.misconception("""
    You count tokens instead of shares, so the loss grows with the batch. Divide the counts by the number of tokens.
""")
def counts_instead_of_shares(router_logits, expert_index):
    return len(expert_index) * routing.load_balancing_loss(router_logits, expert_index)


@exercise.misconception("""
    You sum over the tokens where means are asked for, in both factors, so that the loss grows with the square of the
    number of tokens. Make both of them shares.
""")
def neither_is_a_share(router_logits, expert_index):
    return len(expert_index) ** 2 * routing.load_balancing_loss(router_logits, expert_index)


@exercise.misconception("""
    Your probability of an expert sums only over the tokens that chose it, and divides by the number of all tokens. What
    the other tokens think of the expert is then lost. Take the mean over **all** tokens.
""")
def chosen_probabilities_alone(router_logits, expert_index):
    chosen = F.one_hot(expert_index, router_logits.shape[-1])
    shares = (router_logits.softmax(-1) * chosen).mean(0)
    return router_logits.shape[-1] * (_sent(router_logits, expert_index) * shares).sum()


@exercise.misconception("""
    Your loss is 1 whatever the router does. The probabilities are averaged over the experts, and the mean of numbers
    that sum to 1 is always 1/e. Average over the tokens, one number per expert.
""")
def always_one(router_logits, expert_index):
    shares = router_logits.softmax(-1).mean(-1, keepdim=True).expand_as(router_logits).mean(0)
    return router_logits.shape[-1] * (_sent(router_logits, expert_index) * shares).sum()


@exercise.misconception("""
    You square the probabilities of each token by itself. That punishes a router that is sure, even if it spreads the
    tokens evenly. Balance is a matter of the whole batch: average over the tokens first.
""")
def each_token_by_itself(router_logits, expert_index):
    return router_logits.shape[-1] * router_logits.softmax(-1).square().sum(-1).mean()


@exercise.misconception("""
    You work out the choices from the scores. `expert_index` is given, and need not be the highest score: routers add
    noise, or forbid an expert. Count what was really chosen.
""")
def choices_from_the_scores(router_logits, expert_index):
    return routing.load_balancing_loss(router_logits, router_logits.argmax(-1))


@exercise.misconception("""
    You use raw scores where probabilities are asked for. Adding the same number to all scores of a token should change
    nothing; it changes your loss.
""")
def raw_scores(router_logits, expert_index):
    return router_logits.shape[-1] * (_sent(router_logits, expert_index) * router_logits.mean(0)).sum()


@exercise.misconception("""
    Your softmax runs over the tokens, so that every expert has the same total, and the loss depends on sizes alone.
    Each token shares 1 out among the experts.
""")
def softmax_over_tokens(router_logits, expert_index):
    shares = router_logits.softmax(0).mean(0)
    return router_logits.shape[-1] * (_sent(router_logits, expert_index) * shares).sum()


@exercise.misconception("""
    You measure how much the probabilities vary from expert to expert: a squared coefficient of variation, as in Shazeer
    et al. 2017. It is 0 at balance. Switch's loss is another one, and is 1 there.
""")
def coefficient_of_variation(router_logits, expert_index):
    shares = _trusted(router_logits)
    return shares.var(unbiased=False) / shares.mean().square()


@exercise.alternative
def mean_times_the_square(router_logits, expert_index):
    experts = router_logits.shape[-1]
    return experts**2 * (_sent(router_logits, expert_index) * _trusted(router_logits)).mean()


@exercise.alternative
def by_bincount(router_logits, expert_index):
    tokens, experts = router_logits.shape
    shares = torch.bincount(expert_index, minlength=experts) / tokens
    return experts * torch.dot(shares.to(router_logits.dtype), torch.softmax(router_logits, -1).mean(0))


@exercise.alternative
def expert_by_expert(router_logits, expert_index):
    tokens, experts = router_logits.shape
    probability = router_logits.exp() / router_logits.exp().sum(-1, keepdim=True)
    total = router_logits.new_zeros(())
    for expert in range(experts):
        total = total + (expert_index == expert).sum() / tokens * probability[:, expert].mean()
    return total * experts


@exercise.alternative
def einsum_over_tokens(router_logits, expert_index):
    tokens, experts = router_logits.shape
    chosen = F.one_hot(expert_index, experts).to(router_logits)
    return experts * torch.einsum("te,se->", chosen, router_logits.softmax(-1)) / tokens**2
