"""A joint as a picture."""

import sys
import warnings

import numpy as np
import pytest
from tests.joints.example_pairs import casino, make

from besag.errors import BesagError
from besag.joints import pair_plot


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")


def drawn(ax):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        ax.figure.canvas.draw()
    return np.asarray(ax.figure.canvas.buffer_rgba())[..., :3]


def test_the_heatmap_is_the_joint_of_the_likeliest_tokens(pyplot):
    joint = make("ag", 7, 6, gold=False)
    ax = joint.plot(n=4)
    u, v = joint.marginals
    x, y = np.argsort(-u)[:4], np.argsort(-v)[:4]
    np.testing.assert_allclose(ax.images[0].get_array(), np.exp(joint.matrix()[np.ix_(x, y)]))
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"s{i}" for i in x]
    assert [label.get_text() for label in ax.get_xticklabels()] == [f"s{i}" for i in y]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("a (token 1)", "b (token 2)")
    right, above = ax.child_axes
    np.testing.assert_allclose([bar.get_width() for bar in right.patches], np.exp(u[x]))
    np.testing.assert_allclose([bar.get_height() for bar in above.patches], np.exp(v[y]))
    shown = f"{np.exp(joint.matrix()[np.ix_(x, y)]).sum():.1%} of it is shown"
    assert shown in above.get_title(loc="left").replace("\n", " ")
    assert not ax.patches
    assert drawn(ax).std() > 1


def test_the_text_s_own_pair_is_outlined_even_where_it_is_unlikely(pyplot):
    joint = next(j for j in (make("ag", 8, 8, seed=s) for s in range(50)) if np.argsort(-j.marginals[0])[:3].min() > 1)
    ax = joint.plot(n=3)
    [box] = ax.patches
    assert ax.get_yticklabels()[-1].get_text() == "s1"
    row, column = round(box.get_y() + 0.46), round(box.get_x() + 0.46)
    assert ax.images[0].get_array()[row, column] == pytest.approx(joint.gold.prob)


def test_numbers_stand_where_there_is_probability(pyplot):
    joint = make("ag", 5, 5)
    written = sorted(text.get_text() for text in joint.plot().texts)
    q = np.exp(joint.matrix())
    assert written == sorted(f"{p:.1%}" for p in q[q >= pair_plot.WRITTEN])


def test_given_axes_are_used_and_no_others(pyplot):
    figure, (ax, other) = pyplot.subplots(1, 2, layout="constrained")
    assert casino().plot(ax, n=3) is ax
    assert not other.has_data()
    assert len(figure.axes) == 2
    drawn(ax)
    extent = ax.get_tightbbox()
    assert extent.x1 <= other.get_tightbbox().x0  # the bars on the side do not lie on the neighbour


@pytest.mark.parametrize(
    "symbols",
    [["日本", "שלום", "Дом", "🦜"], ["$x^2$", "_", "{0}", "$"], ["▁", "Ġthe", "▁internationalisation", "##s"], ["a"]],
)
def test_every_script_and_sign_can_be_drawn(pyplot, symbols):
    ax = make("mlm", len(symbols), len(symbols), symbols=symbols, gold=False).plot()
    assert drawn(ax).std() > 1
    assert {label.get_text()[-1] for label in ax.get_xticklabels()} <= {symbol[-1] for symbol in symbols} | {"…", "␣"}


def test_labels_do_not_overlap(pyplot):
    ax = make("mlm", 12, 12).plot()
    drawn(ax)
    heights = sorted(label.get_window_extent().y0 for label in ax.get_yticklabels())
    assert min(np.diff(heights)) > ax.get_yticklabels()[0].get_fontsize() * ax.figure.dpi / 72


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(BesagError, match=r"besag\[plot\]"):
        make().plot()
    with pytest.raises(BesagError, match=r"besag\[plot\]"):
        make().compare(["mlm"]).plot()
