"""Sets of little dependence: no stutter on the toy law, the joint where nothing is lost, and known laws elsewhere."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import networks
from tests.samplers.enumerated import entropy, total_correlation, toy

from besag.conditionals.ising import Ising
from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.diagnostics.texts import stutter
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank, conditional, empirical, follows, number, run, total_variation
from besag.samplers import kernel
from besag.samplers.kernel import Canvas, Noise
from besag.samplers.kernels import adaptive
from besag.samplers.kernels.adaptive import spread_out
from besag.samplers.kernels.signals import distance

CHAINS = 10_000


# ---- the definition, as plain loops


def price(D: np.ndarray, H: np.ndarray, hides: list[int], chosen: tuple[int, ...], left: int, weight: float) -> float:
    """W(S) + W(rest) / (R − 1) + weight · Σ H."""
    rest = [place for place in hides if place not in chosen]
    inside = sum(D[i, j] for i, j in combinations(chosen, 2))
    outside = sum(D[i, j] for i, j in combinations(rest, 2))
    return inside + (outside / (left - 1) if left > 1 else 0.0) + weight * sum(H[i] for i in chosen)


def best_set(D: np.ndarray, H: np.ndarray, hides: list[int], left: int, weight: float) -> tuple[int, ...]:
    """Of all sets of ⌈h / R⌉ places."""
    size = -(-len(hides) // left)
    return min(combinations(hides, size), key=lambda chosen: price(D, H, hides, chosen, left, weight))


def distances(places: int, reach: float = 2.0) -> np.ndarray:
    return np.array([[0.0 if i == j else np.exp(-(abs(i - j) - 1) / reach) for j in range(places)]
                     for i in range(places)])  # fmt: skip


def decoded_law(law, places: int, rounds: int | None, weight: float = 0.05):
    """(V^n,) with the signal "distance", all ways followed; and the steps met: (probability, sequence, set).

    `rounds=None` is budget=0: so many passes that sets have one place.
    """
    width, D = law.width, distances(places)
    total, met = np.zeros(width**places), []

    def follow(sequence: np.ndarray, probability: float, step: int) -> None:
        hides = [place for place in range(places) if sequence[place] == width]
        if not hides:
            total[number(sequence[None], width)[0]] += probability
            return
        rows = {place: conditional(law, sequence, hides, place) for place in hides}
        H = np.array([entropy(rows[place]) if place in rows else 0.0 for place in range(places)])
        left = len(hides) if rounds is None else max(rounds - step, 1)
        chosen = best_set(D, H, hides, left, weight)
        met.append((probability, sequence.copy(), list(chosen)))
        for tokens in product(range(width), repeat=len(chosen)):
            moved, share = sequence.copy(), probability
            for place, token in zip(chosen, tokens, strict=True):
                moved[place] = token
                share *= rows[place][token]
            if share > 0:
                follow(moved, share, step + 1)

    follow(np.full(places, width), 1.0, 0)
    return total, met


# ---- the toy of the paper


@pytest.mark.parametrize(
    "options",
    [
        {"signal": "change", "budget": 0.1},
        {"signal": "information", "budget": 0.1, "candidates": 4},
        {"signal": "change", "rounds": 2},
        {"signal": "distance", "rounds": 2},
        {"signal": "distance", "budget": 0.0},
        {"signal": "change", "budget": 0.0, "pairs": "ag"},
    ],
)
def test_the_toy_never_stutters(options):
    law = toy()
    state, _ = run(kernel("adaptive", **options), law, blank(law, 3, 5000))
    assert stutter(state.ids.tolist()).value == 0
    assert follows(np.bincount(number(state.ids, 4), minlength=64), law.log_probs.exp().numpy())


def test_all_at_once_stutters_and_refining_mends_it_as_computed():
    """One pass: ¼ "walking walking". Hidden again both together, the pair is drawn right; what is missing stays so."""
    law = toy()
    joint, product_law = law.log_probs.exp().numpy(), np.zeros((4, 4, 4))
    product_law[0, 1:3, 2:4] = 0.25
    at_once = empirical(kernel("adaptive", rounds=1), law, blank(law, 3, CHAINS))
    assert follows(at_once, product_law)
    mended = product_law.copy()
    mended[0, 2, 2] = 0
    mended += 0.25 * joint
    counts = empirical(kernel("adaptive", rounds=1, refine=1), law, blank(law, 3, CHAINS))
    assert follows(counts, mended)
    assert counts.reshape(4, 4, 4)[0, 1, 3] > 0  # the omission cannot be seen


# ---- laws


def test_independent_places_all_go_in_one_step():
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    joint = np.einsum("a,b,c,d->abcd", *rows)
    law = Table(joint)
    options = {"signal": "change", "budget": 1e-6}
    _, told = run(kernel("adaptive", **options), law, blank(law, 4, 50))
    assert len(told) == 1
    assert (told[0].passes == 1 + 5).all()  # one that draws; one for each place and one with none that measure
    assert follows(empirical(kernel("adaptive", **options), law, blank(law, 4, CHAINS)), joint)


@pytest.mark.parametrize("signal", ["distance", "change", "information"])
def test_budget_zero_is_the_joint(signal):
    law = Table.random(3, 3, seed=1)
    options = {"signal": signal, "budget": 0.0, "candidates": 3}
    _, told = run(kernel("adaptive", **options), law, blank(law, 3, 50))
    assert len(told) == 3
    joint = law.log_probs.exp().numpy()
    assert follows(empirical(kernel("adaptive", **options), law, blank(law, 3, 8000)), joint)
    assert not follows(empirical(kernel("adaptive", rounds=1), law, blank(law, 3, 8000)), joint)


def test_budget_zero_on_incompatible_conditionals_is_the_enumerated_chain_rule():
    law = Incompatible(3, 3)
    expected, met = decoded_law(law, 3, None)
    assert all(len(chosen) == 1 for _, _, chosen in met)
    assert follows(empirical(kernel("adaptive", budget=0.0), law, blank(law, 3, CHAINS)), expected)


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("family", ["joint", "incompatible"])
def test_rounds_have_the_enumerated_law(family, rounds):
    law = Table.random(2, 4, seed=3) if family == "joint" else Incompatible(2, 4, seed=3)
    expected, met = decoded_law(law, 4, rounds)
    counts = empirical(kernel("adaptive", rounds=rounds), law, blank(law, 4, CHAINS))
    assert follows(counts, expected)
    one_by_one, _ = decoded_law(law, 4, None)
    assert total_variation(expected, one_by_one) > 0.02
    assert max(len(chosen) for _, _, chosen in met) == -(-4 // rounds)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_what_is_lost_is_the_total_correlation_of_the_sets(rounds):
    for seed in range(3):
        law = Table.random(2, 4, seed=seed)
        joint = law.log_probs.exp().numpy()
        ends, met = decoded_law(law, 4, rounds)
        # the probability that the *joint* gives to meeting each step: its marginal of what is shown there
        expected = 0.0
        for _, sequence, chosen in met:
            shown = tuple(slice(None) if token == 2 else int(token) for token in sequence)
            expected += float(joint[shown].sum()) * total_correlation(joint, sequence, chosen)
        assert float((joint.ravel() * np.log(joint.ravel() / ends)).sum()) == pytest.approx(expected, abs=1e-9)


def test_pairs_from_their_joint():
    law = Table.random(3, 2, seed=2)
    joint = law.log_probs.exp().numpy()
    options = {"budget": 0.0, "pairs": "ag", "candidates": 3}
    _, told = run(kernel("adaptive", **options), law, blank(law, 2, 50))
    assert len(told) == 1
    assert (told[0].passes == 1 + 7).all()
    assert (told[0].more["revealed"] == 2).all()
    assert follows(empirical(kernel("adaptive", **options), law, blank(law, 2, CHAINS)), joint)
    product_law = np.outer(joint.sum(1), joint.sum(0))
    assert total_variation(joint, product_law) > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["distance", "change"])
def test_pair_after_pair_is_the_joint(signal):
    law = Table.random(2, 4, seed=5)
    options = {"budget": 0.0, "pairs": "ag", "signal": signal, "candidates": 2}
    _, told = run(kernel("adaptive", **options), law, blank(law, 4, 20))
    assert len(told) == 2
    counts = empirical(kernel("adaptive", **options), law, blank(law, 4, 8000))
    assert follows(counts, law.log_probs.exp().numpy())


@pytest.mark.slow
def test_a_pair_is_the_place_and_what_depends_most_on_it():
    """Places 0 and 2 are copies of each other, 1 and 3 of each other."""
    joint = np.zeros((2, 2, 2, 2))
    for a, b in product(range(2), repeat=2):
        joint[a, b, a, b] = 0.25
    law = Table(joint)
    options = {"budget": 0.0, "pairs": "ag", "signal": "change", "candidates": 2}
    engine, noise, canvas = Engine(law, progress=False), Noise(0, torch.arange(8)), blank(law, 4, 8)
    decoder = kernel("adaptive", **options)
    state, info = decoder.step(engine, noise, decoder.init(engine, noise, canvas))
    # the copies have 0.69 nats in common and the others none: two passes keep the dependence at 0, with sets of two
    assert (info.more["revealed"] == 2).all()
    assert (info.more["dependence"] == 0).all()
    shown = state.ids < 2
    assert (shown[:, 0] != shown[:, 2]).all()
    assert (shown[:, 1] != shown[:, 3]).all()
    assert follows(empirical(decoder, law, blank(law, 4, CHAINS)), joint)


@pytest.mark.slow
def test_three_places_may_depend_though_no_two_do():
    """x_2 = x_0 xor x_1: no pair tells anything, and sums over pairs cannot see it. The limit that is documented."""
    joint = np.zeros((2, 2, 2))
    for a, b in product(range(2), repeat=2):
        joint[a, b, a ^ b] = 0.25
    law = Table(joint)
    counts = empirical(kernel("adaptive", signal="information", budget=0.01), law, blank(law, 3, CHAINS))
    assert follows(counts, np.full(8, 1 / 8))
    assert not follows(counts, joint)
    assert follows(
        empirical(kernel("adaptive", budget=0.0), law, blank(law, 3, CHAINS)), joint
    )  # by distance: one by one


@pytest.mark.parametrize(
    ("rounds", "nats", "apart"), [(4, 0, 0), (3, 0.101, 0.221), (2, 0.179, 0.290), (1, 0.983, 0.558)]
)
def test_four_spins_lose_what_the_documentation_says(rounds, nats, apart):
    (exact, _), (found, _) = (decoded_law(Ising.chain(4, 1.0), 4, passes) for passes in (None, rounds))
    assert (exact * np.log(exact / found)).sum() == pytest.approx(nats, abs=5e-4)
    assert total_variation(exact, found) == pytest.approx(apart, abs=5e-4)


# ---- sets


def random_graph(seed: int, places: int) -> tuple[np.ndarray, np.ndarray]:
    """Dependences and entropies."""
    rng = np.random.default_rng(seed)
    D = np.triu(rng.exponential(size=(places, places)), 1)
    return D + D.T, rng.uniform(0, 7, size=places)


def found_set(
    D: np.ndarray, H: np.ndarray, left: int, weight: float, look_ahead: bool = True
) -> tuple[tuple[int, ...], float]:
    every = torch.ones(1, len(H), dtype=torch.bool)
    chosen, within = spread_out(
        torch.from_numpy(D)[None], torch.from_numpy(H)[None], every, torch.tensor([left]), weight, look_ahead
    )
    return tuple(chosen[0].nonzero()[:, 0].tolist()), float(within)


@given(st.integers(0, 10_000), st.integers(2, 8), st.integers(2, 4), st.sampled_from([0.0, 0.05, 1.0]))
@settings(max_examples=40, deadline=None)
def test_no_swap_makes_a_set_better(seed, places, left, weight):
    D, H = random_graph(seed, places)
    found, within = found_set(D, H, left, weight)
    hides = list(range(places))
    assert len(found) == -(-places // left)
    assert within == pytest.approx(sum(D[i, j] for i, j in combinations(found, 2)))
    mine = price(D, H, hides, found, left, weight)
    for out, into in product(found, [place for place in hides if place not in found]):
        assert mine <= price(D, H, hides, tuple(sorted({*found, into} - {out})), left, weight) + 1e-8


def test_without_looking_ahead_only_this_pass_counts():
    """Three friends and two sure strangers: the strangers lose nothing now, but leave the friends to one another."""
    D = np.zeros((5, 5))
    D[:3, :3] = 1 - np.eye(3)
    H = np.array([7.0, 7.0, 7.0, 0.0, 0.0])
    assert found_set(D, H, 3, 0.05, look_ahead=False) == ((3, 4), 0)
    ahead, within = found_set(D, H, 3, 0.05)
    assert (len({*ahead} & {0, 1, 2}), within) == (1, 0)


def test_sets_are_mostly_the_best_of_all():
    best, worse = 0, []
    for seed in range(60):
        D, H = random_graph(seed, 8)
        found, _ = found_set(D, H, 3, 0.05)
        prices = [price(D, H, list(range(8)), chosen, 3, 0.05) for chosen in combinations(range(8), len(found))]
        mine = price(D, H, list(range(8)), found, 3, 0.05)
        best += mine <= min(prices) + 1e-9
        worse.append((mine - min(prices)) / (np.mean(prices) - min(prices)))
    assert best >= 30
    assert np.mean(worse) < 0.1  # of what a set taken at random is worse by


@pytest.mark.parametrize(("places", "rounds", "least"), [(20, 5, 3), (20, 4, 3), (12, 4, 3), (24, 8, 5), (30, 3, 2)])
def test_by_distance_no_set_has_neighbours_not_even_the_last(places, rounds, least):
    """On a line, with nothing to tell places apart: every set is spread out, the one that is left over too."""
    among, closest = torch.ones(1, places, dtype=torch.bool), []
    for left in range(rounds, 0, -1):
        sets, _ = spread_out(distance(among).strength, torch.zeros(1, places), among, torch.tensor([left]), 0.0)
        where = sets[0].nonzero()[:, 0]
        if len(where) > 1:
            closest.append(int(where.diff().min()))
        among = among & ~sets
    assert not among.any()
    assert min(closest) >= least


# ---- passes


@pytest.mark.parametrize(
    "options",
    [
        {"rounds": 2},
        {"rounds": 1, "refine": 2},
        {"signal": "change", "budget": 0.3},
        {"signal": "change", "rounds": 3},
        {"signal": "information", "candidates": 2, "budget": 0.1},
        {"budget": 0.0, "pairs": "ag", "candidates": 2},
        {"signal": "change", "budget": 0.2, "pairs": "ag", "candidates": 3, "refine": 1},
    ],
)
def test_all_is_revealed_once_and_again_what_is_hidden_again(options):
    law = Table.random(3, 4, seed=3)
    canvas = blank(law, 4, 40)
    decoder = kernel("adaptive", **options)
    _, told = run(decoder, law, canvas)
    again = sum(int(info.more["hidden_again"].sum()) for info in told)
    assert sum(int(info.more["revealed"].sum()) for info in told) == 40 * 4 + again
    assert (again > 0) == (decoder.refine > 0)


def test_rounds_are_kept_whatever_is_hidden():
    law = Table.random(3, 4, seed=3)
    canvas = blank(law, 4, 3)
    canvas.ids[0, :3], canvas.ids[1, 1] = 0, 2
    _, told = run(kernel("adaptive", rounds=3), law, canvas)
    assert [info.passes.tolist() for info in told] == [[1, 1, 1], [0, 1, 1], [0, 1, 1]]
    _, told = run(kernel("adaptive", rounds=9), law, canvas)
    assert sum(info.passes for info in told).tolist() == [1, 3, 4]  # more rounds than places: one by one


def test_pieces_of_chains_are_put_together(monkeypatch):
    law = Table.random(3, 4, seed=6)
    for options in ({"rounds": 2}, {"signal": "change", "budget": 0.2, "pairs": "ag", "candidates": 3}):
        whole, _ = run(kernel("adaptive", **options), law, blank(law, 4, 30))
        with monkeypatch.context() as patch:
            patch.setattr(adaptive, "CELLS", 16 * 7)
            pieces, _ = run(kernel("adaptive", **options), law, blank(law, 4, 30))
        assert torch.equal(whole.ids, pieces.ids)


@pytest.mark.parametrize("signal", ["distance", "change", "attention"])
def test_a_network_fills_a_text(signal):
    network = Transformer(networks.tiny("bert", attn_implementation="eager"), networks.vocabulary("bert"))
    mask = network.vocabulary.mask_id
    text = "the cat [MASK] [MASK] [MASK] the [MASK]"
    ids = torch.tensor(network.vocabulary.tokenizer(text)["input_ids"]).repeat(5, 1)
    canvas = Canvas(ids, ids == mask, mask)
    state, told = run(kernel("adaptive", rounds=2, signal=signal, top_p=0.9), network, canvas)
    assert not (state.ids == mask).any()
    assert torch.equal(state.ids[~canvas.free], ids[~canvas.free])
    extra = {"distance": 0, "change": 5, "attention": 1}[signal]
    assert [info.passes.tolist() for info in told] == [[1 + extra] * 5, [1] * 5]  # nothing is measured for the last


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rounds": 0}, "rounds=0: decode in at least 1 pass"),
        ({"rounds": 3, "budget": 0.5}, "give the number of passes, or the dependence"),
        ({"budget": -1.0}, r"budget=-1.0: give at least 0"),
        ({"budget": float("nan")}, "budget=nan"),
        ({"signal": "distnace"}, r"signal='distnace': give one of .* Did you mean 'distance'\?"),
        ({"pairs": "ga"}, "pairs='ga': give one of later, ag"),
        ({"refine": -1}, "refine=-1"),
        ({"reach": 0.0}, "reach=0.0"),
        ({"entropy_weight": -0.1}, "entropy_weight=-0.1"),
        ({"candidates": 0}, "candidates=0"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told):
        kernel("adaptive", **options)
