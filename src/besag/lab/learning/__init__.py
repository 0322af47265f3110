"""The training side: what a masked loss learns of θ from n sequences, exactly, and how far that is from the best."""
