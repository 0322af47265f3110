import json
from functools import partial

import numpy as np
import pytest
from tests.networks import tiny, vocabulary
from tests.samplers.exact import Hashed

import besag
from besag.conditionals.transformer import Transformer
from besag.constraints import Forbidden, allowed
from besag.errors import BesagError
from besag.results.status import Status
from besag.samplers import kernel
from besag.samplers.recording import Recording
from besag.samplers.sampling import sample
from besag.samplers.sheet import blank, template
from besag.scores import LengthModel


@pytest.fixture(scope="module")
def law():
    weights = np.random.default_rng(1).gamma(0.5, size=(3,) * 4)
    return besag.load(besag.Table(weights, symbols=["a", "b", "c"]))


@pytest.fixture(scope="module")
def lm():
    return besag.load(progress=False)


# ---- what is written on


def test_masks_are_free_and_the_rest_is_written_back_as_it_was(lm):
    sheet = template(lm.conditionals, "The  [MASK] sat on the [MASK]!")
    ids = sheet.ids.copy()
    ids[list(sheet.at)] = [lm.vocabulary.id("▁man"), lm.vocabulary.id("▁table")]
    assert sheet.write(ids) == "The  man sat on the table!"
    assert len(sheet.at) == 2


def test_places_can_be_named_freed_and_kept(lm):
    text = "The man sat on the table."
    everything = template(lm.conditionals, text, free="all")
    assert len(everything.at) == len(everything.encoded.places)
    kept = template(lm.conditionals, text, free="all", keep=["man"])
    assert set(everything.at) - set(kept.at) == set(template(lm.conditionals, text, free=["man"]).at)
    assert kept.write(kept.ids) == text


def test_a_text_from_nothing_has_its_length_and_its_end(lm):
    sheet = blank(lm.conditionals, 5, end=".")
    assert len(sheet.at) == 5
    ids = sheet.ids.copy()
    ids[list(sheet.at)] = [lm.vocabulary.id(token) for token in ("▁It", "▁was", "▁a", "▁great", "▁day")]
    assert sheet.write(ids) == "It was a great day."


def test_a_protein_from_nothing_is_written_as_one_word():
    lm = besag.load(Transformer(tiny("esm"), vocabulary("esm")))
    chain = lm.sample(None, "ordered", chains=3, length=8)
    for text, ids in zip(chain.texts, chain.ids, strict=True):
        assert text == "".join(lm.vocabulary.token(id) for id in ids[1:-1])
        assert lm.vocabulary.encode([text])[0].ids.tolist() == ids.tolist()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"text": "a b a b"}, "'a b a b' has no mask, so nothing in it may change: write"),
        ({"text": "a b a b", "free": "al"}, "free='al': give 'all' or a list or None"),
        ({"text": "a b c [MASK]", "keep": ["a"], "free": ["a"]}, "everything that is free in .* is to be kept"),
        ({}, "give a text with masks, or a length to sample from nothing; neither was given"),
        ({"text": "a [MASK] a b", "length": 4}, "both were given"),
        ({"length": 0}, "length=0: give the number of tokens to draw, at least 1"),
        ({"length": 4, "chains": 0}, "chains=0: run at least 1 chain"),
        ({"length": 4, "steps": 0}, "steps=0: make at least 1 step"),
        ({"length": 4, "every": 0}, "every=0"),
        ({"length": 4, "kernel": "gibs"}, "there is no kernel 'gibs'. Did you mean 'gibbs'"),
        ({"length": 4, "temprature": 1}, "the kernel 'gibbs' has no option 'temprature'.*Did you mean 'temperature'"),
        ({"length": 4, "temperature": -1}, "temperature=-1: give a number above 0"),
        ({"length": 4, "resume": True}, "resume=True goes on with a recorded run"),
        ({"text": "a [MASK] x b"}, "'x'"),
    ],
)
def test_input_that_makes_no_sense(law, arguments, told):
    with pytest.raises(BesagError, match=told):
        law.sample(**arguments)


def test_a_causal_model_is_refused():
    causal = besag.Table.random(3, 4, seed=1)
    causal.sees = "left"
    with pytest.raises(BesagError, match="sees the left side of a place only"):
        besag.load(causal).sample(length=4)


