# ---
# title: "5 · Positional encoding"
# ---

# %% [markdown] role="opening" minutes=35
# # 5 · Positional encoding
#
# Attention compares every token with every other, and it does not care where they stand. Shuffle a text, and the
# outputs come out shuffled. In this chapter you put the order back, in the five ways that models use, and measure what
# each of them is worth once a text becomes longer than anything the model has seen.
#
# **At the end you can**
#
# - say precisely what attention cannot see, and test any function for it;
# - build sinusoids, learned positions, rotary positions, ALiBi and T5's buckets, to the last digit;
# - show that a shift by k positions is one rotation, and turn between the two layouts of rotary features;
# - judge a claim about long texts by a test bench in which only the encoding changes;
# - find three faults in a loop that many tutorials print.
#
# **You need** chapters 1 and 2, sines and cosines, and what it means to multiply by a matrix. The first half is
# NumPy, the second PyTorch.
#
# **The documents.** This chapter mirrors document B's "Positional Encoding" (twice), "Positional Encoding and
# Embeddings", "Learned Positional Embeddings", "Embedding Layer" and "Positional Encoding Pitfalls"; document C's
# "The Remaining Problem", "Token Embeddings" and "Positional Encoding"; and from document A the classifier, which has
# no positions at all. (A is "Inside a Transformer Block", B is "Transformer Block Dissected Layer-by-Layer", C is
# "Transformers".)

# %%
import math

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from autograder import check
from course_lib import alibi, attention, buckets, equivariance, plots, positions, rotary
from course_lib.models.lookback import LENGTHS, TRAINED_LENGTH, Lookback, committed_lengths
from course_lib.position_tasks import (
    STEPS_BACK,
    accuracy,
    accuracy_by_place,
    best_without_order,
    latest_mark_batch,
    lookback_batch,
)
from course_lib.training.loop import forever, train
from course_lib.trial import reveal, verdict
from course_lib.widgets import position_explorer

Array = np.ndarray

# %% [markdown]
# ## What attention cannot see
#
# "The dog bites the man" and "the man bites the dog" hold the same words. To attention alone they are the same text.
# Two words name what happens when you shuffle the tokens with an order p:
#
# | | in symbols | in words |
# |---|---|---|
# | **equivariant** | f(x[p]) = f(x)[p] | outputs move along with their tokens, and do not change |
# | **invariant** | f(x[p]) = f(x) | outputs do not even move |
#
# The first thing to build is the instrument that tells them apart.

# %% [markdown] exercise="is_permutation_equivariant" role="header" minutes=8 lines=2 difficulty=2
# ## Exercise: does a shuffle go through?
#
# Say whether a function is equivariant to one given shuffle of its tokens: f(x[p]) = f(x)[p].
#
# **Why it matters.** It is the quickest way to find out whether positions reach a model at all. A model that should
# know order and passes this test has a fault; a layer that should not know order and fails it has one, too.
#
# **Contract.** `function` takes an `(n, d)` array of tokens and returns one row per token. `permutation` holds the
# places 0 … n − 1 in another order. Return True when f(x[p]) and f(x)[p] agree up to rounding (differences of 10⁻¹²
# pass, of 10⁻³ do not), for this permutation.
#
# <details><summary>Hint 1: the idea</summary>
#
# There are two ways to the same place: shuffle first and then apply the function, or the other way round.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `x[permutation]` reorders rows. Reordered sums differ in their last digits, so compare with `np.allclose`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Call the function once with the shuffled tokens and once with the plain ones. Shuffle the second result with the
# same permutation, not with its inverse, and compare all rows.
#
# </details>


# %% exercise="is_permutation_equivariant" role="answer"
def is_permutation_equivariant(
    function,
    x: Float[Array, "n d"],
    permutation: Int[Array, "n"],
) -> bool:
    """Tell whether shuffling the tokens shuffles the outputs in the same way, and nothing else."""
    # BEGIN SOLUTION
    return bool(np.allclose(function(x[permutation]), function(x)[permutation]))
    # END SOLUTION


# %% exercise="is_permutation_equivariant" role="test" points=1
from autograder import check

check(is_permutation_equivariant)

# %% exercise="is_permutation_equivariant" role="hidden test" points=2
from autograder import check

check(is_permutation_equivariant, hidden=True)

# %% [markdown]
# ### Claim on trial: "permutation-invariant"
#
# Document B says that "self-attention is permutation-invariant". Document C says that "attention alone does not know
# word order". Here are three functions without any positions: attention, attention followed by a mean over all
# tokens, and attention under a causal mask. Each is asked both questions, with an order that is not its own inverse.

# %%
generator = np.random.default_rng(0)
tokens = generator.normal(size=(6, 4))
order = np.array([2, 0, 1, 4, 5, 3])
future = np.triu(np.ones((6, 6), dtype=bool), k=1)


def attend(x: Float[Array, "n d"], mask: Array | None = None) -> Float[Array, "n d"]:
    """Let every token attend to all that the mask shows."""
    return attention.scaled_dot_product_attention(x, x, x, mask)[0]


functions = {
    "attention": attend,
    "attention and a mean": lambda x: attend(x).mean(axis=0, keepdims=True),
    "causal attention": lambda x: attend(x, future),
}
invariant, equivariant = {}, {}
for name, function in functions.items():
    invariant[name] = np.allclose(function(tokens[order]), function(tokens))
    equivariant[name] = equivariance.is_permutation_equivariant(function, tokens, order)

verdict(
    "without positions it is permutation-invariant",
    invariant,
    depends_on="what follows the attention",
)
verdict(
    "without positions it is permutation-equivariant",
    equivariant,
    depends_on="the mask and what follows",
)

# %% [markdown]
# Attention is **equivariant**. It becomes invariant when a mean or a sum over all tokens follows. And under a causal
# mask it is neither: the token at place 3 sees four tokens, the token at place 0 sees one, and that alone leaks
# something about order. We come back to how much it leaks.
#
# ### Predict first: document A's classifier
#
# Document A ends with a classifier of embeddings, two encoder layers, a mean and a linear layer. It "demonstrates the
# full architecture". There are no positions in it. Here is a smaller one with the same parts. The task: a text of ten
# tokens contains token 0 and token 1 once each; which of them comes first? Blind guessing is right half the time.
# What share will the classifier get right after training?

# %%
ORDER_TOKENS, ORDER_LENGTH, ORDER_WIDTH = 20, 10, 32


def order_batch(
    batch: int,
    generator: torch.Generator,
) -> tuple[Int[Tensor, "batch length"], Int[Tensor, "batch"]]:
    """Draw texts with one token 0 and one token 1, and say whether the 0 comes first."""
    texts = torch.randint(2, ORDER_TOKENS, (batch, ORDER_LENGTH), generator=generator)
    places = torch.rand(batch, ORDER_LENGTH, generator=generator).argsort(dim=-1)[:, :2]
    texts = texts.scatter(1, places, torch.tensor([[0, 1]]).expand(batch, 2))
    return texts, (places[:, 0] < places[:, 1]).long()


class Classifier(nn.Module):
    """Embed, encode, average, decide; with or without waves that say where a token stands."""

    def __init__(self, with_positions: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(ORDER_TOKENS, ORDER_WIDTH)
        width = ORDER_WIDTH
        layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 1), nn.Linear(width, 2)
        self.with_positions = with_positions

    def forward(self, texts: Int[Tensor, "batch length"]) -> Float[Tensor, "batch classes"]:
        """Return a logit per class."""
        x = self.embedding(texts)
        if self.with_positions:
            waves = positions.sinusoidal_encoding(ORDER_LENGTH, ORDER_WIDTH)
            x = x + torch.from_numpy(waves).float()
        return self.head(self.encoder(x).mean(dim=1))


