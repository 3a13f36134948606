"""Reports about cells that come back copied, lost, changed, retyped or moved."""

from autograder.grading.field_reports.damaging import (
    ANSWER,
    TEST,
    add_to_a_test,
    become_text,
    claim_another_type,
    lose,
    lose_locked_cells,
    lose_marks,
    move_a_test_up,
    paste_copies,
    together,
    unlock_and_empty_tests,
    write_essay,
)
from autograder.grading.field_reports.report import ONE, HandIn, Report
from autograder.grading.field_reports.saving import beside
from autograder.testing.tiny_course import RIGHT

WRONG_DOUBLE = RIGHT | {"double": "def double(x):\n    return x"}
USES_LOST_IMPORT = RIGHT | {"triple": "def triple(x):\n    return round(math.fsum([x, x, x]))"}

OF_CELLS = [
    Report(
        "1",
        "A copied test cell is taken for an old format, and the submission is dropped.",
        "The real test is graded, the copy loses its name, and the student is told.",
        (HandIn("copied test", words="double-test was there more than once", damage=paste_copies(TEST)),),
    ),
    Report(
        "2",
        "A copy in one notebook keeps the student's other notebooks from being graded.",
        "A chapter is one notebook: it is graded, and the other ones, whatever is in them, do not matter.",
        (
            HandIn(
                "copy and second notebook",
                words="double-test was there more than once",
                damage=paste_copies(TEST),
                lay=beside("second.ipynb"),
            ),
        ),
    ),
    Report(
        "4",
        "Pasted cells share one identity, and a change of one changes all.",
        "An author is refused; of a student's copies the first is the answer, and the cell is named.",
        (
            HandIn(
                "four of one identity",
                words="double was there more than once",
                damage=paste_copies(ANSWER, number=3, same_id=True),
            ),
        ),
        ("autograder/authoring/source_checks_test.py::test_shared_ids_are_named",),
    ),
    Report(
        "5",
        "A deleted test leaves a submission that waits for a person for ever.",
        "The test is put back and graded.",
        (
            HandIn("test deleted", words="double-test was missing", damage=lose(TEST)),
            HandIn("failing test deleted", ONE, words="got 4", answers=WRONG_DOUBLE, damage=lose(TEST)),
        ),
        ("autograder/grading/repair_test.py::test_a_deleted_graded_cell_returns_to_its_place",),
    ),
    Report(
        "7",
        "An editor that knows no locked cells lets them vanish.",
        "They are put back from the source, in its order.",
        (HandIn("no locked cells", words="triple-hidden-test was missing", damage=lose_locked_cells),),
        ("autograder/grading/repair_test.py::test_a_notebook_without_any_cell_gets_every_graded_cell",),
    ),
    Report(
        "8",
        "Graded cells come back without metadata, and there is no grade and no error.",
        "A cell is known by its id, or else by what it defines, says, or stands behind; the student is told.",
        (
            HandIn("essay unmarked", status="needs_manual", words="why-written had lost", damage=write_essay),
            HandIn("all unmarked", words="double had lost", damage=lose_marks(ids_too=False)),
            HandIn("all unmarked without ids", words="double had lost", damage=lose_marks(ids_too=True)),
            HandIn(
                "all unmarked without ids and essay",
                status="needs_manual",
                words="why-written had lost",
                damage=together(write_essay, lose_marks(ids_too=True)),
            ),
        ),
    ),
    Report(
        "10",
        "A test that was turned into text is not run.",
        "Its type is put back, and it is run.",
        (HandIn("test as text", ONE, words="its type was put back", answers=WRONG_DOUBLE, damage=become_text),),
    ),
    Report(
        "11",
        "The metadata names another type than the cell has, and the notebook is refused.",
        "The type in the source counts.",
        (HandIn("type in doubt", damage=claim_another_type),),
    ),
    Report(
        "13",
        "Students write an import into a locked cell; it is overwritten, and nobody says so.",
        "The cell is put back, and the student is told which line is not run.",
        (
            HandIn(
                "import in a test",
                ONE,
                words="not run: import math",
                answers=USES_LOST_IMPORT,
                damage=add_to_a_test("import math"),
            ),
        ),
    ),
    Report(
        "14",
        "A student can make a locked cell editable.",
        "What the submission says about locks is not read.",
        (HandIn("tests unlocked", ONE, words="had been changed", answers=WRONG_DOUBLE, damage=unlock_and_empty_tests),),
    ),
    Report(
        "16",
        "Every fresh release warns of changed tests, because its hidden tests were taken out.",
        "An untouched release is graded without a word of repair or warning.",
        (HandIn("untouched", 0.0, answers={}),),
    ),
    Report(
        "h",
        "A test that was moved up runs before the answer, and fails without a reason.",
        "It is moved behind its answer, and the student is told.",
        (
            HandIn("test on top", words="moved behind", damage=move_a_test_up),
            HandIn(
                "test on top and copied",
                words="moved behind",
                damage=together(paste_copies(TEST), move_a_test_up),
            ),
        ),
    ),
]
