"""The measurement of forms of attention: complete, honest about what did not run, and the same path on CUDA."""

import importlib.util
import itertools
import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend

from course_lib import attention_forms, attention_speed, results, settings, timing
from course_lib.attention_forms import Form, forms, naive_attention
from course_lib.attention_speed import PASSES, Plan, largest_errors, measure_forms, series, timers

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "attention_speed.py"
TINY = Plan("cpu", lengths=(8, 16), dtypes=(torch.float32,), heads=2, d_head=4, repeats=1)
TOLERANCE = 1e-12
NAIVE = Form("naive", naive_attention, exact=True)
ERRORS = {"float32": 1e-5, "bfloat16": 0.05}


@pytest.fixture(autouse=True)
def one_call_per_sample(monkeypatch):
    monkeypatch.setattr(attention_speed, "REFERENCE_SECONDS", 1e-3)
    monkeypatch.setenv(settings.QUICK_VARIABLES[1], "1")


@pytest.fixture
def no_compiler(monkeypatch):
    """Compiling FlexAttention takes a minute; a form that raises stands in for it."""

    def compiled(dynamic):
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(attention_forms, "_compiled_flex", compiled)


def silent(_):
    """Tell nothing."""


def test_every_backend_of_the_library_has_a_form():
    names = {form.name for form in forms(4, 4)}
    assert len(names) == 6 + len(SDPBackend.__members__) - 1
    assert {"naive", "own tiles", "local", "linear", "SDPA", "SDPA flash attention", "FlexAttention"} <= names


def test_exact_forms_give_what_the_naive_one_gives():
    plan = replace(TINY, lengths=(24,))
    inputs = plan.inputs(24, torch.float64)
    checked = 0
    for form in forms(block_size=5, window=6):
        if not form.exact or form.name == "FlexAttention":
            continue
        try:
            got = form.attend(*inputs)
        except RuntimeError:
            continue
        checked += 1
        torch.testing.assert_close(got, naive_attention(*inputs), rtol=TOLERANCE, atol=TOLERANCE)
    assert checked >= 4


