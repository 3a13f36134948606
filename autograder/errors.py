"""The error for everything that a person can put right: one sentence, shown without a traceback."""


class CourseError(ValueError):
    """Say in one sentence what was wrong and what to do; `course` prints it and exits with 2."""
