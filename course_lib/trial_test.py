"""Predictions and verdicts."""

import pytest

from course_lib.trial import reveal, verdict


@pytest.mark.parametrize(
    ("findings", "outcome"),
    [
        ({"d = 4": True, "d = 64": True}, "Verdict: supported (holds for d = 4, d = 64)"),
        ({"d = 4": False}, "Verdict: refuted (fails for d = 4)"),
        ({"d = 4": True, "d = 64": False}, "Verdict: depends on the width (holds for d = 4; fails for d = 64)"),
    ],
)
def test_the_verdict_follows_from_the_findings(findings, outcome: str, capsys: pytest.CaptureFixture[str]) -> None:
    verdict("scores stay small", findings, depends_on="the width")
    assert outcome in capsys.readouterr().out


def test_a_claim_without_findings_is_not_judged() -> None:
    with pytest.raises(ValueError, match="no finding"):
        verdict("scores stay small", {}, depends_on="the width")


@pytest.mark.parametrize("prediction", [None, True, "0.5"])
def test_what_is_no_number_is_no_prediction_yet(prediction, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    import jaxtyping

    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    reveal(prediction, 0.3)
    assert "No prediction yet" in capsys.readouterr().out


def test_a_prediction_stands_next_to_the_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    reveal(0.5, 0.34512)
    assert capsys.readouterr().out == "You predicted 0.5; measured: 0.3451.\n"
