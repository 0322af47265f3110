import numpy as np
import pytest
from tests import tokenizers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from besag.training.data.words import Words
from besag.vocabulary import Vocabulary

TEXTS = [
    *tokenizers.SENTENCES,
    "She didn't: (don't), café-naïve 12,34…",
    "  two  spaces and a ☃snow☃man ",
    "a\nnew line",
    "x",
    "",
]
FAST = [name for name in tokenizers.FAMILIES if not name.endswith("-slow")]


def isolating(fallback: bool):
    """Sentence pieces whose punctuation and digits are words of their own, with or without bytes for rare letters."""
    pieces = ["[UNK]", "[MASK]", *(f"<0x{byte:02X}>" for byte in range(256) if fallback)]
    pieces += ["▁", *"abcdefghijklmnoprstuvwxyzTSAD.,()'!?12", "▁the", "▁cat", "at", "▁sl"]
    backend = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], 0, byte_fallback=fallback))
    split = [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation(), pre_tokenizers.Digits(individual_digits=True)]
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.Sequence(split), decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", mask_token="[MASK]")


@pytest.mark.parametrize("fallback", [False, True])
def test_sentence_pieces_that_isolate_punctuation(fallback):
    tokenizer = isolating(fallback)
    words = Words(tokenizer)
    pieces = 0
    rare = ["(☃), «a»—b …", *TEXTS] if fallback else []  # an unknown token may be a letter or not: nobody knows
    for text in Vocabulary(tokenizer).encode([*TEXTS[:3], *rare, "12,3 éé don't!", "the cat (Tat)  sleeps, éa!"]):
        assert words.numbers(text.ids, text.special).tolist() == text.words.tolist(), text.tokens
        for start in range(1, len(text.ids)):
            if not text.tokens[start].startswith("<0x"):  # no cut within a character
                at = slice(start, start + 9)
                expected = np.diff(text.words[at], prepend=-9) != 0
                found = words.begins(text.ids[at], text.special[at])
                clean = not any(token.startswith("<0x") for token in text.tokens[at])
                assert found.tolist() == expected.tolist() or not clean, text.tokens[at]
                pieces += clean
    assert pieces > 100


@pytest.mark.parametrize("family", FAST)
def test_words_come_back_from_ids_alone(family):
    tokenizer = tokenizers.build(family)
    words = Words(tokenizer)
    for text in Vocabulary(tokenizer).encode(TEXTS):
        assert words.numbers(text.ids, text.special).tolist() == text.words.tolist(), text.tokens


@pytest.mark.parametrize("family", FAST)
def test_a_piece_of_a_text_has_the_same_words(family):
    """But for a first word that was cut, which is one all the same."""
    tokenizer = tokenizers.build(family)
    words = Words(tokenizer)
    for text in Vocabulary(tokenizer).encode(TEXTS[:7]):
        inner = np.flatnonzero(~text.special)
        for start in range(1, len(inner)):
            at = inner[start : start + 9]
            if any(ord(letter) > 127 and letter not in "▁Ġ" for token in np.array(text.tokens)[at] for letter in token):
                continue  # a window may cut a character of several bytes
            expected = np.diff(text.words[at], prepend=-9) != 0
            assert words.begins(text.ids[at], np.zeros(len(at), bool)).tolist() == expected.tolist(), text.tokens


def test_slow_tokenizers_have_the_words_their_marks_say():
    fast, slow = (tokenizers.build(name) for name in ("wordpiece-uncased", "wordpiece-slow"))
    ids = fast(TEXTS[1])["input_ids"]
    assert ids == slow(TEXTS[1])["input_ids"]
    special = np.isin(ids, fast.all_special_ids)
    numbers = Words(slow).numbers(np.array(ids), special)
    assert numbers.tolist() == Words(fast).numbers(np.array(ids), special).tolist()
    letters = tokenizers.build("character-slow")
    ids = np.array(letters("LAGV")["input_ids"])
    assert Words(letters).numbers(ids, np.isin(ids, letters.all_special_ids)).tolist() == [-1, 0, 1, 2, 3, -1]


def test_special_tokens_stand_between_words():
    tokenizer = tokenizers.build("wordpiece-uncased")
    ids = tokenizer.convert_tokens_to_ids(["[CLS]", "sou", "##venir", "[SEP]", "##venir", "[UNK]", "cat", "[SEP]"])
    special = np.array([1, 0, 0, 1, 0, 0, 0, 1], bool)
    assert Words(tokenizer).numbers(np.array(ids), special).tolist() == [-1, 0, 0, -1, 1, 2, 3, -1]


def test_added_tokens_are_words_of_their_own():
    tokenizer = tokenizers.build("bytelevel-untrimmed")
    tokenizer.add_tokens(["<émoji>"])
    [text] = Vocabulary(tokenizer).encode(["The cats<émoji>sleep on"])
    assert Words(tokenizer).numbers(text.ids, text.special).tolist() == text.words.tolist()


def test_bytes_that_make_no_character_are_split_by_their_marks():
    tokenizer = tokenizers.build("bytelevel-untrimmed")
    ids = tokenizer("☃ x", add_special_tokens=False)["input_ids"]
    begins = Words(tokenizer).begins(np.array(ids[1:]), np.zeros(len(ids) - 1, bool))
    assert begins.tolist() == [True, False, True, *[False] * (len(ids) - 4)]
