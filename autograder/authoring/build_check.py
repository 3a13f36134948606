"""Checks that `chapters/` is fresh, leak-free and safe to grade, chapter by chapter."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat

from autograder.authoring.chapter_source import ChapterSource
from autograder.authoring.leaks import leaks, text_leaks
from autograder.authoring.making import MadeChapter, make_chapter
from autograder.authoring.manifest import CHANGED, is_ours
from autograder.authoring.roles import BuildError
from autograder.authoring.source_checks import registry_problems, source_problems
from autograder.course_folder import CHAPTERS, chapter_names, chapter_path, source_path

if TYPE_CHECKING:
    from autograder.exercise import Exercise


def check_build(course: Path, only: str | None = None, registered: "Sequence[Exercise] | None" = None) -> list[str]:
    """List what is wrong with the built chapters, a sentence each; an empty list means all is well.

    Args:
        course: The course folder.
        only: The chapter to check; None checks all.
        registered: The exercises that there are; None takes the registry's.
    """
    if registered is None:
        from autograder.exercise import all_exercises

        registered = all_exercises()
    secrets = [belief.words for exercise in registered for belief in exercise.misconceptions.values()]
    chapters = chapter_names(course) if only is None else [only]
    problems: list[str] = []
    sources: list[ChapterSource] = []
    for chapter in chapters:
        try:
            made = make_chapter(source_path(course, chapter), course)
        except BuildError as error:
            problems.append(str(error))
            continue
        sources.append(made.source)
        problems += source_problems(made.source)
        problems += _freshness(course, chapter, made.student)
        problems += _leaks(course, chapter, made, secrets)
    broken = set(chapters) - {source.name for source in sources}  # its exercises would only seem to be missing
    problems += registry_problems(
        sources,
        [exercise for exercise in registered if exercise.chapter not in broken and only in (None, exercise.chapter)],
    )
    return problems if only is not None else [*problems, *_orphans(course)]


def _freshness(course: Path, chapter: str, student: str) -> list[str]:
    path = chapter_path(course, chapter)
    shown = path.relative_to(course)
    if not path.exists():
        return [f"{shown} is missing; run `course build`."]
    stands, fresh = path.read_bytes(), student.encode()
    if stands == fresh:
        known = is_ours(course, chapter, stands)
        return [] if known else [f"{shown} is not in the list of generated notebooks; run `course build`."]
    if is_ours(course, chapter, stands):
        return [f"{shown} is older than its source; run `course build`."]
    return [f"{shown} was changed by hand; run `course build`, which keeps a copy of it."]


def _leaks(course: Path, chapter: str, made: MadeChapter, secrets: Iterable[str]) -> list[str]:
    """Look into the fresh notebook and into every file that stands in the chapter's folder."""
    secrets = list(secrets)
    path = chapter_path(course, chapter)
    shown = str(path.relative_to(course))
    problems = leaks(shown, nbformat.reads(made.student, as_version=4), made.source, secrets)
    for file in sorted(path.parent.rglob("*")):
        if not file.is_file() or CHANGED in file.name or ".ipynb_checkpoints" in file.parts:
            continue
        where = str(file.relative_to(course))
        content = file.read_text(encoding="utf-8", errors="ignore")
        try:
            notebook = nbformat.reads(content, as_version=4) if file.suffix == ".ipynb" else None
        except Exception as error:  # nbformat raises many kinds for what is no notebook
            problems.append(f"{where} cannot be read as a notebook: {type(error).__name__}.")
            continue
        if notebook is None:
            problems += text_leaks(where, content, made.source, secrets)
        elif content != made.student:
            problems += leaks(where, notebook, made.source, secrets)
    return list(dict.fromkeys(problems))


def _orphans(course: Path) -> list[str]:
    known = set(chapter_names(course))
    return [
        f"{CHAPTERS}/{folder.name} has no source in solutions/; remove the folder."
        for folder in sorted((course / CHAPTERS).glob("*"))
        if folder.is_dir() and not folder.name.startswith(".") and folder.name not in known
    ]
