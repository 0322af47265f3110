"""Groups of options: flat for typer, whole for the command; and all commands that take a model take it alike."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import click
import pytest
import typer
from typer.testing import CliRunner

import besag
import besag.cli
from besag.cli.groups import ModelOptions, ModelsOptions, grouped

LONGEST = 60  # lines of one function
MODELS = ["choose", "fill", "joint", "compare", "diagnose", "pairs", "sample", "augment", "edit"]


@dataclass(frozen=True)
class Fruit:
    apples: Annotated[int, typer.Option("--apples", rich_help_panel="Output")] = 1
    pears: Annotated[list[str] | None, typer.Option("--pear", rich_help_panel="Method")] = None

    @property
    def many(self) -> int:
        return self.apples + len(self.pears or ())


def commands() -> dict[str, Any]:
    found: dict[str, Any] = {}
    top: Any = typer.main.get_command(besag.cli.app)
    for name, one in top.commands.items():
        if isinstance(one, click.Group) or hasattr(one, "commands"):
            found |= {f"{name} {inner}": command for inner, command in one.commands.items()}
        else:
            found[name] = one
    return found


def flags(command: Any) -> set[str]:
    return {flag for parameter in command.params for flag in getattr(parameter, "opts", ()) if flag.startswith("--")}


def test_a_group_is_flat_outside_and_whole_inside() -> None:
    app, seen = typer.Typer(), []

    @app.command()
    @grouped
    def eat(fruit: Fruit, name: Annotated[str, typer.Argument()] = "Eve") -> int:
        seen.append((name, fruit, fruit.many))
        return 0

    result = CliRunner().invoke(app, ["Adam", "--apples", "3", "--pear", "a", "--pear", "b"])
    assert result.exit_code == 0, result.output
    assert CliRunner().invoke(app, []).exit_code == 0
    assert seen == [("Adam", Fruit(3, ["a", "b"]), 5), ("Eve", Fruit(), 1)]
    # whatever the order of the fields, panels stand in one order
    assert list(inspect.signature(eat).parameters) == ["name", "pears", "apples"]


def test_an_option_that_two_groups_have_is_found_at_once() -> None:
    def eat(fruit: Fruit, apples: int = 0) -> int:
        return 0

    with pytest.raises(TypeError, match="eat has two options 'apples'"):
        grouped(eat)


@pytest.mark.parametrize("name", [*MODELS, "eval run"])
def test_every_command_takes_a_model_alike(name: str) -> None:
    wanted = {"--" + field.name.replace("_", "-") for field in fields(ModelOptions)}
    assert wanted <= flags(commands()[name])


def test_a_model_is_loaded_as_the_options_say(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(besag, "load", lambda name=None, **how: calls.append({"model": name, **how}), raising=False)
    group = ModelOptions("a", "cpu", "float32", "main", True, True, True, "adapter", 64)
    group.load(progress=False)
    assert calls == [{field.name: getattr(group, field.name) for field in fields(group)} | {"progress": False}]
    calls.clear()
    several = ModelsOptions(["a", "b"], device="cpu")
    several.load_all(True)
    several.load_all(True, in_step=True)
    bars = [(call["model"], call["progress"]) for call in calls]
    assert bars == [
        ("a", True),
        ("b", True),
        ("a", True),
        ("b", False),
    ]
    with pytest.raises(besag.BesagError, match="--revision belongs to one model"):
        ModelsOptions(["a", "b"], revision="main").load_all()


def test_no_function_of_the_command_line_is_long() -> None:
    long = []
    for path in Path(besag.cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno + 1 > LONGEST:
                long.append(f"{path.name}: {node.name}")
    assert long == []
