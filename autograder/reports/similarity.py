"""Find answers that are more alike than a class's answers are: a place to look, never a verdict.

Names and comments do not count, nor does what the starter gave, nor what many of the class wrote. The
fingerprints are those of copydetect (winnowing, Schleimer et al. 2003, as in Stanford's MOSS).
"""

import io
import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from copydetect import CodeFingerprint

LENGTH, WINDOW = 20, 4  # characters of filtered code in a fingerprint, and of how many one is kept
FEW_FINGERPRINTS = 8  # an answer with fewer of its own says nothing
COMMON_SHARE, COMMON_STUDENTS = 0.1, 4  # what more than these wrote is common knowledge
LEAST_SHARE = 0.5


@dataclass(frozen=True)
class Alike:
    """Two submissions, and the part of the smaller one's own fingerprints that both hold."""

    first: str
    second: str
    share: float
    fingerprints: int


def alike(answers: Mapping[str, str], starter: str) -> list[Alike]:
    """Return the pairs that share more than half of what is their own, the most alike first.

    Args:
        answers: The code of each student's answers.
        starter: The code that everybody was given.
    """
    given = np.array(list(prints(starter)), dtype=np.int64)
    own = {student: prints(code, given) for student, code in answers.items()}
    counts = Counter(itertools.chain.from_iterable(own.values()))
    common = max(COMMON_STUDENTS, COMMON_SHARE * len(answers))
    rare = {student: {one for one in found if counts[one] <= common} for student, found in own.items()}
    pairs = Counter(
        pair for holders in holders_of(rare).values() for pair in itertools.combinations(sorted(holders), 2)
    )
    found = []
    for (first, second), shared in pairs.items():
        smaller = min(len(rare[first]), len(rare[second]))
        if smaller >= FEW_FINGERPRINTS and shared / smaller > LEAST_SHARE:
            found.append(Alike(first, second, shared / smaller, shared))
    return sorted(found, key=lambda pair: (-pair.share, -pair.fingerprints, pair.first, pair.second))


def same_answers(answers: Mapping[str, str], starter: str) -> list[list[str]]:
    """Return the groups of two and more whose answers are all the same, the largest first.

    However many there are: here, unlike in `alike`, what many wrote counts too.

    Args:
        answers: The code of each student's answers.
        starter: The code that everybody was given.
    """
    given = np.array(list(prints(starter)), dtype=np.int64)
    groups: dict[frozenset[int], list[str]] = {}
    for student in sorted(answers):
        own = frozenset(prints(answers[student], given))
        if len(own) >= FEW_FINGERPRINTS:
            groups.setdefault(own, []).append(student)
    return sorted((group for group in groups.values() if len(group) > 1), key=lambda group: (-len(group), group))


def prints(code: str, given: np.ndarray | None = None) -> set[int]:
    """Return the fingerprints of Python code, less those that were given."""
    if not code.strip():
        return set()
    boilerplate = [] if given is None else given
    return set(CodeFingerprint("answers.py", LENGTH, WINDOW, boilerplate, fp=io.StringIO(code)).hashes)


def holders_of(rare: Mapping[str, set[int]]) -> dict[int, list[str]]:
    """Return for each fingerprint the students who have it."""
    holders: dict[int, list[str]] = {}
    for student, found in rare.items():
        for one in found:
            holders.setdefault(one, []).append(student)
    return holders
