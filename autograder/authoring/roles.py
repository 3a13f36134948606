"""What the roles on a chapter's cells mean: which keys they take and what nbgrader is told about them."""

from dataclasses import dataclass, field
from typing import Any

from autograder.errors import CourseError

SCHEMA_VERSION = 3  # nbgrader's cell metadata format
HARDEST = 5

# What nbgrader looks for anywhere in a cell, and so must stand nowhere but where it is meant.
SOLUTION_MARKS = ("BEGIN SOLUTION", "END SOLUTION")
STARTER_MARKS = ("BEGIN STARTER", "END STARTER")
HIDDEN_TEST_MARKS = ("BEGIN HIDDEN TESTS", "END HIDDEN TESTS")
MARKS = (*SOLUTION_MARKS, *STARTER_MARKS, *HIDDEN_TEST_MARKS, "BEGIN MARK SCHEME", "END MARK SCHEME")

Options = dict[str, Any]


class BuildError(CourseError):
    """A chapter cannot be built; the message says where and why in one sentence."""


@dataclass(frozen=True)
class Role:
    """One kind of cell: its type, the keys that it needs and may have, and the three marks nbgrader reads."""

    cell_type: str
    needs: tuple[str, ...] = ()
    may_have: tuple[str, ...] = ()
    suffix: str | None = None  # of the grade_id; None: nbgrader is told nothing
    marks: dict[str, bool] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """List every key that a cell of this role may carry."""
        return (*self.needs, *self.may_have)


ROLES = {
    "opening": Role("markdown", may_have=("minutes",)),
    "header": Role("markdown", needs=("exercise", "minutes"), may_have=("lines", "difficulty")),
    "answer": Role("code", needs=("exercise",), suffix="", marks={"grade": False, "locked": False, "solution": True}),
    "test": Role(
        "code",
        needs=("exercise", "points"),
        suffix="-test",
        marks={"grade": True, "locked": True, "solution": False},
    ),
    "hidden test": Role(
        "code",
        needs=("exercise", "points"),
        suffix="-hidden-test",
        marks={"grade": True, "locked": True, "solution": False},
    ),
    "written": Role(
        "markdown",
        needs=("exercise", "points"),
        suffix="-written",
        marks={"grade": True, "locked": False, "solution": True},
    ),
}
ORDINARY_KEYS = ("long",)  # says to a reader of the source that the cell takes its time


def grade_id(exercise: str, role: str, number: int = 1) -> str:
    """Name a graded cell: `softmax`, `softmax-test`, `softmax-test-2`, `why_scale-written`."""
    return exercise + str(ROLES[role].suffix) + (f"-{number}" if number > 1 else "")


def exercise_and_role(identity: str) -> tuple[str, str]:
    """Read exercise and role back from a `grade_id` made by `grade_id`."""
    exercise, *words = identity.split("-")
    suffix = "".join(f"-{word}" for word in words if not word.isdigit())
    for name, role in ROLES.items():
        if role.suffix == suffix:
            return exercise, name
    raise ValueError(f"{identity!r} is no grade_id of this course: its ending {suffix!r} names no role.")


def nbgrader_metadata(exercise: str, role: str, number: int, points: int | None) -> Options:
    """Spell out what nbgrader wants to read on a graded or answer cell."""
    metadata: Options = {
        **ROLES[role].marks,
        "grade_id": grade_id(exercise, role, number),
        "schema_version": SCHEMA_VERSION,
        "task": False,
    }
    if points is not None:
        metadata["points"] = points
    return dict(sorted(metadata.items()))


def check_options(where: str, cell_type: str, options: Options) -> None:
    """Refuse a role or key that means nothing, in a sentence that lists what does.

    Raises:
        BuildError: unknown role, wrong cell type, missing or unknown key, or a value of the wrong kind.
    """
    role_name = options.get("role")
    if role_name is None:
        allowed = ORDINARY_KEYS
    elif role_name not in ROLES:
        raise BuildError(f"{where}: {role_name!r} is no role; the roles are {', '.join(map(repr, ROLES))}.")
    else:
        role = ROLES[role_name]
        allowed = ("role", *role.keys)
        if cell_type != role.cell_type:
            raise BuildError(
                f"{where}: role {role_name!r} belongs on a {role.cell_type} cell, not on a {cell_type} cell."
            )
        for key in role.needs:
            if key not in options:
                raise BuildError(f"{where}: role {role_name!r} needs the key {key!r}.")
    kind = f"a cell with role {role_name!r}" if role_name else "a cell without a role"
    for key, value in options.items():
        if key not in allowed:
            raise BuildError(f"{where}: the key {key!r} is not allowed on {kind}; allowed: {', '.join(allowed)}.")
        _check_value(where, key, value)


def _check_value(where: str, key: str, value: object) -> None:
    if key == "exercise" and not (isinstance(value, str) and value.isascii() and value.isidentifier()):
        raise BuildError(f'{where}: exercise={value!r} must be a plain Python name, such as "softmax".')
    if key in ("minutes", "points", "lines", "difficulty"):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < 1:  # pyright: ignore[reportOperatorIssue]
            raise BuildError(f"{where}: {key}={value!r} must be a whole number of at least 1.")
    if key == "difficulty" and value > HARDEST:  # pyright: ignore[reportOperatorIssue]
        raise BuildError(f"{where}: difficulty={value!r} must lie between 1 and {HARDEST}.")
