"""The search of one chain: depth first, the model's answers as domains, turning back where nothing is left.

At each node one place is open to be set. The model is asked once, given all that is set; the candidates of the place
are the `top_k` likeliest of the tokens that propagation has left there. They are tried in turn: by probability, or, for
a sample, in the order of drawing without putting back (the largest of log p + Gumbel noise first), so that the first
one tried is a draw from the model's row, renormalised over the candidates. Each is set, the constraints propagate, and
if no contradiction shows, the next place follows. Which place comes next:

    "domain"     the one with fewest tokens left; of equals, the leftmost
    "left"       the leftmost
    "entropy"    the one of which the model is surest, among the tokens left there

A word that is required and does not stand in the text yet is tried first, where the model finds it likeliest, so that
the text grows around it; every other way stays open behind it.

A search that turns back goes through all that follows from an early choice before it doubts it. So a sampling search
begins anew with other noise: after 4n passes for n places, then 4n times 1, 2, 1, 1, 2, 4 … (Luby's sequence, which is
never much worse than the best moment to begin anew, whatever that is; and some attempts are long enough to see all).

If every candidate set was the whole domain, the search has seen every text, and what it did not find is not there. A
token to which the model gives probability 0 is not in its domain. This is a plan: it yields requests, so that many
searches share the batches of one engine.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch

from besag.arrays import Floats, Ints
from besag.constraints.constraint import Domains, narrowed
from besag.constraints.page import Page
from besag.constraints.placements import Placement, Placements
from besag.constraints.problem import Dead, Problem
from besag.engine import Plan, Request
from besag.noise import Sampling
from besag.reductions import Row
from besag.samplers.editing.gumbel import gumbel
from besag.samplers.kernel import Noise

Order: TypeAlias = Literal["domain", "left", "entropy"]
ORDERS = ("domain", "left", "entropy")
PATIENCE = 4  # passes a place before a sampling search begins anew


class Solution(NamedTuple):
    tokens: tuple[int, ...]  # (n,)
    log_prob: float  # Σ log p, each among the tokens that propagation had left there
    model_log_prob: float  # Σ log p, each among all tokens
    passes: int  # made until it was found


@dataclass
class Result:
    """What a search has found."""

    solutions: list[Solution] = field(default_factory=list)
    passes: int = 0
    ended: Literal["enough", "all", "candidates", "budget"] = "budget"
    failures: Counter[tuple[int, int]] = field(default_factory=Counter)  # by constraint and place


class Now(NamedTuple):
    """Where a search stands."""

    domains: Domains
    tokens: tuple[int | None, ...]  # (n,) what is set; None where a place is open
    step: int  # passes made


@dataclass(frozen=True)
class Search:
    """How one chain goes about it."""

    top_k: int | None
    budget: int
    wanted: int | None  # solutions; None: all
    order: Order
    temperature: float
    sample: bool

    def run(self, problem: Problem, domains: Domains, noise: Noise) -> Plan[Result]:
        """From domains that have been propagated."""
        page, result, placements = problem.page, Result(), Placements.of(problem.page, problem.constraints)
        trail: list[_Node] = []
        start, complete = domains, True
        attempt, limit = 1, PATIENCE * page.size
        while True:
            if self.sample and result.passes == limit:
                trail, domains, complete, attempt = [], start, True, attempt + 1
                limit += PATIENCE * page.size * luby(attempt)
            own = {node.place: node.token for node in trail}
            tokens = tuple(own.get(place) for place in range(page.size))
            if len(own) == page.size:
                self._arrive(problem, trail, result)
                if len(result.solutions) == self.wanted:
                    result.ended = "enough"
                    return result
            elif result.passes == self.budget:
                result.ended = "budget"
                return result
            else:
                node = yield from self._ask(page, Now(domains, tokens, result.passes), placements, noise)
                result.passes += 1
                complete &= node.complete
                trail.append(node)
            found = self._next(problem, trail, result)
            if found is None:
                result.ended = "all" if complete else "candidates"
                return result
            domains = found

    def _next(self, problem: Problem, trail: list[_Node], result: Result) -> Domains | None:
        """Set the next candidate that is no contradiction, turning back where there is none; None at the very end."""
        while trail:
            domains = trail[-1].advance()
            if domains is None:
                trail.pop()
                continue
            if len(trail) == problem.page.size:
                return domains  # all is set: what holds will be seen
            try:
                return problem.propagated(domains)
            except Dead as dead:
                result.failures[dead.number, trail[-1].place if dead.place is None else dead.place] += 1
        return None

    def _arrive(self, problem: Problem, trail: list[_Node], result: Result) -> None:
        """Every place is set: is this a solution?"""
        tokens = tuple(token for _, token in sorted((node.place, node.token) for node in trail))
        broken = problem.broken(tokens)
        if broken is not None:
            result.failures[broken, trail[-1].place] += 1
            return
        log_prob = sum(float(node.log_law[node.at]) for node in trail)
        model = sum(float(node.log_row[node.at]) for node in trail)
        result.solutions.append(Solution(tokens, log_prob, model, result.passes))

    def _ask(self, page: Page, now: Now, placements: Placements, noise: Noise) -> Plan[_Node]:
        """One pass: which place is next, and its candidates in the order in which they are tried."""
        left = [place for place, token in enumerate(now.tokens) if token is None]
        first = min(left, key=lambda place: len(now.domains[place])) if self.order == "domain" else left[0]
        wanted = placements.open(now.tokens, now.domains)
        asked = left if wanted or self.order == "entropy" else [first]
        ids = page.sheet.ids.copy()
        ids[page.at] = [page.mask_id if token is None else token for token in now.tokens]
        request = Request((Row(),), ids[None], np.zeros(len(asked), np.int64), page.at[asked])
        rows = dict(zip(asked, (yield request)["row"].astype(np.float64), strict=True))
        if self.order == "entropy":
            first = min(left, key=lambda place: _entropy(rows[place][now.domains[place]]))
        placement = self._likeliest(wanted, rows, noise, now.step)
        if placement is not None:
            return self._node(now, placement[0], rows[placement[0]], placement[1], noise)
        return self._node(now, first, rows[first], None, noise)

    def _node(self, now: Now, place: int, row: Floats, first: int | None, noise: Noise) -> _Node:
        """The candidates of a place; one may be tried before all others."""
        domain = now.domains[place]
        tokens = domain[row[domain] > -np.inf]
        log_row = row[tokens]
        law = log_row - np.logaddexp.reduce(log_row) if len(tokens) else log_row
        best = np.argsort(-log_row, kind="stable")[: self.top_k]
        if self.sample:
            best = best[
                np.argsort(-self._shaken(log_row[best], noise, Sampling.DRAW, now.step, tokens[best]), kind="stable")
            ]
        if first is not None:
            wanted = np.searchsorted(tokens, first)
            best = np.append(wanted, best[best != wanted])
        return _Node(now.domains, place, tokens[best], law[best], log_row[best], len(best) == len(tokens))

    def _likeliest(
        self, wanted: list[Placement], rows: dict[int, Floats], noise: Noise, step: int
    ) -> tuple[int, int] | None:
        """The first place and token of the likeliest placement, or of one drawn by its probability."""
        scores = np.array([sum(rows[place][token] for place, token in placement) for placement in wanted])
        if not np.isfinite(scores).any():
            return None
        if self.sample:
            scores = self._shaken(scores, noise, Sampling.WHERE, step, np.arange(len(scores)))
        return wanted[int(scores.argmax())][0]

    def _shaken(self, scores: Floats, noise: Noise, stream: int, step: int, numbers: Ints) -> Floats:
        """With Gumbel noise: in descending order this is drawing one after the other without putting back."""
        row = torch.zeros(len(numbers), dtype=torch.long)
        height: Floats = noise.asks(stream, step, row, torch.from_numpy(numbers)).numpy()
        return scores / self.temperature + gumbel(height)


@dataclass
class _Node:
    """A place, its candidates, and how many of them have been tried."""

    domains: Domains  # before it is set
    place: int
    tokens: Ints  # (k,) in the order in which they are tried
    log_law: Floats  # (k,) their log-probabilities among all tokens of the domain
    log_row: Floats  # (k,) and among all tokens
    complete: bool  # are the candidates the whole domain?
    at: int = -1

    @property
    def token(self) -> int:
        return int(self.tokens[self.at])

    def advance(self) -> Domains | None:
        """Set the next candidate; None when all have been tried."""
        self.at += 1
        if self.at == len(self.tokens):
            return None
        return narrowed(self.domains, self.place, self.domains[self.place] == self.token)


def luby(number: int) -> int:
    """1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8, …: after each run of it, twice its last number."""
    length = number.bit_length()
    return 1 << length - 1 if number == (1 << length) - 1 else luby(number - (1 << length - 1) + 1)


def _entropy(log_probs: Floats) -> float:
    law = np.exp(log_probs - np.logaddexp.reduce(log_probs))
    return float(-(law * np.log(np.where(law > 0, law, 1))).sum())
