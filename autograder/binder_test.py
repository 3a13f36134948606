"""binder/ is read as Binder reads it, names what a chapter needs, and its scripts run."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml
from packaging.requirements import Requirement

from autograder.course_folder import find_course

COURSE = find_course(Path(__file__).parent)
BINDER = COURSE / "binder"
CONDA_NAMES = {"torch": "pytorch-cpu", "matplotlib": "matplotlib-base"}  # the same library under conda-forge's name
SCHEMA = {  # of a conda environment file, as its documentation describes it
    "type": "object",
    "required": ["name", "channels", "dependencies"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^[^/ :#]+$"},
        "channels": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "dependencies": {
            "type": "array",
            "items": {
                "oneOf": [
                    {"type": "string", "pattern": "^[a-z0-9_.-]+([=<>!~].*)?$"},
                    {"type": "object", "required": ["pip"], "additionalProperties": False},
                ]
            },
        },
    },
}


def environment() -> dict:
    """Read the environment file."""
    return yaml.safe_load((BINDER / "environment.yml").read_text(encoding="utf-8"))


def test_the_environment_file_fits_its_schema() -> None:
    jsonschema.validate(environment(), SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "a b", "channels": [], "dependencies": [1]}, SCHEMA)


def test_everything_comes_from_conda_forge_and_no_address_is_named() -> None:
    assert environment()["channels"] == ["conda-forge", "nodefaults"]
    for path in BINDER.iterdir():
        assert not re.search(r"https?://|--index|--find-links|--extra", path.read_text(encoding="utf-8")), path


def test_every_package_of_a_learner_is_there_in_the_version_that_the_course_asks_for() -> None:
    lines = [line for line in environment()["dependencies"] if isinstance(line, str)]
    there = {re.split(r"[=<>!~]", line)[0]: line for line in lines}
    project = tomllib.loads((COURSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for text in project["dependencies"]:
        wanted = Requirement(text)
        name = CONDA_NAMES.get(wanted.name, wanted.name)
        assert there.get(name) == f"{name}{wanted.specifier}", text


def test_binder_reads_the_folder_as_it_is_meant(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("jupyter-repo2docker")), "--no-build", "--debug", str(COURSE)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    for words in ('--file "binder/environment.yml"', "RUN ./binder/postBuild", "${REPO_DIR}/binder/start"):
        assert words in said


def test_the_scripts_can_be_run_and_start_hands_over() -> None:
    for name in ("postBuild", "start"):
        assert os.access(BINDER / name, os.X_OK), name
    done = subprocess.run([str(BINDER / "start"), "printenv", "OMP_NUM_THREADS"], capture_output=True, text=True)
    assert done.stdout == "1\n"


def test_a_build_does_not_fail_for_the_builders_memory() -> None:
    assert (BINDER / "postBuild").read_text(encoding="utf-8").splitlines()[-1] == "course doctor --installed"


@pytest.mark.slow
def test_post_build_installs_the_course_in_a_clean_environment(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    share_packages(python)
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(COURSE), str(checkout)], check=True)
    own = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["./binder/postBuild"], cwd=checkout, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "This machine is ready for the course." in done.stdout
    find = "import course_lib; print(course_lib.__file__)"
    assert subprocess.check_output([str(python), "-c", find], cwd=tmp_path, text=True).startswith(str(checkout))


def share_packages(python: Path) -> None:
    """Let an environment see the packages of this one: conda has installed everything but the course by then."""
    purelib = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    interpreters = (sys.executable, str(python))
    ours, its = (subprocess.check_output([one, "-c", purelib], text=True).strip() for one in interpreters)
    (Path(its) / "packages_of_conda.pth").write_text(ours + "\n", encoding="utf-8")
    for name in ("share", "etc"):
        if not (python.parents[1] / name).exists():
            (python.parents[1] / name).symlink_to(Path(sys.prefix) / name)
