"""Check `layer_norm_backward`: the chain rule through mean and variance by hand."""

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises import library_calls
from autograder.exercises.norms_and_residuals import CHAPTER
from autograder.exercises.norms_and_residuals.parts import DEFAULT_EPS, LARGE_EPS, TINY, mean_over, tokens, vector
from autograder.program import Program, call
from course_lib import normalization

Array = np.ndarray


def with_gradient(draw: Draw, leading: int = 1, scale: float = 1.0, **options: float) -> Program:
    """Draw tokens, a gain and the gradient of a loss."""
    x = tokens(draw, leading, scale)
    return call(x, vector(draw, x.shape[-1]), draw.normal(*x.shape), **options)


def one_entry(draw: Draw) -> Program:
    """Take one entry of the result as the loss, so that the gradient is 1 there and 0 elsewhere."""
    x = tokens(draw)
    gradient = np.zeros(x.shape)
    gradient[tuple(draw.integer(0, size - 1) for size in x.shape)] = 1
    return call(x, vector(draw, x.shape[-1]), draw.array(gradient))


exercise = Exercise(
    chapter=CHAPTER,
    library="numpy",
    reference=normalization.layer_norm_backward,
    returns=("grad_x", "grad_gain", "grad_bias"),
    forbids=[*library_calls.AUTOGRAD, "torch.native_layer_norm_backward"],
    forbids_because=library_calls.INSTEAD_OF_AUTOGRAD,
    cases=[
        Case("tokens of one sequence", with_gradient),
        Case("the loss is one entry of the result", one_entry),
        Case("a batch of sequences", lambda draw: with_gradient(draw, leading=2)),
        Case("another batch", lambda draw: with_gradient(draw, leading=2), hidden=True),
        Case("a batch of several heads", lambda draw: with_gradient(draw, leading=3), hidden=True),
        Case("one token alone", lambda draw: with_gradient(draw, leading=0), hidden=True),
        Case("a large eps", lambda draw: with_gradient(draw, leading=2, eps=LARGE_EPS), hidden=True),
        Case("tiny numbers", lambda draw: with_gradient(draw, leading=2, scale=TINY), hidden=True),
        Case("float32", with_gradient, hidden=True, dtype="float32"),
    ],
)


def _forward(x: Array, eps: float) -> tuple[Array, Array]:
    """Give the normalized tokens and the root that they were divided by."""
    centered = x - mean_over(x, -1)
    root = np.sqrt(mean_over(centered**2, -1) + eps)
    return centered / root, root


def _collect(x: Array, gain: Array, grad_output: Array, eps: float, grad_x: Array) -> tuple[Array, Array, Array]:
    """Join a gradient of x with the right gradients of gain and bias."""
    _, grad_gain, grad_bias = normalization.layer_norm_backward(x, gain, grad_output, eps)
    return grad_x, grad_gain, grad_bias


@exercise.misconception("""
    You treat mean and standard deviation as constants. Both depend on x. Test: adding the same number to all features
    of a token changes no result, so the gradients of a token must sum to 0. Do yours?
""")
def mean_and_variance_constant(x, gain, grad_output, eps=DEFAULT_EPS):
    _, root = _forward(x, eps)
    return _collect(x, gain, grad_output, eps, gain * grad_output / root)


@exercise.misconception("""
    Your gradients of a token sum to 0, so the way through the mean is there; the way through the variance is missing.
    Stretching a token around its mean changes (almost) no result: your gradient should have no part along x̂.
""")
def way_through_the_variance_forgotten(x, gain, grad_output, eps=DEFAULT_EPS):
    _, root = _forward(x, eps)
    g = gain * grad_output
    return _collect(x, gain, grad_output, eps, (g - mean_over(g, -1)) / root)


@exercise.misconception("""
    The way through the variance is there; the way through the mean is missing: your gradients of a token do not sum
    to 0, though adding the same number to all of its features changes no result.
""")
def way_through_the_mean_forgotten(x, gain, grad_output, eps=DEFAULT_EPS):
    normalized, root = _forward(x, eps)
    g = gain * grad_output
    return _collect(x, gain, grad_output, eps, (g - normalized * mean_over(g * normalized, -1)) / root)


@exercise.misconception("""
    grad_x does not know the gain. On the way forward x̂ is multiplied by it, so what flows back is too, before mean
    and variance come in.
""")
def gain_forgotten(x, gain, grad_output, eps=DEFAULT_EPS):
    grad_x, _, _ = normalization.layer_norm_backward(x, np.ones_like(gain), grad_output, eps)
    return _collect(x, gain, grad_output, eps, grad_x)


