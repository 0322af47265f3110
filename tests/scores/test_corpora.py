"""Many scores as one number."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import BesagError
from besag.results.status import Status
from besag.scores.corpora import corpus
from besag.scores.score import Score


def score(log_probs, text="a b", base=math.e, **fields):
    n = len(log_probs)
    given_fields = {
        "text": text,
        "tokens": ("x",) * n,
        "ids": np.zeros(n, np.int64),
        "log_probs": np.asarray(log_probs, float) / math.log(base),
        "offsets": np.zeros((n, 2), np.int64),
        "words": np.zeros(n, np.int64),
        "method": "pll",
        "normalised": "",
        "base": base,
        "specials": "",
        "word_policy": "tokenizer",
        "model": "tiny",
        "dtype": "float32",
    }
    return Score(**(given_fields | fields))


many = st.lists(
    st.tuples(st.lists(st.floats(-30, -0.01), min_size=1, max_size=6), st.sampled_from([math.e, 2.0, 10.0])),
    min_size=1,
    max_size=8,
)


def test_the_pseudo_perplexity_is_of_all_tokens_together():
    """PPPL = exp(−(1/N) Σ PLL), N the tokens of the corpus: not a mean of the sentences' own."""
    whole = corpus([score([-1, -2, -3], "ab cd"), score([-4], "é")])
    assert (whole.n_texts, whole.n_tokens, whole.n_words, whole.n_characters, whole.n_bytes) == (2, 4, 3, 6, 7)
    assert whole.perplexity == pytest.approx(math.exp(10 / 4))
    assert whole.word_perplexity == pytest.approx(whole.perplexity ** (4 / 3))
    assert whole.bits_per_character == pytest.approx(10 / math.log(2) / 6)
    assert whole.bits_per_byte == pytest.approx(10 / math.log(2) / 7)


@given(many, st.randoms())
def test_order_and_base_do_not_matter_and_neither_does_cutting_in_two(texts, random):
    scores = [score(numbers, base=base) for numbers, base in texts]
    shuffled = random.sample(scores, len(scores))
    one, other = corpus(scores), corpus(iter(shuffled))
    assert one.total == pytest.approx(other.total)
    assert one.standard_error == pytest.approx(other.standard_error, abs=1e-7, nan_ok=True)
    assert one.n_tokens == other.n_tokens
    assert one.total == pytest.approx(sum(corpus([each]).total for each in scores))
    together = [number for numbers, _ in texts for number in numbers]
    assert one.perplexity == pytest.approx(corpus([score(together)]).perplexity)


@given(many)
def test_the_standard_error_is_the_ratio_estimator(texts):
    totals = np.array([sum(numbers) for numbers, _ in texts])
    sizes = np.array([len(numbers) for numbers, _ in texts])
    m, ratio = len(texts), totals.sum() / sizes.sum()
    got = corpus(score(numbers) for numbers, _ in texts).standard_error
    if m == 1:
        assert math.isnan(got)
    else:
        squares = ((totals - ratio * sizes) ** 2).sum()
        assert got == pytest.approx(math.sqrt(m / (m - 1) * squares) / sizes.sum(), abs=1e-6)


def test_the_interval_covers_the_truth_nineteen_times_in_twenty():
    rng = np.random.default_rng(0)
    truth, covered = math.exp(2.0), 0
    for _ in range(400):
        sizes = rng.integers(1, 12, size=60)
        # tokens of a text go together: a text is hard or easy as a whole
        means = rng.gamma(4.0, 0.5, size=60)
        low, high = corpus(score([-m] * n) for m, n in zip(means, sizes, strict=True)).perplexity_interval
        covered += low <= truth <= high
    assert 0.90 <= covered / 400 <= 0.98


def test_what_could_not_be_scored_is_counted_and_left_out():
    whole = corpus(
        [score([-1.0]), score([], "", status=Status.EMPTY), score([], "[MASK]", status=Status.MASK), score([-3.0])]
    )
    assert whole.skipped == {"empty": 1, "mask": 1}
    assert (whole.n_texts, whole.perplexity) == (2, pytest.approx(math.exp(2)))
    assert "1 text skipped: empty (the text is empty)" in " ".join(str(whole).split())
    assert whole.status is Status.PARTLY


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([], "at least one score"),
        ([score([], "", status=Status.EMPTY)] * 3, "none of the 3 texts.*3 'empty'"),
        ([score([-1.0]), score([-1.0], method="chain")], "'pll'.*'chain'"),
        ([score([-1.0]), score([-1.0], model="big")], "'tiny'.*'big'"),
        ([score([-1.0]), score([-1.0], normalised="texts")], "not a probability.*log-probability of texts"),
    ],
)
def test_what_is_no_corpus_is_refused(scores, said):
    with pytest.raises(BesagError, match=said):
        corpus(scores)


def test_it_is_called_what_it_is():
    pseudo = str(corpus([score([-1.0, -2.0]), score([-1.5], unknown=1)]))
    assert "pseudo-perplexity per token" in pseudo
    assert "95 %" in pseudo
    assert "1 of them unknown" in pseudo
    true = str(corpus([score([-1.0], normalised="token sequences")]))
    assert "pseudo" not in true
    assert "95 %" not in true  # one text says nothing about others
    table = pseudo.split("\n\n")[0].split("\n")
    starts = {line.index(line.split("  ", 1)[1].strip()) for line in table}
    assert len(starts) == 1


def test_the_dictionary_is_json():
    record = json.loads(json.dumps(corpus([score([-1.0])]).to_dict(), allow_nan=False))
    assert record["perplexity"] == pytest.approx(math.e)
    assert record["perplexity_interval"] == [None, None]
    assert record["skipped"] == {}


def test_an_impossible_text_makes_the_perplexity_infinite_and_says_so():
    whole = corpus([score([-math.inf]), score([-1.0])])
    assert whole.perplexity == math.inf
    assert whole.to_dict()["perplexity"] == "Infinity"
    assert "∞" in str(whole)
