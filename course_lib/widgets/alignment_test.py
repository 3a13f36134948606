"""The alignment explorer: its map grows by one row for each character, and its words say what the map shows."""

import re

import pytest
import torch

from course_lib.models.date_reader import Transcript
from course_lib.widgets.alignment import MEAN, alignment_explorer, draw, map_of


def transcript():
    weights = torch.full((2, 3, 4), 0.1)
    for head, places in enumerate([[3, 1, 2], [0, 1, 2]]):
        for row, place in enumerate(places):
            weights[head, row, place] = 0.7
    return Transcript("abcd", "12■", weights)


def shaded_rows(picture: str) -> int:
    """Count the rows in which some cell is neither white nor empty."""
    cells = re.findall(r"<rect x='[\d.]+' y='([\d.]+)' width='17.0' height='22.0' fill='(#\w+)'", picture)
    return len({y for y, shade in cells if shade.lower() != "#ffffff"})


@pytest.mark.parametrize("written", range(4))
def test_the_map_holds_as_many_rows_as_are_written(written):
    assert shaded_rows(draw(transcript(), written, 1)[0]) == written


def test_words_tell_what_is_written_and_where_it_looks():
    assert draw(transcript(), 0, MEAN)[1] == "“abcd”, the mean of all heads. Nothing is written yet."
    words = draw(transcript(), 2, 1)[1]
    assert "head 1" in words
    assert "Written: 12." in words
    assert "looks most at “b”, letter 2 of 4, with weight 0.70" in words
    assert "0 of 1 step so far did not go back" in words
    assert "2 of 2 steps" in draw(transcript(), 3, 2)[1]


def test_the_mean_map_averages_the_heads():
    torch.testing.assert_close(map_of(transcript(), MEAN)[0], torch.tensor([0.4, 0.1, 0.1, 0.4]))


def test_the_explorer_starts_with_one_character_and_its_still_picture_shows_all():
    explorer = alignment_explorer([transcript()])
    assert explorer.start == {"written": 1, "source": "abcd", "head": MEAN}
    assert "Written: 12■." in explorer.still()["text/plain"]
    assert "Written: 1." in explorer.describe()


def test_no_transcript_is_refused():
    with pytest.raises(ValueError, match="`transcripts` is empty"):
        alignment_explorer([])
