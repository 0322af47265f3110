"""Studies: many texts, many joints, one table."""

from besag.evaluation.pairs import PairRow, study
from besag.evaluation.report import Report
from besag.evaluation.sampling import Pair, sample_pairs

__all__ = ["Pair", "PairRow", "Report", "sample_pairs", "study"]
