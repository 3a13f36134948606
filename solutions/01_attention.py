# ---
# title: "1 · Scaled dot-product attention"
# ---

# %% [markdown] role="opening" minutes=30
# # 1 · Scaled dot-product attention
#
# Attention lets every token of a sequence look at every other token and take from each as much as it needs. It fits
# into one line of mathematics, and every transformer is built around it. In this chapter you build it in NumPy,
# measure why it has the form it has, and watch a model with a single attention learn a task.
#
# **At the end you can**
#
# - build attention from the softmax to the weighted mean, for one sequence or for a batch of many heads;
# - explain why scores are divided by √d_k, with numbers that you measured yourself;
# - carry a gradient back through attention by hand;
# - read an attention map, and say what it does not show;
# - find three faults in attention code that looks right.
#
# **You need** Python functions, NumPy's matrix product and broadcasting, and for two exercises the derivative of
# exp. PyTorch appears in a few cells that are written for you.
#
# **The documents.** The course follows three texts and tests what they say: A, "Inside a Transformer Block"; B,
# "Transformer Block Dissected Layer-by-Layer"; and C, "Transformers". This chapter mirrors A's "Scaled Dot-Product
# Attention" and its NumPy code, B's "Self-Attention Mechanism Overview", "Temperature Scaling in Attention" and
# "Numerical Instability in Softmax", and C's "Self-Attention".
#
# **How the checks work.** Below each exercise a check runs as often as you like: a pass prints one line, a failure
# says which case went wrong and, where it can tell, which idea led there. Every run draws new inputs from a seed
# that the message names, so `check(softmax, seed=7)` repeats a run exactly. The hidden cases, which count when your
# notebook is graded, ask for the same contract on more and harder inputs; `check(softmax, hidden=True)` tries them
# whenever you like, and nothing is graded by the clock.

# %%
import math
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float

from autograder import check
from course_lib import attention, plots
from course_lib.data import reversal_batch
from course_lib.models.reverser import Reverser
from course_lib.training.loop import forever, train
from course_lib.trial import reveal, verdict
from course_lib.widgets import attention_explorer

Array = np.ndarray

# %% [markdown]
# Annotations name the axes of an array. `Float[Array, "... query d_k"]` reads: an array of floats whose last two
# axes run over queries and over the d_k features of each; the dots stand for any axes before them, such as batch
# and heads, or none.
#
# Some cells ask you to **predict first**: you put a number in place of `None` and only then run the cell. A wrong
# prediction is worth more than none, because you will remember it. Other cells put a **claim on trial**: a sentence
# from the documents, a measurement, and a verdict that is computed from it. A claim that holds in every situation
# measured is supported, one that holds in none is refuted, and one that holds in some depends on what sets them
# apart.

# %% [markdown]
# ## The idea: a lookup that is soft
#
# A dictionary is a hard lookup. You bring a query; if one key is identical you get its value, and otherwise
# nothing.
#
# Attention makes the lookup soft. Queries and keys are vectors. The query is compared with **every** key, and the
# answer is a mixture of **all** values, in which a better match has a larger share. There is no failed lookup, and
# the result changes smoothly with the query, so that gradients can tune what is looked up. Document C's picture is
# a meeting: every token listens to all others, and to the ones it finds relevant it listens more.
#
# Here are two keys, one pointing right with the value 10 and one pointing up with the value 20. The function comes
# from `course_lib`; you will have built your own in half an hour.

# %%
keys = np.array([[1.0, 0.0], [0.0, 1.0]])
values = np.array([[10.0], [20.0]])

for query in ([9.0, 0.0], [2.0, 0.0], [1.0, 1.0], [0.0, 2.0]):
    mixture, shares = attention.scaled_dot_product_attention(np.array([query]), keys, values)
    print(f"query {query}: shares {shares[0].round(3)} give {mixture[0, 0]:.2f}")

# %% [markdown]
# A long query to the right gets the first value almost alone. A query between the two keys gets the mean. In
# symbols, with one row per position:
#
# $$\text{Attention}(Q, K, V) = \text{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# | | shape | a row says |
# |---|---|---|
# | query $Q$ | (n_q, d_k) | what this position looks for |
# | key $K$ | (n_k, d_k) | what this position can be found by |
# | value $V$ | (n_k, d_v) | what this position hands over |
#
# That is three steps. **Score** every query against every key. **Share**: turn each row of scores into weights that
# sum to 1. **Mix** the values with these weights. You build the shares first, then the scores, then the whole. The
# words "share" and "weight" mean the same number here. Document A uses one length and one width for all three
# arrays. That is the common case, but only two sizes must agree: d_k between queries and keys, n_k between keys and
# values.
#
# > **Another view: smoothing.** Averaging known values with weights that fall with distance is a statistician's
# > kernel smoother (Nadaraya 1964, Watson 1964). Expand |q − k|² and you see that attention is exactly that, with a
# > bell-shaped kernel, whenever all keys have the same length. The next cell checks it. Keep the condition in mind:
# > it returns in the second trial.

# %%
angles = np.array([0.0, 1.0, 2.5, 4.0])
circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)  # four keys of length 1
query = np.array([[0.6, 1.7]])

distances = np.linalg.norm(query - circle, axis=1)
bell = np.exp(-(distances**2) / (2 * math.sqrt(2)))  # by distance alone; 2√d_k sets its width
_, weights = attention.scaled_dot_product_attention(query, circle, np.eye(4))
assert np.allclose(bell / bell.sum(), weights[0])
print("attention:      ", weights[0].round(4))
print("kernel smoother:", (bell / bell.sum()).round(4))

# %% [markdown]
# ### Predict first: document A's four tokens
#
# Document A explains attention with four tokens. Their queries and keys are the same four vectors, so query 0 meets
# itself among the keys: key 0 is a perfect match, key 2 stands at a right angle to it. Which share of its
# attention, between 0 and 1, does query 0 give to key 0?

# %%
my_prediction = None  # a number between 0 and 1

toy = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.5, 1.0]])
toy_values = np.array([[2.0, 0.0], [1.5, 1.5], [0.0, 2.0], [1.5, 2.0]])
toy_output, toy_weights = attention.scaled_dot_product_attention(toy, toy, toy_values)

reveal(my_prediction, toy_weights[0, 0])

# %% [markdown]
# Below is the whole map: one row per query, one column per key, and every row sums to 1. Read row 0. Most people
# expect a perfect match to take nearly everything. With scores as small as these, attention is close to a plain
# average. It becomes selective only when training makes queries and keys longer.

# %%
plots.show(plots.attention_map(toy_weights, title="Document A's four tokens"))

