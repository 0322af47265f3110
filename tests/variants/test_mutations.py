"""Mutations as they are written, and the wild type they are held to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import BesagError
from besag.variants.mutations import RESIDUES, Mutation, read_mutations, variants_of, wild_type_of

SEQUENCE = "MKTAYIAKQR"


@pytest.mark.parametrize("written", ["A4G:K2R", "K2R,A4G", "K2R;A4G", " K2R : A4G "])
def test_separators_and_order_do_not_matter(written):
    assert read_mutations(written) == (Mutation("K", 2, "R"), Mutation("A", 4, "G"))
    [variant] = variants_of(SEQUENCE, [written])
    assert (variant.places, variant.wild, variant.mutant) == ((1, 3), "KA", "RG")
    assert variant.of(SEQUENCE) == "MRTGYIAKQR"
    assert variant.undone("MRTGYIAKQR") == SEQUENCE


def test_an_offset_is_what_is_added_to_a_place():
    [variant] = variants_of(SEQUENCE, ["K126R"], offset=124)
    assert variant.places == (1,)


@given(st.data())
def test_a_variant_and_back(data):
    sequence = data.draw(st.text(RESIDUES, min_size=1, max_size=12))
    offset = data.draw(st.integers(-20, 200))
    places = data.draw(st.lists(st.integers(0, len(sequence) - 1), min_size=1, max_size=3, unique=True))
    mutants = data.draw(st.text(RESIDUES, min_size=len(places), max_size=len(places)))
    written = ":".join(f"{sequence[p]}{p + 1 + offset}{m}" for p, m in zip(places, mutants, strict=True))
    [variant] = variants_of(sequence, [written], offset)
    assert variant.undone(variant.of(sequence)) == sequence
    assert dict(zip(variant.places, variant.mutant, strict=True)) == dict(zip(places, mutants, strict=True))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("K4G", "'K4G' says that residue 4 is 'K', and the wild type has 'A' there"),
        ("A14G", "the wild type ends before: it has 10 residues"),
        ("M0G", "begins with residue 1"),
        ("A4*", "'*', which is a stop"),
        ("A4B", "'B', which is none of the 20 residues"),
        ("A4", "'A4' in the variant 'A4' is no mutation"),
        ("", "is no mutation"),
        ("a4g", "as in A23G"),
        ("A4G:A4C", "changes residue 4 twice"),
    ],
)
def test_what_is_wrong_is_quoted(written, said):
    with pytest.raises(BesagError) as error:
        variants_of(SEQUENCE, [written])
    assert said in str(error.value)


def test_an_offset_that_fits_is_offered():
    with pytest.raises(BesagError, match="All variants fit with offset 100"):
        variants_of(SEQUENCE, ["K102R", "Y105F"])
    with pytest.raises(BesagError, match="No offset makes all variants fit"):
        variants_of(SEQUENCE, ["K102R", "W105F"])


def test_the_wild_type_that_variants_name():
    assert wild_type_of(["K12R", "T13A:M11V", "K12A"]) == ("MKT", 10)
    with pytest.raises(BesagError, match="no variant names residue 12"):
        wild_type_of(["M11V", "T13A"])
    with pytest.raises(BesagError, match="'K' in the variant 'K12R' and 'R' in 'R12A'"):
        wild_type_of(["K12R", "R12A"])
    with pytest.raises(BesagError, match="no variant is given"):
        wild_type_of([])
