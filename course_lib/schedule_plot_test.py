"""A drawn schedule says in words and in hatching who waits."""

import pytest
from matplotlib.patches import Rectangle

from course_lib.schedule_plot import describe_schedule, draw_schedule, show_schedule
from course_lib.training.pipeline import bubble_fraction, pipeline_schedule


def test_waiting_cells_are_hatched_and_working_ones_carry_their_microbatch():
    ticks = pipeline_schedule(3, 4)
    ax = draw_schedule(ticks, 3, "Three stages")
    cells = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert len(cells) == 3 * 6
    assert sum(cell.get_hatch() is not None for cell in cells) == 6
    assert sorted(text.get_text() for text in ax.texts) == sorted("0123" * 3)


def test_the_words_tell_the_bubble_and_every_stage():
    words = describe_schedule(pipeline_schedule(3, 4), 3)
    assert f"{bubble_fraction(3, 4):.0%}" in words
    assert "Stage 2 works from tick 2 to 5 on microbatches 0, 1, 2, 3." in words
    assert "Stage 1 never works." in describe_schedule([[(0, 0)]], 2)


def test_showing_prints_the_title_and_the_words_outside_a_notebook(capsys):
    show_schedule(pipeline_schedule(2, 1), 2, "Two stages")
    assert capsys.readouterr().out.startswith("Two stages. A schedule of 2 ticks for 2 stages; 2 of 4 cells wait, 50%.")


def test_a_stage_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="stage 2"):
        draw_schedule([[(2, 0)]], 2)
    with pytest.raises(ValueError, match="empty"):
        draw_schedule([], 2)
