"""Draw a pipeline's schedule: a row per stage, a column per tick, and waiting hatched so that no color is needed."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_lib import plots
from course_lib.colors import COLORS, INK, readable_ink
from course_lib.words import counted

CELL = 0.42  # inches
WIDEST = 8.5  # inches of the picture
SHADES = (COLORS[5], COLORS[4], COLORS[3])  # light enough for dark numbers

Ticks = Sequence[Sequence[tuple[int, int]]]


def draw_schedule(ticks: Ticks, stages: int, title: str | None = None) -> Axes:
    """Draw who works on what; the number in a cell is the microbatch, a hatched cell waits.

    Raises:
        ValueError: there is no tick, or a tick names a stage that does not exist.
    """
    table = _table(ticks, stages)
    width = min(WIDEST, max(2.5, CELL * len(ticks)))
    ax = plots.panels(1, width=width, height=max(1.0, CELL * stages))[0]
    for tick, row in enumerate(table):
        for stage, microbatch in enumerate(row):
            _cell(ax, tick, stage, microbatch)
    ax.set_xlim(-0.5, len(ticks) - 0.5)
    ax.set_ylim(stages - 0.5, -0.5)
    ax.set_xticks(range(0, len(ticks), max(1, len(ticks) // 12)))
    ax.set_yticks(range(stages), [f"stage {stage}" for stage in range(stages)])
    ax.set_xlabel("tick", fontsize=plots.TEXT_SIZE, color=INK)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if title:
        ax.set_title(title, fontsize=plots.TITLE_SIZE, color=INK, loc="left", pad=8)
    return ax


def describe_schedule(ticks: Ticks, stages: int) -> str:
    """Say what `draw_schedule` shows: how long it takes, how many cells wait, and when each stage works."""
    table = _table(ticks, stages)
    waiting = sum(entry is None for row in table for entry in row)
    cells = len(ticks) * stages
    told = [
        f"A schedule of {counted(len(ticks), 'tick', 'ticks')} for {counted(stages, 'stage', 'stages')}; "
        f"{waiting} of {cells} cells wait, {waiting / cells:.0%}."
    ]
    for stage in range(stages):
        busy = [tick for tick, row in enumerate(table) if row[stage] is not None]
        order = ", ".join(str(table[tick][stage]) for tick in busy)
        told.append(
            f"Stage {stage} works from tick {busy[0]} to {busy[-1]} on microbatches {order}."
            if busy
            else f"Stage {stage} never works."
        )
    return " ".join(told)


def show_schedule(ticks: Ticks, stages: int, title: str | None = None) -> None:
    """Put a schedule into the notebook with its text alternative."""
    words = describe_schedule(ticks, stages)
    plots.show(draw_schedule(ticks, stages, title), f"{title}. {words}" if title else words)


def _table(ticks: Ticks, stages: int) -> list[list[int | None]]:
    if not ticks:
        raise ValueError("`ticks` is empty; a schedule has at least one tick.")
    table: list[list[int | None]] = [[None] * stages for _ in ticks]
    for number, tick in enumerate(ticks):
        for stage, microbatch in tick:
            if not 0 <= stage < stages:
                raise ValueError(f"tick {number} names stage {stage}; `stages` is {stages}.")
            table[number][stage] = microbatch
    return table


def _cell(ax: Axes, tick: int, stage: int, microbatch: int | None) -> None:
    corner = (tick - 0.47, stage - 0.45)
    if microbatch is None:
        ax.add_patch(Rectangle(corner, 0.94, 0.9, facecolor="#f4f4f4", edgecolor="#b0b0b0", hatch="////", linewidth=0))
        return
    shade = SHADES[microbatch % len(SHADES)]
    ax.add_patch(Rectangle(corner, 0.94, 0.9, facecolor=shade, edgecolor=INK, linewidth=0.6))
    ink = readable_ink(shade)
    ax.text(tick, stage, str(microbatch), ha="center", va="center", fontsize=plots.SMALL_SIZE, color=ink)
