"""A score in words: the table of a terminal and the coloured sentence of a notebook."""

import html
from html.parser import HTMLParser

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.scores.example_scores import make, scores, unscored

from besag.results.tables import display_width
from besag.scores import show

# ---- the table


def test_the_table_reads_as_expected():
    assert show.table(make(rank=np.arange(1, 6)), 100) == (
        "          The     cat     s   sleep       .\n"
        "log p   −1.00   −2.00 −3.00   −4.00   −5.00\n"
        "rank        1       2     3       4       5\n"
        "\n"
        "total −15.00 nats · pll: not a probability · pseudo-perplexity 20.09 · 5 tokens · tiny"
    )


def test_a_probability_is_called_one_and_its_parts_are_named():
    score = make(method="chain", normalised="token sequences", extra={"length": -2.5}, standard_error=0.125, unknown=1)
    said = " ".join(str(score).split())
    assert "total −17.50 ± 0.12 nats, length −2.50 of it" in said
    assert "chain: a log-probability of token sequences" in said
    assert "pseudo" not in said
    assert "5 tokens, 1 of them unknown" in said


@given(scores(), st.integers(20, 200))
def test_columns_line_up_whatever_the_letters_and_the_terminal(score, width):
    for block in show.table(score, width).split("\n\n")[:-1]:
        widths = {display_width(line) for line in block.split("\n")}
        assert len(widths) == 1
        assert widths.pop() <= max(width, 30)


def test_the_terminal_decides_the_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    assert max(map(len, str(make()).split("\n\n")[0].split("\n"))) <= 30
    assert repr(make()) == str(make())


def test_tokens_are_shown_as_the_text_they_cover():
    lone = make(text="日本", pieces=("▁", "日本"))
    assert show.labels(lone) == ["␣", "日本"]
    assert lone.by_word()[0] == ("▁", 0, 0, -1.0)
    maltese = make(text="Ġib\nit", pieces=("Ġib", "\n", "it"))
    assert show.labels(maltese) == ["Ġib", "↵", "it"]  # a letter of the text, not a tokenizer's stand-in for a space
    parts = make(text="a 🦜", pieces=(), tokens=("a", "ĠðŁ", "¦", "ľ"), offsets=np.array([(0, 1), *[(2, 3)] * 3]),
                 ids=np.arange(4), words=np.array([0, 1, 1, 1]), log_probs=-np.ones(4))  # fmt: skip
    assert show.labels(parts) == ["a", "🦜", "¦", "ľ"]
    assert show.segments(parts) == [("a", (0,)), (" ", ()), ("🦜", (1, 2, 3))]


@given(scores())
def test_segments_are_the_text(score):
    pieces = show.segments(score)
    marks = sum(piece.text == "␣" for piece in pieces)
    assert "".join(piece.text for piece in pieces if piece.text != "␣") == score.text
    assert [i for piece in pieces for i in piece.tokens] == list(range(len(score)))
    assert marks == sum(start == end for start, end in score.offsets.tolist())


def test_right_to_left_words_are_isolated_so_that_columns_stay():
    shown = show.table(make(text="חתול ישב", pieces=("חתול", "ישב")), 80)
    assert shown.count("\u2068") == shown.count("\u2069") == 2


# ---- the notebook


class Reader(HTMLParser):
    """Collects what a browser would show, and every tag."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.titles, self.shown, self.depth = [], [], "", 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.depth += 1
        self.titles += [value for name, value in attrs if name == "title"]

    def handle_endtag(self, tag):
        self.depth -= 1

    def handle_data(self, data):
        self.shown += data


def test_html_escapes_the_text_and_shows_the_numbers_on_hover():
    text = '<script>alert("x")</script> & {0}'
    pieces = ("<script>", "alert", '("', "x", '")', "</script>", "&", "{0}")
    score = make(text=text, pieces=pieces, rank=np.arange(1, 9), entropy=np.ones(8), model="<b>tiny</b>")
    page = Reader(score._repr_html_())
    assert set(page.tags) == {"div", "span"}
    assert page.depth == 0
    assert page.shown.startswith(text)
    assert "<b>tiny</b>" in page.shown
    assert page.titles[0] == "<script>\nlog prob −1.000 nats\nprob 0.368\nrank 1\nentropy 1.000 nats"
    assert len(page.titles) == 8


def test_html_colours_are_translucent_and_grow_with_surprisal():
    page = make(log_probs=[-0.1, -1, -5, -8, -1000])._repr_html_()
    alphas = [float(part.split(")")[0].split(",")[3]) for part in page.split("background:rgba")[1:]]
    assert alphas == sorted(alphas)
    assert max(alphas) < 0.8
    assert "color:" not in page.replace("background-color:", "")


def test_html_of_an_unscored_text_shows_it():
    assert html.escape("<b> [MASK]") in unscored("mask", "<b> [MASK]")._repr_html_()
