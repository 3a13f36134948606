"""A race has a number or a reason for every form."""

import math

import torch

from course_lib.attention_forms import Form, naive_attention
from course_lib.efficient import race as racing


def inputs(length):
    return tuple(torch.ones(1, 1, length, 8) for _ in range(3))


def failing(*tensors):
    raise RuntimeError("no such kernel\nat some line")


def test_every_form_has_numbers_or_a_reason():
    forms = [Form("naive", naive_attention, True), Form("broken", failing, True)]
    found = racing.race(forms, [16, 32], inputs)
    assert set(found.seconds["naive"]) == set(found.peaks["naive"]) == {16, 32}
    assert all(seconds > 0 for seconds in found.seconds["naive"].values())
    assert found.reasons == {"broken": "no such kernel"}


def test_a_form_that_grows_too_large_is_left_out_from_there():
    found = racing.race([Form("naive", naive_attention, True)], [16, 64, 128], inputs, most_bytes=10_000)
    assert list(found.seconds["naive"]) == [16, 64]
    assert found.reasons["naive"] == "left out from 128 tokens on, to spare the memory"
    assert math.isnan(found.curve("naive", [16, 64, 128])[-1])
    assert found.curve("naive", [16], "peaks")[0] >= 4 * 16 * 16


def test_the_compiled_form_is_skipped_with_a_reason(monkeypatch):
    flex = Form(racing.COMPILED, naive_attention, True)
    assert racing.race([flex], [16], inputs).reasons == {racing.COMPILED: "not asked for"}
    monkeypatch.setenv("COURSE_QUICK", "1")
    assert "quick run" in racing.race([flex], [16], inputs, compiled_length=16).reasons[racing.COMPILED]
    monkeypatch.setenv("COURSE_QUICK", "0")
    monkeypatch.setattr(racing.shutil, "which", lambda name: None)
    monkeypatch.setattr(racing.torch.cuda, "is_available", lambda: False)
    found = racing.race([flex], [16], inputs, compiled_length=16)
    assert found.reasons == {racing.COMPILED: "this machine has no C++ compiler to compile it with"}
