"""Lists of hypotheses in files: seven formats, named or sniffed, read and written back.

Each format is a file of this room with `read(path)` and `write(lists, path)`, the one the inverse of the other; what a
format says besides texts and scores is carried along. Nothing is half-written: a file or folder takes its place whole.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from besag.errors import BesagError, nearest, quoted
from besag.files.lines import lines_of
from besag.rescoring.formats import espnet, hyporadise, jsonl, kaldi, mlm_scoring, moses, tsv
from besag.rescoring.formats.reading import document
from besag.rescoring.lists import Beside, NBest, referred, sound

Format = Literal["mlm-scoring", "espnet", "kaldi", "moses", "hyporadise", "jsonl", "tsv"]
FORMATS: tuple[Format, ...] = get_args(Format)
_ROOMS = {
    "mlm-scoring": mlm_scoring, "espnet": espnet, "kaldi": kaldi, "moses": moses, "hyporadise": hyporadise,
    "jsonl": jsonl, "tsv": tsv,
}  # fmt: skip
FOLDERS = ("espnet", "kaldi")  # the others are files


def read_nbest(path: str | os.PathLike[str], format: Format | None = None) -> tuple[list[NBest], Format]:
    """The lists of a file or folder, and in which format they are."""
    name = os.fspath(path)
    found = format or sniffed(name)
    if found not in FORMATS:
        raise BesagError(f"format={found!r}: one of {', '.join(FORMATS)}.{nearest(found, FORMATS)}")
    if found in FOLDERS and not os.path.isdir(name):
        there = "it is a file" if os.path.exists(name) else "there is none"
        raise BesagError(f"{quoted(name)}: lists of {found} are a folder, and {there}")
    return sound(_ROOMS[found].read(name), name), found


def write_nbest(lists: Sequence[NBest], path: str | os.PathLike[str], format: Format) -> None:
    """Lists in their order, with the scores they have now."""
    _ROOMS[format].write(lists, os.fspath(path))


def sniffed(path: str) -> Format:
    """The format by what is there: a folder by its files, a file by its beginning."""
    if os.path.isdir(path):
        if os.path.isdir(os.path.join(path, "1best_recog")):
            return "espnet"
        if any(os.path.isfile(os.path.join(path, name)) for name in kaldi.TEXTS):
            return "kaldi"
        raise BesagError(f"{path!r} is a folder with neither 1best_recog (ESPnet) nor text (Kaldi) in it")
    first = next((line for _, line in lines_of(path) if line.strip()), "")
    if not first:
        raise BesagError(f"{path} is empty: there is nothing to rescore")
    if first.lstrip().startswith("["):
        return "hyporadise"
    if first.lstrip().startswith("{"):
        return "jsonl" if '"hyps"' in first else "mlm-scoring"
    if moses.BAR in first:
        return "moses"
    if "\t" in first and {"utt", "text"} <= set(first.split("\t")):
        return "tsv"
    raise BesagError(
        f"{path} begins with {quoted(first[:60])}, which is none of the formats of hypotheses that are known: say "
        f"--format {'|'.join(FORMATS)}"
    )


def read_references(
    path: str | os.PathLike[str], lists: Sequence[NBest], format: Format, what: Beside = "reference"
) -> dict[str, str]:
    """References (or sources) by id: `id words…` a line, mlm-scoring's JSON; for Moses, HyPoradise a line a list."""
    name = os.fspath(path)
    if Path(name).suffix == ".json":
        found = mlm_scoring.references(document(name), name)
    elif format in ("moses", "hyporadise"):
        texts = [line.strip() for _, line in lines_of(name)]
        if len(texts) != len(lists):
            raise BesagError(f"{name} has {len(texts):,} {what}s, and there are {len(lists):,} lists: one line each")
        found = {one.utt: text for one, text in zip(lists, texts, strict=True)}
    else:
        found = kaldi.table(name)
    if not found:
        raise BesagError(f"{name} is empty: it holds no {what}")
    return found


def lists_of(nbest: str, format: Format | None, ref: str | None, sources: str | None) -> list[NBest]:
    """The lists of a file, with references and sources where these have files of their own."""
    lists, found = read_nbest(nbest, format)
    if ref is not None:
        lists = referred(lists, read_references(ref, lists, found), nbest, ref)
    if sources is not None:
        told = read_references(sources, lists, found, "source")
        lists = referred(lists, told, nbest, sources, "source")
    return lists
