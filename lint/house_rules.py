"""House rules that no other linter knows: `make lint` runs them over src/besag and tests.

    private    a name with a leading underscore stays in its room (the first folder or file below src/besag)
    length     no function has more than 60 lines
    mirror     tests/<room>/test_<file>.py tests src/besag/<room>/<file>.py, or `mirrors.py` says which file does
    streams    the numbers of the streams of noise are given in noise.py alone

Each fault is printed as file:line: what is wrong. Knows Python's syntax tree and nothing that runs.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from mirrors import COVERED, NOTHING_RUNS, WHOLE

LONGEST = 60


class Fault(NamedTuple):
    file: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


class Module(NamedTuple):
    file: Path
    room: str  # the first folder or file below the package
    tree: ast.Module


def modules(package: Path) -> list[Module]:
    found = []
    for file in sorted(package.rglob("*.py")):
        inside = file.relative_to(package)
        room = inside.parts[0] if len(inside.parts) > 1 else inside.stem
        found.append(Module(file, room, ast.parse(file.read_text(encoding="utf-8"))))
    return found


# ---- private names


def is_private(name: str) -> bool:
    """`_name`; neither `__name__` nor `_repr_html_`, which others may ask for by agreement."""
    return name.startswith("_") and not name.endswith("_")


def is_itself(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def private_definitions(tree: ast.Module) -> set[str]:
    """Every private function, class, variable, field and attribute of `self` that a module makes."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_itself(node.value):
            found.add(node.attr)
    return {name for name in found if is_private(name)}


def private_names(parsed: list[Module], package: str = "besag") -> Iterator[Fault]:
    """Where a room imports or touches what another keeps to itself."""
    rooms: dict[str, set[str]] = {}
    for module in parsed:
        rooms.setdefault(module.room, set()).update(private_definitions(module.tree))
    for module in parsed:
        own = rooms[module.room]
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package:
                path = (node.module or "").split(".")
                for alias in node.names:
                    room = path[1] if len(path) > 1 else alias.name
                    names = [part for part in (*path[2:], alias.name) if is_private(part)]
                    if names and room != module.room:
                        yield Fault(module.file, node.lineno, f"{names[0]} is private to the room {room}")
            elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
                owners = [room for room, names in rooms.items() if node.attr in names]
                if owners and not is_itself(node.value):
                    yield Fault(module.file, node.lineno, f"{node.attr} is private to the room {owners[0]}")


# ---- long functions


def long_functions(parsed: list[Module]) -> Iterator[Fault]:
    for module in parsed:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGEST:
                    yield Fault(module.file, node.lineno, f"{node.name} has {lines} lines; {LONGEST} are enough")


# ---- tests mirror files


def has_tests(file: Path) -> bool:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in ast.walk(tree))


def unmirrored(
    package: Path, tests: Path, covered: Mapping[str, tuple[str, str]], whole: Mapping[str, str]
) -> Iterator[Fault]:
    """Modules without a test file of their name, tests of no module, and rows that say what is not so."""
    names = {file.relative_to(package).as_posix(): file for file in sorted(package.rglob("*.py"))}
    expected = {}
    for name, file in names.items():
        if file.stem in ("__init__", "__main__") or name in NOTHING_RUNS:
            continue
        expected[name] = tests / Path(name).parent / f"test_{file.stem}.py"
        if name in covered:
            if expected[name].exists():
                yield Fault(file, 1, f"has {expected[name]} and stands in lint/mirrors.py too: drop the row")
            elif not (tests / covered[name][0]).exists():
                yield Fault(file, 1, f"lint/mirrors.py says {covered[name][0]} covers it, which does not exist")
        elif not expected[name].exists():
            yield Fault(file, 1, f"no {expected[name]}: write it, or say in lint/mirrors.py which file covers it")
    for name in sorted(covered.keys() - expected.keys()):
        yield Fault(package / name, 1, "stands in lint/mirrors.py and does not exist")
    mirrors = {*expected.values(), *(tests / test for test, _ in covered.values()), *(tests / name for name in whole)}
    for file in sorted(tests.rglob("test_*.py")):
        if file not in mirrors:
            yield Fault(file, 1, "no module has this name: rename it, or say in lint/mirrors.py what it covers")
        elif not has_tests(file):
            yield Fault(file, 1, "has no tests")
    for name in whole:
        if not (tests / name).exists():
            yield Fault(tests / name, 1, "stands in lint/mirrors.py and does not exist")


# ---- streams of noise


def numbered(node: ast.expr) -> bool:
    """Is it a number, or a run of them?"""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "range"
    if isinstance(node, ast.Tuple):
        return all(map(numbered, node.elts))
    return isinstance(node, ast.Constant) and type(node.value) is int


def own_streams(parsed: list[Module]) -> Iterator[Fault]:
    """Numbers that a file other than noise.py passes as the stream of noise, or names that it gives such numbers."""
    for module in parsed:
        if module.room == "noise":
            continue
        given: dict[str, int] = {}
        for node in module.tree.body:
            if isinstance(node, ast.Assign) and numbered(node.value):
                names = [name for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
                given |= {name.id: node.lineno for name in names}
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            streams = [word.value for word in node.keywords if word.arg == "stream"]
            if called == "uniform" and len(node.args) > 1:
                streams.append(node.args[1])
            elif called in ("chains", "grid", "asks") and node.args:  # of a sampler's Noise
                streams.append(node.args[0])
            for stream in streams:
                if numbered(stream):
                    yield Fault(module.file, stream.lineno, "a stream of noise is numbered here: number it in noise.py")
                elif isinstance(stream, ast.Name) and stream.id in given:
                    what = f"the stream {stream.id} is numbered here: number it in noise.py"
                    yield Fault(module.file, given.pop(stream.id), what)


def main(root: Path = Path()) -> int:
    package = root / "src" / "besag"
    parsed = modules(package)
    faults = [
        *private_names(parsed),
        *long_functions(parsed),
        *unmirrored(package, root / "tests", COVERED, WHOLE),
        *own_streams(parsed),
    ]
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
