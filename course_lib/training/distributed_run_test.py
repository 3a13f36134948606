"""Parallel layers on real processes equal one process, send what the formulas say, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch

from course_lib.training import distributed_run, parallel_layers
from course_lib.training.distributed_run import ProcessesFailed, on_processes, why_not
from course_lib.training.parallel import ring_all_reduce_bytes

DIGITS = 1e-10
OVERHEAD = 4_000  # bytes of gloo's own letters in one run of a layer


def needs_processes():
    reason = why_not()
    if reason is not None:
        pytest.skip(f"kernel: {reason}")


def tensors(*shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) / 3 for shape in shapes]


def assert_near(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=DIGITS, atol=DIGITS)


@pytest.mark.slow
def test_a_shared_network_is_the_whole_one_and_sends_two_reduces():
    needs_processes()
    x, w_1, w_2 = tensors((3, 500, 16), (16, 40), (40, 16))
    reports = on_processes(2, parallel_layers.tensor_parallel_ffn, x, w_1, w_2)
    output, gradients = parallel_layers.in_one_process("ffn", x, w_1, w_2)
    assert reports is not None
    for report in reports:
        assert_near(report.output, output)
        assert_near(report.gradients["x"], gradients["x"])
        assert report.calls == {"all_reduce": 2}
        assert report.held == (16 * 40 + 40 * 16) // 2
        if report.received is not None:
            expected = ring_all_reduce_bytes(2 * x.nbytes, 2)
            assert expected <= report.received <= expected + OVERHEAD
    assert_near(torch.cat([report.gradients["w_1"] for report in reports], 1), gradients["w_1"])
    assert_near(torch.cat([report.gradients["w_2"] for report in reports], 0), gradients["w_2"])


@pytest.mark.slow
def test_shared_heads_are_the_whole_attention():
    needs_processes()
    names = ("w_q", "w_k", "w_v", "w_o")
    weights = dict(zip(names, tensors(*[(12, 12)] * 4, seed=1), strict=True))
    (x,) = tensors((2, 7, 12), seed=2)
    reports = on_processes(3, parallel_layers.tensor_parallel_attention, x, weights, 6)
    output, gradients = parallel_layers.in_one_process("attention", x, weights, 6)
    assert reports is not None
    for report in reports:
        assert_near(report.output, output)
        assert_near(report.gradients["x"], gradients["x"])
    for name in names:
        axis = 0 if name == "w_o" else 1
        assert_near(torch.cat([report.gradients[name] for report in reports], axis), gradients[name])


@pytest.mark.slow
def test_a_pipeline_is_the_whole_stack_and_sends_each_microbatch_there_and_back():
    needs_processes()
    (x,) = tensors((6, 300, 8), seed=3)
    stages = [(tensors((8, 20), (20, 8), seed=4 + stage)) for stage in range(2)]
    pairs = [(first, second) for first, second in stages]
    reports = on_processes(2, parallel_layers.pipeline_parallel, x, pairs, 3)
    output, gradients = parallel_layers.in_one_process("pipeline", x, pairs)
    assert reports is not None
    assert_near(reports[1].output, output)
    assert_near(reports[0].gradients["x"], gradients["x"])
    for stage, report in enumerate(reports):
        assert_near(report.gradients["w_1"], gradients[f"w_1 of stage {stage}"])
        assert report.calls == {"send": 3}
        assert report.tensor_bytes == {"send": x.nbytes}
        if report.received is not None:
            assert x.nbytes <= report.received <= x.nbytes + OVERHEAD


@pytest.mark.slow
def test_shared_experts_give_every_token_its_own_expert():
    needs_processes()
    (x,) = tensors((400, 8), seed=5)
    index = torch.randint(0, 4, (400,), generator=torch.Generator().manual_seed(6))
    experts = [tuple(tensors((8, 12), (12, 8), seed=7 + number)) for number in range(4)]
    reports = on_processes(2, parallel_layers.expert_parallel, x, index, experts)
    output, _ = parallel_layers.in_one_process("experts", x, index, experts)
    assert reports is not None
    assert_near(torch.cat([report.output for report in reports]), output)
    away = int((index[:200] >= 2).sum()), int((index[200:] < 2).sum())
    for report in reports:
        if report.received is not None:
            traveled = sum(away) * 8 * 8  # those that come to this process, and the results of those it sent
            assert traveled <= report.received <= traveled + OVERHEAD


@pytest.mark.slow
def test_shared_batches_give_the_gradient_of_the_whole_batch():
    needs_processes()
    x, weight = tensors((10, 6), (6, 4), seed=8)
    reports = on_processes(2, parallel_layers.in_turn, parallel_layers.data_parallel, [(x, weight), (x, weight)])
    own = weight.clone().requires_grad_()
    ((x @ own).square().sum() / 2 / 10).backward()
    assert reports is not None
    for twice in reports:
        for report in twice:
            assert_near(report.gradients["weight"], own.grad)
            assert report.calls == {"all_reduce": 1}


@pytest.mark.slow
def test_what_a_process_raises_is_told_in_one_sentence_and_stops_the_others():
    needs_processes()
    x, w_1, w_2 = tensors((3, 5, 15), (16, 40), (40, 16))
    with pytest.raises(ProcessesFailed, match=r"Process \d of 2 raised RuntimeError"):
        on_processes(2, parallel_layers.tensor_parallel_ffn, x, w_1, w_2)


@pytest.mark.slow
def test_too_slow_a_run_is_given_up():
    needs_processes()
    with pytest.raises(ProcessesFailed, match="took too long"):
        on_processes(2, parallel_layers.in_turn, None, [], seconds=0.0)


SCRIPT = """
    import os, signal, threading
    from course_lib.training import distributed_run, parallel_layers
    import torch
    started = []
    popen = distributed_run.subprocess.Popen
    def noted(*args, **kwargs):
        started.append(popen(*args, **kwargs))
        return started[-1]
    distributed_run.subprocess.Popen = noted
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
    threading.Timer(0.7, os.kill, (os.getpid(), signal.{signal})).start()
    try:
        x = torch.randn(2, 3, 4)
        print("started", flush=True)
        while True:
            distributed_run.on_processes(2, parallel_layers.data_parallel, x[0], x[1].T)
    finally:
        print([process.returncode for process in started], len(os.listdir({folder!r})), flush=True)
