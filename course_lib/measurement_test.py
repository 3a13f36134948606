from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex

from course_lib import plots
from course_lib.measurement import Comparison, Measurement, seconds_text

EXACT = 1e-12
FALSE_ALARMS = 0.01  # what `differs` promises for two equal functions with 7 samples each


def measurement(*samples, calls=10, device="a bench, 1 thread"):
    return Measurement(samples=samples, calls=calls, device=device)


def comparison(a, b, size=1024):
    return Comparison(("a", "b"), (size,), {("a", size): measurement(*a), ("b", size): measurement(*b)})


def growing(sizes=(128, 256, 512)):
    def samples(scale, size):
        return measurement(*(scale * size * noise for noise in (0.97, 0.99, 1.0, 1.02, 1.05)))

    scales = {"naive": 3e-6, "blocked": 1e-6, "linear": 1.02e-6}
    return Comparison(
        tuple(scales),
        tuple(sizes),
        {(name, size): samples(scale, size) for name, scale in scales.items() for size in sizes},
    )


def test_median_and_spread_are_those_of_a_sorted_list_read_by_hand():
    one = measurement(5.0, 1.0, 3.0, 2.0, 40.0)
    assert one.median == 3.0
    assert one.quartiles == (2.0, 5.0)
    assert one.spread == 3.0


def test_a_single_sample_has_no_spread():
    assert measurement(2.0).spread == 0.0


def test_one_measurement_is_told_in_one_line():
    text = measurement(0.0012, 0.0012, 0.0014, calls=1).text()
    assert text == "1.2 ms per call (median of 3 samples of 1 call, spread 100 µs) on a bench, 1 thread"
    assert str(measurement(0.0012, 0.0012, 0.0014, calls=1)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ns"),
        (2.5e-9, "2.5 ns"),
        (3.21e-6, "3.21 µs"),
        (0.0456, "45.6 ms"),
        (7, "7 s"),
        (1234, "1,234 s"),
    ],
)
def test_a_duration_is_written_in_the_unit_that_suits_it(seconds, text):
    assert seconds_text(seconds) == text


@pytest.mark.parametrize("pair", [("a", "b"), ("b", "a")])
def test_the_verdict_names_the_faster_first_whichever_is_asked_first(pair):
    told = comparison([1, 1, 1, 1, 1], [3.1, 3.1, 3.1, 3.1, 3.1]).verdict(1024, *pair)
    assert told == "a is 3.1 times as fast as b at 1024"


def test_a_difference_as_large_as_both_spreads_together_is_still_noise():
    a, b = [9.0, 9.5, 10.0, 10.5, 11.0], [11.0, 11.5, 12.0, 12.5, 13.0]
    at_the_edge = comparison(a, b)
    assert at_the_edge.at("b", 1024).median - at_the_edge.at("a", 1024).median == 2.0
    assert at_the_edge.at("a", 1024).spread + at_the_edge.at("b", 1024).spread == 2.0
    assert at_the_edge.verdict(1024, "a", "b") == "no difference between a and b beyond the noise at 1024"
    beyond = comparison(a, [seconds + 0.1 for seconds in b])
    assert beyond.verdict(1024, "a", "b") == "a is 1.21 times as fast as b at 1024"


def test_one_slow_outlier_hides_no_difference():
    assert comparison([1.0, 1.0, 1.1, 1.0, 90.0], [2.0, 2.0, 2.1, 2.0, 2.0]).differs(1024, "a", "b")


def test_few_samples_are_never_called_a_difference():
    few = comparison([1.0, 1.0], [9.0, 9.0])
    assert not few.differs(1024, "a", "b")
    assert few.verdict(1024, "a", "b") == "too few samples to compare a and b at 1024: 2, not 5 or more"


@pytest.mark.parametrize("skew", [False, True])
def test_equal_functions_seem_to_differ_less_often_than_promised(skew):
    noise = np.random.default_rng(0).standard_normal((2000, 2, 7)) / 10
    draws = np.exp(8 * noise) if skew else 1 + noise
    alarms = [comparison(a, b).differs(1024, "a", "b") for a, b in draws]
    assert 0 < np.mean(alarms) < FALSE_ALARMS


