"""How long does a sampler need from one mode of a sentence to another, on a trained network?

A sentence with two masks has likely pairs that share no token: modes. The model is asked once for both conditionals
over candidates; on these tables the chain of `gibbs` is a known matrix, so the expected passes from one mode to the
other are exact, at any temperature, and so is how fast the chain forgets where it began; `block_gibbs` draws both
places in two passes, whatever stood there. Then the kernels themselves run, from both modes, and are compared with it.
Which places depend on each other is mapped, of a long text around the masks alone.

That comparison: of the chains of a row, a binomial number has arrived by any one step, with the probability that the
matrix gives. The step is that at which it is nearest to ½, and the number must lie between the exact two-sided
quantiles at FALSE_ALARM divided by the number of rows: all rows together raise a false alarm with probability
FALSE_ALARM at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from besag.arrays import Floats, Ints
from besag.checks import whole_number
from besag.diagnostics.dependence import DependenceMap
from besag.diagnostics.mixing import exact_hitting, hitting
from besag.errors import BesagError, quoted
from besag.joints.pair import PairJoint
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.pair_model import PairModel
from besag.lab.pictures import curves, dressed, style
from besag.lab.seeds import FALSE_ALARM, binomial, chi_square
from besag.language_model import LanguageModel
from besag.load_model import load
from besag.places.reading import read, text_places

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEXT = "He lives in [MASK] [MASK]."
TEMPERATURES = (0.5, 0.6, 0.8, 1.0, 1.4, 2.0)
STEPS = 250  # that a chain is followed
CHAINS = 48
PASSES = {"gibbs": 1, "block_gibbs": 2}  # a step
LABELS = {"gibbs": "one place at a time", "block_gibbs": "both places"}
OUTSIDE = 0.025  # on each side of an interval of 95%
MAPPED = 8  # candidates of a place in the map of dependence
SHORT, NEAR = 12, 2  # tokens of a text that is mapped whole; else the masks with so many shown places on each side
STRONGEST = 5  # pairs of it that are listed
BRIEF, AROUND = 60, 16  # characters of a text that is told whole; else so many on each side of where modes differ


class Modes(NamedTuple):
    first: tuple[int, int]  # row and column in the tables
    second: tuple[int, int]


class Escape(NamedTuple):
    """Forward passes from one mode to another, in simulated chains."""

    mean: float  # infinite where none came there
    low: float
    high: float
    came: int
    times: Ints = np.empty(0, dtype=np.int64)  # (C,) steps of each chain; more than were run where it never arrived


@register
@dataclass(frozen=True)
class EscapeFromModes(Experiment):
    name = "escape_from_modes"
    title = "From one mode of a sentence to another, on a trained network"
    simulated = True
    claim = "one place at a time a sampler stays in a mode the longer the colder it is; both places at once it does not"
    cite = ("li2024", "wang2019")

    model: Annotated[str, "a folder or a name on the hub; if empty, the embedded one"] = ""
    text: Annotated[str, "with two masks"] = TEXT
    candidates: Annotated[int, "of each place"] = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self.candidates, "candidates", least=2, most=64)

    def measure(self, full: bool) -> Finding:
        lm = load(self.model or None, progress=False)
        joint = lm.joint(self.text, candidates=self.candidates)
        if not isinstance(joint, PairJoint):
            raise BesagError(f"text={quoted(self.text)}: two masks are needed, and here are {len(joint)}")
        pair, modes = PairModel(joint), two_modes_of(joint)
        texts = [_written(joint, mode) for mode in modes]
        arrived: list[dict[str, Any]] = []
        told = brief(texts)
        chains, steps = (CHAINS * 4, STEPS * 4) if full else (CHAINS, STEPS)
        rows = [self._row(pair, modes, way, temperature, chains, steps, arrived)
                for way in (0, 1) for temperature in TEMPERATURES]  # fmt: skip
        mixing = [_mixing(pair, temperature) for temperature in TEMPERATURES]
        near = None if len(joint.places.encoded.ids) <= SHORT else around(lm, texts[0], joint.places.positions)
        mapped = lm.dependence(texts[0], candidates=MAPPED, positions=near)
        barrier, covered = _barrier(rows[: len(TEMPERATURES)]), _covered(rows)
        tables = {
            "modes": [{"mode": name, "text": text, "probability": float(np.exp(joint.matrix()[mode]))}
                      for name, text, mode in zip("AB", told, modes, strict=True)],
            "passes from one mode to the other": rows,
            "chains that have arrived by the step at which half of them should": arrived,
            "passes until a chain forgets where it began (relaxation time)": mixing,
            f"which places of {told[0]!r} depend most on each other": [
                {"a": one.token_a, "b": one.token_b, "mutual information (nats)": one.mutual_information}
                for one in mapped.top(STRONGEST)
            ],
        }  # fmt: skip
        return Finding(
            _shown(told, rows, barrier),
            _claims(rows, arrived, mixing),
            tables,
            {"temperature": np.array(TEMPERATURES), "dependence": mapped.matrix, "mapped": np.array(mapped.positions),
             "relaxation": np.array([row["gibbs"] for row in mixing])},
            _figures(rows, mixing, told, mapped),
            [
                f"over {self.candidates} candidates of each place, which hold {1 - joint.lost.hidden_a:.0%} and "
                f"{1 - joint.lost.hidden_b:.0%} of the mass; conditionals are renormalised over them",
                f"seen: {chains} chains from each mode, {steps} steps each; {covered.sum()} of {covered.size} "
                "intervals of 95% hold what is due of so few steps: less than the exact passes where some chains come "
                "soon and others are caught elsewhere, more where all must first leave their mode",
                "gibbs draws one place at a time, block_gibbs both; passes are exact unless seen",
                "temperature divides the logits of every answer: that is not the temperature of a joint",
                f"model: {lm.name}",
                _strongest(mapped, joint),
            ],
        )  # fmt: skip

    def _row(
        self, pair: PairModel, modes: Modes, way: int, temperature: float, chains: int, steps: int,
        arrived: list[dict[str, Any]],
    ) -> dict[str, Any]:  # fmt: skip
        start, end = (modes.first, modes.second) if way == 0 else (modes.second, modes.first)
        k = pair.shape[1]
        ends, matrix = (start[0] * k + start[1], end[0] * k + end[1]), pair.single_steps(temperature)
        single, both = (
            exact_hitting(matrix, [ends[1]])[ends[0]],
            PASSES["block_gibbs"] / pair.pair_law(temperature)[end],
        )
        soon = due(matrix, *ends, steps)
        anew = np.broadcast_to(pair.pair_law(temperature).ravel(), matrix.shape)  # a step of both places
        row: dict[str, Any] = {"way": "A → B" if way == 0 else "B → A", "temperature": temperature}
        for kernel, exact, shows, known in (
            ("gibbs", float(single), soon, matrix), ("block_gibbs", float(both), float(both), anew),
        ):  # fmt: skip
            # noise of its own for every row, and for every seed
            seed = 2 * len(TEMPERATURES) * self.seed + way + 2 * TEMPERATURES.index(temperature)
            seen = escape(pair, kernel, start, end, temperature, chains, steps, seed)
            row |= {
                kernel: exact,
                f"{kernel}, due": shows,
                f"{kernel}, seen": seen.mean,
                f"{kernel}, from": seen.low,
                f"{kernel}, to": seen.high,
            }
            share = arrivals(known, *ends, steps)
            at = int(np.abs(share - 0.5).argmin())
            tail = FALSE_ALARM / (2 * 2 * len(TEMPERATURES) * len(PASSES))
            low, high = binomial(chains, float(share[at]), tail)
            arrived.append({
                "way": row["way"], "temperature": temperature, "kernel": kernel, "step": at + 1, "exact": share[at],
                "arrived": int((seen.times <= at + 1).sum()), "at least": low, "at most": high,
            })  # fmt: skip
        return row


def two_modes_of(joint: PairJoint) -> Modes:
    """The likeliest pair, and the likeliest that shares no token with it."""
    log_q = joint.matrix().copy()
    first = np.unravel_index(log_q.argmax(), log_q.shape)
    same_a, same_b = joint.unaries.ids_a[first[0]], joint.unaries.ids_b[first[1]]
    log_q[first[0]] = log_q[:, first[1]] = -np.inf
    log_q[joint.unaries.ids_a == same_b] = -np.inf
    log_q[:, joint.unaries.ids_b == same_a] = -np.inf
    second = np.unravel_index(log_q.argmax(), log_q.shape)
    return Modes((int(first[0]), int(first[1])), (int(second[0]), int(second[1])))


def around(lm: LanguageModel, text: str, masked: Sequence[int]) -> list[int]:
    """The places that were masked, and the shown ones nearest to each of them on either side."""
    vocabulary = lm.engine.conditionals.vocabulary
    shown = [place for place in text_places(vocabulary, read(vocabulary, text)) if place not in masked]
    before = [[place for place in shown if place < mask][-NEAR:] for mask in masked]
    after = [[place for place in shown if place > mask][:NEAR] for mask in masked]
    return sorted({*masked, *(place for side in (*before, *after) for place in side)})


def brief(texts: Sequence[str]) -> list[str]:
    """Texts that differ in the middle: whole where they are short, else what is around the difference."""
    if max(map(len, texts)) <= BRIEF:
        return list(texts)
    start, end = (max(0, _alike(*some) - AROUND) for some in (texts, [text[::-1] for text in texts]))
    return [f"{'…' * (start > 0)}{text[start : len(text) - end]}{'…' * (end > 0)}" for text in texts]


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with together."""
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if len({*pair}) > 1), len(one))


