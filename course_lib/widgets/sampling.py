"""Chapter 09's explorer of sampling: what temperature, top-k and top-p leave of a distribution, and what it writes."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.colors import COLORS, GRID, INK, QUIET
from course_lib.sampling import token_shares
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Explorer, Slider

TITLE = "What a model may write next"
EVERYTHING = "all"
SHOWN = 14  # bars; the others are summed up in words
TOP_KS = (1, 2, 3, 5, 8, 13, 20, EVERYTHING)
HOTTEST = 3.0
SEEDS = tuple(range(6))
LINE = 62  # characters of the continuation per line
LINES = 5
LETTERS = {" ": "space", "\n": "line end", "\t": "tab"}
WIDTH, HEIGHT = 640, 438  # of the picture, in pixels
LEFT, RIGHT, TOP, ROW = 76, 560, 62, 18
TEXT_TOP, TEXT_ROW = 344, 18

Writer = Callable[[float, int | None, float | None, int], str]


def sampling_explorer(
    logits: Float[Tensor, " vocab"],
    characters: Sequence[str],
    prompt: str = "",
    write: Writer | None = None,
) -> Explorer:
    """Make the explorer; put it last in a cell to see it.

    Args:
        logits: of the next character, from a model or made up.
        characters: the character of every logit.
        prompt: what the model has read.
        write: continues the prompt, given temperature, top-k, top-p and a seed; without it a character is drawn.

    Raises:
        ValueError: there are not as many characters as logits.
    """
    if len(characters) != len(logits):
        raise ValueError(f"`characters` must name each of the {len(logits)} logits, got {len(characters)} characters.")
    controls = {
        "temperature": Slider("Temperature", 1.0, 0.0, HOTTEST, 0.1),
        "top_k": Choice("Top-k", EVERYTHING, TOP_KS),
        "top_p": Slider("Top-p", 1.0, 0.05, 1.0, 0.05),
        "seed": Choice("Seed", SEEDS[0], SEEDS),
    }
    logits = logits.detach()
    return Explorer(TITLE, controls, lambda **values: draw(logits, characters, prompt, write, **values))


def draw(
    logits: Float[Tensor, " vocab"],
    characters: Sequence[str],
    prompt: str,
    write: Writer | None,
    temperature: float,
    top_k: int | str,
    top_p: float,
    seed: int,
) -> tuple[str, str]:
    """Draw the likeliest characters with their shares before and after the cuts, and what is written with them."""
    k = None if top_k == EVERYTHING else int(top_k)
    before = token_shares(logits)
    after = token_shares(logits, temperature, k, top_p)
    order = before.argsort(descending=True, stable=True)
    if write is None:
        generator = torch.Generator().manual_seed(seed)
        written = characters[int(torch.multinomial(after, 1, generator=generator))]
    else:
        written = write(temperature, k, top_p, seed)
    words = _words(before, after, order, characters, temperature, k, top_p, prompt, written)
    parts = _bars(before, after, order, characters) + _text(prompt, written)
    return svg.picture(WIDTH, HEIGHT, TITLE, words, *parts), words


def name_of(character: str) -> str:
    """Name a character, so that one that cannot be seen can be read."""
    return LETTERS.get(character, character)


def entropy(shares: Float[Tensor, " vocab"]) -> float:
    """Measure how undecided a distribution is, in nats: -Σ p log p."""
    return torch.special.entr(shares).sum().item()


def _words(before, after, order, characters, temperature, top_k, top_p, prompt, written) -> str:
    kept = int((after > 0).sum())
    cut = before[after == 0].sum().item()
    likeliest = ", ".join(f"{name_of(characters[i])} {_percent(after[i])}" for i in order[:3].tolist() if after[i] > 0)
    limits = [f"temperature {temperature:.1f}"]
    limits += [f"top-k {top_k}"] if top_k is not None else []
    limits += [f"top-p {top_p:.2f}"] if top_p < 1 else []
    told = [f"With {', '.join(limits)}, {kept} of {len(after)} characters may be drawn: {likeliest}"]
    told[-1] += " and others." if kept > min(3, kept) else "."
    if kept < len(after):
        told.append(f"What is cut off had {_percent(cut)} before.")
    told.append(f"The entropy is {entropy(after):.2f} nats, and was {entropy(before):.2f} before.")
    after_what = f"After “{_in_one_line(_tail(prompt))}” it" if prompt else "It"
    told.append(f"{after_what} writes “{_in_one_line(written)}”.")
    return " ".join(told)


def _percent(share: Tensor | float) -> str:
    percent = 100 * float(share)
    return f"{percent:.0f} %" if percent >= 1 or percent == 0 else "below 1 %"


def _bars(before: Tensor, after: Tensor, order: Tensor, characters: Sequence[str]) -> list[str]:
    shown = order[:SHOWN].tolist()
    scale = (RIGHT - LEFT) / max(before.max().item(), after.max().item())
    parts = [
        svg.text(12, 22, "next character", 14),
        svg.rectangle(LEFT + 70, 11, 22, 12, COLORS[5], INK),
        svg.text(LEFT + 98, 22, "may be drawn, with this share", 12),
        svg.rectangle(LEFT + 290, 11, 22, 12, "white", QUIET),
        svg.text(LEFT + 318, 22, "the model's own share", 12),
        svg.line(LEFT, TOP - 14, LEFT, TOP + ROW * SHOWN - 10, GRID),
    ]
    for row, token in enumerate(shown):
        y = TOP + ROW * row
        share = after[token].item()
        parts += [
            svg.text(LEFT - 8, y + 4, name_of(characters[int(token)]), 13, anchor="end"),
            svg.rectangle(LEFT, y - 6, scale * share, 12, COLORS[5], INK if share else "none"),
            svg.rectangle(LEFT, y - 8, scale * before[token].item(), 16, "none", QUIET),
            svg.text(RIGHT + 12, y + 4, _percent(share) if share else "cut off", 12),
        ]
    return parts


def _text(prompt: str, written: str) -> list[str]:
    whole = f"{_tail(prompt)}▸{written}".replace("\t", " ").split("\n")
    lines = [row[start : start + LINE] for row in whole for start in range(0, max(1, len(row)), LINE)][:LINES]
    parts = [svg.rectangle(8, TEXT_TOP - 20, WIDTH - 16, LINES * TEXT_ROW + 18, "#f7f7f7", GRID)]
    rows = (svg.text(16, TEXT_TOP + TEXT_ROW * row, line, 14, rim=False) for row, line in enumerate(lines))
    return [*parts, f"<g font-family='ui-monospace, monospace' style='white-space:pre'>{''.join(rows)}</g>"]


def _tail(prompt: str) -> str:
    return prompt[-LINE // 2 :]


def _in_one_line(text: str) -> str:
    """Write a text as it can be read aloud: a character that cannot be seen by its name, white space as one space."""
    return " ".join(text.split()) or " ".join(name_of(character) for character in text)
