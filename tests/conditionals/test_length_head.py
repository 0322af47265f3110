"""p(n | s) is a law over 1 … N, padding is no part of a source, and a head that is missing or damaged is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from besag.conditionals.length_head import FILE, LengthHead
from besag.errors import BesagError


def head() -> LengthHead:
    torch.manual_seed(0)
    made = LengthHead(4, 9)
    torch.nn.init.normal_(made.linear.weight)
    return made


def test_a_law_of_the_mean_state_by_hand() -> None:
    memory, own = torch.randn(2, 5, 4), head()
    found = own(memory)
    by_hand = (memory.mean(1) @ own.linear.weight.T + own.linear.bias).softmax(-1).log()
    torch.testing.assert_close(found, by_hand)
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(2))


def test_padding_is_no_part_of_a_source() -> None:
    memory, shown = torch.randn(1, 5, 4), torch.tensor([[True, True, True, False, False]])
    torch.testing.assert_close(head()(memory, shown), head()(memory[:, :3]))


def test_a_new_head_knows_nothing() -> None:
    torch.testing.assert_close(LengthHead(4, 9)(torch.randn(1, 2, 4)).exp(), torch.full((1, 9), 1 / 9))


def test_saved_and_loaded(tmp_path: Path) -> None:
    head().save(tmp_path)
    found, memory = LengthHead.load(tmp_path, "mine"), torch.randn(1, 3, 4)
    torch.testing.assert_close(found(memory), head()(memory))


def test_what_is_missing_or_damaged_is_told(tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        with pytest.raises(BesagError, match="'mine' has no length head"):
            LengthHead.load(folder, "'mine'")
    (tmp_path / FILE).write_bytes(b"nothing")
    with pytest.raises(BesagError, match="cannot be read"):
        LengthHead.load(tmp_path, "mine")
    for wrong in ({"weight": torch.zeros(3, 4)}, {"weight": torch.zeros(3, 4), "bias": torch.zeros(2)}):
        save_file(wrong, tmp_path / FILE)
        with pytest.raises(BesagError, match="cannot be read"):
            LengthHead.load(tmp_path, "mine")
