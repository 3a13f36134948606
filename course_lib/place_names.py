"""Names of countries and territories in many languages, from the Unicode project's tables that Babel carries."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from babel import Locale, UnknownLocaleError

# Nine languages in the Latin script, so that letters and their order tell them apart, and not the alphabet.
LANGUAGES = {
    "cs": "Czech",
    "de": "German",
    "es": "Spanish",
    "fi": "Finnish",
    "hu": "Hungarian",
    "it": "Italian",
    "pl": "Polish",
    "sv": "Swedish",
    "tr": "Turkish",
}
NO_PLACES = ("EU", "EZ", "QO", "UN", "XA", "XB", "ZZ")  # alliances, test locales, and "unknown"
TEST_SHARE = 0.25
PAD_ID = 0


@dataclass(frozen=True)
class PlaceName:
    """What a language calls a territory."""

    text: str
    language: str
    territory: str


def place_names(languages: Iterable[str] = tuple(LANGUAGES)) -> list[PlaceName]:
    """List the names of all territories in each language; a name that two languages share is left out.

    Args:
        languages: codes such as "fi".

    Raises:
        ValueError: Babel does not know a language.

    Source: the Unicode Common Locale Data Repository, through Babel.
    """
    found = [
        PlaceName(text.casefold(), language, territory)
        for language in languages
        for territory, text in sorted(_territories(language).items())
        if re.fullmatch("[A-Z]{2}", territory) and territory not in NO_PLACES
    ]
    uses = Counter(text for text, _ in {(name.text, name.language) for name in found})
    return [name for name in found if uses[name.text] == 1]


def split_by_territory(
    names: Sequence[PlaceName], generator: torch.Generator
) -> tuple[list[PlaceName], list[PlaceName]]:
    """Set a quarter of the territories aside for the test, with all their names.

    So the test never asks for "Afganistan" after training has shown "Afganisztán".
    """
    territories = sorted({name.territory for name in names})
    order = torch.randperm(len(territories), generator=generator).tolist()
    held_out = {territories[place] for place in order[: round(TEST_SHARE * len(territories))]}
    return (
        [name for name in names if name.territory not in held_out],
        [name for name in names if name.territory in held_out],
    )


class Alphabet:
    """Number the characters of some texts from 1; 0 is the padding."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.characters = sorted({character for text in texts for character in text})
        self.ids = {character: place for place, character in enumerate(self.characters, start=PAD_ID + 1)}

    @property
    def vocab_size(self) -> int:
        """Count the ids, padding included."""
        return len(self.characters) + 1

    def encode(self, text: str) -> list[int]:
        """Write a text as ids.

        Raises:
            ValueError: a character is not in the alphabet.
        """
        unknown = sorted(set(text) - self.ids.keys())
        if unknown:
            raise ValueError(f"`text` holds {unknown[0]!r}, which is not in this alphabet.")
        return [self.ids[character] for character in text]


def _territories(language: str) -> dict[str, str]:
    try:
        return dict(Locale.parse(language).territories)
    except (UnknownLocaleError, ValueError):
        raise ValueError(f"`languages` holds {language!r}, which Babel does not know; use codes like 'fi'.") from None
