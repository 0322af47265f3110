"""`besag lengths`: fit p(n), the law of text lengths, and save it; and how `besag score --lengths` gets one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from besag.characters import is_text
from besag.cli import options as o
from besag.cli.exits import UNSCORED, guarded, say
from besag.cli.groups import LayoutOptions, grouped
from besag.errors import BesagError, quoted
from besag.files.inputs import Layout, file_input, records
from besag.files.whole import is_stream
from besag.files.writing import claimed
from besag.results.status import Status
from besag.results.words import counted

if TYPE_CHECKING:
    from besag.language_model import LanguageModel
    from besag.scores import LengthModel, Method

File = Annotated[str, typer.Argument(metavar="FILE", help="The texts, in any format `besag score` reads; - is stdin.")]
Saved = Annotated[str, typer.Option("--output", "-o", help="The JSON file to save p(n) in.", show_default=False)]


ENDING = ".json"


@guarded
@grouped
def lengths(
    file: File,
    output: Saved,
    rows: LayoutOptions,
    model: o.Model = None,
    revision: o.Revision = None,
    force: o.Force = False,
) -> int:
    """Fit a length distribution for score --lengths.

    p(n) is the probability that a text has n tokens of the model's tokenizer.

    Example:
        besag lengths corpus.txt -o lengths.json
    """
    if not (output.endswith(ENDING) or is_stream(output)):
        raise BesagError(
            f"output={quoted(output)}: p(n) is saved as JSON, and --lengths knows it by its ending; name a file that "
            f"ends in {ENDING}"
        )
    claimed(output, force)  # until the command ends
    texts = _Texts(file, rows.layout())

    import besag

    fitted = besag.load(model, revision=revision, progress=False).length_model(texts)
    fitted.save(output)
    say(f"{fitted}; saved in {output}")
    return UNSCORED if texts.left_out else 0


def length_models(
    path: str | None, models: Sequence[LanguageModel], methods: Mapping[str, Method]
) -> list[LengthModel | None]:
    """One p(n) for each model: what was saved, or fitted now on a file of texts."""
    if path is None:
        return [None] * len(models)
    if not any(method.normalised for method in methods.values()):
        raise BesagError(f"--lengths is for probabilities of texts of one length, and {', '.join(methods)} gives none")
    return [length_model(path, lm) for lm in models]


def length_model(path: str, lm: LanguageModel) -> LengthModel:
    if path.endswith(ENDING):
        from besag.scores import LengthModel

        return LengthModel.load(path)
    return lm.length_model(_Texts(path, Layout(keep=False)))


class _Texts:
    """The texts of a file that have a length: not the empty ones, nor those that cannot be decoded, which are told."""

    def __init__(self, path: str, layout: Layout) -> None:
        self.sources = file_input(path, layout)
        self.left_out: list[str] = []  # where

    def __iter__(self) -> Iterator[str]:
        for record in records(self.sources):
            if record is None or not record.text.strip():
                continue
            if is_text(record.text):
                yield record.text
            else:
                self.left_out.append(record.where)
        if self.left_out:
            rows = counted(len(self.left_out), "row")
            say(f"{rows} without a length: {Status.UNDECODABLE}; the first is {self.left_out[0]}")
