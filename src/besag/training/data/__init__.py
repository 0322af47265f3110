"""From text to batches: sources, the tokenised cache, the plan of an epoch, batches with their masks."""
