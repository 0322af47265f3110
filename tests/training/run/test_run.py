from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tests.training import a_run
from tests.training.run.test_checkpoint import small_disk

import besag
from besag.conditionals.tilt import load_tilt
from besag.errors import BesagError
from besag.training.run import TrainingResult, logs, train
from besag.training.run.build import build
from besag.training.run.checkpoint import Checkpoints


def run(folder: Path, changes: dict[str, Any] | None = None, **how: Any) -> TrainingResult:
    return train(a_run.small(folder, changes), quiet=True, **how)


def test_a_run_leaves_a_model_that_can_be_used(tmp_path: Path) -> None:
    result = run(tmp_path / "out", command="besag train recipe.toml")
    assert result.finished
    assert result.step == 8
    names = {path.name for path in (tmp_path / "out" / "model").iterdir()}
    assert names >= {"config.json", "model.safetensors", "tokenizer.json", "README.md", "recipe.toml"}
    assert "besag train recipe.toml" in (tmp_path / "out" / "model" / "README.md").read_text()
    assert "besag_ragged" not in (tmp_path / "out" / "model" / "config.json").read_text()
    rows = logs.read(tmp_path / "out")
    assert [row["step"] for row in rows] == list(range(1, 9))
    assert rows[-1]["loss"] < rows[0]["loss"] - 0.1
    assert result.metrics["loss"] == rows[-1]["loss"]
    assert result.metrics["rate"] == pytest.approx(0.3)
    lm = besag.load(tmp_path / "out" / "model", device="cpu")
    assert np.isfinite(lm.score("The dog sees the cat.").total)


def test_the_same_recipe_gives_the_same_bits_whatever_was_drawn_before(tmp_path: Path) -> None:
    for number, name in enumerate(("one", "two")):
        torch.manual_seed(number)
        run(tmp_path / name, {"schedule": {"steps": 2}})
    one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("one", "two"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    run(tmp_path / "three", {"schedule": {"steps": 2}, "run": {"seed": 1}})
    three = load_file(tmp_path / "three" / "model" / "model.safetensors")
    assert not all(torch.equal(one[name], three[name]) for name in one)


@pytest.mark.slow
def test_workers_change_nothing(tmp_path: Path) -> None:
    for name, workers in (("one", 0), ("two", 2)):
        run(tmp_path / name, {"schedule": {"steps": 4}, "run": {"workers": workers}})
    one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("one", "two"))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_folder_that_holds_a_run_is_left_alone(tmp_path: Path) -> None:
    run(tmp_path / "out", {"schedule": {"steps": 1}})
    before = (tmp_path / "out" / "log.jsonl").read_text()
    with pytest.raises(BesagError, match="holds a run already"):
        run(tmp_path / "out", {"schedule": {"steps": 1}})
    with pytest.raises(BesagError, match=r"masking\.rate is 0\.5, and was 0\.3"):
        run(tmp_path / "out", {"schedule": {"steps": 1}, "masking": {"rate": 0.5}}, resume=True)
    assert (tmp_path / "out" / "log.jsonl").read_text() == before
    again = run(tmp_path / "out", {"schedule": {"steps": 1}}, resume=True)  # nothing left to do
    assert again.finished
    assert (tmp_path / "out" / "log.jsonl").read_text() == before


def test_other_text_or_other_steps_are_refused(tmp_path: Path) -> None:
    run(tmp_path / "out", {"schedule": {"steps": 1}})
    longer = {"schedule": {"steps": 2}}
    with pytest.raises(BesagError, match="a step had 1 batches"):
        run(tmp_path / "out", {**longer, "run": {"accumulate": 2}}, resume=True)
    text = a_run.corpus(tmp_path)
    text.write_text(text.read_text() + "One more sentence.\n")
    with pytest.raises(BesagError, match="is not what it was"):
        run(tmp_path / "out", longer, resume=True)


