"""Chapter 01's explorer: move a query among five keys and watch weights, entropy and output follow."""

import math

import numpy as np

from course_lib.attention import attention_with_temperature
from course_lib.colors import COLORS, GRID, INK, QUIET
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Explorer, Slider, Toggle

KEYS = {"A": (1.7, 0.9), "B": (-0.6, 1.8), "C": (-1.8, -0.4), "D": (0.3, -1.7), "E": (0.7, 0.4)}
TITLE = "A query among five keys"
REACH = 2.5  # the plane shows coordinates from -REACH to REACH
SIDE, BARS_LEFT, BARS_WIDTH, WIDTH, HEIGHT = 330, 395, 150, 645, 340  # of the picture, in pixels
QUERY_COLOR, OUTPUT_COLOR, KEY_COLOR = COLORS[1], COLORS[2], COLORS[5]


def attention_explorer() -> Explorer:
    """Make the explorer; put it last in a cell to see it."""
    return Explorer(
        TITLE,
        {
            "query_x": Slider("Query, across", 1.0, -REACH, REACH),
            "query_y": Slider("Query, up", 1.2, -REACH, REACH),
            "temperature": Slider("Temperature", 1.0, 0.125, 8.0, step=0.25, logarithmic=True),
            "d_k": Choice("Width d_k", 64, [2**power for power in range(1, 11)]),
            "divide": Toggle("divide scores by √d_k", True),
        },
        draw,
    )


def attend(
    query_x: float, query_y: float, temperature: float, d_k: int, divide: bool
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return weights, output and entropy (in nats) of one query; each key's value is its own place.

    The plane stands for d_k features with independent entries: their scores spread √(d_k / 2) times as wide as
    those of two features. Dividing by √d_k undoes exactly that; not dividing equals a temperature √d_k times
    lower.
    """
    places = np.array(list(KEYS.values()))
    effective = temperature if divide else temperature / math.sqrt(d_k)
    query = np.array([[query_x, query_y]])
    output, weights = attention_with_temperature(query, places, places, effective)
    positive = weights[weights > 0]
    return weights[0], output[0], max(0.0, float(-(positive * np.log(positive)).sum()))


def draw(query_x: float, query_y: float, temperature: float, d_k: int, divide: bool) -> tuple[str, str]:
    """Draw the plane with query, keys and output beside the bars of weights, and say the same in words."""
    weights, output, entropy = attend(query_x, query_y, temperature, d_k, divide)
    words = _words((query_x, query_y), temperature, d_k, divide, weights, output, entropy)
    image = svg.picture(
        WIDTH, HEIGHT, TITLE, words, *_plane((query_x, query_y), weights, output), *_bars(weights, entropy)
    )
    return image, words


def _words(query, temperature, d_k, divide, weights, output, entropy) -> str:
    told = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(KEYS, weights, strict=True))
    scale = "scores divided by" if divide else "scores not divided by"
    return (
        f"Query at ({query[0]:.1f}, {query[1]:.1f}), temperature {temperature:.3g}, {scale} √{d_k}. "
        f"Weights: {told}. Most on {list(KEYS)[int(weights.argmax())]}. "
        f"Entropy {entropy:.2f} of at most {math.log(len(KEYS)):.2f} nats. "
        f"Output at ({output[0]:.2f}, {output[1]:.2f})."
    )


def _plane(query, weights: np.ndarray, output: np.ndarray) -> list[str]:
    middle = svg.line(*_pixel((-REACH, 0)), *_pixel((REACH, 0)), GRID)
    middle += svg.line(*_pixel((0, -REACH)), *_pixel((0, REACH)), GRID)
    corner = _pixel((-REACH, REACH))
    parts = [svg.rectangle(*corner, SIDE - 20, SIDE - 20, "none", QUIET), middle]
    for place, weight in zip(KEYS.values(), weights, strict=True):
        parts.append(svg.line(*_pixel(query), *_pixel(place), KEY_COLOR, width=0.4 + 7 * weight))
    for (name, place), weight in zip(KEYS.items(), weights, strict=True):
        x, y = _pixel(place)
        parts.append(svg.circle(x, y, 10 + 10 * math.sqrt(weight), KEY_COLOR))
        parts.append(svg.text(x, y + 5, name, anchor="middle", weight="bold", rim=False))
    parts.append(svg.line(*_pixel((0, 0)), *_pixel(query), QUERY_COLOR, width=2, dashes="5 4"))
    x, y = _pixel(query)
    parts.append(svg.rectangle(x - 6, y - 6, 12, 12, QUERY_COLOR, INK))
    parts.append(_above(x, y, "query"))
    x, y = _pixel(output)
    parts.append(svg.diamond(x, y, 9, OUTPUT_COLOR))
    parts.append(_left(x, y, "output"))
    return parts


def _bars(weights: np.ndarray, entropy: float) -> list[str]:
    parts = [svg.text(BARS_LEFT - 25, 30, "Weights", weight="bold")]
    for row, (name, weight) in enumerate(zip(KEYS, weights, strict=True)):
        parts += _bar(50 + 34 * row, name, weight, f"{weight:.2f}", KEY_COLOR)
    most = math.log(len(KEYS))
    parts.append(svg.text(BARS_LEFT - 25, 260, "Entropy, in nats", weight="bold"))
    return parts + _bar(280, "", entropy / most, f"{entropy:.2f} of {most:.2f}", COLORS[4])


def _bar(top: float, name: str, fraction: float, number: str, color: str) -> list[str]:
    return [
        svg.text(BARS_LEFT - 12, top + 17, name, anchor="end"),
        svg.rectangle(BARS_LEFT, top, BARS_WIDTH, 22, "none", GRID),
        svg.rectangle(BARS_LEFT, top, BARS_WIDTH * fraction, 22, color, INK),
        svg.text(BARS_LEFT + BARS_WIDTH + 6, top + 16, number),
    ]


def _above(x: float, y: float, words: str) -> str:
    """Write a label above a point, or below it at the upper edge."""
    return svg.text(min(max(x, 45), SIDE - 35), y - 12 if y > 45 else y + 24, words, anchor="middle")


def _left(x: float, y: float, words: str) -> str:
    """Write a label left of a point, or right of it at the left edge."""
    return svg.text(x - 14, y + 5, words, anchor="end") if x > 90 else svg.text(x + 14, y + 5, words)


def _pixel(place) -> tuple[float, float]:
    scale = (SIDE - 20) / (2 * REACH)
    return 15 + (place[0] + REACH) * scale, 15 + (REACH - place[1]) * scale
