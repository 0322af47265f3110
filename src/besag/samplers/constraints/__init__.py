"""Text under constraints: a search over the model's answers that propagates, turns back, and says what it found.

solve(engine, "The [MASK] [MASK] at [MASK].", [Required("sea"), Length(most=30)])
allowed(conditionals, sheet, [Pattern("[a-z]+", place=0)])     the same for kernels, where places stand alone
"""

from besag.samplers.constraints.constraint import Constraint
from besag.samplers.constraints.lengths import Length
from besag.samplers.constraints.mask import allowed
from besag.samplers.constraints.patterns import Pattern
from besag.samplers.constraints.predicates import Predicate
from besag.samplers.constraints.solving import Solutions, solve
from besag.samplers.constraints.words import Forbidden, Required, Word

__all__ = [
    "Constraint", "Forbidden", "Length", "Pattern", "Predicate", "Required", "Solutions", "Word", "allowed", "solve",
]  # fmt: skip
