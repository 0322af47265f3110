"""The kernels that are Markov chains, as transitions: from a law alone, nothing drawn.

    gibbs         x_i ~ p(x_i | x_−i), i uniform, or in turn (a sweep is one step)
    blocks        x_K ~ p(x_K | x_−K), K of a law of masks: uniform k-sets, weights, or p(K | x), which the draw then
                  knows of: x_K ~ p(x_K | x_−K, K) ∝ p(x) p(K | x)
    metropolis    the model proposes Π_{i∈K} p(x_i | x_−K), an energy decides, as `metropolis` of samplers does
    tempering     two or more such chains at a ladder of temperatures, with swaps, on the product of their states
    independent   x_i ~ p(x_i | x_−K) for all i ∈ K from one pass: a product, so that p itself is not kept
    all_sites     x_i ~ p(x_i | x_−i) for all i at once

Blocks meet detailed balance with p, and are positive: a mixture of projections. The two products at the end have a law
of their own. `passes` counts what a masked model would be asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from typing import Literal

import numpy as np

from besag.arrays import Floats, Ints
from besag.checks import checked, number, whole_number
from besag.errors import BesagError, quoted
from besag.lab.chains.transition import MOST_DENSE, Dense, Product, Transition, refuse_dense
from besag.lab.learning.masks import Masks, checked_masks, uniform_masks
from besag.lab.systems.system import law_of

TEMPERATURES = 1e-3, 1e6  # the coldest and the hottest: colder ones leave float64
MoveName = Literal["single", "block", "adjacent"]


class Blocks(Transition):
    """A set of places at a time, drawn from its conditional."""

    reversible = True

    def __init__(self, law: object, masks: Masks, name: str = "blocks") -> None:
        self.aim, self.name = law_of(law, positive=True), name
        self.masks = dict(checked_masks(masks, self.aim.shape))  # each weight broadcasts over the law
        self.passes = float(sum(len(places) * np.sum(self.aim * weight) for places, weight in self.masks.items()))
        if unseen := sorted(set(range(self.aim.ndim)) - {place for places in self.masks for place in places}):
            raise BesagError(
                f"places {unseen} are in no mask, so the chain is reducible: what stands there never moves"
            )

    @cached_property
    def law(self) -> Floats:
        return np.asarray(self.aim.ravel())

    @cached_property
    def _parts(self) -> list[tuple[tuple[int, ...], Floats, Floats]]:
        """Of each mask: its axes, w p for w = p(K | x) or 1 times the weight, and Σ_K w p."""
        found = []
        for places, weight in self.masks.items():
            mass = self.aim * weight
            found.append((places, mass, mass.sum(places, keepdims=True)))
        return found

    def forward(self, f: Floats) -> Floats:
        shaped = f.reshape(*self.aim.shape, -1)
        moved = np.zeros_like(shaped)
        for (places, mass, total), weight in zip(self._parts, self.masks.values(), strict=True):
            mean = (mass[..., None] * shaped).sum(places, keepdims=True)
            kept = np.divide(mean, total[..., None], out=np.zeros_like(mean), where=total[..., None] > 0)
            moved += weight[..., None] * kept
        return moved.reshape(f.shape)


@checked
def gibbs(law: object, scan: Literal["random", "systematic"] = "random") -> Transition:
    """One place at a time; with `scan="systematic"` a step is a sweep from the first place to the last.

    Args:
        law: a system, or an array (V_1, …, V_N).
        scan: which place is next: any, or in turn.

    Returns:
        The chain.

    Examples:
        >>> from besag.lab.chains import gibbs
        >>> gibbs([[0.4, 0.1], [0.1, 0.4]]).matrix.round(2)[0]
        array([0.8, 0.1, 0.1, 0. ])
    """
    table = law_of(law, positive=True)
    if scan == "random":
        return Blocks(table, uniform_masks(table.ndim, 1), "single site")
    return Product([_One(table, place) for place in range(table.ndim)], "sweep")


class _One(Blocks):
    """A given place, alone; only together with others is it a chain of one law."""

    def __init__(self, table: Floats, place: int) -> None:
        self.aim, self.name, self.passes = table, f"place {place}", 1.0
        self.masks = {(place,): np.ones((1,) * table.ndim)}


@checked
def blocks(law: object, masks: int | Masks) -> Blocks:
    """A block at a time, drawn from its conditional: k passes for k places.

    Args:
        law: a system, or an array (V_1, …, V_N).
        masks: k for uniform sets of k places; or sets with their probabilities, numbers or arrays p(K | x).

    Returns:
        The chain.

    Examples:
        >>> from besag.lab.chains import blocks
        >>> blocks([[0.4, 0.1], [0.1, 0.4]], {(0,): 0.5, (0, 1): 0.5}).passes
        1.5
    """
    table = law_of(law, positive=True)
    chosen = Blocks(table, _masks(table, masks))
    adaptive = any(weight.size > 1 for weight in chosen.masks.values())
    chosen.name = f"blocks of {masks}" if isinstance(masks, int) else f"{'adaptive' if adaptive else 'weighted'} blocks"
    return chosen


@checked
def independent(law: object, masks: int | Masks) -> Dense:
    """A block at a time, all its places from one pass: Π_{i∈K} p(x_i | x_−K).

    Args:
        law: a system, or an array (V_1, …, V_N).
        masks: k for uniform sets of k places; or sets with their probabilities, which may not look at the state.

    Returns:
        The chain; its law is its own.

    Examples:
        >>> from besag.lab.chains import independent
        >>> independent([[0.4, 0.1], [0.1, 0.4]], 2).matrix[0]
        array([0.25, 0.25, 0.25, 0.25])
    """
    table = law_of(law, positive=True)
    chosen = Blocks(table, _masks(table, masks)).masks
    matrix = _empty(table.size, "independent blocks")
    for places, weight in chosen.items():
        if weight.size > 1:
            raise BesagError(f"masks[{quoted(places)}]: a parallel pass does not know why its places were hidden")
        fibres = _fibres(table.shape, places)  # (F, B)
        drawn = _answers(table, places).ravel()[fibres]  # (F, B)
        matrix[fibres[:, :, None], fibres[:, None, :]] += weight.item() * drawn[:, None, :]
    return Dense(matrix, table, "independent blocks", passes=1.0)


@checked
def all_sites(law: object) -> Dense:
    """Every place from its conditional given all others, at once.

    Args:
        law: a system, or an array (V_1, …, V_N).

    Returns:
        The chain; its law is its own. One pass, of a model that answers at places it sees.

    Examples:
        >>> from besag.lab.chains import all_sites
        >>> all_sites([[0.4, 0.1], [0.1, 0.4]]).matrix[0].round(2)
        array([0.64, 0.16, 0.16, 0.04])
    """
    table = law_of(law, positive=True)
    matrix = _empty(table.size, "all sites at once") + 1
    symbols = np.unravel_index(np.arange(table.size), table.shape)
    for place in range(table.ndim):
        fibres = _fibres(table.shape, (place,))  # (F, V)
        row = np.empty((table.size, table.shape[place]))  # of each state, p(x_i = v | x_−i)
        row[fibres] = _answers(table, (place,)).ravel()[fibres][:, None, :]
        matrix *= row[:, symbols[place]]
    return Dense(matrix, table, "all sites at once", passes=1.0)


@checked
def metropolis(
    law: object, energy: Literal["norm", "raw"] = "norm", energy_temperature: float = 1.0, move: MoveName = "single",
    size: int | None = None, temperature: float = 1.0,
) -> Dense:  # fmt: skip
    """The kernel `metropolis` of besag on the conditionals of a law; options mean the same.

    Args:
        law: a system, or an array (V_1, …, V_N).
        energy: "norm" for −Σ log p(x_i | x_−i), "raw" for −N log p(x), what logits of an exact law give.
        energy_temperature: T of the target exp(−E/T).
        move: which places are proposed together.
        size: places of a block or a run; 2 if left out.
        temperature: divides the logits of the proposal.

    Returns:
        The chain; its law is exp(−E/T), normalised.

    Examples:
        >>> from besag.lab.chains import metropolis
        >>> metropolis([[0.4, 0.1], [0.1, 0.4]]).law
        array([0.47058824, 0.02941176, 0.02941176, 0.47058824])
    """
    table = law_of(law, positive=True)
    number(energy_temperature, "energy_temperature", *TEMPERATURES)
    number(temperature, "temperature", *TEMPERATURES)
    target = tempered(table, energy, energy_temperature)
    matrix = _metropolis(table, target, _moves(table.ndim, move, size), temperature)
    passes = table.ndim + (0.0 if move == "single" else 1.0)
    return Dense(matrix, table, "metropolis", passes, target, reversible=True)


@checked
def tempering(
    law: object, rungs: int = 2, hottest: float = 4.0, energy: Literal["norm", "raw"] = "norm",
    energy_temperature: float = 1.0, move: MoveName = "single", size: int | None = None,
) -> Dense:  # fmt: skip
    """The kernel `tempering` of besag, on the product of the states of its rungs, the cold one most significant.

    Args:
        law: a system, or an array (V_1, …, V_N).
        rungs: temperatures of the ladder.
        hottest: energy temperature of the last rung.
        energy: as in `metropolis`.
        energy_temperature: of the cold rung.
        move: which places are proposed together.
        size: places of a block or a run; 2 if left out.

    Returns:
        The chain on S^rungs states. With three rungs or more a step is two of the kernel's, for it swaps even pairs and
        odd pairs by turns.

    Examples:
        >>> from besag.lab.chains import tempering
        >>> tempering([[0.4, 0.1], [0.1, 0.4]]).size
        16
    """
    table = law_of(law, positive=True)
    whole_number(rungs, "rungs", 2, most=6)
    number(energy_temperature, "energy_temperature", *TEMPERATURES)
    if number(hottest, "hottest", *TEMPERATURES) <= energy_temperature:
        raise BesagError(f"hottest={hottest:g}: the ladder climbs from energy_temperature={energy_temperature:g}")
    if table.size**rungs > MOST_DENSE:
        raise BesagError(
            f"a ladder of {rungs} on {table.size:,} states has {table.size**rungs:,} of them together, and a matrix is "
            f"written down up to {MOST_DENSE:,}: {int(MOST_DENSE ** (1 / rungs) + 1e-9)} states are the most that work"
        )
    hot = energy_temperature * (hottest / energy_temperature) ** (np.arange(rungs) / (rungs - 1))
    targets = [tempered(table, energy, float(one)) for one in hot]
    sets = _moves(table.ndim, move, size)
    steps = [_metropolis(table, aim, sets, float(one / hot[0])) for aim, one in zip(targets, hot, strict=True)]
    walk = _kron(steps)
    swaps = [_swaps(targets, first) for first in ((0,) if rungs == 2 else (0, 1))]
    matrix = reduce(np.matmul, [walk @ swap for swap in swaps])
    passes = len(swaps) * rungs * (table.ndim + (0.0 if move == "single" else 1.0))
    return Dense(matrix, table, "tempering", passes, _kron(targets))


def _kron(parts: Sequence[Floats]) -> Floats:
    """The parts side by side, the first most significant."""
    whole: Floats = np.ones((1,) * parts[0].ndim)
    for part in parts:
        whole = np.asarray(np.kron(whole, part), np.float64)
    return whole


def tempered(table: Floats, energy: str, temperature: float) -> Floats:
    """(S,) exp(−E/T), normalised."""
    single = [np.log(table) - np.log(table.sum(place, keepdims=True)) for place in range(table.ndim)]
    level = np.ravel(sum(single) if energy == "norm" else table.ndim * np.log(table)) / temperature
    weights = np.exp(level - level.max())
    return np.asarray(weights / weights.sum())


# ---- parts


def _masks(table: Floats, masks: int | Masks) -> Masks:
    return uniform_masks(table.ndim, masks) if isinstance(masks, int) else masks


def _empty(size: int, name: str) -> Floats:
    refuse_dense(size, name)
    return np.zeros((size, size))


def _fibres(shape: tuple[int, ...], places: Sequence[int]) -> Ints:
    """(F, B) states that agree outside of some places, side by side."""
    numbers = np.moveaxis(np.arange(np.prod(shape)).reshape(shape), places, range(-len(places), 0))
    return np.asarray(numbers.reshape(-1, int(np.prod([shape[place] for place in places]))))


def _answers(table: Floats, places: Sequence[int], temperature: float = 1.0) -> Floats:
    """Π_{i∈K} p(x_i | x_−K) of every state, in the shape of the law, each row made hotter by its temperature."""
    product = np.ones_like(table)
    for place in places:
        others = tuple(other for other in places if other != place)
        row = table.sum(others, keepdims=True) if others else table
        row = np.exp(np.log(row) / temperature)
        product = product * (row / row.sum(place, keepdims=True))
    return product


def _moves(places: int, move: MoveName, size: int | None) -> list[tuple[int, ...]]:
    count = 1 if move == "single" else whole_number(2 if size is None else size, "size", most=places)
    if move == "adjacent":
        return [tuple(range(first, first + count)) for first in range(places - count + 1)]
    return list(uniform_masks(places, count))


def _metropolis(table: Floats, target: Floats, sets: list[tuple[int, ...]], temperature: float) -> Floats:
    """(S, S) propose and accept: q(x') min(1, t(x') q(x) / (t(x) q(x')))."""
    matrix = _empty(table.size, "metropolis")
    for places in sets:
        fibres = _fibres(table.shape, places)  # (F, B)
        drawn = _answers(table, places, temperature).ravel()[fibres]
        ratio = target[fibres] / drawn  # t/q
        moved = drawn[:, None, :] * np.minimum(1.0, ratio[:, None, :] / ratio[:, :, None])
        matrix[fibres[:, :, None], fibres[:, None, :]] += moved / len(sets)
    at = np.arange(table.size)
    matrix[at, at] += 1 - matrix.sum(1)
    return matrix


def _swaps(targets: list[Floats], first: int) -> Floats:
    """(S^K, S^K) the rungs first, first + 2 … change places with the next one, each pair by itself."""
    size, rungs = len(targets[0]), len(targets)
    total = size**rungs
    matrix = np.eye(total)
    states = np.stack(np.unravel_index(np.arange(total), (size,) * rungs))  # (K, S^K)
    for cold in range(first, rungs - 1, 2):
        here, there = targets[cold], targets[cold + 1]
        a, b = states[cold], states[cold + 1]
        chance = np.minimum(1.0, here[b] * there[a] / (here[a] * there[b]))
        swapped = states.copy()
        swapped[[cold, cold + 1]] = b, a
        one = np.zeros((total, total))
        at = np.arange(total)
        one[at, np.ravel_multi_index(tuple(swapped), (size,) * rungs)] += chance
        one[at, at] += 1 - chance
        matrix = matrix @ one
    return matrix
