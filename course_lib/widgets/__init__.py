"""Explorers: pictures whose numbers follow sliders, with words for those who do not see them."""

from course_lib.widgets.attention import attention_explorer
from course_lib.widgets.base import Choice, Explorer, Slider, Toggle
from course_lib.widgets.depth import depth_explorer
from course_lib.widgets.feed_forward import feed_forward_explorer
from course_lib.widgets.heads import head_switches, head_viewer
from course_lib.widgets.mask_grid import mask_grid
from course_lib.widgets.norm_flow import show_norm_flow
from course_lib.widgets.positions import position_explorer
from course_lib.widgets.shapes import shape_flow_explorer

__all__ = [
    "Choice",
    "Explorer",
    "Slider",
    "Toggle",
    "attention_explorer",
    "depth_explorer",
    "feed_forward_explorer",
    "head_switches",
    "head_viewer",
    "mask_grid",
    "position_explorer",
    "shape_flow_explorer",
    "show_norm_flow",
]
