"""Twins: what the text sees of them, when their answer is the masked place's own, and which networks bear them."""

from __future__ import annotations

import pytest
import torch
from tests.networks import tiny, vocabulary

from besag.conditionals import twins
from besag.conditionals.contract import Questions
from besag.conditionals.transformer import Transformer

BEAR = ("bert", "roberta", "distilbert", "albert", "electra")


def answers(network: Transformer, ids: torch.Tensor, place: torch.Tensor, *, by_twins: bool) -> torch.Tensor:
    """(M, H) rows at one asked place of each sequence."""
    row = torch.arange(len(ids))
    context = {twins.TWINS: torch.ones(len(ids), 1)} if by_twins else {}
    with torch.no_grad():
        return network.rows(Questions(ids=ids, row=row, place=place, context=context))


def hidden_alone(ids: torch.Tensor, mask: int) -> tuple[torch.Tensor, torch.Tensor]:
    """One copy for each place of one sequence, and the copies with that place hidden."""
    place = torch.arange(len(ids))
    shown = ids.repeat(len(ids), 1)
    masked = shown.clone()
    masked[place, place] = mask
    return shown, masked


@pytest.mark.parametrize("family", BEAR)
def test_in_one_layer_a_twin_is_the_masked_place(family):
    """The sentence of `twins.py`: nothing that a twin reads there was computed with its token in view."""
    layers = {"num_hidden_layers": 1} | ({"n_layers": 1} if family == "distilbert" else {})
    network = Transformer(tiny(family, **layers), vocabulary(family))
    shown, masked = hidden_alone(torch.arange(5, 12), vocabulary(family).mask_id)
    place = torch.arange(7)
    twin, own = (answers(network, ids, place, by_twins=by_twins) for ids, by_twins in ((shown, True), (masked, False)))
    torch.testing.assert_close(twin, own, rtol=1e-4, atol=1e-4)


def test_in_two_layers_it_is_so_where_the_token_is_the_mask_and_else_not():
    network = Transformer(tiny("bert"), vocabulary("bert"))
    mask, place = vocabulary("bert").mask_id, torch.arange(7)
    shown, masked = hidden_alone(torch.arange(5, 12), mask)
    own = answers(network, masked, place, by_twins=False)
    torch.testing.assert_close(answers(network, masked, place, by_twins=True), own, rtol=1e-4, atol=1e-4)
    assert (answers(network, shown, place, by_twins=True) - own).abs().max() > 1e-2


def test_places_may_be_any_and_neighbours_change_nothing():
    network = Transformer(tiny("roberta"), vocabulary("roberta"))
    ids = torch.randint(5, 20, (3, 6), generator=torch.Generator().manual_seed(0))
    row, place = torch.tensor([0, 0, 1, 2]), torch.tensor([1, 4, 2, 3])
    context = {twins.TWINS: torch.ones(3, 1)}
    with torch.no_grad():
        together = network.rows(Questions(ids=ids, row=row, place=place, context=context))
        alone = [
            network.rows(Questions(ids[r : r + 1], torch.zeros(1, dtype=torch.long), p[None], context=context))
            for r, p in zip(row.tolist(), place, strict=True)
        ]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("family", "bears"), [(name, True) for name in BEAR] + [("esm", False), ("modernbert", False)])
def test_a_network_is_tried_and_not_trusted(family, bears):
    """ESM counts positions by itself; half of this ModernBERT's layers look through a window."""
    assert Transformer(tiny(family), vocabulary(family)).bears_twins is bears
