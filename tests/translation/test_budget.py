"""No target takes more forward passes than it may, and none depends on the other targets of the call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from tests import networks
from tests.samplers.test_conformance import CASES

import besag
from besag import noise as counters
from besag.conditionals.decoder import MaskedDecoder
from besag.conditionals.encoder_decoder import lift
from besag.samplers import Kernel, kernel
from besag.samplers.kernel import KERNELS, Info, State, changes
from besag.samplers.kernels.speculative import Speculative
from besag.translation.budget import fitted, step_passes
from besag.translation.refinement import Draft, Refinement, refined
from besag.translation.terms import read_terms

SOURCES = ["the cat", "night table dogs", "dogs", "cat cat the table"]
TERMS = [[], ["man", "mat"], ["sleep"], ["man"]]
LENGTHS = [[5], [6, 4], [2], [7]]


@pytest.fixture(scope="module")
def lm() -> Any:
    """A random translator, without a length head."""
    return besag.load(MaskedDecoder(lift(networks.tiny_decoder("bart")), networks.vocabulary("bert"), "mine"))


@pytest.fixture
def spent(lm: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sequences of every forward pass."""
    found: list[int] = []
    rows = lm.conditionals.rows
    monkeypatch.setattr(lm.conditionals, "rows", lambda questions: found.append(len(questions.ids)) or rows(questions))
    return found


def targets(lm: Any, sources: list[str], lengths: list[list[int]], plan: Refinement, terms: Any = None) -> Any:
    ids = list(lm.conditionals.source_ids(sources))
    wanted = None if terms is None else [read_terms(lm.vocabulary, own) for own in terms]
    return refined(lm.engine, ids, lengths, plan, wanted)


@pytest.mark.parametrize("passes", [1, 2, 5])
@pytest.mark.parametrize(("name", "way"), CASES)
def test_no_target_takes_more_passes_than_it_may(
    lm: Any, spent: list[int], name: str, way: dict[str, Any], passes: int
) -> None:
    [[draft]] = targets(lm, ["the cat"], [[6]], Refinement(kernel(name, **way), passes, seed=1))
    assert draft.passes == sum(spent) <= passes
    assert lm.vocabulary.mask_id not in draft.ids


# ten steps a position: seconds each
LONG = [
    pytest.param(*case.values, None, id=case.id, marks=pytest.mark.slow)
    for case in CASES
    if case.values[0] in ("block_gibbs", "metropolis", "tempering")
]
WITHOUT_BUDGET = [
    pytest.param(*case.values, None, id=case.id) for case in CASES if case.values[0] in ("gibbs", "remask")
]


@pytest.mark.parametrize(
    ("name", "way", "passes"),
    [*(pytest.param(*case.values, 3, id=f"{case.id}-3") for case in CASES), *WITHOUT_BUDGET, *LONG],
)
def test_a_target_does_not_depend_on_the_others_of_the_call(
    lm: Any, name: str, way: dict[str, Any], passes: int | None
) -> None:
    plan = Refinement(kernel(name, **way), passes, draws=2, restarts=1, noise=0.4, mend_stutters=True, seed=3)
    lengths = [[5], [6, 4], [2], [7]]
    together = targets(lm, SOURCES, lengths, plan, TERMS)
    for at in (0, 1):
        others = [[]] * at
        alone = targets(lm, SOURCES[: at + 1], [*others, lengths[at]], plan, TERMS[: at + 1])[at]
        assert known(together[at]) == known(alone)
        for one, other in zip(sorted(together[at], key=key), sorted(alone, key=key), strict=True):
            assert (one.total is None) == (other.total is None)
            assert one.total is None or one.total == pytest.approx(other.total, abs=1e-3)


def key(draft: Draft) -> tuple[Any, ...]:
    return draft.ids, draft.passes, draft.made


def known(drafts: list[Draft]) -> list[Any]:
    return sorted(map(key, drafts))


@pytest.mark.parametrize("name", ["ordered", "threshold", "ancestral", "first_hitting", "gibbs", "semi_ar"])
def test_the_last_pass_draws_where_the_sampler_draws(name: str) -> None:
    """Three fair coins, one pass: the text is as random as the coins, and not the first token of each."""
    coins = besag.load(besag.GivenTable({"s": np.ones((2, 2, 2))}, symbols=["a", "b"]))
    plan = Refinement(kernel(name, temperature=1.0), 1, draws=800, seed=5)
    [drafts] = targets(coins, ["s"], [[3]], plan)
    ones = np.array([draft.ids for draft in drafts]).mean(0)
    assert {draft.passes for draft in drafts} == {1}
    assert np.abs(ones - 0.5).max() < 5 * 0.5 / np.sqrt(800)


def test_repeats_are_predicted_again_with_new_random_numbers() -> None:
    """Of fair coins that are equal to the one before, half change: never none of them."""
    coins = besag.load(besag.GivenTable({"s": np.ones((2,) * 6)}, symbols=["a", "b"]))
    plan = Refinement(kernel("mask_predict", pick="sample"), 1, draws=200, seed=2)
    [plain] = targets(coins, ["s"], [[6]], plan)
    [again] = targets(coins, ["s"], [[6]], Refinement(plan.kernel, 1, draws=200, mend_stutters=True, seed=2))
    repeats = changed = 0
    for one, other in zip(plain, again, strict=True):
        same = np.array([False, *(np.diff(one.ids) == 0)])
        repeats += int(same.sum())
        changed += int((np.array(one.ids) != np.array(other.ids))[same].sum())
        assert (np.array(one.ids) == np.array(other.ids))[~same].all()
    assert repeats > 400
    assert changed / repeats == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(repeats))


