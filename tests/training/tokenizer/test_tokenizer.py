"""Trained tokenizers: exact sizes, round trips, nothing unknown, the same vocabulary every time."""

from __future__ import annotations

import unicodedata
import warnings
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import BesagError
from besag.training.tokenizer import BYTES, KINDS, SPECIALS, Layout, _sampled, count_words, train_tokenizer
from besag.vocabulary import Vocabulary

WORDS = [
    "the", "cat", "sleeps", "on", "a", "mat", "and", "dogs", "were", "barking", "at", "1984", "old,", "grey", "cats'",
    "tails;", "naïve", "Readers", "reread", "Unhappily",
]  # fmt: skip


@cache
def texts() -> tuple[str, ...]:
    generator = np.random.default_rng(0)
    parts = ["ba", "re", "ing", "sk", "to", "un", "le", "mer", "ess", "go", "il", "ant"]
    words = [*WORDS, *("".join(generator.choice(parts, generator.integers(2, 5))) for _ in range(300))]
    chance = 1 / np.arange(1, len(words) + 1)
    lines = [" ".join(generator.choice(words, 12, p=chance / chance.sum())) + "." for _ in range(500)]
    return (*lines[:-1], lines[-1] + " 漢")


@cache
def trained(kind: str, size: int = 600, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return train_tokenizer(texts(), kind=kind, size=size, **options)  # type: ignore[arg-type]


def normal(text: str) -> str:
    """The documented normal form, from its words."""
    spaces = "\t\n\x0b\x0c\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
    return "".join(" " if letter in spaces else letter for letter in unicodedata.normalize("NFC", text))


ANY = st.text(
    st.one_of(
        st.characters(codec="utf-8", exclude_characters="▁"),
        st.sampled_from(" \t\n'.,#7abc猫é"),
    ),
    max_size=30,
)


@pytest.mark.parametrize("kind", KINDS)
@given(text=ANY)
def test_with_byte_fallback_every_text_comes_back(kind: str, text: str) -> None:
    tokenizer = trained(kind)
    ids = tokenizer(text)["input_ids"]
    found = tokenizer.decode(ids, skip_special_tokens=True)
    wanted = normal(text)
    assert found == (wanted if kind == "wordpiece" else wanted.removeprefix(" "))
    assert tokenizer.unk_token_id not in ids


@pytest.mark.parametrize("kind", KINDS)
@given(words=st.lists(st.sampled_from([*WORDS, "mat.", "(cats)", " "]), max_size=8))
def test_without_it_known_letters_come_back(kind: str, words: list[str]) -> None:
    tokenizer = trained(kind, 200, byte_fallback=False)
    text = " ".join(words).replace("(", "").replace(")", "")
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids, skip_special_tokens=True) == text.removeprefix(" ")
    assert tokenizer.unk_token_id in tokenizer("a 犬 b")["input_ids"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_the_size_is_exact(kind: str, byte_fallback: bool) -> None:
    low = {("wordpiece", True): 517, ("wordpiece", False): 90}.get((kind, byte_fallback), 270 if byte_fallback else 60)
    for size in (low, low + 33):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tokenizer = train_tokenizer(texts(), kind=kind, size=size, byte_fallback=byte_fallback)  # type: ignore[arg-type]
        assert len(tokenizer) == size
        assert sorted(tokenizer.get_vocab().values()) == list(range(size))


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_with_too_few_pieces_says_so(kind: str) -> None:
    with pytest.warns(UserWarning, match=r"tokens, not 5,000"):
        tokenizer = train_tokenizer(texts(), kind=kind, size=5000)  # type: ignore[arg-type]
    assert len(tokenizer) < 5000


@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_size_is_told_and_is_enough(kind: str) -> None:
    with pytest.raises(BesagError, match="size=20 is smaller than the alphabet") as failure:
        train_tokenizer(texts(), kind=kind, size=20, byte_fallback=False)  # type: ignore[arg-type]
    smallest = int(str(failure.value).split("at least size=")[1].split(",")[0])
    tokenizer = train_tokenizer(texts(), kind=kind, size=smallest, byte_fallback=False)  # type: ignore[arg-type]
    assert len(tokenizer) == smallest
    assert tokenizer.unk_token_id not in tokenizer(texts()[-1])["input_ids"]
    with pytest.raises(BesagError, match="smaller than the alphabet"):
        train_tokenizer(texts(), kind=kind, size=smallest - 1, byte_fallback=False)  # type: ignore[arg-type]
    with pytest.raises(BesagError, match="smaller than the alphabet"):
        train_tokenizer(texts(), kind=kind, size=260)  # type: ignore[arg-type]
    least = 517 if kind == "wordpiece" else 263
    assert len(train_tokenizer(texts(), kind=kind, size=least)) == least  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_training_again_gives_the_same(kind: str) -> None:
    first, second = (train_tokenizer(texts(), kind=kind, size=560) for _ in range(2))  # type: ignore[arg-type]
    shuffled = train_tokenizer(reversed(texts()), kind=kind, size=560)  # type: ignore[arg-type]
    assert shuffled.backend_tokenizer.to_str() == first.backend_tokenizer.to_str()
    assert first.backend_tokenizer.to_str() == second.backend_tokenizer.to_str()


@pytest.mark.parametrize("kind", KINDS)
def test_the_layout_is_the_embedded_models(kind: str) -> None:
    tokenizer = trained(kind)
    assert tuple(tokenizer.convert_ids_to_tokens(range(5))) == SPECIALS
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("the cat [MASK].")["input_ids"])
    assert (tokens[0], *tokens[-3:]) == ("[CLS]", "[MASK]", ".", "[SEP]")
    without = tokenizer.convert_ids_to_tokens(tokenizer("the cat")["input_ids"])
    assert tokens[1:-3] == without[1:-1]  # the space on its left is the mask's own
    pair = tokenizer("a", "b")["input_ids"]
    assert [token for token in tokenizer.convert_ids_to_tokens(pair) if token in SPECIALS] == [
        "[CLS]",
        "[SEP]",
        "[SEP]",
    ]
    assert Vocabulary(tokenizer).special_text == "[CLS] … [SEP] shown, not scored"


