# ---
# title: "8 · Efficient attention"
# ---

# %% [markdown] role="opening" minutes=55
# # 8 · Efficient attention
#
# Plain attention compares every token with every other one and writes all the results down. There are two ways out.
# One keeps the question and changes the **order of the work**, so that the table is never written: windows computed
# block by block, tiles, caches. The other changes the **question** into one that is cheaper: fewer keys, mixed keys,
# random features, hashing. In this chapter you build both kinds, and measure what each of them saves and what it
# costs.
#
# **At the end you can**
#
# - write the sparse patterns of Longformer, the Sparse Transformer and BigBird as masks, and say how many layers it
#   takes until everything has reached everything;
# - compute windowed attention and FlashAttention without a table of all pairs, exactly;
# - explain why an algorithm with more FLOPs can be faster, in bytes moved;
# - say what linear attention, Performer, Linformer and Reformer really compute, how far that is from softmax
#   attention, and which task shows it;
# - write a KV cache that a decoder can trust;
# - find the faults in a published block-sparse attention.
#
# **You need** chapters 1, 6 and 7: attention, masks and counting. Everything is PyTorch.
#
# **The documents.** The chapter mirrors, and tests, document B's "Memory-Efficient Attention Mechanisms", "Sparse
# Attention Patterns" and its section 4.1, "Sparse and Efficient Attention Mechanisms", with its PyTorch class, and
# the three solutions for long sequences at the end of document A's comparison with RNNs. Some of the lists in B were
# lost on the way to us; what must have stood there is in this chapter.
#
# **A rule with teeth.** Four exercises promise that no table of all pairs is made. Their checks count every tensor
# that your code allocates and refuse one with n² numbers, however short the sequence is. Nothing is graded by the
# clock.

# %%
import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from autograder import check
from course_lib import flop_counter, kv_cache, memory, pattern_plot, plots, results, timing
from course_lib.attention_forms import forms
from course_lib.dependence import dependence
from course_lib.efficient import (
    block_sparse,
    clusters,
    flash,
    linear,
    linformer,
    local,
    lsh,
    performer,
    sparse,
    summaries,
    traffic,
)
from course_lib.efficient.race import race
from course_lib.models import key_value_recall as recall
from course_lib.settings import quick, steps
from course_lib.tensor_attention import tensor_attention
from course_lib.training.loop import forever, train
from course_lib.trial import reveal, verdict
from course_lib.widgets.tiles import tiles_explorer

torch.set_num_threads(1)  # so that your numbers compare with those of a machine with more cores


def softmax_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend the plain way, through the whole table, and return the output alone."""
    return tensor_attention(query, key, value)[0]


def drawn(n: int, d_head: int = 64, seed: int = 0, scale: float = 1.0) -> tuple[Tensor, ...]:
    """Draw queries, keys and values of one head."""
    generator = torch.Generator().manual_seed(seed)
    shape = (1, 1, n, d_head)
    return tuple(scale * torch.randn(shape, generator=generator) for _ in range(3))


# %% [markdown]
# ## What is to be saved
#
# First the bill that chapter 7 explained. One head of width 64 in float32; the two largest items are the table and
# its softmax. Counting needs shapes and no numbers, so the tensors are moved to the **meta** device, which holds none.

# %%
print(f"{'n':>6}{'one table':>14}{'most bytes alive':>20}{'FLOPs':>18}")
for n in (512, 1024, 2048):
    tensors = [one.to("meta") for one in drawn(n)]
    bill = memory.peak_bytes(softmax_attention, *tensors)
    work = flop_counter.counted_flops(softmax_attention, *tensors)
    table, alive = memory.bytes_text(4 * n * n), memory.bytes_text(bill.bytes)
    print(f"{n:>6}{table:>14}{alive:>20}{work:>18,}")

# %% [markdown]
# Twice the tokens, four times everything. Document B calls this "prohibitive", for whole documents or for large images
# read pixel by pixel, and lists remedies, and document A sorts some of them into three drawers. Here is the same
# list, sorted by **what is computed**. Keep it at hand; at the end of the chapter you will have measured each line.
#
# | | looks at | result |
# |---|---|---|
# | FlashAttention, SDPA | every pair, in tiles | exact |
# | Longformer, Sparse Transformer, BigBird, block-sparse | some pairs, chosen beforehand | exact on those pairs |
# | Reformer | pairs that share a bucket | exact on those pairs |
# | Routing Transformer | pairs that share a learned cluster | exact in a cluster; then a mean over clusters |
# | Compressive Transformer | near tokens, and means of far ones | another function |
# | Linformer | mixtures of keys | another function |
# | linear attention | every pair, with another weight | another function |
# | Performer | every pair, with a random weight | an estimate of softmax |
#
# Document A names Performer and BigBird together as approximations with a lower cost. They have little in common:
# BigBird leaves pairs out, and Performer leaves none out but weighs them by estimates. Of Longformer it says that
# attention goes "only to nearby positions": that is half of it. Some of its tokens are **global**, and they make the
# difference, as you will see in a moment.
#
# ## Part 1: leave pairs out
#
# Text is local: much of what a word needs stands near it. So let each token look at a **window**.

# %% [markdown] exercise="sliding_window_mask" role="header" minutes=8 lines=4 difficulty=2
# ## Exercise: a sliding window
#
# Write the mask of a window, causal or to both sides.
#
# **Why it matters.** Mistral 7B, Gemma and many others run windows in all or half of their layers. What "a window of
# 4096" counts is a question that has put wrong masks into released libraries: with or without the token itself?
#
# **Contract.** A boolean tensor `(length, length)`, rows are queries, columns are keys; **`True` hides**. With
# `causal=True` a token sees itself and the `window - 1` tokens before it: `window` keys in all. With `causal=False`
# it sees every key with |i − j| < window. `window` is at least 1 and may exceed the length.
#
# <details><summary>Hint 1: the idea</summary>
#
# Everything depends on the distance i − j alone. For which distances is a key visible?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `torch.arange(length)[:, None] - torch.arange(length)` holds i − j for every pair.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Two reasons to hide: the distance has a size of at least `window`, or (causal) it is negative. Either one is enough.
#
# </details>


# %% exercise="sliding_window_mask" role="answer"
def sliding_window_mask(
    length: int,
    window: int,
    causal: bool = True,
) -> Bool[Tensor, "token token"]:
    """Hide every key that lies outside a token's window."""
    # BEGIN SOLUTION
    places = torch.arange(length)
    distance = places[:, None] - places
    too_far = distance.abs() >= window
    return too_far | (distance < 0) if causal else too_far
    # END SOLUTION


# %% exercise="sliding_window_mask" role="test" points=1
from autograder import check

check(sliding_window_mask)

# %% exercise="sliding_window_mask" role="hidden test" points=1
from autograder import check

check(sliding_window_mask, hidden=True)

# %% [markdown]
# > **Paper and practice: counting a window.** Longformer's window of w is split into w/2 on each side. Hugging Face's
# > `sliding_window` counts the token itself; other code lets a token see `window` tokens **besides** itself. Load the
# > weights of one into the other, and every layer sees one key too many or too few. Nothing crashes, and short tests
# > pass, since a window that covers the sequence is the same in both.

# %% [markdown] exercise="strided_mask" role="header" minutes=8 lines=4 difficulty=2
# ## Exercise: a stride
#
# The Sparse Transformer adds far keys: every `stride`-th one.
#
# **Why it matters.** With a stride near √n each token sees about 2√n keys, and yet any token can reach any earlier
# one in two steps. GPT-3's layers alternate between full and sparse patterns of this family.
#
# **Contract.** A boolean tensor `(length, length)`; `True` hides. Key j is visible to query i if j ≤ i **and** either
# i − j < stride, or i − j is a multiple of stride.
#
# <details><summary>Hint 1: the idea</summary>
#
# Two sets of keys: near ones and far ones. A key in either set is visible, as long as it is not in the future.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `%` on a tensor of distances. Make the tables of the two sets first, and write down what is **visible**.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Visible: the distance is at least 0 and (below the stride or divisible by it). Turn it round at the end.
#
# </details>


# %% exercise="strided_mask" role="answer"
def strided_mask(length: int, stride: int) -> Bool[Tensor, "token token"]:
    """Hide what is neither among the last tokens nor a multiple of the stride away."""
    # BEGIN SOLUTION
    places = torch.arange(length)
    gap = places[:, None] - places
    visible = (gap >= 0) & ((gap < stride) | (gap % stride == 0))
    return ~visible
    # END SOLUTION


# %% exercise="strided_mask" role="test" points=1
from autograder import check

check(strided_mask)

# %% exercise="strided_mask" role="hidden test" points=1
from autograder import check

check(strided_mask, hidden=True)

# %% [markdown] exercise="bigbird_mask" role="header" minutes=12 lines=9 difficulty=3
# ## Exercise: BigBird
#
# A window, a few **global** tokens that see all and are seen by all (Longformer has these too), and some random keys
# for everyone else.
#
# **Why it matters.** Random links make any graph small: after a few steps everybody is reached. BigBird's authors
# show that such a pattern can still compute whatever full attention can, with a number of pairs that grows like n.
#
# **Contract.** A boolean tensor `(length, length)`; `True` hides. Visible are: every pair with |i − j| < window; all
# of the first `num_global` rows and columns; and in **every other row** exactly `num_random` further keys, drawn
# without replacement among those still hidden in that row (all of them if fewer are left). Draw from `generator`
# alone, row by row, so that equal generators give equal masks.
#
# <details><summary>Hint 1: the idea</summary>
#
# Make the fixed part first. Then go through the remaining rows; each one knows which of its keys are still hidden.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `row.nonzero()[:, 0]` lists the hidden places of a row. `torch.randperm(k, generator=generator)` gives the numbers 0
# to k − 1 in a random order; the start of it is a draw without replacement.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# For each row from `num_global` on: list its hidden places, permute the list, take the first `num_random`, and set
# those cells to False. A slice that asks for more than there is gives what there is.
#
# </details>


