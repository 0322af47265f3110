"""Which tokens may stand at each of two places: all of them, words that somebody gives, or the likeliest.

Candidates are ranked by the mean of two laws of a place, both renormalised over the outcomes: with both places hidden,
and through T, the likeliest tokens of the other place,

    ½·p(x | both hidden) + ½·Σ_{y ∈ T} p(y | both hidden)·p(x | y) / Σ_{y ∈ T} p(y | both hidden),

since a token may be likely given one neighbour though it is not with none. Knows what must be asked to choose. Refuses
to look at the text's own tokens, except that one is put among the likeliest, and marked as forced, where it is missing;
words that somebody gives stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from besag.arrays import Ints
from besag.checks import is_whole, whole_number
from besag.conditionals.contract import Conditionals, require_both_sides
from besag.engine import Plan, Request
from besag.errors import BesagError, nearest, quoted
from besag.places.places import Places
from besag.places.tokens import token_ids
from besag.reductions import Energy, Row
from besag.vocabulary import Vocabulary

Words: TypeAlias = Sequence[Sequence[str | int]]  # of each place: words of one token, or token ids
Candidates: TypeAlias = int | Literal["all"] | Words
Kind: TypeAlias = Literal["text", "all"]
Numbers: TypeAlias = NDArray[Any]  # float32, or float64 of an exact law

SECONDS = 100_000  # tokens through a CPU: up to here two places are compared over the whole vocabulary
MODEST = 200  # candidates of each of two places otherwise
MOST = 2**20  # that anybody may ask for: no vocabulary has more
THROUGH = 32  # tokens of the other place through which a token may become a candidate


class Rows(NamedTuple):
    """What was asked about a place while the sets were chosen."""

    given: Ints  # (n,) the tokens shown at the other place
    weight: Numbers  # (n,) how likely each is with both places hidden
    log_probs: Numbers  # (n, V) of this place, given each
    energy: Numbers  # (n,) what normalised them


class Side(NamedTuple):
    """One of the two places."""

    ids: Ints  # (m,) its outcomes
    hidden: Numbers  # (m,) their log p with both places hidden, among all that may stand there
    gold: int | None  # index of the text's own token
    forced: bool  # was it missing?
    asked: Rows  # with log_probs (n, m) of the outcomes alone


def choose(
    conditionals: Conditionals, places: Places, outcomes: Kind, candidates: Candidates
) -> Plan[tuple[Side, Side]]:
    """The outcomes of both places, and what is known of them by then."""
    require_both_sides(conditionals, "a joint")
    if len(places.at) != 2:
        raise BesagError(
            f"a pair has two places, and here {'is one' if len(places.at) == 1 else f'are {len(places.at)}'}: "
            f"{places.title}. One place alone is a matter of fill, three or more of a block joint."
        )
    allowed, candidates = outcome_ids(conditionals, outcomes), checked_candidates(candidates)
    ids = [allowed, allowed]
    if not isinstance(candidates, int | str):
        ids = read_words(conditionals.vocabulary, places, allowed, candidates)
    forced = [False, False]
    hide_both, row = shown(conditionals, places), np.zeros(2, np.int64)
    hidden = (yield Request((Row(),), hide_both, row, np.array(places.at)))["row"]  # (2, V)
    asked = [Rows(allowed[:0], hidden[0, :0], hidden[:0], hidden[:0, 0])] * 2
    if isinstance(candidates, int):
        asked = yield from _through(conditionals, places, allowed, hidden)
        ids = [_likeliest(allowed, hidden[i], asked[i], candidates) for i in (0, 1)]
    gold = places.gold
    if gold is not None and isinstance(candidates, int) and np.isin(gold, allowed).all():
        forced = [gold[i] not in ids[i] for i in (0, 1)]  # in place of the last, so that sets keep their size
        ids = [np.append(ids[i][:-1], gold[i]) if forced[i] else ids[i] for i in (0, 1)]
    elif gold is not None and not all(gold[i] in ids[i] for i in (0, 1)):
        gold = None  # what may not stand there has no rank among what may
    sides = []
    for i in (0, 1):
        index = None if gold is None else int(np.flatnonzero(ids[i] == gold[i])[0])
        rows = asked[i]._replace(log_probs=asked[i].log_probs[:, ids[i]])
        sides.append(Side(ids[i], hidden[i, ids[i]], index, forced[i], rows))
    return sides[0], sides[1]


def checked_candidates(candidates: object) -> int | Literal["all"] | Words:
    """Candidates as somebody gives them, if they can be such."""
    if isinstance(candidates, str) and candidates == "all":
        return "all"
    if is_whole(candidates):
        return whole_number(candidates, "candidates", most=MOST)
    if isinstance(candidates, Sequence | np.ndarray) and not isinstance(candidates, str):
        return candidates  # type: ignore[return-value]
    raise BesagError(
        f"candidates={quoted(candidates)}: give how many, 'all', or a list of words or token ids for each place."
    )


def automatic(conditionals: Conditionals, places: Places) -> int | Literal["all"]:
    """All tokens for two places where that takes seconds, otherwise the likeliest."""
    cheap = conditionals.device.type == "cuda" or 2 * conditionals.width * len(places.ids) <= SECONDS
    return "all" if cheap else MODEST


def shown(conditionals: Conditionals, places: Places, at: int | None = None, values: Ints | None = None) -> Ints:
    """(n, L) the text with both places hidden, except that place number `at` shows each of n values in turn."""
    ids = np.repeat(places.ids[None], 1 if values is None else len(values), 0)
    mask = conditionals.vocabulary.mask_id
    assert mask is not None  # a place of a text that knows no mask cannot be found
    ids[:, places.at] = mask
    if at is not None and values is not None:
        ids[:, places.at[at]] = values
    return ids


def outcome_ids(conditionals: Conditionals, outcomes: Kind) -> Ints:
    """The tokens that may stand at a place: those of text, or the whole width of the head."""
    if outcomes not in ("text", "all"):
        guess = nearest(str(outcomes), ["text", "all"])
        raise BesagError(f"outcomes={outcomes!r}: 'text' leaves special tokens out, 'all' keeps them.{guess}")
    return _outcome_ids(conditionals.vocabulary, conditionals.width, outcomes).copy()


@lru_cache(maxsize=16)
def _outcome_ids(vocabulary: Vocabulary, width: int, outcomes: Kind) -> Ints:
    ids = np.arange(width)
    if outcomes == "text":  # some heads are wider than their tokenizer, and some tokenizers leave ids out
        known = np.fromiter(vocabulary.tokenizer.get_vocab().values(), np.int64)
        ids = ids[np.isin(ids, known) & ~np.isin(ids, [*vocabulary.special_ids])]
    return ids


def _through(conditionals: Conditionals, places: Places, allowed: Ints, hidden: Numbers) -> Plan[list[Rows]]:
    """Each place given the likeliest tokens of the other."""
    given, weight = [], []
    for i in (1, 0):  # what is shown at b is asked at a, and the reverse
        law = _law(hidden[i, allowed])
        top = _first(law, THROUGH)
        top = top[law[top] > 0]  # an exact law refuses the impossible
        given.append(allowed[top])
        weight.append(law[top])
    ids = np.concatenate([shown(conditionals, places, 1 - i, given[i]) for i in (0, 1)])
    asked = np.repeat([0, 1], [len(tokens) for tokens in given])
    answers = yield Request((Row(), Energy()), ids, np.arange(len(ids)), np.array(places.at)[asked])
    return [Rows(given[i], weight[i], *(answers[key][asked == i] for key in ("row", "energy"))) for i in (0, 1)]


def _likeliest(allowed: Ints, hidden: Numbers, asked: Rows, count: int) -> Ints:
    """The first candidates of a place, likeliest first; equals in the order of their ids."""
    through = (asked.weight.astype(hidden.dtype) @ np.exp(asked.log_probs))[allowed]  # (n,) @ (n, V)
    return allowed[_first(_law(hidden[allowed]) + through / through.sum(), count)]


def _first(scores: Numbers, count: int) -> Ints:
    """Where the largest scores stand, largest first; equals in order. Only those that count are sorted."""
    least = np.partition(scores, -count)[-count] if count < len(scores) else -np.inf
    enough = np.flatnonzero(scores >= least)
    return enough[np.argsort(-scores[enough], kind="stable")[:count]]


def _law(log_probs: Numbers) -> NDArray[np.float64]:
    """Renormalised probabilities."""
    weights: NDArray[np.float64] = np.exp(log_probs.astype(np.float64))
    total = float(weights.sum())
    if not total > 0:
        raise BesagError("the model gives every outcome of a place probability 0: try outcomes='all'.")
    return weights / total


def read_words(vocabulary: Vocabulary, places: Places, allowed: Ints, candidates: object) -> list[Ints]:
    """The ids of the words, or ids, given for each place."""
    lists = candidates if isinstance(candidates, Sequence | np.ndarray) else ()
    count = len(places.at)
    if len(lists) != count or any(
        isinstance(words, str) or not isinstance(words, Sequence | np.ndarray) for words in lists
    ):
        wanted = "a list with one list of words" if count == 1 else f"{count} lists of words, one for each place"
        raise BesagError(f"candidates={quoted(candidates)}: give {wanted}.")
    read = []
    for number, (words, position) in enumerate(zip(lists, places.positions, strict=True), 1):
        if not len(words):
            raise BesagError(f"place {number} was given no words: it needs at least one candidate.")
        ids = token_ids(vocabulary, places.encoded, position, words)
        for index, (word, token) in enumerate(zip(words, ids, strict=True)):
            if token in ids[:index]:
                other = words[ids.index(token)]
                raise BesagError(
                    f"the candidates {other!r} and {word!r} of place {number} are the same token, "
                    f"{vocabulary.token(token)!r}: name each once."
                )
            if token not in allowed:
                why = "a special token: outcomes='all' lets it stand in a text"
                if token not in vocabulary.special_ids:
                    why = f"no token of this model, whose vocabulary has {vocabulary.size:,}"
                raise BesagError(f"the candidate {quoted(word)} is {why}.")
        read.append(np.array(ids, np.int64))
    return read
