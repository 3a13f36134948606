# ---
# title: "6 · Masking"
# ---

# %% [markdown] role="opening" minutes=35
# # 6 · Masking
#
# Attention looks at everything. Often it must not: a model that learns to foretell the next word must not see it, and
# a sentence must not read the padding that fills up its row. A mask says who may look at whom. It is a table of
# True and False, and getting it wrong raises no error. The wrong masks of this chapter even make the loss **better**.
#
# **At the end you can**
#
# - write any mask from one rule about a query's place and a key's place: causal, padding, sliding, prefix, packed;
# - say what True means in the library in front of you, and adapt a mask to it;
# - keep rows that see nothing from becoming NaN, in value and in gradient, in half precision too;
# - let queries continue a sequence whose keys were kept;
# - prove with gradients that a whole model sees no future, and spot a leak in a loss curve;
# - batch sequences of different lengths so that nobody's answer depends on their company.
#
# **You need** chapter 1's attention and chapter 4's block. Everything is PyTorch now.
#
# **The documents.** This chapter mirrors the two mistakes at the end of document A ("not handling variable-length
# sequences" and "forgetting that self-attention is all-to-all"), B's "Masking in Decoder Layers" and the mask in its
# section on GPT, and C's "Encoder, Decoder, And Causal Masking" with the mask in its code. Between them they use
# three conventions for one thing, and two of their masks work the wrong way round. You will find out which.

# %%
import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from autograder import check
from course_lib import dependence as detector
from course_lib import framework_encoder, mask_rules, masks, padded_batches, plots
from course_lib.models.classifier import TransformerClassifier
from course_lib.models.encoder_lm import EncoderLanguageModel
from course_lib.place_names import (
    LANGUAGES,
    PAD_ID,
    Alphabet,
    PlaceName,
    place_names,
    split_by_territory,
)
from course_lib.tensor_attention import tensor_attention
from course_lib.training.loop import forever, train
from course_lib.trial import reveal, verdict
from course_lib.widgets import mask_grid

# %% [markdown]
# ## The idea: one rule
#
# A mask answers one question for every pair: is the key at place j **hidden** from the query at place i? So a mask is
# a rule, hidden(i, j), and a table is what you get when you ask the rule about all pairs:
#
# | mask | hidden(i, j) when | who uses it |
# |---|---|---|
# | none | never | encoders such as BERT |
# | causal | j > i | GPT and every model that writes |
# | padding | j ≥ length of the sequence | everyone who batches |
# | both | one of the two | models that write, in batches |
# | sliding window | j > i, or j ≤ i − window | long texts (chapter 8) |
# | prefix | j > i and j ≥ length of the prefix | T5 as a language model |
# | packed documents | j > i, or i and j in different documents | pre-training |
#
# In this course **True hides**. The next cell asks six of these rules about six places. "Padding after 4" belongs to a
# sequence of 4 tokens in a row of 6. All scores are equal, so every visible key of a row gets the same share; what is
# hatched is hidden. `masks` is the course's own solution of the exercises below. (`WORDS`, the sentence of document C,
# will be needed soon.)

# %%
WORDS = ["Jessie", "ordered", "a", "hot", "burger", "today"]
after_four = mask_rules.padding(torch.tensor([4]))
strangers = mask_rules.documents(torch.tensor([0, 0, 0, 1, 1, 1]))
rules = {
    "causal": mask_rules.causal,
    "padding after 4": after_four,
    "causal and padding": mask_rules.either(mask_rules.causal, after_four),
    "sliding window of 3": mask_rules.sliding(3),
    "prefix of 3": mask_rules.prefix(3),
    "two documents": mask_rules.either(mask_rules.causal, strangers),
}
tables = {name: mask_rules.rule_mask(rule, 6).reshape(6, 6) for name, rule in rules.items()}
for three in (list(tables)[:3], list(tables)[3:]):
    row_of_plots = plots.panels(3, width=3.4, height=3.2)
    for ax, name in zip(row_of_plots, three, strict=True):
        even = masks.masked_softmax(torch.zeros(6, 6), tables[name])
        plots.attention_map(even.numpy(), mask=tables[name].numpy(), ax=ax, title=name)
    seen = {name: (~tables[name]).sum(dim=1).tolist() for name in three}
    plots.show(
        row_of_plots[0].figure,
        "Three masks over six places. Keys seen by queries 0 to 5: "
        + "; ".join(f"{name} {', '.join(map(str, counts))}" for name, counts in seen.items()),
    )

# %% [markdown]
# ### Predict first: how much does a causal mask hide?
#
# GPT-2 reads 1024 tokens at a time. Which share of the 1024 · 1024 cells, between 0 and 1, does its causal mask hide?

# %%
my_prediction = None  # a share between 0 and 1

reveal(my_prediction, masks.causal_mask(1024).double().mean().item())

# %% [markdown]
# Almost half: 1024 · 1023 / 2 cells. The diagonal stays visible. A kernel that knows the mask is causal need not
# compute the hidden half at all; a plain one computes it and throws it away.
#
# ### Explore: a mask of your own
#
# Every cell below is a switch; click it, or reach it with the Tab key and press Space. Space also opens the list of
# patterns; choose with the arrow keys and press Enter. (On the closed list, the arrow keys belong to the notebook.) The
# scores stay the same all the time; the numbers are the weights that the mask leaves. Things to try:
#
# 1. Start from "causal" and open a single cell above the diagonal. Who can see the future now, and whose weights
#    change?
# 2. Choose "nothing hidden" and hide a whole row. What becomes of its weights?
# 3. Choose "last two are padding". The rows of the padding are still open. Does that do harm?
# 4. Choose "document A's src_mask". Who sees whom? Keep the picture in mind: it returns in the bug hunt.

# %%
mask_grid()

# %% [markdown] exercise="causal_mask" role="header" minutes=10 lines=3 difficulty=2
# ## Exercise: the causal mask
#
# Hide the future, also from queries that **continue** a sequence.
#
# **Why it matters.** While a model writes, it keeps the keys and values of all earlier tokens and computes only the
# newest query. Then there is one query and many keys, and that query stands at the **last** place. Masks that take it
# for the first one have been shipped, and corrected, in several well-known attention kernels.
#
# **Contract.** Return a boolean `(n_q, n_k)`, True where query i must not see key j. The queries are the last `n_q` of
# `n_k` places: the last query sees every key. Without `n_k` there are as many keys as queries. With more queries than
# keys, the first rows stand before every key and see nothing.
#
# <details><summary>Hint 1: the idea</summary>
#
# At which place does query 0 stand, if there are 2 queries and 5 keys? Draw the 2 × 5 table first.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# Two ways: `torch.triu(table, diagonal=…)` keeps what lies above a diagonal that you can shift; or compare the keys'
# places with the queries' places, one as a row and one as a column.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Query i stands at place i + n_k − n_q. A key is hidden when its place is larger.
#
# </details>


# %% exercise="causal_mask" role="answer"
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    """Hide the future from queries that are the last of n_k places; True hides."""
    # BEGIN SOLUTION
    n_k = n_q if n_k is None else n_k
    query_places = torch.arange(n_q)[:, None] + n_k - n_q
    return torch.arange(n_k)[None, :] > query_places
    # END SOLUTION


