from functools import cache

import numpy as np
import pytest
import torch
from tests import networks, tokenizers

import besag
from besag.conditionals.contract import Questions
from besag.diagnostics.compatibility import compatibility
from besag.errors import BesagError
from besag.places.places import find, of_tokens
from besag.reductions import Row
from besag.vocabulary import Vocabulary

TEXT = "The man is at the casino."


def vocabulary(family: str) -> Vocabulary:
    return Vocabulary(tokenizers.build(family))


@cache
def shared() -> Vocabulary:
    """[CLS] The man is at the cas ##ino . [SEP]"""
    return vocabulary("wordpiece-cased")


@pytest.fixture
def cased() -> Vocabulary:
    return shared()


def refused(*args, **kwargs) -> str:
    with pytest.raises(BesagError) as error:
        find(*args, **kwargs)
    return str(error.value)


def test_words_indices_spans_and_tokens_name_the_same_places(cased):
    expected = (2, 3)
    for positions in (("man", "is"), (2, 3), (-8, -7), ((4, 7), (8, 10)), (np.int64(2), [8, 10]), ("man", (9, 10))):
        places = find(cased, TEXT, positions)
        assert places.positions == places.at == expected
        assert places.gold == (cased.id("man"), cased.id("is"))
        assert places.ids.tolist() == places.encoded.ids.tolist()
    assert find(cased, TEXT, ("is", "man")).positions == (3, 2)  # in the order asked
    assert find(cased, TEXT, ("##ino", ".")).positions == (7, 8)  # a token as the tokenizer writes it, punctuation
    assert find(cased, TEXT, ("man", "is")).title == "'man' (token 2) and 'is' (token 3)"


@pytest.mark.parametrize("pair", [(1, 6), (3, 2), (5, 8)])
@pytest.mark.parametrize("limit", [None, 8])
def test_tokens_of_a_text_that_is_read_are_the_places_that_their_numbers_name(cased, pair, limit):
    expected = find(cased, TEXT, pair, limit, needs_context=False)
    [encoded] = cased.encode([TEXT])
    found = of_tokens(cased, encoded, pair, limit)
    assert (found.at, found.positions, found.gold) == (expected.at, expected.positions, expected.gold)
    assert found.ids.tolist() == expected.ids.tolist()


def test_a_word_is_a_whole_word_of_the_text(cased):
    assert find(cased, "The man is at the mat.", ("at", "man")).positions == (4, 2)  # not the "at" of "mat"
    assert find(cased, "a cat, a man: at", ("at",)).positions == (7,)
    assert "does not stand in" in refused(cased, TEXT, ("asin", "man"))


def test_sentence_pieces_and_residues():
    pieces = vocabulary("unigram")
    assert find(pieces, "The cats sleep", ("cats", "The")).positions == (2, 1)
    assert find(pieces, "The cats sleep", ("▁cats",)).positions == (2,)
    residues = vocabulary("character-slow")  # words are no help where there is no white space
    assert find(residues, "MKTAY", ("K", "Y")).positions == (2, 5)
    assert (
        "stands 2 times in 'MKTKY': token 2 (1:2), token 4 (3:4). Name one by its index or its characters."
        in refused(residues, "MKTKY", ("K", "Y"))
    )


@pytest.mark.parametrize("family", tokenizers.FAMILIES)
def test_masks_are_found_in_the_text_of_any_model(family):
    words = vocabulary(family)
    places = find(words, "The [MASK] sleep [MASK].")
    assert (places.encoded.ids[list(places.positions)] == words.mask_id).all()
    assert len(places.at) == 2
    assert places.gold is None
    assert words.mask_token in places.encoded.text


def test_a_mask_beside_a_word_hides_the_gold(cased):
    text = "The [MASK] is here."
    assert find(cased, text, ("[MASK]", "is")).gold is None
    assert find(cased, text, ("The", "is")).gold == (cased.id("The"), cased.id("is"))
    assert find(cased, text, ("[MASK]", "is"), gold=["man", "is"]).gold == (cased.id("man"), cased.id("is"))


def test_the_unknown_token_is_no_gold(cased):
    places = find(cased, "The 猫 is at the mat.", ("猫", "is"))
    assert places.encoded.tokens[places.positions[0]] == "[UNK]"
    assert places.gold is None


