# ---
# title: "2 · Multi-head attention"
# ---

# %% [markdown] role="opening" minutes=35
# # 2 · Multi-head attention
#
# One attention gives every token one mixture of the others. A sentence needs several at once: who did it, to whom,
# and which noun an adjective belongs to. Multi-head attention runs several attentions side by side, each on its own
# share of the features, and mixes what they find. In this chapter you build the layer in PyTorch, prove it right
# against the framework's own, and then open a trained model to see what its heads do.
#
# **At the end you can**
#
# - follow every axis through the layer, and catch a `view` that should have been a transpose;
# - build the layer, load its weights into `nn.MultiheadAttention`, and get the same numbers;
# - say what heads cost (no parameters) and what sharing keys saves (memory, by a factor you can compute);
# - find the head that copies, the head that looks back, and the heads that a model can do without;
# - measure whether heads have collapsed, without falling for a false alarm.
#
# **You need** chapter 1 and the basics of PyTorch: tensors, `nn.Module`, `nn.Linear`.
#
# **The documents.** This chapter mirrors A's "Multi-Head Attention" and its NumPy function; B's "Multi-Head
# Attention", "Multi-Head Self-Attention Layer", "Attention Head Collapse" and the projections of "Kernel Fusion and
# Operator Optimization"; and C's "Multi-Head Attention", with the attention layer of its closing code.

# %%
import math

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from autograder import check
from autograder.counting import Counter
from course_lib import (
    attention,
    framework_attention,
    grouped_query,
    head_analysis,
    multi_head,
    plots,
)
from course_lib.memory import peak_bytes
from course_lib.models.induction import AttentionOnly
from course_lib.recall_tasks import UNSCORED, induction_batch, two_lookups_batch
from course_lib.tensor_attention import tensor_attention
from course_lib.timing import compare
from course_lib.training.loop import forever, sequence_loss, train
from course_lib.trial import reveal, verdict
from course_lib.widgets import head_switches, head_viewer, shape_flow_explorer

# %% [markdown]
# From here on the arrays are PyTorch tensors. `tensor_attention(query, key, value, mask)` is chapter 1's function
# for them: it returns `(output, weights)`, True hides, and a query that sees nothing gets zeros. (Document B's tags
# name PyTorch and TensorFlow. All of its code is PyTorch, and so is the course's.)
#
# ## The idea: one budget, several questions
#
# A row of attention weights sums to 1. Whatever a token gives to one key, it takes from the others. So a token that
# wants two things, say the token before it **and** the one three places back, gets a mixture of both and cannot
# tell them apart.
#
# Give it two heads and it has two budgets. Head $i$ has its own projections, its own weights and its own output:
#
# $$\text{head}_i = \text{Attention}(Q W^Q_i,\; K W^K_i,\; V W^V_i) \qquad
# \text{MultiHead}(Q, K, V) = \text{Concat}(\text{head}_1, \dots, \text{head}_h)\, W^O$$
#
# With $h$ heads each works at the width $d_\text{head} = d_\text{model} / h$, so that all together cost about as
# much as one wide head. The last matrix $W^O$ lets the heads mix.
#
# Nobody computes the heads one by one. The matrices $W^Q_1 \dots W^Q_h$ stand side by side in one square matrix;
# one product serves all heads, and its result is **cut** into heads. Everything that can go wrong in this chapter
# goes wrong in that cut. Move the controls (Tab reaches them, the arrow keys move them) and follow the axes.

# %%
shape_flow_explorer()

# %% [markdown]
# Two steps in the picture move no number and cost nothing: cutting an axis in two, and swapping two axes. Then there
# are as many attentions as batch rows times heads, and chapter 1's function does them all at once, because it leaves
# all axes but the last two alone.

# %% [markdown] exercise="split_heads" role="header" minutes=10 lines=4 difficulty=2
# ## Exercise: split into heads
#
# Cut the features of every token into heads: head 0 gets the first d_head features of each token, head 1 the next,
# and so on.
#
# **Why it matters.** Published code gets this line wrong again and again, in a way that raises no error, keeps
# every shape, and even trains. You will meet it in the bug hunt.
#
# **Contract.** `x` is `(batch, sequence, d_model)`; the result is `(batch, heads, sequence, d_head)` with
# `result[b, h, n, j] == x[b, n, h * d_head + j]`. If `num_heads` does not divide `d_model`, raise a `ValueError`.
#
# <details><summary>Hint 1: the idea</summary>
#
# Two steps: cut the last axis into (heads, d_head), then move the heads in front of the sequence. Cutting and
# moving are different things.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `view`, `reshape` or `unflatten` cut an axis. `transpose(i, j)` swaps two axes.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# After the cut the shape is (batch, sequence, heads, d_head). Swap axes 1 and 2.
#
# </details>


# %% exercise="split_heads" role="answer"
def split_heads(
    x: Float[Tensor, "batch sequence d_model"], num_heads: int
) -> Float[Tensor, "batch heads sequence d_head"]:
    """Cut the features of every token into heads."""
    # BEGIN SOLUTION
    batch, sequence, d_model = x.shape
    if d_model % num_heads:
        raise ValueError(f"`num_heads` {num_heads} does not divide the width {d_model}.")
    return x.view(batch, sequence, num_heads, d_model // num_heads).transpose(1, 2)
    # END SOLUTION


# %% exercise="split_heads" role="test" points=1
from autograder import check

check(split_heads)

# %% exercise="split_heads" role="hidden test" points=2
from autograder import check

check(split_heads, hidden=True)

# %% [markdown] exercise="merge_heads" role="header" minutes=6 lines=1 difficulty=2
# ## Exercise: merge the heads
#
# The way back: lay the heads of every token side by side.
#
# **Why it matters.** This is the "Concat" in the formula. A wrong merge mixes **tokens** where it should join
# **features**, and with a causal mask it carries the future into the past.
#
# **Contract.** `x` is `(batch, heads, sequence, d_head)`; the result is `(batch, sequence, d_model)`, and merging
# what `split_heads` gave returns the original. `x` may come straight from a transpose.
#
# <details><summary>Hint 1: the idea</summary>
#
# Undo the two steps in reverse order: first move the axis back, then join the last two.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `view` refuses a tensor whose numbers do not lie in the order of its axes; `reshape` and `flatten` copy when they
# must.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Swap axes 1 and 2, then make one axis of the last two.
#
# </details>


# %% exercise="merge_heads" role="answer"
def merge_heads(
    x: Float[Tensor, "batch heads sequence d_head"],
) -> Float[Tensor, "batch sequence d_model"]:
    """Lay the heads of every token side by side again."""
    # BEGIN SOLUTION
    return x.transpose(1, 2).flatten(2)
    # END SOLUTION


# %% exercise="merge_heads" role="test" points=1
from autograder import check

check(merge_heads)

# %% exercise="merge_heads" role="hidden test" points=2
from autograder import check

check(merge_heads, hidden=True)

# %% [markdown]
# ### Claim on trial: document A's heads
#
# Document A shows a NumPy function for multi-head attention, "simplified: just slice": head $i$ takes columns $i
# \cdot d_k$ to $(i+1) \cdot d_k$ of the raw input. It has no projections and no output matrix. The document then
# calls it with its four tokens, `num_heads=2` and `d_model=4`, and says that the output has the shape (4, 4). Here
# are its slices.

# %%
toy = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.5, 1.0]])
slices = [toy[:, 2 * head : 2 * head + 2] for head in range(2)]
print("what the two heads get:", [one.shape for one in slices])
joined = np.concatenate(slices, axis=1)  # attention leaves the width of the values as it is
verdict(
    "the example's output has the shape (4, 4)",
    {"document A's tokens": joined.shape == (4, 4)},
    depends_on="",
)


