"""A protein as a masked model reads it: one token for each residue, side by side (ESM) or spaced (AntiBERTy).

Knows sequences and tokenizers. Refuses a sequence whose residues are no tokens: a score of unknown tokens says nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from besag.arrays import Ints
from besag.conditionals.contract import Conditionals
from besag.errors import BesagError, quoted
from besag.files.lines import lines_of
from besag.variants.mutations import RESIDUES
from besag.vocabulary import Encoded, Vocabulary


@dataclass(frozen=True)
class Protein:
    sequence: str
    encoded: Encoded
    between: str  # what stands between two residues
    ids: Ints  # (20,) the tokens of the residues

    @classmethod
    def of(cls, conditionals: Conditionals, sequence: str) -> Protein:
        sequence, vocabulary = plain(sequence), conditionals.vocabulary
        between = " " if vocabulary.spaced else ""
        [encoded, alphabet] = vocabulary.encode([between.join(one) for one in (sequence, RESIDUES)])
        if not _reads(vocabulary, encoded, sequence) or not _reads(vocabulary, alphabet, RESIDUES):
            raise BesagError(
                f"{conditionals.name!r} does not read {quoted(sequence)} as a token for each of its {len(sequence):,} "
                f"residues (it reads {' '.join(encoded.tokens[:12])} …): this needs a model of proteins"
            )
        return cls(sequence, encoded, between, alphabet.ids[alphabet.places])

    def written(self, sequence: str) -> str:
        """Another sequence, as the model reads it."""
        return self.between.join(sequence)

    def column(self, residue: str) -> int:
        """Of one of the 20 residues."""
        return RESIDUES.index(residue)


def plain(sequence: str) -> str:
    """A sequence without white space and the mark of its end; what else is no letter is refused."""
    letters = "".join(sequence.split()).removesuffix("*")
    strange = re.search("[^A-Z]", letters)
    if not letters or strange:
        what = "is empty" if not letters else f"holds {strange.group()!r}" if strange else ""
        raise BesagError(f"the sequence {quoted(sequence)} {what}: give residues in capitals, as in MKTAYIAK")
    return letters


def read_fasta(path: str) -> list[tuple[str, str]]:
    """(name, sequence) of each record of a FASTA file."""
    records: list[tuple[str, list[str]]] = []
    for number, line in lines_of(path):
        if line.startswith(">"):
            records.append((line[1:].strip(), []))
        elif line.strip() and not records:
            raise BesagError(f"{path}, line {number}: a FASTA file begins with > and a name, not with {quoted(line)}")
        elif line.strip():
            records[-1][1].append(line.strip())
    if not records:
        raise BesagError(f"{path} holds no sequence: FASTA has a line with > and a name, and residues below it")
    return [(name, plain("".join(parts))) for name, parts in records]


def only_sequence(path: str) -> str:
    """Of a FASTA file of one record."""
    records = read_fasta(path)
    if len(records) > 1:
        names = ", ".join(quoted(name) for name, _ in records[:3])
        raise BesagError(f"{path} holds {len(records):,} sequences ({names} …): which is the wild type? Give it alone")
    return records[0][1]


def _reads(vocabulary: Vocabulary, encoded: Encoded, sequence: str) -> bool:
    """Is every residue a token of its own, and known?"""
    tokens = [encoded.tokens[place].strip("▁Ġ") for place in encoded.places]
    known = ~np.isin(encoded.ids[encoded.places], [-1 if vocabulary.unknown_id is None else vocabulary.unknown_id])
    return tokens == list(sequence) and bool(np.all(known))
