"""What every kernel must do, whatever it draws: once, in each of the ways it can move. Its law is another matter.

A new kernel is found by its registration. Give it a row in `WAYS` for every option that makes a step another one.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import networks
from tests.laws import Counting
from tests.samplers.enumerated import MOVES
from tests.samplers.exact import GivenLaws, Hashed, text_canvas

import besag
from besag.conditionals.contract import Conditionals
from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank
from besag.samplers import KERNELS, Canvas, Kernel, Noise, drawing, kernel
from besag.samplers.drawing import Drawing
from besag.samplers.kernels.ordered import ORDERS
from besag.samplers.run import restore, save, walk

WAYS: dict[str, list[dict[str, Any]]] = {  # small ones, so that each does all that it does on four places
    "adaptive": [
        {"rounds": 2},
        {"rounds": 1, "refine": 2},
        {"signal": "change", "budget": 0.3},
        {"signal": "information", "candidates": 2, "budget": 0.1},
        {"budget": 0.0, "pairs": "ag", "candidates": 3},
        {"budget": 0.0, "pairs": "ag", "candidates": 3, "pick": "argmax"},
        {"signal": "change", "budget": 0.2, "pairs": "ag", "candidates": 3, "refine": 1},
    ],
    "ancestral": [{"grid": 6}, {"grid": 5, "cache": False, "schedule": "cosine"}],
    "block_diffusion": [
        {"size": 2},
        {"size": 3, "grid": 2},
        {"size": 2, "least": 0.5},
        {"size": 3, "least": 0.6, "pick": "argmax"},
    ],
    "block_gibbs": [
        {"inner": "independent", "where": "adjacent"},
        {"inner": "sequential"},
        {"inner": "ag", "candidates": 2},
        {"inner": "ag", "candidates": 2, "metropolis": True, "where": "adjacent"},
    ],
    "entropy_bound": [{"bound": 0.0}, {"bound": 0.7}, {"bound": 2.0}, {"bound": 0.7, "pick": "argmax"}],
    "gibbs": [{"scan": scan} for scan in ("random", "systematic", "subset")],
    "g_ipd": [{"groups": 2}, {"groups": 2, "rounds": 2}, {"groups": 1, "rounds": 2, "pick": "argmax"}],
    "grouped": [{"order": order, "size": 2} for order in ORDERS],
    "mask_predict": [{"pick": "sample"}, {"schedule": "cosine", "pick": "sample"}, {"iterations": 2}],
    "metropolis": [{"move": move, "size": size, "top_k": 2} for move, size in MOVES],
    "ordered": [*({"order": order} for order in ORDERS), {"order": "entropy", "pick": "argmax"}],
    "refine": [
        {"iterations": 3},
        {"start": "mask", "pick": "sample", "iterations": 3, "share": 0.5},
        {"start": "given", "pick": "sample", "iterations": 3, "hide": True, "remask_stutter": True},
        {"start": "noise", "iterations": 3, "hide": True, "remask_stutter": True, "share": 0.5},
    ],
    "remask": [
        {"grid": 6, "eta": 2.0},
        {"grid": 6, "eta": 2.0, "kind": "p2", "schedule": "cosine"},
        {"grid": 4, "kind": "p2", "pick": "argmax"},
    ],
    "semi_ar": [
        {"window": 4},
        {"window": 3, "stride": 2},
        {"window": 2, "stride": 1, "inner": "random"},
        {"window": 4, "grid": 2},
    ],
    "sequential": [{"fresh": 1}, {"fresh": 3}, {"pick": "argmax"}],
    "speculative": [{}, {"ahead": 2}, {"ahead": 1}, {"pick": "argmax"}],
    "spindle": [{"grid": 6, "counts": (9, 3, 1)}],
    "threshold": [{"least": 0.5}, {"least": 0.9, "pick": "argmax"}],
    "tempering": [{"rungs": 3}, {"rungs": 2, "move": "block", "size": 2}, {"rungs": 2, "move": "adjacent", "size": 2}],
}
NAMES = sorted(KERNELS)
CASES = [
    pytest.param(name, way, id="-".join([name, *map(str, way.values())]))
    for name in NAMES
    for way in WAYS.get(name, [{}])
]
FILLS = {name for name in NAMES if KERNELS[name].ends} - {"mask_predict", "refine"}  # which write over what is shown
STEPS, CHAINS = 6, 6


def law_for(name: str, way: dict[str, Any], seed: int) -> Conditionals:
    """A joint, or conditionals of none; one that answers shown places, or short windows, where that is asked."""
    if name == "sequential" or (name == "semi_ar" and way["window"] < 4):
        return Hashed(3)
    if (name == "refine" and not way.get("hide")) or seed % 2:
        return Incompatible(3, 4, seed)
    return Table.random(3, 4, seed=seed)


def ragged(allowed: torch.Tensor | None = None) -> Canvas:
    """Chains in which other places are hidden, shown and clamped; the second place is clamped to 1 in all of them."""
    ids = torch.tensor([[3, 1, 3, 3], [3, 1, 2, 3], [0, 1, 3, 3], [3, 1, 3, 3], [2, 1, 0, 0], [3, 1, 0, 3]])
    free = torch.tensor([True, False, True, True]).repeat(CHAINS, 1)
    free[5, 2] = False
    return Canvas(ids, free, 3, allowed)


def run(name, way, law, canvas, seed, first=0, batch=None) -> list[Any]:
    """The state at the start, and after every step with what it told."""
    engine = Engine(law, batch_tokens=batch, progress=False)
    noise = Noise(seed, torch.arange(first, first + len(canvas.ids)))
    return list(walk(engine, kernel(name, **way), canvas, noise, STEPS))


def tensors(state) -> dict[str, torch.Tensor]:
    """All that a state remembers of its chains."""
    return {name: value for name, value in state._asdict().items() if isinstance(value, torch.Tensor)}


def same(one: torch.Tensor, other: torch.Tensor) -> None:
    torch.testing.assert_close(
        one, other, atol=1e-12 if one.is_floating_point() else 0, rtol=0, equal_nan=True, check_dtype=False
    )


# ---- noise


@pytest.mark.parametrize(("name", "way"), CASES)
@given(seed=st.integers(0, 1000), batch=st.integers(1, 30))
@settings(max_examples=3, deadline=None)
def test_noise_belongs_to_the_chain(name, way, seed, batch):
    """The same seed gives the same chain beside any others, in any batch, with all that is told of it."""
    law, canvas = law_for(name, way, seed), ragged()
    whole = run(name, way, law, canvas, seed)
    for part in (torch.arange(2), torch.arange(2, 6)):
        some = run(name, way, law, canvas.rows(part), seed, first=int(part[0]), batch=batch)
        assert torch.equal(some[-1][0].ids, whole[-1][0].ids[part])
        for (_, told), (_, all_of_it) in zip(some[1:], whole[1 : len(some)], strict=True):
            assert torch.equal(told.passes, all_of_it.passes[part])
            assert torch.equal(told.changed, all_of_it.changed[part])
            for number, values in told.more.items():
                same(values, all_of_it.more[number][part])
        for remembers, values in tensors(some[-1][0]).items():
            everyone = tensors(whole[-1][0])[remembers]
            if len(some) == len(whole) and len(everyone) == CHAINS:  # what is remembered of each chain
                same(values, everyone[part])


@pytest.mark.parametrize(("name", "way"), CASES)
def test_a_seed_says_all_and_another_one_something_else(name, way):
    law = law_for(name, way, 1)
    one, again, other = ([state.ids for state, _ in run(name, way, law, blank(law, 4, 30), seed)] for seed in (7, 7, 8))
    assert all(map(torch.equal, one, again))
    moves = kernel(name, **way)
    searches = getattr(moves, "pick", "sample") == "argmax" and getattr(moves, "start", "mask") != "noise"
    assert all(map(torch.equal, one, other)) == searches


# ---- what moves


@pytest.mark.parametrize(("name", "way"), CASES)
def test_clamped_places_stay_and_only_allowed_tokens_are_drawn(name, way):
    law = law_for(name, way, 1)
    everywhere = torch.tensor([True, False, True])
    by_place = torch.tensor([[True, False, False], [True, True, True], [False, True, True], [True, False, True]])
    for allowed, table in ((everywhere, everywhere.expand(4, 3)), (by_place, by_place)):
        canvas = blank(law, 4, 40, allowed=allowed)
        canvas.ids[:, 1], canvas.free[:, 1] = 1, False
        begun, *steps = run(name, way, law, canvas, seed=3)
        for state, info in [begun, *steps]:
            assert (state.ids[:, 1] == 1).all()
            for place in (0, 2, 3):
                drawn = state.ids[:, place]
                assert table[place][drawn[drawn < 3]].all()
            if info is not None:
                assert info.changed.shape == info.passes.shape == (40,)
                assert all(value.shape == (40,) for value in info.more.values())
        assert not kernel(name, **way).ends or int(state.ids.max()) < 3


@pytest.mark.parametrize(("name", "way"), CASES)
def test_what_is_counted_as_changed_has_changed_and_fillers_leave_alone_what_is_shown(name, way):
    law, canvas = law_for(name, way, 1), ragged()
    (before, _), *steps = run(name, way, law, canvas, seed=5)
    for state, info in steps:
        assert torch.equal(info.changed, (state.ids != before.ids).sum(1))
        before = state
    shown = (canvas.ids < 3) if name in FILLS and not way.get("refine") else ~canvas.free
    assert torch.equal(before.ids[shown], canvas.ids[shown])


@pytest.mark.parametrize(("name", "way"), CASES)
def test_steps_do_not_write_into_the_state_they_are_given(name, way):
    law, canvas = law_for(name, way, 1), ragged()
    engine, noise, moves = Engine(law, progress=False), Noise(5, torch.arange(CHAINS)), kernel(name, **way)
    kept = []
    for state, _ in walk(engine, moves, canvas, noise, STEPS):
        kept.append((state, {name: value.clone() for name, value in tensors(state).items()}))
    for state, copies in kept:
        for remembers, value in copies.items():
            same(tensors(state)[remembers], value)
    assert torch.equal(canvas.ids, ragged().ids)
    assert torch.equal(canvas.free, ragged().free)


# ---- what it costs, and when it is over


@pytest.mark.parametrize(("name", "way"), CASES)
def test_every_pass_is_counted_and_no_other_is_run(name, way):
    law = Counting(law_for(name, way, 1))
    _, *steps = run(name, way, law, ragged(), seed=2)
    assert sum(int(info.passes.sum()) for _, info in steps) == len(law.sequences)


# Of these each step, and each pass of it, is known from the options; of others the data decide, within a factor.
KNOWN = ("first_hitting", "g_ipd", "gibbs", "grouped", "mask_predict", "ordered", "sequential")
FACTOR = 4  # the positions of the canvas: a decoder may reveal all of them in one pass, or one at a time


@pytest.mark.parametrize("steps", [None, 2])
@pytest.mark.parametrize(("name", "way"), CASES)
def test_the_cost_is_what_runs_or_bounds_it(name, way, steps):
    law, moves = Counting(law_for(name, way, 1)), kernel(name, **way)
    canvas = blank(law, 4, CHAINS)
    list(walk(Engine(law, progress=False), moves, canvas, Noise(1, torch.arange(CHAINS)), steps))
    ran, cost = sum(map(len, law.sequences)), CHAINS * moves.cost(4, 4, steps)
    assert ran <= cost <= FACTOR * ran
    if name in KNOWN and steps is None:
        assert cost == ran


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_all_to_be_written_costs_no_more_than_said(name):
    """Positions that are clamped cost passes too where an energy is measured; a source is read in each pass."""
    for way in WAYS.get(name, [{}]):
        law, moves, canvas = Counting(law_for(name, way, 1)), kernel(name, **way), blank(Table.random(3, 4), 4, CHAINS)
        canvas.ids[:, 0], canvas.free[:, 0] = 1, False
        list(walk(Engine(law, progress=False), moves, canvas, Noise(1, torch.arange(CHAINS)), STEPS))
        assert sum(map(len, law.sequences)) <= CHAINS * moves.cost(3, 4, STEPS)
        assert moves.cost(3, 4, STEPS, source=5) > moves.cost(3, 4, STEPS)


def test_the_rounds_of_a_dependence_that_is_measured_are_counted():
    """Admission took `adaptive` with signal="information" and steps=4 for 168 tokens, and 7,360 ran."""
    moves = kernel("adaptive", signal="information", candidates=3)
    law, canvas = Counting(Hashed(3)), Canvas(torch.full((2, 7), 3), torch.ones(2, 7, dtype=torch.bool), 3)
    list(walk(Engine(law, progress=False), moves, canvas, Noise(1, torch.arange(2)), 4))
    assert sum(map(len, law.sequences)) <= 2 * moves.cost(7, 7, 4) <= 1.1 * sum(map(len, law.sequences))


def test_a_kernel_without_a_cost_is_not_registered():
    with pytest.raises(BesagError, match=r"the kernel 'priceless'.*cost"):

        @KERNELS.register
        class Priceless(Kernel):
            name = "priceless"

            def step(self, engine, noise, state):
                raise NotImplementedError

    assert "priceless" not in KERNELS


@pytest.mark.parametrize(("name", "way"), CASES)
def test_decoders_end_in_the_steps_they_say_and_chains_do_not(name, way):
    law, canvas, moves = law_for(name, way, 1), ragged(), kernel(name, **way)
    engine, noise = Engine(law, progress=False), Noise(1, torch.arange(CHAINS))
    *_, (state, _) = walk(engine, moves, canvas, noise, None if moves.ends else STEPS)
    assert moves.done(state) == moves.ends
    assert (moves.steps(canvas) is None) == (not moves.ends)
    if moves.ends:
        assert state.step <= moves.steps(canvas)
        assert not (state.ids == canvas.mask_id).any()


@pytest.mark.parametrize(("name", "way"), [case for case in CASES if case.values[0] in FILLS])
def test_a_mask_that_the_network_knows_as_a_token_is_never_written(name, way):
    law, moves = Hashed(4), kernel(name, **way)  # token 3 is the mask, and as likely as any
    canvas = Canvas(torch.full((40, 4), 3), torch.ones(40, 4, dtype=torch.bool), 3)
    *_, (state, _) = walk(Engine(law, progress=False), moves, canvas, Noise(1, torch.arange(40)), None)
    assert state.step <= moves.steps(canvas)
    assert not (state.ids == 3).any()


@pytest.mark.parametrize(("name", "way"), CASES)
def test_a_saved_state_goes_on_as_if_nothing_had_happened(name, way, tmp_path):
    law, canvas = law_for(name, way, 1), ragged()
    states = run(name, way, law, canvas, seed=7)
    middle = states[len(states) // 2][0]
    save(middle, tmp_path / "state", {"seed": 7})
    engine, noise, moves = Engine(law, progress=False), Noise(7, torch.arange(CHAINS)), kernel(name, **way)
    found, about = restore(moves.init(engine, noise, canvas), tmp_path / "state")
    assert about == {"seed": 7}
    assert found.step == middle.step
    [*_, (last, _)] = walk(engine, moves, canvas, noise, STEPS, found)
    assert torch.equal(last.ids, states[-1][0].ids)
    assert last.step == states[-1][0].step


# ---- given sources


@pytest.mark.parametrize(("name", "way"), CASES)
def test_chains_given_sources_are_chains_on_the_laws_given_them(name, way, tmp_path):
    """Each chain given a source of its own, in one canvas; and all given one, by the engine."""
    laws = [law_for(name, way, seed) for seed in (1, 3, 5)]
    given, which = GivenLaws(laws), [0, 1, 2, 1, 0, 2]
    canvas, noise, moves = ragged(), Noise(7, torch.arange(CHAINS)), kernel(name, **way)
    engine, with_sources = Engine(given, progress=False), canvas._replace(given=given.given(which))
    together = list(walk(engine, moves, with_sources, noise, STEPS))
    save(together[1][0], tmp_path / "state", {})
    found, _ = restore(moves.init(engine, noise, with_sources), tmp_path / "state")
    assert torch.equal([*walk(engine, moves, with_sources, noise, STEPS, found)][-1][0].ids, together[-1][0].ids)
    for source, (ids, law) in enumerate(given.laws.items()):
        some = torch.tensor([chain for chain, one in enumerate(which) if one == source])
        part, keys = canvas.rows(some), noise.rows(some)
        alone = list(walk(Engine(law, progress=False), moves, part, keys, STEPS))
        by_engine = list(walk(engine.given(np.array(ids)), moves, part, keys, STEPS))
        assert torch.equal(alone[-1][0].ids, together[-1][0].ids[some])
        assert torch.equal(alone[-1][0].ids, by_engine[-1][0].ids)
        for (_, told), (_, all_of_it) in zip(alone[1:], together[1 : len(alone)], strict=True):
            assert torch.equal(told.passes, all_of_it.passes[some])
            for number, values in told.more.items():
                same(values, all_of_it.more[number][some])


# ---- what is refused


UNSOUND = {
    "NaN": lambda logits: logits * float("nan"),
    "one NaN": lambda logits: logits.index_fill(1, torch.tensor([1]), float("nan")),
    "+inf": lambda logits: logits.index_fill(1, torch.tensor([1]), torch.inf),
    "+inf where nothing may stand": lambda logits: logits.index_fill(1, torch.tensor([4]), torch.inf),
    "nothing possible": lambda logits: logits.index_fill(1, torch.arange(3), -torch.inf),
}


class Unsound(Hashed):
    """Answers with no law, as a broken network may, and cannot be asked about tokens that it was not taught.

    Its head has two more than it knows, as many networks have.
    """

    name = "unsound"

    def __init__(self, spoilt):
        super().__init__(5)
        self.spoilt = spoilt

    def rows(self, questions):
        if bool(torch.isin(questions.ids, torch.tensor([3, 4])).any()):
            raise IndexError("index out of range in self")
        return super().rows(questions)

    def head(self, rows):
        return self.spoilt(rows)


@pytest.mark.parametrize("spoilt", UNSOUND)
@pytest.mark.parametrize(("name", "way"), CASES)
def test_an_answer_that_is_no_law_is_told_and_where(name, way, spoilt):
    canvas = ragged(torch.tensor([True, True, True, False, False]))
    canvas = canvas._replace(ids=canvas.ids.where(canvas.ids != 3, 5), mask_id=5)
    with pytest.raises(BesagError, match=r"'unsound' answered with NaN.* It was asked about token [0-3], and a draw"):
        run(name, way, Unsound(UNSOUND[spoilt]), canvas, seed=1)


def test_nobody_is_shown_what_came_of_nan(monkeypatch):
    """Also where answers are looked at now and then only, as on a device that must not be waited for."""
    monkeypatch.setattr(drawing, "answered", lambda engine, questions, reduce: engine.ask(questions, reduce))
    lm, shown = besag.load(Unsound(UNSOUND["NaN"]), progress=False), []
    with pytest.raises(BesagError, match="answered with NaN"):
        lm.sample("[MASK] [MASK]", "ordered", watch=lambda step, chains, texts: shown.append(step))
    assert shown == [0]


@pytest.mark.parametrize("name", NAMES)
def test_a_canvas_with_nothing_to_do(name):
    way = WAYS.get(name, [{}])[0]
    law = law_for(name, way, 1)
    canvas = blank(law, 4, 2)
    with pytest.raises(BesagError, match="there is no free place: nothing can be sampled"):
        run(name, way, law, canvas._replace(free=torch.zeros_like(canvas.free)), seed=0)
    full = blank(law, 4, 2, np.array([0, 1, 2, 0]))
    if name in FILLS:
        with pytest.raises(BesagError, match="no free place is hidden, and this kernel fills hidden places only"):
            run(name, way, law, full, seed=0)
    else:
        run(name, way, law, full, seed=0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"temperature": 0}, "temperature=0: give a number above 0"),
        ({"temperature": -1.0}, "temperature=-1.0: give a number above 0"),
        ({"temperature": float("nan")}, "temperature=nan: give a number"),
        ({"top_p": 0.0}, "top_p=0.0: the share of probability to keep is above 0 and at most 1"),
        ({"top_p": 1.5}, "top_p=1.5: the share of probability"),
        ({"top_k": 0}, "top_k=0: keep at least 1"),
        ({"tempreature": 1.0}, "the kernel .* has no option 'tempreature': it takes .*Did you mean 'temperature'"),
    ],
)
def test_draws_that_make_no_sense(name, options, told):
    needed = {"pick": "sample"} if "pick" in {field.name for field in fields(KERNELS[name])} else {}
    with pytest.raises(BesagError, match=told):
        kernel(name, **needed, **options)


HOSTILE = [0, -1, 10**9, 10**30, 10**400, math.nan, math.inf, -math.inf, 1e-300, -0.5, "x", "", None, True, [],
           [1, 2, 3], [10**30] * 3, ["x"], {}]  # fmt: skip


@pytest.mark.parametrize(("name", "way"), [(name, WAYS.get(name, [{}])[0]) for name in NAMES])
def test_every_option_is_taken_or_refused_in_words_whatever_is_said(name, way):
    """And what is taken runs to an end, without NaN."""
    for option in fields(KERNELS[name]):
        for value in HOSTILE:
            law = law_for(name, way, 1)
            try:
                told = run(name, {**way, option.name: value}, law, ragged(), seed=1)
            except BesagError:
                continue
            assert not any(more.isnan().any() for _, info in told[1:] for more in info.more.values()), option.name


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("remask", {"grid": 10**9}, "grid=1000000000: give at most 100,000"),
        ("block_gibbs", {"candidates": 10**9}, "candidates=1000000000: give at most 1,024"),
        ("grouped", {"size": 10**30}, "size=1000000000000000000000000000000: give a whole number"),
        ("refine", {"iterations": 10**9}, "iterations=1000000000: give at most 100,000,000"),
        ("tempering", {"rungs": 10**9}, "rungs=1000000000: give at most 1,024"),
        ("semi_ar", {"window": 10**9}, "window=1000000000: give at most"),
        ("adaptive", {"reach": math.inf}, "reach=inf: give"),
        ("entropy_bound", {"bound": 10**400}, "bound=1000.*: give a number"),
        ("metropolis", {"anneal": (4.0, 0.5, 10**9)}, "the steps of anneal=1000000000: give at most"),
    ],
)
def test_counts_have_bounds_that_are_told(name, options, told):
    with pytest.raises(BesagError, match=told):
        kernel(name, **options)


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is(name):
    kind = KERNELS[name]
    for fact in ("title", "formula", "law", "passes"):
        assert getattr(kind, fact), fact
    assert kind.__module__.rpartition(".")[2] == name  # one file a kernel
    assert {field.name for field in fields(Drawing)} <= {field.name for field in fields(kind)}  # all can be shaped


# ---- networks


@pytest.fixture(scope="module")
def network() -> Transformer:
    return Transformer(networks.tiny("bert"), networks.vocabulary("bert"), name="tiny")


@pytest.mark.parametrize(("name", "way"), CASES)
def test_on_a_network_the_mask_is_never_an_answer_and_special_tokens_stand_where_they_stood(name, way, network):
    canvas = text_canvas(network, "the [MASK] [MASK] on the [MASK]", chains=3)
    if name == "spindle":
        way = {**way, "counts": range(network.width)}
    for few in (canvas.allowed, None, torch.ones(network.width, dtype=torch.bool)):  # not even where it is allowed
        *_, (state, info) = run(name, way, network, canvas._replace(allowed=few), seed=3)
        assert torch.equal(state.ids[~canvas.free], canvas.ids[~canvas.free])
        assert all(not value.isnan().any() for value in info.more.values())
        drawn = state.ids[canvas.free]
        if kernel(name, **way).ends:
            assert (drawn != canvas.mask_id).all()
        if few is canvas.allowed:
            assert few[drawn[drawn != canvas.mask_id]].all()


# ---- forbidden tokens: an answer given hidden places does not know what is forbidden there


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("gibbs", {}, 0.9),  # the joint, given what is allowed: all other places are shown
        ("ordered", {"order": "left_to_right"}, 0.5),  # the first place knows nothing of the second's
        ("ordered", {"order": "right_to_left"}, 0.9),
        ("first_hitting", {}, 0.7),  # both orders
        ("block_gibbs", {"size": 2}, 0.7),
    ],
)
def test_which_kernels_keep_the_joint_where_tokens_are_forbidden(name, options, expected):
    law, allowed = Table([[0.45, 0.05], [0.05, 0.45]]), torch.tensor([[True, True], [True, False]])
    engine, noise = Engine(law, progress=False), Noise(0, torch.arange(4000))
    *_, (state, _) = walk(engine, kernel(name, **options), blank(law, 2, 4000, allowed=allowed), noise, 12)
    assert not state.ids[:, 1].any()
    share = float((state.ids[:, 0] == 0).double().mean())
    assert abs(share - expected) < 4 * 0.5 / 4000**0.5  # four standard errors: a false alarm in 16,000
