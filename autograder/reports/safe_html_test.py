import pytest

from autograder.reports.safe_html import anchor, markdown_html, output_html

HARMFUL = [
    "<script>alert(1)</script>",
    "<SCRIPT\n>alert(1)</SCRIPT >",
    "<script>alert(1)",
    "<img src=x onerror=alert(1)>",
    "<img src='http://elsewhere.example/pixel.png'>",
    "<img src='data:text/html;base64,PHNjcmlwdD4='>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "<iframe src='http://elsewhere.example'></iframe>",
    "<svg onload=alert(1)></svg>",
    "<form action='http://elsewhere.example'><input name=a></form>",
    "<style>@import 'http://elsewhere.example'</style>",
    "<p style='background:url(http://elsewhere.example)'>x</p>",
    "<meta http-equiv=refresh content='0;url=http://elsewhere.example'>",
    "<math><mtext><script>alert(1)</script></mtext></math>",
    "<math href='javascript:alert(1)'></math>",
    "$\\text{<img src=x onerror=alert(1)>}$",
    "<!-- <script>alert(1)</script> -->",
]
TRACES = (
    "<script",
    "onerror=",
    "onload=",
    'src="http',
    'href="javascript',
    "<iframe",
    "<svg",
    "<form",
    "<input",
    "<meta",
)
MORE_TRACES = ("<style", "style=", "text/html", "<!--")


@pytest.mark.parametrize("clean", [markdown_html, output_html], ids=["markdown", "output"])
@pytest.mark.parametrize("text", HARMFUL, ids=range(len(HARMFUL)))
def test_nothing_of_a_harmful_text_can_act(text: str, clean) -> None:
    shown = clean(text).replace("&lt;", "(").lower()
    assert not [trace for trace in TRACES if trace in shown]


def test_the_traces_are_found_where_nothing_is_cleaned() -> None:
    raw = "".join(HARMFUL).lower()
    assert all(trace.replace('"', "'") in raw or trace in raw for trace in ("<script", "onerror=", "<iframe", "<style"))


def test_formulas_become_mathml_and_need_no_script() -> None:
    shown = markdown_html("A line with $d_k$.\n\n$$\\frac{1}{2}$$\n")
    assert "<msub>" in shown
    assert '<math display="block">' in shown
    assert "$" not in shown


def test_a_formula_that_cannot_be_read_is_shown_as_it_was_written() -> None:
    assert "<code>\\right</code>" in markdown_html("$\\right$")


def test_headings_lie_below_the_pages_own() -> None:
    assert markdown_html("# One") == '<h3 id="nb-one">One</h3>\n'
    assert "<h6" in markdown_html("###### Six")


def test_folded_hints_and_tables_stay() -> None:
    shown = markdown_html("<details><summary>Hint</summary>\n\nText\n\n</details>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    assert shown.index("<details>") < shown.index("Text") < shown.index("</details>")
    assert "<td>1</td>" in shown


def test_a_picture_in_the_page_itself_stays_with_its_words() -> None:
    shown = output_html('<img alt="a map" width="9" src="data:image/png;base64,AAAA">')
    assert 'alt="a map"' in shown
    assert 'src="data:image/png;base64,AAAA"' in shown


def test_anchors_hold_letters_and_digits_alone() -> None:
    assert anchor("Exercise: <code>softmax</code> & more") == "nb-exercise-softmax-more"
