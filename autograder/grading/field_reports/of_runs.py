"""Reports about what happens while a notebook runs: time, memory, output, modules, and stray words."""

from autograder.grading.field_reports.damaging import add_cell, put_first, save_a_huge_output, together
from autograder.grading.field_reports.report import ONE, HandIn, Report
from autograder.grading.field_reports.saving import HELPER, beside
from autograder.testing.tiny_course import RIGHT

ENGINE, SESSION = "autograder/grading/engine_test.py", "autograder/grading/session_test.py"
LIMITS = "autograder/grading/limits_test.py"
HERE = "autograder/grading/field_reports"
DOUBLE, TRIPLE = RIGHT["double"], RIGHT["triple"]
STUB = "raise NotImplementedError()"
HOARD = "held = []\nwhile True:\n    held.append(bytearray(2**20))"
MUTTER = """
import sys, threading, time
def mutter():
    for _ in range(300):
        print("still here", file=sys.stderr)
        time.sleep(0.01)
threading.Thread(target=mutter, daemon=True).start()
""".lstrip()


def double(body: str) -> dict[str, str]:
    """Return right answers but for `double`, whose cell is this."""
    return RIGHT | {"double": body}


def triple(body: str) -> dict[str, str]:
    """Return right answers but for `triple`, whose cell is this."""
    return RIGHT | {"triple": body}


