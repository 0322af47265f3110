"""Replaying on CUDA; elsewhere the network is simply run."""

from types import SimpleNamespace

import pytest
import torch

from besag.conditionals.contract import SOURCE_MASK, SOURCE_STATES
from besag.conditionals.replay import OFTEN, RECORDED, Replay


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


class Attending(Reading):
    """And depends on what goes with the ids."""

    def __call__(self, ids, context=None):
        self.runs += 1
        told = ids[:, :, None].float() * 2
        if SOURCE_STATES in context:
            told = told + context[SOURCE_STATES].sum((1, 2))[:, None, None]
        if SOURCE_MASK in context:
            told = told * context[SOURCE_MASK].sum(1)[:, None, None]
        return told


class Recorder(Replay):
    """Records as on CUDA: a replay reads from where the recording read, whatever the caller holds."""

    def worth(self, ids, context):
        return context.keys() <= RECORDED and frozenset(context) not in self.impossible

    def capture(self, static):
        if SOURCE_MASK in static and self.trips:
            raise RuntimeError("it waits for the device")
        context = {name: value for name, value in static.items() if name != "ids"}
        states = self.read(static["ids"], context)
        return SimpleNamespace(replay=lambda: states.copy_(Attending()(static["ids"], context))), static, states

    trips = False


def asked(number, batch=2, tokens=4):
    """Ids and the states of a source for all, as the engine hands them over."""
    states = torch.full((1, tokens, 3), float(number)).expand(batch, -1, -1)
    return torch.full((batch, 3), number), {SOURCE_STATES: states}


def test_what_was_made_of_sources_is_read_anew_at_every_replay():
    read = Attending()
    replay = Recorder(read)
    for number in range(OFTEN + 5):
        ids, context = asked(number)
        assert torch.equal(replay(ids, context), Attending()(ids, context))
        masked = {**context, SOURCE_MASK: torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])}
        assert torch.equal(replay(ids, masked), Attending()(ids, masked))
    assert len(replay.graphs) == 2
    assert read.runs == 2 * (OFTEN + 1)
    replay(*asked(1, tokens=5))  # a shape of its own
    assert len(replay.graphs) == 2


def test_what_cannot_be_recorded_with_a_mask_still_is_without():
    replay = Recorder(Attending())
    replay.trips = True
    for number in range(OFTEN + 3):
        ids, context = asked(number)
        masked = {**context, SOURCE_MASK: torch.ones(2, 4, dtype=torch.long)}
        assert torch.equal(replay(ids, masked), Attending()(ids, masked))
        assert torch.equal(replay(ids, context), Attending()(ids, context))
    assert replay.impossible == {frozenset({SOURCE_STATES, SOURCE_MASK})}
    assert len(replay.graphs) == 1


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_on_cuda_states_of_sources_are_replayed_too():
    read = Attending()
    replay = Replay(read)
    with torch.inference_mode():
        for number in range(OFTEN + 5):
            ids, context = asked(number)
            ids, context = ids.cuda(), {name: value.cuda() for name, value in context.items()}
            assert torch.equal(replay(ids, context).clone(), Attending()(ids, context))
    assert len(replay.graphs) == 1
    assert read.runs == OFTEN + 1


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
