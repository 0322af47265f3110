"""Text under constraints: a search over the model's answers that propagates, turns back, and says what it found.

solve(engine, "The [MASK] [MASK] at [MASK].", [Required("sea"), Length(most=30)])
allowed(conditionals, sheet, [Pattern("[a-z]+", place=0)])     the same for kernels, where places stand alone
"""

from besag.constraints.constraint import Constraint
from besag.constraints.lengths import Length
from besag.constraints.mask import allowed
from besag.constraints.patterns import Pattern
from besag.constraints.predicates import Predicate
from besag.constraints.solving import Solutions, solve
from besag.constraints.words import Forbidden, Required, Word

__all__ = [
    "Constraint", "Forbidden", "Length", "Pattern", "Predicate", "Required", "Solutions", "Word", "allowed", "solve",
]  # fmt: skip
