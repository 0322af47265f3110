"""Rescoring: hypotheses that another system has listed, ranked anew with the help of a language model."""
