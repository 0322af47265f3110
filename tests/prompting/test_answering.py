"""Answers on exact tables and tiny networks: what is hidden and shown, which law labels and written answers have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.networks import tiny, vocabulary
from tests.samplers.exact import Hashed

import besag
from besag.conditionals.table import Table
from besag.errors import BesagError, TooLong
from besag.prompting.shots import drawn, lead

SYMBOLS = ["a", "b", "c"]
LAW = np.random.default_rng(4).dirichlet(np.ones(81)).reshape(3, 3, 3, 3)
ROWS = [{"x": x, "y": y, "label": "same" if x == y else "other"} for x in "abc" for y in "abc"]
WORDS = {"same": ["a b", "b b"], "other": ["c a"]}


@pytest.fixture(scope="module")
def table() -> Any:
    return besag.load(Table(LAW, symbols=SYMBOLS), progress=False)


@pytest.fixture(scope="module")
def network() -> Any:
    return besag.load((tiny("bert"), vocabulary("bert").tokenizer), progress=False, device="cpu")


def test_a_label_has_the_probability_of_its_words_given_the_prompt(table: Any) -> None:
    """Of a joint the chain rule is the conditional law itself: two tokens in two masks, words of a label added."""
    found = besag.answer(table, ROWS, "{x} [MASK] {y}", WORDS)
    for row, one in zip(ROWS, found, strict=True):
        given = LAW[SYMBOLS.index(row["x"]), :, :, SYMBOLS.index(row["y"])]
        given = given / given.sum()
        same, other = given[0, 1] + given[1, 1], given[2, 0]
        assert one.log_probs == pytest.approx({"same": np.log(same), "other": np.log(other)})
        assert one.shares["same"] == pytest.approx(same / (same + other))
        assert one.answer == ("same" if same > other else "other")
        assert (one.prompt, one.right) == (f"{row['x']} [MASK] {row['y']}", row["label"])
    assert found.accuracy == sum(one.answer == one.right for one in found) / 9
    assert (found.majority, found.chance) == (pytest.approx(6 / 9), 0.5)
    assert f"{100 * found.accuracy:.1f}"[:2] in found.facts[0]
    assert "chance" in found.facts[0]


def test_the_prompt_is_shown_and_the_answer_alone_is_hidden(network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one pass for all labels of one token, and by the network's own numbers."""
    seen: list[torch.Tensor] = []
    plain = network.conditionals.rows
    monkeypatch.setattr(network.conditionals, "rows", lambda asked: (seen.append(asked.ids), plain(asked))[1])
    [one] = besag.answer(network, [{"t": "the cat"}], "{t} sat on {target} .", ["mat", "dogs", "table"])
    words = network.vocabulary
    ids = words.encode([f"the cat sat on {words.mask_token} ."])[0].ids
    assert [part.tolist() for part in seen] == [[ids.tolist()]]
    with torch.no_grad():
        law = network.model(input_ids=torch.as_tensor(ids)[None]).logits[0, ids == words.mask_id][0].log_softmax(-1)
    expected = {word: float(law[words.id(word)]) for word in ("mat", "dogs", "table")}
    assert one.log_probs == pytest.approx(expected, abs=1e-5)
    assert one.right is None


def test_solved_examples_stand_before_every_row(network: Any) -> None:
    examples = [{"t": "dogs", "label": "x"}, {"t": "the mat", "label": "y"}, {"t": "table", "label": "y"}]
    words = {"x": ["cat", "on"], "y": ["mat"]}
    found = besag.answer(network, [{"t": "the"}, {"t": "on"}], "{t} [MASK] .", words, examples=examples, shots=2)
    shots = drawn(examples, "label", 2, 0)
    assert sorted(row["label"] for row in shots) == ["x", "y"]  # labels take turns
    before = "".join(f"{row['t']} {words[row['label']][0]} .\n" for row in shots)
    assert [one.prompt for one in found] == [f"{before}the [MASK] .", f"{before}on [MASK] ."]
    assert lead("{t} [MASK] .", shots, "label", words, "\n") == before
    by_hand = network.choose(f"{before}the {{}} .", ["cat", "on", "mat"], of="option")
    totals = dict(zip(by_hand.options, by_hand.values.tolist(), strict=True))
    expected = {"x": np.logaddexp(totals["cat"], totals["on"]), "y": totals["mat"]}
    assert found[0].log_probs == pytest.approx(expected, abs=1e-5)
    assert {tuple(row["t"] for row in drawn(examples, "label", 3, seed)) for seed in range(20)} != {("dogs",)}


