from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import networks
from tests.laws import Arbitrary, Counting

import besag.engine
from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.engine import Engine
from besag.errors import BesagError
from besag.joints import asking
from besag.joints.unaries import Unaries
from besag.places.places import Places, find


class Wide(Arbitrary):
    """A head wider than its vocabulary: ids 0 … 4 are text, 5 is the mask, and 6 has no token."""

    def __init__(self) -> None:
        super().__init__(5)
        self.width = 7


def logits_of(law, ids: list[int], place: int) -> np.ndarray:
    if isinstance(law, Arbitrary):
        return law.logits(ids, place)
    joint = law.log_probs.numpy()  # what is shown is fixed, what is hidden and not asked is summed out
    shown = tuple(slice(None) if token == law.width else token for token in ids)
    rest = joint[shown]
    axes = tuple(axis for axis, at in enumerate(np.flatnonzero(np.array(ids) == law.width)) if at != place)
    return np.log(np.exp(rest).sum(axes))


def by_hand(law, places: Places, ids_a, ids_b) -> SimpleNamespace:
    """All that `Unaries` holds, from its definition, one plain loop a table."""
    mask, (a, b) = law.vocabulary.mask_id, places.at

    def shown(x: int, y: int) -> list[int]:
        ids = places.ids.tolist()
        ids[a], ids[b] = x, y
        return ids

    def law_of(logits: np.ndarray, ids) -> tuple[np.ndarray, float, float]:
        energy = np.logaddexp.reduce(logits[ids])
        return logits[ids] - energy, energy, 1 - np.exp(energy - np.logaddexp.reduce(logits))

    of_a = [law_of(logits_of(law, shown(mask, y), a), ids_a) for y in ids_b]
    of_b = [law_of(logits_of(law, shown(x, mask), b), ids_b) for x in ids_a]
    hidden_a, _, lost_a = law_of(logits_of(law, shown(mask, mask), a), ids_a)
    hidden_b, _, lost_b = law_of(logits_of(law, shown(mask, mask), b), ids_b)
    return SimpleNamespace(
        log_a=np.stack([part[0] for part in of_a], 1),
        log_b=np.stack([part[0] for part in of_b]),
        energy_a=np.array([part[1] for part in of_a]),
        energy_b=np.array([part[1] for part in of_b]),
        hidden_a=hidden_a,
        hidden_b=hidden_b,
        lost=(
            lost_a,
            lost_b,
            np.exp(hidden_b) @ [part[2] for part in of_a],
            np.exp(hidden_a) @ [part[2] for part in of_b],
        ),
    )


def agree(unaries: Unaries, law, places: Places, atol: float = 1e-12) -> None:
    expected = by_hand(law, places, unaries.ids_a, unaries.ids_b)
    for name in ("log_a", "log_b", "energy_a", "energy_b", "hidden_a", "hidden_b"):
        np.testing.assert_allclose(getattr(unaries, name).numpy(), getattr(expected, name), atol=atol, err_msg=name)
    np.testing.assert_allclose(unaries.lost, expected.lost, atol=atol)
    assert unaries.log_a.dtype == torch.float64


def planned(law, places: Places, **options) -> Unaries:
    return next(Engine(law).run([asking.plan(law, places, **options)]))


LAWS = st.sampled_from([Arbitrary(4), Wide(), Table.random(4, 4, seed=1)])
PLACES = st.sampled_from([(1, 3), (3, 1), (0, 1)])


@given(LAWS, PLACES, st.sampled_from(["text", "all"]), st.integers(1, 50))
def test_the_whole_vocabulary_is_what_its_definition_says(law, positions, outcomes, batch_tokens):
    if isinstance(law, Table):
        outcomes = "text"
    places = find(law.vocabulary, "s0 s1 s2 s1", positions)
    unaries = asking.unaries(Engine(law, batch_tokens=batch_tokens), places, outcomes=outcomes)
    count = law.width if outcomes == "all" else law.vocabulary.mask_id
    assert unaries.ids_a.tolist() == unaries.ids_b.tolist() == list(range(count))
    assert unaries.gold == places.gold  # ids and indices are the same here
    assert unaries.forced == (False, False)
    agree(unaries, law, places)


