"""Sequential prompting: its law by plain loops, the same for every length; what the model is shown; what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.networks import tiny, vocabulary
from tests.samplers.exact import Hashed, text_canvas

from besag.conditionals.transformer import Transformer
from besag.engine import Engine
from besag.errors import BesagError, TooLong
from besag.lab.oracles import blank, empirical, follows, run, sequences, total_variation
from besag.samplers.kernel import Noise, kernel
from besag.samplers.run import walk

CHAINS = 10_000


def enumerated(law, places, fresh):
    """(V^n,) by the definition: the text so far, and so many masks; the first of them is filled."""
    every = sequences(law.width, places)
    probs = np.ones(len(every))
    for at, sequence in enumerate(every):
        for place, token in enumerate(sequence):
            shown = [*sequence[:place].tolist(), *[law.width] * fresh]
            probs[at] *= np.exp(law.log_probs(shown, place))[token]
    return probs


@pytest.mark.parametrize("fresh", [1, 2, 3])
def test_it_draws_the_next_token_given_the_text_so_far_and_fresh_masks(fresh):
    law = Hashed()
    expected = enumerated(law, 3, fresh)
    assert expected.sum() == pytest.approx(1)
    counts = empirical(kernel("sequential", fresh=fresh), law, blank(law, 3, CHAINS))
    assert follows(counts, expected)
    ordered = empirical(kernel("ordered"), law, blank(law, 3, CHAINS))
    assert not follows(ordered, expected)  # which shows as many masks as are left
    other = enumerated(law, 3, fresh % 3 + 1)
    assert total_variation(expected, other) > 0.05
    assert not follows(counts, other)


def test_how_long_the_text_will_be_changes_nothing_that_is_written_before():
    """The same noise, two lengths: the shorter is the beginning of the longer. So an answer can be cut."""
    law = Hashed(4)
    (short, told), (long, _) = (run(kernel("sequential"), law, blank(law, places, 200)) for places in (2, 5))
    assert torch.equal(short.ids, long.ids[:, :2])
    log_prob = torch.stack([info.more["log_prob"] for info in told]).sum(0)
    by_hand = [
        law.log_probs([law.width] * 4, 0)[a] + law.log_probs([a, *[law.width] * 4], 1)[b] for a, b in short.ids.tolist()
    ]
    torch.testing.assert_close(log_prob.double(), torch.tensor(by_hand, dtype=torch.float64))
    before = [run(kernel("ordered"), law, blank(law, places, 200))[0].ids[:, :2] for places in (2, 5)]
    assert not torch.equal(*before)


def test_a_network_is_shown_the_prompt_the_masks_and_its_closing_token_alone(monkeypatch):
    network = Transformer(tiny("bert"), vocabulary("bert"), name="tiny")
    words, seen = network.vocabulary, []
    plain = network.rows
    monkeypatch.setattr(network, "rows", lambda questions: (seen.append(questions.ids), plain(questions))[1])
    canvas = text_canvas(network, "the cat [MASK] [MASK] on the mat", chains=1)
    *_, (state, _) = walk(Engine(network, progress=False), kernel("sap", fresh=3), canvas, Noise(0, torch.arange(1)))
    begin, close, mask = words.tokenizer.cls_token_id, words.tokenizer.sep_token_id, words.mask_id
    prompt = canvas.ids[0, :3].tolist()
    assert prompt[0] == begin
    assert [ids.tolist() for ids in seen] == [
        [[*prompt, mask, mask, mask, close]],
        [[*prompt, int(state.ids[0, 3]), mask, mask, mask, close]],
    ]
    assert torch.equal(state.ids[0, 5:], canvas.ids[0, 5:])  # what follows is kept, though it was not shown


def test_what_it_refuses():
    network = Transformer(tiny("bert"), vocabulary("bert"), name="tiny")
    assert network.max_length is not None
    canvas = text_canvas(network, "the " * (network.max_length - 4) + "[MASK]", chains=1)
    with pytest.raises(TooLong, match=f"fresh=9 masks after .* and 'tiny' sees {network.max_length}"):
        list(walk(Engine(network, progress=False), kernel("sequential", fresh=9), canvas, Noise(0, torch.arange(1))))
    with pytest.raises(BesagError, match="fresh=0"):
        kernel("sequential", fresh=0)
