"""The laws of kernels, followed through all ways there: what the tests of several kernels hold them against.

Plain loops from the definitions; what belongs to one kernel alone stands in its own test. Import it as
`tests.samplers.enumerated`.
"""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import pytest
import torch

from besag.conditionals.contract import Conditionals, Questions
from besag.conditionals.table import Table
from besag.lab.oracles import conditional, number, sequences
from besag.samplers.kernels.schedules import SCHEDULES, shown

# ---- texts in which some places are masked


class Partial:
    """Laws over the (V + 1)^n texts in which some places are masked: V is the mask. Every place moves on its own."""

    def __init__(self, law, places):
        self.width, self.places = law.width, places
        self.texts = [np.array(text) for text in product(range(law.width + 1), repeat=places)]
        self.rows = {}  # (text, place) -> (V,) the answer there, where it is hidden
        for text in self.texts:
            hides = [place for place in range(places) if text[place] == law.width]
            self.rows.update({(tuple(text), place): conditional(law, text, hides, place) for place in hides})

    def masks(self):
        """All the mass on the text of masks."""
        start = np.zeros(len(self.texts))
        start[-1] = 1
        return start

    def moved(self, start, move):
        """One step: `move(text, place)` is the law (V + 1,) of what stands at a place next."""
        end = np.zeros(len(self.texts))
        for at in np.flatnonzero(start):
            text = tuple(self.texts[at])
            joint = np.array(start[at])
            for place in range(self.places):
                joint = np.multiply.outer(joint, move(text, place))
            end += joint.ravel()
        return end

    def full(self, law):
        """(V^n,) the law of a text in which nothing is masked."""
        shape = (self.width + 1,) * self.places
        inside = law.reshape(shape)[(slice(self.width),) * self.places]
        assert inside.sum() == pytest.approx(1)
        return inside.ravel()

    def stays(self, token):
        return np.eye(self.width + 1)[token]


def ancestral_law(law, places, grid, schedule="log_linear"):
    """(V^n,) the law of ancestral sampling, step by step as it is defined."""
    partial = Partial(law, places)
    alpha = np.array([shown(SCHEDULES[schedule], grid, step) for step in range(grid + 1)])
    now = partial.masks()
    for before, after in pairwise(alpha):
        chance = (after - before) / (1 - before)

        def move(text, place, chance=chance):
            if text[place] < law.width:
                return partial.stays(text[place])
            return np.append(chance * partial.rows[text, place], 1 - chance)

        now = partial.moved(now, move)
    return partial.full(now)


# ---- one place after the other, or several from one pass

ADAPTIVE = ("entropy", "margin", "confidence")
FIXED = ("left_to_right", "right_to_left", *ADAPTIVE)  # the filling so far decides the next place


def keys(order: str, rows: dict[int, np.ndarray]) -> dict[int, float]:
    """The least comes first."""
    if order == "entropy":
        return {place: float(-(row * np.log(row)).sum()) for place, row in rows.items()}
    if order == "margin":
        return {place: float(np.sort(row)[-2] - np.sort(row)[-1]) for place, row in rows.items()}
    if order == "confidence":
        return {place: float(-row.max()) for place, row in rows.items()}
    return {place: float(place if order == "left_to_right" else -place) for place in rows}


def filling_law(law, start, order: str, size: int = 1, change=lambda row: row) -> np.ndarray:
    """(V^n,) the probability of each filling of `start`, where the mask id is hidden: all ways there, followed."""
    width, start = law.width, np.asarray(start)
    total = np.zeros(width ** len(start))

    def follow(sequence: np.ndarray, weight: float) -> None:
        hides = [place for place in range(len(start)) if sequence[place] == width]
        if not hides:
            total[number(sequence[None], width)[0]] += weight
            return
        rows = {place: change(conditional(law, sequence, hides, place)) for place in hides}
        taken = min(size, len(hides))
        if order == "random":
            groups = list(combinations(hides, taken))
        else:
            key = keys(order, rows)
            groups = [tuple(sorted(hides, key=lambda place: (key[place], place))[:taken])]
        for group in groups:
            for tokens in product(range(width), repeat=taken):
                moved, share = sequence.copy(), weight / len(groups)
                for place, token in zip(group, tokens, strict=True):
                    moved[place] = token
                    share *= rows[place][token]
                follow(moved, share)

    follow(start, 1.0)
    return total


