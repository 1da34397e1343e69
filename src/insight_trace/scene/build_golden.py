"""golden.py of a PyPTO build: what the build runs with and what it should give.

The file is generated, and its usual form (tensors loaded from data/in, outputs made of zeros, results in data/out) is
read here without torch and without running it. Any other form is run, which needs torch.
"""

from __future__ import annotations

import ast
import ctypes
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.errors import InputError, RequestError
from insight_trace.limits import SCENE_BYTES
from insight_trace.reading import is_file, read_regular, readable
from insight_trace.scene.evaluate import Evaluator, Unreadable
from insight_trace.scene.stand_in_modules import SceneTestCase, TaskArgsBuilder
from insight_trace.scene.tensors import tensor_array, tolerance
from insight_trace.scene.torch_file import read_torch_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FILLS: Mapping[str, float] = {"zeros": 0, "ones": 1}
_MOST_ELEMENTS = 1 << 36


@dataclass(frozen=True)
class GoldenInput:
    """One argument of the orchestration: a file, an array of one value, or a scalar."""

    name: str
    file: Path | None = None
    shape: tuple[int, ...] = ()
    dtype: str = ""
    fill: float = 0
    scalar: Any = None  # a ctypes value

    def value(self) -> Any:
        if self.scalar is not None:
            return self.scalar
        if self.file is not None:
            return read_torch_file(self.file)
        import ml_dtypes
        import numpy as np

        return np.full(self.shape, self.fill, np.dtype(getattr(ml_dtypes, self.dtype, self.dtype)))


@dataclass(frozen=True)
class GoldenFile:
    """What golden.py says. `inputs` is None where only running it tells."""

    path: Path
    outputs: tuple[str, ...]
    rtol: float
    atol: float
    inputs: tuple[GoldenInput, ...] | None
    why_not: str = ""  # what has to be run

    @property
    def expected(self) -> dict[str, Path] | None:
        """The files with the results, if every output has one."""
        files = {name: _data_folder(self.path) / "out" / f"{name}.pt" for name in self.outputs}
        return files if files and all(is_file(file) for file in files.values()) else None


def read_golden(path: Path) -> GoldenFile:
    """Reads golden.py without running it."""
    with readable(path):
        text = read_regular(path, most=SCENE_BYTES)
    try:
        tree = ast.parse(text, filename=str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"not Python: {error}", where=str(path)) from None
    evaluator = Evaluator(tree, path)
    outputs = _named(evaluator, "__outputs__", ())
    inputs, why_not = None, ""
    try:
        inputs = _inputs(evaluator, path)
    except Unreadable as error:
        why_not = str(error)
    return GoldenFile(
        path,
        tuple(map(str, outputs)) if isinstance(outputs, (list, tuple)) else (),
        _tolerance(evaluator, "RTOL"),
        _tolerance(evaluator, "ATOL"),
        inputs,
        why_not,
    )


def _named(evaluator: Evaluator, name: str, default: Any) -> Any:
    expression = evaluator.index.definitions.get(name)
    if not isinstance(expression, ast.expr):
        return default
    try:
        return evaluator.value(expression)
    except Unreadable:
        return default


def _tolerance(evaluator: Evaluator, name: str) -> float:
    return tolerance(name, _named(evaluator, name, None), evaluator.path)


def _data_folder(golden: Path) -> Path:
    return golden.parent / "data"


def _inputs(evaluator: Evaluator, path: Path) -> tuple[GoldenInput, ...]:
    function = evaluator.index.definitions.get("generate_inputs")
    if not isinstance(function, ast.FunctionDef):
        raise Unreadable("there is no generate_inputs")
    made: dict[str, GoldenInput] = {}
    for statement in function.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ):
            name = statement.targets[0].id
            made[name] = _input(name, statement.value, evaluator, path)
        elif isinstance(statement, ast.Return) and statement.value is not None:
            return _returned(statement.value, made)
        else:
            raise _needs_running(statement)
    raise Unreadable("generate_inputs returns nothing")


def _needs_running(node: ast.AST) -> Unreadable:
    return Unreadable(f"line {getattr(node, 'lineno', 0)}: `{ast.unparse(node)[:60]}` has to be run")


def _returned(node: ast.expr, made: Mapping[str, GoldenInput]) -> tuple[GoldenInput, ...]:
    found = []
    for item in node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]:
        if not (isinstance(item, ast.Tuple) and len(item.elts) == 2):
            raise _needs_running(item)
        name, value = item.elts
        if not (isinstance(name, ast.Constant) and isinstance(value, ast.Name) and value.id in made):
            raise _needs_running(item)
        one = made[value.id]
        found.append(GoldenInput(str(name.value), one.file, one.shape, one.dtype, one.fill, one.scalar))
    return tuple(found)