def trained_classifier(with_positions: bool) -> Classifier:
    """Train a fresh classifier; the seeds make every run the same on one machine."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Classifier(with_positions)
    train(model, forever(lambda: order_batch(64, generator)), steps=200, learning_rate=0.003)
    return model.eval()


def share_right(model: Classifier) -> float:
    """Return the share of 2000 new texts that are classified right."""
    texts, first = order_batch(2000, torch.Generator().manual_seed(1))
    with torch.no_grad():
        return (model(texts).argmax(dim=-1) == first).double().mean().item()


# %%
my_prediction = None  # a share between 0 and 1

orderless = trained_classifier(with_positions=False)
reveal(my_prediction, share_right(orderless))

# %% [markdown]
# No amount of training helps. Attention is equivariant and the mean is invariant, so a text and its shuffled copy get
# the **same** logits. The next cell measures that, and then adds one line: waves that say where a token stands.

# %%
texts, _ = order_batch(4, torch.Generator().manual_seed(2))
with torch.no_grad():
    gap = (orderless(texts) - orderless(texts.flip(1))).abs().max().item()
print(f"reading the text backward moves the logits by {gap:.1e}")

with_waves = share_right(trained_classifier(with_positions=True))
verdict(
    "document A's classifier has all it needs to judge the order of two tokens",
    {
        "the classifier as it stands": share_right(orderless) > 0.9,
        "one with positions": with_waves > 0.9,
    },
    depends_on="whether positions are added",
)

# %% [markdown]
# ## From a token to a vector
#
# Before positions come the tokens themselves. A text is a row of token numbers, and token t becomes row t of a table
# with V rows of width d. Document B writes the sum that enters the first layer as
#
# $$X = W_e \cdot \text{one\_hot}(tokens) + PE, \qquad W_e \in \mathbb{R}^{V \times d_{model}}$$
#
# The idea is right: looking up a row equals multiplying by a row of zeros with a single 1. The next cell tries the
# product as it is written, for both ways to lay out the one-hot vectors.

# %%
vocabulary, d_model = 7, 4
table = np.random.default_rng(1).normal(size=(vocabulary, d_model))
ids = np.array([3, 0, 3, 6, 1])
one_hot = np.eye(vocabulary)[ids]  # a row per token


def multiplies(left: Array, right: Array) -> bool:
    """Say whether two shapes fit a matrix product."""
    return left.shape[-1] == right.shape[0]


verdict(
    "W_e · one_hot(tokens) can be computed with W_e of shape (V, d)",
    {
        "one-hot vectors as columns": multiplies(table, one_hot.T),
        "as rows": multiplies(table, one_hot),
    },
    depends_on="the layout",
)
assert np.array_equal(one_hot @ table, table[ids])
print("one_hot @ W_e and the lookup W_e[tokens] agree exactly, shape", (one_hot @ table).shape)

# %% [markdown]
# The order of the factors is turned round, and code never multiplies at all: it looks rows up.
#
# A second detail decides how loud the position is. The paper multiplies the embedding by √d_model before it adds the
# waves (§3.4). Compare root mean squares for d_model = 512, with a table that starts at the spread 1/√d_model:

# %%
width = 512
embedding = np.random.default_rng(2).normal(scale=width**-0.5, size=(1000, width))
waves = positions.sinusoidal_encoding(100, width)


def rms(x: Array) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt((x**2).mean()))


plain, loud = rms(embedding), rms(embedding) * math.sqrt(width)
print(f"embedding {plain:.3f}, times √d_model {loud:.3f}, waves {rms(waves):.3f}")
print(f"without the factor the waves are {rms(waves) / plain:.0f} times as large as the tokens")

# %% [markdown]
# > **Paper and practice: what happens to the sum.** The paper multiplies the tokens by √d_model and drops out a part
# > of the sum. BERT adds a third vector, for the segment, and normalizes the sum. GPT-2 adds learned positions to an
# > unscaled embedding whose matrix also serves as the output layer. T5, Llama and ALiBi models add nothing here:
# > their positions act inside attention.
# >
# > **Paper and practice: many languages.** Document B writes that multilingual models may keep "language-specific
# > embedding layers" and share the positions. Possible, but not the habit: mBERT and XLM-R have **one** vocabulary and
# > one table for about a hundred languages, and the languages meet because pieces of words are shared.

# %% [markdown] exercise="sinusoidal_encoding" role="header" minutes=12 lines=6 difficulty=2
# ## Exercise: sinusoids
#
# The paper's answer to the missing order: give every position a row of waves and add it to the token.
#
# $$PE_{p,\,2i} = \sin\!\left(\frac{p}{base^{2i/d_{model}}}\right) \qquad
# PE_{p,\,2i+1} = \cos\!\left(\frac{p}{base^{2i/d_{model}}}\right)$$
#
# Here **i counts pairs of columns**, from 0 to d_model/2 − 1. (Document B writes that "i is the dimension", which is
# the most common way to get this wrong.) A pair is one clock hand: its sine and its cosine are the two coordinates of
# the tip. The first hand turns by 1 radian per position; the later ones turn more and more slowly.
#
# **Why it matters.** It needs no parameters, gives every position its own row, all of the same length, and it
# reappears inside rotary positions, diffusion models and many others. And it is easy to get wrong in ways that still
# train.
#
# **Contract.** `length` rows for the positions 0, 1, 2, …; `d_model` columns, sine in even and cosine in odd ones; a
# float64 array of shape `(length, d_model)`. `base` is the formula's, 10,000 unless given. An odd `d_model` raises a
# `ValueError`.
#
# <details><summary>Hint 1: the idea</summary>
#
# Compute a table of angles first: one row per position, one column per **pair**. Sines and cosines of the same angles
# then take turns.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `np.arange(0, d_model, 2)` already is 2i. `positions[:, None]` and a row of frequencies broadcast to the table of
# angles. `encoding[:, 0::2]` addresses the even columns.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Refuse an odd width. Frequencies: `base` to the power of minus `np.arange(0, d_model, 2) / d_model`. Angles:
# positions times frequencies. Fill an array of zeros: even columns with the sine of the angles, odd ones with their
# cosine.
#
# </details>


# %% exercise="sinusoidal_encoding" role="answer"
def sinusoidal_encoding(
    length: int,
    d_model: int,
    base: float = 10_000.0,
) -> Float[Array, "length d_model"]:
    """Encode the positions 0 … length - 1 as waves."""
    # BEGIN SOLUTION
    if d_model % 2:
        raise ValueError(f"`d_model` must be even, got {d_model}.")
    frequencies = base ** (-np.arange(0, d_model, 2) / d_model)
    angles = np.arange(length)[:, None] * frequencies
    encoding = np.zeros((length, d_model))
    encoding[:, 0::2], encoding[:, 1::2] = np.sin(angles), np.cos(angles)
    return encoding
    # END SOLUTION


# %% exercise="sinusoidal_encoding" role="test" points=2
from autograder import check

check(sinusoidal_encoding)

# %% exercise="sinusoidal_encoding" role="hidden test" points=3
from autograder import check

check(sinusoidal_encoding, hidden=True)

# %% [markdown]
# Document B's diagram "would show the sinusoidal positional encoding patterns". Here they are: positions run to the
# right, columns downward.

# %%
encoding = positions.sinusoidal_encoding(64, 32)
ax = plots.panels(1, width=8.0)[0]
picture = ax.imshow(encoding.T, cmap="cividis", aspect="auto", vmin=-1, vmax=1)
ax.set(xlabel="position", ylabel="column")
ax.set_title("Sinusoids: 64 positions, 32 columns", loc="left", fontsize=plots.TITLE_SIZE)
ax.figure.colorbar(picture, ax=ax, label="value")
changes = (np.diff(np.sign(encoding), axis=0) != 0).sum(axis=0)
plots.show(
    ax,
    "A table of waves over 64 positions, one row per column of the encoding, values from -1 to 1. "
    f"The top waves are the fastest: column 0 changes its sign {changes[0]} times, "
    f"column 8 {changes[8]} times, and column 30 {changes[30]} times.",
)

# %% [markdown]
# ### Predict first: the slowest hand
#
# Document B: "the wavelengths form a geometric progression from 2π to 20000π". For d_model = 512, after how many
# positions is the **slowest** pair back where it began?

# %%
my_prediction = None  # in positions

lengths = positions.wavelengths(512)
reveal(my_prediction, lengths[-1])

ratios = lengths[1:] / lengths[:-1]
verdict(
    "the wavelengths form a geometric progression",
    {"d_model 512": np.allclose(ratios, ratios[0])},
    depends_on="d_model",
)
verdict(
    f"they run from 2π to 20000π, {20_000 * math.pi:,.0f} positions",
    {
        f"the {end} at d_model {width} ({length:,.0f})": math.isclose(length, claimed, rel_tol=1e-3)
        for width in (64, 512)
        for end, length, claimed in (
            ("shortest", positions.wavelengths(width)[0], 2 * math.pi),
            ("longest", positions.wavelengths(width)[-1], 20_000 * math.pi),
        )
    },
    depends_on="the end: the upper one is a limit that no width reaches",
)

# %% [markdown]
# ### Near is similar
#
# The product of the rows p and q, column by column and summed up, is Σ cos((p − q) · frequency) over all pairs of
# columns: it depends on the **distance** alone, and all rows are equally long, as vectors. Each curve below belongs to
# another row p; they lie on top of each other.

# %%
products = encoding @ encoding.T / 16  # there are 16 pairs, so a row with itself gives 1
distances = np.arange(24)
plots.show(
    plots.line_plot(
        distances,
        {f"row {start}": products[start, start + distances] for start in (0, 17, 40)},
        xlabel="distance",
        ylabel="product of two rows",
        title="Rows that are near are similar, wherever they are",
        ax=plots.panels(1, width=6.5)[0],
    )
)

# %% [markdown]
# These are useful invariants. Are they a test? The next cell builds a table with the frequencies **upside down**: it
# multiplies where it should divide. A published implementation had just this fault, and on a copy task it learned
# faster than the right one.

# %%
angles = np.arange(64)[:, None] / positions.frequencies(32)  # should be multiplied
upside_down = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(64, 32)

for name, candidate in (("right", encoding), ("upside down", upside_down)):
    table = candidate @ candidate.T
    equally_long = np.allclose(np.diagonal(table), 16)
    distance_alone = all(np.allclose(np.diagonal(table, k), table[0, k]) for k in range(1, 20))
    values = np.allclose(candidate, encoding)
    invariants = f"rows equally long {equally_long}, distance alone {distance_alone}"
    print(f"{name:>12}: {invariants}, right values {values}")

# %% [markdown]
# Both invariants hold for both tables. **Only a test of values sees the fault.** Keep that in mind for rotary
# positions, where it happens again.

# %% [markdown] exercise="shift_matrix" role="header" minutes=14 lines=8 difficulty=3
# ## Exercise: a shift is a rotation
#
# Move every hand on by k positions: each turns by its own fixed angle, wherever it stood. So one matrix moves every
# row of the table:
#
# $$PE_{p+k} = PE_p \, M_k \qquad \text{for all } p$$
#
# **Why it matters.** The paper chose sinusoids because "for any fixed offset k, PE(pos+k) can be represented as a
# linear function of PE(pos)". Document B repeats it. A model can learn "look three back" as a matrix. Here you build
# that matrix.
#
# **Contract.** Return the `(d_model, d_model)` float64 matrix M with `PE[p + offset] == PE[p] @ M` for the encoding
# with the same `base`. Rows of the encoding stand **left** of it. `offset` may be negative, or 0. An odd `d_model`
# raises a `ValueError`.
#
# <details><summary>Hint 1: the idea</summary>
#
# Pairs do not mix, so M consists of 2×2 blocks on the diagonal. The addition theorems say how a pair moves: sin(a +
# b) = sin a cos b + cos a sin b, and cos(a + b) = cos a cos b − sin a sin b.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# With b = k · frequency, `[sin a, cos a] @ block` must give `[sin(a + b), cos(a + b)]`. The first column of the block
# makes the new sine.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The block is [[cos b, −sin b], [sin b, cos b]]. Start from zeros and fill `matrix[2i : 2i + 2, 2i : 2i + 2]` for
# every pair, with the frequencies of `sinusoidal_encoding`.
#
# </details>


# %% exercise="shift_matrix" role="answer"
def shift_matrix(
    offset: int,
    d_model: int,
    base: float = 10_000.0,
) -> Float[Array, "d_model d_model"]:
    """Give the matrix with PE[p + offset] = PE[p] @ M for all positions p."""
    # BEGIN SOLUTION
    if d_model % 2:
        raise ValueError(f"`d_model` must be even, got {d_model}.")
    matrix = np.zeros((d_model, d_model))
    for column in range(0, d_model, 2):
        angle = offset * base ** (-column / d_model)
        cosine, sine = np.cos(angle), np.sin(angle)
        matrix[column : column + 2, column : column + 2] = [[cosine, -sine], [sine, cosine]]
    return matrix
    # END SOLUTION


# %% exercise="shift_matrix" role="test" points=2
from autograder import check

check(shift_matrix)

# %% exercise="shift_matrix" role="hidden test" points=3
from autograder import check

check(shift_matrix, hidden=True)

# %% [markdown]
# The identity, measured on all rows at once; and three things that make M a rotation:

# %%
three = positions.shift_matrix(3, 32)
error = np.abs(encoding[:-3] @ three - encoding[3:]).max()
print(f"largest error of PE[p + 3] = PE[p] M over 61 rows: {error:.1e}")
print("lengths stay (M Mᵀ = 1):        ", np.allclose(three @ three.T, np.eye(32)))
print("the transpose moves back:       ", np.allclose(three.T, positions.shift_matrix(-3, 32)))
print(
    "shifts by 3 and 5 make one by 8:",
    np.allclose(three @ positions.shift_matrix(5, 32), positions.shift_matrix(8, 32)),
)

# %% [markdown]
# ### Claim on trial: "translation equivariance"
#
# So the table is relative by nature. Document B concludes that models with added sinusoids keep "translation
# equivariance": move a text by some positions, and attention should give the same outputs. Here is the measurement,
# with random weights. The rotary version, which you build below, is shown beside it.

# %%
random = np.random.default_rng(3)
text, size = random.normal(size=(12, 16)), 16
w_q, w_k, w_v = random.normal(scale=size**-0.5, size=(3, size, size))
long_table = positions.sinusoidal_encoding(100, size)


def added(start: int) -> Float[Array, "12 16"]:
    """Attend in a text that begins at position `start`, with waves added to the tokens."""
    return attention.self_attention(text + long_table[start : start + 12], w_q, w_k, w_v)[0]


def turned(start: int) -> Float[Array, "12 16"]:
    """Attend in the same text, with queries and keys turned by their positions."""
    places = torch.arange(start, start + 12)
    query, key = torch.from_numpy(text @ w_q), torch.from_numpy(text @ w_k)
    query, key = (rotary.apply_rotary(x, places).numpy() for x in (query, key))
    return attention.scaled_dot_product_attention(query, key, text @ w_v)[0]


for name, attend_from in (("added sinusoids", added), ("rotary positions", turned)):
    change = {shift: np.abs(attend_from(shift) - attend_from(0)).max() for shift in (5, 50)}
    print(f"{name}: outputs spread by {attend_from(0).std():.2f}; a shift changes them by up to")
    for shift, value in change.items():
        print(f"    {value:.1e} (by {shift} positions)")
    verdict(
        f"attention with {name} does not notice a shift",
        {f"a shift by {shift}": value < 1e-9 for shift, value in change.items()},
        depends_on="the shift",
    )

# %% [markdown]
# The **table** is relative, the **model** is not. After the projections a score holds four products: token with
# token, token with position, position with token, position with position; and w_q w_kᵀ stands in the middle of each.
# A model *can* learn weights that look at the offset. Nothing makes it do so.
#
# ### Explore: bases, wavelengths and scores
#
# Left: the wavelength of each pair; its dot is filled if the pair turns all the way round within the trained length.
# Right: the score of two equal vectors against their distance, 1 at distance 0; the diamond is the chosen distance.
# Below: some hands after the chosen distance. Things to try:
#
# 1. Lower the base until all dots are filled. What has become of the score's curve, and what would far tokens look
#    like?
# 2. Width 4: at which distance does the score come back to nearly 1? What does a model with so few pairs confuse?
# 3. Set the trained length to 1024. From which base on does the slowest pair not complete a turn?
# 4. Models for long texts raise the base, from 10,000 to 500,000 and beyond (the slider's steps come near to both).
#    Which hands does that slow down?

# %%
position_explorer()

# %% [markdown] exercise="LearnedPositions" role="header" minutes=8 lines=6 difficulty=1
# ## Exercise: learned positions
#
# The plainest idea of all: a table with a trainable row for every position. From here on the exercises are PyTorch.
#
# **Why it matters.** BERT and GPT-2 have such tables, with 512 and 1024 rows. It is also why they end there. Document
# B's list of pitfalls for learned positions is missing; the two that everyone meets are a text that is longer than
# the table, and rows that training never reached.
#
# **Contract.** `LearnedPositions(max_length, d_model)` has an `nn.Embedding` called `table`. `forward(x)` takes
# `(batch, n, d_model)`, adds row p to the token at position p, and returns the same shape. A longer text than
# `max_length` raises a `ValueError` whose message names **both** lengths.
#
# <details><summary>Hint 1: the idea</summary>
#
# Positions are 0, 1, …, n − 1, the same for every text of the batch.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `torch.arange(n)` makes the positions; an embedding called with them gives `(n, d_model)`; adding broadcasts over
# the batch. `table.num_embeddings` is the number of rows.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Compare `x.shape[1]` with the number of rows and raise first. Then return `x` plus the table called with the arange.
#
# </details>


# %% exercise="LearnedPositions" role="answer"
class LearnedPositions(nn.Module):
    """Add a learned vector for every position."""

    # BEGIN SOLUTION
    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_length, d_model)

    def forward(self, x: Float[Tensor, "batch n d_model"]) -> Float[Tensor, "batch n d_model"]:
        """Return the tokens with their positions added."""
        length, longest = x.shape[1], self.table.num_embeddings
        if length > longest:
            raise ValueError(f"`x` has {length} positions, but the table ends at {longest}.")
        return x + self.table(torch.arange(length))

    # END SOLUTION
    # BEGIN STARTER
    # def __init__(self, max_length: int, d_model: int) -> None:
    #     super().__init__()
    #     raise NotImplementedError()  # make the table
    #
    # def forward(self, x: Float[Tensor, "batch n d_model"]) -> Float[Tensor, "batch n d_model"]:
    #     """Return the tokens with their positions added."""
    #     raise NotImplementedError()
    # END STARTER


# %% exercise="LearnedPositions" role="test" points=1
from autograder import check

check(LearnedPositions)

# %% exercise="LearnedPositions" role="hidden test" points=2
from autograder import check

check(LearnedPositions, hidden=True)

# %% [markdown]
# What lies past the end? Three answers are in use, and the check above refuses two of them. Wrapping around tells the
# token at position 512 that it stands at 0. Clamping tells all late tokens that they stand together. Both go through
# without a word. An error is the honest answer. And a table that is merely made longer does not help either, as the
# test bench below will show: its late rows have never been trained.
#
# > **Paper and practice: padding on the left.** Generation in batches often pads texts on the left. Positions that
# > count the padding then start at 7 for a text that should start at 0, and a model with learned positions gives
# > other answers for the same prompt. Hugging Face's generation code counts positions from the attention mask for
# > that reason.

# %% [markdown] exercise="apply_rotary" role="header" minutes=16 lines=8 difficulty=3
# ## Exercise: rotary positions
#
# Sinusoids are a rotation that is **added**, and the sum mixes what a token is with where it stands. Rotary positions
# (RoPE) rotate the token itself: each pair of features of a query or a key is turned by an angle that grows with its
# position. The score of two turned vectors then depends on the difference of their angles, and so on the distance.
#
# $$\begin{pmatrix} a \\ b \end{pmatrix} \to
# \begin{pmatrix} a \cos\theta - b \sin\theta \\ a \sin\theta + b \cos\theta \end{pmatrix},
# \qquad \theta_i = position \cdot base^{-2i/d} \text{ for the pair of features } 2i, 2i + 1$$
#
# **Why it matters.** Llama, Qwen, Mistral, Gemma and most other open language models work this way.
#
# **Contract.** `x` is `(..., n, d)`, with any axes in front, such as batch and heads. `positions` is `(n,)`: **any**
# numbers, with gaps, in any order, fractional too. Neighbors are paired: (0, 1), (2, 3), … The result has the shape
# and the dtype of `x`; angles are computed in float32 or better, also when `x` is bfloat16. An odd `d` raises a
# `ValueError`.
#
# <details><summary>Hint 1: the idea</summary>
#
# One angle per position and pair makes a table of `(n, d/2)`. Split `x` into first and second members of its pairs,
# also `(..., n, d/2)`, and apply the formula.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `x[..., 0::2]` and `x[..., 1::2]` are the members. `torch.stack([left, right], dim=-1)` puts the results side by
# side, and `flatten(-2)` makes them columns again.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Frequencies: `base ** (-torch.arange(0, d, 2) / d)`. Angles: `positions.float()[:, None]` times frequencies.
# Multiply `x.float()` members with cosines and sines as in the formula, stack, flatten, and go back to `x.dtype` (for
# float64, `.double()` serves as well).
#
# </details>


# %% exercise="apply_rotary" role="answer"
def apply_rotary(
    x: Float[Tensor, "... n d"],
    positions: Tensor,
    base: float = 10_000.0,
) -> Float[Tensor, "... n d"]:
    """Turn each pair of neighboring features by the angle of its token's position."""
    # BEGIN SOLUTION
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"the width of `x` must be even, got {d}.")
    frequencies = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = positions.double()[:, None] * frequencies
    cosine, sine = angles.cos(), angles.sin()
    first, second = x[..., 0::2].double(), x[..., 1::2].double()
    turned = torch.stack([first * cosine - second * sine, first * sine + second * cosine], dim=-1)
    return turned.flatten(-2).to(x.dtype)
    # END SOLUTION


