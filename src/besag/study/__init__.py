"""The study of pairs: every construction and every metric on pairs of places drawn from texts, with intervals."""

from besag.study.pair_sampling import Pair, sample_pairs
from besag.study.pairs import PairRow, study
from besag.study.report import Report

__all__ = ["Pair", "PairRow", "Report", "sample_pairs", "study"]
