"""The outputs shown in README.md and docs/: each is what the code above it prints, and this file keeps it so.

    python docs/outputs.py                   # run everything again and rewrite what has changed
    python docs/outputs.py docs/models.md    # one page

On a page, a `python` block is run, in one namespace a page; a `bash` block is run if it is a `besag` command with an
output below it. The output is the `text` block that follows. `<!-- not run -->` above a block leaves it alone (it needs
a network or a GPU). tests/test_examples.py compares every shown output with a new run, numbers to two decimals.
"""

from __future__ import annotations

import functools
import io
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TERMINAL = {"COLUMNS": "88", "LINES": "40", "TERM": "dumb"}  # as wide as the pages show it, without colours
BLOCK = re.compile(
    r"(?P<skip><!-- not run -->\n)?^```(?P<kind>python|bash)\n(?P<code>.*?)^```\n(?:\n^```text\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"(?<![\w.])[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


class Output(NamedTuple):
    code: str
    shown: str | None  # on the page; None where no output is shown
    printed: str  # now
    span: tuple[int, int]  # where the shown output stands in the page


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@functools.cache
def embedded() -> Any:
    """The embedded model, loaded once for all pages."""
    import besag

    return besag.load(progress=False)


@contextmanager
def stage() -> Iterator[None]:
    """The repository's root as the working folder, a terminal of fixed width, and one embedded model for everybody."""
    import besag
    import besag.evaluation.suites
    import besag.lab.experiments  # before a page adds to them
    from besag.evaluation.suite import SUITES
    from besag.joints import CONSTRUCTIONS
    from besag.lab.experiment import EXPERIMENTS
    from besag.samplers import KERNELS
    from besag.scores import METHODS

    shared, load = embedded(), besag.load

    def load_once(model: Any = None, **options: Any) -> Any:
        return load(model, **options) if model is not None or any(options.values()) else shared

    with ExitStack() as stack:
        stack.enter_context(chdir(ROOT))
        for table in (METHODS, CONSTRUCTIONS, KERNELS, SUITES, EXPERIMENTS):  # what a page registers is gone after it
            stack.enter_context(mock.patch.dict(table))
            stack.enter_context(mock.patch.dict(table.aliases))
        stack.enter_context(mock.patch.dict(os.environ, TERMINAL))
        stack.enter_context(mock.patch.object(besag, "load", load_once))
        yield


def outputs(page: Path) -> Iterator[Output]:
    """Run a page from top to bottom."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        code, shown = block["code"], block["shown"]
        if block["skip"] or (block["kind"] == "bash" and (shown is None or not code.startswith("besag "))):
            continue
        with redirect_stdout(Terminal()) as terminal:
            if block["kind"] == "python":
                exec(compile(code, str(page), "exec", dont_inherit=True), namespace)
            else:
                command_line(code)
        yield Output(code, shown, terminal.getvalue(), block.span("shown"))


def command_line(command: str) -> None:
    from besag.cli import app

    with redirect_stderr(sys.stdout):
        app(shlex.split(command, comments=True)[1:], standalone_mode=False)


def alike(shown: str, printed: str) -> bool:
    """The same words, and the same numbers to two decimals or one in a thousand; spaces do not count."""
    pages = [text.replace("−", "-").replace("─", "") for text in (shown, printed)]
    words = [NUMBER.sub("#", page).split() for page in pages]
    numbers = [[float(number.replace(",", "")) for number in NUMBER.findall(page)] for page in pages]
    return words[0] == words[1] and all(
        abs(one - other) <= max(0.011, 1e-3 * abs(other)) for one, other in zip(*numbers, strict=True)
    )


def refresh(page: Path) -> int:
    """Rewrite the outputs of a page that a run no longer prints; return how many."""
    text = page.read_text(encoding="utf-8")
    stale = [out for out in outputs(page) if out.shown is not None and not alike(out.shown, out.printed)]
    for out in reversed(stale):
        start, end = out.span
        text = text[:start] + "".join(f"{line.rstrip()}\n" for line in out.printed.splitlines()) + text[end:]
    if stale:
        page.write_text(text, encoding="utf-8")
    return len(stale)


def main() -> None:
    for page in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        with stage():  # anew: what a page registers is not for the next one to show
            print(f"{page.relative_to(ROOT)}: {refresh(page)} outputs rewritten")


if __name__ == "__main__":
    main()
