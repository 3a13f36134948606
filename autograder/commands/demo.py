"""`course demo`: a made-up class, graded, to look around in."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.common import console, course_root, need_instructor_packages, resolve_chapter
from autograder.commands.grade import grade_and_show
from autograder.commands.lab import is_root
from autograder.errors import CourseError

NAME = "demo"
EXAMPLES = "Examples: `course demo`; `course demo --out /tmp/class`."

MARK = ".made-by-course-demo"  # says that the folder may be made anew
CHAPTER = "01_attention"
CANVAS_ARCHIVE, FIRST_CANVAS_USER = "canvas.zip", 101


def run(
    out: Annotated[Path, typer.Option("--out", help="The folder to make; what an earlier demo left goes.")] = Path(
        "demo"
    ),
    chapter: Annotated[str, typer.Argument(help="The chapter that was handed in.")] = CHAPTER,
) -> None:
    """Make a small class of 12 made-up submissions in a course folder of its own, and grade it."""
    need_instructor_packages()
    from autograder.course_folder import chapter_names

    course = course_root()
    chapter = resolve_chapter(chapter, chapter_names(course))
    make_course(course, out, chapter)
    from autograder.grading.demo_class import make_class

    students = make_class(course, chapter, into=out)
    set_due_date(out, chapter)
    pack_as_canvas(out, chapter)
    console().print(f"{len(students)} made-up students handed in {chapter}; grading begins.")
    from autograder.grading.options import GradeOptions

    grade_and_show(out.absolute(), chapter, GradeOptions())
    say_where_things_are(out, chapter, students[0])


def make_course(course: Path, out: Path, chapter: str) -> None:
    """Make a course folder with one chapter: configuration, instructor's notebook and students' notebook.

    Raises:
        CourseError: `out` holds something that no demo made.
    """
    from autograder.authoring.making import make_chapter
    from autograder.course_folder import CONFIG_NAME, chapter_path, source_notebook_path, source_path

    if out.exists() and not (out / MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise CourseError(f"--out: {out} exists and was not made by `course demo`; name another folder.")
    made = make_chapter(source_path(course, chapter), course)
    texts = {source_notebook_path(out, chapter): made.instructor, chapter_path(out, chapter): made.student}
    if out.exists():
        shutil.rmtree(out)
    for path, text in texts.items():
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    shutil.copy(course / CONFIG_NAME, out / CONFIG_NAME)
    (out / MARK).touch()


def set_due_date(course: Path, chapter: str) -> None:
    """Give the chapter a due date that one submission misses."""
    from autograder.grading.demo_class import DUE
    from autograder.grading.events import run_log
    from autograder.grading.stock import StockCourse

    StockCourse(course.absolute(), chapter, run_log(chapter)).set_due_date(DUE)


def pack_as_canvas(course: Path, chapter: str) -> None:
    """Pack the class once more as Canvas would, with a roster, for trying `course collect`."""
    import csv
    import zipfile

    students = sorted(folder.parent.name for folder in (course / "submitted").glob(f"*/{chapter}"))
    with (course / "roster.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("id", "first_name", "last_name", "email", "lms_user_id"))
        for number, student in enumerate(students, start=FIRST_CANVAS_USER):
            table.writerow((student, *student.partition("-")[::2], f"{student}@class.example", number))
    with zipfile.ZipFile(course / CANVAS_ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, student in enumerate(students, start=FIRST_CANVAS_USER):
            name = "".join(filter(str.isalnum, student))
            notebook = course / "submitted" / student / chapter / f"{chapter}.ipynb"
            archive.write(notebook, f"{name}_{number}_{number}00_{chapter}.ipynb")


def typed(program: str, start: Path) -> str:
    """Return how to call a program of this installation from a folder: by its name where the shell finds it.

    Args:
        program: Such as `course`.
        start: The folder from which it is called.
    """
    own = shutil.which(program, path=str(Path(sys.executable).parent))
    if own is None or shutil.which(program) == own:
        return program
    try:
        near = os.path.relpath(own, start)
    except ValueError:  # on another drive of Windows
        near = own
    return shlex.quote(min(near, own, key=len))


def say_where_things_are(out: Path, chapter: str, student: str) -> None:
    """Name the files that were made and the commands that go on from here."""
    allow = " --allow-root" if is_root() else ""
    folder, course, jupyter = shlex.quote(str(out)), typed("course", Path.cwd()), typed("jupyter", out)
    lines = [
        f"A feedback page: {out}/feedback/{student}/{chapter}/{chapter}.html",
        f"The gradebook: {out}/gradebook.db",
        "Next:",
        f"  cd {folder} && {jupyter} lab{allow}     then Nbgrader > Formgrader: read answers, comment, change points",
        f"  {course} grade {chapter} --course {folder}     grades what is new",
        f"  {course} report {chapter} --course {folder}     a page about the class",
        f"  {course} export {chapter} --to csv --course {folder}     points as CSV",
    ]
    for line in lines:
        console().print(line, markup=False, soft_wrap=True)
