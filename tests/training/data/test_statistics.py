"""Counting a corpus for laws of masks outside of a run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests import tokenizers
from tests.networks import tiny
from torch.utils.data import DataLoader

import besag
from besag.errors import BesagError
from besag.masks.law import LAWS, MaskLaw

TEXTS = list(tokenizers.SENTENCES)
LEARNS = sorted(name for name in LAWS if LAWS[name].prepare is not MaskLaw.prepare)


def test_texts_and_their_ids_are_counted_alike() -> None:
    tokenizer = tokenizers.build("wordpiece-uncased")
    ids = [tokenizer(text)["input_ids"] for text in TEXTS]
    by_text, by_ids = besag.masking_statistics(iter(TEXTS), tokenizer), besag.masking_statistics(ids, tokenizer)
    np.testing.assert_array_equal(by_text.counts, by_ids.counts)
    assert by_text.counts[list(by_text.special)].sum() == 0
    for _ in range(2):  # it can be gone through anew
        told, again = list(by_text.documents), list(by_ids.documents)
        assert [one.tolist() for one in told] == [one.tolist() for one in again]
    inner = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in TEXTS]
    assert [one.tolist() for one in told] == inner
    assert by_text.tokens[inner[0][0]] == tokenizer.convert_ids_to_tokens(inner[0][0])


@pytest.mark.parametrize("name", LEARNS)
def test_every_law_that_wants_a_corpus_trains_a_network_outside_of_a_run(name: str) -> None:
    """A loop as a Trainer's: batches of the collator, a loss, a step."""
    tokenizer = tokenizers.build("wordpiece-uncased")
    with pytest.raises(BesagError, match=f"'{name}' takes a table from the corpus: give statistics=besag.masking_stat"):
        besag.MaskingCollator(tokenizer, name)
    statistics = besag.masking_statistics(TEXTS * 20, tokenizer)
    collator = besag.MaskingCollator(tokenizer, name, 0.3, statistics=statistics, seed=1)
    model = tiny("bert", vocab_size=len(tokenizer))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in DataLoader([dict(tokenizer(text)) for text in TEXTS], batch_size=3, collate_fn=collator):
        assert (batch["labels"] != -100).any()
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        assert torch.isfinite(loss)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ("one text", "give many of them"),
        (5, "give many of them"),
        ([5], "text 1 is 5: give a text, or its token ids"),
        ([None], "text 1 is None"),
        (["a", [1.5]], r"text 2 is \[1.5\]"),
        ([[10**6]], "text 1 has the token id 1000000"),
        ([[[1]]], "text 1 is"),
        ([], "not one token"),
        (["", []], "not one token"),
    ],
)
def test_what_is_no_corpus_is_told(texts: object, said: str) -> None:
    with pytest.raises(BesagError, match=said):
        besag.masking_statistics(texts, tokenizers.build("wordpiece-uncased"))
    with pytest.raises(BesagError, match="give a tokenizer of transformers"):
        besag.masking_statistics(["a"], "bert")
