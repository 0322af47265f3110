"""States of padded batches are those of transformers, one pair at a time; a source is read once where it is said so."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from tests import networks
from tests.training.objectives import beside
from torch._dynamo.testing import CompileCounter

from besag.conditionals.length_head import LengthHead
from besag.conditionals.split import compile_layers
from besag.errors import BesagError
from besag.training.network import translator
from besag.training.network.batch import Layout, Source

FAMILIES = pytest.mark.parametrize("family", networks.DECODER_FAMILIES)


@FAMILIES
@pytest.mark.parametrize("decoder", ["masked", "causal"])
def test_one_pair_at_a_time(family: str, decoder: str) -> None:
    network, batch = beside.translator(family, decoder), beside.batch()
    with torch.no_grad():
        found = network.logits(network.states(batch.inputs, batch.layout)).log_softmax(-1)
    by_hand = beside.log_probs(network, batch.inputs, batch, causal=decoder == "causal")
    torch.testing.assert_close(found, by_hand, rtol=1e-3, atol=1e-3)


def test_who_sees_whom_can_be_said() -> None:
    network, batch = beside.translator(), beside.batch()
    with torch.no_grad():
        lower = torch.ones(batch.layout.longest, batch.layout.longest, dtype=torch.bool).tril().expand(3, -1, -1)
        seen = network.states(batch.inputs, batch.layout, seen=lower)
        torch.testing.assert_close(seen, network.states(batch.inputs, batch.layout, causal=True))


def test_sources_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    network, batch = beside.translator(), beside.batch()
    read, times = network.core.read, []
    monkeypatch.setattr(network.core, "read", lambda *given: (times.append(1), read(*given))[1])
    with network.reading_once():
        one = network.states(batch.inputs, batch.layout)
        other = network.states(batch.ids, batch.layout)
    assert (len(times), one.requires_grad) == (1, True)
    assert not torch.equal(one, other)
    network.states(batch.inputs, batch.layout)
    network.states(batch.inputs, batch.layout)
    assert len(times) == 3


def test_layers_are_compiled_once_though_a_source_is_as_long_as_its_target(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = CompileCounter()
    monkeypatch.setattr("torch.fx.experimental._config.use_duck_shape", True)  # as it is at first, and afterwards again
    monkeypatch.setattr(translator, "compile_layers", partial(compile_layers, backend=counter))
    network = beside.translator()
    network.compile_layers()
    batch, frames = beside.batch(), []
    for length in (batch.layout.longest, 4, 6):
        source = Source(torch.full((3 * length,), 6), Layout.of_lengths(torch.tensor([length] * 3)))
        network.states(batch.inputs, batch.layout._replace(source=source))
        frames.append(counter.frame_count)
    assert frames == [frames[0]] * 3
    assert frames[0] > 0


def test_lengths_are_learnt_on_from_where_a_network_is(tmp_path: Path) -> None:
    network = beside.translator(most=7)
    assert network.length_head is not None
    most, width = network.length_head.linear.weight.shape
    known = LengthHead(width, most)
    torch.nn.init.normal_(known.linear.weight)
    network.go_on_with_lengths(tmp_path)  # none lies there: as new
    assert not network.length_head.linear.weight.any()
    known.save(tmp_path)
    network.go_on_with_lengths(tmp_path)
    assert torch.equal(network.length_head.linear.weight, known.linear.weight)
    LengthHead(width, most + 1).save(tmp_path)  # of other lengths
    network.go_on_with_lengths(tmp_path)
    assert torch.equal(network.length_head.linear.weight, known.linear.weight)


def test_smoothed_labels_by_hand() -> None:
    network = beside.translator()
    rows, target = torch.randn(4, 32), torch.tensor([5, 6, 7, 8])
    log_probs = network.logits(rows).log_softmax(-1)
    network.smoothing = 0.2
    by_hand = -0.8 * log_probs[range(4), target] - 0.2 * log_probs.mean(-1)
    torch.testing.assert_close(network.losses(rows, target), by_hand)


def test_targets_without_sources_are_refused() -> None:
    batch = beside.batch()
    with pytest.raises(BesagError, match="without sources"):
        beside.translator().states(batch.ids, batch.layout._replace(source=None))