def test_stopped_it_can_be_resumed_and_prolonged(tmp_path: Path) -> None:
    asked = iter(range(99))
    stopped = run(tmp_path / "out", stop=lambda: next(asked) >= 3)
    assert not stopped.finished
    assert stopped.step == 4
    assert not (tmp_path / "out" / "model").exists()
    assert run(tmp_path / "out", resume=True).step == 8
    assert run(tmp_path / "out", {"schedule": {"steps": 10}}, resume=True).step == 10
    assert [row["step"] for row in logs.read(tmp_path / "out")] == list(range(1, 11))


def test_a_monitor_sees_averaged_weights_in_rest_and_disturbs_nothing(tmp_path: Path) -> None:
    seen: list[tuple[int, bool]] = []

    def monitor(built: Any) -> Any:
        def evaluate(model: Any, step: int) -> dict[str, float]:
            torch.rand(7)
            seen.append((step, model.training))
            return {"norm": float(torch.linalg.vector_norm(model.get_input_embeddings().weight))}

        return evaluate

    changes = {"evaluation": {"every": 3}, "run": {"ema": 0.5}}
    watched = run(tmp_path / "watched", changes, monitor=monitor)
    run(tmp_path / "alone", changes)
    assert seen == [(3, False), (6, False), (8, False)]
    one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("watched", "alone"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    table = next(value for name, value in one.items() if "tok_embeddings" in name or "word_embeddings" in name)
    assert watched.metrics["norm"] == pytest.approx(float(torch.linalg.vector_norm(table)), rel=1e-6)
    assert [row["step"] for row in logs.read(tmp_path / "watched") if "norm" in row] == [3, 6, 8]


def test_models_on_the_way_say_what_was_said_then_and_disturb_nothing(tmp_path: Path) -> None:
    said: dict[int, float] = {}

    def watch(built: Any) -> Any:
        def look(model: Any, step: int) -> dict[str, float]:
            said[step] = besag.load((model, built.vocabulary.tokenizer)).score(TEXT).total
            return {"score": said[step]}

        return look

    changes: dict[str, Any] = {"run": {"ema": 0.5}, "evaluation": {"every": 3}}
    run(tmp_path / "out", {**changes, "run": {"ema": 0.5, "models_every": 3}}, monitor=watch)
    models = sorted((tmp_path / "out" / "models").iterdir())
    assert [path.name for path in models] == ["step-00000003", "step-00000006"]
    for path, step in zip(models, (3, 6), strict=True):
        assert besag.load(path, device="cpu").score(TEXT).total == pytest.approx(said[step], abs=1e-6)
        assert f"done: {step} steps" in (path / "README.md").read_text()
    assert abs(said[3] - said[6]) > 1e-3
    run(tmp_path / "alone", changes)
    one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("out", "alone"))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_averages_are_what_is_saved(tmp_path: Path) -> None:
    run(tmp_path / "out", {"run": {"ema": 0.9}})
    found = Checkpoints(tmp_path / "out" / "checkpoints").newest()
    assert found is not None
    state = found.read()
    saved = load_file(tmp_path / "out" / "model" / "model.safetensors")
    name = "model.layers.1.mlp.Wi.weight"
    assert torch.equal(saved[name], state["averaging"][name])
    assert not torch.equal(saved[name], state["objective"][f"encoder.model.{name}"])


def test_a_share_of_what_it_began_from_is_saved(tmp_path: Path) -> None:
    run(tmp_path / "start", {"schedule": {"steps": 2}})
    start = {"model": {"start": str(tmp_path / "start" / "model")}, "schedule": {"steps": 3}}
    for name, share in (("trained", 0.0), ("between", 0.25)):
        run(tmp_path / name, {**start, "run": {"start_share": share}})
    began, trained, between = (
        load_file(tmp_path / name / "model" / "model.safetensors") for name in ("start", "trained", "between")
    )
    for name, part in between.items():
        torch.testing.assert_close(part, torch.lerp(trained[name], began[name], 0.25))
    assert not torch.equal(trained["model.layers.1.mlp.Wi.weight"], began["model.layers.1.mlp.Wi.weight"])
    assert "0.25 of those that it went on from" in (tmp_path / "between" / "model" / "README.md").read_text()


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_leaves_its_checkpoint(tmp_path: Path) -> None:
    run(tmp_path / "out", {"schedule": {"steps": 3}})
    with small_disk(100_000), pytest.raises(BesagError, match=r"step 6 could not be written.*step 3 is whole"):
        run(tmp_path / "out", {"schedule": {"steps": 9}}, resume=True)
    assert run(tmp_path / "out", {"schedule": {"steps": 9}}, resume=True).step == 9


