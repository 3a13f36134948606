"""Draw bars for a page: one color, since the labels tell them apart, and the same told in words."""

from collections.abc import Mapping
from typing import Literal

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from course_lib import plots
from course_lib.colors import COLORS, GRID, INK
from course_lib.words import describe_bars

WIDTH, HEIGHT = 9.0, 3.0  # inches
ROW_HEIGHT, FRAME_HEIGHT = 0.34, 1.1  # inches of a lying bar, and of title and axis around all of them
THICKNESS = 0.65
DIGITS = 3
ROOM_FOR_LABELS = 0.12


def standing_bars(values: Mapping[str, float], xlabel: str, ylabel: str, title: str) -> Markup:
    """Draw bars whose short names have an order, such as those of a histogram."""
    ax = plots.panels(1, width=WIDTH, height=HEIGHT)[0]
    ax.bar_label(ax.bar(list(values), list(values.values()), width=THICKNESS, color=COLORS[0]), padding=2, color=INK)
    ax.margins(y=ROOM_FOR_LABELS)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    return finished(ax, "y", xlabel, ylabel, title, describe_bars(values, ylabel, DIGITS))


def lying_bars(values: Mapping[str, float], xlabel: str, title: str, end: float) -> Markup:
    """Draw bars with long names, one below the other.

    Args:
        values: The bars, from the top.
        xlabel: What they measure.
        title: Above them.
        end: Where the axis ends at least.
    """
    ax = plots.panels(1, width=WIDTH, height=FRAME_HEIGHT + ROW_HEIGHT * len(values))[0]
    bars = ax.barh(list(values), list(values.values()), height=THICKNESS, color=COLORS[0])
    ax.bar_label(bars, [f"{value:.0f}" for value in values.values()], padding=3, color=INK)
    ax.invert_yaxis()
    ax.set_xlim(0, end * (1 + ROOM_FOR_LABELS / 2))
    return finished(ax, "x", xlabel, "", title, describe_bars(values, xlabel, DIGITS))


def finished(ax: Axes, lined: Literal["x", "y"], xlabel: str, ylabel: str, title: str, words: str) -> Markup:
    """Name the axes and return the picture as an image in the page itself, with its words."""
    ax.set_xlabel(xlabel, color=INK)
    ax.set_ylabel(ylabel, color=INK)
    ax.set_title(title, loc="left", fontsize=plots.TITLE_SIZE, color=INK)
    ax.grid(axis=lined, color=GRID, linewidth=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y" if lined == "x" else "x", length=0, labelsize=plots.TEXT_SIZE)
    figure = ax.get_figure(root=True)
    assert figure is not None
    return Markup(plots.image_html(figure, words))
