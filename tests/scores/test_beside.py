"""As many prefixes, suffixes and word lists as texts: refused at the start, or at the end of a stream."""

from collections.abc import Iterator

import pytest

import besag
from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.language_model import LanguageModel
from besag.scores.beside import Beside, contexts

TEXTS = ["s0 s1", "s1 s1", "s2 s0"]


@pytest.fixture(scope="module")
def lm() -> LanguageModel:
    return besag.load(Table.random(3, 3), progress=False)


@pytest.mark.parametrize("verb", ["score", "marginals"])
@pytest.mark.parametrize("option", ["prefix", "suffix"])
@pytest.mark.parametrize("count", [1, 2, 4, 2000])
def test_lists_of_another_length_are_refused_at_the_start(lm, verb, option, count):
    with pytest.raises(BesagError, match=f"{option}: {count:,} were given for 3 texts: give one for all"):
        getattr(lm, verb)(TEXTS, **{option: ["s0"] * count})


@pytest.mark.parametrize("count", [2, 4])
def test_word_lists_of_another_number_are_refused(lm, count):
    with pytest.raises(BesagError, match=f"words: {count} were given for 3 texts"):
        lm.score(TEXTS, words=[["s0"]] * count)


def test_one_text_takes_one(lm):
    assert lm.score("s0 s1", prefix=["s2"]).total == lm.score("s0 s1", prefix="s2").total
    with pytest.raises(BesagError, match="prefix: 2 were given for 1 text:"):
        lm.score("s0 s1", prefix=["s2", "s1"])


@pytest.mark.parametrize("verb", ["score", "marginals"])
def test_a_stream_says_which_ended_first(lm, verb):
    ask = getattr(lm, verb)
    found = ask(iter(TEXTS), prefix=["s0"] * 5)
    got = [next(found) for _ in TEXTS]  # all of them come first
    assert all(one.status == "ok" for one in got)
    with pytest.raises(BesagError, match="the texts ended after 3, and there is more in prefix: give one for all"):
        next(found)
    with pytest.raises(BesagError, match="suffix ended after 2, and there are more texts"):
        list(ask(iter(TEXTS), suffix=iter(["s0"] * 2)))


def test_streams_of_both_are_read_as_they_come(lm):
    read = 0

    def endless(word: str) -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield word

    found = lm.score(endless("s0 s1"), prefix=endless("s2"))
    assert next(found).total == lm.score("s0 s1", prefix="s2").total
    found.close()
    assert read < 2**16


def test_a_list_gives_each_text_its_own(lm):
    prefixes = ["s2", "s0", "s1"]
    apart = [lm.score(text, prefix=prefix).total for text, prefix in zip(TEXTS, prefixes, strict=True)]
    assert [score.total for score in lm.score(TEXTS, prefix=prefixes)] == apart
    assert [score.total for score in lm.score(iter(TEXTS), prefix=iter(prefixes))] == apart
    assert [score.total for score in lm.score(TEXTS, prefix=tuple(prefixes))] == apart


@pytest.mark.parametrize("verb", ["score", "marginals"])
def test_a_text_without_its_context_has_a_status_and_stops_nothing(lm, verb):
    statuses = [str(one.status) for one in getattr(lm, verb)(TEXTS, prefix=["s2", None, "s1"])]
    assert statuses == ["ok", "no context", "ok"]


@pytest.mark.parametrize("given", [5, None, b"s0", {"s0": 1}, {"s0"}, 1.5, ["s0", 5, "s1"]])
def test_what_is_no_text_is_refused(lm, given):
    with pytest.raises(BesagError, match=r"expected text, got|give a text"):
        lm.score(TEXTS, prefix=given)


def test_one_for_all_never_ends():
    one = Beside("prefix", "a", 3)
    assert (one.for_all, one.take(7)) == (True, "a")
    one.finish()
    assert contexts([one, Beside("suffix", ["b", None])], 2) == (["a", ["b", ""]], {1})
