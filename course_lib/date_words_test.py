"""Dates in words: readable back, never ambiguous, and never both in training and in the test."""

import re
from datetime import date, timedelta

import pytest
import torch

from course_lib import date_words
from course_lib.date_words import (
    LANGUAGES,
    date_alphabet,
    decode_iso,
    encode_iso,
    encode_texts,
    in_words,
    split_days,
    written_dates,
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("language", "form", "expected"),
    [
        ("en", "full", "sunday, may 3, 1998"),
        ("de", "long", "3. mai 1998"),
        ("es", "long", "3 de mayo de 1998"),
        ("hu", "long", "1998. május 3."),
        ("lt", "full", "1998 m. gegužės 3 d., sekmadienis"),
    ],
)
def test_known_dates_read_as_they_are_written(language, form, expected):
    assert in_words(date(1998, 5, 3), language, form) == expected


def test_every_month_has_a_name_of_its_own_in_every_language_and_none_means_two_months():
    months = {}
    for language in LANGUAGES:
        names = {re.sub(r"[\d\W]", "", in_words(date(2001, month, 9), language)): month for month in range(1, 13)}
        assert len(names) == 12
        for name, month in names.items():
            assert months.setdefault(name, month) == month


def test_a_text_holds_the_day_and_the_year_in_digits_and_the_month_in_letters():
    for one in written_dates([date(1998, 12, 31), date(2004, 2, 29)], 200, generator()):
        assert sorted(re.findall(r"\d+", one.text)) == sorted([str(one.day.day), str(one.day.year)])
        assert re.search(r"[^\W\d]{3,}", one.text)


def test_no_day_is_in_training_and_in_the_test_and_none_is_lost():
    training, tested = split_days(generator())
    assert not set(training) & set(tested)
    days = (date_words.LAST_DAY - date_words.FIRST_DAY).days + 1
    assert len(training) + len(tested) == days
    assert len(tested) == round(days * date_words.TEST_SHARE)


def test_the_same_seed_gives_the_same_split_and_the_same_dates():
    assert split_days(generator(3)) == split_days(generator(3))
    days = [date(1950, 1, 1) + timedelta(days=step) for step in range(50)]
    assert written_dates(days, 20, generator(5)) == written_dates(days, 20, generator(5))


def test_every_character_of_every_day_is_in_the_alphabet():
    day = date_words.FIRST_DAY
    while day < date(1901, 1, 1):
        for language in LANGUAGES:
            date_alphabet().encode(in_words(day, language, "full"))
        day += timedelta(days=1)


def test_iso_goes_to_ids_and_back():
    tokens = encode_iso(["1998-05-03", "2004-12-31"])
    assert tokens.shape == (2, date_words.ISO_LENGTH + 1)
    assert int(tokens.max()) < date_words.ISO_VOCAB
    assert [decode_iso([date_words.START_ID, *row]) for row in tokens.tolist()] == ["1998-05-03", "2004-12-31"]


def test_padding_is_marked_where_a_text_is_over():
    tokens, mask = encode_texts(["3 mai 1998", "1998. május 3."])
    assert mask.tolist() == [[False] * 10 + [True] * 4, [False] * 14]
    assert tokens[0, 9] == tokens[1, 3]


def test_what_is_not_offered_is_refused():
    with pytest.raises(ValueError, match="got 'tlh' and 'long'"):
        in_words(date(1998, 5, 3), "tlh")
