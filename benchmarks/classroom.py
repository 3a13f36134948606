"""Measure what a learner and an instructor wait for, and the memory that a chapter takes in JupyterLab.

    python benchmarks/classroom.py                                          everything, some five minutes
    python benchmarks/classroom.py --students 30 --graded 10 --rounds 1     a taste

It needs Chromium and the extras `instructor` and `dev`. It writes `benchmarks/results/classroom.json`, and from it
`docs/classroom.md`. Exit code 1 when a chapter takes more memory than Binder gives.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
from playwright.sync_api import Browser

from autograder.browser.lab import end_kernels, jupyter_lab
from autograder.browser.measuring import code_cells, memory_of_tree, peak_of_chapter, time_opening
from autograder.browser.page import chromium, fresh_page
from autograder.build import solved_notebook
from autograder.commands.demo import make_course
from autograder.course_folder import CHAPTERS, CONFIG_NAME, chapter_path
from autograder.grading.demo_class import class_drafts, hand_in, read_material
from autograder.grading.engine import grade_chapter
from autograder.grading.options import GradeOptions
from autograder.reports.copies import enlarge

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "classroom.json", ROOT / "docs" / "classroom.md"
OPENED = ("00_start_here", "01_attention")
CHAPTER = "01_attention"
ENDLESS = "09-endless-loop"  # grading it takes as long as its time limit, and no page differs
HEAVIEST = ("08_efficient_attention", "12_scaling_up")  # by the peak that `pytest -k keeps_its_limits` reports
STUDENTS, GRADED, ROUNDS = 200, 22, 3
MOST_REPORTS = 2  # rounds of what takes long and varies little
BINDER_BYTES = 2 * 2**30
BINDER_THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # as binder/start sets them
MEGABYTE = 2**20


def learners_copy(folder: Path, chapters: Sequence[str]) -> Path:
    """Copy chapters as a learner has them; return the course folder."""
    for name in chapters:
        target = chapter_path(folder, name)
        target.parent.mkdir(parents=True)
        shutil.copy(chapter_path(ROOT, name), target)
    shutil.copy(ROOT / CONFIG_NAME, folder)
    return folder


def opening(browser: Browser, folder: Path, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Time each page of a server that has just started and of a browser without a past, and then once more."""
    course = learners_copy(folder / "learner", OPENED)
    found: dict[str, dict[str, list[float]]] = {name: {} for name in OPENED}
    for number in range(rounds):
        for name in OPENED:
            first_code = code_cells(nbformat.read(chapter_path(course, name), as_version=nbformat.NO_CONVERT))[0]
            home = folder / f"home-{name}-{number}"
            home.mkdir()
            began = time.monotonic()
            with jupyter_lab(course / CHAPTERS, home, course=course) as lab, fresh_page(browser) as page:
                times = {"server": time.monotonic() - began}
                for state in ("cold", "warm"):
                    one = time_opening(page, lab, f"{name}/{name}.ipynb", first_code)
                    times |= {f"{state}, interactive": one.interactive, f"{state}, first cell": one.first_cell}
                    page.goto("about:blank")
                    end_kernels(lab)
            for what, seconds in times.items():
                found[name].setdefault(what, []).append(seconds)
            print(name, times, flush=True)
    return found


def reporting(folder: Path, students: int, graded: int, rounds: int) -> dict[str, Any]:
    """Time `course feedback` and `course report` for a class, from the command's start to its end."""
    course = folder / "class"
    make_course(ROOT, course, CHAPTER)
    material = read_material(ROOT, CHAPTER)
    kinds = [draft for name, draft in class_drafts(material).items() if name != ENDLESS]
    hand_in(course, material, {f"student-{number:03}": kinds[number % len(kinds)] for number in range(graded)})
    grade_chapter(course, CHAPTER, GradeOptions(feedback=False))
    enlarge(course, CHAPTER, students)
    seconds: dict[str, list[float]] = {"feedback": [], "report": []}
    for _ in range(min(rounds, MOST_REPORTS)):
        for command in seconds:
            began = time.monotonic()
            words = [sys.executable, "-m", "autograder.cli", command, CHAPTER, "--course", str(course)]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            seconds[command].append(time.monotonic() - began)
            print(command, seconds[command][-1], flush=True)
    pages = list((course / "feedback").glob(f"*/{CHAPTER}/{CHAPTER}.html"))
    assert len(pages) == students
    return {"students": students, "graded": graded, "page_bytes": max(p.stat().st_size for p in pages), **seconds}


