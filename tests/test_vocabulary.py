"""Text to ids and back: every tokenizer family, and every word policy."""

from __future__ import annotations

import logging
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tokenizers import FAMILIES, SENTENCES, build
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers
from transformers import BertTokenizer, PreTrainedTokenizerFast

from besag.errors import BesagError
from besag.vocabulary import Encoded, Vocabulary

WORDPIECE = ("wordpiece-cased", "wordpiece-uncased", "wordpiece-slow")
ODD = (
    "The cat's [MASK] 世界 <mask> café cafe\u0301 naïve.\u00a0A\tdog 🙂👨\u200d👩\u200d👧!",
    "  a  世  ",
    " [SEP] </s> a<mask>b",
    "MKTAYIAKQR <cls> XX-J",
    "",
    "   ",
)
PIECES = [
    "The",
    "cats",
    "cat",
    "don't",
    "sleep",
    "xqz",
    "世",
    "界",
    "é",
    "🙂",
    "[MASK]",
    "<mask>",
    "[UNK]",
    "##",
    "▁",
    "Ġ",
]
PIECES += [" ", "  ", "\t", "\u00a0", "\n", ",", ".", "'", "-", "a", "L", "J", "ß", "½", "İ"]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=12)


@cache
def vocabulary(name: str) -> Vocabulary:
    return Vocabulary(build(name))


def one(name: str, text: str, **options: object) -> Encoded:
    [encoded] = vocabulary(name).encode([text], **options)
    return encoded


def slices(encoded: Encoded) -> list[str]:
    return [encoded.text[start:end] for start, end in encoded.offsets[encoded.places]]


def groups(encoded: Encoded) -> list[list[str]]:
    """The scored characters of each word."""
    inside = encoded.places
    found: dict[int, list[str]] = {}
    for word, letters in zip(encoded.words[inside].tolist(), slices(encoded), strict=True):
        found.setdefault(word, []).append(letters)
    return list(found.values())


# ---------------------------------------------------------------- ids, offsets, special tokens


@pytest.mark.parametrize("name", FAMILIES)
def test_ids_are_what_the_tokenizer_says(name: str) -> None:
    for encoded, ids in zip(
        vocabulary(name).encode([*SENTENCES, *ODD]), build(name)([*SENTENCES, *ODD])["input_ids"], strict=True
    ):
        assert encoded.ids.tolist() == ids
        assert len(encoded.tokens) == len(encoded.offsets) == len(encoded.words) == len(encoded.special) == len(ids)
        assert [vocabulary(name).token(id) for id in ids] == list(encoded.tokens)


@pytest.mark.parametrize("name", FAMILIES)
@given(text=texts)
def test_offsets_are_trimmed_ordered_and_inside_the_text(name: str, text: str) -> None:
    encoded = one(name, text)
    inner = encoded.offsets[~encoded.special]
    assert (encoded.offsets[encoded.special] == 0).all()
    assert (inner >= 0).all()
    assert (inner <= len(text)).all()
    assert (inner[:, 0] <= inner[:, 1]).all()
    assert (np.diff(inner[:, 0]) >= 0).all()
    for start, end in inner:
        assert text[start:end] == text[start:end].strip()
    words = encoded.words[~encoded.special]
    assert (encoded.words[encoded.special] == -1).all()
    assert len(words) == 0 or words[0] == 0
    assert set(np.diff(words).tolist()) <= {0, 1}
    expected = np.flatnonzero(~encoded.special) if text.strip() else []
    assert encoded.places.tolist() == list(expected)


@pytest.mark.parametrize("name", FAMILIES)
@given(batch=st.lists(texts, max_size=5))
def test_neighbours_in_the_batch_change_nothing(name: str, batch: list[str]) -> None:
    for together, text in zip(vocabulary(name).encode(batch), batch, strict=True):
        alone = one(name, text)
        for field in ("ids", "offsets", "words", "special"):
            assert np.array_equal(getattr(together, field), getattr(alone, field))
        assert (together.tokens, together.unknown) == (alone.tokens, alone.unknown)


