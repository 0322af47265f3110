"""Banned wording: no file may have more hits of the patterns below than `style_counts.tsv` gives it (`make lint`).

Scanned are the README and the docs outside code blocks (`.md`, text cells of notebooks), comments and strings of
`src/besag` and `examples` (`.py`), and the explorer's scripts (`.js`). A count may only fall: a file without a row has
none, and `python lint/style.py --lower` rewrites the counts, downwards only. Files of `ZERO` never have a count.

An exception is a comment: `# style: allow ID`, in scripts `// style: allow ID`, in Markdown `<!-- style: allow ID -->`.
It covers its own line and the next; in Python the whole string or block of comments that it stands next to.
Strings are read from the syntax tree, because tokens of f-strings differ between Python versions.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

COUNTS = "lint/style_counts.tsv"
SCOPE = (
    "README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "docs/**/*.ipynb", "src/besag/**/*.py",
    "examples/**/*.py", "src/besag/explorer/**/*.js",
)  # fmt: skip
ZERO = ("README.md", "docs/index.md", "docs/getting-started.md", "docs/choosing-a-score.md", "examples/demo.py")
BANNED = {
    "laws-of-masks": r"\b[Ll]aws?\s+of\s+masks\b",
    "what-stands": r"\b[Ww]hat\s+(else\s+)?(could\s+)?stands?\b",
    "stands-at": r"\b[Ss]tands?\s+(at|in|on|there|below|beside|before|after|around)\b",
    "each-place": r"\b(each|every|hidden|free|asked|shown)\s+places?\b",
    "refuses-to-know": r"\b[Rr]efuses?\s+to\s+know\b",
    "knows": r"(?m)(?:^|[.;]\s+)Knows\s",
    "knows-no": r"\b[Kk]nows?\s+(no|nothing|neither)\b",
    "anew": r"\banew\b",
    "somebody": r"\b([Ss]ome|[Nn]o)body\b",
    "whoever": r"\b[Ww]hoever\b|\bwhose\s+ever\b",
    "who-answers": r"\b[Ww]ho\s+(answers|asks|knows|evaluates)\b",
    "one-who": r"\bone\s+who\b",
    "is-told": r"\b(is|are|was|were|be)\s+told\b(?!\s+apart\b)",
    "tells-of": r"\b[Tt]ell(s|ing)?\s+of\b|\btold\s+of\b",
    "vouch": r"\bvouch(es|ed)?\b",
    "sitting": r"\b[Ss]ittings?\b",
    "least-sure": r"\b(least\s+sure|sure\s+enough|surest|surer|surety)\b",
    "likeliest": r"\b[Ll]ikeliest\b",
    "mend": r"\b[Mm]end(s|ed|ing)?\b",
    "but-for": r"\b[Bb]ut\s+for\b",
    "so-many": r"\bso\s+many\b",
    "go-on": r"\b[Gg]o(es|ing)?\s+on\s+(with|from|as|after|where|only|in|under|when)\b",
    "beside": r"\b[Bb]esides?\b",
    "the-door": r"\b[Tt]he\s+doors?(\s+(to|of|in)\b|:)",
    "room": r"\b(this|another|each)\s+room\b",
    "take-back": r"\b(takes?|taken|taking|took)\s+back\b",
    "thrown-away": r"\b[Tt]hrown?\s+away\b",
    "by-turns": r"\b[Bb]y\s+(turns|lot)\b",
    "in-sight": r"\b(in|out\s+of)\s+sight\b",
    "of-ones-own": r"\bof\s+one'?s\s+own\b",
    "is-no": r"(?<![Tt]here )\b(is|are)\s+no\s+(?!longer\b|more\b|such\b|less\b|better\b|worse\b)",
    "has-none": r"(?<!there )\b(is|are|has|have)\s+none\b",
    "what-came-of": r"\b[Ww]hat\s+(came|comes)\s+(of|out)\b",
    "held-to": r"\bheld\s+(to|against)\b",
    "to-speak-of": r"\bto\s+speak\s+of\b",
    "affair": r"\baffair\b",
    "kin": r"\b(its|their|and)\s+kin\b",
    "how-sure": r"\b[Hh]ow\s+(near|sure|open)\b",
    "ask-about": r"\bask(s|ed|ing)?\s+about\b",
    "judged-by": r"\bjudged\s+by\b",
    "hangs-on": r"\b[Hh]angs?\s+on\b",
    "eight-bits": r"\b[Ee]ight\s+bits\b|\b8-bit\s+numbers\b",
    "text-with-a-gap": r"\b[Tt]exts?\s+with\s+a\s+gap\b",
    "said-twice": r"\bsaid\s+twice\b",
}
PATTERNS = {name: re.compile(pattern) for name, pattern in BANNED.items()}
ALLOW = re.compile(r"\bstyle:\s*allow\s+([\w-]+(?:[ ,]+[\w-]+)*)")
FENCE = re.compile(r"[ \t]*(?:>[ \t]*)*(`{3,}|~{3,})")


class Hit(NamedTuple):
    line: int
    name: str  # of the pattern
    text: str  # that matches it


class Passage(NamedTuple):
    """Text to scan, and the patterns that an exception allows in all of it."""

    line: int  # of its first character
    text: str
    allowed: frozenset[str] = frozenset()


def hits(passage: str | Passage) -> list[Hit]:
    """Return the banned wording of a text; an `allow` comment in it covers its own line and the next."""
    line, text, allowed = passage if isinstance(passage, Passage) else Passage(1, passage)
    allowed_on = [allowed_names(one) for one in text.split("\n")]
    found = []
    for name, pattern in PATTERNS.items():
        for match in pattern.finditer(text):
            words = match.start() + len(match[0]) - len(match[0].lstrip(".; \n"))
            place = text.count("\n", 0, words)
            if name not in allowed | allowed_on[place] | allowed_on[max(0, place - 1)]:
                found.append(Hit(line + place, name, " ".join(match[0].split())))
    return sorted(found)


def allowed_names(comment: str) -> frozenset[str]:
    """Return the patterns that an `allow` comment names; an unknown one is an error."""
    found = ALLOW.search(comment)
    names = frozenset(re.split(r"[ ,]+", found[1].rstrip("-"))) - {""} if found else frozenset()
    if unknown := names - PATTERNS.keys():
        raise ValueError(f"style: allow {sorted(unknown)[0]!r}: no such pattern; lint/style.py lists the IDs")
    return names


# ---- what is scanned


def passages(file: Path) -> Iterator[Passage]:
    """Yield the prose of a file."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        yield from python_passages(text)
    elif file.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        yield from (Passage(1, without_code("".join(cell["source"]))) for cell in cells)
    else:
        yield Passage(1, without_code(text) if file.suffix == ".md" else text)


