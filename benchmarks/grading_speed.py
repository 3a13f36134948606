"""Grade the same submissions of chapter 01 by `course grade` and by stock `nbgrader autograde`, in turn.

    python benchmarks/grading_speed.py                    everything, about twenty minutes on two idle cores
    python benchmarks/grading_speed.py --students 8 --rounds 1 --sizes 8     a taste

It writes `benchmarks/results/grading.json`, and from it the tables of `docs/grading_speed.md`. Seconds are of this
machine and this hour; ratios come from runs that alternate.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autograder.commands.demo import make_course
from autograder.grading.checked_course import CHAPTER as TINY
from autograder.grading.demo_class import class_drafts, hand_in, read_material
from autograder.grading.events import run_log
from autograder.grading.soaking import make_soaked_class
from autograder.grading.stock import StockCourse

ROOT = Path(__file__).parents[1]
CHAPTER = "01_attention"
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "grading.json", ROOT / "docs" / "grading_speed.md"
OUTSIDE_THE_COMPARISON = ("08-damaged-cells", "09-endless-loop")  # stock nbgrader loses these
STUDENTS, ROUNDS, SIZES, WORKERS = 24, 3, (10, 100, 1000), (1, 2, 4)
PARTS = {
    "read": "read, mended, locked cells put back",
    "kernel": "a fresh sandboxed kernel",
    "cells": "the notebook's own cells",
    "verdicts": "the checks, judged outside",
    "finish": "the graded notebook made",
    "write": "gradebook and files written",
}
OURS = """
import resource, sys
from pathlib import Path
from autograder.grading.engine import grade_chapter
from autograder.grading.options import GradeOptions

grade_chapter(Path(sys.argv[1]), sys.argv[2], GradeOptions(force=True, workers=int(sys.argv[3]), feedback=False))
usage = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print("PEAK", *usage)
"""


@dataclass
class Timed:
    """One run: wall seconds from the command's start to its end, and the processor's seconds of all processes."""

    wall: float
    processor: float
    peak_mb: dict[str, float]


def make_class_folder(out: Path, students: int) -> list[str]:
    """Make a course folder with undamaged, honest submissions; return the students."""
    make_course(ROOT, out, CHAPTER)
    material = read_material(ROOT, CHAPTER)
    kinds = {name: draft for name, draft in class_drafts(material).items() if name not in OUTSIDE_THE_COMPARISON}
    chosen = {}
    for number in range(students):
        name, draft = list(kinds.items())[number % len(kinds)]
        chosen[f"{name}-{number // len(kinds) + 1:03d}"] = draft
    return hand_in(out, material, chosen)


def timed(command: Sequence[str], folder: Path) -> Timed:
    """Run a command to its end.

    Raises:
        RuntimeError: the command failed, with its last words.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # nbgrader looks for alembic there
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | {"PATH": path})
    wall = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])} ended with {done.returncode}: {done.stderr[-2000:]}")
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peaks = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("PEAK")]
    peak_mb = (
        {name: int(kb) / 1024 for name, kb in zip(("grader", "largest_child"), peaks[-1], strict=True)} if peaks else {}
    )
    return Timed(wall, processor, peak_mb)


def ours(folder: Path, workers: int) -> Timed:
    """Grade by the engine: sandbox and verdict process on, no feedback pages, as stock `autograde` makes none."""
    return timed([sys.executable, "-c", OURS, str(folder), CHAPTER, str(workers)], folder)


def stock(folder: Path) -> Timed:
    """Grade by stock nbgrader."""
    return timed([str(Path(sys.executable).with_name("nbgrader")), "autograde", CHAPTER, "--force"], folder)


def by_size(folder: Path, sizes: Sequence[int]) -> list[dict[str, float]]:
    """Grade larger and larger classes of a short notebook; return seconds and memory of each."""
    found = []
    for size in sizes:
        course = make_soaked_class(folder / f"class-{size}", size)
        run = timed([sys.executable, "-c", OURS, str(course), TINY, str(os.cpu_count() or 1)], course)
        found.append({"students": size, "seconds": run.wall, "per_submission": run.wall / size, **run.peak_mb})
        print(found[-1], flush=True)
    return found


