"""Processes: a few at a time, what went wrong in their own words, and Ctrl-C passed on."""

import os
import signal
import subprocess
import sys
import time

import pytest

from besag.errors import BesagError
from besag.sweeps.cells import cells
from besag.sweeps.running import Judges, Work, carried_out, judging, training, write_recipes

RECIPE = {"data": {"train": ["text.txt"]}, "schedule": {"steps": 2}}


def work(folder, name, script):
    return Work(name, ("sh", "-c", script), folder / f"{name}.log")


def test_as_many_run_at_a_time_as_are_asked_for(tmp_path):
    script = f"ls {tmp_path} | grep -c on- >> {tmp_path}/seen; sleep 0.3; rm {tmp_path}/on-$$"
    pieces = [work(tmp_path, str(place), f"touch {tmp_path}/on-$$; {script}") for place in range(5)]
    assert {one.name: problem for one, problem in carried_out(pieces, 2)} == dict.fromkeys("01234", "")
    assert max(map(int, (tmp_path / "seen").read_text().split())) == 2


def test_what_fails_is_told_in_its_last_words_and_the_others_go_on(tmp_path):
    pieces = [
        work(tmp_path, "bad", "echo first; echo 'error: no such text' >&2; exit 2"),
        work(tmp_path, "dumb", "exit 7"),
        work(tmp_path, "partly", "exit 3"),
        work(tmp_path, "good", "true"),
    ]
    found = {one.name: problem for one, problem in carried_out(pieces, 1, accepted=(0, 3))}
    assert found == {"bad": "no such text", "dumb": "it ended with 7", "partly": "", "good": ""}


def test_ctrl_c_is_passed_on_once_and_waited_for(tmp_path):
    script = f"trap 'sleep 0.3; echo once >> {tmp_path}/stopped; exit 130' INT; touch {tmp_path}/on; sleep 60 & wait"
    code = f"""
from pathlib import Path
from besag.sweeps.running import Work, carried_out
list(carried_out([Work("one", ("sh", "-c", {script!r}), Path({str(tmp_path / "log")!r}))], 1))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, env=environment) as parent:
        while not (tmp_path / "on").exists():
            time.sleep(0.05)
        parent.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in parent.communicate(timeout=30)[1]
    assert (tmp_path / "stopped").read_text() == "once\n"


def test_what_is_finished_is_not_done_again(tmp_path):
    plan = cells([RECIPE], {"run.seed": [1, 2, 3]}, tmp_path / "runs")
    write_recipes(tmp_path, plan)
    assert [one.name for one in training(tmp_path, plan)] == ["seed=1", "seed=2", "seed=3"]
    (tmp_path / "runs" / "seed=1" / "model").mkdir(parents=True)
    (tmp_path / "runs" / "seed=2" / "checkpoints" / "step-00000001").mkdir(parents=True)
    left = {one.name: one.command for one in training(tmp_path, plan)}
    assert list(left) == ["seed=2", "seed=3"]
    assert "--resume" in left["seed=2"]
    assert "--resume" not in left["seed=3"]
    judges = Judges(["blimp"], data="there", limit=5)
    [first] = judging(tmp_path, plan, judges)
    assert first.name == "seed=1"
    assert "--force" in first.command
    judged = tmp_path / "judged" / "seed=1"
    judged.mkdir()
    note = judged / "items.jsonl.progress"
    note.touch()
    assert "--resume" in judging(tmp_path, plan, judges)[0].command
    (judged / "run.json").write_text("{}")
    assert "--resume" in judging(tmp_path, plan, judges)[0].command  # killed before the note was removed
    note.unlink()
    assert not judging(tmp_path, plan, judges)
    assert "--force" in judging(tmp_path, plan, judges._replace(limit=6))[0].command
    assert "--force" in judging(tmp_path, plan, judges._replace(limit=6))[0].command  # killed before it was judged so
    (judged / "items.jsonl").touch()  # killed as --force removed what was there: the items are of another evaluation
    assert "--force" in judging(tmp_path, plan, judges._replace(limit=6))[0].command
    assert not judging(tmp_path, plan, Judges([]))


def test_a_run_that_was_begun_otherwise_is_no_run_of_this_sweep(tmp_path):
    plan = cells([RECIPE], {"run.seed": [1]}, tmp_path / "runs")
    write_recipes(tmp_path, plan)
    other = cells([{**RECIPE, "schedule": {"steps": 3}}], {"run.seed": [1]}, tmp_path / "runs")
    write_recipes(tmp_path, other)  # nothing has been learned yet
    (tmp_path / "runs" / "seed=1" / "model").mkdir(parents=True)
    with pytest.raises(BesagError, match=r"begun otherwise.*steps"):
        write_recipes(tmp_path, plan)
    write_recipes(tmp_path, other)
