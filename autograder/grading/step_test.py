"""One submission, from its bytes to its points: damage is mended, and nothing a student writes forges a verdict."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbgrader.utils import determine_grade

from autograder.build import answered_notebook
from autograder.grading.cells import gives_points, grade_id
from autograder.grading.files import source_text
from autograder.grading.kit import ChapterKit, chapter_kit
from autograder.grading.limits import Limits
from autograder.grading.pool import KernelPool
from autograder.grading.running import Terms
from autograder.grading.step import Graded, grade_submission
from autograder.grading.stock import load_configuration
from autograder.grading.verdicts import VERDICT_TYPE
from autograder.testing.checked_course import CHAPTER, FIRST, POINTS, RIGHT, SECOND, make_checked_course

CELL_SECONDS = 6.0
TERMS = Terms("ada", b"secret", CELL_SECONDS, Limits(seconds=60))
FULL = {FIRST: 3.0, SECOND: 3.0, "why": 0.0}
FORGED_FIELDS = {"passed": True, "exercise": FIRST, "case": None, "misconception": None, "message": "ok", "seed": 1}
FORGE = f"from IPython.display import publish_display_data\npublish_display_data({{{VERDICT_TYPE!r}: {FORGED_FIELDS}}})"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a course with two checked exercises."""
    return make_checked_course(tmp_path_factory.mktemp("step") / "course")


@pytest.fixture(scope="module")
def kit(course: Path) -> ChapterKit:
    """Return the chapter's kit."""
    source = nbformat.reads(source_text(course, CHAPTER, course), as_version=nbformat.NO_CONVERT)
    return chapter_kit(CHAPTER, source, load_configuration(course))


@pytest.fixture
def grade(course: Path, kit: ChapterKit, warm_pool: KernelPool) -> Callable[..., Graded]:
    """Return a function that grades answers, after damage to the notebook or to its bytes."""

    def graded(
        answers: dict[str, str],
        damage: Callable[[NotebookNode], object] = lambda notebook: None,
        encode: Callable[[str], bytes] = str.encode,
    ) -> Graded:
        notebook = answered_notebook(course, CHAPTER, answers)
        damage(notebook)
        return grade_submission(encode(json.dumps(notebook)), kit, warm_pool, TERMS)

    return graded


def points(graded: Graded) -> dict[str, float]:
    """Return the points by exercise."""
    return {name: exercise.points for name, exercise in graded.result.exercises.items()}


