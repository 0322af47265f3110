import numpy as np
import pytest
from tests.samplers.exact import sequences

import besag
from besag.errors import BesagError

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
    with pytest.raises(BesagError, match="expected a list of texts"):
        lm.normalise("a b c")


def test_a_text_with_a_mask_has_no_probability(lm):
    with pytest.raises(BesagError, match=r"holds a mask, and has no probability: give it as `within`"):
        lm.normalise(["a [MASK] b"], chains=2, levels=2)
