"""Replaying on CUDA; elsewhere the network is simply run."""

import pytest
import torch

from besag.conditionals.replay import OFTEN, Replay


class Reading:
    """Stands for a reader: counts its runs, and says something that depends on the ids."""

    def __init__(self):
        self.runs = 0

    def __call__(self, ids, context=None):
        self.runs += 1
        return ids[:, :, None].float() * 2


def test_on_a_cpu_every_run_is_a_run():
    read = Reading()
    replay = Replay(read)
    for number in range(OFTEN + 3):
        ids = torch.full((2, 3), number)
        assert torch.equal(replay(ids), read(ids))
    assert read.runs == 2 * (OFTEN + 3)
    assert not replay.graphs


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_on_cuda_a_replay_says_the_same():
    read = Reading()
    replay = Replay(read)
    with torch.inference_mode():
        for number in range(OFTEN + 5):
            ids = torch.full((2, 3), number, device="cuda")
            assert torch.equal(replay(ids).clone(), ids[:, :, None].float() * 2)
    assert len(replay.graphs) == 1
    assert read.runs == OFTEN + 1  # the last of them was recorded


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_a_network_does_not_know_that_it_is_recorded():
    """transformers asks, and takes another path through attention if it is."""
    told = []

    class Curious(Reading):
        def __call__(self, ids, context=None):
            told.append(torch.cuda.is_current_stream_capturing())
            return super().__call__(ids)

    replay = Replay(Curious())
    with torch.inference_mode():
        for _ in range(OFTEN + 2):
            replay(torch.ones(2, 3, dtype=torch.long, device="cuda"))
    assert len(replay.graphs) == 1
    assert not any(told)
