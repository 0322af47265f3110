"""Laws of masks as the theory takes them, and those of besag.masks by drawing."""

import numpy as np
import pytest

from besag import lab
from besag.errors import BesagError
from besag.lab.learning.masks import checked_masks
from besag.masks import LAWS


def test_uniform_masks_are_all_sets_of_a_size():
    masks = lab.uniform_masks(5, 3)
    assert len(masks) == 10
    assert sum(masks.values()) == pytest.approx(1)
    assert all(len(hidden) == 3 for hidden in masks)
    with pytest.raises(BesagError, match="at most 5"):
        lab.uniform_masks(5, 6)


def test_a_law_that_does_not_look_is_numbers():
    system = lab.ising(lab.chain(4), 0.3)
    drawn = lab.masks_of("uniform", system, rate=0.5, draws=8192)
    assert set(drawn) == set(lab.uniform_masks(4, 2))
    assert np.allclose(list(drawn.values()), 1 / 6, atol=0.02)
    exact = lab.information(system, lab.uniform_masks(4, 2)).inflation()
    assert lab.information(system, drawn).inflation() == pytest.approx(exact, rel=0.02)


def test_spans_hide_neighbours_together():
    drawn = lab.masks_of("span", lab.ising(lab.chain(4), 0.3), rate=0.5)
    together = sum(chance for hidden, chance in drawn.items() if hidden[1] - hidden[0] == 1)
    assert together > 0.7 > 0.5  # of six pairs three are neighbours


def test_a_law_that_looks_is_one_for_every_state():
    system = lab.markov_chain(3, [[0.9, 0.1], [0.3, 0.7]])
    drawn = lab.masks_of("informask", system, rate=0.4)
    assert all(np.shape(chance) == system.shape for chance in drawn.values())
    assert any(np.ptp(chance) > 0.05 for chance in drawn.values())
    assert lab.information(system, drawn).rank == 3


@pytest.mark.parametrize("name", sorted(set(LAWS) - {"linguistic_entities"}))
def test_every_law_of_masks_has_an_information(name):
    system = lab.ising(lab.chain(3), 0.4)
    masks = lab.masks_of(name, system, rate=0.5, draws=256)
    assert sum(np.mean(chances) for _, chances in checked_masks(masks, system.shape)) == pytest.approx(1)
    assert 1 <= lab.information(system, masks).inflation() < 10


def test_a_law_of_given_spans_alone_is_refused():
    with pytest.raises(BesagError, match=r"hides nothing .* it hides given spans"):
        lab.masks_of("linguistic_entities", lab.ising(lab.chain(3), 0.4), rate=0.5, draws=8)


def test_too_many_draws_are_refused():
    with pytest.raises(BesagError, match="draw at most"):
        lab.masks_of("uniform", lab.ising(lab.chain(12)), draws=10**6)