# %% [markdown] exercise="softmax" role="header" minutes=10 lines=5 difficulty=2
# ## Exercise: softmax
#
# Turn each row of scores into shares that sum to 1:
#
# $$\text{weights}_j = \frac{e^{\text{score}_j}}{\sum_k e^{\text{score}_k}}$$
#
# **Why it matters.** GPT-2 small (12 layers, 12 heads) computes 12 · 12 · 1024 = 147,456 such rows for one text of
# 1024 tokens. One NaN in one row makes one token NaN, and the next layer hands it to the others. So the formula has
# to survive large and small scores alike.
#
# **Contract.** Any number of axes; the softmax runs over the last one. Scores of ±1000 give finite weights that are
# right. A score of −inf gets the weight 0. A row that holds only −inf has nothing to look at: its weights are all
# 0. The result keeps the dtype: float16, float32 or float64. The input stays as it was. Build it from `np.exp` and
# sums, not from a ready softmax.
#
# <details><summary>Hint 1: the idea</summary>
#
# Adding the same number to every score of a row changes no weight, since it cancels in the fraction. Which number
# makes the largest exponential exactly 1?
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `max` and `sum` with `axis=-1` act on each row, and `keepdims=True` keeps the result lined up with the rows.
# `np.isneginf` finds a row whose maximum is −inf; for such a row subtract 0 and let the exponentials be 0.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Take the maximum of each row; put 0 where it is −inf; exponentiate the difference; sum each row; divide, but by 1
# where the sum is 0. `np.where(condition, number, array)` does both replacements.
#
# </details>


# %% exercise="softmax" role="answer"
def softmax(scores: Float[Array, "... key"]) -> Float[Array, "... key"]:
    """Turn scores into weights that sum to 1 over the last axis."""
    # BEGIN SOLUTION
    peak = scores.max(axis=-1, keepdims=True)
    peak = np.where(np.isneginf(peak), 0, peak)
    exponentials = np.exp(scores - peak)
    total = exponentials.sum(axis=-1, keepdims=True)
    return exponentials / np.where(total == 0, 1, total)
    # END SOLUTION


# %% exercise="softmax" role="test" points=1
from autograder import check

check(softmax)

# %% exercise="softmax" role="hidden test" points=2
from autograder import check

check(softmax, hidden=True)

# %% [markdown]
# From here on the notebook uses `attention.softmax`, the finished function from `course_lib`, and it does so after
# every exercise. If your answer is not right yet, nothing below breaks. (Only "Run All" stops at a failing check;
# put the cursor in the next cell and run on.)
#
# ### Claim on trial: when does softmax give NaN?
#
# Document B warns that the softmax "can produce NaN values" in float32 when the largest score exceeds the smallest
# by more than 89. Here are five rows of two scores, some with a wide range and some with none. The plain softmax is
# the formula read literally; the safe one subtracts the maximum first.


# %%
def plain_softmax(scores: Float[Array, "key"]) -> Float[Array, "key"]:
    """Compute the formula as it is written."""
    with np.errstate(over="ignore", invalid="ignore"):  # the overflow is what we came to see
        return np.exp(scores) / np.exp(scores).sum()


rows = {
    "-200, 0": [-200.0, 0.0],
    "-90, 5": [-90.0, 5.0],
    "0, 95": [0.0, 95.0],
    "100, 100": [100.0, 100.0],
    "-104, -104": [-104.0, -104.0],
}
plain_is_nan, safe_is_nan = {}, {}
for name, row in rows.items():
    scores = np.array(row, dtype=np.float32)
    plain_is_nan[name] = bool(np.isnan(plain_softmax(scores)).any())
    safe_is_nan[name] = bool(np.isnan(attention.softmax(scores)).any())
    outcome = "NaN" if plain_is_nan[name] else "finite"
    sizes = f"range {np.ptp(scores):3.0f}, maximum {scores.max():4.0f}"
    print(f"{name:>10}: {sizes}, plain softmax {outcome}")

wide = {name for name, row in rows.items() if max(row) - min(row) > 89}
print()
verdict(
    "a range above 89 gives NaN in the plain softmax",
    {f"[{name}]": plain_is_nan[name] for name in rows if name in wide},
    depends_on="the maximum",
)
verdict(
    "a range below 89 is safe in the plain softmax",
    {f"[{name}]": not plain_is_nan[name] for name in rows if name not in wide},
    depends_on="the maximum",
)
verdict(
    "some of these rows give NaN in the safe softmax",
    {f"[{name}]": safe_is_nan[name] for name in rows},
    depends_on="the row",
)

# %% [markdown]
# The range is the wrong suspect. exp overflows in float32 above ln(3.4 · 10³⁸) ≈ 88.7, so the **maximum** decides.
# A row far below zero fails too: all its exponentials are 0, and 0/0 is NaN. Once the maximum is subtracted, finite
# scores never give NaN. What remains are rows with nothing to look at, which your contract covers, and scores of
# +inf, which it does not: whoever meets one has overflowed before the softmax.
#
# > **Paper and practice: softmax in float32.** Models run in half precision, where the limit is even lower: float16
# > overflows above exp(11.1). Many codes therefore raise the scores to float32 for the softmax alone and cast the
# > weights back; Meta's published Llama code is one. Both forms pass our checks.

# %% [markdown] exercise="attention_scores" role="header" minutes=8 lines=1 difficulty=1
# ## Exercise: scores
#
# Score every query against every key: the dot product, divided by √d_k.
#
# $$\text{score}_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}}$$
#
# **Why it matters.** This table is where the cost of attention lives. For 1024 tokens each head fills 1024² =
# 1,048,576 cells; twice the tokens, four times the cells. Chapters 7 and 8 are about living with it.
#
# **Contract.** `query` is `(..., n_q, d_k)`, `key` is `(..., n_k, d_k)`, the result is `(..., n_q, n_k)`: a row per
# query, a column per key. The dots may be any number of axes. The dtype stays.
#
# <details><summary>Hint 1: the idea</summary>
#
# One matrix product computes all dot products at once. Which of the two arrays must be turned so that the shared
# axis d_k meets itself?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `.T` turns **all** axes around, batch and heads too. `np.swapaxes(array, -1, -2)` turns only the last two.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# `query @ (the turned key)`, divided by `math.sqrt` of the last entry of `query.shape`.
#
# </details>


# %% exercise="attention_scores" role="answer"
def attention_scores(
    query: Float[Array, "... query d_k"], key: Float[Array, "... key d_k"]
) -> Float[Array, "... query key"]:
    """Score every query against every key: their dot product over √d_k."""
    # BEGIN SOLUTION
    return query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    # END SOLUTION


# %% exercise="attention_scores" role="test" points=1
from autograder import check

