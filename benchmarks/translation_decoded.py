"""What the models of `translation.py` write, how long that takes, and how the places of a target depend on each other.

Knows the verb `translate` and one study, which keeps what is found; knows no reference.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from besag.conditionals.contract import Given
from besag.conditionals.decoder import CausalDecoder
from besag.conditionals.replay import Replay
from besag.samplers.kernels.pair_law import pair_laws
from besag.samplers.sheet import allowed_tokens, blank
from besag.scores.source_length import SourceLengths
from besag.translation.choosing import Choice, Hypothesis

PASSES = (1, 2, 4, 8, 10)
CHOSEN = (1, 4, 10)  # passes at which ways of choosing are compared
EQUAL = (2, 4, 8)  # passes at which kernels are compared
KERNELS = ("adaptive", "entropy_bound", "threshold", "grouped", "refine")  # that are compared with mask_predict
SEARCHES = {"entropy_bound": ("bound", 0.0, 30.0), "threshold": ("least", 1.0, 0.0)}  # from most passes to fewest
LENGTHS = 5  # tried side by side, where quality is asked for
MORE = 9  # the same, where another chooses
LISTED = 10  # hypotheses of a source, to be rescored
SEARCHED = 200  # sentences of the validation set on which options of kernels are found
CANDIDATES = 20  # tokens of each of two neighbours whose joint is looked at


def decode(study: Any, name: str) -> None:
    if not name.startswith("masked"):
        for beam in (1, 5):
            _decoded(study, f"{name}.beam{beam}", name, beam=beam)
        return
    several = {"lengths": LENGTHS, "choose": "length"}
    for passes in PASSES:
        _decoded(study, f"{name}.mask_predict.{passes}", name, passes=passes, **several)
    chosen = CHOSEN if name == study.best else CHOSEN[1:]
    for passes in chosen:
        _chosen(study, name, passes)
        _decoded(study, f"{name}.one-length.{passes}", name, passes=passes)
    for passes in chosen:
        _decoded(study, f"{name}.mended.{passes}", name, passes=passes, **several, mend_stutters=True)
    if name == study.best:
        for passes in chosen[1:]:
            _judged(study, name, passes)


def _judged(study: Any, name: str, passes: int) -> None:
    """More lengths, of which the left-to-right model chooses."""
    more = {"lengths": MORE, "choose": "judge", "judge": study.model("causal")}
    _decoded(study, f"{name}.judge-of-{MORE}.{passes}", name, passes=passes, **more)


def valid(study: Any, name: str) -> None:
    """The validation set, by which a model is chosen: as many passes as are judged, by both ways of refining."""
    for kernel, passes in product(("mask_predict", "refine"), (4, 10)):
        options = {"kernel": kernel, "passes": passes, "lengths": LENGTHS, "choose": "length"}
        study.once(
            f"valid.{name}.{kernel}.{passes}.json",
            lambda how=options: _told(name, study.model(name).translate(study.valid, **how)),
        )


def listed(study: Any, name: str) -> None:
    """All that a masked model writes at five lengths, best first by `length`."""
    for passes in study.options.passes:

        def find(passes: int = passes) -> dict[str, Any]:
            several = {"lengths": LENGTHS, "choose": "length", "nbest": LENGTHS}
            found = study.model(name).translate(study.sources, passes=passes, **several)
            lists = [[(one.text, one.score, one.found) for one in row.hypotheses] for row in found]
            return {**_told(name, found), "lists": lists}

        study.once(f"decoded.{name}.mask_predict.{passes}.json", find)


def chosen(study: Any, name: str) -> None:
    """What the left-to-right model chooses from these lists: it needs no masked model."""
    choice = Choice("judge", judge=study.model("causal"))
    for passes in study.options.passes:
        found = json.loads((study.out / f"decoded.{name}.mask_predict.{passes}.json").read_text("utf-8"))

        def find(found: dict[str, Any] = found) -> dict[str, Any]:
            began = time.perf_counter()
            rows = [tuple(Hypothesis(text, score, 0, 0, times) for text, score, times in own) for own in found["lists"]]
            ranked = choice.rank(choice.judge.engine, study.sources, rows)
            texts = [own[0].text if own else "" for own in ranked]
            seconds = found["seconds"] + time.perf_counter() - began
            return {**found, "scores": choice.meaning, "texts": texts, "seconds": seconds, "lists": []}

        study.once(f"decoded.{name}.judge.{passes}.json", find)


def nbest(study: Any, name: str) -> None:
    """Lists with their scores, log p(x, end | s) / n, for rescoring."""
    for of, sources in (("valid", study.valid), ("test", study.sources)):

        def find(sources: list[str] = sources) -> dict[str, Any]:
            found = study.model(name).translate(sources, beam=LISTED, nbest=LISTED)
            return {"lists": [[(one.text, one.score, one.length) for one in row.hypotheses] for row in found]}

        study.once(f"nbest.{name}.{of}.json", find)


def _chosen(study: Any, name: str, passes: int) -> None:
    """The targets of one decoding, chosen in three ways."""
    ways = {"own": Choice(), "mbr": Choice("mbr"), "judge": Choice("judge", judge=study.model("causal"))}
    called = {way: f"decoded.{name}.{way}.{passes}.json" for way in ways}
    if all((study.out / file).exists() for file in called.values()):
        return
    lm = study.model(name)
    found = lm.translate(study.sources, passes=passes, lengths=LENGTHS, nbest=LENGTHS)
    for way, choice in ways.items():
        began = time.perf_counter()
        ranked = choice.rank(lm.engine, study.sources, [row.hypotheses for row in found])
        texts = [own[0].text if own else "" for own in ranked]
        told = {**_told(name, found), "scores": choice.meaning, "texts": texts}
        told["seconds"] += time.perf_counter() - began
        study.once(called[way], lambda told=told: told)


def kernels(study: Any) -> None:
    """At equal passes and at one length, the likeliest: what differs is the kernel."""
    best = study.best
    for passes in EQUAL:
        _decoded(study, f"{best}.one-length.{passes}", best, passes=passes)
        for kernel in KERNELS:
            how = _calibrated(study, kernel, passes) if kernel in SEARCHES else {"passes": passes}
            _decoded(study, f"{best}.{kernel}.{passes}", best, kernel=kernel, **how)


def _calibrated(study: Any, kernel: str, passes: int) -> dict[str, float]:
    """The option with which a kernel makes so many passes a target on the mean, on the validation set."""
    option, *ends = SEARCHES[kernel]

    def find() -> dict[str, Any]:
        for _ in range(9):
            middle = sum(ends) / 2
            found = study.model(study.best).translate(study.valid[:SEARCHED], kernel, **{option: middle})
            mean = found.passes / sum(row.tried for row in found)
            ends[int(mean <= passes)] = middle
        return {option: middle, "passes": mean}

    return {option: float(study.once(f"calibrated.{kernel}.{passes}.json", find)[option])}


def _decoded(study: Any, called: str, name: str, **options: Any) -> None:
    def find() -> dict[str, Any]:
        return _told(name, study.model(name).translate(study.sources, **options))

    study.once(f"decoded.{called}.json", find)


def _told(name: str, found: Any) -> dict[str, Any]:
    tried = sum(row.tried for row in found)
    return {
        "model": name, "how": found.how, "scores": found.chosen, "seconds": found.seconds,
        "passes": found.passes / max(1, tried), "tried": tried / len(found), "texts": found.texts,
        "statuses": [str(row.status) for row in found],
    }  # fmt: skip


def dependence(study: Any) -> None:
    some = study.sources[: study.options.dependent]
    study.once("dependence.json", lambda: {"rows": _depending(study.model(study.best), some)})


def _depending(lm: Any, sources: list[str]) -> list[dict[str, Any]]:
    """For each sentence: one pass at the likeliest length, and the mutual information of its neighbours there."""
    lengths, rows = SourceLengths(lm.engine), []
    allowed = allowed_tokens(lm.conditionals)
    for number, source in enumerate(sources):
        [ids] = lm.conditionals.source_ids([source])
        [n] = lengths.likeliest(1, ids)
        sheet = blank(lm.conditionals, n)
        canvas = sheet.canvas(lm.conditionals, 1, allowed)
        nats = np.zeros(0)
        if n > 1:
            at = torch.tensor(sheet.at)
            laws = pair_laws(
                lm.engine, canvas.ids, torch.zeros(n - 1, dtype=torch.long), at[:-1], at[1:], candidates=CANDIDATES,
                allowed=allowed, given=Given.one(ids, 1),
            )  # fmt: skip
            nats = laws.mutual_information().numpy(force=True)
        text = lm.translate(source, length=n, passes=1).texts[0]
        mean = float(nats.mean()) if n > 1 else 0.0
        rows.append({"number": number, "text": text, "nats": nats.tolist(), "mean": mean})
    return rows


def speed(study: Any) -> None:
    several, best = {"lengths": LENGTHS, "choose": "length"}, study.best
    left_to_right = [
        name for name in study.options.models if not name.startswith("masked") and not name.endswith("distilled")
    ]
    beams = [(name, {"beam": beam}) for name in left_to_right for beam in (1, 5)]
    refined = [(best, {"passes": passes}) for passes in PASSES]
    _timings(study, "speed", [*beams, *refined])
    _timings(study, "speed", [(name, {**options, **several}) for name, options in refined])
    if study.options.device.startswith("cuda"):  # what recording gains
        with patch.object(Replay, "worth", lambda *_: False), patch.object(CausalDecoder, "rereads", lambda *_: False):
            _timings(study, "launched", beams, together=False)


def _timings(study: Any, called: str, runs: list[tuple[str, dict[str, Any]]], together: bool = True) -> None:
    for name, options in runs:
        how = "-".join([name, *(f"{key}{value}" for key, value in options.items())])
        find = partial(_timed, study, name, options, together)
        study.once(f"{called}.{study.options.device}.{how}.json", find)


def _timed(study: Any, name: str, options: dict[str, Any], together: bool) -> dict[str, Any]:
    lm, device = study.model(name), study.options.device
    alone = study.sources[: study.options.alone]
    many = (study.sources * (1 + study.options.many // len(study.sources)))[: study.options.many]

    def one_by_one(sources: list[str] = alone) -> None:
        for source in sources:
            lm.translate([source], **options)

    one_by_one(study.valid[: len(alone)])  # what is recorded is recorded of other sentences
    done = lm.conditionals.replay.done  # over three runs, of which the best counts
    done.clear()
    seconds = _best(lm, one_by_one)
    found = {
        "model": name, "options": options, "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else platform.machine(),
        "alone_ms": 1000 * seconds / len(alone), "sentences_alone": len(alone), "decoder": dict(done),
    }  # fmt: skip
    if together:
        seconds = _best(lm, lambda: lm.translate(many, **options))
        found |= {"together_ms": 1000 * seconds / len(many), "sentences_together": len(many)}
    return found


def _best(lm: Any, work: Callable[[], object]) -> float:
    """The less of two runs after one to warm up. Texts come out, so the device has ended; sources are read anew.

    On a CPU with one thread it is the time of the core, whoever else it works for.
    """
    core = lm.conditionals.device.type == "cpu" and torch.get_num_threads() == 1
    clock = time.process_time if core else time.perf_counter
    found = []
    for _ in range(3):
        lm.engine.sources.forget()
        began = clock()
        work()
        found.append(clock() - began)
    return min(found[1:])
