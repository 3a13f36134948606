"""What a check says; this module loads nothing, so that a grader can pass verdicts on without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, field

LARGEST_SEED = 1_000_000  # short enough to be read out and typed again


@dataclass(frozen=True)
class Verdict:
    """What a check found."""

    passed: bool
    exercise: str
    case: str | None
    misconception: str | None
    message: str
    seed: int


@dataclass
class Heard:
    """What a solution printed and warned of."""

    printed: str = ""
    left_out: int = 0
    warned: list[str] = field(default_factory=list)
