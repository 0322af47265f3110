"""Numbers and texts as sentences write them."""

import math

import pytest

from besag.results import words


@pytest.mark.parametrize(("prob", "said"), [(0.5, "50.00%"), (1e-4, "0.01%"), (3e-7, "3.0e-05%"), (0.0, "0.00%")])
def test_percent(prob, said):
    assert words.percent(prob) == said


@pytest.mark.parametrize(("value", "said"), [(-1.234, "−1.23"), (math.inf, "∞"), (-math.inf, "−∞"), (0.5, "0.50")])
def test_number(value, said):
    assert words.number(value) == said


@pytest.mark.parametrize(("value", "said"), [(1234.5, "1,234.50"), (2e7, "2e+07"), (math.inf, "∞")])
def test_amount(value, said):
    assert words.amount(value) == said


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("residual", 3.14159e-7, "residual 3.1e-07"),
        ("iterations", 1204, "iterations 1,204"),
        ("pivot", "▁man", "pivot ▁man"),
        ("two_words", 1, "two words 1"),
    ],
)
def test_detail(name, value, said):
    assert words.detail(name, value) == said


def test_plurals():
    assert [words.counted(n, "text") for n in (0, 1, 1200)] == ["0 texts", "1 text", "1,200 texts"]
    assert [words.passes(n) for n in (1, 1200)] == ["1 forward pass", "1,200 forward passes"]


def test_the_name_of_a_dtype():
    torch = pytest.importorskip("torch")
    assert words.dtype_name(torch.bfloat16) == words.dtype_name("bfloat16") == "bfloat16"


def test_exponential_leaves_no_range():
    assert words.exponential(1000.0) == math.inf
    assert words.exponential(1.0) == math.e


def test_meaning():
    assert words.meaning("") == "not a probability"
    assert words.meaning("texts") == "a log-probability of texts"


@pytest.mark.parametrize(
    ("noun", "several"),
    [
        ("pass", "passes"),
        ("copy", "copies"),
        ("text", "texts"),
        ("key", "keys"),
        ("box", "boxes"),
        ("match", "matches"),
    ],
)
def test_every_regular_noun_has_its_plural(noun, several):
    assert [words.counted(n, noun) for n in (1, 2)] == [f"1 {noun}", f"2 {several}"]
