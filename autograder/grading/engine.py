"""Grade a chapter's submissions: many at a time, one writer, and nothing that one of them does stops the others."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from autograder.errors import CourseError
from autograder.grading.chapter_run import EVERYBODY, ChapterRun
from autograder.grading.database import opened
from autograder.grading.events import words_of_nbgrader
from autograder.grading.files import forget_graded, source_text, write_graded
from autograder.grading.gradebook import GradebookWriter, Written
from autograder.grading.judged import JudgeEndedError
from autograder.grading.keys import grading_key, pages_key
from autograder.grading.limits import open_many_files
from autograder.grading.noting import with_notes
from autograder.grading.on_cluster import outcomes_on_cluster
from autograder.grading.one_run import one_run_at_a_time
from autograder.grading.options import GradeOptions
from autograder.grading.outcome import Outcome, explain_failure, read
from autograder.grading.pool import KernelPool
from autograder.grading.results import ClassResult, StudentResult
from autograder.grading.running import Terms
from autograder.grading.sandbox import NONE, SandboxError
from autograder.grading.settling import settle_submission
from autograder.grading.step import Graded, failed, grade_submission
from autograder.grading.stock_way import grade_by_stock, warm_kernels_run_here
from autograder.grading.submissions import HandedIn, Submission, only_student
from autograder.grading.unchanged import unchanged_cells
from autograder.grading.workers import Kernels, cores, in_parallel
from autograder.grading.writing import in_a_sentence, no_means, no_room

SECONDS_OF_A_MINUTE = 60


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
        pool: A pool to use instead of an own one; it stays open.

    Raises:
        CourseError: bad input, no sandbox, or a gradebook that cannot be written; what was graded until then stays.
    """
    course = course.absolute()
    open_many_files()
    run = ClassRun(course, chapter, options)
    chosen = only_student(run.submissions(), options.student)
    with in_a_sentence(), one_run_at_a_time(course), words_of_nbgrader(run.log, run.results.with_suffix(".log")):
        run.begin()
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
    run.load(source_text(run.course, chapter, run.stock.source), make_secret=False)
    known = run.stock.known_students()
    return [(item.student, item.student not in known or run.is_due(item)) for item in chosen]


class ClassRun(ChapterRun):
    """One grading run over one chapter."""

    book: GradebookWriter

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the gradebook open; whatever happens, what was graded is in the results at the end."""
        with self.stock.at_work(), opened(self.stock.open_gradebook, self.stock.folder.db_url) as book:
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
                "graded",
                student=submission.student,
                status=result.status,
                points=result.standing,
                seconds=spent,
                slow_cells=outcome.graded.slow_cells,
            )
            progress(tally)

    def outcomes(self, due: list[Submission], pool: KernelPool | None) -> Iterator[tuple[Submission, Outcome]]:
        """Yield each submission with what its grading gave."""
        if not due:
            return
        if self.options.cluster is not None:
            yield from outcomes_on_cluster(self, due, self.options.cluster)
            return
        if pool is None and not warm_kernels_run_here():
            yield from self.outcomes_of_stock(due)
            return
        with contextlib.ExitStack() as stack:
            if pool is None:
                pool = stack.enter_context(KernelPool(self.options.sandbox))
            pool.start()
            kernels = Kernels(pool)
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
            handed_in = read(submission, self.kit)
            graded = grade_by_stock(self.stock, self.kit, submission, handed_in, self.book, self.cell_seconds)
            yield submission, Outcome(handed_in, self.key(handed_in), graded)

    def step(self, kernels: Kernels, submission: Submission) -> Outcome:
        """Grade one submission, in a worker; an error is this submission's result and nobody else's.

        Raises:
            CourseError: No kernel can be started, or a test checks what is no exercise; either ends the run.
        """
        handed_in = read(submission, self.kit)
        try:
            graded = self.attempt(kernels, submission.student, handed_in)
        except CourseError:
            raise
        except Exception as error:
            if no_means(error) or no_room(error):
                raise  # here, which is not the student's fault
            self.log.exception("Grading %s", submission.student)
            graded = failed(self.kit, explain_failure(error))
        return Outcome(handed_in, self.key(handed_in), graded)

    def attempt(self, kernels: Kernels, student: str, handed_in: HandedIn) -> Graded:
        """Grade one submission; once more if its kernel did not start, or its keeper or its judge has ended."""
        if handed_in.data is None:
            return failed(self.kit, handed_in.reason)
        terms = Terms(student, self.secret, self.cell_seconds, self.limits)
        again = partial(grade_submission, handed_in.data, self.kit, kernels, terms, handed_in.files)
        try:
            return again()
        except (SandboxError, JudgeEndedError) as error:
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
        told = [*result.repairs, *result.warnings]
        if result.status == "failed" and not graded.scores:
            written = self.book.record(name, None, [], timestamp=handed_in.timestamp)
            self.settle(result, written)
            forget_graded(submission)
            self.ledger.record(name, "", result)
            return result
        unchanged = partial(unchanged_cells, submission.graded, graded.notebook) if graded.notebook else set
        written = self.book.record(name, graded.scores, graded.unanswered, handed_in.timestamp, unchanged)
        if graded.notebook is not None:
            write_graded(submission, with_notes(graded.notebook, told), handed_in)
        self.settle(result, written)
        self.ledger.record(name, outcome.key, result)
        return result

    def settle(self, result: StudentResult, written: Written) -> None:
        """Bring a result up to what the gradebook says, where a person may have graded since."""
        settle_submission(result, self.kit.graded, written.scores, written.penalty)
        late = f"Handed in {written.late / SECONDS_OF_A_MINUTE:.0f} minutes late." if written.late > 0 else None
        kept = [warning for warning in result.warnings if not warning.startswith("Handed in ")]
        result.warnings = [*kept, *([late] if late else [])]

    def refresh(self, submission: Submission) -> bool:
        """Bring an unchanged submission's penalty and result up to date; False when the gradebook does not know it."""
        written = self.book.renew(submission.student)
        if not written.scores:
            return False
        self.settle(self.ledger.result.students[submission.student], written)
        return True

    def write_feedback(self, chosen: list[Submission]) -> None:
        """Write the pages that are missing, or older than the grades and comments that they show."""
        due = {}
        for submission in chosen:
            name = submission.student
            if not submission.graded.is_file():
                continue
            shown = repr((self.book.read(name), self.ledger.keys.get(name))).encode()
            page = grading_key(shown, pages_key().encode())
            if self.options.force or self.ledger.pages.get(name) != page or not self.stock.page(name).is_file():
                due[name] = page
        if not due:
            return
        for name in due:
            self.stock.page(name).unlink(missing_ok=True)  # a page that is there afterwards is a new one
        missing = self.stock.feedback(list(due))
        if missing:
            self.book.read(missing[0])  # nbgrader does not tell whether the gradebook has gone away; this does
        for name, page in due.items():
            if name in missing:
                sentence = "The feedback page could not be written; the log in results/ says why."
                self.ledger.result.students[name].warnings.append(sentence)
            else:
                self.ledger.pages[name] = page
