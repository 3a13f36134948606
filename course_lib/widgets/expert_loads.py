"""Chapter 09's explorer of loads: which share of the tokens each expert gets, step by step through a training."""

from collections.abc import Mapping, Sequence

from course_lib.colors import COLORS, GRID, INK, QUIET
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Explorer

TITLE = "Which expert gets the tokens"
IDLE = 0.005  # a share below half a percent reads as 0 %
WIDTH = 660  # of the picture, in pixels
TOP, PANEL, BARS, LEFT, RIGHT = 56, 146, 80, 64, 640
GAP = 0.25  # of the width that a bar has
LETTERS = 11  # height of a number above a bar, in pixels
BAR_COLORS = (COLORS[5], COLORS[4], COLORS[3])

Loads = Sequence[Sequence[float]]  # a row of shares for every recorded step


def expert_loads_explorer(runs: Mapping[str, Loads], steps: Sequence[int]) -> Explorer:
    """Make the explorer; put it last in a cell to see it.

    Args:
        runs: for each training by its name, the shares of all experts at every recorded step.
        steps: the training step of every record.

    Raises:
        ValueError: there is no run or no step, or a run has not one row of as many shares for each step.
    """
    if not runs or not len(steps):
        raise ValueError("`runs` and `steps` must not be empty: record the loads while a layer trains.")
    widths = {len(row) for rows in runs.values() for row in rows}
    for name, rows in runs.items():
        if len(rows) != len(steps):
            raise ValueError(f"`runs` holds {len(rows)} rows under {name!r}; there are {len(steps)} steps.")
    if len(widths) != 1:
        raise ValueError(f"`runs` must have the same number of experts everywhere, got {sorted(widths)}.")
    records = {int(step): place for place, step in enumerate(steps)}
    control = Choice("Training step", int(steps[-1]), tuple(records))
    return Explorer(TITLE, {"step": control}, lambda step: draw(runs, records[step], step))


def draw(runs: Mapping[str, Loads], place: int, step: int) -> tuple[str, str]:
    """Draw the loads of every run at one recorded step, and say the same in words."""
    told = [_words(name, rows[place]) for name, rows in runs.items()]
    words = " ".join([f"After {step} step{'s' * (step != 1)}.", *told])
    parts = [svg.text(12, 24, f"share of the tokens per expert, after {step} step{'s' * (step != 1)}", 14)]
    for number, (name, rows) in enumerate(runs.items()):
        parts += _panel(TOP + PANEL * number, name, rows[place], number)
    return svg.picture(WIDTH, TOP + PANEL * len(runs), TITLE, words, *parts), words


def _words(name: str, loads: Sequence[float]) -> str:
    experts = len(loads)
    busiest = max(range(experts), key=lambda expert: loads[expert])
    idle = sum(load < IDLE for load in loads)
    nothing = {0: "every expert gets some", 1: "1 expert gets nothing"}.get(idle, f"{idle} experts get nothing")
    most = f"expert {busiest} gets the most, {100 * loads[busiest]:.0f} %"
    return f"{name[:1].upper()}{name[1:]}: {most}; {nothing}; even would be {100 / experts:.1f} % each."


def _panel(top: float, name: str, loads: Sequence[float], number: int) -> list[str]:
    experts, base = len(loads), top + 24 + BARS
    step = (RIGHT - LEFT) / experts
    even = base - BARS / experts
    parts = [svg.text(LEFT, top + 2, name, 13, weight="bold")]
    for share in (0, 0.5, 1):
        y = base - BARS * share
        parts += [
            svg.line(LEFT, y, RIGHT, y, GRID),
            svg.text(LEFT - 8, y + 4, f"{100 * share:.0f} %", 11, anchor="end"),
        ]
    middles = [LEFT + step * (expert + 1 / 2) for expert in range(experts)]
    wide, color = step * (1 - GAP), BAR_COLORS[number % len(BAR_COLORS)]
    for middle, load in zip(middles, loads, strict=True):
        parts.append(svg.rectangle(middle - wide / 2, base - BARS * load, wide, BARS * load, color, INK))
    parts.append(svg.line(LEFT, even, RIGHT, even, QUIET, dashes="4 3"))
    for expert, (middle, load) in enumerate(zip(middles, loads, strict=True)):
        parts += [
            svg.text(middle, _clear_of(even, base - BARS * load - 4), f"{100 * load:.0f} %", 11, anchor="middle"),
            svg.text(middle, base + 16, f"expert {expert}", 11, anchor="middle"),
        ]
    return parts


def _clear_of(line: float, baseline: float) -> float:
    """Lift a number that a level line would cross, so that it stands on the line."""
    return line - 3 if baseline - LETTERS < line < baseline + 2 else baseline
