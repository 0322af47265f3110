"""Lists of hypotheses in every format, by hand: read, sniffed, written back; and what is wrong with a file."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.files.reading import put

from besag.errors import BesagError
from besag.rescoring.formats import FORMATS, read_nbest, read_references, write_nbest
from besag.rescoring.lists import Hypothesis, NBest, need_references, referred, scored

MLM = {
    "utt-a": {"hyp_2": {"score": -2.5, "text": "A CAP"}, "hyp_1": {"score": -1.5, "text": "A CAT"}, "ref": "A CAT"},
    "utt-b": {"hyp_1": {"score": -3, "text": "NO", "extra": 1}, "ref": "NO"},
}
HYPORADISE = [{"input": ["a cat", "a cap"], "output": "a cat"}, {"input": ["no"], "output": "no", "source": "x"}]
JSONL = (
    '{"utt": "a", "ref": "A CAT", "hyps": [{"rank": 1, "text": "A CAT", "score": -1.5}, '
    '{"rank": 2, "text": "A CAP", "score": -2.5}], "speaker": "s"}\n'
    '{"utt": "b", "ref": "NO", "hyps": [{"rank": 1, "text": "NO", "score": -3.0}]}\n'
)
MOSES = (
    "0 ||| a cat ||| LM0= -1.5 TM0= 0.25 ||| -1.5 ||| 0-0 1-1\n0 ||| a cap ||| LM0= -2 TM0= 0.5 ||| -2.5\n"
    "1 ||| no ||| LM0= -3 ||| -3\n"
)
TSV = "utt\ttext\tscore\tref\tchannel\na\tA CAT\t-1.5\tA CAT\tl\na\tA CAP\t-2.5\tA CAT\tl\nb\tNO\t-3\tNO\tr\n"


def example(format: str, folder: Path) -> Path:
    """A tiny n-best list as the format is published."""
    path = folder / "nbest"
    if format == "mlm-scoring":
        return put(path, json.dumps(MLM, indent=2))
    if format == "hyporadise":
        return put(path, json.dumps(HYPORADISE))
    if format in ("jsonl", "moses", "tsv"):
        return put(path, {"jsonl": JSONL, "moses": MOSES, "tsv": TSV}[format])
    path.mkdir()
    if format == "kaldi":
        put(path / "text", "a-1 A CAT\na-2 A CAP\nb-1 NO\n")
        put(path / "ac_cost", "a-1 1\na-2 2\nb-1 2\n")
        put(path / "lm_cost", "a-1 0.5\na-2 0.5\nb-1 1\n")
        return path
    for rank, texts, scores in (
        (1, "a A CAT\nb NO\n", "a tensor(-1.5000)\nb tensor(-3., device='cuda:0')\n"),
        (2, "a A CAP\n", "a -2.5\n"),
    ):
        (path / f"{rank}best_recog").mkdir()
        put(path / f"{rank}best_recog" / "text", texts)
        put(path / f"{rank}best_recog" / "score", scores)
        put(path / f"{rank}best_recog" / "token", texts.replace("A", "▁A"))
    return path


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_is_sniffed_and_read(format, tmp_path) -> None:
    lists, found = read_nbest(example(format, tmp_path))
    assert found == format
    assert [[each.text.upper() for each in one.hypotheses] for one in lists] == [["A CAT", "A CAP"], ["NO"]]
    if format == "hyporadise":
        assert [one.hypotheses[0].score for one in lists] == [None, None]
    else:
        assert [[each.score for each in one.hypotheses] for one in lists] == [[-1.5, -2.5], [-3.0]]
    within = format in ("mlm-scoring", "hyporadise", "jsonl", "tsv")
    assert [one.reference and one.reference.upper() for one in lists] == (["A CAT", "NO"] if within else [None] * 2)


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_is_read_again(format, tmp_path) -> None:
    lists, _ = read_nbest(example(format, tmp_path))
    turned = [
        NBest(
            one.utt,
            tuple(Hypothesis(each.text, 0.5 + place, each.carried) for place, each in enumerate(one.hypotheses))[::-1],
            one.reference,
            one.carried,
        )
        for one in lists
    ]
    write_nbest(turned, tmp_path / "out", format)
    again, found = read_nbest(tmp_path / "out")
    assert found == format
    for before, after in zip(turned, again, strict=True):
        assert (before.utt, before.reference) == (after.utt, after.reference)
        assert [(one.text, one.score) for one in before.hypotheses] == [
            (one.text, one.score) for one in after.hypotheses
        ]


def test_what_a_format_says_besides_stays(tmp_path) -> None:
    for format in ("moses", "espnet", "jsonl", "mlm-scoring"):
        folder = tmp_path / format
        folder.mkdir()
        lists, _ = read_nbest(example(format, folder))
        write_nbest(lists, folder / "out", format)
    moses = (tmp_path / "moses" / "out").read_text().splitlines()
    assert moses[0] == "0 ||| a cat ||| LM0= -1.5 TM0= 0.25 ||| -1.5 ||| 0-0 1-1"
    assert (tmp_path / "espnet" / "out" / "2best_recog" / "token").read_text(encoding="utf-8") == "a ▁A C▁AP\n"
    first = json.loads((tmp_path / "jsonl" / "out").read_text().splitlines()[0])
    assert (first["speaker"], [one["rank"] for one in first["hyps"]]) == ("s", [1, 2])
    assert json.loads((tmp_path / "mlm-scoring" / "out").read_text())["utt-b"]["hyp_1"]["extra"] == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty: there is nothing to rescore"),
        ("hello\n", "begins with 'hello', which is none of the formats"),
        ('{"utt": "a", "hyps": []}\n', "'a' has no hypotheses"),
        (JSONL + JSONL, "two lists of the id 'a'"),
        ('{"utt": "a", "hyps": [{"text": 5}]}\n', "text is 5, and must be a text"),
        ('{"utt": "a", "hyps": [{"text": "b", "score": "x"}]}\n', "the score 'x' is no number"),
        ('{"utt": "a", "hyps": [{"text": "b", "score": NaN}]}\n', "has the score nan, which is no finite number"),
        ('{"utt": "a", "hyps": "b"}\n', "hyps is 'b', and must be a list"),
        ('{"a": {"hyp_1": {"text": "x", "score": 1}}, "a": {"hyp_1": {"text": "x", "score": 1}}}', "of the id 'a'"),
        ('{"a": 5}', "5 is no JSON object"),
        ('[{"input": "b"}]', "has no list of texts as its input"),
        ('[{"input": ["b"], "score": [1, 2]}]', "1 hypotheses, and the scores are [1, 2]"),
        ("0 ||| only\n", "is not id ||| text ||| features ||| score"),
        (MOSES + MOSES, "two lists of the id '0'"),
        ("utt\ttext\tscore\n", "is empty: there is nothing to rescore"),
        ("utt\ttext\tscore\na\tb\n", "line 2 has 2 cells"),
        ("utt\ttext\tref\na\tb\tc\na\td\te\n", "several references"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(content, said, tmp_path) -> None:
    with pytest.raises(BesagError) as refused:
        read_nbest(put(tmp_path / "nbest", content))
    assert said in str(refused.value)


def test_another_encoding_is_refused_with_its_place(tmp_path) -> None:
    (tmp_path / "nbest").write_bytes('{"utt": "a", "hyps": [{"text": "é", "score": 1}]}\n'.encode("latin-1"))
    with pytest.raises(BesagError, match=r"line 1, byte 33 .* is not UTF-8"):
        read_nbest(tmp_path / "nbest")


def test_what_is_wrong_with_a_folder_is_told(tmp_path) -> None:
    with pytest.raises(BesagError, match="neither 1best_recog"):
        read_nbest(tmp_path)
    put(tmp_path / "text", "a A CAT\n")
    with pytest.raises(BesagError, match="'a' does not end in -1, -2"):
        read_nbest(tmp_path)
    put(tmp_path / "text", "a-1 A CAT\n")
    put(tmp_path / "score", "a-2 5\n")
    with pytest.raises(BesagError, match="'a-2' has a score, and no text"):
        read_nbest(tmp_path)
    with pytest.raises(BesagError, match="lists of espnet are a folder, and there is none"):
        read_nbest(tmp_path / "no", "espnet")


def test_scores_that_are_missing() -> None:
    lists = [NBest("a", (Hypothesis("x", None), Hypothesis("y", None)))]
    with pytest.raises(BesagError, match=r"'x' of 'a' has no score, .* --missing-scores rank"):
        scored(lists, "refuse", "nbest")
    assert [one.score for one in scored(lists, "zero", "nbest")[0].hypotheses] == [0.0, 0.0]
    assert [one.score for one in scored(lists, "rank", "nbest")[0].hypotheses] == [0.0, -math.log(2)]


def test_references_of_their_own_file(tmp_path) -> None:
    lists, _ = read_nbest(example("kaldi", tmp_path))
    ref = put(tmp_path / "ref", "a A CAT\nb NO\n")
    assert [one.reference for one in referred(lists, read_references(ref, lists, "kaldi"), "n", "r")] == ["A CAT", "NO"]
    as_json = put(tmp_path / "ref.json", json.dumps({"a": {"ref": "A CAT"}, "b": "NO"}))
    assert read_references(as_json, lists, "kaldi") == {"a": "A CAT", "b": "NO"}
    lines = put(tmp_path / "lines", "a cat\nno\n")
    assert read_references(lines, lists, "moses") == {"a": "a cat", "b": "no"}
    with pytest.raises(BesagError, match="has 2 references, and there are 1 lists"):
        read_references(lines, lists[:1], "moses")
    with pytest.raises(BesagError, match="n has hypotheses of 'b', and r no reference"):
        referred(lists, {"a": "A CAT"}, "n", "r")
    with pytest.raises(BesagError, match="r has a reference of 'c', and n no hypotheses"):
        referred(lists, {"a": "A CAT", "b": "NO", "c": ""}, "n", "r")
    with pytest.raises(BesagError, match="'a' is there twice"):
        read_references(put(tmp_path / "twice", "a A\na B\n"), lists, "kaldi")
    with pytest.raises(BesagError, match=r"'a' \(and 1 others\) has no reference to judge by"):
        need_references(lists, "nbest")