# ---- chains


def test_chains_are_in_order_and_say_what_they_are(law):
    chain = law.sample("a [MASK] [MASK] b", chains=5, steps=7, seed=3, every=7)
    assert len(chain) == 5
    assert all(text.split()[0] == "a" and text.split()[3] == "b" for text in chain)
    assert chain.passes.tolist() == [7] * 5
    assert chain.kept_steps == (0, 7)
    assert [one[-1] for one in chain.kept] == list(chain.texts)
    again = law.sample("a [MASK] [MASK] b", chains=3, steps=7, seed=3)
    assert again.texts == chain.texts[:3]
    assert law.sample("a [MASK] [MASK] b", chains=5, steps=7, seed=4).texts != chain.texts
    frame = chain.to_pandas()
    assert frame["text"].tolist() == list(chain)
    assert frame.attrs["kernel"] == "gibbs"
    told = chain.to_dict()
    assert json.loads(json.dumps(told))["chains"][0]["text"] == chain[0]
    assert "7 forward passes a chain" in repr(chain)


def test_lengths_are_drawn_from_their_law_and_do_not_disturb_each_other(lm):
    lengths = LengthModel.fit([3] * 30 + [5] * 10)
    chain = lm.sample(kernel="ordered", length=lengths, chains=8, seed=2)
    sizes = {len(tokens) for tokens in chain.tokens}
    assert len(sizes) > 1
    fewer = lm.sample(kernel="ordered", length=lengths, chains=4, seed=2)
    assert fewer.texts == chain.texts[:4]
    assert np.isnan(chain.numbers["passes"]).any()  # the short ones end sooner
    assert chain.passes.tolist() == [len(tokens) for tokens in chain.tokens]


def test_a_law_of_lengths_is_drawn_by_its_quantiles():
    lengths = LengthModel.fit([1, 2, 2, 3, 3, 3, 8])
    heights = (np.arange(2000) + 0.5) / 2000
    drawn = np.bincount([lengths.quantile(height) for height in heights], minlength=12) / 2000
    expected = [0, *(np.exp(lengths.log_prob(n)) for n in range(1, 12))]
    assert np.abs(drawn[:12] - expected).max() < 1e-3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"length": 4, "keep": ["a"]}, "from nothing, all places are free"),
        ({"length": 4, "free": "all"}, "from nothing, all places are free"),
        ({"text": "a [MASK] a b", "end": "b"}, "end='b' closes a text from nothing"),
        ({"text": ["a [MASK] a b"]}, "give a text or None"),
        ({"length": 4, "steps": 2.5}, "steps=2.5: give a whole number"),
        ({"length": 4, "every": True}, "every=True"),
        ({"length": 4, "seed": "x"}, "seed='x': give a whole number"),
        ({"length": 4, "kernel": kernel("gibbs"), "temperature": 2}, "temperature: a kernel that is made already"),
        ({"length": 4, "temperature": "x"}, "temperature='x': give a number"),
        ({"length": 4, "top_k": 1.5}, "top_k=1.5: give a whole number or none"),
        ({"length": 4, "temperature": 1e-40}, "temperature=1e-40: give a number above 0"),
        (
            {"length": 4, "kernel": "grouped", "size": "abc"},
            "kernel 'grouped' with size='abc': give a whole number",
        ),
        ({"text": "a [MASK] a b", "keep": "a"}, "keep='a': give a list"),
    ],
)
def test_nothing_that_is_said_is_left_out_silently(law, arguments, told):
    with pytest.raises(BesagError, match=told):
        law.sample(**arguments)


def test_numbers_of_numpy_are_numbers(law):
    same = law.sample("a [MASK] [MASK] b", chains=np.int64(2), steps=np.int64(3), seed=np.int64(5))
    assert same.texts == law.sample("a [MASK] [MASK] b", chains=2, steps=3, seed=5).texts


def test_words_of_several_tokens_and_words_that_stand_twice_are_named(lm):
    text = "The hooligan saw the other hooligan in New York."
    kept = template(lm.conditionals, text, free="all", keep=["hooligan", "New York"])
    shown = {lm.vocabulary.token(kept.encoded.ids[at]) for at in set(kept.encoded.places) - set(kept.positions)}
    assert {"▁New", "▁York"} <= shown
    free = template(lm.conditionals, text, free=["hooligan"])
    assert len(free.at) == 2 * len(lm.tokenizer("hooligan", add_special_tokens=False)["input_ids"])


