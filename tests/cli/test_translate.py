"""`besag translate` from argument to row: files, stdin, lists for `besag rescore`, traces, going on, what is refused.

The networks are random: what they say means nothing, and it is the same as Python's.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import networks
from tests.cli.conftest import Run, table

import besag
from besag.conditionals.encoder_decoder import lift
from besag.conditionals.length_head import LengthHead
from besag.files import progress

SOURCES = ["the cat", "dogs sleep on the table", "cats", "a man"]


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("masked"), lift(networks.tiny_decoder("bart")), True)


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("causal"), networks.tiny_decoder("bart"), False)


def saved(folder: Path, model: Any, head: bool) -> Path:
    model.save_pretrained(folder)
    networks.vocabulary("bert").tokenizer.save_pretrained(folder)
    if head:
        LengthHead(model.config.d_model, 9).save(folder)
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "source.txt"
    path.write_text("".join(f"{source}\n" for source in SOURCES))
    return path


def test_rows_are_what_python_says(run: Run, masked: Path, file: Path) -> None:
    result = run("translate", file, "-m", masked, "--passes", 2, "--lengths", 2, "--choose", "length")
    assert result.exit_code == 0, result.stderr
    rows = table(result.stdout)
    found = besag.load(masked, progress=False).translate(SOURCES, passes=2, lengths=2, choose="length")
    assert [row["text"] for row in rows] == found.texts
    assert [row["source"] for row in rows] == SOURCES
    assert [int(row["passes"]) for row in rows] == [row.hypotheses[0].passes for row in found]
    assert "4 of 4 sources translated" in result.stderr


def test_kernels_and_terms_are_said_as_in_python(run: Run, masked: Path, tmp_path: Path) -> None:
    options = ["-m", masked, "-k", "threshold", "--set", "least=0.2", "--length", 4, "--term", "man"]
    result = run("translate", "the cat", *options)
    assert result.exit_code == 0, result.stderr
    assert "man" in table(result.stdout)[0]["text"]
    path = tmp_path / "pairs.tsv"
    path.write_text("text\twords\nthe cat\tman; mat\ncats\t\n")
    result = run("translate", path, "-m", masked, "--terms-column", "words", "--length", 5)
    [first, _] = table(result.stdout)
    assert "man" in first["text"]
    assert "mat" in first["text"]
    assert first["words"] == "man; mat"


def test_from_the_left(run: Run, causal: Path) -> None:
    result = run("translate", "-", "-m", causal, "--beam", 3, "--nbest", 2, stdin="the cat\ncats\n")
    assert result.exit_code == 0, result.stderr
    assert [row["rank"] for row in table(result.stdout)] == ["1", "2", "1", "2"]


@pytest.mark.parametrize("ending", ["jsonl", "tsv"])
def test_lists_carry_their_source_to_rescore(run: Run, masked: Path, file: Path, tmp_path: Path, ending: str) -> None:
    lists = tmp_path / f"nbest.{ending}"
    assert run("translate", file, "-m", masked, "--lengths", 3, "-n", 3, "-o", lists).exit_code == 0
    out = tmp_path / f"new.{ending}"
    run("rescore", lists, "-m", masked, "--method", "pll", "--weight", 0.5, "-o", out)
    from besag.rescoring.formats import read_nbest

    before, after = read_nbest(lists)[0], read_nbest(out)[0]
    assert [one.source for one in before] == [one.source for one in after] == SOURCES
    lm, checked = besag.load(masked, progress=False), 0
    for old, new in zip(before, after, strict=True):
        first = {one.text: one.score for one in old.hypotheses}
        scores = {text: lm.given(old.source).score(text, "pll") for text in first}
        if all(score.status == "ok" for score in scores.values()):  # a random network also writes what has no score
            checked += 1
            for one in new.hypotheses:
                assert one.score == pytest.approx(first[one.text] + 0.5 * scores[one.text].total, abs=1e-3)
    assert checked


def test_the_way_is_shown(run: Run, masked: Path) -> None:
    result = run("translate", "the cat", "-m", masked, "-k", "ordered", "--length", 4, "--trace")
    assert result.stderr.count("[MASK]") >= 3
    assert "   4  " in result.stderr


def test_a_run_that_stopped_goes_on(run: Run, masked: Path, file: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(progress.BLOCK, "cpu", 1)
    whole, part = tmp_path / "whole.tsv", tmp_path / "part.tsv"
    options = ["translate", file, "-m", masked, "--passes", 2, "-o"]
    assert run(*options, whole).exit_code == 0
    plain, calls = besag.LanguageModel.translate, []

    def stops(self: Any, *sources: Any, **given: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(self, *sources, **given)

    monkeypatch.setattr(besag.LanguageModel, "translate", stops)
    stopped = run(*options, part)
    assert stopped.exit_code == 130
    assert "--resume" in stopped.stderr
    assert part.read_bytes() != whole.read_bytes()
    assert "was begun with other settings" in run(*options[:-2], "3", "-o", part, "--resume").stderr
    assert run(*options, part, "--resume").exit_code == 0
    assert part.read_bytes() == whole.read_bytes()


def test_a_run_that_was_killed_goes_on(run: Run, masked: Path, file: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """With SIGKILL, in the middle of its third block."""
    monkeypatch.setitem(progress.BLOCK, "cpu", 1)
    whole, part = tmp_path / "whole.tsv", tmp_path / "part.tsv"
    options = ["translate", str(file), "-m", str(masked), "--lengths", "2", "--passes", "2", "--device", "cpu", "-o"]
    assert run(*options, whole).exit_code == 0
    script = (
        "import os, signal, sys, besag\nfrom besag.cli import main\nfrom besag.files import progress\n"
        "progress.BLOCK['cpu'] = 1\nplain, times = besag.LanguageModel.translate, iter(range(9))\n"
        "besag.LanguageModel.translate = lambda *given, **how: plain(*given, **how) if next(times) < 2 else "
        "os.kill(os.getpid(), signal.SIGKILL)\nsys.argv[0] = 'besag'\nmain()\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, *options, str(part)], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert part.read_bytes() != whole.read_bytes()
    assert run(*options, part, "--resume").exit_code == 0
    assert part.read_bytes() == whole.read_bytes()


def test_rows_that_cannot_be_translated_have_a_status(run: Run, masked: Path, tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("the cat\n\n" + "cat " * 80 + "\n")
    result = run("translate", path, "-m", masked)
    assert result.exit_code == 3
    assert [row["status"] for row in table(result.stdout)] == ["ok", "empty", "long source"]


def test_what_is_refused(run: Run, masked: Path, causal: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    for options, told in (
        (["-m", causal, "--passes", 2], "translates from the left"),
        (["-m", masked, "-k", "mask_predikt"], "mask_predict"),
        (["-m", masked, "--set", "iterations=2"], "say which with --kernel"),
        (["-m", masked, "--choose", "judge"], "say which with judge="),
        (["-m", masked, "--judge", masked], "left-to-right translator"),
        ([], "takes no source"),
        (["-m", masked, "--length", 4000], "tokens at most"),
        (["-m", masked, "--beam", 7], "a beam is for left-to-right translators"),
    ):
        result = run("translate", "the cat", *options, "-o", out)
        assert result.exit_code == 2, options
        assert told in result.stderr
        assert not out.exists()


def test_a_file_that_is_not_there_is_no_sentence(run: Run, masked: Path) -> None:
    """One side of parallel text is called test.de, and a slip of the pen must not be translated."""
    result = run("translate", "tset.de", "-m", masked)
    assert result.exit_code == 2
    assert "no such file: 'tset.de' (if it is the text itself, say --text)" in result.stderr
    assert run("translate", "tset.de", "--text", "-m", masked).exit_code == 0


def test_a_missing_length_head_is_told(run: Run, masked: Path, tmp_path: Path) -> None:
    headless = saved(tmp_path / "model", lift(networks.tiny_decoder("bart")), False)
    result = run("translate", "the cat", "-m", headless)
    assert result.exit_code == 2
    assert "has no length head" in result.stderr
