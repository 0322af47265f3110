"""Solutions against brute force: all of them, no others, and a clear word when there are none."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.constraints.small import SYMBOLS, constraints, demanded, law, texts
from tests.laws import Arbitrary, Counting

from besag.conditionals.table import Table
from besag.constraints import Forbidden, Length, Pattern, Predicate, Required, Word, solve
from besag.constraints.search import luby
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, conditional, follows, number, sequences

TEMPLATES = ["[MASK]", "[MASK] [MASK]", "[MASK] [MASK] [MASK]", "a [MASK] [MASK]", "[MASK] b. [MASK]", "- [MASK] ab"]


def solved(conditionals, template, demands, **options):
    return solve(Engine(conditionals, progress=False), template, demands, **options)


def every(template, demands):
    """What satisfies all demands, by their definitions."""
    found = texts(template)
    return {ids for ids, text in found.items() if all(demanded(each, template, ids, text) for each in demands)}


# ---- which solutions there are


@st.composite
def problems(draw):
    template = draw(st.sampled_from(TEMPLATES))
    return template, draw(st.lists(constraints(template.count("[MASK]")), min_size=1, max_size=3))


@given(problems(), st.sampled_from(["domain", "left", "entropy"]))
@settings(max_examples=80, deadline=None)
def test_every_solution_is_found_and_nothing_else(problem, order):
    template, demands = problem
    expected = every(template, demands)
    table = law(len(template.split()))
    found = solved(table, template, demands, solutions=None, top_k=None, budget=10_000, order=order)
    assert len(found.ids) == len(set(found.ids))
    assert set(found.ids) == expected
    assert found.status == ("all" if expected else "unsatisfiable")
    assert set(found.texts) == {texts(template)[ids] for ids in expected}


@given(problems(), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_a_sampled_solution_is_one_and_none_is_said_only_if_there_is_none(problem, seed):
    template, demands = problem
    expected = every(template, demands)
    table = law(len(template.split()))
    found = solved(table, template, demands, sample=True, solutions=3, seed=seed, top_k=None, budget=10_000)
    assert set(found.ids) <= expected
    assert found.status == ("solved" if expected else "unsatisfiable")
    assert len(found) == (3 if expected else 0)


def test_few_candidates_and_few_passes_prove_nothing():
    template, demands = "[MASK] [MASK] [MASK]", [Predicate(lambda text: text == "- - -", name="three strokes")]
    table = Table(np.array([0.4, 0.3, 0.2, 0.06, 0.04])[:, None, None] * np.ones((5, 5, 5)), SYMBOLS)
    few = solved(table, template, demands, top_k=2)
    assert few.status == "not found"
    assert "raise top_k" in few.facts[0]
    assert "three strokes" in few.facts[1]
    short = solved(table, template, demands, budget=4, top_k=None)
    assert (short.status, short.passes) == ("budget", 4)
    assert "budget of 4 passes" in short.facts[0]
    assert solved(table, template, demands, top_k=None).texts == ("- - -",)


@pytest.mark.parametrize("demand", [Pattern(".*", number=1), Pattern("(?!x).*", number=-2), Predicate(len, number=5)])
def test_a_word_that_is_not_there_satisfies_nothing(demand):
    assert solved(law(1), "[MASK]", [demand], top_k=None).status == "unsatisfiable"
    anything = Predicate(lambda word: True, number=demand.number)
    assert solved(law(1), "[MASK]", [anything], top_k=None).status == "unsatisfiable"


def test_enough_is_enough_even_if_there_are_no_more():
    found = solved(law(1), "[MASK]", [Pattern("-", place=0)])
    assert (found.texts, found.status, found.passes) == (("-",), "solved", 1)
    more = solved(law(1), "[MASK]", [Pattern("-|a", place=0)], solutions=5, top_k=None)
    assert (set(more.texts), more.status) == ({"-", "a"}, "all")


# ---- contradictions that need no pass


@pytest.mark.parametrize(
    ("template", "demands", "told"),
    [
        ("[MASK]", [Required("a b")], "no text satisfies: the word 'a b' is required; the tokenizer spells it with 2"),
        ("[MASK] a", [Word("b", number=1)], "no text satisfies: the word 'b' is word number 1"),
        ("b [MASK]", [Forbidden("b")], "no text satisfies: the word 'b' is forbidden"),
        ("[MASK] [MASK]", [Required("ab"), Forbidden("ab")], "both: the word 'ab' is required, and the word 'ab' is f"),
        ("[MASK] [MASK]", [Word("a", place=0), Word("b", place=0)], "both: the word 'a' begins at place 0, and the"),
        ("[MASK] [MASK]", [Required("a b"), Length(most=2)], "no text satisfies"),
        (
            "[MASK] [MASK]",
            [Required("ab"), Length(most=3)],
            "both: the word 'ab' is required, and at most 3 characters",
        ),
        ("[MASK] [MASK]", [Length(6)], "no text satisfies: at least 6 characters"),
        ("[MASK] [MASK]", [Length(most=2)], "no text satisfies: at most 2 characters"),
        ("a [MASK]", [Length(3, of="words")], "no text satisfies: at least 3 words"),
        ("[MASK] [MASK]", [Pattern("x+", place=1)], "place 1 matches 'x.': nothing is left for place 1"),
        ("[MASK] [MASK]", [Pattern("a b x")], "no text satisfies: the text matches 'a b x'"),
        ("[MASK]", [Predicate(str.isdigit, place=0)], "place 0 passes 'isdigit': nothing is left for place 0"),
        ("[MASK] [MASK]", [Required("zebra")], "'zebra' is required; no tokens of this vocabulary"),
    ],
)
def test_plain_contradictions_are_named_before_the_model_is_asked(template, demands, told):
    assert not every(template, demands)
    network = Counting(law(len(template.split())))
    found = solved(network, template, demands)
    assert (found.status, found.passes, len(found)) == ("unsatisfiable", 0, 0)
    assert not network.sequences
    assert re.search(told, found.facts[0]), found.facts


def test_what_only_a_search_can_refute_is_told_with_what_failed():
    demands = [Required("a"), Required("b"), Required("ab")]  # any two fit into two places
    found = solved(law(2), "[MASK] [MASK]", demands, top_k=None)
    assert found.status == "unsatisfiable"
    assert found.passes > 0
    assert found.facts[0] == "no text satisfies the constraints: every token was tried at every place"
    assert "is required, at place" in found.facts[1]


# ---- from which law


def chain_law(conditionals, places, keep=None, temperature=1.0, top_k=None):
    """(V^n,) left to right, each token from its row, cut to what is kept at its place and to the likeliest."""
    width = conditionals.width
    keep = np.ones((places, width), bool) if keep is None else keep
    found = np.zeros(width**places)
    for at, sequence in enumerate(sequences(width, places)):
        p = 1.0
        for place in range(places):
            row = np.where(keep[place], conditional(conditionals, sequence, list(range(place, places)), place), 0)
            if top_k is not None:
                row = np.where(row >= np.sort(row)[-top_k], row, 0)
            row = row ** (1 / temperature)
            p *= row[sequence[place]] / row.sum()
        found[at] = p
    return found


def first_solutions(conditionals, places, demands=(), count=1200, **options):
    found = solved(conditionals, places, list(demands), sample=True, solutions=count, **options)
    assert len(found) == count
    return np.bincount(number(np.array(found.ids), conditionals.width), minlength=conditionals.width**places), found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("conditionals", "options"),
    [
        (Table.random(3, 3, seed=2), {}),
        (Incompatible(3, 3), {"order": "left"}),
        (Incompatible(3, 3), {"temperature": 1.7}),
        (Incompatible(3, 3), {"top_k": 2}),
    ],
)
def test_without_constraints_the_first_solution_is_an_ancestral_sample(conditionals, options):
    counts, _ = first_solutions(conditionals, 3, **options)
    expected = chain_law(conditionals, 3, temperature=options.get("temperature", 1.0), top_k=options.get("top_k"))
    assert follows(counts, expected)


def test_on_a_joint_any_order_that_looks_at_rows_draws_from_it():
    table = Table.random(3, 3, seed=5)
    counts, _ = first_solutions(table, 3, order="entropy")
    assert follows(counts, table.log_probs.exp().numpy())


def test_where_places_are_cut_on_their_own_each_row_is_renormalised():
    conditionals = Incompatible(3, 3)
    demands = [Pattern("s[01]", place=0), Pattern("s[02]", place=1), Predicate(lambda t: t != "s1", place=2)]
    keep = np.array([[1, 1, 0], [1, 0, 1], [1, 0, 1]], bool)
    counts, found = first_solutions(conditionals, 3, demands, order="left")
    expected = chain_law(conditionals, 3, keep)
    assert follows(counts, expected)
    assert not follows(counts, np.where(expected > 0, chain_law(conditionals, 3), 0))  # a cut joint is another law
    at = number(np.array(found.ids), 3)
    np.testing.assert_allclose(found.log_probs, np.log(expected[at]))
    np.testing.assert_allclose(found.model_log_probs, np.log(chain_law(conditionals, 3)[at]))


def test_without_a_sample_the_likeliest_tokens_come_first():
    conditionals = Arbitrary(4)
    found = solved(conditionals, 2, [], solutions=None, top_k=None)
    first = np.argsort(-conditionals.log_probs([4, 4], 0))
    expected = [(a, b) for a in first for b in np.argsort(-conditionals.log_probs([a, 4], 1))]
    assert found.ids == tuple(expected)
    log_probs = [conditionals.log_probs([4, 4], 0)[a] + conditionals.log_probs([a, 4], 1)[b] for a, b in expected]
    np.testing.assert_allclose(found.log_probs, log_probs)
    np.testing.assert_allclose(found.model_log_probs, log_probs)
    assert found.passes == 5  # one at the root, one for each first token


def test_a_required_word_is_set_where_the_model_finds_it_likeliest():
    weights = np.full((3, 3, 3), 0.01)
    weights[:, 2, :] = 1.0  # "c" belongs in the middle
    found = solved(Table(weights, ["a", "b", "c"]), "[MASK] [MASK] [MASK]", [Required("c")])
    assert found.ids[0][1] == 2
    assert found.passes == 3


def test_a_solution_of_probability_zero_is_none():
    table = Table(np.array([[0.5, 0.0], [0.25, 0.25]]), ["a", "b"])
    found = solved(table, "[MASK] [MASK]", [], solutions=None, top_k=None)
    assert set(found.texts) == {"a a", "b a", "b b"}
    assert solved(table, "[MASK] [MASK]", [Pattern("a b")]).status == "unsatisfiable"


# ---- chains


def test_noise_belongs_to_the_chain():
    table = law(3)
    demands = [Required("ab"), Forbidden("a"), Length(most=7)]
    many = solved(table, 3, demands, sample=True, solutions=6, seed=3)
    few = solve(Engine(table, batch_tokens=3, progress=False), 3, demands, sample=True, solutions=4, seed=3)
    assert many.ids[:4] == few.ids
    assert many.log_probs[:4] == few.log_probs
    assert solved(table, 3, demands, sample=True, solutions=6, seed=4).ids != many.ids
    assert len(set(many.ids)) > 1


def test_searches_share_the_batches_of_one_engine():
    network = Counting(law(3))
    found = solved(network, 3, [Forbidden("ab")], sample=True, solutions=20)
    assert found.passes == 60
    assert len(network.batches) == 3
    assert len(network.batches[0]) == 1  # all begin with the same question


def test_a_search_that_has_gone_astray_begins_anew():
    """Right is what begins with "d", a quarter of all; behind each wrong beginning stand 341 questions."""
    right = Predicate(lambda text: text.startswith("d"), name="right")
    table = Table(np.ones((4,) * 6), list("abcd"))
    found = [solved(table, 6, [right], sample=True, budget=300, seed=seed).status for seed in range(8)]
    assert found.count("solved") > 5
    assert [luby(number) for number in range(1, 16)] == [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]


# ---- bad input


@pytest.mark.parametrize(
    ("template", "demands", "options", "told"),
    [
        ("a b", [], {}, "has no mask"),
        (0, [], {}, "length=0"),
        (
            "[MASK] a",
            [Pattern("a", place=1)],
            {},
            "place 1 matches 'a': there is no place 1, the text has 1 free place",
        ),
        ("[MASK] a", [Word("a", place=-2)], {}, "there is no place -2"),
        ("[MASK]", Required("a"), {}, "give a list"),
        ("[MASK]", ["a"], {}, r"constraints\[0\]='a': give a Constraint"),
        ("[MASK]", [], {"solutions": 0}, "solutions=0: give a whole number"),
        ("[MASK]", [], {"budget": 2.5}, "budget=2.5"),
        ("[MASK]", [], {"top_k": 0}, "top_k=0"),
        ("[MASK]", [], {"temperature": 0.0}, "temperature=0.0"),
        ("[MASK]", [], {"order": "lefft"}, "order='lefft': give 'domain' or 'left' or 'entropy'. Did you mean 'left'"),
        ("[MASK]", [], {"sample": True, "solutions": None}, "say how many draws"),
    ],
)
def test_what_makes_no_sense_is_refused(template, demands, options, told):
    table = law(1 if template == "[MASK]" else 2)
    with pytest.raises(BesagError, match=told):
        solved(table, template, demands, **options)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Required(" "), "give a word"),
        (lambda: Required("[MASK]"), "give a word"),
        (lambda: Word("a"), "say which place"),
        (lambda: Word("a", place=0, number=1), "say which place"),
        (lambda: Word("a b", number=1), "counted one by one"),
        (lambda: Pattern("("), r"Pattern\('\('\): this is no regular expression"),
        (lambda: Pattern("a", place=0, number=0), "not at both"),
        (lambda: Pattern("a", whole=True), "say which place"),
        (lambda: Length(5, 4), "no text is that long"),
        (lambda: Length(of="letters"), "of='letters': give 'characters' or 'words'"),
        (lambda: Predicate("a"), "give a function"),
    ],
)
def test_what_is_no_constraint_is_refused_at_once(make, told):
    with pytest.raises(BesagError, match=told):
        make()


def test_a_causal_model_is_refused():
    with pytest.raises(BesagError, match="a search needs a masked model"):
        solved(Arbitrary(3, sees="left"), 2, [])


def test_it_prints_what_a_reader_must_know():
    found = solved(Table(np.array([0.25, 0.75]), ["a", "b"]), "[MASK]", [Required("a")])
    assert repr(found) == "   log p\n0   0.00  a\n\n1 solution, as many as were wanted · 1 forward pass"
    assert found.to_dict() == {
        "solutions": [{"text": "a", "tokens": ["a"], "log_prob": 0.0, "model_log_prob": pytest.approx(np.log(0.25))}],
        "unit": "nats",
        "passes": 1,
        "status": "solved",
        "facts": ["1 solution, as many as were wanted", "1 forward pass"],
    }
    none = solved(Table(np.array([0.25, 0.75]), ["a", "b"]), "[MASK]", [Required("c")])
    assert repr(none) == none.facts[0]