# %% exercise="apply_rotary" role="test" points=2
from autograder import check

check(apply_rotary)

# %% exercise="apply_rotary" role="hidden test" points=4
from autograder import check

check(apply_rotary, hidden=True)

# %% [markdown]
# Two invariants, and the test of values beside them. The last pair of lines is the trap from above: frequencies upside
# down.

# %%
query, key = torch.randn(2, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
places = torch.tensor([0, 1, 2, 3, 7])


def scores(start: int, base: float = 10_000.0) -> Tensor:
    """Score turned queries against turned keys in a text that begins at `start`."""
    turned_keys = rotary.apply_rotary(key, places + start, base)
    return rotary.apply_rotary(query, places + start, base) @ turned_keys.mT


for name, base in (("base 10,000", 1e4), ("base 100", 1e2), ("upside down", 1e-4)):
    kept = torch.allclose(rotary.apply_rotary(query, places, base).norm(dim=-1), query.norm(dim=-1))
    moved = (scores(1000, base) - scores(0, base)).abs().max()
    same = torch.allclose(scores(0, base), scores(0))
    print(f"{name:>11}: lengths kept {kept}, right values {same}")
    print(f"{'':>13}a text moved by 1000 positions: its scores change by up to {moved:.0e}")

# %% [markdown]
# Every base keeps lengths and distances. Only the values say which one it is.
#
# ### Claim on trial: a vector for every token?
#
# Document C: "each token embedding receives a position vector. Common choices include fixed sinusoidal positional
# encodings, learned positional embeddings, and rotary positional embeddings". If a position were a vector that is
# added, it would change two different tokens at the same place by the **same** amount. Is that so?

# %%
generator = torch.Generator().manual_seed(4)
random_tokens = torch.randn(2, 1, 8, dtype=torch.float64, generator=generator)
waves = torch.from_numpy(positions.sinusoidal_encoding(6, 8))
learned = positions.LearnedPositions(6, 8).double()
ways = {
    "sinusoids": lambda token: token + waves[5],
    "learned": lambda token: learned(token.expand(6, 8)[None])[0, 5:],
    "rotary": lambda token: rotary.apply_rotary(token, torch.tensor([5])),
}
with torch.no_grad():
    added_alike = {}
    for name, encode in ways.items():
        first_change, second_change = (encode(token) - token for token in random_tokens)
        added_alike[name] = torch.allclose(first_change, second_change)
verdict("the token at a place receives that place's vector", added_alike, depends_on="the encoding")

# %% [markdown]
# Rotary positions add nothing, and they do not touch the embedding at all. They act on queries and keys inside every
# head of every layer. **Values stay as they are**: they are what is handed over, and a rotated value would carry its
# absolute position into the output.
#
# ### Positions and a cache
#
# When a model writes a text, it computes one new token at a time and keeps the keys of the others (chapter 8). The
# new token comes alone, as a sequence of one. Its position is not 0:

# %%
text_keys = torch.randn(6, 8, generator=torch.Generator().manual_seed(5))
full = rotary.apply_rotary(text_keys, torch.arange(6))
newest = text_keys[5:]

for name, position in (
    ("position 5, where it stands", 5),
    ("position 0, counted from its own start", 0),
):
    alone = rotary.apply_rotary(newest, torch.tensor([position]))
    print(f"{name}: differs from the full pass by {(alone - full[5:]).abs().max():.2f}")

# %% [markdown]
# A model that restarts its positions at every step still writes fluent nonsense, and no shape is wrong. Several
# published inference codes had this fault. Compare a full pass with the same text step by step, and it shows at the
# second token.

# %% [markdown] exercise="to_half_split" role="header" minutes=6 lines=1 difficulty=2
# ## Exercise: the other layout
#
# GPT-NeoX, and Llama as Hugging Face publishes it, pair feature i with feature **i + d/2** instead of its neighbor.
# It is the same rotation of the same numbers, stored in another order. Build the permutation between the two.
#
# **Why it matters.** Weights that were trained in one layout give nonsense in the other, with right shapes, right
# lengths and scores that still depend on the distance alone. Whoever converts a model has to permute the columns of
# its query and key projections, and nothing else.
#
# **Contract.** The last axis of `x` holds features laid out for neighbors: (0, 1), (2, 3), … Return them laid out for
# the half-split pairing: even columns first, then odd ones, each in their old order. Other axes stay.
#
# <details><summary>Hint 1: the idea</summary>
#
# The first members of all pairs go into the first half, the second members into the second half.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# Slices with a step, and `torch.cat` along the last axis.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Try your function on `torch.arange(8)`: it should give 0, 2, 4, 6, 1, 3, 5, 7. With four features the way there and
# the way back are the same permutation, so do not test it with four.
#
# </details>


# %% exercise="to_half_split" role="answer"
def to_half_split(x: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
    """Lay neighboring pairs out for the half-split pairing."""
    # BEGIN SOLUTION
    return torch.cat([x[..., 0::2], x[..., 1::2]], dim=-1)
    # END SOLUTION


# %% exercise="to_half_split" role="test" points=1
from autograder import check

check(to_half_split)

# %% exercise="to_half_split" role="hidden test" points=1
from autograder import check

check(to_half_split, hidden=True)

# %% [markdown]
# The two layouts, and what happens when they are mixed:

# %%
by_neighbors = rotary.apply_rotary(query, places)
by_halves = rotary.apply_rotary_half_split(rotary.to_half_split(query), places)
print(
    "permute, turn halves, permute back:",
    torch.allclose(rotary.from_half_split(by_halves), by_neighbors),
)
unpermuted = rotary.apply_rotary_half_split(query, places)
print("turn halves without permuting:     ", torch.allclose(unpermuted, by_neighbors))
print(
    "its lengths are right all the same:",
    torch.allclose(unpermuted.norm(dim=-1), by_neighbors.norm(dim=-1)),
)

# %% [markdown]
# > **Paper and practice: two layouts, other bases, part of a head.** The paper pairs neighbors, and so does Meta's
# > own Llama code, with complex numbers. Hugging Face permutes the weights once and pairs halves. GPT-NeoX turns only
# > a quarter of each head's features. Models for long texts use bases of 500,000 and more. All of these are right,
# > and none of them works with weights that were trained for another.

# %% [markdown] exercise="alibi_slopes" role="header" minutes=10 lines=5 difficulty=2
# ## Exercise: ALiBi's slopes
#
# ALiBi (attention with linear biases) uses no vectors at all. Every head subtracts from each score in proportion to
# the distance, and each head has its own slope: some heads look near, some far. First the slopes.
#
# For n heads, n a power of two, they are 2^(−8/n), 2^(−16/n), …, 2^(−8). For 8 heads that is 1/2, 1/4, …, 1/256. For
# other counts the authors' published code does the following: take the slopes of the largest power of two below n;
# then fill up with the first, third, fifth, … slope of **twice** that power.
#
# **Why it matters.** BLOOM and MPT were trained with these very numbers. A head count that is no power of two, with
# one even series instead, gives a model whose trained heads meet slopes they have never seen.
#
# **Contract.** A float32 tensor of shape `(num_heads,)`, in the published order. 6 heads give 1/4, 1/16, 1/64, 1/256,
# 1/2, 1/8.
#
# <details><summary>Hint 1: the idea</summary>
#
# A small helper gives the slopes for a power of two. The rest calls it twice.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `2 ** int(math.log2(num_heads))` is the largest power of two that is not above the count. `[0::2]` takes every
# second entry, from the first on.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Concatenate `series(power)` and `series(2 * power)[0::2]`, the latter cut to `num_heads - power` entries. If the
# count is a power of two, nothing is added.
#
# </details>


# %% exercise="alibi_slopes" role="answer"
def alibi_slopes(num_heads: int) -> Float[Tensor, "heads"]:
    """Give every head its slope, by the published rule."""

    # BEGIN SOLUTION
    def series(count: int) -> list[float]:
        return [2.0 ** (-8 * place / count) for place in range(1, count + 1)]

    power = 2 ** int(math.log2(num_heads))
    return torch.tensor(series(power) + series(2 * power)[0::2][: num_heads - power])
    # END SOLUTION


# %% exercise="alibi_slopes" role="test" points=1
from autograder import check

check(alibi_slopes)

# %% exercise="alibi_slopes" role="hidden test" points=2
from autograder import check

check(alibi_slopes, hidden=True)

# %% [markdown] exercise="alibi_bias" role="header" minutes=8 lines=3 difficulty=2
# ## Exercise: ALiBi's bias
#
# Now the table that is added to the scores, before the softmax: −slope · |i − j| for query i and key j.
#
# **Why it matters.** With a cache there are fewer queries than keys. A bias that numbers both from 0 then makes the
# newest query prefer the **oldest** key. Under a square table the fault cannot be seen.
#
# **Contract.** A float32 tensor of shape `(num_heads, n_q, n_k)`. Queries are aligned with the **last** keys: the
# last query has the distance 0 to the last key, also when there are more queries than keys. The distance is absolute,
# so keys after the query are penalized like those before; there is no −inf anywhere, as hiding is the mask's business.
#
# <details><summary>Hint 1: the idea</summary>
#
# If n_q = 2 and n_k = 5, the queries stand at positions 3 and 4.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `torch.arange(n_k - n_q, n_k)` are the queries' positions; `[:, None]` against `torch.arange(n_k)` gives all
# differences.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Absolute differences, `(n_q, n_k)`, times minus `alibi.alibi_slopes(num_heads)[:, None, None]`.
#
# </details>


# %% exercise="alibi_bias" role="answer"
def alibi_bias(num_heads: int, n_q: int, n_k: int) -> Float[Tensor, "heads query key"]:
    """Give what is added to the scores: minus slope times distance."""
    # BEGIN SOLUTION
    distance = (torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)).abs()
    return -alibi.alibi_slopes(num_heads)[:, None, None] * distance
    # END SOLUTION


# %% exercise="alibi_bias" role="test" points=1
from autograder import check

check(alibi_bias)

# %% exercise="alibi_bias" role="hidden test" points=2
from autograder import check

check(alibi_bias, hidden=True)

# %% [markdown]
# > **Paper and practice: the row form.** BLOOM adds slope · j instead, which depends on the key alone. Under a causal
# > softmax that is the same thing: the two differ by slope · i, a constant in each row, and a softmax does not notice
# > a constant. The cell checks it. For an encoder, which looks both ways, the two are different models.

# %%
raw = torch.randn(4, 6, 6, generator=torch.Generator().manual_seed(6))
hidden = torch.ones(6, 6, dtype=torch.bool).triu(1)
row_form = alibi.alibi_slopes(4)[:, None, None] * torch.arange(6)
for name, mask in (("causal", hidden), ("both ways", torch.zeros_like(hidden))):
    ours, theirs = (
        torch.softmax((raw + bias).masked_fill(mask, -torch.inf), dim=-1)
        for bias in (alibi.alibi_bias(4, 6, 6), row_form)
    )
    print(f"{name}: the two forms give the same weights: {torch.allclose(ours, theirs)}")

# %% [markdown] exercise="relative_position_bucket" role="header" minutes=15 lines=12 difficulty=4
# ## Exercise: T5's buckets
#
# T5 learns the bias instead of fixing it: one number per head and **bucket** of distances. Near distances have a
# bucket each. Farther ones share buckets in ranges that grow, since whether a key is 100 or 105 tokens away hardly
# matters.
#
# With B buckets for a direction, let E = B // 2. Distances 0 … E − 1 are their own bucket. A distance n ≥ E gets
#
# $$E + \left\lfloor \frac{\ln(n / E)}{\ln(max\_distance / E)} \, (B - E) \right\rfloor,
# \quad \text{but at most } B - 1$$
#
# **Why it matters.** Whoever loads T5's weights must put every distance into exactly this bucket. And the idea is
# cheap: 32 numbers per head stand for all distances there are.
#
# **Contract.** `relative_position` holds whole numbers, **key minus query**, in any shape; the result is int64 of the
# same shape. `bidirectional=True`: each direction has B = num_buckets // 2; keys **after** the query (positive) get B
# added. `bidirectional=False`: B = num_buckets for keys at or before the query, and every later key is in bucket 0.
#
# <details><summary>Hint 1: the idea</summary>
#
# Reduce both cases to one: an offset (0 or B), and a distance that is not negative. Then choose between the exact
# bucket and the shared one.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `.abs()`, `(-relative_position).clamp(min=0)`, `torch.log` of floats, `.long()` cuts the fraction off, `.clamp(max=B
# - 1)`, and `torch.where(distance < E, distance, shared)`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# `torch.where` computes both branches, so keep the logarithm away from 0: clamp the distance to at least E before it.
# That changes only entries for which the other branch is taken.
#
# </details>


# %% exercise="relative_position_bucket" role="answer"
def relative_position_bucket(
    relative_position: Int[Tensor, "..."],
    bidirectional: bool,
    num_buckets: int = 32,
    max_distance: int = 128,
) -> Int[Tensor, "..."]:
    """Sort distances into T5's buckets."""
    # BEGIN SOLUTION
    if bidirectional:
        num_buckets //= 2
        offset = num_buckets * (relative_position > 0)
        distance = relative_position.abs()
    else:
        offset = 0
        distance = (-relative_position).clamp(min=0)
    exact = num_buckets // 2
    growth = torch.log(distance.clamp(min=exact) / exact) / math.log(max_distance / exact)
    shared = (exact + (growth * (num_buckets - exact)).long()).clamp(max=num_buckets - 1)
    return offset + torch.where(distance < exact, distance, shared)
    # END SOLUTION


# %% exercise="relative_position_bucket" role="test" points=2
from autograder import check

check(relative_position_bucket)

# %% exercise="relative_position_bucket" role="hidden test" points=3
from autograder import check

check(relative_position_bucket, hidden=True)

# %% [markdown]
# Three ways to say "far away", over one axis of distances: T5's buckets climb like a logarithm, ALiBi falls in
# straight lines, and the rotary score of two equal vectors wobbles down.

# %%
far = torch.arange(0, 129, 2)
left, right = plots.panels(2, width=4.6)
plots.line_plot(
    far.numpy(),
    {
        "both": buckets.relative_position_bucket(-far, True).numpy(),
        "one way": buckets.relative_position_bucket(-far, False).numpy(),
    },
    xlabel="distance of an earlier key",
    ylabel="bucket",
    title="T5: buckets",
    ax=left,
)
ones = torch.full((len(far), 16), 0.25, dtype=torch.float64)
rotary_scores = (rotary.apply_rotary(ones, far) @ rotary.apply_rotary(ones[:1], far[:1]).mT)[:, 0]
bias = alibi.alibi_bias(8, 1, 129)[:, 0].flip(-1)[:, ::2]
plots.line_plot(
    far.numpy(),
    {
        "rotary": rotary_scores.numpy(),
        "ALiBi, head 6": bias[6].numpy(),
        "ALiBi, head 7": bias[7].numpy(),
    },
    xlabel="distance",
    ylabel="score or bias",
    title="Rotary and ALiBi",
    ax=right,
)
plots.show(left)

# %% [markdown]
# ## The test bench: one model, six encodings
#
# Document B says that sinusoids let a model "generalize to sequence lengths longer than those seen during training",
# and lists "length generalization failures" among their pitfalls further on. Both cannot be the whole truth, so it
# goes on trial. The bench is a small causal model of one layer in which **only the encoding can be changed**: what is
# added to the tokens, how queries and keys are turned, what is added to the scores. The task: at every place, name
# the token that stands 4 steps back. It is trained at length 24 and then tried at 24, 48 and 96.


# %%
def trained_bench(encoding: str, task=lookback_batch, steps: int = 200) -> Lookback:
    """Train a fresh bench; the seeds make every run the same on one machine."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Lookback(encoding)
    train(
        model,
        forever(lambda: task(64, TRAINED_LENGTH, generator)),
        steps=steps,
        learning_rate=0.003,
    )
    return model.eval()


# %% [markdown]
# ### Predict first: twice the length
#
# With sinusoids, the model names nearly all tokens at length 24. (Blind guessing gives 1/16.) What share of the
# tokens will it name at length 48?

# %%
my_prediction = None  # a share between 0 and 1

benches = {"sinusoids": trained_bench("sinusoids")}
reveal(my_prediction, accuracy(benches["sinusoids"], lookback_batch, 48))

# %% [markdown]
# About half of its places lie beyond the trained length. Now the others, with the same data, the same steps and the
# same seeds.

# %%
for encoding in ("rotary", "learned", "T5 buckets", "none"):
    benches[encoding] = trained_bench(encoding)

measured = {}
for name, bench in benches.items():
    measured[name] = [accuracy(bench, lookback_batch, length) for length in LENGTHS]
measured["best without order"] = [best_without_order(length) for length in LENGTHS]
for name, shares in measured.items():
    pairs = zip(shares, LENGTHS, strict=True)
    print(f"{name:>18}:", ", ".join(f"{share:.2f} at {length}" for share, length in pairs))

# %% [markdown]
# Where do the errors sit? The next plot shows the share of right answers along a long text, four places at a time.

# %%
by_place = {}
for name, bench in benches.items():
    shares = accuracy_by_place(bench, lookback_batch, 96)[STEPS_BACK:]
    by_place[name] = shares.unflatten(0, (-1, 4)).mean(dim=1).numpy()
ax = plots.panels(1, width=7.5, height=3.6)[0]
ax.axvline(TRAINED_LENGTH, color="#767676", linestyle=":")
plots.show(
    plots.line_plot(
        np.arange(STEPS_BACK, 96, 4) + 1.5,
        by_place,
        xlabel="place in the text (trained up to the dotted line, 24)",
        ylabel="share of tokens named right",
        title="Naming the token four steps back, by place",
        ax=ax,
    )
)

# %% [markdown]
# Sinusoids and the learned table break off at the dotted line; sinusoids come back a part of the way here and there,
# the table never. For the table the reason is plain: its later rows exist, but no gradient ever reached them. The same
# goes for the buckets of T5 that only longer texts use. The next cell measures how far both moved in training. For
# sinusoids it is less plain, as the rows beyond 24 exist and obey the same rotation. But a model need not use that:
# weights that work for the 24 rows of the training texts have a loss of nearly 0, and nothing asks for more. Rotary
# scores of near keys are right at any place; what grows in a longer text is the number of far keys, at distances that
# no training text had, which claim a share of the softmax.

# %%
torch.manual_seed(0)  # the same start as the trained bench
start = Lookback("learned").encoding.positions.table.weight
moved = (benches["learned"].encoding.positions.table.weight - start).norm(dim=-1).detach()
print(f"rows 0 to {TRAINED_LENGTH - 1} moved by {moved[:TRAINED_LENGTH].mean():.2f} on average")
print(f"rows {TRAINED_LENGTH} to 95 moved by {moved[TRAINED_LENGTH:].max():.2f} at most")

first_new = buckets.relative_position_bucket(torch.tensor(-TRAINED_LENGTH), bidirectional=False)
bias_table = benches["T5 buckets"].encoding.table.weight.detach().abs()  # starts at 0
print(f"T5's buckets 0 to {first_new - 1} hold up to {bias_table[:first_new].max():.2f}")
print(f"T5's buckets {first_new} to 31 hold up to {bias_table[first_new:].max():.2f}")

# %% [markdown]
# ### Claim on trial: sinusoids and longer texts
#
# The rule, fixed beforehand: an encoding generalizes to a length if it keeps nine tenths of the accuracy that it has
# at the trained length. One seed proves little, so the verdicts come from a committed file with three seeds per
# encoding, which `benchmarks/lookback_lengths.py` made. That file also holds what takes too long for a notebook:
# ALiBi after 4000 steps.

# %%
SETTINGS = {
    "rotary": ("rotary", 1, 200),
    "T5 buckets": ("T5 buckets", 1, 200),
    "sinusoids": ("sinusoids", 1, 200),
    "learned": ("learned", 1, 200),
    "ALiBi, 200 steps": ("ALiBi", 1, 200),
    "ALiBi, 4000 steps": ("ALiBi", 1, 4000),
    "none": ("none", 1, 200),
    "none, 2 layers": ("none", 2, 2000),
}


def committed(setting: tuple[str, int, int]) -> Float[Array, "seed length"]:
    """Read the accuracies of one setting: a row per seed, a column per length."""
    keys = ("encoding", "layers", "steps")
    runs = [run for run in committed_lengths() if tuple(run[key] for key in keys) == setting]
    return np.array([[run["accuracy"][str(length)] for length in LENGTHS] for run in runs])


kept = {name: committed(setting) for name, setting in SETTINGS.items()}
for name, shares in kept.items():
    lowest, highest = shares.min(axis=0), shares.max(axis=0)
    ranges = ", ".join(f"{low:.2f}–{high:.2f}" for low, high in zip(lowest, highest, strict=True))
    print(f"{name:>18}: {ranges}   (three seeds, lengths {LENGTHS})")
print()

for name in ("sinusoids", "rotary", "ALiBi, 4000 steps"):
    shares = kept[name].mean(axis=0)
    verdict(
        f"{name.split(',')[0]}: what was learned at length 24 holds for longer texts",
        {
            f"texts of {length} tokens": share >= 0.9 * shares[0]
            for length, share in zip(LENGTHS[1:], shares[1:], strict=True)
        },
        depends_on="how much longer",
    )
longer = {name: shares[:, 1:].mean() for name, shares in kept.items()}
verdict(
    "among these encodings sinusoids are the one to prefer for varying lengths",
    {"the look-back task": max(longer, key=longer.get) == "sinusoids"},
    depends_on="the task",
)

# %% [markdown]
# The paper itself is careful: it chose sinusoids "because it **may** allow the model to extrapolate", and found them
# "nearly identical" to learned positions at the lengths it trained on (§3.5, and row E of its table 3). Press et al.
# tested the hope in language models and refuted it (figure 1 of the ALiBi paper). In their test, rotary positions
# degraded too: they do so well here because the task is a fixed distance, which is the very thing they are made of. At
# length 96 ALiBi has lost the smallest share of what it learned, and it pays with many more steps: a straight line has
# no sharp peak at four. What to take home is not a ranking. It is a question for every claim about length: **measured
# on what?**
#
# Document B also says that sinusoids "are preferred" in practice. Practice went elsewhere: BERT and GPT-2 learned
# their tables, T5 has buckets, and most recent open models are rotary.
#
# ### How much does a causal mask give away?
#
# "Attention alone does not know word order", says document C. You saw above that causal attention is not equivariant.
# But one causal layer without positions sees at each place only **which** tokens came before, not in what order. The
# bench without an encoding should then not beat the best guess of someone who knows only that. Two layers can do
# more: the first can find out how many tokens a place sees, and hand that on.

# %%
limit = measured["best without order"][0]
blind = {"1 layer": kept["none"][:, 0].mean(), "2 layers": kept["none, 2 layers"][:, 0].mean()}
print(
    f"best without order {limit:.3f};",
    ", ".join(f"{name} {share:.3f}" for name, share in blind.items()),
)
verdict(
    "causal attention without positions knows no order",
    {name: bool(share <= limit + 0.01) for name, share in blind.items()},
    depends_on="the number of layers",
)

# %% [markdown] exercise="interpolate_positions" role="header" minutes=6 lines=2 difficulty=1
# ## Exercise: squeeze the positions
#
# A rotary model meets angles in a long text that it has never seen. Position interpolation avoids them: squeeze the
# positions of the long text into the range of the trained ones, as fractions.
#
# **Why it matters.** It stretched Llama from 2,048 to 32,768 positions with about 1,000 steps of further training
# (Chen et al. 2023), and most later methods for long contexts are refinements of it.
#
# **Contract.** Return a float32 tensor of `length` positions: p · trained_length / length. A text that fits (`length`
# at most `trained_length`) keeps 0, 1, 2, …, as floats too.
#
# <details><summary>Hint 1: the idea</summary>
#
# One factor for all positions, and it is never above 1.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `torch.arange(length)` holds whole numbers; multiplied by a Python float it becomes float32.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# `min(1.0, trained_length / length)` is the factor.
#
# </details>


# %% exercise="interpolate_positions" role="answer"
def interpolate_positions(length: int, trained_length: int) -> Float[Tensor, "length"]:
    """Squeeze the positions of a long text into the trained range."""
    # BEGIN SOLUTION
    return torch.arange(length) * min(1.0, trained_length / length)
    # END SOLUTION


# %% exercise="interpolate_positions" role="test" points=1
from autograder import check

check(interpolate_positions)

# %% exercise="interpolate_positions" role="hidden test" points=1
from autograder import check

check(interpolate_positions, hidden=True)

# %% [markdown]
# ### Predict first: does squeezing help?
#
# Two tasks. In the first, as before, the model names the token **4 steps back**. In the second, some tokens of each
# text are marked, and at every place the model names the **latest** marked token: an order, not a distance. Both
# models are rotary and trained at length 24. At length 96 without help, the first still names more than half of the
# tokens. What share will it name with squeezed positions?

# %%
my_prediction = None  # a share between 0 and 1

by_distance = benches["rotary"]
reveal(
    my_prediction,
    accuracy(by_distance, lookback_batch, 96, positions.interpolate_positions(96, TRAINED_LENGTH)),
)

# %%
by_order = trained_bench("rotary", latest_mark_batch)
helped = {}
for name, model, task in (
    ("4 steps back", by_distance, lookback_batch),
    ("latest mark", by_order, latest_mark_batch),
):
    for length in LENGTHS[1:]:
        plain = accuracy(model, task, length)
        closer = positions.interpolate_positions(length, TRAINED_LENGTH)
        squeezed = accuracy(model, task, length, closer)
        helped[f"{name} at {length}"] = squeezed > plain
        print(f"{name} at length {length}: {plain:.2f} with 0, 1, 2, …; {squeezed:.2f} squeezed")
print()
verdict(
    "squeezed positions help a trained model with longer texts",
    helped,
    depends_on="what the task asks of positions",
)

# %% [markdown]
# Squeezing turns a distance of 4 into a distance of 1, so a model that looks for 4 finds the wrong token. Which mark
# is nearer does not change by squeezing, and every distance stays in the trained range. The published recipe trains
# on for a while after squeezing, so that the model learns the new spacing. Raising the base instead slows the late
# pairs and nearly spares the first ones, which tell neighbors apart; most long-context models now do some of both.
#
# > **Checklist: when positions go wrong.** Document B announces "debugging tools" and "failures" without naming any.
# > You now have the tools: the shuffle test; the heat map and its products; a test of values; accuracy by place; the
# > curve over lengths; a full pass against single steps. And these are the failures they find: texts longer than the
# > trained ones; an embedding drowned by its waves, or the reverse; a wrong exponent; positions that count padding on
# > the left; positions that restart with the cache.

# %% [markdown] exercise="repaired_sinusoids" role="header" minutes=10 lines=7 difficulty=3
# ## Bug hunt: a loop from a tutorial
#
# This loop stands in several tutorials and in many repositories that were copied from them. It runs, the shapes are
# right, and models train with it. Three users report:
#
# 1. "sin² + cos² of columns 0 and 1 is not 1."
# 2. "My waves slow down much faster than in the paper's picture: from the middle on, all columns are nearly
#    constant."
# 3. "With 7 columns I get an `IndexError` from inside the loop."
#
# **Why it matters.** The first two faults are why document B's "i is the dimension" matters. They do not show in
# column 0, nor in any shape, nor in a falling loss.
#
# **Contract.** That of `sinusoidal_encoding`, an odd width included. Mend the loop that is there.
#
# <details><summary>Hint 1: where to look</summary>
#
# Write down `i` and both exponents for the second pass of the loop, and compare them with the formula for pair 1.
#
# </details>
# <details><summary>Hint 2: how to see it</summary>
#
# Compare the row of position 1, for 8 columns, with that of `positions.sinusoidal_encoding(2, 8)`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The loop variable steps 0, 2, 4, …: it **is** the 2i of the formula, in both lines. An odd width has to be refused
# before the loop.
#
# </details>


# %% exercise="repaired_sinusoids" role="answer"
def repaired_sinusoids(
    length: int,
    d_model: int,
    base: float = 10_000.0,
) -> Float[Array, "length d_model"]:
    """Encode the positions 0 … length - 1 as waves."""
    # BEGIN SOLUTION
    if d_model % 2:
        raise ValueError(f"`d_model` must be even, got {d_model}.")
    encoding = np.zeros((length, d_model))
    for position in range(length):
        for i in range(0, d_model, 2):
            encoding[position, i] = math.sin(position / base ** (i / d_model))
            encoding[position, i + 1] = math.cos(position / base ** (i / d_model))
    return encoding
    # END SOLUTION
    # BEGIN STARTER
    # encoding = np.zeros((length, d_model))
    # for position in range(length):
    #     for i in range(0, d_model, 2):
    #         encoding[position, i] = math.sin(position / base ** (2 * i / d_model))
    #         encoding[position, i + 1] = math.cos(position / base ** (2 * (i + 1) / d_model))
    # return encoding
    # END STARTER


# %% exercise="repaired_sinusoids" role="test" points=2
from autograder import check

check(repaired_sinusoids)

# %% exercise="repaired_sinusoids" role="hidden test" points=3
from autograder import check

check(repaired_sinusoids, hidden=True)

# %% [markdown] exercise="choosing_an_encoding" role="header" minutes=15
# ## Written question: choose, with reasons
#
# Three teams ask for your advice. (a) An encoder that classifies reviews; all are cut to 256 tokens. (b) A language
# model that will be trained on texts of 4,000 tokens and should read texts of 16,000. (c) A model that predicts a
# property of a molecule from its **set** of atoms, which have no order.
#
# Recommend an encoding of positions for each, or none. Give a reason that rests on what the encoding **is**, quote at
# least two numbers that you measured in this notebook, and say for team (b) which of your measurements does **not**
# carry over to it, and what should be measured instead. Half a page is enough. The cell below is for a measurement of
# your own.

# %%
# Room for a measurement of your own: how do the trained benches do at length 36?
for name, bench in benches.items():
    print(f"{name:>12}: {accuracy(bench, lookback_batch, 36):.2f}")

# %% [markdown] exercise="choosing_an_encoding" role="written" points=4
# **Model answer.** (a) Every length is trained on, so nothing has to extrapolate. A learned table of 256 rows is the
# simplest; sinusoids or rotary positions do as well. In the bench, sinusoids, learned and rotary positions all
# reached an accuracy above 0.99 at the trained length 24. With padding on the left, positions have to be counted from
# the first real token.
#
# (b) A learned table is out: beyond its trained rows nothing has been learned (rows beyond 24 moved by 0 in training,
# and the accuracy fell to about 0.49 at twice the length). Added sinusoids fell to about 0.6. Rotary positions are
# the usual choice, as their scores depend on the distance alone; with squeezed positions or a raised base, and some
# further training on long texts. ALiBi or T5's buckets are defensible: what they say of a far key is a continuation
# of what they say of a near one. My numbers do not carry over: the task was a fixed distance of 4, which suits rotary
# positions, with one small layer and a vocabulary of 16. In language, what matters far away is content and order;
# squeezing destroyed the fixed distance (below 0.1 at length 96) and rescued the order task (above 0.95). Team (b)
# should measure the loss by place in texts of 16,000 tokens, and retrieval of a fact from various depths, with three
# seeds, before and after further training.
#
# (c) None. Attention without positions is equivariant, and with a mean behind it invariant: the prediction cannot
# depend on the order in which the atoms are listed. With positions it would have to learn that from data. The order
# classifier shows the other side of it: reading a text backward moved its logits by less than 10⁻⁶. No causal mask
# either, since it leaks order.
#
# **Rubric** (one point each)
#
# 1. (a) and (c): a fitting choice with a reason from the encoding's nature; for (c) equivariance or invariance is
#    named.
# 2. (b): a fitting choice, and why a learned table cannot serve.
# 3. At least two measured numbers, quoted with the length and the task they belong to.
# 4. The limits: a fixed-distance task does not speak for language; a better measurement is proposed.

# %% [markdown]
# ## Optional: your own parts, together
#
# The bench takes its rotation and its waves from `course_lib`. Here your own take over. This cell is not graded, and
# may fail while an answer is unfinished.

# %%
try:
    own = rotary.apply_rotary(text_keys, torch.arange(6)) - apply_rotary(text_keys, torch.arange(6))
    print(f"your rotation in place of the library's: largest difference {own.abs().max():.1e}")
    squeezed = interpolate_positions(96, TRAINED_LENGTH)
    share = accuracy(by_order, latest_mark_batch, 96, squeezed)
    print(f"the order task at length 96 with your squeezed positions: {share:.2f}")
    shifted = sinusoidal_encoding(40, 16)[:30] @ shift_matrix(10, 16)
    print("your matrix moves your waves:", np.allclose(shifted, sinusoidal_encoding(40, 16)[10:]))
    shuffled = np.random.default_rng(0).permutation(12)
    print(
        "attention goes through your shuffle test:",
        is_permutation_equivariant(attend, text, shuffled),
    )
except NotImplementedError:
    print("One of the four is not written yet; come back when it is.")

# %% [markdown]
# ## Summary
#
# - Attention without positions is equivariant to shuffles; with a mean behind it, invariant; under a causal mask,
#   neither.
# - Sinusoids: one frequency per **pair** of columns. A shift by k is one rotation for all positions. That makes the
#   table relative, not the model that it is added to.
# - Invariants do not prove an encoding right: upside-down frequencies keep all of them. Test values as well.
# - A learned table ends at its end, and the rows that training never reached are noise.
# - Rotary positions turn queries and keys, never values. Scores then depend on distances alone. Two layouts are in
#   use, a permutation apart.
# - ALiBi and T5's buckets add to the scores: fixed straight lines, or learned numbers for growing ranges.
# - "Generalizes to longer texts" is a statement about an encoding **and a task**. Sinusoids did not, on ours.
# - Squeezing positions keeps order and destroys distances. Whether it helps depends on which of the two a model uses.
#
# **Next:** every attention so far could see what it should not. Chapter 6 is about masks.
#
# ### Sources
#
# - Vaswani et al. 2017, *Attention Is All You Need*, arXiv 1706.03762: §3.4 (√d_model), §3.5 (sinusoids), table 3,
#   row E.
# - Zaheer et al. 2017, *Deep Sets*, arXiv 1703.06114: equivariance and invariance to permutations.
# - Gehring et al. 2017, *Convolutional Sequence to Sequence Learning*, arXiv 1705.03122: learned positions.
# - Devlin et al. 2019, *BERT*, arXiv 1810.04805, §3; Radford et al. 2019, *Language Models are Unsupervised Multitask
#   Learners*: learned tables of 512 and 1024 rows.
# - Raffel et al. 2020, *Exploring the Limits of Transfer Learning*, arXiv 1910.10683, §2.1: buckets.
# - Su et al. 2021, *RoFormer*, arXiv 2104.09864, §3.2.2 and eq. 34: rotary positions.
# - Black et al. 2022, *GPT-NeoX-20B*, arXiv 2204.06745: the half-split layout on a quarter of each head.
# - Press et al. 2022, *Train Short, Test Long*, arXiv 2108.12409: ALiBi; figure 1 tests sinusoids and rotary at
#   length.
# - Haviv et al. 2022, *Transformer Language Models without Positional Encodings Still Learn Positional Information*,
#   arXiv 2203.16634; Kazemnejad et al. 2023, arXiv 2305.19466: what a causal mask gives away.
# - Conneau et al. 2020, *Unsupervised Cross-lingual Representation Learning at Scale*, arXiv 1911.02116: XLM-R.
# - Chen et al. 2023, *Extending Context Window of Large Language Models via Positional Interpolation*, arXiv
#   2306.15595.
