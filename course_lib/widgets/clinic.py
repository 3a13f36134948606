"""Chapter 11's monitor: the instruments of a run beside those of a healthy one."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch

from course_lib.colors import COLORS, GRID, INK
from course_lib.training.clinic import possible_loss
from course_lib.training.limits import largest_safe_score
from course_lib.training.recorder import Record
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Explorer, Toggle

TITLE = "The monitor"
WIDTH, HEIGHT = 720, 470  # of the picture, in pixels, as are the next six
LEFT, TOP = 52, 46
PANEL_WIDTH, PANEL_HEIGHT = 170, 118
ACROSS, DOWN = 236, 206
COLUMNS = 3
HEALTHY_DASHES = "6 4"
FEW = 1e-18  # below every number that is worth telling apart
LEAST_DECADES = 1
POSSIBLE = "possible"
TITLE_ROOM = 14  # pixels
MOST_GRID_LINES = 4


# Each instrument: its title, what to read from a record, and whether its axis is logarithmic.
INSTRUMENTS: dict[str, tuple[Callable[[Record], Sequence[float]], bool]] = {
    "loss (nats)": (lambda record: record.loss, False),
    "gradient, first block": (lambda record: record.grad_norm, True),
    "step over weights": (lambda record: record.update_ratio, True),
    "largest score": (lambda record: record.max_score, True),
    "entropy of the heads": (lambda record: record.attention_entropy, False),
    "scale, last block": (lambda record: [scales[-1] for scales in record.layer_scales], True),
}


def clinic_explorer(records: Mapping[str, Record], healthy: str = "healthy") -> Explorer:
    """Make the monitor; put it last in a cell to see it.

    Args:
        records: runs by the name under which they can be chosen.
        healthy: the run to compare with.

    Raises:
        ValueError: there is no healthy run, or no other one.
    """
    others = [name for name in records if name != healthy]
    if healthy not in records or not others:
        raise ValueError(f"`records` needs the run {healthy!r} and another one, got {', '.join(records) or 'nothing'}.")
    # Numbers, since the names would not fit beside the slider; the picture and its words tell the name.
    return Explorer(
        TITLE,
        {
            "patient": Choice("Patient", 1, list(range(1, len(others) + 1))),
            "healthy": Toggle("Show the healthy run too", True),
        },
        lambda patient, **shown: draw(records, others[patient - 1], healthy if shown["healthy"] else None),
    )


def draw(records: Mapping[str, Record], run: str, healthy: str | None) -> tuple[str, str]:
    """Draw six instruments of a run, dashed those of the healthy one, and say where each begins and ends."""
    shown = {run: records[run]} | ({healthy: records[healthy]} if healthy else {})
    parts = [
        svg.line(LEFT, 16, LEFT + 28, 16, COLORS[1], 2.2),
        svg.text(LEFT + 34, 20, run, 13, weight="bold"),
    ]
    if healthy:
        start = LEFT + 34 + 8.5 * len(run) + 24
        parts += [svg.line(start, 16, start + 28, 16, COLORS[0], 1.6, HEALTHY_DASHES)]
        parts += [svg.text(start + 34, 20, healthy, 13)]
    told = []
    for index, (title, (read, logarithmic)) in enumerate(INSTRUMENTS.items()):
        series = {name: list(read(record)) for name, record in shown.items()}
        marks = _marks(title, records[run])
        parts += _panel(index, title, series, logarithmic, marks)
        told.append(f"{title}: {_ends(series[run])}" + (f" (healthy: {_ends(series[healthy])})" if healthy else ""))
    words = f"{run}, {len(records[run].loss)} steps, from first to last. " + "; ".join(told) + "."
    return svg.picture(WIDTH, HEIGHT, TITLE, words, *parts), words


def _marks(title: str, record: Record) -> dict[str, float]:
    """Give the lines that an instrument is read against."""
    if title.startswith("loss"):
        return {"ln V": math.log(record.vocab_size), POSSIBLE: possible_loss()}
    if title.startswith("entropy"):
        return {"even": record.even_entropy}
    if title.startswith("largest"):
        return {"exp overflows": largest_safe_score(torch.float32)}
    return {}


def _ends(series: Sequence[float]) -> str:
    return f"{_number(series[0])} to {_number(series[-1])}"


def _number(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else "not a number"


def _panel(
    index: int, title: str, series: Mapping[str, Sequence[float]], logarithmic: bool, marks: Mapping[str, float]
) -> list[str]:
    left, top = LEFT + ACROSS * (index % COLUMNS), TOP + 24 + DOWN * (index // COLUMNS)
    bottom = top + PANEL_HEIGHT
    finite = [value for values in (*series.values(), marks.values()) for value in values if math.isfinite(value)]
    scaled = [math.log10(max(value, FEW)) if logarithmic else value for value in finite]
    low, high = (math.floor(min(scaled)), math.ceil(max(scaled))) if logarithmic else (0.0, 1.08 * max(scaled))
    high = max(high, low + LEAST_DECADES)
    longest = max(len(values) for values in series.values())

    def place(step: float, value: float) -> tuple[float, float]:
        height = math.log10(max(value, FEW)) if logarithmic else value
        return left + PANEL_WIDTH * step / max(1, longest - 1), bottom - PANEL_HEIGHT * (height - low) / (high - low)

    parts = [svg.text(left, top - 10, title, 12.5, weight="bold")]
    parts += _grid(left, bottom, low, high, logarithmic, place)
    parts += [svg.text(left + PANEL_WIDTH, bottom + 15, f"step {longest}", 10.5, anchor="end")]
    names = []
    for name, value in marks.items():
        _, y = place(0, value)
        parts += [svg.line(left, y, left + PANEL_WIDTH, y, INK, 1, "2 3")]
        # The possible loss is reached at the right end, so its name stands at the left one.
        at, anchor = (left + 4, "start") if name == POSSIBLE else (left + PANEL_WIDTH - 2, "end")
        # A name above the highest line would run into the panel's title.
        names += [svg.text(at, y + 13 if y < top + TITLE_ROOM else y - 4, name, 10.5, anchor=anchor)]
    for number, values in reversed(list(enumerate(series.values()))):
        parts += _curve(values, place, number == 0)
    return parts + names  # above the curves, where their white rims keep them readable


def _grid(
    left: float,
    bottom: float,
    low: float,
    high: float,
    logarithmic: bool,
    place: Callable[[float, float], tuple[float, float]],
) -> list[str]:
    parts = [svg.line(left, bottom, left + PANEL_WIDTH, bottom, GRID)]
    if logarithmic:
        stride = max(1, math.ceil((high - low) / MOST_GRID_LINES))
        levels = {f"1e{power}": 10.0**power for power in range(int(low), int(high) + 1, stride)}
    else:
        step = high / 2 if high < 1 else max(0.5, math.ceil(high / MOST_GRID_LINES * 2) / 2)
        levels = {f"{count * step:.2g}": count * step for count in range(int(high / step) + 1)}
    for label, value in levels.items():
        _, y = place(0, value)
        parts += [
            svg.line(left, y, left + PANEL_WIDTH, y, GRID),
            svg.text(left - 6, y + 4, label, 10.5, anchor="end"),
        ]
    return parts


def _curve(values: Sequence[float], place: Callable[[float, float], tuple[float, float]], chosen: bool) -> list[str]:
    """Draw a curve as far as it is finite, and a diamond where it ends before its time."""
    points: list[tuple[float, float]] = []
    for step, value in enumerate(values):
        if not math.isfinite(value):
            break
        points.append(place(step, value))
    color, width, dashes = (COLORS[1], 2.2, "") if chosen else (COLORS[0], 1.6, HEALTHY_DASHES)
    parts = [svg.curve(points, color, width, dashes)]
    if points and len(points) < len(values):
        parts += [svg.diamond(*points[-1], 5, color)]
    return parts
