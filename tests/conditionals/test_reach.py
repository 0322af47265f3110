"""Tokenizers that do not reach their vocabulary are told from those that do."""

from __future__ import annotations

import warnings

import pytest
from tests import tokenizers
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.loading import describe
from besag.conditionals.reach import out_of_reach, tried
from besag.vocabulary import Vocabulary

RESIDUES = [*"LAGVSERTIDPKQNFYMHWCXBUZO"]


@pytest.mark.parametrize("family", sorted(tokenizers.BUILDERS))
def test_tokenizers_as_they_should_be(family):
    words = Vocabulary(tokenizers.build(family))
    assert out_of_reach(words) == ""
    assert len(tried(words).back) >= len(tried(words).tried) / 2


def test_other_tokenizers_as_they_should_be():
    assert out_of_reach(besag.load(device="cpu").vocabulary) == ""
    assert out_of_reach(vocabulary("gpt2")) == ""
    assert out_of_reach(Vocabulary.of_symbols(["A", "B", "C"])) == ""
    assert out_of_reach(Vocabulary.of_symbols(RESIDUES)) == ""


@pytest.fixture
def residues(tmp_path):
    """A network over residues, with a vocab.txt and nothing that says how text is read: word pieces in lower case."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *RESIDUES, ".", "-"]
    tiny("bert", vocab_size=len(tokens)).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(tokens))
    return tmp_path


def test_residues_in_lower_case_are_told(residues):
    with pytest.warns(UserWarning, match="does not reach its vocabulary: of 25 tokens with capitals .* 0 were read"):
        besag.load(residues, device="cpu")
    facts = describe(residues)
    assert not facts["usable"]
    assert "it seems to lower-case" in facts["why_not"]


def test_residues_as_they_are_written_are_reached(residues):
    (residues / "tokenizer_config.json").write_text('{"do_lower_case": false, "tokenizer_class": "BertTokenizer"}')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        besag.load(residues, device="cpu")
    assert describe(residues)["usable"]


def test_a_vocabulary_that_text_never_becomes(residues):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"a-{number}" for number in range(27))]
    (residues / "vocab.txt").write_text("\n".join(tokens))
    assert "it and its vocabulary do not belong together" in describe(residues)["why_not"]
