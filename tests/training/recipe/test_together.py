"""What would be done in vain is refused, and says what would be right."""

from __future__ import annotations

import re

import pytest

from besag.errors import BesagError
from besag.training import recipe as recipes
from besag.training.recipe.values import as_table, flat

BASE = {"data": {"train": ["a.jsonl"]}, "schedule": {"steps": 1}}
TAGS = {"data.tags": "pos", "masking.law": "content"}
PARALLEL = {"data.train": [], "data.source": ["a.de"], "data.target": ["a.en"], "model.family": "bart"}

BOTTLENECK = {"model.start": "small-en", "adapt.method": "bottleneck"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data.tags": "pos"}, "data.tags = 'pos' is for the law 'content', and masking.law = 'uniform' reads no tags"),
        (
            {**TAGS, "masking.options": {"classes": "a.tsv"}},
            "data.tags = 'pos' and masking.options.classes = 'a.tsv' both say which class a word is of",
        ),
        ({**TAGS, "data.stream": True}, "data.tags = 'pos' with data.stream = true"),
        ({**TAGS, "objective.name": "mdlm"}, "but the objective 'mdlm' hides tokens in its own way"),
        ({"data.swap": "gender", "data.spans": "names"}, "data.spans = 'names' says where things stand"),
        ({"data.swap": "gender", **TAGS}, "data.tags = 'pos' says where things stand"),
        ({**PARALLEL, "data.swap": "gender", "model.decoder": "masked"}, "data.swap does not go with pairs"),
        ({"model.subtokens": 3, "adapt.method": "bitfit"}, "which adapt.method = 'bitfit' does not train"),
        ({**PARALLEL, "model.subtokens": 3, "model.decoder": "masked"}, "which an encoder and its decoder share"),
        ({**BOTTLENECK, "adapt.keep": "merged"}, "what stands after a layer bends, so it is in no matrix"),
        ({"adapt.method": "bottleneck"}, "writes an adapter of a trained network: name it in model.start"),
        ({"adapt.method": "bitfit", "adapt.keep": "apart"}, "kept apart are the adapters of 'lora' and 'bottleneck'"),
        ({**BOTTLENECK, "run.weights": "int8"}, "and run.weights = 'int8' makes something else"),
        ({**BOTTLENECK, "model.config": {"hidden_dropout_prob": 0.1}}, "and [model.config] makes something else"),
        ({**BOTTLENECK, "adapt.task": "t.tsv"}, "and adapt.task makes something else"),
        ({**BOTTLENECK, "objective.name": "electra"}, "and objective.name = 'electra' makes something else"),
        ({**BOTTLENECK, "objective.name": "block_diffusion"}, "and objective.name = 'block_diffusion' makes something"),
        ({"run.models_every": 5, "model.subtokens": 3}, "run.models_every = 5 with model.subtokens = 3, which is put"),
        ({"run.models_every": 5, "adapt.method": "lora"}, "adapt.method = 'lora', which is put into the weights when"),
        ({"schedule.ramp": 0.5}, "lets a step grow from one batch to run.accumulate of them, and that is 1"),
    ],
)
def test_what_would_be_in_vain_is_refused(changes, said):
    with pytest.raises(BesagError, match=re.escape(said)):
        recipes.recipe_of(BASE, changes)


@pytest.mark.parametrize(
    "changes",
    [
        TAGS,
        {"data.swap": "gender", "masking.law": "entities"},
        {"model.subtokens": 3},
        {"schedule.ramp": 0.5, "run.accumulate": 2},
        {**BOTTLENECK, "adapt.keep": "apart"},
        {**BOTTLENECK, "run.models_every": 5},
    ],
    ids=lambda one: min(one),
)
def test_what_makes_sense_is_taken_as_it_is_said(changes):
    found = flat(as_table(recipes.recipe_of(BASE, changes)))
    usual = flat(as_table(recipes.recipe_of(BASE)))
    assert {key: value for key, value in found.items() if value != usual[key]} == changes


def test_a_table_of_words_lies_beside_its_recipe_and_a_name_stays_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "own.tsv").write_text("one\tother\nhe\tshe\n", encoding="utf-8")
    for name, meant in (("own.tsv", "recipes/own.tsv"), ("gender", "gender")):
        said = f"[data]\ntrain = ['a.txt']\nswap = '{name}'\n[schedule]\nsteps = 1\n"
        (tmp_path / "recipes" / "a.toml").write_text(said, encoding="utf-8")
        assert recipes.read("recipes/a.toml").data.swap == meant