# %% exercise="bigbird_mask" role="answer"
def bigbird_mask(
    length: int, window: int, num_global: int, num_random: int, generator: torch.Generator
) -> Bool[Tensor, "token token"]:
    """Hide all but a window, global tokens and some random keys for every other token."""
    # BEGIN SOLUTION
    places = torch.arange(length)
    mask = (places[:, None] - places).abs() >= window
    mask[:num_global] = False
    mask[:, :num_global] = False
    for row in mask[num_global:]:
        free = row.nonzero()[:, 0]
        order = torch.randperm(len(free), generator=generator)
        row[free[order[:num_random]]] = False
    return mask
    # END SOLUTION


# %% exercise="bigbird_mask" role="test" points=1
from autograder import check

check(bigbird_mask)

# %% exercise="bigbird_mask" role="hidden test" points=2
from autograder import check

check(bigbird_mask, hidden=True)

# %% [markdown]
# ## How far does information travel?
#
# One layer shows a token its neighbors. In the second layer those neighbors have already seen theirs. What a token
# can know after several layers is its **receptive field**.

# %% [markdown] exercise="receptive_field" role="header" minutes=10 lines=5 difficulty=2
# ## Exercise: the receptive field
#
# Tell which outputs depend on which inputs after some layers that all have the same mask.
#
# **Why it matters.** A model with a window of 4096 and 32 layers can, in principle, hand something on over 130,000
# tokens. "In principle" is this table; it is the first thing to compute when you choose a pattern, and it needs no
# weights at all.
#
# **Contract.** `mask` is `(n, n)`, `True` hides. Return a boolean `(n, n)` table: `[i, j]` is True when output i of
# the last layer depends on input j. Attention alone, **without a residual path**: a token that does not see itself
# does not keep itself. The number of paths can be astronomically large; the answer is still yes or no.
#
# <details><summary>Hint 1: the idea</summary>
#
# Output i depends on j if there is some k that i sees, and that depends on j one layer below.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# "Some k such that … and …" is a product of two tables, and then a question: is the sum above 0? Products need
# numbers: `.float()`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Start with the identity: before any layer, each token depends on itself. In every layer multiply the visible table
# by what you have, and ask at once whether it is above 0, so that nothing grows.
#
# </details>


# %% exercise="receptive_field" role="answer"
def receptive_field(mask: Bool[Tensor, "token token"], layers: int) -> Bool[Tensor, "token token"]:
    """Tell which outputs depend on which inputs after a number of layers."""
    # BEGIN SOLUTION
    visible = (~mask).float()
    field = torch.eye(len(mask))
    for _ in range(layers):
        field = (visible @ field > 0).float()
    return field.bool()
    # END SOLUTION


# %% exercise="receptive_field" role="test" points=1
from autograder import check

check(receptive_field)

# %% exercise="receptive_field" role="hidden test" points=2
from autograder import check

check(receptive_field, hidden=True)

# %% [markdown]
# ### A gallery of patterns
#
# 64 tokens; each pattern after 1, 2 and 4 layers. Dark: the output in that row depends on the input in that column.
# The number below a name is how many keys a query sees on average, which is what a kernel has to pay for.

# %%
N = 64
block_layout = torch.eye(8) == 0  # block-diagonal: what document B's class computes
gallery = {
    "window 5": sparse.sliding_window_mask(N, 5),
    "stride 8": sparse.strided_mask(N, 8),
    "Longformer": sparse.longformer_mask(N, 3, [0, 32]),
    "BigBird": sparse.bigbird_mask(N, 3, 1, 3, torch.Generator().manual_seed(0)),
    "block-diagonal": block_sparse.expand_block_mask(block_layout, 8),
}
LAYERS = (1, 2, 4)
plots.show(*pattern_plot.pattern_gallery(gallery, LAYERS))

# %% [markdown]
# The window grows like a wedge, by the same amount in each layer. Longformer and BigBird are full after two, and the
# stride has reached the whole past (it is causal, so about half of the table stays empty). The block-diagonal pattern
# **never changes**: information does not cross the border of a block, however many layers there are. Remember that
# one.
#
# ### Predict first: how many layers?
#
# 256 tokens, and a window that looks 4 tokens to each side (|i − j| < 5). How many layers until the last token has
# felt the first one?

# %%
my_prediction = None  # a number of layers

reveal(my_prediction, sparse.layers_to_full(sparse.sliding_window_mask(256, 5, causal=False)))

# %% [markdown]
# ### Claim on trial: the depth that sparse patterns need
#
# Document B gives a formula. With $l$ the "maximum path length between any two tokens",
#
# $$\text{Depth required} = \Omega\left(\frac{\log N}{\log l}\right)$$
#
# and it concludes that "models like the Sparse Transformer require deeper architectures". A path of length l takes l
# layers to walk. So two things can be measured: the longest path of a pattern, and whether patterns with longer paths
# get along with **less** depth, as the formula says. The rule was fixed beforehand: from one window to the next wider
# one, paths get shorter; the formula then asks for more layers, so the claim holds if more are needed.

# %%
LENGTH = 256
print(f"{LENGTH} tokens; 'formula' is log N / log l, where l is the longest path, in layers")
walked = {}
for reach in (1, 2, 4, 8, 16, 32):
    window_mask = sparse.sliding_window_mask(LENGTH, reach + 1, causal=False)
    walked[reach] = sparse.layers_to_full(window_mask)
    by_formula = math.log(LENGTH) / math.log(walked[reach])
    print(f"{reach:>3} tokens to each side: {walked[reach]:>4} layers, formula {by_formula:.1f}")

follows = {}
for narrow, wide in zip(list(walked)[:-1], list(walked)[1:], strict=True):
    follows[f"{narrow} to {wide} tokens"] = walked[wide] > walked[narrow]
print()
verdict("shorter paths need more layers, as log N / log l says", follows, depends_on="the window")

deeper = {}
for n in (64, 144, 256):
    past = torch.ones(n, n).tril().bool()  # a causal pattern can only reach the past
    needed = sparse.layers_to_full(sparse.strided_mask(n, math.isqrt(n)), past)
    print(f"n = {n}: the strided pattern reaches the whole past in {needed} layers")
    deeper[f"n = {n}"] = needed > 2
print()
verdict("the Sparse Transformer's pattern needs more than two layers", deeper, depends_on="n")

# %% [markdown]
# The formula has its l upside down: it asks for less depth the longer the paths are. What does hold: a token that
# sees w keys per layer knows at most $w^L$ tokens after L layers, so at least $\log N / \log w$ layers are needed,
# where w is the number of keys and not the path length. A plain window is far from that bound, for most of its paths
# lead to the same places: it needs ⌈(N − 1) / reach⌉ layers. The strided pattern was designed to do it in two. (The
# document calls on a universal approximation theorem. There is one for sparse patterns: Yun et al. 2020 show that O(n)
# pairs suffice, if every token can reach every other one within a few layers.)
# (Reaching is not understanding: how much can be squeezed through a chain of tokens is another question. The Sparse
# Transformers of the paper are deep, but not because their pattern would have to be.)
#
# ## A mask saves nothing

# %% [markdown]
# Document B: "Fixed sparse patterns … reduce the quadratic complexity", followed by a formula that puts −∞ where a
# pair is hidden. Does that formula save anything?
#
# ### Claim on trial: sparse patterns reduce the cost
#
# A causal window of 64 over 1024 tokens, computed in three ways; FLOPs and bytes are counted. "Reduce" means: less
# than half of what plain attention costs.

# %%
tensors, window = drawn(1024), 64
hidden = sparse.sliding_window_mask(1024, window)
layout = block_sparse.block_cover(hidden, window)
ways = {
    "plain, nothing hidden": softmax_attention,
    "−∞ where hidden": lambda q, k, v: tensor_attention(q, k, v, hidden)[0],
    "hidden blocks skipped": lambda *qkv: block_sparse.block_sparse_attention(*qkv, layout, 64),
    "window cut out": lambda q, k, v: local.local_attention(q, k, v, window),
}
spent = {}
for name, way in ways.items():
    work = flop_counter.counted_flops(way, *tensors)
    spent[name] = work, memory.peak_bytes(way, *tensors).bytes
    print(f"{name:>22}: {work:>12,} FLOPs, {memory.bytes_text(spent[name][1]):>9} alive at most")

plain_work, plain_bytes = spent.pop("plain, nothing hidden")
less = {}
for name, (work, most) in spent.items():
    less[f"FLOPs ({name})"] = work < plain_work / 2
    less[f"bytes ({name})"] = most < plain_bytes / 2
print()
verdict("sparse patterns reduce the cost", less, depends_on="whether hidden pairs are computed")

# %% [markdown]
# A mask is a **statement** of what counts, and costs as much as what it hides, or more. The saving comes from code
# that does not compute the hidden part at all. That is your next exercise.

# %% [markdown] exercise="local_attention" role="header" minutes=20 lines=12 difficulty=4
# ## Exercise: local attention
#
# Compute causal windowed attention without a table of all pairs.
#
# **Why it matters.** This is what a kernel does inside. With 100,000 tokens and a window of 1000 the table would take
# 37 GiB per head in float32; you need about a fiftieth of that, even if you keep all scores.
#
# **Contract.** `query` and `key` are `(..., n, d_k)`, `value` is `(..., n, d_v)`. Return the **output alone**, equal
# to attention under `sliding_window_mask(n, window)`. The length need not be a multiple of the window, and the window
# may be longer than the sequence. While the check counts, no tensor with n² numbers may be allocated, **no mask
# either**. Gradients flow through.
#
# <details><summary>Hint 1: the idea</summary>
#
# Cut the queries into blocks, for instance as long as the window. Which keys can the queries of one block see at
# most? The first of them reaches farthest back.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# A block from `start` to `stop` needs the keys from `max(0, start - window + 1)` to `stop`. Slices of the axis before
# the last: `key[..., first:stop, :]`. Inside the block some pairs are still hidden; a small mask over the real places
# of queries and keys tells which.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# In a loop over blocks: slice, score, hide by i − j (`torch.arange(start, stop)[:, None] - torch.arange(first,
# stop)`), softmax, multiply by the sliced values, append. `torch.cat(..., dim=-2)` at the end. A slice may go past
# the end.
#
# </details>


