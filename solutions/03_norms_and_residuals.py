# ---
# title: "3 · Norms and residual connections"
# ---

# %% [markdown] role="opening" minutes=35
# # 3 · Norms and residual connections
#
# Attention and the feed-forward network are what a transformer computes. Norms and residual connections are why it
# can be trained at all: take one plus sign out of a deep stack, or move one norm, and it learns nothing. In this
# chapter you build both, settle four quarrels between the documents, and find the depth at which each design breaks.
#
# **At the end you can**
#
# - write layer norm and RMS norm, and say over which axis, with which variance, and where eps stands;
# - tell batch, layer and instance norm apart by what reaches a token's result;
# - carry a gradient back through layer norm by hand;
# - build pre-norm and post-norm, say which is the original, and what each does to the skip path;
# - measure the gradient at every depth of a stack, and tell a vanished gradient from tokens that have become alike.
#
# **You need** chapter 1; chapter 2 for the blocks that are trained at the end; derivatives for one exercise. The first
# half is NumPy, the second half PyTorch.
#
# **The documents.** A, "Inside a Transformer Block": "Residual Connections and Layer Normalization" with its table and
# code. B, "Transformer Block Dissected Layer-by-Layer": "Layer Normalization and Residual Connections" (twice),
# "Initialization and Normalization", and "Vanishing Gradients in Deep Transformer Stacks". C, "Transformers":
# "Residual Connections" and "Layer Normalization".

# %%
import math

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from autograder import check
from course_lib import normalization, plots, residual, results, timing
from course_lib.models.deep_signals import fresh_stack, identity_share, measure_signals
from course_lib.models.deep_training import train_deep_reverser
from course_lib.settings import quick
from course_lib.trial import reveal, verdict
from course_lib.widgets import depth_explorer, show_norm_flow

Array = np.ndarray

# %% [markdown]
# ## Why a norm?
#
# A layer multiplies a token by a matrix and bends it. Do that often, and the numbers grow or shrink by the same
# factor each time. The next cell sends 100 tokens through 24 random layers, with weights a little too large, just
# right, and a little too small.

# %%
sizes = {}
for name, factor in (("weights 30 % larger", 1.3), ("just right", 1.0), ("30 % smaller", 0.7)):
    generator = np.random.default_rng(0)  # the same tokens and directions for all three
    x = generator.normal(size=(100, 64))
    sizes[name] = [1.0]
    for _ in range(24):
        matrix = factor * generator.normal(size=(64, 64)) * math.sqrt(2 / 64)  # 2 for the ReLU
        x = np.maximum(x @ matrix, 0)
        sizes[name].append(float(np.sqrt((x**2).mean())))

plots.show(
    plots.line_plot(
        range(25),
        sizes,
        xlabel="layers passed",
        ylabel="size of the numbers",
        title="No norm: a factor per layer",
        log_y=True,
    )
)

# %% [markdown]
# Thirty percent in the weights become a factor of 1.3²⁴ ≈ 540 after 24 layers, up, or of 0.7²⁴ ≈ 1/5,200, down,
# compared with the middle curve. "Just right" is a knife's edge, and training moves every weight off it. A norm ends
# this: whatever comes in, each token goes on with mean 0 and variance 1.
#
# $$\text{LayerNorm}(x)_j = \gamma_j \, \frac{x_j - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta_j
# \qquad \mu = \frac1d \sum_j x_j \qquad \sigma^2 = \frac1d \sum_j (x_j - \mu)^2$$
#
# The gain γ and the bias β are learned, one pair per feature. But over **which numbers** do mean and variance run?
# Document A gives a formula in which each **feature** is normalized over the tokens of the sequence. Documents B and
# C say that each **token** is normalized over its features. So does A itself, in a comment twenty lines below its
# formula.

# %% [markdown] exercise="layer_norm" role="header" minutes=10 lines=3 difficulty=2
# ## Exercise: layer norm
#
# Normalize each token over its own features, then scale and shift each feature.
#
# **Why it matters.** GPT-2 small has 25 of these: two in each of its 12 blocks and one at the end. They hold only
# 38,400 of its 124 million numbers.
#
# **Contract.** `x` is `(..., feature)` with any leading axes, none included; `gain` and `bias` are `(feature,)`. Mean
# and variance run over the **last axis**. The variance is the biased one, the mean of the squared distances; `eps` is
# added to it **inside** the root. The result has the shape and the dtype of `x`, and `x` stays as it was.
#
# <details><summary>Hint 1: the idea</summary>
#
# Each token should need nobody else. Which axis do you average over, so that one mean per token is left?
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `x.mean(axis=-1, keepdims=True)` keeps the averaged axis with length 1, so that it broadcasts against `x`. `x.var`
# does the same for the variance, and divides by n unless told otherwise. (torch's `var` divides by n − 1 unless told
# otherwise.)
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Subtract the mean; divide by `np.sqrt(variance + eps)`; multiply by the gain; add the bias.
#
# </details>


# %% exercise="layer_norm" role="answer"
def layer_norm(
    x: Float[Array, "... feature"],
    gain: Float[Array, "feature"],
    bias: Float[Array, "feature"],
    eps: float = 1e-5,
) -> Float[Array, "... feature"]:
    """Standardize each token over its features, then scale and shift each feature."""
    # BEGIN SOLUTION
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(variance + eps) + bias
    # END SOLUTION


# %% exercise="layer_norm" role="test" points=1
from autograder import check

check(layer_norm)

# %% exercise="layer_norm" role="hidden test" points=2
from autograder import check

check(layer_norm, hidden=True)

# %% [markdown]
# ### Predict first: does the last token reach the first?
#
# Six tokens with 8 features each are normalized twice: by document A's formula, over the sequence, and by yours, over
# the features. Then only the **last** token changes, by a few units. By how much does the largest entry of the
# **first** token's result move under document A's formula?

# %%
my_prediction = None  # a number, 0 or more

tokens = np.random.default_rng(0).normal(size=(6, 8))
last_changed = tokens.copy()
last_changed[-1] += 3 * np.random.default_rng(1).normal(size=8)


def over_the_sequence(x: Float[Array, "sequence feature"]) -> Float[Array, "sequence feature"]:
    """Compute document A's formula: each feature over the tokens."""
    return normalization.standardize(x, axes=(0,))


def over_the_features(x: Float[Array, "sequence feature"]) -> Float[Array, "sequence feature"]:
    """Compute the formula of documents B and C: each token over its features."""
    return normalization.standardize(x, axes=(1,))


def movement_of_the_first(norm) -> float:
    """Return how far the first token's result moves when the last token changes."""
    return float(np.abs(norm(last_changed)[0] - norm(tokens)[0]).max())


reveal(my_prediction, movement_of_the_first(over_the_sequence))
print(f"over the features it moves by {movement_of_the_first(over_the_features):.3g}")

# %% [markdown]
# ### Claim on trial: the axis of layer norm
#
# The framework is the referee. `F.instance_norm` is a different norm; remember it for a moment.

# %%
from_torch = torch.from_numpy(tokens)
framework = F.layer_norm(from_torch, (8,)).numpy()
# Instance norm wants (batch, feature, sequence).
framework_instance = F.instance_norm(from_torch.T[None])[0].T.numpy()


def on_trial(norm) -> dict[str, bool]:
    """Ask three questions about a norm."""
    return {
        "equality with the framework's layer norm": bool(np.allclose(norm(tokens), framework)),
        "a token that ignores the others": movement_of_the_first(norm) == 0,
        "a sequence of one token": bool(np.abs(norm(tokens[:1])).max() > 0),
    }


verdict(
    "A: layer norm works per feature, across the sequence",
    on_trial(over_the_sequence),
    depends_on="the question",
)
verdict(
    "B and C: layer norm works per token, across features",
    on_trial(over_the_features),
    depends_on="the question",
)
print(
    "document A's formula is the framework's instance norm:",
    np.allclose(over_the_sequence(tokens), framework_instance),
)

