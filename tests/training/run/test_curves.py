"""Curves: what is drawn is what was logged."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import BesagError
from besag.training.run import curves
from besag.training.run.curves import BARS, Live, Series, draw, panels, picture, series, sparkline, thinned
from besag.training.run.logs import Log


def rows(steps: int = 50, level: float = 0.0) -> list[dict[str, float]]:
    found: list[dict[str, float]] = []
    for step in range(1, steps + 1):
        found.append({"step": step, "tokens": 1000 * step, "seconds": 0.5 * step, "loss": 9 / step**0.3 + level,
                      "lr": 1e-3 * (1 - step / steps)})  # fmt: skip
        if step % 10 == 0:
            found.append({"step": step, "heldout_loss": 8.5 / step**0.3, "minimal_pairs": 0.5 + step / 200,
                          "pseudo_perplexity": 100.0 / step})  # fmt: skip
    return found


def test_a_number_stands_where_its_step_does_even_without_the_axis():
    line = series(rows(), "heldout_loss", "tokens")
    assert line.x.tolist() == [10_000, 20_000, 30_000, 40_000, 50_000]
    assert line.y[0] == pytest.approx(8.5 / 10**0.3)
    assert len(series(rows(), "nothing").x) == 0


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(-1e3, 1e3)), min_size=1, max_size=200), st.integers(1, 40))
def test_thinning_keeps_the_sum_and_the_ends(points, bins):
    x, y = np.array(sorted(points)).T
    few = thinned(Series(x, y), bins, logarithmic=True)
    assert len(few.x) <= max(bins, 1) or len(x) <= bins
    assert np.all(np.diff(few.x) >= 0)
    assert few.y.min() >= y.min() - 1e-9
    assert few.y.max() <= y.max() + 1e-9


def test_what_is_not_finite_is_left_out():
    line = thinned(Series(np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, math.nan, 2.0, math.inf])), 10, True)
    assert (line.x.tolist(), line.y.tolist()) == ([2.0], [2.0])


def test_every_number_of_a_log_has_a_panel():
    found = panels({"a": rows()})
    assert [panel.keys for panel in found] == [
        ("loss", "heldout_loss"),
        ("lr",),
        ("minimal_pairs",),
        ("pseudo_perplexity",),
    ]
    assert len(panels({"a": [{"step": 1, "loss": 3.0}]})) == 1


def test_the_figure_shows_the_numbers(tmp_path):
    pytest.importorskip("matplotlib")
    figure = draw({"one": rows(), "two": rows(level=1.0)})
    loss, rate, pairs, perplexity = figure.axes
    assert loss.get_xscale() == "log"
    labels = [text.get_text() for text in loss.get_legend().get_texts()]
    assert labels == ["one", "two", "held-out loss"]
    [accuracy, _] = pairs.get_lines()
    assert accuracy.get_ydata()[-1] == pytest.approx(75.0)  # percent
    assert accuracy.get_xdata()[-1] == 50_000
    assert rate.get_ylim()[0] == 0
    assert len(perplexity.get_lines()) == 2
    assert draw({"one": rows()}, "seconds").axes[0].get_lines()[0].get_xdata()[-1] == 25.0


def test_several_runs_have_one_number_a_panel_and_wide_ranges_a_logarithmic_axis():
    pytest.importorskip("matplotlib")
    fit = [{"step": 1, "rectangle_deviation": 2.0, "mutual_information": 0.1, "odd": 1.0}, {"step": 2, "odd": 1000.0}]
    one, many = draw({"one": rows() + fit}), draw({"one": rows() + fit, "two": rows()})
    assert len(one.axes) == 6
    assert len(many.axes) == 7
    assert one.axes[3].get_title(loc="left") == "compatibility of neighbours (nats)"
    assert [ax.get_yscale() for ax in one.axes][-1] == "log"
    draw({"broken": [{"step": 1, "tokens": 5, "loss": math.nan}]})  # nothing finite is no reason to fail


def test_nothing_to_draw_is_said():
    pytest.importorskip("matplotlib")
    with pytest.raises(BesagError, match="nothing is logged yet in empty"):
        draw({"full": rows(), "empty": []})
    with pytest.raises(BesagError, match="'epochs' is no axis"):
        draw({"full": rows()}, "epochs")


def test_the_live_picture_is_drawn_now_and_then(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    now = [0.0]
    monkeypatch.setattr(curves.time, "monotonic", lambda: now[0])
    live = Live(seconds=20)
    with Log(tmp_path, live=live, tensorboard=False) as log:
        for row in rows(30):
            now[0] += 1.0
            log.record(row)
            assert (tmp_path / "curves.png").exists() == (now[0] >= 20)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.glob("*.png")] == ["curves.png"]  # and nothing half written beside it


def test_drawing_takes_a_small_share_of_the_time(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(curves.time, "monotonic", lambda: now[0])

    def slow(folder: object) -> bool:
        now[0] += 3.0
        return True

    monkeypatch.setattr(curves, "picture", slow)
    live = Live(seconds=20)
    drawn = 0
    for _ in range(1000):
        now[0] += 1.0
        drawn += live(tmp_path)
    assert drawn == 4  # after 20 seconds, then every 300


def test_a_picture_that_cannot_be_written(tmp_path):
    figure = curves.draw({"run": [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}]}, "step")
    (tmp_path / "c.png").mkdir()  # in its place
    with pytest.raises(BesagError, match=r"c\.png' is a folder, not a file"):
        curves.save(figure, tmp_path / "c.png")
    assert [one.name for one in tmp_path.iterdir()] == ["c.png"]


def test_a_run_without_numbers_has_no_picture(tmp_path):
    Log(tmp_path, tensorboard=False).close()
    assert not picture(tmp_path)


def test_a_sparkline_falls_as_the_loss_does():
    line = sparkline([9 / step**0.3 for step in range(1, 10_000)], 20)
    assert len(line) <= 20
    heights = [BARS.index(letter) for letter in line]
    assert heights == sorted(heights, reverse=True)
    assert (heights[0], heights[-1]) == (len(BARS) - 1, 0)
    assert sparkline([]) == sparkline([math.nan]) == ""
    assert sparkline([2.0, 2.0]) == BARS[0] * 2
    assert sparkline([8.0, 4.5, 1.0]) == "█▅▁"
