"""Nothing of the documents is lost: the rows against the chapters, and each check against a planted fault."""

from dataclasses import replace
from pathlib import Path

import pytest

from autograder.commands import coverage as command
from autograder.course_folder import chapter_names, find_course, source_path
from autograder.reports import coverage, nothing_lost
from autograder.reports.nothing_lost import KINDS, chapter_sections, page, problems, read_rows, stale_page, write_page

COURSE = find_course(Path(__file__).parent)
MOST_SECTIONS = 4  # of some 400: a phrase that stands in more tells nothing about one
FAULTS_AND_CLAIMS = {"faults": 78, "claims": 60}
CHAPTER = """\
# %% [markdown]
# # 1 · A chapter
#
# ```
# # no heading
# ```
# > a phrase that a quote
# > breaks in two

# %% exercise="one" role="answer"
# BEGIN SOLUTION
secret = 1
# END SOLUTION

# %%
# # a comment, and no heading
shown = 2

# %% [markdown]
# ## The next
#
# other words
"""


@pytest.fixture(scope="module")
def rows():
    return read_rows()


def changed(rows, kind, place, **changes):
    """Return the rows with one of them changed."""
    own = list(rows[kind])
    own[place] = replace(own[place], **changes)
    return {**rows, kind: own}


def only(rows, kind, row_id):
    """Return the problems that one kind has, one row of which is named."""
    return [problem for problem in problems({kind: rows[kind]}, COURSE) if row_id in problem]


def test_every_row_points_to_a_heading_that_is_there_and_to_words_under_it(rows):
    assert problems(rows, COURSE) == []


def test_no_phrase_is_so_common_that_it_would_stand_anywhere(rows):
    sources = [source_path(COURSE, name) for name in chapter_names(COURSE)]
    sections = [" ".join(text.split()) for source in sources for text in chapter_sections(source).values()]
    for own in rows.values():
        for row in own:
            found = sum(" ".join(row.evidence.split()) in text for text in sections)
            assert found <= MOST_SECTIONS, f"{row.id}: {row.evidence!r} stands in {found} sections"


def test_all_faults_and_all_claims_have_a_row(rows):
    for kind, count in FAULTS_AND_CLAIMS.items():
        assert [row.id for row in rows[kind]] == KINDS[kind].ids()
        assert len(rows[kind]) == count
    assert (rows["faults"][0].id, rows["faults"][-1].id) == ("F01", "F78")
    assert (rows["claims"][0].id, rows["claims"][-1].id) == ("D01", "D60")


def test_each_document_and_each_chapter_has_a_part(rows):
    every = [row for own in rows.values() for row in own]
    assert {row.where[0] for row in every} == set(nothing_lost.DOCUMENTS)
    assert {row.chapter for row in every} == set(range(1, 13))


def test_nothing_is_listed_twice(rows):
    every = [(kind, row.where, row.what) for kind, own in rows.items() for row in own]
    assert len(every) == len(set(every))


def test_the_page_is_fresh():
    assert stale_page(COURSE) == []


def test_the_page_has_every_row_once_and_links_to_files_that_exist(rows):
    text = page(rows, COURSE)
    for own in rows.values():
        for row in own:
            assert text.count(f"| {row.id} |") == 1
    links = {part.split(")")[0] for part in text.split("](../")[1:]}
    assert links
    assert all((COURSE / link).is_file() for link in links)


def test_a_row_that_is_gone_is_missed_in_the_middle_and_at_the_end(rows):
    for kind, own in rows.items():
        for place in (len(own) // 2, -1):
            without = list(own)
            lost = without.pop(place)
            assert f"{kind}: the row {lost.id} is missing." in problems({kind: without}, COURSE)


def test_a_row_too_many_and_a_wrong_order_are_told(rows):
    claims = rows["claims"]
    more = [*claims, replace(claims[-1], id="D61")]
    assert "claims: the row D61 is none of D01 … D60." in problems({"claims": more}, COURSE)
    assert problems({"claims": [*claims, claims[-1]]}, COURSE) == ["claims: the rows must stand in order, each once."]
    assert problems({"claims": claims[::-1]}, COURSE) == ["claims: the rows must stand in order, each once."]


def test_a_heading_that_is_not_there_is_told(rows):
    planted = changed(rows, "faults", 0, anchor="Too good to be trusted")
    assert only(planted, "faults", "F01") == ["F01: chapter 6 has no heading 'Too good to be trusted'."]


def test_a_phrase_that_stands_elsewhere_in_the_chapter_is_told(rows):
    elsewhere = next(row for row in rows["faults"] if row.chapter == 6 and row.anchor != rows["faults"][0].anchor)
    found = only(changed(rows, "faults", 0, evidence=elsewhere.evidence), "faults", "F01")
    assert len(found) == 1
    assert "does not stand under" in found[0]


def test_a_chapter_and_a_document_that_do_not_exist_are_told(rows):
    assert only(changed(rows, "claims", 4, chapter=99), "claims", "D05") == ["D05: there is no chapter 99."]
    assert "must begin with a document" in only(changed(rows, "claims", 4, where="X, 1"), "claims", "D05")[0]


def test_a_system_without_its_reference_is_told(rows):
    for reference, words in (
        (None, "needs a `reference`"),
        ("course_lib/no_such_module.py:def f", "there is no course_lib/no_such_module.py"),
        ("course_lib/attention.py:def performer", "does not stand in course_lib/attention.py"),
    ):
        assert words in only(changed(rows, "systems", 0, reference=reference), "systems", "S01")[0]


def test_sections_leave_out_answers_and_take_neither_code_nor_comments_for_headings(tmp_path):
    source = tmp_path / "01_chapter.py"
    source.write_text(CHAPTER, encoding="utf-8")
    sections = chapter_sections(source)
    assert set(sections) - {""} == {"1 · A chapter", "The next"}
    assert "shown = 2" in sections["1 · A chapter"]
    assert "secret" not in sections["1 · A chapter"]
    assert "other words" not in sections["1 · A chapter"]


def test_a_phrase_is_found_across_the_lines_of_a_quote(tmp_path, rows):
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "01_chapter.py").write_text(CHAPTER, encoding="utf-8")
    row = replace(rows["claims"][0], chapter=1, anchor="1 · A chapter", evidence="that a quote breaks in two")
    assert not [problem for problem in problems({"claims": [row]}, tmp_path) if problem.startswith("D01:")]


def test_a_page_that_was_changed_or_is_missing_is_stale(tmp_path):
    (tmp_path / "solutions").symlink_to(COURSE / "solutions")
    assert len(stale_page(tmp_path)) == 1
    assert write_page(tmp_path)
    assert stale_page(tmp_path) == []
    assert not write_page(tmp_path)
    written = tmp_path / nothing_lost.PAGE
    written.write_text(written.read_text(encoding="utf-8").replace("F01", "F1"), encoding="utf-8")
    assert len(stale_page(tmp_path)) == 1
    assert "course coverage --write" in stale_page(tmp_path)[0]


def test_the_command_that_writes_the_table_of_coverage_writes_this_page_too(tmp_path, monkeypatch, capsys):
    (tmp_path / "solutions").symlink_to(COURSE / "solutions")
    (tmp_path / "README.md").write_text(f"{coverage.BEGIN}\n{coverage.END}\n", encoding="utf-8")
    monkeypatch.setattr(command, "course_root", lambda: tmp_path)
    monkeypatch.setattr(coverage, "coverage_rows", list)
    command.run(write=True)
    assert stale_page(tmp_path) == []
    assert "the page is new" in capsys.readouterr().out
