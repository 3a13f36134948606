"""The table of what the three documents hold, and where in the course each of it is treated: nothing may be lost.

The rows are data, in `documents/`. Each names a chapter, a heading in it, and a phrase that stands under that heading,
so that a row cannot point to nothing. `course coverage --write` writes the page.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from autograder.authoring.chapter_source import read_chapter
from autograder.course_folder import chapter_names, source_path

ROWS = Path(__file__).with_name("documents")
PAGE = Path("docs") / "nothing_lost.md"
DOCUMENTS = {
    "A": "Inside a Transformer Block",
    "B": "Transformer Block Dissected Layer-by-Layer",
    "C": "Transformers",
}
HEADING = re.compile(r"#+ +(?P<name>.+)")
FENCE = re.compile(r"```")


@dataclass(frozen=True)
class Kind:
    """One file of rows: its title on the page, and which ids it must hold."""

    title: str
    prefix: str
    count: int

    def ids(self) -> list[str]:
        """Return the ids that the file must hold, in order."""
        return [f"{self.prefix}{number:0{len(str(self.count))}}" for number in range(1, self.count + 1)]


KINDS = {
    "topics": Kind("Topics", "T", 198),
    "lists": Kind("Lists and formulas that the document lost", "L", 43),
    "systems": Kind("Named systems, each with its working reference", "S", 51),
    "hyperparameters": Kind("Hyperparameters", "H", 18),
    "pitfalls": Kind("Pitfalls", "P", 17),
    "code": Kind("Code", "K", 13),
    "faults": Kind("Faults", "F", 78),
    "claims": Kind("Claims on trial", "D", 60),
}


@dataclass(frozen=True)
class Row:
    """One thing of the documents and its place in the course.

    Args:
        id: the letter of its kind and its number.
        what: the thing, in the course's own words.
        where: the documents' letters, and the section of the first of them.
        chapter: number of the chapter.
        anchor: a heading in it.
        evidence: a phrase that stands under the heading, before the next one.
        reference: "path:text", a module of the course and a text in it, for what must have a working reference.
    """

    id: str
    what: str
    where: str
    chapter: int
    anchor: str
    evidence: str
    reference: str | None = None


def read_rows(folder: Path = ROWS) -> dict[str, list[Row]]:
    """Read all rows, by kind."""
    return {
        kind: [Row(**row) for row in yaml.safe_load((folder / f"{kind}.yaml").read_text(encoding="utf-8"))]
        for kind in KINDS
    }


def problems(rows: dict[str, list[Row]], course: Path) -> list[str]:
    """Say what is wrong with the rows: ids that are missing, anchors, phrases and references that are not there."""
    found = [problem for kind, own in rows.items() for problem in _id_problems(kind, own)]
    return found + [problem for own in rows.values() for row in own for problem in _row_problems(row, course)]


def _id_problems(kind: str, rows: Iterable[Row]) -> list[str]:
    wanted, given = KINDS[kind].ids(), [row.id for row in rows]
    missing = [f"{kind}: the row {one} is missing." for one in wanted if one not in given]
    beyond = [f"{kind}: the row {one} is none of {wanted[0]} … {wanted[-1]}." for one in given if one not in wanted]
    if missing or beyond or given == wanted:
        return missing + beyond
    return [f"{kind}: the rows must stand in order, each once."]


def _row_problems(row: Row, course: Path) -> list[str]:
    names = {int(name[:2]): name for name in chapter_names(course)}
    if row.chapter not in names:
        return [f"{row.id}: there is no chapter {row.chapter}."]
    if row.where[:1] not in DOCUMENTS:
        return [f"{row.id}: {row.where!r} must begin with a document, one of {', '.join(DOCUMENTS)}."]
    found = []
    sections = chapter_sections(source_path(course, names[row.chapter]))
    if row.anchor not in sections:
        found.append(f"{row.id}: chapter {row.chapter} has no heading {row.anchor!r}.")
    elif _plain(row.evidence) not in _plain(sections[row.anchor]):
        found.append(f"{row.id}: {row.evidence!r} does not stand under {row.anchor!r} in chapter {row.chapter}.")
    return found + _reference_problems(row, course)


def _reference_problems(row: Row, course: Path) -> list[str]:
    needs_one = row.id.startswith(KINDS["systems"].prefix)
    if row.reference is None:
        return [f"{row.id}: a named system needs a `reference`."] if needs_one else []
    path, _, text = row.reference.partition(":")
    module = course / path
    if not module.is_file():
        return [f"{row.id}: there is no {path}."]
    return [] if text in module.read_text(encoding="utf-8") else [f"{row.id}: {text!r} does not stand in {path}."]


@lru_cache
def chapter_sections(source: Path) -> dict[str, str]:
    """Return a chapter's text by heading, without the answers; each section ends at the next heading.

    A heading that occurs twice holds both texts.
    """
    sections: dict[str, list[str]] = {}
    name = ""
    for cell in read_chapter(source).cells:
        if cell.role == "answer":
            continue
        fenced = False
        for line in cell.text.splitlines():
            fenced ^= bool(FENCE.match(line))
            heading = HEADING.fullmatch(line) if cell.cell_type == "markdown" and not fenced else None
            name = heading["name"] if heading else name
            sections.setdefault(name, []).append(line)
    return {heading: "\n".join(lines) for heading, lines in sections.items()}


def _plain(text: str) -> str:
    """Make a text comparable: a quote's marks and the places of line breaks do not count."""
    return " ".join(re.sub(r"^> ?", "", text, flags=re.MULTILINE).split())


