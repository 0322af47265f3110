"""One place at a time is the chain rule: exact on a joint in every order, a law of its own on anything else."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest
import torch
from tests.laws import Arbitrary, Counting
from tests.samplers.enumerated import ADAPTIVE, FIXED, filling_law
from tests.samplers.exact import DRAWN

from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank, conditional, empirical, follows, number, run, total_variation
from besag.language_model import LanguageModel
from besag.samplers import kernel
from besag.samplers.drawing import Drawing
from besag.samplers.kernel import Info, Kernel, State, changes, hidden
from besag.samplers.kernels.ordered import ORDERS, fill, foremost

CHAINS = 10_000
SEED = 28  # of incompatible conditionals on which no two of the six orders have nearly the same law


def test_the_definition_itself_is_a_law_and_knows_the_joint():
    table, family, start = Table.random(3, 3, seed=2), Incompatible(3, 3, SEED), [3, 3, 3]
    laws = {order: filling_law(family, start, order) for order in ORDERS}
    for order in ORDERS:
        assert laws[order].sum() == pytest.approx(1)
        assert np.allclose(filling_law(table, start, order), table.log_probs.exp().numpy().ravel())
    for one, other in combinations(ORDERS, 2):  # on incompatible conditionals every order is a law of its own
        assert total_variation(laws[one], laws[other]) > 0.01, (one, other)


# ---- the law


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_draws_from_the_joint(order):
    law = Table.random(3, 3, seed=1)
    assert follows(empirical(kernel("ordered", order=order), law, blank(law, 3, CHAINS)), law.log_probs.exp().numpy())


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_draws_from_the_joint_given_what_is_shown(order):
    law = Table.random(2, 4, seed=4)
    start = np.array([2, 1, 2, 2])
    given_it = np.zeros((2, 2, 2, 2))
    given_it[:, 1] = law.log_probs.exp().numpy()[:, 1]
    canvas = blank(law, 4, CHAINS // 2, start)
    canvas.free[::2, 1] = False  # clamped or free: what is shown is not drawn
    assert follows(empirical(kernel("ordered", order=order), law, canvas), given_it)


@pytest.mark.parametrize("order", ORDERS)
def test_incompatible_conditionals_have_the_chain_rule_of_the_order(order):
    law, start = Incompatible(3, 3, SEED), [3, 3, 3]
    counts = empirical(kernel("ordered", order=order), law, blank(law, 3, CHAINS))
    assert follows(counts, filling_law(law, start, order))
    others = [other for other in ORDERS if other != order]
    assert not any(follows(counts, filling_law(law, start, other)) for other in others)


def test_temperature_and_truncation_change_every_row_and_the_order_looks_at_what_is_drawn_from():
    law, start = Incompatible(3, 3, seed=5), [3, 3, 3]

    for options, change in DRAWN:
        counts = empirical(kernel("ordered", order="entropy", **options), law, blank(law, 3, CHAINS))
        expected = filling_law(law, start, "entropy", change=change)
        assert follows(counts, np.where(expected < 1e-200, 0, expected))
        assert not follows(counts, filling_law(law, start, "entropy"))


def test_the_likeliest_token_at_every_place():
    law = Incompatible(3, 3, seed=6)

    def sharp(row):
        return (np.arange(3) == row.argmax()).astype(float)

    for order in ("left_to_right", "right_to_left"):
        state, _ = run(kernel("ordered", order=order, pick="argmax"), law, blank(law, 3, 5))
        [at] = filling_law(law, [3, 3, 3], order, change=sharp).nonzero()[0]
        assert number(state.ids, 3).tolist() == [at] * 5
    # The order by confidence looks at the rows themselves, not at the certainty that the likeliest one is taken.
    sequence = np.array([3, 3, 3])
    while (hides := [place for place in range(3) if sequence[place] == 3]) != []:
        rows = {place: conditional(law, sequence, hides, place) for place in hides}
        place = max(hides, key=lambda place: rows[place].max())
        sequence[place] = rows[place].argmax()
    state, _ = run(kernel("ordered", order="confidence", pick="argmax"), law, blank(law, 3, 5))
    assert (state.ids.numpy() == sequence).all()


# ---- the wrong variant


@dataclass(frozen=True)
class ByTheDrawnToken(Kernel):
    """Draws everywhere and keeps the token that came out most probable: the place depends on the draw."""

    name = "wrong"
    ends = True

    def cost(self, n, length, steps=None, source=0):
        return n * (length + source)

    def step(self, engine, noise, state):
        hides = hidden(state)
        answers = fill(engine, noise, state, state.ids, hides, "sample", Drawing())
        chosen = foremost(-answers.log_prob, hides, 1)
        ids = torch.where(chosen, answers.token, state.ids)
        return State(ids, state.canvas, state.step + 1), Info(changes(state.ids, ids), answers.passes)


def law_by_the_drawn_token(law, start) -> np.ndarray:
    width = law.width
    total = np.zeros(width ** len(start))

    def follow(sequence: np.ndarray, weight: float) -> None:
        hides = [place for place in range(len(start)) if sequence[place] == width]
        if not hides:
            total[number(sequence[None], width)[0]] += weight
            return
        rows = {place: conditional(law, sequence, hides, place) for place in hides}
        for tokens in product(range(width), repeat=len(hides)):
            drawn = dict(zip(hides, tokens, strict=True))
            place = max(hides, key=lambda place: (rows[place][drawn[place]], -place))
            moved = sequence.copy()
            moved[place] = drawn[place]
            follow(moved, weight * np.prod([rows[place][drawn[place]] for place in hides]))

    follow(np.asarray(start), 1.0)
    return total


def test_choosing_the_place_by_the_drawn_token_misses_even_a_true_joint():
    law = Table.random(3, 3, seed=1)
    joint = law.log_probs.exp().numpy()
    wrong = law_by_the_drawn_token(law, [3, 3, 3])
    assert wrong.sum() == pytest.approx(1)
    assert total_variation(wrong, joint) > 0.1
    counts = empirical(ByTheDrawnToken(), law, blank(law, 3, CHAINS))
    assert follows(counts, wrong)
    assert not follows(counts, joint)


# ---- what it tells


@pytest.mark.parametrize("order", FIXED)
def test_the_log_probs_of_the_steps_add_up_to_that_of_the_sample(order):
    law, start = Incompatible(3, 4, seed=7), [3, 0, 3, 3]
    expected = filling_law(law, start, order)
    state, told = run(kernel("ordered", order=order), law, blank(law, 4, 200, np.array(start)))
    total = sum(info.more["log_prob"] for info in told)
    assert total.dtype == torch.float64
    assert np.allclose(total.numpy(), np.log(expected[number(state.ids, 3)]), atol=1e-12)
    assert len(told) == 3


def test_on_a_joint_they_add_up_to_it_also_in_random_order():
    law = Table.random(3, 3, seed=8)
    state, told = run(kernel("ordered", order="random"), law, blank(law, 3, 200))
    total = sum(info.more["log_prob"] for info in told)
    assert np.allclose(total.numpy(), law.log_probs.numpy().ravel()[number(state.ids, 3)], atol=1e-12)


@pytest.mark.parametrize(
    ("order", "called"),
    [("left_to_right", "left-to-right"), ("right_to_left", "right-to-left"), ("confidence", "confident")],
)
def test_what_is_drawn_has_the_probability_that_the_score_chain_says(order, called):
    law = Arbitrary(3)
    state, told = run(kernel("ordered", order=order), law, blank(law, 4, 20))
    texts = [" ".join(f"s{token}" for token in sequence) for sequence in state.ids.tolist()]
    scores = LanguageModel(law).score(texts, method="chain", order=called)
    total = sum(info.more["log_prob"] for info in told)
    assert np.allclose(total.numpy(), [score.total for score in scores], atol=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_one_pass_a_step_and_none_for_a_chain_that_is_full(order):
    law = Counting(Incompatible(3, 4))
    start = np.array([[3, 3, 3, 3], [0, 1, 2, 3], [0, 1, 2, 0], [3, 3, 0, 1]])
    chooses = kernel("ordered", order=order)
    canvas = blank(law, 4, 4, start)
    state, told = run(chooses, law, canvas)
    passes = torch.stack([info.passes for info in told])
    assert passes.tolist() == [[1, 1, 0, 1], [1, 0, 0, 1], [1, 0, 0, 0], [1, 0, 0, 0]]
    assert len(law.sequences) == 7
    assert law.head_rows == (4 + 3 + 2 + 1 + 1 + 2 + 1 if order in ADAPTIVE else 7)  # only what is needed is asked
    assert sum(info.changed for info in told).tolist() == [4, 1, 0, 2]
    assert sum(info.more["log_prob"] for info in told)[2] == 0
    assert chooses.steps(canvas) == 4
    assert chooses.done(state)


# ---- ties, and options


def test_equally_good_places_are_taken_from_the_left():
    law = Table(np.ones((2, 2, 2)))
    for order in ADAPTIVE:
        chooses, canvas = kernel("ordered", order=order), blank(law, 3, 4)
        for steps in (1, 2):
            state, _ = run(chooses, law, canvas, steps)
            assert ((state.ids < 2).sum(1) == steps).all()
            assert (state.ids[:, steps - 1] < 2).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"order": "entorpy"}, "order='entorpy': give one of left_to_right, .* Did you mean 'entropy'?"),
        ({"pick": "max"}, "pick='max': give one of sample, argmax"),
        ({"pick": "argmax", "temperature": 0.5}, "pick='argmax' takes the likeliest token, so .*temperature=0.5"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told.replace("?", r"\?")):
        kernel("ordered", **options)