# %% [markdown]
# Document A's formula is a real norm with another name. In a language model it would be a disaster: the last token
# leaks into the first, so the future leaks into the past; padding changes every result; and a text of one token
# becomes all zeros. (Document A's code example would not have told: it calls `np.nn.LayerNorm`, which does not exist,
# on a square 4 × 4 array, on which both axes give the right shape.)
#
# ### Where eps stands
#
# eps keeps a token of equal numbers from being divided by 0. For ordinary numbers it hardly matters. Here is one
# random token of 256 features, scaled from 10⁻⁶ to 1, and the standard deviation of what comes out.
#
# ### Predict first: a tiny token
#
# Inside the root, with eps = 1e-5: what is the standard deviation of the result for a token whose entries are around
# 10⁻⁴? (A token of ordinary size comes out with 1.)

# %%
my_prediction = None  # a number between 0 and 1

scales = np.logspace(-6, 0, 7)
token = np.random.default_rng(0).normal(size=256)


def spread(scale: float, eps: float, inside: bool) -> float:
    """Return the standard deviation of the normalized token."""
    x = scale * token
    root = np.sqrt(x.var() + eps) if inside else x.std() + eps
    return float(((x - x.mean()) / root).std())


reveal(my_prediction, spread(1e-4, 1e-5, inside=True))
curves = {
    "inside, 1e-5 (here)": [spread(scale, 1e-5, True) for scale in scales],
    "outside, 1e-5": [spread(scale, 1e-5, False) for scale in scales],
    "inside, 1e-12 (BERT)": [spread(scale, 1e-12, True) for scale in scales],
}
plots.show(
    plots.line_plot(
        scales,
        curves,
        xlabel="size of the entries",
        ylabel="standard deviation after the norm",
        log_x=True,
        title="eps decides for tiny tokens",
    )
)

# %% [markdown]
# Inside the root, eps is compared with the variance, so it takes over below √eps ≈ 0.003. Outside, it is compared
# with the standard deviation and takes over below 0.00001. A checkpoint that was trained with one and is run with the
# other gives different answers wherever tokens are small.
#
# > **Paper and practice: four layer norms.** The paper (Ba et al. 2016) has no eps at all, and one of document B's
# > two formulas leaves it out as well. PyTorch: inside, 1e-5. BERT: inside, 1e-12. The Annotated Transformer, a
# > much-copied tutorial: outside, 1e-6, and the standard deviation divided by n − 1. Check the configuration before
# > you compare numbers.

# %% [markdown] exercise="rms_norm" role="header" minutes=8 lines=2 difficulty=2
# ## Exercise: RMS norm
#
# Leave the mean where it is, and divide by the root of the mean of the squares:
#
# $$\text{RMSNorm}(x)_j = \gamma_j \, \frac{x_j}{\sqrt{\frac1d \sum_k x_k^2 + \varepsilon}}$$
#
# **Why it matters.** T5, Llama, Gemma, Mistral and Qwen use it in place of layer norm. (T5's code calls it "layer
# norm".)
#
# **Contract.** `x` is `(..., feature)`, `gain` is `(feature,)`. No mean is removed anywhere. `eps` stands inside the
# root. The result keeps the dtype. In **float16** the result must be right even where the squares do not fit: that
# format ends at 65,504, so raise the numbers to float32 for the arithmetic, and bring the result back to the dtype
# of `x`.
#
# <details><summary>Hint 1: the idea</summary>
#
# A token [3, 3, 3] has variance 0 but a root mean square of 3, so it comes out as ones (times the gain).
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `x.astype(np.promote_types(x.dtype, np.float32))` gives float32 or better. `.astype(x.dtype)` returns to where you
# came from.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Raise x; take the mean of the squares over the last axis with `keepdims=True`; divide by `np.sqrt(mean_square +
# eps)`; multiply by the gain; return to the dtype of x.
#
# </details>


# %% exercise="rms_norm" role="answer"
def rms_norm(
    x: Float[Array, "... feature"], gain: Float[Array, "feature"], eps: float = 1e-5
) -> Float[Array, "... feature"]:
    """Divide each token by the root of the mean of its squares, then scale each feature."""
    # BEGIN SOLUTION
    precise = x.astype(np.promote_types(x.dtype, np.float32))
    mean_square = (precise**2).mean(axis=-1, keepdims=True)
    return (gain * precise / np.sqrt(mean_square + eps)).astype(x.dtype)
    # END SOLUTION


# %% exercise="rms_norm" role="test" points=1
from autograder import check

check(rms_norm)

# %% exercise="rms_norm" role="hidden test" points=2
from autograder import check

check(rms_norm, hidden=True)

# %% [markdown]
# What is lost without the mean? RMS norm is layer norm for tokens whose mean is 0 already. It is not blind to a shift,
# which layer norm is. The second half of the cell shows why the contract asks for float32.

# %%
token = np.random.default_rng(0).normal(size=6)
centered, ones, zeros = token - token.mean(), np.ones(6), np.zeros(6)


def distance(a: Array, b: Array) -> float:
    """Return the largest difference."""
    return float(np.abs(a - b).max())


def layer(x: Array) -> Array:
    """Normalize with gain 1 and bias 0."""
    return normalization.layer_norm(x, ones, zeros)


def rms(x: Array) -> Array:
    """Normalize with gain 1."""
    return normalization.rms_norm(x, ones)


apart = distance(rms(centered), layer(centered))
print(f"centered token: RMS norm and layer norm differ by {apart:.1g}")
print(f"the token shifted by 5: layer norm moves by {distance(layer(token + 5), layer(token)):.1g}")
print(f"                        RMS norm moves by   {distance(rms(token + 5), rms(token)):.2g}")

loud = np.full(4, 300, dtype=np.float16)
with np.errstate(over="ignore"):  # the overflow is what we came to see
    careless = loud / np.sqrt((loud * loud).mean() + np.float16(1e-5))
print("\n300 in float16, squared as it is:  ", careless)
print("300 in float16, squared in float32:", normalization.rms_norm(loud, np.ones(4, np.float16)))

# %% [markdown]
# ### Claim on trial: "reduced computation"
#
# Document B says that RMS norm reduces computation. The formula certainly has fewer steps. Does it take less time?
# Two ways to run both norms: line by line, and as one call of the framework. (This trial is about seconds, so its
# verdict may differ on your machine, and on a busy one the noise can hide a difference: "refuted" then means "not shown
# here and now".)


# %%
def layer_norm_by_lines(x: Float[Tensor, "... feature"]) -> Float[Tensor, "... feature"]:
    """Take one pass over the numbers for each step."""
    centered = x - x.mean(-1, keepdim=True)
    return centered * torch.rsqrt(centered.square().mean(-1, keepdim=True) + 1e-5)


