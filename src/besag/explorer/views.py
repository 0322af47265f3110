"""What the views of the page ask: verbs of `lm`, and their results as JSON that a picture can be drawn from.

Knows results and how they name their parts. Refuses to compute any number.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from besag.errors import BesagError, quoted
from besag.joints.comparison import each
from besag.joints.pair import PairJoint
from besag.joints.registry import CONSTRUCTIONS
from besag.language_model import LanguageModel
from besag.places.filling import filled
from besag.places.reading import MASK
from besag.places.tokens import Token
from besag.results.data import json_ready
from besag.results.tables import visible
from besag.samplers.kernel import Info, Kernel
from besag.scores.marginals import Marginals

TOP = 8  # pairs that are told as sentences


def score(lm: LanguageModel, text: str, method: str) -> dict[str, Any]:
    """A score in bits, or why this model has none by this method: in a table of all methods that is no fault."""
    try:
        return {"result": lm.score(text, method, base=2).to_dict()}
    except BesagError as refusal:
        if type(refusal) is not BesagError:
            raise  # the queue is full, the time is up: not about this method
        return {"refused": str(refusal)}


def places(lm: LanguageModel, text: str, k: int) -> dict[str, Any]:
    """Each place of a text, its own token, and the k likeliest with the text that each makes; in bits."""
    found = lm.marginals(text, outcomes="text", base=2)
    about = {name: getattr(found, name) for name in ("text", "status", "facts", "unit", "model", "dtype")}
    return dict(json_ready({**about, "places": [_place(found, row, k) for row in range(len(found))]}))


def _place(found: Marginals, row: int, k: int) -> dict[str, Any]:
    place, (start, end) = int(found.places[row]), found.offsets[row]
    return {
        "place": place,
        "token": found.tokens[row],
        "start": start,
        "end": end,
        "word": found.encoded.words[place],
        "log_prob": found.own[row],
        "rank": found.rank[row],
        "entropy": found.entropy[row],
        "likeliest": [_likely(found, place, int(start), *one) for one in found.top(place, k)],
    }


def _likely(found: Marginals, place: int, start: int, token: Token, log_prob: float) -> dict[str, Any]:
    text = filled(found.vocabulary, found.encoded, [place], [token.id])
    before = found.text[:start]
    glued = before[-1:].isspace() and not text[: len(before)].endswith(before)  # it goes on the word before
    shown = ("-" if glued else "") + spelled(found.vocabulary, token.id)
    return {"token": token, "shown": shown, "log_prob": log_prob, "text": text}


def pair(lm: LanguageModel, text: str, candidates: int) -> dict[str, Any]:
    """The joint of two masks by every construction, all from the same answers of the model; in nats."""
    joint = lm.joint(text, candidates=candidates)
    if not isinstance(joint, PairJoint):
        raise BesagError(f"{quoted(text)} has {text.count(MASK)} masks, and this picture has two sides: leave two")
    ids = joint.unaries.ids_a, joint.unaries.ids_b
    tokens = [[spelled(joint.vocabulary, id) for id in side] for side in ids]
    laws = [_law(one) for one in each(joint, list(CONSTRUCTIONS))]
    about = {"text": text, "model": joint.model, "dtype": joint.dtype, "unit": joint.unit, "lost": joint.lost}
    return dict(json_ready({**about, "normalised": joint.normalised, "tokens": tokens, "laws": laws}))


def _law(joint: PairJoint) -> dict[str, Any]:
    return {
        "method": joint.method,
        "title": joint.construction.title,
        "formula": joint.construction.formula,
        "status": joint.status,
        "facts": joint.facts,
        "matrix": joint.matrix(),
        "marginals": joint.marginals,
        "mutual_information": joint.mutual_information,
        "entropy": joint.entropy,
        "top": joint.top(TOP),
    }


def write(lm: LanguageModel, kernel: Kernel, tell: Callable[[Mapping[str, Any]], None], **given: Any) -> dict[str, Any]:
    """Chains of a kernel; `tell` has every step with its texts and its numbers, before the first of them the start."""
    last: list[Info] = []

    def watch(step: int, chains: list[int], texts: Callable[[], list[str]]) -> None:
        numbers = told(last.pop()) if last else {}
        tell({"step": step, "texts": texts(), "numbers": numbers})

    return lm.sample(kernel=telling(kernel, last.append), watch=watch, **given).to_dict()


def telling(kernel: Kernel, tell: Callable[[Info], None]) -> Kernel:
    """The same kernel, which says what each of its steps did."""
    other = copy.copy(kernel)

    def step(*given: Any) -> tuple[Any, Info]:
        state, info = kernel.step(*given)
        tell(info)
        return state, info

    object.__setattr__(other, "step", step)  # kernels are frozen, and this one is nobody else's
    return other


def told(info: Info) -> dict[str, Any]:
    """The numbers of a step, one for each chain."""
    named = {"changed": info.changed, "passes": info.passes, **info.more}
    return dict(json_ready({name: values.double().numpy(force=True) for name, values in named.items()}))


def spelled(vocabulary: Any, id: int) -> str:
    """A token as a reader sees it: its letters."""
    token = vocabulary.token(int(id))
    word = str(vocabulary.tokenizer.convert_tokens_to_string([token]))
    return visible(word.strip() or word or token)
