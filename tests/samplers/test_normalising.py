import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError
from besag.lab.oracles import sequences

WEIGHTS = np.random.default_rng(2).gamma(1.0, size=(3, 3, 3)) + 0.05
SYMBOLS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def lm():
    return besag.load(besag.Table(WEIGHTS, symbols=SYMBOLS))


def energies():
    """−PLL of every sequence, from the definition."""
    joint = WEIGHTS / WEIGHTS.sum()
    rows = [joint / joint.sum(place, keepdims=True) for place in range(3)]
    return -sum(np.log(row) for row in rows)


def test_probabilities_of_all_texts_are_those_of_the_energy(lm):
    law = np.exp(-energies())
    law /= law.sum()
    texts = [" ".join(SYMBOLS[symbol] for symbol in sequence) for sequence in sequences(3, 3)]
    found = lm.normalise(texts, chains=600, levels=5, seed=1)
    error = found[0].log_z.se
    assert 0 < error < 0.05
    for one, exact in zip(found, np.log(law).ravel(), strict=True):
        assert abs(one.log_prob - exact) < 4 * error
        assert one.low < one.log_prob < one.high
    assert len({one.log_z for one in found}) == 1  # one estimate for all of one length


def test_within_a_template_the_rest_is_given(lm):
    law = np.exp(-energies())[0]
    law /= law.sum()
    [found] = lm.normalise(["a b c"], within="a [MASK] [MASK]", chains=600, levels=5)
    assert abs(found.log_prob - np.log(law[1, 2])) < 4 * found.log_z.se


def test_what_is_no_filling_is_told(lm):
    with pytest.raises(BesagError, match="'b b c' is no filling of 'a"):
        lm.normalise(["b b c"], within="a [MASK] [MASK]")
    with pytest.raises(BesagError, match="texts='a b c': give a list of texts"):
        lm.normalise("a b c")


def test_a_text_with_a_mask_has_no_probability(lm):
    with pytest.raises(BesagError, match=r"holds a mask, and has no probability: give it as `within`"):
        lm.normalise(["a [MASK] b"], chains=2, levels=2)


# ---- what was asked before


TEXTS = ["the cat sat on", "the cat [SEP] on", "the cat on sat", "[SEP] cat sat on", "the cat", "the [SEP]"]


@pytest.fixture(scope="module")
def network():
    return besag.load(Transformer(tiny("bert"), vocabulary("bert"), name="tiny"), progress=False)


@pytest.fixture(scope="module")
def alone(network):
    """What each text gets in a call of its own."""
    return {text: network.normalise([text], chains=2, levels=2)[0].log_prob for text in TEXTS}


@given(asked=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4))
@settings(max_examples=8)
def test_the_answer_for_a_text_does_not_depend_on_what_was_asked_before(network, alone, asked):
    """Special tokens that are written in a text stay, so texts of one length may have another log Z."""
    found = network.normalise(asked, chains=2, levels=2)
    assert [one.log_prob for one in found] == pytest.approx([alone[text] for text in asked], abs=1e-4)


def test_texts_that_are_fixed_alike_share_an_estimate(network):
    found = network.normalise(TEXTS[:4], chains=2, levels=2)
    assert found[0].log_z is found[2].log_z
    assert len({id(one.log_z) for one in found}) == 3
