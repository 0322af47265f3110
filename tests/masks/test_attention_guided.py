import numpy as np
import pytest
from tests.masks.example_passages import plain, repeated

from besag.errors import BesagError
from besag.masks import Passages, Statistics, law
from besag.masks.attention_guided import received

CORPUS = Statistics(np.array([0, 30, 10, 40, 20]), [], frozenset({0}), ("[MASK]", "a", "b", "c", "d"))
DRAWS = 20_000


def shares(made, passages, count) -> np.ndarray:
    hidden = made.choose(passages, np.full(DRAWS, 1 / count), 0.0, 3)
    return hidden.reshape(DRAWS, count).mean(0)


def test_before_anything_is_seen_every_token_is_alike():
    passages = repeated(plain(4)._replace(ids=np.array([1, 2, 3, 4])), DRAWS)
    assert shares(law("attention_guided").prepare(CORPUS), passages, 4) == pytest.approx([0.25] * 4, abs=0.012)


@pytest.mark.parametrize("power", [1.0, -1.0, 2.0])
def test_what_is_looked_at_is_hidden_in_proportion(power):
    made = law("attention_guided", decay=0.0, power=power).prepare(CORPUS)
    made.observe_attention(np.array([1, 2, 3, 4, 4]), np.array([1.0, 2.0, 4.0, 2.0, 4.0]))
    weight = np.array([1.0, 2.0, 4.0, 3.0]) ** power
    passages = repeated(plain(4)._replace(ids=np.array([1, 2, 3, 4])), DRAWS)
    assert shares(made, passages, 4) == pytest.approx(weight / weight.sum(), abs=0.012)
    tilt = made.tilt(0.01)[1:]
    assert tilt - tilt[0] == pytest.approx(np.log(weight / weight[0]))


def test_the_table_is_a_running_mean_without_a_unit():
    one, other = (law("attention_guided", decay=0.5).prepare(CORPUS) for _ in range(2))
    ids, seen = np.array([1, 2, 2]), np.array([0.1, 0.2, 0.6])
    one.observe_attention(ids, seen)
    other.observe_attention(ids, 1000 * seen)
    assert one.state()["received"] == pytest.approx([1, 0.5 + 0.5 / 3, 0.5 + 0.5 * 4 / 3, 1, 1])
    assert other.state()["received"] == pytest.approx(one.state()["received"])
    one.observe_attention(np.empty(0, int), np.empty(0))
    third = law("attention_guided", decay=0.5).prepare(CORPUS)
    third.restore(one.state())
    assert (third.state()["received"] == one.state()["received"]).all()


def test_losses_teach_it_nothing():
    made = law("attention_guided").prepare(CORPUS)
    made.observe(np.array([1, 2]), np.array([9.0, 0.1]), np.array([False, True]))
    assert (made.state()["received"] == 1).all()


def test_the_attention_of_the_passage_itself():
    weight = np.array([1.0, 0.5, 3.0, 0.5])
    made = law("attention_guided").prepare(CORPUS)
    passages = repeated(plain(4)._replace(ids=np.array([1, 1, 1, 1])), DRAWS)
    given = made.with_weights(np.tile(weight, DRAWS) * np.repeat(np.arange(1, DRAWS + 1), 4))
    assert shares(given, passages, 4) == pytest.approx(weight / weight.sum(), abs=0.012)
    assert given.tilt() is None
    assert made.tilt() is not None  # it was not changed


def test_attention_on_special_tokens_does_not_count():
    made = law("attention_guided").prepare(CORPUS)
    passages = Passages(np.array([0, 1, 2, 0]), np.zeros(4, int), np.array([False, True, True, False]),
                        np.array([-1, 0, 1, -1]), np.full(4, -1), np.zeros(1, int))  # fmt: skip
    hidden = made.with_weights([50.0, 1.0, 0.0, 50.0]).choose(passages, np.full(1, 0.5), 0.0, 1)
    assert hidden.tolist() == [False, True, False, False]


def test_weights_that_do_not_fit():
    made = law("attention_guided").prepare(CORPUS)
    with pytest.raises(BesagError, match="3 numbers for 4 tokens"):
        made.with_weights([1.0, 2.0, 3.0]).choose(plain(4), np.full(1, 0.5), 0.0, 0)
    with pytest.raises(BesagError, match="0 or more"):
        made.with_weights([1.0, -2.0])


def test_received_is_the_mean_of_each_column():
    attention = np.random.default_rng(0).dirichlet(np.ones(5), size=(2, 3, 5))
    assert received(attention) == pytest.approx(attention.reshape(-1, 5).mean(0))
    assert received(attention).sum() == pytest.approx(1)
