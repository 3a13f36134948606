# ---
# title: "7 · What it costs"
# ---

# %% [markdown] role="opening" minutes=40
# # 7 · What it costs
#
# "Attention is quadratic" is the first thing that everybody learns about its cost, and it is seldom the answer to
# "why is my model slow?". In this chapter you count: parameters, operations, bytes, and steps that must wait for one
# another. Every formula is checked to the unit against a real module. Then you measure seconds, find out how easily a
# measurement lies, and learn to say which of the costs a computation is waiting for.
#
# **At the end you can**
#
# - write down what a transformer block costs before it is built, and check that against the block itself;
# - say from which length on the n² part matters, for any width;
# - tell apart what is quadratic in memory and what is not, and why heads cost bytes but no operations;
# - mend a benchmark that measures the wrong thing, and read a scaling exponent without being fooled by small sizes;
# - explain what a transformer gains over a recurrent network when it reads, and why it does not gain it when it
#   writes;
# - place a computation under the roofline of a machine.
#
# **You need** chapters 1, 2 and 4: attention, heads and the block. PyTorch appears throughout; most exercises are
# plain arithmetic in Python.
#
# **The documents.** The chapter mirrors, and tests, document A's "Why Transformers Parallelize Better Than RNNs" with
# its comparison table and its numbers on training time; document B's three sections called "Computational
# Complexity", its "Mathematical Foundations of Hyperparameter Effects" and "Memory Bottlenecks"; and document C's
# "Why Transformers Beat RNNs" and "Computational Cost".
#
# **Nothing here is graded by the clock.** Cells that measure seconds are for you to look at; every check counts. The
# convention of the course, everywhere: one multiplication and the addition after it are **2 FLOPs**.

# %%
import math
import statistics

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from autograder import check
from course_lib import costs, fair_timing, flop_counter, memory, plots, roofline, scaling, timing
from course_lib.block import TransformerBlock
from course_lib.models import recurrent
from course_lib.models.first_token import KINDS, FirstTokenReader, first_token_batch
from course_lib.multi_head import MultiHeadAttention, merge_heads, split_heads
from course_lib.settings import steps
from course_lib.tensor_attention import tensor_attention
from course_lib.training.loop import forever, train
from course_lib.trial import reveal, verdict
from course_lib.widgets.costs import costs_explorer

torch.set_num_threads(1)  # so that your numbers compare with those of a machine with more cores

# %% [markdown]
# ## What a block learns
#
# A block of width $d$ holds four projections of $d \times d$, a feed-forward network of two matrices between $d$ and
# $d_\text{ff}$, and two norms. Here is one of the size that GPT-2 small and BERT base use, with what each of its
# parts learns:

# %%
block = TransformerBlock(d_model=768, num_heads=12, d_ff=3072)
for name, part in block.named_children():
    print(f"{name:>10}: {flop_counter.counted_parameters(part):>9,}")
print(f"{'together':>10}: {flop_counter.counted_parameters(block):>9,}")

# %% [markdown] exercise="block_parameter_count" role="header" minutes=8 lines=3 difficulty=2
# ## Exercise: parameters of a block
#
# Count, without building anything, what a block learns.
#
# **Why it matters.** A parameter in training costs about 16 bytes: the weight, its gradient and two averages that
# Adam keeps, 4 bytes each. So this number decides whether a model fits before a single token is read. People who plan
# a model do it with this formula and a sheet of paper.
#
# **Contract.** Four projections (queries, keys, values, output), two feed-forward layers and **both** norms. With
# `bias=True` each of the six linear layers has a bias: one number per output. `bias=False` drops those; the norms
# always keep a gain and a bias, `d_model` numbers each. Return an int.
#
# <details><summary>Hint 1: the idea</summary>
#
# Make a table with one row for each layer: its inputs, its outputs, its bias. Where would the number of heads come
# in?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# A linear layer has inputs · outputs weights and one bias for each output. Of the six layers, five have d_model
# outputs.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Weights: four squares and two rectangles. Biases, if asked for: five times d_model and once d_ff. Norms: two of
# them, two vectors each.
#
# </details>


# %% exercise="block_parameter_count" role="answer"
def block_parameter_count(d_model: int, d_ff: int, bias: bool = True) -> int:
    """Count what a transformer block learns."""
    # BEGIN SOLUTION
    weights = 4 * d_model * d_model + 2 * d_model * d_ff
    biases = 5 * d_model + d_ff if bias else 0
    norms = 2 * 2 * d_model
    return weights + biases + norms
    # END SOLUTION


# %% exercise="block_parameter_count" role="test" points=1
from autograder import check

check(block_parameter_count)

# %% exercise="block_parameter_count" role="hidden test" points=2
from autograder import check

check(block_parameter_count, hidden=True)

# %% [markdown]
# ### Claim on trial: document B's parameter formula
#
# Document B says that a block has $4d^2 + 2 d\, d_\text{ff} + d H$ parameters, where $H$ is the number of heads. The
# next cell builds PyTorch's own layer with 1 to 16 heads and counts.


# %%
def document_formula(d_model: int, d_ff: int, heads: int) -> int:
    """Count the parameters as document B does."""
    return 4 * d_model**2 + 2 * d_model * d_ff + d_model * heads


agrees = {}
for heads in (1, 2, 4, 8, 16):
    layer = nn.TransformerEncoderLayer(d_model=256, nhead=heads, dim_feedforward=1024)
    real = flop_counter.counted_parameters(layer)
    said = document_formula(256, 1024, heads)
    agrees[f"H = {heads}"] = real == said
    ours = costs.block_parameter_count(256, 1024)
    print(f"{heads:>2} heads: real {real:,}   ours {ours:,}   document B {said:,}")
print()
verdict("a block has 4d² + 2 d·d_ff + d·H parameters", agrees, depends_on="the number of heads")

bert_said, bert_real = document_formula(768, 3072, 12), costs.block_parameter_count(768, 3072)
off = 1 - bert_said / bert_real
print(f"a block of BERT base: document B {bert_said:,}, real {bert_real:,}: off by {off:.4%}")

# %% [markdown]
# Heads cut the same matrices into pieces; they bring nothing of their own. What the formula leaves out are 9 d biases
# (if $d_\text{ff} = 4d$) and 4 d numbers in the norms, 13 d in all. With 12 heads, $d H$ happens to be 12 d, so the
# formula comes within about a hundredth of a percent of a block of BERT and looks right. A test with one size would
# let it pass.
#
# > **Paper and practice: what "parameters" counts.** "Total" or "without embeddings"? A matrix that is shared between
# > the embedding and the output layer, once or twice? Summing over the entries of a `state_dict` counts it twice,
# > summing over `module.parameters()` once. Kaplan et al. 2020 count without embeddings, since that number predicts
# > the loss better; a download page counts everything. Say which one you mean. Llama and many others have no biases
# > at all, and PyTorch's `bias=False` drops those of the norms too.

# %% [markdown]
# ## What a pass calculates
#
# A product of an $(a \times b)$ by a $(b \times c)$ matrix needs $a\,b\,c$ multiply-adds, so $2abc$ FLOPs. That one
# rule is enough. Attention has six products: four projections, and two that touch no weight at all, queries by keys
# and weights by values.
#
# ### Predict first: where the work is
#
# BERT base reads 512 tokens through a block of width 768. All 512 look at all 512. Which share of the block's FLOPs,
# between 0 and 1, goes into the two n × n products?

# %%
my_prediction = None  # a share between 0 and 1

bert_parts = costs.block_flops_by_part(sequence=512, d_model=768, d_ff=3072)
reveal(my_prediction, bert_parts.attention_share)

# %% [markdown] exercise="attention_flops" role="header" minutes=8 lines=3 difficulty=2
# ## Exercise: FLOPs of attention
#
# Count the FLOPs of multi-head attention from n_q queries over n_k keys, with all four projections.
#
# **Why it matters.** In generation one query looks at thousands of cached keys; in cross-attention the two lengths
# differ as well. A formula for n × n alone is of no use there.
#
# **Contract.** The two products and the four projections, nothing else: no softmax, no biases. One multiply-add
# counts two FLOPs. Queries and output have `n_q` rows, keys and values `n_k`; every projection is `(d_model,
# d_model)`. The whole table of scores counts, also where a mask would hide half of it. Return an int.
#
# <details><summary>Hint 1: the idea</summary>
#
# For each of the six products, write down its three sizes. Heads? Each of h heads multiplies vectors of d_model / h
# features. What do h of them cost together?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# The queries' projection is (n_q, d_model) by (d_model, d_model): 2 n_q d_model². All heads' scores together are
# (n_q, d_model) by (d_model, n_k).
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Two projections run over n_q rows and two over n_k rows. Two products cost 2 n_q n_k d_model each.
#
# </details>


# %% exercise="attention_flops" role="answer"
def attention_flops(n_q: int, n_k: int, d_model: int) -> int:
    """Count the FLOPs of attention, projections included."""
    # BEGIN SOLUTION
    projections = 2 * (2 * n_q + 2 * n_k) * d_model**2
    products = 2 * 2 * n_q * n_k * d_model
    return projections + products
    # END SOLUTION


