"""What is released: a wheel and an sdist with everything in them that the pages lean on, and nothing else."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest

import besag

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# connections to elsewhere fail at once: the embedded model needs none
OFFLINE = """
import socket
def refused(*_, **__):
    raise AssertionError("a connection was tried")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a wheel and an sdist, made from this tree."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return folder


def metadata(wheel: zipfile.ZipFile) -> Message:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return email.message_from_bytes(wheel.read(name))


def the(folder: Path, ending: str) -> Path:
    [found] = folder.glob(f"*{ending}")
    return found


def test_the_wheel_has_the_package_the_model_the_recipes_and_the_examples(built: Path) -> None:
    with zipfile.ZipFile(the(built, ".whl")) as wheel:
        names = set(wheel.namelist())
    package = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "besag").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    shipped = {
        f"besag/shipped/{path.relative_to(ROOT).as_posix()}"
        for folder in ("recipes", "examples")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    inside = {name for name in names if ".dist-info/" not in name}
    assert inside == package | shipped
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert the(built, ".whl").stat().st_size < 45e6


def test_its_metadata_says_what_it_is(built: Path) -> None:
    with zipfile.ZipFile(the(built, ".whl")) as wheel:
        facts = metadata(wheel)
        [scripts] = [wheel.read(name).decode() for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert facts["Name"] == "besag"
    assert facts["Version"] == besag.__version__
    assert facts["Requires-Python"] == ">=3.11"
    assert facts["License-Expression"] == "Apache-2.0"
    assert "besag = besag.cli:main" in scripts
    plain = {line for line in facts.get_all("Requires-Dist") or [] if "extra ==" not in line}
    assert {re.split(r"[<>=!~;\[ ]", line)[0] for line in plain} == {
        "torch", "transformers", "safetensors", "numpy", "tqdm", "typer", "rich",
    }  # fmt: skip


def test_the_sdist_can_be_tested_and_documented(built: Path) -> None:
    with tarfile.open(the(built, ".tar.gz")) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    for name in (
        "pyproject.toml", "Makefile", "constraints.txt", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff",
        "LICENSE", "recipes/small-en.toml", "examples/demo.py", "docs/index.md", "tests/test_release.py",
        "src/besag/models/small-en/model.int8.safetensors", "lint/house_rules.py",
    ):  # fmt: skip
        assert name in names
    assert the(built, ".tar.gz").stat().st_size < 50e6


def test_the_version_stands_in_one_place() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)


def test_classifiers_name_the_pythons_that_the_workflow_tests() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    [tested] = re.findall(r"matrix: \{ python-version: \[(.*)\] \}", workflow)
    named = [c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert named == re.findall(r"[\d.]+", tested)


def run_installed(python: str, folder: Path, *command: str, **environment: str) -> str:
    """What a command prints, run away from this tree and without a network."""
    (folder / "sitecustomize.py").write_text(OFFLINE, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "BESAG_DEBUG")}
    paths = os.pathsep.join([str(folder), *filter(None, [environment.pop("PYTHONPATH", "")])])
    made = subprocess.run(
        [python, *command], cwd=folder, env={**kept, **environment, "PYTHONPATH": paths}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return made.stdout


def check_first_steps(python: str, folder: Path, **environment: str) -> None:
    first = "import besag; print(besag.__file__); print(besag.load().score('The cat sleeps.').status)"
    where, status = run_installed(python, folder, "-c", first, **environment).splitlines()
    assert str(ROOT) not in where
    assert status == "ok"
    run_installed(python, folder, "-m", "besag", "examples", "here", **environment)
    assert (folder / "here" / "recipes" / "small-en.toml").is_file()


def test_the_wheel_scores_without_this_tree_and_without_a_network(built: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(the(built, ".whl")) as wheel:
        wheel.extractall(tmp_path / "installed")
    check_first_steps(sys.executable, tmp_path, PYTHONPATH=str(tmp_path / "installed"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_wheel_installs_into_an_empty_environment(built: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", ROOT / "constraints.txt"]
    pinned = re.search(r"^torch==.*$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned
    for what in (pinned[0], the(built, ".whl")):
        made = subprocess.run([*pip, what], capture_output=True, text=True, check=False)
        if "No matching distribution found for torch" in made.stderr:
            pytest.skip("no package index can be reached from here")
        assert made.returncode == 0, made.stderr
    check_first_steps(python, tmp_path)
