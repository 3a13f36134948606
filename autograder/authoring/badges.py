"""Badges that open a chapter on Binder or Colab, made from the repository's public address.

The address stands in one place, `[project.urls]` in pyproject.toml; while it is not there, nothing is shown.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import nbformat
from nbformat import NotebookNode

from autograder.authoring.roles import BuildError
from autograder.course_folder import chapter_path

URL_NAME, BRANCH_NAME = "Repository", "main"
ADDRESS = re.compile(r"https://github\.com/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+?)(?:\.git)?/?")
BEGIN, END = "<!-- badges:begin -->", "<!-- badges:end -->"
BADGE_ID, INSTALL_ID = "open-elsewhere", "colab-install"
INSTALL = """# On Colab this fetches the course, in about a minute. Everywhere else it does nothing.
import subprocess
import sys

if "google.colab" in sys.modules:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "git+{address}"], check=True)"""


@dataclass(frozen=True)
class Repository:
    """Where the course is published."""

    owner: str
    name: str

    @property
    def address(self) -> str:
        """Return the address that git fetches from."""
        return f"https://github.com/{self.owner}/{self.name}"

    def binder(self, notebook: str) -> str:
        """Return the address that opens a notebook on Binder."""
        place = quote(f"lab/tree/{notebook}", safe="")
        return f"https://mybinder.org/v2/gh/{self.owner}/{self.name}/{BRANCH_NAME}?urlpath={place}"

    def colab(self, notebook: str) -> str:
        """Return the address that opens a notebook on Colab."""
        return f"https://colab.research.google.com/github/{self.owner}/{self.name}/blob/{BRANCH_NAME}/{quote(notebook)}"

    def badges(self, notebook: str) -> str:
        """Return both links as Markdown; words, since a picture would be fetched from elsewhere."""
        return f"[Open on Binder]({self.binder(notebook)}) · [Open on Colab]({self.colab(notebook)})"


def repository(course: Path) -> Repository | None:
    """Return where the course is published, or None while pyproject.toml does not say.

    Raises:
        BuildError: the address is none that Binder and Colab can open.
    """
    path = course / "pyproject.toml"
    if not path.is_file():
        return None
    urls = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {}).get("urls", {})
    address = urls.get(URL_NAME, "")
    if not address:
        return None
    match = ADDRESS.fullmatch(address)
    if match is None:
        raise BuildError(f"pyproject.toml: {URL_NAME} must be like https://github.com/OWNER/NAME; it is {address!r}.")
    return Repository(match["owner"], match["name"])


def with_badges(text: str, chapter: str, published: Repository | None) -> str:
    """Return a student's notebook with the links and Colab's install cell behind the opening."""
    if published is None:
        return text
    from autograder.authoring.handed_out import note_what_is_handed_out
    from autograder.authoring.release import write_notebook

    notebook: NotebookNode = nbformat.reads(text, as_version=4)
    place = chapter_path(Path(), chapter).as_posix()
    links = nbformat.v4.new_markdown_cell(published.badges(place), id=BADGE_ID)
    install = nbformat.v4.new_code_cell(INSTALL.format(address=published.address), id=INSTALL_ID)
    notebook.cells[1:1] = [links, install]
    note_what_is_handed_out(notebook)
    return write_notebook(notebook)


def readme_with_badges(text: str, published: Repository | None, first: str) -> str:
    """Return README's text with the links between its two marks, or with nothing between them."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        return text
    links = f"\n{published.badges(chapter_path(Path(), first).as_posix())}\n" if published else "\n"
    return f"{before}{BEGIN}{links}{END}{after}"
