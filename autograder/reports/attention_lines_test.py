import json
from pathlib import Path

import pytest

from autograder.course_folder import find_course
from autograder.reports.attention_lines import BEGIN, stored_run, with_lines
from course_lib import results


def test_readme_quotes_the_stored_run() -> None:
    text = (find_course(Path(__file__).parent) / "README.md").read_text(encoding="utf-8")
    assert BEGIN in text
    assert with_lines(text, stored_run()) == text


def test_a_run_on_a_gpu_is_quoted_once_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = results.load("attention_cpu") | {"device": "a planted GPU"}
    for name in ("attention_cpu", "attention_gpu"):
        (tmp_path / f"{name}.json").write_text(json.dumps(planted if name.endswith("gpu") else {}))
    monkeypatch.setattr(results, "path_of", lambda name: tmp_path / f"{name}.json")
    monkeypatch.setattr(results, "load", lambda name: json.loads((tmp_path / f"{name}.json").read_text()))
    assert "On a planted GPU" in with_lines(f"{BEGIN}\n<!-- attention:end -->", stored_run())
