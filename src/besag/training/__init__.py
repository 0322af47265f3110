"""Pretraining and adaptation: data, tokenizers, objectives, and the run that one recipe describes."""
