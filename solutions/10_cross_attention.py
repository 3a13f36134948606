# ---
# title: "10 · Cross-attention"
# ---

# %% [markdown] role="opening" minutes=35
# # 10 · Cross-attention
#
# So far a sequence looked at itself. A translator reads one sequence and writes another, and each word that it writes
# must find what it needs among the words that were read. That is cross-attention: the same operation, with its
# arguments from two places. In this chapter you build a decoder around it, let it learn to turn dates written in ten
# languages into ISO dates, and watch where it looks while it writes.
#
# **At the end you can**
#
# - say which side asks and which side answers, and find code that has it wrong;
# - put a decoder's block together from its three sublayers, and say who may see what;
# - train a decoder in one pass and run it step by step, and say what the two have to do with each other;
# - project a memory once instead of at every step, and count what that saves;
# - write greedily and with a beam, and tell a better score from a better answer;
# - read an alignment map with numbers, and say when it is diagonal.
#
# **You need** chapters 2, 4 and 6: heads, the block, masks. PyTorch appears throughout.
#
# **The documents.** The chapter mirrors, and tests, document B's "Cross-Attention in Encoder-Decoder Models" with its
# "Mechanism and Interpretation", "Practical Considerations" and "Visualization of Cross-Attention". Document C's
# "Encoder, Decoder, And Causal Masking" describes decoders without an encoder; this chapter is about those with one.
#
# **The convention** of the course holds for padding too: in `memory_mask`, True **hides**.

# %%
import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from autograder import check
from course_lib import alignment as maps
from course_lib import cross_attention, date_words, decoding, masks, plots, results
from course_lib.feed_forward import FeedForward
from course_lib.flop_counter import counted_flops
from course_lib.head_analysis import without_heads
from course_lib.models import date_reader, seq2seq
from course_lib.multi_head import MultiHeadAttention, merge_heads, split_heads
from course_lib.tensor_attention import tensor_attention
from course_lib.trial import reveal, verdict
from course_lib.widgets.alignment import alignment_explorer

torch.set_num_threads(1)  # so that your numbers compare with those of a machine with more cores

# %% [markdown]
# ## One operation, three uses
#
# An encoder-decoder has two halves. The **encoder** reads the source and returns one vector for each of its tokens:
# the **memory**. The **decoder** writes the target, token by token. It attends in two ways: back over what it has
# written, and through the memory.
#
# | use | queries from | keys and values from | hidden | map |
# |---|---|---|---|---|
# | encoder's self-attention | source | source | padding | n × n |
# | decoder's self-attention | target | target | the future | m × m |
# | **cross-attention** | **target** | **memory** | padding of the source | m × n |
#
# Document B writes it as softmax(Q Kᵀ / √d_k) V and introduces E, the encoder's output of n tokens, and H, the
# decoder's states, m of them. Its list of what Q, K and V are was lost. It must have read:
#
# $$Q = H\,W_Q, \qquad K = E\,W_K, \qquad V = E\,W_V$$
#
# Who asks is the token that is being written; what is searched is what was read. In code, E is `memory` and H is `x`.

# %%
generator = torch.Generator().manual_seed(0)
layer = cross_attention.CrossAttention(d_model=12, num_heads=3)
written_so_far = torch.randn(1, 4, 12, generator=generator)
what_was_read = torch.randn(1, 7, 12, generator=generator)

with torch.no_grad():
    answer, shares = layer(written_so_far, what_was_read)
print("4 tokens written, 7 tokens read, 3 heads")
print("output ", tuple(answer.shape), "one answer for each token that asks")
print("weights", tuple(shares.shape), "batch, heads, target, source")

# %% [markdown]
# ### Predict first: how many weights?
#
# A decoder has 11 characters to write and 22 letters to look at, with 4 heads. How many attention weights does one
# cross-attention layer compute when it handles all 11 at once?

# %%
my_prediction = None  # a whole number

layer = cross_attention.CrossAttention(d_model=16, num_heads=4)
with torch.no_grad():
    _, shares = layer(torch.zeros(1, 11, 16), torch.zeros(1, 22, 16))
reveal(my_prediction, shares.numel())

# %% [markdown] exercise="CrossAttention" role="header" minutes=15 lines=12 difficulty=3
# ## Exercise: cross-attention
#
# Build the layer: queries from `x`, keys and values from `memory`.
#
# **Why it matters.** Every encoder-decoder has it: the first transformer, T5, BART, Whisper, which reads sound and
# writes text. Image generators use it to let a picture look at the words that describe it. The fault that happens
# most often is to take keys or values from the wrong side, and as long as both sides are equally long nothing raises.
#
# **Contract.** `CrossAttention(d_model, num_heads)` has four `nn.Linear` of width d_model, `w_q, w_k, w_v, w_o`; a
# number of heads that does not divide d_model is a `ValueError`. `forward(x, memory, memory_mask=None)` takes `x`
# (batch, target, d_model) and `memory` (batch, source, d_model); both lengths are free. `memory_mask` is (batch,
# source), boolean, True at what nobody may look at; numbers in its place are a `TypeError`. Return `(output,
# weights)`: output like `x`, weights (batch, heads, target, source). A memory that is all hidden gives weights 0.
#
# <details><summary>Hint 1: the idea</summary>
#
# It is chapter 2's layer. What changes is where its three arguments come from, and that the mask has one entry for each
# token of the memory: which of the four axes of the weights is that?
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `split_heads(tensor, num_heads)`, `merge_heads(tensor)` and `tensor_attention(query, key, value, mask)`, which returns
# a pair and refuses masks that are not boolean. `mask[:, None, None, :]` puts in two axes of size 1.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Project x with w_q and the memory with w_k and w_v; split all three; attend under the mask with its two new axes;
# merge, and project with w_o. Or derive the class from `MultiHeadAttention` and hand the memory on twice.
#
# </details>


# %% exercise="CrossAttention" role="answer"
class CrossAttention(nn.Module):
    """Let every token of x look through the memory."""

    # BEGIN SOLUTION
    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"`num_heads` {num_heads} does not divide `d_model` {d_model}.")
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        x: Float[Tensor, "batch target d_model"],
        memory: Float[Tensor, "batch source d_model"],
        memory_mask: Bool[Tensor, "batch source"] | None = None,
    ) -> tuple[Float[Tensor, "batch target d_model"], Float[Tensor, "batch heads target source"]]:
        query = split_heads(self.w_q(x), self.num_heads)
        key = split_heads(self.w_k(memory), self.num_heads)
        value = split_heads(self.w_v(memory), self.num_heads)
        hidden = None if memory_mask is None else memory_mask[:, None, None, :]
        output, weights = tensor_attention(query, key, value, hidden)
        return self.w_o(merge_heads(output)), weights

    # END SOLUTION
    # BEGIN STARTER
    # def __init__(self, d_model: int, num_heads: int) -> None:
    #     super().__init__()
    #     raise NotImplementedError()
    #
    # def forward(
    #     self,
    #     x: Float[Tensor, "batch target d_model"],
    #     memory: Float[Tensor, "batch source d_model"],
    #     memory_mask: Bool[Tensor, "batch source"] | None = None,
    # ) -> tuple[Float[Tensor, "batch target d_model"], Float[Tensor, "batch heads target source"]]:
    #     raise NotImplementedError()
    # END STARTER


# %% exercise="CrossAttention" role="test" points=2
from autograder import check