def test_a_kernel_fills_the_gap_given_the_prompt(table: Any) -> None:
    """On a joint `ordered` draws from the law given the prompt; as the rows are many, by their frequencies."""
    rows = [{"x": "b", "y": "c", "label": "a c"}] * 4000
    found = besag.answer(table, rows, "{x} [MASK] {y}", kernel="ordered", tokens=2, seed=3)
    given = LAW[1, :, :, 2] / LAW[1, :, :, 2].sum()
    for first in range(3):
        for second in range(3):
            share = np.mean([one.answer == f"{SYMBOLS[first]} {SYMBOLS[second]}" for one in found])
            expected = given[first, second]
            assert abs(share - expected) < 5 * (expected * (1 - expected) / len(rows)) ** 0.5
    assert found.accuracy == np.mean([one.answer == "a c" for one in found])
    assert found.chance is None
    assert not found[0].log_probs


def test_sequential_prompting_sees_nothing_behind_the_gap_and_ends_at_the_stop(network: Any) -> None:
    rows = [{"t": "the cat"}, {"t": "the dogs"}, {"t": "on"}]
    one, other = (
        besag.answer(network, rows, f"{{t}} [MASK]{after}", pick="argmax", tokens=4, stop="")
        for after in ("", " mat mat")
    )
    assert [row.answer for row in one] == [row.answer for row in other]
    text = "the cat [MASK] [MASK] [MASK] [MASK]"
    alone = network.sample(text, "sequential", pick="argmax", chains=1).texts[0]
    assert alone == f"the cat {one[0].answer}"
    second = one[0].answer.split()[1]
    cut = besag.answer(network, rows[:1], "{t} [MASK]", pick="argmax", tokens=4, stop=second)
    assert cut[0].answer == one[0].answer.split(second)[0].strip()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"template": "no column [MASK]"}, "names no column"),
        ({"template": "{x} no gap"}, "once, where the answer stands"),
        ({"template": "{x} [MASK] {target}"}, "once, where the answer stands"),
        ({"template": "{z} [MASK]"}, "the template wants {z}, and a row has x, y, label"),
        ({"labels": ["a"]}, "at least two labels"),
        ({"labels": "ab"}, "labels='ab': give a dict or a list"),
        ({"labels": {"a": [], "b": ["b"]}}, "the label 'a' has no word"),
        ({"shots": 2}, "shots=2: 0 examples were given"),
        ({"shots": 1, "examples": [{"x": "a", "y": "b"}]}, "a row has no 'label'"),
        ({"shots": 1, "examples": [{"x": "a", "y": "b", "label": "z"}]}, "labelled 'z', and labels has same, other"),
        ({"labels": None, "kernel": "gibbs"}, "kernel='gibbs' varies a text for ever"),
        ({"labels": None, "tokens": 0}, "tokens=0"),
        ({"labels": None, "kernel": "ordred"}, "Did you mean 'ordered'"),
    ],
)
def test_what_is_refused(table: Any, asked: dict[str, Any], words: str) -> None:
    said = {"template": "{x} [MASK] {y}", "labels": WORDS, **asked}
    with pytest.raises(BesagError, match=words):
        besag.answer(table, ROWS, **said)


def test_a_prompt_that_does_not_fit_is_never_cut(network: Any) -> None:
    rows = [{"t": "the " * network.conditionals.max_length}]
    with pytest.raises(TooLong, match="give fewer shots, or shorter rows"):
        besag.answer(network, rows, "{t} [MASK]", ["cat", "mat"])
    with pytest.raises(TooLong, match="tokens"):
        besag.answer(network, rows, "{t} [MASK]")


def test_noise_belongs_to_the_row() -> None:
    lm = besag.load(Hashed(4), progress=False)
    rows = [{"t": text} for text in ("s0", "s1 s2", "s0", "s3 s3", "s1 s1 s0")]
    found = besag.answer(lm, rows, "{t} [MASK]", tokens=3, seed=2)
    assert besag.answer(lm, rows[:2], "{t} [MASK]", tokens=3, seed=2)[1].answer == found[1].answer
    assert found[0].answer != found[2].answer  # the same prompt, another row
