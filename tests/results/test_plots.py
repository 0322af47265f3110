"""What pictures share."""

import pytest

from besag.results.plots import bars, caption, columns, fonts

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def ax():
    figure, axes = pyplot.subplots(figsize=(4, 3))
    yield axes
    pyplot.close(figure)


def test_bars_have_their_shares_and_the_first_is_on_top(ax):
    assert bars(ax, ["a b", "$x$" + "y" * 99], [0.75, 0.25], "share", ["a fact"]) is ax
    assert [patch.get_width() for patch in ax.patches] == [0.75, 0.25]
    assert ax.yaxis_inverted()
    first, second = (label.get_text() for label in ax.get_yticklabels())
    assert first == "a␣b"
    assert second.endswith("…")
    assert ax.get_title(loc="left") == "a fact"
    assert {text.get_text() for text in ax.texts} == {"75.0%", "25.0%"}


def test_a_caption_is_as_wide_as_its_axes_and_loses_nothing(ax):
    facts = ["one fact", "x" * 20 + " " + "y" * 25, *(f"fact {number}" for number in range(20))]
    count = caption(ax, facts)
    said = ax.get_title(loc="left").split("\n")
    assert len(said) == count > 2
    assert max(map(len, said)) <= columns(ax)
    assert " ".join(said).replace(" · ", " ") == " ".join(facts)


def test_the_readers_own_font_comes_first():
    assert fonts()[: len(matplotlib.rcParams["font.family"])] == matplotlib.rcParams["font.family"]
