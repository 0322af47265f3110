"""The reading task: surprisals by plain forward passes, scores by least squares written out, files checked."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError
from besag.evaluation.saved import write
from besag.evaluation.suites.babylm_reading import explained, surprisals
from besag.language_model import LanguageModel

HEAD = (
    "item,word,prev_item,prev_word,Subtlex_log10,length,context_length,prev_length,"
    "RTfirstfix,RTfirstpass,RTgopast,RTrightbound,self_paced_reading_time"
)


@pytest.fixture(scope="module")
def lm() -> LanguageModel:
    return LanguageModel(Transformer(tiny("bert").eval(), vocabulary("bert"), "bert"))


def table(words: int = 60) -> str:
    draw = np.random.default_rng(0)
    rows = []
    for number in range(words):
        context, word = [("the cat", "sleeps"), ("", "the"), ("a man sleeps on", "the")][number % 3]
        before = ("the", "cat") if context else ("", "")
        length = "" if not context else "3"
        times = ",".join(f"{one:.3f}" for one in draw.normal(200, 20, 5))
        numbers = f"{draw.normal():.3f},{len(word) + draw.integers(5)},{number % 7},{length}"
        rows.append(f"{context},{word},{before[0]},{before[1]},{numbers},{times}")
    return "\n".join([HEAD, *rows]) + "\n"


def test_a_word_is_asked_at_the_first_of_three_masks_token_by_token(lm) -> None:
    """As published: text and masks are tokenised together, and each piece is written behind the text."""
    tokenizer, network = lm.vocabulary.tokenizer, lm.conditionals.model

    def published(sentence: str, word: str) -> float:
        total = 0.0
        for place, token in enumerate(tokenizer(word, add_special_tokens=False)["input_ids"]):
            piece = tokenizer.decode(token)
            target = token if place == 0 else tokenizer(piece, add_special_tokens=False)["input_ids"][0]
            ids = tokenizer(sentence + 3 * tokenizer.mask_token, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                total -= float(torch.log_softmax(network(ids).logits[0, -4], -1)[target])
            sentence += piece
        return total

    words = [("the cat", "sleeps"), ("None", "the"), ("a man", "unbelievable"), ("the", "cats")]
    assert any(len(tokenizer(word, add_special_tokens=False)["input_ids"]) > 1 for _, word in words)
    assert surprisals(lm, words) == pytest.approx([published(*one) for one in words], abs=1e-4)


def test_what_surprisal_explains_of_what_is_left_open() -> None:
    draw = np.random.default_rng(1)
    base, pred = draw.normal(size=(50, 2)), draw.normal(size=50)
    y = base[:, 0] - base[:, 0] * base[:, 1] + 0.3 * pred + 0.1 * draw.normal(size=50)
    r2 = []
    for x in ([], [pred]):
        design = np.stack([np.ones(50), base[:, 0], base[:, 1], base[:, 0] * base[:, 1], *x], 1)
        fitted = design @ np.linalg.solve(design.T @ design, design.T @ y)
        r2.append(1 - ((y - fitted) ** 2).sum() / ((y - y.mean()) ** 2).sum())
    assert explained(y, base, pred) == pytest.approx(100 * (r2[1] - r2[0]) / (1 - r2[0]))
    assert math.isnan(explained(base[:, 0], base, pred))  # the baselines leave nothing open


def test_a_run_with_its_predictions(lm, tmp_path: Path) -> None:
    data = tmp_path / "reading"
    data.mkdir()
    (data / "reading_data.csv").write_text(table())
    found = besag.evaluate(lm, "babylm_reading", data=data)
    rows = found.parts[0].rows
    assert rows[1]["item"] == "None"  # what the pipeline shows where there is no context
    assert rows[0]["pred"] == pytest.approx(surprisals(lm, [("the cat", "sleeps")])[0], abs=1e-5)
    assert rows[0]["prev_pred"] == pytest.approx(surprisals(lm, [("the", "cat")])[0], abs=1e-5)
    assert "prev_pred" not in rows[1]
    each = [one.value for one in found.figures if one.group.startswith("RT")]
    assert len(each) == 4
    assert found["eye tracking"].value == pytest.approx(np.mean(each))
    assert found["eye tracking"].n == 60
    whole = [row for row in rows if "prev_pred" in row]
    x = np.array([[row[n] for n in ("Subtlex_log10", "length", "context_length", "prev_length", "prev_pred")]
                  for row in whole])  # fmt: skip
    y, pred = (np.array([row[name] for row in whole]) for name in ("self_paced_reading_time", "pred"))
    assert found["self-paced reading"].value == pytest.approx(explained(y, x, pred))
    write(tmp_path, [found], {})
    sent = json.loads((tmp_path / "babylm_reading-predictions.json").read_text())["reading"]["predictions"]
    assert sent[0] == {"id": 0, "pred": rows[0]["pred"], "prev_pred": rows[0]["prev_pred"]}
    assert sent[1]["prev_pred"] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "\nthe,,,,1,2,3,,1,1,1,1,1\n", "line 2 has no 'word'"),
        (HEAD + "\nthe,cat,,,much,2,3,,1,1,1,1,1\n", "line 2: Subtlex_log10 is 'much', which is no number"),
        ("item,word\nthe,cat\n", "has no 'prev_item'; it has item, word"),
        (HEAD + "\nthe,cat,,,1,2,3,,1,1,1,1,1\n", "1 words with RTfirstfix are too few to fit 8 coefficients"),
        (HEAD + "\nthe,cat,,,1,2,3,,,,,,\n", "no word has a time"),
    ],
)
def test_what_is_wrong_with_a_file(lm, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "reading_data.csv").write_text(text)
    with pytest.raises(BesagError, match=said):
        print(besag.evaluate(lm, "babylm_reading", data=tmp_path))
