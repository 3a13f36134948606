"""Check `softmax_jacobian`: how each weight moves with each score."""

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.attention import CHAPTER
from autograder.exercises.attention.properties import dtype_kept
from autograder.program import Program, Run, call
from course_lib import attention

SATURATED = 12.0  # how far the winning score stands above the others: its weight is above 0.9999
ROW_SUM_TOLERANCE = 1e-4  # coarse on purpose: it only picks the sentence, the values decide


def row_of_weights(draw: Draw, length: int, lead: float = 0.0) -> Program:
    """Draw one row of weights; `lead` sets one score apart from the others."""
    scores = draw.normal(length)
    scores[draw.integer(0, length - 1)] += lead
    return call(attention.softmax(scores))


def any_length(draw: Draw) -> Program:
    """Draw a row of three to eight weights."""
    return row_of_weights(draw, draw.integer(3, 8))


def rows_sum_to_zero(program: Program, found: Run) -> str | None:
    """Give a sentence when a row of the Jacobian does not sum to 0."""
    (weights,) = program.steps[0].args
    jacobian = np.asarray(found.outcomes[0])
    if jacobian.shape != (len(weights), len(weights)):
        return None
    sums = jacobian.sum(-1)
    if np.allclose(sums, 0, atol=ROW_SUM_TOLERANCE):
        return None
    first = int(np.argmax(np.abs(sums)))
    return (
        f"row {first} of your Jacobian sums to {sums[first]:.3g}, but every row should sum to 0: adding the same "
        "amount to all scores changes no weight"
    )


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=attention.softmax_jacobian,
    returns=("jacobian",),
    properties=[dtype_kept, rows_sum_to_zero],
    forbids=["torch.autograd.functional.jacobian", "torch.func.jacrev", "torch.func.jacfwd"],
    forbids_because="this exercise asks for the formula of the derivative",
    cases=[
        Case("five unequal weights", lambda draw: row_of_weights(draw, 5)),
        Case("a row of any length", any_length),
        Case("another row", lambda draw: row_of_weights(draw, draw.integer(9, 16)), hidden=True),
        Case("a saturated row", lambda draw: row_of_weights(draw, 6, SATURATED), hidden=True),
        Case("equal weights", lambda draw: call(attention.softmax(0 * draw.normal(4))), hidden=True),
        Case("a certain choice", lambda draw: call(draw.array([0.0, 1.0, 0.0])), hidden=True),
        Case("float32", any_length, hidden=True, dtype="float32"),
    ],
)


@exercise.misconception("""
    Off the diagonal your Jacobian is 0, as if each weight depended on its own score alone. The weights share one
    sum: raise one score of [1, 2, 3] a little and see what the other two weights do.
""")
def diagonal_only(weights):
    return np.diag(weights * (1 - weights))


@exercise.misconception("""
    You return only the diagonal, p(1 - p): one number for each weight. Each of the n weights depends on each of the
    n scores, so there are n × n derivatives.
""")
def the_diagonal_as_a_vector(weights):
    return weights * (1 - weights)


@exercise.misconception("""
    Off the diagonal your derivatives are positive. If one score rises, can the share of another rise with it? Your
    rows should sum to 0.
""")
def off_diagonal_positive(weights):
    outer = np.outer(weights, weights)
    return np.diag(weights * (1 - weights)) + outer - np.diag(np.diag(outer))


@exercise.misconception("""
    Every entry has the opposite sign: your diagonal is negative. A weight grows with its own score.
""")
def opposite_sign(weights):
    return np.outer(weights, weights) - np.diag(weights)


@exercise.misconception("""
    Only the numerator was differentiated: diag(p) is what comes out if the sum in the denominator were constant. It
    contains every score too.
""")
def denominator_held_constant(weights):
    return np.diag(weights)


@exercise.misconception("""
    Only the denominator was differentiated: -p_i p_j stands everywhere, also on the diagonal. What does the numerator
    of weight i add when i = j?
""")
def numerator_held_constant(weights):
    return -np.outer(weights, weights)


@exercise.misconception("""
    Your matrix is the outer product of p and 1 - p: right on the diagonal, but positive and not symmetric elsewhere.
    How does weight i move with another score j? The rows should sum to 0.
""")
def outer_product_with_the_rest(weights):
    return np.outer(weights, 1 - weights)


@exercise.misconception("""
    These are the derivatives of the logarithm of the weights, δ_ij - p_j. One factor p_i is missing in every row.
""")
def jacobian_of_the_logarithm(weights):
    return np.eye(len(weights), dtype=weights.dtype) - weights


@exercise.misconception("""
    The argument already holds weights, the softmax's results. You take a softmax of them once more; what you get
    belongs to other, more even weights.
""")
def softmax_taken_twice(weights):
    return attention.softmax_jacobian(attention.softmax(weights))


@exercise.misconception("""
    Your Jacobian is float64 although the weights are float32: `np.eye(n)` and `np.zeros(...)` make float64 arrays if
    you do not tell them the dtype, and one of them widens the rest.
""")
def widened_by_the_identity(weights):
    return weights[:, None] * (np.eye(len(weights)) - weights)


@exercise.alternative
def diagonal_minus_outer_product(weights):
    return np.diag(weights) - np.outer(weights, weights)


@exercise.alternative
def transposed(weights):
    return attention.softmax_jacobian(weights).T


@exercise.alternative
def diagonal_filled_in(weights):
    jacobian = -weights[:, None] * weights[None, :]
    np.fill_diagonal(jacobian, weights * (1 - weights))
    return jacobian


@exercise.alternative
def by_two_loops(weights):
    jacobian = np.zeros((len(weights), len(weights)), dtype=weights.dtype)
    for i, share in enumerate(weights):
        for j, other in enumerate(weights):
            jacobian[i, j] = share * (1 - share) if i == j else -share * other
    return jacobian


@exercise.alternative
def by_einsum(weights):
    identity = np.eye(len(weights), dtype=weights.dtype)
    return np.einsum("i,ij->ij", weights, identity) - np.einsum("i,j->ij", weights, weights)


@exercise.alternative
def by_a_complex_step(weights):
    step = 1e-30
    with np.errstate(divide="ignore"):
        scores = np.log(weights.astype(np.float64))
    moved = np.exp(scores + 1j * step * np.eye(len(weights)))
    return ((moved / moved.sum(-1, keepdims=True)).imag / step).T.astype(weights.dtype)
