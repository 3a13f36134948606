"""Check `TransformerClassifier` by what holds for every right one: padding is nothing, order is something."""

import torch

from autograder.draw import Draw
from autograder.exercise import Exercise
from autograder.exercises.variants import CHAPTER
from autograder.exercises.variants.invariants import (
    PROBABILITIES,
    Trouble,
    are_probabilities,
    invariant,
    moved,
    not_of_shape,
    quiet,
)
from autograder.program import Program, Run, build
from course_lib.models.classifier import TransformerClassifier

HEADS = 3
AXES = "(batch, class)"
VOCAB, LENGTH = 23, 9
LEAST_SHOWN = 4  # tokens of the shortest sequence


def model(draw: Draw, num_layers: int = 2) -> tuple[Program, int]:
    """Build a model; give its number of classes as well."""
    d_head, classes = 2 * draw.integer(2, 4), draw.integer(4, 6)
    return quiet(build(VOCAB, HEADS * d_head, HEADS, num_layers, classes)), classes


def batch(draw: Draw, rows: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw sequences of different lengths, padded at the end; the first one fills its row."""
    lengths = torch.from_numpy(draw.random.choice(range(LEAST_SHOWN, LENGTH - 1), rows, replace=False))
    lengths[0] = LENGTH
    mask = torch.arange(LENGTH) >= lengths[:, None]
    return draw.integers(0, VOCAB, rows, LENGTH), mask


def padded_batch(draw: Draw, num_layers: int = 2) -> Program:
    """Classify a padded batch."""
    return model(draw, num_layers)[0].call(*batch(draw))


def other_padding(draw: Draw, left: bool = False) -> Program:
    """Classify a batch, again with one hidden token changed in a row, with another one, and with both."""
    tokens, mask = batch(draw)
    mask = mask.flip(1) if left else mask
    program, shift = model(draw)[0].call(tokens, mask), draw.integer(1, VOCAB - 1)
    first, second = (0, 1) if left else (-1, -2)
    for changed in ([first], [second], [first, second]):
        other = tokens.clone()
        other[1:, changed] = (other[1:, changed] + shift) % VOCAB  # the first row hides nothing
        program = program.call(other, mask)
    return program


def hidden_or_shown(draw: Draw) -> Program:
    """Classify a batch, and again with nothing hidden."""
    tokens, mask = batch(draw)
    return model(draw)[0].call(tokens, mask).call(tokens, torch.zeros_like(mask))


def more_padding(draw: Draw) -> Program:
    """Classify a batch, and again with three hidden places more."""
    tokens, mask = batch(draw)
    longer = torch.cat([tokens, draw.integers(0, VOCAB, len(tokens), 3)], dim=1)
    return model(draw)[0].call(tokens, mask).call(longer, torch.nn.functional.pad(mask, (0, 3), value=True))


def other_company(draw: Draw) -> Program:
    """Classify a batch, and again with another sequence in its first row."""
    tokens, mask = batch(draw)
    other = torch.cat([(tokens[:1] + draw.integer(1, VOCAB - 1)) % VOCAB, tokens[1:]])
    return model(draw)[0].call(tokens, mask).call(other, mask)


def other_order(draw: Draw) -> Program:
    """Classify sequences of different tokens, and again with two of them exchanged."""
    tokens = torch.stack([torch.from_numpy(draw.random.permutation(VOCAB)[:LENGTH]) for _ in range(2)])
    mask = torch.zeros_like(tokens, dtype=torch.bool)
    mask[1, -2:] = True
    first, second = draw.integer(0, 2), draw.integer(3, 6)
    order = list(range(LENGTH))
    order[first], order[second] = order[second], order[first]
    return model(draw)[0].call(tokens, mask).call(tokens[:, order], mask)


def one_token_changed(draw: Draw) -> Program:
    """Classify a batch, and again with its last visible tokens changed, at a different place in every row."""
    tokens, mask = batch(draw)
    last = (~mask).sum(1) - 1
    other = tokens.clone()
    rows = torch.arange(len(tokens))
    other[rows, last] = (other[rows, last] + draw.integer(1, VOCAB - 1)) % VOCAB
    return model(draw)[0].call(tokens, mask).call(other, mask)


def empty_sequence(draw: Draw) -> Program:
    """Classify a batch of which one row is hidden altogether."""
    tokens, mask = batch(draw)
    mask[1] = True
    return model(draw)[0].call(tokens, mask)


def _logits(program: Program, found: Run) -> Trouble | None:
    rows = len(next(step.args[0] for step in program.steps if step.action == "call" and step.observe))
    return not_of_shape(found.outcomes, (rows, program.steps[0].args[4]), AXES)


def gives_logits(program: Program, found: Run) -> Trouble | None:
    """Ask for one number per sequence and class."""
    wrong = _logits(program, found)
    return wrong or (PROBABILITIES if are_probabilities(found.outcomes[0]) else None)


def stays(words: str):
    """Make a reading that asks for the same logits both times; `words` say what was changed."""

    def reading(program: Program, found: Run) -> Trouble | None:
        wrong = _logits(program, found)
        if wrong:
            return wrong
        rows = moved(*found.outcomes)
        return Trouble(f"moved {rows.tolist()}", f"{words}, and the logits moved") if rows.any() else None

    return reading


def goes(words: str):
    """Make a reading that asks for other logits in every row the second time; `words` say what was changed."""

    def reading(program: Program, found: Run) -> Trouble | None:
        wrong = _logits(program, found)
        if wrong:
            return wrong
        rows = moved(*found.outcomes)
        return None if rows.all() else Trouble(f"moved {rows.tolist()}", f"{words}, and the logits did not move")

    return reading


def others_stay(program: Program, found: Run) -> Trouble | None:
    """Ask that a sequence does not care about its company."""
    wrong = _logits(program, found)
    if wrong:
        return wrong
    rows = moved(*found.outcomes)[1:]
    words = "another sequence stands in row 0 of the batch, and the logits of other rows moved"
    return Trouble("company", words) if rows.any() else None


def padding_is_nothing(program: Program, found: Run) -> Trouble | None:
    """Ask that hidden tokens move nothing; if they do, see whether the two changes add up, as in a mean they would."""
    wrong = _logits(program, found)
    if wrong:
        return wrong
    before, first, second, both = found.outcomes
    rows = moved(before, both)
    if not rows.any():
        return None
    meet = moved(before, before + both - first - second + before).any()
    kind = f"moved {rows.tolist()}, {'read together' if meet else 'added up'}"
    return Trouble(kind, "only tokens that the mask hides were changed, and the logits moved")


def mask_matters(program: Program, found: Run) -> Trouble | None:
    """Ask that rows with something hidden move when it is shown, and that others stay."""
    wrong = _logits(program, found)
    if wrong:
        return wrong
    _, mask = next(step.args for step in program.steps if step.action == "call" and step.observe)
    rows, expected = moved(*found.outcomes), mask.any(1)
    if torch.equal(rows, expected):
        return None
    words = "rows were read once with their mask and once with nothing hidden; where nothing was hidden before the "
    return Trouble(f"moved {rows.tolist()}", f"{words}logits should stay, elsewhere they should move")


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=TransformerClassifier,
    cases=[
        invariant("a padded batch", padded_batch, gives_logits),
        invariant("other tokens in the padding", other_padding, padding_is_nothing),
        invariant("hidden once, shown once", hidden_or_shown, mask_matters),
        invariant("more padding", more_padding, stays("three hidden places were added at the end")),
        invariant("two tokens exchanged", other_order, goes("two visible tokens of each row were exchanged")),
        invariant("other company", other_company, others_stay),
        invariant("the last visible token", one_token_changed, goes("the last visible token of each row was changed")),
        invariant("an empty sequence", empty_sequence, gives_logits, hidden=True),
        invariant("padding on the left", lambda draw: other_padding(draw, left=True), padding_is_nothing, hidden=True),
        invariant("one layer", lambda draw: padded_batch(draw, 1), gives_logits, hidden=True),
    ],
)
