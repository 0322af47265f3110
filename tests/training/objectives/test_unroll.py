"""unroll: each stage by hand, what is corrupted and drawn as laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests import networks
from tests.training.objectives import examples
from torch import Tensor

from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch
from besag.training.objectives import draws
from besag.training.objectives.unroll import Unroll

PADIR: dict[str, Any] = {"corrupt": "mask", "feed": "argmax", "first": "corrupted"}


def watched(objective: Unroll, batch: Batch) -> tuple[Any, list[Tensor]]:
    """The loss, and what the network was shown at each stage."""
    shown: list[Tensor] = []
    states = objective.encoder.states
    objective.encoder.states = lambda ids, layout: shown.append(ids) or states(ids, layout)
    return objective(batch), shown


@pytest.mark.parametrize(("options", "stages"), [({}, 2), (PADIR, 2), ({"feed": "argmax"}, 3), (PADIR, 1)])
def test_the_loss_is_the_mean_over_stages(options: dict[str, Any], stages: int) -> None:
    network, batch = examples.encoder(), examples.batch()
    objective = Unroll(network, seed=1, stages=stages, **options)
    loss, shown = watched(objective, batch)
    first, chosen = objective.corrupted(batch)
    torch.testing.assert_close(shown[0], first)
    assert len(shown) == stages
    ordinary = torch.tensor(examples.ordinary())
    by_hand = []
    for stage, inputs in enumerate(shown):
        log_probs = examples.plain(network, inputs, batch.layout)
        places = batch.free & (chosen if stage == 0 and objective.first == "corrupted" else batch.free)
        assert int(places.sum()) > 3
        by_hand.append(-float(log_probs[torch.arange(len(inputs)), batch.ids][places].mean()))
        assert (inputs[~batch.free] == batch.ids[~batch.free]).all()
        if stage + 1 < stages and objective.feed == "argmax":
            best = ordinary[log_probs[:, ordinary].argmax(-1)]
            torch.testing.assert_close(shown[stage + 1][batch.free], best[batch.free])
    mean = float(loss.total.detach()) / float(batch.weight.sum())
    assert mean == pytest.approx(np.mean(by_hand), rel=1e-4)
    assert [float(value) for value in loss.logs.values()] == pytest.approx(by_hand, rel=1e-4)


def test_no_gradient_runs_through_what_was_drawn() -> None:
    """The gradient is that of the stages taken one by one, their inputs given."""
    network, batch = examples.encoder(), examples.batch()
    loss, shown = watched(Unroll(network), batch)
    whole = examples.gradient(loss.total, network)
    places = batch.free.nonzero()[:, 0]
    apart = torch.zeros_like(whole)
    for inputs in shown:
        losses = network.losses(type(network).states(network, inputs, batch.layout)[places], batch.ids[places])
        apart += examples.gradient(losses.mean() * batch.weight.sum() / 2, network)
    torch.testing.assert_close(whole, apart, rtol=1e-3, atol=1e-4)
    assert float(whole.abs().max()) > 1e-3


def test_corruption_is_a_share_of_each_passage_by_uniform_ordinary_tokens() -> None:
    network = examples.encoder()
    batch = examples.batch((22,) * 400)
    inputs, chosen = Unroll(network).corrupted(batch)
    share = draws.spread(0, Training.UNROLL_SHARE, batch.draw).numpy()
    drawn = chosen.view(400, 22)[:, 1:-1].double().mean(1).numpy()
    deviations = (drawn - share) / np.sqrt(share * (1 - share) / 20 + 1e-6)
    assert np.abs(deviations.mean()) < 4 / 20
    assert 0.8 < deviations.std() < 1.2
    assert not chosen[~batch.free].any()
    assert (inputs[~chosen] == batch.ids[~chosen]).all()
    ordinary = examples.ordinary()
    counts = np.bincount(inputs[chosen].numpy(), minlength=network.width)
    assert counts[[id for id in range(network.width) if id not in ordinary]].sum() == 0
    wanted = int(chosen.sum()) / len(ordinary)
    chi = ((counts[ordinary] - wanted) ** 2 / wanted).sum()
    freedom = len(ordinary) - 1
    assert abs(chi - freedom) < 3.5 * np.sqrt(2 * freedom)


def test_mask_noise_keeps_and_replaces_with_their_probabilities() -> None:
    network = examples.encoder()
    batch = examples.batch((22,) * 400)
    inputs, chosen = Unroll(network, corrupt="mask", correct=0.2, random=0.3).corrupted(batch)
    count = int(chosen.sum())
    masked = float((inputs[chosen] == network.mask_id).double().mean())
    kept = float((inputs[chosen] == batch.ids[chosen]).double().mean())
    assert masked == pytest.approx(0.5, abs=4 * np.sqrt(0.25 / count))
    assert kept == pytest.approx(0.2 + 0.3 / len(examples.ordinary()), abs=4 * np.sqrt(0.16 / count))


def test_samples_follow_the_answers_and_hold_no_special_token() -> None:
    network = examples.encoder()
    batch = examples.batch((22,) * 400)
    objective = Unroll(network, temperature=0.5)
    places = batch.free.nonzero()[:, 0]
    logits = torch.zeros(network.width)
    logits[network.mask_id] = 9.0
    favourites = examples.ordinary()[:3]
    logits[favourites] = torch.tensor([3.0, 2.5, 2.0])
    drawn = objective.chosen(logits.expand(len(places), -1), places, batch, 0)
    assert not set(drawn.tolist()) & set(networks.vocabulary(examples.FAMILY).special_ids)
    chances = (logits[examples.ordinary()] / 0.5).double().softmax(-1)[:3].numpy()
    counts = np.array([int((drawn == id).sum()) for id in favourites])
    assert np.abs(counts / len(places) - chances).max() < 4 * np.sqrt(0.25 / len(places))
    other = objective.chosen(logits.expand(len(places), -1), places, batch, 1)
    assert (drawn != other).any()


def test_a_network_that_saw_no_mask_is_not_for_scoring() -> None:
    assert Unroll(examples.encoder()).purpose == "encode"
    assert Unroll(examples.encoder(), **PADIR).purpose == "score"


def test_what_is_no_token_is_not_drawn() -> None:
    """A network of a few rows more than its vocabulary has tokens."""
    words = networks.vocabulary(examples.FAMILY)
    objective = Unroll(examples.encoder(model=networks.tiny(examples.FAMILY, vocab_size=words.size + 6)))
    assert int(objective.ordinary.sum()) == len(examples.ordinary()) + 6
    objective.meet(words)
    assert objective.ordinary.nonzero()[:, 0].tolist() == examples.ordinary()


@pytest.mark.parametrize("options", [{}, PADIR])
def test_ragged_and_padded_batches_have_one_loss_and_it_repeats(options: dict[str, Any]) -> None:
    batch = examples.batch()
    objectives = [Unroll(examples.encoder(ragged=ragged), **options) for ragged in (False, True)]
    first, second, again = objectives[0](batch).total, objectives[1](batch).total, objectives[0](batch).total
    torch.testing.assert_close(first, second, rtol=1e-4, atol=1e-4)
    assert float(first.detach()) == float(again.detach())


@pytest.mark.parametrize(
    "wrong", [{"stages": 0}, {"corrupt": "noise"}, {"feed": "best"}, {"first": "none"}, {"correct": 0.95},
              {"temperature": 0.0}]
)  # fmt: skip
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    [(option, value)] = wrong.items()
    with pytest.raises(BesagError, match=f"{option}={value!r}"):
        Unroll(examples.encoder(), **wrong)
