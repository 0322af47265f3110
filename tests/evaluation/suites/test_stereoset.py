"""lms, ss and icat by hand, and items of StereoSet's JSON on an exact law."""

import json

import numpy as np
import pytest

import besag
from besag.errors import BesagError
from besag.evaluation.metrics import evaluate_metric
from besag.evaluation.suite import suite

WORDS = ["the", "nurse", "kind", "rude", "blue"]
WEIGHTS = np.random.default_rng(7).gamma(0.5, size=(5, 5, 5)) + 0.01


@pytest.fixture(scope="module")
def lm():
    return besag.load(besag.Table(WEIGHTS, symbols=WORDS))


def example(id, words, target="nurse", context="the nurse BLANK", bias="profession"):
    labels = ("stereotype", "anti-stereotype", "unrelated")
    sentences = [{"id": label, "sentence": context.replace("BLANK", word), "gold_label": label, "labels": []}
                 for word, label in zip(words, labels, strict=True)]  # fmt: skip
    return {"id": id, "target": target, "bias_type": bias, "context": context, "sentences": sentences}


def write(folder, inside, between=()):
    whole = {"version": "1.0", "data": {"intrasentence": list(inside), "intersentence": list(between)}}
    (folder / "dev.json").write_text(json.dumps(whole))
    return folder


def three(sense, prefers, terms):
    rows = [{"group": "x", "kind": "x", "tied": 0, "sense": one, "prefers": two, "term": term}
            for one, two, term in zip(sense, prefers, terms, strict=True)]  # fmt: skip
    found = [evaluate_metric(one, rows) for one in suite("stereoset").metrics(rows) if not one.group]
    return {one.name: one.value for one in found}


def test_the_three_numbers_by_hand():
    """Term x: lms (1 + ½)/2, ss 1; term y: lms 1, ss 0. Means over terms: 87.5, 50; icat 87.5."""
    found = three([1, 0.5, 1], [1, 1, 0], ["x", "x", "y"])
    assert found == pytest.approx({"lms": 87.5, "ss": 50, "icat": 87.5})
    assert three([1], [1], ["x"])["icat"] == 0  # always makes sense, always takes the stereotype's side


def test_intrasentence(lm, tmp_path):
    orders = [("kind", "rude", "blue"), ("blue", "kind", "rude")]
    found = besag.evaluate(
        lm, "stereoset", data=write(tmp_path, [example(str(at), one) for at, one in enumerate(orders)])
    )
    law = dict(zip(WORDS, WEIGHTS[0, 1], strict=True))
    for row, (stereo, anti, unrelated) in zip(found.parts[0].rows, orders, strict=True):
        assert row["prefers"] == float(law[stereo] > law[anti])
        assert row["sense"] == (float(law[stereo] > law[unrelated]) + float(law[anti] > law[unrelated])) / 2
        assert row["stereotype"] == pytest.approx(law[stereo] / sum(law.values()))
    expected = three(*([row[key] for row in found.parts[0].rows] for key in ("sense", "prefers", "term")))
    for name, value in expected.items():
        assert found[name].value == pytest.approx(value)


def test_intersentence_after_its_context(lm, tmp_path):
    labels = {"kind": "stereotype", "rude": "anti-stereotype", "blue": "unrelated"}
    sentences = [{"sentence": f"nurse {word}", "gold_label": label} for word, label in labels.items()]
    one = {"id": "1", "target": "nurse", "bias_type": "gender", "context": "the", "sentences": sentences}
    found = besag.evaluate(lm, "stereoset", data=write(tmp_path, [], [one]), kind="intersentence")
    [row] = found.parts[0].rows
    law = WEIGHTS[0] / WEIGHTS[0].sum()
    assert row["stereotype"] == pytest.approx(np.log(law[1, 2]) / 2)


def test_ties_go_as_published(tmp_path):
    lm = besag.load(besag.Table(np.ones((5, 5, 5)), symbols=WORDS))
    found = besag.evaluate(lm, "stereoset", data=write(tmp_path, [example("1", ("kind", "rude", "blue"))]))
    assert (found["ss"].value, found["lms"].value, found["ss"].ties) == (0, 0, 1)


def test_what_is_wrong_is_quoted(lm, tmp_path):
    wrong = example("1", ("kind", "rude", "blue"))
    wrong["sentences"].pop()
    with pytest.raises(BesagError, match="lacks 'unrelated'"):
        besag.evaluate(lm, "stereoset", data=write(tmp_path, [wrong]))
    with pytest.raises(BesagError, match="needs one BLANK"):
        besag.evaluate(lm, "stereoset", data=write(tmp_path, [example("1", ("a", "b", "c"), context="the nurse")]))
    for text in ("[]", '{"data": 3}'):
        (tmp_path / "dev.json").write_text(text)
        with pytest.raises(BesagError, match="is not StereoSet's JSON"):
            besag.evaluate(lm, "stereoset", data=tmp_path)
    (tmp_path / "dev.json").write_text("{")
    with pytest.raises(BesagError, match="is no JSON"):
        besag.evaluate(lm, "stereoset", data=tmp_path)
