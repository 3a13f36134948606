"""Check `next_sentence_pairs`: BERT's second objective, a true successor or a stranger."""

import itertools
from functools import partial

import numpy as np

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.variants import CHAPTER
from autograder.exercises.variants.sentence_pairs import PAIRS, honest, same_belief
from autograder.program import Program, call
from course_lib import next_sentence


def library(draw: Draw, documents: int) -> list[list[str]]:
    """Write documents of different lengths, whose sentences all differ."""
    cuts = sorted(draw.random.choice(np.arange(40, PAIRS - 40, 20), documents - 1, replace=False).tolist())
    lengths = [end - start + 1 for start, end in zip([0, *cuts], [*cuts, PAIRS], strict=True)]
    return [[f"Sentence {place} of text {number}." for place in range(n)] for number, n in enumerate(lengths)]


def equal_generators(draw: Draw, documents: int) -> Program:
    """Ask twice with equal generators."""
    texts, generator = library(draw, documents), draw.generator()
    return call(texts, generator).call(texts, generator)


def different_generators(draw: Draw, documents: int) -> Program:
    """Ask twice with different generators."""
    texts = library(draw, documents)
    return call(texts, draw.generator()).call(texts, draw.generator())


def some_are_short(draw: Draw) -> Program:
    """Add documents of one sentence and of none, which give no pair of their own."""
    texts = library(draw, 3)
    texts.insert(1, ["A text of one sentence."])
    texts.append([])
    return call(texts, draw.generator()).call(texts, draw.generator())


judged = partial(Case, judge=honest, alike=same_belief)

exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=next_sentence.next_sentence_pairs,
    returns=("the pairs",),
    cases=[
        judged("three documents, equal generators", lambda draw: equal_generators(draw, 3)),
        judged("two documents, different generators", lambda draw: different_generators(draw, 2)),
        judged("four documents, equal generators", lambda draw: equal_generators(draw, 4), hidden=True),
        judged("some documents are short", some_are_short, hidden=True),
    ],
)


def _pairs(documents, generator, second, coin=None):
    """Pair neighbors; `second` draws the stranger, `coin` tells from the pair's number whether it is a neighbor."""
    found = []
    for number, document in enumerate(documents):
        for place in range(len(document) - 1):
            is_next = bool(generator.random() < 1 / 2) if coin is None else coin(len(found), number)
            other = document[place + 1] if is_next else second(documents, number, generator)
            found.append((document[place], other, is_next))
    return found


def _elsewhere(documents, number, generator):
    others = [text for place, document in enumerate(documents) if place != number for text in document]
    return others[int(generator.integers(len(others)))]


@exercise.misconception("""
    Your flags are the wrong way round. In BERT's published code the label 0 means "is next", which may be where this
    comes from. Here `is_next` says what its name says.
""")
def flag_inverted(documents, generator):
    pairs = _pairs(documents, generator, _elsewhere)
    return [(first, second, not is_next) for first, second, is_next in pairs]


@exercise.misconception("""
    Your random sentence is drawn from **all** documents, its own included, so some strangers are no strangers; now and
    then it is even the true successor, labeled False. Leave the first sentence's document out.
""")
def anything_is_a_stranger(documents, generator):
    texts = [text for document in documents for text in document]
    return _pairs(documents, generator, lambda *_: texts[int(generator.integers(len(texts)))])


@exercise.misconception("""
    Your random sentence comes from the same document. Then both kinds of pair have the same subject, and some of the
    strangers follow after all. It should come from **another** document.
""")
def stranger_from_the_same_document(documents, generator):
    return _pairs(documents, generator, lambda _, number, g: documents[number][int(g.integers(len(documents[number])))])


@exercise.misconception("""
    You laid all documents end to end: the last sentence of one is paired with the first of the next as if it followed.
    Neighbors are neighbors within a document.
""")
def documents_joined(documents, generator):
    found = []
    flat = [(number, text) for number, document in enumerate(documents) for text in document]
    for (number, first), (_, following) in itertools.pairwise(flat):
        is_next = bool(generator.random() < 1 / 2)
        found.append((first, following if is_next else _elsewhere(documents, number, generator), is_next))
    return found