def test_a_real_difference_of_four_sigmas_is_nearly_always_seen():
    noise = np.random.default_rng(0).standard_normal((500, 2, 7)) / 10
    seen = [comparison(1 + a, 1.4 + b).differs(1024, "a", "b") for a, b in noise]
    assert np.mean(seen) > 0.9


def test_rows_hold_each_function_at_each_size_once():
    rows = growing().rows()
    assert [(row["size"], row["function"]) for row in rows] == [
        (size, name) for size in (128, 256, 512) for name in ("naive", "blocked", "linear")
    ]
    assert rows[0] == {
        "size": 128,
        "function": "naive",
        "seconds": pytest.approx(3e-6 * 128, rel=EXACT),
        "spread": pytest.approx(3e-6 * 128 * 0.03, rel=EXACT),
        "samples": 5,
        "calls": 10,
        "device": "a bench, 1 thread",
    }


def test_the_text_ranks_by_time_and_gives_each_neighbor_a_verdict():
    lines = growing((100,)).text().splitlines()
    assert lines[0] == "Seconds per call on a bench, 1 thread: median ± half the interquartile range."
    assert lines[1] == "At 100: blocked 100 ± 1.5 µs, linear 102 ± 1.53 µs, naive 300 ± 4.5 µs."
    assert lines[2].strip() == "no difference between blocked and linear beyond the noise at 100."
    assert lines[3].strip() == "linear is 2.94 times as fast as naive at 100."
    assert str(growing()) == growing().text()


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("flash", 128, "'flash' was measured; measured: naive, blocked"),
        ("naive", 7, "Size 7 .* 128, 256, 512"),
    ],
)
def test_asking_for_what_was_not_measured_says_what_was(name, size, message):
    with pytest.raises(KeyError, match=message):
        growing().at(name, size)


@pytest.fixture
def ax():
    return growing().plot(xlabel="sequence length")


def test_the_plot_has_logarithmic_axes_with_names(ax):
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("sequence length", "seconds per call")
    assert ax.get_title(loc="left") == "a bench, 1 thread"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["128", "256", "512"]


def curves_of(ax):
    return [line for line in ax.lines if line.get_linestyle() != "None"]


def test_curves_hold_the_medians_and_differ_in_marker_and_style_not_only_in_color(ax):
    curves = curves_of(ax)
    assert [list(curve.get_ydata()) for curve in curves] == [
        pytest.approx([scale * size for size in (128, 256, 512)]) for scale in (3e-6, 1e-6, 1.02e-6)
    ]
    assert len({curve.get_marker() for curve in curves}) == 3
    assert len({curve.get_linestyle() for curve in curves}) == 3


def test_error_bars_reach_from_quartile_to_quartile_in_the_color_of_their_curve(ax):
    bars = ax.containers[0].lines[2][0]
    assert np.array(bars.get_segments())[:, :, 1] == pytest.approx(
        np.array([[3e-6 * size * 0.99, 3e-6 * size * 1.02] for size in (128, 256, 512)])
    )
    assert to_hex(bars.get_color()[0]) == to_hex(curves_of(ax)[0].get_color())


def test_a_wide_error_bar_stays_inside_the_plot():
    wide = measurement(1e-6, 1e-6, 1e-4, 1e-2, 1e-2)
    ax = Comparison(("a",), (4, 8), {("a", 4): wide, ("a", 8): wide}).plot()
    low, high = ax.get_ylim()
    assert low < wide.quartiles[0] < wide.quartiles[1] < high


def test_each_curve_is_labeled_at_its_end_and_no_label_covers_another(ax):
    ax.figure.canvas.draw()
    assert sorted(text.get_text() for text in ax.texts) == ["blocked", "linear", "naive"]
    assert {text.xy[0] for text in ax.texts} == {512}
    boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
    assert all(lower.y0 + lower.height / 2 < upper.y0 for lower, upper in pairwise(boxes))


def test_the_plot_draws_into_the_axes_given():
    mine = plots.panels()[0]
    assert growing().plot(mine) is mine


def test_the_plot_has_a_text_alternative(ax):
    assert "naive" in plots.describe(ax)


def test_a_plot_of_sizes_that_are_no_numbers_is_refused():
    named = Comparison(("a",), ("small",), {("a", "small"): measurement(1.0)})
    with pytest.raises(ValueError, match="positive numbers; got \\['small'\\]"):
        named.plot()
