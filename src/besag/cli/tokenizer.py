"""`besag tokenizer`: learn a vocabulary from text (`train`), add to one (`extend`), compare them on text (`report`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from besag.cli import options as o
from besag.cli.exits import at_end, guarded, say
from besag.errors import BesagError
from besag.files.claim import LOCK, Claim
from besag.files.lines import lines_of
from besag.files.writing import choose_format, writer

_FILES = "Text, JSON Lines, TSV, CSV or Parquet, packed or not; globs; - for stdin."
_SAMPLE = "Learn from about so many bytes of text, lines drawn at random; 0: from all of it."
_COVERAGE = "With bytes: share of the text's characters whose kinds have pieces of their own."
_BYTES = "Write what has no piece as bytes, so that nothing is unknown."
_QUOTES = "Read typographic quotes as plain ones."
_FORM = "Unicode normal form; nfkc also folds ligatures, full-width letters and the like."
_MORPHEMES = "TSV: word, tab, its morphemes with spaces between; if not given, guessed from English affixes."
_MODELS = "Folders or hub names of tokenizers or models; embedded: that of the embedded model."

Files = Annotated[list[str], typer.Argument(metavar="FILE…", help=_FILES, show_default=False)]
Into = Annotated[str, o.of_output("--output", "-o", help="Folder of the tokenizer.", show_default=False)]
Field = Annotated[str, o.of_input("--field", help="Of rows: where the text is, a name or a path as in page.text.")]
Kind = Annotated[Literal["unigram", "bpe", "wordpiece"], o.of_method("--kind", help="Of pieces.")]
Size = Annotated[int, o.of_method("--size", min=1, help="Tokens in all, special ones counted.")]
Cased = Annotated[bool, o.of_method("--cased/--uncased", help="Tell upper from lower case.")]
Digits = Annotated[bool, o.of_method("--digits/--no-digits", help="Each digit a token of its own.")]
Bytes = Annotated[bool, o.of_method("--byte-fallback/--no-byte-fallback", help=_BYTES)]
Form = Annotated[Literal["nfc", "nfkc"], o.of_method("--form", help=_FORM)]
Quotes = Annotated[bool, o.of_method("--plain-quotes/--no-plain-quotes", help=_QUOTES)]
Coverage = Annotated[float, o.of_method("--coverage", help=_COVERAGE)]
Sample = Annotated[int, o.of_input("--sample", min=0, help=_SAMPLE)]
Seed = Annotated[int, o.of_input("--seed", help="Of the sample.")]
MaxLength = Annotated[
    int | None, o.of_method("--max-length", min=1, help="Written into the tokenizer.", show_default=False)
]
Folders = Annotated[list[str], typer.Argument(metavar="FOLDER…", help=_MODELS, show_default=False)]
HeldOut = Annotated[list[str], o.of_input("--text", help=f"Held-out text. {_FILES} Repeat.", show_default=False)]
Morphemes = Annotated[str | None, o.of_input("--morphemes", help=_MORPHEMES, show_default=False)]
Limit = Annotated[int | None, o.of_input("--limit", min=1, help="At most N documents.", show_default=False)]

tokenizer = typer.Typer(name="tokenizer", help="Train, extend or compare tokenizers.", no_args_is_help=True)


@tokenizer.command("train")
@guarded
def train(
    files: Files,
    output: Into,
    kind: Kind = "unigram",
    size: Size = 8192,
    cased: Cased = True,
    digits: Digits = True,
    byte_fallback: Bytes = True,
    form: Form = "nfc",
    plain_quotes: Quotes = False,
    coverage: Coverage = 0.9995,
    max_length: MaxLength = None,
    field: Field = "text",
    sample: Sample = 100_000_000,
    seed: Seed = 0,
    force: o.Force = False,
) -> int:
    """Train a tokenizer on text.

    The folder can be loaded by transformers.

    Example:
        besag tokenizer train corpus.txt --size 8192 -o tokenizer
    """
    _claim(Path(output), force)

    from besag.training.data.sources import documents
    from besag.training.recipe import Data
    from besag.training.tokenizer import train_tokenizer
    from besag.training.tokenizer.saving import save_whole

    texts = (one.text for one in documents(Data(train=tuple(files), held_out=0.0, field=field)))
    learnt = train_tokenizer(
        texts, kind=kind, size=size, cased=cased, digits=digits, byte_fallback=byte_fallback, form=form,
        plain_quotes=plain_quotes, coverage=coverage, sample=sample or None, seed=seed, max_length=max_length,
    )  # fmt: skip
    save_whole(learnt, output)
    say(f"{len(learnt):,} tokens in {output}")
    return 0


@tokenizer.command("extend")
@guarded
def extend(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Folder or hub name of a tokenizer or model.")],
    files: Files,
    output: Into,
    size: Annotated[int, o.of_method("--size", min=1, help="Tokens to add, at most.")] = 1000,
    field: Field = "text",
    force: o.Force = False,
) -> int:
    """Add whole words to a tokenizer.

    Adds the words of a text that the tokenizer splits into the most subword tokens. Existing tokens keep their ids. Set
    tokenizer.path = "tokenizer" and model.vocabulary = "extended" in a recipe to continue training a model with it.

    Example:
        besag tokenizer extend small-en corpus.txt --size 1000 -o tokenizer
    """
    _claim(Path(output), force)

    from besag.training.data.sources import documents
    from besag.training.recipe import Data
    from besag.training.tokenizer.extending import extended
    from besag.training.tokenizer.saving import save_whole

    before: Any = _vocabulary(model)
    grown = extended(before, (one.text for one in documents(Data(train=tuple(files), held_out=0.0, field=field))), size)
    save_whole(grown, output)
    say(f"{len(grown):,} tokens in {output}, {len(grown) - len(before):,} of them new")
    return 0


def _claim(folder: Path, force: bool) -> None:
    """A folder of our own until the command ends; gone again where nothing came to stand in it."""
    if folder.exists() and not folder.is_dir():
        raise BesagError(f"{str(folder)!r} is a file: choose another --output")
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise BesagError(f"cannot make the folder {str(folder)!r}: {failure.strerror}") from failure
    claim = Claim(folder)

    def let_go() -> None:
        claim.release()
        if made and not any(folder.iterdir()):
            folder.rmdir()

    at_end(let_go)
    if not force and any(entry.name != LOCK for entry in folder.iterdir()):
        raise BesagError(f"{str(folder)!r} exists already: choose another --output, or say --force to write over it")


@tokenizer.command("report")
@guarded
def report(
    folders: Folders,
    text: HeldOut,
    morphemes: Morphemes = None,
    field: Field = "text",
    limit: Limit = None,
    format: o.Format = None,
    output: o.Output = None,
    force: o.Force = False,
) -> int:
    """Compare tokenizers on held-out text.

    Reports fertility, coverage, share of whole words, morphological alignment and evenness of token frequencies.

    Example:
        besag tokenizer report tokenizer small-en --text held-out.txt
    """
    shape = choose_format(format, output)
    out = writer(shape, output, force)

    from itertools import islice

    from besag.training.data.sources import documents
    from besag.training.recipe import Data
    from besag.training.tokenizer.report import report as compare

    vocabularies = {name: _vocabulary(folder) for name, folder in zip(_names(folders), folders, strict=True)}
    texts = (one.text for one in documents(Data(train=tuple(text), held_out=0.0, field=field)))
    try:
        found = [
            one.to_dict() for one in compare(vocabularies, islice(texts, limit), segmentation=_segmentation(morphemes))
        ]
        for row in _turned(found) if shape == "table" else found:  # a terminal is taller than wide
            out.write(row, {})
    finally:
        out.close()
    return 0


def _turned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each measure, a column for each tokenizer."""
    measures = [name for name in rows[0] if name != "name"]
    return [{"measure": measure, **{row["name"]: row[measure] for row in rows}} for measure in measures]


def _names(folders: list[str]) -> list[str]:
    """What the rows are called: as typed, without a slash at the end; the second of two equal ones is refused."""
    names = [folder.rstrip("/" + os.sep) or folder for folder in folders]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise BesagError(f"{sorted(twice)[0]!r} is there twice")
    return names


def _vocabulary(folder: str) -> object:
    from besag.conditionals import loading
    from besag.training.network.networks import found

    tokenizer: object = loading.read_vocabulary(found(folder), folder).tokenizer
    return tokenizer


def _segmentation(path: str | None) -> dict[str, str] | None:
    if path is None:
        return None
    found: dict[str, str] = {}
    for number, line in lines_of(path):
        word, tab, parts = line.partition("\t")
        if line.strip() and not (tab and word and parts):
            raise BesagError(f"{path}, line {number} is no word, tab and morphemes: {line.strip()[:60]!r}")
        if line.strip():
            found[word] = parts.split("\t")[0]
    return found
