# ---
# title: "4 · The feed-forward network and the whole block"
# ---

# %% [markdown] role="opening" minutes=35
# # 4 · The feed-forward network and the whole block
#
# Attention moves information between tokens. It does little with what it moves: its output is a weighted mean. The
# second half of a block, two layers with a bend between them, works on each token alone. It holds two thirds of the
# block's weights, and much of what a model knows seems to be stored there. In this chapter you build it, measure
# what it costs and what it stores, and then put the whole transformer block together and prove it equal to
# PyTorch's.
#
# **At the end you can**
#
# - build the network in NumPy and in PyTorch, with ReLU, GELU or a gate, at equal numbers of weights;
# - say what "position-wise" means, and test it;
# - choose the scale of the first weights, and show what a wrong one does to a deep stack;
# - say from counts, not from hearsay, when attention costs more than the feed-forward network;
# - find dead units, and read a network as a memory of facts that can be edited;
# - assemble a transformer block that equals `nn.TransformerEncoderLayer` in both norm orders.
#
# **You need** chapters 1 to 3: attention in NumPy, the multi-head layer, norms and residual steps.
#
# **The documents.** This chapter mirrors A's "The Position-Wise Feed-Forward Network" and "PyTorch Transformer";
# B's "Position-Wise Feed-Forward Networks", "Feed-Forward Neural Network Layer" and "Combining Components: The Full
# Transformer Block", with the parameter count of its chapter on hyperparameters; and C's "The Transformer Block"
# and "Feed-Forward Network" with the block of its closing code.

# %%
import copy
import itertools
import math

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from autograder import check
from course_lib import block, feed_forward, multi_head, plots
from course_lib.framework_attention import to_torch_attention
from course_lib.framework_block import from_torch_layer, to_torch_layer
from course_lib.models.fact_recall import FactRecall, fact_table
from course_lib.normalization import layer_norm
from course_lib.training.loop import train
from course_lib.trial import reveal, verdict
from course_lib.widgets import feed_forward_explorer

Array = np.ndarray

# %% [markdown]
# ## The idea: mix, then transform
#
# Document C says it in one sentence: attention mixes across tokens, and the feed-forward network processes each
# token's updated representation. Documents A and B write the formula out, and C's code computes it:
#
# $$\text{FFN}(x) = \text{activation}(x W_1 + b_1)\, W_2 + b_2$$
#
# | | shape | what it does |
# |---|---|---|
# | $x$ | (…, d_model) | a token; the dots are batch and sequence |
# | $W_1$, $b_1$ | (d_model, d_ff), (d_ff,) | each of the d_ff **hidden units** looks for one direction in the token |
# | activation | | bends: a unit speaks up or keeps quiet |
# | $W_2$, $b_2$ | (d_ff, d_model), (d_model,) | each unit writes one vector into the token, as loudly as it speaks |
#
# Usually d_ff = 4 · d_model. Document B calls this widening a "bottleneck"; it is the opposite, a narrow thing with
# a wide middle, sometimes called an inverted bottleneck. The middle gives the activation more directions to choose
# from, while the token keeps the width of the residual path. (B also gives $W_1$ the shape d_model × d_ff and
# multiplies it from the left, $W_1 x$. That pair does not fit: the shape belongs to tokens as rows, $x W_1$, which
# is our way.)
#
# ### Predict first: document A's function
#
# Document A's NumPy version draws its weights inside the function, with `np.random.randn`, and leaves out the biases.
# Here it is in our words. Tokens have entries of standard deviation 1, d_model is 768 and d_ff is 3072. What is the
# standard deviation of the output?


# %%
def forgetful_ffn(x: Float[Array, "token d_model"], d_ff: int, generator) -> Array:
    """Do what document A's function does: new random weights at every call."""
    hidden = np.maximum(0, x @ generator.normal(size=(x.shape[-1], d_ff)))
    return hidden @ generator.normal(size=(d_ff, x.shape[-1]))


my_prediction = None  # a standard deviation

generator = np.random.default_rng(0)
tokens = generator.normal(size=(4, 768))
first_call = forgetful_ffn(tokens, 3072, generator)
reveal(my_prediction, first_call.std())
print(
    "the same tokens again give the same output:",
    np.allclose(forgetful_ffn(tokens, 3072, generator), first_call),
)

# %% [markdown]
# Two faults, both good teachers. The function remembers nothing between calls, so there is nothing to train: weights
# belong outside, as arguments or in a module. And entries of standard deviation 1 are far too large for weights: each
# of the two sums multiplies the scale by about the root of its length, in total d_model · √2 here (half of the hidden
# units are silent). A later exercise chooses the scale properly.
#
# ## The bend
#
# Why an activation at all? Because two matrices in a row are one matrix. The next cell multiplies a network without
# activation out, into a single layer with the same outputs.

# %%
generator = np.random.default_rng(1)
d_model, d_ff = 5, 12
w_1, b_1 = generator.normal(size=(d_model, d_ff)), generator.normal(size=d_ff)
w_2, b_2 = generator.normal(size=(d_ff, d_model)), generator.normal(size=d_model)
x = generator.normal(size=(7, d_model))

in_two_steps = feed_forward.position_wise_ffn(x, w_1, b_1, w_2, b_2, lambda hidden: hidden)
in_one_step = x @ (w_1 @ w_2) + (b_1 @ w_2 + b_2)
assert np.allclose(in_two_steps, in_one_step)
print(f"{w_1.size + w_2.size} weights without a bend do what {d_model**2} weights do")

# %% [markdown]
# The paper's bend is ReLU, max(0, x). BERT and GPT use GELU, which document B defines as x Φ(x), where Φ(x) is the
# share of a standard normal distribution that lies below x. Document B names ReLU in two of its sections and GELU
# in a third; both are right, for different models. SiLU, x · sigmoid(x), comes back in a later exercise. On the right
# are two formulas that are used in place of GELU: how far from it are they?

# %%
grid = np.linspace(-4, 4, 81)
left, right = plots.panels(2)
plots.line_plot(
    grid,
    {
        "ReLU": feed_forward.relu(grid),
        "GELU": feed_forward.gelu(grid),
        "SiLU": grid / (1 + np.exp(-grid)),
    },
    xlabel="x",
    ylabel="activation",
    title="Three bends",
    ax=left,
)
plots.line_plot(
    grid,
    {
        "form with tanh": feed_forward.gelu_tanh(grid) - feed_forward.gelu(grid),
        "x · sigmoid(1.702 x)": grid / (1 + np.exp(-1.702 * grid)) - feed_forward.gelu(grid),
    },
    xlabel="x",
    ylabel="distance from exact GELU",
    title="Two stand-ins for GELU",
    ax=right,
)
plots.show(left.figure)

# %% [markdown] exercise="gelu" role="header" minutes=8 lines=3 difficulty=2
# ## Exercise: GELU
#
# Weight each number by the share of a standard normal distribution below it:
#
# $$\text{GELU}(x) = x\,\Phi(x), \qquad \Phi(x) = \tfrac12\left(1 + \operatorname{erf}\frac{x}{\sqrt 2}\right)$$
#
# **Why it matters.** BERT, GPT-2 and the vision transformer use it in every block. Unlike ReLU it has a slope almost
# everywhere, so that a unit which says nothing can still learn to speak; you will see the difference in this chapter.
#
# **Contract.** An array of any shape; the result has its shape and its dtype, float32 as well as float64. The form
# above is the definition; the form with tanh passes too, since the check allows a distance of 0.001. x ·
# sigmoid(1.702 x) does not. Build it yourself: PyTorch's ready `gelu` is refused.
#
# <details><summary>Hint 1: the idea</summary>
#
# Compute the share Φ(x), a number between 0 and 1, and multiply x by it. At x = 0 the share is one half.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# NumPy has no error function. `math.erf` takes one number, and `np.vectorize(math.erf)` an array; or let PyTorch do
# it, `torch.erf(torch.from_numpy(array)).numpy()`. Mind the dtype: `np.vectorize` returns float64, and so does a
# division by `np.sqrt(2)`, where `math.sqrt(2)` leaves float32 as it is.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Half of one plus erf of x over √2, times x. Bring the result back with `.astype(x.dtype)` if it was widened.
#
# </details>


