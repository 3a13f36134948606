"""Carry out one attack in a kernel of the pool, have its notebook judged, and look for harm."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator

from nbformat import NotebookNode

from autograder.grading.attacks.attack import EXERCISE, PATIENCE, STARTER, Attack, Outcome
from autograder.grading.attacks.stage import ANSWER, SMALL, Stage, processes_with
from autograder.grading.pool import KernelPool
from autograder.grading.session import KernelSession

SEED, SEEN_SEED = 11, 12  # the student's own, and the one of inputs that the attacker has seen
POINTS = {False: 1.0, True: 2.0}  # of a visible test, and of a hidden one
MAXIMUM = sum(POINTS.values())
AUTOGRADE = {"NBGRADER_EXECUTION": "autograde"}
NEXT = "the next student's grade"

_numbers = itertools.count(1)


def try_attack(attack: Attack, pool: KernelPool, stage: Stage) -> Outcome:
    """Insert an attack's cell into an unsolved notebook, grade it, then grade the next student's."""
    mark = f"attack-{os.getpid()}-{next(_numbers)}"
    shown: list[str] = []
    with _neighbor(attack, pool, stage) as keys, pool.kernel(stage.new_work(), SMALL, SEED, AUTOGRADE) as kernel:
        kernel.execute(stage.knowledge(pool.folder, mark, SEEN_SEED), PATIENCE)
        kernel.execute(STARTER, PATIENCE)
        done = kernel.execute(attack.cell, attack.seconds)
        shown += map(text_of, done.outputs)
        judged = {hidden: kernel.verdict(attack.exercise, hidden, SEED) for hidden in POINTS}
        seen_seed = attack.proof == "seen seed" and kernel.verdict(attack.exercise, True, SEEN_SEED).verdict.passed
        inside = _test_inside(kernel, attack)
        running = bool(processes_with(mark))
    points = sum(POINTS[hidden] for hidden in POINTS if judged[hidden].verdict.passed)
    harm = stage.harm("".join(shown), mark, keys)
    if not next_student_is_graded_right(pool, stage):
        harm.append(NEXT)
    reasons = [found.verdict.message for found in judged.values()]
    return Outcome(done.status, points, harm, reasons, inside, seen_seed, running)


@contextlib.contextmanager
def _neighbor(attack: Attack, pool: KernelPool, stage: Stage) -> Iterator[tuple[str, ...]]:
    """Run another student's kernel beside, where the attack is after it; give what nobody else may know of it."""
    if attack.row != "A27":
        yield ()
        return
    with pool.kernel(stage.new_work()) as kernel:
        yield (kernel.channels.session.key.decode(),)


def _test_inside(kernel: KernelSession, attack: Attack) -> list[str]:
    """Run a test where the student's code runs, as graders do that trust it; return how it was fooled."""
    if not kernel.alive or attack.proof not in ("no error", "value"):
        return []
    outputs = kernel.execute(attack.test, PATIENCE).outputs
    kinds = {output.output_type for output in outputs}
    return [*(["value"] if "execute_result" in kinds else []), *(["no error"] if "error" not in kinds else [])]


def next_student_is_graded_right(pool: KernelPool, stage: Stage) -> bool:
    """Grade an unsolved notebook and then its solution, and tell whether they get nothing and everything."""
    with pool.kernel(stage.new_work(), SMALL, SEED, AUTOGRADE) as kernel:
        kernel.execute(STARTER, PATIENCE)
        unsolved = kernel.verdict(EXERCISE, False, SEED).verdict.passed
        kernel.execute(ANSWER, PATIENCE)
        return kernel.verdict(EXERCISE, True, SEED).verdict.passed and not unsolved


def was_proved(attack: Attack, outcome: Outcome) -> bool:
    """Tell whether an attack has shown that its cell does what it is meant to."""
    match attack.proof:
        case "no error" | "value":
            return attack.proof in outcome.inside
        case "seen seed":
            return outcome.seen_seed
        case "stopped":
            return outcome.status != "ok"
        case "runs on":
            return outcome.running
        case "harm":
            return attack.aim in outcome.harm


def text_of(output: NotebookNode) -> str:
    """Return what an output shows as text."""
    return "".join(output.get("text", "")) + output.get("data", {}).get("text/plain", "")
