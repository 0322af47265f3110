import numpy as np
import pytest

from besag.errors import BesagError, nearest, quoted, require


def test_the_nearest_name_whatever_its_case_or_none():
    assert nearest("Gibs", ["gibbs", "ordered"]) == " Did you mean 'gibbs'?"
    assert nearest("gibbs", ["GIBBS", "ordered"]) == " Did you mean 'GIBBS'?"
    assert nearest("tempering", ["gibbs", "ordered"]) == ""


def test_what_is_missing_is_told_with_what_brings_it():
    assert require("json", "plot").dumps(1) == "1"
    with pytest.raises(BesagError, match=r"this needs 'no_such_module', .*: pip install 'besag\[plot\]'"):
        require("no_such_module", "plot")


def test_an_error_is_a_value_error():
    assert issubclass(BesagError, ValueError)


def test_a_value_is_quoted_on_one_short_line_whatever_it_is():
    class Mute:
        def __repr__(self):
            raise RuntimeError

    assert quoted("it's") == '"it\'s"'
    assert " … " in quoted("x" * 1000)
    assert quoted("a\nb") == "'a\\nb'"
    assert quoted(Mute()) == "a value of type Mute"
    assert quoted(10**5000) == "a value of type int"
    assert len(quoted("x" * 10**6)) < 250
    assert len(quoted(["x" * 150] * 10**3)) < 300
    assert "\n" not in quoted(np.zeros((3, 3)))