def rms_norm_by_lines(x: Float[Tensor, "... feature"]) -> Float[Tensor, "... feature"]:
    """Do the same without the two steps for the mean."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)


size = "512 tokens of 512"
seconds = timing.compare(
    {
        "layer norm, by lines": layer_norm_by_lines,
        "RMS norm, by lines": rms_norm_by_lines,
        "layer norm, one call": lambda x: F.layer_norm(x, (512,)),
        "RMS norm, one call": lambda x: F.rms_norm(x, (512,), eps=1e-5),
    },
    sizes=[size],
    inputs=lambda _: torch.randn(512, 512, generator=torch.Generator().manual_seed(0)),
    min_seconds=0.01,
)
for name in seconds.names:
    print(f"{name:>20}: {seconds.at(name, size)}")


def rms_is_faster(way: str) -> bool:
    """Say whether RMS norm is faster by more than the noise."""
    layer, rms = f"layer norm, {way}", f"RMS norm, {way}"
    gain = seconds.at(layer, size).median - seconds.at(rms, size).median
    return seconds.differs(size, layer, rms) and gain > 0


print()
for way in ("by lines", "one call"):
    print(seconds.verdict(size, f"RMS norm, {way}", f"layer norm, {way}"))
print()
verdict(
    "B: RMS norm takes less time than layer norm (by more than the noise)",
    {way: rms_is_faster(way) for way in ("by lines", "one call")},
    depends_on="how the norm is run",
)

# %% [markdown]
# Fewer steps are not automatically less time. A norm reads and writes far more than it computes, so what counts is how
# often the numbers travel through memory. If your framework has one fused kernel for layer norm and none for RMS norm,
# the simpler formula loses.
#
# > **Paper and practice: the gain.** Here and in Llama the gain is the factor itself and starts at 1. Gemma stores w
# > and multiplies by 1 + w, so that w starts at 0. Loading one kind of checkpoint into the other kind of code runs
# > without an error. Many recipes also spare gains and biases from weight decay, since pulling a gain to 0 switches a
# > feature off.

# %% [markdown] exercise="normalization_axes" role="header" minutes=6 lines=4 difficulty=2
# ## Exercise: three norms, one function
#
# Batch, layer and instance norm are the same function, `(x - mean) / √(variance + eps)`. They differ in the axes over
# which mean and variance run. For an array `(batch, sequence, feature)`, say which.
#
# - **Batch norm** keeps one mean per feature.
# - **Layer norm** (in transformers) keeps one mean per token.
# - **Instance norm** keeps one mean per example and feature.
#
# **Why it matters.** The axes decide what may influence a result. That is why transformers do without batch norm.
#
# **Contract.** `kind` is `"batch"`, `"layer"` or `"instance"`. Return a tuple of the axes that are **averaged over**,
# in any order, counted from the front or from the end. Any other `kind` raises a `ValueError`.
#
# <details><summary>Hint 1: the idea</summary>
#
# Write down the axes that are kept; the others are averaged over.
#
# </details>
# <details><summary>Hint 2: a check</summary>
#
# `x.mean(axis=axes, keepdims=True).shape` shows what is kept: for batch norm it should be (1, 1, feature).
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# A dictionary from kind to tuple. Test `kind in dictionary` first, and raise if it is not.
#
# </details>


# %% exercise="normalization_axes" role="answer"
def normalization_axes(kind: str) -> tuple[int, ...]:
    """Give the axes of (batch, sequence, feature) over which mean and variance are taken."""
    # BEGIN SOLUTION
    axes = {"batch": (0, 1), "layer": (2,), "instance": (1,)}
    if kind not in axes:
        raise ValueError(f"`kind` must be batch, layer or instance, got {kind!r}.")
    return axes[kind]
    # END SOLUTION


# %% exercise="normalization_axes" role="test" points=1
from autograder import check

check(normalization_axes)

# %% exercise="normalization_axes" role="hidden test" points=1
from autograder import check

check(normalization_axes, hidden=True)

# %% [markdown]
# ### Claims on trial: document B's table of norms
#
# Document B gives a table: batch norm has the axis "Batch × Features" and no sensitivity to sequence length; layer
# norm has "Features" and no sensitivity at all; instance norm has "Features" and a high sensitivity to sequence
# length. Instead of arguing, replace parts of the input and watch the first feature of the first token of the first
# example.

# %%
generator = np.random.default_rng(0)
x = generator.normal(size=(4, 5, 6))
noise = generator.normal(1, 2, size=x.shape)
replaced = {
    "other examples": np.s_[1:],
    "other positions": np.s_[0, 1:],
    "other features": np.s_[0, 0, 1:],
}

reach = {}
for kind in ("batch", "layer", "instance"):
    axes = normalization.normalization_axes(kind)
    before = normalization.standardize(x, axes)[0, 0, 0]
    for name, place in replaced.items():
        changed = x.copy()
        changed[place] = noise[place]
        reach[kind, name] = abs(normalization.standardize(changed, axes)[0, 0, 0] - before)

print(f"{'moves the result by':>20}" + "".join(f"{name:>18}" for name in replaced))
for kind in ("batch", "layer", "instance"):
    print(f"{kind + ' norm':>20}" + "".join(f"{reach[kind, name]:18.2f}" for name in replaced))
print()
verdict(
    "A: layer norm has no batch dependence",
    {"layer norm": reach["layer", "other examples"] == 0},
    depends_on="the norm",
)
verdict(
    "B: batch norm averages over features",
    {"batch norm": reach["batch", "other features"] > 0},
    depends_on="the norm",
)
verdict(
    "B: batch norm is not sensitive to the other positions, padded ones included",
    {"batch norm": reach["batch", "other positions"] == 0},
    depends_on="the norm",
)
both_moved = [(reach["instance", name] > 0, reach["layer", name] > 0) for name in replaced]
verdict(
    "B: instance norm and layer norm have the same axis",
    {"what moves their results": all(one == other for one, other in both_moved)},
    depends_on="the norm",
)

# %% [markdown]
# Only layer norm lets a token be itself. Batch norm has two more troubles, which document A's table names: its
# statistics are estimates that are poor for small batches, and in use there may be no batch, so it keeps running
# means from training and behaves differently then. One entry of that table is backwards, though: batch norm is not a
# reason to **reduce** the learning rate. Its paper advertises higher ones (Ioffe and Szegedy 2015, §3.3). And that
# layer norm is "slightly slower than batch norm" depends on the kernels, as it did for RMS norm.
#
# **Why does it help?** Document A says that norms prevent "internal covariate shift", the drifting of a layer's
# inputs. That was the original idea for batch norm. Experiments since then speak against it: networks with artificial
# drift train just as well (Santurkar et al. 2018), and for layer norm the gradients **through** mean and variance
# matter more than the forward rescaling (Xu et al. 2019). You will compute these gradients after the bug hunt.

# %% [markdown] exercise="repaired_layer_norm" role="header" minutes=12 lines=3 difficulty=2
# ## Bug hunt: three faults in three lines
#
# This function combines three faults of layer norms that are frequent in the wild; the first is document A's formula.
# It runs on a square array without complaint. Three users report:
#
# 1. "I changed one word, and the vectors of all the other words changed. It is only a norm!"
# 2. "I compared with PyTorch on 8 features. Yours is smaller by the factor 0.935, everywhere."
# 3. "Our activations are tiny. PyTorch returns numbers around 0.03, yours around 0.9."
#
# **Why it matters.** A model trains with any of the three, so nobody looks. They show when its weights are loaded into
# another program, or when one text's result depends on its neighbors.
#
# **Contract.** That of `layer_norm`.
#
# <details><summary>Hint 1: where to look</summary>
#
# One fault stands in two places.
#
# </details>
# <details><summary>Hint 2: how to see them</summary>
#
# 0.935 is √(7/8). For the third, compute `np.std(x) + eps` and `np.sqrt(np.var(x) + eps)` for `x = [0, 2e-4]`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Axis −1 in both lines; `var` without `ddof`; `np.sqrt` around variance plus eps.
#
# </details>


# %% exercise="repaired_layer_norm" role="answer"
def repaired_layer_norm(
    x: Float[Array, "... feature"],
    gain: Float[Array, "feature"],
    bias: Float[Array, "feature"],
    eps: float = 1e-5,
) -> Float[Array, "... feature"]:
    """Standardize each token over its features, then scale and shift each feature."""
    # BEGIN SOLUTION
    mean = np.mean(x, axis=-1, keepdims=True)
    root = np.sqrt(np.var(x, axis=-1, keepdims=True) + eps)
    return gain * (x - mean) / root + bias
    # END SOLUTION
    # BEGIN STARTER
    # mean = np.mean(x, axis=-2, keepdims=True)
    # root = np.std(x, axis=-2, keepdims=True, ddof=1) + eps
    # return gain * (x - mean) / root + bias
    # END STARTER


# %% exercise="repaired_layer_norm" role="test" points=2
from autograder import check

check(repaired_layer_norm)

# %% exercise="repaired_layer_norm" role="hidden test" points=2
from autograder import check

check(repaired_layer_norm, hidden=True)

# %% [markdown] exercise="layer_norm_backward" role="header" minutes=25 lines=9 difficulty=4
# ## Exercise (stretch): back through layer norm
#
# Given the gradient of a loss with respect to the result, find it for x, gain and bias.
#
# **Why it matters.** Everything that trains in a post-norm transformer goes through this Jacobian, once per sublayer.
# What it takes away, no learning rate brings back.
#
# **Contract.** `x` and `grad_output` are `(..., feature)`, `gain` is `(feature,)`. Return `(grad_x, grad_gain,
# grad_bias)` in the shapes of x, gain and bias. `eps` inside the root, as always. By hand: autograd is your test, not
# your tool.
#
# <details><summary>Hint 1: the idea</summary>
#
# Write x̂ = (x − μ)/root. The easy part: the bias is added to every token, the gain multiplies x̂ for every token.
# The hard part: x enters x̂ in three ways, directly, through μ, and through the root.
#
# </details>
# <details><summary>Hint 2: two tests</summary>
#
# Adding the same number to all features of a token changes nothing, so `grad_x` must sum to 0 for every token.
# Stretching a token around its mean changes nothing (but for eps), so `grad_x` must be at right angles to x̂. Each of
# the two is one subtraction.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# With g = gain · grad_output, `grad_x` is g minus its mean, minus x̂ times the mean of g · x̂, and all that over the
# root. The means run over the features of one token. For gain and bias, sum over all axes but the last.
#
# </details>


# %% exercise="layer_norm_backward" role="answer"
def layer_norm_backward(
    x: Float[Array, "... feature"],
    gain: Float[Array, "feature"],
    grad_output: Float[Array, "... feature"],
    eps: float = 1e-5,
) -> tuple[Float[Array, "... feature"], Float[Array, "feature"], Float[Array, "feature"]]:
    """Carry a gradient from layer norm's result back to x, gain and bias."""
    # BEGIN SOLUTION
    centered = x - x.mean(axis=-1, keepdims=True)
    root = np.sqrt((centered**2).mean(axis=-1, keepdims=True) + eps)
    normalized = centered / root
    g = gain * grad_output
    along = (g * normalized).mean(axis=-1, keepdims=True)
    grad_x = (g - g.mean(axis=-1, keepdims=True) - normalized * along) / root
    every_token = tuple(range(x.ndim - 1))
    return (
        grad_x,
        (grad_output * normalized).sum(axis=every_token),
        grad_output.sum(axis=every_token),
    )
    # END SOLUTION


