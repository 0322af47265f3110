"""The door: lists and models in, a `Rescoring` out. Every distinct text is scored once; all else is arithmetic."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from besag.arrays import Floats, Ints
from besag.checks import array, checked, number, whole_number
from besag.conditionals.contract import takes_source
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.rescoring import ledger
from besag.rescoring.folds import dealt, speakers
from besag.rescoring.formats import Format, lists_of
from besag.rescoring.judging import judge
from besag.rescoring.ledger import Scorer
from besag.rescoring.lists import MissingScores, NBest, need_references, scored, sound
from besag.rescoring.metrics import Metric, MetricName, metric_named
from besag.rescoring.ranking import Board, Length, normalised
from besag.rescoring.result import Rescoring, System
from besag.rescoring.texts import Casing, prepared
from besag.rescoring.tuning import tuned
from besag.scores import Method
from besag.scores import method as method_named

COMBINED = "combined"
MOST_DRAWS = 10**5  # of the bootstrap
LONGEST_NAME = 255  # bytes of a file's name
MAX_FOLDS = 1000

Folds = Literal["speaker"] | int | Sequence[str] | None  # by speaker, a number of them, or a group for each utterance


@runtime_checkable
class HasEngine(Protocol):
    """A language model."""

    engine: Engine


@dataclass(frozen=True)
class Reading:
    """How lists become arrays: which text is scored, and what a score counts."""

    casing: Casing
    full_stop: bool
    length: Length
    alpha: float
    missing: MissingScores
    scores: str | None  # the file that keeps scores
    note: Callable[[str], None] | None = None


@checked
def rescore(
    model: Engine | HasEngine | Sequence[Any],
    nbest: str | Path | Sequence[NBest],
    ref: str | Path | None = None,
    methods: str | Method | Sequence[str | Method] = "pll",
    *,
    weight: float | Sequence[float] | None = None,
    dev: str | Path | Sequence[NBest] | None = None, dev_ref: str | Path | None = None,
    folds: Folds = None,
    tune: bool = False, combine: bool = False, metric: MetricName = "wer", length: Length = "none", alpha: float = 1.0,
    sources: str | Path | None = None, dev_sources: str | Path | None = None,
    casing: Casing = "keep", full_stop: bool = False,
    format: Format | None = None, missing_scores: MissingScores = "refuse", scores: str | Path | None = None,
    resamples: int = 2000, seed: int = 0,
) -> Rescoring:  # fmt: skip
    """Rank the hypotheses of another system anew: its score plus λ times a language model's.

    Args:
        model: a `LanguageModel`, or several.
        nbest: a file or folder of hypotheses (see the formats in the documentation), or `NBest` lists.
        ref: a file of references, where they are not among the hypotheses.
        methods: of scoring; each with each model is a system of its own.
        weight: λ, one for all systems or one for each; frozen.
        dev: lists on which λ is tuned instead, and then frozen.
        dev_ref: their references.
        folds: "speaker", or a group for each utterance: two folds of whole groups. A number K: K folds of utterances.
            λ of each fold is tuned on all others.
        tune: tune λ on the judged lists themselves: kinder than the truth, and said so.
        combine: also all systems together, with a weight each.
        metric: wer, cer, bleu, chrf or ter.
        length: what a language model's score is divided by: nothing, tokens, or GNMT's penalty.
        alpha: the power of GNMT's penalty.
        casing: of the text that is scored: keep, lower, upper, or sentence.
        full_stop: end the text that is scored with a full stop.
        format: of the hypotheses, if it should not be guessed.
        missing_scores: where hypotheses have no score: refuse, zero, or rank (−ln rank).
        scores: a file that keeps the scores of texts; what it holds is not scored again.
        sources: a file of what was translated, written as references are, for a model that is given it.
        dev_sources: the same for `dev`.
        resamples: of the bootstrap.
        seed: of the bootstrap, and of the weight search for several systems.

    Returns:
        `Rescoring`: systems beside the first pass and the oracle, with tests, the curve, and the new lists.

    Examples:
        >>> from besag.rescoring.lists import Hypothesis, NBest
        >>> said = (Hypothesis("the cats sleeps", -1.0), Hypothesis("the cats sleep", -1.1))
        >>> found = besag.rescore(lm, [NBest("a", said, "the cats sleep")], weight=0.5, full_stop=True)
        >>> found.reranked()[0].hypotheses[0].text
        'the cats sleep'
    """
    whole_number(resamples, "resamples", most=MOST_DRAWS)
    whole_number(seed, "seed", least=0)
    alpha = number(alpha, "alpha", least=0.0)
    reading = Reading(casing, full_stop, length, alpha, missing_scores, _file(scores, "scores"))
    return run(
        scorers_of(model, methods), reading, _lists(nbest, ref, format, sources), metric, weight,
        None if dev is None else _lists(dev, dev_ref, format, dev_sources), folds, tune, combine, resamples, seed,
    )  # fmt: skip


def run(
    scorers: Sequence[Scorer],
    reading: Reading,
    lists: Sequence[NBest],
    metric: MetricName,
    weight: float | Sequence[float] | None,
    dev: Sequence[NBest] | None,
    folds: Folds,
    tune: bool,
    combine: bool,
    resamples: int = 2000,
    seed: int = 0,
) -> Rescoring:
    """Read lists, score what is new, tune what is to be tuned, judge."""
    refuse(weight, dev, folds, tune, len(scorers))
    fold = _folds(lists, folds)
    judged = tune or folds is not None or any(one.reference is not None for one in lists)
    if judged:
        need_references(lists, "the hypotheses")
    if dev is not None:
        need_references(dev, "--dev")
    how = metric_named(metric) if judged or dev else None
    boards, unscored, dtypes = _boards(scorers, reading, [lists, *([dev] if dev else [])], how)
    several = range(int(fold.max()) + 1)
    on, rows = (boards[1], [None]) if dev else (boards[0], [fold != one for one in several] if folds else [None])
    names = [*(scorer.name for scorer in scorers), *([COMBINED] if combine and len(scorers) > 1 else [])]
    systems, unhelped = [], list[str]()
    for place, name in enumerate(names):
        used = [place] if place < len(scorers) else list(range(len(scorers)))
        given = None if weight is None else np.broadcast_to(np.asarray(weight, np.float64), len(scorers))
        weights = np.array([_weights(on, how, used, len(scorers), given, some, seed) for some in rows])
        systems.append(System(name, weights, np.empty(0, np.int64), tuple(used)))
        if weight is None:
            unhelped += _unhelped(name, weights)
    others = "the other fold" if len(rows) == 2 else f"the other {len(rows) - 1} folds"
    how_tuned = "given" if weight is not None else "tuned on --dev" if dev else (
        f"tuned on {others}" if folds else "TUNED ON WHAT IS JUDGED: a new set will not do as well"
    )  # fmt: skip
    models = dict.fromkeys(one.engine.conditionals.name for one in scorers)
    shown = [*unhelped, f"λ {how_tuned}", *_said(reading), *models, *dtypes]
    about = lists, boards[0], how if judged else None, [one.name for one in scorers], fold, unscored, tuple(shown)
    return judge(systems, *about, resamples=resamples, seed=seed)


def scorers_of(model: Any, methods: str | Method | Sequence[str | Method]) -> list[Scorer]:
    """Each model with each method; the model is named where there are several."""
    models = list(model) if isinstance(model, Sequence) else [model]
    wanted = [methods] if isinstance(methods, str | Method) else list(methods)
    if not models or not wanted:
        raise BesagError("rescoring needs a model and a method")
    asked = [getattr(one, "engine", one) for one in models]
    engines = [one for one in asked if isinstance(one, Engine)]
    if len(engines) < len(models):
        raise BesagError(f"model={quoted(model)}: give a LanguageModel, or a list of them")
    chosen = [one if isinstance(one, Method) else method_named(one) for one in wanted]
    found = []
    for place, engine in enumerate(engines):
        named = [other.conditionals.name for other in engines]
        own = named[place] if named.count(named[place]) == 1 else f"{named[place]}.{place + 1}"
        found += [Scorer(f"{own} {one.name}" if len(engines) > 1 else one.name, engine, one) for one in chosen]
    twice = [one.name for one in found if sum(one.name == other.name for other in found) > 1]
    if twice:
        raise BesagError(f"two systems would be called {quoted(twice[0])}: give each method once")
    return found


def _lists(
    nbest: str | Path | Sequence[NBest],
    ref: str | Path | None,
    format: Format | None,
    sources: str | Path | None,
) -> list[NBest]:
    if not isinstance(nbest, str | os.PathLike):
        if ref is not None or sources is not None:
            raise BesagError("ref and sources are files of texts; lists have their own")
        return sound(nbest, "nbest")
    return lists_of(file_name(nbest, "nbest"), format, _file(ref, "ref"), _file(sources, "sources"))


def _file(path: str | Path | None, name: str) -> str | None:
    return None if path is None else file_name(path, name)


def file_name(path: str | os.PathLike[str], name: str) -> str:
    """A path that a file can have."""
    found = os.fspath(path)
    try:
        fits = max(len(os.fsencode(part)) for part in found.split(os.sep)) <= LONGEST_NAME and "\0" not in found
    except UnicodeEncodeError:
        fits = False
    if not fits or not found:
        raise BesagError(f"{name}={quoted(found)}: no file can be called so")
    return found


def refuse(weight: Any, dev: Any, folds: Any, tune: bool, scorers: int) -> None:
    """λ comes from one place, and is a number that is not negative."""
    ways = [name for name, given in (("weight", weight is not None), ("dev", dev is not None),
                                     ("folds", folds is not None), ("tune", tune)) if given]  # fmt: skip
    if len(ways) != 1:
        said = f"{' and '.join(ways)} are" if ways else "none is"
        raise BesagError(f"λ comes from one of weight, dev, folds and tune, and {said} given")
    given = array(0.0 if weight is None else weight, "weight")
    for one in given.ravel().tolist():
        number(one, "weight", least=0.0)
    if given.ndim and given.shape != (scorers,):
        raise BesagError(f"weight={quoted(weight)}: {scorers} systems need one weight, or {scorers}")


def _unhelped(name: str, weights: Floats) -> list[str]:
    """What is reported of folds whose tuned weights are 0."""
    zero = [str(fold) for fold, own in enumerate(weights) if not own.any()]
    if not zero:
        return []
    where = "" if len(zero) == len(weights) else f" in fold {', '.join(zero)}"
    return [f"no weight helped {name}{where}: λ = 0, the first pass"]


def _folds(lists: Sequence[NBest], folds: Folds) -> Ints:
    if folds is None:
        return np.zeros(len(lists), np.int64)
    utts = [one.utt for one in lists]
    if isinstance(folds, int):
        return dealt(utts, whole_number(folds, "folds", least=2, most=MAX_FOLDS))
    groups = speakers(utts) if isinstance(folds, str) else list(folds)
    if len(groups) != len(lists):
        raise BesagError(f"folds has {len(groups):,} groups, and there are {len(lists):,} lists: give one each")
    return dealt(groups)


def _boards(
    scorers: Sequence[Scorer], reading: Reading, sets: Sequence[Sequence[NBest]], metric: Metric | None
) -> tuple[list[Board], dict[str, int], list[str]]:
    """Of each set of lists; how many lists of the first one a scorer left alone; in which precision was scored."""
    sets = [scored(lists, reading.missing, "the hypotheses") for lists in sets]
    _refuse_sources(scorers, sets)
    shown = [[_texts(each, reading) for each in lists] for lists in sets]
    # those of one length together, and those of one list, which ask much alike: batches fill, and less is asked
    ordered = sorted((texts for lists in shown for texts in lists), key=_longest)
    kept = ledger.scores(scorers, [text for texts in ordered for text in texts], reading.scores, reading.note)
    boards: list[Board] = []
    unscored: dict[str, int] = {}
    for lists, texts in zip(sets, shown, strict=True):
        shape = len(lists), max(len(one.hypotheses) for one in lists)
        first, added = np.full(shape, -np.inf), np.zeros((len(scorers), *shape))
        for place, one in enumerate(lists):
            first[place, : len(one.hypotheses)] = [each.score for each in one.hypotheses]
        for k, known in enumerate(kept):
            for place, row in enumerate(texts):
                totals = np.array([known[text].total for text in row])
                tokens = np.array([known[text].tokens for text in row], np.float64)
                added[k, place, : len(row)] = normalised(totals, tokens, reading.length, reading.alpha)
            if not boards:
                unscored[scorers[k].name] = int(np.isnan(added[k]).any(1).sum())
        judged = lists[0].reference is not None
        boards.append(Board(first, added, _statistics(metric, lists, shape) if metric and judged else None))
    dtypes = dict.fromkeys(one.dtype for known in kept for one in known.values())
    return boards, unscored, list(dtypes)


def _texts(each: NBest, reading: Reading) -> list[ledger.Text]:
    """What is scored of a list, with its source where it has one."""
    texts = [prepared(one.text, reading.casing, reading.full_stop) for one in each.hypotheses]
    return [*texts] if each.source is None else [(text, each.source) for text in texts]


def _longest(texts: Sequence[ledger.Text]) -> int:
    return max(len(text if isinstance(text, str) else text[0]) for text in texts)


def _refuse_sources(scorers: Sequence[Scorer], sets: Sequence[Sequence[NBest]]) -> None:
    """A model that is given sources needs one for every list, and its own."""
    for scorer in scorers:
        if scorer.engine.source is not None:
            raise BesagError("rescoring gives each list its own source: give the model without one, and `sources`")
        lacking = next((one.utt for lists in sets for one in lists if one.source is None), None)
        if takes_source(scorer.engine.conditionals) and lacking is not None:
            raise BesagError(
                f"{scorer.engine.conditionals.name!r} is given what was translated, and {quoted(lacking)} has no "
                "source: give a file of them (sources=, --sources, of a development set --dev-sources)"
            )


def _statistics(metric: Metric, lists: Sequence[NBest], shape: tuple[int, int]) -> Floats:
    pairs = [(one.reference or "", each.text) for one in lists for each in one.hypotheses]
    rows = metric.statistics(*map(list, zip(*pairs, strict=True)))  # (n, k)
    found = np.zeros((*shape, rows.shape[1]))
    found[np.arange(shape[1]) < np.array([len(one.hypotheses) for one in lists])[:, None]] = rows
    if np.isnan(metric.value(found[:, 0].sum(0))):
        raise BesagError("all references are empty: there is nothing to divide the errors by")
    return found


def _weights(
    board: Board, metric: Metric | None, used: Sequence[int], size: int, given: Floats | None, rows: Any, seed: int
) -> Floats:
    """(K,) λ of a system, tuned on some lists of a board where it is not given."""
    if given is None:
        assert metric is not None
        return tuned(board, metric, used, rows, seed)
    whole = np.zeros(size)
    whole[used] = given[used]
    return whole


def _said(reading: Reading) -> list[str]:
    norm = {"none": [], "length": ["score over tokens"], "gnmt": [f"score over ((5 + n) / 6)^{reading.alpha:g}"]}
    casing = [f"{reading.casing} case"] if reading.casing != "keep" else []
    return [*norm[reading.length], *casing, *(["with a full stop"] if reading.full_stop else [])]
