"""A kernel is fresh, keeps to its limits, and leaves nothing behind, whatever its notebook does."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.grading.outputs import Outputs
from autograder.grading.pool import KernelPool
from autograder.grading.session import KernelSession
from autograder.testing.watching import PATIENCE, processes_with, soon, text_of

DEAF_LOOP = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"


def test_a_cell_gives_its_outputs_in_the_form_of_a_notebook(walled_pool: KernelPool, tmp_path: Path) -> None:
    with walled_pool.kernel(tmp_path) as kernel:
        found = kernel.execute("import sys\nprint('a'); print('b', file=sys.stderr)\n6 * 7")
        assert found.status == "ok"
        assert {output.output_type for output in found.outputs} == {"stream", "execute_result"}
        assert found.outputs[-1].data["text/plain"] == "42"
        assert found.count == found.outputs[-1].execution_count == 1
        assert kernel.execute("1 / 0").outputs[0].ename == "ZeroDivisionError"
        assert kernel.execute("x = 1").outputs == []


def test_a_figure_is_shown_at_the_end_of_its_cell(walled_pool: KernelPool, tmp_path: Path) -> None:
    with walled_pool.kernel(tmp_path) as kernel:
        found = kernel.execute("import matplotlib.pyplot as plt\nplt.plot([1, 3]);")
        assert "image/png" in found.outputs[0].data


def test_displays_are_updated_and_cleared(warm_pool: KernelPool, tmp_path: Path) -> None:
    with warm_pool.kernel(tmp_path) as kernel:
        found = kernel.execute("h = display('old', display_id=True); h.update('new')")
        assert found.outputs[0].data["text/plain"] == "'new'"
        found = kernel.execute("from IPython.display import clear_output\nprint(1); clear_output(); print(2)")
        assert text_of(found) == "2\n"


def test_nothing_of_one_kernel_reaches_the_next(warm_pool: KernelPool, tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir(), second.mkdir()
    with warm_pool.kernel(first) as kernel:
        kernel.execute("import numpy, builtins, pathlib; numpy.mark = builtins.mark = 1; pathlib.Path('here').touch()")
        kernel.execute("pathlib.Path.home().joinpath('mark').touch(); pathlib.Path('/tmp/mark').touch()")
    with warm_pool.kernel(second) as kernel:
        source = (
            "import numpy, pathlib\n"
            "print('mark' in globals() or hasattr(__builtins__, 'mark') or hasattr(numpy, 'mark'),"
            " [*pathlib.Path('.').iterdir()], pathlib.Path.home().joinpath('mark').exists(),"
            " pathlib.Path('/tmp/mark').exists())"
        )
        assert text_of(kernel.execute(source)) == "False [] False False\n"
    assert (first / "here").exists()


def test_random_numbers_depend_on_the_seed_alone(warm_pool: KernelPool, tmp_path: Path) -> None:
    source = "import random, numpy, torch; print(random.random(), numpy.random.rand(), torch.rand(1).item())"
    drawn = []
    for seed in (1, 1, 2):
        with warm_pool.kernel(tmp_path, seed=seed) as kernel:
            drawn.append(text_of(kernel.execute(source)))
    assert drawn[0] == drawn[1] != drawn[2]


def test_an_endless_loop_is_interrupted_and_the_notebook_goes_on(walled_pool: KernelPool, tmp_path: Path) -> None:
    with walled_pool.kernel(tmp_path) as kernel:
        found = kernel.execute("x = 5\nwhile True: pass", timeout=0.5)
        assert found.status == "timeout"
        assert found.outputs[-1].ename == "KeyboardInterrupt"
        assert text_of(kernel.execute("print(x)")) == "5\n"


def test_a_loop_that_ignores_interrupts_is_killed(walled_pool: KernelPool, tmp_path: Path) -> None:
    with walled_pool.kernel(tmp_path) as kernel:
        assert kernel.execute(DEAF_LOOP, timeout=0.5).status == "timeout"
        assert not kernel.alive
        assert kernel.execute("1").status == "died"
        assert kernel.why_it_ended == "it went on when it was interrupted, and had to be ended"


def test_a_notebook_may_import_what_lies_beside_it(walled_pool: KernelPool, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("six = 6")
    with walled_pool.kernel(tmp_path) as kernel:
        assert kernel.execute("import helper; helper.six * 7").outputs[0].data["text/plain"] == "42"
        kernel.execute("import pathlib; pathlib.Path('later.py').write_text('seven = 7')")
        assert kernel.execute("import later; later.seven").outputs[0].data["text/plain"] == "7"


def test_a_process_that_ends_itself_is_noticed(walled_pool: KernelPool, tmp_path: Path) -> None:
    with walled_pool.kernel(tmp_path) as kernel:
        assert kernel.execute("import os; print('last words', flush=True); os._exit(7)").status == "died"
        assert kernel.end is not None
        assert kernel.end.code == 7
        assert "exit code 7" in kernel.why_it_ended


def test_a_kernel_that_sends_nonsense_hurts_only_itself(warm_pool: KernelPool, tmp_path: Path) -> None:
    source = (
        "k = get_ipython().kernel\n"
        "for content in ({'name': 3, 'text': []}, {}, {'data': 'x', 'metadata': None}, {'traceback': [1]}):\n"
        "    for kind in ('stream', 'display_data', 'error', 'status', 'execute_input'):\n"
        "        k.session.send(k.iopub_socket, kind, content, parent=k.get_parent())\n"
        "print('still here')"
    )
    with warm_pool.kernel(tmp_path) as kernel:
        found = kernel.execute(source)
        assert text_of(found).endswith("still here\n")


def test_asking_the_user_is_an_error_and_no_hang(warm_pool: KernelPool, tmp_path: Path) -> None:
    with warm_pool.kernel(tmp_path) as kernel:
        assert kernel.execute("input('name?')").outputs[-1].ename == "StdinNotImplementedError"


def test_daemons_die_with_their_kernel(walled_pool: KernelPool, tmp_path: Path) -> None:
    mark = f"daemon-{os.getpid()}-{walled_pool.kind}"
    source = (
        "import subprocess, sys\n"
        "code = 'import os, signal, time; os.fork() and os._exit(0); os.setsid(); time.sleep(99)'\n"
        f"subprocess.run([sys.executable, '-c', code, '{mark}'], check=True)"
    )
    with walled_pool.kernel(tmp_path) as kernel:
        assert kernel.execute(source).status == "ok"
        assert processes_with(mark)
    assert soon(lambda: not processes_with(mark), PATIENCE)


GRADER = """
import os, sys, tempfile, time
from autograder.grading.pool import KernelPool
pool = KernelPool(sys.argv[1]); pool.start()
with pool.kernel(tempfile.mkdtemp(dir=sys.argv[3])) as kernel:
    pool.judge()
    source = ("import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', "
              f"'{sys.argv[2]}'], start_new_session=True); print(1)")
    kernel.execute(source)
    print(pool._process.pid, flush=True)
    kernel.execute("import time; time.sleep(600)")