@given(text=texts)
def test_a_byte_level_vocabulary_covers_every_character(text: str) -> None:
    covered = {index for start, end in one("bytelevel-trimmed", text).offsets for index in range(start, end)}
    assert covered == {index for index, letter in enumerate(text) if not letter.isspace()}


@pytest.mark.parametrize("name", FAMILIES)
def test_special_tokens_written_in_the_text_are_not_added_ones(name: str) -> None:
    tokenizer = build(name)
    added = one(name, "").special.sum()
    for token in tokenizer.all_special_tokens:
        encoded = one(name, f"{token} A {token}")
        assert encoded.special.sum() == added
        assert slices(encoded)[0] == slices(encoded)[-1] == token
        assert encoded.ids[encoded.places][[0, -1]].tolist() == [vocabulary(name).id(token)] * 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("wordpiece-cased", "[CLS] … [SEP] shown, not scored"),
        ("bytelevel-trimmed", "<s> … </s> shown, not scored"),
        ("character-slow", "<cls> … <eos> shown, not scored"),
        ("no-specials", "none added"),
    ],
)
def test_special_token_policy_in_words(name: str, expected: str) -> None:
    assert vocabulary(name).special_text == expected


@pytest.mark.parametrize("name", FAMILIES)
def test_words_are_set_apart_by_spaces_and_residues_are_not(name: str) -> None:
    assert Vocabulary(build(name)).spaced == (name != "character-slow")


def test_chinese_is_written_without_spaces_and_symbols_with() -> None:
    signs = "今天很好我们去北京吃饭的人山水"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *signs, "hello", "world", *(f"##{sign}" for sign in signs)]
    chinese = BertTokenizer(vocab={token: id for id, token in enumerate(tokens)})
    assert not Vocabulary(chinese).spaced
    assert Vocabulary.of_symbols(["a", "b"]).spaced
    words = Tokenizer(models.WordLevel({"a": 0, "b": 1, "[MASK]": 2}))  # knows no unknown token, and breaks on "ab"
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    assert Vocabulary(PreTrainedTokenizerFast(tokenizer_object=words, mask_token="[MASK]")).spaced


def test_special_token_policy_with_a_start_only_and_without_a_mask() -> None:
    tokenizer = build("character-slow")
    tokenizer.mask_token = None
    tokenizer.eos_token = None
    limited = Vocabulary(tokenizer)
    assert (limited.mask_id, limited.mask_token) == (None, None)
    assert limited.special_text == "<cls> … shown, not scored"


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("text", ["", " ", "\t\n \u00a0"])
def test_nothing_to_score(name: str, text: str) -> None:
    assert len(one(name, text).places) == 0
    assert len(one(name, text, prefix="The cats", suffix="sleep").places) == 0


def test_offsets_count_characters() -> None:
    assert slices(one("wordpiece-uncased", "🙂 café 世界\u00a0cat")) == ["🙂", "café", "世", "界", "cat"]
    assert set(slices(one("bytelevel-untrimmed", "🙂"))) == {"🙂"}


@pytest.mark.parametrize("name", ["bytelevel-trimmed", "bytelevel-untrimmed"])
def test_the_space_before_a_word_is_not_in_its_offsets(name: str) -> None:
    encoded = one(name, "The cat sleeps")
    assert encoded.tokens[2] == "Ġcat"
    assert encoded.offsets[2].tolist() == [4, 7]


def test_a_token_of_nothing_but_space_is_empty_at_the_word_it_opens() -> None:
    encoded = one("unigram", "a 世")
    assert [encoded.tokens[place] for place in encoded.places] == ["▁", "a", "▁", "<unk>"]
    assert encoded.offsets[encoded.places].tolist() == [[0, 0], [0, 1], [2, 2], [2, 3]]
    assert encoded.words[encoded.places].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("splits", [True, False])
