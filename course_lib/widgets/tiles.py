"""Chapter 08's explorer: a sweep over the tiles of a table of scores, with what each query has to remember."""

from functools import lru_cache
from typing import Any

import ipywidgets
import torch

from course_lib.colors import COLORS, GRID, INK, QUIET
from course_lib.efficient.tile_sweep import TileState, tile_states
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Explorer, Slider, Toggle

TITLE = "A sweep over tiles"
TOKENS, D_HEAD, SEED = 12, 4, 8
SHARPER = 1.6  # queries are drawn longer than keys, so that the maxima differ visibly
BLOCK_SIZES = (1, 2, 3, 4, 5, 6, 12)
START_BLOCK = 4
MILLISECONDS = 900  # that each step of the animation lasts
WIDTH, HEIGHT = 760, 366  # of the picture, in pixels, as are all lengths below
CELL, GRID_LEFT, GRID_TOP = 20, 34, 62
BARS_LEFT, BARS_WIDTH, BARS_TOP, BARS_BOTTOM = 330, 400, 62, 190
DONE, NOW, LATER = "#bcd8ea", COLORS[4], "white"


def tiles_explorer() -> "TilesExplorer":
    """Make the explorer; put it last in a cell to see it."""
    return TilesExplorer()


@lru_cache(maxsize=1)
def example() -> tuple[torch.Tensor, torch.Tensor]:
    """Draw the scores of 12 queries over 12 keys, and one value for each key."""
    generator = torch.Generator().manual_seed(SEED)
    query = SHARPER * torch.randn(TOKENS, D_HEAD, generator=generator, dtype=torch.float64)
    key = torch.randn(TOKENS, D_HEAD, generator=generator, dtype=torch.float64)
    value = torch.randint(-9, 10, (TOKENS, 1), generator=generator).double()
    return query @ key.T / D_HEAD**0.5, value


