"""load_scene_live: a scene that can make its arguments and compute what a run should give."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import resource
import sys
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from insight_trace.dtypes import DType, dtype_named
from insight_trace.errors import InputError, InsightTraceError, JobError, RequestError
from insight_trace.limits import GIB, SCENE_MEMORY
from insight_trace.model import Case, Scene
from insight_trace.scene.build_golden import GoldenFile, golden_class, read_golden
from insight_trace.scene.stand_in_modules import runtime_is_installed, standing_in
from insight_trace.scene.static import completed, load_scene
from insight_trace.scene.tensors import tensor_array
from insight_trace.supervisor import require_running

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PACKAGE_LEVELS = 4


@dataclass(frozen=True, slots=True, eq=False)
class LiveTensor:
    """A tensor argument of the orchestration; `array` shares its memory with the scene's own tensor."""

    name: str
    dtype: DType
    array: NDArray[Any]
    direction: str  # IN, OUT or INOUT as the orchestration declares it; IN where it does not


@dataclass(frozen=True, slots=True)
class LiveScalar:
    """A scalar argument of the orchestration, as the 64 bits of its slot."""

    name: str
    dtype: DType
    bits: int


class LiveScene:
    """A scene whose module was executed. `scene` is what it declares; `scene_class` the class itself."""

    def __init__(self, scene: Scene, scene_class: Any, real_runtime: bool) -> None:
        self.scene = scene
        self.scene_class = scene_class
        self._real = real_runtime
        self._instance = scene_class()

    def case(self, name: str) -> Case:
        """The case of that name; RequestError lists the others."""
        for case in self.scene.cases:
            if case.name == name:
                return case
        raise RequestError(
            f"no case {name} in {self.scene.class_name}",
            hint=f"it has {', '.join(c.name for c in self.scene.cases) or 'none'}",
        )

    def params(self, case: str | Case) -> dict[str, Any]:
        """The parameters of a case as the executed module holds them."""
        name = case if isinstance(case, str) else case.name
        for declared in self.scene_class.CASES:
            if declared.get("name") == name:
                return dict(declared.get("params") or {})
        return dict(self.case(name).params)

    def generate_args(self, case: str | Case) -> Any:
        """The arguments of a case, as the scene builds them (a TaskArgsBuilder)."""
        params = self.params(case)
        if not self._defines("generate_args"):
            raise InputError(
                f"{self.scene.class_name} has no generate_args, so there is nothing to run it with",
                where=str(self.scene.path),
                hint="define generate_args(self, params) and return a TaskArgsBuilder",
            )
        with self._running("generate_args"):
            return self._instance.generate_args(params)

    def compute_golden(self, args: Any, case: str | Case) -> Any | None:
        """A copy of `args` with the outputs that a run should give; None where the case has no golden."""
        found = self.case(case) if isinstance(case, str) else case
        skipped = found.skip_golden or getattr(self.scene_class, "SKIP_GOLDEN", False)
        if skipped or not self._defines("compute_golden"):
            return None
        params = self.params(found)
        with self._running("compute_golden"):
            golden = args.clone()
            self._instance.compute_golden(golden, params)
            return golden

    def orchestrate(self, node: Any, callables: Any, args: Any, config: Any) -> None:
        """Calls the Python orchestration of a scene over several chips, which submits what is to be run."""
        function = self.scene_class.CALLABLE.get("orchestration")
        if not callable(function):
            raise InputError(
                f"{self.scene.class_name} declares no function that orchestrates its chips",
                where=str(self.scene.path),
                hint='CALLABLE["orchestration"] of a level-3 scene is a function f(orch, callables, args, config)',
            )
        with self._running("the orchestration"):
            function(node, callables, args, config)

    @property
    def tests_itself(self) -> bool:
        """Whether the scene has no arguments to make, but a test that does all by itself."""
        return self._defines("test_run") and not self._defines("generate_args")

    def own_test(self, worker: Any) -> str:
        """Runs the scene's own test; what is wrong, or nothing."""
        with self._running("test_run"):
            try:
                self._instance.test_run(worker)
            except AssertionError as error:
                return str(error) or "an assertion of the scene's own test does not hold"
        return ""

    def arguments(self, args: Any) -> tuple[LiveTensor | LiveScalar, ...]:
        """What generate_args built, in order, as arrays and slot bits."""
        orchestration = self.scene.orchestration
        signature = orchestration.signature if orchestration is not None else ()
        found: list[LiveTensor | LiveScalar] = []
        for number, spec in enumerate(args.specs):
            if type(spec).__name__ in ("Scalar",):
                found.append(LiveScalar(spec.name, *scalar_slot(spec.value)))
                continue
            array = tensor_array(spec.name, spec.value)
            direction = signature[number] if number < len(signature) else "IN"
            found.append(LiveTensor(spec.name, _dtype_of(spec.name, array), array, direction))
        return tuple(found)

    def output_names(self, args: Any) -> tuple[str, ...]:
        """The tensors that a run writes."""
        return tuple(
            a.name
            for a in self.arguments(args)
            if isinstance(a, LiveTensor) and a.direction in ("OUT", "INOUT")
        )

    def _defines(self, name: str) -> bool:
        """Whether the scene has a method of its own, beside what every scene derives from."""
        return any(
            name in vars(kind) for kind in self.scene_class.__mro__ if kind.__name__ != "SceneTestCase"
        )

    @contextlib.contextmanager
    def _running(self, what: str) -> Iterator[None]:
        path = self.scene.path
        with _around(path, self._real), _scene_errors(path, what), within_memory(path, what):
            yield


