"""Grade a chapter's submissions: many at a time, one writer, and nothing that one of them does stops the others."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import nbformat

from autograder.course_folder import chapter_names
from autograder.errors import CourseError
from autograder.grading.events import JsonLog, run_log, words_of_nbgrader
from autograder.grading.files import forget_graded, source_text, write_graded, write_if_new
from autograder.grading.gradebook import GradebookWriter, Written, opened
from autograder.grading.keys import course_secret, environment_key, grading_key
from autograder.grading.kit import ChapterKit, chapter_kit
from autograder.grading.ledger import Ledger
from autograder.grading.limits import Limits
from autograder.grading.options import GradeOptions
from autograder.grading.pool import KernelPool
from autograder.grading.results import ClassResult, StudentResult, overall_status, results_path
from autograder.grading.running import Terms
from autograder.grading.sandbox import NONE, SandboxError
from autograder.grading.settling import settled
from autograder.grading.step import Graded, failed, grade_submission
from autograder.grading.stock import StockCourse
from autograder.grading.stock_way import grade_by_stock, warm_kernels_run_here
from autograder.grading.submissions import (
    HandedIn,
    Submission,
    find_submissions,
    only_student,
    read_submission,
)
from autograder.grading.verdicts import quote
from autograder.grading.workers import Kernels, cores, in_parallel

SECONDS_OF_A_MINUTE = 60
NO_LIMIT_CELL_SECONDS = 600.0  # where nbgrader_config.py sets no limit for a cell
EVERYBODY = GradeOptions()


@dataclass
class Tally:
    """How far a run is.

    Args:
        total: Submissions that are graded in this run.
        done: Those that are finished.
        failed: Those of them of which nothing could be graded.
        student: The one that was finished last, or what is being done.
    """

    total: int
    done: int = 0
    failed: int = 0
    student: str = ""


Progress = Callable[[Tally], None]


@dataclass
class Outcome:
    """One submission's way through a worker."""

    handed_in: HandedIn
    key: str
    graded: Graded


def grade_chapter(
    course: Path,
    chapter: str,
    options: GradeOptions = EVERYBODY,
    progress: Progress | None = None,
    pool: KernelPool | None = None,
) -> ClassResult:
    """Grade the chapter's submissions into gradebook, feedback pages and `results/CHAPTER.json`.

    Args:
        course: The folder that holds nbgrader_config.py.
        chapter: The chapter's folder name, such as `01_attention`.
        options: Whom to grade, and how.
        progress: Called at the start and after each submission.
        pool: A started pool to use instead of an own one.

    Raises:
        CourseError: bad input, no sandbox, or a gradebook that cannot be written; what was graded until then stays.
    """
    run = ClassRun(course.absolute(), chapter, options)
    chosen = only_student(run.submissions(), options.student)
    with words_of_nbgrader(run.log, run.results.with_suffix(".log")):
        run.prepare()
        with run.writing():
            run.grade(chosen, progress or (lambda _: None), pool)
            if options.feedback:
                run.write_feedback(chosen)
    students = run.ledger.result.students
    return ClassResult(chapter, {item.student: students[item.student] for item in chosen})


def planned(course: Path, chapter: str, options: GradeOptions) -> list[tuple[str, bool]]:
    """Return each student that a run would look at, and whether it would grade the submission anew."""
    run = ClassRun(course.absolute(), chapter, options)
    chosen = only_student(run.submissions(), options.student)
    run.load(source_text(run.course, chapter, run.stock.source))
    return [(item.student, run.is_due(item)) for item in chosen]