def escape(
    pair: PairModel, kernel: str, start: tuple[int, int], end: tuple[int, int], temperature: float, chains: int,
    steps: int, seed: int,
) -> Escape:  # fmt: skip
    """Run a kernel on the kept answers from one pair until it meets the other, so many steps at most."""
    lm = LanguageModel(pair, progress=False)
    text, target = (" ".join(_tokens(pair, mode)) for mode in (start, end))
    run = lm.sample(text, kernel, free="all", chains=chains, steps=steps, every=1, temperature=temperature, seed=seed)
    states = np.array([[" ".join(tokens) for tokens in chain] for chain in run.kept_tokens])  # (C, S + 1)
    found = hitting(states == target, True)
    passes = PASSES[kernel] * int(np.minimum(found.times, steps).sum())
    return rate_interval(int(found.hit.sum()), passes)._replace(times=found.times)


def arrivals(matrix: Floats, start: int, end: int, steps: int) -> Floats:
    """(steps,) the probability that a chain has met the end by step 1, 2, …"""
    law, came = np.eye(len(matrix))[start], [0.0]
    for _ in range(steps):
        law = law @ matrix
        came.append(came[-1] + float(law[end]))
        law[end] = 0.0
    return np.array(came[1:])


def due(matrix: Floats, start: int, end: int, steps: int) -> float:
    """What `passes/came` of chains of so few steps goes to: E min(t, steps) / P(t ≤ steps), t the passes to the end.

    Less than E t where some chains come soon and others are caught elsewhere on their way.
    """
    came = arrivals(matrix, start, end, steps)
    return (steps - float(came[:-1].sum())) / float(came[-1]) if came[-1] else math.inf


