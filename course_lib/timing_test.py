import numpy as np
import pytest
import torch

from course_lib import settings, timing


class Bench:
    """A false clock, and functions that move it on by known amounts and keep a diary."""

    def __init__(self):
        self.now = 0.0
        self.diary = []

    def clock(self):
        return self.now

    def function(self, name, *durations):
        """Make a function that takes the durations in turn, the last one for ever."""
        remaining = list(durations)

        def run(*_):
            self.diary.append(name)
            self.now += remaining.pop(0) if len(remaining) > 1 else remaining[0]

        return run


@pytest.fixture
def bench():
    return Bench()


@pytest.fixture(autouse=True)
def no_quick_variables(monkeypatch):
    for name in settings.QUICK_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def rounds_of(diary):
    """Drop repeated neighbors: what remains is the order in which functions took turns."""
    return [name for index, name in enumerate(diary) if index == 0 or diary[index - 1] != name]


def test_a_steady_function_takes_what_the_clock_says(bench):
    one = timing.measure(bench.function("steady", 0.25), clock=bench.clock, repeats=5, min_seconds=0)
    assert one.samples == (0.25,) * 5
    assert (one.median, one.spread, one.calls) == (0.25, 0.0, 1)


def test_a_slow_first_call_is_warm_up_and_not_counted(bench):
    slow_start = bench.function("loads a library", 100.0, 0.5)
    one = timing.measure(slow_start, clock=bench.clock, repeats=3, warmup=1, min_seconds=0)
    assert one.samples == (0.5, 0.5, 0.5)


def test_each_warm_up_call_that_is_asked_for_comes_before_the_first_look_at_the_clock(bench):
    looks = []

    def clock():
        looks.append(len(bench.diary))
        return bench.now

    timing.measure(bench.function("f", 1.0), clock=clock, repeats=1, warmup=4, min_seconds=0)
    assert looks[0] == 4


def test_short_calls_are_repeated_until_a_sample_lasts_long_enough(bench):
    one = timing.measure(bench.function("short", 0.001), clock=bench.clock, repeats=3, min_seconds=0.5)
    assert one.calls >= 500
    assert one.calls < 1000
    assert one.samples == pytest.approx((0.001,) * 3)


def test_a_long_call_is_made_once_per_sample(bench):
    assert timing.measure(bench.function("long", 2.0), clock=bench.clock, min_seconds=0.5).calls == 1


def test_a_clock_that_stands_still_ends_too(bench, monkeypatch):
    monkeypatch.setattr(timing, "MOST_CALLS", 50)
    one = timing.measure(bench.function("nothing", 0.0), clock=bench.clock, repeats=1)
    assert one.calls == 50


def test_functions_take_turns_and_every_second_round_is_reversed(bench):
    functions = {name: bench.function(name, 1.0) for name in ("a", "b", "c")}
    timing.compare(functions, [64], clock=bench.clock, repeats=4, warmup=0, min_seconds=0)
    assert rounds_of(bench.diary) == ["a", "b", "c", "b", "a", "b", "c", "b", "a"]


def test_a_machine_that_slows_down_slows_all_functions_alike(bench):
    """Measured one after the other, equal functions would differ by more than the noise here."""

    def tiring():
        bench.now += 1.0 + bench.now / 1000

    report = timing.compare({"a": lambda _: tiring(), "b": lambda _: tiring()}, [1], clock=bench.clock, min_seconds=0)
    assert report.verdict(1, "a", "b") == "no difference between a and b beyond the noise at 1"
    one_by_one = [timing.measure(tiring, clock=bench.clock, min_seconds=0) for _ in range(2)]
    assert one_by_one[1].median - one_by_one[0].median > one_by_one[0].spread


def test_the_first_sizes_samples_do_not_reach_the_second_size(bench):
    def linear(size):
        bench.now += size

    def square(size):
        bench.now += size**2

    report = timing.compare({"linear": linear, "square": square}, [2, 8], clock=bench.clock, repeats=5, min_seconds=0)
    assert [row["seconds"] for row in report.rows()] == [2, 4, 8, 64]
    assert report.verdict(8, "square", "linear") == "linear is 8 times as fast as square at 8"


