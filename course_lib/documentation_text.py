"""The text that Python's own `help()` shows, character by character: 370,000 characters that ship with Python."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pydoc_data.topics import topics

import torch
from jaxtyping import Float, Int
from torch import Tensor

STRETCH = 20  # paragraphs that stay together: long enough to hold a thought, short enough to spread the test evenly
TEST_EVERY = 10  # each tenth stretch is set aside
PAIR_SMOOTHING = 0.01  # added to the count of every pair, so that one never seen is unlikely and not impossible


class Characters:
    """Number the characters of a text from 0."""

    def __init__(self, text: str) -> None:
        self.characters = sorted(set(text))
        self.ids = {character: place for place, character in enumerate(self.characters)}

    def __len__(self) -> int:
        """Count the characters that have a number."""
        return len(self.characters)

    def encode(self, text: str) -> Int[Tensor, " token"]:
        """Write a text as ids.

        Raises:
            ValueError: a character has no number.
        """
        unknown = sorted(set(text) - self.ids.keys())
        if unknown:
            raise ValueError(f"`text` holds {unknown[0]!r}, which does not occur in the text that was numbered.")
        return torch.tensor([self.ids[character] for character in text], dtype=torch.int64)

    def decode(self, tokens: Iterable[int] | Int[Tensor, " token"], beyond: str = "·") -> str:
        """Write ids as a text; an id that no character has, such as a mask's, is shown as `beyond`."""
        ids = tokens.tolist() if isinstance(tokens, Tensor) else tokens
        return "".join(self.characters[i] if 0 <= i < len(self.characters) else beyond for i in ids)


@dataclass(frozen=True)
class DocumentationText:
    """Python's documentation as ids, a part of it set aside."""

    characters: Characters
    train: Int[Tensor, " token"]
    validation: Int[Tensor, " held_out"]

    @property
    def vocab_size(self) -> int:
        """Count the different characters."""
        return len(self.characters)


def paragraphs() -> list[str]:
    """List the paragraphs of Python's help topics, each once.

    About a fifth of the text repeats a paragraph that came before. If repeats stayed, the test would ask for what
    training showed.
    """
    first: dict[str, str] = {}
    for name in sorted(topics):
        for paragraph in topics[name].split("\n\n"):
            first.setdefault(" ".join(paragraph.split()), paragraph.strip("\n").rstrip())
    return [paragraph for words, paragraph in first.items() if words]


@cache
def documentation_text() -> DocumentationText:
    """Read the documentation, number its characters, and set a tenth aside, in stretches of whole paragraphs.

    Versions of Python differ a little in this text, and so do losses that are measured on it.
    """
    found = paragraphs()
    stretches = [found[start : start + STRETCH] for start in range(0, len(found), STRETCH)]
    kept = [stretch for place, stretch in enumerate(stretches) if place % TEST_EVERY != TEST_EVERY - 1]
    aside = [stretch for place, stretch in enumerate(stretches) if place % TEST_EVERY == TEST_EVERY - 1]
    train, validation = ("\n\n".join("\n\n".join(stretch) for stretch in part) for part in (kept, aside))
    characters = Characters(train + validation)
    return DocumentationText(characters, characters.encode(train), characters.encode(validation))


def windows(
    tokens: Int[Tensor, " token"], batch: int, length: int, generator: torch.Generator | None = None
) -> Int[Tensor, "batch length"]:
    """Cut windows out of a text, each from a random place.

    Raises:
        ValueError: `batch` is below 1, or `length` is below 1 or exceeds the text.
    """
    if batch < 1:
        raise ValueError(f"`batch` must be at least 1, got {batch}.")
    if not 1 <= length <= len(tokens):
        raise ValueError(f"`length` must lie between 1 and the text's {len(tokens)} tokens, got {length}.")
    starts = torch.randint(len(tokens) - length + 1, (batch, 1), generator=generator)
    return tokens[starts + torch.arange(length)]


def all_windows(tokens: Int[Tensor, " token"], length: int) -> Int[Tensor, "window length"]:
    """Cut a text into windows side by side; what is left at the end is dropped.

    Raises:
        ValueError: `length` is below 1 or exceeds the text.
    """
    if not 1 <= length <= len(tokens):
        raise ValueError(f"`length` must lie between 1 and the text's {len(tokens)} tokens, got {length}.")
    return tokens[: len(tokens) // length * length].reshape(-1, length)


def character_shares(tokens: Int[Tensor, " token"], vocab_size: int) -> Float[Tensor, " vocab"]:
    """Give each character's share of a text."""
    return torch.bincount(tokens, minlength=vocab_size).double() / len(tokens)


def bigram_table(tokens: Int[Tensor, " token"], vocab_size: int) -> Float[Tensor, "previous next"]:
    """Estimate P(next | previous) by counting pairs: (count + a) / (sum of counts + a · vocab), a = 0.01."""
    pairs = torch.bincount(tokens[:-1] * vocab_size + tokens[1:], minlength=vocab_size**2)
    counts = pairs.double().reshape(vocab_size, vocab_size) + PAIR_SMOOTHING
    return counts / counts.sum(dim=-1, keepdim=True)


def bigram_loss(table: Float[Tensor, "previous next"], tokens: Int[Tensor, " token"]) -> float:
    """Average -log P(next | previous) over a text, in nats per character."""
    return -table[tokens[:-1], tokens[1:]].log().mean().item()


def neighbor_loss(
    train: Int[Tensor, " token"], tokens: Int[Tensor, "window length"], chosen: Int[Tensor, "place 2"], vocab_size: int
) -> float:
    """Average -log P(character | both neighbors) over chosen places inside windows: what counting can do for a gap.

    P(x | left, right) ∝ P(x | left) P(right | x), by the bigram table of the training text.

    Args:
        train: the text whose pairs are counted.
        tokens: windows of another text.
        chosen: row and place of every character to be guessed; neither end of a row.
        vocab_size: the number of different characters.

    Raises:
        ValueError: a chosen place is the first or last of its row, and so lacks a neighbor.
    """
    rows, places = chosen.T
    if bool((places < 1).any()) or bool((places > tokens.shape[1] - 2).any()):
        raise ValueError("`chosen` holds the first or last place of a row, which has one neighbor only.")
    table = bigram_table(train, vocab_size)
    left, right = tokens[rows, places - 1], tokens[rows, places + 1]
    joint = table[left] * table[:, right].T
    share = joint[torch.arange(len(rows)), tokens[rows, places]] / joint.sum(dim=-1)
    return -share.log().mean().item()
