"""Minimal pairs: who wins, by hand and from exact laws; standard errors by their formulas; files of every layout."""

from __future__ import annotations

import gzip
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws import Arbitrary, Counting

import besag
from besag.engine import Engine
from besag.errors import BesagError
from besag.evaluation.minimal_pairs import MinimalPair, MinimalPairs, minimal_pairs, read_pairs
from besag.results.status import Status

BLIMP = Path(os.environ.get("BESAG_DATA", Path(__file__).parents[3] / "shared" / "data")) / "blimp"


def result(credits: dict[tuple[str, str], list[float]]) -> MinimalPairs:
    """A result with the given credit (nan: not scored) of each pair of each (phenomenon, paradigm)."""
    pairs, values = [], []
    for (phenomenon, paradigm), each in credits.items():
        pairs += [MinimalPair("a", "b", paradigm, phenomenon)] * len(each)
        values += each
    scores = np.array(values)
    status = tuple("ok" if one == one else "empty" for one in values)
    return MinimalPairs(tuple(pairs), scores, np.full(len(pairs), 0.5), status, "pll", "sum", "model", "float32")


# ---- who wins


def test_the_likelier_sentence_of_an_exact_law_wins() -> None:
    law = besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"])
    lm = besag.load(law)
    pairs = [("a a", "a b"), ("b a", "b b"), ("b b", "b b"), ("b b", "a b")]
    found = minimal_pairs(lm, pairs, "chain")
    totals = {text: lm.score(text, "chain").total for text in ("a a", "a b", "b a", "b b")}
    assert math.exp(totals["a b"]) == pytest.approx(0.1)
    assert found.credit.tolist() == [1.0, 0.0, 0.5, 1.0]
    np.testing.assert_allclose(found.good, [totals[good] for good, _ in pairs])
    np.testing.assert_allclose(found.bad, [totals[bad] for _, bad in pairs])
    assert found.accuracy == 2.5 / 4
    assert found.macro.ties == 1
    assert minimal_pairs(lm.engine, pairs, "chain").credit.tolist() == found.credit.tolist()


def test_a_mean_over_tokens_can_turn_the_verdict() -> None:
    lm = besag.load(Arbitrary(3))
    longer, shorter = "s0 s1 s2 s0 s1", "s2 s2"
    scores = {text: lm.score(text) for text in (longer, shorter)}
    for reduction in ("sum", "mean"):
        value = {text: one.total if reduction == "sum" else one.mean for text, one in scores.items()}
        found = minimal_pairs(lm, [(longer, shorter)], reduction=reduction)  # type: ignore[arg-type]
        assert found.good[0] == pytest.approx(value[longer])
        assert found.credit[0] == float(value[longer] > value[shorter])
    with pytest.raises(BesagError, match="Did you mean 'mean'"):
        minimal_pairs(lm, [(longer, shorter)], reduction="meen")  # type: ignore[arg-type]


def test_options_reach_the_method() -> None:
    lm = besag.load(Arbitrary(3))
    found = minimal_pairs(lm, [("s0 s1 s2", "s1 s1 s2")], "chain", order="right-to-left")
    assert found.good[0] == pytest.approx(lm.score("s0 s1 s2", "chain", order="right-to-left").total)


def test_a_sentence_is_scored_once_and_shared_questions_run_once() -> None:
    counting = Counting(Arbitrary(3))
    engine = Engine(counting, progress=False)  # type: ignore[arg-type]
    minimal_pairs(engine, [("s0 s1", "s0 s2")] * 5 + [("s0 s2", "s0 s1")])
    assert len(counting.sequences) == 3  # "? s1", "? s2", and "s0 ?", which both sentences ask
    assert len(set(counting.sequences)) == 3