# %% exercise="gelu" role="answer"
def gelu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Weight each number by the share of a standard normal distribution below it."""
    # BEGIN SOLUTION
    share = (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2
    return (x * share).astype(x.dtype)
    # END SOLUTION


# %% exercise="gelu" role="test" points=1
from autograder import check

check(gelu)

# %% exercise="gelu" role="hidden test" points=2
from autograder import check

check(gelu, hidden=True)

# %% [markdown]
# > **Paper and practice: three functions called GELU.** The exact form, the form with tanh (the first BERT and
# > GPT-2, because erf was slow) and x · sigmoid(1.702 x) (CLIP, under the name QuickGELU) all carry the name.
# > Weights trained with one run under another, without an error and with slightly different numbers. In PyTorch it
# > is `F.gelu(x)` or `F.gelu(x, approximate="tanh")`. The next cell says how far apart they are.

# %%
fine = np.linspace(-8, 8, 16_001)
exact = feed_forward.gelu(fine)
print(f"tanh form: at most {np.abs(feed_forward.gelu_tanh(fine) - exact).max():.5f} away")
print(f"sigmoid form: at most {np.abs(fine / (1 + np.exp(-1.702 * fine)) - exact).max():.5f} away")
print(f"lowest value of GELU: {exact.min():.3f}, at x = {fine[exact.argmin()]:.2f}")

# %% [markdown] exercise="position_wise_ffn" role="header" minutes=8 lines=1 difficulty=2
# ## Exercise: the feed-forward network
#
# $$\text{FFN}(x) = \text{activation}(x W_1 + b_1)\, W_2 + b_2$$
#
# **Why it matters.** In BERT base each of the twelve blocks has one, with 768 · 3072 weights up and as many down.
# Real code gets its one line wrong in a surprising way: the activation slips behind the second layer, and two
# layers become one.
#
# **Contract.** `x` is `(..., d_model)`, and the dots may be any number of axes, or none. `w_1` is `(d_model,
# d_ff)`, `b_1` `(d_ff,)`, `w_2` `(d_ff, d_model)`, `b_2` `(d_model,)`. `activation` is a callable that takes and
# returns an array; use the one you are given. The result has the shape and dtype of `x`. No residual path: the
# block adds it.
#
# <details><summary>Hint 1: the idea</summary>
#
# Up, bend, down. The first bias decides when a unit fires, so it must come before the bend.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# Tokens are rows, so a matrix acts from the right. `@` works on the last two axes and leaves the others alone, and
# a bias lines up with the last axis by itself.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The activation of `x @ w_1 + b_1`, then `@ w_2`, then plus `b_2`.
#
# </details>


# %% exercise="position_wise_ffn" role="answer"
def position_wise_ffn(
    x: Float[Array, "... d_model"],
    w_1: Float[Array, "d_model d_ff"],
    b_1: Float[Array, "d_ff"],
    w_2: Float[Array, "d_ff d_model"],
    b_2: Float[Array, "d_model"],
    activation,
) -> Float[Array, "... d_model"]:
    """Transform every token by the same two layers."""
    # BEGIN SOLUTION
    return activation(x @ w_1 + b_1) @ w_2 + b_2
    # END SOLUTION


# %% exercise="position_wise_ffn" role="test" points=1
from autograder import check

check(position_wise_ffn)

# %% exercise="position_wise_ffn" role="hidden test" points=2
from autograder import check

check(position_wise_ffn, hidden=True)

# %% [markdown]
# ### Explore: hidden units bend a line
#
# Here a token is a single number x, and the network should draw a curve over it. The first layer is fixed: unit
# after unit looks at x from another place. The second layer is fitted anew at every move. Things to try:
#
# 1. Take the activation away. How many hidden units does a wave need now?
# 2. Back to ReLU. What does one more unit add to the curve? Count the corners.
# 3. Lower the number that is added to every bias, step by step. Units die: they say 0 for every token. What does the
# network draw when all are dead? Do the same with GELU.

# %%
feed_forward_explorer()

# %% [markdown]
# ### What "position-wise" means
#
# Three ways to say the same thing, each with its test. Change one token, and no other output moves. Reorder the
# tokens, and the outputs are reordered in the same way. And the network equals two **convolutions of width 1**,
# which is how the paper describes it in one of its sentences. Document B writes of "positional invariance". That
# word would mean that reordering the tokens changes **nothing**. Where the outputs follow the tokens into the new
# order, the word is **equivariance**.

# %%
network = (w_1, b_1, w_2, b_2, feed_forward.gelu)
outputs = feed_forward.position_wise_ffn(x, *network)

one_changed = x.copy()
one_changed[3] += 1
moved = np.abs(feed_forward.position_wise_ffn(one_changed, *network) - outputs).max(axis=1)
print("change token 3 and these outputs move:", np.flatnonzero(moved > 0).tolist())

order = np.random.default_rng(2).permutation(len(x))
reordered = feed_forward.position_wise_ffn(x[order], *network)

channels = torch.from_numpy(x.T)[None]  # a convolution wants (batch, channels, places)
kernel_1, kernel_2 = (torch.from_numpy(w.T)[..., None] for w in (w_1, w_2))
up = nn.functional.conv1d(channels, kernel_1, torch.from_numpy(b_1))
down = nn.functional.conv1d(nn.functional.gelu(up), kernel_2, torch.from_numpy(b_2))
assert np.allclose(down[0].T.numpy(), outputs)
print("two convolutions of width 1 give the same numbers")
verdict(
    "the network is invariant under reordering",
    {"FFN": np.allclose(reordered, outputs)},
    depends_on="the order",
)
verdict(
    "the network is equivariant under reordering",
    {"FFN": np.allclose(reordered, outputs[order])},
    depends_on="the order",
)

# %% [markdown]
# So a feed-forward network knows its token and nothing else. Whatever it needs from other tokens, attention must
# have brought before. That is also why document A is right to call it "very parallel": no token waits for another.
#
# ## The first weights
#
# Document A's function showed what careless weights do: after one network the numbers are about a thousand times
# too large. Glorot and Bengio asked for which scale a layer keeps the size of what flows through it. Forward, each
# output sums d_in products, so the variance of a weight should be 1/d_in. Backward, each gradient sums d_out
# products, so it should be 1/d_out. Both at once is possible only for square matrices; the compromise is the mean
# of the two sizes:
#
# $$\operatorname{Var}(w) = \frac{2}{d_\text{in} + d_\text{out}} \cdot \text{gain}^2$$
#
# The **gain** makes up for what an activation takes away. ReLU silences half of its inputs and so halves the mean
# square; a gain of √2 restores it.

# %% [markdown] exercise="xavier_uniform_bound" role="header" minutes=5 lines=1 difficulty=2
# ## Exercise: Glorot's bound
#
# Weights are often drawn uniformly from an interval [−b, b]. Which b gives the variance above?
#
# **Why it matters.** `nn.init.xavier_uniform_` is this formula, and `nn.Transformer` calls it on all its matrices.
# Xavier is Glorot's first name, and both names are in use.
#
# **Contract.** `d_in` and `d_out` are whole numbers of at least 1, `gain` is a float. Return the bound b as a float,
# by the formula: `nn.init` is refused.
#
# <details><summary>Hint 1: the idea</summary>
#
# A uniform number in [−b, b] has variance b²/3. Set this equal to the wanted variance and solve for b.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `math.sqrt`. The gain multiplies each weight, so it stands outside the root.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# 3 · 2 = 6 stands above the line, the sum of both sizes below it.
#
# </details>


# %% exercise="xavier_uniform_bound" role="answer"
def xavier_uniform_bound(d_in: int, d_out: int, gain: float = 1.0) -> float:
    """Give the bound of uniform weights with Glorot's variance."""
    # BEGIN SOLUTION
    return gain * math.sqrt(6 / (d_in + d_out))
    # END SOLUTION


# %% exercise="xavier_uniform_bound" role="test" points=1
from autograder import check

check(xavier_uniform_bound)

# %% exercise="xavier_uniform_bound" role="hidden test" points=1
from autograder import check

check(xavier_uniform_bound, hidden=True)

# %% [markdown]
# ### Claim on trial: "Xavier with gain adjusted for the GELU activation"
#
# So document B says that weights are typically initialized. PyTorch has a table of gains, `nn.init.calculate_gain`.
# Is GELU in it? If not, we can measure a gain ourselves: by which factor must a normal input be multiplied after
# GELU to have mean square 1 again?
#
# **Predict first.** Thirty layers of width 256, weights by Glorot with gain 1, GELU after each, tokens of mean
# square 1. What is the root of the mean square after layer 30?


# %%
def root_mean_square(x: Float[Array, "..."]) -> float:
    """Measure the size of numbers."""
    return float(np.sqrt((x**2).mean()))


