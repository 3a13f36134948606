"""`course grade`: a chapter's submissions into points, feedback pages and results."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.common import (
    EXIT_INTERRUPTED,
    EXIT_PROBLEMS,
    ChapterArgument,
    CourseOption,
    console,
    course_root,
    error_console,
    handed_in_chapter,
    need_instructor_packages,
    say_error,
)

NAME = "grade"
EXAMPLES = (
    "Examples: `course grade 01_attention`; `course grade 01_attention --student ada --force`; "
    "`course grade 01_attention --course demo --dry-run`."
)


def run(
    chapter: ChapterArgument,
    student: Annotated[str | None, typer.Option("--student", help="Grade this student only.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Grade again what has not changed.")] = False,
    feedback: Annotated[
        bool, typer.Option("--feedback/--no-feedback", help="Write the feedback pages as well.")
    ] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be graded.")] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Notebooks at a time.", show_default="one on each core")
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            min=0.1,
            help="Seconds for one cell; a check keeps its own 10 seconds of the processor for each case.",
            show_default="nbgrader_config.py's",
        ),
    ] = None,
    notebook_timeout: Annotated[
        float | None,
        typer.Option(
            "--notebook-timeout",
            min=10,
            help="Seconds for one notebook, the start of its process included.",
            show_default="1200",
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            "--memory",
            min=256,
            help="Megabytes for one notebook; half of the minimum is what a plain one takes.",
            show_default="2048",
        ),
    ] = None,
    sandbox: Annotated[
        str, typer.Option("--sandbox", help="auto (the strongest that works), namespaces, landlock or none.")
    ] = "auto",
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Draw the inputs from this number.", show_default="the course's secret"),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            help="The gradebook's URL, sqlite:///FILE or postgresql://USER@HOST/NAME.",
            show_default="nbgrader_config.py's",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Grade on the Dask cluster of this scheduler, as tcp://HOST:8786."),
    ] = None,
    course: CourseOption = None,
) -> None:
    """Grade submitted/STUDENT/CHAPTER/CHAPTER.ipynb of everybody into nbgrader's gradebook.

    Students' code runs in a sandbox; the checks are judged outside of it. Feedback pages go to feedback/, the
    results to results/CHAPTER.json. What is graded already and has not changed is left alone, also after a run
    that was ended early. Exit code 1 when a submission could not be graded in whole; the others are graded all
    the same.
    """
    need_instructor_packages()
    from autograder.grading.options import GradeOptions

    folder = course_root(course)
    chapter = handed_in_chapter(folder, chapter)
    options = GradeOptions(
        student=student,
        force=force,
        feedback=feedback,
        workers=workers,
        timeout=timeout,
        notebook_timeout=notebook_timeout,
        memory=memory,
        sandbox=sandbox,
        seed=seed,
        database=database,
        cluster=cluster,
    )
    if dry_run:
        announce(folder, chapter, options)
    elif grade_and_show(folder, chapter, options):
        raise typer.Exit(EXIT_PROBLEMS)


def announce(folder: Path, chapter: str, options) -> None:
    """Say of each submission whether it would be graded."""
    from autograder.grading.engine import planned

    for name, due in planned(folder, chapter, options):
        console().print(f"{name}: {'would be graded' if due else 'is graded and unchanged'}", markup=False)


def grade_and_show(folder: Path, chapter: str, options) -> bool:
    """Grade with progress on stderr and the table on stdout; return whether there were problems.

    Raises:
        typer.Exit: Ctrl-C ended the run; what was graded until then is kept.
    """
    need_instructor_packages()
    try:
        with progress_bar() as bar, warming(options) as process:
            from autograder.grading.engine import grade_chapter
            from autograder.grading.pool import KernelPool
            from autograder.grading.results import results_path

            own = contextlib.closing(KernelPool(options.sandbox, process=process)) if process else None
            with own or contextlib.nullcontext() as pool:
                result = grade_chapter(folder, chapter, options, on_bar(bar), pool)
    except KeyboardInterrupt:
        say_error(f"Stopped. What was graded is kept; `course grade {chapter}` goes on from there.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    show(result)
    say_sandbox(folder, chapter)
    console().print(f"Results: {results_path(folder, chapter)}", soft_wrap=True, markup=False)
    if options.feedback:
        console().print(f"Feedback pages: {folder / 'feedback'}", soft_wrap=True, markup=False)
    return result.has_problems


@contextlib.contextmanager
def warming(options):
    """Have a process load the notebooks' libraries while this one loads its own; None where it is not needed."""
    from autograder.grading.sandbox import SandboxError
    from autograder.grading.warm_process import WarmProcess

    process = None
    if options.cluster is None:
        with contextlib.suppress(SandboxError):  # the run says it, if it comes to that
            process = WarmProcess()
    try:
        yield process
    finally:
        if process is not None:
            process.close()


def progress_bar():
    """Return the bar on stderr: students done, failed, the rate, and the time that is left."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}", markup=False),
        TimeRemainingColumn(),
        console=error_console(),
        transient=True,
    )


def on_bar(bar):
    """Return what shows a run's progress on the bar."""
    task = bar.add_task("Preparing", total=None, words="")

    def update(tally) -> None:
        bar.update(task, total=tally.total, completed=tally.done, description="Grading")
        speed = bar.tasks[0].speed
        rate = f"{60 * speed:.0f} a minute" if speed else ""
        bad = f"{tally.failed} failed" if tally.failed else ""
        bar.update(task, words=", ".join(filter(None, (bad, rate))))

    return update


def say_sandbox(folder: Path, chapter: str) -> None:
    """Say what the sandbox of the last run did not stop, if it was not the full one."""
    from autograder.grading.events import last_event
    from autograder.grading.results import results_path

    event = last_event(results_path(folder, chapter).with_suffix(".log.jsonl"), "sandbox")
    if event.get("warning"):
        say_error(event["warning"])


def show(result) -> None:
    """Print the class: points, misconceptions, and what was mended or went wrong."""
    from autograder.commands.common import count
    from autograder.reports.points_table import misconception_counts, notes, points_table

    out = console()
    out.print(points_table(result))
    for exercise, name, number in misconception_counts(result):
        out.print(f"{exercise}: {count(number, 'student')} with {name}", markup=False)
    for sentence in notes(result):
        out.print(sentence, markup=False, soft_wrap=True)
