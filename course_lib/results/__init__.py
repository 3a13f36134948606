"""Results that take too long for a chapter; the scripts in `benchmarks/` measure them."""

import json
from importlib import resources
from pathlib import Path
from typing import Any


def path_of(name: str) -> Path:
    """Give the file that holds a result."""
    return Path(str(resources.files(__name__))) / f"{name}.json"


def load(name: str) -> dict[str, Any]:
    """Read a result by its name.

    Raises:
        LookupError: there is no such result; the message lists those that are.
    """
    path = path_of(name)
    if not path.is_file():
        known = ", ".join(sorted(other.stem for other in path.parent.glob("*.json"))) or "none"
        raise LookupError(f"There is no result {name!r}; there are: {known}.")
    return json.loads(path.read_text(encoding="utf-8"))


def save(name: str, result: dict[str, Any]) -> Path:
    """Write a result."""
    path = path_of(name)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return path
