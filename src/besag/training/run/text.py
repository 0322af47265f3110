"""The tokenised text of a recipe: passages or pairs, and what is held out of them.

Knows that the first of several processes writes the caches while the others wait. How a cache is made is the affair of
`besag.training.data`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from besag.errors import BesagError
from besag.masks.law import Statistics
from besag.training.data import contexts, one_line, parallel
from besag.training.data.cache import Cache, prepare
from besag.training.data.contexts import Contexts
from besag.training.data.parallel import Parallel
from besag.training.data.sources import STDIN, NoDocuments, Which
from besag.training.recipe import Recipe, in_context, is_parallel
from besag.training.run.ranks import Ranks
from besag.vocabulary import Vocabulary

T = TypeVar("T")
CACHE = "cache"
NOTHING_HELD_OUT = (
    "nothing is held out to evaluate on: a share of {:g} (data.held_out) is not one {} of this corpus. Name files in "
    "{}, or hold out more"
)


class Text:
    """The tokenised corpus of a recipe, and what is held out of it."""

    def __init__(self, recipe: Recipe, vocabulary: Vocabulary, ranks: Ranks, resume: bool) -> None:
        self.data, self.vocabulary, self.ranks, self.resume = recipe.data, vocabulary, ranks, resume
        self.folder = Path(recipe.data.cache or Path(recipe.run.output) / CACHE)
        self._statistics: Statistics | None = None
        self.valid_pairs: Parallel | None = None
        self.pairs: Parallel | None = None
        self.contexts: Contexts | None = None
        self.valid_contexts: Contexts | None = None
        if is_parallel(recipe.data) and recipe.data.pairs == "line":
            self.train: Cache | None = self._lines("train")
            self.valid = self._held_out_pairs(one_line.prepare)
            return
        if is_parallel(recipe.data):
            self.pairs = self._pairs("train")
            self.train = self.pairs.target
            self.valid_pairs = self._held_out_pairs(parallel.prepare)
            self.valid = None if self.valid_pairs is None else self.valid_pairs.target
            return
        self.train = None if recipe.data.stream else self._cache("train")
        once = recipe.data.stream or STDIN in recipe.data.train  # what is read once cannot be held out of as well
        self.valid = self._held_out() if recipe.data.valid or (recipe.data.held_out and not once) else None
        if in_context(recipe.data):
            assert self.train is not None
            self.contexts = self._contexts(self.train, "train")
            self.valid_contexts = None if self.valid is None else self._contexts(self.valid, "valid")

    def _contexts(self, text: Cache, which: Which) -> Contexts:
        return self.ranks.made_once(lambda: contexts.prepare(self.data, self.vocabulary, self.folder, text, which))

    def _pairs(self, which: Which) -> Parallel:
        return self.ranks.made_once(lambda: parallel.prepare(self.data, self.vocabulary, self.folder, which))

    def _lines(self, which: Which) -> Cache:
        return self.ranks.made_once(lambda: one_line.prepare(self.data, self.vocabulary, self.folder, which))

    def _held_out_pairs(self, prepare_pairs: Callable[..., T]) -> T | None:
        if not self.data.valid and not self.data.valid_source and not self.data.held_out:
            return None

        def make() -> T | None:
            try:
                return prepare_pairs(self.data, self.vocabulary, self.folder, "valid")
            except NoDocuments:
                warnings.warn(NOTHING_HELD_OUT.format(self.data.held_out, "pair", "data.valid_source"), stacklevel=2)
                return None

        return self.ranks.made_once(make)

    def _cache(self, which: Which) -> Cache:
        return self.ranks.made_once(lambda: prepare(self.data, self.vocabulary, self.folder, which, resume=self.resume))

    def _held_out(self) -> Cache | None:
        """Of a few long documents, a share may be none of them: then nothing is evaluated."""
        if self.data.valid:
            return self._cache("valid")

        def make() -> Cache | None:
            try:
                return prepare(self.data, self.vocabulary, self.folder, "valid", resume=self.resume)
            except NoDocuments:
                warnings.warn(NOTHING_HELD_OUT.format(self.data.held_out, "document", "data.valid"), stacklevel=2)
                return None

        return self.ranks.made_once(make)

    def statistics(self) -> Statistics:
        if self.train is None:
            raise BesagError("data.stream = true: this law or objective counts tokens first, which needs a cache")
        if self._statistics is None:
            self._statistics = self.train.statistics(self.vocabulary)
        return self._statistics
