"""Hold what the clock said: samples with their median and spread, and sentences that respect the noise."""

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from torch.utils import benchmark

from course_lib.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With fewer samples, two equal functions would too often seem to differ: simulated with normal and with
# skewed noise, 11 to 13 % of pairs do with 3 samples each, 5 % with 5, 0.7 % with 7.
FEWEST_SAMPLES = 5
SHORTEST_UNIT = 1e-9  # seconds: fractions of a nanosecond have no unit of their own
FOUR_DIGITS = 999.5  # from here on a number is rounded to a whole one
CAP = 3  # points to each side of an error bar's end


@dataclass(frozen=True)
class Measurement:
    """Seconds per call of one function: `samples` of `calls` calls each, on `device`."""

    samples: tuple[float, ...]
    calls: int
    device: str

    @property
    def quartiles(self) -> tuple[float, float]:
        """Return the first and the third quartile of the samples, in seconds."""
        first, third = np.quantile(self.samples, [0.25, 0.75])
        return float(first), float(third)

    @property
    def median(self) -> float:
        """Return the median of the samples, in seconds."""
        return float(np.median(self.samples))

    @property
    def spread(self) -> float:
        """Return the interquartile range of the samples, in seconds: half of them lie that close together."""
        first, third = self.quartiles
        return third - first

    def text(self) -> str:
        """Tell the measurement in one line."""
        return (
            f"{seconds_text(self.median)} per call (median of {len(self.samples)} samples of "
            f"{counted(self.calls, 'call', 'calls')}, spread {seconds_text(self.spread)}) on {self.device}"
        )

    __str__ = text


@dataclass(frozen=True)
class Comparison:
    """Several functions measured at several sizes; `measurements` is keyed by (name, size)."""

    names: tuple[str, ...]
    sizes: tuple[Any, ...]
    measurements: dict[tuple[str, Hashable], Measurement]

    @property
    def device(self) -> str:
        """Return the name of the device, or of all of them."""
        return " and ".join(dict.fromkeys(one.device for one in self.measurements.values()))

    def at(self, name: str, size: Hashable) -> Measurement:
        """Return the measurement of one function at one size.

        Raises:
            KeyError: that function or that size was not measured.
        """
        if name not in self.names:
            raise KeyError(f"No function {name!r} was measured; measured: {', '.join(self.names)}.")
        if size not in self.sizes:
            raise KeyError(f"Size {size} was not measured; measured: {', '.join(map(str, self.sizes))}.")
        return self.measurements[name, size]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each function and size, sizes first; times are seconds per call."""
        return [
            {
                "size": size,
                "function": name,
                "seconds": one.median,
                "spread": one.spread,
                "samples": len(one.samples),
                "calls": one.calls,
                "device": one.device,
            }
            for size in self.sizes
            for name in self.names
            for one in [self.at(name, size)]
        ]

    def differs(self, size: Hashable, a: str, b: str) -> bool:
        """Say whether two functions differ by more than the noise at one size.

        They do when the medians lie further apart than both spreads together. With 7 samples each, two
        equally fast functions do so by chance less than once in 100 times; with fewer than 5 samples the
        answer is always no.
        """
        first, second = self.at(a, size), self.at(b, size)
        if min(len(first.samples), len(second.samples)) < FEWEST_SAMPLES:
            return False
        return abs(first.median - second.median) > first.spread + second.spread

    def verdict(self, size: Hashable, a: str, b: str) -> str:
        """Say in a sentence which of two functions is faster at one size, or that the noise hides it."""
        first, second = self.at(a, size), self.at(b, size)
        fewest = min(len(first.samples), len(second.samples))
        if fewest < FEWEST_SAMPLES:
            return f"too few samples to compare {a} and {b} at {size}: {fewest}, not {FEWEST_SAMPLES} or more"
        if not self.differs(size, a, b):
            return f"no difference between {a} and {b} beyond the noise at {size}"
        if first.median > second.median:
            a, b, first, second = b, a, second, first
        return f"{a} is {_three_digits(second.median / first.median)} times as fast as {b} at {size}"

    def text(self) -> str:
        """Tell the whole comparison in words: the text alternative of `plot`."""
        lines = [f"Seconds per call on {self.device}: median ± half the interquartile range."]
        for size in self.sizes:
            ranked = sorted(self.names, key=lambda name: self.at(name, size).median)
            times = ", ".join(f"{name} {_with_spread_text(self.at(name, size))}" for name in ranked)
            lines.append(f"At {size}: {times}.")
            lines.extend(f"    {self.verdict(size, faster, slower)}." for faster, slower in pairwise(ranked))
        return "\n".join(lines)

    __str__ = text

    def plot(self, ax: "Axes | None" = None, xlabel: str = "size") -> "Axes":
        """Draw median seconds over size on log-log axes, with quartiles as error bars and each line labeled.

        Markers and line styles differ as well as colors. `plots.show(picture, comparison.text())` puts it into
        a notebook with the exact words.

        Raises:
            ValueError: a size is not a positive number, so that it has no place on a logarithmic axis.
        """
        from course_lib import plots  # only a picture needs it, and loading it takes most of a second

        if not all(isinstance(size, (int, float, np.number)) and size > 0 for size in self.sizes):
            raise ValueError(f"plot needs sizes that are positive numbers; got {list(self.sizes)}.")
        ax = plots.panels()[0] if ax is None else ax
        order = sorted(self.sizes)
        medians = {name: [self.at(name, size).median for size in order] for name in self.names}
        for index, name in enumerate(self.names):  # before the lines, whose labels go by the final limits
            quartiles = np.array([self.at(name, size).quartiles for size in order])
            color = plots.COLORS[index % len(plots.COLORS)]
            heights = np.abs(quartiles.T - medians[name])
            ax.errorbar(order, medians[name], yerr=heights, fmt="none", ecolor=color, capsize=CAP)
        return plots.line_plot(
            order, medians, xlabel, "seconds per call", title=self.device, ax=ax, log_x=True, log_y=True
        )


def seconds_text(seconds: int | float) -> str:
    """Write a duration with three digits and the unit that suits it: `3.2 ms`."""
    unit, scale = _unit_for(seconds)
    return f"{_three_digits(seconds / scale)} {unit}"


def _with_spread_text(one: Measurement) -> str:
    unit, scale = _unit_for(one.median)
    return f"{_three_digits(one.median / scale)} ± {_three_digits(one.spread / 2 / scale)} {unit}"


def _unit_for(seconds: float) -> tuple[str, float]:
    unit, scale = benchmark.select_unit(max(seconds, SHORTEST_UNIT))
    return unit.replace("u", "µ"), scale


def _three_digits(number: float) -> str:
    return f"{number:.3g}" if abs(number) < FOUR_DIGITS else f"{number:,.0f}"
