"""Check `GPT` by what holds for every right one: what a place sees, what a fresh model guesses, what it learns."""

import math

import torch
import torch.nn.functional as F

from autograder.draw import Draw
from autograder.exercise import Exercise
from autograder.exercises.variants import CHAPTER
from autograder.exercises.variants.gpt_forms import ACCEPTED_FORMS
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
from autograder.values import Raised, describe
from course_lib.masks import causal_mask
from course_lib.model_sizes import model_parameter_count
from course_lib.models import gpt

HEADS = 3
AXES = "(batch, token, vocab)"
FRESH = 1.0  # nats; a small start stays within 0.1, one with embeddings of variance 1 is several above
LEAST_VOCAB, MOST_VOCAB = 40, 60


def model(draw: Draw, num_layers: int = 2, num_heads: int = HEADS) -> tuple[Program, int, int]:
    """Build a model; give its vocabulary and the longest sequence as well."""
    d_head = 2 * draw.integer(2, 4)
    vocab, longest = draw.integer(LEAST_VOCAB, MOST_VOCAB), draw.integer(9, 12)
    return quiet(build(vocab, num_heads * d_head, num_heads, num_layers, longest)), vocab, longest


def places(draw: Draw, **options: int) -> Program:
    """Read a few sequences that are shorter than the longest."""
    program, vocab, longest = model(draw, **options)
    return program.call(draw.integers(0, vocab, 3, longest - draw.integer(1, 3)))


def one_token_changed(draw: Draw, num_layers: int = 2) -> Program:
    """Read sequences twice, with one token of the first row changed the second time."""
    program, vocab, longest = model(draw, num_layers)
    tokens = draw.integers(0, vocab, 2, longest)
    other = tokens.clone()
    place = draw.integer(3, longest - 4)
    other[0, place] = (other[0, place] + draw.integer(1, vocab - 1)) % vocab
    return program.call(tokens).call(other)


def repeated_token(draw: Draw) -> Program:
    """Read the same token at every place."""
    program, vocab, longest = model(draw)
    return program.call(torch.full((1, longest), draw.integer(0, vocab - 1)))


def many_tokens(draw: Draw) -> Program:
    """Read enough tokens for a steady mean."""
    program, vocab, longest = model(draw)
    return program.call(draw.integers(0, vocab, 32, longest))


def counted(draw: Draw, num_layers: int = 3) -> Program:
    """Count what a model learns."""
    return model(draw, num_layers)[0].count()


def too_long(draw: Draw) -> Program:
    """Read a sequence of the greatest length, and one that is longer."""
    program, vocab, longest = model(draw)
    tokens = draw.integers(0, vocab, 1, longest + 1)
    return program.call(tokens[:, 1:]).call(tokens)


def _sizes(program: Program) -> tuple[int, ...]:
    return program.steps[0].args


def _inputs(program: Program) -> list[torch.Tensor]:
    return [step.args[0] for step in program.steps if step.action == "call" and step.observe]


def logits_everywhere(program: Program, found: Run) -> Trouble | None:
    """Ask for logits of every place."""
    shape = (*_inputs(program)[0].shape, _sizes(program)[0])
    wrong = not_of_shape(found.outcomes, shape, AXES)
    return wrong or (PROBABILITIES if are_probabilities(found.outcomes[0]) else None)


def sees_the_past_alone(program: Program, found: Run) -> Trouble | None:
    """Ask that a changed token moves its own place and all later ones, and no other."""
    tokens, other = _inputs(program)
    wrong = not_of_shape(found.outcomes, (*tokens.shape, _sizes(program)[0]), AXES)
    if wrong:
        return wrong
    place = int((tokens != other)[0].nonzero())
    row, neighbor = moved(*found.outcomes)
    earlier, own, later = row[:place].any(), row[place], row[place + 1 :].all()
    kind = f"earlier {bool(earlier)}, own {bool(own)}, later {bool(later)}, other row {bool(neighbor.any())}"
    if neighbor.any():
        return Trouble(kind, "a token of batch row 0 was changed, and the logits of batch row 1 moved")
    if earlier:
        first = int(row.nonzero()[0])
        words = f"the token at place {place} was changed, and the logits at place {first}, before it, moved"
        return Trouble(kind, f"{words}: it sees what it should predict")
    if not (own and later):
        return Trouble(kind, f"the token at place {place} was changed, and not all logits from there on moved")
    return None


def knows_places(program: Program, found: Run) -> Trouble | None:
    """Ask that a token looks different at different places."""
    wrong = logits_everywhere(program, found)
    if wrong:
        return wrong
    logits = found.outcomes[0][0]
    if not moved(logits[:-1], logits[1:]).all():
        return Trouble("no places", "the same token stands at every place, and its logits do not depend on where")
    return None


def guesses_evenly(program: Program, found: Run) -> Trouble | None:
    """Ask that a fresh model loses about ln V."""
    wrong = logits_everywhere(program, found)
    if wrong:
        return wrong
    tokens, logits = _inputs(program)[0], found.outcomes[0]
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).item()
    even = math.log(_sizes(program)[0])
    if abs(loss - even) > FRESH:
        words = f"a fresh model of {_sizes(program)[0]} tokens loses {loss:.2f} nats; knowing nothing costs ln V = "
        return Trouble("uneven start", f"{words}{even:.2f}")
    return None


