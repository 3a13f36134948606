"""Reports about files: names, encodings, formats, sizes, times, and what lies beside the notebook."""

from autograder.grading.field_reports.damaging import add_cell, name_kernel, old_schema, raw_on_top, save_widgets
from autograder.grading.field_reports.report import ONE, HandIn, Report
from autograder.grading.field_reports.saving import (
    as_format_3,
    as_latin1,
    as_utf16,
    beside,
    called,
    cut_short,
    endless_file,
    endless_notebook,
    mac_clutter,
    minor_4_with_ids,
    read_only,
    stamped,
    twice_under_other_names,
    with_mark,
    with_windows_line_ends,
)
from autograder.testing.tiny_course import RIGHT

COLLECTED = "autograder/collecting/collect_test.py"
HERE = "autograder/grading/field_reports"
ACCENTS = RIGHT | {"double": "def double(x):\n    # caf\xe9\n    return 2 * x"}
EMOJI = RIGHT | {"double": "def double(x):\n    # caf\xe9 \N{HOT BEVERAGE}\n    return 2 * x"}

OF_FILES = [
    Report(
        "17",
        "A renamed notebook is skipped as unknown.",
        "The one notebook that holds the chapter's cells is graded under any name; of two, none is guessed.",
        (
            HandIn("mark of a copy", words="handed in as p1 (1).ipynb", lay=called("p1 (1).ipynb")),
            HandIn("own name", words="handed in as WMS q3.ipynb", lay=called("WMS q3.ipynb")),
            HandIn("two that fit", 0.0, "failed", "found only final.ipynb, first.ipynb", lay=twice_under_other_names),
        ),
    ),
    Report(
        "19",
        "Further notebooks in the folder break grading.",
        "They are left alone, and listed.",
        (HandIn("scratch", words="scratch.ipynb", lay=beside("scratch.ipynb", b'{"cells": []}')),),
    ),
    Report(
        "20",
        "Folders in the wrong order only give the message that no notebook matches.",
        "Swapped levels are recognized, and the sentence says where a submission belongs.",
        tests=("autograder/grading/submissions_test.py::test_swapped_levels_are_recognized",),
    ),
    Report(
        "22",
        "A notebook with accents cannot be read where the locale is not UTF-8.",
        "Notebooks, results and pages are UTF-8 whatever the locale.",
        (HandIn("accents", answers=ACCENTS),),
        (f"{HERE}/odd_world_test.py::test_a_class_is_graded_in_a_locale_of_ascii_without_a_search_path",),
    ),
    Report(
        "23",
        "On Windows, files are read in a code page, and an emoji ends the run.",
        "Every file is opened with its encoding named.",
        (HandIn("emoji", answers=EMOJI),),
        (f"{HERE}/odd_world_test.py::test_a_class_is_graded_in_a_locale_of_ascii_without_a_search_path",),
    ),
    Report(
        "25",
        "Windows line ends in cells break tests, and an untouched essay counts as answered.",
        "Line ends are made one kind before anything is compared; an untouched essay stays unanswered.",
        (
            HandIn("line ends", encode=with_windows_line_ends),
            HandIn("untouched with line ends", 0.0, answers={}, encode=with_windows_line_ends),
        ),
    ),
    Report(
        "35",
        "A notebook that was made with a kernel of another name is not run.",
        "The source names the kernel; what the submission says is not read.",
        (
            HandIn("foreign kernel", damage=name_kernel({"name": "Python [root]", "display_name": "mine"})),
            HandIn("no kernel", damage=name_kernel(None)),
        ),
    ),
    Report(
        "37",
        "Saved views of widgets without their state stop the feedback page.",
        "Saved outputs are not read, and the page is written.",
        (HandIn("widget without state", damage=save_widgets),),
    ),
    Report(
        "59",
        "One enormous file fills the server.",
        "What is too large is left out or refused with its size, in archives and in folders.",
        (
            HandIn("enormous file", words="left out: data.bin", lay=endless_file),
            HandIn("enormous notebook", 0.0, "failed", "at most 64 are read", lay=endless_notebook),
        ),
        (f"{COLLECTED}::test_a_file_that_is_too_large_is_left_out",),
    ),
    Report(
        "62",
        "Cells have ids although the notebook's format knows none.",
        "Accepted.",
        (HandIn("ids too early", encode=minor_4_with_ids),),
    ),
    Report(
        "64",
        "Old notebook formats and an old schema of metadata end the run for the class.",
        "Old formats are converted; of the metadata only the cell's name is read.",
        (
            HandIn("format 3", words="old format", encode=as_format_3),
            HandIn("first schema", damage=old_schema),
        ),
    ),
    Report(
        "65",
        "An empty or invalid timestamp ends the run.",
        "The time is unknown, which is said, and the submission is graded.",
        (
            HandIn("no time", words="holds no date", lay=stamped("not a time")),
            HandIn("empty time", words="holds no date", lay=stamped("")),
            HandIn("no zone", lay=stamped("2026-02-01 22:00:00")),
            HandIn("time with offset", lay=stamped("2026-02-01T22:00:00+05:30\n")),
        ),
        ("autograder/grading/submissions_test.py::test_the_time_of_handing_in_is_utc_or_unknown",),
    ),
    Report(
        "67",
        "A due date at midnight is taken for UTC by mistake.",
        "A due date is given for a named zone and shown in both; a time that a clock change doubles is refused.",
        tests=(
            "autograder/late_policy_test.py::test_a_due_date_is_what_the_clock_of_a_zone_shows",
            "autograder/late_policy_test.py::test_a_date_that_does_not_decide_is_refused",
        ),
    ),
    Report(
        "68",
        "Students can change the file that tells when they handed in.",
        "The LMS's time replaces theirs when work is collected, and no cell reaches the file.",
        (
            HandIn(
                "time rewritten by a cell",
                damage=add_cell("open('timestamp.txt', 'w').write('2001-01-01 00:00:00 UTC')"),
                lay=stamped("2026-02-01 22:00:00 UTC\n"),
            ),
        ),
        (
            f"{HERE}/odd_world_test.py::test_the_time_of_the_lms_replaces_one_that_was_handed_in",
            f"{HERE}/field_reports_test.py::test_no_cell_changes_the_time_of_handing_in",
        ),
    ),
    Report(
        "70",
        "Brackets, plus signs, spaces and accents in names break patterns.",
        "No name is a pattern.",
        (HandIn("123 [abc]"), HandIn("a+b"), HandIn("Zo\xeb \xc5ngstr\xf6m (Jr.)"), HandIn("x.y*?'{z}' & $HOME")),
    ),
    Report(
        "71",
        "An id is written in capitals in one place and small in another, and becomes two students.",
        "The roster's form counts, and the other one is told.",
        tests=(f"{HERE}/odd_world_test.py::test_an_id_in_other_letters_is_the_same_student_and_is_told",),
    ),
    Report(
        "73",
        "Archives made on a Mac hold a shadow of every file.",
        "Shadows are left out.",
        (HandIn("shadows", lay=mac_clutter),),
        (f"{COLLECTED}::test_a_systems_clutter_is_left_out_without_a_word",),
    ),
    Report(
        "74",
        "Files and folders that are read-only stop collecting and grading again.",
        "Copies have modes of their own.",
        (HandIn("read only", lay=read_only),),
        (f"{HERE}/field_reports_test.py::test_a_read_only_submission_can_be_graded_again",),
    ),
    Report(
        "76",
        "Raw cells break grading by hand.",
        "They stay, as text.",
        (HandIn("raw cell", damage=raw_on_top),),
        ("autograder/reports/feedback_test.py::test_a_raw_cell_is_shown_as_text",),
    ),
    Report(
        "77",
        "A NUL byte in a cell hangs the kernel.",
        "The cell fails, and the rest is graded.",
        (
            HandIn("NUL in a cell", damage=add_cell("x = '\0'")),
            HandIn("NUL in an answer", ONE, words="not defined", answers=RIGHT | {"double": "a = \0"}),
        ),
    ),
    Report(
        "a",
        "A byte-order mark, UTF-16 or one byte of Latin-1 loses the submission.",
        "All are read; where letters may be wrong, that is said. What is no notebook fails in a sentence.",
        (
            HandIn("byte-order mark", answers=EMOJI, encode=with_mark),
            HandIn("UTF-16", answers=EMOJI, encode=as_utf16),
            HandIn("Latin-1", words="not saved as UTF-8", answers=ACCENTS, encode=as_latin1),
            HandIn("cut short", 0.0, "failed", "the file is not JSON", encode=cut_short),
        ),
        ("autograder/grading/step_test.py::test_what_is_no_notebook_fails_in_a_sentence",),
    ),
]
