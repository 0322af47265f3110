"""Shared settings: one thread a worker (the suite runs in parallel), and hypothesis without deadlines."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("besag", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("besag")
