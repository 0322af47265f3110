"""block_diffusion: who sees whom, that nothing leaks, its two limits, and that it is asked as it was trained."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
import torch
from scipy.stats import chisquare
from tests import networks
from tests.training.objectives import examples
from tests.training.objectives.rows import alone
from torch import Tensor, nn

from besag.conditionals.contract import Questions
from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.objectives import block_diffusion, mdlm
from besag.training.objectives.block_diffusion import BlockDiffusion, answered, blocked, copied, nelbo

FAMILIES = ["besag", "modernbert", "bert", "roberta"]
SMALL, MASK = 9, 8  # ids 0 … 5 are ordinary, 6 begins and ends, 7 pads


def small(family: str = "besag") -> Encoder:
    model = networks.tiny(family, vocab_size=SMALL, num_hidden_layers=3, pad_token_id=7).eval().double()
    return Encoder(model, mask_id=MASK, pad_id=7, special_ids=frozenset({6, 7, 8}), ragged=False)


def test_the_pattern_is_the_table_of_the_docstring() -> None:
    layout = Layout.of_lengths(torch.tensor([7, 3]))
    copies = copied(layout, 3)
    assert len(copies.source) == 10 + 6  # the last block of the first text and the only one of the second: once
    for row, (first, count) in enumerate(((0, 13), (13, 3))):
        for q, k in itertools.product(range(copies.seen.shape[1]), repeat=2):
            if q < count:
                one, two = first + q, first + k
                block_q = int(layout.column[copies.source[one]]) // 3
                expected = k < count
                if expected:
                    block_k = int(layout.column[copies.source[two]]) // 3
                    clean_q, clean_k = bool(copies.clean[one]), bool(copies.clean[two])
                    if clean_q:
                        expected = clean_k and block_k <= block_q
                    else:
                        expected = block_k < block_q if clean_k else block_k == block_q
                assert bool(copies.seen[row, q, k]) == expected, (row, q, k)
    assert torch.equal(copies.source[copies.noised], torch.arange(10))
    assert not copies.clean[copies.noised].any()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_token_reaches_the_blocks_after_it_and_where_it_is_shown_its_own(family: str) -> None:
    network, layout, length = small(family), Layout.of_lengths(torch.tensor([9])), 3
    copies, text = copied(layout, length), torch.tensor([6, 0, 3, 1, 4, 2, 5, 0, 6])
    hidden = torch.tensor([0, 1, 0, 1, 0, 1, 1, 0, 0]).bool()
    asked = hidden.nonzero()[:, 0].tolist()
    with torch.no_grad():
        _, before = answered(network, text, hidden, copies, subs=False)
        for place in range(1, 8):
            other = text.clone()
            other[place] = (text[place] + 1) % 6
            _, after = answered(network, other, hidden, copies, subs=False)
            for index, target in enumerate(asked):
                same = place // length == target // length
                reaches = place // length < target // length or (same and not bool(hidden[place]))
                moved = float((after - before)[index].abs().max())
                assert (moved > 1e-9) == reaches, (place, target)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_block_answers_as_the_network_is_asked_afterwards(family: str) -> None:
    """The link to the sampler: all blocks in one pass say what each says with the true text before it, and no more."""
    network, batch, length = examples.encoder(family), examples.batch((9, 5, 8), family=family), 4
    objective = BlockDiffusion(network, size=length)
    hidden, _ = objective.corrupt(batch.free, batch.layout, batch.draw)
    with torch.no_grad():
        _, logits = answered(network, batch.ids, hidden, copied(batch.layout, length), subs=False)
    lm = Transformer(network.model, networks.vocabulary(family))
    assert lm.blocks is not None
    assert lm.blocks.length == length
    for number, index in enumerate(hidden.nonzero()[:, 0].tolist()):
        row = int(batch.layout.row[index])
        start, stop = batch.layout.bounds[row : row + 2].tolist()
        ids, place = batch.ids[start:stop].clone(), index - start
        own = torch.arange(len(ids)) // length == place // length
        ids[own & hidden[start:stop]] = network.mask_id
        with torch.no_grad():
            found = lm.head(lm.rows(Questions(ids[None], torch.tensor([0]), torch.tensor([place]))))
        torch.testing.assert_close(found[0], logits[number], rtol=1e-4, atol=1e-4)


def test_one_block_for_the_whole_text_is_mdlm() -> None:
    network, batch = examples.encoder(), examples.batch()
    whole, plain = BlockDiffusion(network, size=9), mdlm.MDLM(network)
    hidden, weight = whole.corrupt(batch.free, batch.layout, batch.draw)
    whole.corrupt = plain.corrupt = lambda *_: (hidden, weight)  # type: ignore[method-assign]
    torch.testing.assert_close(whole(batch).total, plain(batch).total, rtol=1e-5, atol=1e-4)
    assert len(copied(batch.layout, 9).source) == len(batch.ids)


def test_blocks_of_one_token_are_the_chain_rule() -> None:
    """exp(−loss) over all 6³ texts of three tokens sums to one, and a text's loss does not hang on noise."""
    network = small()
    texts = torch.tensor(list(itertools.product(range(SMALL - 1), repeat=3)))  # whatever SUBS leaves
    edge = torch.full((len(texts), 1), 6)
    ids = torch.cat([edge, texts, edge], 1).flatten()
    layout = Layout.of_lengths(torch.full((len(texts),), 5))
    free = (layout.column > 0) & (layout.column < 4)
    hidden = free.clone()
    with torch.no_grad():
        losses, _ = answered(network, ids, hidden, copied(layout, 1), subs=True)
    assert float((-losses.view(-1, 3).sum(1)).double().exp().sum()) == pytest.approx(1, abs=1e-5)
    bound = nelbo(network, ids, layout, 1, free=free, samples=2)
    assert bound.error == 0
    assert bound.nats == pytest.approx(float(losses.mean()), rel=1e-6)
    longer = nelbo(network, ids, layout, 2, free=free, samples=2)
    assert longer.error > 0


