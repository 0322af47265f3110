"""An oracle that nobody here wrote: lm-pub-quiz, the one peer that runs with transformers 5."""

import numpy as np
import pytest
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.transformer import Transformer
from besag.language_model import LanguageModel

peer = pytest.importorskip("lm_pub_quiz", reason="lm-pub-quiz, an independent scorer, is not installed")

TEXTS = ["The man lost the souvenir.", "Dogs sleep, don't they?", "Unbelievable casino mats!", "Yes."]


@pytest.fixture(scope="module", params=["embedded", "bert", "roberta", "modernbert", "xlm-roberta"])
def lm(request):
    if request.param == "embedded":
        return besag.load()
    return LanguageModel(Transformer(tiny(request.param), vocabulary(request.param), request.param))


@pytest.mark.parametrize("metric", ["original", "within_word_l2r"])
def test_token_by_token(lm, metric):
    evaluator = peer.Evaluator.from_model(
        lm.model, tokenizer=lm.tokenizer, model_type="MLM", pll_metric=metric, device="cpu"
    )
    for text, score in zip(TEXTS, lm.score(TEXTS, method=metric), strict=True):
        statements, masks = evaluator.encode([text], [{}])
        [theirs] = evaluator.score_statements(statements, scoring_masks=masks, batch_size=8)
        np.testing.assert_allclose(score.log_probs, theirs, atol=1e-4)