def sizes_through_depth(activation, gain, residual=False, layers=30) -> list[float]:
    """Measure tokens after each of many fresh layers; with `residual` these are pre-norm steps."""
    generator, width = np.random.default_rng(3), 256
    bound = feed_forward.xavier_uniform_bound(width, width, gain)
    x = generator.normal(size=(64, width))
    sizes = [root_mean_square(x)]
    for _ in range(layers):
        weights = generator.uniform(-bound, bound, size=(width, width))
        read = layer_norm(x, np.ones(width), np.zeros(width)) if residual else x
        x = activation(read @ weights) + (x if residual else 0)
        sizes.append(root_mean_square(x))
    return sizes


my_prediction = None  # a root of a mean square

plain = sizes_through_depth(feed_forward.gelu, gain=1.0)
reveal(my_prediction, plain[-1])

# %%
try:
    table_gain = nn.init.calculate_gain("gelu")
except ValueError as error:
    table_gain = None
    print("PyTorch:", error)

normal = np.random.default_rng(4).normal(size=1_000_000)
gelu_gain = 1 / root_mean_square(feed_forward.gelu(normal))
relu_gain = 1 / root_mean_square(feed_forward.relu(normal))
print(f"measured gain of GELU {gelu_gain:.3f}, of ReLU {relu_gain:.3f}")

own_gain = sizes_through_depth(feed_forward.gelu, gelu_gain)
blocks_plain = sizes_through_depth(feed_forward.gelu, 1.0, residual=True)
blocks_own_gain = sizes_through_depth(feed_forward.gelu, gelu_gain, residual=True)

left, right = plots.panels(2)
depths = list(range(31))
plots.line_plot(
    depths,
    {
        "gain 1": plain,
        "gain √2": sizes_through_depth(feed_forward.gelu, math.sqrt(2)),
        "GELU's gain": own_gain,
    },
    xlabel="layer",
    ylabel="root mean square",
    title="Layers and GELU alone",
    ax=left,
    log_y=True,
)
plots.line_plot(
    depths,
    {"gain 1": blocks_plain, "GELU's gain": blocks_own_gain},
    xlabel="layer",
    ylabel="root mean square",
    title="With residual path and norm",
    ax=right,
    log_y=True,
)
plots.show(left.figure)

# %%
verdict(
    "the framework knows a gain for GELU",
    {"PyTorch": table_gain is not None},
    depends_on="the framework",
)
verdict(
    "the gain adjusted for GELU keeps the size within a factor of 2",
    {f"layer {depth}": 0.5 < own_gain[depth] < 2 for depth in (1, 5, 10, 20, 30)},
    depends_on="depth",
)
verdict(
    "whether numbers survive 30 layers is decided by the gain",
    {
        "layers alone": plain[-1] < 0.01 * own_gain[-1],
        "layers with residual path and norm": blocks_plain[-1] < 0.01 * blocks_own_gain[-1],
    },
    depends_on="what stands around the layers",
)

# %% [markdown]
# With gain 1 the signal loses about half of its size in every layer. With GELU's own gain it lives, but does not
# keep its size: what GELU takes away depends on the size of its input, so a stack that has drifted a little drifts
# on. In a block neither matters much, because the norm sets the size of what each layer reads (chapter 3). That is
# why practice can be so relaxed about it.
#
# > **Paper and practice: a plain 0.02.** BERT and GPT-2 draw weights from a normal distribution with standard
# > deviation 0.02, whatever their shape. For BERT base's layer from 768 to 3072 the formula gives nearly the same
# > number, as the next cell shows. PyTorch's `nn.Linear` uses yet another rule, a bound of 1/√d_in.

# %%
bound = feed_forward.xavier_uniform_bound(768, 3072)
print(f"Glorot's standard deviation for 768 → 3072: {bound / math.sqrt(3):.4f}")

# %% [markdown] exercise="FeedForward" role="header" minutes=10 lines=9 difficulty=2
# ## Exercise: the network as a module
#
# From here on we work in PyTorch, where weights live in modules and are trained.
#
# **Why it matters.** This class is one half of every block that you will stack. Its constructor takes the
# activation by name, as the framework's does. Argument and behavior drift apart easily: published code has accepted
# the name and used ReLU all the same.
#
# **Contract.** `FeedForward(d_model, d_ff, activation="gelu")` with two `nn.Linear`, with biases, in the attributes
# `linear_1` and `linear_2`; `forward(x)` takes `(..., d_model)` and returns the same shape. Activations are
# `"relu"` and `"gelu"`; any other name raises a `ValueError`. The check loads its own weights under these names. No
# dropout, no residual path.
#
# <details><summary>Hint 1: the idea</summary>
#
# The constructor makes the layers and keeps the activation; `forward` is the one line from before.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `nn.Linear(d_in, d_out)`, `torch.nn.functional.relu` and `torch.nn.functional.gelu`. A dictionary from names to
# functions gives you both the test for an unknown name and the function.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# If the name is not in the dictionary, raise `ValueError`. Then `linear_2(activation(linear_1(x)))`.
#
# </details>


# %% exercise="FeedForward" role="answer"
class FeedForward(nn.Module):
    """Transform every token by the same two layers."""

    # BEGIN SOLUTION
    def __init__(self, d_model: int, d_ff: int, activation: str = "gelu") -> None:
        super().__init__()
        activations = {"relu": nn.functional.relu, "gelu": nn.functional.gelu}
        if activation not in activations:
            raise ValueError(f"`activation` must be 'relu' or 'gelu', got {activation!r}")
        self.activation = activations[activation]
        self.linear_1 = nn.Linear(d_model, d_ff)
        self.linear_2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        return self.linear_2(self.activation(self.linear_1(x)))

    # END SOLUTION
    # BEGIN STARTER
    # def __init__(self, d_model: int, d_ff: int, activation: str = "gelu") -> None:
    #     super().__init__()
    #     raise NotImplementedError()
    #
    # def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
    #     raise NotImplementedError()
    # END STARTER


# %% exercise="FeedForward" role="test" points=1
from autograder import check

check(FeedForward)

# %% exercise="FeedForward" role="hidden test" points=2
from autograder import check

check(FeedForward, hidden=True)

# %% [markdown]
# > **Paper and practice: which way a matrix stands.** Our functions take `w_1` as (d_in, d_out) and compute `x @
# > w_1`. `nn.Linear(8, 32)` stores (d_out, d_in) and computes x Wᵀ. GPT-2's published weights are stored the first
# > way, so whoever loads them into `nn.Linear` transposes. With d_in = d_out nobody notices a missing transpose.
# > Keep your test sizes unequal.

# %%
print("nn.Linear(8, 32).weight has the shape", tuple(nn.Linear(8, 32).weight.shape))

# %% [markdown] exercise="swiglu" role="header" minutes=6 lines=1 difficulty=2
# ## Exercise: SwiGLU, a network with a gate
#
# Give each hidden unit two projections instead of one. The first is bent and says how far to open; the second
# carries what passes:
#
# $$\text{SwiGLU}(x) = \bigl(\text{SiLU}(x W_\text{gate}) \odot x W_\text{up}\bigr)\, W_\text{down}$$
#
# $$\text{SiLU}(z) = z\,\sigma(z)$$
#
# **Why it matters.** LLaMA, PaLM and many later models use it in place of the plain network. Their weight files
# call the three matrices by different names and in different orders, so code must know which one is bent.
#
# **Contract.** `x` is `(..., d_model)`, `w_gate` and `w_up` are `(d_model, d_ff)`, `w_down` is `(d_ff, d_model)`.
# There are no biases. SiLU (also called Swish) acts on the gate alone.
#
# <details><summary>Hint 1: the idea</summary>
#
# Two projections of the same token, multiplied entry by entry, then one matrix down.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `torch.nn.functional.silu`, or z times `torch.sigmoid(z)`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# silu of `x @ w_gate`, times `x @ w_up`, all in brackets, `@ w_down`.
#
# </details>


# %% exercise="swiglu" role="answer"
def swiglu(
    x: Float[Tensor, "... d_model"],
    w_gate: Float[Tensor, "d_model d_ff"],
    w_up: Float[Tensor, "d_model d_ff"],
    w_down: Float[Tensor, "d_ff d_model"],
) -> Float[Tensor, "... d_model"]:
    """Let one projection of a token open and close the other."""
    # BEGIN SOLUTION
    return (nn.functional.silu(x @ w_gate) * (x @ w_up)) @ w_down
    # END SOLUTION


# %% exercise="swiglu" role="test" points=1
from autograder import check

check(swiglu)

# %% exercise="swiglu" role="hidden test" points=1
from autograder import check

check(swiglu, hidden=True)

# %% [markdown]
# > **Paper and practice: who is the gate?** LLaMA's code calls the three matrices w1 (gate), w3 (up) and w2 (down).
# > Other codes store gate and up as one wide matrix and cut the product in two, gate first in some and gate last in
# > others. The shapes are equal, so a swap raises no error. Compare one output with the source before you trust a
# > conversion.

