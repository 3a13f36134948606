"""Check `LearnedPositions`: a row of a table for every position, and a clear word at the table's end."""

from __future__ import annotations

import torch
from torch import nn

from autograder.compare import same
from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.positional_encoding import CHAPTER
from autograder.program import Program, Run, build
from autograder.values import Raised
from course_lib import positions


def table(draw: Draw, longest: int, d_model: int) -> Program:
    """Build a layer and load a drawn table."""
    return build(longest, d_model).load(draw.state(table__weight=(longest, d_model)))


def texts(draw: Draw, spare: int = 4) -> Program:
    """Give texts that leave some rows of the table over, in a batch of another size."""
    batch, d_model, sequence = draw.sizes(3, low=2, high=7)
    return table(draw, sequence + spare, d_model).call(draw.normal(batch, sequence, d_model))


def two_lengths(draw: Draw) -> Program:
    """Call the same layer with a long text, a short one and a longer one again."""
    batch, d_model = draw.sizes(2, low=2, high=4)
    program = table(draw, 9, d_model)
    for sequence in (5, 3, 8):
        program = program.call(draw.normal(batch, sequence, d_model))
    return program


def gradients(draw: Draw) -> Program:
    """Ask which rows of the table learn."""
    batch, d_model, sequence = draw.sizes(3, low=2, high=6)
    program = table(draw, sequence + 3, d_model)
    return program.gradients(draw.normal(batch, sequence, d_model), wrt=(0, "table.weight"))


def too_long(draw: Draw, more: int) -> Program:
    """Give a text that the table cannot serve."""
    longest = draw.integer(11, 17)
    return table(draw, longest, 4).call(draw.normal(2, longest + more, 4))


def names_both_lengths(program: Program, found: Run) -> str | None:
    """Look for a ValueError whose message holds the length of the text and that of the table."""
    longest, length = program.steps[0].args[0], program.steps[2].args[0].shape[1]
    outcome = found.outcomes[-1]
    if not isinstance(outcome, Raised):
        return f"a text of {length} positions went through a table of {longest}; expected a ValueError"
    if not outcome.is_a("ValueError"):
        return f"a text of {length} positions over a table of {longest} raised {outcome.type_name}, not a ValueError"
    missing = [str(number) for number in (longest, length) if str(number) not in outcome.message]
    if missing:
        return f"the message of your ValueError is {outcome.message!r}; it should name {' and '.join(missing)} as well"
    return None


def same_refusal(program: Program, first: Run, second: Run) -> bool:
    """Tell whether two runs fail in the same way: the words of a refusal are free, so they are not compared."""
    one, other = first.outcomes[-1], second.outcomes[-1]
    if isinstance(one, Raised) and isinstance(other, Raised):
        helpful = [names_both_lengths(program, run) is None for run in (first, second)]
        return one.type_name == other.type_name and helpful[0] == helpful[1]
    return same(one, other)


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=positions.LearnedPositions,
    returns=("the tokens with positions",),
    forbids=["course_lib.positions.LearnedPositions"],
    cases=[
        Case("texts shorter than the table", texts),
        Case("texts that just fit", lambda draw: texts(draw, spare=0)),
        Case(
            "a text one position too long", lambda draw: too_long(draw, 1), judge=names_both_lengths, alike=same_refusal
        ),
        Case("texts of three lengths in a row", two_lengths, hidden=True),
        Case("which rows learn", gradients, hidden=True),
        Case("float64", texts, hidden=True, dtype="float64"),
        Case("one text", lambda draw: table(draw, 7, 4).call(draw.normal(1, 5, 4)), hidden=True),
        Case(
            "a text far too long",
            lambda draw: too_long(draw, draw.integer(20, 40)),
            hidden=True,
            judge=names_both_lengths,
            alike=same_refusal,
        ),
    ],
)


class _Layer(nn.Module):
    """The layer with its steps as methods, so that a belief can replace one of them."""

    def __init__(self, max_length, d_model):
        super().__init__()
        self.table = nn.Embedding(max_length, d_model)

    def forward(self, x):
        self.refuse(x)
        return self.join(x, self.table(self.places(x)))

    def refuse(self, x):
        if x.shape[1] > self.table.num_embeddings:
            raise ValueError(f"{x.shape[1]} positions do not fit into a table of {self.table.num_embeddings}.")

    def places(self, x):
        return torch.arange(x.shape[1])

    def join(self, x, rows):
        return x + rows


@exercise.misconception("""
    Your positions follow the batch: all tokens of one text get the same vector, and the texts get different ones. Give
    a batch of two equal texts: should their outputs differ? Which axis of `x` runs over the positions?
""")
class CountsTexts(_Layer):
    def places(self, x):
        return torch.arange(x.shape[0])[:, None] % self.table.num_embeddings


@exercise.misconception("""
    Your first token gets row 1 of the table, and the last one wraps around to row 0. Positions count from 0.
""")
class StartsAtOne(_Layer):
    def places(self, x):
        return (torch.arange(x.shape[1]) + 1) % self.table.num_embeddings