@exercise.misconception("""
    The gain comes in at the end of your grad_x. It stands between x̂ and the result, so going back it comes first: the
    two means are those of gain · grad_output.
""")
def gain_after_the_means(x, gain, grad_output, eps=DEFAULT_EPS):
    grad_x, _, _ = normalization.layer_norm_backward(x, np.ones_like(gain), grad_output, eps)
    return _collect(x, gain, grad_output, eps, gain * grad_x)


@exercise.misconception("""
    The division by the root is missing in grad_x: x was divided by it on the way forward, so what flows back is
    divided as well.
""")
def division_by_the_root_forgotten(x, gain, grad_output, eps=DEFAULT_EPS):
    _, root = _forward(x, eps)
    grad_x, _, _ = normalization.layer_norm_backward(x, gain, grad_output, eps)
    return _collect(x, gain, grad_output, eps, grad_x * root)


@exercise.misconception("""
    In grad_x you sum over the features where a mean belongs: mean and variance were means, so each feature has only
    the share 1/d in them.
""")
def sums_in_place_of_means(x, gain, grad_output, eps=DEFAULT_EPS):
    normalized, root = _forward(x, eps)
    g, width = gain * grad_output, x.shape[-1]
    grad_x = (g - width * mean_over(g, -1) - width * normalized * mean_over(g * normalized, -1)) / root
    return _collect(x, gain, grad_output, eps, grad_x)


@exercise.misconception("""
    grad_gain still has a row per token. All tokens share one gain, so its gradient is the sum over all tokens: it has
    the shape of the gain. The same goes for the bias.
""")
def parameters_per_token(x, gain, grad_output, eps=DEFAULT_EPS):
    normalized, _ = _forward(x, eps)
    grad_x, _, _ = normalization.layer_norm_backward(x, gain, grad_output, eps)
    return grad_x, grad_output * normalized, grad_output


@exercise.misconception("""
    With a batch, your gradients of gain and bias keep a row: you sum over the first axis only. All tokens of all
    examples share them, so sum over every axis but the last.
""")
def summed_over_the_first_axis(x, gain, grad_output, eps=DEFAULT_EPS):
    normalized, _ = _forward(x, eps)
    grad_x, _, _ = normalization.layer_norm_backward(x, gain, grad_output, eps)
    return grad_x, (grad_output * normalized).sum(axis=0), grad_output.sum(axis=0)


@exercise.misconception("""
    Your gradients of gain and bias are means over the tokens. The loss that hands in grad_output decides about any
    averaging; the chain rule adds up.
""")
def parameters_averaged(x, gain, grad_output, eps=DEFAULT_EPS):
    grad_x, grad_gain, grad_bias = normalization.layer_norm_backward(x, gain, grad_output, eps)
    count = grad_output.size // grad_output.shape[-1]
    return grad_x, grad_gain / count, grad_bias / count


@exercise.misconception("""
    grad_gain is the sum of grad_output · x. The gain multiplies the normalized token x̂, so that is its partner.
""")
def gain_meets_the_raw_token(x, gain, grad_output, eps=DEFAULT_EPS):
    grad_x, _, grad_bias = normalization.layer_norm_backward(x, gain, grad_output, eps)
    return grad_x, (grad_output * x).sum(axis=tuple(range(x.ndim - 1))), grad_bias


@exercise.misconception("""
    grad_gain is multiplied by the gain. The gain stands as a single factor, so its derivative is what it multiplies,
    x̂, and no longer has the gain in it.
""")
def gain_in_its_own_gradient(x, gain, grad_output, eps=DEFAULT_EPS):
    grad_x, grad_gain, grad_bias = normalization.layer_norm_backward(x, gain, grad_output, eps)
    return grad_x, gain * grad_gain, grad_bias


@exercise.misconception("""
    grad_bias is multiplied by the gain. The bias is added after the gain has done its work, so the two never meet.
""")
def gain_in_the_gradient_of_the_bias(x, gain, grad_output, eps=DEFAULT_EPS):
    grad_x, grad_gain, grad_bias = normalization.layer_norm_backward(x, gain, grad_output, eps)
    return grad_x, grad_gain, gain * grad_bias


@exercise.misconception("""
    Your forward part divides the sum of squares by n - 1, so root and x̂ are not those of layer norm, which divides by
    n.
""")
def estimate_from_a_sample(x, gain, grad_output, eps=DEFAULT_EPS):
    centered = x - mean_over(x, -1)
    root = np.sqrt((centered**2).sum(-1, keepdims=True) / (x.shape[-1] - 1) + eps)
    normalized, g = centered / root, gain * grad_output
    grad_x = (g - mean_over(g, -1) - normalized * mean_over(g * normalized, -1)) / root
    tokens_axes = tuple(range(x.ndim - 1))
    return grad_x, (grad_output * normalized).sum(axis=tokens_axes), grad_output.sum(axis=tokens_axes)


