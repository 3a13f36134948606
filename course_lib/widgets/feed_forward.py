"""Chapter 04's explorer: a network of one number, whose hidden units bend a line into a curve, or fail to."""

import numpy as np

from course_lib.colors import COLORS, GRID, INK, QUIET
from course_lib.feed_forward import gelu, relu
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Explorer, Slider

TITLE = "Hidden units bend a line"
REACH, PLACES = 3.0, 121  # tokens from -REACH to REACH
GRID_POINTS = np.linspace(-REACH, REACH, PLACES)
TARGETS = {
    "wave": np.sin(2 * GRID_POINTS),
    "step": np.sign(GRID_POINTS),
    "hat": 2 * np.maximum(0, 1 - np.abs(GRID_POINTS)) - 0.5,
}
ACTIVATIONS = {"ReLU": relu, "GELU": gelu, "none": lambda x: x}
SILENT = 1e-12  # a unit that is never above it says nothing
RIDGE = 1e-6  # keeps the weights of units that say the same small
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 645, 340, 45, 415, 20, 300  # of the picture and the curves, in pixels
BARS_LEFT, BARS_WIDTH = 465, 165
HIGHEST = 1.7  # the curves are drawn from -HIGHEST to HIGHEST
TARGET_COLOR, NETWORK_COLOR, UNIT_COLOR = COLORS[0], COLORS[1], COLORS[5]


def feed_forward_explorer() -> Explorer:
    """Make the explorer; put it last in a cell to see it."""
    return Explorer(
        TITLE,
        {
            "target": Choice("Curve to draw", "wave", list(TARGETS)),
            "units": Choice("Hidden units", 8, [1, 2, 4, 8, 16, 32]),
            "activation": Choice("Activation", "ReLU", list(ACTIVATIONS)),
            "shift": Slider("Added to biases", 0.0, -7.0, 2.0, step=0.25),
            "token": Slider("Token x", 0.5, -REACH, REACH),
        },
        draw,
    )


def hidden(x: np.ndarray, units: int, activation: str, shift: float) -> np.ndarray:
    """Return the hidden units (place, unit): they look right and left by turns, from places spread evenly."""
    directions = np.where(np.arange(units) % 2 == 0, 1.0, -1.0)
    kinks = (np.arange(units) + 0.5) / units * 2 * REACH - REACH
    return ACTIVATIONS[activation](x[:, None] * directions - directions * kinks + shift)


def fit(target: str, units: int, activation: str, shift: float) -> tuple[np.ndarray, float]:
    """Choose the second layer by least squares; return its weights, bias last, and the error that remains.

    The error is the standard deviation of what is missed over that of the target: 1 is no better than a constant.
    """
    says = hidden(GRID_POINTS, units, activation, shift)
    columns = np.concatenate([says, np.ones((PLACES, 1))], axis=1)
    wanted = TARGETS[target]
    weights = np.linalg.solve(columns.T @ columns + RIDGE * np.eye(units + 1), columns.T @ wanted)
    return weights, float(np.std(wanted - columns @ weights) / np.std(wanted))


def draw(target: str, units: int, activation: str, shift: float, token: float) -> tuple[str, str]:
    """Draw target, network and the units' shares of it, with the units at one token beside them, and tell it."""
    weights, error = fit(target, units, activation, shift)
    curves = hidden(GRID_POINTS, units, activation, shift)
    at_token = hidden(np.array([token]), units, activation, shift)[0]
    output = float(at_token @ weights[:-1] + weights[-1])
    words = _words(target, units, activation, shift, token, error, curves, at_token, output)
    parts = _curves(target, curves, weights, token, output) + _bars(at_token, token, error)
    return svg.picture(WIDTH, HEIGHT, TITLE, words, *parts), words


