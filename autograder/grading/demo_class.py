"""A made-up class: submissions of every kind that a teacher meets, the same ones each time."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.authoring.roles import exercise_and_role
from autograder.build import model_answers, starter_notebook
from autograder.grading.answers import answer_from
from autograder.grading.cells import role_of

DUE = datetime(2026, 2, 1, 22, 0)  # UTC; any fixed day serves
ON_TIME = DUE - timedelta(hours=20)
LATE = DUE + timedelta(hours=3, minutes=12)
PRINTED_LINES = 20_000
CLASS_SIZE = 12
WRITTEN_ANSWER = (
    "The scores are sums over the features, so their spread grows with the width. Without the division the "
    "softmax soon gives one key everything, and almost no gradient is left."
)


@dataclass
class Material:
    """What submissions are made from: the students' notebook, model answers, registered functions."""

    chapter: str
    release: NotebookNode
    answers: dict[str, str]
    mistakes: list[tuple[str, str]] = field(default_factory=list)
    unusual: dict[str, str] = field(default_factory=dict)


@dataclass
class Draft:
    """One submission in the making."""

    answers: dict[str, str]
    written: str | None = WRITTEN_ANSWER
    handed_in: datetime = ON_TIME
    damage: Callable[[NotebookNode], None] | None = None


def read_material(course: Path, chapter: str) -> Material:
    """Read a chapter, and what the registry knows of its exercises."""
    from autograder.exercise import all_exercises

    texts = model_answers(course, chapter)
    roles = {identity: exercise_and_role(identity) for identity in texts}
    answers = {roles[identity][0]: text for identity, text in texts.items() if roles[identity][1] == "answer"}
    material = Material(chapter, starter_notebook(course, chapter), answers)
    registered = {exercise.name: exercise for exercise in all_exercises()}
    defined: list[str] = []
    for name in answers:
        if name in registered:
            exercise = registered[name]
            beliefs = (answer_from(item.function, name, defined) for item in exercise.misconceptions.values())
            material.mistakes += [(name, source.text) for source in beliefs if not source.borrows]
            forms = (answer_from(item.function, name, defined) for item in exercise.alternatives.values())
            own = next((form.text for form in forms if not form.borrows), None)
            material.unusual |= {} if own is None else {name: own}
        defined.append(name)
    return material


def class_drafts(material: Material) -> dict[str, Draft]:
    """Return twelve drafts; each name says what is special about it."""
    answers = material.answers
    names = list(answers)
    half = {name: answers[name] for name in names[: len(names) // 2]}
    last = names[-1]
    return {
        "01-complete": Draft(answers),
        "02-unusual-forms": Draft(answers | material.unusual),
        "03-half-done": Draft(half, written=None),
        "04-untouched": Draft({}, written=None),
        "05-one-misconception": Draft(answers | spread(material.mistakes, count=1)),
        "06-two-misconceptions": Draft(answers | spread(material.mistakes, count=2, skip=1)),
        "07-three-misconceptions": Draft(answers | spread(material.mistakes, count=3, skip=2)),
        "08-damaged-cells": Draft(answers, damage=damage_cells),
        "09-endless-loop": Draft(answers | {last: endless(last)}),
        "10-prints-a-lot": Draft(answers | {names[0]: talkative(answers[names[0]])}),
        "11-import-fails": Draft(answers | {last: "import a_library_that_nobody_has\n\n\n" + answers[last]}),
        "12-handed-in-again-late": Draft(answers | spread(material.mistakes, count=1, skip=3), handed_in=LATE),
    }


def spread(mistakes: list[tuple[str, str]], count: int, skip: int = 0) -> dict[str, str]:
    """Pick a mistake for each of up to `count` exercises: the one at `skip`, counted in a circle."""
    by_exercise: dict[str, list[str]] = {}
    for name, text in mistakes:
        by_exercise.setdefault(name, []).append(text)
    richest_first = sorted(by_exercise.items(), key=lambda item: -len(item[1]))
    return {name: texts[skip % len(texts)] for name, texts in richest_first[:count]}


def endless(name: str) -> str:
    """Return an answer that never returns."""
    return f"def {name}(*arguments, **options):\n    step = 0\n    while True:\n        step = step + 1"


def talkative(answer: str) -> str:
    """Return the answer with a loop behind it that prints a line per step."""
    return f"{answer}\n\n\nfor step in range({PRINTED_LINES}):\n    print('step', step, 'is done')"


def damage_cells(notebook: NotebookNode) -> None:
    """Delete the first test, strip the second of its metadata, double the third; delete the last answer."""
    roles = [(role_of(cell), cell) for cell in notebook.cells]
    tests = [cell for role, cell in roles if role is not None and role[1] == "test"]
    answers = [cell for role, cell in roles if role is not None and role[1] == "answer"]
    if len(tests) > 1:
        tests[1].metadata = nbformat.NotebookNode()
    if len(tests) > 2:
        twin = copy.deepcopy(tests[2])
        twin["id"] = "pasted-again"
        notebook.cells.insert(notebook.cells.index(tests[2]) + 1, twin)
    for lost in (*tests[:1], *answers[-1:]):
        notebook.cells.remove(lost)


def submission(material: Material, draft: Draft) -> NotebookNode:
    """Return the student's notebook filled in as the draft says; what it leaves out stays a starter."""
    notebook = copy.deepcopy(material.release)
    for cell in notebook.cells:
        role = role_of(cell)
        if role is None:
            continue
        if role[1] == "answer" and role[0] in draft.answers:
            cell.source = draft.answers[role[0]]
        elif role[1] == "written" and draft.written is not None:
            cell.source = draft.written
    if draft.damage is not None:
        draft.damage(notebook)
    return notebook


def make_class(course: Path, chapter: str, into: Path | None = None, students: int = CLASS_SIZE) -> list[str]:
    """Hand in the twelve kinds of submission, more than once each in a larger class; return the ids.

    Args:
        course: The course that the chapter is built from.
        chapter: The chapter's name.
        into: The course folder that gets `submitted/`; by default the same.
        students: How many there are.
    """
    material = read_material(course, chapter)
    kinds = list(class_drafts(material).items())
    chosen = {}
    for number in range(students):
        round_number, position = divmod(number, len(kinds))
        name, draft = kinds[position]
        chosen[name if round_number == 0 else f"{name}-{round_number + 1}"] = draft
    return hand_in(into or course, material, chosen)


def make_uniform_class(course: Path, chapter: str, students: int, into: Path | None = None) -> list[str]:
    """Hand in `students` complete submissions, which all take equally long to grade; return the ids."""
    material = read_material(course, chapter)
    width = len(str(students))
    drafts = {f"student-{number:0{width}}": Draft(material.answers) for number in range(1, students + 1)}
    return hand_in(into or course, material, drafts)


def hand_in(course: Path, material: Material, drafts: Mapping[str, Draft]) -> list[str]:
    """Write each draft where nbgrader looks for it, with the time at which it was handed in."""
    for student, draft in drafts.items():
        folder = course / "submitted" / student / material.chapter
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(submission(material, draft), folder / f"{material.chapter}.ipynb")
        stamp = draft.handed_in.strftime("%Y-%m-%d %H:%M:%S UTC")
        (folder / "timestamp.txt").write_text(stamp, encoding="utf-8")
    return list(drafts)
