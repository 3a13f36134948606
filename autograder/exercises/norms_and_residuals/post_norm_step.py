"""Check `post_norm_step`: add, then normalize."""

import torch

from autograder.exercise import Exercise
from autograder.exercises.norms_and_residuals import CHAPTER
from autograder.exercises.norms_and_residuals.steps import CASES, NAMED
from course_lib import residual

exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=residual.post_norm_step,
    returns=("the result",),
    named=NAMED,
    cases=CASES,
)


@exercise.misconception("""
    This is the pre-norm step: the norm stands before the sublayer, and the skip path goes around it. GPT-2 and most
    models since do it so; the original transformer, and this exercise, normalize the sum. Document B calls each of the
    two the original once.
""")
def pre_norm(x, sublayer, norm):
    return x + sublayer(norm(x))


@exercise.misconception("""
    You normalize the branch and add x unnormalized. Post-norm normalizes the sum, so its result is a normalized token.
    Try a sublayer that gives 0: what should come out?
""")
def norm_on_the_branch_only(x, sublayer, norm):
    return x + norm(sublayer(x))


@exercise.misconception("""
    There is no skip path in your step. Try a sublayer that gives 0: yours returns the norm of 0, the same for every x.
    A residual step should still know x.
""")
def no_skip_path(x, sublayer, norm):
    return norm(sublayer(x))


@exercise.misconception("""
    There is no norm in your step, only the sum.
""")
def no_norm(x, sublayer, norm):
    return x + sublayer(x)


@exercise.misconception("""
    You normalize x first and use that for both paths. The sum of a normalized token and a sublayer's output is not
    normalized; in post-norm the norm has the last word.
""")
def norm_first_on_both_paths(x, sublayer, norm):
    normalized = norm(x)
    return normalized + sublayer(normalized)


@exercise.misconception("""
    You normalize both paths and add them. The sum of two normalized tokens is not normalized. Add first.
""")
def both_paths_normalized_apart(x, sublayer, norm):
    return norm(x) + norm(sublayer(x))


@exercise.misconception("""
    You normalize twice, before the sublayer and after the sum. (Some recent models do that on purpose, under the name
    of sandwich norm.) The original step has one norm, around the sum; its sublayer reads x as it is.
""")
def norm_before_and_after(x, sublayer, norm):
    return norm(x + sublayer(norm(x)))


@exercise.misconception("""
    Your skip path carries the norm of x, and the sum is not normalized. Turn it round: the skip path carries x, and
    the norm takes the sum.
""")
def only_the_skip_path_normalized(x, sublayer, norm):
    return norm(x) + sublayer(x)


@exercise.misconception("""
    You subtract the sublayer's output. A sublayer can learn either sign, so models are trained with a sum.
""")
def branch_subtracted(x, sublayer, norm):
    return norm(x - sublayer(x))


@exercise.misconception("""
    The result of the norm is right, but x is added once more after it.
""")
def skip_path_added_again(x, sublayer, norm):
    return x + norm(x + sublayer(x))


@exercise.misconception("""
    You added into x itself. The caller may still need it: write `x + ...`, which makes a new tensor, instead of `x +=
    ...`.
""")
def input_changed_in_place(x, sublayer, norm):
    x += sublayer(x)
    return norm(x)


@exercise.alternative
def branch_first(x, sublayer, norm):
    branch = sublayer(x)
    return norm(branch + x)


@exercise.alternative
def by_torch_add(x, sublayer, norm):
    return norm(torch.add(x, sublayer(x)))


@exercise.alternative
def added_into_a_copy(x, sublayer, norm):
    total = x.clone()
    total += sublayer(x)
    return norm(total)


@exercise.alternative
def as_a_sum_of_a_stack(x, sublayer, norm):
    return norm(torch.stack([x, sublayer(x)]).sum(dim=0))
