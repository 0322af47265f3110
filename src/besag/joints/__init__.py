"""Joints of several places: one file a construction. Importing this room registers them all."""

from besag.joints import mlm, order, mrf, mrf_local, hcb, ag, stationary  # noqa: F401, I001 (registered in this order)
from besag.joints.registry import CONSTRUCTIONS, Built, Construction, construction

__all__ = ["CONSTRUCTIONS", "Built", "Construction", "construction"]