# %% exercise="layer_norm_backward" role="test" points=2
from autograder import check

check(layer_norm_backward)

# %% exercise="layer_norm_backward" role="hidden test" points=3
from autograder import check

check(layer_norm_backward, hidden=True)

# %% [markdown]
# ### Predict first: the gradient of a sum
#
# A fresh layer norm (gain 1, bias 0) gets a random token. The loss is the plain **sum** of its result. How large is
# the gradient that reaches the token: what is the length of `grad_x`?

# %%
my_prediction = None  # a number, 0 or more

token = np.random.default_rng(0).normal(size=(1, 16))
grad_x, _, _ = normalization.layer_norm_backward(token, np.ones(16), np.ones((1, 16)))
reveal(my_prediction, float(np.linalg.norm(grad_x)))

# %% [markdown]
# The result of the norm has mean 0 whatever comes in, so its sum is 0 and cannot change. Remember this when you test
# code that ends in a norm: `output.sum().backward()` tests nothing there. (In this chapter every measurement of a
# stack weighs the entries of the result at random.)

# %% [markdown]
# ## Residual connections
#
# Now the other half. A residual connection (or skip connection) adds a layer's result to its input: x + f(x). What
# runs from block to block, with something added by each, is called the **stream**.
#
# Document A argues with the chain rule. Without it, the gradient that reaches the first layer is a product of
# Jacobians,
#
# $$\frac{\partial L}{\partial x^{(0)}} = \frac{\partial L}{\partial x^{(n)}} \cdot
# \frac{\partial x^{(n)}}{\partial x^{(n-1)}} \cdots \frac{\partial x^{(1)}}{\partial x^{(0)}},$$
#
# and if each has singular values below 1, the product shrinks exponentially.
#
# "This is why RNNs struggle with long sequences", the document adds: an RNN multiplies by nearly the same Jacobian
# once for every token. Document C puts the remedy into a picture: layers should learn **corrections** to what is
# there.
#
# ### Claim on trial: the product of Jacobians
#
# Here are 24 fresh transformer blocks without any skip connection. One stack has no norm either; one has norms; one
# has norms and weights three times as large. For each, the largest singular value of every block's Jacobian (the
# most by which the block stretches a small change of its input), and the largest of their product.


# %%
def jacobians(kind: str, factor: float) -> list[Float[Tensor, "out in"]]:
    """Differentiate every block of a fresh stack of 24 at the stream that reaches it."""
    model, digits = fresh_stack(kind, 24, factor, seed=0)
    stream, found = model.embed(digits), []
    for block in model.blocks:
        square = torch.func.jacrev(block)(stream).reshape(stream.numel(), stream.numel())
        found.append(square.double())
        stream = block(stream)
    return found


def largest_stretch(matrix: Float[Tensor, "out in"]) -> float:
    """Return the largest singular value."""
    return torch.linalg.matrix_norm(matrix, ord=2).item()


premise, conclusion = {}, {}
for name, kind, factor in (
    ("no norm", "neither", 1.0),
    ("norms", "no skip", 1.0),
    ("norms and larger weights", "no skip", 3.0),
):
    blocks = jacobians(kind, factor)
    # The last block acts last, so it stands first.
    product = largest_stretch(torch.linalg.multi_dot(blocks[::-1]))
    stretches = [largest_stretch(jacobian) for jacobian in blocks]
    premise[name], conclusion[name] = max(stretches) < 1, product < 0.01
    per_block = f"{min(stretches):.2g} to {max(stretches):.2g}"
    print(f"{name:>25}: per block {per_block}, product of all {product:.1e}")

print()
verdict(
    "A: the Jacobians of the blocks have singular values below 1",
    premise,
    depends_on="norms and weights",
)
verdict(
    "A: without residual connections the product all but vanishes (below 0.01)",
    conclusion,
    depends_on="norms and weights",
)

# %% [markdown]
# The argument is sound, but its premise is about the size of the weights and whether there are norms, and not only
# about skip connections. With norms and larger weights the gradient arrives. Still, that stack will not learn, and
# you will soon see why.
#
# ### Claim on trial: document B's gradient of a residual block
#
# For y = LayerNorm(x + F(x)) document B gives the gradient as ∂L/∂y · (J_LN ⊙ (1 + J_F)), with an elementwise product ⊙
# and the number 1; J_LN and J_F are the Jacobians of the norm and of F. The chain rule for vectors says J_LN · (I +
# J_F): a matrix product and the identity **matrix**. Autograd knows.

# %%
torch.manual_seed(0)
sublayer = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 6))
sublayer.double().requires_grad_(False)
norm = nn.LayerNorm(6).double().requires_grad_(False)
x = torch.randn(6, dtype=torch.float64)

truth = torch.func.jacrev(lambda z: norm(z + sublayer(z)))(x)
j_f, j_ln = torch.func.jacrev(sublayer)(x), torch.func.jacrev(norm)(x + sublayer(x))
identity = torch.eye(6, dtype=torch.float64)
formulas = {
    "matrix product, I": j_ln @ (identity + j_f),
    "⊙ with 1": j_ln * (1 + j_f),
    "⊙ with I": j_ln * (identity + j_f),
}
for name, formula in formulas.items():
    print(f"{name:>18}: off by {(formula - truth).abs().max().item():.1e}")

print(
    "singular values of J_LN:",
    [float(f"{value:.2g}") for value in torch.linalg.svdvals(j_ln)],
    "\n",
)
verdict(
    "B: the gradient is an elementwise product",
    {name: torch.allclose(formulas[name], truth) for name in ("⊙ with 1", "⊙ with I")},
    depends_on="the reading",
)

