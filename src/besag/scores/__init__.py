"""Scores: one file a method. Importing this room registers them all."""

from besag.scores import causal, chain, elbo, pll, unmasked, whole_word, word_l2r, ag_chain, maskless  # noqa: F401, I001 (registered in this order)
from besag.scores.corpora import Corpus, corpus
from besag.scores.length import LengthModel
from besag.scores.registry import METHODS, Method, method, register
from besag.scores.score import Score

__all__ = ["METHODS", "Corpus", "LengthModel", "Method", "Score", "corpus", "method", "register"]