@pytest.mark.parametrize("kind", KINDS)
def test_it_survives_a_folder(kind: str, tmp_path: Any) -> None:
    from transformers import AutoTokenizer

    tokenizer = trained(kind)
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    text = " the naïve cats' [MASK] 1984 犬"
    assert again(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert again.decode(again(text)["input_ids"]) == tokenizer.decode(tokenizer(text)["input_ids"])


def test_digits_and_case() -> None:
    tokens = trained("bpe").convert_ids_to_tokens(trained("bpe")("1984")["input_ids"])[1:-1]
    assert tokens == ["▁", "1", "9", "8", "4"]
    together = trained("bpe", digits=False)
    assert together.convert_ids_to_tokens(together("1984")["input_ids"])[1:-1] == ["▁1984"]
    lower = trained("unigram", cased=False)
    assert lower("Readers")["input_ids"] == lower("readers")["input_ids"]
    assert lower.decode(lower("Unhappily")["input_ids"], skip_special_tokens=True) == "unhappily"
    cased = trained("unigram")
    assert cased("Readers")["input_ids"] != cased("readers")["input_ids"]


def test_quotes_and_compatibility_forms_if_wanted() -> None:
    plain = trained("bpe", plain_quotes=True, form="nfkc")
    assert plain.decode(plain("“cat’s” ﬁne")["input_ids"], skip_special_tokens=True) == '"cat\'s" fine'
    exact = trained("bpe")
    assert exact.decode(exact("“cat’s” ﬁne")["input_ids"], skip_special_tokens=True) == "“cat’s” ﬁne"


def test_rare_letters_are_bytes_and_frequent_ones_are_not() -> None:
    tokenizer = trained("unigram", coverage=0.999)
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("漢")["input_ids"])[1:-1]
    assert [token for token in tokens if token in BYTES] == ["<0xE6>", "<0xBC>", "<0xA2>"]
    assert "漢" not in tokenizer.get_vocab()
    assert "漢" in trained("unigram", coverage=1.0).get_vocab()


def test_bpe_merges_the_most_frequent_pair_first() -> None:
    tokenizer = train_tokenizer(["ab ab ab cd cd ab"], kind="bpe", size=5 + 5 + 2, byte_fallback=False)
    assert set(tokenizer.get_vocab()) - set(SPECIALS) == {"▁", "a", "b", "c", "d", "ab", "▁ab"}


def test_the_unigram_vocabulary_is_a_law_that_prefers_frequent_words() -> None:
    import json

    scores = dict(json.loads(trained("unigram").backend_tokenizer.to_str())["model"]["vocab"][5 + 256 :])
    assert sum(np.exp(list(scores.values()))) == pytest.approx(1, abs=0.05)
    assert scores["▁the"] > scores["▁barking"]


def test_words_are_counted_as_they_are_cut() -> None:
    found = count_words(["the cat, the", "cat 10"], Layout("unigram"))
    assert found == Counter({"▁the": 2, "▁cat": 2, ",": 1, "▁": 1, "1": 1, "0": 1})


def test_a_sample_is_drawn_by_noise_and_keeps_the_order() -> None:
    lines = [f"line {number:04}" for number in range(2000)]  # 9 bytes each
    found = _sampled(lines, 900, seed=1)
    assert len(found) == 100
    assert found == sorted(found)
    assert found == _sampled(["\n".join(lines)], 900, seed=1)
    assert found != _sampled(lines, 900, seed=2)
    assert set(found) <= set(_sampled(lines, 1800, seed=1))  # a smaller sample is part of a larger one
    places = np.array([int(line[5:]) for line in _sampled(lines, 9000, seed=3)])
    assert abs(places.mean() - 999.5) < 4 * 2000 / np.sqrt(12 * 1000)
    assert _sampled(lines, 10**6, seed=1) == lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "unigramm"}, "Did you mean 'unigram'"),
        ({"coverage": 0.0}, "coverage=0.0"),
        ({"form": "nfd"}, "form='nfd'"),
        ({"sample": 0}, "sample=0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BesagError, match=message):
        train_tokenizer(["a cat"], **options)


def test_no_text_is_refused() -> None:
    for nothing in ([], ["", " \n "]):
        with pytest.raises(BesagError, match="no text"):
            train_tokenizer(nothing)
    with pytest.raises(BesagError, match="texts='the cat': give a list of texts"):
        train_tokenizer("the cat")
    with pytest.raises(BesagError, match="half of a surrogate pair"):
        train_tokenizer(["the \ud800 cat"])


@pytest.mark.parametrize(
    "options",
    [{"texts": 5}, {"texts": None}, {"texts": [5]}, {"texts": [b"a"]}, {"size": "x"}, {"size": 10**12}, {"size": True},
     {"size": 300.5}, {"kind": 5}, {"form": None}, {"cased": "yes"}, {"digits": 1}, {"coverage": "x"}, {"seed": 0.5},
     {"coverage": float("nan")}, {"sample": "x"}, {"sample": 0}, {"sample": 10**30}, {"seed": 10**30},
     {"max_length": "x"}, {"max_length": 0}, {"max_length": 10**30}],
    ids=str,
)  # fmt: skip
def test_arguments_of_other_types_are_told(options):
    with pytest.raises(BesagError, match=next(iter(options))):
        train_tokenizer(**{"texts": ["the cats sleep"], "size": 300, **options})