def learns_as_many(program: Program, found: Run) -> Trouble | None:
    """Ask for the number of parameters that the sizes give."""
    count = found.outcomes[0]
    vocab, d_model, _, num_layers, longest = _sizes(program)
    wanted = model_parameter_count(vocab, longest, d_model, num_layers, 4 * d_model)
    if isinstance(count, int) and count == wanted:
        return None
    if not isinstance(count, int):
        return Trouble(f"count {type(count).__name__}", f"your model has no parameters to count: {describe(count)}")
    away = f"{abs(count - wanted)} too {'many' if count > wanted else 'few'}"
    sizes = f"V = {vocab}, d_model = {d_model}, {num_layers} layers, {longest} positions"
    return Trouble(f"count {count - wanted}", f"expected {wanted} parameters and got {count}, {away} ({sizes})")


def refuses_what_is_too_long(program: Program, found: Run) -> Trouble | None:
    """Ask for a `ValueError` where there are more tokens than positions, and for none at the greatest length."""
    fits, longer = found.outcomes
    wrong = not_of_shape((fits,), (*_inputs(program)[0].shape, _sizes(program)[0]), AXES)
    if wrong:
        return wrong
    if isinstance(longer, Raised) and longer.is_a("ValueError"):
        return None
    kind = longer.type_name if isinstance(longer, Raised) else describe(longer)
    words = (
        f"{_sizes(program)[4] + 1} tokens went into a model with {_sizes(program)[4]} positions; expected a ValueError"
    )
    return Trouble(f"too long: {kind}", f"{words} and got {describe(longer)}")


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=gpt.GPT,
    cases=[
        invariant("logits for every place", places, logits_everywhere),
        invariant("a token in the middle is changed", one_token_changed, sees_the_past_alone),
        invariant("the same token at every place", repeated_token, knows_places),
        invariant("what a fresh model guesses", many_tokens, guesses_evenly),
        invariant("the number of parameters", counted, learns_as_many),
        invariant("more tokens than positions", too_long, refuses_what_is_too_long),
        invariant(
            "one layer, one head", lambda draw: places(draw, num_layers=1, num_heads=1), logits_everywhere, hidden=True
        ),
        invariant(
            "a token is changed, one layer", lambda draw: one_token_changed(draw, 1), sees_the_past_alone, hidden=True
        ),
        invariant("parameters of one layer", lambda draw: counted(draw, 1), learns_as_many, hidden=True),
    ],
)


class _Parts(gpt.GPT):
    """The model with its steps as methods, so that a belief can replace one of them."""

    def check_length(self, tokens):
        gpt.require_length(tokens.shape[1], self.max_length)
        return tokens

    def hidden(self, length):
        return causal_mask(length)

    def embed(self, tokens):
        return self.token_embedding(tokens) + self.position_embedding(torch.arange(tokens.shape[1]))

    def run_blocks(self, x):
        for block in self.blocks:
            x = block(x, self.hidden(x.shape[1]))
        return x

    def read_out(self, x):
        return F.linear(self.norm(x), self.token_embedding.weight)

    def forward(self, tokens):
        return self.read_out(self.run_blocks(self.embed(self.check_length(tokens))))


@exercise.misconception("""
    Nothing hides the future: every place sees the tokens that it should predict. Such a model reaches a loss near 0
    while it trains and can write nothing, for then there is no future to copy. What does a
    block take besides x?
""")
class NoMask(_Parts):
    def hidden(self, length):
        return None


@exercise.misconception("""
    Your mask works the wrong way round: a place sees what comes later and not what came before. True hides in this
    course, so True belongs where the key is **later** than the query. Print the mask for 4 tokens: is the upper
    right corner True?
""")
class MaskInverted(_Parts):
    def hidden(self, length):
        return ~causal_mask(length)


@exercise.misconception("""
    Your model looks at the token before each place at most, so a token is forgotten after one step. A causal mask
    hides what is **later**; all that came before stays visible. How many False should the last row have?
""")
class SeesOneStepBack(_Parts):
    def hidden(self, length):
        return torch.ones(length, length, dtype=torch.bool).tril(-2) | causal_mask(length)

    def run_blocks(self, x):
        return self.blocks[0](x, self.hidden(x.shape[1]))


@exercise.misconception("""
    Your attention runs along the batch: tokens of different texts look at each other, and tokens of one text do not.
    Which axis do your blocks take for the sequence? (The framework's layers take the first one unless they are built
    with `batch_first=True`.)
""")
class AttentionAlongTheBatch(_Parts):
    def run_blocks(self, x):
        return super().run_blocks(x.transpose(0, 1)).transpose(0, 1)


@exercise.misconception("""
    Your model has no positions: a token looks the same wherever it stands. Attention alone does not know places
    (chapter 5); what is added to the token embedding?
""")
class NoPositions(_Parts):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        del self.position_embedding

    def embed(self, tokens):
        return self.token_embedding(tokens)


