"""One convention for what JSON cannot write."""

import json
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.results.data import from_json, json_number, json_ready
from besag.results.status import Status

NUMBERS = st.floats() | st.integers() | st.booleans() | st.none() | st.text()
NESTED = st.recursive(NUMBERS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


class Row(NamedTuple):
    name: str
    value: float


class Word(str):
    pass


@pytest.mark.parametrize(
    ("number", "written"),
    [(1.5, 1.5), (math.nan, None), (None, None), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (3, 3)],
)
def test_a_number(number, written):
    assert json_number(number) == written


@given(st.floats())
def test_what_was_written_is_read_back(number):
    again = from_json(json.loads(json.dumps(json_number(number), allow_nan=False)))
    assert again == number or (math.isnan(again) and math.isnan(number))


def test_other_values_are_read_as_they_are():
    assert [from_json(value) for value in ("ok", 3, True)] == ["ok", 3, True]


@given(NESTED)
def test_anything_nested_can_be_written_and_read(value):
    ready = json_ready(value)
    assert json.loads(json.dumps(ready, allow_nan=False)) == ready


def test_what_numpy_and_results_hold_becomes_plain():
    ready = json_ready(
        {
            "status": Status.OK,
            1: np.array([[1.0, np.nan], [np.inf, -np.inf]]),
            "row": Row("a", math.nan),
            "scalars": (np.float32(0.5), np.int64(3), np.bool_(True)),
            "set": {2},
            "word": Word("man"),
        }
    )
    assert ready == {
        "status": "ok",
        "1": [[1.0, None], ["Infinity", "-Infinity"]],
        "row": {"name": "a", "value": None},
        "scalars": [0.5, 3, True],
        "set": [2],
        "word": "man",
    }
    assert type(ready["status"]) is type(ready["word"]) is str
    assert [type(one) for one in ready["scalars"]] == [float, int, bool]
