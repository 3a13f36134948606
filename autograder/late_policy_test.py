from datetime import datetime

import pytest
from traitlets.config import Config

from autograder.errors import CourseError
from autograder.late_policy import LatePolicy, due_in_utc, due_in_words

HOUR, DAY = 3600, 86_400


@pytest.mark.parametrize(
    ("seconds", "penalty"),
    [
        (0, 0.0),
        (15 * 60, 0.0),
        (15 * 60 + 1, 2.0),
        (DAY, 2.0),
        (DAY + 15 * 60 + 1, 4.0),
        (4 * DAY, 8.0),
        (4 * DAY + HOUR, 10.0),
        (400 * DAY, 10.0),
    ],
)
def test_each_day_begun_costs_a_share_up_to_the_cap(seconds: float, penalty: float) -> None:
    assert LatePolicy().late_submission_penalty("ada", 20.0, seconds) == pytest.approx(penalty)


def test_the_numbers_come_from_the_configuration() -> None:
    config = Config({"LatePolicy": {"grace_minutes": 0, "percent_per_day": 25, "cap_percent": 100}})
    policy = LatePolicy(config=config)
    assert policy.late_submission_penalty("ada", 20.0, 1) == 5.0
    assert policy.late_submission_penalty("ada", 20.0, 10 * DAY) == 20.0


def test_a_due_date_is_what_the_clock_of_a_zone_shows() -> None:
    due = due_in_utc("2026-07-01 23:59", "Europe/Berlin")
    assert due == datetime(2026, 7, 1, 21, 59)
    assert due_in_words(due, "Europe/Berlin") == "2026-07-01 23:59 CEST (UTC+0200), which is 2026-07-01 21:59 UTC"


@pytest.mark.parametrize(
    ("text", "zone", "words"),
    [
        ("tomorrow", "UTC", "write it as 2026-12-01 23:59"),
        ("2026-12-01 23:59", "Mars/Olympus", "there is no time zone"),
        ("2026-12-01T23:59+01:00", "UTC", "names a zone itself"),
        ("2026-10-25 02:30", "Europe/Berlin", "the clock is changed"),
        ("2026-03-29 02:30", "Europe/Berlin", "the clock is changed"),
    ],
)
def test_a_date_that_does_not_decide_is_refused(text: str, zone: str, words: str) -> None:
    with pytest.raises(CourseError, match=words):
        due_in_utc(text, zone)
