"""The sampling explorer shows the shares that sampling uses, and writes with what the controls say."""

import math
from xml.etree import ElementTree

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.sampling import token_shares
from course_lib.widgets.sampling import (
    EVERYTHING,
    HEIGHT,
    HOTTEST,
    LEFT,
    SEEDS,
    SHOWN,
    TOP_KS,
    WIDTH,
    draw,
    entropy,
    sampling_explorer,
)

SVG = "{http://www.w3.org/2000/svg}"
CHARACTERS = [" ", "\n", "\t", *"abcdefghijklmnopqrst<&"]
LOGITS = torch.linspace(3, -3, len(CHARACTERS))
values = st.fixed_dictionaries(
    {
        "temperature": st.integers(0, int(10 * HOTTEST)).map(lambda tenth: tenth / 10),
        "top_k": st.sampled_from(TOP_KS),
        "top_p": st.integers(1, 20).map(lambda twentieth: twentieth / 20),
        "seed": st.sampled_from(SEEDS),
    }
)


@settings(deadline=None)
@given(values)
def test_every_setting_gives_a_sound_picture_whose_words_count_what_may_be_drawn(chosen):
    image, words = draw(LOGITS, CHARACTERS, "read <this> & ", None, **chosen)
    root = ElementTree.fromstring(image)
    assert root.findtext(f"{SVG}desc") == words
    assert "nan" not in words
    top_k = None if chosen["top_k"] == EVERYTHING else chosen["top_k"]
    shares = token_shares(LOGITS, chosen["temperature"], top_k, chosen["top_p"])
    assert f"{int((shares > 0).sum())} of {len(CHARACTERS)} characters may be drawn" in words
    for rectangle in root.iter(f"{SVG}rect"):
        x, y, across, down = (float(rectangle.get(name)) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + across <= WIDTH + 0.1
        assert 0 <= y <= y + down <= HEIGHT + 0.1


def test_a_bar_is_as_long_as_its_share():
    image, _ = draw(LOGITS, CHARACTERS, "", None, 0.7, 5, 1.0, 0)
    rows = [
        rect
        for rect in ElementTree.fromstring(image).iter(f"{SVG}rect")
        if rect.get("height") == "12.0" and rect.get("x") == f"{LEFT:.1f}"
    ]
    lengths = torch.tensor([float(row.get("width")) for row in rows])
    shares = token_shares(LOGITS, 0.7, 5)[:SHOWN]
    torch.testing.assert_close(lengths / lengths.sum(), shares.float(), rtol=0, atol=2e-4)
    assert (lengths[5:] == 0).all()


def test_the_writer_is_given_what_the_controls_say():
    asked = []
    explorer = sampling_explorer(LOGITS, CHARACTERS, "so", lambda *setting: asked.append(setting) or "far")
    words = explorer.describe(temperature=0.5, top_k=3, top_p=0.9, seed=2)
    assert asked == [(0.5, 3, 0.9, 2)]
    assert "After “so” it writes “far”." in words
    explorer.describe()
    assert asked[-1] == (1.0, None, 1.0, 0)


def test_without_a_writer_the_drawn_character_is_one_that_may_be_drawn():
    for seed in SEEDS:
        _, words = draw(LOGITS, CHARACTERS, "", None, 1.0, 3, 1.0, seed)
        assert words.split("writes “")[1].split("”")[0] in ("space", "line end", "tab")
    _, words = draw(LOGITS.flip(0), CHARACTERS[::-1], "", None, 0.0, EVERYTHING, 1.0, 0)
    assert "1 of 25 characters may be drawn: space 100 %." in words


def test_entropy_is_that_of_a_fair_die():
    assert entropy(torch.full((6,), 1 / 6)) == pytest.approx(math.log(6))
    assert entropy(torch.tensor([1.0, 0.0])) == 0


def test_long_text_stays_in_its_box():
    image, _ = draw(LOGITS, CHARACTERS, "p" * 300, lambda *_: "w" * 900, 1.0, EVERYTHING, 1.0, 0)
    lines = [text for text in ElementTree.fromstring(image).iter(f"{SVG}text") if "ww" in (text.text or "")]
    assert 0 < len(lines) <= 5
    assert all(float(line.get("y")) < HEIGHT for line in lines)


def test_line_ends_are_drawn_as_line_ends_and_read_as_spaces():
    image, words = draw(LOGITS, CHARACTERS, "so", lambda *_: "far\nand on", 1.0, EVERYTHING, 1.0, 0)
    texts = [text.text for text in ElementTree.fromstring(image).iter(f"{SVG}text")]
    assert texts[-2:] == ["so▸far", "and on"]
    assert "writes “far and on”" in words


def test_as_many_characters_as_logits_are_needed():
    with pytest.raises(ValueError, match="`characters` must name each of the 25 logits, got 2"):
        sampling_explorer(LOGITS, ["a", "b"])


def test_the_still_form_says_the_same_in_words():
    explorer = sampling_explorer(LOGITS, CHARACTERS, "so")
    still = explorer.still()
    assert explorer.describe() in still["text/plain"]
    assert "<img alt=" in still["text/html"]
