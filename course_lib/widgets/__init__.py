"""Explorers: pictures whose numbers follow sliders, with words for those who do not see them."""

from course_lib.widgets.attention import attention_explorer
from course_lib.widgets.base import Choice, Explorer, Slider, Toggle

__all__ = ["Choice", "Explorer", "Slider", "Toggle", "attention_explorer"]