def sliced_attention(x: np.ndarray, num_heads: int) -> np.ndarray:
    """Attend slice by slice, as document A does."""
    parts = np.split(x, num_heads, axis=1)
    heads = [attention.scaled_dot_product_attention(part, part, part)[0] for part in parts]
    return np.concatenate(heads, axis=1)


x = np.random.default_rng(0).normal(size=(4, 4))
changed = x.copy()
changed[:, 2:] += 1.0 + np.arange(4.0)[:, None]
moved = np.abs(sliced_attention(changed, 2) - sliced_attention(x, 2))
print("columns 2 and 3 of the input change; in the output")
print(f"columns 0 and 1 move by {moved[:, :2].max()}")
print(f"columns 2 and 3 move by up to {moved[:, 2:].max():.2f}")

# %% [markdown]
# Two things went wrong. The toy tokens have two features, not four, so the second head gets an empty slice (run as
# printed, its weights are 0/0 and the output has two columns). And even with four features, the heads live in
# separate worlds: what head 1 reads can never reach the features of head 0. Slicing only makes sense **between**
# two projections: the ones before let every head look at all features, the one after lets the heads mix.

# %% [markdown] exercise="MultiHeadAttention" role="header" minutes=20 lines=14 difficulty=3
# ## Exercise: the layer
#
# Build the whole layer: project queries, keys and values, split, attend, merge, project the output.
#
# **Why it matters.** This is the layer of the original transformer, and every later chapter uses it: in the block
# (4), across two sequences (10), in the models of chapter 9. GPT-2 small has 12 of them with 12 heads each.
#
# **Contract.**
#
# - `MultiHeadAttention(d_model, num_heads, bias=True)`: four `nn.Linear(d_model, d_model)` called `w_q`, `w_k`,
#   `w_v` and `w_o`, without biases if `bias=False`. A width that the heads do not divide raises a `ValueError`.
# - `forward(query, key, value, mask=None)` returns `(output, weights)` of shapes `(batch, n_q, d_model)` and
#   `(batch, heads, n_q, n_k)`: one map for each head, not their mean.
# - `mask` is boolean, True hides. It has 2 axes `(n_q, n_k)`, or 4 axes `(batch or 1, heads or 1, n_q, n_k)`. With
#   **3** axes nobody knows whether the first counts batch rows or heads: raise a `ValueError`. A mask that is not
#   boolean raises a `TypeError`. A query that sees nothing has weights 0, and no NaN reaches an output or a
#   gradient.
# - You may use `multi_head.split_heads`, `multi_head.merge_heads` and `tensor_attention`, which does the mask for
#   you.
#
# <details><summary>Hint 1: the order</summary>
#
# Project first, then split: that way every head sees all features. Merge first, then `w_o`.
#
# </details>
# <details><summary>Hint 2: the scale</summary>
#
# `tensor_attention` divides by the root of the width that it sees. After the split that is d_head, which is right:
# a score adds up d_head products.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# In `forward`: refuse a mask with 3 axes; `query`, `key` and `value` each go through their own linear layer and
# `split_heads`; call `tensor_attention` once with all heads; return `w_o` of the merged output, and the weights.
#
# </details>


