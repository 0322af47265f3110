import numpy as np
import pytest
from tests.masks.example_passages import plain, repeated

from besag.errors import BesagError
from besag.masks import Statistics, law
from besag.masks.informask import informativeness

TOKENS = ("[MASK]", *(f"t{number}" for number in range(1, 10)))


def corpus(seed=0) -> Statistics:
    """Tokens 1 to 5 at random, and 6 always beside 7."""
    rng = np.random.default_rng(seed)
    documents = []
    for _ in range(80):
        document = rng.integers(1, 6, 30)
        document[rng.integers(2, 28)] = 9 if rng.random() < 0.5 else 8
        at = rng.integers(0, 28)
        document[at : at + 2] = [6, 7]
        documents.append(document)
    return Statistics(np.bincount(np.concatenate(documents), minlength=10), documents, frozenset({0}), TOKENS)


def brute(documents, window, width) -> np.ndarray:
    pair, single = np.zeros((width, width)), np.zeros(width)
    for document in documents:
        for at, one in enumerate(document):
            single[one] += 1
            for other in range(max(0, at - window), min(len(document), at + window + 1)):
                pair[one, document[other]] += other != at
    told = np.zeros(width)
    for v in range(width):
        for u in range(width):
            if pair[v, u]:
                pmi = np.log(pair[v, u] * pair.sum() / (pair[v].sum() * pair[:, u].sum()))
                rarer = min(single[u], single[v])
                told[v] += pair[v, u] * pmi * pair[v, u] / (pair[v, u] + 1) * rarer / (rarer + 1)
    return told / np.maximum(single, 1)


@pytest.mark.parametrize("window", [1, 3])
def test_informativeness_is_the_mean_sum_of_pmi(window):
    statistics = corpus()
    assert informativeness(statistics, window) == pytest.approx(brute(statistics.documents, window, 10))


def test_what_tells_its_neighbours_is_hidden_more_often():
    made = law("informask", window=1).prepare(corpus())
    tilt = made.tilt()
    assert min(tilt[6], tilt[7]) > max(tilt[1:6]) + 0.5
    draws = 4000
    passages = repeated(plain(6)._replace(ids=np.array([1, 2, 6, 7, 3, 4])), draws)
    rate = made.choose(passages, np.full(draws, 1 / 3), 0.0, 1).reshape(draws, 6).mean(0)
    assert min(rate[2:4]) > 2 * max(rate[[0, 1, 4, 5]])


def test_nothing_is_never_hidden():
    made = law("informask", least=0.2).prepare(corpus())
    weight = made._weight
    assert weight.min() == pytest.approx(0.2 * float(made._share @ np.maximum(informativeness(corpus()), 0)))


def test_a_published_table(tmp_path):
    file = tmp_path / "chances.tsv"
    file.write_text("t1\t0.1\nt2\t0.3\n")
    made = law("informask", table=str(file)).prepare(corpus())
    assert made._weight[2] / made._weight[1] == pytest.approx(3)
    share = made._share[1:3]
    assert made._weight[5] == pytest.approx((share @ [0.1, 0.3]) / share.sum())


def test_a_corpus_without_text_is_the_uniform_law():
    made = law("informask").prepare(Statistics(np.zeros(10, int), [], frozenset({0}), TOKENS))
    assert np.ptp(made.tilt()[1:]) == 0


def test_options_that_make_no_sense():
    with pytest.raises(BesagError, match="window=0"):
        law("informask", window=0)
    with pytest.raises(BesagError, match="least=0"):
        law("informask", least=0)