# %% exercise="causal_mask" role="test" points=1
from autograder import check

check(causal_mask)

# %% exercise="causal_mask" role="hidden test" points=2
from autograder import check

check(causal_mask, hidden=True)

# %% [markdown]
# ### Claim on trial: two rules and a burger
#
# Document B writes the causal mask twice. For decoders it is "−∞ if i < j and 0 otherwise". For GPT, M has "−∞ in
# positions i > j". With queries as rows i and keys as columns j, which of the two hides the future?
#
# Document C says that "ordered can attend to Jessie and burger", and a page later that a decoder's token sees only
# "itself and earlier tokens". In its sentence the burger comes after the ordering.

# %%
places = torch.arange(6)
i, j = places[:, None], places[None, :]
for name, hidden in (("i < j", i < j), ("i > j", i > j)):
    print(f"-inf where {name}; the weights of queries 0 to 5:")
    for weights in masks.masked_softmax(torch.zeros(6, 6), hidden).tolist():
        print("  ", *(f"{weight:.2f}" for weight in weights))
    print()

verdict(
    "B's mask hides the future and shows the past",
    {
        section: bool(hidden[0, 1:].all()) and not hidden[-1].any()
        for section, hidden in (("decoders (i < j)", i < j), ("GPT (i > j)", i > j))
    },
    depends_on="which of its two sections you read",
)
ordered, burger = WORDS.index("ordered"), WORDS.index("burger")
no_mask = mask_rules.rule_mask(mask_rules.nothing, 6)
verdict(
    "'ordered' can attend to 'burger'",
    {
        "no mask, as in BERT": not no_mask[ordered, burger].item(),
        "causal, as in C's own code": not masks.causal_mask(6)[ordered, burger].item(),
    },
    depends_on="the mask",
)

# %% [markdown]
# ### Predict first: one query, six keys, and `is_causal`
#
# PyTorch's attention builds a causal mask by itself if you pass `is_causal=True`. Give it one query, the newest, and
# the six keys it should see. How many of the six values have a say in the output? (The cell asks gradients, with the
# leak detector that you will build below.)

# %%
my_prediction = None  # a number of keys, 1 to 6

generator = torch.Generator().manual_seed(1)
newest, kept_keys, kept_values = (torch.randn(1, n, 8, generator=generator) for n in (1, 6, 6))


def framework(values: Float[Tensor, "key d"]) -> Float[Tensor, "query d"]:
    """Attend with the framework's own causal mask."""
    return F.scaled_dot_product_attention(newest, kept_keys, values[None], is_causal=True)[0]


felt = detector.dependence(framework, kept_values[0])
reveal(my_prediction, int(felt.sum()))

# %% [markdown]
# One: the first and oldest. `is_causal` anchors the triangle at the **top left**, as if the newest query stood at
# place 0. Your mask is anchored at the bottom right. With it, reading one, two or three tokens at a time gives what one
# full pass gives, up to rounding. (`tensor_attention` is chapter 1's attention, written for PyTorch.)

# %%
query, key, value = (torch.randn(6, 8, generator=generator) for _ in range(3))
full_pass, _ = tensor_attention(query, key, value, masks.causal_mask(6))
for chunk in (1, 2, 3):
    steps = []
    for end in range(chunk, 7, chunk):
        newest = query[end - chunk : end]
        mask = masks.causal_mask(chunk, end)
        steps.append(tensor_attention(newest, key[:end], value[:end], mask)[0])
    difference = (torch.cat(steps) - full_pass).abs().max().item()
    print(f"{chunk} at a time: largest difference from the full pass {difference:.1e}")
    assert difference < 1e-6

# %% [markdown]
# > **Paper and practice: where the triangle is anchored.** For as many queries as keys there is no question. With
# > kept keys, GPT-2's and Llama's published code and the FlashAttention library anchor at the bottom right;
# > `F.scaled_dot_product_attention(is_causal=True)` and `torch.tril` at the top left. Chapter 8 builds the cache.

# %% [markdown] exercise="additive_mask" role="header" minutes=6 lines=1 difficulty=1
# ## Exercise: a mask to add
#
# Document B writes the mask as a matrix M of numbers that is added before the softmax:
#
# $$\text{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}} + M\right) V$$
#
# Turn a boolean mask into such numbers.
#
# **Why it matters.** The additive form can carry more than yes and no: ALiBi's distances (chapter 5) and T5's learned
# biases travel in the same M. Many kernels take nothing else.
#
# **Contract.** `mask` is boolean, of any shape. Return the same shape in the floating `dtype` given: −inf where the
# mask is True, 0 elsewhere, and no other number.
#
# <details><summary>Hint 1: the idea</summary>
#
# Choose one of two numbers for every cell. Multiplying looks shorter, but what is 0 · ∞?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `torch.zeros(…, dtype=…)` and `masked_fill`; or `torch.where` and a cast.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Zeros of the mask's shape and the asked dtype, filled with `-math.inf` where the mask is True.
#
# </details>


# %% exercise="additive_mask" role="answer"
def additive_mask(mask: Bool[Tensor, "*axes"], dtype: torch.dtype) -> Float[Tensor, "*axes"]:
    """Write a mask as numbers to be added to scores: -inf where True, 0 elsewhere."""
    # BEGIN SOLUTION
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(mask, -math.inf)
    # END SOLUTION


# %% exercise="additive_mask" role="test" points=1
from autograder import check

check(additive_mask)

# %% exercise="additive_mask" role="hidden test" points=1
from autograder import check

check(additive_mask, hidden=True)

# %% [markdown]
# > **Paper and practice: what stands in for −∞.** The published codes differ: −inf in minGPT, −10⁹ in the Annotated
# > Transformer, −10⁴ in BERT, −10¹⁰ in GPT-2, the dtype's lowest number in Hugging Face. As long as some other key is
# > visible and scores are ordinary, all hide well. The next cell shows where they part: a row in which all three keys
# > are hidden, visible scores of −20 000 beside a hidden third key, and half precision (float16).

# %%
nothing_seen, low_scores = torch.zeros(3), torch.tensor([-20_000.0, -20_000.0, 0.0])
all_hidden, last_hidden = torch.tensor([True, True, True]), torch.tensor([False, False, True])
for stand_in in (-math.inf, -1e9, -1e4, torch.finfo(torch.float32).min):
    empty = torch.softmax(nothing_seen.masked_fill(all_hidden, stand_in), dim=-1)
    low = torch.softmax(low_scores.masked_fill(last_hidden, stand_in), dim=-1)
    half = torch.tensor(stand_in).to(torch.float16).item()
    print(
        f"{stand_in:>10.3g}: all hidden {[round(w, 2) for w in empty.tolist()]}, "
        f"low scores {[round(w, 2) for w in low.tolist()]}, in float16 {half:.3g}"
    )

# %% [markdown]
# No finite number does everything that −inf does: −10⁴ loses against the low scores, so that the hidden key takes all,
# and float16, which ends at 65504, cannot hold the others. −inf hides under any scores, but makes the row that hides
# everything NaN, where the finite numbers give equal shares of keys that nobody may see. Neither is wanted.

