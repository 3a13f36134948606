"""Place names: known ones are there, shared ones are not, and no territory is in training and test."""

from collections import defaultdict

import pytest
import torch

from course_lib.place_names import LANGUAGES, PAD_ID, Alphabet, place_names, split_by_territory


def test_well_known_names_are_listed_with_their_language():
    names = {(name.text, name.language) for name in place_names()}
    assert {("saksa", "fi"), ("niemcy", "pl"), ("németország", "hu"), ("almanya", "tr"), ("tyskland", "sv")} <= names


def test_no_name_belongs_to_two_languages():
    owners = defaultdict(set)
    for name in place_names():
        owners[name.text].add(name.language)
    assert all(len(languages) == 1 for languages in owners.values())
    assert "andorra" not in owners


def test_every_language_has_names_enough_to_learn_from():
    names = place_names()
    for language in LANGUAGES:
        assert sum(name.language == language for name in names) > 80


def test_only_territories_are_listed():
    assert all(len(name.territory) == 2 and name.territory not in ("EU", "ZZ") for name in place_names())


def test_no_territory_is_in_training_and_test():
    names = place_names()
    training, test = split_by_territory(names, torch.Generator().manual_seed(0))
    assert len(training) + len(test) == len(names)
    assert not {name.territory for name in training} & {name.territory for name in test}
    assert 0.15 < len(test) / len(names) < 0.35


def test_the_split_follows_its_generator():
    names = place_names(("fi", "pl"))
    splits = [split_by_territory(names, torch.Generator().manual_seed(seed))[1] for seed in (0, 0, 1)]
    assert splits[0] == splits[1] != splits[2]


def test_an_alphabet_numbers_its_characters_and_keeps_one_id_for_padding():
    alphabet = Alphabet(["åland", "aland"])
    ids = alphabet.encode("åland")
    assert PAD_ID not in ids
    assert max(ids) == alphabet.vocab_size - 1
    assert "".join(alphabet.characters[place - 1] for place in ids) == "åland"
    with pytest.raises(ValueError, match="`text` holds 'z'"):
        alphabet.encode("zz")


def test_an_unknown_language_is_refused():
    with pytest.raises(ValueError, match="`languages` holds 'tlh-xx', which Babel does not know"):
        place_names(("fi", "tlh-xx"))
