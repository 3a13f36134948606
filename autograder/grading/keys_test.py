"""Seeds and keys: the same for the same things, and different for different ones."""

from pathlib import Path

from autograder.grading.keys import (
    SEED_KEY,
    course_secret,
    environment,
    environment_key,
    grading_code,
    grading_key,
    seed_for,
)
from autograder.verdict import LARGEST_SEED

STUDENTS = 200


def test_the_secret_is_drawn_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    secret = course_secret(tmp_path)
    assert secret == course_secret(tmp_path)
    assert (tmp_path / SEED_KEY).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "build").iterdir()] == [SEED_KEY.name]


def test_a_number_takes_the_secrets_place_and_nothing_is_written(tmp_path: Path) -> None:
    assert course_secret(tmp_path, 3) == course_secret(tmp_path, 3) != course_secret(tmp_path, 4)
    assert course_secret(tmp_path, make=False) == b""
    assert list(tmp_path.iterdir()) == []


def test_seeds_differ_by_student_chapter_exercise_and_secret() -> None:
    names = [("ada", "01", "f"), ("bea", "01", "f"), ("ada", "02", "f"), ("ada", "01", "g"), ("a", "da01", "f")]
    seeds = [seed_for(b"k", *triple) for triple in names] + [seed_for(b"l", "ada", "01", "f")]
    assert len(set(seeds)) == len(seeds)
    works = {seed_for(b"k", "ada", "01", "f", work) for work in ("", "first", "second")}
    assert len(works) == 3
    many = {seed_for(b"k", str(student), "01", "f") for student in range(STUDENTS)}
    assert len(many) > 0.95 * STUDENTS
    assert all(0 <= seed < LARGEST_SEED for seed in many)


def test_parts_of_a_key_do_not_run_into_each_other() -> None:
    assert grading_key(b"ab", b"c") != grading_key(b"a", b"bc") != grading_key(b"abc")
    assert grading_key(b"a") == grading_key(b"a")


def test_the_environment_has_one_key() -> None:
    assert environment() == environment.__wrapped__()
    assert {"Python", "torch", "autograder", "course_lib"} <= environment().keys()
    assert environment_key() == environment_key()


def test_code_that_grades_counts_and_reports_and_tests_do_not() -> None:
    package = Path(__file__).parents[1]
    names = {path.relative_to(package).as_posix() for path in grading_code(package)}
    assert {"judge.py", "grading/step.py", "exercises/attention/softmax.py"} < names
    left_out = ("reports/", "commands/", "learning/", "collecting/", "testing/", "grading/attacks/")
    assert not any(name.endswith("_test.py") or name.startswith(left_out) for name in names)