# %% [markdown] exercise="masked_softmax" role="header" minutes=18 lines=3 difficulty=4
# ## Exercise: a softmax that obeys the mask
#
# Share 1 out among the visible keys of every row, and survive the row that has none.
#
# **Why it matters.** A row without a visible key is no curiosity. A sequence of nothing but padding, a left-padded
# sequence under a causal mask, a window that meets a document's border: each makes one. Without care it becomes NaN,
# and in the next layer everyone who looks at that token is NaN too.
#
# **Contract.** `scores` is `(..., query, key)`, `mask` is boolean and broadcasts against it; True hides. Return
# weights of the scores' shape. A hidden key has the weight 0 and its score has no influence, however large. The
# visible keys of a row share 1. A row that sees nothing is 0 everywhere. The gradient of the scores holds no NaN
# either, and is 0 for such a row. float16 and bfloat16 work too, and the dtype stays.
#
# <details><summary>Hint 1: the idea</summary>
#
# Hide before the softmax, so that the visible keys share everything. Then ask what is left to mend: where exactly is
# the NaN of a row of −inf?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `scores.masked_fill(mask, -math.inf)` returns a new tensor. It also lets no gradient through at the filled places,
# which is what keeps the NaN on its way back from reaching the scores. Adding −inf does not have that power.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Fill, take the softmax over the last axis, and fill once more: a NaN row is hidden in every place, so putting 0
# wherever the mask is True reaches all of it.
#
# </details>


# %% exercise="masked_softmax" role="answer"
def masked_softmax(
    scores: Float[Tensor, "*axes query key"],
    mask: Bool[Tensor, "..."],
) -> Float[Tensor, "*axes query key"]:
    """Share 1 out among the visible keys of every row; a row that sees nothing is 0."""
    # BEGIN SOLUTION
    shares = torch.softmax(scores.masked_fill(mask, -math.inf), dim=-1)
    return shares.masked_fill(mask, 0)
    # END SOLUTION


# %% exercise="masked_softmax" role="test" points=2
from autograder import check

check(masked_softmax)

# %% exercise="masked_softmax" role="hidden test" points=3
from autograder import check

check(masked_softmax, hidden=True)

# %% [markdown]
# ### Claim on trial: B's formula, and a row that sees nothing
#
# Is softmax(scores + M) always fine? Three queries over four keys: the first sees two of them, the second one, the
# third none. Look at the weights and at the gradient of the scores, for the plain formula, for one that mends the
# NaN afterwards, and for the course's `masked_softmax`.

# %%
mask = torch.tensor(
    [
        [False, True, False, True],
        [True, True, False, True],
        [True, True, True, True],
    ]
)
M = masks.additive_mask(mask, torch.float32)
ways = {
    "softmax(scores + M)": lambda s: torch.softmax(s + M, dim=-1),
    "NaN then set to 0": lambda s: torch.softmax(s + M, dim=-1).nan_to_num(0.0),
    "masked_softmax": lambda s: masks.masked_softmax(s, mask),
}
fine = {}
for name, way in ways.items():
    scores = torch.tensor([[0.5, -1.0, 2.0, 0.0]] * 3, requires_grad=True)
    weights = way(scores)
    (weights * torch.arange(4.0)).sum().backward()
    fine[name] = (weights.isfinite() & scores.grad.isfinite()).all(dim=-1).tolist()
    print(f"{name:>19}: weights of the last row {weights[2].tolist()}")
    print(f"{'':>19}  gradient of its scores {scores.grad[2].tolist()}")

print()
for name, rows in fine.items():
    verdict(
        f"{name} gives weights and gradients without NaN",
        {
            "a query that sees something": rows[0] and rows[1],
            "a query that sees nothing": rows[2],
        },
        depends_on="whether the query sees anything",
    )

# %% [markdown]
# The middle line is the treacherous one. Its output is clean and its gradient is not, so the loss of this step looks
# fine and every weight is NaN after it.
#
# In half precision one more trap waits: the customary −10⁹ does not exist there.

# %%
try:
    torch.zeros(2, dtype=torch.float16).masked_fill(torch.tensor([True, False]), -1e9)
except RuntimeError as error:
    print("filling a float16 tensor with -1e9:", error)
half_weights = masks.masked_softmax(torch.zeros(3, 4, dtype=torch.float16), mask)
print("masked_softmax in float16:", half_weights.tolist())

# %% [markdown]
# > **Paper and practice: hide before, not after.** Zeroing weights after the softmax is a fault that was merged and
# > later corrected in more than one library. The visible weights then share less than 1, and a hidden score still
# > moves them through the denominator. Dividing by what is left makes it right on paper, until a hidden score is far
# > above the others and all visible weights have become 0 first.
# >
# > **Paper and practice: a row that sees nothing.** Zeros in `F.scaled_dot_product_attention` since version 2.5 and in
# > the ONNX standard; equal shares of everything wherever a large negative number is used; NaN where −inf meets no
# > guard. This course says zeros.

# %% [markdown]
# ## One library, two meanings
#
# In `nn.MultiheadAttention` and `nn.TransformerEncoder`, a boolean mask's True hides, as in this course. In
# `F.scaled_dot_product_attention`, on which both are built, True means "takes part". Nothing warns: look at what
# happens when the mask is passed along as it is.

# %%
query, key, value = (torch.randn(1, 2, 5, 8, generator=generator) for _ in range(3))
ours, _ = tensor_attention(query, key, value, masks.causal_mask(5))
theirs = F.scaled_dot_product_attention(query, key, value, attn_mask=masks.causal_mask(5))
difference = (ours - theirs).abs().max()
print(f"largest difference between the two outputs: {difference:.2f}, and no error")

# %% [markdown] exercise="to_sdpa_mask" role="header" minutes=4 lines=1 difficulty=1
# ## Exercise: the adapter
#
# Turn a mask of this course into one for `F.scaled_dot_product_attention`.
#
# **Why it matters.** Every project that mixes the two has to turn the mask round exactly once: not never, and not
# twice.
#
# **Contract.** `mask` is boolean, True hides. Return a mask of the same shape for `F.scaled_dot_product_attention`'s
# `attn_mask`, so that its output equals `tensor_attention`'s under `mask`. Rows that see nothing count too.
#
# <details><summary>Hint 1: the idea</summary>
#
# What is hidden must be False, and what is seen must be True. Keep it boolean: that function **adds** a mask of
# numbers.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# PyTorch has a logical "not" that works entry by entry, as a function and as an operator. Python's own `not` wants a
# single truth value and raises.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The operator is `~`, the function `torch.logical_not`.
#
# </details>


# %% exercise="to_sdpa_mask" role="answer"
def to_sdpa_mask(mask: Bool[Tensor, "*axes"]) -> Bool[Tensor, "*axes"]:
    """Turn a mask in which True hides into one in which True takes part."""
    # BEGIN SOLUTION
    return ~mask
    # END SOLUTION


# %% exercise="to_sdpa_mask" role="test" points=1
from autograder import check

check(to_sdpa_mask)

# %% exercise="to_sdpa_mask" role="hidden test" points=1
from autograder import check

check(to_sdpa_mask, hidden=True)