class Seeing(nn.Module):
    """Answers from a table what stands at a place, given the tokens that are seen, each at the place it is numbered."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table, self.watched, self.width = table, False, table.width + 1
        self.mask_id, self.special_ids = table.width, frozenset({table.width})
        self.model = nn.Module()
        self.model.config = type("Config", (), {})()  # type: ignore[assignment]

    def states(self, ids: Tensor, layout: Layout, seen: Tensor) -> Tensor:
        texts, answers = [], torch.full((len(ids), self.width), 3.0, dtype=torch.float64)
        asked = (ids == self.mask_id).nonzero()[:, 0]
        for index in asked.tolist():
            row, column = int(layout.row[index]), int(layout.column[index])
            text = torch.full((self.table.places,), self.mask_id)
            first = int(layout.bounds[row])
            for key in seen[row, column].nonzero()[:, 0].tolist():
                text[int(layout.position[first + key])] = ids[first + key]
            texts.append(text)
        questions = Questions(torch.stack(texts), torch.arange(len(asked)), layout.position[asked])
        answers[asked, :-1] = self.table.rows(questions)
        return answers

    def logits(self, rows: Tensor) -> Tensor:
        return rows


def every_mask(blocks: Layout) -> list[tuple[Tensor, Tensor, float]]:
    """All ways to draw a count and a subset in each block: what is hidden, with which weight, with which chance."""
    found = []
    lengths = torch.diff(blocks.bounds).tolist()
    ways = [
        [(subset, n / k, 1 / n / len(list(itertools.combinations(range(n), k)))) for k in range(1, n + 1)
         for subset in itertools.combinations(range(n), k)]
        for n in lengths
    ]  # fmt: skip
    for chosen in itertools.product(*ways):
        hidden, weight, chance = torch.zeros(sum(lengths), dtype=torch.bool), torch.zeros(sum(lengths)), 1.0
        for number, (subset, w, p) in enumerate(chosen):
            at = int(blocks.bounds[number]) + torch.tensor(subset)
            hidden[at], weight[at] = True, w
            chance *= p
        found.append((hidden, weight, chance))
    return found


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_on_a_table_the_bound_is_minus_log_p(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mean over all counts and subsets of all blocks, for a text that is no typical one."""
    for probe in ("require_patterns", "require_numbered_places"):
        monkeypatch.setattr(block_diffusion, probe, lambda *_: None)
    table, text = Table.random(3, 5, seed=2), torch.tensor([2, 0, 1, 1, 0])
    network: Any = Seeing(table)
    objective, layout = BlockDiffusion(network, size=length), Layout.of_lengths(torch.tensor([5]))
    batch = Batch(
        text, text, torch.ones(5, dtype=torch.bool), layout, torch.arange(5), torch.ones(5), torch.zeros(1),
        torch.tensor([3]), 0, 0.0,
    )  # fmt: skip
    total = 0.0
    for hidden, weight, chance in every_mask(blocked(layout, length)[0]):
        objective.corrupt = lambda *_, hidden=hidden, weight=weight: (hidden, weight)  # type: ignore[method-assign]
        total += chance * float(objective(batch).total)
    assert total == pytest.approx(-float(table.log_probs[tuple(text.tolist())]), rel=1e-5)


