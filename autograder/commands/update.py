"""`course update`: a corrected chapter into a notebook with answers."""

from typing import Annotated

import typer

from autograder.commands.common import CourseOption, console, course_root, resolve_chapter

NAME = "update"
EXAMPLES = "Examples: `course update 01_attention`; `course update 1`."


def run(
    chapter: Annotated[str, typer.Argument(help="The chapter, as 01_attention or 1.")],
    course: CourseOption = None,
) -> None:
    """Bring your notebook of a chapter up to the chapter of today; your answers, changes and cells stay.

    Close the notebook first, or reload it afterwards: an open page would save its own version over it.
    """
    from autograder.course_folder import learner_chapters
    from autograder.learning.updating import update

    folder = course_root(course)
    kept, said = update(folder, resolve_chapter(chapter, learner_chapters(folder)))
    out = console()
    for sentence in said:
        out.print(sentence, soft_wrap=True, markup=False)
    if kept is not None:
        out.print(f"Updated. The notebook as it was is kept in {kept}.", soft_wrap=True, markup=False)
