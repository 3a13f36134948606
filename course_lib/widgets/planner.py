"""Chapter 12's explorer: what one of N devices holds and sends when a model is trained on all of them."""

from collections.abc import Sequence

from course_lib.colors import COLORS, INK
from course_lib.measurement import seconds_text
from course_lib.memory import bytes_text
from course_lib.training.planning import Layout, Model, Plan, fit, plan
from course_lib.widgets import svg
from course_lib.widgets.base import Choice, Explorer, Toggle

TITLE = "A model on many devices"
MODELS = {  # near Brown et al. 2020, table 2.1, arXiv 2005.14165, rounded so that heads divide the width
    "1.3 billion": (24, 2048, 32),
    "6.7 billion": (32, 4096, 32),
    "13 billion": (40, 5120, 40),
    "175 billion": (96, 12288, 96),
}
SEQUENCE = 2048
BATCH = 512  # sequences a step: a million tokens
POWERS = tuple(2**power for power in range(9))
SHORT_POWERS = POWERS[:5]
DEVICE_BYTES = 80e9  # of an A100 or H100
FAST, SLOW = 300e9, 25e9  # bytes per second in one direction: NVLink inside a machine, a 200 Gbit/s network outside
WIDTH, HEIGHT = 640, 300
LEFT, BAR_WIDTH, BAR_HEIGHT = 12, 600, 30
PART_COLORS = (COLORS[5], COLORS[4], COLORS[3], "#dddddd")  # light enough for dark letters
LETTER = 7.2  # pixels per letter of a label

Part = tuple[str, float]


def planner() -> Explorer:
    """Make the explorer; put it last in a cell to see it."""
    return Explorer(
        TITLE,
        {
            "size": Choice("Model", "6.7 billion", tuple(MODELS)),
            "data": Choice("Data parallel", 4, POWERS),
            "tensor": Choice("Tensor parallel", 1, SHORT_POWERS),
            "pipeline": Choice("Pipeline stages", 1, SHORT_POWERS),
            "expert": Choice("Expert parallel", 1, POWERS[:7]),
            "microbatches": Choice("Microbatches", 1, POWERS),
            "checkpointing": Toggle("Checkpointing", False),
        },
        draw,
    )


def draw(
    size: str, data: int, tensor: int, pipeline: int, expert: int, microbatches: int, checkpointing: bool
) -> tuple[str, str]:
    """Draw a bar of what one device holds over one of what it sends, and say the same in words."""
    layers, d_model, heads = MODELS[size]
    model = Model(layers, d_model, heads, SEQUENCE, BATCH)
    asked = Layout(data, tensor, pipeline, expert, microbatches, checkpointing)
    layout = fit(model, asked)
    found = plan(model, layout)
    held = [("weights, gradients", found.weights), ("optimizer", found.optimizer), ("activations", found.activations)]
    sent = [
        ("data", found.data_traffic),
        ("tensor", found.tensor_traffic),
        ("pipeline", found.pipeline_traffic),
        ("expert", found.expert_traffic),
    ]
    words = _words(size, asked, layout, found, held, sent)
    fits = "fits" if found.memory <= DEVICE_BYTES else "does not fit"
    parts = [
        svg.text(LEFT, 24, f"{_devices(layout)}, {found.parameters / 1e9:,.3g} billion parameters in the blocks", 14),
        *_bar(54, f"{bytes_text(found.memory)} held by one device: {fits} into 80 GB", held),
        *_bar(144, f"{bytes_text(found.traffic)} sent by one device in one step", sent),
        svg.text(LEFT, 236, f"a pipeline stage waits {found.bubble:.0%} of the time", 14),
        svg.rectangle(LEFT, 246, BAR_WIDTH, 18, COLORS[5], INK),
        *_waiting(found.bubble),
        svg.text(LEFT, 284, "plain: at work, crossed: waiting", 11.5),
    ]
    return svg.picture(WIDTH, HEIGHT, TITLE, words, *parts), words


def traffic_seconds(found: Plan) -> float:
    """Estimate how long the links are busy: tensor parallel on the fast ones, the rest on the slow ones."""
    return found.tensor_traffic / FAST + (found.traffic - found.tensor_traffic) / SLOW


def _words(size: str, asked: Layout, layout: Layout, found: Plan, held: list[Part], sent: list[Part]) -> str:
    told = [
        f"A model of the {size} size on {_devices(layout)}: {layout.data} data × {layout.tensor} tensor × "
        f"{layout.pipeline} pipeline × {layout.expert} expert, {BATCH} sequences of {SEQUENCE} tokens a step in "
        f"{layout.microbatches} microbatch{'es' * (layout.microbatches > 1)} per copy, "
        f"{'with' if layout.checkpointing else 'without'} checkpointing."
    ]
    if layout != asked:
        told.append("(A setting was lowered: layers, heads or the batch cannot be shared so finely.)")
    if layout.expert > 1:
        told.append(f"Every network has {layout.expert} experts: {found.parameters / 1e9:,.3g} billion parameters.")
    fits = "which fits" if found.memory <= DEVICE_BYTES else "which does not fit"
    told.append(f"One device holds {bytes_text(found.memory)}, {fits} into 80 GB ({_shares(held)}).")
    told.append(
        f"It sends {bytes_text(found.traffic)} a step ({_shares(sent)})." if found.traffic else "Nothing is sent."
    )
    if found.traffic:
        told.append(
            f"At 300 GB/s for tensor parallel and 25 GB/s for the rest that is {seconds_text(traffic_seconds(found))}."
        )
    told.append(f"A pipeline stage waits {found.bubble:.0%} of the time.")
    return " ".join(told)


def _devices(layout: Layout) -> str:
    return f"{layout.devices:,} device{'s' * (layout.devices > 1)}"


def _shares(parts: Sequence[Part]) -> str:
    return ", ".join(f"{name} {bytes_text(amount)}" for name, amount in parts if amount)


def _bar(top: float, heading: str, pieces: Sequence[Part]) -> list[str]:
    """Draw one full bar whose parts are shares; what is too narrow for its name is named below."""
    parts = [svg.text(LEFT, top, heading, 14)]
    total = sum(amount for _, amount in pieces)
    left = float(LEFT)
    for (name, amount), color in zip(pieces, PART_COLORS, strict=False):
        width = BAR_WIDTH * amount / total if total else 0.0
        if width:
            parts.append(svg.rectangle(left, top + 10, width, BAR_HEIGHT, color, INK))
        if width > LETTER * len(name):
            parts.append(svg.text(left + width / 2, top + 30, name, 12, anchor="middle", rim=False))
        left += width
    line = " · ".join(f"{name} {amount / total:.0%}" for name, amount in pieces) if total else "nothing is sent"
    parts.append(svg.text(LEFT, top + 58, line, 11.5))
    return parts


def _waiting(share: float) -> list[str]:
    """Cover the waiting share of the bar in white with crossing lines, so that it is seen without color."""
    width = BAR_WIDTH * share
    if width < 1:
        return []
    left = LEFT + BAR_WIDTH - width
    parts = [svg.rectangle(left, 246, width, 18, "white", INK)]
    across = left
    while across + 6 <= LEFT + BAR_WIDTH:
        parts += [svg.line(across, 247, across + 6, 263, INK, 0.7), svg.line(across, 263, across + 6, 247, INK, 0.7)]
        across += 12
    return parts