# %% [markdown]
# Look at the singular values of J_LN: two of the six are (nearly) zero. They are the two directions of your stretch
# exercise, moving all features together and stretching them. A post-norm step sends **everything** through this
# matrix, the skip path too. So one design decision is left: does the norm lie on the skip path, or beside it? You build
# both.

# %% [markdown] exercise="post_norm_step" role="header" minutes=5 lines=1 difficulty=1
# ## Exercise: post-norm
#
# Add what the sublayer makes of x to x itself, then normalize the sum. This is the "Add & Norm" of the original
# transformer's figure.
#
# **Why it matters.** It is one line, and the order of its two operations decides how deep a model can be.
#
# **Contract.** `x` is a tensor; `sublayer` and `norm` are functions (or modules) from a tensor to a tensor of the same
# shape. Use what you are given, each once. x stays as it was.
#
# <details><summary>Hint 1: a test</summary>
#
# With a sublayer that returns zeros, the result should be `norm(x)`.
#
# </details>
# <details><summary>Hint 2: the order</summary>
#
# The norm has the last word.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Call `norm` on a sum of two terms. The sublayer reads x as it is.
#
# </details>


# %% exercise="post_norm_step" role="answer"
def post_norm_step(x: Float[Tensor, "..."], sublayer, norm) -> Float[Tensor, "..."]:
    """Add, then normalize."""
    # BEGIN SOLUTION
    return norm(x + sublayer(x))
    # END SOLUTION


# %% exercise="post_norm_step" role="test" points=1
from autograder import check

check(post_norm_step)

# %% exercise="post_norm_step" role="hidden test" points=1
from autograder import check

check(post_norm_step, hidden=True)

# %% [markdown] exercise="pre_norm_step" role="header" minutes=5 lines=1 difficulty=1
# ## Exercise: pre-norm
#
# Normalize only what the sublayer reads. The skip path carries x itself.
#
# **Why it matters.** GPT-2, GPT-3, Llama and nearly every large model since 2019 are built this way. The most frequent
# mistake in real code is to normalize x once, at the top, and then add to the normalized one.
#
# **Contract.** As before: `sublayer` and `norm` take a tensor and give one of the same shape, each is used once, and
# x stays as it was. The skip path is **not** normalized.
#
# <details><summary>Hint 1: a test</summary>
#
# With a sublayer that returns zeros, the result should be x, unchanged.
#
# </details>
# <details><summary>Hint 2: the order</summary>
#
# First the norm, then the sublayer, then the sum.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The sublayer reads `norm(x)`. What is added to its result?
#
# </details>


# %% exercise="pre_norm_step" role="answer"
def pre_norm_step(x: Float[Tensor, "..."], sublayer, norm) -> Float[Tensor, "..."]:
    """Normalize what the sublayer reads, and leave the skip path alone."""
    # BEGIN SOLUTION
    return x + sublayer(norm(x))
    # END SOLUTION


# %% exercise="pre_norm_step" role="test" points=1
from autograder import check

check(pre_norm_step)

# %% exercise="pre_norm_step" role="hidden test" points=1
from autograder import check

check(pre_norm_step, hidden=True)

# %% [markdown]
# Document B announces a diagram of this choice. Here are both, side by side. Follow the thick line, the skip path,
# from x to the top: in which of the two does it meet the norm?

# %%
show_norm_flow()

# %% [markdown]
# ### Claim on trial: which one is the original?
#
# Document A writes post-norm and calls pre-norm a modern variant. Document B writes post-norm twice, and then says
# that layer norm "is applied before the FFNN in the original Transformer architecture (Pre-LN)". The paper is short
# on this: "the output of each sub-layer is LayerNorm(x + Sublayer(x))" (Vaswani et al. 2017, §3.1). PyTorch's encoder
# layer claims to follow the paper, so which of your two steps makes it, as it comes out of the box?

# %%
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, dropout=0.0, batch_first=True)
for norm in (layer.norm1, layer.norm2):
    nn.init.normal_(norm.weight)  # a fresh gain of 1 would hide a swapped norm
x = 1 + 3 * torch.randn(2, 5, 16)


def two_steps(
    step,
    x: Float[Tensor, "batch sequence d_model"],
) -> Float[Tensor, "batch sequence d_model"]:
    """Put the layer's own attention and feed-forward part into two steps."""
    x = step(x, lambda inner: layer.self_attn(inner, inner, inner)[0], layer.norm1)
    return step(x, lambda inner: layer.linear2(torch.relu(layer.linear1(inner))), layer.norm2)


def agrees(step) -> bool:
    """Say whether two such steps make the layer."""
    return torch.allclose(two_steps(step, x), layer(x), atol=1e-5)


with torch.no_grad():
    steps_of = {"post-norm": residual.post_norm_step, "pre-norm": residual.pre_norm_step}
    equal = {name: agrees(step) for name, step in steps_of.items()}
    layer.norm_first = True
    equal_with_flag = {name: agrees(step) for name, step in steps_of.items()}

print("the framework's layer as it comes:  ", equal)
print("the same layer with norm_first=True:", equal_with_flag, "\n")
verdict(
    "B: pre-norm is the original",
    {"the layer of a framework that follows the paper": equal["pre-norm"]},
    depends_on="the source",
)

# %% [markdown]
# Post-norm is the original; the formulas of A and B agree, and B's sentence is a slip. One reason for the
# confusion: the authors' own library moved to pre-norm soon after the paper, and the Annotated Transformer's text
# describes post-norm while its code does pre-norm.
#
# Document B also says that this "differs from the original ResNet formulation where normalization follows the
# residual path". The original ResNet normalizes **inside** the branch, after each convolution, adds, and then only
# bends with a ReLU; no norm follows the sum (He et al. 2016, §3.4 and fig. 2). Its second version moved everything
# off the skip path, which is pre-norm for images.
#
# > **Paper and practice: the last norm.** A pre-norm stack adds up raw results, so nobody has normalized the stream
# > when it leaves. Every pre-norm model therefore has one more norm after its last block: `ln_f` in GPT-2, `norm` in
# > Llama. In PyTorch you have to pass it yourself (`nn.TransformerEncoder(..., norm=nn.LayerNorm(d))`), and nothing
# > reminds you.
#
# ### Claim on trial: "the model can keep the original representation"
#
# Document C: with a shortcut, a layer that is not useful yet can "keep the original representation and add only a
# small change". Take a sublayer that adds nothing at all, and see what ten such layers leave of x.

# %%
norm = nn.LayerNorm(16)
kept = {}
with torch.no_grad():
    for name, step in steps_of.items():
        stream = x
        for _ in range(10):
            stream = step(stream, torch.zeros_like, norm)
        kept[name] = torch.equal(stream, x)
        print(f"{name:>9}: the stream moved by {(stream - x).abs().max().item():.2f}")

print()
verdict(
    "C: layers that add nothing keep the representation",
    kept,
    depends_on="where the norm stands",
)

# %% [markdown] exercise="gradient_norms" role="header" minutes=15 lines=8 difficulty=3
# ## Exercise: the gradient at every depth
#
# Measure what flows back. For a list of blocks that are applied one after the other, find for **each block's input**
# the length of the gradient of the summed last output.
#
# **Why it matters.** It is the first plot to make when a deep model does not train, and it takes a minute.
#
# **Contract.** `blocks` is a list of functions or modules; `x` is a tensor, the first block's input. Return a list of
# Python floats, one per block, in their order: entry k is ‖∂ Σ(last output) / ∂ (input of block k)‖, the Euclidean
# norm over **all** entries. One backward pass is enough.
#
# <details><summary>Hint 1: the idea</summary>
#
# Keep the input of every block in a list while you go forward. At the end, ask for the gradients with respect to all
# of them at once.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `x.detach().requires_grad_()` starts a new graph at x. `torch.autograd.grad(scalar, list_of_tensors)` gives a
# gradient for each, and touches no `.grad`. `gradient.norm().item()` is a float.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Loop: append the stream to the list, then replace the stream by `block(stream)`. After the loop,
# `torch.autograd.grad` of `stream.sum()` with respect to the list.
#
# </details>


