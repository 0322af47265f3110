"""The builder against brute force over all segmentations."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from tests.masks.example_passages import of_texts
from tests.networks import vocabulary

from besag.errors import BesagError
from besag.masks import Statistics
from besag.masks.corpus import Words, chunks
from besag.masks.pmi_vocabulary import Collocations, build_pmi_vocabulary

TOKENS = ("[MASK]", "[SEP]", *(f"w{number}" for number in range(8)), "##a", "##b")


def corpus(seed=0, documents=60, length=60) -> Statistics:
    """Zipf words with a few that like to stand together, some of them of several tokens."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(documents):
        ids: list[int] = []
        while len(ids) < length:
            if rng.random() < 0.15:
                ids += [[2, 3, 4], [5, 10, 6], [2, 3, 4, 7, 8], [9, 11, 10, 2]][rng.integers(4)]
            else:
                ids += [2 + min(int(rng.zipf(1.6)) - 1, 7)] + [10 + int(rng.integers(2))] * (rng.random() < 0.3)
        texts.append(np.array(ids))
    counts = np.bincount(np.concatenate(texts), minlength=len(TOKENS))
    return Statistics(counts, texts, frozenset({0, 1}), TOKENS)


def words(document) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for id in document.tolist():
        found = [*found[:-1], (*found[-1], id)] if id >= 10 and found else [*found, (id,)]
    return found


def brute(statistics: Statistics, unit: str, min_count: int, squared: bool) -> dict[tuple[int, ...], float]:
    documents = [words(one) if unit == "word" else [(id,) for id in one.tolist()] for one in statistics.documents]
    total = sum(map(len, documents))
    counts = Counter(
        tuple(one[at : at + n]) for one in documents for n in range(1, 6) for at in range(len(one) - n + 1)
    )
    scores = {}
    for ngram, count in counts.items():
        if len(ngram) < 2 or count <= min_count:
            continue
        worst = math.inf
        for cuts in itertools.chain.from_iterable(
            itertools.combinations(range(1, len(ngram)), k) for k in range(1, len(ngram))
        ):
            edges = [0, *cuts, len(ngram)]
            parts = [ngram[a:b] for a, b in itertools.pairwise(edges)]
            worst = min(worst, math.log(count / total) - sum(math.log(counts[part] / total) for part in parts))
        if worst > 0:
            scores[ngram] = worst + math.log(count / total) * squared
    return scores


def entries(found: Collocations) -> list[tuple[int, ...]]:
    return [tuple(id for id in row if id >= 0) for row in found.ids.tolist()]


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("unit", ["token", "word"])
def test_scores_are_the_minimum_over_all_segmentations(unit, squared):
    statistics = corpus()
    found = build_pmi_vocabulary(statistics, unit=unit, min_count=5, squared=squared)
    wanted = {
        tuple(itertools.chain.from_iterable(ngram)): score
        for ngram, score in brute(statistics, unit, 5, squared).items()
    }
    assert len(wanted) > 40
    assert {len(ngram) for ngram in brute(statistics, unit, 5, squared)} == {2, 3, 4, 5}
    assert dict(zip(entries(found), found.scores.tolist(), strict=True)) == pytest.approx(wanted)


def test_what_was_put_in_comes_out():
    """Of three tokens, what stands together by design, or as the end of what does."""
    found = build_pmi_vocabulary(corpus(), unit="token", min_count=5)
    ranked = [ngram for ngram in entries(found) if len(ngram) == 3]
    assert set(ranked[:4]) <= {(2, 3, 4), (5, 10, 6), (3, 4, 7), (4, 7, 8), (9, 11, 10), (11, 10, 2)}


def test_each_length_has_its_share_and_its_best():
    statistics = corpus()
    every = build_pmi_vocabulary(statistics, unit="token", min_count=3)
    few = build_pmi_vocabulary(statistics, unit="token", min_count=3, size=16)
    lengths = Counter(map(len, entries(few)))
    assert lengths == {2: 8, 3: 4, 4: 2, 5: 2}
    for length in range(2, 6):
        scores = sorted(
            (s for s, e in zip(every.scores, entries(every), strict=True) if len(e) == length), reverse=True
        )
        kept = [s for s, e in zip(few.scores, entries(few), strict=True) if len(e) == length]
        assert kept == pytest.approx(scores[: len(kept)])
    pairs = build_pmi_vocabulary(statistics, unit="token", min_count=3, size=16, longest=2)
    assert Counter(map(len, entries(pairs))) == {2: 16}