# %% exercise="attention_flops" role="test" points=1
from autograder import check

check(attention_flops)

# %% exercise="attention_flops" role="hidden test" points=2
from autograder import check

check(attention_flops, hidden=True)

# %% [markdown] exercise="block_flops" role="header" minutes=6 lines=3 difficulty=2
# ## Exercise: FLOPs of a block
#
# Add the feed-forward network: the FLOPs of one forward pass of a block over one sequence.
#
# **Why it matters.** Three times this number (going backward costs twice as much as going forward), times the layers,
# times the sequences of a data set, is what a training run costs. The same sum tells how well a machine is used:
# FLOPs that the model needs, per second, over the peak of the machine.
#
# **Contract.** Matrix products alone, 2 FLOPs for a multiply-add, so that the result equals what PyTorch's FLOP
# counter reports for the real block. Return an int. You may use `costs.attention_flops`.
#
# <details><summary>Hint 1: the idea</summary>
#
# A block is self-attention, so n_q = n_k, followed by two products for every token.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# (n, d_model) by (d_model, d_ff), and (n, d_ff) by (d_ff, d_model).
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Attention with both lengths equal, plus two times 2 n d_model d_ff.
#
# </details>


# %% exercise="block_flops" role="answer"
def block_flops(sequence: int, d_model: int, d_ff: int) -> int:
    """Count the FLOPs of a forward pass of one block."""
    # BEGIN SOLUTION
    feed_forward = 2 * 2 * sequence * d_model * d_ff
    return costs.attention_flops(sequence, sequence, d_model) + feed_forward
    # END SOLUTION


# %% exercise="block_flops" role="test" points=1
from autograder import check

check(block_flops)

# %% exercise="block_flops" role="hidden test" points=2
from autograder import check

check(block_flops, hidden=True)

# %% [markdown]
# ### Checked to the unit
#
# PyTorch can count the products of any code that runs. On the **meta device** tensors have shapes and no numbers, so
# even a block of GPT-3, whose weights would fill 7 GB, is counted in a moment. The formula has to agree exactly;
# "about" would hide a forgotten projection.

# %%
print(f"{'n':>6}{'d':>8}{'d_ff':>8}{'heads':>7}{'formula':>22}{'counted':>22}")
for name, n, d_model, d_ff, heads in (
    ("a small block", 100, 64, 200, 4),
    ("BERT base", 512, 768, 3072, 12),
    ("GPT-3", 2048, 12288, 49152, 96),
):
    with torch.device("meta"):
        layer, x = TransformerBlock(d_model, heads, d_ff), torch.empty(1, n, d_model)
    formula, counted = costs.block_flops(n, d_model, d_ff), flop_counter.counted_flops(layer, x)
    assert formula == counted
    print(f"{n:>6}{d_model:>8}{d_ff:>8}{heads:>7}{formula:>22,}{counted:>22,}   {name}")

# %% [markdown]
# > **Paper and practice: a counter can be blind.** On a CPU, PyTorch runs `F.scaled_dot_product_attention` as one
# > **fused kernel**: a single routine that does all the steps in one go, and into which the FLOP counter does not
# > look. The n² term is then simply missing, and a plot of "measured FLOPs" over n is a straight line. Our
# > `counted_flops` asks for the plain form while it counts. A counter is a measuring device; test it on something you
# > know before you believe it.

# %%
from torch.utils.flop_counter import FlopCounterMode

layer, x = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True).eval(), torch.randn(1, 128, 64)
with FlopCounterMode(display=False) as plain_counter:
    layer(x)
missing = flop_counter.counted_flops(layer, x) - plain_counter.get_total_flops()
print(f"plain counter:   {plain_counter.get_total_flops():>12,}")
print(f"our counter:     {flop_counter.counted_flops(layer, x):>12,}")
print(f"missing:         {missing:>12,}   and 4 n² d is {4 * 128**2 * 64:,}")

# %% [markdown] exercise="crossover_length" role="header" minutes=8 lines=1 difficulty=2
# ## Exercise: where n² takes over
#
# Find the length from which the two n × n products cost more than **all the rest of the block together**.
#
# **Why it matters.** Before you replace attention by something clever (chapter 8), ask on which side of this length
# your data lies. For most models and most texts, the answer saves you the work.
#
# **Contract.** The smallest whole number n at which the FLOPs of the two products are strictly more than those of the
# four projections and the feed-forward network together. Return an int; `d_ff` is given and need not be 4 d_model.
#
# <details><summary>Hint 1: the idea</summary>
#
# Write both sides as formulas in n. Every term has a factor that you can cancel.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# 4 n² d_model against 8 n d_model² + 4 n d_model d_ff. Divide both by 4 n d_model.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# n must be **more** than 2 d_model + d_ff. At that length itself both sides are equal.
#
# </details>


# %% exercise="crossover_length" role="answer"
def crossover_length(d_model: int, d_ff: int) -> int:
    """Find the first length at which the n × n products cost more than the rest of a block."""
    # BEGIN SOLUTION
    return 2 * d_model + d_ff + 1
    # END SOLUTION


# %% exercise="crossover_length" role="test" points=1
from autograder import check

check(crossover_length)

# %% exercise="crossover_length" role="hidden test" points=2
from autograder import check

check(crossover_length, hidden=True)

# %% [markdown]
# ### Claim on trial: what dominates a block
#
# Document B says two things. The feed-forward network "becomes the dominant term in longer sequences where n > d".
# And a block "is dominated by the self-attention mechanism", O(n² d). Here are the shares, for BERT's width and any
# length, with $d_\text{ff} = 4d$:

# %%
D_MODEL = 768
lengths = [96, 192, 384, 768, 1536, 3072, 6144, 12288]
by_part = {n: costs.block_flops_by_part(n, D_MODEL, 4 * D_MODEL) for n in lengths}
plots.show(
    plots.line_plot(
        lengths,
        {
            "projections": [by_part[n].projections / by_part[n].total for n in lengths],
            "n × n products": [by_part[n].attention_share for n in lengths],
            "feed-forward": [by_part[n].feed_forward / by_part[n].total for n in lengths],
        },
        xlabel="tokens n",
        ylabel="share of the FLOPs",
        title=f"A block of width {D_MODEL}: attention's share grows with n",
        log_x=True,
    )
)

ffn_dominates, products_dominate = {}, {}
for n in lengths:
    part, ratio = by_part[n], f"n = {n / D_MODEL:g} d"
    if n > D_MODEL:
        ffn_dominates[ratio] = part.feed_forward > max(part.projections, part.attention)
    products_dominate[ratio] = part.attention > max(part.projections, part.feed_forward)
verdict(
    "the feed-forward network is the largest of the three where n > d",
    ffn_dominates,
    depends_on="n / d",
)
verdict("the n² d of attention is the largest of the three", products_dominate, depends_on="n / d")

# %% [markdown]
# Neither holds for every length, and the first has the direction wrong: the feed-forward network's share **falls** as
# sequences get longer. It is twice the projections' ($16 n d^2$ against $8 n d^2$), whatever n. The products catch up
# with it at n = 4 d, and with everything else together at n = 6 d, so they lead from 4,609 tokens on for BERT's width
# and from 73,729 for GPT-3's. An O hides exactly the constants that decide this. O(n² d + n d²), as document B has it
# elsewhere, is right, and silent about which term you have. (Its "O(n·d·d_ff) = O(4nd²)" for the feed-forward network
# has a constant inside an O, and half of the right one: two matrices are 8 n d² multiply-adds.)

# %%
models = {
    "BERT base": (512, 768),
    "GPT-2 small": (1024, 768),
    "GPT-3": (2048, 12288),
    "wide, long": (131072, 8192),
}
for name, (n, d_model) in models.items():
    share = costs.block_flops_by_part(n, d_model, 4 * d_model).attention_share
    crossing = costs.crossover_length(d_model, 4 * d_model)
    sizes = f"n = {n:>7,}, d = {d_model:>6,}"
    print(f"{name:>12}: {sizes}: n × n share {share:5.1%}; it leads from {crossing:,} tokens on")

# %% [markdown]
# ## What has to be remembered
#
# FLOPs pass; bytes stay. Two kinds of numbers grow with the sequence: vectors, of which there are n, and maps, which
# have n² entries for each head.

# %% [markdown] exercise="attention_matrix_bytes" role="header" minutes=5 lines=1 difficulty=1
# ## Exercise: bytes of the attention maps
#
# Count the bytes of one copy of a layer's attention weights.
#
# **Why it matters.** This is the tensor that ends many training runs with "out of memory". FlashAttention (chapter 8)
# exists in order never to hold it.
#
# **Contract.** One number for each pair of tokens, for each head, for each sequence of the batch, of `itemsize`
# bytes. Masked entries take memory like all others. Return an int.
#
# <details><summary>Hint 1: the idea</summary>
#
# What is the shape of the weights that `MultiHeadAttention` returns?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `(batch, heads, n, n)`: multiply, and then think of the bytes of each number.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Four factors, of which one is squared.
#
# </details>


