"""What is shown, hidden and asked: groups before, behind, and a share of one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.training.objectives import examples

from besag.errors import BesagError
from besag.training.network.batch import Batch, Layout
from besag.training.objectives.group_mask import GroupMask


def texts(rows: int, length: int) -> Batch:
    """Each between two special tokens."""
    layout = Layout.of_lengths(torch.full((rows,), length + 2))
    ids = torch.tensor(examples.ordinary()[:7])[torch.arange(rows * (length + 2)) % 7]
    free = (torch.arange(len(ids)) % (length + 2)) % (length + 1) != 0
    nothing = torch.zeros(1, dtype=torch.int64)
    return Batch(ids, ids, free, layout, nothing, torch.ones(1), torch.ones(rows), torch.arange(rows), 0, 0.0)


def test_groups_before_are_shown_and_groups_behind_are_hidden() -> None:
    made, batch = GroupMask(examples.encoder(), groups=3), texts(3000, 7)
    hidden, asked = (part.view(-1, 9)[:, 1:-1] for part in made.masked(batch))
    assert not made.masked(batch)[0].view(-1, 9)[:, [0, -1]].any()
    group = torch.arange(7) % 3
    now = torch.stack([group[row][0] for row in asked])  # (R,) of all that is asked in a text
    for number in range(3):
        mine = now == number
        assert abs(int(mine.sum()) - 1000) < 150
        assert not asked[mine][:, group != number].any()
        assert not hidden[mine][:, group < number].any()
        assert hidden[mine][:, group > number].all()
        assert (asked == hidden)[mine][:, group == number].all()
    of_first = asked[now == 0][:, group == 0].sum(1).double()  # of three: ⌈3 cos(πu/2)⌉
    wanted = np.ceil(3 * np.cos(np.pi / 2 * (np.arange(10_000) + 0.5) / 10_000)).mean()
    assert float(of_first.mean()) == pytest.approx(wanted, abs=0.08)
    assert set(of_first.tolist()) == {1, 2, 3}


def test_a_text_of_fewer_tokens_than_groups_is_asked_about() -> None:
    _, asked = GroupMask(examples.encoder(), groups=9).masked(texts(50, 2))
    assert (asked.view(-1, 4).sum(1) == 1).all()


def test_the_loss_by_hand() -> None:
    encoder, batch = examples.encoder(), examples.batch()
    made = GroupMask(encoder, groups=2)
    hidden, asked = made.masked(batch)
    with torch.no_grad():
        shown = batch.ids.masked_fill(hidden, encoder.mask_id)
        scores = encoder.logits(encoder.states(shown, batch.layout)).float().log_softmax(-1)
        loss = made(batch)
    mean = -scores[asked, batch.ids[asked]].mean()
    torch.testing.assert_close(loss.total, mean * batch.weight.sum(), rtol=1e-4, atol=1e-4)
    with pytest.raises(BesagError, match="groups of the objective 'group_mask'"):
        GroupMask(encoder, groups=0)
