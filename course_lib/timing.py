"""Measure how long functions take, fairly: warmed up, synchronized, alternating, with median and spread.

On one thread by default, so that numbers compare between machines with few and with many cores. That count is
PyTorch's; NumPy's own matrix library reads its count from `OMP_NUM_THREADS` when Python starts.
"""

import platform
import statistics
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils import benchmark

from course_lib.measurement import Comparison, Measurement
from course_lib.settings import quick

Clock = Callable[[], float]
Sampler = Callable[[], tuple[float, int]]  # takes one sample: seconds per call, and the number of calls

REPEATS = 7  # with 7 samples each, two equal functions seem different less than once in 100 comparisons
QUICK_REPEATS = 2
WARMUP = 2
MIN_SECONDS = 0.01  # thousands of times the resolution and the cost of one look at the clock
MOST_CALLS = 10_000_000  # per sample, so that a clock that stands still ends too
MILLISECONDS = 1000


def measure(
    function: Callable[..., object],
    *arguments: Any,
    device: torch.device | str | None = None,
    repeats: int = REPEATS,
    warmup: int = WARMUP,
    min_seconds: int | float = MIN_SECONDS,
    num_threads: int = 1,
    clock: Clock | None = None,
) -> Measurement:
    """Measure the seconds that one call of `function(*arguments)` takes, on one thread unless told otherwise.

    Args:
        function: any callable, of PyTorch, NumPy or plain Python; on a GPU device events take the time.
        *arguments: its arguments, the same for every call.
        device: where the work happens; by default where the arguments' first tensor is, or the CPU.
        repeats: samples taken. In a quick run (see `course_lib.settings`) at most 2, of one call each.
        warmup: calls before the first sample, whose time does not count.
        min_seconds: a sample repeats the call until it lasts this long.
        num_threads: PyTorch's threads during a sample.
        clock: returns the time in seconds; a test passes a false one.
    """
    options = _Options(device, repeats, warmup, min_seconds, num_threads, clock)
    return _measure_all({"function": function}, arguments, options)["function"]


def compare(
    functions: Mapping[str, Callable[..., object]],
    sizes: Iterable[Hashable],
    *,
    inputs: Callable[[Any], Any] | None = None,
    device: torch.device | str | None = None,
    repeats: int = REPEATS,
    warmup: int = WARMUP,
    min_seconds: int | float = MIN_SECONDS,
    num_threads: int = 1,
    clock: Clock | None = None,
) -> Comparison:
    """Measure several functions at several sizes, taking turns so that a slow moment of the machine hits all.

    In each round every function gives one sample, in the order given in even rounds and reversed in odd ones.
    Without `inputs` a function is called with the size; with it, with the tuple that `inputs(size)` returns,
    made once per size, outside the time, and shared by all functions. All else is as in `measure`.

    Raises:
        ValueError: there is no function or no size, or a size occurs twice.
    """
    sizes = tuple(sizes)
    if not functions or not sizes:
        raise ValueError(f"compare needs functions and sizes; got {len(functions)} and {len(sizes)} of them.")
    if len(set(sizes)) < len(sizes):
        raise ValueError(f"compare needs sizes that all differ; got {list(sizes)}.")
    options = _Options(device, repeats, warmup, min_seconds, num_threads, clock)
    measurements: dict[tuple[str, Hashable], Measurement] = {}
    for size in sizes:
        made = size if inputs is None else inputs(size)
        arguments = made if isinstance(made, tuple) else (made,)
        for name, measurement in _measure_all(functions, arguments, options).items():
            measurements[name, size] = measurement
    return Comparison(tuple(functions), sizes, measurements)


class _Options:
    """Check and hold how to measure."""

    def __init__(
        self,
        device: torch.device | str | None,
        repeats: int,
        warmup: int,
        min_seconds: int | float,
        num_threads: int,
        clock: Clock | None,
    ):
        for name, value, least in (
            ("repeats", repeats, 1),
            ("warmup", warmup, 0),
            ("num_threads", num_threads, 1),
        ):
            if value < least:
                raise ValueError(f"{name} must be at least {least}; got {value}.")
        if min_seconds < 0:
            raise ValueError(f"min_seconds must not be negative; got {min_seconds}.")
        self.device = None if device is None else torch.device(device)
        self.repeats = min(repeats, QUICK_REPEATS) if quick() else repeats
        self.warmup = warmup
        self.min_seconds = 0.0 if quick() else min_seconds
        self.num_threads = num_threads
        self.clock = clock


