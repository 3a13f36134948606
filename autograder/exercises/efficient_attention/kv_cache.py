"""Check `KVCache`: all keys and values so far, whatever their number, and a limit that holds."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.efficient_attention import CHAPTER
from autograder.program import Program, build
from autograder.values import Named
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
    return append(program, tokens(draw, limit, (7,)), 2, limit - 2).read("length")


def reusing(draw: Draw) -> Program:
    """Let the caller write each new token over the last one."""
    pair = tokens(draw, 4)
    program = build()
    for _ in range(4):
        program = program.method("append", Named("Reused", pair, part="key"), Named("Reused", pair, part="value"))
    return program


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=kv_cache.KVCache,
    returns=("keys", "values"),
    named={"Reused": Reused},
    cases=[
        Case("a text, then token by token", stepwise),
        Case("as many tokens as may be held", filled),
        Case("more tokens than may be held", overflowing),
        Case("a reset, then another batch", reset),
        Case("no leading axes", lambda draw: stepwise(draw, ()), hidden=True),
        Case("float64", stepwise, hidden=True, dtype="float64"),
        Case("many pieces", many_steps, hidden=True),
        Case("far more tokens than may be held", lambda draw: overflowing(draw, by_one=False), hidden=True),
        Case("a reset under a limit", lambda draw: reset(draw, limited=True), hidden=True),
        Case("a caller who reuses his tensors", reusing, hidden=True),
    ],
)


class _Cache:
    """A plain cache with its steps as methods, so that a belief can replace one of them."""

    def __init__(self, max_length=None):
        self.max_length = max_length
        self.reset()

    @property
    def length(self):
        return 0 if self.held is None else self.held[0].shape[-2]

    def reset(self):
        self.held = None

    def refuse(self, key):
        if self.max_length is not None and self.length + key.shape[-2] > self.max_length:
            raise ValueError(f"{self.length + key.shape[-2]} tokens, room for {self.max_length}")

    def append(self, key, value):
        self.refuse(key)
        self.held = self.join(key, value)
        return self.held

    def join(self, key, value):
        if self.held is None:
            return key.clone(), value.clone()
        return tuple(torch.cat(pair, dim=-2) for pair in zip(self.held, (key, value), strict=True))


@exercise.misconception("""
    `append` returns the new tokens alone. The caller attends with what it gets back, and needs the keys and values of
    **all** tokens so far.
""")
class ReturnsTheNewOnes(_Cache):
    def append(self, key, value):
        super().append(key, value)
        return key, value


@exercise.misconception("""
    Your cache holds only the last piece that was appended: each one replaces what was there. Join the old and the new
    tokens instead.
""")
class Overwrites(_Cache):
    def join(self, key, value):
        return key.clone(), value.clone()


@exercise.misconception("""
    New tokens stand in front of the old ones. Attention itself would not mind, but a causal mask and positions count
    from the oldest token: keep the order in which they came.
""")
class NewTokensFirst(_Cache):
    def join(self, key, value):
        if self.held is None:
            return key.clone(), value.clone()
        return tuple(torch.cat(pair, dim=-2) for pair in zip((key, value), self.held, strict=True))


@exercise.misconception("""
    You join along the features, so keys grow wider where there should be more of them. Tokens lie along the last axis
    but one, whatever stands before it.
""")
class JoinsTheFeatures(_Cache):
    def join(self, key, value):
        if self.held is None:
            return key.clone(), value.clone()
        return tuple(torch.cat(pair, dim=-1) for pair in zip(self.held, (key, value), strict=True))


@exercise.misconception("""
    You join along axis 2, counted from the front. That is the tokens' axis with a batch and heads before it, and
    another one, or none, without. Count from the end: axis −2.
""")
class CountsAxesFromTheFront(_Cache):
    @property
    def length(self):
        return 0 if self.held is None else self.held[0].shape[2 if self.held[0].dim() > 3 else 0]

    def join(self, key, value):
        if self.held is None:
            return key.clone(), value.clone()
        return tuple(torch.cat(pair, dim=2) for pair in zip(self.held, (key, value), strict=True))


@exercise.misconception("""
    `length` counts the calls of `append`. A call may bring several tokens, as the first one usually does.
""")
class CountsCalls(_Cache):
    @property
    def length(self):
        return self.calls

    def reset(self):
        super().reset()
        self.calls = 0

    def refuse(self, key):
        tokens = 0 if self.held is None else self.held[0].shape[-2]
        if self.max_length is not None and tokens + key.shape[-2] > self.max_length:
            raise ValueError("no room")

    def append(self, key, value):
        found = super().append(key, value)
        self.calls += 1
        return found


@exercise.misconception("""
    `length` is a method in your class, so reading it gives the method itself. Asked for is a property: one line above
    the `def` makes the difference.
""")
class LengthIsAMethod(_Cache):
    def length(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return 0 if self.held is None else self.held[0].shape[-2]

    def refuse(self, key):
        if self.max_length is not None and self.length() + key.shape[-2] > self.max_length:
            raise ValueError("no room")


@exercise.misconception("""
    Your cache never refuses: it grows beyond `max_length`. The limit is a promise about memory, so raise a
    `ValueError` when the new tokens do not fit.
""")
class NeverRefuses(_Cache):
    def refuse(self, key):
        pass


@exercise.misconception("""
    A cache with room for n tokens refuses the n-th: it compares with ≥ where > is meant. `max_length` tokens may be
    held.
""")
class RefusesTheLastOne(_Cache):
    def refuse(self, key):
        if self.max_length is not None and self.length + key.shape[-2] >= self.max_length:
            raise ValueError("no room")


@exercise.misconception("""
    Your cache refuses only when it is full already. A piece of several tokens can start inside the limit and end
    beyond it: compare the length **after** the step.
