"""Mutual information of every two places: exact on exact laws, and a map that says what it is."""

import itertools
import json
import math

import numpy as np
import pytest
from tests import networks
from tests.laws import Arbitrary, Counting

import besag
from besag.conditionals.transformer import Transformer
from besag.diagnostics import dependence as room
from besag.diagnostics.dependence import cost, dependence
from besag.engine import Engine
from besag.errors import BesagError
from besag.study.pairs import study
from besag.vocabulary import Vocabulary


def information(joint: np.ndarray) -> float:
    u, v = joint.sum(1), joint.sum(0)
    return sum(p * math.log(p / (u[x] * v[y])) for (x, y), p in np.ndenumerate(joint) if p > 0)


@pytest.mark.parametrize(("method", "exactness"), [("order", 1e-10), ("ag", 1e-5), ("stationary", 1e-5)])
def test_it_is_the_information_of_the_law_itself(method, exactness):
    law = besag.Table.random(3, 4, seed=5, concentration=1.0)
    found = dependence(Engine(law), "s0 s2 s1 s0", candidates=3, method=method)
    text = (0, 2, 1, 0)
    for a, b in itertools.combinations(range(4), 2):
        here = tuple(slice(None) if place in (a, b) else text[place] for place in range(4))
        joint = law.log_probs[here].exp().numpy()
        assert found.matrix[a, b] == pytest.approx(information(joint / joint.sum()), abs=exactness)
        assert found.matrix[b, a] == found.matrix[a, b]
    assert np.isnan(found.matrix.diagonal()).all()
    assert found.lost == pytest.approx(0, abs=1e-12)


def test_spins_of_a_chain_depend_on_their_neighbours_alone():
    found = dependence(Engine(besag.Ising.chain(5, 0.6)), "+ - + + -", candidates=2)
    near = np.eye(5, k=1, dtype=bool) | np.eye(5, k=-1, dtype=bool)
    assert found.matrix[near].min() > 0.05
    assert found.matrix[~near & ~np.eye(5, dtype=bool)].max() < 1e-9