# %% [markdown]
# > **Paper and practice: what True means.**
# >
# > | where | True, or 1 |
# > |---|---|
# > | this course, documents A and C, `nn.MultiheadAttention`, fairseq | hides |
# > | `F.scaled_dot_product_attention`, Keras, Flax, x-transformers | takes part |
# > | Hugging Face's `attention_mask` (numbers) | takes part |
# > | document B's M in the formula | is added: 0 shows, −∞ hides |
# > | document B's M for sparse patterns | 1 keeps |
# >
# > Three conventions in the documents alone. When you meet a mask, look for the line that uses it. When you write one,
# > say in its name what True means: `hidden`, `visible`, `is_padding`.

# %% [markdown] exercise="pad_batch" role="header" minutes=10 lines=5 difficulty=2
# ## Exercise: different lengths in one batch
#
# Lay sequences side by side, fill up the short ones, and remember where.
#
# **Why it matters.** A graphics card wants one rectangular tensor. Real texts are not rectangular.
#
# **Contract.** `sequences` is a list of lists of token ids, some perhaps empty. Return `(tokens, mask)`, both
# `(batch, longest)`: `tokens` int64 with each sequence at the left of its row and `pad_id` behind it, `mask` boolean
# and True at the padding. The mask comes from the **lengths**: a real token may have the id `pad_id`.
#
# <details><summary>Hint 1: the idea</summary>
#
# Two tables of the same shape. The mask needs nothing but the lengths: place j is padding when j is not below the
# length of its row.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `torch.full(shape, pad_id)` makes the tokens, a short loop fills in each row's beginning. For the mask compare
# `torch.arange(longest)` with the lengths as a column.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# `lengths[:, None]` is a column; `torch.arange(longest) >= lengths[:, None]` broadcasts to (batch, longest).
#
# </details>


# %% exercise="pad_batch" role="answer"
def pad_batch(
    sequences: list[list[int]], pad_id: int
) -> tuple[Int[Tensor, "batch token"], Bool[Tensor, "batch token"]]:
    """Lay sequences side by side, filled up at the right; the mask is True at padding."""
    # BEGIN SOLUTION
    ends = torch.tensor([len(sequence) for sequence in sequences])
    width = max(len(sequence) for sequence in sequences)
    rows = [list(sequence) + [pad_id] * (width - len(sequence)) for sequence in sequences]
    return torch.tensor(rows, dtype=torch.int64), torch.arange(width) >= ends[:, None]
    # END SOLUTION


# %% exercise="pad_batch" role="test" points=1
from autograder import check

check(pad_batch)

# %% exercise="pad_batch" role="hidden test" points=2
from autograder import check

check(pad_batch, hidden=True)

# %% [markdown]
# ### Claim on trial: `x_padded == 0`
#
# Document A makes its padding mask from the ids: `x_padded = torch.randint(0, 1000, (8, 20))` and then `padding_mask =
# x_padded == 0`. Does that mark the padding? Draw the document's batch 2000 times, and then a batch in the document's
# spirit: real ids from 1 up, 0 behind each end.

# %%
draws = torch.Generator().manual_seed(0)
batches = torch.randint(0, 1000, (2000, 8, 20), generator=draws)
marked = (batches == 0).sum(dim=(1, 2)).double()
nothing_marked = (marked == 0).double().mean()
print(f"A's batch holds no padding; its mask marks {marked.mean():.2f} real tokens on average")
print(f"in {100 * nothing_marked:.0f} of 100 draws it marks no token: the example masks nothing")

lengths = torch.tensor([20, 7, 12, 3])
is_padding = torch.arange(20) >= lengths[:, None]
outcomes = {}
for name, lowest in (("ids from 0 up", 0), ("ids from 1 up", 1)):
    batches = torch.randint(lowest, 1000, (2000, 4, 20), generator=draws)
    guessed = batches.masked_fill(is_padding, 0) == 0
    exact = (guessed == is_padding).all(dim=(1, 2))
    outcomes[name] = bool(exact.all())
    print(f"{name}: the mask is exact in {100 * exact.double().mean():.1f} of 100 batches")
print()
verdict(
    "`x == 0` marks the padding and nothing else",
    outcomes,
    depends_on="whether 0 is a real token",
)

# %% [markdown]
# The document's idea works where the vocabulary keeps one id for padding and nothing else, as BERT's does. GPT-2 has
# no such id; people reuse its end-of-text token, and a mask made from ids then hides the real ends as well. Lengths
# never lie. (The document's cell has a second fault: it hands ids to a stack that wants vectors, and raises.)

# %% [markdown] exercise="combine_masks" role="header" minutes=8 lines=1 difficulty=2
# ## Exercise: causal and padding
#
# A model that writes, trained in batches, needs both masks in one.
#
# **Why it matters.** The two tables have different shapes and different axes, and the shortest way to combine them
# goes wrong in silence whenever the batch is as large as the sequences are long.
#
# **Contract.** `causal` is `(n, n)`, `padding` is `(batch, n)`; True hides in both. Return boolean `(batch, 1, n, n)`,
# True where a key is hidden for either reason. The axis of size 1 is for the heads. Padding is hidden as a **key**;
# rows that belong to padding stay as they are, since nobody reads what they gather.
#
# <details><summary>Hint 1: the idea</summary>
#
# One reason is enough, so this is an "or". The rest is making room for axes.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `|` joins boolean tensors and broadcasts. Indexing with `None` makes an axis of size 1. Write down the shape that each
# table needs so that its axes meet those of (batch, head, query, key).
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# `padding[:, None, None, :]` is (batch, 1, 1, n), and its last axis runs over keys. The causal table fits as it is.
#
# </details>


# %% exercise="combine_masks" role="answer"
def combine_masks(
    causal: Bool[Tensor, "token token"], padding: Bool[Tensor, "batch token"]
) -> Bool[Tensor, "batch 1 token token"]:
    """Hide a key that lies in the future or is padding."""
    # BEGIN SOLUTION
    return causal | padding[:, None, None, :]
    # END SOLUTION


# %% exercise="combine_masks" role="test" points=1
from autograder import check

check(combine_masks)

# %% exercise="combine_masks" role="hidden test" points=2
from autograder import check

check(combine_masks, hidden=True)

# %% [markdown]
# ### Claim on trial: does a causal model need a padding mask?
#
# Document A passes a padding mask wherever sequences are padded. Take causal attention over padded rows, leave the
# padding mask out, and see how far the outputs of the **real** tokens move: once with the padding behind the tokens,
# once before them.

# %%
x = torch.randn(2, 1, 6, 8, generator=generator)
at_the_right = torch.tensor([[False] * 6, [False, False, False, True, True, True]])
at_the_left = at_the_right.flip(1)
moved = {}
for side, padded in (("behind the tokens", at_the_right), ("before the tokens", at_the_left)):
    with_both, _ = tensor_attention(x, x, x, masks.combine_masks(masks.causal_mask(6), padded))
    causal_alone, _ = tensor_attention(x, x, x, masks.causal_mask(6))
    moved[side] = (with_both - causal_alone)[~padded[:, None]].abs().max().item()
    print(f"padding {side}: real outputs move by {moved[side]:.2f} without the padding mask")
print()
verdict(
    "leaving the padding mask out changes what real tokens give",
    {f"padding {side}": amount > 0 for side, amount in moved.items()},
    depends_on="the side of the padding",
)