check(attention_scores)

# %% exercise="attention_scores" role="hidden test" points=2
from autograder import check

check(attention_scores, hidden=True)

# %% [markdown]
# > **Paper and practice: where the scale is applied.** The paper divides the scores. Much code multiplies the query
# > by `d_k ** -0.5` first, which is the same mathematics and sits better in half precision: the largest float16 is
# > 65,504. The next cell takes a query and a key whose 512 entries are all 12.

# %%
loud = torch.full((512,), 12.0, dtype=torch.float16)
print("scale after the product:", ((loud * loud).sum() / math.sqrt(512)).item())
print("scale before it:        ", (loud / math.sqrt(512) * loud).sum().item())

# %% [markdown] exercise="scaled_dot_product_attention" role="header" minutes=15 lines=5 difficulty=3
# ## Exercise: scaled dot-product attention
#
# Put the steps together: score, hide, share, mix.
#
# **Why it matters.** This is the operation that PyTorch offers as `F.scaled_dot_product_attention`. A language
# model calls it in every layer for every token that it reads or writes. With a mask, the same few lines serve as an
# encoder, a decoder and the bridge between them.
#
# **Contract.** `query` `(..., n_q, d_k)`, `key` `(..., n_k, d_k)`, `value` `(..., n_k, d_v)`; the four sizes may
# all differ. Return the pair `(output, weights)` with shapes `(..., n_q, d_v)` and `(..., n_q, n_k)`. `mask` is
# boolean and broadcasts against `(..., n_q, n_k)`; **`True` hides** a key from a query. A hidden key has the weight
# 0 and no influence at all. A query that sees nothing has weights 0 and output 0. The dtype stays. You may use
# `attention.softmax` and `attention.attention_scores`.
#
# <details><summary>Hint 1: the idea</summary>
#
# Hide a key before the shares are computed, not after: the visible keys should share the whole 1 among themselves.
# Which score has the share 0?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `np.where(mask, a, b)` takes from `a` where the mask is True and from `b` elsewhere. It returns a new array.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Compute the scores. If there is a mask, replace them by −inf where it is True. Take the softmax; it already
# handles a row of −inf. The output is `weights @ value`. Return both.
#
# </details>


# %% exercise="scaled_dot_product_attention" role="answer"
def scaled_dot_product_attention(
    query: Float[Array, "... query d_k"],
    key: Float[Array, "... key d_k"],
    value: Float[Array, "... key d_v"],
    mask: Bool[Array, "..."] | None = None,
) -> tuple[Float[Array, "... query d_v"], Float[Array, "... query key"]]:
    """Average the values by softmax(query keyᵀ / √d_k); return the output and the weights."""
    # BEGIN SOLUTION
    scores = attention.attention_scores(query, key)
    if mask is not None:
        scores = np.where(mask, -np.inf, scores)
    weights = attention.softmax(scores)
    return weights @ value, weights
    # END SOLUTION


# %% exercise="scaled_dot_product_attention" role="test" points=2
from autograder import check

check(scaled_dot_product_attention)

# %% exercise="scaled_dot_product_attention" role="hidden test" points=3
from autograder import check

check(scaled_dot_product_attention, hidden=True)

# %% [markdown]
# > **Paper and practice: what True means in a mask.** In this course, in the documents and in
# > `nn.MultiheadAttention`, True **hides**. In `F.scaled_dot_product_attention` True means "takes part". Hugging
# > Face's `attention_mask` holds 1 for a token that is **seen**. Read the page before you pass a mask along; the
# > shapes fit either way, and nothing warns. Chapter 6 has the adapter.
# >
# > **Paper and practice: returning the weights.** We return `(output, weights)` because you want to look.
# > `nn.MultiheadAttention` returns a pair too, but averages the weights over its heads unless you say otherwise.
# > `F.scaled_dot_product_attention` returns the output alone: its fast kernels never hold the whole table of
# > weights (chapter 8).
#
# ### Claim on trial: document A's toy numbers
#
# Document A prints row 0 of the map above, with the comment that it "should be softmax of similarities [1.0, 0.7,
# 0.0, 1.4] / sqrt(2)". It concludes that "positions with similar queries and keys get high attention". First the
# numbers, then the conclusion: does the key that is nearest in direction (by cosine) get the largest weight of its
# row?


# %%
def nearest_wins(keys: Float[Array, "key d_k"]) -> dict[str, bool]:
    """Say for each query whether the key nearest in direction gets the largest weight."""
    _, weights = attention.scaled_dot_product_attention(toy, keys, toy_values)
    lengths = np.linalg.norm(toy, axis=1)[:, None] * np.linalg.norm(keys, axis=1)
    nearest = (toy @ keys.T / lengths).argmax(axis=1)
    return {f"query {i}": weights[i, nearest[i]] == weights[i].max() for i in range(len(toy))}


said, computed = [1.0, 0.7, 0.0, 1.4], (toy @ toy.T)[0]
print("row 0 as said:    ", said)
print("row 0 as computed:", computed.tolist(), "\n")
as_said = np.allclose(computed, said)
verdict(f"the similarities are {said}", {"row 0": as_said}, depends_on="the row")
verdict(
    "the key nearest in direction gets the largest weight",
    nearest_wins(toy),
    depends_on="the query",
)
unit_keys = toy / np.linalg.norm(toy, axis=1, keepdims=True)
verdict("it does when all keys are equally long", nearest_wins(unit_keys), depends_on="the query")

print("weights of query 1: ", toy_weights[1].round(4))
print("lengths of the keys:", np.linalg.norm(toy, axis=1).round(3))

# %% [markdown]
# Two of the four numbers in the comment are wrong. By its last number position 3 would win row 0; in truth position
# 0 does. And query 1, which equals key 1, attends most to key 3, because **a dot product measures length as well as
# direction**, and key 3 is the longest. That is no weakness: a model can learn long keys for tokens that all should
# notice. It is only not the same as similarity.

# %% [markdown]
# ### Explore: one query among five keys
#
# Move the query and watch weights, entropy and output. Each key's value is its own place, so the output always lies
# among the keys. Things to try:
#
# 1. Keys A and E lie in nearly the same direction. Point the query straight at E. Which of the two wins, and why?
# 2. Where must the query stand for all weights to be equal?
# 3. Lower the temperature as far as it goes. What kind of lookup do you have now?
# 4. Leave the width at 64 and stop dividing by √d_k. Which temperature brings the weights back? (The reason comes
#    below, under "Why divide by √d_k?".)

# %%
attention_explorer()

