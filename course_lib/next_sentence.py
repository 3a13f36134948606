"""Next sentence prediction: which of two sentences is the one that really follows?"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

SHARE_NEXT = 0.5  # Devlin et al. 2018, §3.1


def next_sentence_pairs(
    documents: Sequence[Sequence[str]], generator: np.random.Generator
) -> list[tuple[str, str, bool]]:
    """Pair each sentence with its successor, or, in half of the cases, with a sentence of another document.

    Every two neighbors of a document give one pair (first, second, is_next), and a fair coin says which kind.

    Raises:
        ValueError: there are neighbors, but no other document holds a sentence.

    Source: Devlin et al. 2018, §3.1, task 2, arXiv 1810.04805. The paper's sentences are spans of text; in the
    authors' code the label 0 says "next", and here True does.
    """
    pairs = []
    for place, document in enumerate(documents):
        others = [text for number, other in enumerate(documents) if number != place for text in other]
        if len(document) > 1 and not others:
            raise ValueError(f"`documents` holds no sentence outside document {place}; pass at least two documents.")
        for first, following in pairwise(document):
            is_next = bool(generator.random() < SHARE_NEXT)
            second = following if is_next else others[int(generator.integers(len(others)))]
            pairs.append((first, second, is_next))
    return pairs