# %% [markdown]
# Behind the tokens, the padding is their future, and the causal mask hides it already. (The loss at padded places
# must still be left out.) So a test with right padding under a causal mask cannot notice a broken padding mask. Models
# that write in batches pad on the left, so that the newest token is last in every row, and there it counts.

# %% [markdown] exercise="document_mask" role="header" minutes=8 lines=2 difficulty=2
# ## Exercise: packed documents
#
# Padding is waste. Pre-training packs short documents into one long row instead, and a mask keeps them strangers.
#
# **Why it matters.** In the packed batch below there is no padding at all. Llama 3 was trained with such a mask
# (Grattafiori et al. 2024, §3.2).
#
# **Contract.** `document_ids` is `(n,)`: each token's document. The tokens of a document stand together. Ids are names;
# they need not rise. Return a boolean `(n, n)`, True where query i must not see key j: because it lies in the future,
# or in another document.
#
# <details><summary>Hint 1: the idea</summary>
#
# Two reasons, again joined by "or". One of them you have already.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# Compare the ids as a column with the ids as a row. Which comparison of two names is True for strangers?
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# `document_ids[:, None] != document_ids[None, :]` is the table of strangers. Join it with the causal mask of the same
# length: `masks.causal_mask(n)` is at hand, and so is your own.
#
# </details>


# %% exercise="document_mask" role="answer"
def document_mask(document_ids: Int[Tensor, "token"]) -> Bool[Tensor, "token token"]:
    """Hide the future and every other document."""
    # BEGIN SOLUTION
    strangers = document_ids[:, None] != document_ids[None, :]
    return strangers | masks.causal_mask(len(document_ids))
    # END SOLUTION


# %% exercise="document_mask" role="test" points=1
from autograder import check

check(document_mask)

# %% exercise="document_mask" role="hidden test" points=1
from autograder import check

check(document_mask, hidden=True)

# %% [markdown]
# Does each packed document get what it would get alone? And what does packing save? Eight documents of different
# lengths, padded into eight rows or packed into one:

# %%
lengths = [3, 11, 2, 5, 7, 1, 4, 6]
packed_ids = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
tokens = torch.randn(len(packed_ids), 8, generator=generator)
packed, _ = tensor_attention(tokens, tokens, tokens, masks.document_mask(packed_ids))
for document, length in enumerate(lengths):
    own = tokens[packed_ids == document]
    alone, _ = tensor_attention(own, own, own, masks.causal_mask(length))
    assert torch.allclose(alone, packed[packed_ids == document], atol=1e-6)
print("each packed document gives what it gives alone")
print(f"cells of tokens: {len(lengths) * max(lengths)} padded, {sum(lengths)} packed")

# %% [markdown] exercise="dependence" role="header" minutes=15 lines=4 difficulty=4
# ## Exercise: the leak detector
#
# A map of weights cannot prove that nothing leaks: a mask laid on **after** the softmax leaves clean weights and
# leaks through the denominator. Gradients can: if output i does not depend on input j, its derivative by x_j is 0.
# Write the function that asks a whole model.
#
# **Why it matters.** This is the test to run on every new attention, every cache and every mask, before a long
# training does it for you.
#
# **Contract.** `function` takes `(n_in, d_in)` and returns `(n_out, d_out)`. Return a boolean `(n_out, n_in)`: True
# where some feature of output i has a derivative by some feature of input j, at `x`, that is not exactly 0. However
# small: training amplifies. Beware of sums: effects on different features can cancel.
#
# <details><summary>Hint 1: the idea</summary>
#
# The Jacobian of the whole function is a table with four axes: output token, output feature, input token, input
# feature. Two of them have to go.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `torch.autograd.functional.jacobian(function, x)` computes the table, and `torch.func.jacrev(function)(x)` too.
# Compare with 0 **before** you join features, and join them with `any`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The table of `!= 0` has the axes (n_out, d_out, n_in, d_in). Take `any` over the last one and then over axis 1.
#
# </details>


# %% exercise="dependence" role="answer"
def dependence(function, x: Float[Tensor, "n_in d_in"]) -> Bool[Tensor, "n_out n_in"]:
    """Tell whether output i depends on input j, by gradients at x."""
    # BEGIN SOLUTION
    derivatives = torch.autograd.functional.jacobian(function, x)
    return (derivatives != 0).any(dim=-1).any(dim=1)
    # END SOLUTION


# %% exercise="dependence" role="test" points=1
from autograder import check

check(dependence)

# %% exercise="dependence" role="hidden test" points=3
from autograder import check

check(dependence, hidden=True)

# %% [markdown]
# Here it meets the mask that comes too late. The weights look perfect, and every output depends on every input.


# %%
def hidden_too_late(x: Float[Tensor, "token d"]) -> Float[Tensor, "token d"]:
    """Attend with a causal mask that is laid on after the softmax."""
    late = torch.softmax(x @ x.mT / math.sqrt(x.shape[-1]), dim=-1)
    return late.masked_fill(masks.causal_mask(len(x)), 0) @ x


x = torch.randn(6, 8, generator=generator)
late_weights = torch.softmax(x @ x.mT / math.sqrt(8), dim=-1).masked_fill(masks.causal_mask(6), 0)
weight_ax, felt_ax = plots.panels(2, width=3.6, height=3.4)
plots.attention_map(late_weights.numpy(), ax=weight_ax, title="Weights: no future in sight")
felt = detector.dependence(hidden_too_late, x)
plots.attention_map(felt.double().numpy(), ax=felt_ax, title="Dependence (1: felt): all of it")
late_felt = int(felt.triu(1).sum())
plots.show(
    weight_ax.figure,
    f"Two maps, 6 queries over 6 keys. Weights on later keys: all 0; {late_felt} of 15 are felt.",
)

# %% [markdown]
# ## Too good to be true
#
# Now the mask that the beginning of this chapter warned of. Document A ends with a causal encoder:
#
# ```
# causal_mask = torch.triu(torch.ones(seq_len, seq_len), diagonal=1).bool()
# # Upper triangular matrix: True (ignore) for positions j > i
# output = transformer_encoder(x, src_mask=~causal_mask)
# # Note: True = ignore, so we use ~causal_mask
# ```
#
# The comment on the table is right and the note on the call is not: the table is True at the future already, and the
# `~` turns it round.
#
# To see what that does to training, we need a task with a known limit. Take **random** tokens: each of 16 with the
# same chance, independent of all others. The next one cannot be foretold.
#
# ### Predict first: the floor
#
# A model sees any number of such tokens and names chances for the next. What is the lowest mean loss, in nats, that
# an honest model can reach? (The loss is −ln of the chance that it gave to what came.)

# %%
my_prediction = None  # nats

VOCAB, LENGTH = 16, 10
chances = torch.full((VOCAB,), 1 / VOCAB, dtype=torch.float64)
floor = -(chances * chances.log()).sum().item()
reveal(my_prediction, floor)

# %% [markdown]
# Each token has the chance 1/16, and no knowledge of the past improves on it: −ln(1/16) = ln 16 ≈ 2.77 nats. A loss
# that stays below that floor comes from a leak. Now train one model four times, with nothing changed but the mask. "One
# place too late" hides only what lies two or more places ahead.


