"""Joint laws of pairs against brute force on tables, and against the constructions of `besag.joints`."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import networks
from tests.laws import Counting

from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.engine import Engine
from besag.errors import BesagError
from besag.joints import construction
from besag.joints.unaries import Unaries
from besag.lab.oracles import Incompatible, conditional, follows
from besag.noise import uniform
from besag.samplers.drawing import Drawing
from besag.samplers.kernels.pair_law import PairLaws, pair_laws


def ask(law, sequence, first, second, **options):
    engine = Engine(law, progress=False)
    ids = torch.as_tensor(np.array(sequence))[None]
    found = pair_laws(engine, ids, torch.tensor([0]), torch.tensor([first]), torch.tensor([second]), **options)
    engine.check()
    return found


def square(laws: PairLaws, width: int) -> np.ndarray:
    """(V, V) the law of the first pair over all tokens."""
    table = np.zeros((width, width))
    for x, token in enumerate(laws.first[0].tolist()):
        for y, other in enumerate(laws.second[0].tolist()):
            table[token, other] += laws.log_q[0, x, y].exp().item()
    return table


def conditionals(law, sequence, first, second):
    """A[x, y], B[x, y], p(x), p(y) with both hidden: asked of the law one by one."""
    sequence, width = np.array(sequence), law.width
    a, b = np.zeros((width, width)), np.zeros((width, width))
    for token in range(width):
        shown = sequence.copy()
        shown[first], shown[second] = width, token
        a[:, token] = conditional(law, shown, [first], first)
        shown[first], shown[second] = token, width
        b[token] = conditional(law, shown, [second], second)
    both = [first, second]
    return a, b, conditional(law, sequence, both, first), conditional(law, sequence, both, second)


def built(a, b, p_a, p_b):
    """(m, k) as `besag.joints` defines it, whose files know nothing of candidates, copies or many pairs."""
    unaries = Unaries.of(*map(torch.from_numpy, (a, b, p_a, p_b)))
    return construction("ag", tolerance=1e-13, limit=5000).build(unaries).law.cells(unaries).exp().numpy()


@pytest.mark.parametrize("candidates", [3, 50])
def test_with_all_tokens_a_true_joint_is_found(candidates):
    law = Table.random(3, 4, seed=1)
    joint = law.log_probs.exp().numpy()
    shown = joint[:, 2, :, 1] / joint[:, 2, :, 1].sum()  # x_0 and x_2 given x_1 = 2 and x_3 = 1
    found = ask(law, [0, 2, 1, 1], 0, 2, candidates=candidates)
    np.testing.assert_allclose(square(found, 3), shown, atol=1e-12)
    turned = ask(law, [0, 2, 1, 1], 2, 0, candidates=candidates)
    np.testing.assert_allclose(square(turned, 3), shown.T, atol=1e-12)
    rest = joint[:, 2].sum(2) / joint[:, 2].sum()  # a third place is hidden and stays so
    np.testing.assert_allclose(square(ask(law, [0, 2, 1, 3], 0, 2), 3), rest, atol=1e-12)
    assert found.lost.item() == pytest.approx(0, abs=1e-12)
    assert found.log_q.dtype == torch.float64


def test_fewer_candidates_are_the_likeliest_and_the_law_is_restricted_to_them():
    law = Table.random(5, 3, seed=2)
    joint = law.log_probs.exp().numpy()[:, 3, :]
    joint = joint / joint.sum()
    found = ask(law, [0, 3, 0], 0, 2, candidates=3)
    likeliest = [np.argsort(-joint.sum(1 - axis))[:3] for axis in (0, 1)]
    assert found.first[0].tolist() == likeliest[0].tolist()
    assert found.second[0].tolist() == likeliest[1].tolist()
    inside = joint[np.ix_(*likeliest)]
    np.testing.assert_allclose(found.log_q[0].exp(), inside / inside.sum(), atol=1e-12)
    np.testing.assert_allclose(found.log_order[0].exp(), inside, atol=1e-12)  # not renormalised
    held = [joint.sum(1 - axis)[likeliest[axis]].sum() for axis in (0, 1)]
    assert found.lost.item() == pytest.approx(1 - np.mean(held))
    assert found.passes == 7


@given(st.integers(2, 5), st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_incompatible_answers_have_the_joint_of_the_construction(width, seed):
    law = Incompatible(width, 3, seed)
    tables = conditionals(law, [0, 1, 1], 0, 2)
    found = square(ask(law, [0, 1, 1], 0, 2), width)
    np.testing.assert_allclose(found, built(*tables), atol=1e-9)
    assert found.sum() == pytest.approx(1, abs=1e-12)


@given(st.integers(0, 1000), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=10, deadline=None)
def test_lines_that_no_token_fills_change_nothing(seed, m, k):
    """Places with fewer allowed tokens than candidates hold copies; the joint is that of the smaller tables."""
    law, generator = Incompatible(5, 3, seed), np.random.default_rng(seed)
    tokens = [np.sort(generator.choice(5, size, replace=False)) for size in (m, k)]
    allowed = torch.zeros(3, 5, dtype=torch.bool)
    allowed[0, tokens[0]] = True
    allowed[2, tokens[1]] = True
    allowed[1] = True  # so that there are five lines
    found = ask(law, [0, 1, 1], 0, 2, allowed=allowed)
    a, b, p_a, p_b = conditionals(law, [0, 1, 1], 0, 2)
    box = np.ix_(*tokens)
    a, b = a[box] / a[box].sum(0), b[box] / b[box].sum(1, keepdims=True)
    p_a, p_b = (p[part] / p[part].sum() for p, part in zip((p_a, p_b), tokens, strict=True))
    np.testing.assert_allclose(square(found, 5)[box], built(a, b, p_a, p_b), atol=1e-9)
    assert found.log_q.shape == (1, 5, 5)
    assert found.lost.item() == pytest.approx(0, abs=1e-9)
    drawn = found.draw(torch.tensor([0.999999]))
    assert [int(part) for part in drawn] == [found.first[0, m - 1], found.second[0, k - 1]]


def test_zeros_of_an_exact_law():
    joint = np.diag([0.3, 0.5, 0.2, 0.0])  # parts that no conditional connects: only the two-mask rows weigh them
    np.testing.assert_allclose(square(ask(Table(joint), [0, 0], 0, 1), 4), joint, atol=1e-9)
    joint = np.zeros((5, 5))
    joint[[0, 0, 1, 1, 2], range(5)] = 0.3, 0.25, 0.2, 0.2, 0.05
    found = ask(Table(joint), [0, 0], 0, 1, candidates=2)
    assert (sorted(found.first[0]), sorted(found.second[0])) == ([0, 1], [0, 1])  # and token 1 goes with 2 or 3 alone
    inside = joint * (np.arange(5) < 2)
    np.testing.assert_allclose(square(found, 5), inside / inside.sum(), atol=1e-9)
    with pytest.raises(BesagError, match="the 1 likeliest tokens of place 0 and of place 1 hold no possible pair"):
        ask(Table([[0.0, 0.3, 0.3], [0.2, 0.0, 0.0], [0.2, 0.0, 0.0]]), [0, 1], 0, 1, candidates=1)


def test_temperature_shapes_all_answers_and_truncation_the_candidates():
    law = Incompatible(4, 3, 7)
    a, b, p_a, p_b = (table**0.5 for table in conditionals(law, [0, 1, 1], 0, 2))
    a, b, p_a, p_b = a / a.sum(0), b / b.sum(1, keepdims=True), p_a / p_a.sum(), p_b / p_b.sum()
    hot = ask(law, [0, 1, 1], 0, 2, drawing=Drawing(temperature=2.0))
    np.testing.assert_allclose(square(hot, 4), built(a, b, p_a, p_b), atol=1e-9)
    cut = ask(law, [0, 1, 1], 0, 2, drawing=Drawing(temperature=2.0, top_k=2))
    assert cut.log_q.isfinite().sum() == 4
    assert cut.lost.item() == pytest.approx(0)  # of what may be drawn with top_k
    tokens = [np.argsort(-p)[:2] for p in (p_a, p_b)]
    box = np.ix_(*tokens)
    inside = built(a[box] / a[box].sum(0), b[box] / b[box].sum(1, keepdims=True), p_a[tokens[0]], p_b[tokens[1]])
    np.testing.assert_allclose(square(cut, 4)[box], inside, atol=1e-9)
    # log_order is what drawing one place after the other does: there, every row is cut
    cut_a, cut_b = top_two(a.T).T, top_two(b)
    order = (top_two(p_a[None]).T * cut_b + top_two(p_b[None]) * cut_a) / 2
    kept = np.ix_(cut.first[0, :2], cut.second[0, :2])
    np.testing.assert_allclose(cut.log_order[0, :2, :2].exp(), order[kept], atol=1e-9)
    assert (cut.log_order[0].exp() > 0).sum() <= 4


def top_two(rows: np.ndarray) -> np.ndarray:
    """Each row of probabilities, cut to its two likeliest."""
    kept = np.where(rows >= np.sort(rows, 1)[:, [-2]], rows, 0)
    return kept / kept.sum(1, keepdims=True)


def test_mutual_information():
    law = Table.random(3, 3, seed=3)
    joint = law.log_probs.exp().numpy()[:, 1]
    joint = joint / joint.sum()
    expected = (joint * np.log(joint / np.outer(joint.sum(1), joint.sum(0)))).sum()
    assert ask(law, [0, 1, 0], 0, 2).mutual_information().item() == pytest.approx(expected, abs=1e-12)
    product = Table(np.einsum("i,j->ij", [0.2, 0.8], [0.5, 0.5]))
    assert ask(product, [0, 0], 0, 1).mutual_information().item() == pytest.approx(0, abs=1e-12)
    assert ask(Table(np.eye(4)), [0, 0], 0, 1).mutual_information().item() == pytest.approx(np.log(4), abs=1e-12)


def test_draws_follow_the_law():
    law, pairs = Incompatible(3, 3, 4), 20_000
    ids = torch.tensor([[0, 1, 2], [2, 2, 0]])
    row = torch.arange(pairs) % 2
    first, second = torch.where(row == 0, 0, 2), torch.where(row == 0, 1, 0)  # two laws, told apart by their rows
    laws = pair_laws(Engine(law, progress=False), ids, row, first, second)
    x, y = laws.draw(torch.from_numpy(uniform(0, 1, np.arange(pairs))))
    for number, sequence, places in ((0, [0, 1, 2], (0, 1)), (1, [2, 2, 0], (2, 0))):
        counts = np.bincount((x * 3 + y)[row == number].numpy(), minlength=9)
        expected = built(*conditionals(law, sequence, *places))
        assert follows(counts, expected)
        assert not follows(counts, np.outer(expected.sum(1), expected.sum(0)))


def test_cells_and_who_is_no_candidate():
    law = Table.random(5, 2, seed=6)
    found = ask(law, [0, 0], 0, 1, candidates=2, allowed=torch.tensor([True, True, True, True, False]))
    for x, token in enumerate(found.first[0]):
        for y, other in enumerate(found.second[0]):
            assert found.cell(token[None], other[None]).item() == 2 * x + y
    assert found.cell(torch.tensor([4]), found.second[:, 0]).item() == -1
    assert found.cell(found.first[:, 0], torch.tensor([5])).item() == -1


def test_every_pass_is_counted_and_the_old_tokens_are_never_seen():
    counting = Counting(Table.random(3, 3, seed=1))
    found = ask(counting, [0, 1, 2], 0, 2, candidates=2)
    assert found.passes == len(counting.sequences) == 5
    assert sum(sequence == (3, 1, 3) for sequence in counting.sequences) == 1
    again = ask(counting, [1, 1, 3], 0, 2, candidates=2)
    assert torch.equal(found.log_q, again.log_q)


def test_no_pairs_and_few_tokens():
    none = torch.tensor([], dtype=torch.long)
    laws = pair_laws(Engine(Table.random(3, 2), progress=False), torch.tensor([[0, 1]]), none, none, none)
    assert laws.log_q.shape == (0, 3, 3)
    assert laws.mutual_information().shape == laws.lost.shape == (0,)
    one = ask(Table.random(3, 2), [0, 0], 0, 1, allowed=torch.tensor([False, True, False]))
    assert (one.first.item(), one.second.item(), one.log_q.item()) == (1, 1, 0.0)


def test_a_network_answers_for_many_pairs_as_for_each():
    words = networks.vocabulary("bert")
    law = Transformer(networks.tiny("bert"), words)
    mask, (low, high) = words.mask_id, (10, 40)
    ids = torch.from_numpy(np.random.default_rng(0).integers(low, high, (3, 7)))
    ids[1, 4] = mask
    row, first, second = torch.tensor([0, 0, 1, 2]), torch.tensor([1, 5, 2, 3]), torch.tensor([2, 1, 3, 6])
    laws = pair_laws(Engine(law, progress=False), ids, row, first, second, candidates=6)
    assert laws.log_q.dtype == torch.float64
    torch.testing.assert_close(laws.log_q.exp().sum((1, 2)), torch.ones(4).double())
    assert ((laws.lost > 0) & (laws.lost < 1)).all()
    for n in range(4):
        alone = pair_laws(
            Engine(law, progress=False, batch_tokens=7), ids[row[n]][None], torch.tensor([0]), first[n : n + 1],
            second[n : n + 1], candidates=6,
        )  # fmt: skip
        assert torch.equal(alone.first[0], laws.first[n])
        torch.testing.assert_close(alone.log_q[0], laws.log_q[n], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"candidates": 0}, "candidates=0: a place needs at least 1 token"),
        ({"second": 0}, "a pair has two places; here one is paired with itself: 0"),
    ],
)
def test_bad_input(options, told):
    with pytest.raises(BesagError, match=told):
        ask(Table.random(3, 2), [0, 0], **{"first": 0, "second": 1, **options})
