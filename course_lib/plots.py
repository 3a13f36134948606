"""Draw weights, curves and bars so that nobody needs color to read them, and say each picture in words.

Every function returns the Axes it drew on. `describe` gives the picture's text alternative and `show` puts
the picture into a notebook with that text attached.
"""

import base64
import html
import io
from collections.abc import Mapping, Sequence
from itertools import pairwise
from weakref import WeakKeyDictionary

import matplotlib
import numpy as np
from IPython.core.getipython import get_ipython
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike

from course_lib.colors import COLORS, GRID, INK, QUIET, readable_ink
from course_lib.settings import quick
from course_lib.words import describe_bars, describe_curves, describe_weights, weight_table

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")
HATCHES = ("", "//", "..", "xx", "\\\\", "oo", "++")
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 11, 10, 9
DPI = 110  # pixels per inch on the page
POINTS_PER_INCH = 72
MARGIN = 0.08  # inches around a picture
SHARPNESS = 2  # pixels drawn per pixel on the page, for dense screens
MOST_NUMBERS = 20  # rows or columns of a heat map beyond which numbers no longer fit into cells
MOST_MARKERS = 12  # markers on one curve
MOST_TICKS = 10  # values of x that each get a tick on a logarithmic axis

_texts: WeakKeyDictionary[Axes, str] = WeakKeyDictionary()


def panels(columns: int = 1, width: float = 5.0, height: float = 3.2) -> list[Axes]:
    """Make a row of empty plots in one figure, in the style of the course; sizes are inches per plot."""
    figure = Figure(figsize=(columns * width, height), dpi=DPI, facecolor="white")
    axes = figure.subplots(1, columns, squeeze=False, gridspec_kw={"wspace": 0.5})[0]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(QUIET)
        ax.tick_params(which="both", labelsize=SMALL_SIZE, color=QUIET, labelcolor=INK)
        ax.set_axisbelow(True)
    return list(axes)


def attention_map(
    weights: ArrayLike,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    mask: ArrayLike | None = None,
) -> Axes:
    """Draw attention weights as a table of shaded numbers: a row per query, hatched where `mask` hides a key.

    Raises:
        ValueError: `weights` is not one `(query, key)` table, or labels or `mask` do not fit it.
    """
    table, queries, keys, hidden = weight_table(weights, queries, keys, mask)
    rows, columns = table.shape
    numbers = max(rows, columns) <= MOST_NUMBERS
    own = ax is None
    if ax is None:
        cell = 0.5 if numbers else 0.12
        ax = panels(1, width=max(1.5, cell * columns), height=max(1.0, cell * rows))[0]
    shades = matplotlib.colormaps["Blues"]
    image = ax.imshow(np.where(hidden, 0, table), cmap=shades, vmin=0, vmax=1)
    size = _number_size(ax, rows, columns)
    for (row, column), weight in np.ndenumerate(table):
        if hidden[row, column]:
            _hatch(ax, row, column)
        elif numbers:
            ink = readable_ink(shades(float(weight)))
            number = ax.text(column, row, f"{weight:.2f}", ha="center", va="center", color=ink, fontsize=size)
            number.set_in_layout(False)  # it lies inside its cell; measuring each would take most of the time
    if numbers:
        ax.set_xticks(range(columns), keys)
        ax.set_yticks(range(rows), queries)
        ax.vlines(np.arange(columns + 1) - 0.5, -0.5, rows - 0.5, color="white", linewidth=1.2)
        ax.hlines(np.arange(rows + 1) - 0.5, -0.5, columns - 0.5, color="white", linewidth=1.2)
        ax.tick_params(which="both", length=0)
    elif own:
        image.axes.figure.colorbar(image, ax=ax, shrink=0.7, label="weight").outline.set_visible(False)
    ax.spines[:].set_visible(False)
    return _finish(ax, "key", "query", title, describe_weights(table, queries, keys, hidden))