def _words(target, units, activation, shift, token, error, curves, at_token, output) -> str:
    kind = "linear units, no activation," if activation == "none" else f"{activation} unit{'s' * (units > 1)}"
    dead = int((np.abs(curves).max(axis=0) <= SILENT).sum())
    active = int((at_token > 0).sum())
    return (
        f"{units} {kind} on the {target}, {shift:+.2f} added to every bias. "
        f"Error {error:.2f} (1 is no better than a constant). "
        f"At x = {token:.1f} the network gives {output:.2f}, and {active} of {units} hidden units are above 0. "
        f"{dead} of {units} are dead: 0 at every token."
    )


def _curves(target: str, curves: np.ndarray, weights: np.ndarray, token: float, output: float) -> list[str]:
    parts = [
        svg.rectangle(LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP, "none", QUIET),
        svg.line(LEFT, _down(0), RIGHT, _down(0), GRID),
    ]
    lines = [_polyline(share, UNIT_COLOR, 1) for share in (curves * weights[:-1]).T]
    lines.append(_polyline(TARGETS[target], TARGET_COLOR, 2.5, "6 4"))
    lines.append(_polyline(curves @ weights[:-1] + weights[-1], NETWORK_COLOR, 2.5))
    parts.append(_window(lines))
    parts.append(svg.line(_across(token), TOP, _across(token), BOTTOM, INK, dashes="2 3"))
    parts.append(svg.circle(_across(token), _down(min(max(output, -HIGHEST), HIGHEST)), 5, NETWORK_COLOR))
    legend = (
        (target, TARGET_COLOR, "6 4", 2.5),
        ("network", NETWORK_COLOR, "", 2.5),
        ("each unit's share", UNIT_COLOR, "", 1),
    )
    for place, (name, color, dashes, width) in enumerate(legend):
        left = LEFT + 120 * place
        parts.append(svg.line(left, HEIGHT - 14, left + 26, HEIGHT - 14, color, width, dashes))
        parts.append(svg.text(left + 32, HEIGHT - 10, name, size=12))
    return parts


def _bars(at_token: np.ndarray, token: float, error: float) -> list[str]:
    parts = [svg.text(BARS_LEFT, TOP + 10, f"Hidden units at x = {token:.1f}", weight="bold")]
    space = 190 / len(at_token)
    most = max(1.0, float(np.abs(at_token).max()))
    middle = BARS_LEFT + BARS_WIDTH / 2
    for unit, value in enumerate(at_token):
        length = BARS_WIDTH / 2 * abs(value) / most
        top = TOP + 24 + unit * space
        parts.append(svg.rectangle(middle - length * (value < 0), top, length, 0.8 * space, UNIT_COLOR, INK))
    parts.append(svg.line(middle, TOP + 20, middle, TOP + 218, INK))
    parts.append(svg.text(BARS_LEFT, 262, "Error", weight="bold"))
    parts.append(svg.rectangle(BARS_LEFT, 272, BARS_WIDTH, 20, "none", GRID))
    parts.append(svg.rectangle(BARS_LEFT, 272, BARS_WIDTH * min(1.0, error), 20, COLORS[4], INK))
    parts.append(svg.text(BARS_LEFT + 50, 262, f"{error:.2f}"))
    return parts


def _window(lines: list[str]) -> str:
    """Cut off what leaves the frame: an SVG inside an SVG does so by itself."""
    width, height = RIGHT - LEFT, BOTTOM - TOP
    frame = f"x='{LEFT}' y='{TOP}' width='{width}' height='{height}' viewBox='{LEFT} {TOP} {width} {height}'"
    return f"<svg {frame}>{''.join(lines)}</svg>"


def _polyline(values: np.ndarray, stroke: str, width: float, dashes: str = "") -> str:
    points = " ".join(f"{_across(x):.1f},{_down(y):.1f}" for x, y in zip(GRID_POINTS, values, strict=True))
    dashed = f" stroke-dasharray='{dashes}'" if dashes else ""
    return f"<polyline points='{points}' fill='none' stroke='{stroke}' stroke-width='{width:g}'{dashed}/>"


def _across(x: float) -> float:
    return LEFT + (x + REACH) / (2 * REACH) * (RIGHT - LEFT)


def _down(y: float) -> float:
    return BOTTOM - (y + HIGHEST) / (2 * HIGHEST) * (BOTTOM - TOP)