def test_what_a_reader_must_know_is_told(law, lm):
    early = law.sample("a [MASK] [MASK] b", chains=3, steps=1, seed=1)
    assert "3 places still hidden: make more steps" in early.facts
    assert early.status is Status.HIDDEN
    assert lm.sample("The 🦜[MASK] sat.", "ordered", chains=1).unknown == 0  # its bytes are known
    esm = besag.load(Transformer(tiny("esm"), vocabulary("esm")))
    chain = esm.sample("The [MASK] sat.", "ordered", chains=1)
    assert chain.unknown > 0
    assert any("UNKNOWN TO THE MODEL" in fact for fact in chain.facts)


def test_a_search_is_not_said_to_have_a_law(law):
    assert law.sample("a [MASK] [MASK] b", "ordered", pick="argmax").law.startswith("no law: a search")


def test_chains_of_several_lengths_are_kept_each_for_itself(lm):
    chain = lm.sample(length=lm.length_model(["One two three.", "One."]), kernel="ordered", chains=6, every=1, seed=2)
    assert {len(kept) for kept in chain.kept} == {len(tokens) + 1 for tokens in chain.tokens}
    for at in range(6):
        chain.plot(at)
    with pytest.raises(BesagError, match="there is no chain 6: there are 0 … 5"):
        chain.plot(6)


def test_places_are_diagnosed_where_all_steps_were_kept(law):
    chain = law.sample("a [MASK] [MASK] b", chains=4, steps=200, seed=1, every=1)
    found = chain.diagnose(burn_in=20)
    assert [line.name for line in found.places] == ["place 0", "place 1"]
    assert not law.sample("a [MASK] [MASK] b", chains=4, steps=200, seed=1).diagnose().places


# ---- on disk


def test_a_recorded_run_goes_on_as_if_it_had_never_stopped(law, tmp_path):
    whole, parts = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl"
    law.sample("a [MASK] [MASK] b", chains=3, steps=20, seed=1, every=2, record=whole)
    law.sample("a [MASK] [MASK] b", chains=3, steps=9, seed=1, every=2, record=parts)
    with open(parts, "a") as file:
        file.write('{"step": 10, "chain": 0, "text": "half a li')  # killed while it wrote
    chain = law.sample("a [MASK] [MASK] b", chains=3, steps=20, seed=1, every=2, record=parts, resume=True)
    assert parts.read_text() == whole.read_text()
    rows = [json.loads(line) for line in whole.read_text().splitlines()]
    assert [row["step"] for row in rows] == [step for step in range(0, 21, 2) for _ in range(3)]
    assert [row["text"] for row in rows[-3:]] == list(chain)


def test_what_cannot_be_gone_on_with_is_told(law, tmp_path):
    file = tmp_path / "run.jsonl"
    settings = {"text": "a [MASK] [MASK] b", "chains": 2, "steps": 4, "record": file}
    with pytest.warns(UserWarning, match="there is no run to go on with"):
        law.sample(**settings, resume=True)
    with pytest.raises(BesagError, match="exists already"):
        law.sample(**settings)
    with pytest.raises(BesagError, match="other settings: seed is 5, and was 0"):
        law.sample(**settings, seed=5, resume=True)
    with pytest.raises(BesagError, match="other settings: outcomes is 'all', and was 'text'"):
        law.sample(**settings, outcomes="all", resume=True)
    with pytest.raises(BesagError, match="other settings: constraints is"):
        law.sample(**settings, constraints=[Forbidden("c")], resume=True)
    with pytest.raises(BesagError, match=r"recorded as \.jsonl or \.parquet"):
        Recording(tmp_path / "run.txt", about={}, every=1)
    with pytest.raises(BesagError, match="cannot be gone on with"):
        Recording(tmp_path / "run.parquet", about={}, every=1, resume=True)
    with pytest.raises(BesagError, match="no such folder"):
        Recording(tmp_path / "nowhere" / "run.jsonl", about={}, every=1)