""")
class LooksAtTheOldLength(_Cache):
    def refuse(self, key):
        if self.max_length is not None and self.length >= self.max_length:
            raise ValueError("no room")


@exercise.misconception("""
    You take the tokens in and raise afterwards, so that a refused piece stays in the cache. A caller who catches the
    error would go on with it unawares. Check first, then change.
""")
class RefusesAfterTheFact(_Cache):
    def append(self, key, value):
        self.held = self.join(key, value)
        if self.max_length is not None and self.length > self.max_length:
            raise ValueError("no room")
        return self.held


@exercise.misconception("""
    When the room is used up, your cache lets go of the oldest tokens without a word. That is a sliding window: sensible
    in a model trained with one, and a silent change of every answer in others. Here `append` raises a `ValueError`.
""")
class DropsTheOldest(_Cache):
    def append(self, key, value):
        joined = self.join(key, value)
        if self.max_length is not None:
            joined = tuple(tensor[..., -self.max_length :, :] for tensor in joined)
        self.held = joined
        return self.held


@exercise.misconception("""
    When the room is used up, you keep what fits and drop the rest of the new tokens without a word. The caller believes
    that they are there: raise a `ValueError`, and take none of them.
""")
class CutsTheNewOnes(_Cache):
    def append(self, key, value):
        room = None if self.max_length is None else self.max_length - self.length
        self.held = self.join(key[..., :room, :], value[..., :room, :])
        return self.held


@exercise.misconception("""
    A piece that does not fit raises the right error, but empties the cache too. After a refusal everything should be as
    it was before.
""")
class RefusalEmptiesIt(_Cache):
    def refuse(self, key):
        if self.max_length is not None and self.length + key.shape[-2] > self.max_length:
            self.reset()
            raise ValueError("no room")


@exercise.misconception("""
    You refuse what does not fit, and not with a `ValueError`: a shape error from inside a buffer, an `assert` or a bare
    exception tells the caller little. Compare lengths first, and raise a `ValueError` that says how many tokens fit.
""")
class RaisesAnotherError(_Cache):
    def refuse(self, key):
        if self.max_length is not None and self.length + key.shape[-2] > self.max_length:
            raise RuntimeError("the expanded size must match the existing size")


@exercise.misconception("""
    After `reset` the old tokens are still there. A new text starts with nothing: length 0, and perhaps another batch
    size.
""")
class ResetsNothing(_Cache):
    held = None

    def reset(self):
        pass


@exercise.misconception("""
    Your cache keeps the caller's tensors themselves. When the caller writes the next token into the same memory, as a
    decoding loop may, what you hold changes with it. Keep a copy.
""")
class KeepsTheCallersTensors(_Cache):
    def __init__(self, max_length=None):
        super().__init__(max_length)
        self.pieces = []

    def reset(self):
        super().reset()
        self.pieces = []

    def join(self, key, value):
        self.pieces.append((key, value))
        return tuple(torch.cat(tensors, dim=-2) for tensors in zip(*self.pieces, strict=True))


@exercise.misconception("""
    You hand out the whole buffer, with the empty places that wait for later tokens. A query would attend to them as
    if they were tokens: return the part that is filled.
""")
class ReturnsTheWholeBuffer(_Cache):
    def append(self, key, value):
        found = super().append(key, value)
        rest = (self.max_length or 64) - self.length
        return tuple(torch.nn.functional.pad(tensor, (0, 0, 0, max(0, rest))) for tensor in found)


@exercise.alternative
class ListsOfPieces:
    def __init__(self, max_length=None):
        self.max_length, self.keys, self.values = max_length, [], []

    @property
    def length(self):
        return sum(key.size(-2) for key in self.keys)

    def append(self, key, value):
        if self.max_length is not None and self.length + key.size(-2) > self.max_length:
            raise ValueError(f"room for {self.max_length} tokens")
        self.keys.append(key.clone())
        self.values.append(value.clone())
        return [torch.cat(self.keys, -2), torch.cat(self.values, -2)]

    def reset(self):
        self.keys.clear()
        self.values.clear()


@exercise.alternative
class AModuleWithBuffers(torch.nn.Module):
    def __init__(self, max_length=None):
        super().__init__()
        self.max_length, self.length, self.held = max_length, 0, {}

    def append(self, key, value):
        length = self.length + key.shape[-2]
        if self.max_length is not None and length > self.max_length:
            raise ValueError(f"{length} > {self.max_length}")
        for name, new in (("key", key), ("value", value)):
            old = self.held.get(name, new[..., :0, :])
            self.held[name] = torch.cat((old, new), dim=-2)
        self.length = length
        return self.held["key"], self.held["value"]

    def reset(self):
        self.length, self.held = 0, {}


@exercise.alternative
class PreallocatedRoom(_Cache):
    room = 128

    def reset(self):
        self.buffers, self.used = None, 0

    @property
    def length(self):
        return self.used

    def append(self, key, value):
        self.refuse(key)
        pair = (key, value)
        if self.buffers is None:
            room = self.max_length or self.room
            self.buffers = [one.new_zeros(*one.shape[:-2], room, one.shape[-1]) for one in pair]
        after = self.used + key.shape[-2]
        for buffer, one in zip(self.buffers, pair, strict=True):
            buffer[..., self.used : after, :] = one
        self.used = after
        return tuple(buffer[..., :after, :].clone() for buffer in self.buffers)


@exercise.alternative
class WithItsOwnError(_Cache):
    class Full(ValueError):
        """A ValueError by another name."""

    def refuse(self, key):
        if self.max_length is not None and self.length + key.shape[-2] > self.max_length:
            raise self.Full("no room for these tokens")