def tiles_per_side(block_size: int) -> int:
    """Count the tiles in one row of tiles; the last one may be smaller."""
    return -(-TOKENS // block_size)


def swept(query: int, block_size: int, shrink: bool) -> list[TileState]:
    """Give what one query knows after each tile; without `shrink` the old sums are left as they were."""
    scores, value = example()
    states = list(tile_states(scores[query], value, block_size))
    return states if shrink else _never_shrunk(states)


def _never_shrunk(states: list[TileState]) -> list[TileState]:
    """Add up what each tile brought at the maximum that was known then: the fault that the switch shows."""
    wrong, total, weighted = [], 0.0, 0.0
    before_total, before_weighted = 0.0, 0.0
    for state in states:
        total += state.total - state.shrink * before_total
        weighted += state.output[0] * state.total - state.shrink * before_weighted
        before_total, before_weighted = state.total, state.output[0] * state.total
        wrong.append(TileState(state.start, state.stop, state.largest, 1.0, total, (weighted / total,)))
    return wrong


class TilesExplorer(Explorer):
    """Step through the tiles by hand, or let them run."""

    def __init__(self) -> None:
        controls = {
            "tile": Slider("Tile", 2, 1, tiles_per_side(START_BLOCK) ** 2, step=1),
            "block_size": Choice("Tokens in a tile", START_BLOCK, BLOCK_SIZES),
            "shrink": Toggle("Shrink the old sums", True),
        }
        super().__init__(TITLE, controls, draw)

    def widget(self) -> ipywidgets.Widget:
        """Build the live form, with buttons that run through the tiles."""
        whole: Any = super().widget()
        panel = whole.children[1].children[0]
        tile, block = panel.children[0], panel.children[1]
        play = ipywidgets.Play(value=2, min=1, max=int(tile.max), interval=MILLISECONDS, description="Sweep")

        def fit(_: Any) -> None:
            last = tiles_per_side(block.value) ** 2
            tile.value = min(tile.value, last)
            tile.max = play.max = last

        block.observe(fit, names="value")
        ipywidgets.jslink((play, "value"), (tile, "value"))
        panel.children = (play, *panel.children)
        return whole


def draw(tile: float, block_size: int, shrink: bool) -> tuple[str, str]:
    """Draw the table with the tile that is being computed, and beside it what the tile's first query knows."""
    side = tiles_per_side(block_size)
    number = min(max(1, round(tile)), side * side) - 1
    row, column = divmod(number, side)
    query = row * block_size
    states = swept(query, block_size, shrink)
    words = _words(number, side, query, column, states, block_size)
    parts = [*_table(row, column, block_size, query), *_bars(query, states[column]), *_memory(states, column, query)]
    return svg.picture(WIDTH, HEIGHT, TITLE, words, *parts), words


def _exact(query: int) -> float:
    scores, value = example()
    return float(torch.softmax(scores[query], -1) @ value[:, 0])


def _lines(states: list[TileState], column: int, query: int) -> list[str]:
    """Say what the tile did to the three things that a query remembers."""
    now, before = states[column], states[column - 1] if column else None
    if before is None:
        rise = f"largest score: {now.largest:.2f} (the first tile)"
        old = "no old sums yet"
    else:
        rose = now.largest > before.largest
        rise = f"largest score: {before.largest:.2f} → {now.largest:.2f}{'' if rose else ' (unchanged)'}"
        old = f"old sums × {now.shrink:.3f}"
    total = f"sum of exp(score − largest): {f'{before.total:.3f} → ' if before else ''}{now.total:.3f}"
    output = f"output over {now.stop} keys: {now.output[0]:.3f}"
    if now.stop == TOKENS:
        gap = abs(now.output[0] - _exact(query))
        output += f"; plain softmax: {_exact(query):.3f}" + ("" if gap < 1e-9 else f", off by {gap:.3f}")
    return [rise, old, total, output]


def _words(number: int, side: int, query: int, column: int, states: list[TileState], block_size: int) -> str:
    now = states[column]
    last = min(query + block_size, TOKENS) - 1
    queries = f"query {query}" if last == query else f"queries {query} to {last}"
    keys = f"key {now.start}" if now.stop - now.start == 1 else f"keys {now.start} to {now.stop - 1}"
    size = (last - query + 1) * (now.stop - now.start)
    return (
        f"Tile {number + 1} of {side * side}: {queries} meet {keys}; {size} scores exist at this moment, of "
        f"{TOKENS * TOKENS} in the table. Query {query}: {'; '.join(_lines(states, column, query))}."
    )


def _table(row: int, column: int, block_size: int, query: int) -> list[str]:
    parts = [svg.text(GRID_LEFT - 20, 22, "The table of all scores", 14, weight="bold")]
    parts.append(svg.text(GRID_LEFT, 42, "keys →", 12))
    for i in range(TOKENS):
        for j in range(TOKENS):
            tile = (i // block_size, j // block_size)
            fill = NOW if tile == (row, column) else DONE if tile < (row, column) else LATER
            parts.append(svg.rectangle(GRID_LEFT + CELL * j, GRID_TOP + CELL * i, CELL, CELL, fill, GRID))
    end = TOKENS * CELL
    for border in [*range(0, TOKENS, block_size), TOKENS]:
        place = CELL * border
        parts.append(svg.line(GRID_LEFT + place, GRID_TOP, GRID_LEFT + place, GRID_TOP + end, INK, 1.5))
        parts.append(svg.line(GRID_LEFT, GRID_TOP + place, GRID_LEFT + end, GRID_TOP + place, INK, 1.5))
    parts.append(svg.text(GRID_LEFT - 6, GRID_TOP + CELL * query + 15, f"{query} →", 12, anchor="end"))
    legend = GRID_TOP + end + 16
    for place, (fill, name) in enumerate(((DONE, "done, forgotten"), (NOW, "now"), (LATER, "to come"))):
        left = GRID_LEFT + (0, 118, 172)[place]
        parts.append(svg.rectangle(left, legend, 12, 12, fill, INK))
        parts.append(svg.text(left + 17, legend + 11, name, 12))
    return parts


def _bars(query: int, now: TileState) -> list[str]:
    scores = example()[0][query].tolist()
    high, low = max(*scores, 0.0), min(*scores, 0.0)

    def y(score: float) -> float:
        return BARS_TOP + (BARS_BOTTOM - BARS_TOP) * (high - score) / (high - low)

    step = BARS_WIDTH / TOKENS
    parts = [svg.text(BARS_LEFT, 22, f"Scores of query {query}, one bar per key", 14, weight="bold")]
    for place, score in enumerate(scores):
        fill = NOW if now.start <= place < now.stop else DONE if place < now.start else LATER
        top, bottom = sorted((y(score), y(0)))
        parts.append(svg.rectangle(BARS_LEFT + step * place + 3, top, step - 6, bottom - top, fill, INK))
        parts.append(svg.text(BARS_LEFT + step * (place + 0.5), BARS_BOTTOM + 16, str(place), 11, anchor="middle"))
    parts.append(svg.line(BARS_LEFT, y(0), BARS_LEFT + BARS_WIDTH, y(0), QUIET))
    edge = BARS_LEFT + step * now.stop
    parts.append(svg.line(BARS_LEFT, y(now.largest), edge, y(now.largest), COLORS[1], 2.5, "6 4"))
    parts.append(svg.text(BARS_LEFT, 42, "dashed: the largest score so far", 12))
    return parts


def _memory(states: list[TileState], column: int, query: int) -> list[str]:
    top = BARS_BOTTOM + 48
    parts = [svg.text(BARS_LEFT, top, f"What query {query} remembers", 14, weight="bold")]
    for place, line in enumerate(_lines(states, column, query)):
        parts.append(svg.text(BARS_LEFT, top + 24 + 22 * place, line, 13))
    return parts
