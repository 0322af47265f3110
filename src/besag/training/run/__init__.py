"""A recipe, carried out: what it needs, the loop, schedules, checkpoints, logs, the exported folder and its card."""

from besag.training.run.run import Result, train

__all__ = ["Result", "train"]
