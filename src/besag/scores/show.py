"""A score in words: the aligned table of a terminal and the coloured sentence of a notebook.

Knows display widths, terminals and HTML. Refuses to know what the numbers mean beyond what the score itself says.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from besag.errors import quoted
from besag.results.grid import footer, written
from besag.results.tables import display_width, placed, raw, visible, wrapped
from besag.results.words import amount, counted, meaning, number

if TYPE_CHECKING:
    from besag.scores.score import Score

FULL_COLOUR = 16.0  # bits of surprisal at which a token has the full colour; fixed, so that sentences compare


# ---- words


def reason(score: Score) -> str:
    """Why there is no number, in words."""
    return f"not scored: {score.status.sentence}"


def facts(score: Score) -> list[str]:
    """What a reader must know about the total, most important first."""
    if score.status != "ok":
        return [reason(score), score.method, score.model]
    error = "" if score.standard_error is None else f" ± {number(score.standard_error)}"
    parts = "".join(f", {name} {number(value)} of it" for name, value in score.extra.items())
    return [
        f"total {number(score.total)}{error} {score.unit}{parts}",
        f"{score.method}: {meaning(score.normalised)}",
        f"{'perplexity' if score.normalised else 'pseudo-perplexity'} {amount(score.perplexity)}",
        counted(len(score), "token") + (f", {score.unknown} of them unknown" if score.unknown else ""),
        *(["products of 8-bit numbers"] if score.dtype == "int8" else []),
        score.model,
    ]


# ---- tokens


def labels(score: Score) -> list[str]:
    """How each token is shown: the text it covers; its raw form where it covers none, or none that is still free."""
    shown, last = [], -1
    for token, (start, end) in zip(score.tokens, score.offsets.tolist(), strict=True):
        shown.append(visible(score.text[start:end]) if last < end and start < end else raw(token))
        last = max(last, end)
    return shown


class Segment(NamedTuple):
    """A stretch of text and the tokens that cover it: several where they share a character; none between tokens."""

    text: str
    tokens: tuple[int, ...]


def segments(score: Score) -> list[Segment]:
    """The text cut into stretches, in order, nothing left out."""
    text, cut, found = score.text, 0, list[Segment]()
    for i, (start, end) in enumerate(score.offsets.tolist()):
        if start < cut and found and found[-1].tokens:  # shares characters with the token before
            last = found.pop()
            found.append(Segment(last.text + text[cut : max(cut, end)], (*last.tokens, i)))
        else:
            if cut < start:
                found.append(Segment(text[cut:start], ()))
            found.append(Segment(text[start:end] or raw(score.tokens[i]), (i,)))
        cut = max(cut, end)
    if cut < len(text):
        found.append(Segment(text[cut:], ()))
    return found


# ---- the table


def table(score: Score, width: int | None = None) -> str:
    """Tokens in one row and their numbers below, wrapped to the terminal; then what the total is.

    Tokens of one word stand closer together than words do.
    """
    width = width or shutil.get_terminal_size().columns
    if score.status != "ok":
        return f"{quoted(score.text)}\n\n{wrapped(facts(score), width)}"
    rows = {"": labels(score), "log p": [number(x) for x in score.log_probs.tolist()]}
    if score.rank is not None:
        rows["rank"] = [str(x) for x in score.rank.tolist()]
    if score.entropy is not None:
        rows["entropy"] = [number(x) for x in score.entropy.tolist()]
    words = score.words.tolist()
    gaps = [1 if i and word == words[i - 1] else 3 for i, word in enumerate(words)]
    blocks = "\n\n".join(_blocks(rows, gaps, width))
    return f"{blocks}\n\n{wrapped(facts(score), width)}"


def _blocks(rows: dict[str, list[str]], gaps: list[int], width: int) -> Iterator[str]:
    """The columns, as many as fit next to each other at a time."""
    head = max(map(len, rows))
    columns = list(zip(*rows.values(), strict=True))
    sizes = [gap + max(map(display_width, column)) for gap, column in zip(gaps, columns, strict=True)]
    start = 0
    while start < len(columns):
        end, used = start + 1, head + sizes[start]
        while end < len(columns) and used + sizes[end] <= width:
            used += sizes[end]
            end += 1
        yield "\n".join(
            f"{name:<{head}}" + "".join(map(placed, row[start:end], sizes[start:end])) for name, row in rows.items()
        )
        start = end


# ---- the notebook


def html(score: Score) -> str:
    """The text itself, each token coloured by its surprisal; hovering shows its numbers.

    The colours are translucent and the letters keep the page's own colour, so that light and dark pages both work.
    """
    body, legend = written(score.text), ""
    if score.status == "ok":
        body, legend = "".join(_coloured(score, segment) for segment in segments(score)), _legend(score)
    return f'<div dir="auto" style="white-space:pre-wrap;line-height:1.9;overflow-wrap:anywhere">{body}</div>' + footer(
        facts(score), legend
    )


def _colour(bits: float) -> str:
    return f"rgba(226,72,38,{0.04 + 0.66 * min(1.0, max(0.0, bits / FULL_COLOUR)):.2f})"


def _coloured(score: Score, segment: Segment) -> str:
    if not segment.tokens:
        return written(segment.text)
    bits = -float(score.log_probs[list(segment.tokens)].sum()) * math.log2(score.base)
    title = written("\n\n".join(_numbers(score, i) for i in segment.tokens)).replace("\n", "&#10;")
    style = f"background:{_colour(bits)};border-radius:.25em;padding:.15em 0"
    return f'<span title="{title}" style="{style}">{written(segment.text)}</span>'


def _numbers(score: Score, i: int) -> str:
    value = float(score.log_probs[i])
    lines = [score.tokens[i], f"log prob {number(value, 3)} {score.unit}", f"prob {score.base**value:.3g}"]
    if score.rank is not None:
        lines.append(f"rank {score.rank[i]}")
    if score.entropy is not None:
        lines.append(f"entropy {number(float(score.entropy[i]), 3)} {score.unit}")
    return "\n".join(lines)


def _legend(score: Score) -> str:
    full = FULL_COLOUR / math.log2(score.base)
    bar = f"linear-gradient(to right,{_colour(0.0)},{_colour(FULL_COLOUR)})"
    box = f"display:inline-block;width:5em;height:.8em;border-radius:.25em;vertical-align:-.05em;background:{bar}"
    return f'surprisal 0 <span style="{box}"></span> {full:.0f} {score.unit} or more · '
