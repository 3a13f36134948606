"""Grade a class in which every student but one is hostile."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from autograder.build import build_all
from autograder.grading.attacks.handing_in import HAND_INS, SECRET_FILE, HandIn, hand_in, harm_of
from autograder.grading.engine import grade_chapter
from autograder.grading.pool import KernelPool
from autograder.grading.results import ClassResult
from autograder.testing.tiny_course import CHAPTER, POINTS, RIGHT, make_tiny_course

HONEST = HandIn("M", "honest", "Everything is solved.", "full points", RIGHT, POINTS["double"] + POINTS["triple"])
CELL_TIMEOUT = 20


@dataclass(frozen=True)
class Graded:
    """What a hostile submission got, and what harm it did."""

    points: float
    harm: list[str]


def grade_attackers(folder: Path, pool: KernelPool) -> dict[str, Graded]:
    """Have a class graded twice: with what the students had handed in before, and with what they hand in now."""
    course = make_tiny_course(folder / "course", CELL_TIMEOUT)
    build_all(course)
    secret = f"secret-{secrets.token_hex(8)}"
    (folder / SECRET_FILE).write_text(secret)
    had_success = [attack for attack in HAND_INS if attack.before]
    for attack in had_success:
        hand_in(course, attack, attack.before, hostile=False)
    first = grade_chapter(course, CHAPTER, pool=pool)
    for attack in had_success:
        assert points_of(first, attack) == HONEST.deserved, attack.key
    for attack in [*HAND_INS, HONEST]:
        hand_in(course, attack, attack.answers)
    second = grade_chapter(course, CHAPTER, pool=pool)
    return {
        attack.key: Graded(points_of(second, attack), harm_of(course, attack, second.students[attack.key], secret))
        for attack in [*HAND_INS, HONEST]
    }


def points_of(result: ClassResult, attack: HandIn) -> float:
    """Return a student's points."""
    return sum(exercise.points for exercise in result.students[attack.key].exercises.values())
