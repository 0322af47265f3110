"""What every law owes, whatever it hides: all that is registered is held to this."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.masks.example_passages import alone, drawn, ragged, statistics

from besag.errors import BesagError
from besag.masks import LAWS, Adaptive, Passages, law
from besag.masks.units import budget

CORPUS = statistics()
SEVERAL = {"uniform": [{}], "span": [{}, {"at": "token"}], "entities": [{}, {"rest": "whole_word"}, {"rest": "none"}]}
CASES = [(name, options) for name in LAWS for options in SEVERAL.get(name, [{}])]
PREPARED = {str(case): law(case[0], **case[1]).prepare(CORPUS) for case in CASES}
every_law = pytest.mark.parametrize("case", PREPARED)
few = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 2**63)


def counted(passages: Passages, hidden) -> np.ndarray:
    return np.bincount(passages.row[hidden], minlength=len(passages.draw))


@every_law
@few
@given(passages=drawn(), rate=st.floats(0, 1), progress=st.floats(0, 1), seed=seeds)
def test_only_free_tokens_and_never_more_than_the_budget(case, passages, rate, progress, seed):
    rates = np.full(len(passages.draw), rate)
    hidden = PREPARED[case].choose(passages, rates, progress, seed)
    assert hidden.shape == passages.ids.shape
    assert hidden.dtype == bool
    assert not (hidden & ~passages.free).any()
    assert (counted(passages, hidden) <= budget(passages, rates, seed)).all()


@every_law
@few
@given(passages=drawn(), rate=st.floats(0.05, 1), seed=seeds, order=st.randoms(use_true_random=False))
def test_a_passage_is_masked_alike_whatever_stands_beside_it(case, passages, rate, seed, order):
    rates = np.linspace(rate, rate / 2, len(passages.draw))
    together = PREPARED[case].choose(passages, rates, 0.5, seed)
    for number in range(len(rates)):
        by_itself = PREPARED[case].choose(alone(passages, number), rates[[number]], 0.5, seed)
        assert (by_itself == together[passages.row == number]).all()
    rows = list(range(len(rates)))
    order.shuffle(rows)
    parts = [alone(passages, number) for number in rows]
    mixed = Passages(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    mixed = mixed._replace(row=np.repeat(np.arange(len(rows)), [len(part.ids) for part in parts]))
    hidden = PREPARED[case].choose(mixed, rates[rows], 0.5, seed)
    assert (hidden == np.concatenate([together[passages.row == number] for number in rows])).all()


@every_law
def test_another_seed_or_draw_hides_other_places(case):
    passages = ragged([60] * 20, joined=0.1)
    rates = np.full(20, 0.1)
    first = PREPARED[case].choose(passages, rates, 0.0, 1)
    assert (first == PREPARED[case].choose(passages, rates, 0.0, 1)).all()
    for other in (
        PREPARED[case].choose(passages, rates, 0.0, 2),
        PREPARED[case].choose(passages._replace(draw=passages.draw + 20), rates, 0.0, 1),
    ):
        assert len(np.unique(passages.row[first != other])) > 14  # a passage with one span to hide has no choice


@every_law
def test_the_budget_is_spent(case):
    """To a few tokens: with single-token words and no spans, to the last."""
    of_spans = "none" in case or "linguistic_entities" in case
    passages = ragged([80] * 50, joined=0.0, inside=0.5 if of_spans else 0.0)
    for rate in (0.15, 0.4, 1.0):
        rates = np.full(50, rate)
        wanted = budget(passages, rates, 3)
        if "none" in case:  # at most what stands in spans, and a span may not fit
            wanted = np.minimum(wanted - 2, counted(passages, passages.span >= 0))
            assert (counted(passages, PREPARED[case].choose(passages, rates, 0.0, 3)) >= wanted).all()
        elif of_spans:  # a token of each
            spans = [
                len(set(passages.span[(passages.row == row) & passages.free].tolist()) - {-1}) for row in range(50)
            ]
            hidden = counted(passages, PREPARED[case].choose(passages, rates, 0.0, 3))
            assert (hidden == np.minimum(wanted, spans)).all()
        else:
            assert (counted(passages, PREPARED[case].choose(passages, rates, 0.0, 3)) == wanted).all()


@every_law
def test_nothing_to_hide_is_no_mistake(case):
    passages = ragged([1, 2, 1])
    assert not passages.free.any()
    assert not PREPARED[case].choose(passages, np.full(3, 0.5), 0.0, 0).any()
    assert not PREPARED[case].choose(ragged([30, 5]), np.zeros(2), 0.0, 0).any()


@every_law
def test_no_law_changes_what_it_is_given(case):
    passages = ragged([30, 12], seed=4)
    kept = Passages(*(part.copy() for part in passages))
    PREPARED[case].choose(passages, np.full(2, 0.4), 0.3, 0)
    assert all((before == after).all() for before, after in zip(kept, passages, strict=True))


@every_law
def test_a_tilt_is_a_number_for_each_token(case):
    tilt = PREPARED[case].tilt()
    assert tilt is None or (tilt.shape == (len(CORPUS.counts),) and np.isfinite(tilt[CORPUS.counts > 0]).all())


@pytest.mark.parametrize("name", LAWS)
def test_options_are_known_and_others_refused(name):
    made = law(name)
    assert [field.name for field in dataclasses.fields(made)] == LAWS.options(name)
    with pytest.raises(BesagError, match="no option 'colour'"):
        law(name, colour="red")


def test_an_unknown_law_is_answered_with_the_nearest():
    with pytest.raises(BesagError, match="Did you mean 'whole_word'"):
        law("whole-word")


@pytest.mark.parametrize("name", [name for name, kind in LAWS.items() if issubclass(kind, Adaptive)])
def test_what_an_adaptive_law_has_learned_can_be_saved(name):
    rng = np.random.default_rng(0)
    learned, fresh = (law(name).prepare(CORPUS) for _ in range(2))
    for _ in range(150):
        ids = rng.integers(3, 60, 200)
        learned.observe(ids, rng.exponential(ids / 20), rng.random(200) < ids / 60)
    passages, rates = ragged([60] * 20), np.full(20, 0.3)
    assert (learned.choose(passages, rates, 0.5, 0) != fresh.choose(passages, rates, 0.5, 0)).any()
    fresh.restore({key: part.copy() for key, part in learned.state().items()})
    assert (learned.choose(passages, rates, 0.5, 0) == fresh.choose(passages, rates, 0.5, 0)).all()