def test_pairs_that_cannot_be_scored_are_counted_apart() -> None:
    lm = besag.load(Arbitrary(3))
    found = minimal_pairs(lm, [("s0", "s1"), ("s0 [MASK]", "s1"), ("s0", "")])
    assert found.statuses == ("ok", "mask", "empty")
    assert found.status is Status.PARTLY
    assert found.unscored == {"mask": 1, "empty": 1}
    assert np.isnan(found.credit).tolist() == [False, True, True]
    assert (found.macro.pairs, found.macro.unscored) == (1, 2)
    assert found.table("pair")[1]["status"] == "mask"
    nothing = minimal_pairs(lm, [("", "s0")])
    assert math.isnan(nothing.accuracy)
    assert nothing.to_dict()["overall"][0]["accuracy"] is None
    assert "–" in repr(nothing)


# ---- standard errors


def test_standard_errors_are_those_of_the_formulas() -> None:
    found = result({("x", "p"): [1.0] * 8 + [0.0] * 2, ("x", "q"): [1.0, 0.5, 0.0, 0.0], ("y", "r"): [1.0, np.nan]})
    p, q, r = found.paradigms.values()
    assert (p.accuracy, q.accuracy, r.accuracy) == (0.8, 0.375, 1.0)
    assert (p.pairs, q.pairs, r.pairs, q.ties, r.unscored) == (10, 4, 1, 1, 1)
    assert p.se == pytest.approx(math.sqrt(0.8 * 0.2 / 10))
    assert q.se == pytest.approx(math.sqrt(0.375 * 0.625 / 4))
    assert r.se == 0.0
    assert found.phenomena["x"].accuracy == pytest.approx((0.8 + 0.375) / 2)
    assert found.phenomena["x"].se == pytest.approx(math.sqrt(p.se**2 + q.se**2) / 2)
    assert found.macro.accuracy == pytest.approx((0.8 + 0.375 + 1) / 3)
    assert found.macro.se == pytest.approx(math.sqrt(p.se**2 + q.se**2) / 3)
    assert found.micro.accuracy == pytest.approx((8 + 1.5 + 1) / 15)
    assert found.micro.se == pytest.approx(math.sqrt((10 * p.se) ** 2 + (4 * q.se) ** 2) / 15)


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=9), min_size=1, max_size=5))
def test_the_mean_over_pairs_is_the_mean(credits: list[list[float]]) -> None:
    found = result({("x", str(number)): each for number, each in enumerate(credits)})
    flat = [one for each in credits for one in each]
    assert found.micro.accuracy == pytest.approx(np.mean(flat))
    assert found.macro.accuracy == pytest.approx(np.mean([np.mean(each) for each in credits]))
    for each, one in zip(credits, found.paradigms.values(), strict=True):
        assert one.se >= np.std(each) / math.sqrt(len(each)) - 1e-12  # exact without ties, an upper bound with them


def test_the_error_of_a_paradigm_is_the_spread_of_repeated_samples() -> None:
    generator = np.random.default_rng(0)
    draws = (generator.random((4000, 50)) < 0.7).astype(float)
    assert draws.mean(1).std() == pytest.approx(math.sqrt(0.7 * 0.3 / 50), rel=0.05)
    assert np.mean([result({("x", "p"): each.tolist()}).macro.se for each in draws[:200]]) == pytest.approx(
        math.sqrt(0.7 * 0.3 / 50), rel=0.05
    )


# ---- out of here


def test_tables_and_pictures() -> None:
    import matplotlib

    matplotlib.use("Agg")
    found = result({("x", "p"): [1.0, 0.0], ("y", "q"): [1.0]})
    assert [row["paradigm"] for row in found.table()] == ["p", "q"]
    assert [row["phenomenon"] for row in found.table("phenomenon")] == ["x", "y"]
    assert [row["accuracy"] for row in found.table("overall")] == [0.75, pytest.approx(2 / 3)]
    frame = found.to_pandas("phenomenon")
    assert frame["accuracy"].tolist() == [0.5, 1.0]
    assert frame.attrs["method"] == "pll"
    json.dumps(found.to_dict(), allow_nan=False)
    assert "mean over paradigms 75.0 ± 17.7 (2)" in repr(found)
    axes = found.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["q", "p"]
    assert found.plot(axes) is axes
    with pytest.raises(BesagError, match=r"per='paradigms'.*Did you mean 'paradigm'"):
        found.table("paradigms")  # type: ignore[arg-type]


