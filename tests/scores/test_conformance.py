"""Every scoring method against brute force: plain loops over the law itself, no engine, no passage, no batches.

To add a method: write its definition as a function here and add one row to REFERENCES.
"""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws import Arbitrary, Counting
from tests.networks import tiny, vocabulary
from tests.scores.pair_blocks import ag_chain

import besag
from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.language_model import LanguageModel
from besag.scores import METHODS, Method
from besag.scores.regression import BESIDE, Regression, view_of, width

WORDS = [[0, 0, 1, 2, 2, 2], [0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 0]]


class Asked:
    """p(x_i | what is left after hiding), straight from the law."""

    def __init__(self, law) -> None:
        self.law = law
        self.known: dict[tuple, float] = {}

    def log_prob(self, x: list[int], hide: set[int], i: int) -> float:
        key = tuple(v for j, v in enumerate(x) if j not in hide or j == i), frozenset(hide), i
        if key not in self.known:
            self.known[key] = self.compute(x, hide, i)
        return self.known[key]

    def compute(self, x: list[int], hide: set[int], i: int) -> float:
        if isinstance(self.law, Arbitrary):
            return float(self.row(x, hide, i)[x[i]])
        joint = self.law.log_probs.exp().numpy()
        index = tuple(slice(None) if j in hide else x[j] for j in range(len(x)))
        joint_of_hidden = joint[index]
        axis = sum(j in hide for j in range(i))
        marginal = joint_of_hidden.sum(tuple(a for a in range(joint_of_hidden.ndim) if a != axis))
        return float(np.log(marginal[x[i]] / marginal.sum()))

    def row(self, x: list[int], hide: set[int], i: int) -> np.ndarray:
        if isinstance(self.law, Arbitrary):
            return self.law.log_probs([self.law.width if j in hide else v for j, v in enumerate(x)], i)
        return np.array([self.log_prob([*x[:i], v, *x[i + 1 :]], hide, i) for v in range(self.law.width)])


def pll(asked, x, words):
    return [asked.log_prob(x, {t}, t) for t in range(len(x))]


def word_l2r(asked, x, words):
    return [asked.log_prob(x, {s for s in range(t, len(x)) if words[s] == words[t]}, t) for t in range(len(x))]


def whole_word(asked, x, words):
    return [asked.log_prob(x, {s for s in range(len(x)) if words[s] == words[t]}, t) for t in range(len(x))]


def left_to_right(asked, x, words):
    return [asked.log_prob(x, set(range(t, len(x))), t) for t in range(len(x))]


def right_to_left(asked, x, words):
    return [asked.log_prob(x, set(range(t + 1)), t) for t in range(len(x))]


def confident(asked, x, words):
    hidden, values = set(range(len(x))), [0.0] * len(x)
    while hidden:
        best = max(sorted(hidden), key=lambda i: asked.row(x, hidden, i).max())
        values[best] = asked.log_prob(x, hidden, best)
        hidden = hidden - {best}
    return values


def any_order(asked, x, words):
    """The mean over all orders of the chain rule, by enumerating the orders themselves."""
    orders = list(itertools.permutations(range(len(x))))
    values = np.zeros(len(x))
    for order in orders:
        for k, i in enumerate(order):
            values[i] += asked.log_prob(x, set(order[k:]), i) / len(orders)
    return values


def unmasked(asked, x, words):
    return [asked.log_prob(x, set(), t) for t in range(len(x))]


REFERENCES = {  # method, options → definition
    ("ag_chain", ()): ag_chain,
    ("ag_chain", (("candidates", 2),)): partial(ag_chain, candidates=2),
    ("ag_chain", (("candidates", 2), ("order", "confident"))): partial(ag_chain, candidates=2, order="confident"),
    ("pll", ()): pll,
    ("word_l2r", ()): word_l2r,
    ("whole_word", ()): whole_word,
    ("chain", (("order", "left-to-right"),)): left_to_right,
    ("chain", (("order", "right-to-left"),)): right_to_left,
    ("chain", (("order", "confident"),)): confident,
    ("elbo", (("samples", "all"),)): any_order,
    ("unmasked", ()): unmasked,
}
IDS = [" ".join([name, *(str(value) for _, value in options)]) for name, options in REFERENCES]
laws = st.tuples(st.booleans(), st.integers(2, 6), st.integers(1, 6), st.integers(0, 10_000))


