"""What a linear map reads from vectors: multinomial logistic regression, judged on examples that it has not seen.

    min over W, b of  −1/n Σ_i log softmax(W z_i + b)[y_i] + λ / (2 n) ‖W‖²

z are the vectors with mean 0 and variance 1 in each direction, by the examples that are learned from. Folds hold equal
shares of each label; every example is labelled once, by the map that was fitted without it. A probe tells what can be
read from vectors, and not what a network makes use of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from besag import noise
from besag.arrays import Floats, Ints
from besag.checks import array, checked, number, whole_number
from besag.errors import BesagError, quoted
from besag.noise import Measuring
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.plots import bars
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

STEPS = 200  # of L-BFGS, each with a line search


@dataclass(frozen=True, eq=False, repr=False)
class Probe(Presented):
    """How often a linear map is right on examples it was not fitted to."""

    labels: tuple[str, ...]  # (C,)
    true: tuple[str, ...]  # (n,)
    said: tuple[str, ...]  # (n,) of each, by the map fitted without it
    fold: NDArray[np.int64]  # (n,)
    dimensions: int
    penalty: float
    seed: int

    @property
    def right(self) -> NDArray[np.bool_]:
        return np.array([true == said for true, said in zip(self.true, self.said, strict=True)], bool)

    @property
    def accuracy(self) -> float:
        return float(self.right.mean())

    @property
    def usual_accuracy(self) -> float:
        """Of the most frequent label alone."""
        return Counter(self.true).most_common(1)[0][1] / len(self.true)

    @property
    def folds(self) -> Floats:
        """(k,) the accuracy of each."""
        return np.array([self.right[self.fold == one].mean() for one in range(int(self.fold.max()) + 1)])

    @property
    def status(self) -> Status:
        return Status.OK

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        return [
            f"accuracy {self.accuracy:.1%} in {len(self.folds)} folds, from {self.folds.min():.1%} to "
            f"{self.folds.max():.1%}",
            f"the most frequent label alone: {self.usual_accuracy:.1%}",
            f"{counted(len(self.true), 'example')}, {self.dimensions:,} dimensions, penalty {self.penalty:g}",
            f"seed {self.seed}",
        ]

    def by_label(self) -> dict[str, tuple[int, float]]:
        """How many examples each label has, and what share of them is found."""
        true, right = np.array(self.true), self.right
        return {name: (int((true == name).sum()), float(right[true == name].mean())) for name in self.labels}

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        names = ("accuracy", "usual_accuracy", "folds", "labels", "true", "said", "dimensions", "penalty", "seed")
        return dict(json_ready({**self._answers(), **{name: getattr(self, name) for name in names}}))

    def to_pandas(self) -> DataFrame:
        """One row an example."""
        columns = {"true": self.true, "said": self.said, "fold": self.fold, "right": self.right}
        return data.frame(self, columns, accuracy=self.accuracy)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """What share of each label is found."""
        found = self.by_label()
        return bars(ax, list(found), [share for _, share in found.values()], "share found", self.facts)

    def _grids(self) -> list[Grid]:
        lines = [Line((name, f"{n:,}", f"{share:.1%}"), share=share) for name, (n, share) in self.by_label().items()]
        return [Grid(("label", "examples", "found"), lines, left=(0,), bar=2)]


@checked
def probe(vectors: ArrayLike, labels: Sequence[str], *, folds: int = 5, penalty: float = 1.0, seed: int = 0) -> Probe:
    """Can the labels be read from the vectors by a linear map? Cross-validated.

    Args:
        vectors: one row an example, as from `lm.embed`.
        labels: as many.
        folds: parts that take turns to be held out.
        penalty: λ of the squared weights.
        seed: of which example is in which fold.

    Returns:
        A `Probe`, with its accuracy on examples that were held out, and that of the most frequent label.

    Examples:
        >>> vectors = [[0.0, 1.0], [0.1, 0.9], [1.0, 0.0], [0.9, 0.2]] * 5
        >>> besag.probe(vectors, ["up", "up", "right", "right"] * 5).accuracy
        1.0
    """
    x = array(vectors, "vectors")
    if x.ndim != 2 or len(x) != len(labels) or not np.isfinite(x).all():
        raise BesagError(
            f"vectors of the shape {x.shape} for {len(labels)} labels: give a row of finite numbers for each label"
        )
    whole_number(folds, "folds", least=2)
    number(penalty, "penalty", least=0)
    names = tuple(sorted(set(labels)))
    if len(names) < 2:
        raise BesagError(f"all labels are {quoted(names[0] if names else None)}: a probe needs at least two")
    rarest = min(Counter(labels).values())
    if rarest < folds:
        raise BesagError(f"folds={folds}: the rarest label has {counted(rarest, 'example')}, and each fold needs one")
    y = np.searchsorted(np.array(names), np.array(labels))
    fold = _folds(y, folds, seed)
    said = np.empty(len(y), np.int64)
    for one in range(folds):
        out = fold == one
        said[out] = fitted(x[~out], y[~out], len(names), penalty, x[out])
    return Probe(names, tuple(labels), tuple(names[i] for i in said), fold, x.shape[1], float(penalty), seed)


def _folds(y: Ints, folds: int, seed: int) -> Ints:
    """(n,) a fold for each example; of each label every fold has as many, or one more."""
    draws = noise.uniform(seed, Measuring.SUBSET, np.arange(len(y)))
    fold = np.empty(len(y), np.int64)
    for label in np.unique(y):
        own = np.flatnonzero(y == label)
        fold[own[np.argsort(draws[own], kind="stable")]] = np.arange(len(own)) % folds
    return fold


def fitted(x: Floats, y: Ints, labels: int, penalty: float, asked: Floats) -> Ints:
    """(m,) what the map that is fitted to x (n, H) and y (n,) says of others (m, H)."""
    mean, spread = x.mean(0), x.std(0)
    scale = np.where(spread > 0, spread, 1.0)
    weight = weights((x - mean) / scale, y, labels, penalty)
    z = np.append((asked - mean) / scale, np.ones((len(asked), 1)), 1)
    return np.asarray((z @ weight.T).argmax(1))


def weights(z: Floats, y: Ints, labels: int, penalty: float) -> Floats:
    """(C, H + 1) the minimum, bias last, by L-BFGS in float64 from 0: there is one minimum."""
    inputs, target = torch.from_numpy(np.append(z, np.ones((len(z), 1)), 1)), torch.from_numpy(y)
    weight = torch.zeros(labels, inputs.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight], max_iter=STEPS, tolerance_grad=1e-7, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        wrong = torch.nn.functional.cross_entropy(inputs @ weight.T, target)
        found = wrong + penalty / (2 * len(z)) * weight[:, :-1].square().sum()
        found.backward()  # type: ignore[no-untyped-call]
        return found

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return weight.detach().numpy()