# %% [markdown] exercise="self_attention" role="header" minutes=8 lines=2 difficulty=2
# ## Exercise: self-attention
#
# So far queries, keys and values were simply given. In **self**-attention all three come from the same tokens, by
# three learned matrices:
#
# $$Q = X W_Q, \qquad K = X W_K, \qquad V = X W_V$$
#
# **Why it matters.** In a transformer block this is the only place where tokens exchange anything; all other parts
# treat each token alone. And the three matrices are all that a head learns.
#
# **Contract.** `x` is `(n, d)`, a row per token; `w_q` and `w_k` are `(d, d_k)`, `w_v` is `(d, d_v)`; d, d_k and
# d_v may all differ. Return `(output, weights)` with shapes `(n, d_v)` and `(n, n)`. The dtype stays. You may use
# `attention.scaled_dot_product_attention`.
#
# <details><summary>Hint 1: the idea</summary>
#
# Make the three roles first; after that nothing is new.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# Tokens are rows, so a matrix acts from the right: `x @ w_q`. No transpose is needed.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Call the attention of the last exercise with three products, in the order query, key, value.
#
# </details>


# %% exercise="self_attention" role="answer"
def self_attention(
    x: Float[Array, "token d"],
    w_q: Float[Array, "d d_k"],
    w_k: Float[Array, "d d_k"],
    w_v: Float[Array, "d d_v"],
) -> tuple[Float[Array, "token d_v"], Float[Array, "token token"]]:
    """Let every token attend to all tokens; return the output and the weights."""
    # BEGIN SOLUTION
    return attention.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)
    # END SOLUTION


# %% exercise="self_attention" role="test" points=1
from autograder import check

check(self_attention)

# %% exercise="self_attention" role="hidden test" points=2
from autograder import check

check(self_attention, hidden=True)

# %% [markdown]
# ### What self-attention cannot see
#
# Shuffle the tokens, and the outputs come out shuffled in the same way, unchanged. No output can tell whether its
# token stood first or last. The next cell shows it for random weights; the task at the end of this chapter shows
# what it costs.

# %%
generator = np.random.default_rng(1)
tokens = generator.normal(size=(6, 5))
matrices = [generator.normal(size=(5, width)) for width in (3, 3, 4)]
order = generator.permutation(6)

in_order, _ = attention.self_attention(tokens, *matrices)
shuffled, _ = attention.self_attention(tokens[order], *matrices)
assert np.allclose(shuffled, in_order[order])
print("shuffling the tokens by", order.tolist(), "shuffles the outputs and changes nothing else")

# %% [markdown]
# ## Why divide by √d_k?
#
# Document A answers with an example: "if d_k = 512 and all values are ~1, the sum is ~512". Scores so large make
# the softmax "nearly one-hot", which "limits gradient flow", and the division keeps them "typically [-1, 1]". The
# paper argues differently, about **spread**: its entries are independent, with mean 0 and variance 1. Two exercises
# follow the paper's argument; then the document's claims go on trial.
#
# ### Predict first: a sum of 1024 products
#
# Draw two vectors with 1024 independent entries each, mean 0 and standard deviation 1, and take their dot product.
# Do it many times. What is the standard deviation of the results?

# %%
my_prediction = None  # the standard deviation of q · k for d_k = 1024

left, right = np.random.default_rng(2).normal(size=(2, 2000, 1024))
reveal(my_prediction, (left * right).sum(axis=1).std())

# %% [markdown] exercise="expected_score_std" role="header" minutes=6 lines=1 difficulty=1
# ## Exercise: the spread of a score
#
# Write down as a formula what you just measured: the standard deviation of q · k for any d_k, with and without the
# division by √d_k.
#
# **Why it matters.** A model is trained from random weights, so this number says what attention looks like at step
# 0, for a head of width 64 or of width 256. T5 leaves out the division and starts with smaller query weights
# instead; whoever ports such a model must know that the two come to the same spread.
#
# **Contract.** `d_k` is a whole number of at least 1 and `scaled` says whether the score is divided by √d_k.
# Entries of both vectors are independent, with mean 0 and variance 1. Return a float: the exact value, not a
# simulation.
#
# <details><summary>Hint 1: the idea</summary>
#
# The product of two independent entries with mean 0 and variance 1 has mean 0 and variance 1 · 1. Variances of
# independent terms add up.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# The standard deviation is the square root of the variance. Dividing a score by a number divides its standard
# deviation by the same number.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The variance of the sum is d_k. Take the root for the raw score; then divide that by √d_k for the scaled one.
#
# </details>


# %% exercise="expected_score_std" role="answer"
def expected_score_std(d_k: int, scaled: bool) -> float:
    """Predict the standard deviation of a score of two random vectors."""
    # BEGIN SOLUTION
    return 1.0 if scaled else math.sqrt(d_k)
    # END SOLUTION


# %% exercise="expected_score_std" role="test" points=1
from autograder import check

check(expected_score_std)

# %% exercise="expected_score_std" role="hidden test" points=1
from autograder import check

check(expected_score_std, hidden=True)

# %% [markdown] exercise="softmax_jacobian" role="header" minutes=12 lines=1 difficulty=3
# ## Exercise: how softmax passes a gradient on
#
# If score j moves a little, how much does weight i move? The table of all these derivatives is the Jacobian:
#
# $$J_{ij} = \frac{\partial\, \text{weight}_i}{\partial\, \text{score}_j}$$
#
# **Why it matters.** Whatever training tells the queries and keys has to pass through this table. FlashAttention
# never stores it, but multiplies by it row by row, in the form that you find here.
#
# **Contract.** `weights` is one row `(n,)` that came out of a softmax. Return `(n, n)`. The input is the weights
# and not the scores: the weights are all you need, which is why a framework saves only them for the backward pass.
#
# <details><summary>Hint 1: the idea</summary>
#
# Take the quotient rule on weight_i = exp(score_i) / sum, once for j = i and once for j ≠ i. In both results every
# exp / sum is a weight again.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `np.diag` makes a diagonal matrix from a row, `np.outer(row, row)` a table of all products. A check for your
# formula: each row of the result sums to 0. Do you see why it must?
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# On the diagonal you should find p_i (1 − p_i), elsewhere −p_i p_j, with p for the weights. Both in one: the weights
# on the diagonal, minus the table of all products.
#
# </details>


# %% exercise="softmax_jacobian" role="answer"
def softmax_jacobian(weights: Float[Array, "key"]) -> Float[Array, "key key"]:
    """Differentiate the weights of one row by its scores."""
    # BEGIN SOLUTION
    return np.diag(weights) - np.outer(weights, weights)
    # END SOLUTION


# %% exercise="softmax_jacobian" role="test" points=1
from autograder import check

check(softmax_jacobian)

