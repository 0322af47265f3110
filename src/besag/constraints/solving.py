"""Texts that satisfy constraints: from a template or a number of places to solutions, or to why there are none.

| status | what it means |
|---|---|
| "solved" | as many solutions as were wanted |
| "all" | fewer than wanted, and these are all there are: every token was tried at every place |
| "unsatisfiable" | there is none: shown before the model was asked, or by trying every token at every place |
| "not found" | fewer than wanted among the candidates; a larger `top_k` may find more |
| "budget" | fewer than wanted when the passes were spent |

Knows what to say about a search; `search.py` knows how to search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from besag.checks import checked, whole_number
from besag.conditionals.contract import require_both_sides
from besag.constraints.conflicts import begin
from besag.constraints.constraint import Constraint, refuse_strangers
from besag.constraints.page import Page
from besag.constraints.problem import Problem
from besag.constraints.search import ORDERS, Order, Result, Search, Solution
from besag.engine import Engine
from besag.errors import BesagError
from besag.joints.candidates import outcome_ids
from besag.places.reading import unknown_around
from besag.places.tokens import Token
from besag.results import data, words
from besag.results.data import json_ready
from besag.results.grid import Grid, lines
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import number
from besag.samplers.drawing import Drawing
from besag.samplers.kernel import Noise
from besag.samplers.kernels.decoding import refuse_unknown
from besag.samplers.sheet import Sheet, blank, template

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_SOLUTIONS, MOST_PASSES = 100_000, 10_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Solutions(Presented):
    """Texts under constraints, in the order in which they were found."""

    texts: tuple[str, ...]
    ids: tuple[tuple[int, ...], ...]  # the tokens of the free places, in the order of the text
    tokens: tuple[tuple[Token, ...], ...]  # the same as the tokenizer writes them
    log_probs: tuple[float, ...]  # of these tokens in the order of the search, each among those that were left to it
    model_log_probs: tuple[float, ...]  # the same, each among all tokens
    passes: int  # forward passes of all searches together
    status: Status
    said: tuple[str, ...]  # of the search, most important first

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def unit(self) -> str:
        return "nats"

    @property
    def facts(self) -> list[str]:
        """What a reader must know, most important first."""
        return list(self.said)

    @property
    def _rows(self) -> list[dict[str, Any]]:
        names = ("text", "tokens", "log_prob", "model_log_prob")
        rows = zip(self.texts, self.tokens, self.log_probs, self.model_log_probs, strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        about = {"unit": self.unit, "passes": self.passes}
        return dict(json_ready({**self._answers(), **about, "solutions": self._rows}))

    def to_pandas(self) -> DataFrame:
        """One row a solution."""
        rows = [{**row, "tokens": " ".join(row["tokens"])} for row in self._rows]
        return data.frame(self, rows, ("text", "tokens", "log_prob", "model_log_prob"), passes=self.passes)

    def _grids(self) -> list[Grid]:
        numbered = enumerate(zip(self.log_probs, self.texts, strict=True))
        rows = [(str(at), number(value), text) for at, (value, text) in numbered]
        return [Grid(("", "log p", ""), lines(rows), left=(2,))]


@checked
def solve(
    engine: Engine,
    text: str | int | Sheet,
    constraints: Sequence[Constraint],
    *,
    solutions: int | None = 1,
    sample: bool = False,
    seed: int = 0,
    top_k: int | None = 50,
    budget: int = 1000,
    temperature: float = 1.0,
    order: Order = "domain",
) -> Solutions:
    """Fill the masks of a text, or a number of blank places, so that all constraints hold.

    Without `sample` one search tries the likeliest tokens first and goes on until it has as many solutions as are
    wanted (None: all there are). With it, there are as many searches as solutions, each with noise of its own, and each
    gives its first one. `top_k` is how many tokens of a place are tried (None: all), `budget` how many forward passes a
    search may take, `order` which place is set next.
    """
    model = engine.conditionals
    require_both_sides(model, "a search")
    refuse_strangers(constraints)
    refuse_unknown("order", order, ORDERS)
    Drawing(temperature, top_k)
    whole_number(budget, "budget", most=MOST_PASSES)
    if solutions is not None:
        whole_number(solutions, "solutions", most=MOST_SOLUTIONS)
    if sample and solutions is None:
        raise BesagError("solutions=None asks for all there are, and sample=True for draws: say how many draws")
    sheet = text if isinstance(text, Sheet) else template(model, text) if isinstance(text, str) else blank(model, text)
    unknown_around(model.vocabulary, sheet.encoded, sheet.positions)
    named = "".join(constraint.letters for constraint in constraints)
    page = Page(sheet, model.width, outcome_ids(model, "text"), named)
    for constraint in constraints:
        constraint.check(page)
    problem = Problem(page, constraints, [constraint.on(page) for constraint in constraints])
    domains = begin(problem)
    if isinstance(domains, str):
        return _solutions(page, [], 0, Status.UNSATISFIABLE, [domains])
    chains = (solutions or 1) if sample else 1
    search = Search(top_k, budget, 1 if sample else solutions, order, temperature, sample)
    plans = [search.run(problem, domains, Noise(seed, torch.tensor([chain]))) for chain in range(chains)]
    results = list(engine.run(plans))
    return _answer(problem, results, top_k, budget)


def _answer(problem: Problem, results: list[Result], top_k: int | None, budget: int) -> Solutions:
    found = [solution for result in results for solution in result.solutions]
    passes = sum(result.passes for result in results)
    ended = {result.ended for result in results}
    failures: Counter[tuple[int, int]] = Counter()
    for result in results:
        failures += result.failures
    found_so_many = _count(len(found))
    if ended == {"enough"}:
        status, line = Status.SOLVED, f"{found_so_many}, as many as were wanted"
    elif "all" in ended and not found:
        status, line = Status.UNSATISFIABLE, "no text satisfies the constraints: every token was tried at every place"
    elif ended <= {"all", "enough"}:
        status, line = (
            Status.ALL,
            f"{found_so_many}: these are all there are, every token was tried at every place",
        )
    elif "budget" in ended:
        status, line = (
            Status.BUDGET,
            f"{found_so_many} when the budget of {budget:,} passes was spent: raise budget",
        )
    else:
        status = Status.NOT_FOUND
        line = f"{found_so_many} among the {top_k} likeliest tokens of each place; there may be more: raise top_k"
    said = [line, words.passes(passes)]
    if failures and status != Status.SOLVED:
        (which, place), times = failures.most_common(1)[0]
        most = f"what failed most often ({times:,} times): {problem.constraints[which]}, at place {place}"
        said.insert(1, most)
    return _solutions(problem.page, found, passes, status, said)


def _count(number: int) -> str:
    return "1 solution" if number == 1 else f"{number or 'no'} solutions"


def _solutions(page: Page, found: list[Solution], passes: int, status: Status, said: list[str]) -> Solutions:
    return Solutions(
        tuple(page.write(solution.tokens) for solution in found),
        tuple(solution.tokens for solution in found),
        tuple(tuple(Token.of(page.vocabulary, token) for token in solution.tokens) for solution in found),
        tuple(solution.log_prob for solution in found),
        tuple(solution.model_log_prob for solution in found),
        passes,
        status,
        (*words.unseen(page.encoded.unknown), *said),
    )
