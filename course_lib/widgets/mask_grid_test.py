"""The mask grid: patterns are what they are called, switches change weights and words, wrong names are refused."""

import re
from xml.etree import ElementTree

import ipywidgets
import pytest
import torch

from course_lib.masks import causal_mask, document_mask
from course_lib.widgets.mask_grid import OWN, SENTENCE, mask_grid, patterns

SVG = "{http://www.w3.org/2000/svg}"
LENGTH = len(SENTENCE)


def buttons_of(widget):
    (grid,) = [part for part in widget.children[2].children if isinstance(part, ipywidgets.GridBox)]
    return [cell for cell in grid.children if isinstance(cell, ipywidgets.ToggleButton)]


def values(buttons):
    return torch.tensor([button.value for button in buttons]).reshape(LENGTH, LENGTH)


def test_a_pattern_fills_the_grid():
    widget = mask_grid(pattern="nothing hidden").widget()
    choice = widget.children[1]
    assert set(patterns(LENGTH)) == set(choice.options) - {OWN}
    for name, wanted in (
        ("causal", causal_mask(LENGTH)),
        ("two packed documents", document_mask(torch.tensor([0, 0, 0, 1, 1, 1]))),
        ("document A's src_mask", ~causal_mask(LENGTH)),
        ("nothing hidden", torch.zeros(LENGTH, LENGTH, dtype=torch.bool)),
    ):
        choice.value = name
        assert torch.equal(values(buttons_of(widget)), wanted)
        assert choice.value == name


def test_switching_a_cell_shares_its_weight_among_the_others():
    widget = mask_grid(pattern="nothing hidden").widget()
    buttons = buttons_of(widget)
    assert "hidden" not in {button.description for button in buttons}
    buttons[1].value = True
    assert widget.children[1].value == OWN
    assert buttons[1].description == "hidden"
    row = [float(button.description) for button in buttons[:LENGTH] if button.description != "hidden"]
    assert len(row) == LENGTH - 1
    assert sum(row) == pytest.approx(1, abs=0.03)  # five numbers rounded to hundredths


def test_every_switch_says_which_query_and_key_it_is_for():
    buttons = buttons_of(mask_grid().widget())
    assert buttons[LENGTH + 2].tooltip == "query ordered, key a"


def test_the_words_tell_leaks_and_queries_that_see_nothing():
    grid = mask_grid()
    assert "No cell shows the future." in grid.describe()
    assert "Jessie sees Jessie; ordered sees Jessie, ordered;" in grid.describe()
    assert "1 cell shows the future." in grid.describe(cell_0_1=False)
    inverted = mask_grid(pattern="document A's src_mask").describe()
    assert "15 cells show the future." in inverted
    assert "No key is left for today: the weights are 0." in inverted


def test_the_picture_has_an_arc_for_every_pair_that_may_look():
    image, text = mask_grid().draw(**mask_grid().start)
    root = ElementTree.fromstring(image)
    paths = list(root.iter(f"{SVG}path"))
    assert len(paths) == LENGTH * (LENGTH - 1) // 2
    assert not [path for path in paths if path.get("stroke-dasharray")]
    assert len(list(root.iter(f"{SVG}circle"))) == LENGTH
    assert root.findtext(f"{SVG}desc") == text
    assert not re.search(r"nan|inf", image)


def test_without_a_reader_the_grid_is_a_picture_with_its_words():
    still = mask_grid(pattern="prefix of 3").still()
    assert still["text/plain"].startswith("Who may look at whom. 12 of 36 cells are hidden.")
    assert "<img alt=" in still["text/html"]


def test_an_unknown_pattern_and_too_few_tokens_are_refused():
    with pytest.raises(ValueError, match="`pattern` must be one of 'nothing hidden', 'causal'"):
        mask_grid(pattern="casual")
    with pytest.raises(ValueError, match="`tokens` needs at least 3 words, got 2"):
        mask_grid(("a", "b"))
