"""Suites: what a model is judged by, and what a run is watched by."""
