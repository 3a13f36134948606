"""Chapter 02's explorers: read every head's map place by place, and switch heads off one by one."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex
from numpy.typing import ArrayLike

from course_lib.colors import COLORS, INK, QUIET
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Draw, Explorer, Toggle

CELL, LEFT, TOP = 15, 56, 46  # of a map, in pixels
BAR_LEFT, BAR_WIDTH, BAR_HEIGHT = 150, 230, 24
TOLD = 3  # keys that the words name
WORTH_TELLING = 0.05  # the least weight that the words name
SELECTED = COLORS[1]

Maps = Sequence[ArrayLike]


def head_viewer(tokens: Sequence[Sequence[object]], maps: Maps) -> Explorer:
    """Make an explorer of attention maps: choose layer, head, sequence and query; put it last in a cell.

    Args:
        tokens: the tokens of each sequence, as they should be written.
        maps: for every layer its weights, (sequence number, heads, query, key).

    Raises:
        ValueError: a layer's weights do not fit the tokens.
    """
    layers = [np.asarray(weights, dtype=float) for weights in maps]
    names = [[str(token) for token in sequence] for sequence in tokens]
    for index, weights in enumerate(layers):
        fits = weights.ndim == 4 and len(weights) == len(names) and weights.shape[2] == weights.shape[3]
        if not fits or any(len(sequence) != weights.shape[-1] for sequence in names):
            raise ValueError(
                f"`maps` of layer {index + 1} has shape {weights.shape}; expected ({len(names)} sequences, heads, "
                f"query, key) with a query and a key for every token."
            )
    heads = max(weights.shape[1] for weights in layers)
    return Explorer(
        "What every head looks at",
        {
            "layer": Choice("Layer", 1, range(1, len(layers) + 1)),
            "head": Choice("Head", 1, range(1, heads + 1)),
            "sequence": Choice("Sequence", 1, range(1, len(names) + 1)),
            "query": Choice("Query at place", len(names[0]) - 1, range(len(names[0]))),
        },
        _viewer(layers, names),
    )


def head_switches(layers: int, heads: int, measure: Callable[[frozenset[tuple[int, int]]], float]) -> Explorer:
    """Make an explorer with a switch for every head and a bar for the loss of what is left on.

    Args:
        layers: number of layers.
        heads: heads of each.
        measure: gives the loss without some heads; each is a pair (layer, head), counted from 0.
    """
    places = {f"on_{layer}_{head}": (layer, head) for layer in range(layers) for head in range(heads)}
    switches = {name: Toggle(f"layer {layer + 1}, head {head + 1}", True) for name, (layer, head) in places.items()}
    whole = measure(frozenset())
    most = measure(frozenset(places.values()))

    def draw(**on: bool) -> tuple[str, str]:
        off = [place for name, place in places.items() if not on[name]]
        return _switch_picture(off, measure(frozenset(off)), whole, most)

    return Explorer("Heads on and off", switches, draw)


def _viewer(layers: list[np.ndarray], names: list[list[str]]) -> Draw:
    def draw(layer: int, head: int, sequence: int, query: int) -> tuple[str, str]:
        weights = layers[layer - 1]
        chosen = min(head, weights.shape[1])  # a layer may have fewer heads than another
        table, tokens = weights[sequence - 1, chosen - 1], names[sequence - 1]
        words = f"Layer {layer}, head {chosen}, sequence {sequence}. {_row_words(table[query], tokens, query)}"
        return _map_picture(table, tokens, query, words), words

    return draw


def _row_words(row: np.ndarray, tokens: list[str], query: int) -> str:
    ranked = [int(key) for key in np.argsort(-row, kind="stable")[:TOLD] if row[key] >= WORTH_TELLING]
    found = ", ".join(f"{row[key]:.2f} at place {key} ({tokens[key]}, {_distance(query, key)})" for key in ranked)
    told = found or f"no key as much as {WORTH_TELLING}"
    return f"The query at place {query} ({tokens[query]}) gives {told}."


def _distance(query: int, key: int) -> str:
    if query == key:
        return "itself"
    return f"{query - key} before" if query > key else f"{key - query} after"


def _map_picture(table: np.ndarray, tokens: list[str], query: int, words: str) -> str:
    shades = colormaps["Blues"]
    count = len(tokens)
    parts = [svg.text(LEFT, 16, "key", weight="bold"), svg.text(4, TOP - 8, "query", weight="bold")]
    for place, token in enumerate(tokens):
        parts.append(svg.text(LEFT + (place + 0.5) * CELL, TOP - 8, token, size=11, anchor="middle"))
        weight = "bold" if place == query else "normal"
        parts.append(
            svg.text(LEFT - 8, TOP + (place + 0.8) * CELL, f"{place} {token}", size=11, anchor="end", weight=weight)
        )
    for (row, column), weight in np.ndenumerate(table):
        fill = to_hex(shades(min(1.0, float(weight))))
        parts.append(svg.rectangle(LEFT + column * CELL, TOP + row * CELL, CELL, CELL, fill))
    side = count * CELL
    parts.append(svg.rectangle(LEFT, TOP, side, side, "none", QUIET))
    parts.append(svg.rectangle(LEFT, TOP + query * CELL, side, CELL, "none", SELECTED))
    return svg.picture(LEFT + side + 12, TOP + side + 12, "Attention map of one head", words, *parts)


def _switch_picture(off: list[tuple[int, int]], loss: float, whole: float, most: float) -> tuple[str, str]:
    silent = ", ".join(f"layer {layer + 1} head {head + 1}" for layer, head in off) or "none"
    words = f"Off: {silent}. Loss {loss:.2f} nats; {whole:.2f} with every head, {most:.2f} without any."
    bars = {"as switched": loss, "every head": whole, "no head": most}
    longest = max(*bars.values(), 1e-9)
    parts = [svg.text(12, 22, "Loss, in nats", weight="bold")]
    for row, (name, value) in enumerate(bars.items()):
        top = 40 + row * (BAR_HEIGHT + 12)
        color = COLORS[1] if row == 0 else COLORS[5]
        parts.append(svg.text(BAR_LEFT - 10, top + 17, name, anchor="end"))
        parts.append(svg.rectangle(BAR_LEFT, top, BAR_WIDTH * value / longest, BAR_HEIGHT, color, INK))
        parts.append(svg.text(BAR_LEFT + BAR_WIDTH * value / longest + 8, top + 17, f"{value:.2f}"))
    return svg.picture(BAR_LEFT + BAR_WIDTH + 60, 160, "Loss with some heads off", words, *parts), words
