"""Who is raced: besag, lm-pub-quiz and minicons behind one call, each at its own best.

Knows how each library is asked for the log-probability of every token of every sentence; knows nothing of timing.
The peers run the forward pass of the model object that besag runs, in the same process.

- `lm-pub-quiz`: its own call, `score_statements` on the whole list, which pads every masked copy to the longest one.
- `lm-pub-quiz, one by one`: the same call for each sentence alone, which pads nothing. The kindest use of it.
- `minicons`: `compute_stats` on `prepare_text`. It calls `batch_encode_plus`, which transformers 5 no longer has, so
  the tokenizer it is given gets that one method back, here only. It runs all masked copies of a call in one forward
  pass, so it is given a few sentences at a time.

A peer's batch size is the fastest of `BATCH_SIZES` on a sample (see `tuned`), among those whose logits stay under
`LOGITS_LIMIT`: full logits of a wide vocabulary are what ends a run for want of memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import besag

Numbers = list[np.ndarray]  # one array a sentence: the log-probability of each token
Scorer = Callable[[Sequence[str], str], Numbers]  # texts, metric ("original" or "within_word_l2r")

BATCH_SIZES = (4, 16, 64)
LOGITS_LIMIT = 3 * 2**30  # bytes


def _besag(model: Any, tokenizer: Any, batch_size: int) -> Scorer:
    lm = besag.load((model, tokenizer), progress=False)

    def score(texts: Sequence[str], metric: str) -> Numbers:
        return [result.log_probs for result in lm.score(list(texts), method=metric)]

    return score


def _lm_pub_quiz(model: Any, tokenizer: Any, batch_size: int) -> Scorer:
    from lm_pub_quiz import Evaluator

    def score(texts: Sequence[str], metric: str) -> Numbers:
        evaluator = Evaluator.from_model(model, tokenizer=tokenizer, model_type="MLM", pll_metric=metric, device="cpu")
        statements, masks = evaluator.encode(texts, [{} for _ in texts])
        scores = evaluator.score_statements(statements, scoring_masks=masks, batch_size=batch_size)
        return [np.array(tokens) for tokens in scores]

    return score


def _lm_pub_quiz_one_by_one(model: Any, tokenizer: Any, batch_size: int) -> Scorer:
    one = _lm_pub_quiz(model, tokenizer, batch_size)
    return lambda texts, metric: [one([text], metric)[0] for text in texts]


def _minicons(model: Any, tokenizer: Any, batch_size: int) -> Scorer:
    from minicons.scorer import MaskedLMScorer

    class Shimmed:
        """The tokenizer, with the method that transformers 5 dropped."""

        def batch_encode_plus(self, texts: Sequence[str], **options: Any) -> Any:
            return tokenizer(texts, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizer, name)

    scorer = MaskedLMScorer(model, device="cpu", tokenizer=Shimmed())

    def score(texts: Sequence[str], metric: str) -> Numbers:
        found: Numbers = []
        for start in range(0, len(texts), batch_size):
            prepared = scorer.prepare_text(list(texts[start : start + batch_size]), PLL_metric=metric)
            found.extend(each.numpy() for each in scorer.compute_stats(prepared, return_tensors=True))
        return found

    return score


CONTENDERS: dict[str, Callable[[Any, Any, int], Scorer]] = {
    "besag": _besag,
    "lm-pub-quiz": _lm_pub_quiz,
    "lm-pub-quiz, one by one": _lm_pub_quiz_one_by_one,
    "minicons": _minicons,
}


def tuned(name: str, model: Any, tokenizer: Any, texts: Sequence[str]) -> int | None:
    """The batch size at which a contender is fastest on sentences of middle length; None where none is affordable.

    besag finds its own and is not tuned.
    """
    if name == "besag":
        return 0
    lengths = [len(ids) for ids in tokenizer(list(texts))["input_ids"]]
    third = len(texts) // 3
    middle = [texts[i] for i in np.argsort(lengths)[third : 2 * third + 1][:6]]
    return min(
        affordable(name, max(lengths), model.config.vocab_size),
        key=lambda size: _seconds(CONTENDERS[name](model, tokenizer, size), middle),
        default=None,
    )


def affordable(name: str, longest: int, width: int) -> list[int]:
    """The batch sizes whose full logits (copies × longest × V, float32) stay under the limit.

    minicons counts sentences, of which each brings as many copies as it has tokens.
    """
    copies = {size: size * longest for size in (1, 4)} if name == "minicons" else {size: size for size in BATCH_SIZES}
    return [size for size, each in copies.items() if 4 * each * longest * width <= LOGITS_LIMIT]


def _seconds(score: Scorer, texts: Sequence[str]) -> float:
    start = time.perf_counter()
    score(texts, "original")
    return time.perf_counter() - start