def _measure_all(
    functions: Mapping[str, Callable[..., object]], arguments: tuple[Any, ...], options: _Options
) -> dict[str, Measurement]:
    device = options.device or _device_of(arguments)
    samplers = {name: _sampler(function, arguments, device, options) for name, function in functions.items()}
    taken: dict[str, list[tuple[float, int]]] = {name: [] for name in samplers}
    for round_number in range(options.repeats):
        for name in samplers if round_number % 2 == 0 else reversed(samplers):
            taken[name].append(samplers[name]())
    where = device_name(device, options.num_threads)
    return {
        name: Measurement(
            samples=tuple(seconds for seconds, _ in samples),
            calls=min(calls for _, calls in samples),
            device=where,
        )
        for name, samples in taken.items()
    }


def _sampler(
    function: Callable[..., object], arguments: tuple[Any, ...], device: torch.device, options: _Options
) -> Sampler:
    """Warm the function up and return what takes one sample of it."""
    for _ in range(options.warmup):
        function(*arguments)
    do_bench = _do_bench() if device.type == "cuda" and options.clock is None else None
    if do_bench is not None:
        return _event_sampler(function, arguments, do_bench, options.min_seconds)
    timer = benchmark.Timer(
        "function(*arguments)",
        globals={"function": function, "arguments": arguments},
        timer=options.clock or _clock_of(device),
        num_threads=options.num_threads,
    )
    calls = _calls_per_sample(timer, options.min_seconds)
    return lambda: (timer.timeit(calls).median, calls)


def _event_sampler(
    function: Callable[..., object],
    arguments: tuple[Any, ...],
    do_bench: Callable[..., Any],
    min_seconds: int | float,
) -> Sampler:
    """Return what takes a sample by device events: the median of a short run, each call from a cold cache."""
    milliseconds = max(1, round(min_seconds * MILLISECONDS))

    def sample() -> tuple[float, int]:
        times = do_bench(lambda: function(*arguments), warmup=milliseconds, rep=milliseconds, return_mode="all")
        return statistics.median(times) / MILLISECONDS, len(times)

    return sample


def _do_bench() -> Callable[..., Any] | None:
    """Return Triton's timer, or None where there is no Triton: the clock, synchronized, serves instead."""
    try:
        from triton.testing import do_bench  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    return do_bench


def _calls_per_sample(timer: benchmark.Timer, min_seconds: int | float) -> int:
    """Find how many calls last `min_seconds` together, with at most ten times as many at each attempt."""
    calls = 1
    while min_seconds > 0 and calls < MOST_CALLS:
        per_call = timer.timeit(calls).median
        if per_call * calls >= min_seconds:
            break
        calls = min(10 * calls, max(calls + 1, round(1.2 * min_seconds / per_call)), MOST_CALLS)
    return calls


def _clock_of(device: torch.device) -> Clock:
    """Return a clock that first waits for the device, whose work runs on after a call returns."""
    if device.type == "cpu":
        return benchmark.timer

    def synchronized() -> float:
        torch.accelerator.synchronize(device)
        return benchmark.timer()

    return synchronized


def _device_of(arguments: Iterable[Any]) -> torch.device:
    """Return the device of the first tensor among the arguments and inside them, or else the CPU."""
    return next((tensor.device for tensor in _tensors_in(arguments)), torch.device("cpu"))


def _tensors_in(arguments: Iterable[Any]) -> Iterator[torch.Tensor]:
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            yield argument
        elif isinstance(argument, torch.nn.Module):
            yield from argument.parameters()
        elif isinstance(argument, (list, tuple)):
            yield from _tensors_in(argument)
        elif isinstance(argument, dict):
            yield from _tensors_in(argument.values())


def device_name(device: torch.device | str, num_threads: int = 1) -> str:
    """Name a device for the record: the GPU's model, or the processor's with PyTorch's number of threads."""
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type != "cpu":
        return str(device)
    return f"{_processor()}, {num_threads} thread{'' if num_threads == 1 else 's'}"


def _processor() -> str:
    """Name the processor; on Linux the platform module knows only its family, the kernel its model."""
    table = Path("/proc/cpuinfo")
    if table.exists():
        for line in table.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "CPU"
