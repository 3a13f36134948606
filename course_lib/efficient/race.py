"""Let forms of attention run side by side over the length, and note why one of them does not start or gives up."""

import shutil
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from course_lib import timing
from course_lib.attention_forms import Form
from course_lib.memory import peak_bytes
from course_lib.settings import quick

Inputs = tuple[Tensor, Tensor, Tensor]
COMPILED = "FlexAttention"
COMPILERS = ("g++", "clang++", "c++")
TAKES_LONG = 0.25  # seconds: from here on one sample is enough
FEW = {"repeats": 3, "warmup": 1, "min_seconds": 0.002}
ONCE = {"repeats": 1, "warmup": 0, "min_seconds": 0.0}


@dataclass
class Race:
    """Seconds and counted bytes by form and length, and a sentence for each form that is missing somewhere."""

    seconds: dict[str, dict[int, float]] = field(default_factory=dict)
    peaks: dict[str, dict[int, int]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def curve(self, form: str, lengths: Sequence[int], of: str = "seconds") -> list[float]:
        """Give a form's numbers over the length, NaN where there is none."""
        return [float(getattr(self, of)[form].get(length, "nan")) for length in lengths]


def race(
    forms: Sequence[Form],
    lengths: Sequence[int],
    inputs: Callable[[int], Inputs],
    most_bytes: float = float("inf"),
    compiled_length: int = 0,
) -> Race:
    """Measure each form's forward pass at each length; a form that fails, or grows too large, is left out from there.

    Args:
        forms: what to measure.
        lengths: tokens, rising.
        inputs: makes queries, keys and values of a length.
        most_bytes: a form that had more bytes alive at a length is not tried at a greater one.
        compiled_length: the one length at which FlexAttention is tried: each length is compiled anew, for seconds.
    """
    found = Race()
    for form in forms:
        for length in [compiled_length] if form.name == COMPILED else lengths:
            reason = _reason_not_to(form, length, found, most_bytes) or _measure(form, length, inputs(length), found)
            if reason:
                found.reasons[form.name] = reason
                break
    return found


def _reason_not_to(form: Form, length: int, found: Race, most_bytes: float) -> str | None:
    if form.name == COMPILED:
        if not length:
            return "not asked for"
        if quick():
            return "a quick run does not wait for the compiler"
        if not torch.cuda.is_available() and not any(map(shutil.which, COMPILERS)):
            return "this machine has no C++ compiler to compile it with"
    before = max(found.peaks.get(form.name, {}).values(), default=0)
    return f"left out from {length:,} tokens on, to spare the memory" if before > most_bytes else None


def _measure(form: Form, length: int, tensors: Inputs, found: Race) -> str | None:
    """Try a form once, count its memory, and time it; return why that failed."""
    with warnings.catch_warnings(record=True) as said, torch.no_grad():
        warnings.simplefilter("always")
        try:
            form.attend(*tensors)
            if form.name != COMPILED:  # a compiled kernel does not pass the counter
                found.peaks.setdefault(form.name, {})[length] = peak_bytes(form.attend, *tensors).bytes
        except Exception as error:  # whatever a backend raises is its reason
            words = [str(one.message) for one in said][:1] or [str(error)]
            return words[0].strip().split("\n")[0].split("(Triggered")[0].split(". ")[0].strip(" .")
        began = time.perf_counter()
        form.attend(*tensors)
        often = ONCE if time.perf_counter() - began > TAKES_LONG else FEW
        taken = timing.measure(form.attend, *tensors, **often)
    found.seconds.setdefault(form.name, {})[length] = taken.median
    return None