def draw_law(spec):
    exact, width, places, seed = spec
    return (Table.random(width, places, seed) if exact else Arbitrary(width)), width, places


def text(x) -> str:
    return " ".join(f"s{v}" for v in x)


def spans_of(x: list[int], words: list[int]) -> list[tuple[int, int]]:
    """Character spans of the words of a text of symbols."""
    starts = np.cumsum([0, *(len(f"s{v}") + 1 for v in x)])
    return [
        (int(starts[members[0]]), int(starts[members[-1] + 1]) - 1)
        for _, group in itertools.groupby(range(len(x)), key=lambda i: words[i])
        if (members := list(group))
    ]


@pytest.mark.parametrize(("method", "options"), REFERENCES, ids=IDS)
@given(spec=laws, seed=st.integers(0, 1000), pattern=st.sampled_from(WORDS), batch_tokens=st.integers(1, 64))
def test_every_method_equals_its_definition(method, options, spec, seed, pattern, batch_tokens):
    law, width, places = draw_law(spec)
    if method == "unmasked" and not isinstance(law, Arbitrary):
        law = Arbitrary(width)  # a table rightly refuses to be asked about what it is shown
    generator = np.random.default_rng(seed)
    texts = [generator.integers(0, width, places).tolist() for _ in range(3)]
    words = [spans_of(x, pattern[:places]) for x in texts]
    lm = LanguageModel(law, batch_tokens=batch_tokens)
    scores = lm.score([text(x) for x in texts], method=method, words=words, **dict(options))
    for x, score in zip(texts, scores, strict=True):
        np.testing.assert_allclose(score.log_probs, REFERENCES[method, options](Asked(law), x, pattern), atol=1e-10)
        assert score.total == pytest.approx(sum(score.log_probs) + sum(score.extra.values()), abs=1e-12)


def test_the_conformance_table_covers_every_masked_method():
    of_networks = {"maskless"}  # needs a scorer learned from hidden states: test_regression.py, test_distilling.py
    masked = {name for name, kind in METHODS.items() if kind.sees == "both"}
    assert {name for name, _ in REFERENCES} == masked - of_networks


