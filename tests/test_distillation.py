"""Train, distil, translate, evaluate: a toy language end to end, each teacher asked about what it never saw."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.translation import pairs

import besag
from besag.engine import Engine
from besag.errors import BesagError
from besag.files.claim import Claim
from besag.training.run import TrainingResult


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("distilled")
    pairs.write(made, 300)
    return made


CHANGES = {"schedule.steps": 90, "data.max_length": 12}


@pytest.fixture(scope="module")
def distilled(folder: Path) -> Any:
    return besag.distil_translations(pairs.recipe(folder), folder / "out", CHANGES, beam=2, device="cpu", quiet=True)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_every_pair_is_written_anew_by_who_never_saw_it(folder: Path, distilled: Any) -> None:
    sources, targets = lines(distilled.source), lines(distilled.target)
    assert len(sources) == len(targets) == distilled.pairs
    for part in (0, 1):
        seen = lines(folder / "out" / f"teacher-{part}.source")
        assert seen == [source for at, source in enumerate(sources) if at % 2 != part]
    right = sum(target == pairs.translated(source) for source, target in zip(sources, targets, strict=True))
    assert right > 0.8 * len(sources)
    assert distilled.changed == len(sources) - right


def test_from_distilled_pairs_to_figures(folder: Path, distilled: Any) -> None:
    pytest.importorskip("sacrebleu")
    changes = {"data.source": [str(distilled.source)], "data.target": [str(distilled.target)], "schedule.steps": 120}
    model = besag.train(pairs.recipe(folder), changes, output=folder / "student", quiet=True).model
    fresh = pairs.sources(40, seed=9, longest=5)
    rows = "".join(f"{source}\t{pairs.translated(source)}\n" for source in fresh)
    (folder / "test.tsv").write_text(f"source\ttarget\n{rows}")
    lm = besag.load(model, device="cpu", progress=False)
    found = besag.evaluate(lm, "translation", data=folder / "test.tsv", passes=2)
    assert found["BLEU"].value > 60
    assert 1 <= found["passes"].value <= 2


def test_parts_are_shared_and_who_ends_last_writes(folder: Path, distilled: Any, tmp_path: Path) -> None:
    """The teachers are those that are there: a part is theirs to translate, in any order."""
    out = tmp_path / "out"
    shutil.copytree(folder / "out", out, ignore=shutil.ignore_patterns("part-*", "train.*"))
    share = partial(besag.distil_translations, pairs.recipe(folder), out, CHANGES, beam=2, quiet=True)
    assert share(part=1) is None
    assert not (out / "train.target").exists()
    last = share(part=0)
    assert last.target.read_bytes() == distilled.target.read_bytes()
    assert last[2:] == distilled[2:]
    with pytest.raises(BesagError, match="part=2"):
        share(part=2)


@pytest.mark.parametrize("killed", [False, True])
def test_a_teacher_that_was_killed_before_its_first_checkpoint_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    pairs.write(tmp_path, 20)
    (tmp_path / "out" / "teacher-0").mkdir(parents=True)
    if killed:
        (tmp_path / "out" / "teacher-0" / "log.jsonl").write_text('{"step": 10}\n')
    said = []

    def stopped(recipe: Any, *, resume: bool, quiet: bool) -> TrainingResult:
        said.append(resume)
        return TrainingResult(tmp_path, finished=False)

    monkeypatch.setattr("besag.distillation.train", stopped)
    with pytest.raises(BesagError, match="stopped before its end"):
        besag.distil_translations(pairs.recipe(tmp_path), tmp_path / "out")
    assert said == [killed]


def test_it_goes_on_and_refuses_other_settings(
    folder: Path, distilled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("besag.distillation.train", None)  # nothing is trained again
    call = partial(besag.distil_translations, pairs.recipe(folder), folder / "out", device="cpu", quiet=True)
    assert call(CHANGES, beam=2) == distilled
    assert call({**CHANGES, "run.log_every": 7}, beam=2) == distilled  # it changes no teacher
    with pytest.raises(BesagError, match="beam is 3, and was 2"):
        call(CHANGES, beam=3)
    before = {path: path.read_bytes() for path in (folder / "out").glob("*.*")}
    for key, value in {"schedule.steps": 91, "optimizer.lr": 0.02, "model.config.d_model": 16}.items():
        with pytest.raises(BesagError, match=rf"{key} is {value}, and was"):
            call({**CHANGES, key: value}, beam=2)
    assert {path: path.read_bytes() for path in (folder / "out").glob("*.*")} == before
    pairs.write(tmp_path, 20)
    (tmp_path / "train.t").write_text("one line\n")
    with pytest.raises(BesagError, match="has no partner"):
        besag.distil_translations(pairs.recipe(tmp_path), tmp_path / "other")


def test_a_part_is_resumed_in_the_same_batches_and_is_the_same(
    folder: Path, distilled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    shutil.copytree(folder / "out", out, ignore=shutil.ignore_patterns("part-*", "train.*"))
    monkeypatch.setattr("besag.distillation.BLOCK", 40)
    call = partial(besag.distil_translations, pairs.recipe(folder), out, CHANGES, beam=2, device="cpu", quiet=True)
    call(part=0)
    whole = (out / "part-0.json").read_bytes()
    (out / "part-0.json").unlink()
    translate, repeat, calls, repeated = besag.LanguageModel.translate, Engine.repeat, [], []

    def killed(*given: Any, **options: Any) -> Any:
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return translate(*given, **options)

    monkeypatch.setattr(besag.LanguageModel, "translate", killed)
    with pytest.raises(KeyboardInterrupt):
        call(part=0)
    half = json.loads((out / "part-0.json").read_text())
    assert len(half["targets"]) == 80
    monkeypatch.setattr(Engine, "repeat", lambda engine, found=None: repeated.append(found) or repeat(engine, found))
    call(part=0)
    assert repeated == [half["batches"]]
    assert len(half["batches"]) == 2
    assert (out / "part-0.json").read_bytes() == whole


def test_a_part_is_of_one_process_at_a_time(folder: Path, distilled: Any) -> None:
    call = partial(
        besag.distil_translations, pairs.recipe(folder), folder / "out", CHANGES, beam=2, device="cpu", quiet=True
    )
    with Claim(folder / "out" / "part-0.json"), pytest.raises(BesagError, match=r"part-0\.json.*another process"):
        call(part=0)
    assert call() == distilled


def test_a_file_of_targets_that_cannot_be_read_is_named(folder: Path, distilled: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(folder / "out", out)
    for content in ("[null]", "torn", '{"targets": 3, "batches": []}'):
        (out / "part-1.json").write_text(content)
        with pytest.raises(BesagError, match=r"part-1\.json"):
            besag.distil_translations(pairs.recipe(folder), out, CHANGES, beam=2, device="cpu", quiet=True)
        assert (out / "part-1.json").read_text() == content
