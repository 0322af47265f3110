"""A head in use: batches change nothing, and what cannot be labelled says why."""

import numpy as np
import pytest
import torch
from tests import networks
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

from besag.errors import BesagError
from besag.heads import head as room
from besag.heads.head import Classifier, Tagger
from besag.heads.loading import load_head

TEXTS = ["the cat", "the dogs don't sleep at night", "a mat", "the traveller sleeps"]


def made(kind, family="bert", labels=3):
    config = networks.configuration(family)
    config.num_labels = labels
    auto = AutoModelForTokenClassification if kind is Tagger else AutoModelForSequenceClassification
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return kind(auto.from_config(config), networks.vocabulary(family), "made")


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_a_text_has_the_label_it_has_alone(family, monkeypatch):
    head = made(Classifier, family)
    together = head.predict(TEXTS)
    for text, one in zip(TEXTS, together, strict=True):
        ids = torch.from_numpy(head.vocabulary.encode([text])[0].ids)[None]
        with torch.no_grad():
            probs = torch.softmax(head.model(ids, attention_mask=torch.ones_like(ids)).logits[0], -1).numpy()
        assert one.probs == pytest.approx(probs, abs=1e-5)
        assert (one.label, one.prob) == (head.labels[probs.argmax()], pytest.approx(probs.max(), abs=1e-5))
        assert one.probs.sum() == pytest.approx(1)
    monkeypatch.setattr(room, "BATCH_TOKENS", 1)
    for one, other in zip(together, head.predict(TEXTS), strict=True):
        assert one.probs == pytest.approx(other.probs, abs=1e-5)


def test_a_tagger_labels_each_word():
    head = made(Tagger)
    found = head.predict([TEXTS[3], ["the", "cat"]])
    assert [[one.text for one in own] for own in found] == [["the", "traveller", "sleeps"], ["the", "cat"]]
    [alone] = head.predict(["the traveller sleeps"])
    assert [one.probs for one in alone] == [pytest.approx(one.probs, abs=1e-5) for one in found[0]]


def test_what_is_empty_or_too_long_has_a_status_and_no_label():
    head = made(Classifier)
    good, empty, long = head.predict(["the cat", "  ", "cat " * 100])
    assert (good.status, empty.status, long.status) == ("ok", "empty", "long")
    assert empty.label is None
    assert np.isnan(long.prob)
    assert [one.status for one in made(Tagger).predict(["cat " * 100])[0][:2]] == ["long", "long"]
    with pytest.raises(BesagError, match="are no words"):
        made(Tagger).predict([["the", " "]])


def test_a_saved_head_is_loaded_by_its_kind(tmp_path):
    for kind in (Classifier, Tagger):
        head = made(kind)
        head.model.save_pretrained(tmp_path / kind.__name__)
        head.vocabulary.tokenizer.save_pretrained(tmp_path / kind.__name__)
        again = load_head(tmp_path / kind.__name__, device="cpu")
        assert isinstance(again, kind)
        assert again.labels == head.labels
        assert repr(again).startswith(f"{kind.__name__}('{kind.__name__}', cpu")


def test_what_gives_no_labels_is_refused(tmp_path):
    networks.tiny("bert").save_pretrained(tmp_path)
    networks.vocabulary("bert").tokenizer.save_pretrained(tmp_path)
    with pytest.raises(BesagError, match="'BertForMaskedLM', which gives no labels"):
        load_head(tmp_path)


def test_weights_that_are_missing_are_not_made_up(tmp_path):
    from safetensors.torch import load_file, save_file

    head = made(Classifier)
    head.model.save_pretrained(tmp_path)
    head.vocabulary.tokenizer.save_pretrained(tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    del stored["classifier.weight"]
    save_file(stored, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BesagError, match="it is not whole"):
        load_head(tmp_path)