def test_inputs_are_made_once_per_size_and_unpacked_only_when_a_tuple(bench):
    made = []

    def inputs(size):
        made.append(size)
        return torch.zeros(size, 2), torch.zeros(size)

    def function(matrix, vector):
        bench.now += matrix.shape[0] + vector.shape[0]

    report = timing.compare({"f": function}, (3, 5), inputs=inputs, clock=bench.clock, min_seconds=0)
    assert made == [3, 5]
    assert [row["seconds"] for row in report.rows()] == [6, 10]

    def one_tensor(matrix):
        bench.now += matrix.shape[0]

    single = timing.compare(
        {"f": one_tensor}, (3,), inputs=lambda size: torch.zeros(size, 2), clock=bench.clock, min_seconds=0
    )
    assert single.at("f", 3).median == 3


@pytest.mark.parametrize("variable", settings.QUICK_VARIABLES)
def test_a_quick_run_takes_two_samples_of_one_call(bench, monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    one = timing.measure(bench.function("f", 1e-6), clock=bench.clock, repeats=50, min_seconds=10)
    assert (len(one.samples), one.calls) == (2, 1)
    assert timing.measure(bench.function("f", 1e-6), clock=bench.clock, repeats=1).samples == pytest.approx((1e-6,))


def test_a_numpy_function_and_a_torch_function_are_measured_by_the_real_clock():
    """Says nothing about how long they take: only that time passes and the record is whole."""
    for array in (np.ones((8, 8)), torch.ones(8, 8)):
        one = timing.measure(lambda x: x @ x, array, repeats=3, min_seconds=0)
        assert len(one.samples) == 3
        assert min(one.samples) > 0
        assert one.device.endswith(", 1 thread")


def test_samples_run_on_the_threads_asked_for_and_the_setting_comes_back():
    before, seen = torch.get_num_threads(), []
    one = timing.measure(
        lambda: seen.append(torch.get_num_threads()), repeats=1, warmup=0, min_seconds=0, num_threads=2
    )
    assert set(seen) == {2}
    assert one.device.endswith(", 2 threads")
    assert torch.get_num_threads() == before


def test_the_device_is_that_of_the_first_tensor_wherever_it_hides():
    meta = torch.zeros(1, device="meta")
    assert timing._device_of([3, "x", {"deep": [meta]}, torch.zeros(1)]).type == "meta"
    assert timing._device_of([torch.nn.Linear(2, 2, device="meta")]).type == "meta"
    assert timing._device_of([np.zeros(1)]).type == "cpu"


def test_another_device_is_waited_for_before_each_look_at_the_clock(monkeypatch):
    waits = []
    monkeypatch.setattr(torch.accelerator, "synchronize", waits.append)
    clock = timing._clock_of(torch.device("mps"))
    assert clock() < clock()
    assert waits == [torch.device("mps")] * 2


def test_device_events_give_the_median_of_each_run_in_seconds(monkeypatch, bench):
    """The GPU's timer is played by a function with its signature: times come back in milliseconds."""
    asked = []

    def do_bench(function, warmup, rep, return_mode):
        asked.append((warmup, rep, return_mode))
        function()
        return [4.0, 2.0, 30.0]

    monkeypatch.setattr(timing, "_do_bench", lambda: do_bench)
    monkeypatch.setattr(timing, "device_name", lambda *_: "a GPU")
    functions = {"a": bench.function("a", 1.0), "b": bench.function("b", 1.0)}
    report = timing.compare(functions, [64], device="cuda", repeats=2, warmup=0, min_seconds=0.02)
    assert report.at("a", 64).samples == (0.004, 0.004)
    assert report.at("a", 64).calls == 3
    assert bench.diary == ["a", "b", "b", "a"]
    assert asked == [(20, 20, "all")] * 4


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"repeats": 0}, "repeats must be at least 1; got 0"),
        ({"warmup": -1}, "warmup must be at least 0; got -1"),
        ({"num_threads": 0}, "num_threads must be at least 1; got 0"),
        ({"min_seconds": -0.5}, "min_seconds must not be negative; got -0.5"),
    ],
)
def test_impossible_settings_are_refused_by_name(wrong, message):
    with pytest.raises(ValueError, match=message):
        timing.measure(lambda: None, **wrong)


@pytest.mark.parametrize(
    ("functions", "sizes", "message"),
    [
        ({}, [1], "got 0 and 1 of them"),
        ({"f": abs}, [], "got 1 and 0 of them"),
        ({"f": abs}, [1, 2, 1], r"sizes that all differ; got \[1, 2, 1\]"),
    ],
)
def test_a_comparison_of_nothing_or_of_one_size_twice_is_refused(functions, sizes, message):
    with pytest.raises(ValueError, match=message):
        timing.compare(functions, sizes)