@pytest.mark.parametrize("name", ["ordered", "mask_predict", "gibbs", "refine", "adaptive", "speculative"])
def test_no_random_number_is_used_twice(lm: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Each is a function of (stream, chain, step, position): none is asked for two predictions that are both kept."""
    options = {} if name in ("gibbs", "speculative") else {"pick": "sample"}
    if name == "refine":
        options["start"] = "noise"
    seen: list[tuple[int, ...]] = []
    uniform = counters.uniform

    def counted(seed: int, *at: Any) -> Any:
        seen.extend(zip(*(part.ravel().tolist() for part in np.broadcast_arrays(*at)), strict=True))
        return uniform(seed, *at)

    monkeypatch.setattr(counters, "uniform", counted)
    plan = Refinement(kernel(name, **options), 3, draws=2, restarts=2, mend_stutters=True, seed=3)
    targets(lm, SOURCES, LENGTHS, plan)
    draws = [one for one in seen if one[0] in (counters.Sampling.DRAW, counters.Sampling.START)]
    lengths_of_one_source = 2  # which share theirs, on canvases of their own
    assert max(draws.count(one) for one in {*draws}) <= lengths_of_one_source
    assert len(draws) > len(SOURCES)


def test_a_score_is_a_mean_over_the_predictions_that_were_made(lm: Any) -> None:
    """What the last pass fills in counts once: six positions are six predictions, however they are cut."""
    for name in ("ordered", "threshold", "first_hitting", "speculative"):
        for passes in (1, 2, 4, 6):
            [[draft]] = targets(lm, ["the cat"], [[6]], Refinement(kernel(name), passes))
            assert draft.made == 6


def test_a_source_without_terms_spends_no_pass_on_those_of_others(lm: Any, spent: list[int]) -> None:
    plan = Refinement(kernel("mask_predict"), 2)
    [[plain], [placed]] = targets(lm, SOURCES[:2], [[5], [5]], plan, [[], ["man"]])
    assert (plain.passes, placed.passes) == (2, 3)
    assert sum(spent) == 5


def test_sources_that_cannot_be_read_do_not_move_the_random_numbers_of_others(lm: Any) -> None:
    options: dict[str, Any] = {"pick": "sample", "length": 6, "seed": 1}
    with_empty = lm.translate(["the cat", " ", "dogs night"], **options)
    without = lm.translate(["the cat", "table", "dogs night"], **options)
    assert with_empty.texts[::2] == without.texts[::2]


@dataclass(frozen=True)
class Halves(Kernel):
    """A sampler of a user, whose number of passes is called `grid`: half of what is masked a step."""

    name = "halves"
    title = formula = law = passes = ""
    ends = True
    grid: int = field(default=1)

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        return n.bit_length() * (length + source)

    def step(self, engine: Any, noise: Any, state: Any) -> Any:
        masked = (state.ids == state.canvas.mask_id) & state.canvas.free
        chosen = masked & (masked.cumsum(1) <= (masked.sum(1, keepdim=True) + 1) // 2)
        ids = state.ids.masked_fill(chosen, 7)
        return State(ids, state.canvas, state.step + 1), Info(changes(state.ids, ids), torch.ones(len(ids)).long())


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_a_sampler_of_a_user_keeps_to_the_budget(lm: Any, passes: int) -> None:
    assert "halves" not in KERNELS
    [[draft]] = targets(lm, ["the cat"], [[7]], Refinement(Halves(), passes))
    assert draft.passes <= passes
    assert lm.vocabulary.mask_id not in draft.ids


def test_budgets_are_spread_over_blocks_groups_and_windows(lm: Any) -> None:
    columns = np.arange(1, 7)

    def of(name: str, passes: int, **options: Any) -> Any:
        return fitted(lm.engine, kernel(name, **options), passes, columns)

    assert (of("block_diffusion", 4, size=4).kernel.grid, of("block_diffusion", 1, size=4).keeps_last) == (2, True)
    assert (of("g_ipd", 8).kernel.rounds, of("g_ipd", 2).keeps_last) == (2, True)
    assert of("semi_ar", 6, window=3, stride=1).kernel.grid == 1
    assert (of("grouped", 4).kernel.size, of("speculative", 4).kernel.ahead) == (2, 3)
    assert of("adaptive", 6, refine=2).kernel.rounds == 2
    assert isinstance(of("speculative", 1).kernel, Speculative)
    canvas = besag.samplers.sheet.blank(lm.conditionals, 6).canvas(lm.conditionals, 2, None)
    state = State(canvas.ids, canvas, 0)
    assert torch.as_tensor(step_passes(lm.engine, kernel("speculative", ahead=4), state)).tolist() == [4, 4]
    assert step_passes(lm.engine, kernel("block_gibbs", inner="ag", candidates=3), state) == 7
