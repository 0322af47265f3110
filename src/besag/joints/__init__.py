"""Joints of several places: one file a construction. Importing this room registers them all."""

from besag.joints import (  # noqa: F401, I001 (registered in this order)
    mlm, order, mrf, mrf_local, hcb, loglinear, ag, stationary,
)  # fmt: skip
from besag.joints.registry import CONSTRUCTIONS, Built, Construction, construction

__all__ = ["CONSTRUCTIONS", "Built", "Construction", "construction"]
