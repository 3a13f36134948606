"""The frame that every explorer shares: named controls, a pure drawing function, a picture and its words.

An explorer is data: controls by name, and a function that takes their values as keywords and returns an SVG
picture and a text that says the same. Controls are native widgets, so the Tab and arrow keys reach all of them.
"""

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import ipywidgets
from IPython.display import display

from course_lib.frontend import interactive

Draw = Callable[..., tuple[str, str]]
LABEL_WIDTH, CONTROL_WIDTH = "11em", "26em"
WORDS_STYLE = "max-width:60em;line-height:1.4;margin:0"
FRAME = "explorer"
# A slider's value is shown whole; ipywidgets would cut it at 72 pixels.
READOUTS = f"<style>.{FRAME} .widget-readout {{ flex: none; min-width: 72px; max-width: none }}</style>"


@dataclass(frozen=True)
class Slider:
    """A number between two ends; with `logarithmic` each step multiplies by the same factor."""

    label: str
    value: float
    low: float
    high: float
    step: float = 0.1
    logarithmic: bool = False

    def widget(self, **common: Any) -> ipywidgets.ValueWidget:
        """Make the control."""
        if self.logarithmic:
            # ipywidgets takes the ends of this slider as exponents of its base, 2.
            ends = {"min": math.log2(self.low), "max": math.log2(self.high), "step": self.step, "base": 2}
            return ipywidgets.FloatLogSlider(value=self.value, readout_format=",.3r", **ends, **common)
        digits = ".0f" if float(self.step).is_integer() else ".2f"
        return ipywidgets.FloatSlider(
            value=self.value, min=self.low, max=self.high, step=self.step, readout_format=digits, **common
        )


@dataclass(frozen=True)
class Choice:
    """One of several values in an order, moved through like a slider."""

    label: str
    value: Any
    options: Sequence[Any]

    def widget(self, **common: Any) -> ipywidgets.ValueWidget:
        """Make the control."""
        return ipywidgets.SelectionSlider(value=self.value, options=list(self.options), **common)


@dataclass(frozen=True)
class Toggle:
    """A statement that is on or off."""

    label: str
    value: bool

    def widget(self, **common: Any) -> ipywidgets.ValueWidget:
        """Make the control."""
        return ipywidgets.Checkbox(value=self.value, indent=True, **common)


class Explorer:
    """Show a picture that follows controls; without a reader at the controls, a still picture with its words."""

    def __init__(self, title: str, controls: Mapping[str, Slider | Choice | Toggle], draw: Draw) -> None:
        self.title = title
        self.controls = dict(controls)
        self.draw = draw

    @property
    def start(self) -> dict[str, Any]:
        """Return the values at which the controls start."""
        return {name: control.value for name, control in self.controls.items()}

    def describe(self, **changes: Any) -> str:
        """Say in words what the picture shows, at the start or with some values changed."""
        return self.draw(**{**self.start, **changes})[1]

    def widget(self) -> ipywidgets.Widget:
        """Build the live form: controls, picture, and the words in a region that screen readers announce."""
        widgets = {
            name: control.widget(
                description=control.label,
                style={"description_width": LABEL_WIDTH},
                layout={"width": CONTROL_WIDTH},
            )
            for name, control in self.controls.items()
        }
        image, words = ipywidgets.HTML(), ipywidgets.HTML()

        def redraw(_: Any = None) -> None:
            svg, text = self.draw(**{name: widget.value for name, widget in widgets.items()})
            image.value = svg
            words.value = f"<p role='status' aria-live='polite' style='{WORDS_STYLE}'>{escape(text)}</p>"

        def restart(_: Any) -> None:
            for name, value in self.start.items():
                widgets[name].value = value

        for widget in widgets.values():
            widget.observe(redraw, names="value")
        reset = ipywidgets.Button(description="Start again", layout={"margin": f"0 0 0 {LABEL_WIDTH}"})
        reset.on_click(restart)
        redraw()
        panel = ipywidgets.VBox([*widgets.values(), reset])
        row = ipywidgets.HBox([panel, image], layout={"flex_flow": "row wrap", "align_items": "center"})
        heading = ipywidgets.HTML(f"{READOUTS}<b>{escape(self.title)}</b>")
        return ipywidgets.VBox([heading, row, words]).add_class(FRAME)

    def still(self) -> dict[str, str]:
        """Build the form without controls: a picture with its words, in HTML and in plain text."""
        svg, text = self.draw(**self.start)
        data = base64.b64encode(svg.encode()).decode()
        page = (
            f"<p><b>{escape(self.title)}</b></p>"
            f'<img alt="{escape(text)}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'
            f"<p>{escape(text)}</p>"
        )
        return {"text/html": page, "text/plain": f"{self.title}. {text}"}

    def _ipython_display_(self) -> None:
        if interactive():
            display(self.widget())
        else:
            display(self.still(), raw=True)
