"""Conditionals at a temperature: a table by hand, and what is no temperature."""

from __future__ import annotations

import numpy as np
import pytest

import besag
from besag.conditionals.table import Table
from besag.conditionals.temper import Tempered
from besag.errors import BesagError

WEIGHTS = np.array([[0.4, 0.1], [0.2, 0.3]])


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_every_conditional_is_sharpened_or_flattened(temperature):
    lm = besag.load(Tempered(Table(WEIGHTS, ["a", "b"]), temperature))
    power = WEIGHTS ** (1 / temperature)
    expected = np.log(power[0, 1] / power[:, 1].sum()) + np.log(power[0, 1] / power[0].sum())
    assert lm.score("a b", "pll").total == pytest.approx(expected)
    assert f"temperature {temperature:g}" in lm.name


@pytest.mark.parametrize("temperature", [0, -1, float("inf"), "hot"])
def test_what_is_no_temperature(temperature):
    with pytest.raises(BesagError, match="temperature="):
        Tempered(Table(WEIGHTS, ["a", "b"]), temperature)
