"""The small commands: what is there, what it means, whom to cite, and what fits a slot."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests import networks, published
from tests.cli.conftest import Run

import besag
from besag.cli.exits import as_typed
from besag.conditionals.loading import describe
from besag.masks import LAWS
from besag.models import path
from besag.references import BIBTEX
from besag.scores import METHODS
from besag.training.objectives import OBJECTIVES


def test_the_version(run: Run) -> None:
    assert run("--version").stdout == f"{besag.__version__}\n"


def test_warnings_are_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(*arguments: object, **options: object) -> object:
        warnings.warn("float32 is used instead", stacklevel=1)
        raise besag.BesagError("and then this")

    monkeypatch.setattr(besag, "load", warn)
    assert run("score", "A text.").stderr == "warning: float32 is used instead\nerror: and then this\n"


def test_methods_are_listed_in_their_own_words(run: Run) -> None:
    result = run("methods")
    assert result.exit_code == 0
    for method in METHODS.values():
        assert re.search(rf"^ ?{method.name} +{re.escape(method.title)}", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("name", [*METHODS, "within_word_l2r"])
def test_a_method_is_explained(run: Run, name: str) -> None:
    method = type(besag.scores.method(name))
    result = run("methods", name)
    assert result.exit_code == 0
    for fact in (method.name, method.formula, method.normalised or "not a probability", *method.aliases, *method.cite):
        assert fact in result.stdout


def test_an_unknown_method_is_answered_with_the_nearest(run: Run) -> None:
    result = run("methods", "chian")
    assert result.exit_code == 2
    assert "Did you mean 'chain'?" in result.stderr


def test_what_every_method_cites_is_there(run: Run) -> None:
    assert {key for method in METHODS.values() for key in method.cite} <= set(BIBTEX)
    result = run("cite", *METHODS)
    assert result.exit_code == 0
    found = re.findall(r"^@\w+\{(\w+),$", result.stdout, re.MULTILINE)
    assert found[-1] == "besag"
    assert len(found) == len(set(found))


@pytest.mark.parametrize(("kind", "known"), [("mask", LAWS), ("objective", OBJECTIVES)])
def test_what_laws_and_objectives_cite_is_there(run: Run, kind: str, known: dict[str, Any]) -> None:
    ours = {"spaced"}  # no paper is behind it
    assert {name for name, what in known.items() if not what.cite} <= ours
    assert {key for what in known.values() for key in what.cite} <= set(BIBTEX)
    result = run("cite", *(f"{kind}:{name}" for name in known))
    assert result.exit_code == 0
    found = re.findall(r"^@\w+\{(\w+),$", result.stdout, re.MULTILINE)
    assert set(found) == {key for what in known.values() for key in what.cite} | {"besag"}


def test_a_name_that_two_kinds_share_can_be_told_apart(run: Run) -> None:
    for name, key in (("whole_word", "kauf2023"), ("mask:whole_word", "devlin2019"), ("wsbert", "zhang2023")):
        assert re.findall(r"^@\w+\{(\w+),$", run("cite", name).stdout, re.MULTILINE) == [key, "besag"]
    assert "besag methods objective:mlm" in run("methods", "mlm").stdout
    law, objective = run("methods", "span").stdout, run("methods", "objective:mlm").stdout
    for fact in (
        'masking.law = "span"',
        "--set masking.options.longest=…  int, default 10",
        "joshi2020",
        "SpanBERT's spans",
    ):
        assert fact in law
    for fact in ('objective.name = "mlm"', "the law's", "devlin2019", "Masked language modelling"):
        assert fact in objective
    wrong = run("methods", "objective:electre")
    assert wrong.exit_code == 2
    assert "Did you mean 'electra'?" in wrong.stderr


def test_laws_and_objectives_are_listed(run: Run) -> None:
    listed = run("methods").stdout
    for name in (*LAWS, *OBJECTIVES):
        assert re.search(rf"^ ?{name} +\w", listed, re.MULTILINE), name


def test_bibtex_is_well_formed() -> None:
    for key, entry in BIBTEX.items():
        assert re.match(rf"@\w+\{{{key},\n", entry)
        assert entry.count("{") == entry.count("}")
        for field in ("title", "author", "year"):
            assert re.search(rf"^  {field} = \{{.+", entry, re.MULTILINE), (key, field)


def test_besag_is_cited_alone_and_papers_by_key(run: Run) -> None:
    assert run("cite").stdout.strip() == BIBTEX["besag"]
    assert run("cite", "besag1975").stdout.startswith(BIBTEX["besag1975"])
    result = run("cite", "kauf2032")
    assert result.exit_code == 2
    assert "Did you mean 'kauf2023'?" in result.stderr


def test_the_embedded_model_is_listed(run: Run) -> None:
    result = run("models")
    assert result.exit_code == 0
    assert re.search(r"small-en +38,085,755 +12,288 +512 +apache-2.0", result.stdout)
    found = describe(path())  # not from its small files alone
    assert [found[fact] for fact in ("parameters", "vocabulary", "max_length")] == [38_085_755, 12_288, 512]


def test_a_model_that_can_be_used(run: Run, tmp_path: Path) -> None:
    networks.tiny("bert").save_pretrained(tmp_path)
    networks.vocabulary("bert").tokenizer.save_pretrained(tmp_path)
    result = run("models", tmp_path)
    assert (result.exit_code, result.stdout.splitlines()[-1].split()) == (0, ["can", "be", "used", "yes"])
    assert "BertForMaskedLM" in result.stdout


def test_a_shift_is_printed(run: Run, tmp_path: Path) -> None:
    for name, said in (("dream", "yes"), ("llada", "no")):
        result = run("models", published.write(tmp_path / name, name))
        assert (result.exit_code, re.findall(r"shift +(\w+)", result.stdout)) == (0, [said])


def test_a_model_without_a_tokenizer_cannot_be_used(run: Run, tmp_path: Path) -> None:
    networks.tiny("bert").save_pretrained(tmp_path)
    result = run("models", tmp_path)
    assert result.exit_code == 1
    assert re.search(r"can be used +no: .* holds no tokenizer", result.stdout)
    refused = run("score", "A text.", "-m", tmp_path)
    assert refused.exit_code == 2
    assert "holds no tokenizer" in refused.stderr


def test_a_pickle_is_allowed_by_an_option_that_the_error_names(run: Run, tmp_path: Path) -> None:
    networks.tiny("bert").save_pretrained(tmp_path)
    networks.vocabulary("bert").tokenizer.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    for refused in (run("score", "A text.", "-m", tmp_path), run("models", tmp_path)):
        assert "insist with --allow-pickle\n" in refused.output
        assert "allow_pickle" not in refused.output


def test_messages_about_arguments_name_the_options_of_the_command() -> None:
    from besag.cli.groups import ModelOptions

    said = "dtype='float32' or allow_pickle=True; 'dtype=x' of them, seed=3, revision=None, --set dtype=x."
    typed = "--dtype 'float32' or --allow-pickle; 'dtype=x' of them, seed=3, --revision None, --set dtype=x."
    assert as_typed(said, ModelOptions) == typed


def test_a_slip_in_the_name_of_the_embedded_model(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("the hub was asked"))
    for slip in ("small-eng", "smallen", "Small-EN"):
        refused = run("score", "A text.", "-m", slip)
        assert refused.exit_code == 2
        assert "Did you mean 'small-en'?" in refused.stderr
    assert "'tiny-en' is no longer embedded: 'small-en' is." in run("score", "A text.", "-m", "tiny-en").stderr


def test_names_and_texts_steer_no_terminal(run: Run, tmp_path: Path) -> None:
    name = "no\x1b[31m\x9b2J\u202esuch"
    for result in (run("score", "A text.", "-m", name), run("models", name), run("score", tmp_path / f"{name}.tsv")):
        assert result.exit_code in (1, 2)
        assert not any(sign in result.output for sign in "\x1b\x9b\u202e")
        assert "\\x1b[31m" in result.output
    shown = run("score", "red \x1b[31m \x9b2J.", "--format", "table")
    assert "\x9b" not in shown.output
    assert "\x1b" not in shown.output


def test_choosing(run: Run) -> None:
    text = "The capital of France is [MASK]."
    result = run("choose", text, "New York", "Paris")
    assert result.exit_code == 0, result.stderr
    assert [line.split("\t")[0] for line in result.stdout.splitlines()] == ["option", "Paris", "New York"]
    whole = json.loads(run("choose", text, "New York", "Paris", "--of", "option", "--format", "jsonl").stdout)
    assert (whole["text"], whole["of"]) == (text, "option")
    assert {one["option"] for one in whole["options"]} == {"Paris", "New York"}
    assert "exactly one slot" in run("choose", "No slot here.", "a", "b").stderr
