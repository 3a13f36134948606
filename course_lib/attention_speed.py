"""Measure forms of attention over the length: seconds and memory, forward and backward, and what could not run why.

Nothing is left out silently. A form that a machine cannot run, or that became too slow or too large to go on with,
has a row that says so in place of a number. On a CPU all seconds are the processor's, on one thread, so that other
programs on the machine disturb them little.
"""

import gc
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import benchmark

from course_lib import timing
from course_lib.attention_forms import Form, naive_attention
from course_lib.measurement import Measurement
from course_lib.memory import peak_bytes

FORWARD, TRAINING = "forward", "forward and backward"
PASSES = (FORWARD, TRAINING)
SEED = 8
REFERENCE_SECONDS = 0.1  # that the CPU's reference timer runs for
LONGEST_REASON = 300  # letters of an error message; PyTorch's may fill a screen
Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What to measure, and when to stop.

    Args:
        device: where.
        lengths: tokens, rising.
        dtypes: precisions.
        batch: sequences.
        heads: heads of each.
        d_head: features of a head.
        repeats: samples of each time.
        longest_call: seconds; a form of which one call takes longer is sampled once, and not at greater lengths.
        longest_run: seconds after which nothing new is begun; what is not reached is recorded as such.
    """

    device: str
    lengths: tuple[int, ...]
    dtypes: tuple[torch.dtype, ...] = (torch.float32, torch.bfloat16)
    batch: int = 1
    heads: int = 4
    d_head: int = 64
    repeats: int = 5
    longest_call: float = 1.0
    longest_run: float = 150.0

    @property
    def clock(self) -> timing.Clock | None:
        """Return the clock of the samples; without one, `timing` takes a GPU's own events."""
        return time.process_time if self.device == "cpu" else None

    def inputs(self, length: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """Draw queries, keys and values, the same in every run."""
        generator = torch.Generator().manual_seed(SEED)
        shape = (3, self.batch, self.heads, length, self.d_head)
        drawn = torch.randn(shape, generator=generator).to(self.device, dtype)
        return tuple(one.contiguous() for one in drawn)  # pyright: ignore[reportReturnType]


def measure_forms(forms: Sequence[Form], plan: Plan, tell: Callable[[str], None] = print) -> list[Row]:
    """Measure every form at every length, dtype and pass; one row for each, with a `reason` where there is no time.

    The forms of one length take turns, so that a slow moment of the machine hits all of them.
    """
    began = _clock(plan.device)
    given_up: dict[tuple[str, torch.dtype, str], str] = {}
    rows = []
    for length in plan.lengths:
        for dtype in plan.dtypes:
            for direction in PASSES:
                if _clock(plan.device) - began > plan.longest_run:
                    reason = f"not reached within {plan.longest_run:g} s"
                    new = [_row(form.name, length, dtype, direction, reason=reason) for form in forms]
                else:
                    new = _one_setting(forms, plan, length, dtype, direction, given_up)
                rows += new
                timed = sum(row["seconds"] is not None for row in new)
                tell(f"{length:6} tokens, {_name(dtype)}, {direction}: {timed} of {len(new)} forms ran")
    return rows


def _one_setting(
    forms: Sequence[Form],
    plan: Plan,
    length: int,
    dtype: torch.dtype,
    direction: str,
    given_up: dict[tuple[str, torch.dtype, str], str],
) -> list[Row]:
    """Try each form once; then measure those that were quick enough, taking turns."""
    inputs = plan.inputs(length, dtype)
    rows: dict[str, Row] = {}
    steady: dict[str, Callable[..., object]] = {}
    for form in forms:
        key = (form.name, dtype, direction)
        row = rows[form.name] = _row(form.name, length, dtype, direction, reason=given_up.get(key))
        if row["reason"] is not None:
            continue
        step = _forward(form) if direction == FORWARD else _training(form)
        try:
            row["peak_bytes"], row["memory_by"], row["first_seconds"], seconds = _try(form, step, inputs, plan)
        except Exception as error:  # whatever a backend raises is its reason
            row["reason"] = given_up[key] = _reason(error)
            continue
        finally:
            _tidy(plan.device)
        if seconds > plan.longest_call:
            row.update(seconds=seconds, spread=0.0, samples=1, calls=1)
            given_up[key] = f"one call took {seconds:.3g} s at {length} tokens, more than {plan.longest_call:g} s"
        else:
            steady[form.name] = step
    if steady:
        options = {"device": plan.device, "repeats": plan.repeats, "warmup": 1, "clock": plan.clock}
        report = timing.compare(steady, [length], inputs=lambda _: inputs, **options)
        for name in steady:
            rows[name].update(_times(report.at(name, length)))
    return list(rows.values())


def _forward(form: Form) -> Callable[..., Tensor]:
    def step(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        with torch.no_grad():
            return form.attend(query, key, value)

    return step


def _training(form: Form) -> Callable[..., tuple[Tensor, ...]]:
    """Make a step that calculates the output and the gradients of a weighted sum of it, with weights `value`."""

    def step(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        leaves = [one.detach().requires_grad_() for one in (query, key, value)]
        output = form.attend(*leaves)
        return torch.autograd.grad(output, leaves, value)

    return step


def _try(
    form: Form, step: Callable[..., object], inputs: tuple[Tensor, ...], plan: Plan
) -> tuple[int | None, str, float, float]:
    """Call twice, and once more for the memory; return peak, who says so, and the seconds of both calls.

    The first call of a form may load a library or compile. Warnings are kept out of the output, and given as the
    reason where the call fails: PyTorch tells in warnings why a backend does not serve.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            first, second = _seconds(step, inputs, plan.device), _seconds(step, inputs, plan.device)
            peak, by = _peak(form, step, inputs, plan.device)
        except Exception as error:
            said = "; ".join(dict.fromkeys(str(warning.message).split("(Triggered")[0].strip() for warning in caught))
            raise RuntimeError(f"{type(error).__name__}: {error} {said}") from error
    return peak, by, first, second


def _seconds(step: Callable[..., object], inputs: tuple[Tensor, ...], device: str) -> float:
    began = _clock(device)
    step(*inputs)
    return _clock(device) - began


def _peak(form: Form, step: Callable[..., object], inputs: tuple[Tensor, ...], device: str) -> tuple[int | None, str]:
    """Find the most bytes alive at once beyond the inputs: the allocator's word on CUDA, our count elsewhere."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        result = step(*inputs)
        torch.cuda.synchronize()
        del result
        return torch.cuda.max_memory_allocated() - before, "device allocator"
    if form.compiled:
        return None, "not counted: a compiled form's operations do not pass the counter one by one"
    return peak_bytes(step, *inputs).bytes, "counted tensors"


def largest_errors(forms: Sequence[Form], plan: Plan) -> list[Row]:
    """Compare the exact forms with the formula in float64 at the smallest length: the largest difference of each."""
    length, rows = min(plan.lengths), []
    for dtype in plan.dtypes:
        inputs = plan.inputs(length, dtype)
        wanted = naive_attention(*(one.double() for one in inputs))
        for form in forms:
            if not form.exact:
                continue
            row: Row = {"form": form.name, "length": length, "dtype": _name(dtype), "error": None, "reason": None}
            try:
                with warnings.catch_warnings(), torch.no_grad():
                    warnings.simplefilter("ignore")  # a backend that cannot serve says so in its error
                    row["error"] = (form.attend(*inputs).double() - wanted).abs().max().item()
            except Exception as error:  # whatever a backend raises is its reason
                row["reason"] = _reason(error)
            rows.append(row)
    return rows


def timers(forms: Sequence[Form], plan: Plan, length: int, dtype: torch.dtype) -> list[Row]:
    """Time the same calls by our helper, by a reference timer and by a synchronized clock.

    The reference is `triton.testing.do_bench` on CUDA and `torch.utils.benchmark`'s own choice of runs on a CPU.
    """
    inputs, rows = plan.inputs(length, dtype), []
    for form in forms:
        step = _forward(form)
        row: Row = {"form": form.name, "length": length, "dtype": _name(dtype), "reason": None}
        try:
            options = {"device": plan.device, "repeats": plan.repeats}
            row["helper"] = timing.measure(step, *inputs, clock=plan.clock, **options).median
            row["reference"], row["reference_timer"] = _reference_seconds(step, inputs, plan.device)
            clocked = timing.measure(step, *inputs, clock=lambda: _clock(plan.device), **options)
            row["synchronized_clock"] = clocked.median
        except Exception as error:  # whatever a backend raises is its reason
            row["reason"] = _reason(error)
        rows.append(row)
    return rows


def _reference_seconds(
    step: Callable[..., object], inputs: tuple[Tensor, ...], device: str
) -> tuple[float | None, str]:
    if not device.startswith("cuda"):
        timer = benchmark.Timer("step(*inputs)", globals={"step": step, "inputs": inputs}, timer=time.process_time)
        return timer.blocked_autorange(
            min_run_time=REFERENCE_SECONDS
        ).median, "torch.utils.benchmark, blocked_autorange"
    do_bench = timing._do_bench()
    if do_bench is None:
        return None, "triton.testing.do_bench is not installed"
    milliseconds = do_bench(lambda: step(*inputs), return_mode="median")
    return milliseconds / timing.MILLISECONDS, "triton.testing.do_bench"


def series(rows: Sequence[Row], what: str, dtype: str, direction: str) -> dict[str, dict[int, float]]:
    """Give for each form the lengths it ran at with `what` was measured there: `seconds` or `peak_bytes`.

    Args:
        rows: rows of `measure_forms`, perhaps read from a file.
        what: the row's entry.
        dtype: such as `float32`.
        direction: one of `PASSES`.
    """
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        if (row["dtype"], row["pass"]) == (dtype, direction) and row[what] is not None:
            found.setdefault(row["form"], {})[row["length"]] = row[what]
    return found


def _row(form: str, length: int, dtype: torch.dtype, direction: str, reason: str | None) -> Row:
    empty = dict.fromkeys(("seconds", "spread", "samples", "calls", "first_seconds", "peak_bytes", "memory_by"))
    return {"form": form, "length": length, "dtype": _name(dtype), "pass": direction, **empty, "reason": reason}


def _times(one: Measurement) -> Row:
    return {"seconds": one.median, "spread": one.spread, "samples": len(one.samples), "calls": one.calls}


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + "…"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _clock(device: str) -> float:
    """Read the processor's time, or the time at which another device has finished its work."""
    if device == "cpu":
        return time.process_time()
    torch.accelerator.synchronize(torch.device(device))
    return time.perf_counter()


def _tidy(device: str) -> None:
    """Let go of what a failed or finished form left on a GPU, so that the next one has its memory to itself."""
    if device.startswith("cuda"):
        gc.collect()
        torch.cuda.empty_cache()
