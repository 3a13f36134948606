"""One page about a class: points, hard exercises, beliefs; what was slow, failed or alike, and what changed."""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import nbformat
import numpy as np
from markupsafe import Markup
from nbformat import NotebookNode

from autograder.collecting.roster import ROSTER, read_roster
from autograder.course_folder import chapter_path
from autograder.errors import CourseError
from autograder.exercise import all_exercises
from autograder.grading.cells import role_of
from autograder.grading.gradebook import LATE_PENALTY
from autograder.grading.results import ClassResult, results_path
from autograder.grading.standing import Standing, standing
from autograder.grading.writing import lines_of
from autograder.reports.feedback import environment
from autograder.reports.item_statistics import Item, items
from autograder.reports.pictures import lying_bars, standing_bars
from autograder.reports.points_table import STATUS_WORDS, misconception_counts
from autograder.reports.similarity import alike, same_answers

BINS = 10
PAIRS_SHOWN, SLOWEST_SHOWN, CHANGES_SHOWN = 20, 5, 200
NAMES_SHOWN = 8  # longer lists of students are folded
SLOW_SECONDS = 1.0  # a check that takes longer is worth a look
HARD, EASY = 0.5, 0.9
DULL = 0.2  # a lower discrimination tells little; the usual rule of thumb for test items


@dataclass(frozen=True)
class Belief:
    """A misconception that students of the class hold."""

    exercise: str
    name: str
    words: str
    students: list[str]


@dataclass(frozen=True)
class Change:
    """A grade that the last run changed."""

    student: str
    cell: str
    before: str
    after: str


@dataclass(frozen=True)
class SlowCell:
    """A cell that is no test and took long: for how many, and how long it took whom at most."""

    cell: str
    students: int
    seconds: float
    slowest: str


def write_report(course: Path, chapter: str) -> Path:
    """Write `results/CHAPTER.report.html`; return its path.

    Raises:
        CourseError: the chapter has no results yet.
    """
    path = results_path(course, chapter)
    if not path.is_file():
        raise CourseError(f"There are no results of {chapter} yet; `course grade {chapter}` makes them.")
    target = path.with_name(f"{chapter}.report.html")
    now = standing(course, chapter)
    target.write_text(report_page(course, now.result, absent(course, now)), encoding="utf-8")
    return target


def absent(course: Path, now: Standing) -> list[str]:
    """Return everybody whom roster or gradebook know and of whom nothing was handed in."""
    roster = read_roster(course / ROSTER).students if (course / ROSTER).is_file() else {}
    return sorted({*roster, *now.known} - set(now.result.students))


def report_page(course: Path, result: ClassResult, missing: Sequence[str] = ()) -> str:
    """Return the page about a graded chapter.

    Args:
        course: The course's folder.
        result: The chapter's results.
        missing: Students without a submission.
    """
    rows = items(result)
    answers, starter = answers_of_class(course, result)
    groups = same_answers(answers, starter)
    together = {pair for group in groups for pair in itertools.combinations(group, 2)}
    pairs = [pair for pair in alike(answers, starter) if (pair.first, pair.second) not in together]
    failed = {name: one for name, one in result.students.items() if one.status in ("failed", "partly")}
    return (
        environment()
        .get_template("class_report.html.j2")
        .render(
            chapter=result.chapter,
            time=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
            students=result.students,
            statuses=statuses(result),
            histogram=points_picture(result),
            facility=facility_picture(rows),
            items=rows,
            remarks={row.name: remark(row) for row in rows},
            beliefs=beliefs(result),
            slow=slow_checks(rows),
            slow_cells=slow_cells(course, result),
            failed=failed,
            repaired=by_sentence({name: one.repairs for name, one in result.students.items()}),
            warned=by_sentence({n: one.noticed for n, one in result.students.items() if n not in failed}),
            missing=missing,
            groups=groups,
            pairs=pairs[:PAIRS_SHOWN],
            more_pairs=max(0, len(pairs) - PAIRS_SHOWN),
            changes=last_changes(course, result.chapter),
            changes_shown=CHANGES_SHOWN,
            names_shown=NAMES_SHOWN,
            words_of=lambda status: STATUS_WORDS[status][0],
        )
    )


def statuses(result: ClassResult) -> list[tuple[str, int]]:
    """Return how many submissions have each status, in words."""
    found = [one.status for one in result.students.values()]
    words = {name: word for name, (word, _) in STATUS_WORDS.items()} | {"needs_manual": "with an answer to read"}
    return [(word, found.count(name)) for name, word in words.items() if name in found]


