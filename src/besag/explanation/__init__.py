"""Which tokens a prediction rests on, and whether that is true. Importing this room registers all ways to find out."""

from besag.explanation import marginalise, mask, delete  # noqa: F401, I001 (registered in this order)
from besag.explanation.removal import REMOVALS, Removal, Without

__all__ = ["REMOVALS", "Removal", "Without"]
