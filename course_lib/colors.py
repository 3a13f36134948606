"""Colors that stay apart for every reader, and the contrast that text needs."""

import numpy as np
from matplotlib.colors import to_rgb

# Source: Okabe and Ito 2002, "Color Universal Design". They stay apart in every kind of color vision.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK, GRID, QUIET = "#222222", "#d9d9d9", "#767676"
LEAST_CONTRAST = 4.5  # for text, WCAG 2.1, criterion 1.4.3

Color = str | tuple[float, float, float] | tuple[float, float, float, float]


def contrast(first: Color, second: Color) -> float:
    """Compute the contrast ratio of two colors, from 1 to 21.

    Source: WCAG 2.1, definition of "contrast ratio".
    """
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def readable_ink(background: Color) -> str:
    """Choose black or white text, whichever contrasts more with a background color."""
    return "black" if contrast("black", background) >= contrast("white", background) else "white"


def _luminance(color: Color) -> float:
    """Compute the relative luminance of an sRGB color; the constants are those of WCAG 2.1."""
    channels = np.array(to_rgb(color))
    linear = np.where(channels <= 0.03928, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))
