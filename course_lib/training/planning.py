"""Plan a training on many devices: what each one holds, what it sends, and how long a pipeline waits.

N = data · expert · tensor · pipeline devices. Data parallel copies the model and splits the batch; expert parallel
splits the batch too, and keeps different experts on different devices; tensor parallel splits every layer; pipeline
parallel splits the stack. The plan counts blocks with d_ff = 4 d_model, in mixed precision with Adam, without
embeddings; each layer is split as finely as the layout says.
"""

import math
from dataclasses import dataclass, replace

from course_lib.activation_memory import LINEAR_TERMS, MAP_TERMS
from course_lib.costs import block_parameter_count
from course_lib.training.mixed_precision import HALF, state_bytes
from course_lib.training.parallel import ring_all_reduce_bytes
from course_lib.training.pipeline import bubble_fraction

FFN_SHARE_TERMS = 8  # d_model² parameters of a feed-forward network with d_ff = 4 d_model
UNSPLIT_TERMS = 10  # of the 34: what every tensor-parallel device keeps whole
REDUCES = 4  # all-reduces of a tensor-parallel layer: after attention and after the network, forward and backward
EXCHANGES = 4  # all-to-alls of an expert layer: there and back, forward and backward
WIDENING = 4


@dataclass(frozen=True)
class Model:
    """A stack of blocks and the batch of one step.

    Args:
        layers: Blocks.
        d_model: Their width.
        heads: Of every block.
        sequence: Tokens of each sequence.
        batch: Sequences of one step, on all devices together.
    """

    layers: int
    d_model: int
    heads: int
    sequence: int
    batch: int


@dataclass(frozen=True)
class Layout:
    """How the devices share the work; the product of the four is the number of devices.

    Args:
        data: Copies of the model, each with its own part of the batch.
        tensor: Devices that share every layer.
        pipeline: Stages, each with its own part of the layers.
        expert: Experts of every feed-forward network, each on its own device; 1 is no mixture.
        microbatches: Pieces that a device cuts its part of the batch into.
        checkpointing: Keep the input of each layer, and compute the rest again.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    microbatches: int = 1
    checkpointing: bool = False

    @property
    def devices(self) -> int:
        """Return how many devices there are."""
        return self.data * self.tensor * self.pipeline * self.expert


@dataclass(frozen=True)
class Plan:
    """What the fullest device holds and what a device sends in one step, in bytes; and the share that it waits."""

    parameters: int
    weights: float
    optimizer: float
    activations: float
    data_traffic: float
    tensor_traffic: float
    pipeline_traffic: float
    expert_traffic: float
    bubble: float

    @property
    def memory(self) -> float:
        """Return all bytes that the device holds."""
        return self.weights + self.optimizer + self.activations

    @property
    def traffic(self) -> float:
        """Return all bytes that the device sends in one step."""
        return self.data_traffic + self.tensor_traffic + self.pipeline_traffic + self.expert_traffic


def plan(model: Model, layout: Layout) -> Plan:
    """Count memory and traffic of the fullest device.

    States: 16 bytes per parameter that it holds. Activations: as `activation_bytes`, with tensor parallel 10 of the 34
    stay whole; a stage keeps as many microbatches as there are stages behind it, itself included. Traffic: all-reduces
    around rings, 2 (p - 1) / p of the tensor; a pipeline sends every microbatch on, and its gradient back; an
    all-to-all sends (p - 1) / p of the tokens away.

    Raises:
        ValueError: the batch cannot be cut into that many equal pieces, or layers or heads cannot be shared evenly.

    Source: Rajbhandari et al. 2020, §3.1, arXiv 1910.02054 (states); Korthikanti et al. 2022, §4.1 and 4.3, arXiv
    2205.05198 (activations); Narayanan et al. 2021, §2 and 3, arXiv 2104.04473 (traffic, order of a pipeline).
    """
    rows = _microbatch_rows(model, layout)
    layers = model.layers // layout.pipeline
    dense, expert = _parameters_per_layer(model, layout)
    held = layers * (dense + expert)
    state = state_bytes("mixed")
    tensor_bytes = rows * model.sequence * model.d_model * HALF  # tokens of a microbatch
    passes = layout.microbatches
    dense_ring = ring_all_reduce_bytes(layers * dense * HALF, layout.data * layout.expert)
    reduces = REDUCES + 2 * layout.checkpointing  # the forward pass runs again
    exchanges = EXCHANGES + 2 * layout.checkpointing
    return Plan(
        parameters=model.layers * (_attention_and_norms(model) + layout.expert * _ffn_parameters(model)),
        weights=held * (state.weight + state.gradient),
        optimizer=held * (state.master + state.averages),
        activations=_activations(model, layout, rows, layers),
        data_traffic=dense_ring + ring_all_reduce_bytes(layers * expert * HALF, layout.data),
        tensor_traffic=passes * layers * reduces * ring_all_reduce_bytes(tensor_bytes, layout.tensor),
        pipeline_traffic=passes * tensor_bytes * (0 if layout.pipeline == 1 else 1 if layout.pipeline == 2 else 2),
        expert_traffic=passes * layers * exchanges * tensor_bytes * (layout.expert - 1) / layout.expert,
        bubble=bubble_fraction(layout.pipeline, layout.microbatches),
    )


def fit(model: Model, layout: Layout) -> Layout:
    """Reduce a layout where the model or the batch cannot be shared so finely; every part stays a power of two."""
    tensor = math.gcd(layout.tensor, model.heads)
    pipeline = math.gcd(layout.pipeline, model.layers)
    expert = math.gcd(layout.expert, model.batch)
    data = math.gcd(layout.data, model.batch // expert)
    microbatches = math.gcd(layout.microbatches, model.batch // expert // data)
    return replace(layout, data=data, tensor=tensor, pipeline=pipeline, expert=expert, microbatches=microbatches)


def _microbatch_rows(model: Model, layout: Layout) -> int:
    pieces = layout.data * layout.expert * layout.microbatches
    for name, whole, parts in (
        ("batch", model.batch, pieces),
        ("layers", model.layers, layout.pipeline),
        ("heads", model.heads, layout.tensor),
    ):
        if parts < 1 or whole % parts:
            raise ValueError(f"`{name}` is {whole} and cannot be shared evenly among {parts}.")
    return model.batch // pieces


def _ffn_parameters(model: Model) -> int:
    return FFN_SHARE_TERMS * model.d_model**2 + (WIDENING + 1) * model.d_model


def _attention_and_norms(model: Model) -> int:
    return block_parameter_count(model.d_model, WIDENING * model.d_model) - _ffn_parameters(model)


def _parameters_per_layer(model: Model, layout: Layout) -> tuple[float, float]:
    """Count what one device holds of a layer: what all devices of a copy share, and what belongs to its expert."""
    attention, ffn = _attention_and_norms(model) / layout.tensor, _ffn_parameters(model) / layout.tensor
    return (attention, ffn) if layout.expert > 1 else (attention + ffn, 0.0)


def _activations(model: Model, layout: Layout, rows: int, layers: int) -> float:
    tokens = rows * model.sequence
    split = (LINEAR_TERMS - UNSPLIT_TERMS) * model.d_model + MAP_TERMS * model.heads * model.sequence
    layer = tokens * (UNSPLIT_TERMS * model.d_model + split / layout.tensor)
    in_flight = min(layout.pipeline, layout.microbatches)
    if layout.checkpointing:
        return in_flight * layers * tokens * model.d_model * HALF + layer
    return in_flight * layers * layer
