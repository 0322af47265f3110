"""Do a model's conditionals fit together, and what do they say of a text: one file a diagnostic."""

from besag.diagnostics.compatibility import Compatibility
from besag.diagnostics.dependence import DependenceMap
from besag.diagnostics.rectangle import Rectangles

__all__ = ["Compatibility", "DependenceMap", "Rectangles"]
