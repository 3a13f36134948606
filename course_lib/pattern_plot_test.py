"""The gallery says in words what it shows, and draws one picture for each pattern and depth."""

import pytest
import torch

from course_lib.efficient.sparse import receptive_field, sliding_window_mask
from course_lib.pattern_plot import pattern_gallery


def test_every_pattern_is_drawn_at_every_depth_and_told_in_words():
    window = sliding_window_mask(8, 2)
    figure, words = pattern_gallery({"window": window, "all": torch.zeros(8, 8, dtype=torch.bool)}, (1, 3))
    assert len(figure.axes) == 4
    drawn = torch.tensor(figure.axes[2].images[0].get_array().tolist()).bool()
    assert torch.equal(drawn, receptive_field(window, 3))
    share = receptive_field(window, 3).float().mean().item()
    assert f"window: 1.9 keys a query, 23% after 1 layer, {share:.0%} after 3 layers." in words
    assert "all: 8.0 keys a query, 100% after 1 layer" in words


def test_an_empty_gallery_is_refused():
    with pytest.raises(ValueError, match="A gallery needs patterns and layers, got 0 and 1 of them"):
        pattern_gallery({}, (1,))