# %% exercise="local_attention" role="answer"
def local_attention(
    query: Float[Tensor, "... token d_k"],
    key: Float[Tensor, "... token d_k"],
    value: Float[Tensor, "... token d_v"],
    window: int,
) -> Float[Tensor, "... token d_v"]:
    """Attend to the token itself and the window - 1 before it, block by block."""
    # BEGIN SOLUTION
    n, blocks = query.shape[-2], []
    for start in range(0, n, window):
        stop = min(start + window, n)
        first = max(0, start - window + 1)
        gap = torch.arange(start, stop)[:, None] - torch.arange(first, stop)
        table = query[..., start:stop, :] @ key[..., first:stop, :].mT
        table = table / math.sqrt(query.shape[-1])
        table = table.masked_fill((gap < 0) | (gap >= window), -math.inf)
        blocks.append(table.softmax(-1) @ value[..., first:stop, :])
    return torch.cat(blocks, dim=-2)
    # END SOLUTION


# %% exercise="local_attention" role="test" points=2
from autograder import check

check(local_attention)

# %% exercise="local_attention" role="hidden test" points=3
from autograder import check

check(local_attention, hidden=True)

# %% [markdown]
# > **Paper and practice: blocks and rules.** Longformer shipped a hand-written kernel for its band. Today one writes
# > a **rule** about places (chapter 6), and a compiler makes the kernel: PyTorch's FlexAttention first finds the
# > blocks of 128 × 128 pairs in which the rule hides everything, skips those, and applies the rule inside the rest.
# > So what you pay for is the number of blocks that are touched, and not the number of pairs. BigBird draws random
# > **blocks** for this reason, and document B's "block size (typically 32-128 tokens)" is about the same thing.
# >
# > **Document B's missing list: what libraries do.** Attention in tiles (FlashAttention, the memory-efficient kernel of
# > SDPA); block-sparse kernels, written in Triton or made from a rule by FlexAttention; queries in chunks; caches in
# > pages. All but the last are in this chapter as plain PyTorch; the last is described beside the KV cache.

# %% [markdown]
# ## Part 2: keep all pairs, and never write them down
#
# A softmax seems to need its whole row: the maximum, the sum. But rows can be joined. Suppose one half of the keys
# has been attended to, and the other half too, each with a softmax of its own. What has to be remembered of each half
# so that the two results can be merged into the right one?

# %% [markdown] exercise="merge_partial_attention" role="header" minutes=12 lines=6 difficulty=3
# ## Exercise: merge two halves
#
# Join attention over two sets of keys into attention over both.
#
# **Why it matters.** This one step is the heart of FlashAttention, of ring attention over many machines, and of
# decoding with a cache that is split among several devices.
#
# **Contract.** `out_a` `(..., n, d_v)` is the attention output over one set of keys and `lse_a` `(..., n)` its
# **log-sum-exp**: the logarithm of the sum of exp(score) over that set; the same for b. Return `(out, lse)` over
# both. Log-sum-exps may be ±900, where a plain exp overflows or vanishes. A query that saw nothing in a set has lse =
# −∞ there (and some finite output, which must not count); if it saw nothing in either, the output is 0 and lse −∞.
#
# <details><summary>Hint 1: the idea</summary>
#
# A half's output is its weighted sum divided by exp(lse). Undo both divisions, add, divide by the new sum. Which
# share of the merged output does half a have?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `torch.logaddexp` adds two numbers that are given by their logarithms, safely. The share of a is the exponential of
# a difference of two log-sum-exps.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Share of a: exp(lse_a − lse); likewise b; they sum to 1. If lse is −∞ the difference is NaN: put 0 in its place
# **before** you subtract, so that both shares become 0. The shares need a last axis of one to meet the outputs.
#
# </details>


# %% exercise="merge_partial_attention" role="answer"
def merge_partial_attention(
    out_a: Float[Tensor, "... token d_v"],
    lse_a: Float[Tensor, "... token"],
    out_b: Float[Tensor, "... token d_v"],
    lse_b: Float[Tensor, "... token"],
) -> tuple[Float[Tensor, "... token d_v"], Float[Tensor, "... token"]]:
    """Join attention over two sets of keys; lse is the log of the sum of exp(score) over a set."""
    # BEGIN SOLUTION
    lse = torch.logaddexp(lse_a, lse_b)
    safe = lse.masked_fill(lse == -math.inf, 0)
    share_a, share_b = (lse_a - safe).exp(), (lse_b - safe).exp()
    return share_a[..., None] * out_a + share_b[..., None] * out_b, lse
    # END SOLUTION


# %% exercise="merge_partial_attention" role="test" points=1
from autograder import check

check(merge_partial_attention)

# %% exercise="merge_partial_attention" role="hidden test" points=2
from autograder import check

check(merge_partial_attention, hidden=True)

# %% [markdown]
# ### Watch it work
#
# The same idea, tile by tile. Each query keeps three things: the **largest score** so far, the **sum** of exp(score −
# largest), and the output so far. When a tile brings a larger score, what is old has been measured against the wrong
# maximum, and shrinks by exp(old − new).
#
# Press play, or move the slider with the arrow keys. Things to try:
#
# 1. Find a tile at which the maximum rises, and one at which it stays. By what are the old sums multiplied?
# 2. Change the size of the tiles and go to a query's last tile. Does the output depend on the size?
# 3. Switch the shrinking off. For which queries is the result still right, and why for those?

# %%
tiles_explorer()

# %% [markdown] exercise="flash_attention" role="header" minutes=30 lines=18 difficulty=5
# ## Exercise: FlashAttention
#
# Compute exact attention in tiles.
#
# **Why it matters.** This algorithm is one reason why contexts grew from 2,000 tokens to 100,000 and more. Many large
# models of today are trained with a descendant of it. On a GPU the tile lives in the small fast memory; here you
# write the same loops in PyTorch.
#
# **Contract.** `query` `(..., n_q, d_k)`, `key` `(..., n_k, d_k)`, `value` `(..., n_k, d_v)`. Work in tiles of at
# most `block_size` queries by `block_size` keys; the last tiles may be ragged. Return the output alone. With
# `causal=True` a query sees no later key, and with n_q ≠ n_k the **last query sees every key**; a query that sees
# nothing gives 0. Scores may be in the thousands. While the check counts, no tensor with n_q · n_k numbers may be
# allocated. `F.scaled_dot_product_attention` may not be called.
#
# <details><summary>Hint 1: the idea</summary>
#
# Two loops: over blocks of queries, and inside over blocks of keys. Start each block of queries with the maximum −∞,
# the sum 0, the weighted sum 0. Divide once, at the end.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `torch.maximum(old, scores.amax(-1))` is the new maximum. Old sums are multiplied by `exp(old - new)`. Queries that
# have seen nothing so far have the maximum −∞, and −∞ − (−∞) is NaN: subtract 0 there instead.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Per tile: scores; hide where `key place > query place + n_k - n_q`; new maximum; factor for the old; weights =
# exp(scores − new maximum); sum = factor · sum + weights' sum; output = factor · output + weights @ values. At the
# end divide by the sum, or by 1 where it is 0.
#
# </details>


# %% exercise="flash_attention" role="answer"
def flash_attention(
    query: Float[Tensor, "... query d_k"],
    key: Float[Tensor, "... key d_k"],
    value: Float[Tensor, "... key d_v"],
    block_size: int,
    causal: bool = False,
) -> Float[Tensor, "... query d_v"]:
    """Attend exactly, one tile of queries and keys at a time."""
    # BEGIN SOLUTION
    n_q, n_k, blocks = query.shape[-2], key.shape[-2], []
    for top in range(0, n_q, block_size):
        q = query[..., top : top + block_size, :]
        places = torch.arange(top, top + q.shape[-2])[:, None] + n_k - n_q
        peak = q.new_full(q.shape[:-1], -math.inf)
        total, mixed = torch.zeros_like(peak), 0
        for left in range(0, n_k, block_size):
            k, v = (one[..., left : left + block_size, :] for one in (key, value))
            tile = q @ k.mT / math.sqrt(q.shape[-1])
            if causal:
                tile = tile.masked_fill(torch.arange(left, left + k.shape[-2]) > places, -math.inf)
            higher = torch.maximum(peak, tile.amax(-1))
            base = higher.masked_fill(higher == -math.inf, 0)
            factor, shares = (peak - base).exp(), (tile - base[..., None]).exp()
            total = factor * total + shares.sum(-1)
            mixed = factor[..., None] * mixed + shares @ v
            peak = higher
        blocks.append(mixed / total.masked_fill(total == 0, 1)[..., None])
    return torch.cat(blocks, dim=-2)
    # END SOLUTION


# %% exercise="flash_attention" role="test" points=2
from autograder import check

check(flash_attention)

# %% exercise="flash_attention" role="hidden test" points=4
from autograder import check

check(flash_attention, hidden=True)

# %% [markdown]
# > **Paper and practice: when to divide.** The first FlashAttention keeps the output normalized after every tile; the
# > second divides once at the end, which saves a little work that is not a matrix product, and exchanges the loops.
# > Kernels also return the log-sum-exp: the backward pass needs it, since it computes the weights again instead of
# > keeping them. Our `flash.flash_attention` has that backward pass too, and
# > `merge_partial_attention` can use its log-sum-exps.
#
# ### Claim on trial: "numerically identical"
#
# Document B says that FlashAttention is "numerically identical to standard attention". Two readings: the same bits,
# or the same up to rounding. The judge is the plain form in float64; "up to rounding" means that the tiles are no
# further from it than twice as far as the plain form in float32 is.

