"""Plain `nbgrader autograde` runs students' notebooks in the sandbox when its provisioner is named."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder.build import answered_notebook, build_all
from autograder.grading.events import run_log
from autograder.grading.files import source_text, write_if_new
from autograder.grading.pool import SANDBOX_VARIABLE, KernelPool
from autograder.grading.provisioner import NAME
from autograder.grading.sandbox import NAMESPACES
from autograder.grading.stock import StockCourse
from autograder.testing.tiny_course import CHAPTER, RIGHT, make_tiny_course

pytestmark = pytest.mark.slow
BIN = Path(sys.executable).parent
LOOK_AROUND = """
from pathlib import Path


def double(x):
    return 2 * x


print(Path.cwd(), Path({course!r}).exists())
"""


def test_nbgrader_grades_in_the_sandbox_with_the_same_points(tmp_path: Path, warm_pool: KernelPool) -> None:
    if warm_pool.kind != NAMESPACES:
        pytest.skip("kernel: user namespaces do not work here")
    course = make_tiny_course(tmp_path / "course")
    build_all(course)
    stock = StockCourse(course, CHAPTER, run_log(CHAPTER))
    write_if_new(stock.source, source_text(course, CHAPTER, stock.source))
    stock.register()
    handed_in = course / "submitted" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    handed_in.parent.mkdir(parents=True)
    answers = RIGHT | {"double": LOOK_AROUND.format(course=str(course)).strip()}
    nbformat.write(answered_notebook(course, CHAPTER, answers), handed_in)
    environment = {
        **os.environ,
        "JUPYTER_DEFAULT_PROVISIONER_NAME": NAME,
        SANDBOX_VARIABLE: NAMESPACES,
        "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]]),
    }
    command = [str(BIN / "nbgrader"), "autograde", CHAPTER]
    done = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sum(score.points for score in stock.scores("ada").values()) == 6
    graded = nbformat.read(course / "autograded" / "ada" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    printed = [output.text for cell in graded.cells for output in cell.get("outputs", []) if "text" in output]
    assert printed == ["/home/student/work False\n"]
