"""A teacher's terms on disk: found again, gone on with after a kill, refused where they are somebody else's."""

from __future__ import annotations

import numpy as np
import pytest
from tests.networks import tiny, vocabulary

import besag
from besag.errors import BesagError
from besag.scores.terms import Kept

TEXTS = ["the cat", "the cat sleeps", "", "a man"]


@pytest.fixture(scope="module")
def scores():
    return besag.load((tiny("bert"), vocabulary("bert").tokenizer)).score(TEXTS)


def filled(path, scores) -> Kept:
    kept = Kept(str(path), {"teacher": "a"})
    for score in scores:
        kept.add(score)
    kept.close()
    return kept


def test_terms_are_found_again(tmp_path, scores):
    path = tmp_path / "terms.jsonl"
    filled(path, scores)
    kept = Kept(str(path), {"teacher": "a"})
    assert list(kept.missing([*TEXTS, "the man"])) == ["the man"]
    assert list(kept.of(TEXTS)) == [text for text, score in zip(TEXTS, scores, strict=True) if score.status == "ok"]
    np.testing.assert_allclose(kept.of(TEXTS)["the cat"], scores[0].log_probs, rtol=1e-6)
    kept.close()


@pytest.mark.parametrize("torn", range(1, 30, 7))
def test_a_torn_last_line_is_cut_off_and_scored_again(tmp_path, scores, torn):
    path = tmp_path / "terms.jsonl"
    filled(path, scores)
    whole = path.read_bytes()
    path.write_bytes(whole[:-torn])
    kept = Kept(str(path), {"teacher": "a"})
    assert list(kept.missing(TEXTS)) == ["a man"]
    kept.add(scores[3])
    kept.close()
    assert path.read_bytes() == whole


def test_another_teacher_is_refused_unless_forced(tmp_path, scores):
    path = tmp_path / "terms.jsonl"
    filled(path, scores)
    with pytest.raises(BesagError, match="teacher is 'b', and was 'a'"):
        Kept(str(path), {"teacher": "b"})
    kept = Kept(str(path), {"teacher": "b"}, force=True)
    assert list(kept.missing(TEXTS)) == TEXTS
    kept.close()


def test_a_file_that_is_something_else_is_left_alone(tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text("dear diary\n", encoding="utf-8")
    for content in (b"dear diary\n", b"dear diary", b'{"a": 1}', b'{"kind": "besag terms"}', b"{", b"\n", b"\xff\n"):
        path.write_bytes(content)  # with a line end, and without one, as json.dump writes
        for force in (False, True):
            with pytest.raises(BesagError, match=r"notes\.jsonl"):
                Kept(str(path), {"teacher": "a"}, force=force)
            assert path.read_bytes() == content


@pytest.mark.parametrize("bad", ['{"text": "the cat"}', "", "not json", '{"text": "the cat", "terms": [null]}'])
def test_a_line_that_cannot_be_read_is_named_and_what_comes_after_it_stays(tmp_path, scores, bad):
    path = tmp_path / "terms.jsonl"
    filled(path, scores)
    rows = path.read_text(encoding="utf-8").splitlines()
    rows[2] = bad
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    before = path.read_bytes()
    for force in (False, True):
        with pytest.raises(BesagError, match=r"terms\.jsonl, line 3"):
            Kept(str(path), {"teacher": "a"}, force=force)
        assert path.read_bytes() == before
    path.write_text("\n".join([*rows[:2], *rows[3:]]) + "\n", encoding="utf-8")
    kept = Kept(str(path), {"teacher": "a"})
    assert list(kept.missing(TEXTS)) == ["the cat sleeps"]
    kept.close()


def test_terms_come_back_to_the_last_bit(tmp_path, scores):
    path = tmp_path / "terms.jsonl"
    before = filled(path, scores).of(TEXTS)
    kept = Kept(str(path), {"teacher": "a"})
    again = kept.of(TEXTS)
    kept.close()
    assert list(again) == list(before)
    for text, terms in before.items():
        assert again[text].dtype == terms.dtype == np.float64
        assert again[text].tobytes() == terms.tobytes()


def test_nothing_is_written_before_the_first_text(tmp_path, scores):
    path = tmp_path / "terms.jsonl"
    Kept(str(path), {"teacher": "a"}).close()
    assert list(tmp_path.iterdir()) == []
    filled(path, scores)
    whole = path.read_bytes()
    Kept(str(path), {"teacher": "b"}, force=True).close()
    assert path.read_bytes() == whole  # nothing was scored in its place
