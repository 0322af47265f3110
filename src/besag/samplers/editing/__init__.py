"""Varying a text and editing it."""
