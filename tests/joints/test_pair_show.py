"""A joint in words and data."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.joints.example_pairs import casino, make, worded
from tests.joints.tables import single

from besag.joints import construction
from besag.results.tables import display_width

# ---- words


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("mlm", {}, "mlm"),
        ("order", {}, "order"),
        ("order", {"direction": "ab"}, "order a→b"),
        ("order", {"direction": "ba"}, "order b→a"),
        ("ag", {"weights": "uniform"}, "ag"),
        ("ag", {"weights": "marginal", "limit": 7}, "ag marginal limit=7"),
        ("ag", {"paper": True}, "ag paper"),
        ("hcb", {"pivot": 3}, "hcb pivot=3"),
    ],
)
def test_a_label_names_what_is_unusual(name, options, said):
    assert construction(name, **options).label == said


def test_facts_say_what_the_numbers_are():
    said = " · ".join(casino().facts)
    assert said.startswith(
        "ag: nearest conditionals (Arnold-Gokhale) · a probability of pairs of tokens: 4 × 3 candidates"
    )
    for fact in ("iterations ", "residual ", "entropy ", "mutual information ", "tiny", "float32"):
        assert f" · {fact}" in said


def test_an_unfinished_construction_says_so_first():
    joint = make("stationary", limit=1)
    assert joint.facts[0].startswith("stationary limit=1 NOT CONVERGED: residual")
    assert "NOT CONVERGED" in repr(joint)
    assert "NOT CONVERGED" in joint._repr_html_()
    assert "NOT CONVERGED" not in repr(make("ag"))


def test_a_pivot_is_named_by_its_token():
    joint = casino("hcb")
    id = int(joint.built.details["pivot"])
    assert f"pivot {joint.vocabulary.token(id)}" in joint.facts


def test_a_forced_token_is_confessed():
    joint = casino()
    forced = replace(joint, unaries=replace(joint.unaries, forced=(True, False)))
    assert "▁man of the text was added to the candidates" in forced.facts
    assert "added" not in " ".join(joint.facts)


# ---- the table


def test_the_table_reads_as_expected():
    joint = casino("order", direction="ab")
    title, body, facts = joint._text(200).split("\n\n")
    assert title == "'The man is at the casino.' · a = ▁man (token 2), b = ▁is (token 3)"
    head, *lines = body.split("\n")
    assert head.split() == ["a", "b", "prob", "log", "q"]
    assert [line.split()[:3] for line in lines[:10]] == [
        [str(rank), one.a, one.b] for rank, one in enumerate(joint.top(10), 1)
    ]
    assert sum("← the text" in line for line in lines) == 1
    assert f"{joint.gold.prob:.2%}" in next(line for line in lines if "← the text" in line)
    assert facts.startswith("order a→b: chain rule")


def test_the_text_s_own_pair_is_shown_with_its_rank_wherever_it_stands():
    joint = next(joint for joint in (make(m=6, k=6, seed=seed) for seed in range(50)) if joint.metrics().rank > 10)
    last = joint._text(200).split("\n\n")[1].split("\n")[-1]
    assert last.split()[:3] == [str(joint.metrics().rank), "s1", "s2"]
    assert last.endswith("← the text")
    assert "← the text" not in make(gold=False)._text(200)


@given(st.integers(30, 200))
def test_columns_line_up_whatever_the_letters(width):
    joint = make(m=4, k=4, gold=False, symbols=["man", "日本語", "שלום", "e\u0301"])
    head, *body = joint._text(width).split("\n\n")[1].split("\n")
    assert {display_width(line) for line in body} == {display_width(head)}
    assert any("שלום\u2069" in line for line in body)  # isolated, so that a terminal leaves it in its column


def test_the_terminal_decides_the_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    narrow = repr(casino()).split("\n")
    monkeypatch.setenv("COLUMNS", "300")
    assert len(narrow) > len(repr(casino()).split("\n"))


# ---- the notebook


class Reader(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.titles, self.shown, self.depth = [], [], "", 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.depth += 1
        self.titles += [value for name, value in attrs if name == "title"]

    def handle_endtag(self, tag):
        self.depth -= 1

    def handle_data(self, data):
        self.shown += data


def test_html_escapes_everything_and_shows_the_text_on_hover():
    joint = worded("<b> [MASK] [MASK] & more", (-6, -5), ["▁man", '"'], ["'", "▁is"])
    page = Reader(replace(joint, model="<i>tiny</i>")._repr_html_())
    assert {*page.tags} == {"div", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.depth == 0
    assert "<b> [MASK] [MASK] & more" in page.shown
    assert "<i>tiny</i>" in page.shown
    assert page.titles == [joint.text(one.a, one.b) for one in joint.top(4)]


def test_html_bars_grow_with_the_probability():
    page = make("mlm", 3, 3)._repr_html_()
    widths = [float(part.split("%")[0].rsplit(" ", 1)[1]) for part in page.split("rgba(226,72,38,.35)")[1:]]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == 100.0


# ---- data


def test_a_dictionary_holds_every_fact_and_survives_json():
    joint = casino("stationary")
    record = json.loads(json.dumps(joint.to_dict(), allow_nan=False))
    assert record["text"] == "The man is at the casino."
    assert record["places"][0] == {"name": "a", "position": 2, "token": "▁man", "span": [4, 7]}
    assert record["method"] == "stationary"
    assert record["options"]["limit"] == joint.construction.limit
    assert (record["status"], record["unit"], record["outcomes"]) == ("ok", "nats", [4, 3])
    assert record["lost"]["hidden_a"] == 0.069
    assert record["gold"]["log_prob"] == joint.gold.log_prob
    assert record["gold"]["rank"] == joint.metrics().rank == record["metrics"]["rank"]
    assert record["details"]["iterations"] == joint.details["iterations"]
    assert record["facts"] == joint.facts
    assert [(row["a"], row["b"], row["prob"]) for row in record["top"]] == [
        (one.a, one.b, one.prob) for one in joint.top(20)
    ]
    assert record["top"][0]["text"] == joint.text(*joint.top(1)[0].tokens)


def test_a_dictionary_without_gold_has_none():
    record = json.loads(json.dumps(make(gold=False).to_dict(), allow_nan=False))
    assert record["gold"] is None
    assert record["metrics"]["pair_nll"] is None
    assert record["metrics"]["all_forward"] > 0


def test_a_frame_has_one_row_a_pair():
    pytest.importorskip("pandas")
    joint = casino()
    frame = joint.to_pandas(5)
    assert frame.index.tolist() == [1, 2, 3, 4, 5]
    assert frame["a"].tolist() == [one.a for one in joint.top(5)]
    assert frame["text"].tolist() == [joint.text(one.a, one.b) for one in joint.top(5)]
    assert frame["id_b"].tolist() == [one.b.id for one in joint.top(5)]
    np.testing.assert_array_equal(np.exp(frame["log_prob"]), frame["prob"])
    assert frame.attrs["normalised"] == joint.normalised
    assert len(joint.to_pandas()) == 12


def test_a_joint_in_single_precision_says_what_can_be_trusted():
    joint = casino()
    assert not any("float32:" in fact for fact in joint.facts)
    rough = replace(joint, unaries=single(joint.unaries)).by(construction("ag"))
    assert "in float32: pairs above 0.1% are right to 2%, rarer ones may be off by a factor" in rough.facts
    assert "in float32: a pair is right to 0.01%" in rough.by(construction("order")).facts
