"""`besag methods` without torch, and what it shows is what commands take."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from besag.cli import cataloguing
from besag.cli.catalogue import FILE, Entry, entries, known
from besag.cli.settings import settings
from besag.registry import NEEDED, Option, written

LATE = "torch", "transformers"


def test_the_catalogue_is_what_the_registries_say() -> None:
    said = cataloguing.text(cataloguing.live())
    assert FILE.read_text(encoding="utf-8") == said, "renew it with: python -m besag.cli.cataloguing"
    assert cataloguing.text(entries()) == said
    assert all(one.explanation for one in entries())


def shown(run: Run, entry: Entry) -> Iterator[tuple[str, str]]:
    told = run("methods", f"{entry.kind}:{entry.name}").stdout
    command = re.search(r"^  command +(besag .*)$", told, re.MULTILINE)
    assert command
    flags = re.findall(r"^  --set ([\w.]+)=…  ", told, re.MULTILINE)
    assert len(flags) == len(entry.options)
    for flag in flags:
        yield command[1], flag


def usable(option: Option) -> str:
    """A value that the option takes, as it is written."""
    if option.default is not NEEDED:
        return written(option.default)
    return "somewhere"


@pytest.mark.parametrize("entry", entries(), ids=lambda one: f"{one.kind} {one.name}")
def test_every_option_that_is_shown_is_accepted(run: Run, entry: Entry, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('data.train = ["corpus.txt"]\nschedule.steps = 10', encoding="utf-8")
    for (command, flag), option in zip(shown(run, entry), entry.options, strict=True):
        said = f"{flag}={usable(option)}"
        if entry.kind in ("mask", "objective"):
            _in_a_recipe(recipe, command, said.removesuffix("none"))  # nothing at all is a recipe's word for none
            continue
        name = command.split()[-1]
        kinds = {"score": "score", "joint": "joint", "sample": "kernel", "eval": "suite", "lab": "experiment"}
        kind = {**kinds, "explain": "explanation"}[command.split()[1]]
        expected = {} if option.default is NEEDED else {option.name: option.default}
        found = settings(kind, [name], [said])[name]
        assert {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()} == expected


def _in_a_recipe(recipe: Path, command: str, said: str) -> None:
    from besag.training.recipe import read

    wanted = {"distil": "teacher", "lert": "tags"}.get(command.rpartition("=")[2])
    needed = [f"objective.options.{wanted}=somewhere"] if wanted and wanted not in said else []
    spans = ["data.spans=spans"] if "masking.law" in command else []
    read(recipe, [command.rpartition(" ")[2], said, *needed, *spans])


def child(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys, atexit, besag.cli\n"
        f"atexit.register(lambda: print([one for one in {LATE!r} if one in sys.modules], file=sys.stderr))\n"
        f"sys.argv = ['besag', *{arguments!r}]\n"
        "besag.cli.main()"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [("methods",), ("methods", "ag_chain"), ("cite", "gibbs")])
def test_what_is_there_is_told_without_torch(arguments: tuple[str, ...]) -> None:
    done = child(*arguments)
    assert done.returncode == 0
    assert done.stderr.splitlines() == ["[]"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("sample", "A [MASK].", "--kernel", "gibs"), "Did you mean 'gibbs'?"),
        (("sample", "A [MASK].", "--set", "scn=random"), "Did you mean 'scan'?"),
        (("score", "A.", "--method", "chian"), "Did you mean 'chain'?"),
        (("score", "A.", "--method", "chain", "--set", "order=rndom"), "Did you mean 'random'?"),
        (("choose", "A [MASK].", "b", "c", "--method", "chian"), "Did you mean 'chain'?"),
        (("joint", "[MASK] [MASK]", "--method", "sationary"), "Did you mean 'stationary'?"),
        (("fill", "[MASK] [MASK]", "--set", "weigths=uniform"), "Did you mean 'weights'?"),
        (("compare", "[MASK] [MASK]", "--method", "sationary"), "Did you mean 'stationary'?"),
    ],
)
def test_a_wrong_name_is_refused_without_torch(arguments: tuple[str, ...], told: str) -> None:
    done = child(*arguments)
    error, late = done.stderr.splitlines()
    assert done.returncode == 2
    assert told in error
    assert late == "[]"


def test_a_kind_can_be_named(run: Run) -> None:
    assert known("kernel", "sundae").name == "refine"
    assert json.loads(FILE.read_text(encoding="utf-8"))[0]["kind"] == "score"
    assert "is also a kernel: besag methods kernel:spindle" in run("methods", "spindle").stdout