# %%
same = {}
for n in (100, 400):
    tensors = drawn(n, seed=n)
    judge = softmax_attention(*(one.double() for one in tensors))
    standard, tiled = softmax_attention(*tensors), flash.flash_attention(*tensors, 32)
    off_standard = (standard - judge).abs().max().item()
    off_tiled = (tiled - judge).abs().max().item()
    print(f"n = {n}: off by {off_standard:.1e} plain, {off_tiled:.1e} in tiles;", end=" ")
    print(f"{(standard != tiled).double().mean():.0%} of the numbers differ in some bit")
    same[f"bit by bit at n = {n}"] = torch.equal(standard, tiled)
    same[f"up to rounding at n = {n}"] = off_tiled <= 2 * off_standard
print()
verdict("tiles are numerically identical to plain attention", same, depends_on="the reading")

# %% [markdown]
# **Exact** is the better word: no pair is left out and nothing is estimated. **Identical** it is not, since additions
# happen in another order. Whoever tests for equal bits will find a bug that is none.
#
# ### Predict first: the FLOPs of FlashAttention
#
# Plain attention of one head on 1024 tokens of width 64 takes 268,435,456 FLOPs for its two products. How many times as
# many does the tiled form take? (1 means as many, 0.5 half as many; the counter looks inside every tile.)

# %%
my_prediction = None  # times the FLOPs of plain attention

tensors = drawn(1024)
tiled_flops = flop_counter.counted_flops(flash.flash_attention, *tensors, 128)
reveal(my_prediction, tiled_flops / 268_435_456)

# %% [markdown]
# ### Claim on trial: document B's numbers for FlashAttention
#
# Document B explains FlashAttention by this formula, with M the size of the fast memory on the chip (SRAM):
#
# $$\text{FLOPs}_\text{FlashAttention} \approx \frac{N^2}{M} \cdot d$$
#
# First the FLOPs. Rule: the formula holds where it is within a factor of 2 of what is counted.

# %%
plain_flops = flop_counter.counted_flops(softmax_attention, *tensors)
print(f"counted, plain: {plain_flops:>12,}   counted, in tiles: {tiled_flops:>12,}")
close = {}
for fast in (4_096, 16_384, 65_536):
    said = traffic.document_flops(1024, 64, fast)
    print(f"M = {fast:>6,}: document B says {said:>9,.0f} FLOPs")
    close[f"M = {fast:,}"] = tiled_flops / 2 <= said <= 2 * tiled_flops
print()
verdict("FlashAttention takes N² d / M FLOPs", close, depends_on="M")

# %% [markdown]
# No FLOP disappears: every pair is still multiplied. (Going backward, there are even more, for the weights are
# computed again.) What does depend on the fast memory is the **traffic**: the numbers that have to be fetched from
# the large slow memory and written back. The paper's theorem is about that: plain attention moves about $N d + N^2$
# numbers, tiles move about $N^2 d^2 / M$. So the document has the paper's traffic, short of a factor d, under the
# name of FLOPs. Here both are counted along the loops of the algorithm:

# %%
SIZES = [2**power for power in range(10, 19, 2)]
moved = [traffic.tiled_traffic(1024, 64, size) for size in SIZES]
plots.show(
    plots.line_plot(
        SIZES,
        {
            "plain": [traffic.standard_traffic(1024, 64)] * len(SIZES),
            "in tiles": moved,
            "document B": [traffic.document_flops(1024, 64, size) for size in SIZES],
        },
        xlabel="numbers that fit into the fast memory, M",
        ylabel="numbers moved",
        title="1024 tokens of width 64: traffic decides",
        log_x=True,
        log_y=True,
    )
)

pays = {}
for fast in (4_096, 16_384, 65_536):
    ratio = traffic.standard_traffic(1024, 64) / traffic.tiled_traffic(1024, 64, fast)
    pays[f"M = {fast:,}"] = ratio > 1
    print(f"M = {fast:>6,}: plain attention moves {ratio:.2f} times as much as tiles")
print()
verdict("tiles move less than plain attention", pays, depends_on="the fast memory")

# %% [markdown]
# With a fast memory of only d² = 4,096 numbers, tiles **lose**: the same queries are fetched again and again. A
# streaming multiprocessor of a current GPU has room for about 50,000 float32 numbers, and there it pays.
#
# The last number, "a 2-4× speedup on modern GPUs", is about seconds on a GPU. If somebody has run the GPU script of
# this project, the next cell shows what came out, and judges. Else it shows what the same script measured on a CPU,
# and gives no verdict: it cannot be decided on a CPU.

# %%
on_gpu = results.path_of("attention_gpu").is_file()
if not on_gpu:
    print("There are no results of a GPU here: `make bench-gpu` on a machine with one makes them.")
stored = results.load("attention_gpu" if on_gpu else "attention_cpu")
print(f"{stored['device']}, causal, forward pass, {stored['settings']['heads']} heads:")
rows = {
    (row["form"], row["length"], row["dtype"]): row["seconds"]
    for row in stored["rows"]
    if row["pass"] == "forward" and row["seconds"]
}
speedup = {}
for form, n, dtype in rows:
    if form == "SDPA flash attention" and ("naive", n, dtype) in rows:
        ratio = rows["naive", n, dtype] / rows[form, n, dtype]
        speedup[f"n = {n}, {dtype}"] = 2 <= ratio <= 4
        print(f"   n = {n:>6}, {dtype}: FlashAttention is {ratio:.1f} times as fast as naive")
if on_gpu and speedup:
    verdict("FlashAttention is 2 to 4 times as fast", speedup, depends_on="the setting")

# %% [markdown]
# ## Part 3: change the question
#
# Softmax attention averages the values with weights exp(q · k). If that exponential could be written as a product
# φ(q) · φ(k) of **features**, the sums could be taken in another order:
#
# $$\sum_j \big(\varphi(q) \cdot \varphi(k_j)\big)\, v_j = \varphi(q) \cdot \Big(\sum_j \varphi(k_j)\, v_j^\top\Big)$$
#
# On the right, keys and values meet **before** any query comes. That sum is a small matrix, the same for all queries;
# nothing in it is n × n.

# %% [markdown] exercise="linear_attention" role="header" minutes=20 lines=14 difficulty=4
# ## Exercise: linear attention
#
# Compute attention with weights φ(q) · φ(k), divided by their sum, where φ(x) = elu(x) + 1.
#
# **Why it matters.** The causal form is a recurrent network in disguise: one state that is updated by each token.
# Mamba, RWKV, RetNet and DeltaNet are relatives of what you write here, and they decode with a memory of constant
# size.
#
# **Contract.** `query` `(..., n_q, d_k)`, `key` `(..., n_k, d_k)`, `value` `(..., n_k, d_v)`; the scores are **not**
# divided by √d_k. Return the output alone. With `causal=True` a query sees no later key, by **running sums**; with
# n_q ≠ n_k the last query sees every key. While the check counts, no tensor with n² numbers may be allocated.
#
# <details><summary>Hint 1: the idea</summary>
#
# You need two sums over the keys: of φ(k) vᵀ, and of φ(k) alone for the denominator. Without `causal` they are the
# same for every query.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `phi(key).mT @ value` is the first sum, in one product. For the causal form go through the tokens: add the token's
# own outer product to the state, then let its query read.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# In the loop over keys j: `state += φ(k_j)ᵀ v_j` (an outer product, made from a column and a row), `norm += φ(k_j)`.
# The query that belongs to key j has the number j − (n_k − n_q); if there is one, it reads φ(q) @ state / (φ(q) ·
# norm).
#
# </details>


# %% exercise="linear_attention" role="answer"
def linear_attention(
    query: Float[Tensor, "... query d_k"],
    key: Float[Tensor, "... key d_k"],
    value: Float[Tensor, "... key d_v"],
    causal: bool = False,
) -> Float[Tensor, "... query d_v"]:
    """Average the values with weights φ(q) · φ(k), φ = elu + 1, in linear time."""
    # BEGIN SOLUTION
    phi_q, phi_k = F.elu(query) + 1, F.elu(key) + 1
    if not causal:
        summary, norm = phi_k.mT @ value, phi_k.sum(-2)[..., None]
        return phi_q @ summary / (phi_q @ norm)
    n_q, n_k, outputs = query.shape[-2], key.shape[-2], []
    outputs = [torch.zeros_like(value[..., 0, :])] * max(0, n_q - n_k)
    state, norm = 0, 0
    for j in range(n_k):
        state = state + phi_k[..., j, :, None] * value[..., j, None, :]
        norm = norm + phi_k[..., j, :, None]
        i = j - (n_k - n_q)
        if i >= 0:
            row = phi_q[..., i, None, :]
            outputs.append((row @ state / (row @ norm))[..., 0, :])
    return torch.stack(outputs, dim=-2)
    # END SOLUTION


# %% exercise="linear_attention" role="test" points=2
from autograder import check

check(linear_attention)

# %% exercise="linear_attention" role="hidden test" points=3
from autograder import check

check(linear_attention, hidden=True)

# %% [markdown]
# > **Paper and practice: elu + 1.** For very negative x, `elu(x) + 1` computes exp(x) − 1 + 1, which rounds to 0 from
# > about −6.2 on in bfloat16 and from about −8.3 on in float16; a query with only such entries then divides by 0. A
# > kernel library had this reported as a bug. `course_lib` writes exp(x) on that branch. Other models use ReLU, or
# > exp, or no denominator and a norm instead.

# %% [markdown] exercise="performer_features" role="header" minutes=12 lines=3 difficulty=3
# ## Exercise: Performer's features
#
# Random features whose product is exp(q · k) **on average**.
#
# **Why it matters.** Linear attention replaces the softmax; Performer estimates it, so a trained model could in
# principle be converted. The features are positive, so no weight is ever below 0; the older features with sines and
# cosines lack that.
#
# **Contract.** `x` is `(..., d)`, `projection` is `(d, m)`, standard normal numbers. Return
# $\exp(x W - |x|^2/2) / \sqrt{m}$, of shape `(..., m)`. No scale by √d_k here: whoever calls it brings that along.
#
# <details><summary>Hint 1: the idea</summary>
#
# For a normal w, the mean of exp(w · x) is exp(|x|²/2). Try x = q + k, and expand the square: which two factors have
# to be divided out so that exp(q · k) is left?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `x.square().sum(-1, keepdim=True)` is |x|², with an axis that lines up with the features.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Everything in one exponent: the projection minus half the square. Then divide by the root of the number of
# **features**, which is the last size of `projection`.
#
# </details>


