"""One token for each residue, side by side or spaced; FASTA."""

import numpy as np
import pytest
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError
from besag.variants.mutations import RESIDUES
from besag.variants.protein import Protein, only_sequence, plain, read_fasta


def test_residues_side_by_side():
    esm = Transformer(tiny("esm"), vocabulary("esm"), "esm")
    protein = Protein.of(esm, "MK TA\nY*")
    assert (protein.sequence, protein.between) == ("MKTAY", "")
    assert [esm.vocabulary.token(id) for id in protein.ids] == list(RESIDUES)
    assert protein.written("MRTAY") == "MRTAY"


def test_residues_with_spaces():
    table = besag.Table(np.ones((20, 20)), symbols=list(RESIDUES))
    protein = Protein.of(table, "MK")
    assert protein.encoded.text == protein.written("MK") == "M K"
    assert protein.column("C") == 1


def test_a_model_of_words_is_refused():
    bert = Transformer(tiny("bert"), vocabulary("bert"), "bert")
    with pytest.raises(BesagError, match="'bert' does not read 'MKTAY' as a token for each of its 5 residues"):
        Protein.of(bert, "MKTAY")


@pytest.mark.parametrize(("given", "said"), [("", "is empty"), ("mkt", "holds 'm'"), ("MK-T", "holds '-'")])
def test_what_is_no_sequence(given, said):
    with pytest.raises(BesagError, match=said):
        plain(given)


def test_fasta(tmp_path):
    file = tmp_path / "wt.fasta"
    file.write_text(">one heavy chain\nMKT\nAYI\n\n>two\nGG*\n")
    assert read_fasta(str(file)) == [("one heavy chain", "MKTAYI"), ("two", "GG")]
    with pytest.raises(BesagError, match="2 sequences"):
        only_sequence(str(file))
    file.write_text(">one\nMKT\n")
    assert only_sequence(str(file)) == "MKT"
    for wrong, said in (("MKT\n", "begins with >"), ("\n", "holds no sequence"), (">one\n", "is empty")):
        file.write_text(wrong)
        with pytest.raises(BesagError, match=said):
            read_fasta(str(file))