def test_wrong_pairs_are_refused() -> None:
    lm = besag.load(Arbitrary(3))
    with pytest.raises(BesagError, match="no pairs"):
        minimal_pairs(lm, [])
    with pytest.raises(BesagError, match=r"^pairs\[0\]='s0': give a MinimalPair or a tuple of 2$"):
        minimal_pairs(lm, ["s0"])  # type: ignore[list-item]


# ---- files


def write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_blimp_lines(tmp_path: Path) -> None:
    row = {"sentence_good": "A.", "sentence_bad": "B.", "field": "syntax", "linguistics_term": "islands",
           "UID": "adjunct", "pairID": "7"}  # fmt: skip
    path = write(tmp_path / "x.jsonl", json.dumps(row) + "\n\n" + json.dumps({**row, "pairID": 8}) + "\n")
    first, second = read_pairs(path)
    assert first == MinimalPair("A.", "B.", "adjunct", "islands", "7", f"{path}, line 1")
    assert (second.name, second.where) == ("8", f"{path}, line 3")
    assert len(read_pairs(path, 1)) == 1


def test_marvin_and_linzen_lines(tmp_path: Path) -> None:
    tasks = {"simple_npi_anim": "negative_polarity", "reflexives_across": "reflexive_anaphora",
             "prep_anim": "subject_verb_agreement"}  # fmt: skip
    rows = [{"task": task, "cond": "sing", "good": "a b", "bad": "a c", "extra": []} for task in tasks]
    found = read_pairs(write(tmp_path / "pairs.jsonl", "\n".join(map(json.dumps, rows))))
    assert {one.paradigm: one.phenomenon for one in found} == tasks


@pytest.mark.parametrize("ending", ["tsv", "csv", "txt"])
def test_tables_with_and_without_header(tmp_path: Path, ending: str) -> None:
    comma = "," if ending == "csv" else "\t"
    plain = write(tmp_path / f"plain.{ending}", f"A.{comma}B.\nC.{comma}D.\n")
    assert [(one.good, one.bad, one.paradigm, one.group) for one in read_pairs(plain, header=False)] == [
        ("A.", "B.", "plain", "plain"),
        ("C.", "D.", "plain", "plain"),
    ]
    four = write(tmp_path / f"four.{ending}", comma.join(["A.", "B.", "p", "x"]) + "\n")
    assert read_pairs(four, header=False)[0].phenomenon == "x"
    headed = write(tmp_path / f"headed.{ending}", comma.join(["paradigm", "Bad", "good"]) + "\n"
                   + comma.join(["p", "B.", "A."]) + "\n")  # fmt: skip
    [one] = read_pairs(headed)
    assert (one.good, one.bad, one.paradigm) == ("A.", "B.", "p")


def test_quotes_belong_to_a_tsv_and_delimit_a_csv(tmp_path: Path) -> None:
    assert read_pairs(write(tmp_path / "a.tsv", 'good\tbad\n"Go," he said.\tB.\n'))[0].good == '"Go," he said.'
    assert read_pairs(write(tmp_path / "a.csv", 'good,bad\n"Go, now.",B.\n'))[0].good == "Go, now."


def test_columns_may_be_named(tmp_path: Path) -> None:
    row = {"hyps": [{"text": "A."}, {"text": "B."}], "uid": "p"}
    path = write(tmp_path / "a.jsonl", json.dumps(row) + "\n")
    [one] = read_pairs(path, good="hyps.0.text", bad="hyps.1.text")
    assert (one.good, one.bad, one.paradigm) == ("A.", "B.", "p")
    headed = write(tmp_path / "a.tsv", "correct\twrong\nA.\tB.\n")
    assert read_pairs(headed, good="correct", bad="2")[0].bad == "B."
    plain = write(tmp_path / "b.tsv", "1\tx\ty\tz\tA.\tB.\n")
    assert read_pairs(plain, good="5", bad="6", header=False)[0].good == "A."
    with pytest.raises(BesagError, match=r"no column 'correkt': .*Did you mean 'correct'"):
        read_pairs(headed, good="correkt", bad="wrong")


