import numpy as np
import pytest
from tests.masks.example_passages import plain, ragged, repeated, statistics

from besag.masks import Passages, Statistics, law
from besag.masks.pmi_vocabulary import Collocations, _padded

DRAWS = 6000
WIDTH = 60


def knowing(*ngrams, unit="token"):
    return law("pmi", unit=unit).knowing(
        Collocations(_padded([list(one) for one in ngrams]), np.zeros(len(ngrams))), WIDTH
    )


def passage(*ids, word=None) -> Passages:
    one = plain(len(ids))._replace(ids=np.array(ids))
    return one if word is None else one._replace(word=np.array(word))


def units(made, passages, seed=0) -> list[int]:
    return made.units(passages, seed).tolist()


def test_matches_are_units_and_all_else_is_alone():
    assert units(knowing((5, 6), (8, 9, 10)), passage(4, 5, 6, 7, 8, 9, 10, 8)) == [0, 1, 1, 3, 4, 4, 4, 7]


def test_the_longest_match_wins():
    made = knowing((5, 6), (6, 7), (5, 6, 7), (6, 7, 8))
    assert units(made, passage(5, 6, 7, 9)) == [0, 0, 0, 3]
    inside = knowing((5, 6, 7, 8), (6, 7))
    assert all(units(inside, passage(5, 6, 7, 8), seed) == [0, 0, 0, 0] for seed in range(20))


def test_overlaps_are_broken_at_random_and_what_is_left_is_matched_anew():
    made = knowing((5, 6, 7), (7, 8, 9), (8, 9))
    found = made.units(repeated(passage(5, 6, 7, 8, 9), DRAWS), 3).reshape(DRAWS, 5) - 5 * np.arange(DRAWS)[:, None]
    left = (found == [0, 0, 0, 3, 3]).all(1)
    right = (found == [0, 1, 2, 2, 2]).all(1)
    assert (left | right).all()
    assert abs(left.mean() - 0.5) < 0.02  # three standard errors


def test_of_three_in_a_chain_each_has_its_chance():
    """The middle one of three wins if its number is the lowest; else both of the outer ones do."""
    made = knowing((1, 2), (2, 3), (3, 4))
    found = made.units(repeated(passage(1, 2, 3, 4), DRAWS), 3).reshape(DRAWS, 4) - 4 * np.arange(DRAWS)[:, None]
    middle = (found == [0, 1, 1, 3]).all(1)
    outer = (found == [0, 0, 2, 2]).all(1)
    assert (middle | outer).all()
    assert abs(middle.mean() - 1 / 3) < 0.02


def test_a_match_does_not_leave_its_passage_nor_cross_a_special_token():
    made = knowing((5, 6))
    two = Passages(np.array([5, 6, 5, 6, 5, 6]), np.array([0, 1, 1, 1, 2, 2]), np.array([1, 1, 1, 0, 1, 1], bool),
                   np.array([0, 0, 1, -1, 0, 1]), np.full(6, -1), np.arange(3))  # fmt: skip
    assert units(made, two) == [0, 1, 2, -1, 4, 4]


def test_words_are_not_split():
    made = knowing((5, 6), (6, 7), (5, 6, 7), unit="word")
    assert units(made, passage(5, 6, 7, word=[0, 1, 1])) == [0, 0, 0]  # the whole; "5 6" would cut a word
    assert units(made, passage(5, 6, 8, word=[0, 1, 1])) == [0, 1, 1]
    assert units(made, passage(9, 5, 6, word=[0, 0, 1])) == [0, 0, 2]
    assert units(made, passage(5, 6, 9, word=[0, 1, 2])) == [0, 0, 2]


def shuffled(sizes, budget) -> np.ndarray:
    """How often each unit is taken when they are gone through in random order, and what does not fit is passed over."""
    rng, taken = np.random.default_rng(0), np.zeros(len(sizes))
    for _ in range(DRAWS):
        left = budget
        for unit in rng.permutation(len(sizes)):
            if sizes[unit] <= left:
                taken[unit] += 1
                left -= sizes[unit]
    return taken / DRAWS


def test_every_unit_has_the_same_chance():
    made = knowing((5, 6, 7), (9, 10))
    passages = repeated(passage(4, 5, 6, 7, 8, 9, 10, *range(20, 53)), DRAWS)  # 40 tokens in 37 units
    hidden = made.choose(passages, np.full(DRAWS, 0.3), 0.0, 5).reshape(DRAWS, 40)
    assert (hidden[:, 1] == hidden[:, 3]).all()
    assert (hidden[:, 5] == hidden[:, 6]).all()
    assert (hidden.sum(1) == 12).all()
    rate = hidden.mean(0)
    assert abs(rate[[0, 4, *range(7, 40)]] - rate[7:].mean()).max() < 4 * np.sqrt(0.21 / DRAWS)
    wanted = shuffled([1, 3, 1, 2, *[1] * 33], 12)
    assert rate[[1, 5]] == pytest.approx(wanted[[1, 3]], abs=4 * np.sqrt(2 * 0.21 / DRAWS))
    assert rate[7:].mean() == pytest.approx(wanted[4:].mean(), abs=0.003)
    assert made.tilt() is None


def test_it_is_prepared_from_the_corpus_or_from_a_file(tmp_path):
    rng = np.random.default_rng(0)
    tokens = ("[MASK]", *(f"t{number}" for number in range(1, 30)))
    documents = [np.concatenate([rng.integers(1, 28, 6), [28, 29], rng.integers(1, 28, 6)]) for _ in range(100)]
    corpus = Statistics(np.bincount(np.concatenate(documents), minlength=30), documents, frozenset({0}), tokens)
    built = law("pmi", unit="token", min_count=20).prepare(corpus)
    assert units(built, passage(3, 28, 29, 4)) == [0, 1, 1, 3]
    file = tmp_path / "pmi.txt"
    file.write_text("t3 t4\t1.0\n")
    read = law("pmi", unit="token", vocabulary=str(file)).prepare(corpus)
    assert units(read, passage(3, 4, 28, 29)) == [0, 0, 2, 3]


def test_no_word_is_split_whatever_the_vocabulary():
    passages = ragged([60] * 30, seed=8, joined=0.5)
    made = law("pmi", min_count=2).prepare(statistics())
    assert made._trie.keys.size > 50
    hidden = made.choose(passages, np.full(30, 0.4), 0.0, 1)
    name = passages.row * 1000 + passages.word
    for number in np.unique(name[passages.free]):
        assert len(set(hidden[(name == number) & passages.free].tolist())) == 1
    found = made.units(passages, 1)
    assert (np.bincount(found[found >= 0]) > 4).any()
