"""Which rows are kept: `score > -40 and tokens < 100`, said of the columns of a row.

Comparisons, `and`, `or`, `not`, the four arithmetic signs and brackets; `score` stands for the first number that a verb
found. A row that has no such number was not judged, and stays, with its status. Knows expressions, and runs no code.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from besag.errors import BesagError, nearest, quoted

SCORE = "score"
_BINARY: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
_SIGNS: Mapping[type[ast.AST], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_,
}  # fmt: skip
_WRITE = "write a comparison of columns and numbers, such as 'score > -40' or 'score / tokens > -4 and tokens < 100'"


class Keep:
    """An expression over the columns of a row."""

    def __init__(self, said: str) -> None:
        self.said = said
        try:
            self._tree = ast.parse(said.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise BesagError(f"--keep {quoted(said)} cannot be read: {_WRITE}") from None
        if not isinstance(self._tree, ast.Compare | ast.BoolOp) and not (
            isinstance(self._tree, ast.UnaryOp) and isinstance(self._tree.op, ast.Not)
        ):
            raise BesagError(f"--keep {quoted(said)} is no comparison: {_WRITE}")
        self.names = list(dict.fromkeys(self._check(self._tree)))

    def __reduce__(self) -> tuple[type[Keep], tuple[str]]:
        return Keep, (self.said,)

    def __call__(self, row: Mapping[str, object], found: str) -> bool:
        """Is this row kept? `found` is the column that `score` stands for."""
        values = {name: row.get(found if name == SCORE and SCORE not in row else name) for name in self.names}
        if any(not isinstance(value, int | float) or math.isnan(value) for value in values.values()):
            return True
        try:
            return bool(self._value(self._tree, values))
        except ZeroDivisionError:
            return True

    def check(self, row: Mapping[str, object], found: str) -> None:
        """Do rows of this shape have all that is named?"""
        for name in self.names:
            if name not in row and name != SCORE:
                known = ", ".join([SCORE, *row])
                raise BesagError(f"--keep {quoted(self.said)}: no column {name!r}, but {known}.{nearest(name, row)}")

    def _check(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Name):
            yield node.id
            return
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return
        kinds = ast.Compare | ast.BoolOp | ast.UnaryOp | ast.BinOp
        signs: list[Any] = list(node.ops) if isinstance(node, ast.Compare) else [getattr(node, "op", None)]
        known = all(type(sign) in _BINARY or type(sign) in _SIGNS or isinstance(sign, ast.boolop) for sign in signs)
        if not isinstance(node, kinds) or not known:
            raise BesagError(f"--keep {quoted(self.said)}: {quoted(ast.unparse(node))} is not understood: {_WRITE}")
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from self._check(child)

    def _value(self, node: ast.AST, values: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Name):
            return values[node.id]
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.BoolOp):
            together = all if isinstance(node.op, ast.And) else any
            return together(self._value(one, values) for one in node.values)
        if isinstance(node, ast.UnaryOp):
            return _SIGNS[type(node.op)](self._value(node.operand, values))
        if isinstance(node, ast.BinOp):
            return _BINARY[type(node.op)](self._value(node.left, values), self._value(node.right, values))
        assert isinstance(node, ast.Compare)
        sides = [self._value(one, values) for one in (node.left, *node.comparators)]
        return all(_BINARY[type(sign)](*pair) for sign, pair in zip(node.ops, pairwise(sides), strict=True))
