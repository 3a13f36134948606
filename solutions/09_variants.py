# ---
# title: "9 · One trunk, three objectives: GPT, BERT, T5, Switch"
# ---

# %% [markdown] role="opening" minutes=45
# # 9 · One trunk, three objectives: GPT, BERT, T5, Switch
#
# You have built every part of a transformer. In this chapter you put them together three times, and each time the
# model is asked another question: what comes next (GPT), what is hidden (BERT), what was cut out (T5). The stack of
# blocks stays nearly the same. What differs is who may see whom, and which places are scored. Then Switch changes
# the stack itself: it replaces the one feed-forward network by many, and sends each token to one of them.
#
# **At the end you can**
#
# - write the losses and the masking of all three objectives, and say which places count in each;
# - build a GPT, count its parameters to the unit, and train one on English text in a few seconds of CPU time;
# - let it write, with temperature, top-k and top-p, and say what each of them cuts off;
# - build a layer of experts, watch it collapse, and keep it balanced;
# - turn a block of GPT-2 into one of Llama with five edits, and say what each one changes.
#
# **You need** chapters 4 to 6: the block, positions and masks.
#
# **The documents.** The chapter mirrors document B's "Transformer Variants (BERT, GPT, etc.)" with its formulas for
# both objectives, for GPT's mask and for experts, and its "Case Study: BERT-Style Models"; document A's "A Minimal
# Transformer Classifier"; and document C's "Encoder, Decoder, And Causal Masking". Several of their claims go on
# trial.
#
# **Nothing is downloaded.** The text to learn from ships with Python: it is what `help()` shows.

# %%
import math

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from autograder import check
from course_lib import (
    costs,
    flop_counter,
    masks,
    model_sizes,
    next_sentence,
    objectives,
    padded_batches,
    plots,
    positions,
    results,
    routing,
)
from course_lib import documentation_text as documentation
from course_lib.block import TransformerBlock
from course_lib.feed_forward import FeedForward
from course_lib.models import classifier, expert_collapse, llama, switch
from course_lib.models.encoder_lm import EncoderLanguageModel
from course_lib.models.generation import generate, next_logits
from course_lib.models.recurrent import RecurrentLanguageModel
from course_lib.models.trunk import Trunk
from course_lib.training.loop import forever, train
from course_lib.trial import reveal, verdict
from course_lib.widgets.expert_loads import expert_loads_explorer
from course_lib.widgets.sampling import sampling_explorer

torch.set_num_threads(1)  # so that your numbers compare with those of a machine with more cores

# %% [markdown]
# ## The text
#
# All models of this chapter read the same text, character by character. About a fifth of Python's help repeats
# paragraphs of other topics word for word; each is kept once, so that the test does not ask for what training has
# shown. A tenth is set aside for the test.

# %%
text = documentation.documentation_text()
print(f"{len(text.train):,} characters to learn from, {len(text.validation):,} set aside")
print(f"{text.vocab_size} different characters\n")
print(text.characters.decode(text.validation[:330]))

# %% [markdown]
# A model that knows nothing spreads its guess evenly over all characters and loses $\ln V$ nats. Counting does
# better. The share of each character alone, or of each **pair** of neighbors (a bigram table), is a baseline that
# costs nothing, and a transformer that cannot beat it has learned nothing about text.

# %%
shares = documentation.character_shares(text.train, text.vocab_size)
pairs = documentation.bigram_table(text.train, text.vocab_size)
seen = shares[text.validation].clamp(min=1 / len(text.train))
baselines = {
    "even guess": math.log(text.vocab_size),
    "single characters": -seen.log().mean().item(),
    "pairs (bigram)": documentation.bigram_loss(pairs, text.validation),
}
for name, loss in baselines.items():
    print(f"{name:>18}: {loss:.2f} nats per character")

# %% [markdown]
# ## GPT: what comes next?
#
# A GPT reads a text and says at **every** place what comes after it. One text of n tokens is n − 1 questions, and
# all of them are answered in one pass, because the causal mask keeps each place from seeing its own answer.

# %% [markdown] exercise="next_token_loss" role="header" minutes=10 lines=5 difficulty=2
# ## Exercise: the loss of the next token
#
# Score every place on the token after it:
#
# $$\text{loss} = -\frac{1}{N}\sum_t \ln P(\text{token}_{t+1} \mid \text{token}_1 \dots \text{token}_t)$$
#
# **Why it matters.** This one line trains every GPT. Shift by one too few, and the model learns to copy what it
# sees; shift once in the data and once more in the loss, and it learns to skip a token. Both have happened in
# well-known libraries, and in both cases the loss went down nicely.
#
# **Contract.** `logits` is (batch, token, vocab), `tokens` (batch, token); the shift by one happens **inside**. A
# target with the id `ignore_index` does not count. The loss is the mean over all targets of the batch that count,
# in nats, one number without axes. If none counts it is 0, with a gradient of 0. PyTorch's `cross_entropy` may be
# used.
#
# <details><summary>Hint 1: the idea</summary>
#
# Write down a text of four tokens. Which place is asked about which token? Which place has no question, and which
# token is nobody's answer?
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# Drop the last place of the logits and the first token. `F.cross_entropy` wants logits (N, vocab) and targets
# (N,), takes `ignore_index`, and with `reduction="sum"` leaves the division to you.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The sum of the losses, divided by the number of targets that differ from `ignore_index`, but by at least 1.
#
# </details>


# %% exercise="next_token_loss" role="answer"
def next_token_loss(
    logits: Float[Tensor, "batch token vocab"],
    tokens: Int[Tensor, "batch token"],
    ignore_index: int = -100,
) -> Float[Tensor, ""]:
    """Average -ln P over all tokens that follow another one."""
    # BEGIN SOLUTION
    said, targets = logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
    total = F.cross_entropy(said, targets, ignore_index=ignore_index, reduction="sum")
    return total / (targets != ignore_index).sum().clamp(min=1)
    # END SOLUTION


# %% exercise="next_token_loss" role="test" points=1
from autograder import check

check(next_token_loss)

# %% exercise="next_token_loss" role="hidden test" points=2
from autograder import check

check(next_token_loss, hidden=True)

# %% [markdown]
# > **Paper and practice: who shifts?** Some code shifts in the data set and hands the model inputs and targets that
# > are one apart; some, like this exercise, shifts inside the loss. Both are right, and both at once is a fault that
# > nobody notices until the model writes. Document B's AR(x) is a **sum** of log-probabilities, which should grow;
# > what is minimized in practice is the mean of their negatives.

# %% [markdown] exercise="repaired_gpt_mask" role="header" minutes=6 lines=1 difficulty=2
# ## Bug hunt: the mask of document B
#
# Document B writes GPT's attention as $\text{softmax}(QK^\top/\sqrt{d_k} + M)\,V$, "where M is a lower triangular
# mask matrix with −∞ in positions i > j". A few pages earlier it says: $M_{ij} = -\infty$ if $i < j$. They cannot
# both be right. The starter below is the first of them, as code.
#
# **Why it matters.** Nothing crashes with the wrong one, and the loss looks splendid. The next cells show it.
#
# **Contract.** Return the mask for n tokens, (n, n), row i for query i and column j for key j. A boolean mask in
# which True hides is this course's form; a float mask that holds 0 and −∞, to be added to the scores as in the
# document, is accepted too.
#
# <details><summary>Hint 1: the idea</summary>
#
# Fill in the table for three tokens by hand. The first token has read only itself. Which cells of row 0 must be
# hidden?
#
# </details>
# <details><summary>Hint 2: how to see it</summary>
#
# Print the starter's mask for n = 4, and for each row the keys that are left to see.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# A key is hidden if it stands **after** the query. The diagonal stays visible.
#
# </details>


# %% exercise="repaired_gpt_mask" role="answer"
def repaired_gpt_mask(n: int) -> Bool[Tensor, "query key"]:
    """Hide the future: True where the key stands after the query."""
    # BEGIN SOLUTION
    i, j = torch.arange(n)[:, None], torch.arange(n)[None, :]
    return j > i
    # END SOLUTION
    # BEGIN STARTER
    # i, j = torch.arange(n)[:, None], torch.arange(n)[None, :]
    # return i > j
    # END STARTER


# %% exercise="repaired_gpt_mask" role="test" points=1
from autograder import check

check(repaired_gpt_mask)

# %% exercise="repaired_gpt_mask" role="hidden test" points=1
from autograder import check

check(repaired_gpt_mask, hidden=True)

# %% [markdown]
# ### Claim on trial: "−∞ in positions i > j"
#
# Here are both rules for four tokens whose scores are all 0, so that each query shares 1 out evenly among the keys that
# it may see.

# %%
axes = plots.panels(2, width=3.4, height=3.0)
signs = {"−∞ where i < j": -1, "−∞ where i > j": 1}
for ax, (name, sign) in zip(axes, signs.items(), strict=True):
    difference = torch.arange(4)[:, None] - torch.arange(4)[None, :]
    forbidden = sign * difference > 0
    even_shares = masks.masked_softmax(torch.zeros(4, 4), forbidden)
    plots.attention_map(even_shares.numpy(), mask=forbidden.numpy(), title=name, ax=ax)
