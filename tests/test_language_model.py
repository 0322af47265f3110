import math

import numpy as np
import pytest
from tests.laws import Arbitrary, Counting

import besag
from besag import BesagError
from besag.conditionals.table import Table
from besag.language_model import LanguageModel


@pytest.fixture
def lm():
    return LanguageModel(Arbitrary(4))


def test_one_text_a_list_and_a_stream(lm):
    texts = ["s0 s1", "s2", "s3 s3 s0"]
    one = lm.score(texts[0])
    several = lm.score(texts)
    stream = lm.score(iter(texts))
    assert isinstance(one, besag.Score)
    assert isinstance(several, list)
    assert [score.text for score in several] == texts
    assert next(stream).total == one.total == several[0].total
    assert [score.total for score in stream] == [score.total for score in several[1:]]
    assert lm.score([]) == []


def test_a_stream_that_falls_idle_is_answered_before_it_is_asked_for_more(lm):
    asked = []

    def texts():
        for text in ("s0 s1", besag.IDLE, "s2"):
            asked.append(text)
            yield text

    stream = lm.score(texts())
    next(stream)
    assert asked == ["s0 s1", besag.IDLE]
    assert len(list(stream)) == 1


def test_a_score_says_what_it_is(lm):
    score = lm.score("s0 s1", method="chain")
    assert (score.method, score.model, score.dtype, score.status) == ("chain", "arbitrary", "float64", "ok")
    assert score.normalised == "token sequences of this length"
    assert score.specials == "none added"
    assert score.tokens == ("s0", "s1")
    assert score.ids.tolist() == [0, 1]
    assert "lower bound" in lm.score("s0 s1", method="elbo").normalised


def test_bases(lm):
    nats = lm.score("s0 s1 s2", method="elbo", samples=4)
    bits = lm.score("s0 s1 s2", method="elbo", samples=4, base=2)
    assert bits.total == pytest.approx(nats.total / math.log(2))
    assert bits.standard_error == pytest.approx(nats.standard_error / math.log(2))
    assert lm.score("s0", base="10", entropy=True).entropy[0] == pytest.approx(
        lm.score("s0", entropy=True).entropy[0] / math.log(10)
    )
    with pytest.raises(BesagError, match="base 3"):
        lm.score("s0", base=3)


@pytest.mark.parametrize(
    ("text", "status"), [("", "empty"), ("   ", "empty"), ("s0 [MASK]", "mask"), ("s0\ud800", "undecodable")]
)
def test_a_text_that_cannot_be_scored_says_why(lm, text, status):
    bad, good = lm.score([text, "s0 s1"])
    assert bad.status == status
    assert math.isnan(bad.total)
    assert len(bad) == 0
    assert good.status == "ok"
    with pytest.raises(BesagError, match="cannot be scored"):
        lm.score(["s0 s1", text], strict=True)


def test_methods_and_models_must_fit_each_other(lm):
    causal = LanguageModel(Arbitrary(3, sees="left"))
    with pytest.raises(BesagError, match=r"'arbitrary' is a causal one.*method='causal'"):
        causal.score("s0", method="pll")
    with pytest.raises(BesagError, match="'arbitrary' is a masked one"):
        lm.score("s0", method="causal")


def test_a_causal_model_starts_from_its_start_token():
    law = Arbitrary(3, sees="left")
    assert LanguageModel(law).score("s0 s1", method="causal").specials == "[MASK] … shown, not scored"
    law.bos_id = None
    with pytest.raises(BesagError, match="no start token"):
        LanguageModel(law).score("s0 s1", method="causal")


def test_sentences_of_every_length_sum_to_one_with_a_length_model():
    tables = {n: LanguageModel(Table.random(2, n, seed=n)) for n in (1, 2, 3)}
    lengths = tables[1].length_model(["s0", "s0 s1", "s0 s1", "s1 s1 s0"])
    total = 0.0
    for n, lm in tables.items():
        everything = [" ".join(f"s{(i >> j) & 1}" for j in range(n)) for i in range(2**n)]
        scores = lm.score(everything, method="chain", lengths=lengths)
        assert scores[0].extra == {"length": pytest.approx(lengths.log_prob(n))}
        assert scores[0].normalised == "token sequences of every length"
        total += np.exp([score.total for score in scores]).sum()
    beyond = sum(math.exp(lengths.log_prob(n)) for n in range(4, 4000))
    assert total + beyond == pytest.approx(1, abs=1e-6)


