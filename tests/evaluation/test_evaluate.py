"""The door: suites of all kinds on exact laws, what is refused, what is shown."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import pytest
from tests.laws import Arbitrary

import besag
from besag.errors import BesagError
from besag.evaluation.metrics import Mean, Metric
from besag.evaluation.suite import SUITES, Answer, Item, Row, Source, Suite, register
from besag.results.status import Status

LAW = besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"])
PAIRS = [("a a", "a b", "one"), ("b a", "b b", "one"), ("b b", "b b", "one"), ("b b", "a b", "two")]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.tsv"
    file.write_text("good\tbad\tparadigm\n" + "".join("\t".join(one) + "\n" for one in PAIRS))
    return file


def test_credits_and_figures_of_an_exact_law(pairs: Path) -> None:
    found = besag.evaluate(besag.load(LAW), "minimal_pairs", data=pairs, method="chain")
    assert [row["credit"] for row in found.parts[0].rows] == [1.0, 0.0, 0.5, 1.0]
    assert math.exp(found.parts[0].rows[0]["good_score"]) == pytest.approx(0.4)
    assert found["accuracy over pairs"].value == pytest.approx(62.5)
    assert found["accuracy"].value == pytest.approx((50 + 100) / 2)
    assert found["accuracy of a paradigm/one"].ties == 1
    with pytest.raises(BesagError, match=r"no figure 'acuracy'. Did you mean 'accuracy'"):
        found["acuracy"]


def test_several_models_masked_and_causal_stand_side_by_side(pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "s.tsv").write_text("good\tbad\ns0 s1\ts1 s1\n")
    models = [besag.load(Arbitrary(3)), besag.load(Arbitrary(3, "left"))]
    found = besag.evaluate(models, "minimal_pairs", data=tmp_path / "s.tsv")
    assert [part.label for part in found.parts] == ["arbitrary · pll", "arbitrary#2 · causal"]
    assert len(found.table("item")) == 2
    several = besag.evaluate(models[0], "minimal_pairs", data=tmp_path / "s.tsv", method=["pll", "chain"])
    assert [part.label for part in several.parts] == ["arbitrary · pll", "arbitrary · chain"]
    assert "arbitrary · chain" in repr(several)


def test_an_item_that_cannot_be_scored_is_counted_and_in_no_figure(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (
        {"good": "a a", "bad": "a b"}, {"good": "", "bad": "a b"},
    )))  # fmt: skip
    found = besag.evaluate(besag.load(LAW), "minimal_pairs", data=tmp_path, method="chain")
    assert found["accuracy"].n == 1
    assert found.parts[0].unscored == {Status.EMPTY: 1}
    assert found.status == "partly"
    assert any("1 item not scored: the text is empty" in fact for fact in found.facts)
    assert found.parts[0].rows[1].keys() == {"id", "group", "status"}


def test_the_limit_counts_in_groups(pairs: Path) -> None:
    found = besag.evaluate(besag.load(LAW), "minimal_pairs", data=pairs, method="chain", limit=1)
    assert [row["group"] for row in found.parts[0].rows] == ["one", "two"]


def test_what_is_wrong_is_told(pairs: Path, tmp_path: Path) -> None:
    lm = besag.load(LAW)
    (tmp_path / "none.jsonl").write_text("")
    twice = tmp_path / "twice.jsonl"
    twice.write_text('{"good": "a a", "bad": "a b", "id": 7}\n{"good": "a b", "bad": "b b", "id": 7}\n')
    for arguments, words in (
        ({"suite": "blump"}, "no suite 'blump'. Did you mean 'blimp'"),
        ({"suite": "minimal_pairs", "data": tmp_path / "none.jsonl"}, "holds no pairs"),
        ({"suite": "minimal_pairs", "data": twice}, r"have the id 'twice/7': .*line 1, and .*line 2"),
        ({"suite": "minimal_pairs", "data": pairs, "limit": 0}, "limit=0: at least 1 item"),
        ({"suite": "minimal_pairs", "data": pairs, "method": "pl"}, "no scoring method 'pl'"),
        ({"suite": "minimal_pairs", "data": pairs, "gud": "x"}, "has no option 'gud'"),
        ({"suite": "minimal_pairs", "data": pairs, "good": "gut"}, "no column 'gut'.*good, bad, paradigm"),
    ):
        with pytest.raises(BesagError, match=words):
            besag.evaluate(lm, **arguments)
    with pytest.raises(BesagError, match="no model to ask"):
        besag.evaluate([], "minimal_pairs", data=pairs)


@pytest.fixture
def lengths() -> Iterator[None]:
    """A suite that asks something of its own."""
    with mock.patch.dict(SUITES):

        @register
        @dataclass(frozen=True)
        class Lengths(Suite):
            name = "lengths"
            title = "how many tokens"
            folder, files, origin, licence = "lengths", "text", "nobody", "none"
            asked = "tokens"
            methods: ClassVar[tuple[str, ...]] = ()
            causal_methods: ClassVar[tuple[str, ...]] = ()

            def read(self, source: Source) -> Iterator[Item]:
                for table in source.tables("*.txt"):
                    for row in table.rows:
                        yield Item(str(row.place), "all", about={"text": row.values})

            def answers(
                self, lm: Any, items: Sequence[Item], method: Any, block: int | None = None
            ) -> Iterator[Answer]:
                for item in items:
                    n = len(lm.vocabulary.encode([item.about["text"]])[0].ids) if item.about["text"] else 0
                    yield Answer(item, [n], Status.OK if n else Status.EMPTY)

            def judge(self, item: Item, given: Sequence[int]) -> Row:
                return {"n": given[0]}

            def metrics(self, rows: Sequence[Row]) -> list[Metric]:
                return [Metric("tokens", Mean("n", error="sample", scale=1.0), "…", unit="")]

        yield


def test_a_suite_may_ask_whatever_it_wants(lengths: None, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a b\n\na b a b\n")
    lm = besag.load(besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"]))
    found = besag.evaluate(lm, "lengths", data=tmp_path)
    assert found["tokens"].value == 3.0
    assert found.parts[0].unscored == {Status.EMPTY: 1}
    with pytest.raises(BesagError, match="asks for tokens, and takes no method of scoring: leave out pll"):
        besag.evaluate(lm, "lengths", data=tmp_path, method="pll")
