import ast
import inspect
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import besag
from besag import noise


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [  # the known answers that come with the Random123 library
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers(key, counter, words):
    assert tuple(int(word) for word in noise.philox(key, counter)) == words


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_draw_does_not_depend_on_its_neighbours(seed, chain, step):
    alone = noise.uniform(seed, chain, step, 5)
    together = noise.uniform(seed, chain, step, np.arange(10))
    assert together[5] == alone
    assert ((together > 0) & (together < 1)).all()


def test_draws_are_uniform_and_uncorrelated():
    draws = noise.uniform(7, np.arange(200)[:, None], np.arange(500))  # (200, 500)
    counts = np.histogram(draws, bins=20, range=(0, 1))[0]
    expected = draws.size / 20
    assert ((counts - expected) ** 2 / expected).sum() < 45  # chi-square, 19 degrees of freedom: p ≈ 0.0007
    assert abs(np.corrcoef(draws[:-1].ravel(), draws[1:].ravel())[0, 1]) < 0.02


def test_seeds_counters_and_streams_differ():
    numbers = {
        float(noise.uniform(seed, stream, place)) for seed in (0, 1, 2**40) for stream in range(3) for place in range(9)
    }
    assert len(numbers) == 81


def test_counters_are_one_to_four():
    with pytest.raises(ValueError, match="one to four"):
        noise.uniform(0)


CLASSES = [one for _, one in inspect.getmembers(noise, inspect.isclass) if issubclass(one, IntEnum)]
STREAMS = [one for one in CLASSES if one is not IntEnum]


@pytest.mark.parametrize("streams", STREAMS)
def test_streams_that_can_share_a_seed_are_distinct_and_say_where_they_meet(streams):
    assert len(set(streams)) == len(streams.__members__)  # an alias would be a second name for one number
    assert all(0 <= stream < 2**32 for stream in streams)
    assert "seed" in streams.__doc__


def test_streams_meet_across_classes_only_where_it_is_said():
    shared = {
        (one.__name__, other.__name__)
        for number, one in enumerate(STREAMS)
        for other in STREAMS[number + 1 :]
        if {*map(int, one)} & {*map(int, other)}
    }
    assert shared == {("Monitoring", "Sampling"), ("Sampling", "TokenizerTraining")}
    assert "a chain, a tokenizer and a\nmonitor each count from 128" in noise.__doc__


def test_every_stream_is_drawn_from():
    """That no other file numbers one is a rule of the house (lint/house_rules.py)."""
    used = set()
    for path in Path(besag.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
                used.add((node.value.id if isinstance(node.value, ast.Name) else node.value.attr, node.attr))
    assert {(kind.__name__, one.name) for kind in STREAMS for one in kind} <= used
