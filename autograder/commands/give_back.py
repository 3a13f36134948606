"""`course return`: everybody's feedback page in one archive."""

from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.common import ChapterArgument, CourseOption, console, count, course_root, handed_in_chapter

NAME = "return"
EXAMPLES = "Examples: `course return 01_attention`; `course return 01_attention --out feedback.zip`."


def run(
    chapter: ChapterArgument,
    out: Annotated[Path | None, typer.Option("--out", help="The archive to write.", show_default="in results/")] = None,
    course: CourseOption = None,
) -> None:
    """Pack the feedback pages into one zip archive, named as the LMS named the submissions that were collected.

    Moodle ("Upload multiple feedback files in a zip") and Canvas ("Upload Submissions") take it as it is.
    """
    from autograder.collecting.give_back import pack_feedback

    folder = course_root(course)
    path, number, without = pack_feedback(folder, handed_in_chapter(folder, chapter), out)
    console().print(f"{count(number, 'page')} in {path}", soft_wrap=True, markup=False)
    if without:
        console().print(f"Without a page: {', '.join(without)}", soft_wrap=True, markup=False)
