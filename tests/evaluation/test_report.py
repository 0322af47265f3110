"""The page: whole, of itself, escaped, with every figure's n, standard error and ties."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.laws import Arbitrary

import besag
from besag.evaluation.evaluation import Evaluation, Part
from besag.evaluation.report import _marks, page
from besag.evaluation.suite import suite

BAD = "<script>alert(1)</script>"


def found(tmp_path: Path) -> Evaluation:
    (tmp_path / "p.tsv").write_text(f"good\tbad\tparadigm\ns0 s1\ts1 s1\t{BAD}\ns2\ts0\ty\ns1 s2\ts1 s2\ty\ns0\t\ty\n")
    return besag.evaluate(besag.load(Arbitrary(3)), "minimal_pairs", data=tmp_path, method=["pll", "chain"])


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_page_needs_nothing_else_and_runs_nothing(tmp_path: Path) -> None:
    text = page([found(tmp_path)], {"data": BAD})
    tags = Tags()
    tags.feed(text)
    assert "script" not in {tag for tag, _ in tags.seen}
    assert not any(name in attributes for _, attributes in tags.seen for name in ("src", "href", "onload"))
    assert "prefers-color-scheme:dark" in text
    assert "&lt;script&gt;" in text
    [chart] = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(ElementTree.fromstring(chart).findall("circle")) == 2 * 2 + 2  # two groups, two parts, two in the legend


def test_every_figure_is_there_with_n_se_and_ties(tmp_path: Path) -> None:
    one = found(tmp_path)
    text = page([one], {})
    assert text.count("<td>arbitrary · pll</td>") == 1 + len(one.figures)  # the headline, and all of them
    assert "<td>accuracy over pairs</td>" in text
    assert "a tie counts ½" in text
    assert "1 without numbers, in no figure: the text is empty" in text
    figure = one["accuracy over pairs"]
    assert f"<td>{figure.value:.1f} %</td><td>{figure.se:.1f}</td>" in text


def test_a_suite_without_numbers_has_a_page(tmp_path: Path) -> None:
    own = suite("minimal_pairs")
    rows = [{"id": "1", "group": "x", "status": "empty"}]
    text = page([Evaluation(own, (Part(own, "m", "pll", "float32", rows),))], {})
    assert "<svg" not in text
    assert "1 without numbers" in text


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (-5.0, 75.0, [-20, 0, 20, 40, 60, 80]),
        (0.0, 0.0, [-0.06, -0.04, -0.02, 0, 0.02, 0.04, 0.06]),
        (1.1, 1.2, [1.05, 1.1, 1.15, 1.2, 1.25]),
    ],
)
def test_an_axis_has_round_marks_around_its_numbers(low: float, high: float, marks: list[float]) -> None:
    assert list(_marks(low, high)) == pytest.approx(marks)


def test_of_figures_of_one_name_the_first_says_what_it_means() -> None:
    own = suite("reading_times", measures="A,B", folds=2)
    draw = np.random.default_rng(0)
    rows = [
        {"id": str(k), "group": "x", "status": "ok", "words": ["a", "bb", "c"], "positions": [1, 2, 3],
         "surprisal": draw.normal(size=3).tolist(), "time:A": draw.normal(size=3).tolist(),
         "time:B": draw.normal(size=3).tolist()}
        for k in range(20)
    ]  # fmt: skip
    text = page([Evaluation(own, (Part(own, "m", "chain", "float32", rows),))], {})
    told = text[text.index("<li><b>delta log-likelihood") :].split("</li>")[0]
    assert "(A)" in told  # the headline's measure
