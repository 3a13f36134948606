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
from autograder.testing.checked_course import CHAPTER as TINY
from autograder.testing.soaking import make_soaked_class

ROOT = Path(__file__).parents[1]
CHAPTER = "01_attention"
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "grading.json", ROOT / "docs" / "grading_speed.md"
SOAK = RESULTS.with_name("soak.json")
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
import re, resource, sys
from pathlib import Path
from autograder.cli import main

try:
    main(["grade", "--force", "--no-feedback", *sys.argv[1:]])
finally:
    since_exec = re.search("VmHWM:\\\\s*([0-9]+)", Path("/proc/self/status").read_text())[1]
    print("PEAK", since_exec, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
ONE, ALL, STOCK = "ours, one at a time", "ours, one on each core", "stock"


@dataclass
class Timed:
    """One run: wall seconds from the command's start to its end, and the most memory of its processes."""

    wall: float
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
    began = time.monotonic()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # nbgrader looks for alembic there
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | {"PATH": path})
    wall = time.monotonic() - began
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])} ended with {done.returncode}: {done.stderr[-2000:]}")
    peaks = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("PEAK")]
    peak_mb = (
        {name: int(kb) / 1024 for name, kb in zip(("grader", "largest_child"), peaks[-1], strict=True)} if peaks else {}
    )
    return Timed(wall, peak_mb)


def ours(folder: Path, workers: int) -> Timed:
    """Grade by `course grade`, without feedback pages, since stock `autograde` makes none."""
    return timed([sys.executable, "-c", OURS, CHAPTER, "--workers", str(workers)], folder)


def prepare_ours(folder: Path) -> None:
    """Have the gradebook made and the chapter brought into it, by grading the first student."""
    first = min(path.name for path in (folder / "submitted").iterdir())
    timed([sys.executable, "-c", OURS, CHAPTER, "--student", first], folder)


def stock(folder: Path) -> Timed:
    """Grade by stock nbgrader."""
    return timed([str(Path(sys.executable).with_name("nbgrader")), "autograde", CHAPTER, "--force"], folder)


def by_size(folder: Path, sizes: Sequence[int]) -> list[dict[str, float]]:
    """Grade larger and larger classes of a short notebook; return seconds and memory of each."""
    found = []
    for size in sizes:
        course = make_soaked_class(folder / f"class-{size}", size)
        run = timed([sys.executable, "-c", OURS, TINY], course)
        found.append({"students": size, "seconds": run.wall, "per_submission": run.wall / size, **run.peak_mb})
        print(found[-1], flush=True)
    return found


def by_workers(folder: Path, students: int, workers: Sequence[int]) -> list[dict[str, float]]:
    """Grade one class of chapter 01 with more and more workers."""
    course = folder / "workers"
    make_class_folder(course, students)
    prepare_ours(course)
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
    """Grade one submission and all of them, by each, in turn; return the runs and what they say."""
    folders = {(who, size): folder / f"{who}-{size}" for who in ("ours", STOCK) for size in (1, students)}
    for (who, size), place in folders.items():
        make_class_folder(place, size)
        (prepare_stock if who == STOCK else prepare_ours)(place)
    cores = os.cpu_count() or 1
    runs: dict[str, dict[int, list[Timed]]] = {who: {1: [], students: []} for who in (ONE, ALL, STOCK)}
    splits = []
    for _ in range(rounds):
        for who, by_class in runs.items():
            for size, found in by_class.items():
                place = folders[STOCK if who == STOCK else "ours", size]
                found.append(stock(place) if who == STOCK else ours(place, 1 if who == ONE else cores))
                print(who, size, found[-1], flush=True)
            if who == ONE:
                splits.append(split_of(folders["ours", students]))
    split = {part: statistics.mean(one[part] for one in splits) for part in splits[0]}
    own = split["cells"] + split["verdicts"]
    at_a_time = {ONE: 1, ALL: min(cores, students), STOCK: 1}
    marginal = {
        who: [
            (many.wall - one.wall) / (students - 1) for one, many in zip(by_class[1], by_class[students], strict=True)
        ]
        for who, by_class in runs.items()
    }
    net = {who: [seconds - own / at_a_time[who] for seconds in found] for who, found in marginal.items()}
    whole = {who: [run.wall for run in by_class[students]] for who, by_class in runs.items()}
    return {
        "students": students,
        "runs": {who: {size: [asdict(run) for run in found] for size, found in by.items()} for who, by in runs.items()},
        "own_seconds": own,
        "split": split,
        "marginal": marginal,
        "marginal_net": net,
        "ratios": {
            f"marginal time per submission, without the cells' own seconds; {ONE}": ratio(net, ONE),
            f"marginal time per submission; {ONE}": ratio(marginal, ONE),
            f"marginal time per submission; {ALL}": ratio(marginal, ALL),
            f"the whole run, start and warm-up counted in; {ONE}": ratio(whole, ONE),
            f"the whole run, start and warm-up counted in; {ALL}": ratio(whole, ALL),
        },
        "different_points": different_points(folders["ours", students], folders[STOCK, students]),
    }


