"""The monitor: its numbers by hand on a tiny network, the same at every visit, and nothing of the network changed."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.networks import tiny, vocabulary

import besag
from besag.errors import BesagError
from besag.evaluation.minimal_pairs import minimal_pairs, read_pairs
from besag.evaluation.monitor import Monitor, Question
from besag.training.network.encoder import Encoder
from besag.training.recipe import Data, Evaluation, Recipe

TEXTS = [
    "The cat sat on the mat. A dog barks at the old tree!",
    "No one knows where the river ends. She reads the book again and again, and smiles.",
    "The men are at the sea. It is a cold and grey morning.",
] * 4
RECIPE = Recipe(data=Data(max_length=32), evaluation=Evaluation(rate=0.2, sentences=6))


def network(family: str = "bert") -> tuple[Any, Any]:
    return tiny(family), vocabulary(family)


def loss_by_hand(model: Any, questions: list[Question]) -> float:
    total, count = 0.0, 0
    with torch.no_grad():
        for one in questions:
            logits = copy.deepcopy(model).eval()(input_ids=torch.from_numpy(one.ids)).logits.double().log_softmax(-1)
            total -= float(logits[one.row, one.place, one.target].sum())
            count += len(one.target)
    return total / count


def test_the_numbers_are_those_of_plain_forward_passes() -> None:
    model, words = network()
    monitor = Monitor(RECIPE, words, TEXTS)
    found = monitor(model, 7)
    assert set(found) == {
        "heldout_loss", "pseudo_perplexity", "pseudo_bits_per_character", "rectangle_deviation", "rectangle_dependence",
        "mutual_information",
    }  # fmt: skip
    assert found["heldout_loss"] == pytest.approx(loss_by_hand(model, monitor.passages), rel=1e-5)
    assert all(math.isfinite(value) and value >= 0 for value in found.values())
    assert found["rectangle_dependence"] > 0.01  # these weights are wide: neighbours matter


def test_what_only_encodes_is_asked_nothing(tmp_path: Path) -> None:
    model, words = network()
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("good\tbad\nThe cat sat.\tThe cat sit.\n")
    recipe = replace(RECIPE, evaluation=replace(RECIPE.evaluation, minimal_pairs=(str(pairs),)))
    assert "minimal_pairs" in Monitor(recipe, words, TEXTS)(model)
    assert Monitor(recipe, words, TEXTS, purpose="encode")(model) == {}


def test_the_pseudo_perplexity_of_short_sentences_is_that_of_their_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("besag.evaluation.monitor.PLACES", 100)
    model, words = network()
    recipe = replace(RECIPE, data=Data(max_length=40), evaluation=Evaluation(sentences=100))
    monitor = Monitor(recipe, words, TEXTS[:3])
    lm = besag.load((model, words.tokenizer))
    assert len(monitor.sentences) == 6
    for one in monitor.sentences:  # each of its tokens hidden once
        assert (one.ids == words.mask_id).sum(1).tolist() == [1] * len(one.target)
        assert len(one.target) == one.ids.shape[1] - 2
    originals = [
        "The cat sat on the mat.", "A dog barks at the old tree!", "No one knows where the river ends.",
        "She reads the book again and again, and smiles.", "The men are at the sea.",
        "It is a cold and grey morning.",
    ]  # fmt: skip
    scores = lm.score(originals)
    total, tokens = sum(one.total for one in scores), sum(len(one) for one in scores)
    found = monitor(model)
    assert found["pseudo_perplexity"] == pytest.approx(math.exp(-total / tokens), rel=1e-4)
    assert found["pseudo_bits_per_character"] == pytest.approx(-total / math.log(2) / monitor.characters, rel=1e-4)
    assert monitor.characters == pytest.approx(sum(map(len, originals)), rel=0.1)  # unknown words are written [UNK]


def test_some_places_of_a_sentence_stand_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    model, words = network()
    monkeypatch.setattr("besag.evaluation.monitor.PLACES", 3)
    monitor = Monitor(RECIPE, words, TEXTS)
    losses = [loss_by_hand(model, [one]) for one in monitor.sentences]
    assert {len(one.target) for one in monitor.sentences} == {3}
    sizes = [one.ids.shape[1] - 2 for one in monitor.sentences]
    expected = sum(size * loss for size, loss in zip(sizes, losses, strict=True)) / sum(sizes)
    assert math.log(monitor(model)["pseudo_perplexity"]) == pytest.approx(expected, rel=1e-5)


def test_long_texts_are_asked_where_there_are_no_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("besag.evaluation.monitor.LONGEST", 12)
    model, words = network()
    long, short = "the old tree and the old tree", "the old tree"
    alone, beside = Monitor(RECIPE, words, [long, long]), Monitor(RECIPE, words, [long, short])
    assert [one.ids.shape[1] - 2 > 12 for one in alone.sentences] == [True, True]
    assert alone(model)["pseudo_bits_per_character"] > 0
    assert [one.ids.shape[1] - 2 <= 12 for one in beside.sentences] == [True]


def test_masks_are_the_same_at_every_visit_and_for_every_seed_of_the_run() -> None:
    _, words = network()
    other = replace(RECIPE, run=replace(RECIPE.run, seed=99))
    first, second = Monitor(RECIPE, words, TEXTS), Monitor(other, words, TEXTS)
    for one, two in zip(first.passages, second.passages, strict=True):
        assert np.array_equal(one.ids, two.ids)
        assert np.array_equal(one.place, two.place)
    hidden = sum(len(one.target) for one in first.passages)
    free = sum(one.ids.shape[1] - 2 for one in first.passages)
    assert hidden / free == pytest.approx(0.2, abs=0.05)
    for one in first.passages:
        assert (one.ids[0, one.place] == words.mask_id).all()
        assert not set(one.target.tolist()) & (set(words.special_ids) - {words.unknown_id})
    model, _ = network()
    assert first(model, 1) == first(model, 2)


@pytest.mark.parametrize("unit", ["segments", "sentences", "documents", "windows"])
def test_passages_are_cut_as_in_training(unit: str) -> None:
    _, words = network()
    recipe = replace(RECIPE, data=Data(max_length=12, unit=unit))  # type: ignore[arg-type]
    monitor = Monitor(recipe, words, TEXTS, tokens=60)
    lengths = [one.ids.shape[1] for one in monitor.passages]
    assert max(lengths) <= 12
    assert 60 - 10 <= sum(length - 2 for length in lengths) <= 60 + 10
    if unit == "windows":
        assert set(lengths) == {12}


@pytest.mark.parametrize("family", ["bert", "modernbert", "deberta-v2"])
def test_a_network_in_training_is_left_as_it_was(family: str) -> None:
    model, words = network(family)
    model.train()
    model.base_model.eval()  # a part that somebody froze
    inner = next(iter(model.base_model.children()))
    inner.train()
    flags = {name: module.training for name, module in model.named_modules()}
    before = {name: value.clone() for name, value in model.state_dict().items()}
    attention = model.config._attn_implementation
    state = torch.get_rng_state()
    Monitor(RECIPE, words, TEXTS[:3])(model)
    assert {name: module.training for name, module in model.named_modules()} == flags
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.config._attn_implementation == attention
    assert torch.equal(torch.get_rng_state(), state)
    assert all(parameter.requires_grad for parameter in model.parameters())
    model.train()
    loss = model(input_ids=torch.tensor([[5, 6, 7, 8]])).logits.square().mean()
    loss.backward()  # nothing was cached that cannot be trained
    assert all(not value.is_inference() for value in [*model.parameters(), *model.buffers()])


def test_dropout_does_not_reach_the_numbers() -> None:
    model, words = network()
    monitor = Monitor(RECIPE, words, TEXTS[:3])
    quiet = monitor(model.eval())
    assert monitor(model.train()) == quiet


def test_an_encoder_will_do_and_so_will_bfloat16() -> None:
    model, words = network("modernbert")
    monitor = Monitor(RECIPE, words, TEXTS[:3])
    precise = monitor(model)
    encoder = Encoder(
        model, mask_id=words.mask_id, pad_id=words.pad_id, special_ids=words.special_ids, ragged=False
    )  # fmt: skip
    assert monitor(encoder) == precise
    rough = monitor(model.to(torch.bfloat16))
    assert rough["heldout_loss"] == pytest.approx(precise["heldout_loss"], rel=0.05)


def test_minimal_pairs_of_files_and_globs(tmp_path: Path) -> None:
    model, words = network()
    for name in ("one", "two"):
        lines = [f"The cat sat {place}.\tThe cat sits {place}.\n" for place in ("here", "there", "on the mat")]
        (tmp_path / f"{name}.tsv").write_text("".join(["good\tbad\n", *lines]), encoding="utf-8")
    files = (str(tmp_path / "*.tsv"),)
    recipe = replace(RECIPE, evaluation=Evaluation(minimal_pairs=files, pairs_each=2))
    monitor = Monitor(recipe, words)
    assert len(monitor.pairs) == 4
    found = monitor(model)
    pairs = [one for name in ("one", "two") for one in read_pairs(tmp_path / f"{name}.tsv", 2)]
    assert found == {"minimal_pairs": minimal_pairs(besag.load((model, words.tokenizer)), pairs).accuracy}
    with pytest.raises(BesagError, match="no such file"):
        Monitor(replace(RECIPE, evaluation=Evaluation(minimal_pairs=("nowhere.tsv",))), words)
    with pytest.raises(BesagError, match="no file matches"):
        Monitor(replace(RECIPE, evaluation=Evaluation(minimal_pairs=("nowhere*.tsv",))), words)


def test_nothing_held_out_and_no_pairs_is_no_number() -> None:
    model, words = network()
    assert Monitor(RECIPE, words)(model) == {}
    assert Monitor(RECIPE, words, [""])(model) == {}


def test_a_compatible_network_has_no_deviation() -> None:
    """With its layers silenced, a network's answer depends on no other place: compatible, and without dependence."""
    model, words = network()
    with torch.no_grad():
        for parameter in model.bert.encoder.parameters():
            parameter.zero_()
    monitor = Monitor(RECIPE, words, TEXTS)
    found = monitor(model)
    assert found["rectangle_deviation"] == pytest.approx(0, abs=1e-4)
    assert found["rectangle_dependence"] == pytest.approx(0, abs=1e-4)
    assert found["mutual_information"] == pytest.approx(0, abs=1e-4)
