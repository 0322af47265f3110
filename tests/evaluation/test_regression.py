"""Regressions against closed forms: normal equations, scipy's normal law, plain loops over folds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from besag.errors import BesagError
from besag.evaluation.regression import fold_of, gained


def data(slope: float, n: int = 300) -> tuple[np.ndarray, ...]:
    draw = np.random.default_rng(3)
    base, predictor = draw.normal(size=(n, 2)), draw.normal(size=(n, 1))
    y = 2 + base @ [1.0, -0.5] + slope * predictor[:, 0] + draw.normal(size=n)
    return y, base, predictor, np.arange(n) // 10


def test_against_normal_equations_and_the_normal_law() -> None:
    y, base, predictor, groups = data(0.7)
    found = gained(y, base, predictor, groups, folds=5)
    likelihood, small, large, total = (np.empty(len(y)) for _ in range(4))
    for one in range(5):
        held = np.isin(groups, np.arange(30)[one * 6 : one * 6 + 6])
        by_model = []
        for x in (base, np.hstack([base, predictor])):
            x = np.hstack([np.ones((len(y), 1)), x])
            beta = np.linalg.solve(x[~held].T @ x[~held], x[~held].T @ y[~held])
            sigma = np.sqrt(np.mean((y[~held] - x[~held] @ beta) ** 2))
            by_model.append((stats.norm.logpdf(y[held], x[held] @ beta, sigma), (y[held] - x[held] @ beta) ** 2))
        likelihood[held], small[held], large[held] = by_model[1][0] - by_model[0][0], by_model[0][1], by_model[1][1]
        total[held] = (y[held] - y[~held].mean()) ** 2
    assert found.log_likelihood == pytest.approx(likelihood)
    assert found.delta_log_likelihood == pytest.approx(likelihood.mean())
    assert found.delta_r2 == pytest.approx((small.sum() - large.sum()) / total.sum())
    assert found.r2 == pytest.approx(1 - small.sum() / total.sum())


def test_a_predictor_gains_what_it_explains() -> None:
    """With noise of variance 1 and a slope b, surprisal would gain ½ ln(1 + b²)."""
    y, base, predictor, groups = data(0.7, n=4000)
    found = gained(y, base, predictor, groups)
    assert found.delta_log_likelihood == pytest.approx(0.5 * np.log(1.49), abs=0.02)
    assert found.delta_r2 == pytest.approx(0.49 / np.var(y), abs=0.03)


def test_noise_gains_nothing() -> None:
    y, base, predictor, groups = data(0.0)
    assert gained(y, base, predictor, groups).delta_log_likelihood < 0.002


def test_folds_are_of_whole_groups_that_follow_each_other() -> None:
    groups = np.repeat([4, 7, 9, 12, 13, 20, 21], [3, 1, 2, 5, 1, 1, 4])
    fold = fold_of(groups, 3)
    assert sorted(set(fold)) == [0, 1, 2]
    assert (np.diff(fold) >= 0).all()
    assert all(len(set(fold[groups == group])) == 1 for group in groups)


def test_too_little_is_refused() -> None:
    y, base, predictor, groups = data(0.7)
    with pytest.raises(BesagError, match="30 sentences cannot be put into 40 folds"):
        gained(y, base, predictor, groups, folds=40)
    with pytest.raises(BesagError, match="3 observations are too few to fit 4 coefficients"):
        gained(y[:6], base[:6], predictor[:6], np.arange(6), folds=2)
    with pytest.raises(BesagError, match="without any error"):
        gained(np.zeros(20), base[:20], predictor[:20], np.arange(20), folds=2)
