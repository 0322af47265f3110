"""A sweep from end to end, by real processes."""

import pytest
from tests.training import a_run

import besag
from besag.errors import BesagError


def test_everything_that_can_be_refused_is_refused_first(tmp_path):
    recipe = {"data": {"train": ["text.txt"]}, "schedule": {"steps": 2}}
    (tmp_path / "file").write_text("")
    for more, why in (
        ({"judge": "blump"}, "blump"),
        ({"judge": "blimp", "data": str(tmp_path / "nowhere")}, "nowhere"),
        ({"jobs": 0}, "jobs=0"),
        ({"limit": 0}, "limit=0"),
        ({"output": tmp_path / "file"}, "is a file"),
    ):
        with pytest.raises(BesagError, match=why):
            besag.sweep(recipe, {"run.seed": [1]}, **{"output": tmp_path / "out", **more})
    assert not (tmp_path / "out").exists()
    apart = {"model": {"start": "small-en", "config": {}}, "adapt": {"method": "bottleneck"}}
    with pytest.raises(BesagError, match="keeps an adapter apart, and a sweep is of whole models"):
        besag.sweep(a_run.small(tmp_path / "run", apart), {"run.seed": [1]}, output=tmp_path / "out")


@pytest.mark.slow
def test_runs_are_trained_judged_and_gone_on_with(tmp_path):
    (tmp_path / "pairs.tsv").write_text("good\tbad\nThe dog sees.\tDog the sees.\nThe cat hears.\tCat the hears.\n")
    recipe = a_run.small(tmp_path / "run", {"schedule": {"steps": 2}, "evaluation": {"sentences": 4}})
    ask = {
        "output": tmp_path / "out",
        "judge": "minimal_pairs",
        "data": tmp_path / "pairs.tsv",
        "jobs": 2,
        "quiet": True,
    }
    found = besag.sweep(recipe, {"masking.rate": [0.2, 0.4]}, **ask)
    assert [row["status"] for row in found.rows] == ["ok", "ok"]
    assert all(row["minimal_pairs"] in (0.0, 50.0, 100.0) and row["heldout_loss"] > 1 for row in found.rows)
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("runs/*/model/*.safetensors")}
    again = besag.sweep(recipe, {"masking.rate": [0.2, 0.4, 0.6]}, **ask)
    assert again.rows[:2] == found.rows
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    assert len(stamps) == 2
