"""The model answer of an exercise, for a learner who asks for it."""

from pathlib import Path

from autograder.authoring.roles import exercise_and_role
from autograder.build import model_answers
from autograder.course_folder import learner_chapters, source_path
from autograder.errors import CourseError
from autograder.learning.notebooks import chapter_of


def model_answer(course: Path, exercise: str) -> str:
    """Return the model answer of an exercise from its chapter's source.

    Raises:
        CourseError: there is no such exercise, or this copy of the course has no answers.
    """
    chapter, _ = chapter_of(course, exercise, learner_chapters(course))
    if not source_path(course, chapter).is_file():
        raise CourseError(
            f"This copy of the course has no answers; {exercise} is explained by its three hints in {chapter}."
        )
    answers = model_answers(course, chapter)
    return "\n\n\n".join(text.strip("\n") for name, text in answers.items() if exercise_and_role(name)[0] == exercise)
