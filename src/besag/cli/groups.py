"""Options that belong together, as one typed argument of a command.

A group is a frozen dataclass whose fields are options (`options.py`) with their defaults. `grouped` shows typer all of
them side by side, and hands the command its groups again:

    @guarded
    @grouped
    def fill(text: Masked, model: ModelOptions, output: OutputOptions, run: RunOptions) -> int: ...

Commands load models here and nowhere else, so every command that takes a model takes it in the same ways.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from besag.cli import options as o
from besag.cli.exits import at_end
from besag.errors import BesagError, nearest, require
from besag.files.inputs import Input, Layout, inputs
from besag.files.whole import whole
from besag.files.writing import Writer, check_output, choose_format, writer

if TYPE_CHECKING:
    from besag.cli.regions import RegionOptions
    from besag.language_model import LanguageModel

PANELS = (None, "Model", "Method", "Input", "Result", "Output", "Running")  # in this order, whatever the groups are
DPI = 150  # of a picture made of pixels


def grouped(command: Callable[..., int]) -> Callable[..., int]:
    """The command with the fields of its groups as arguments of their own."""
    hints = get_type_hints(command, include_extras=True)
    found: dict[str, inspect.Parameter] = {}
    groups: dict[str, Any] = {}
    for name, given in inspect.signature(command).parameters.items():
        kind = hints[name]
        if is_dataclass(kind):
            groups[name] = kind
            own = _parameters(kind)
        else:
            own = [given.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY)]
        for one in own:
            if one.name in found:
                raise TypeError(f"{command.__name__} has two options {one.name!r}")
            found[one.name] = one
    ordered = sorted(found.values(), key=lambda one: PANELS.index(_panel(one)))

    @functools.wraps(command)
    def flat(**given: Any) -> int:
        built = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)}) for name, kind in groups.items()
        }
        return command(**given, **built)

    flat.__signature__ = inspect.Signature(ordered, return_annotation=int)  # type: ignore[attr-defined]
    flat.__annotations__ = {one.name: one.annotation for one in ordered} | {"return": int}
    return flat


def _parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=_default(one), annotation=hints[one.name])
        for one in fields(group)
    ]


def _default(field: Field[Any]) -> Any:
    return inspect.Parameter.empty if field.default is MISSING else field.default


def _panel(parameter: inspect.Parameter) -> str | None:
    told = (getattr(one, "rich_help_panel", None) for one in get_args(parameter.annotation)[1:])
    return next((panel for panel in told if isinstance(panel, str)), None)


# ---- the model


@dataclass(frozen=True)
class ModelOptions:
    """Which model, and how it is loaded."""

    model: o.Model = None
    device: o.Device = None
    dtype: o.Dtype = None
    revision: o.Revision = None
    allow_pickle: o.AllowPickle = False
    compile: o.Compile = False
    untilt: o.Untilt = False
    adapter: o.Adapter = None
    batch_tokens: o.BatchTokens = None

    def load(self, progress: bool | None = None) -> LanguageModel:
        return self._load(self.model, progress)

    def _load(self, name: str | None, progress: bool | None) -> LanguageModel:
        import besag
        from besag.hardware import alike_by_any_threads

        alike_by_any_threads()  # so that a file has the same bytes, whoever wrote it
        lm = besag.load(
            name, device=self.device, dtype=self.dtype, revision=self.revision, allow_pickle=self.allow_pickle,
            compile=self.compile, untilt=self.untilt, adapter=self.adapter, batch_tokens=self.batch_tokens,
            progress=progress,
        )  # fmt: skip
        return self.given(lm)

    def given(self, lm: LanguageModel) -> LanguageModel:
        """As it is asked: a command whose model can be given a source says which."""
        return lm


@dataclass(frozen=True)
class ModelsOptions(ModelOptions):
    """Several models, all loaded in the same way."""

    model: o.Models = None  # type: ignore[assignment] # the same option, said more than once

    @property
    def named(self) -> list[tuple[str, str | None]]:
        """What the user calls each of them ("" for nothing), and which it is."""
        return [_name_and_model(one) for one in self.model] if self.model else [("", None)]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.named]

    def check(self) -> None:
        """Refuse what cannot be meant, before anything is loaded."""
        if self.revision is not None and len(self.model or []) > 1:
            raise BesagError("--revision belongs to one model, and there are several")
        if self.adapter is not None and len(self.model or []) > 1:
            raise BesagError(f"--adapter {self.adapter!r} belongs to one model, and there are several")
        given = [name for name in self.names if name]
        for name in given:
            if given.count(name) > 1:
                raise BesagError(f"--model {name}=…: two models cannot have one name")

    def load_one(self, model: str | None) -> LanguageModel:
        """One of them, without a bar."""
        return self._load(model, False)

    def load_all(self, progress: bool | None = None, *, in_step: bool = False) -> list[LanguageModel]:
        """Each of them; where all run `in_step`, only the first has a progress bar."""
        self.check()
        return [
            self._load(model, False if place and in_step else progress) for place, (_, model) in enumerate(self.named)
        ]


@dataclass(frozen=True)
class SourceOption:
    """What a model is given, before those of the model: for commands whose every question is about one source."""

    source: o.Source = None

    def given(self, lm: LanguageModel) -> LanguageModel:
        return lm if self.source is None else lm.given(self.source)


@dataclass(frozen=True)
class GivenModelOptions(SourceOption, ModelOptions):
    """A model, and what it is given."""


@dataclass(frozen=True)
class GivenModelsOptions(SourceOption, ModelsOptions):
    """Several models, all given the same."""


def _name_and_model(said: str) -> tuple[str, str]:
    """NAME=MODEL apart; a folder may have such a name itself."""
    name, equals, model = said.partition("=")
    if not equals or "/" in name or os.path.exists(said):
        return "", said
    if not name.strip() or not model.strip():
        raise BesagError(f"--model {said!r}: write NAME=MODEL, or MODEL alone")
    return name.strip(), model.strip()


# ---- what comes in


@dataclass(frozen=True)
class LayoutOptions:
    """How a file of texts is read."""

    input_format: o.InputFormat = None
    column: o.Column = None
    header: o.Header = True
    escaped: o.Escaped = False

    def layout(self, keep: bool = False) -> Layout:
        """`keep` the other columns of a table?"""
        return Layout(self.input_format, self.column, self.header, keep, self.escaped)


@dataclass(frozen=True)
class RowsOptions(LayoutOptions):
    """Which rows of it, and whether it is a file at all."""

    text: o.Text = False
    skip: o.Skip = 0
    limit: o.Limit = None

    def sources(
        self,
        given: list[str] | None,
        command: str,
        output: str | None,
        keep: bool = True,
        around: ContextOptions | None = None,
        regions: RegionOptions | None = None,
    ) -> list[Input]:
        """Where the texts are, with what is around and within them; none of them may be the file that is written."""
        if not given and sys.stdin.isatty():
            raise BesagError(f"give a text, a file, or - for stdin (besag {command} --help)")
        columns = around.columns if around else {}
        layout = self.layout(keep)._replace(
            prefix=columns.get("prefix"), suffix=columns.get("suffix"), sources=columns.get("sources")
        )
        if regions is not None:
            layout = layout._replace(sign=regions.region_sign, spans=regions.spans_column)
        found = inputs(given or ["-"], as_text=self.text, layout=layout)
        if output is not None and any(source.is_file(output) for source in found):
            raise BesagError(f"--output {output!r} is one of the inputs")
        return found


@dataclass(frozen=True)
class ContextOptions:
    """What is shown around each text, and not scored."""

    prefix: o.Prefix = ""
    suffix: o.Suffix = ""
    separator: o.Separator = " "
    prefix_column: o.PrefixColumn = None
    suffix_column: o.SuffixColumn = None

    @property
    def columns(self) -> dict[str, str]:
        """prefix, suffix or both, where each row has its own: the column it stands in."""
        found: dict[str, str] = {}
        for name, value, column in (
            ("prefix", self.prefix, self.prefix_column),
            ("suffix", self.suffix, self.suffix_column),
        ):
            if column is None:
                continue
            if value:
                raise BesagError(f"--{name} is one for all rows, and --{name}-column one for each: say which")
            found[name] = column
        return found

    @property
    def for_all(self) -> dict[str, str]:
        return {"prefix": self.prefix, "suffix": self.suffix, "separator": self.separator}


# ---- what goes out


@dataclass(frozen=True)
class OutputOptions:
    """Where the rows of a result go, and in which shape."""

    format: o.Format = None
    output: o.Output = None
    force: o.Force = False
    spreadsheet_safe: o.SpreadsheetSafe = False

    @property
    def shape(self) -> str:
        """table, tsv, csv, jsonl or parquet."""
        found = choose_format(self.format, self.output)
        if self.spreadsheet_safe and found not in ("tsv", "csv"):
            raise BesagError(f"--spreadsheet-safe is about CSV and TSV, and this writes {found}: say --format csv")
        return found

    @property
    def on_screen(self) -> bool:
        """Is it a table on stdout, below which more may be said?"""
        return self.shape == "table" and self.output is None

    def open(self) -> Writer:
        """Asked for before the work begins, so that a file that cannot be written is known by then."""
        out = writer(self.shape, self.output, self.force, self.spreadsheet_safe)
        at_end(out.close)
        return out


@dataclass(frozen=True)
class PlotOptions(OutputOptions):
    """And a picture of it."""

    plot: o.Plot = None

    def open(self) -> Writer:
        out = super().open()
        self.check_plot()
        return out

    def save(self, result: Any) -> None:
        """The picture of a result that has a `plot()`, where one is wanted."""
        if self.plot is not None:
            with whole(self.plot) as draft:
                result.plot().figure.savefig(draft, dpi=DPI)

    def check_plot(self) -> None:
        """Can the picture be drawn, and written?"""
        path = self.plot
        if path is None:
            return
        check_output(path, self.force)
        require("matplotlib", extra="plot").use("Agg")
        kinds = require("matplotlib.backend_bases", extra="plot").FigureCanvasBase.get_supported_filetypes()
        ending = path.rpartition(".")[2].lower() if "." in path else ""
        if ending not in kinds:
            raise BesagError(f"--plot {path!r}: a picture ends in .png, .pdf or .svg.{nearest(ending, kinds)}")


# ---- how it runs


@dataclass(frozen=True)
class RunOptions:
    """What is seen while it runs."""

    progress: o.Progress = None
