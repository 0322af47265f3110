"""--set name=value: by type, for one or for all, refused with the nearest right name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

from besag.cli.catalogue import known
from besag.cli.settings import ConstructionsOptions, read, settings
from besag.errors import BesagError


@pytest.mark.parametrize(
    ("kind", "name", "said", "value"),
    [
        ("score", "chain", "orders=3", 3),
        ("score", "chain", "order=random", "random"),
        ("score", "elbo", "samples=all", "all"),
        ("score", "elbo", "samples=8", 8),
        ("joint", "ag", "paper=true", True),
        ("joint", "ag", "tolerance=1e-4", 1e-4),
        ("joint", "ag", "tolerance=none", None),
        ("joint", "hcb", "pivot=Paris", "Paris"),
        ("joint", "hcb", "pivot=390", 390),
        ("kernel", "metropolis", "anneal=2,1,10", (2, 1, 10)),
        ("kernel", "metropolis", "anneal=[2, 0.5, 10]", (2, 0.5, 10)),
        ("kernel", "gibbs", "top_k=5", 5),
        ("mask", "content", "classes=a=b.tsv", "a=b.tsv"),
    ],
)
def test_a_value_is_read_by_its_type(kind: str, name: str, said: str, value: Any) -> None:
    option, _, text = said.partition("=")
    found = settings(kind, [name], [said])[name]
    assert found == {option: value}
    assert type(found[option]) is type(value)
    [own] = [one for one in known(kind, name).options if one.name == option]
    assert read(own, text) == value


def test_one_of_several_or_all_that_have_it() -> None:
    both = ["pll", "sentence_l2r", "ag_chain"]
    assert settings("score", both, ["order=random", "chain.orders=2"], {"seed": 5}) == {
        "pll": {},
        "chain": {"order": "random", "orders": 2, "seed": 5},
        "ag_chain": {"order": "random", "seed": 5},
    }


@pytest.mark.parametrize(
    ("names", "given", "told"),
    [
        (["chian"], [], "no scoring method 'chian'.*'chain'"),
        (["chain", "sentence_l2r"], [], "'sentence_l2r' is there twice"),
        (["chain"], ["order"], "--set 'order': write NAME=VALUE"),
        (["chain"], ["ordr=random"], "--set ordr=random: the scoring method 'chain' has no option 'ordr'.*'order'"),
        (["chain", "elbo"], ["sample=3"], "none of chain, elbo has an option 'sample'.*'samples'"),
        (["pll"], ["samples=3"], "samples is an option of elbo, not of pll"),
        (["pll"], ["chain.order=random"], "is about 'chain', and this runs pll"),
        (["chain"], ["order=rndom"], "'chain' with order='rndom'.*'random'"),
        (["chain"], ["orders=two"], "'chain' with orders='two': give a whole number"),
        (["chain"], ["seed=1", "chain.seed=2"], "seed is set twice"),
    ],
)
def test_what_is_wrong_is_said(names: list[str], given: list[str], told: str) -> None:
    with pytest.raises(BesagError, match=told):
        settings("score", names, given)
    with pytest.raises(BesagError, match="--seed: seed is set twice"):
        settings("score", ["chain"], ["seed=1"], {"seed": 2})


def test_constructions_that_are_compared_can_be_set() -> None:
    assert [one.label for one in ConstructionsOptions(["ag", "hcb"], ["weights=marginal"]).chosen()] == [
        "ag marginal",
        "hcb",
    ]
    every = [one.label for one in ConstructionsOptions(None, ["ag.weights=marginal"]).chosen()]
    assert every.count("ag marginal") == 1
    assert "ag" not in every
    assert "order a→b" in every


def test_a_file_of_options_can_set(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "options.toml"
    file.write_text('method = ["chain"]\nset = ["order=right-to-left"]\n', encoding="utf-8")
    result = run("score", "The cats sleep.", "--config", file, "--format", "jsonl")
    by_flags = run("score", "The cats sleep.", "--method", "chain", "--set", "order=right-to-left", "--format", "jsonl")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == json.loads(by_flags.stdout)
