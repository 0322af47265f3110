"""What a call of `score` answers where a text, or the model's answer to it, is out of the ordinary."""

import numpy as np
import pytest
import torch
from tests.laws import Arbitrary
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.contract import Questions
from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.engine import Engine
from besag.errors import BesagError
from besag.language_model import LanguageModel
from besag.scores import METHODS, LengthModel

TEXTS = ["The cats sleep on the mat.", "The dogs sleep on the mat.", "Dogs bark"]
MASKED = [name for name, method in METHODS.items() if method.sees == "both" and name != "maskless"]  # needs a scorer


def network() -> LanguageModel:
    return LanguageModel(Transformer(tiny("bert"), vocabulary("bert"), "bert"), progress=False)


def bias(lm: LanguageModel) -> torch.Tensor:
    return lm.model.cls.predictions.decoder.bias.data


class BrokenAt(Arbitrary):
    """Answers with something else wherever the symbol s2 is shown."""

    model = "a network"

    def __init__(self, what: float) -> None:
        super().__init__(4)
        self.what = what

    def rows(self, questions: Questions) -> torch.Tensor:
        rows = super().rows(questions)
        rows[(questions.ids == 2).any(1)[questions.row], 3] = self.what
        return rows


@pytest.mark.parametrize("method", MASKED)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_token_of_infinite_bias_leaves_no_text_a_score(method, value):
    lm = network()
    bias(lm)[7] = value
    for score in lm.score(TEXTS, method):
        assert score.status == "not finite"
        assert np.isnan(score.total)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("method", MASKED)
def test_only_the_text_whose_answers_are_no_numbers_has_no_score(method, value):
    texts = ["s0 s1 s3", "s1 s2 s0", "s3 s3 s0", "s0 s2 s2", "s1 s1 s1"]
    lm = besag.load(BrokenAt(value), progress=False)
    scores = lm.score(texts, method)
    broken = [score.status == "not finite" for score in scores]
    assert (broken[1], broken[3]) == (True, True)
    assert method == "ag_chain" or any(score.status == "ok" for score in scores)  # it shows s2 in the place of others
    for score in scores:
        assert (score.status == "ok") == bool(np.isfinite(score.total))


def test_a_network_gives_no_text_the_probability_0_and_an_exact_law_may():
    lm = network()
    [first] = lm.vocabulary.encode(TEXTS[:1])
    bias(lm)[int(first.ids[2])] = -np.inf  # a token masked in the head
    assert [str(score.status) for score in lm.score(TEXTS)] == ["not finite", "ok", "ok"]
    law = besag.load(Table([[0.5, 0.0], [0.25, 0.25]]), progress=False)
    score = law.score("s0 s1", "chain")
    assert (score.status, score.total) == ("ok", -np.inf)
    mixture = law.score("s0 s1", "chain", order="random", orders=3)
    assert (mixture.status, mixture.total) == ("ok", -np.inf)
    bound = law.score("s0 s1", "elbo", samples=4)
    assert (bound.status, bound.total, bound.standard_error) == ("ok", -np.inf, None)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_marginals_that_are_no_numbers_have_a_status(value):
    lm = besag.load(BrokenAt(value), progress=False)
    found = lm.marginals(["s0 s1 s3", "s1 s2 s0"])
    assert [str(one.status) for one in found] == ["ok", "not finite"]
    assert len(found[1]) == 0
    assert np.isfinite(found[0].log_probs).all()


def test_marginals_of_a_masked_token_are_refused_where_it_was_asked_about():
    lm = network()
    word = (
        lm.vocabulary.id("cats") if "cats" in lm.tokenizer.get_vocab() else int(lm.vocabulary.encode(["cat"])[0].ids[1])
    )
    bias(lm)[word] = -np.inf
    assert lm.marginals("The dogs sleep.").status == "ok"
    assert lm.marginals("The dogs sleep.", [word]).status == "not finite"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_choice_by_no_numbers_is_refused(value):
    lm = besag.load(BrokenAt(value), progress=False)
    with pytest.raises(BesagError, match="'s2' cannot be scored: the model answered with a number that is not finite"):
        lm.choose("s0 [MASK] s1", ["s3", "s2"])