def load_scene_live(path: str | Path) -> LiveScene:
    """Executes a scene module and returns its scene, ready to make arguments.

    Runs the module's own code. Uses the real runtime where it is installed, stand-ins elsewhere; needs torch
    only if the module imports it.
    """
    scene = load_scene(path)
    require_running(f"the Python of {scene.path.name}")
    if scene.path.is_dir():
        return _live_build(scene)
    if scene.level > 3:
        raise RequestError(
            f"{scene.class_name} is a level-{scene.level} scene, over several machines",
            hint="such scenes can be read (insight-trace scene), not run; levels 2 and 3 can",
        )
    real = runtime_is_installed()
    name = f"{_package_of(scene.path)}.{scene.path.stem}"
    spec = importlib.util.spec_from_file_location(name, scene.path)
    if spec is None or spec.loader is None:
        raise RequestError(f"{scene.path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    with _around(scene.path, real), _scene_errors(scene.path, "import"):
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    scene_class = getattr(module, scene.class_name, None)
    if scene_class is None:
        raise RequestError(f"{scene.path} defines no {scene.class_name} when it is run")
    return LiveScene(completed(scene, scene_class), scene_class, real)


class LiveBuild(LiveScene):
    """A PyPTO build that has a golden.py: which tensors a run writes is what that file lists."""

    def __init__(self, scene: Scene, golden: GoldenFile) -> None:
        super().__init__(scene, golden_class(golden, scene.cases[0].name), runtime_is_installed())
        self._outputs = golden.outputs

    def arguments(self, args: Any) -> tuple[LiveTensor | LiveScalar, ...]:
        found = super().arguments(args)
        return tuple(
            replace(a, direction="INOUT") if isinstance(a, LiveTensor) and a.name in self._outputs else a
            for a in found
        )

    def output_names(self, args: Any) -> tuple[str, ...]:  # noqa: ARG002 - as every scene is asked
        return self._outputs


def _live_build(scene: Scene) -> LiveBuild:
    golden = scene.path / "golden.py"
    if not golden.is_file():
        raise RequestError(
            f"{scene.path} has no golden.py, so there is nothing to run it with",
            hint="profile its kernels (insight-trace profile --build-dir), or replay from a run's args dump",
        )
    return LiveBuild(scene, read_golden(golden))


def _package_of(path: Path) -> str:
    """A package for the module and its folders, so that a scene's relative imports find their neighbours."""
    name = f"_insight_trace_scene_{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}"
    for folder in reversed(path.parents[:_PACKAGE_LEVELS]):
        name = f"{name}.{folder.name.replace('.', '_')}"
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name


def _around(path: Path, real: bool) -> AbstractContextManager[None]:
    checkout = next((p for p in path.parents if (p / "simpler_setup" / "goldens").is_dir()), None)
    if real:
        return contextlib.nullcontext()
    return standing_in(checkout, [path.parent, *([checkout] if checkout is not None else [])])


@contextlib.contextmanager
def _scene_errors(path: Path, what: str) -> Iterator[None]:
    """A scene's own failure as one message with the line of the scene that failed."""
    try:
        yield
    except InsightTraceError:
        raise
    except ModuleNotFoundError as error:
        hint = "install it beside insight-trace"
        if error.name == "torch":
            hint = "`pip install torch` (a CPU build is enough), or use a scene that builds NumPy arrays"
        raise JobError(
            f"the scene needs {error.name}, which is not installed", where=str(path), hint=hint
        ) from None
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path]
        line = f", line {frames[-1].lineno}" if frames else ""
        raise JobError(f"{what} failed: {type(error).__name__}: {error}", where=f"{path}{line}") from error