check(CrossAttention)

# %% exercise="CrossAttention" role="hidden test" points=3
from autograder import check

check(CrossAttention, hidden=True)

# %% [markdown]
# Three experiments tell cross-attention from things that look like it. Replace the memory: the output must change.
# Reorder the memory: nothing may change, because a key is found by what it says, not by where it stands. Replace one
# query: only its own answer changes, since queries do not see each other here.

# %%
layer = cross_attention.CrossAttention(d_model=12, num_heads=3)
order = torch.randperm(7, generator=generator)
other_question = written_so_far.clone()
other_question[:, 2] = torch.randn(12, generator=generator)
trials = {
    "another memory": (written_so_far, torch.randn(1, 7, 12, generator=generator)),
    "the memory reordered": (written_so_far, what_was_read[:, order]),
    "token 2 asks otherwise": (other_question, what_was_read),
}
with torch.no_grad():
    before, _ = layer(written_so_far, what_was_read)
    for name, (asking, read) in trials.items():
        moved = (layer(asking, read)[0] - before).abs().amax(dim=-1)[0]
        print(f"{name:>22}: each token's answer moves by {[round(x, 2) for x in moved.tolist()]}")

# %% [markdown]
# So whatever the decoder knows about the order of the source, the encoder must have written into the memory. In the
# model below its position vectors do that.
#
# > **Paper and practice: two widths.** Here both sides have the width d_model. Nothing requires it: only w_k and w_v
# > read the memory. Image generators use it, where a picture of one width looks at words of another; so does your
# > next exercise.
# >
# > **Paper and practice: positions.** Models with relative positions, T5 for one, use none in cross-attention. A
# > distance between place 5 of a target and place 7 of a source means little, and when a library had added such a bias
# > by mistake, taking it out again was the repair.

# %% [markdown] exercise="repaired_cross_attention" role="header" minutes=12 lines=3 difficulty=3
# ## Bug hunt: who asks whom?
#
# A colleague has written a cross-attention with one head. Her notes:
#
# 1. "It runs as long as source and target have the same number of tokens. Otherwise there is an error about shapes."
# 2. "The weights of a token do not sum to 1."
# 3. "When I make the values wider, the attention gets flatter. Should it know about the values?"
#
# Each note is the trace of one fault.
#
# **Why it matters.** Keys from the wrong side is a fault of real, published decoders. The loss falls all the same: the
# model still learns what targets look like, and writes fluently about something else.
#
# **Contract.** `x` is (batch, target, d_model), `memory` (batch, source, d_memory), the matrices act from the right:
# `w_q` (d_model, d_k), `w_k` (d_memory, d_k), `w_v` (d_memory, d_v). Return the output alone, (batch, target, d_v).
# Lengths and widths are free. Mend what is there.
#
# <details><summary>Hint 1: where to look</summary>
#
# One fault is in the line that makes the keys, one in the softmax, one in the number under the root.
#
# </details>
# <details><summary>Hint 2: how to see it</summary>
#
# Call it with 4 tokens on both sides, then replace the memory by random numbers and print the **weights** before and
# after. Sum them over the last axis. Then count how many products one score adds up.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Keys are what is searched, so they come from where the values come from. In a batch, axis 1 runs over the queries. A
# score adds up one product for each of the features that a query and a key share.
#
# </details>


