"""BEAR on an exact law whose scores are written down by plain loops, and against lm-pub-quiz where that is installed.

BESAG_LM_PUB_QUIZ=1 pytest tests/evaluation/suites/test_bear.py       with lm-pub-quiz on the path
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError
from besag.evaluation.suites.bear import statement
from besag.language_model import LanguageModel

WORDS = ["Ann", "Bob", "likes", "loves", "jam", "tea"]
WEIGHTS = np.random.default_rng(5).gamma(0.5, size=(6, 6, 6)) + 0.01
TEMPLATES = ["[X] likes [Y]", "[X] loves [Y]"]
ANSWERS = ["jam", "tea"]
DATA = Path(os.environ.get("BESAG_DATA", Path(__file__).parents[4] / "shared" / "data")) / "bear"


def write(folder, facts, templates=TEMPLATES, answers=ANSWERS, name="P1"):
    rows = [{"sub_label": subject, "answer_idx": right} for subject, right in facts]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    about = {name: {"templates": templates, "answer_space_labels": answers}}
    (folder / "metadata_relations.json").write_text(json.dumps(about))
    return folder


def pll(text):
    ids = [WORDS.index(word) for word in text.split()]
    total = 0.0
    for place in range(3):
        column = WEIGHTS[tuple(slice(None) if at == place else ids[at] for at in range(3))]
        total += np.log(column[ids[place]] / column.sum())
    return total


def test_by_hand(tmp_path):
    facts = [("Ann", 0), ("Bob", 0), ("Ann", 1)]
    lm = besag.load(besag.Table(WEIGHTS, symbols=WORDS))
    found = besag.evaluate(lm, "bear", data=write(tmp_path, facts))
    correct = [
        [int(np.argmax([pll(f"{subject} {verb} {one}") for one in ANSWERS]) == right) for verb in ("likes", "loves")]
        for subject, right in facts
    ]
    assert [row["correct"] for row in found.parts[0].rows] == correct
    shares = np.mean(correct, 1)
    assert found["accuracy"].value == pytest.approx(100 * shares.mean())
    assert found["accuracy"].se == pytest.approx(100 * shares.std(ddof=1) / np.sqrt(3))
    assert found["accuracy"].chance == pytest.approx(50)
    for template in (1, 2):
        alone = besag.evaluate(lm, "bear", data=tmp_path, template=template)
        expected = 100 * np.mean([one[template - 1] for one in correct])
        assert alone["accuracy"].value == pytest.approx(expected)
        assert found[f"accuracy by template {template}"].value == pytest.approx(expected)


def test_a_statement_begins_with_a_capital():
    assert statement("the capital of [X] is [Y], [Y]!", "peru", "lima") == "The capital of peru is lima, lima!"
    assert statement("[Y] is in [X].", "[Y]", "lima") == "Lima is in [Y]."  # a subject is never filled in again


def test_of_equal_answers_the_first_wins(tmp_path):
    lm = besag.load(besag.Table(np.ones((6, 6, 6)), symbols=WORDS))
    found = besag.evaluate(lm, "bear", data=write(tmp_path, [("Ann", 0), ("Ann", 1)]))
    assert [row["credit"] for row in found.parts[0].rows] == [1, 0]
    assert found["accuracy"].ties == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"facts": [("Ann", 2)]}, "answer_idx is '2'; 'P1' has the answers 0 to 1"),
        ({"templates": ["[X] likes tea"]}, "has no [Y] for the answer"),
        ({"templates": []}, "needs 'templates' and 'answer_space_labels'"),
    ],
)
def test_what_is_wrong_is_quoted(tmp_path, change, said):
    given = {"facts": [("Ann", 0)], **change}
    with pytest.raises(BesagError) as error:
        besag.evaluate(besag.load(besag.Table(WEIGHTS, symbols=WORDS)), "bear", data=write(tmp_path, **given))
    assert said in str(error.value)


def test_no_templates(tmp_path):
    write(tmp_path, [("Ann", 0)])
    lm = besag.load(besag.Table(WEIGHTS, symbols=WORDS))
    with pytest.raises(BesagError, match="template=3: 'P1' has 2"):
        besag.evaluate(lm, "bear", data=tmp_path, template=3)
    (tmp_path / "metadata_relations.json").write_text("[]")
    with pytest.raises(BesagError, match="no object of relations"):
        besag.evaluate(lm, "bear", data=tmp_path)
    (tmp_path / "metadata_relations.json").unlink()
    with pytest.raises(BesagError, match="is missing"):
        besag.evaluate(lm, "bear", data=tmp_path)


@pytest.mark.skipif(not DATA.exists(), reason="the BEAR files are not there: set BESAG_DATA")
def test_the_published_files():
    from besag.evaluation.running import items_of
    from besag.evaluation.suite import suite

    items = items_of(suite("bear", template=1), DATA)
    assert len(items) == 7731
    assert len({item.group for item in items}) == 60
    assert sum(len(item.asks) for item in items) == 209_499


@pytest.mark.slow
@pytest.mark.skipif("BESAG_LM_PUB_QUIZ" not in os.environ, reason="lm-pub-quiz is not asked for: BESAG_LM_PUB_QUIZ=1")
def test_scores_and_accuracy_are_those_of_lm_pub_quiz(tmp_path):
    import lm_pub_quiz

    facts = [("The cat", 0), ("A traveller", 1), ("dogs", 2), ("The mat", 0)]
    answers = ["the mat", "souvenirs", "sleeping dogs", "unbelievable cats"]
    write(tmp_path, facts, ["[X] sleep on [Y].", "did [Y] bark at [X]?"], answers)
    rows = [json.loads(line) | {"obj_id": f"Q{right}", "sub_id": "Q"} for line, (_, right) in
            zip((tmp_path / "P1.jsonl").read_text().splitlines(), facts, strict=True)]  # fmt: skip
    (tmp_path / "P1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    about = json.loads((tmp_path / "metadata_relations.json").read_text())
    about["P1"]["answer_space_ids"] = [f"Q{at}" for at in range(len(answers))]
    (tmp_path / "metadata_relations.json").write_text(json.dumps(about))
    network, words = tiny("bert").eval(), vocabulary("bert")
    lm = LanguageModel(Transformer(network, words, "bert"))
    found = besag.evaluate(lm, "bear", data=tmp_path)
    theirs = lm_pub_quiz.Evaluator.from_model(network, model_type="MLM", tokenizer=words.tokenizer, device="cpu")
    result = theirs.evaluate_dataset(lm_pub_quiz.Dataset.from_path(tmp_path), batch_size=8)
    assert found["accuracy"].value == pytest.approx(100 * float(result.get_metrics("accuracy")))
    for _, row in result[0].instance_table.iterrows():
        template = about["P1"]["templates"][row["template_index"]]
        texts = [statement(template, row["sub_label"], one) for one in answers]
        mine = [one.total for one in lm.score(texts, "word_l2r")]
        np.testing.assert_allclose(mine, row["pll_scores"], atol=1e-4)
