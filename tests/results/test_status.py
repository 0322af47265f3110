"""One status for all results."""

import copy
import json
import pickle

import pytest

from besag.results.status import Status, together


def test_a_status_is_its_name_wherever_it_is_written():
    assert Status.NOT_FOUND == "not found"
    assert f"{Status.MASK:6}|" == "mask  |"
    assert str(Status.OK) == "ok"
    assert json.dumps({"status": Status.OK, Status.MASK: 1}) == '{"status": "ok", "mask": 1}'
    assert {"ok": 1}[Status.OK] == 1
    assert Status("mask") is Status.MASK


def test_a_status_survives_copies():
    for made in (copy.deepcopy(Status.FAR), pickle.loads(pickle.dumps(Status.FAR))):
        assert made is Status.FAR


def test_a_table_of_arrow_holds_names():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.Table.from_pylist([{"status": Status.OK}, {"status": Status.MASK}])
    assert table["status"].to_pylist() == ["ok", "mask"]
    assert table.schema.field("status").type == pyarrow.string()


@pytest.mark.parametrize("status", Status)
def test_every_status_has_a_sentence_of_its_own(status):
    assert len(status.sentence.split()) > 2
    assert not status.sentence.endswith(".")
    assert [other for other in Status if other.sentence == status.sentence] == [status]


def test_fine_is_what_no_program_complains_about():
    assert {status for status in Status if status.fine} == {"ok", "solved", "all"}


@pytest.mark.parametrize(
    ("rows", "whole"),
    [
        ([], "ok"),
        (["ok", "ok"], "ok"),
        (["ok", "mask"], "partly"),
        (["mask", "not converged", "ok"], "not converged"),
    ],
)
def test_rows_together(rows, whole):
    assert together(map(Status, rows)) is Status(whole)