@exercise.misconception("""
    You return probabilities. The loss takes logits and has the softmax inside; fed with probabilities it cannot fall
    below ln((e + V - 1) / e), however well the model knows. Which line can go?
""")
class Probabilities(_Parts):
    def read_out(self, x):
        return super().read_out(x).softmax(-1)


@exercise.misconception("""
    You return logits of the last place alone. That is what writing needs, and a training step learns from **every**
    place at once: each is a prediction of its own. Where is the sequence cut?
""")
class LastPlaceOnly(_Parts):
    def read_out(self, x):
        return super().read_out(x[:, -1])


@exercise.misconception("""
    You return a pair, as nanoGPT does (logits and loss). Here a model returns its logits, and `next_token_loss` does
    the rest.
""")
class PairReturned(_Parts):
    def forward(self, tokens):
        return super().forward(tokens), None


@exercise.misconception("""
    Your output has d_model numbers per place. Who turns a token's features into one score for each word of the
    vocabulary? Here that is the embedding matrix once more.
""")
class NoHead(_Parts):
    def read_out(self, x):
        return self.norm(x)


@exercise.misconception("""
    Your fresh model is sure of itself and wrong. `nn.Embedding` starts with entries of variance 1, and the tied head
    multiplies the last features by the same matrix, so logits are of size √d_model. Start all matrices near 0, with a
    standard deviation of 0.02: what does the loss start from then?
""")
class EmbeddingsOfVarianceOne(_Parts):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        torch.nn.init.normal_(self.token_embedding.weight)


@exercise.misconception("""
    Your count is V · d_model too high: the head is a matrix of its own. It should **be** the token embedding, the same
    parameter. (A copy of it is equal at the start only: after one step the two part.)
""")
class HeadOfItsOwn(_Parts):
    def __init__(self, vocab_size, d_model, *sizes):
        super().__init__(vocab_size, d_model, *sizes)
        self.head = torch.nn.Linear(d_model, vocab_size, bias=False)

    def read_out(self, x):
        return self.head(self.norm(x))


@exercise.misconception("""
    Your count is V too high: the head has a bias. The tied head is the embedding alone; `nn.Linear` adds a bias unless
    you say otherwise.
""")
class HeadWithBias(_Parts):
    def __init__(self, vocab_size, *sizes):
        super().__init__(vocab_size, *sizes)
        self.bias = torch.nn.Parameter(torch.zeros(vocab_size))

    def read_out(self, x):
        return super().read_out(x) + self.bias


@exercise.misconception("""
    Your positions are sinusoids, which learn nothing: the count lacks max_length · d_model. The first transformer has
    them; GPT learns a vector for every place.
""")
class SinusoidalPositions(_Parts):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_length):
        super().__init__(vocab_size, d_model, num_heads, num_layers, max_length)
        weight = self.position_embedding.weight.detach()
        del self.position_embedding
        self.table = weight

    def embed(self, tokens):
        return self.token_embedding(tokens) + self.table[: tokens.shape[1]]


@exercise.misconception("""
    Your count is 2 · d_model short: the norm after the last block is missing. In a pre-norm stack the skip path carries
    what no norm has seen (chapter 3); GPT-2 normalizes it once, before the head.
""")
class NoLastNorm(_Parts):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.norm = torch.nn.Identity()


@exercise.misconception("""
    All your layers are one and the same block: the count does not grow with num_layers. `[block] * n` makes a list of n
    names for one object. Make a new block for each.
""")
class OneBlockForAll(_Parts):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.blocks = torch.nn.ModuleList([self.blocks[0]] * len(self.blocks))


@exercise.misconception("""
    Your feed-forward networks are 2048 wide inside, which is the default of the framework's layer. Here the width is
    4 · d_model: hand it on.
""")
class WidthOfTheFramework(_Parts):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_length):
        super().__init__(vocab_size, d_model, num_heads, num_layers, max_length)
        for block in self.blocks:
            block.ffn = gpt.TransformerBlock(d_model, num_heads, 2048, activation="gelu").ffn


@exercise.misconception("""
    Your feed-forward networks are as wide inside as outside. They widen to 4 · d_model and come back; two thirds of a
    block's parameters are in there.
""")
class NoWidening(_Parts):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_length):
        super().__init__(vocab_size, d_model, num_heads, num_layers, max_length)
        for block in self.blocks:
            block.ffn = gpt.TransformerBlock(d_model, num_heads, d_model, activation="gelu").ffn


@exercise.misconception("""
    A sequence that is too long ends in an `IndexError` from inside the position table, which tells nobody what to do.
    Compare the length with `max_length` first and raise a `ValueError` that names both.
""")
class IndexErrorWhenTooLong(_Parts):
    def check_length(self, tokens):
        return tokens


@exercise.misconception("""
    A sequence that is too long is cut in silence, so the logits belong to other places than the caller thinks. Cutting
    is the business of whoever writes with the model; here a `ValueError` is wanted.
""")
class CutWhenTooLong(_Parts):
    def check_length(self, tokens):
        return tokens[:, -self.max_length :]


for form in ACCEPTED_FORMS:
    exercise.alternative(form)