@given(LAWS, PLACES, st.integers(1, 7), st.integers(1, 3))
def test_candidate_sets_are_what_their_definition_says(law, positions, k, through):
    places = find(law.vocabulary, "s0 s1 s2 s1", positions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(besag.joints.candidates, "THROUGH", through)  # so that some are known and some are not
        unaries = planned(law, places, candidates=k)
    assert unaries.shape == (min(k, law.vocabulary.mask_id),) * 2
    assert tuple(ids[at] for ids, at in zip((unaries.ids_a, unaries.ids_b), unaries.gold, strict=True)) == places.gold
    agree(unaries, law, places)


@given(st.sampled_from([Arbitrary(5), Wide()]), st.integers(1, 5), st.integers(1, 5))
def test_given_words_of_any_number(law, m, k):
    places = find(law.vocabulary, "s0 [MASK] s2 [MASK]")
    words = [[f"s{number}" for number in range(count)] for count in (m, k)]
    agree(planned(law, places, candidates=words), law, places)
    unaries = asking.unaries(Engine(law), places, candidates=words)
    assert unaries.shape == (m, k)
    assert unaries.gold is None
    agree(unaries, law, places)


def test_streamed_candidate_sets_are_the_planned_ones(monkeypatch):
    law = Arbitrary(9)
    places = find(law.vocabulary, "s0 s1 s2 s1", (1, 3))
    plan = asking.unaries(Engine(law), places, candidates=4)
    monkeypatch.setattr(asking, "POOLED", 3)
    stream = asking.unaries(Engine(law), places, candidates=4)
    agree(stream, law, places)
    for name in ("ids_a", "ids_b", "gold", "forced"):
        assert np.array_equal(getattr(plan, name), getattr(stream, name))


def test_all_candidates_are_the_whole_vocabulary_in_another_order():
    law = Arbitrary(6)
    places = find(law.vocabulary, "s0 s1 s2 s1", (1, 3))
    whole, ranked = asking.unaries(Engine(law), places), planned(law, places, candidates=99)
    assert ranked.ids_a.tolist() != whole.ids_a.tolist()
    for name in ("log_a", "log_b"):
        np.testing.assert_allclose(
            getattr(ranked, name), getattr(whole, name)[ranked.ids_a][:, ranked.ids_b], atol=1e-12
        )
    np.testing.assert_allclose(ranked.energy_a, whole.energy_a[ranked.ids_b], atol=1e-12)
    np.testing.assert_allclose(ranked.hidden_a, whole.hidden_a[ranked.ids_a], atol=1e-12)
    assert ranked.lost == pytest.approx((0, 0, 0, 0), abs=1e-12)


def test_nothing_is_asked_twice_and_the_head_runs_on_one_row_a_sequence():
    law = Counting(Arbitrary(50))
    places = find(law.vocabulary, "s0 s1 s2 s1", (1, 3))
    planned(law, places, candidates=40)
    assert len(set(law.sequences)) == len(law.sequences) == law.head_rows - 1 <= 1 + 2 * 32 + 2 * 40
    law = Counting(Arbitrary(50))
    asking.unaries(Engine(law), places)
    assert len(law.sequences) == law.head_rows - 1 == 1 + 2 * 50


def test_many_pairs_share_batches_and_change_nothing():
    law = Counting(Arbitrary(6))
    pairs = [find(law.vocabulary, f"s{x} s1 s2 s{y} s0", (1, 3)) for x in range(4) for y in range(4)]
    alone = [planned(law.inner, places, candidates=3) for places in pairs]
    together = list(Engine(law).run(asking.plan(law, places, candidates=3) for places in pairs))
    assert len(law.batches) <= 3
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one.log_a, other.log_a)
        assert torch.equal(one.energy_b, other.energy_b)
        assert one.ids_a.tolist() == other.ids_a.tolist()


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_networks_answer_as_their_plain_forward_does(family):
    model, words = networks.tiny(family), networks.vocabulary(family)
    places = find(words, "The man is at the casino.", ("man", "is"))
    (a, b), mask = places.at, words.mask_id
    unaries = asking.unaries(Engine(Transformer(model, words)), places)
    ids = torch.from_numpy(unaries.ids_a)
    assert (unaries.log_a.dtype == torch.float64) == (unaries.log_a.numel() <= asking.PRECISE)

    def plain(values: torch.Tensor, show: int, ask: int) -> torch.Tensor:
        copies = torch.from_numpy(places.ids).repeat(len(values), 1)
        copies[:, [a, b]] = mask
        copies[:, show] = values
        with torch.no_grad():
            return model(input_ids=copies, attention_mask=torch.ones_like(copies)).logits[:, ask]  # (n, V)

    given_b, given_a = plain(ids, b, a), plain(ids, a, b)
    close = {"atol": 1e-4, "rtol": 1e-4, "check_dtype": False}
    torch.testing.assert_close(unaries.log_a, torch.log_softmax(given_b[:, ids], 1).T, **close)
    torch.testing.assert_close(unaries.log_b, torch.log_softmax(given_a[:, ids], 1), **close)
    torch.testing.assert_close(unaries.energy_a, torch.logsumexp(given_b[:, ids], 1), **close)
    torch.testing.assert_close(unaries.energy_b, torch.logsumexp(given_a[:, ids], 1), **close)
    hidden = plain(torch.tensor([mask]), b, a)[0]
    torch.testing.assert_close(unaries.hidden_a, torch.log_softmax(hidden[ids], 0), **close)
    outside = 1 - torch.softmax(hidden, 0)[ids].sum()
    assert unaries.lost.hidden_a == pytest.approx(float(outside), abs=1e-5)
    few = planned(Transformer(model, words), places, candidates=10)
    picked = unaries.log_a[torch.from_numpy(np.searchsorted(unaries.ids_a, few.ids_a))]
    picked = picked[:, torch.from_numpy(np.searchsorted(unaries.ids_b, few.ids_b))]
    torch.testing.assert_close(few.log_a, torch.log_softmax(picked, 0), **close)


