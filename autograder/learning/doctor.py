"""Look at a machine before a chapter does: Python, packages, memory, a GPU, and what a page needs."""

import html
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

OLDEST_PYTHON = (3, 11)
GIGABYTE = 2**30
LEAST_MEMORY_GB, LEAST_DISK_GB = 2.0, 1.0
CHAPTER_GB = 1.5  # JupyterLab with the heaviest chapter stays below; docs/classroom.md has what was measured
DISTRIBUTION = "inside-a-transformer-block"
CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Args:
        what: What it is.
        good: Whether it serves; None where it is only worth knowing.
        words: What was found.
        advice: What to do where it does not serve.
        is_package: Whether it is one of the many packages, which a page folds as long as all serve.
        passes: Whether it may be otherwise when the course runs, as memory is after an image was built.
    """

    what: str
    good: bool | None
    words: str
    advice: str = ""
    is_package: bool = False
    passes: bool = False


def findings(course: Path | None = None) -> list[Finding]:
    """Return everything that was looked at, the necessary first.

    Args:
        course: The course's folder, if it is known.
    """
    return [python(), *packages(), torch_works(), gpu(), memory(), disk(course or Path.cwd()), *pages(), system()]


def python() -> Finding:
    """Look at the version of Python."""
    found = platform.python_version()
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return Finding("Python", sys.version_info >= OLDEST_PYTHON, found, f"The course needs Python {oldest} or later.")


def packages() -> Iterator[Finding]:
    """Look for every package that a learner needs, in the version that the course asks for."""
    try:
        wanted = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        yield Finding("The course", False, "is not installed", "pip install -c constraints.txt -e .")
        return
    for text in wanted:
        requirement = Requirement(text)
        if requirement.marker is None:
            yield package(requirement)


def package(requirement: Requirement) -> Finding:
    """Look for one package."""
    advice = f'pip install -c constraints.txt "{requirement}"'
    try:
        found = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(requirement.name, False, "is missing", advice, is_package=True)
    good = requirement.specifier.contains(found, prereleases=True)
    return Finding(requirement.name, good, found, f"{advice}  (found {found})", is_package=True)


def torch_works() -> Finding:
    """Multiply two matrices with PyTorch, since an installed package may yet not load."""
    advice = "Install PyTorch again, as its page says for your system."
    try:
        import torch

        product = (torch.ones(2, 3) @ torch.ones(3, 2)).sum().item()
    except Exception as error:  # whatever a broken installation raises
        return Finding("PyTorch multiplies", False, f"{type(error).__name__}: {error}", advice)
    return Finding("PyTorch multiplies", product == 12.0, "yes" if product == 12.0 else f"got {product}", advice)


def gpu() -> Finding:
    """Look for a GPU, which no chapter needs."""
    try:
        import torch

        if torch.cuda.is_available():
            return Finding("GPU", None, torch.cuda.get_device_name())
        if torch.backends.mps.is_available():
            return Finding("GPU", None, "Apple's, through Metal")
    except Exception as error:  # a driver that does not fit
        return Finding("GPU", None, f"cannot be used ({type(error).__name__}); no chapter needs one")
    return Finding("GPU", None, "none; no chapter needs one")


def memory() -> Finding:
    """Look at the memory that this process may have, in a container the container's."""
    total = total_memory()
    if total is None:
        return Finding("Memory", None, "unknown on this system")
    advice = (
        f"Close other notebooks: JupyterLab with the heaviest chapter takes up to {CHAPTER_GB} GB, the system the rest."
    )
    good = total >= LEAST_MEMORY_GB * GIGABYTE
    return Finding("Memory", good, f"{total / GIGABYTE:.1f} GB", advice, passes=True)


def total_memory() -> int | None:
    """Return the bytes of memory, or the limit of the container if that is lower; None if nothing tells."""
    limits = [int(text) for path in CGROUP_LIMITS if (text := read(path)).isdecimal()]
    try:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        pass
    return min(limits) if limits else None


def disk(folder: Path) -> Finding:
    """Look at the room beside the notebooks, and whether they can be written."""
    free = shutil.disk_usage(folder).free
    if not os.access(folder, os.W_OK):
        return Finding("Disk", False, f"{folder} cannot be written", "Copy the course to a folder of your own.")
    advice = "Make room: a notebook that cannot be saved is lost."
    good = free >= LEAST_DISK_GB * GIGABYTE
    return Finding("Disk", good, f"{free / GIGABYTE:.0f} GB free", advice, passes=True)


def pages() -> Iterator[Finding]:
    """Look for what JupyterLab needs to show sliders and Validate."""
    shared = Path(sys.prefix) / "share" / "jupyter"
    wanted = {
        "Sliders in JupyterLab": shared / "labextensions" / "@jupyter-widgets" / "jupyterlab-manager",
        "Python kernel": shared / "kernels" / "python3" / "kernel.json",
    }
    for what, path in wanted.items():
        there = path.exists()
        advice = "pip install --force-reinstall -c constraints.txt ipywidgets jupyterlab_widgets ipykernel"
        yield Finding(what, there, "there" if there else "missing", advice)


def system() -> Finding:
    """Say what of the course needs Unix."""
    name = {"Darwin": "macOS"}.get(platform.system(), platform.system())
    if name == "Linux":
        return Finding("System", None, "Linux: all of the course runs here")
    return Finding("System", None, f"{name}: the course is tested on Linux; grading in the sandbox needs it")


def verdict(found: Iterable[Finding]) -> str:
    """Return the plain verdict in a sentence."""
    bad = [one for one in found if one.good is False]
    if not bad:
        return "This machine is ready for the course."
    return f"{len(bad)} of these need your attention: " + ", ".join(one.what for one in bad) + "."


def read(path: Path) -> str:
    """Return a small file's text, or nothing."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def words_of(good: bool | None) -> str:
    """Return a finding's state in a word."""
    return {True: "good", False: "look here", None: "to know"}[good]


class EnvironmentCheck:
    """The findings as a table in a notebook, and as lines of text elsewhere."""

    def __init__(self, course: Path | None = None):
        """Look at the machine now."""
        self.found = findings(course)

    def __str__(self) -> str:
        """Return a line for each finding, and the verdict."""
        lines = [f"{words_of(one.good):<9}  {one.what}: {one.words}" for one in self.found]
        advice = [f"  {one.what}: {one.advice}" for one in self.found if one.good is False]
        return "\n".join([*lines, verdict(self.found), *advice])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        folded = [one for one in self.found if one.is_package and one.good]
        shown = [one for one in self.found if one not in folded]
        said = html.escape(verdict(self.found))
        packages = f"<details><summary>Packages that are good: {len(folded)}</summary>{table(folded)}</details>"
        return f"<p><strong>{said}</strong></p>{table(shown)}{packages if folded else ''}"


def table(found: Iterable[Finding]) -> str:
    """Return findings as a table for a notebook, whose own style would set text to the right."""
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left">{html.escape(one.what)}</th>'
        f'<td style="text-align:left">{words_of(one.good)}</td>'
        f'<td style="text-align:left">{html.escape(one.words)}'
        f"{html.escape('. ' + one.advice) if one.good is False else ''}</td></tr>"
        for one in found
    )
    head = "".join(f'<th scope="col" style="text-align:left">{text}</th>' for text in ("what", "state", "found"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