# %% [markdown] exercise="matched_hidden_size" role="header" minutes=6 lines=2 difficulty=2
# ## Exercise: the same number of weights
#
# A gated network has three matrices where the plain one has two. To compare them fairly, both should have the same
# number of weights. How many hidden units may the gated one have?
#
# **Why it matters.** A comparison at equal d_ff gives the gate half as many weights again, and the larger model
# tends to win whatever it is. The odd widths of published models come from this formula: LLaMA 7B has d_model 4096
# and a hidden size of 11,008.
#
# **Contract.** `matched_hidden_size(d_model, d_ff, multiple_of=1)`: the smallest multiple of `multiple_of` with
# which the three matrices have at least as many weights as the two matrices of a plain network with `d_ff` hidden
# units. Biases are not counted. Return an int.
#
# <details><summary>Hint 1: the idea</summary>
#
# Write both counts as formulas and compare them. What cancels?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `math.ceil(a / b)` rounds up, and so does `-(-a // b)`, without floats. To round up to a multiple, round up the
# number of steps.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# 3 · d_model · h ≥ 2 · d_model · d_ff, so h is two thirds of d_ff, rounded up, and then rounded up to the multiple.
#
# </details>


# %% exercise="matched_hidden_size" role="answer"
def matched_hidden_size(d_model: int, d_ff: int, multiple_of: int = 1) -> int:
    """Give a gated network as many weights as a plain one."""
    # BEGIN SOLUTION
    least = math.ceil(2 * d_ff / 3)
    return math.ceil(least / multiple_of) * multiple_of
    # END SOLUTION


# %% exercise="matched_hidden_size" role="test" points=1
from autograder import check

check(matched_hidden_size)

# %% exercise="matched_hidden_size" role="hidden test" points=1
from autograder import check

check(matched_hidden_size, hidden=True)

# %% [markdown] exercise="feed_forward_cost" role="header" minutes=6 lines=2 difficulty=1
# ## Exercise: what it costs
#
# Count the parameters of a plain network, and the floating-point operations (FLOPs) of one pass over a sequence.
#
# **Why it matters.** The two numbers decide what a model weighs on disk and what a step of training costs. You need
# them in a moment, when two statements of document B go on trial against each other.
#
# **Contract.** `feed_forward_cost(sequence, d_model, d_ff)` returns the pair `(parameters, flops)` of ints. Biases
# count in the parameters, but not in the FLOPs, and the activation is left out as well. A multiplication together
# with the addition after it counts 2.
#
# <details><summary>Hint 1: the idea</summary>
#
# Parameters do not depend on the sequence. Every weight is used once for each token.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# A product of an (n, a) with an (a, b) matrix takes n · a · b multiply-adds. A bias has one entry for each output
# of its layer.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Two matrices of d_model · d_ff weights, biases of d_ff and d_model entries. FLOPs are 2 · sequence times the
# matrix weights.
#
# </details>


# %% exercise="feed_forward_cost" role="answer"
def feed_forward_cost(sequence: int, d_model: int, d_ff: int) -> tuple[int, int]:
    """Count the parameters of the network and the FLOPs of one pass."""
    # BEGIN SOLUTION
    weights = 2 * d_model * d_ff
    return weights + d_ff + d_model, 2 * sequence * weights
    # END SOLUTION


# %% exercise="feed_forward_cost" role="test" points=1
from autograder import check

check(feed_forward_cost)

# %% exercise="feed_forward_cost" role="hidden test" points=1
from autograder import check

check(feed_forward_cost, hidden=True)

# %% [markdown]
# ### Claims on trial: which half of the block costs more?
#
# Document B says of the feed-forward network that it "becomes the dominant term in longer sequences where n > d". A
# few paragraphs later it says that the block "is dominated by the self-attention mechanism", O(n² · d). Both cannot
# be true at once, and to find out you need no clock. PyTorch can count the FLOPs of a real block, and on the "meta"
# device it does so without computing anything.
#
# **Predict first.** d_model is 768 and d_ff is 3072. Let the sequence grow. At which length n do the n² products of
# attention (the scores, and the mixing of the values) cost as much as the feed-forward network?


# %%
def counted_flops(sequence: int, d_model: int) -> dict[str, int]:
    """Count what the three parts of a real block cost; d_ff is 4 · d_model."""
    counted = block.TransformerBlock(d_model, num_heads=4, d_ff=4 * d_model).to("meta")
    with FlopCounterMode(display=False) as counter:
        counted(torch.empty(1, sequence, d_model, device="meta"))
    by_module = {name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()}
    attention, network = "TransformerBlock.attention", "TransformerBlock.ffn"
    projections = sum(by_module[f"{attention}.{name}"] for name in ("w_q", "w_k", "w_v", "w_o"))
    return {
        "projections": projections,
        "n² products": by_module[attention] - projections,
        "feed-forward": by_module[network],
    }


my_prediction = None  # a number of tokens

_, formula = feed_forward.feed_forward_cost(512, 768, 3072)
assert counted_flops(512, 768)["feed-forward"] == formula
costs = {n: counted_flops(n, 768) for n in range(256, 8193, 256)}
reveal(
    my_prediction,
    next(n for n, cost in costs.items() if cost["n² products"] >= cost["feed-forward"]),
)

# %% [markdown]
# The answer in general: the n² products cost 4n²d, the projections 8nd², and the network 16nd² when d_ff = 4d. The
# picture needs only the ratio n/d, so it holds for every width. (Document B writes the network's cost as O(4nd²). A
# big O keeps no constants; with two matrices the multiply-adds are 8nd², and the FLOPs twice that.)

# %%
RATIOS = [0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 16]
shares = {}
for ratio in RATIOS:
    cost = counted_flops(int(ratio * 256), 256)
    shares[ratio] = {part: flops / sum(cost.values()) for part, flops in cost.items()}

plots.show(
    plots.line_plot(
        RATIOS,
        {part: [shares[ratio][part] for ratio in RATIOS] for part in shares[1]},
        xlabel="n / d_model",
        ylabel="share of the block's FLOPs",
        title="Short sequences pay for the network, long ones for n²",
        log_x=True,
    )
)
largest = {ratio: max(shares[ratio], key=shares[ratio].__getitem__) for ratio in RATIOS}
largest[4] = "a tie"  # at n = 4d the network and the n² products cost exactly the same
assert shares[4]["n² products"] == shares[4]["feed-forward"]
verdict(
    "for n > d the feed-forward network is the largest part",
    {f"n = {ratio:g}d": largest[ratio] == "feed-forward" for ratio in RATIOS if ratio > 1},
    depends_on="n/d",
)
verdict(
    "for n ≤ d it is not the largest part yet",
    {f"n = {ratio:g}d": largest[ratio] != "feed-forward" for ratio in RATIOS if ratio <= 1},
    depends_on="n/d",
)
verdict(
    "the n² products are more than half of the block",
    {f"n = {ratio:g}d": shares[ratio]["n² products"] > 0.5 for ratio in RATIOS},
    depends_on="n/d",
)

# %% [markdown]
# The document has the direction the wrong way round: the network dominates in **short** sequences. The n² products
# draw level with it at n = 4d, and with everything else together at n = 6d. Where do real models stand? (Sequence
# lengths and widths are those of the papers.)

# %%
for name, n, d in (("BERT base", 512, 768), ("GPT-2 small", 1024, 768), ("GPT-3", 2048, 12_288)):
    _, network_flops = feed_forward.feed_forward_cost(n, d, 4 * d)
    total = network_flops + 8 * n * d**2 + 4 * n**2 * d
    network, products = network_flops / total, 4 * n**2 * d / total
    print(f"{name:>12}: n/d = {n / d:.2f}, network {network:.0%}, n² products {products:.0%}")

# %% [markdown]
# > **Paper and practice: counts and clocks.** FLOPs say what must be computed, not how long it takes. The n²
# > products move much memory for each operation, and their softmax is not counted at all, so a clock sees them
# > earlier than the counter does. Chapter 7 measures both. And careful with the counter: PyTorch's fast attention
# > kernels can hide their products from it. Ours are plain products.
#
# > **Paper and practice: making the network cheaper.** Document B names two ways to save: grouped linear layers, in
# > which each group of features has a small matrix of its own, and sparse experts, in which each token visits one
# > of many networks (chapter 9). Fused kernels, which B mentions as well, compute the same products but do not
# > write the hidden units to memory in between (chapter 12).

