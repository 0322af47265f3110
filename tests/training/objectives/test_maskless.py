"""maskless by hand, and what it is for: the score of one pass over the plain text comes nearer to pll."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from tests import networks
from tests.training.objectives import examples
from torch import Tensor

import besag
from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch, Layout
from besag.training.objectives import draws
from besag.training.objectives.maskless import Maskless
from besag.training.objectives.mlm import MLM

TEXTS = ["the cat sat on the mat", "is the cat on the mat", "she didn the mat and cat"]


def divergence(p: Tensor, q: Tensor) -> Tensor:  # of log-probabilities
    return (p.exp() * (p - q)).sum(-1)


def test_the_loss_by_hand() -> None:
    network, batch = examples.encoder(), examples.batch()
    loss = Maskless(network, weight=0.7)(batch)
    masked = examples.plain(network, batch.inputs, batch.layout)
    shown = examples.plain(network, batch.ids, batch.layout)
    counts = batch.weight * (batch.inputs[batch.asked] == network.mask_id)  # the first asked token was kept as it is
    assert float(counts[0]) == 0 < float(batch.weight[0])
    apart = (divergence(masked, shown)[batch.asked] * counts).sum() / counts.sum()
    by_hand = apart * batch.weight.sum() + 0.7 * MLM(network)(batch).total
    torch.testing.assert_close(loss.total, by_hand, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(loss.logs["one_pass_kl"], apart, rtol=1e-4, atol=1e-4)


def test_no_gradient_reaches_the_masked_answers() -> None:
    """The gradient is that of the two parts with the masked answers given as numbers."""
    network, batch = examples.encoder(), examples.batch()
    whole = examples.gradient(Maskless(network)(batch).total, network)
    masked = examples.plain(network, batch.inputs, batch.layout)[batch.asked]
    counts = batch.weight * (batch.inputs[batch.asked] == network.mask_id)
    said = network.logits(network.states(batch.ids, batch.layout)[batch.asked]).log_softmax(-1)
    apart = (divergence(masked, said) * counts).sum() / counts.sum() * batch.weight.sum()
    by_parts = examples.gradient(apart + MLM(network)(batch).total, network)
    torch.testing.assert_close(whole, by_parts, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("teacher", ["self", "frozen"])
def test_one_at_a_time_teaches_what_pll_asks(teacher: Any) -> None:
    network, batch = examples.encoder(), examples.batch()
    objective = Maskless(network, teacher=teacher, one_at_a_time=True, seed=2)
    loss = objective(batch)
    shown = examples.plain(network, batch.ids, batch.layout)
    kl = []
    for row in range(batch.layout.rows):
        start, end = batch.layout.bounds[row : row + 2].tolist()
        noise = draws.uniform(2, Training.MASKLESS_PLACE, batch.draw[row], torch.arange(end - start))
        place = start + 1 + int(noise[1:-1].argmin())
        hidden = batch.ids.clone()
        hidden[place] = network.mask_id
        masked = examples.plain(network, hidden, batch.layout)
        kl.append(float(divergence(masked, shown)[place]))
    assert float(loss.logs["one_pass_kl"]) == pytest.approx(np.mean(kl), rel=1e-3)


def test_a_sequence_without_tokens_is_no_matter() -> None:
    """An empty sequence and a tail of special tokens, as a batch of static size has."""
    batch = examples.batch((7, 4))
    pad = networks.vocabulary(examples.FAMILY).pad_id
    assert pad is not None
    objective = Maskless(examples.encoder(), one_at_a_time=True)
    filled = batch._replace(
        ids=torch.cat([batch.ids, torch.tensor([pad, pad])]),
        inputs=torch.cat([batch.inputs, torch.tensor([pad, pad])]),
        free=torch.cat([batch.free, torch.zeros(2, dtype=torch.bool)]),
        layout=Layout.of_lengths(torch.tensor([7, 4, 2, 0])), draw=torch.arange(4) + 10,
    )  # fmt: skip
    torch.testing.assert_close(objective(filled).total, objective(batch).total, rtol=1e-4, atol=1e-4)
    empty_last = batch._replace(layout=Layout.of_lengths(torch.tensor([7, 4, 0])), draw=torch.arange(3) + 10)
    torch.testing.assert_close(objective(empty_last).total, objective(batch).total, rtol=1e-4, atol=1e-4)
    empty_between = batch._replace(layout=Layout.of_lengths(torch.tensor([7, 0, 4])), draw=torch.tensor([10, 5, 11]))
    torch.testing.assert_close(objective(empty_between).total, objective(batch).total, rtol=1e-4, atol=1e-4)


def test_a_frozen_teacher_stays_as_it_was_and_is_no_part_of_the_module() -> None:
    network, batch = examples.encoder(), examples.batch()
    objective = Maskless(network, weight=0.0, teacher="frozen")
    assert set(objective.state_dict()) == set(MLM(network).state_dict())
    before = examples.plain(network, batch.inputs, batch.layout)[batch.asked]
    optimizer = torch.optim.SGD(objective.parameters(), 0.01)
    objective(batch).total.backward()
    optimizer.step()
    after = examples.plain(network, batch.inputs, batch.layout)[batch.asked]
    assert float((before - after).abs().max()) > 1e-3
    assert objective.frozen is not None
    taught = objective.frozen.logits(batch.inputs, batch, batch.asked, network).log_softmax(-1)
    torch.testing.assert_close(taught, before, rtol=1e-4, atol=1e-4)
    assert set(objective(batch).logs) == {"one_pass_kl"}
    assert (objective.purpose, Maskless(network).purpose) == ("encode", "score")


def batch_of(texts: list[str], rate: float, draw: int) -> Batch:
    """Each text between its special tokens, a share of its tokens masked."""
    words = networks.vocabulary("bert")
    encoded = words.encode(texts)
    ids = torch.cat([torch.as_tensor(part.ids) for part in encoded])
    free = torch.cat([torch.as_tensor(~part.special) for part in encoded])
    layout = Layout.of_lengths(torch.tensor([len(part.ids) for part in encoded]))
    hidden = free & (draws.uniform(0, 79, torch.arange(len(ids)), draw) < rate)
    asked = hidden.nonzero()[:, 0]
    assert words.mask_id is not None
    inputs = ids.masked_fill(hidden, words.mask_id)
    counter = torch.arange(layout.rows) + draw * layout.rows
    share = torch.full((layout.rows,), rate)
    return Batch(ids, inputs, free, layout, asked, torch.ones(len(asked)), share, counter, draw, 0.0)


def distance(one_pass: Any, masked: Any) -> float:
    """Mean over tokens of |unmasked − pll|, each of its network."""
    tokenizer = networks.vocabulary("bert").tokenizer
    apart = []
    for text in TEXTS:
        one = besag.load((one_pass.eval(), tokenizer), progress=False).score(text, "unmasked")
        many = besag.load((masked.eval(), tokenizer), progress=False).score(text, "pll")
        apart.append(np.abs(one.log_probs - many.log_probs))
    return float(np.concatenate(apart).mean())


def train(objective: Any, steps: int, first: int = 0) -> None:
    optimizer = torch.optim.AdamW(objective.parameters(), 3e-3)
    for step in range(first, first + steps):
        optimizer.zero_grad()
        batch = batch_of(TEXTS * 3, 0.2, step)
        (objective(batch).total / batch.weight.sum()).backward()
        optimizer.step()


@pytest.fixture(scope="module")
def trained() -> Any:
    """A network that knows the texts: by pll, not by what it says of a shown token."""
    network = examples.encoder("bert", initializer_range=0.2)
    train(MLM(network), 70, first=1000)
    return network.model


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"one_at_a_time": True}, {"teacher": "frozen", "weight": 0.0}])
def test_one_pass_comes_nearer_to_pll(trained: Any, options: dict[str, Any]) -> None:
    """In 30 steps; as many more of mlm do not bring it there."""
    assert distance(trained, trained) > 0.5
    network, plain = (examples.encoder("bert", model=copy.deepcopy(trained)) for _ in range(2))
    train(Maskless(network, **options), 30)
    train(MLM(plain), 30)
    after = distance(network.model, trained if "teacher" in options else network.model)
    assert after < 0.3 * distance(trained, trained)
    assert after < 0.3 * distance(plain.model, plain.model)


@pytest.mark.parametrize("options", [{}, {"one_at_a_time": True}, {"teacher": "frozen"}])
def test_ragged_and_padded_batches_have_one_loss(options: dict[str, Any]) -> None:
    batch = examples.batch()
    padded, ragged = (Maskless(examples.encoder(ragged=ragged), **options)(batch).total for ragged in (False, True))
    torch.testing.assert_close(padded, ragged, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("wrong", [{"teacher": "other"}, {"weight": -1.0}, {"weight": 0.0}])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    [(option, value)] = wrong.items()
    with pytest.raises(BesagError, match=f"{option}={value!r}"):
        Maskless(examples.encoder(), **wrong)
