"""A table as data, written for a terminal and for a notebook."""

import re

from besag.results.grid import Grid, Line, footer, heading, lines, page

GRID = Grid(
    ("", "name", "prob", ""),
    [
        Line(("1", "<b>", "50%", ""), hint='say "x"', share=1.0, more="the <b> sleeps"),
        Line(("2", "cat", "5%", "←"), share=0.1, strong=True, more="the cat sleeps ←"),
    ],
    left=(1, 3),
    bar=2,
    note="5 < 6",
)


def test_a_wide_terminal_shows_more_than_a_narrow_one():
    assert GRID.text(80) == "   name  prob\n1  <b>    50%  the <b> sleeps\n2  cat     5%  the cat sleeps ←\n5 < 6"
    assert GRID.text(20) == "   name  prob\n1  <b>    50%\n2  cat     5%  ←\n5 < 6"


def test_a_page_escapes_cells_hints_and_notes():
    shown = GRID.html()
    assert "<b>" not in shown
    assert "&lt;b&gt;" in shown
    assert 'title="say &quot;x&quot;"' in shown
    assert "<div>5 &lt; 6</div>" in shown
    assert shown.count("font-weight:bold") == 1


def test_bars_are_translucent_and_as_long_as_their_shares():
    bars = re.findall(r"linear-gradient\(to right,rgba\(226,72,38,.35\) ([\d.]+)%,transparent ([\d.]+)%\)", GRID.html())
    assert bars == [("100.0", "100.0"), ("10.0", "10.0")]


def test_without_a_head_there_is_none():
    plain = Grid((), lines([("a", "1"), ("b", "22")]), left=(0,))
    assert plain.text(80) == "a   1\nb  22"
    assert "<th" not in plain.html()


def test_a_grid_of_nothing_is_left_out():
    nothing = Grid(("a",), [])
    assert not nothing
    assert page(["<t>"], [nothing], ["f & g"]) == heading(["<t>"]) + footer(["f & g"])
    assert "&lt;t&gt;" in heading(["<t>"])
    assert "f &amp; g" in footer(["f & g"])
    assert heading([]) == ""
