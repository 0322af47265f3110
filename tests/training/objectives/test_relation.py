"""How two pieces belong together, beside an objective: the loss by hand, in the same pass, and learned by a network."""

from __future__ import annotations

import pytest
import torch
from tests.training.objectives import examples
from torch.nn import functional as F

from besag.training.network.batch import Layout
from besag.training.objectives import OBJECTIVES
from besag.training.objectives.relation import RelationMixture


def mixture(weight: float = 1.0, objective: str = "mlm") -> RelationMixture:
    return RelationMixture(OBJECTIVES.find(objective)(examples.encoder("bert")), weight=weight, seed=5)


def labelled(*labels: int, seed: int = 0):
    return examples.batch(family="bert", seed=seed)._replace(relation=torch.tensor(labels))


def test_the_loss_is_the_objectives_and_the_mean_over_passages_that_are_asked() -> None:
    both, one = mixture(0.7), labelled(2, -1, 0)
    plain = both.objective(one)
    states = both.encoder.states(one.inputs, one.layout)  # what is hidden stays hidden
    logits = both.head(states[one.layout.bounds[[0, 2]].long()])
    by_hand = F.cross_entropy(logits, torch.tensor([2, 0]))
    found = both(one)
    torch.testing.assert_close(found.total, plain.total + 0.7 * one.weight.sum() * by_hand)
    torch.testing.assert_close(found.logs["relation_loss"], by_hand)
    right = (logits.argmax(-1) == torch.tensor([2, 0])).float().mean()
    assert float(found.logs["relation_accuracy"]) == pytest.approx(float(right))


def test_it_costs_no_pass_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    both, passes = mixture(), []
    plain = both.encoder._padded
    monkeypatch.setattr(both.encoder, "_padded", lambda *given: (passes.append(1), plain(*given))[1])
    both(labelled(0, 1, 2))
    assert len(passes) == 1


def test_where_nothing_is_asked_the_objective_is_alone() -> None:
    both, one = mixture(), labelled(-1, -1, -1)
    torch.testing.assert_close(both(one).total, both.objective(one).total)


def test_rows_that_only_fill_a_batch_up_are_not_asked() -> None:
    both, one = mixture(), labelled(1, 0, 2)
    bounds = torch.cat([one.layout.bounds, one.layout.bounds[-1:]])
    filled = Layout(bounds, one.layout.row, one.layout.position, one.layout.longest)
    more = one._replace(layout=filled, relation=torch.tensor([1, 0, 2, -1]))
    torch.testing.assert_close(both(more).logs["relation_loss"], both(one).logs["relation_loss"])


@pytest.mark.parametrize("objective", ["mae", "electra", "permuted"])
def test_it_stands_beside_other_objectives(objective: str) -> None:
    found = mixture(objective=objective)(labelled(0, 1, 2))
    assert torch.isfinite(found.total)
    assert found.logs["relation_loss"] > 0


def test_the_network_learns_it_and_not_the_head_alone() -> None:
    both, one = mixture(), labelled(0, 1, 2)
    (both(one).total - both.objective(one).total).backward()  # what is left is the relation's share
    moved = [name for name, part in both.encoder.named_parameters() if part.grad is not None and part.grad.any()]
    assert any("layer.0" in name for name in moved)
