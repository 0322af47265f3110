import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from tests.masks.example_passages import drawn, plain, repeated

from besag import noise
from besag.errors import BesagError
from besag.masks import law
from besag.masks.span import hide_runs
from besag.masks.units import uniform_turns


def one_by_one(passages, unit, lengths, limit, seed):
    """The definition, as plain loops over the same noise."""
    hidden, turn = np.zeros(len(unit), bool), uniform_turns(passages, seed)
    for row, left in enumerate(limit.tolist()):
        units: list[list[int]] = []
        for at in np.flatnonzero((passages.row == row) & passages.free & (unit >= 0)).tolist():
            if units and unit[units[-1][-1]] == unit[at]:
                units[-1].append(at)
            else:
                units.append([at])
        order: list[int] = []
        for start in sorted(range(len(units)), key=lambda number: turn[units[number][0]]):
            if start in order:
                continue
            drawn = noise.uniform(seed, noise.Training.SPAN_LENGTH, passages.draw[row], passages.place[units[start][0]])
            for number in range(start, start + 1 + int((np.cumsum(lengths)[:-1] <= drawn).sum())):
                if number > start and (number == len(units) or units[number][0] != units[number - 1][-1] + 1):
                    break
                order += [number] * (number not in order)
        for number in order:
            if len(units[number]) <= left:
                hidden[units[number]] = True
                left -= len(units[number])
    return hidden


@given(drawn(), st.sampled_from(["word", "token"]), st.sampled_from([0.2, 0.05, 1.0]), st.integers(0, 10**6))
def test_spans_are_begun_in_turn_and_passed_over_where_hidden(passages, at, chance, seed):
    unit = passages.word if at == "word" else np.where(passages.free, passages.place, -1)
    lengths = law("span", chance=chance).lengths()
    limit = np.random.default_rng(seed).integers(0, 25, len(passages.draw))
    assert (hide_runs(passages, unit, lengths, limit, seed) == one_by_one(passages, unit, lengths, limit, seed)).all()


def test_lengths_are_geometric_and_bounded():
    lengths = law("span").lengths()
    assert lengths[1:] / lengths[:-1] == pytest.approx(0.8)
    assert len(lengths) == 10
    assert lengths.sum() == pytest.approx(1)
    assert lengths @ np.arange(1, 11) == pytest.approx(3.8, abs=0.01)  # as the paper says


def test_the_first_span_has_a_geometric_length_and_begins_anywhere():
    """A budget of ten is enough for any first span, and the passage so long that others seldom touch it."""
    times, size = 2000, 400
    passages = repeated(plain(size), times)
    hidden = law("span", at="token").choose(passages, np.full(times, 10 / size), 0.0, seed=5).reshape(times, size)
    assert (hidden.sum(1) == 10).all()
    first = uniform_turns(passages, 5).reshape(times, size).argmin(1)
    assert chisquare(np.bincount(first * 20 // size, minlength=20)).pvalue > 1e-3
    inside = hidden[np.arange(times)[:, None], np.minimum(first[:, None] + np.arange(10), size - 1)][first < size - 10]
    counts = np.bincount(np.where(inside.all(1), 10, inside.argmin(1)), minlength=11)[1:]
    assert chisquare(counts, law("span").lengths() * counts.sum()).pvalue > 1e-3


def test_a_span_does_not_leap_over_a_special_token():
    passages = plain(12)
    passages = passages._replace(free=passages.place != 6)
    long = np.eye(10)[9]  # always ten
    for seed in range(50):
        hidden = hide_runs(passages, np.where(passages.free, passages.place, -1), long, np.array([3]), seed)
        start = uniform_turns(passages, seed)[passages.free].argmin()
        start += start >= 6
        end = min(start + 3, 6 if start < 6 else 12)
        assert hidden[start:end].all()
        assert hidden.sum() == 3


def test_words_are_whole_at_words_and_not_at_tokens():
    word = np.repeat(np.arange(10), 3)
    passages = repeated(plain(30)._replace(word=word), 200)
    rates = np.full(200, 0.25)
    parts = law("span").choose(passages, rates, 0.0, 0).reshape(200, 10, 3)
    assert (parts.all(2) == parts.any(2)).all()
    parts = law("span", at="token").choose(passages, rates, 0.0, 0).reshape(200, 10, 3)
    assert (parts.all(2) != parts.any(2)).any()


@pytest.mark.parametrize(
    ("options", "said"),
    [({"chance": 0}, "chance is 0"), ({"longest": 0}, "longest is 0"), ({"at": "words"}, "Did you mean 'word'")],
)
def test_options_that_cannot_be_are_refused(options, said):
    with pytest.raises(BesagError, match=said):
        law("span", **options)
