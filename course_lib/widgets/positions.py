"""Chapter 05's explorer: how fast the pairs of an encoding turn, and what that says about distance.

The same waves serve sinusoids and rotary positions. Two equal vectors at a distance have the score Σ cos(distance ·
frequency), in one case as the product of their encodings, in the other as the product of turned vectors.
"""

import math

import numpy as np

from course_lib.colors import COLORS, GRID, INK, QUIET
from course_lib.positions import BASE, frequencies, wavelengths
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Explorer, Slider

TITLE = "Waves, and the score at a distance"
LOWEST_BASE, HIGHEST_BASE = 8.0, 2.0**20  # a million is what long-context models use
WIDTHS = (4, 8, 16, 32, 64, 128)
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
CLOCKS = 6
WIDTH, HEIGHT = 720, 430
WAVES = (76, 40, 234, 190)  # left, top, width and height of each panel, in pixels
SCORES = (400, 40, 290, 190)
CLOCK_TOP, CLOCK_RADIUS = 330, 30
POINTS = 240  # at which the curve is drawn
LONGEST_WAVE = 2 * math.pi * HIGHEST_BASE
WAVE_COLOR, SCORE_COLOR, TRAINED_COLOR = COLORS[0], COLORS[1], COLORS[2]


def position_explorer() -> Explorer:
    """Make the explorer; put it last in a cell to see it."""
    return Explorer(
        TITLE,
        {
            "base": Slider("Base", BASE, LOWEST_BASE, HIGHEST_BASE, step=0.5, logarithmic=True),
            "d_head": Choice("Width", 16, WIDTHS),
            "trained_length": Choice("Trained length", 64, LENGTHS),
            "distance": Slider("Distance", 6.0, 0.0, 256.0, step=1.0),
        },
        draw,
    )


def score(distance: float | np.ndarray, d_head: int, base: float) -> np.ndarray:
    """Return the score of two equal vectors of length 1 at a distance: the mean of cos(distance · frequency)."""
    return np.asarray(np.cos(np.multiply.outer(distance, frequencies(d_head, base))).mean(axis=-1))


def turns(d_head: int, base: float, trained_length: int) -> int:
    """Count the pairs that turn all the way round within the trained length."""
    return int((wavelengths(d_head, base) <= trained_length).sum())


def draw(base: float, d_head: int, trained_length: int, distance: float) -> tuple[str, str]:
    """Draw wavelengths beside the score's curve, with the first pairs' hands below, and say the same in words."""
    words = _words(base, d_head, trained_length, distance)
    image = svg.picture(
        WIDTH,
        HEIGHT,
        TITLE,
        words,
        *_waves(base, d_head, trained_length),
        *_scores(base, d_head, trained_length, distance),
        *_clocks(base, d_head, distance),
    )
    return image, words


def _words(base: float, d_head: int, trained_length: int, distance: float) -> str:
    waves, whole = wavelengths(d_head, base), turns(d_head, base, trained_length)
    pairs = len(waves)
    new = pairs - whole
    others = (
        "" if new == 0 else f"; the other {'one reaches' if new == 1 else f'{new} reach'} new angles in longer texts"
    )
    return (
        f"Base {base:,.0f}, {pairs} pairs: wavelengths from {waves[0]:.1f} to {waves[-1]:,.1f} positions. "
        f"Within a trained length of {trained_length}, {whole} of {pairs} pairs turn all the way round, so a model has "
        f"seen all their angles{others}. "
        f"Two equal vectors have the score 1 at distance 0, {float(score(distance, d_head, base)):.2f} at distance "
        f"{distance:.0f} and {float(score(trained_length, d_head, base)):.2f} at distance {trained_length}."
    )


def _frame(panel: tuple[int, int, int, int], title: str, below: str) -> list[str]:
    left, top, width, height = panel
    return [
        svg.text(left, top - 12, title, weight="bold"),
        svg.rectangle(left, top, width, height, "none", QUIET),
        svg.text(left + width / 2, top + height + 34, below, anchor="middle"),
    ]


