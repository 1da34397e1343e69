"""Values of a Python module's expressions without running the module.

Knows literals, f-strings, arithmetic, comprehensions, module constants, the directions of ArgDirection,
paths, a few pure built-ins and the module's own small functions. Whatever else stands there is `Unreadable`.
"""

from __future__ import annotations

import ast
import operator
import os.path
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from insight_trace import limits
from insight_trace.errors import InputError
from insight_trace.limits import MODULE_BYTES, cut
from insight_trace.reading import read_regular
from insight_trace.scene.module_index import ModuleIndex


class Unreadable(Exception):  # noqa: N818 - it is a value here, not a failure
    """An expression whose value cannot be told without running the module."""


class _Return(Exception):  # noqa: N818 - carries a value out of a function body
    def __init__(self, value: Any) -> None:
        self.value = value


class Direction(str):
    """One of ArgDirection's members: IN, OUT, INOUT, SCALAR."""

    __slots__ = ()


class _Enum:
    """A name under which ArgDirection was imported."""


class Evaluator:
    """The constants of one module, each evaluated when it is first used."""

    def __init__(self, tree: ast.Module, path: Path) -> None:
        self.path = path
        self.index = ModuleIndex(tree)
        self._values: dict[str, Any] = {"__file__": str(path), "__name__": path.stem}
        self._busy: set[str] = set()
        self._neighbours: dict[Path, Evaluator] = {}
        self._budget = Budget()

    def value(self, node: ast.expr, local: Mapping[str, Any] | None = None) -> Any:
        """What `node` evaluates to. Unreadable says which part cannot be told and where."""
        try:
            return self._budget.walked(self._eval(node, dict(local or {})))
        except Unreadable:
            raise
        except RecursionError:
            raise Unreadable(f"line {node.lineno}: nested too deep") from None
        except OverBudgetError as error:
            raise Unreadable(f"line {node.lineno}: {error}") from None
        except (Exception, MemoryError) as error:
            raise Unreadable(f"line {node.lineno}: {type(error).__name__}: {cut(str(error))}") from None

    def _eval(self, node: ast.expr, local: dict[str, Any]) -> Any:
        self._budget.step()
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise self._cannot(node)
        value = method(node, local)
        return (
            value if isinstance(node, ast.Name | ast.Constant | ast.Attribute) else self._budget.made(value)
        )

    def _cannot(self, node: ast.AST) -> Unreadable:
        try:
            text = ast.unparse(node)
        except (RecursionError, ValueError):
            text = type(node).__name__
        text = text if len(text) <= 60 else text[:57] + "..."
        return Unreadable(f"line {getattr(node, 'lineno', 0)}: `{text}` needs the module to be run")

    def _constant(self, node: ast.Constant, _: dict[str, Any]) -> Any:
        return node.value

    def _name(self, node: ast.Name, local: dict[str, Any]) -> Any:
        name = node.id
        if name in local:
            return local[name]
        if name in self._values:
            return self._values[name]
        if name in self.index.directions:
            return _Enum()
        if name in self.index.uncertain:
            line = self.index.uncertain[name]
            raise Unreadable(f"line {node.lineno}: `{name}` depends on what line {line} does when it is run")
        definition = self.index.definitions.get(name)
        if isinstance(definition, ast.expr) and name not in self._busy:
            self._busy.add(name)
            try:
                self._values[name] = self._eval(definition, {})
            finally:
                self._busy.discard(name)
            return self._values[name]
        if isinstance(definition, ast.ClassDef):
            return ClassOf(self, definition)
        if name in self.index.imported:
            module, name_there = self.index.imported[name]
            file = module_file(self.path, module)
            if file is not None:
                return self._from_module(file, name_there, node)
        raise self._cannot(node)

    def _from_module(self, file: Path, name: str, node: ast.expr) -> Any:
        neighbour = self._neighbours.get(file)
        if neighbour is None:
            tree = parsed(file)
            if tree is None or len(self._neighbours) > 16:
                raise self._cannot(node)
            neighbour = self._neighbours[file] = Evaluator(tree, file)
            neighbour._neighbours = self._neighbours
            neighbour._budget = self._budget
        return neighbour.value(ast.Name(name, ast.Load(), lineno=node.lineno, col_offset=0))

    def _elements(self, nodes: list[ast.expr], local: dict[str, Any]) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self._eval(node.value, local)
            else:
                yield self._eval(node, local)

    def _list(self, node: ast.List, local: dict[str, Any]) -> Any:
        return list(self._elements(node.elts, local))

    def _tuple(self, node: ast.Tuple, local: dict[str, Any]) -> Any:
        return tuple(self._elements(node.elts, local))

    def _set(self, node: ast.Set, local: dict[str, Any]) -> Any:
        return set(map(self._budget.walked, self._elements(node.elts, local)))

    def _dict(self, node: ast.Dict, local: dict[str, Any]) -> Any:
        result: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                result.update(self._eval(value, local))
                continue
            name = self._budget.walked(self._eval(key, local))
            try:
                result[name] = self._eval(value, local)
            except Unreadable as error:
                result[name] = error  # the reader decides whether it needs this one
        return result

    def _joinedstr(self, node: ast.JoinedStr, local: dict[str, Any]) -> str:
        return "".join(str(self._eval(part, local)) for part in node.values)

    def _formattedvalue(self, node: ast.FormattedValue, local: dict[str, Any]) -> str:
        value = self._budget.walked(self._eval(node.value, local))
        spec = str(self._eval(node.format_spec, local)) if node.format_spec is not None else ""
        if sum(c.isdigit() for c in spec) > 4:
            raise self._cannot(node)
        return format(repr(value) if node.conversion == ord("r") else value, spec)

    def _binop(self, node: ast.BinOp, local: dict[str, Any]) -> Any:
        left, right = self._eval(node.left, local), self._eval(node.right, local)
        if is_large(node.op, left, right):
            raise self._cannot(node)
        if isinstance(left, Path) and isinstance(node.op, ast.Div):
            return left / str(right)
        return BINARY[type(node.op)](left, right)

    def _unaryop(self, node: ast.UnaryOp, local: dict[str, Any]) -> Any:
        return UNARY[type(node.op)](self._eval(node.operand, local))

    def _boolop(self, node: ast.BoolOp, local: dict[str, Any]) -> Any:
        value = None
        for part in node.values:
            value = self._eval(part, local)
            if bool(value) is isinstance(node.op, ast.Or):
                break
        return value

    def _compare(self, node: ast.Compare, local: dict[str, Any]) -> bool:
        left = self._eval(node.left, local)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self._eval(part, local)
            self._budget.walked((left, right))
            if not COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def _ifexp(self, node: ast.IfExp, local: dict[str, Any]) -> Any:
        return self._eval(node.body if self._eval(node.test, local) else node.orelse, local)

    def _subscript(self, node: ast.Subscript, local: dict[str, Any]) -> Any:
        value = self._eval(node.value, local)
        if isinstance(node.slice, ast.Slice):
            ends = (node.slice.lower, node.slice.upper, node.slice.step)
            return value[slice(*(None if end is None else self._eval(end, local) for end in ends))]
        item = value[self._eval(node.slice, local)]
        if isinstance(item, Unreadable):
            raise item
        return item

    def _attribute(self, node: ast.Attribute, local: dict[str, Any]) -> Any:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "ArgDirection":
            return Direction(node.attr)
        if isinstance(node.value, ast.Name):
            owner = self.index.definitions.get(node.value.id)
            if isinstance(owner, ast.ClassDef) and node.value.id not in local:
                return self.class_attribute(owner, node.attr)
        value = self._eval(node.value, local)
        if isinstance(value, ClassOf):
            found = value.evaluator.class_attribute(value.node, node.attr)
            return with_absolute_sources(found, value.evaluator.path.parent)
        if isinstance(value, ModuleAt):
            return value if node.attr == "loader" else self._from_module(value.path, node.attr, node)
        if isinstance(value, _Enum):
            return Direction(node.attr)
        if isinstance(value, Path) and node.attr in PATH_ATTRIBUTES:
            return getattr(value, node.attr)
        raise self._cannot(node)

    def class_attribute(self, owner: ast.ClassDef, name: str) -> Any:
        """A class attribute's value, from the class itself or the bases that the module defines."""
        found = self.index.class_expression(owner, name)
        if found is None:
            raise Unreadable(f"line {owner.lineno}: {owner.name} has no {name} here")
        holder, expression = found
        local: dict[str, Any] = {}
        for node in holder.body:
            if isinstance(node, ast.Assign) and node.value is not expression:
                for target in node.targets:
                    if isinstance(target, ast.Name) and target.id not in ("CALLABLE", "CASES"):
                        try:
                            local[target.id] = self.value(node.value, local)
                        except Unreadable:
                            continue
        return self.value(expression, local)

    def _listcomp(self, node: ast.ListComp, local: dict[str, Any]) -> Any:
        return [self._eval(node.elt, scope) for scope in self._scopes(node.generators, local)]

    def _generatorexp(self, node: ast.GeneratorExp, local: dict[str, Any]) -> Any:
        return [self._eval(node.elt, scope) for scope in self._scopes(node.generators, local)]

    def _setcomp(self, node: ast.SetComp, local: dict[str, Any]) -> Any:
        return {
            self._budget.walked(self._eval(node.elt, scope)) for scope in self._scopes(node.generators, local)
        }

    def _dictcomp(self, node: ast.DictComp, local: dict[str, Any]) -> Any:
        return {
            self._budget.walked(self._eval(node.key, scope)): self._eval(node.value, scope)
            for scope in self._scopes(node.generators, local)
        }

    def _scopes(self, loops: list[ast.comprehension], local: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if not loops:
            yield local
            return
        loop, rest = loops[0], loops[1:]
        for item in self._eval(loop.iter, local):
            self._budget.step()
            scope = dict(local)
            self._assign(loop.target, item, scope)
            if all(self._eval(test, scope) for test in loop.ifs):
                yield from self._scopes(rest, scope)

    def _assign(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            scope[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part, item in zip(target.elts, value, strict=True):
                self._assign(part, item, scope)
        elif ast.unparse(target).startswith("sys.modules["):
            return  # a module that registers another: nothing to remember here
        elif isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
            self._eval(target.value, scope)[self._eval(target.slice, scope)] = value
        else:
            raise self._cannot(target)

    def _call(self, node: ast.Call, local: dict[str, Any]) -> Any:
        dotted = ast.unparse(node.func)
        arguments = list(self._elements(node.args, local)) if dotted != "len" or node.args else []
        named = {k.arg: self._eval(k.value, local) for k in node.keywords if k.arg is not None}
        if isinstance(node.func, ast.Name) and dotted not in local:
            definition = self.index.definitions.get(dotted)
            if isinstance(definition, ast.FunctionDef):
                return self._function(definition, arguments, named)
            known = self.index.modules.get(dotted, dotted).split(".")[-1]
            if known in ("deepcopy", "copy"):
                return copied(self._budget.walked(arguments[0]))
            if known in BUILTINS:
                if known == "range" and len(range(*arguments)) > MOST_ITEMS:
                    raise self._cannot(node)
                if known != "len":
                    self._budget.walked([a for a in arguments if not isinstance(a, range)])
                return BUILTINS[known](*arguments, **named)
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func, dotted, arguments, named, local)
        raise self._cannot(node)

    def _method(
        self,
        node: ast.Call,
        function: ast.Attribute,
        dotted: str,
        arguments: list[Any],
        named: dict[str, Any],
        local: dict[str, Any],
    ) -> Any:
        module, _, name = dotted.rpartition(".")
        if module in ("os.path", "osp") and name in OS_PATH:
            return getattr(os.path, name)(*map(str, arguments))
        if dotted in ("copy.deepcopy", "copy.copy"):
            return copied(self._budget.walked(arguments[0]))
        if dotted == "importlib.util.spec_from_file_location":
            return ModuleAt(Path(arguments[1]))
        if dotted == "importlib.util.module_from_spec":
            return arguments[0]
        if name == "exec_module" and isinstance(arguments[0], ModuleAt):
            return None
        if dotted == "pathlib.Path":
            return Path(*arguments)
        value = self._eval(function.value, local)
        for kind, names in (*METHODS.items(), *MUTATORS.items()):
            if isinstance(value, kind) and name in names:
                self._budget.made(self._budget.walked(arguments))
                return getattr(value, name)(*arguments, **named)
        if isinstance(value, Path) and name in PATH_METHODS:
            return getattr(value, name)(*arguments)
        raise self._cannot(node)

    def _function(self, function: ast.FunctionDef, arguments: list[Any], named: dict[str, Any]) -> Any:
        spec = function.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        if spec.vararg or spec.kwarg or function.decorator_list or function.name in self._busy:
            raise self._cannot(function)
        scope: dict[str, Any] = {}
        for name, default in zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True):
            scope[name] = self._eval(default, {})
        for argument, default_ in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            if default_ is not None:
                scope[argument.arg] = self._eval(default_, {})
        scope.update(zip(names, arguments, strict=False))
        scope.update(named)
        self._busy.add(function.name)
        try:
            self._run(function.body, scope)
        except _Return as done:
            return done.value
        finally:
            self._busy.discard(function.name)
        return None

    def _run(self, body: list[ast.stmt], scope: dict[str, Any]) -> None:
        for node in body:
            if isinstance(node, ast.Return):
                raise _Return(None if node.value is None else self._eval(node.value, scope))
            if isinstance(node, ast.Assign):
                value = self._eval(node.value, scope)
                for target in node.targets:
                    self._assign(target, value, scope)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._assign(node.target, self._eval(node.value, scope), scope)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                left, right = scope[node.target.id], self._eval(node.value, scope)
                if is_large(node.op, left, right):
                    raise self._cannot(node)
                scope[node.target.id] = BINARY[type(node.op)](left, right)
            elif isinstance(node, ast.For):
                for item in self._eval(node.iter, scope):
                    self._budget.step()
                    self._assign(node.target, item, scope)
                    self._run(node.body, scope)
            elif isinstance(node, ast.If):
                self._run(node.body if self._eval(node.test, scope) else node.orelse, scope)
            elif isinstance(node, ast.Expr):
                self._eval(node.value, scope)
            elif not isinstance(node, ast.Pass):
                raise self._cannot(node)


# --- what reading a scene may cost: steps, elements of what it builds, and the size of what it hands on


_BYTES_PER_ELEMENT = 16  # of a text


class OverBudgetError(Exception):
    """The module asks for more than a scene has use for."""


class Budget:
    """One for a module and all that it imports."""

    def __init__(self) -> None:
        self.steps = limits.SCENE_STEPS
        self.elements = limits.SCENE_ELEMENTS

    def step(self) -> None:
        """One expression is evaluated."""
        self.steps -= 1
        if self.steps < 0:
            raise OverBudgetError("takes too many steps to evaluate")

    def made(self, value: Any) -> Any:
        """A value was built: its own elements count, those that it shares with others do not count again."""
        if isinstance(value, str | bytes):
            self.elements -= len(value) // _BYTES_PER_ELEMENT
        elif isinstance(value, list | tuple | dict | set | frozenset):
            self.elements -= len(value)
        elif isinstance(value, int) and value.bit_length() > 4 * limits.SCENE_DIGITS:
            raise OverBudgetError("is a number with too many digits")
        if self.elements < 0:
            raise OverBudgetError("builds more elements than a scene has use for")
        return value

    def walked(self, value: Any) -> Any:
        """A value is about to be walked from end to end, what it shares as often as it occurs."""
        size = expanded_size(value, limits.SCENE_ELEMENTS)
        if size >= limits.SCENE_ELEMENTS:
            raise OverBudgetError("is larger than a scene has use for when it is written out")
        self.elements -= size
        return value


def expanded_size(value: Any, most: int) -> int:
    """How many elements a value has when everything shared is written out; `most` if it is more than that."""
    known: dict[int, int] = {}

    def size_of(item: Any, depth: int) -> int:
        if isinstance(item, str | bytes):
            return 1 + len(item) // _BYTES_PER_ELEMENT
        if item is None or isinstance(item, int | float | complex | Path):
            return 1
        if not isinstance(item, list | tuple | dict | set | frozenset):
            return 1
        if depth > 100:
            return most
        found = known.get(id(item))
        if found is None:
            known[id(item)] = most  # one that holds itself has no end
            found = 1
            for part in item.items() if isinstance(item, dict) else item:
                found = min(most, found + size_of(part, depth + 1))
                if found >= most:
                    break
            known[id(item)] = found
        return found

    return size_of(value, 0)


# --- names that a scene takes from other modules of its checkout, found as files and read the same way


class ModuleAt:
    """Another module of the checkout, named by its file."""

    def __init__(self, path: Path) -> None:
        self.path = path


class ClassOf:
    """A class of another module, with the evaluator that reads it."""

    def __init__(self, evaluator: Evaluator, node: ast.ClassDef) -> None:
        self.evaluator = evaluator
        self.node = node


def module_file(scene: Path, dotted: str) -> Path | None:
    """The file of a module as the scene imports it: beside the scene, or below a folder above it."""
    relative = Path(*dotted.split(".")).with_suffix(".py")
    for folder in scene.parents:
        if (folder / relative).is_file():
            return folder / relative
    return None


def parsed(path: Path) -> ast.Module | None:
    """The syntax tree of a neighbour, or None if it cannot be read."""
    try:
        return ast.parse(read_regular(path, most=MODULE_BYTES), filename=str(path))
    except (OSError, InputError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def with_absolute_sources(spec: Any, folder: Path) -> Any:
    """A CALLABLE whose source paths no longer depend on where its module lies."""
    if isinstance(spec, dict):
        return {
            key: str(folder / value)
            if key == "source" and isinstance(value, str)
            else with_absolute_sources(value, folder)
            for key, value in spec.items()
        }
    if isinstance(spec, list):
        return [with_absolute_sources(item, folder) for item in spec]
    return spec


# --- what the evaluator may do with values, and how large a value may get


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
