"""Grade the same submissions of chapter 01 by `course grade` and by stock `nbgrader autograde`, in turn.

    python benchmarks/grading_speed.py                    everything, about twenty minutes on two idle cores
    python benchmarks/grading_speed.py --students 8 --rounds 1 --sizes 8 --stock-sizes 8     a taste

It writes `benchmarks/results/grading.json`, and from it the tables of `docs/grading_speed.md`. Seconds are of this machine
and this hour; ratios come from runs that alternate.
"""

import argparse
import json
import os
import platform
import resource
import shutil
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
from autograder.grading.demo_class import class_drafts, hand_in, read_material
from autograder.grading.events import run_log
from autograder.grading.stock import StockCourse

ROOT = Path(__file__).parents[1]
CHAPTER = "01_attention"
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "grading.json", ROOT / "docs" / "grading_speed.md"
OUTSIDE_THE_COMPARISON = ("08-damaged-cells", "09-endless-loop")  # stock nbgrader loses these
STUDENTS, ROUNDS, SIZES, WORKERS = 24, 3, (10, 100, 1000), (1, 2, 4)
OURS = """
import resource, sys
from pathlib import Path
from autograder.grading.engine import grade_chapter
from autograder.grading.options import GradeOptions

grade_chapter(Path(sys.argv[1]), sys.argv[2], GradeOptions(force=True, workers=int(sys.argv[3]), feedback=False))
print("PEAK", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
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
