"""Measure how many unseen dates the reader of chapter 10 gets right, from several seeds.

Writes `course_lib/results/date_words.json`, whose band a test holds the reader to. It takes about a CPU-minute:
`python benchmarks/date_words.py`.
"""

import time

import torch

from course_lib import results
from course_lib.date_words import END_ID, FORMS, LANGUAGES, START_ID, split_days, written_dates
from course_lib.decoding import greedy_decode
from course_lib.models.date_reader import (
    BATCH,
    FULL_STEPS,
    MAX_WRITTEN,
    PEAK_RATE,
    date_batch,
    exact,
    forced_characters,
    new_date_reader,
    remember,
    train_date_reader,
    writer,
)

SEEDS = (0, 1, 2)
TESTED = 2000
SEED_OF_THE_SPLIT, SEED_OF_THE_TEST = 0, 1
LEAST = 0.95  # of the unseen dates must be exact


def measure() -> dict:
    """Train a reader from every seed and let it write unseen dates."""
    training_days, test_days = split_days(torch.Generator().manual_seed(SEED_OF_THE_SPLIT))
    dates = written_dates(test_days, TESTED, torch.Generator().manual_seed(SEED_OF_THE_TEST))
    batch, rows = date_batch(dates), []
    for seed in SEEDS:
        start = time.process_time()
        model = new_date_reader(seed)
        history = train_date_reader(model, training_days, seed)
        seconds = time.process_time() - start
        step = writer(model, remember(model, batch.source, batch.mask))
        right = exact(greedy_decode(step, START_ID, END_ID, MAX_WRITTEN, len(dates)), dates)
        by_language = {
            code: [ok for ok, one in zip(right, dates, strict=True) if one.language == code] for code in LANGUAGES
        }
        rows.append(
            {
                "seed": seed,
                "exact": sum(right) / len(right),
                "characters": (forced_characters(model, batch) == batch.target).double().mean().item(),
                "by_language": {code: round(sum(found) / len(found), 4) for code, found in by_language.items()},
                "last_loss": round(history[-1], 4),
                "training_cpu_seconds": round(seconds, 1),
            }
        )
        print(rows[-1], flush=True)
    return {
        "task": f"{len(LANGUAGES)} languages, forms {', '.join(FORMS)}, {FULL_STEPS} steps of {BATCH}, "
        f"Adam to a rate of {PEAK_RATE}",
        "tested": TESTED,
        "parameters": sum(parameter.numel() for parameter in new_date_reader(0).parameters()),
        "torch": torch.__version__,
        "least_exact": LEAST,
        "rows": rows,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(results.save("date_words", measure()))
