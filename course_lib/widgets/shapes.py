"""Chapter 02's first explorer: how the shapes flow through a layer of several heads, every axis by its name."""

from dataclasses import dataclass

from course_lib.colors import COLORS, INK, QUIET
from course_lib.multi_head import attention_parameter_count
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Explorer

TITLE = "Shapes through multi-head attention"
AXIS_COLORS = {
    "batch": "#e8e8e8",
    "heads": COLORS[4],
    "sequence": COLORS[5],
    "query": COLORS[5],
    "key": COLORS[5],
    "d_head": COLORS[3],
    "d_model": COLORS[3],
}
ROW, LABEL_LEFT, BOX_LEFT, BOX_WIDTH, BOX_HEIGHT, GAP = 52, 12, 250, 96, 34, 8


@dataclass(frozen=True)
class Stage:
    """One tensor on the way: what made it, and its axes by name with their sizes."""

    made_by: str
    axes: dict[str, int]

    def words(self) -> str:
        """Tell the stage in a line."""
        return f"{self.made_by}: {', '.join(f'{name} {size}' for name, size in self.axes.items())}"


def shape_flow_explorer() -> Explorer:
    """Make the explorer; put it last in a cell to see it."""
    return Explorer(
        TITLE,
        {
            "batch": Choice("Batch", 2, range(1, 9)),
            "sequence": Choice("Sequence", 5, range(1, 17)),
            "heads": Choice("Heads", 3, range(1, 13)),
            "d_head": Choice("Features of a head", 4, [1, 2, 4, 8, 16, 32, 64, 128]),
        },
        draw,
    )


def stages(batch: int, sequence: int, heads: int, d_head: int) -> list[Stage]:
    """List the tensors of self-attention from the input to the output."""
    tokens = {"batch": batch, "sequence": sequence, "d_model": heads * d_head}
    split = {"batch": batch, "heads": heads, "sequence": sequence, "d_head": d_head}
    return [
        Stage("input x", tokens),
        Stage("times w_q, w_k or w_v", tokens),
        Stage("cut the last axis in two", {"batch": batch, "sequence": sequence, "heads": heads, "d_head": d_head}),
        Stage("swap sequence and heads", split),
        Stage("query times keyᵀ, softmax", {"batch": batch, "heads": heads, "query": sequence, "key": sequence}),
        Stage("weights times value", split),
        Stage("swap back, join the two", tokens),
        Stage("times w_o", tokens),
    ]


def draw(batch: int, sequence: int, heads: int, d_head: int) -> tuple[str, str]:
    """Draw the stages one below the other, each axis a box with its name and size, and say the same in words."""
    flow = stages(batch, sequence, heads, d_head)
    parameters = attention_parameter_count(heads * d_head, heads)
    words = ". ".join(stage.words() for stage in flow) + f". The layer has {parameters:,} parameters."
    parts = []
    for row, stage in enumerate(flow):
        top = 14 + row * ROW
        parts.append(svg.text(LABEL_LEFT, top + 22, stage.made_by))
        if row:
            middle = LABEL_LEFT + 100
            parts.append(svg.line(middle, top - 16, middle, top + 5, QUIET, width=1.5))
            parts.append(svg.text(middle, top + 8, "▾", anchor="middle", rim=False))
        for column, (name, size) in enumerate(stage.axes.items()):
            left = BOX_LEFT + column * (BOX_WIDTH + GAP)
            parts.append(svg.rectangle(left, top, BOX_WIDTH, BOX_HEIGHT, AXIS_COLORS[name], INK))
            parts.append(svg.text(left + BOX_WIDTH / 2, top + 22, f"{name} {size}", anchor="middle", rim=False))
    width = BOX_LEFT + 4 * (BOX_WIDTH + GAP) + 8
    return svg.picture(width, 14 + len(flow) * ROW, TITLE, words, *parts), words
