"""The compiler makes one kernel of many operations; without one a sentence stands in."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.training import compiled
from course_lib.training.compiled import fused, operations, why_not_compiled


def tail(x, bias, residual):
    return residual + F.gelu(x + bias) * 0.5


def given():
    return torch.randn(8, 16), torch.randn(16), torch.randn(8, 16)


def test_operations_are_listed_in_order_without_views():
    assert operations(tail, *given()) == ["add", "gelu", "mul", "add"]
    assert operations(lambda x: x.T.contiguous(), torch.randn(2, 3)) == ["clone"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of modules that the compiler imports
def test_a_chain_of_operations_becomes_one_kernel_with_the_same_result():
    reason = why_not_compiled()
    if reason is not None:
        pytest.skip(f"hardware: {reason}")
    x = given()
    found = fused(tail, *x)
    assert found is not None
    assert found.kernels == 1
    torch.testing.assert_close(found.result, tail(*x))


def test_a_quick_run_compiles_nothing(monkeypatch, capsys):
    monkeypatch.setenv("COURSE_QUICK", "1")
    assert fused(tail, *given()) is None
    assert capsys.readouterr().out.startswith("Not compiled: a quick run")


def test_without_a_compiler_or_with_a_broken_one_a_sentence_stands_in(monkeypatch, capsys):
    monkeypatch.delenv("COURSE_QUICK", raising=False)
    monkeypatch.setattr(compiled.shutil, "which", lambda name: None)
    assert fused(tail, *given()) is None
    monkeypatch.setattr(compiled.shutil, "which", lambda name: name)

    def fail(*args):
        raise RuntimeError("no")

    monkeypatch.setattr(compiled, "_compile", fail)
    assert fused(tail, *given()) is None
    told = capsys.readouterr().out
    assert "no C++ compiler" in told
    assert "the compiler failed (RuntimeError)" in told
