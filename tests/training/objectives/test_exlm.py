"""exlm: every path through the states by enumeration, and a network run by hand."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest
import torch
from tests.training.objectives import examples
from tests.training.objectives.rows import alone
from torch import Tensor

from besag.errors import BesagError
from besag.training.network.batch import Batch
from besag.training.objectives.exlm import ExLM, Links, by_paths, expand
from besag.training.objectives.mlm import MLM


def enumerated(emission: Tensor, transition: Tensor, length: int) -> float:
    """p of the first `length` tokens and the end, path by path: (S, m), (S + 1, S + 1) log probabilities."""
    total = 0.0
    for path in combinations(range(len(emission)), length):
        stops = [0, *(state + 1 for state in path)]  # rows of `transition`
        log_prob = sum(float(emission[state, turn]) for turn, state in enumerate(path))
        log_prob += sum(float(transition[stop, state]) for stop, state in zip(stops, path, strict=False))
        total += float(torch.tensor(log_prob + float(transition[stops[-1], -1])).exp())
    return total


def random_links(states: int, rows: int = 1, seed: int = 0, sizes: Tensor | None = None) -> Tensor:
    links = Links(8, 2, torch.Generator().manual_seed(seed))
    for weight in links.parameters():
        weight.data.normal_(std=1.0, generator=torch.Generator().manual_seed(seed))
    given = torch.randn(rows, states, 8, generator=torch.Generator().manual_seed(seed + 1))
    return links(given, torch.full((rows,), states) if sizes is None else sizes).detach()


def test_all_paths_are_summed() -> None:
    generator = torch.Generator().manual_seed(0)
    count = torch.tensor([3, 1, 2])
    transition = random_links(6, 3, sizes=2 * count)
    emission = torch.randn(3, 6, 3, generator=generator) - 1
    for row in range(3):
        emission[row, 2 * count[row] :] = -1e9
    losses, likeliest = by_paths(emission, transition, count)
    for row, length in enumerate(count.tolist()):
        wanted = enumerated(emission[row, : 2 * length], _cut(transition[row], 2 * length), length)
        assert float((-losses[row, :length].sum()).exp()) == pytest.approx(wanted, rel=1e-4)
    assert likeliest[:, 0].tolist() == transition[:, 0, :-1].argmax(1).tolist()


def _cut(transition: Tensor, size: int) -> Tensor:
    return torch.cat([transition[: size + 1, :size], transition[: size + 1, -1:]], 1)


def test_each_token_has_its_loss_given_those_before_it() -> None:
    """p(x_1 … x_i, and more) by enumeration of where a path may stand after i tokens, ended or not."""
    transition = random_links(4)[0]
    emission = torch.randn(4, 2, generator=torch.Generator().manual_seed(5)) - 1
    losses = by_paths(emission[None], transition[None], torch.tensor([2]))[0][0]
    begun = sum(float((transition[0, u] + emission[u, 0]).exp()) for u in range(4))
    assert float((-losses[0]).exp()) == pytest.approx(begun, rel=1e-4)
    assert float((-losses[1]).exp()) == pytest.approx(enumerated(emission, transition, 2) / begun, rel=1e-4)


def test_over_texts_of_all_lengths_it_is_one_distribution() -> None:
    says = torch.randn(4, 3, generator=torch.Generator().manual_seed(2)).log_softmax(-1)  # four states, three tokens
    transition, total = random_links(4, seed=7), 0.0
    for length in range(1, 5):
        for text in product(range(3), repeat=length):
            losses = by_paths(says[None][..., list(text)], transition, torch.tensor([length]))[0]
            total += float((-losses.sum()).exp())
    assert total == pytest.approx(1.0, rel=1e-4)


def test_links_go_to_later_states_of_the_passage_or_to_the_end() -> None:
    chance = random_links(4, 2, sizes=torch.tensor([4, 2])).exp()
    torch.testing.assert_close(chance.sum(-1), torch.ones(2, 5))
    allowed = torch.ones(5, 5).triu().bool()
    allowed[1:, 4], allowed[0, 4] = True, False  # from a state the end, never from the start
    assert torch.equal(chance[0] > 0, allowed)
    assert bool((chance[1, :, 2:4] == 0).all())  # padding


def test_a_hidden_token_is_k_masks_at_its_own_place() -> None:
    batch = examples.batch((5, 4), family="bert")
    hidden, mask = torch.tensor([1, 3, 6]), examples.encoder("bert").mask_id
    longer = expand(batch, hidden, 3, mask)
    ids = batch.inputs.tolist()
    assert longer.ids.tolist() == [
        ids[0],
        *[mask] * 3,
        ids[2],
        *[mask] * 3,
        ids[4],
        ids[5],
        *[mask] * 3,
        ids[7],
        ids[8],
    ]
    assert longer.layout.position.tolist() == [0, 1, 1, 1, 2, 3, 3, 3, 4, 0, 1, 1, 1, 2, 3]
    assert longer.state.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 1, 2, 3, 0, 0]
    assert longer.layout.bounds.tolist() == [0, 9, 15]
    assert longer.first.tolist() == [0, 1, 4, 5, 8, 9, 10, 13, 14]


def wide(**options: Any) -> ExLM:
    made = ExLM(examples.encoder("bert"), seed=3, **options)
    for weight in [*made.links.parameters(), made.vectors]:
        weight.data.add_(0.3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    return made


@torch.no_grad()
def by_hand(made: ExLM, part: Batch) -> float:
    """−log p of one passage: BERT's modules one after the other, links in loops, paths by enumeration."""
    body, hidden = made.encoder.model.bert, sorted({int(place) for place in part.asked[part.weight > 0]})
    ids, place, state = [], [], []
    for number, id in enumerate(part.inputs.tolist()):
        times = made.states if number in hidden else 1
        ids += [made.encoder.mask_id if number in hidden else id] * times
        place += [number] * times
        state += list(range(times)) if number in hidden else [-1]
    whole = body.embeddings(input_ids=torch.tensor([ids]), position_ids=torch.tensor([place]))
    whole = whole + torch.stack([made.vectors[s] if s >= 0 else torch.zeros(32) for s in state])
    for layer in body.encoder.layer:
        whole = layer(whole)
    rows = whole[0][[s >= 0 for s in state]]  # (S, H)
    says = made.encoder.model.cls(rows).log_softmax(-1)
    links, size = made.links, len(rows)
    asks, reads = [links.start, *rows], [*rows, links.end]
    chance = torch.zeros(size + 1, size + 1)
    for here, ask in enumerate(asks):
        gates = links.gate(ask).softmax(-1)
        able = [to for to in range(size + 1) if (here <= to < size) or (to == size and here > 0)]
        for head in range(2):
            query = links.query(ask).view(2, 16)[head]
            scores = torch.stack([query @ links.key(reads[to]).view(2, 16)[head] / 4 for to in able])
            chance[here, able] += gates[head] * scores.softmax(0)
    return -float(torch.tensor(enumerated(says[:, part.ids[hidden]], chance.log(), len(hidden))).log())


