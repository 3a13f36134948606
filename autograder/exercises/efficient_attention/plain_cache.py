"""A plain cache of keys and values, taken apart into steps."""

import torch


class PlainCache:
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
