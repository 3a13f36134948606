"""What being late costs: nothing within a grace, then a share of the points for each day begun, up to a cap.

nbgrader_config.py names `LatePolicy` as nbgrader's plugin, so `course grade` and plain `nbgrader autograde` apply it.
"""

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nbgrader.plugins import LateSubmissionPlugin
from traitlets import Float

from autograder.errors import CourseError

SECONDS_OF_A_MINUTE, SECONDS_OF_A_DAY = 60, 86_400
SHOWN = "%Y-%m-%d %H:%M %Z (UTC%z)"


class LatePolicy(LateSubmissionPlugin):
    """The course's policy; the numbers are set in nbgrader_config.py."""

    grace_minutes = Float(15.0, min=0.0, help="Minutes after the due date that cost nothing.").tag(config=True)
    percent_per_day = Float(10.0, min=0.0, max=100.0, help="Percent of the points for each day begun.").tag(config=True)
    cap_percent = Float(50.0, min=0.0, max=100.0, help="The most that lateness takes, in percent.").tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float:
        """Return the points to take off.

        Args:
            student_id: Whose submission; the policy is the same for all.
            score: The points before.
            total_seconds_late: Seconds after the due date.
        """
        late = total_seconds_late - SECONDS_OF_A_MINUTE * self.grace_minutes
        if late <= 0:
            return 0.0
        percent = min(self.cap_percent, self.percent_per_day * math.ceil(late / SECONDS_OF_A_DAY))
        return score * percent / 100


def due_in_utc(text: str, zone: str) -> datetime:
    """Read a due date as a clock in a time zone shows it; return it in UTC, without a zone, as nbgrader keeps it.

    Raises:
        CourseError: the date or the zone cannot be read, or the clock skips or repeats that hour.
    """
    try:
        place = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise CourseError(f"--zone: there is no time zone {zone!r}; write one such as Europe/Berlin or UTC.") from error
    try:
        local = datetime.fromisoformat(text)
    except ValueError as error:
        raise CourseError(f"{text!r} is no date and time; write it as 2026-12-01 23:59.") from error
    if local.tzinfo is not None:
        raise CourseError(f"{text!r} names a zone itself; leave it out, --zone says it.")
    earlier, later = (local.replace(tzinfo=place, fold=fold).astimezone(UTC) for fold in (0, 1))
    if earlier != later:
        raise CourseError(f"In {zone} the clock is changed around {text}; choose another hour.")
    return earlier.replace(tzinfo=None)


def due_in_words(due: datetime, zone: str) -> str:
    """Return a due date as nbgrader keeps it, in a time zone and in UTC."""
    aware = due.replace(tzinfo=UTC)
    return f"{aware.astimezone(ZoneInfo(zone)).strftime(SHOWN)}, which is {aware.strftime('%Y-%m-%d %H:%M UTC')}"