plots.show(axes[0].figure)

# %% [markdown]
# Under the second rule every place sees itself and all that comes **after** it. Only the last place has nothing to
# peek at, and this is the place that counts when a model writes. Train the same small model under both rules, for
# the same number of steps:

# %%
PEEK_LENGTH = 32
rows, columns = torch.arange(PEEK_LENGTH)[:, None], torch.arange(PEEK_LENGTH)[None, :]
rules = {"hidden where j > i": columns > rows, "hidden where i > j": rows > columns}


def place_losses(logits: Tensor, tokens: Tensor) -> Tensor:
    """Average the surprise at each place over a batch of texts."""
    each = F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
    return each.mean(dim=0)


check_texts = documentation.all_windows(text.validation, PEEK_LENGTH)[:600]
peeking, writing, blind = {}, {}, {}
for name, rule in rules.items():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = EncoderLanguageModel(text.vocab_size, PEEK_LENGTH, rule)
    train(
        model,
        forever(lambda g=generator: documentation.windows(text.train, 16, PEEK_LENGTH, g)),
        steps=150,
        learning_rate=0.005,
        loss=lambda model, tokens: objectives.next_token_loss(model(tokens), tokens),
    )
    with torch.no_grad():
        model.eval()
        peeking[name] = place_losses(model(check_texts), check_texts).mean().item()
        other_end = check_texts.clone()
        other_end[:, -1] = (other_end[:, -1] + 1) % text.vocab_size
        earlier = (model(check_texts) - model(other_end))[:, :-1].abs().max().item()
        blind[name] = earlier < 1e-4  # changing the last character moves nothing before it
        # As in use: at each length the last token is all that comes last.
        model.mask = rule[:16, :16]
        model.positions = nn.Parameter(model.positions[:16])
        said = model(check_texts[:, :16])[:, -1]
        writing[name] = F.cross_entropy(said, check_texts[:, 16]).item()
    print(f"{name}: {peeking[name]:.2f} nats while training, {writing[name]:.2f} when it writes")

print()
verdict(
    "document B's mask prevents tokens from attending to future positions",
    blind,
    depends_on="which of its two rules is meant",
)
right_rule, wrong_rule = rules
verdict(
    "the model with the lower training loss writes better",
    {
        "these two": (peeking[wrong_rule] < peeking[right_rule])
        == (writing[wrong_rule] < writing[right_rule])
    },
    depends_on="the mask",
)

# %% [markdown]
# The wrong mask has by far the better training loss, since it reads the answers; and it cannot write. When your loss
# is too good, look at the mask first.

# %% [markdown] exercise="GPT" role="header" minutes=20 lines=18 difficulty=4
# ## Exercise: GPT
#
# Put the model together: embeddings, a stack of pre-norm blocks under the causal mask, a last norm, and a head that
# is the token embedding once more.
#
# **Why it matters.** This is GPT-2, in all but size. Its tied head saves V · d numbers: 38.6 of GPT-2 small's 124
# million.
#
# **Contract.** `GPT(vocab_size, d_model, num_heads, num_layers, max_length)`, and `forward(tokens)` gives logits
# (batch, token, vocab). The blocks have GELU networks of width 4 · d_model. Positions are learned, `max_length` of
# them, and longer input raises a `ValueError` that says so. The model is causal. The head has no weights of its own:
# it is the token embedding, so that the parameters are exactly as many as in the next exercise. A fresh model loses
# about ln V: embeddings that start with a standard deviation of 0.02 see to that. The names of attributes are
# yours. `TransformerBlock` and `masks.causal_mask` are finished parts of `course_lib`.
#
# <details><summary>Hint 1: the idea</summary>
#
# Tokens become vectors, places add vectors, blocks transform, and at the end each vector is compared with the vector
# of every token. Where does a fresh model's loss of ln V come from? All logits have to be near 0.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `nn.Embedding`, `nn.ModuleList`, `TransformerBlock(d_model, num_heads, d_ff, norm_first=True, activation="gelu")`,
# which takes (x, mask), and `nn.init.normal_(weight, std=0.02)`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# x = embedding of tokens + embedding of `torch.arange(length)`; each block with the mask; the norm; then
# `x @ embedding.weight.T`.
#
# </details>


