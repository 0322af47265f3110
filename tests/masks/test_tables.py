"""Turns from weights, and what they tilt: the laws behind the laws."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.masks.example_passages import SIZE, SPECIAL, plain, repeated, statistics

from besag.errors import BesagError
from besag.masks import LAWS, Passages, Statistics, law
from besag.masks.counting import Counts, find
from besag.masks.tables import by_token, chances, given_weights, proportional, proportional_tilt, race, race_tilt
from besag.masks.units import take, take_tokens

CORPUS = statistics()
WEIGHTS = np.array([1.0, 2.0, 3.0, 8.0, 0.5])
DRAWS = 30_000


def test_a_race_is_drawing_without_replacement():
    """P({i, j}) = w_i/W · w_j/(W − w_i) + the other way round."""
    passages = repeated(plain(5), DRAWS)
    turn = race(passages, np.log(np.tile(WEIGHTS, DRAWS)), seed=3, stream=99)
    hidden = take_tokens(passages, turn, np.full(DRAWS, 2)).reshape(DRAWS, 5)
    share = WEIGHTS / WEIGHTS.sum()
    statistic = 0.0
    for i, j in itertools.combinations(range(5), 2):
        wanted = DRAWS * share[i] * share[j] * (1 / (1 - share[i]) + 1 / (1 - share[j]))
        statistic += (hidden[:, [i, j]].all(1).sum() - wanted) ** 2 / wanted
    assert statistic < 27.9  # chi-square, 9 degrees of freedom: p ≈ 0.001


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_proportional_chances_are_proportional(limit):
    passages = repeated(plain(5), DRAWS)
    limits = np.full(DRAWS, limit)
    turn = proportional(passages, passages.place, np.tile(WEIGHTS, DRAWS), limits, seed=1, stream=99)
    hidden = take(passages, passages.place, turn, limits).reshape(DRAWS, 5)
    wanted = chances(np.zeros(5, int), np.ones(5, int), WEIGHTS, np.array([limit]))
    assert wanted.sum() == pytest.approx(limit)
    assert (hidden.sum(1) == limit).all()
    assert (hidden[:, wanted >= 1]).all()  # with three of five the heaviest is certain
    z = (hidden.mean(0) - wanted) / np.sqrt(np.maximum(wanted * (1 - wanted), 1e-9) / DRAWS)
    assert abs(z).max() < 4


def test_proportional_chances_of_units_count_their_tokens():
    """A word weighs the mean of its tokens, and is hidden whole; 100 words in all, so that few do not fit."""
    again, draws = 20, 2000
    word = (np.array([0, 0, 0, 1, 2, 2, 3, 4, 5, 6]) + 7 * np.arange(again)[:, None]).ravel()
    weight = np.tile([3.0, 3, 3, 1, 1, 3, 1, 1, 1, 1], again)  # means of 3, 1, 2, 1, 1, 1, 1
    passages = repeated(plain(10 * again)._replace(word=word), draws)
    limits = np.full(draws, 40)
    turn = proportional(passages, passages.word, np.tile(weight, draws), limits, seed=1, stream=99)
    hidden = take(passages, passages.word, turn, limits).reshape(draws * again, 10)
    assert (hidden[:, 0] == hidden[:, 2]).all()
    assert (hidden[:, 4] == hidden[:, 5]).all()
    wanted = 40 / again * np.array([3, 1, 2, 1]) / (3 * 3 + 1 + 2 * 2 + 4)
    assert hidden.mean(0)[[0, 3, 4, 6]] == pytest.approx(wanted, rel=0.12)  # short ones fill what is left


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=12), st.data())
def test_chances_sum_to_the_limit(weights, data):
    size = np.array(data.draw(st.lists(st.integers(1, 4), min_size=len(weights), max_size=len(weights))))
    limit = data.draw(st.integers(0, int(size.sum())))
    chance = chances(np.zeros(len(size), int), size, np.array(weights), np.array([limit]))
    assert (chance >= 0).all()
    assert (chance <= 1 + 1e-12).all()
    assert (size * chance).sum() == pytest.approx(limit)
    free = chance < 1
    scale = chance[free] / np.array(weights)[free]
    assert np.ptp(scale) <= 1e-9 * scale.max() if free.any() else True


def experienced(name: str):
    """A law that has learned that high ids are hard, and so has something to tilt."""
    made = law(name, **OPTIONS.get(name, {})).prepare(CORPUS)
    ids = np.arange(SPECIAL, SIZE)
    if hasattr(made, "observe"):
        for _ in range(100):
            made.observe(ids, ids / 15, ids % 5 < 2)
    return made


OPTIONS = {"adaptive": {"every": 5}, "importance": {"stop_words": 5}}
TILTING = [name for name in LAWS if law(name).prepare(CORPUS).tilt() is not None]


def test_the_laws_that_look_at_tokens_tilt():
    looking = {"adaptive", "content", "frequency", "importance", "informask", "loss_weighted"}
    assert looking == set(TILTING)


@pytest.mark.parametrize("rate", [0.15, 0.4])
@pytest.mark.parametrize("name", TILTING)
def test_the_tilt_is_how_often_each_token_is_hidden(name, rate):
    """In long passages of independent tokens, where the law sees every token in the same company."""
    made, share = experienced(name), CORPUS.counts / CORPUS.counts.sum()
    rng = np.random.default_rng(2)
    rows, length = 40, 3000
    ids = rng.choice(SIZE, rows * length, p=share)
    row, place = np.repeat(np.arange(rows), length), np.tile(np.arange(length), rows)
    passages = Passages(ids, row, np.ones(len(ids), bool), place, np.full(len(ids), -1), np.arange(rows))
    hidden = made.choose(passages, np.full(rows, rate), 0.5, 0)
    seen, taken = np.bincount(ids, minlength=SIZE), np.bincount(ids[hidden], minlength=SIZE)
    expected = np.exp(made.tilt(rate)) * rate  # Σ p π = 1 for the tilt, and hidden is a share `rate` of all
    assert expected.max() <= 1.001
    spread = expected[seen > 0].max() / expected[seen > 0].min()
    assert spread > 1.3, "nothing is tilted, so nothing is tested"
    error = np.sqrt(np.maximum(seen * expected * (1 - np.minimum(expected, 1)), 1))
    assert (abs(taken - seen * expected) < 4.5 * error + 0.015 * seen).all()


def test_a_tilt_knows_its_rate():
    weight, share = np.array([100.0, 1.0]), np.array([0.1, 0.9])
    low, high = race_tilt(np.log(weight), share, 1e-6), race_tilt(np.log(weight), share, 0.6)
    assert np.exp(low[0] - low[1]) == pytest.approx(100, rel=1e-3)  # nobody is drawn twice: in proportion
    assert np.exp(high[0] - high[1]) < 2  # the first is hidden whenever it is there
    assert np.exp(proportional_tilt(weight, share, 0.01))[0] == pytest.approx(100 / 10.9, rel=1e-6)


def statistics_of(*tokens: str) -> Statistics:
    return Statistics(np.ones(len(tokens), int), [], frozenset({0}), tokens)


def test_a_file_of_tokens(tmp_path):
    file = tmp_path / "classes.tsv"
    file.write_text("cat\tnoun\n▁run\tverb\nrun\tnoun\n[MASK]\tspecial\nzebra\tnoun\n", encoding="utf-8")
    known = statistics_of("[MASK]", "▁cat", "cat", "▁run", "Ġrun", "run", "dog")
    assert by_token(str(file), known) == {1: "noun", 2: "noun", 3: "verb", 4: "noun", 5: "noun"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("cat noun\n", "line 1 of .* must be a token, a tab and a value"),
        ("gat\tnoun\n", "none of the 1 words .* Did you mean 'cat'"),
        ("cat\t-1\n", "gives 'cat' the weight '-1'"),
        ("cat\tmuch\n", "gives 'cat' the weight 'much'"),
        ("cat\t0\n", "never learned"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path, content, message):
    file = tmp_path / "weights.tsv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(BesagError, match=message):
        given_weights(str(file), statistics_of("[MASK]", "cat"))
    with pytest.raises(BesagError, match="no such file"):
        given_weights(str(tmp_path / "none.tsv"), statistics_of("[MASK]", "cat"))
    file.write_bytes(b"cat\t\xff")
    with pytest.raises(BesagError, match=r"line 1, byte 5 \(0xff\) is not UTF-8"):
        given_weights(str(file), statistics_of("[MASK]", "cat"))


def test_a_law_without_its_table_says_so():
    with pytest.raises(BesagError, match=r"law.prepare\(statistics\) first"):
        law("frequency").choose(plain(3), np.full(1, 0.5), 0.0, 0)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 30), max_size=40), max_size=6))
def test_counts_are_exact_within_their_capacity(parts):
    counts = Counts()
    for part in parts:
        counts.add(np.array(part, dtype=np.int64))
    keys, count = counts.above(1)
    every = [key for part in parts for key in part]
    assert dict(zip(keys.tolist(), count.tolist(), strict=True)) == {
        key: every.count(key) for key in sorted(set(every)) if every.count(key) > 1
    }
    assert counts.missed == 0


def test_counts_beyond_their_capacity_are_too_low_by_at_most_what_they_missed():
    rng = np.random.default_rng(0)
    counts, true = Counts(capacity=50), np.zeros(300, int)
    for _ in range(40):
        part = rng.zipf(1.3, 500) % 300
        counts.add(part)
        counts._merge()
        true += np.bincount(part, minlength=300)
    keys, count = counts.above(0)
    assert counts.missed > 0
    assert len(keys) <= 50
    assert (count <= true[keys]).all()
    assert (count >= true[keys] - counts.missed).all()
    kept = np.zeros(300, int)
    kept[keys] = count
    assert (true - kept <= counts.missed).all()


def test_find():
    assert find(np.array([2, 5, 9]), np.array([5, 1, 9, 10, 2])).tolist() == [1, -1, 2, -1, 0]
    assert find(np.empty(0, int), np.array([1])).tolist() == [-1]
