"""Turn a student's text into HTML that cannot do anything: no script, no form, nothing loaded from elsewhere."""

import html
import re
from functools import lru_cache

import bleach
from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

SHARED_CELLS = 512  # a class shares its chapter's text, so most cells are the last page's
HEADING_SHIFT = 2  # the page has a title and section headings of its own
DEEPEST_HEADING = 6
TEXT_TAGS = {
    *("a", "abbr", "b", "blockquote", "br", "caption", "code", "col", "colgroup", "dd", "del", "details", "div", "dl"),
    *("dt", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "kbd", "li", "ol", "p"),
    *("pre", "s", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead"),
    *("tr", "ul", "var"),
}
MATH_TAGS = {
    *("math", "semantics", "mrow", "mi", "mo", "mn", "ms", "mtext", "mspace", "mstyle", "mfrac", "msqrt", "mroot"),
    *("msub", "msup", "msubsup", "munder", "mover", "munderover", "mtable", "mtr", "mtd", "mpadded", "mphantom"),
    *("menclose", "mmultiscripts", "mprescripts"),
}
ATTRIBUTES_OF_MATH = ("display", "displaystyle", "scriptlevel", "stretchy", "fence", "form", "accent", "mathvariant")
SPACES_OF_MATH = (
    "width",
    "height",
    "depth",
    "lspace",
    "rspace",
    "linethickness",
    "columnalign",
    "separator",
    "movablelimits",
)
SCRIPT_OR_STYLE = re.compile(r"(?is)<(script|style)\b.*?(</\1\s*>|\Z)")
INLINE_IMAGE = re.compile(r"data:image/(png|jpeg|gif|svg\+xml);base64,[A-Za-z0-9+/=\s]*")


def allowed_attribute(tag: str, name: str, value: str) -> bool:
    """Return whether an attribute may stay: pictures lie in the page itself, links lead out or within."""
    if tag == "img":
        return name in ("alt", "width", "height", "title") or (name == "src" and bool(INLINE_IMAGE.fullmatch(value)))
    if tag in MATH_TAGS:
        return name in ATTRIBUTES_OF_MATH or name in SPACES_OF_MATH
    if name == "href":
        return tag == "a"
    if name in ("colspan", "rowspan", "scope"):
        return tag in ("td", "th")
    return name in ("class", "title") or (name == "id" and value.startswith("nb-"))


def harmless(text: str) -> str:
    """Return HTML with everything removed that could act, load or pretend; unknown tags lose their brackets alone."""
    return bleach.clean(
        text,
        tags=TEXT_TAGS | MATH_TAGS,
        attributes=allowed_attribute,
        protocols={"http", "https", "mailto", "data"},
        strip=True,
        strip_comments=True,
    )


@lru_cache(maxsize=SHARED_CELLS)
def markdown_html(source: str) -> str:
    """Return a Markdown cell as harmless HTML, its formulas as MathML."""
    return harmless(str(MarkdownWithMath(renderer=PageRenderer(escape=False))(source)))


def output_html(source: str) -> str:
    """Return the HTML that a cell printed as harmless HTML."""
    return harmless(without_scripts(source))


def without_scripts(text: str) -> str:
    """Return HTML without scripts and styles, whose text would otherwise be left behind."""
    return SCRIPT_OR_STYLE.sub("", text)


class PageRenderer(IPythonRenderer):
    """Markdown as nbconvert reads it, with headings below the page's own and formulas that need no script."""

    def heading(self, text: str, level: int, **attributes: object) -> str:
        """Return a heading that can be linked to."""
        depth = min(level + HEADING_SHIFT, DEEPEST_HEADING)
        return f'<h{depth} id="{anchor(text)}">{text}</h{depth}>\n'

    def block_html(self, html: str) -> str:
        """Return the HTML between two blank lines, which may open what a later piece closes."""
        return without_scripts(super().block_html(html))

    def block_math(self, body: str) -> str:
        """Return a formula on a line of its own."""
        return mathml(body, "block")

    def inline_math(self, body: str) -> str:
        """Return a formula in the line."""
        return mathml(body, "inline")

    def latex_environment(self, name: str, body: str) -> str:
        """Return an environment such as `aligned`."""
        return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")


@lru_cache(maxsize=4096)  # a class shares its chapter's formulas
def mathml(body: str, display: str) -> str:
    """Return a formula in MathML; one that cannot be read is shown as it was written."""
    try:
        return convert(body, display=display)
    except Exception:  # a student's formula may be anything
        return f"<code>{html.escape(body)}</code>"


def anchor(text: str) -> str:
    """Return the identity of a heading in the page."""
    words = re.findall(r"[a-z0-9_]+", re.sub(r"<[^>]*>", "", text).lower())
    return "nb-" + "-".join(words)
