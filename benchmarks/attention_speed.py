"""Measure what causal attention costs over the length, in every form that this machine runs.

Naive, our own tiles, local, linear, PyTorch's backends one by one, and FlexAttention: seconds and peak memory of the
forward pass and of a training step, in float32 and bfloat16, and our timing helper against a reference timer. What a
form cannot do is recorded with the reason.

`python benchmarks/attention_speed.py --device cuda` takes under five minutes on one GPU and writes
`course_lib/results/attention_gpu.json`; `--device cpu` is its smaller form on one thread, takes under three minutes
of an idle machine and writes `attention_cpu.json`. Chapter 08 shows the GPU's where it is
there, else the CPU's.
"""

import argparse
import platform
import time
from collections.abc import Sequence

import torch

from course_lib import results
from course_lib.attention_forms import forms
from course_lib.attention_speed import Plan, largest_errors, measure_forms, timers
from course_lib.timing import device_name

RESULT = {"cpu": "attention_cpu", "cuda": "attention_gpu"}
LENGTHS = {"cpu": (256, 512, 1024, 2048), "cuda": (512, 1024, 2048, 4096, 8192, 16384)}
PLANS = {
    "cpu": {"heads": 2, "longest_call": 0.3, "longest_run": 80.0},
    # One sample on CUDA is at least seven calls, and five samples are taken.
    "cuda": {"batch": 2, "heads": 16, "longest_call": 0.2, "longest_run": 200.0},
}
BLOCK_SIZE = {"cpu": 128, "cuda": 512}  # larger tiles keep a GPU busy for longer than it takes to start them
WINDOW = 256
TIMED_LENGTH = {"cpu": 512, "cuda": 2048}  # where the timers are compared
NOTES = {
    "cpu": "Seconds of the processor on one thread, on a machine that other programs used at the same time: read "
    "ratios rather than milliseconds. Memory is counted from the tensors that PyTorch allocates; what a fused kernel "
    "needs inside stays unseen.",
    "cuda": "Seconds by device events, each call from a cold cache; memory by the device's allocator.",
}


def measure(device: str, plan: Plan) -> dict:
    """Run everything and return what the file holds."""
    began = time.monotonic()
    every_form = forms(BLOCK_SIZE[device], WINDOW)
    rows = measure_forms(every_form, plan, tell=lambda line: print(line, flush=True))
    own_and_sdpa = [form for form in every_form if form.name in ("naive", "own tiles", "linear", "SDPA")]
    timed_length = min(TIMED_LENGTH[device], max(plan.lengths))
    return {
        "task": "causal attention: every query sees itself and what came before",
        "device": device_name(device),
        "note": NOTES[device],
        "torch": torch.__version__,
        "python": platform.python_version(),
        "settings": {
            "batch": plan.batch,
            "heads": plan.heads,
            "d_head": plan.d_head,
            "block_size": BLOCK_SIZE[device],
            "window": WINDOW,
            "threads": torch.get_num_threads(),
        },
        "rows": rows,
        "errors": largest_errors(every_form, plan),
        "timers": [row for dtype in plan.dtypes for row in timers(own_and_sdpa, plan, timed_length, dtype)],
        "elapsed_seconds": round(time.monotonic() - began, 1),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, measure, and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", choices=RESULT, default="cpu", help="where to measure")
    parser.add_argument("--lengths", type=int, nargs="+", help="tokens, rising, in place of the usual ones")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no CUDA device here; --device cpu runs the smaller form.")
    if options.device == "cpu":
        torch.set_num_threads(1)
    lengths = tuple(options.lengths or LENGTHS[options.device])
    plan = Plan(device=options.device, lengths=lengths, **PLANS[options.device])
    print(results.save(RESULT[options.device], measure(options.device, plan)))


if __name__ == "__main__":
    main()
