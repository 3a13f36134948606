"""The wrong beliefs about `KVCache`: each a cache with one step gone wrong."""

import torch

from autograder.exercises.efficient_attention.kv_cache import exercise
from autograder.exercises.efficient_attention.plain_cache import PlainCache


@exercise.misconception("""
    `append` returns the new tokens alone. The caller attends with what it gets back, and needs the keys and values of
    **all** tokens so far.
""")
class ReturnsTheNewOnes(PlainCache):
    def append(self, key, value):
        super().append(key, value)
        return key, value


@exercise.misconception("""
    Your cache holds only the last piece that was appended: each one replaces what was there. Join the old and the new
    tokens instead.
""")
class Overwrites(PlainCache):
    def join(self, key, value):
        return key.clone(), value.clone()


@exercise.misconception("""
    New tokens stand in front of the old ones. Attention itself would not mind, but a causal mask and positions count
    from the oldest token: keep the order in which they came.
""")
class NewTokensFirst(PlainCache):
    def join(self, key, value):
        if self.held is None:
            return key.clone(), value.clone()
        return tuple(torch.cat(pair, dim=-2) for pair in zip((key, value), self.held, strict=True))


@exercise.misconception("""
    You join along the features, so keys grow wider where there should be more of them. Tokens lie along the last axis
    but one, whatever stands before it.
""")
class JoinsTheFeatures(PlainCache):
    def join(self, key, value):
        if self.held is None:
            return key.clone(), value.clone()
        return tuple(torch.cat(pair, dim=-1) for pair in zip(self.held, (key, value), strict=True))


@exercise.misconception("""
    You join along axis 2, counted from the front. That is the tokens' axis with a batch and heads before it, and
    another one, or none, without. Count from the end: axis −2.
""")
class CountsAxesFromTheFront(PlainCache):
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
class CountsCalls(PlainCache):
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
class LengthIsAMethod(PlainCache):
    def length(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return 0 if self.held is None else self.held[0].shape[-2]

    def refuse(self, key):
        if self.max_length is not None and self.length() + key.shape[-2] > self.max_length:
            raise ValueError("no room")


@exercise.misconception("""
    Your cache never refuses: it grows beyond `max_length`. The limit is a promise about memory, so raise a
    `ValueError` when the new tokens do not fit.
""")
class NeverRefuses(PlainCache):
    def refuse(self, key):
        pass


@exercise.misconception("""
    A cache with room for n tokens refuses the n-th: it compares with ≥ where > is meant. `max_length` tokens may be
    held.
""")
class RefusesTheLastOne(PlainCache):
    def refuse(self, key):
        if self.max_length is not None and self.length + key.shape[-2] >= self.max_length:
            raise ValueError("no room")


@exercise.misconception("""
    Your cache refuses only when it is full already. A piece of several tokens can start inside the limit and end
    beyond it: compare the length **after** the step.
""")
class LooksAtTheOldLength(PlainCache):
    def refuse(self, key):
        if self.max_length is not None and self.length >= self.max_length:
            raise ValueError("no room")


@exercise.misconception("""
    You take the tokens in and raise afterwards, so that a refused piece stays in the cache. A caller who catches the
    error would go on with it unawares. Check first, then change.
""")
class RefusesAfterTheFact(PlainCache):
    def append(self, key, value):
        self.held = self.join(key, value)
        if self.max_length is not None and self.length > self.max_length:
            raise ValueError("no room")
        return self.held


@exercise.misconception("""
    When the room is used up, your cache lets go of the oldest tokens without a word. That is a sliding window: sensible
    in a model trained with one, and a silent change of every answer in others. Here `append` raises a `ValueError`.
""")
class DropsTheOldest(PlainCache):
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
class CutsTheNewOnes(PlainCache):
    def append(self, key, value):
        room = None if self.max_length is None else self.max_length - self.length
        self.held = self.join(key[..., :room, :], value[..., :room, :])
        return self.held


@exercise.misconception("""
    A piece that does not fit raises the right error, but empties the cache too. After a refusal everything should be as
    it was before.
""")
class RefusalEmptiesIt(PlainCache):
    def refuse(self, key):
        if self.max_length is not None and self.length + key.shape[-2] > self.max_length:
            self.reset()
            raise ValueError("no room")


@exercise.misconception("""
    You refuse what does not fit, and not with a `ValueError`: a shape error from inside a buffer, an `assert` or a bare
    exception tells the caller little. Compare lengths first, and raise a `ValueError` that says how many tokens fit.
""")
class RaisesAnotherError(PlainCache):
    def refuse(self, key):
        if self.max_length is not None and self.length + key.shape[-2] > self.max_length:
            raise RuntimeError("the expanded size must match the existing size")


@exercise.misconception("""
    After `reset` the old tokens are still there. A new text starts with nothing: length 0, and perhaps another batch
    size.
""")
class ResetsNothing(PlainCache):
    held = None

    def reset(self):
        pass


@exercise.misconception("""
    Your `reset` forgets the limit together with the tokens: afterwards the cache grows beyond `max_length`. The room
    belongs to the cache and not to the text in it.
""")
class ResetForgetsTheLimit(PlainCache):
    def __init__(self, max_length=None):
        super().__init__(max_length)
        self.max_length = max_length

    def reset(self):
        super().reset()
        self.max_length = None


@exercise.misconception("""
    Your cache keeps the caller's tensors themselves. When the caller writes the next token into the same memory, as a
    decoding loop may, what you hold changes with it. Keep a copy.
""")
class KeepsTheCallersTensors(PlainCache):
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
class ReturnsTheWholeBuffer(PlainCache):
    def append(self, key, value):
        found = super().append(key, value)
        rest = (self.max_length or 64) - self.length
        return tuple(torch.nn.functional.pad(tensor, (0, 0, 0, max(0, rest))) for tensor in found)