# %% exercise="softmax_jacobian" role="hidden test" points=2
from autograder import check

check(softmax_jacobian, hidden=True)

# %% [markdown]
# Here are two rows of weights, one even and one nearly one-hot. The diagonal says how much each weight p answers to
# its own score, and its sum Σ p (1 − p) puts that into one number: 0 for a row that is decided, nearly 1 for an
# even row of many keys.

# %%
for row in ([0.25, 0.25, 0.25, 0.25], [0.997, 0.001, 0.001, 0.001]):
    jacobian = attention.softmax_jacobian(np.array(row))
    print(f"weights {row}: Σ p(1 - p) = {np.trace(jacobian):.4f}")
    print(jacobian.round(4) + 0.0, "\n")

# %% [markdown]
# A nearly one-hot row passes almost nothing on. Its scores may be wrong and would hardly hear of it. Such a row is
# called saturated.
#
# ### Claim on trial: what the division is good for
#
# Now all parts are there. For each width we draw 512 queries and 512 keys with independent entries of variance 1.
# We measure the standard deviation of the scores, the share of scores in [−1, 1], the largest weight of a row, its
# entropy in nats (0 is one-hot; ln 512 ≈ 6.24 is even), and the gradient that gets through, Σ p (1 − p). The last
# three are means over the rows.

# %%
WIDTHS = [4, 8, 16, 32, 64, 128, 256, 512, 1024]


def summarize(scores: Float[Array, "query key"]) -> dict[str, float]:
    """Say in five numbers what scores and their softmax are like."""
    shares = attention.softmax(scores)
    logarithms = np.log(np.maximum(shares, np.finfo(float).tiny))  # 0 · log 0 counts as 0
    return {
        "std": scores.std(),
        "in [-1, 1]": (abs(scores) <= 1).mean(),
        "largest": shares.max(axis=1).mean(),
        "entropy": -(shares * logarithms).sum(axis=1).mean(),
        "gradient": (shares * (1 - shares)).sum(axis=1).mean(),
    }


generator = np.random.default_rng(3)
raw, scaled = {}, {}
for d_k in WIDTHS:
    query, key = generator.normal(size=(2, 512, d_k))
    raw[d_k] = summarize(query @ key.T)
    scaled[d_k] = summarize(attention.attention_scores(query, key))

for name, results in (("raw", raw), ("scaled", scaled)):
    print(f"{name:>10}" + "".join(f"{column:>12}" for column in results[4]))
    for d_k, found in results.items():
        print(f"{'d_k =':>5}{d_k:>5}" + "".join(f"{value:>12.3f}" for value in found.values()))
    print()

# %%
weight_ax, gradient_ax = plots.panels(2)
plots.line_plot(
    WIDTHS,
    {"raw": [raw[d]["largest"] for d in WIDTHS], "scaled": [scaled[d]["largest"] for d in WIDTHS]},
    xlabel="d_k",
    ylabel="largest weight of a row",
    title="Raw scores saturate the softmax",
    ax=weight_ax,
    log_x=True,
)
plots.line_plot(
    WIDTHS,
    {
        "raw": [raw[d]["gradient"] for d in WIDTHS],
        "scaled": [scaled[d]["gradient"] for d in WIDTHS],
    },
    xlabel="d_k",
    ylabel="gradient let through, Σ p(1 - p)",
    title="Raw scores shut out the gradient",
    ax=gradient_ax,
    log_x=True,
)
plots.show(weight_ax.figure)

# %%
verdict(
    "without the division the softmax of width d_k is nearly one-hot (largest weight above 0.9)",
    {str(d): raw[d]["largest"] > 0.9 for d in WIDTHS},
    depends_on="d_k",
)
verdict(
    "without the division, at width d_k, less than half of the gradient gets through",
    {str(d): raw[d]["gradient"] < 0.5 for d in WIDTHS},
    depends_on="d_k",
)
verdict(
    "with it, at width d_k, no weight dominates (below 0.1) and the gradient passes (above 0.9)",
    {str(d): scaled[d]["largest"] < 0.1 and scaled[d]["gradient"] > 0.9 for d in WIDTHS},
    depends_on="d_k",
)
verdict(
    "scaled scores of width d_k typically lie in [-1, 1] (95 of 100 do)",
    {str(d): scaled[d]["in [-1, 1]"] > 0.95 for d in WIDTHS},
    depends_on="d_k",
)

# %% [markdown]
# The document's conclusion holds for wide heads; for narrow ones the division matters less. Its reason does not
# hold. If all 512 values really were 1, the scaled score would be 512/√512 ≈ 22.6, far outside [−1, 1]. What the
# division fixes is the standard deviation, at 1. About a third of the scores lie outside [−1, 1], as under any bell
# curve.
#
# "Assuming normalized inputs", the document adds. If that means vectors of **length** 1, all scores do lie in [−1,
# 1]. But look at the weights:

# %%
unit_query, unit_key = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (query, key))
for_unit_length = summarize(attention.attention_scores(unit_query, unit_key))
largest = for_unit_length["largest"]
print(f"d_k = {d_k}, vectors of length 1: largest weight {largest:.5f}, even: {1 / 512:.5f}")
verdict(
    "scaled scores of normalized inputs lie in [-1, 1]",
    {
        "vectors of length 1": for_unit_length["in [-1, 1]"] > 0.95,
        "entries of variance 1": scaled[d_k]["in [-1, 1]"] > 0.95,
    },
    depends_on="what normalized means",
)

# %% [markdown]
# All weights are nearly equal: attention has become a plain mean, and here the division does harm. Models that
# bring queries and keys to length 1 multiply their scores by a learned factor instead (Henry et al. 2020).
#
# Document B says that the factor "prevents gradient vanishing issues". Read: it prevents a saturated softmax **at
# the start**. In training, a model may make its queries long and its attention as sharp as it likes, and you will
# see one do so.

# %% [markdown] exercise="attention_with_temperature" role="header" minutes=8 lines=5 difficulty=2
# ## Exercise: temperature
#
# Divide the scores by one more number, the temperature T:
#
# $$\text{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}\; T}\right) V$$
#
# **Why it matters.** The same knob sets how daring a language model writes (chapter 9), and is what trains a small
# model on the soft answers of a large one (Hinton et al. 2015).
#
# **Contract.** Shapes as for `scaled_dot_product_attention`, without a mask. Return `(output, weights)`.
# `temperature` multiplies √d_k, it does not replace it. A temperature that is 0 or negative raises a `ValueError`
# that names the argument. The dtype stays. You may use `attention.softmax` and `attention.attention_scores`.
#
# <details><summary>Hint 1: the idea</summary>
#
# `attention_scores` has done the division by √d_k. One division is left, and it belongs before the softmax.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# Check the argument first: `if not temperature > 0: raise ValueError(...)`. Written this way it refuses NaN as
# well.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Scores over temperature, softmax, `weights @ value`, return both.
#
# </details>