def by_sentence(sentences: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return each sentence with the students of whom it is said, the commonest first."""
    found: dict[str, list[str]] = {}
    for student, said in sentences.items():
        for sentence in dict.fromkeys(said):
            found.setdefault(sentence, []).append(student)
    return dict(sorted(found.items(), key=lambda entry: -len(entry[1])))


def remark(row: Item) -> str:
    """Return what an exercise's numbers say, in a word or two."""
    if row.waiting:
        return "not all is read yet"
    said = []
    if row.facility is not None and row.facility < HARD:
        said.append("hard")
    elif row.facility is not None and row.facility > EASY:
        said.append("easy")
    if row.discrimination is not None and row.discrimination < 0:
        said.append("the better students did worse: look at it")
    elif row.discrimination is not None and row.discrimination < DULL:
        said.append("tells little")
    return "; ".join(said)


def beliefs(result: ClassResult) -> list[Belief]:
    """Return the misconceptions of the class with the tutor's words, the commonest first."""
    words = {(one.name, key): found.words for one in all_exercises() for key, found in one.misconceptions.items()}
    return [
        Belief(
            exercise,
            name,
            words.get((exercise, name), "(a belief that this version of the course does not know)"),
            [
                student
                for student, one in result.students.items()
                if exercise in one.exercises and one.exercises[exercise].misconception == name
            ],
        )
        for exercise, name, _ in misconception_counts(result)
    ]


def slow_checks(rows: Iterable[Item]) -> list[Item]:
    """Return the exercises whose slowest check took longer than usual, the slowest first."""
    slow = [row for row in rows if (row.slowest_seconds or 0.0) > SLOW_SECONDS]
    return sorted(slow, key=lambda row: -(row.slowest_seconds or 0.0))[:SLOWEST_SHOWN]


def answers_of_class(course: Path, result: ClassResult) -> tuple[dict[str, str], str]:
    """Return the code of each graded student's answers, and the code of the starter."""
    answers = {}
    for student in result.students:
        path = course / "autograded" / student / result.chapter / f"{result.chapter}.ipynb"
        if path.is_file():
            answers[student] = answer_code(nbformat.read(path, as_version=4))
    release = chapter_path(course, result.chapter)
    starter = answer_code(nbformat.read(release, as_version=4)) if release.is_file() else ""
    return answers, starter


def answer_code(notebook: NotebookNode) -> str:
    """Return the code of a notebook's answer cells."""
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code" and is_answer(cell))


def is_answer(cell: NotebookNode) -> bool:
    """Return whether a cell is one that a student fills in."""
    try:
        role = role_of(cell)
    except ValueError:
        return False
    return role is not None and role[1] == "answer"


def slow_cells(course: Path, result: ClassResult) -> list[SlowCell]:
    """Return the cells beside the tests that took long when they were last graded, from the run's log."""
    latest: dict[str, Mapping[str, float]] = {}
    for line in json_lines(results_path(course, result.chapter).with_suffix(".log.jsonl")):
        if line.get("event") == "graded" and line["student"] in result.students:
            latest[line["student"]] = line.get("slow_cells", {})
    by_cell: dict[str, list[tuple[float, str]]] = {}
    for student, cells in latest.items():
        for cell, seconds in cells.items():
            by_cell.setdefault(cell, []).append((seconds, student))
    found = [SlowCell(cell, len(ones), *max(ones)) for cell, ones in by_cell.items()]
    return sorted(found, key=lambda one: -one.seconds)[:SLOWEST_SHOWN]


def last_changes(course: Path, chapter: str) -> list[Change]:
    """Return the grades that changed since the last run began, from its log; first grades are no changes."""
    results = results_path(course, chapter)
    begun = [line["time"] for line in json_lines(results.with_suffix(".log.jsonl")) if line.get("event") == "start"]
    since = datetime.fromisoformat(begun[-1]) if begun else None
    found = []
    for line in json_lines(results.with_suffix(".changes.jsonl")):
        before, after = score(line.get("before")), score(line.get("after"))
        recent = since is None or datetime.fromisoformat(line["time"]) >= since.replace(microsecond=0)
        if recent and before not in ("none", after):
            found.append(Change(line["student"], line["cell"], before, after))
    return found


def json_lines(path: Path) -> Iterable[Mapping]:
    """Yield the objects of a log; a line cut short by a kill is left out."""
    if not path.is_file():
        return
    for line in lines_of(path):
        try:
            yield json.loads(line)
        except ValueError:
            continue


def score(state: Mapping | None) -> str:
    """Return the automatic points of one side of a change, or the late penalty."""
    state = state or {}
    value = state.get("auto_score", state.get(LATE_PENALTY))
    return "none" if value is None else f"{value:g}"


def points_picture(result: ClassResult) -> Markup:
    """Draw how many submissions have which share of the points."""
    graded = [one for one in result.students.values() if one.status != "failed"]
    if not graded:
        return Markup("<p>No submission could be graded.</p>")
    shares = [100 * one.standing / one.maximum if one.maximum else 0.0 for one in graded]
    counts, edges = np.histogram(shares, bins=BINS, range=(0, 100))
    bars = {f"{low:.0f}-{high:.0f}": int(n) for n, low, high in zip(counts, edges[:-1], edges[1:], strict=True)}
    return standing_bars(bars, "% of the points", "submissions", "Submissions by their share of the points")


def facility_picture(rows: Iterable[Item]) -> Markup:
    """Draw the mean share of points by exercise; what waits for a person has no share yet."""
    shares = {row.name: 100 * row.facility for row in rows if row.facility is not None and not row.waiting}
    if not shares:
        return Markup("")
    return lying_bars(shares, "mean % of the points", "How much of each exercise the class has", end=100)
