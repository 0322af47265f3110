"""One score: its numbers, its parts, and the data it gives."""

import itertools
import json
import math
import pickle
import sys
import timeit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scores.example_scores import make, scores, unscored

from besag.errors import BesagError
from besag.scores.score import Score, parse_base

# ---- the numbers


def test_total_mean_and_perplexity():
    score = make(extra={"length": -3.0})
    assert (score.total, len(score), score.mean) == (-18.0, 5, -3.6)
    assert score.perplexity == pytest.approx(math.exp(3.6))
    assert score.reduce() == -18.0
    assert score.reduce("mean") == -3.6
    assert score.reduce("mean", per="word") == -4.5
    assert score.reduce("none").tolist() == [-1, -2, -3, -4, -5]
    assert score.reduce("none", per="word").tolist() == [-1, -5, -4, -5]
    assert (score.surprisals == -score.log_probs).all()


def test_bits_are_counted_on_characters_and_bytes():
    score = make(text="né", pieces=("né",), log_probs=[-6.0], base=2.0)
    assert (score.bits_per_character, score.bits_per_byte) == (3.0, 2.0)
    assert score.in_base("e").bits_per_character == pytest.approx(3.0)


def test_a_perplexity_too_large_for_a_float_is_infinite():
    assert make(log_probs=[-2000.0] * 5).perplexity == math.inf


@pytest.mark.parametrize("base", ["e", math.e, 2, 2.0, "2", 10, "10"])
def test_bases_are_read_as_people_write_them(base):
    assert parse_base(base) in (math.e, 2.0, 10.0)


@pytest.mark.parametrize("base", ["nats", 3, "", None, True])
def test_other_bases_are_refused_and_quoted(base):
    with pytest.raises(BesagError, match=repr(base)):
        parse_base(base)


@given(scores(), st.sampled_from(["e", 2, 10]), st.sampled_from(["e", 2, 10]))
def test_conversion_between_bases_keeps_order_and_what_no_base_changes(score, one, other):
    converted = score.in_base(one).in_base(other)
    assert converted.base == parse_base(other)
    assert converted.total * math.log(converted.base) == pytest.approx(score.total)
    assert converted.in_base("e").log_probs == pytest.approx(score.log_probs)
    assert (np.diff(converted.log_probs[np.argsort(score.log_probs)]) >= 0).all()
    assert converted.perplexity == pytest.approx(score.perplexity)
    assert converted.bits_per_byte == pytest.approx(score.bits_per_byte)


def test_conversion_takes_everything_with_it():
    score = make(extra={"length": -2.0}, standard_error=0.5, entropy=np.ones(5), rank=np.ones(5, int)).in_base(2)
    assert score.extra["length"] == pytest.approx(-2 / math.log(2))
    assert score.standard_error == pytest.approx(0.5 / math.log(2))
    assert score.entropy == pytest.approx(np.full(5, 1 / math.log(2)))
    assert (score.unit, score.rank.tolist()) == ("bits", [1] * 5)
    assert score.in_base("2") is score


def test_construction_is_cheap_enough_for_tens_of_thousands():
    score = make()
    fields = {name: getattr(score, name) for name in Score.__slots__}
    assert min(timeit.repeat(lambda: Score(**fields), number=1000, repeat=5)) / 1000 < 50e-6


def test_a_score_survives_pickling():
    again = pickle.loads(pickle.dumps(make(extra={"length": -1.0})))
    assert again.total == -16.0


# ---- parts of the text


def test_words_and_tokens_carry_the_text_they_cover():
    score = make()
    assert score.by_word() == [("The", 0, 3, -1.0), ("cats", 4, 8, -5.0), ("sleep", 9, 14, -4.0), (".", 14, 15, -5.0)]
    assert [piece.text for piece in score.by_token()] == ["The", "cat", "s", "sleep", "."]


@given(scores())
def test_words_add_up_to_the_total_without_its_extras(score):
    alone = score.total - sum(score.extra.values())
    assert sum(word.value for word in score.by_word()) == pytest.approx(alone)
    assert sum(token.value for token in score.by_token()) == pytest.approx(alone)
    assert score.reduce("none", per="word").sum() == pytest.approx(alone)


@given(scores(), st.data())
def test_spans_add_up(score, data):
    """Cut between tokens, the two sides of a text add up to the whole."""
    assert score[:] == pytest.approx(score.log_probs.sum())
    cuts = [c for c in range(1, len(score.text)) if not any(s < c < e for s, e in score.offsets.tolist())]
    cuts = [c for c in cuts if score.text[:c].strip() and score.text[c:].strip()]
    if cuts:
        cut = data.draw(st.sampled_from(cuts))
        assert score.span(0, cut) + score.span(cut, len(score.text)) == pytest.approx(score[:])


@given(scores(), st.data())
def test_regions_add_up_wherever_they_are_cut(score, data):
    """Also within tokens and in white space: every token belongs to one region."""
    ends = sorted(data.draw(st.lists(st.integers(0, len(score.text)), max_size=4)))
    regions = list(itertools.pairwise([0, *ends, len(score.text)]))
    pieces = score.by_span(regions, tiling=True)
    assert [piece.text for piece in pieces] == [score.text[start:end] for start, end in regions]
    assert np.nansum([piece.value for piece in pieces]) == pytest.approx(score.log_probs.sum())


