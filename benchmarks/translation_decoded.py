"""What the models of `translation.py` write, how long that takes, and how the places of a target depend on each other.

Knows the verb `translate` and one study, which keeps what is found; knows no reference.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from besag.conditionals.contract import Given
from besag.samplers.kernels.pair_law import pair_laws
from besag.samplers.sheet import allowed_tokens, blank
from besag.scores.source_length import SourceLengths

PASSES = (1, 2, 4, 8, 10)
CHOSEN = (1, 4, 10)  # passes at which ways of choosing are compared
EQUAL = (2, 4, 8)  # passes at which kernels are compared
KERNELS = ("adaptive", "entropy_bound", "threshold", "grouped", "refine")  # that are compared with mask_predict
SEARCHES = {"entropy_bound": ("bound", 0.0, 30.0), "threshold": ("least", 1.0, 0.0)}  # from most passes to fewest
BEST = "masked-distilled"
LENGTHS = 5  # tried side by side, where quality is asked for
CANDIDATES = 20  # tokens of each of two neighbours whose joint is looked at


def decode(study: Any, name: str) -> None:
    if not name.startswith("masked"):
        for beam in (1, 5):
            _decoded(study, f"{name}.beam{beam}", name, beam=beam)
        return
    several = {"lengths": LENGTHS, "choose": "length"}
    for passes in PASSES:
        _decoded(study, f"{name}.mask_predict.{passes}", name, passes=passes, **several)
    ways: dict[str, dict[str, Any]] = {
        "own": {"lengths": LENGTHS, "choose": "own"}, "mbr": {"lengths": LENGTHS, "choose": "mbr"},
        "judge": {"lengths": LENGTHS}, "one-length": {}, "mended": {**several, "mend_stutters": True},
    }  # fmt: skip
    for passes in CHOSEN if name == BEST else ():
        for way, options in ways.items():
            judge = {"judge": study.model("causal")} if way == "judge" else {}
            _decoded(study, f"{name}.{way}.{passes}", name, passes=passes, **options, **judge)


def kernels(study: Any) -> None:
    """At equal passes; mask_predict at these is decoded elsewhere."""
    for passes in EQUAL:
        for kernel in KERNELS:
            how = _calibrated(study, kernel, passes) if kernel in SEARCHES else {"passes": passes}
            called = f"{BEST}.{kernel}.{passes}"
            _decoded(study, called, BEST, kernel=kernel, lengths=LENGTHS, choose="length", **how)


def _calibrated(study: Any, kernel: str, passes: int) -> dict[str, float]:
    """The option with which a kernel makes so many passes a target on the mean, on the validation set."""
    option, *ends = SEARCHES[kernel]

    def find() -> dict[str, Any]:
        for _ in range(9):
            middle = sum(ends) / 2
            found = study.model(BEST).translate(
                study.valid, kernel, lengths=LENGTHS, choose="length", **{option: middle}
            )
            mean = found.passes / sum(row.tried for row in found)
            ends[int(mean <= passes)] = middle
        return {option: middle, "passes": mean}

    return {option: float(study.once(f"calibrated.{kernel}.{passes}.json", find)[option])}


def _decoded(study: Any, called: str, name: str, **options: Any) -> None:
    def find() -> dict[str, Any]:
        found = study.model(name).translate(study.sources, **options)
        tried = sum(row.tried for row in found)
        return {
            "model": name, "how": found.how, "scores": found.chosen, "seconds": found.seconds,
            "passes": found.passes / max(1, tried), "tried": tried / len(found), "texts": found.texts,
            "statuses": [str(row.status) for row in found],
        }  # fmt: skip

    study.once(f"decoded.{called}.json", find)


def dependence(study: Any) -> None:
    some = study.sources[: study.options.dependent]
    study.once("dependence.json", lambda: {"rows": _depending(study.model(BEST), some)})


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
    several = {"lengths": LENGTHS, "choose": "length"}
    runs: list[tuple[str, dict[str, Any]]] = [
        *((name, {"beam": beam}) for name in ("causal", "shallow") for beam in (1, 5)),
        *((BEST, {"passes": passes}) for passes in PASSES),
        *((BEST, {"passes": passes, **several}) for passes in (1, 4)),
    ]
    for name, options in runs:
        called = "-".join([name, *(f"{key}{value}" for key, value in options.items())])
        study.once(f"speed.{study.options.device}.{called}.json", lambda n=name, o=options: _timed(study, n, o))


def _timed(study: Any, name: str, options: dict[str, Any]) -> dict[str, Any]:
    lm, device = study.model(name), study.options.device
    alone = study.sources[: study.options.alone]
    many = (study.sources * (1 + study.options.many // len(study.sources)))[: study.options.many]

    def one_by_one() -> None:
        for source in alone:
            lm.translate([source], **options)

    return {
        "model": name, "options": options, "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else platform.machine(),
        "alone_ms": 1000 * _best(lm, one_by_one) / len(alone), "sentences_alone": len(alone),
        "together_ms": 1000 * _best(lm, lambda: lm.translate(many, **options)) / len(many),
        "sentences_together": len(many),
    }  # fmt: skip


def _best(lm: Any, work: Callable[[], object]) -> float:
    """The less of two runs after one to warm up. Texts come out, so the device has ended; sources are read anew."""
    found = []
    for _ in range(3):
        lm.engine.sources.forget()
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found[1:])
