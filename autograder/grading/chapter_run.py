"""One chapter before its submissions are graded: configuration, instructor's notebook, and what has changed."""

import math
from dataclasses import replace
from pathlib import Path

import nbformat

from autograder.course_folder import chapter_names
from autograder.errors import CourseError
from autograder.grading.events import JsonLog, run_log
from autograder.grading.files import source_text, write_if_new
from autograder.grading.keys import course_secret, environment_key, grading_key
from autograder.grading.kit import ChapterKit, chapter_kit
from autograder.grading.ledger import Ledger
from autograder.grading.limits import Limits
from autograder.grading.options import GradeOptions
from autograder.grading.results import results_path
from autograder.grading.sandbox import NONE
from autograder.grading.stock import StockCourse
from autograder.grading.submissions import HandedIn, Submission, find_submissions, read_submission

NO_LIMIT_CELL_SECONDS = 600.0  # where nbgrader_config.py sets no limit for a cell
EVERYBODY = GradeOptions()


class ChapterRun:
    """One run over one chapter: what it works with, and which submissions are due."""

    kit: ChapterKit
    secret: bytes
    base_key: str

    def __init__(self, course: Path, chapter: str, options: GradeOptions = EVERYBODY):
        """Read the configuration; find the chapter."""
        self.course, self.chapter, self.options = course, chapter, options
        self.log = run_log(chapter)
        self.stock = StockCourse(course, chapter, self.log, options.database)
        self.check_chapter()
        self.results = results_path(course, chapter)
        self.events = JsonLog(self.results.with_suffix(".log.jsonl"))
        self.ledger = Ledger(course, chapter)
        self.cell_seconds = cell_seconds(options.timeout, self.stock.cell_timeout)
        usual = Limits()
        self.limits = replace(
            usual,
            seconds=options.notebook_timeout or usual.seconds,
            cpu_seconds=max(usual.cpu_seconds, math.ceil(options.notebook_timeout or 0)),
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

    def begin(self) -> None:
        """Begin to write: the ledger is read anew, for a run may have ended since it was."""
        self.ledger = Ledger(self.course, self.chapter)
        self.prepare()

    def prepare(self) -> None:
        """Bring the instructor's notebook up to its source, and the gradebook up to the notebook."""
        text = source_text(self.course, self.chapter, self.stock.source)
        write_if_new(self.stock.source, text)
        self.load(text)
        self.ledger.write()  # what a killed run left in its journal
        registered = grading_key(text.encode(), repr(self.stock.config).encode(), self.stock.folder.db_url.encode())
        known = self.stock.is_registered()  # asked first: it refuses a database that is not this course's
        if self.ledger.registered != registered or not known:
            self.stock.register()
            self.ledger.registered = registered
            self.ledger.write()

    def load(self, text: str, make_secret: bool = True) -> None:
        """Make the kit out of the instructor's notebook, and the key that all submissions share."""
        source = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
        self.kit = chapter_kit(self.chapter, source, self.stock.config)
        self.secret = course_secret(self.course, self.options.seed, make_secret)
        limits = f"{self.cell_seconds} {self.limits} {'unprotected' if self.options.sandbox == NONE else ''}"
        self.base_key = grading_key(
            self.kit.prepared.encode(), environment_key().encode(), limits.encode(), self.secret
        )

    def is_due(self, submission: Submission) -> bool:
        """Return whether a submission has changed since it was last graded; one that could not be read has no key."""
        name = submission.student
        known = self.ledger.result.students.get(name)
        if self.options.force or known is None or not submission.graded.is_file():
            return True
        return self.ledger.keys.get(name) != self.key(read_submission(submission, self.kit.marked))

    def key(self, handed_in: HandedIn) -> str:
        """Return the key of all that a submission's result depends on."""
        return grading_key(self.base_key.encode(), *handed_in.parts)


def cell_seconds(asked: float | None, configured: float | None) -> float:
    """Return how long a cell may run: as asked for, else as configured; nbgrader's None and -1 set no limit."""
    seconds = configured if asked is None else asked
    return NO_LIMIT_CELL_SECONDS if seconds is None or seconds <= 0 else float(seconds)
