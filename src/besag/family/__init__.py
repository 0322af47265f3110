"""besag's own family of networks: a masked encoder with gated heads, learned layer weights and normed queries and keys.

To import this room makes the family known to transformers, so that a saved folder is loaded as any other:

    import besag.family
    model = AutoModelForMaskedLM.from_pretrained("run/model")

Knows torch and transformers. Refuses to know besag: how it is trained, asked or found is the business of rooms above.
"""

from __future__ import annotations

from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

from besag.family.configuration import BesagConfig
from besag.family.network import BesagForMaskedLM, BesagModel

__all__ = ["BesagConfig", "BesagForMaskedLM", "BesagModel"]

AutoConfig.register(BesagConfig.model_type, BesagConfig)
AutoModel.register(BesagConfig, BesagModel)
AutoModelForMaskedLM.register(BesagConfig, BesagForMaskedLM)
