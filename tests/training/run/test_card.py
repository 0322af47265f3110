"""The card says what the recipe and the run say, and nothing else."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
import yaml

from besag import models
from besag.training.recipe import Adapt, Card, Data, Masking, Model, Objective, Recipe, Run, Schedule, Tokenizer, read
from besag.training.run import card
from besag.training.run.card import Facts, Source

FACTS = Facts(
    architecture="ModernBertForMaskedLM",
    parameters=18_055_424,
    vocabulary=8192,
    tokenizer_sha256="ab12",
    sources=[Source("books.txt", 12, 3456, "cd34"), Source("news.txt")],
    train_tokens=3456,
    steps=1000,
    tokens=16_384_000,
    seconds=1234.5,
    epochs=4.74,
    hardware="NVIDIA H200",
    command="besag train tiny.toml",
    metrics={"step": 1000, "loss": 2.34567, "heldout_loss": 2.1, "minimal_pairs": 0.8123, "broken": math.nan},
)


def recipe(**parts: object) -> Recipe:
    return Recipe(**{"schedule": Schedule(minutes=20), "run": Run(output="runs/tiny"), **parts})


def head(text: str) -> dict[str, object]:
    return yaml.safe_load(text.split("---\n")[1])


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d[\d,.]*\d|\d", text))


def test_the_head_is_yaml_that_the_hub_reads():
    found = head(card.text(recipe(card=Card(license="apache-2.0", language=("no", "en"))), FACTS))
    assert found == {
        "license": "apache-2.0",
        "language": ["no", "en"],  # not False
        "library_name": "transformers",
        "pipeline_tag": "fill-mask",
        "tags": ["masked-lm", "besag"],
    }
    assert head(card.text(recipe(model=Model(start="some/name")), FACTS))["base_model"] == "some/name"
    for name in models.NAMES:
        said = card.text(recipe(model=Model(start=name)), FACTS)
        assert "base_model" not in head(said)  # no name of the hub
        assert f"begun from `{models.EMBEDDED}`" in said


def test_everything_that_is_known_is_said():
    text = card.text(recipe(card=Card(name="Tiny", about="A small one.", limits=("No Latin.",))), FACTS, "curves.png")
    for said in (
        "# Tiny", "A small one.", "- No Latin.", "`ModernBertForMaskedLM`, 18,055,424 parameters",
        "- training: `books.txt`, 12 documents, 3,456 tokens, sha256 `cd34`", "- training: `news.txt`\n",
        "tokenizer of 8,192 tokens: unigram, cased, trained on the training data, sha256 `ab12`",
        "planned: 20 minutes", "done: 1,000 steps, 16,384,000 tokens read, 4.7 passes over the data, 20:34 of training",
        "hardware: NVIDIA H200", "command: `besag train tiny.toml`",
        "| minimal pairs won, mean over paradigms | 0.8123 |",
        "| held-out masked loss (nats a token) | 2.1 |",
        "| training loss at the end (nats a predicted token) | 2.346 |",
        "![The curves of the run](curves.png)", "No licence is stated.",
    ):  # fmt: skip
        assert said in text, said
    assert "broken" not in text
    assert "| step |" not in text


def test_what_is_not_known_is_not_said():
    text = card.text(recipe(), Facts())
    body = text.split("---\n")[2]
    assert numbers(body) <= {"20", "128", "0.002", "0.3", "100", "0.0005", "0.01", "3", "0"}  # the recipe's own
    assert "# tiny\n" in body
    for word in ("hardware", "sha256", "done:", "None", "nan", "Figures", "curves", "command:"):
        assert word not in body, word


def test_whether_the_law_tilts_is_said():
    assert "the conditionals are not tilted" in card.text(recipe(), FACTS)
    law = Masking(law="frequency", options={"alpha": 0.5})
    tilted = card.text(recipe(masking=law), Facts(tilted=True, tilt_file="t.x", tilt_rate=0.25))
    assert "law of masks: `frequency` (alpha = 0.5)" in tilted
    assert "p(v | context) · π(v) / Z" in tilted
    assert "the conditionals are tilted: the law `frequency` looks" in tilted
    assert "at a rate of 0.25 (log π is in `t.x`). `besag.load(folder, untilt=True)`" in tilted
    assert "are not tilted" not in tilted


def test_what_cannot_be_scored_says_so():
    scored = card.text(recipe(), FACTS)
    assert "`besag score" in scored
    assert "cannot be scored" not in scored
    encoder = card.text(recipe(objective=Objective("mae")), Facts(purpose="encode"))
    assert "**It cannot be scored.** The objective `mae`" in encoder
    assert "besag score" not in encoder
    assert head(encoder)["pipeline_tag"] == "feature-extraction"
    assert head(encoder)["tags"] == ["besag"]
    blocks = card.text(recipe(objective=Objective("block_diffusion")), Facts(purpose="blocks"))
    assert "a place sees its own block and those before it" in blocks
    assert (head(blocks)["pipeline_tag"], head(blocks)["library_name"]) == ("text-generation", "besag")


def test_a_law_that_was_not_used_is_not_described():
    text = card.text(recipe(objective=Objective("mdlm")), Facts(masks=False))
    assert "were not used" in text
    assert "objective: `mdlm`" in text
    assert "law of masks: `" not in text
    assert "tilted" not in text


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"masking": Masking(rate=0.3, rate_law="cosine", end_rate=0.15)}, "0.3 to 0.15, moving along a cosine"),
        ({"masking": Masking(rate_law="uniform")}, "drawn for each sequence, uniform in (0, 1)"),
        ({"masking": Masking(rate_law="beta")}, "drawn for each sequence from a Beta distribution"),
        ({"masking": Masking(mask=0.8, random=0.1, keep=0.1)}, "mask (80%), a random token (10%), themselves (10%)"),
        ({"masking": Masking(predict=0.5, copies=2)}, "50% of the hidden tokens were predicted"),
        ({"objective": Objective("compatible", {"weight": 0.1})}, "objective: `compatible` (weight = 0.1)"),
        ({"adapt": Adapt("lora", rank=4)}, "adapted by LoRA of rank 4, alpha 16, added into the weights"),
        ({"adapt": Adapt("lora", keep="apart")}, "adapted by LoRA of rank 8, alpha 16, kept apart from the weights"),
        ({"adapt": Adapt("bottleneck", rank=4)}, "adapted by a bottleneck of 4 numbers after each layer, kept apart"),
        ({"adapt": Adapt("bitfit")}, "only bias terms were trained"),
        ({"adapt": Adapt(task="t.tsv")}, "mixed with a classification task, by its share of the texts"),
        ({"adapt": Adapt(task="t.tsv", task_weight=0.5)}, "mixed with a classification task, weight 0.5"),
        ({"tokenizer": Tokenizer(path="hub/words")}, "that of `hub/words`"),
        ({"schedule": Schedule(tokens=10**9)}, "planned: 1,000,000,000 tokens"),
        ({"run": Run(ema=0.999)}, "a moving average, decay 0.999"),
        ({"data": Data(unit="windows", max_length=64)}, "windows within a document of at most 64 tokens"),
    ],
)  # fmt: skip
def test_what_a_recipe_sets_is_said(parts, said):
    assert said in card.text(recipe(**parts), FACTS)


def test_no_folder_of_this_machine_is_told(tmp_path, monkeypatch):
    start = tmp_path / "start"
    start.mkdir()
    text = card.text(recipe(model=Model(start=str(start))), FACTS)
    assert "begun from `start`" in text
    assert str(tmp_path) not in text


def test_a_card_is_written_with_its_recipe_and_picture(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("runs/tiny/model")
    folder.mkdir(parents=True)
    Path("runs/tiny/curves.png").write_bytes(b"picture")
    (tmp_path / "a.txt").touch()
    said = recipe(data=Data(train=("a.txt",)))
    path = card.write(folder, said, FACTS, curves="runs/tiny/curves.png")
    assert path == folder / "README.md"
    assert (folder / "curves.png").read_bytes() == b"picture"
    assert "(curves.png)" in path.read_text(encoding="utf-8")
    again = read(folder / "recipe.toml")
    assert (again.data.train, again.run.output) == (("a.txt",), "runs/tiny")
    assert "(curves.png)" not in card.write(folder, said, FACTS, curves="missing.png").read_text(encoding="utf-8")


def test_hardware_has_words():
    assert re.fullmatch(r"CPU \(\w+\), \d+ threads?", card.hardware_words("cpu"))
    assert card.hardware_words("cpu", 2).startswith("2 × CPU")