# %% exercise="repaired_cross_attention" role="answer"
def repaired_cross_attention(
    x: Float[Tensor, "batch target d_model"],
    memory: Float[Tensor, "batch source d_memory"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_memory d_k"],
    w_v: Float[Tensor, "d_memory d_v"],
) -> Float[Tensor, "batch target d_v"]:
    """Look through the memory with one head."""
    # BEGIN SOLUTION
    query = x @ w_q
    key = memory @ w_k
    value = memory @ w_v
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    return torch.softmax(scores, dim=-1) @ value
    # END SOLUTION
    # BEGIN STARTER
    # query = x @ w_q
    # key = x @ w_k
    # value = memory @ w_v
    # scores = query @ key.transpose(-1, -2) / math.sqrt(value.shape[-1])
    # return torch.softmax(scores, dim=1) @ value
    # END STARTER


# %% exercise="repaired_cross_attention" role="test" points=2
from autograder import check

check(repaired_cross_attention)

# %% exercise="repaired_cross_attention" role="hidden test" points=2
from autograder import check

check(repaired_cross_attention, hidden=True)

# %% [markdown] exercise="DecoderBlock" role="header" minutes=15 lines=12 difficulty=3
# ## Exercise: the decoder's block
#
# Put three sublayers together, each with its addition and its norm, in the paper's order:
#
# $$a = \text{norm}_1(x + \text{self}(x)), \qquad b = \text{norm}_2(a + \text{cross}(a, \text{memory})), \qquad
# \text{output} = \text{norm}_3(b + \text{ffn}(b))$$
#
# **Why it matters.** The order is the division of labor. Self-attention finds out what has been written so far and so
# what is due next; with that, cross-attention asks the source; the network turns both into the next token. And the two
# attentions hide different things: one the future of the target, the other the padding of the source.
#
# **Contract.** `DecoderBlock(d_model, num_heads, d_ff)` has the attributes `self_attention` (`MultiHeadAttention`),
# `cross_attention` (`cross_attention.CrossAttention`), `ffn` (`FeedForward` with ReLU), and `norm_1`, `norm_2`,
# `norm_3` (`nn.LayerNorm`). `forward(x, memory, memory_mask=None)` hides the future by itself and returns a tensor
# like `x`.
#
# <details><summary>Hint 1: the idea</summary>
#
# Chapter 4's post-norm block with one more step in its middle. Each attention returns a pair of which you need the
# first part.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `masks.causal_mask(length)` is True where the future is; `x.shape[1]` is the length of the target. `FeedForward` uses
# GELU unless it is told otherwise.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Three lines, each of the form: norm of (what came in plus what the sublayer returns). Self-attention gets the same
# tensor three times and the causal mask; cross-attention gets tokens, memory and `memory_mask`.
#
# </details>


# %% exercise="DecoderBlock" role="answer"
class DecoderBlock(nn.Module):
    """Look back at what is written, look through the memory, then transform every token."""

    # BEGIN SOLUTION
    def __init__(self, d_model: int, num_heads: int, d_ff: int) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = cross_attention.CrossAttention(d_model, num_heads)
        self.ffn = FeedForward(d_model, d_ff, activation="relu")
        self.norm_1 = nn.LayerNorm(d_model)
        self.norm_2 = nn.LayerNorm(d_model)
        self.norm_3 = nn.LayerNorm(d_model)

    def forward(
        self,
        x: Float[Tensor, "batch target d_model"],
        memory: Float[Tensor, "batch source d_model"],
        memory_mask: Bool[Tensor, "batch source"] | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        future = masks.causal_mask(x.shape[1])
        x = self.norm_1(x + self.self_attention(x, x, x, future)[0])
        x = self.norm_2(x + self.cross_attention(x, memory, memory_mask)[0])
        return self.norm_3(x + self.ffn(x))

    # END SOLUTION
    # BEGIN STARTER
    # def __init__(self, d_model: int, num_heads: int, d_ff: int) -> None:
    #     super().__init__()
    #     raise NotImplementedError()
    #
    # def forward(
    #     self,
    #     x: Float[Tensor, "batch target d_model"],
    #     memory: Float[Tensor, "batch source d_model"],
    #     memory_mask: Bool[Tensor, "batch source"] | None = None,
    # ) -> Float[Tensor, "batch target d_model"]:
    #     raise NotImplementedError()
    # END STARTER


# %% exercise="DecoderBlock" role="test" points=2
from autograder import check

check(DecoderBlock)

# %% exercise="DecoderBlock" role="hidden test" points=3
from autograder import check

check(DecoderBlock, hidden=True)

# %% [markdown]
# > **Paper and practice: where the norms stand.** This is the paper's order, as in PyTorch's
# > `nn.TransformerDecoderLayer`. T5, BART's multilingual successor and most later models normalize what goes **into** a
# > sublayer, for the reasons of chapter 3. In that order one more norm belongs behind the last block.
# >
# > **Paper and practice: decoders without an encoder.** GPT's blocks are this block without its middle. Document B
# > counts GPT among the "decoder" models for that reason. With nothing to cross-attend to, such a model finds the
# > source in its own past: the prompt.

# %% [markdown] exercise="shift_right" role="header" minutes=6 lines=2 difficulty=1
# ## Exercise: what a decoder reads while it learns
#
# To write token t, a decoder may read the tokens before t. In training they are known: shift the target by one place
# to the right, put a start in front, and every place reads just what it may. This is **teacher forcing**: whatever the
# model would have written, it reads the truth.
#
# **Why it matters.** With it all places learn at once, in a single pass. Without the shift, place t would read token t,
# and a model that copies its input would have a wonderful loss. It is one of the commonest faults in published
# decoders, and so is shifting twice.
#
# **Contract.** `tokens` is (batch, target), ids. Return a new tensor of the same shape and dtype: `start_id` first,
# then all tokens but the last.
#
# <details><summary>Hint 1: the idea</summary>
#
# Which token does nobody read, because nothing comes after it?
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `torch.full_like(…, start_id)` and `torch.cat(…, dim=1)`; or `tokens.clone()` and slices. `torch.roll` brings the last
# token to the front, where it must not stay.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# One column of starts, then the columns up to the last, side by side.
#
# </details>


# %% exercise="shift_right" role="answer"
def shift_right(
    tokens: Int[Tensor, "batch target"],
    start_id: int,
) -> Int[Tensor, "batch target"]:
    """Give what a decoder reads while it learns to write `tokens`."""
    # BEGIN SOLUTION
    shifted = torch.full_like(tokens, start_id)
    shifted[:, 1:] = tokens[:, :-1]
    return shifted
    # END SOLUTION


# %% exercise="shift_right" role="test" points=1
from autograder import check

check(shift_right)

# %% exercise="shift_right" role="hidden test" points=1
from autograder import check

check(shift_right, hidden=True)

# %% [markdown]
# ## A real task: read a date in ten languages
#
# "sonntag, 3. mai 1998", "may 3, 1998" and "1998. május 3." are the same day. The model reads the letters and writes
# `1998-05-03`. Nobody tells it what a month is. The texts come from the Unicode project's tables in Babel, for all
# days of two centuries; a tenth of the **days** is set aside, so that no tested day was seen in any language.

# %%
training_days, unseen_days = date_words.split_days(torch.Generator().manual_seed(0))
dates = date_words.written_dates(unseen_days, 500, torch.Generator().manual_seed(1))
batch = date_reader.date_batch(dates)

print(f"{len(training_days):,} days to learn from, {len(unseen_days):,} unseen")
for one in dates[:6]:
    language = date_words.LANGUAGES[one.language]
    print(f"{language:>10}: {one.text:<32} → {one.iso}")

# %% [markdown]
# The model has one encoder block and one decoder block of width 64 with 4 heads, and learned positions. Training
# takes about fifteen seconds of one CPU. The rate climbs to its peak and falls to zero (chapter 11 is about that).

# %% long=true
reader = date_reader.new_date_reader(seed=0)
history = date_reader.train_date_reader(reader, training_days)
print(f"{sum(p.numel() for p in reader.parameters()):,} parameters")

with torch.no_grad():
    memory = date_reader.remember(reader, batch.source, batch.mask)
forced = date_reader.forced_characters(reader, batch)
right = forced == batch.target
print(f"given the true characters before: {right.double().mean():.2%} of characters right")

# %% [markdown]
# ### Predict first: and without the truth?
#
# That number is a teacher's: at each place the model read the true characters before it. Left alone, it reads what it
# wrote itself. With teacher forcing, some share of the dates is right in **every** character. What share of the dates,
# between 0 and 1, is exact when it writes alone?

# %%
my_prediction = None  # a share between 0 and 1

alone = date_reader.free_characters(reader, memory, len(dates))
exact_alone = (alone == batch.target).all(dim=1)
exact_forced = right.all(dim=1)
print(f"exact with the truth before each character: {exact_forced.double().mean():.3f}")
reveal(my_prediction, exact_alone.double().mean().item())
print("the same dates in both cases:", torch.equal(exact_alone, exact_forced))

wrong = [
    (one.text, one.iso, date_words.decode_iso(row))
    for one, row, fine in zip(dates, alone.tolist(), exact_alone.tolist(), strict=True)
    if not fine
]
for text, iso, wrote in wrong[:3]:
    print(f"  {text}: {iso}, but it wrote {wrote}")

# %% [markdown]
# The two shares are not close, they are **equal**, and it had to be so. As long as every character is right, what the
# model wrote is the truth, so both runs read the same. They can part only after the first mistake, and then the date
# is lost in both.
#
# What differs is what comes **after** a mistake. To see it, take a model that makes many: the same one, trained for 80
# steps only.

# %% long=true
beginner = date_reader.new_date_reader(seed=0)
date_reader.train_date_reader(beginner, training_days, steps=80)
with torch.no_grad():
    beginners_memory = date_reader.remember(beginner, batch.source, batch.mask)

taught = (date_reader.forced_characters(beginner, batch) == batch.target).double()
by_itself = date_reader.free_characters(beginner, beginners_memory, len(dates)) == batch.target
by_itself = by_itself.double()
print(f"characters right: {taught.mean():.3f} with teacher forcing, {by_itself.mean():.3f} alone")
print(f"dates exact:      {taught.prod(dim=1).mean():.3f} and {by_itself.prod(dim=1).mean():.3f}")

curves = {"teacher forcing": taught.mean(dim=0).numpy(), "alone": by_itself.mean(dim=0).numpy()}
plots.show(
    plots.line_plot(
        range(1, 12),
        curves,
        xlabel="character written (1–4 year, 6–7 month, 9–10 day)",
        ylabel="share right",
        title="After 80 steps: what the beginner gets right",
    )
)

# %% [markdown]
# Look at character 2. With teacher forcing it is always right, and there is nothing to read for it: among years from
# 1900 to 2099, a 9 follows the 1 and a 0 follows the 2. Left alone, whoever wrote the wrong first digit goes on with
# the wrong second one. A teacher-forced score per token flatters a model, and the more so, the more a token follows
# from the one before. This gap has a name, **exposure bias**: a model is never exposed to its own mistakes while it
# learns.
#
# ### Claim on trial: one step after the other?
#
# Document B: "In autoregressive decoding, cross-attention is computed sequentially for each decoder step." Does
# cross-attention have to wait? Here the logits of all 11 places from one pass, and from 11 passes over growing
# beginnings. If they are equal, nobody had to wait. Then the other direction: which logits change with one token?

# %%
known = decoding.shift_right(batch.target, date_words.START_ID)
with torch.no_grad():
    in_one_pass, _ = reader.decode(known, memory)
    beginnings = [known[:, :length] for length in range(1, 12)]
    one_by_one = [reader.decode(beginning, memory)[0][:, -1] for beginning in beginnings]
    stepwise = torch.stack(one_by_one, dim=1)
gap = (in_one_pass - stepwise).abs().max().item()
print(f"largest difference between one pass and 11 passes: {gap:.1e}")

other_token = known.clone()
other_token[:, 5] = (other_token[:, 5] + 1) % date_words.ISO_VOCAB
with torch.no_grad():
    changed = (reader.decode(other_token, memory)[0] - in_one_pass).abs().amax(dim=(0, 2))
must_wait = bool((changed[5:] > 1e-3).all() and (changed[:5] < 1e-3).all())
first_changed = int((changed > 1e-3).nonzero()[0]) + 1
print(f"with another token in place 6, logits change from place {first_changed} on\n")

verdict(
    "cross-attention is computed sequentially, one step after the other",
    {
        "training, where the target is known": gap > 1e-3,
        "generation, where it is not": must_wait,
    },
    depends_on="whether the target is known",
)

# %% [markdown]
# The document says "in autoregressive decoding", and for that it is right. What waits is the **token**, not the
# attention: in training the same layer handles all places at once.

# %% [markdown] exercise="cache_memory" role="header" minutes=8 lines=3 difficulty=2
# ## Exercise: project the memory once
#
# While the decoder writes, the memory stays as it is. So do its keys and values. Compute them once.
#
# **Why it matters.** A summarizer reads 1000 tokens and writes 100. Projecting the memory at each step, in each layer,
# would cost a hundred times as much as projecting it once, for the same numbers. Every serving library keeps them.
#
# **Contract.** `cross_attention` is a finished `CrossAttention`, `memory` is (batch, source, d_model). Return `(key,
# value)`, each (batch, heads, source, d_head), ready for the heads. Two matrix products are enough; they are counted.
#
# <details><summary>Hint 1: the idea</summary>
#
# Which steps of the layer do not depend on x? Those can be done before anybody asks.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `cross_attention.w_k`, `cross_attention.w_v`, `cross_attention.num_heads`, and `split_heads`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Project the memory twice, split both into heads, return the pair.
#
# </details>


# %% exercise="cache_memory" role="answer"
def cache_memory(
    cross_attention: nn.Module, memory: Float[Tensor, "batch source d_model"]
) -> tuple[Float[Tensor, "batch heads source d_head"], Float[Tensor, "batch heads source d_head"]]:
    """Project the memory to the keys and values of every head."""
    # BEGIN SOLUTION
    heads = cross_attention.num_heads
    key, value = cross_attention.w_k(memory), cross_attention.w_v(memory)
    return split_heads(key, heads), split_heads(value, heads)
    # END SOLUTION


# %% exercise="cache_memory" role="test" points=1
from autograder import check

check(cache_memory)

# %% exercise="cache_memory" role="hidden test" points=2
from autograder import check

check(cache_memory, hidden=True)

# %% [markdown] exercise="attend" role="header" minutes=8 lines=4 difficulty=2
# ## Exercise: attend over what is ready
#
# The other half: given keys and values that are ready, answer the tokens that ask.
#
# **Why it matters.** This is all that runs at each step. The two halves together must give just what the layer gives,
# or training and writing would use different models.
#
# **Contract.** `x` is (batch, target, d_model), `key` and `value` come from `cache_memory`, `memory_mask` is (batch,
# source), boolean, True hides; numbers in its place are a `TypeError`. Return `(output, weights)` like the layer; with
# nothing to see, weights are 0.
#
# <details><summary>Hint 1: the idea</summary>
#
# Everything of the layer that `cache_memory` did not do: one projection before the attention, one after it.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `split_heads`, `tensor_attention`, `merge_heads`; the mask needs two axes of size 1 in its middle.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Queries: x through w_q, split. Attend over key and value. Merge the heads and send them through w_o.
#
# </details>


# %% exercise="attend" role="answer"
def attend(
    cross_attention: nn.Module,
    x: Float[Tensor, "batch target d_model"],
    key: Float[Tensor, "batch heads source d_head"],
    value: Float[Tensor, "batch heads source d_head"],
    memory_mask: Bool[Tensor, "batch source"] | None = None,
) -> tuple[Float[Tensor, "batch target d_model"], Float[Tensor, "batch heads target source"]]:
    """Look through a memory whose keys and values are ready."""
    # BEGIN SOLUTION
    asked = split_heads(cross_attention.w_q(x), cross_attention.num_heads)
    if memory_mask is not None:
        memory_mask = memory_mask[:, None, None, :]
    found, weights = tensor_attention(asked, key, value, memory_mask)
    return cross_attention.w_o(merge_heads(found)), weights
    # END SOLUTION


# %% exercise="attend" role="test" points=1
from autograder import check

check(attend)

# %% exercise="attend" role="hidden test" points=2
from autograder import check

check(attend, hidden=True)

# %% [markdown]
# ### Predict first: what does the cache save?
#
# The reader writes 11 characters. What share of the work of projecting the memory, between 0 and 1, does it save when
# it projects once and not at every step?

# %%
my_prediction = None  # a share between 0 and 1

one_source, _ = date_words.encode_texts([dates[0].text])
one_target = known[:1]
with torch.no_grad():
    one_read = reader.encode(one_source)


def write_stepwise(
    model: seq2seq.Seq2Seq,
    memory: Float[Tensor, "batch source d_model"],
    target: Int[Tensor, "batch target"],
    keep: bool,
) -> None:
    """Run the decoder over the growing beginnings of a target, and project the memory once or at every step."""
    ready = model.remember(memory)
    for length in range(1, target.shape[1] + 1):
        ready = ready if keep or length == 1 else model.remember(memory)
        model.decode(target[:, :length], ready)


once = counted_flops(reader.remember, one_read)
kept, repeated = (
    counted_flops(write_stepwise, reader, one_read, one_target, keep) for keep in (True, False)
)
reveal(my_prediction, (repeated - kept) / (11 * once))

# %% [markdown]
# ### Claim on trial: the cache avoids recomputing
#
# Document B: implementations use key-value caching "to avoid recomputing encoder projections at every step". Counted,
# for this model and for a longer source and target:

# %%
names = ("memory once", "every step", "own once", "own anew")
print(
    f"{'read':>8} {'written':>7}"
    + "".join(f" {name:>12}" for name in names)
    + f" {'FLOPs saved':>12}"
)
saves = {}
for source, target in ((len(dates[0].text), 11), (9, 6), (1000, 100)):
    # Tokens whose keys and values are computed: the source's once, or at every step; the target's
    # own past, whose beginning grows by one at each step, likewise (the KVCache of chapter 8).
    row = (source, source * target, target, target * (target + 1) // 2)
    # FLOPs of all that runs while a model of the reader's size writes, as the counter finds them.
    writer, read = seq2seq.Seq2Seq(2, 2, source, target), torch.zeros(1, source, one_read.shape[-1])
    ids = torch.zeros(1, target, dtype=torch.long)
    kept, repeated = (
        counted_flops(write_stepwise, writer, read, ids, keep) for keep in (True, False)
    )
    saved = repeated - kept
    saves[f"{source} read and {target} written"] = (
        saved == (target - 1) * counted_flops(writer.remember, read) > 0
    )
    numbers = "".join(f" {number:>12,}" for number in row)
    print(f"{source:>8} {target:>7}{numbers} {saved / repeated:>12.0%}")

print()
verdict(
    "caching avoids recomputing the encoder's projections at every step",
    saves,
    depends_on="the lengths",
)

# %% [markdown]
# The first four numbers are tokens that must be projected, for each layer; the last is a share of all FLOPs while
# writing. Every projection of the memory but one is saved. The saving on the memory grows with the target. The
# decoder's own past can be kept as well, in the cache of chapter 8; the memory's is the simpler one, as it never
# grows.

# %% [markdown] exercise="greedy_decode" role="header" minutes=15 lines=9 difficulty=3
# ## Exercise: write greedily
#
# Let the decoder write alone: take the likeliest token, append it, ask again.
#
# **Why it matters.** It is the simplest way to get text out of a model, and the baseline for every other. The loop is
# short, and its edges are where real code fails: rows that end at different steps, the end that is written or not, the
# limit that counts the start or not, and models such as BART that begin with the very token that ends.
#
# **Contract.** `step(tokens)` takes ids (batch, written so far) and returns logits (batch, vocab) for the next token.
# The result is (batch, written), ids. Every row begins with `start_id`, which counts in `max_length`. A row ends when
# it **writes** `end_id`, which stays in the result; `start_id` may be the same token and ends nothing. Ended rows are
# filled up with `end_id`. Stop when all rows have ended or are `max_length` long, and do not call `step` once more than
# needed.
#
# <details><summary>Hint 1: the idea</summary>
#
# Keep two things: the tokens so far, one row each, and one boolean per row that says whether it has ended.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `torch.full((batch, 1), start_id)`; `argmax(dim=-1)`; `masked_fill` puts `end_id` where a row has ended; `torch.cat`
# along axis 1; `ended.all()`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# While there is room and some row is open: ask, take the argmax, overwrite the choice of ended rows, mark rows that
# have just chosen the end, append the column.
#
# </details>


# %% exercise="greedy_decode" role="answer"
def greedy_decode(
    step,
    start_id: int,
    end_id: int,
    max_length: int,
    batch: int,
) -> Int[Tensor, "batch written"]:
    """Write the likeliest token at every step until every row has ended."""
    # BEGIN SOLUTION
    written = torch.full((batch, 1), start_id)
    over = torch.zeros(batch, dtype=torch.bool)
    while written.shape[1] < max_length and not over.all():
        choice = step(written).argmax(dim=-1)
        choice = choice.masked_fill(over, end_id)
        over = over | (choice == end_id)
        written = torch.cat([written, choice[:, None]], dim=1)
    return written
    # END SOLUTION


# %% exercise="greedy_decode" role="test" points=2
from autograder import check

check(greedy_decode)

# %% exercise="greedy_decode" role="hidden test" points=3
from autograder import check

check(greedy_decode, hidden=True)

# %% [markdown]
# Now the reader can read whatever you give it, in one of its ten languages and in small letters. Change the texts:

# %%
texts = ["17 juillet 1944", "mittwoch, 29. februar 2040", "2031. december 24.", "5 de mayo de 1987"]
sources, padding = date_words.encode_texts(texts)
with torch.no_grad():
    step = date_reader.writer(reader, date_reader.remember(reader, sources, padding))
    longest = date_reader.MAX_WRITTEN
    start_id, end_id = date_words.START_ID, date_words.END_ID
    tokens = decoding.greedy_decode(step, start_id, end_id, longest, len(texts))
for text, row in zip(texts, tokens, strict=True):
    print(f"{text:>28} → {date_words.decode_iso(row.tolist())}")

# %% [markdown]
# ## Padding in the memory
#
# The sources of a batch differ in length, so most of them carry padding, and the padding has states like everything
# else. Two places must hide it: the encoder's self-attention and the decoder's cross-attention. What leaks if one
# forgets? The model is the trained one, and only the masks change.
#
# ### Predict first: no mask in cross-attention
#
# What share of the dates is still exact if `memory_mask` is left away while writing, between 0 and 1?

# %%
my_prediction = None  # a share between 0 and 1


def share_exact(encoder_mask: Tensor | None, memory_mask: Tensor | None) -> float:
    """Let the trained reader write all unseen dates under these masks."""
    with torch.no_grad():
        ready = reader.remember(reader.encode(batch.source, encoder_mask), memory_mask)
    found = date_reader.free_characters(reader, ready, len(dates))
    return (found == batch.target).all(dim=1).double().mean().item()


leaks = {
    "both\nmasks": share_exact(batch.mask, batch.mask),
    "no memory\nmask": share_exact(batch.mask, None),
    "no encoder\nmask": share_exact(None, batch.mask),
    "no mask\nat all": share_exact(None, None),
}
reveal(my_prediction, leaks["no memory\nmask"])
plots.show(
    plots.bar_plot(
        leaks,
        ylabel="share of dates exact",
        title="What padding does to a reader that was trained with masks",
        ax=plots.panels(1, width=6.0)[0],
    )
)

# %% [markdown]
# It still works most of the time, which is the trouble with this fault: no error, most answers fine, and the same date
# is read well in one batch and badly in another, depending on its neighbors. Measure the leak itself: how much weight
# lies on padding, and whether what stands there can be felt.

# %%
with torch.no_grad():
    read = reader.encode(batch.source, batch.mask)
    scribbled = read.masked_fill(batch.mask[..., None], 5.0)  # other numbers where padding is
    moved, on_padding = {}, {}
    for name, memory_mask in (("with memory_mask", batch.mask), ("without it", None)):
        logits, layers = reader.decode(known, reader.remember(read, memory_mask))
        other_logits, _ = reader.decode(known, reader.remember(scribbled, memory_mask))
        moved[name] = (logits - other_logits).abs().max().item()
        on_padding[name] = (layers[-1] * batch.mask[:, None, None, :]).sum(dim=-1).mean().item()
        print(
            f"{name:>16}: {on_padding[name]:.0%} of the weight lies on padding; "
            f"scribbling there moves logits by up to {moved[name]:.1f}"
        )

# %% [markdown]
# Greedy decoding never goes back. Look at this small table: the likeliest first word leads to a place where nothing is
# likely.

# %%
chances = {
    "": {"the": 0.6, "a": 0.4},
    "the": {"cat": 0.35, "dog": 0.33, "end": 0.32},
    "a": {"cat": 0.9, "dog": 0.05, "end": 0.05},
}
for first, first_chance in chances[""].items():
    for second, second_chance in chances[first].items():
        whole = first_chance * second_chance
        print(f"{first:>4} {second}: {first_chance} · {second_chance} = {whole:.3f}")

# %% [markdown] exercise="beam_search" role="header" minutes=25 lines=15 difficulty=5
# ## Exercise: beam search (stretch)
#
# Greedy takes "the" and cannot reach the best pair any more. A **beam** follows several beginnings side by side.
#
# **Why it matters.** Translation systems have used it for decades, with 4 to 10 beams. It is also where the question
# arises what "best" means: a sum of log-probabilities only falls with length, so the shortest answer would win without
# a correction.
#
# **Contract.** `step(tokens)` takes ids (rows, written so far), any number of rows, and returns logits (rows, vocab).
# Start with one beginning, `[start_id]`; take log-softmax of the logits inside. Each step keeps the `beams` best
# continuations of **all** live beginnings, by their summed log-probability. One that ends with `end_id` moves to a
# pool of finished sequences, and its place stays empty in that step. Stop when nothing is live or the live ones are
# `max_length` long, start included. The score is the sum divided by the number of generated tokens, `end_id`
# included; the best score among finished and live wins. Return `(tokens, score)`: a list that begins with `start_id`,
# and a float. There may be fewer continuations than beams.
#
# <details><summary>Hint 1: the idea</summary>
#
# A beginning is a pair: its sum so far and its tokens. One step turns each live beginning into vocab many
# continuations; put all in one list, sort, and cut.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `step(torch.tensor(list_of_token_lists))`, `log_softmax(dim=-1)`, `sorted(pairs, reverse=True)[:beams]`. All live
# beginnings are equally long, so they fit into one tensor.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# For each of max_length − 1 steps: ask for all live ones at once; build the continuations; keep the best; split them
# into those that end and those that live; stop if none lives. At the end, divide each sum by its number of generated
# tokens and take the maximum over both lists.
#
# </details>


# %% exercise="beam_search" role="answer"
def beam_search(
    step,
    start_id: int,
    end_id: int,
    max_length: int,
    beams: int,
) -> tuple[list[int], float]:
    """Follow several beginnings side by side; return the best sequence and its score."""
    # BEGIN SOLUTION
    live: list[tuple[float, list[int]]] = [(0.0, [start_id])]
    finished: list[tuple[float, list[int]]] = []
    for _ in range(max_length - 1):
        rows = step(torch.tensor([tokens for _, tokens in live])).log_softmax(dim=-1)
        continuations = [
            (total + gain, [*tokens, token])
            for (total, tokens), row in zip(live, rows.tolist(), strict=True)
            for token, gain in enumerate(row)
        ]
        best = sorted(continuations, reverse=True)[:beams]
        finished += [pair for pair in best if pair[1][-1] == end_id]
        live = [pair for pair in best if pair[1][-1] != end_id]
        if not live:
            break
    scored = [(total / (len(tokens) - 1), tokens) for total, tokens in finished + live]
    score, tokens = max(scored)
    return tokens, score
    # END SOLUTION


# %% exercise="beam_search" role="test" points=2
from autograder import check

check(beam_search)

# %% exercise="beam_search" role="hidden test" points=4
from autograder import check

check(beam_search, hidden=True)

# %% [markdown]
# ### Measured: a better score, or a better date?
#
# Does a beam help? Let the beginner of 80 steps, who is often unsure, read 60 dates with 1 and with 4 beams.

# %%
scores: dict[int, float] = {}
hits: dict[int, float] = {}
for beams in (1, 4):
    total, good = 0.0, 0
    for one in dates[:60]:
        source, _ = date_words.encode_texts([one.text])
        step = date_reader.writer(beginner, date_reader.remember(beginner, source, None))
        tokens, score = decoding.beam_search(
            step, date_words.START_ID, date_words.END_ID, date_reader.MAX_WRITTEN, beams
        )
        total, good = total + score, good + (date_words.decode_iso(tokens) == one.iso)
    scores[beams], hits[beams] = total / 60, good / 60
    mean_score = f"mean score {scores[beams]:.4f} nats per character"
    print(f"{beams} beam{'s' * (beams > 1)}: {mean_score}, {hits[beams]:.1%} exact")

print()
verdict(
    "a wider beam finds something better",
    {
        "the score": scores[4] > scores[1],
        "exact dates, by more than 5 in 100": hits[4] > hits[1] + 0.05,
    },
    depends_on="what better means",
)

# %% [markdown]
# The beam optimizes the score, and the score is the model's opinion. Where the opinion is wrong, a more thorough search
# finds the wrong answer more reliably. For long texts it can even hurt: the likeliest text of all is often short, or
# repeats itself (Stahlberg and Byrne 2019, Holtzman et al. 2020).
#
# > **Paper and practice: beams that end.** Libraries differ in what an ended sequence does to the beam. In ours its
# > place stays empty for one step; in the search of Sutskever et al. the beam shrinks for good; in Hugging Face's it is
# > filled up with the next best. They differ in how the length is divided out, too: Wu et al. divide by a power,
# > between 0 and 1, of (5 + length) / 6. So two libraries with "4 beams" may write different texts, and both be right.

# %% [markdown] exercise="attention_entropy" role="header" minutes=6 lines=1 difficulty=2
# ## Exercise: how widely does a query look?
#
# $$H = -\sum_j w_j \ln w_j, \qquad 0 \ln 0 = 0$$
#
# **Why it matters.** A map of 11 × 22 numbers for each head and layer is too much to look at. One number for each query
# says whether it copies from one place or gathers from many: e to the power H is the number of keys it looks at, so to
# say. Entropies that fall to 0 in training are also an alarm, to which chapter 11 comes back.
#
# **Contract.** `weights` is (..., query, key), in any floating dtype; return (..., query), in nats. A weight of 0 adds
# nothing, and a row of zeros has the entropy 0.
#
# <details><summary>Hint 1: the idea</summary>
#
# The formula in one line, once 0 · ln 0 is taken care of: for a computer it is 0 · −∞.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `torch.xlogy(a, b)` is a · ln b with 0 for a = 0. Or replace the logarithm, not the weight, where a weight is 0.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Minus the sum over the last axis of `torch.xlogy` of the weights with themselves.
#
# </details>


# %% exercise="attention_entropy" role="answer"
def attention_entropy(
    weights: Float[Tensor, "*axes query key"],
) -> Float[Tensor, "*axes query"]:
    """Measure how widely each query spreads its attention, in nats."""
    # BEGIN SOLUTION
    return -torch.xlogy(weights, weights).sum(dim=-1)
    # END SOLUTION


# %% exercise="attention_entropy" role="test" points=1
from autograder import check

check(attention_entropy)

# %% exercise="attention_entropy" role="hidden test" points=1
from autograder import check

check(attention_entropy, hidden=True)

# %% [markdown] exercise="alignment" role="header" minutes=8 lines=3 difficulty=2
# ## Exercise: which way does it move?
#
# Take the key that each query looks at most, and ask how often the next query does not go back from there. A diagonal
# map never goes back.
#
# **Why it matters.** In speech the answer should be 1: sound and text run the same way, and a decoder that goes back
# repeats itself. In translation it says how much two languages differ in their order.
#
# **Contract.** `weights` is (query, key). Return the place of the largest weight of each query, a tensor of int64, and
# the fraction of the n_q − 1 steps from one query to the next that do not go back, a float. Standing still is not going
# back. A single query takes no step: say 1.
#
# <details><summary>Hint 1: the idea</summary>
#
# Once the places are there, compare all but the first with all but the last.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `argmax(dim=-1)`; slices `[1:]` and `[:-1]`; the mean of booleans needs a cast, such as `.double()`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The mean of (each later place ≥ the one before it); before that, the case in which there is nothing to compare.
#
# </details>


# %% exercise="alignment" role="answer"
def alignment(weights: Float[Tensor, "query key"]) -> tuple[Int[Tensor, " query"], float]:
    """Return the key each query looks at most, and the fraction of steps that do not go back."""
    # BEGIN SOLUTION
    places = weights.argmax(dim=-1)
    if len(places) == 1:
        return places, 1.0
    forward = places[1:] >= places[:-1]
    return places, forward.double().mean().item()
    # END SOLUTION


# %% exercise="alignment" role="test" points=1
from autograder import check

check(alignment)

# %% exercise="alignment" role="hidden test" points=1
from autograder import check

check(alignment, hidden=True)

# %% [markdown]
# ## Watch it read
#
# The same day in five languages. Move the first slider with the arrow keys: each press lets the decoder write one more
# character, and the map gains a row. The diamonds mark the character that is being written and the letter it looks at
# most. ■ is the end. Watch three moments: the third digit of the year, where the letters of the month are read, and
# where the day comes from.

# %%
shown = ["en", "de", "fr", "hu", "lt"]
summer = [day for day in unseen_days if day.month in (6, 7) and day.day > 20]
# All digits of year and day differ, so that each has one place to come from.
day = next(day for day in summer if len(set(f"{day.year}{day.day}")) == 6)
texts = [date_words.in_words(day, language) for language in shown]
sources, padding = date_words.encode_texts(texts)
with torch.no_grad():
    ready = date_reader.remember(reader, sources, padding)
rows = date_reader.free_characters(reader, ready, len(texts)).tolist()
pairs = zip(texts, map(date_words.decode_iso, rows), strict=True)
transcripts = [date_reader.transcribe(reader, text, iso) for text, iso in pairs]
alignment_explorer(transcripts)

# %% [markdown]
# ### Claim on trial: the diagonal
#
# Document B: "A typical cross-attention heatmap shows strong diagonal alignment in tasks like translation, where word
# order is roughly preserved." The last five words are a condition, and here it can be tested: the same model, the same
# target, and sources of different order. Hungarian and Lithuanian write year, month, day, as ISO does; English writes
# month, day, year; the others day, month, year.
#
# First two maps, the mean of the four heads. Rows are what is written, columns what is read (␣ is a space):

# %%
for language in ("de", "hu"):
    one = transcripts[shown.index(language)]
    plots.show(
        plots.attention_map(
            one.weights.mean(dim=0).numpy(),
            queries=list(one.written),
            keys=[letter if letter != " " else "␣" for letter in one.source],
            ax=plots.panels(1, width=6.4, height=4.4)[0],
            title=date_words.LANGUAGES[language],
        )
    )

# %% [markdown]
# Now all 500 dates. Group the rows of a map into year, month and day (the two hyphens say nothing), find where each of
# the three blocks looks most, and ask how often the next block does not go back. A diagonal has 1, an anti-diagonal 0.

# %%
blocks = {"year": slice(0, 4), "month": slice(5, 7), "day": slice(8, 10)}
with torch.no_grad():
    _, layers = reader.decode(known, memory)
every_map = layers[-1]  # (dates, heads, target, source)


def forward_share(weights: Float[Tensor, "target source"]) -> float:
    """Return how many of the two steps between year, month and day do not go back."""
    blockwise = torch.stack([weights[rows].mean(dim=0) for rows in blocks.values()])
    return maps.alignment(blockwise)[1]


forward = {}
for code, language in date_words.LANGUAGES.items():
    rows = [row for row, one in enumerate(dates) if one.language == code]
    shares = [forward_share(every_map[row].mean(dim=0)) for row in rows]
    forward[language] = sum(shares) / len(shares)
    example = next(one.text for one in dates if one.language == code and one.form == "long")
    print(f"{language:>11}: {forward[language]:.2f}   {example}")

print()
verdict(
    "cross-attention in translation is diagonal (at least 9 in 10 steps do not go back)",
    {language: share >= 0.9 for language, share in forward.items()},
    depends_on="the order in which the source tells it",
)

# %% [markdown]
# One model, one layer, the same weights: diagonal in two languages, its mirror image in most, and half and half in
# English. The diagonal is a property of the **pair of texts**, not of cross-attention; nothing in the layer prefers it.
# The document's condition is the whole truth, and a map that is not diagonal is no sign of a bad model.
#
# ### Do the heads differ?
#
# Document B gives an example: one head "might focus on lexical meaning while another captures syntactic structure".
# Here the four heads, with three numbers each: how widely they look, how often the blocks of Hungarian go forward, and
# how many dates are exact when the head is silenced.

# %%
entropies = maps.attention_entropy(every_map).mean(dim=(0, 2))
hungarian = [row for row, one in enumerate(dates) if one.language == "hu"]
[crossing] = [block.cross_attention for block in reader.decoder_blocks]  # it has one block
silenced = {}
for head in range(4):
    ahead = sum(forward_share(every_map[row, head]) for row in hungarian) / len(hungarian)
    with without_heads(crossing, [head]):
        silenced[head] = share_exact(batch.mask, batch.mask)
    print(
        f"head {head + 1}: entropy {entropies[head]:.2f} nats, "
        f"Hungarian forward {ahead:.2f}, exact without it {silenced[head]:.2f}"
    )

# %% [markdown]
# All four follow the same order. They are not equally needed: the last column is what counts, and it does not follow
# from the first two. "Lexical" and "syntactic" are names that a reader gives to maps afterwards; the silenced head is a
# measurement, of this one reader.
#
# ## The ablation: which part of it is the attention?
#
# The trained reader stays as it is, and its cross-attention is disturbed: the memory reordered, the map made even
# (every letter gets the same share), and the memory of another date.

# %%
with torch.no_grad():
    order = torch.randperm(read.shape[1], generator=generator)
    even_keys = [torch.zeros_like(key) for key in memory.keys]  # all scores equal: an even map
    disturbed = {
        "as trained": memory,
        "memory\nreordered": reader.remember(read[:, order], batch.mask[:, order]),
        "map made\neven": memory._replace(keys=even_keys),
        "another\nmemory": reader.remember(read.roll(1, 0), batch.mask.roll(1, 0)),
    }
still_exact = {}
for name, ready in disturbed.items():
    found = date_reader.free_characters(reader, ready, len(dates))
    still_exact[name] = (found == batch.target).all(dim=1).double().mean().item()
plots.show(
    plots.bar_plot(
        still_exact,
        ylabel="share of dates exact",
        title="Dates exact when cross-attention is disturbed",
        ax=plots.panels(1, width=6.0)[0],
    )
)
others = (found == batch.target.roll(1, 0)).all(dim=1).double().mean()  # the last of the four
print(f"with another memory, {others:.1%} are that memory's date, letter for letter")

# %% [markdown]
# Reordering changes nothing, as in the experiment at the start: each state knows its place. An even map loses
# everything. The mean of a date's letters still tells which letters it has, but not which digit comes third; choosing
# is the point of it. And with another memory the decoder writes a fine date: that memory's.
#
# ### How sure is 99 in 100?
#
# The numbers above come from one seed. A script in `benchmarks/` trains three readers and lets each write 2000 unseen
# dates:

# %%
stored = results.load("date_words")
for row in stored["rows"]:
    weakest = min(row["by_language"], key=row["by_language"].get)
    print(
        f"seed {row['seed']}: {row['exact']:.1%} exact, weakest "
        f"{date_words.LANGUAGES[weakest]} with {row['by_language'][weakest]:.1%}"
    )

# %% [markdown] exercise="keep_or_not" role="header" minutes=12
# ## Written question: what to keep
#
# A summarizer with 6 decoder layers reads 2000 tokens and writes 200, for 8 users at once. Name everything that may be
# computed once for each source, everything that must be computed at each step, and everything that can be kept from
# one step to the next. Say for each what makes it so. Then: a colleague keeps the projected memory inside the layer,
# "computed at the first call". What goes wrong, when, and how would you notice? Half a page.
#
# Your teacher looks for four things: the memory and its projections with the reason; queries and the newest token's
# work; the decoder's own past, and how it differs from the memory; the stale cache with a test that finds it.

# %%
# Room for a count of your own: tokens projected for 2000 read and 200 written, in 6 layers.
layers_of_it, tokens_read, tokens_written = 6, 2000, 200

# %% [markdown] exercise="keep_or_not" role="written" points=4
# **Model answer.** Once for each source: the whole encoder, and in each decoder layer the keys and values of the
# memory. Neither depends on what is written. For 6 layers that is 6 · 2000 tokens, against 6 · 2000 · 200 = 2,400,000
# if every step projected again: 199 of 200 parts are saved.
#
# At each step: for the newest token alone, its embedding, its query, key and value in self-attention, its query in
# cross-attention, both softmaxes over all keys, the output projections, the feed-forward network and the head.
#
# Kept from step to step: keys and values of the tokens written so far. They can be kept because of the causal mask: an
# earlier token never sees a later one, so its states do not change. This cache grows by one at each step (200 at the
# end), while the memory's is complete from the start and never grows. Without it, self-attention would project
# 200 · 201 / 2 tokens in each layer.
#
# A memory kept inside the layer is right for the first source and wrong for every one after it: the decoder goes on
# reading the old text. Nothing raises, as long as the shapes fit; the output is fluent and about something else. With 8
# users it also mixes rows when one of them is replaced. A test finds it by calling the layer twice with two memories
# and comparing the second result with a fresh layer's. The cache belongs to the caller, who knows when a source begins.
#
# **Rubric** (one point each)
#
# 1. Encoder and projected memory once, because they do not depend on the target; a count.
# 2. What each step must compute for its newest token.
# 3. The decoder's own past: kept thanks to causality, and it grows.
# 4. The stale cache: when it shows, that it is silent, and a test with two memories.

# %% [markdown] exercise="two_scores" role="header" minutes=12
# ## Written question: two scores
#
# A paper reports that its decoder gets "97.1 % of tokens right" on unseen texts, measured with teacher forcing. Texts
# have 40 tokens on average. What does this number say about whole texts that are exactly right, and what does it not
# say? Can the number of exact texts be larger when the model writes alone? Use what you measured with the beginner:
# quote at least two numbers. A quarter of a page.
#
# Your teacher looks for three things: an answer about the exact texts under greedy decoding, with its reason; what a
# share of tokens hides, with your numbers; and a fair way to report.

# %% [markdown] exercise="two_scores" role="written" points=3
# **Model answer.** Under greedy decoding a text is exact when written alone just if every teacher-forced token is
# right: up to the first mistake both runs have read the same. So the number of exact texts is equal in both modes,
# neither larger nor smaller, and it can be read off a single teacher-forced pass. If mistakes fell independently,
# 97.1 % of tokens would leave 0.971⁴⁰ ≈ 31 % of the texts exact. Mistakes cluster in hard texts, so it is usually
# more, but the share of tokens alone does not say.
#
# What it hides is how a mistake goes on. The beginner had a higher share of characters right with teacher forcing than
# alone (the cell prints both; about 0.8 and a few hundredths less), while the exact dates were equal. Character 2 was
# right in all dates under teacher forcing, because it follows from character 1, which the teacher had given away.
#
# A fair report gives exact texts, or a measure of texts that the model wrote itself, and names the search (greedy, or
# how many beams). A teacher-forced share may stand beside it, named as such.
#
# **Rubric** (one point each)
#
# 1. Equality of exact texts under greedy decoding, with the reason.
# 2. What a teacher-forced share hides, with two measured numbers.
# 3. A fair way to report.

# %% [markdown]
# ## Optional: your own parts, together
#
# Your `CrossAttention` can take the place of the one that the reader was trained with, and your `greedy_decode` can let
# it write. This cell is not graded, and may fail while an answer is unfinished.

# %%
try:
    mine = CrossAttention(64, 4)
    mine.load_state_dict(crossing.state_dict())
    key, value = cache_memory(mine, reader.encode(batch.source, batch.mask))
    ready = memory._replace(keys=[key], values=[value])
    tokens = greedy_decode(
        date_reader.writer(reader, ready),
        date_words.START_ID,
        date_words.END_ID,
        date_reader.MAX_WRITTEN,
        len(dates),
    )
    fine = date_reader.exact(tokens, dates)
    print(f"with your cache and your loop: {sum(fine) / len(fine):.1%} of the dates exact")
except (NotImplementedError, AttributeError, TypeError):
    print("One of the three is not written yet; come back when all are.")

# %% [markdown]
# ## Summary
#
# - Cross-attention is attention with its arguments from two places: the target asks, the memory is searched. Its map is
#   target × source.
# - It does not see the order of the memory; the encoder has to write places into it.
# - A decoder's block looks back (the future hidden), looks through the memory (padding hidden), and transforms.
# - Teacher forcing reads the truth, shifted by one, and trains all places in one pass. Exact answers are the same as
#   when the model writes greedily alone; what differs is what follows a mistake.
# - The memory's keys and values are computed once for each source. The saving grows with what is written.
# - Padding that is not hidden does not raise. It makes answers depend on their neighbors in the batch.
# - A beam finds better scores. Whether they are better answers depends on the model.
# - A map is diagonal when source and target tell things in the same order, and only then.
#
# **Next:** the models in these chapters learned because somebody had tried rates and schedules. Chapter 11 is about
# that, and about telling from the curves what goes wrong.
#
# ### Sources
#
# - Vaswani et al. 2017, *Attention Is All You Need*, arXiv 1706.03762: §3.1 (decoder, shift), §3.2.3 (the three uses),
#   fig. 1.
# - Bahdanau et al. 2015, *Neural Machine Translation by Jointly Learning to Align and Translate*, arXiv 1409.0473,
#   §3.1 and fig. 3: the first alignment maps.
# - Sutskever et al. 2014, *Sequence to Sequence Learning with Neural Networks*, arXiv 1409.3215, §3.2: the beam.
# - Wu et al. 2016, *Google's Neural Machine Translation System*, arXiv 1609.08144, §7: the score and its length.
# - Bengio et al. 2015, *Scheduled Sampling for Sequence Prediction*, arXiv 1506.03099; Ranzato et al. 2016, *Sequence
#   Level Training*, arXiv 1511.06732: teacher forcing and exposure bias.
# - Stahlberg and Byrne 2019, *On NMT Search Errors and Model Errors*, arXiv 1908.10090; Holtzman et al. 2020, *The
#   Curious Case of Neural Text Degeneration*, arXiv 1904.09751: when a better score is a worse text.
# - Raffel et al. 2017, *Online and Linear-Time Attention by Enforcing Monotonic Alignments*, arXiv 1704.00784.
# - Michel et al. 2019, *Are Sixteen Heads Really Better than One?*, arXiv 1905.10650, §2.3: silencing a head.
# - Raffel et al. 2020, *Exploring the Limits of Transfer Learning*, arXiv 1910.10683: T5; Lewis et al. 2020, *BART*,
#   arXiv 1910.13461.
# - Unicode Consortium, *Common Locale Data Repository*: the forms of dates, through Babel.