"""


def test_a_grader_that_is_killed_leaves_no_process(walled_pool: KernelPool, tmp_path: Path) -> None:
    mark = f"orphan-{os.getpid()}-{walled_pool.kind}"
    command = [sys.executable, "-P", "-c", GRADER, walled_pool.kind, mark, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as grader:
        assert grader.stdout is not None
        zygote = int(grader.stdout.readline())
        family = {zygote, *_below(zygote), *processes_with(mark)}
        assert len(family) > 3
        grader.send_signal(signal.SIGKILL)
    assert soon(lambda: not any(Path(f"/proc/{pid}").exists() for pid in family), PATIENCE)


def _below(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            found += [child, *_below(child)]
    return found


def test_a_reply_that_is_seen_before_the_verdict_costs_nothing(
    warm_pool: KernelPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = KernelSession._take

    def take_late(self: KernelSession, outputs: Outputs, seconds: float) -> bool:
        """Look away, as a thread on a busy machine does, until the whole check has come and gone."""
        found = take(self, outputs, seconds)
        while seconds == 0 and not outputs.replied and found:
            found = take(self, outputs, 1)
        return found

    monkeypatch.setattr(KernelSession, "_take", take_late)
    with warm_pool.kernel(tmp_path) as kernel:
        kernel.execute("def expected_score_std(d_k, scaled):\n    return 1.0 if scaled else d_k**0.5")
        for _ in range(3):
            judged = kernel.verdict("expected_score_std", hidden=True, seed=1)
            assert judged.answered
            assert judged.verdict.passed