def _input(name: str, node: ast.expr, evaluator: Evaluator, path: Path) -> GoldenInput:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        raise _needs_running(node)
    owner = node.func.value
    called = f"{owner.id}.{node.func.attr}" if isinstance(owner, ast.Name) else ""
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if called == "torch.load" and node.args:
        return GoldenInput(name, file=_existing(Path(str(evaluator.value(node.args[0]))), path))
    if called.startswith("ctypes.c_") and len(node.args) == 1:
        kind = getattr(ctypes, node.func.attr, None)
        if isinstance(kind, type) and issubclass(kind, ctypes._SimpleCData):
            return GoldenInput(name, scalar=kind(evaluator.value(node.args[0])))
    if called in ("torch.zeros", "torch.ones", "torch.full") and node.args:
        shape = _shape(evaluator.value(node.args[0]), node)
        fill = _FILLS.get(node.func.attr)
        if fill is None:
            if len(node.args) != 2:
                raise _needs_running(node)
            fill = evaluator.value(node.args[1])
        return GoldenInput(name, shape=shape, dtype=_dtype(given.get("dtype"), node), fill=fill)
    raise _needs_running(node)


def _shape(value: Any, node: ast.expr) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)) or not all(type(n) is int and n >= 0 for n in value):
        raise _needs_running(node)
    total = 1
    for extent in value:
        total *= extent
    if total > _MOST_ELEMENTS:
        raise Unreadable(f"line {node.lineno}: a tensor of {total} elements does not fit in memory")
    return tuple(value)


def _dtype(node: ast.expr | None, whole: ast.expr) -> str:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
        return {"half": "float16", "float": "float32", "long": "int64", "int": "int32"}.get(
            node.attr, node.attr
        )
    raise _needs_running(whole)


def _existing(file: Path, golden: Path) -> Path:
    """A build that was moved still names the data where it was made: the same file below its own data/."""
    beside = _data_folder(golden) / file.parent.name / file.name
    return file if is_file(file) or not is_file(beside) else beside


# --- running a build ------------------------------------------------------------------------------------


def golden_class(golden: GoldenFile, case: str) -> type[SceneTestCase]:
    """A scene class that makes the build's arguments and knows what they should give."""

    class BuildCase(SceneTestCase):
        CASES = [{"name": case, "params": {"name": case}}]  # noqa: RUF012 - as scenes declare it
        RTOL = golden.rtol
        ATOL = golden.atol

        def generate_args(self, params: dict[str, Any]) -> TaskArgsBuilder:
            if golden.inputs is not None:
                named: Sequence[tuple[str, Any]] = [(value.name, value.value()) for value in golden.inputs]
            else:
                named = _module(golden).generate_inputs(params)
            builder = TaskArgsBuilder()
            for name, value in named:
                if isinstance(value, (int, float, ctypes._SimpleCData)):
                    builder.add_scalar(name, value)
                else:
                    builder.add_tensor(name, value)
            return builder

        def compute_golden(self, args: TaskArgsBuilder, params: dict[str, Any]) -> None:
            expected = golden.expected if golden.inputs is not None else None
            if expected is not None:
                for name, file in expected.items():
                    _put(tensor_array(name, getattr(args, name)), read_torch_file(file), file)
                return
            module = _module(golden)
            torch = importlib.import_module("torch")
            tensors = {name: _as_torch(torch, getattr(args, name)) for name in args.tensor_names()}
            module.compute_golden(tensors, params)
            for name in golden.outputs:
                _put(tensor_array(name, getattr(args, name)), tensor_array(name, tensors[name]), golden.path)

    return BuildCase


def _put(into: NDArray[Any], found: NDArray[Any], file: Path) -> None:
    if into.shape != found.shape:
        raise InputError(f"has the shape {found.shape}, its output has {into.shape}", where=str(file))
    into[...] = found


def _as_torch(torch: Any, value: Any) -> Any:
    if hasattr(value, "data_ptr"):
        return value
    try:
        return torch.from_numpy(value)
    except TypeError:  # bf16 and fp8 have no NumPy form in torch
        carrier = value.view(f"i{value.dtype.itemsize}")
        return torch.from_numpy(carrier).view(getattr(torch, value.dtype.name))


def _module(golden: GoldenFile) -> Any:
    """golden.py, executed."""
    name = f"_insight_trace_golden_{abs(hash(str(golden.path)))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, golden.path)
    if spec is None or spec.loader is None:
        raise RequestError(f"{golden.path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.dont_write_bytecode = writes
    return module