@pytest.mark.parametrize("first", ["A.\tB.", "correct\twrong", "1\t2", "good\twrong", "The bad\tgood", "A."])
def test_a_first_line_of_unknown_names_is_never_guessed(tmp_path: Path, first: str) -> None:
    path = write(tmp_path / "a.tsv", f"{first}\nC.\tD.\n")
    for said in ({}, {"good": "1", "bad": "2"}):
        with pytest.raises(BesagError, match="are these names of columns"):
            read_pairs(path, **said)


def test_names_that_are_there_twice_are_not_chosen_from(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "good\tbad\tgood\nA.\tB.\tC.\n")
    assert read_pairs(path)[0].good == "A."  # the second is called good.2
    for content in ("good\tbad\tacceptable\nA.\tB.\tC.\n", "good\tGood\tbad\nA.\tC.\tB.\n"):
        with pytest.raises(BesagError, match=r"which is the good sentence\? Say good=NAME"):
            read_pairs(write(path, content))
        assert read_pairs(path, good="good")[0].good == "A."
    row = {"good": "A.", "sentence_good": "", "bad": "B."}
    with pytest.raises(BesagError, match="line 1 has sentence_good, good: which is the good sentence"):
        read_pairs(write(tmp_path / "a.jsonl", json.dumps(row)))


def test_a_small_file_of_endless_pairs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("besag.evaluation.pair_files.MOST", 10)
    path = write(tmp_path / "a.tsv", "good\tbad\n" + "A.\tB.\n" * 11)
    with pytest.raises(BesagError, match="more than 10 pairs, which are held in memory: cut it"):
        read_pairs(path)
    assert len(read_pairs(path, 3)) == 3


def test_packed_files(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress(b"good\tbad\nA.\tB.\n"))
    assert read_pairs(path)[0].paradigm == "pairs"
    path.write_bytes(b"A.\tB.\n")
    with pytest.raises(BesagError, match="cannot be read"):
        read_pairs(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"sentence_good": "A.", "sentence_bda": "B."}\n', "line 1 has no 'sentence_bad'.*sentence_bda'"),
        ("a.jsonl", b'{"good": "A.", "bad": 3}\n', "line 1: 'bad' is 3, not a text"),
        ("a.jsonl", b"{\n", "line 1 is not JSON"),
        ("a.jsonl", b"[1]\n", "neither an object nor a string"),
        ("a.jsonl", b'"A."\n', "no object"),
        ("a.tsv", b"good\tbad\nC.\n", "line 2 has 1 cells, but the table has 2 columns"),
        ("a.tsv", b"", "holds no pairs"),
        ("a.tsv", b"good\tbad\n", "holds no pairs"),
        ("a.tsv", "good\tbad\n".encode("utf-16"), "begins like UTF-16"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BesagError, match=message):
        read_pairs(path)


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    write(tmp_path / "islands.jsonl", "")
    with pytest.raises(BesagError, match=r"no such file.*Did you mean 'islands\.jsonl'"):
        read_pairs(tmp_path / "island.jsonl")


@pytest.mark.skipif(not BLIMP.is_dir(), reason="BLiMP is not here")
def test_all_of_blimp_is_read() -> None:
    pairs = [one for path in sorted(BLIMP.glob("*.jsonl")) for one in read_pairs(path)]
    assert len(pairs) == 36_000
    assert len({one.paradigm for one in pairs}) == 36
    assert len({one.phenomenon for one in pairs}) == 13  # the 12 of the paper, and "s-selection"
