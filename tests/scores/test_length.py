"""How long texts are."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import BesagError
from besag.scores.length import LengthModel

lengths = st.lists(st.integers(1, 60), min_size=1, max_size=40)


@given(lengths)
def test_p_sums_to_one(sample):
    model = LengthModel.fit(sample)
    logs = np.array([model.log_prob(n) for n in range(1, 6000)])
    assert math.fsum(np.exp(logs)) == pytest.approx(1.0, abs=1e-9)


@given(lengths, st.integers(1, 10**7))
def test_every_length_is_possible_and_none_is_certain_to_fail(sample, n):
    log_prob = LengthModel.fit(sample).log_prob(n)
    assert -math.inf < log_prob <= 0.0


def test_the_formula():
    model = LengthModel({3: 2, 5: 1}, alpha=0.5, shape=1.0, mean=2.0, fitted_with="")
    g = [(1 / 3) * (2 / 3) ** (n - 1) for n in range(1, 7)]  # shape 1: geometric
    for n, count in ((1, 0), (3, 2), (5, 1), (6, 0)):
        assert model.log_prob(n) == pytest.approx(math.log((count + 0.5 * g[n - 1]) / 3.5))


def test_the_base_measure_has_the_moments_it_was_given():
    model = LengthModel({1: 1}, alpha=1e12, shape=2.5, mean=7.0, fitted_with="")  # all weight on g
    n = np.arange(1, 2000)
    g = np.exp([model.log_prob(int(i)) for i in n])
    mean = g @ (n - 1)
    assert mean == pytest.approx(7.0)
    assert g @ (n - 1 - mean) ** 2 == pytest.approx(7.0 + 49 / 2.5)


def test_many_texts_give_back_the_law_they_came_from():
    rng = np.random.default_rng(0)
    sample = 1 + rng.negative_binomial(3.0, 0.2, size=20000)
    model = LengthModel.fit(sample, fitted_with="tiny")
    assert model.shape == pytest.approx(3.0, rel=0.1)
    assert model.alpha > 100  # g fits, so smoothing is strong
    fresh = (1 + rng.negative_binomial(3.0, 0.2, size=20000)).tolist()
    best = np.mean([_true_log_prob(n) for n in fresh])
    assert np.mean([model.log_prob(n) for n in fresh]) == pytest.approx(best, abs=0.005)


def _true_log_prob(n):
    m = n - 1
    return math.lgamma(3 + m) - math.lgamma(3) - math.lgamma(m + 1) + 3 * math.log(0.2) + m * math.log(0.8)


def test_smoothing_is_weak_where_no_negative_binomial_fits():
    model = LengthModel.fit([4] * 500 + [9] * 500)
    assert model.alpha < 1
    assert math.exp(model.log_prob(4)) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("sample", [[1], [1] * 100, [7], [7] * 50, [1, 500], [2, 2, 3]])
def test_tiny_and_odd_samples_still_give_a_law(sample):
    model = LengthModel.fit(sample)
    assert sum(math.exp(model.log_prob(n)) for n in range(1, 20000)) == pytest.approx(1.0)


def test_one_text_is_no_proof_of_its_length():
    assert LengthModel.fit([12]).log_prob(12) < math.log(0.5)


def test_fitting_does_not_depend_on_order_and_reads_once():
    assert LengthModel.fit(iter([5, 2, 9, 2])) == LengthModel.fit([2, 2, 5, 9])


@pytest.mark.parametrize(("sample", "said"), [([], "at least one"), ([3, 0], "n=0"), ([2.5], "2.5"), (["3"], "'3'")])
def test_what_is_no_length_is_refused(sample, said):
    with pytest.raises(BesagError, match=said):
        LengthModel.fit(sample)


@pytest.mark.parametrize("n", [0, -1, 1.5])
def test_asking_for_no_length_is_refused(n):
    with pytest.raises(BesagError, match=str(n)):
        LengthModel.fit([3]).log_prob(n)


def test_it_is_saved_and_read_back(tmp_path):
    model = LengthModel.fit([3, 4, 4, 8], fitted_with="bert-base-cased")
    model.save(tmp_path / "lengths.json")
    again = LengthModel.load(tmp_path / "lengths.json")
    assert again == model
    assert (again.fitted_with, again.n_texts) == ("bert-base-cased", 4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.pop("counts"), "counts"),
        (lambda d: d.update(alpha=-1), "alpha is -1"),
        (lambda d: d.update(mean=math.nan), "mean=nan"),
        (lambda d: d.update(shape=1e300), "shape is 1e.300, not a positive number that a fit can give"),
        (lambda d: d.update(alpha=10**400), "alpha="),
        (lambda d: d.update(counts={"3": 10**29}, n_texts=10**29), "count=1000.*give at most"),
        (lambda d: d.update(counts={"9" * 30: 4}), "n=9999.*give at most"),
        (lambda d: d.update(n_texts=7), "n_texts"),
        (lambda d: d.update(counts=[1]), "damaged"),
        (lambda d: d.update(counts={"0": 4}), "at least 1"),
        (lambda d: d.update(counts={"x": 4}), "'x'"),
        (lambda d: d.update(kind="cake"), "not a length model"),
    ],
)
def test_a_damaged_file_is_refused_with_its_name(tmp_path, change, said):
    path = tmp_path / "lengths.json"
    LengthModel.fit([3, 4, 4, 8]).save(path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(BesagError, match=said) as caught:
        LengthModel.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"hello", b"[1, 2]", b"3", b"[" * 5000, b'{"a": ' + b"9" * 5000])
def test_garbage_is_refused(tmp_path, content):
    path = tmp_path / "garbage.json"
    path.write_bytes(content)
    with pytest.raises(BesagError, match=r"garbage\.json"):
        LengthModel.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BesagError, match=r"no such file: .*nothing\.json"):
        LengthModel.load(tmp_path / "nothing.json")


def test_it_says_what_it_was_fitted_on():
    said = str(LengthModel.fit([3, 4, 4, 8], fitted_with="tiny"))
    assert "4 texts in tokens of tiny: 3 to 8 tokens, 4.8 on average" in said
