"""`python -m besag.cli.cataloguing` asks the registries what they hold, and writes it down for `catalogue.py`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

from besag.cli.catalogue import FILE, PACKAGE, Entry
from besag.registry import NEEDED, options


def _data(entry: Entry) -> dict[str, Any]:
    own = [
        {"name": one.name, "words": one.accepts.words, "kinds": one.accepts.kinds, "meaning": one.meaning}
        | ({} if one.default is NEEDED else {"default": one.default})
        for one in entry.options
    ]
    return {**entry._asdict(), "options": own}


def text(found: tuple[Entry, ...]) -> str:
    """The content of the file."""
    return json.dumps([_data(one) for one in found], ensure_ascii=False, indent=1) + "\n"


def live() -> tuple[Entry, ...]:
    """What the registries themselves say."""
    import besag.evaluation.suites
    import besag.lab.experiments  # noqa: F401 (fills the registry, as the suites do)
    from besag.evaluation.suite import SUITES
    from besag.explanation import REMOVALS
    from besag.joints import CONSTRUCTIONS
    from besag.lab.experiment import EXPERIMENTS
    from besag.masks import LAWS
    from besag.samplers import KERNELS
    from besag.scores import METHODS
    from besag.training.objectives import OBJECTIVES

    registries: dict[str, Any] = {
        "score": METHODS, "joint": CONSTRUCTIONS, "mask": LAWS, "objective": OBJECTIVES, "kernel": KERNELS,
        "explanation": REMOVALS, "suite": SUITES, "experiment": EXPERIMENTS,
    }  # fmt: skip
    return tuple(
        Entry(kind, what.name, what.title, *_TOLD[kind](what), what.cite, what.aliases, options(what), _file(what))
        for kind, registry in registries.items()
        for what in registry.values()
    )


def _file(what: type) -> str:
    return Path(inspect.getfile(what)).relative_to(PACKAGE).as_posix()


Told = tuple[dict[str, str], dict[str, str]]  # a row of the list, and further facts


def _score(what: Any) -> Told:
    over = f"{what.normalised} (a lower bound)" if what.bound else what.normalised
    number = f"a log-probability, normalised over {what.normalised}" if what.normalised else "not a probability"
    facts = {
        "formula": what.formula,
        "the number is": number + (", bounded from below" if what.bound else ""),
        "model": "masked" if what.sees == "both" else "causal",
        "passes for n tokens": what.passes,
    }
    return {"method": what.name, "title": what.title, "passes": what.passes, "normalised over": over or "–"}, facts


def _joint(what: Any) -> Told:
    facts = {"formula": what.formula, "exact for compatible": _yes(what.exact)}
    return {"joint": what.name, "title": what.title, **facts}, facts


def _mask(what: Any) -> Told:
    from besag.masks.law import MaskLaw

    tilts = {"tilts": _yes(what.tilt is not MaskLaw.tilt)}  # does it look at the tokens that it hides?
    return {"law of masks": what.name, "what it hides": what.title, **tilts}, {
        "in a recipe": f'masking.law = "{what.name}"',
        **tilts,
    }


def _objective(what: Any) -> Told:
    masks = {"masks": "the law's" if what.masks else "its own"}
    return {"objective": what.name, "what is learned": what.title, **masks}, {
        "in a recipe": f'objective.name = "{what.name}"',
        **masks,
    }


def _kernel(what: Any) -> Told:
    ends = "ends when nothing is hidden" if what.ends else "a chain: runs as long as it is asked to"
    facts = {"formula": what.formula, "law": what.law, "forward passes": what.passes, "runs": ends}
    return {"kernel": what.name, "title": what.title, "forward passes": what.passes}, facts


def _explanation(what: Any) -> Told:
    facts = {"formula": what.formula, "sequences for n tokens": what.passes}
    return {"way to explain": what.name, "title": what.title, **facts}, facts


def _suite(what: Any) -> Told:
    facts = {
        "asks for": what.asked, "by": ", ".join(what.methods) or "–", "ties": what.ties,
        "data": what.files, "folder": what.folder, "from": what.origin, "licence": what.licence, "hub": what.hub or "–",
    }  # fmt: skip
    return {"suite": what.name, "title": what.title, "asks for": what.asked}, facts


def _experiment(what: Any) -> Told:
    numbers = "simulated" if what.simulated else "exact"
    return {"experiment": what.name, "title": what.title}, {"claim": what.claim, "numbers": numbers}


_TOLD = {
    "score": _score, "joint": _joint, "mask": _mask, "objective": _objective, "kernel": _kernel,
    "explanation": _explanation, "suite": _suite, "experiment": _experiment,
}  # fmt: skip


def _yes(so: bool) -> str:
    return "yes" if so else "no"


if __name__ == "__main__":
    FILE.write_text(text(live()), encoding="utf-8")
