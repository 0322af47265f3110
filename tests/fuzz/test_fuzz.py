"""Hostile inputs, of the command line and of Python: all end as docs/cli.md says, or in a BesagError.

The random ones are the same in every run; `make fuzz` has more, and `python -m tests.fuzz --seed N` others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.fuzz import calls, commands, corpus, pool, watching

import besag
from besag.cli import exits
from besag.errors import BesagError

FEW = settings(
    max_examples=60, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which commands run, with the pool beside it."""
    root = tmp_path_factory.mktemp("fuzz")
    pool.write(root)
    with watching.remembered("../pool/tiny"):
        yield root / "here"


@pytest.mark.parametrize("name", corpus.LINES)
def test_a_command_that_once_went_wrong(here: Path, name: str) -> None:
    assert watching.command(list(corpus.LINES[name]), here)[0] is None


@pytest.mark.parametrize("source", corpus.CALLS)
def test_a_call_that_once_went_wrong(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert calls.made(source)[0] is None


def test_random_command_lines(here: Path) -> None:
    @FEW
    @given(commands.lines())
    def each(line: list[str]) -> None:
        assert watching.command(line, here)[0] is None, line

    each()


def test_random_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    @settings(FEW, max_examples=200)
    @given(calls.drawn())
    def each(source: str) -> None:
        assert calls.made(source)[0] is None, source

    each()


# ---- can it fail?


def test_every_command_is_drawn() -> None:
    assert {("score",), ("eval", "run"), ("train", "run"), ("tokenizer", "report")} < {one.path for one in commands.ALL}
    flags = {flag for one in commands.ALL for parameter in one.parameters for flag in parameter.flags}
    assert {"--model", "--no-header", "-o", "--top-p", "--set"} <= flags


def test_every_door_refuses_unknown_names_in_our_words() -> None:
    """A public callable that nobody made `checked` is found here."""
    raw = []
    for door in calls.doors():
        if door.may_raise:  # nobody names what stands in brackets
            continue
        try:
            eval(f"{door.source}(__no_such_argument__=1)", calls.namespace())
        except BesagError:
            continue
        except Exception as error:
            raw.append(f"{door.source}: {error}")
    assert raw == []


def test_a_fault_a_hang_and_a_number_that_is_none_are_noticed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*given: object, **named: object) -> None:
        raise KeyError("inside")

    with monkeypatch.context() as patch:
        patch.setattr(besag, "load", break_down)
        wrong, code = watching.command(["score", "--model", "../pool/tiny", "a cat"], here)
    assert (wrong or "").startswith("KeyError at")
    assert code == exits.INTERNAL
    assert watching.wrong_rows('{"status": "ok", "total": NaN}') is not None
    assert watching.wrong_rows('{"status": "mask", "total": NaN}') is None
    assert (watching.call(lambda: [].index(1)) or "").startswith("ValueError")
    with pytest.raises(watching.TooLong), watching.watchdog(1):
        time.sleep(20)
