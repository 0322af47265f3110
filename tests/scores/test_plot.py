"""A score as a picture."""

import math
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scores.example_scores import make

from besag.errors import BesagError
from besag.scores import plot


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")


TEXTS = {
    "plain": ("The cats sleep.", ("The", "cat", "##s", "sleep", ".")),
    "lone": ("a 日本", ("a", "▁", "日本")),
    "signs": ("$5_ ${x}^2$ 🦜\nend", ("$", "5_", "${x}^2$", "🦜", "end")),
    "hebrew": ("חתול BERT model ישב", ("חתול", "BERT", "model", "ישב")),
    "long": (" ".join(["unbelievable"] * 40), ("unbelievable",) * 40),
}


@pytest.mark.parametrize("kind", ["line", "text"])
@pytest.mark.parametrize("name", TEXTS)
def test_every_text_can_be_drawn(pyplot, kind, name):
    text, pieces = TEXTS[name]
    axes = make(text=text, pieces=pieces).plot(kind=kind)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        axes.figure.canvas.draw()
    assert np.asarray(axes.figure.canvas.buffer_rgba())[..., :3].std() > 1  # something was drawn on the white page


@pytest.mark.parametrize("kind", ["line", "text"])
def test_drawing_on_given_axes_returns_them(pyplot, kind):
    _, (ax, other) = pyplot.subplots(1, 2)
    assert make().plot(ax, kind) is ax
    assert not other.has_data()


def test_the_line_shows_surprisals_in_their_unit_and_the_tokens(pyplot):
    ax = make(base=2.0).plot()
    assert ax.lines[0].get_ydata().tolist() == [1, 2, 3, 4, 5]
    assert ax.get_ylabel() == "surprisal (bits)"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["The", "cat", "s", "sleep", "."]
    assert "not a probability" in ax.get_title(loc="left")


def test_labels_of_forty_tokens_do_not_overlap(pyplot):
    text, pieces = TEXTS["long"]
    ax = make(text=text, pieces=pieces).plot()
    ax.figure.canvas.draw()
    labels = ax.get_xticklabels()
    starts = [label.get_window_extent().x1 for label in labels]  # slanted: each ends where its token stands
    assert len(labels) == 40
    assert min(np.diff(starts)) * math.sin(math.pi / 4) > labels[0].get_fontsize() * ax.figure.dpi / 72


def test_an_impossible_token_is_marked_in_the_line(pyplot):
    ax = make(log_probs=[-1, -math.inf, -3, -4, -5]).plot()
    assert [text.get_text() for text in ax.texts] == ["∞"]


def test_the_text_wraps_inside_its_axes(pyplot):
    text, pieces = TEXTS["long"]
    ax = make(text=text, pieces=pieces).plot(kind="text")
    ax.figure.canvas.draw()
    boxes = [box.get_window_extent() for artist in ax.artists for box in artist.get_child().get_children()]
    area = ax.get_window_extent()
    assert len({round(box.y0) for box in boxes}) > 3
    assert all(area.x0 - 1 <= box.x0 and box.x1 <= area.x1 + 1 and box.y0 >= area.y0 for box in boxes)


@given(st.lists(st.sampled_from(["ab", "שלום", " ", "12"]), max_size=8), st.booleans())
def test_visual_order_turns_runs_against_the_line(texts, right_to_left):
    order = plot._visual_order(texts, right_to_left)
    assert sorted(order) == list(range(len(texts)))
    if "שלום" not in texts and "ab" in texts:
        inside = [i for i in order if texts.index("ab") <= i <= len(texts) - 1 - texts[::-1].index("ab")]
        assert inside == sorted(inside)  # left-to-right words keep their order on any line


def test_a_right_to_left_line_is_laid_out_as_it_is_read():
    """Two Hebrew words around two English ones: seen from the left, the last Hebrew word stands first."""
    assert plot._visual_order(["שלום", " ", "big", " ", "cat", " ", "עולם"], right_to_left=True) == [
        6,
        5,
        2,
        3,
        4,
        1,
        0,
    ]
    assert plot._visual_order(["a", " ", "שלום", " ", "עולם", " ", "b"], right_to_left=False) == [0, 1, 4, 3, 2, 5, 6]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(BesagError, match=r"besag\[plot\]"):
        make().plot()
