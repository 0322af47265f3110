"""From a source to its target."""