# %% exercise="MultiHeadAttention" role="answer"
class MultiHeadAttention(nn.Module):
    """Attend with several heads and mix what they found."""

    # BEGIN SOLUTION
    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"`num_heads` {num_heads} does not divide `d_model` {d_model}.")
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_model"],
        value: Float[Tensor, "batch key d_model"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch query d_model"], Float[Tensor, "batch heads query key"]]:
        if mask is not None and mask.ndim == 3:
            raise ValueError("`mask` has 3 axes: does the first count batch rows or heads?")
        query = multi_head.split_heads(self.w_q(query), self.num_heads)
        key = multi_head.split_heads(self.w_k(key), self.num_heads)
        value = multi_head.split_heads(self.w_v(value), self.num_heads)
        output, weights = tensor_attention(query, key, value, mask)
        return self.w_o(multi_head.merge_heads(output)), weights

    # END SOLUTION
    # BEGIN STARTER
    # def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
    #     super().__init__()
    #     raise NotImplementedError()
    #
    # def forward(
    #     self,
    #     query: Float[Tensor, "batch query d_model"],
    #     key: Float[Tensor, "batch key d_model"],
    #     value: Float[Tensor, "batch key d_model"],
    #     mask: Bool[Tensor, "..."] | None = None,
    # ) -> tuple[Float[Tensor, "batch query d_model"], Float[Tensor, "batch heads query key"]]:
    #     raise NotImplementedError()
    # END STARTER


# %% exercise="MultiHeadAttention" role="test" points=3
from autograder import check

check(MultiHeadAttention)

# %% exercise="MultiHeadAttention" role="hidden test" points=4
from autograder import check

check(MultiHeadAttention, hidden=True)

# %% [markdown]
# ### Claim on trial: one softmax for all heads?
#
# Document B says that with the stacked matrices "the entire MHSA operation can be implemented as" $\text{softmax}(X
# W^Q (X W^K)^\top / \sqrt{d_k})\, X W^V W^O$. Count the softmaxes: one. Let us compare it with the layer, for the
# same weights and several numbers of heads.


# %%
def document_b(layer: multi_head.MultiHeadAttention, x: Tensor) -> Tensor:
    """Compute document B's one-line formula with the stacked projections of a layer."""
    query, key, value = layer.w_q(x), layer.w_k(x), layer.w_v(x)
    weights = torch.softmax(query @ key.mT / math.sqrt(layer.d_head), dim=-1)
    return layer.w_o(weights @ value)


x = torch.randn(2, 7, 24, generator=torch.Generator().manual_seed(0))
agrees = {}
for num_heads in (1, 3, 6):
    torch.manual_seed(0)
    layer = multi_head.MultiHeadAttention(24, num_heads)
    with torch.no_grad():
        for linear in (layer.w_q, layer.w_k):
            linear.weight.mul_(3)  # scores large enough for the heads to differ
        right, one_line = layer(x, x, x)[0], document_b(layer, x)
    difference = (right - one_line).abs().max().item()
    spread = right.std().item()
    print(f"h = {num_heads}: difference up to {difference:.1e}, spread of the output {spread:.2f}")
    agrees[f"h = {num_heads}"] = torch.allclose(right, one_line, atol=1e-5)
verdict(
    "one softmax over the stacked projections is multi-head attention",
    agrees,
    depends_on="the number of heads",
)

# %% [markdown]
# One softmax is one head, a wide one. Its score adds up the scores of all heads before the softmax, so the heads
# must agree on one map. Stacking is right for the **projections**; the scores must be taken head by head. That is
# what the cut is for.
#
# ### Predict first: document C's attention matrix
#
# Document C closes with a block around `nn.MultiheadAttention(embed_dim=64, num_heads=4, batch_first=True)`. It is
# called with tokens of the shape (8, 12, 64), 8 texts of 12 tokens, and the last line prints the shape of its
# "attention matrix". Write the shape down on paper. How many **axes** does it have?

# %%
my_prediction = None  # a number of axes

layer = nn.MultiheadAttention(embed_dim=64, num_heads=4, batch_first=True)
tokens = torch.randn(8, 12, 64, generator=torch.Generator().manual_seed(0))
_, maps = layer(tokens, tokens, tokens)
_, every_map = layer(tokens, tokens, tokens, average_attn_weights=False)

reveal(my_prediction, maps.ndim)
print(f"its shape: {tuple(maps.shape)}")
print(f"with average_attn_weights=False: {tuple(every_map.shape)}")

# %% [markdown]
# The framework hands out the **mean** over the heads unless you ask otherwise. A mean of four maps hides what you
# most want to see: that heads look at different places.
#
# > **Paper and practice: what comes back.** We return one map for each head. `nn.MultiheadAttention` averages them,
# > or returns None with `need_weights=False`, which lets it use a faster kernel. Most published layers return the
# > output alone.
# >
# > **Paper and practice: batch first or sequence first.** `nn.MultiheadAttention` reads (sequence, batch, d_model)
# > unless told `batch_first=True`. Feed it the other order and it attends across the examples of a batch. Nothing
# > fails.
# >
# > **Paper and practice: biases.** The paper's formula has none. BERT and GPT-2 have them in all four projections;
# > T5 and Llama have none.
# >
# > **Paper and practice: the width of a head.** d_head = d_model / h is a habit. T5-11B has 128 heads of 128
# > features each over a d_model of 1024 (Raffel et al. 2020, §3.7): its projections are not square.

# %% [markdown] exercise="attention_parameter_count" role="header" minutes=6 lines=1 difficulty=1
# ## Exercise: count the parameters
#
# How many numbers does a layer learn?
#
# **Why it matters.** Document B counts 4d² + 2d·d_ff + dH parameters for a block with H heads (d_ff is the hidden
# width of the feed-forward part, chapter 4). The last term would make heads cost something. Chapter 7 adds up whole
# models this way; this is its first line.
#
# **Contract.** `(d_model, num_heads, bias=True)` → `int`, equal to the sum over a real layer's parameters.
#
# <details><summary>Hint 1: the idea</summary>
#
# Four linear layers. What do the heads add to them?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `sum(p.numel() for p in layer.parameters())` counts a real layer. Try one with 1 head and one with 4.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# `nn.Linear(d, d)` holds a matrix of d rows and d columns and, if it has a bias, d numbers more.
#
# </details>


# %% exercise="attention_parameter_count" role="answer"
def attention_parameter_count(d_model: int, num_heads: int, bias: bool = True) -> int:
    """Count the numbers that a layer learns."""
    # BEGIN SOLUTION
    return 4 * (d_model * d_model + (d_model if bias else 0))
    # END SOLUTION


# %% exercise="attention_parameter_count" role="test" points=1
from autograder import check

check(attention_parameter_count)

# %% exercise="attention_parameter_count" role="hidden test" points=1
from autograder import check

check(attention_parameter_count, hidden=True)

# %%
counts = {
    heads: sum(weight.numel() for weight in multi_head.MultiHeadAttention(256, heads).parameters())
    for heads in (1, 4, 16)
}
print(counts)
grows = {
    f"{heads} heads instead of 1": counts[heads] - counts[1] == 256 * (heads - 1)
    for heads in (4, 16)  # what d · H would add
}
verdict("H heads add d · H parameters", grows, depends_on="the number of heads")

# %% [markdown] exercise="fused_qkv" role="header" minutes=10 lines=3 difficulty=2
# ## Exercise: one product for three projections
#
# In self-attention the same tokens go through three projections. Get all three with **one** matrix product.
#
# **Why it matters.** One large product keeps a GPU busier than three small ones, and it reads x once. Most language
# models store one matrix for queries, keys and values. Document B shows it under "Kernel Fusion".
#
# **Contract.** `x` is `(..., d_model)`; `w_q`, `w_k`, `w_v` are `(d_model, width)` with widths that **may differ**.
# Return `(q, k, v)`, equal to `x @ w_q`, `x @ w_k`, `x @ w_v`. Exactly one matrix product runs; the check counts.
#
# <details><summary>Hint 1: the idea</summary>
#
# Each column of a product comes from one column of the right matrix. So columns of several matrices can share a
# product.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `torch.cat` lays matrices side by side. `split` takes a list of widths.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Lay them side by side along the last axis, multiply once, and split the result at the three widths. Document B
# splits in pieces of d_model; what if keys are narrower?
#
# </details>


# %% exercise="fused_qkv" role="answer"
def fused_qkv(
    x: Float[Tensor, "... d_model"],
    w_q: Float[Tensor, "d_model width_q"],
    w_k: Float[Tensor, "d_model width_k"],
    w_v: Float[Tensor, "d_model width_v"],
) -> tuple[
    Float[Tensor, "... width_q"],
    Float[Tensor, "... width_k"],
    Float[Tensor, "... width_v"],
]:
    """Project to queries, keys and values in one matrix product."""
    # BEGIN SOLUTION
    widths = [matrix.shape[-1] for matrix in (w_q, w_k, w_v)]
    query, key, value = (x @ torch.cat([w_q, w_k, w_v], dim=-1)).split(widths, dim=-1)
    return query, key, value
    # END SOLUTION


# %% exercise="fused_qkv" role="test" points=1
from autograder import check

check(fused_qkv)

# %% exercise="fused_qkv" role="hidden test" points=2
from autograder import check

check(fused_qkv, hidden=True)

# %% [markdown]
# ### Claim on trial: fused is faster
#
# Document B's snippet calls `torch.cat` on the three matrices inside the forward pass, and says that throughput
# "benefits". The snippet moves every weight each time. The alternative is to lay the matrices side by side
# **once**. First count products and bytes, then time all three at several numbers of tokens. (Times differ between
# machines and moments; the verdict is computed from yours. One thread, d_model = 512.)

# %%
generator = torch.Generator().manual_seed(0)
w_q, w_k, w_v = (torch.randn(512, 512, generator=generator) / math.sqrt(512) for _ in range(3))
laid_out = torch.cat([w_q, w_k, w_v], dim=-1)
ways = {
    "separate": lambda x: (x @ w_q, x @ w_k, x @ w_v),
    "joined at every call": lambda x: grouped_query.fused_qkv(x, w_q, w_k, w_v),
    "joined once": lambda x: (x @ laid_out).split(512, dim=-1),
}
for name, way in ways.items():
    with Counter() as counter:
        way(torch.ones(16, 512))
    allocated = peak_bytes(way, torch.ones(16, 512))
    print(f"{name}: matrix products {counter.counts().matrix_products}; for 16 tokens, {allocated}")

timed = compare(ways, sizes=[1, 16, 256], inputs=lambda n: torch.randn(n, 512, generator=generator))
for size in timed.sizes:
    told = ", ".join(f"{name} {timed.at(name, size).median * 1e6:.0f} µs" for name in ways)
    print(f"n = {size:>3} tokens: {told}")


def faster(name: str, size: int) -> bool:
    """Say whether a way beats the separate products by more than the noise."""
    gain = timed.at("separate", size).median - timed.at(name, size).median
    return timed.differs(size, name, "separate") and gain > 0


for name in ("joined at every call", "joined once"):
    findings = {f"n = {size}": faster(name, size) for size in timed.sizes}
    verdict(
        f"{name}, one product beats three by more than the noise",
        findings,
        depends_on="the number of tokens",
    )

# %%
plots.show(timed.plot(xlabel="tokens"), timed.text())

# %% [markdown]
# Clocks are noisy, above all on a shared machine; counts are not. Joining the matrices at every call reads and writes
# 3 · 512 · 512 numbers before the work begins: the 3 MiB that you see counted. For one token, which is how a model
# writes text, the products themselves read each weight just once, so the copy costs more than they do. That is why
# layers store the wide matrix and never join anything at run time. And note the word: this is one bigger product.
# "Kernel fusion" usually means something else, several operations in one kernel without a trip to memory between them
# (chapters 8 and 12).
#
# > **Paper and practice: layouts of a fused matrix.** GPT-2 stores [Q | K | V] in three blocks. GPT-NeoX and BLOOM
# > store the queries, keys and values of head 0, then those of head 1. Each is consistent in itself. Read one as
# > the other and all shapes fit, and the numbers are noise. (GPT-2 also stores its weights as (in, out);
# > `nn.Linear` stores (out, in).)

# %% [markdown] exercise="to_torch_attention" role="header" minutes=15 lines=14 difficulty=3
# ## Exercise: the framework as your witness
#
# Carry the weights of a layer over to PyTorch's own `nn.MultiheadAttention`, so that both give the same numbers.
#
# **Why it matters.** Two independent programs that agree on random input are the best test there is. And you will
# often have to load someone's weights into another layout; this is the smallest honest example.
#
# **Contract.** `attention` is a layer as you built it: `w_q`, `w_k`, `w_v`, `w_o` are `nn.Linear`, with or without
# biases (then `.bias` is None), and `attention.num_heads` is its number of heads. Return an `nn.MultiheadAttention`
# with `batch_first=True`, the same outputs, and the same dtype.
#
# <details><summary>Hint 1: where things go</summary>
#
# The framework stacks queries, keys and values, in that order, in `in_proj_weight` (3 d_model, d_model) and
# `in_proj_bias` (3 d_model). The output projection is the `nn.Linear` called `out_proj`. Nothing needs a transpose.
# Why?
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `load_state_dict` takes a dictionary by names. `nn.MultiheadAttention(...)` takes `bias` and `dtype`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Build the layer with the width, the heads, `bias=attention.w_q.bias is not None`, `batch_first=True` and the
# weights' dtype. Make a state with `in_proj_weight` and `out_proj.weight`, add the two biases if there are any, and
# load it.
#
# </details>


# %% exercise="to_torch_attention" role="answer"
def to_torch_attention(attention: nn.Module) -> nn.MultiheadAttention:
    """Build the framework's layer with the weights of ours."""
    # BEGIN SOLUTION
    weight, has_bias = attention.w_q.weight, attention.w_q.bias is not None
    layer = nn.MultiheadAttention(
        weight.shape[0], attention.num_heads, bias=has_bias, batch_first=True, dtype=weight.dtype
    )
    linears = (attention.w_q, attention.w_k, attention.w_v)
    state = {
        "in_proj_weight": torch.cat([linear.weight for linear in linears]),
        "out_proj.weight": attention.w_o.weight,
    }
    if has_bias:
        state["in_proj_bias"] = torch.cat([linear.bias for linear in linears])
        state["out_proj.bias"] = attention.w_o.bias
    layer.load_state_dict(state)
    return layer
    # END SOLUTION


# %% exercise="to_torch_attention" role="test" points=2
from autograder import check

check(to_torch_attention)

# %% exercise="to_torch_attention" role="hidden test" points=3
from autograder import check

check(to_torch_attention, hidden=True)

# %% [markdown]
# There and back: a layer of ours becomes the framework's and ours again. All three agree, weights and outputs.

# %%
torch.manual_seed(0)
ours = multi_head.MultiHeadAttention(d_model=24, num_heads=4)
framework = framework_attention.to_torch_attention(ours)
back = framework_attention.from_torch_attention(framework)

x = torch.randn(2, 5, 24, generator=torch.Generator().manual_seed(1))
output, weights = ours(x, x, x)
their_output, their_weights = framework(x, x, x, average_attn_weights=False)
assert torch.allclose(output, their_output, atol=1e-6)
assert torch.allclose(weights, their_weights, atol=1e-6)
returned = back.state_dict()
assert all(torch.equal(weight, returned[name]) for name, weight in ours.state_dict().items())
print(f"largest difference of outputs: {(output - their_output).abs().max().item():.1e}")

# %% [markdown] exercise="grouped_query_attention" role="header" minutes=12 lines=5 difficulty=3
# ## Exercise: heads that share keys
#
# Let several query heads share one key head and one value head. With as many key heads as query heads this is
# multi-head attention; with one it is **multi-query** attention; between the two it is **grouped-query** attention.
#
# **Why it matters.** A model that writes text keeps the keys and values of all earlier tokens, in every layer (the
# KV cache, chapter 8). They grow with every token and every text, and many long texts take more memory than the
# weights. Fewer key heads means fewer of them.
#
# **Contract.** `query` is `(batch, heads, n, d)`, `key` and `value` are `(batch, groups, n, d)`; return the output
# `(batch, heads, n, d)`. **Consecutive** query heads share: with 6 heads over 2 groups, heads 0, 1, 2 read key head
# 0. If `heads` is not a multiple of `groups`, raise a `ValueError`. You may use `tensor_attention`.
#
# <details><summary>Hint 1: the idea</summary>
#
# If every key head stood there once for each query head that reads it, ordinary attention would do. In which order
# must the copies stand: 0, 1, 0, 1 or 0, 0, 1, 1?
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `repeat` lays copies of the whole axis one after the other; `repeat_interleave` repeats each entry on the spot.
# Both copy memory. Without a copy: give the queries an extra axis (groups, heads per group).
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# `share = heads // groups`; repeat keys and values `share` times on the spot along axis 1; attend; return the first
# of the two results.
#
# </details>


# %% exercise="grouped_query_attention" role="answer"
def grouped_query_attention(
    query: Float[Tensor, "batch heads sequence d_head"],
    key: Float[Tensor, "batch groups sequence d_head"],
    value: Float[Tensor, "batch groups sequence d_head"],
) -> Float[Tensor, "batch heads sequence d_head"]:
    """Attend with many query heads over few key and value heads."""
    # BEGIN SOLUTION
    heads, groups = query.shape[1], key.shape[1]
    if heads % groups:
        raise ValueError(f"{heads} query heads cannot share {groups} key heads evenly.")
    share = heads // groups
    key, value = key.repeat_interleave(share, dim=1), value.repeat_interleave(share, dim=1)
    output, _ = tensor_attention(query, key, value)
    return output
    # END SOLUTION


# %% exercise="grouped_query_attention" role="test" points=2
from autograder import check

check(grouped_query_attention)

# %% exercise="grouped_query_attention" role="hidden test" points=3
from autograder import check

check(grouped_query_attention, hidden=True)

# %% [markdown]
# ### Predict first: what does sharing save?
#
# Llama 2 70B has 80 layers, 64 query heads of 128 features and 8 key heads (its published configuration). Numbers
# take 2 bytes. For one text of 4096 tokens, how many **gigabytes** (10⁹ bytes) of keys and values would it keep if
# every query head had its own?


# %%
def key_value_bytes(key_heads: int, layers: int = 80, tokens: int = 4096, d_head: int = 128) -> int:
    """Count the bytes of all keys and values."""
    # A tensor on the meta device has a size and takes no memory.
    keys = torch.empty(layers, key_heads, tokens, d_head, dtype=torch.float16, device="meta")
    return 2 * keys.nbytes


my_prediction = None  # a number of gigabytes

reveal(my_prediction, key_value_bytes(64) / 1e9)
names = {64: "one for each query", 8: "8 key heads", 1: "one for all"}
plots.show(
    plots.bar_plot(
        {name: key_value_bytes(heads) / 1e9 for heads, name in names.items()},
        ylabel="gigabytes",
        title="Keys and values of one text of 4096 tokens",
        ax=plots.panels(1, width=5.5)[0],
    )
)

# %% [markdown]
# Eight key heads save seven eighths; a single one saves all but a sixty-fourth. The weights shrink too: with 8 of
# 64 key heads, `w_k` and `w_v` are an eighth as wide. That is why your `fused_qkv` had to cope with different
# widths. What it costs in quality, Ainslie et al. (2023) measured: grouped queries came close to full multi-head
# attention, and a single key head fell further behind.
#
# The check refuses a tiled order (0, 1, 0, 1). Is it wrong? In a fresh model it is only another order, and training
# does not care. With loaded weights it makes every query head but a few read keys that it was never trained with.

# %% [markdown] exercise="repaired_multi_head" role="header" minutes=15 lines=6 difficulty=3
# ## Bug hunt: it works with one head
#
# This function was written in a hurry. Its shapes are right. With one head its numbers are right. Cutting and
# joining undo each other perfectly: join(cut(x)) equals x. A model with it trains, and its loss falls. Three faults
# are in it, each of which has been found in published code more than once.
#
# The cell after the function shows what a test of shapes cannot: it reorders the tokens of the input, and sees
# whether the output is reordered in the same way.
#
# **Why it matters.** Two faults that undo each other pass every test of the parts, and a model trains around them. A
# test of the whole with unequal sizes, and more than one head, is what finds them.
#
# **Contract.** `x` is `(batch, n, d_model)`, the four matrices are `(d_model, d_model)` and act from the right (`x
# @ w_q`); the result is `(batch, n, d_model)`. No masks, no biases. Mend what is there.
#
# <details><summary>Hint 1: where to look</summary>
#
# Two faults are the same mistake, made in both directions. The third is a number under a root.
#
# </details>
# <details><summary>Hint 2: how to see it</summary>
#
# Take an x of shape (1, 5, 15) whose entries are 100 · token + feature, cut it into 3 heads as the function does,
# and print head 0. Which tokens are in it? Which features?
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Cut the **last** axis into (num_heads, d_head) and swap; at the end swap back and join. A score adds up d_head
# products.
#
# </details>


# %% exercise="repaired_multi_head" role="answer"
def repaired_multi_head(
    x: Float[Tensor, "batch sequence d_model"],
    w_q: Float[Tensor, "d_model d_model"],
    w_k: Float[Tensor, "d_model d_model"],
    w_v: Float[Tensor, "d_model d_model"],
    w_o: Float[Tensor, "d_model d_model"],
    num_heads: int,
) -> Float[Tensor, "batch sequence d_model"]:
    """Let every token of x attend to all tokens with several heads."""
    # BEGIN SOLUTION
    batch, sequence, d_model = x.shape
    d_head = d_model // num_heads
    query = (x @ w_q).view(batch, sequence, num_heads, d_head).transpose(1, 2)
    key = (x @ w_k).view(batch, sequence, num_heads, d_head).transpose(1, 2)
    value = (x @ w_v).view(batch, sequence, num_heads, d_head).transpose(1, 2)
    weights = torch.softmax(query @ key.mT / math.sqrt(d_head), dim=-1)
    return (weights @ value).transpose(1, 2).reshape(batch, sequence, d_model) @ w_o
    # END SOLUTION
    # BEGIN STARTER
    # batch, sequence, d_model = x.shape
    # d_head = d_model // num_heads
    # query = (x @ w_q).view(batch, num_heads, sequence, d_head)
    # key = (x @ w_k).view(batch, num_heads, sequence, d_head)
    # value = (x @ w_v).view(batch, num_heads, sequence, d_head)
    # weights = torch.softmax(query @ key.mT / math.sqrt(d_model), dim=-1)
    # return (weights @ value).reshape(batch, sequence, d_model) @ w_o
    # END STARTER


# %%
generator = torch.Generator().manual_seed(0)
x = torch.randn(1, 6, 12, generator=generator)
matrices = [torch.randn(12, 12, generator=generator) / math.sqrt(12) for _ in range(4)]
order = torch.tensor([3, 0, 5, 1, 4, 2])
for num_heads in (1, 3):
    before = repaired_multi_head(x[:, order], *matrices, num_heads)
    after = repaired_multi_head(x, *matrices, num_heads)[:, order]
    difference = (before - after).abs().max().item()
    print(f"num_heads = {num_heads}: reordering before or after differs by {difference:.1e}")

# %% exercise="repaired_multi_head" role="test" points=2
from autograder import check

check(repaired_multi_head)

# %% exercise="repaired_multi_head" role="hidden test" points=3
from autograder import check

check(repaired_multi_head, hidden=True)

# %% [markdown]
# Attention has no idea of order, so reordered tokens must give reordered outputs, up to rounding. The check of this
# one property finds a wrong cut and a wrong join; neither a shape nor a falling loss does.
#
# ## What are heads good for?
#
# ### Claim on trial: richer than a single head
#
# Document A says that concatenating the heads "gives a richer representation than a single attention head". Take a
# task that needs two things at once: at every place, name the token **1** place back and the token **3** places
# back. And one that needs a single thing: name the token 1 place back. One layer, no feed-forward part. One head or
# four, with exactly the same number of parameters, three seeds each.


# %%
def share_right(model: nn.Module, batch: tuple[Tensor, Tensor]) -> float:
    """Return the share of scored places that a model names rightly."""
    tokens, targets = batch
    with torch.no_grad():
        found = model(tokens)[0].argmax(dim=-1)
    return (found == targets)[targets != UNSCORED].double().mean().item()


def plural(count: int, thing: str) -> str:
    """Count things in words."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def look_back(num_heads: int, offsets: tuple[int, int], seed: int) -> tuple[float, int]:
    """Train one layer to look back; return the share right on new sequences, and its size."""
    places = " and ".join(str(offset) for offset in sorted(set(offsets)))
    print(f"{plural(num_heads, 'head')}, {places} back, seed {seed}:")
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = AttentionOnly(
        vocab_size=10,
        length=16,
        d_model=32,
        num_heads=num_heads,
        num_layers=1,
        answers=2,
    )
    train(
        model,
        forever(lambda: two_lookups_batch(64, 16, 10, offsets, generator)),
        steps=200,
        learning_rate=0.01,
    )
    test = two_lookups_batch(1000, 16, 10, offsets, torch.Generator().manual_seed(100))
    return share_right(model, test), sum(weight.numel() for weight in model.parameters())


two = {heads: [look_back(heads, (1, 3), seed) for seed in range(3)] for heads in (1, 4)}
one = {heads: [look_back(heads, (1, 1), seed=0)] for heads in (1, 4)}


# %%
shares = {}
for task, results in (("two places", two), ("one place", one)):
    for heads, runs in results.items():
        found = [share for share, _ in runs]
        shares[task, heads] = float(np.median(found))
        told = ", ".join(f"{share:.2f}" for share in found)
        print(f"{task}, {plural(heads, 'head')}, {runs[0][1]:,} parameters: right {told}")
print()
clearly = 0.05  # a smaller gain could be luck
verdict(
    "several heads beat one at equal parameters",
    {task: shares[task, 4] > shares[task, 1] + clearly for task in ("two places", "one place")},
    depends_on="the task",
)
plots.show(
    plots.bar_plot(
        {f"{task}, {plural(heads, 'head')}": share for (task, heads), share in shares.items()},
        ylabel="share of tokens right",
        title="One head cannot keep two look-ups apart",
        ax=plots.panels(1, width=8.5)[0],
    )
)

# %% [markdown]
# One head must lay both tokens on one pile, and a linear read-out cannot tell which came from where; it gets little
# more than half. Four heads need no more parameters and make no mistake. With one thing to look up, one head is
# enough. (With a feed-forward part after the attention, one head can learn to sort its pile; chapter 4 adds that
# part.)
#
# ## A real task: what came after it last time?
#
# Now a task that a language model meets all the time. A text contains a name or a phrase for the second time. What
# comes next? Find the first time, and look **what came after it**. Here: 24 random letters out of 16, in which one
# span of eight occurs twice. Only the places whose answer the first copy tells are scored, and the distance between
# the copies is **random**.

# %%
LETTERS = "ABCDEFGHIJKLMNOP"
LENGTH, SPAN = 24, 8


def written(tokens: Tensor) -> str:
    """Write tokens as letters."""
    return "".join(LETTERS[token] for token in tokens.tolist())


examples = induction_batch(3, LENGTH, 16, SPAN, torch.Generator().manual_seed(3))
for row, answers in zip(*examples, strict=True):
    told = answers[:, 0].tolist()
    scored = "".join(LETTERS[answer] if answer != UNSCORED else "." for answer in told)
    print(f"tokens {written(row)}\nnext   {scored}\n")

# %% [markdown]
# The model has attention layers and nothing else, with four heads each. We train three: two layers; one layer; and
# one layer on an easier task, in which the copy always starts 12 places after the first. Before you read on: could
# one layer do it? To answer, a place must find the earlier copy of **itself**, and then look one place further.


# %%
def train_induction(
    num_layers: int,
    steps: int,
    distance: int | None = None,
) -> tuple[AttentionOnly, list[float]]:
    """Train a model of attention alone; the seeds make every run the same on one machine."""
    print(f"{plural(num_layers, 'layer')}, distance {distance or 'random'}:")
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = AttentionOnly(len(LETTERS), LENGTH, d_model=48, num_heads=4, num_layers=num_layers)
    batches = forever(lambda: induction_batch(64, LENGTH, 16, SPAN, generator, distance))
    return model.eval(), train(model, batches, steps=steps, learning_rate=0.01)


two_layers, two_layer_losses = train_induction(num_layers=2, steps=600)
one_layer, one_layer_losses = train_induction(num_layers=1, steps=600)
counting, _ = train_induction(num_layers=1, steps=200, distance=12)

# %%
new = induction_batch(1000, LENGTH, 16, SPAN, torch.Generator().manual_seed(100))
new_fixed = induction_batch(1000, LENGTH, 16, SPAN, torch.Generator().manual_seed(100), distance=12)


def loss_on_new(model: AttentionOnly) -> float:
    """Return the loss on new sequences, in nats per scored place."""
    with torch.no_grad():
        return sequence_loss(model, new).item()


print(f"guessing evenly among 16 letters: {math.log(16):.2f} nats")
print(f"one layer:  {loss_on_new(one_layer):.2f} nats, {share_right(one_layer, new):.0%} right")
print(f"two layers: {loss_on_new(two_layers):.2f} nats, {share_right(two_layers, new):.0%} right")
print(f"one layer, distance always 12: {share_right(counting, new_fixed):.0%} right there")
print(f"                               {share_right(counting, new):.0%} right at random distances")


def smoothed(losses: list[float], window: int = 20) -> list[float]:
    """Average neighboring steps."""
    window = min(window, len(losses))
    return np.convolve(losses, np.ones(window) / window, mode="valid").tolist()


curves = {"one layer": smoothed(one_layer_losses), "two layers": smoothed(two_layer_losses)}
plots.show(
    plots.line_plot(
        list(range(len(curves["one layer"]))),
        curves,
        xlabel="step",
        ylabel="loss in nats",
        title="Induction needs two layers",
    )
)

# %% [markdown]
# Two layers find nearly everything. One layer gets a quarter: it can prefer letters that have occurred already, but
# not find the one that matters. At a fixed distance one layer does it, by **counting** places, and that skill is
# worth little once the distance varies. (What the two layers still get wrong is partly undecidable: a letter that
# occurs three times by chance has two candidates.)
#
# ### Look inside
#
# How do two layers do it? Here is a sequence that is easy to read: all 16 letters in random order, then eight of
# them once more. Choose layer, head and query; the words below the picture name the largest weights. Look at layer
# 2 first, at a query in the second copy (places 16 to 22). Where does it look, and which letter stands **just
# before** that place? Then look for a head in layer 1 that always looks at the place before. (Sequence 2 is a
# random one, as in training.)

# %%
order = torch.randperm(16, generator=torch.Generator().manual_seed(4))
easy = torch.cat([order, order[4 : 4 + SPAN]])[None]
with torch.no_grad():
    shown = torch.cat([easy, new[0][:1]])  # the second is one of the 1000 of the test
    _, easy_maps = two_layers(shown)
head_viewer([list(written(row)) for row in shown], [weights.numpy() for weights in easy_maps])

# %% [markdown]
# This is the whole algorithm, in two steps:
#
# 1. A **previous-token head** in layer 1 lets every place copy the letter before it. Say a P stands at place 6: then
#    place 7 knows "I follow P", so to speak.
# 2. An **induction head** in layer 2 stands on the second P and looks for a place that says "I follow P". What stands
#    there is the answer, and the head copies it.
#
# Step 2 looks for something that only exists after step 1: that is why one layer cannot do it. The names are from
# Elhage et al. (2021) and Olsson et al. (2022), who found such heads in real language models. Let us not trust our
# eyes alone, and measure over 1000 sequences how much weight each head puts on the place before.

# %%
with torch.no_grad():
    _, new_maps = two_layers(new[0])
before = [weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(dim=(0, 2)) for weights in new_maps]
for layer, of_layer in enumerate(before, start=1):
    numbered = enumerate(of_layer.tolist(), start=1)
    told = ", ".join(f"head {head} {share:.2f}" for head, share in numbered)
    print(f"weight on the place before, layer {layer}: {told}")
previous_head = int(before[0].argmax())
print(f"the previous-token head is head {previous_head + 1} of layer 1")

for layer, (weights, of_layer) in enumerate(zip(easy_maps, before, strict=True), start=1):
    figure = plots.panels(4, width=2.6, height=2.6)
    for head in range(4):
        title = f"Layer {layer}, head {head + 1}"
        plots.attention_map(weights[0, head].numpy(), ax=figure[head], title=title)
    one_back = ", ".join(f"{share:.2f}" for share in of_layer.tolist())
    # The second copy stands at 16 to 23, the first at 4 to 11. The letter at place 16 stands at
    # place 4 too, so the place after its first copy is 5.
    after_copy = weights[0, :, 16:-1].diagonal(offset=5, dim1=-2, dim2=-1).mean(dim=-1).tolist()
    told = ", ".join(f"{share:.2f}" for share in after_copy)
    plots.show(
        figure[0],
        f"Maps of the four heads of layer {layer} on the easy sequence. "
        f"Weight on the place before, over 1000 sequences: {one_back}. "
        f"In the second copy, weight on the place after the letter's first copy: {told}.",
    )

# %% [markdown]
# ### Predict first: silence one head
#
# A map is evidence, an ablation is a test. `without_heads` sets what a head found to 0 before it reaches `w_o`. The
# model gets the loss printed above with all heads. What is the loss, in nats, without the previous-token head?
# (Guessing evenly gives 2.77.)

# %%
my_prediction = None  # a loss in nats


def loss_without(off: frozenset[tuple[int, int]], batch: tuple[Tensor, Tensor] = new) -> float:
    """Return the loss without some heads, each a pair (layer, head) counted from 0."""
    silent = [[head for place, head in off if place == layer] for layer in range(2)]
    first, second = two_layers.layers
    with (
        head_analysis.without_heads(first, silent[0]),
        head_analysis.without_heads(second, silent[1]),
        torch.no_grad(),
    ):
        return sequence_loss(two_layers, batch).item()


silenced = loss_without(frozenset({(0, previous_head)}))
reveal(my_prediction, silenced)

# %%
than_guessing = "worse" if silenced > math.log(16) else "better"
print(f"without the previous-token head the model is {than_guessing} than guessing evenly")
costs = {
    f"{layer + 1}.{head + 1}": loss_without(frozenset({(layer, head)})) - loss_without(frozenset())
    for layer in range(2)
    for head in range(4)
}
plots.show(
    plots.bar_plot(
        costs,
        ylabel="rise of the loss, in nats",
        title="What each head is worth (layer.head)",
        ax=plots.panels(1, width=7.5)[0],
        digits=2,
    )
)

# %% [markdown]
# One head carries the model. (If its absence is worse than guessing, here is why: layer 2 goes on copying with full
# confidence, from wrong places.) Without any **one** of layer 2's heads, much less is lost: the others do the same
# job. Ablating one at a time tells you what is irreplaceable, not what is used. Switch several off together and see
# when it breaks (a smaller batch keeps the answer quick):

# %%
small = (new[0][:200], new[1][:200])
head_switches(layers=2, heads=4, measure=lambda off: loss_without(off, small))

# %% [markdown]
# The output of a layer is a **sum** over heads. Each head's part goes through its own rows of the output matrix, so
# joining the heads and multiplying by $W^O$ is the same as projecting each head and adding up. That is why silencing a
# head is a clean experiment: exactly one term disappears.

# %%
layer = two_layers.layers[1]
x = torch.randn(2, 6, 48, generator=torch.Generator().manual_seed(2))
with torch.no_grad():
    projections = (layer.w_q, layer.w_k, layer.w_v)
    parts = [multi_head.split_heads(project(x), layer.num_heads) for project in projections]
    contributions = head_analysis.head_contributions(layer, tensor_attention(*parts)[0])
    assert torch.allclose(contributions.sum(dim=1) + layer.w_o.bias, layer(x, x, x)[0], atol=1e-4)
print(f"{contributions.shape[1]} contributions and a bias sum to the output")

# %% [markdown] exercise="head_similarity" role="header" minutes=10 lines=4 difficulty=2
# ## Exercise: how alike are two heads?
#
# Document B warns of "head collapse": heads that learn the same pattern and waste their capacity. Measure it.
# Compare the maps of every pair of heads by the cosine of the angle between them.
#
# **Why it matters.** You will want such a number in a training log (chapter 11 raises an alarm from it). And you
# will see below why the obvious number misleads.
#
# **Contract.** `weights` is `(batch, heads, n_q, n_k)`. For each example flatten a head's map to one vector of n_q
# · n_k numbers, take the cosine of every pair of heads, and average over the batch. Return `(heads, heads)`, with 1
# on the diagonal.
#
# <details><summary>Hint 1: the idea</summary>
#
# The cosine of two vectors is their dot product divided by both lengths. If you bring all vectors to length 1
# first, a matrix product gives all cosines at once.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `flatten(2)` makes one axis of the last two. `torch.nn.functional.normalize(x, dim=-1)` brings vectors to length
# 1. `.mT` swaps the last two axes.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Flatten, normalize, multiply by its own `.mT`, and take the mean over axis 0, last of all.
#
# </details>


# %% exercise="head_similarity" role="answer"
def head_similarity(
    weights: Float[Tensor, "batch heads query key"],
) -> Float[Tensor, "heads heads"]:
    """Compare the maps of every pair of heads by their cosine, averaged over the batch."""
    # BEGIN SOLUTION
    maps = nn.functional.normalize(weights.flatten(2), dim=-1)
    return (maps @ maps.mT).mean(dim=0)
    # END SOLUTION


# %% exercise="head_similarity" role="test" points=1
from autograder import check

check(head_similarity)

# %% exercise="head_similarity" role="hidden test" points=2
from autograder import check

check(head_similarity, hidden=True)

# %% [markdown]
# ### Claim on trial: collapse is detectable
#
# Document B calls head collapse "detectable", and the list of methods that should follow is missing. Try the
# obvious one: an average similarity of 0.7 or more between the heads of a layer means collapse. Four layers take
# the test: one of heads that have learned nothing and have nothing in common (a fresh model), the same with one
# head **copied** into all others, and the two trained layers. Then a second number: first take away the map that
# looks evenly at all visible keys, because every soft map contains it.


# %%
def mean_similarity(weights: Tensor, baseline: Tensor | float = 0.0) -> float:
    """Average over pairs of different heads, after taking a baseline away from every map."""
    similarity = head_analysis.head_similarity(weights - baseline)
    different = ~torch.eye(len(similarity), dtype=torch.bool)
    return similarity[different].mean().item()


torch.manual_seed(7)
fresh = AttentionOnly(len(LETTERS), LENGTH, d_model=48, num_heads=4, num_layers=2)
with torch.no_grad():
    _, (fresh_maps, _) = fresh(new[0])
candidates = {
    "fresh": fresh_maps,
    "copied": fresh_maps[:, :1].expand(-1, 4, -1, -1),
    "layer 1": new_maps[0],
    "layer 2": new_maps[1],
}
future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
even = head_analysis.uniform_weights(future)
raw = {name: mean_similarity(weights) for name, weights in candidates.items()}
centered = {name: mean_similarity(weights, even) for name, weights in candidates.items()}
for name in candidates:
    print(f"{name:>8}: cosine {raw[name]:.2f}, after taking the even map away {centered[name]:.2f}")

ALARM = 0.7
truth = {"fresh": False, "copied": True}  # where we know the answer
print()
for number, found in (("the plain cosine", raw), ("the cosine less the even map", centered)):
    verdict(
        f"{number} tells collapsed heads from unrelated ones",
        {name: (found[name] >= ALARM) == collapsed for name, collapsed in truth.items()},
        depends_on="the layer",
    )
figure = plots.panels(2, width=4.6)
plots.bar_plot(raw, ylabel="cosine", title="Plain", ax=figure[0], digits=2)
plots.bar_plot(centered, ylabel="cosine", title="Less the even map", ax=figure[1], digits=2)
plots.show(figure[0])

# %% [markdown]
# The plain cosine raises a false alarm: by that number, heads that have learned nothing are more alike than the
# trained ones. Weights are never negative and every row sums to 1, so even unrelated soft maps point in nearly the
# same direction. Any alarm needs a **baseline**: the even map, or the same number for a fresh model.
#
# With the baseline, the trained model is clear. Layer 1's heads differ. Layer 2's heads are nearly one head: so do
# heads learn different things, as documents A, B and C say?

# %%
verdict(
    "the heads of a layer learn different things (less than 0.7 alike, after the baseline)",
    {name: centered[name] < ALARM for name in ("layer 1", "layer 2")},
    depends_on="the layer",
)

# %% [markdown]
# They may. Nothing forces them to: four budgets are an offer. Document A's "one head might focus on syntax, another
# on semantics" and document C's list of relations are things that heads **can** do. In real models Michel et al.
# (2019) removed most heads of many layers with little loss, and Voita et al. (2019) found a few specialized heads
# that carried the rest.
#
# Even equal maps need not be waste. Two heads with the same map and different values act as one head with twice the
# width for values. Only if queries, keys **and** values agree are two heads exactly one:

# %%
torch.manual_seed(0)
pair = multi_head.MultiHeadAttention(d_model=8, num_heads=2, bias=False)
single = multi_head.MultiHeadAttention(d_model=8, num_heads=2, bias=False)
x = torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(0))
with torch.no_grad():
    for linear in (pair.w_q, pair.w_k, pair.w_v):
        linear.weight[4:] = linear.weight[:4]  # head 1 becomes a copy of head 0
    single.load_state_dict(pair.state_dict())
    # Head 0 takes both heads' share of the output projection, and head 1 goes.
    single.w_o.weight[:, :4] += single.w_o.weight[:, 4:]
    with head_analysis.without_heads(single, [1]):
        assert torch.allclose(pair(x, x, x)[0], single(x, x, x)[0], atol=1e-6)
print("two equal heads are one head with the sum of their output projections")

# %% [markdown]
# The lists that are missing in document B, in short. **Detect** collapse by: similarity of maps against a baseline;
# the loss without one head, and without several; the effective rank of the heads' outputs. **Counter** it by: fewer
# heads; dropping whole heads at random in training (Zhou et al. 2020); a penalty on similar heads (Li et al. 2018);
# a lower learning rate or a longer warm-up. And check first whether the loss minds at all.

# %% [markdown] exercise="collapsed_or_not" role="header" minutes=15
# ## Written question: collapsed or not?
#
# A colleague trains a causal language model and logs the plain cosine between heads. She writes: "In layer 5 all
# heads are 0.9 alike. They have collapsed, so I will delete half of them." What do you tell her? Say which
# measurements you would ask for, in which order, and what each result would mean. Quote at least two numbers from
# this notebook. Half a page is enough.
#
# Your teacher looks for four things: why 0.9 alone says little, with a number; a baseline, and what it changes; an
# ablation, of one head and of several, and what the difference between the two tells; and what else besides maps
# could differ between heads.

# %% [markdown] exercise="collapsed_or_not" role="written" points=4
# **Model answer.** A plain cosine of 0.9 says little. Maps are non-negative and their rows sum to 1, and a causal
# mask gives all of them the same triangle of zeros. In this notebook the heads of a fresh layer, which had learned
# nothing, were already above the alarm at 0.7, nearly as much alike as real copies.
#
# So first I would ask for a baseline: the same number for a freshly initialized model, or the cosine after taking
# the even causal map away. In the notebook this brought the fresh heads down to about 0 and left the copies at 1.
# If layer 5 falls as well, there is no collapse, only soft attention. If it stays high, as our layer 2 did, the
# maps are really alike.
#
# Then I would ask for ablations on held-out text: the loss without each head, and without growing groups of them.
# Our layer 2 lost little without any single head, since the others stood in for it; that is a sign of redundancy,
# not of uselessness, and without all of them the task was lost. A head whose loss counts on its own, like our
# previous-token head, must stay, however its map looks.
#
# Last, equal maps are not equal heads. Heads with the same map can carry different values: together they are one
# head with wider values. Only if queries, keys and values agree can two heads be replaced by one without loss, by
# adding their rows of the output projection. If she does delete heads, she should do it one by one, watch the loss,
# and train on a little.
#
# **Rubric** (one point each)
#
# 1. The plain cosine is high for any soft (and causal) maps; at least one measured number.
# 2. A baseline is demanded (a fresh model, or the even map), and both outcomes are interpreted.
# 3. Ablation of one head and of several; redundancy is told apart from uselessness.
# 4. Maps are not everything: values and the output projection; or a cautious procedure for removing heads.

# %% [markdown]
# ## Optional: your own layer in the trained model
#
# The trained model has attention layers of `course_lib`. **Your** `MultiHeadAttention` has the same attributes, so
# it can take the trained weights and their place. This cell is not graded, and may fail while your answer is
# unfinished.

# %%
try:
    rebuilt = AttentionOnly(len(LETTERS), LENGTH, d_model=48, num_heads=4, num_layers=2)
    rebuilt.layers = nn.ModuleList(MultiHeadAttention(48, 4) for _ in range(2))
    rebuilt.load_state_dict(two_layers.state_dict())
    print(f"the trained model on your own layers: {share_right(rebuilt, new):.0%} right")
except NotImplementedError:
    print("MultiHeadAttention is not written yet; come back when it is.")

# %% [markdown]
# ## Summary
#
# - A head has its own budget of attention. Two look-ups at once need two heads; one look-up does not.
# - Project, **cut the last axis, swap**, attend, **swap, join**, project. A `view` that skips the swap keeps every
#   shape and mixes tokens. Reordered tokens must give reordered outputs.
# - A score is divided by √d_head. There is one softmax for each head; one for all is a single head.
# - Heads cost no parameters: they cut the same matrices into pieces.
# - Queries, keys and values can share one product. Join the matrices once, not at every call.
# - Shared key heads save memory in proportion: 8 instead of 64 keep an eighth.
# - Two layers make an induction head: one copies the token before, the next finds it. One layer can only count.
# - Maps suggest, ablations test. Similar maps need a baseline before they mean anything, and redundancy is not
#   uselessness.
#
# **Next:** stacking layers makes numbers grow and gradients fade. Chapter 3 is about the two things that keep a
# deep stack trainable.
#
# ### Sources
#
# - Vaswani et al. 2017, *Attention Is All You Need*, arXiv 1706.03762, §3.2.2.
# - Shazeer 2019, *Fast Transformer Decoding: One Write-Head is All You Need*, arXiv 1911.02150, §3: multi-query
#   attention.
# - Ainslie et al. 2023, *GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints*,
#   arXiv 2305.13245, §2.2.
# - Touvron et al. 2023, *Llama 2*, arXiv 2307.09288: grouped queries in the 70B model.
# - Elhage et al. 2021, *A Mathematical Framework for Transformer Circuits*, transformer-circuits.pub: heads as a
#   sum, induction heads. Olsson et al. 2022, *In-context Learning and Induction Heads*, arXiv 2209.11895.
# - Michel et al. 2019, *Are Sixteen Heads Really Better than One?*, arXiv 1905.10650. Voita et al. 2019, *Analyzing
#   Multi-Head Self-Attention*, arXiv 1905.09418.
# - Li et al. 2018, *Multi-Head Attention with Disagreement Regularization*, arXiv 1810.10183. Zhou et al. 2020,
#   *Scheduled DropHead*, arXiv 2004.13342.
# - Raffel et al. 2020, *Exploring the Limits of Transfer Learning*, arXiv 1910.10683, §3.7: the sizes of T5.
# - Radford et al. 2019, *Language Models are Unsupervised Multitask Learners*: the sizes of GPT-2.
