"""Explanations on exact laws, against plain loops over the law itself; and what must be so on any conditionals."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import networks
from tests.laws import Arbitrary, Counting

import besag
from besag.conditionals.transformer import Transformer
from besag.engine import Engine
from besag.errors import BesagError
from besag.explanation import REMOVALS
from besag.explanation.explaining import explain

WIDTH, PLACES = 3, 4
LAW = besag.Table.random(WIDTH, PLACES, seed=3, concentration=1.0)
WEIGHTS = LAW.log_probs.exp().numpy()
TEXT, MASKED, AT, TOKEN = (0, 2, 1, 1), "s0 s2 [MASK] s1", 2, 1


def chance(shown: dict[int, int], weights: np.ndarray = WEIGHTS) -> float:
    """Σ of the law over everything that is not shown."""
    return float(weights[tuple(shown.get(place, slice(None)) for place in range(weights.ndim))].sum())


def log_odds(p: float) -> float:
    return math.log(p) - math.log1p(-p)


def given_shown(shown: dict[int, int], place: int, token: int) -> float:
    return chance({**shown, place: token}) / chance(shown)


def by_enumeration() -> list[float]:
    """Input marginalisation of p(token 1 at place 2), as its definition says."""
    shown = {place: TEXT[place] for place in range(PLACES) if place != AT}
    values = []
    for place in shown:
        rest = {other: token for other, token in shown.items() if other != place}
        mixed = sum(
            given_shown(rest, place, token) * given_shown({**rest, place: token}, AT, TOKEN) for token in range(WIDTH)
        )
        values.append(log_odds(given_shown(shown, AT, TOKEN)) - log_odds(mixed))
    return values


def test_marginalisation_is_the_sum_over_replacements():
    found = explain(Engine(LAW), MASKED, "s1", candidates="all")
    assert found.values == pytest.approx(by_enumeration(), abs=1e-12)
    assert found.positions == (0, 1, 3)
    assert math.exp(found.log_prob) == pytest.approx(given_shown({0: 0, 1: 2, 3: 1}, AT, TOKEN), rel=1e-12)
    assert (found.unit, found.lost) == ("log odds", pytest.approx(0, abs=1e-12))


def test_on_a_law_the_mask_says_what_marginalisation_says():
    """Σ_v p(v | rest) p(y | v, rest) = p(y | rest): the law of total probability."""
    mask = explain(Engine(LAW), MASKED, "s1", method="mask")
    assert mask.values == pytest.approx(by_enumeration(), abs=1e-12)


def test_off_a_law_they_differ_and_each_is_its_definition():
    model = Arbitrary(WIDTH)
    ids, hidden = [0, 2, WIDTH, 1], WIDTH
    p = lambda context: math.exp(model.log_probs(context, AT)[TOKEN])  # noqa: E731
    found = {name: explain(Engine(model), MASKED, "s1", method=name) for name in ("marginalise", "mask", "delete")}
    for row, place in enumerate((0, 1, 3)):
        without = [*ids[:place], hidden, *ids[place + 1 :]]
        q = np.exp(model.log_probs(without, place))
        mixed = sum(q[v] * p([*ids[:place], v, *ids[place + 1 :]]) for v in range(WIDTH))
        gone = ids[:place] + ids[place + 1 :]
        moved = AT - (place < AT)
        deleted = math.exp(model.log_probs(gone, moved)[TOKEN])
        for name, after in (("marginalise", mixed), ("mask", p(without)), ("delete", deleted)):
            assert found[name].values[row] == pytest.approx(log_odds(p(ids)) - log_odds(after), abs=1e-9)
    assert not np.allclose(found["marginalise"].values, found["mask"].values, atol=0.01)


def test_few_candidates_are_the_likeliest_renormalised_and_what_is_lost_is_told():
    model, lost = Arbitrary(WIDTH), []
    found = explain(Engine(model), MASKED, "s1", candidates=2)
    ids = [0, 2, WIDTH, 1]
    for row, place in enumerate((0, 1, 3)):
        without = [*ids[:place], WIDTH, *ids[place + 1 :]]
        q = np.exp(model.log_probs(without, place))
        first = np.argsort(-q)[:2]
        lost.append(1 - q[first].sum())
        mixed = sum(
            q[v] / q[first].sum() * math.exp(model.log_probs([*ids[:place], int(v), *ids[place + 1 :]], AT)[TOKEN])
            for v in first
        )
        before = math.exp(model.log_probs(ids, AT)[TOKEN])
        assert found.values[row] == pytest.approx(log_odds(before) - log_odds(mixed), abs=1e-9)
    assert found.lost == pytest.approx(np.mean(lost), abs=1e-12)


def test_a_token_that_the_rest_gives_away_adds_nothing():
    """The objection of Pham et al. (2022): q is 1 there, whatever the prediction makes of the token."""
    weights = np.zeros((2, 2, 2))
    for first, last in itertools.product(range(2), repeat=2):
        weights[first, first, last] = 0.4 if first == last else 0.1  # the second symbol is always the first
    found = explain(Engine(besag.Table(weights)), "s0 s0 [MASK]", "s0")
    assert found.values == pytest.approx([0.0, 0.0], abs=1e-12)


def test_a_score_is_explained_by_pointwise_information_given_the_rest():
    text = "s0 s2 s1 s1"
    found = explain(Engine(LAW), text, method="marginalise", candidates="all")
    for i in range(PLACES):
        total = 0.0
        for j in range(PLACES):
            if j == i:
                continue
            rest = {place: TEXT[place] for place in range(PLACES) if place not in (i, j)}
            both = given_shown(rest, i, TEXT[i]) * given_shown({**rest, i: TEXT[i]}, j, TEXT[j])
            total += math.log(both / (given_shown(rest, i, TEXT[i]) * given_shown(rest, j, TEXT[j])))
        assert found.values[i] == pytest.approx(total, abs=1e-9)
    assert found.log_prob == pytest.approx(besag.load(LAW).score(text, "pll").total, abs=1e-9)
    assert (found.unit, found.positions) == ("nats", (0, 1, 2, 3))


def test_several_masks_are_filled_one_after_the_other():
    found = explain(Engine(LAW), "s0 [MASK] [MASK] s1", ["s2", "s1"], method="mask")
    shown = {0: 0, 3: 1}
    p = lambda shown: chance({**shown, 1: 2, 2: 1}) / chance(shown)  # noqa: E731
    assert math.exp(found.log_prob) == pytest.approx(p(shown), rel=1e-10)
    for row, place in enumerate((0, 3)):
        rest = {other: token for other, token in shown.items() if other != place}
        assert found.values[row] == pytest.approx(log_odds(p(shown)) - log_odds(p(rest)), abs=1e-10)


def test_a_named_place_is_hidden_and_its_own_token_explained():
    named = explain(Engine(LAW), "s0 s2 s1 s1", positions=[AT])
    assert named.values == pytest.approx(explain(Engine(LAW), MASKED, "s1").values, abs=1e-12)


def test_without_a_target_the_likeliest_filling_is_explained():
    found = explain(Engine(LAW), MASKED)
    likeliest = max(range(WIDTH), key=lambda token: given_shown({0: 0, 1: 2, 3: 1}, AT, token))
    assert found.prediction == f"p('s{likeliest}' at token 2)"


# ---- labels


class Exact:
    """A classifier whose label is the last symbol of a law: it knows what a mask means."""

    name, labels, max_length = "exact", ("s0", "s1", "s2"), None

    def __init__(self, knows_masks: bool = True) -> None:
        symbols = [f"s{number}" for number in range(WIDTH)]
        self.vocabulary = besag.Table(np.ones((WIDTH,)), symbols=symbols).vocabulary
        self.knows_masks = knows_masks

    def logits(self, ids):
        rows = []
        for own in ids.tolist():
            shown = {place: token for place, token in enumerate(own) if token != WIDTH}
            if len(shown) < len(own) and not self.knows_masks:
                rows.append([0.0, 5.0, 0.0])  # never seen before: anything may be said
            else:
                rows.append([math.log(chance({**shown, len(own): label})) for label in range(WIDTH)])
        return np.array(rows)


def reader() -> Engine:
    """The law of the text alone, without its label."""
    return Engine(besag.Table(WEIGHTS.sum(-1)))


@pytest.mark.parametrize("label", ["s0", "s2"])
def test_a_label_is_explained_by_the_sum_over_replacements(label):
    found = explain(reader(), "s0 s2 s1", classifier=Exact(), label=label, candidates="all")
    shown, number = {0: 0, 1: 2, 2: 1}, int(label[1])
    for place in range(3):
        rest = {other: token for other, token in shown.items() if other != place}
        after = given_shown(rest, PLACES - 1, number)
        before = given_shown(shown, PLACES - 1, number)
        assert found.values[place] == pytest.approx(log_odds(before) - log_odds(after), abs=1e-10)
    assert (found.prediction, found.model) == (f"p('{label}')", "exact ← table")


def test_a_classifier_that_knows_masks_needs_no_replacements_and_others_do():
    knows, strange = Exact(), Exact(knows_masks=False)
    said = {
        (one.knows_masks, method): explain(reader(), "s0 s2 s1", classifier=one, label="s1", method=method).values
        for one in (knows, strange)
        for method in ("marginalise", "mask")
    }
    assert said[True, "mask"] == pytest.approx(said[True, "marginalise"], abs=1e-10)
    assert said[False, "marginalise"] == pytest.approx(said[True, "marginalise"], abs=1e-10)  # it never sees a mask
    assert not np.allclose(said[False, "mask"], said[True, "mask"], atol=0.1)


def test_the_label_that_it_gives_is_explained_if_none_is_named():
    found = explain(reader(), "s0 s2 s1", classifier=Exact())
    best = max(range(WIDTH), key=lambda label: chance({0: 0, 1: 2, 2: 1, 3: label}))
    assert found.prediction == f"p('s{best}')"


# ---- what holds everywhere


@given(seed=st.integers(0, 200), budget=st.integers(1, 60), method=st.sampled_from(sorted(REMOVALS)))
@settings(max_examples=15, deadline=None)
def test_batches_change_nothing(seed, budget, method):
    words = " ".join(f"s{token}" for token in np.random.default_rng(seed).integers(0, 3, 4))
    text = f"{words} [MASK]"
    whole = explain(Engine(Arbitrary(3)), text, "s1", method=method)
    parts = explain(Engine(Arbitrary(3), batch_tokens=budget), text, "s1", method=method)
    assert parts.values == pytest.approx(whole.values, abs=1e-12)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_on_any_law_masking_is_marginalising(seed):
    law = besag.Table.random(3, 3, seed=seed, concentration=1.0)
    one, other = (explain(Engine(law), "s0 [MASK] s2", "s1", method=name) for name in ("mask", "marginalise"))
    assert one.values == pytest.approx(other.values, abs=1e-8)


def test_what_it_costs():
    counted = Counting(Arbitrary(3))
    explain(Engine(counted), "s0 s1 s2 [MASK]", "s1")
    assert len(set(counted.sequences)) <= 1 + 3 + 3 * 3


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_a_network_is_asked_as_transformers_would(family):
    import torch

    network, words = networks.tiny(family), networks.vocabulary(family)
    lm = besag.load((network, words.tokenizer), device="cpu", dtype="float32", progress=False)
    text = f"The cats {words.mask_token} on the mat."
    found = lm.explain(text, method="mask")
    [encoded] = words.encode([text])
    hidden = int(np.flatnonzero(encoded.ids == words.mask_id)[0])

    def log_probs(ids):
        with torch.no_grad():
            logits = network.eval()(torch.tensor(ids)[None]).logits[0, hidden]
        return torch.log_softmax(logits.double(), -1)

    plain = log_probs(encoded.ids)
    token = next(int(one) for one in plain.argsort(descending=True) if int(one) not in words.special_ids)
    assert found.log_prob == pytest.approx(float(plain[token]), abs=1e-4)
    for value, place in zip(found.values, found.positions, strict=True):
        ids = encoded.ids.copy()
        ids[place] = words.mask_id
        after = math.exp(float(log_probs(ids)[token]))
        assert value == pytest.approx(log_odds(math.exp(float(plain[token]))) - log_odds(after), abs=2e-3)
    assert hidden not in found.positions
    assert 0 not in found.positions  # [CLS]
    assert np.isfinite(lm.explain(text, candidates=4).values).all()


def test_what_cannot_be_explained_is_refused():
    engine = Engine(LAW)
    cases = {
        "label='x' is of a classifier": lambda: explain(engine, MASKED, label="x"),
        "'exact' knows s0, s1, s2": lambda: explain(reader(), "s0 s2 s1", classifier=Exact(), label="s9"),
        "target and positions are for fillings": lambda: explain(reader(), "s0 s2 s1", "s0", classifier=Exact()),
        "name a token for each of the 1 places": lambda: explain(engine, MASKED, ["s0", "s1"]),
        "there is no way to explain 'mrginalise'. Did you mean 'marginalise'": lambda: explain(
            engine, MASKED, method="mrginalise"
        ),
        "a curve of faithfulness is of one prediction": lambda: explain(engine, "s0 s2 s1 s1", curve=True),
        "candidates=0": lambda: explain(engine, MASKED, candidates=0),
        "orders=0": lambda: explain(engine, MASKED, orders=0),
        "needs a masked model": lambda: explain(Engine(Arbitrary(3, sees="left")), "s0 s1"),
        "no token that": lambda: explain(Engine(besag.Table(np.ones((2, 2)))), "[MASK] [MASK]"),
        "reads other tokens": lambda: explain(Engine(besag.Table(np.ones((2, 2, 2)))), "s0 s1 s1", classifier=Exact()),
    }
    for said, run in cases.items():
        with pytest.raises(BesagError) as refused:
            run()
        assert said in str(refused.value)


def test_what_has_no_chance_is_refused():
    law = besag.Table([[0.5, 0.0], [0.25, 0.25]])
    with pytest.raises(BesagError, match="there is nothing to explain"):
        explain(Engine(law), "s0 [MASK]", "s1")


def test_a_network_says_nothing_of_a_text_beyond_its_places():
    words = networks.vocabulary("bert")
    engine = Engine(Transformer(networks.tiny("bert"), words, "tiny"))
    long = " ".join(["cats"] * 60)
    with pytest.raises(BesagError, match="are seen: shorten it"):
        explain(engine, long)
    windowed = explain(engine, f"{long} [MASK] cats", method="mask")  # a window around the mask
    assert 10 < len(windowed.values) < 40
    assert max(windowed.positions) == 62
