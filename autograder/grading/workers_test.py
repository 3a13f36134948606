"""Jobs in parallel: all are done, few wait, and an early end stops the rest."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from autograder.grading.pool import KernelPool
from autograder.grading.workers import WAITING_PER_WORKER, Kernels, in_parallel, through

PATIENCE = 60.0


def test_every_job_is_done_and_only_a_few_are_taken_ahead() -> None:
    taken: list[int] = []

    def jobs():
        for number in range(50):
            taken.append(number)
            yield number

    done = []
    for job, outcome in in_parallel(lambda job: job * 2, jobs(), 2, lambda: None):
        assert len(taken) - len(done) <= 2 * WAITING_PER_WORKER
        done.append((job, outcome))
    assert sorted(done) == [(number, 2 * number) for number in range(50)]


def test_an_error_in_a_job_stops_the_others() -> None:
    gate, stopped = threading.Event(), []

    def work(job: int) -> None:
        if job == 0:
            raise RuntimeError("planted")
        gate.wait(PATIENCE)

    def stop() -> None:
        stopped.append(True)
        gate.set()

    with pytest.raises(RuntimeError, match="planted"):
        list(in_parallel(work, range(100), 2, stop))
    assert stopped == [True]


def test_ctrl_c_ends_kernels_that_run_without_end(warm_pool: KernelPool, tmp_path: Path) -> None:
    kernels = Kernels(warm_pool)
    started = threading.Event()

    def work(job: int) -> str:
        if job == 0:
            started.wait(PATIENCE)
            return "done"
        with kernels.kernel(tmp_path) as kernel:
            kernel.execute("x = 1")
            started.set()
            return kernel.execute("while True: pass", PATIENCE).status

    with pytest.raises(KeyboardInterrupt):
        for _ in in_parallel(work, range(2), 2, kernels.stop):
            raise KeyboardInterrupt
    with kernels.kernel(tmp_path) as late:
        assert late.execute("1").status == "died"


def test_while_nothing_is_finished_somebody_may_look_after_it() -> None:
    gate = threading.Event()

    def look() -> None:
        looks.append(True)
        if len(looks) == 2:
            raise RuntimeError("nobody works")

    looks: list[bool] = []
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(RuntimeError, match="nobody works"):
            list(through(lambda job: executor.submit(gate.wait, PATIENCE), range(3), lambda: 1, look, 0.01))
        gate.set()


def test_room_may_grow_while_jobs_are_done() -> None:
    waiting: list[int] = []
    rooms = iter([1, 1, 2, 3] + [4] * 100)
    with ThreadPoolExecutor(1) as executor:
        done = [job for job, _ in through(partial(executor.submit, waiting.append), range(20), lambda: next(rooms))]
    assert sorted(done) == sorted(waiting) == list(range(20))