def _waves(base: float, d_head: int, trained_length: int) -> list[str]:
    """Draw a dot per pair: its wavelength upward, on a logarithmic scale."""
    left, top, width, height = WAVES
    waves = wavelengths(d_head, base)
    parts = _frame(WAVES, "Wavelength of each pair", "pair")

    def down(length: float) -> float:
        return top + height * (1 - math.log10(length) / math.log10(LONGEST_WAVE))

    for power in range(0, 7, 2):
        y = down(10.0**power)
        parts += [svg.line(left, y, left + width, y, GRID), svg.text(left - 6, y + 4, f"{10**power:,}", 11, "end")]
    y = down(trained_length)
    parts.append(svg.line(left, y, left + width, y, TRAINED_COLOR, width=2, dashes="6 4"))
    parts.append(svg.text(left + width - 4, y - 6, "trained length", 12, "end"))
    for pair, length in enumerate(waves):
        x = left + width * (pair + 0.5) / len(waves)
        seen = length <= trained_length
        radius = max(2.5, min(5.0, 60 / len(waves)))
        parts.append(svg.circle(x, down(length), radius, WAVE_COLOR if seen else "white", WAVE_COLOR))
    parts.append(svg.text(left, top + height + 18, "0", 11, "middle"))
    parts.append(svg.text(left + width, top + height + 18, str(len(waves) - 1), 11, "middle"))
    return parts


def _scores(base: float, d_head: int, trained_length: int, distance: float) -> list[str]:
    """Draw the score against the distance, up to twice the trained length or just beyond the chosen distance."""
    left, top, width, height = SCORES
    reach = max(2 * trained_length, 1.1 * distance)
    parts = _frame(SCORES, "Score against distance", "distance")

    def place(at: float, value: float) -> tuple[float, float]:
        return left + width * at / reach, top + height * (1 - value) / 2

    for value in (1, 0, -1):
        parts += [svg.line(*place(0, value), *place(reach, value), GRID)]
        parts += [svg.text(left - 6, place(0, value)[1] + 4, str(value), 11, "end")]
    distances = np.linspace(0, reach, POINTS)
    curve = zip(distances, score(distances, d_head, base), strict=True)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(at, value) for at, value in curve))
    parts.append(f"<polyline points='{path}' fill='none' stroke='{SCORE_COLOR}' stroke-width='1.8'/>")
    x, _ = place(trained_length, 0)
    parts.append(svg.line(x, top, x, top + height, TRAINED_COLOR, width=2, dashes="6 4"))
    here = float(score(distance, d_head, base))
    x, y = place(distance, here)
    parts.append(svg.diamond(x, y, 7, SCORE_COLOR))
    parts.append(svg.text(min(x + 10, left + width - 40), y - 9 if y > top + 20 else y + 20, f"{here:.2f}", 12))
    parts.append(svg.text(left, top + height + 18, "0", 11, "middle"))
    parts.append(svg.text(left + width, top + height + 18, f"{reach:.0f}", 11, "middle"))
    return parts


def _clocks(base: float, d_head: int, distance: float) -> list[str]:
    """Draw the hands of some pairs, fastest to slowest, turned by the distance."""
    rates = frequencies(d_head, base)
    chosen = sorted(set(np.linspace(0, len(rates) - 1, CLOCKS).round().astype(int).tolist()))
    parts = [svg.text(WAVES[0], CLOCK_TOP - 22, f"Pairs after {distance:.0f} positions", weight="bold")]
    for column, pair in enumerate(chosen):
        x, y = WAVES[0] + CLOCK_RADIUS + 112 * column, CLOCK_TOP + CLOCK_RADIUS
        angle = distance * rates[pair]
        tip = x + 0.85 * CLOCK_RADIUS * math.cos(angle), y - 0.85 * CLOCK_RADIUS * math.sin(angle)
        parts += [
            svg.circle(x, y, CLOCK_RADIUS, "white", QUIET),
            svg.line(x, y, x + CLOCK_RADIUS, y, GRID, width=2),
            svg.line(x, y, *tip, INK, width=3),
            svg.text(x, y + CLOCK_RADIUS + 17, f"pair {pair}", 12, "middle"),
            svg.text(x, y + CLOCK_RADIUS + 32, f"{angle / (2 * math.pi):.3f} turns", 11, "middle"),
        ]
    return parts
