"""Kernels on targets given sources: the same as `sample` on each source alone, whatever is written beside it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.translation import pairs

import besag
from besag.conditionals.contract import Given
from besag.errors import BesagError
from besag.lab.oracles import follows
from besag.samplers import KERNELS, Noise, kernel
from besag.samplers.run import rows_of, walk
from besag.samplers.sheet import allowed_tokens, blank
from besag.translation.refinement import Refinement, refined

SOURCES = pairs.sources(9, seed=3, longest=4)
LAWS = {"x y": np.random.default_rng(0).gamma(0.5, size=(3, 3)), "z": np.random.default_rng(1).gamma(0.5, size=(3, 3))}
WAYS: dict[str, dict[str, Any]] = {
    "mask_predict": {}, "refine": {"start": "mask"}, "adaptive": {"pick": "argmax"}, "ordered": {"pick": "argmax"},
    "entropy_bound": {"pick": "argmax", "bound": 0.3}, "threshold": {"pick": "argmax"},
    "grouped": {"pick": "argmax"}, "remask": {"kind": "p2", "pick": "argmax", "grid": 4}, "gibbs": {"top_k": 1},
}  # fmt: skip


def ids_of(lm: Any, sources: list[str]) -> list[np.ndarray]:
    return list(lm.conditionals.source_ids(sources))


@pytest.mark.parametrize("name", ["ordered", "entropy_bound", "adaptive", "threshold"])
def test_on_tables_targets_have_the_law_of_the_kernel_given_their_source(name: str) -> None:
    """One place at a time, these draw from p(x | s) exactly."""
    options = {"ordered": {}, "entropy_bound": {"bound": 0.0}, "adaptive": {"rounds": 2}, "threshold": {"least": 1.0}}
    lm = besag.load(besag.GivenTable(LAWS, symbols=["a", "b", "c"]))
    plan = Refinement(kernel(name, **options[name]), draws=500, seed=4)
    found = refined(lm.engine, ids_of(lm, list(LAWS)), [[2], [2]], plan)
    for drafts, weights in zip(found, LAWS.values(), strict=True):
        counts = np.zeros(9)
        for draft in drafts:
            counts[draft.ids[0] * 3 + draft.ids[1]] += 1
            law = weights / weights.sum()
            first = law.sum(1)[draft.ids[0]]
            if name == "ordered":
                assert draft.total == pytest.approx(np.log(first) + np.log(law[draft.ids] / first), abs=1e-9)
        assert follows(counts, (weights / weights.sum()).ravel())


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("passes", [1, 3])
def test_sources_and_lengths_side_by_side_change_nothing(masked: Any, name: str, passes: int) -> None:
    plan = Refinement(kernel(name, **WAYS[name]), passes, seed=2)
    ids = ids_of(masked, SOURCES)
    lengths = [[1 + at % 4, 5] for at in range(len(ids))]
    together = refined(masked.engine, ids, lengths, plan)
    for at in (0, 4, 8):
        alone = [refined(masked.engine, ids[: at + 1], [[]] * at + [[n]], plan)[at] for n in lengths[at]]
        assert sorted(one.ids for one in together[at]) == sorted(one.ids for [one] in alone)
        for draft in together[at]:
            assert draft.passes <= passes or name == "remask"
            assert masked.vocabulary.mask_id not in draft.ids


def test_lengths_of_a_source_share_their_passes(masked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    rows = masked.conditionals.rows
    monkeypatch.setattr(
        masked.conditionals, "rows", lambda questions: asked.append(tuple(questions.ids.shape)) or rows(questions)
    )
    ids, plan = ids_of(masked, ["the cat table"]), Refinement(kernel("mask_predict"), 2)
    together = refined(masked.engine, ids, [[4, 3, 6]], plan)
    assert asked == [(3, 8), (3, 8)]  # three targets, the longest of six places between two special tokens
    monkeypatch.setattr(masked.conditionals, "pads", False)
    alone = refined(masked.engine, ids, [[4, 3, 6]], plan)
    assert len(asked) == 2 + 3 * 2
    for one, other in zip(
        *(sorted(own[0], key=lambda draft: len(draft.ids)) for own in (together, alone)), strict=True
    ):
        assert one.ids == other.ids
        assert one.total == pytest.approx(other.total, abs=1e-4)


def test_a_pass_waits_for_the_device_once(masked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is fetched at a step of mask-predict is what it hides: all else waits until the target is there."""
    fetch, fetched = torch.Tensor.cpu, []
    monkeypatch.setattr(
        torch.Tensor, "cpu", lambda tensor: (fetched.append((tensor.ndim, tensor.dtype)), fetch(tensor))[1]
    )

    def of(passes: int) -> Counter[Any]:
        fetched.clear()
        refined(masked.engine, ids_of(masked, SOURCES[:1]), [[8]], Refinement(kernel("mask_predict"), passes))
        return Counter(one for one in fetched if one != (1, torch.long))  # what is asked is on the host

    assert of(7) - of(2) == {(2, torch.bool): 5}


