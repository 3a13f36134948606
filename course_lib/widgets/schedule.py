"""Chapter 11's explorer of schedules: the learning rate over a whole training, and where the work is done."""

from collections.abc import Callable
from itertools import pairwise

from course_lib.colors import COLORS, GRID
from course_lib.training.schedules import cosine_rate, linear_rate, noam_rate
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Explorer, Slider

TITLE = "The rate over a training"
TOTAL = 10_000  # steps of the training that is drawn
POINTS = 200  # on each curve
D_MODEL = 512
WIDTH, HEIGHT = 620, 330  # of the picture, in pixels, as are the next four
LEFT, RIGHT, TOP, BOTTOM = 70, 500, 40, 280
DASHES = {"original": "", "cosine": "9 4", "line": "2 4", "constant": "10 4 2 4"}
FLOOR_SHARE = 0.1  # of the peak, where the cosine ends, as in GPT-3

Schedule = Callable[[int, float, int], float]


def _original(step: int, peak: float, warmup: int) -> float:
    """Scale the original schedule to the peak that is wanted."""
    return peak * noam_rate(step + 1, D_MODEL, warmup) / noam_rate(warmup, D_MODEL, warmup)


SCHEDULES: dict[str, Schedule] = {
    "original": _original,
    "cosine": lambda step, peak, warmup: cosine_rate(step, TOTAL, peak, warmup, FLOOR_SHARE * peak),
    "line": lambda step, peak, warmup: linear_rate(step, TOTAL, peak, warmup),
    "constant": lambda step, peak, warmup: peak * min(1.0, step / warmup),
}


def schedule_explorer() -> Explorer:
    """Make the explorer; put it last in a cell to see it."""
    return Explorer(
        TITLE,
        {
            "peak": Choice("Peak", 1e-3, [1e-4, 3e-4, 6e-4, 1e-3, 3e-3, 1e-2]),
            "warmup": Choice("Warm-up steps", 500, [1, 50, 200, 500, 1000, 2000, 5000]),
            "step": Slider("Look at step", 2000, 0, TOTAL, step=100),
        },
        draw,
    )


def draw(peak: float, warmup: int, step: float) -> tuple[str, str]:
    """Draw four schedules with one climb and one peak, and say the rate of each at a step."""
    chosen = round(step)
    places = sorted({TOTAL * number // POINTS for number in range(POINTS + 1)} | {warmup})

    def place(at: float, rate: float) -> tuple[float, float]:
        return LEFT + (RIGHT - LEFT) * at / TOTAL, BOTTOM - (BOTTOM - TOP) * rate / (1.05 * peak)

    parts = [svg.text(LEFT - 60, 20, "learning rate", 13, weight="bold")]
    for share in (0.0, 0.5, 1.0):
        _, y = place(0, share * peak)
        parts += [
            svg.line(LEFT, y, RIGHT, y, GRID),
            svg.text(LEFT - 8, y + 4, f"{share * peak:.2g}", 11, anchor="end"),
        ]
    for at in range(0, TOTAL + 1, TOTAL // 4):
        x, y = place(at, 0)
        parts += [svg.text(x, y + 18, f"{at:,}", 11, anchor="middle")]
    parts.append(svg.text((LEFT + RIGHT) / 2, BOTTOM + 38, "step", 12, anchor="middle"))
    x, low = place(chosen, 0)
    parts.append(svg.line(x, TOP - 8, x, low, GRID, 2))
    ends = []
    for index, (name, rate) in enumerate(SCHEDULES.items()):
        points = [place(at, rate(at, peak, warmup)) for at in places]
        parts += [svg.curve(points, COLORS[index], 2, DASHES[name])]
        parts += [svg.circle(*place(chosen, rate(chosen, peak, warmup)), 4, COLORS[index])]
        ends.append((points[-1][1], name))
    parts += _names(ends)
    words = _words(peak, warmup, chosen)
    return svg.picture(WIDTH, HEIGHT, TITLE, words, *parts), words


def _names(ends: list[tuple[float, str]]) -> list[str]:
    """Write the names beside the ends of the curves, from top to bottom, none on another."""
    ordered = sorted(ends)
    heights = [height for height, _ in ordered]
    for index, (above, below) in enumerate(pairwise(range(len(heights)))):
        heights[index + 1] = max(heights[below], heights[above] + 16)
    excess = max(0.0, heights[-1] - BOTTOM - 4)
    return [
        svg.text(RIGHT + 10, height + 4 - excess, name, 12) for height, (_, name) in zip(heights, ordered, strict=True)
    ]


def _words(peak: float, warmup: int, step: int) -> str:
    """Tell the rates at a step, and the mean rate of the whole training."""
    plural = "step" if warmup == 1 else "steps"
    told = []
    for name, rate in SCHEDULES.items():
        mean = sum(rate(at, peak, warmup) for at in range(0, TOTAL, TOTAL // POINTS)) / POINTS
        told.append(f"{name} {rate(step, peak, warmup):.2g} (mean of all steps {mean / peak:.0%} of the peak)")
    return f"Peak {peak:g}, climb of {warmup:,} {plural}, {TOTAL:,} in all. At step {step:,}: {'; '.join(told)}."
