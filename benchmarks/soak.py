"""Grade a class of hundreds in one run and watch the grader's memory; then kill runs at random moments.

    python benchmarks/soak.py                                 500 submissions and 20 kills, some minutes
    python benchmarks/soak.py --students 2000 --kills 100     a long one

It writes `benchmarks/results/soak.json`. Exit code 1 when memory grows with the class, or when a run that was killed
and begun again ends elsewhere than an undisturbed one.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.grading.events import run_log
from autograder.grading.results import read_results
from autograder.grading.stock import StockCourse
from autograder.testing.checked_course import CHAPTER
from autograder.testing.soaking import KILOBYTE, MEGABYTE, SEED, kill_at_random, make_soaked_class, soak

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "soak.json"
STUDENTS, KILLS = 500, 20
CLASS_THAT_IS_KILLED = 12
MOST_GROWTH_KB = 16.0
SECONDS_OF_A_SHORT_RUN = 12.0  # a kill comes within these: before, while and after it grades


def main() -> int:
    """Soak; return the exit code."""
    options = argparse.ArgumentParser()
    options.add_argument("--students", type=int, default=STUDENTS)
    options.add_argument("--kills", type=int, default=KILLS)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        soaked = soak(make_soaked_class(Path(folder) / "course", chosen.students))
        found: dict[str, Any] = {
            "students": soaked.students,
            "seconds": round(soaked.seconds, 1),
            "a minute": round(60 * soaked.students / soaked.seconds),
            "memory at a quarter, MB": round(soaked.memory[len(soaked.memory) // 4] / MEGABYTE, 1),
            "memory at the end, MB": round(soaked.memory[-1] / MEGABYTE, 1),
            "growth per submission, kB": round(soaked.growth / KILOBYTE, 2),
        }
        print(found, flush=True)
        found["kills"] = kill_many(Path(folder) / "killed", chosen.kills)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(found["growth per submission, kB"] > MOST_GROWTH_KB or found["kills"]["ended elsewhere"] > 0)


def kill_many(folder: Path, kills: int) -> dict[str, int]:
    """Kill runs at random moments; return how many were still running, and how many ended elsewhere afterwards."""
    fresh = make_soaked_class(folder / "fresh", CLASS_THAT_IS_KILLED)
    whole = folder / "whole"
    shutil.copytree(fresh, whole)
    soak(whole)
    draw, killed, elsewhere = random.Random(SEED), 0, 0
    for number in range(kills):
        course = folder / str(number)
        shutil.copytree(fresh, course)
        killed += kill_at_random(course, SECONDS_OF_A_SHORT_RUN, draw)
        soak(course)
        there, here = state(whole), state(course)
        other = [name for name in there if there[name] != here.get(name)]
        elsewhere += bool(other)
        for name in other:
            print(name, *(there[name][:2], here.get(name, ())[:2]), sep="\n  ", flush=True)
        shutil.rmtree(course)
        print(f"{number + 1} of {kills}: {killed} killed, {elsewhere} ended elsewhere", flush=True)
    return {"runs": kills, "killed while running": killed, "ended elsewhere": elsewhere}


def state(course: Path) -> dict[str, Any]:
    """Return what a run leaves: results without seconds, the gradebook's rows, graded notebooks."""
    stock = StockCourse(course, CHAPTER, run_log(CHAPTER))
    found = {}
    for name, result in read_results(course, CHAPTER).students.items():
        exercises = {key: replace(exercise, seconds=None) for key, exercise in result.exercises.items()}
        graded = (course / "autograded" / name / CHAPTER / f"{CHAPTER}.ipynb").read_bytes()
        found[name] = (replace(result, exercises=exercises), stock.scores(name), graded)
    return found


if __name__ == "__main__":
    sys.exit(main())