def by_workers(folder: Path, students: int, workers: Sequence[int]) -> list[dict[str, float]]:
    """Grade one class of chapter 01 with more and more workers."""
    course = folder / "workers"
    make_class_folder(course, students)
    found = []
    for number in workers:
        run = ours(course, number)
        found.append({"workers": number, "seconds": run.wall, **run.peak_mb})
        print(found[-1], flush=True)
    return found


def prepare_stock(folder: Path) -> None:
    """Bring the chapter into the gradebook, which stock nbgrader wants first."""
    timed([str(Path(sys.executable).with_name("nbgrader")), "generate_assignment", CHAPTER, "--force"], folder)


def split_of(folder: Path) -> dict[str, float]:
    """Return the mean seconds of each part of grading one submission, from the run's log."""
    lines = (folder / "results" / f"{CHAPTER}.log.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    start = max(place for place, event in enumerate(events) if event["event"] == "start")
    rows = [event["seconds"] for event in events[start:] if event["event"] == "graded"]
    return {
        part: statistics.mean(row.get(part, 0.0) for row in rows) for part in sorted({p for row in rows for p in row})
    }


def compare(folder: Path, students: int, rounds: int) -> dict[str, Any]:
    """Grade one submission and all of them, by both, in turn; return the runs and what they say."""
    folders = {(who, size): folder / f"{who}-{size}" for who in ("ours", "stock") for size in (1, students)}
    for (who, size), place in folders.items():
        make_class_folder(place, size)
        if who == "stock":
            prepare_stock(place)
    runs: dict[str, list[Timed]] = {f"{who} {size}": [] for who, size in folders}
    for _ in range(rounds):
        for (who, size), place in folders.items():
            runs[f"{who} {size}"].append(ours(place, workers=os.cpu_count() or 1) if who == "ours" else stock(place))
            print(who, size, runs[f"{who} {size}"][-1], flush=True)
    split = split_of(folders["ours", students])
    own = split["cells"] + split["verdicts"]
    marginal = {
        who: [
            (many.wall - one.wall) / (students - 1)
            for one, many in zip(runs[f"{who} 1"], runs[f"{who} {students}"], strict=True)
        ]
        for who in ("ours", "stock")
    }
    workers = min(os.cpu_count() or 1, students)
    net = {
        "ours": [seconds - own / workers for seconds in marginal["ours"]],
        "stock": [seconds - own for seconds in marginal["stock"]],
    }
    return {
        "students": students,
        "workers": workers,
        "runs": {name: [asdict(run) for run in found] for name, found in runs.items()},
        "own_seconds": own,
        "split": split,
        "marginal": marginal,
        "marginal_net": net,
        "ratio_marginal": spread([s / o for s, o in zip(marginal["stock"], marginal["ours"], strict=True)]),
        "ratio_marginal_net": spread([s / o for s, o in zip(net["stock"], net["ours"], strict=True)]),
        "ratio_end_to_end": spread(
            [s.wall / o.wall for s, o in zip(runs[f"stock {students}"], runs[f"ours {students}"], strict=True)]
        ),
        "ratio_processor": spread(
            [
                s.processor / o.processor
                for s, o in zip(runs[f"stock {students}"], runs[f"ours {students}"], strict=True)
            ]
        ),
        "different_points": different_points(folders["ours", students], folders["stock", students]),
    }


def spread(ratios: Sequence[float]) -> dict[str, float]:
    """Return lowest, median and highest."""
    return {"lowest": min(ratios), "median": statistics.median(ratios), "highest": max(ratios)}


def different_points(mine: Path, theirs: Path) -> list[str]:
    """Name each graded cell that got other points from the two."""
    found = []
    for student in sorted(path.name for path in (mine / "submitted").iterdir()):
        both = [StockCourse(place, CHAPTER, run_log(CHAPTER)).scores(student) for place in (mine, theirs)]
        found += [
            f"{student}: {name}" for name in both[0].keys() | both[1].keys() if both[0].get(name) != both[1].get(name)
        ]
    return found


def measure(students: int, rounds: int, sizes: Sequence[int], workers: Sequence[int]) -> dict[str, Any]:
    """Do all of it; what takes longest comes last."""
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="grading-speed-") as name:
        folder = Path(name)
        compared = compare(folder, students, rounds)
        return {
            "machine": machine,
            "compared": compared,
            "by_workers": by_workers(folder, students, workers),
            "by_size": by_size(folder, sizes),
        }