class ClassRun:
    """One grading run over one chapter."""

    kit: ChapterKit
    book: GradebookWriter
    base_key: str

    def __init__(self, course: Path, chapter: str, options: GradeOptions = EVERYBODY):
        """Read the configuration; find the chapter."""
        self.course, self.chapter, self.options = course, chapter, options
        self.log = run_log(chapter)
        self.stock = StockCourse(course, chapter, self.log)
        self.check_chapter()
        self.results = results_path(course, chapter)
        self.events = JsonLog(self.results.with_suffix(".log.jsonl"))
        self.ledger = Ledger(course, chapter)
        self.cell_seconds = float(options.timeout or self.stock.cell_timeout or NO_LIMIT_CELL_SECONDS)
        usual = Limits()
        self.limits = replace(
            usual,
            seconds=options.notebook_timeout or usual.seconds,
            memory_mb=options.memory or usual.memory_mb,
        )

    def check_chapter(self) -> None:
        """Refuse a chapter that has neither a source notebook nor a source to build it from."""
        if self.stock.source.is_file():
            return
        sources = self.stock.source.parent.parent
        known = sorted({*chapter_names(self.course), *(path.parent.name for path in sources.glob("*/*.ipynb"))})
        if self.chapter not in known:
            there = f"there are: {', '.join(known)}" if known else "there is none at all"
            raise CourseError(f"There is no chapter {self.chapter!r} in {self.course}; {there}.")

    def submissions(self) -> list[Submission]:
        """Return everybody's submission."""
        folder = self.stock.folder
        submitted, graded, feedback = (
            self.course / step
            for step in (folder.submitted_directory, folder.autograded_directory, folder.feedback_directory)
        )
        return find_submissions(submitted, graded, feedback, self.chapter)

    def prepare(self) -> None:
        """Bring the instructor's notebook up to its source, and the gradebook up to the notebook."""
        text = source_text(self.course, self.chapter, self.stock.source)
        write_if_new(self.stock.source, text)
        self.load(text)
        self.ledger.write()  # what a killed run left in its journal
        registered = grading_key(text.encode(), repr(self.stock.config).encode(), self.stock.folder.db_url.encode())
        if self.ledger.registered != registered or not self.stock.is_registered():
            self.stock.register()
            self.ledger.registered = registered
            self.ledger.write()

    def load(self, text: str, make_secret: bool = True) -> None:
        """Make the kit out of the instructor's notebook, and the key that all submissions share."""
        source = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
        self.kit = chapter_kit(self.chapter, source, self.stock.config)
        self.secret = course_secret(self.course, self.options.seed, make_secret)
        limits = f"{self.cell_seconds} {self.limits}"
        self.base_key = grading_key(
            self.kit.prepared.encode(), environment_key().encode(), limits.encode(), self.secret
        )

    def is_due(self, submission: Submission) -> bool:
        """Return whether a submission has changed, or its grading failed, since it was last graded."""
        name = submission.student
        known = self.ledger.result.students.get(name)
        if self.options.force or known is None or known.status == "failed" or not submission.graded.is_file():
            return True
        return self.ledger.keys.get(name) != self.key(read_submission(submission, self.kit.marked))

    def key(self, handed_in: HandedIn) -> str:
        """Return the key of all that a submission's result depends on."""
        return grading_key(self.base_key.encode(), *handed_in.parts)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the gradebook open; whatever happens, what was graded is in the results at the end."""
        with self.stock.at_work(), opened(self.stock.open_gradebook) as book:
            changes = self.results.with_suffix(".changes.jsonl")
            self.book = GradebookWriter(book, self.chapter, self.stock.config, changes, self.log)
            try:
                yield
            finally:
                self.ledger.keep_only(submission.student for submission in self.submissions())
                self.ledger.write()

    def grade(self, chosen: list[Submission], progress: Progress, pool: KernelPool | None) -> None:
        """Grade what is due; bring the rest up to what the gradebook says now."""
        due = [submission for submission in chosen if self.is_due(submission)]
        names = {submission.student for submission in due}
        for submission in chosen:
            if submission.student not in names and not self.refresh(submission):
                due.append(submission)
        tally = Tally(len(due))
        progress(tally)
        self.events.write("start", chapter=self.chapter, due=len(due), unchanged=len(chosen) - len(due))
        for submission, outcome in self.outcomes(due, pool):
            began = time.monotonic()
            result = self.keep(submission, outcome)
            tally.done, tally.student = tally.done + 1, submission.student
            tally.failed += result.status == "failed"
            spent = outcome.graded.seconds | {"write": round(time.monotonic() - began, 4)}
            self.events.write(
                "graded", student=submission.student, status=result.status, points=result.points, seconds=spent
            )
            progress(tally)

    def outcomes(self, due: list[Submission], pool: KernelPool | None) -> Iterator[tuple[Submission, Outcome]]:
        """Yield each submission with what its grading gave."""
        if not due:
            return
        if pool is None and not warm_kernels_run_here():
            yield from self.outcomes_of_stock(due)
            return
        with contextlib.ExitStack() as stack:
            kernels = Kernels(pool or stack.enter_context(KernelPool(self.options.sandbox)))
            self.events.write("sandbox", kind=kernels.pool.kind, warning=kernels.pool.warning)
            workers = max(1, min(self.options.workers or cores(), len(due)))
            yield from in_parallel(partial(self.step, kernels), due, workers, kernels.stop)

    def outcomes_of_stock(self, due: Iterable[Submission]) -> Iterator[tuple[Submission, Outcome]]:
        """Grade with nbgrader's own kernels, one by one, where ours do not run and that was asked for."""
        if self.options.sandbox != NONE:
            raise SandboxError(
                "The sandbox does not run on this system, and grading runs students' code; "
                "`--sandbox none` grades unprotected, with nbgrader's own kernels."
            )
        self.events.write("sandbox", kind=NONE, warning="nbgrader's own kernels, unprotected")
        for submission in due:
            handed_in = read_submission(submission, self.kit.marked)
            graded = grade_by_stock(self.stock, self.kit, submission, handed_in, self.book, self.cell_seconds)
            yield submission, Outcome(handed_in, self.key(handed_in), graded)

    def step(self, kernels: Kernels, submission: Submission) -> Outcome:
        """Grade one submission, in a worker; an error is this submission's result and nobody else's.

        Raises:
            SandboxError: No kernel can be started, which ends the run.
        """
        handed_in = HandedIn()
        try:
            handed_in = read_submission(submission, self.kit.marked)
            graded = self.attempt(kernels, submission.student, handed_in)
        except SandboxError:
            raise
        except Exception as error:
            self.log.exception("Grading %s", submission.student)
            graded = failed(self.kit, explain_failure(error))
        return Outcome(handed_in, self.key(handed_in), graded)

    def attempt(self, kernels: Kernels, student: str, handed_in: HandedIn) -> Graded:
        """Grade one submission; once more if its kernel did not start."""
        if handed_in.data is None:
            return failed(self.kit, handed_in.reason)
        terms = Terms(student, self.secret, self.cell_seconds, self.limits)
        again = partial(grade_submission, handed_in.data, self.kit, kernels, terms, handed_in.files)
        try:
            return again()
        except SandboxError as error:
            if kernels.stopped:
                raise
            self.log.warning("Grading %s: %s; trying again", student, error)
            return again()

    def keep(self, submission: Submission, outcome: Outcome) -> StudentResult:
        """Write one submission's result everywhere: gradebook, graded notebook, and last the ledger with its key.

        A run that is killed before the last of these grades the submission again, and to the same end.
        """
        graded, handed_in, name = outcome.graded, outcome.handed_in, submission.student
        result = graded.result
        result.repairs = [*handed_in.notes, *result.repairs]
        if result.status == "failed":
            self.book.record(name, None, [], timestamp=handed_in.timestamp)
            forget_graded(submission)
            self.ledger.record(name, "", result)
            return result
        written = self.book.record(name, graded.scores, graded.unanswered, handed_in.timestamp)
        if graded.notebook is not None:
            write_graded(submission, graded.notebook, handed_in)
        self.settle(result, written)
        self.ledger.record(name, outcome.key, result)
        return result

    def settle(self, result: StudentResult, written: Written) -> None:
        """Bring a result up to what the gradebook says, where a person may have graded since."""
        result.exercises = settled(result.exercises, self.kit.graded, written.scores)
        result.status = overall_status(result.exercises)
        late = f"Handed in {written.late / SECONDS_OF_A_MINUTE:.0f} minutes late." if written.late > 0 else None
        kept = [warning for warning in result.warnings if not warning.startswith("Handed in ")]
        result.warnings = [*kept, *([late] if late else [])]

    def refresh(self, submission: Submission) -> bool:
        """Bring an unchanged submission's result up to date; False when the gradebook does not know it."""
        written = self.book.read(submission.student)
        if not written.scores:
            return False
        self.settle(self.ledger.result.students[submission.student], written)
        return True

    def write_feedback(self, chosen: list[Submission]) -> None:
        """Write the pages that are missing, or older than the grades and comments that they show."""
        due = {}
        for submission in chosen:
            name = submission.student
            if self.ledger.result.students[name].status == "failed" or not submission.graded.is_file():
                continue
            shown = repr((self.book.read(name), self.ledger.keys.get(name))).encode()
            page = grading_key(shown)
            if self.options.force or self.ledger.pages.get(name) != page or not self.stock.page(name).is_file():
                due[name] = page
        if not due:
            return
        missing = self.stock.feedback(list(due))
        for name, page in due.items():
            if name in missing:
                sentence = "The feedback page could not be written; the log in results/ says why."
                self.ledger.result.students[name].warnings.append(sentence)
            else:
                self.ledger.pages[name] = page


def explain_failure(error: BaseException) -> str:
    """Return in one sentence why a submission could not be graded."""
    return f"The notebook could not be graded: {type(error).__name__}: {quote(str(error))}"