def test_nothing_crosses_a_document_or_a_special_token():
    document = np.array([2, 1, 3])
    statistics = Statistics(np.ones(12, int), [document, np.array([2])] * 50, frozenset({0, 1}), TOKENS)
    assert len(build_pmi_vocabulary(statistics, unit="token", min_count=3)) == 0
    assert len(build_pmi_vocabulary(statistics, unit="word", min_count=3)) == 0


def test_an_empty_corpus_has_no_collocations():
    statistics = Statistics(np.zeros(12, int), [], frozenset({0, 1}), TOKENS)
    assert len(build_pmi_vocabulary(statistics)) == 0
    assert len(build_pmi_vocabulary(statistics, unit="token")) == 0


def test_chunks_change_nothing(monkeypatch):
    statistics = corpus()
    whole = {unit: build_pmi_vocabulary(statistics, unit=unit, min_count=5) for unit in ("token", "word")}
    monkeypatch.setattr("besag.masks.corpus.chunks", lambda documents, breaks: chunks(documents, breaks, 70))
    assert len([*chunks(statistics.documents, (), 70)]) > 20
    for unit, one in whole.items():
        cut = build_pmi_vocabulary(statistics, unit=unit, min_count=5)
        assert entries(cut) == entries(one)
        assert cut.scores == pytest.approx(one.scores)


def test_little_memory_finds_the_frequent_ones_still():
    statistics = corpus(documents=200)
    little = build_pmi_vocabulary(statistics, unit="token", min_count=5, capacity=60)
    plenty = build_pmi_vocabulary(statistics, unit="token", min_count=5)
    assert (2, 3, 4) in entries(little)
    assert 0 < len(little) < len(plenty)


def test_a_file_keeps_all_there_is(tmp_path):
    found = build_pmi_vocabulary(corpus(), unit="word", min_count=5)
    file = tmp_path / "pmi.txt"
    found.save(file, TOKENS)
    first, score = file.read_text(encoding="utf-8").splitlines()[0].split("\t")
    assert [TOKENS.index(token) for token in first.split(" ")] == list(entries(found)[0])
    assert float(score) == found.scores[0]
    again = Collocations.load(file, TOKENS)
    assert entries(again) == entries(found)
    assert (again.scores == found.scores).all()


def test_a_file_of_another_vocabulary(tmp_path):
    file = tmp_path / "pmi.txt"
    file.write_text("w1 w2\t3.5\nw1 z9\t1\n")
    with pytest.raises(BesagError, match=r"line 2 of .* has 'z9'"):
        Collocations.load(file, TOKENS)
    file.write_text("w1 w2\tmuch\n")
    with pytest.raises(BesagError, match="score 'much'"):
        Collocations.load(file, TOKENS)
    with pytest.raises(BesagError, match="no such file"):
        Collocations.load(tmp_path / "none.txt", TOKENS)
    with pytest.raises(BesagError, match="Did you mean 'word'"):
        build_pmi_vocabulary(corpus(), unit="words")
    with pytest.raises(BesagError, match="longest=6"):
        build_pmi_vocabulary(corpus(), longest=6)


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "deberta-v2"])
def test_words_are_the_tokenizers_words(family):
    """Read off the tokens alone, where a text has nothing but letters, spaces and full stops."""
    known = vocabulary(family)
    tokens = tuple(known.token(id) for id in range(known.size))
    passages = of_texts(known, ["the cats sleep. the unhappy dogs were running home. it was nothing"])
    ids, word = passages.ids[passages.free], passages.word[passages.free]
    statistics = Statistics(np.bincount(ids, minlength=known.size), [ids], known.special_ids, tokens)
    start, _ = Words(statistics, 0, 1000)._words(np.append(ids, -1))
    begins = np.flatnonzero(np.append(True, word[1:] != word[:-1]))
    glued = {"deberta-v2"}  # a tokenizer that cuts at white space only: the full stop is read as a word of its own
    if family in glued:
        assert set(begins) <= set(start.tolist())
    else:
        assert start.tolist() == [*begins.tolist(), len(ids)]
