from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.training import a_run

from besag import models
from besag.errors import BesagError
from besag.train_model import evaluation_of
from besag.training.data.loader import StreamBatches
from besag.training.network import networks
from besag.training.objectives.relation import RelationMixture
from besag.training.run import train
from besag.training.run.build import build
from besag.training.run.checkpoint import Checkpoints
from besag.training.run.forecast import checkpoint_bytes
from besag.training.run.ranks import Ranks

CPU = torch.device("cpu")


def built(folder: Path, changes: dict[str, Any] | None = None) -> Any:
    return build(a_run.small(folder, changes), device=CPU)


def first_batch(made: Any) -> Any:
    return next(iter(made.loader(0, Ranks(), pin=False)))


def test_a_new_network_fits_its_tokenizer(tmp_path: Path) -> None:
    made = built(tmp_path / "out")
    config, tokenizer = made.model.config, made.vocabulary.tokenizer
    assert config.vocab_size == made.vocabulary.size == len(tokenizer)
    assert config.pad_token_id == tokenizer.pad_token_id
    assert config.cls_token_id == tokenizer.cls_token_id
    loss = made.objective(first_batch(made))
    mean = float(loss.total.detach() / first_batch(made).weight.sum())
    assert mean == pytest.approx(math.log(made.vocabulary.size), rel=0.05)  # nothing is learned yet


def test_rows_are_rounded_up_only_if_asked(tmp_path: Path) -> None:
    config = {**a_run.MODEL, "pad_to_multiple_of": 1000}
    made = built(tmp_path / "out", {"model": {"config": config}})
    assert made.model.config.vocab_size == 13000
    assert made.encoder.logits(torch.zeros(1, 16)).shape == (1, 13000)


def test_what_is_shown_can_be_drawn_for_whole_words(tmp_path: Path) -> None:
    shown = {"mask": 0.5, "keep": 0.5, "rate": 0.6, "law": "whole_word"}
    made = {per: built(tmp_path / "out", {"masking": {**shown, "per": per}}) for per in ("token", "word")}
    assert made["word"].masking.replacement.per == "word"
    torn = {}
    for per, one in made.items():
        batch, words = first_batch(one), one.batches.clean(0).word
        kept = (batch.inputs == batch.ids)[batch.asked].numpy()
        word = list(zip(batch.layout.row[batch.asked].tolist(), words[batch.asked.numpy()].tolist(), strict=True))
        ways = {key: {kind for kind, other in zip(kept.tolist(), word, strict=True) if other == key} for key in word}
        torn[per] = sum(len(way) == 2 for way in ways.values())
    assert torn["word"] == 0
    assert torn["token"] > 0  # there are words of several tokens


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "deberta-v2", "electra", "besag"])
def test_any_family(tmp_path: Path, family: str) -> None:
    config: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
    }
    if family == "distilbert":
        config = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 8}
    made = built(tmp_path / "out", {"model": {"family": family, "config": config}})
    loss = made.objective(first_batch(made))
    loss.total.backward()
    assert torch.isfinite(loss.total)


def test_weights_are_a_function_of_the_seed(tmp_path: Path) -> None:
    weights = []
    for seed, drawn in ((0, 1), (0, 2), (5, 1)):
        torch.manual_seed(drawn)
        made = built(tmp_path / "out", {"run": {"seed": seed}})
        weights.append(made.model.state_dict())
        assert torch.equal(torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(drawn)))
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not all(torch.equal(weights[0][name], weights[2][name]) for name in weights[0])


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"config": {"hiden_size": 16}}, "'hiden_size' is no setting of ModernBertConfig. Did you mean 'hidden_size'"),
        ({"family": "modernbart"}, "Did you mean 'modernbert'"),
        ({"family": "besga"}, "Did you mean 'besag'"),
        ({"family": "besag", "config": {"gated": True}}, "'gated' is no setting of BesagConfig. Did you mean 'gate'"),
        ({"family": "besag", "config": {"hidden_size": 18, "num_attention_heads": 2}}, "a multiple of 4 is needed"),
        ({"family": "besag", "config": {"gate": "no"}}, "Field 'gate' expected bool, got str"),
        ({"family": "gpt2"}, "no masked language model"),
        ({"config": {"hidden_size": 15, "num_attention_heads": 2}}, "makes no modernbert"),
        ({"config": {"hidden_size": "big"}}, "Field 'hidden_size' expected int, got str"),
        ({"config": {"num_attention_heads": 0}}, "makes no modernbert: integer modulo by zero"),
        ({"config": {**a_run.MODEL, "pad_to_multiple_of": 0}}, "pad_to_multiple_of = 0: a whole number, 1 or more"),
        ({"config": {**a_run.MODEL, "pad_to_multiple_of": "x"}}, "pad_to_multiple_of = 'x': a whole number"),
        ({"config": {**a_run.MODEL, "max_position_embeddings": 31}}, "max_length = 32, but the network has 31 places"),
        ({"config": {**a_run.MODEL, "vocab_size": 100}}, "the tokenizer has 12288 tokens and the network 100"),
    ],
)
def test_what_makes_no_network_is_refused(tmp_path: Path, model: dict[str, Any], said: str) -> None:
    recipe = a_run.small(tmp_path / "out")
    wrong = replace(recipe, model=replace(recipe.model, **model))
    with pytest.raises(BesagError) as problem:
        networks.network(wrong, built(tmp_path / "out").vocabulary)
    assert said in str(problem.value)