@given(st.integers(2, 3), st.integers(1, 5), st.integers(0, 1000))
def test_causal_equals_its_definition_and_sums_to_one(width, places, seed):
    law = Arbitrary(width, sees="left")
    everything = [list(x) for x in itertools.product(range(width), repeat=places)]
    scores = LanguageModel(law).score([text(x) for x in everything], method="causal")
    x = everything[seed % len(everything)]
    expected = [law.log_probs([law.bos_id, *x], t + 1)[x[t]] for t in range(places)]
    np.testing.assert_allclose(scores[seed % len(everything)].log_probs, expected, atol=1e-12)
    assert np.exp([score.total for score in scores]).sum() == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize(
    "options",
    [
        {"order": "left-to-right"}, {"order": "right-to-left"}, {"order": "confident"},
        {"order": "random", "seed": 3}, {"order": "random", "orders": 3, "seed": 5},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize(("width", "places"), [(2, 1), (3, 3), (2, 5)])
def test_a_chain_is_a_probability_even_of_incompatible_conditionals(options, width, places):
    everything = [text(x) for x in itertools.product(range(width), repeat=places)]
    scores = LanguageModel(Arbitrary(width)).score(everything, method="chain", **options)
    assert np.exp([score.total for score in scores]).sum() == pytest.approx(1, abs=1e-10)


@given(st.integers(2, 3), st.integers(1, 4), st.integers(0, 1000))
def test_on_an_exact_table_every_chain_and_the_bound_are_the_truth(width, places, seed):
    table = Table.random(width, places, seed)
    lm = LanguageModel(table)
    everything = list(itertools.product(range(width), repeat=places))
    truth = [float(table.log_probs[x]) for x in everything]
    for options in ({"order": "left-to-right"}, {"order": "confident"}, {"order": "random", "orders": 2}):
        totals = [score.total for score in lm.score([text(x) for x in everything], method="chain", **options)]
        np.testing.assert_allclose(totals, truth, atol=1e-10)
    totals = [score.total for score in lm.score([text(x) for x in everything], method="elbo", samples="all")]
    np.testing.assert_allclose(totals, truth, atol=1e-10)


def test_pll_is_no_probability_which_is_why_it_says_so():
    everything = [text(x) for x in itertools.product(range(3), repeat=3)]
    scores = LanguageModel(Table.random(3, 3, 1)).score(everything, method="pll")
    assert abs(np.exp([score.total for score in scores]).sum() - 1) > 0.05
    assert scores[0].normalised == ""


def test_a_mixture_of_orders_is_the_log_of_their_mean_probability():
    lm = LanguageModel(Arbitrary(3))
    x = "s0 s2 s1 s1"
    mixed = lm.score(x, method="chain", order="random", orders=6, seed=9)
    assert mixed.extra["mixture"] >= 0
    # the law of each order on its own: the same noise, one order at a time
    from besag.scores.chain import Chain

    chain = Chain(order="random", orders=6, seed=9)
    asked, tokens = Asked(Arbitrary(3)), [0, 2, 1, 1]
    totals = []
    for number in range(6):
        time = chain._times(4, number).tolist()
        totals.append(sum(asked.log_prob(tokens, {j for j in range(4) if time[j] >= time[i]}, i) for i in range(4)))
    assert mixed.total == pytest.approx(np.logaddexp.reduce(totals) - np.log(6), abs=1e-10)
    assert len(set(np.round(totals, 9))) > 1


def test_random_orders_are_uniform_and_depend_on_seed_and_length_alone():
    from besag.scores.chain import Chain

    orders = [tuple(Chain(order="random", seed=seed)._times(3, 0)) for seed in range(1200)]
    counts = np.array([orders.count(order) for order in itertools.permutations(range(3))])
    assert ((counts - 200) ** 2 / 200).sum() < 20.5  # chi-square, 5 degrees of freedom: p ≈ 0.001
    lm = LanguageModel(Arbitrary(3))
    first = lm.score("s0 s1 s2 s0", method="chain", order="random", seed=4)
    again = lm.score(["s2 s2", "s0 s1 s2 s0"], method="chain", order="random", seed=4)[1]
    np.testing.assert_array_equal(first.log_probs, again.log_probs)


@pytest.mark.parametrize("samples", [2, 5, 8, 32])
def test_the_bound_is_estimated_without_bias_and_its_error_is_honest(samples):
    lm = LanguageModel(Arbitrary(3))
    x = "s0 s1 s2 s2 s1"
    exact = lm.score(x, method="elbo", samples="all")
    draws = [lm.score(x, method="elbo", samples=samples, seed=seed) for seed in range(300)]
    totals = np.array([draw.total for draw in draws])
    spread = totals.std(ddof=1)
    assert abs(totals.mean() - exact.total) < 4 * spread / np.sqrt(len(draws))
    estimated = np.sqrt(np.mean([draw.standard_error**2 for draw in draws]))
    assert estimated == pytest.approx(spread, rel=0.25)
    by_token = np.mean([draw.log_probs for draw in draws], 0)
    np.testing.assert_allclose(by_token, exact.log_probs, atol=6 * spread / np.sqrt(len(draws)))


def test_the_bound_lies_below_the_probability_it_bounds():
    lm = LanguageModel(Arbitrary(3))
    asked, x = Asked(Arbitrary(3)), [0, 1, 2, 1]
    totals = [
        sum(asked.log_prob(x, set(order[k:]), i) for k, i in enumerate(order))
        for order in itertools.permutations(range(4))
    ]
    mixture = np.logaddexp.reduce(totals) - np.log(len(totals))
    assert lm.score(text(x), method="elbo", samples="all").total < mixture


def test_rank_and_entropy_are_those_of_the_asked_rows():
    lm = LanguageModel(Arbitrary(4))
    x = [3, 0, 2]
    asked = Asked(Arbitrary(4))
    score = lm.score(text(x), method="pll", rank=True, entropy=True)
    for t in range(3):
        row = asked.row(x, {t}, t)
        assert score.rank[t] == 1 + (row > row[x[t]]).sum()
        assert score.entropy[t] == pytest.approx(-(np.exp(row) * row).sum())
    confident_first = lm.score(text(x), method="chain", order="confident", rank=True)
    assert set(confident_first.rank) <= set(range(1, 5))


def test_context_is_shown_and_never_hidden():
    lm = LanguageModel(Arbitrary(3))
    asked = Asked(Arbitrary(3))
    x = [0, 1, 2, 1, 0]
    for method, hides in (
        ("pll", lambda t: {t}),
        ("chain", lambda t: {s for s in (1, 2, 3) if s >= t}),
        ("word_l2r", lambda t: {t}),
    ):
        score = lm.score("s1 s2 s1", method=method, prefix="s0", suffix="s0")
        np.testing.assert_allclose(score.log_probs, [asked.log_prob(x, hides(t), t) for t in (1, 2, 3)], atol=1e-12)
        assert score.text == "s1 s2 s1"
        assert score.offsets.tolist() == [[0, 2], [3, 5], [6, 8]]


@pytest.mark.parametrize("method", ["pll", "chain", "word_l2r", "whole_word"])
def test_a_long_text_is_cut_into_the_windows_with_most_context(method):
    law = Arbitrary(3, max_length=5)
    x = np.random.default_rng(0).integers(0, 3, 13).tolist()
    score = LanguageModel(law).score(text(x), method=method)
    for t in range(13):
        start = min(max(t - 2, 0), 13 - 5)
        hide = {t} if method != "chain" else set(range(t, 13))
        window = [3 if i in hide else x[i] for i in range(start, start + 5)]
        assert score.log_probs[t] == pytest.approx(law.log_probs(window, t - start)[x[t]])
    assert len(score) == 13


def test_a_long_text_under_a_causal_model_keeps_the_most_left_context():
    law = Arbitrary(3, sees="left", max_length=5)  # the start token and four more
    x = np.random.default_rng(0).integers(0, 3, 11).tolist()
    score = LanguageModel(law).score(text(x), method="causal")
    for t in range(11):
        start = 0 if t < 4 else min(-(-(t + 1 - 4) // 2) * 2, 11 - 4)
        window = [law.bos_id, *x[start : start + 4]]
        assert score.log_probs[t] == pytest.approx(law.log_probs(window, t - start + 1)[x[t]])


def test_long_texts_are_asked_in_blocks(monkeypatch):
    import besag.scores.passage

    whole = LanguageModel(Arbitrary(3)).score("s0 s1 s2 " * 5, method="pll")
    bound = LanguageModel(Arbitrary(3)).score("s0 s1 s2 " * 5, method="elbo", samples=12)
    monkeypatch.setattr(besag.scores.passage, "BLOCK", 30)
    monkeypatch.setattr(besag.scores.elbo, "BLOCK", 30)
    np.testing.assert_array_equal(
        LanguageModel(Arbitrary(3)).score("s0 s1 s2 " * 5, method="pll").log_probs, whole.log_probs
    )
    again = LanguageModel(Arbitrary(3)).score("s0 s1 s2 " * 5, method="elbo", samples=12)
    np.testing.assert_array_equal(again.log_probs, bound.log_probs)


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=1, max_size=8),
    st.integers(1, 50),
    st.randoms(use_true_random=False),
)
def test_scores_do_not_depend_on_batch_order_or_duplicates(texts, batch_tokens, random):
    law = Arbitrary(3)
    for method in ("pll", "whole_word", "chain", "elbo", "unmasked"):
        alone = [LanguageModel(law).score(text(x), method=method).log_probs for x in texts]
        order = [*range(len(texts)), *range(len(texts))]
        random.shuffle(order)
        together = LanguageModel(law, batch_tokens=batch_tokens).score([text(texts[i]) for i in order], method=method)
        for position, i in enumerate(order):
            np.testing.assert_array_equal(together[position].log_probs, alone[i])


# ---- what it costs

COSTS = {  # of each method: its options, and by how much the bound may exceed what runs
    "pll": [({}, 1)],
    "word_l2r": [({}, 1)],
    "whole_word": [({}, 1)],  # a word is asked once for each of its tokens
    "unmasked": [({}, 1)],
    "causal": [({}, 1)],
    "chain": [({}, 1), ({"order": "random", "orders": 3}, 1), ({"order": "confident"}, 1)],
    "elbo": [({"samples": 8}, 2), ({"samples": "all"}, 1)],  # subsets drawn twice are run once
    "ag_chain": [({"candidates": 2}, 1.2), ({"candidates": 3, "order": "confident"}, 1.2)],  # so is a copy met twice
    "maskless": [({}, 1)],
}


def test_every_method_has_a_row_of_costs():
    assert COSTS.keys() == METHODS.keys()


@pytest.mark.parametrize(("name", "way", "factor"), [(name, *row) for name, rows in COSTS.items() for row in rows])
@pytest.mark.parametrize("count", [4, 5])
def test_the_cost_is_what_runs(name, way, factor, count):
    """In tokens; of one window."""
    if name == "maskless":
        ran, count, length = masklessly(count)
    else:
        law = Counting(Arbitrary(4, sees=METHODS[name].sees))
        besag.load(law).score(" ".join(f"s{i % 4}" for i in range(count)), name, **way)
        ran, length = sum(map(len, law.sequences)), count
    cost = METHODS[name](**way).cost(count, length)
    assert ran <= cost <= factor * ran


def masklessly(count: int) -> tuple[int, int, int]:
    """Tokens that a network ran for a text of so many words; its tokens, and these with the special ones."""
    lm = besag.load((tiny("bert"), vocabulary("bert").tokenizer))
    network = lm.conditionals
    network.regression = Regression(view_of(network), np.zeros(width(network) + BESIDE))
    text, ran = " ".join(["the", "cat", "sat", "on", "mat"][:count]), []
    [encoded] = lm.vocabulary.encode([text])
    hook = lm.model.bert.embeddings.register_forward_hook(lambda module, given, out: ran.append(out.shape[:2].numel()))
    lm.score(text, "maskless")
    hook.remove()
    return sum(ran), len(encoded.places), len(encoded.ids)


@pytest.mark.parametrize("name", sorted({*METHODS} - {"maskless", "causal"}))
def test_the_cost_of_a_text_in_windows_bounds_what_runs(name):
    law = Counting(Arbitrary(4, max_length=6))
    for way, _ in COSTS[name]:
        if way.get("samples") == "all":
            continue
        law.batches.clear()
        besag.load(law).score(" ".join(f"s{i % 4}" for i in range(20)), name, **way)
        ran, cost = sum(map(len, law.sequences)), METHODS[name](**way).cost(20, 6)
        assert ran <= cost <= 4 * ran, way


def test_a_method_without_a_cost_is_not_registered():
    with pytest.raises(BesagError, match=r"the scoring method 'priceless'.*cost"):

        @METHODS.register
        class Priceless(Method):
            name = "priceless"

            def plan(self, passage):
                raise NotImplementedError

    assert "priceless" not in METHODS


def test_wrong_methods_and_options_are_answered_with_the_nearest():
    lm = LanguageModel(Arbitrary(3))
    with pytest.raises(besag.BesagError, match=r"no scoring method 'pl'.*Did you mean 'pll'"):
        lm.score("s0", method="pl")
    with pytest.raises(besag.BesagError, match=r"'chain' has no option 'ordr'.*'order'"):
        lm.score("s0", method="chain", ordr="random")
    with pytest.raises(besag.BesagError, match=r"order='confidnt'.*'confident'"):
        lm.score("s0", method="chain", order="confidnt")
    with pytest.raises(besag.BesagError, match="only random orders"):
        lm.score("s0", method="chain", orders=3)
    with pytest.raises(besag.BesagError, match="samples=1"):
        lm.score("s0", method="elbo", samples=1)
    with pytest.raises(besag.BesagError, match="no one rank"):
        lm.score("s0", method="elbo", rank=True)
    with pytest.raises(besag.BesagError, match=r"2\^20 subsets"):
        lm.score("s0 " * 20, method="elbo", samples="all")
