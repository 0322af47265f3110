import pytest

from besag.errors import BesagError, nearest, require


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
