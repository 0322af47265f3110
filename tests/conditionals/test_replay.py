"""Replaying on CUDA; elsewhere the network is simply run."""

from types import SimpleNamespace

import pytest
import torch

from besag.conditionals.contract import SOURCE_MASK, SOURCE_STATES
from besag.conditionals.replay import KEPT, OFTEN, SHOWN, STEP, Replay


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
        return context.keys() <= self.recorded and frozenset(context) not in self.impossible

    def capture(self, static):
        if SOURCE_MASK in static and self.trips:
            raise RuntimeError("it waits for the device")
        context = {name: value for name, value in static.items() if name != "ids"}
        states = self.read(static["ids"], context)
        again = type(self.read)()
        return SimpleNamespace(replay=lambda: states.copy_(again(static["ids"], context))), static, states

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


def test_how_often_it_was_replayed_recorded_and_launched_is_counted():
    replay = Recorder(Attending())
    for number in range(OFTEN + 3):
        replay(*asked(number))
    assert replay.done == {"launched": OFTEN, "recorded": 1, "replayed": 3}


def test_no_memory_to_record_now_is_no_reason_never_to_record():
    class Full(Recorder):
        full = True

        def capture(self, static):
            if self.full:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super().capture(static)

    replay = Full(Attending())
    for number in range(OFTEN + 1):
        ids, context = asked(number)
        assert torch.equal(replay(ids, context), Attending()(ids, context))
    assert not replay.graphs
    assert not replay.impossible
    replay.full = False
    for number in range(OFTEN + 1):
        replay(*asked(number))
    assert len(replay.graphs) == 1


class Shown(Reading):
    """What each place makes of all that is shown, and of the source: padding that were seen would change it."""

    def __call__(self, ids, context=None):
        self.runs += 1
        shown = context[SHOWN] if SHOWN in context else torch.ones_like(ids)
        states = context[SOURCE_STATES]
        source = context[SOURCE_MASK] if SOURCE_MASK in context else ids.new_ones(states.shape[:2])
        seen = (ids * shown).sum(1) + (states.sum(2) * source).sum(1)
        return (ids + seen[:, None])[:, :, None].float()


def one(length, tokens):
    return torch.arange(length)[None] + 1, {SOURCE_STATES: torch.ones(1, tokens, 3)}


def test_what_may_be_padded_is_recorded_in_few_shapes():
    """Sentences of eight lengths and as many of their sources, one at a time: one shape, recorded once."""
    plain, read = Shown(), Shown()
    replay = Recorder(read, pad_id=77, most=64)
    for length, tokens in [(size, 1 + size % STEP) for size in range(1, STEP + 1)] * 2:
        ids, context = one(length, tokens)
        assert torch.equal(replay(ids, context)[:, :length], plain(ids, context))
    assert len(replay.graphs) == 1
    assert read.runs == OFTEN + 1


def test_padding_ends_where_the_network_does_and_keeps_masks_that_are_there():
    replay = Recorder(Shown(), pad_id=77, most=10)
    ids, context = one(9, 4)
    shown = (ids < 8).long()
    inputs = replay.padded(ids, {**context, SHOWN: shown, SOURCE_MASK: torch.tensor([[1, 1, 1, 0]])})
    assert inputs["ids"].tolist() == [[*range(1, 10), 77]]
    assert inputs[SHOWN].tolist() == [[1] * 7 + [0] * 3]
    assert inputs[SOURCE_MASK].tolist() == [[1, 1, 1] + [0] * 5]
    assert inputs[SOURCE_STATES].shape == (1, STEP, 3)


def test_shapes_that_were_not_used_for_longest_are_forgotten():
    replay = Recorder(Shown(), pad_id=77)
    for size in range(KEPT + 1):
        for _ in range(OFTEN + 1):
            replay(*one(1 + size * STEP, 1))
    assert len(replay.graphs) == KEPT
    assert all({name: size for name, _, size in shape}["ids"][1] > STEP for shape in replay.graphs)


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
