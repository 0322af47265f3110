"""What is hidden is what is looked at in this text, place by place: the same word here and not there."""

from __future__ import annotations

import pytest
import torch
from tests.training.objectives import examples

from besag.errors import BesagError
from besag.training.network.batch import Batch, Layout
from besag.training.network.received import attention_received
from besag.training.objectives.attention_guided import AttentionGuided


def one_word(rows: int, length: int) -> Batch:
    """Sequences of one and the same word: a table over the vocabulary could not tell its places apart."""
    layout = Layout.of_lengths(torch.full((rows,), length))
    ids = torch.full((rows * length,), examples.ordinary()[0])
    nothing = torch.zeros(0, dtype=torch.int64)
    free = torch.ones(len(ids), dtype=torch.bool)
    return Batch(ids, ids, free, layout, nothing, torch.ones(0), torch.ones(rows), torch.arange(rows), 0, 0.0)


def test_places_of_one_word_are_hidden_in_proportion_to_attention() -> None:
    weight = torch.tensor([1.0, 0.5, 3.0, 0.5])
    batch = one_word(8000, 4)
    guided = AttentionGuided(examples.encoder(), rate=0.25)
    hidden = guided.hidden(batch, weight.repeat(8000)).view(-1, 4)
    assert (hidden.sum(1) == 1).all()
    torch.testing.assert_close(hidden.double().mean(0), (weight / weight.sum()).double(), rtol=0, atol=0.02)
    away = AttentionGuided(examples.encoder(), rate=0.25, power=-1.0).hidden(batch, weight.repeat(8000)).view(-1, 4)
    torch.testing.assert_close(away.double().mean(0), (1 / weight / (1 / weight).sum()).double(), rtol=0, atol=0.02)


def test_the_most_attended_places_are_hidden_and_asked() -> None:
    encoder, batch = examples.encoder(), examples.batch()
    guided = AttentionGuided(encoder, rate=0.5, pick="top")
    seen = attention_received(encoder, batch)
    hidden = guided.hidden(batch, seen)
    for row in range(batch.layout.rows):
        mine = (batch.layout.row == row) & batch.free
        least, most = seen[mine & hidden].min(), seen[mine & ~hidden].max()
        assert least >= most  # whatever word stands there
    assert not (hidden & ~batch.free).any()
    shown = batch.ids.masked_fill(hidden, encoder.mask_id)
    with torch.no_grad():
        log_probs = encoder.logits(encoder.states(shown, batch.layout)).float().log_softmax(-1)
        loss = guided(batch)
    mean = -log_probs[hidden, batch.ids[hidden]].mean()
    torch.testing.assert_close(loss.total, mean * batch.weight.sum(), rtol=1e-4, atol=1e-4)


def test_the_mean_share_is_the_rate() -> None:
    batch = one_word(4000, 5)
    hidden = AttentionGuided(examples.encoder(), rate=0.3).hidden(batch, torch.ones(20_000)).view(-1, 5).sum(1)
    assert set(hidden.tolist()) == {1, 2}
    assert float(hidden.double().mean()) == pytest.approx(1.5, abs=0.05)


def test_a_rate_that_hides_nothing_is_refused() -> None:
    with pytest.raises(BesagError, match="above 0 and at most 1"):
        AttentionGuided(examples.encoder(), rate=0.0)
