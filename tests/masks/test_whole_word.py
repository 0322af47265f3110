"""Words are the tokenizer's own for every family; a peer's are not."""

import numpy as np
import pytest
from scipy.stats import chisquare
from tests import tokenizers
from tests.masks.example_passages import of_texts, plain, repeated
from transformers import DataCollatorForLanguageModeling

from besag.masks import law
from besag.vocabulary import Vocabulary

TEXTS = (*tokenizers.SENTENCES, "She didn't: (don't), café-naïve 12,34…", "L A G VSE RTI")


@pytest.mark.parametrize("family", tokenizers.FAMILIES)
def test_a_word_is_hidden_whole_or_not_at_all(family):
    vocabulary = Vocabulary(tokenizers.build(family))
    passages = of_texts(vocabulary, TEXTS * 20)
    split, several = 0, 0
    for rate in (0.2, 0.5):
        hidden = law("whole_word").choose(passages, np.full(len(passages.draw), rate), 0.0, seed=3)
        assert hidden.any()
        assert not (hidden & ~passages.free).any()
        same = (passages.word[1:] == passages.word[:-1]) & (passages.row[1:] == passages.row[:-1]) & passages.free[1:]
        split += int((hidden[1:] != hidden[:-1])[same].sum())
        several += int((hidden[1:] & hidden[:-1])[same].sum())
    assert split == 0
    assert several > 0 or family == "no-specials"  # it has only words of one token


def test_words_are_equally_likely_whatever_their_length():
    """Budget for any one word, and no more than the longest: the first turn decides."""
    word = np.array([0, 0, 0, 1, 2, 2, 3])
    passages = plain(7)._replace(word=word)
    hidden = law("whole_word").choose(repeated(passages, 8000), np.full(8000, 3 / 7), 0.0, seed=2).reshape(-1, 7)
    # orders of the four words, each of chance 1/24, and what fits into three tokens after the first
    counts = [hidden[:, 0].sum(), (~hidden[:, 0]).sum()]
    assert chisquare(counts, [8000 / 4, 8000 * 3 / 4]).pvalue > 1e-3  # the long word fits only when it comes first
    assert chisquare([hidden[:, 3].sum(), hidden[:, 6].sum()]).pvalue > 1e-3


@pytest.mark.filterwarnings("ignore:Random token replacement")
def test_where_the_collator_of_transformers_is_wrong():
    """It finds words by gaps between offsets. ModernBERT's offsets hold the space before a word: no gap, one word."""
    tokenizer = tokenizers.build("bytelevel-untrimmed")
    theirs = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.3, whole_word_mask=True, seed=0)
    told = {"return_offsets_mapping": True, "return_special_tokens_mask": True, "padding": "max_length"}
    batch = theirs([tokenizer(text, max_length=70, **told) for text in TEXTS[:6]] * 20)
    passages = of_texts(Vocabulary(tokenizer), TEXTS[:6] * 20)
    hidden = (batch["labels"] != -100).numpy()[batch["attention_mask"].numpy() > 0]
    share = np.bincount(passages.row[hidden], minlength=120) / passages.sizes
    assert set(np.round(share, 1).tolist()) <= {0.0, 0.8, 0.9, 1.0}  # nearly everything or nothing, and never 0.3

    ours = law("whole_word").choose(passages, np.full(120, 0.3), 0.0, seed=0)
    share = np.bincount(passages.row[ours], minlength=120) / passages.sizes
    assert share.min() > 0.2
    assert share.max() < 0.45  # three of seven tokens
