"""The linear probe: the minimum is one, folds are fair, and nothing is labelled by a map that has seen it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import besag
from besag.embedding.probe import fitted, probe, weights
from besag.errors import BesagError


def cloud(n=60, seed=0, apart=2.0):
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 3, n)
    return draw.normal(size=(n, 4)) + apart * np.eye(3, 4)[labels], [f"l{label}" for label in labels]


@given(seed=st.integers(0, 1000), penalty=st.floats(0.01, 10))
@settings(max_examples=10, deadline=None)
def test_at_the_minimum_the_gradient_is_nothing(seed, penalty):
    """Of −1/n Σ log softmax + λ/2n ‖W‖², written out."""
    x, labels = cloud(seed=seed)
    y = np.array([int(label[1]) for label in labels])
    found = weights(x, y, 3, penalty)
    z = np.append(x, np.ones((len(x), 1)), 1)
    logits = z @ found.T
    probs = np.exp(logits - logits.max(1, keepdims=True))
    probs /= probs.sum(1, keepdims=True)
    gradient = (probs - np.eye(3)[y]).T @ z / len(x)
    gradient[:, :-1] += penalty / len(x) * found[:, :-1]
    assert np.abs(gradient).max() < 1e-5


def test_what_is_apart_is_found_and_noise_is_not():
    assert probe(*cloud(apart=8.0)).accuracy == 1.0
    noise = np.random.default_rng(1).normal(size=(300, 4))
    found = probe(noise, [f"l{number % 3}" for number in range(300)])
    assert found.usual_accuracy == pytest.approx(1 / 3)
    assert abs(found.accuracy - 1 / 3) < 0.12


def test_each_example_is_labelled_by_a_map_that_has_not_seen_it():
    x, labels = cloud(apart=1.0)
    found = probe(x, labels, folds=3)
    y = np.array([int(label[1]) for label in labels])
    for fold in range(3):
        out = found.fold == fold
        said = fitted(x[~out], y[~out], 3, 1.0, x[out])
        assert [f"l{label}" for label in said] == [found.said[row] for row in np.flatnonzero(out)]


def test_folds_hold_equal_shares_of_each_label():
    x, labels = cloud()
    found = probe(x, labels, folds=4)
    for label in set(labels):
        counts = np.bincount(found.fold[np.array(labels) == label], minlength=4)
        assert counts.max() - counts.min() <= 1
    assert (probe(x, labels, folds=4).fold == found.fold).all()
    assert (probe(x, labels, folds=4, seed=1).fold != found.fold).any()


def test_scale_and_place_of_the_vectors_change_nothing():
    x, labels = cloud(apart=1.0)
    moved = x * np.array([1.0, 100.0, 0.01, 3.0]) + np.array([5.0, -3.0, 0.0, 1e3])
    assert probe(moved, labels).said == probe(x, labels).said
    still = np.append(x, np.ones((len(x), 1)), 1)  # a direction that never varies
    assert probe(still, labels).said == probe(x, labels).said


def test_what_it_tells():
    found = probe(*cloud())
    assert found.accuracy == pytest.approx(np.mean([a == b for a, b in zip(found.true, found.said, strict=True)]))
    assert {name: n for name, (n, _) in found.by_label().items()} == {
        name: found.true.count(name) for name in found.labels
    }
    assert found.to_dict()["accuracy"] == found.accuracy


def test_what_cannot_be_probed_is_refused():
    x, labels = cloud()
    cases = {
        "a row of finite numbers for each label": lambda: probe(x[:-1], labels),
        "finite": lambda: probe(np.full_like(x, np.nan), labels),
        "all labels are 'a'": lambda: probe(x, ["a"] * len(x)),
        "the rarest label has 1 example": lambda: probe(x, ["a"] * (len(x) - 1) + ["b"]),
        "folds=1": lambda: probe(x, labels, folds=1),
        "penalty=-1": lambda: besag.probe(x, labels, penalty=-1.0),
    }
    for said, run in cases.items():
        with pytest.raises(BesagError) as refused:
            run()
        assert said in str(refused.value)
