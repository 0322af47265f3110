"""The page: whole, of itself, escaped, with every figure's n, standard error and ties."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from tests.laws import Arbitrary

import besag
from besag.evaluation.evaluation import Evaluation, Part
from besag.evaluation.report import page
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
