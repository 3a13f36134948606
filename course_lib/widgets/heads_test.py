"""The explorers of heads show the weights and losses that they are given, in the picture and in words."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from course_lib.widgets.heads import CELL, LEFT, TOP, head_switches, head_viewer

SVG = "{http://www.w3.org/2000/svg}"
SEQUENCES, LENGTH = 2, 5
TOKENS = [list("abcde"), list("vwxyz")]


def previous_place(heads=1):
    """Make maps in which every query looks at the place before it, and the first at itself."""
    table = np.eye(LENGTH, k=-1)
    table[0, 0] = 1
    return np.broadcast_to(table, (SEQUENCES, heads, LENGTH, LENGTH)).copy()


def even(heads=2):
    return np.full((SEQUENCES, heads, LENGTH, LENGTH), 1 / LENGTH)


def test_the_words_name_the_key_that_a_query_looks_at():
    viewer = head_viewer(TOKENS, [previous_place(), even()])
    text = viewer.describe(layer=1, head=1, sequence=2, query=3)
    assert text == "Layer 1, head 1, sequence 2. The query at place 3 (y) gives 1.00 at place 2 (x, 1 before)."
    assert "0.20 at place 0 (a, 2 before)" in viewer.describe(layer=2, head=2, query=2)
    assert "(a, itself)" in viewer.describe(layer=1, query=0)


def test_the_picture_has_a_cell_for_every_weight_dark_where_it_is_large():
    image, _ = head_viewer(TOKENS, [previous_place()]).draw(layer=1, head=1, sequence=1, query=2)
    root = ElementTree.fromstring(image)
    cells = {
        (round((float(cell.get("y", 0)) - TOP) / CELL), round((float(cell.get("x", 0)) - LEFT) / CELL)): cell.get(
            "fill"
        )
        for cell in root.iter(f"{SVG}rect")
        if cell.get("width") == f"{CELL:.1f}"
    }
    assert len(cells) == LENGTH * LENGTH
    dark = cells[1, 0]
    assert {place for place, fill in cells.items() if fill == dark} == {(0, 0), (1, 0), (2, 1), (3, 2), (4, 3)}


def test_a_layer_with_fewer_heads_shows_its_last_one():
    viewer = head_viewer(TOKENS, [previous_place(heads=1), even(heads=2)])
    assert list(viewer.controls["head"].options) == [1, 2]
    assert viewer.describe(layer=1, head=2).startswith("Layer 1, head 1,")


@pytest.mark.parametrize(
    "maps", [np.ones((2, 1, 5, 4)), np.ones((3, 1, 5, 5)), np.ones((2, 5, 5)), np.ones((2, 1, 4, 4))]
)
def test_maps_that_do_not_fit_the_tokens_are_refused(maps):
    with pytest.raises(ValueError, match=r"`maps` of layer 1 has shape .*; expected \(2 sequences, heads"):
        head_viewer(TOKENS, [maps])


def test_switching_a_head_off_measures_without_it():
    asked = []

    def measure(off):
        asked.append(off)
        return 0.25 + len(off)

    switches = head_switches(2, 2, measure)
    assert len(switches.controls) == 4
    text = switches.describe(on_1_0=False)
    assert asked[-1] == {(1, 0)}
    assert text == "Off: layer 2 head 1. Loss 1.25 nats; 0.25 with every head, 4.25 without any."
    assert switches.describe().startswith("Off: none. Loss 0.25 nats")


def test_the_longest_bar_belongs_to_the_largest_loss():
    image, text = head_switches(1, 2, lambda off: float(len(off))).draw(on_0_0=False, on_0_1=True)
    root = ElementTree.fromstring(image)
    widths = [float(bar.get("width", 0)) for bar in root.iter(f"{SVG}rect") if bar.get("height") == "24.0"]
    assert widths == [115.0, 0.0, 230.0]
    assert root.findtext(f"{SVG}desc") == text
    assert not re.search(r"nan|inf", image)