def test_a_shape_that_cannot_be_is_refused_before_a_tokenizer_is_trained(tmp_path: Path) -> None:
    base = a_run.small(tmp_path / "out", {"model": {"config": {**a_run.MODEL, "hidden_size": 15}}})
    with pytest.raises(BesagError, match="makes no modernbert"):
        build(replace(base, tokenizer=replace(base.tokenizer, path=None, size=300)), device=CPU)
    assert not (tmp_path / "out" / "tokenizer").exists()


def test_one_goes_on_from_another(tmp_path: Path) -> None:
    recipe = a_run.small(tmp_path / "out", {"model": {"config": {}}})
    table = {"start": str(models.path()), "config": {"norm_eps": 2e-5}}
    recipe = replace(recipe, model=replace(recipe.model, **table), tokenizer=replace(recipe.tokenizer, path=None))
    made = build(recipe, device=CPU)
    assert made.model.config.norm_eps == 2e-5
    batch = first_batch(made)
    made.model.eval()
    loss = float(made.objective(batch).total.detach() / batch.weight.sum())
    assert loss < 8.5  # of random words, which a trained model knows better than log 12,288 = 9.42


def test_a_tokenizer_is_trained_once_and_kept(tmp_path: Path) -> None:
    base = a_run.small(tmp_path / "out")
    recipe = replace(base, tokenizer=replace(base.tokenizer, path=None, size=300, kind="bpe"))
    made = build(recipe, device=CPU)
    assert made.vocabulary.size == made.model.config.vocab_size <= 300
    stamp = (tmp_path / "out" / "tokenizer" / "tokenizer.json").stat().st_mtime_ns
    build(recipe, device=CPU)
    assert (tmp_path / "out" / "tokenizer" / "tokenizer.json").stat().st_mtime_ns == stamp
    other = replace(recipe, tokenizer=replace(recipe.tokenizer, size=290))
    assert build(other, device=CPU, resume=True).vocabulary.size == made.vocabulary.size > 290  # it was trained with
    assert build(other, device=CPU).vocabulary.size == 290  # a second try, with another recipe
    text = a_run.corpus(tmp_path)
    text.write_text(text.read_text() + "Xylophones.\n")
    before = (tmp_path / "out" / "tokenizer" / "tokenizer.json").stat().st_mtime_ns
    build(other, device=CPU)
    assert (tmp_path / "out" / "tokenizer" / "tokenizer.json").stat().st_mtime_ns > before


def test_a_tokenizer_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    base = a_run.small(tmp_path / "out")
    (tmp_path / "out" / "tokenizer").mkdir(parents=True)
    (tmp_path / "out" / "tokenizer" / "tokenizer.json").write_text("{}")
    with pytest.raises(
        BesagError, match=r"tokenizer' is there already and not of this run: name it in tokenizer\.path"
    ):
        build(replace(base, tokenizer=replace(base.tokenizer, path=None, size=300)), device=CPU)
    assert (tmp_path / "out" / "tokenizer" / "tokenizer.json").read_text() == "{}"


