"""Formulas over surprisals of regions: read against a plain reading of Python, refused with the place."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import BesagError
from besag.evaluation.formulas import Reference, formula

S = {"a": {1: 1.0, 2: 4.0}, "b-c_d": {1: 2.0, 2: 2.5}}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("(1;%a%) < (1;%b-c_d%)", True),
        ("((1;%a%)<(1;%b-c_d%))", True),
        ("(1;%a%) > (1;%b-c_d%)", False),
        ("(*;%a%) > (*;%b-c_d%)", True),  # 5 and 4.5
        ("[(1;%a%) < (2;%a%)] & [(1;%b-c_d%) > (2;%b-c_d%)]", False),
        ("[(1;%a%) < (2;%a%)] | [(1;%b-c_d%) > (2;%b-c_d%)]", True),
        ("(2;%a%) - (1;%a%) - (1;%b-c_d%) > 0.5", True),  # from the left: 4 − 1 − 2
        ("(2;%a%) - (1;%a%) + (1;%b-c_d%) = 5", True),
        ("(2;%a%) - [(1;%a%) + (1;%b-c_d%)] = 1", True),
        ("[(2;%a%)-(1;%a%)]+[(2;%b-c_d%)-(1;%b-c_d%)]>0", True),
        ("1 > 2 & 1 > 2 | 2 > 1", True),  # & binds closer
        ("2 > 1 | 1 > 2 & 1 > 2", True),
        ("(1 = 1.0009) & (1 > 1.0009 | 1 < 1.0009)", True),  # = has a tolerance, < and > have none
        ("1 = 1.002", False),
        ("1000 = 1000.01", True),  # and a relative one
    ],
)
def test_formulas_hold_or_not(text: str, holds: bool) -> None:
    assert formula(text).holds(S) is holds


@pytest.mark.parametrize(("text", "ties"), [("1 < 1", 1), ("1 > 1 | 2 < 2", 2), ("1 < 2", 0), ("1 = 1", 0)])
def test_a_tie_fails_and_is_counted(text: str, ties: int) -> None:
    assert (formula(text).holds(S), formula(text).ties(S)) == (text == "1 < 2" or "=" in text, ties)


def test_what_it_speaks_of() -> None:
    text = "(3;%x%) < (*;%y%)"
    assert formula(text).references == (Reference("x", 3), Reference("y", None))


sums = st.recursive(
    st.sampled_from(["(1;%a%)", "(2;%a%)", "(1;%b-c_d%)", "(2;%b-c_d%)", "7", "0.25"]),
    lambda inner: st.tuples(inner, st.sampled_from("+-"), inner).map(lambda t: f"[{t[0]} {t[1]} {t[2]}]"),
    max_leaves=6,
)
truths = st.recursive(
    st.tuples(sums, st.sampled_from("<>"), sums).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    lambda inner: st.tuples(inner, st.sampled_from("&|"), inner).map(lambda t: f"[{t[0]}{t[1]}{t[2]}]"),
    max_leaves=6,
)


@given(truths)
def test_it_is_read_as_python_reads_the_same(text: str) -> None:
    """The test may do what the code must not: hand it to Python."""
    python = re.sub(r"\((\d);%([^%]+)%\)", lambda match: repr(S[match[2]][int(match[1])]), text)
    for sign, word in (("[", "("), ("]", ")"), ("&", " and "), ("|", " or ")):
        python = python.replace(sign, word)
    assert formula(text).holds(S) == eval(python, {"__builtins__": {}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at character 1: there should be a region .*, and there is its end"),
        ("(1;%a%) <", "at character 10: .* and there is its end"),
        ("(1;%a%) < (1;%b%", r"at character 13: a \) should close the bracket, and there is ';%b%'"),
        ("(1;%a%) (2;%a%)", r"at character 9: there should be an operator or the end, and there is '\(2;%a%\)'"),
        ("[(1;%a%) < 2", "a ] should close the bracket, and there is its end"),
        ("[(1;%a%) < 2)", r"at character 13: a \] should close the bracket, and there is '\)'"),
        ("1 < 2 < 3", "at character 7: there should be an operator or the end"),
        ("1 & 2 < 3", "at character 3: both sides should be comparisons"),
        ("[1 < 2] + 3 > 1", "at character 9: both sides should be numbers"),
        ("1 + 2", r"'1 \+ 2' is a number, and a prediction holds or not"),
        ("__import__('os')", "at character 1: there should be a region"),
        ("[" * 60 + "1 < 2" + "]" * 60, "more than 50 brackets are within each other"),
    ],
)
def test_what_is_no_formula_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(BesagError, match=said):
        formula(text)
