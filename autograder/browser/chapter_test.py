"""Chapter 01 as a learner meets it: solved in JupyterLab, validated, handed in and graded."""

import json
import re

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.browser.conftest import CHAPTER, LEARNER, MISTAKEN, GradedClass
from autograder.browser.lab import Lab
from autograder.browser.story import BROKEN, PREDICTION, TYPED_LINE, WRITTEN_ANSWER, Story
from autograder.exercise import find_exercise
from autograder.grading.cells import gives_points, grade_id, role_of

pytestmark = pytest.mark.slow
WRITTEN = "why_the_root"
FOREIGN = ("Traceback", "File ", "CheckFailed", "autograder/", "\x1b")  # what no learner needs to see


def exercises(released: NotebookNode) -> list[str]:
    """Return the chapter's exercises that a machine checks, in order."""
    roles = [role_of(cell) for cell in released.cells]
    return [role[0] for role in roles if role is not None and role[1] == "test"]


def maximum(released: NotebookNode, exercise: str) -> float:
    """Return the points of an exercise."""
    graded = [cell for cell in released.cells if gives_points(cell)]
    return sum(cell.metadata["nbgrader"]["points"] for cell in graded if role_of(cell)[0] == exercise)


def test_every_exercise_is_answered_and_its_check_says_so_in_one_line(story: Story, released: NotebookNode) -> None:
    assert list(story.verdicts) == exercises(released)
    for exercise, said in story.verdicts.items():
        assert re.fullmatch(rf"{exercise}: passed, \d+ cases \(seed \d+\)", said.strip())


def test_no_cell_of_the_solved_chapter_raises_or_warns(story: Story) -> None:
    assert story.complaints == {}


def test_predictions_are_put_next_to_what_was_measured(story: Story, released: NotebookNode) -> None:
    assert len(story.predictions) == sum(PREDICTION in cell.source for cell in released.cells) > 0
    assert all("You predicted 0.5; measured:" in said for said in story.predictions)


def test_the_chapter_shows_plots_and_a_widget(story: Story) -> None:
    assert len(story.pictures) > 2


def test_a_misconception_is_named_without_a_traceback(story: Story) -> None:
    words = find_exercise(BROKEN).misconceptions["softmax_over_queries"].words
    assert " ".join(words.split()) in " ".join(story.diagnosis.split())
    assert not any(part in story.diagnosis for part in FOREIGN)


def test_validate_names_the_one_exercise_that_fails(story: Story, released: NotebookNode) -> None:
    assert "The following cell failed" in story.validated_broken
    failing = [name for name in exercises(released) if re.search(rf"check\({name}\)", story.validated_broken)]
    assert failing == [BROKEN]


def test_validate_is_content_with_the_solved_chapter(story: Story) -> None:
    assert "Success! Your notebook passes all the tests." in story.validated_mended


def test_ctrl_s_saves_the_answers(story: Story, lab: Lab) -> None:
    saved = nbformat.read(lab.root / CHAPTER / f"{CHAPTER}.ipynb", as_version=nbformat.NO_CONVERT)
    sources = {grade_id(cell): cell.source for cell in saved.cells}
    assert TYPED_LINE in sources["expected_score_std"]
    assert sources[f"{WRITTEN}-written"] == WRITTEN_ANSWER


def test_course_grade_prints_both_students(graded: GradedClass) -> None:
    assert graded.exit_code == 0, graded.output
    assert LEARNER in graded.output
    assert MISTAKEN in graded.output


def test_the_points_stand_in_the_gradebook(graded: GradedClass, released: NotebookNode) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{graded.course / 'gradebook.db'}") as gradebook:
        for student, wrong in ((LEARNER, ()), (MISTAKEN, (BROKEN,))):
            right = [name for name in exercises(released) if name not in wrong]
            submission = gradebook.find_submission(CHAPTER, student)
            assert submission.score == sum(maximum(released, name) for name in right)
            assert submission.max_score == sum(maximum(released, name) for name in (*exercises(released), WRITTEN))
            assert submission.needs_manual_grade


def test_the_results_hold_the_same_points_and_the_misconception(graded: GradedClass, released: NotebookNode) -> None:
    results = json.loads((graded.course / "results" / f"{CHAPTER}.json").read_text())["students"]
    for name in exercises(released):
        assert results[LEARNER]["exercises"][name]["points"] == maximum(released, name)
    assert results[LEARNER]["repairs"] == []
    assert results[LEARNER]["status"] == "needs_manual"
    wrong = results[MISTAKEN]["exercises"][BROKEN]
    assert (wrong["points"], wrong["misconception"]) == (0, "softmax_over_queries")
