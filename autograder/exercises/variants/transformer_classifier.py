"""Check `TransformerClassifier` by what holds for every right one: padding is nothing, order is something."""

import torch
from torch import nn

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
from course_lib.padded_batches import masked_mean
from course_lib.positions import sinusoidal_encoding

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


class _Parts(TransformerClassifier):
    """The classifier with its steps as methods, so that a belief can replace one of them."""

    def places(self, length, width):
        return torch.from_numpy(sinusoidal_encoding(length, width)).float()

    def hidden(self, mask):
        return mask[:, None, None, :]

    def read(self, tokens, mask):
        x = self.embedding(tokens)
        x = x + self.places(*x.shape[1:])
        for block in self.blocks:
            x = block(x, self.hidden(mask))
        return self.norm(x)

    def pool(self, x, mask):
        return masked_mean(x, mask)

    def forward(self, tokens, mask):
        return self.head(self.pool(self.read(tokens, mask), mask))


@exercise.misconception("""
    Your classifier does not know order: exchanging two words changes nothing. Attention treats a sequence as a bag, and
    so does a mean (chapter 5). Document A's classifier has this fault, and cannot learn which of two words comes first.
    What is added to the embeddings?
""")
class NoPositions(_Parts):
    def places(self, length, width):
        return torch.zeros(length, width)


@exercise.misconception("""
    The padding is hidden from attention, and it still counts in your mean: with more padding the same sentence gets
    other logits. How many tokens should the sum be divided by, and which ones belong into it?
""")
class PaddingInTheMean(_Parts):
    def pool(self, x, mask):
        return x.mean(1)


@exercise.misconception("""
    Your sum leaves the padding out, but you divide by the whole length, padding included. Six words then give six
    ninths of their mean in a row of nine places. Count the visible ones.
""")
class DividedByTheWholeLength(_Parts):
    def pool(self, x, mask):
        return x.masked_fill(mask[..., None], 0).mean(1)


@exercise.misconception("""
    The padding is left out of your mean, but tokens still attend to it inside the blocks. It must be hidden twice: as a
    key in every attention, and in the mean. (If you do hand a mask to the blocks: in (batch, head, query, key) the
    padding belongs on the **last** axis. What a padded token asks does no harm; what others read from it does.)
""")
class PaddingAttended(_Parts):
    def hidden(self, mask):
        return None


@exercise.misconception("""
    Your mask has no influence: padding is read by the blocks and counted in the mean. Where does `forward` use it?
""")
class MaskIgnored(_Parts):
    def forward(self, tokens, mask):
        return super().forward(tokens, torch.zeros_like(mask))


@exercise.misconception("""
    Your mask works the wrong way round: the visible tokens have no influence, and the padding decides. True hides.
""")
class MaskInverted(_Parts):
    def forward(self, tokens, mask):
        return super().forward(tokens, ~mask)


@exercise.misconception("""
    You read the features of the first place, as BERT reads its special token. Here there is no such token, and where
    the padding stands first it is a padded one that you read. A mean over what is visible is asked for.
""")
class FirstPlaceOnly(_Parts):
    def pool(self, x, mask):
        return x[:, 0]


@exercise.misconception("""
    You read the features of the last place, which is padding in most rows. A mean over the visible tokens takes part
    of each.
""")
class LastPlaceOnly(_Parts):
    def pool(self, x, mask):
        return x[:, -1]


@exercise.misconception("""
    Your attention runs along the batch, so a sentence is read together with the others and not with itself. Which axis
    do your blocks take for the sequence? (The framework's layers need `batch_first=True` here.)
""")
class AttentionAlongTheBatch(_Parts):
    def read(self, tokens, mask):
        x = self.embedding(tokens)
        x = (x + self.places(*x.shape[1:])).transpose(0, 1)
        for block in self.blocks:
            x = block(x)
        return self.norm(x.transpose(0, 1))


@exercise.misconception("""
    You return probabilities. Return what the head gives: cross-entropy has the softmax inside.
""")
class Probabilities(_Parts):
    def forward(self, tokens, mask):
        return super().forward(tokens, mask).softmax(-1)


@exercise.misconception("""
    You classify every place. One answer per sequence is asked for: first take the mean over the visible tokens.
""")
class NoPooling(_Parts):
    def pool(self, x, mask):
        return x


@exercise.misconception("""
    A sequence without a visible token gives NaN, 0 divided by 0, and one such row spoils the whole batch's loss. Give
    it a mean of zeros: what is the least that the count may be?
""")
class NanForAnEmptySequence(_Parts):
    def pool(self, x, mask):
        return x.masked_fill(mask[..., None], 0).sum(1) / (~mask).sum(1, keepdim=True)


@exercise.alternative
class WithPaddingThatAsksNothing(_Parts):
    def hidden(self, mask):
        return mask[:, None, None, :] | mask[:, None, :, None]


@exercise.alternative
class OnTheFrameworkStack(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, num_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(128, d_model)
        layer = nn.TransformerEncoderLayer(d_model, num_heads, 2 * d_model, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        self.out = nn.Linear(d_model, num_classes)

    def forward(self, tokens, mask):
        x = self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1]))
        shown = ~mask
        empty = mask.all(1, keepdim=True)
        x = self.encoder(x, src_key_padding_mask=mask & ~empty)
        kept = (x * shown.unsqueeze(-1)).sum(1) / shown.sum(1).clamp(min=1).unsqueeze(-1)
        return self.out(kept)


@exercise.alternative
class WithOwnSinusoids(TransformerClassifier):
    def forward(self, tokens, mask):
        width = self.embedding.embedding_dim
        angles = torch.arange(tokens.shape[1])[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
        x = self.embedding(tokens) + torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        for block in self.blocks:
            x = block(x, mask.unsqueeze(1).unsqueeze(2))
        weights = (~mask).float() / (~mask).float().sum(1, keepdim=True).clamp(min=1)
        return self.head(torch.einsum("bn,bnd->bd", weights, self.norm(x)))


@exercise.alternative
class WithSmallLearnedPlaces(_Parts):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, num_classes):
        super().__init__(vocab_size, d_model, num_heads, num_layers, num_classes)
        self.learned = nn.Parameter(0.02 * torch.randn(64, d_model))

    def places(self, length, width):
        return self.learned[:length]


@exercise.alternative
class RowByRow(_Parts):
    def forward(self, tokens, mask):
        found = []
        for row, hidden in zip(tokens, mask, strict=True):
            shown = ~hidden
            if not shown.any():
                found.append(self.head(torch.zeros(self.embedding.embedding_dim)))
                continue
            x = self.read(row[None], hidden[None])[0]
            found.append(self.head(x[shown].mean(0)))
        return torch.stack(found)