def test_spans_count_the_characters_that_were_written():
    words = vocabulary("no-specials")
    words.mask_token = "<the-mask-of-this-model>"
    words.tokenizer.add_special_tokens({"mask_token": words.mask_token})
    words.mask_id = words.tokenizer.mask_token_id
    text = "The [MASK] man [MASK] is"
    start = text.index("man")
    assert find(words, text, ((start, start + 3), (4, 10))).positions == (2, 1)
    assert find(words, text, ((len(text) - 2, len(text)),)).positions == (4,)


def test_gold_is_for_masks(cased):
    text = "The [MASK] is [MASK] the mat."
    assert find(cased, text, gold=["man", "at"]).gold == (cased.id("man"), cased.id("at"))
    assert "must name 2 words" in refused(cased, text, gold=["man"])
    assert "must name 2 words" in refused(cased, text, gold="man")
    assert "where the text says 'man'" in refused(cased, TEXT, ("man", "is"), gold=["A", "is"])
    assert "'casino' is 2 tokens" in refused(cased, text, gold=["casino", "at"])


def test_what_cannot_be_a_place_is_said(cased):
    assert "has no mask: write [MASK]" in refused(cased, TEXT)
    assert "same position, token 2 ('man')" in refused(cased, TEXT, ("man", 2))
    assert "there is no token 99" in refused(cased, TEXT, (1, 99))
    assert "there is no token -11" in refused(cased, TEXT, (1, -11))
    assert "token 0 of 'The man is at the casino.' is '[CLS]', a special token" in refused(cased, TEXT, (0, 1))
    assert "is '[SEP]', a special token" in refused(cased, "The [SEP] man", (2, 1))  # though it is written in the text
    assert "Did you mean 'man'?" in refused(cased, TEXT, ("mann", "is"))
    assert "stands 2 times" in refused(cased, "the man at the mat", ("the", "man"))
    assert "4:4 is no span" in refused(cased, TEXT, ((4, 4), 1))
    assert "20:99 is no span" in refused(cased, TEXT, ((20, 99), 1))
    assert "(1, 2, 3) is no position" in refused(cased, TEXT, ((1, 2, 3), 1))
    assert "no token stands at 3:4 of" in refused(cased, TEXT, ((3, 4), 1))
    assert "True is no position" in refused(cased, TEXT, (True, 2))
    assert "None is no position" in refused(cased, TEXT, (None, 2))
    assert "positions='man'" in refused(cased, TEXT, "man")
    assert "positions is empty" in refused(cased, TEXT, ())
    assert "'' is no position" in refused(cased, TEXT, ("", "man"))
    assert "expected a text" in refused(cased, 7)
    cased.mask_id, mask = None, cased.mask_id
    try:
        assert "has no mask token" in refused(cased, TEXT)
    finally:
        cased.mask_id = mask


def test_a_word_of_several_tokens_is_a_block(cased):
    message = refused(cased, TEXT, ("casino", "is"))
    assert message == (
        "'casino' is 2 tokens (cas ##ino): give their positions (6, 7) to joint(...) for a block joint over all of "
        "them."
    )
    assert "(18, 24) is 2 tokens" in refused(cased, TEXT, ((18, 24), 2))
    assert "tokens 1, 2 (0:6), tokens 4, 5 (10:16)" in refused(cased, "casino is casino", ("casino", "is"))


# ---- contexts that the model knows nothing of


@pytest.fixture(scope="module")
def network():
    return besag.load((networks.tiny("bert"), networks.vocabulary("bert").tokenizer), progress=False)


ASKED = {
    "joint": lambda lm, text, **rest: lm.joint(text, candidates=3, **rest),
    "block": lambda lm, text: lm.joint(text.replace("[MASK]", "[MASK] [MASK]", 1), candidates=2),
    "compare": lambda lm, text: lm.joint(text, candidates=3).compare(),
    "compatibility": lambda lm, text: compatibility(lm.engine, text, candidates=3),
    "fill": lambda lm, text: lm.fill(text, candidates=3),
    "fill one": lambda lm, text: lm.fill(text.replace("[MASK]", "", 1)),
    "fill beam": lambda lm, text: lm.fill(text, beam=2, candidates=3),
    "solve": lambda lm, text: lm.solve(text, [besag.Forbidden("zebra")]),
    "rectangles": lambda lm, text: lm.rectangles(text, minors=2),
}


