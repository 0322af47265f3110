"""Numbers of traces, against their definitions as plain loops, against laws that are known, and against arviz-stats."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from besag.diagnostics import chains
from besag.diagnostics.chains import diagnose
from besag.errors import BesagError


def autoregression(chains, steps, memory, seed=0):
    """x_t = memory · x_{t−1} + noise, begun in its own law: ρ_k = memory^k."""
    rng = np.random.default_rng(seed)
    x = np.empty((chains, steps))
    x[:, 0] = rng.normal(size=chains) / math.sqrt(1 - memory**2)
    for t in range(1, steps):
        x[:, t] = memory * x[:, t - 1] + rng.normal(size=chains)
    return x


def correlations_by_loops(trace):
    count, steps = trace.shape
    within = np.mean([np.sum((row - row.mean()) ** 2) / (steps - 1) for row in trace])
    means = [row.mean() for row in trace]
    between = sum((m - np.mean(means)) ** 2 for m in means) / (count - 1) if count > 1 else 0.0
    overall = within * (steps - 1) / steps + between
    found = [1.0]
    for lag in range(1, steps):
        covariance = 0.0
        for row in trace:
            mean = row.mean()
            covariance += sum((row[t] - mean) * (row[t + lag] - mean) for t in range(steps - lag)) / steps / count
        found.append(1 - (within - covariance) / overall)
    return np.array(found)


def time_by_loops(trace):
    """Geyer's initial monotone sequence, one pair after the other."""
    rho = correlations_by_loops(trace)
    last = 2 * ((len(rho) - 1) // 2 - 1)  # the lag of the last pair, of which only the first half counts
    total, smallest, lag = -1.0, math.inf, 0
    while True:
        pair = rho[lag] + rho[lag + 1]
        if pair < 0 or lag == last:
            return max(total + max(rho[lag], 0.0), 1 / math.log10(trace.size))
        smallest = min(smallest, pair)
        total += 2 * smallest
        lag += 2


@given(st.integers(1, 4), st.integers(8, 40), st.floats(-0.8, 0.95), st.integers(0, 99))
@settings(deadline=None)
def test_autocorrelation_is_its_definition(count, steps, memory, seed):
    trace = autoregression(count, steps, memory, seed)
    np.testing.assert_allclose(chains.autocorrelation(trace), correlations_by_loops(trace), atol=1e-10)
    assert len(chains.autocorrelation(trace, 5)) == 6


@given(st.integers(1, 3), st.integers(8, 60), st.floats(-0.8, 0.95), st.integers(0, 99))
@settings(deadline=None)
def test_time_is_its_definition_on_halves(count, steps, memory, seed):
    trace = autoregression(count, steps, memory, seed)
    half = steps // 2
    halves = np.array([part for row in trace for part in (row[:half], row[steps - half :])])
    assert chains.integrated_time(trace) == pytest.approx(time_by_loops(halves), rel=1e-9)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9, -0.5])
def test_an_autoregression_has_the_time_it_is_known_to_have(memory):
    trace = autoregression(8, 20_000, memory)
    known = (1 + memory) / (1 - memory)
    assert chains.integrated_time(trace) == pytest.approx(known, rel=0.08)
    assert chains.ess_bulk(trace) == pytest.approx(trace.size / known, rel=0.08)
    assert chains.rhat(trace) == pytest.approx(1, abs=0.002)
    np.testing.assert_allclose(chains.autocorrelation(trace, 4), memory ** np.arange(5), atol=0.02)


def test_the_error_of_a_mean_is_that_of_many_repetitions():
    means, errors = [], []
    for seed in range(200):
        trace = autoregression(2, 400, 0.8, seed)
        means.append(trace.mean())
        errors.append(chains.line("x", trace).error)
    spread = np.std(means)
    assert np.mean(errors) == pytest.approx(spread, rel=0.15)  # 200 repetitions: 5 % of its own error
    assert np.std(trace) / math.sqrt(trace.size) < 0.5 * spread  # what independent draws would have


def test_relaxation_reaches_that_of_a_two_state_chain():
    up, down = 0.02, 0.05  # eigenvalue 1 − up − down; every function of two states is the slowest one
    rng, x = np.random.default_rng(1), np.zeros((16, 8000))
    for t in range(1, x.shape[1]):
        flip = rng.random(16) < np.where(x[:, t - 1] == 0, up, down)
        x[:, t] = np.where(flip, 1 - x[:, t - 1], x[:, t - 1])
    assert chains.line("x", x).relaxation == pytest.approx(1 / (up + down), rel=0.15)


