"""End to end: a toy language is learnt by a masked and by a left-to-right decoder, saved, loaded and translated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.translation import pairs

import besag
from besag.conditionals.contract import takes_source
from besag.scores.source_length import SourceLengths
from besag.training.run.checkpoint import Checkpoints
from besag.training.run.sixteen import unpack
from besag.translation.left_to_right import translate

FRESH = pairs.sources(20, seed=1, longest=5)


def test_a_masked_decoder_translates_in_parallel(masked: Any) -> None:
    assert takes_source(masked.conditionals)
    lengths, right = SourceLengths(masked.engine), 0
    for source in FRESH:
        [n] = lengths.likeliest(1, masked.conditionals.source_ids([source])[0])
        blank = " ".join([masked.vocabulary.mask_token] * n)
        found = masked.given(source).sample(blank, kernel="mask_predict", steps=2, chains=1)
        right += found.texts[0] == pairs.translated(source)
    assert right >= 16


def test_a_translation_is_likelier_than_others_of_all_lengths(masked: Any) -> None:
    source = "the cat table"
    texts = [pairs.translated(source), "cats dogs", "sleep dogs cats", "cats dogs sleep man"]
    scores = masked.given(source).score(texts, "chain", lengths="predicted")
    assert max(scores, key=lambda score: score.total).text == texts[0]


def test_one_word_makes_it_the_left_to_right_baseline(causal: Any) -> None:
    for beam in (1, 3):
        found = translate(causal.conditionals, FRESH, beam=beam)
        assert sum(one[0].text == pairs.translated(source) for one, source in zip(found, FRESH, strict=True)) >= 14


@pytest.mark.parametrize(
    ("name", "options"),
    [("unroll", {"corrupt": "mask", "feed": "argmax"}), ("glance", {}), ("correct", {})],
)
def test_every_objective_learns_it(folder: Path, name: str, options: dict[str, Any]) -> None:
    recipe = pairs.recipe(folder, name=name, options=options)
    result = besag.train(recipe, {"schedule.steps": 40}, output=folder / name, quiet=True)
    assert result.metrics["heldout_loss"] < 1.7  # of five words: 1.6 without a source
    assert besag.load(result.model, device="cpu").conditionals.lengths.most == 10


def test_the_finished_model_is_the_mean_of_the_last_checkpoints(folder: Path) -> None:
    changes = {"schedule.steps": 6, "run.checkpoint_every": 2, "run.keep": 3, "run.average": 3}
    result = besag.train(pairs.recipe(folder), changes, output=folder / "mean", quiet=True)
    states = [unpack(one.read())["objective"] for one in Checkpoints(folder / "mean" / "checkpoints").last(3)]
    assert len(states) == 3
    name = "model.decoder.layers.0.fc1.weight"
    [stored] = {key for key in states[0] if key.endswith(name)}
    saved = besag.load(result.model, device="cpu").model.state_dict()[name]
    torch.testing.assert_close(saved, sum(state[stored] for state in states) / 3)
    assert not torch.allclose(saved, states[-1][stored])
