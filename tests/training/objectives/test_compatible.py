"""The price on incompatible conditionals, against a plain loop over the network's forward."""

from __future__ import annotations

import pytest
import torch
from tests import networks
from tests.training.objectives.rows import alone
from torch.nn import functional as F

from besag.errors import BesagError
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.objectives.compatible import PATIENCE, Compatible, filled
from besag.training.objectives.mlm import MLM

FAMILY = "modernbert"
LENGTHS = torch.tensor([9, 12, 7, 10]).repeat(4)
PAIRS = ((1, 3), (10, 12), (12, 15), (30, 33))  # neighbouring hidden places, in the first four sequences
ASKED = torch.cat([torch.tensor([1, 3, 10, 12, 15, 22, 30, 33]) + 38 * copy for copy in range(4)])


def encoder(ragged: bool = False) -> Encoder:
    words = networks.vocabulary(FAMILY)
    assert words.mask_id is not None
    assert words.pad_id is not None
    return Encoder(
        networks.tiny(FAMILY), mask_id=words.mask_id, pad_id=words.pad_id, special_ids=words.special_ids, ragged=ragged
    )


def batch(weight: torch.Tensor | None = None, step: int = 0, first: int = 0) -> Batch:
    words = networks.vocabulary(FAMILY)
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(5, words.size, (int(LENGTHS.sum()),), generator=draw)
    inputs = ids.clone()
    inputs[ASKED] = words.mask_id or 0
    return Batch(
        ids, inputs, torch.ones(len(ids), dtype=torch.bool), Layout.of_lengths(LENGTHS), ASKED,
        torch.ones(len(ASKED)) if weight is None else weight, torch.zeros(16), torch.arange(first, first + 16), step,
        0.0,
    )  # fmt: skip


