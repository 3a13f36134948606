"""Remember of each submission that was collected what its folder does not hold: name, order, mark of being late."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder.collecting.whole import draft_of

ENDING = ".collected.json"


@dataclass(frozen=True)
class Remembered:
    """What an archive told of the submission that stands.

    Args:
        origin: The name, without ending, under which the LMS takes a file back; empty where it takes none.
        system: Whose archive it was.
        order: Orders a student's attempts in this system's archives, as text; empty where they tell no order.
        late: Whether the LMS marked it late.
    """

    origin: str = ""
    system: str = ""
    order: str = ""
    late: bool = False

    def precedes(self, other: "Remembered") -> bool:
        """Return whether this is surely the earlier one; what cannot be compared precedes nothing."""
        comparable = self.system == other.system and bool(self.order) and bool(other.order)
        return comparable and self.order < other.order


def record_path(course: Path, chapter: str) -> Path:
    """Return the file of a chapter."""
    return course / "results" / f".{chapter}{ENDING}"


def remember(course: Path, chapter: str, collected: dict[str, Remembered]) -> None:
    """Add what was collected, by student."""
    path = record_path(course, chapter)
    path.parent.mkdir(exist_ok=True)
    known = {student: asdict(one) for student, one in (recall(course, chapter) | collected).items()}
    with draft_of(path) as draft:
        draft.write_text(json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def recall(course: Path, chapter: str) -> dict[str, Remembered]:
    """Return what is remembered by student; nothing where no archive was collected or the file is damaged."""
    try:
        known = json.loads(record_path(course, chapter).read_text(encoding="utf-8"))
        return {student: Remembered(**about) for student, about in known.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