# %% exercise="gradient_norms" role="answer"
def gradient_norms(blocks: list, x: Float[Tensor, "..."]) -> list[float]:
    """Measure how strongly the summed last output feels each block's input."""
    # BEGIN SOLUTION
    stream = x.detach().requires_grad_()
    inputs = []
    for block in blocks:
        inputs.append(stream)
        stream = block(stream)
    gradients = torch.autograd.grad(stream.sum(), inputs)
    return [gradient.norm().item() for gradient in gradients]
    # END SOLUTION


# %% exercise="gradient_norms" role="test" points=2
from autograder import check

check(gradient_norms)

# %% exercise="gradient_norms" role="hidden test" points=2
from autograder import check

check(gradient_norms, hidden=True)

# %% [markdown]
# ### Predict first: 24 blocks, four designs
#
# Four fresh stacks of 24 blocks, with PyTorch's usual initialization: pre-norm, post-norm, norms without skip
# connections, and skip connections without norms. A random weighing of all numbers that leave the stack is the
# **readout**, and its gradient at the end of the stack counts as 1. What is left of it at the **first** block of the
# stack without skip connections?

# %%
my_prediction = None  # a number between 0 and 1

KINDS = ("pre-norm", "post-norm", "no skip", "no norm")
signals = {kind: measure_signals(kind, num_layers=24) for kind in KINDS}
reveal(my_prediction, signals["no skip"].gradients[0])

left, right = plots.panels(2)
plots.line_plot(
    range(25),
    {kind: signals[kind].gradients for kind in KINDS},
    xlabel="blocks passed",
    ylabel="gradient (readout: 1)",
    title="What flows back",
    ax=left,
    log_y=True,
)
plots.line_plot(
    range(25),
    {kind: signals[kind].varieties for kind in KINDS},
    xlabel="blocks passed",
    ylabel="variety of the tokens",
    title="What flows forward",
    ax=right,
    log_y=True,
)
plots.show(left.figure)

# %% [markdown]
# Left, the gradient. Right, the **variety**: take the mean of all tokens away from each, and see what share of their
# length is left. It is 0 when all tokens are equal. Without skip connections attention averages the tokens again and
# again, and after a few blocks all tokens are **equal** (Dong et al. 2021). Then no gradient helps: where all tokens
# are the same, there is nothing to read.
#
# In the explorer below, set the weights to 3 times. The gradient without skip connections is now as good as any. Then
# switch to "variety". (Move through the controls with the Tab key, and change them with the arrow keys.)

# %%
depth_explorer()

# %% [markdown]
# Things to find out with it:
#
# 1. With what weights does the stack without norms explode, and at which depth?
# 2. The size of the pre-norm stream grows with depth. Like the depth, or like its root? (Each block adds something
#    of size 1 that is independent of the rest.)
# 3. Which design keeps the variety of its tokens for 48 blocks and weights of 2?
#
# ### Claims on trial: the identity path, and "attenuation beyond 24 layers"
#
# Document A: the residual term contributes "the identity matrix", so that gradients "flow directly through". How much
# of an identity is in $\partial x^{(L)} / \partial x^{(0)}$? The trace (the sum of the diagonal), divided by the number
# of rows, is 1 for the identity. Document B adds that "despite residual connections", models with more than 24 layers
# suffer from "gradient attenuation".

# %%
SEEDS = (0, 1, 2)
depths = (1, 6, 12, 24, 48)
seeds_used = SEEDS[:1] if quick() else SEEDS
shares = {
    kind: [np.mean([identity_share(kind, depth, seed) for seed in seeds_used]) for depth in depths]
    for kind in ("pre-norm", "post-norm")
}
plots.show(
    plots.line_plot(
        depths,
        shares,
        xlabel="blocks",
        ylabel="share of the identity",
        title=f"The identity path (seeds averaged: {len(seeds_used)})",
    )
)
verdict(
    "A: through the residual term the gradient is the identity (share above 0.9 after 24 blocks)",
    {kind: shares[kind][depths.index(24)] > 0.9 for kind in shares},
    depends_on="where the norm stands",
)

# %% [markdown]
# And the second claim: the gradient at the first block, for stacks of 6, 24 and 48 blocks.


# %%
def first_gradient(kind: str, depth: int) -> float:
    """Return the gradient that reaches the first block, as a mean over seeds."""
    return float(np.mean([measure_signals(kind, depth, seed=seed).gradients[0] for seed in SEEDS]))


gradient_at = {
    kind: {depth: first_gradient(kind, depth) for depth in (6, 24, 48)}
    for kind in ("pre-norm", "post-norm")  # the two with a skip path and norms
}
for kind, measured in gradient_at.items():
    told = ", ".join(f"{depth} blocks {value:.2f}" for depth, value in measured.items())
    print(f"{kind:>9}: {told}")
print()
verdict(
    "B: beyond 24 layers gradients attenuate despite residuals (48 layers: below half of 6 layers)",
    {kind: measured[48] < measured[6] / 2 for kind, measured in gradient_at.items()},
    depends_on="where the norm stands",
)

# %% [markdown]
# In post-norm the skip path itself passes a norm in every step, so the identity fades. In pre-norm it is there at any
# depth. (Document B also gives a formula for the attenuation, a product of factors (1 − λ) σ², and says that
# gradients are stable when the residual strength λ goes to 1. Put λ = 1 into it: the product is 0. The formula
# contradicts its own text.)
#
# Document B has a heading "Practical Implementation Considerations" with nothing under it. What could stand there:
#
# > **Paper and practice: a checklist for depth.** Statistics of a norm in float32, also in a half-precision model.
# > Gain 1 and bias 0 at the start. In pre-norm, a norm at the end. In post-norm, warm-up (you will see why). In deep
# > pre-norm stacks, the last matrix of every sublayer scaled by 1/√(2 · blocks), as in GPT-2, which keeps the stream
# > from growing. No weight decay on gains and biases.

# %% [markdown] exercise="dropout" role="header" minutes=10 lines=5 difficulty=2
# ## Exercise: dropout
#
# The last row of document A's table. In training, set each entry to 0 with probability p; in use, change nothing.
#
# **Why it matters.** A transformer has dropout on its embeddings, on its attention weights and on every sublayer's
# output, just before the residual sum. Forgetting to switch it off is a classic: the model answers, a little worse,
# and never twice the same.
#
# **Contract.** `x` is a tensor. If `training`, each entry is 0 with probability `p`, independently, and the others
# are **divided by 1 − p**, so that the expected value stays. Otherwise the result equals x. Random numbers come from
# `generator` (torch's own if None): equal generators give equal results. `p` outside [0, 1) raises a `ValueError`. x
# stays as it was.
#
# <details><summary>Hint 1: the idea</summary>
#
# Draw a number between 0 and 1 for every entry. Which share of them lies at or above p?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `torch.rand(x.shape, generator=generator)`. (`rand_like` takes no generator in many versions.)
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Check p; return x if not training; multiply x by the comparison `draws >= p`; divide by 1 − p.
#
# </details>


# %% exercise="dropout" role="answer"
def dropout(
    x: Float[Tensor, "..."], p: float, training: bool, generator: torch.Generator | None = None
) -> Float[Tensor, "..."]:
    """Drop entries with probability p in training, and scale the others up."""
    # BEGIN SOLUTION
    if not 0 <= p < 1:
        raise ValueError(f"`p` must be at least 0 and below 1, got {p}.")
    if not training:
        return x
    kept = torch.rand(x.shape, generator=generator) >= p
    return x * kept / (1 - p)
    # END SOLUTION


# %% exercise="dropout" role="test" points=1
from autograder import check

check(dropout)