def test_too_large_a_vocabulary_is_refused_with_a_way_out(monkeypatch):
    law = Counting(Arbitrary(300))
    places = find(law.vocabulary, "s0 s1 s2", (0, 2))
    monkeypatch.setattr(asking, "memory_available", lambda device: 1_000_000)
    with pytest.raises(BesagError) as refusal:
        asking.unaries(Engine(law), places)
    assert len(law.sequences) == 1  # said before the work is done
    assert str(refusal.value) == (
        "the joint of 's0' (token 0) and 's2' (token 2) over 300 × 300 outcomes needs 1.4 MB for its two tables, and "
        "1.0 MB are free on cpu: candidate sets need less, candidates=200 640.0 kB."
    )
    monkeypatch.setattr(asking, "memory_available", lambda device: 2_000_000)
    assert asking.unaries(Engine(law), places).shape == (300, 300)
    monkeypatch.setattr(asking, "memory_available", lambda device: None)  # nobody tells: nothing is refused
    assert asking.unaries(Engine(law), places).shape == (300, 300)


def test_what_two_tables_need():
    assert asking.needed_bytes(100, 50, torch.float32) == 40_000
    assert asking.needed_bytes(100, 50, torch.float64) == 80_000


@pytest.mark.parametrize("pooled", [0, 1024])
def test_outcomes_that_are_all_impossible_are_said(monkeypatch, pooled):
    monkeypatch.setattr(asking, "POOLED", pooled)
    weights = np.eye(4) + np.eye(4)[::-1]  # given s0, the other is s0 or s3
    law = Table(weights)
    places = find(law.vocabulary, "[MASK] [MASK]")
    with pytest.raises(BesagError, match="given 's1', the model leaves all outcomes of token 0 probability 0"):
        asking.unaries(Engine(law), places, candidates=[["s0", "s3"], ["s0", "s1"]])


def test_outcomes_that_are_impossible_with_both_hidden_are_said():
    class Shy(Arbitrary):
        """Never says s2 of its own accord."""

        def logits(self, context, place):
            shy = context.count(self.width) == 2
            return np.where(shy & (np.arange(self.width) == 2), -np.inf, super().logits(context, place))

    law = Shy(4)
    with pytest.raises(BesagError, match="with both places hidden, the model leaves all outcomes of token 2"):
        asking.unaries(Engine(law), find(law.vocabulary, "[MASK] s0 [MASK]"), candidates=[["s0", "s1"], ["s2"]])


def test_zeros_inside_a_table_are_minus_infinity_and_not_nan():
    law = Table(np.eye(3) + np.ones((3, 3)) * [1, 0, 0] + np.eye(3)[::-1])
    unaries = asking.unaries(Engine(law), find(law.vocabulary, "[MASK] [MASK]"))
    assert bool((unaries.log_a == -torch.inf).any())
    assert not bool(unaries.log_a.isnan().any())


def test_a_broken_network_is_heard():
    class Broken(Arbitrary):
        def head(self, rows):
            return torch.where(torch.arange(len(rows))[:, None] == 2, torch.nan, rows)

    law = Broken(4)
    with pytest.raises(BesagError, match="answered with NaN"):
        asking.unaries(Engine(law), find(law.vocabulary, "s0 s1 s2", (0, 2)))