def test_flex_attention_knows_the_causal_mask(monkeypatch):
    """Uncompiled, so that the mask is tested without a compiler."""
    from torch.nn.attention import flex_attention

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the uncompiled form is slow is known
        monkeypatch.setattr(flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
        monkeypatch.setattr(attention_forms, "_compiled_flex", lambda dynamic: flex_attention.flex_attention)
        inputs = TINY.inputs(20, torch.float32)
        got = attention_forms.flex(*inputs)
    torch.testing.assert_close(got, naive_attention(*inputs), rtol=1e-5, atol=1e-6)


def test_every_form_has_a_row_at_every_length_precision_and_pass(no_compiler):
    plan = replace(TINY, dtypes=(torch.float32, torch.bfloat16))
    every_form = forms(4, 4)
    rows = measure_forms(every_form, plan, silent)
    keys = [(row["form"], row["length"], row["dtype"], row["pass"]) for row in rows]
    names = [form.name for form in every_form]
    wanted = set(itertools.product(names, plan.lengths, ("float32", "bfloat16"), PASSES))
    assert len(keys) == len(wanted)
    assert set(keys) == wanted
    for row in rows:
        assert (row["seconds"] is None) != (row["reason"] is None)
        if row["form"] == "FlexAttention":
            assert "no compiler here" in row["reason"]
        if row["form"] in ("naive", "own tiles", "local", "linear", "SDPA"):
            assert row["seconds"] > 0
            assert row["peak_bytes"] > 0
            assert row["memory_by"] == "counted tensors"


def test_a_failure_and_what_was_warned_of_are_the_reason_from_then_on():
    calls = []

    def fails(*_):
        calls.append(1)
        warnings.warn("the head is too wide", stacklevel=1)
        raise RuntimeError("No kernel.")

    rows = measure_forms([Form("broken", fails, exact=True), NAIVE], TINY, silent)
    broken = [row for row in rows if row["form"] == "broken"]
    assert all(row["reason"] == "RuntimeError: No kernel. the head is too wide" for row in broken)
    assert len(calls) == len(PASSES)
    assert all(row["seconds"] > 0 for row in rows if row["form"] == "naive")


def test_a_form_that_got_too_slow_is_sampled_once_and_given_up():
    def slow(query, key, value):
        began = time.process_time()
        while time.process_time() - began < 0.02:
            pass
        return naive_attention(query, key, value)

    rows = measure_forms([Form("slow", slow, exact=True)], replace(TINY, longest_call=0.01), silent)
    first, second = (row for row in rows if row["pass"] == "forward")
    assert first["seconds"] > 0.01
    assert first["samples"] == 1
    assert second["seconds"] is None
    assert second["reason"].startswith("one call took 0.0")
    assert second["reason"].endswith("s at 8 tokens, more than 0.01 s")


def test_what_the_time_did_not_reach_is_said(monkeypatch):
    rows = measure_forms([NAIVE], replace(TINY, longest_run=-1.0), silent)
    assert len(rows) == 4
    assert all(row["reason"] == "not reached within -1 s" for row in rows)


def test_only_exact_forms_have_an_error_and_it_is_small(no_compiler):
    rows = largest_errors(forms(4, 4), TINY)
    assert {row["form"] for row in rows}.isdisjoint({"local", "linear"})
    for row in rows:
        assert (row["error"] is None) != (row["reason"] is None)
        assert row["error"] is None or row["error"] < ERRORS["float32"]


def test_three_timers_time_the_same_calls():
    (row,) = timers([NAIVE], TINY, 16, torch.float32)
    assert row["reference_timer"] == "torch.utils.benchmark, blocked_autorange"
    assert min(row["helper"], row["reference"], row["synchronized_clock"]) > 0


@dataclass(frozen=True)
class PlayedPlan(Plan):
    """A plan for CUDA whose tensors lie on the CPU."""

    def inputs(self, length, dtype):
        """Draw on the CPU."""
        return replace(TINY, device="cpu").inputs(length, dtype)


class PlayedGpu:
    """The calls to CUDA that the measurement makes, in order; memory goes up by a known amount."""

    def __init__(self, monkeypatch):
        self.calls = []
        for name, result in {
            "synchronize": None,
            "reset_peak_memory_stats": None,
            "memory_allocated": 1000,
            "max_memory_allocated": 5000,
            "empty_cache": None,
        }.items():
            monkeypatch.setattr(torch.cuda, name, self.answer(name, result))
        monkeypatch.setattr(torch.accelerator, "synchronize", self.answer("wait", None))
        monkeypatch.setattr(timing, "device_name", lambda *_: "a GPU")
        monkeypatch.setattr(timing, "_do_bench", lambda: self.do_bench)

    def answer(self, name, result):
        def call(*_):
            self.calls.append(name)
            return result

        return call

    def do_bench(self, function, warmup=25, rep=100, return_mode="mean"):
        """Answer in milliseconds, as Triton's timer does."""
        function()
        return [3.0, 3.0] if return_mode == "all" else 3.0


def test_on_cuda_events_take_the_time_and_the_allocator_tells_the_memory(monkeypatch):
    gpu = PlayedGpu(monkeypatch)
    plan = PlayedPlan("cuda", lengths=(8,), dtypes=(torch.float32,), repeats=2)
    rows = measure_forms([NAIVE], plan, silent)
    for row in rows:
        assert row["seconds"] == 0.003
        assert row["peak_bytes"] == 4000
        assert row["memory_by"] == "device allocator"
    memory = [name for name in gpu.calls if "memory" in name]
    assert memory == ["reset_peak_memory_stats", "memory_allocated", "max_memory_allocated"] * len(PASSES)
    assert gpu.calls.count("empty_cache") == len(PASSES)
    assert gpu.calls[:4] == ["wait"] * 4


def test_on_cuda_the_reference_timer_is_tritons_or_said_to_be_missing(monkeypatch):
    PlayedGpu(monkeypatch)
    plan = PlayedPlan("cuda", lengths=(8,), dtypes=(torch.float32,), repeats=2)
    (row,) = timers([NAIVE], plan, 8, torch.float32)
    assert row["helper"] == row["reference"] == 0.003
    assert row["reference_timer"] == "triton.testing.do_bench"
    monkeypatch.setattr(timing, "_do_bench", lambda: None)
    (row,) = timers([NAIVE], plan, 8, torch.float32)
    assert row["reference"] is None
    assert row["reference_timer"] == "triton.testing.do_bench is not installed"


def test_a_full_device_is_a_reason_and_its_memory_is_given_back(monkeypatch):
    gpu = PlayedGpu(monkeypatch)

    def too_large(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 64.00 GiB.")

    plan = PlayedPlan("cuda", lengths=(8, 16), dtypes=(torch.float32,), repeats=1)
    rows = measure_forms([Form("large", too_large, exact=True)], plan, silent)
    assert all(row["reason"].startswith("OutOfMemoryError: CUDA out of memory") for row in rows)
    assert gpu.calls.count("empty_cache") == len(PASSES)


def test_series_holds_what_was_measured_and_nothing_else():
    rows = measure_forms([NAIVE], TINY, silent)
    found = series(rows, "peak_bytes", "float32", "forward")
    assert list(found) == ["naive"]
    assert list(found["naive"]) == [8, 16]
    assert series(rows, "seconds", "bfloat16", "forward") == {}


@pytest.fixture
def script(monkeypatch):
    spec = importlib.util.spec_from_file_location("attention_speed_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_the_script_writes_its_result(script, tmp_path, monkeypatch, no_compiler, capsys):
    threads = torch.get_num_threads()
    monkeypatch.setattr(results, "path_of", lambda name: tmp_path / f"{name}.json")
    try:
        script.main(["--device", "cpu", "--lengths", "16"])
    finally:
        torch.set_num_threads(threads)
    found = results.load("attention_cpu")
    assert {row["length"] for row in found["rows"]} == {16}
    assert found["settings"]["threads"] == 1
    assert len(found["timers"]) == 2 * 4
    assert "attention_cpu.json" in capsys.readouterr().out


def test_the_script_says_when_there_is_no_gpu(script, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="PyTorch finds no CUDA device here; --device cpu runs the smaller form"):
        script.main(["--device", "cuda"])


def test_the_committed_measurement_is_whole_and_holds_what_the_chapter_says_of_it():
    found = results.load("attention_cpu")
    rows = found["rows"]
    axes = [sorted({row[axis] for row in rows}) for axis in ("form", "length", "dtype", "pass")]
    assert {(row["form"], row["length"], row["dtype"], row["pass"]) for row in rows} == set(itertools.product(*axes))
    assert all((row["seconds"] is None) != (row["reason"] is None) for row in rows)
    for row in found["errors"]:
        assert row["error"] is None or row["error"] < ERRORS[row["dtype"]]
    memory = series(rows, "peak_bytes", "float32", "forward")
    lengths = sorted(memory["naive"])
    growth = {name: memory[name][lengths[-1]] / memory[name][lengths[-2]] for name in ("naive", "own tiles", "linear")}
    assert growth["naive"] == pytest.approx(4, rel=0.05)
    assert growth["own tiles"] < 2.2
    assert growth["linear"] < 2.2
    assert memory["naive"][lengths[-1]] > 10 * memory["own tiles"][lengths[-1]]
