"""The diagnosis names the fault of every real run of the clinic, under seeds that set no threshold."""

import pytest

from course_lib.training import clinic
from course_lib.training.diagnosis import FAULTS, diagnose

SEEDS = (3, 4)


@pytest.fixture(autouse=True)
def full_length(monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("COURSE_QUICK", raising=False)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_patient_gets_its_own_diagnosis(fault, seed):
    record = clinic.admit(fault, seed).record
    assert diagnose(record.series()) == fault
    assert diagnose({name: values.tolist() for name, values in record.series().items()}) == fault


@pytest.mark.parametrize(("run", "named"), [({}, "loss"), ({"loss": []}, "loss"), ({"loss": [1.0]}, "grad_norm")])
def test_a_missing_series_is_named(run, named):
    with pytest.raises(ValueError, match=f"needs a series '{named}'"):
        diagnose(run)