def ratio(seconds: dict[str, list[float]], who: str) -> dict[str, float]:
    """Return how many times as long stock took, run by run: lowest, median and highest."""
    found = [theirs / mine for theirs, mine in zip(seconds[STOCK], seconds[who], strict=True)]
    return {"lowest": min(found), "median": statistics.median(found), "highest": max(found)}


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


def render(found: dict[str, Any], soak: dict[str, Any]) -> str:
    """Return the page about the measurements, and about those of `soak.py`."""
    compared, cores = found["compared"], found["machine"]["cores"]
    students, rounds = compared["students"], len(next(iter(compared["marginal"].values())))
    lines = [
        "# How long grading takes",
        "",
        "Made by `make bench` from `benchmarks/results/grading.json`. Ours is `course grade` with sandbox and outside",
        "verdicts; stock is `nbgrader autograde`, which grades one at a time. Both grade the same",
        f"{students} submissions of chapter 01 on the same {cores} cores, in turn, {counted(rounds)}. Seconds are of",
        "that machine and hour; the ratios are stock divided by ours, run by run.",
        "",
        "| what is compared | lowest | median | highest |",
        "|---|---:|---:|---:|",
        *(
            f"| {name} | " + " | ".join(shown_ratio(one[which]) for which in ("lowest", "median", "highest")) + " |"
            for name, one in compared["ratios"].items()
        ),
        "",
        f"A submission's own cells and checks take {compared['own_seconds']:.2f} s in a warm kernel; they are the same",
        f'work for both. "Marginal" is what one more submission adds: the run of {students} less the run of one,',
        f"divided by {students - 1}. Graded cells with other points: {len(compared['different_points'])}.",
        "",
        f"| seconds, median of the runs | one submission | {students} submissions | one more submission |",
        "|---|---:|---:|---:|",
        *(
            f"| {who} | "
            + " | ".join(f"{statistics.median(run['wall'] for run in found):.1f}" for found in by_class.values())
            + f" | {statistics.median(compared['marginal'][who]):.2f} |"
            for who, by_class in compared["runs"].items()
        ),
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
        "## One long run",
        "",
        f"`python benchmarks/soak.py` graded {soak['students']} such submissions in one run,",
        f"{soak['a minute']} a minute.",
        f"The grader's memory was {soak['memory at a quarter, MB']} MB after a quarter and",
        f"{soak['memory at the end, MB']} MB at the end, {soak['growth per submission, kB']} kB more for each.",
        f"Then {soak['kills']['runs']} runs were killed at random moments and begun again;",
        f"{soak['kills']['ended elsewhere']} of them ended elsewhere than an undisturbed run.",
        "",
    ]
    return "\n".join(lines)


def counted(rounds: int) -> str:
    """Return how often in words."""
    return "once" if rounds == 1 else f"{rounds} times"


def shown_ratio(ratio: float) -> str:
    """Return a ratio in words; a difference that is lost in the noise of a short or disturbed run is none."""
    return f"{ratio:.1f}" if ratio > 0 else "below the noise"


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
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in (RESULTS, SOAK)]
    PAGE.write_text(render(*stored), encoding="utf-8")


if __name__ == "__main__":
    main()