# %% exercise="dropout" role="hidden test" points=2
from autograder import check

check(dropout, hidden=True)

# %% [markdown]
# Three things to see. The average over many draws is x. A module in training mode gives two different answers to one
# question. And dropout on attention weights, as PyTorch does it, breaks a rule of chapter 1.

# %%
generator = torch.Generator().manual_seed(0)
x = torch.tensor([1.0, -2.0, 3.0])
draws = torch.stack([residual.dropout(x, 0.3, True, generator) for _ in range(4000)])
mean = [round(value, 2) for value in draws.mean(0).tolist()]
print("mean of 4000 draws:", mean, " x:", x.tolist())

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, dropout=0.1, batch_first=True)
tokens = torch.randn(1, 5, 16)
with torch.no_grad():
    apart = (layer(tokens) - layer(tokens)).abs().max().item()  # a new module is in training mode
    layer.eval()
    apart_in_use = (layer(tokens) - layer(tokens)).abs().max().item()
print(f"two answers to one question: {apart:.2f} apart in training mode,")
print(f"                             {apart_in_use:.2f} apart after eval()")

weights = torch.softmax(torch.randn(4, 20, generator=generator), dim=-1)
print(
    "rows of attention weights after dropout sum to",
    [round(s, 2) for s in residual.dropout(weights, 0.1, True, generator).sum(-1).tolist()],
)

# %% [markdown]
# > **Paper and practice: dropout today.** Document A's table names p = 0.1 to 0.5 and large models. The original
# > transformer used 0.1, and 0.3 for its big English-German model (table 3). Models that see every text only once have
# > little to overfit: PaLM, for one, was pretrained without dropout and used 0.1 when fine-tuned (Chowdhery et al.
# > 2022).

# %% [markdown]
# ## A real task: 24 layers that should reverse
#
# The task of chapter 1, with a stack instead of a single attention: read six digits, write them in reverse. Every
# stack gets the same strings, 100 steps of Adam at a learning rate of 0.003, and no warm-up. First with 6 layers.

# %% long=true
RATE = 0.003
runs = {kind: train_deep_reverser(kind, num_layers=6, learning_rate=RATE) for kind in KINDS}
shallow = {kind: run.accuracy for kind, run in runs.items()}
for kind, accuracy in shallow.items():
    print(f"{kind:>9}, 6 layers: {accuracy:.1%} of the digits right")

# %% [markdown]
# ### Predict first: now 24 layers
#
# Guessing gives 0.1. What share of the digits will the **post-norm** stack get right with 24 layers?

# %% long=true
my_prediction = None  # a share between 0 and 1

deep = {kind: train_deep_reverser(kind, num_layers=24, learning_rate=RATE) for kind in KINDS}
reveal(my_prediction, deep["post-norm"].accuracy)

left, right = plots.panels(2, width=5.4)
plots.bar_plot(shallow, ylabel="share of digits right", title="6 layers", ax=left, digits=2)
plots.bar_plot(
    {kind: run.accuracy for kind, run in deep.items()},
    ylabel="share of digits right",
    title="24 layers",
    ax=right,
    digits=2,
)
plots.show(left.figure)

# %% [markdown]
# At 6 layers pre-norm and post-norm tie. At 24 layers one has learned the task, and the other is at chance. Nothing
# else differs: same parts, same number of parameters (but for one norm), same data. And the stack without skip
# connections is at chance in both.
#
# ### The oldest remedy: warm-up
#
# The original paper trained post-norm, and its recipe starts with a learning rate near 0 that climbs for 4000 steps.
# Try it: the same 24 layers of post-norm, with a climb during the first 50 of the 100 steps.

# %% long=true
warmed = train_deep_reverser("post-norm", num_layers=24, learning_rate=RATE, warmup=50)
curves = {
    "pre-norm": deep["pre-norm"].history,
    "post-norm": deep["post-norm"].history,
    "post-norm, warm-up": warmed.history,
}
print(f"post-norm with warm-up: {warmed.accuracy:.1%} of the digits right")
plots.show(
    plots.line_plot(
        range(1, len(warmed.history) + 1),
        curves,
        xlabel="step",
        ylabel="loss (chance: 2.3)",
        title="24 layers, learning rate 0.003",
    )
)
verdict(
    'A: pre-norm and post-norm have a "similar effect" (within 0.1 of each other)',
    {
        "6 layers": abs(shallow["pre-norm"] - shallow["post-norm"]) < 0.1,
        "24 layers": abs(deep["pre-norm"].accuracy - deep["post-norm"].accuracy) < 0.1,
        "24 layers with warm-up": abs(deep["pre-norm"].accuracy - warmed.accuracy) < 0.1,
    },
    depends_on="depth and warm-up",
)

# %% [markdown]
# So it is not that a deep post-norm stack **cannot** learn. Its first large steps destroy it: near the output its
# gradients are large whatever the depth (Xiong et al. 2020, theorem 1), and a small first step does less harm.
#
# ### More depths, more rates, three seeds
#
# One seed is an anecdote. The next cell reads a result that took several minutes: `benchmarks/norm_placement.py`
# trained every design at five depths and three learning rates, from three seeds each.

# %%
table = results.load("norm_placement")
rates = sorted({row["rate"] for row in table["rows"]})
mean_accuracy = {
    (row["variant"], row["depth"], row["rate"]): np.mean(row["accuracies"])
    for row in table["rows"]  # one row per design, depth and rate
}
grid_depths = sorted({row["depth"] for row in table["rows"]})
variants = list(dict.fromkeys(row["variant"] for row in table["rows"]))

print(f"{table['task']}; mean of seeds {table['seeds']}; {table['cpu_seconds']} CPU-seconds\n")
for rate in rates:
    print(f"{f'rate {rate:g}':>20}" + "".join(f"{depth:>4} layers" for depth in grid_depths))
    for variant in variants:
        found = [mean_accuracy[variant, depth, rate] for depth in grid_depths]
        print(f"{variant:>20}" + "".join(f"{share:11.2f}" for share in found))
    print()

# %% [markdown]
# Four claims can be held against this table. They name a depth, or a learning rate, or nothing at all.

# %%
verdict(
    'A: residuals are "essential for > 6 layers" (without them: below 0.8 at every rate)',
    {
        f"{depth} layers": all(mean_accuracy["no skip", depth, rate] < 0.8 for rate in rates)
        for depth in grid_depths
        if depth > 6
    },
    depends_on="the depth",
)
verdict(
    "A, read backwards: up to 6 layers one can do without them (0.8 or more at some rate)",
    {
        f"{depth} layers": any(mean_accuracy["no skip", depth, rate] >= 0.8 for rate in rates)
        for depth in grid_depths
        if depth <= 6
    },
    depends_on="the depth",
)


def highest_rate(variant: str, depth: int) -> float:
    """Return the highest rate at which a design learns the task, 0 if there is none."""
    return max((rate for rate in rates if mean_accuracy[variant, depth, rate] >= 0.9), default=0.0)


verdict(
    "A: norms allow higher learning rates (the highest that reaches 0.9, pre-norm against no norm)",
    {
        f"{depth} layers": highest_rate("pre-norm", depth) > highest_rate("no norm", depth)
        for depth in grid_depths  # from shallow to deep
    },
    depends_on="the depth",
)


def apart(depth: int) -> float:
    """Return how far RMS norm and layer norm end from each other at the worst rate."""
    pairs = [(("pre-norm", depth, rate), ("pre-norm, RMS", depth, rate)) for rate in rates]
    return max(abs(mean_accuracy[layer] - mean_accuracy[rms]) for layer, rms in pairs)


verdict(
    "B: RMS norm performs comparably (within 0.05 of layer norm at every rate, in pre-norm)",
    {f"{depth} layers": apart(depth) < 0.05 for depth in grid_depths},
    depends_on="the depth",
)