@pytest.mark.slow
@pytest.mark.parametrize("part", ["weights", "tokenizer"])
def test_a_full_disk_at_the_very_end_leaves_no_half_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """safetensors and tokenizers have errors of their own, which are no OSError."""

    def full(self: Any, folder: Any, **_: Any) -> None:
        Path(folder).mkdir(exist_ok=True)
        Path(folder, "half").write_text("")
        raise (SafetensorError if part == "weights" else Exception)("No space left on device (os error 28)")

    who = transformers.PreTrainedModel if part == "weights" else transformers.PreTrainedTokenizerBase
    with monkeypatch.context() as patched:
        patched.setattr(who, "save_pretrained", full)
        with pytest.raises(BesagError, match=r"could not be written.*No space left.*make room and go on with --resume"):
            run(tmp_path / "out", {"schedule": {"steps": 1}})
    assert not [path.name for path in (tmp_path / "out").iterdir() if "model" in path.name]
    assert run(tmp_path / "out", {"schedule": {"steps": 1}}, resume=True).finished
    assert (tmp_path / "out" / "model" / "model.safetensors").exists()


def test_a_tilted_law_leaves_its_tilt(tmp_path: Path) -> None:
    run(tmp_path / "out", {"schedule": {"steps": 1}, "masking": {"law": "frequency"}})
    tilt = load_tilt(tmp_path / "out" / "model")
    assert tilt is not None
    assert tilt.law == "frequency"
    card = (tmp_path / "out" / "model" / "README.md").read_text()
    assert "the law `frequency`" in card
    assert "at a rate of 0.3 (log π is in `tilt.safetensors`). `besag.load(folder, untilt=True)`" in card


@pytest.mark.slow
def test_the_tilt_is_that_of_the_last_rate_and_can_be_taken_out(tmp_path: Path) -> None:
    masking = {"law": "wsbert", "rate": 0.5, "rate_law": "linear", "end_rate": 0.1, "copies": 2}
    folder = run(tmp_path / "out", {"schedule": {"steps": 2}, "masking": masking}).folder / "model"
    tilt = load_tilt(folder)
    assert tilt is not None
    recipe = a_run.small(tmp_path / "again", {"masking": masking})
    law = build(recipe, device=torch.device("cpu")).masking.law
    np.testing.assert_allclose(tilt.log_pi, law.tilt(0.2), atol=1e-9)  # two copies hide twice as much
    assert not np.allclose(tilt.log_pi, law.tilt(0.5))
    assert "at a rate of 0.2 " in (folder / "README.md").read_text()
    asked = "The dog sees the cat."
    plain = besag.load(folder, device="cpu").conditionals
    without = besag.load(folder, device="cpu", untilt=True)
    assert without.score(asked).total != besag.load(folder, device="cpu").score(asked).total
    rows = torch.ones(1, plain.model.config.hidden_size)
    shift = (plain.head(rows) - without.conditionals.head(rows))[0].detach().double().numpy()
    ordinary = sorted(set(range(plain.vocabulary.size)) - plain.vocabulary.special_ids)
    np.testing.assert_allclose(shift[ordinary], tilt.log_pi[ordinary], atol=1e-4)


