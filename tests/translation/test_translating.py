"""The verb: what goes in, what comes out, what is told of it, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests import networks
from tests.translation import pairs

import besag
from besag.conditionals.decoder import MaskedDecoder
from besag.conditionals.encoder_decoder import lift
from besag.errors import BesagError
from besag.samplers import kernel
from besag.translation import tracing
from besag.translation.tracing import Piece, Step

FRESH = pairs.sources(16, seed=5, longest=5)
RIGHT = [pairs.translated(source) for source in FRESH]


def right(found: Any) -> int:
    return sum(one == other for one, other in zip(found.texts, RIGHT, strict=True))


@pytest.mark.parametrize("name", [None, "refine", "adaptive", "entropy_bound", "threshold", "ordered", "remask"])
def test_kernels_translate_in_one_pass_and_in_more(masked: Any, name: str | None) -> None:
    for passes in (1, 4):
        found = masked.translate(FRESH, name, passes=passes)
        assert right(found) >= (13 if passes == 1 or name != "refine" else 8)  # it was never asked in place
        assert max(row.passes for row in found) <= passes


@pytest.mark.parametrize("options", [{"choose": "length"}, {"choose": "chain"}, {"judge": True}])
def test_several_lengths_are_tried_and_the_right_one_taken(masked: Any, causal: Any, options: dict[str, Any]) -> None:
    given = {"judge": causal} if "judge" in options else options
    found = masked.translate(FRESH, passes=2, lengths=3, nbest=2, **given)
    assert right(found) >= 14
    for row in found:
        assert row.tried == 3
        assert len(row.hypotheses) == 2
        assert row.hypotheses[0].score >= row.hypotheses[1].score


def test_the_likeliest_lengths_are_those_that_are_written(masked: Any) -> None:
    from besag.scores.source_length import SourceLengths

    lengths = SourceLengths(masked.engine)
    found = masked.translate(FRESH[:4], lengths=3, nbest=3)
    for source, row in zip(FRESH, found, strict=False):
        [ids] = masked.conditionals.source_ids([source])
        assert {one.length for one in row.hypotheses} == {*lengths.likeliest(3, ids)}
    laws = lengths.laws(masked.conditionals.source_ids(FRESH))
    for source, law in zip(FRESH, laws, strict=True):
        [ids] = masked.conditionals.source_ids([source])
        np.testing.assert_allclose(law, SourceLengths(masked.engine).law(ids), atol=1e-5)


def test_one_pass_of_the_encoder_for_each_distinct_source(masked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    encode = type(masked.conditionals).encode
    monkeypatch.setattr(
        type(masked.conditionals),
        "encode",
        lambda self, ids, mask=None: read.append(len(ids)) or encode(self, ids, mask),
    )
    masked.engine.sources.forget()
    masked.translate(["the cat", "dogs", "the cat"], lengths=2, passes=3)
    assert sum(read) == 2


def test_from_the_left(causal: Any) -> None:
    greedy, beam = causal.translate(FRESH, beam=1), causal.translate(FRESH, beam=4, nbest=3)
    assert min(right(greedy), right(beam)) >= 13
    assert all(len(row.hypotheses) == 3 for row in beam)
    assert greedy[0].passes == greedy[0].hypotheses[0].length + 1


def test_rows_that_cannot_be_translated_say_why(masked: Any, causal: Any) -> None:
    for lm in (masked, causal):
        found = lm.translate(["the cat", " ", "cat " * 80, "bad \ud800"])
        assert [str(row.status) for row in found] == ["ok", "empty", "long source", "undecodable"]
        assert found.texts[1:] == ["", "", ""]
        assert found.status == "partly"
        assert "3 sources left out: 1 empty, 1 long source, 1 undecodable" in found.facts
    assert len(masked.translate([])) == 0


def test_the_way_of_a_target(masked: Any) -> None:
    found = masked.translate("the cat table dogs", passes=3, trace=True)
    steps = found[0].steps
    assert [step.passes for step in steps] == [1, 2, 3]
    assert steps[-1].text == found.texts[0]
    assert "".join(piece.text for piece in steps[-1].pieces).strip() == found.texts[0]
    ordered = masked.translate("the cat table", "ordered", trace=True)
    first, last = ordered.trace()[0], ordered.trace()[-1]
    assert first.text.count("[MASK]") == 2
    assert [piece.changed for piece in last.pieces] == [False, False, True]
    assert tracing.COLOUR in ordered.coloured()
    assert "<span" in ordered._repr_html_()
    assert "[" in str(ordered)


def test_steps_are_shown_at_powers_of_two() -> None:
    steps = [Step(n, "", tuple(Piece(f" w{min(n, at)}", False) for at in range(3))) for n in range(1, 7)]
    shown = tracing.doubling(steps)
    assert [step.passes for step in shown] == [1, 2, 4, 6]
    marked = tracing.changed(shown)
    assert [[piece.changed for piece in step.pieces] for step in marked[:3]] == [
        [False] * 3, [False, False, True], [False] * 3,
    ]  # fmt: skip
    assert tracing.marked(marked[1]) == "w0 w1 [w2]"


def test_out_of_here(masked: Any) -> None:
    found = masked.translate(FRESH[:2], lengths=2, nbest=2)
    told = json.loads(json.dumps(found.to_dict()))
    assert [row["text"] for row in told["rows"]] == found.texts
    assert len(told["rows"][0]["hypotheses"]) == 2
    frame = pytest.importorskip("pandas") and found.to_pandas()
    assert len(frame) == 4


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"kernel": "mask_predikt"}, "mask_predict"), ({"passes": 0}, "passes=0"), ({"lengths": 0}, "lengths=0"),
        ({"length": 3, "lengths": 2}, "length=3 is the one length"), ({"noise": 2.0}, "noise=2.0"),
        ({"choose": "best"}, "choose='best'"), ({"kernel": kernel("ordered"), "order": "random"}, "give its name"),
        ({"kernel": "gibbs", "lengths": 3, "passes": 3}, "no score of their own"),
        ({"choose": "length", "length": 3}, "leave one out"), ({"utility": "ter"}, "one of chrf, bleu"),
        ({"terms": ["man"]}, "a list of words for each"), ({"early_stop": 3}, "True or False"),
        ({"paces": 3}, "paces"),
    ],
)  # fmt: skip
def test_what_is_refused(masked: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(BesagError, match=told):
        masked.translate(["the cat table"], **options)


def test_who_is_refused(masked: Any, causal: Any) -> None:
    with pytest.raises(BesagError, match="takes no source"):
        besag.load(besag.Table.random(2, 2)).translate("s0")
    with pytest.raises(BesagError, match=r"passes, trace: .* translates from the left"):
        causal.translate("the cat", passes=2, trace=True)
    with pytest.raises(BesagError, match="wider beam"):
        causal.translate("the cat", beam=2, nbest=3)
    with pytest.raises(BesagError, match="given a source already"):
        masked.given("cat").translate("the cat")
    words = networks.vocabulary("bert")
    headless = besag.load(MaskedDecoder(lift(networks.tiny_decoder("bart")), words, "mine"))
    with pytest.raises(BesagError, match="has no length head"):
        headless.translate("the cat")
    assert headless.translate("the cat", length=3)[0].hypotheses[0].length == 3
