import pytest

from course_lib import settings


@pytest.fixture(autouse=True)
def no_quick_variables(monkeypatch):
    for name in settings.QUICK_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_a_reader_gets_the_full_length():
    assert not settings.quick()
    assert settings.steps(300, 5) == 300


@pytest.mark.parametrize("name", ["NBGRADER_EXECUTION", "COURSE_QUICK"])
@pytest.mark.parametrize("value", ["autograde", "validate", "1", "yes"])
def test_each_variable_alone_shortens(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert settings.quick()
    assert settings.steps(300, 5) == 5


@pytest.mark.parametrize("value", ["", " ", "0"])
def test_an_empty_variable_and_a_zero_shorten_nothing(monkeypatch, value):
    monkeypatch.setenv("COURSE_QUICK", value)
    assert not settings.quick()


def test_a_change_of_the_environment_is_seen_at_the_next_call(monkeypatch):
    assert settings.steps(10, 1) == 10
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert settings.steps(10, 1) == 1


@pytest.mark.parametrize(("full", "short"), [(5, 6), (5, -1), (-1, -1)])
def test_a_short_run_that_is_longer_or_negative_is_refused(full, short):
    with pytest.raises(ValueError, match=f"full={full} and short={short}"):
        settings.steps(full, short)
