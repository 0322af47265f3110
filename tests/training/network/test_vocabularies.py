"""Another vocabulary: old logits untouched, new rows the means of their pieces, and what cannot be done refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests import networks, tokenizers

import besag
from besag.errors import BesagError
from besag.training import recipe
from besag.training.network import vocabularies
from besag.training.network.networks import network
from besag.training.tokenizer.extending import extended
from besag.vocabulary import Vocabulary

TEXTS = ["The travellers traveller's souvenirs bark at the casino."] * 3
FAMILIES = ("bert", "roberta", "modernbert", "electra", "albert", "distilbert", "deberta-v2", "mpnet", "besag")


def grown(family: str, size: int = 4) -> tuple[Vocabulary, Vocabulary]:
    old = networks.vocabulary(family)
    return old, Vocabulary(extended(old.tokenizer, TEXTS, size))


@torch.no_grad()
def logits(model: Any, ids: list[int]) -> torch.Tensor:
    return model.eval()(input_ids=torch.tensor([ids])).logits[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_an_extension_leaves_old_logits_and_begins_new_ones_with_their_pieces(family: str) -> None:
    old, new = grown(family)
    model = networks.tiny(family)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                weight.normal_()
    [encoded] = old.encode(["The cats sleep on the mat."])
    before = logits(model, encoded.ids.tolist())
    vocabularies.give(model, old, new, extended=True)
    after = logits(model, encoded.ids.tolist())
    assert new.size > old.size
    assert after.shape[1] == model.config.vocab_size >= new.size
    torch.testing.assert_close(after[:, : old.size], before[:, : old.size])
    for number in range(old.size, new.size):
        parts = vocabularies.pieces(old, new)[number]
        assert len(parts) > 1
        torch.testing.assert_close(after[:, number], before[:, parts].mean(1), rtol=1e-4, atol=1e-4)
    saved = model.get_input_embeddings().weight
    if family != "electra":  # whose table is narrower than its head is tied to
        assert model.get_output_embeddings().weight is saved or not torch.equal(saved, torch.zeros_like(saved))


def test_the_new_token_is_read_and_asked_after_saving(tmp_path: Path) -> None:
    old, new = grown("bert")
    model = vocabularies.give(networks.tiny("bert"), old, new, extended=True)
    model.save_pretrained(tmp_path)
    new.tokenizer.save_pretrained(tmp_path)
    lm = besag.load(tmp_path, device="cpu")
    assert (
        lm.score("the travellers sleep").tokens
        != besag.load((networks.tiny("bert"), old.tokenizer), device="cpu").score("the travellers sleep").tokens
    )
    assert lm.score("the travellers sleep").status == "ok"


def test_an_exchange_keeps_shared_tokens_and_special_ones_by_their_use() -> None:
    old, new = networks.vocabulary("bert"), networks.vocabulary("modernbert")  # word pieces, then bytes
    model = networks.tiny("bert")
    table = model.get_input_embeddings().weight.detach().clone()
    vocabularies.give(model, old, new, extended=False)
    now = model.get_input_embeddings().weight
    assert now.shape[0] == new.size
    torch.testing.assert_close(now[new.mask_id], table[old.mask_id])
    torch.testing.assert_close(now[new.pad_id], table[old.pad_id])
    word = new.tokenizer.convert_tokens_to_ids("Ġcats") if "Ġcats" in new.tokenizer.get_vocab() else None
    if word is not None:
        parts = vocabularies.pieces(old, new)[word]
        torch.testing.assert_close(now[word], table[parts].mean(0))
    assert logits(model, [new.mask_id, 7, 8]).shape == (3, new.size)


def test_rows_by_hand() -> None:
    old = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 8.0]])
    found = vocabularies.rows(old, [[1], [0, 2], []])
    assert found.tolist() == [[2.0, 3.0], [2.0, 4.5], [2.0, 4.0]]


def test_another_place_of_padding_is_refused_where_places_hang_on_it() -> None:
    old, new = networks.vocabulary("roberta"), networks.vocabulary("bert")
    assert old.pad_id != new.pad_id
    with pytest.raises(BesagError, match="numbers its places from the id of padding"):
        vocabularies.give(networks.tiny("roberta"), old, new, extended=False)


def test_an_extension_that_moves_a_token_is_refused() -> None:
    with pytest.raises(BesagError, match="keeps all old tokens, but token"):
        vocabularies.give(
            networks.tiny("bert"), networks.vocabulary("bert"), networks.vocabulary("modernbert"), extended=True
        )


def wanted(folder: Path, **model: str) -> recipe.Recipe:
    table = {
        "data": {"train": ["x"], "max_length": 16}, "tokenizer": {"path": str(folder / "other")},
        "model": {"start": str(folder / "start"), **model}, "schedule": {"steps": 1},
    }  # fmt: skip
    return recipe.of_table(table, "test")


def test_an_unrelated_tokenizer_is_refused_unless_it_is_wanted(tmp_path: Path) -> None:
    start, other = tmp_path / "start", tmp_path / "other"
    networks.tiny("bert").save_pretrained(start)
    networks.vocabulary("bert").tokenizer.save_pretrained(start)
    cased = tokenizers.build("wordpiece-cased")
    cased.save_pretrained(other)
    with pytest.raises(BesagError, match=r"is not the tokenizer of model\.start"):
        network(wanted(tmp_path), Vocabulary(cased))
    made = network(wanted(tmp_path, vocabulary="exchanged"), Vocabulary(cased))
    assert made.config.vocab_size == len(cased)


def test_a_vocabulary_is_changed_of_a_model_that_is_there() -> None:
    with pytest.raises(BesagError, match=r"needs tokenizer\.path"):
        recipe.of_table(
            {"data": {"train": ["x"]}, "model": {"start": "small-en", "vocabulary": "extended"},
             "schedule": {"steps": 1}}, "test",
        )  # fmt: skip
