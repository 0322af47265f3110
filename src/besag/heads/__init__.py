"""Heads on a masked network: labels of whole texts, and of every word; tuned by a recipe, loaded, asked."""
