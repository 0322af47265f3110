"""Every way a masked model can speak: one file a kernel, one shape (`kernel.py`). Importing it registers them."""

from besag.samplers.kernel import KERNELS, Canvas, Info, Kernel, Noise, State, kernel, register
from besag.samplers.kernels import (  # noqa: F401 (they register themselves)
    adaptive,
    ancestral,
    block_diffusion,
    block_gibbs,
    entropy_bound,
    first_hitting,
    g_ipd,
    gibbs,
    grouped,
    mask_predict,
    metropolis,
    ordered,
    refine,
    remask,
    semi_ar,
    sequential,
    speculative,
    spindle,
    tempering,
    threshold,
)

__all__ = ["KERNELS", "Canvas", "Info", "Kernel", "Noise", "State", "kernel", "register"]
