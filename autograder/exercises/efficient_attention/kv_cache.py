"""Check `KVCache`: all keys and values so far, whatever their number, and a limit that holds."""

from functools import partial

import torch

from autograder.compare import same
from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.efficient_attention import CHAPTER
from autograder.program import Program, Run, build
from autograder.values import Named, Raised
from course_lib import kv_cache

LIMITS = (7, 9)  # least and most of a drawn `max_length`, in tokens


class Reused:
    """A caller who writes each new token into the same two tensors, as a decoding loop does to save memory."""

    def __init__(self, key: torch.Tensor, value: torch.Tensor):
        self.tokens = {"key": key, "value": value}
        self.buffers = {name: tensor[..., :1, :].clone() for name, tensor in self.tokens.items()}
        self.used = dict.fromkeys(self.tokens, 0)

    def next(self, name: str) -> torch.Tensor:
        """Write the next token over the last one."""
        place = self.used[name]
        self.buffers[name].copy_(self.tokens[name][..., place : place + 1, :])
        self.used[name] += 1
        return self.buffers[name]

    key = property(lambda self: self.next("key"))
    value = property(lambda self: self.next("value"))


def tokens(draw: Draw, length: int, leading: tuple[int, ...] | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw keys and values of a batch of heads, of different widths."""
    batch, heads, d_k, d_v = draw.sizes(4, low=2, high=6)
    leading = (batch, heads) if leading is None else leading
    return draw.normal(*leading, length, d_k), draw.normal(*leading, length, d_v)


def append(program: Program, pair: tuple[torch.Tensor, ...], *pieces: int) -> Program:
    """Append the tokens in pieces of these lengths."""
    start = 0
    for piece in pieces:
        program = program.method("append", *(tensor[..., start : start + piece, :].clone() for tensor in pair))
        start += piece
    return program


def stepwise(draw: Draw, leading: tuple[int, ...] | None = None) -> Program:
    """Give a first text, then tokens one by one, and ask for the length on the way."""
    first = draw.integer(3, 6)
    pair = tokens(draw, first + 3, leading)
    program = append(build().read("length"), pair, first).read("length")
    return append(program, tuple(tensor[..., first:, :] for tensor in pair), 1, 1, 1).read("length")


def many_steps(draw: Draw) -> Program:
    """Give more tokens than a small first buffer holds."""
    pieces = [draw.integer(1, 9) for _ in range(9)]
    return append(build(), tokens(draw, sum(pieces)), *pieces).read("length")


def filled(draw: Draw) -> Program:
    """Give just as many tokens as may be held."""
    limit = draw.integer(*LIMITS)
    return append(build(limit), tokens(draw, limit), limit - 2, 1, 1).read("length")


def overflowing(draw: Draw, by_one: bool = True) -> Program:
    """Give tokens that do not fit in, look at the length, and go on with one that does."""
    limit = draw.integer(*LIMITS)
    pair = tokens(draw, 2 * limit)
    too_many = 3 if by_one else limit
    program = append(build(limit), pair, limit - 2, too_many).read("length")
    rest = tuple(tensor[..., limit - 2 :, :] for tensor in pair)
    return append(program, rest, 1, 1).read("length")


def reset(draw: Draw, limited: bool = False) -> Program:
    """Fill, reset, and begin anew with a batch of another size."""
    limit = draw.integer(*LIMITS)
    program = append(build(limit) if limited else build(), tokens(draw, limit), limit - 1, 1)
    program = program.method("reset", observe=False).read("length")
    after = append(program, tokens(draw, limit + 1, (7,)), 2, limit - 2).read("length")
    return append(after, tokens(draw, 1, (7,)), 1).read("length") if limited else after


def reusing(draw: Draw) -> Program:
    """Let the caller write each new token over the last one."""
    pair = tokens(draw, 4)
    program = build()
    for _ in range(4):
        program = program.method("append", Named("Reused", pair, part="key"), Named("Reused", pair, part="value"))
    return program


def whatever_the_words(program: Program, first: Run, second: Run) -> bool:
    """Tell whether two caches do the same; a refusal's sentence is everyone's own."""
    return all(
        ours.type_name == came.type_name
        if isinstance(ours, Raised) and isinstance(came, Raised)
        else type(ours) is type(came) and same(ours, came)
        for ours, came in zip(first.outcomes, second.outcomes, strict=True)
    )


case = partial(Case, alike=whatever_the_words)

exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=kv_cache.KVCache,
    returns=("keys", "values"),
    named={"Reused": Reused},
    cases=[
        case("a text, then token by token", stepwise),
        case("as many tokens as may be held", filled),
        case("more tokens than may be held", overflowing),
        case("a reset, then another batch", reset),
        case("no leading axes", lambda draw: stepwise(draw, ()), hidden=True),
        case("float64", stepwise, hidden=True, dtype="float64"),
        case("many pieces", many_steps, hidden=True),
        case("far more tokens than may be held", lambda draw: overflowing(draw, by_one=False), hidden=True),
        case("a reset under a limit", lambda draw: reset(draw, limited=True), hidden=True),
        case("a caller who reuses his tensors", reusing, hidden=True),
    ],
)
