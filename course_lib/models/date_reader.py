"""Chapter 10's reader of dates: an encoder-decoder that turns a date in words into its ISO form."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.date_words import (
    END_ID,
    ISO_LENGTH,
    ISO_VOCAB,
    LANGUAGES,
    START_ID,
    WrittenDate,
    date_alphabet,
    decode_iso,
    encode_iso,
    encode_texts,
    written_dates,
)
from course_lib.decoding import greedy_decode, shift_right
from course_lib.models.seq2seq import Memory, Seq2Seq
from course_lib.training.loop import train

MAX_SOURCE = 48  # letters of a written date
MAX_WRITTEN = ISO_LENGTH + 2  # with the start and the end
FULL_STEPS, BATCH, PEAK_RATE = 450, 64, 0.01
CLIMB = 0.15  # of the steps, until the rate is at its peak; found by trying, like the peak


class DateBatch(NamedTuple):
    """Written dates as ids, where they are padding, and what is to be written."""

    source: Int[Tensor, "batch source"]
    mask: Bool[Tensor, "batch source"]
    target: Int[Tensor, "batch target"]


@dataclass(frozen=True)
class Transcript:
    """One date, what the model wrote, and where each head looked while it wrote each character.

    Args:
        source: the date in words.
        written: the characters written, the end as "■" included.
        weights: of every head of the last block, `(heads, written, source)`.
    """

    source: str
    written: str
    weights: Float[Tensor, "heads written source"]


def date_batch(dates: Sequence[WrittenDate]) -> DateBatch:
    """Put written dates side by side."""
    source, mask = encode_texts([written.text for written in dates])
    return DateBatch(source, mask, encode_iso([written.iso for written in dates]))


def new_date_reader(seed: int) -> Seq2Seq:
    """Create a reader that has learned nothing yet."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Seq2Seq(date_alphabet().vocab_size, ISO_VOCAB, MAX_SOURCE, MAX_WRITTEN)


def train_date_reader(
    model: Seq2Seq,
    days: Sequence[date],
    seed: int = 0,
    steps: int = FULL_STEPS,
    languages: Iterable[str] = tuple(LANGUAGES),
) -> list[float]:
    """Teach a reader with teacher forcing; return the loss of every step."""
    generator, codes = torch.Generator().manual_seed(seed), tuple(languages)
    batches = iter(lambda: date_batch(written_dates(days, BATCH, generator, codes)), None)  # without an end
    history = train(model, batches, steps, PEAK_RATE, short=3, loss=forced_loss, schedule=climb_and_fall)
    model.eval()
    return history


def climb_and_fall(done: float) -> float:
    """Give the rate's share of its peak: it climbs evenly, then falls along half a cosine to 0.

    Source: Loshchilov and Hutter 2017, eq. 5, arXiv 1608.03983, for the fall.
    """
    if done < CLIMB:
        return max(done, 0.01) / CLIMB
    return (1 + math.cos(math.pi * (done - CLIMB) / (1 - CLIMB))) / 2


def forced_loss(model: nn.Module, batch: DateBatch) -> Tensor:
    """Average the cross-entropy of every next character, given the true ones before it."""
    logits = model(batch.source, batch.mask, shift_right(batch.target, START_ID))
    return F.cross_entropy(logits.flatten(0, 1), batch.target.flatten())


@torch.no_grad()
def forced_characters(model: Seq2Seq, batch: DateBatch) -> Int[Tensor, "batch target"]:
    """Return the likeliest next character everywhere, given the true ones before it."""
    return model(batch.source, batch.mask, shift_right(batch.target, START_ID)).argmax(dim=-1)


@torch.no_grad()
def remember(model: Seq2Seq, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"] | None) -> Memory:
    """Read the source once and keep the keys and values of every block."""
    return model.remember(model.encode(source, mask), mask)


def writer(model: Seq2Seq, memory: Memory) -> Callable[[Tensor], Tensor]:
    """Make the `step` of a decoder: logits of the next character. A memory of one row serves any number of rows."""

    @torch.no_grad()
    def step(tokens: Int[Tensor, "rows written"]) -> Float[Tensor, "rows vocab"]:
        return model.decode(tokens, _for_rows(memory, len(tokens)))[0][:, -1]

    return step


def _for_rows(memory: Memory, rows: int) -> Memory:
    """Show the memory of one source to several rows."""
    if memory.keys[0].shape[0] == rows:
        return memory
    keys, values = ([part.expand(rows, -1, -1, -1) for part in parts] for parts in (memory.keys, memory.values))
    return Memory(keys, values, None if memory.mask is None else memory.mask.expand(rows, -1))


def free_characters(model: Seq2Seq, memory: Memory, rows: int) -> Int[Tensor, "batch target"]:
    """Return what the model writes by itself, greedily, without the start and filled up with ends."""
    written = greedy_decode(writer(model, memory), START_ID, END_ID, MAX_WRITTEN, rows)[:, 1:]
    missing = ISO_LENGTH + 1 - written.shape[1]
    return F.pad(written, (0, max(0, missing)), value=END_ID)[:, : ISO_LENGTH + 1]


@torch.no_grad()
def transcribe(model: Seq2Seq, text: str, iso: str) -> Transcript:
    """Record where the heads of the last block look while `iso`, which the model wrote, and the end are written."""
    source, _ = encode_texts([text])
    tokens = shift_right(encode_iso([iso]), START_ID)
    maps = model.decode(tokens, remember(model, source, None))[1]
    return Transcript(text, iso + "■", maps[-1][0])


def exact(written: Int[Tensor, "batch written"], dates: Sequence[WrittenDate]) -> list[bool]:
    """Say for each row of decoded tokens whether it is the right date."""
    return [decode_iso(row) == one.iso for row, one in zip(written.tolist(), dates, strict=True)]
