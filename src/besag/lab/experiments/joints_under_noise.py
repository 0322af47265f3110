"""Which joint is nearest to the truth when the conditionals are a little wrong?

Conditionals of a random law get noise, of their logits or as counts have it; every construction makes its joint of the
same tables, and KL(p ‖ q) says how far it is from p. Dependence is the dial of `random_table`.

A claim about sampled distributions is a set of comparisons: paired differences of KL, one a distribution, whose means
it says are 0 at most. It is rejected if any mean is above 0 by Student's interval, one-sided, at FALSE_ALARM divided
by the number of comparisons of all claims: a true claim is rejected with that probability at most, as far as a mean
over 24 distributions is normal. What the numbers leave undecided rejects nothing; a note counts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from besag.arrays import Floats
from besag.checks import whole_number
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.noise import BLOCKS, Error, divergences
from besag.lab.pictures import dressed, style
from besag.lab.seeds import FALSE_ALARM, balance, decided
from besag.lab.systems.random import random_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ERRORS: tuple[Error, ...] = ("logits", "counts")
PAIRS = ("mlm", "order", "mrf_local", "hcb", "loglinear", "ag", "stationary")
DEPENDENCE = (0.25, 0.5, 1.0, 2.0, 4.0)
NOISE = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6)
BLOCK_DEPENDENCE = 1.0
SHAPES: Mapping[int, tuple[int, ...]] = {2: (8, 8), 3: (4, 4, 4), 4: (3,) * 4}
FULL_SHAPES: Mapping[int, tuple[int, ...]] = {**SHAPES, 5: (2,) * 5}
SURE = 2.0  # standard errors by which a construction must lead to be called the nearest


@register
@dataclass(frozen=True)
class JointsUnderNoise(Experiment):
    name = "joints_under_noise"
    title = "Joints of noisy conditionals: which is nearest to the truth"
    simulated = True
    claim = "constructions that are all exact do not bear errors alike, and which bears them best depends on the error"
    cite = ("torroba2023", "arnold1998")

    laws: Annotated[int, "random laws that a number is the mean over"] = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self.laws, "laws", least=2, most=10_000)

    def measure(self, full: bool) -> Finding:
        count = self.laws * (4 if full else 1)
        pairs = np.array(
            [
                [
                    [self._all(SHAPES[2], dependence, noise, PAIRS, count, error) for noise in NOISE]
                    for dependence in DEPENDENCE
                ]
                for error in ERRORS
            ]
        )  # (error, dependence, noise, law, method)
        shapes = FULL_SHAPES if full else SHAPES
        blocks = np.array([
            [self._all(shape, BLOCK_DEPENDENCE, noise, tuple(BLOCKS), count, "logits") for noise in NOISE]
            for shape in shapes.values()
        ])  # fmt: skip
        tables = {
            f"two places of 8 symbols, errors of {error}, mean KL(p‖q) in nats": [
                {"dependence": dependence, "noise": noise, **_row(PAIRS, of_error[at, by])}
                for at, dependence in enumerate(DEPENDENCE) for by, noise in enumerate(NOISE) if noise
            ]
            for error, of_error in zip(ERRORS, pairs, strict=True)
        }  # fmt: skip
        tables[f"more places, errors of logits, dependence {BLOCK_DEPENDENCE:g}, mean KL(p‖q) in nats"] = [
            {"places": places, "symbols": shape[0], "noise": noise, **_row(tuple(BLOCKS), blocks[at, by])}
            for at, (places, shape) in enumerate(shapes.items()) for by, noise in enumerate(NOISE) if noise
        ]  # fmt: skip
        compared = {**_of_logits(pairs[0], blocks), **_of_counts(pairs[1])}
        tail = FALSE_ALARM / sum(map(len, compared.values()))
        found = {said: decided(one, tail) for said, one in compared.items()}
        return Finding(
            _shown(pairs.mean(3), blocks.mean(2)),
            {**_without_noise(pairs[0, :, 0]), **{said: bool((one <= 1).all()) for said, one in found.items()}},
            tables,
            {"dependence": np.array(DEPENDENCE), "noise": np.array(NOISE), "pairs": pairs, "blocks": blocks},
            _figures(pairs, blocks.mean(2), tuple(shapes)),
            [
                f"{count} random laws a number, each with noise of its own, the same for all constructions",
                balance(list(found.values())),
                "Gaussian noise on logits is the error for which the log-linear joint is the least-squares answer; of "
                "counts, likelihood speaks for ag",
                "the chain rule alone sees answers with several places hidden, with noise of the same size",
            ],
        )

    def _all(
        self, shape: tuple[int, ...], dependence: float, noise: float, methods: Sequence[str], count: int, error: Error
    ) -> Floats:
        """(law, method) KL(p ‖ q)."""
        seeds = [int(seed) for seed in np.random.SeedSequence(self.seed).generate_state(count)]  # the same at any noise
        laws = (random_table(shape, dependence, seed).law for seed in seeds)
        return np.concatenate(
            [divergences(law, noise, methods, [seed], error) for law, seed in zip(laws, seeds, strict=True)]
        )


def _row(methods: Sequence[str], found: Floats) -> dict[str, Any]:
    means = found.mean(0)
    return {**dict(zip(methods, means.tolist(), strict=True)), "nearest": " = ".join(nearest(methods, found))}


def nearest(methods: Sequence[str], found: Floats) -> list[str]:
    """The construction with the least mean over laws, and those it does not lead by two standard errors."""
    order = np.argsort(found.mean(0))
    leads = found - found[:, order[:1]]  # paired: the same laws and the same noise
    error = leads.std(0, ddof=1) / np.sqrt(len(found))
    return [methods[at] for at in order if leads[:, at].mean() <= SURE * error[at]]


def _of(means: Floats, methods: Sequence[str], name: str) -> Floats:
    return np.asarray(means[..., list(methods).index(name)])


def _excess(name: str, others: Sequence[str], methods: Sequence[str], cells: Floats) -> Floats:
    """(comparisons, laws) KL of a construction less that of each other, cells being (…, law, method)."""
    rest = cells[..., [methods.index(other) for other in others if other != name]]
    return np.moveaxis(_of(cells, methods, name)[..., None] - rest, -2, -1).reshape(-1, cells.shape[-2])


def _without_noise(pairs: Floats) -> dict[str, bool]:
    """Of (dependence, law, method): these are exact."""
    exact = ("order", "hcb", "loglinear", "ag", "stationary")
    return {
        "without noise every exact construction gives back the law": all(
            float(np.abs(_of(pairs, PAIRS, name)).max()) < 1e-7 for name in exact
        ),
        "the product of the conditionals does not": bool((_of(pairs, PAIRS, "mrf_local").mean(1) > 1e-4).all()),
    }


def _of_logits(pairs: Floats, blocks: Floats) -> dict[str, Floats]:
    """Claims, and the differences whose means they say are 0 at most."""
    loglinear, hcb = (_of(pairs, PAIRS, name) for name in ("loglinear", "hcb"))  # (dependence, noise, law)
    once, twice = loglinear[:, 1], loglinear[:, 2]
    return {
        "logits: twice the noise costs four times as much while it is small (3.5 to 4.5)": np.concatenate(
            [twice - 4.5 * once, 3.5 * once - twice]
        ),
        "logits: with noise up to 0.4 no construction leads the log-linear joint, at any dependence": _excess(
            "loglinear", PAIRS, PAIRS, pairs[:, 1:4]
        ),
        "logits: where dependence is strong (2, 4) it leads ag, stationary and hcb at every noise": _excess(
            "loglinear", ("ag", "stationary", "hcb"), PAIRS, pairs[3:, 1:]
        ),
        "logits: a joint through one pivot pays at least twice what the mean over pivots pays": (2 * loglinear - hcb)[
            :, 1:
        ].reshape(-1, loglinear.shape[-1]),
        "logits: of four places and more none leads the chain rule over all orders, up to noise 0.4": _excess(
            "order", tuple(BLOCKS), tuple(BLOCKS), blocks[2:, 1:4]
        ),
    }


def _of_counts(pairs: Floats) -> dict[str, Floats]:
    """The same of errors of counts."""
    return {
        "counts: up to dependence 1 and noise 0.4 none leads ag": _excess("ag", PAIRS, PAIRS, pairs[:3, 1:4]),
        "counts: with noise up to 0.4 ag is nearer than the log-linear joint, at every dependence": _excess(
            "ag", ("loglinear",), PAIRS, pairs[:, 1:4]
        ),
        "counts: at the strongest dependence (4) none leads the chain rule, up to noise 0.4": _excess(
            "order", PAIRS, PAIRS, pairs[4:, 1:4]
        ),
    }


def _shown(pairs: Floats, blocks: Floats) -> str:
    at = 3, 3  # dependence 2, noise 0.4
    of_logits, of_counts = (
        ", ".join(f"{name} {_of(of_error, PAIRS, name)[at]:.3f}" for name in ("loglinear", "ag", "order", "hcb"))
        for of_error in pairs
    )
    order = _of(blocks, tuple(BLOCKS), "order")[2, 3] / _of(blocks, tuple(BLOCKS), "loglinear")[2, 3]
    return (
        f"The kind of error decides. At dependence 2 and noise 0.4, nats from the truth: errors of logits {of_logits}; "
        f"errors of counts {of_counts}. Of four places the mean over all orders pays {order:.2f} times what the "
        f"log-linear joint pays, for answers that only it asks."
    )


def _figures(pairs: Floats, blocks: Floats, places: Sequence[int]) -> dict[str, Drawing]:
    means = pairs.mean(3)

    def against_noise(ax: Axes, error: int) -> None:
        named = {name: _of(means[error], PAIRS, name)[3, 1:] for name in PAIRS}
        _lines(ax, NOISE[1:], named)
        dressed(ax, "size of the errors, σ (nats)", "KL(p‖q) (nats)", xscale="log", yscale="log")
        ax.set_xticks(NOISE[1:], [f"{noise:g}" for noise in NOISE[1:]])
        ax.minorticks_off()

    def against_places(ax: Axes) -> None:
        relative = blocks[:, 3] / _of(blocks[:, 3], tuple(BLOCKS), "loglinear")[:, None]
        named = {name: _of(relative, tuple(BLOCKS), name) for name in BLOCKS if name != "mrf_local"}
        _lines(ax, places, named)
        dressed(ax, "places", "KL(p‖q), that of loglinear = 1")
        ax.set_xticks(places)

    near = (
        "The nearest joint at every dependence and noise, errors of {}; ties within two standard errors are all named."
    )
    far = "How far each joint is from the truth as errors of {} grow, dependence 2: two places of 8 symbols."
    more = f"More places: the distance beside that of the log-linear joint, noise 0.4, dependence {BLOCK_DEPENDENCE:g}."
    figures = {}
    for at, error in enumerate(ERRORS):
        figures[f"nearest, {error}"] = Drawing(near.format(error), partial(_map, pairs=pairs[at]))
        figures[f"distance, {error}"] = Drawing(far.format(error), partial(against_noise, error=at))
    return {**figures, "places": Drawing(more, against_places)}


def _lines(ax: Axes, x: Sequence[float], named: Mapping[str, Floats]) -> None:
    """A construction looks the same in every figure."""
    for name, y in named.items():
        ax.plot(x, y, label=name, markersize=4.5, linewidth=1.6, **style(PAIRS.index(name)))


def _map(ax: Axes, pairs: Floats) -> None:
    for x in range(len(DEPENDENCE)):
        for y in range(1, len(NOISE)):
            best = nearest(PAIRS, pairs[x, y])
            colour = style(PAIRS.index(best[0]))["color"]
            ax.add_patch(_box(x, y, colour))
            ax.text(x, y, "\n".join(best), ha="center", va="center", fontsize=9 if len(best) < 4 else 7.5)
    ax.set_xlim(-0.5, len(DEPENDENCE) - 0.5)
    ax.set_ylim(0.5, len(NOISE) - 0.5)
    ax.set_xticks(range(len(DEPENDENCE)), [f"{dependence:g}" for dependence in DEPENDENCE])
    ax.set_yticks(range(1, len(NOISE)), [f"{noise:g}" for noise in NOISE[1:]])
    ax.set_xlabel("dependence of the law (scale of its interactions, nats)", fontsize=11)
    ax.set_ylabel("size of the errors, σ (nats)", fontsize=11)


def _box(x: int, y: int, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.47, y - 0.46), 0.94, 0.92, facecolor=colour, alpha=0.3, edgecolor="none")
