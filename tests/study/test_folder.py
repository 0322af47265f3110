"""A study on disk: whole lines, the same settings, and a report at any time."""

import json
import math

import pyarrow.parquet as pq
import pytest
from tests.study.example_rows import many

from besag.errors import BesagError
from besag.results.status import Status
from besag.study.folder import Folder, checksum
from besag.study.pairs import PairRow
from besag.study.report import Report

DONE_IS_5 = '{"kind": "besag pair study", "done": 5}'
SETTINGS = {"model": "tiny", "seed": 0, "pairs": ["random"], "file": "a.txt"}


@pytest.fixture
def written(tmp_path):
    folder = Folder(tmp_path / "study")
    assert folder.begin(SETTINGS) == (0, None)
    for row in many(3):
        folder.append(row)
    folder.note(3, ["state"])
    folder.close()
    return folder.path


def going_on(path, **changes):
    folder = Folder(path)
    done = folder.begin({**SETTINGS, **changes})
    folder.close()
    return done


def test_every_row_is_there_as_soon_as_it_is_written(tmp_path):
    folder = Folder(tmp_path / "a" / "study")
    folder.begin(SETTINGS)
    first, second, *_ = many(3)
    folder.append(first)
    assert len((folder.path / "pairs.jsonl").read_text().splitlines()) == 1  # before it is closed
    folder.append(second)
    folder.close()
    assert [row.to_dict() for row in folder.report().rows] == [first.to_dict(), second.to_dict()]


@pytest.mark.parametrize("more", ["", '{"text": 4, "pa', "\0", '{"text": 4, "of": "a block that was not finished"}\n'])
def test_it_goes_on_after_the_last_row_that_was_noted(written, more):
    with open(written / "pairs.jsonl", "a") as file:
        file.write(more)
    folder = Folder(written)
    assert folder.begin({**SETTINGS, "file": "moved.txt"}) == (3, ["state"])
    folder.append(many(4)[3])
    folder.close()
    assert [row.text for row in folder.report().rows] == [1, 2, 3, 4]


def test_other_settings_are_refused_and_named(written):
    with pytest.raises(BesagError, match=r"seed is 1, and was 0; .*top is 5, and was not set"):
        Folder(written).begin({**SETTINGS, "seed": 1, "top": 5})
    with pytest.raises(BesagError, match="pairs is not set, and was"):
        Folder(written).begin({key: value for key, value in SETTINGS.items() if key != "pairs"})
    assert len(Folder(written).report().rows) == 3


def test_a_study_without_rows_may_begin_anew(tmp_path):
    folder = Folder(tmp_path / "study")
    folder.begin(SETTINGS)
    folder.close()
    again = Folder(tmp_path / "study")
    assert again.begin({**SETTINGS, "model": "another"}) == (0, None)
    again.append(many(1)[0])
    again.close()
    assert again.report().settings["model"] == "another"


def test_what_is_no_study_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(BesagError, match="holds files"):
        Folder(tmp_path).begin(SETTINGS)
    with pytest.raises(BesagError, match="is a file"):
        Folder(tmp_path / "mine.txt").begin(SETTINGS)
    with pytest.raises(BesagError, match="is no study"):
        Folder(tmp_path).report()
    (tmp_path / "study.json").write_text('{"kind": "shopping list"}')
    with pytest.raises(BesagError, match="is not that of a study"):
        Folder(tmp_path).begin(SETTINGS)
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(BesagError, match="is not JSON"):
        Folder(tmp_path).report()
    with pytest.raises(BesagError, match="holds files"):
        Folder(tmp_path).begin(SETTINGS)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mine.txt", "study.json"]


