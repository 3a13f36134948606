"""Measure which deep stacks learn to reverse: norm placement against depth, learning rate and warm-up.

Writes `course_lib/results/norm_placement.json`, which chapter 03 shows. It takes about 7 CPU-minutes:
`python benchmarks/norm_placement.py`.
"""

import itertools
import statistics
import time

import torch
from torch import nn

from course_lib import results
from course_lib.models.deep_training import BATCH, FULL_STEPS, LENGTH, train_deep_reverser

DEPTHS = (2, 4, 6, 12, 24)
RATES = (1e-3, 3e-3, 1e-2)
SEEDS = (0, 1, 2)
WARMUP = FULL_STEPS // 2
VARIANTS = {
    "pre-norm": {"kind": "pre-norm"},
    "pre-norm, RMS": {"kind": "pre-norm", "norm": lambda width: nn.RMSNorm(width, eps=1e-5)},
    "post-norm": {"kind": "post-norm"},
    "post-norm, warm-up": {"kind": "post-norm", "warmup": WARMUP},
    "no norm": {"kind": "no norm"},
    "no skip": {"kind": "no skip"},
}


def measure() -> dict:
    """Train every variant at every depth and rate from every seed."""
    start, rows = time.process_time(), []
    for (name, options), depth, rate in itertools.product(VARIANTS.items(), DEPTHS, RATES):
        outcomes = [train_deep_reverser(num_layers=depth, learning_rate=rate, seed=seed, **options) for seed in SEEDS]
        accuracies = [round(outcome.accuracy, 4) for outcome in outcomes]
        losses = [round(outcome.history[-1], 4) for outcome in outcomes]
        rows.append({"variant": name, "depth": depth, "rate": rate, "accuracies": accuracies, "last_losses": losses})
        print(f"{name:>20} {depth:3} layers, rate {rate:g}: {statistics.mean(accuracies):.2f} {accuracies}", flush=True)
    return {
        "task": f"reverse {LENGTH} digits, {FULL_STEPS} steps of {BATCH} strings, Adam, warm-up of {WARMUP} steps",
        "seeds": list(SEEDS),
        "torch": torch.__version__,
        "cpu_seconds": round(time.process_time() - start),
        "rows": rows,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(results.save("norm_placement", measure()))