def test_a_length_model_is_refused_where_it_means_nothing(lm):
    lengths = lm.length_model(["s0 s1", "s2"])
    with pytest.raises(BesagError, match="'pll' gives none"):
        lm.score("s0", method="pll", lengths=lengths)
    with pytest.raises(BesagError, match="prefix or a suffix"):
        lm.score("s0", method="chain", lengths=lengths, prefix="s1")
    other = LanguageModel(Table.random(2, 1))
    with pytest.raises(BesagError, match="fitted with 'arbitrary', not with 'table'"):
        other.score("s0", method="chain", lengths=lengths)


def test_given_words_of_one_text_and_of_many(lm):
    one = lm.score("s0 s1 s2", method="whole_word", words=[(0, 5), (6, 8)])
    many = lm.score(["s0 s1 s2", "s3"], method="whole_word", words=[["s0 s1", "s2"], ["s3"]])
    assert one.words.tolist() == many[0].words.tolist() == [0, 0, 1]
    np.testing.assert_array_equal(one.log_probs, many[0].log_probs)
    with pytest.raises(BesagError):
        lm.score(["s0", "s1"], words=[["s0"]])


def test_each_text_may_have_a_context_of_its_own(lm):
    texts, before, after = ["s0 s1", "s2", "s0"], ["s3", "", "s1 s1"], ["s2", "s3", ""]
    together = lm.score(texts, method="chain", prefix=before, suffix=after)
    for text, one, left, right in zip(texts, together, before, after, strict=True):
        alone = lm.score(text, method="chain", prefix=left, suffix=right)
        assert one.text == text
        np.testing.assert_array_equal(one.log_probs, alone.log_probs)
    with pytest.raises(BesagError, match="2 prefixes or suffixes were given for 3 texts"):
        lm.score(texts, prefix=["s0", "s1"])


def test_choose_compares_whole_sentences_or_options_given_the_rest(lm):
    options = ["s0", "s1 s1", "s2"]
    chosen = lm.choose("s3 {} s3", options, method="pll")
    by_hand = {option: lm.score(f"s3 {option} s3").total for option in options}
    assert dict(zip(chosen.options, chosen.values, strict=True)) == by_hand
    assert chosen.best == max(by_hand, key=by_hand.get)
    assert chosen.shares.sum() == pytest.approx(1)
    assert list(chosen.values) == sorted(chosen.values, reverse=True)
    alone = lm.choose("s3 [MASK] s3", options, method="chain", of="option", reduction="mean")
    assert dict(zip(alone.options, alone.values, strict=True)) == pytest.approx(
        {option: lm.score(option, method="chain", prefix="s3", suffix="s3").mean for option in options}
    )
    assert "share among these 3 options" in str(alone)
    assert alone.to_dict()["options"][0]["option"] == alone.best


def test_one_token_options_given_the_rest_share_one_pass():
    law = Counting(Arbitrary(4))
    LanguageModel(law).choose("s3 {} s3", ["s0", "s1", "s2"], method="pll", of="option")
    assert law.sequences == [(3, 4, 3)]
    assert law.head_rows == 1


@pytest.mark.parametrize(
    ("text", "options", "extra", "message"),
    [
        ("s0 s1", ["s0"], {}, "needs exactly one slot"),
        ("{} s1 {}", ["s0"], {}, "needs exactly one slot"),
        ("{}", [], {}, "list of options"),
        ("{}", "s0", {}, "options='s0': give a list of texts"),
        ("{}", ["s0"], {"of": "sentense"}, "Did you mean 'sentence'"),
        ("{}", ["s0"], {"reduction": "none"}, "reduction='none': give 'sum' or 'mean'"),
        ("s1 {}", ["s0", ""], {"of": "option"}, "option '' cannot be scored"),
    ],
)
def test_choices_that_cannot_be_made(lm, text, options, extra, message):
    with pytest.raises(BesagError, match=message):
        lm.choose(text, options, **extra)


def test_the_public_names():
    assert set(besag.__all__) <= set(dir(besag))
    for name in besag.__all__:
        assert getattr(besag, name) is not None
    with pytest.raises(AttributeError, match="nothing_like_it"):
        besag.nothing_like_it  # noqa: B018
    assert repr(LanguageModel(Arbitrary(4))) == "LanguageModel('arbitrary', cpu, float64, V=4)"
