"""The answers of a model at two places of a text, over candidates: asked once, then free, and small enough to be exact.

Two masks of a sentence leave m × k pairs. Their conditionals, as the model gives them, are all that a sampler of those
two places ever asks; so a chain on them is a known matrix, and the kernels of `samplers/` run on the tables as they
would run on the model. What is not a candidate cannot be drawn; conditionals are renormalised over what is.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from besag.arrays import Floats
from besag.checks import number
from besag.conditionals.contract import Questions
from besag.errors import BesagError
from besag.joints.pair import PairJoint
from besag.vocabulary import Vocabulary

MOST_STATES = 2**12  # pairs whose chain is written down as a matrix


class PairModel:
    """Conditionals of two places, a model that `besag.load` takes: texts are two of its symbols.

    Args:
        joint: of two places, by any construction; its conditionals are taken, not its law.

    Examples:
        >>> import besag
        >>> from besag.lab import PairModel
        >>> pair = PairModel(besag.load(besag.Table([[0.4, 0.1], [0.1, 0.4]])).joint("[MASK] [MASK]"))
        >>> pair.single_steps()[0].round(2).tolist()  # from s0 s0: stay, or change one
        [0.8, 0.1, 0.1, 0.0]
    """

    sees: Literal["both", "left"] = "both"
    max_length: int | None = None
    device = torch.device("cpu")
    dtype = torch.float64
    pads = False

    def __init__(self, joint: PairJoint) -> None:
        asked = joint.unaries
        self.name = joint.model
        self.log_a, self.log_b = (table.double().cpu() for table in (asked.log_a, asked.log_b))  # (m, k)
        self.hidden = tuple(row.double().cpu() for row in (asked.hidden_a, asked.hidden_b))
        tokens = [[joint.vocabulary.token(id) for id in ids] for ids in (asked.ids_a, asked.ids_b)]
        symbols = list(dict.fromkeys(tokens[0] + tokens[1]))
        self.tokens, self.width = (tuple(tokens[0]), tuple(tokens[1])), len(symbols)
        self.vocabulary = Vocabulary.of_symbols(symbols)
        self.outcomes = tuple(torch.tensor([symbols.index(token) for token in side]) for side in tokens)
        self._row = [torch.full((self.width,), -1).index_put((own,), torch.arange(len(own))) for own in self.outcomes]

    @property
    def shape(self) -> tuple[int, int]:
        return self.log_a.shape[0], self.log_a.shape[1]

    def rows(self, questions: Questions) -> Tensor:
        if questions.ids.shape[1] != 2:
            raise BesagError(f"{self.name!r} is asked at two places; got a sequence of {questions.ids.shape[1]}")
        answers = torch.full((len(questions.row), self.width), -torch.inf, dtype=self.dtype)
        tables = self.log_a.T, self.log_b  # by the other's token
        for place in (0, 1):
            asks = torch.nonzero(questions.place == place)[:, 0]
            other = questions.ids[questions.row[asks], 1 - place]
            hides = other == self.width
            own = self._row[1 - place][other.masked_fill(hides, 0)]
            if bool((own[~hides] < 0).any()):
                raise BesagError(f"{self.name!r} is shown a token at place {1 - place} that is no candidate there")
            found = torch.where(hides[:, None], self.hidden[place], tables[place][own.clamp_min(0)])
            answers[asks[:, None], self.outcomes[place]] = found
        return answers

    def head(self, rows: Tensor) -> Tensor:
        return rows

    def tempered(self, temperature: float) -> tuple[Floats, Floats, Floats, Floats]:
        """A, B and the two-mask answers with logits divided by a temperature: (m, k), (m, k), (m,), (k,)."""
        inverse = 1 / number(temperature, "temperature", least=1e-3, most=1e3)
        parts = zip((self.log_a, self.log_b, *self.hidden), (0, 1, 0, 0), strict=True)
        a, b, hidden_a, hidden_b = (torch.softmax(table * inverse, axis).numpy() for table, axis in parts)
        return a, b, hidden_a, hidden_b

    def single_steps(self, temperature: float = 1.0) -> Floats:
        """The transition matrix of `gibbs`, one of the two places by a coin; state x·k + y."""
        m, k = self.shape
        if m * k > MOST_STATES:
            raise BesagError(
                f"{m} × {k} candidates make {m * k:,} states, and at most {MOST_STATES:,} are written down: 64 of each "
                "are the largest that work"
            )
        a, b, _, _ = self.tempered(temperature)
        steps = np.zeros((m, k, m, k))
        each_x, each_y = np.arange(m), np.arange(k)
        steps[:, each_y, :, each_y] += a.T[:, None, :] / 2  # (k, m, m): a is drawn, b stays
        steps[each_x, :, each_x, :] += b[:, None, :] / 2  # (m, k, k)
        return steps.reshape(m * k, m * k)

    def pair_law(self, temperature: float = 1.0) -> Floats:
        """(m, k) what a step of `block_gibbs` draws both places from, one after the other in either order."""
        a, b, hidden_a, hidden_b = self.tempered(temperature)
        return np.asarray((hidden_a[:, None] * b + hidden_b * a) / 2)

    def relaxation(self, temperature: float = 1.0) -> float:
        """Steps of `gibbs` after which what it began with fades by e, in the end: 1/(1 − |λ₂|).

        A step is the mean of two idempotents, "draw a" and "draw b", so its eigenvalues are (1 ± √μ)/2, with μ those of
        both in turn: of the small matrix from one token of a to the next, through b.
        """
        a, b, _, _ = self.tempered(temperature)
        through = np.sort_complex(np.linalg.eigvals(b @ a.T))[::-1]  # (m,) μ, the largest is 1
        second = float(np.abs(1 + np.sqrt(through[1:].astype(complex))).max(initial=1.0)) / 2
        return 1 / (1 - second) if second < 1 else float("inf")
