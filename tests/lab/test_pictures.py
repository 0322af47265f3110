"""Curves are told apart without colours, and axes have names."""

import pytest

from besag.lab.pictures import COLOURS, curves, style


def test_every_curve_has_a_colour_and_a_mark_of_its_own():
    seen = [style(number) for number in range(len(COLOURS))]
    assert len({one["marker"] for one in seen}) == len({one["color"] for one in seen}) == len(COLOURS)


def test_axes_are_named_and_scaled():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    ax = curves(figure.add_subplot(), [1, 2], {"a": [1, 2], "b": [2, 1]}, "x (units)", "y", yscale="log")
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_yscale()) == ("x (units)", "y", "log")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_a_logarithmic_axis_has_plain_numbers_where_none_is_long():
    figures = pytest.importorskip("matplotlib.figure")

    def ticks(most):
        figure = figures.Figure()
        ax = curves(figure.add_subplot(), [1, 2], {"a": [0.2, most]}, "x", "y", yscale="log")
        figure.draw_without_rendering()
        low, high = ax.get_ylim()
        shown = [label for label in ax.yaxis.get_ticklabels(which="both") if low <= label.get_position()[1] <= high]
        return {label.get_text() for label in shown}

    assert {"0.2", "0.4"} <= ticks(0.45)
    assert any("10^" in said for said in ticks(1e7))
