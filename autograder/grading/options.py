"""What a person may choose about one grading run."""

from dataclasses import dataclass

from autograder.grading.sandbox import AUTO


@dataclass(frozen=True)
class GradeOptions:
    """Choices of `course grade`.

    Args:
        student: Grade this one only; None grades everybody who handed in.
        force: Grade again what is already graded.
        feedback: Write the feedback pages.
        workers: How many notebooks run at a time; None for one on each core.
        timeout: Seconds for one cell; None for what nbgrader_config.py says.
        notebook_timeout: Seconds for one notebook; None for the usual limit.
        memory: Megabytes of memory for one notebook; None for the usual limit.
        sandbox: `auto`, `namespaces`, `landlock` or `none`.
        seed: A number that the students' seeds are made from, in place of the course's secret.
        database: The gradebook's URL, SQLite or PostgreSQL; None for what nbgrader_config.py says.
        cluster: The address of a Dask scheduler whose workers grade; None for this machine.
    """

    student: str | None = None
    force: bool = False
    feedback: bool = True
    workers: int | None = None
    timeout: float | None = None
    notebook_timeout: float | None = None
    memory: int | None = None
    sandbox: str = AUTO
    seed: int | None = None
    database: str | None = None
    cluster: str | None = None