def test_chains_that_differ_in_place_or_in_spread_do_not_agree():
    rng = np.random.default_rng(0)
    same = rng.normal(size=(4, 500))
    shifted = same + np.array([0, 0, 0, 1.0])[:, None]
    wider = same * np.array([1, 1, 1, 3.0])[:, None]
    drifting = same + np.linspace(0, 2, 500)
    assert chains.rhat(same) < 1.01
    assert min(chains.rhat(shifted), chains.rhat(wider), chains.rhat(drifting)) > 1.05
    assert chains._rhat(chains.normal_scores(chains.split(wider))) < 1.01  # seen in the distances from the median only
    assert chains._rhat(chains.normal_scores(drifting)) < 1.01  # seen in the halves only


@given(arrays(np.float64, (3, 12), elements=st.sampled_from([0.0, 1.0, 2.5, 4.0])))
def test_numbers_of_ranks_do_not_change_with_a_monotone_map(trace):
    np.testing.assert_equal(chains.ess_bulk(trace), chains.ess_bulk(np.exp(trace)))
    np.testing.assert_equal(chains.ess_tail(trace), chains.ess_tail(np.exp(trace)))


@pytest.mark.parametrize(("count", "steps", "memory"), [(4, 500, 0.9), (3, 101, 0.3), (2, 41, 0.0), (4, 60, 0.99)])
@pytest.mark.parametrize("ties", [False, True])
def test_the_numbers_are_those_of_arviz_stats(count, steps, memory, ties):
    other = pytest.importorskip("arviz_stats.base").array_stats
    trace = autoregression(count, steps, memory, seed=3)
    trace = np.round(trace) if ties else trace
    assert chains.rhat(trace) == pytest.approx(float(other.rhat(trace)), rel=1e-9)
    assert chains.ess_bulk(trace) == pytest.approx(float(other.ess(trace, method="bulk")), rel=1e-9)
    assert chains.ess_tail(trace) == pytest.approx(float(other.ess(trace, method="tail", prob=(0.05, 0.95))), rel=1e-9)
    size = 2 * count * (steps // 2)
    assert size / chains.integrated_time(trace) == pytest.approx(float(other.ess(trace, method="mean")), rel=1e-9)


# ---- what cannot be said is told


def test_constant_short_and_broken_traces_say_so():
    moving = np.random.default_rng(0).normal(size=(2, 30))
    broken = moving.copy()
    broken[1, 3] = -np.inf
    found = diagnose({"fixed": np.ones((2, 30)), "broken": broken, "moving": moving})
    fixed, infinite, good = found.traces
    assert (fixed.mean, fixed.sd, fixed.reason) == (1.0, 0.0, "it never changes")
    assert math.isnan(fixed.rhat)
    assert infinite.reason == "1 number not finite"
    assert math.isnan(infinite.mean)
    ended = moving.copy()
    ended[1, 12:] = np.nan
    assert chains.line("x", ended).reason == "the chains end at different steps"
    ended[1, 20] = 1.0
    assert chains.line("x", ended).reason == "17 numbers not finite"
    assert good.reason == ""
    assert found.rhat == good.rhat  # the others have none
    [short] = diagnose({"x": moving[:, :7]}).traces
    assert short.reason == "fewer than 8 steps"
    assert short.mean == pytest.approx(moving[:, :7].mean())
    assert "nothing can be said: fewer than 8 steps" in diagnose({"x": moving[:, :7]}).verdict


def test_chains_that_stay_each_at_a_place_of_its_own():
    stuck = np.repeat(np.array([[0.0], [1.0], [2.0]]), 20, axis=1)
    [line] = diagnose({"x": stuck}).traces
    assert line.rhat == math.inf
    assert line.reason == "each chain stays where it is"
    assert line.ess_bulk < 6  # halves of three chains, no more
    assert "do not agree" in diagnose({"x": stuck}).verdict


def test_one_chain_is_compared_with_itself():
    drifting = np.linspace(0, 5, 200) + np.random.default_rng(0).normal(size=200)
    found = diagnose(drifting, name="energy")
    assert found.chains == 1
    assert found.traces[0].name == "energy"
    assert found.rhat > 1.5
    assert "one chain: R-hat compares its two halves" in repr(found)


def test_tokens_are_names_and_not_numbers():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 5, size=(4, 200, 3))
    ids[:, :, 1] = 7  # clamped
    renamed = np.array([100, 3, 77, 12, 5, 0, 0, 9])[ids]
    one, other = diagnose(tokens=ids, places=["a", "b", "c"]), diagnose(tokens=renamed, places=["a", "b", "c"])
    assert one.to_dict() == other.to_dict()
    assert [line.name for line in one.places] == ["a", "c"]
    assert one.still == 1
    [changed] = one.traces
    assert changed.mean == pytest.approx((ids[:, 1:] != ids[:, :-1]).sum(2).mean())
    commonest = np.bincount(ids[:, :, 2].ravel()).argmax()
    assert one.places[1].mean == pytest.approx((ids[:, :, 2] == commonest).mean())
    assert "1 place never moved" in repr(one)


