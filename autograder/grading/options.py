"""What a person may choose about one grading run."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GradeOptions:
    """Choices of `course grade`.

    Args:
        student: Grade this one only; None grades everybody who handed in.
        force: Grade again what is already graded.
        feedback: Write the feedback pages.
    """

    student: str | None = None
    force: bool = False
    feedback: bool = True
