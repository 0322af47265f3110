"""Who may ask."""

import pytest

from besag.errors import BesagError
from besag.service.keys import Keys

KEY, OTHER = "k" * 20, "o" * 20


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"# for the lab\n{KEY}\n  # an indented note of the lab\n\n{OTHER}  \n")
    return Keys(path)


def test_without_a_file_anybody_may():
    assert Keys().admit("")


@pytest.mark.parametrize("header", [f"Bearer {KEY}", f"bearer {OTHER}"])
def test_each_key_opens(keys, header):
    assert keys.admit(header)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        KEY,
        f"Basic {KEY}",
        f"Bearer {KEY}x",
        f"Bearer {KEY[:-1]}",
        "Bearer # for the lab",
        "Bearer # an indented note of the lab",
    ],
)
def test_nothing_else_does(keys, header):
    assert not keys.admit(header)


def test_a_file_that_guards_nothing_is_refused(tmp_path):
    path = tmp_path / "keys"
    path.write_text("# none\n")
    with pytest.raises(BesagError, match="holds no key"):
        Keys(path)
    path.write_text("short\n")
    with pytest.raises(BesagError, match="could be guessed"):
        Keys(path)
    with pytest.raises(BesagError, match="cannot be read"):
        Keys(tmp_path / "gone")
