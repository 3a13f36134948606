"""Check `pre_norm_step`: normalize what the sublayer reads, and leave the skip path alone."""

import torch

from autograder.exercise import Exercise
from autograder.exercises.norms_and_residuals import CHAPTER
from autograder.exercises.norms_and_residuals.steps import CASES, NAMED
from course_lib import residual

exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=residual.pre_norm_step,
    returns=("the result",),
    named=NAMED,
    cases=CASES,
)


@exercise.misconception("""
    Your skip path starts from the normalized x. Replace the sublayer by one that gives 0: a pre-norm step should then
    hand x through unchanged, and yours returns its norm. The skip path must start before the norm, so that x keeps its
    scale and the gradient a straight road. Which variable do you add at the end?
""")
def skip_path_normalized(x, sublayer, norm):
    normalized = norm(x)
    return normalized + sublayer(normalized)


@exercise.misconception("""
    This is the post-norm step, the original one: add, then normalize. Pre-norm puts the norm in front of the sublayer
    and nothing on the skip path.
""")
def post_norm(x, sublayer, norm):
    return norm(x + sublayer(x))


@exercise.misconception("""
    There is no skip path in your step: with a sublayer that gives 0, x is lost. (Document A's one-line description of
    pre-norm, `MultiHeadAttention(LayerNorm(x))`, leaves it out too.) What should such a sublayer leave of x?
""")
def no_skip_path(x, sublayer, norm):
    return sublayer(norm(x))


@exercise.misconception("""
    The norm stands after the sublayer in your step, on the branch. Here it stands before: it normalizes what the
    sublayer reads, not what it writes.
""")
def norm_after_the_sublayer(x, sublayer, norm):
    return x + norm(sublayer(x))


@exercise.misconception("""
    There is no norm in your step: the sublayer reads x at whatever size it has grown to.
""")
def no_norm(x, sublayer, norm):
    return x + sublayer(x)


@exercise.misconception("""
    You normalize twice, before the sublayer and after the sum. The second norm stands in the skip path's way, which
    pre-norm keeps free; a stack has one such norm at its very end.
""")
def norm_before_and_after(x, sublayer, norm):
    return norm(x + sublayer(norm(x)))


@exercise.misconception("""
    The norm is on the wrong path: yours normalizes what is skipped, and the sublayer reads the raw x.
""")
def only_the_skip_path_normalized(x, sublayer, norm):
    return norm(x) + sublayer(x)


@exercise.misconception("""
    You add x to what the sublayer reads, not to what it gives: the sublayer sees x + norm(x), and x has no way around
    it.
""")
def skip_path_into_the_sublayer(x, sublayer, norm):
    return sublayer(x + norm(x))


@exercise.misconception("""
    You subtract the sublayer's output. A sublayer can learn either sign, so models are trained with a sum.
""")
def branch_subtracted(x, sublayer, norm):
    return x - sublayer(norm(x))


@exercise.misconception("""
    You added into x itself. The caller may still need it: write `x + ...`, which makes a new tensor, instead of `x +=
    ...`.
""")
def input_changed_in_place(x, sublayer, norm):
    x += sublayer(norm(x))
    return x


@exercise.alternative
def branch_first(x, sublayer, norm):
    branch = sublayer(norm(x))
    return branch + x


@exercise.alternative
def by_torch_add(x, sublayer, norm):
    return torch.add(sublayer(norm(x)), x)


@exercise.alternative
def added_into_a_copy(x, sublayer, norm):
    stream = x.clone()
    stream += sublayer(norm(x))
    return stream


@exercise.alternative
def as_a_list_that_is_summed(x, sublayer, norm):
    return sum([sublayer(norm(x))], start=x)
