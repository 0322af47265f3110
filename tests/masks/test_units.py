import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.masks.example_passages import drawn, plain, ragged, repeated

from besag.masks.units import budget, take, take_tokens, uniform_turns


def one_by_one(passages, unit, turn, limit):
    """The definition, as plain loops."""
    chosen = np.zeros(len(unit), bool)
    for row, left in enumerate(limit.tolist()):
        units: dict[int, list[int]] = {}
        for at in np.flatnonzero((passages.row == row) & passages.free & (unit >= 0)).tolist():
            units.setdefault(int(unit[at]), []).append(at)
        for tokens in sorted(units.values(), key=lambda tokens: turn[tokens[0]]):
            if len(tokens) <= left:
                chosen[tokens] = True
                left -= len(tokens)
    return chosen


@given(drawn(), st.sampled_from(["words", "spans", "anything"]), st.booleans(), st.integers(0, 1000))
def test_units_are_taken_in_turn_while_they_fit(passages, kind, ties, seed):
    rng = np.random.default_rng(seed)
    size = len(passages.ids)
    unit = {"words": passages.word, "spans": passages.span, "anything": rng.integers(-1, 6, size)}[kind]
    # equal turns keep the order of the text, where the units stand in one
    turn = rng.integers(0, 3, size) * 1.0 if ties and kind != "anything" else rng.exponential(size=size)
    limit = rng.integers(0, 15, len(passages.draw))
    assert (take(passages, unit, turn, limit) == one_by_one(passages, unit, turn, limit)).all()


@given(drawn(), st.integers(0, 1000))
def test_tokens_are_units_too(passages, seed):
    turn = uniform_turns(passages, seed)
    limit = np.random.default_rng(seed).integers(0, 15, len(passages.draw))
    assert (take_tokens(passages, turn, limit) == one_by_one(passages, np.arange(len(turn)), turn, limit)).all()


def test_a_large_unit_is_passed_over_and_smaller_ones_still_come():
    passages = plain(6)
    unit, turn = np.array([0, 0, 1, 1, 1, 2]), np.array([0.1, 0.9, 0.2, 0.9, 0.9, 0.3])
    assert take(passages, unit, turn, np.array([3])).tolist() == [True, True, False, False, False, True]


def test_the_budget_has_the_wanted_mean_and_no_more_spread_than_it_must():
    passages = repeated(plain(9), 20_000)
    counts = budget(passages, np.full(20_000, 0.3), seed=0)  # 2.7
    assert set(counts.tolist()) == {2, 3}
    assert abs(counts.mean() - 2.7) < 4 * np.sqrt(0.7 * 0.3 / 20_000)
    assert set(budget(passages, np.full(20_000, 1 / 3), seed=0).tolist()) == {3}


def test_a_budget_is_at_least_one_token_and_at_most_all():
    passages = ragged([40, 3, 1, 2], specials=True)
    sizes = passages.sizes
    assert sizes[2:].tolist() == [0, 0]
    assert budget(passages, np.full(4, 1e-6), 0).tolist() == [1, 1, 0, 0]
    assert budget(passages, np.ones(4), 0).tolist() == sizes.tolist()
    assert budget(passages, np.zeros(4), 0).tolist() == [0, 0, 0, 0]
