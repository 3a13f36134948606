"""The interpreter: run a program over a solution, and give plain values of all that it shows."""

from __future__ import annotations

import contextlib
import linecache
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from autograder.counting import Counter
from autograder.program import WEIGHTED_GRADIENT, Program, Run, Step
from autograder.usual_settings import usual_settings
from autograder.values import Generator, Named, Raised, Result, plain, shortened


class StopRun(BaseException):
    """End a run at once: a limit was met, and the solution must not swallow it."""


class Interpreter:
    """Run one program over one solution."""

    def __init__(self, solution: Callable[..., Any], named: Mapping[str, Callable[..., Any]], counted: bool):
        self.subject: Any = solution
        self.counter = Counter() if counted else None
        self.filename = getattr(_code_of(solution), "co_filename", None)
        self.named = named
        self.results: list[Any] = []
        self.changed: list[str] = []
        self.calls: dict[str, int] = {}
        self.whole: dict[str, Any] = {}  # objects of which parts are passed

    def run(self, program: Program) -> Run:
        """Run every step; a step that raises is an outcome, and the next ones still run."""
        outcomes = []
        for step in program.steps:
            try:
                raw = self._do(step)
                outcome = plain(raw)
            except (StopRun, KeyboardInterrupt):
                raise
            except BaseException as error:
                raw = outcome = self._raised(error)
            self.results.append(raw)
            if step.becomes_subject:
                self.subject = raw
            if step.observe or isinstance(outcome, Raised):
                outcomes.append(outcome)
            if isinstance(outcome, Raised) and (step.becomes_subject or step.action == "load"):
                break
        counts = self.counter.counts() if self.counter else None
        return Run(tuple(outcomes), tuple(self.changed), counts, dict(self.calls))

    def _do(self, step: Step) -> Any:
        args = [self._realize(value) for value in step.args]
        kwargs = {name: self._realize(value) for name, value in step.kwargs.items()}
        if step.action == "load":
            return self._load(args[0])
        if step.action == "read":
            return self._read(step.name)
        if step.action == "count":
            return self._count_parameters(args)
        if step.action == "see":
            return args[0]
        if step.action == "gradients":
            return self._gradients(args, kwargs, step.wrt, weighted=step.name == WEIGHTED_GRADIENT)
        before = plain((args, kwargs))
        target = self.subject if step.action == "call" else getattr(self.subject, step.name)
        with self.counter or contextlib.nullcontext():
            raw = target(*args, **kwargs)
        self._notice_changes(before, args, kwargs, target)
        return raw

    def _load(self, state: dict[str, torch.Tensor]) -> None:
        if not isinstance(self.subject, torch.nn.Module):
            raise TypeError(f"{type(self.subject).__name__} is not an nn.Module, so it cannot take weights")
        own = set(self.subject.state_dict())
        missing, extra = sorted(set(state) - own), sorted(own - set(state))
        if missing or extra:
            found = [f"has no weight called {', '.join(missing)}"] if missing else []
            found += [f"has {', '.join(extra)}, which should not be there"] if extra else []
            raise AttributeError(f"the layer {' and '.join(found)}")
        self.subject.load_state_dict(state, strict=True)
        if state:
            self.subject.to(next(iter(state.values())).dtype)

    def _read(self, path: str) -> Any:
        value = self.subject
        for part in path.split("."):
            value = getattr(value, part)
        return value

    def _count_parameters(self, args: list[Any]) -> int:
        if not isinstance(self.subject, torch.nn.Module):
            raise TypeError(f"{type(self.subject).__name__} is not an nn.Module, so it has no parameters to count")
        weights = [weight for weight in self.subject.parameters() if weight.requires_grad or not args]
        if args:
            raw = self.subject(*args)
            output = raw[0] if isinstance(raw, (tuple, list)) else raw
            if not (isinstance(output, torch.Tensor) and output.requires_grad):
                return 0
            found = torch.autograd.grad(output.sum(), weights, allow_unused=True)
            weights = [weight for weight, grad in zip(weights, found, strict=True) if grad is not None]
        return sum(weight.numel() for weight in weights)

    def _gradients(self, args: list[Any], kwargs: dict[str, Any], wrt: tuple[int | str, ...], weighted: bool) -> Any:
        parameters = dict(self.subject.named_parameters()) if hasattr(self.subject, "named_parameters") else {}
        sources = [args[name].requires_grad_() if isinstance(name, int) else parameters[name] for name in wrt]
        with self.counter or contextlib.nullcontext():
            raw = self.subject(*args, **kwargs)
        output = raw[0] if isinstance(raw, (tuple, list)) else raw
        if not isinstance(output, torch.Tensor):
            raise TypeError(f"expected a tensor to differentiate, got {type(output).__name__}")
        if not output.requires_grad:
            return tuple(torch.zeros_like(source) for source in sources)
        total = (output * _uneven(output)).sum() if weighted else output.sum()
        found = torch.autograd.grad(total, sources, allow_unused=True)
        pairs = zip(found, sources, strict=True)
        return tuple(torch.zeros_like(source) if grad is None else grad for grad, source in pairs)

    def _realize(self, value: Any) -> Any:
        """Make a fresh input from its plain form."""
        if isinstance(value, Result):
            return self.results[value.step]
        if isinstance(value, Named):
            return self._realize_named(value)
        if isinstance(value, Generator):
            if value.library == "numpy":
                return np.random.default_rng(value.seed)
            return torch.Generator().manual_seed(value.seed)
        if isinstance(value, np.ndarray):
            return value.copy()
        if isinstance(value, torch.Tensor):
            return value.clone()
        if isinstance(value, (list, tuple)):
            return type(value)(self._realize(item) for item in value)
        if isinstance(value, dict):
            return {name: self._realize(item) for name, item in value.items()}
        return value

    def _realize_named(self, value: Named) -> Any:
        thing, name = self.named[value.name], value.name
        if value.part is not None:
            whole = f"{value.name}{value.args!r}"
            if whole not in self.whole:
                self.whole[whole] = thing(*(self._realize(item) for item in value.args or ()))
            thing, name = getattr(self.whole[whole], value.part), f"{value.name}.{value.part}"
        elif value.args is not None:
            thing = thing(*(self._realize(item) for item in value.args))
            if value.state is not None:
                thing.load_state_dict(value.state)
                thing.to(next(iter(value.state.values())).dtype)
        if isinstance(thing, torch.nn.Module):
            thing.register_forward_hook(lambda *_: self._count_call(name))
            return thing
        if not callable(thing):
            return thing

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._count_call(name)
            return thing(*args, **kwargs)

        return counted

    def _count_call(self, name: str) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1

    def _notice_changes(self, before: Any, args: list[Any], kwargs: dict[str, Any], target: Any) -> None:
        names = getattr(_code_of(target), "co_varnames", ())
        for index, (old, new) in enumerate(zip(before[0], args, strict=True)):
            if differs(old, new):
                self.changed.append(names[index] if index < len(names) else f"argument {index + 1}")
        self.changed.extend(name for name, old in before[1].items() if differs(old, kwargs[name]))

    def _raised(self, error: BaseException) -> Raised:
        bases = tuple(base.__name__ for base in type(error).__mro__)
        try:
            message = shortened(str(error))
        except Exception:  # an exception's own text may raise too
            message = "an exception whose text cannot be read"
        return Raised(type(error).__name__, message, self._line_of(error), bases)

    def _line_of(self, error: BaseException) -> str | None:
        """Find the line of the solution's own file that raised."""
        found, trace = None, error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if code.co_filename == self.filename:
                text = linecache.getline(code.co_filename, trace.tb_lineno).strip()
                found = f"line {trace.tb_lineno - code.co_firstlineno + 1} of `{code.co_name}`" + (
                    f", `{text}`" if text else ""
                )
            trace = trace.tb_next
        return found


