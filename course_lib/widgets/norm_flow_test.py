"""The drawing of both orders: the parts stand in the order of the formulas, and the words say the same."""

from xml.etree import ElementTree

import pytest

from course_lib.widgets.norm_flow import FORMULAS, ORDERS, TITLE, WORDS, norm_flow, show_norm_flow

SVG = "{http://www.w3.org/2000/svg}"


def written():
    """Read every text of the picture with its place."""
    texts = ElementTree.fromstring(norm_flow()).iter(f"{SVG}text")
    return [(text.text, float(text.get("x")), float(text.get("y"))) for text in texts]


@pytest.mark.parametrize("order", ORDERS)
def test_parts_stand_from_the_input_up_to_the_output_in_their_order(order):
    center = next(x for text, x, _ in written() if text == order)
    names = {"+": "sum", "norm": "norm", "sublayer": "sublayer"}
    column = sorted(((y, names[text]) for text, x, y in written() if x == center and text in names), reverse=True)
    assert tuple(name for _, name in column) == ORDERS[order]
    assert FORMULAS[order] in [text for text, _, _ in written()]


def test_picture_carries_its_words_for_those_who_do_not_see_it():
    picture = ElementTree.fromstring(norm_flow())
    assert picture.get("aria-label") == f"{TITLE}. {WORDS}"


def test_outside_a_notebook_the_words_are_printed(capsys):
    show_norm_flow()
    assert capsys.readouterr().out.strip() == f"{TITLE}. {WORDS}"
