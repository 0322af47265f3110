"""Editing by inversion: exact reconstruction, the law of what an edit gives, and what stays."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest
from tests.laws import Arbitrary, Counting
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.table import Table
from besag.conditionals.transformer import Transformer
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import FALSE_ALARM, Incompatible, follows, number, sequences, total_variation
from besag.samplers.editing.edit import Inversion, _invert, edit, invert
from besag.samplers.editing.rewrite import Rewrite, encode

MANY = 500
PATHS = st.sampled_from([(1.0, None), (1.0, 2), (1.0, 1), (0.5, None), (0.5, 2), (0.01, None)])  # depth, steps


def written(ids):
    return " ".join(f"s{symbol}" for symbol in ids)


def read(text):
    return [int(symbol[1:]) for symbol in text.split()]


def drawn(joint, count=MANY, seed=0):
    """(count, n) sequences from a table."""
    flat = joint.ravel() / joint.sum()
    return sequences(joint.shape[0], joint.ndim)[np.random.default_rng(seed).choice(len(flat), size=count, p=flat)]


def inverted(law, texts, *, keep=(), depth=1.0, steps=None):
    """Each with a seed of its own, all of them together."""
    plans = [_invert(law, written(ids), keep, depth, steps, 1.0, seed) for seed, ids in enumerate(texts)]
    return list(Engine(law, progress=False).run(plans))


def replayed(law, texts, changes=None, *, strength=0.0, **path):
    """(N, n) the new texts."""
    again = []
    for seed, inversion in enumerate(inverted(law, texts, **path)):
        own = encode(law, inversion.text)
        again.append(inversion._plan(law, own, Rewrite.of(law, own, changes or {}), strength, 10_000 + seed))
    return np.array([read(edited.text) for edited in Engine(law, progress=False).run(again)])


# ---- reconstruction


@given(st.integers(0, 2**40), PATHS, st.sampled_from(["joint", "incompatible"]), st.floats(0.3, 3))
@settings(deadline=None, max_examples=25)
def test_noise_gives_its_text_again_bit_by_bit(seed, path, kind, temperature):
    law = Table.random(3, 5, seed=seed % 7) if kind == "joint" else Incompatible(3, 5, seed=seed % 7)
    text = written(np.random.default_rng(seed).integers(0, 3, size=5))
    engine = Engine(law, progress=False)
    inversion = invert(engine, text, depth=path[0], steps=path[1], seed=seed, temperature=temperature)
    edited = inversion.replay(engine)
    assert edited.text == text
    assert edited.flips == ()
    assert edited.passes == inversion.steps


@pytest.fixture(scope="module", params=["bert", "roberta", "xlm-roberta"])
def network(request):
    return Transformer(tiny(request.param), vocabulary(request.param))


SENTENCE = "The cats sleep on the mat, and the dogs don't."


@pytest.mark.parametrize("path", [(1.0, None), (1.0, 3), (0.3, None)])
def test_a_network_gives_its_text_again(network, path):
    engine = Engine(network, progress=False)
    for seed in range(4):
        inversion = invert(engine, SENTENCE, depth=path[0], steps=path[1], seed=seed)
        edited = inversion.replay(engine)
        assert edited.text == SENTENCE
        assert edited.reads_back
        wrong = Inversion(**{**vars(inversion), "noise": np.roll(inversion.noise, 1, axis=0)})
        assert wrong.replay(engine).text != SENTENCE  # another place's noise gives another text


def test_the_path_hides_groups_and_reveals_each_place_once():
    law = Incompatible(3, 6)
    counting = Counting(law)
    inversion = invert(Engine(counting, progress=False), "s0 s1 s2 s0 s1 s2", depth=0.5, seed=3)
    assert np.bincount(inversion.group).tolist() == [3, 3]
    assert sorted(inversion.step) == list(range(6))
    hidden = [tuple(np.flatnonzero(np.array(ids) == 3)) for ids in counting.sequences]
    by_step = {len(h): h for h in hidden if set(h) <= set(np.flatnonzero(inversion.group == 0))}
    assert set(by_step) == {1, 2, 3}
    assert set(by_step[1]) < set(by_step[2]) < set(by_step[3])
    parallel = invert(Engine(law, progress=False), "s0 s1 s2 s0 s1 s2", depth=1.0, steps=2, seed=3)
    assert parallel.steps <= 2


# ---- laws


@pytest.mark.slow
def test_recorded_noise_is_plain_noise_over_texts_of_the_model():
    law = Table.random(3, 3, seed=1)
    texts = drawn(law.log_probs.exp().numpy())
    for depth in (1.0, 0.34):
        inversions = inverted(law, texts, depth=depth)
        uniform = np.exp(-np.exp(-np.array([inversion.noise for inversion in inversions])))  # (N, n, V)
        for place in range(3):
            for token in range(3):
                assert kstest(uniform[:, place, token], "uniform").pvalue > FALSE_ALARM
    inversions = inverted(law, np.tile([0, 1, 2], (MANY, 1)))  # not drawn from the model: one text
    noise = np.exp(-np.exp(-np.array([inversion.noise[1, 1] for inversion in inversions])))
    assert kstest(noise, "uniform").pvalue < FALSE_ALARM


def test_an_edited_draw_is_a_draw_in_its_new_context():
    law = Table.random(3, 3, seed=2)
    joint = law.log_probs.exp().numpy()
    texts = drawn(np.where(np.arange(3)[:, None, None] == 0, joint, 0))  # s0 stands first
    assert (texts[:, 0] == 0).all()
    new = replayed(law, texts, {0: "s2"}, keep=[0])
    expected = joint[2] / joint[2].sum()
    assert (new[:, 0] == 2).all()
    assert follows(np.bincount(number(new[:, 1:], 3), minlength=9), expected)
    assert total_variation(joint[0], joint[2]) > 0.1
    stayed = (new[:, 1:] == texts[:, 1:]).all(1).mean()
    independent = (joint[0] / joint[0].sum() * expected).sum()
    assert stayed > independent + 0.15


@pytest.mark.slow
@pytest.mark.parametrize(("strength", "depth"), [(0.1, 1.0), (0.5, 1.0), (1.0, 1.0), (1.0, 0.34)])
def test_a_text_of_the_model_is_one_at_every_strength(strength, depth):
    law = Table.random(3, 3, seed=3)
    joint = law.log_probs.exp().numpy()
    texts = drawn(joint)
    new = replayed(law, texts, strength=strength, depth=depth)  # the whole path, or a sweep of Gibbs
    assert follows(np.bincount(number(new, 3), minlength=27), joint)
    changed = (new != texts).any(1).mean()
    assert changed < 0.3 if strength == 0.1 else changed > 0.3


@pytest.mark.slow
def test_what_is_hidden_is_drawn_anew_and_the_rest_follows():
    law = Table.random(3, 3, seed=4)
    joint = law.log_probs.exp().numpy()
    texts = drawn(joint)
    whole = replayed(law, texts, {1: None})
    assert follows(np.bincount(number(whole, 3), minlength=27), joint)
    assert (whole[:, 1] != texts[:, 1]).mean() > 0.2
    parts = replayed(law, texts, {1: None}, depth=0.34)
    first = np.zeros((3, 3, 3))  # it goes first, given the rest as it was
    for old in np.ndindex(3, 3, 3):
        row = joint[old[0], :, old[2]]
        first[old[0], :, old[2]] += joint[old] * row / row.sum()
    assert follows(np.bincount(parts[:, 1], minlength=3), first.sum((0, 2)))


def test_what_is_hidden_goes_first_where_the_rest_is_shown():
    law = Incompatible(3, 5)
    counting = Counting(law)
    engine = Engine(counting, progress=False)
    inversion = invert(engine, "s0 s1 s2 s0 s1", depth=0.2, seed=1)
    counting.batches.clear()
    edited = inversion.replay(engine, {(3, 8): None})  # the second and the third
    first, second, *others = [np.array(ids) for ids in counting.sequences]
    assert np.flatnonzero(first == 3).tolist() == [1, 2]
    assert len(np.flatnonzero(second == 3)) == 1
    assert all((ids[1:3] == read(edited.text)[1:3]).all() for ids in others)
    assert len(others) == 3


def test_a_parallel_path_is_a_product_of_one_pass():
    law = Table.random(2, 3, seed=5)
    joint = law.log_probs.exp().numpy()
    texts = drawn(joint)
    new = replayed(law, texts, steps=1, strength=1.0)
    singles = [joint.sum((1, 2)), joint.sum((0, 2)), joint.sum((0, 1))]
    product = np.einsum("i,j,k->ijk", *singles)
    assert follows(np.bincount(number(new, 2), minlength=8), product)
    assert total_variation(product, joint) > 0.05


# ---- edits of text


def test_an_edit_tells_what_changed_with_it(network):
    engine = Engine(network, progress=False)
    edited = edit(engine, SENTENCE, {"cats": "man"}, depth=1.0, seed=1)
    [own], [new] = (network.vocabulary.encode([text]) for text in (SENTENCE, edited.text))
    assert "man" in edited.text
    assert edited.asked == (("cats", "man"),)
    assert 0 < len(edited.flips) <= edited.free
    if edited.reads_back:
        for flip in edited.flips:
            assert network.vocabulary.token(int(new.ids[flip.position])) == flip.new
            assert flip.old in own.tokens
    told = repr(edited)
    assert f"{edited.free - len(edited.flips)} of {edited.free} free tokens stayed" in told.replace("\n", " ")
    assert edited.to_dict()["flips"][0]["new"] == edited.flips[0].new


def test_without_a_real_change_nothing_changes(network):
    engine = Engine(network, progress=False)
    for changes in ({}, {"cats": "cats"}, {"on the mat": "on the mat"}):
        edited = edit(engine, SENTENCE, changes, seed=5)
        assert edited.text == SENTENCE
        assert edited.flips == ()
    assert edit(engine, SENTENCE, {}, strength=1.0, depth=1.0).text != SENTENCE


def test_a_word_may_become_longer_or_shorter(network):
    engine = Engine(network, progress=False)
    for word, new in (
        ("cats", "man with cats"),
        ("on the mat", "at night"),
        ("sleep", "bark at cats; cats sleep"),
    ):
        keep = [part for part in ("The", "sleep", "on", "and") if part not in f"{word} {new}"]
        edited = edit(engine, SENTENCE, {word: new}, keep=keep, seed=2)
        assert new in edited.text
        [own] = network.vocabulary.encode([SENTENCE.replace(word, new)])
        assert edited.free < len(own.places)
        for part in keep:
            assert part in edited.text


def test_what_is_kept_is_shown_all_the_time():
    law = Incompatible(3, 5)
    counting = Counting(law)
    engine = Engine(counting, progress=False)
    edited = edit(engine, "s0 s1 s2 s0 s1", {(0, 2): "s1"}, keep=[3], depth=1.0)
    assert all(ids[3] == 0 for ids in counting.sequences)
    shown = [ids[0] for ids in counting.sequences]
    assert shown == [0] * 3 + [1] * 3  # while inverting the old word, while replaying the new one
    assert edited.passes == len(counting.sequences) == 6
    assert edited.text.split()[0] == "s1"
    assert edited.text.split()[3] == "s0"


def test_the_same_seed_gives_the_same_edit_in_any_batch():
    law = Incompatible(3, 5)
    one = edit(Engine(law, progress=False), "s0 s1 s2 s0 s1", {0: "s2"}, seed=7, strength=0.4)
    other = edit(Engine(law, batch_tokens=5, progress=False), "s0 s1 s2 s0 s1", {0: "s2"}, seed=7, strength=0.4)
    assert one.to_dict() == other.to_dict()
    texts = {edit(Engine(law, progress=False), "s0 s1 s2 s0 s1", {0: "s2"}, seed=s, depth=1.0).text for s in range(9)}
    assert len(texts) > 1


def test_an_inversion_can_be_saved_and_read(tmp_path, network):
    engine = Engine(network, progress=False)
    inversion = invert(engine, SENTENCE, keep=["mat"], depth=0.5, steps=2, seed=4)
    read_back = Inversion.load(inversion.save(tmp_path / "inversion.npz"))
    for name, value in vars(inversion).items():
        np.testing.assert_array_equal(getattr(read_back, name), value)
    assert read_back.replay(engine, {"cats": "man"}).to_dict() == inversion.replay(engine, {"cats": "man"}).to_dict()
    assert "free tokens of" in repr(read_back)
    (tmp_path / "other.npz").write_bytes(b"no")
    for file in ("other.npz", "missing.npz"):
        with pytest.raises(BesagError, match="holds no recorded noise"):
            Inversion.load(tmp_path / file)


# ---- bad input


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda e: edit(e, "s0 s1 s2", {"s9": "s1"}), "'s9' does not stand in 's0 s1 s2'"),
        (
            lambda e: edit(e, "s0 s1 s0", {"s0": "s1"}),
            "'s0' stands 2 times in 's0 s1 s0': token 0 (0:2), token 2 (6:8). Name one by its index",
        ),
        (lambda e: edit(e, "s0 s1 s2", {"s0": " "}), "'s0' becomes ' ': give new words, or None"),
        (lambda e: edit(e, "s0 s1 s2", {7: "s1"}), "there is no token 7 in 's0 s1 s2', which has 3: 0 s0, 1 s1, 2 s2"),
        (lambda e: edit(e, "s0 s1 s2", {(4, 2): "s1"}), "4:2 is no span of 's0 s1 s2'"),
        (lambda e: edit(e, "s0 s1 s2", {"s0 s1": "s1 s1", 1: "s2"}), "1 overlaps with another change"),
        (lambda e: edit(e, "s0 s1 s2", ["s0"]), "changes=['s0']: give a dict"),
        (lambda e: edit(e, "s0 s1 s2", {"s0": "s1"}, strength=2), "strength=2: 0 plays the recorded noise"),
        (lambda e: edit(e, "s0 s1 s2", {"s0": "s1"}, strength="a"), "strength='a': give a number"),
        (lambda e: edit(e, "s0 s1 s2", {"s0": "s1"}, depth="a"), "depth='a': give a number"),
        (lambda e: edit(e, "s0 s1 s2", {"s0": "s1"}, keep="s1"), "keep='s1': give a list"),
        (lambda e: edit(e, "s0 s1 s2", {"s0": "s1"}, keep=1), "keep=1: give a list"),
        (lambda e: edit(e, "s0 s1 s2", {"s0": "s1"}, keep=None), "keep=None: give a list"),
        (lambda e: invert(e, "s0 s1 s2", depth=0), "depth=0: the share of places hidden at a time"),
        (lambda e: invert(e, "s0 s1 s2", steps=0), "steps=0: reveal in at least 1 step"),
        (lambda e: invert(e, "s0 s1 s2", temperature=-1), "temperature=-1"),
        (lambda e: invert(e, "s0 s1 s2", keep="s0"), "keep='s0': give a list"),
        (lambda e: invert(e, "s0 s1 s2", keep=[0, 1, 2]), "no token of 's0 s1 s2' is free"),
        (lambda e: invert(e, "s0 [MASK] s2"), "holds a mask, and what is hidden cannot be inverted"),
        (lambda e: invert(e, "s0 s1 s2", keep=["s1"]).replay(e, {"s1": None}), "it cannot be drawn anew"),
    ],
)
def test_input_that_makes_no_sense(call, told):
    with pytest.raises(BesagError, match=re.escape(told)):
        call(Engine(Incompatible(3, 3), progress=False))


def test_noise_of_another_model_and_models_that_cannot():
    inversion = invert(Engine(Incompatible(3, 3), progress=False), "s0 s1 s2")
    with pytest.raises(BesagError, match="was recorded with 'incompatible'"):
        inversion.replay(Engine(Table.random(3, 3), progress=False))
    with pytest.raises(BesagError, match="this needs a masked model"):
        invert(Engine(Arbitrary(sees="left"), progress=False), "s0 s1")
    impossible = Table([[0.5, 0.5], [0.0, 0.0]])
    with pytest.raises(BesagError, match=re.escape("cannot draw 's1' (token 0 of 's1 s0')")):
        invert(Engine(impossible, progress=False), "s1 s0", keep=[1])


def test_a_text_that_is_too_long_or_all_of_it_unknown(network):
    engine = Engine(network, progress=False)
    with pytest.raises(BesagError, match=r"has \d+ tokens, and .* sees \d+"):
        invert(engine, " ".join(["cats"] * 60))


def test_residues_are_named_where_nothing_sets_words_apart():
    lm = besag.load(Transformer(tiny("esm"), vocabulary("esm")))
    edited = lm.edit("LAGVSERTIDPK", {"SER": "SEK"}, keep=["LAG"])
    assert edited.text[:3] == "LAG"
    assert edited.text[4:7] == "SEK"
