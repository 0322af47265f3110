import numpy as np
import pytest
from scipy.stats import chisquare
from tests.masks.example_passages import alone, plain, ragged, repeated, statistics

from besag.errors import BesagError
from besag.masks import LAWS, Masking, Replacement, law, rate_named

MASK = 2


def masking(name="uniform", rate=0.3, predict=1.0, rate_law="constant", **options):
    chosen = law(name, **options).prepare(statistics())
    return Masking(chosen, rate_named(rate_law, rate), Replacement(MASK), predict)


def test_hidden_tokens_are_masked_and_asked():
    passages = ragged([50, 20, 9])
    corrupted = masking()(passages, 0.0, seed=1)
    assert (corrupted.inputs[corrupted.hidden] == MASK).all()
    assert (corrupted.inputs == passages.ids)[~corrupted.hidden].all()
    assert (corrupted.asked == corrupted.hidden).all()
    assert corrupted.rate.tolist() == [0.3] * 3


def test_a_share_of_the_hidden_tokens_is_asked():
    passages = repeated(plain(20), 5000)
    corrupted = masking(rate=0.5, predict=0.25)(passages, 0.0, seed=1)  # 10 hidden, 2.5 asked
    assert not (corrupted.asked & ~corrupted.hidden).any()
    count = np.bincount(passages.row[corrupted.asked])
    assert set(count.tolist()) == {2, 3}
    assert abs(count.mean() - 2.5) < 4 * 0.5 / np.sqrt(5000)
    where = np.bincount(passages.place[corrupted.asked], minlength=20)
    assert chisquare(where).pvalue > 1e-3


def test_something_is_asked_wherever_something_is_hidden():
    corrupted = masking(rate=0.1, predict=0.01)(repeated(plain(20), 50), 0.0, seed=1)
    assert corrupted.asked.sum() == 50


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("count", [2, 3])
def test_no_token_is_hidden_in_two_copies(name, count):
    passages = ragged([60, 45, 7, 2], inside=0.05, draw=[7, 2**32 - 1, 0, 5])
    mask = masking(name, rate=0.25)
    copied = mask.copies(passages, count)
    corrupted = mask(copied, 0.0, seed=4)
    hidden = corrupted.hidden.reshape(count, -1)
    assert hidden.sum(0).max() <= 1
    assert (hidden[0] == mask(passages, 0.0, seed=4).hidden).all()
    sizes = np.array([np.bincount(passages.row[each], minlength=4) for each in hidden])
    if name != "linguistic_entities":  # which hides nothing but spans, and these are soon spent
        assert (sizes[:, :2] >= 0.6 * sizes[0, :2]).all()  # whole units may not fit; the number wanted is the same
    assert corrupted.rate.tolist() == [0.25] * 4 * count


def test_copies_hide_equally_many_tokens_and_every_token_with_the_same_chance():
    mask, passages = masking(rate=0.25), repeated(plain(8), 4000)
    hidden = mask(mask.copies(passages, 3), 0.0, seed=2).hidden.reshape(3, 4000, 8)
    assert (hidden.sum(2) == 2).all()
    for copy in hidden:
        assert chisquare(copy.sum(0)).pvalue > 1e-3


def test_copies_of_independent_tokens_keep_their_rate():
    mask, passages = masking(rate=0.25, count="bernoulli"), repeated(plain(100), 400)
    hidden = mask(mask.copies(passages, 2), 0.0, seed=2).hidden.reshape(2, -1)
    assert abs(hidden[1].mean() - 0.25) < 0.01


def test_a_copy_need_not_stand_beside_the_others():
    passages = ragged([60, 45], seed=2)
    mask = masking("span", rate=0.2)
    copied = mask.copies(passages, 3)
    together = mask(copied, 0.0, seed=4)
    for number in range(6):
        by_itself = mask(alone(copied, number), 0.0, seed=4)
        assert (by_itself.inputs == together.inputs[copied.row == number]).all()


def test_drawn_rates_decide_how_much_is_hidden():
    passages = repeated(plain(100), 64)
    corrupted = masking(rate_law="uniform")(passages, 0.0, seed=0)
    share = np.bincount(passages.row[corrupted.hidden], minlength=64) / 100
    assert np.abs(share - corrupted.rate).max() <= 0.01
    assert share.min() < 0.05
    assert share.max() > 0.95


def test_shares_and_counts_that_cannot_be_are_refused():
    with pytest.raises(BesagError, match="predict is 0"):
        masking(predict=0)
    with pytest.raises(BesagError, match="copies=0"):
        Masking.copies(plain(3), 0)
    with pytest.raises(BesagError, match="disjoint shares, so copies × rate can be at most 1"):
        masking(rate=0.4)(Masking.copies(plain(3), 3), 0.0, seed=0)
