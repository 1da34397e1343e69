"""Stand-ins for `simpler.task_interface` and `simpler_setup`, so that a scene can run where neither is built.

They are in sys.modules only while a scene's code runs. What a scene needs to declare itself and to make its
arguments is here; every other name exists and says what it would need when it is used.
"""

from __future__ import annotations

import contextlib
import copy
import enum
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import os.path
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from insight_trace.dtypes import DTYPES
from insight_trace.errors import JobError
from insight_trace.scene import node_names
from insight_trace.scene.tensors import compare_outputs


class ArgDirection(enum.IntEnum):
    """How a callable uses an argument."""

    SCALAR = 0
    IN = 1
    OUT = 2
    INOUT = 3


DataType = enum.IntEnum("DataType", {d.name: d.code for d in DTYPES})  # type: ignore[misc]


class SceneTestLevel(enum.IntEnum):
    """What a scene runs on."""

    CHIP = 2
    NODE = 3
    NETWORK = 4


class NamedTensor(NamedTuple):
    """A named tensor: a NumPy array or a torch tensor."""

    name: str
    value: Any


class Scalar(NamedTuple):
    """A named scalar: a ctypes value, or a Python or NumPy number."""

    name: str
    value: Any


class TaskArgsBuilder:
    """Arguments in order, tensors before scalars, each to be had by its name."""

    def __init__(self, *specs: NamedTensor | Scalar) -> None:
        self._specs: list[NamedTensor | Scalar] = []
        self._values: dict[str, Any] = {}
        for spec in specs:
            self._add(spec)

    def add_tensor(self, name: str, value: Any) -> None:
        self._add(NamedTensor(name, value))

    def add_scalar(self, name: str, value: Any) -> None:
        self._add(Scalar(name, value))

    def _add(self, spec: NamedTensor | Scalar) -> None:
        if not isinstance(spec, (NamedTensor, Scalar)):
            raise TypeError(f"an argument must be a TensorArg or a Scalar, not {type(spec).__name__}")
        if spec.name in self._values:
            raise ValueError(f"there is an argument {spec.name!r} already")
        if hasattr(self, spec.name):
            raise ValueError(f"an argument cannot be called {spec.name!r}: the builder has that name")
        if isinstance(spec, NamedTensor) and any(isinstance(s, Scalar) for s in self._specs[-1:]):
            raise ValueError(f"tensor {spec.name!r} comes after a scalar; tensors come first")
        self._specs.append(spec)
        self._values[spec.name] = spec.value

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("_values", {})
        if name in values:
            return values[name]
        raise AttributeError(f"no argument {name!r}")

    @property
    def specs(self) -> list[NamedTensor | Scalar]:
        return self._specs

    def tensor_names(self) -> list[str]:
        return [spec.name for spec in self._specs if isinstance(spec, NamedTensor)]

    def clone(self) -> TaskArgsBuilder:
        """A copy that shares no memory with this one."""
        return TaskArgsBuilder(*(type(spec)(spec.name, _cloned(spec.value)) for spec in self._specs))


def _cloned(value: Any) -> Any:
    clone = getattr(value, "clone", None)  # torch
    return clone() if callable(clone) else copy.copy(value)


class SceneTestCase:
    """What a scene derives from."""

    CALLABLE: dict[str, Any] = {}  # noqa: RUF012 - scenes replace it as a class attribute
    CASES: list[dict[str, Any]] = []  # noqa: RUF012
    RTOL = 1e-5
    ATOL = 1e-5
    SKIP_GOLDEN = False
    RUNTIME_ENV: dict[str, str] = {}  # noqa: RUF012

    def generate_args(self, params: dict[str, Any]) -> TaskArgsBuilder:
        raise NotImplementedError

    def compute_golden(self, args: TaskArgsBuilder, params: dict[str, Any]) -> None:
        raise NotImplementedError

    def compare_outputs(self, test_args: Any, golden_args: Any, output_names: Any, params: Any) -> None:  # noqa: ARG002
        compare_outputs(test_args, golden_args, output_names, self.RTOL, self.ATOL)

    @staticmethod
    def run_module(_name: str) -> None:
        raise JobError(
            "a scene is not run through the stand-ins", hint="use `insight-trace capture SCENE --case CASE`"
        )


def scene_level(level: int) -> Any:
    def mark(cls: Any) -> Any:
        cls._st_level = int(level)
        return cls

    return mark


