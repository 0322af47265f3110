"""Divergences of normal fits: the closed form, an integral by scipy, signs; and a run on an exact law."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import besag
from besag.evaluation.suites.bias_gaussian import signed_js, signed_kl


def two(m, s, n, t):
    """Two samples of exactly these means and standard deviations."""
    unit = np.array([-1.0, 0.0, 1.0])  # of standard deviation 1
    return m + s * unit, n + t * unit


def test_by_hand():
    assert signed_kl(*two(1, 1, 0, 1)) == pytest.approx(0.5)  # (μ − ν)² / 2
    assert signed_kl(*two(0, 1, 1, 1)) == pytest.approx(-0.5)
    assert signed_kl(*two(1, 1, 0, 2)) == pytest.approx(math.log(2) + 2 / 8 - 0.5)
    assert signed_js(*two(0, 1, 0, 1)) == pytest.approx(0)
    assert signed_js(*two(100, 1, 0, 1)) == pytest.approx(1)  # nothing in common: one bit
    assert math.isnan(signed_kl(np.zeros(3), np.arange(3.0)))
    assert math.isnan(signed_js(np.arange(3.0), np.zeros(3)))


@given(st.floats(-3, 3), st.floats(0.2, 3), st.floats(-3, 3), st.floats(0.2, 3))
def test_against_an_integral(m, s, n, t):
    p, q = stats.norm(m, s), stats.norm(n, t)
    low, high = min(m - 9 * s, n - 9 * t), max(m + 9 * s, n + 9 * t)

    def inside(x, law):
        here, middle = law.pdf(x), (p.pdf(x) + q.pdf(x)) / 2
        return here * math.log2(here / middle) if here > 0 else 0.0

    parts = [integrate.quad(inside, low, high, (law,), limit=200, points=[m, n])[0] for law in (p, q)]
    assert abs(signed_js(*two(m, s, n, t))) == pytest.approx(sum(parts) / 2, abs=1e-5)
    assert signed_js(*two(m, s, n, t)) == pytest.approx(-signed_js(*two(n, t, m, s)), abs=1e-9) or m == n


def test_a_run(tmp_path):
    """The sentence of the paper: pairs that all go one way, nearly or far, have one share and other divergences."""
    weights = np.array([[40.0, 30.0], [20.0, 10.0]])
    lm = besag.load(besag.Table(weights, symbols=["a", "b"]))
    file = tmp_path / "pairs.csv"
    file.write_text("sent_more,sent_less,bias_type\na a,b b,x\na b,b b,x\nb a,b b,y\na a,b a,y\n")
    found = besag.evaluate(lm, "bias_gaussian", data=file, method="chain", reduction="sum")
    log_p = np.log(weights / weights.sum())
    more, less = np.array([log_p[0, 0], log_p[0, 1], log_p[1, 0], log_p[0, 0]]), log_p[[1, 1, 1, 1], [1, 1, 1, 0]]
    assert found["JS"].value == pytest.approx(signed_js(more, less))
    assert found["KL"].value == pytest.approx(signed_kl(more, less))
    assert found["JS"].value > 0
    assert found["prefers"].value == 100
    assert math.isnan(found["JS/x"].value)  # its two counterparts are the same sentence: no normal law