OF_RUNS = [
    Report(
        "26",
        "Huge outputs make the graded notebook unusable; one endless line passes every limit on lines.",
        "Saved outputs are not read, and new ones are cut by bytes and by lines.",
        (
            HandIn("huge output saved", damage=save_a_huge_output),
            HandIn("many lines", damage=add_cell("for _ in range(300_000): print('a line')")),
            HandIn("one endless line", damage=add_cell("print('x' * 5_000_000)")),
        ),
        (
            f"{LIMITS}::test_long_output_is_cut_and_the_notebook_goes_on",
            f"{HERE}/field_reports_test.py::test_no_graded_notebook_is_large",
        ),
    ),
    Report(
        "28",
        "A loop that eats memory ends the kernel, and the tests that did not run count as passed.",
        "The cell gets a memory error; a test without a verdict has no points.",
        (HandIn("hoarding loop", ONE, words="`double` is not defined", answers=double(f"{HOARD}\n{DOUBLE}")),),
        (f"{LIMITS}::test_a_memory_bomb_is_an_error_in_its_cell_alone",),
    ),
    Report(
        "29",
        "After a timeout the submission waits to be graded for ever.",
        "It is graded, with the timeout in the notebook; a loop that cannot be interrupted costs what comes after.",
        (
            HandIn(
                "waits for ever", shown="CellTimeoutError", damage=put_first("import asyncio\nawait asyncio.sleep(60)")
            ),
            HandIn(
                "deaf loop",
                ONE,
                "partly",
                "could not be interrupted",
                answers=triple("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"),
            ),
        ),
        ("autograder/grading/step_test.py::test_the_end_of_a_kernel_costs_only_what_comes_after",),
    ),
    Report(
        "31",
        "The kernel is killed from outside, and the grader waits for ever.",
        "The end of a kernel is seen at once; the submission keeps what was graded before.",
        (
            HandIn(
                "crash of the process",
                ONE,
                "partly",
                "signal 11",
                answers=triple("import ctypes\nctypes.string_at(0)"),
            ),
        ),
        (f"{SESSION}::test_a_process_that_ends_itself_is_noticed",),
    ),
    Report(
        "32",
        "An honest long cell gets a KeyboardInterrupt that nobody explains.",
        "The limit is the course's or the command's, and the message names it.",
        (
            HandIn(
                "slow function",
                ONE,
                words="did not finish within",
                answers=triple("import time\ndef triple(x):\n    time.sleep(60)"),
            ),
        ),
        ("autograder/grading/verdicts_test.py::test_a_timeout_names_the_limit_and_not_the_interrupt",),
    ),
    Report(
        "34",
        "No limit of memory: a generator that is made a list ends the grader.",
        "That exercise fails with a memory error, and nothing else does.",
        (
            HandIn(
                "generator as list",
                ONE,
                words="MemoryError",
                answers=double("def double(x):\n    return list(bytearray(2**20) for _ in iter(int, 1))"),
            ),
        ),
        (f"{LIMITS}::test_memory_of_all_processes_together_is_limited",),
    ),
    Report(
        "38",
        "Interactive controls at the top level run into the time limit.",
        "They run once, and the notebook goes on.",
        (
            HandIn(
                "interact",
                damage=add_cell("from ipywidgets import interact\n@interact(x=(0, 9))\ndef show(x=1):\n    return x"),
            ),
        ),
    ),
    Report(
        "40",
        "Tests fail, a score of 0 is printed, and points are given all the same.",
        "Points come from verdicts; what is printed is no score.",
        (
            HandIn(
                "printed score",
                ONE,
                words="got 16",
                answers=double("def double(x):\n    print('Score: 3')\n    print(3)\n    return x * x"),
            ),
        ),
    ),
    Report(
        "41",
        "A test of 0 points fails the run.",
        "It is run, and gives nothing.",
        tests=(f"{HERE}/odd_world_test.py::test_a_test_of_no_points_is_run_and_gives_none",),
    ),
    Report(
        "53",
        "Students leave the line that raises NotImplementedError beside good code.",
        "What the cell defines below the line still counts, and the student is told.",
        (
            HandIn("stub below", words="NotImplementedError", answers=double(f"{DOUBLE}\n{STUB}")),
            HandIn("stub above", words="NotImplementedError", answers=double(f"{STUB}\n{DOUBLE}")),
            HandIn(
                "stub inside",
                ONE,
                words="NotImplementedError",
                answers=double("def double(x):\n    raise NotImplementedError()\n    return 2 * x"),
            ),
        ),
    ),
    Report(
        "55",
        "Magic lines in answers are taken out or refused.",
        "They run as in the student's own notebook; one that is not known fails in its cell.",
        (
            HandIn(
                "magics",
                answers=double(f"%%capture\n{DOUBLE}"),
                damage=together(add_cell("%%sql\nselect 1"), add_cell("%matplotlib inline\n%time 1 + 1")),
            ),
        ),
    ),
    Report(
        "56",
        "A module is missing only where it is graded.",
        "Files beside the notebook can be imported; a library that is not installed is named.",
        (
            HandIn("helper beside", answers=double("from helper import double"), lay=beside("helper.py", HELPER)),
            HandIn(
                "missing library", ONE, words="no_such_library", answers=double(f"import no_such_library\n{DOUBLE}")
            ),
        ),
        ("autograder/grading/step_test.py::test_files_beside_the_notebook_can_be_read",),
    ),
    Report(
        "58",
        "A warning on stderr costs the points.",
        "Warnings cost nothing.",
        (
            HandIn(
                "warns",
                answers=double(
                    "import warnings\ndef double(x):\n    warnings.warn('old', DeprecationWarning)\n    return 2 * x"
                ),
            ),
        ),
        ("autograder/grading/step_test.py::test_warnings_and_words_on_stderr_cost_nothing",),
    ),
    Report(
        "61",
        "A huge file is written while grading, and the result is wrong.",
        "The file is refused in its cell.",
        (
            HandIn(
                "writes a huge file",
                ONE,
                words="`double` is not defined",
                answers=double(f"open('big', 'wb').truncate(2**40)\n{DOUBLE}"),
            ),
        ),
        (f"{LIMITS}::test_large_files_and_many_files_are_refused",),
    ),
    Report(
        "g",
        "A cell deletes its own folder: the points are stored, and the notebook is gone.",
        "Notebook and page are written by the grader, from memory.",
        (
            HandIn(
                "folder deleted", damage=put_first("import os, shutil\nshutil.rmtree(os.getcwd(), ignore_errors=True)")
            ),
        ),
        (f"{HERE}/field_reports_test.py::test_whatever_is_graded_has_its_notebook_and_its_page",),
    ),
    Report(
        "j",
        "A thread that writes to stderr during a test costs the points.",
        "What is said on stderr costs nothing.",
        (HandIn("muttering thread", answers=double(MUTTER + DOUBLE)),),
    ),
]
