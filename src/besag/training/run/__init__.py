"""A recipe, carried out: what it needs, the loop, schedules, checkpoints, logs, the exported folder and its card."""

from besag.training.run.run import TrainingResult, train

__all__ = ["TrainingResult", "train"]
