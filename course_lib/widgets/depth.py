"""Chapter 03's explorer: four kinds of deep stack, and what becomes of gradients and tokens inside them."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from course_lib.colors import COLORS, GRID, INK
from course_lib.models.deep_signals import Signals, measure_signals
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Explorer, Slider

TITLE = "Through a deep stack that has not been trained"
KINDS = ("pre-norm", "post-norm", "no skip", "no norm")
STYLES = {"pre-norm": "", "post-norm": "9 4", "no skip": "2 4", "no norm": "10 4 2 4"}
SHOWN = {
    "gradient": ("gradients", "gradient at the input of a block, where the readout's own is 1"),
    "size": ("sizes", "size of the stream: root mean square of its entries"),
    "variety": ("varieties", "variety: the share of the tokens that is not common to all of them"),
}
WIDTH, HEIGHT = 700, 360  # of the picture, in pixels, as are the next four
LEFT, RIGHT, TOP, BOTTOM = 62, 520, 40, 305
LABEL_HEIGHT = 16
LOWEST, HIGHEST = 1e-8, 1e12  # float32 noise below, a stack beyond repair above
MOST_GRID_LINES = 8
REMEMBERED = 256  # settings whose measurement is kept


def depth_explorer() -> Explorer:
    """Make the explorer; put it last in a cell to see it."""
    return Explorer(
        TITLE,
        {
            "num_layers": Choice("Blocks", 24, [1, 2, 4, 6, 8, 12, 16, 24, 32, 48]),
            "factor": Slider("Weights, times", 1.0, 0.25, 4.0, step=0.25, logarithmic=True),
            "shown": Choice("Show", "gradient", list(SHOWN)),
        },
        draw,
    )


@lru_cache(maxsize=REMEMBERED)
def signals(kind: str, num_layers: int, factor: float) -> Signals:
    """Measure once for each setting."""
    return measure_signals(kind, num_layers, factor)


def draw(num_layers: int, factor: float, shown: str) -> tuple[str, str]:
    """Draw one curve for each kind of stack over the depth, and say where each begins and ends."""
    attribute, meaning = SHOWN[shown]
    curves = {kind: getattr(signals(kind, num_layers, factor), attribute) for kind in KINDS}
    words = _words(num_layers, factor, meaning, curves)
    low, high = _decades(curves)
    parts = [svg.text(LEFT - 50, 22, meaning[:1].upper() + meaning[1:], size=13, weight="bold")]
    parts += _grid(low, high, num_layers)
    parts += [_curve(kind, numbers, low, high) for kind, numbers in curves.items()]
    parts += _labels(curves, low, high)
    return svg.picture(WIDTH, HEIGHT, TITLE, words, *parts), words


def _words(num_layers: int, factor: float, meaning: str, curves: Mapping[str, Sequence[float]]) -> str:
    told = "; ".join(f"{kind} {_number(numbers[0])} and {_number(numbers[-1])}" for kind, numbers in curves.items())
    plural = "block" if num_layers == 1 else "blocks"
    return (
        f"{num_layers} {plural}, weights times {factor:.3g}. {meaning[:1].upper()}{meaning[1:]}. "
        f"At the first block's input and at the last one's output: {told}."
    )


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "overflow"
    return f"below {LOWEST:.0e}" if value < LOWEST else f"{value:.2g}"


def _decades(curves: Mapping[str, Sequence[float]]) -> tuple[int, int]:
    """Choose the powers of ten between which everything that can be drawn lies."""
    logs = [math.log10(number) for numbers in curves.values() for number in map(_inside, numbers) if number]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    return low, max(high, low + 1)


def _inside(number: float) -> float | None:
    """Move a number into the range of the picture; None for what is not finite."""
    return min(max(number, LOWEST), HIGHEST) if math.isfinite(number) else None


def _grid(low: int, high: int, num_layers: int) -> list[str]:
    stride = math.ceil((high - low) / MOST_GRID_LINES)
    parts = []
    for power in range(low, high + 1, stride):
        y = _y(10.0**power, low, high)
        name = f"{10.0**power:g}" if abs(power) < 4 else f"1e{power}"
        parts += [svg.line(LEFT, y, RIGHT, y, GRID), svg.text(LEFT - 8, y + 4, name, size=12, anchor="end")]
    for place in sorted({0, num_layers // 2, num_layers}):
        x = LEFT + (RIGHT - LEFT) * place / num_layers
        parts += [
            svg.line(x, BOTTOM, x, BOTTOM + 5, INK),
            svg.text(x, BOTTOM + 20, str(place), size=12, anchor="middle"),
        ]
    middle = (LEFT + RIGHT) / 2
    return [*parts, svg.text(middle, BOTTOM + 42, "blocks that the stream has passed", anchor="middle")]


def _y(number: float, low: int, high: int) -> float:
    return BOTTOM - (BOTTOM - TOP) * (math.log10(number) - low) / (high - low)


def _points(numbers: Sequence[float], low: int, high: int) -> list[tuple[float, float]]:
    """Place the numbers from the left up to the first that is not finite; gradients overflow from the right."""
    inside = [_inside(number) for number in numbers]
    step = (RIGHT - LEFT) / (len(numbers) - 1)
    return [(LEFT + step * place, _y(number, low, high)) for place, number in enumerate(inside) if number is not None]


def _curve(kind: str, numbers: Sequence[float], low: int, high: int) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _points(numbers, low, high))
    dashes = f" stroke-dasharray='{STYLES[kind]}'" if STYLES[kind] else ""
    return f"<polyline points='{points}' fill='none' stroke='{_color(kind)}' stroke-width='2.5'{dashes}/>"


def _labels(curves: Mapping[str, Sequence[float]], low: int, high: int) -> list[str]:
    """Write each name beside its curve's end, pushed apart where two would overlap, on a short line to it."""
    ends = {kind: _points(numbers, low, high)[-1] for kind, numbers in curves.items()}
    heights: dict[str, float] = {}
    free_above = BOTTOM + LABEL_HEIGHT
    for kind, (_, y) in sorted(ends.items(), key=lambda item: -item[1][1]):
        heights[kind] = free_above = min(y, free_above - LABEL_HEIGHT)
    parts = []
    for kind, (x, y) in ends.items():
        finite = all(math.isfinite(number) for number in curves[kind])
        name = kind if finite else f"{kind} (overflow)"
        parts.append(svg.line(x + 2, y, RIGHT + 16, heights[kind], _color(kind), width=1))
        parts.append(svg.text(RIGHT + 20, heights[kind] + 4, name))
    return parts


def _color(kind: str) -> str:
    return COLORS[KINDS.index(kind)]
