"""Judge a solution by what its runs show, and name the belief behind a wrong one.

The judge sees plain values only. It is given a runner, so it works the same whether the solution
runs in this process or in a sandbox at the other end of a socket.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from autograder.compare import difference, same
from autograder.counting import warm_up
from autograder.exercise import Case, Exercise, Misconception
from autograder.guard import Forbidden, TimeIsUp, forbidding, listening, time_limit
from autograder.interpreter import run
from autograder.program import Program, Run
from autograder.values import Raised
from autograder.verdict import Heard, Verdict

Runner = Callable[[Program], Run]


def judge(exercise: Exercise, runner: Runner, hidden: bool, seed: int) -> Verdict:
    """Run the cases of a tier one by one; stop at the first that fails and explain it."""
    runs: dict[str, Run] = {}
    cases = exercise.tier(hidden)
    for case in cases:
        program = exercise.program(case, seed)
        try:
            runs[case.name] = runner(program)
        except TimeIsUp:
            return _fail(exercise, case, seed, "your code did not return in time: look for a loop that never ends")
        except Forbidden as refusal:
            return _fail(exercise, case, seed, _refusal(exercise, refusal.name))
        problem = find_problem(exercise, case, program, runs[case.name])
        if problem:
            return _explain(exercise, case, cases, program, runs, runner, seed, problem)
    return Verdict(
        True, exercise.name, None, None, f"{exercise.name}: passed, {_cases(len(cases))} (seed {seed})", seed
    )


def find_problem(exercise: Exercise, case: Case, program: Program, found: Run) -> str | None:
    """Say what is wrong with a run in one sentence, or give None."""
    if found.changed:
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(found.changed))
        return f"your code changed its argument {names} in place; work on a copy"
    wanted = run(program, exercise.reference, exercise.named)
    if case.judge is not None:
        raised = next((outcome for outcome in found.outcomes if isinstance(outcome, Raised)), None)
        if raised is not None and not any(isinstance(outcome, Raised) for outcome in wanted.outcomes):
            return difference(None, raised, "the result")
        problem = case.judge(program, found)
    else:
        problem = _first_difference(exercise, program, found, wanted)
    if problem is None and case.limit is not None:
        problem = case.limit(program, found)
    return problem


def _first_difference(exercise: Exercise, program: Program, found: Run, wanted: Run) -> str | None:
    what = [step.name or "the result" for step in program.steps if step.observe]
    for index, expected in enumerate(wanted.outcomes):
        if index >= len(found.outcomes):
            return "your code stopped early"
        name = exercise.returns[0] if len(exercise.returns) == 1 else what[index] if index < len(what) else "the result"
        parts = exercise.returns if len(exercise.returns) > 1 else ()
        sentence = difference(expected, found.outcomes[index], name, exercise.tolerance, parts)
        if sentence:
            nth = f"in step {index + 1} of {len(wanted.outcomes)}, " if len(wanted.outcomes) > 1 else ""
            legible = _of_one_form(wanted.outcomes, found.outcomes)
            return nth + ((legible and _broken_property(exercise, program, found)) or sentence)
    if len(found.outcomes) > len(wanted.outcomes):
        return difference(None, found.outcomes[-1], "the result") or "your code did more than it was asked"
    return None


def _of_one_form(expected: Any, actual: Any) -> bool:
    """Tell whether arrays are arrays of the same library; where they are not, that is what to say first."""
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        return all(_of_one_form(wanted, came) for wanted, came in zip(expected, actual, strict=False))
    return not isinstance(expected, (np.ndarray, torch.Tensor)) or isinstance(actual, type(expected))


def _broken_property(exercise: Exercise, program: Program, found: Run) -> str | None:
    """Find a property that the outcome breaks; a property that cannot read the outcome says nothing."""
    for broken in exercise.properties:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a strange outcome must not warn in the learner's notebook
                sentence = broken(program, found)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError):
            continue
        if sentence:
            return sentence
    return None


def _explain(
    exercise: Exercise,
    case: Case,
    cases: tuple[Case, ...],
    program: Program,
    runs: dict[str, Run],
    runner: Runner,
    seed: int,
    problem: str,
) -> Verdict:
    belief = diagnose(exercise, case, cases, runs, runner, seed)
    return _fail(exercise, case, seed, problem, belief)


def diagnose(
    exercise: Exercise, case: Case, cases: tuple[Case, ...], runs: dict[str, Run], runner: Runner, seed: int
) -> Misconception | None:
    """Find the known belief whose solution does just what this one does.

    Several beliefs may agree on the case that failed, so the tier's other cases decide between them.
    """
    matching = [
        belief
        for belief in exercise.misconceptions.values()
        if _alike(exercise, case, belief, runs[case.name], seed) and _really_fails(exercise, case, belief, seed)
    ]
    if len(matching) > 1:
        matching = _narrow(exercise, case, cases, matching, runs, runner, seed)
    return matching[0] if matching else None


def _narrow(
    exercise: Exercise,
    case: Case,
    cases: tuple[Case, ...],
    matching: list[Misconception],
    runs: dict[str, Run],
    runner: Runner,
    seed: int,
) -> list[Misconception]:
    for other in cases:
        if other.name == case.name or len(matching) == 1:
            continue
        try:
            found = runs.get(other.name) or runner(exercise.program(other, seed))
        except (TimeIsUp, Forbidden):
            break
        agreeing = [belief for belief in matching if _alike(exercise, other, belief, found, seed)]
        matching = agreeing or matching
    return matching


def _alike(exercise: Exercise, case: Case, belief: Misconception, found: Run, seed: int) -> bool:
    theirs = _run_belief(exercise, case, belief, seed)
    if theirs is None or len(theirs.outcomes) != len(found.outcomes) or theirs.changed != found.changed:
        return False
    if case.alike is not None:
        return case.alike(exercise.program(case, seed), theirs, found)
    if case.limit is not None and theirs.counts and found.counts:  # noqa: SIM102 - the type checker reads this form
        if theirs.counts.matrix_products != found.counts.matrix_products:
            return False
    asked = _asked(exercise, case, found, seed)
    outcomes = zip(theirs.outcomes, found.outcomes, asked, strict=True)
    return all(same(ours, came, exercise.tolerance, wanted) for ours, came, wanted in outcomes)


def _asked(exercise: Exercise, case: Case, found: Run, seed: int) -> list[Any]:
    """Give the reference's outcome beside each of a run that raised; of any other run nobody asks."""
    count = len(found.outcomes)
    if not any(isinstance(outcome, Raised) for outcome in found.outcomes):
        return [None] * count
    wanted = run(exercise.program(case, seed), exercise.reference, exercise.named).outcomes
    return [*wanted, *[None] * count][:count]


