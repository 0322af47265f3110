"""The notebooks in docs/notebooks/: their outputs are what their cells give, and the site shows them as they stand.

    python docs/notebooks.py                                        # run all and rewrite outputs that have changed
    python docs/notebooks.py docs/notebooks/psycholinguist.ipynb    # one

No Jupyter is needed: the cells of a notebook are run one after the other in one namespace, with besag.load giving one
shared model. What a cell prints, its last value and its pictures are its outputs. A cell with the tag "varies" (a time,
say) is run, and its text is not compared. tests/test_notebooks.py runs every notebook.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
DPI = 80


class Cell(NamedTuple):
    code: str
    varies: bool
    stored: list[dict[str, Any]]  # its outputs in the file
    made: list[dict[str, Any]]  # now


# ---- run


def cells(path: Path) -> Iterator[Cell]:
    """Run a notebook from top to bottom."""
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    pyplot.close("all")  # what somebody else has drawn in this process is no output of a cell
    namespace: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            code = "".join(cell["source"])
            made = run(code, namespace, number, f"{path.name}, cell {number}")
            yield Cell(code, "varies" in cell["metadata"].get("tags", ()), cell["outputs"], made)


def run(code: str, namespace: dict[str, Any], number: int, name: str) -> list[dict[str, Any]]:
    """The outputs of a cell, as a notebook stores them."""
    tree = ast.parse(code)
    last = tree.body.pop().value if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(io.StringIO()) as said:
        exec(compile(tree, name, "exec", dont_inherit=True), namespace)
        value = last and eval(compile(ast.Expression(last), name, "eval", dont_inherit=True), namespace)
    outputs: list[dict[str, Any]] = []
    if said.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(said.getvalue())})
    if value is not None and not code.rstrip().endswith(";"):
        data = {"text/plain": lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": lines(value._repr_html_())} | data
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs + [
        {"data": {"image/png": picture}, "metadata": {}, "output_type": "display_data"} for picture in pictures()
    ]


def pictures() -> Iterator[str]:
    """The figures that a cell drew, as small PNGs."""
    import matplotlib.pyplot as plt
    from PIL import Image

    for number in plt.get_fignums():
        drawn, reduced = io.BytesIO(), io.BytesIO()
        plt.figure(number).savefig(drawn, dpi=DPI, facecolor="white")
        Image.open(drawn).convert("RGB").quantize(128).save(reduced, "PNG", optimize=True)
        yield base64.b64encode(reduced.getvalue()).decode("ascii") + "\n"
    plt.close("all")


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def text(outputs: list[dict[str, Any]]) -> str:
    """What can be read of outputs, without the pictures."""
    return "\n".join(
        "".join(output["text"] if "text" in output else output["data"]["text/plain"])
        for output in outputs
        if "text" in output or "text/plain" in output["data"]
    )


def refresh(path: Path, alike: Any) -> int:
    """Store the outputs of cells that now say something else; return how many."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    stale = 0
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, ran) in enumerate(zip(code, cells(path), strict=True), 1):
        kinds = [[sorted(output.get("data", ["text"])) for output in side] for side in (ran.stored, ran.made)]
        if kinds[0] != kinds[1] or not (ran.varies or alike(text(ran.stored), text(ran.made))):
            cell["outputs"], stale = ran.made, stale + 1
        cell["execution_count"] = number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return stale


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    import outputs

    with outputs.stage():
        for path in [Path(name).resolve() for name in sys.argv[1:]] or NOTEBOOKS:
            print(f"{path.relative_to(ROOT)}: {refresh(path, outputs.alike)} outputs rewritten")


if __name__ == "__main__":
    main()
