"""LAMA's cloze on an exact law, by hand; answers of several tokens; the two layouts of its files."""

import json

import numpy as np
import pytest
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError
from besag.language_model import LanguageModel

WORDS = ["a", "b", "c", "in"]
WEIGHTS = np.random.default_rng(6).gamma(0.5, size=(4, 4, 4)) + 0.01


@pytest.fixture(scope="module")
def lm():
    return besag.load(besag.Table(WEIGHTS, symbols=WORDS))


def write(folder, rows, name="P1.jsonl"):
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_by_hand(lm, tmp_path):
    answers = ["c", "a", "b", "a"]
    rows = [{"masked_sentences": ["a in [MASK]"], "obj_label": one, "uuid": str(at)} for at, one in enumerate(answers)]
    found = besag.evaluate(lm, "lama", data=write(tmp_path, rows))
    law = WEIGHTS[0, 3]  # of the third place, after "a in"
    ranks = [1 + sum(law[WORDS.index(other)] > law[WORDS.index(one)] for other in "abc") for one in answers]
    whole = [1 + int((law > law[WORDS.index(one)]).sum()) for one in answers]
    assert [row["rank"] for row in found.parts[0].rows] == ranks
    assert [row["vocabulary_rank"] for row in found.parts[0].rows] == whole
    assert found["P@1"].value == pytest.approx(100 * np.mean(np.array(ranks) == 1))
    assert found["P@10"].value == 100
    assert found["P@1"].ties is None  # equal scores share a rank, and are not counted
    assert found["MRR"].value == pytest.approx(np.mean(1 / np.array(ranks)))
    assert found["P@1 in the vocabulary"].value == pytest.approx(100 * np.mean(np.array(whole) == 1))


def test_answers_of_several_tokens_by_the_chain_rule(tmp_path):
    lm = LanguageModel(Transformer(tiny("bert"), vocabulary("bert"), "bert"))
    rows = [{"masked_sentences": ["The cats sleep on [MASK]."], "obj_label": one} for one in ("the mat", "dogs")]
    found = besag.evaluate(lm, "lama", data=write(tmp_path, rows))
    scores = lm.score(["dogs", "the mat"], "chain", prefix="The cats sleep on ", suffix=".", separator="")
    best = max(scores, key=lambda one: one.total).text
    assert {row["chosen"] for row in found.parts[0].rows} == {best}
    assert found.parts[0].rows[0]["tokens"] > 1
    assert "vocabulary_rank" not in found.parts[0].rows[0]
    assert found["P@1 of several tokens"].n == sum(row["tokens"] > 1 for row in found.parts[0].rows)


def test_templates_of_relations(lm, tmp_path):
    write(tmp_path, [{"relation": "P1", "template": "[X] in [Y]"}], "relations.jsonl")
    write(tmp_path, [{"sub_label": "a", "obj_label": "b"}, {"sub_label": "b", "obj_label": "c"}])
    found = besag.evaluate(lm, "lama", data=tmp_path)
    assert [row["sentence"] for row in found.parts[0].rows] == ["a in [MASK]", "b in [MASK]"]
    assert besag.evaluate(lm, "lama", data=tmp_path / "P1.jsonl")["P@1"].value == found["P@1"].value


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"masked_sentences": ["a in b"], "obj_label": "b"}, "needs one [MASK], and has 0"),
        ({"masked_sentences": ["[MASK] in [MASK]"], "obj_label": "b"}, "needs one [MASK], and has 2"),
        ({"masked_sentences": "a in [MASK]", "obj_label": "b"}, "not a list of texts"),
        ({"sub_label": "a", "obj_label": "b"}, "has no 'masked_sentences'"),
        ({"masked_sentences": ["a in [MASK]"]}, "has no 'obj_label'"),
    ],
)
def test_what_is_wrong_is_quoted(lm, tmp_path, row, said):
    with pytest.raises(BesagError) as error:
        besag.evaluate(lm, "lama", data=write(tmp_path, [row]))
    assert said in str(error.value)
