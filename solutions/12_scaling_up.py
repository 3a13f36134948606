# ---
# title: "12 · Scaling up"
# ---

# %% [markdown] role="opening" minutes=40
# # 12 · Scaling up
#
# A model that fits onto your screen in fifty lines can be too large for any machine. What then helps is of two kinds:
# make every number smaller and every pass leaner, or share the work among many devices. This chapter does both, and
# counts what each trick saves and what it costs. You train in half precision, see exactly which numbers it loses, and
# run one layer on two real processes that send each other tensors.
#
# **At the end you can**
#
# - say where float16 and bfloat16 lose numbers, and what a loss scale and a master copy do about it;
# - count the bytes that training needs, and tell which of them half precision saves and which it does not;
# - trade memory for a second forward pass, and compute both sides of the trade;
# - share a layer by columns, rows, stages or experts, and count the bytes that travel;
# - plan a model on a thousand devices with a pencil.
#
# **You need** chapters 4 and 7 (the block, FLOPs and bytes), chapter 9 for the experts, and some PyTorch.
#
# **The documents.** The chapter mirrors document B ("Transformer Block Dissected"), section "Optimizing for
# Computational Efficiency": mixed precision, kernel fusion, and its table of tensor, pipeline and expert parallelism.
# Several of its lists are lost; they are filled in here. Document B's numbers (half the memory, 1.5 to 3 times the
# speed) and its formula for the cost of communication come to trial.
#
# **Where this runs.** On one CPU. bfloat16 is real here; float16 is emulated where a CPU would be slow. Three cells
# start two processes and stop them again; where a system forbids that, they say so in a sentence. So does the one
# cell that wants a C++ compiler.

# %%
import copy
import statistics
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from autograder import check
from course_lib import activation_memory, memory, plots, roofline, schedule_plot
from course_lib.block import TransformerBlock
from course_lib.flop_counter import counted_flops, counted_parameters
from course_lib.settings import steps
from course_lib.training import (
    compiled,
    emulated_half,
    mixed_precision,
    parallel,
    parallel_layers,
    pipeline,
)
from course_lib.training.distributed_run import on_processes
from course_lib.training.emulated_half import Recipe, train_rounded
from course_lib.trial import reveal, verdict
from course_lib.widgets.planner import planner

torch.set_num_threads(1)  # so that your numbers compare with those of a machine with more cores

# %% [markdown]
# ## Numbers of two bytes
#
# A float32 number takes 4 bytes. Two formats take 2. float16 spends them on digits, bfloat16 on range:

# %%
print(f"{'':>9}{'bytes':>6}{'largest':>10}{'smallest':>10}{'next after 1':>14}")
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    facts = torch.finfo(dtype)
    name, size = str(dtype).removeprefix("torch."), facts.bits // 8
    smallest = facts.tiny * facts.eps  # the last one before 0
    print(f"{name:>9}{size:>6}{facts.max:>10.1e}{smallest:>10.1e}{1 + facts.eps:>14.7f}")

# %% [markdown]
# Two things go wrong with so few bits, and they are different. A number can be **too small for the format** and
# become 0; and a number can be **too small beside another** and be lost when the two are added.
#
# ### Predict first: a thousand small steps
#
# A weight is 1. A thousand times you subtract 0.0001, in float16. Where does it end?

# %%
my_prediction = None  # a number

weight = torch.ones((), dtype=torch.float16)
for _ in range(1000):
    weight = weight - torch.tensor(1e-4, dtype=torch.float16)
reveal(my_prediction, weight.item())

# %% [markdown]
# Below 1 the next float16 number is 0.99951. A step of 0.0001 is less than half the way to it, so each subtraction is
# rounded back. The weight never moves, and no single step looks wrong.

# %% [markdown] exercise="master_weight_update" role="header" minutes=8 lines=2 difficulty=2
# ## Exercise: a master copy
#
# Keep the weights in float32, take the step there, and hand out a copy in half precision for the next pass.
#
# **Why it matters.** This is document B's formula,
# $W_{FP32} \leftarrow W_{FP32} - \eta \cdot \text{float32}(\nabla W_{FP16})$, the usual way to train in mixed
# precision. Without the copy a training does not crash. It just stops learning when its steps become small.
#
# **Contract.** `master` is float32, `grad` has any half-precision dtype, `rate` is a number. Return the new master
# weights (float32) and their copy in the gradient's dtype. Neither input changes. Mind in which dtype `rate * grad`
# is computed.
#
# <details><summary>Hint 1: the idea</summary>
#
# What is the result's dtype when you multiply a float16 tensor by a Python number? And what if the product is below
# 6e-8?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `tensor.float()` widens, `tensor.to(other.dtype)` narrows.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Widen the gradient before anything else touches it; narrow the new weights at the very end.
#
# </details>


