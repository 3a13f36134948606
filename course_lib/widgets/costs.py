"""Chapter 07's explorer: what a stack of blocks costs, and this machine's own measurements on the predicted line."""

import itertools
import math
from collections.abc import Mapping, Sequence

from course_lib.colors import COLORS, GRID, INK, QUIET
from course_lib.costs import (
    attention_matrix_bytes,
    block_flops,
    block_flops_by_part,
    block_parameter_count,
    crossover_length,
    kv_cache_bytes,
)
from course_lib.measurement import seconds_text
from course_lib.memory import bytes_text
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Explorer

TITLE = "What a stack of blocks costs"
LENGTHS = tuple(2**power for power in range(4, 18))
WIDTHS = (64, 128, 256, 512, 768, 1024, 2048, 4096, 8192)
LAYERS = (1, 2, 4, 6, 12, 24, 32, 48, 96)
HEADS = (1, 2, 4, 8, 16, 32, 64)  # each divides every width
WIDENING = 4  # d_ff over d_model, as usual
FLOAT32_BYTES = 4
ASSUMED_RATE = 2e10  # FLOPs per second, where nothing was measured
WIDTH, HEIGHT = 700, 372  # of the picture, in pixels
BAR_LEFT, BAR_WIDTH, BAR_HEIGHT = 12, 330, 30
CHART_LEFT, CHART_RIGHT, CHART_TOP, CHART_BOTTOM = 425, 680, 44, 300
PART_COLORS = (COLORS[5], COLORS[4], COLORS[3])  # light enough for dark letters
LETTER = 7.2  # pixels per letter of a label

Measured = Mapping[tuple[int, int], float]  # seconds of one block, by (d_model, sequence)
Part = tuple[str, int]


def costs_explorer(measured: Measured | None = None) -> Explorer:
    """Make the explorer; put it last in a cell to see it.

    Args:
        measured: seconds that one block took, by (d_model, sequence); they become dots beside the predicted line.
    """
    dots = dict(measured or {})
    rate = best_rate(dots)
    width = min((d_model for d_model, _ in dots), default=256)
    return Explorer(
        TITLE,
        {
            "sequence": Choice("Tokens n", 512, LENGTHS),
            "d_model": Choice("Width d", width, WIDTHS),
            "layers": Choice("Layers", 1, LAYERS),
            "heads": Choice("Heads", 4, HEADS),
        },
        lambda **values: draw(**values, measured=dots, rate=rate),
    )


def best_rate(measured: Measured) -> float:
    """Return the most FLOPs per second that any measurement reached; the predicted line assumes it everywhere."""
    reached = [
        block_flops(sequence, d_model, WIDENING * d_model) / seconds
        for (d_model, sequence), seconds in measured.items()
    ]
    return max(reached, default=ASSUMED_RATE)