# %% [markdown]
# Documents A (6 layers) and B ("10-20 layers") put the limit at different depths; in this task a stack without skip
# connections is lost much earlier. B's other number, stable training with "hundreds of layers", is beyond this
# notebook.
#
# Read the table along its three directions. Depth alone does not break post-norm: at the lowest rate it learns at 24
# layers. A high rate alone does not: at 6 layers it learns at every rate. It is depth **times** rate. Pre-norm is
# untouched by both, within this table.
#
# > **Paper and practice: is pre-norm better, then?** It is easier to train. When both can be trained, post-norm
# > models are often reported to end slightly better, since in a deep pre-norm stack the last blocks change an ever
# > larger stream by ever less. Attempts to have both: DeepNorm scales the skip path of post-norm (Wang et al. 2022)
# > and trained 1,000 layers; Gemma 2 and others put norms before **and** after each sublayer.

# %% [markdown] exercise="deep_post_norm" role="header" minutes=15
# ## Written question: a stack that does not train
#
# A colleague has a 32-layer post-norm transformer. Its loss stays at chance from the first steps on. "It must be the
# vanishing gradient," she says, "so I will add residual connections" (it has them already) "or raise the learning
# rate."
#
# Write her an answer of about half a page. Which measurements would you make first, and what would each result tell
# you? What do you expect to find, and which two changes would you propose, in which order, and at what price? Quote
# at least three numbers from this notebook.
#
# Your teacher looks for four things: measurements that can tell apart a vanished gradient, equal tokens and steps
# that are too large; numbers from this chapter; two remedies that fit them; and what stays open.

# %%
# Room for a measurement of your own. For example: the signals of a fresh post-norm stack.
fresh = measure_signals("post-norm", num_layers=32)
print(f"gradient at the first block {fresh.gradients[0]:.2f}")
print(f"variety at the end {fresh.varieties[-1]:.2f}")

# %% [markdown] exercise="deep_post_norm" role="written" points=4
# **Model answer.** First I would measure, on the fresh model, the gradient at every block's input, the variety of the
# tokens at every block, and the loss of the first twenty steps. A gradient that falls by orders of magnitude from the
# last block to the first would support "vanishing". Tokens whose variety falls to 1e-7 would mean that the skip path
# is broken somewhere, whatever the gradient says. Healthy signals and a loss that jumps up at once would mean that
# the steps are too large.
#
# I expect the last. A fresh post-norm stack of 24 blocks had 0.66 of the readout's gradient at the first block, not
# 1e-5, and its tokens kept a variety of 0.36; without skip connections the gradient was 7e-5 and the variety 7e-8. In
# training, the 24-layer post-norm stack stayed at 10 % right at rate 0.003, and reached 99.9 % when the rate climbed
# over the first 50 steps (93 % as a mean of three seeds); at rate 0.001 it learned without (97 %). So a **higher**
# rate would make it worse.
#
# I would add warm-up first: it changes no weights and no architecture, and costs only some slow steps; with it, or
# instead, a lower rate. At rate 0.01 warm-up did not help any more at 24 layers. If she has to go deeper or wants a
# high rate, I would move to pre-norm with a final norm, which learned at all three rates and all depths of the table.
# The price: checkpoints of the old model no longer fit, and the stream grows with depth.
#
# Open: these numbers come from one small task with six digits, a width of 32 and one optimizer. At 48 blocks the
# post-norm gradient had fallen to about 0.15, so at 32 layers and other weights vanishing could join in. Hence:
# measure first.
#
# **Rubric** (one point each)
#
# 1. Measurements that separate at least two of: vanished gradient, equal tokens, steps that are too large; each with
#    what a result would mean.
# 2. At least three numbers from the notebook, used as evidence.
# 3. Two remedies that fit (warm-up or a lower rate; pre-norm with a final norm; scaled initialization), in a sensible
#    order, with a price. A higher learning rate is wrong.
# 4. The limits: one task, small widths, seeds; what would be measured next.

# %% [markdown]
# ## Optional: your own parts, together
#
# Your `layer_norm`, `pre_norm_step` and `post_norm_step` in place of the framework's: with its attention and its two
# matrices, they make its encoder layer, in both orders. This cell is not graded and may fail while your answers are
# unfinished.

# %%
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, dropout=0.0, batch_first=True)
x = 1 + 3 * torch.randn(2, 5, 16)


def with_your_layer_norm(module: nn.LayerNorm):
    """Let your function do the work of a module."""
    gain, bias = module.weight.detach().numpy(), module.bias.detach().numpy()
    return lambda tensor: torch.from_numpy(layer_norm(tensor.numpy(), gain, bias, module.eps))


try:
    with torch.no_grad():
        for norm_first, step in ((False, post_norm_step), (True, pre_norm_step)):
            layer.norm_first = norm_first
            attended = step(
                x,
                lambda inner: layer.self_attn(inner, inner, inner)[0],
                with_your_layer_norm(layer.norm1),
            )
            output = step(
                attended,
                lambda inner: layer.linear2(torch.relu(layer.linear1(inner))),
                with_your_layer_norm(layer.norm2),
            )
            apart = (output - layer(x)).abs().max().item()
            print(f"norm_first={norm_first}: yours and the framework's differ by {apart:.1e}")
except NotImplementedError:
    print("One of the three is not written yet; come back when it is.")

# %% [markdown]
# ## Summary
#
# - Layer norm takes mean and variance **per token, over its features**. Document A's formula, over the sequence, is
#   instance norm: tokens leak into each other.
# - The variance divides by n, and eps stands inside the root. Where it stands shows only for tiny tokens.
# - RMS norm removes no mean. It has fewer steps; whether it is faster depends on the kernel.
# - Batch, layer and instance norm are one function over different axes; only layer norm lets a token be itself.
# - The Jacobian of a norm has two directions that it takes out. Gradients through residual blocks multiply as
#   matrices, not entry by entry.
# - Post-norm is the original. Pre-norm leaves the skip path alone, and with it the identity in the gradient.
# - Without skip connections a deep stack fails even where its gradient does not vanish, because its tokens become
#   equal.
# - Depth times learning rate breaks post-norm; warm-up, a lower rate, or pre-norm mend it.
# - Dropout scales up in training and does nothing in use.
#
# **Next:** the other sublayer. Chapter 4 builds the feed-forward network and puts the whole block together.
#
# ### Sources
#
# - Ba et al. 2016, *Layer Normalization*, arXiv 1607.06450, eq. 3 and 4.
# - Zhang and Sennrich 2019, *Root Mean Square Layer Normalization*, arXiv 1910.07467, eq. 4.
# - Ioffe and Szegedy 2015, *Batch Normalization*, arXiv 1502.03167, alg. 1, §3.2 and §3.3; Ulyanov et al. 2016,
#   *Instance Normalization*, arXiv 1607.08022.
# - Vaswani et al. 2017, *Attention Is All You Need*, arXiv 1706.03762: §3.1 (post-norm), §5.3 (warm-up), §5.4
#   (dropout).
# - He et al. 2016, *Deep Residual Learning for Image Recognition*, arXiv 1512.03385, and *Identity Mappings in Deep
#   Residual Networks*, arXiv 1603.05027: the skip path that nothing stands on.
# - Xiong et al. 2020, *On Layer Normalization in the Transformer Architecture*, arXiv 2002.04745: pre-norm, post-norm
#   and warm-up.
# - Dong et al. 2021, *Attention is not all you need*, arXiv 2103.03404: tokens become equal without skip connections.
# - Santurkar et al. 2018, *How Does Batch Normalization Help Optimization?*, arXiv 1805.11604; Xu et al. 2019,
#   *Understanding and Improving Layer Normalization*, arXiv 1911.07013.
# - Srivastava et al. 2014, *Dropout*, JMLR 15; Chowdhery et al. 2022, *PaLM*, arXiv 2204.02311: training without
#   dropout.
# - Wang et al. 2022, *DeepNet: Scaling Transformers to 1,000 Layers*, arXiv 2203.00555; Radford et al. 2019, GPT-2,
#   §2.3: scaled initialization and the final norm.
