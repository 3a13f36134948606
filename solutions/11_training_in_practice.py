# ---
# title: "11 · Training in practice"
# ---

# %% [markdown] role="opening" minutes=60
# # 11 · Training in practice
#
# A transformer that is built right can still fail to train, and when it does, the loss curve looks the same for ten
# different reasons: it is flat. In this chapter you run a clinic. Six small models are ill, each in its own way, one
# is healthy, and you read the instruments that tell them apart. On the way you build what a training needs besides
# the model: schedules, clipping, a start that fits the depth, and a search for the numbers that nobody tells you.
#
# **At the end you can**
#
# - say what the first loss of a training must be, and what it means if it is not;
# - write the two schedules that nearly all transformers use, and say what warm-up is for;
# - clip a gradient without turning it, and put the parts of a training step in their order;
# - start a deep stack so that its stream neither fades nor swells;
# - tell from five recorded series whether the rate is too high, warm-up is missing, the gradient vanishes, the mask
#   leaks, heads have collapsed, or a number has overflowed;
# - search for hyperparameters with a budget: by halving, with a population, and with a library;
# - judge a temperature, an alarm for collapsed heads, and a validation score by evidence.
#
# **You need** chapters 1 to 3 and 6: attention, heads, norms, masks. PyTorch appears throughout.
#
# **The documents.** The chapter mirrors, and tests, document B's "Hyperparameter Tuning for Transformer Blocks" with
# its temperature and its case study of BERT, and its "Common Pitfalls and Debugging Tips"; and the numbers that
# documents A and C choose for their models. Several of document B's lists are missing: only their headings are left.
# You find them filled in here.

# %%
import math

import numpy as np
import optuna
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from autograder import check
from course_lib import head_analysis, plots
from course_lib import head_collapse as collapse
from course_lib.data import reversal_batch
from course_lib.models.reverser import Reverser
from course_lib.models.watched import WatchedModel
from course_lib.settings import quick, steps
from course_lib.training import (
    clinic,
    clipping,
    diagnosis,
    initialization,
    limits,
    schedules,
    search,
    tuning,
)
from course_lib.training.recipes import RECIPES, parameter_groups
from course_lib.training.recorder import Recorder
from course_lib.trial import reveal, verdict
from course_lib.widgets.clinic import clinic_explorer
from course_lib.widgets.schedule import schedule_explorer

torch.set_num_threads(1)  # so that your numbers compare with those of a machine with more cores
optuna.logging.set_verbosity(optuna.logging.ERROR)  # it would tell of every trial

# %% [markdown]
# ## The first number
#
# Before the first step, a model knows nothing. Its loss is known all the same.
#
# ### Predict first: the loss of a model that has learned nothing
#
# A fresh language model with GPT-2's vocabulary of 50,257 tokens gets its first batch. What is its cross-entropy, in
# nats, to one digit after the point?

# %%
my_prediction = None  # nats

reveal(my_prediction, initialization.initial_loss(50_257))

# %% [markdown] exercise="initial_loss" role="header" minutes=3 lines=1 difficulty=1
# ## Exercise: the loss of day one
#
# Give the loss that a model should have before it has learned anything.
#
# **Why it matters.** It is the cheapest test there is, and it runs before the first step. A first loss far **above**
# it means that the model is sure of something, so its logits are too large. One **below** it means that the answer is
# somewhere in the input.
#
# **Contract.** The number of tokens in the vocabulary in, the mean cross-entropy in nats out. All tokens seem equally
# likely to a model that knows nothing.
#
# <details><summary>Hint 1: the idea</summary>
#
# Which probability does such a model give to the right token?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# Cross-entropy is minus the natural logarithm of that probability.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# −ln(1/V). Which simpler form does it have?
#
# </details>


# %% exercise="initial_loss" role="answer"
def initial_loss(vocab_size: int) -> float:
    """Return the cross-entropy of a model that has learned nothing."""
    # BEGIN SOLUTION
    return math.log(vocab_size)
    # END SOLUTION


# %% exercise="initial_loss" role="test" points=1
from autograder import check

check(initial_loss)

# %% exercise="initial_loss" role="hidden test" points=1
from autograder import check

check(initial_loss, hidden=True)

# %% [markdown]
# ### The test in use
#
# Three fresh models with 1,000 tokens each. They differ in one line only: how large the numbers of the last layer are
# when they are drawn.

# %%
texts = torch.randint(1000, (16, 9), generator=torch.Generator().manual_seed(0))
for spread in (0.02, 0.2, 1.0):
    torch.manual_seed(0)
    fresh = WatchedModel(vocab_size=1000, max_length=10)
    nn.init.normal_(fresh.head.weight, std=spread)
    with torch.no_grad():
        first_loss = F.cross_entropy(fresh(texts).flatten(0, 1), texts.roll(-1, 1).flatten()).item()
    foretold = initialization.initial_loss(1000)
    print(f"entries of spread {spread:>4}: first loss {first_loss:6.2f}, ln V = {foretold:.2f}")

# %% [markdown]
# Only a small last layer gives even logits. With a spread of 1 the model is sure, and wrong; its first steps would go
# into unlearning that. (A public example: in jsboige/CoursIA, pull request 12768, a forgotten 0.02 made the
# first loss 107 instead of 4.4.)
#
# ## The clinic
#
# Seven small models read strings of ten digits, in which five random digits come twice, as in 3 1 4 1 5 3 1 4 1 5.
# They predict each next digit. The second half can be known. The first half cannot, by anybody: so there is a lowest
# honest loss.

# %%
read, due = clinic.repeated_digits(1, torch.Generator().manual_seed(3))
print(f"a text:                 {[read[0, 0].item(), *due[0].tolist()]}")
print(f"loss of day one:        {initialization.initial_loss(clinic.DIGITS):.2f} nats")
print(f"lowest honest loss:     {clinic.possible_loss():.2f} nats")

# %% [markdown]
# All get the same data and the same optimizer, AdamW, for a hundred steps, unless nothing moves or a loss is NaN.
# (Where nothing moves, AdamW goes without weight decay, which would move it.) Now they are admitted, and watched. Eight
# names, since one of the patients comes twice: once ill, once treated.

# %%
stays = {name: clinic.admit(name) for name in clinic.PATIENTS}
records = {name: stay.record for name, stay in stays.items()}
for name, record in records.items():
    first, last = record.loss[0], record.loss[-1]
    print(f"{name:>23}: {len(record.loss):>3} steps, loss {first:.2f} → {last:.2f}")
if quick():
    print("Shortened, since this is a quick run: the text describes the full one.")

# %% [markdown]
# Four of the six ill ones end with losses between 1.5 and 2.4. That number alone will not tell you what to do. Here is
# the monitor. Move through the patients, and write down for each one **which** instrument leaves the healthy curve
# first.

# %%
clinic_explorer(records)

# %% [markdown]
# What the instruments measure, and what they are read against:
#
# | instrument | what it is | read it against |
# |---|---|---|
# | loss | mean cross-entropy | ln V at the start, the lowest honest loss at the end |
# | gradient, first block | length of the gradient of the first block's weights | the same number for the last block |
# | step over weights | length of an update over length of the weights | 0.001, a rule of thumb; 0.1 is alarming |
# | largest score | before softmax | 88.7, if nobody subtracts the maximum |
# | entropy of the heads | how widely a query looks, in nats | the even map, ln of the visible keys |
# | scale, last block | root mean square of the stream | the first block's |
#
# The gradient is taken in the **first** block on purpose: whatever fades on the way back has faded most there. Per
# layer, the picture is clearest for two patients:

