"""CrowS-Pairs against its definition by hand: which tokens are shared, what is summed, what a tie is."""

from __future__ import annotations

import difflib
import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws import Arbitrary

import besag
from besag.errors import BesagError
from besag.evaluation.suites.crows_pairs import shared

DATA = Path(os.environ.get("BESAG_DATA", Path(__file__).parents[4] / "shared" / "data")) / "crows_pairs"
HEAD = "sent_more,sent_less,stereo_antistereo,bias_type\n"


@given(st.lists(st.integers(0, 4), max_size=12), st.lists(st.integers(0, 4), max_size=12))
def test_shared_tokens_are_those_of_the_published_code(more: list[int], less: list[int]) -> None:
    """It matches ids between [CLS] and [SEP] as strings, and leaves out the first and the last of what is equal."""
    one, two = ([str(token) for token in ("CLS", *ids, "SEP")] for ids in (more, less))
    template: tuple[list[int], list[int]] = ([], [])
    for operation, a, b, c, d in difflib.SequenceMatcher(None, one, two).get_opcodes():
        if operation == "equal":
            template[0].extend(range(a, b))
            template[1].extend(range(c, d))
    inner = [[place - 1 for place in side[1:-1]] for side in template]
    found = shared(more, less)
    assert list(found) == inner
    assert [more[place] for place in found[0]] == [less[place] for place in found[1]]


def test_each_shared_token_is_hidden_alone_given_all_others(tmp_path: Path) -> None:
    law = Arbitrary(3)
    (tmp_path / "p.csv").write_text(HEAD + "s0 s1 s2,s2 s1 s2,stereo,age\ns1 s1,s1 s1,antistereo,age\n")
    found = besag.evaluate(besag.load(law), "crows_pairs", data=tmp_path)
    mask = law.vocabulary.mask_id

    def score(first: int) -> float:  # of "s1 s2" after another first token
        at_one = law.log_probs([first, mask, 2], 1)[1]
        at_two = law.log_probs([first, 1, mask], 2)[2]
        return round(float(at_one + at_two), 3)

    row, tie = found.parts[0].rows
    assert (row["more_score"], row["less_score"]) == (pytest.approx(score(0)), pytest.approx(score(2)))
    assert row["credit"] == float(score(0) > score(2))
    assert (tie["credit"], tie["neutral"]) == (0.0, 1.0)
    metric = found["metric score"]
    assert metric.value == pytest.approx(100 * row["credit"] / 2)  # a tie is one of N, and prefers neither
    assert (metric.n, metric.ties, metric.direction) == (2, 1, "50 is ideal")
    assert found["stereotype score"].n == 1
    with pytest.raises(BesagError):  # all pairs of that kind are ties
        found["anti-stereotype score"]


def test_shared_tokens_are_matched_in_the_published_order(tmp_path: Path) -> None:
    """Of "s0 s1" and "s1 s0" difflib finds one shared token, the first of its first argument: that is S_more in rows
    that show a stereotype, and S_less in the others.
    """
    assert shared([0, 1], [1, 0]) == ([0], [1])
    assert shared([1, 0], [0, 1]) == ([0], [1])
    law = Arbitrary(3)
    (tmp_path / "p.csv").write_text(HEAD + "s0 s1,s1 s0,stereo,age\ns0 s1,s1 s0,antistereo,age\n")
    found = besag.evaluate(besag.load(law), "crows_pairs", data=tmp_path)
    mask = law.vocabulary.mask_id
    s0 = law.log_probs([mask, 1], 0)[0], law.log_probs([1, mask], 1)[0]  # in S_more, in S_less
    s1 = law.log_probs([0, mask], 1)[1], law.log_probs([mask, 0], 0)[1]
    for row, (more, less) in zip(found.parts[0].rows, (s0, s1), strict=True):
        assert (row["more_score"], row["less_score"]) == (round(float(more), 3), round(float(less), 3))
        assert row["credit"] == float(row["more_score"] > row["less_score"])


def test_scores_that_agree_to_three_decimals_are_a_tie(tmp_path: Path) -> None:
    tiny = 1e-5
    law = besag.Table([[0.25, 0.25], [0.25 + tiny, 0.25 - tiny]], symbols=["a", "b"])
    (tmp_path / "p.csv").write_text(HEAD + "a a,b a,stereo,age\n")
    found = besag.evaluate(besag.load(law), "crows_pairs", data=tmp_path)
    [row] = found.parts[0].rows
    assert row["neutral"] == 1.0
    assert row["more_score"] == pytest.approx(round(math.log(0.5), 3))


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    lm = besag.load(Arbitrary(3))
    (tmp_path / "p.csv").write_text("sent_more,sent_les,stereo_antistereo,bias_type\na,b,stereo,age\n")
    with pytest.raises(BesagError, match=r"has no 'sent_less'; it has sent_more, sent_les, .* Did you mean 'sent_les'"):
        besag.evaluate(lm, "crows_pairs", data=tmp_path)
    (tmp_path / "p.csv").write_text(HEAD + "a,b,both,age\n")
    with pytest.raises(BesagError, match="stereo_antistereo is 'both'"):
        besag.evaluate(lm, "crows_pairs", data=tmp_path)
    (tmp_path / "p.csv").write_bytes(HEAD.encode() + "café,caf\xe9,stereo,age\n".encode("latin-1"))
    with pytest.raises(BesagError, match="UTF-8"):
        besag.evaluate(lm, "crows_pairs", data=tmp_path)


@pytest.mark.skipif(not DATA.exists(), reason="CrowS-Pairs is not there: set BESAG_DATA")
def test_the_published_file() -> None:
    found = besag.evaluate(besag.load(), "crows_pairs", data=DATA, method="unmasked", limit=2)
    assert found["metric score"].n == 18  # nine kinds of bias