@pytest.mark.parametrize("verb", ASKED)
def test_a_context_of_unknown_tokens_alone_is_refused_and_some_are_counted(network, verb):
    with pytest.raises(BesagError, match=r"knows nothing of '世.*2 tokens, is unknown to its tokenizer"):
        ASKED[verb](network, "世 [MASK] [MASK] 界")
    assert "2 SHOWN TOKENS UNKNOWN TO THE MODEL" in ASKED[verb](network, "世 [MASK] [MASK] 界 man").facts
    known = ASKED[verb](network, "man [MASK] [MASK] is")
    assert not any("UNKNOWN" in fact for fact in known.facts)
    assert ASKED[verb](network, "[MASK] [MASK]").facts  # no context at all is a question like others


def test_maps_of_a_text_are_refused_where_all_of_it_is_unknown(network):
    for verb in (lambda text: network.dependence(text, candidates=2), lambda text: network.rectangles(text, minors=1)):
        with pytest.raises(BesagError, match="knows nothing of '世 界'"):
            verb("世 界")
        assert "1 SHOWN TOKEN UNKNOWN TO THE MODEL" in verb("man is 界").facts
    assert network.marginals("世 界").status == "unknown"
    assert "2 SHOWN TOKENS UNKNOWN TO THE MODEL" in network.sample("世 [MASK] 界", "ordered", chains=1).facts
    assert "1 SHOWN TOKEN UNKNOWN TO THE MODEL" in network.marginals("man is 界").facts


# ---- texts that are longer than the model

LONG = "the man is at the casino " * 12  # 72 words into 40 positions
TOO_LONG = {
    "fill": lambda lm: lm.fill(f"[MASK] {LONG} [MASK]"),
    "fill beam": lambda lm: lm.fill(f"[MASK] {LONG} [MASK]", beam=2, candidates=2),
    "joint": lambda lm: lm.joint(f"[MASK] {LONG} [MASK]", candidates=2),
    "block": lambda lm: lm.joint(f"[MASK] {LONG} [MASK] [MASK]", candidates=2),
    "compatibility": lambda lm: compatibility(lm.engine, f"[MASK] {LONG} [MASK]", candidates=2),
    "rectangles": lambda lm: lm.rectangles(f"[MASK] {LONG} [MASK]", minors=1),
    "dependence": lambda lm: lm.dependence(LONG, candidates=2),
    "solve": lambda lm: lm.solve(f"[MASK] {LONG} [MASK]", [besag.Forbidden("zebra")]),
    "sample": lambda lm: lm.sample(f"[MASK] {LONG} [MASK]", "ordered", chains=1),
    "edit": lambda lm: lm.edit(LONG + "zebra", {"zebra": "cat"}),
    "invert": lambda lm: lm.invert(LONG),
    "normalise": lambda lm: lm.normalise([LONG], chains=1, levels=1),
}
IN_WINDOWS = {
    "score": lambda lm: lm.score(LONG),
    "marginals": lambda lm: lm.marginals(LONG, candidates=["man"]),
    "choose": lambda lm: lm.choose(f"{LONG} [MASK]", ["man", "is"]),
    "pairs": lambda lm: lm.pairs([LONG], pairs="contiguous", per_text=1, candidates=2),
    "fill near": lambda lm: lm.fill(f"{LONG} [MASK] [MASK]", beam=2, candidates=2),
    "semi_ar": lambda lm: lm.sample(f"{LONG} [MASK]", "semi_ar", chains=1, window=16),
}


@pytest.mark.parametrize("verb", TOO_LONG)
def test_what_the_model_cannot_see_at_once_is_refused(network, verb):
    with pytest.raises(BesagError, match=r"sees|longer|tokens"):
        TOO_LONG[verb](network)


@pytest.mark.parametrize("verb", IN_WINDOWS)
def test_or_read_in_windows_that_the_model_can_see(network, monkeypatch, verb):
    seen = []
    rows = type(network.conditionals).rows
    monkeypatch.setattr(
        type(network.conditionals), "rows", lambda self, asked: [seen.append(asked.ids.shape[1]), rows(self, asked)][1]
    )
    assert IN_WINDOWS[verb](network) is not None
    assert 0 < max(seen) <= network.conditionals.max_length


def test_no_sequence_gets_past_the_engine_that_is_longer_than_the_model(network):
    ids = torch.zeros(1, 41, dtype=torch.long)
    with pytest.raises(BesagError, match=r"a sequence of 41 tokens was asked, and .* sees 40 at a time"):
        network.engine.answer(Questions(ids, torch.tensor([0]), torch.tensor([1])), Row())


def test_or_has_a_status_where_it_is_one_of_many(network):
    [row] = network.augment(LONG)
    assert row.status == "long"
