"""Where left to right fails and any order does not: a star whose centre stands last.

Leaves depend on one another through the centre alone. Given the centre they are independent, so an order that takes it
first needs two passes, or conditionals that look at one place. Left to right meets the centre last: before it, every
leaf depends on all leaves so far.

    passes       a group of places drawn at once loses its total correlation given what is shown before
    look-back    a conditional that sees only w of the places before it (the best w) loses I(x_i; others | those w)

Leaves are exchangeable, so an order matters by where it takes the centre alone: the mean over all orders is that over
the centre's N places, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, ClassVar

import numpy as np

from besag.arrays import Floats
from besag.checks import number, whole_number
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.pictures import curves
from besag.lab.systems.graphs import Graph
from besag.lab.systems.pairwise import ising


@register
@dataclass(frozen=True)
class StarOrder(Experiment):
    name: ClassVar[str] = "star_order"
    title: ClassVar[str] = "where left to right fails and any order does not"
    simulated: ClassVar[bool] = False
    claim: ClassVar[str] = "on a star with its centre last, few passes or a short look-back are exact only centre first"
    cite: ClassVar[tuple[str, ...]] = ("li2024",)

    places: Annotated[int, "spins, the centre counted"] = 6
    coupling: Annotated[float, "of the centre and each leaf"] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self.places, "places", least=4, most=10)
        number(self.coupling, "coupling", least=-5, most=5)

    def measure(self, full: bool) -> Finding:
        places = self.places + (2 if full else 0)
        centre = places - 1
        graph = Graph(places, tuple((leaf, centre) for leaf in range(centre)), "star")
        law = ising(graph, self.coupling).law
        entropy = _Entropies(law)
        orders = [[*range(at), centre, *range(at, centre)] for at in range(places)]
        left, first = list(range(places)), [centre, *range(centre)]
        counts = list(range(1, places + 1))
        passes = {
            "left to right": np.array([_by_passes(entropy, _even(left, n)) for n in counts]),
            "all orders, mean": np.array([np.mean([_by_passes(entropy, _even(one, n)) for one in orders])
                                             for n in counts]),
            "centre first": np.array([_by_passes(entropy, [[centre], *_even(first[1:], n - 1)] if n > 1 else [first])
                                      for n in counts]),
        }  # fmt: skip
        some = {"left to right": [left], "all orders, mean": orders, "centre first": [first]}
        back = {
            name: np.array([np.mean([_by_window(entropy, order, w) for order in own]) for w in range(places)])
            for name, own in some.items()
        }
        rows, seen = _rows("passes", counts, passes), _rows("places seen", list(range(places)), back)
        return Finding(
            shown=(
                "Centre first is exact with two passes, and with conditionals that look at one place. Left to right is "
                "exact only one place at a time, with everything before in sight. To choose the order is what helps: "
                "one drawn at random sees more in a short look-back, but gains nothing in passes."
            ),
            claims={
                "centre first loses nothing from two passes on": bool(passes["centre first"][1:].max() < 1e-9),
                "left to right loses something with every number of passes below one a place": bool(
                    passes["left to right"][:-1].min() > 1e-6
                ),
                "centre first loses nothing when each conditional sees one place": bool(
                    back["centre first"][1:].max() < 1e-9
                ),
                "left to right loses something when a conditional sees fewer than all leaves before it": bool(
                    back["left to right"][: places - 2].min() > 1e-6
                ),
                "the mean over all orders loses less than left to right with a look-back in between": bool(
                    (back["all orders, mean"][1 : places - 1] < back["left to right"][1 : places - 1]).all()
                ),
            },
            tables={f"KL lost (nats), {places} spins in a star, J = {self.coupling:g}": rows,
                    "KL lost (nats) when each conditional sees w places before it": seen},
            arrays={"passes": np.array(counts), **{f"by passes, {name}": one for name, one in passes.items()},
                    **{f"by places seen, {name}": one for name, one in back.items()}},
            figures={
                "passes": Drawing(
                    "KL lost by drawing groups of places at once, against the number of passes; the centre is last.",
                    lambda ax: curves(ax, counts, passes, "forward passes", "KL(p ‖ q) (nats)"),
                ),
                "look-back": Drawing(
                    "KL lost by conditionals that see only so many of the places drawn before them, the best ones.",
                    lambda ax: curves(ax, np.arange(places), back, "places seen", "KL(p ‖ q) (nats)"),
                ),
            },
            notes=("the mean over all orders is one over the centre's place in the order: leaves are exchangeable",),
        )  # fmt: skip


def _rows(name: str, values: list[int], named: dict[str, Floats]) -> list[dict[str, Any]]:
    return [{name: value, **{curve: float(one[at]) for curve, one in named.items()}} for at, value in enumerate(values)]


class _Entropies(dict[tuple[int, ...], float]):
    """H(x_S) of every set that is asked for, in nats."""

    def __init__(self, law: Floats) -> None:
        super().__init__()
        self.law = law

    def __missing__(self, places: tuple[int, ...]) -> float:
        others = tuple(place for place in range(self.law.ndim) if place not in places)
        flat = self.law.sum(others).ravel()
        self[places] = float(-(flat * np.log(flat)).sum())
        return self[places]

    def given(self, places: list[int], shown: list[int]) -> float:
        return self[tuple(sorted({*places, *shown}))] - self[tuple(sorted(shown))]


def _even(order: list[int], groups: int) -> list[list[int]]:
    """The order cut into so many groups of like size; empty ones left out."""
    return [part.tolist() for part in np.array_split(np.array(order, dtype=np.int64), max(groups, 1)) if len(part)]


def _by_passes(entropy: _Entropies, groups: list[list[int]]) -> float:
    """Σ over groups of TC(group | shown before)."""
    lost, shown = 0.0, list[int]()
    for group in groups:
        lost += sum(entropy.given([place], shown) for place in group) - entropy.given(group, shown)
        shown = [*shown, *group]
    return max(0.0, lost)


def _by_window(entropy: _Entropies, order: list[int], width: int) -> float:
    """Σ_i of the least H(x_i | w places before) − H(x_i | all before)."""
    lost = 0.0
    for at, place in enumerate(order):
        before = order[:at]
        least = min(entropy.given([place], list(some)) for some in combinations(before, min(width, at)))
        lost += least - entropy.given([place], before)
    return max(0.0, lost)