# %% [markdown]
# ## A real task: a thousand facts
#
# How much of what a block can learn does it owe to this network? The task: 48 subjects, 24 relations, and for each
# of the 1152 pairs one of 24 objects, drawn at random. Nothing follows from anything, so every fact must be
# **stored**. The model reads two tokens, subject and relation, and names the object. It is one post-norm block (you
# build it later in this chapter), 16 features wide, with two heads and 64 hidden units; a linear layer reads the last
# token.

# %%
SUBJECTS, RELATIONS, OBJECTS, WIDTH, STEPS = 48, 24, 24, 16, 250
pairs, objects = fact_table(SUBJECTS, RELATIONS, OBJECTS, torch.Generator().manual_seed(0))


def known(model: nn.Module) -> Tensor:
    """Say for each fact whether the model names the right object."""
    with torch.no_grad():
        return model(pairs).argmax(dim=-1) == objects


def fresh(seed=0, d_model=WIDTH, d_ff=4 * WIDTH, activation="relu") -> FactRecall:
    """Make an untrained model; the seed makes every run the same on one machine."""
    torch.manual_seed(seed)
    return FactRecall(SUBJECTS, RELATIONS, OBJECTS, d_model, d_ff=d_ff, activation=activation)


def learn(model: FactRecall) -> float:
    """Train on the whole table in every step; return the share of facts known afterwards."""
    train(model, itertools.repeat((pairs, objects)), steps=STEPS, learning_rate=0.01)
    return known(model).double().mean().item()


with_relu = fresh()
share_with_network = learn(with_relu)
print(f"{share_with_network:.1%} of {len(pairs)} facts; a blind guess gets {1 / OBJECTS:.1%}")

# %% [markdown]
# ### Predict first: take the network away
#
# Train the same block with a network that adds nothing: attention, residual paths and norms are all that is left.
# What share of the facts, between 0 and 1, does it learn?


