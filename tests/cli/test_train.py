"""`besag train`: a recipe becomes a model, a wrong word an answer, and Ctrl-C a checkpoint that can be gone on from."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.cli.conftest import put
from typer.testing import CliRunner, Result

from besag import train_model
from besag.cli import app
from besag.training.recipe import read
from besag.training.run import logs

command = importlib.import_module("besag.cli.train")  # the package's `train` is the command itself
ROOT = Path(__file__).parents[2]
SENTENCES = ROOT / "examples" / "sentences.txt"
RECIPE = """
[data]
train = "corpus.txt"
held_out = 0.1
max_length = 24
batch_tokens = 96
[tokenizer]
size = 300
[model]
family = "bert"
[model.config]
hidden_size = 16
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 16
[schedule]
steps = 6
[run]
device = "cpu"
log_every = 2
plot = false
"""


@pytest.fixture(autouse=True)
def no_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the monitor measures is tested elsewhere."""
    monkeypatch.setattr(train_model, "evaluation_of", lambda built: lambda model, step: {"heldout_loss": 7.0 + step})


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    put(tmp_path / "corpus.txt", SENTENCES.read_bytes())
    return put(tmp_path / "recipe.toml", RECIPE)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["train", *map(str, arguments)])


# ---- a run


def test_a_recipe_becomes_a_model(recipe: Path, tmp_path: Path) -> None:
    result = run(recipe, "--set", "masking.rate=0.4", "--set", "card.license=mit")
    assert result.exit_code == 0, result.stderr
    folder = tmp_path / "run"
    assert f"the model is in {folder / 'model'}" in result.stderr
    printed = dict(line.split() for line in result.stdout.splitlines())
    assert (printed["step"], printed["heldout_loss"]) == ("6", "13")
    assert [row["step"] for row in logs.read(folder) if "loss" in row] == [2, 4, 6]
    text = (folder / "model" / "README.md").read_text(encoding="utf-8")
    assert "command: `besag train recipe.toml --set masking.rate=0.4 --set card.license=mit`" in text
    assert read(folder / "recipe.toml").masking.rate == 0.4
    assert json.loads((folder / "model" / "config.json").read_text())["architectures"] == ["BertForMaskedLM"]
    again = run(recipe)
    assert again.exit_code == 2
    assert "holds a run already: go on with it (--resume)" in again.stderr
    other = run(folder, "--resume", "--set", "run.seed=5")  # the folder of a run stands for its recipe
    assert other.exit_code == 2
    assert "run.seed is 5, and was 0" in other.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_ends_after_the_step_and_resume_goes_on(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    advance, before = logs.Log.advance, signal.getsignal(number)

    def pressed(self: logs.Log, step: int, *rest: Any) -> None:
        advance(self, step, *rest)
        if step == 3:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(logs.Log, "advance", pressed)
    whole = tmp_path / "whole"
    first = run(recipe, "--output", tmp_path / "parts", "--set", "run.seed=1", "--set", "evaluation.every=4")
    assert first.exit_code == code
    found = re.search(r"stopped after step (\d), with a checkpoint; go on with: besag train (.*)", first.stderr)
    assert found
    assert 3 <= int(found[1]) < 6
    assert not (tmp_path / "parts" / "model").exists()
    monkeypatch.setattr(logs.Log, "advance", advance)
    assert signal.getsignal(number) is before  # as it was found
    second = run(*found[2].split())
    assert second.exit_code == 0, second.stderr
    assert run(recipe, "-o", whole, "--set", "run.seed=1", "--set", "evaluation.every=4").exit_code == 0
    folders = (tmp_path / "parts", whole)
    weights = [(folder / "model" / "model.safetensors").read_bytes() for folder in folders]
    assert weights[0] == weights[1]
    told = [[{k: v for k, v in row.items() if "second" not in k} for row in logs.read(folder)] for folder in folders]
    assert told[0] == told[1]
    assert [row["step"] for row in told[0] if logs.is_evaluation(row)] == [4, 6]
    assert {oct(file.stat().st_mode & 0o777) for file in (whole / "model").iterdir()} == {
        oct((whole / "log.jsonl").stat().st_mode & 0o777)
    }  # safetensors writes for the owner alone


def test_sittings_end_by_the_clock_and_go_on(recipe: Path, tmp_path: Path) -> None:
    said = f"stopped after step 1, with a checkpoint; go on with: besag train {recipe} --resume --stop-after 0"
    first = run(recipe, "--stop-after", "0", "--set", "run.checkpoint_state=16-bit")
    assert first.exit_code == 75
    assert said.replace("--resume", "--set run.checkpoint_state=16-bit --resume") in first.stderr
    assert run(recipe, "--resume", "--stop-after", "0").exit_code == 75  # each sitting makes a step at least
    done = run(recipe, "--resume", "--stop-after", "600")
    assert done.exit_code == 0, done.stderr
    card = (tmp_path / "run" / "model" / "README.md").read_text(encoding="utf-8")
    assert [line.partition(" UTC")[0][:16] for line in card.splitlines() if "sitting" in line] == [
        "- sitting 1 of 3", "- sitting 2 of 3", "- sitting 3 of 3"
    ]  # fmt: skip
    assert "command: `besag train recipe.toml`" in card
    wrong = run(recipe, "--stop-after", "-1")
    assert wrong.exit_code == 2
    assert "--stop-after -1.0: give a number, at least 0" in wrong.stderr


def test_options_are_short_for_keys(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from besag.training import run as carrying_out

    asked: list[Any] = []

    def remembered(wanted: Any, **options: Any) -> Any:
        asked.append((wanted, options))
        return carrying_out.TrainingResult(Path("out"), {"loss": 1.5})

    monkeypatch.setattr(train_model, "carry_out", remembered)
    assert run(recipe, "--minutes", "0.5", "--output", "true", "--quiet", "--plot", "--resume").exit_code == 0
    [(wanted, options)] = asked
    assert (wanted.schedule.minutes, wanted.schedule.steps) == (0.5, None)
    assert (wanted.run.output, wanted.run.plot) == ("true", True)
    assert (options["quiet"], options["resume"]) == (True, True)
    assert options["command"] == "besag train recipe.toml --minutes 0.5"
    assert run("run", recipe, "--no-plot").exit_code == 0  # the word can be said, too
    assert not asked[1][0].run.plot


# ---- what goes with it


def test_init_writes_a_recipe_that_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("init").exit_code == 0
    assert read("recipe.toml").schedule.minutes == 20
    again = run("init")
    assert again.exit_code == 2
    assert "--force" in again.stderr
    assert run("init", "--force", "--law", "span").exit_code == 0
    assert read("recipe.toml").masking.law == "span"
    assert "Did you mean 'span'?" in run("init", "other.toml", "--law", "spam").stderr
    assert not Path("other.toml").exists()
    shown = run("init", "-")
    assert "[masking.options]" in shown.stdout
    assert "no such folder: 'nowhere'" in run("init", "nowhere/recipe.toml").stderr


def test_check_says_what_a_run_would_be_and_trains_nothing(recipe: Path, tmp_path: Path) -> None:
    result = run("check", recipe)
    assert result.exit_code == 0, result.stderr
    said = {line[:16].strip(): line[17:] for line in result.stdout.splitlines()}
    assert re.fullmatch(r"5\d documents, [\d,]+ tokens", said["data"])
    assert re.fullmatch(r"\d documents, [\d,]+ tokens", said["held out"])
    assert said["vocabulary"] == "300 tokens"
    assert re.fullmatch(r"6 steps: about \d+ tokens, 0\.\d+ epochs", said["run"])
    assert re.fullmatch(r"BertForMaskedLM, [\d,]+ parameters", said["network"])
    assert said["memory"].startswith("about ")
    assert re.fullmatch(r"about 0\.\d MB, in 1 file", said["a checkpoint"])
    assert not list((tmp_path / "run").glob("**/*.safetensors"))
    assert not (tmp_path / "run" / "log.jsonl").exists()
    by_tokens = run("check", recipe, "--set", "schedule.tokens=1000")
    assert re.search(r"run +1,000 tokens: about 1\d steps", by_tokens.stdout)
    assert re.search(r"run +2 minutes; one step is \d+ tokens", run("check", recipe, "--minutes", 2).stdout)


def test_curves_of_several_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    for name in ("a/run", "b/run"):
        with logs.Log(name, tensorboard=False) as log:
            for step in range(1, 5):
                log.record({"step": step, "tokens": 10 * step, "loss": 5.0 - step})
    result = run("curves", "a/run", "b/run/log.jsonl", "-o", "both.png")
    assert result.exit_code == 0, result.stderr
    assert [line.split()[0::2] for line in result.stdout.splitlines()] == [["a/run", "1.0000"], ["b/run", "1.0000"]]
    assert Path("both.png").read_bytes().startswith(b"\x89PNG")
    assert "--force" in run("curves", "a/run", "-o", "both.png").stderr
    assert "the same run is named twice" in run("curves", "a/run", "a/run/log.jsonl", "-o", "c.png").stderr
    assert "'nowhere' is no run" in run("curves", "nowhere", "-o", "c.png").stderr
    for name in ("x.tsv", "x", "x.png.gz"):  # matplotlib's own words were a traceback
        told = run("curves", "a/run", "-o", name)
        assert told.exit_code == 2
        assert f"'{name}' is no picture: its name must end in" in told.stderr
        assert not Path(name).exists()


@pytest.mark.parametrize(
    "line", ["[" * 3000, '{"step": "a"}', '{"step": 1, "loss": "low"}', '{"step": 1, "loss": {"a": 1}}', "\ufffd{", "5",
             '{"step": 1' + "0" * 400 + "}", '{"loss": 1}', '{"step": null}'],
    ids=lambda line: line[:12],
)  # fmt: skip
def test_a_log_with_garbage_is_told_in_a_line(tmp_path: Path, line: str) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "log.jsonl").write_text(f'{{"step": 1, "loss": 2.0}}\n{line}\n', encoding="utf-8")
    told = run("curves", tmp_path, "-o", tmp_path / "c.png")
    assert told.exit_code == 2, told.output
    assert "holds a line that is none of a log" in told.stderr


# ---- wrong words


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chek", "recipe.toml"], "neither a recipe nor one of run, init, check, head, curves. Did you mean 'check'?"),
        (["missing.toml"], "there is no recipe 'missing.toml'"),
        (["RECIPE", "--set", "masking.rat=0.3"], "there is no key 'masking.rat'. Did you mean 'rate'?"),
        (["RECIPE", "--set", "masking.rate=lots"], "masking.rate = 'lots': a number between 0 and 1"),
        (["RECIPE", "--set", "nonsense"], "--set 'nonsense': write section.key=value"),
        (["RECIPE", "--minutes", "0"], "schedule.minutes = 0.0: a number between 0 and 10,000,000, not 0 itself"),
        (["RECIPE", "--minutes", "inf"], "--minutes inf: give a finite number of at most 18 digits"),
        (["RECIPE", "--minutes", "1e300"], "--minutes 1e+300: give a finite number of at most 18 digits"),
        (["RECIPE", "--set", "run.seed=" + "9" * 5000], "--set 'run.seed=999"),
        (["RECIPE", "--set", "data.train=" + "[" * 3000], "nested too deep"),
        (["RECIPE", "--set", "model.config.num_hidden_layers=20000"], "model.config.num_hidden_layers = 20000"),
        (["RECIPE", "--minutes", "1", "--set", "schedule.steps=5"], "give one of schedule.steps"),
        (["check", "RECIPE", "--set", "data.train=nothing.txt"], "nothing.txt"),
    ],
)  # fmt: skip
def test_wrong_words_are_answered(recipe: Path, arguments: list[str], said: str) -> None:
    result = run(*(str(recipe) if part == "RECIPE" else part for part in arguments))
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_first_try_that_fails_does_not_block_the_second(recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert run(recipe, "-o", folder, "--set", f"data.train={tmp_path / 'corpsu.txt'}").exit_code == 2
    second = run(recipe, "-o", folder, "--quiet")
    assert second.exit_code == 0, second.stderr


def test_init_names_what_was_named(tmp_path: Path) -> None:
    path = put(tmp_path / "recipe.toml", "")
    assert "exists already: choose another PATH, or say --force" in run("init", path).stderr
    assert "is a folder: PATH is a file" in run("init", tmp_path).stderr


def test_empty_and_missing_recipes(tmp_path: Path) -> None:
    assert "is empty: `besag train init`" in run(put(tmp_path / "empty.toml", "")).stderr
    assert "stands outside its section" in run(put(tmp_path / "flat.toml", "rate = 0.3\n")).stderr


def test_every_option_is_documented() -> None:
    said = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert "## besag train\n" in said
    group: Any = typer.main.get_command(command.app)
    section = said.split("## besag train\n")[1].split("\n## ")[0]
    for name, one in group.commands.items():
        assert name == "run" or f"### besag train {name}\n" in section
        flags = [flag for parameter in one.params for flag in parameter.opts + parameter.secondary_opts]
        missing = [flag for flag in flags if flag.startswith("--") and flag != "--help" and f"`{flag}`" not in section]
        assert not missing, f"docs/cli.md does not mention {missing} of besag train {name}"