@exercise.misconception("""
    A text that is too long starts again at row 0 in your code, so its later tokens claim to stand at the beginning.
    Nothing warns, and the model silently confuses them. Raise a `ValueError` that names both lengths.
""")
class WrapsAround(_Layer):
    def refuse(self, x):
        pass

    def places(self, x):
        return torch.arange(x.shape[1]) % self.table.num_embeddings


@exercise.misconception("""
    In a text that is too long, all tokens beyond the table's end share the last row, as if they stood at one place.
    Raise a `ValueError` that names both lengths.
""")
class StaysAtTheEnd(_Layer):
    def refuse(self, x):
        pass

    def places(self, x):
        return torch.arange(x.shape[1]).clamp(max=self.table.num_embeddings - 1)


@exercise.misconception("""
    A text that is too long gets an `IndexError` from deep inside the table. Whoever meets it learns neither how long
    the text was nor how long it may be: raise a `ValueError` that says both.
""")
class FailsInsideTheTable(_Layer):
    def refuse(self, x):
        pass


@exercise.misconception("""
    You raise a `ValueError` for a text that is too long, good. Its message should help: name the length of the text
    and the length of the table.
""")
class NamesNoLengths(_Layer):
    def refuse(self, x):
        if x.shape[1] > self.table.num_embeddings:
            raise ValueError("the text is too long")


@exercise.misconception("""
    You cut a text that is too long and return fewer tokens than came in. Whoever called expects one output per token:
    raise a `ValueError` that names both lengths, and leave the cutting to the caller.
""")
class CutsTheText(_Layer):
    def forward(self, x):
        x = x[:, : self.table.num_embeddings]
        return x + self.table(self.places(x))


@exercise.misconception("""
    You multiply the tokens by their positions' vectors. They are added here: a sum leaves a token with a zero vector
    where it was, a product erases it.
""")
class Multiplies(_Layer):
    def join(self, x, rows):
        return x * rows


@exercise.misconception("""
    You return the positions' vectors alone. The layer hands on the tokens, with their positions added.
""")
class ForgetsTheTokens(_Layer):
    def join(self, x, rows):
        return rows.expand_as(x)


@exercise.misconception("""
    Your output is twice as wide: tokens and positions stand side by side. They are added here, which keeps the width
    of the model.
""")
class Concatenates(_Layer):
    def join(self, x, rows):
        return torch.cat([x, rows.expand_as(x)], dim=-1)


@exercise.misconception("""
    Your table does not learn: its gradient is 0 everywhere. `detach`, `no_grad` or `.data` on the way to the sum cuts
    it off.
""")
class NeverLearns(_Layer):
    def join(self, x, rows):
        return x + rows.detach()


@exercise.misconception("""
    Your positions count from the text's end: the last token always gets row 0. Count from the beginning, so that the
    first tokens of a text keep their vectors while it grows.
""")
class CountsFromTheEnd(_Layer):
    def places(self, x):
        return torch.arange(x.shape[1]).flip(0)


@exercise.misconception("""
    You take the table's last rows, so that a short text begins somewhere in the middle. The token at position 0 gets
    row 0, however long the text is.
""")
class TakesTheLastRows(_Layer):
    def places(self, x):
        return torch.arange(x.shape[1]) + self.table.num_embeddings - x.shape[1]


@exercise.misconception("""
    The weights did not load: the course looks for the table under the name `table.weight`, which an `nn.Embedding`
    called `table` has. A bare parameter is called `table`.
""")
def a_bare_parameter(max_length, d_model):
    class LearnedPositions(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.zeros(max_length, d_model))

    return LearnedPositions()


@exercise.alternative
class SlicesTheWeight(_Layer):
    def forward(self, x):
        length, longest = x.size(1), self.table.weight.size(0)
        if length > longest:
            raise ValueError(f"got {length} positions, room for {longest}")
        return x + self.table.weight[None, :length]


@exercise.alternative
class WithABuffer(nn.Module):
    places: torch.Tensor

    def __init__(self, max_length, d_model):
        super().__init__()
        self.table = nn.Embedding(max_length, d_model)
        self.register_buffer("places", torch.arange(max_length)[None], persistent=False)

    def forward(self, x):
        if x.shape[-2] > self.places.shape[-1]:
            raise ValueError(f"`x` is {x.shape[-2]} long; the table holds {self.places.shape[-1]} rows")
        return self.table(self.places[:, : x.shape[-2]].long()) + x


@exercise.alternative
class WithOneHotRows(_Layer):
    def forward(self, x):
        self.refuse(x)
        chosen = torch.eye(self.table.num_embeddings, dtype=x.dtype)[: x.shape[1]]
        return x + chosen @ self.table.weight


@exercise.alternative
class RaisesItsOwnKind(_Layer):
    class TooLong(ValueError):
        """A ValueError by another name."""

    def refuse(self, x):
        if x.shape[1] > self.table.num_embeddings:
            raise self.TooLong(f"length {x.shape[1]} exceeds max_length {self.table.num_embeddings}")
