"""A source is read with its roles; what means nothing is refused in one sentence that names the place."""

from pathlib import Path

import pytest

from autograder.authoring.chapter_source import ChapterSource, read_chapter
from autograder.authoring.example_chapter import TEXT, changed
from autograder.authoring.roles import BuildError, exercise_and_role, grade_id


def read(folder: Path, text: str) -> ChapterSource:
    """Read a text as the source of a chapter."""
    path = folder / "solutions" / "01_toy.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return read_chapter(path)


def test_cells_keep_their_order_role_and_points(tmp_path: Path) -> None:
    source = read(tmp_path, TEXT)
    assert source.name == "01_toy"
    assert source.title == "Toys: a first chapter"
    assert [cell.role for cell in source.cells[:5]] == ["opening", None, None, "header", "answer"]
    assert [cell.points for cell in source.cells if cell.points] == [1, 2, 1, 1, 3]
    assert list(source.exercises()["double"]) == ["header", "answer", "test", "hidden test"]


def test_place_of_a_cell_names_file_number_and_line(tmp_path: Path) -> None:
    where = read(tmp_path, TEXT).cells[1].where
    line = TEXT.split("\n").index("# ## Ready")  # the marker is the line before, counted from 1
    assert where == f"solutions/01_toy.py, cell 2 (line {line})"


def test_magic_lines_come_out_of_their_comments(tmp_path: Path) -> None:
    source = read(tmp_path, changed("import math", "# %matplotlib inline\nimport math"))
    assert source.cells[2].text.startswith("%matplotlib inline")


FAULTS = {
    "unknown role": ('role="test"\nfrom', 'role="tset"\nfrom', "'tset' is no role; the roles are"),
    "unknown key on a role": ("minutes=10 lines=2", "minutes=10 line=2", "'line' is not allowed .* allowed: role"),
    "key on an ordinary cell": ("# %% long=true", "# %% slow=true", "'slow' is not allowed .*: long"),
    "title on a marker": ("# %% long=true", "# %% Imports", "'title' is not allowed"),
    "missing key": ('exercise="double" points=1 role', 'exercise="double" role', "needs the key 'points'"),
    "wrong cell type": (
        '# %% exercise="double" role="answer"',
        '# %% [markdown] exercise="double" role="answer"',
        "belongs on a code cell",
    ),
    "no points": ('exercise="double" points=1', 'exercise="double" points=0', "points=0 must be a whole number"),
    "half a point": ('exercise="double" points=1', 'exercise="double" points=0.5', "points=0.5 must be"),
    "too difficult": ("difficulty=2", "difficulty=9", "between 1 and 5"),
    "no name": ('exercise="double" points=1', 'exercise="do-ble" points=1', "must be a plain Python name"),
    "unreadable marker": ("# %% long=true", "# %% long=yes", "cannot be read"),
    "raw cell": ("# %% [markdown]\n# ## Ready", "# %% [raw]\n# ## Ready", "raw cells"),
    "marks in prose": ("# The root", "# BEGIN SOLUTION is a mark. The root", "may stand in an answer cell alone"),
    "hidden test marks": ("check(double)\n", "# BEGIN HIDDEN TESTS\ncheck(double)\n", "no source cell alone"),
    "no solution region": ("    # BEGIN SOLUTION\n    twice", "    twice", "here are END SOLUTION"),
    "no end": ("    return twice_the_number\n    # END SOLUTION", "    return twice_the_number", "BEGIN SOLUTION"),
    "crooked mark": (
        "    return twice_the_number\n    # END SOLUTION",
        "    return twice_the_number\n# END SOLUTION",
        "indented alike",
    ),
    "words on the mark's line": (
        "    # BEGIN SOLUTION\n    twice",
        "    # BEGIN SOLUTION here\n    twice",
        "alone on its line",
    ),
    "starter apart from its solution": ("    # BEGIN STARTER", "\n    # BEGIN STARTER", "on the line after"),
    "starter not in comments": ("    #     return number", "    return number", "begins with '# '"),
    "unknown header key": ("# title:", "# titel:", "'titel' is unknown"),
    "broken header": ('"Toys: a first chapter"', "[Toys", "is not YAML"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_refused_in_a_sentence_that_names_the_file(fault: str, tmp_path: Path) -> None:
    old, new, words = FAULTS[fault]
    with pytest.raises(BuildError, match=words) as caught:
        read(tmp_path, changed(old, new))
    assert str(caught.value).startswith("solutions/01_toy.py")


def test_answer_without_any_mark_is_refused(tmp_path: Path) -> None:
    text = '# %% exercise="double" role="answer"\ndouble = 2\n'
    with pytest.raises(BuildError, match=r"cell 1 \(line 1\): an answer needs # BEGIN SOLUTION"):
        read(tmp_path, text)


def test_missing_and_undecodable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="cannot be read as UTF-8"):
        read_chapter(tmp_path / "01_missing.py")
    (tmp_path / "01_latin.py").write_bytes("# café".encode("latin-1"))
    with pytest.raises(BuildError, match="cannot be read as UTF-8"):
        read_chapter(tmp_path / "01_latin.py")


@pytest.mark.parametrize("role", ["answer", "test", "hidden test", "written"])
@pytest.mark.parametrize("number", [1, 2])
def test_grade_id_reads_back_as_exercise_and_role(role: str, number: int) -> None:
    assert exercise_and_role(grade_id("why_scale", role, number)) == ("why_scale", role)


def test_a_foreign_grade_id_is_refused() -> None:
    with pytest.raises(ValueError, match="names no role"):
        exercise_and_role("softmax-bonus")
