"""What a student gets to see of the hidden cases, on the page of a real chapter."""

import json
from pathlib import Path

import numpy as np
import pytest

from autograder.build import answered_notebook, model_answers
from autograder.commands.demo import make_course
from autograder.exercise import find_exercise
from autograder.grading.engine import grade_chapter
from autograder.grading.options import GradeOptions
from autograder.grading.pool import KernelPool
from autograder.grading.results import ExerciseResult

pytestmark = pytest.mark.slow
CHAPTER, EXERCISE, CASE = "01_attention", "attention_scores", "a batch of several heads"
RIGHT_WITHOUT_HEADS = """
def attention_scores(query, key):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    return scores if query.ndim == 2 else 2 * scores
""".strip()
SEED = 5
DIGITS_SAID = 4  # after the point, of the numbers in what a check says
DIGITS_THAT_TELL = 5  # a number with fewer may stand in a drawing on the page by chance


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ExerciseResult]:
    """Return page and result of an answer that passes all visible cases and fails a hidden one."""
    root = Path(__file__).parents[2]
    course = tmp_path_factory.mktemp("hidden") / "course"
    make_course(root, course, CHAPTER)
    answers = model_answers(root, CHAPTER) | {EXERCISE: RIGHT_WITHOUT_HEADS}
    path = course / "submitted" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(answered_notebook(root, CHAPTER, answers)), encoding="utf-8")
    with KernelPool() as pool:
        result = grade_chapter(course, CHAPTER, GradeOptions(seed=SEED), pool=pool).students["ada"].exercises[EXERCISE]
    page = (course / "feedback" / "ada" / CHAPTER / f"{CHAPTER}.html").read_text(encoding="utf-8")
    return page, result


def test_the_failed_case_is_named_with_its_first_difference(graded: tuple[str, ExerciseResult]) -> None:
    page, result = graded
    assert 0 < result.points < result.maximum
    for words in (f"Case “{CASE}”", f"seed {result.seed}", "but it should be"):
        assert words in page


def test_neither_the_code_nor_the_inputs_of_a_hidden_case_are_shown(graded: tuple[str, ExerciseResult]) -> None:
    page, result = graded
    exercise = find_exercise(EXERCISE)
    assert result.seed is not None
    cases = [case for case in exercise.cases if case.hidden]
    assert CASE in [case.name for case in cases]
    for case in cases:
        if case.name != CASE:
            assert f"Case “{case.name}”" not in page
        for given in exercise.program(case, result.seed).steps[0].args:
            for number in np.ravel(given):
                assert f"{abs(number):.{DIGITS_THAT_TELL}f}" not in page, (case.name, number)
                assert f"{abs(number):.{DIGITS_SAID}f}" not in (result.message or ""), (case.name, number)
    assert "HIDDEN TESTS" not in page
    assert "draw.normal" not in page