def test_mask_predict_is_that_of_sample(masked: Any) -> None:
    for source in SOURCES[:3]:
        plan = Refinement(kernel("mask_predict"), 3, seed=0, traced=True)
        [[draft]] = refined(masked.engine, ids_of(masked, [source]), [[4]], plan)
        chain = masked.given(source).sample(kernel="mask_predict", length=4, iterations=3, chains=1, every=1)
        assert list(draft.ids) == chain.ids[0][1:-1].tolist()
        assert draft.total == pytest.approx(float(chain.numbers["score"][0, -1]), abs=1e-4)
        assert (draft.passes, draft.made, len(draft.steps)) == (3, 4, 3)


def test_early_stop_ends_each_target_for_itself(masked: Any) -> None:
    ids = ids_of(masked, SOURCES)
    plan = Refinement(kernel("refine", start="mask", iterations=8))
    whole = refined(masked.engine, ids, [[4]] * len(ids), plan)
    early = refined(masked.engine, ids, [[4]] * len(ids), Refinement(plan.kernel, early_stop=True))
    assert [one.ids for [one] in whole] == [one.ids for [one] in early]  # a step of refine is a function of the text
    assert [one.passes for [one] in whole] == [one.passes for [one] in early]
    slow = refined(masked.engine, ids, [[4]] * len(ids), Refinement(kernel("mask_predict"), 4))
    fast = refined(masked.engine, ids, [[4]] * len(ids), Refinement(kernel("mask_predict"), 4, early_stop=True))
    assert {one.passes for [one] in slow} == {4}
    assert min(one.passes for [one] in fast) == 2


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_some_chains_of_a_state_go_on_as_they_would_have(masked: Any, name: str) -> None:
    options: dict[str, Any] = {
        "spindle": {"counts": tuple(range(1, masked.conditionals.width + 1)), "grid": 4}, "remask": {"grid": 4},
        "ancestral": {"grid": 4}, "semi_ar": {"window": 6}, "tempering": {"rungs": 2},
    }.get(name, {})  # fmt: skip
    how = kernel(name, **options)
    sources = tuple(ids_of(masked, SOURCES[:4]))
    canvas = blank(masked.conditionals, 4).canvas(masked.conditionals, 4, allowed_tokens(masked.conditionals))
    canvas = canvas._replace(given=Given(sources, np.arange(4)))
    noise = Noise(1, torch.arange(4))
    states = [state for state, _ in walk(masked.engine, how, canvas, noise, 2)]
    some = torch.tensor([True, False, True, False])
    if name == "tempering":
        return  # its rungs are chains of their own
    part = rows_of(states[1], some)
    *_, (after, _) = walk(masked.engine, how, part.canvas, noise.rows(some), 2, part)
    assert torch.equal(after.ids, states[-1].ids[some])


@pytest.fixture(scope="module")
def stutterer() -> Any:
    """p(aa) = 0.1, p(ab) = p(ba) = 0.45: one pass writes the likeliest token of each place, a a, which is rare."""
    return besag.load(besag.GivenTable({"s": [[0.1, 0.45], [0.45, 0.0]]}, symbols=["a", "b"]))


def test_stutters_are_predicted_once_more_given_the_rest(stutterer: Any) -> None:
    ids, one_pass = ids_of(stutterer, ["s"]), Refinement(kernel("mask_predict"), 1)
    [[plain]] = refined(stutterer.engine, ids, [[2]], one_pass)
    assert (plain.ids, plain.passes) == ((0, 0), 1)
    assert plain.total == pytest.approx(2 * np.log(0.55))
    [[mended]] = refined(stutterer.engine, ids, [[2]], replace(one_pass, mend_stutters=True))
    assert (mended.ids, mended.passes, mended.made) == ((0, 1), 2, 3)
    assert mended.total == pytest.approx(2 * np.log(0.55) + np.log(0.45 / 0.55))


def test_a_restart_hides_a_place_drawn_uniformly_and_decodes_it_anew(stutterer: Any) -> None:
    plan = Refinement(kernel("mask_predict"), 1, restarts=400, noise=0.0, seed=3)
    [[first, *again]] = refined(stutterer.engine, ids_of(stutterer, ["s"]), [[2]], plan)
    assert first.ids == (0, 0)
    assert {(one.passes, one.made) for one in again} == {(2, 3)}
    counts = np.array([sum(one.ids == ids for one in again) for ids in ((0, 1), (1, 0))])
    assert counts.sum() == 400  # given a on the one side, b is likelier on the other
    assert follows(counts, np.array([0.5, 0.5]))


def test_restarts_hide_some_and_decode_them_anew(masked: Any) -> None:
    ids = ids_of(masked, SOURCES)
    plan = Refinement(kernel("mask_predict", pick="sample"), 2, draws=2, restarts=3, noise=0.4, seed=1)
    found = refined(masked.engine, ids, [[4]] * len(ids), plan)
    assert all(len(own) == 8 for own in found)
    assert all(own[2].passes > own[0].passes for own in found)
    assert refined(masked.engine, ids, [[4]] * len(ids), plan) == found
    with pytest.raises(BesagError, match="at most 1,024"):
        refined(masked.engine, ids, [[4]], Refinement(plan.kernel, draws=1000, restarts=1))
