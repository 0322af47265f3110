"""Logs: nothing that was logged is lost, a torn line is mended, a resumed run leaves no trace of what it does anew."""

from __future__ import annotations

import io
import json
import math
import sys
import warnings
from pathlib import Path

import pytest

from besag.errors import BesagError
from besag.training.recipe import Recipe, Run, Schedule
from besag.training.run import logs
from besag.training.run.logs import Log, Progress, duration


def line(step: int, **more: float) -> dict[str, float]:
    return {"step": step, "tokens": 100 * step, "loss": 8.0 / step, **more}


def test_every_line_is_on_disk_at_once_and_is_json(tmp_path):
    log = Log(tmp_path, tensorboard=False)
    log.record(line(1, lr=1e-3))
    log.record(line(2, loss=math.nan, grad_norm=math.inf))
    content = (tmp_path / "log.jsonl").read_text().splitlines()  # before it is closed
    assert [json.loads(one, parse_constant=None)["step"] for one in content] == [1, 2]
    assert "NaN" not in content[1]
    assert "Infinity" not in content[1]
    first, second = logs.read(tmp_path)
    assert first == line(1, lr=1e-3)
    assert math.isnan(second["loss"])
    assert math.isnan(second["grad_norm"])
    log.close()
    log.close()  # twice does no harm


def test_tensors_and_numpy_numbers_are_plain_numbers(tmp_path):
    import numpy as np
    import torch

    with Log(tmp_path, tensorboard=False) as log:
        log.record({"step": 1, "loss": torch.tensor(2.5), "rate": np.float32(0.5)})
    assert logs.read(tmp_path) == [{"step": 1, "loss": 2.5, "rate": 0.5}]


def test_a_resumed_run_cuts_what_comes_after_its_checkpoint_and_a_torn_line(tmp_path):
    with Log(tmp_path, tensorboard=False) as log:
        for step in (10, 20, 30, 40):
            log.record(line(step))
    with open(tmp_path / "log.jsonl", "ab") as file:
        file.write(b'{"step": 50, "lo')  # killed while writing
    assert [row["step"] for row in logs.read(tmp_path)] == [10, 20, 30, 40]
    with Log(tmp_path, step=25, tensorboard=False) as log:
        log.record(line(30, loss=1.0))
    assert [row["step"] for row in logs.read(tmp_path)] == [10, 20, 30]
    assert logs.read(tmp_path)[-1]["loss"] == 1.0
    assert not list(tmp_path.glob("*.new"))


def test_a_run_that_begins_anew_keeps_no_line(tmp_path):
    with Log(tmp_path, tensorboard=False) as log:
        log.record(line(1))
    Log(tmp_path, tensorboard=False).close()
    assert logs.read(tmp_path) == []


def test_a_full_disk_ends_the_log_with_a_line_that_can_be_mended(tmp_path):
    from tests.training.run.test_checkpoint import small_disk

    log = Log(tmp_path, tensorboard=False)
    log.record(line(1))
    size = (tmp_path / "log.jsonl").stat().st_size
    with small_disk(size + 10), pytest.raises(BesagError, match=r"log\.jsonl' could not be written: \w+.*--resume"):
        log.record(line(2))
    log.close()  # nothing waits to be written, so nothing fails a second time
    assert [row["step"] for row in logs.read(tmp_path)] == [1]
    with Log(tmp_path, step=1, tensorboard=False) as log:
        log.record(line(2))
    assert [row["step"] for row in logs.read(tmp_path)] == [1, 2]


def test_a_board_that_cannot_be_written_is_said_once_and_stops_nothing(tmp_path):
    tried = []

    class Writer:
        def __init__(self, folder, purge_step):
            pass

        def add_scalar(self, *_):
            tried.append(1)
            raise OSError(28, "No space left on device")

    board = logs._Board(Writer, tmp_path, 0)
    with pytest.warns(UserWarning, match=r"TensorBoard's files are not written any more: No space left on device"):
        board.add(1, {"step": 1, "loss": 2.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        board.add(2, {"step": 2, "loss": 2.0})
        board.flush()
        board.close()
    assert len(tried) == 1


def test_what_is_no_log(tmp_path):
    with pytest.raises(BesagError, match="is no run"):
        logs.read(tmp_path / "nowhere")
    (tmp_path / "log.jsonl").write_text('{"loss": 3}\n')
    with pytest.raises(BesagError, match="holds a line that is none of a log"):
        logs.read(tmp_path)


def test_tensorboard_gets_the_same_numbers(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with Log(tmp_path) as log:
        log.record(line(1))
        log.record({"step": 2, "tokens": 200, "heldout_loss": 4.0})
        log.record(line(3, loss=math.nan))
    events = accumulator.EventAccumulator(str(tmp_path / logs.BOARD))
    events.Reload()
    assert [(one.step, one.value) for one in events.Scalars("training/loss")] == [(1, 8.0)]
    assert [(one.step, one.value) for one in events.Scalars("evaluation/heldout_loss")] == [(2, 4.0)]


# ---- progress


def test_time_is_told_in_hours_and_minutes():
    assert [duration(one) for one in (5, 59.6, 754, 11045)] == ["0:05", "1:00", "12:34", "3:04:05"]


def test_the_time_that_is_left_follows_the_clock_or_the_pace(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    by_time, by_steps, resumed = Progress("minutes", 20), Progress("steps", 100), Progress("steps", 100, done=50)
    now[0] = 60.0
    by_time.advance(10, 1000, 300.0)
    by_steps.advance(25, 1000, 60.0)
    resumed.advance(75, 1000, 60.0)
    assert by_time.left() == pytest.approx(15 * 60)
    assert by_steps.left() == pytest.approx(180)
    assert resumed.left() == pytest.approx(60)  # its own pace, not that of the steps before it


def test_without_a_terminal_a_line_is_said_now_and_then(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    progress = Progress("tokens", 1000)
    for step in range(1, 101):
        now[0] += 1.0
        progress.advance(step, 5 * step, 1.0 * step)
        if step % 10 == 0:
            progress.note({"step": step, "loss": 10 - step / 20, "tokens_per_second": 5.0})
    lines = said.getvalue().splitlines()
    assert len(lines) == 3  # at 30, 60 and 90 seconds
    assert lines[-1].startswith("step 90 · 45% · loss 6.000 ")
    assert lines[-1].endswith(" · 5 tokens/s · 1:50 left")


def test_a_terminal_gets_a_bar_that_knows_its_end(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", said := Terminal())
    progress = Progress("minutes", 2.0)
    progress.advance(5, 100, 60.0)
    progress.note({"step": 5, "loss": 3.25})
    progress.advance(6, 120, 500.0)  # the last step went beyond the end
    progress.close()
    assert "loss 3.250" in said.getvalue()
    assert "100%" in said.getvalue().rpartition("\r")[2]
    assert "2.0/2 minutes" in said.getvalue()


@pytest.mark.parametrize(("kind", "done"), [("steps", 7), ("tokens", 700), ("minutes", 3.5)])
def test_a_log_is_made_for_a_recipe(tmp_path, kind, done):
    recipe = Recipe(schedule=Schedule(**{kind: 1000}), run=Run(output=str(tmp_path / "out"), plot=False))
    with Log.begin(recipe, step=7, tokens=700, seconds=210.0, tensorboard=False) as log:
        assert log._progress._done == done
        log.advance(8, 800, 240.0)
        log.record(line(8))
    assert (Path(recipe.run.output) / "log.jsonl").exists()
    with Log.begin(recipe, quiet=True, tensorboard=False) as quiet:
        assert quiet._progress is None