def test_the_loss_by_hand() -> None:
    made, batch = wide(states=2), examples.batch(family="bert")
    for row in range(3):
        part = alone(batch, row)
        part = part._replace(weight=(part.weight > 0).float())
        if float(part.weight.sum()):
            assert float(made(part).total.detach()) == pytest.approx(by_hand(made, part), rel=1e-4)
    made.encoder.watched = True
    loss = made(batch)
    assert loss.predicted is not None
    order = batch.asked[batch.weight > 0].sort()
    assert torch.equal(loss.predicted.ids, batch.ids[order[0]])
    weight = batch.weight[batch.weight > 0][order[1]]
    assert float(loss.total.detach()) == pytest.approx(float((loss.predicted.losses * weight).sum()), rel=1e-5)


def test_with_one_state_a_token_there_is_one_path_and_the_rest_is_mlm() -> None:
    """p = Π E_i(x_i) · T(the one path): the loss is that of mlm, and the price of the path."""
    made, batch = wide(states=1), examples.batch((9,), family="bert")
    made.vectors.data.zero_()
    real = batch.weight > 0
    batch = batch._replace(
        asked=batch.asked[real], weight=torch.ones(int(real.sum())),
        inputs=batch.inputs.index_fill(0, batch.asked, made.encoder.mask_id),
    )  # fmt: skip
    states = made.encoder.states(batch.inputs, batch.layout)[batch.asked]
    links = made.links(states[None], torch.tensor([len(states)]))[0]
    price = sum(-float(links[here, here].detach()) for here in range(len(states) + 1))
    wanted = float(MLM(made.encoder)(batch).total.detach()) + price
    assert float(made(batch).total.detach()) == pytest.approx(wanted, rel=1e-4)
    assert price > 0.1


def test_hidden_tokens_depend_on_each_other() -> None:
    """The loss of the second hidden token moves with the first one, which mlm's does not."""
    made, batch = wide(states=3), examples.batch((6,), family="bert")
    made.encoder.watched = True
    batch = batch._replace(asked=torch.tensor([2, 3]), weight=torch.ones(2), inputs=batch.ids)
    later = []
    for token in examples.ordinary("bert")[:4]:
        ids = batch.ids.clone()
        ids[2] = token
        told = made(batch._replace(ids=ids)).predicted
        assert told is not None
        later.append(float(told.losses[1]))
    assert max(later) - min(later) > 1e-3


def test_a_share_of_one_is_mlm_and_the_links_have_a_gradient_of_zero() -> None:
    network, batch = examples.encoder("bert"), examples.batch(family="bert")
    expected = examples.gradient(MLM(network)(batch).total, network)
    made = ExLM(network, mlm_share=1.0)
    found = examples.gradient(made(batch).total, network)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert all(w.grad is not None and not w.grad.any() for w in [*made.links.parameters(), made.vectors])
    assert (made.purpose, ExLM(network).purpose) == ("score", "encode")


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_ragged_and_padded_batches_have_one_gradient_and_every_weight_has_one(family: str) -> None:
    batch, gradients = examples.batch(family=family), []
    for ragged in (False, True):
        # a window is counted in columns: wide enough, it cuts nothing off
        changes = {"local_attention": 64} if family == "modernbert" else {}
        network = examples.encoder(family, ragged=ragged, **changes)
        made = ExLM(network, mlm_share=0.3, states=3)
        gradients.append(examples.gradient(made(batch).total, network))
        for weight in [*made.links.parameters(), made.vectors]:
            assert weight.grad is not None
            assert bool(weight.grad.isfinite().all())
        assert float(made.vectors.grad.abs().max()) > 0  # type: ignore[union-attr]
    assert float(gradients[0].abs().max()) > 1e-3
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-3)


def test_a_family_that_cannot_be_run_layer_by_layer_is_refused() -> None:
    with pytest.raises(BesagError, match="layer by layer"):
        ExLM(examples.encoder("deberta-v2"))


@pytest.mark.parametrize("options", [{"states": 0}, {"states": 10**9}, {"mlm_share": 1.5}])
def test_impossible_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(BesagError, match=r"'exlm'"):
        ExLM(examples.encoder("bert"), **options)
