import numpy as np
import pytest
from tests.masks.example_passages import plain, repeated

from besag.errors import BesagError
from besag.masks import Statistics, law

COUNTS = np.array([0, 1, 10, 40, 1000])
CORPUS = Statistics(COUNTS, [], frozenset({0}), ("[MASK]", "a", "b", "c", "d"))
DRAWS = 40_000


def first_hidden(made) -> np.ndarray:
    """How often each of a, b, c, d is the one token hidden of four."""
    passages = repeated(plain(4)._replace(ids=np.array([1, 2, 3, 4])), DRAWS)
    return made.choose(passages, np.full(DRAWS, 0.25), 0.0, 7).reshape(DRAWS, 4).sum(0)


@pytest.mark.parametrize(("theta", "alpha"), [(10.0, 0.5), (1.0, 0.5), (10.0, 0.0), (0.5, 0.2)])
def test_one_token_is_drawn_in_proportion_to_its_weight(theta, alpha):
    weight = np.maximum(COUNTS[1:], theta) ** -alpha
    wanted = DRAWS * weight / weight.sum()
    seen = first_hidden(law("frequency", theta=theta, alpha=alpha).prepare(CORPUS))
    assert ((seen - wanted) ** 2 / wanted).sum() < 16.3  # chi-square, 3 degrees of freedom: p ≈ 0.001


def test_the_floor_makes_the_rarest_alike():
    tilt = law("frequency").prepare(CORPUS).tilt(1e-6)
    assert tilt[1] == tilt[2]
    assert tilt[3] - tilt[4] == pytest.approx(0.5 * np.log(1000 / 40), abs=1e-4)


def test_options_that_make_no_sense():
    with pytest.raises(BesagError, match="theta=0: it must be above 0"):
        law("frequency", theta=0)
    with pytest.raises(BesagError, match="alpha"):
        law("wsbert", alpha=-1)