# ---- what is lost by drawing places together


def entropy(row: np.ndarray) -> float:
    row = row[row > 0]
    return float(-(row * np.log(row)).sum())


def total_correlation(joint: np.ndarray, sequence: np.ndarray, together: list[int]) -> float:
    """KL(p(x_S | shown) ‖ Π p(x_i | shown)), summed over all values of the places of S."""
    width, places = joint.shape[0], joint.ndim
    every = sequences(width, places)
    shown = [place for place in range(places) if sequence[place] != width]
    fits = (every[:, shown] == sequence[shown]).all(1)
    weight = joint.ravel()[fits] / joint.ravel()[fits].sum()
    values = every[fits][:, together]
    whole = np.zeros((width,) * len(together))
    np.add.at(whole, tuple(values.T), weight)
    singles = [
        whole.sum(tuple(other for other in range(len(together)) if other != axis)) for axis in range(len(together))
    ]
    loss = 0.0
    for cell in product(range(width), repeat=len(together)):
        if whole[cell] > 0:
            loss += whole[cell] * np.log(whole[cell] / np.prod([singles[axis][v] for axis, v in enumerate(cell)]))
    return float(loss)


# ---- energies, and the moves of Metropolis


def energy_of(law: Conditionals, sequence: np.ndarray, energy: str) -> float:
    """The definition: one place hidden at a time, the logit of what stood there, normalised or not."""
    total = 0.0
    for place, token in enumerate(sequence):
        ids = torch.as_tensor(sequence.copy())[None]
        ids[0, place] = law.width
        logits = law.head(law.rows(Questions(ids, torch.tensor([0]), torch.tensor([place]))))[0].numpy()
        total -= logits[token] - (np.logaddexp.reduce(logits) if energy == "norm" and logits[token] > -np.inf else 0)
    return total


def energy_law(law: Conditionals, places: int, energy: str, temperature: float = 1.0) -> np.ndarray:
    """(V^n,) exp(−E/T), normalised, in the order of the sequences' numbers."""
    every = np.array([energy_of(law, sequence, energy) for sequence in sequences(law.width, places)])
    weights = np.exp(-(every - every.min()) / temperature)
    return weights / weights.sum()


MOVES = [("single", None), ("block", 2), ("adjacent", 2)]


def as_it_is(row):
    return row


def sets_of(move, places, size=2):
    return {
        "single": [[place] for place in range(places)],
        "block": [list(chosen) for chosen in combinations(range(places), size)],
        "adjacent": [list(range(first, first + size)) for first in range(places - size + 1)],
    }[move]


def move_matrix(law, places, move, target, shape=as_it_is):
    """(V^n, V^n) propose and accept, for a target (V^n,), from the definition; `shape` is what is made of a row."""
    sets = sets_of(move, places)
    every = sequences(law.width, places)
    matrix = np.zeros((len(every), len(every)))
    for at, sequence in enumerate(every):
        for hide in sets:
            rows = [shape(conditional(law, sequence, hide, place)) for place in hide]
            back = np.prod([row[sequence[place]] for row, place in zip(rows, hide, strict=True)])
            for tokens in product(range(law.width), repeat=len(hide)):
                moved = sequence.copy()
                moved[hide] = tokens
                [to] = number(moved[None], law.width)
                there = np.prod([row[token] for row, token in zip(rows, tokens, strict=True)])
                if there > 0:
                    ratio = target[to] * back / (target[at] * there) if target[at] > 0 else 1
                    matrix[at, to] += there * min(1, ratio) / len(sets)
        matrix[at, at] += 1 - matrix[at].sum()
    return matrix


# ---- the toy of the papers


def toy() -> Table:
    """Half of the mass on "was walking along", half on "was quietly walking"."""
    joint = np.zeros((4, 4, 4))
    joint[0, 2, 3] = joint[0, 1, 2] = 0.5
    return Table(joint, symbols=["was", "quietly", "walking", "along"])
