"""Chapter 10's explorer: an alignment map that fills up while a decoder writes, one character for each key press."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from matplotlib import colormaps
from matplotlib.colors import to_hex
from torch import Tensor

from course_lib.alignment import alignment, attention_entropy
from course_lib.colors import COLORS, GRID, INK
from course_lib.models.date_reader import Transcript
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Explorer, Slider

TITLE = "Where the decoder looks while it writes"
CELL, ROW = 17, 22  # pixels of a cell, across and down
LEFT, TOP = 60, 66  # of the map
MEAN = "mean of all"
SHADES = colormaps["Blues"]
MARK = COLORS[1]


class AlignmentExplorer(Explorer):
    """An explorer whose still picture shows the whole map."""

    def still(self) -> dict[str, str]:
        """Build the form without controls, with everything written."""
        written = self.controls["written"]
        assert isinstance(written, Slider)
        controls = {**self.controls, "written": replace(written, value=written.high)}
        return Explorer(self.title, controls, self.draw).still()


def alignment_explorer(transcripts: Sequence[Transcript]) -> Explorer:
    """Make the explorer; put it last in a cell to see it.

    Args:
        transcripts: one for each date that can be chosen.

    Raises:
        ValueError: there is no transcript.
    """
    if not transcripts:
        raise ValueError("`transcripts` is empty; pass at least one.")
    by_source = {transcript.source: transcript for transcript in transcripts}
    heads = [MEAN, *range(1, 1 + min(len(transcript.weights) for transcript in transcripts))]
    longest = max(len(transcript.written) for transcript in transcripts)
    return AlignmentExplorer(
        TITLE,
        {
            "written": Slider("Characters written", 1, 0, longest, step=1),
            "source": Choice("Date", transcripts[0].source, list(by_source)),
            "head": Choice("Head", MEAN, heads),
        },
        lambda written, source, head: draw(by_source[source], int(written), head),
    )


def map_of(transcript: Transcript, head: int | str) -> Tensor:
    """Return one head's map, or the mean of all: a row for each character written."""
    return transcript.weights.mean(dim=0) if head == MEAN else transcript.weights[int(head) - 1]


def draw(transcript: Transcript, written: int, head: int | str) -> tuple[str, str]:
    """Draw the rows of the map that are written so far, and say the same in words."""
    weights = map_of(transcript, head)[:written]
    words = _words(transcript, weights, head)
    width = LEFT + CELL * len(transcript.source) + 14
    height = TOP + ROW * len(transcript.written) + 12
    parts = [*_heading(transcript, weights), *_rows(transcript, weights)]
    return svg.picture(max(width, 330), height, TITLE, words, *parts), words


def _words(transcript: Transcript, weights: Tensor, head: int | str) -> str:
    which = "the mean of all heads" if head == MEAN else f"head {head}"
    written = len(weights)
    told = f"“{transcript.source}”, {which}. "
    if not written:
        return told + "Nothing is written yet."
    row = weights[-1]
    place = int(row.argmax())
    _, forward = alignment(weights)
    steps = written - 1
    told += (
        f"Written: {transcript.written[:written]}. While writing “{transcript.written[written - 1]}” it looks most at "
        f"“{transcript.source[place]}”, letter {place + 1} of {len(transcript.source)}, with weight {row[place]:.2f}; "
        f"entropy {attention_entropy(row):.2f} nats."
    )
    if steps:
        told += f" {round(forward * steps)} of {steps} step{'s' * (steps > 1)} so far did not go back."
    return told


def _heading(transcript: Transcript, weights: Tensor) -> list[str]:
    """Write the source over its columns, and mark the letter that is looked at most."""
    most = int(weights[-1].argmax()) if len(weights) else None
    parts = [svg.text(LEFT, 22, "what is read (darker: more weight)", 12)]
    for place, letter in enumerate(transcript.source):
        x = LEFT + CELL * (place + 0.5)
        bold = place == most
        parts.append(svg.text(x, TOP - 10, letter, 15, anchor="middle", weight="bold" if bold else "normal"))
        if bold:
            parts.append(svg.diamond(x, TOP - 32, 5, MARK))
    return parts


def _rows(transcript: Transcript, weights: Tensor) -> list[str]:
    parts = []
    for row, letter in enumerate(transcript.written):
        y, newest = TOP + ROW * row, row == len(weights) - 1
        if row < len(weights):
            weight = "bold" if newest else "normal"
            parts.append(svg.text(LEFT - 18, y + 16, letter, 15, anchor="middle", weight=weight))
        for place in range(len(transcript.source)):
            shade = to_hex(SHADES(float(weights[row, place]))) if row < len(weights) else "white"
            parts.append(svg.rectangle(LEFT + CELL * place, y, CELL, ROW, shade, GRID))
        if newest:
            best = int(torch.argmax(weights[row]))
            parts.append(svg.rectangle(LEFT, y, CELL * len(transcript.source), ROW, "none", INK))
            parts.append(svg.diamond(LEFT + CELL * (best + 0.5), y + ROW / 2, 4, MARK))
            parts.append(svg.diamond(LEFT - 38, y + ROW / 2, 5, MARK))
    return parts