# %%
compared = ("vanishing gradient", "no warm-up, treated")
deep = {name: records[name].layer_grad_norms[-1] for name in compared}
figure = plots.panels(2, width=3.6)
for axes, (name, norms) in zip(figure, deep.items(), strict=True):
    plots.line_plot(
        range(1, len(norms) + 1),
        {"gradient": norms},
        xlabel="block",
        ylabel="length of its gradient",
        title=name,
        ax=axes,
        log_y=True,
    ).set_xticks([1, len(norms) // 2, len(norms)])
plots.show(figure[0])

# %% [markdown]
# The vanishing gradient loses orders of magnitude, about one in each of its twelve blocks, which have neither norms
# nor skip connections. The other one does not.
#
# > **Document B's missing list: debugging a deep stack.** Gradient norms layer by layer. The scale of the stream layer
# > by layer. Step over weights. Then try, one at a time: pre-norm; smaller last matrices; warm-up; clipping. Chapter 3
# > measured the first of these.

# %% [markdown]
# ## Schedules
#
# The first thing to get right is the learning rate, and it is not one number but a curve.

# %% [markdown] exercise="noam_rate" role="header" minutes=6 lines=1 difficulty=2
# ## Exercise: the original schedule
#
# The rate of "Attention Is All You Need" climbs in a straight line for `warmup` steps, then falls like one over the
# root of the step:
#
# $$\text{rate} = d_\text{model}^{-1/2} \cdot \min(\text{step}^{-1/2},\ \text{step} \cdot \text{warmup}^{-3/2})$$
#
# **Why it matters.** The formula has no peak to choose: width and climb decide it. Reimplementations of the paper
# often get it wrong by one step or one root, and nobody notices, since the model trains anyway, only worse.
#
# **Contract.** `step` counts from 1. Return a float.
#
# <details><summary>Hint 1: the idea</summary>
#
# Two arms, and the lower one counts. Where do they cross?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `x ** -0.5` is one over the root of x. Python's `min` takes several numbers.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# A product of two factors: the width to the power −½, and the minimum of the two arms.
#
# </details>


# %% exercise="noam_rate" role="answer"
def noam_rate(step: int, d_model: int, warmup: int) -> float:
    """Return the learning rate of the original transformer."""
    # BEGIN SOLUTION
    climb, fall = step * warmup**-1.5, step**-0.5
    return d_model**-0.5 * min(climb, fall)
    # END SOLUTION


# %% exercise="noam_rate" role="test" points=1
from autograder import check

check(noam_rate)

# %% exercise="noam_rate" role="hidden test" points=1
from autograder import check

check(noam_rate, hidden=True)

# %% [markdown] exercise="cosine_rate" role="header" minutes=10 lines=5 difficulty=2
# ## Exercise: half a cosine
#
# The schedule of GPT-3, Llama and most models since: a straight climb, then half a cosine wave down to a floor.
#
# **Why it matters.** A cosine stays high for long and ends gently; and unlike the original schedule it knows where the
# training ends. Where the climb meets the wave, and where the wave meets the floor, are the places at which real code
# is off by one.
#
# **Contract.** `step` counts from 0. Below `warmup` the rate is `peak · step / warmup`. At `warmup` it is `peak`. From
# there it follows half a cosine wave that reaches `floor` at `total`, and stays there. `warmup` may be 0.
#
# <details><summary>Hint 1: the idea</summary>
#
# Three cases. In the middle one, first compute which share of the way from `warmup` to `total` lies behind you.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `(1 + math.cos(math.pi * share)) / 2` goes from 1 to 0 while the share goes from 0 to 1.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The wave's height is peak − floor, and it stands on the floor.
#
# </details>


# %% exercise="cosine_rate" role="answer"
def cosine_rate(step: int, total: int, peak: float, warmup: int, floor: float = 0.0) -> float:
    """Return the rate of a straight climb and half a cosine wave."""
    # BEGIN SOLUTION
    if step < warmup:
        return peak * step / warmup
    if step >= total:
        return floor
    behind = (step - warmup) / (total - warmup)
    return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * behind))
    # END SOLUTION


# %% exercise="cosine_rate" role="test" points=1
from autograder import check

check(cosine_rate)

# %% exercise="cosine_rate" role="hidden test" points=2
from autograder import check

check(cosine_rate, hidden=True)

# %% [markdown]
# ### Explore: four schedules
#
# 1. With the same peak and the same climb, which schedule has spent most of its learning in the first quarter?
# 2. A climb of 5,000 steps out of 10,000: which of the four does it hurt least?
# 3. A climb of 1 step: which two hardly notice, and which one is left with almost nothing of its peak?

# %%
schedule_explorer()

# %% [markdown]
# ### The real task, with the climb and without
#
# One patient had a post-norm model of six blocks and the original schedule, without a climb: its rate began at the
# top. "Treated" is the same model with the same formula and a climb of 40 steps. From there on both have the same
# rate.

# %%
sides = {"no climb": records["no warm-up"], "climb": records["no warm-up, treated"]}
figure = plots.panels(2, width=4.4)
shown = {"loss": "loss (nats)", "update_ratio": "step over weights"}
for axes, (series, label) in zip(figure, shown.items(), strict=True):
    plots.line_plot(
        range(1, len(sides["climb"].loss) + 1),
        {name: getattr(record, series) for name, record in sides.items()},
        xlabel="step",
        ylabel=label,
        ax=axes,
        log_y=series == "update_ratio",
    )
plots.show(figure[0])
ill = records["no warm-up"]
moved_by = f"{ill.update_ratio[0]:.0%} of their length"
print(f"without a climb, the first step moves the weights by {moved_by}")
print(f"gradient in its first block: {ill.grad_norm[0]:.2g} at the first step, ", end="")
print(f"{ill.grad_norm[-1]:.2g} at the last")

# %% [markdown]
# A third of all that the model had drawn, gone in one step; after that the gradient at the first block is dead. Look
# at the last line again: by its **end**, this patient seems to have a vanishing gradient. The cause lies in the first
# five steps, which is why a log that begins at step 100 is worth little.
#
# Why the first steps? Adam divides each gradient by its own running size. At the first step every entry is divided by
# itself, so every entry of every weight moves by the full rate, whatever the gradient, unless it is smaller than Adam's
# eps, 1e-8. Chapter 3 showed that deep post-norm stacks do not survive that, and that pre-norm is more forgiving.
#
# > **Paper and practice: which step is step 1?** The paper's formula cannot be called with step 0. PyTorch's
# > schedulers count from 0, so that many ports add 1, some twice, and some train their first step with rate 0. The
# > factor $d_\text{model}^{-1/2}$ is usually multiplied by one more constant (tensor2tensor used 2.0 and fairseq asks
# > for the peak instead).

# %% [markdown]
# ## Clipping
#
# A single bad batch can bring a gradient many times as long as usual. Clipping puts a limit on its length.

# %% [markdown] exercise="clip_gradients" role="header" minutes=10 lines=6 difficulty=3
# ## Exercise: clip the gradient
#
# Scale all gradients by one and the same factor, so that together they are no longer than `max_norm`.
#
# **Why it matters.** Nearly every large language model is trained with it; GPT-3's limit is 1. The number it returns is
# the best smoke alarm of a training log.
#
# **Contract.** `parameters` is anything that can be looped over, such as `model.parameters()`, which is a generator:
# you can walk through it **once**. The length is that of all gradients together, as if they were one long vector.
# Gradients are changed in place, and only if they are too long. A parameter whose `.grad` is None is passed over.
# Return the length **before** as a number, 0 if there is no gradient at all.
#
# <details><summary>Hint 1: the idea</summary>
#
# How would you compute the length of one vector that is cut into pieces, from the pieces?
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# Make a list of the gradients first. `gradient.square().sum()` and `gradient.mul_(factor)`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# total = √(sum of all squares). If it exceeds max_norm, multiply every gradient by max_norm / total.
#
# </details>


# %% exercise="clip_gradients" role="answer"
def clip_gradients(parameters, max_norm: float) -> float:
    """Scale all gradients to a common length of at most max_norm; return the length before."""
    # BEGIN SOLUTION
    grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
    before = math.sqrt(sum(grad.square().sum().item() for grad in grads))
    if before > max_norm:
        for grad in grads:
            grad.mul_(max_norm / before)
    return before
    # END SOLUTION


# %% exercise="clip_gradients" role="test" points=1
from autograder import check

check(clip_gradients)

# %% exercise="clip_gradients" role="hidden test" points=2
from autograder import check

check(clip_gradients, hidden=True)

# %% [markdown]
# ### Direction, or no direction
#
# "Clipping" can also mean that each entry is cut at a value, or each tensor at a norm. The next cell compares the
# three by the cosine between the gradient before and after: 1 means that the step still goes straight downhill.

# %%
torch.manual_seed(0)
uneven = [10.0 * torch.randn(40, 30), 0.1 * torch.randn(40), torch.randn(30, 20)]
whole = torch.cat([piece.flatten() for piece in uneven])


def cut_together(pieces: list[Tensor]) -> list[Tensor]:
    """Clip all pieces by their common norm, with the course's own function."""
    holders = [nn.Parameter(torch.zeros_like(piece)) for piece in pieces]
    for holder, piece in zip(holders, pieces, strict=True):
        holder.grad = piece.clone()
    clipping.clip_gradients(holders, 1.0)
    return [holder.grad for holder in holders]


ways = {
    "by the common norm": cut_together(uneven),
    "each tensor by its norm": [piece / max(1.0, piece.norm().item()) for piece in uneven],
    "each entry by its value": [piece.clamp(-1, 1) for piece in uneven],
}
for name, pieces in ways.items():
    after = torch.cat([piece.flatten() for piece in pieces])
    cosine = F.cosine_similarity(whole, after, dim=0).item()
    print(f"{name:>24}: length {after.norm().item():6.2f}, cosine with the gradient {cosine:.3f}")

