"""Antibody chains of SAbDab (the Parquet files of AntiBERTa's repository) as data for matching, binders and probes.

Knows which chains belong together and where their third loop stands; what is measured on them is in `pairing.py`,
`binders.py` and `probing.py`.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as parquet

FILES = {"train": "sabdab_train.parquet", "test": "sabdab_val.parquet"}
COLUMNS = ["sequence", "v_gene", "pdb", "antibody_chains"]
# the third loop: after the last cysteine of the framework, before the W or F of the joining segment
LOOP = {"H": re.compile(r"(?<=C)[A-Z]{4,32}?(?=W[A-Z]{2}G)"), "L": re.compile(r"(?<=C)[A-Z]{4,16}?(?=FG[A-Z]G)")}
FRAMEWORK = 80  # residues before which no third loop begins


class Chain(NamedTuple):
    sequence: str
    gene: str  # IGHV1-2 …
    complex: tuple[str, str]  # of which structure, and of which of its antibodies

    @property
    def kind(self) -> str:
        """H of a heavy chain, L of a light one."""
        return "H" if self.gene.startswith("IGHV") else "L"


def chains(data: Path, part: str) -> list[Chain]:
    """In an order drawn once."""
    rows = parquet.read_table(data / FILES[part], columns=COLUMNS).to_pylist()
    found = [Chain(row["sequence"], row["v_gene"], (row["pdb"], row["antibody_chains"])) for row in rows]
    random.Random(0).shuffle(found)
    return found


def heavy_and_light(found: list[Chain]) -> list[tuple[str, str]]:
    """The two chains of each antibody of which both are there."""
    of: dict[tuple[str, str], dict[str, str]] = {}
    for one in found:
        of.setdefault(one.complex, {})[one.kind] = one.sequence
    return [(pair["H"], pair["L"]) for pair in of.values() if len(pair) == 2]


def halves(found: list[Chain]) -> list[tuple[str, str]]:
    """Every chain, cut in the middle."""
    return [(one.sequence[: len(one.sequence) // 2], one.sequence[len(one.sequence) // 2 :]) for one in found]


def loops(found: list[Chain], kind: str) -> list[tuple[str, str]]:
    """(the chain without its third loop, the loop), where it is found."""
    cut = []
    for one in found:
        loop = LOOP[kind].search(one.sequence, FRAMEWORK) if one.kind == kind else None
        if loop is not None:
            cut.append((one.sequence[: loop.start()] + one.sequence[loop.end() :], loop.group()))
    return cut


def spaced(sequence: str) -> str:
    """As AntiBERTy reads it."""
    return " ".join(sequence)