def notebook_of(graded: Graded) -> NotebookNode:
    """Return the graded notebook, which is valid."""
    assert graded.notebook is not None
    notebook = nbformat.reads(graded.notebook, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    return notebook


def test_a_right_submission_has_full_marks_and_says_nothing(grade: Callable) -> None:
    graded = grade(RIGHT)
    assert points(graded) == FULL
    assert (graded.result.status, graded.result.repairs, graded.result.warnings) == ("graded", [], [])
    assert all(exercise.message is None for exercise in graded.result.exercises.values())
    assert graded.unanswered == ["why-written"]


def test_an_untouched_submission_has_no_points(grade: Callable) -> None:
    graded = grade({})
    assert points(graded) == dict.fromkeys(POINTS, 0.0)
    assert "NotImplementedError" in str(graded.result.exercises[FIRST].message)


def test_a_written_answer_waits_for_a_person(grade: Callable) -> None:
    graded = grade(RIGHT | {"why-written": "Since I say so."})
    assert graded.result.status == "needs_manual"
    assert graded.scores["why-written"] is None


def test_the_graded_notebook_tells_stock_tools_the_same_points(grade: Callable) -> None:
    graded = grade({FIRST: RIGHT[FIRST], SECOND: f"def {SECOND}(d_k, scaled):\n    return d_k"})
    for cell in notebook_of(graded).cells:
        if gives_points(cell) and cell.cell_type == "code":
            assert determine_grade(cell)[0] == graded.scores[str(grade_id(cell))]
    assert graded.result.exercises[SECOND].misconception == "variance_instead_of_deviation"


def test_the_seed_is_the_students_own_and_new_for_other_work(
    course: Path, grade: Callable, kit: ChapterKit, warm_pool: KernelPool
) -> None:
    def data(answers: dict[str, str]) -> bytes:
        return json.dumps(answered_notebook(course, CHAPTER, answers)).encode()

    seed = grade(RIGHT).result.exercises[FIRST].seed
    assert seed == grade(RIGHT).result.exercises[FIRST].seed
    others = [
        grade_submission(data(RIGHT), kit, warm_pool, replace(TERMS, student="bea")),
        grade_submission(data(RIGHT | {SECOND: "pass"}), kit, warm_pool, TERMS),
    ]
    assert len({seed, *(other.result.exercises[FIRST].seed for other in others)}) == 3


def test_two_gradings_differ_in_nothing_but_seconds(grade: Callable) -> None:
    one, two = grade(RIGHT), grade(RIGHT)
    assert (one.notebook, one.scores) == (two.notebook, two.scores)


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(FORGE, id="publishes a verdict"),
        pytest.param("import autograder\nautograder.check = check = lambda *a, **k: None", id="patches check"),
        pytest.param("import autograder.judge as j\nj.find_problem = lambda *a: None", id="patches the judge"),
        pytest.param(
            "import numpy as np\nnp.testing.assert_allclose = np.allclose = lambda *a, **k: True", id="patches allclose"
        ),
        pytest.param(
            "class Yes(float):\n    __eq__ = lambda *a: True\n    __hash__ = None\n"
            f"def {FIRST}(query, key):\n    return Yes(0)",
            id="is equal to everything",
        ),
        pytest.param(
            "get_ipython().input_transformers_cleanup.append(lambda lines: ['pass'])", id="rewrites later cells"
        ),
        pytest.param(
            "import autograder.grading.remote as r\n"
            "r.serve_inherited = r.serve = lambda *a: None\nr.answer = lambda *a: {'run': None}",
            id="does not serve",
        ),
        pytest.param(
            "import autograder.encoding, autograder.codec\n"
            "autograder.codec.encode = autograder.encoding.encode = lambda *a: b'x' * 100",
            id="sends nonsense",
        ),
        pytest.param("import os; os._exit(0)", id="ends itself"),
    ],
)
def test_no_attack_earns_points(attack: str, grade: Callable) -> None:
    def first_cell(notebook: NotebookNode) -> None:
        place = next(i for i, cell in enumerate(notebook.cells) if grade_id(cell) == FIRST)
        notebook.cells.insert(place, nbformat.v4.new_code_cell(attack))

    graded = grade({FIRST: attack}, first_cell)
    assert points(graded) == dict.fromkeys(POINTS, 0.0)
    assert all(graded.result.exercises[name].message for name in (FIRST, SECOND))
    students_own = [cell for cell in notebook_of(graded).cells if cell.cell_type == "code" and not gives_points(cell)]
    assert not any(VERDICT_TYPE in output.get("data", {}) for cell in students_own for output in cell.outputs)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("import os; os._exit(3)", "exit code 3"),
        ("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", "could not be interrupted"),
    ],
)
def test_the_end_of_a_kernel_costs_only_what_comes_after(harm: str, words: str, grade: Callable) -> None:
    graded = grade({FIRST: RIGHT[FIRST], SECOND: harm})
    assert points(graded) == FULL | {SECOND: 0.0}
    assert graded.result.status == "partly"
    assert graded.result.exercises[SECOND].status == "failed"
    assert words in str(graded.result.exercises[SECOND].message)


def test_an_endless_loop_costs_its_exercise_alone(grade: Callable) -> None:
    graded = grade(RIGHT | {FIRST: f"def {FIRST}(query, key):\n    while True:\n        pass"})
    assert points(graded) == FULL | {FIRST: 0.0}
    assert "in time" in str(graded.result.exercises[FIRST].message)


def test_a_loop_in_a_cell_is_stopped_and_the_rest_goes_on(grade: Callable) -> None:
    graded = grade(RIGHT | {FIRST: f"{RIGHT[FIRST]}\nwhile True:\n    pass"})
    assert points(graded) == FULL


def test_warnings_and_words_on_stderr_cost_nothing(grade: Callable) -> None:
    loud = "    import sys, warnings\n    warnings.warn('old')\n    print('careful', file=sys.stderr)\n"
    head, _, body = RIGHT[FIRST].partition("\n")
    assert points(grade(RIGHT | {FIRST: f"{head}\n{loud}{body}"})) == FULL


def test_a_cell_after_the_test_may_call_check(grade: Callable) -> None:
    def one_more(notebook: NotebookNode) -> None:
        notebook.cells.append(nbformat.v4.new_code_cell(f"check({FIRST})"))

    last = notebook_of(grade(RIGHT, one_more)).cells[-1]
    assert [output.output_type for output in last.outputs] != ["error"]


def edit_a_test(notebook: NotebookNode) -> None:
    """Make a test milder."""
    cell = next(cell for cell in notebook.cells if grade_id(cell) == f"{FIRST}-test")
    cell.source = "print('passed')"


def move_a_test(notebook: NotebookNode) -> None:
    """Put a test in front of everything."""
    cell = next(cell for cell in notebook.cells if grade_id(cell) == f"{SECOND}-test")
    notebook.cells.remove(cell)
    notebook.cells.insert(0, cell)


