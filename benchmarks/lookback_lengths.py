"""Train the look-back model with every encoding and three seeds, and write down how well it does on longer texts.

    python benchmarks/lookback_lengths.py

It takes about ten minutes on one core, too long for a notebook, and makes
`course_lib/results/lookback_lengths.json`, which chapter 05 reads.
"""

import time

import torch

from course_lib import results
from course_lib.models.lookback import LENGTHS, RESULT, TRAINED_LENGTH, Lookback
from course_lib.position_tasks import accuracy, lookback_batch
from course_lib.training.loop import forever, train

SEEDS = (0, 1, 2)
BATCH, LEARNING_RATE = 64, 0.003
QUICK, PATIENT = 200, 4000  # steps: most encodings need few, ALiBi and no encoding need many
PLANS = (  # encoding, layers, steps
    ("rotary", 1, QUICK),
    ("sinusoids", 1, QUICK),
    ("learned", 1, QUICK),
    ("T5 buckets", 1, QUICK),
    ("ALiBi", 1, QUICK),
    ("ALiBi", 1, PATIENT),
    ("none", 1, QUICK),
    ("none", 2, PATIENT // 2),
)


def measure(encoding: str, layers: int, steps: int, seed: int) -> dict:
    """Train one model and return its accuracies by length."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Lookback(encoding, num_layers=layers)
    start = time.process_time()
    train(model, forever(lambda: lookback_batch(BATCH, TRAINED_LENGTH, generator)), steps, LEARNING_RATE)
    seconds = time.process_time() - start
    right = {str(length): round(accuracy(model, lookback_batch, length), 3) for length in LENGTHS}
    print(encoding, layers, steps, seed, f"{seconds:.0f} s", right, flush=True)
    return {"encoding": encoding, "layers": layers, "steps": steps, "seed": seed, "accuracy": right}


def main() -> None:
    """Measure everything and write the file."""
    torch.set_num_threads(1)
    runs = [measure(*plan, seed) for plan in PLANS for seed in SEEDS]
    print(results.save(RESULT, {"trained_length": TRAINED_LENGTH, "runs": runs}))


if __name__ == "__main__":
    main()
