"""A case as data: a small program over a solution, and what it showed.

The same program runs in the learner's notebook, in the tests and across the line between a
sandboxed solution and its judge, so it holds plain values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from autograder.counting import Counts

WEIGHTED_GRADIENT = "the gradient of a weighted sum of the result"


@dataclass(frozen=True)
class Step:
    """One thing to do with the subject: `call`, `method`, `load`, `read`, `count`, `see` or `gradients`."""

    action: str
    name: str = ""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrt: tuple[int | str, ...] = ()
    becomes_subject: bool = False
    observe: bool = True


@dataclass(frozen=True)
class Program:
    """Steps over a subject, which is first the solution and later what `build` returned."""

    steps: tuple[Step, ...] = ()
    counted: bool = False

    def _then(self, step: Step) -> Program:
        return replace(self, steps=(*self.steps, step))

    def build(self, *args: Any, **kwargs: Any) -> Program:
        """Call the subject; the steps that follow are about the object it returns."""
        return self._then(Step("call", args=args, kwargs=kwargs, becomes_subject=True, observe=False))

    def load(self, state: Mapping[str, torch.Tensor]) -> Program:
        """Load weights strictly by their names; only extra non-persistent buffers are let pass."""
        return self._then(Step("load", args=(dict(state),), observe=False))

    def call(self, *args: Any, **kwargs: Any) -> Program:
        """Call the subject and observe what it returns."""
        return self._then(Step("call", args=args, kwargs=kwargs))

    def method(self, name: str, *args: Any, observe: bool = True, **kwargs: Any) -> Program:
        """Call a method of the subject."""
        return self._then(Step("method", name=name, args=args, kwargs=kwargs, observe=observe))

    def read(self, path: str) -> Program:
        """Read an attribute of the subject; dots go deeper."""
        return self._then(Step("read", name=path))

    def count(self, *read: Any) -> Program:
        """Observe how many numbers the subject learns; a weight that is used twice counts once.

        Args:
            read: Arguments of a call. With them, only weights that take part in its result are counted.
        """
        name = "the number of parameters that take part" if read else "the number of parameters"
        return self._then(Step("count", name=name, args=read))

    def see(self, value: Any, name: str) -> Program:
        """Observe a value that both sides know, such as what became of a part of a named object.

        Args:
            value: A `Named`, or anything plain.
            name: What it is called in a message.
        """
        return self._then(Step("see", name=name, args=(value,)))

    def gradients(self, *args: Any, wrt: tuple[int | str, ...], weighted: bool = False, **kwargs: Any) -> Program:
        """Call the subject, sum its first result, and observe the gradients.

        Args:
            args: Arguments of the call.
            wrt: Positions of arguments, or names of the subject's parameters.
            weighted: Whether the sum has fixed, uneven weights; a plain sum of shares, or of normalized
                numbers, is constant and has no gradient to observe.
            kwargs: Keyword arguments of the call.
        """
        name = WEIGHTED_GRADIENT if weighted else ""
        return self._then(Step("gradients", name=name, args=args, kwargs=kwargs, wrt=wrt))

    def counting(self) -> Program:
        """Count the matrix products and the tensors that the whole program makes."""
        return replace(self, counted=True)


def call(*args: Any, **kwargs: Any) -> Program:
    """Start a program that calls the solution once."""
    return Program().call(*args, **kwargs)


def build(*args: Any, **kwargs: Any) -> Program:
    """Start a program that builds an object from a class."""
    return Program().build(*args, **kwargs)


@dataclass(frozen=True)
class Run:
    """What a program showed: an outcome per observed step, and what was noticed on the way."""

    outcomes: tuple[Any, ...]
    changed: tuple[str, ...] = ()
    counts: Counts | None = None
    calls: Mapping[str, int] = field(default_factory=dict)