def test_a_rate_may_fall_to_nothing(tmp_path: Path) -> None:
    """The linear decay of Yang et al. 2023 is 2p → 0: every step still hides something, and π has its limit."""
    masking = {"law": "frequency", "rate": 0.3, "rate_law": "linear", "end_rate": 0}
    result = run(tmp_path / "out", {"schedule": {"steps": 3}, "masking": masking})
    assert all(np.isfinite(row["loss"]) for row in logs.read(tmp_path / "out"))
    assert result.metrics["rate"] == 0  # at the end; the last step began with a third of the run left
    tilt = load_tilt(tmp_path / "out" / "model")
    assert tilt is not None
    assert np.isfinite(tilt.log_pi).all()


def tagged(folder: Path) -> Path:
    """The corpus with parts of speech; what `old` is depends on what follows it."""
    path, rows = folder / "tagged.jsonl", a_run.corpus(folder).read_text().split()
    kinds = {"dog": "NOUN", "cat": "NOUN", "bird": "NOUN", "sees": "VERB", "hears": "VERB", "likes": "VERB"}
    with path.open("w") as file:
        for start in range(0, len(rows), 16):
            text, tags = "", []
            words = rows[start : start + 16]
            for word, after in zip(words, [*words[1:], ""], strict=True):
                bare = word.strip(".").lower()
                tag = ("ADJ" if after in kinds else "NOUN") if bare == "old" else kinds.get(bare)
                tags += [[len(text), len(text) + len(word), tag]] if tag else []
                text += word + " "
            file.write(json.dumps({"text": text, "pos": tags}) + "\n")
    return path


def test_content_learns_by_the_parts_of_speech_that_are_given(tmp_path: Path) -> None:
    """Losses are kept by tag, those of one word under two of them; a resumed run goes on with them."""
    data = {"train": [str(tagged(tmp_path))], "tags": "pos"}
    changes = {"data": data, "masking": {"law": "content", "rate": 0.4}, "schedule": {"steps": 4}}
    made = build(a_run.small(tmp_path / "look", changes), device=torch.device("cpu"))
    assert made.train is not None
    assert sorted(made.train.meta["tags"]) == ["ADJ", "NOUN", "VERB"]
    batch = made.batches.mask(made.batches.parts(0))
    assert batch.tag is not None
    old = made.vocabulary.encode(["old"])[0].ids[1]
    here = batch.tag[batch.ids == int(old)]
    assert len(here.unique()) == 2  # ADJ and NOUN, in context
    run(tmp_path / "whole", changes)
    state = Checkpoints(tmp_path / "whole" / "checkpoints", keep=2).newest()
    assert state is not None
    losses = state.read()["law"]["losses"]
    assert losses.shape == (4,)  # three tags, and words without one
    assert torch.isfinite(losses).all()
    asked = iter(range(99))
    run(tmp_path / "torn", changes, stop=lambda: next(asked) >= 1)
    run(tmp_path / "torn", changes, resume=True)
    one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "torn"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert load_tilt(tmp_path / "whole" / "model") is not None


def test_a_ramp_that_is_stopped_and_resumed_is_the_same_run(tmp_path: Path) -> None:
    changes = {"schedule": {"steps": 6, "ramp": 0.7}, "run": {"accumulate": 3, "checkpoint_every": 2}}
    run(tmp_path / "whole", changes)
    asked = iter(range(99))
    run(tmp_path / "torn", changes, stop=lambda: next(asked) >= 2)
    run(tmp_path / "torn", changes, resume=True)
    one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "torn"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    told = [[row["tokens"] for row in logs.read(tmp_path / name)] for name in ("whole", "torn")]
    plan = build(a_run.small(tmp_path / "look", changes), device=torch.device("cpu")).batches.plan
    sizes = [1, 1, 1, 2, 2, 3]  # 1 + ⌊2 t / 0.7⌋ at t = 0, 1/6 … 5/6
    assert told[0] == told[1] == [plan.tokens_before(int(last)) for last in np.cumsum(sizes)]


