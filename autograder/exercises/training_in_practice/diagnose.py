"""Check `diagnose`: name the fault of a run from its instruments."""

import math
import statistics

import numpy as np
import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.training_in_practice import CHAPTER
from autograder.exercises.training_in_practice.runs import recorded
from autograder.program import Program
from course_lib.training import diagnosis
from course_lib.training.diagnosis import FAULTS

HIGH, COLD, VANISHED, LEAK, COLLAPSED, OVERFLOW = FAULTS


def all_six(draw: Draw, steps: tuple[int, int]) -> Program:
    """Draw one run with each fault, in some order."""
    program = Program()
    for index in draw.random.permutation(len(FAULTS)).tolist():
        program = program.call(recorded(draw, FAULTS[index], draw.integer(*steps)))
    return program


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=diagnosis.diagnose,
    returns=("the diagnosis",),
    cases=[
        Case("six runs", lambda draw: all_six(draw, (80, 140))),
        Case("six more runs", lambda draw: all_six(draw, (80, 140)), hidden=True),
        Case("six longer runs", lambda draw: all_six(draw, (300, 500)), hidden=True),
        Case("six short runs", lambda draw: all_six(draw, (60, 70)), hidden=True),
    ],
)


def _lists(run):
    return {name: [float(value) for value in series] for name, series in run.items()}


def _half(series):
    return statistics.median(series[len(series) // 2 :])


def _by_order(run, **changes):
    """Ask one question after the other; `changes` replaces some of them."""
    run = _lists(run)
    early = max(1, len(run["loss"]) // 10)
    questions = {
        OVERFLOW: lambda: not all(math.isfinite(value) for value in run["loss"]),
        HIGH: lambda: _half(run["update_ratio"]) > 0.02,
        COLD: lambda: max(run["update_ratio"][:early]) > 0.05,
        VANISHED: lambda: _half(run["grad_norm"]) < 1e-6,
        COLLAPSED: lambda: run["attention_entropy"][-1] < 0.03 * run["attention_entropy"][0],
        LEAK: lambda: run["loss"][-1] < 0.02 * run["loss"][0],
    }
    for fault, question in questions.items():
        if changes[fault](run) if fault in changes else question():
            return fault
    return changes.get("otherwise", HIGH)


@exercise.misconception("""
    A loss of NaN slips through your comparisons: NaN < x and NaN > x are both false, so no `if` fires and the last
    branch answers. Ask for it by name, with `torch.isfinite` or `math.isnan`, and ask it first.
""")
def nan_slips_through(run):
    return _by_order(run, **{OVERFLOW: lambda run: run["loss"][-1] > 1000})


@exercise.misconception("""
    A run without warm-up gets "learning rate too high" from you. Both begin with steps that are far too large. Look at
    `update_ratio` at the **end**: where warm-up was missing, the rate itself is fine later on.
""")
def any_large_step(run):
    return _by_order(run, **{HIGH: lambda run: max(run["update_ratio"]) > 0.05})


@exercise.misconception("""
    A rate that is too high gets "no warm-up" from you. In both the first steps are too large. Look at `update_ratio`
    at the **end**: where warm-up was missing, steps have become small; where the rate is too high, they never do.
""")
def first_step_alone(run):
    return _by_order(run, **{HIGH: lambda run: False, COLD: lambda run: run["update_ratio"][0] > 0.05})


@exercise.misconception("""
    You call it a leak only when the loss is exactly 0, or below. It only comes near: what is drawn at random should not
    be foretold to a hundredth of a nat. Compare with the first loss, which is about ln V.
""")
def leak_means_zero(run):
    return _by_order(run, **{LEAK: lambda run: run["loss"][-1] <= 0})


@exercise.misconception("""
    You take every falling loss for a leak. In most of these runs the model learns something, and its loss falls to a
    half or three quarters. A leak brings it near 0, where no honest model gets.
""")
def leak_means_learning(run):
    return _by_order(run, **{LEAK: lambda run: run["loss"][-1] < 0.97 * run["loss"][0], COLLAPSED: lambda run: False})


@exercise.misconception("""
    You look for collapsed heads at the wrong end of the entropy. Even attention has a **high** entropy, ln of the keys
    it sees, and is how every model begins. Collapsed heads have picked one key each: an entropy near 0.
""")
def collapse_means_even(run):
    return _by_order(run, **{COLLAPSED: lambda run: run["attention_entropy"][-1] > 0.9 * run["attention_entropy"][0]})


@exercise.misconception("""
    You take a gradient that has become smaller for one that vanishes. Gradients waver, and become smaller whenever a
    run learns. A vanishing gradient is not somewhat smaller than at the start: it is tiny, at every step.
""")
def vanishing_means_falling(run):
    return _by_order(run, **{VANISHED: lambda run: run["grad_norm"][-1] < run["grad_norm"][0]})


@exercise.misconception("""
    You never say "vanishing gradient". A loss that does not move has many reasons; this one shows in `grad_norm`,
    which is a hundred million times smaller than in the other runs.
""")
def never_vanishing(run):
    return _by_order(run, **{VANISHED: lambda run: False})


@exercise.misconception("""
    You judge by the loss alone. A loss that stalls looks the same whether the gradient vanished, the heads collapsed
    or the first steps were too large. Each of the other four instruments tells one of them apart.
""")
def loss_alone(run):
    loss = _lists(run)["loss"]
    if not math.isfinite(loss[-1]):
        return OVERFLOW
    if loss[-1] < 0.02 * loss[0]:
        return LEAK
    if max(loss) > 1.2 * loss[0]:
        return HIGH
    return VANISHED


@exercise.misconception("""
    You call every large score an overflow. Collapsed heads have large scores too, since it takes them to pick one key
    alone. What tells the two apart is whether the loss is still a number.
""")
def large_score_is_overflow(run):
    return _by_order(run, **{OVERFLOW: lambda run: max(run["max_score"]) > 15})


@exercise.alternative
def by_scores_and_losses(run):
    ratio, loss = run["update_ratio"], run["loss"]
    if max(run["max_score"]) > 88.7 or torch.isnan(loss).any():
        return OVERFLOW
    if loss[-5:].mean() < 0.05 * loss[0]:
        return LEAK
    if run["attention_entropy"][-5:].mean() < 0.1:
        return COLLAPSED
    if run["grad_norm"].max() < 1e-4:
        return VANISHED
    return HIGH if ratio[-10:].mean() > 0.05 else COLD


@exercise.alternative
def in_numpy(run):
    series = {name: np.asarray(values) for name, values in run.items()}
    if np.isnan(series["loss"]).any():
        return OVERFLOW
    later = {name: np.median(values[len(values) * 3 // 4 :]) for name, values in series.items()}
    if later["update_ratio"] > 0.05:
        return HIGH
    if series["update_ratio"][:3].max() > 0.1:
        return COLD
    if later["grad_norm"] < 1e-7:
        return VANISHED
    if later["attention_entropy"] / series["attention_entropy"][0] < 0.2:
        return COLLAPSED
    return LEAK


@exercise.alternative
def by_ratios_to_the_start(run):
    def end(name):
        return float(run[name][-1])

    if any(math.isnan(value) for value in run["loss"].tolist()):
        return OVERFLOW
    if end("update_ratio") > 0.03:
        return HIGH
    if float(run["update_ratio"][0]) > 20 * end("update_ratio"):
        return COLD
    if end("update_ratio") < 1e-5:
        return VANISHED
    if end("attention_entropy") < 0.1 * float(run["attention_entropy"][0]):
        return COLLAPSED
    return LEAK
