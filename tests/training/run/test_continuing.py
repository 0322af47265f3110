"""What a checkpoint belongs to goes on elsewhere, and nothing else does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests import networks
from tests.training import a_run

from besag.errors import BesagError
from besag.training.run.checkpoint import Checkpoint
from besag.training.run.continuing import belonging, refuse_other_steps, refuse_other_text


def built(folder: Path, text: str = "abc", family: str = "bert") -> Any:
    cache = SimpleNamespace(meta={"arrays": {"tokens": {"sha256": text}}})
    vocabulary = networks.vocabulary(family)
    return SimpleNamespace(recipe=a_run.small(folder), train=cache, vocabulary=vocabulary, lengths="bucketed")


def test_the_same_text_and_tokenizer_go_on_and_others_do_not(tmp_path: Path) -> None:
    before = belonging(built(tmp_path / "run"))
    assert before["lengths"] == "bucketed"
    start = Checkpoint(tmp_path, before)
    refuse_other_text(start, built(tmp_path / "run"))
    with pytest.raises(BesagError, match=r"the text in .*corpus.txt is not what it was"):
        refuse_other_text(start, built(tmp_path / "run", text="abd"))
    with pytest.raises(BesagError, match=r"the tokenizer .* is not what it was"):
        refuse_other_text(start, built(tmp_path / "run", family="roberta"))
    refuse_other_text(Checkpoint(tmp_path, {"text": "abc"}), built(tmp_path / "run"))  # of before it was written down


def test_a_stream_of_files_has_no_checksum(tmp_path: Path) -> None:
    assert belonging(SimpleNamespace(**{**vars(built(tmp_path / "run")), "train": None}))["text"] is None


def test_a_stream_goes_on_with_the_same_version_of_a_dataset_alone(tmp_path: Path) -> None:
    def stream(version: str) -> Any:
        recipe = a_run.small(tmp_path / "run", {"data": {"train": [], "dataset": "some/corpus", "stream": True}})
        more = {"train": None, "recipe": recipe, "batches": SimpleNamespace(version=version)}
        return SimpleNamespace(**{**vars(built(tmp_path / "run")), **more})

    start = Checkpoint(tmp_path, belonging(stream("c0ffee")))
    refuse_other_text(start, stream("c0ffee"))
    refuse_other_text(Checkpoint(tmp_path, {"text": None}), stream("c0ffee"))  # of before it was written down
    with pytest.raises(BesagError, match="is not what it was"):
        refuse_other_text(start, stream("facade"))


def test_processes_times_batches_stay(tmp_path: Path) -> None:
    recipe = a_run.small(tmp_path / "run", {"run": {"accumulate": 2}})
    start = Checkpoint(tmp_path, {"processes": 4})
    refuse_other_steps(1, start, recipe, world=2)
    with pytest.raises(BesagError, match=r"a step had 4 batches .*would now have 2"):
        refuse_other_steps(1, start, recipe, world=1)
    ramp = a_run.small(tmp_path / "run", {"run": {"accumulate": 2}, "schedule": {"ramp": 0.5}})
    refuse_other_steps(2, Checkpoint(tmp_path, {"processes": 2}), ramp, world=2)
    with pytest.raises(BesagError, match=r"schedule\.ramp = 0\.5 a run goes on with .* = 1 and 4 processes"):
        refuse_other_steps(1, start, ramp, world=2)  # as many in the end, but not at first
    with pytest.raises(BesagError, match="does not fit"):
        refuse_other_steps(1, Checkpoint(tmp_path, {}), recipe, world=1)
