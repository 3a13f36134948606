"""Turns a chapter source into the instructor's notebook: roles become metadata, totals become lines."""

import re
from collections import Counter

import nbformat
from nbformat import NotebookNode

from autograder.authoring.chapter_source import ChapterSource, SourceCell
from autograder.authoring.roles import HARDEST, HIDDEN_TEST_MARKS, ROLES, BuildError, grade_id, nbgrader_metadata

HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
LONGEST_ID = 64  # nbformat's limit for a cell id
MINUTES_OF_AN_HOUR = 60
LONGEST_IN_MINUTES = 90
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def instructor_notebook(source: ChapterSource) -> NotebookNode:
    """Make the notebook that holds everything: answers, hidden tests, model answers.

    Raises:
        BuildError: a header has no heading, or one exercise has two headers or answers.
    """
    _refuse_doubles(source)
    notebook = nbformat.v4.new_notebook(metadata={**METADATA, **({"title": source.title} if source.title else {})})
    numbers: Counter[tuple[str, str]] = Counter()
    section, section_number = "start", 0
    taken: set[str] = set()
    for cell in source.cells:
        heading = HEADING.search(cell.text) if cell.cell_type == "markdown" and cell.role != "written" else None
        if heading:
            section, section_number = _slug(heading.group(1)), 0
        role, exercise, metadata = cell.role, cell.exercise, {}
        if role and exercise and ROLES[role].suffix is not None:
            numbers[exercise, role] += 1
            number = numbers[exercise, role]
            identity = grade_id(exercise, role, number)
            metadata = {"nbgrader": nbgrader_metadata(exercise, role, number, cell.options.get("points"))}
        else:
            section_number += 1
            identity = f"{section}-{section_number}"
        make = nbformat.v4.new_code_cell if cell.cell_type == "code" else nbformat.v4.new_markdown_cell
        notebook.cells.append(make(_text(source, cell), id=_unique(identity, taken), metadata=metadata))
    return notebook


def chapter_points(source: ChapterSource) -> int:
    """Add up the points of a chapter."""
    return sum(cell.points for cell in source.cells)


def chapter_minutes(source: ChapterSource) -> int:
    """Add up the minutes of a chapter: its exercises, and the reading that the opening names."""
    return sum(cell.options.get("minutes", 0) for cell in source.cells)


def _text(source: ChapterSource, cell: SourceCell) -> str:
    if cell.role == "opening":
        totals = _opening_line(source)
        return f"{cell.text}\n\n{totals}" if totals else cell.text
    if cell.role == "header":
        heading, _, rest = cell.text.partition("\n")
        if not HEADING.fullmatch(heading):
            raise BuildError(f"{cell.where}: the first line of an exercise header must be a heading, not {heading!r}.")
        return "\n".join([heading, "", _header_line(source, cell), *(["", rest.strip("\n")] if rest else [])])
    if cell.role == "hidden test":
        begin, end = HIDDEN_TEST_MARKS
        return f"{visible_line(str(cell.exercise))}\n### {begin}\n{cell.text}\n### {end}"
    return cell.text


def visible_line(exercise: str) -> str:
    """Say what a student reads in the cell whose tests are hidden."""
    return (
        "# Hidden cases run when this is graded. To try a fresh draw of them yourself:\n"
        f"# check({exercise}, hidden=True)"
    )


def _opening_line(source: ChapterSource) -> str:
    exercises = source.exercises()
    written = sum("written" in roles for roles in exercises.values())
    coded = sum("answer" in roles for roles in exercises.values())
    counts = [
        (chapter_points(source), "point"),
        (coded, "exercise"),
        (written, "written question"),
    ]
    words = [f"{_duration(chapter_minutes(source))}"] if chapter_minutes(source) else []
    words += [_count(number, noun) for number, noun in counts if number]
    return f"**{' · '.join(words)}**" if words else ""


def _header_line(source: ChapterSource, cell: SourceCell) -> str:
    roles = source.exercises()[str(cell.exercise)]
    words = [
        _count(cell.options["minutes"], "minute"),
        _count(sum(part.points for cells in roles.values() for part in cells), "point"),
    ]
    if "written" in roles:
        words.append("graded by hand")
    if "lines" in cell.options:
        words.append(f"about {_count(cell.options['lines'], 'line')}")
    if "difficulty" in cell.options:
        words.append(f"difficulty {cell.options['difficulty']} of {HARDEST}")
    return f"**{' · '.join(words)}**"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _duration(minutes: int) -> str:
    if minutes <= LONGEST_IN_MINUTES:
        return _count(minutes, "minute")
    hours, rest = divmod(minutes, MINUTES_OF_AN_HOUR)
    return _count(hours, "hour") + (f" {_count(rest, 'minute')}" if rest else "")


def _refuse_doubles(source: ChapterSource) -> None:
    for exercise, roles in source.exercises().items():
        for role in ("header", "answer", "written"):
            if len(roles.get(role, [])) > 1:
                raise BuildError(f"{roles[role][1].where}: {exercise} already has a cell with role {role!r}.")
    openings = [cell for cell in source.cells if cell.role == "opening"]
    if len(openings) > 1:
        raise BuildError(f"{openings[1].where}: the chapter already has a cell with role 'opening'.")


def _slug(heading: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
    return words[:40].rstrip("-") or "section"


def _unique(identity: str, taken: set[str]) -> str:
    """Keep an id unused so far, where two sections share a heading."""
    candidate, again = identity[:LONGEST_ID], 1
    while candidate in taken:
        again += 1
        candidate = f"{identity}-again-{again}"[-LONGEST_ID:]
    taken.add(candidate)
    return candidate
