"""Numbers and texts as sentences write them. Knows no result."""

from __future__ import annotations

import math


def meaning(normalised: str) -> str:
    """What the total is, in words."""
    return f"a log-probability of {normalised}" if normalised else "not a probability"


def number(value: float, places: int = 2) -> str:
    """A number with a true minus sign."""
    return f"{value:.{places}f}".replace("-", "−").replace("inf", "∞")


def amount(value: float) -> str:
    """A positive number such as a perplexity, of whatever size."""
    return f"{value:,.2f}" if value < 1e6 else f"{value:.3g}".replace("inf", "∞")


def counted(n: int, noun: str) -> str:
    return f"{n:,} {noun if n == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Of an English noun that is regular: texts, copies, passes."""
    if noun[-1:] == "y" and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def unseen(n: int) -> list[str]:
    """That the model did not see so many tokens of a context: nothing where it saw them all."""
    return [f"{counted(n, 'SHOWN TOKEN').upper()} UNKNOWN TO THE MODEL"] if n else []


def percent(prob: float) -> str:
    return f"{prob:.2%}" if prob >= 1e-4 or prob == 0 else f"{100 * prob:.1e}%"


def exponential(x: float) -> float:
    """exp(x), infinite where it leaves the range of a float."""
    return math.inf if x > 709.0 else math.exp(x)


def detail(name: str, value: float | int | str) -> str:
    """A number that belongs to the work done, with its name: "residual 3.1e-07", "iterations 1,204"."""
    shown = f"{value:.2g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    return f"{name.replace('_', ' ')} {shown}"


def passes(n: int) -> str:
    """So many forward passes."""
    return counted(n, "forward pass")


def dtype_name(dtype: object) -> str:
    """The precision of a network without the name of the package: "float32"."""
    return str(dtype).removeprefix("torch.")
