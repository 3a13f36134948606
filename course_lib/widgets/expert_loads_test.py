"""The explorer of expert loads draws and tells the shares that were recorded, step by step."""

from xml.etree import ElementTree

import pytest

from course_lib.widgets.expert_loads import BARS, WIDTH, expert_loads_explorer

SVG = "{http://www.w3.org/2000/svg}"
STEPS = (0, 10, 250)
RUNS = {
    "no balance loss": [[0.3, 0.3, 0.4], [0.0, 0.2, 0.8], [0.0, 0.0, 1.0]],
    "weight 0.1": [[0.3, 0.3, 0.4], [0.4, 0.3, 0.3], [0.34, 0.33, 0.33]],
}


@pytest.fixture
def explorer():
    return expert_loads_explorer(RUNS, STEPS)


@pytest.mark.parametrize("step", STEPS)
def test_bars_are_as_high_as_the_loads_and_words_tell_the_busiest(explorer, step):
    image, words = explorer.draw(step=step)
    root = ElementTree.fromstring(image)
    assert root.findtext(f"{SVG}desc") == words
    heights = [float(bar.get("height")) for bar in root.iter(f"{SVG}rect")][1:]
    wanted = [BARS * load for rows in RUNS.values() for load in rows[STEPS.index(step)]]
    assert heights == pytest.approx(wanted, abs=0.06)
    for rows in RUNS.values():
        assert f"{100 * max(rows[STEPS.index(step)]):.0f} %" in words


def test_words_count_the_experts_that_get_nothing(explorer):
    assert explorer.describe(step=10).count("1 expert gets nothing") == 1
    last = explorer.describe()
    assert last.startswith("After 250 steps. No balance loss: expert 2 gets the most, 100 %; 2 experts get nothing")
    assert "Weight 0.1: expert 0 gets the most, 34 %; every expert gets some; even would be 33.3 % each." in last


def test_everything_lies_inside_the_picture(explorer):
    root = ElementTree.fromstring(explorer.draw(step=250)[0])
    height = float(root.get("viewBox").split()[-1])
    for text in root.iter(f"{SVG}text"):
        assert 0 < float(text.get("x")) < WIDTH
        assert 0 < float(text.get("y")) < height


def test_no_number_is_crossed_by_the_line_of_an_even_load():
    loads = [[share, 1 - share] + [0.0] * 6 for share in (0.0, 0.03, 0.06, 0.09, 0.125, 0.15, 0.3)]
    explorer = expert_loads_explorer({"one": loads}, range(len(loads)))
    for step in range(len(loads)):
        root = ElementTree.fromstring(explorer.draw(step=step)[0])
        (even,) = (float(line.get("y1")) for line in root.iter(f"{SVG}line") if line.get("stroke-dasharray"))
        numbers = [text for text in root.iter(f"{SVG}text") if (text.text or "").endswith(" %")]
        above_bars = [float(text.get("y")) for text in numbers if text.get("text-anchor") == "middle"]
        assert len(above_bars) == 8
        assert not [y for y in above_bars if y - 8 < even < y]  # digits of size 11 are 8 pixels high


def test_the_slider_goes_through_the_recorded_steps(explorer):
    assert explorer.controls["step"].options == STEPS
    assert explorer.start == {"step": 250}
    assert explorer.describe() in explorer.still()["text/plain"]


@pytest.mark.parametrize(
    ("runs", "steps", "message"),
    [
        ({}, STEPS, "must not be empty"),
        (RUNS, (0, 10), "3 rows under 'no balance loss'; there are 2 steps"),
        ({"one": [[1.0], [0.5, 0.5]]}, (0, 1), "the same number of experts"),
    ],
)
def test_records_that_do_not_fit_are_refused(runs, steps, message):
    with pytest.raises(ValueError, match=message):
        expert_loads_explorer(runs, steps)
