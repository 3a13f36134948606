"""Write small vector pictures: light enough to redraw at every move of a slider, crisp at any size."""

from collections.abc import Sequence
from html import escape

from course_lib.colors import INK

FONT = "font-family='system-ui, sans-serif'"


def picture(width: float, height: float, title: str, description: str, *parts: str) -> str:
    """Join parts into one SVG on white that a screen reader announces as an image with these words."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' role='img' aria-label='{escape(f'{title}. {description}')}' "
        f"viewBox='0 0 {width:g} {height:g}' width='{width:g}' style='max-width:100%;height:auto' {FONT}>"
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
        + rectangle(0, 0, width, height, "white")
        + "".join(parts)
        + "</svg>"
    )


def rectangle(x: float, y: float, width: float, height: float, fill: str, stroke: str = "none") -> str:
    """Draw a rectangle from its upper left corner."""
    return (
        f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(0, width):.1f}' height='{max(0, height):.1f}' "
        f"fill='{fill}' stroke='{stroke}'/>"
    )


def circle(x: float, y: float, radius: float, fill: str, stroke: str = INK) -> str:
    """Draw a circle around a center."""
    return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{radius:.1f}' fill='{fill}' stroke='{stroke}'/>"


def diamond(x: float, y: float, radius: float, fill: str, stroke: str = INK) -> str:
    """Draw a square that stands on a corner."""
    corners = ((x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y))
    points = " ".join(f"{across:.1f},{down:.1f}" for across, down in corners)
    return f"<polygon points='{points}' fill='{fill}' stroke='{stroke}'/>"


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, width: float = 1, dashes: str = "") -> str:
    """Draw a line; `dashes` such as "4 3" alternates drawn and empty lengths."""
    dashed = f" stroke-dasharray='{dashes}'" if dashes else ""
    return (
        f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{stroke}' "
        f"stroke-width='{width:.2f}' stroke-linecap='round'{dashed}/>"
    )


def curve(points: Sequence[tuple[float, float]], stroke: str, width: float = 1, dashes: str = "") -> str:
    """Draw a line through points; dashes run on from one piece to the next."""
    dashed = f" stroke-dasharray='{dashes}'" if dashes else ""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f"<polyline points='{places}' fill='none' stroke='{stroke}' stroke-width='{width:.2f}'{dashed}/>"


def text(
    x: float,
    y: float,
    words: str,
    size: float = 13,
    anchor: str = "start",
    weight: str = "normal",
    rim: bool = True,
) -> str:
    """Write words at a baseline; a white rim keeps them readable over lines."""
    rimmed = " stroke='white' stroke-width='3' paint-order='stroke'" if rim else ""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size:g}' text-anchor='{anchor}' font-weight='{weight}' "
        f"fill='{INK}'{rimmed}>{escape(words)}</text>"
    )