# %% [markdown]
# Only the common norm keeps the direction.
#
# > **Paper and practice: clipping and Adam.** Adam divides a gradient by its running size, so a gradient that is
# > **always** multiplied by one tenth changes nothing. Clipping helps against the exception, not against the rule: if
# > every step is clipped, the limit has become a part of the learning rate. And with loss scaling (chapter 12) the
# > gradient has to be unscaled **before** it is clipped; clipping scaled gradients is a frequent bug.

# %% [markdown] exercise="repaired_training_step" role="header" minutes=12 lines=8 difficulty=2
# ## Bug hunt: everything is there
#
# All the parts of a training step are in this function, or nearly so. It runs, the loss falls for a while, and three
# users report:
#
# 1. "It learns for ten steps, then it goes wild, and the more steps the wilder."
# 2. "I set `max_norm` to 0.01, and the steps are as large as without it."
# 3. "My schedule has a climb, but the very first step is huge. And everything seems to happen one step late."
#
# **Why it matters.** Every training loop has these lines, and no wrong order of them raises an error. The loss falls
# at first, and the blame goes to the learning rate.
#
# **Contract.** One step with the learning rate `rate` and gradients no longer than `max_norm`. `model(inputs)` gives
# logits `(batch, sequence, vocab)`; `targets` are token ids. Return the loss before the step and the length of this
# batch's gradient before clipping, both numbers. Nothing that an earlier step left behind may matter.
#
# <details><summary>Hint 1: where to look</summary>
#
# One line is missing, and two stand in the wrong place.
#
# </details>
# <details><summary>Hint 2: how to see them</summary>
#
# Print `next(model.parameters()).grad.norm()` before and after each line, in the second step.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# `backward` adds to what is there; `step` uses what it finds in `.grad` and in the optimizer's groups.
#
# </details>


# %% exercise="repaired_training_step" role="answer"
def repaired_training_step(
    model: nn.Module,
    inputs: Int[Tensor, "batch sequence"],
    targets: Int[Tensor, "batch sequence"],
    optimizer: torch.optim.Optimizer,
    rate: float,
    max_norm: float,
) -> tuple[float, float]:
    """Take one step; return the loss, and the gradient's length before clipping."""
    # BEGIN SOLUTION
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    loss.backward()
    length = clipping.clip_gradients(model.parameters(), max_norm)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    return loss.item(), length
    # END SOLUTION
    # BEGIN STARTER
    # loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    # loss.backward()
    # optimizer.step()
    # length = clipping.clip_gradients(model.parameters(), max_norm)
    # for group in optimizer.param_groups:
    #     group["lr"] = rate
    # return loss.item(), length
    # END STARTER


# %% exercise="repaired_training_step" role="test" points=2
from autograder import check

check(repaired_training_step)

# %% exercise="repaired_training_step" role="hidden test" points=2
from autograder import check

check(repaired_training_step, hidden=True)

# %% [markdown]
# ## Where a deep stack starts
#
# Each block adds to the stream, twice: after attention and after the feed-forward network. If the terms are
# independent, their variances add up, and the stream of a deep stack swells before anything is learned.

# %% [markdown] exercise="residual_init_std" role="header" minutes=4 lines=1 difficulty=1
# ## Exercise: smaller steps for deeper stacks
#
# Give the standard deviation with which the **last** matrix of each sublayer should be drawn, so that all additions
# together have the spread of one.
#
# **Why it matters.** GPT-2 introduced it, and most pre-norm models kept it. It costs one line and no time.
#
# **Contract.** A stack of `num_layers` blocks makes two additions for each. `base` is the spread that a single
# addition would get. Return a float.
#
# <details><summary>Hint 1: the idea</summary>
#
# N independent terms of variance s² have together the variance N s². Which s makes that base²?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `math.sqrt`. How many terms are there?
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The base over the root of the number of additions.
#
# </details>


# %% exercise="residual_init_std" role="answer"
def residual_init_std(num_layers: int, base: float = 0.02) -> float:
    """Return the spread of the last matrix of every sublayer."""
    # BEGIN SOLUTION
    additions = 2 * num_layers
    return base * additions**-0.5
    # END SOLUTION


# %% exercise="residual_init_std" role="test" points=1
from autograder import check

check(residual_init_std)

# %% exercise="residual_init_std" role="hidden test" points=1
from autograder import check

check(residual_init_std, hidden=True)

# %% [markdown]
# ### Claim on trial: it keeps the stream's size at any depth
#
# Fresh pre-norm stacks of 2 to 96 blocks. The last matrices are drawn with the same spread in all of them, or with one
# that follows the depth. What is the scale of the stream after the last block, relative to what went in?


# %%
def relative_scale(depth: int, spread: float) -> float:
    """Send random digits through a fresh stack; compare the stream after it with that before."""
    torch.manual_seed(depth)
    stack = WatchedModel(vocab_size=10, max_length=10, num_layers=depth)
    for block in stack.blocks:
        for last in (block.attention.w_o, block.ffn[2]):
            # So many inputs that a spread of 1 / √inputs would keep the size of one term.
            nn.init.normal_(last.weight, std=spread / math.sqrt(last.in_features))
    recorder, digits = Recorder(stack), torch.randint(10, (32, 10))
    with torch.no_grad():
        stack(digits)
        entering = stack.tokens(digits) + stack.positions.weight
    return recorder.scales[-1] / entering.square().mean().sqrt().item()


depths = (2, 6, 12, 24, 48, 96)
following_depth = [initialization.residual_init_std(depth, base=1.0) for depth in depths]
growth = {
    "fixed": [relative_scale(depth, 1.0) for depth in depths],
    "with depth": [relative_scale(*pair) for pair in zip(depths, following_depth, strict=True)],
}
plots.show(
    plots.line_plot(
        depths,
        growth,
        xlabel="blocks",
        ylabel="scale after the last block, 1 = input",
        title="The stream of a fresh stack",
        log_x=True,
        log_y=True,
    )
)
for name, words in (("fixed", "one spread for all"), ("with depth", "base / √(2 · layers)")):
    scales = {f"{depth} blocks": scale for depth, scale in zip(depths, growth[name], strict=True)}
    verdict(
        f"the stream keeps its size (to a factor of 1.5) with {words}",
        {blocks: 2 / 3 < scale < 3 / 2 for blocks, scale in scales.items()},
        depends_on="the depth",
    )

# %% [markdown]
# In a pre-norm stack every block adds a term of about the same size, whatever the stream has grown to. In a stream
# that has swollen to four times its size, the last blocks' terms hardly matter at the start.
#
# ### Claim on trial: document B's σ²
#
# Document B writes that the gradient of a stack is proportional to $\prod_l (1 - \lambda_l) \cdot \sigma_W^2$: so with
# weights twice as large it should become **four** times as large, in any stack. (Chapter 3 put the other half of the
# formula, the λ, to the test.) The gradient of the first block's weights, in stacks of six:


# %%
def first_gradient(kind: str, factor: float) -> float:
    """Return the gradient's length in the first of six blocks, all matrices times a factor."""
    torch.manual_seed(0)
    stack = WatchedModel(vocab_size=10, max_length=10, num_layers=6, kind=kind)
    with torch.no_grad():
        for matrix in stack.blocks.parameters():
            if matrix.ndim > 1:
                matrix.mul_(factor)
    recorder = Recorder(stack)
    digits, following = clinic.repeated_digits(32, torch.Generator().manual_seed(0))
    loss = F.cross_entropy(stack(digits).flatten(0, 1), following.flatten())
    loss.backward()
    recorder.read_gradients(loss.item())
    return recorder.record.grad_norm[0]


kinds = ("pre-norm", "post-norm", "neither")
times = {kind: first_gradient(kind, 2.0) / first_gradient(kind, 1.0) for kind in kinds}
for kind, ratio in times.items():
    print(f"{kind:>9}: weights twice as large, gradient times {ratio:,.2g}")
print()
verdict(
    "B: the gradient grows with σ², so doubled weights give a fourfold gradient (3 to 5 times)",
    {kind: 3 < ratio < 5 for kind, ratio in times.items()},
    depends_on="the kind of stack",
)

# %% [markdown]
# Without norms every matrix on the way back counts, so the factor is a power of 2, with an exponent that grows with
# the depth. With norms it does not even reach σ²: what goes into a norm may be twice as large, what comes out is not.
# One formula for all stacks cannot be right.
#
# ## Where numbers end
#
# One patient died within thirty steps. Its softmax was written just as the formula stands, exp over sum, without
# subtracting the maximum first.
#
# ### Predict first: float16
#
# exp overflows in float32 for scores above 88.7. In float16, whose largest number is 65,504, above which score?

# %%
my_prediction = None  # a score

reveal(my_prediction, limits.largest_safe_score(torch.float16))