# %% exercise="performer_features" role="answer"
def performer_features(
    x: Float[Tensor, "... d"], projection: Float[Tensor, "d features"]
) -> Float[Tensor, "... features"]:
    """Map vectors to positive random features whose product is exp(q · k) on average."""
    # BEGIN SOLUTION
    exponent = x @ projection - x.square().sum(-1, keepdim=True) / 2
    return exponent.exp() / math.sqrt(projection.shape[-1])
    # END SOLUTION


# %% exercise="performer_features" role="test" points=1
from autograder import check

check(performer_features)

# %% exercise="performer_features" role="hidden test" points=2
from autograder import check

check(performer_features, hidden=True)

# %% [markdown] exercise="linformer_attention" role="header" minutes=8 lines=3 difficulty=2
# ## Exercise: Linformer
#
# Mix the n keys into k, and the n values too, before anyone looks at them.
#
# **Why it matters.** It was among the first models with linear cost, and the clearest example of what an
# approximation may silently give up: see the leak detector below.
#
# **Contract.** `query` `(..., n_q, d_k)`, `key` `(..., n, d_k)`, `value` `(..., n, d_v)`; `e` and `f` are `(k, n)` and
# mix along the **tokens**. Return the output alone: softmax(query (e key)ᵀ / √d_k) (f value). While the check counts,
# no tensor with n² numbers may be allocated.
#
# <details><summary>Hint 1: the idea</summary>
#
# After mixing there are k keys and k values; from there on it is attention as you know it.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `e @ key` has the shape (..., k, d_k): a product from the left mixes rows.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Scores of shape (..., n_q, k), over √d_k (not √k); softmax over the k; times `f @ value`.
#
# </details>


# %% exercise="linformer_attention" role="answer"
def linformer_attention(
    query: Float[Tensor, "... query d_k"],
    key: Float[Tensor, "... key d_k"],
    value: Float[Tensor, "... key d_v"],
    e: Float[Tensor, "rank key"],
    f: Float[Tensor, "rank key"],
) -> Float[Tensor, "... query d_v"]:
    """Attend to mixtures of the keys."""
    # BEGIN SOLUTION
    mixed_keys, mixed_values = e @ key, f @ value
    table = query @ mixed_keys.mT / math.sqrt(query.shape[-1])
    return table.softmax(dim=-1) @ mixed_values
    # END SOLUTION


# %% exercise="linformer_attention" role="test" points=1
from autograder import check

check(linformer_attention)

# %% exercise="linformer_attention" role="hidden test" points=1
from autograder import check

check(linformer_attention, hidden=True)

# %% [markdown] exercise="lsh_buckets" role="header" minutes=8 lines=2 difficulty=2
# ## Exercise: Reformer's buckets
#
# Hash vectors so that similar ones share a bucket.
#
# **Why it matters.** After the softmax only the nearest keys matter. If they can be **found** without comparing all,
# n² is gone. The same trick searches billions of vectors in databases.
#
# **Contract.** `x` is `(..., d)`, `rotations` is `(d, b/2)`. Rotate, and return the place of the largest entry among
# [xR, −xR]: an int64 tensor of shape `(...)` with values 0 to b − 1.
#
# <details><summary>Hint 1: the idea</summary>
#
# Each column of R is a direction, and its opposite is one too. A vector goes to the direction that it points to most.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `torch.cat` along the last axis, then `argmax` over it.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Rotate once; put the rotated vectors and their negatives side by side, in this order.
#
# </details>


# %% exercise="lsh_buckets" role="answer"
def lsh_buckets(
    x: Float[Tensor, "... d"],
    rotations: Float[Tensor, "d half"],
) -> Int[Tensor, "..."]:
    """Hash each vector to the nearest of some directions and their opposites."""
    # BEGIN SOLUTION
    rotated = x @ rotations
    both_ways = torch.cat([rotated, -rotated], dim=-1)
    return both_ways.argmax(dim=-1)
    # END SOLUTION


# %% exercise="lsh_buckets" role="test" points=1
from autograder import check

check(lsh_buckets)

# %% exercise="lsh_buckets" role="hidden test" points=1
from autograder import check

check(lsh_buckets, hidden=True)

# %% [markdown]
# ## Exactness against approximation
#
# Windows, strides and tiles compute what they claim. The last four estimate, or compute something else. How far are
# they from softmax attention? The error below is the length of the difference over the length of the true output: 0
# is exact, and 1 is what you get by returning zeros. One value in the tables is worth a look each time: **the mean**,
# which returns the average of all values to everyone, and ignores queries and keys altogether. A method that is no
# better has learned nothing from them.

# %%


def error(found: Tensor, true: Tensor) -> float:
    """Give the length of a difference over the length of the true output."""
    return ((found - true).norm() / true.norm()).item()


def performer_error(n_features: int, query: Tensor, key: Tensor, value: Tensor) -> float:
    """Average the error of three draws of random features."""
    true = softmax_attention(query, key, value)
    errors = []
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        directions = performer.orthogonal_projection(query.shape[-1], n_features, generator)
        errors.append(error(performer.performer_attention(query, key, value, directions), true))
    return sum(errors) / len(errors)


FEATURES = [16, 64, 256, 1024]
performer_errors, baselines = {}, {}
for scale in (0.5, 0.75, 1.0, 1.5):
    query, key, value = drawn(256, d_head=16, scale=scale)
    curve = [performer_error(n_features, query, key, value) for n_features in FEATURES]
    performer_errors[f"entries of size {scale}"] = curve
    true = softmax_attention(query, key, value)
    everyone = value.mean(-2, keepdim=True).expand_as(value)
    no_estimate = linear.linear_attention(query, key, value)
    baselines[scale] = error(everyone, true), error(no_estimate, true)

plots.show(
    plots.line_plot(
        FEATURES,
        performer_errors,
        xlabel="random features",
        ylabel="error",
        title="Performer: the longer the vectors, the worse",
        log_x=True,
        log_y=True,
    )
)
for scale, (of_mean, of_linear) in baselines.items():
    print(f"entries of size {scale}: error {of_mean:.2f} of the mean, {of_linear:.2f} of linear")

# %% [markdown]
# For short queries and keys, Performer is an honest estimate whose error falls with the root of the number of
# features. But exp of a random number varies more the longer the vectors are, exponentially so, and trained models
# have long vectors just where attention is sharp. At size 1.5 even 1024 features, 64 times the width, do not beat
# zeros.
#
# Linear attention is no estimate at all. On these random inputs it is close to the mean: its weights are nearly flat.
# A model that is **trained** with it learns queries and keys for it, so that this number does not condemn it. What it
# cannot learn comes in a minute.
#
# ### Claim on trial: Linformer "approximates the full attention matrix"
#
# That is what document B says of it: low memory, O(Nk), "while preserving performance on many tasks". E and F are
# learned with the model. Here they are untrained: random, or averages of neighboring tokens. Rules: an approximation
# has to have an error at least a tenth below that of the mean; "O(Nk) memory" means that doubling n doubles the bytes
# (within a tenth).

# %%
RANKS = [8, 32, 128]
query, key, value = drawn(256, d_head=16)
true = softmax_attention(query, key, value)
of_mean = baselines[1.0][0]


def random_linformer_error(rank: int) -> float:
    """Average the error of three draws of random mixing matrices."""
    errors = []
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        e, f = torch.randn(2, rank, 256, generator=generator) / math.sqrt(rank)
        errors.append(error(linformer.linformer_attention(query, key, value, e, f), true))
    return sum(errors) / len(errors)


better = {}
print(f"error of the mean: {of_mean:.2f}")
for rank in RANKS:
    pooled = linformer.mean_pooling(rank, 256)
    averaged = error(linformer.linformer_attention(query, key, value, pooled, pooled), true)
    by_chance = random_linformer_error(rank)
    print(f"rank {rank:>3}: random {by_chance:6.2f}, neighbors averaged {averaged:.2f}")
    better[f"random at rank {rank}"] = by_chance < 0.9 * of_mean
    better[f"averages at rank {rank}"] = averaged < 0.9 * of_mean
print()
verdict("an untrained Linformer approximates attention", better, depends_on="matrices and rank")


def alive_at(n: int) -> int:
    """Count the bytes of a Linformer of rank 32."""
    pooled = linformer.mean_pooling(32, n)
    return memory.peak_bytes(linformer.linformer_attention, *drawn(n, 16), pooled, pooled).bytes


doubles = {f"{n} to {2 * n} tokens": alive_at(2 * n) <= 2.2 * alive_at(n) for n in (256, 1024)}
verdict("Linformer's memory is O(Nk)", doubles, depends_on="n")

# %% [markdown]
# The memory is as promised. The word "approximates" is not: softmax of mixed keys is not a mixture of the softmax.
# (For the random matrices an error above 1 is worse than returning zeros.) What a Linformer computes is **another
# function**, which may serve after training.
#
# Its paper argues that it may, because maps are nearly of **low rank**: a few singular values hold most of them. That
# can be looked at. Which share of a map's square sum lies in its 1, 8 and 32 largest singular values, of 256?

# %%
for scale in (0.5, 1.0, 1.5):
    query, key, _ = drawn(256, d_head=16, scale=scale)
    weights = tensor_attention(query, key, key)[1][0, 0]
    energy = torch.linalg.svdvals(weights).square()
    print(f"entries of size {scale}:", end="")
    for rank in (1, 8, 32):
        print(f"   rank {rank}: {energy[:rank].sum() / energy.sum():.0%}", end="")
    print()