def _code_of(target: Any) -> Any:
    """Find a function's code, if it has any."""
    with contextlib.suppress(Exception):  # an object may answer with an error of its own
        return target.__code__
    return None


def _uneven(output: torch.Tensor) -> torch.Tensor:
    """Give fixed weights, different for every entry."""
    return torch.arange(1, output.numel() + 1).cos().reshape(output.shape).to(output)


def differs(before: Any, after: Any) -> bool:
    """Tell whether an argument was edited in place."""
    if isinstance(before, np.ndarray) and isinstance(after, np.ndarray):
        return before.shape != after.shape or not np.array_equal(before, after, equal_nan=before.dtype.kind in "fc")
    if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor):
        same_form = before.shape == after.shape and before.dtype == after.dtype
        return not (same_form and bool(((before == after) | ((before != before) & (after != after))).all()))
    if isinstance(before, (list, tuple)):
        return len(before) != len(after) or any(differs(a, b) for a, b in zip(before, after, strict=True))
    if isinstance(before, dict):
        return before.keys() != after.keys() or any(differs(before[name], after[name]) for name in before)
    return isinstance(before, (bool, int, float, str)) and before != after


def run(program: Program, solution: Callable[..., Any], named: Mapping[str, Callable[..., Any]]) -> Run:
    """Run a program over a solution, whatever the session's settings are."""
    with usual_settings():
        return Interpreter(solution, named, program.counted).run(program)