# %% [markdown] exercise="largest_safe_score" role="header" minutes=4 lines=1 difficulty=1
# ## Exercise: the largest safe score
#
# Give the largest score whose exponential is still a number.
#
# **Why it matters.** Document B names 89 "for fp32", and asks for the **difference** between the largest and the
# smallest score. Chapter 1 showed that it is the largest score alone that counts. Models are trained in half
# precision, and there the number is another one.
#
# **Contract.** A floating dtype of PyTorch in, a float out. A relative error of 0.5 % is allowed.
#
# <details><summary>Hint 1: the idea</summary>
#
# Every dtype has a largest number. Which x has it as exp(x)?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `torch.finfo(dtype)` knows all about a dtype.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The natural logarithm of `.max`.
#
# </details>


# %% exercise="largest_safe_score" role="answer"
def largest_safe_score(dtype: torch.dtype) -> float:
    """Return the score above which exp overflows."""
    # BEGIN SOLUTION
    largest = torch.finfo(dtype).max
    return math.log(largest)
    # END SOLUTION


# %% exercise="largest_safe_score" role="test" points=1
from autograder import check

check(largest_safe_score)

# %% exercise="largest_safe_score" role="hidden test" points=1
from autograder import check

check(largest_safe_score, hidden=True)

# %%
for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    print(f"{dtype!s:>15}: exp overflows above {limits.largest_safe_score(dtype):7.2f}")
last = records["overflow"]
print(f"\nthe patient's largest scores: {last.max_score[0]:.1f} at first, ", end="")
print(f"{last.max_score[-1]:.1f} at the step where its loss became {last.loss[-1]:.2f}")

# %% [markdown]
# bfloat16 has the range of float32 and so its limit; its numbers are only coarser. float16 ends early.
#
# > **Document B's missing list: against overflow in softmax.** Subtract the row's maximum (every framework does).
# > Divide **before** the product, not after it. Compute softmax in float32, whatever the rest is in. Cap the scores
# > smoothly, as Gemma 2 does with c · tanh(score / c). Normalize queries and keys. Mask with a finite number only if
# > the dtype can hold it: −1e9 is −inf in float16. And give a row in which everything is hidden a defined result.
#
# ## Heads that collapse
#
# The patient "heads collapsed" had the same fault as the last one, a rate for queries and keys far above the others',
# but a careful softmax. It did not die. Its scores went into the thousands, every query picked one key, and softmax
# passed no gradient on to change that (chapter 1 showed why). Document B means something else by "head collapse":
# heads that look at the **same** places.

# %% [markdown] exercise="head_collapse" role="header" minutes=6 lines=4 difficulty=2
# ## Exercise: an alarm for equal heads
#
# List the pairs of heads whose maps are more alike than a threshold.
#
# **Why it matters.** With `head_similarity` of chapter 2 you have the number. An alarm is a number with a threshold,
# and the threshold is where most alarms go wrong.
#
# **Contract.** `weights` is `(batch, heads, n_q, n_k)`. Use `head_analysis.head_similarity(weights)`, or your own.
# Return a list of pairs `(i, j)` with i < j, each pair once, in any order. A pair is listed if its similarity is
# greater than `threshold`.
#
# <details><summary>Hint 1: the idea</summary>
#
# The table of similarities is symmetric, with 1 on its diagonal. Which part of it holds each pair once?
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# Two loops, the second one from i + 1 on; or `itertools.combinations(range(heads), 2)`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# A list comprehension over both loops with `if similarity[i, j] > threshold`.
#
# </details>


# %% exercise="head_collapse" role="answer"
def head_collapse(
    weights: Float[Tensor, "batch heads query key"],
    threshold: float = 0.95,
) -> list[tuple[int, int]]:
    """List the pairs of heads that look at the same places."""
    # BEGIN SOLUTION
    alike = head_analysis.head_similarity(weights)
    count = alike.shape[0]
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    return [pair for pair in pairs if alike[pair] > threshold]
    # END SOLUTION


# %% exercise="head_collapse" role="test" points=1
from autograder import check

check(head_collapse)

# %% exercise="head_collapse" role="hidden test" points=1
from autograder import check

check(head_collapse, hidden=True)

# %% [markdown]
# ### Claim on trial: collapse is detectable by similarity
#
# Four layers take the test, and for two of them the truth is known: a fresh model that was started small, as GPT-2
# is, has heads that share nothing, and a layer in which one head was copied into all others has collapsed. Each is
# measured as it is, and after the even map is taken away.

# %%
digits, _ = clinic.repeated_digits(64, torch.Generator().manual_seed(7))
future = torch.ones(digits.shape[-1], digits.shape[-1], dtype=torch.bool).triu(1)
even = head_analysis.uniform_weights(future)


def maps_of(model: WatchedModel) -> Float[Tensor, "batch heads query key"]:
    """Return the maps of the first block on new texts."""
    with torch.no_grad():
        model(digits)
    assert model.blocks[0].attention.weights is not None
    return model.blocks[0].attention.weights


torch.manual_seed(0)
small = WatchedModel(clinic.DIGITS, 2 * clinic.HALF)
for matrix in (small.blocks[0].attention.w_q.weight, small.blocks[0].attention.w_k.weight):
    nn.init.normal_(matrix, std=0.02)
layers = {
    "fresh, small start": maps_of(small),
    "one head copied": maps_of(stays["healthy"].model)[:, :1].expand(-1, 4, -1, -1),
    "healthy patient": maps_of(stays["healthy"].model),
    "collapsed patient": maps_of(stays["heads collapsed"].model),
}
alarms = {}
print(f"{'pairs of 6 that ring':>20} {'as they are':>12} {'less the even map':>18} {'entropy':>8}")
for name, weights in layers.items():
    plain, less = collapse.head_collapse(weights), collapse.head_collapse(weights - even)
    alarms[name] = bool(plain), bool(less)
    entropy = torch.special.entr(weights).sum(-1).mean().item()
    print(f"{name:>20} {len(plain):>12} {len(less):>18} {entropy:>8.2f}")
print()
known = {"fresh, small start": False, "one head copied": True}
for which, words in enumerate(("the plain cosine", "the cosine less the even map")):
    verdict(
        f"B: {words} tells collapsed heads (nearly identical patterns) from others",
        {name: alarms[name][which] == truth for name, truth in known.items()},
        depends_on="the layer",
    )

# %% [markdown]
# The plain alarm rings for every pair of a model that has not made a single step: soft maps are all even, and even
# maps are all alike. Without a **baseline** it cannot be used. And look at the last line: the patient's heads have
# picked **different** single keys, so an alarm for likeness is silent, and it is the entropy that shows what is wrong.
# Two illnesses have the same name, so watch both numbers.

# %% [markdown] exercise="diagnose" role="header" minutes=25 lines=14 difficulty=3
# ## Exercise: the diagnosis
#
# Write the doctor: a function that names the fault of a run from its records.
#
# **Why it matters.** You will do this by eye for years. Written down, it has to say which instrument decides, in which
# order, and how far from healthy is far enough. There is more than one right set of thresholds; the checks use runs
# whose fault is unmistakable.
#
# **Contract.** `run` is a dict of five series, each a tensor with one number per step: `loss` (nats), `grad_norm` (of
# the first block), `max_score`, `attention_entropy` (nats per query) and `update_ratio` (step over weights). Every run
# has exactly one fault. Return its name:
#
# | name | what the series show |
# |---|---|
# | `"learning rate too high"` | the loss bounces and does not fall; `update_ratio` stays near 0.1 or above |
# | `"no warm-up"` | `update_ratio` is as large in the first steps only; the loss jumps, comes back, stays |
# | `"vanishing gradient"` | `grad_norm` below a millionth at every step; hardly anything moves |
# | `"mask leaks the future"` | all healthy, but the loss falls to nearly 0, where no honest model gets |
# | `"heads collapsed"` | `attention_entropy` falls to nearly 0; scores are large but finite, and the loss stalls |
# | `"overflow"` | `max_score` passes 88.7; from then on `loss` and others are NaN |
#
# Elsewhere the instruments are healthy: gradients between a tenth and a few, `update_ratio` near 0.001, an entropy
# that falls to about six tenths, a loss that falls to about a half. Vocabularies and lengths differ from run to run,
# so a loss or an entropy says something only **relative to its first value**.
#
# <details><summary>Hint 1: the idea</summary>
#
# Begin with what makes all other numbers meaningless. Then ask one question for each fault.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `torch.isfinite(series).all()`. `series[len(series) // 2:].median()` is what a run has settled on, and
# `series[:5].max()` what happened at its start. Comparisons with NaN are always false.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Overflow first. The settled `update_ratio` tells a rate that is too high, its first values tell a missing warm-up.
# Then a settled `grad_norm`, the last entropy over the first one, and the last loss over the first one.
#
# </details>


