"""Time work that runs on after its call returns; and a false device on which that can be practiced exactly.

`course_lib.timing` does the same, and more, with PyTorch's own timer.
"""

import statistics
from collections.abc import Callable, Sequence


def fair_seconds(
    function: Callable[[], object],
    synchronize: Callable[[], object],
    clock: Callable[[], float],
    repeats: int,
    warmup: int,
) -> float:
    """Return the median seconds that `function` and all the work it starts take.

    Args:
        function: starts the work; it may return before the work is done.
        synchronize: waits until the device has nothing left to do.
        clock: returns the time, in seconds.
        repeats: calls that are timed, one by one.
        warmup: calls before them, whose time does not count.

    Raises:
        ValueError: `repeats` is below 1 or `warmup` is negative.
    """
    if repeats < 1 or warmup < 0:
        raise ValueError(f"`repeats` must be at least 1 and `warmup` at least 0, got {repeats} and {warmup}.")
    for _ in range(warmup):
        function()
    samples = []
    for _ in range(repeats):
        synchronize()
        start = clock()
        function()
        synchronize()
        samples.append(clock() - start)
    return statistics.median(samples)


class FakeDevice:
    """A device that works through a queue while its host goes on, with a clock that obeys it.

    A call of `launch` costs the host a moment and puts work into the queue. The i-th call costs the i-th entry of
    `launch_seconds` and of `work_seconds`; after the last entry, the last again. Nothing here looks at a real clock.
    """

    def __init__(self, launch_seconds: Sequence[float], work_seconds: Sequence[float], queued: float = 0.0) -> None:
        """Start at time 0.

        Args:
            launch_seconds: what the calls cost the host.
            work_seconds: what the calls cost the device.
            queued: seconds of work that someone else left in the queue.

        Raises:
            ValueError: a list is empty.
        """
        if not launch_seconds or not work_seconds:
            raise ValueError("`launch_seconds` and `work_seconds` need at least one entry each.")
        self.launch_seconds, self.work_seconds = tuple(launch_seconds), tuple(work_seconds)
        self.now, self.busy_until, self.calls = 0.0, queued, 0

    def launch(self) -> None:
        """Start work; return when the host has handed it over."""
        self.now += self.launch_seconds[min(self.calls, len(self.launch_seconds) - 1)]
        work = self.work_seconds[min(self.calls, len(self.work_seconds) - 1)]
        self.busy_until = max(self.now, self.busy_until) + work
        self.calls += 1

    def synchronize(self) -> None:
        """Let the host wait for an empty queue."""
        self.now = max(self.now, self.busy_until)

    def clock(self) -> float:
        """Tell the host's time, in seconds."""
        return self.now