# %%
def random_batch(
    generator: torch.Generator,
) -> tuple[Int[Tensor, "batch token"], Int[Tensor, "batch token"]]:
    """Draw random tokens, and the token that follows each."""
    drawn = torch.randint(VOCAB, (64, LENGTH + 1), generator=generator)
    return drawn[:, :-1], drawn[:, 1:]


trials = {
    "causal": masks.causal_mask(LENGTH),
    "document A's ~causal": ~masks.causal_mask(LENGTH),
    "one place too late": torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(2),
    "no mask": None,
}
models, curves = {}, {}
for name, mask in trials.items():
    torch.manual_seed(0)
    models[name] = EncoderLanguageModel(VOCAB, LENGTH, mask)
    stream = torch.Generator().manual_seed(0)
    batches = forever(lambda stream=stream: random_batch(stream))
    print(name)
    curves[name] = train(models[name], batches, steps=250, learning_rate=0.004)

# %%
every = max(1, len(curves["causal"]) // 25)
shown = {name: curve[::every] for name, curve in curves.items()}
shown["floor, ln 16"] = [floor] * len(shown["causal"])
plots.show(
    plots.line_plot(
        range(0, len(curves["causal"]), every),
        shown,
        xlabel="step",
        ylabel="loss (nats per token)",
        title="On random tokens, a loss below the floor is a leak",
    )
)
last = {name: sum(curve[-20:]) / len(curve[-20:]) for name, curve in curves.items()}
for name, loss in last.items():
    print(f"{name:>22}: {loss:.3f} nats after training")
print(f"{'floor':>22}: {floor:.3f} nats")
print(f"{'a tenth of the floor':>22}: {floor / LENGTH:.3f} nats")

# %% [markdown]
# The right mask ends at the floor, and the three wrong ones far below. If you compared curves, you would choose a
# wrong one. They stop at about a tenth of the floor: nine of ten places just read off the next token, and only the
# last place, behind which nothing stands, has to guess.
#
# Loss curves are no test for masks. The floor is one, if you know it; the leak detector needs no training at all:

# %%
detector_axes = plots.panels(2, width=4.6, height=4.2)
leaks = {}
for name in trials:
    embedded = models[name].embedding(torch.arange(LENGTH)).detach()
    found = detector.dependence(lambda rows, name=name: models[name].read(rows[None])[0], embedded)
    leaks[name] = found
    future = int(found.triu(1).sum())
    past = int(found.tril(-1).sum())
    print(f"{name:>22}: {future} of 45 later places felt, {past} of 45 earlier ones")
for ax, name in zip(detector_axes, ("causal", "document A's ~causal"), strict=True):
    felt = leaks[name].double().numpy()
    plots.attention_map(felt, mask=felt == 0, ax=ax, title=f"Felt (1) or not (hatched): {name}")
plots.show(
    detector_axes[0].figure,
    "Which of ten places each output depends on. With the causal mask: itself and all places "
    "before it, none after. With document A's: itself and all places after it, none before.",
)

verdict(
    "with `~causal_mask` the model does not see future tokens (document A)",
    {
        "the gradients": not leaks["document A's ~causal"].triu(1).any().item(),
        "the loss on random tokens": last["document A's ~causal"] > 0.95 * floor,
    },
    depends_on="what is measured",
)
verdict(
    "with `causal_mask` the model does not see future tokens",
    {
        "the gradients": not leaks["causal"].triu(1).any().item(),
        "the loss on random tokens": last["causal"] > 0.95 * floor,
    },
    depends_on="what is measured",
)

# %% [markdown]
# Under A's mask, information flows only backward in time. In the attention each place sees everything behind it and not
# even itself; that it depends on itself all the same is the residual path. The last query sees nothing at all. In
# training that goes unnoticed: the framework's fused attention gives such a row zeros. But switch to evaluation, where
# another piece of code serves.
#
# ### Predict first: NaN in evaluation
#
# Ten tokens, of which one query sees nothing and becomes NaN in the first layer. The model has two layers. How many of
# the ten tokens are NaN at the end?

# %%
my_prediction = None  # a number of tokens, 0 to 10

suspect = models["document A's ~causal"].eval()
with torch.no_grad():
    ten, _ = random_batch(torch.Generator().manual_seed(2))
    reveal(my_prediction, suspect(ten)[0].isnan().any(dim=-1).sum().item())

# %% [markdown]
# All ten. The first layer leaves one NaN, and in the second layer every query before it looks at that token. What a row
# without a visible key gives depends on which kernel serves you that day. That is why this course pins it.

# %% [markdown] exercise="repaired_causal_encoder" role="header" minutes=12 lines=2 difficulty=3
# ## Bug hunt: document A's causal encoder
#
# Below is the document's snippet as a function. Three users report:
#
# 1. "It raises a TypeError about `src_mask`."
# 2. "I renamed the argument, and now it complains about the size of the mask. With as many sequences as tokens it
#    complained about nothing."
# 3. "Now it runs, and my training loss is fantastic. The model writes nonsense."
#
# **Why it matters.** The first fault costs a minute and the second an hour. The third costs a training run.
#
# **Contract.** `encoder` is a batch-first `nn.TransformerEncoder` without dropout, `x` is `(batch, n, d_model)`.
# Return the encoder's output such that no place sees a later one. Mend what is there.
#
# <details><summary>Hint 1: where to look</summary>
#
# Ask `help(nn.TransformerEncoder.forward)` for the argument's name. Then: along which axis of a batch-first tensor do
# the tokens lie? Then read the two comments in the document's snippet again.
#
# </details>
# <details><summary>Hint 2: how to see it</summary>
#
# `detector.dependence(lambda rows: repaired_causal_encoder(encoder, rows[None])[0], x[0])` should be True on and
# below the diagonal, and nowhere else.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The argument is called `mask`, the tokens lie along axis 1, and the table is True at the future before anybody turns
# it round.
#
# </details>


# %% exercise="repaired_causal_encoder" role="answer"
def repaired_causal_encoder(
    encoder: nn.TransformerEncoder, x: Float[Tensor, "batch token d_model"]
) -> Float[Tensor, "batch token d_model"]:
    """Run a stack of the framework so that no place sees a later one."""
    # BEGIN SOLUTION
    seq_len = x.shape[1]
    future = torch.triu(torch.ones(seq_len, seq_len), diagonal=1).bool()  # True hides j > i
    return encoder(x, mask=future)
    # END SOLUTION
    # BEGIN STARTER
    # seq_len = len(x)
    # causal_mask = torch.triu(torch.ones(seq_len, seq_len), diagonal=1).bool()
    # # Upper triangular matrix: True (ignore) for positions j > i
    # return encoder(x, src_mask=~causal_mask)  # Note: True = ignore, so we use ~causal_mask
    # END STARTER


# %% exercise="repaired_causal_encoder" role="test" points=2
from autograder import check

check(repaired_causal_encoder)

# %% exercise="repaired_causal_encoder" role="hidden test" points=2
from autograder import check

check(repaired_causal_encoder, hidden=True)

# %% [markdown]
# A check that needs no gradient: cut the sequence short, and nothing before the cut may change.

# %%
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(16, 4, 64, dropout=0.0, batch_first=True)
stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
x = torch.randn(3, 7, 16, generator=generator)
whole = framework_encoder.causal_encoder(stack, x)
for cut in (1, 4, 6):
    part = framework_encoder.causal_encoder(stack, x[:, :cut])
    assert torch.allclose(part, whole[:, :cut], atol=1e-5)
print("what a place gives does not depend on what follows it")

# %% [markdown] exercise="masked_mean" role="header" minutes=8 lines=3 difficulty=2
# ## Exercise: a mean without padding
#
# To name a class for a whole sequence, a classifier averages its tokens. Document A's classifier averages all places.
#
# **Why it matters.** A mask in the attention keeps real tokens from looking at padding. It does not keep padding out
# of a mean that comes afterwards.
#
# **Contract.** `x` is `(batch, n, d)`, `mask` is `(batch, n)` and True hides. Return `(batch, d)`: the mean over the
# visible tokens of each sequence. A sequence without a visible token gives 0. The gradient holds no NaN, and the dtype
# stays.
#
# <details><summary>Hint 1: the idea</summary>
#
# Sum what is visible, count what is visible, divide. What should the count be where there is nothing?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `mask[..., None]` gives the mask an axis for the features. `clamp(min=1)` mends a divisor; mending the quotient
# afterwards leaves a NaN in the gradient.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Fill `x` with 0 where hidden and sum over axis 1. Count `~mask` over axis 1 with `keepdim=True`, at least 1, in x's
# dtype.
#
# </details>


# %% exercise="masked_mean" role="answer"
def masked_mean(
    x: Float[Tensor, "batch token d_model"], mask: Bool[Tensor, "batch token"]
) -> Float[Tensor, "batch d_model"]:
    """Average the tokens that the mask does not hide; a row without any gives 0."""
    # BEGIN SOLUTION
    total = x.masked_fill(mask[..., None], 0).sum(dim=1)
    seen = (~mask).sum(dim=1, keepdim=True).clamp(min=1)
    return total / seen.to(x.dtype)
    # END SOLUTION


# %% exercise="masked_mean" role="test" points=1
from autograder import check

check(masked_mean)

# %% exercise="masked_mean" role="hidden test" points=2
from autograder import check

check(masked_mean, hidden=True)

# %% [markdown]
# ## A real task: which language is this?
#
# "saksa", "niemcy", "németország", "almanya": four languages name one country. The Unicode project collects such names;
# JupyterLab brings them along in the package Babel, so that nothing is downloaded. Can a model hear the language in a
# single name? The test uses territories of which training saw no name in any language.

# %%
names = place_names()
training_names, test_names = split_by_territory(names, torch.Generator().manual_seed(0))
alphabet = Alphabet(name.text for name in names)
codes = list(LANGUAGES)

lengths = [len(name.text) for name in names]
print(f"{len(training_names)} names to learn from, {len(test_names)} to test")
print(f"{alphabet.vocab_size - 1} different characters; {min(lengths)} to {max(lengths)} in a name")
for name in test_names[:: len(test_names) // 6]:
    print(f"  {name.text} ({LANGUAGES[name.language]})")
most = max(sum(name.language == code for name in test_names) for code in codes) / len(test_names)
print(f"always naming the most frequent language would be right in {most:.0%} of the test")

# %% [markdown]
# The model: characters in their places (chapter 5), one block (chapter 4), a mean, a linear layer. The batch is padded
# to its longest name. Train it twice from the same start: once with the mask in the attention and in the mean (the
# **careful** model), once with no mask at all (the **careless** one).


# %%
def padded_names(items: list[PlaceName], more: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Give tokens, mask and languages of some names, with extra columns of padding if asked."""
    tokens, mask = padded_batches.pad_batch([alphabet.encode(item.text) for item in items], PAD_ID)
    tokens, mask = F.pad(tokens, (0, more), value=PAD_ID), F.pad(mask, (0, more), value=True)
    return tokens, mask, torch.tensor([codes.index(item.language) for item in items])


def language_loss(model: TransformerClassifier, batch: tuple) -> Tensor:
    """Score the named languages."""
    (tokens, mask), languages = batch
    return F.cross_entropy(model(tokens, mask), languages)


def trained_classifier(hide: bool) -> TransformerClassifier:
    """Train from a fixed start, with the padding hidden or seen."""
    torch.manual_seed(0)
    draws = torch.Generator().manual_seed(0)
    model = TransformerClassifier(
        alphabet.vocab_size,
        32,
        num_heads=4,
        num_layers=1,
        num_classes=len(codes),
    )

    def draw() -> tuple:
        chosen = torch.randint(len(training_names), (64,), generator=draws).tolist()
        tokens, mask, languages = padded_names([training_names[number] for number in chosen])
        return (tokens, mask & hide), languages

    train(model, forever(draw), steps=300, learning_rate=0.004, loss=language_loss)
    return model.eval()


print("careful: the padding is hidden")
careful = trained_classifier(hide=True)
print("careless: the padding is seen")
careless = trained_classifier(hide=False)

# %% [markdown]
# Now the same test names in different company: each alone, so that nothing is padded; all in one batch; and in a batch
# with more columns of padding. A third line uses the careful model and forgets the mask.


# %%
@torch.no_grad()
def answers(model: TransformerClassifier, hide: bool, more: int | None) -> Tensor:
    """Name every test name's language: alone if `more` is None, else together, more padded."""
    groups = [[name] for name in test_names] if more is None else [test_names]
    found = []
    for group in groups:
        tokens, mask, _ = padded_names(group, more or 0)
        found.append(model(tokens, mask & hide).argmax(dim=-1))
    return torch.cat(found)


truth = padded_names(test_names)[2]
extra_columns = [0, 10, 20, 40, 80]
uses = {
    "mask in training and use": (careful, True),
    "no mask at all": (careless, False),
    "mask forgotten in use": (careful, False),
}
rates, alone_rates, changed = {}, {}, {}
for name, (model, hide) in uses.items():
    alone = answers(model, hide, None)
    together = [answers(model, hide, more) for more in extra_columns]
    rates[name] = [(found == truth).double().mean().item() for found in together]
    alone_rates[name] = (alone == truth).double().mean().item()
    changed[name] = (alone != together[0]).double().mean().item()
    print(
        f"{name:>24}: {alone_rates[name]:.1%} right alone, {rates[name][0]:.1%} in one batch; "
        f"{changed[name]:.1%} of the answers differ"
    )

plots.show(
    plots.line_plot(
        extra_columns,
        {**rates, "most frequent language": [most] * len(extra_columns)},
        xlabel="extra columns of padding",
        ylabel="share of names right",
        title="With the mask, padding changes nothing",
    )
)

# %% [markdown]
# With the mask, a name gets the same answer alone and in any company. Without any mask the model learns about as well
# from the batches that it sees: it gets used to padding and may even read lengths from it. But its answer for a name
# now depends on which other names happen to stand in the batch, and served one by one, as an app would, it is worse.
# A model that was trained with the mask and is used without it is no better than always naming the most frequent
# language. (This is one seed. In the
# three that we tried the numbers differ and their order does not.)
#
# ### Claim on trial: "the mask tells the transformer to ignore padding positions"
#
# So document A comments its `src_key_padding_mask`. But that mask acts in the attention, and A's classifier averages
# afterwards. Take the careful model apart: hide padding in the attention, in the mean, in both, in neither.

# %%
two_masks, changes = {}, {}
with torch.no_grad():
    tokens, mask, _ = padded_names(test_names, more=20)
    nobody = torch.zeros_like(mask)
    alone = torch.cat([careful(*padded_names([name])[:2]) for name in test_names])
    for name, in_attention, in_mean in (
        ("neither", nobody, nobody),
        ("attention only", mask, nobody),
        ("mean only", nobody, mask),
        ("both", mask, mask),
    ):
        features = careful.encode(tokens, in_attention)
        logits = careful.head(padded_batches.masked_mean(features, in_mean))
        two_masks[name] = (logits.argmax(dim=-1) == truth).double().mean().item()
        changes[name] = (logits - alone).abs().max().item()
        print(f"{name:>15}: logits move by up to {changes[name]:.4f}, {two_masks[name]:.1%} right")

plots.show(
    plots.bar_plot(
        two_masks,
        ylabel="share of names right",
        title="Padding must be hidden twice",
        ax=plots.panels(1, width=6.0)[0],
    )
)
verdict(
    "with the padding mask in the attention, padding is ignored",
    {
        "mean over all places": changes["attention only"] < 1e-3,
        "mean over real tokens": changes["both"] < 1e-3,
    },
    depends_on="what happens after the attention",
)

# %% [markdown]
# What does the model listen for? Some test names, from the surest answer to the least sure, each with the chance that
# the model gives to its answer:

# %%
with torch.no_grad():
    chances = torch.softmax(careful(*padded_names(test_names)[:2]), dim=-1)
for number in chances.max(dim=-1).values.argsort(descending=True)[::30].tolist():
    name, best = test_names[number], chances[number].argmax()
    answer, truly = LANGUAGES[codes[best]], LANGUAGES[name.language]
    print(f"{name.text:>32}: {answer} ({chances[number, best]:.2f}), is {truly}")

# %% [markdown] exercise="too_good_to_be_true" role="header" minutes=15
# ## Written question: too good to be true
#
# A colleague has written an attention of her own for a language model of German texts. After a day of training its
# loss is 0.31 nats per token; the old model needed a week for 3.1. She is delighted. You are asked what you think.
#
# Say (a) why you doubt that the model has learned; (b) two different tests that would tell, what each would show if
# there is a leak and if there is none, and why neither of them is "look at the attention maps"; (c) how a mask can
# leak although every weight on a future token is 0; and (d) which measurement of this chapter supports you, with its
# numbers. A third of a page.

# %%
# Room for a measurement of your own.

# %% [markdown] exercise="too_good_to_be_true" role="written" points=4
# **Model answer.** (a) A tenfold better loss in a seventh of the time is not what a better kernel gives: it computes
# the same function. On text the floor is unknown, but human-written text keeps a good deal of uncertainty per token,
# and 0.31 nats means naming the right token with a chance of about exp(−0.31) = 0.73 on average. A model that sees the
# next token gets there easily.
#
# (b) Gradients: differentiate each output by each embedded input. Under a correct causal mask every derivative by a
# later token is exactly 0; with a leak some are not, after any amount of training, even none. Random tokens: train
# briefly on independent, evenly distributed tokens. An honest model stays at ln V; a leaking one falls below. (Also
# accepted: cut the sequence short, or change a later token, and compare earlier outputs.) Attention maps are not
# enough, since they show one part of the model and not what else reaches an output.
#
# (c) Zeroing weights after the softmax leaves weights of 0 on the future, but every visible weight was divided by a
# sum that the future's scores took part in. The visible weights tell about the future. (Also accepted: a norm or a
# convolution over the sequence, a wrong shift of the targets, a residual path from a later place.)
#
# (d) On random tokens with V = 16, floor ln 16 = 2.773: the causal model ended at 2.776; with the inverted mask, with
# the mask one place too late and with none, at about 0.283, which is near a tenth of the floor, since only the last of
# ten places had to guess. The detector found 0 of 45 later places under the right mask and 45 of 45 under A's.
#
# **Rubric** (one point each)
#
# 1. (a) names the loss as implausible for a reason: same function, or a floor, or the chance that it implies.
# 2. (b) two tests that are really different, each with both outcomes; the point about exactness or the floor.
# 3. (c) one way in which clean weights leak, explained and not only named.
# 4. (d) at least two numbers from this notebook, and what they show.

# %% [markdown]
# ## Optional: your own parts, together
#
# The trained classifier on **your** `pad_batch` and `masked_mean`. This cell is not graded, and may fail while your
# answers are unfinished.

# %%
try:
    mine, hidden = pad_batch([alphabet.encode(name.text) for name in test_names], PAD_ID)
    with torch.no_grad():
        features = masked_mean(careful.encode(mine, hidden), hidden)
        own_answers = careful.head(features).argmax(dim=-1)
    right = (own_answers == truth).double().mean()
    print(f"the classifier on your own parts: {right:.1%} of the names right")
except NotImplementedError:
    print("pad_batch or masked_mean is not written yet; come back when they are.")

# %% [markdown]
# ## Summary
#
# - A mask is one rule, hidden(i, j), asked about all pairs. Rules join by "or".
# - Say what True means. Here it hides; in `F.scaled_dot_product_attention` it takes part; numbers are added.
# - Queries that continue a sequence stand at its end: the causal triangle is anchored at the bottom right.
# - Hide before the softmax. Afterwards the future has already had its say.
# - A row that sees nothing needs a rule. Here: zeros, in value and in gradient. A large negative number gives equal
#   shares, −∞ alone gives NaN, and one NaN spreads in the next layer.
# - Padding is known by lengths, not by ids, and has to be hidden as a key **and** in the mean.
# - Under a causal mask, padding behind the tokens is hidden anyway; padding before them is not.
# - A wrong mask makes the loss better. Test with gradients, or on random tokens, whose floor is ln V nats for V
#   different tokens that are equally likely.
#
# **Next:** what all this costs. Chapter 7 counts parameters, FLOPs and bytes.
#
# ### Sources
#
# - Vaswani et al. 2017, *Attention Is All You Need*, arXiv 1706.03762, §3.2.3: masks in the decoder, "setting to −∞".
# - Raffel et al. 2020, *Exploring the Limits of Transfer Learning*, arXiv 1910.10683, §3.2.1: causal, full and prefix
#   masks side by side.
# - Krell et al. 2021, *Efficient Sequence Packing without Cross-contamination*, arXiv 2107.02027: packed documents.
# - Grattafiori et al. 2024, *The Llama 3 Herd of Models*, arXiv 2407.21783, §3.2: a document mask in pre-training.
# - Dong et al. 2024, *Flex Attention*, arXiv 2412.05496: a mask as a rule about two places.
# - PyTorch's documentation of `nn.MultiheadAttention`, `nn.TransformerEncoder` and
#   `F.scaled_dot_product_attention`: the two meanings of True, and where `is_causal` is anchored.
# - The Unicode Common Locale Data Repository, through Babel: the names of territories.