@exercise.misconception("""
    There is no eps in your root. Your gradients are right where the variance is large and wrong where it is as small
    as eps.
""")
def no_eps(x, gain, grad_output, eps=DEFAULT_EPS):
    return normalization.layer_norm_backward(x, gain, grad_output, 0.0)


@exercise.misconception("""
    Your result does not depend on `eps`: the default stands in its place. Use the argument.
""")
def eps_ignored(x, gain, grad_output, eps=DEFAULT_EPS):
    return normalization.layer_norm_backward(x, gain, grad_output)


@exercise.misconception("""
    Your gradients do not depend on grad_output: they are those of the sum of all results, where it is all ones. The
    chain rule starts with whatever the loss hands in.
""")
def output_gradient_ignored(x, gain, grad_output, eps=DEFAULT_EPS):
    return normalization.layer_norm_backward(x, gain, np.ones_like(grad_output), eps)


@exercise.misconception("""
    The gradients of gain and bias have changed places: return them in the order x, gain, bias.
""")
def gain_and_bias_exchanged(x, gain, grad_output, eps=DEFAULT_EPS):
    grad_x, grad_gain, grad_bias = normalization.layer_norm_backward(x, gain, grad_output, eps)
    return grad_x, grad_bias, grad_gain


@exercise.misconception("""
    All your gradients have the opposite sign. A gradient points uphill; the minus belongs to the training step, not to
    the chain rule.
""")
def opposite_sign(x, gain, grad_output, eps=DEFAULT_EPS):
    return tuple(-gradient for gradient in normalization.layer_norm_backward(x, gain, grad_output, eps))


@exercise.misconception("""
    Your result is float64 although the inputs are not. Return the inputs' dtype; half the memory of a model depends on
    it.
""")
def result_in_float64(x, gain, grad_output, eps=DEFAULT_EPS):
    return normalization.layer_norm_backward(x.astype(np.float64), gain, grad_output, eps)


@exercise.alternative
def by_the_full_jacobian(x, gain, grad_output, eps=DEFAULT_EPS):
    normalized, root = _forward(x, eps)
    width = x.shape[-1]
    outer = normalized[..., :, None] * normalized[..., None, :]
    jacobian = (np.eye(width, dtype=x.dtype) - 1 / width - outer / width) / root[..., None]
    grad_x = ((gain * grad_output)[..., None, :] @ jacobian)[..., 0, :]
    rows = grad_output.reshape(-1, width)
    return grad_x, np.einsum("nd,nd->d", rows, normalized.reshape(-1, width)), np.einsum("nd->d", rows)


@exercise.alternative
def step_by_step(x, gain, grad_output, eps=DEFAULT_EPS):
    width = x.shape[-1]
    centered = x - x.mean(-1, keepdims=True)
    variance = (centered**2).mean(-1, keepdims=True)
    inverse = (variance + eps) ** -0.5
    grad_normalized = grad_output * gain
    grad_variance = (grad_normalized * centered).sum(-1, keepdims=True) * -0.5 * inverse**3
    grad_centered = grad_normalized * inverse + grad_variance * 2 * centered / width
    grad_x = grad_centered - grad_centered.sum(-1, keepdims=True) / width
    rows = grad_output.reshape(-1, width)
    return grad_x, ((centered * inverse).reshape(-1, width) * rows).sum(0), rows.sum(0)


@exercise.alternative
def one_token_at_a_time_as_a_list(x, gain, grad_output, eps=DEFAULT_EPS):
    grad_x, grad_gain, grad_bias = np.empty_like(x), np.zeros_like(gain), np.zeros_like(gain)
    for place in np.ndindex(x.shape[:-1]):
        normalized, root = _forward(x[place], eps)
        g = gain * grad_output[place]
        grad_x[place] = (g - g.mean() - normalized * (g * normalized).mean()) / root
        grad_gain += grad_output[place] * normalized
        grad_bias += grad_output[place]
    return [grad_x, grad_gain, grad_bias]


@exercise.alternative
def in_the_scaled_form(x, gain, grad_output, eps=DEFAULT_EPS):
    normalized, root = _forward(x, eps)
    width, g = x.shape[-1], gain * grad_output
    bracket = width * g - g.sum(-1, keepdims=True) - normalized * (g * normalized).sum(-1, keepdims=True)
    axes = tuple(range(x.ndim - 1))
    return bracket / (width * root), np.sum(grad_output * normalized, axis=axes), np.sum(grad_output, axis=axes)
