"""A model for lm-evaluation-harness: its tasks ask, besag answers, so that multiple choice runs on encoders.

    python -m besag.harness run --model besag --model_args pretrained=small-en,method=chain --tasks …

The harness finds models of other packages by no entry point: this file registers `besag` when it is imported, and run
as a program it hands its arguments to the harness's own command. Knows what the harness asks: the log-likelihood of a
continuation given a context, or of a whole text. Refuses to write texts, and to know tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import besag
from besag.errors import BesagError, quoted, require

log = logging.getLogger(__name__)

_Base: Any = require("lm_eval.api.model", extra="harness").LM
_register: Any = require("lm_eval.api.registry", extra="harness").register_model

NOT_GREEDY = (
    "is_greedy is always False with method=%s, which does not go from left to right: metrics that ask whether a "
    "continuation is the first choice (as lambada's accuracy) mean nothing here; use method=chain"
)
NO_GENERATION = (
    "this task wants text written from left to right until a stop, and a masked model has no law of when to stop: "
    "choose a task of multiple choice or perplexity, or sample with `besag sample`"
)


class Asked(NamedTuple):
    """A continuation as besag scores it: the blanks before it belong to neither side."""

    prefix: str
    blanks: str
    text: str


def asked(context: str, continuation: str) -> Asked:
    """Context and continuation, cut where the harness does: blanks at the seam go with what follows."""
    prefix = context.rstrip()
    rest = context[len(prefix) :] + continuation
    text = rest.lstrip()
    return Asked(prefix, rest[: len(rest) - len(text)], text)


@_register("besag")
class Harnessed(_Base):  # type: ignore[misc] # the harness has no types
    """Any model that besag loads, scored by any of its methods.

    `loglikelihood` is log p(continuation | context) with "chain" or "causal", and the method's own number otherwise;
    `loglikelihood_rolling` is the score of the whole text, windowed where it is longer than the model.
    """

    def __init__(
        self,
        pretrained: str | None = None,
        method: str = "chain",
        device: str | None = None,
        dtype: str | None = None,
        revision: str | None = None,
        batch_tokens: int | None = None,
        batch_size: Any = None,  # the harness says it to every model; besag counts tokens
        max_batch_size: Any = None,
        **options: Any,
    ) -> None:
        super().__init__()
        from besag.scores import METHODS

        self.method = METHODS.find(method)(**options)
        self.lm = besag.load(pretrained, device=device, dtype=dtype, revision=revision, batch_tokens=batch_tokens)
        self._device = self.lm.conditionals.device
        order = getattr(self.method, "order", None)
        self.greedy = self.method.name == "causal" or (self.method.name == "chain" and order == "left-to-right")
        if not self.greedy:
            log.warning(NOT_GREEDY, self.method.name)

    @property
    def tokenizer_name(self) -> str:
        return self.lm.name

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """The score of each continuation given its context, and whether each of its tokens is the first choice."""
        found: dict[int, tuple[float, bool]] = {}
        seams: dict[str, dict[int, Asked]] = {}
        for number, request in enumerate(requests):
            one = asked(*request.args)
            if not one.text:
                raise BesagError(f"the continuation {quoted(request.args[1])} holds nothing that could be scored")
            seams.setdefault(one.blanks, {})[number] = one
        for blanks, group in seams.items():
            texts, prefix = ([getattr(one, part) for one in group.values()] for part in ("text", "prefix"))
            scores = self.lm.score(
                texts, self.method, prefix=prefix, separator=blanks, rank=self.greedy, strict=True
            )  # a row without a number would be counted as one
            for number, score in zip(group, scores, strict=True):
                first = self.greedy and score.rank is not None and bool((score.rank == 1).all())
                found[number] = score.total, first
        for number, request in enumerate(requests):
            self.cache_hook.add_partial("loglikelihood", request.args, found[number])
        return [found[number] for number in range(len(requests))]

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        """The score of each whole text."""
        totals = [
            score.total for score in self.lm.score([request.args[0] for request in requests], self.method, strict=True)
        ]
        for request, total in zip(requests, totals, strict=True):
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, total)
        return totals

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """Refused: see `NO_GENERATION`."""
        raise BesagError(NO_GENERATION)


def main() -> None:
    """The harness's own command, with `--model besag` among its models."""
    require("lm_eval.__main__", extra="harness").cli_evaluate()


if __name__ == "__main__":
    main()