def test_a_lone_space_that_really_stands_in_the_text(splits: bool) -> None:
    """Metaspace alone (CamemBERT), and "▁" as a letter like any other, which leaves a sentence whole (Gemma)."""
    backend = Tokenizer(models.Unigram([("<unk>", 0.0), ("▁", -1.0), ("▁a", -2.0), ("b", -1.0)], unk_id=0))
    if splits:
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    else:
        backend.normalizer = normalizers.Replace(" ", "▁")
        backend.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    [encoded] = Vocabulary(tokenizer).encode(["b a b "])
    kept = [(token, *span) for token, span in zip(encoded.tokens, encoded.offsets.tolist(), strict=True)]
    assert kept[-5:] == [("b", 0, 1), ("▁a", 2, 3), ("▁", 4, 4), ("b", 4, 5), ("▁", 6, 6)]
    assert encoded.words.tolist() == ([0, 0, 1, 2, 2, 3] if splits else [0, 1, 2, 2, 3])
    assert encoded.word_policy == ("tokenizer" if splits else "whitespace")


def test_a_mask_that_swallows_the_space_before_it() -> None:
    tokenizer = build("bytelevel-trimmed")
    tokenizer.add_special_tokens({"mask_token": AddedToken("<mask>", lstrip=True)})
    [encoded] = Vocabulary(tokenizer).encode(["The  <mask> sleeps"])
    assert slices(encoded)[:2] == ["The", "<mask>"]


def test_never_truncated_padded_or_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = build("wordpiece-uncased")
    tokenizer.model_max_length = 8
    tokenizer.backend_tokenizer.enable_truncation(6)
    tokenizer.backend_tokenizer.enable_padding(length=64)
    logging.getLogger("transformers").propagate = True
    with caplog.at_level(logging.WARNING):
        [long, short] = Vocabulary(tokenizer).encode(["cat " * 50, "cat"])
    assert (len(long.ids), len(short.ids)) == (52, 3)
    assert not caplog.records


def test_unknown_tokens_are_counted_where_they_are_scored() -> None:
    assert one("wordpiece-cased", "The 世 cat 界").unknown == 2
    assert one("wordpiece-cased", "cat", prefix="世", suffix="界").unknown == 0
    assert one("wordpiece-cased", "世", prefix="世", suffix="界").unknown == 1
    assert one("character-slow", "MK J LL").unknown == 1
    assert one("bytelevel-trimmed", "世").unknown == 0


# ---------------------------------------------------------------- tokenizers that tell no offsets


@given(text=st.lists(st.sampled_from([piece for piece in PIECES if piece not in ("▁", "İ")]), max_size=12).map("".join))
def test_a_slow_tokenizer_is_aligned_as_the_fast_one_is(text: str) -> None:
    slow, fast = one("wordpiece-slow", text), one("wordpiece-uncased", text)
    assert slow.tokens == fast.tokens
    assert slow.offsets.tolist() == fast.offsets.tolist()


# ---------------------------------------------------------------- words


def test_words_of_the_tokenizer_and_of_white_space() -> None:
    text = "The cat's dog, didn't"
    assert groups(one("wordpiece-cased", text))[:4] == [["The"], ["cat"], ["'"], ["s"]]
    by_space = one("wordpiece-cased", text, words="whitespace")
    assert ["".join(word) for word in groups(by_space)] == text.split()
    assert by_space.word_policy == "whitespace"


@pytest.mark.parametrize("name", FAMILIES)
@given(text=texts)
def test_white_space_words_are_the_runs_between_spaces(name: str, text: str) -> None:
    encoded = one(name, text, words="whitespace")
    runs = [
        index for index in range(len(text)) if not text[index].isspace() and (index == 0 or text[index - 1].isspace())
    ]
    first: dict[int, int] = {}
    for word, (start, end) in zip(encoded.words, encoded.offsets, strict=True):
        if word >= 0 and start < end:
            run = sum(begin <= start for begin in runs)
            assert first.setdefault(int(word), run) == run
    assert len(set(first.values())) == len(first)


def test_a_slow_tokenizer_falls_back_to_white_space() -> None:
    encoded = one("wordpiece-slow", "The cat's")
    assert encoded.word_policy == "whitespace"
    assert groups(encoded) == [["The"], ["cat", "'", "s"]]