def _dtype_of(name: str, array: NDArray[Any]) -> DType:
    found = dtype_named(array.dtype.name)
    if found is None:
        raise JobError(f"tensor {name!r} has the type {array.dtype.name}, which no kernel has")
    return found


def scalar_slot(value: Any) -> tuple[DType, int]:
    """A scalar's type and the 64 bits of its slot: its bytes, zero-extended."""
    import ctypes

    import numpy as np

    if isinstance(value, bool):
        return _named("BOOL"), int(value)
    if isinstance(value, int):
        return _named("INT64"), value & (2**64 - 1)
    if isinstance(value, float):
        return _named("FLOAT32"), int.from_bytes(bytes(ctypes.c_float(value)), "little")
    if isinstance(value, np.generic):
        found = dtype_named(value.dtype.name)
        if found is not None:
            return found, int.from_bytes(value.tobytes(), "little")
    if isinstance(value, ctypes._SimpleCData):
        found = dtype_named(_CTYPES.get(getattr(value, "_type_", ""), ""))
        if found is not None:
            return found, int.from_bytes(bytes(value), "little")
    raise JobError(
        f"a scalar cannot be a {type(value).__name__}", hint="use a ctypes, NumPy or Python number"
    )


def _named(name: str) -> DType:
    found = dtype_named(name)
    assert found is not None
    return found


# ctypes' letters; "l" and "L" are 64 bits wide on every system that runs kernels
_CTYPES = {
    "f": "FLOAT32",
    "i": "INT32",
    "I": "UINT32",
    "h": "INT16",
    "H": "UINT16",
    "b": "INT8",
    "B": "UINT8",
    "l": "INT64",
    "L": "UINT64",
    "q": "INT64",
    "Q": "UINT64",
    "?": "BOOL",
}


# --- memory that a scene's own functions may take: a case that is too large ends as a message, not by the system's killer


# NumPy raises MemoryError; torch says it in a RuntimeError.
_TOLD_BY_OTHERS = ("can't allocate memory", "not enough memory", "cannot allocate memory")


def free_memory() -> int | None:
    """Bytes that can be had without swapping; None where nobody tells."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None


def _held() -> int:
    """Bytes of private memory that this process has, used or not: what RLIMIT_DATA counts."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def within_memory(path: Path, what: str) -> Iterator[None]:
    """Runs code of the scene at `path` with the memory that is free now, but for a rest that others need."""
    free = free_memory()
    if free is None:
        yield
        return
    room = int(free * SCENE_MEMORY)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = _held() + room
    bounds = [bound for bound in (*before, wanted) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), before[1]))
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        text = str(error).lower()
        if not isinstance(error, MemoryError) and not any(words in text for words in _TOLD_BY_OTHERS):
            raise
        raise JobError(
            f"{what} wants more memory than the {room / GIB:.1f} GiB that a scene may take here",
            where=str(path),
            hint="take a smaller case (insight-trace scene lists them), or a machine with more memory",
        ) from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
