"""Laws of which places to hide. The same law serves a loss, a sampler, a bound and the theory."""

from besag.masks.subset import uniform_subsets

__all__ = ["uniform_subsets"]
