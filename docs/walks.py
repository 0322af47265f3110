"""The walks in docs/architecture.md: which files a command passes through, in the order in which each is first called.

    python docs/walks.py            # prints all of them
    python docs/walks.py sample     # one

The commands are run on the CPU, and every first call of a function in a file of besag is noted. What is called while
modules are imported does not count, nor do the files of the ground floor that are asked from everywhere. The last line
of a walk is the way in: the files on the stack of calls when the network (or, in training, the loss) is run.
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
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
SOURCE = str(ROOT / "src" / "besag") + os.sep
GROUND = (
    "__init__.py",
    "results/",
    "arrays.py",
    "characters.py",
    "checks.py",
    "errors.py",
    "hardware.py",
    "models/",
    "noise.py",
    "registry.py",
    "spans.py",
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
RUN = (("conditionals/transformer.py", "rows"), ("training/objectives/mlm.py", "forward"))
WALKS = {
    "score": ["score", "texts.tsv", "-o", "scores.tsv", "--device", "cpu"],
    "joint": ["joint", "The [MASK] [MASK] very tired.", "--candidates", "20", "--device", "cpu"],
    "sample": ["sample", "The [MASK] [MASK] very tired.", "--kernel", "ordered", "--chains", "2", "--device", "cpu"],
    "train": ["train", "recipe.toml"],
}


class Walk(NamedTuple):
    files: list[str]  # by first call
    way_in: list[str]  # without returning


def walk(command: list[str]) -> Walk:
    """The files of src/besag that a command calls into."""
    from besag.cli import app

    found: dict[str, None] = {}
    way_in: list[str] = []

    def look(frame: FrameType, event: str, _: Any) -> None:
        file = inside(frame)
        if event != "call" or not file or not frame.f_code.co_flags & inspect.CO_NEWLOCALS:
            return
        if file not in found and not file.startswith(GROUND) and not importing(frame):
            found[file] = None
        if (file, frame.f_code.co_name) in RUN and not way_in:
            way_in.extend(stack(frame))

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
    return Walk(list(found), way_in)


def inside(frame: FrameType) -> str:
    """The file of a frame, below src/besag; nothing where it is another's."""
    name = frame.f_code.co_filename
    return name.removeprefix(SOURCE).replace(os.sep, "/") if name.startswith(SOURCE) else ""


def stack(frame: FrameType | None) -> list[str]:
    """The files on the stack of calls, outermost first; a file that calls itself is there once."""
    found: list[str] = []
    while frame is not None:
        file = inside(frame)
        if file and file not in found[-1:] and not file.startswith(GROUND):
            found.append(file)
        frame = frame.f_back
    return found[::-1]


def importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(SOURCE):
            return True
        frame = frame.f_back
    return False


def shown(name: str) -> Walk:
    """What the page says of a walk."""
    page = PAGE.read_text(encoding="utf-8")
    said = re.search(
        rf"^```bash\nbesag {name} .*?^```\n\n```text\n(.*?)^```\n\nThe way in: (.*?)\.\n\n", page, re.M | re.S
    )
    files = [line.split()[0] for line in said[1].splitlines()] if said else []
    return Walk(files, re.findall(r"`([\w/.]+)`", said[2]) if said else [])


def main() -> None:
    for name in sys.argv[1:] or WALKS:
        files, way_in = walk(WALKS[name])
        print(f"besag {' '.join(WALKS[name])}", *files, " → ".join(way_in), "", sep="\n")


if __name__ == "__main__":
    main()
