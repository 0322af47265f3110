"""Numbers of texts: what is read, what is told, and what judges say. Their n-grams are `test_grams.py`'s."""

import gzip
import lzma
import math
import re

import numpy as np
import pytest
from tests.laws import Arbitrary
from tests.networks import tiny, vocabulary

from besag.conditionals.causal import Causal
from besag.conditionals.table import Table
from besag.diagnostics import texts
from besag.diagnostics.texts import measure, self_bleu, stutter
from besag.engine import Engine
from besag.errors import BesagError


def test_ids_of_tokens_are_texts_too():
    assert stutter([[5, 5, 7], [7, 7]]).value == pytest.approx(2 / 3)
    assert stutter([[5, 5, 7], [7, 7]]) == stutter(["aab", "bb"])


def test_words_are_runs_of_letters_and_signs():
    assert texts.words("It's 2 o’clock, isn't it?") == ["It's", "2", "o’clock", ",", "isn't", "it", "?"]


def test_the_error_of_a_stutter_rate_is_that_of_many_samples():
    rng = np.random.default_rng(0)
    rates = [stutter([rng.integers(0, 4, size=rng.integers(2, 12)) for _ in range(80)]) for _ in range(300)]
    assert np.mean([rate.error for rate in rates]) == pytest.approx(np.std([rate.value for rate in rates]), rel=0.12)


def test_more_texts_give_a_larger_self_bleu_and_a_subset_is_drawn_by_its_seed():
    rng = np.random.default_rng(0)
    sample = [[str(w) for w in rng.integers(0, 30, size=12)] for _ in range(300)]
    whole, _ = self_bleu(sample)
    few, count = self_bleu(sample, most=40, seed=1)
    assert count == 40
    assert few < whole  # so only samples of one size compare
    assert (few, 40) == self_bleu(sample, most=40, seed=1)
    assert few != self_bleu(sample, most=40, seed=2)[0]


# ---- the reference


@pytest.mark.parametrize(("name", "opener"), [("r.txt", open), ("r.txt.gz", gzip.open), ("r.txt.xz", lzma.open)])
def test_a_reference_may_be_a_file(tmp_path, name, opener):
    with opener(tmp_path / name, "wt", encoding="utf-8") as file:
        file.write("the cat sat\non the mat\n")
    found = measure(["the cat sat on the mat"], reference=tmp_path / name)
    assert found.novelty == (0.0, pytest.approx(1 / 5), pytest.approx(2 / 4), 1.0)  # "sat on" goes over a line's end
    assert found.novelty == measure(["the cat sat on the mat"], reference=["the cat sat", "on the mat"]).novelty


def test_a_reference_that_cannot_be_read(tmp_path):
    with pytest.raises(BesagError, match="there is no file"):
        measure(["a b"], reference=tmp_path / "nothing.txt")
    (tmp_path / "latin.txt").write_bytes("über".encode("latin-1"))
    with pytest.raises(BesagError, match="is not UTF-8"):
        measure(["a b"], reference=tmp_path / "latin.txt")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a b c\n" * 1000)[:-9])
    with pytest.raises(BesagError, match=r"cut\.gz cannot be read beyond line"):
        measure(["a b"], reference=tmp_path / "cut.gz")


# ---- the judge


def test_a_judge_may_tell_totals_or_tokens():
    sample = ["a b c", "d d"]
    by_text = measure(sample, judge=lambda texts: [-6.0, -4.0]).judged
    assert by_text.word_nats.value == pytest.approx(10 / 5)
    assert by_text.perplexity == pytest.approx(math.exp(2))
    assert by_text.bits_per_character == pytest.approx(10 / math.log(2) / 8)
    assert math.isnan(by_text.token_perplexity)
    by_token = measure(sample, judge=lambda texts: [[-1.5] * 4, [-1.0, -3.0]]).judged
    assert by_token.token_perplexity == pytest.approx(math.exp(10 / 6))
    assert by_token.word_nats == by_text.word_nats
    broken = measure(sample, judge=lambda texts: [-math.inf, -4.0])
    assert (broken.judged.texts, broken.judged.refused) == (1, 1)
    assert broken.judged.word_nats.value == pytest.approx(2)
    assert "the judge gave 1 text no probability" in repr(broken)
    with pytest.raises(BesagError, match="was given 2 texts and answered about 1"):
        measure(sample, judge=lambda texts: [-1.0])


def test_a_causal_law_is_a_judge():
    law = Arbitrary(width=3, sees="left")
    sample = ["s0 s1 s2", "s2 s2"]
    found = measure(sample, judge=Engine(law, progress=False)).judged
    total = 0.0
    for ids in ([0, 1, 2], [2, 2]):
        context = [law.bos_id, *ids]
        total -= sum(law.log_probs(context, at)[token] for at, token in enumerate(context) if at)
    # the law answers a place from what stands before it, itself left out, so no shift is needed here
    assert found.token_perplexity == pytest.approx(math.exp(total / 5))


def test_a_causal_network_is_a_judge_and_a_masked_one_is_not():
    network = Causal(tiny("gpt2"), vocabulary("gpt2"))
    found = measure(["a cat", "the dog sat"], judge=Engine(network, progress=False)).judged
    assert found.texts == 2
    assert 1 < found.perplexity < math.inf
    with pytest.raises(BesagError, match="needs a causal model"):
        measure(["s0 s1"], judge=Engine(Table.random(2, 2), progress=False))


# ---- the whole


def test_a_report_is_a_table_a_dictionary_and_a_frame():
    pandas = pytest.importorskip("pandas")
    sample = ["The cat sat on the mat .", "The cat sat sat there .", "   "]
    found = measure(sample, reference=["The cat sat ."], judge=lambda texts: [-9.0] * len(texts))
    assert (found.texts, found.empty, found.words, found.kinds) == (3, 1, 13, 8)
    assert found.lengths == (6.5, pytest.approx(math.sqrt(0.5)), 6, 6.5, 7)
    assert found.compared == 2
    shown = repr(found)
    for part in ("words a text", "self-BLEU", "distinct-n", "novelty-n", "stutter", "perplexity", "1 without a word"):
        assert part in shown
    told = found.to_dict()
    assert told["stutter"] == pytest.approx(1 / 11)
    assert len(told["distinct"]) == 4
    frame = found.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc[0, "distinct_2"] == found.distinct[1]
    assert frame.loc[0, "lengths_mean"] == 6.5


def test_one_text_has_no_self_bleu_and_no_error():
    found = measure(["a b"])
    assert math.isnan(found.self_bleu)
    assert found.to_dict()["self_bleu"] is None
    assert math.isnan(found.stutter.error)


@pytest.mark.parametrize(
    ("sample", "options", "told"),
    [
        ("a text", {}, "texts='a text': give a list of texts"),
        ([], {}, "0 texts without a word"),
        (["  ", ""], {}, "2 texts without a word"),
        (["a"], {"n": 0}, "n=0: n-grams have at least one word"),
    ],
)
def test_input_that_makes_no_sense(sample, options, told):
    with pytest.raises(BesagError, match=re.escape(told)):
        measure(sample, **options)
