import json
from pathlib import Path

import pytest

from autograder.build import answered_notebook
from autograder.course_folder import chapter_path
from autograder.errors import CourseError
from autograder.grading.results import (
    ClassResult,
    ExerciseResult,
    StudentResult,
    read_results,
    results_path,
    write_results,
)
from autograder.reports.class_report import (
    SlowCell,
    by_sentence,
    facility_picture,
    last_changes,
    remark,
    slow_cells,
    write_report,
)
from autograder.reports.item_statistics import items
from autograder.testing.tiny_course import CHAPTER, RIGHT, make_tiny_course

WORDS = "Each column of your weights sums to 1"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Make a tiny course with results of three students, two of whom wrote the same."""
    make_tiny_course(tmp_path)
    believes = ExerciseResult(0.0, 3.0, misconception="softmax_over_queries", message="Not yet.", seconds=2.5)
    exercises = {"scaled_dot_product_attention": believes, "triple": ExerciseResult(3.0, 3.0, seconds=0.1)}
    result = ClassResult(CHAPTER)
    result.students["ada & co"] = StudentResult("graded", ["A cell was <b>lost</b>."], ["Handed in late."], exercises)
    result.students["ben"] = StudentResult("graded", exercises=exercises)
    result.students["cem"] = StudentResult("failed", warnings=["It is no notebook."])
    write_results(tmp_path, result)
    return tmp_path


def test_the_page_tells_points_beliefs_failures_and_repairs(course: Path) -> None:
    page = write_report(course, CHAPTER).read_text(encoding="utf-8")
    for words in (
        "3 of 6",
        WORDS,
        "ada &amp; co, ben",
        "It is no notebook.",
        "&lt;b&gt;lost",
        "2.50 s",
        "Handed in late.",
    ):
        assert words in page


def test_the_page_loads_nothing_and_runs_nothing(course: Path) -> None:
    page = write_report(course, CHAPTER).read_text(encoding="utf-8")
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert "http://" not in page.replace("http-equiv", "")
    assert "https://" not in page


def test_every_picture_has_words(course: Path) -> None:
    page = write_report(course, CHAPTER).read_text(encoding="utf-8")
    assert page.count("<img ") == page.count('<img alt="') == 2
    assert 'alt=""' not in page


def test_a_chapter_without_results_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="course grade 01_tiny"):
        write_report(tmp_path, CHAPTER)


def test_a_class_of_which_nothing_could_be_graded_has_a_page(course: Path) -> None:
    failed = ClassResult(CHAPTER, {"cem": StudentResult("failed", warnings=["It is no notebook."])})
    write_results(course, failed)
    assert "No submission could be graded." in write_report(course, CHAPTER).read_text(encoding="utf-8")


def test_only_the_last_runs_changes_of_standing_grades_are_told(course: Path) -> None:
    results = results_path(course, CHAPTER)
    starts = [{"time": f"2026-01-0{day}T10:00:00.500+00:00", "event": "start"} for day in (1, 3)]
    results.with_suffix(".log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in starts))
    changes = [
        ("2026-01-01T10:00:05+00:00", 0.0, 1.0),
        ("2026-01-03T10:00:05+00:00", 1.0, 2.0),
        ("2026-01-03T10:00:05+00:00", None, 2.0),
        ("2026-01-03T10:00:06+00:00", 2.0, 2.0),
    ]
    lines = [
        {
            "time": time,
            "student": "ada",
            "cell": "double-test",
            "before": {"auto_score": old},
            "after": {"auto_score": new},
        }
        for time, old, new in changes
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines) + '{"cut short'
    results.with_suffix(".changes.jsonl").write_text(text)
    assert [(change.before, change.after) for change in last_changes(course, CHAPTER)] == [("1", "2")]


def test_slow_cells_are_those_of_the_latest_grading(course: Path) -> None:
    log = results_path(course, CHAPTER).with_suffix(".log.jsonl")
    train, plot = "cell 3: train(model)", "cell 5: plot"
    graded = [("ada & co", {train: 9.0, plot: 4.0}), ("ada & co", {train: 2.5}), ("ben", {train: 3.5}), ("gone", {})]
    lines = [{"event": "graded", "student": student, "slow_cells": cells} for student, cells in graded]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert slow_cells(course, read_results(course, CHAPTER)) == [SlowCell(train, 2, 3.5, "ben")]
    page = write_report(course, CHAPTER).read_text(encoding="utf-8")
    assert "Slow cells beside the checks" in page
    assert "train(model)" in page


def test_answers_are_compared_without_the_starter(course: Path) -> None:
    from autograder.reports.class_report import answers_of_class

    for student in ("ada & co", "ben"):
        path = course / "autograded" / student / CHAPTER / f"{CHAPTER}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(answered_notebook(course, CHAPTER, RIGHT)), encoding="utf-8")
    answers, starter = answers_of_class(course, ClassResult(CHAPTER, dict.fromkeys(("ada & co", "ben", "cem"))))
    assert sorted(answers) == ["ada & co", "ben"]
    assert "return 2 * x" in answers["ben"]
    assert "return 2 * x" not in starter
    assert chapter_path(course, CHAPTER).is_file() == bool(starter)


def test_a_ring_of_five_with_the_same_answers_is_listed(course: Path) -> None:
    ring = [f"ring-{number}" for number in range(5)]
    long = (
        "def double(x):\n"
        + "".join(f"    x = x + {number} - {number} * 1\n" for number in range(30))
        + "    return 2 * x"
    )
    for student in ring:
        path = course / "autograded" / student / CHAPTER / f"{CHAPTER}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(answered_notebook(course, CHAPTER, RIGHT | {"double": long})), encoding="utf-8")
    write_results(course, ClassResult(CHAPTER, {student: StudentResult("graded") for student in ring}))
    page = write_report(course, CHAPTER).read_text(encoding="utf-8")
    assert "Groups of submissions with the same answers" in page
    assert f'<td class="number">5</td><td class="words"><p class="message quiet">{", ".join(ring)}</p>' in " ".join(
        page.replace(">\n", ">").split()
    ).replace("> <", "><")


def test_students_of_the_roster_without_a_submission_are_named(course: Path) -> None:
    assert "without a submission" not in write_report(course, CHAPTER).read_text(encoding="utf-8")
    (course / "roster.csv").write_text("id,first_name,last_name\nben,Ben,B\neve,Eve,E\n", encoding="utf-8")
    page = write_report(course, CHAPTER).read_text(encoding="utf-8")
    assert "1 of the class without a submission:" in page
    assert "eve" in page


def test_a_late_penalty_is_taken_off_and_told(course: Path) -> None:
    result = read_results(course, CHAPTER)
    result.students["ben"].penalty = 0.5
    write_results(course, result)
    page = write_report(course, CHAPTER).read_text(encoding="utf-8")
    assert "2.5 of 6" in page
    assert "0.5 of 3 points are taken off for handing in late." in page


def test_what_is_said_of_many_stands_once_with_their_names() -> None:
    said = by_sentence({"ada": ["late", "late", "mended"], "ben": ["mended"], "cem": []})
    assert list(said.items()) == [("mended", ["ada", "ben"]), ("late", ["ada"])]


def test_an_exercise_of_which_answers_wait_is_not_called_hard(course: Path) -> None:
    result = read_results(course, CHAPTER)
    for student, points in (("ada & co", 0.0), ("ben", 0.0)):
        status = "needs_manual" if student == "ben" else "graded"
        result.students[student].exercises["why"] = ExerciseResult(points, 2.0, status=status)
    row = next(row for row in items(result) if row.name == "why")
    assert (row.waiting, row.none, remark(row)) == (1, 1, "not all is read yet")
    assert "why" not in str(facility_picture([row]))