def scene_test(level: int, runtime: str) -> Any:
    """Marks a scene and makes its sources independent of where it is run."""

    def mark(cls: Any) -> Any:
        cls._st_level, cls._st_runtime = int(level), runtime
        if isinstance(getattr(cls, "CALLABLE", None), dict):
            cls.CALLABLE = _absolute(cls.CALLABLE, Path(inspect.getfile(cls)).resolve().parent)
        return cls

    return mark


def _absolute(spec: Any, folder: Path) -> Any:
    if isinstance(spec, dict):
        return {
            key: os.path.normpath(folder / value)
            if key == "source" and isinstance(value, str)
            else _absolute(value, folder)
            for key, value in spec.items()
        }
    return [_absolute(item, folder) for item in spec] if isinstance(spec, list) else spec


class _Absent(type):
    """A name of the runtime that has no stand-in. It can be named and annotated with, but not used."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _absent(f"{cls.__qualname__}.{name}")

    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise JobError(
            f"the scene uses {cls.__qualname__}, which only the built runtime has",
            hint="install simpler, or use a scene that declares itself with SceneTestCase alone",
        )


def _absent(name: str) -> Any:
    return _Absent(name, (), {})


_TASK_INTERFACE: dict[str, Any] = {
    "ArgDirection": ArgDirection,
    "DataType": DataType,
    **node_names.TASK_INTERFACE,
}
_SETUP: dict[str, Any] = {
    "ArgDirection": ArgDirection,
    "Scalar": Scalar,
    "SceneTestCase": SceneTestCase,
    "SceneTestLevel": SceneTestLevel,
    "TaskArgsBuilder": TaskArgsBuilder,
    "Tensor": NamedTensor,
    "TensorArg": NamedTensor,
    "scene_level": scene_level,
    "scene_test": scene_test,
}
_CONTENT: dict[str, dict[str, Any]] = {
    "_task_interface": node_names.NATIVE,
    "simpler.buffer": node_names.BUFFER,
    "simpler.task_interface": _TASK_INTERFACE,
    "simpler.worker": node_names.WORKER,
    "simpler_setup": _SETUP,
    "simpler_setup.scene_test": _SETUP | node_names.SCENE_TEST | {"_compare_outputs": compare_outputs},
}
_ROOTS = ("simpler", "simpler_setup", "_task_interface")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module of the runtime as a stand-in, and goldens in the scene's own checkout."""

    def __init__(self, checkout: Path | None) -> None:
        self._checkout = checkout

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.split(".")[0] not in _ROOTS:
            return None
        if name.startswith("simpler_setup.goldens") and self._checkout is not None:
            folder = self._checkout.joinpath(*name.split("."))
            if folder.is_dir():
                spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
                spec.submodule_search_locations = [str(folder)]
                return spec
            if folder.with_suffix(".py").is_file():
                return importlib.util.spec_from_file_location(name, folder.with_suffix(".py"))
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        module.__dict__.update(_CONTENT.get(name, {}))
        module.__dict__["__getattr__"] = lambda attribute: _attribute(name, attribute)


def _attribute(module: str, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _absent(f"{module}.{name}")


def runtime_is_installed() -> bool:
    """Whether the real `simpler.task_interface` and `simpler_setup` can be imported."""
    try:
        if importlib.util.find_spec("_task_interface") is None:
            return False
        importlib.import_module("simpler.task_interface")
        setup = importlib.import_module("simpler_setup")
    except Exception:  # whatever a half-installed runtime raises, it is not usable
        return False
    return hasattr(setup, "SceneTestCase")


@contextlib.contextmanager
def standing_in(checkout: Path | None, folders: Sequence[Path]) -> Iterator[None]:
    """Puts the stand-ins in place for the length of the block, and everything back afterwards."""
    kept = {name: sys.modules[name] for name in list(sys.modules) if name.split(".")[0] in _ROOTS}
    for name in kept:
        del sys.modules[name]
    finder = _Finder(checkout)
    added = [str(folder) for folder in folders if str(folder) not in sys.path]
    sys.meta_path.insert(0, finder)
    sys.path[:0] = added
    # Reading a scene should not leave caches in somebody's checkout.
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        # First the decorator, then its module: inside the package the name means the decorator.
        importlib.import_module("simpler_setup.scene_test")
        sys.modules["simpler_setup"].__dict__["scene_test"] = scene_test
        yield
    finally:
        sys.dont_write_bytecode = writes
        sys.meta_path.remove(finder)
        for folder in added:
            sys.path.remove(folder)
        for name in [n for n in sys.modules if n.split(".")[0] in _ROOTS]:
            del sys.modules[name]
        sys.modules.update(kept)
