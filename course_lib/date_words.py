"""Dates written out in many languages, by the Unicode project's rules that Babel carries, and their ISO form."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache

import torch
from babel.dates import format_date
from jaxtyping import Bool, Int
from torch import Tensor

from course_lib.padded_batches import pad_batch
from course_lib.place_names import PAD_ID, Alphabet

# Ten languages in the Latin script. Most name the day first, English the month; the last two begin with the year.
LANGUAGES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pl": "Polish",
    "fi": "Finnish",
    "tr": "Turkish",
    "hu": "Hungarian",
    "lt": "Lithuanian",
}
FORMS = ("long", "full")  # without and with the day of the week
FIRST_DAY, LAST_DAY = date(1900, 1, 1), date(2099, 12, 31)
TEST_SHARE = 0.1
START_ID, END_ID = 0, 1
ISO_CHARACTERS = "-0123456789"  # numbered from 2
ISO_LENGTH = 10
ISO_VOCAB = len(ISO_CHARACTERS) + 2


@dataclass(frozen=True)
class WrittenDate:
    """A day as somebody writes it."""

    text: str
    day: date
    language: str
    form: str

    @property
    def iso(self) -> str:
        """Give the day as year-month-day, ISO 8601."""
        return self.day.isoformat()


@cache
def in_words(day: date, language: str, form: str = "long") -> str:
    """Write a day out in a language, in small letters.

    Args:
        day: the day.
        language: a code of `LANGUAGES`.
        form: "long", as in "may 3, 1998", or "full", as in "sunday, may 3, 1998".

    Raises:
        ValueError: language or form is none of ours.

    Source: the Unicode Common Locale Data Repository, through Babel.
    """
    if language not in LANGUAGES or form not in FORMS:
        raise ValueError(
            f"`language` must be one of {', '.join(LANGUAGES)} and `form` one of {', '.join(FORMS)}; "
            f"got {language!r} and {form!r}."
        )
    return format_date(day, form, locale=language).casefold()


def split_days(generator: torch.Generator) -> tuple[list[date], list[date]]:
    """Set a tenth of all days aside for the test, in every language; return the others first."""
    count = (LAST_DAY - FIRST_DAY).days + 1
    order = torch.randperm(count, generator=generator).tolist()
    days = [FIRST_DAY + timedelta(days=place) for place in order]
    tested = round(TEST_SHARE * count)
    return days[tested:], days[:tested]


def written_dates(
    days: Sequence[date], count: int, generator: torch.Generator, languages: Sequence[str] = tuple(LANGUAGES)
) -> list[WrittenDate]:
    """Draw dates: a day, a language and a form, each evenly."""
    chosen = [torch.randint(size, (count,), generator=generator) for size in (len(days), len(languages), len(FORMS))]
    written = []
    for place, language, form in torch.stack(chosen, dim=1).tolist():
        day, code, name = days[place], str(languages[language]), FORMS[form]
        written.append(WrittenDate(in_words(day, code, name), day, code, name))
    return written


@cache
def date_alphabet() -> Alphabet:
    """Number every character that a written date can hold."""
    days = [date(1999, month, 1) + timedelta(days=offset) for month in range(1, 13) for offset in range(7)]
    texts = [in_words(day, language, form) for day in days for language in LANGUAGES for form in FORMS]
    return Alphabet([*texts, "0123456789"])


def encode_texts(texts: Sequence[str]) -> tuple[Int[Tensor, "batch source"], Bool[Tensor, "batch source"]]:
    """Write texts as ids side by side; return ids and mask, True at padding."""
    return pad_batch([date_alphabet().encode(text) for text in texts], PAD_ID)


def encode_iso(texts: Sequence[str]) -> Int[Tensor, "batch target"]:
    """Write ISO dates as ids, each with the end after it."""
    ids = {character: place for place, character in enumerate(ISO_CHARACTERS, start=END_ID + 1)}
    return torch.tensor([[*(ids[character] for character in text), END_ID] for text in texts])


def decode_iso(tokens: Sequence[int] | Tensor) -> str:
    """Read ids up to the end; the start is left out."""
    text = ""
    for token in tokens:
        if token == END_ID:
            break
        text += "" if token == START_ID else ISO_CHARACTERS[int(token) - END_ID - 1]
    return text
