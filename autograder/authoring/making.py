"""Makes both notebooks of a chapter in memory, for the build to write and for its check to compare."""

from dataclasses import dataclass
from pathlib import Path

from autograder.authoring.badges import repository, with_badges
from autograder.authoring.chapter_source import ChapterSource, read_chapter
from autograder.authoring.instructor import instructor_notebook
from autograder.authoring.release import release, write_notebook
from autograder.authoring.roles import BuildError
from autograder.authoring.source_checks import identity_problems


@dataclass(frozen=True)
class MadeChapter:
    """A chapter as text, before it is written anywhere."""

    source: ChapterSource
    instructor: str
    student: str


def make_chapter(source: Path, course: Path) -> MadeChapter:
    """Make both notebooks of a chapter in memory.

    Raises:
        BuildError: the source is malformed, or two cells would share an identity.
    """
    chapter = read_chapter(source)
    notebook = instructor_notebook(chapter)
    doubled = identity_problems(chapter.name, notebook)
    if doubled:
        raise BuildError(doubled[0])
    student = with_badges(release(notebook, chapter.name, course), chapter.name, repository(course))
    return MadeChapter(chapter, write_notebook(notebook), student)