# %% exercise="attention_matrix_bytes" role="answer"
def attention_matrix_bytes(batch: int, heads: int, sequence: int, itemsize: int = 4) -> int:
    """Count the bytes of one copy of a layer's attention weights."""
    # BEGIN SOLUTION
    return batch * heads * sequence * sequence * itemsize
    # END SOLUTION


# %% exercise="attention_matrix_bytes" role="test" points=1
from autograder import check

check(attention_matrix_bytes)

# %% exercise="attention_matrix_bytes" role="hidden test" points=1
from autograder import check

check(attention_matrix_bytes, hidden=True)

# %% [markdown]
# ### Claim on trial: "O(n² d) space"
#
# Document B gives attention O(n² d) time **and space**, and document A's table has O(seq_len² × d_model) for memory.
# We count what autograd keeps of one attention, beyond queries, keys and values, while only one size changes at a
# time.


# %%
def dropped_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend as a training layer does, with dropout on the weights."""
    shares = torch.softmax(query @ key.mT / math.sqrt(query.shape[-1]), dim=-1)
    return F.dropout(shares, 0.1) @ value


def kept(function, batch: int, heads: int, n: int, d_head: int) -> int:
    """Count the bytes that one call keeps for the backward pass."""
    inputs = [torch.randn(batch, heads, n, d_head, requires_grad=True) for _ in range(3)]
    return memory.saved_bytes(function, *inputs)


base = kept(tensor_attention, 1, 4, 512, 16)
grown = {
    "d_head × 4": kept(tensor_attention, 1, 4, 512, 64) / base,
    "heads × 4": kept(tensor_attention, 1, 16, 512, 16) / base,
    "n × 2": kept(tensor_attention, 1, 4, 1024, 16) / base,
}
assert base == costs.attention_matrix_bytes(1, 4, 512)
for change, factor in grown.items():
    print(f"{change:>12}: memory × {factor:g}")
print()
with_width = {"d_head × 4": grown["d_head × 4"] > 1}
with_length = {"n × 2": grown["n × 2"] == 4}
verdict("memory for the maps grows with d", with_width, depends_on="the width")
verdict("memory for the maps grows with n²", with_length, depends_on="the length")

# %% [markdown]
# A map holds **one number per pair and head**: O(h n²). (Document C says "n × n entries", and its formula is
# missing.) The width was summed over in the dot product and is gone. Heads are the mirror image: they cost no FLOPs,
# but each has a map.
#
# Document B later gives "4BHT² + 4BHTd bytes": B sequences, H heads, T tokens, 4 bytes for each number. The first
# term is one copy of the maps. How many copies there really are depends on the code:

# %%
batch, heads, n, d_head = 2, 4, 512, 64
one_copy = costs.attention_matrix_bytes(batch, heads, n)
copies = {
    "softmax alone": kept(tensor_attention, batch, heads, n, d_head) / one_copy,
    "with dropout": kept(dropped_attention, batch, heads, n, d_head) / one_copy,
    "fused kernel": kept(F.scaled_dot_product_attention, batch, heads, n, d_head) / one_copy,
}
plots.show(
    plots.bar_plot(
        copies,
        ylabel="copies of the n × n maps",
        title="What autograd keeps of one attention",
        ax=plots.panels(1, width=5.5)[0],
    )
)
verdict(
    "attention keeps one copy of its maps, 4BHT² bytes",
    {name: abs(count - 1) < 0.1 for name, count in copies.items()},
    depends_on="the implementation",
)

# %% [markdown]
# Dropout keeps three: the weights, a mask of those that it dropped, and what is left of the weights. The fused kernel
# keeps no map at all; its small bar is the output, d_head numbers per token instead of n (64 / 512 of a map), and one
# more number per token.
#
# ### Claim on trial: "more than 10,000 tokens need 100 GB"
#
# Document A: "For very long sequences (>10k tokens), this becomes problematic, consuming 100GB+ GPU memory." It has
# 12 blocks of width 768 in mind, so 12 heads. A cell cannot allocate that, but the meta device can pretend to:

# %%
with torch.device("meta"):
    x = torch.empty(1, 10_000, 768)
    stack = nn.Sequential(*(TransformerBlock(768, 12, 3072) for _ in range(12)))
    training = memory.saved_bytes(stack, x)
    with torch.no_grad():
        inference = memory.peak_bytes(stack, x).bytes
all_maps = 12 * costs.attention_matrix_bytes(1, 12, 10_000)
needs = {
    "inference": inference,
    "training with one copy of the maps": training,
    "training with dropout": training + (copies["with dropout"] - 1) * all_maps,
    "training with a fused kernel": training - all_maps,
}
for name, count in needs.items():
    print(f"{name:>35}: {count / 1e9:6.1f} GB")
print()
enough = {name: count >= 100e9 for name, count in needs.items()}
verdict("10,000 tokens need 100 GB", enough, depends_on="the use")

# %% [markdown]
# It is true of training with dropout, where autograd keeps more than one copy of each map, and of nothing else here.
# One number without its conditions (float32, 12 layers, 12 heads, batch 1, maps kept for the backward pass, dropout)
# cannot be checked. Yours should be one that can.
#
# > **Paper and practice: when memory runs out.** Document B announces "debugging approaches" here, and its list is
# > lost. Four that work: double n and double the batch, and see which term grows by 4; count what autograd keeps, as
# > above, or ask `torch.cuda.max_memory_allocated` on a GPU; check that attention really takes a fused kernel (asking
# > for the weights, or an unusual mask, can switch it off); and recompute instead of keeping (checkpointing, chapter
# > 12).
#
# ## Seconds, and how they lie
#
# Counts are exact. Seconds depend on the machine, its mood and the way you ask. Four things go wrong most often, and
# you will mend three of them in a moment:
#
# 1. **Warm-up.** The first calls allocate memory, load code, or compile it.
# 2. **Synchronization.** A GPU works through a queue. A call returns when the work has been handed over, not when it
#    is done.
# 3. **Spread.** Another program wakes up, and one sample is 30 times too long. One number hides that.
# 4. **Order.** The machine gets warm and slows down, and whatever is measured last looks slow.
#
# To practice without a GPU, and without luck, here is a device whose every second is known. Its clock obeys it:

# %%
device = fair_timing.FakeDevice(launch_seconds=[0.001], work_seconds=[0.9, 0.5, 0.1])
for call in range(4):
    before = device.clock()
    device.launch()
    returned = device.clock() - before
    device.synchronize()
    done = device.clock() - before
    print(f"call {call}: returned after {returned:.3f} s, was done after {done:.3f} s")

# %% [markdown] exercise="fair_seconds" role="header" minutes=12 lines=8 difficulty=3
# ## Bug hunt: a benchmark
#
# The function below is how a first benchmark usually looks. It runs, and the number that it returns is stable. Three
# colleagues report:
#
# 1. "I made the work ten times as large, and it takes exactly as long."
# 2. "Whatever I measure first is the slowest. I pass `warmup=3`, and nothing changes."
# 3. "Yesterday a backup was running for a second, and all my numbers doubled."
#
# **Why it matters.** The missing wait alone has turned a published ranking round: a function that seemed three times
# as fast as its rival, at 1.8 ms, took 15.8 ms once somebody had added the wait, and lost (see the sources).
#
# **Contract.** `function()` starts work and may return early; `synchronize()` waits until the device is idle;
# `clock()` gives seconds. Call `function` `warmup` times without counting. Then take `repeats` samples, one call
# each: from a moment at which the device is idle until it is idle again. Return the **median** in seconds (with an
# even number of samples, the mean of the two in the middle).
#
# <details><summary>Hint 1: where to look</summary>
#
# Which two of the five arguments does the function never use? And what does a mean do with one huge sample?
#
# </details>
# <details><summary>Hint 2: how to see it</summary>
#
# Time a `FakeDevice` whose work takes 5 s per call, and one with `queued=60.0`, which is still busy with somebody
# else's work: `fair_seconds(device.launch, device.synchronize, device.clock, repeats=5, warmup=0)`. A sample is right
# when it begins **and** ends with an idle device.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Warm up in a loop of its own. In the other loop: wait, look at the clock, call, wait, look again. Collect the
# samples in a list; `statistics.median` does the rest.
#
# </details>


# %% exercise="fair_seconds" role="answer"
def fair_seconds(function, synchronize, clock, repeats: int, warmup: int) -> float:
    """Return the median seconds of a call, with all the work that it starts."""
    # BEGIN SOLUTION
    for _ in range(warmup):
        function()
    samples = []
    for _ in range(repeats):
        synchronize()
        start = clock()
        function()
        synchronize()
        samples.append(clock() - start)
    return statistics.median(samples)
    # END SOLUTION
    # BEGIN STARTER
    # samples = []
    # for _ in range(repeats):
    #     start = clock()
    #     function()
    #     samples.append(clock() - start)
    # return statistics.mean(samples)
    # END STARTER


# %% exercise="fair_seconds" role="test" points=2
from autograder import check

check(fair_seconds)

# %% exercise="fair_seconds" role="hidden test" points=3
from autograder import check

check(fair_seconds, hidden=True)

# %% [markdown]
# The fourth fault, order, is not in one function but in how two are compared. Below, A and B are **the same**: on a
# machine that gets 3 % slower with every call. First all of A and then all of B; then by turns, and in the second
# round the other way round:

# %%
seconds_of_call = [1.03**call for call in range(12)]
orders = {"A first, then B": "AAAAAABBBBBB", "by turns": "ABBAABBAABBA"}
for name, order in orders.items():
    samples = {"A": [], "B": []}
    for who, seconds in zip(order, seconds_of_call, strict=True):
        samples[who].append(seconds)
    a, b = statistics.median(samples["A"]), statistics.median(samples["B"])
    print(f"{name:>16}: A {a:.2f} s, B {b:.2f} s; B / A = {b / a:.2f}")

# %% [markdown]
# From here on the notebook measures with `course_lib.timing`, which does all four: it warms up, waits for a GPU,
# takes turns, and reports the median **with** the spread. It says "faster" only when the difference is larger than
# the spread of both. Is PyTorch's fused attention faster than ours? "Ours" takes part twice below, and should not
# differ from itself:

# %%
tensors = tuple(torch.randn(1, 4, 512, 32) for _ in range(3))
contestants = {
    "ours": tensor_attention,
    "fused": F.scaled_dot_product_attention,
    "ours again": tensor_attention,
}
comparison = timing.compare(contestants, [512], inputs=lambda n: tensors)
print(comparison.text())

# %% [markdown]
# ## How cost grows
#
# If doubling the size multiplies the cost by 4, the cost grows as size², and the 2 can be read from measurements: it
# is the slope of a straight line when both axes are logarithms.
#
# $$\text{cost} = c \cdot \text{size}^p \quad\Longrightarrow\quad \log \text{cost} = \log c + p \, \log \text{size}$$

# %% [markdown] exercise="scaling_exponent" role="header" minutes=10 lines=4 difficulty=2
# ## Exercise: the exponent
#
# Fit a line to the logarithms by least squares and return its slope.
#
# **Why it matters.** This is how scaling laws are read from a handful of training runs, and how you find the loop in
# your code that was meant to be linear.
#
# **Contract.** `sizes` and `costs` are lists of positive numbers of the same length, in any order, with at least two
# different sizes. Fit log cost over log size with slope **and** intercept by least squares; return the slope as a
# float. Any library may help.
#
# <details><summary>Hint 1: the idea</summary>
#
# Any base of the logarithm will do, as long as both axes have the same. The factor c must not influence the result.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# Slope = Σ (x − mean x)(y − mean y) / Σ (x − mean x)². `statistics.linear_regression` or `np.polyfit` know that too.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Take logarithms of both lists; subtract each list's mean; divide the sum of the products by the sum of the squares
# of x.
#
# </details>


# %% exercise="scaling_exponent" role="answer"
def scaling_exponent(sizes: list[float], costs: list[float]) -> float:
    """Return p of the power size^p that fits the costs best."""
    # BEGIN SOLUTION
    log_sizes = [math.log(size) for size in sizes]
    log_costs = [math.log(cost) for cost in costs]
    return statistics.linear_regression(log_sizes, log_costs).slope
    # END SOLUTION


# %% exercise="scaling_exponent" role="test" points=1
from autograder import check

check(scaling_exponent)

# %% exercise="scaling_exponent" role="hidden test" points=2
from autograder import check

check(scaling_exponent, hidden=True)

# %% [markdown]
# ### Predict first: twice the tokens
#
# The two products of attention are quadratic, so twice the tokens mean four times the FLOPs. Now the clock: one head
# of width 64, no projections. How many times as long do 32 tokens take as 16?

# %%
my_prediction = None  # seconds for n = 32 over seconds for n = 16


def heads_of(n: int, heads: int = 1, d_head: int = 64) -> tuple[Tensor, Tensor, Tensor]:
    """Draw queries, keys and values."""
    return tuple(torch.randn(1, heads, n, d_head) for _ in range(3))


short_pair = timing.compare({"attention": tensor_attention}, [16, 32], inputs=heads_of)
reveal(my_prediction, short_pair.at("attention", 32).median / short_pair.at("attention", 16).median)

# %% [markdown]
# Next the whole range up to 4096, with a layer that is linear in n beside it. (At n = 4096 a single map takes 64 MiB;
# beyond that, plain attention leaves the memory of a small machine.)

# %%
LENGTHS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096][: steps(9, 7)]
linear_layer = nn.Linear(64, 256)
with torch.no_grad():
    timed = {}
    for n in LENGTHS:  # fewer repeats where a call takes long
        found = timing.compare(
            {
                "attention": tensor_attention,
                "linear layer": lambda query, key, value: linear_layer(query),
            },
            [n],
            inputs=heads_of,
            repeats=5 if n <= 1024 else 3,
            warmup=1,
            min_seconds=0.005,
        )
        timed[n] = {name: found.at(name, n).median for name in found.names}

attention_seconds = [timed[n]["attention"] for n in LENGTHS]
linear_seconds = [timed[n]["linear layer"] for n in LENGTHS]
attention_counts = [4 * n**2 * 64 for n in LENGTHS]
plots.show(
    plots.line_plot(
        LENGTHS,
        {"attention": attention_seconds, "linear layer": linear_seconds},
        xlabel="tokens n",
        ylabel="seconds per call",
        title="Flat at first, then steep",
        log_x=True,
        log_y=True,
    )
)
print("attention, exponent from each length to the next:")
for n, counted, measured in zip(
    LENGTHS,
    scaling.local_exponents(LENGTHS, attention_counts),
    scaling.local_exponents(LENGTHS, attention_seconds),
    strict=False,
):
    print(f"   from {n:>4}: FLOPs {counted:.2f}, seconds {measured:.2f}")

# %% [markdown]
# The FLOPs have the exponent 2 everywhere, exactly. The seconds have no single exponent. At small n they hardly grow:
# a call costs some microseconds before the first number is multiplied (Python, checks, a new tensor for each result),
# and that **fixed cost** is all there is to see. Where the curve leaves the plateau, the work begins to show. Further
# on, the maps no longer fit into the processor's cache, every number has to come from memory, and the exponent may
# exceed 2. (Single exponents jump when another program gets in the way, even below 0. Read the trend.)
#
# So one fit through all sizes mixes three regimes. The rule for the trial was fixed before it ran: an exponent is "2"
# when it lies within 0.15 of it.

# %%
large = [n for n in LENGTHS if n >= LENGTHS[-1] // 4]
large_seconds = [timed[n]["attention"] for n in large]
fits = {
    "FLOPs, all lengths": scaling.scaling_exponent(LENGTHS, attention_counts),
    "seconds, all lengths": scaling.scaling_exponent(LENGTHS, attention_seconds),
    f"seconds, n up to {LENGTHS[3]}": scaling.scaling_exponent(LENGTHS[:4], attention_seconds[:4]),
    f"seconds, n from {large[0]}": scaling.scaling_exponent(large, large_seconds),
}
for name, exponent in fits.items():
    print(f"{name:>24}: {exponent:.2f}")
print()
verdict(
    "attention grows as n²",
    {name: abs(exponent - 2) < 0.15 for name, exponent in fits.items()},
    depends_on="what is measured, and where",
)

# %% [markdown]
# **Count for complexity, time for experience.** A count tells what must happen when n grows; only the clock tells
# where you are today.
#
# ## What has to wait
#
# There is a cost that neither FLOPs nor bytes show: steps that cannot begin before others have ended. A recurrent
# network is made of them. Its state at step t needs the state at step t − 1 (document A's formula lost the index):
#
# $$h_t = \tanh(x_t W_x + h_{t-1} W_h + b)$$

# %% [markdown] exercise="rnn_forward" role="header" minutes=10 lines=6 difficulty=2
# ## Exercise: a recurrent network
#
# Write the loop.
#
# **Why it matters.** For a generation this was how machines read. You cannot judge what a transformer gains before
# you have seen the line that cannot be made parallel.
#
# **Contract.** `x` is `(batch, sequence, d_in)`, `w_x` is `(d_in, d_hidden)`, `w_h` is `(d_hidden, d_hidden)`, `b` is
# `(d_hidden,)`. Start from zeros; return **all** states, `(batch, sequence, d_hidden)`. Gradients flow through.
# PyTorch's `nn.RNN` is the judge and may not be called.
#
# <details><summary>Hint 1: the idea</summary>
#
# Keep one tensor, `(batch, d_hidden)`, that is replaced at every step, and a list of all it ever was.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `x[:, t]` is token t of every sequence. `torch.stack(list, dim=1)` puts a new axis in second place.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# For each t: the new state is the tanh of three terms; append it. After the loop, stack.
#
# </details>


# %% exercise="rnn_forward" role="answer"
def rnn_forward(
    x: Float[Tensor, "batch sequence d_in"],
    w_x: Float[Tensor, "d_in d_hidden"],
    w_h: Float[Tensor, "d_hidden d_hidden"],
    b: Float[Tensor, "d_hidden"],
) -> Float[Tensor, "batch sequence d_hidden"]:
    """Return every state of a recurrent network."""
    # BEGIN SOLUTION
    state = x.new_zeros(x.shape[0], w_h.shape[0])
    states = []
    for t in range(x.shape[1]):
        state = torch.tanh(x[:, t] @ w_x + state @ w_h + b)
        states.append(state)
    return torch.stack(states, dim=1)
    # END SOLUTION


# %% exercise="rnn_forward" role="test" points=1
from autograder import check

check(rnn_forward)

# %% exercise="rnn_forward" role="hidden test" points=2
from autograder import check

check(rnn_forward, hidden=True)

# %% [markdown]
# How long is the longest chain of operations that wait for one another? Autograd has recorded what depends on what,
# so it can be counted rather than timed:

# %%
weights = [torch.randn(shape, requires_grad=True) for shape in ((16, 16), (16, 16), (16,))]
small_block = TransformerBlock(16, 2, 64)
print(f"{'n':>5}{'recurrent':>12}{'block':>8}   operations on the longest path")
chains = {}
for n in (10, 100, 500):
    x = torch.randn(1, n, 16)
    chains[n] = (
        flop_counter.graph_depth(recurrent.rnn_forward(x, *weights)),
        flop_counter.graph_depth(small_block(x)),
    )
    print(f"{n:>5}{chains[n][0]:>12}{chains[n][1]:>8}")

# %% [markdown] exercise="sequential_depth" role="header" minutes=10 lines=8 difficulty=3
# ## Exercise: sequential depth
#
# Say how many layer applications stand in the longest chain of those that wait for one another, for three ways to run a
# stack of layers.
#
# **Why it matters.** Depth is the one cost that more hardware cannot buy off. It is why recurrent networks were
# replaced in training, and why a chatbot still answers word by word.
#
# **Contract.** One layer applied at one step (or, in a transformer that reads, to all tokens at once) counts 1.
#
# - `"rnn"`: a recurrent stack reads `sequence` tokens. Layer l at step t waits for layer l at step t − 1 and for
#   layer l − 1 at step t, and for nothing else.
# - `"transformer"`: a transformer reads tokens that are all known.
# - `"decode"`: a transformer writes: each token passes all layers before the next one can start.
#
# Another `kind` raises a `ValueError` that names it. Return an int.
#
# <details><summary>Hint 1: the idea</summary>
#
# Draw a table with a row for each layer and a column for each step. Write into each cell the earliest moment at which
# it can be computed.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# For the recurrent stack the moments grow by 1 to the right and by 1 upwards, so equal moments lie on diagonals: a
# wavefront. The last cell is the far corner.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The corner is sequence − 1 steps to the right of the first cell and layers − 1 above it. For the other two, ask what
# may be done in one go.
#
# </details>


# %% exercise="sequential_depth" role="answer"
def sequential_depth(kind: str, sequence: int, layers: int) -> int:
    """Count the longest chain of layer applications that wait for one another."""
    # BEGIN SOLUTION
    if kind == "rnn":
        return sequence + layers - 1
    if kind == "transformer":
        return layers
    if kind == "decode":
        return sequence * layers
    raise ValueError(f"kind must be 'rnn', 'transformer' or 'decode', got {kind!r}")
    # END SOLUTION


# %% exercise="sequential_depth" role="test" points=1
from autograder import check

check(sequential_depth)

# %% exercise="sequential_depth" role="hidden test" points=2
from autograder import check

check(sequential_depth, hidden=True)

# %% [markdown]
# ### Claim on trial: document A's table
#
# Document A compares an RNN, an LSTM or GRU, and a transformer. Four of its cells can be counted. First the depth:
# "O(1) (fully parallel)" for the transformer. The rule: a depth is O(1) if it does not grow from 100 to 1000 tokens.

# %%
same_depth = {}
for kind, use in (("transformer", "reading"), ("decode", "writing")):
    short, long = (costs.sequential_depth(kind, n, 12) for n in (100, 1000))
    print(f"{use}, 12 layers: {short:,} steps for 100 tokens, {long:,} for 1000")
    same_depth[f"{use}, 12 layers"] = short == long
print()
verdict(
    "a transformer's sequential depth is O(1) in n",
    same_depth,
    depends_on="reading or writing",
)

one_layer, twelve = (costs.sequential_depth("transformer", 512, layers) for layers in (1, 12))
verdict(
    "a reading transformer's depth is 1, whatever its size",
    {"1 layer": one_layer == 1, "12 layers": twelve == 1},
    depends_on="the layers",
)

# %% [markdown]
# Next the "time complexity per step" of LSTM and GRU. Both are recurrent networks with **gates**: numbers between 0 and
# 1, calculated at each step, which say how much of the old state stays and how much of a new one comes in. Each gate,
# and the new state itself, has two matrices, one for the state and one for the input; like PyTorch and the document,
# we call all of these gates. The document's cost is "O(4×hidden² + hidden×input) (4 gates)". Inside an O constants mean
# nothing, but the bracket and the number of gates can be checked on the weights of real layers, each of which is used
# once per step:

# %%
HIDDEN, INPUT = 256, 100
document_weights = 4 * HIDDEN**2 + HIDDEN * INPUT
fits_document = {}
print(f"hidden {HIDDEN}, input {INPUT}; document A's formula: {document_weights:,}")
for kind in ("rnn", "gru", "lstm"):
    layer = recurrent.recurrent_layer(kind, d_in=INPUT, d_hidden=HIDDEN)
    matrices = sum(weight.numel() for weight in layer.parameters() if weight.ndim == 2)
    gates = matrices // (HIDDEN * (HIDDEN + INPUT))
    ours = costs.recurrent_parameter_count(kind, INPUT, HIDDEN)
    assert flop_counter.counted_parameters(layer) == ours
    if kind != "rnn":
        fits_document[kind] = matrices == document_weights
    print(f"{kind:>5}: {matrices:>8,} weights = {gates} × hidden × (hidden + input)")
print()
verdict("an LSTM or GRU step costs 4 h² + h·i", fits_document, depends_on="the kind")

# %% [markdown]
# Every gate sees the input as well as the state, so the factor belongs around both: 4 (h² + h i) for an LSTM and 3
# (h² + h i) for a GRU, which has three gates. (With an input half as wide as the state the document's formula happens
# to be right for a GRU: set `INPUT = 128` above and run the cell again. One size is no test.)
#
# The transformer's cell, "O(seq_len² × d_model)", is not "per step" at all: it is a whole layer over a whole
# sequence, and it leaves out the n d² of the projections and the feed-forward network. (The row below, total training
# time, has the same gap.)
#
# Document A then works out an example: 12 blocks of width 768 on 512 tokens in batches of 32. It puts an RNN at
# "~100,000 operations per token sequentially", the transformer at (512² × 768 × 12) operations, "1-2s per batch", and
# calls its O(T²) "prohibitive" at T = 1000. (T is our n.) Counted:

# %%
said = 512**2 * 768 * 12
real = 12 * costs.block_flops(512, 768, 3072)
print(f"document A: 512² · 768 · 12 = {said:,} operations")
print(f"counted:    {real:,} FLOPs in a forward pass, {real / said:.0f} times as many")
wavefront = costs.sequential_depth("rnn", 512, 12)
print(f"RNN: 512 · 12 = {512 * 12:,} cells, not ~100,000; the longest chain has {wavefront}")
batch_flops = 3 * 32 * real  # backward costs about twice as much as forward
print(f"a batch of 32, forward and backward: {batch_flops / 1e12:.1f} trillion FLOPs,")
slow, fast = batch_flops / 10e12, batch_flops / 100e12
print(f"    {slow:.2f} s at 10 trillion a second, {fast:.2f} s at 100 trillion")
maps = costs.attention_matrix_bytes(batch=1, heads=12, sequence=1000)
print(f'"prohibitive" at T = 1000: the maps of one layer, 12 heads, take {memory.bytes_text(maps)}')

# %% [markdown]
# ### Claim on trial: faster by a thousand, faster by two or three
#
# Document A: for short sequences (T < 100) an RNN is "~1000× faster per step"; for long ones "Transformers become
# 2-3× faster". Both are claims about time, so here are a real RNN, LSTM and GRU and a real block, all of width 64, in
# training: forward and backward, one sequence, one thread. The rules, fixed in advance: "about 1000" is 300 to 3000;
# "2–3 times as fast" is at least 2.

# %%
WIDTH = 64
layers = {"block": TransformerBlock(WIDTH, 1, 4 * WIDTH)}
layers |= {kind: recurrent.recurrent_layer(kind, WIDTH, WIDTH) for kind in ("rnn", "gru", "lstm")}


def training_step(layer: nn.Module):
    """Make a function that runs a layer forward and backward."""

    def step(x: Tensor) -> None:
        found = layer(x)
        (found[0] if isinstance(found, tuple) else found).sum().backward()

    return step


TRAINED_LENGTHS = [16, 64, 256, 1024, 4096][: steps(5, 3)]
step_seconds = {name: [] for name in layers}
for n in TRAINED_LENGTHS:
    found = timing.compare(
        {name: training_step(layer) for name, layer in layers.items()},
        [n],
        inputs=lambda n: torch.randn(1, n, WIDTH),
        repeats=5 if n < 1024 else 3 if n == 1024 else 1,  # at 4096 the block takes long
        warmup=1 if n <= 1024 else 0,
        min_seconds=0.0,
    )
    for name in layers:
        step_seconds[name].append(found.at(name, n).median)

plots.show(
    plots.line_plot(
        TRAINED_LENGTHS,
        step_seconds,
        xlabel="tokens n",
        ylabel="seconds of a training step",
        title=f"Width {WIDTH}, one thread",
        log_x=True,
        log_y=True,
    )
)
print("seconds of a layer over seconds of the block:")
for name in ("rnn", "gru", "lstm"):
    ratios = [a / b for a, b in zip(step_seconds[name], step_seconds["block"], strict=True)]
    shown = (f"n={n}: {ratio:.2f}" for n, ratio in zip(TRAINED_LENGTHS, ratios, strict=True))
    print(f"{name:>6}: " + "  ".join(shown))

# %%
per_step, block_is_faster = {}, {}
for place, n in enumerate(TRAINED_LENGTHS):
    block_seconds = step_seconds["block"][place]
    if n < 100:
        fastest = min(step_seconds[name][place] for name in ("rnn", "gru", "lstm"))
        factors = {
            "one step against the whole block": n * block_seconds / fastest,
            "both per token": block_seconds / fastest,
        }
        for name, factor in factors.items():
            per_step[f"{name}, n={n}"] = 300 <= factor <= 3000
            print(f"n = {n}, the fastest recurrent layer, {name}: {factor:.3g} times as fast")
    if n >= TRAINED_LENGTHS[-1] // 4:
        for name in ("rnn", "gru", "lstm"):
            block_is_faster[f"{name}, n={n}"] = step_seconds[name][place] / block_seconds >= 2
print()
verdict(
    "for short sequences an RNN is ~1000 times as fast per step",
    per_step,
    depends_on="what is compared",
)
verdict(
    "for long sequences a transformer is at least twice as fast",
    block_is_faster,
    depends_on="the layer and the length",
)

# %% [markdown]
# The first comparison sets one token of the one against all tokens of the other. That alone gives away a factor of n,
# 16 or 64 here, and it is a factor of the question, not of the layer. The lines "both per token" show what is left of
# the thousand without it. (At 4096 tokens there is one sample each, without a spread: take it as rough.)
#
# As for long sequences: on **one thread** nothing runs in parallel, so the block's short chain buys nothing, and its
# n² has to be paid. What you see instead is who has the better kernel. PyTorch's LSTM runs its whole loop inside one
# fused routine; its GRU and RNN step through a general one. An LSTM does four times the work of an RNN, and may still
# win. That is a fact about software.
#
# Where the document is right is the reason that it gives: with thousands of processors, 12 waits beat 523. The counts
# say so on any machine; by how much, only a measurement on **your** hardware can. Document A also says that training
# on 1000 tokens takes "1000 sequential forward passes, then 1000 backward passes": it is one pass of 1000 **steps**
# each way.
#
# Document C's version is the careful one: transformers process all tokens in parallel "during training".

# %% [markdown]
# ## A real task: how far back can you learn?
#
# The long chain costs more than time. On its way to the first token, a gradient passes through every state, and each
# one takes something off. In attention the first token is one step away, from anywhere.
#
# The task: name the first of n tokens after the last one has been read. The first is one of 8 tokens that appear
# nowhere else; the rest is noise, drawn from 8 others. So attention, which gets no positions here, can tell it by what
# it is. Every model has the same embedding and the same output layer; **only the layer between them changes**. Each
# gets 200 steps. Guessing gives 1 / 8 = 0.125.

# %%
DISTANCES = [4, 16, 64]
CHOICES = 8


def first_token_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Compare the answers with the first tokens."""
    tokens, first = batch
    return F.cross_entropy(model(tokens), first)