def test_each_block_has_a_count_of_its_own_that_is_uniform() -> None:
    """Blocks of 3, 3 and 1 free tokens of 3,000 texts: counts alone and together, chi-square at p > 0.001."""
    layout = Layout.of_lengths(torch.full((3000,), 9))
    free = (layout.column > 0) & (layout.column < 8)
    objective = BlockDiffusion(examples.encoder(), size=4, seed=5)
    hidden, weight = objective.corrupt(free, layout, torch.arange(3000))
    table, weights = hidden.view(-1, 9), weight.view(-1, 9)
    counts = torch.stack([table[:, :4].sum(1), table[:, 4:8].sum(1), table[:, 8:].sum(1)], 1)
    assert counts[:, 2].max() == 0  # an end alone
    for block, size in ((0, 3), (1, 4)):
        seen = Counter(counts[:, block].tolist())
        assert set(seen) == set(range(1, size + 1))
        assert chisquare(list(seen.values())).pvalue > 0.001
        own = weights[:, 4 * block : 4 * block + 4][table[:, 4 * block : 4 * block + 4]]
        expected = (size / counts[:, block].float())[:, None].expand(-1, 4)[table[:, 4 * block : 4 * block + 4]]
        torch.testing.assert_close(own, expected)
    assert len({(a, b) for a, b, _ in counts.tolist()}) > 4  # a shift of one against the other, but both go round


def test_times_stay_between_floor_and_ceiling() -> None:
    layout = Layout.of_lengths(torch.full((2000,), 6))
    objective = BlockDiffusion(examples.encoder(), size=3, hide="independent", floor=0.3, ceiling=0.8)
    hidden, weight = objective.corrupt(torch.ones(12_000, dtype=torch.bool), layout, torch.arange(2000))
    times = 1 / weight
    assert 0.3 <= float(times.min()) < 0.31
    assert 0.79 < float(times.max()) <= 0.8001
    assert float(times.view(-1, 2, 3).std(2).max()) < 1e-6
    assert float(hidden.float().mean()) == pytest.approx(0.55, abs=0.02)
    assert float((hidden * weight).mean()) == pytest.approx(1, abs=0.04)


@pytest.mark.parametrize("family", ["besag", "bert"])
def test_ragged_padded_and_split_batches_have_one_loss_and_gradient(family: str) -> None:
    batch, gradients = examples.batch(family=family), []
    for ragged in (False, True):
        network = examples.encoder(family, ragged=ragged)
        gradients.append(examples.gradient(BlockDiffusion(network, size=3)(batch).total, network))
    sums = []
    for row in range(3):
        part = alone(batch, row)
        share = part.free.sum() / part.weight.sum() * batch.weight.sum() / batch.free.sum()
        sums.append(BlockDiffusion(network, size=3)(part).total * share)
    gradients.append(examples.gradient(torch.stack(sums).sum(), network))
    assert float(gradients[0].abs().max()) > 1e-3
    for other in gradients[1:]:
        torch.testing.assert_close(gradients[0], other, rtol=1e-3, atol=1e-4)


def test_the_mask_is_never_an_answer_unless_it_may_be() -> None:
    network, batch = examples.encoder(), examples.batch()
    with torch.no_grad():
        kept, free = (BlockDiffusion(network, size=4, subs=subs)(batch).total for subs in (True, False))
    assert float(free) > float(kept)


def test_what_it_is_good_for_is_said_in_its_config() -> None:
    network = examples.encoder()
    objective = BlockDiffusion(network, size=5)
    assert network.model.config.besag_block_length == 5
    assert (objective.purpose, objective.masks, objective.configures) == ("blocks", False, True)


@pytest.mark.parametrize("family", ["esm", "deberta-v2", "mpnet"])
def test_networks_that_cannot_learn_so_are_refused(family: str) -> None:
    with pytest.raises(BesagError, match="the objective 'block_diffusion'"):
        BlockDiffusion(examples.encoder(family))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"size": 0}, "size=0: give how many tokens a block has"),
        ({"floor": 0.9, "ceiling": 0.3}, r"floor=0\.9, ceiling=0\.3: times go from one to the other"),
        ({"ceiling": 1.5}, r"ceiling=1\.5"),
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(BesagError, match=told):
        BlockDiffusion(examples.encoder(), **wrong)
