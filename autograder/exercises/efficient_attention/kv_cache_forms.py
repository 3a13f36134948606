"""Forms of `KVCache` that every check accepts."""

import torch

from autograder.exercises.efficient_attention.kv_cache import exercise
from autograder.exercises.efficient_attention.plain_cache import PlainCache


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
class PreallocatedRoom(PlainCache):
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
class WithItsOwnError(PlainCache):
    class Full(ValueError):
        """A ValueError by another name."""

    def refuse(self, key):
        if self.max_length is not None and self.length + key.shape[-2] > self.max_length:
            raise self.Full("no room for these tokens")