def cost_bars(sequence: int, d_model: int, layers: int, heads: int) -> dict[str, list[Part]]:
    """Return for each kind of cost the parts that it is made of, for one sequence."""
    d_ff = WIDENING * d_model
    flops = block_flops_by_part(sequence, d_model, d_ff)
    attention, feed_forward = 4 * d_model * d_model, 2 * d_model * d_ff
    parameters = block_parameter_count(d_model, d_ff)
    return {
        "parameters": [
            ("attention", layers * attention),
            ("feed-forward", layers * feed_forward),
            ("biases, norms", layers * (parameters - attention - feed_forward)),
        ],
        "FLOPs of a forward pass": [
            ("projections", layers * flops.projections),
            ("n × n products", layers * flops.attention),
            ("feed-forward", layers * flops.feed_forward),
        ],
        "bytes in float32": [
            ("weights", layers * parameters * FLOAT32_BYTES),
            ("n × n maps", layers * attention_matrix_bytes(1, heads, sequence, FLOAT32_BYTES)),
            ("keys, values", kv_cache_bytes(layers, heads, d_model // heads, sequence, itemsize=FLOAT32_BYTES)),
        ],
    }


def draw(
    sequence: int, d_model: int, layers: int, heads: int, measured: Measured | None = None, rate: float = ASSUMED_RATE
) -> tuple[str, str]:
    """Draw three bars of costs beside the predicted seconds over the length, and say the same in words."""
    bars = cost_bars(sequence, d_model, layers, heads)
    dots = {n: layers * seconds for (width, n), seconds in (measured or {}).items() if width == d_model}
    words = _words(bars, sequence, d_model, layers, heads, dots, rate, bool(measured))
    parts: list[str] = []
    for row, (name, pieces) in enumerate(bars.items()):
        parts += _bar(24 + 116 * row, name, pieces)
    parts += _chart(sequence, d_model, layers, dots, rate)
    return svg.picture(WIDTH, HEIGHT, TITLE, words, *parts), words


def predicted_seconds(sequence: int, d_model: int, layers: int, rate: float) -> float:
    """Predict the seconds of a forward pass from its FLOPs alone."""
    return layers * block_flops(sequence, d_model, WIDENING * d_model) / rate


def _words(bars, sequence, d_model, layers, heads, dots, rate, any_measured) -> str:
    told = [
        f"{layers} layer{'s' * (layers > 1)} of width {d_model} with {heads} head{'s' * (heads > 1)} on "
        f"{sequence} tokens."
    ]
    for name, pieces in bars.items():
        shares = ", ".join(f"{part} {_percent(amount, pieces)}" for part, amount in pieces)
        told.append(f"{name[:1].upper()}{name[1:]}: {_amount(name, pieces)} ({shares}).")
    told.append(f"The n × n products outweigh all else from {crossover_length(d_model, WIDENING * d_model)} tokens on.")
    source = "the best rate measured" if any_measured else "an assumed rate"
    seconds = predicted_seconds(sequence, d_model, layers, rate)
    told.append(f"Predicted at {source}, {rate / 1e9:.3g} billion FLOPs a second: {seconds_text(seconds)}.")
    if sequence in dots:
        ratio = dots[sequence] / seconds
        told.append(f"Measured: {seconds_text(dots[sequence])}, {ratio:.2g} times as long.")
    elif dots:
        told.append(f"Measured at this width: {len(dots)} lengths from {min(dots)} to {max(dots)}.")
    else:
        told.append("Nothing was measured at this width.")
    return " ".join(told)


def _amount(name: str, pieces: Sequence[Part]) -> str:
    total = sum(amount for _, amount in pieces)
    return bytes_text(total) if name.startswith("bytes") else _short(total)


def _short(number: float) -> str:
    for name, size in (
        ("quadrillion", 1e15),
        ("trillion", 1e12),
        ("billion", 1e9),
        ("million", 1e6),
        ("thousand", 1e3),
    ):
        if number >= size:
            return f"{number / size:.3g} {name}"
    return f"{number:.3g}"


def _percent(amount: int, pieces: Sequence[Part]) -> str:
    share = 100 * amount / sum(other for _, other in pieces)
    return f"{share:.0f} %" if share >= 1 or share == 0 else "below 1 %"


def _bar(top: float, name: str, pieces: Sequence[Part]) -> list[str]:
    """Draw one bar as wide as all others: its parts are shares, its total is written above."""
    total = sum(amount for _, amount in pieces)
    parts = [svg.text(BAR_LEFT, top, f"{_amount(name, pieces)} {name if name[:5] != 'bytes' else 'in float32'}", 14)]
    left, line = float(BAR_LEFT), []
    for (part, amount), color in zip(pieces, PART_COLORS, strict=True):
        width = BAR_WIDTH * amount / total
        parts.append(svg.rectangle(left, top + 10, width, BAR_HEIGHT, color, INK))
        if width > LETTER * len(part):
            parts.append(svg.text(left + width / 2, top + 30, part, 12, anchor="middle", rim=False))
        left += width
        line.append(f"{part} {_percent(amount, pieces)}")
    parts.append(svg.text(BAR_LEFT, top + 58, " · ".join(line), 11.5))
    return parts


def _chart(sequence: int, d_model: int, layers: int, dots: Mapping[int, float], rate: float) -> list[str]:
    line = {n: predicted_seconds(n, d_model, layers, rate) for n in LENGTHS}
    values = [*line.values(), *dots.values()]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def place(n: float, seconds: float) -> tuple[float, float]:
        across = math.log2(n / LENGTHS[0]) / math.log2(LENGTHS[-1] / LENGTHS[0])
        up = (math.log10(seconds) - low) / (high - low)
        return CHART_LEFT + across * (CHART_RIGHT - CHART_LEFT), CHART_BOTTOM - up * (CHART_BOTTOM - CHART_TOP)

    parts = [svg.text(CHART_LEFT - 40, 24, "Seconds of a forward pass over n", 14)]
    for power in range(low, high + 1, max(1, (high - low) // 4)):
        x, y = place(LENGTHS[0], 10.0**power)
        parts += [
            svg.line(x, y, CHART_RIGHT, y, GRID),
            svg.text(x - 6, y + 4, seconds_text(10.0**power), 11, anchor="end"),
        ]
    for n in LENGTHS[::4]:
        x, _ = place(n, 10.0**low)
        parts.append(svg.text(x, CHART_BOTTOM + 16, f"{n:,}", 11, anchor="middle"))
    crossing = crossover_length(d_model, WIDENING * d_model)
    x, _ = place(crossing, 10.0**low)
    parts += [
        svg.line(x, CHART_TOP, x, CHART_BOTTOM, QUIET, dashes="3 4"),
        svg.text(min(x, CHART_RIGHT - 40), CHART_TOP - 4, "n × n leads", 11, anchor="middle"),
    ]
    ends = [(place(a, line[a]), place(b, line[b])) for a, b in itertools.pairwise(LENGTHS)]
    parts += [svg.line(*start, *end, COLORS[0], 2) for start, end in ends]
    parts += [svg.diamond(*place(n, seconds), 5, COLORS[1]) for n, seconds in dots.items()]
    parts.append(svg.circle(*place(sequence, line[sequence]), 6, "white", COLORS[0]))
    parts += [
        svg.line(CHART_LEFT, 334, CHART_LEFT + 24, 334, COLORS[0], 2),
        svg.text(CHART_LEFT + 30, 338, "predicted from FLOPs", 12),
        svg.diamond(CHART_LEFT + 12, 354, 5, COLORS[1]),
        svg.text(CHART_LEFT + 30, 358, "measured on this machine" if dots else "(nothing measured here)", 12),
    ]
    return parts
