"""The drawn shapes are those that the real layer makes."""

from xml.etree import ElementTree

import pytest
import torch

from course_lib.multi_head import MultiHeadAttention, merge_heads, split_heads
from course_lib.tensor_attention import tensor_attention
from course_lib.widgets.shapes import draw, shape_flow_explorer, stages

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"batch": 3, "sequence": 5, "heads": 4, "d_head": 2}


def test_every_stage_has_the_shape_of_the_real_tensor():
    x = torch.randn(3, 5, 8)
    layer = MultiHeadAttention(8, 4)
    query, key, value = (split_heads(linear(x), 4) for linear in (layer.w_q, layer.w_k, layer.w_v))
    output, weights = tensor_attention(query, key, value)
    cut = layer.w_q(x).unflatten(-1, (4, 2))
    real = [x, layer.w_q(x), cut, query, weights, output, merge_heads(output), layer(x, x, x)[0]]
    assert [tuple(stage.axes.values()) for stage in stages(**SIZES)] == [tuple(tensor.shape) for tensor in real]


@pytest.mark.parametrize("sizes", [SIZES, {"batch": 8, "sequence": 16, "heads": 12, "d_head": 128}])
def test_the_picture_writes_every_axis_and_the_words_say_the_same(sizes):
    image, words = draw(**sizes)
    root = ElementTree.fromstring(image)
    written = [element.text for element in root.iter(f"{SVG}text")]
    for stage in stages(**sizes):
        assert stage.made_by in written
        assert all(f"{name} {size}" in written for name, size in stage.axes.items())
        assert stage.words() in words
    assert root.findtext(f"{SVG}desc") == words


def test_more_heads_of_the_same_total_width_keep_the_parameters():
    explorer = shape_flow_explorer()
    count = "The layer has 4,224 parameters."
    assert explorer.describe(heads=4, d_head=8).endswith(count)
    assert explorer.describe(heads=8, d_head=4).endswith(count)