@pytest.mark.parametrize("left", ["", "{", '{"kind": "besag pair', "[" * 100_000, "\0" * 50, DONE_IS_5])
def test_a_torn_study_json_does_not_block_its_folder(written, left):
    rows = (written / "pairs.jsonl").read_bytes()
    (written / "study.json").write_text(left)
    with pytest.warns(UserWarning, match="the report says nothing of the settings"):
        assert len(Folder(written).report().rows) == 3
    with pytest.warns(UserWarning, match=r"the study begins anew; what is there is set aside as .*pairs\.jsonl\.1"):
        assert going_on(written) == (0, None)
    assert (written / "pairs.jsonl.1").read_bytes() == rows  # nothing is lost
    assert going_on(written) == (0, None)
    (written / "study.json").write_text(left)
    with pytest.warns(UserWarning, match="the study begins anew"):
        assert going_on(written, seed=1) == (0, None)


@pytest.mark.parametrize("left", [[], [".lock"], [".lock", ".study-draft-0123abcd.json"]])
def test_a_kill_before_the_first_note_does_not_block_the_folder(tmp_path, left):
    for name in left:
        (tmp_path / name).touch()
    assert going_on(tmp_path) == (0, None)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["pairs.jsonl", "study.json"]


def test_rows_that_are_gone_are_told(written):
    (written / "pairs.jsonl").write_text("")
    with pytest.raises(BesagError, match="has lost rows: 3 of it were done, and there are 0"):
        going_on(written)
    assert sorted(file.name for file in written.iterdir()) == ["pairs.jsonl", "study.json"]


def test_rows_of_an_earlier_version_are_all_done(written):
    settings = json.loads((written / "study.json").read_text())
    del settings["done"]
    (written / "study.json").write_text(json.dumps(settings))
    assert going_on(written) == (3, None)


def test_one_process_at_a_time(written):
    folder = Folder(written)
    folder.begin(SETTINGS)
    with pytest.raises(BesagError, match=r"is being written by another process .*choose another --output"):
        Folder(written).begin(SETTINGS)
    folder.append(many(4)[3])
    folder.note(4, None)
    folder.close()
    assert going_on(written) == (4, None)


def test_a_broken_line_is_named(written):
    lines = (written / "pairs.jsonl").read_text().splitlines()
    (written / "pairs.jsonl").write_text("\n".join([lines[0], lines[1][:50], lines[2]]) + "\n")
    with pytest.raises(BesagError, match=r"pairs\.jsonl, line 2 is no row"):
        Folder(written).report()


def test_the_report_is_written_next_to_the_rows(written):
    pytest.importorskip("matplotlib").use("Agg")
    report = Report((*many(3), PairRow(4, "random", Status.SHORT)))
    Folder(written).write(report)
    table = pq.read_table(written / "pairs.parquet").to_pylist()
    assert len(table) == 3 * 4 + 1
    assert table[1]["pair_nll"] == pytest.approx(many(3)[0].joints["ag"]["pair_nll"])
    assert table[-1]["status"] == "short"
    head, *lines = [line.split("\t") for line in (written / "table.tsv").read_text().splitlines()]
    assert {len(line) for line in lines} == {len(head)}
    ag = dict(zip(head, lines[1], strict=True))
    assert ag["construction"] == "ag"
    assert float(ag["pair_ppl"]) == pytest.approx(report.table()[1]["pair_ppl"])
    assert "difference" in (written / "differences.tsv").read_text().splitlines()[0]
    assert (written / "nll-by-distance.png").read_bytes().startswith(b"\x89PNG")


def test_settings_are_kept_for_the_report(written):
    report = Folder(written).report()
    assert report.settings["model"] == "tiny"
    assert "kind" not in report.settings
    assert json.loads((written / "study.json").read_text())["kind"] == "besag pair study"


def test_a_checksum_knows_texts_and_their_order():
    sums = [checksum(texts) for texts in (["ab", "c"], ["a", "bc"], ["c", "ab"], ["ab", "c", ""], [])]
    assert len(set(sums)) == len(sums)
    assert checksum(["ab", "c"]) == sums[0]


def test_nan_is_no_number_in_a_line(written):
    lines = (written / "pairs.jsonl").read_text()
    assert "NaN" not in lines
    assert math.isnan(PairRow.from_dict({**json.loads(lines.splitlines()[0]), "incompatibility": None}).incompatibility)
