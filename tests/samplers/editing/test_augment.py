"""Augmentation: its law on exact tables, enumerated from the definition; its guard and its text on networks."""

import itertools
import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws import Arbitrary, Counting
from tests.networks import tiny, vocabulary

from besag.conditionals.contract import Questions
from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, conditional, follows, number, sequences, total_variation
from besag.results.status import Status
from besag.samplers.editing import states
from besag.samplers.editing.augment import Augmenting, augment
from besag.samplers.editing.copying import Copy, movable

COPIES = 800
START = np.array([2, 0, 1])
TEXT = "s2 s0 s1"


def counts(law, **options):
    """(V^n,) how many copies of the start became each sequence."""
    found = augment(Engine(law, progress=False), TEXT, copies=COPIES, distinct=False, **options)
    ids = np.array([[int(symbol[1:]) for symbol in row.text.split()] for row in found])
    return np.bincount(number(ids, law.width), minlength=law.width ** len(START)), found


def move(law, hide, guard=lambda sequence: True, forbid=False):
    """(V^n, V^n) one move as it is defined: draw the hidden places left to right, refuse what the guard refuses."""
    every = sequences(law.width, len(START))
    matrix = np.zeros((len(every), len(every)))
    for at, sequence in enumerate(every):
        for drawn in itertools.product(range(law.width), repeat=len(hide)):
            new, chance = sequence.copy(), 1.0
            for k, place in enumerate(hide):
                row = conditional(law, new, hide[k:], place)
                if forbid:
                    row[START[place]] = 0
                    row /= row.sum()
                chance *= row[drawn[k]]
                new[place] = drawn[k]
            to = number(new[None], law.width)[0] if guard(new) else at
            matrix[at, to] += chance
    return matrix


def round_law(law, size=3, **options):
    """The law after one round that moves `size` of three words, one at a time, in an order that is uniform."""
    moves = [move(law, [place], **options) for place in range(3)]
    [start] = number(START[None], law.width)
    orders = list(itertools.permutations(range(3), size))
    total = np.zeros(law.width**3)
    for order in orders:
        row = np.eye(law.width**3)[start]
        for place in order:
            row = row @ moves[place]
        total += row / len(orders)
    return total


def near(sequence):
    return (sequence == START).mean() >= 0.6


LAWS = [Table.random(3, 3, seed=1), Incompatible(3, 3)]


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=["joint", "incompatible"])
def test_a_round_is_a_random_sweep(law):
    seen, _ = counts(law, share=1.0, similarity=None, other=False)
    assert follows(seen, round_law(law))
    assert not follows(seen, round_law(law, guard=near))


@pytest.mark.parametrize("law", LAWS, ids=["joint", "incompatible"])
def test_what_is_too_unlike_the_original_is_refused_and_the_text_stays(law):
    seen, found = counts(law, share=1.0, similarity=0.6, other=False)
    assert follows(seen, round_law(law, guard=near))
    assert min(row.similarity for row in found) >= 0.6
    assert sum(row.refused for row in found) > 0


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=["joint", "incompatible"])
def test_the_original_word_may_be_forbidden(law):
    seen, found = counts(law, share=1.0, similarity=None)
    expected = round_law(law, forbid=True)
    assert follows(seen, expected)
    assert total_variation(expected, round_law(law)) > 0.1
    assert {len(row.changed) for row in found} == {3}


def test_the_joint_cut_to_what_is_near_is_invariant():
    law = LAWS[0]
    joint = law.log_probs.exp().numpy().ravel()
    cut = joint * [near(sequence) for sequence in sequences(3, 3)]
    for place in range(3):
        matrix = move(law, [place], guard=near)  # which the tests above hold the code against
        np.testing.assert_allclose(cut @ matrix, cut, atol=1e-12)
        assert np.abs(joint @ matrix - joint).max() > 1e-3  # the joint itself is not


def test_words_hidden_together_are_drawn_from_their_joint():
    law = LAWS[0]
    joint = law.log_probs.exp().numpy()
    seen, _ = counts(law, share=1.0, together=3, similarity=None, other=False)
    assert follows(seen, joint)
    seen, _ = counts(law, share=0.7, together=2, similarity=None, other=False)  # two of the three, at a time
    expected = np.zeros((3, 3, 3))
    for kept in range(3):
        at = [slice(None)] * 3
        at[kept] = START[kept]
        expected[tuple(at)] += joint[tuple(at)] / joint[tuple(at)].sum() / 3
    assert follows(seen, expected)


