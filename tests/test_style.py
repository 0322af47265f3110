"""The linter of wording: every pattern, what is scanned, exceptions, and counts that only fall."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "lint"))
import style  # noqa: E402

EXAMPLES = {  # ID: (banned, near and allowed)
    "laws-of-masks": ("a law of\nmasks", "masking strategies"),
    "what-stands": ("what could stand here", "what could happen"),
    "stands-at": ("it stands in a file", "it stands for a file"),
    "each-place": ("every place", "every position"),
    "refuses-to-know": ("Refuses to know who", "Refuses to run"),
    "knows": ("Scores. Knows three methods", "it Knows"),
    "knows-no": ("knows nothing", "knows one"),
    "anew": ("ranked anew", "a new rank"),
    "somebody": ("nobody", "no body"),
    "whoever": ("Whoever reads", "who reads"),
    "who-answers": ("who asks", "who ran"),
    "one-who": ("one who reads", "one that reads"),
    "is-told": ("is told", "are told apart"),
    "tells-of": ("told of it", "told it"),
    "vouch": ("vouches", "voucher"),
    "sitting": ("one sitting", "visiting"),
    "least-sure": ("the surest", "sure"),
    "likeliest": ("Likeliest", "likely"),
    "mend": ("mended", "recommended"),
    "but-for": ("all but for one", "but not for one"),
    "so-many": ("at most so many", "so few"),
    "go-on": ("goes on after it", "goes on it"),
    "beside": ("besides", "the best side"),
    "the-door": ("the door to it", "the doorway"),
    "room": ("another room", "a room"),
    "take-back": ("taken back", "taken"),
    "thrown-away": ("thrown away", "a throwaway"),
    "by-turns": ("by turns", "by turning"),
    "in-sight": ("out of sight", "insight"),
    "of-ones-own": ("of one's own", "of its own"),
    "is-no": ("It is no number", "there is no number, it is no longer one"),
    "has-none": ("it has none", "there are none"),
    "what-came-of": ("what came out", "that came out"),
    "held-to": ("held to it", "upheld it"),
    "to-speak-of": ("none to speak of", "to speak"),
    "affair": ("an affair", "fair"),
    "kin": ("and its kin", "a kind"),
    "how-sure": ("how near it is", "how it is near"),
    "ask-about": ("asked about it", "asked for it"),
    "judged-by": ("judged by it", "judged"),
    "hangs-on": ("hangs on it", "hangs"),
    "eight-bits": ("eight bits", "8 bits"),
    "text-with-a-gap": ("a text with a gap", "a text with a mask"),
    "said-twice": ("said twice", "said once"),
}


def test_every_pattern_has_an_example() -> None:
    assert list(EXAMPLES) == list(style.PATTERNS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_pattern_finds_what_is_banned_and_nothing_near(name: str) -> None:
    banned, near = EXAMPLES[name]
    assert [hit.name for hit in style.hits(f"First.\n{banned}")] == [name]
    assert style.hits(f"First.\n{banned}")[0].line == 2
    assert style.hits(near) == []


# ---- what is scanned


def found(root: Path, name: str, text: str) -> list[tuple[int, str]]:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")
    return [(hit.line, hit.name) for hit in style.scan(root)[name]]


PYTHON = '''"""A module
ranked anew."""  # fine
anew = nobody = 1  # the comment goes
# on with nobody
print(f"so many {anew} and {anew + len('likeliest')}" "vouch")
'''


def test_python_is_read_in_strings_and_comments(tmp_path: Path) -> None:
    assert found(tmp_path, "src/besag/a.py", PYTHON) == [
        (2, "anew"), (5, "so-many"), (5, "vouch"), (5, "likeliest"), (4, "somebody"),
    ]  # fmt: skip
    wrapped = "# that goes\n# on with it\n"  # only one block of comments has "goes on with"
    assert found(tmp_path, "examples/b.py", wrapped) == [(1, "go-on")]


def test_pages_are_read_outside_code_blocks(tmp_path: Path) -> None:
    page = "anew\n\n````python\nanew\n```\nanew\n````\n\n- a list\n  ```\n  anew\n  ```\nso\nmany `anew`\n"
    assert found(tmp_path, "docs/deep/page.md", page) == [(1, "anew"), (13, "so-many"), (14, "anew")]
    cells = (
        '{"cells": [{"cell_type": "code", "source": ["anew"]}, {"cell_type": "markdown", "source": ["a\\n", "anew"]}]}'
    )
    assert found(tmp_path, "docs/notebooks/one.ipynb", cells) == [(2, "anew")]


def test_scripts_are_read_whole_and_other_files_not(tmp_path: Path) -> None:
    assert found(tmp_path, "src/besag/explorer/page/a.js", '// nobody\nlet a = "anew";\n') == [
        (1, "somebody"), (2, "anew"),
    ]  # fmt: skip
    (tmp_path / "CHANGELOG.md").write_text("anew")
    assert "CHANGELOG.md" not in style.scan(tmp_path)


# ---- exceptions


@pytest.mark.parametrize(
    ("name", "text", "left"),
    [
        ("docs/a.md", "<!-- style: allow anew -->\nanew\nanew\n", [(3, "anew")]),
        ("docs/a.md", "anew, nobody <!-- style: allow anew, somebody -->\n", []),
        ("docs/a.md", "anew <!-- style: allow somebody -->\n", [(1, "anew")]),
        ("src/besag/a.py", 'a = "nobody"  # style: allow somebody\nb = "nobody"\n', [(2, "somebody")]),
        ("src/besag/a.py", '"""One\n\nnobody,\nand more.\n"""  # style: allow somebody\n', []),
        ("src/besag/a.py", "a = 1  # nobody (style: allow somebody)\n", []),
        ("src/besag/explorer/a.js", 'let a = "anew"; // style: allow anew\n', []),
    ],
)
def test_an_exception_names_its_pattern(tmp_path: Path, name: str, text: str, left: list[tuple[int, str]]) -> None:
    assert found(tmp_path, name, text) == left


def test_an_exception_of_no_pattern_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"a\.md: .*'annew'"):
        found(tmp_path, "docs/a.md", "anew <!-- style: allow annew -->\n")


# ---- counts


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository whose files of `ZERO` are clean, and one page with two hits."""
    for name in style.ZERO:
        found(tmp_path, name, "")
    found(tmp_path, "docs/a.md", "anew\nanew\n")
    (tmp_path / "lint").mkdir()
    return tmp_path