def retype_a_test(notebook: NotebookNode) -> None:
    """Turn a test into text."""
    place = next(i for i, cell in enumerate(notebook.cells) if grade_id(cell) == f"{FIRST}-test")
    old = notebook.cells[place]
    notebook.cells[place] = nbformat.v4.new_markdown_cell(old.source, metadata=old.metadata, id=old.id)


def lose_every_mark(notebook: NotebookNode) -> None:
    """Take nbgrader's metadata off every cell."""
    for cell in notebook.cells:
        cell.metadata = NotebookNode()


def raise_the_points(notebook: NotebookNode) -> None:
    """Claim that a test gives a hundred points, and that it may be edited."""
    for cell in notebook.cells:
        if gives_points(cell):
            cell.metadata.nbgrader.update(points=100, solution=False, locked=False)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (edit_a_test, "had been changed"),
        (move_a_test, "moved behind"),
        (retype_a_test, "its type was put back"),
        (lose_every_mark, "lost its nbgrader metadata"),
        (raise_the_points, ""),
    ],
)
def test_damage_is_mended_and_costs_nothing(damage: Callable, words: str, grade: Callable) -> None:
    graded = grade(RIGHT, damage)
    assert points(graded) == FULL
    assert words in " ".join(graded.result.repairs)
    assert points(grade({}, damage)) == dict.fromkeys(POINTS, 0.0)


def as_old_format(text: str) -> bytes:
    """Return the notebook in format 3, as a file on disk."""
    notebook = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
    old = nbformat.v3.nbbase.new_notebook(worksheets=[nbformat.v3.nbbase.new_worksheet()])
    for cell in notebook.cells:
        entry = {"cell_type": cell.cell_type, "metadata": dict(cell.metadata)}
        entry |= (
            {"input": cell.source, "outputs": [], "language": "python", "collapsed": False}
            if cell.cell_type == "code"
            else {"source": cell.source}
        )
        old.worksheets[0].cells.append(entry)
    return json.dumps(old).encode()


@pytest.mark.parametrize(
    "encode",
    [
        pytest.param(lambda text: text.encode("utf-8-sig"), id="BOM"),
        pytest.param(lambda text: text.encode("utf-16"), id="UTF-16"),
        pytest.param(lambda text: text.replace("\\n", "\\r\\n").encode(), id="CRLF"),
        pytest.param(lambda text: text.replace("Write", "caf\xe9").encode("latin-1"), id="Latin-1"),
        pytest.param(as_old_format, id="format 3"),
    ],
)
def test_every_encoding_and_format_is_read(encode: Callable[[str], bytes], grade: Callable) -> None:
    assert points(grade(RIGHT, encode=encode)) == FULL


def clutter(notebook: NotebookNode) -> None:
    """Leave what programs leave: widgets' state, a foreign kernel, huge outputs, null and doubled ids."""
    notebook.metadata = NotebookNode(
        kernelspec={"name": "Python [root]", "display_name": "x"}, widgets={"application/x": {"version": 1}}
    )
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    code[0].outputs = [nbformat.v4.new_output("stream", text="x" * 5_000_000)]
    extra = copy.deepcopy(code[0])
    notebook.cells.insert(0, extra)
    notebook.cells.insert(0, nbformat.v4.new_raw_cell("\x00 raw"))
    notebook.cells[0]["id"] = None


def test_clutter_is_left_behind(grade: Callable) -> None:
    graded = grade(RIGHT, clutter)
    assert points(graded) == FULL
    notebook = notebook_of(graded)
    assert notebook.metadata.kernelspec.name == "python3"
    assert "widgets" not in notebook.metadata
    assert len(str(graded.notebook)) < 1_000_000


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"[1]", b"null", b'{"cells": 3}', b"[" * 100_000, b"{}"])
def test_what_is_no_notebook_fails_in_a_sentence(data: bytes, kit: ChapterKit, warm_pool: KernelPool) -> None:
    graded = grade_submission(data, kit, warm_pool, TERMS)
    assert graded.result.status == "failed"
    assert graded.result.warnings[0].endswith(".")
    assert (graded.notebook, graded.scores) == (None, {})
    assert {name: exercise.maximum for name, exercise in graded.result.exercises.items()} == POINTS


def test_files_beside_the_notebook_can_be_read(course: Path, kit: ChapterKit, warm_pool: KernelPool) -> None:
    answers = RIGHT | {FIRST: f"from helper import {FIRST}"}
    data = nbformat.writes(answered_notebook(course, CHAPTER, answers)).encode()
    files = {"helper.py": f"import numpy as np\n{RIGHT[FIRST]}".encode()}
    assert points(grade_submission(data, kit, warm_pool, TERMS, files)) == FULL