def without_code(markdown: str) -> str:
    """Return the text with fenced blocks as empty lines."""
    kept, fence = [], ""
    for line in markdown.split("\n"):
        mark = FENCE.match(line)
        if fence:
            closes = mark and mark[1].startswith(fence) and line.strip("> \t") == mark[1]
            fence = "" if closes else fence
            kept.append("")
        elif mark:
            fence = mark[1]
            kept.append("")
        else:
            kept.append(line)
    return "\n".join(kept)


def python_passages(source: str) -> Iterator[Passage]:
    """Yield strings and blocks of comments."""
    comments = comment_lines(source)
    by_line = {line: allowed_names(text) for line, text, _ in comments}
    for line, last, text in strings(ast.parse(source)):
        spanned = (by_line.get(one, frozenset()) for one in range(line, last + 1))
        yield Passage(line, text, frozenset().union(*spanned))
    block: list[str] = []
    for number, (line, text, alone) in enumerate(comments):
        block.append(text)
        follows = alone and comments[number + 1 : number + 2]
        if not (follows and follows[0][0] == line + 1 and follows[0][2]):  # the last of consecutive comment lines
            names = frozenset().union(*map(allowed_names, block))
            yield Passage(line + 1 - len(block), "\n".join(block), names)
            block = []


def comment_lines(source: str) -> list[tuple[int, str, bool]]:
    """Return each comment with its line, and whether it has the line for itself."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [
        (token.start[0], token.string.lstrip("#! "), not token.line[: token.start[1]].strip())
        for token in tokens
        if token.type == tokenize.COMMENT
    ]


def strings(tree: ast.AST) -> Iterator[tuple[int, int, str]]:
    """Yield first line, last line and text of each string; expressions in an f-string are written {}."""
    inside: set[int] = set()  # pieces of f-strings, which are yielded whole
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [one.value if isinstance(one, ast.Constant) else "{}" for one in node.values]
            inside.update(id(one) for one in node.values)
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            text = node.value
        else:
            continue
        yield node.lineno, node.end_lineno or node.lineno, text


# ---- counts


def scan(root: Path) -> dict[str, list[Hit]]:
    """Return the hits of every file in scope."""
    files = {file for pattern in SCOPE for file in root.glob(pattern)}
    found = {}
    for file in sorted(files):
        try:
            found[file.relative_to(root).as_posix()] = [hit for one in passages(file) for hit in hits(one)]
        except ValueError as wrong:
            raise SystemExit(f"{file}: {wrong}") from wrong
    return found


def read_counts(file: Path) -> Counter[str]:
    """Return the hits that each file may have; rows of one file add up, as after two files were joined."""
    counts: Counter[str] = Counter()
    for row in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        name, count = row.split("\t")
        counts[name] += int(count)
    return counts


def lowered(counts: Mapping[str, int], found: Mapping[str, list[Hit]]) -> dict[str, int]:
    """Return the counts, each no higher than the hits of its file."""
    lower = {name: min(count, len(found.get(name, []))) for name, count in counts.items() if name not in ZERO}
    return {name: count for name, count in sorted(lower.items()) if count}


def faults(counts: Mapping[str, int], found: Mapping[str, list[Hit]]) -> Iterator[str]:
    """Yield every hit of each file that has more than its count, and what is wrong with the list `ZERO`."""
    for name in ZERO:
        if name not in found:
            yield f"{name}:1: must have no banned wording, and does not exist"
    for name, own in found.items():
        allowed = 0 if name in ZERO else counts.get(name, 0)
        if len(own) > allowed:
            yield f"{name}:1: {len(own)} times banned wording, and {allowed} allowed; see:"
            yield from (f"{name}:{hit.line}: {hit.text!r} ({hit.name})" for hit in own)


def main(root: Path = Path()) -> int:
    parser = argparse.ArgumentParser(description="Count banned wording.")
    parser.add_argument("--lower", action="store_true", help="rewrite the counts, downwards only")
    file, counts, found = root / COUNTS, read_counts(root / COUNTS), scan(root)
    lower = lowered(counts, found)
    if parser.parse_args().lower:
        file.write_text("".join(f"{name}\t{count}\n" for name, count in lower.items()), encoding="utf-8")
    elif lower != counts:
        print(f"{COUNTS}: {sum(counts.values()) - sum(lower.values())} fewer hits than allowed: run", end=" ")
        print("python lint/style.py --lower, and commit the file")
    wrong = list(faults(counts, found))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
