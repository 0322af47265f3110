"""`besag joint` and `besag compare` on the embedded model, with small candidate sets."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path

import pytest
from tests import networks
from tests.cli.conftest import Run, _embedded, column, table

from besag.cli.joint import JointOptions
from besag.errors import BesagError
from besag.joints.pair import PairJoint

CASINO = "The man is at the casino."
MASKED = "The capital of [MASK] [MASK] is Paris."
FEW = ("--candidates", 8)


@functools.cache
def expected(text: str, at: tuple[str, ...] | None = None, method: str = "ag") -> PairJoint:
    found = _embedded().joint(text, at, method, candidates=8)
    assert isinstance(found, PairJoint)
    return found


# ---- besag joint


def test_a_context_of_unknown_tokens_alone_is_refused(run: Run, tmp_path: Path) -> None:
    networks.tiny("bert").save_pretrained(tmp_path)  # the embedded model writes what it does not know in bytes
    networks.vocabulary("bert").tokenizer.save_pretrained(tmp_path)
    for command in ("joint", "fill"):
        result = run(command, "\u16a0 [MASK] [MASK]", "--candidates", 3, "-m", tmp_path)
        assert result.exit_code == 2
        assert "the whole context, 1 token, is unknown to its tokenizer" in result.stderr
    result = run("joint", "\u16a0 [MASK] [MASK] man", "--candidates", 3, "-m", tmp_path)
    assert result.exit_code == 0
    assert "1 SHOWN TOKEN UNKNOWN TO THE MODEL" in result.stderr


@pytest.mark.parametrize("many", ["0", "-1", "1e3", "nan", "9" * 9, "9" * 30, "9" * 5000])
def test_a_number_of_candidates_that_cannot_be_is_refused(run: Run, many: str) -> None:
    result = run("joint", MASKED, f"--candidates={many}")
    assert result.exit_code == 2
    assert "candidates" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("option", ["--top", "--sample"])
def test_a_number_of_rows_that_cannot_be_is_refused(run: Run, option: str) -> None:
    for many in (0, -1, 10**9, 10**30):
        assert option in run("joint", MASKED, option, many).stderr


def test_rows_are_the_likeliest_pairs(run: Run) -> None:
    result = run("joint", MASKED, *FEW, "--top", 5)
    assert result.exit_code == 0
    joint, rows = expected(MASKED), table(result.stdout)
    assert [(row["a"], row["b"]) for row in rows] == [one.tokens for one in joint.top(5)]
    assert column(result.stdout, "log_prob") == pytest.approx([one.log_prob for one in joint.top(5)], abs=1e-5)
    assert column(result.stdout, "prob") == pytest.approx([one.prob for one in joint.top(5)], abs=1e-5)
    assert rows[0]["text"] == joint.top(1)[0].text
    assert "[MASK]" not in rows[0]["text"]


def test_what_the_rows_are_is_said_in_one_line(run: Run) -> None:
    [said] = run("joint", MASKED, *FEW, "--quiet").stderr.splitlines()
    assert said.startswith("ag: nearest conditionals")
    assert "a probability of pairs of tokens: 8 × 8 candidates, which hold " in said
    assert "mutual information" in said


@pytest.mark.parametrize("at", [("man", "is"), (2, "8:10"), ("4:7", -6)])
def test_a_place_is_a_word_a_token_or_characters(run: Run, at: tuple[object, object]) -> None:
    result = run("joint", CASINO, "--position", at[0], "--position", at[1], *FEW, "--top", 3)
    joint = expected(CASINO, ("man", "is"))
    assert [(row["a"], row["b"]) for row in table(result.stdout)] == [one.tokens for one in joint.top(3)]


def test_how_many_candidates_may_be_said() -> None:
    assert [JointOptions(written).size for written in (None, "auto", "all", "50")] == ["auto", "auto", "all", 50]
    for wrong in ("0", "-3", "1.5", "al"):
        with pytest.raises(BesagError, match=f"--candidates '{wrong}'"):
            _ = JointOptions(wrong).size


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--method", "order", "--set", "direction=ab"), "order a→b"),
        (("--set", "weights=marginal"), "ag marginal"),
        (("--set", "paper=true"), "ag paper"),
        (("--method", "hcb", "--set", "pivot=man"), "pivot ▁man"),
        (("--method", "hcb", "--set", "pivot=390"), "pivot ▁man"),
        (("--method", "stationary", "--set", "tolerance=1e-4"), "stationary tolerance=0.0001"),
    ],
)
def test_constructions_and_their_options(run: Run, options: tuple[str, ...], said: str) -> None:
    result = run("joint", CASINO, "--position", "man", "--position", "is", *FEW, *options)
    assert result.exit_code == 0, result.stderr
    assert said in result.stderr


def test_draws_are_reproducible(run: Run) -> None:
    drawn = table(run("joint", MASKED, *FEW, "--sample", 20, "--seed", 5).stdout)
    joint = expected(MASKED)
    assert [(row["a"], row["b"]) for row in drawn] == joint.sample(20, 5)
    assert float(drawn[0]["log_prob"]) == pytest.approx(joint.log_prob(*joint.sample(1, 5)[0]), abs=1e-5)
    assert [row["text"] for row in drawn[:3]] == [row["text"] for row in
            table(run("joint", MASKED, *FEW, "--sample", 3, "--seed", 5).stdout)]  # fmt: skip


def test_the_picture_is_saved(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "joint.png"
    result = run("joint", MASKED, *FEW, "--plot", picture)
    assert result.exit_code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    again = run("joint", MASKED, *FEW, "--plot", picture)
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    assert not again.stdout
    wrong = run("joint", MASKED, *FEW, "--plot", tmp_path / "joint.pgn")
    assert wrong.exit_code == 2
    assert "Did you mean 'png'?" in wrong.stderr


@pytest.mark.parametrize("format", ["jsonl", "table"])
def test_formats(run: Run, format: str) -> None:
    out = run("joint", MASKED, *FEW, "--top", 2, "--format", format).stdout
    assert len(out.splitlines()) == {"jsonl": 2, "table": 4}[format]
    if format == "jsonl":
        first = json.loads(out.splitlines()[0])
        assert [*first] == ["a", "b", "prob", "log_prob", "text"]
        assert math.log(first["prob"]) == pytest.approx(first["log_prob"])


def test_parquet(run: Run, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "joint.parquet"
    assert run("joint", MASKED, *FEW, "--top", 4, "-o", path).exit_code == 0
    assert parquet.read_table(path)["a"].to_pylist() == [one.a for one in expected(MASKED).top(4)]


def test_a_construction_that_does_not_converge_is_not_a_success(run: Run) -> None:
    result = run("joint", MASKED, "--candidates", 40, "--set", "tolerance=1e-30")
    assert result.exit_code == 3
    assert "NOT CONVERGED: residual" in result.stderr
    assert len(table(result.stdout)) == 10


def test_three_places_are_a_block(run: Run, tmp_path: Path) -> None:
    text = "She [MASK] [MASK] [MASK] again."
    result = run("joint", text, "--candidates", 4, "--top", 3)
    assert result.exit_code == 0, result.stderr
    found = _embedded().joint(text, candidates=4)
    assert [[row[f"token_{i}"] for i in (1, 2, 3)] for row in table(result.stdout)] == [
        list(one.tokens) for one in found.top(3)
    ]
    assert "4 × 4 × 4 candidates" in result.stderr
    assert len(table(run("joint", text, "--candidates", 4, "--sample", 6).stdout)) == 6
    drawn = run("joint", text, "--candidates", 4, "--plot", tmp_path / "x.png")
    assert drawn.exit_code == 2
    assert "--plot takes two places" in drawn.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((CASINO,), "has no mask"),
        (("One [MASK] only.",), "one place only"),
        ((CASINO, "--position", "man", "--position", "mann"), "Did you mean 'man'?"),
        ((CASINO, "--position", "man", "--position", "man"), "the same position"),
        ((CASINO, "--position", "man", "--position", "99"), "there is no token 99"),
        (("He saw the kasbah.", "--position", "saw", "--position", "kasbah"), "'kasbah' is 4 tokens"),
        ((CASINO, "--position", "man", "--position", "is", "--method", "agg"), "Did you mean 'ag'?"),
        (
            (CASINO, "--position", "man", "--position", "is", "--method", "mlm", "--set", "weights=uniform"),
            "weights is an option of loglinear, ag, not of mlm",
        ),
        ((CASINO, "--position", "man", "--position", "is", "--candidates", "many"), "--candidates 'many'"),
        ((MASKED, "--gold", "New"), "gold"),
    ],
)
def test_wrong_input_is_quoted_and_answered(run: Run, arguments: tuple[str, ...], said: str) -> None:
    result = run("joint", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not result.stdout


# ---- besag compare


def test_every_construction_is_a_row(run: Run) -> None:
    result = run("compare", CASINO, "--position", "man", "--position", "is", *FEW)
    assert result.exit_code == 0, result.stderr
    rows = {row["construction"]: row for row in table(result.stdout)}
    comparison = expected(CASINO, ("man", "is")).compare()
    assert [*rows] == [row["construction"] for row in comparison.rows]
    for mine, theirs in zip(rows.values(), comparison.rows, strict=True):
        for name in ("pair_nll", "unary_ppl", "all_forward", "rank"):
            if theirs[name] is None:
                assert not mine[name]
            else:
                assert float(mine[name]) == pytest.approx(theirs[name], rel=1e-4, abs=1e-5)
    assert "incompatibility of the model's conditionals (Arnold-Press)" in result.stderr


def test_masks_have_no_perplexity_unless_gold_is_named(run: Run) -> None:
    hidden = run("compare", MASKED, *FEW, "--method", "ag", "--method", "mlm")
    assert [row["construction"] for row in table(hidden.stdout)] == ["ag", "mlm"]
    assert "pair_nll" not in table(hidden.stdout)[0]
    assert table(hidden.stdout)[0]["top"] == " ".join(expected(MASKED).top(1)[0].tokens)
    named = run("compare", MASKED, *FEW, "--method", "ag", "--gold", "the", "--gold", "country")
    assert named.exit_code == 0, named.stderr
    assert float(table(named.stdout)[0]["pair_nll"]) > 0


def test_a_table_fits_a_terminal(run: Run) -> None:
    shown = run(
        "compare", CASINO, "--position", "man", "--position", "is", *FEW, "--format", "table"
    ).stdout.splitlines()
    assert max(map(len, shown)) <= 110
    assert shown[2].split() == ["P-PPL", "U-PPL", "G-KL", "A-KL", "A-JSD", "MI", "rank", "iterations"]
    assert [line.split()[0] for line in shown[3:6]] == ["mlm", "order", "order"]


def test_a_comparison_is_drawn_and_written(run: Run, tmp_path: Path) -> None:
    result = run("compare", MASKED, *FEW, "--plot", tmp_path / "c.svg", "-o", tmp_path / "c.jsonl")
    assert result.exit_code == 0, result.stderr
    assert "<svg" in (tmp_path / "c.svg").read_text()
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert {row["status"] for row in rows} == {"ok"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((MASKED, "--method", "stationry"), "Did you mean 'stationary'?"),
        (("A [MASK] [MASK] [MASK].",), "two places"),
        (("One [MASK] only.",), "besag compare takes two places"),
    ],
)
def test_what_cannot_be_compared(run: Run, arguments: tuple[str, ...], said: str) -> None:
    result = run("compare", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
