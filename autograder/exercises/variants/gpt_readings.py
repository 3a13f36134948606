"""What `GPT` is asked to read, and what must hold for every right one."""

import math

import torch
import torch.nn.functional as F

from autograder.draw import Draw
from autograder.exercises.variants.invariants import (
    PROBABILITIES,
    Trouble,
    are_probabilities,
    moved,
    not_of_shape,
    quiet,
)
from autograder.program import Program, Run, build
from autograder.values import Raised, describe
from course_lib.model_sizes import model_parameter_count

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


def taking_part(draw: Draw) -> Program:
    """Count what a model learns, and what of it takes part in reading a sequence of the greatest length."""
    program, vocab, longest = model(draw)
    return program.count().count(draw.integers(0, vocab, 2, longest))


def beginning_alone(draw: Draw) -> Program:
    """Read sequences, and then only their first places."""
    program, vocab, longest = model(draw)
    tokens = draw.integers(0, vocab, 2, longest)
    return program.call(tokens).call(tokens[:, : longest - draw.integer(2, 4)])


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
    reach = "all" if row[:place].all() else "some" if earlier else "none"
    kind = f"earlier {reach}, own {bool(own)}, later {bool(later)}, other row {bool(neighbor.any())}"
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


def uses_all_parts(program: Program, found: Run) -> Trouble | None:
    """Ask that every parameter takes part in the logits."""
    count, used = found.outcomes
    if isinstance(used, Raised):
        return Trouble(f"raised {used.type_name}", f"your code raised {describe(used)}")
    if count == used:
        return None
    words = f"of your {count} parameters {used} take part in the logits; the others never learn"
    return Trouble(f"used {used} of {count}", words)


def says_the_same_of_the_beginning(program: Program, found: Run) -> Trouble | None:
    """Ask that the logits of the first places do not depend on how much follows."""
    long, short = found.outcomes
    tokens, beginning = _inputs(program)
    vocab = _sizes(program)[0]
    wrong = not_of_shape((long,), (*tokens.shape, vocab), AXES)
    wrong = wrong or not_of_shape((short,), (*beginning.shape, vocab), AXES)
    if wrong:
        return wrong
    changed = moved(long[:, : beginning.shape[1]], short)
    if not changed.any():
        return None
    words = f"{beginning.shape[1]} tokens were read, alone and followed by others, and their logits differ"
    return Trouble(f"beginning {bool(changed.all())}", words)


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
