"""What the evaluator may do with values, and how large a value may get."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_ITEMS = 1_000_000
_MOST_BITS = 4096

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
BUILTINS: dict[str, Callable[..., Any]] = {
    "range": range,
    "enumerate": lambda *a, **k: list(enumerate(*a, **k)),
    "zip": lambda *a, strict=False: list(zip(*a, strict=strict)),
    "sorted": sorted,
    "reversed": lambda a: list(reversed(a)),
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "set": set,
    "frozenset": frozenset,
    "len": len,
    "min": min,
    "max": max,
    "sum": sum,
    "abs": abs,
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "Path": Path,
}
METHODS: dict[type, frozenset[str]] = {
    dict: frozenset({"items", "keys", "values", "get", "copy"}),
    str: frozenset({"split", "lower", "upper", "strip", "removesuffix"}),
    list: frozenset({"copy", "index", "count"}),
    tuple: frozenset({"index", "count"}),
}
MUTATORS: dict[type, frozenset[str]] = {
    list: frozenset({"append", "extend", "insert"}),
    dict: frozenset({"update", "setdefault", "pop"}),
}
PATH_ATTRIBUTES = frozenset({"parent", "name", "stem", "suffix", "parents"})
PATH_METHODS = frozenset({"resolve", "joinpath", "absolute", "as_posix", "with_name"})
OS_PATH = frozenset({"join", "dirname", "abspath", "basename", "normpath"})


def is_large(op: ast.operator, left: Any, right: Any) -> bool:
    """Whether an operation would make something larger than any scene has use for."""
    sized = (str, bytes, list, tuple)
    if isinstance(op, (ast.Pow, ast.LShift)):
        bits = _bits(left) * (right if isinstance(op, ast.Pow) else 1) if isinstance(right, int) else 0
        return not isinstance(right, (int, float)) or abs(right) > _MOST_BITS or bits > _MOST_BITS
    if isinstance(op, ast.Mult):
        for many, count in ((left, right), (right, left)):
            if isinstance(many, sized) and isinstance(count, int):
                return len(many) * count > MOST_ITEMS
        return _bits(left) + _bits(right) > _MOST_BITS**2
    if isinstance(op, ast.Add) and isinstance(left, sized) and isinstance(right, sized):
        return len(left) + len(right) > MOST_ITEMS
    return isinstance(op, ast.Mod) and isinstance(left, (str, bytes))


def _bits(value: Any) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(copied(item) for item in value)
    return value