def render(found: dict[str, Any]) -> str:
    """Return the page about the measurements."""
    compared, cores = found["compared"], found["machine"]["cores"]
    students = compared["students"]
    ratios = [
        ("marginal time per submission, without the cells' own seconds", compared["ratio_marginal_net"]),
        ("marginal time per submission", compared["ratio_marginal"]),
        ("the whole run, start and warm-up counted in", compared["ratio_end_to_end"]),
        ("processor time of the whole run", compared["ratio_processor"]),
    ]
    lines = [
        "# How long grading takes",
        "",
        "Made by `make bench` from `benchmarks/results/grading.json`. Ours is `course grade` with sandbox and outside",
        f"verdicts; stock is `nbgrader autograde`. Both grade the same {students} submissions of chapter 01 on the",
        f"same {cores} cores, in turn, {len(compared['runs'][f'ours {students}'])} times. Seconds are of that machine",
        "and hour; the ratios are stock divided by ours, run by run.",
        "",
        "| what is compared | lowest | median | highest |",
        "|---|---:|---:|---:|",
        *(
            f"| {name} | " + " | ".join(shown_ratio(one[which]) for which in ("lowest", "median", "highest")) + " |"
            for name, one in ratios
        ),
        "",
        f"A submission's own cells and checks take {compared['own_seconds']:.2f} s in a warm kernel; they are the same",
        f'work for both. "Marginal" is what one more submission adds: the run of {students} less the run of one,',
        f"divided by {students - 1}. Ours grades {compared['workers']} at a time.",
        f"Graded cells with other points: {len(compared['different_points'])}.",
        "",
        "| seconds | " + " | ".join(compared["runs"]) + " |",
        "|---|" + "---:|" * len(compared["runs"]),
        "| median of the runs | " + " | ".join(f"{median_wall(runs):.1f}" for runs in compared["runs"].values()) + " |",
        "",
        "## Where a submission's time goes",
        "",
        "| part | seconds |",
        "|---|---:|",
        *(f"| {words} | {compared['split'].get(part, 0.0):.3f} |" for part, words in PARTS.items()),
        "",
        "## More workers",
        "",
        f"{students} submissions of chapter 01.",
        "",
        "| workers | seconds | the grader's memory | largest process beside it |",
        "|---:|---:|---:|---:|",
        *(
            f"| {one['workers']} | {one['seconds']:.1f} | {one['grader']:.0f} MB | {one['largest_child']:.0f} MB |"
            for one in found["by_workers"]
        ),
        "",
        "## Larger classes",
        "",
        "A notebook of two short exercises that was saved with half a megabyte of output.",
        "",
        "| submissions | seconds | each | the grader's memory |",
        "|---:|---:|---:|---:|",
        *(
            f"| {one['students']} | {one['seconds']:.1f} | {one['per_submission']:.3f} s | {one['grader']:.0f} MB |"
            for one in found["by_size"]
        ),
        "",
    ]
    return "\n".join(lines)


def shown_ratio(ratio: float) -> str:
    """Return a ratio in words; a difference that is lost in the noise of a short or disturbed run is none."""
    return f"{ratio:.1f}" if ratio > 0 else "below the noise"


def median_wall(runs: Sequence[dict[str, float]]) -> float:
    """Return the median of the runs' wall seconds."""
    return statistics.median(run["wall"] for run in runs)


def main() -> None:
    """Measure, or only write the page anew."""
    options = argparse.ArgumentParser()
    options.add_argument("--students", type=int, default=STUDENTS)
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options.add_argument("--workers", type=int, nargs="*", default=WORKERS)
    options.add_argument("--page", action="store_true", help="only write the page from the results that are there")
    chosen = options.parse_args()
    if not chosen.page:
        found = measure(chosen.students, chosen.rounds, chosen.sizes, chosen.workers)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(render(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
