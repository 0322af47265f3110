"""`besag score --per word|region|character-span`: long tables whose parts add up."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, column, put, table

import besag

CUT, TEXT = (
    "As the woman read | the letter | fell |  | to the floor.",
    "As the woman read the letter fell to the floor.",
)


@pytest.fixture(scope="module")
def lm() -> besag.LanguageModel:
    return besag.load(progress=False)


def test_a_long_table_of_regions(run: Run, lm: besag.LanguageModel, tmp_path: Path) -> None:
    source = put(tmp_path / "items.csv", f"item,condition,text\n7,garden,{CUT}\n")
    path = tmp_path / "long.csv"
    result = run("score", source, "--per", "region", "--method", "chain", "--entropy", "--base", "2", "-o", path)
    assert result.exit_code == 0, result.stderr
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert list(rows[0]) == [
        "sentence_id", "region", "text", "position", "log_prob", "prob", "surprisal", "entropy", "tokens", "start",
        "end", "status", "item", "condition",
    ]  # fmt: skip
    assert [(row["region"], row["text"], row["position"], row["tokens"]) for row in rows] == [
        ("1", "As the woman read", "1", "4"), ("2", "the letter", "5", "2"), ("3", "fell", "7", "1"),
        ("4", "", "", "0"), ("5", "to the floor.", "8", "4"),
    ]  # fmt: skip
    assert {(row["item"], row["condition"], row["status"]) for row in rows} == {("7", "garden", "ok")}
    score = lm.score(TEXT, "chain", base=2, entropy=True)
    assert sum(float(row["surprisal"] or 0) for row in rows) == pytest.approx(-score.total, abs=1e-4)
    assert float(rows[2]["surprisal"]) == pytest.approx(-score["fell"], abs=1e-4)
    assert [float(rows[place]["entropy"]) for place in (0, 1, 2, 4)] == pytest.approx(
        score.entropy[[0, 4, 6, 7]].tolist(),  # type: ignore[index] # of the first token of each
        abs=1e-4,
    )
    assert (rows[3]["surprisal"], rows[3]["entropy"]) == ("", "")  # no token, no number: R reads NA


def test_words_say_in_which_region_they_stand(run: Run, lm: besag.LanguageModel) -> None:
    options = ("--per", "word", "--words", "whitespace", "--region-sign", "|", "--entropy")
    rows = table(run("score", CUT, *options).stdout)
    assert list(rows[0])[:6] == ["sentence_id", "word_id", "word", "region", "position", "log_prob"]
    assert [row["word"] for row in rows] == TEXT.split()
    assert [row["region"] for row in rows] == [*"1111", *"22", "3", *"555"]
    expected = [word.value for word in lm.score(TEXT, words="whitespace").by_word()]
    assert [float(row["log_prob"]) for row in rows] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("options", [(), ("--per", "word"), ("--per", "token")])
def test_signs_that_no_region_is_cut_at_are_told_once(run: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    path = put(tmp_path / "a.txt", "As | the deer | ran\nThe | cat | sat\n")
    result = run("score", path, *options)
    assert result.exit_code == 0
    [line] = [one for one in result.stderr.splitlines() if "warning" in one]
    assert "--per region" in line
    assert "--region-sign '|'" in line
    assert "As | the deer | ran" in line


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("the deer | ran", ("--per", "word", "--region-sign", "|")), ("the deer | ran", ("--per", "region")),
        ("a|b", ()), ("x || y", ()), ("| the deer ran", ()),
    ],
)  # fmt: skip
def test_other_signs_are_told_of_no_more(run: Run, text: str, options: tuple[str, ...]) -> None:
    result = run("score", text, *options)
    assert result.exit_code == 0
    assert "warning" not in result.stderr


def test_spans_of_characters(run: Run, lm: besag.LanguageModel, tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", json.dumps({"text": TEXT, "at": [[7, 12], [29, 33]], "item": 3}))
    result = run("score", path, "--per", "character-span", "--spans-column", "at")
    rows, score = table(result.stdout), lm.score(TEXT)
    assert [(row["span"], row["text"], row["position"], row["item"]) for row in rows] == [
        ("7-12", "woman", "3", "3"), ("29-33", "fell", "7", "3"),
    ]  # fmt: skip
    assert column(result.stdout, "log_prob") == pytest.approx([score["woman"], score["fell"]], abs=1e-4)
    words = table(run("score", path, "--per", "word", "--spans-column", "at").stdout)
    assert [row["region"] for row in words if row["word"] in ("woman", "read", "fell")] == ["7-12", "", "29-33"]


def test_continuations_of_prefixes_by_word_and_region(run: Run, lm: besag.LanguageModel, tmp_path: Path) -> None:
    path = put(tmp_path / "a.tsv", "before\ttext\nAs the woman read\tthe letter | fell.\n")
    score = lm.score("the letter fell.", "chain", prefix="As the woman read")
    common = ("score", path, "--prefix-column", "before", "--method", "chain")
    rows = table(run(*common, "--per", "region").stdout)
    assert [(row["text"], row["start"], row["position"]) for row in rows] == [
        ("the letter", "0", "1"),
        ("fell.", "11", "3"),
    ]
    assert sum(float(row["log_prob"]) for row in rows) == pytest.approx(score.total, abs=1e-4)
    rows = table(run(*common, "--per", "word", "--region-sign", "|").stdout)
    assert [row["word"] for row in rows] == ["the", "letter", "fell", "."]
    assert [float(row["log_prob"]) for row in rows] == pytest.approx(score.log_probs.tolist(), abs=1e-4)


def test_a_text_that_is_not_scored_has_one_row(run: Run) -> None:
    result = run("score", "The | cat.", " | ", "--per", "region")
    assert result.exit_code == 3
    assert [(row["sentence_id"], row["text"], row["status"]) for row in table(result.stdout)] == [
        ("1", "The", "ok"), ("1", "cat.", "ok"), ("2", "", "empty"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--per", "character-span"], "say in which column the spans stand"),
        (["--per", "region", "--spans-column", "a"], "regions are cut at a sign, or listed"),
        (["--region-sign", "|"], "--region-sign goes with --per region, character-span or word"),
        (["--per", "token", "--spans-column", "a"], "--spans-column goes with --per region"),
        (["--per", "region", "--region-sign", " "], "' ' is no sign"),
        (["--per", "word", "--region-sign", ""], "'' is no sign"),
        (["--per", "word", "--region-sign", "|", "--spans-column", "a"], "say which"),
        (["--per", "region", "--rank"], "--rank belongs to tokens"),
        (["--entropy"], "--entropy belongs to tokens: say --per token, word, region"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(run: Run, options: list[str], message: str) -> None:
    result = run("score", "The | cat.", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_wrong_span_leaves_no_file(run: Run, tmp_path: Path) -> None:
    source, path = put(tmp_path / "a.csv", "text,at\nThe cat.,0-30\n"), tmp_path / "out.csv"
    result = run("score", source, "--per", "character-span", "--spans-column", "at", "-o", path)
    assert result.exit_code == 2
    assert "'0-30' is no span after character 0 within the 8 of 'The cat.'" in result.stderr
    assert not path.exists()
