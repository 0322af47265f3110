"""self_evolution: what is questioned, what is then hidden, and what a smoothed label is, each by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests import networks
from tests.training.objectives import examples

from besag.errors import BesagError
from besag.training.network.batch import Batch, Layout
from besag.training.objectives.self_evolution import SelfEvolution


def texts(*lines: list[int]) -> Batch:
    layout = Layout.of_lengths(torch.tensor([len(line) for line in lines]))
    ids = torch.tensor([id for line in lines for id in line])
    asked, ones = torch.zeros(1, dtype=torch.int64), torch.ones(len(lines))
    free = torch.ones(len(ids), dtype=torch.bool)
    return Batch(ids, ids, free, layout, asked, torch.ones(1), ones, torch.arange(len(lines)), 0, 0.0)


def test_every_place_is_questioned_once_with_its_group_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    made, batch = SelfEvolution(examples.encoder(), groups=3), examples.batch((9, 4, 12))
    read, states = [], made.encoder.states

    def spy(ids: torch.Tensor, layout: Layout) -> torch.Tensor:
        read.append(ids)
        return states(ids, layout)

    monkeypatch.setattr(made.encoder, "states", spy)
    questioned = made.question(batch)
    hidden = torch.stack(read) == made.encoder.mask_id  # (3, T)
    assert torch.equal(hidden.sum(0), batch.free.long())  # each once, special tokens never
    size = torch.stack([hidden[:, batch.layout.row == row].sum(1) for row in range(3)])
    assert bool((size.amax(1) - size.amin(1) <= 1).all())  # groups of a text are of one size
    for ids, here in zip(read, hidden, strict=True):
        assert torch.equal(ids[~here], batch.ids[~here])
        log_probs = examples.plain(made.encoder, ids, batch.layout)
        by_hand = -log_probs[here, batch.ids[here]]
        torch.testing.assert_close(questioned.losses[here], by_hand, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(
            made.encoder.logits(questioned.states[here]).log_softmax(-1), log_probs[here], rtol=1e-4, atol=1e-4
        )
    assert not bool(questioned.losses[~batch.free].any())
    assert not questioned.losses.requires_grad


def test_the_least_known_places_are_hidden_not_tokens_of_a_kind() -> None:
    one, two = examples.ordinary()[:2]
    batch = texts([one, one, two, two])
    losses = torch.tensor([0.1, 3.0, 2.0, 0.2])  # the same token is known here and not there
    made = SelfEvolution(examples.encoder(), rate=0.5, pick="top")
    assert made.hidden(batch, losses).tolist() == [False, True, True, False]
    special = batch._replace(free=torch.tensor([True, True, False, True]))
    assert SelfEvolution(examples.encoder(), rate=0.6, pick="top").hidden(special, losses)[2].item() is False


def test_places_are_drawn_in_proportion_to_what_is_not_known() -> None:
    wrong = torch.tensor([0.8, 0.4, 0.2, 0.2])  # 1 − r
    batch = texts(*[examples.ordinary()[:4]] * 4000)
    made = SelfEvolution(examples.encoder(), rate=0.25)
    hidden = made.hidden(batch, -(1 - wrong).log().repeat(4000)).view(-1, 4)
    assert bool((hidden.sum(1) == 1).all())
    torch.testing.assert_close(hidden.float().mean(0), wrong / wrong.sum(), atol=0.025, rtol=0)


@pytest.mark.parametrize("smooth", [0.0, 0.3])
def test_the_loss_by_hand(smooth: float) -> None:
    made, batch = SelfEvolution(examples.encoder(), rate=0.4, smooth=smooth), examples.batch()
    questioned = made.question(batch)
    hidden = made.hidden(batch, questioned.losses)
    log_probs = examples.plain(made.encoder, batch.ids.masked_fill(hidden, made.encoder.mask_id), batch.layout)
    with torch.no_grad():
        own = made.encoder.logits(questioned.states).softmax(-1)
    each = []
    for place in hidden.nonzero()[:, 0].tolist():
        label = smooth * own[place]
        label[batch.ids[place]] += 1 - smooth
        each.append(-float((label * log_probs[place]).sum()))
    loss = made(batch)
    assert float(loss.total.detach()) == pytest.approx(float(batch.weight.sum()) * sum(each) / len(each), rel=1e-4)
    masked = -float(log_probs[hidden, batch.ids[hidden]].mean())
    assert float(loss.logs["masked_loss"]) == pytest.approx(masked, rel=1e-4)
    assert float(loss.logs["questioned_loss"]) == pytest.approx(float(questioned.losses[batch.free].mean()), rel=1e-4)


def test_its_own_answer_is_no_way_for_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the label is what the network says anyway, there is nothing to learn."""
    made, batch = SelfEvolution(examples.encoder(), rate=0.5, smooth=0.999999), examples.batch((8,))
    hidden = torch.tensor([False, True, False, True, True, False, False, False])
    monkeypatch.setattr(made, "hidden", lambda *_: hidden)
    shown = batch.ids.masked_fill(hidden, made.encoder.mask_id)
    questioned = made.question(batch)
    with torch.no_grad():
        same = made.encoder.states(shown, batch.layout)  # as if all of K had been one group
    monkeypatch.setattr(made, "question", lambda *_: questioned._replace(states=same))
    assert float(examples.gradient(made(batch).total, made.encoder).abs().max()) < 1e-3
    monkeypatch.undo()
    monkeypatch.setattr(made, "hidden", lambda *_: hidden)
    made.smooth = 0.0
    assert float(examples.gradient(made(batch).total, made.encoder).abs().max()) > 1e-2


def test_questions_are_asked_without_dropout_and_training_goes_on_with_it() -> None:
    model = networks.tiny("bert", hidden_dropout_prob=0.5).train()
    made, batch = SelfEvolution(examples.encoder("bert", model=model)), examples.batch(family="bert")
    made.train()
    assert torch.equal(made.question(batch).losses, made.question(batch).losses)
    assert model.training
    assert not torch.equal(made(batch).total, made(batch).total)


def test_ragged_and_padded_batches_have_one_gradient() -> None:
    batch, gradients = examples.batch(), []
    for ragged in (False, True):
        network = examples.encoder(ragged=ragged)
        gradients.append(examples.gradient(SelfEvolution(network, rate=0.3)(batch).total, network))
    assert float(gradients[0].abs().max()) > 1e-3
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("wrong", [{"rate": 0.0}, {"smooth": 1.0}, {"smooth": -0.1}, {"groups": 0}, {"pick": "best"}])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    [(option, _)] = wrong.items()
    with pytest.raises(BesagError, match=option):
        SelfEvolution(examples.encoder(), **wrong)
