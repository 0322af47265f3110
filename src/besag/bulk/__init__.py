"""Bulk: whole corpora on Ray Data, exactly one answer a row. Ray is imported when work begins, and by nothing else."""

from __future__ import annotations

from besag.bulk.datasets import entropy, fill, sample, score

__all__ = ["entropy", "fill", "sample", "score"]
