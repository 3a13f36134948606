"""`course collect`: an LMS's archive into the course folder."""

from pathlib import Path
from typing import Annotated

import typer

from autograder.commands.common import EXIT_PROBLEMS, CourseOption, console, count, course_root, resolve_chapter

NAME = "collect"
EXAMPLES = (
    "Examples: `course collect submissions.zip --from canvas --roster roster.csv`; "
    "`course collect week1.zip --from blackboard --chapter 01_attention`; `course collect handed_in/ --from folder`."
)


def run(
    archive: Annotated[Path, typer.Argument(help="The zip file, or the folder it was unpacked to.")],
    system: Annotated[str, typer.Option("--from", help="canvas, moodle, blackboard, gradescope or folder.")],
    chapter: Annotated[
        str | None, typer.Option("--chapter", help="Which one was handed in.", show_default="by the notebooks' names")
    ] = None,
    roster: Annotated[
        Path | None,
        typer.Option("--roster", help="CSV: id, first_name, last_name, email.", show_default="roster.csv if there"),
    ] = None,
    course: CourseOption = None,
) -> None:
    """Bring everybody's latest attempt into submitted/STUDENT/CHAPTER/; earlier ones go to submitted_earlier/.

    Nobody is guessed: whom the roster does not have, or cannot tell from another, is listed. Exit code 1 when somebody
    is. A timestamp.txt that was handed in is left out; what the LMS marks late is told.
    """
    from autograder.collecting.collect import collect, nearest
    from autograder.collecting.roster import ROSTER, read_roster
    from autograder.course_folder import chapter_names, learner_chapters

    folder = course_root(course)
    chapters = chapter_names(folder) or learner_chapters(folder)
    place = roster or (folder / ROSTER if (folder / ROSTER).is_file() else None)
    known = None if place is None else read_roster(place)
    name = None if chapter is None else resolve_chapter(chapter, chapters)
    done = collect(folder, archive, system, known, chapters, name)
    say = console().print
    say(f"{count(len(done.students), 'submission')} collected, {len(done.unchanged)} unchanged.")
    for word in done.unknown:
        hint = nearest(word, known) if known is not None else ""
        say(f"Not in the roster: {word}{hint}", markup=False, soft_wrap=True)
    for word, ids in done.ambiguous.items():
        say(f"{word} can be {' or '.join(ids)}; hand this one in by hand.", markup=False, soft_wrap=True)
    if done.missing:
        say(f"Nothing from: {', '.join(done.missing)}", markup=False, soft_wrap=True)
    for sentence in done.notes:
        say(sentence, markup=False, soft_wrap=True)
    if done.unknown or done.ambiguous:
        raise typer.Exit(EXIT_PROBLEMS)