# %% exercise="GPT" role="answer"
class GPT(nn.Module):
    """Predict every token from those before it."""

    # BEGIN SOLUTION
    def __init__(
        self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, max_length: int
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_length, d_model)
        self.stack = nn.ModuleList(
            TransformerBlock(d_model, num_heads, 4 * d_model, norm_first=True, activation="gelu")
            for _ in range(num_layers)
        )
        self.last_norm = nn.LayerNorm(d_model)
        for table in (self.words, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token vocab"]:
        length, most = tokens.shape[1], self.places.num_embeddings
        if length > most:
            raise ValueError(f"`tokens` has {length} places, and the model knows only {most}")
        x = self.words(tokens) + self.places(torch.arange(length))
        future = masks.causal_mask(length)
        for block in self.stack:
            x = block(x, future)
        return self.last_norm(x) @ self.words.weight.T

    # END SOLUTION
    # BEGIN STARTER
    # def __init__(
    #     self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, max_length: int
    # ) -> None:
    #     super().__init__()
    #     raise NotImplementedError()
    #
    # def forward(self, tokens: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token vocab"]:
    #     raise NotImplementedError()
    # END STARTER


# %% exercise="GPT" role="test" points=2
from autograder import check

check(GPT)

# %% exercise="GPT" role="hidden test" points=3
from autograder import check

check(GPT, hidden=True)

# %% [markdown] exercise="model_parameter_count" role="header" minutes=10 lines=6 difficulty=2
# ## Exercise: how large is it?
#
# Count the parameters of a whole model, GPT or BERT, without building it.
#
# **Why it matters.** "A model of 7 billion parameters" is the first thing that anybody says about a model. With this
# function you can read the sizes in a paper's table and see whether the headline is right.
#
# **Contract.** Biases everywhere; the head is tied and costs nothing. `max_length` and `segments` are rows of
# further embeddings. `embedding_norm` and `final_norm` each add a norm of 2 · d_model; `pooler` adds a linear layer
# from d_model to d_model. Return an int. `costs.block_parameter_count(d_model, d_ff)` from chapter 7 counts a block.
# Known answers: GPT-2 small has 124,439,808 and BERT-base 109,482,240.
#
# <details><summary>Hint 1: the idea</summary>
#
# Three sums: what is looked up in tables, what is in the blocks, and what stands around them.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# A table of r rows has r · d_model numbers. Three kinds of rows: tokens, places, segments.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# (vocab + length + segments) · d_model, plus layers times a block, plus 2 · d_model for each norm that is there,
# plus d_model² + d_model for a pooler.
#
# </details>


# %% exercise="model_parameter_count" role="answer"
def model_parameter_count(
    vocab_size: int,
    max_length: int,
    d_model: int,
    num_layers: int,
    d_ff: int,
    segments: int = 0,
    embedding_norm: bool = False,
    final_norm: bool = True,
    pooler: bool = False,
) -> int:
    """Count what a GPT or a BERT learns."""
    # BEGIN SOLUTION
    tables = (vocab_size + max_length + segments) * d_model
    stack = num_layers * costs.block_parameter_count(d_model, d_ff)
    norms = 2 * d_model * (int(embedding_norm) + int(final_norm))
    extra = d_model * (d_model + 1) if pooler else 0
    return tables + stack + norms + extra
    # END SOLUTION


# %% exercise="model_parameter_count" role="test" points=1
from autograder import check

check(model_parameter_count)

# %% exercise="model_parameter_count" role="hidden test" points=2
from autograder import check

check(model_parameter_count, hidden=True)

# %% [markdown]
# ### Claim on trial: the sizes in the documents
#
# Document A gives BERT "110M+" parameters, document B gives GPT-3 "175 billion". The sizes below are those of the
# papers. A headline may round; it holds here if it is within 1 %.

# %%
count = model_sizes.model_parameter_count
real_sizes = {
    "GPT-2 small": count(50257, 1024, 768, 12, 3072),
    "BERT base": count(
        30522, 512, 768, 12, 3072, segments=2, embedding_norm=True, final_norm=False, pooler=True
    ),
    "BERT large": count(
        30522, 512, 1024, 24, 4096, segments=2, embedding_norm=True, final_norm=False, pooler=True
    ),
    "GPT-3": count(50257, 2048, 12288, 96, 49152),
}
for name, size in real_sizes.items():
    print(f"{name:>12}: {size:>15,}")
print()
verdict(
    "the headline number is within 1 % of the count",
    {
        "BERT base, 110 million": abs(real_sizes["BERT base"] / 110e6 - 1) < 0.01,
        "BERT large, 340 million": abs(real_sizes["BERT large"] / 340e6 - 1) < 0.01,
        "GPT-3, 175 billion": abs(real_sizes["GPT-3"] / 175e9 - 1) < 0.01,
    },
    depends_on="the model",
)

# %% [markdown]
# Document B says that GPT-3 reached its size "using:", and the list is missing. The paper's: 96 layers of width 12,288
# with 96 heads of 128 features, networks of width 49,152, a context of 2,048 tokens, and 300 billion tokens in steps of
# 3.2 million. Nor are its layers all alike: every second one is sparse, a band along the diagonal (chapter 8).
#
# ## A character GPT
#
# Now train one. The **trunk** below is the GPT of the exercise with two changes, which make a narrow model learn much
# faster: its positions are rotary (chapter 5) and not learned, and its matrices start larger than 0.02, a number made
# for wide models. Its mask is an argument, so that the same class serves as a GPT and, further down, as a masked
# model. Under the causal mask it is a writer.


# %%
LENGTH, BATCH = 64, 16  # characters seen at once, texts per step
WIDTH, HEADS = 64, 4  # features of a character, heads
STAGES = [(400, 0.004), (150, 0.001)]  # steps and learning rate


class Writer(nn.Module):
    """The trunk under the causal mask: a GPT."""

    max_length = LENGTH

    def __init__(self) -> None:
        super().__init__()
        self.trunk = Trunk(text.vocab_size, WIDTH, HEADS, num_layers=1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Give the logits of the character after each place."""
        return self.trunk(tokens, masks.causal_mask(tokens.shape[1]))


def next_character(model: nn.Module, tokens: Tensor) -> Tensor:
    """Score a model's guesses of the next character."""
    return objectives.next_token_loss(model(tokens), tokens)


def trained_writer(make, stages: list[tuple[int, float]]) -> nn.Module:
    """Train a fresh model in stages of (steps, learning rate); equal seeds give equal runs."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = make()
    for length, rate in stages:
        train(
            model,
            forever(lambda: documentation.windows(text.train, BATCH, LENGTH, generator)),
            steps=length,
            learning_rate=rate,
            loss=next_character,
        )
    return model.eval()


test_texts = documentation.all_windows(text.validation, LENGTH)
writer_size = flop_counter.counted_parameters(Writer())
print(f"the writer has {writer_size:,} parameters, the bigram table {text.vocab_size**2:,} entries")

# %% [markdown]
# ### Predict first: how good in a few seconds?
#
# The bigram table, which has seen every pair of neighbors in the whole text, loses what is printed above. What will
# this GPT lose on the test text, in nats per character, after some ten seconds of training?

# %%
my_prediction = None  # nats per character

writer = trained_writer(Writer, STAGES)
with torch.no_grad():
    writer_places = place_losses(writer(test_texts), test_texts)
writer_loss = writer_places.mean().item()
reveal(my_prediction, writer_loss)

# %% [markdown]
# What has it learned that a table of pairs has not? Look at the loss by the number of characters that it has seen.

# %%
groups = {1: (0, 1), 2: (1, 2), 4: (2, 4), 8: (4, 8), 16: (8, 16), 32: (16, 32), 63: (32, 63)}
by_context = [writer_places[first:last].mean().item() for first, last in groups.values()]
plots.show(
    plots.line_plot(
        list(groups),
        {"GPT": by_context, "pairs": [baselines["pairs (bigram)"]] * len(groups)},
        xlabel="characters seen (at most)",
        ylabel="nats per character",
        title="Context is what beats counting",
        log_x=True,
    )
)

# %% [markdown]
# With one character to go by, a GPT can do no better than the table. The next few help a great deal; after about eight
# the curve only wavers. The other direction makes the point as an **ablation**: take the trained model and let it see
# only the last k characters. Nothing else changes.


# %%
def with_window(model: nn.Module, k: int) -> float:
    """Measure the loss when each place sees itself and the k - 1 characters before it."""
    distance = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)[None, :]
    with torch.no_grad():
        logits = model.trunk(test_texts, (distance < 0) | (distance >= k))
    return place_losses(logits, test_texts)[LENGTH // 2 :].mean().item()


windows = [1, 2, 4, 8, 16, 32, 64]
cut_losses = {f"{k}": with_window(writer, k) for k in windows}
plots.show(
    plots.bar_plot(
        cut_losses,
        ylabel="nats per character",
        title="The same model with a shorter view (characters)",
        ax=plots.panels(1, width=6.5)[0],
    )
)

# %% [markdown]
# Nearly all that this small model knows comes from the last four characters or so. Then why not count runs of four?
# Because a table of all runs of four characters has $V^4$ entries, more than a hundred million, and the text is not
# half a million characters long. The model shares what it learns between runs that are alike, in the parameters that
# are counted above.
#
# ### A recurrent network on the same text
#
# Before GPT, language models were recurrent. An LSTM of the same width reads the same number of characters. It has
# no limit on how far back it looks, and everything that it remembers has to fit into two vectors of that width, its
# state and its cell.

# %%
lstm = trained_writer(lambda: RecurrentLanguageModel(text.vocab_size, WIDTH, "lstm"), STAGES)
with torch.no_grad():
    lstm_loss = place_losses(lstm(test_texts), test_texts).mean().item()
plots.show(
    plots.bar_plot(
        {
            "even\nguess": baselines["even guess"],
            "single\ncharacters": baselines["single characters"],
            "pairs": baselines["pairs (bigram)"],
            "LSTM": lstm_loss,
            "GPT": writer_loss,
        },
        ylabel="nats per character",
        title="Test loss after equal numbers of steps",
        ax=plots.panels(1, width=6.5)[0],
    )
)

# %% [markdown]
# The GPT is ahead after equal steps, and both have left counting far behind. The difference that made history is
# elsewhere: a GPT works on all places of a text at once, and an LSTM on one after another (chapter 7 counts the steps).
#
# ### What a longer run gives
#
# Your run took seconds. A GPT as in the exercise, with learned positions, was trained longer by
# `benchmarks/character_gpt.py`, and its curve and a sample are kept with the course:

# %%
long_run = results.load("character_gpt")
long_steps = [step for step, _, _ in long_run["curve"]]
plots.show(
    plots.line_plot(
        long_steps,
        {
            "test text": [held_out for _, _, held_out in long_run["curve"]],
            "pairs": [long_run["bigram"]] * len(long_steps),
        },
        xlabel="steps",
        ylabel="nats per character",
        title=f"A GPT of {long_run['parameters']:,} parameters, trained for longer",
    )
)
print(f"{long_run['held_out']:.2f} nats after {long_run['cpu_seconds']} CPU-seconds\n")
sample = next(s for s in long_run["samples"] if s["temperature"] == 0.8 and s["top_p"])
print(f"temperature {sample['temperature']}, top-p {sample['top_p']}:\n{sample['text']}")

# %% [markdown] exercise="sample_token" role="header" minutes=15 lines=14 difficulty=4
# ## Exercise: draw the next token
#
# Turn logits into one token: temperature, then top-k, then top-p.
#
# **Why it matters.** A model gives probabilities; a text needs decisions. Always taking the likeliest token makes
# models repeat themselves, and drawing from all of them lets in nonsense: a thousand unlikely tokens are likely
# together. The order of the three steps is part of every API, and differs between them.
#
# **Contract.** `logits` is (vocab,), the result a Python int. Divide the logits by `temperature`; 0 means greedy:
# the likeliest token. Then keep the `top_k` likeliest tokens, if it is given. Then sort what is left and keep the
# likeliest tokens until their shares, **among what top-k left**, reach `top_p`; the token that crosses p is kept.
# Draw from what is left, with `generator`. The logits stay as they were.
#
# <details><summary>Hint 1: the idea</summary>
#
# Each step only decides what may **not** be drawn. What may not be drawn gets the logit −∞, and the softmax does the
# rest.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `logits.sort(descending=True)` gives values and indices. After it, top-k is a slice, and top-p looks at
# `softmax` and `cumsum`. `torch.multinomial(shares, 1, generator=generator)` draws a place in the sorted list.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# A token stays if the shares **before** it sum to less than p: the cumulative sum minus its own share. Look up the
# token at the drawn place.
#
# </details>


# %% exercise="sample_token" role="answer"
def sample_token(
    logits: Float[Tensor, " vocab"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> int:
    """Draw one token by its chance, after temperature, top-k and top-p."""
    # BEGIN SOLUTION
    if temperature == 0:
        return int(logits.argmax())
    ranked, tokens = (logits / temperature).sort(descending=True)
    chance = ranked[:top_k].softmax(dim=-1)
    if top_p is not None:
        before = chance.cumsum(dim=-1) - chance
        chance = chance.masked_fill(before >= top_p, 0)
    place = torch.multinomial(chance, 1, generator=generator)
    return int(tokens[place])
    # END SOLUTION


# %% exercise="sample_token" role="test" points=2
from autograder import check

check(sample_token)

# %% exercise="sample_token" role="hidden test" points=2
from autograder import check

check(sample_token, hidden=True)

# %% [markdown]
# Now let the trained GPT write. Move the sliders: the outlines are the model's own chances of the next character, the
# filled bars those that your settings leave, and below them stands what the model goes on to write.

# %%
PROMPT = "The value of the expression is "
prompt_ids = text.characters.encode(PROMPT)


def write(temperature: float, top_k: int | None, top_p: float | None, seed: int) -> str:
    """Continue the prompt."""
    generator = torch.Generator().manual_seed(seed)
    tokens = generate(writer, prompt_ids, 120, temperature, top_k, top_p, generator)
    return text.characters.decode(tokens[len(prompt_ids) :])


sampling_explorer(next_logits(writer, prompt_ids), text.characters.characters, PROMPT, write)

# %% [markdown]
# Try temperature 0: the model soon repeats itself. Try temperature 2 without cuts, and then the same with top-k 3.
# No setting makes a model better. They trade variety against mistakes.
#
# > **Paper and practice: the order of the cuts.** Here it is temperature, top-k, top-p, as in most libraries.
# > Where top-p comes first, the nucleus is measured on the untempered shares, and the same three numbers give another
# > distribution. Holtzman et al. 2020 argue for top-p because the number of sensible tokens changes from place to
# > place, and k does not.

# %% [markdown]
# ## BERT: what is hidden?
#
# A GPT sees only the past. For writing there is nothing else; for reading it is a pity: "the ___ of the river" is
# easier with what follows. BERT takes the mask away, so every token sees all others, and needs another question,
# since "what comes next" would stand in plain view. It hides some tokens and asks for those.
#
# (Two sentences of document B need a correction. The original transformer's attention is "bidirectional" in its encoder
# only; its decoder is causal and looks across. And that BERT reads its tokens in parallel is not "unlike the original":
# in training, the original does so too.)

# %% [markdown] exercise="mask_tokens" role="header" minutes=15 lines=12 difficulty=4
# ## Exercise: hide tokens
#
# Choose 15 % of the ordinary tokens. Of the chosen, replace 80 % by the mask, 10 % by a random token, and leave 10 %
# as they are. All chosen ones become questions.
#
# **Why it matters.** If every question came with a mask, a model would learn to think only where it sees one, and in
# use there are none. The 10 % that are wrong and the 10 % that are right force it to have an opinion everywhere.
#
# **Contract.** Return `(inputs, labels)`, both of the shape of `tokens`. Each token that is not in `special_ids` is
# chosen with the chance `p`, independently of all others. `labels` holds the original token where one was chosen and
# −100 elsewhere. Random replacements are drawn among the ids below `vocab_size` that are neither special nor
# `mask_id`. All chances come from `generator`; `tokens` stays as it was.
#
# <details><summary>Hint 1: the idea</summary>
#
# Two independent random numbers for each token: one says whether it is chosen, the other what becomes of it.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `torch.rand(tokens.shape, generator=generator)`, `torch.isin(tokens, torch.tensor(special_ids))`, `torch.where`,
# and a tensor of allowed ids that is indexed by `torch.randint`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Chosen: first number < p and not special. Second number < 0.8: mask. From 0.8 to 0.9: replacement. Labels:
# `torch.where(chosen, tokens, -100)`.
#
# </details>


# %% exercise="mask_tokens" role="answer"
def mask_tokens(
    tokens: Int[Tensor, "... token"],
    mask_id: int,
    vocab_size: int,
    special_ids: list[int],
    generator: torch.Generator,
    p: float = 0.15,
) -> tuple[Int[Tensor, "... token"], Int[Tensor, "... token"]]:
    """Hide some tokens; return what the model reads and what it is asked."""
    # BEGIN SOLUTION
    ordinary = ~torch.isin(tokens, torch.tensor(special_ids, dtype=tokens.dtype))
    chosen = ordinary & (torch.rand(tokens.shape, generator=generator) < p)
    fate = torch.rand(tokens.shape, generator=generator)
    allowed = torch.tensor(sorted(set(range(vocab_size)) - {mask_id, *special_ids}))
    drawn = allowed[torch.randint(len(allowed), tokens.shape, generator=generator)]
    inputs = torch.where(chosen & (fate < 0.8), mask_id, tokens)
    inputs = torch.where(chosen & (fate >= 0.8) & (fate < 0.9), drawn, inputs)
    return inputs, torch.where(chosen, tokens, -100)
    # END SOLUTION


# %% exercise="mask_tokens" role="test" points=2
from autograder import check

check(mask_tokens)

# %% exercise="mask_tokens" role="hidden test" points=2
from autograder import check

check(mask_tokens, hidden=True)

# %% [markdown] exercise="masked_lm_loss" role="header" minutes=6 lines=4 difficulty=2
# ## Exercise: the loss of the hidden tokens
#
# Score the chosen places, each on its own token.
#
# **Why it matters.** Document B writes MLM(x) as an expectation over **one** masked token i at a time, which would
# cost a whole pass for each question. BERT masks many at once and asks all of them in one pass.
#
# **Contract.** `logits` is (batch, token, vocab), `labels` (batch, token) with −100 where nothing is asked. Return
# the mean over all labeled places, in nats; 0, with a gradient of 0, where there is none. No shift.
#
# <details><summary>Hint 1: the idea</summary>
#
# What is different from the loss of the next token? Only which place is compared with which token.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `F.cross_entropy` leaves out −100 by itself, and gives NaN where it leaves out everything.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The sum over what counts, divided by its number or 1, whichever is larger.
#
# </details>


# %% exercise="masked_lm_loss" role="answer"
def masked_lm_loss(
    logits: Float[Tensor, "batch token vocab"], labels: Int[Tensor, "batch token"]
) -> Float[Tensor, ""]:
    """Average -ln P of the original token over all labeled places."""
    # BEGIN SOLUTION
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    return total / (labels != -100).sum().clamp(min=1)
    # END SOLUTION


# %% exercise="masked_lm_loss" role="test" points=1
from autograder import check

check(masked_lm_loss)

# %% exercise="masked_lm_loss" role="hidden test" points=1
from autograder import check

check(masked_lm_loss, hidden=True)

# %% [markdown]
# ### The same trunk, without a mask
#
# The model below is the trunk that just learned to write, created anew, and with `mask=None` in place of the causal
# mask. Only some places are questions, so it learns from fewer of them per text than a GPT does. To make up for a
# part of that, a quarter of the characters is hidden and not BERT's 15 %.
#
# The test hides **one** character in the middle of each text. There is a counting baseline for that, too: multiply
# the chances of both pairs that the character would be in, the one with its left neighbor and the one with its right
# neighbor. The table of pairs alone, from the left, is what a GPT has to work with.

# %%
MASK = len(text.characters)  # one id more than those of the characters


def hidden_characters(model: nn.Module, tokens: Tensor) -> Tensor:
    """Hide characters anew, and score the guesses."""
    inputs, labels = objectives.mask_tokens(tokens, MASK, MASK + 1, [], hiding, p=0.25)
    return objectives.masked_lm_loss(model(inputs), labels)


torch.manual_seed(0)
hiding = torch.Generator().manual_seed(0)
reader = Trunk(MASK + 1, WIDTH, HEADS, num_layers=1)
for length, rate in [(450, 0.005), (200, 0.001)]:
    train(
        reader,
        forever(lambda: documentation.windows(text.train, BATCH, LENGTH, hiding)),
        steps=length,
        learning_rate=rate,
        loss=hidden_characters,
    )
reader = reader.eval()

# %%
gap = torch.stack([torch.arange(len(test_texts)), torch.full((len(test_texts),), LENGTH // 2)], 1)
with_gap = test_texts.clone()
with_gap[:, LENGTH // 2] = MASK
answers = test_texts[:, LENGTH // 2]


def gap_loss(model: nn.Module, mask: Tensor | None) -> float:
    """Measure the surprise at the hidden character."""
    with torch.no_grad():
        return F.cross_entropy(model(with_gap, mask)[:, LENGTH // 2], answers).item()


gap_losses = {
    "pair with\nthe left": documentation.bigram_loss(pairs, text.validation),
    "both\npairs": documentation.neighbor_loss(text.train, test_texts, gap, text.vocab_size),
    "trained reader,\nleft side only": gap_loss(reader, masks.causal_mask(LENGTH)),
    "trained reader": gap_loss(reader, None),
}
plots.show(
    plots.bar_plot(
        gap_losses,
        ylabel="nats per hidden character",
        title="A gap is easier with both sides",
        ax=plots.panels(1, width=6.5)[0],
    )
)

# %% [markdown]
# The third bar is the ablation: the same trained model, but with the causal mask put back on, so that it sees what
# stands left of the gap and nothing else. It was trained to use both sides, and one of them is worth a great deal.
#
# A BERT as in the paper (post-norm, learned positions) was trained for longer, like the GPT above:

# %%
long_reader = results.load("character_bert")
print(
    f"BERT of {long_reader['parameters']:,} parameters, {long_reader['cpu_seconds']} CPU-seconds:"
)
print(
    f"{long_reader['held_out']:.2f} nats per hidden character, {long_reader['accuracy']:.0%} right"
)
print(f"both pairs on the same characters: {long_reader['neighbors']:.2f} nats")

# %% [markdown]
# Back to your reader: it fills gaps in a line of the test text. Each hidden character is a dot; below stand its three
# best guesses.

# %%
line = text.characters.decode(test_texts[40])
places = [9, 20, 31, 42, 53]
puzzle = test_texts[40 : 40 + 1].clone()
puzzle[:, places] = MASK
print("hidden:  ", repr(text.characters.decode(puzzle[0])))
with torch.no_grad():
    guesses = reader(puzzle)[0].softmax(-1)
for place in places:
    best = guesses[place].topk(3)
    listed = ", ".join(
        f"{text.characters.decode([int(i)])!r} {share:.0%}"
        for share, i in zip(best.values, best.indices, strict=True)
    )
    print(f"place {place:>2}: it was {line[place]!r}; guesses {listed}")

# %% [markdown]
# ### Claim on trial: BERT's masking is dynamic
#
# Document B names "dynamic masking" as one of BERT's two innovations. The paper's code masked the text ten times in
# advance and trained on these ten copies for forty epochs; masking anew in every epoch came later, with RoBERTa. Does
# it matter?
#
# ### Predict first: what is never asked?
#
# Each token is chosen with the chance 0.15. After ten masked copies, which share of the tokens, between 0 and 1, has
# been a question at least once?

# %%
my_prediction = None  # a share between 0 and 1


def share_asked(copies: int) -> float:
    """Mask a text several times; return the share of its tokens that were ever a question."""
    tokens = text.validation[:20_000]
    asked = torch.zeros(len(tokens), dtype=torch.bool)
    for seed in range(copies):
        generator = torch.Generator().manual_seed(seed)
        _, labels = objectives.mask_tokens(tokens, MASK, MASK + 1, [], generator)
        asked |= labels != -100
    return asked.double().mean().item()


static, dynamic = share_asked(10), share_asked(40)
reveal(my_prediction, static)
print(f"ten copies for forty epochs: 10 different questions per text, {static:.1%} ever asked")
print(f"masked anew each time:       40 different questions per text, {dynamic:.1%} ever asked\n")
verdict(
    "masking ten copies in advance asks for as many tokens as masking anew in forty epochs",
    {"10 copies": static > 0.99 * dynamic},
    depends_on="the number of copies",
)

# %% [markdown]
# So the name belongs to RoBERTa (Liu et al. 2019, §4.1), and the difference is a fifth of the text.

# %% [markdown] exercise="next_sentence_pairs" role="header" minutes=12 lines=10 difficulty=3
# ## Exercise: pairs of sentences
#
# BERT's second objective: given two sentences, does the second follow the first?
#
# **Why it matters.** It was meant to teach BERT how sentences belong together. Later work left it out (RoBERTa) or
# replaced it (ALBERT). After the exercise you will measure why.
#
# **Contract.** `documents` is a list of lists of sentences, `generator` a `numpy.random.Generator`. For each two
# neighbors of a document return one triple `(first, second, is_next)`: with the chance ½ the true neighbor and
# True, otherwise a random sentence of **another** document and False. The first of each pair is the earlier
# neighbor.
#
# <details><summary>Hint 1: the idea</summary>
#
# Two loops, over documents and over neighbors, and a coin inside. Which sentences may a stranger be drawn from?
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `generator.random() < 0.5` is a coin; `generator.integers(n)` draws a place. `itertools.pairwise` or
# `zip(document, document[1:])` gives neighbors.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# For each document collect the sentences of all others in one list, and draw from it when the coin says so.
#
# </details>


# %% exercise="next_sentence_pairs" role="answer"
def next_sentence_pairs(
    documents: list[list[str]], generator: np.random.Generator
) -> list[tuple[str, str, bool]]:
    """Pair each sentence with its successor or with a stranger."""
    # BEGIN SOLUTION
    triples = []
    for number, sentences in enumerate(documents):
        elsewhere = [s for n, other in enumerate(documents) if n != number for s in other]
        for place in range(len(sentences) - 1):
            follows = bool(generator.random() < 0.5)
            stranger = elsewhere[int(generator.integers(len(elsewhere)))]
            second = sentences[place + 1] if follows else stranger
            triples.append((sentences[place], second, follows))
    return triples
    # END SOLUTION


# %% exercise="next_sentence_pairs" role="test" points=1
from autograder import check

check(next_sentence_pairs)

# %% exercise="next_sentence_pairs" role="hidden test" points=2
from autograder import check

check(next_sentence_pairs, hidden=True)

# %% [markdown]
# How hard is the question? The next cell answers it without any model. It takes paragraphs for sentences and the
# text's stretches for documents, and says "follows" when the two share a long word.

# %%
paragraphs = documentation.paragraphs()
stretches = [paragraphs[start : start + 20] for start in range(0, len(paragraphs), 20)]
examples = next_sentence.next_sentence_pairs(stretches, np.random.default_rng(0))


def long_words(sentence: str) -> set[str]:
    """List the words of seven letters or more."""
    return {word.strip('.,;:()"*').lower() for word in sentence.split() if len(word) >= 7}


def shares_a_word(first: str, second: str) -> bool:
    """Tell whether two sentences have a long word in common."""
    return bool(long_words(first) & long_words(second))


right = np.mean([shares_a_word(first, second) == follows for first, second, follows in examples])
print(f"{len(examples)} pairs; a shared long word decides {right:.0%} of them rightly")

# %% [markdown]
# A coin would decide half of them rightly. A stranger comes from another document, so it often has another
# **subject**, and one shared word gives that away, although all of our documents are about Python; in BERT's corpus
# they are about anything. So a part of the question needs no understanding of how sentences follow. ALBERT asks a
# harder one: are two true neighbors in the right order?
#
# > **Paper and practice: BERT's input.** One sequence holds both sentences: [CLS] first [SEP] second [SEP]. A second
# > table of embeddings says to which sentence each token belongs, and a layer on top of [CLS] (the "pooler") answers
# > the question. `course_lib.models.bert` has all of that, post-norm as in the paper. In the paper's code the label 0
# > means "follows"; here True does.

# %% [markdown]
# ## T5: what was cut out?
#
# T5 turns every task into text in, text out, with an encoder and a decoder. For its pretraining it cuts whole
# **spans** out of a text. The encoder reads what is left, the decoder writes what is missing.

# %% [markdown] exercise="corrupt_spans" role="header" minutes=12 lines=9 difficulty=3
# ## Exercise: cut spans out
#
# Replace each span by one sentinel, and collect the spans as the target.
#
# **Why it matters.** Compare with BERT: the input gets **shorter**, the target is a fraction of the text, and the
# model has to find out how long each gap is. T5's paper compares many variants and takes this one because it is as
# good as others and costs less.
#
# **Contract.** `tokens` is a list, `spans` a list of half-open pairs (start, end), in order and not overlapping.
# Sentinels count **down** from `first_sentinel`, one for each span. Return two lists. Inputs: the text, with one
# sentinel in place of each span. Targets: for each span its sentinel and its tokens, and at the end one more
# sentinel, the next in the row.
#
# <details><summary>Hint 1: the idea</summary>
#
# Walk through the spans and remember how far you have copied.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `tokens[copied:start]` goes to the inputs, `tokens[start:end]` to the targets, the sentinel to both.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# After the loop: copy the rest of the text to the inputs, and append `first_sentinel - len(spans)` to the targets.
#
# </details>


# %% exercise="corrupt_spans" role="answer"
def corrupt_spans(
    tokens: list[int], spans: list[tuple[int, int]], first_sentinel: int
) -> tuple[list[int], list[int]]:
    """Cut spans out of a text; return what is left and what is missing."""
    # BEGIN SOLUTION
    left, missing, done = [], [], 0
    for sentinel, (start, end) in enumerate(spans):
        left += [*tokens[done:start], first_sentinel - sentinel]
        missing += [first_sentinel - sentinel, *tokens[start:end]]
        done = end
    return left + tokens[done:], [*missing, first_sentinel - len(spans)]
    # END SOLUTION


# %% exercise="corrupt_spans" role="test" points=1
from autograder import check

check(corrupt_spans)

# %% exercise="corrupt_spans" role="hidden test" points=2
from autograder import check

check(corrupt_spans, hidden=True)

# %% [markdown]
# One sentence, three objectives. A dash says that a place is not scored:

# %%
sentence = "the documentation that ships with Python can teach a small model to write"
words = sentence.split()
ids = list(range(len(words)))
spans = [(1, 3), (7, 10)]
left, missing = objectives.corrupt_spans(ids, spans, 99)
shown = dict(enumerate(words)) | {99: "<A>", 98: "<B>", 97: "<C>", 50: "[MASK]", -100: "–"}
hidden, asked = objectives.mask_tokens(
    torch.tensor(ids), 50, 51, [], torch.Generator().manual_seed(58), 0.3
)
rows = {
    "GPT reads": ids[:-1],
    "GPT is asked": ids[1:],
    "BERT reads": hidden.tolist(),
    "BERT is asked": asked.tolist(),
    "T5 reads": left,
    "T5 writes": missing,
}
for name, row in rows.items():
    print(f"{name:>14}: {' '.join(shown.get(token, '(random)') for token in row)}")

# %% [markdown]
# Count the questions. GPT is asked at every place. BERT is asked at the hidden ones, and T5 writes the cut tokens and
# their sentinels. T5's own setting cuts 15 % of the text in spans of 3 tokens on average. On 512 tokens that is
# about 26 spans:

# %%
left, missing = objectives.corrupt_spans(
    list(range(512)), [(19 * i, 19 * i + 3) for i in range(26)], 1000
)
print(f"the encoder reads {len(left)} tokens, the decoder writes {len(missing)}")

# %% [markdown]
# > **Paper and practice: T5's block.** It is pre-norm, with RMS norms and no biases, and its scores are not divided by
# > √d_k: the start of the query matrix is made smaller instead. It adds no positions to its tokens. Each head of a
# > stack learns one number for each bucket of distances (chapter 5) and adds it to the scores. `course_lib.models.t5`
# > has all of that.

# %% [markdown] exercise="TransformerClassifier" role="header" minutes=15 lines=16 difficulty=3
# ## Exercise: a classifier that reads order
#
# Build the classifier of document A, with what it lacks: positions, and a mask for padding.
#
# **Why it matters.** Document A calls its small classifier "the full architecture". It has no positions, so it
# cannot tell "dog bites man" from "man bites dog", and its mean runs over padding as well.
#
# **Contract.** `TransformerClassifier(vocab_size, d_model, num_heads, num_layers, num_classes)`; `forward(tokens,
# mask)` takes (batch, token) ids and a boolean mask in which True is padding, and gives logits (batch, classes).
# Positions are added; padding has no influence, neither in the attention nor in the mean; sequences of any length
# are read. `positions.sinusoidal_encoding` (NumPy), `padded_batches.masked_mean` and `TransformerBlock` are finished
# parts of `course_lib`.
#
# <details><summary>Hint 1: the idea</summary>
#
# Embed, add positions, run the blocks with the padding hidden from all queries, average the tokens that are not
# padding, name a class.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# A mask for blocks has the axes (batch, head, query, key): `mask[:, None, None, :]`. The encoding is a NumPy array;
# `torch.from_numpy(...).to(x.dtype)` turns it around.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# `head(masked_mean(x, mask))` at the end, with `head = nn.Linear(d_model, num_classes)`.
#
# </details>


# %% exercise="TransformerClassifier" role="answer"
class TransformerClassifier(nn.Module):
    """Sort sequences of different lengths into classes."""

    # BEGIN SOLUTION
    def __init__(
        self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, num_classes: int
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.stack = nn.ModuleList(
            TransformerBlock(d_model, num_heads, 4 * d_model) for _ in range(num_layers)
        )
        self.answer = nn.Linear(d_model, num_classes)

    def forward(
        self, tokens: Int[Tensor, "batch token"], mask: Bool[Tensor, "batch token"]
    ) -> Float[Tensor, "batch classes"]:
        x = self.words(tokens)
        waves = positions.sinusoidal_encoding(x.shape[1], x.shape[2])
        x = x + torch.from_numpy(waves).to(x.dtype)
        for block in self.stack:
            x = block(x, mask[:, None, None, :])
        return self.answer(padded_batches.masked_mean(x, mask))

    # END SOLUTION
    # BEGIN STARTER
    # def __init__(
    #     self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, num_classes: int
    # ) -> None:
    #     super().__init__()
    #     raise NotImplementedError()
    #
    # def forward(
    #     self, tokens: Int[Tensor, "batch token"], mask: Bool[Tensor, "batch token"]
    # ) -> Float[Tensor, "batch classes"]:
    #     raise NotImplementedError()
    # END STARTER


# %% exercise="TransformerClassifier" role="test" points=2
from autograder import check

check(TransformerClassifier)

# %% exercise="TransformerClassifier" role="hidden test" points=2
from autograder import check

check(TransformerClassifier, hidden=True)

# %% [markdown]
# ### Claim on trial: "around 450k parameters", "the full architecture"
#
# Here is document A's classifier with its own sizes, in the framework's parts. Count it, and shuffle what it reads.


# %%
class DocumentClassifier(nn.Module):
    """Document A's classifier: an embedding, an encoder, a plain mean, a linear layer."""

    def __init__(self, vocab: int, width: int, heads: int, d_ff: int, depth: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, d_ff, batch_first=True)
        self.table = nn.Embedding(vocab, width)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.fc = nn.Linear(width, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        """Give logits."""
        return self.fc(self.encoder(self.table(tokens)).mean(dim=1))


torch.manual_seed(0)
theirs = DocumentClassifier(1000, 128, 2, 4 * 128, 2).eval()
ours = classifier.TransformerClassifier(1000, 128, 2, 2, 2).eval()
sentence = torch.randint(1000, (1, 20))
shuffled = sentence[:, torch.randperm(20)]
no_padding = torch.zeros(1, 20, dtype=torch.bool)
with torch.no_grad():
    moves = {
        "document A's": (theirs(sentence) - theirs(shuffled)).abs().max().item(),
        "with positions": (ours(sentence, no_padding) - ours(shuffled, no_padding))
        .abs()
        .max()
        .item(),
    }
theirs_size = flop_counter.counted_parameters(theirs)
narrow_size = flop_counter.counted_parameters(DocumentClassifier(1000, 128, 2, 3 * 128, 2))
print(f"document A's classifier: {theirs_size:,} parameters; with d_ff = 3 d: {narrow_size:,}")
for name, move in moves.items():
    print(f"{name:>15}: shuffling the tokens moves a logit by {move:.1e}")
print()
verdict(
    "the classifier has around 450,000 parameters (within 5 %)",
    {"vocabulary 1000, d = 128, d_ff = 512": abs(theirs_size / 450_000 - 1) < 0.05},
    depends_on="d_ff",
)
verdict(
    "the classifier's answer depends on the order of the tokens",
    {name: move > 1e-5 for name, move in moves.items()},
    depends_on="whether positions are added",
)

# %% [markdown]
# A network of three times the width instead of the four in its own code would come close to that number. And "dog
# bites man" is the same to it as "man bites dog", up to rounding.

# %% [markdown]
# ## Switch: many networks, one at a time
#
# Document B writes the layer of experts as $y = \sum_i G(x)_i\, E_i(x)$. Read literally, every expert works on every
# token. Switch takes only the **one** expert that the router prefers:
#
# $$y = p_i(x)\, E_i(x), \qquad i = \operatorname{argmax}_j p_j(x), \qquad p(x) = \text{softmax}(\text{router}(x))$$
#
# So a model can have many times the parameters at the same work per token: in the paper more than a trillion. The n in
# document B's sum is the number of experts, not of tokens. And Switch does not stand between BERT and GPT: it is a T5,
# encoder and decoder, whose networks are layers of experts.

# %% [markdown] exercise="switch_route" role="header" minutes=12 lines=6 difficulty=3
# ## Exercise: route
#
# Choose an expert for each token, and say whether it still has room.
#
# **Why it matters.** On real machines each expert sits on a device of its own with a buffer of fixed size. Tokens
# beyond that are **dropped**: the layer adds nothing for them, and the residual connection carries them on.
#
# **Contract.** `router_logits` is (token, expert). Return `(expert_index, gate, kept)`, each (token,): the expert of
# the highest score as int64; its softmax probability, **also** for dropped tokens; and a boolean that is True for the
# first `capacity` tokens of each expert, in the order in which they stand.
#
# <details><summary>Hint 1: the idea</summary>
#
# Each expert has a queue. A token is kept if its place in its own expert's queue is early enough.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `F.one_hot(expert_index, experts)` has one 1 per row. Its `cumsum` along the tokens counts the queues.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Pick each token's own count out of the cumulative sum, with `gather`, and compare it with `capacity`.
#
# </details>


# %% exercise="switch_route" role="answer"
def switch_route(
    router_logits: Float[Tensor, "token expert"], capacity: int
) -> tuple[Int[Tensor, " token"], Float[Tensor, " token"], Bool[Tensor, " token"]]:
    """Choose an expert for each token; return it, its probability, and whether it had room."""
    # BEGIN SOLUTION
    gate, expert_index = router_logits.softmax(dim=-1).max(dim=-1)
    queues = F.one_hot(expert_index, router_logits.shape[-1]).cumsum(dim=0)
    place = queues.gather(1, expert_index[:, None])[:, 0]
    return expert_index, gate, place <= capacity
    # END SOLUTION


# %% exercise="switch_route" role="test" points=1
from autograder import check

check(switch_route)

# %% exercise="switch_route" role="hidden test" points=2
from autograder import check

check(switch_route, hidden=True)

# %% [markdown] exercise="load_balancing_loss" role="header" minutes=10 lines=4 difficulty=3
# ## Exercise: keep it balanced
#
# Write the loss that pushes a router toward equal loads.
#
# $$\text{loss} = e \sum_{i=1}^{e} f_i\, P_i$$
#
# where $f_i$ is the share of tokens that went to expert i and $P_i$ the mean probability that the router gave it.
#
# **Why it matters.** Whoever is chosen learns, whoever learns is chosen: without a counterweight a few experts take
# all. The count $f$ says who is too busy but has no gradient; the probability $P$ has one. Their product has both.
#
# **Contract.** `router_logits` is (token, expert), `expert_index` (token,), given and not to be worked out from the
# scores. Return one number, 1 at perfect balance. The gradient flows through the probabilities.
#
# <details><summary>Hint 1: the idea</summary>
#
# Two vectors with one entry per expert, both summing to 1. If all entries are 1/e, what does the sum of products
# give, and which factor makes that 1?
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `torch.bincount(expert_index, minlength=experts)`, so that idle experts count as 0, and `softmax(-1).mean(0)`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# experts · (share of tokens · mean probability).sum()
#
# </details>


# %% exercise="load_balancing_loss" role="answer"
def load_balancing_loss(
    router_logits: Float[Tensor, "token expert"], expert_index: Int[Tensor, " token"]
) -> Float[Tensor, ""]:
    """Punish uneven loads: e times the sum of share times mean probability."""
    # BEGIN SOLUTION
    count, experts = router_logits.shape
    f = torch.bincount(expert_index, minlength=experts).to(router_logits.dtype) / count
    mean_probability = router_logits.softmax(dim=-1).mean(dim=0)
    return experts * (f * mean_probability).sum()
    # END SOLUTION


# %% exercise="load_balancing_loss" role="test" points=1
from autograder import check

check(load_balancing_loss)

# %% exercise="load_balancing_loss" role="hidden test" points=2
from autograder import check

check(load_balancing_loss, hidden=True)

# %% [markdown] exercise="SwitchFeedForward" role="header" minutes=15 lines=14 difficulty=4
# ## Exercise: the layer of experts
#
# Put router and experts together.
#
# **Why it matters.** This layer takes the place of the feed-forward network in every second block of Switch; the
# same idea, with two or more experts per token, is in many of today's largest models.
#
# **Contract.** `SwitchFeedForward(d_model, d_ff, num_experts, capacity_factor)`, with the attributes `router`, an
# `nn.Linear` without bias, and `experts`, an `nn.ModuleList` of `FeedForward(d_model, d_ff, "relu")`. `forward(x)`
# takes (batch, sequence, d_model). All batch · sequence tokens stand in one row for the routing, and the capacity is
# ⌈capacity_factor · tokens / experts⌉. Each kept token gets its gate times what its expert says, a dropped one gets
# 0. Only chosen experts work, on their own tokens. Returns a tensor of the shape of x. `routing.switch_route` is
# finished.
#
# <details><summary>Hint 1: the idea</summary>
#
# Flatten, route, start from zeros, let each expert fill in its own tokens, and give x's shape back.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# A boolean index picks the tokens of an expert: those that are kept and have its number. It works on both sides of
# an assignment. `math.ceil` rounds up.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# For each expert with any token: what it says about its rows, times their gates as a column, goes into these rows of
# the output.
#
# </details>


# %% exercise="SwitchFeedForward" role="answer"
class SwitchFeedForward(nn.Module):
    """Send each token through the expert that its router prefers."""

    # BEGIN SOLUTION
    def __init__(self, d_model: int, d_ff: int, num_experts: int, capacity_factor: float) -> None:
        super().__init__()
        self.capacity_factor = capacity_factor
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(d_model, d_ff, "relu") for _ in range(num_experts))

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        rows = x.reshape(-1, x.shape[-1])
        room = math.ceil(self.capacity_factor * len(rows) / len(self.experts))
        expert_index, gate, kept = routing.switch_route(self.router(rows), room)
        answer = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            mine = kept & (expert_index == number)
            if mine.any():
                answer[mine] = gate[mine, None] * expert(rows[mine])
        return answer.reshape(x.shape)

    # END SOLUTION
    # BEGIN STARTER
    # def __init__(
    #     self, d_model: int, d_ff: int, num_experts: int, capacity_factor: float
    # ) -> None:
    #     super().__init__()
    #     raise NotImplementedError()
    #
    # def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
    #     raise NotImplementedError()
    # END STARTER


# %% exercise="SwitchFeedForward" role="test" points=2
from autograder import check

check(SwitchFeedForward)

# %% exercise="SwitchFeedForward" role="hidden test" points=3
from autograder import check

check(SwitchFeedForward, hidden=True)

# %% [markdown]
# ### Claim on trial: "parameter-efficient scaling"
#
# Document B says that routing "allows for parameter-efficient scaling … through conditional execution". Count the
# parameters that a layer holds, those that one token meets, and how often an expert works, read literally (all
# experts on every token) and as Switch.

# %%
tokens = torch.randn(1, 64, 16, generator=torch.Generator().manual_seed(0))
calls = {"literal sum": 0, "Switch": 0}
counting = "Switch"


def count_rows(module: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
    """Add the tokens that an expert was given."""
    calls[counting] += inputs[0].numel() // 16


fewer, less_work = {}, {}
for experts in (1, 2, 8):
    layer = switch.SwitchFeedForward(16, 64, num_experts=experts, capacity_factor=float(experts))
    for expert in layer.experts:
        expert.register_forward_hook(count_rows)
    calls.update({"literal sum": 0, "Switch": 0})
    with torch.no_grad():
        counting = "Switch"
        layer(tokens)
        counting = "literal sum"
        weights = layer.router(tokens).softmax(dim=-1)
        literal = sum(weights[..., i : i + 1] * e(tokens) for i, e in enumerate(layer.experts))
    held = flop_counter.counted_parameters(layer)
    dense = flop_counter.counted_parameters(layer.experts[0])
    met = flop_counter.counted_parameters(layer.router) + dense
    print(f"experts: {experts}")
    for name, number in calls.items():
        print(f"   64 tokens, {name}: an expert works on a token {number} times")
    print(f"   parameters: {held:,} held, {met:,} met by a token, {dense:,} in one plain network")
    fewer[f"experts: {experts}"] = held < dense
    less_work[f"experts: {experts}"] = calls["Switch"] < calls["literal sum"]
print()
verdict(
    "the layer holds fewer parameters than one plain network",
    fewer,
    depends_on="the number of experts",
)
verdict("Switch works less than the literal sum", less_work, depends_on="the number of experts")

# %% [markdown]
# It is **compute**-efficient, from two experts on: one expert per token, however many there are. In parameters it is
# lavish, and by its construction it cannot be otherwise: the plain network is one of its experts. That is the point.
#
# ### Collapse
#
# A task made for experts (`course_lib.models.expert_collapse`): tokens of eight kinds, and each kind wants another
# linear map. There are eight experts, and one of them begins with higher scores than the others. The layer is
# trained twice, without the balance loss and with it, with room for all tokens. The loads are kept.
#
# ### Predict first: the busiest expert
#
# An even load would be 0.125. After training **without** the balance loss, which share of the tokens goes to the
# busiest expert?

# %%
my_prediction = None  # a share between 0 and 1

HEAD_START, BALANCE = 6.0, 0.5  # added to one expert's scores; weight of the balance loss

alone = expert_collapse.train_experts(0.0, HEAD_START)
shared = expert_collapse.train_experts(BALANCE, HEAD_START)
reveal(my_prediction, max(alone.loads[-1]))

# %% [markdown]
# Move through the training. Every bar is an expert; the line is an even load.

# %%
expert_loads_explorer(
    {"without the balance loss": alone.loads, "with the balance loss": shared.loads}, alone.steps
)

# %%
for name, run in {"without the balance loss": alone, "with it": shared}.items():
    idle = sum(load < 0.005 for load in run.loads[-1])
    print(f"{name:>24}: error {run.error:.3f}, busiest {max(run.loads[-1]):.0%}, {idle} idle")

# %% [markdown]
# Without it, most experts hardly see a token, so they do not learn, so they are not chosen. With it all eight work,
# and the error falls as well, since the task needs them. The weight here is large because the head start is; the
# paper uses 0.01 (§2.2). Collapse is a risk, not a law: set `HEAD_START` to 0, run the cells again, and count the idle.

# %% [markdown]
# ## From GPT-2 to Llama in five edits
#
# Since GPT-2 the block has changed in five places. Each edit below is a switch, made one after another, on a block of
# Llama's first size: 4096 features, 32 heads, and 8 heads of keys and values where they are grouped.

# %%
print(f"{'after the edit':>18}{'parameters of a block':>24}{'cached per token':>18}")
for edits in llama.one_after_another():
    sizes = llama.sizes_for(4096, 32, 8, edits)
    with torch.device("meta"):
        block = llama.EditedBlock(sizes, edits)
    cached = 2 * block.attention.w_k.out_features
    name = edits.names[-1].replace("_", " ") if edits.names else "GPT-2"
    print(f"{name:>18}{flop_counter.counted_parameters(block):>24,}{cached:>18,}")

# %% [markdown]
# - **RMS norm** drops the mean, and with it the norm's bias (chapter 3).
# - **No biases**: about two hundredths of a percent of the parameters. PaLM's authors report steadier training of
#   large models without them.
# - **Rotary positions** replace the table of learned ones (chapter 5). Nothing is added to the tokens; queries and
#   keys are turned. The trunk that you trained above has this edit, because it learns to look back in far fewer
#   steps.
# - **SwiGLU** makes three matrices of two, at two thirds of the width (chapter 4), so that the count stays.
# - **Grouped queries** leave the queries alone and share keys and values (chapter 2): the cache shrinks by four.
#
# What did **not** change: pre-norm residual blocks, softmax attention, and the loss of the next token. Does an edit
# help a model as small as ours? Train the same small stack as GPT-2's, with rotary positions, and with all five, for
# equally many steps:


# %%
def edited_loss(edits: llama.Edits) -> float:
    """Train a small stack with some edits; return its test loss."""
    model = trained_writer(
        lambda: llama.EditedGPT(
            text.vocab_size, 1, LENGTH, llama.sizes_for(48, 4, 2, edits), edits
        ),
        [(150, 0.005)],
    )
    with torch.no_grad():
        return place_losses(model(test_texts), test_texts).mean().item()


edit_losses = {
    "GPT-2's": edited_loss(llama.Edits()),
    "rotary": edited_loss(llama.Edits(rotary=True)),
    "all five": edited_loss(llama.ALL_EDITS),
}
plots.show(
    plots.bar_plot(edit_losses, ylabel="nats per character", title="One block, equal steps, edited")
)

# %% [markdown]
# In this short run the turned positions help, and the other four edits together help once more. One seed, one block and
# a text of characters do not settle what holds at scale; the papers' reasons are mostly cost and steadiness.

# %% [markdown] exercise="which_objective" role="header" minutes=10
# ## Written question: which objective?
#
# Three teams ask for your advice. One wants to sort support mails by topic, with a thousand labeled mails. One wants
# to complete code while people type. One wants to turn long reports into short ones. Which of the three objectives of
# this chapter would you pretrain with for each, and why? Use this notebook: name the mask, the places that are
# scored, and at least two measured numbers. Then say why the third team might still take a GPT.
#
# Your teacher looks for four things: who may see whom in each model, and why that fits the use; which places are
# scored, and what this means for the number of questions per text; at least two numbers of your own run, read
# rightly; and one honest argument against your own choice.

# %% [markdown] exercise="which_objective" role="written" points=4
# **Model answer.** (Numbers of one run; others differ a little.) Sorting mails is reading: the whole mail is there, so
# every token may see all others. A masked model fits. In our test the reader that sees both sides of a gap lost much
# less than the same model with the right side hidden (1.44 against 2.34 nats), and less than counting both pairs
# (1.84). Completing code is writing:
# at each moment there is only the past, and a model trained without a causal mask has never seen that situation. So
# it is a GPT. Summaries read one text and write another: an encoder that sees the whole report, and a decoder that
# is causal, which is T5's form; cutting spans trains both at once.
#
# Questions per text: GPT is asked at n − 1 of n places, BERT at about 15 %, T5 writes about 15 % of the tokens and
# their sentinels. So BERT and T5 learn from fewer answers per pass. T5 makes up for some of that, since its encoder
# reads a shorter text: 460 of 512 tokens in our count, with 105 to write.
#
# Against my own choice: one GPT does all three if the task is written as text ("Summary:"), needs no second stack,
# and is asked at every place. That the encoder sees both sides is worth most where data is scarce. What our numbers
# do not show is size: they are from models of fewer than a hundred thousand parameters and one seed.
#
# **Rubric** (one point each)
#
# 1. The masks: none, causal, encoder without and decoder with; each tied to the use.
# 2. The scored places, and what they mean for the number of questions per pass.
# 3. Two numbers of the notebook, quoted with what they compare.
# 4. A real argument for the GPT in the third case, or for another choice of one's own.

# %% [markdown] exercise="experts_in_practice" role="header" minutes=8
# ## Written question: eight times the parameters, for free?
#
# A colleague proposes to replace every feed-forward network of your model by eight experts: "eight times the
# parameters at the same cost". Say what is right about this, what it really costs, and how you would notice within
# the first minutes of training that it goes wrong. A quarter of a page; use at least one number from this notebook.
#
# Your teacher looks for three things: work per token against memory; the balance of loads, with a number; and what
# becomes of dropped tokens.

# %% [markdown] exercise="experts_in_practice" role="written" points=3
# **Model answer.** Right: a token meets one expert and the router, so its work hardly changes. In our count a layer
# of eight experts held about eight times the parameters of a plain network, while 64 tokens caused 64 visits to an
# expert, against 512 in the literal sum. Not free: all eight must lie in memory, with gradients and optimizer state,
# and on several machines the tokens must travel to their experts and back. "Compute-efficient" is the word.
#
# I would plot the loads from the first step. Without a balance loss our layer sent most tokens to one expert (the
# busiest got 65 %, and several nothing): eight times the memory for the work of three. With the loss the busiest got
# 17 %, and the error fell from 0.19 to below 0.01. The balance loss itself, printed beside the main one, should stay
# near 1.
#
# Dropped tokens: with a tight capacity, tokens of busy experts get 0 from the layer and live on the residual
# connection alone. So I would watch the share of dropped tokens, too, and start with a generous capacity factor.
#
# **Rubric** (one point each)
#
# 1. Work per token stays, memory and traffic do not; a number for either.
# 2. Collapse and how to see it: loads or the balance loss, with a number.
# 3. Capacity: dropped tokens get 0 and survive by the residual.

# %% [markdown]
# ## Optional: your own parts, together
#
# **Your** GPT, with **your** loss, learns for a few steps, and writes with **your** sampling. This cell is not graded
# and may fail while your answers are unfinished.

# %%
try:
    torch.manual_seed(0)
    own = GPT(text.vocab_size, 32, 4, 1, 32)
    own_steps = torch.Generator().manual_seed(0)
    train(
        own,
        forever(lambda: documentation.windows(text.train, 8, 32, own_steps)),
        steps=60,
        learning_rate=0.01,
        loss=lambda model, tokens: next_token_loss(model(tokens), tokens),
    )
    own_text = text.characters.encode("The ")
    with torch.no_grad():
        for _ in range(28):
            token = sample_token(own(own_text[None])[0, -1], 0.7, generator=own_steps)
            own_text = torch.cat([own_text, torch.tensor([token])])
    print("your GPT writes:", repr(text.characters.decode(own_text)))
except NotImplementedError:
    print("GPT, next_token_loss or sample_token is not written yet; come back when they are.")

# %% [markdown]
# ## Summary
#
# - One trunk, three questions: what comes next, what is hidden, what was cut out. They differ in the mask and in the
#   places that are scored.
# - GPT hides j > i. The rule with i > j trains to a splendid loss and cannot write.
# - The head is the embedding once more. A fresh model loses ln V; if it does not, its start is wrong.
# - A small GPT beats a table of pairs because it sees further back: cut its view and the advantage goes.
# - Temperature scales the logits; top-k and top-p cut what is left, and their order is part of the contract.
# - BERT's 80/10/10 makes the model think at every token. Masking anew in every epoch is RoBERTa's.
# - Next sentence prediction is in part about subjects: a shared word alone does better than a coin.
# - T5 replaces a span by one sentinel: shorter inputs, short targets.
# - Document A's classifier has half a million parameters and is blind to order.
# - Switch sends a token to one expert: little work, many parameters. Without a balance loss, experts may collapse.
# - Llama is GPT-2 with five edits.
#
# **Next:** T5's decoder reads what its encoder found. Chapter 10 is about that look across.
#
# ### Sources
#
# - Radford et al. 2018, *Improving Language Understanding by Generative Pre-Training*; Radford et al. 2019,
#   *Language Models are Unsupervised Multitask Learners*, §2.3; Brown et al. 2020, *Language Models are Few-Shot
#   Learners*, arXiv 2005.14165, table 2.1.
# - Press and Wolf 2017, *Using the Output Embedding to Improve Language Models*, arXiv 1608.05859: the tied head.
# - Devlin et al. 2018, *BERT*, arXiv 1810.04805, §3.1 and appendix A; Liu et al. 2019, *RoBERTa*, arXiv 1907.11692,
#   §4.1 (dynamic masking) and §4.2 (without next sentences); Lan et al. 2019, *ALBERT*, arXiv 1909.11942, §3.1.
# - Raffel et al. 2020, *Exploring the Limits of Transfer Learning*, arXiv 1910.10683, §3.1.4 and §3.3.
# - Fan et al. 2018, *Hierarchical Neural Story Generation*, arXiv 1805.04833 (top-k); Holtzman et al. 2020, *The
#   Curious Case of Neural Text Degeneration*, arXiv 1904.09751 (top-p).
# - Fedus et al. 2022, *Switch Transformers*, arXiv 2101.03961, §2.1 and §2.2; Shazeer et al. 2017, *Outrageously
#   Large Neural Networks*, arXiv 1701.06538: the sum over experts.
# - Chowdhery et al. 2022, *PaLM*, arXiv 2204.02311, §2: no biases.
# - Touvron et al. 2023, *LLaMA*, arXiv 2302.13971, §2.2, and *Llama 2*, arXiv 2307.09288, §2.2; Su et al. 2021,
#   *RoFormer*, arXiv 2104.09864.
# - Hochreiter and Schmidhuber 1997, *Long Short-Term Memory*.
