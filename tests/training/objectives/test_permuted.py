"""permuted: who sees whom, that nothing leaks, that the chain is a probability, and that its first link is mlm."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
import torch
from scipy.stats import chisquare
from tests import networks
from tests.training.objectives import examples
from tests.training.objectives.rows import alone
from torch import Tensor

from besag.errors import BesagError
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.objectives.mlm import MLM
from besag.training.objectives.permuted import BLANK, CONTENT, QUERY, SHOWN, Permuted, unroll, who_sees_whom

FAMILIES = ["modernbert", "bert", "roberta", "electra", "besag"]
SMALL, MASK = 9, 8  # ids 0 … 5 are ordinary, 6 begins and ends, 7 pads


def small(family: str = "modernbert", layers: int = 3, ragged: bool = False) -> Encoder:
    model = networks.tiny(family, vocab_size=SMALL, num_hidden_layers=layers, pad_token_id=7).eval().double()
    return Encoder(model, mask_id=MASK, pad_id=7, special_ids=frozenset({6, 7, 8}), ragged=ragged)


def passages(texts: Tensor, hidden: list[int], draw: int = 4) -> Batch:
    """texts (R, n) between two special tokens, the same places hidden in each, all with one draw."""
    count, length = len(texts), texts.shape[1] + 2
    edge = torch.full((count, 1), 6)
    ids = torch.cat([edge, texts, edge], 1).flatten()
    layout = Layout.of_lengths(torch.full((count,), length))
    asked = (torch.arange(count)[:, None] * length + torch.tensor(hidden) + 1).flatten()
    inputs = ids.clone()
    inputs[asked] = MASK
    draws = torch.full((count,), draw)
    return Batch(ids, inputs, ids != 6, layout, asked, torch.ones(len(asked)), torch.ones(count), draws, 0, 0.0)


def answers(objective: Permuted, batch: Batch) -> Tensor:  # (M, V)
    """What each query says, in the order of batch.asked."""
    unrolled = unroll(batch, batch.asked, objective.order(batch, batch.asked), objective.encoder.mask_id)
    states = objective.encoder.states(unrolled.ids, unrolled.layout, seen=unrolled.seen)
    return objective.encoder.logits(states[unrolled.queries]).log_softmax(-1)


def test_the_pattern_is_the_table_of_the_docstring() -> None:
    part = torch.tensor([SHOWN, SHOWN, BLANK, BLANK, BLANK, CONTENT, CONTENT, CONTENT, QUERY, QUERY, QUERY, -1])
    turn = torch.tensor([-1, -1, 1, 0, 2, 1, 0, 2, 1, 0, 2, -1])
    rules = {
        SHOWN: {SHOWN: lambda i, j: True, BLANK: lambda i, j: True},
        BLANK: {SHOWN: lambda i, j: True, BLANK: lambda i, j: True},
        CONTENT: {SHOWN: lambda i, j: True, BLANK: lambda i, j: j > i, CONTENT: lambda i, j: j <= i},
        QUERY: {
            SHOWN: lambda i, j: True, BLANK: lambda i, j: j > i, CONTENT: lambda i, j: j < i, QUERY: lambda i, j: j == i
        },
    }  # fmt: skip
    seen = who_sees_whom(part[None], turn[None])[0]
    for (q, reader), (k, read) in itertools.product(enumerate(part.tolist()), repeat=2):
        if reader >= 0:
            rule = rules[reader].get(read, lambda i, j: False)
            assert bool(seen[q, k]) == rule(int(turn[q]), int(turn[k])), (q, k)


def test_every_reader_knows_of_every_place_once() -> None:
    batch = examples.batch((7, 5, 9))
    asked = batch.asked[:-1]
    unrolled = unroll(batch, asked, Permuted(examples.encoder()).order(batch, asked), 1)
    assert len(unrolled.ids) == len(batch.ids) + 2 * len(asked)
    for row, length in enumerate((7, 5, 9)):
        own = unrolled.layout.row == row
        positions = unrolled.layout.position[own]
        for line in unrolled.seen[row][: len(positions)]:
            assert sorted(positions[line[: len(positions)]].tolist()) == list(range(length))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_hidden_token_changes_later_answers_and_no_others(family: str) -> None:
    objective, hidden = Permuted(small(family)), [0, 2, 3, 6]
    text = torch.tensor([0, 3, 1, 4, 2, 5, 0, 1])
    batch = passages(text[None], hidden)
    rank = objective.order(batch, batch.asked).tolist()
    assert rank != [0, 1, 2, 3]
    with torch.no_grad():
        before = answers(objective, batch)
        for place in range(len(text)):
            for token in range(6):
                other = text.clone()
                other[place] = token
                moved = (answers(objective, passages(other[None], hidden)) - before).abs().amax(-1)
                for asked, turn in enumerate(rank):
                    reaches = token != text[place] and (place not in hidden or rank[hidden.index(place)] < turn)
                    assert (float(moved[asked]) > 1e-6) == reaches, (place, token, turn)
                    assert float(moved[asked]) == 0.0 or reaches


def test_the_chain_is_a_probability_over_all_fillings() -> None:
    """Σ exp(−loss) over all V³ fillings of three hidden places is 1: it would not be if one token saw itself."""
    objective, hidden = Permuted(small()), [1, 2, 4]
    fillings = torch.tensor(list(itertools.product(range(SMALL), repeat=3)))  # (V³, 3)
    texts = torch.tensor([0, 3, 1, 4, 2, 5]).repeat(len(fillings), 1)
    texts[:, hidden] = fillings
    batch = passages(texts, hidden)
    batch = batch._replace(free=torch.ones_like(batch.free))
    with torch.no_grad():
        picked = answers(objective, batch).gather(1, batch.ids[batch.asked][:, None])[:, 0].view(-1, 3)
    total = picked.sum(1).exp()
    assert float(total.sum()) == pytest.approx(1.0, abs=1e-9)
    assert float(total.max() / total.min()) > 10
    part = passages(texts[100:101], hidden)
    assert float(objective(part).total) == pytest.approx(-float(total[100].log()), rel=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_answer_is_that_of_mlm(family: str) -> None:
    network, batch = examples.encoder(family), examples.batch(family=family)
    network.watched = True
    objective = Permuted(network)
    real = batch.weight > 0
    first = objective.order(batch, batch.asked[real]) == 0
    permuted, plain = objective(batch), MLM(network)(batch._replace(inputs=all_masked(batch, network.mask_id)))
    assert permuted.predicted is not None
    assert plain.predicted is not None
    found, expected = permuted.predicted.losses[real], plain.predicted.losses[real]
    torch.testing.assert_close(found[first], expected[first], rtol=1e-4, atol=1e-4)
    assert int(first.sum()) == 3
    assert float((found[~first] - expected[~first]).abs().min()) > 1e-4
    torch.testing.assert_close(permuted.logs["first"], expected[first].mean(), rtol=1e-4, atol=1e-4)
    assert torch.equal(permuted.predicted.ids[real], plain.predicted.ids[real])


def all_masked(batch: Batch, mask_id: int) -> Tensor:
    return batch.inputs.index_put((batch.asked,), torch.tensor(mask_id))


def test_one_hidden_token_a_passage_is_mlm() -> None:
    network = examples.encoder()
    batch = examples.batch((7, 4, 9))
    asked = torch.tensor([2, 9, 15])
    batch = batch._replace(asked=asked, weight=torch.tensor([1.0, 2.0, 0.5]), inputs=batch.ids)
    batch = batch._replace(inputs=all_masked(batch, network.mask_id))
    expected = examples.gradient(MLM(network)(batch).total, network)
    found = examples.gradient(Permuted(network)(batch).total, network)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_what_is_hidden_and_not_asked_stays_hidden() -> None:
    objective = Permuted(small())
    text = torch.tensor([0, 3, 1, 4, 2, 5])
    batch = passages(text[None], [1, 2, 4])
    part = batch._replace(asked=batch.asked[:2], weight=torch.ones(2))  # the third is a mask for all
    other = part._replace(ids=part.ids.index_put((batch.asked[2:],), torch.tensor(0)))
    with torch.no_grad():
        assert torch.equal(answers(objective, part), answers(objective, other))


@pytest.mark.parametrize("family", ["modernbert", "bert"])
def test_ragged_padded_and_split_batches_have_one_loss_and_gradient(family: str) -> None:
    batch, gradients = examples.batch(family=family), []
    for ragged in (False, True):
        network = examples.encoder(family, ragged=ragged)
        gradients.append(examples.gradient(Permuted(network)(batch).total, network))
    parts = torch.stack([Permuted(network)(alone(batch, row)).total for row in range(3)]).sum()
    gradients.append(examples.gradient(parts, network))
    assert float(gradients[0].abs().max()) > 1e-3
    for other in gradients[1:]:
        torch.testing.assert_close(gradients[0], other, rtol=1e-3, atol=1e-4)
    assert [name for name, weight in network.model.named_parameters() if weight.grad is None] == []


def test_every_order_comes_as_often() -> None:
    """24 orders, 4,800 passages: chi-square at p > 0.001. Another seed, other orders; the same seed, the same."""
    batch = passages(torch.zeros(4800, 4, dtype=torch.long), [0, 1, 2, 3])._replace(draw=torch.arange(4800))
    network = small(layers=1)
    ranks = [Permuted(network, seed=seed).order(batch, batch.asked).view(-1, 4) for seed in (0, 0, 1)]
    assert torch.equal(ranks[0], ranks[1])
    assert 0.02 < float((ranks[0] == ranks[2]).all(1).float().mean()) < 0.07
    seen = Counter(map(tuple, ranks[0].tolist()))
    assert len(seen) == 24
    assert all(sorted(order) == [0, 1, 2, 3] for order in seen)
    assert chisquare(list(seen.values())).pvalue > 0.001


def test_a_batch_with_nothing_asked_costs_nothing() -> None:
    batch = examples.batch()
    batch = batch._replace(weight=torch.zeros_like(batch.weight), inputs=batch.ids)
    assert float(Permuted(examples.encoder())(batch).total) == 0.0


@pytest.mark.parametrize("family", ["deberta-v2", "mpnet"])
def test_networks_that_count_columns_are_refused(family: str) -> None:
    with pytest.raises(BesagError, match=r"'permuted'.* by their columns"):
        Permuted(examples.encoder(family))
