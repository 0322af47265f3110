from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest
from tests import tokenizers

from besag.errors import BesagError
from besag.training.data import tokens
from besag.training.data.sentences import sentences
from besag.training.data.sources import Document
from besag.training.data.tokens import IN_SPAN, SENTENCE, SPAN, WORD, tokenise, tokenised
from besag.vocabulary import Vocabulary

TEXTS = [
    "The cats sleep on the mat. A man, isn't he?\nDogs bark! Cats sleep.",
    "  Une café déjà vu: naïve résumé.   The dogs don't sleep ",
    "She put the traveller's carpet on the table.",
]


def documents(texts: list[str] = TEXTS) -> list[Document]:
    return [Document(text, None, "here") for text in texts]


@pytest.mark.parametrize("family", tokenizers.FAMILIES)
def test_ids_and_words_are_those_of_the_vocabulary(family: str) -> None:
    vocabulary = Vocabulary(tokenizers.build(family))
    found = tokenise(documents(), vocabulary)
    ids: list[int] = []
    begins: list[int] = []
    counts = []
    for text in TEXTS:
        encoded = vocabulary.encode(text.split("\n"))
        inner = [np.flatnonzero(~each.special) for each in encoded]
        ids += [int(id) for each, at in zip(encoded, inner, strict=True) for id in each.ids[at]]
        begins += [
            int(new) for each, at in zip(encoded, inner, strict=True) for new in np.diff(each.words[at], prepend=-1)
        ]
        counts.append(sum(map(len, inner)))
    assert found.tokens.tolist() == ids
    assert (found.marks & WORD).tolist() == begins
    assert np.diff(found.documents).tolist() == counts


@pytest.mark.parametrize("family", tokenizers.FAMILIES)
def test_a_sentence_begins_at_its_first_token(family: str) -> None:
    vocabulary = Vocabulary(tokenizers.build(family))
    for text in TEXTS:
        found = tokenise(documents([text]), vocabulary)
        starts = np.flatnonzero(found.marks & SENTENCE)
        assert len(starts) == len(sentences(text))
        together = tokenise(documents([text]), vocabulary, alone=True)
        assert np.count_nonzero(together.marks & SENTENCE) == len(starts)


def test_sentences_alone_are_tokenised_as_they_are_scored() -> None:
    vocabulary = Vocabulary(tokenizers.build("bytelevel-untrimmed"))  # "Dogs" and " Dogs" are other tokens
    text = "Dogs bark. Dogs sleep."
    encoded = vocabulary.encode(["Dogs bark.", "Dogs sleep."])
    alone = [int(id) for each in encoded for id in each.ids[~each.special]]
    assert tokenise(documents([text]), vocabulary, alone=True).tokens.tolist() == alone
    assert tokenise(documents([text]), vocabulary).tokens.tolist() != alone


def test_given_spans() -> None:
    vocabulary = Vocabulary(tokenizers.build("wordpiece-cased"))
    text = "The cats sleep on the mat."
    document = Document(text, [(4, 8), (9, 17), (22, 23)], "here")
    found = tokenise([Document("A man.", None, "here"), document], vocabulary)
    [encoded] = vocabulary.encode([text])
    first = int(found.documents[1])
    inside = [
        [at for at, (low, high) in enumerate(encoded.offsets[1:-1]) if low < end and high > start]
        for start, end in document.spans or ()
    ]
    assert np.flatnonzero(found.marks & IN_SPAN).tolist() == [first + at for span in inside for at in span]
    assert np.flatnonzero(found.marks & SPAN).tolist() == [first + span[0] for span in inside]


def test_a_paragraph_begins_a_word() -> None:
    vocabulary = Vocabulary(tokenizers.build("wordpiece-cased"))
    found = tokenise(documents(["cat\ncat\n\ncat"]), vocabulary)
    assert found.marks.tolist() == [WORD | SENTENCE] * 3


def test_what_has_no_token_is_left_out() -> None:
    vocabulary = Vocabulary(tokenizers.build("wordpiece-cased"))
    found = tokenise(documents(["\n \n", "The mat.", " "]), vocabulary)
    assert np.diff(found.documents).tolist() == [3]
    nothing = tokenise(documents([" "]), vocabulary)
    assert len(nothing.tokens) == 0
    assert nothing.documents.tolist() == [0]


def test_what_cannot_be_compressed_is_left_out() -> None:
    """Cramming: a document goes whose tokens are more than a share of its characters, and no other."""
    vocabulary = Vocabulary(tokenizers.build("bytelevel-untrimmed"))
    texts = ["The cat sat on the mat.", "x#9$q!z@", "A man sat."]
    share = [len(tokenise(documents([text]), vocabulary).tokens) / len(text) for text in texts]
    assert share[1] == max(share)
    found = tokenise(documents(texts), vocabulary, densest=sorted(share)[1])
    whole = [tokenise(documents([text]), vocabulary) for text in (texts[0], texts[2])]
    assert found.tokens.tolist() == [id for one in whole for id in one.tokens.tolist()]
    assert found.marks.tolist() == [mark for one in whole for mark in one.marks.tolist()]
    assert np.diff(found.documents).tolist() == [len(one.tokens) for one in whole]


@pytest.mark.parametrize("family", ["wordpiece-cased", "bytelevel-untrimmed", "unigram"])
def test_a_long_line_is_cut_where_it_does_not_matter(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary(tokenizers.build(family))
    line = " ".join(["the cat sleeps on the mat"] * 40)
    whole = tokenise(documents([line]), vocabulary)
    monkeypatch.setattr(tokens, "PIECE", 50)
    monkeypatch.setattr(tokens, "CALL", 120)
    cut = tokenise(documents([line]), vocabulary)
    assert cut.tokens.tolist() == whole.tokens.tolist()
    assert cut.marks.tolist() == whole.marks.tolist()


def test_three_megabytes_without_a_space() -> None:
    vocabulary = Vocabulary(tokenizers.build("wordpiece-cased"))
    found = tokenise(documents(["a" * 3_000_000]), vocabulary)
    assert len(found.tokens) == 30  # each piece is one unknown word
    assert len(found.documents) == 2


def many(count: int) -> Iterator[Document]:
    for number in range(count):
        yield Document(f"The cat sleeps on mat {number}. " * (1 + number % 3), None, str(number))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "GROUP", 500)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("processes", [2, 5])
def test_any_number_of_processes_gives_the_same(processes: int) -> None:
    vocabulary = Vocabulary(tokenizers.build("unigram"))
    one = list(tokenised(many(200), vocabulary, processes=1))
    several = list(tokenised(many(200), vocabulary, processes=processes))
    assert len(one) == len(several) > tokens.ALONE
    for a, b in zip(one, several, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.usefixtures("small")
def test_a_process_that_dies_is_told_and_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary(tokenizers.build("unigram"))

    def die(*args: object, **options: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(tokens, "tokenise", die)
    with pytest.raises(BesagError, match="a process that tokenised died"):
        list(tokenised(many(200), vocabulary, processes=2))


@pytest.mark.usefixtures("small")
def test_errors_of_reading_and_of_processes_come_through(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary(tokenizers.build("unigram"))

    def broken() -> Iterator[Document]:
        yield from many(100)
        raise BesagError("line 101 is bad")

    with pytest.raises(BesagError, match="line 101 is bad"):
        list(tokenised(broken(), vocabulary, processes=2))

    def refuse(*args: object, **options: object) -> None:
        raise BesagError("refused there")

    monkeypatch.setattr(tokens, "tokenise", refuse)
    with pytest.raises(BesagError, match="refused there"):
        list(tokenised(many(100), vocabulary, processes=2))
