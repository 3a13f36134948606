"""`course build`: chapters/ from solutions/."""

from typing import Annotated

import typer

from autograder.commands.common import (
    EXIT_PROBLEMS,
    console,
    count,
    course_root,
    need_instructor_packages,
    resolve_chapter,
    say_error,
)

NAME = "build"
EXAMPLES = "Examples: `course build`; `course build 01_attention`; `course build --check`."


def run(
    chapter: Annotated[str | None, typer.Argument(help="A chapter, as 01_attention or 1.", show_default="all")] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit with 1 if chapters/ is stale.")] = False,
) -> None:
    """Make the students' notebooks in chapters/ from the sources in solutions/, or check them."""
    need_instructor_packages()
    from autograder.build import build_all
    from autograder.course_folder import chapter_names

    course = course_root()
    only = None if chapter is None else resolve_chapter(chapter, chapter_names(course))
    if check:
        report_problems(course, only)
        return
    results = build_all(course, only)
    renew_badges(course)
    for result in results:
        console().print(str(result), markup=False, soft_wrap=True)
    if any(result.problems for result in results):
        raise typer.Exit(EXIT_PROBLEMS)


def renew_badges(course) -> None:
    """Bring README's links up to the address in pyproject.toml."""
    from autograder.authoring.badges import readme_with_badges, repository
    from autograder.course_folder import chapter_names

    path = course / "README.md"
    if path.is_file():
        text = path.read_text(encoding="utf-8")
        renewed = readme_with_badges(text, repository(course), chapter_names(course)[0])
        if renewed != text:
            path.write_text(renewed, encoding="utf-8", newline="\n")


def report_problems(course, only: str | None) -> None:
    """Print every problem of the built course on stderr, and exit with 1 if there is one."""
    from autograder.build import check_build
    from autograder.reports.coverage import stale_coverage

    problems = check_build(course, only) + stale_coverage(course / "README.md")
    for problem in problems:
        say_error(problem)
    if problems:
        say_error(f"{count(len(problems), 'problem')} found.")
        raise typer.Exit(EXIT_PROBLEMS)
    console().print("chapters/ is fresh, and nothing of the solutions is in it.")
