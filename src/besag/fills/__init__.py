"""The likeliest fillings of all masks of a text, taken together."""