@pytest.mark.parametrize("name", FAMILIES)
def test_given_words(name: str) -> None:
    text = "The cat's mat."
    for words in (["The", "cat's", "mat"], [(0, 3), (4, 9), (10, 13)]):
        encoded = one(name, text, words=[words], prefix="The cat's", suffix="The cat's")
        assert encoded.word_policy == "given"
        assert ["".join(word) for word in groups(encoded)] == ["The", "cat's", "mat", "."]
        outside = np.setdiff1d(np.flatnonzero(~encoded.special), encoded.places)
        assert len(np.unique(encoded.words[outside])) == len(outside)
    encoded = one(name, text, words=[[]])
    assert encoded.words[~encoded.special].tolist() == list(range((~encoded.special).sum()))


def test_given_words_of_each_text_are_its_own() -> None:
    pair = vocabulary("wordpiece-cased").encode(["The cat", "cat The"], words=[["The cat"], ["cat", "The"]])
    assert [encoded.words.tolist() for encoded in pair] == [[-1, 0, 0, -1], [-1, 0, 1, -1]]


# ---------------------------------------------------------------- prefix and suffix


@pytest.mark.parametrize("name", FAMILIES)
@given(text=texts, prefix=texts, suffix=texts, separator=st.sampled_from([" ", "", " - "]))
def test_context_is_one_string_and_only_the_text_is_scored(
    name: str, text: str, prefix: str, suffix: str, separator: str
) -> None:
    encoded = one(name, text, prefix=prefix, suffix=suffix, separator=separator)
    assert encoded.text == separator.join(part for part in (prefix, text, suffix) if part)
    assert encoded.text[slice(*encoded.span)] == text
    assert encoded.ids.tolist() == one(name, encoded.text).ids.tolist()
    scored = set(encoded.places.tolist())
    for place, (start, end) in enumerate(encoded.offsets.tolist()):
        shared = encoded.text[max(start, encoded.span[0]) : min(end, encoded.span[1])].strip()
        if encoded.special[place] or not text.strip():
            assert place not in scored
        elif start < end:
            assert (place in scored) == bool(shared)


@pytest.mark.parametrize("name", WORDPIECE)
@given(text=texts)
def test_context_apart_by_a_space_leaves_word_pieces_as_they_are(name: str, text: str) -> None:
    alone, inside = one(name, text), one(name, text, prefix="The cats", suffix="sleep.")
    assert inside.ids[inside.places].tolist() == alone.ids[alone.places].tolist()
    shift = inside.span[0]
    assert (inside.offsets[inside.places] - shift).tolist() == alone.offsets[alone.places].tolist()


def test_a_token_across_the_edge_is_scored() -> None:
    encoded = one("wordpiece-cased", "eep", prefix="The cats sl", separator="")
    assert slices(encoded) == ["sleep"]
    assert encoded.text[slice(*encoded.span)] == "eep"


