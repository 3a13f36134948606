"""Check `to_sdpa_mask`: from "True hides" to what the framework's attention expects."""

import math

import torch
import torch.nn.functional as F

from autograder.compare import difference
from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.masking import CHAPTER
from autograder.program import Program, Run, call
from course_lib import masks
from course_lib.tensor_attention import tensor_attention

HEADS, WIDTH = 3, 6


def attention_agrees(program: Program, found: Run) -> str | None:
    """Hand the mask to the framework's attention and compare with ours under the mask that was given."""
    (mask,) = program.steps[0].args
    came = found.outcomes[0]
    if not isinstance(came, torch.Tensor):
        return difference(mask, came, "the mask")
    generator = torch.Generator().manual_seed(0)
    batch, n_q, n_k = (2, 5, mask.shape[-1]) if mask.ndim == 4 else (2, mask.shape[-2], mask.shape[-1])
    shapes = ((batch, HEADS, n_q, WIDTH), (batch, HEADS, n_k, WIDTH), (batch, HEADS, n_k, WIDTH))
    query, key, value = (torch.randn(shape, generator=generator) for shape in shapes)
    wanted, _ = tensor_attention(query, key, value, mask)
    try:
        output = F.scaled_dot_product_attention(query, key, value, attn_mask=came)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        return f"F.scaled_dot_product_attention refuses your mask, saying: {reason}"
    sentence = difference(wanted, output, "its output")
    return sentence and f"with your mask the framework's attention differs from the course's: {sentence}"


def square(draw: Draw) -> Program:
    """Draw a mask in which every row hides some keys and shows some."""
    n_q, n_k = draw.sizes(2, low=3)
    return call(draw.mask(n_q, n_k))


def padded(draw: Draw) -> Program:
    """Draw a padding mask that broadcasts over heads and queries."""
    return call(draw.mask(2, 1, 1, draw.integer(4, 7)))


def one_row_hidden(draw: Draw) -> Program:
    """Hide everything from one of the queries."""
    mask = draw.mask(5, 6)
    mask[draw.integer(0, 4)] = True
    return call(mask)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=masks.to_sdpa_mask,
    returns=("the mask",),
    forbids=["torch.nn.functional.scaled_dot_product_attention"],
    forbids_because="this exercise asks for the mask alone; the check calls the attention",
    cases=[
        Case("queries and keys", square, judge=attention_agrees),
        Case("a causal mask", lambda draw: call(masks.causal_mask(draw.integer(3, 7))), judge=attention_agrees),
        Case("a padding mask of four axes", padded, hidden=True, judge=attention_agrees),
        Case("a query that sees nothing", one_row_hidden, hidden=True, judge=attention_agrees),
        Case(
            "2 queries behind kept keys",
            lambda draw: call(masks.causal_mask(2, 7)),
            hidden=True,
            judge=attention_agrees,
        ),
    ],
)


@exercise.misconception("""
    You pass the mask on as it is, and the framework's function takes it without a word: it shows exactly what you
    hide. There True means "takes part". Nothing warns, since a boolean mask of the right shape looks fine either way.
""")
def passed_on(mask):
    return mask.clone()


@exercise.misconception("""
    Your mask holds numbers, 1 for what is seen and 0 for what is hidden. The framework's function **adds** a mask of
    numbers to the scores, so that what is seen gains 1 and what is hidden loses nothing. Leave the mask boolean.
""")
def ones_for_the_visible(mask):
    return (~mask).float()


@exercise.misconception("""
    Your mask holds numbers, 1 for what is hidden. The framework's function **adds** a mask of numbers to the scores:
    what should be hidden gains 1. Leave the mask boolean, and mind what True means there.
""")
def ones_for_the_hidden(mask):
    return mask.float()


@exercise.misconception("""
    You built the additive form, and the wrong way round: -inf stands at what should be seen. It is the hidden places
    that get -inf.
""")
def visible_at_minus_infinity(mask):
    return masks.additive_mask(~mask, torch.float32)


@exercise.misconception("""
    Your mask holds integers, which the framework's function refuses. It takes a boolean mask, or numbers of the dtype
    of the queries that it adds.
""")
def integers(mask):
    return (~mask).long()


@exercise.misconception("""
    Your mask is right as long as every query sees something. A query that sees nothing gets a share of every key,
    because a large negative number in a whole row cancels out. A boolean mask, or -inf, gives it zeros.
""")
def large_number(mask):
    return torch.zeros(mask.shape).masked_fill(mask, -1e9)


@exercise.misconception("""
    You turned the mask on its diagonal as well. Rows are queries and columns are keys in both conventions; only the
    meaning of True differs.
""")
def turned(mask):
    return ~mask.mT


@exercise.misconception("""
    You return no mask at all, so that everything is seen.
""")
def no_mask(mask):
    return torch.ones_like(mask)


@exercise.alternative
def with_logical_not(mask):
    return torch.logical_not(mask)


@exercise.alternative
def compared_with_false(mask):
    return mask == False  # noqa: E712 - a form that learners write


@exercise.alternative
def with_exclusive_or(mask):
    return mask ^ True


@exercise.alternative
def as_numbers_to_add(mask):
    return torch.where(mask, -math.inf, 0.0)


@exercise.alternative
def with_an_axis_for_batch_and_heads(mask):
    return (~mask)[None, None] if mask.ndim == 2 else ~mask
