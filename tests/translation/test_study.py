"""The study of translation, `benchmarks/translation.py`, from a made-up language to its figure, all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copy, copytree

import pytest

import besag

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "translation.py"


def study(out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1] / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), "--toy", "--out", str(out), "--device", "cpu", *options]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sacrebleu")
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("study")
    done = study(folder, "--weights", "masked-distilled")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_all_of_it(out: Path) -> None:
    told = json.loads((out / "results.json").read_text())
    rows = {row["name"]: row for row in told["rows"]}
    assert rows[told["baseline"]]["bleu"] > 50
    assert rows["masked-distilled.mask_predict.4"]["passes"] <= 4
    assert {row["kernel"] for row in told["kernels_against_mask_predict"]} >= {"adaptive", "entropy_bound", "threshold"}
    assert {one["model"] for one in told["speed"]} == {"causal", "shallow", "masked-distilled"}
    assert sum(one["sentences"] for one in told["dependence"]) == 6
    assert [one["nats"] for one in told["pairs"]] == sorted(one["nats"] for one in told["pairs"])
    assert (out / "translation.png").exists()


@pytest.mark.slow
def test_lists_are_judged_without_the_model_that_wrote_them(out: Path) -> None:
    options = ["--passes", "3", "--against", "masked-raw", "--models", "causal", "masked-raw", "masked-distilled"]
    done = study(out, "--stages", "listed", "chosen", "judge", *options)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads((out / "results.json").read_text())["rows"]}
    told = json.loads((out / "decoded.masked-distilled.mask_predict.3.json").read_text())
    assert [own[0][0] for own in told["lists"]] == told["texts"]
    chosen = json.loads((out / "decoded.masked-distilled.judge.3.json").read_text())["texts"]
    assert all(text in [one[0] for one in own] for text, own in zip(chosen, told["lists"], strict=True))
    assert rows["masked-distilled.judge.3"]["bleu_against_control"]["control"] == "masked-raw.judge.3"
    assert "bleu_against_control" not in rows["masked-raw.judge.3"]


@pytest.mark.slow
def test_what_is_packed_is_what_was_found(out: Path, tmp_path: Path) -> None:
    done = study(tmp_path, "--stages", "unpack", "--packed", str(out / "packed"))
    assert done.returncode == 0, done.stderr
    name = "decoded.masked-distilled.one-length.4.json"
    texts = json.loads((tmp_path / name).read_text())["texts"]
    assert (tmp_path / name).read_bytes() == (out / name).read_bytes()
    sources = (out / "data" / "test.de").read_text().splitlines()
    lm = besag.load(tmp_path / "masked-distilled" / "model", device="cpu", dtype="float32", progress=False)
    same = sum(one == other for one, other in zip(lm.translate(sources, passes=4).texts, texts, strict=True))
    assert same > 0.8 * len(texts)  # by weights that were rounded


@pytest.mark.slow
def test_the_best_on_the_validation_set_ranks_the_lists_of_the_beam(out: Path, tmp_path: Path) -> None:
    copytree(out, tmp_path, dirs_exist_ok=True)
    stages = ("--stages", "valid", "best", "nbest", "rescore")
    done = study(tmp_path, *stages, "--models", "causal", "masked-raw", "masked-distilled", "--best", "masked-raw")
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "best.json").read_text())
    assert told["means"][f"{told['best']}.{told['way']}"] == max(told["means"].values())
    assert set(told["bleu"]) == {
        f"{model}.{kernel}.{passes}"
        for model in ("masked-raw", "masked-distilled")
        for kernel in ("mask_predict", "refine")
        for passes in (4, 10)
    }
    rows = {row["system"]: row for row in json.loads((tmp_path / "rescored.json").read_text())["rows"]}
    assert rows[f"{told['best']} pll"]["bleu"] <= rows["oracle"]["bleu"]
    assert "small-en pll" in rows


@pytest.mark.slow
def test_jobs_beside_each_other_do_what_is_left_and_say_what_failed(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCRIPT.parent)
    monkeypatch.setenv("PYTHONPATH", str(SCRIPT.parents[1] / "src"))
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--toy", "--out", str(out), "--device", "cpu", "--beside", "2"])
    import translation

    left = [out / "distilled" / "part-0.json", out / "decoded.shallow.beam5.json"]
    before = [path.read_bytes() for path in left]
    for path in left:
        path.unlink()
    again = translation.Study(translation.arguments())
    again.carry_out("again", ("teacher-0", "decode-shallow"))
    assert left[0].read_bytes() == before[0]
    assert json.loads(left[1].read_bytes())["texts"] == json.loads(before[1])["texts"]
    with pytest.raises(SystemExit, match="decode-nobody failed"):
        again.carry_out("again", ("decode-nobody", "tokenizer"))


@pytest.mark.slow
def test_models_that_are_not_there_are_not_missed(out: Path, tmp_path: Path) -> None:
    copytree(out / "data", tmp_path / "data")
    for path in (*out.glob("decoded.causal.*"), *out.glob("decoded.masked-raw.*"), *out.glob("*.train.json")):
        copy(path, tmp_path)
    done = study(tmp_path, "--stages", "judge", "figures", "--models", "causal", "masked-raw", "--best", "masked-raw")
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "results.json").read_text())
    assert {row["model"] for row in told["rows"]} == {"causal", "masked-raw"}
    assert (told["baseline"], told["best"], told["distilled"]) == ("causal.beam5", "masked-raw", [])
    assert (told["speed"], told["dependence"], told["kernels_against_mask_predict"]) == ([], [], [])
    assert (tmp_path / "translation.png").exists()


def test_waves_are_of_the_models_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCRIPT.parent)
    from translation import waves

    assert waves("train", ["causal", "masked-own"]) == [("tokenizer",), ("causal", "masked-own")]
    assert waves("train", ["causal", "masked-distilled"]) == [
        ("tokenizer",), ("causal", "teacher-0", "teacher-1"), ("masked-distilled",)
    ]  # fmt: skip
    assert waves("decode", ["masked-own"]) == [("decode-kernels", "decode-masked-own", "dependence")]
    assert waves("valid", ["causal", "masked-own"]) == [("valid-masked-own",)]
    assert waves("nbest", ["causal", "masked-own"]) == [("nbest-causal",)]
    assert waves("judge", []) == [("judge",)]


@pytest.mark.slow
def test_a_name_of_no_kind_is_refused(tmp_path: Path) -> None:
    told = study(tmp_path / "out", "--models", "causal", "nobody")
    assert told.returncode == 2
    assert "nobody: a model's name begins with causal, shallow, masked" in told.stderr


@pytest.mark.slow
def test_the_plan_tells_and_does_nothing(tmp_path: Path) -> None:
    told = study(tmp_path / "out", "--plan", "--beside", "5", "--set", "schedule.steps=null", "schedule.minutes=2")
    assert [line.split()[:2] for line in told.stdout.splitlines()][1] == ["train", "3.1"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["data"]