def rate_interval(came: int, passes: int) -> Escape:
    """The mean wait of a constant rate, passes/came, with the interval of 95% that counts of rare events have."""
    low = 2 * passes / chi_square(2 * came + 2, OUTSIDE)
    high = 2 * passes / chi_square(2 * came, 1 - OUTSIDE) if came else math.inf
    return Escape(passes / came if came else math.inf, low, high, came)


def _tokens(pair: PairModel, mode: tuple[int, int]) -> tuple[str, str]:
    return pair.tokens[0][mode[0]], pair.tokens[1][mode[1]]


def _written(joint: PairJoint, mode: tuple[int, int]) -> str:
    ids = joint.unaries.ids_a[mode[0]], joint.unaries.ids_b[mode[1]]
    return joint.text(*map(int, ids))


def _barrier(rows: list[dict[str, Any]]) -> float:
    """The slope of log passes against 1/T where it is cold, in nats."""
    cold = [row for row in rows if row["temperature"] <= 1]
    inverse, passes = ([1 / row["temperature"] for row in cold], [math.log(row["gibbs"]) for row in cold])
    return float(np.polyfit(inverse, passes, 1)[0])


def _covered(rows: list[dict[str, Any]]) -> Floats:
    return np.array([[row[f"{kernel}, from"] <= row[f"{kernel}, due"] <= row[f"{kernel}, to"] for kernel in PASSES]
                     for row in rows])  # fmt: skip


