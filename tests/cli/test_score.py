"""`besag score` from argument to row: formats, options, several methods and models, summaries."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests import networks
from tests.cli.conftest import Run, column, put, table

import besag
from besag.files import progress
from besag.files.progress import Resumable

A, B = "The cats sleep.", "The cats sleeps."


@pytest.fixture(scope="module")
def lm() -> besag.LanguageModel:
    return besag.load(progress=False)


# ---- one row a text


def test_texts_are_scored_as_python_scores_them(run: Run, lm: besag.LanguageModel) -> None:
    result = run("score", A, B)
    assert result.exit_code == 0, result.stderr
    rows = table(result.stdout)
    assert [list(rows[0]), [row["row"] for row in rows]] == [
        ["row", "text", "pll", "tokens", "unknown", "status"],
        ["1", "2"],
    ]
    expected = [score.total for score in lm.score([A, B])]
    assert column(result.stdout, "pll") == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        (["--reduction", "mean"], "pll_mean", lambda score: score.mean),
        (["--base", "2"], "pll_bits", lambda score: score.total / math.log(2)),
        (["--surprisal", "--base", "10"], "pll_surprisal_hartleys", lambda score: -score.total / math.log(10)),
    ],
)
def test_the_column_says_what_the_number_is(
    run: Run, lm: besag.LanguageModel, options: list[str], name: str, value: object
) -> None:
    assert column(run("score", A, *options).stdout, name) == pytest.approx([value(lm.score(A))], abs=1e-4)  # type: ignore[operator]


def test_context_is_shown_and_not_scored(run: Run, lm: besag.LanguageModel) -> None:
    options = {"prefix": "I have", "suffix": "at home.", "separator": "  "}
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    score = lm.score("two cats", "chain", words="whitespace", order="right-to-left", **options)
    result = run(
        "score", "two cats", "--words", "whitespace", "--method", "chain", "--set", "order=right-to-left", *flags
    )
    assert column(result.stdout, "chain") == pytest.approx([score.total], abs=1e-4)


def test_methods_side_by_side(run: Run, lm: besag.LanguageModel) -> None:
    result = run(
        "score", A, B, "--method", "pll", "--method", "within_word_l2r", "--method", "elbo", "--set", "samples=8"
    )
    assert list(table(result.stdout)[0]) == [
        "row",
        "text",
        "pll",
        "word_l2r",
        "elbo",
        "elbo_se",
        "tokens",
        "unknown",
        "status",
    ]
    for name, options in {"pll": {}, "word_l2r": {}, "elbo": {"samples": 8}}.items():
        expected = [score.total for score in lm.score([A, B], name, **options)]
        assert column(result.stdout, name) == pytest.approx(expected, abs=1e-4)


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random causal model."""
    folder = tmp_path_factory.mktemp("models") / "gpt"
    networks.tiny("gpt2").save_pretrained(folder)
    networks.vocabulary("gpt2").tokenizer.save_pretrained(folder)
    return str(folder)


def test_a_causal_model_beside_a_masked_one(run: Run, gpt: str) -> None:
    result = run("score", A, "-m", "small-en", "-m", gpt, "--method", "chain", "--method", "causal")
    assert result.exit_code == 0, result.stderr
    (row,) = table(result.stdout)
    assert [name for name in row if ":c" in name] == ["small-en:chain", "gpt:causal"]
    refused = run("score", A, "-m", gpt)
    assert refused.exit_code == 2
    assert f"'pll' needs a masked model, and {gpt!r} is a causal one" in refused.stderr


def test_models_side_by_side(run: Run) -> None:
    result = run("score", A, "-m", "small-en", "-m", "small-en")
    assert result.exit_code == 0, result.stderr
    (row,) = table(result.stdout)
    assert row["small-en:pll"] == row["small-en#2:pll"]
    assert row["small-en:tokens"] == "5"


def test_other_columns_come_along(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(f"id\tsentence\tstatus\n7\t{A}\tgold\n".encode()))
    (row,) = table(run("score", path).stdout)
    assert (row["id"], row["text"], row["input.status"], row["status"]) == ("7", A, "gold", "ok")
    (row,) = table(run("score", path, "--no-keep").stdout)
    assert "id" not in row
    (line,) = run("score", path, "--format", "jsonl").stdout.splitlines()
    assert json.loads(line)["input"] == {"id": "7", "status": "gold"}