def recalled(kind: str, length: int) -> float:
    """Train a fresh model and return the share of new sequences whose first token it names."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = FirstTokenReader(kind, CHOICES, d_model=32)
    batches = forever(lambda: first_token_batch(64, length, CHOICES, generator))
    train(model, batches, steps=200, learning_rate=0.005, loss=first_token_loss)
    tokens, first = first_token_batch(1000, length, CHOICES, torch.Generator().manual_seed(1))
    with torch.no_grad():
        return (model(tokens).argmax(dim=-1) == first).double().mean().item()


recall = {}
for kind in KINDS:
    for length in DISTANCES:
        print(f"{kind}, {length} tokens: ", end="")
        recall[kind, length] = recalled(kind, length)
print("\nshare recalled" + "".join(f"{length:>8}" for length in DISTANCES))
for kind in KINDS:
    print(f"{kind:>14}" + "".join(f"{recall[kind, length]:>8.3f}" for length in DISTANCES))

# %%
plots.show(
    plots.line_plot(
        DISTANCES,
        {kind: [recall[kind, length] for length in DISTANCES] for kind in KINDS},
        xlabel="tokens",
        ylabel="share recalled",
        title="Naming the first token after 200 steps",
        log_x=True,
    )
)

# %% [markdown]
# The reason can be measured on models that have learned **nothing yet**: how strongly the loss at the end pulls at
# the vector of each token, divided by the pull at the last one. A model cannot learn from a place where it feels no
# pull. (What is below 10⁻¹² is drawn at 10⁻¹².)

# %%
probe, _ = first_token_batch(200, 64, CHOICES, torch.Generator().manual_seed(2))
pulls = {}
for kind in KINDS:
    torch.manual_seed(0)
    pull = FirstTokenReader(kind, CHOICES, d_model=32).influence(probe)
    pulls[kind] = (pull / pull[-1]).clamp(min=1e-12).flip(0).tolist()  # the last token first
plots.show(
    plots.line_plot(
        list(range(64)),
        pulls,
        xlabel="steps back from the last token",
        ylabel="gradient, last token = 1",
        title="What reaches each token, before training",
        log_y=True,
    )
)
verdict(
    "any token is in direct reach: the first feels at least 1/1000 of the last one's gradient",
    {kind: pulls[kind][-1] >= 1e-3 for kind in KINDS},
    depends_on="the layer",
)

# %% [markdown]
# The gradient of the recurrent layers falls by a factor with every step back, so over 64 tokens nothing measurable is
# left. The gates of LSTM and GRU were invented to slow that fall. They do: over 16 tokens the plain RNN learns
# nothing, and they learn something or all. But gates that start half open let half of the state through, and half of
# a half of a half is soon nothing. (More steps, or a forget gate that starts open, would help them further; attention
# needs neither.) In attention every token but the last, which sits on the skip connection, feels nearly the same
# pull. Document C's short sentence, "any token can directly attend to any other token", is what this picture shows.

# %% [markdown]
# ## What writing costs: the KV cache
#
# A transformer that writes has to look back at all earlier tokens for every new one. Their keys and values do not
# change (nothing earlier can see what comes later), so they are kept: the **KV cache**. Queries are not; nobody asks
# an old question again.
#
# Here both ways write 96 tokens with a real layer. The outputs agree; the FLOPs do not:


# %%
def rewrite_everything(layer: MultiHeadAttention, x: Tensor) -> Tensor:
    """Run the layer over the whole past for every new token, and keep the last output."""
    return torch.cat([layer(*[x[:, :t]] * 3)[0][:, -1:] for t in range(1, x.shape[1] + 1)], dim=1)


def write_with_cache(layer: MultiHeadAttention, x: Tensor) -> Tensor:
    """Project only the new token, and look at what was kept of the others."""
    outputs, old_keys, old_values = [], [], []
    for token in x.split(1, dim=1):
        projected = (projection(token) for projection in (layer.w_q, layer.w_k, layer.w_v))
        query, new_key, new_value = (split_heads(vectors, layer.num_heads) for vectors in projected)
        old_keys.append(new_key)
        old_values.append(new_value)
        found, _ = tensor_attention(query, torch.cat(old_keys, dim=2), torch.cat(old_values, dim=2))
        outputs.append(layer.w_o(merge_heads(found)))
    return torch.cat(outputs, dim=1)


layer = MultiHeadAttention(d_model=64, num_heads=4)
written = [12, 24, 48, 96]
spent = {"everything again": [], "with a cache": []}
with torch.no_grad():
    for n in written:
        x = torch.randn(1, n, 64)
        assert torch.allclose(rewrite_everything(layer, x), write_with_cache(layer, x), atol=1e-5)
        spent["everything again"].append(flop_counter.counted_flops(rewrite_everything, layer, x))
        spent["with a cache"].append(flop_counter.counted_flops(write_with_cache, layer, x))

assert spent["everything again"][-1] == sum(costs.attention_flops(t, t, 64) for t in range(1, 97))
plots.show(
    plots.line_plot(
        written,
        spent,
        xlabel="tokens written",
        ylabel="FLOPs of one layer",
        title="The cache takes one power of n away",
        log_x=True,
        log_y=True,
    )
)
for name, counted in spent.items():
    exponent = scaling.scaling_exponent(written, counted)
    print(f"{name:>16}: exponent {exponent:.2f} in the number of tokens")

# %% [markdown]
# One power of n is saved. The exponents are near 2 and 1 here, since at these lengths the projections are most of the
# work; far beyond the crossover they become 3 and 2.
#
# The saving in FLOPs is paid in bytes, and with many users at once those bytes outgrow the weights.

# %% [markdown] exercise="kv_cache_bytes" role="header" minutes=5 lines=1 difficulty=1
# ## Exercise: bytes of the cache
#
# Count the bytes that a model keeps while it writes.
#
# **Why it matters.** This number is the reason for grouped-query attention (chapter 2): fewer heads of keys and
# values, the same number of heads that ask. It also says how many conversations one GPU can hold.
#
# **Contract.** Keys and values of every layer, `kv_heads` heads of `d_head` features, for `sequence` tokens of each
# of `batch` sequences, `itemsize` bytes each. The number of query heads plays no part. Return an int.
#
# <details><summary>Hint 1: the idea</summary>
#
# Ask what one token leaves behind in one layer; the rest is multiplication.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# One token leaves kv_heads · d_head numbers as its key, and as many as its value.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# A factor of 2, and every argument once.
#
# </details>


# %% exercise="kv_cache_bytes" role="answer"
def kv_cache_bytes(
    layers: int,
    kv_heads: int,
    d_head: int,
    sequence: int,
    batch: int = 1,
    itemsize: int = 2,
) -> int:
    """Count the bytes of the keys and values that generation keeps."""
    # BEGIN SOLUTION
    per_token = 2 * layers * kv_heads * d_head * itemsize
    return per_token * sequence * batch
    # END SOLUTION


# %% exercise="kv_cache_bytes" role="test" points=1
from autograder import check

check(kv_cache_bytes)

# %% exercise="kv_cache_bytes" role="hidden test" points=2
from autograder import check

check(kv_cache_bytes, hidden=True)

# %% [markdown]
# Some published sizes, in half precision, with one conversation of 8,192 tokens (for Llama 2 and GPT-2 beyond what
# they were trained for; the arithmetic does not mind):

# %%
# First against real tensors: the layer from above, 4 heads of 16 features, float32.
with torch.no_grad():
    projected = (projection(x) for projection in (layer.w_k, layer.w_v))
    kept_tensors = [split_heads(vectors, layer.num_heads).contiguous() for vectors in projected]
real_bytes = sum(tensor.nbytes for tensor in kept_tensors)
assert real_bytes == costs.kv_cache_bytes(layers=1, kv_heads=4, d_head=16, sequence=96, itemsize=4)
print(f"one layer, 96 tokens: {real_bytes:,} bytes, counted and computed\n")

published = {
    "GPT-2 small": (12, 12, 64),
    "Llama 2 7B": (32, 32, 128),
    "Llama 3 8B, 8 heads of keys": (32, 8, 128),
    "Llama 3 70B, 8 heads of keys": (80, 8, 128),
}
for name, (layer_count, kv_heads, d_head) in published.items():
    per_token = costs.kv_cache_bytes(layer_count, kv_heads, d_head, sequence=1)
    whole = costs.kv_cache_bytes(layer_count, kv_heads, d_head, sequence=8192)
    one, all_tokens = memory.bytes_text(per_token), memory.bytes_text(whole)
    print(f"{name:>30}: {one:>8} per token, {all_tokens} for 8192")

# %% [markdown]
# > **Paper and practice: who owns `d_head`.** Some models set `d_head` by itself rather than as d_model / heads, and
# > have fewer heads of keys than of queries. Calculators on the web have multiplied by the number of heads twice,
# > used the number of query heads, or recomputed d_head, and were off by the same factors as the wrong answers to
# > this exercise.

# %% [markdown]
# ## Which cost are you waiting for? The roofline
#
# A processor can calculate so many FLOPs per second, its **peak**, and fetch so many bytes per second, its
# **bandwidth**. Whichever takes longer decides. How much calculation comes on each byte is the **arithmetic
# intensity** of the work.

# %% [markdown] exercise="arithmetic_intensity" role="header" minutes=4 lines=1 difficulty=1
# ## Exercise: arithmetic intensity
#
# FLOPs per byte moved.
#
# **Why it matters.** One token times a large matrix and a thousand tokens times the same matrix are the same code and
# behave like two different programs. This number tells them apart.
#
# **Contract.** Two positive numbers (no FLOPs at all is allowed) in, a float out.
#
# <details><summary>Hint 1: the idea</summary>
#
# The same work with twice the bytes: should its intensity rise or fall, and by which factor?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# "Per" is a division. A copy calculates nothing and has the intensity 0, which tells you what stands above the line.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Use `/` and not `//`: many intensities are below 1.
#
# </details>


# %% exercise="arithmetic_intensity" role="answer"
def arithmetic_intensity(flops: float, bytes_moved: float) -> float:
    """Return the FLOPs that come on every byte moved."""
    # BEGIN SOLUTION
    return flops / bytes_moved
    # END SOLUTION


# %% exercise="arithmetic_intensity" role="test" points=1
from autograder import check

check(arithmetic_intensity)

# %% exercise="arithmetic_intensity" role="hidden test" points=1
from autograder import check

check(arithmetic_intensity, hidden=True)

# %% [markdown] exercise="attainable_flops" role="header" minutes=5 lines=1 difficulty=1
# ## Exercise: under the roof
#
# Give the FLOPs per second that a machine can reach at a given intensity.
#
# **Why it matters.** It says what to do. Under the slope, a faster processor helps nothing and moving fewer bytes
# helps everything: smaller numbers, larger batches, fused kernels. Under the flat top it is the other way round.
#
# **Contract.** `intensity` in FLOPs per byte, `peak_flops` in FLOPs per second, `bandwidth` in bytes per second, all
# numbers. Fetching and calculating go on at the same time. Return a number.
#
# <details><summary>Hint 1: the idea</summary>
#
# Suppose the processor were infinitely fast. How many FLOPs per second would the arriving bytes allow?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# Bytes per second times FLOPs per byte are FLOPs per second. Then there is the peak.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The lower of two limits.
#
# </details>


# %% exercise="attainable_flops" role="answer"
def attainable_flops(intensity: float, peak_flops: float, bandwidth: float) -> float:
    """Return the FLOPs per second that a machine reaches at best."""
    # BEGIN SOLUTION
    return min(peak_flops, intensity * bandwidth)
    # END SOLUTION


# %% exercise="attainable_flops" role="test" points=1
from autograder import check

check(attainable_flops)

# %% exercise="attainable_flops" role="hidden test" points=1
from autograder import check

check(attainable_flops, hidden=True)

# %% [markdown]
# ### Your machine's roof
#
# Both limits can be measured: the peak with a large square product, the bandwidth with the dot product of two arrays
# that hardly any cache can hold (each byte is fetched once, and used once). Then products with 1 to 256 rows, through a
# matrix of 2048 × 8192, go under the roof. Everything here is the **best** sample and not the median: a roof is about
# what is possible.

# %%
square = torch.randn(1024, 1024)
peak = 2 * 1024**3 / min(timing.measure(torch.mm, square, square, repeats=15).samples)
arrays = torch.randn(8_000_000), torch.randn(8_000_000)
dot_seconds = min(timing.measure(torch.dot, *arrays, repeats=15).samples)
bandwidth = sum(array.nbytes for array in arrays) / dot_seconds
print(f"peak {peak / 1e9:.0f} billion FLOPs a second")
print(f"bandwidth {bandwidth / 1e9:.1f} billion bytes a second")
print(f"the roof bends at {peak / bandwidth:.1f} FLOPs per byte")

ROWS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
matrix = torch.randn(2048, 8192)  # 64 MiB, so that hardly any cache keeps it between two calls
reached, limits, intensities = [], [], []
for rows in ROWS:
    work = roofline.product_work(rows, 2048, 8192)
    tokens = torch.randn(rows, 2048)
    seconds = min(timing.measure(torch.mm, tokens, matrix, repeats=5, warmup=1).samples)
    intensities.append(float(f"{work.intensity:.2g}"))
    reached.append(work.flops / seconds)
    limits.append(roofline.attainable_flops(work.intensity, peak, bandwidth))

plots.show(
    plots.line_plot(
        intensities,
        {"roof": limits, "measured": reached},
        xlabel="FLOPs per byte",
        ylabel="FLOPs per second",
        title="Products of 1 to 256 rows, under this machine's roof",
        log_x=True,
        log_y=True,
    )
)

# %% [markdown]
# At the left end, one token goes through the matrix: every weight is fetched (4 bytes), used for one multiply-add (2
# FLOPs), and forgotten: half a FLOP per byte. That is a chatbot writing its answer. Under an ideal roof, more rows
# cost no more time until it bends (real kernels follow in steps), which is why services write for many people at
# once, and why reading a long prompt is so much faster per token than writing an answer. (A point **above** the roof
# says that the roof was measured too low: the dot product did not read as fast as it could, or a cache helped.)
#
# The same number of FLOPs can have quite different intensities. Five ways to spend 134 million:

# %%
equal = {
    "64 tokens, width 1024": roofline.product_work(64, 1024, 1024),
    "more tokens, narrower": roofline.product_work(1024, 256, 256),
    "1 token, wider": roofline.product_work(1, 8192, 8192),
    "128 tokens, scores of 64 heads": roofline.product_work(128, 64, 128, products=64),
    "cached keys of 64 users": roofline.product_work(1, 64, 16384, products=64),
}
for name, work in equal.items():
    share = roofline.attainable_flops(work.intensity, peak, bandwidth) / peak
    numbers = f"{work.flops / 1e6:.0f} million FLOPs, {work.intensity:5.1f} per byte"
    print(f"{name:>31}: {numbers}, at best {share:4.0%} of the peak")

# %% [markdown]
# Compare the last line with the first. 64 tokens that share one matrix fetch it once; 64 users who each look at their
# own cached keys fetch 64 caches, and no larger batch helps: every new user brings a cache along. Weights can be
# shared between users, and caches cannot.

# %% [markdown]
# ## Explore: the whole bill
#
# The bars show where parameters, FLOPs and bytes go. The line predicts the seconds of a forward pass from FLOPs
# alone, at the best rate that **your machine** reached in the next cell; the diamonds are what it really took (4
# heads, one layer measured; the layers multiply). Things to try:
#
# 1. Width 64 or 128: where do the diamonds come nearest to the line? What keeps them off it at **small** n, and what at
#    **large** n?
# 2. Width 1,024: from which length on do the maps take more bytes than the weights? Then double the heads. What moves,
#    and what does not?
# 3. Come near GPT-3: width 8,192, 96 layers, 2,048 tokens. How large is the n × n share of the FLOPs?
# 4. Is there a setting at which keys and values are the largest part of the bytes? (There is a reason; compare n with
#    d and with d / heads.)

# %%
measured_blocks = {}
with torch.no_grad():
    for d_model in (64, 128):
        timed_block = TransformerBlock(d_model, 4, 4 * d_model)
        for n in [16, 64, 256, 1024, 2048][: steps(5, 3)]:
            sample = timing.measure(
                timed_block,
                torch.randn(1, n, d_model),
                repeats=5 if n < 1024 else 3,
                warmup=1,
                min_seconds=0.002,
            )
            measured_blocks[d_model, n] = sample.median

costs_explorer(measured_blocks)

# %% [markdown] exercise="why_is_it_slow" role="header" minutes=15
# ## Written question: why is it slow?
#
# A colleague serves a model of 32 layers, width 4096, d_ff 16384, 32 heads of queries, 32 of keys and values, in half
# precision. Users send 2,000 tokens and get 500 back. "It is too slow," she says, "because attention is quadratic. I
# will replace it by a linear one." What do you answer? Say where the time goes while the model **reads** and while it
# **writes**, with numbers of your own for both; what you would measure before changing anything, and how; and what
# you would try first. Half a page is enough; the cell below is for your numbers.
#
# Your teacher looks for five things: the share of the n² part while reading; what limits writing; the size of the
# cache; a measurement plan that would hold; and a first step that follows from all that.

# %%
# Room for your own numbers: what do costs.block_flops_by_part and costs.kv_cache_bytes say here?
sequence, d_model, d_ff, layer_count = 2000, 4096, 16384, 32

# %% [markdown] exercise="why_is_it_slow" role="written" points=5
# **Model answer.** While reading, n = 2000 is far below the crossover at 2 · 4096 + 16384 + 1 = 24,577 tokens. The n
# × n products take 4 n² d of 24 n d² + 4 n² d, which is n / (6 d + n) = 2000 / 26,576, about 7.5 %. Even a free
# attention would save no more than that, so a linear one cannot be the cure. Reading is bound by calculation: all
# 2000 tokens go through each matrix at once, with an intensity of many hundred FLOPs per byte.
#
# While writing, one token at a time passes all weights. A block has about 12 · 4096² = 201 million weights, 32 blocks
# 6.4 billion, 12.9 GB in half precision; each is fetched for 2 FLOPs, so the intensity is about 1 and the bandwidth
# decides: at 1.5 TB/s no more than about 116 tokens a second, whatever the FLOPs. Depth adds to it: 500 · 32 layer
# applications wait for one another, against 32 for reading.
#
# The cache: 2 · 32 · 32 · 128 · 2 bytes = 512 KiB per token, about 1.2 GiB for 2,500 tokens. Per conversation it is a
# tenth of the weights; with a batch of ten it is as large as they are and has to be fetched as well.
#
# I would time reading and writing apart, after a warm-up, synchronized, several runs by turns, median and spread, at
# two lengths and two batch sizes. If writing time hardly changes with the batch, it is bound by the weights.
#
# First steps: write for several users at once; keep the weights in 8 or 4 bits; use fewer heads of keys and values so
# that the caches of a larger batch fit. Linear attention would become interesting beyond about 25,000 tokens.
#
# **Rubric** (one point each)
#
# 1. Reading: the n² share computed (7 to 8 %), or the length compared with the crossover; most FLOPs are in matrices.
# 2. Writing: bound by fetching the weights (intensity about 1), or by depth 500 · 32; at least one number.
# 3. The cache in bytes, right within 10 %.
# 4. A measurement that separates reading from writing and names at least two of warm-up, synchronization, order,
#    spread.
# 5. A first step that follows from the numbers (batching, smaller numbers, fewer heads of keys), not a new attention.

# %% [markdown]
# ## Optional: your own formulas, together
#
# Do **your** functions agree with a whole model? This cell asks them for GPT-2 small: 12 blocks, 50,257 tokens and
# 1,024 places of width 768, and a last norm. It is not graded, and may fail while an answer is unfinished.

# %%
try:
    whole = 12 * block_parameter_count(768, 3072) + (50_257 + 1_024) * 768 + 2 * 768
    print(f"GPT-2 small by your count: {whole:,} parameters (published weights: 124,439,808)")
    billions = 12 * block_flops(1024, 768, 3072) / 1e9
    print(f"one forward pass of its blocks on 1024 tokens: {billions:.0f} billion FLOPs")
    print(f"n × n leads from {crossover_length(768, 3072):,} tokens on")
except NotImplementedError:
    print("not all of your functions are written yet; come back when they are.")

# %% [markdown]
# ## Summary
#
# - A block learns $4d^2 + 2 d\,d_\text{ff}$ weights, $5d + d_\text{ff}$ biases and $4d$ numbers in its norms. Heads
#   add nothing.
# - A pass through a block costs $8nd^2 + 4n^2d + 4nd\,d_\text{ff}$ FLOPs. The n² part leads only from
#   $n = 2d + d_\text{ff} + 1$ on: just above 6 d with the usual $d_\text{ff} = 4d$.
# - Maps take h n² numbers, no matter how wide the model is. How many copies are kept depends on the code; fused
#   kernels keep none.
# - An LSTM has 4 gates, a GRU 3 (the new state counted as one), and each sees state and input.
# - Counts have exact exponents. Seconds have a plateau of fixed costs at small n and pay for memory at large n.
# - A benchmark needs warm-up, synchronization, turns and a spread. A counter needs a test too.
# - A recurrent stack waits n + L − 1 times, a reading transformer L times, a writing one n · L times. On one thread
#   that buys no time; on parallel hardware it is the reason for transformers. The same long chain starves the
#   gradient.
# - The KV cache takes one power of n off the FLOPs of writing, and is paid in bytes.
# - One token at a time is bound by bandwidth; many tokens at once by calculation. Look under the roof before you
#   optimize.
#
# **Next:** chapter 8 takes the n² part seriously: windows, tiles, kernels, and caches.
#
# ### Sources
#
# - Vaswani et al. 2017, *Attention Is All You Need*, arXiv 1706.03762: §4 and table 1 (complexity, sequential
#   operations, path length).
# - Kaplan et al. 2020, *Scaling Laws for Neural Language Models*, arXiv 2001.08361: §2.1, table 1 (parameters and
#   FLOPs).
# - Williams, Waterman, Patterson 2009, *Roofline: An Insightful Visual Performance Model for Multicore
#   Architectures*, §3.
# - Shazeer 2019, *Fast Transformer Decoding: One Write-Head is All You Need*, arXiv 1911.02150, §3; Pope et al. 2022,
#   *Efficiently Scaling Transformer Inference*, arXiv 2211.05102, §3: the cache and what bounds decoding.
# - Dao et al. 2022, *FlashAttention*, arXiv 2205.14135, §3: maps that are never kept.
# - The repository 1ytic/warp-rnnt, issue 9: a benchmark before and after synchronization.
# - Elman 1990, *Finding Structure in Time*; Hochreiter and Schmidhuber 1997, *Long Short-Term Memory*; Cho et al.
#   2014, arXiv 1406.1078, §2.3 (the GRU).
# - Bengio, Simard, Frasconi 1994, *Learning Long-Term Dependencies with Gradient Descent is Difficult*: the fading
#   gradient.
# - Radford et al. 2019 (GPT-2), Devlin et al. 2018, arXiv 1810.04805 (BERT), Brown et al. 2020, arXiv 2005.14165,
#   table 2.1 (GPT-3), Touvron et al. 2023, arXiv 2307.09288 (Llama 2), Grattafiori et al. 2024, arXiv 2407.21783,
#   table 3 (Llama 3): sizes of models.
