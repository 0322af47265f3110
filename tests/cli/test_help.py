"""`--help`: groups, one sentence a command, and one example each, which is run here on small files.

Examples are run as they are written, in a folder that `stage` fills, with three differences, each for a reason:
`serve` and `explore` run as processes, end by a signal and take a free port, and no browser is opened; shards of
`bulk` are processed in this process, except those of `bulk score`, because Ray takes long to start.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from tests import networks
from tests.bulk.conftest import here
from tests.cli.conftest import Run
from tests.cli.test_train import RECIPE
from tests.heads import tasks
from tests.translation import pairs
from typer.testing import CliRunner

import besag
from besag.cli import app
from besag.conditionals.encoder_decoder import lift
from besag.conditionals.length_head import LengthHead

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "lint"))
import style  # noqa: E402

LONGEST, COLUMNS = 60, 80
GROUPS = {
    "Score": "score marginals choose answer lengths embed explain",
    "Fill and sample": "fill sample augment edit correct",
    "Joint and diagnose": "joint compare pairs diagnose",
    "Evaluate and rescore": "eval probe rescore",
    "Train and adapt": "train tokenizer sweep predict autoprompt distil-scorer export",
    "Translate": "translate distil-translations",
    "Proteins": "binders match",
    "Serve and scale": "serve explore bulk",
    "Theory": "lab",
    "Reference": "models methods cite examples",
}


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every command and group with its name, as in "eval run"."""
    for name, command in group.commands.items():
        yield f"{path}{name}", command
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} ")


COMMANDS: dict[str, Any] = dict(commands(typer.main.get_command(app)))
PLAIN = [name for name, command in COMMANDS.items() if not hasattr(command, "commands")]
WITH_COMMANDS = [name for name in COMMANDS if name not in PLAIN]


@functools.cache
def help_of(name: str) -> tuple[str, ...]:
    """Return the lines of `besag NAME --help` that are not empty, on a terminal of 80 columns."""
    environment = {"COLUMNS": str(COLUMNS), "TERMINAL_WIDTH": str(COLUMNS), "NO_COLOR": "1"}
    result = CliRunner().invoke(app, [*name.split(), "--help"], env=environment)
    assert result.exit_code == 0, result.output
    return tuple(line.strip() for line in result.stdout.splitlines() if line.strip())