def page(rows: dict[str, list[Row]], course: Path) -> str:
    """Render the table, by document and kind."""
    chapters = {int(name[:2]): name for name in chapter_names(course)}
    counts = ", ".join(f"{len(own)} {_counted(kind)}" for kind, own in rows.items())
    lines = [
        "# Nothing lost",
        "",
        "The course follows three documents. Here is what they hold, and under which heading of which chapter it is",
        f"treated: {counts}.",
        "",
        "A thing that stands in several documents is listed with the first of them. `course coverage --write` writes",
        "this page, and a test looks for each heading and for a phrase under it.",
    ]
    for letter, title in DOCUMENTS.items():
        lines += ["", f'## Document {letter}: "{title}"']
        for kind, own in rows.items():
            here = [row for row in own if row.where.startswith(letter)]
            if here:
                lines += ["", f"### {letter}: {KINDS[kind].title}", "", *_table(here, chapters)]
    return "\n".join(lines) + "\n"


def _counted(kind: str) -> str:
    return {"lists": "lost lists and formulas", "code": "pieces of code", "systems": "named systems"}.get(kind, kind)


def _table(rows: list[Row], chapters: dict[int, str]) -> list[str]:
    with_reference = any(row.reference for row in rows)
    header = ["", "what", "where in the documents", "chapter", "under the heading"] + ["reference"] * with_reference
    table = [header, ["---"] * len(header)]
    for row in rows:
        name = chapters[row.chapter]
        link = f"[{row.chapter}](../chapters/{name}/{name}.ipynb)"
        cells = [row.id, row.what, row.where, link, row.anchor]
        if with_reference:
            path = (row.reference or "").partition(":")[0]
            cells.append(f"[{Path(path).name}](../{path})" if path else "")
        table.append([cell.replace("|", "\\|") for cell in cells])
    return ["| " + " | ".join(cells) + " |" for cells in table]


def write_page(course: Path) -> bool:
    """Write the page; return whether that changed it."""
    path = course / PAGE
    text = page(read_rows(), course)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


def stale_page(course: Path) -> list[str]:
    """Return what is wrong with the page: nothing, or one sentence."""
    path = course / PAGE
    if path.is_file() and path.read_text(encoding="utf-8") == page(read_rows(), course):
        return []
    return [f"{PAGE} is stale; run `course coverage --write`."]