# %%
class Nothing(nn.Module):
    """Stand in for a feed-forward network and add nothing."""

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Return zeros."""
        return torch.zeros_like(x)


my_prediction = None  # a share between 0 and 1

without_network = fresh()
without_network.block.ffn = Nothing()
share_without = learn(without_network)
reveal(my_prediction, share_without)

# %% [markdown]
# Was it the network, or only its weights? Two controls. Give the weights back and take the **activation** away; or
# leave the network out and spend its parameters on a wider model, 24 features in place of 16. Then vary the number
# of hidden units, which is the size of the memory.

# %%
no_bend = fresh()
no_bend.block.ffn = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH))
share_no_bend = learn(no_bend)

wider = fresh(d_model=24)
wider.block.ffn = Nothing()
share_wider = learn(wider)
for name, model in (("with the network", with_relu), ("without it, 24 wide", wider)):
    print(f"{name}: {sum(weight.numel() for weight in model.parameters())} parameters")

by_width = {d_ff: learn(fresh(d_ff=d_ff)) for d_ff in (4, 16)} | {64: share_with_network}

plots.show(
    plots.bar_plot(
        {
            "no\nnetwork": share_without,
            "none, but\n24 wide": share_wider,
            "64 units,\nno bend": share_no_bend,
            "4 units": by_width[4],
            "16 units": by_width[16],
            "64 units": by_width[64],
        },
        ylabel="share of facts known",
        title="Facts need hidden units that bend",
    )
)

# %% [markdown]
# Without a bend the weights of the network are worth nothing. Spent on a wider model they are worth much, though
# less than on hidden units that bend. Still, look at the first bars: attention **alone** knows far more than a
# blind guess. Something in it must bend as well. The norm does a little, since it divides by a spread, and the
# softmax does the rest: its weights depend on subject and relation together. The next cell takes that away too.
# Attention that always mixes evenly is a plain mean.


# %%
class EvenAttention(multi_head.MultiHeadAttention):
    """Mix the values of all tokens evenly, whatever the queries and keys say."""

    def forward(self, query, key, value, mask=None):
        """Return the mean of the values for every query, and even weights."""
        mean = self.w_o(self.w_v(value)).mean(dim=1, keepdim=True)
        n_q, n_k = query.shape[1], key.shape[1]
        return mean.expand_as(query), torch.full((len(query), self.num_heads, n_q, n_k), 1 / n_k)


even_alone, even_with_network = fresh(), fresh()
for model in (even_alone, even_with_network):
    model.block.attention = EvenAttention(WIDTH, num_heads=2)
even_alone.block.ffn = Nothing()
share_even_alone, share_even_with_network = learn(even_alone), learn(even_with_network)
print(f"even attention alone:             {share_even_alone:.1%} of the facts")
print(f"even attention with the network:  {share_even_with_network:.1%}\n")
verdict(
    "without a feed-forward network less than half of the facts are learned",
    {"softmax attention": share_without < 0.5, "even attention": share_even_alone < 0.5},
    depends_on="whether attention bends",
)

# %% [markdown]
# So "attention mixes, the network computes" is a good first picture and not the whole truth. The softmax is an
# activation too.
#
# ### Claim on trial: is GELU better than ReLU?
#
# Document B says that GELU "has shown superior performance in Transformer architectures compared to ReLU,
# particularly in language modeling tasks". We cannot train a language model here. We can ask whether the difference
# shows on our facts, and ask it fairly: equal weights, equal steps, three seeds, and a rule that is fixed before we
# look. **The rule:** one activation is better if it knows more facts in every seed. SwiGLU joins with the width
# that you matched.

# %%
gated_width = feed_forward.matched_hidden_size(WIDTH, 4 * WIDTH)


def with_gate(seed: int) -> FactRecall:
    """Make a model whose network has a gate, and as many weights as the others."""
    model = fresh(seed)
    model.block.ffn = feed_forward.GatedFeedForward(WIDTH, gated_width)
    return model


makers = {
    "ReLU": lambda seed: fresh(seed),
    "GELU": lambda seed: fresh(seed, activation="gelu"),
    "SwiGLU": with_gate,
}
for name, make in makers.items():
    print(f"{name}: {sum(weight.numel() for weight in make(0).parameters())} parameters")
results = {name: [learn(make(seed)) for seed in range(3)] for name, make in makers.items()}

# %%
for name, found in results.items():
    by_seed = ", ".join(f"{share:.1%}" for share in found)
    print(f"{name:>7}: {by_seed}; mean {np.mean(found):.1%}")
spread = max(np.ptp(found) for found in results.values())
between = np.ptp([np.mean(found) for found in results.values()])
print(f"largest difference between seeds {spread:.1%}, between mean shares {between:.1%}\n")
for better, worse in (("GELU", "ReLU"), ("SwiGLU", "ReLU"), ("SwiGLU", "GELU")):
    verdict(
        f"{better} knows more facts than {worse}",
        {f"seed {seed}": results[better][seed] > results[worse][seed] for seed in range(3)},
        depends_on="the seed",
    )

# %% [markdown]
# Between ReLU and GELU the seed decides in our run: an honest null result, and no proof that they are equal
# elsewhere. The gate leads in these three seeds, by less than the seeds differ among themselves; in large language
# models, too, gates have won small and steady improvements at equal cost, and the paper that brought them offers no
# explanation why. What all of this says clearly: it matters much more **that** you bend than how.
#
# ### Claim on trial: is four times the right width?
#
# Document B calls a ratio d_ff / d_model of about 4 "a pattern observed across many successful transformer
# variants". Is it a pattern because it is best? Fair means, again, equal parameters: a wider hidden layer is paid
# for with a narrower model. Each model below has about as many parameters in total as the one with 16 features and
# 64 hidden units.

# %%
sizes = {(20, 27): None, (18, 44): None, (16, 64): share_with_network, (12, 119): None}
for (d_model, d_ff), share in sizes.items():
    model = fresh(d_model=d_model, d_ff=d_ff)
    sizes[d_model, d_ff] = learn(model) if share is None else share
    count = sum(weight.numel() for weight in model.parameters())
    known_now = f"{sizes[d_model, d_ff]:.1%} of the facts"
    print(f"d_model {d_model}, ratio {d_ff / d_model:4.1f}, {count} parameters: {known_now}")

print()
verdict(
    "no ratio is better than 4 by more than the seeds differ",
    {
        f"ratio {d_ff / d_model:.1f}": share <= share_with_network + spread
        for (d_model, d_ff), share in sizes.items()
        if d_model != WIDTH
    },
    depends_on="the ratio",
)
verdict(
    "a ratio of 4 is better than this one by more than the seeds differ",
    {
        f"ratio {d_ff / d_model:.1f}": share < share_with_network - spread
        for (d_model, d_ff), share in sizes.items()
        if d_model != WIDTH
    },
    depends_on="the ratio",
)

# %% [markdown]
# The optimum is flat here: a ratio of 4 is a good choice, and so are its neighbors. Published exceptions are large.
# T5's 11-billion-parameter model has d_model 1024 and d_ff 65,536, a ratio of 64; models with gates sit near 8/3,
# which is two thirds of 4.
#
# ## Dead units
#
# A ReLU unit whose input is below 0 for **every** token always says 0. Its slope is 0 too, so no gradient reaches
# its own weights. Such a unit is called dead. In our trained model, how many units are dead, and for what share of
# the facts does a unit speak?


# %%
def dead_units(model: FactRecall) -> tuple[int, float]:
    """Count the units never above 0; give the share of (fact, unit) pairs that are above 0."""
    with torch.no_grad():
        hidden = model.block.ffn.hidden(model.mixed(pairs))
    return int((hidden.amax(dim=0) <= 0).sum()), (hidden > 0).double().mean().item()


dead, speaking = dead_units(with_relu)
print(f"{dead} of {4 * WIDTH} ReLU units are dead; a unit speaks for {speaking:.0%} of the facts")

# %% [markdown]
# The norm in front keeps tokens at one size, so units rarely die by themselves. Now we push: all first biases start
# at −3, so far down that no fact reaches any unit. Then the model trains as before, once with ReLU and once with
# GELU.
#
# **Predict first.** How many of the 64 ReLU units are still dead after training? Their own weights stand still, but
# attention and norm in front of them learn on, and could move the tokens to where a unit hears them.

# %%
my_prediction = None  # a number of units

pushed = {}
for activation in ("relu", "gelu"):
    model = fresh(activation=activation)
    nn.init.constant_(model.block.ffn.linear_1.bias, -3.0)
    before, _ = dead_units(model)
    pushed[activation] = (before, learn(model), *dead_units(model))
reveal(my_prediction, pushed["relu"][2])
for activation, (before, share, after, _) in pushed.items():
    units = f"{before} of 64 never above 0 at the start, {after} after training"
    print(f"{activation}: {units}; {share:.1%} of the facts")

# %%
plots.show(
    plots.bar_plot(
        {
            "ReLU": share_with_network,
            "ReLU\npushed": pushed["relu"][1],
            "GELU\npushed": pushed["gelu"][1],
            "no\nnetwork": share_without,
        },
        ylabel="share of facts known",
        title="Dead units are no units",
    )
)

# %% [markdown]
# Not one ReLU unit came back: while all are silent, nothing tells the layers in front to wake them. The pushed
# network never says anything, and the model knows about as much as one without a network. GELU's
# slope at −3 is tiny, but not 0: enough for most of its units to find their way back. That, more than a last
# percent of accuracy, is a reason for a smooth bend.
#
# ## The network as a memory
#
# Write the network as a sum over its hidden units. Row j of W₂ is what unit j **writes**, column j of W₁ is what it
# **looks for**, and the activation says how loudly:
#
# $$\text{FFN}(x) = b_2 + \sum_{j=1}^{d_\text{ff}} \text{activation}(x \cdot w_{1,j} + b_{1,j})\; w_{2,j}$$
#
# That reads like attention without a softmax over d_ff fixed keys and values (Geva et al. 2021). If facts sit in
# W₂, we should be able to **edit** one. Take a fact that the model knows, and the hidden units h that it excites.
# Adding c · δ hᵀ to the second layer moves the output for this h in the direction δ, and we choose δ so that
# another object wins. The catch: every other fact with a similar h moves too. The second edit first divides out
# what all facts share, by the inverse of the mean of h hᵀ, as the ROME method does in language models
# (Meng et al. 2022).

# %%
reads = with_relu.mixed(pairs).detach()  # what the network reads for each fact
ffn, second = with_relu.block.ffn, with_relu.block.ffn.linear_2
hidden = ffn.hidden(reads).detach()  # (fact, unit)
writes = second.weight.T.detach()  # (unit, d_model): what each unit writes
contributions = hidden[..., None] * writes  # (fact, unit, d_model)
assert torch.allclose(contributions.sum(dim=1) + second.bias, ffn(reads), atol=1e-4)


def edited(model: FactRecall, fact: int, wanted: int, key: Tensor) -> FactRecall:
    """Copy a model and change its second layer along `key` until one fact has another object."""
    changed = copy.deepcopy(model)
    weight = changed.block.ffn.linear_2.weight
    with torch.no_grad():
        now = model(pairs[fact, None]).argmax()
        push = model.head.weight[wanted] - model.head.weight[now]
        for _ in range(40):  # small steps, so that no more is changed than needed
            if changed(pairs[fact, None]).argmax() == wanted:
                break
            weight += 0.25 * torch.outer(push, key) / (key @ hidden[fact])
    return changed


shared = hidden.T @ hidden / len(hidden)
shared += 0.01 * torch.eye(len(shared))  # units that never speak would make it singular
side_effects = {"plain": [], "shared part\nremoved": []}
taken = []
for fact in range(100, 1100, 200):
    wanted = (int(objects[fact]) + 7) % OBJECTS
    keys = (hidden[fact], torch.linalg.solve(shared, hidden[fact]))
    for name, key in zip(side_effects, keys, strict=True):
        after = edited(with_relu, fact, wanted, key)
        taken.append(after(pairs[fact, None]).argmax().item() == wanted)
        lost = known(with_relu) & ~known(after)
        side_effects[name].append(int(lost.sum()) - int(lost[fact]))
print(f"{sum(taken)} of {len(taken)} edits make the model name the new object")
plots.show(
    plots.bar_plot(
        {name: float(np.mean(found)) for name, found in side_effects.items()},
        ylabel=f"other facts lost, of {len(pairs) - 1}",
        title="One fact edited, mean of five edits",
    )
)

# %% [markdown]
# One fact can be overwritten by a matrix of rank one. But this model stores 1152 facts in 64 units, so each unit
# serves many facts, and an edit that ignores this breaks others. Divided by what is shared, the edit does much less
# harm. "A fact sits in a neuron" is a picture; "in a direction, shared with others" is what we measure.

# %% [markdown]
# ## The whole block
#
# Now the parts of four chapters come together. Attention mixes, the network transforms; each adds to what came in,
# and each has a norm. The paper normalizes after the addition (post-norm), most later models before the sublayer
# (pre-norm):
#
# | | first half | second half |
# |---|---|---|
# | post-norm | $h = \text{norm}_1(x + \text{attention}(x))$ | $\text{output} = \text{norm}_2(h + \text{FFN}(h))$ |
# | pre-norm | $h = x + \text{attention}(\text{norm}_1(x))$ | $\text{output} = h + \text{FFN}(\text{norm}_2(h))$ |
#
# Document A counts "four main components": self-attention, multi-head attention, Add & Norm, and the network. The first
# two are one: multi-head attention **is** the block's self-attention. And a block is not yet a transformer. Document C
# lists what stands around it: embeddings, positions, many blocks in a row, and an output layer. Chapter 9 puts them
# together.
#
# All three documents draw the first row; document B also calls the second row the original one. Chapter 3 settled
# that, and the framework's default says it once more:

# %%
default = nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, batch_first=True)
print("norm_first:", default.norm_first, "  activation:", default.activation.__name__)

# %% [markdown] exercise="TransformerBlock" role="header" minutes=15 lines=14 difficulty=3
# ## Exercise: the transformer block
#
# Put it together, in both orders.
#
# **Why it matters.** This is the thing that is stacked: 12 times in BERT base and GPT-2 small, 96 times in GPT-3.
# Whoever can write it can read almost any model's code.
#
# **Contract.** `TransformerBlock(d_model, num_heads, d_ff, norm_first=False, activation="relu")` with the
# attributes `attention` (a `multi_head.MultiHeadAttention`), `ffn` (a `feed_forward.FeedForward`), `norm_1` and
# `norm_2` (`nn.LayerNorm`, its default eps). `forward(x, mask=None)` takes `(batch, sequence, d_model)` and a mask
# as the attention takes it, where `True` hides; it returns the new tokens alone. Without a mask every token sees
# all others. No dropout. `nn.TransformerEncoderLayer` with the same weights is the judge.
#
# <details><summary>Hint 1: the idea</summary>
#
# Write post-norm first, two lines. Pre-norm differs only in where the norms stand: what a sublayer reads goes
# through the norm, and what it is added to does not.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `self.attention(q, k, v, mask)` returns a pair; take the output out of it. In self-attention all three are the
# same tokens, in pre-norm the same **normalized** tokens.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Pre-norm: `read = norm_1(x)`, then x plus the output of attention on `read`; then that plus the network on
# `norm_2` of it. Do not forget to hand `activation` on.
#
# </details>


# %% exercise="TransformerBlock" role="answer"
class TransformerBlock(nn.Module):
    """Let tokens attend to each other, then transform each one; add and normalize around both."""

    # BEGIN SOLUTION
    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        norm_first: bool = False,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = multi_head.MultiHeadAttention(d_model, num_heads)
        self.ffn = feed_forward.FeedForward(d_model, d_ff, activation)
        self.norm_1 = nn.LayerNorm(d_model)
        self.norm_2 = nn.LayerNorm(d_model)

    def forward(
        self, x: Float[Tensor, "batch sequence d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch sequence d_model"]:
        if self.norm_first:
            read = self.norm_1(x)
            x = x + self.attention(read, read, read, mask)[0]
            return x + self.ffn(self.norm_2(x))
        x = self.norm_1(x + self.attention(x, x, x, mask)[0])
        return self.norm_2(x + self.ffn(x))

    # END SOLUTION
    # BEGIN STARTER
    # def __init__(
    #     self,
    #     d_model: int,
    #     num_heads: int,
    #     d_ff: int,
    #     norm_first: bool = False,
    #     activation: str = "relu",
    # ) -> None:
    #     super().__init__()
    #     raise NotImplementedError()
    #
    # def forward(
    #     self, x: Float[Tensor, "batch sequence d_model"], mask: Bool[Tensor, "..."] | None = None
    # ) -> Float[Tensor, "batch sequence d_model"]:
    #     raise NotImplementedError()
    # END STARTER


# %% exercise="TransformerBlock" role="test" points=3
from autograder import check

check(TransformerBlock)

# %% exercise="TransformerBlock" role="hidden test" points=4
from autograder import check

check(TransformerBlock, hidden=True)

# %% [markdown]
# ### The framework agrees
#
# `to_torch_layer` from `course_lib` copies a block's weights into `nn.TransformerEncoderLayer`. Same weights, same
# tokens, same mask: same numbers, in both orders and to the last digits of float64.

# %%
torch.manual_seed(0)
tokens = torch.randn(2, 10, 32, dtype=torch.float64)
future = torch.ones(10, 10, dtype=torch.bool).triu(1)  # True hides
for norm_first in (False, True):
    for activation in ("relu", "gelu"):
        ours = block.TransformerBlock(32, 4, 128, norm_first, activation).double()
        theirs = to_torch_layer(ours)
        difference = (ours(tokens, future) - theirs(tokens, src_mask=future)).abs().max().item()
        print(f"norm_first={norm_first}, {activation}: largest difference {difference:.1e}")
        assert difference < 1e-12

# %% [markdown]
# > **Paper and practice: a block under other names.** `nn.TransformerEncoderLayer` is the block of BERT and, with a
# > causal mask, that of GPT; it says "encoder" because it has no cross-attention (chapter 10). Its masks are called
# > `src_mask` and `src_key_padding_mask`, and it drops 10 of 100 numbers in training unless told otherwise. Some
# > large models compute attention and network side by side from the same tokens ("parallel"), which saves time and
# > gives other numbers.
#
# > **Paper and practice: faster, not different.** Document B announces "several optimizations" for the block and
# > then lists none. The usual ones compute the same numbers: one product for queries, keys and values (chapter 2),
# > attention in tiles (8), a cache of keys and values while writing (8), half precision (12), and kernels that join
# > bias and GELU, or dropout, addition and norm (12).
#
# ### Document C's block
#
# The code at the end of document C runs as it stands: a post-norm block with GELU that hides the future. It is our
# block with a causal mask. One of its comments misleads: the printed "attention matrix" of shape (8, 12, 12) is the
# **mean** over the four heads.

# %%
torch.manual_seed(0)
small = block.TransformerBlock(d_model=64, num_heads=4, d_ff=256, activation="gelu")
batch = torch.randn(8, 12, 64)
hide_future = torch.ones(12, 12, dtype=torch.bool).triu(1)
framework_attention = to_torch_attention(small.attention)
with torch.no_grad():
    output = small(batch, hide_future)
    same = (batch, batch, batch)  # queries, keys and values
    _, averaged = framework_attention(*same, attn_mask=hide_future)
    _, per_head = framework_attention(*same, attn_mask=hide_future, average_attn_weights=False)
print("output          ", tuple(output.shape))
print("weights         ", tuple(averaged.shape))
print("weights by head ", tuple(per_head.shape))
assert torch.allclose(averaged, per_head.mean(dim=1))
print(sum(weight.numel() for weight in small.parameters()), "parameters")

# %% [markdown]
# ### Claim on trial: how many parameters has a block?
#
# Document B gives N = 4d² + 2d · d_ff + dH for a block with H heads. Document A's example is a block with d = 256
# and d_ff = 1024. We build it with several numbers of heads and count.

# %%
d, d_ff = 256, 1024
counted, formula = {}, {}
for heads in (1, 2, 4, 8, 16):
    layer = nn.TransformerEncoderLayer(d, nhead=heads, dim_feedforward=d_ff, batch_first=True)
    counted[heads] = sum(weight.numel() for weight in layer.parameters())
    formula[heads] = 4 * d**2 + 2 * d * d_ff + d * heads
    print(f"H = {heads:>2}: counted {counted[heads]:,}, formula {formula[heads]:,}")
network_parameters, _ = feed_forward.feed_forward_cost(1, d, d_ff)
norm_parameters = 2 * 2 * d  # two norms, each with a gain and a bias
attention_parameters = multi_head.attention_parameter_count(d, 8)
assert counted[8] == attention_parameters + network_parameters + norm_parameters
print(f"share of the feed-forward network: {network_parameters / counted[8]:.0%}\n")
verdict(
    "N = 4d² + 2d · d_ff + dH",
    {f"H = {heads}": counted[heads] == formula[heads] for heads in counted},
    depends_on="the number of heads",
)

# %% [markdown]
# Heads add no parameters (chapter 2). What the formula's dH imitates are the biases and norms, 9d + d_ff numbers in
# all, and with H = 12 and d_ff = 4d it happens to come close. A test with one number of heads and a tolerance would
# have passed it.

# %% [markdown]
# ## Six blocks, as in the documents
#
# Document A stacks its block six times with `nn.TransformerEncoder` and calls it "6 identical blocks". Two details
# are easy to miss. The first is dropout: a fresh module is in training mode.

# %%
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(256, 8, dim_feedforward=1024, dropout=0.1, batch_first=True)
encoder = nn.TransformerEncoder(layer, num_layers=6)
x = torch.randn(2, 10, 256)
with torch.no_grad():
    print(
        "two calls in training mode differ by",
        f"{(encoder(x) - encoder(x)).abs().max().item():.2f}",
    )
    encoder.eval()
    print(
        "two calls after eval() differ by    ",
        f"{(encoder(x) - encoder(x)).abs().max().item():.2f}",
    )
    stack = nn.Sequential(*(from_torch_layer(each) for each in encoder.layers)).eval()
    print(
        "our six blocks with copied weights equal it:",
        torch.allclose(stack(x), encoder(x), atol=1e-5),
    )

# %% [markdown]
# The second detail: what does "identical" mean? `nn.TransformerEncoder` makes its layers as deep copies of the one
# it is given.


# %%
def equal_weights(blocks) -> bool:
    """Say whether all blocks hold the same numbers."""
    first, *others = (list(each.parameters()) for each in blocks)
    return all(torch.equal(a, b) for other in others for a, b in zip(first, other, strict=True))


at_the_start = equal_weights(encoder.layers)
shared = encoder.layers[0].linear1.weight.data_ptr() == encoder.layers[1].linear1.weight.data_ptr()
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
encoder(x).square().mean().backward()
optimizer.step()

built_one_by_one = nn.ModuleList(block.TransformerBlock(256, 8, 1024) for _ in range(6))
verdict(
    "the six blocks are identical",
    {
        "their structure": len({str(each) for each in encoder.layers}) == 1,
        "their weights at the start": at_the_start,
        "their storage": shared,
        "their weights after one step": equal_weights(encoder.layers),
        "the weights of six blocks built one by one": equal_weights(built_one_by_one),
    },
    depends_on="what is compared",
)

# %% [markdown]
# Six blocks of one structure, with weights of their own. The copies start equal, which no paper asks for, and part
# at the first step, because each gets another gradient. If you care about the start, build the blocks one by one or
# draw the weights again after stacking.
#
# > **Paper and practice: the last norm.** `nn.TransformerEncoder` ends without a norm unless you hand it one
# > (`norm=nn.LayerNorm(256)`). A post-norm stack needs none, since its last block ends in one. A pre-norm stack
# > does: without it the sum of all blocks goes out as large as it has become. GPT-2 has it, under the name `ln_f`.

# %% [markdown] exercise="repaired_block" role="header" minutes=15 lines=4 difficulty=3
# ## Bug hunt: a block that trains
#
# The pre-norm block below runs, keeps all shapes, and even trains. Three users report:
#
# 1. "I replaced the feed-forward network by one that adds nothing. Now the block hands its input through, and what
#    attention found is gone."
# 2. "The gradient of `norm_2` is always empty."
# 3. "I mended the first report. Now I replace both sublayers by ones that add nothing, and x does not come out as
#    it went in. It comes out normalized."
#
# **Why it matters.** Each of the three stood in published code, and each was found late, because the loss fell all
# the same. Fresh norms, with gain 1 and bias 0, hide one of them, and one fault hides another.
#
# **Contract.** `repaired_block(x, attention, ffn, norm_1, norm_2)` returns the output of a pre-norm block.
# `attention(q, k, v)` returns a pair, output and weights; the other three take a tensor and return one. Mend what
# is there.
#
# <details><summary>Hint 1: where to look</summary>
#
# Draw the skip path as one line from x to the output. It should pass two additions and nothing else. Where does it
# leave the line?
#
# </details>
# <details><summary>Hint 2: how to see it</summary>
#
# Call it with `lambda q, k, v: (torch.zeros_like(q), None)` as attention and `torch.zeros_like` as network: x must
# come out. Then give back one of them at a time.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The first addition starts from x, not from what was normalized. The second starts from the result of the first.
# The second norm is `norm_2`.
#
# </details>


# %% exercise="repaired_block" role="answer"
def repaired_block(
    x: Float[Tensor, "batch sequence d_model"], attention, ffn, norm_1, norm_2
) -> Float[Tensor, "batch sequence d_model"]:
    """Run a pre-norm block over given parts."""
    # BEGIN SOLUTION
    normalized = norm_1(x)
    attended = x + attention(normalized, normalized, normalized)[0]
    return attended + ffn(norm_2(attended))
    # END SOLUTION
    # BEGIN STARTER
    # normalized = norm_1(x)
    # attended = normalized + attention(normalized, normalized, normalized)[0]
    # return x + ffn(norm_1(attended))
    # END STARTER


# %% exercise="repaired_block" role="test" points=2
from autograder import check

check(repaired_block)

# %% exercise="repaired_block" role="hidden test" points=2
from autograder import check

check(repaired_block, hidden=True)

# %% [markdown] exercise="what_the_network_is_for" role="header" minutes=12
# ## Written question: what is the network for?
#
# A friend says: "Attention is the clever part and costs next to nothing. The feed-forward network is only padding;
# take it out and make the model wider instead." Answer with this notebook's measurements: quote at least three
# numbers. Then say where your friend has a point, and measure one thing that you miss in the cell below. A quarter
# to half a page is enough.
#
# Your teacher looks for four things: what is lost without the network, and that it is the bend and not only the
# weights; what the width of the hidden layer does; what it costs compared with attention, as n grows; and what the
# measurements do **not** show.

# %%
# Room for a measurement of your own. For example: does the wider model without a network catch up?
# learn(wider) trains it for another STEPS steps and returns the share of facts it knows then.

# %% [markdown] exercise="what_the_network_is_for" role="written" points=4
# **Model answer.** (Numbers of one run; others differ a little.) With the network the block knew 97 % of 1152
# random facts, without it 60 %. It is not only the weights: with the same 64 hidden units and no activation it was
# 57 %, because two linear layers are one. So what is missing is the bend. With all ReLU units dead, the model knew
# 60 % again: dead units are no units.
#
# The width is the size of the memory: 4 hidden units gave 62 %, 16 gave 75 %, 64 gave 97 %. The network reads as a
# sum of vectors, one for each unit that fires, and one fact can be overwritten by changing the second matrix along
# one direction, although other facts suffer, since they share the units.
#
# The network is not cheap: with d_ff = 4d it has two thirds of a block's parameters, and costs 16nd² of the FLOPs
# against 8nd² for the projections and 4n²d for the products of attention. For n below 4d it is the largest part.
# Beyond n = 6d the n² products are more than half of the block, so there the friend is at least wrong to call
# attention the cheap part.
#
# The friend has a point. Attention bends as well: with softmax attention and no network 60 % of the facts were
# learned, with an even mean only 32 %. And a wider model without a network, with as many parameters, reached 89 %:
# more than 60, less than 97, in equal steps. What all this does not show: language modeling, large models, or
# generalization. The task is pure memory by design, and each number but the comparison of activations comes from
# one seed.
#
# **Rubric** (one point each)
#
# 1. The loss without the network, with numbers, and the separation of bend and weights (the model without a bend,
#    or the dead units).
# 2. The width of the hidden layer as capacity, with at least two numbers.
# 3. Cost: 16nd² against 8nd² and 4n²d, or the crossings at n = 4d and 6d, or the share of a real model.
# 4. Limits: softmax attention bends too, or the task is memory only and small; half a point if only hinted at. A
#    sound measurement of one's own can replace any half point.

# %% [markdown]
# ## Optional: your own parts, together
#
# **Your** `TransformerBlock` with **your** `FeedForward` inside learns the facts. This cell is not graded and may
# fail while your answers are unfinished.

# %%
try:
    own = fresh()
    own.block = TransformerBlock(WIDTH, 2, 4 * WIDTH)
    own.block.ffn = FeedForward(WIDTH, 4 * WIDTH, "relu")
    own.load_state_dict(with_relu.state_dict())
    own_share = known(own).double().mean().item()
    print(f"the trained weights in your own block: {own_share:.1%} of the facts")
except NotImplementedError:
    print("TransformerBlock or FeedForward is not written yet; come back when they are.")

# %% [markdown]
# ## Summary
#
# - The network is up, bend, down, on each token alone. It commutes with reordering and equals two convolutions of
#   width 1.
# - Two matrices without a bend are one matrix. The bend stands between the layers, the first bias inside it.
# - GELU is x times the normal share below x. Its stand-in with tanh is near enough, the one with a sigmoid is
#   another function.
# - Glorot's variance is one over the mean of both sizes. Alone, layers need a gain; in a block the norm makes it
#   nearly irrelevant.
# - A gate makes three matrices of two; at two thirds of the width the weights are equal.
# - With d_ff = 4d the network costs 16nd², attention's projections 8nd² and its n² products 4n²d: the network is
#   the largest part up to n = 4d.
# - On a thousand random facts, having a bend matters much, which bend little. The number of hidden units is the
#   size of the memory.
# - A ReLU unit below 0 for every token gets no gradient, and in our run none came back; GELU units did.
# - Post-norm: norm(x + f(x)). Pre-norm: x + f(norm(x)). The skip path of pre-norm passes two additions and nothing
#   else.
# - `nn.TransformerEncoder` copies one block. Its blocks start equal and do not stay so.
#
# **Next:** nothing in this block knows which token came first. Chapter 5 tells it.
#
# ### Sources
#
# - Vaswani et al. 2017, *Attention Is All You Need*, arXiv 1706.03762: §3.1 (the block), §3.3, eq. 2 (the network,
#   and the convolution of width 1).
# - Hendrycks and Gimpel 2016, *Gaussian Error Linear Units*, arXiv 1606.08415, §2: the three forms.
# - Glorot and Bengio 2010, *Understanding the difficulty of training deep feedforward neural networks*, eq. 16; He
#   et al. 2015, *Delving Deep into Rectifiers*, arXiv 1502.01852, §2.2: the gain of ReLU.
# - Shazeer 2020, *GLU Variants Improve Transformer*, arXiv 2002.05202: SwiGLU and the two thirds; Touvron et al.
#   2023, *LLaMA*, arXiv 2302.13971, §2.2.
# - Kaplan et al. 2020, *Scaling Laws for Neural Language Models*, arXiv 2001.08361, table 1: the counts.
# - Geva et al. 2021, *Transformer Feed-Forward Layers Are Key-Value Memories*, arXiv 2012.14913; Meng et al. 2022,
#   *Locating and Editing Factual Associations in GPT*, arXiv 2202.05262.
# - Raffel et al. 2020, *Exploring the Limits of Transfer Learning*, arXiv 1910.10683: the widths of T5.
# - Xiong et al. 2020, *On Layer Normalization in the Transformer Architecture*, arXiv 2002.04745, fig. 1: both
#   orders.
# - Devlin et al. 2019, *BERT*, arXiv 1810.04805; Radford et al. 2019, *Language Models are Unsupervised Multitask
#   Learners*; Brown et al. 2020, *Language Models are Few-Shot Learners*, arXiv 2005.14165: the sizes of real
#   models.
