"""Questions with a source: the same as without one, on the law given that source; and what is made of sources is kept.

On tables p(x, s) every verb of `lm.given(s)` is held to that of the table p(x | s).
"""

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import networks
from tests.laws import Counting

import besag
import besag.buckets
import besag.sources
from besag.conditionals.contract import SOURCE_MASK, SOURCE_STATES, Given, Questions
from besag.conditionals.given_table import GivenTable
from besag.conditionals.table import Table
from besag.conditionals.tilt import Tilt, Untilted
from besag.engine import IDLE, Engine, Request
from besag.errors import BesagError
from besag.joints import CONSTRUCTIONS
from besag.reductions import Row, Target
from besag.scores import METHODS

WIDTH, PLACES = 3, 4
WEIGHTS = {  # sources of several lengths
    source: np.random.default_rng(seed).gamma(0.6, size=(WIDTH,) * PLACES) + 1e-6
    for seed, source in enumerate(["q", "q r", "r q q", "r"])
}
SOURCES = list(WEIGHTS)
TEXT, MASKED = "s0 s2 s1 s1", "s0 [MASK] s1 [MASK]"


@pytest.fixture(scope="module")
def lm():
    return besag.load(GivenTable(WEIGHTS, name="law"), progress=False)


@cache
def alone(source):
    """The law given this source, as a table of its own."""
    return besag.load(Table(WEIGHTS[source], name="law"), progress=False)