def listed(lines: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the panels of a help text: title → name → sentence."""
    found: dict[str, dict[str, str]] = {}
    for line in lines:
        if title := re.match(r"╭─ (.+?) ─+╮$", line):
            found[title[1]] = {}
        elif row := re.match(r"│ (\S+)\s+(.+?)\s+│$", line):
            found[list(found)[-1]][row[1]] = row[2]
    return {title: rows for title, rows in found.items() if title != "Options"}


def sentence(name: str) -> str:
    """Return the first sentence of a command's own help."""
    usage, first, *_ = help_of(name)
    assert usage.startswith(f"Usage: besag {name} ")
    return first


def example(name: str) -> str:
    *_, title, last = help_of(name)
    assert title == "Example:", f"{name}: the example has more than one line of {COLUMNS} columns"
    return last


# ---- texts


def test_commands_are_listed_by_group() -> None:
    assert {title: " ".join(rows) for title, rows in listed(help_of("")).items()} == GROUPS


@pytest.mark.parametrize("name", ["", *WITH_COMMANDS])
def test_a_list_has_the_first_sentence_of_each_command(name: str) -> None:
    rows = {inner: text for panel in listed(help_of(name)).values() for inner, text in panel.items()}
    assert set(rows) == set(COMMANDS[name].commands if name else (one for one in COMMANDS if " " not in one))
    assert rows == {inner: sentence(f"{name} {inner}".strip()) for inner in rows}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_sentence_is_short_and_an_example_ends_the_help(name: str) -> None:
    text = sentence(name)
    assert len(text) <= LONGEST
    assert re.fullmatch(r"[A-Z].*[.…]", text)
    shown = example(name)
    assert shown.startswith(f"besag {name.removesuffix(' run')}" if name not in WITH_COMMANDS else f"besag {name} ")
    assert sum(line.startswith("besag ") for line in help_of(name)) == 1


@pytest.mark.parametrize("name", ["", *WITH_COMMANDS])
def test_no_list_has_banned_wording(name: str) -> None:
    assert style.hits("\n".join(help_of(name))) == []


@pytest.mark.parametrize("name", PLAIN)
def test_no_help_before_its_options_has_banned_wording(name: str) -> None:
    assert COMMANDS[name].help.splitlines()[0] == sentence(name)
    assert style.hits(COMMANDS[name].help) == []
    assert style.hits(example(name)) == []


def test_the_page_lists_the_same_sentences() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .*\| \[`besag (\S+)`\]\(#besag-\1\) \| (.+) \|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == " ".join(GROUPS.values()).split()
    assert {name: text.replace("`", "") for name, text in rows} == {name: sentence(name) for name, _ in rows}


# ---- examples


TEXTS = ["The cat sleeps.", "It rained all night.", "She smiled and left."]
LISTS = [("THE KEYS ARE HERE", "THE KEYS IS HERE"), ("SHE IS HERE", "SHE ARE HERE")]
TABLES = {
    "texts.tsv": ("id\ttext", [f"{number}\t{text}" for number, text in enumerate(TEXTS)]),
    "rows.tsv": ("text\tlabel", ["I liked it. It was\t1", "I hated it. It was\t0"]),
    "reviews.tsv": ("text\tlabel", ["The cat is on the mat.\tcat", "The dogs sleep.\tdogs"] * 5),
    "capitals.tsv": ("text\tlabel", ["France\tParis", "Italy\tRome", "Spain\tMadrid", "Egypt\tCairo"] * 3),
    "chains.tsv": ("heavy\tlight", ["the cat\ton the mat", "a man\tat night", "the dogs\tsleep"]),
    "pairs.tsv": ("good\tbad", [f"{TEXTS[1]}\tIt rain all night."]),
    "cloze.tsv": ("id\ttext", ["1\tThe [MASK] sleeps.", "2\tThey slept all [MASK]."]),
}
SHORT = [f"{who} {does}." for who in ("Cats", "Dogs", "Birds", "They", "We", "You") for does in (
    "sleep", "run", "sing", "eat", "play", "wait", "walk", "swim", "jump", "read")]  # fmt: skip


def text_files(folder: Path) -> None:
    for name, (header, rows) in TABLES.items():
        (folder / name).write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    for name in ("corpus.txt", "held-out.txt", "essays.txt"):
        (folder / name).write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    (folder / "templates.txt").write_text("The [MASK] sleeps.\n", encoding="utf-8")
    (folder / "train.csv").write_text(
        "text,label\nThe film was long and rather dull.,bad\nIt rained all night.,bad\n", encoding="utf-8"
    )
    (folder / "target.fasta").write_text(">target\nMKTAYIAK\n", encoding="utf-8")
    (folder / "peptides.txt").write_text("GAC\nWLK\n", encoding="utf-8")
    for name in ("nbest", "dev"):
        lists = [{"utt": f"{name}-{number}", "ref": good, "hyps": [{"text": bad, "score": -1.0},
                 {"text": good, "score": -1.2}]} for number, (good, bad) in enumerate(LISTS)]  # fmt: skip
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lists), encoding="utf-8")
    (folder / "blimp").mkdir()
    item = {"sentence_good": "The cats sleep.", "sentence_bad": "The cats sleeps.", "UID": "plain", "pairID": "0",
            "linguistics_term": "agreement"}  # fmt: skip
    (folder / "blimp" / "plain.jsonl").write_text(json.dumps(item) + "\n", encoding="utf-8")


def models(folder: Path) -> None:
    for name, family in (("spelling", "bert"), ("chains", "bert"), ("small", "bert"), ("binders", "esm")):
        network = networks.tiny(family, initializer_range=0.02 if name == "small" else 0.5)  # small: int8 costs little
        network.save_pretrained(folder / "runs" / name / "model")
        networks.vocabulary(family).tokenizer.save_pretrained(folder / "runs" / name / "model")
    translator, network = folder / "runs" / "translator" / "model", lift(networks.tiny_decoder("bart"))
    network.save_pretrained(translator)
    LengthHead(network.config.d_model, 9).save(translator)
    networks.vocabulary("bert").tokenizer.save_pretrained(translator)


def recipes(folder: Path) -> None:
    (folder / "recipe.toml").write_text(RECIPE + "[masking]\nrate = 0.3\n", encoding="utf-8")
    tasks.start(folder / "masked")
    tasks.texts(folder / "animals.tsv", 40)
    (folder / "reviews.toml").write_text(
        '[task]\ntrain = "animals.tsv"\nmax_length = 32\n[model]\nstart = "masked"\n[tuning]\nepochs = 1\nbatch = 16\n'
    )
    pairs.write(folder / "parallel", 40)
    recipe = pairs.recipe(Path("parallel"))
    recipe["schedule"]["steps"] = 4
    (folder / "translation.toml").write_text(toml(recipe), encoding="utf-8")