@pytest.mark.parametrize("ema", [0.0, 0.5])
def test_subtokens_leave_an_ordinary_model(tmp_path: Path, ema: float) -> None:
    changes = {"model": {"config": a_run.MODEL, "subtokens": 3}, "schedule": {"steps": 4}, "run": {"ema": ema}}
    run(tmp_path / "whole", changes)
    asked = iter(range(99))
    run(tmp_path / "torn", changes, stop=lambda: next(asked) >= 1)
    run(tmp_path / "torn", changes, resume=True)
    one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "torn"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    run(tmp_path / "plain", {"schedule": {"steps": 4}, "run": {"ema": ema}})
    plain = load_file(tmp_path / "plain" / "model" / "model.safetensors")
    assert {name: value.shape for name, value in plain.items()} == {name: value.shape for name, value in one.items()}
    assert np.isfinite(besag.load(tmp_path / "whole" / "model", device="cpu").score("The dog sees.").total)


def test_a_law_that_is_not_used_tilts_nothing(tmp_path: Path) -> None:
    run(tmp_path / "out", {"schedule": {"steps": 1}, "masking": {"law": "frequency"}, "objective": {"name": "mdlm"}})
    assert load_tilt(tmp_path / "out" / "model") is None
    assert "were not used" in (tmp_path / "out" / "model" / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "objective",
    [
        {"name": "attention_guided"},
        {"name": "retromae"},
        {"name": "exlm", "options": {"states": 2, "mlm_share": 0.5}},
        {"name": "self_evolution", "options": {"groups": 2}},
        {"name": "alternate", "options": {"steps": 2, "shift": True}},
        {"name": "lert"},
    ],
    ids=lambda objective: objective["name"],
)
def test_a_run_goes_on_as_it_began_whatever_it_learns(objective: dict[str, Any], tmp_path: Path) -> None:
    if objective["name"] == "lert":
        row = {"words": ["the", "dog", "sees"], "tags": {"pos": ["D", "N", "V"]}}
        (tmp_path / "tags.jsonl").write_text(json.dumps(row) + "\n")
        objective = {**objective, "options": {"tags": str(tmp_path / "tags.jsonl")}}
    changes: dict[str, Any] = {
        "objective": objective, "run": {"checkpoint_every": 2}, "schedule": {"steps": 4},
    }  # fmt: skip
    run(tmp_path / "whole", changes)
    asked = iter(range(99))
    run(tmp_path / "torn", changes, stop=lambda: next(asked) >= 1)
    torch.manual_seed(99)
    run(tmp_path / "torn", changes, resume=True)
    one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "torn"))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_an_encoder_is_called_one(tmp_path: Path) -> None:
    asked: list[int] = []

    def monitor(built: Any) -> Any:
        assert built.objective.purpose == "encode"
        return lambda model, step: asked.append(step) or {}

    run(tmp_path / "out", {"schedule": {"steps": 1}, "objective": {"name": "mae"}}, monitor=monitor)
    assert "**It cannot be scored.**" in (tmp_path / "out" / "model" / "README.md").read_text()
    assert asked == [1]
    assert all("loss" in row for row in logs.read(tmp_path / "out"))  # no line of nothing


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bitfit", "lora"])
def test_adapted_averaged_and_resumed_it_is_an_ordinary_model_again(tmp_path: Path, method: str) -> None:
    config = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    if method == "lora":
        pytest.importorskip("peft")
    changes: dict[str, Any] = {
        "model": {"family": "bert", "config": config},
        "adapt": {"method": method},
        "run": {"ema": 0.5, "checkpoint_every": 2},
    }
    run(tmp_path / "whole", {**changes, "schedule": {"steps": 4}})
    asked = iter(range(99))
    torch.manual_seed(99)
    run(tmp_path / "torn", {**changes, "schedule": {"steps": 4}}, stop=lambda: next(asked) >= 1)
    run(tmp_path / "torn", {**changes, "schedule": {"steps": 4}}, resume=True)
    one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "torn"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not any("lora" in name for name in one)
    besag.load(tmp_path / "whole" / "model", device="cpu")
    assert "parameters were trained" in (tmp_path / "whole" / "model" / "README.md").read_text()


