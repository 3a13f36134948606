"""Chapter 06's explorer: a mask to click or key together, the weights that it leaves, and who can see whom."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import ipywidgets
import torch
from torch import Tensor

from course_lib.colors import COLORS, GRID, INK
from course_lib.mask_rules import Rule, causal, documents, either, nothing, padding, prefix, rule_mask, sliding
from course_lib.masks import masked_softmax
from course_lib.widgets import svg
from course_lib.widgets.base import WORDS_STYLE, Explorer, Toggle

SENTENCE = ("Jessie", "ordered", "a", "hot", "burger", "today")
SCORE_SEED, SCORE_SCALE = 6, 1.0
OWN = "your own"
STEP, LEFT, MIDDLE, WIDTH, HEIGHT = 92, 50, 150, 560, 320  # of the picture of arcs, in pixels
PAST, FUTURE = COLORS[0], COLORS[1]
CELL = {"width": "72px", "height": "32px", "margin": "1px"}


def patterns(length: int) -> dict[str, Rule]:
    """Name rules that make sense for a sequence of some length."""
    half = length // 2
    halves = torch.arange(length) // max(1, half)
    ends_early = padding(torch.tensor([length - 2]))
    return {
        "nothing hidden": nothing,
        "causal": causal,
        "last two are padding": ends_early,
        "causal and padding": either(causal, ends_early),
        "sliding window of 3": sliding(3),
        "prefix of 3": prefix(3),
        "two packed documents": either(causal, documents(halves)),
        "document A's src_mask": lambda query, key: ~causal(query, key),
    }


def mask_grid(tokens: Sequence[str] = SENTENCE, pattern: str = "causal") -> "MaskGrid":
    """Make an explorer in which every cell of a mask is a switch; put it last in a cell.

    Args:
        tokens: the words of the sequence.
        pattern: the mask to start from, one of `patterns`.

    Raises:
        ValueError: there are fewer than 3 tokens, or `pattern` has no such name.
    """
    if len(tokens) < 3:
        raise ValueError(f"`tokens` needs at least 3 words, got {len(tokens)}.")
    known = patterns(len(tokens))
    if pattern not in known:
        raise ValueError(f"`pattern` must be one of {', '.join(map(repr, known))}; got {pattern!r}.")
    return MaskGrid(tokens, {name: _table(rule, len(tokens)) for name, rule in known.items()}, pattern)


def _table(rule: Rule, length: int) -> Tensor:
    return rule_mask(rule, length).reshape(length, length)


class MaskGrid(Explorer):
    """Show a mask as a grid of switches that carry the weights, with arcs and words that say who sees whom."""

    def __init__(self, tokens: Sequence[str], tables: Mapping[str, Tensor], pattern: str) -> None:
        self.tokens = list(tokens)
        self.tables = dict(tables)
        self.pattern = pattern
        generator = torch.Generator().manual_seed(SCORE_SEED)
        self.scores = SCORE_SCALE * torch.randn(len(tokens), len(tokens), generator=generator)
        start = self.tables[pattern]
        cells = {
            _name(i, j): Toggle(f"query {query}, key {key}", bool(start[i, j]))
            for i, query in enumerate(self.tokens)
            for j, key in enumerate(self.tokens)
        }
        super().__init__("Who may look at whom", cells, self._draw)

    def weights(self, mask: Tensor) -> Tensor:
        """Share every query's attention out among the keys that a mask shows; the scores are fixed."""
        return masked_softmax(self.scores, mask)

    def widget(self) -> ipywidgets.Widget:
        """Build the live form: a choice of patterns, a grid of switches, arcs, and the words."""
        buttons = {
            name: ipywidgets.ToggleButton(tooltip=cell.label, layout=CELL) for name, cell in self.controls.items()
        }
        choice = ipywidgets.Dropdown(options=[*self.tables, OWN], value=self.pattern, description="Pattern")
        image, words = ipywidgets.HTML(), ipywidgets.HTML()
        filling = [False]  # whether the switches are being set by a pattern, so that one redrawing is enough

        def redraw() -> None:
            mask = self._mask({name: button.value for name, button in buttons.items()})
            for (i, j), weight in zip(_places(len(mask)), self.weights(mask).flatten().tolist(), strict=True):
                buttons[_name(i, j)].description = "hidden" if mask[i, j] else f"{weight:.2f}"
            picture, text = self._draw(**{name: button.value for name, button in buttons.items()})
            image.value = picture
            words.value = f"<p role='status' aria-live='polite' style='{WORDS_STYLE}'>{escape(text)}</p>"

        def fill(change: Any) -> None:
            if change["new"] in self.tables:
                filling[0] = True
                for (i, j), hidden in zip(
                    _places(len(self.tokens)), self.tables[change["new"]].flatten().tolist(), strict=True
                ):
                    buttons[_name(i, j)].value = hidden
                filling[0] = False
                redraw()

        def switched(_: Any) -> None:
            if not filling[0]:
                choice.value = OWN
                redraw()

        for button in buttons.values():
            button.observe(switched, names="value")
        choice.observe(fill, names="value")
        fill({"new": self.pattern})
        heading = ipywidgets.HTML(f"<b>{escape(self.title)}</b>")
        row = ipywidgets.HBox([self._grid(buttons), image], layout={"flex_flow": "row wrap", "align_items": "center"})
        return ipywidgets.VBox([heading, choice, row, words])

    def _grid(self, buttons: Mapping[str, ipywidgets.ToggleButton]) -> ipywidgets.Widget:
        heads = [ipywidgets.HTML(f"<div style='text-align:center'>{escape(token)}</div>") for token in self.tokens]
        cells: list[ipywidgets.Widget] = [ipywidgets.HTML("query \\ key"), *heads]
        for i, token in enumerate(self.tokens):
            cells.append(ipywidgets.HTML(escape(token)))
            cells += [buttons[_name(i, j)] for j in range(len(self.tokens))]
        columns = f"80px repeat({len(self.tokens)}, 75px)"
        return ipywidgets.GridBox(cells, layout={"grid_template_columns": columns, "width": "max-content"})

    def _mask(self, cells: Mapping[str, bool]) -> Tensor:
        length = len(self.tokens)
        return torch.tensor([cells[_name(i, j)] for i, j in _places(length)]).reshape(length, length)

    def _draw(self, **cells: bool) -> tuple[str, str]:
        mask = self._mask(cells)
        weights = self.weights(mask)
        words = _words(mask, self.tokens)
        return _arcs(mask, weights, self.tokens, words), words