def test_a_choice_among_what_cannot_be_is_refused():
    lm = besag.load(Table([[0.5, 0.0, 0.0], [0.25, 0.25, 0.0], [0, 0, 0]]), progress=False)
    with pytest.raises(BesagError, match="all 2 options have probability 0"):
        lm.choose("s0 [MASK]", ["s1", "s2"], "chain")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_network_that_is_broken_from_the_start_is_not_loaded(value):
    model = tiny("bert")
    model.cls.predictions.decoder.bias.data[7] = value
    with pytest.raises(BesagError, match=r"no numbers|infinite logits"):
        Transformer(model, vocabulary("bert"), "bert")


@pytest.mark.parametrize("text", ["▁", "▁▁", " ▁ ", "  ", ""])
def test_a_separator_that_holds_no_character_is_no_text(text):
    lm = LanguageModel(Transformer(tiny("camembert"), vocabulary("camembert"), "camembert"), progress=False)
    assert lm.score(text).status == "empty"
    assert lm.marginals(text).status == "empty"
    assert lm.score("▁cat").status == "ok"


def test_a_symbol_that_looks_like_a_separator_is_a_symbol():
    lm = besag.load(Table([[0.25, 0.25], [0.4, 0.1]], symbols=["▁", "a"]), progress=False)
    assert lm.score("▁ ▁").status == "ok"


HUGE = 10**5000  # more digits than Python writes
HOSTILE = [0, -1, 10**9, 10**30, HUGE, float("nan"), float("inf"), "many", "", None, True, [1], {}, 1.5, b"1"]

ALLOWED = {"batch_tokens": (10**9, None), "candidates=.*list": (None, [1]), "n": (10**9,), "height": (0,)}


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("orders", lambda lm, value: lm.score("s0 s1", "chain", order="random", orders=value)),
        ("samples", lambda lm, value: lm.score("s0 s1", "elbo", samples=value)),
        ("candidates", lambda lm, value: lm.score("s0 s1", "ag_chain", candidates=value)),
        ("batch_tokens", lambda lm, value: Engine(lm.conditionals, batch_tokens=value)),
        ("base", lambda lm, value: lm.score("s0 s1", base=value)),
        ("base", lambda lm, value: lm.marginals("s0 s1", base=value)),
        ("candidates=.*list", lambda lm, value: lm.marginals("s0 s1", candidates=value)),
        ("n", lambda lm, value: LengthModel.fit([3]).log_prob(value)),
        ("height", lambda lm, value: LengthModel.fit([3]).quantile(value)),
    ],
)
def test_counts_have_bounds_that_are_told(name, ask, value):
    lm = besag.load(Table.random(3, 2), progress=False)
    if any(type(value) is type(one) and value == one for one in ALLOWED.get(name, ())):
        ask(lm, value)
        return
    with pytest.raises(BesagError, match=name) as refusal:
        ask(lm, value)
    assert len(str(refusal.value)) < 500


@pytest.mark.parametrize("value", [*HOSTILE[3:], 2**64, -(2**63) - 1], ids=range(len(HOSTILE) - 1))
@pytest.mark.parametrize(("method", "more"), [("chain", {"order": "random"}), ("elbo", {}), ("ag_chain", {})])
def test_a_seed_is_a_whole_number_of_64_bits(method, more, value):
    lm = besag.load(Table.random(3, 2), progress=False)
    with pytest.raises(BesagError, match="seed="):
        lm.score("s0 s1", method, seed=value, **more)
    for seed in (-1, 0, 2**64 - 1):
        assert lm.score("s0 s1", method, seed=seed, **more).status == "ok"


@pytest.mark.parametrize("value", [-1, 10**30, HUGE, 1.5, None, True], ids=range(6))
def test_an_id_that_is_none_is_refused_as_a_candidate(value):
    lm = besag.load(Table.random(3, 2), progress=False)
    with pytest.raises(BesagError, match="candidate"):
        lm.marginals("s0 s1", [value])
