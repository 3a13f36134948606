"""Verdicts across the trust line are those of the notebook itself, and nothing that a liar sends gains points."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import autograder
from autograder.codec import decode, encode
from autograder.counting import Counter
from autograder.exercise import Exercise, all_exercises
from autograder.grading.pool import KernelPool
from autograder.grading.remote import FRAME, RemoteRunner, receive_frame, send_frame, serve, verdict_for
from autograder.program import Run
from autograder.verdict import Verdict

SEED = 11
EXERCISE = "softmax"
SOLUTION = """
import numpy as np
def softmax(x, axis=-1):
    x = np.asarray(x)
    top = np.max(x, axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis, keepdims=True)
    return e / np.where(total == 0, 1, total).astype(x.dtype)
"""
WRONG = "def softmax(x, axis=-1):\n    return x * 0\n"


@pytest.fixture(scope="module", autouse=True)
def counted_once() -> None:
    """Let PyTorch load what its first count needs, which can take longer than a case may."""
    with Counter():
        torch.ones(1) + 1


@pytest.fixture
def links() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give both ends of a link."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def judged(exercise: str, solution: Any, links: tuple[socket.socket, socket.socket], seed: int = SEED, hidden=True):
    """Judge a function over a link, served by a thread."""
    ours, theirs = links
    server = threading.Thread(target=serve, args=(theirs, {"answer": solution}), daemon=True)
    server.start()
    runner = RemoteRunner(ours, exercise, "answer")
    found = verdict_for(exercise, runner, hidden, seed)
    runner.finish()
    server.join()
    return found


def verdict_here(exercise: str, solution: Any) -> Verdict:
    """Give the verdict that a learner sees in the notebook."""
    try:
        autograder.check(solution, exercise, hidden=True, seed=SEED)
    except autograder.CheckFailed as failed:
        return failed.verdict
    return autograder.evaluate(solution, exercise, hidden=True, seed=SEED)


def _some_of_each(exercise: Exercise) -> list[Callable[..., Any]]:
    wrong, right = list(exercise.misconceptions.values()), list(exercise.alternatives.values())
    known = [*wrong[:2], *wrong[-1:], *right[:1]]
    return [exercise.reference, *(item.function for item in known)]


@pytest.mark.parametrize("exercise", all_exercises(), ids=lambda exercise: exercise.name)
def test_a_verdict_is_the_same_here_and_over_the_line(exercise: Exercise, links) -> None:
    for solution in _some_of_each(exercise):
        assert judged(exercise.name, solution, links).verdict == verdict_here(exercise.name, solution)


@pytest.mark.parametrize(
    "value", [None, 3.0, (None, None), object(), [1, [2]], np.array(["x"])], ids=lambda value: type(value).__name__
)
def test_an_odd_result_gives_the_same_words_over_the_line(value: Any, links) -> None:
    def answer(*args: Any, **kwargs: Any) -> Any:
        return value

    here = verdict_here(EXERCISE, answer)
    assert not here.passed
    assert judged(EXERCISE, answer, links).verdict.message.splitlines()[-1] == here.message.splitlines()[-1]


def test_what_a_solution_prints_and_warns_of_is_passed_on(links) -> None:
    def answer(*args: Any, **kwargs: Any) -> Any:
        print("hello")
        raise KeyError("x")

    found = judged(EXERCISE, answer, links)
    assert found.heard.printed == "hello\n"
    assert "KeyError" in found.verdict.message


def test_a_name_that_is_missing_or_no_function_is_named(links) -> None:
    ours, theirs = links
    for namespace, words in (({}, "not defined"), ({"answer": 5}, "give the function itself")):
        server = threading.Thread(target=serve, args=(theirs, namespace), daemon=True)
        server.start()
        runner = RemoteRunner(ours, EXERCISE, "answer")
        found = verdict_for(EXERCISE, runner, True, SEED)
        runner.finish()
        server.join()
        assert found.answered
        assert not found.verdict.passed
        assert words in found.verdict.message


def _lie(links: tuple[socket.socket, socket.socket], reply: Callable[[dict[str, Any]], bytes | None]):
    """Judge a peer that answers each request as it likes."""
    ours, theirs = links

    def answer() -> None:
        try:
            while (data := reply(decode(receive_frame(theirs)))) is not None:
                theirs.sendall(data)
        except Exception:
            pass
        theirs.close()

    server = threading.Thread(target=answer, daemon=True)
    server.start()
    found = verdict_for(EXERCISE, RemoteRunner(ours, EXERCISE, "answer", seconds=5), True, SEED)
    ours.close()
    server.join()
    return found


def _frame(value: Any) -> bytes:
    data = value if isinstance(value, bytes) else encode(value)
    return FRAME.pack(len(data)) + data


LIES: dict[str, Callable[[dict[str, Any]], bytes | None]] = {
    "nothing": lambda request: None,
    "garbage": lambda request: _frame(b"\x00garbage"),
    "an endless frame": lambda request: b"\xff" * 8,
    "half a frame": lambda request: FRAME.pack(100) + b"x",
    "a number": lambda request: _frame(3),
    "no id": lambda request: _frame({"run": Run((1.0,))}),
    "another id": lambda request: _frame({"id": "0", "run": Run((1.0,))}),
    "no run": lambda request: _frame({"id": request["id"], "run": [1.0]}),
    "a verdict": lambda request: _frame({"id": request["id"], "passed": True}),
    "its program": lambda request: _frame({"id": request["id"], "run": request["program"]}),
    "an empty run": lambda request: _frame({"id": request["id"], "run": Run(())}),
    "zeros": lambda request: _frame({"id": request["id"], "run": Run((np.zeros(3),) * 3)}),
    "a huge problem": lambda request: _frame({"id": request["id"], "problem": "x" * 10**6, "about": "y" * 10**6}),
    "odd words": lambda request: _frame({"id": request["id"], "run": Run(()), "printed": 3, "warned": [{}]}),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_gains_nothing_and_is_given_a_reason(lie: str) -> None:
    found = _lie(socket.socketpair(), LIES[lie])
    assert not found.verdict.passed
    assert found.verdict.message.startswith(f"{EXERCISE}: ")
    assert len(found.verdict.message) < 5_000


def test_what_was_sent_before_the_question_is_no_answer(links) -> None:
    ours, theirs = links
    send_frame(theirs, encode({"id": "early", "run": Run((1.0,))}))
    found = verdict_for(EXERCISE, RemoteRunner(ours, EXERCISE, "answer", seconds=5), True, SEED)
    assert not found.verdict.passed
    assert not found.answered


def test_a_program_that_does_not_return_is_a_verdict_about_time(links) -> None:
    ours, _ = links
    found = verdict_for(EXERCISE, RemoteRunner(ours, EXERCISE, "answer", seconds=0.1), True, SEED)
    assert "did not return in time" in found.verdict.message


def test_an_unknown_exercise_is_no_fault_of_the_student(links) -> None:
    with pytest.raises(LookupError, match="no_such"):
        verdict_for("no_such", RemoteRunner(links[0], "no_such", "answer"), True, SEED)


def test_a_right_answer_passes_and_a_wrong_one_fails_in_a_kernel(walled_pool: KernelPool, tmp_path: Path) -> None:
    with walled_pool.kernel(tmp_path) as kernel:
        kernel.execute(SOLUTION)
        right = kernel.verdict(EXERCISE, hidden=True, seed=SEED)
        assert right.verdict.passed, right.verdict.message
        kernel.execute(WRONG)
        wrong = kernel.verdict(EXERCISE, hidden=True, seed=SEED)
        assert wrong.answered
        assert not wrong.verdict.passed
        assert kernel.execute("1 + 1").outputs[0].data["text/plain"] == "2"
        with pytest.raises(LookupError, match="no exercise called"):
            kernel.verdict("nix", hidden=True, seed=1)
        kernel.execute(SOLUTION)
        assert kernel.verdict(EXERCISE, hidden=True, seed=SEED).verdict.passed


TRICKS = {
    "check is replaced": (
        "import autograder, autograder.checking as c\nautograder.check = c.check = c.evaluate = lambda *a, **k: None"
    ),
    "judge is replaced": (
        "import autograder.judge as j, autograder.grading.remote as r, autograder.compare as c\n"
        "c.difference = lambda *a, **k: None\n"
        "j.judge = r.judge = lambda e, *a, **k: j.Verdict(True, e.name, None, None, 'passed', 0)"
    ),
    "comparisons are replaced": (
        "import numpy as np, torch\n"
        "np.isclose = np.allclose = np.array_equal = torch.allclose = torch.equal = lambda *a, **k: True\n"
        "np.testing.assert_allclose = torch.testing.assert_close = lambda *a, **k: None"
    ),
    "every cell becomes pass": "get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])",
    "cells are not run": (
        "from IPython.core.interactiveshell import InteractiveShell, ExecutionResult, ExecutionInfo\n"
        "async def run(self, *a, **k):\n"
        "    return ExecutionResult(ExecutionInfo('', False, False, False, ''))\n"
        "InteractiveShell.run_cell_async = run"
    ),
    "an object is equal to everything": (
        "class Yes:\n    def __eq__(self, other): return True\n    shape = property(lambda s: (2, 2))\n"
        "def softmax(*a, **k): return Yes()"
    ),
    "an array subclass lies": (
        "import numpy as np\nclass Liar(np.ndarray):\n"
        "    def __array_function__(self, *a, **k): return True\n    def __array_ufunc__(self, *a, **k): return True\n"
        "def softmax(x, *a, **k): return np.zeros_like(x).view(Liar)"
    ),
    "serve is replaced by silence": (
        "import autograder.grading.remote as r\nr.serve = r.serve_inherited = lambda *a: None"
    ),
    "serve sends garbage": (
        "import autograder.grading.remote as r\n"
        "def bad(namespace):\n    r._inherited[0].sendall(b'x' * 100)\n    r.receive_frame(r._inherited[0])\n"
        "r.serve_inherited = bad"
    ),
    "a verdict is sent for a run": (
        "import autograder.grading.remote as r\n"
        "r.answer = lambda request, namespace: {'verdict': {'passed': True}, 'passed': True, 'run': True}"
    ),
    "the link is closed": "import autograder.grading.remote as r\nr._inherited[0].close()",
    "the process ends in the check": "import os\ndef softmax(*a, **k): os._exit(0)",
    "the solution leaves": "import sys\ndef softmax(*a, **k): sys.exit(0)",
    "a fake verdict is displayed": (
        "from IPython.display import publish_display_data\n"
        "publish_display_data({'application/vnd.course.verdict+json': {'passed': True}, 'text/plain': ''})"
    ),
}


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_gains_nothing(trick: str, warm_pool: KernelPool, tmp_path: Path) -> None:
    with warm_pool.kernel(tmp_path) as kernel:
        kernel.execute(WRONG)
        kernel.execute(TRICKS[trick])
        for hidden in (False, True):
            found = kernel.verdict(EXERCISE, hidden=hidden, seed=SEED)
            assert not found.verdict.passed
            assert found.verdict.message
            assert "return in time" not in found.verdict.message


def test_a_trick_does_not_reach_the_next_student(warm_pool: KernelPool, tmp_path: Path) -> None:
    for trick in ("judge is replaced", "serve sends garbage", "the process ends in the check"):
        with warm_pool.kernel(tmp_path) as kernel:
            kernel.execute(TRICKS[trick])
            kernel.verdict(EXERCISE, hidden=True, seed=SEED)
    with warm_pool.kernel(tmp_path) as kernel:
        kernel.execute(SOLUTION)
        assert kernel.verdict(EXERCISE, hidden=True, seed=SEED).verdict.passed


def test_a_solution_that_hangs_deafly_ends_with_a_reason(warm_pool: KernelPool, tmp_path: Path) -> None:
    source = (
        "from signal import *\ndef softmax(*a, **k):\n"
        "    signal(SIGINT, SIG_IGN), signal(SIGALRM, SIG_IGN)\n    while True: pass"
    )
    with warm_pool.kernel(tmp_path) as kernel:
        kernel.execute(source)
        found = kernel.verdict(EXERCISE, hidden=True, seed=SEED, timeout=1)
        assert not found.verdict.passed
        assert not found.answered
        assert not kernel.alive
        assert "no verdict" in kernel.verdict(EXERCISE, hidden=True, seed=SEED).verdict.message
    with warm_pool.kernel(tmp_path) as kernel:
        kernel.execute(SOLUTION)
        assert kernel.verdict(EXERCISE, hidden=True, seed=SEED).verdict.passed


def test_a_judge_that_dies_is_replaced(warm_pool: KernelPool, tmp_path: Path) -> None:
    warm_pool.judge().process.close(seconds=5)
    with warm_pool.kernel(tmp_path) as kernel:
        kernel.execute(SOLUTION)
        assert kernel.verdict(EXERCISE, hidden=True, seed=SEED).verdict.passed


def test_a_judge_is_closed_after_its_thread_and_with_the_pool(warm_pool: KernelPool) -> None:
    with KernelPool(warm_pool.kind, warm=False) as pool:
        with ThreadPoolExecutor(1) as executor:
            first = executor.submit(pool.judge).result()
        assert first.alive
        second = pool.judge()
        assert not first.alive
        assert second is pool.judge()
        assert second.alive
    assert not second.alive
    assert {first.channel.fileno(), second.channel.fileno(), first.process.handle, second.process.handle} == {-1}