TEXT = "The old dog sees the young cat near the bird."


@pytest.mark.parametrize("method", ["bottleneck", "lora"])
def test_an_adapter_kept_apart_says_what_it_said_in_training_and_leaves_its_base_alone(
    tmp_path: Path, method: str
) -> None:
    if method == "lora":
        pytest.importorskip("peft")
    run(tmp_path / "base", {"schedule": {"steps": 1}})
    start = tmp_path / "base" / "model"
    before = (start / "model.safetensors").read_bytes()
    adapt = {"method": method, "rank": 3, "keep": "apart"}
    said: list[float] = []

    def watch(built: Any) -> Any:
        def look(model: Any, _: int) -> dict[str, float]:
            said.append(besag.load((model, built.vocabulary.tokenizer)).score(TEXT).total)
            return {"score": said[-1]}

        return look

    changes: dict[str, Any] = {"model": {"start": str(start), "config": {}}, "adapt": adapt, "run": {"average": 2}}
    changes |= {"schedule": {"steps": 6}, "optimizer": {"lr": 0.03}}
    result = run(tmp_path / "out", changes, monitor=watch)
    assert result.adapter == tmp_path / "out" / "adapter"
    assert not result.model.exists()
    assert {path.name for path in result.adapter.iterdir()} >= {"adapter.safetensors", "config.json", "README.md"}
    config = json.loads((result.adapter / "config.json").read_text())
    assert (config["besag_adapter"], config["rank"], config["base"]) == (method, 3, "model")
    base = besag.load(start, device="cpu")
    adapted = base.adapted(result.adapter).score(TEXT).total
    assert base.score(TEXT).total == pytest.approx(said[0], abs=1e-6)  # before the first step
    assert adapted == pytest.approx(said[-1], abs=1e-6)  # at the end
    assert abs(said[-1] - said[0]) > 1e-3
    assert (start / "model.safetensors").read_bytes() == before
    card = (result.adapter / "README.md").read_text()
    assert "An adapter of `model`" in card
    assert "kept apart from the weights" in card
    written = (result.adapter / "adapter.safetensors").stat().st_mtime_ns
    again = run(tmp_path / "out", changes, resume=True)  # nothing left to do
    assert again.finished
    assert (result.adapter / "adapter.safetensors").stat().st_mtime_ns == written


def test_a_base_that_changed_under_the_run_gets_no_adapter(tmp_path: Path) -> None:
    run(tmp_path / "base", {"schedule": {"steps": 1}})
    file = tmp_path / "base" / "model" / "model.safetensors"
    stored = load_file(file)
    changes: dict[str, Any] = {"model": {"start": str(file.parent), "config": {}}, "adapt": {"method": "bottleneck"}}

    def spoil(_: Any) -> Any:
        save_file({name: weight + 1 for name, weight in stored.items()}, file, metadata={"format": "pt"})
        return lambda model, step: {}

    with pytest.raises(BesagError, match="is not what it was when the run began"):
        run(tmp_path / "out", {**changes, "schedule": {"steps": 1}}, monitor=spoil)
    assert not (tmp_path / "out" / "adapter").exists()


def test_no_other_device_than_the_first_is_promised(tmp_path: Path) -> None:
    recipe = a_run.small(tmp_path / "out")
    with pytest.raises(BesagError, match="CUDA_VISIBLE_DEVICES"):
        train(replace(recipe, run=replace(recipe.run, device="cuda:1")), quiet=True)


def test_what_the_checkpoint_is_of_is_written_down(tmp_path: Path) -> None:
    run(tmp_path / "out", {"schedule": {"steps": 2}})
    meta = json.loads((tmp_path / "out" / "checkpoints" / "step-00000002" / "meta.json").read_text())
    assert meta["over"] == ["steps", 2]
    assert meta["processes"] == 1