# %% exercise="attention_with_temperature" role="answer"
def attention_with_temperature(
    query: Float[Array, "... query d_k"],
    key: Float[Array, "... key d_k"],
    value: Float[Array, "... key d_v"],
    temperature: float,
) -> tuple[Float[Array, "... query d_v"], Float[Array, "... query key"]]:
    """Attend by softmax(query keyᵀ / (√d_k · temperature)); return output and weights."""
    # BEGIN SOLUTION
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    scores = attention.attention_scores(query, key) / temperature
    weights = attention.softmax(scores)
    return weights @ value, weights
    # END SOLUTION


# %% exercise="attention_with_temperature" role="test" points=1
from autograder import check

check(attention_with_temperature)

# %% exercise="attention_with_temperature" role="hidden test" points=2
from autograder import check

check(attention_with_temperature, hidden=True)

# %% [markdown]
# Document B says that lower temperatures give sharper distributions, and that the best one "typically falls between
# 0.1 and 1.0". First the sharpness:

# %%
temperatures = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
query, key, value = np.random.default_rng(4).normal(size=(3, 8, 16))
entropies = []
for temperature in temperatures:
    _, weights = attention.attention_with_temperature(query, key, value, temperature)
    entropies.append(-(weights * np.log(weights)).sum(axis=1).mean())

plots.show(
    plots.line_plot(
        temperatures,
        {"attention": entropies, "even": [math.log(8)] * len(temperatures)},
        xlabel="temperature",
        ylabel="entropy of a row (nats)",
        title="Cold attention picks, warm attention averages",
        log_x=True,
    )
)
verdict(
    "a lower temperature gives sharper weights",
    {
        f"{cold} < {warm}": low < high
        for (cold, low), (warm, high) in pairwise(zip(temperatures, entropies, strict=True))
    },
    depends_on="the temperature",
)

# %% [markdown]
# The best temperature is another matter. A temperature of 0.3 is the same as queries that are 1/0.3 times as long,
# as the next cell shows, and a model learns how long its queries are. So a fixed number says little about a model
# that is trained with it.

# %%
by_temperature, _ = attention.attention_with_temperature(query, key, value, 0.3)
by_longer_query, _ = attention.scaled_dot_product_attention(query / 0.3, key, value)
assert np.allclose(by_temperature, by_longer_query)
print("temperature 0.3 gives the same output as queries divided by 0.3")

# %% [markdown] exercise="attention_backward" role="header" minutes=25 lines=6 difficulty=5
# ## Exercise: the way back (stretch)
#
# A loss sits behind the output, and you are handed its gradient: ∂loss/∂output. Carry it back to query, key and
# value.
#
# **Why it matters.** `loss.backward()` does this for you until you write an attention of your own for speed. Then
# you write exactly these lines: they are the second half of FlashAttention.
#
# **Contract.** `grad_output` has the shape of the output, `(..., n_q, d_v)`. Return `(grad_query, grad_key,
# grad_value)`, each of the shape and dtype of its array. There is no mask. You may use `attention.softmax` and
# `attention.attention_scores`. PyTorch's autograd is the judge, so it may not do the work.
#
# <details><summary>Hint 1: the idea</summary>
#
# Walk the three steps backwards: mix, share, score. For a product C = A B, the gradients are grad_A = grad_C Bᵀ and
# grad_B = Aᵀ grad_C. That handles the first and the last step.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# For the softmax, multiply each row of grad_weights by the Jacobian of `softmax_jacobian`, without building it: J g
# = p · g − p (p · g summed over the keys).
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# grad_value comes from weightsᵀ, grad_weights from valueᵀ. Then grad_scores = p ⊙ (g − the sum of p ⊙ g over each
# row, kept as a column), divided by √d_k. The last step: times key for the query, and transposed times query for
# the key.
#
# </details>


# %% exercise="attention_backward" role="answer"
def attention_backward(
    query: Float[Array, "... query d_k"],
    key: Float[Array, "... key d_k"],
    value: Float[Array, "... key d_v"],
    grad_output: Float[Array, "... query d_v"],
) -> tuple[Float[Array, "... query d_k"], Float[Array, "... key d_k"], Float[Array, "... key d_v"]]:
    """Carry the gradient of a loss from attention's output back to query, key and value."""
    # BEGIN SOLUTION
    weights = attention.softmax(attention.attention_scores(query, key))
    grad_value = np.swapaxes(weights, -1, -2) @ grad_output
    grad_weights = grad_output @ np.swapaxes(value, -1, -2)
    along_row = (weights * grad_weights).sum(axis=-1, keepdims=True)
    grad_scores = weights * (grad_weights - along_row) / math.sqrt(query.shape[-1])
    return grad_scores @ key, np.swapaxes(grad_scores, -1, -2) @ query, grad_value
    # END SOLUTION


# %% exercise="attention_backward" role="test" points=2
from autograder import check

check(attention_backward)

# %% exercise="attention_backward" role="hidden test" points=3
from autograder import check

check(attention_backward, hidden=True)

# %% [markdown]
# However you wrote it, the gradient of a score has the form p · (g − a mean of all g): it carries its weight p as a
# factor. A key with no share in the answer learns nothing from it, and a hidden key, with weight 0, learns nothing
# at all.

# %% [markdown] exercise="repaired_attention" role="header" minutes=15 lines=6 difficulty=3
# ## Bug hunt: document A's function
#
# Below is the function from document A, in our words. It runs, and on the document's own four tokens it is right.
# Still there are three faults in it. Three users report:
#
# 1. "One sequence works. A batch of sequences raises an error about shapes. When batch, length and width happened
#    to be equal, it raised nothing and the numbers were wrong."
# 2. "With a batch, the weights of a query do not sum to 1."
# 3. "One query of mine sees nothing, because all it could see is padding. Its output is NaN, and soon everything
#    is."
#
# **Why it matters.** None of the three shows in an example of one small sequence without a mask, which is how most
# code is tried first.
#
# **Contract.** That of `scaled_dot_product_attention`. Mend what is there; this time without the ready parts of
# `course_lib`, so that you can point at each fault.
#
# <details><summary>Hint 1: where to look</summary>
#
# Two faults are about counting axes from the wrong end, or turning too many. The third is a subtraction that has no
# answer.
#
# </details>
# <details><summary>Hint 2: how to see it</summary>
#
# Call it with arrays of shape (2, 3, 4) and print `key.T.shape`. Then, for the third, work out what
# `np.array([-np.inf]) - np.array([-np.inf])` is.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Turn only the last two axes; count the softmax's axis from the end, in both places; give a row without visible
# keys a maximum of 0 and a divisor of 1, as you did in `softmax`.
#
# </details>