# %% [markdown]
# Soft maps are nearly of rank 1: all their rows are close to the mean. The sharper a map is, the more directions it
# needs. So low rank is no property of attention but of how sharp it is, and sharp maps are what look-ups are made of.
#
# Linformer has a catch, too, that no training mends. Chapter 6's leak detector, on a Linformer whose k mixed keys are
# "masked causally", as somebody once did in earnest:

# %%
pooled = linformer.mean_pooling(4, 8)
triangle = torch.ones(8, 4).triu(1).bool()


def masked_linformer(x: Tensor) -> Tensor:
    """Hide the later ones among the mixed keys."""
    return tensor_attention(x, pooled @ x, pooled @ x, triangle)[0]


leaks = dependence(masked_linformer, torch.randn(8, 3, generator=torch.Generator().manual_seed(0)))
print("outputs that depend on a later token:", leaks.triu(1).any(-1).nonzero().squeeze(-1).tolist())

# %% [markdown]
# Every mixed key holds late tokens already; a mask over the mixtures comes too late. And the matrices fit one length
# alone. For a language model both are reasons to leave it.
#
# ### Reformer's rounds
#
# Document A puts Reformer among the "hierarchical methods: summarize earlier tokens, then attend". It summarizes
# nothing: it hashes tokens, and each attends to the single tokens in its own bucket. One round misses a neighbor that
# fell on the other side of a border; several rounds with other directions catch most of them. The tokens below lie in
# 16 clusters, as trained keys tend to.

# %%
generator = torch.Generator().manual_seed(0)
centers = torch.randn(16, 32, generator=generator)
members = torch.randint(16, (512,), generator=generator)
shared = 6 * (centers[members] + 0.3 * torch.randn(512, 32, generator=generator))
value = torch.randn(512, 32, generator=generator)
true = lsh.shared_attention(shared, value)

ROUNDS = [1, 2, 4, 8]
found_pairs, lsh_errors = [], []
for rounds in ROUNDS:
    rotations = lsh.random_rotations(rounds, 32, 16, torch.Generator().manual_seed(1))
    buckets = torch.stack([lsh.lsh_buckets(shared, one) for one in rotations])
    met = (buckets[:, :, None] == buckets[:, None, :]).any(0)
    found_pairs.append(met.float().mean().item())
    lsh_errors.append(error(lsh.lsh_attention(shared, value, rotations, 128), true))
    print(f"rounds: {rounds}, pairs that meet: {found_pairs[-1]:.0%}, error {lsh_errors[-1]:.2f}")

plots.show(
    plots.line_plot(
        ROUNDS,
        {"error": lsh_errors, "share of pairs that meet": found_pairs},
        xlabel="rounds of hashing",
        ylabel="share, or error",
        title="Reformer: more rounds, smaller error, more pairs",
        log_x=True,
    )
)

# %% [markdown]
# One round is worse than zeros: where a token meets few of its likes, it averages strangers, and a mean of a few
# values is longer than the true mean of many. Then the error falls, and the price is in the same plot: with 8 rounds
# a good part of all pairs has been compared after all. Hashing pays when n is so large that even several rounds are a
# small share of n², and only where attention is sharp. (The rest of Reformer saves memory elsewhere: **reversible**
# layers, whose inputs are computed back from their outputs instead of being kept, and a feed-forward network that
# takes its tokens in chunks.)
#
# ### Fixed, learned, hierarchical
#
# Document B speaks of "three principal approaches" to sparse patterns, and the list is missing; one of its figures is
# to show fixed, learnable and hierarchical ones. **Fixed** are windows, strides, BigBird. **Learned** ones ask the
# vectors: Reformer's hashing does, and the Routing Transformer, which learns directions called centroids, each of
# which picks the tokens nearest to it. **Hierarchical** is what document A had in mind: the Compressive Transformer
# keeps the recent past token by token and the older past as means of neighbors. All of them on the tokens above,
# causally, with the number of keys that a query sees on average:

# %%
past = torch.ones(512, 512).triu(1).bool()
true = tensor_attention(shared, shared, value, past)[0]
first = shared[torch.randperm(512, generator=torch.Generator().manual_seed(1))[:16]]
centroids = F.normalize(first, dim=-1)
for _ in range(5):
    centroids = clusters.moved_centroids(centroids, shared, decay=0.5)


def under(mask: Tensor) -> Tensor:
    """Attend under a mask."""
    return tensor_attention(shared, shared, value, mask)[0]


window_mask, strides = sparse.sliding_window_mask(512, 64), sparse.strided_mask(512, 22)
old_as_means = summaries.compressive_mask(512, recent=32, rate=16)
routed = clusters.routing_attention(shared, shared, value, centroids, members=64, causal=True)
compressed = summaries.compressive_attention(shared, shared, value, recent=32, rate=16)
found_by = {
    "fixed: window": (under(window_mask), sparse.visible_per_row(window_mask)),
    "fixed: stride": (under(strides), sparse.visible_per_row(strides)),
    "learned: 16 clusters of 64": (routed, 16 * 64 * 65 / 2 / 512),
    "hierarchical: 32 tokens, then means of 16": (compressed, sparse.visible_per_row(old_as_means)),
}
for name, (found, keys) in found_by.items():
    print(f"{name:<42} {keys:4.0f} keys, error {error(found, true):.2f}")

# %% [markdown]
# These tokens want to meet their likes, wherever they stand. A pattern that looks for likes finds them; windows,
# strides and means miss them, though all but the strides look at nearly as many keys. With neighbors that belong
# together the order would be another one. (And a query that no centroid picks gets nothing here; models put a window
# beside the clusters for that.)
#
# ## A real task: where linear attention fails
#
# A sequence tells up to 32 pairs, "key → value". Then the keys come again in another order, and the model has to name
# the values. One attention does it all: 64 different keys and values, width 32, 250 steps, and **only the attention
# changes**. Softmax can look up: with sharp weights it takes the one value that belongs to the key. Linear attention
# has added everything up into one matrix, `features × width`, before it hears the question.

# %%
PAIRS = [4, 8, 16, 32]
CONTESTANTS = {
    "softmax, d_k = 8": ("softmax", 8),
    "linear, 16 features": ("linear", 16),
    "linear, 8 features": ("linear", 8),
}