@pytest.mark.parametrize("ask", ["dependence", "rectangles", "study"])
def test_a_text_is_read_once_whatever_the_number_of_its_pairs(monkeypatch, ask):
    read, encode = [], Vocabulary.encode

    def counted(self, *given, **named):
        read.append(1)
        return encode(self, *given, **named)

    monkeypatch.setattr(Vocabulary, "encode", counted)

    def times(length):
        read.clear()
        engine, text = Engine(Arbitrary(4)), " ".join(["s0 s1"] * (length // 2))
        if ask == "dependence":
            dependence(engine, text, candidates=2)
        elif ask == "rectangles":
            besag.load(engine.conditionals).rectangles(text)
        else:
            list(study(engine, [text], per_text=length // 2, candidates=2))
        return len(read)

    assert times(8) == times(4) <= 4


def test_near_pairs_only():
    found = dependence(Engine(Arbitrary(4)), "s0 s1 s2 s3 s0", candidates=3, max_distance=2)
    distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    assert np.isfinite(found.matrix[(distance > 0) & (distance <= 2)]).all()
    assert np.isnan(found.matrix[distance > 2]).all()
    assert (found.pairs, len(found.to_pandas()), len(found.top(100))) == (7, 7, 7)
    whole = dependence(Engine(Arbitrary(4)), "s0 s1 s2 s3 s0", candidates=3)
    assert whole.matrix[0, 2] == pytest.approx(found.matrix[0, 2], abs=1e-9)


def test_places_that_are_named_are_mapped_alone():
    law, text = Counting(Arbitrary(4)), "s0 s1 s2 s3 s0"
    whole = dependence(Engine(Arbitrary(4)), text, candidates=3)
    found = dependence(Engine(law), text, candidates=3, positions=[4, "s1", 3])
    assert (found.positions, found.tokens, found.among, found.pairs) == ((1, 3, 4), ("s1", "s3", "s0"), 5, 3)
    np.testing.assert_allclose(found.matrix, whole.matrix[np.ix_([1, 3, 4], [1, 3, 4])], atol=1e-9)
    assert "3 pairs among 3 of 5 tokens" in " ".join(found.facts)
    assert cost(law, text, candidates=3, positions=[1, 3, 4]).pairs == 3
    assert len(law.sequences) <= cost(law, text, candidates=3, positions=[1, 3, 4]).sequences
    near = dependence(Engine(Arbitrary(4)), text, candidates=3, positions=[0, 1, 4], max_distance=2)
    assert near.pairs == 1
    with pytest.raises(BesagError, match=r"positions=\[2\]: name two tokens"):
        dependence(Engine(law), text, positions=[2])
    with pytest.raises(BesagError, match="no two of them are at most 1 apart"):
        dependence(Engine(law), text, positions=[0, 3], max_distance=1)


def test_the_strongest_come_first_and_the_table_names_them():
    found = dependence(Engine(Arbitrary(4)), "s0 s1 s2 s3", candidates=4)
    top = found.top(3)
    assert [pair.mutual_information for pair in top] == sorted(found.matrix[np.triu_indices(4, 1)], reverse=True)[:3]
    first = top[0]
    assert found.matrix[first.a, first.b] == first.mutual_information
    assert f"{first.token_a} ({first.a})" in repr(found)
    frame = found.to_pandas()
    assert frame[["a", "b"]].to_numpy().tolist() == [list(pair) for pair in itertools.combinations(range(4), 2)]
    assert json.loads(json.dumps(found.to_dict()))["matrix"][0][0] is None


def test_what_it_costs_is_known_before():
    law = Counting(Arbitrary(6))
    takes = cost(law, "s0 s1 s2 s3", candidates=4, max_distance=2)
    assert takes.pairs == 5
    dependence(Engine(law), "s0 s1 s2 s3", candidates=4, max_distance=2)
    assert len(law.sequences) <= takes.sequences
    assert takes.tokens == 4 * takes.sequences


def test_too_much_is_refused_with_a_way_out(monkeypatch):
    monkeypatch.setitem(room.MOST_TOKENS, "cpu", 50_000)
    law, text = Counting(Arbitrary(6)), " ".join(f"s{i % 6}" for i in range(20))
    with pytest.raises(BesagError, match=r"190 pairs .* say max_distance=1 \(--max-distance\)"):
        dependence(Engine(law), text, candidates=4)
    assert law.sequences == []
    assert dependence(Engine(law), text, candidates=4, max_distance=1).pairs == 19


def test_a_text_longer_than_the_model_needs_a_distance():
    network = Transformer(networks.tiny("bert"), networks.vocabulary("bert"), name="tiny")  # 40 positions
    text = " ".join(["cat sat"] * 20)
    with pytest.raises(BesagError, match="max_distance=37 or less"):
        dependence(Engine(network), text, candidates=2)
    assert cost(network, text, max_distance=1).tokens % 40 == 0


def test_special_tokens_in_the_text_are_passed_over():
    network = Transformer(networks.tiny("bert"), networks.vocabulary("bert"), name="tiny")
    found = dependence(Engine(network), "the cat [SEP] a man", candidates=3)
    assert found.tokens == ("the", "cat", "a", "man")
    assert found.positions == (1, 2, 4, 5)


def test_wrong_words_are_answered():
    engine = Engine(Arbitrary(3))
    with pytest.raises(BesagError, match="fewer than two tokens"):
        dependence(engine, "s0")
    with pytest.raises(BesagError, match="max_distance=0"):
        dependence(engine, "s0 s1", max_distance=0)
    with pytest.raises(BesagError, match="no joint construction 'agg'"):
        dependence(engine, "s0 s1", method="agg")
    with pytest.raises(BesagError, match="no option 'wieghts'"):
        dependence(engine, "s0 s1", wieghts="marginal")


def test_the_map_is_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    found = dependence(Engine(Arbitrary(4)), "s0 s1 s2 s3", candidates=3)
    ax = found.plot()
    ax.figure.canvas.draw()
    drawn = np.asarray(ax.images[0].get_array())
    assert drawn.shape == (3, 3)
    assert drawn[2, 0] == pytest.approx(found.matrix[3, 0])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["s1", "s2", "s3"]
    assert "ag marginal" in ax.get_title(loc="left")
    pyplot.close("all")