def test_a_share_of_the_words_moves_in_each_round():
    law = LAWS[0]
    seen, found = counts(law, share=0.34, similarity=None, other=False)
    assert follows(seen, round_law(law, size=1))
    assert {row.moves for row in found} == {1}
    assert {row.moves for row in augment(Engine(law, progress=False), TEXT, copies=9, share=0.67, rounds=4)} == {8}


@given(st.integers(0, 40), st.integers(1, 3), st.integers(1, 3), st.booleans())
@settings(deadline=None, max_examples=20)
def test_the_change_of_log_probability_is_that_of_the_joint(seed, together, rounds, other):
    law = Table.random(3, 4, seed=seed)
    found = augment(
        Engine(law, progress=False), "s0 s1 s2 s0", copies=6, share=0.8, together=together, rounds=rounds, other=other,
        similarity=0.2, seed=seed,
    )  # fmt: skip
    for row in found:
        ids, own = ([int(symbol[1:]) for symbol in text.split()] for text in (row.text, row.original))
        known = law.log_probs[tuple(ids)] - law.log_probs[tuple(own)]
        assert row.log_prob_change == pytest.approx(float(known), abs=1e-9)


@given(st.integers(0, 50), st.integers(1, 40))
@settings(deadline=None, max_examples=15)
def test_noise_belongs_to_the_text_and_the_copy(seed, batch):
    law = Arbitrary(width=3)
    texts = ["s0 s1 s2", "s2 s2", "s0 s1 s2", "s1 s0 s2 s1"]
    options = {"share": 0.7, "rounds": 2, "similarity": 0.3, "seed": seed}
    whole = augment(Engine(law, progress=False), texts, copies=3, **options)
    again = augment(Engine(law, batch_tokens=batch, progress=False), texts, copies=2, **options)
    assert [row for row in whole if row.copy < 2] == list(again)  # floats and all
    fewer = augment(Engine(law, progress=False), texts[:2], copies=3, **options)
    assert list(fewer) == list(whole)[:6]


def test_noise_belongs_to_the_number_of_the_text_and_a_run_can_begin_at_any():
    engine = Engine(Arbitrary(width=3), progress=False)
    texts, how = ["s0 s1 s2", "s2 s2", "s0 s1 s2", "s1 s0 s2 s1"], Augmenting(copies=5, share=1.0, similarity=None)
    whole = list(how.run(engine, texts))
    assert list(how.run(engine, iter(texts[2:]), first=2)) == whole[10:]
    moved = augment(engine, texts[2:], copies=5, share=1.0, similarity=None)  # in a list of its own it is the first
    assert [row.text for row in moved][:5] == [row.text for row in whole][:5]
    assert [row.text for row in moved][:5] != [row.text for row in whole][10:15]


def test_copies_and_equal_texts_differ():
    law = Table.random(3, 4, seed=2)
    found = augment(Engine(law, progress=False), ["s0 s1 s2 s0"] * 2, copies=8, share=1.0, similarity=None)
    assert len({row.text for row in found if row.number == 0}) > 1
    assert [row.text for row in found if row.number == 0] != [row.text for row in found if row.number == 1]


# ---- on networks


@pytest.fixture(scope="module", params=["bert", "roberta", "xlm-roberta"])
def network(request):
    return Transformer(tiny(request.param), vocabulary(request.param))


SENTENCE = "The cat sat on the mat, and the dog ran."


def test_a_new_text_reads_back_as_what_the_model_drew(network):
    found = augment(Engine(network, progress=False), SENTENCE, copies=12, share=1.0, similarity=None, top_k=200)
    [own] = network.vocabulary.encode([SENTENCE])
    assert found.texts
    for row in found:
        [read] = network.vocabulary.encode([row.text])
        assert read.words.tolist() == own.words.tolist()
        changed = [word for word in set(own.words.tolist()) if (read.ids != own.ids)[own.words == word].any()]
        assert len(row.changed) == len(changed)
        for change in row.changed:
            assert SENTENCE[change.start :].startswith(change.old)
            assert re.search(r"\w", change.old)
            assert re.search(r"\w", change.new)
            assert change.new in row.text
            assert change.new != change.old
        assert ("," in row.text) == ("," in SENTENCE)  # signs stay


@pytest.fixture(scope="module")
def pieces():
    """A copy on its way of "a souvenir", its second word in two pieces: <s> a Ġsouveni r </s>."""
    network = Transformer(tiny("roberta"), vocabulary("roberta"))
    [encoded] = network.vocabulary.encode(["a souvenir"])
    assert encoded.words.tolist() == [-1, 0, 1, 1, -1]
    return Copy(Augmenting(), network, None, None, encoded, movable(network, encoded.text, encoded, ()), 0, 0)


