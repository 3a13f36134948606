"""The depth explorer: its curves and words are what the stacks measure, at every setting."""

import itertools
import math
from xml.etree import ElementTree

import pytest

from course_lib.models.deep_signals import measure_signals
from course_lib.widgets import depth
from course_lib.widgets.depth import KINDS, SHOWN, depth_explorer, draw, signals

SVG = "{http://www.w3.org/2000/svg}"


def drawn_points(image):
    """Read the points of every curve."""
    curves = ElementTree.fromstring(image).iter(f"{SVG}polyline")
    return [[tuple(map(float, pair.split(","))) for pair in curve.get("points").split()] for curve in curves]


@pytest.mark.parametrize("shown", SHOWN)
def test_words_tell_both_ends_of_every_measured_curve(shown):
    _, words = draw(4, 1.0, shown)
    for kind in KINDS:
        numbers = getattr(measure_signals(kind, 4, 1.0), SHOWN[shown][0])
        first, last = _told(words, kind)
        assert first == pytest.approx(numbers[0], rel=0.06)
        assert last == pytest.approx(numbers[-1], rel=0.06) or numbers[-1] < depth.LOWEST


def _told(words, kind):
    told = next(part for part in words.rstrip(".").split(": ")[-1].split("; ") if part.startswith(kind))
    return [float(number.removeprefix("below ")) for number in told.removeprefix(f"{kind} ").split(" and ")]


def test_every_curve_is_drawn_with_one_point_per_input_and_higher_means_more():
    image, _ = draw(6, 1.0, "gradient")
    curves = drawn_points(image)
    assert [len(points) for points in curves] == [7] * len(KINDS)
    for kind, points in zip(KINDS, curves, strict=True):
        numbers = signals(kind, 6, 1.0).gradients
        order = sorted(range(7), key=lambda place: numbers[place])
        heights = [-points[place][1] for place in order]
        assert heights == sorted(heights)


def test_stack_that_overflows_is_said_to_and_its_curve_ends():
    image, words = draw(24, 4.0, "size")
    assert "no norm 1.4 and overflow" in words
    assert len(drawn_points(image)[KINDS.index("no norm")]) < 25
    assert "no norm (overflow)" in image


def test_every_setting_can_be_drawn_inside_the_picture():
    for num_layers, factor, shown in itertools.product((1, 3, 16), (0.25, 1.0, 4.0), SHOWN):
        image, words = draw(num_layers, factor, shown)
        assert "nan" not in words
        for x, y in itertools.chain.from_iterable(drawn_points(image)):
            assert depth.LEFT - 1 <= x <= depth.RIGHT + 1
            assert depth.TOP - 1 <= y <= depth.BOTTOM + 1


def test_curves_differ_in_dashes_as_well_as_in_color():
    image, _ = draw(2, 1.0, "gradient")
    curves = list(ElementTree.fromstring(image).iter(f"{SVG}polyline"))
    assert len({curve.get("stroke-dasharray") for curve in curves}) == len(KINDS)
    assert len({curve.get("stroke") for curve in curves}) == len(KINDS)


def test_explorer_starts_at_a_deep_stack_and_has_a_still_form():
    explorer = depth_explorer()
    assert explorer.start == {"num_layers": 24, "factor": 1.0, "shown": "gradient"}
    assert explorer.describe() in explorer.still()["text/plain"]
    assert math.isfinite(signals("pre-norm", 24, 1.0).gradients[0])
