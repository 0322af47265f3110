"""What wraps conditionals is as they are: their facts, their rows, what only they have; it can be copied."""

from __future__ import annotations

import copy

import torch
from tests.networks import tiny, vocabulary

from besag.conditionals.contract import Questions
from besag.conditionals.transformer import Transformer
from besag.conditionals.wrapping import Wrapping


def test_all_but_the_name_is_that_of_what_is_wrapped():
    inner = Transformer(tiny("bert"), vocabulary("bert"))
    outer = copy.copy(Wrapping(inner, "another"))
    assert (outer.name, outer.inner) == ("another", inner)
    for fact in ("vocabulary", "sees", "width", "max_length", "device", "dtype", "pads", "model", "mask_id"):
        assert getattr(outer, fact, None) == getattr(inner, fact, None)
    questions = Questions(ids=torch.tensor([[5, 6, 7]]), row=torch.tensor([0]), place=torch.tensor([1]))
    with torch.no_grad():
        torch.testing.assert_close(outer.rows(questions), inner.rows(questions), rtol=0, atol=0)
