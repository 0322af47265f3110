"""Mutations as biologists write them: A23G, and A23G:C45D where several go together.

    A23G    residue 23 of the wild type is A, and becomes G
    number = place + offset        place: in the sequence, counted from 1

Knows letters and numbers, and holds every mutation to the wild type that it names. Refuses to know models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from besag.errors import BesagError, quoted

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
SEPARATORS = re.compile("[:,;]")
MUTATION = re.compile(r"([A-Z])(-?\d{1,7})([A-Z*])")
OFFERED = 3  # offsets that would fit, in a message


class Mutation(NamedTuple):
    wild: str
    number: int  # as it is written
    mutant: str


@dataclass(frozen=True, slots=True)
class Variant:
    """Some residues of a sequence replaced; in the order of the sequence, whatever the order they were written in."""

    name: str
    places: tuple[int, ...]  # in the sequence, from 0
    wild: str  # a residue a place
    mutant: str

    def of(self, sequence: str) -> str:
        """The sequence with it."""
        letters = list(sequence)
        for place, residue in zip(self.places, self.mutant, strict=True):
            letters[place] = residue
        return "".join(letters)

    def undone(self, sequence: str) -> str:
        """The wild type of a sequence that has it."""
        return Variant(self.name, self.places, self.mutant, self.wild).of(sequence)


def read_mutations(written: str) -> tuple[Mutation, ...]:
    """The mutations of one variant.

    >>> read_mutations("A23G:C45D")
    (Mutation(wild='A', number=23, mutant='G'), Mutation(wild='C', number=45, mutant='D'))
    """
    found = []
    for part in SEPARATORS.split(written):
        match = MUTATION.fullmatch(part.strip())
        if match is None:
            raise BesagError(
                f"{quoted(part.strip())} in the variant {quoted(written)} is no mutation: write the residue of the "
                "wild type, its number and the new residue, as in A23G, and A23G:C45D for two together"
            )
        wild, number, mutant = match.groups()
        if mutant not in RESIDUES:
            what = "a stop, not a residue" if mutant == "*" else f"none of the 20 residues {RESIDUES}"
            raise BesagError(f"the mutation {quoted(part.strip())} ends in {mutant!r}, which is {what}: leave it out")
        found.append(Mutation(wild, int(number), mutant))
    numbers = [one.number for one in found]
    for number in numbers:
        if numbers.count(number) > 1:
            raise BesagError(f"the variant {quoted(written)} changes residue {number} twice: once is enough")
    return tuple(sorted(found, key=lambda one: one.number))


def variants_of(sequence: str, written: Sequence[str], offset: int = 0) -> list[Variant]:
    """Variants, each held to the wild type: what does not stand where it should is refused, with both residues."""
    read = [read_mutations(one) for one in written]
    for name, mutations in zip(written, read, strict=True):
        for one in mutations:
            place = one.number - offset - 1
            inside = 0 <= place < len(sequence)
            if inside and sequence[place] == one.wild:
                continue
            stands = f"has {sequence[place]!r} there" if inside else f"ends before: it has {len(sequence):,} residues"
            if place < 0:
                stands = f"begins with residue {offset + 1}"
            raise BesagError(
                f"the variant {quoted(name)} says that residue {one.number} is {one.wild!r}, and the wild type {stands}"
                f" (offset {offset}, so residue {offset + 1} comes first).{_that_fit(sequence, read, offset)}"
            )
    return [
        Variant(
            name,
            tuple(one.number - offset - 1 for one in mutations),
            "".join(one.wild for one in mutations),
            "".join(one.mutant for one in mutations),
        )
        for name, mutations in zip(written, read, strict=True)
    ]


def wild_type_of(written: Iterable[str]) -> tuple[str, int]:
    """The stretch of the wild type that variants name, and its offset. Every residue of it must be named by one."""
    named: dict[int, tuple[str, str]] = {}
    for name in written:
        for one in read_mutations(name):
            other, said = named.setdefault(one.number, (one.wild, name))
            if other != one.wild:
                raise BesagError(
                    f"residue {one.number} is {other!r} in the variant {quoted(said)} and {one.wild!r} in "
                    f"{quoted(name)}: of one wild type both cannot be"
                )
    if not named:
        raise BesagError("no variant is given, so none says what the wild type is")
    first, last = min(named), max(named)
    missing = [number for number in range(first, last + 1) if number not in named]
    if missing:
        raise BesagError(
            f"no variant names residue {missing[0]} ({len(missing):,} of the residues {first} to {last} are missing), "
            "so the wild type must be given: as a sequence, a FASTA file or a column"
        )
    return "".join(named[number][0] for number in range(first, last + 1)), first - 1


def _that_fit(sequence: str, read: Sequence[Sequence[Mutation]], said: int) -> str:
    """The offsets by which every variant would fit, as an end of a message."""
    named = {(one.number, one.wild) for mutations in read for one in mutations}
    first, wild = min(named)
    fit = [
        offset
        for place, residue in enumerate(sequence)
        if residue == wild and (offset := first - place - 1) != said and _fits(sequence, named, offset)
    ]
    if not fit:
        return " No offset makes all variants fit: is it another sequence?"
    offered = ", ".join(map(str, sorted(fit, key=abs)[:OFFERED]))
    return f" All variants fit with offset {offered}."


def _fits(sequence: str, named: set[tuple[int, str]], offset: int) -> bool:
    places = [(number - offset - 1, wild) for number, wild in named]
    return all(0 <= place < len(sequence) and sequence[place] == wild for place, wild in places)