@pytest.mark.parametrize("ragged", [False, True])
def test_log_odds_are_those_of_a_plain_loop(ragged: bool) -> None:
    whole, one = Compatible(encoder(ragged), share=1.0), batch()
    model = encoder().model.eval()
    mask = whole.encoder.mask_id
    with torch.no_grad():
        states = whole.encoder.states(one.inputs, one.layout)
        minors = whole.draw(states, one)
        first, second = whole.log_odds(one, minors)
        assert len(minors.i) >= 1
        for index, (i, j) in enumerate(zip(minors.i.tolist(), minors.j.tolist(), strict=True)):
            row = int(one.layout.row[i])
            assert int(one.layout.row[j]) == row
            start, end = one.layout.bounds[row : row + 2].tolist()

            def logits(at_i: int, at_j: int, place: int, i=i, j=j, start=start, end=end) -> torch.Tensor:
                text = one.inputs[start:end].clone()
                text[i - start], text[j - start] = at_i, at_j
                return model(input_ids=text[None], attention_mask=torch.ones_like(text)[None]).logits[0, place - start]

            (a, other_a), (b, other_b) = minors.a[index].tolist(), minors.b[index].tolist()
            given_b, given_other_b = logits(mask, b, i), logits(mask, other_b, i)
            given_a, given_other_a = logits(a, mask, j), logits(other_a, mask, j)
            omega_i = (given_b[a] - given_b[other_a]) - (given_other_b[a] - given_other_b[other_a])
            omega_j = (given_a[b] - given_a[other_b]) - (given_other_a[b] - given_other_a[other_b])
            torch.testing.assert_close(first[index], omega_i, atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(second[index], omega_j, atol=1e-4, rtol=1e-4)


def test_minors_are_of_the_text_and_of_other_ordinary_tokens() -> None:
    whole = Compatible(encoder(), share=1.0)
    seen = set()
    spent = 0
    for number in range(20):
        one = batch(first=16 * number)
        minors = whole.draw(whole.encoder.states(one.inputs, one.layout), one)
        assert torch.equal(minors.a[:, 0], one.ids[minors.i])
        assert torch.equal(minors.b[:, 0], one.ids[minors.j])
        assert (minors.a[:, 1] != minors.a[:, 0]).all()
        assert (minors.b[:, 1] != minors.b[:, 0]).all()
        assert not set(minors.a[:, 1].tolist()) & whole.encoder.special_ids
        spent += 4 * int(LENGTHS[one.layout.row[minors.i]].sum())
        seen |= set(zip(minors.i.tolist(), minors.j.tolist(), strict=True))
    assert {(i % 38, j % 38) for i, j in seen} == set(PAIRS)
    paired = int(LENGTHS[LENGTHS != 7].sum())  # a sequence of 7 has one hidden place
    assert abs(spent / 20 - paired) < 0.1 * paired  # `share` of the tokens, on average


def test_a_passage_pays_the_same_whatever_stands_beside_it() -> None:
    """Of one passage alone, half a batch or all of it: the same minors, and prices that sum to that of the batch."""
    whole, one = Compatible(encoder(), weight=0.7), batch()
    minors = whole.draw(whole.encoder.states(one.inputs, one.layout), one)
    drawn = one.layout.row[minors.i].tolist()
    assert len(drawn) >= 2
    total = 0.0
    for row in range(16):
        mine = alone(one, row)
        single = whole.draw(whole.encoder.states(mine.inputs, mine.layout), mine)
        assert len(single.i) == drawn.count(row)
        if row in drawn:
            first, number = int(one.layout.bounds[row]), drawn.index(row)
            assert (int(single.i) + first, int(single.j) + first) == (int(minors.i[number]), int(minors.j[number]))
            assert single.a.tolist() == minors.a[number : number + 1].tolist()
            assert single.b.tolist() == minors.b[number : number + 1].tolist()
        total += float(whole(mine).total.detach())
    assert total == pytest.approx(float(whole(one).total.detach()), rel=1e-4)


def test_batches_of_few_passages_pay_too() -> None:
    """Four sequences of one length: before, not one of them could have a minor."""
    whole, prices = Compatible(encoder(), weight=100.0), []
    for number in range(10):
        one = alone(batch(first=16 * number), 0)
        prices.append(float((whole(one).total - MLM(encoder())(one).total).detach()))
    assert sum(price > 1e-3 for price in prices) == pytest.approx(0.2 * len(prices), abs=1)


def test_a_run_in_which_nothing_can_be_compared_is_refused() -> None:
    whole = Compatible(encoder())
    single = batch(torch.tensor([1.0, 0, 1.0, 0, 0, 1.0, 1.0, 0]).repeat(4))
    states = whole.encoder.states(single.inputs, single.layout)
    for _ in range(PATIENCE - 1):
        assert len(whole.draw(states, single).i) == 0
    whole.draw(states, batch())  # one batch with a pair: it counts anew
    for _ in range(PATIENCE - 1):
        whole.draw(states, single)
    with pytest.raises(BesagError, match=r"no passage of 50 batches had two: hide more \(masking.rate\)"):
        whole.draw(states, single)


def test_the_loss_is_mlm_plus_hubers_price() -> None:
    one, whole = batch(), Compatible(encoder(), weight=0.7, share=1.0)
    plain = MLM(encoder())(one).total
    minors = whole.draw(whole.encoder.states(one.inputs, one.layout), one)
    first, second = whole.log_odds(one, minors)
    asked = torch.bincount(one.layout.row[one.asked])[one.layout.row[minors.i]]  # of each passage that pays
    price = (F.huber_loss(first, second, reduction="none") * asked).sum() / 0.25  # the chance to be drawn
    loss = whole(one)
    torch.testing.assert_close(loss.total, plain + 0.7 * price)
    torch.testing.assert_close(loss.logs["incompatibility"], (first - second).abs().mean())


def test_the_same_batch_draws_the_same_minors_and_gradients_flow() -> None:
    losses = []
    for _ in range(2):
        whole = Compatible(encoder(), weight=10.0)
        loss = whole(batch(step=3))
        loss.total.backward()
        losses.append(loss.total.item())
    assert losses[0] == losses[1]
    assert all(w.grad is not None and torch.isfinite(w.grad).all() for w in whole.encoder.model.parameters())


def test_a_batch_without_two_hidden_places_in_one_passage_has_no_price() -> None:
    weight = torch.tensor([1.0, 0, 1.0, 0, 0, 1.0, 1.0, 0]).repeat(4)
    one = batch(weight)
    torch.testing.assert_close(Compatible(encoder())(one).total, MLM(encoder())(one).total)


@pytest.mark.parametrize("options", [{"weight": -1.0}, {"weight": float("inf")}, {"share": 0.0}, {"share": 1.5}])
def test_wrong_options_are_told(options: dict[str, float]) -> None:
    with pytest.raises(BesagError, match=next(iter(options))):
        Compatible(encoder(), **options)


def test_static_shapes_change_nothing() -> None:
    """With tiles, the copies are filled up to one size for all batches."""
    plain, whole = batch(step=2), Compatible(encoder(ragged=True), share=0.9)
    tiled = plain._replace(layout=plain.layout._replace(tiles=plain.layout.bounds))
    with torch.no_grad():
        minors = whole.draw(whole.encoder.states(plain.inputs, plain.layout), plain)
        for one, other in zip(whole.log_odds(plain, minors), whole.log_odds(tiled, minors), strict=True):
            torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_filled_layouts_have_one_shape() -> None:
    for lengths in ([5, 9], [30], [3] * 9):
        layout = Layout.of_lengths(torch.tensor(lengths))
        whole = filled(layout, 300 - sum(lengths), rows=40)
        assert (len(whole.row), len(whole.bounds), int(whole.bounds[-1])) == (300, 41, 300)
        assert int(whole.bounds.diff().max()) <= 128
        assert torch.equal(whole.position[: sum(lengths)], layout.position)