def test_warmup_is_left_out_of_everything():
    rng = np.random.default_rng(0)
    energy, ids = rng.normal(size=(3, 60)), rng.integers(0, 2, size=(3, 60, 2))
    energy[:, :20] += 50
    found = diagnose({"energy": energy}, ids, warmup=20)
    assert found.steps == 40
    alone = diagnose({"energy": energy[:, 20:]}, ids[:, 20:])
    for one, other in zip(found.places, alone.places, strict=True):
        assert one == other
    assert found.traces[0] == alone.traces[0]
    changed = (ids[:, 20:] != ids[:, 19:-1]).sum(2)  # into each step that was kept
    assert found.traces[1].mean == pytest.approx(changed.mean())


def test_a_diagnosis_is_a_table_a_dictionary_and_a_frame():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    found = diagnose({"energy": rng.normal(size=(2, 50))}, rng.integers(0, 3, size=(2, 50, 8)))
    lines = repr(found).splitlines()
    assert lines[0].split() == ["mean", "±", "error", "sd", "ESS", "bulk", "tail", "R-hat", "time"]
    assert lines[1].split()[0] == "energy"
    assert sum(line.startswith("place") for line in lines) == chains.SLOWEST
    assert "the slowest 5 of 8 places" in repr(found)
    sizes = [line.ess_bulk for line in found.slowest]
    assert sizes == sorted(sizes)
    told = found.to_dict()
    assert told["traces"][0]["rhat"] == found.traces[0].rhat
    assert len(told["places"]) == 8
    frame = found.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc["energy", "ess_bulk"] == found.traces[0].ess_bulk
    assert frame.attrs["chains"] == 2


def test_few_effective_draws_are_told():
    slow = autoregression(4, 3000, 0.97, seed=1)
    verdict = diagnose({"x": slow}).verdict
    assert re.search(r"R-hat .* is above|effective draws are few: 400 would be safer", verdict)
    assert diagnose({"x": np.random.default_rng(2).normal(size=(4, 3000))}).verdict.startswith("the chains agree; ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "there is nothing to diagnose"),
        ({"traces": {"x": np.zeros((2, 3, 4))}}, "x needs the shape (chains, steps); got (2, 3, 4)"),
        ({"traces": {"x": np.zeros((2, 9)), "y": np.zeros((3, 9))}}, "traces of one run have one shape"),
        ({"traces": {"x": np.zeros((2, 9)), "y": np.zeros((2, 5))}}, "traces of one run have one shape"),
        ({"traces": {"x": np.zeros((2, 9))}, "warmup": 9}, "warmup=9: leave out at least 0 and fewer than all 9"),
        ({"tokens": np.zeros((2, 9))}, "token ids are whole numbers of shape (chains, steps, places)"),
        ({"tokens": np.zeros((2, 9, 3), int), "places": ["a"]}, "1 names were given for 3 places"),
    ],
)
def test_shapes_that_make_no_sense(arguments, told):
    with pytest.raises(BesagError, match=re.escape(told)):
        diagnose(**arguments)


def test_a_trace_that_cannot_be_judged_is_not_passed_over():
    rng = np.random.default_rng(0)
    energy, changed = rng.normal(size=(2, 4, 500))
    energy[1, 3] = np.inf
    assert diagnose({"energy": energy, "changed": changed}).verdict.startswith("energy cannot be judged: ")
    assert diagnose({"changed": changed}).verdict.startswith("the chains agree")
