"""Cut a stack of layers into stages on different devices, and a batch into microbatches that follow each other."""

from collections.abc import Sequence

Tick = list[tuple[int, int]]


def bubble_fraction(stages: int, microbatches: int) -> float:
    """Give the share of the time in which a stage waits: (s - 1) / (m + s - 1).

    Raises:
        ValueError: a count is below 1.

    Source: Huang et al. 2019, §2.3, arXiv 1811.06965 (GPipe). Narayanan et al. 2021, §2.2, arXiv 2104.04473, divide by
    the ideal time instead: (s - 1) / m; here the share is one of the whole time.
    """
    _require_counts(stages, microbatches)
    return (stages - 1) / (microbatches + stages - 1)


def pipeline_schedule(stages: int, microbatches: int) -> list[Tick]:
    """List, tick by tick, which stage works on which microbatch in a forward pass: `(stage, microbatch)`.

    Stage s takes microbatch t - s in tick t, so m + s - 1 ticks are enough, and no fewer are.

    Raises:
        ValueError: a count is below 1.

    Source: Huang et al. 2019, fig. 2c, arXiv 1811.06965.
    """
    _require_counts(stages, microbatches)
    return [
        [(stage, tick - stage) for stage in range(stages) if 0 <= tick - stage < microbatches]
        for tick in range(stages + microbatches - 1)
    ]


def schedule_problem(ticks: Sequence[Sequence[tuple[int, int]]], stages: int, microbatches: int) -> str | None:
    """Say what forbids a forward schedule, or what it leaves out, in one sentence; None if it can run."""
    done: dict[tuple[int, int], int] = {}
    for number, tick in enumerate(ticks):
        if not tick:
            return f"tick {number} is empty: every stage waits in it"
        for stage, microbatch in tick:
            if not (0 <= stage < stages and 0 <= microbatch < microbatches):
                return f"tick {number} names stage {stage} and microbatch {microbatch}, and there is no such pair"
            if (stage, microbatch) in done:
                return f"stage {stage} works on microbatch {microbatch} twice"
            if stage and done.get((stage - 1, microbatch), number) >= number:
                return (
                    f"in tick {number} stage {stage} works on microbatch {microbatch}, which stage {stage - 1} has not "
                    "finished in an earlier tick"
                )
            done[stage, microbatch] = number
        busy = [stage for stage, _ in tick]
        twice = next((stage for stage in busy if busy.count(stage) > 1), None)
        if twice is not None:
            return f"in tick {number} stage {twice} does {busy.count(twice)} things at once"
    missing = [(s, m) for s in range(stages) for m in range(microbatches) if (s, m) not in done]
    if missing:
        return f"stage {missing[0][0]} never works on microbatch {missing[0][1]}"
    return None


def _require_counts(stages: int, microbatches: int) -> None:
    for name, count in (("stages", stages), ("microbatches", microbatches)):
        if count < 1:
            raise ValueError(f"`{name}` must be at least 1, got {count}.")
