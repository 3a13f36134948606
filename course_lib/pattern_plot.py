"""Draw sparse patterns and what they reach after several layers, side by side, with words for each."""

from collections.abc import Mapping, Sequence

from jaxtyping import Bool
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.colors import COLORS, INK, QUIET
from course_lib.efficient.sparse import receptive_field, visible_per_row
from course_lib.words import counted

SIDE = 1.45  # inches of one picture
DPI = 110
TEXT_SIZE = 9
SHADES = ListedColormap(["#f2f2f2", COLORS[0]])


def pattern_gallery(patterns: Mapping[str, Bool[Tensor, "token token"]], layers: Sequence[int]) -> tuple[Figure, str]:
    """Draw a column for each pattern and a row for each number of layers; return the figure and its words.

    A dark cell says that the output in its row depends on the input in its column.

    Raises:
        ValueError: there is no pattern or no number of layers.
    """
    if not patterns or not layers:
        raise ValueError(f"A gallery needs patterns and layers, got {len(patterns)} and {len(layers)} of them.")
    size = (SIDE * len(patterns) + 0.6, SIDE * len(layers) + 0.6)
    figure = Figure(figsize=size, dpi=DPI, facecolor="white")
    axes = figure.subplots(len(layers), len(patterns), squeeze=False, gridspec_kw={"wspace": 0.12, "hspace": 0.12})
    told = []
    for column, (name, mask) in enumerate(patterns.items()):
        shares = []
        for row, depth in enumerate(layers):
            field = receptive_field(mask, depth)
            shares.append(f"{field.float().mean().item():.0%} after {counted(depth, 'layer', 'layers')}")
            ax = axes[row][column]
            ax.imshow(field.numpy(), cmap=SHADES, vmin=0, vmax=1, interpolation="nearest")
            ax.set_xticks([])
            ax.set_yticks([])
            ax.spines[:].set_color(QUIET)
            if column == 0:
                ax.set_ylabel(counted(depth, "layer", "layers"), fontsize=TEXT_SIZE, color=INK)
        keys = visible_per_row(mask)
        axes[0][column].set_title(f"{name}\n{keys:.1f} keys a query", fontsize=TEXT_SIZE, color=INK)
        told.append(f"{name}: {keys:.1f} keys a query, {', '.join(shares)}")
    count = len(next(iter(patterns.values())))
    words = f"Which of {count} outputs depend on which inputs, as a share of all pairs. {'. '.join(told)}."
    return figure, words
