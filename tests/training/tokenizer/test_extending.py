"""An extended tokenizer: old ids as they were, words whole, other text cut as before, and it survives a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import networks, tokenizers

from besag import models
from besag.conditionals import loading
from besag.errors import BesagError
from besag.training.tokenizer.extending import extended
from besag.training.tokenizer.saving import save_whole
from besag.vocabulary import Vocabulary

TEXTS = ["The travellers met travellers; travellers' casino, casino.", "A casino of travellers."]


@pytest.mark.parametrize("kind", ["wordpiece-uncased", "bytelevel-trimmed", "bytelevel-untrimmed"])
def test_words_are_whole_and_all_else_is_as_before(kind: str) -> None:
    before = tokenizers.build(kind)
    after = extended(before, TEXTS, 8)
    old, new = before.get_vocab(), after.get_vocab()
    assert all(new[token] == number for token, number in old.items())
    assert sorted(set(new.values()) - set(old.values())) == list(range(len(before), len(after)))
    assert len(after.tokenize("some travellers")) < len(before.tokenize("some travellers"))
    assert after.tokenize("The cats sleep on the mat.") == before.tokenize("The cats sleep on the mat.")
    ids = after("the travellers sleep", add_special_tokens=False)["input_ids"]
    assert after.decode(ids).strip() == "the travellers sleep"
    assert len(before) == len(old)  # the old one is left alone


def test_the_embedded_models_tokenizer_grows_and_comes_back_from_a_folder(tmp_path: Path) -> None:
    before = loading.read_vocabulary(models.path(), models.EMBEDDED).tokenizer
    after = extended(before, ["The zxqvtrak and the zxqvtrak meet a zxqvtrak."], 1)
    save_whole(after, tmp_path / "grown")
    again = loading.read_vocabulary(tmp_path / "grown", "grown")
    [encoded] = again.encode(["A zxqvtrak sleeps."])
    assert sum("zxqvtrak" in token for token in encoded.tokens) == 1
    [old] = Vocabulary(before).encode(["A cat sleeps."])
    [new] = again.encode(["A cat sleeps."])
    assert old.ids.tolist() == new.ids.tolist()


def test_words_that_save_most_come_first() -> None:
    before = tokenizers.build("wordpiece-uncased")
    [first] = set(extended(before, TEXTS, 1).get_vocab()) - set(before.get_vocab())
    assert first == "travellers"


def test_what_cannot_grow_is_refused() -> None:
    with pytest.raises(BesagError, match="cannot be extended"):
        extended(networks.vocabulary("esm").tokenizer, TEXTS, 4)
    with pytest.raises(BesagError, match="nothing to add"):
        extended(tokenizers.build("wordpiece-uncased"), ["the cat"], 4)