def counts(tree: Path, text: str | None = None) -> str:
    if text is not None:
        (tree / style.COUNTS).write_text(text, encoding="utf-8")
    return (tree / style.COUNTS).read_text(encoding="utf-8")


def lint(tree: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, ROOT / "lint" / "style.py", *arguments]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_no_file_has_more_hits_than_its_count(tree: Path) -> None:
    counts(tree, "docs/a.md\t2\n")
    assert lint(tree) == (0, "")
    counts(tree, "docs/a.md\t1\n")
    code, said = lint(tree)
    assert code == 1
    assert [line.split(": ")[0] for line in said.splitlines()] == ["docs/a.md:1", "docs/a.md:1", "docs/a.md:2"]
    (tree / style.COUNTS).unlink()
    assert lint(tree)[0] == 1  # a file without a row has none


def test_counts_can_only_be_lowered(tree: Path) -> None:
    counts(tree, "docs/a.md\t5\ndocs/gone.md\t3\n")
    code, said = lint(tree)
    assert code == 0
    assert "6 fewer" in said
    assert "--lower" in said
    assert lint(tree, "--lower") == (0, "")
    assert counts(tree) == "docs/a.md\t2\n"
    found(tree, "docs/a.md", "anew\n" * 3)
    found(tree, "docs/new.md", "anew\n")
    assert lint(tree, "--lower")[0] == 1
    assert counts(tree) == "docs/a.md\t2\n"


def test_files_that_were_joined_have_the_sum_of_their_counts(tree: Path) -> None:
    counts(tree, "docs/a.md\t1\ndocs/a.md\t1\n")
    assert lint(tree) == (0, "")


@pytest.mark.parametrize("name", style.ZERO)
def test_what_is_read_first_never_has_a_count(tree: Path, name: str) -> None:
    counts(tree, f"docs/a.md\t2\n{name}\t1\n")
    found(tree, name, "# nobody\n")
    code, said = lint(tree)
    assert code == 1
    assert said.count(f"\n{name}:") == 2
    (tree / name).unlink()
    assert lint(tree)[0] == 1  # neither may it be missing
    assert lint(tree, "--lower")[0] == 1
    assert name not in counts(tree)
