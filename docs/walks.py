"""The walks in docs/architecture.md: which files a command passes through, in the order in which each is first called.

    python docs/walks.py            # prints all of them
    python docs/walks.py sample     # one

The commands are run on the CPU, and every first call of a function in a file of besag is noted. What is called while
modules are imported does not count, nor do the files of the ground floor that are asked from everywhere.
tests/test_walks.py compares the page with a new run.
"""

from __future__ import annotations

import inspect
import io
import os
import re
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
SOURCE = str(ROOT / "src" / "besag") + os.sep
GROUND = (
    "__init__.py",
    "results/",
    "arrays.py",
    "checks.py",
    "errors.py",
    "hardware.py",
    "models/",
    "noise.py",
    "registry.py",
)
TABLE = "id\ttext\n1\tThe cat sleeps.\n2\tIt rained all night.\n"
RECIPE = """
data = { train = ["text.txt"], unit = "sentences", batch_tokens = 512, held_out = 0.1 }
tokenizer = { size = 280 }
model.config = { hidden_size = 16, num_hidden_layers = 1, num_attention_heads = 1, intermediate_size = 16 }
schedule = { steps = 2 }
evaluation = { sentences = 2 }
run = { threads = 1, plot = false, device = "cpu" }
"""
WALKS = {
    "score": ["score", "texts.tsv", "-o", "scores.tsv", "--device", "cpu"],
    "joint": ["joint", "The [MASK] [MASK] very tired.", "--candidates", "20", "--device", "cpu"],
    "sample": ["sample", "The [MASK] [MASK] very tired.", "--kernel", "ordered", "--chains", "2", "--device", "cpu"],
    "train": ["train", "recipe.toml"],
}


def visited(command: list[str]) -> list[str]:
    """The files of src/besag that a command calls into, in order."""
    from besag.cli import app

    found: dict[str, None] = {}

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE) and code.co_flags & inspect.CO_NEWLOCALS:
            file = code.co_filename.removeprefix(SOURCE).replace(os.sep, "/")
            if file not in found and not file.startswith(GROUND) and not importing(frame):
                found[file] = None

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("texts.tsv").write_text(TABLE, encoding="utf-8")
        Path("text.txt").write_text("The cats sleep.\nThe dogs run.\n" * 100, encoding="utf-8")
        Path("recipe.toml").write_text(RECIPE, encoding="utf-8")
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            sys.setprofile(look)
            try:
                app(command, standalone_mode=False)
            finally:
                sys.setprofile(None)
    return list(found)


def importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(SOURCE):
            return True
        frame = frame.f_back
    return False


def shown(name: str) -> list[str]:
    """The files that the page names on a walk: before two spaces on a line, those of one folder behind each other."""
    block = re.search(
        rf"^```bash\nbesag {name} .*?^```\n\n```text\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S
    )
    found = []
    for line in block[1].splitlines() if block else ():
        first, *others = line.split("  ")[0].split(", ") if line[:1].strip() else ("",)
        folder = first.rpartition("/")[0]
        found += [first, *(f"{folder}/{other}" if folder else other for other in others)] if first else []
    return found


def main() -> None:
    for name in sys.argv[1:] or WALKS:
        print(f"besag {' '.join(WALKS[name])}", *visited(WALKS[name]), "", sep="\n")


if __name__ == "__main__":
    main()
