"""Check `masked_lm_loss`: only labeled places are scored, each on its own token."""

from functools import partial

import torch
import torch.nn.functional as F

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.variants import CHAPTER, losses
from autograder.program import Program, call
from course_lib import objectives

IGNORED = losses.IGNORED


def labeled(draw: Draw, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw logits, and labels of which each row has another number; the id 0 is among them."""
    batch, length, vocab = sorted(draw.sizes(3, low=4, high=9))
    labels = draw.integers(0, vocab, batch, length)
    hidden = draw.array(draw.random.random((batch, length)) < 0.5)
    hidden[0], hidden[1] = True, False
    hidden[0, 1] = False
    hidden[:, -1] = True
    labels[0, 1], labels[1, 0] = 1, 0
    return draw.normal(batch, length, vocab, scale=scale), labels.masked_fill(hidden, IGNORED)


def some_places(draw: Draw, scale: float = 1.0) -> Program:
    """Label some places."""
    return call(*labeled(draw, scale))


def knows_what_is_hidden(draw: Draw) -> Program:
    """Give the logits of a model that is sure of what it masks, and right."""
    _, labels = labeled(draw)
    return call(draw.array(20.0 * F.one_hot(labels.clamp(min=0), 11).numpy()), labels)


def nothing_labeled(draw: Draw) -> Program:
    """Label no place; look at value and gradient."""
    logits, labels = labeled(draw)
    labels = torch.full_like(labels, IGNORED)
    return call(logits, labels).gradients(logits, labels, wrt=(0,))


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=objectives.masked_lm_loss,
    returns=("the loss",),
    properties=[losses.one_number],
    cases=[
        Case("some places are labeled", some_places),
        Case("a model that knows what is hidden", knows_what_is_hidden),
        Case("nothing is labeled", nothing_labeled),
        Case("the gradient", lambda draw: Program().gradients(*labeled(draw), wrt=(0,)), hidden=True),
        Case("logits near 200", partial(some_places, scale=100.0), hidden=True),
        Case("float64", some_places, hidden=True, dtype="float64"),
    ],
)


@exercise.misconception("""
    Your loss is too small by the share of places that carry a label: you sum over these and divide by all. The others
    do not count at all, not as zeros either.
""")
def divided_by_all(logits, labels):
    return losses.mean_over_all(logits, labels)


@exercise.misconception("""
    Unlabeled places have an influence on your loss: −100 is taken for a token, here for the first one of the
    vocabulary. It is a mark that says "not asked", and such a place must not be scored.
""")
def mark_taken_for_a_token(logits, labels):
    return losses.mean(logits, labels.clamp(min=0))


@exercise.misconception("""
    You leave out the label 0 as well. 0 is a token like any other; only −100 says that a place does not count.
""")
def token_zero_left_out(logits, labels):
    return losses.mean(logits, labels.masked_fill(labels <= 0, IGNORED))


@exercise.misconception("""
    You leave out the label −1, as some code bases do, and here the mark is −100, so it arrives at the loss as if it
    were a token. Who writes the labels and who reads them must agree.
""")
def minus_one_left_out(logits, labels):
    return losses.framework(logits, labels, ignored=-1)


@exercise.misconception("""
    You shift, as for a next token. A masked model is asked about the place itself: it did not see what stood there,
    so place t is scored on label t.
""")
def shifted_like_gpt(logits, labels):
    return losses.mean(logits[:, :-1], labels[:, 1:])


@exercise.misconception("""
    You turn logits into probabilities and hand these to a loss that takes a softmax itself. A model that is sure and
    right should get a loss near 0; look at what it gets from yours.
""")
def softmax_before_the_loss(logits, labels):
    return losses.softmax_first(logits, labels)


@exercise.misconception("""
    You return the sum over the labeled places. How many are labeled is chance, and differs from batch to batch; the
    mean does not depend on it.
""")
def sum_instead_of_mean(logits, labels):
    return losses.surprises(logits, labels)[0].sum()


@exercise.misconception("""
    You average each text first and then the texts. A text in which one token is masked then weighs as much as one with
    ten. Every labeled place has the same weight.
""")
def mean_of_means(logits, labels):
    return losses.mean_of_rows(logits, labels)


@exercise.misconception("""
    Right size, wrong sign: that is a log-likelihood, which should grow. A loss is minimized.
""")
def likelihood_instead_of_loss(logits, labels):
    return -losses.mean(logits, labels)


@exercise.misconception("""
    Your loss is larger by the factor 1/ln 2 ≈ 1.443: you measure in bits, and here it is nats.
""")
def measured_in_bits(logits, labels):
    return losses.in_bits(logits, labels)


@exercise.misconception("""
    You average the probabilities and take one logarithm at the end. Take the logarithm at every place, and the mean
    last.
""")
def logarithm_of_the_mean(logits, labels):
    return losses.log_of_mean(logits, labels)


@exercise.misconception("""
    Where nothing is labeled you return NaN. With 15 % of a short text that happens, and one NaN spoils every weight.
    The contract says 0, with a gradient of 0.
""")
def nan_where_nothing_is_labeled(logits, labels):
    return losses.framework(logits, labels)


@exercise.alternative
def by_the_framework(logits, labels):
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum")
    return total / (labels != IGNORED).sum().clamp(min=1)


@exercise.alternative
def chosen_places_alone(logits, labels):
    chosen = labels != IGNORED
    return F.cross_entropy(logits[chosen], labels[chosen]) if chosen.any() else 0 * logits.sum()


@exercise.alternative
def weighted_by_zeros_and_ones(logits, labels):
    weight = (labels != IGNORED).to(logits.dtype)
    each = F.nll_loss(logits.log_softmax(-1).transpose(1, 2), labels.clamp(min=0), reduction="none")
    return (each * weight).sum() / weight.sum().clamp(min=1)


@exercise.alternative
def place_by_place(logits, labels):
    places = [tuple(place) for place in labels.ne(IGNORED).nonzero().tolist()]
    found = [torch.logsumexp(logits[place], 0) - logits[place][int(labels[place])] for place in places]
    return torch.stack(found).mean() if found else 0 * logits.sum()