def test_only_the_token_that_would_complete_the_word_is_forbidden(pieces):
    own, mask = pieces.encoded.ids, pieces.conditionals.vocabulary.mask_id
    hidden, begun, other = own.copy(), own.copy(), own.copy()
    hidden[[2, 3]], begun[3], other[[2, 3]] = mask, mask, (own[1], mask)
    assert pieces._forbidden(hidden, 2) == -1
    assert pieces._forbidden(begun, 3) == own[3]
    assert pieces._forbidden(other, 3) == -1  # another word already


@pytest.mark.parametrize(
    ("tokens", "accepted"),
    [
        (("Ġcats", "in"), True),
        (("Ġcat", "sin"), False),  # as many tokens, but it reads "Ġcats in"
        (("at", "ep"), False),  # it would be part of the word before
        (("Ġcats", ","), False),  # two words
        (("Ġcat", "s"), False),  # one token
    ],
)
def test_a_text_that_would_read_as_other_tokens_or_words_is_not_accepted(pieces, tokens, accepted):
    table, ids = pieces.conditionals.vocabulary.tokenizer.get_vocab(), pieces.encoded.ids.copy()
    ids[[2, 3]] = [table[token] for token in tokens]
    assert (pieces._read(ids) is not None) == accepted


def test_the_guard_of_a_network_is_the_cosine_of_its_mean_states(network):
    engine = Engine(network, progress=False)
    found = augment(engine, SENTENCE, copies=6, share=0.5, similarity=0.5, top_k=50)
    wrapped = Engine(states.WithStates(network), progress=False)
    centre = states.common(wrapped)

    def vector(text):
        [encoded] = network.vocabulary.encode([text])
        ids, n = torch.from_numpy(encoded.ids)[None], len(encoded.places)
        with torch.no_grad():
            rows = network.rows(Questions(ids, torch.zeros(n, dtype=torch.long), torch.from_numpy(encoded.places)))
        return rows.double().numpy().mean(0) - centre

    own = vector(SENTENCE)
    for row in found:
        if row.status == "ok":
            new = vector(row.text)
            assert row.similarity == pytest.approx(own @ new / np.linalg.norm(own) / np.linalg.norm(new), abs=1e-4)
            assert row.similarity >= 0.5
    assert "cosine of mean states, at least 0.5" in found.guard


def test_states_do_not_disturb_answers(network):
    [encoded] = network.vocabulary.encode(["The [MASK] sat".replace("[MASK]", network.vocabulary.mask_token)])
    ids, place = torch.from_numpy(encoded.ids)[None], torch.from_numpy(encoded.places)
    questions = Questions(ids, torch.zeros_like(place), place)
    wrapper = states.WithStates(network)
    with torch.no_grad():
        plain = network.head(network.rows(questions))
        marked = questions._replace(context={states.STATES: torch.ones(1, 1, dtype=torch.long)})
        assert torch.equal(wrapper.head(wrapper.rows(marked)), network.rows(questions))
        assert torch.equal(wrapper.head(wrapper.rows(questions)), plain)


def test_every_pass_is_counted(network):
    counting = Counting(network)
    [row] = augment(Engine(counting, progress=False), SENTENCE, share=0.6, rounds=2, together=2, similarity=0.2, seed=3)
    assert row.passes == len(counting.sequences) - states.RANDOM  # those of random texts are spent once for all


@pytest.mark.parametrize("options", [{}, {"similarity": None}, {"measure": lambda original, text: 1.0}])
def test_every_pass_of_a_call_is_counted(network, options):
    counting = Counting(network)
    found = augment(Engine(counting, progress=False), [SENTENCE, "", "the dog ran"], share=0.6, **options)
    assert found.passes == len(counting.sequences) == found.to_dict()["passes"]
    assert f"{found.passes} forward passes" in repr(found).replace("\n", " ")
    assert found.passes - sum(row.passes for row in found) == (0 if "measure" in options else states.RANDOM)


PROTEIN = "MKTAYIAKQRQISF"


@pytest.fixture(scope="module")
def residues():
    return Transformer(tiny("esm"), vocabulary("esm"))