def toml(recipe: dict[str, Any], path: str = "") -> str:
    """Return a recipe of nested tables as TOML."""
    inner = {name: value for name, value in recipe.items() if isinstance(value, dict)}
    own = [f"{name} = {json.dumps(value)}\n" for name, value in recipe.items() if name not in inner]
    head = f"[{path.rstrip('.')}]\n" if path else ""
    return head + "".join(own) + "".join(toml(value, f"{path}{name}.") for name, value in inner.items())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    text_files(folder)
    models(folder)
    recipes(folder)
    return folder


@pytest.fixture
def stage(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all files, as the working directory."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BESAG_DATA", raising=False)
    return tmp_path


BEFORE = {  # what a reader has run before: commands
    "predict": ["besag train head reviews.toml"],
    "train curves": [f"besag train recipe.toml -o runs/{name}" for name in ("uniform", "span")],
    "tokenizer report": ["besag tokenizer train corpus.txt --size 300 -o tokenizer"],
    "eval compare": [f"besag eval blimp --data blimp -o results/{name}" for name in ("bert", "roberta")],
    "bulk merge": ["besag bulk score corpus.txt --output scores"],
    "bulk status": ["besag bulk score corpus.txt --output scores"],
}
SENTENCES = (ROOT / "examples" / "sentences.txt").read_text(encoding="utf-8").splitlines()
CORPORA = {  # where three texts are too few: 300 are held out; a batch is filled; a word has several subword tokens
    "distil-scorer": [f"{one} {two}" for one in SHORT for two in SHORT[:6]],
    **dict.fromkeys(("train run", "train check", "train curves", "sweep"), SENTENCES),
    "tokenizer extend": ["A traveller saw pterodactyls and pterodactyls."],
}
WRITTEN = {  # what an example without --output writes
    "train run": "run/model/config.json", "train head": "head/config.json", "train init": "recipe.toml",
    "export": "small-int8/config.json", "examples": "examples/demo.py",
}  # fmt: skip
PROCESSES = ("serve", "explore")
SLOW = {
    "autoprompt",
    "bulk score",
    "diagnose",
    "distil-scorer",
    "distil-translations",
    "pairs",
    "sweep",
}  # over 5 seconds


def output_of(name: str, words: list[str]) -> str | None:
    """Return the file or folder that an example writes, if it does."""
    flags = [place for place, word in enumerate(words) if word in ("-o", "--output")]
    return words[flags[0] + 1] if flags else WRITTEN.get(name)


def cases(names: list[str]) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in names]


@pytest.mark.filterwarnings("default")  # as in a process of its own: commands print warnings
@pytest.mark.parametrize("name", cases([name for name in PLAIN if name not in PROCESSES]))
def test_an_example_runs(name: str, run: Run, stage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name.startswith("bulk "):
        pytest.importorskip("ray", reason="pip install 'besag[bulk]'")
        if name != "bulk score":
            from besag.bulk.pipeline import Pool

            monkeypatch.setattr(Pool, "__call__", lambda self, reader, units, work: here(reader, units, work))
    if name in CORPORA:
        (stage / "corpus.txt").write_text("\n".join(CORPORA[name]) + "\n", encoding="utf-8")
    if name == "train init":
        (stage / "recipe.toml").unlink()
    for command in BEFORE.get(name, []):
        first = run(*shlex.split(command)[1:])
        assert first.exit_code == 0, first.output
    words = shlex.split(example(name))[1:]
    written = output_of(name, words)
    assert written is None or not (stage / written).exists()
    result = run(*words)
    assert result.exit_code == 0, result.output
    if written is None:
        assert result.stdout.strip()
    else:
        found = stage / written
        assert any(found.iterdir()) if found.is_dir() else found.stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("name", PROCESSES)
def test_the_example_of_a_server_answers_until_it_is_ended(name: str) -> None:
    pytest.importorskip("fastapi", reason="pip install 'besag[serve]'")
    pytest.importorskip("uvicorn", reason="pip install 'besag[serve]'")
    words = [*shlex.split(example(name))[1:], "--port", "0", *(["--no-browser"] if name == "explore" else [])]
    path = os.pathsep.join([str(Path(besag.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, "-m", "besag", *words], text=True, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    ) as process:  # fmt: skip
        try:
            assert process.stderr
            address = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+:\d+", line)))
            with urllib.request.urlopen(f"{address}/health", timeout=60) as answer:
                assert json.load(answer)["status"] == "ok"
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 143
        finally:
            process.kill()
