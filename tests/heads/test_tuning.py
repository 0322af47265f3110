"""A head from its recipe to a folder: it learns what can be learned, says what it got right, and loads elsewhere."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from tests.heads import tasks

import besag
from besag.errors import BesagError
from besag.heads import card, tuning
from besag.heads.network import headed
from besag.heads.recipe import HeadRecipe, Task, recipe_of
from besag.heads.tuning import train_head

QUICK = {"epochs": 6, "batch": 16, "lr": 3e-3, "head_lr": 3e-3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("heads")


@pytest.fixture(scope="module")
def masked(folder):
    return tasks.start(folder / "masked")


@pytest.fixture(scope="module")
def classifier(folder, masked):
    task = {"train": tasks.texts(folder / "train.tsv"), "valid": tasks.texts(folder / "valid.tsv", 60, seed=1)}
    recipe = {"task": {**task, "max_length": 32}, "model": {"start": masked}, "tuning": {**QUICK, "masked": True}}
    lines = []
    return train_head(recipe, output=folder / "classifier", tell=lines.append), lines


@pytest.fixture(scope="module")
def tagger(folder, masked):
    task = {
        "kind": "tag", "train": tasks.tags(folder / "train.jsonl"), "text": "words", "label": "tags", "max_length": 32,
        "held_out": 0.3,
    }  # fmt: skip
    return train_head({"task": task, "model": {"start": masked}, "tuning": QUICK}, output=folder / "tagger")


def test_a_classifier_learns_a_word_and_says_how_well(classifier):
    result, lines = classifier
    assert result.metrics["accuracy"] > 0.95 > 0.65 > result.metrics["usual_accuracy"]
    assert result.metrics["macro_f1"] > 0.95
    assert 0.55 < result.metrics["masked_accuracy"] < result.metrics["accuracy"]  # what is hidden cannot be read
    assert len(lines) == QUICK["epochs"]
    assert "accuracy" in lines[-1]


def test_the_card_has_the_figures_and_the_recipe(classifier):
    result, _ = classifier
    card = (result.model / "README.md").read_text(encoding="utf-8")
    assert f"| accuracy | {result.metrics['accuracy']:.4f} |" in card
    assert "60 examples" in card
    assert "cat, dogs" in card
    again = recipe_of(result.model / "recipe.toml", output="x")
    assert (again.tuning.masked, again.tuning.epochs, again.task.train[-9:]) == (True, 6, "train.tsv")
    assert str(result.model.parent) not in card + (result.model / "recipe.toml").read_text(encoding="utf-8")


NAMES = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


@given(NAMES, NAMES, NAMES)
@example('a "b"', "c\\d\ne", "\x7f\t")
def test_the_recipe_of_a_card_is_toml_whatever_the_names_are(column, label, file):
    recipe = HeadRecipe(task=Task(train=f"x{file}", text=column, label=label))
    read = tomllib.loads(card._toml(recipe))
    assert (read["task"]["text"], read["task"]["label"]) == (column, label)
    assert read["task"]["train"] == Path(f"x{file}").name


def test_transformers_loads_it_and_says_the_same(classifier):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    result, _ = classifier
    text = "the cat on a mat"
    [said] = besag.load_head(result.model, device="cpu").predict([text])
    network = AutoModelForSequenceClassification.from_pretrained(result.model).eval()
    tokens = AutoTokenizer.from_pretrained(result.model)(text, return_tensors="pt")
    with torch.no_grad():
        probs = torch.softmax(network(**tokens).logits[0], -1)
    assert network.config.id2label[int(probs.argmax())] == said.label == "cat"
    assert said.prob == pytest.approx(float(probs.max()), abs=1e-5)


@pytest.mark.parametrize("hides", [True, False])
def test_masked_tuning_hides_any_share_of_half_of_the_examples(masked, tmp_path, monkeypatch, hides):
    task = {
        "train": tasks.texts(tmp_path / "t.tsv", 200),
        "valid": tasks.texts(tmp_path / "v.tsv", 2),
        "max_length": 32,
    }
    shown, plain = [], tuning.Batch.of
    monkeypatch.setattr(tuning.Batch, "of", lambda ids, *rest: shown.extend(ids) or plain(ids, *rest))
    monkeypatch.setattr(tuning._Work, "measure", lambda self: {"accuracy": 0.0})
    recipe = {"task": task, "model": {"start": masked}, "tuning": {"epochs": 2, "masked": hides}}
    train_head(recipe, output=tmp_path / "head")
    words = besag.load(masked, device="cpu", progress=False).vocabulary
    shares = np.array([(own == words.mask_id).sum() / (len(own) - 2) for own in shown])
    assert len(shares) == 400
    assert {(own[0], own[-1]) for own in shown} == {(words.tokenizer.cls_token_id, words.tokenizer.sep_token_id)}
    if not hides:
        assert (shares == 0).all()
        return
    assert 0.3 < (shares > 0).mean() < 0.55  # on a coin's toss; a small share may hide nothing
    assert 0.4 < shares[shares > 0].mean() < 0.75
    assert (shares > 0.9).any()
    assert ((shares > 0) & (shares < 0.3)).any()


def test_an_explanation_finds_the_word_that_decides(classifier, masked):
    result, _ = classifier
    head = besag.load_head(result.model, device="cpu")
    lm = besag.load(masked, device="cpu", progress=False)
    for method in ("mask", "delete", "marginalise"):
        found = lm.explain("the cat on a mat", classifier=head, method=method, curve=True, orders=4)
        assert found.top(1)[0].text == "cat", method
        assert found.curve.relative > 0, method


def test_a_tagger_learns_which_words_are_animals(tagger):
    assert tagger.metrics["span_f1"] > 0.95
    assert tagger.metrics["accuracy"] > 0.95 > tagger.metrics["usual_accuracy"]
    head = besag.load_head(tagger.model, device="cpu")
    [said] = head.predict(["the traveller cat on casino dogs"])
    assert [one.text for one in said] == ["the", "traveller", "cat", "on", "casino", "dogs"]
    assert [one.label for one in said] == ["O", "O", "B-ANIMAL", "O", "O", "B-ANIMAL"]
    assert all(one.prob > 0.5 for one in said)


def test_the_same_seed_is_the_same_head(folder, masked):
    task = {"train": tasks.texts(folder / "few.tsv", 24), "held_out": 0.3, "max_length": 32}
    recipe = {"task": task, "model": {"start": masked}, "tuning": {"epochs": 1, "batch": 8, "masked": True}}
    one, other, third = (
        train_head(recipe, {"run.seed": seed}, output=folder / f"s{n}") for n, seed in enumerate((1, 1, 2))
    )
    heads = [besag.load_head(result.model, device="cpu") for result in (one, other, third)]
    probs = [head.predict(["the cat"])[0].probs for head in heads]
    assert probs[0] == pytest.approx(probs[1], abs=1e-6)
    assert not np.allclose(probs[0], probs[2], atol=1e-6)


@pytest.mark.parametrize("family", ["roberta", "modernbert", "besag", "distilbert"])
@pytest.mark.parametrize("kind", ["classify", "tag"])
def test_the_body_is_that_of_the_masked_network(tmp_path, family, kind):
    start = tasks.start(tmp_path / "start", family)
    network, _ = headed(start, kind, ["a", "b"], seed=0)
    masked = besag.load(start, device="cpu", dtype="float32", progress=False).model
    body = f"{network.base_model_prefix}."
    own = {key: weight for key, weight in network.state_dict().items() if key.startswith(body) and "pooler" not in key}
    assert own
    for key, weight in own.items():
        assert torch.equal(weight, masked.state_dict()[key]), key
    again, _ = headed(start, kind, ["a", "b"], seed=0)
    assert all(torch.equal(one, other) for one, other in zip(network.parameters(), again.parameters(), strict=True))
    logits = network(input_ids=torch.tensor([[5, 6, 7]]), attention_mask=torch.ones(1, 3, dtype=torch.long)).logits
    assert logits.shape == ((1, 2) if kind == "classify" else (1, 3, 2))


@pytest.mark.parametrize(("frozen", "decay"), [(0, 0.5), (1, 1.0), (2, 1.0)])
def test_what_is_frozen_stays_and_lower_layers_learn_more_slowly(folder, masked, frozen, decay):
    task = {"train": tasks.texts(folder / "some.tsv", 24), "held_out": 0.3, "max_length": 32}
    recipe = {"task": task, "model": {"start": masked}, "tuning": {"epochs": 1, "batch": 8, "weight_decay": 0.0}}
    changes = {"tuning.frozen": frozen, "tuning.layer_decay": decay, "tuning.smoothing": 0.1}
    tuned = besag.load_head(
        train_head(recipe, changes, output=folder / "frozen").model, device="cpu"
    ).model.state_dict()
    before = besag.load(masked, device="cpu", progress=False).model.state_dict()

    def moved(layer):
        own = [key for key in tuned if f"layer.{layer}." in key and key.endswith("dense.weight")]
        return max(float((tuned[key] - before[key]).abs().max()) for key in own)

    assert (moved(0) == 0) == (frozen >= 1)
    assert (moved(1) == 0) == (frozen >= 2)
    table = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(tuned[table], before[table]) == (frozen >= 1)
    if decay == 0.5:
        assert moved(0) == pytest.approx(0.5 * moved(1), rel=0.2)  # Adam's first steps are of the size of the rate


# ---- recipes


def test_a_recipe_is_read_strictly(tmp_path):
    file = tmp_path / "recipe.toml"
    file.write_text('[task]\ntrain = "labelled.tsv"\n[tuning]\nepochs = 2\n', encoding="utf-8")
    found = recipe_of(file, ["tuning.lr=0.01"])
    assert (found.tuning.epochs, found.tuning.lr, found.run.output) == (2, 0.01, str(tmp_path / "head"))
    assert found.task.train == str(tmp_path / "labelled.tsv")
    assert recipe_of(found) == found
    cases = {
        "Did you mean 'epochs'": {"tuning": {"epoch": 2}, "task": {"train": "x"}},
        "tuning.epochs = 0": {"tuning": {"epochs": 0}, "task": {"train": "x"}},
        "'classify', 'tag'": {"task": {"train": "x", "kind": "sort"}},
        "task.train names no file": {},
        "There are: task, model, tuning, run": {"tasks": {}},
    }
    for said, table in cases.items():
        with pytest.raises(BesagError) as refused:
            recipe_of(table)
        assert said in str(refused.value)
    with pytest.raises(BesagError, match="is no recipe of a head"):
        recipe_of(3)
    assert isinstance(recipe_of({"task": {"train": "x"}}), HeadRecipe)


def test_what_cannot_be_tuned_is_refused_and_nothing_is_written(folder, masked, tmp_path):
    task = {"train": tasks.texts(tmp_path / "t.tsv", 20), "max_length": 32, "held_out": 0.3}
    cases = {
        "places: shorten": {"task": {**task, "max_length": 4000}, "model": {"start": masked}},
        "there is no folder": {"task": task, "model": {"start": "/no/such/folder"}},
        "has no 'labels'": {"task": {**task, "label": "labels"}, "model": {"start": masked}},
    }
    for said, recipe in cases.items():
        with pytest.raises(BesagError) as refused:
            train_head(recipe, output=tmp_path / "head")
        assert said in str(refused.value)
    assert not (tmp_path / "head").exists()


def test_a_loss_that_is_no_number_ends_it(masked, tmp_path, monkeypatch):
    monkeypatch.setattr(tuning.F, "cross_entropy", lambda logits, target, **_: logits.sum() * float("nan"))
    task = {"train": tasks.texts(tmp_path / "t.tsv", 40), "max_length": 32}
    with pytest.raises(BesagError, match=r"in reading 1: try a smaller tuning\.lr"):
        train_head({"task": task, "model": {"start": masked}}, output=tmp_path / "head")
    assert not (tmp_path / "head").exists()