def test_json_lines_hold_the_whole_score(run: Run, lm: besag.LanguageModel) -> None:
    lines = run(
        "score", A, "--format", "jsonl", "--rank", "--reduction", "mean", "--method", "pll", "--method", "chain"
    )
    first, second = map(json.loads, lines.stdout.splitlines())
    assert (first["row"], second["row"]) == (1, 1)
    assert (first["method"], second["method"], first["score_is"]) == ("pll", "chain", "pll_mean")
    expected = lm.score(A, rank=True)
    assert first["score"] == pytest.approx(expected.mean)
    assert [token["rank"] for token in first["tokens"]] == expected.rank.tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "parquet", "txt"])
def test_output_files(run: Run, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    result = run("score", A, B, "-o", path)
    assert (result.exit_code, result.stdout) == (0, "")
    if ending == "parquet":
        assert pq.read_table(path).column("text").to_pylist() == [A, B]
    else:
        assert path.read_text().count("sleeps") >= 1
    refused = run("score", A, "-o", path)
    assert refused.exit_code == 2
    assert "exists already" in refused.stderr
    assert run("score", A, "-o", path, "--force").exit_code == 0


def test_skip_and_limit_keep_the_numbers(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("One.\nTwo.\nThree.\n")
    assert [row["row"] for row in table(run("score", path, "--skip", "1", "--limit", "1").stdout)] == ["2"]


# ---- one row a token or word


def test_per_token(run: Run, lm: besag.LanguageModel) -> None:
    result = run("score", A, "--per", "token", "--rank", "--entropy", "--base", "2")
    rows, score = table(result.stdout), lm.score(A, base=2, rank=True, entropy=True)
    assert list(rows[0]) == [
        "sentence_id", "token_id", "token", "log_prob", "prob", "surprisal", "rank", "entropy", "word", "start", "end",
        "status",
    ]  # fmt: skip
    assert [row["token"] for row in rows] == list(score.tokens)
    assert [int(row["rank"]) for row in rows] == score.rank.tolist()  # type: ignore[union-attr]
    assert column(result.stdout, "entropy") == pytest.approx(score.entropy.tolist(), abs=1e-4)  # type: ignore[union-attr]
    assert column(result.stdout, "prob") == pytest.approx((2**score.log_probs).tolist(), abs=1e-4)
    assert [int(row["word"]) - 1 for row in rows] == score.words.tolist()
    assert [A[int(row["start"]) : int(row["end"])] for row in rows] == [piece.text for piece in score.by_token()]


def test_per_word_with_several_methods(run: Run, lm: besag.LanguageModel) -> None:
    rows = table(run("score", A, "--per", "word", "--method", "pll", "--method", "word_l2r").stdout)
    assert list(rows[0]) == [
        "sentence_id", "word_id", "word", "position", "log_prob", "prob", "surprisal", "start", "end", "model",
        "method", "status",
    ]  # fmt: skip
    mine = [float(row["log_prob"]) for row in rows if row["method"] == "word_l2r"]
    assert mine == pytest.approx([word.value for word in lm.score(A, "word_l2r").by_word()], abs=1e-4)


# ---- summary, lengths, configuration


def test_the_summary_stays_out_of_the_data(run: Run, lm: besag.LanguageModel) -> None:
    expected = str(besag.corpus(lm.score([A, B])))
    result = run("score", A, B, "--summary")
    assert len(table(result.stdout)) == 2
    assert result.stderr.strip() == expected
    result = run("score", A, B, "--summary", "--format", "table", "--method", "pll", "--method", "chain")
    assert expected in result.stdout
    assert "chain: a log-probability" in result.stdout
    assert "none of the 1 texts has a score" in run("score", "", "--summary").stderr


@pytest.mark.parametrize("name", ["x.parquet", "x.tsv", "x"])
def test_lengths_are_saved_as_json_alone(run: Run, corpus: Path, tmp_path: Path, name: str) -> None:
    result = run("lengths", corpus, "-o", tmp_path / name)
    assert result.exit_code == 2
    assert name in result.stderr
    assert ".json" in result.stderr
    assert not (tmp_path / name).exists()


def test_lengths_are_fitted_or_loaded(run: Run, lm: besag.LanguageModel, corpus: Path, tmp_path: Path) -> None:
    saved = tmp_path / "lengths.json"
    result = run("lengths", corpus, "-o", saved)
    assert result.exit_code == 0, result.stderr
    assert "p(n) from 2 texts" in result.stderr
    assert run("lengths", corpus, "-o", saved).exit_code == 2
    fitted = besag.LengthModel.load(saved)
    expected = lm.score(A, "chain", lengths=fitted).total
    for source in (corpus, saved):
        result = run("score", A, "--method", "chain", "--method", "pll", "--lengths", source)
        assert column(result.stdout, "chain") == pytest.approx([expected], abs=1e-4)
        assert column(result.stdout, "pll") == pytest.approx([lm.score(A).total], abs=1e-4)


def test_a_configuration_gives_defaults_and_the_command_line_wins(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('method = ["pll", "elbo"]\nset = ["samples=8"]\nbase = 2\nsurprisal = true\nseed = 3\n')
    (row,) = table(run("score", A, "--config", path).stdout)
    assert {"pll_surprisal_bits", "elbo_surprisal_bits"} < set(row)
    (row,) = table(run("score", A, "--config", path, "--base", "e", "--method", "elbo").stdout)
    assert "elbo_surprisal" in row
    assert "pll_surprisal" not in row


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("base = [1, 2]", "'base' takes one value"),
        ("base = {a = 1}", "a text, a number, true or false"),
        ("base = ", "is not TOML"),
    ],
)
def test_a_wrong_configuration(run: Run, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(content)
    result = run("score", A, "--config", path)
    assert result.exit_code == 2
    assert message in result.stderr


# ---- a context of each row's own

WITH_CONTEXT = [("It rained.", "She was late."), ("The door was open.", "It rained."), ("Nobody came.", "")]


@pytest.mark.parametrize("place", ["before", "2", "stdin"])
def test_each_row_has_the_context_of_its_column(run: Run, lm: besag.LanguageModel, tmp_path: Path, place: str) -> None:
    path = put(tmp_path / "rows.tsv", "text\tbefore\n" + "".join(f"{a}\t{b}\n" for a, b in WITH_CONTEXT))
    column_of, options = ("before" if place == "stdin" else place), ["--method", "pll", "--method", "chain"]
    if place == "stdin":
        piped = ("-", "--input-format", "tsv", "--prefix-column", column_of, *options)
        result = run("score", *piped, stdin=path.read_text())
    else:
        result = run("score", path, "--prefix-column", column_of, *options)
    assert result.exit_code == 0, result.stderr
    for method in ("pll", "chain"):
        expected = [lm.score(text, method, prefix=context).total for text, context in WITH_CONTEXT]
        assert column(result.stdout, method) == pytest.approx(expected, abs=1e-4)
    assert table(result.stdout)[0]["before"] == "She was late."  # and the column is carried along


def test_a_row_without_its_context_has_a_status_and_stops_nothing(run: Run, tmp_path: Path) -> None:
    rows = [{"text": A}, {"text": A, "c": {"p": "So."}}, {"text": A, "c": {"p": None}}, {"text": A, "c": {"p": 5}}, A]
    path = put(tmp_path / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    result = run("score", path, "--suffix-column", "c.p", "--format", "tsv")
    assert result.exit_code == 3
    statuses = [row["status"] for row in table(result.stdout)]
    assert statuses == ["no context", "ok", "no context", "no context", "no context"]
    assert "4 rows were not scored: 4 no context" in result.stderr
    asked = run("marginals", path, "--suffix-column", "c.p", "--candidates", "cat", "--format", "tsv")
    assert (asked.exit_code, {row["text_id"] for row in table(asked.stdout)}) == (3, {"2"})


def test_a_column_that_is_not_there_is_refused_by_the_option(run: Run, tmp_path: Path) -> None:
    path = put(tmp_path / "rows.csv", "text,before\na,b\n")
    result = run("score", path, "--prefix-column", "befor")
    assert result.exit_code == 2
    assert "--prefix-column 'befor' is no column: " in result.stderr
    assert "Did you mean 'before'?" in result.stderr


def test_a_run_with_contexts_goes_on(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(progress.BLOCK, "cpu", 2)
    path = put(tmp_path / "rows.tsv", "text\tbefore\n" + "".join(f"{a}\t{b}\n" for a, b in 2 * WITH_CONTEXT))
    options = [path, "--prefix-column", "before", "-o"]
    assert run("score", *options, tmp_path / "straight.tsv").exit_code == 0
    with pytest.MonkeyPatch.context() as patch:
        whole, left = Resumable.write, iter(range(3))

        def write(self: Resumable, row: object, others: object) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt
            whole(self, row, others)  # type: ignore[arg-type]

        patch.setattr(Resumable, "write", write)
        assert run("score", *options, tmp_path / "out.tsv").exit_code == 130
    other = run("score", path, "--suffix-column", "before", "-o", tmp_path / "out.tsv", "--resume")
    assert "was begun with other settings: prefix_column is not set" in other.stderr
    assert run("score", *options, tmp_path / "out.tsv", "--resume").exit_code == 0
    assert (tmp_path / "out.tsv").read_bytes() == (tmp_path / "straight.tsv").read_bytes()


# ---- names of columns


def test_two_models_have_the_names_they_were_given_or_short_ones(run: Run, tmp_path: Path) -> None:
    folders = [tmp_path / "one" / "final", tmp_path / "two" / "final", tmp_path / "lr=1"]
    for folder in folders:
        networks.tiny("bert").save_pretrained(folder)
        networks.vocabulary("bert").tokenizer.save_pretrained(folder)
    one, two, odd = (str(folder) for folder in folders)
    names = {
        name.rpartition(":")[0]
        for name in table(run("score", "the cat", "-m", f"small={one}", "-m", two, "-m", odd).stdout)[0]
        if name.endswith(":pll")
    }
    assert names == {"small", "final", "lr=1"}
    alike = table(run("score", "the cat", "-m", one, "-m", two, "-m", two).stdout)[0]
    assert {"one/final:pll", "two/final:pll", "two/final#2:pll"} <= set(alike)


def test_a_surprisal_of_each_word_is_a_column_and_no_mistake(run: Run) -> None:
    plain, asked = (run("score", A, "--per", "word", *more) for more in ([], ["--surprisal"]))
    assert (asked.exit_code, asked.stdout) == (0, plain.stdout)
    assert "surprisal" in table(asked.stdout)[0]


# ---- given sources


@pytest.fixture
def given(run: Run, monkeypatch: pytest.MonkeyPatch) -> besag.LanguageModel:
    """What commands load: a law of two symbols given one of two sources."""
    lm = besag.load(besag.GivenTable({"m": [[4, 1], [1, 4]], "n n": [[1, 4], [4, 1]]}, symbols=["a", "b"]))
    monkeypatch.setattr(besag, "load", lambda *_, **__: lm, raising=False)
    return lm


def test_a_source_for_all_rows_or_one_for_each(run: Run, given: besag.LanguageModel, tmp_path: Path) -> None:
    result = run("score", "--text", "a a", "--text", "a b", "--source", "m", "--method", "chain")
    assert result.exit_code == 0, result.stderr
    assert column(result.stdout, "chain") == pytest.approx([math.log(0.4), math.log(0.1)], abs=1e-4)
    rows = put(tmp_path / "rows.jsonl", '{"text": "a a", "de": "m"}\n{"text": "a a", "de": "n n"}\n{"text": "a b"}\n')
    result = run("score", rows, "--source-column", "de", "--method", "chain")
    assert result.exit_code == 3
    assert [row["status"] for row in table(result.stdout)] == ["ok", "ok", "no context"]
    assert column(result.stdout.rsplit("\n", 2)[0], "chain") == pytest.approx([math.log(0.4), math.log(0.1)], abs=1e-4)


def test_other_commands_take_a_source_for_all(run: Run, given: besag.LanguageModel) -> None:
    result = run("fill", "a [MASK]", "--source", "n n", "--format", "tsv")
    assert result.exit_code == 0, result.stderr
    assert table(result.stdout)[0]["text"] == "a b"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "answers about a text given its source, and no source was given"),
        (["--source", "x"], "has no table for the source 'x'"),
        (["--source", "m", "--source-column", "de"], "--source is one for all rows, and --source-column one for each"),
        (["--source-column", "de"], "--source-column 'de': the text 'a a' has no columns"),
    ],
)
def test_a_source_that_is_lacking_or_wrong(run: Run, given: besag.LanguageModel, options: list[str], told: str) -> None:
    result = run("score", "--text", "a a", *options)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_model_that_takes_no_source_refuses_it(run: Run) -> None:
    result = run("score", A, "--source", "Die Katzen schlafen.")
    assert result.exit_code == 2
    assert "'small-en' takes no source" in result.stderr
