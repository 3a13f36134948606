"""Put predictions next to measurements, and claims on trial."""

from collections.abc import Mapping


def reveal(prediction: float | None, measured: float) -> None:
    """Put a prediction next to what was measured, once there is one.

    Args:
        prediction: The learner's number; None while there is none, which is no error.
        measured: What came out.
    """
    if isinstance(prediction, bool) or not isinstance(prediction, int | float):
        print("No prediction yet: put a number in place of None and run this cell again.")
    else:
        print(f"You predicted {prediction:,.4g}; measured: {measured:,.4g}.")


def verdict(claim: str, findings: Mapping[str, bool], depends_on: str) -> None:
    """Judge a claim by its findings: each says for one situation whether the claim held there.

    Args:
        claim: The sentence on trial.
        findings: Whether it held, by situation.
        depends_on: What it depends on, when it holds in some situations and fails in others.

    Raises:
        ValueError: there is no finding, so nothing was measured.
    """
    if not findings:
        raise ValueError(f"The claim {claim!r} has no finding; measure at least one situation.")
    holds = [situation for situation, held in findings.items() if held]
    fails = [situation for situation, held in findings.items() if not held]
    outcome = f"depends on {depends_on}" if holds and fails else "supported" if holds else "refuted"
    reasons = [f"{word} for {', '.join(those)}" for word, those in (("holds", holds), ("fails", fails)) if those]
    print(f"Claim:   {claim}\nVerdict: {outcome} ({'; '.join(reasons)})\n")
