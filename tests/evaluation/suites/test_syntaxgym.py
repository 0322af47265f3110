"""SyntaxGym: surprisals of regions by hand on an exact law, predictions counted as published, files checked."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

import besag
from besag.errors import BesagError
from besag.evaluation.suites.syntaxgym import items_of

DATA = Path(os.environ.get("BESAG_DATA", Path(__file__).parents[4] / "shared" / "data")) / "syntaxgym"
LAW = besag.Table([[0.4, 0.1], [0.2, 0.3]], symbols=["a", "b"])  # p(a) = ½, p(a | a) = 0.8, p(a | b) = 0.4


def suite(items: list[dict[str, str]], *formulas: str, name: str = "toy") -> dict[str, Any]:
    """Each item: condition → its regions, with | between."""
    return {
        "meta": {"name": name, "metric": "sum"},
        "predictions": [{"type": "formula", "formula": one} for one in formulas],
        "items": [
            {"item_number": place, "conditions": [
                {"condition_name": condition, "regions": [
                    {"region_number": number, "content": part} for number, part in enumerate(text.split("|"), 1)]}
                for condition, text in item.items()]}
            for place, item in enumerate(items, 1)
        ],
    }  # fmt: skip


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_surprisals_and_predictions_by_hand(tmp_path: Path) -> None:
    items = [{"good": "a|a", "bad": "a|b"}, {"good": "b|a", "bad": "b|b"}, {"good": "a||a", "bad": "a||a"}]
    first = "(2;%good%) < (2;%bad%)"
    write(tmp_path / "one.json", suite(items[:2], first, "(*;%good%) > 0"))
    write(tmp_path / "two.json", suite(items[2:], "(3;%good%) > (3;%bad%)", name="tie"))
    found = besag.evaluate(besag.load(LAW), "syntaxgym", data=tmp_path)
    one, two, tie = found.parts[0].rows
    assert one["surprisal:good"] == pytest.approx([1, -math.log2(0.8)])
    assert one["surprisal:bad"] == pytest.approx([1, -math.log2(0.2)])
    assert two["surprisal:good"] == pytest.approx([1, -math.log2(0.4)])
    assert (one["holds"], two["holds"]) == ([1.0, 1.0], [0.0, 1.0])  # b is likelier than a after b
    assert (one["credit"], two["credit"]) == (1.0, 0.0)  # all predictions of an item must hold
    assert tie["surprisal:good"] == pytest.approx([1, 0, -math.log2(0.8)])  # an empty region is 0
    assert (tie["credit"], tie["ties"]) == (0.0, 1)
    assert found["accuracy/toy"].value == 50.0
    assert found["accuracy/toy"].se == pytest.approx(100 * math.sqrt(0.25 / 2))
    assert (found["accuracy/tie"].value, found["accuracy/tie"].ties) == (0.0, 1)
    assert found["accuracy"].value == 25.0  # the mean over suites
    assert [found[f"prediction/toy #{place}"].value for place in (1, 2)] == [50.0, 100.0]


def test_regions_make_a_sentence(tmp_path: Path) -> None:
    items = [{"a": "As the man| shot |,| the woman|  |yelled|.", "b": "As|the man shot||her|yelled|at|us"}]
    path = write(tmp_path / "x.json", suite(items, "(3;%a%) > (3;%b%)"))
    [item] = items_of(path)
    assert [ask.text for ask in item.asks] == ["As the man shot, the woman yelled.", "As the man shot her yelled at us"]
    numbers, regions = item.about["regions"]["a"]
    text = item.asks[0].text
    assert [text[start:end] for start, end in regions.spans] == [
        "As the man",
        "shot",
        ",",
        "the woman",
        "",
        "yelled",
        ".",
    ]
    assert numbers == [1, 2, 3, 4, 5, 6, 7]


GOOD = suite([{"a": "x|y"}], "(1;%a%) < (2;%a%)")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is no JSON"),
        ([], "is no suite"),
        ({**GOOD, "predictions": []}, "has no predictions"),
        ({key: GOOD[key] for key in ("meta", "items")}, "has no 'predictions'; it has meta, items"),
        (suite([{"a": "x|y"}], "(1;%a%) <"), r"x.json: the formula '\(1;%a%\) <', at character 10"),
        (suite([{"a": "x|y"}], "(1;%aa%) < 3"), "item 1: .* condition 'aa', and there are a. Did you mean 'a'"),
        (suite([{"a": "x|y"}], "(3;%a%) < 3"), "speaks of region 3 of 'a', which has 1, 2"),
        (
            {**GOOD, "items": [{"item_number": 4, "conditions": 3}]},
            "item 4: 'conditions' is 3, and should be of type list",
        ),
        ({**GOOD, "items": [3]}, "3 among the items is no object"),
        ({**GOOD, "items": []}, "holds no item of 'syntaxgym'"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path: Path, content: Any, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(BesagError, match=said):
        besag.evaluate(besag.load(LAW), "syntaxgym", data=path)


@pytest.mark.skipif(not DATA.exists(), reason="the SyntaxGym files are not there: set BESAG_DATA")
def test_the_published_files() -> None:
    files = sorted(DATA.glob("*.json"))
    assert all(list(items_of(file)) for file in files)
    found = besag.evaluate(besag.load(), "syntaxgym", data=DATA, method="unmasked", limit=1)
    assert found["accuracy"].n == len(files)
    assert not found.parts[0].unscored
