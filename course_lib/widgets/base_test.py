"""The frame of every explorer: real controls, a picture that follows, a still form for when nobody is there."""

import ast
import base64
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ipywidgets
import pytest

from course_lib import frontend
from course_lib.widgets import Choice, Explorer, Slider, Toggle, base

LETTER = 0.6  # em: a letter's width in the mean, generously; Chromium's default font takes 0.52

CONTROLS = {
    "size": Slider("Size", 1.0, 0.0, 5.0),
    "scale": Slider("Scale", 2.0, 0.25, 8.0, logarithmic=True),
    "width": Choice("Width", 64, [2, 64, 1024]),
    "divide": Toggle("divide", True),
}


def draw(size, scale, width, divide):
    text = f"size {size:g}, scale {scale:g}, width {width}, divide {divide}, 1 < 2"
    return f"<svg xmlns='http://www.w3.org/2000/svg'><!-- {size:g} --></svg>", text


def parts_of(widget: ipywidgets.Widget) -> list[Any]:
    parts: list[Any] = [widget]
    for child in getattr(widget, "children", ()):
        parts += parts_of(child)
    return parts


KEYBOARD_OPERABLE = (
    ipywidgets.FloatSlider,
    ipywidgets.FloatLogSlider,
    ipywidgets.SelectionSlider,
    ipywidgets.Checkbox,
    ipywidgets.Button,
)


def controls_of(widget) -> dict[str, Any]:
    return {part.description: part for part in parts_of(widget) if isinstance(part, KEYBOARD_OPERABLE)}


def words_of(widget) -> str:
    (words,) = (part for part in parts_of(widget) if "aria-live" in str(getattr(part, "value", "")))
    return words.value


def test_every_control_is_a_labeled_native_widget_at_its_starting_value():
    controls = controls_of(Explorer("Title", CONTROLS, draw).widget())
    assert {label: getattr(control, "value", None) for label, control in controls.items()} == {
        "Size": 1.0,
        "Scale": 2.0,
        "Width": 64,
        "divide": True,
        "Start again": None,
    }
    assert (controls["Scale"].base ** controls["Scale"].min, controls["Size"].max) == (0.25, 5)


def test_moving_a_control_changes_picture_and_words():
    widget = Explorer("Title", CONTROLS, draw).widget()
    controls_of(widget)["Size"].value = 3.5
    controls_of(widget)["Width"].value = 1024
    assert "size 3.5, scale 2, width 1024, divide True, 1 &lt; 2" in words_of(widget)
    assert any("<!-- 3.5 -->" in str(getattr(part, "value", "")) for part in parts_of(widget))


def test_start_again_restores_every_control():
    widget = Explorer("Title", CONTROLS, draw).widget()
    before = words_of(widget)
    controls_of(widget)["Size"].value = 4
    controls_of(widget)["divide"].value = False
    assert words_of(widget) != before
    controls_of(widget)["Start again"].click()
    assert words_of(widget) == before


def test_the_still_form_holds_the_picture_and_its_words():
    still = Explorer("A title", CONTROLS, draw).still()
    assert still["text/plain"] == "A title. size 1, scale 2, width 64, divide True, 1 < 2"
    assert 'alt="size 1, scale 2, width 64, divide True, 1 &lt; 2"' in still["text/html"]
    data = re.search(r"base64,([^\"]*)", still["text/html"])
    assert data is not None
    assert base64.b64decode(data[1]).decode().startswith("<svg")


@pytest.fixture
def shown(monkeypatch):
    published = []
    monkeypatch.setattr(base, "display", lambda item, raw=False: published.append(item))
    return published


def test_with_a_reader_at_a_notebook_the_live_form_is_shown(monkeypatch, shown):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.setattr(frontend, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    Explorer("Title", CONTROLS, draw)._ipython_display_()
    assert isinstance(shown[0], ipywidgets.VBox)


@pytest.mark.parametrize(
    ("grading", "shell"),
    [("autograde", SimpleNamespace(kernel=object())), ("", SimpleNamespace()), ("", None)],
    ids=["nbgrader runs the notebook", "a terminal", "a script"],
)
def test_without_a_reader_the_still_form_is_shown(monkeypatch, shown, grading, shell):
    monkeypatch.setenv("NBGRADER_EXECUTION", grading)
    monkeypatch.setattr(frontend, "get_ipython", lambda: shell)
    explorer = Explorer("Title", CONTROLS, draw)
    explorer._ipython_display_()
    assert shown == [explorer.still()]


def too_long(source: str) -> list[str]:
    """Return the labels of sliders in a module's text that would be cut off."""
    width = float(base.LABEL_WIDTH.removesuffix("em"))
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    firsts = [call.args[0] for call in calls if getattr(call.func, "id", "") in {"Slider", "Choice"}]
    labels = [first.value for first in firsts if isinstance(first, ast.Constant)]
    return [label for label in labels if len(str(label)) * LETTER > width]


def test_no_label_of_a_slider_is_cut_off():
    assert too_long('Slider("Features of every head", 1, 0, 2)') == ["Features of every head"]
    modules = [path for path in Path(base.__file__).parent.glob("*.py") if not path.stem.endswith("_test")]
    assert {path.name: cut for path in modules if (cut := too_long(path.read_text(encoding="utf-8")))} == {}
