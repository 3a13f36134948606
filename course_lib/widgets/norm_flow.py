"""A drawing of one residual step in both orders: what lies on the skip path is the whole difference."""

from IPython.core.getipython import get_ipython
from IPython.display import display

from course_lib.colors import COLORS, INK, QUIET
from course_lib.widgets import svg

TITLE = "One step, two orders"
WORDS = (
    "Two ways from x, at the bottom, to the output, at the top. Post-norm: x branches into the sublayer and the skip "
    "path; both meet in a sum; the sum goes through the norm. So the norm lies on the skip path. Pre-norm: x branches "
    "into the skip path and a branch that goes through the norm and then the sublayer; both meet in a sum, which is "
    "the output. So nothing lies on the skip path but the sum."
)
ORDERS = {"post-norm": ("sublayer", "sum", "norm"), "pre-norm": ("norm", "sublayer", "sum")}
FORMULAS = {"post-norm": "norm(x + sublayer(x))", "pre-norm": "x + sublayer(norm(x))"}
WIDTH, HEIGHT, LEVEL, TOP, BOX = 560, 330, 62, 78, (104, 34)  # of the picture, in pixels
SKIP_COLOR = COLORS[1]
FILLS = {"norm": COLORS[4], "sublayer": COLORS[5]}


def show_norm_flow() -> None:
    """Put the drawing into the notebook; outside a notebook print its words."""
    text = f"{TITLE}. {WORDS}"
    if get_ipython() is None:
        print(text)
    else:
        display({"text/html": norm_flow(), "text/plain": text}, raw=True)


def norm_flow() -> str:
    """Draw both orders side by side."""
    parts = [part for index, order in enumerate(ORDERS) for part in _column(150 + 260 * index, order)]
    return svg.picture(WIDTH, HEIGHT, TITLE, WORDS, *parts)


def _column(x: float, order: str) -> list[str]:
    bottom, heights = TOP + 3 * LEVEL + 14, {}
    for level, name in enumerate(ORDERS[order]):
        heights[name] = TOP + (2 - level) * LEVEL
    joint, fork = heights["sum"], bottom - 12
    side = x - 88
    parts = [
        svg.text(x, 24, order, size=15, anchor="middle", weight="bold"),
        svg.text(x, 42, FORMULAS[order], anchor="middle"),
        svg.line(x, bottom + 6, x, TOP - 22, QUIET, width=2),
        svg.line(x, fork, side, fork, SKIP_COLOR, width=4),
        svg.line(side, fork, side, joint, SKIP_COLOR, width=4),
        svg.line(side, joint, x, joint, SKIP_COLOR, width=4),
        svg.line(x, joint, x, TOP - 22, SKIP_COLOR, width=4),
        svg.text(side - 8, (fork + joint) / 2, "skip", anchor="end"),
        svg.text(x, bottom + 24, "x", size=15, anchor="middle", weight="bold"),
    ]
    for name, y in heights.items():
        parts += _node(x, y, name)
    return parts


def _node(x: float, y: float, name: str) -> list[str]:
    if name == "sum":
        return [svg.circle(x, y, 13, "white"), svg.text(x, y + 6, "+", size=19, anchor="middle", rim=False)]
    width, height = BOX
    return [
        svg.rectangle(x - width / 2, y - height / 2, width, height, FILLS[name], INK),
        svg.text(x, y + 5, name, anchor="middle", weight="bold", rim=False),
    ]
