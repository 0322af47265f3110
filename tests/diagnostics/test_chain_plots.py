"""Chains as a picture."""

import itertools
import sys
import warnings

import numpy as np
import pytest

from besag.diagnostics import chain_plots, chains
from besag.diagnostics.chain_plots import plot_chain
from besag.errors import BesagError

RNG = np.random.default_rng(0)
ENERGY = RNG.normal(size=(5, 60)).cumsum(1)
ACCEPTED = (RNG.random((5, 60)) < 0.4).astype(float)


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")


def drawn(figure):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3]


def walk(lines, places, symbols=("a", "▁house", "tree")):
    rows = [["[MASK]"] * places]
    for _ in range(lines - 1):
        row = list(rows[-1])
        row[RNG.integers(places)] = str(RNG.choice(symbols))
        rows.append(row)
    return rows


def test_a_row_for_each_number_with_its_chains_mean_and_memory(pyplot):
    figure = plot_chain({"other": ENERGY * 2, "accepted": ACCEPTED, "energy": ENERGY, "passes": np.ones((5, 60))})
    energy, memory, accepted, _, other, _ = figure.axes
    assert [ax.get_ylabel() for ax in (energy, accepted, other)] == ["energy", "accepted (share)", "other"]
    *each, mean = energy.lines
    np.testing.assert_array_equal([line.get_ydata() for line in each], ENERGY)
    np.testing.assert_allclose(mean.get_ydata(), ENERGY.mean(0))
    heights = [bar.get_height() for bar in memory.patches]
    np.testing.assert_allclose(heights, chains.autocorrelation(ENERGY, len(heights) - 1))
    assert f"R-hat {chains.rhat(ENERGY):.2f}" in memory.get_title(loc="left")
    assert drawn(figure).std() > 1


def test_zeros_and_ones_are_drawn_as_shares_of_a_window():
    found = chain_plots._sliding(ACCEPTED, 7)
    for chain in range(5):
        for step in range(60):
            assert found[chain, step] == pytest.approx(ACCEPTED[chain, max(0, step - 6) : step + 1].mean())


def test_chains_that_have_ended_leave_white_and_are_told(pyplot):
    values = ENERGY.copy()
    values[2:, 40:] = np.nan
    figure = plot_chain({"log_prob": values})
    mean = figure.axes[0].lines[-1].get_ydata()
    np.testing.assert_allclose(mean[45], ENERGY[:2, 45].mean())  # of those that go on
    assert figure.axes[1].texts[0].get_text() == "the chains end at different steps"
    drawn(figure)


def test_what_never_changes_is_named_and_not_drawn(pyplot):
    figure = plot_chain({"energy": ENERGY, "size": np.ones((5, 60))}, title="gibbs scan=random")
    assert len(figure.axes) == 2
    assert "gibbs scan=random · 5 chains · 60 steps" in figure.get_suptitle()
    assert "never changed: size" in figure.get_suptitle()
    with pytest.raises(BesagError, match="there is nothing to draw: size never changed"):
        plot_chain({"size": np.ones((5, 60))})


def test_tokens_are_written_and_coloured_where_they_are_new(pyplot):
    rows = [["[MASK]", "▁b"], ["▁a", "▁b"], ["▁a", "▁c"]]
    figure = plot_chain({}, tokens=rows, steps=[0, 5, 10])
    [ax] = figure.axes
    assert [text.get_text() for text in ax.texts] == ["[MASK]", "b", "a", "b", "a", "c"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "5", "10"]
    shade = ax.collections[0].get_array().filled(0).reshape(3, 2)
    assert shade[0].tolist() == [0, 0]  # what is there at the start is not new
    assert shade[1, 0] > 0 == shade[1, 1]
    assert shade[2, 1] > shade[2, 0] > 0  # new, and one line old
    assert drawn(figure).std() > 1


@pytest.mark.parametrize(("lines", "places"), [(2, 1), (200, 10), (12, 60), (3, 400)])
def test_long_and_wide_rasters_stay_readable(pyplot, lines, places):
    figure = plot_chain({"energy": ENERGY}, tokens=walk(lines, places), steps=range(lines))
    pixels = drawn(figure)
    assert pixels.shape[0] < 2500
    bands = figure.axes[2:]
    assert len(bands) <= chain_plots.BANDS
    assert (f"of {places} places" in bands[0].get_title(loc="left")) == (places == 400)
    for ax in bands:
        labels = ax.get_yticklabels()
        assert labels[0].get_text() == "0"
        assert labels[-1].get_text() == str(lines - 1)
        assert min(text.get_fontsize() for text in ax.texts) > 6
        sizes = [text.get_window_extent() for text in ax.texts[: places if places < 20 else 5]]
        assert all(a.x1 <= b.x0 + 1 for a, b in itertools.pairwise(sizes) if a.y0 == b.y0)


@pytest.mark.parametrize("symbols", [["日本", "שלום", "🦜"], ["$x^2$", "_", "{0}", "$"], ["▁", "##s", "a" * 40]])
def test_every_script_and_sign_can_be_drawn(pyplot, symbols):
    assert drawn(plot_chain({}, tokens=walk(5, 4, symbols))).std() > 1


def test_one_short_chain_can_be_drawn(pyplot):
    figure = plot_chain({"changed": np.array([0.0, 1, 1, 0])})
    assert figure.axes[1].texts[0].get_text() == "fewer than 8 steps"
    assert len(figure.axes[0].lines) == 1  # no mean of one
    drawn(figure)


@pytest.mark.parametrize("tokens", [[["a"], ["a", "b"]], [[]], [["a"]]])
def test_tokens_that_are_no_table(tokens):
    pytest.importorskip("matplotlib")
    with pytest.raises(BesagError, match="K lines of L tokens each"):
        plot_chain({}, tokens=tokens, steps=[1, 2])


def test_matplotlib_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(BesagError, match=r"pip install 'besag\[plot\]'"):
        plot_chain({"energy": ENERGY})