def test_a_token_belongs_to_the_first_span_that_holds_a_character_of_it():
    score = make()  # The=-1 cat=-2 ##s=-3 sleep=-4 .=-5
    assert score.by_span([(0, 3), (4, 8)]) == [("The", 0, 3, -1.0), ("cats", 4, 8, -5.0)]
    assert [piece.value for piece in score.by_span([(5, 6), (6, 9), (9, 15)])] == [-2.0, -3.0, -9.0]
    none, *_ = score.by_span([(3, 4), (4, 8)])
    assert math.isnan(none.value)  # a space has no token, and no number
    assert [piece.value for piece in score.by_span([(0, 3), (3, 8), (8, 15)], tiling=True)] == [-1.0, -5.0, -9.0]
    with pytest.raises(BesagError, match=r"\(2, 5\) is no \(start, end\) within 'The cats sleep.' after character 3"):
        score.by_span([(0, 3), (2, 5)])


def test_characters_are_indexed_as_a_slice_or_by_what_stands_there():
    score = make()
    assert score[4:8] == score["cats"] == score.span(4, 8) == -5.0
    assert score[5:6] == -2.0  # a part of a token counts as the token
    assert score[-1:] == score["."] == -5.0
    assert score["cats sleep"] == -9.0


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda s: s.span(3, 3), "3:3.*'The cats sleep.'.*15"),
        (lambda s: s.span(-1, 3), "-1:3"),
        (lambda s: s[0:16], "0:16"),
        (lambda s: s[-16:], "-16:15"),
        (lambda s: s[8:4], "8:4"),
        (lambda s: s[3:4], "no token stands at 3:4 .*' '"),
        (lambda s: s[::2], "step"),
        (lambda s: s[2], "log_probs"),
        (lambda s: s["dogs"], "'dogs'.*'The cats sleep.'"),
        (lambda s: s["slep"], "Did you mean 'sleep"),
        (lambda s: s[""], "''"),
        (
            lambda s: s["s"],
            "'s' does not stand in 'The cats sleep.' as a whole word or a token: name its characters, 7:8",
        ),
        (
            lambda s: make("a cat, a dog", ("a", "cat", ",", "a", "dog"))["a"],
            "2 times.*: 0:1, 7:8. Name one by its chara",
        ),
        (lambda s: s.reduce("sun"), "'sun'.*Did you mean 'sum'"),
        (lambda s: s.reduce(per="words"), "'words'.*Did you mean 'word'"),
        (lambda s: s.plot(kind="lines"), "'lines'.*Did you mean 'line'"),
    ],
)
def test_wrong_questions_are_answered_with_what_would_be_right(ask, said):
    with pytest.raises(BesagError, match=said):
        ask(make())


# ---- no number


@pytest.mark.parametrize(
    ("status", "said"), [("empty", "the text is empty"), ("unknown", "unknown tokens"), ("mask", "mask token")]
)
def test_what_was_not_scored_says_so_and_has_no_number(status, said):
    score = unscored(status, "" if status == "empty" else "[MASK]")
    for value in (
        score.total,
        score.mean,
        score.perplexity,
        score.bits_per_character,
        score.reduce("mean", per="word"),
    ):
        assert math.isnan(value)
    assert "not scored: the text" in str(score)
    assert said in str(score)
    assert said in score._repr_html_()
    assert score.by_word() == []
    assert score.to_dict()["total"] is None
    assert score.to_dict()["status"] == status
    assert len(score.to_pandas()) == 0
    for ask in (lambda: score.span(0, 1), lambda: score[:], score.plot):
        with pytest.raises(BesagError, match=said):
            ask()


# ---- data


def test_the_dictionary_is_json_and_says_what_the_number_is():
    score = make(log_probs=[-1, -math.inf, math.nan, -4, -5], rank=np.arange(5), standard_error=0.25)
    record = json.loads(json.dumps(score.to_dict(), allow_nan=False))
    for name in ("method", "normalised", "base", "specials", "word_policy", "model", "dtype", "status"):
        assert record[name] == getattr(score, name)
    assert [token["log_prob"] for token in record["tokens"]] == [-1, "-Infinity", None, -4, -5]
    expected = {"token": "##s", "id": 2, "start": 7, "end": 8, "word": 1, "log_prob": None, "rank": 2, "entropy": None}
    assert record["tokens"][2] == expected
    assert record["standard_error"] == 0.25
    assert "not a probability" in record["meaning"]


def test_the_frame_has_one_row_a_token():
    frame = make(base=2.0, rank=np.arange(1, 6)).to_pandas()
    assert list(frame) == ["token", "log_prob", "surprisal", "prob", "rank", "entropy", "word", "start", "end"]
    assert frame.index.name == "token_id"
    assert frame["prob"].tolist() == pytest.approx([0.5, 0.25, 0.125, 0.0625, 0.03125])
    assert frame["token"].tolist() == ["The", "cat", "##s", "sleep", "."]
    assert frame["rank"].tolist() == [1, 2, 3, 4, 5]
    assert frame["entropy"].isna().all()
    assert make().to_pandas()["rank"].isna().all()
    assert frame.attrs["unit"] == "bits"


def test_without_pandas_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BesagError, match=r"besag\[eval\]"):
        make().to_pandas()