def _really_fails(exercise: Exercise, case: Case, belief: Misconception, seed: int) -> bool:
    theirs = _run_belief(exercise, case, belief, seed)
    return theirs is not None and find_problem(exercise, case, exercise.program(case, seed), theirs) is not None


def _run_belief(exercise: Exercise, case: Case, belief: Misconception, seed: int) -> Run | None:
    try:
        return run_here(exercise, belief.function, exercise.program(case, seed), Heard(), ours=True)
    except (TimeIsUp, Forbidden):
        return None


def run_here(
    exercise: Exercise, solution: Callable[..., object], program: Program, heard: Heard, ours: bool = False
) -> Run:
    """Run a program in this process, within limits; what the solution prints goes to `heard`.

    Args:
        exercise: The exercise that the solution answers.
        solution: The function or class.
        program: What to do with it.
        heard: Where its prints and warnings are kept.
        ours: Whether it is a known belief or form, which may build on the reference.

    Raises:
        TimeIsUp: When it does not return in time.
        Forbidden: When it calls what the exercise forbids.
    """
    if program.counted:
        warm_up()
    refuse = forbidding(()) if ours else forbidding(exercise.forbids, [exercise.reference])
    with listening(heard), time_limit(), refuse:
        return run(program, solution, exercise.named)


def _refusal(exercise: Exercise, name: str) -> str:
    because = exercise.forbids_because or "this exercise asks you to build it from its parts"
    return f"your code calls `{name}`, but {because}"


def _fail(exercise: Exercise, case: Case, seed: int, problem: str, belief: Misconception | None = None) -> Verdict:
    lines = [
        f"{exercise.name}: not yet. Case “{case.name}” (seed {seed}): {problem}{'' if problem.endswith('?') else '.'}"
    ]
    if belief is not None:
        lines.append(belief.words)
    again = f", hidden=True, seed={seed}" if case.hidden else f", seed={seed}"
    lines.append(f"Try the same inputs again: check({exercise.name}{again})")
    return Verdict(False, exercise.name, case.name, belief.name if belief else None, "\n".join(lines), seed)


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"