def test_constraints_are_kept_to_or_refused(law):
    with pytest.raises(BesagError, match=r"'c'.*besag\.constraints\.allowed"):
        sample(law.engine, None, length=4, constraints=[Forbidden("c")])
    wanted = [Forbidden("c")]
    kept = sample(law.engine, None, length=4, chains=64, constraints=wanted, allow=partial(allowed, constraints=wanted))
    assert kept.texts == law.sample(length=4, chains=64, constraints=wanted).texts
    assert not any("c" in text for text in kept.texts)


def test_a_run_as_parquet(law, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    law.sample("a [MASK] [MASK] b", chains=2, steps=4, record=tmp_path / "run.parquet")
    rows = parquet.read_table(tmp_path / "run.parquet").to_pylist()
    assert [row["step"] for row in rows] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_chains_are_watched_while_they_run(law):
    seen = []
    law.sample(length=4, chains=2, steps=3, watch=lambda step, chains, texts: seen.append((step, chains, texts())))
    assert [step for step, _, _ in seen] == [0, 1, 2, 3]
    assert seen[0][2] == ["[MASK] [MASK] [MASK] [MASK]"] * 2


def test_the_embedded_model_writes_words(lm):
    chain = lm.sample("The [MASK] sat on the [MASK].", kernel="ordered", chains=3, seed=0)
    assert all(text.startswith("The ") and " sat on the " in text and "[MASK]" not in text for text in chain)


# ---- what is told of texts that are alike


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mask_predict", {}), ("ordered", {"pick": "argmax"}), ("grouped", {"pick": "argmax"}),
        ("refine", {"start": "mask", "hide": True}),
    ],
)  # fmt: skip
def test_chains_of_a_kernel_that_draws_nothing_are_told_to_be_one_text(law, name, options):
    found = law.sample("[MASK] a [MASK] b", name, chains=3, **options)
    assert len(set(found.texts)) == 1
    assert "1 DIFFERENT TEXT IN 3 CHAINS: one chain is enough, or draw tokens (pick='sample')" in found.facts
    assert not any("DIFFERENT" in fact for fact in law.sample("[MASK] a [MASK] b", name, chains=1, **options).facts)


def test_drawn_texts_that_are_alike_are_counted(law):
    found = law.sample("[MASK] a b c", "ordered", chains=30, seed=1)
    assert f"{len(set(found.texts))} DIFFERENT TEXTS IN 30 CHAINS" in found.facts


def test_passes_are_counted_in_words(law):
    assert "1 forward pass a chain" in law.sample("[MASK] a b c", "ordered", chains=2).facts


# ---- a token that is nothing but a space


@pytest.mark.parametrize(
    ("text", "free", "tokens", "written"),
    [
        ("[MASK] [MASK] [MASK] said.", None, ["▁", '"', "Yes"], '"Yes said.'),
        ("[MASK][MASK][MASK] said.", None, ["▁", '"', "Yes"], '"Yes said.'),
        ("He [MASK] [MASK] [MASK].", None, ["▁", '"', "Yes"], 'He "Yes.'),
        ("He was here.", [1, 2, 3], ["▁", '"', "Yes"], '"Yes.'),
        ("So he was here.", [2, 3, 4], ["▁", '"', "Yes"], 'So "Yes.'),
    ],
)
def test_a_text_that_begins_with_a_quote_begins_with_it(lm, text, free, tokens, written):
    sheet = template(lm.conditionals, text, free=free)
    ids = sheet.ids.copy()
    ids[list(sheet.at)] = [lm.vocabulary.id(token) for token in tokens]
    assert sheet.write(ids) == written


# ---- bounds


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"chains": 10**9}, "chains=1000000000: give at most 1,048,576"),
        ({"chains": 2**20, "length": 2**10}, "chains=1048576 of .* tokens: all of them together may have"),
        ({"steps": 10**30}, "steps=1000000000000000000000000000000: give a whole number of at most"),
        ({"every": 10**9}, "every=1000000000: give at most"),
        ({"length": 10**9}, "length=1000000000: give at most 131,072"),
    ],
)
def test_counts_have_bounds_that_are_told(arguments, told):
    lm = besag.load(Hashed(3), progress=False)
    with pytest.raises(BesagError, match=told):
        lm.sample(**{"length": 4, **arguments})
