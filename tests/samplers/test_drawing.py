"""The draw itself, and answers that are no law, whoever asks for them."""

from __future__ import annotations

import math

import pytest
import torch
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.transformer import Transformer
from besag.diagnostics.compatibility import compatibility
from besag.errors import BesagError
from besag.samplers.drawing import Drawing, sample


@pytest.mark.parametrize("share", [1e-300, 1e-30, 0.5])
def test_the_likeliest_token_is_kept_however_small_the_share(share):
    logits = torch.tensor([[0.0, 3.0, 1.0]])
    law = Drawing(top_p=share).law(logits)
    assert law.exp().tolist() == [[0.0, 1.0, 0.0]]


def test_of_a_row_of_nan_a_token_is_drawn_that_every_network_knows():
    law = torch.tensor([[0.2, 0.8], [math.nan, math.nan]]).log().repeat(1, 300)  # more than one block
    assert sample(law, torch.tensor([0.9, 0.9]))[1] == 0


# ---- verbs on a network that is broken


class Spoilt(Transformer):
    value = math.nan

    def head(self, rows):
        return super().head(rows).index_fill(1, torch.tensor([20]), self.value)


TEXT = "the cat sat on the"
VERBS = {
    "sample": lambda lm: lm.sample("the [MASK] sat [MASK]", steps=2),
    "edit": lambda lm: lm.edit(TEXT, {"cat": "sat"}),
    "invert": lambda lm: lm.invert(TEXT),
    "augment": lambda lm: lm.augment(TEXT),
    "normalise": lambda lm: lm.normalise([TEXT], chains=2, levels=2),
    "normalise raw": lambda lm: lm.normalise([TEXT], chains=2, levels=2, energy="raw"),
    "dependence": lambda lm: lm.dependence(TEXT, candidates=3, max_distance=1),
    "rectangles": lambda lm: lm.rectangles(TEXT, minors=2),
    "compatibility": lambda lm: compatibility(lm.engine, TEXT, [1, 2], candidates=3),
    "solve": lambda lm: lm.solve("the [MASK] sat", [besag.Forbidden("cat")]),
}


@pytest.fixture(scope="module", params=[math.nan, math.inf])
def broken(request):
    lm = besag.load(Spoilt(tiny("bert"), vocabulary("bert"), name="spoilt"), progress=False)
    lm.conditionals.value = request.param
    return lm


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_is_silent_about_an_answer_that_is_no_law(broken, verb):
    with pytest.raises(BesagError, match="'spoilt' answered with NaN"):
        VERBS[verb](broken)
