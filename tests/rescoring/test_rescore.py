"""The whole way, computed by hand; weights that are given, tuned, frozen, of folds; what is shown and refused."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

import besag
from besag.errors import BesagError
from besag.rescoring.lists import Hypothesis, NBest
from besag.rescoring.rescore import rescore, scorers_of
from besag.rescoring.result import Rescoring
from besag.scores import method

pytest.importorskip("jiwer")
DATA = Path(os.environ.get("BESAG_DATA", Path(__file__).parents[3] / "shared" / "data")) / "asr_nbest_librispeech"
P = {"a a": 0.4, "a b": 0.1, "b a": 0.2, "b b": 0.3}


@pytest.fixture(scope="module")
def lm() -> besag.LanguageModel:
    return besag.load(besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"]))


def utterance(name: str, reference: str | None, **hypotheses: float) -> NBest:
    """Hypotheses as a_b=−1."""
    said = tuple(Hypothesis(text.replace("_", " "), score) for text, score in hypotheses.items())
    return NBest(name, said, reference)


LISTS = [
    utterance("x-1", "a a", a_b=-1.0, a_a=-1.5),  # turned where λ (ln 0.4 − ln 0.1) > ½: λ > 0.36
    utterance("y-1", "b a", b_a=-1.0, b_b=-1.1),  # turned, wrongly, where λ ln 1.5 > 0.1: λ > 0.247
    utterance("x-2", "b b", a_b=-1.0, b_b=-1.2),  # turned where λ ln 3 > 0.2: λ > 0.182
    utterance("y-2", "a b", b_b=-1.0, a_b=-3.0),  # never turned
]


def test_the_whole_way_by_hand(lm) -> None:
    # word errors of the first pass: 1 + 0 + 1 + 1 of 8 words
    for weight, wrong in ((0.0, [1, 0, 1, 1]), (0.2, [1, 0, 0, 1]), (0.3, [1, 1, 0, 1]), (0.4, [0, 1, 0, 1])):
        found = rescore(lm, LISTS, methods="chain", weight=weight)
        [system] = found.systems
        assert found.board.of(system.chosen)[:, 0].tolist() == wrong
        assert system.value == pytest.approx(100 * sum(wrong) / 8)
        assert found.first.value == pytest.approx(100 * 3 / 8)
        assert found.oracle is not None
        assert found.oracle.value == 0.0
        d = np.array(wrong) - [1, 0, 1, 1]
        z = d.mean() / (d.std(ddof=1) / 2) if d.any() else 0.0
        assert system.z == pytest.approx(z)
        assert system.p == pytest.approx(math.erfc(abs(z) / math.sqrt(2)))
    [row] = [one for one in found.table("weight") if one["weight"] == 0.2]
    assert row["chain"] == pytest.approx(25.0)
    ranked = found.reranked()
    assert [one.text for one in ranked[0].hypotheses] == ["a a", "a b"]
    assert ranked[0].hypotheses[0].score == pytest.approx(-1.5 + 0.4 * math.log(0.4))
    assert [one.hypotheses[0].text for one in ranked] == ["a a", "b b", "b b", "b b"]


def test_tuning_finds_the_best_weight_and_dev_freezes_it(lm) -> None:
    tuned = rescore(lm, LISTS[:1] + LISTS[2:], methods="chain", tune=True)
    [[weight]] = tuned.systems[0].weights
    assert weight > 0.5 / math.log(4)  # both can be right
    assert tuned.systems[0].value == pytest.approx(100 / 6)
    assert any("TUNED ON WHAT IS JUDGED" in fact for fact in tuned.facts)
    frozen = rescore(lm, LISTS[1:2], methods="chain", dev=LISTS[:1])
    assert frozen.systems[0].weights[0, 0] > 0.36
    assert frozen.systems[0].value == 50.0  # what is right for the one is wrong for the other
    unjudged = rescore(lm, [utterance("z", None, a_b=-1.0, a_a=-1.5)], methods="chain", dev=LISTS[:1])
    assert unjudged.metric is None
    assert unjudged.reranked()[0].hypotheses[0].text == "a a"


def test_each_fold_has_the_weight_of_the_other(lm) -> None:
    found = rescore(lm, LISTS, methods="chain", folds="speaker")
    [system] = found.systems
    assert found.fold.tolist() == [0, 1, 0, 1]
    of_x = rescore(lm, [LISTS[0], LISTS[2]], methods="chain", tune=True).systems[0].weights[0]
    of_y = rescore(lm, [LISTS[1], LISTS[3]], methods="chain", tune=True).systems[0].weights[0]
    assert system.weights.tolist() == [of_y.tolist(), of_x.tolist()]
    assert of_y == 0.0  # there every turn is wrong
    assert found.board.of(system.chosen)[:, 0].tolist() == [1, 1, 1, 1]
    grouped = rescore(lm, LISTS, methods="chain", folds=["m", "n", "m", "n"])
    assert grouped.systems[0].weights.tolist() == system.weights.tolist()


def test_folds_of_utterances_by_a_number(lm) -> None:
    found = rescore(lm, LISTS, methods="chain", folds=4)
    assert found.fold.tolist() == [0, 2, 1, 3]  # by their ids: x-1, x-2, y-1, y-2
    for fold, weights in enumerate(found.systems[0].weights):
        others = [one for one, own in zip(LISTS, found.fold, strict=True) if own != fold]
        assert weights.tolist() == rescore(lm, others, methods="chain", tune=True).systems[0].weights[0].tolist()
    assert any("the other 3 folds" in fact for fact in found.facts)
    for wrong in (1, 0, -1, 5, True):
        with pytest.raises(BesagError, match="folds"):
            rescore(lm, LISTS, methods="chain", folds=wrong)


def test_that_no_weight_helped_is_reported(lm) -> None:
    worse = [LISTS[1], LISTS[3]]  # every turn is wrong
    [fact] = [one for one in rescore(lm, worse, methods="chain", tune=True).facts if "no weight helped" in one]
    assert "chain" in fact
    by_fold = rescore(lm, LISTS, methods="chain", folds="speaker").facts
    assert any("no weight helped chain in fold 0:" in fact for fact in by_fold)
    for found in (rescore(lm, LISTS, methods="chain", tune=True), rescore(lm, worse, methods="chain", weight=0.0)):
        assert not any("no weight helped" in fact for fact in found.facts)


def test_an_optimum_beyond_two_is_found_and_in_the_curve(lm) -> None:
    lists = [utterance("x", "a a", a_b=-1.0, a_a=-6.0), utterance("y", "b a", b_a=-1.0, b_b=-5.0)]  # 3.6 … 9.9
    found = rescore(lm, lists, methods="chain", tune=True, metric="cer")
    [[weight]] = found.systems[0].weights
    assert 5 / math.log(4) < weight < 4 / math.log(1.5)
    assert found.systems[0].value == 0.0
    curve = found.table("weight")
    assert min(row["chain"] for row in curve) == 0.0
    assert max(row["weight"] for row in curve) > weight


def test_probability_zero_is_the_same_from_the_file(tmp_path) -> None:
    zero = besag.load(besag.Table([[0.4, 0.0], [0.2, 0.4]], symbols=["a", "b"]))
    lists = [utterance("x", "a a", a_b=-1.0, a_a=-1.5), utterance("y", "a b", a_b=-1.0, b_b=-1.1)]
    for _ in range(2):
        found = rescore(zero, lists, methods="chain", weight=0.5, scores=tmp_path / "kept")
        assert found.board.added[0, :, 0].tolist() == [-math.inf, -math.inf]
        assert found.systems[0].chosen.tolist() == [1, 1]
        assert found.status == "ok"
        assert found.unscored == {"chain": 0}
        none = rescore(zero, lists, methods="chain", weight=0.0, scores=tmp_path / "kept")
        assert none.systems[0].chosen.tolist() == [0, 0]


def test_several_methods_alone_and_together(lm) -> None:
    found = rescore([lm], LISTS, methods=["chain", "pll"], tune=True, combine=True)
    assert [one.name for one in found.systems] == ["chain", "pll", "combined"]
    assert found.systems[0].weights[0, 1] == 0.0
    assert found.systems[2].value <= min(one.value for one in found.systems[:2])
    assert found.best.value == min(one.value for one in found.systems)
    p = [one.p for one in found.systems]
    assert [one.p_holm for one in found.systems] == besag.statistics.holm(p).tolist()
    with pytest.raises(BesagError, match="several rankings, chain, pll, combined: say which"):
        found.reranked()
    assert len(found.reranked("pll")) == 4
    given = rescore(lm, LISTS, methods=["chain", "pll"], weight=[0.4, 0.0], combine=True)
    assert given.systems[2].chosen.tolist() == given.systems[0].chosen.tolist()
    two = [one.name for one in scorers_of([lm, besag.load(besag.Table.random(2, 2))], "pll")]
    assert len(set(two)) == 2


def test_length_casing_and_what_has_no_score(lm) -> None:
    lists = [utterance("x", "a a", A_B=-1.0, A_A=-1.5), utterance("y", "a a", a_a=-1.0, **{"": -2.0})]
    lower = rescore(lm, lists, methods="chain", weight=0.4, casing="lower")
    assert lower.unscored == {"chain": 1}
    assert lower.status == "partly"
    assert lower.systems[0].chosen[1] == 0
    assert lower.reranked()[0].hypotheses[0].text == "A A"  # as it was
    over = rescore(lm, LISTS, methods="chain", weight=0.8, length="length")  # both have two tokens
    same = rescore(lm, LISTS, methods="chain", weight=0.4)
    assert over.systems[0].chosen.tolist() == same.systems[0].chosen.tolist()
    gnmt = rescore(lm, LISTS, methods="chain", weight=0.4 * 7 / 6, length="gnmt")
    np.testing.assert_allclose(gnmt.board.combined([0.4 * 7 / 6]), same.board.combined([0.4]))


def test_translations_are_judged_by_counts(lm) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    found = rescore(lm, LISTS, methods="chain", weight=0.2, metric="chrf")
    chosen = [one.hypotheses[0].text for one in found.reranked()]
    references = [one.reference for one in LISTS]
    assert found.systems[0].value == pytest.approx(sacrebleu.corpus_chrf(chosen, [references]).score)
    assert found.systems[0].p == found.systems[0].p_bootstrap
    assert found.oracle is not None
    assert found.oracle.value == pytest.approx(100.0)


def test_scores_are_asked_for_once(lm, tmp_path, monkeypatch) -> None:
    kept = tmp_path / "scores.jsonl"
    first = rescore(lm, LISTS, methods="chain", weight=0.4, scores=kept)
    assert len(kept.read_text().splitlines()) == 1 + 4  # the head, and distinct texts
    monkeypatch.setattr("besag.rescoring.ledger.Scoring", None)
    again = rescore(lm, LISTS, methods="chain", tune=True, scores=kept)
    assert again.board.added.tolist() == first.board.added.tolist()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "λ comes from one of weight, dev, folds and tune, and none is given"),
        ({"weight": 1.0, "tune": True}, "weight and tune are given"),
        ({"weight": -1.0}, "weight=-1.0: give a number, at least 0"),
        ({"weight": [0.1, 0.2]}, "1 systems need one weight, or 1"),
        ({"folds": ["a"]}, "folds has 1 groups, and there are 4 lists"),
        ({"weight": 1.0, "methods": ["pll", "pll"]}, "two systems would be called 'pll'"),
        ({"weight": 1.0, "methods": []}, "needs a model and a method"),
        ({"weight": 1.0, "metric": "rouge"}, "metric='rouge'"),
        ({"weight": 1.0, "methods": "pl"}, "pll"),
        ({"weight": 1.0, "ref": "refs"}, "lists have their own"),
        ({"weight": 1.0, "alpha": -1.0}, "alpha=-1.0"),
        ({"weight": 1.0, "resamples": 0}, "resamples=0"),
        ({"weight": 1.0, "seed": -1}, "seed=-1"),
        ({"weight": 1.0, "scores": "\0"}, "no file can be called so"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, said, lm) -> None:
    with pytest.raises(BesagError) as refused:
        rescore(lm, LISTS, **options)
    assert said in str(refused.value)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(BesagError, match="give a LanguageModel, or a list of them"):
        rescore([None], LISTS, weight=0.5)


def test_lists_that_cannot_be_judged_are_refused(lm) -> None:
    for lists, said in (
        ([], "is empty"),
        ([LISTS[0], LISTS[0]], "two lists of the id 'x-1'"),
        ([LISTS[0], utterance("z", None, a_b=-1.0)], "'z' has no reference to judge by"),
        ([utterance("z", "", a_b=-1.0)], "all references are empty"),
        ([NBest("z", (Hypothesis("a a", None),), "a a")], "'a a' of 'z' has no score"),
        (["a"], "give a NBest"),
    ):
        with pytest.raises(BesagError, match=said):
            rescore(lm, lists, weight=0.5)


def test_a_picture_needs_references(lm) -> None:
    found = rescore(lm, [utterance("z", None, a_b=-1.0, a_a=-1.5)], weight=0.5)
    assert isinstance(found, Rescoring)
    assert "not judged" in found.facts[0]
    assert math.isnan(found.table()[0]["relative"])
    with pytest.raises(BesagError, match="nothing to draw"):
        found.plot()


def test_a_dozen_utterances_of_librispeech() -> None:
    """Real lists, the embedded model, everything on: what is chosen is among the ten, and the oracle is below."""
    if not DATA.is_dir():
        pytest.skip(f"needs {DATA}: set BESAG_DATA to a folder with asr_nbest_librispeech")
    from besag.rescoring.formats import read_nbest

    lists, found = read_nbest(DATA / "dev_other.jsonl")
    assert (found, len(lists), sum(len(one.hypotheses) for one in lists)) == ("jsonl", 2864, 28640)
    short = sorted(lists, key=lambda one: len(one.hypotheses[0].text))[:12]
    result = rescore(besag.load(), short, methods=method("pll"), tune=True, casing="sentence", full_stop=True)
    assert result.oracle is not None
    assert result.oracle.value <= result.systems[0].value <= result.first.value


# ---- lists of translations, given what was translated


def given_lm() -> besag.LanguageModel:
    """Of the source "m" the likelier texts have equal words, of "n n" different ones."""
    return besag.load(besag.GivenTable({"m": [[4, 1], [1, 4]], "n n": [[1, 4], [4, 1]]}, symbols=["a", "b"]))


def test_each_list_is_scored_given_its_source(lm, tmp_path) -> None:
    lists = [NBest(f"u{n}", (Hypothesis("a b", -1.0), Hypothesis("a a", -1.2)), "a a", source=source)
             for n, source in enumerate(("m", "n n"))]  # fmt: skip
    kept = tmp_path / "scores.jsonl"
    for _ in range(2):  # the second time from the file, each text by its source
        found = rescore([given_lm(), lm], lists, methods="chain", weight=0.5, scores=kept)
        given, plain = found.board.added
        assert given == pytest.approx(np.log([[0.1, 0.4], [0.4, 0.1]]))
        assert plain == pytest.approx(np.log([[0.1, 0.4], [0.1, 0.4]]))
        assert [system.chosen.tolist() for system in found.systems] == [[1, 0], [1, 1]]
    assert len(kept.read_text().splitlines()) == 1 + 4 + 2  # a model without a source scores a text once


def test_sources_come_from_a_file_and_their_lack_is_told(tmp_path) -> None:
    nbest, sources = tmp_path / "nbest.tsv", tmp_path / "sources.txt"
    nbest.write_text("utt\ttext\tscore\nu0\ta b\t-1\nu0\ta a\t-1.2\nu1\ta b\t-1\nu1\ta a\t-1.2\n", encoding="utf-8")
    sources.write_text("u0 m\nu1 n n\n", encoding="utf-8")
    found = rescore(given_lm(), nbest, methods="chain", weight=0.5, sources=sources)
    assert [one.hypotheses[0].text for one in found.reranked()] == ["a a", "a b"]
    with pytest.raises(BesagError, match="'given table' is given what was translated, and 'u0' has no source"):
        rescore(given_lm(), nbest, methods="chain", weight=0.5)
    with pytest.raises(BesagError, match="gives each list its own source"):
        rescore(given_lm().given("m"), nbest, methods="chain", weight=0.5, sources=sources)
    sources.write_text("u0 m\n", encoding="utf-8")
    with pytest.raises(BesagError, match=r"has hypotheses of 'u1', and .*sources.txt no source"):
        rescore(given_lm(), nbest, methods="chain", weight=0.5, sources=sources)
    with pytest.raises(BesagError, match="lists have their own"):
        rescore(given_lm(), LISTS, methods="chain", weight=0.5, sources=sources)
