"""The limits of a check: time, output, warnings, and forbidden calls."""

import threading
import time
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from autograder.guard import (
    OUTPUT_SHOWN,
    PATIENCE,
    Forbidden,
    TimeIsUp,
    _Alarm,
    forbidding,
    listening,
    resolve,
    time_limit,
)
from autograder.verdict import Heard

SHORT = 0.2


def test_a_loop_that_never_ends_is_stopped() -> None:
    with pytest.raises(TimeIsUp), time_limit(SHORT):
        while True:
            pass


def test_a_loop_that_swallows_exceptions_is_stopped_as_soon_as_it_leaves_the_handler() -> None:
    swallowed = 0
    with pytest.raises(TimeIsUp), time_limit(SHORT):
        while swallowed < 2:
            try:
                while True:
                    pass
            except BaseException:
                swallowed += 1


def test_a_loop_that_swallows_exceptions_for_ever_is_stopped() -> None:
    with pytest.raises(TimeIsUp), time_limit(SHORT):
        while True:
            try:
                time.sleep(60)
            except BaseException:
                pass


def test_the_limit_holds_in_a_thread_too() -> None:
    stopped = []

    def endless() -> None:
        try:
            with time_limit(SHORT):
                while True:
                    pass
        except TimeIsUp:
            stopped.append(True)

    thread = threading.Thread(target=endless)
    thread.start()
    thread.join(10)
    assert stopped == [True]


def test_a_sleeper_is_stopped_by_the_clock() -> None:
    began = time.monotonic()
    with pytest.raises(TimeIsUp), time_limit(SHORT):
        time.sleep(60)
    assert time.monotonic() - began < 30


def test_waiting_for_the_processor_is_not_held_against_a_solution() -> None:
    waited, worked = _Alarm(100.0), _Alarm(100.0)
    waited.began -= 150
    assert not waited.is_due()
    waited.began -= 100 * PATIENCE
    assert waited.is_due()
    worked.busy -= 100
    assert worked.is_due()


def test_code_within_the_limit_is_left_alone() -> None:
    with time_limit(60):
        total = sum(range(1000))
    assert total == 499_500


def test_a_flood_of_output_keeps_its_beginning_and_its_length() -> None:
    heard = Heard()
    with listening(heard):
        for _ in range(1000):
            print("x" * 999)
    assert len(heard.printed) == OUTPUT_SHOWN
    assert heard.left_out == 1_000_000 - OUTPUT_SHOWN


def test_warnings_are_heard_once_and_stay_off_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    heard = Heard()
    with listening(heard):
        for _ in range(3):
            warnings.warn("slow down", RuntimeWarning, stacklevel=1)
    assert heard.warned == ["RuntimeWarning: slow down"]
    assert capfd.readouterr().err == ""


BOUND_EARLY = F.scaled_dot_product_attention


@pytest.mark.parametrize(
    ("name", "use"),
    [
        (
            "torch.nn.functional.scaled_dot_product_attention",
            lambda x: F.scaled_dot_product_attention(x, x, x),
        ),
        ("torch.nn.functional.scaled_dot_product_attention", lambda x: BOUND_EARLY(x, x, x)),
        ("torch.nn.functional.layer_norm", lambda x: F.layer_norm(x, (4,))),
        ("torch.nn.LayerNorm", lambda x: torch.nn.LayerNorm(4)(x)),
        ("torch.Tensor.softmax", lambda x: x.softmax(-1)),
        ("torch.softmax", lambda x: torch.softmax(x, -1)),
        ("torch.nn.functional.softmax", lambda x: F.softmax(x, -1)),
        ("numpy.cumsum", lambda x: np.cumsum(np.ones(3))),
    ],
)
def test_a_forbidden_call_is_refused_however_it_is_bound(name: str, use) -> None:
    x = torch.ones(1, 3, 4)
    with pytest.raises(Forbidden, match=name), forbidding([name]):
        use(x)


def test_a_swallowed_refusal_still_counts() -> None:
    def use() -> None:
        try:
            torch.softmax(torch.ones(2), 0)
        except BaseException:
            pass

    with pytest.raises(Forbidden), forbidding(["torch.softmax"]):
        use()


def test_other_calls_pass() -> None:
    with forbidding(["torch.softmax"]):
        assert torch.exp(torch.zeros(1)).item() == 1


def test_a_forbidden_python_function_is_known_behind_its_decorators() -> None:
    @np.errstate(over="ignore")
    def ours(x: float) -> float:
        return x

    @np.errstate(over="ignore")
    def another(x: float) -> float:
        return x

    with forbidding((), [ours]):
        assert another(1.0) == 1.0
    with pytest.raises(Forbidden), forbidding((), [ours]):
        ours(1.0)


def test_a_forbidden_class_is_known_in_a_subclass_too() -> None:
    class Ours(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()

    class Theirs(Ours):
        pass

    for used in (Ours, Theirs):
        with pytest.raises(Forbidden), forbidding((), [Ours]):
            used()


def test_names_of_modules_that_are_not_loaded_are_no_error() -> None:
    assert resolve("no_such_module.at_all") is None
    assert resolve("torch.no_such_function") is None
