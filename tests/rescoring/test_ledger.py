"""Scores that are kept: each text once, none twice, and a torn file goes on."""

from __future__ import annotations

import json

import pytest
from tests.files.reading import put

import besag
from besag.errors import BesagError
from besag.rescoring.ledger import Scorer, read, scores
from besag.rescoring.rescore import scorers_of

TEXTS = ["a a", "a b", "a a", "b b", ""]


@pytest.fixture
def scorers() -> list[Scorer]:
    return scorers_of(besag.load(besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"])), ["chain", "pll"])


def refuse(*_: object) -> None:
    raise AssertionError("a text was scored again")


def test_what_is_kept_is_what_score_says_and_is_not_made_again(scorers, tmp_path, monkeypatch) -> None:
    path = str(tmp_path / "scores.jsonl")
    told: list[str] = []
    found = scores(scorers, TEXTS, path, told.append)
    lm = besag.load(besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"]))
    for one, method in zip(found, ("chain", "pll"), strict=True):
        assert list(one) == ["a a", "a b", "b b", ""]
        for text, kept in one.items():
            score = lm.score(text, method)
            assert (kept.tokens, kept.status) == (len(score), score.status)
            assert kept.total == pytest.approx(score.total, nan_ok=True)
    assert told[0] == "chain: 4 of 4 texts are still to be scored"
    assert len((tmp_path / "scores.jsonl").read_text().splitlines()) == 8
    before = (tmp_path / "scores.jsonl").read_bytes()
    monkeypatch.setattr("besag.rescoring.ledger.Scoring", refuse)
    again = scores(scorers, TEXTS, path)
    assert [{text: kept.total for text, kept in one.items() if text} for one in again] == [
        {text: kept.total for text, kept in one.items() if text} for one in found
    ]
    assert (tmp_path / "scores.jsonl").read_bytes() == before


@pytest.mark.parametrize("cut", [1, 20, 150, 10**6])
def test_a_torn_file_goes_on(cut, scorers, tmp_path) -> None:
    path = tmp_path / "scores.jsonl"
    whole = scores(scorers, [*TEXTS, "b a"], str(path))
    content = path.read_bytes()
    path.write_bytes(content[: max(0, len(content) - cut)])
    assert repr(scores(scorers, [*TEXTS, "b a"], str(path))) == repr(whole)
    assert sorted(path.read_bytes().splitlines()) == sorted(content.splitlines())


def test_other_settings_are_other_scores(tmp_path) -> None:
    lm = besag.load(besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"]))
    path = str(tmp_path / "scores.jsonl")
    from besag.scores import method

    for order in ("left-to-right", "right-to-left"):
        scores([Scorer("chain", lm.engine, method("chain", order=order))], ["a b"], path)
    assert len(read(path)[0]) == 2


def test_a_file_of_something_else_is_refused_and_left_as_it_is(scorers, tmp_path) -> None:
    path = put(tmp_path / "notes.txt", "my notes\n")
    with pytest.raises(BesagError, match="is not JSON"):
        scores(scorers, TEXTS, str(path))
    assert path.read_text() == "my notes\n"
    put(path, json.dumps({"a": 1}) + "\n")
    with pytest.raises(BesagError, match="is no score of a text"):
        scores(scorers, TEXTS, str(path))
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(BesagError, match="is not UTF-8"):
        scores(scorers, TEXTS, str(path))


def test_two_models_of_one_name_are_not_mixed(scorers, tmp_path) -> None:
    other = scorers_of(besag.load(besag.Table([[0.1, 0.4], [0.3, 0.2]], symbols=["a", "b"])), "chain")
    with pytest.raises(BesagError, match="two models are called 'table'"):
        scores([scorers[0], *other], TEXTS, str(tmp_path / "scores.jsonl"))
    apart = scores([scorers[0], *other], ["a a"])
    assert apart[0]["a a"].total != apart[1]["a a"].total