def test_of_one_document_nothing_is_held_out(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("The old dog sees the young cat. " * 20)
    base = a_run.small(tmp_path / "out")
    recipe = replace(base, data=replace(base.data, train=(str(tmp_path / "one.txt"),)))
    with pytest.warns(UserWarning, match="nothing is held out to evaluate on: a share of 0.05"):
        made = build(recipe, device=CPU)
    assert made.valid is None
    assert made.train is not None
    assert len(made.train.documents) == 2


def test_a_stream_needs_no_cache_and_statistics_need_one(tmp_path: Path) -> None:
    made = built(tmp_path / "out", {"data": {"stream": True}})
    assert isinstance(made.batches, StreamBatches)
    assert made.train is None
    assert len(first_batch(made).ids) > 100
    with pytest.raises(BesagError, match=r"data\.stream = true"):
        built(tmp_path / "other", {"data": {"stream": True}, "masking": {"law": "frequency"}})


def test_contexts_are_built_of_rows_that_say_them(tmp_path: Path) -> None:
    """A tokenizer that knows headers, batches of pairs, the relation beside the loss, and held-out text made alike."""
    rows = [
        {"text": f"The {a_run.WORDS[number % 7]} sees the cat.", "day": number, "id": number, "links": [number ^ 1]}
        for number in range(40)
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {"train": [str(file)], "valid": [str(file)], "header": "day {day}:", "links": "links", "context": "pairs"}
    made = built(tmp_path / "out", {"data": data, "evaluation": {"sentences": 5}})
    assert isinstance(made.objective, RelationMixture)
    batch = first_batch(made)
    text = made.vocabulary.tokenizer.decode(batch.ids[batch.layout.row == 0])
    assert text.count("day") == 2
    assert torch.isfinite(made.objective(batch).total)
    monitor = evaluation_of(made)
    shown = made.vocabulary.tokenizer.decode(monitor.passages[0].ids[0].tolist())
    assert shown.count("[SEP]") == 2
    plain = built(tmp_path / "out", {"data": {**data, "partners": ["linked"]}})
    assert not isinstance(plain.objective, RelationMixture)  # of one kind there is nothing to tell


def test_pure_bfloat16_rounds_weights_and_nothing_else(tmp_path: Path) -> None:
    recipe = a_run.small(tmp_path / "out", {"run": {"precision": "bfloat16-pure"}})
    module = torch.nn.BatchNorm1d(3)
    networks.round_weights(module)
    assert module.weight.dtype == torch.bfloat16
    assert module.running_mean is not None
    assert module.running_mean.dtype == torch.float32
    assert recipe.run.precision == "bfloat16-pure"


def test_a_network_is_plain_while_it_is_looked_at(tmp_path: Path) -> None:
    made = built(tmp_path / "out")
    made.model.train()
    with made.plain():
        assert not made.model.training
    assert made.model.training


def test_a_resumed_run_has_its_batches_whatever_the_device_would_choose(tmp_path: Path) -> None:
    """Begun on a GPU, where nothing is padded, and gone on with here."""
    recipe = a_run.small(tmp_path / "out")
    assert build(recipe, device=CPU).lengths == "bucketed"
    elsewhere = build(recipe, device=CPU, resume=True, lengths="unpadded")
    assert elsewhere.lengths == "unpadded"
    asked = build(replace(recipe, data=replace(recipe.data, lengths="unpadded")), device=CPU)
    for index in (0, 5):
        one, other = (made.batches.plan.batch(index) for made in (elsewhere, asked))  # type: ignore[union-attr]
        assert all(np.array_equal(part, same) for part, same in zip(one, other, strict=True))


@pytest.mark.parametrize("state", ["float32", "16-bit"])
@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_the_size_of_a_checkpoint_is_foretold(tmp_path: Path, state: str, ema: float) -> None:
    run = {"checkpoint_state": state, "ema": ema}
    recipe = a_run.small(tmp_path / "out", {"optimizer": {"name": "muon"}, "schedule": {"steps": 1}, "run": run})
    train(recipe, quiet=True)
    found = Checkpoints(tmp_path / "out" / "checkpoints").newest()
    assert found is not None
    size = sum(about["bytes"] for name, about in found.meta["files"].items() if name != "state.json")
    assert checkpoint_bytes(build(recipe, device=CPU, resume=True)) == pytest.approx(
        size, rel=0.1
    )  # rows are short here