def share_recalled(kind: str, d_k: int, pairs: int) -> float:
    """Train a fresh model and return the share of values that it names on new lists."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = recall.KeyValueRecall(kind, 64, d_model=32, d_k=d_k)
    batches = forever(lambda: recall.recall_batch(64, pairs, 64, generator))
    train(model, batches, steps=250, learning_rate=0.01, loss=recall.recall_loss)
    questions, answers = recall.recall_batch(500, pairs, 64, torch.Generator().manual_seed(1))
    return recall.recalled(model, questions, answers)


remembered = {}
for name, (kind, d_k) in CONTESTANTS.items():
    for pairs in PAIRS:
        print(f"{name}, {pairs} pairs: ", end="")
        remembered[name, pairs] = share_recalled(kind, d_k, pairs)

# %%
curves = {name: [remembered[name, pairs] for pairs in PAIRS] for name in CONTESTANTS}
plots.show(
    plots.line_plot(
        PAIRS,
        curves,
        xlabel="pairs to remember",
        ylabel="share recalled",
        title="Key-value recall after 250 steps",
        log_x=True,
    )
)
print("share recalled        " + "".join(f"{pairs:>7}" for pairs in PAIRS))
for name, shares in curves.items():
    print(f"{name:>22}" + "".join(f"{share:>7.2f}" for share in shares))

# %% [markdown]
# Softmax recalls everything from queries of width 8. Linear attention with 8 features forgets from the start and gets
# worse with every pair; twice the features, about twice the memory. That is no weakness of the training: 8 features
# can keep at most 8 keys apart without mixing them up, and positive features not even that. It is the price of a
# state whose size does not grow. (Newer models of this family remove old entries before they write new ones, which
# helps, and many add a few layers of softmax attention, which helps more.)
#
# ## … and where it wins
#
# One head of width 64 on 8192 tokens, forward, one thread. Plain attention would fill half a gigabyte here, so that
# only its bytes are counted, on the meta device. Its time is **estimated**: sixteen times that at a quarter of the
# length, since four times the tokens make sixteen times the pairs. That is rough: on one machine where it was run
# once, the whole took a third longer than this.

# %%
n = 8192 if not quick() else 1024
tensors, quarter = drawn(n), drawn(n // 4)
PLAIN = "plain, estimated from n/4"
with torch.device("meta"):
    shapes_alone = [torch.empty(1, 1, n, 64) for _ in range(3)]
few = {"repeats": 3, "warmup": 1, "min_seconds": 0.0}
contest = {
    "own tiles": lambda *given: flash.flash_attention(*given, 256),
    "SDPA": F.scaled_dot_product_attention,
    "linear": linear.linear_attention,
}
with torch.no_grad():
    plain_seconds = 16 * timing.measure(softmax_attention, *quarter, **few).median
    plain_peak = memory.bytes_text(memory.peak_bytes(softmax_attention, *shapes_alone).bytes)
    print(f"{n} tokens; seconds are the median of a few calls after a first one")
    print(f"{PLAIN:>{len(PLAIN)}}: {1000 * plain_seconds:8.1f} ms, {plain_peak:>9} alive at most")
    for name, way in contest.items():
        taken = timing.measure(way, *tensors, **few).median
        most = memory.bytes_text(memory.peak_bytes(way, *tensors).bytes)
        print(f"{name:>{len(PLAIN)}}: {1000 * taken:8.1f} ms, {most:>9} alive at most")

# %% [markdown]
# (What a fused kernel like SDPA's needs inside stays unseen by the counter; it is little.) While **writing**, the
# difference is in what has to be kept. You meet both memories after the race.
#
# ## The race
#
# Causal attention over the length, one head of width 64, forward: everything in this chapter, every backend of the
# library that this machine has (on its GPU, if there is one), and FlexAttention, which is compiled once, at 1024
# tokens. Both axes are logarithmic: a slope of 2 is n², a slope of 1 is n. What does not run, or grows too
# large to go on, is named with its reason.

# %%
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RACE_LENGTHS = [128, 256, 512, 1024, 2048, 4096][: steps(6, 4)]
contestants = forms(block_size=256, window=128)
contestants = sorted(contestants, key=lambda form: form.name != "FlexAttention")  # compile first
contestants = [form for form in contestants if form.name != "SDPA overrideable"]  # other makers'
outcome = race(
    contestants,
    RACE_LENGTHS,
    inputs=lambda n: tuple(one.to(DEVICE) for one in drawn(n)),
    most_bytes=40e6,  # a form that had more alive is not tried at a greater length
    compiled_length=1024,
)
for name, reason in outcome.reasons.items():
    print(f"{name}: {reason}.")
for name, at in outcome.seconds.items():
    if len(at) == 1:
        ((length, taken),) = at.items()
        print(f"{name}: measured at {length:,} tokens alone, {1000 * taken:.1f} ms")

# %%
for of, ylabel in (("seconds", "seconds"), ("peaks", "bytes alive at most")):
    measured = getattr(outcome, of)
    entrants = {}
    for name in measured:
        if len(measured[name]) > 1:
            entrants[name] = outcome.curve(name, RACE_LENGTHS, of)
    plots.show(
        plots.line_plot(
            RACE_LENGTHS,
            entrants,
            xlabel="tokens n",
            ylabel=ylabel,
            title=f"Causal attention, one head: {ylabel}",
            ax=plots.panels(1, width=5.6, height=4.0)[0],
            log_x=True,
            log_y=True,
        )
    )

# %% [markdown]
# Read the slopes first. The exact forms all climb with 2 in seconds: tiles save **memory**, and time only as far as
# memory was what took the time. In bytes, the naive form and the library's math backend climb with 2, for they write
# the table, and everything else climbs with 1 or less. Local and linear climb with 1 on both sides. And Python's
# loops have a price at small n: our own tiles begin above the library's, which do the same loops inside one kernel.
# (Single points jump when another program gets in the way.)

# %% [markdown] exercise="KVCache" role="header" minutes=15 lines=14 difficulty=3
# ## Exercise: a KV cache
#
# While a model writes, keys and values of old tokens do not change. Keep them.
#
# **Why it matters.** Without a cache every new token costs a pass over all the old ones. With one, a step costs a
# single query. Nearly every serving system is built around this object; its size limits how many people can be served
# at once (chapter 7).
#
# **Contract.** `KVCache(max_length=None)`. `append(key, value)` takes `(..., n, d_k)` and `(..., n, d_v)`, one or
# more new tokens, and returns **all** keys and values so far. `length` is a property: the number of tokens held.
# `reset()` forgets everything; another batch size may follow. More than `max_length` tokens raise a `ValueError` and
# leave the cache as it was. Inputs are **copied**: a caller may reuse his tensors.
#
# <details><summary>Hint 1: the idea</summary>
#
# Two tensors, or none at the start. The tokens lie along the axis before the last, whatever comes before it.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `torch.cat([old, new], dim=-2)` copies both. The very first tokens need a copy of their own: `.clone()`. `@property`
# makes a method look like an attribute.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# In `append`: compute the length that it would have; raise before anything is changed; then join or clone, keep,
# return. `reset` can also serve `__init__`.
#
# </details>


# %% exercise="KVCache" role="answer"
class KVCache:
    """Keep the keys and values of all tokens so far."""

    # BEGIN SOLUTION
    def __init__(self, max_length: int | None = None) -> None:
        self.max_length = max_length
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    @property
    def length(self) -> int:
        """Return the number of tokens held."""
        return 0 if self.keys is None else self.keys.shape[-2]

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Copy new tokens in; return the keys and values of all tokens so far."""
        wanted = self.length + key.shape[-2]
        if self.max_length is not None and wanted > self.max_length:
            raise ValueError(f"The cache holds at most {self.max_length} tokens, not {wanted}.")
        if self.keys is None or self.values is None:
            self.keys, self.values = key.clone(), value.clone()
        else:
            self.keys = torch.cat([self.keys, key], dim=-2)
            self.values = torch.cat([self.values, value], dim=-2)
        return self.keys, self.values

    # END SOLUTION
    # BEGIN STARTER
    # def __init__(self, max_length: int | None = None) -> None:
    #     raise NotImplementedError()
    #
    # def reset(self) -> None:
    #     """Forget everything."""
    #     raise NotImplementedError()
    #
    # @property
    # def length(self) -> int:
    #     """Return the number of tokens held."""
    #     raise NotImplementedError()
    #
    # def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    #     """Copy new tokens in; return the keys and values of all tokens so far."""
    #     raise NotImplementedError()
    # END STARTER


# %% exercise="KVCache" role="test" points=1
from autograder import check

check(KVCache)

# %% exercise="KVCache" role="hidden test" points=2
from autograder import check

check(KVCache, hidden=True)

# %% [markdown]
# Two memories side by side: a cache that grows, and the state of linear attention, which does not. Both are asked to
# give, token by token, what one pass over everything gives.

# %%
query, key, value = drawn(300, d_head=32)
cache, memory_state = kv_cache.KVCache(), linear.LinearState()
stepwise_cached, stepwise_linear = [], []
print(f"{'tokens':>7}{'cache':>12}{'linear state':>15}")
for t in range(300):
    token = tuple(one[..., t : t + 1, :] for one in (query, key, value))
    held_keys, held_values = cache.append(*token[1:])
    stepwise_cached.append(softmax_attention(token[0], held_keys, held_values))
    stepwise_linear.append(memory_state.append(*token))
    if t + 1 in (30, 100, 300):
        cached = memory.bytes_text(4 * (held_keys.numel() + held_values.numel()))
        print(f"{t + 1:>7}{cached:>12}{memory.bytes_text(4 * memory_state.sums.numel()):>15}")

past = torch.ones(300, 300).triu(1).bool()
whole, _ = tensor_attention(query, key, value, past)
assert torch.allclose(torch.cat(stepwise_cached, -2), whole, atol=1e-5)
whole_linear = linear.linear_attention(query, key, value, causal=True)
assert torch.allclose(torch.cat(stepwise_linear, -2), whole_linear, atol=1e-5)
print("both equal the pass over all tokens at once")

# %% [markdown]
# > **Paper and practice: caches.** The state costs the same after a million tokens; the recall task showed what it
# > pays for that. Between the two stand caches that keep less: a window's cache is a **ring** of the last tokens;
# > several heads share keys (chapter 2); numbers are kept in 8 or 4 bits; and serving systems cut the cache into
# > **pages**, like an operating system, so that users' caches of all lengths fit side by side.

# %% [markdown] exercise="block_sparse_attention" role="header" minutes=25 lines=10 difficulty=4
# ## Bug hunt: document B's block-sparse attention
#
# Document B ends its section with a PyTorch class. Below is its `forward`, as a function, with the mask as an argument
# (the class makes it by a method that is not shown). It has at least six faults, and only two of them raise an error.
#
# **Why it matters.** This is the kind of code that one copies: short, and with the right words in it. The faults that
# do not raise are the reason why sparse attention is tested against dense attention under a mask, and not by whether
# a model trains.
#
# **Contract.** `query`, `key` `(..., n, d_k)`, `value` `(..., n, d_v)`; n is a multiple of `block_size`. `block_mask`
# is boolean, one cell for each pair of **blocks**: `(n / block_size, n / block_size)`; **`True` hides** that block of
# keys from that block of queries. One softmax per query, over all keys that it sees. A block of queries that sees
# nothing gives 0. Return the output, `(..., n, d_v)`. (For this exercise a dense table under an expanded mask is
# accepted; it is right, though it saves nothing.)
#
# <details><summary>Hint 1: the idea</summary>
#
# Look at the pattern first. Which keys does a query of block 2 meet in `"bqd,bkd->bqk"`? You saw that pattern in the
# gallery.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `repeat_interleave` along both axes spreads each cell of the mask over its pairs. Compare the scores with the
# formula of chapter 1, term by term. And which way round is this course's mask?
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Scores of all queries and keys over √d_k; hide where the spread mask is True; softmax; put 0 where the mask is True
# (a row without any key is NaN until then); multiply by the values. To save work instead: for each block of queries
# join the blocks of keys that it sees.
#
# </details>


# %% exercise="block_sparse_attention" role="answer"
def block_sparse_attention(
    query: Float[Tensor, "... token d_k"],
    key: Float[Tensor, "... token d_k"],
    value: Float[Tensor, "... token d_v"],
    block_mask: Bool[Tensor, "query_block key_block"],
    block_size: int,
) -> Float[Tensor, "... token d_v"]:
    """Attend from each block of queries to the blocks of keys that the mask shows."""
    # BEGIN SOLUTION
    rows = []
    for i, row in enumerate(block_mask):
        mine = query[..., i * block_size : (i + 1) * block_size, :]
        seen = (~row).repeat_interleave(block_size).nonzero()[:, 0]
        if len(seen) == 0:
            rows.append(value.new_zeros(*mine.shape[:-1], value.shape[-1]))
            continue
        table = mine @ key[..., seen, :].mT / math.sqrt(query.shape[-1])
        rows.append(table.softmax(-1) @ value[..., seen, :])
    return torch.cat(rows, dim=-2)
    # END SOLUTION
    # BEGIN STARTER
    # # Reshape into blocks
    # query_blocks = query.view(-1, block_size, query.size(-1))
    # key_blocks = key.view(-1, block_size, key.size(-1))
    #
    # # Compute block-sparse attention
    # attn = torch.einsum("bqd,bkd->bqk", query_blocks, key_blocks)
    # attn = attn.masked_fill(~block_mask, float("-inf"))
    # return torch.matmul(F.softmax(attn, dim=-1), value)
    # END STARTER


# %% exercise="block_sparse_attention" role="test" points=2
from autograder import check

check(block_sparse_attention)

# %% exercise="block_sparse_attention" role="hidden test" points=3
from autograder import check

check(block_sparse_attention, hidden=True)

