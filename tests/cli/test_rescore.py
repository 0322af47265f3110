"""`besag rescore`: what it writes, what it refuses, and that a killed run goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Run, put, table

import besag
from besag.rescoring.formats import read_nbest
from besag.rescoring.rescore import rescore

pytest.importorskip("jiwer")
LISTS = {
    "s1-a": ("THE CATS SLEEP", [("THE CATS SLEEPS", -1.0), ("THE CATS SLEEP", -1.2), ("THE CAT'S SLEEP", -1.3)]),
    "s1-b": ("SHE IS HERE", [("SHE ARE HERE", -2.0), ("SHE IS HERE", -2.5)]),
    "s2-a": ("HE READS A BOOK", [("HE READS A BOOK", -1.0), ("HE READS A BROOK", -1.1)]),
    "s2-b": ("THEY ARE OLD", [("THEY IS OLD", -0.5), ("THEY ARE OLD", -0.9)]),
}


def rows(referred: bool = True) -> str:
    found = []
    for utt, (ref, hyps) in LISTS.items():
        row = {"utt": utt, **({"ref": ref} if referred else {}), "hyps": [{"text": t, "score": s} for t, s in hyps]}
        found.append(json.dumps(row))
    return "\n".join(found) + "\n"


@pytest.fixture
def nbest(tmp_path: Path) -> Path:
    return put(tmp_path / "nbest.jsonl", rows())


def test_the_table_is_what_python_finds(run: Run, nbest: Path, tmp_path: Path) -> None:
    out, kept = tmp_path / "out.jsonl", tmp_path / "scores.jsonl"
    result = run(
        "rescore", nbest, "--weight", 0.3, "--casing", "sentence", "--full-stop", "-o", out, "--scores", kept,
        "--plot", tmp_path / "curve.png", "--report", tmp_path / "report.tsv",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    expected = rescore(besag.load(), nbest, weight=0.3, casing="sentence", full_stop=True)
    found = table(result.stdout)
    assert [row["system"] for row in found] == ["first pass", "pll", "oracle"]
    assert float(found[1]["wer"]) == pytest.approx(expected.systems[0].value)
    assert table((tmp_path / "report.tsv").read_text()) == found
    assert (tmp_path / "curve.png").stat().st_size > 5_000
    ranked, format = read_nbest(out)
    assert format == "jsonl"
    assert [one.hypotheses[0].text for one in ranked] == [one.hypotheses[0].text for one in expected.reranked()]
    assert len(kept.read_text().splitlines()) == 1 + 9
    assert "WER in per cent of 4 utterances" in result.stderr
    refused = run("rescore", nbest, "--weight", 0.3, "-o", out)
    assert refused.exit_code == 2
    assert "exists already" in refused.stderr


def test_folds_several_methods_and_other_rows(run: Run, nbest: Path, tmp_path: Path) -> None:
    common = ("rescore", nbest, "--casing", "sentence", "--full-stop", "--scores", tmp_path / "kept")
    result = run(*common, "--folds", "speaker", "--method", "pll", "--method", "chain", "--combine")
    assert result.exit_code == 0, result.stderr
    assert [row["system"] for row in table(result.stdout)] == ["first pass", "pll", "chain", "combined", "oracle"]
    assert "tuned on the other fold" in result.stderr
    by_weight = table(run(*common, "--tune", "--per", "weight").stdout)
    assert [float(row["weight"]) for row in by_weight[:3]] == [0, 0.05, 0.1]
    each = table(run(*common, "--dev", nbest, "--per", "utterance").stdout)
    assert [row["utt"] for row in each] == list(LISTS)
    assert each[0]["first pass"] == "THE CATS SLEEPS"


def test_a_number_of_folds(run: Run, nbest: Path, tmp_path: Path) -> None:
    common = ("rescore", nbest, "--casing", "sentence", "--full-stop", "--scores", tmp_path / "kept")
    result = run(*common, "--folds", 3, "--per", "utterance")
    assert result.exit_code == 0, result.stderr
    assert [row["fold"] for row in table(result.stdout)] == ["0", "1", "2", "0"]
    assert "the other 2 folds" in result.stderr
    for wrong in ("1", "0", "5", "-2", "speakers", "2.5", "9" * 30):
        refused = run(*common, "--folds", wrong)
        assert refused.exit_code == 2, refused.stdout
        assert wrong in refused.stderr


def test_a_file_of_the_user_is_not_written_over(run: Run, nbest: Path, tmp_path: Path) -> None:
    for content in ('{"learning_rate": 0.1}', "my notes"):
        kept = put(tmp_path / "mine.json", content)  # without a line end, as json.dump writes
        refused = run("rescore", nbest, "--weight", 0.3, "--scores", kept)
        assert refused.exit_code == 2
        assert "mine.json" in refused.stderr
        assert kept.read_text() == content


def test_folders_go_in_and_out(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "kaldi"
    folder.mkdir()
    every = [(f"{utt}-{n}", *one) for utt, (_, hyps) in LISTS.items() for n, one in enumerate(hyps, 1)]
    put(folder / "text", "".join(f"{key} {text}\n" for key, text, _ in every))
    put(folder / "score", "".join(f"{key} {score}\n" for key, _, score in every))
    ref = put(tmp_path / "ref", "".join(f"{utt} {ref}\n" for utt, (ref, _) in LISTS.items()))
    result = run("rescore", folder, "--ref", ref, "--weight", 0.3, "--casing", "lower", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert sorted(os.listdir(tmp_path / "out")) == ["score", "text"]
    assert read_nbest(tmp_path / "out")[1] == "kaldi"
    refused = run("rescore", folder, "--weight", 0.3, "-o", tmp_path / "out")
    assert (refused.exit_code, "exists already" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (rows(), (), "λ comes from one of"),
        (rows(referred=False), ("--tune",), "has no reference to judge by: give --ref FILE"),
        ('{"utt": "a", "ref": "b", "hyps": [{"text": "b"}]}\n', ("--tune",), "has no score"),
        (rows() + rows(), ("--tune",), "two lists of the id"),
        ('{"utt": "a", "ref": "b", "hyps": []}\n', ("--tune",), "has no hypotheses"),
        (rows(), ("--tune", "--ref", "ref"), "no hypotheses"),
        (rows(), ("--weight", "1", "--method", "pll", "--method", "chain", "-o", "out"), "holds one ranking"),
        (rows(), ("--weight", "1", "--scores", "nbest.jsonl"), "is the input"),
        (rows(), ("--weight", "1", "--format", "moses"), "is not id ||| text"),
        ("", ("--tune",), "is empty"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_and_nothing_is_written(content, options, said, run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "nbest.jsonl", content)
    put(tmp_path / "ref", "".join(f"{utt} X\n" for utt in [*LISTS, "other-1"]))
    result = run("rescore", "nbest.jsonl", *options, *(() if "-o" in options else ("-o", "new.jsonl")))
    assert result.exit_code == 2
    assert said in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["nbest.jsonl", "ref"]
    assert (tmp_path / "nbest.jsonl").read_text() == content


def test_a_list_that_cannot_be_scored_is_left_as_it_was(run: Run, tmp_path: Path) -> None:
    row = {"utt": "a", "ref": "it", "hyps": [{"text": "", "score": -1.0}, {"text": "it", "score": -2.0}]}
    result = run("rescore", put(tmp_path / "n.jsonl", json.dumps(row) + "\n"), "--weight", 9)
    assert result.exit_code == 3
    assert "1 list not scored by pll" in result.stderr


def test_a_killed_run_goes_on_by_the_same_command(tmp_path: Path) -> None:
    lines = []
    for n in range(400):
        hyps = [{"text": f"the {word} cat number {n} sleeps here", "score": -1.0} for word in ("old", "new")]
        lines.append(json.dumps({"utt": f"u{n}", "ref": "it", "hyps": hyps}))
    nbest, kept = put(tmp_path / "n.jsonl", "\n".join(lines) + "\n"), tmp_path / "kept.jsonl"
    command = [sys.executable, "-m", "besag", "rescore", str(nbest), "--weight", "0.5", "--method", "unmasked",
               "--batch-tokens", "512", "--scores", str(kept), "-o", str(tmp_path / "out.jsonl")]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1000):
        if (kept.exists() and kept.stat().st_size) or process.poll() is not None:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = kept.read_bytes()
    there = before[: before.rfind(b"\n") + 1]
    assert not (tmp_path / "out.jsonl").exists() or there.count(b"\n") == 801
    again = subprocess.run([*command, "--force"], capture_output=True, text=True, timeout=100, check=False)
    assert again.returncode == 0, again.stderr
    left = 801 - there.count(b"\n")  # the first line is the head
    assert f"{left} of 800 texts are still to be scored" in again.stderr
    assert kept.read_bytes().startswith(there)
    assert kept.read_bytes().count(b"\n") == 801
    assert len(read_nbest(tmp_path / "out.jsonl")[0]) == 400
