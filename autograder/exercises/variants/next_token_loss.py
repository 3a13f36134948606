"""Check `next_token_loss`: every place is scored on the token after it."""

from functools import partial

import torch
import torch.nn.functional as F

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.variants import CHAPTER, losses
from autograder.program import Program, call
from course_lib import objectives

IGNORED = losses.IGNORED


def text(draw: Draw, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw logits and tokens whose sizes all differ."""
    batch, length, vocab = sorted(draw.sizes(3, low=3, high=9))
    return draw.normal(batch, length, vocab, scale=scale), draw.integers(0, vocab, batch, length)


def with_holes(draw: Draw, tokens: torch.Tensor, mark: int) -> torch.Tensor:
    """Mark the ends of rows, of different lengths, and one place in the middle of another row."""
    tokens = tokens.clone()
    tokens[0, -2:] = mark
    tokens[1, -1] = mark
    tokens[2, 1] = mark
    return tokens


def plain(draw: Draw, scale: float = 1.0) -> Program:
    """Count every target."""
    return call(*text(draw, scale))


def padded(draw: Draw) -> Program:
    """Ignore some targets by the usual mark."""
    logits, tokens = text(draw)
    return call(logits, with_holes(draw, tokens, IGNORED))


def another_mark(draw: Draw) -> Program:
    """Ignore targets that have the id of a real token, here of padding."""
    logits, tokens = text(draw)
    pad = draw.integer(0, 2)
    return call(logits, with_holes(draw, tokens, pad), ignore_index=pad)


def gradient(draw: Draw) -> Program:
    """Ask for the gradient of the logits."""
    logits, tokens = text(draw)
    return Program().gradients(logits, with_holes(draw, tokens, IGNORED), wrt=(0,))


def nothing_counted(draw: Draw) -> Program:
    """Ignore every target, in value and in gradient."""
    logits, tokens = text(draw)
    tokens = torch.full_like(tokens, IGNORED)
    return call(logits, tokens).gradients(logits, tokens, wrt=(0,))


def one_token(draw: Draw) -> Program:
    """Give texts of a single token, which have no successor."""
    batch, vocab = draw.sizes(2)
    return call(draw.normal(batch, 1, vocab), draw.integers(0, vocab, batch, 1))


def knows_what_comes_next(draw: Draw) -> Program:
    """Give the logits of a model that is sure of the next token, and right."""
    tokens = torch.stack([draw.array(draw.random.permutation(7)) for _ in range(3)])
    return call(draw.array(20.0 * F.one_hot(tokens.roll(-1, dims=1), 7).numpy()), tokens)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=objectives.next_token_loss,
    returns=("the loss",),
    properties=[losses.one_number],
    cases=[
        Case("all sizes differ", plain),
        Case("a model that knows what comes next", knows_what_comes_next),
        Case("some targets do not count", padded),
        Case("padding has an id of its own", another_mark, hidden=True),
        Case("the gradient", gradient, hidden=True),
        Case("logits near 200", partial(plain, scale=100.0), hidden=True),
        Case("nothing counts", nothing_counted, hidden=True),
        Case("texts of one token", one_token, hidden=True),
        Case("float64", padded, hidden=True, dtype="float64"),
    ],
)


def _shifted(logits, tokens):
    return logits[:, :-1], tokens[:, 1:]


@exercise.misconception("""
    A model that just repeats its input would get a loss near 0 from your function, and one that knows the next token a
    large one. So place t is scored on token t, which it can see. What should the output at place t be compared with,
    and which place then has no target?
""")
def not_shifted(logits, tokens, ignore_index=IGNORED):
    return losses.mean(logits, tokens, ignore_index)


@exercise.misconception("""
    Your targets are two places ahead. A model that knows the next token perfectly gets a high loss. Perhaps you shift
    the tokens and the logits, each by one, in opposite directions; or the tokens twice. One step in all is enough.
""")
def shifted_twice(logits, tokens, ignore_index=IGNORED):
    return losses.mean(logits[:, :-2], tokens[:, 2:], ignore_index)


@exercise.misconception("""
    Your shift goes the other way: place t is scored on token t − 1, which lies in its past. The slice that loses its
    **last** place should be the logits.
""")
def shifted_backward(logits, tokens, ignore_index=IGNORED):
    return losses.mean(logits[:, 1:], tokens[:, :-1], ignore_index)


@exercise.misconception("""
    Your targets wrap around: the last place of a text is scored on its first token. `roll` brings back what falls off
    the end; the last place should have no target at all.
""")
def last_place_meets_the_first_token(logits, tokens, ignore_index=IGNORED):
    return losses.mean(logits, tokens.roll(-1, dims=1), ignore_index)


@exercise.misconception("""
    The tokens are shifted across the whole batch, so the last place of each text is scored on the first token of the
    next one. Shift along the axis of places, row by row, before you flatten.
""")
def shifted_after_flattening(logits, tokens, ignore_index=IGNORED):
    return losses.mean(logits.flatten(0, 1)[:-1], tokens.flatten()[1:], ignore_index)


@exercise.misconception("""
    You turn logits into probabilities and hand these to a loss that takes a softmax itself. Even a model that is sure
    and right cannot get below ln((e + V − 1)/e) that way. `cross_entropy` wants the raw logits.
""")
def softmax_before_the_loss(logits, tokens, ignore_index=IGNORED):
    return losses.softmax_first(*_shifted(logits, tokens), ignore_index)


@exercise.misconception("""
    Your loss shrinks when a text is padded: ignored targets add nothing to the sum, but you still divide by their
    number. Divide by the number of targets that count.
""")
def ignored_in_the_divisor(logits, tokens, ignore_index=IGNORED):
    return losses.mean_over_all(*_shifted(logits, tokens), ignore_index)


@exercise.misconception("""
    `ignore_index` changes nothing in your function; only −100 is left out. With another mark, padding is scored as if
    it were text.
""")
def mark_built_in(logits, tokens, ignore_index=IGNORED):
    return losses.mean(*_shifted(logits, tokens))


@exercise.misconception("""
    You return the sum. A long text then has a larger loss than a short one, and the learning rate would have to know
    the size of the batch. Take the mean over the targets that count.
""")
def sum_instead_of_mean(logits, tokens, ignore_index=IGNORED):
    return losses.surprises(*_shifted(logits, tokens), ignore_index)[0].sum()


@exercise.misconception("""
    You average each text first and then the texts, so a token of a short text weighs more than one of a long text.
    Every target that counts has the same weight: one sum, one division.
""")
def mean_of_means(logits, tokens, ignore_index=IGNORED):
    return losses.mean_of_rows(*_shifted(logits, tokens), ignore_index)


@exercise.misconception("""
    Your number has the right size and the wrong sign: it is the log-likelihood, which the documents' AR(x) sums up and
    which should grow. A loss is minimized: take its negative.
""")
def likelihood_instead_of_loss(logits, tokens, ignore_index=IGNORED):
    return -losses.mean(*_shifted(logits, tokens), ignore_index)


@exercise.misconception("""
    Your loss is larger by the factor 1/ln 2 ≈ 1.443: you measure in bits. Both units are in use; here it is nats, the
    natural logarithm.
""")
def measured_in_bits(logits, tokens, ignore_index=IGNORED):
    return losses.in_bits(*_shifted(logits, tokens), ignore_index)


@exercise.misconception("""
    You average the probabilities and take one logarithm at the end. One certain mistake then hardly costs anything.
    Take the logarithm at every place, and the mean last.
""")
def logarithm_of_the_mean(logits, tokens, ignore_index=IGNORED):
    return losses.log_of_mean(*_shifted(logits, tokens), ignore_index)


@exercise.misconception("""
    Where no target counts you return NaN: 0 divided by 0. One batch of padding would spoil every weight. The contract
    says 0, with a gradient of 0; what must the divisor be at least?
""")
def nan_where_nothing_counts(logits, tokens, ignore_index=IGNORED):
    logits, targets = _shifted(logits, tokens)
    return losses.framework(logits, targets, ignore_index)


@exercise.misconception("""
    You leave a place out when its **own** token is ignored. It is the target that decides: what comes after a gap can
    still be predicted at the gap, and the gap itself cannot be predicted from before it.
""")
def own_token_decides(logits, tokens, ignore_index=IGNORED):
    logits, targets = _shifted(logits, tokens)
    own = tokens[:, :-1] != ignore_index
    valid = targets != IGNORED
    return losses.mean(logits, targets.masked_fill(~(own & valid), ignore_index), ignore_index)


@exercise.alternative
def by_the_framework(logits, tokens, ignore_index=IGNORED):
    counted = (tokens[:, 1:] != ignore_index).sum().clamp(min=1)
    total = F.cross_entropy(
        logits[:, :-1].reshape(-1, logits.shape[-1]),
        tokens[:, 1:].reshape(-1),
        ignore_index=ignore_index,
        reduction="sum",
    )
    return total / counted


@exercise.alternative
def classes_on_axis_one(logits, tokens, ignore_index=IGNORED):
    if not (tokens[:, 1:] != ignore_index).any():
        return logits.sum() * 0
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:], ignore_index=ignore_index)


@exercise.alternative
def targets_padded_at_the_end(logits, tokens, ignore_index=IGNORED):
    targets = F.pad(tokens[:, 1:], (0, 1), value=ignore_index)
    return losses.mean(logits, targets, ignore_index)


@exercise.alternative
def place_by_place(logits, tokens, ignore_index=IGNORED):
    total, count = logits.sum() * 0, 0
    for row in range(tokens.shape[0]):
        for place in range(tokens.shape[1] - 1):
            target = int(tokens[row, place + 1])
            if target != ignore_index:
                total = total + torch.logsumexp(logits[row, place], 0) - logits[row, place, target]
                count += 1
    return total / max(count, 1)