# %% exercise="repaired_attention" role="answer"
def repaired_attention(
    query: Float[Array, "... query d_k"],
    key: Float[Array, "... key d_k"],
    value: Float[Array, "... key d_v"],
    mask: Bool[Array, "..."] | None = None,
) -> tuple[Float[Array, "... query d_v"], Float[Array, "... query key"]]:
    """Average the values by softmax(query keyᵀ / √d_k); return the output and the weights."""
    # BEGIN SOLUTION
    scores = query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = np.where(mask, -np.inf, scores)
    highest = scores.max(axis=-1, keepdims=True)
    highest = np.where(np.isneginf(highest), 0, highest)
    unnormalized = np.exp(scores - highest)
    total = unnormalized.sum(axis=-1, keepdims=True)
    weights = unnormalized / np.where(total == 0, 1, total)
    return weights @ value, weights
    # END SOLUTION
    # BEGIN STARTER
    # scores = query @ key.T / math.sqrt(query.shape[-1])
    # if mask is not None:
    #     scores = np.where(mask, -np.inf, scores)
    # highest = scores.max(axis=1, keepdims=True)
    # unnormalized = np.exp(scores - highest)
    # weights = unnormalized / unnormalized.sum(axis=1, keepdims=True)
    # return weights @ value, weights
    # END STARTER


# %% exercise="repaired_attention" role="test" points=2
from autograder import check

check(repaired_attention)

# %% exercise="repaired_attention" role="hidden test" points=3
from autograder import check

check(repaired_attention, hidden=True)

# %% [markdown]
# ## A real task: say it backwards
#
# Time to let attention learn. The task: read ten random digits, write them in reverse. The model is as small as it
# can be: a vector per digit, a vector per position, one attention, one linear layer that names the digit. There is
# no other path through it, so a digit can only come from where the attention looks.

# %%
LENGTH = 10


def trained_reverser(positions: bool, steps: int) -> Reverser:
    """Train a fresh model; the seeds make every run the same on one machine."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Reverser(length=LENGTH, positions=positions)
    train(
        model,
        forever(lambda: reversal_batch(128, LENGTH, generator)),
        steps=steps,
        learning_rate=0.02,
    )
    return model.eval()


def accuracy(logits: torch.Tensor, targets: torch.Tensor) -> float:
    """Return the share of digits that are right."""
    return (logits.argmax(dim=-1) == targets).double().mean().item()


test_tokens, test_targets = reversal_batch(2000, LENGTH, torch.Generator().manual_seed(1))
reverser = trained_reverser(positions=True, steps=100)
with torch.no_grad():
    logits, weights = reverser(test_tokens)
with_positions = accuracy(logits, test_targets)
print(f"digits right on 2000 new strings: {with_positions:.1%}")

# %% [markdown]
# What did it learn in a hundred steps? Look where it looks. Before you run the next cell, picture the map: which
# cells of row 0 should be dark, which of row 9?

# %%
places = [str(place) for place in range(LENGTH)]
plots.show(
    plots.attention_map(
        weights.mean(dim=0).numpy(),
        queries=places,
        keys=places,
        title="Reversing ten digits: mean over 2000 strings",
    )
)

# %% [markdown]
# The anti-diagonal **is** the algorithm: place 0 reads place 9, place 1 reads place 8. Nothing told the model so
# except the loss. And its shares are close to 1. How does that fit with a division that keeps attention soft?
# Compare the scores before and after training:


# %%
def score_spread(model: Reverser) -> float:
    """Return the standard deviation of a model's scaled scores on the first test string."""
    with torch.no_grad():
        x = (model.digits(test_tokens[:1]) + model.positions.weight)[0]
        query, key = model.w_q(x).numpy(), model.w_k(x).numpy()
    return float(attention.attention_scores(query, key).std())


torch.manual_seed(0)  # the same start as the trained model
print(f"standard deviation of the scores: {score_spread(Reverser(length=LENGTH)):.2f} at the start")
print(f"                                  {score_spread(reverser):.2f} after training")

# %% [markdown]
# Training has spread the scores by itself. The division by √d_k keeps the start soft; it does not forbid a sharp
# end.
#
# ### Predict first: take the positions away
#
# Train the same model without the position vectors, for three times as many steps. What share of the digits,
# between 0 and 1, will it get right? (Blind guessing gives 0.1.)

# %%
my_prediction = None  # a share between 0 and 1

forgetful = trained_reverser(positions=False, steps=300)
with torch.no_grad():
    without_positions = accuracy(forgetful(test_tokens)[0], test_targets)
reveal(my_prediction, without_positions)

# %% [markdown]
# It is lost, and still better than blind. Without positions the model knows **which** digits the string has, but
# not where. The best answer it can give at any place is the most frequent of the other nine digits. The next cell
# computes how often that is right: no model without order can do better. The cell also tries a second ablation. It
# takes the model that **can** reverse, and replaces its learned map by an even one.

# %%
counts = torch.nn.functional.one_hot(test_tokens, 10).sum(dim=1, keepdim=True)
# At each place: how often each digit occurs at the other places.
others = counts - torch.nn.functional.one_hot(test_tokens, 10)
best_without_order = (others.max(dim=-1).values / (LENGTH - 1)).mean().item()

with torch.no_grad():
    x = reverser.digits(test_tokens) + reverser.positions.weight
    even_mix = reverser.w_v(x).mean(dim=1, keepdim=True).expand(-1, LENGTH, -1)
    even_map = accuracy(reverser.w_o(even_mix), test_targets)

plots.show(
    plots.bar_plot(
        {
            "trained": with_positions,
            "map made\neven": even_map,
            "without\npositions": without_positions,
            "best without\norder": best_without_order,
        },
        ylabel="share of digits right",
        title="Reversing needs positions and a selective map",
        ax=plots.panels(1, width=6.5)[0],
    )
)

# %% [markdown]
# Without positions the model gets about as far as anyone could. It is not badly trained: the order is not in its
# input. Chapter 5 is about putting it there.
#
# ### What a map does not show
#
# In this task the map is the algorithm, because nothing else is in the model. In general, be careful. Document A
# says that a high weight means that a position "looks at" another "more strongly". But what reaches the output is
# weight **times value**. Take two keys, one with a large weight and a short value, one with a small weight and a
# long value:

# %%
shares = np.array([0.9, 0.1])
larger_wins = {}
for lengths in ([1.0, 1.0], [0.01, 5.0]):
    contributions = shares * np.array(lengths)
    larger_wins[f"value lengths {lengths}"] = contributions.argmax() == shares.argmax()
    print(f"value lengths {lengths}: shares {shares}, contributions {contributions.round(3)}")

verdict(
    "the key with the larger weight contributes more to the output",
    larger_wins,
    depends_on="the values",
)

# %% [markdown]
# A key with nine tenths of the weight can give next to nothing (Kobayashi et al. 2020), and quite different maps
# can go with the same answers (Jain and Wallace 2019). A map is evidence. An ablation, such as the one you just
# ran, is a test.

# %% [markdown] exercise="why_the_root" role="header" minutes=12
# ## Written question: why the root?
#
# Why do we divide by √d_k, and not by d_k? And not by nothing? Say what would go wrong for d_k = 1024 in each case,
# at the start of training. Use your own measurements: quote at least two numbers from this notebook, and measure
# what is missing in the cell below. A quarter of a page is enough.
#
# Your teacher looks for four things: the argument about variance; what no division does, with numbers; what
# division by d_k does, with numbers; and what all this says, or does not say, about a model that has been trained.

# %%
# Room for a measurement of your own: what does summarize say of scores divided by d_k?
query, key = np.random.default_rng(5).normal(size=(2, 512, 1024))

# %% [markdown] exercise="why_the_root" role="written" points=4
# **Model answer.** A dot product of independent entries with mean 0 and variance 1 is a sum of d_k terms of
# variance 1. Its variance is d_k and its standard deviation √d_k, which is 32 for d_k = 1024. Dividing by √d_k
# brings the standard deviation to 1 for every width, so a wide head starts like a narrow one.
#
# Without a division, the scores at d_k = 1024 spread by 32. Among 512 keys the largest weight of a row was 0.94 on
# average and the entropy 0.15 nats. Of the gradient measure Σ p(1 − p) only 0.09 got through, against 0.995 with
# the root: the softmax is saturated and most scores hardly learn.
#
# Dividing by d_k overshoots. The spread becomes √d_k / d_k = 1/32 (measured: 0.031). All weights are then nearly
# 1/512 (the largest is 0.00215 on average, an even share is 0.00195), and the entropy is within a thousandth of its
# maximum, ln 512. The softmax is not saturated, but attention is a plain mean over all keys: every query gets nearly
# the same output, and queries and keys start without a say. The unit-length experiment showed the same thing.
#
# All this describes the start, where entries are roughly independent. Training can make queries and keys longer and
# so undo any constant factor; the trained reverser has shares close to 1 with the root in place.
#
# **Rubric** (one point each)
#
# 1. Variance: the sum of d_k independent terms has standard deviation √d_k; only the root makes it 1 for every
#    width.
# 2. No division: saturation, with at least one measured number, and its effect on the gradient.
# 3. Division by d_k: scores that hardly differ and weights that are nearly even, with a measured or derived number.
# 4. Scope: a statement about the start; learned weights can absorb a factor. Half a point if only hinted at.

# %% [markdown]
# ## Optional: your own parts, together
#
# The trained reverser is a PyTorch model. Its attention is the one that you built, so **your** `self_attention` can
# take over. Its linear layers have biases, of which your function knows nothing, but a column of ones in x and a
# row of biases in each matrix do the same. This cell is not graded, and may fail while your answer is unfinished.


# %%
def with_bias(layer: torch.nn.Linear) -> Float[Array, "d_in_and_one d_out"]:
    """Stack a layer's weight and bias into one matrix that acts from the right."""
    return torch.cat([layer.weight.T, layer.bias[None]]).detach().numpy()


try:
    right = 0
    for tokens, target in zip(test_tokens[:200], test_targets[:200], strict=True):
        x = (reverser.digits(tokens) + reverser.positions.weight).detach().numpy()
        x = np.concatenate([x, np.ones((LENGTH, 1), dtype=x.dtype)], axis=1)
        matrices = (with_bias(layer) for layer in (reverser.w_q, reverser.w_k, reverser.w_v))
        output, _ = self_attention(x, *matrices)
        answer = np.concatenate([output, np.ones((LENGTH, 1))], axis=1) @ with_bias(reverser.w_o)
        right += (answer.argmax(axis=1) == target.numpy()).sum()
    share = right / (200 * LENGTH)
    print(f"the trained model on your own self_attention: {share:.1%} of the digits right")
except NotImplementedError:
    print("self_attention is not written yet; come back when it is.")

# %% [markdown]
# ## Summary
#
# - Attention is a soft lookup: score every query against every key, turn each row into shares, mix the values.
# - The softmax runs over the keys. Its maximum is subtracted, because exp overflows; the range of the scores is
#   harmless.
# - A score is a dot product, so long keys win. It is similarity only among keys of equal length.
# - A random score has standard deviation √d_k. The division makes it 1, which keeps the softmax away from
#   saturation and the gradient alive, at the start of training.
# - A temperature is the length of a query by another name.
# - Every gradient of a score carries the weight as a factor: no share, no learning.
# - True hides in this course. A query that sees nothing gets zeros, not NaN.
# - Attention alone does not know order. With positions, one head learns to reverse a string, and its map is the
#   algorithm; in larger models a map is only evidence.
#
# **Next:** one head has one map. Chapter 2 runs several side by side.
#
# ### Sources
#
# - Vaswani et al. 2017, *Attention Is All You Need*, arXiv 1706.03762: §3.2.1, eq. 1 and footnote 4 (the scale),
#   §3.2.3 (masks).
# - Bahdanau et al. 2015, *Neural Machine Translation by Jointly Learning to Align and Translate*, arXiv 1409.0473,
#   §3.1: the soft lookup, with a small network in place of the dot product.
# - Nadaraya 1964 and Watson 1964: averaging with weights that fall with distance.
# - Hinton et al. 2015, *Distilling the Knowledge in a Neural Network*, arXiv 1503.02531, §2: temperature.
# - Dao et al. 2022, *FlashAttention*, arXiv 2205.14135, appendix B.2: the backward pass.
# - Henry et al. 2020, *Query-Key Normalization for Transformers*, arXiv 2010.04245: queries and keys of length 1.
# - Raffel et al. 2020, *Exploring the Limits of Transfer Learning*, arXiv 1910.10683: T5.
# - Jain and Wallace 2019, *Attention is not Explanation*, arXiv 1902.10186; Kobayashi et al. 2020, *Attention is
#   Not Only a Weight*, arXiv 2004.10102: what maps do not show.
# - Radford et al. 2019, *Language Models are Unsupervised Multitask Learners*: the sizes of GPT-2.