# %% [markdown]
# One fault of the class does not show in a single call. Its mask is drawn at random, with a "sparsity ratio (often
# 0.1-0.3)" of blocks that stay visible.
#
# ### Predict first: blind blocks
#
# 32 × 32 blocks, each visible with chance 0.1. In which share of such layouts, between 0 and 1, does at least one
# block of queries see **nothing at all**?

# %%
my_prediction = None  # a share between 0 and 1

draws = torch.rand(5000, 32, 32, generator=torch.Generator().manual_seed(0)) < 0.1
blind = (~draws.any(-1)).any(-1).double().mean().item()
reveal(my_prediction, blind)

# %% [markdown]
# In the document's code each of these blocks becomes NaN, and the next layer hands the NaN on to everyone. The
# formula says the same as the draw: $1 - (1 - 0.9^{32})^{32}$. Real layouts therefore always show each block to
# itself. (The "sparsity ratio" itself has two readings. As the share that is **visible**, 0.1 to 0.3 promise at most 10
# to 3.3 times less work; as the share that is **hidden**, 1.1 to 1.4 times less. Ask which one is meant.)

# %%
print(f"by the formula: {1 - (1 - 0.9**32) ** 32:.2f}")

# %% [markdown] exercise="choose_an_attention" role="header" minutes=20
# ## Written question: choose an attention
#
# A hospital wants to search patient records: each is one text of about 60,000 tokens, read **once** by an encoder (no
# text is written), with a model of 12 layers, width 768 and 12 heads, on one GPU with 24 GB. Questions are of two
# kinds: "what does this paragraph say?" and "was the dose on the first page changed on the last?". A colleague
# proposes linear attention, another a window of 512, a third plain softmax attention with FlashAttention.
#
# What do you propose? Give for each of the three: a number for its cost (FLOPs or bytes, with the calculation); one
# question that it will fail at, or why it fails at none; and how you would find out on your own data before deciding.
# The cell below is for your numbers.

# %%
# Room for your own numbers: what do local.window_pairs and sparse.layers_to_full say here?
record, layers, heads, d_model = 60_000, 12, 12, 768

# %% [markdown] exercise="choose_an_attention" role="written" points=5
# **Model answer.** A table of one head takes 60,000² · 4 bytes = 14.4 GB in float32, so plain attention that writes
# it is out, and FlashAttention, which keeps O(n), is not. Its two products cost 4 n² d = 4 · 3.6 · 10⁹ · 768 ≈ 1.1 ·
# 10¹³ FLOPs per layer, 1.3 · 10¹⁴ for 12. If the GPU achieves 5 · 10¹³ per second in half precision, which is my
# assumption and has to be measured, that is under 3 seconds per record. The rest of a layer costs 24 n d² ≈ 8.5 ·
# 10¹¹, so the products are over 90 % of it. Exact: it fails at no question for reasons of attention.
#
# A window of 512 to both sides sees 1023 keys: 4 · 60,000 · 1023 · 768 ≈ 1.9 · 10¹¹ per layer, about 59 times less.
# But the first page reaches the last only after ⌈59,999 / 511⌉ = 118 layers, and there are 12: the question about the
# dose cannot be answered at all. With a few global tokens everything is two layers apart, for 2 n more pairs each.
#
# Linear attention costs about 4 n d · 64 ≈ 1.2 · 10¹⁰ per layer and reaches everything, but through a matrix of 64 ×
# 64 per head. A record has thousands of facts; the recall experiment shows that they get mixed up long before that,
# so exact look-ups like a dose are what it fails at.
#
# Proposal: window with global tokens in most layers, exact attention with FlashAttention in a few; or FlashAttention
# everywhere, as a few seconds per record may be good enough. First I would measure on our own records: hide a fact
# at a known distance, ask for it, and plot the share of right answers over the distance and over the number of facts,
# for all three; and time one record, after a warm-up, with synchronization.
#
# **Rubric** (one point each)
#
# 1. A cost for the exact form that separates FLOPs (n², still there) from memory (no table), right within a factor 2.
# 2. A cost for the window, and the number of layers that it needs to bridge the record (or that 12 are too few).
# 3. Linear attention: a fixed state, and a question of exact recall that it fails at.
# 4. A proposal that answers both kinds of question and follows from the numbers.
# 5. A test on own data that varies distance or number of facts; not only "train and compare the loss".

# %% [markdown] exercise="more_flops_less_time" role="header" minutes=10
# ## Written question: more FLOPs, less time
#
# "FlashAttention computes the weights a second time on the way back. How can it be faster if it does **more** work?"
# Answer in at most 150 words, for somebody who has read chapter 7 but not this one. Use the words traffic and
# arithmetic intensity, and name a situation in which tiles do not pay.

# %% [markdown] exercise="more_flops_less_time" role="written" points=3
# **Model answer.** A processor waits either for calculation or for data. Plain attention writes n² scores into slow
# memory, reads them for the softmax, writes the weights, reads them again for the product: about 4 n² numbers moved,
# for 4 n² d multiplications and additions. Per number moved that is little work, about d FLOPs, so its arithmetic
# intensity is low and a GPU waits for data. Tiles stay in the fast memory on the chip, where a running maximum and
# sum replace the whole row, and traffic falls to about n² d² / M. Computing the weights again on the way back costs
# FLOPs that were idle anyway, and saves reading n² numbers. It does not pay when the fast memory is small against d²
# (the same queries are fetched too often), or when n is so small that the table fits into a cache.
#
# **Rubric** (one point each)
#
# 1. The time of plain attention is decided by moving the table, not by FLOPs (traffic, low intensity).
# 2. Tiles avoid the traffic, and recomputing is cheaper than fetching.
# 3. A situation without gain: small n, fast memory small against d², or a processor that is bound by calculation.

# %% [markdown]
# ## Optional: your own parts, together
#
# Do **your** functions fit together? Your tiles over two halves of the keys, merged; your window against your mask.
# This cell is not graded, and may fail while an answer is unfinished.

# %%
try:
    query, key, value = drawn(50, d_head=8)
    mine = flash_attention(query, key, value, 16)
    print("your tiles, off by", f"{(mine - softmax_attention(query, key, value)).abs().max():.1e}")
    own_window = local_attention(query, key, value, 7)
    under_mask, _ = tensor_attention(query, key, value, sliding_window_mask(50, 7))
    print("your window against your mask, off by", f"{(own_window - under_mask).abs().max():.1e}")
    reached = receptive_field(sliding_window_mask(50, 7), 3)
    print("tokens that the last one knows after 3 layers of it:", int(reached[-1].sum()))
except NotImplementedError:
    print("not all of your functions are written yet; come back when they are.")

# %% [markdown]
# ## Summary
#
# - Two families: **exact** on all pairs (tiles) or on chosen pairs (windows, strides, global and random keys,
#   buckets); and **another function** (linear attention, Linformer) or an estimate (Performer).
# - A mask saves nothing. Code that skips what is hidden does.
# - A window of reach r needs ⌈(N − 1) / r⌉ layers to connect everything; a stride or global tokens need two; blocks
#   on the diagonal never do.
# - Attention over parts of the keys can be merged exactly if each part remembers its log-sum-exp. That is all of
#   FlashAttention; its FLOPs are those of plain attention, its memory is O(n), its traffic depends on the fast
#   memory.
# - Performer's error depends on the length of the vectors first and on the features second. Linformer is not causal.
#   Reformer needs rounds.
# - Linear attention keeps a state of fixed size: fast and small at any length, and unable to look up what no longer
#   fits in.
# - A KV cache turns writing from n passes over everything so far into n steps of one token each, and is paid in
#   bytes.
#
# **Next:** chapter 9 puts the pieces into whole models: BERT, GPT, T5, Switch.
#
# ### Sources
#
# - Child et al. 2019, *Generating Long Sequences with Sparse Transformers*, arXiv 1904.10509: §4.3 (strided and
#   fixed), §5.5 (block-sparse kernels).
# - Beltagy, Peters, Cohan 2020, *Longformer*, arXiv 2004.05150: §3.1 (windows, global tokens).
# - Zaheer et al. 2020, *Big Bird*, arXiv 2007.14062: §2, §3 (what sparse patterns can compute).
# - Yun et al. 2020, *O(n) Connections are Expressive Enough*, arXiv 2006.04862.
# - Milakov, Gimelshein 2018, *Online normalizer calculation for softmax*, arXiv 1805.02867: algorithm 3.
# - Dao et al. 2022, *FlashAttention*, arXiv 2205.14135: algorithm 1, theorems 1 and 2. Dao 2023, *FlashAttention-2*,
#   arXiv 2307.08691: §3.
# - Katharopoulos et al. 2020, *Transformers are RNNs*, arXiv 2006.16236: eq. 5–9 and §3.4.
# - Choromanski et al. 2021, *Rethinking Attention with Performers*, arXiv 2009.14794: lemma 1, §2.
# - Wang et al. 2020, *Linformer*, arXiv 2006.04768: §4, eq. 7.
# - Kitaev, Kaiser, Levskaya 2020, *Reformer*, arXiv 2001.04451: §2, §3 (reversible layers, chunks).
# - Roy et al. 2021, *Efficient Content-Based Sparse Attention with Routing Transformers*, arXiv 2003.05997: §4.1. Rae
#   et al. 2020, *Compressive Transformers for Long-Range Sequence Modelling*, arXiv 1911.05507: §3.
# - Arora et al. 2023, *Zoology*, arXiv 2312.04927: recall as what separates linear from softmax attention.
# - Dong et al. 2024, *Flex Attention*, arXiv 2412.05496.
# - Shazeer 2019, *Fast Transformer Decoding*, arXiv 1911.02150: §2.4 (decoding with kept keys). Kwon et al. 2023,
#   *PagedAttention*, arXiv 2309.06180.
# - Brown et al. 2020, arXiv 2005.14165, §2.1 (GPT-3's alternating layers). Jiang et al. 2023, *Mistral 7B*, arXiv
#   2310.06825, §2 (a window of 4096).
