"""Plots that can be read without color, with words attached."""

import base64
import html
import re
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

from course_lib import plots
from course_lib.colors import LEAST_CONTRAST, contrast
from course_lib.plots import attention_map, bar_plot, describe, image_html, line_plot, panels, show

WEIGHTS = np.array([[0.7, 0.2, 0.1], [0.05, 0.15, 0.8]])
MASK = np.array([[False, False, True], [False, False, False]])


def numbers_of(ax: Axes):
    return [text.get_text() for text in ax.texts]


def test_every_visible_cell_holds_its_number_in_readable_ink():
    ax = attention_map(WEIGHTS, ["w1", "w2"], ["a", "b", "c"])
    assert numbers_of(ax) == [f"{weight:.2f}" for weight in WEIGHTS.flatten()]
    shades = ax.images[0].cmap
    for text, weight in zip(ax.texts, WEIGHTS.flatten(), strict=True):
        assert contrast(text.get_color(), shades(float(weight))) >= LEAST_CONTRAST
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["w1", "w2"]


def test_a_hidden_cell_is_hatched_and_holds_no_number():
    ax = attention_map(WEIGHTS, mask=MASK)
    assert "0.10" not in numbers_of(ax)
    (patch,) = (patch for patch in ax.patches if isinstance(patch, Rectangle))
    assert patch.get_hatch()
    assert patch.get_xy() == (1.5, -0.5)


def test_numbers_fit_into_the_cells_of_a_small_plot():
    ax = attention_map(np.eye(8), ax=panels(2, width=2.5, height=2.2)[1])
    cell = ax.get_window_extent().width / 8
    ax.get_figure(root=True).canvas.draw()
    assert max(text.get_window_extent().width for text in ax.texts) <= cell


def test_a_large_map_shows_a_scale_instead_of_numbers():
    ax = attention_map(np.eye(40))
    assert not ax.texts
    assert len(ax.figure.axes) == 2


def test_two_curves_differ_in_marker_and_line_and_carry_their_names():
    ax = line_plot([1, 2, 3], {"first": [1, 2, 3], "second": [3, 2, 1]}, "step", "loss")
    first, second = ax.lines
    assert first.get_marker() != second.get_marker()
    assert first.get_linestyle() != second.get_linestyle()
    assert {"first", "second"} <= set(numbers_of(ax))
    assert ax.get_legend() is None


def test_names_of_curves_that_end_together_do_not_overlap():
    ax = line_plot([1, 2], {name: [index, 1] for index, name in enumerate(["a", "b", "c", "d"])}, "x", "y")
    names = [text for text in ax.texts if isinstance(text, Annotation)]
    heights = sorted(float(name.xyann[1]) for name in names)  # all measured from the same last point
    assert len(heights) == 4
    assert all(upper - lower >= plots.SMALL_SIZE for lower, upper in pairwise(heights))


def test_a_logarithmic_axis_names_the_values_it_was_given():
    ax = line_plot([4, 64, 1024], {"std": [2, 8, 32]}, "d_k", "std", log_x=True, log_y=True)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["4", "64", "1024"]


def test_a_curve_with_a_gap_is_drawn_and_named():
    ax = line_plot([1, 2, 3], {"gap": [1, np.nan, np.nan], "nothing": [np.nan] * 3}, "x", "y")
    assert "gap" in numbers_of(ax)


def test_bars_differ_in_hatching_and_carry_their_values():
    ax = bar_plot({"with": 1.0, "without": 0.321, "chance": 0.1}, "accuracy", digits=2)
    bars = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert len({bar.get_hatch() for bar in bars}) == 3
    assert numbers_of(ax) == ["1", "0.32", "0.1"]


def test_a_plot_tells_its_title_and_its_content():
    ax = attention_map(WEIGHTS, ["w1", "w2"], ["a", "b", "c"], title="Two words")
    assert describe(ax).startswith("Two words. Attention weights of 2 queries over 3 keys. Query 'w1'")


def test_a_figure_tells_all_its_plots():
    left, right = panels(2)
    bar_plot({"one": 1.0}, "points", ax=left)
    line_plot([1, 2], {"curve": [1, 2]}, "x", "y", ax=right)
    told = describe(left.figure)
    assert "Bars of points: one 1." in told
    assert "curve: 1 at the start, 2 at the end." in told


def test_the_image_carries_the_text_and_is_sharp():
    ax = bar_plot({'a "b" <c>': 1.0}, "points")
    page = image_html(ax.get_figure(root=True), describe(ax))
    match = re.fullmatch(r'<img alt="([^"]*)" width="(\d+)" .* src="data:image/png;base64,([^"]*)">', page)
    assert match is not None
    assert html.unescape(match[1]) == describe(ax)
    png = base64.b64decode(match[3])
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") // int(match[2]) == plots.SHARPNESS


def test_outside_a_notebook_a_plot_shows_as_its_text(capsys):
    show(bar_plot({"one": 1.0}, "points"))
    assert capsys.readouterr().out == "Bars of points: one 1.\n"


def test_in_a_notebook_the_image_and_its_text_are_published(monkeypatch):
    published = []
    monkeypatch.setattr(plots, "get_ipython", lambda: object())
    monkeypatch.setattr(plots, "display", lambda bundle, raw: published.append(bundle))
    show(bar_plot({"one": 1.0}, "points"), "One bar.")
    assert published[0]["text/plain"] == "One bar."
    assert published[0]["text/html"].startswith('<img alt="One bar."')


def test_a_picture_without_words_is_refused():
    with pytest.raises(ValueError, match="`text` is missing"):
        show(Figure())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: line_plot([1, 2], {}, "x", "y"), "`series` is empty"),
        (lambda: line_plot([1, 2], {"short": [1]}, "x", "y"), r"Curve 'short' has shape \(1,\)"),
        (lambda: line_plot([], {"none": []}, "x", "y"), "Curve 'none'"),
        (lambda: bar_plot({}, "y"), "`values` is empty"),
        (lambda: attention_map(np.zeros(3)), "`weights` must be one"),
    ],
)
def test_data_that_cannot_be_drawn_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
