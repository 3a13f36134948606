"""Keep a learner's code within limits while a check runs it in this process."""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import io
import signal
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from autograder.interpreter import StopRun
from autograder.verdict import Heard

SECONDS_PER_CASE = 10.0  # of the processor
PATIENCE = 3.0  # times as much by the clock: another program may hold the processor, and a sleeper must end too
REPEAT_SECONDS = 0.2  # a bare `except:` in a loop swallows the first alarm, so it rings again
OUTPUT_SHOWN = 2_000  # characters of the learner's own prints that a check passes on


class TimeIsUp(StopRun):
    """The solution did not return in time."""


class Forbidden(StopRun):
    """The solution called the library function that it should rebuild."""

    def __init__(self, name: str):
        super().__init__(name)
        self.name = name


class _Alarm:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.began, self.busy = time.monotonic(), time.process_time()
        self.rang = False

    def is_due(self) -> bool:
        """Tell whether the processor has worked for the time, or the clock has gone round often enough."""
        worked = time.process_time() - self.busy >= self.seconds
        return worked or time.monotonic() - self.began >= PATIENCE * self.seconds

    def ring(self, _: int, frame: types.FrameType | None) -> None:
        """Raise `TimeIsUp` where the code is; if it was swallowed there before, also in the handler."""
        if not self.is_due():
            return
        if self.rang:
            sys.settrace(self._raise_at_next_line)
            while frame is not None:
                frame.f_trace = self._raise_at_next_line
                frame = frame.f_back
        self.rang = True
        raise TimeIsUp

    def _raise_at_next_line(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            raise TimeIsUp  # Python drops a trace function that raises
        return self._raise_at_next_line


@contextlib.contextmanager
def time_limit(seconds: float = SECONDS_PER_CASE) -> Iterator[None]:
    """Raise `TimeIsUp` in the block when it runs longer, also where it swallows exceptions.

    Args:
        seconds: Processor time of the block; by the clock it may take `PATIENCE` times as long.

    Raises:
        TimeIsUp: When the block ran longer.
    """
    alarm = _Alarm(seconds)
    main = threading.current_thread() is threading.main_thread()
    start = _signal_timer if main and hasattr(signal, "setitimer") else _thread_timer
    with start(alarm, seconds):
        yield
    if alarm.rang:
        raise TimeIsUp


@contextlib.contextmanager
def _signal_timer(alarm: _Alarm, seconds: float) -> Iterator[None]:
    previous, tracing = signal.signal(signal.SIGALRM, alarm.ring), sys.gettrace()
    signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        if sys.gettrace() is not tracing:
            sys.settrace(tracing)


@contextlib.contextmanager
def _thread_timer(alarm: _Alarm, seconds: float) -> Iterator[None]:
    """Do the same where there is no SIGALRM: Windows, or a thread that is not the main one."""
    thread_id, done = threading.get_ident(), threading.Event()

    def wait() -> None:
        while not alarm.is_due():
            if done.wait(REPEAT_SECONDS):
                return
        if not done.is_set():
            alarm.rang = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(TimeIsUp))

    watcher = threading.Thread(target=wait, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


class _Sink(io.TextIOBase):
    """Keep the first characters that are printed and count the rest."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.kept = ""
        self.length = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.length += len(text)
        self.kept += text[: self.room - len(self.kept)]
        return len(text)


@contextlib.contextmanager
def listening(heard: Heard) -> Iterator[None]:
    """Catch what the block prints and warns of, and keep only its beginning."""
    sink = _Sink(OUTPUT_SHOWN - len(heard.printed))
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(sink),
            contextlib.redirect_stderr(sink),
        ):
            warnings.simplefilter("always")
            yield
    finally:
        heard.printed += sink.kept
        heard.left_out += sink.length - len(sink.kept)
        for warning in caught:
            text = f"{warning.category.__name__}: {warning.message}"
            if text not in heard.warned:
                heard.warned.append(text)


@contextlib.contextmanager
def forbidding(names: Iterable[str], functions: Iterable[Callable[..., Any]] = ()) -> Iterator[None]:
    """Refuse calls of library functions, however they are bound, while the block runs.

    Args:
        names: Dotted names such as `torch.nn.functional.softmax` or `torch.Tensor.softmax`.
        functions: Python functions that are refused as well.

    Raises:
        Forbidden: When one of them was called, even if the solution swallowed the refusal.
    """
    codes, builtins = _watched(names, functions)
    if not codes and not builtins:
        yield
        return
    called: list[str] = []

    def profile(frame: types.FrameType, event: str, argument: Any) -> None:
        name = None
        if event == "call":
            name = codes.get(frame.f_code)
        elif event == "c_call":
            name = builtins.get(_key(argument))
        if name is not None:
            called.append(name)
            raise Forbidden(name)

    previous = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(previous)
        if called:
            raise Forbidden(called[0])


def _watched(
    names: Iterable[str], functions: Iterable[Callable[..., Any]]
) -> tuple[dict[types.CodeType, str], dict[tuple[str, str], str]]:
    codes: dict[types.CodeType, str] = {}
    for function in functions:
        codes |= dict.fromkeys(_codes(function), f"{function.__module__}.{function.__name__}")
    builtins: dict[tuple[str, str], str] = {}
    for name in names:
        thing = resolve(name)
        thing = getattr(thing, "_implementation", thing)  # NumPy's functions are dispatchers around it
        if isinstance(thing, (type, types.FunctionType)):
            codes |= dict.fromkeys(_codes(thing), name)
        elif thing is not None:
            builtins[_key(thing)] = name
    return codes, builtins


def _codes(thing: Callable[..., Any]) -> list[types.CodeType]:
    """Give the Python code that runs when a function is called, or when a class is built or its objects are called."""
    own = [vars(thing).get(name) for name in ("__init__", "forward")] if isinstance(thing, type) else [thing]
    return [inspect.unwrap(function).__code__ for function in own if isinstance(function, types.FunctionType)]


def _key(function: Any) -> tuple[str, str]:
    """Identify a built-in function or method by its owner and its name."""
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__objclass__", None)
    if owner is None:
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, (type, types.ModuleType)):
            owner = getattr(getattr(type(owner), name, None), "__objclass__", type(owner))
    return getattr(owner, "__name__", ""), name


def resolve(name: str) -> Any:
    """Find what a dotted name stands for, if its module is loaded already; else None."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        thing: Any = sys.modules.get(".".join(parts[:cut]))
        if thing is None:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part, None)
        return thing
    return None