def memory(browser: Browser, folder: Path, chapters: Sequence[str]) -> dict[str, dict[str, int]]:
    """Run solved chapters in JupyterLab at full length; return bytes of the server alone and the peak with kernel."""
    course = learners_copy(folder / "heavy", chapters)
    found = {}
    for name in chapters:
        solved = solved_notebook(ROOT, name)
        nbformat.write(solved, chapter_path(course, name))
        home = folder / f"home-{name}"
        home.mkdir()
        with (
            mock.patch.dict(os.environ, BINDER_THREADS),
            jupyter_lab(course / CHAPTERS, home, course=course) as lab,
            fresh_page(browser) as page,
        ):
            server = memory_of_tree(lab.pid)
            found[name] = {"server": server, "peak": peak_of_chapter(page, lab, f"{name}/{name}.ipynb", solved)}
        print(name, found[name], flush=True)
    return found


def measure(students: int, graded: int, rounds: int, chapters: Sequence[str]) -> dict[str, Any]:
    """Do all of it."""
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="classroom-") as name, chromium() as browser:
        folder = Path(name)
        return {
            "machine": machine,
            "opening": opening(browser, folder, rounds),
            "memory": memory(browser, folder, chapters),
            "reporting": reporting(folder, students, graded, rounds),
        }


def render(found: dict[str, Any]) -> str:
    """Return the page about the measurements."""
    reporting, machine = found["reporting"], found["machine"]
    students, graded = reporting["students"], reporting["graded"]
    first = next(iter(found["opening"].values()))
    columns = [what for what in first if what != "server"]
    servers = [seconds for one in found["opening"].values() for seconds in one["server"]]
    heaviest = max(found["memory"], key=lambda name: found["memory"][name]["peak"])
    return "\n".join(
        [
            "# What a classroom waits for",
            "",
            "Made by `python benchmarks/classroom.py` from `benchmarks/results/classroom.json`. Seconds are of one",
            f"machine with {machine['cores']} cores and of one hour, at a load of {machine['load']:.1f} when it began:",
            "medians, with the largest in brackets.",
            "",
            "## Opening a page",
            "",
            "A page is **interactive** when the notebook is shown and its kernel is connected and idle, so that cells",
            "can be edited and run. **First cell** is the moment at which the first code cell, run at once, has ended",
            "and shows its output: on the start page it looks at the machine and loads PyTorch, in chapter 01 it",
            "imports. Both count from the browser's asking for the address, in JupyterLab in headless Chromium.",
            "**Cold**: a server that has just started and a browser with an empty cache. **Warm**: the same server and",
            "browser once more, with a new kernel.",
            f"The server itself answers after {shown(servers)}.",
            "",
            "| page | " + " | ".join(columns) + " |",
            "|---|" + "---:|" * len(columns),
            *(
                f"| {name} | " + " | ".join(shown(times[what]) for what in columns) + " |"
                for name, times in found["opening"].items()
            ),
            "",
            "## Feedback and report",
            "",
            f"A class of {students} with chapter 01. {graded} made-up submissions were graded; the others are copies",
            "under other names, each with its own rows, notebook and text of answers, so that both commands do as much",
            "for them. Seconds are those of the whole command.",
            f"The largest feedback page has {reporting['page_bytes'] / 1e6:.1f} MB.",
            "",
            "| command | whole | per submission |",
            "|---|---:|---:|",
            *(
                f"| `course {command}` | {shown(reporting[command])} | "
                f"{statistics.median(reporting[command]) / students:.3f} s |"
                for command in ("feedback", "report")
            ),
            "",
            "## Memory",
            "",
            "Chapters solved and run from top to bottom at full length, with one thread as on Binder. Counted is what",
            "the server, its kernel and all that they start have for themselves, and once the largest part that one of",
            "them shares, such as libraries. The browser is the learner's and is not counted.",
            "",
            "| chapter | server alone | at most |",
            "|---|---:|---:|",
            *(
                f"| {name} | {one['server'] / MEGABYTE:.0f} MiB | {one['peak'] / MEGABYTE:.0f} MiB |"
                for name, one in found["memory"].items()
            ),
            "",
            f"The heaviest is {heaviest}: {found['memory'][heaviest]['peak'] / BINDER_BYTES:.0%} of the 2 GiB that",
            "Binder gives.",
            "",
        ]
    )


def shown(seconds: Sequence[float]) -> str:
    """Return the median, and the largest beside it."""
    return f"{statistics.median(seconds):.1f} s ({max(seconds):.1f})"


def main() -> int:
    """Measure, or only write the page anew; return the exit code."""
    options = argparse.ArgumentParser()
    options.add_argument("--students", type=int, default=STUDENTS)
    options.add_argument("--graded", type=int, default=GRADED, help="how many are graded; the others are copies")
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--chapters", nargs="*", default=HEAVIEST, help="whose memory is measured")
    options.add_argument("--page", action="store_true", help="only write the page from the results that are there")
    chosen = options.parse_args()
    if not chosen.page:
        found = measure(chosen.students, chosen.graded, chosen.rounds, chosen.chapters)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(render(found), encoding="utf-8")
    return int(any(one["peak"] > BINDER_BYTES for one in found["memory"].values()))


if __name__ == "__main__":
    sys.exit(main())
