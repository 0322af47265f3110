import math

import numpy as np
import pytest
from tests.masks.example_passages import plain, ragged, repeated, statistics

from besag.errors import BesagError
from besag.masks import Statistics, law
from besag.masks.importance import idf

DOCUMENTS = [np.array(ids) for ids in ([1, 1, 2, 3], [1, 2, 2, 5], [1, 4, 5], [1, 1, 5, 6])]
TOKENS = ("[MASK]", "▁the", "▁cat", "▁sat", "▁mat", "▁.", "▁on")
CORPUS = Statistics(np.bincount(np.concatenate(DOCUMENTS), minlength=7), DOCUMENTS, frozenset({0}), TOKENS)


def test_idf_counts_documents():
    assert idf(CORPUS)[1:] == pytest.approx([math.log(5 / (n + 0.5)) for n in (4, 2, 1, 1, 3, 1)])


def test_stop_words_and_signs_are_rare_but_not_never():
    made = law("importance", stop_words=1, least=0.1).prepare(CORPUS)
    plain_share = CORPUS.counts[[2, 3, 4, 6]]
    mean = plain_share @ idf(CORPUS)[[2, 3, 4, 6]] / plain_share.sum()
    assert made._weight[[1, 5]] == pytest.approx(0.1 * mean)
    assert made._weight[[2, 3, 4, 6]] == pytest.approx(idf(CORPUS)[[2, 3, 4, 6]])


def test_chances_are_proportional_to_given_weights(tmp_path):
    file = tmp_path / "weights.tsv"
    file.write_text("the\t1\ncat\t3\nsat\t2\nmat\t4\n")
    made = law("rom", weights=str(file), unit="token").prepare(CORPUS)
    draws = 20_000
    passages = repeated(plain(4)._replace(ids=np.array([1, 2, 3, 4])), draws)
    hidden = made.choose(passages, np.full(draws, 0.25), 0.0, 2).reshape(draws, 4)
    wanted = draws * np.array([1, 3, 2, 4]) / 10
    assert ((hidden.sum(0) - wanted) ** 2 / wanted).sum() < 16.3  # chi-square, 3 degrees of freedom: p ≈ 0.001


def test_words_are_hidden_whole_or_not_at_all():
    passages = ragged([60] * 30, seed=8, joined=0.5)
    name = passages.row * 1000 + passages.word
    split = {}
    for unit in ("word", "token"):
        hidden = (
            law("importance", stop_words=5, unit=unit).prepare(statistics()).choose(passages, np.full(30, 0.4), 0, 1)
        )
        split[unit] = sum(
            len(set(hidden[(name == number) & passages.free].tolist())) > 1 for number in np.unique(name[passages.free])
        )
    assert split["word"] == 0
    assert split["token"] > 100


def test_a_corpus_of_nothing_but_stop_words_is_the_uniform_law():
    assert np.ptp(law("importance").prepare(CORPUS).tilt()) == 0


def test_options_that_make_no_sense():
    for options in ({"stop_words": -1}, {"least": 0.0}):
        with pytest.raises(BesagError, match=f"cannot have {next(iter(options))}"):
            law("importance", **options)
    with pytest.raises(BesagError, match="unit='phrase': give one of word, token"):
        law("importance", unit="phrase")
