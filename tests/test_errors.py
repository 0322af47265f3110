import numpy as np
import pytest

import besag
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


LONG = "word " * 100_000


@pytest.mark.parametrize(
    "wrong",
    [
        lambda lm: lm.score([LONG], words=[["x"]]),
        lambda lm: lm.score([LONG], words=LONG),
        lambda lm: lm.score(LONG, strict=True),
        lambda lm: lm.vocabulary.encode(LONG),
        lambda lm: lm.choose(LONG, ["a", "b"]),
        lambda lm: lm.sample([LONG]),
        lambda lm: lm.augment({LONG: 1}),
        lambda lm: lm.correct({LONG: 1}),
        lambda lm: lm.normalise(LONG),
        lambda lm: besag.load(LONG),
        lambda lm: besag.Table([[0.5, 0.5]], symbols=[LONG, "b"]),
    ],
)
def test_an_error_quotes_at_most_a_line_of_what_is_long(wrong):
    lm = besag.load(besag.Table([[0.4, 0.1], [0.1, 0.4]], symbols=["h", "t"]))
    with pytest.raises(besag.BesagError) as caught:
        wrong(lm)
    assert len(str(caught.value)) < 1200
    assert "\n" not in str(caught.value)
