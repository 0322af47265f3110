"""Texts as vectors of a network's states, and what a linear map can read from them."""