def test_the_space_before_the_first_scored_word_belongs_to_it() -> None:
    encoded = one("unigram", "世", prefix="The", suffix="世")
    assert [encoded.tokens[place] for place in encoded.places] == ["▁", "<unk>"]
    assert encoded.offsets[encoded.places].tolist() == [[4, 4], [4, 5]]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: v.encode("The cat"), r"expected a list of texts, got the text 'The cat': write \['The cat'\]"),
        (lambda v: v.encode(["a", None]), "expected text, got None of type NoneType"),
        (lambda v: v.encode(["a"], prefix=3), "expected text, got 3 of type int"),
        (lambda v: v.encode(["a"], words="whitspace"), "'whitspace'.*Did you mean 'whitespace'"),
        (lambda v: v.encode(["ok", "half \ud83d", "\u00e9"]), r"'half \\ud83d' holds half of a surrogate pair"),
        (lambda v: v.encode(["a"], suffix="\udc00"), "surrogate"),
        (lambda v: v.encode(["The cat"], words=["The", "cat"]), "one list of words for each of the 1 texts"),
        (lambda v: v.encode(["The cat"], words=["cat"]), "one list of words"),
        (lambda v: v.encode(["The cat"], words=[["cat", "The"]]), "the word 'The' does not follow in ''.*'The cat'"),
        (lambda v: v.encode(["The cat"], words=[["The", " "]]), "the word ' ' does not follow"),
        (lambda v: v.encode(["The cat"], words=[[(0, 3), (2, 5)]]), r"\(2, 5\) is no \(start, end\) within 'The cat'"),
        (lambda v: v.encode(["The cat"], words=[[(0, 30)]]), r"\(0, 30\)"),
        (lambda v: v.encode(["The cat"], words=[[(0,)]]), r"\(0,\)"),
        (lambda v: v.encode(["The cat"], words=[[7]]), "7 is no"),
        (lambda v: v.encode(["The cat"], words=[7]), r"one list of words .* got \[7\]"),
        (lambda v: v.encode(["The cat"], words=None), "one list of words .* got None"),
        (lambda v: v.id("slep"), "'slep' is not a token.*Did you mean 'sleep'"),
    ],
)
def test_errors_quote_what_was_given(call, message: str) -> None:
    with pytest.raises(BesagError, match=message):
        call(vocabulary("wordpiece-cased"))


def test_nothing_in_nothing_out() -> None:
    assert vocabulary("wordpiece-cased").encode([]) == []


# ---------------------------------------------------------------- ids and tokens


@pytest.mark.parametrize("name", FAMILIES)
def test_ids_and_tokens_are_inverse(name: str) -> None:
    known = vocabulary(name)
    assert known.size == len(build(name))
    assert all(known.id(known.token(id)) == id for id in range(known.size))
    assert known.token(known.mask_id) == known.mask_token
    assert {known.mask_id, known.pad_id, known.unknown_id} <= known.special_ids
    assert known.token(known.size) == f"<no token {known.size}>"
    assert known.token(-1) == "<no token -1>"


def test_symbols() -> None:
    known = Vocabulary.of_symbols(["b", "a", "7"])
    assert (known.mask_id, known.size, known.unknown_id, known.special_text) == (3, 4, None, "none added")
    [encoded] = known.encode(["a  [MASK] 7 b"])
    assert encoded.ids.tolist() == [1, 3, 2, 0]
    assert encoded.words.tolist() == [0, 1, 2, 3]
    assert slices(encoded) == ["a", "[MASK]", "7", "b"]
    assert known.encode(["a"], prefix="b", suffix="7")[0].places.tolist() == [1]


def test_symbols_refuse_strangers() -> None:
    known = Vocabulary.of_symbols(["north", "south"])
    with pytest.raises(BesagError, match=r"'nort' in 'south nort' is not one of the symbols north south \[MASK\]"):
        known.encode(["north", "south nort"])
    for symbols, message in (
        (["a", "a"], "differ"),
        (["a b"], "'a b'"),
        ([""], "''"),
        (["[MASK]"], "cannot"),
        ([1], "1"),
    ):
        with pytest.raises(BesagError, match=message):
            Vocabulary.of_symbols(symbols)


def test_texts_that_cannot_be_decoded_are_read_as_empty_where_that_is_wanted() -> None:
    words = Vocabulary.of_symbols(["a", "b"])
    texts, prefix = ["a b", "a\ud800", "b"], ["", "a", "b\udce9"]
    given = [["a", "b"], ["a"], ["b"]]
    for options in ({}, {"words": given}):
        good, bad, behind = words.encode(texts, prefix=prefix, lenient=True, **options)
        assert [one.decodable for one in (good, bad, behind)] == [True, False, False]
        assert good.ids.tolist() == words.encode(["a b"])[0].ids.tolist()
        assert (bad.text, bad.text[slice(*bad.span)], len(bad.places)) == ("a\\ud800", "a\\ud800", 0)
    with pytest.raises(BesagError, match="half of a surrogate pair"):
        words.encode(["a", "b"], prefix="\ud800", lenient=True)  # of all texts: no row's affair
