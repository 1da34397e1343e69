"""References that are NumPy expressions: arithmetic on the inputs, and nothing that a stranger's task could misuse."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from typing import Any

from insight_trace.errors import InputError
from insight_trace.limits import cut

# of `np`, in addition to its element-wise functions
_FUNCTIONS = frozenset({
    "sum", "prod", "mean", "std", "var", "amax", "amin", "max", "min", "argmax", "argmin", "argsort", "sort", "cumsum",
    "cumprod", "dot", "vdot", "inner", "outer", "matmul", "einsum", "tensordot", "transpose", "swapaxes", "moveaxis",
    "reshape", "ravel", "concatenate", "stack", "hstack", "vstack", "split", "tile", "repeat", "pad", "flip", "roll",
    "where", "clip", "take", "take_along_axis", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like",
    "arange", "linspace", "eye", "tril", "triu", "diag", "expand_dims", "squeeze", "broadcast_to", "round", "cbrt",
    "nan_to_num", "count_nonzero", "any", "all", "asarray", "array", "ascontiguousarray", "meshgrid", "partition",
    "interp", "histogram", "bincount", "unique", "searchsorted", "diff", "average", "median", "quantile",
})  # fmt: skip
_TYPES = frozenset({
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool_",
    "pi", "e", "inf", "nan", "newaxis",
})  # fmt: skip
_OF_ARRAYS = frozenset({
    "T", "shape", "size", "ndim", "dtype", "real", "imag", "sum", "prod", "mean", "std", "var", "max", "min", "argmax",
    "argmin", "argsort", "cumsum", "cumprod", "dot", "transpose", "swapaxes", "reshape", "ravel", "flatten", "repeat",
    "clip", "take", "round", "astype", "copy", "squeeze", "any", "all", "view",
})  # fmt: skip
_PLAIN = {
    "abs": abs,
    "min": min,
    "max": max,
    "len": len,
    "float": float,
    "int": int,
    "range": range,
    "tuple": tuple,
}
_NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.keyword, ast.Attribute, ast.Name,
    ast.Load, ast.Constant, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.IfExp, ast.operator, ast.unaryop,
    ast.boolop, ast.cmpop, ast.Starred,
)  # fmt: skip


def evaluate(expression: str, values: Mapping[str, Any]) -> Any:
    """What the expression makes of these values."""
    import numpy as np

    names = {**_PLAIN, **values, "np": np, "numpy": np}
    # NumPy itself imports with what it finds here; names that begin with _ are refused below
    return eval(require_arithmetic(expression), {"__builtins__": {"__import__": __import__}}, names)


@functools.lru_cache(maxsize=64)
def require_arithmetic(expression: str) -> Any:
    """The expression, compiled; InputError for one that is more than arithmetic."""
    try:
        tree = ast.parse(expression, "<reference>", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"the reference is no expression: {cut(str(error))}") from None
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise InputError(f"the reference has a {type(node).__name__}, which is no arithmetic", hint=_HINT)
        if isinstance(node, ast.Name) and node.id.startswith("_"):
            raise InputError(f"the reference names {cut(node.id, 40)}, which is no input", hint=_HINT)
        if isinstance(node, ast.Attribute) and not _is_allowed(node):
            raise InputError(f"the reference takes .{cut(node.attr, 40)}, which is no arithmetic", hint=_HINT)
    return compile(tree, "<reference>", "eval")


_HINT = (
    "element-wise functions, sums, products and shapes of NumPy are; write others in a file: FILE.py:function"
)


def _is_allowed(node: ast.Attribute) -> bool:
    import numpy as np

    if isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy"):
        found = getattr(np, node.attr, None)
        return node.attr in _FUNCTIONS or node.attr in _TYPES or isinstance(found, np.ufunc)
    return node.attr in _OF_ARRAYS or (
        node.attr in ("reduce", "accumulate", "outer") and _is_numpy(node.value)
    )


def _is_numpy(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("np", "numpy")
    )
