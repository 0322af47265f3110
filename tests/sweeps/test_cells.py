"""Which runs a sweep has."""

from pathlib import Path

import pytest

from besag.errors import BesagError
from besag.sweeps.cells import cells, parsed

RECIPE = {"data": {"train": ["text.txt"]}, "schedule": {"steps": 2}}
FOLDER = Path("sweep/runs")


def test_every_choice_is_a_run_and_keys_joined_by_a_colon_go_together():
    together = {"model.config.hidden_size:model.config.intermediate_size": [[16, 32], [32, 64]]}
    found = cells([RECIPE], {"masking.rate": [0.15, 0.3], **together}, FOLDER)
    assert [one.name for one in found] == [
        "rate=0.15,hidden_size=16,intermediate_size=32", "rate=0.15,hidden_size=32,intermediate_size=64",
        "rate=0.3,hidden_size=16,intermediate_size=32", "rate=0.3,hidden_size=32,intermediate_size=64",
    ]  # fmt: skip
    last = found[-1].recipe
    assert (last.masking.rate, last.model.config["hidden_size"], last.model.config["intermediate_size"]) == (
        0.3,
        32,
        64,
    )
    assert last.run.output == str(FOLDER / found[-1].name)


def test_recipes_are_told_apart_and_keys_of_one_name_by_the_whole_of_it(tmp_path):
    for name in ("mlm", "rtd"):
        (tmp_path / f"{name}.toml").write_text('[data]\ntrain = ["text.txt"]\n[schedule]\nsteps = 2\n')
    files = [tmp_path / "mlm.toml", tmp_path / "rtd.toml"]
    found = cells(files, {"optimizer.name": ["adamw"], "objective.name": ["mlm"]}, FOLDER)
    assert [one.name for one in found] == [f"{name},optimizer.name=adamw,objective.name=mlm" for name in ("mlm", "rtd")]
    assert [one.values["recipe"] for one in found] == ["mlm", "rtd"]
    assert cells(files[:1], {}, FOLDER)[0].name == "mlm"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("masking.rate=0.15,0.3", ("masking.rate", [0.15, 0.3])),
        ("masking.law=span, uniform", ("masking.law", ["span", "uniform"])),
        ("a.b:a.c=1:x,2:y", ("a.b:a.c", [[1, "x"], [2, "y"]])),
        ('data.train=[["one.txt"], ["one.txt", "two.txt"]]', ("data.train", [["one.txt"], ["one.txt", "two.txt"]])),
    ],
)
def test_what_the_command_line_says(text, expected):
    assert parsed(text) == expected


@pytest.mark.parametrize("text", ["masking.rate", "=1", "masking.rate=", "masking.rate=1,,2", "masking.rate=[1"])
def test_what_it_cannot_say(text):
    with pytest.raises(BesagError, match="--vary"):
        parsed(text)


@pytest.mark.parametrize(
    ("vary", "why"),
    [
        ({"masking.rat": [0.1]}, "rat"),
        ({"masking.rate": [3.0]}, "rate"),
        ({"masking.rate": []}, "at least one value"),
        ({"masking.rate": "0.1"}, "give a list"),
        ({"masking.rate:run.seed": [[0.1, 1, 2]]}, "2 values"),
        ({"run.seed": [1, 1]}, "two runs would be called"),
        ({"run.seed": list(range(2000))}, "at most 1,000"),
    ],
)
def test_bad_keys_and_values_are_refused_before_anything_runs(vary, why):
    with pytest.raises(BesagError, match=why):
        cells([RECIPE], vary, FOLDER)
    with pytest.raises(BesagError, match="no recipe"):
        cells([], {}, FOLDER)