def _places(length: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(length) for j in range(length)]


def _name(i: int, j: int) -> str:
    return f"cell_{i}_{j}"


def _words(mask: Tensor, tokens: list[str]) -> str:
    seen = [
        f"{token} sees {', '.join(tokens[j] for j in range(len(tokens)) if not mask[i, j]) or 'nothing'}"
        for i, token in enumerate(tokens)
    ]
    ahead = int((~mask).triu(1).sum())
    some = "1 cell shows" if ahead == 1 else f"{ahead} cells show"
    leak = f"{some} the future." if ahead else "No cell shows the future."
    empty = [token for i, token in enumerate(tokens) if mask[i].all()]
    zero = f" No key is left for {', '.join(empty)}: the weights are 0." if empty else ""
    return f"{int(mask.sum())} of {mask.numel()} cells are hidden. {leak}{zero} {'; '.join(seen)}."


def _arcs(mask: Tensor, weights: Tensor, tokens: list[str], words: str) -> str:
    """Draw an arc from every query to each key it sees: over the line to the past, dashed under it to the future."""
    parts = [
        svg.text(8, 20, "looking back, over the line", size=12),
        svg.text(8, HEIGHT - 8, "looking ahead, under the line (dashed)", size=12),
        svg.line(LEFT - 30, MIDDLE, LEFT + STEP * (len(tokens) - 1) + 30, MIDDLE, GRID),
    ]
    for i, j in _places(len(tokens)):
        if not mask[i, j]:
            parts.append(_arc(i, j, float(weights[i, j])))
    for place, token in enumerate(tokens):
        x = LEFT + STEP * place
        parts.append(svg.rectangle(x - 34, MIDDLE - 12, 68, 24, "white", INK))
        parts.append(svg.text(x, MIDDLE + 5, token, anchor="middle"))
    width = max(WIDTH, LEFT + STEP * (len(tokens) - 1) + 60)
    return svg.picture(width, HEIGHT, "Who can see whom", words, *parts)


def _arc(query: int, key: int, weight: float) -> str:
    start, end = LEFT + STEP * query, LEFT + STEP * key
    thickness = 0.8 + 5 * weight
    if query == key:
        place = f"cx='{start}' cy='{MIDDLE - 20}' r='9'"
        return f"<circle {place} fill='none' stroke='{PAST}' stroke-width='{thickness:.1f}'/>"
    ahead = key > query
    side, color, dashes = (1, FUTURE, " stroke-dasharray='5 3'") if ahead else (-1, PAST, "")
    height = MIDDLE + side * (18 + 24 * abs(query - key))
    bend = 2 * height - MIDDLE  # a quadratic curve rises half as far as the point that bends it
    return (
        f"<path d='M {start} {MIDDLE} Q {(start + end) / 2} {bend:.0f} {end} {MIDDLE}' fill='none' stroke='{color}' "
        f"stroke-width='{thickness:.1f}'{dashes}/>"
    )