def test_without_spaces_the_unit_is_the_token(residues):
    found = augment(Engine(residues, progress=False), PROTEIN, copies=20, share=0.1, similarity=None)
    assert {row.moves for row in found} == {1}
    assert len(found.texts) > 5
    for row in found:
        different = [at for at in range(len(PROTEIN)) if row.text[at] != PROTEIN[at]]
        assert len(row.text) == len(PROTEIN)
        assert different == [change.start for change in row.changed]
        assert [(PROTEIN[at], row.text[at]) for at in different] == [(old, new) for old, new, _ in row.changed]
        assert len(different) == (row.status == "ok")
        assert row.status in ("ok", "unread")
        assert row.reason in ("", "1 new text would read as other tokens, or with a sign for a word")
    assert len({row.changed[0].start for row in found if row.changed}) > 1
    half = augment(Engine(residues, progress=False), PROTEIN, copies=3, share=0.5, together=2, similarity=None)
    assert {row.moves for row in half} == {4}  # seven residues, two at a time


def test_without_spaces_a_part_of_the_text_can_be_kept(residues):
    kept = augment(
        Engine(residues, progress=False), PROTEIN, copies=8, share=1.0, rounds=3, similarity=None, keep=["KTA", "TAY"]
    )
    assert {row.text[1:5] for row in kept} == {"KTAY"}
    assert {row.moves for row in kept} == {30}
    assert len({row.text for row in kept}) > 4


def test_words_that_are_kept_stay(network):
    kept = ["cat", "the dog", "nowhere"]
    found = augment(
        Engine(network, progress=False), SENTENCE, copies=8, share=1.0, rounds=2, similarity=None, keep=kept
    )
    assert all("cat" in row.text and "the dog" in row.text for row in found)
    assert any(row.status == "ok" for row in found)
    [encoded] = network.vocabulary.encode([SENTENCE])
    places = np.concatenate(movable(network, SENTENCE, encoded, kept))
    shown = {SENTENCE[start:end] for start, end in encoded.offsets[places].tolist()}
    assert not shown & {"cat", "dog", ",", "."}


def test_a_measure_of_the_user_decides(network):
    asked = []

    def measure(original, text):
        asked.append((original, text))
        return -abs(len(original) - len(text))

    found = augment(Engine(network, progress=False), SENTENCE, copies=4, similarity=-1, measure=measure, top_k=100)
    assert {original for original, _ in asked} == {SENTENCE}
    assert all(abs(len(row.text) - len(SENTENCE)) <= 1 for row in found)
    assert "by the measure given, at least -1" in found.guard


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (lambda: 1 / 0, r"the measure of 's0 s1' and 's\d s\d' raised ZeroDivisionError: division by zero"),
        (lambda: math.nan, r"the measure of 's0 s1' and 's\d s\d' is NaN: a measure gives a number"),
        (lambda: None, r"the measure of 's0 s1' and 's\d s\d' is None: a measure gives a number"),
        (lambda: "near", r"the measure of 's0 s1' and 's\d s\d' is 'near': a measure gives a number"),
    ],
)
@pytest.mark.parametrize("similarity", [0.9, None])
def test_a_measure_that_fails_names_its_texts(value, told, similarity):
    engine = Engine(Table.random(3, 2), progress=False)
    with pytest.raises(BesagError, match=told):
        augment(engine, "s0 s1", measure=lambda original, text: value(), similarity=similarity)


def test_a_measure_may_be_infinite():
    engine = Engine(Table.random(3, 2), progress=False)
    assert augment(engine, "s0 s1", measure=lambda original, text: math.inf)[0].status == "ok"
    [row] = augment(engine, "s0 s1", measure=lambda original, text: -math.inf)
    assert (row.status, row.reason) == (Status.UNLIKE, "1 new text too unlike it, −∞ at best")


def test_texts_that_cannot_be_changed_say_why(network):
    engine = Engine(network, progress=False)
    long = " ".join(["cat"] * 60)
    found = augment(engine, ["", "?!", long, "the cat"], similarity=2.0)
    assert [row.status for row in found][:3] == [Status.EMPTY, Status.FIXED, Status.LONG]
    assert found.status is Status.PARTLY
    empty, signs, beyond, guarded = [row.reason for row in found]
    assert empty == "the text is empty"
    assert signs == "no word of it may change"
    assert re.fullmatch(r"the text has \d+ tokens, and the model sees \d+", beyond)
    assert re.fullmatch(r"1 new text too unlike it, [−0-9.]+ at best|.* other tokens, .*", guarded)
    assert [row.text for row in found] == ["", "?!", long, "the cat"]
    assert found.texts == []
    assert augment(engine, "the cat", keep=["the", "cat"])[0].status is Status.FIXED
    certain = Table(np.diag([1.0, 1.0]))  # each symbol is certain given the other
    assert augment(Engine(certain, progress=False), "s0 s0")[0].status is Status.SAME