@exercise.misconception("""
    All your pairs are true neighbors. A model that always says yes would be right every time and learn nothing; half of
    the pairs need a stranger.
""")
def all_neighbors(documents, generator):
    return _pairs(documents, generator, _elsewhere, coin=lambda *_: True)


@exercise.misconception("""
    None of your pairs is a true neighbor. Half of them should be.
""")
def all_strangers(documents, generator):
    return _pairs(documents, generator, _elsewhere, coin=lambda *_: False)


@exercise.misconception("""
    True and random pairs alternate. Half of each, but whoever knows the last answer knows the next one. Let a coin
    decide, for each pair by itself.
""")
def taking_turns(documents, generator):
    return _pairs(documents, generator, _elsewhere, coin=lambda count, _: count % 2 == 0)


@exercise.misconception("""
    Each pair of neighbors gives you two entries, a true one and a random one. The contract asks for one, and lets a
    coin decide which.
""")
def both_kinds(documents, generator):
    found = []
    for number, document in enumerate(documents):
        for first, following in itertools.pairwise(document):
            found.append((first, following, True))
            found.append((first, _elsewhere(documents, number, generator), False))
    return found


@exercise.misconception("""
    Equal generators give different pairs: your chances come from elsewhere, such as the module `random` or
    `np.random`. Draw from the generator that is passed in; only then can a run be repeated.
""")
def generator_ignored(documents, generator):
    return _pairs(documents, np.random.default_rng(), _elsewhere)


@exercise.misconception("""
    Different generators give the same pairs: you make a generator with a seed of your own inside. Every epoch would
    show the same strangers.
""")
def seed_of_its_own(documents, generator):
    return _pairs(documents, np.random.default_rng(0), _elsewhere)


@exercise.misconception("""
    Your strangers are always the first sentences of other documents. First sentences sound alike, and a model would
    learn to know them by that. Draw among all sentences.
""")
def first_sentences_alone(documents, generator):
    def first(texts, number, g):
        others = [document[0] for place, document in enumerate(texts) if place != number and document]
        return others[int(g.integers(len(others)))]

    return _pairs(documents, generator, first)


@exercise.misconception("""
    You pair every **other** sentence: 1 with 2, 3 with 4. The pair 2 with 3 is a pair of neighbors too.
""")
def every_other_pair(documents, generator):
    halves = [[document[i : i + 2] for i in range(0, len(document) - 1, 2)] for document in documents]
    found = []
    for number, pieces in enumerate(halves):
        for first, following in pieces:
            is_next = bool(generator.random() < 1 / 2)
            found.append((first, following if is_next else _elsewhere(documents, number, generator), is_next))
    return found


@exercise.alternative
def document_first_then_sentence(documents, generator):
    def draw(texts, number, g):
        full = [place for place, document in enumerate(texts) if place != number and document]
        document = texts[g.choice(full)]
        return document[g.integers(len(document))]

    return _pairs(documents, generator, draw)


@exercise.alternative
def by_choice(documents, generator):
    found = []
    for number, document in enumerate(documents):
        others = [text for place, other in enumerate(documents) for text in other if place != number]
        for first, following in itertools.pairwise(document):
            if generator.integers(2):
                found.append([first, following, True])
            else:
                found.append([first, str(generator.choice(others)), False])
    return found


@exercise.alternative
def shuffled_at_the_end(documents, generator):
    pairs = _pairs(documents, generator, _elsewhere)
    return [pairs[place] for place in generator.permutation(len(pairs))]


@exercise.alternative
def drawn_until_another_document(documents, generator):
    texts = [(number, text) for number, document in enumerate(documents) for text in document]

    def draw(_, number, g):
        while True:
            other, text = texts[g.integers(len(texts))]
            if other != number:
                return text

    return _pairs(documents, generator, draw, coin=lambda *_: generator.random() > 0.5)