"""


def processes_of(marker):
    """Find running workers whose command line has these words."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (folder / "cmdline").read_bytes().decode(errors="replace"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_an_interrupted_or_killed_run_leaves_no_process_behind(name, tmp_path):
    needs_processes()
    if not Path("/proc").is_dir():
        pytest.skip("kernel: processes are looked for in /proc")
    script = textwrap.dedent(SCRIPT).format(signal=name, folder=str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=120)
    assert ran.returncode in (-signal.SIGKILL, -signal.SIGINT, 1, 130), ran.stderr
    if name == "SIGINT":
        assert "None" not in ran.stdout  # every process that was started has ended, and was waited for
        assert ran.stdout.strip().endswith(" 0"), ran.stdout  # no temporary file is left
    for _ in range(200):  # a killed parent cannot wait; its children notice on their own
        if not processes_of(str(tmp_path)):
            break
        time.sleep(0.1)
    assert processes_of(str(tmp_path)) == []


def test_where_connections_are_forbidden_a_sentence_stands_in(monkeypatch, capsys):
    def refuse(*args):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(distributed_run.socket, "socket", refuse)
    assert on_processes(2, parallel_layers.data_parallel, torch.ones(2, 2), torch.ones(2, 2)) is None
    assert "Not run: this system does not let a program open a connection to itself" in capsys.readouterr().out


def test_without_gloo_a_sentence_stands_in(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_gloo_available", lambda: False)
    assert "gloo" in str(why_not())


def test_a_function_that_others_cannot_import_is_refused():
    with pytest.raises(ValueError, match="must stand in a module"):
        on_processes(2, lambda link: None)
    with pytest.raises(ValueError, match="count"):
        on_processes(0, parallel_layers.data_parallel)


def test_an_unknown_layer_is_refused():
    with pytest.raises(ValueError, match="'ffn'"):
        parallel_layers.in_one_process("dense")
