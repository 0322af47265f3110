"""The oracles themselves: right kernels pass, wrong ones fail, and it is said where."""

import numpy as np
import pytest
from tests.lab.chains.examples import random_law

from besag.errors import BesagError
from besag.lab.chains import blocks, gibbs
from besag.lab.oracles import (
    Incompatible,
    blank,
    check_kernel,
    empirical,
    follows,
    gibbs_matrix,
    number,
    p_value,
    sequences,
    start_from,
    total_variation,
)
from besag.samplers import kernel

LAW = random_law((2, 2), 1)


def test_sequences_are_numbered_as_a_table_is():
    every = sequences(3, 2)
    assert number(every, 3).tolist() == list(range(9))


def test_a_right_kernel_passes_and_a_wrong_one_fails():
    right = check_kernel(kernel("gibbs"), LAW, gibbs(LAW))
    assert right.holds
    assert len(right.p_values) == 4
    wrong = check_kernel(kernel("gibbs"), LAW, blocks(LAW, 2))
    assert not wrong.holds
    assert wrong.worst in range(4)
    assert wrong.distance > right.distance


def test_conditionals_of_no_joint_are_checked_by_a_matrix():
    law = Incompatible(2, 3)
    matrix = sum(gibbs_matrix(law, 3, place) for place in range(3)) / 3
    assert check_kernel(kernel("gibbs"), law, matrix).holds
    assert not check_kernel(kernel("gibbs", temperature=2.0), law, matrix).holds


def test_chi_square_lets_chance_pass_and_nothing_impossible():
    law = np.array([0.5, 0.3, 0.2, 0.0])
    counts = np.random.default_rng(0).multinomial(1000, law)
    assert follows(counts, law)
    assert not follows(counts, np.array([0.4, 0.3, 0.3, 0.0]))
    assert p_value(counts + np.array([0, 0, 0, 1]), law) == 0


def test_starts_are_draws_from_the_law():
    drawn = start_from(LAW, 4000)
    assert follows(np.bincount(number(drawn, 2), minlength=4), LAW)
    assert total_variation(LAW, LAW) == 0


def test_a_decoder_is_run_to_its_end():
    law = Incompatible(2, 2)
    assert empirical(kernel("ordered"), law, blank(law, 2, 50)).sum() == 50


def test_what_does_not_fit_is_refused():
    with pytest.raises(BesagError, match=r"shape \(2, 2\) is not one of 4 sequences"):
        check_kernel(kernel("gibbs"), LAW, np.eye(2))
    with pytest.raises(BesagError, match="starts"):
        check_kernel(kernel("gibbs"), LAW, gibbs(LAW), starts=[9])