# %% exercise="master_weight_update" role="answer"
def master_weight_update(
    master: Float[Tensor, "..."], grad: Float[Tensor, "..."], rate: float
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    """Take a step on float32 weights with a half-precision gradient."""
    # BEGIN SOLUTION
    new_master = master - rate * grad.to(torch.float32)
    return new_master, new_master.to(grad.dtype)
    # END SOLUTION


# %% exercise="master_weight_update" role="test" points=2
from autograder import check

check(master_weight_update)

# %% exercise="master_weight_update" role="hidden test" points=2
from autograder import check

check(master_weight_update, hidden=True)

# %% [markdown]
# The thousand steps again, with the course's `master_weight_update`:

# %%
small_step = torch.full((1,), 1e-4).half()
with_copy, without_copy = torch.ones(1), torch.ones(1).half()
traces = {"float32 master copy": [], "float16 alone": []}
for _ in range(1000):
    with_copy, _ = mixed_precision.master_weight_update(with_copy, small_step, 1.0)
    without_copy = without_copy - small_step
    traces["float32 master copy"].append(with_copy.item())
    traces["float16 alone"].append(without_copy.item())

plots.show(
    plots.line_plot(
        range(1, 1001),
        traces,
        xlabel="step",
        ylabel="the weight",
        title="A thousand steps of 0.0001",
    )
)

# %% [markdown]
# ## Gradients that vanish
#
# The other loss happens before the step. In float16 everything below 6e-8 is 0 (or, from its half on, rounded up to
# it), and gradients are small: the mean over a batch divides each of them by the number of tokens. Multiply the loss
# by a large number, and by the chain rule every gradient is multiplied by it. Which number?
#
# The next cell trains a small character model for a few steps and takes its gradients. It then asks, for each scale,
# which share of them would become 0 in float16, and which share would overflow. The batch is thought of as one of
# 6,250 pieces, 512 tokens each: the 3.2 million tokens of one step of GPT-3.

# %%
PIECES = 6250
grads = [grad / PIECES for grad in emulated_half.reader_gradients(steps(100, 3))]
powers = list(range(0, 45, 4))
shares = [emulated_half.zeroed_share(grads, 2.0**power, torch.float16) for power in powers]
plots.show(
    plots.line_plot(
        powers,
        {"become 0": [zero for zero, _ in shares], "overflow": [over for _, over in shares]},
        xlabel="loss scale, as a power of 2",
        ylabel="share of the gradients",
        title="Between two walls",
    )
)
in_bfloat16 = emulated_half.zeroed_share(grads, 1.0, torch.bfloat16)
half_lost, brain_lost = shares[0][0], in_bfloat16[0]
print(f"without a scale: {half_lost:.0%} become 0 in float16, {brain_lost:.0%} in bfloat16")
every = torch.cat([grad.abs().flatten() for grad in grads])
full = torch.finfo(torch.float16).tiny  # below it float16 has fewer digits, down to none
print(
    f"below {full:.0e}, where digits are lost: {(every < full).double().mean():.0%} of {len(every):,}"
)

# %% [markdown]
# Between the walls there is room. But gradients change while a model learns, so the scale should move as well: **halve
# it when something overflows, double it when nothing has for a long time**. That is all there is to a dynamic loss
# scale. An overflow costs one step, and shows itself.

# %% [markdown] exercise="loss_scale_step" role="header" minutes=12 lines=7 difficulty=3
# ## Exercise: a dynamic loss scale
#
# Given gradients of a scaled loss, undo the scale or skip the step, and say which scale the next step should use.
#
# **Why it matters.** `torch.amp.GradScaler` is this function with bookkeeping around it. When a run prints "skipping
# step, reducing loss scale", you will know what happened, and when to worry.
#
# **Contract.** `grads` is a list of tensors, `scale` a float, `good_steps` the number of good steps in a row before
# this one.
#
# - An entry of any gradient is not finite: return `(None, scale / 2, 0)`.
# - Otherwise the first result is the list of gradients divided by `scale`, in float32 (float64 stays float64). This
#   step counts as good. If that makes `growth_interval` good steps, the next scale is twice as large and the count is
#   0 again.
#
# <details><summary>Hint 1: the idea</summary>
#
# First decide whether the step is good, looking at every entry of every gradient. Then there are two cases, and in
# the good one two more.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `torch.isfinite` knows both infinities and NaN. `torch.promote_types(dtype, torch.float32)` is float32 for both half
# precisions and float64 for float64.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Divide by the **old** scale, after widening. Compare `good_steps + 1` with the interval.
#
# </details>


# %% exercise="loss_scale_step" role="answer"
def loss_scale_step(
    grads: list[Tensor], scale: float, good_steps: int, growth_interval: int = 2000
) -> tuple[list[Tensor] | None, float, int]:
    """Undo a loss scale, or skip the step; then adjust the scale."""
    # BEGIN SOLUTION
    if not all(torch.isfinite(grad).all() for grad in grads):
        return None, scale / 2, 0
    widened = [grad.to(torch.promote_types(grad.dtype, torch.float32)) for grad in grads]
    undone = [grad / scale for grad in widened]
    good_steps += 1
    if good_steps == growth_interval:
        return undone, 2 * scale, 0
    return undone, scale, good_steps
    # END SOLUTION


# %% exercise="loss_scale_step" role="test" points=2
from autograder import check

check(loss_scale_step)

# %% exercise="loss_scale_step" role="hidden test" points=3
from autograder import check

check(loss_scale_step, hidden=True)

# %% [markdown]
# > **Paper and practice: who needs a scale.** bfloat16, which came with Google's TPUs, has float32's range, so with
# > it most people use none; it pays with digits, which makes the master copy all the more important. float16 keeps
# > its place on older GPUs, on phones and in inference. FP8 training brings scales back, one for every tensor. The
# > factors 2, ½ and the 2000 steps are PyTorch's; Micikevicius et al. 2018 found that a constant 8 to 32,000 served
# > as well.

# %% [markdown] exercise="repaired_scaled_step" role="header" minutes=12 lines=6 difficulty=3
# ## Bug hunt: a step in mixed precision
#
# The function below unscales, clips, and steps. It runs, and on most days a training with it even converges, slowly.
# Three colleagues report:
#
# 1. "Whatever `max_norm` I choose, my model hardly moves."
# 2. "Some embeddings get no gradient at all, although the scaled gradients are not 0."
# 3. "Since step 4,017 all weights are NaN."
#
# **Why it matters.** Clipping before unscaling is one of the most frequent mistakes with a loss scale, and PyTorch's
# manual has a section on it. It raises no error.
#
# **Contract.** `master` is float32, `grad` the half-precision gradient of a loss that was multiplied by `scale`. The
# unscaled gradient, in float32, is shortened to the length `max_norm` if it is longer, and the step goes `rate` times
# against it. If an entry is not finite the weights stay as they are. Return the weights (float32) and whether a step
# was taken.
#
# <details><summary>Hint 1: the idea</summary>
#
# Follow one number, 2⁻²⁴ · 3 with a scale of 1024, through every line, and write down its dtype.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `max_norm` speaks about gradients of the real loss. At which line does the code hold those?
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Widen, unscale, look, clip, step: in this order.
#
# </details>


# %% exercise="repaired_scaled_step" role="answer"
def repaired_scaled_step(
    master: Float[Tensor, "..."],
    grad: Float[Tensor, "..."],
    scale: float,
    max_norm: float,
    rate: float,
) -> tuple[Float[Tensor, "..."], bool]:
    """Unscale, look, clip, step."""
    # BEGIN SOLUTION
    real = grad.float() / scale
    if not torch.isfinite(real).all():
        return master.clone(), False
    length = real.norm().item()
    if length > max_norm:
        real = real * (max_norm / length)
    return master - rate * real, True
    # END SOLUTION
    # BEGIN STARTER
    # length = grad.float().norm().item()
    # clipped = grad.float() * min(1.0, max_norm / (length + 1e-12))
    # clipped = clipped.to(grad.dtype) / scale
    # return master - rate * clipped.float(), True
    # END STARTER


# %% exercise="repaired_scaled_step" role="test" points=2
from autograder import check

check(repaired_scaled_step)

# %% exercise="repaired_scaled_step" role="hidden test" points=2
from autograder import check

check(repaired_scaled_step, hidden=True)

# %% [markdown]
# ### Claim on trial: precision-sensitive operations
#
# Document B asks for "careful handling of precision-sensitive operations like layer normalization". The next cell
# does five things in float16 from start to end, and compares with float64. What is more than 5 % off, or not finite,
# needs care.


# %%
def by_hand_norm(x: Tensor) -> Tensor:
    """Normalize a token; every step in the dtype of `x`."""
    centered = x - x.mean(-1, keepdim=True)
    return centered / (centered.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()


def running_sum(x: Tensor) -> Tensor:
    """Add up a list, one by one, as an accumulator does."""
    total = torch.zeros((), dtype=x.dtype)
    for entry in x.flatten():
        total = total + entry
    return total


torch.manual_seed(0)
one_large = torch.randn(1, 64)
one_large[0, 5] = 3000
situations = {
    "a product of small numbers": (lambda x: x * x, torch.rand(64) + 0.5),
    "layer norm of usual tokens": (by_hand_norm, torch.randn(4, 64)),
    "layer norm with a feature of 3000": (by_hand_norm, one_large),
    "exp of a score of 12": (torch.exp, torch.tensor([12.0])),
    "a sum of 10,000 tenths": (running_sum, torch.full((10_000,), 0.1)),
}
careful = {}
for name, (function, x) in situations.items():
    exact, half = function(x.double()), function(x.half()).double()
    off = ((half - exact).abs().max() / exact.abs().max()).item()
    careful[name] = not off < 0.05
    print(f"{name:>33}: {'not finite' if not half.isfinite().all() else f'off by {off:.1%}'}")
print()
verdict("the operation needs care in float16", careful, depends_on="sums and sizes")

# %% [markdown]
# Layer norm is sensitive for two reasons: it squares, and a feature of 3000 squared is beyond 65,504; and it sums. So
# frameworks read half-precision tokens, work in float32 inside the norm, the softmax and every long sum, and write
# half precision again. The matrix products of Tensor Cores do the same: factors of 2 bytes, **accumulators of 4**.
# (The sum of tenths stopped at 256: there the next float16 number is 0.25 away. Chapter 1's softmax overflows in
# float16 from a score of 11.09 on, if the maximum is not subtracted.)
#
# ## A real task: seven ways to train a reader
#
# Now all of it at once. A model of two blocks learns to predict the next character of Python's own documentation.
# Every run sees the same batches and starts from the same weights; **only the treatment of numbers changes**.
# Weights, activations between layers and gradients are rounded to the format; inside a layer float32 is used, as in a
# Tensor Core. Two ablations:
#
# - **No scale**: the batch is one of 6,250 pieces, as above, so each gradient is 6,250 times smaller.
# - **No master copy**: the rate is 0.0001, as usual for a large model, so each step is small beside its weight.
#
# ### Predict first: what a missing copy costs
#
# In float32, with the rate of 0.0001, the loss falls from 5.1 to about 3.2 nats in 300 steps. Where does it end in
# bfloat16 **without** a master copy?

# %%
my_prediction = None  # nats

TRAINED = steps(300, 4)
recipes = {
    "float32": Recipe(),
    "float16, no scale": Recipe(torch.float16, pieces=PIECES),
    "float16, dynamic scale": Recipe(torch.float16, scale="dynamic", pieces=PIECES),
    "float32, low rate": Recipe(rate=1e-4),
    "bfloat16, copy, low rate": Recipe(torch.bfloat16, rate=1e-4),
    "bfloat16, no copy, low rate": Recipe(torch.bfloat16, master=False, rate=1e-4),
    "float16, no copy, low rate": Recipe(torch.float16, scale=1024.0, master=False, rate=1e-4),
}
outcomes = {}
for name, recipe in recipes.items():
    print(f"{name:>28}: ", end="")
    outcomes[name] = train_rounded(recipe, TRAINED)
reveal(my_prediction, outcomes["bfloat16, no copy, low rate"].final)


# %%
def smooth(losses: list[float], width: int = 20) -> list[float]:
    """Average the losses of the last steps at every step."""
    ends = range(1, len(losses) + 1)
    return [statistics.fmean(losses[max(0, end - width) : end]) for end in ends]


def curves(names: dict[str, str]) -> dict[str, list[float]]:
    """Give smoothed losses under short names, cut off at 8."""
    cut = {name: [min(loss, 8.0) for loss in ran.losses] for name, ran in outcomes.items()}
    return {short: smooth(cut[name]) for short, name in names.items()}


left, right = plots.panels(2, width=4.4)
at = range(1, TRAINED + 1)
plots.line_plot(
    at,
    curves(
        {
            "float32": "float32",
            "unscaled": "float16, no scale",
            "scaled": "float16, dynamic scale",
        }
    ),
    xlabel="step",
    ylabel="loss, cut off at 8",
    title="float16 in 6,250 pieces",
    ax=left,
)
plots.line_plot(
    at,
    curves(
        {
            "float32": "float32, low rate",
            "copy": "bfloat16, copy, low rate",
            "no copy": "bfloat16, no copy, low rate",
        }
    ),
    xlabel="step",
    ylabel="loss",
    title="bfloat16 at a low rate",
    ax=right,
)
plots.show(left)
for name, outcome in outcomes.items():
    zeros = f"{outcome.zeros:.0%} of the gradients 0 at the end"
    print(f"{name:>28}: loss {outcome.final:5.2f}, {outcome.skipped} skipped, {zeros}")

# %% [markdown]
# Without a scale many gradients are 0 that should not be. (Some are 0 in every run: a character that the batch does
# not have moves nothing in its embedding.) Nearly all others have lost digits, since float16 has fewer of them near
# its end; the cell with the two walls counts them. Adam makes it worse: it divides each gradient by its own average
# size, so what is nearly always 0 and now and then the smallest number of float16 becomes a huge step. With a dynamic
# scale (it began far too high, at 2³⁶, and skipped the steps that the table shows) float16 soon cannot be told apart
# from float32.
#
# Without a master copy bfloat16 hardly learns at a low rate: beside a weight of 0.1 its next number is 0.0005 away,
# and Adam's steps have a length of 0.0001. float16, with three more bits, loses only a little **here**. With a rate
# that falls further, as every schedule of chapter 11 does, it is next.

# %% [markdown]
# ### Claim on trial: half the memory
#
# Document B: mixed precision "reduces memory usage by ≈50%". Memory holds two kinds of things: a **state** for every
# parameter (the weight, its gradient, and what the optimizer keeps) and the **activations** of the current batch.
#
# ### Predict first: bytes of a parameter
#
# With Adam in float32 one parameter costs 4 (weight) + 4 (gradient) + 8 (two averages) = 16 bytes. How many does it
# cost in mixed precision, with float16 weights and gradients and a float32 master copy?

# %%
my_prediction = None  # bytes


def state_in_bytes(model: nn.Module, mixed: bool) -> int:
    """Take one real float32 step with Adam, count the bytes of what stays, and for mixed precision add the copies."""
    trained = copy.deepcopy(model)
    weights = list(trained.parameters())
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    optimizer = torch.optim.Adam(weights)
    optimizer.step()
    kept = list(weights)
    for state in optimizer.state.values():
        kept += [state["exp_avg"], state["exp_avg_sq"]]
    if mixed:
        halves = [weight.detach().half() for weight in weights]
        kept += halves + [torch.zeros_like(half) for half in halves]  # and their gradients
    else:
        kept += [weight.grad for weight in weights]
    return sum(tensor.nbytes for tensor in kept)


block = TransformerBlock(d_model=128, num_heads=4, d_ff=512, norm_first=True)
count = counted_parameters(block)
kinds = {"float32": False, "mixed": True}
per_parameter = {kind: state_in_bytes(block, mixed) / count for kind, mixed in kinds.items()}
for kind, size in per_parameter.items():
    print(f"{kind:>8}: {size:.2f} bytes per parameter")
reveal(my_prediction, per_parameter["mixed"])

# %% [markdown]
# 2 + 2 for weight and gradient, 4 for the master copy, 8 for the averages: 16 again. What was saved on the copies was
# spent on the master. What about activations? The next cell counts what autograd keeps, in float32 and under
# PyTorch's `autocast`, which runs products in bfloat16 and leaves the residual path and its norms in float32.


# %%
def kept_by_autograd(batch: int, sequence: int, mixed: bool) -> int:
    """Count the bytes that one forward pass through the block keeps."""
    x = torch.randn(batch, sequence, 128)
    with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
        return memory.saved_bytes(block, x)


ratios = {}
for batch, sequence in ((1, 16), (1, 256), (16, 256)):
    acts = {mixed: kept_by_autograd(batch, sequence, mixed) for mixed in (False, True)}
    states = {mixed: per_parameter[kind] * count for kind, mixed in kinds.items()}
    total = (states[True] + acts[True]) / (states[False] + acts[False])
    name = f"{batch} × {sequence} tokens"
    ratios[name] = total
    print(f"{name:>21}: activations × {acts[True] / acts[False]:.2f}, everything × {total:.2f}")

many = 64, 256, 128
counted = {}
for dtype in (torch.float32, torch.bfloat16):
    pure = activation_memory.dropout_stack(128, 4, 1, dtype)
    x = torch.empty(many, dtype=dtype, device="meta")
    forward = partial(activation_memory.run_stack, pure)
    counted[dtype] = activation_memory.counted_activation_bytes(forward, x)[0]
name = "64 × 256 all bfloat16"
states = {kind: size * count for kind, size in per_parameter.items()}
ratios[name] = (states["mixed"] + counted[torch.bfloat16]) / (
    states["float32"] + counted[torch.float32]
)
share = counted[torch.bfloat16] / counted[torch.float32]
print(f"{name:>21}: activations × {share:.2f}, everything × {ratios[name]:.2f}")
print()
halved = {"states": per_parameter["mixed"] / per_parameter["float32"] < 0.6}
halved |= {name: ratio < 0.6 for name, ratio in ratios.items()}
verdict("mixed precision halves the memory of training", halved, depends_on="what fills the memory")

# %% [markdown]
# The states are not smaller at all. With few tokens autocast even needs more, since it keeps bfloat16 copies of the
# weights; with many, the residual path stays in float32, and activations fall by a little less than half. Only if
# **all** activations are in bfloat16 **and** fill the memory does the total come near a half. That is what the source
# of the claim says: Micikevicius et al. 2018 found memory "roughly halved" because activations dominated. For inference
# it is plainly true: without gradients, averages and master copy, 2 bytes of 4 are left.
#
# ### Claim on trial: 1.5 to 3 times as fast
#
# "…and increases throughput by 1.5–3× on Tensor Cores." Without a GPU we can still say what **can** be gained, by the
# roofline of chapter 7. The machine is an NVIDIA A100 by its data sheet: 312 · 10¹² FLOPs per second for half
# precision on Tensor Cores, 156 for TF32 (float32 tensors with products of 10-bit mantissas), 19.5 for plain float32;
# 1.555 · 10¹² bytes per second.

# %%
BANDWIDTH = 1.555e12
HALF_PEAK, TF32_PEAK, FLOAT32_PEAK = 312e12, 156e12, 19.5e12


def best_gain(work, peak: float) -> float:
    """Compare the best times of one computation in half precision and in float32 of some peak."""
    seconds = []
    for itemsize, limit in ((4, peak), (2, HALF_PEAK)):
        flops, moved = work(itemsize)
        reached = roofline.attainable_flops(flops / moved, limit, BANDWIDTH)
        seconds.append(flops / reached)
    return seconds[0] / seconds[1]


def product(rows: int, inner: int, columns: int):
    """Describe a matrix product by its FLOPs and bytes, for numbers of a given size."""

    def work(itemsize: int) -> tuple[int, int]:
        found = roofline.product_work(rows, inner, columns, itemsize=itemsize)
        return found.flops, found.bytes_moved

    return work


works = {
    "4096² by 4096²": product(4096, 4096, 4096),
    "one token by 4096²": product(1, 4096, 4096),
    "256 tokens by 512²": product(256, 512, 512),
    # About 10 FLOPs for each number; two are read, one is written.
    "add and normalize": lambda itemsize: (10 * 4096 * 4096, 3 * itemsize * 4096 * 4096),
    # Float32 in both cases: four numbers of each parameter are read, three are written.
    "Adam's step": lambda itemsize: (12 * 10**8, 28 * 10**8),
}
inside = {}
print(f"{'at best':>20}{'against TF32':>15}{'against float32':>17}")
for name, work in works.items():
    gains = {"TF32": best_gain(work, TF32_PEAK), "float32": best_gain(work, FLOAT32_PEAK)}
    for baseline, gain in gains.items():
        inside[f"{name} against {baseline}"] = 1.5 <= gain <= 3
    print(f"{name:>20}{gains['TF32']:>15.1f}{gains['float32']:>17.1f}")
print()
short = {"Adam's step": inside["Adam's step against TF32"]}
for baseline in ("TF32", "float32"):
    of_this = [inside[f"{name} against {baseline}"] for name in works if name != "Adam's step"]
    short[f"{baseline} as the baseline"] = all(of_this)
verdict("half precision is 1.5 to 3 times as fast", short, depends_on="baseline and operation")

# %% [markdown]
# Half the bytes make twice the speed wherever bytes decide: with one token, and in norms. Where FLOPs decide, the
# gain is the ratio of two peaks: 2 against TF32, 16 against plain float32. The optimizer gains nothing, since its
# numbers stay in float32. A whole training step is a mixture, so "1.5 to 3" is a fair summary of measurements against
# TF32 or on older cards with small models, and not a law. On this CPU bfloat16 may well be slower; that says nothing
# of a GPU.
#
# ## Fewer, larger operations
#
# Document B's next advice is fusion: one operation in place of many. It calls this fusion:
#
# ```python
# qkv = torch.matmul(x, torch.cat([W_q, W_k, W_v], dim=-1))
# q, k, v = torch.split(qkv, d_model, dim=-1)
# ```
#
# ### Claim on trial: "after fusion: a single op"
#
# We run it three ways for one token, and count products, and the bytes of new tensors. (Chapter 2 measured its
# seconds.)

# %%
width = 512
x = torch.randn(1, width)
w_q, w_k, w_v = (torch.randn(width, width) for _ in range(3))
kept_together = torch.cat([w_q, w_k, w_v], dim=-1)
ways = {
    "three products": lambda: (x @ w_q, x @ w_k, x @ w_v),
    "concatenated in the pass": lambda: (x @ torch.cat([w_q, w_k, w_v], -1)).split(width, -1),
    "concatenated once": lambda: (x @ kept_together).split(width, -1),
}
single = {}
for name, way in ways.items():
    ran = compiled.operations(lambda way=way: torch.cat(way(), -1))[:-1]
    made = memory.peak_bytes(way).bytes
    if name != "three products":  # which is before the fusion
        single[name] = len(ran) == 1
    print(f"{name:>25}: {', '.join(ran)}; {memory.bytes_text(made)} of new tensors")
print()
verdict("a single operation is left", single, depends_on="when the weights are joined")

# %% [markdown]
# As written, the concatenation runs in every pass and copies all three matrices: 3 MiB moved to project one token.
# Join the weights **once**, when the layer is built, and there is one product and 6 KiB. (`split(…, d_model)` also
# breaks as soon as keys and values are narrower, as in grouped-query attention.) Even then it is one larger product
# and not yet what compilers call fusion.
#
# **Kernel fusion** means that one routine (a kernel) reads its inputs once, keeps what comes in between in registers,
# and writes once. Take the end of a feed-forward network. PyTorch runs it as a row of operations, each of which reads
# and writes the whole tensor:


# %%
def tail(x: Tensor, bias: Tensor, gain: Tensor, residual: Tensor) -> Tensor:
    """Add the bias, activate, scale, and add the residual."""
    return residual + F.gelu(x + bias) * gain


torch.manual_seed(0)
tensors = torch.randn(128, 512), torch.randn(512), torch.randn(512), torch.randn(128, 512)
one_by_one = compiled.operations(tail, *tensors)
print(f"one by one: {len(one_by_one)} operations: {', '.join(one_by_one)}")
ready = compiled.fused(tail, *tensors)
if ready is not None:
    error = (ready.result - tail(*tensors)).abs().max().item()
    print(f"compiled:   {ready.kernels} kernel, largest difference {error:.1e}")
size = 128 * 512 * 4
apart, together = (2 + 2 + 2 + 3) * size, 3 * size
print(f"bytes moved: {memory.bytes_text(apart)} apart, {memory.bytes_text(together)} fused")

# %% [markdown]
# The four operations move the tensor nine times (each reads one or two and writes one), a fused kernel three times.
# Such work is bound by bytes, so that is a factor of three at best. `torch.compile` finds such chains by itself.
# Compiling takes seconds, and again for every new shape, so it pays for work that is repeated.
#
# > **Paper and practice: the lost list.** Document B announces "additional optimizations" and the list is missing. It
# > will have named these: `torch.compile`; fused kernels for bias and GELU, for dropout, addition and norm, and for
# > the softmax with its mask; FlashAttention (chapter 8), a fusion over the whole of attention; fused optimizers
# > (`AdamW(fused=True)`), which step on all parameters in one kernel; CUDA graphs, which replay hundreds of launches
# > as one; removing padding, so that no FLOP is spent on it (chapter 6); and a KV cache for generation (chapter 8).
#
# ## What waits for the backward pass
#
# Parameters are known before training starts. Activations are what ends a run with "out of memory".

# %% [markdown] exercise="activation_bytes" role="header" minutes=8 lines=4 difficulty=2
# ## Exercise: bytes of activations
#
# Count what a stack keeps between its forward and its backward pass, with and without checkpointing.
#
# **Why it matters.** For a long sequence this is more than everything else together. **Checkpointing** keeps the
# input of each layer and throws the rest away; the backward pass computes it again, layer by layer, when it is
# needed.
#
# **Contract.** Without checkpointing each layer keeps
# $b \cdot n \cdot d \cdot (34 + 5\, h\, n / d)$ bytes at 2 bytes a number (b sequences of n tokens, width d, h heads;
# Korthikanti et al. 2022), scaled by `itemsize / 2`. With `checkpointing=True` each layer keeps its input alone,
# b · n · d numbers of `itemsize` bytes. Return a number.
#
# <details><summary>Hint 1: the idea</summary>
#
# Two formulas, and both are per layer. In one of them the bytes are inside the constants already.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# d · (34 + 5 h n / d) is 34 d + 5 h n, which needs no division.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# layers · b · n · (34 d + 5 h n) · itemsize / 2, or layers · b · n · d · itemsize.
#
# </details>


# %% exercise="activation_bytes" role="answer"
def activation_bytes(
    batch: int,
    sequence: int,
    d_model: int,
    heads: int,
    layers: int,
    checkpointing: bool = False,
    itemsize: int = 2,
) -> float:
    """Count the bytes of the activations that a stack keeps."""
    # BEGIN SOLUTION
    tokens = batch * sequence
    if checkpointing:
        return layers * tokens * d_model * itemsize
    of_one_token = 34 * d_model + 5 * heads * sequence
    return layers * tokens * of_one_token * itemsize / 2
    # END SOLUTION


# %% exercise="activation_bytes" role="test" points=1
from autograder import check

check(activation_bytes)

# %% exercise="activation_bytes" role="hidden test" points=2
from autograder import check

check(activation_bytes, hidden=True)

# %% [markdown]
# ### Counted
#
# A formula with a 34 in it should not be believed unseen. Here is a real stack in bfloat16 with dropout in three
# places, on the meta device, where tensors take no memory and so any size can be counted. Every allocation is
# followed, through the forward and the backward pass, plain and with `torch.utils.checkpoint`:

# %%
batch, n, d_model, heads, depth = 4, 512, 768, 12, 12
stack = activation_memory.dropout_stack(d_model, heads, depth)
x = torch.empty(batch, n, d_model, dtype=torch.bfloat16, device="meta")
groups = {"keep everything": None, "checkpoint every layer": 1, "every 3 layers": 3, "every 6": 6}
kept, peaks, work = {}, {}, {}
for name, every in groups.items():
    forward = partial(activation_memory.run_stack, stack, every=every)
    kept[name], peaks[name] = activation_memory.counted_activation_bytes(forward, x)

    def both_passes(given: Tensor, forward=forward) -> None:
        forward(given.clone().requires_grad_()).sum().backward()

    work[name] = counted_flops(both_passes, x)
formula = activation_memory.activation_bytes(batch, n, d_model, heads, depth)
saving = activation_memory.activation_bytes(batch, n, d_model, heads, depth, checkpointing=True)
plain, every_layer = "keep everything", "checkpoint every layer"
for name, expected in ((plain, formula), (every_layer, saving)):
    print(f"{name:>22}: formula {expected / 1e6:7.1f} MB, counted {kept[name] / 1e6:7.1f} MB")
print(f"with a checkpoint at every layer: {work[every_layer] / work[plain]:.3f} times the FLOPs")

left, right = plots.panels(2, width=4.4)
labels = dict(zip(groups, ("none", "1 layer", "3 layers", "6 layers"), strict=True))
plots.bar_plot(
    {labels[name]: size / 1e6 for name, size in kept.items()},
    ylabel="MB kept between the passes",
    title="Kept, by layers per checkpoint",
    ax=left,
    digits=4,
)
plots.bar_plot(
    {labels[name]: size / 1e6 for name, size in peaks.items()},
    ylabel="MB at the peak",
    title="The peak of both passes",
    ax=right,
    digits=4,
)
plots.show(left)

# %% [markdown]
# The formula leaves out the norms' means and deviations and nothing else. Checkpointing turns 116 MB a layer into 3,
# and costs one more forward pass: 4 where there were 3 (the backward pass counts two), so a third more. What is
# **kept** falls further when several layers share a checkpoint; the **peak** does not, since a whole group is alive
# while it is computed again. (The peak holds the gradients of the parameters too, 2 bytes each.) Chen et al. 2016
# balance both: about √L layers to a group.
#
# > **Paper and practice: other ways to fit.** Smaller batches help, when their gradients are added up (**gradient
# > accumulation**). It is exact if the loss is divided by the tokens of **all** pieces, and a frequent bug if each
# > piece takes its own mean: the next cell shows both. States can be kept in 8 bits, or sharded (ZeRO, FSDP), so that
# > each data-parallel device keeps a part of the 16 bytes. A model can have a narrower d_ff, fewer heads of keys and
# > values (chapter 2), layers that share weights (ALBERT), or fewer layers of more width. "Selective" checkpointing
# > recomputes the maps alone, the 5·h·n/d, for a few percent more FLOPs.

# %%
torch.manual_seed(0)
linear = nn.Linear(6, 4)
tokens, labels_of = torch.randn(10, 6), torch.randint(0, 4, (10,))
whole = torch.autograd.grad(F.cross_entropy(linear(tokens), labels_of), linear.weight)[0]
sizes = [7, 3]  # two pieces of unequal length
by_all = by_own = torch.zeros_like(whole)
for piece, target in zip(tokens.split(sizes), labels_of.split(sizes), strict=True):
    total = F.cross_entropy(linear(piece), target, reduction="sum")
    by_all = by_all + torch.autograd.grad(total / 10, linear.weight, retain_graph=True)[0]
    by_own = by_own + torch.autograd.grad(total / len(piece) / 2, linear.weight)[0]
print(f"divided by all tokens:       off by {(by_all - whole).abs().max().item():.0e}")
print(f"by the tokens of each piece: off by {(by_own - whole).abs().max().item():.0e}")

# %% [markdown]
# ## Many devices
#
# Document B has a table of three strategies. Here it is with a fourth row, and with what is sent, which the rest of
# the chapter counts:
#
# | parallel | what is shared | what is sent | best for |
# |---|---|---|---|
# | data | the batch | gradients: all-reduce | nearly always, first |
# | tensor | every layer | activations: all-reduce | one machine, fast links |
# | pipeline | the stack of layers | activations: point to point | between machines |
# | expert | experts of sparse layers | tokens: all-to-all | sparse models |
#
# An **all-reduce** gives every device the sum of what all of them have. An **all-to-all** sends a different part from
# each device to each other one.

# %% [markdown] exercise="column_parallel" role="header" minutes=8 lines=3 difficulty=2
# ## Exercise: share the columns
#
# Cut a weight into blocks of columns, one per device; each device makes its own features of the output.
#
# **Why it matters.** Attention is made for it: columns of the projections are heads, so every device gets some heads
# and needs no one else's.
#
# **Contract.** `x` is `(..., d_in)` and every device has all of it; `weight` is `(d_in, d_out)`. Return a list with
# one output `(..., d_out / shards)` per device; side by side they are `x @ weight`. No tensor with all d_out features
# may be made. If `shards` does not divide d_out raise a `ValueError`.
#
# <details><summary>Hint 1: the idea</summary>
#
# Column j of the output needs column j of the weight and nothing else.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `weight.chunk(shards, dim=1)` gives contiguous blocks.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# One product per block, in a list.
#
# </details>


# %% exercise="column_parallel" role="answer"
def column_parallel(
    x: Float[Tensor, "*batch d_in"], weight: Float[Tensor, "d_in d_out"], shards: int
) -> list[Float[Tensor, "*batch shard"]]:
    """Multiply by blocks of columns, one per device."""
    # BEGIN SOLUTION
    if weight.shape[1] % shards:
        raise ValueError(f"shards={shards} does not divide {weight.shape[1]} columns")
    return [x @ block_of_columns for block_of_columns in weight.chunk(shards, dim=1)]
    # END SOLUTION


# %% exercise="column_parallel" role="test" points=1
from autograder import check

check(column_parallel)

# %% exercise="column_parallel" role="hidden test" points=2
from autograder import check

check(column_parallel, hidden=True)

# %% [markdown] exercise="row_parallel" role="header" minutes=8 lines=2 difficulty=2
# ## Exercise: share the rows
#
# The second layer takes the features where they are: device i has block i of the features, and the rows that belong
# to it.
#
# **Why it matters.** Columns, then an activation, then rows: a whole feed-forward network with **one** sum. This pair
# is Megatron's idea, and many large models are trained with it.
#
# **Contract.** `xs` is a list of features, `(..., d_in / shards)` each, in the order of the devices; `weight` is
# `(d_in, d_out)`. `all_reduce` takes a list with one tensor per device and returns their sum; call it once. Return
# that sum. The features must not be gathered in one place.
#
# <details><summary>Hint 1: the idea</summary>
#
# Write a product of a row and a matrix as a sum over d_in, and cut the sum into blocks.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `weight.chunk(len(xs), dim=0)`, and `zip` with the features.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# A list of partial products, of the output's full shape each; hand the list to `all_reduce`.
#
# </details>


# %% exercise="row_parallel" role="answer"
def row_parallel(
    xs: list[Tensor],
    weight: Float[Tensor, "d_in d_out"],
    all_reduce: Callable[[list[Tensor]], Tensor],
) -> Float[Tensor, "*batch d_out"]:
    """Multiply features by the rows that belong to them, and sum over devices."""
    # BEGIN SOLUTION
    pairs = zip(xs, weight.chunk(len(xs), dim=0), strict=True)
    return all_reduce([features @ own_rows for features, own_rows in pairs])
    # END SOLUTION


# %% exercise="row_parallel" role="test" points=1
from autograder import check

check(row_parallel)

# %% exercise="row_parallel" role="hidden test" points=2
from autograder import check

check(row_parallel, hidden=True)

# %% [markdown]
# The order matters. Rows first, and the activation would see a part of a sum:

# %%
torch.manual_seed(0)
x, w_1, w_2 = torch.randn(5, 8), torch.randn(8, 12), torch.randn(12, 8)
true = F.gelu(x @ w_1) @ w_2
hidden = [F.gelu(part) for part in parallel.column_parallel(x, w_1, 2)]
columns_first = parallel.row_parallel(hidden, w_2, parallel.all_reduce)
halves = zip(x.chunk(2, -1), w_1.chunk(2, 0), strict=True)
rows_first = sum(F.gelu(part @ rows) for part, rows in halves) @ w_2
print(f"columns, then rows: off by {(columns_first - true).abs().max():.0e}")
print(f"rows, then GELU:    off by {(rows_first - true).abs().max():.1f}")

# %% [markdown]
# ### On two real processes
#
# Now for real. The next cell starts two Python processes that talk through `torch.distributed` (the backend gloo,
# over this machine's own network). Each gets half of the columns and half of the rows, runs the network forward and
# backward, and stops. It does so for batches of 1, 2 and 4 sequences and for two widths of d_ff, and the operating
# system tells how many bytes arrived on each process's connections.
#
# Compare the forward and the backward pass with the exercise: where is the second all-reduce? (In the backward pass
# every device knows only its own features' part of the gradient of `x`.)

# %%
torch.manual_seed(0)
SEQUENCE, WIDTH = 256, 64
calls = []
for batch, d_ff in ((1, 256), (2, 256), (4, 256), (4, 64)):
    sizes = (batch, SEQUENCE, WIDTH), (WIDTH, d_ff), (d_ff, WIDTH)
    calls.append(tuple(torch.randn(size) / 8 for size in sizes))
ran = on_processes(2, parallel_layers.in_turn, parallel_layers.tensor_parallel_ffn, calls)
traffic = []
if ran is not None:
    for number, call in enumerate(calls):
        output, gradients = parallel_layers.in_one_process("ffn", *call)
        first, second = ran[0][number], ran[1][number]
        torch.testing.assert_close(first.output, output)
        torch.testing.assert_close(second.gradients["x"], gradients["x"])
        joined = torch.cat([first.gradients["w_1"], second.gradients["w_1"]], dim=1)
        torch.testing.assert_close(joined, gradients["w_1"])
        batch, d_ff = len(call[0]), call[1].shape[1]
        ring = parallel.ring_all_reduce_bytes(call[0].nbytes, 2)
        traffic.append((batch, d_ff, first.calls["all_reduce"], 2 * ring, first.received))
    print("two processes and one agree, in outputs and in gradients\n")
    print(f"{'batch':>5}{'d_ff':>6}{'all-reduces':>13}{'ring formula':>14}{'bytes arrived':>15}")
    for batch, d_ff, reduces, ring, arrived in traffic:
        seen = f"{arrived:,}" if arrived else "unknown"
        print(f"{batch:>5}{d_ff:>6}{reduces:>13}{ring:>14,.0f}{seen:>15}")

# %% [markdown]
# ### Claim on trial: the cost of communication
#
# Document B: "The communication overhead for tensor parallelism in a linear layer is T = α + 2 (d_in + d_out) / β",
# with latency α and bandwidth β. There is no batch in it, no sequence, no number of devices and no size of a number.
# Let us see what the bytes depend on. If the operating system did not tell, the tensors handed to the all-reduce
# decide.

# %%
depends = {}
if traffic:
    sent = {(batch, d_ff): arrived or ring for batch, d_ff, _, ring, arrived in traffic}
    depends = {
        "twice the batch": abs(sent[2, 256] / sent[1, 256] - 1) < 0.1,
        "four times the batch": abs(sent[4, 256] / sent[1, 256] - 1) < 0.1,
        "a quarter of d_ff": abs(sent[4, 64] / sent[4, 256] - 1) > 0.1,
    }
    said = 2 * (WIDTH + 256)
    print(f"document B, read as numbers of 4 bytes: {4 * said:,} bytes")
    print(f"arrived, one sequence, both passes:     {sent[1, 256]:,.0f} bytes\n")
    verdict("traffic depends on d_in, d_out and nothing else", depends, depends_on="what changes")
else:
    print("No process ran, so no byte arrived; the ring formula below stands unmeasured here.")

# %% [markdown]
# Traffic follows the batch exactly and d_ff not at all: what travels is the layer's **output**, b · n · d_model
# numbers, once in each pass. d_ff lies inside, between columns and rows, and never leaves its device. The right
# formula is the all-reduce of that tensor:
#
# $$T = 2\,(p - 1)\left(\alpha + \frac{b\, n\, d_\text{model} \cdot \text{itemsize}}{p\,\beta}\right)$$
#
# Where does it come from? Put the devices in a ring and cut the tensor into p pieces. In p − 1 rounds every device
# sends one piece to its neighbor, who adds its own: then each has one finished piece. In p − 1 more rounds the
# finished pieces go around.

# %% [markdown] exercise="ring_all_reduce_seconds" role="header" minutes=6 lines=2 difficulty=2
# ## Exercise: seconds of an all-reduce
#
# Estimate how long it takes around a ring.
#
# **Why it matters.** It says what to share over which network: an all-reduce of activations in every layer needs the
# links inside one machine; one of gradients per step can go through a slower one.
#
# **Contract.** 2 (p − 1) rounds, one after another. Each takes `latency` seconds and then sends `num_bytes / p` bytes
# at `bandwidth` bytes per second. One worker alone takes no time. Return a number.
#
# <details><summary>Hint 1: the idea</summary>
#
# How long does one round take, and how many are there?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# All devices send at the same time, so the bytes of one device decide.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# Rounds times (latency plus a piece over the bandwidth).
#
# </details>


# %% exercise="ring_all_reduce_seconds" role="answer"
def ring_all_reduce_seconds(
    num_bytes: float,
    workers: int,
    latency: float,
    bandwidth: float,
) -> float:
    """Estimate the seconds of an all-reduce around a ring."""
    # BEGIN SOLUTION
    rounds, piece = 2 * (workers - 1), num_bytes / workers
    return rounds * (latency + piece / bandwidth)
    # END SOLUTION


# %% exercise="ring_all_reduce_seconds" role="test" points=1
from autograder import check

check(ring_all_reduce_seconds)

# %% exercise="ring_all_reduce_seconds" role="hidden test" points=1
from autograder import check

check(ring_all_reduce_seconds, hidden=True)

# %%
workers = [2, 4, 8, 16, 32, 64]
plots.show(
    plots.line_plot(
        workers,
        {
            name: [1e3 * parallel.ring_all_reduce_seconds(size, p, 1e-5, 25e9) for p in workers]
            for name, size in (("1 MB", 1e6), ("10 MB", 1e7), ("100 MB", 1e8))
        },
        xlabel="devices in the ring",
        ylabel="milliseconds",
        title="An all-reduce: 25 GB per second, latency 10 µs",
        log_x=True,
        log_y=True,
    )
)

# %% [markdown]
# For large tensors the time at most doubles from 2 devices on, plus latency, since 2 (p − 1) / p grows from 1 to below
# 2. For small ones latency is soon nearly all there is, and it grows with every device.
#
# > **Paper and practice: not only rings.** Libraries choose between rings and trees by size and network. An
# > all-reduce is also a **reduce-scatter** followed by an **all-gather**, and one can do something useful between the
# > two: sequence parallelism splits the norms and dropouts there, and ZeRO updates each device's part of the weights.

# %% [markdown]
# ## Stages
#
# A pipeline gives each device some of the layers. What travels is one activation per boundary, and its gradient on
# the way back. The price is waiting: while stage 0 works on a batch, all the others have nothing to do. So the batch
# is cut into **microbatches** that follow one another.
#
# ### Predict first: the share of waiting
#
# 4 stages, 4 microbatches, one forward pass, every step equally long. Which share of the time does a stage wait?

# %%
my_prediction = None  # a share between 0 and 1

reveal(my_prediction, pipeline.bubble_fraction(stages=4, microbatches=4))

# %% [markdown] exercise="bubble_fraction" role="header" minutes=5 lines=1 difficulty=1
# ## Exercise: the bubble
#
# Give the share of the time in which a stage waits.
#
# **Why it matters.** It says how many microbatches a pipeline needs: with four for every stage, it waits less
# than a fifth of the time.
#
# **Contract.** The waiting ticks of one stage over all ticks, until the last microbatch has left the last stage.
# Every stage takes one tick for a microbatch. Return a number between 0 and 1. (Some papers divide by the ideal time
# instead.)
#
# <details><summary>Hint 1: the idea</summary>
#
# Draw three rows and four microbatches. When does the last one leave?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# The last stage starts after s − 1 ticks and then works m ticks without a pause.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# s − 1 waiting ticks, of m + s − 1.
#
# </details>


# %% exercise="bubble_fraction" role="answer"
def bubble_fraction(stages: int, microbatches: int) -> float:
    """Give the share of the time in which a stage of a pipeline waits."""
    # BEGIN SOLUTION
    waiting = stages - 1
    return waiting / (waiting + microbatches)
    # END SOLUTION


# %% exercise="bubble_fraction" role="test" points=1
from autograder import check

check(bubble_fraction)

# %% exercise="bubble_fraction" role="hidden test" points=1
from autograder import check

check(bubble_fraction, hidden=True)

# %% [markdown] exercise="pipeline_schedule" role="header" minutes=8 lines=4 difficulty=2
# ## Exercise: a schedule
#
# List who works on what, tick by tick, in a forward pass.
#
# **Why it matters.** A schedule is a plan that can be checked before any device runs. The real ones (GPipe, 1F1B,
# interleaved) are lists like this one.
#
# **Contract.** A list of ticks; a tick is a list of pairs `(stage, microbatch)`, in any order. Stages, microbatches
# and ticks count from zero. A stage does one thing at a time, and can take a microbatch when the stage before has
# finished it in an **earlier** tick. Every stage works on every microbatch once; no schedule may be shorter than
# yours, and no tick empty.
#
# <details><summary>Hint 1: the idea</summary>
#
# In which tick does stage s work on microbatch 0? And on microbatch 1?
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# Stage s works on microbatch m in tick s + m. So in tick t, stage s has microbatch t − s, if there is one.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# For each tick of m + s − 1, go through the stages and keep those whose microbatch lies between 0 and m − 1.
#
# </details>


# %% exercise="pipeline_schedule" role="answer"
def pipeline_schedule(stages: int, microbatches: int) -> list[list[tuple[int, int]]]:
    """List the work of every tick of a forward pass."""
    # BEGIN SOLUTION
    ticks = [[] for _ in range(stages + microbatches - 1)]
    for stage in range(stages):
        for microbatch in range(microbatches):
            ticks[stage + microbatch].append((stage, microbatch))
    return ticks
    # END SOLUTION


# %% exercise="pipeline_schedule" role="test" points=1
from autograder import check

check(pipeline_schedule)

# %% exercise="pipeline_schedule" role="hidden test" points=2
from autograder import check

check(pipeline_schedule, hidden=True)

# %%
for microbatches in (2, 8):
    ticks = pipeline.pipeline_schedule(4, microbatches)
    schedule_plot.show_schedule(ticks, 4, f"4 stages, {microbatches} microbatches")
    print(f"waiting: {pipeline.bubble_fraction(4, microbatches):.0%}")

# %% [markdown]
# ### On two real processes
#
# Two stages, three microbatches. Process 0 has the first layer, process 1 the second. All forward passes go first,
# then all backward passes.

# %%
torch.manual_seed(0)
x = torch.randn(6, 64, 32)
stages = [(torch.randn(32, 64) / 6, torch.randn(64, 32) / 8) for _ in range(2)]
ran = on_processes(2, parallel_layers.pipeline_parallel, x, stages, 3)
if ran is not None:
    output, gradients = parallel_layers.in_one_process("pipeline", x, stages)
    torch.testing.assert_close(ran[1].output, output)
    torch.testing.assert_close(ran[0].gradients["x"], gradients["x"])
    print("two stages and one process agree, in outputs and in gradients\n")
    for rank, report in enumerate(ran):
        way = "activations on" if rank == 0 else "gradients back"
        letters = f"{report.calls['send']} messages of {report.tensor_bytes['send'] // 3:,} bytes"
        arrived = "unknown" if report.received is None else f"{report.received:,}"
        print(f"process {rank} sends {letters} ({way}); bytes arrived: {arrived}")
    print(f"the tokens at the boundary: {x.nbytes:,} bytes, however many microbatches")

# %% [markdown]
# > **Paper and practice: schedules.** All forward, then all backward (GPipe) is easy, and every stage keeps the
# > activations of all microbatches. 1F1B starts the first backward pass as early as it can, so a stage keeps at most
# > as many microbatches as there are stages, with the same bubble. Interleaving gives each device several small
# > stages: less waiting, more messages.

# %% [markdown]
# ## Experts
#
# A Switch layer (chapter 9) sends every token to one of several networks. On many devices each expert lives on one of
# them, and the tokens travel. Before they do, those of one expert are put side by side, so that one message carries
# them.

# %% [markdown] exercise="expert_dispatch" role="header" minutes=10 lines=4 difficulty=3
# ## Exercise: dispatch
#
# Group tokens by their expert, and remember how to bring the results back.
#
# **Why it matters.** The way back is where such code goes wrong: a wrong index still gives every token **some**
# result, with the right shape, and the loss still falls.
#
# **Contract.** `x` is `(tokens, d_model)`, `expert_index` holds each token's expert. Return `(grouped, restore)`:
# `grouped` has the same rows, those of expert 0 first, then expert 1, and so on (in any order inside a group);
# `restore` is an int64 index with `grouped[restore] == x`.
#
# <details><summary>Hint 1: the idea</summary>
#
# Sorting the tokens by expert groups them. What you need besides the sorted tokens is where each one went.
#
# </details>
# <details><summary>Hint 2: the tool</summary>
#
# `torch.argsort(expert_index)` says for every place in `grouped` which token stands there. You need the opposite: for
# every token its place.
#
# </details>
# <details><summary>Hint 3: nearly there</summary>
#
# The inverse of a permutation is its own argsort; or write 0, 1, 2, … into `restore[order]`.
#
# </details>


# %% exercise="expert_dispatch" role="answer"
def expert_dispatch(
    x: Float[Tensor, "tokens d_model"], expert_index: Int[Tensor, " tokens"], num_experts: int
) -> tuple[Float[Tensor, "tokens d_model"], Int[Tensor, " tokens"]]:
    """Group tokens by expert, and tell how to bring them back."""
    # BEGIN SOLUTION
    sources = expert_index.argsort(stable=True)
    return x[sources], sources.argsort()
    # END SOLUTION


# %% exercise="expert_dispatch" role="test" points=1
from autograder import check

check(expert_dispatch)

# %% exercise="expert_dispatch" role="hidden test" points=2
from autograder import check

check(expert_dispatch, hidden=True)

# %% [markdown]
# ### On two real processes
#
# 600 tokens, four experts. Process 0 has tokens 0 to 299 and the experts 0 and 1, process 1 the rest. They first tell
# each other how many tokens will come, then send the tokens, then the results. Two choices of experts: an even one,
# and one in which expert 0 gets most of the tokens.

# %%
torch.manual_seed(0)
tokens = torch.randn(600, 32)
experts = [(torch.randn(32, 64) / 6, torch.randn(64, 32) / 8) for _ in range(4)]
choices = {
    "even": torch.arange(600) % 4,
    "uneven": torch.where(torch.rand(600) < 0.7, 0, torch.randint(0, 4, (600,))),
}
calls = [(tokens, chosen, experts) for chosen in choices.values()]
ran = on_processes(2, parallel_layers.in_turn, parallel_layers.expert_parallel, calls)
if ran is not None:
    for number, (name, chosen) in enumerate(choices.items()):
        output, _ = parallel_layers.in_one_process("experts", tokens, chosen, experts)
        both = [reports[number] for reports in ran]
        torch.testing.assert_close(torch.cat([report.output for report in both]), output)
        work = [int((chosen // 2 == rank).sum()) for rank in range(2)]
        away = [int((chosen[:300] >= 2).sum()), int((chosen[300:] < 2).sum())]
        formula = sum(away) * 32 * 4  # those that come in, and the results that come back
        arrived = "unknown" if both[0].received is None else f"{both[0].received:,}"
        print(f"{name}: tokens computed {work[0]} and {work[1]}; {sum(away)} of 600 traveled")
        print(f"  formula {formula:,} bytes in, arrived {arrived}")
    print("two processes and one agree")

# %% [markdown]
# The layer is correct either way, but with the uneven choice one process computes several times as much as the other,
# and everyone waits for it. That is why the balance loss of chapter 9 exists, and why a capacity cuts off what is too
# much.
#
# ## Explore: a model on N devices
#
# The first bar is what the fullest device holds, the second what it sends in one step, the third how long a pipeline
# stage waits. A million tokens a step; expert parallel gives every block as many experts as there are devices for
# them. Things to try:
#
# 1. The smallest model on one device without checkpointing: which part fills the memory? Find the one setting
#    that makes it fit, and then see what checkpointing adds.
# 2. More data parallel: what falls, and what stays? (The states do not. ZeRO would split them.)
# 3. Tensor parallel 8 against 16: what happens to the traffic? It passes the fast links inside one machine; those
#    rarely join more than 8 devices.
# 4. Pipeline 8 with 1, 8 and 64 microbatches: which two bars move, and which does not?
# 5. Fit the 175 billion into 80 GB. How many devices do you need at least?

# %%
planner()

# %% [markdown] exercise="plan_a_training" role="header" minutes=15
# ## Written question: plan a training
#
# A model of 40 blocks of width 5120 (12.6 billion parameters without embeddings) is to be trained with Adam, in mixed
# precision, on 8 machines of 8 GPUs of 80 GB. A sequence has 2,048 tokens. A colleague proposes data parallel over
# all 64 GPUs, "because mixed precision halves the memory anyway". What do you answer, and what do you propose? Give
# the bytes of the states, an estimate of the activations with and without checkpointing, what your layout sends in
# each step and over which links, and what you would measure first. The cell below is for your numbers.
#
# Your teacher looks for five things: the states; the activations; a layout that fits; its traffic; and a measurement.

# %%
# Room for your own numbers: what do these say about the model above?
layers, d_model, heads = 40, 5120, 40

# %% [markdown] exercise="plan_a_training" role="written" points=5
# **Model answer.** States: 16 bytes · 12.6 · 10⁹ = 201 GB, in mixed precision as in float32, because the master copy
# takes what the smaller weights save. Plain data parallel needs all of that on every GPU, so it cannot run, whatever
# the batch.
#
# Activations of one sequence: 40 · 2048 · (34 · 5120 + 5 · 40 · 2048) bytes = 47.8 GB; with checkpointing 40 · 2048 ·
# 5120 · 2 = 0.84 GB, plus one layer of 1.2 GB while it is computed again, for a third more FLOPs.
#
# Proposal: tensor parallel 8 inside each machine and data parallel 8 between machines. States: 201 / 8 = 25 GB a GPU.
# With checkpointing there is room for a microbatch of several sequences. Per sequence and layer the tensor-parallel
# group does 4 all-reduces (6 with checkpointing) of 2048 · 5120 · 2 = 21 MB: 40 · 6 · 21 MB · 2 · 7 / 8 = 8.8 GB sent
# by each GPU, over the machine's fast links. Between machines the gradients go once per step: 2 · 7 / 8 · 2 bytes ·
# 12.6 · 10⁹ / 8 = 5.5 GB, so the more sequences a step has, the less this counts. A pipeline of 2 stages, or ZeRO
# with data parallel 64, are good answers as well if their numbers are right.
#
# First I would measure one machine alone: the peak of memory with one microbatch, the seconds of a step with the
# all-reduces switched off and on, and the FLOPs per second reached against the peak.
#
# **Rubric** (one point each)
#
# 1. States: about 200 GB at 16 bytes per parameter, and mixed precision does not halve them.
# 2. Activations within 20 %, with and without checkpointing, and what checkpointing costs.
# 3. A layout that fits, shown by a number for one GPU.
# 4. Its traffic: which tensor, how often, over which links; at least one number within a factor of 2.
# 5. A measurement that separates calculation from communication or looks at the peak of memory.

# %% [markdown]
# ## Optional: your own parts, together
#
# A feed-forward network on three devices, made of **your** functions, with a Switch dispatch before it. It is not
# graded, and may fail while an answer is unfinished.

# %%
try:
    torch.manual_seed(0)
    x, w_1, w_2 = torch.randn(9, 6), torch.randn(6, 12), torch.randn(12, 6)
    mine, back = expert_dispatch(x, torch.tensor([2, 0, 1, 1, 0, 2, 0, 1, 2]), 3)
    parts = [torch.relu(part) for part in column_parallel(mine, w_1, 3)]
    joined = row_parallel(parts, w_2, parallel.all_reduce)[back]
    print(f"off by {(joined - torch.relu(x @ w_1) @ w_2).abs().max():.0e}")
    wait = bubble_fraction(4, len(pipeline_schedule(4, 8)) - 3)
    print(f"a pipeline of 4 stages would wait {wait:.0%} of the time")
except NotImplementedError:
    print("not all of your functions are written yet; come back when they are.")

# %% [markdown]
# ## Summary
#
# - float16 ends at 6e-8 and 65,504; bfloat16 has float32's range and three bits fewer than float16 for digits.
#   A **loss scale** saves gradients from the first wall, a **master copy** saves steps that are small beside their
#   weight.
# - Widen, unscale, look, clip, step. Sums, norms and softmax run in float32.
# - Mixed precision leaves the 16 bytes per parameter as they are and shrinks activations. Its speed is a ratio of
#   bytes or of peaks: 2 against TF32.
# - Fusion saves bytes and not FLOPs. Joining weights inside the pass moves more bytes, not fewer.
# - A layer keeps b·n·d·(34 + 5·h·n/d) bytes. Checkpointing keeps its input, for one more forward pass.
# - Columns, then rows: one all-reduce of b·n·d_model numbers in each pass, whatever d_ff. Around a ring each device
#   sends 2 (p − 1) / p of the tensor.
# - A pipeline sends little and waits (s − 1) / (m + s − 1). Experts send tokens, and wait for the busiest.
#
# This was the last chapter. You have built a transformer from its softmax to its thousandth device, and have put on
# trial nearly every number that you were told about it. Keep that habit.
#
# ### To read on
#
# Document B ends with two headings, for key papers and for books and tutorials, and nothing under them. The papers
# stand under "Sources" in every chapter; begin with *Attention Is All You Need*. Beyond papers:
#
# - Rush 2018, *The Annotated Transformer* (new edition by Huang et al. 2022): the paper with code between its lines.
# - Alammar 2018, *The Illustrated Transformer*: the same in pictures.
# - Phuong and Hutter 2022, *Formal Algorithms for Transformers*, arXiv 2207.09238: every model of these chapters as
#   pseudocode.
# - Zhang et al. 2023, *Dive into Deep Learning*: a free book that runs, with chapters on attention and transformers.
# - Jurafsky and Martin, *Speech and Language Processing*, third edition: language models in their field.
# - Tunstall, von Werra, Wolf 2022, *Natural Language Processing with Transformers*: the models in use.
#
# ### Sources
#
# - Micikevicius et al. 2018, *Mixed Precision Training*, arXiv 1710.03740: §3.1 (master copy), §3.2 (loss scaling),
#   §3.3 (accumulation).
# - PyTorch's documentation of `torch.amp.GradScaler`, and its section on unscaling before clipping.
# - NVIDIA, *A100 Tensor Core GPU*, data sheet: peaks and bandwidth.
# - Rajbhandari et al. 2020, *ZeRO*, arXiv 1910.02054: §3.1 (16 bytes per parameter).
# - Ansel et al. 2024, *PyTorch 2*, ASPLOS: `torch.compile`.
# - Korthikanti et al. 2022, *Reducing Activation Recomputation in Large Transformer Models*, arXiv 2205.05198: §4
#   (activations), §5 (selective checkpointing). Chen et al. 2016, *Training Deep Nets with Sublinear Memory Cost*,
#   arXiv 1604.06174.
# - Shoeybi et al. 2019, *Megatron-LM*, arXiv 1909.08053: §3. Narayanan et al. 2021, arXiv 2104.04473: §2 and 3.
# - Patarasuk and Yuan 2009, *Bandwidth optimal all-reduce algorithms for clusters of workstations*; Thakur et al.
#   2005, §4.
# - Huang et al. 2019, *GPipe*, arXiv 1811.06965: §2.3 (the bubble).
# - Lepikhin et al. 2020, *GShard*, arXiv 2006.16668, §3; Fedus et al. 2022, *Switch Transformers*, arXiv 2101.03961,
#   §2.
# - Lan et al. 2020, *ALBERT*, arXiv 1909.11942; Brown et al. 2020, arXiv 2005.14165, table 2.1 (3.2 million tokens a
#   step).