def differences(one, other, at=""):
    """Where two differ in more than rounding, through lists and dicts."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        parts = one.keys() - {"facts", "details"}  # which tell of residuals, of rounding alone
        return [found for key in sorted(parts) for found in differences(one[key], other[key], f"{at}.{key}")]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [found for number, pair in pairs for found in differences(*pair, f"{at}[{number}]")]
    if isinstance(one, float) and isinstance(other, float):
        close = math.isclose(one, other, rel_tol=1e-10, abs_tol=1e-10) or (math.isnan(one) and math.isnan(other))
    else:
        close = one == other
    return [] if close else [f"{at}: {one!r} and {other!r}"]


# ---- every verb, on exact laws

SCORES = sorted(name for name in METHODS if METHODS[name].sees == "both" and name not in ("unmasked", "maskless"))
VERBS = {
    **{f"score {name}": lambda lm, name=name: lm.score(TEXT, name) for name in SCORES},
    "score with ranks": lambda lm: lm.score(TEXT, "pll", rank=True, entropy=True),
    "choose": lambda lm: lm.choose("s0 {} s1 s1", ["s0", "s1", "s2"], of="option"),
    "marginals": lambda lm: lm.marginals(TEXT),
    **{f"joint {name}": lambda lm, name=name: lm.joint(MASKED, method=name) for name in CONSTRUCTIONS},
    "joint of candidates": lambda lm: lm.joint(MASKED, candidates=2),
    "joint of three": lambda lm: lm.joint("s0 [MASK] [MASK] [MASK]"),
    "comparison": lambda lm: lm.joint(TEXT, positions=(0, 1)).compare(),
    "fill": lambda lm: lm.fill(MASKED, k=3),
    "fill by a beam": lambda lm: lm.fill("[MASK] [MASK] [MASK] [MASK]", k=3, beam=4),
    "solve": lambda lm: lm.solve(MASKED, [besag.Forbidden("s2")], solutions=2),
    "augment": lambda lm: lm.augment(TEXT, copies=2, share=0.5, similarity=None),
    "edit": lambda lm: lm.edit(TEXT, {0: "s1"}),
    "normalise": lambda lm: lm.normalise([TEXT], chains=4, levels=3)[0],
    "dependence": lambda lm: lm.dependence(TEXT, candidates=3),
    "rectangles": lambda lm: lm.rectangles(TEXT, minors=5),
    "pairs": lambda lm: lm.pairs([TEXT], pairs="contiguous", per_text=2, candidates=3),
    **{
        f"sample {name}": lambda lm, name=name: lm.sample(MASKED, name, chains=5, steps=4, seed=3)
        for name in ("gibbs", "ordered", "mask_predict", "adaptive", "entropy_bound", "metropolis", "remask")
    },
}


@pytest.mark.parametrize("verb", VERBS)
def test_given_a_source_every_verb_is_that_of_the_conditional_law(lm, verb):
    found = {source: VERBS[verb](lm.given(source)).to_dict() for source in SOURCES[:3]}
    for source, answer in found.items():
        assert differences(answer, VERBS[verb](alone(source)).to_dict()) == []
    assert any(differences(*pair) for pair in combinations(found.values(), 2))  # the source is not ignored


@pytest.mark.parametrize("method", SCORES)
@given(seed=st.integers(0, 1000), budget=st.integers(1, 200))
@settings(max_examples=3, deadline=None)
def test_many_sources_in_one_batch_change_nothing(method, seed, budget):
    generator = np.random.default_rng(seed)
    texts = [" ".join(f"s{symbol}" for symbol in row) for row in generator.integers(0, WIDTH, (8, PLACES))]
    sources = [SOURCES[which] for which in generator.integers(0, len(SOURCES), 8)]
    lm = besag.load(GivenTable(WEIGHTS, name="law"), batch_tokens=budget, progress=False)
    for text, source, found in zip(texts, sources, lm.score(texts, method, sources=sources), strict=True):
        assert differences(found.to_dict(), alone(source).score(text, method).to_dict()) == []


def test_probabilities_sum_to_one_given_each_source_and_bayes_holds(lm):
    """Σ_x p(x | s) = 1, and p(x, s) = p(x | s) p(s) is the table."""
    every = [" ".join(f"s{symbol}" for symbol in index) for index in np.ndindex(*[WIDTH] * PLACES)]
    for source in SOURCES:
        totals = np.array([score.total for score in lm.score(every, "chain", sources=source)])
        assert abs(np.exp(totals).sum() - 1) < 1e-10
        np.testing.assert_allclose(np.exp(totals) * WEIGHTS[source].sum(), WEIGHTS[source].ravel(), rtol=1e-9)


# ---- the engine


def asked(source, ids=((0, 3, 1, 3),), place=(1,)):
    law = GivenTable(WEIGHTS)
    return Request(
        (Row(),), np.array(ids), np.zeros(len(place), np.int64), np.array(place),
        given=Given.one(law.source_ids([source])[0], len(ids)),
    )  # fmt: skip


def test_the_same_question_about_the_same_source_runs_once_and_about_another_again():
    law = Counting(GivenTable(WEIGHTS))

    def plan(source):
        return (yield asked(source))["row"][0]

    rows = list(Engine(law, progress=False).run([plan(source) for source in ("q", "r", "q", "q r", "q")]))
    assert len(law.sequences) == 3  # q, r and q r
    assert len(law.batches) == 1
    np.testing.assert_array_equal(rows[0], rows[2])
    np.testing.assert_array_equal(rows[0], rows[4])
    assert abs(rows[0] - rows[1]).max() > 1e-3
    assert abs(rows[0] - rows[3]).max() > 1e-3


def test_a_question_keeps_its_own_source(lm):
    given, plain = lm.given("r").engine, alone("q").engine
    ids, row, place = torch.tensor([[0, 3, 1, 3]]), torch.tensor([0]), torch.tensor([1])
    own = Questions(ids, row, place, given=Given.one(lm.conditionals.source_ids(["q"])[0], 1))
    for asks in (given.answer, lambda *what: {key: value.numpy() for key, value in given.ask(*what).items()}):
        found, expected = asks(own, Row())["row"], plain.answer(own._replace(given=None), Row())["row"]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_what_is_streamed_is_given_the_source_too(lm):
    found = torch.empty(3, WIDTH, dtype=torch.float64)
    ids = torch.tensor([[0, 3, 1, 3], [1, 3, 1, 3], [2, 3, 1, 3]])
    questions = Questions(ids, torch.arange(3), torch.ones(3, dtype=torch.long))
    lm.given("q r").engine.stream(questions, Row(), lambda asks, kept: found[asks].copy_(kept["row"]))
    expected = alone("q r").engine.answer(questions, Row())["row"]
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


# ---- a network


TEXTS = ["the cat sat", "the dog ran away", "a cat", "the old dog sat", "the cat sat", "a dog ran", "the cat"]
GIVEN = ["a dog", "the cat", "a", "a dog ran", "the cat", "a dog", "a dog"]


@pytest.fixture
def network():
    return networks.Given()


def afresh(network, text, source):
    """The PLL of a text given its source, the encoder run for each of its places."""
    [encoded], [ids] = network.vocabulary.encode([text]), network.source_ids([source])
    total = 0.0
    with torch.no_grad():
        for place in encoded.places.tolist():
            hidden = torch.from_numpy(encoded.ids)[None].clone()
            hidden[0, place] = network.vocabulary.mask_id
            states = network.encoder(torch.from_numpy(ids)[None]).last_hidden_state
            logits = network.model(input_ids=hidden, encoder_hidden_states=states).logits[0, place]
            total += float(torch.log_softmax(logits.double(), -1)[encoded.ids[place]])
    return total


@pytest.mark.parametrize("budget", [1, 40, None])
def test_shared_states_give_the_numbers_of_computing_afresh(network, budget, monkeypatch):
    """Whatever stands beside it: texts and sources of other lengths, both padded to run together."""
    monkeypatch.setattr(besag.buckets, "PADDING", 0.9)
    ran, rows = [], network.rows
    monkeypatch.setattr(network, "rows", lambda asked: ran.append({*asked.context}) or rows(asked))
    lm = besag.load(network, batch_tokens=budget, progress=False)
    scores = lm.score(TEXTS, sources=GIVEN)
    assert ({SOURCE_STATES, SOURCE_MASK, "attention_mask"} in ran) == (budget is None)
    assert all(SOURCE_STATES in context for context in ran)
    for text, source, score in zip(TEXTS, GIVEN, scores, strict=True):
        assert abs(score.total - afresh(network, text, source)) < 1e-5 * max(1, abs(score.total))


def test_one_encoder_pass_for_each_distinct_source_whatever_is_asked(network):
    lm = besag.load(network, progress=False)
    lm.score(TEXTS, sources=GIVEN)
    lm.score(TEXTS, "chain", sources=GIVEN)
    for source in dict.fromkeys(GIVEN):
        given = lm.given(source)
        given.joint("the [MASK] [MASK]", candidates=3)
        given.sample("the [MASK] [MASK]", "gibbs", chains=3, steps=5)
        given.fill("the [MASK]", k=2)
    encoded = [tuple(row) for batch in network.encoded for row in batch]
    unpadded = [tuple(token for token in row if token != network.vocabulary.pad_id) for row in encoded]
    assert sorted(unpadded) == sorted({tuple(ids.tolist()) for ids in network.source_ids(GIVEN)})


def test_what_is_forgotten_is_encoded_again_with_the_same_numbers(network, monkeypatch):
    lm = besag.load(network, progress=False)
    first = [score.total for score in lm.score(TEXTS, sources=GIVEN)]
    monkeypatch.setitem(besag.sources.KEPT_BYTES, "cpu", 1)
    lm = besag.load(network, batch_tokens=10, progress=False)
    again = [score.total for score in lm.score(TEXTS, sources=GIVEN)]
    np.testing.assert_allclose(again, first, rtol=1e-5)
    assert not lm.engine.sources.kept
    assert sum(map(len, network.encoded)) > 2 * len(set(GIVEN))


def test_a_run_that_goes_on_has_the_same_bytes(network):
    """Where runs may stop and go on, sources are read anew: their batches depend on what is asked from there on."""

    def answers(texts, sources):
        lm = besag.load(network, progress=False)
        lm.engine.repeat()
        plain = [text for text in texts if text is not IDLE]
        found = lm.score(iter(texts), sources=iter(sources))
        return dict(zip(plain, [score.log_probs.tobytes() for score in found], strict=True))

    whole = answers(["the cat", IDLE, "a dog ran", "the dog"], ["a dog", "a cat", "a dog"])
    encoded, network.encoded = network.encoded, []
    rest = answers(["a dog ran", "the dog"], ["a cat", "a dog"])
    assert {text: whole[text] for text in rest} == rest
    assert encoded[1:] == network.encoded
    assert len(network.encoded[0]) == 2  # together, as the run that went on has them


def test_the_least_recently_used_is_forgotten_first(network, monkeypatch):
    sources = network.source_ids(["a", "the", "cat", "dog", "ran"])
    engine = Engine(network, progress=False)
    a, the, cat = engine.encoded(sources[:3])
    monkeypatch.setitem(besag.sources.KEPT_BYTES, "cpu", a.nbytes + the.nbytes + cat.nbytes)
    engine.encoded(sources[:1])
    engine.encoded(sources[3:4])
    kept = [tuple(np.frombuffer(key, np.int64)) for key in engine.sources.kept]
    assert tuple(sources[0]) in kept
    assert tuple(sources[1]) not in kept


def test_sources_of_similar_lengths_are_encoded_together_and_others_apart(network):
    engine = Engine(network, progress=False)
    found = engine.encoded([np.array([2, 5, 6, 7, 3]), np.array([2, 3]), np.array([2, 5, 6, 3]), np.array([2, 3])])
    assert [len(one) for one in found] == [5, 2, 4, 2]
    assert [len(batch) for batch in network.encoded] == [2, 1]
    network.pads = False
    assert [len(one) for one in Engine(network).encoded([np.array([2, 5, 3]), np.array([2, 3])])] == [3, 2]
    assert [len(batch) for batch in network.encoded[2:]] == [1, 1]


def test_a_chain_on_many_sources_is_that_on_each(network):
    """Chains of one canvas, given other sources: the same tokens as each alone, and one encoder pass a source."""
    from besag.samplers import Canvas, Noise, kernel
    from besag.samplers.run import walk

    [encoded] = network.vocabulary.encode(["the [MASK] [MASK] sat"])
    ids = torch.from_numpy(encoded.ids).repeat(4, 1)
    given = Given(tuple(network.source_ids(["a dog", "the cat"])), np.array([0, 1, 1, 0]))
    canvas = Canvas(ids, ids == network.vocabulary.mask_id, network.vocabulary.mask_id, given=given)
    engine, moves = Engine(network, progress=False), kernel("mask_predict", iterations=2, pick="sample")
    *_, (state, _) = walk(engine, moves, canvas, Noise(1, torch.arange(4)))
    assert sum(map(len, network.encoded)) == 2
    for number, which in enumerate(given.which.tolist()):
        some = canvas.rows(torch.tensor([number]))._replace(given=None)
        own = engine.given(given.sources[which])
        *_, (single, _) = walk(own, moves, some, Noise(1, torch.tensor([number])))
        assert torch.equal(single.ids[0], state.ids[number])


def test_wrapped_conditionals_take_a_source_too(network):
    wrapped = Untilted(network, Tilt(np.zeros(network.width), "none"))
    plain, tilted = besag.load(network, progress=False), besag.load(wrapped, progress=False)
    assert abs(tilted.given("a dog").score("the cat").total - plain.given("a dog").score("the cat").total) < 1e-5
    rows = plain.given("a dog").augment("the cat sat", copies=1, share=0.5, similarity=-1.0)
    assert len(rows) == 1


# ---- what is refused


def test_a_model_that_needs_a_source_says_so(lm):
    for ask in (lambda: lm.score(TEXT), lambda: lm.joint(MASKED), lambda: lm.sample(MASKED, steps=1)):
        with pytest.raises(BesagError, match=r"'law' answers about a text given its source, and no source was given"):
            ask()


def test_a_model_that_takes_none_says_so():
    plain = alone("q")
    with pytest.raises(BesagError, match=r"'law' takes no source: it knows p\(text\)"):
        plain.given("q")
    with pytest.raises(BesagError, match="'law' takes no source"):
        plain.score(TEXT, sources="q")
    with pytest.raises(BesagError, match="'law' takes no source"):
        next(plain.engine.run([(lambda: (yield asked("q")))()]))


def test_a_source_is_said_once(lm):
    with pytest.raises(BesagError, match="is given a source already"):
        lm.given("q").score(TEXT, sources="r")
    assert "given 'q'" in repr(lm.given("q"))
    assert lm.given("q").given("r").score(TEXT).total == lm.given("r").score(TEXT).total


def test_a_recorded_chain_goes_on_with_its_own_source_only(lm, tmp_path):
    record = {"kernel": "gibbs", "chains": 2, "seed": 1, "record": tmp_path / "chains.jsonl"}
    lm.given("q").sample(MASKED, steps=3, **record)
    for other in (lm.given("q r"), alone("q")):
        with pytest.raises(BesagError, match="is a run with other settings: source"):
            other.sample(MASKED, steps=6, resume=True, **record)
    whole = lm.given("q").sample(MASKED, kernel="gibbs", chains=2, seed=1, steps=6)
    assert lm.given("q").sample(MASKED, steps=6, resume=True, **record).texts == whole.texts


def test_as_many_sources_as_texts(lm):
    with pytest.raises(BesagError, match="sources: 1 were given for 2 texts"):
        lm.score([TEXT, TEXT], sources=["q"])
    with pytest.raises(BesagError, match="there is more in sources"):
        list(lm.score(iter([TEXT]), sources=iter(["q", "r"])))
    with pytest.raises(BesagError, match="give a text"):
        lm.score([TEXT], sources=[3])


def test_long_sources_and_targets_are_refused_and_of_rows_told(network):
    lm = besag.load(network, progress=False)
    with pytest.raises(BesagError, match=r"the source 'a a .* has 22 tokens, special ones included, .* reads 12"):
        lm.given("a " * 20)
    with pytest.raises(BesagError, match="half a surrogate pair"):
        lm.given("\ud800")
    with pytest.raises(BesagError, match="a source has 30 tokens, special ones included, and 'given' reads 12"):
        lm.engine.encoded([np.ones(30, np.int64)])
    with pytest.raises(BesagError, match="a source without tokens"):
        lm.engine.encoded([np.ones(0, np.int64)])
    sources = ["a", None, "a " * 20, "\ud800"]
    found = lm.score(["the cat"] * 4, sources=sources)
    assert [score.status for score in found] == ["ok", "no context", "long source", "undecodable"]
    assert lm.score("the " * 60, sources="a").status == "long"  # no window of it goes with the source
    assert lm.given("a").score("the " * 60).status == "long"


def test_what_is_padded_of_the_batch_is_counted():
    """A source is looked at from every place, so it counts in the budget of a batch."""
    law = Counting(GivenTable({"q " * 36: WEIGHTS["q"], "r": WEIGHTS["r"]}))
    engine = Engine(law, batch_tokens=80, progress=False)
    engine.answer(
        Questions(
            torch.tensor([[symbol, 3, other, 3] for symbol in range(3) for other in range(3)]),
            torch.arange(9),
            torch.ones(9, dtype=torch.long),
            torch.zeros(9, dtype=torch.long),
            given=Given.one(law.source_ids(["q " * 36])[0], 9),
        ),
        Target(),
    )
    assert [len(batch) for batch in law.batches] == [3, 2, 2, 2]  # 4 + 36 tokens each, evenly
