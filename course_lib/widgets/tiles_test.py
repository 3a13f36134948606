"""The tile sweep: right sums after every tile, a visible fault when they are not shrunk, keys and buttons in step."""

import re
from xml.etree import ElementTree

import ipywidgets
import pytest
import torch

from course_lib.widgets.tiles import BLOCK_SIZES, TOKENS, example, swept, tiles_explorer, tiles_per_side

SVG = "{http://www.w3.org/2000/svg}"
EXACT = 1e-12


def exact(query):
    scores, value = example()
    return (torch.softmax(scores[query], -1) @ value).item()


@pytest.mark.parametrize("block_size", BLOCK_SIZES)
def test_every_sweep_ends_at_the_plain_softmax_whatever_the_tiles(block_size):
    for query in range(TOKENS):
        assert swept(query, block_size, shrink=True)[-1].output[0] == pytest.approx(exact(query), abs=EXACT)


def test_sums_that_are_not_shrunk_are_right_only_while_the_maximum_stays():
    wrong = 0
    for query in range(TOKENS):
        right, left = swept(query, 3, shrink=True), swept(query, 3, shrink=False)
        rises = [state.largest > right[0].largest for state in right]
        for place, (one, other) in enumerate(zip(right, left, strict=True)):
            if not rises[place]:
                assert other.output[0] == pytest.approx(one.output[0], abs=EXACT)
        wrong += abs(left[-1].output[0] - exact(query)) > 0.01
    assert wrong > TOKENS / 3


def test_words_tell_the_tile_and_what_the_query_remembers():
    explorer = tiles_explorer()
    first = explorer.describe(tile=1, block_size=4)
    assert first.startswith("Tile 1 of 9: queries 0 to 3 meet keys 0 to 3; 16 scores exist at this moment, of 144")
    assert "no old sums yet" in first
    last = explorer.describe(tile=9, block_size=5)
    assert last.startswith("Tile 9 of 9: queries 10 to 11 meet keys 10 to 11; 4 scores exist")
    assert f"output over 12 keys: {exact(10):.3f}; plain softmax: {exact(10):.3f}." in last
    assert any("off by" in explorer.describe(tile=tile, block_size=3, shrink=False) for tile in range(1, 17))


def test_a_tile_beyond_the_last_is_the_last():
    explorer = tiles_explorer()
    assert explorer.describe(tile=50, block_size=6) == explorer.describe(tile=4, block_size=6)


@pytest.mark.parametrize("block_size", BLOCK_SIZES)
def test_the_picture_marks_as_many_cells_as_scores_exist(block_size):
    explorer = tiles_explorer()
    for tile in (1, tiles_per_side(block_size) ** 2):
        image, text = explorer.draw(tile=tile, block_size=block_size, shrink=True)
        root = ElementTree.fromstring(image)
        assert root.findtext(f"{SVG}desc") == text
        assert not re.search(r"\bnan\b|\binf\b", image)
        cells = [one for one in root.iter(f"{SVG}rect") if one.get("width") == "20.0" and one.get("fill") == "#E69F00"]
        assert len(cells) == int(re.search(r"(\d+) scores? exist", text).group(1))


def test_buttons_and_slider_know_how_many_tiles_there_are():
    widget = tiles_explorer().widget()
    play, tile, block = widget.children[1].children[0].children[:3]
    assert isinstance(play, ipywidgets.Play)
    tile.value = 9
    block.value = 6
    assert (tile.max, tile.value, play.max) == (4, 4, 4)
    block.value = 2
    assert (tile.max, play.max) == (36, 36)


def test_without_a_reader_it_is_a_picture_with_its_words():
    still = tiles_explorer().still()
    assert still["text/plain"].startswith("A sweep over tiles. Tile 2 of 9:")
    assert "<img alt=" in still["text/html"]