# ---- the result, and bad input


def test_the_result_is_a_table_a_dictionary_and_a_frame():
    pandas = pytest.importorskip("pandas")
    law = Table.random(3, 3, seed=5)
    found = augment(Engine(law, progress=False), [TEXT, "s0 s0 s0"], copies=2, similarity=0.5, seed=4)
    lines = repr(found).splitlines()
    assert TEXT in lines[1]
    assert f"{len(found.texts)} of 4 copies changed" in repr(found)
    assert "share of equal tokens, at least 0.5" in repr(found).replace("\n", " ")
    told = found.to_dict()
    assert [row["original"] for row in told["rows"]] == [TEXT, TEXT, "s0 s0 s0", "s0 s0 s0"]
    frame = found.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["text"].tolist() == [row.text for row in found]
    assert "→" in "".join(frame["changed"])
    assert frame.attrs["seed"] == 4
    assert math.isfinite(frame["log_prob_change"].sum())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"share": 0}, "share=0: the share of words to change is above 0 and at most 1"),
        ({"share": "a"}, "share='a': the share of words to change is above 0 and at most 1"),
        ({"copies": 0}, "copies=0: give a whole number, at least 1"),
        ({"rounds": 1.5}, "rounds=1.5: give a whole number"),
        ({"together": True}, "together=True: give a whole number"),
        ({"keep": "cat"}, "keep='cat': name places in a list, as ['cat']"),
        ({"keep": None}, "keep=None: name places in a list"),
        ({"keep": [" "]}, "' ' is no position: give a token's index, a word or characters"),
        ({"similarity": math.nan}, "similarity=nan: give the least similarity to accept"),
        ({"similarity": "x"}, "similarity='x': give the least similarity to accept"),
        ({"measure": 3}, "measure=3: give a function of two texts, or None for the model's own"),
        ({"temperature": 0}, "temperature=0: give a number above 0"),
        ({"top_p": 2}, "top_p=2"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=re.escape(told)):
        augment(Engine(Table.random(2, 2), progress=False), "s0 s1", **options)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (None, "texts=None: give a text or a list of texts"),
        (7, "texts=7: give a text or a list of texts"),
        (["s0 s1", None], "texts[1]=None: give a text"),
    ],
)
def test_what_is_no_text_is_refused(texts, told):
    with pytest.raises(BesagError, match=re.escape(told)):
        augment(Engine(Table.random(2, 2), progress=False), texts)


def test_a_causal_model_cannot_fill():
    with pytest.raises(BesagError, match="this needs a masked model"):
        augment(Engine(Arbitrary(sees="left"), progress=False), "s0 s1")


# ---- copies that differ


def test_copies_of_a_text_differ_and_are_the_same_in_any_batch():
    law = Table.random(3, 3, seed=1)
    found = [augment(Engine(law, batch_tokens=n, progress=False), [TEXT] * 2, copies=6, share=1.0, similarity=None)
             for n in (3, 300)]  # fmt: skip
    rows = [row for row in found[0] if row.status == Status.OK]
    assert len({(row.number, row.text) for row in rows}) == len(rows)
    assert len(rows) > 6
    assert [row.text for row in found[0]] == [row.text for row in found[1]]
    plain = augment(Engine(law, progress=False), [TEXT] * 2, copies=6, share=1.0, similarity=None, distinct=False)
    firsts = {(row.number, row.text): row for row in reversed(plain.rows)}
    assert all(found[0][row.number * 6 + row.copy].text == row.text for row in firsts.values())  # only others are new


def test_where_fewer_copies_differ_that_is_told():
    law = Table.random(2, 2, seed=1)
    found = augment(Engine(law, progress=False), "s0 s1", copies=7, share=1.0, similarity=None, other=False)
    ok = [row for row in found if row.status == Status.OK]
    left = [row for row in found if row.status == Status.REPEATED]
    assert len({row.text for row in ok}) == len(ok) <= 3
    assert left
    assert all(row.text == row.original and not row.changed and "other copies say" in row.reason for row in left)
    assert any("LEFT OUT: NO FURTHER DIFFERENT TEXT" in fact for fact in found.facts)
    assert found.texts == [row.text for row in ok]


def test_repeats_can_be_had():
    law = Table.random(2, 2, seed=1)
    found = augment(Engine(law, progress=False), "s0 s1", copies=7, share=1.0, similarity=None, distinct=False)
    assert not any(row.status == Status.REPEATED for row in found)