# %% exercise="diagnose" role="answer"
def diagnose(run: dict[str, Float[Tensor, "step"]]) -> str:
    """Name the fault of a training run."""
    # BEGIN SOLUTION
    settled = {name: series[-len(series) // 2 :].median() for name, series in run.items()}
    if not torch.isfinite(run["loss"]).all():
        return "overflow"
    if settled["update_ratio"] > 0.03:
        return "learning rate too high"
    if run["update_ratio"][:5].max() > 0.05:
        return "no warm-up"
    if settled["grad_norm"] < 1e-5:
        return "vanishing gradient"
    if run["attention_entropy"][-1] < 0.05 * run["attention_entropy"][0]:
        return "heads collapsed"
    return "mask leaks the future"
    # END SOLUTION


# %% exercise="diagnose" role="test" points=2
from autograder import check

check(diagnose)

# %% exercise="diagnose" role="hidden test" points=3
from autograder import check

check(diagnose, hidden=True)

# %% [markdown]
# ### On rounds
#
# The course's diagnosis goes through the clinic. These are real runs, and its thresholds were not made for your
# machine: does it get all of them?

# %%
right = 0
for name in diagnosis.FAULTS:
    found = diagnosis.diagnose(records[name].series())
    right += found == name
    print(f"{name:>23}: {found}")
print(f"{right} of {len(diagnosis.FAULTS)} right" + (", after three steps" if quick() else ""))

# %% [markdown]
# > **Paper and practice: what people log.** Loss and gradient norm always; the largest score and the entropy since
# > large models showed both kinds of collapse (Zhai et al. 2023; Wortsman et al. 2023, who found small models with
# > high rates a good rehearsal for large ones). Step over weights is cheap and rarely logged. And two numbers that
# > need no curve: the loss of day one, and the loss on a single batch repeated a hundred times, which must go to 0.
# >
# > **When a run is ill:** look at the data of the batch where it went wrong, lower the peak, lengthen the climb, clip,
# > and only then change the model. PaLM's authors went back a hundred steps and skipped a few hundred batches
# > (Chowdhery et al. 2022, §5.1).

# %% [markdown]
# ## Hyperparameters
#
# Document B begins with "the most critical ones include:", and the list is missing. Here it is, with the values that
# the three documents use somewhere in their text or code.
#
# | hyperparameter | in the documents | in this course |
# |---|---|---|
# | width d_model | 4, 64, 128, 256, 768 | chapters 2, 7 |
# | width of a head d_k | 2, 512 | chapter 1 |
# | heads | 2, 4, 8 | chapter 2 |
# | layers | 2, 6, 12, more than 24, 96 | chapter 3 |
# | feed-forward width d_ff | 16, 256, 1024, 3072: four times d_model | chapter 4 |
# | dropout | 0.1, and 0.1 to 0.5 | chapter 3 |
# | eps of the norm | 1e-5 | chapter 3 |
# | base of the positions | 10000 | chapter 5 |
# | vocabulary | 1000 | chapter 9 |
# | sequence length | 4, 10, 12, 20, 512, 1000, beyond 10k | chapters 5, 7 |
# | batch | 2, 8, 32 | here |
# | temperature τ | 0.1 to 1.0 | chapter 1, and below |
# | masked share | 15 % | chapter 9 |
# | block size, sparsity | 32 to 128, 0.1 to 0.3 | chapter 8 |
# | largest score in float32 | 89 | above |
# | **not in the documents** | learning rate, its schedule, weight decay, betas, clipping, start | here |
#
# The last row is remarkable. The number that decides most is in none of the documents:
#
# ### Claim on trial: "highly sensitive"
#
# Document B: the performance "is highly sensitive to their hyperparameters". Start from a config that works, and
# change one number at a time, to an eighth or eight times where that makes sense. "Sensitive" shall mean that the
# loss after 80 steps rises by more than 0.1 nats.

# %%
TUNING_STEPS = steps(80, 4)
changes = {
    "learning rate": [{"rate": tuning.BASE["rate"] / 8}, {"rate": tuning.BASE["rate"] * 8}],
    "climb": [{"warmup": 1}, {"warmup": 40}],
    "weight decay": [{"decay": 0.0}, {"decay": 0.08}],
    "heads": [{"num_heads": 1}, {"num_heads": 8}],
    "layers": [{"num_layers": 2}],
    "half the width": [{"d_model": 16}],
}
usual = tuning.evaluate(tuning.BASE, TUNING_STEPS)
rises = {}
for name, variants in changes.items():
    losses = [tuning.evaluate({**tuning.BASE, **change}, TUNING_STEPS) for change in variants]
    rises[name] = max(losses) - usual
plots.show(
    plots.bar_plot(
        rises,
        ylabel="loss above the usual (nats)",
        title="One number changed at a time (the worst of its changes)",
        digits=2,
    )
)
verdict(
    "B: performance is highly sensitive to the hyperparameters (more than 0.1 nats)",
    {name: rise > 0.1 for name, rise in rises.items()},
    depends_on="the hyperparameter",
)

# %% [markdown]
# On this task the learning rate is in a class of its own, with the width far behind. That is typical, and it is why a
# comparison of two models at **one** rate says little: each deserves its own. (One task, one seed: do not take the
# order of the small ones for a law.)
#
# ### Claim on trial: "optimal τ typically falls between 0.1 and 1.0"
#
# Chapter 1 showed that a temperature is the same as longer or shorter queries. Document B names a best range. Train
# the digit reverser of chapter 1 with each temperature, from two seeds; and then take a model that was trained with τ
# = 1 and turn the temperature **afterwards**.


# %%
class ReverserAt(Reverser):
    """The reverser of chapter 1 with a temperature: queries divided by it."""

    def __init__(self, temperature: float) -> None:
        super().__init__(length=8)
        self.temperature = temperature
        self.w_q.register_forward_hook(lambda module, inputs, output: output / self.temperature)


def new_texts_loss(model: ReverserAt) -> float:
    """Return the loss on texts that no training saw."""
    tokens, targets = reversal_batch(200, 8, torch.Generator().manual_seed(99))
    with torch.no_grad():
        return F.cross_entropy(model(tokens)[0].flatten(0, 1), targets.flatten()).item()


def trained_at(temperature: float, seed: int) -> ReverserAt:
    """Train a reverser with a temperature."""
    torch.manual_seed(seed)
    generator, model = torch.Generator().manual_seed(seed), ReverserAt(temperature)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps(150, 3)):
        tokens, targets = reversal_batch(32, 8, generator)
        loss = F.cross_entropy(model(tokens)[0].flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


taus = (0.05, 0.1, 0.3, 1.0, 3.0, 10.0)
models = {tau: [trained_at(tau, seed) for seed in (0, 1)] for tau in taus}
trained = [np.mean([new_texts_loss(model) for model in models[tau]]) for tau in taus]
turned = []
for tau in taus:
    for model in models[1.0]:
        model.temperature = tau
    turned.append(np.mean([new_texts_loss(model) for model in models[1.0]]))
plots.show(
    plots.line_plot(
        taus,
        {"trained with τ": trained, "trained with 1": turned},
        xlabel="temperature τ",
        ylabel="loss on new texts (nats)",
        title="A temperature in training, and one afterwards",
        log_x=True,
        log_y=True,
    )
)
ends = dict(zip(taus, trained, strict=True))
print(f"lowest loss: {min(trained):.2g}, at τ = {min(ends, key=ends.__getitem__):g}")
inside = min(loss for tau, loss in ends.items() if 0.1 <= tau <= 1)
verdict(
    "B: the best temperature lies between 0.1 and 1 (others end 0.01 nats above its best, or more)",
    {f"τ = {tau}": loss > inside + 0.01 for tau, loss in ends.items() if not 0.1 <= tau <= 1},
    depends_on="the temperature",
)

# %% [markdown]
# What a model is trained with, it adapts to, within wide limits; only a very low temperature slows it, since softmax
# is saturated from the start. What is changed **under** a trained model is another matter: warmer, and it forgets
# where to look. Colder does no harm here, because every digit has a single right place; a model that has to average
# over several would lose by it. Temperatures below 1 are of use in **sampling** (chapter 9), which is a different
# softmax.
#
# ### Claims on trial: dropout
#
# Document A's table gives dropout a benefit, "prevents overfitting", a cost, "slower training", and a range, p = 0.1
# to 0.5. Overfitting needs little data and many steps: 48 texts, read 150 times. Their random halves cannot be
# foretold, but they can be learned by heart.


# %%
few, following = clinic.repeated_digits(48, torch.Generator().manual_seed(5))


def learn_by_heart(p: float) -> tuple[list[float], list[float]]:
    """Train on the few texts; return the losses on them and on new ones, every tenth step."""
    trainee = tuning.new_trainee()
    model, (block,) = trainee.model, trainee.model.blocks
    torch.manual_seed(0)
    for layer in (model.tokens, block.attention.w_o, block.ffn[2]):
        layer.register_forward_hook(lambda m, i, out: F.dropout(out, p, training=m.training))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    on_few, on_new = [], []
    for step in range(steps(150, 20)):
        loss = F.cross_entropy(model(few).flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            model.eval()
            with torch.no_grad():
                left = F.cross_entropy(model(few).flatten(0, 1), following.flatten())
            on_few.append(left.item())
            on_new.append(trainee.validation_loss())
            model.train()
    return on_few, on_new


by_heart = {p: learn_by_heart(p) for p in (0.0, 0.1, 0.3, 0.5)}
measured_at = [10 * (number + 1) for number in range(len(by_heart[0.0][0]))]
figure = plots.panels(2, width=4.2)
for axes, place, title in ((figure[0], 0, "The 48 texts"), (figure[1], 1, "New texts")):
    plots.line_plot(
        measured_at,
        {f"p = {p:g}": both[place] for p, both in by_heart.items()},
        xlabel="step",
        ylabel="loss (nats)",
        title=title,
        ax=axes,
    )
plots.show(figure[0])

without_few, without_new = by_heart[0.0]
dropped = {f"p = {p:g}": both for p, both in by_heart.items() if p}
verdict(
    "A: dropout helps against overfitting (new texts end lower than without it)",
    {name: on_new[-1] < without_new[-1] for name, (_, on_new) in dropped.items()},
    depends_on="p",
)
verdict(
    "A: it prevents overfitting (new texts do not end 0.1 nats above their best)",
    {name: on_new[-1] < min(on_new) + 0.1 for name, (_, on_new) in dropped.items()},
    depends_on="p",
)
verdict(
    "A: training is slower with it (the 48 texts after 20 steps are worse by 0.1 nats)",
    {name: on_few[1] > without_few[1] + 0.1 for name, (on_few, _) in dropped.items()},
    depends_on="p",
)

# %% [markdown]
# Dropout takes the edge off overfitting; it does not replace data. And where a model sees each text only once, as
# large language models mostly do, there is nothing to overfit with, and many recipes have no dropout at all.
#
# ## Search
#
# "Modern approaches leverage Bayesian optimization and evolutionary algorithms", says document B, and gives the goal:
# $\theta^* = \operatorname{argmin}_\theta L(f_\theta, D_\text{val})$, the hyperparameters θ whose model f has the
# lowest loss L on validation data D. Here you build two of the methods and use a library for the third, all on one
# small real problem: rate, climb and weight decay for the clinic's task.
#
# > **Document B's missing list: strategies.** Start from a recipe that worked for somebody. Change one thing at a time
# > to understand; draw at **random** to search, since a grid wastes its points on what does not matter (Bergstra and
# > Bengio 2012). Rates on a logarithmic scale. Raise the rate step by step until the loss explodes, then stay well
# > below. Tune on a small model and transfer what transfers: with maximal-update parametrization (µP), the rate does
# > (Yang et al. 2022). Several seeds before you believe a difference.

# %% [markdown] exercise="successive_halving" role="header" minutes=12 lines=7 difficulty=3
# ## Exercise: successive halving
#
# Try many configs for a short time, keep the better half, give them more time, and so on.
#
# **Why it matters.** Most configs are hopeless, and you can see it early. With the same number of training steps you
# can try many more of them. Hyperband and ASHA, which large searches use, are this idea with a safety net.
#
# **Contract.** `evaluate(config, budget)` gives a loss, lower is better; call it once for each config in each round.
# All `configs` are tried with the first of the `budgets`. After every budget but the last, the better half goes on;
# with an odd number, ⌈n/2⌉ of them. After the last budget return the config with the lowest loss in that round.
# Evaluations are counted: each may stand for hours.
#
# <details><summary>Hint 1: the idea</summary>
#
# One loop over the budgets. What do you need to carry from one round to the next?
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `sorted(items, key=function)` calls the function once for each item. `math.ceil(n / 2)`, or `(n + 1) // 2`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# For each budget but the last, sort the configs by their loss and keep the first half. Then `min` with the last
# budget.
#
# </details>


# %% exercise="successive_halving" role="answer"
def successive_halving(configs, evaluate, budgets):
    """Return the config that wins a tournament with growing budgets."""
    # BEGIN SOLUTION
    survivors = list(configs)
    *early_budgets, last_budget = budgets
    for early_budget in early_budgets:
        ranked = sorted(survivors, key=lambda config, spend=early_budget: evaluate(config, spend))
        survivors = ranked[: math.ceil(len(ranked) / 2)]
    return min(survivors, key=lambda config: evaluate(config, last_budget))
    # END SOLUTION


# %% exercise="successive_halving" role="test" points=1
from autograder import check

check(successive_halving)

# %% exercise="successive_halving" role="hidden test" points=2
from autograder import check

check(successive_halving, hidden=True)

# %% [markdown]
# ### On a real budget
#
# Sixteen random configs, budgets of 10, 20, 40 and 80 steps. Each evaluation trains a fresh model and measures it on
# texts that it never saw.

# %%
SEARCH_SEED = 0  # try others: with so few runs, luck has a say
BUDGETS = [10, 20, 40, 80] if not quick() else [1, 2, 3, 4]
draws = np.random.default_rng(SEARCH_SEED)
configs = [
    {
        "rate": float(10 ** draws.uniform(-5, 0)),
        "warmup": int(draws.integers(1, 40)),
        "decay": float(10 ** draws.uniform(-4, 0)),
    }
    for _ in range(16)
]
spent = {"halving": 0}
ladder = {budget: [] for budget in BUDGETS}  # (rate, loss) of every evaluation


def watched_evaluate(config: dict[str, float], budget: int) -> float:
    """Evaluate a config, and keep account of the steps."""
    found_loss = tuning.evaluate(config, budget)
    spent["halving"] += budget
    ladder[budget].append((config["rate"], found_loss))
    return found_loss


halving_winner = search.successive_halving(configs, watched_evaluate, BUDGETS)
halving_loss = dict(ladder[BUDGETS[-1]])[halving_winner["rate"]]
for budget, tried in ladder.items():
    kept = sorted(rate for rate, _ in tried)
    print(
        f"{budget:>3} steps: {len(tried):>2} configs, rates {kept[0]:.1g} to {kept[-1]:.1g}, ",
        end="",
    )
    print(f"best loss {min(loss for _, loss in tried):.2f}")
print(f"winner: {', '.join(f'{name} {value:.2g}' for name, value in halving_winner.items())}")
print(f"{spent['halving']} training steps; all sixteen to the end would be {16 * BUDGETS[-1]}")

# %% [markdown]
# ### With a library: Optuna
#
# Optuna proposes configs with a **tree-structured Parzen estimator** (TPE), a Bayesian method: from the trials so far
# it estimates where good configs lie and where bad ones, and proposes where the ratio is best. Its pruner is
# successive halving again, made asynchronous: a trial is stopped when others were better after the same number of
# steps. It may spend as many training steps as halving did.

# %%
spent["Optuna"] = 0


def objective(trial: optuna.Trial) -> float:
    """Train one proposed config, report on the way, and stop when the pruner says so."""
    proposal = {
        "rate": trial.suggest_float("rate", 1e-5, 1.0, log=True),
        "warmup": trial.suggest_int("warmup", 1, 40),
        "decay": trial.suggest_float("decay", 1e-4, 1.0, log=True),
    }
    trainee, reported = tuning.new_trainee(proposal), math.inf
    for budget in BUDGETS:
        spent["Optuna"] += budget - trainee.steps
        trainee.train(proposal, budget - trainee.steps)
        reported = trainee.validation_loss()
        if not math.isfinite(reported):
            raise optuna.TrialPruned
        trial.report(reported, budget)
        if trial.should_prune():
            raise optuna.TrialPruned
    return reported


def enough(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
    """End the search when the budget of steps is spent."""
    if spent["Optuna"] >= spent["halving"]:
        study.stop()


study = optuna.create_study(
    sampler=optuna.samplers.TPESampler(seed=SEARCH_SEED, n_startup_trials=6),
    pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=BUDGETS[0], reduction_factor=2),
)
study.optimize(objective, n_trials=100, callbacks=[enough])
pruned = sum(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials)
print(f"{len(study.trials)} trials, {pruned} of them stopped early, {spent['Optuna']} steps")
print(f"best: {', '.join(f'{name} {value:.2g}' for name, value in study.best_params.items())}")
print(f"loss: {study.best_value:.2f}")

# %% [markdown] exercise="exploit_and_explore" role="header" minutes=15 lines=10 difficulty=3
# ## Exercise: learn from the best
#
# Population-based training is the evolutionary one. Many models train at the same time, each with its own numbers.
# Every now and then the weakest copy the strongest, weights and all, and change the numbers a little.
#
# **Why it matters.** It finds not a number but a **schedule**: the rate may change during the training, and good
# changes survive. It was found while training agents, where no fixed rate is right for long.
#
# **Contract.** `population` is a list of dicts with a `score` (higher is better) and `params` (floats by name). The
# lowest `fraction` of the members, a number that is rounded with `round`, are replaced: each copies one of as many at
# the top, and each of its parameters is multiplied by one of the `factors`, drawn anew for each parameter. All others
# stay as they are. Return a **new** list in the old order; leave the old one as it was. Draw with `generator`, a NumPy
# generator, and nothing else.
#
# <details><summary>Hint 1: the idea</summary>
#
# How many are replaced? Which are they, which may be copied? Then walk through the population.
#
# </details>
# <details><summary>Hint 2: the tools</summary>
#
# `round(fraction * len(population))`. `sorted(range(n), key=...)` gives places instead of members.
# `generator.integers(n)`, `generator.choice(factors)`.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# For each losing place: choose a parent among the last places of the order, and make a new dict whose `params` are the
# parent's, each times a choice of its own.
#
# </details>


# %% exercise="exploit_and_explore" role="answer"
def exploit_and_explore(population, generator, fraction=0.2, factors=(0.8, 1.2)):
    """Replace the weakest members by changed copies of the strongest."""
    # BEGIN SOLUTION
    ranked = sorted(range(len(population)), key=lambda place: population[place]["score"])
    replaced = round(fraction * len(population))
    losers, winners = ranked[:replaced], ranked[-replaced:]
    new_list = []
    for place, current in enumerate(population):
        if place in losers:
            parent = population[winners[generator.integers(replaced)]]
            moved = dict(parent["params"])
            for key in moved:
                moved[key] *= float(generator.choice(factors))
            current = {**parent, "params": moved}
        new_list.append(dict(current))
    return new_list
    # END SOLUTION


# %% exercise="exploit_and_explore" role="test" points=1
from autograder import check

check(exploit_and_explore)

# %% exercise="exploit_and_explore" role="hidden test" points=2
from autograder import check

check(exploit_and_explore, hidden=True)

# %% [markdown]
# ### On the same budget
#
# Eight models, eight rounds of ten steps: as many steps as before. Members carry their weights with them; the course's
# function hands on whatever a member has.

# %%
ROUNDS, PER_ROUND = 8, steps(10, 1)
chance = np.random.default_rng(SEARCH_SEED)
trainees = [tuning.new_trainee(seed=slot) for slot in range(8)]
population = [
    {
        "params": {
            "rate": float(10 ** chance.uniform(-5, 0)),
            "decay": float(10 ** chance.uniform(-4, 0)),
        }
    }
    for _ in trainees
]
rates_by_round, best_by_round = [], []
for _ in range(ROUNDS):
    for trainee, member in zip(trainees, population, strict=True):
        if "weights" in member:
            trainee.load(member["weights"])
        trainee.train(member["params"], PER_ROUND)
        loss_now = trainee.validation_loss()
        member["score"] = -loss_now if math.isfinite(loss_now) else -math.inf
        member["weights"] = trainee.weights()
    rates_by_round.append(sorted(member["params"]["rate"] for member in population))
    best_by_round.append(-max(member["score"] for member in population))
    population = search.exploit_and_explore(population, chance, fraction=0.25)
spent["population"] = sum(trainee.steps for trainee in trainees)

plots.show(
    plots.line_plot(
        range(1, ROUNDS + 1),
        {
            "highest": [rates[-1] for rates in rates_by_round],
            "in the middle": [rates[4] for rates in rates_by_round],
            "lowest": [rates[0] for rates in rates_by_round],
        },
        xlabel="round",
        ylabel="learning rate",
        title="The rates of a population of eight",
        log_y=True,
    )
)
for name, loss in (
    ("halving", halving_loss),
    ("Optuna", study.best_value),
    ("population", best_by_round[-1]),
):
    print(f"{name:>10}: best loss {loss:.3f} after {spent[name]} steps in all")

# %% [markdown]
# The extremes die out within a few rounds. One run of each method is an anecdote, so there is no verdict here; change
# `SEARCH_SEED` and look again. What is general: halving and pruning save steps on hopeless configs, a model-based
# sampler pays off when trials are many or dear, and a population gives a schedule and uses all its machines at once.
#
# ### Claim on trial: the winner's score
#
# $\operatorname{argmin} L(f_\theta, D_\text{val})$ picks the config with the best validation score. Can that score
# then be reported?
#
# ### Predict first: a hundred coin flips
#
# A hundred configs are all equally useless: each gets each of 100 validation examples right with probability ½. You
# report the best of the hundred. Which share of right answers do you report, between 0 and 1?

# %%
my_prediction = None  # a share between 0 and 1

flips = np.random.default_rng(0)
best_validation = flips.binomial(100, 0.5, size=(500, 100)).max(axis=1) / 100  # 500 such searches
same_on_test = flips.binomial(100, 0.5, size=500) / 100  # the winners on new examples
reveal(my_prediction, float(best_validation.mean()))
print(f"the winners on new examples: {same_on_test.mean():.3f}\n")
flattery = {}
for count in (1, 10, 100):
    winners = flips.binomial(100, 0.5, (500, count)).max(axis=1) / 100
    flattery[f"best of {count}"] = winners.mean() - 0.5
verdict(
    "B, read literally: the best score on D_val is how good the winner is (within 0.02)",
    {name: abs(excess) < 0.02 for name, excess in flattery.items()},
    depends_on="the number of configs",
)

# %% [markdown]
# The more you search, the more the winner's score flatters. A third set, which nobody searched on, gives the honest
# number. (In the formula, θ stands for hyperparameters; the weights are found by another minimization inside, on the
# training data.)
#
# ## A recipe that worked: BERT
#
# Document B has a case study, "the original BERT architecture established several hyperparameter conventions:", and
# again the list is missing. Here are BERT's numbers, between those of its predecessor and a successor.

# %%
columns = ("original base", "BERT base", "BERT large", "GPT-3")
rows = {
    "layers": "layers",
    "d_model": "d_model",
    "d_ff": "d_ff",
    "heads": "heads",
    "dropout": "dropout",
    "peak rate": "peak_rate",
    "climb, steps": "warmup",
    "steps": "steps",
    "tokens per step": "tokens_per_step",
    "betas of Adam": "betas",
    "weight decay": "weight_decay",
    "clipped at": "clip",
    "after the climb": "then",
}
print(f"{'':>16}" + "".join(f"{name:>18}" for name in columns))
for label, attribute in rows.items():
    values = [getattr(RECIPES[name], attribute) for name in columns]
    told = [f"{v:,}" if isinstance(v, int) else str(v or "not named") for v in values]
    print(f"{label:>16}" + "".join(f"{value:>18}" for value in told))

# %% [markdown]
# The numbers are those of the papers; where a paper names none, the code may still have one (BERT's published code
# clips at 1). GELU, WordPiece with a vocabulary of 30,000, and dropout on all layers complete BERT's list. d_ff is
# four times d_model in all of them; so far document B's "pattern observed across many" holds. (Gated networks,
# chapter 4, use 8/3.)
#
# BERT's rate falls in a straight line. Here are the three curves, each relative to its own peak and length:

# %%
shares = [number / 100 for number in range(101)]
original_peak = schedules.noam_rate(4000, 512, 4000)
curves = {"original": [], "BERT": [], "GPT-3": []}
for share in shares:
    step = max(1, round(100_000 * share))
    curves["original"].append(schedules.noam_rate(step, 512, 4000) / original_peak)
    curves["BERT"].append(schedules.linear_rate(round(1e6 * share), 1_000_000, 1.0, warmup=10_000))
    # GPT-3 counts tokens: the wave ends after 260 of its 300 billion, and the floor is a tenth.
    step = round(94_000 * share)
    curves["GPT-3"].append(schedules.cosine_rate(step, 81_250, 1.0, warmup=117, floor=0.1))
plots.show(
    plots.line_plot(
        shares,
        curves,
        xlabel="share of the training",
        ylabel="rate, 1 = its peak",
        title="Three recipes",
    )
)

# %% [markdown]
# The recipes agree on another point, which is easily missed: weight decay is for matrices. A gain that is pulled to 0
# switches its feature off, and a bias has nothing to overfit with.

# %%
groups = parameter_groups(WatchedModel(10, 10, num_layers=2), weight_decay=0.01)
for group in groups:
    count = sum(parameter.numel() for parameter in group["params"])
    print(f"decay {group['weight_decay']}: {len(group['params']):>2} tensors, {count:>6,} numbers")

bert = RECIPES["BERT base"]
full = bert.steps * bert.tokens_per_step
mixed = bert.steps * 256 * (0.9 * 128 + 0.1 * 512)
print(f"\nBERT: {bert.steps:,} steps of {bert.tokens_per_step:,} tokens: {full / 1e9:.0f} billion;")
print(f"with texts of 128 tokens in the first 90 % of the steps, {mixed / 1e9:.0f} billion")

# %% [markdown]
# > **Document B's missing list: when memory is short.** Fewer layers before narrower ones. Layers that share weights
# > (ALBERT). A smaller d_ff. Fewer heads of keys and values (chapter 2). Small batches whose gradients are added up
# > before a step. Recomputing activations, 8-bit optimizer states (chapter 12). Each one trades something; measure it
# > with the instruments above.
# >
# > **Document B's missing lists: positions.** Sinusoids fail beyond the trained length, when the embeddings drown them
# > or they drown the embeddings (the √d_model of the paper), with a wrong exponent, and when texts are padded on the
# > left and positions counted from there. Learned positions fail with an index beyond the table, and silently with
# > rows that no text was long enough to train. Tools: a picture of the table, the products of its rows, a shuffled
# > text, accuracy by position, and by length. Chapter 5 has all five.

# %% [markdown] exercise="the_flat_curve" role="header" minutes=15
# ## Written question: the flat curve
#
# A colleague trains a causal language model with 24 post-norm layers and a vocabulary of 32,000. After 2,000 steps
# the loss is 10.4 and has not moved for an hour. She has logged the loss only, from step 100 on. "The learning rate
# must be too low," she says, "I will multiply it by ten." What do you answer? Say what 10.4 tells you; name at least
# three faults of this chapter that would look just like that, and for each the instrument that would show it and what
# it would read; say what she should log from which step on; and what you would try first, and why not her plan.
# Quote at least two numbers from this notebook. Half a page is enough.
#
# Your teacher looks for five things: what the number 10.4 is; three faults with an instrument each; from which step
# on to log; a first step that fits 24 post-norm layers; and what would happen to her plan in at least one of the
# cases.

# %% [markdown] exercise="the_flat_curve" role="written" points=5
# **Model answer.** ln 32,000 = 10.37, so the model knows exactly as much as on day one. Its logits are even; nothing
# has exploded, and nothing was ever learned (or it was destroyed early).
#
# Several faults look like that. (a) A missing warm-up: step over weights is huge in the first steps (0.35 in our
# clinic) and small later; the loss jumps above ln V and comes back; afterwards the gradient in the first block is
# dead (a hundred thousand times smaller at the end than at the first step in ours). (b) A vanishing gradient: the
# first block's gradient is tiny from the first step on (about 4e-14 in ours) while the last block's is not. (c) A
# rate that is too high: step over weights stays at a tenth, and the loss bounces rather than lies flat. (d) Collapsed
# heads: entropy near 0 against an even map of 1.4 in ours; there the loss usually has learned something first. A rate
# that is really too low shows as step over weights far below 0.001 with a healthy gradient.
#
# She should log from step 1: loss, gradient norm per layer, step over weights, largest score and entropy. The cause of
# (a) lies in the first five steps, which her log does not have; by step 100 it looks like (b).
#
# First I would look at the first 50 steps again with these instruments; it costs minutes. With 24 post-norm layers
# the likely fault is (a), so I would add a climb, or lower the peak; or move to pre-norm. In our clinic the same
# model with a climb of 40 steps went from 2.4 down to about 1.05, where 1.02 is the best possible.
#
# Her plan makes (a) and (c) worse: the first steps would be ten times as large. In (b) it does nothing for
# the first blocks, for ten times nothing is nothing: a gradient of 4e-14, far below Adam's eps of 1e-8, moves no
# weight. Only if step over weights says that steps are tiny and gradients are healthy is a higher rate the answer.
#
# **Rubric** (one point each)
#
# 1. 10.4 is ln 32,000: the model is where it started.
# 2. Three faults, each with an instrument and a reading that tells it from the others.
# 3. Logging from the first step on, with the reason.
# 4. A first step that fits: warm-up, a lower peak or pre-norm, after a look at the first steps.
# 5. What ten times the rate does in at least one of these cases, with a number from the notebook.

# %% [markdown]
# ## Optional: your own doctor on rounds
#
# Does **your** `diagnose` get the real runs right, with thresholds that were made on drawn ones? And does your
# schedule train? This cell is not graded, and may fail while an answer is unfinished.

# %%
try:
    own = {name: diagnose(records[name].series()) for name in diagnosis.FAULTS}
    agreeing = sum(name == found for name, found in own.items())
    print(f"your diagnosis: {agreeing} of {len(own)} right")
    for name, found in own.items():
        if name != found:
            print(f"  {name} was taken for {found}: look at its curves in the monitor")
    warm = [cosine_rate(step, 60, 1e-2, 10, 1e-3) for step in range(60)]
    own_trainee = tuning.new_trainee()
    for rate in warm[: steps(60, 2)]:
        own_trainee.train({"rate": rate, "decay": 0.01}, 1)
    print(f"60 steps with your cosine: loss {own_trainee.validation_loss():.2f}")
except NotImplementedError:
    print("not all of your functions are written yet; come back when they are.")

# %% [markdown]
# ## Summary
#
# - The first loss is ln V. Far above it, the model is sure, and wrong; below it, the answer is in the input.
# - A loss curve alone diagnoses nothing. Gradient of the first block, step over weights, largest score and entropy,
#   each against its baseline, tell six common faults apart.
# - Warm-up protects the first steps, in which Adam moves nearly every weight by the full rate. What is broken then
#   looks like a vanishing gradient later.
# - Clip by the **common** norm: it keeps the direction. Clear, go back, clip, set the rate, step, in this order.
# - Draw the last matrices of a deep stack with base / √(2 · layers), and its stream keeps its size.
# - exp ends at ln of the dtype's largest number: 88.7 in float32, 11.1 in float16.
# - Similarity of heads needs a baseline; a fresh model rings every alarm without one. Heads can collapse in two ways,
#   onto each other or onto single keys.
# - Dropout softens overfitting and slows learning; it does not replace data.
# - A temperature in training is absorbed by the queries; one that is changed afterwards is not.
# - The learning rate decides most, and is in none of the documents. Search it on a logarithmic scale.
# - Halving saves steps, a population finds schedules, and the winner's validation score flatters.
#
# **Next:** chapter 12 makes all this large: half precision, parallel machines, and what they cost.
#
# ### Sources
#
# - Vaswani et al. 2017, *Attention Is All You Need*, arXiv 1706.03762: §5.3, eq. 3 (schedule), table 3.
# - Loshchilov and Hutter 2017, *SGDR*, arXiv 1608.03983: §3, eq. 5 (cosine); 2019, *Decoupled Weight Decay
#   Regularization*, arXiv 1711.05101 (AdamW).
# - Devlin et al. 2018, *BERT*, arXiv 1810.04805: §3, appendix A.2. Brown et al. 2020, *Language Models are Few-Shot
#   Learners*, arXiv 2005.14165: table 2.1, appendix B. Lan et al. 2019, *ALBERT*, arXiv 1909.11942.
# - Pascanu, Mikolov, Bengio 2013, *On the Difficulty of Training Recurrent Neural Networks*, arXiv 1211.5063: §3.2
#   (clipping).
# - Radford et al. 2019, *Language Models are Unsupervised Multitask Learners*: §2.3 (start of residual layers).
# - Xiong et al. 2020, *On Layer Normalization in the Transformer Architecture*, arXiv 2002.04745 (why warm-up).
# - Zhai et al. 2023, *Stabilizing Transformer Training by Preventing Attention Entropy Collapse*, arXiv 2303.06296;
#   Wortsman et al. 2023, *Small-scale Proxies for Large-scale Transformer Training Instabilities*, arXiv 2309.14322.
# - Chowdhery et al. 2022, *PaLM*, arXiv 2204.02311: §5.1 (going back before a spike).
# - Bergstra and Bengio 2012, *Random Search for Hyper-Parameter Optimization*, JMLR 13; Bergstra et al. 2011,
#   *Algorithms for Hyper-Parameter Optimization* (TPE).
# - Jamieson and Talwalkar 2016, *Non-stochastic Best Arm Identification and Hyperparameter Optimization*, arXiv
#   1502.07943 (successive halving); Li et al. 2018, *Hyperband*, arXiv 1603.06560; Li et al. 2020, arXiv 1810.05934
#   (ASHA).
# - Jaderberg et al. 2017, *Population Based Training of Neural Networks*, arXiv 1711.09846: §4.1.
# - Akiba et al. 2019, *Optuna*, arXiv 1907.10902. Yang et al. 2022, *Tensor Programs V*, arXiv 2203.03466 (µP).
# - Stanford's course CS231n, notes *Neural Networks Part 3* (step over weights).
# - Gemma Team 2024, *Gemma 2*, arXiv 2408.00118 (capped scores).
# - The repository jsboige/CoursIA, pull request 12768: a first loss of 107.
