"""The sampling side of the lab: kernels as exact Markov chains, and how fast they forget where they began."""

from besag.lab.chains.coupling import coalescence, relaxation_seen
from besag.lab.chains.entropy import tensorisation
from besag.lab.chains.kernels import all_sites, blocks, gibbs, independent, metropolis, tempering
from besag.lab.chains.mixing import mixing_bracket, mixing_time, worst_distance
from besag.lab.chains.products import nearest_product, total_correlation
from besag.lab.chains.spectrum import one_way, spectrum
from besag.lab.chains.transition import Transition

__all__ = [
    "Transition", "all_sites", "blocks", "coalescence", "gibbs", "independent", "metropolis", "mixing_bracket",
    "mixing_time", "nearest_product", "one_way", "relaxation_seen", "spectrum", "tempering", "tensorisation",
    "total_correlation", "worst_distance",
]  # fmt: skip