def _claims(rows: list[dict[str, Any]], arrived: list[dict[str, Any]], mixing: list[dict[str, Any]]) -> dict[str, bool]:
    single, both = (np.array([row[kernel] for row in rows]).reshape(2, -1) for kernel in PASSES)
    forgets = np.array([row["gibbs"] for row in mixing])
    cool, cold = (np.array(TEMPERATURES) <= most for most in (1.0, 0.8))
    return {
        "the kernels do what the tables say: as many chains have arrived as a binomial band allows": all(
            row["at least"] <= row["arrived"] <= row["at most"] for row in arrived
        ),
        "one place at a time, it takes longer the colder it is, below temperature 1": bool(
            (np.diff(single[:, cool], axis=1) < 0).all()
        ),
        "one place at a time, it forgets where it began the later the colder it is, below temperature 1": bool(
            (np.diff(forgets[cool]) < 0).all()
        ),
        "both places at once take fewer passes wherever it is cold (0.8 and less)": bool(
            (both[:, cold] < single[:, cold]).all()
        ),
    }


def _strongest(mapped: DependenceMap, joint: PairJoint) -> str:
    first = mapped.top(1)[0]
    there = "those" if {first.a, first.b} == {*joint.places.positions} else "not those"
    if mapped.among is None:
        return f"the two places are {there} of the text that depend most on each other"
    return (
        f"the map is of {len(mapped.tokens)} of {mapped.among} tokens, the masked places and the {NEAR} shown ones "
        f"nearest on each side of them; the two are {there} among them that depend most on each other"
    )


def _shown(texts: list[str], rows: list[dict[str, Any]], barrier: float) -> str:
    at = {row["temperature"]: row for row in rows[: len(TEMPERATURES)]}
    warm, cold = at[1.0], at[0.5]
    return (
        f"From {texts[0]!r} to {texts[1]!r} one place at a time takes {warm['gibbs']:,.0f} passes at temperature 1 and "
        f"{cold['gibbs']:,.0f} at 0.5, as if over a barrier of {barrier:.1f} nats; both places at once take "
        f"{warm['block_gibbs']:,.0f} and {cold['block_gibbs']:,.0f}."
    )


def _mixing(pair: PairModel, temperature: float) -> dict[str, Any]:
    """Passes until what a chain began with fades by e; `block_gibbs` draws anew, whatever stood there."""
    return {"temperature": temperature, "gibbs": pair.relaxation(temperature), "block_gibbs": PASSES["block_gibbs"]}


def _figures(
    rows: list[dict[str, Any]], mixing: list[dict[str, Any]], texts: list[str], mapped: DependenceMap
) -> dict[str, Drawing]:
    def passes(ax: Axes) -> None:
        for number, (way, kernel) in enumerate((way, kernel) for kernel in PASSES for way in ("A → B", "B → A")):
            some = [row for row in rows if row["way"] == way]
            x, looks = [row["temperature"] for row in some], style(number)
            label = f"{way}, {LABELS[kernel]}"
            ax.plot(x, [row[kernel] for row in some], label=label, linewidth=1.6, color=looks["color"],
                    linestyle=looks["linestyle"])  # fmt: skip
            ax.plot(x, [row[f"{kernel}, due"] for row in some], linewidth=1.2, color=looks["color"], alpha=0.45)
            seen = [row for row in some if math.isfinite(row[f"{kernel}, seen"])]
            middle = np.array([row[f"{kernel}, seen"] for row in seen])
            ends = np.array([[row[f"{kernel}, from"], row[f"{kernel}, to"]] for row in seen]).reshape(-1, 2).T
            ax.errorbar([row["temperature"] for row in seen], middle, np.abs(ends - middle), fmt=looks["marker"],
                        color=looks["color"], markersize=4.5, capsize=2)  # fmt: skip
        dressed(ax, "temperature", "passes to the other mode", yscale="log")
        ax.set_xticks(TEMPERATURES, [f"{temperature:g}" for temperature in TEMPERATURES])

    def forgets(ax: Axes) -> None:
        named = {label: [row[kernel] for row in mixing] for kernel, label in LABELS.items()}
        curves(ax, TEMPERATURES, named, "temperature", "passes to forget, 1/(1 − |λ₂|)", yscale="log")
        ax.set_xticks(TEMPERATURES, [f"{temperature:g}" for temperature in TEMPERATURES])

    part = "" if mapped.among is None else f", {len(mapped.tokens)} of {mapped.among} tokens"
    return {
        "passes": Drawing(
            f"A = {texts[0]!r}, B = {texts[1]!r}: exact (lines), and seen in chains of so few "
            "steps (points, 95%; faint: what is due in these).",
            passes,
        ),
        "mixing": Drawing(
            "Relaxation time against temperature: how long a chain on the two places keeps what it began with.", forgets
        ),
        "dependence": Drawing(
            f"Mutual information of the places of {texts[0]!r}{part}, given the rest.", mapped.plot, (6, 5)
        ),
    }