def line_plot(
    x: ArrayLike,
    series: Mapping[str, ArrayLike],
    xlabel: str,
    ylabel: str,
    title: str | None = None,
    ax: Axes | None = None,
    log_x: bool = False,
    log_y: bool = False,
) -> Axes:
    """Draw curves that differ in marker, line and color, each labeled at its end instead of in a legend.

    Raises:
        ValueError: there is no series, or one differs from `x` in length.
    """
    places = np.asarray(x)
    curves = {name: np.asarray(y, dtype=float) for name, y in series.items()}
    if not curves:
        raise ValueError("`series` is empty; pass at least one curve.")
    for name, y in curves.items():
        if places.ndim != 1 or not places.size or y.shape != places.shape:
            raise ValueError(f"Curve {name!r} has shape {y.shape}; `x` has {places.shape}: one value for each.")
    ax = panels()[0] if ax is None else ax
    for index, y in enumerate(curves.values()):
        ax.plot(
            places,
            y,
            color=COLORS[index % len(COLORS)],
            marker=MARKERS[index % len(MARKERS)],
            linestyle=LINES[index % len(LINES)],
            markevery=-(-len(places) // MOST_MARKERS),
            markersize=5,
            linewidth=1.6,
        )
    ax.grid(color=GRID, linewidth=0.7)
    if log_y:
        ax.set_yscale("log")
    if log_x:
        ax.set_xscale("log")
        if len(places) <= MOST_TICKS:
            ax.set_xticks(places, [f"{place:g}" for place in places])
            ax.xaxis.set_minor_locator(NullLocator())
    _label_ends(ax, float(places[-1]), curves)
    return _finish(ax, xlabel, ylabel, title, describe_curves(places, curves, xlabel, ylabel))


def bar_plot(
    values: Mapping[str, float],
    ylabel: str,
    title: str | None = None,
    ax: Axes | None = None,
    digits: int = 3,
) -> Axes:
    """Draw named bars that differ in hatching and carry their value, with `digits` significant digits.

    Raises:
        ValueError: `values` is empty.
    """
    if not values:
        raise ValueError("`values` is empty; pass at least one bar.")
    ax = panels(1, width=max(2.4, 1.1 * len(values)), height=2.8)[0] if ax is None else ax
    for index, (name, value) in enumerate(values.items()):
        bar = ax.bar(
            name,
            value,
            width=0.65,
            facecolor=COLORS[index % len(COLORS)],
            edgecolor="white",
            hatch=HATCHES[index % len(HATCHES)],
        )
        ax.bar_label(bar, [f"{value:.{digits}g}"], padding=2, fontsize=TEXT_SIZE, color=INK)
    ax.margins(y=0.15)
    ax.grid(axis="y", color=GRID, linewidth=0.7)
    ax.tick_params(axis="x", length=0, labelsize=TEXT_SIZE)
    return _finish(ax, "", ylabel, title, describe_bars(values, ylabel, digits))


def describe(picture: Axes | Figure) -> str:
    """Give the text alternative of a plot, or of all plots of a figure, drawn by this module."""
    axes = picture.axes if isinstance(picture, Figure) else [picture]
    return " ".join(_texts[ax] for ax in axes if ax in _texts)


def show(picture: Axes | Figure, text: str | None = None) -> None:
    """Put a figure into the notebook with its text alternative; outside a notebook print the text.

    Given one of several plots of a figure, all of them are shown and told.

    Raises:
        ValueError: no `text` is given and the plot has none of its own.
    """
    figure = picture if isinstance(picture, Figure) else picture.get_figure(root=True)
    assert figure is not None, "an Axes from this module always belongs to a figure"
    text = describe(figure) if text is None else text
    if not text.strip():
        raise ValueError("`text` is missing: say in a sentence what the picture shows.")
    if get_ipython() is None:
        print(text)
    else:
        display({"text/html": image_html(figure, text), "text/plain": text}, raw=True)


def image_html(figure: Figure, text: str) -> str:
    """Make an HTML image of a figure whose `alt` is the text, sharp on dense screens; in a quick run plainly."""
    sharpness = 1 if quick() else SHARPNESS
    buffer = io.BytesIO()
    box = figure.get_tightbbox().padded(MARGIN)  # what "tight" would find, without its drawing everything once more
    figure.savefig(buffer, format="png", dpi=DPI * sharpness, bbox_inches=box)
    png = buffer.getvalue()
    width = int.from_bytes(png[16:20], "big") // sharpness  # a PNG tells its width in bytes 16 to 19
    data = base64.b64encode(png).decode()
    alt = html.escape(text)
    return f'<img alt="{alt}" width="{width}" style="max-width:100%" src="data:image/png;base64,{data}">'


def _hatch(ax: Axes, row: int, column: int) -> None:
    corner = (column - 0.5, row - 0.5)
    ax.add_patch(Rectangle(corner, 1, 1, facecolor="#f4f4f4", edgecolor="#b0b0b0", hatch="////", linewidth=0))


def _number_size(ax: Axes, rows: int, columns: int) -> float:
    """Fit "0.00" into a cell: it is about 2.3 times as wide as its letters are high."""
    box = ax.get_window_extent()
    cell = min(box.width / columns, box.height / rows) * _points_per_pixel(ax)
    return min(SMALL_SIZE, cell / 2.6)


def _points_per_pixel(ax: Axes) -> float:
    figure = ax.get_figure(root=True)
    return POINTS_PER_INCH / (DPI if figure is None else figure.dpi)


def _label_ends(ax: Axes, end: float, curves: Mapping[str, np.ndarray]) -> None:
    """Write each curve's name beside its last point, pushed apart where the names would overlap."""
    height = 1.3 * SMALL_SIZE  # points per label
    points = _points_per_pixel(ax)
    ax.set_ylim(ax.get_ylim())
    ax.set_xlim(ax.get_xlim())
    finals = {name: y[np.isfinite(y)][-1] for name, y in curves.items() if np.isfinite(y).any()}
    anchors = {name: ax.transData.transform((end, y))[1] * points for name, y in finals.items()}
    place = dict(anchors)
    ordered = sorted(place, key=place.__getitem__)
    for lower, upper in pairwise(ordered):
        place[upper] = max(place[upper], place[lower] + height)
    shift = sum(place[name] - anchors[name] for name in place) / max(1, len(place))
    for name, y in finals.items():
        ax.annotate(
            name,
            (end, y),
            xytext=(14, place[name] - shift - anchors[name]),
            textcoords="offset points",
            va="center",
            fontsize=SMALL_SIZE,
            color=INK,
            arrowprops={"arrowstyle": "-", "color": QUIET, "linewidth": 0.7, "shrinkA": 1, "shrinkB": 3},
            annotation_clip=False,
        )


def _finish(ax: Axes, xlabel: str, ylabel: str, title: str | None, words: str) -> Axes:
    ax.set_xlabel(xlabel, fontsize=TEXT_SIZE, color=INK)
    ax.set_ylabel(ylabel, fontsize=TEXT_SIZE, color=INK)
    if title:
        ax.set_title(title, fontsize=TITLE_SIZE, color=INK, loc="left", pad=8)
    _texts[ax] = f"{title.rstrip('.')}. {words}" if title else words
    return ax
