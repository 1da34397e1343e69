"""A task for writers of kernels: inputs, outputs, a reference, and what counts as right; read from three forms.

| form | what is read |
|---|---|
| our own | a JSON file, see docs/judge.md |
| cann-bench | a folder with `proto.yaml` (its schema line), `cases.csv` and `golden.py`; one case is one task |
| MultiKernelBench | a Python file with `Model`, `get_inputs` and `get_init_inputs`; needs torch |
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from insight_trace.chips import TARGETS
from insight_trace.dtypes import DTYPES, DType, dtype_named
from insight_trace.errors import InputError, RequestError
from insight_trace.judge.expression import evaluate, require_arithmetic
from insight_trace.limits import BLOCKS, RECORD_BYTES, cut
from insight_trace.reading import is_folder, prepared, regular_text

if TYPE_CHECKING:
    import types

    from numpy.typing import NDArray

VERSION = 1
_FORMS = "docs/judge.md has the forms of a task; examples/judge/axpy.json is one"
MOST_BYTES = 1 << 28  # of all tensors of a task
_SCHEMA = re.compile(
    r"^\s*schema:\s*['\"]?(\w+)\((.*?)\)\s*->\s*(\([^)]*\)|Tensor[\w\[\]]*\s*\w*)", re.MULTILINE | re.DOTALL
)


class Tensor(Struct, frozen=True, forbid_unknown_fields=True):
    """One input or output. Inputs are uniform numbers from `low` to `high`; whole numbers exclude `high`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    low: float = -1.0
    high: float = 1.0

    @property
    def kind(self) -> DType:
        found = dtype_named(self.dtype)
        if found is None:
            raise InputError(
                f"{self.name}: there is no element type '{cut(self.dtype)}'",
                hint="known: " + ", ".join(each.short for each in DTYPES),
            )
        return found

    @property
    def bytes(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count * self.kind.size


class Scalar(Struct, frozen=True, forbid_unknown_fields=True):
    """A number that every run gets."""

    name: str
    value: int | float


class Work(Struct, frozen=True, forbid_unknown_fields=True):
    """The least that an honest kernel does. None: what follows from the tensors."""

    read: float = 1.0  # share of each input's bytes
    written: float = 1.0  # share of each output's bytes
    vector_elements: int | None = None  # elements that the vector unit works on
    cube_operations: int | None = None  # 2·m·n·k


class Task(Struct, frozen=True, forbid_unknown_fields=True):
    """What to compute, and when it counts as computed."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    reference: str  # a NumPy expression over the inputs, or FILE.py[:function]
    scalars: tuple[Scalar, ...] = ()
    rtol: float = 1e-5
    atol: float = 1e-6
    seeds: int = 3  # sets of inputs
    blocks: int = 1
    target: str = "a2a3"
    chip: str | None = None
    entry: str | None = None  # the kernel's function; None: the file's only one
    work: Work = field(default_factory=Work)
    baseline: str = ""  # a kernel that is good enough, a file beside the task: it is timed as candidates are
    baseline_cycles: int | None = None  # or so many cycles
    slow: float = 1.5  # times the baseline: slower is `slow`
    seconds: float = 10.0  # of one run
    fixed: dict[str, Any] = field(
        default_factory=dict
    )  # what the reference gets in addition: lists and words
    version: int = VERSION
    source: str = ""  # the folder that a reference file is relative to

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise InputError(f"a task of version {self.version}, known is {VERSION}")
        if self.target not in TARGETS:
            raise InputError(
                f"there is no target '{cut(self.target)}'", hint=f"there are: {', '.join(TARGETS)}"
            )
        names = names_of(self)
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise InputError(f"two parameters are called {', '.join(sorted(twice))}")
        if not self.outputs:
            raise InputError("a task needs an output")
        if not self.runs_python:
            require_arithmetic(self.reference)
        if not 1 <= self.seeds <= 100 or not 1 <= self.blocks <= BLOCKS:
            raise InputError(f"seeds from 1 to 100 and blocks from 1 to {BLOCKS} are possible")
        if not 0 <= self.rtol < 1 or self.atol < 0:
            raise InputError(
                f"rtol {self.rtol:g} and atol {self.atol:g} are no tolerances",
                hint="rtol from 0 to below 1, atol from 0 on: with more, zeros are right for everything",
            )
        for tensor in (*self.inputs, *self.outputs):
            if min(tensor.shape, default=1) < 1:
                raise InputError(
                    f"{tensor.name} has the shape {list(tensor.shape)}", hint="extents are 1 or more"
                )
        if self.baseline and self.baseline_cycles is not None:
            raise InputError(
                "the task has a baseline and baseline_cycles",
                hint="a kernel is timed anew by every version; cycles are what you ask for",
            )
        if self.baseline and (Path(self.baseline).is_absolute() or ".." in Path(self.baseline).parts):
            raise InputError(f"the baseline '{cut(self.baseline)}' is not in the folder of the task")
        total = sum(tensor.bytes for tensor in (*self.inputs, *self.outputs))
        if total > MOST_BYTES:
            raise InputError(
                f"{self.name} has tensors of {total:,} bytes; a task may have {MOST_BYTES:,}",
                hint="choose a smaller case: a kernel is judged by how it computes, not by how long it runs",
            )

    @property
    def digest(self) -> str:
        """Changes with everything that the task asks for."""
        parts = [msgspec.json.encode(replace(self, source=""), order="sorted")]
        path, _ = self._reference_file()
        if path is not None:
            parts.append(_text(path).encode())
        return hashlib.sha256(b"\0".join(parts)).hexdigest()

    @property
    def runs_python(self) -> bool:
        """Whether its reference is a file of the task's own, and no expression."""
        return self._reference_file()[0] is not None

    def _reference_file(self) -> tuple[Path | None, str]:
        file, _, function = self.reference.partition(".py")
        if not re.fullmatch(r"[\w./ -]+", file) or (function and not re.fullmatch(r":\w+", function)):
            return None, ""
        if ".py" not in self.reference:
            return None, ""
        return Path(self.source) / f"{file}.py", function.lstrip(":") or "reference"

    def expected(self, inputs: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], ...]:
        """What the reference makes of inputs, in the outputs' types."""
        return self._outputs(self.computed(inputs))

    def computed(self, inputs: Mapping[str, NDArray[Any]]) -> Any:
        """The reference's own result."""
        path, function = self._reference_file()
        given = {**inputs, **{scalar.name: scalar.value for scalar in self.scalars}, **self.fixed}
        try:
            if path is None:
                found = evaluate(self.reference, given)
            else:
                module = _module(path)
                found = _called(_function(module, function, path), given, hasattr(module, "torch"))
        except (RequestError, InputError):
            raise
        except Exception as error:  # the task's own code
            raise InputError(
                f"the reference of {self.name} fails: {type(error).__name__}: {cut(str(error))}"
            ) from None
        return found

    def _outputs(self, found: Any) -> tuple[NDArray[Any], ...]:
        import numpy as np

        if isinstance(found, Mapping):
            found = [found[tensor.name] for tensor in self.outputs]
        listed = list(found) if isinstance(found, tuple | list) else [found]
        if len(listed) != len(self.outputs):
            raise InputError(
                f"the reference of {self.name} gives {len(listed)} results; the task has {len(self.outputs)} outputs"
            )
        made = []
        for tensor, value in zip(self.outputs, listed, strict=True):
            array = np.asarray(_as_array(value))
            if tuple(array.shape) != tensor.shape:
                raise InputError(
                    f"the reference gives {tensor.name} of shape {list(array.shape)}; the task says {list(tensor.shape)}"
                )
            made.append(array.astype(tensor.kind.numpy))
            if np.isnan(made[-1].astype(np.float64)).all():
                raise InputError(
                    f"the reference gives {tensor.name} of NaN alone: nothing can be compared with it"
                )
        return tuple(made)


def _module(path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("insight_trace_task_reference", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise RequestError(f"there is no reference {path}")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        raise RequestError(
            f"the reference needs the Python package '{error.name}'",
            where=str(path),
            hint=f"pip install {error.name}",
        ) from None
    except Exception as error:  # the task's own code
        raise InputError(
            f"the reference cannot be loaded: {type(error).__name__}: {error}", where=str(path)
        ) from None
    return module


def _function(module: types.ModuleType, name: str, path: Path) -> Callable[..., Any]:
    """A function of the reference's file; of a model its call."""
    found = getattr(module, name, None)
    if found is None:
        raise RequestError(f"the reference has no function {name}", where=str(path))
    call: Callable[..., Any] = found(*module.get_init_inputs()) if name == "Model" else found
    return call


def _called(call: Callable[..., Any], given: Mapping[str, Any], with_torch: bool) -> Any:
    if not with_torch:
        return call(**given)
    return call(**{k: _as_torch(v) if hasattr(v, "shape") else v for k, v in given.items()})


def _as_torch(value: NDArray[Any]) -> Any:
    import torch

    if value.dtype.name == "bfloat16":  # NumPy's is ml_dtypes', which torch does not know
        return torch.from_numpy(value.view("i2").copy()).view(torch.bfloat16)
    return torch.from_numpy(value.copy())


def _as_array(value: Any) -> Any:
    if type(value).__module__.split(".")[0] == "torch":
        return (
            value.detach().cpu().float().numpy()
            if value.is_floating_point()
            else value.detach().cpu().numpy()
        )
    return value


def _text(path: Path) -> str:
    try:
        return regular_text(path, most=RECORD_BYTES, errors="replace")
    except FileNotFoundError:
        raise RequestError(f"{path} does not exist", hint=_FORMS) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None


# --- forms -----------------------------------------------------------------------------------------------


def read_task(path: str | Path, case: int | None = None) -> Task:
    """A task from any of the three forms; `case` chooses one of cann-bench's."""
    place = Path(path)
    if is_folder(place):
        if not (place / "cases.csv").is_file() or not (place / "golden.py").is_file():
            raise RequestError(
                f"{place} is no task of cann-bench: it lacks cases.csv or golden.py",
                hint="name a JSON file of ours, a task folder of cann-bench, or a reference file of MultiKernelBench",
            )
        return _cann_bench(place, 1 if case is None else case)
    if case is not None:
        raise RequestError(
            "--case is for tasks of cann-bench", hint=f"{place.name} is one task: leave it out"
        )
    if place.suffix in (".cpp", ".cce", ".cc"):
        raise RequestError(
            f"{place} is C++, and no task", hint=f"the task comes first, candidates after it; {_FORMS}"
        )
    if place.suffix == ".py":
        return _multi_kernel_bench(place)
    try:
        found = msgspec.json.decode(_text(place).encode(), type=prepared(Task))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InputError(f"this is no task: {cut(str(error))}", where=str(place), hint=_FORMS) from None
    return replace(found, source=str(place.absolute().parent))


_NAMES = {"float16": "f16", "float32": "f32", "bfloat16": "bf16"}


def _cann_bench(folder: Path, case: int) -> Task:
    schema = _SCHEMA.search(_text(folder / "proto.yaml"))
    if schema is None:
        raise InputError(
            "has no line `schema: name(Tensor x, …) -> Tensor y`", where=str(folder / "proto.yaml")
        )
    function, given, results = schema.groups()
    rows = list(csv.DictReader(io.StringIO(_text(folder / "cases.csv"))))
    row = next((one for one in rows if one.get("case_id") == str(case)), None)
    if row is None:
        known = ", ".join(str(one.get("case_id")) for one in rows)
        raise RequestError(f"{folder.name} has no case {case}", hint=f"there are: {known}")
    try:
        shapes, types = json.loads(row["input_shape"]), json.loads(row["dtype"])
        attrs, span = json.loads(row["attrs"] or "{}"), json.loads(row["value_range"] or "[-1, 1]")
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"case {case} cannot be read: {error}", where=str(folder / "cases.csv")) from None
    where = f"{folder.name} case {case}"
    parameters = [one.strip() for one in re.split(r",(?![^\[(]*[\])])", given) if one.strip()]
    if any(one.startswith(("Tensor[]", "List[Tensor")) for one in parameters):
        raise RequestError(
            f"{where}: lists of tensors are not judged", hint="tasks whose inputs are single tensors are"
        )
    tensors = [re.split(r"[\s=]+", one)[1] for one in parameters if one.startswith("Tensor ")]
    if any(one.startswith("Tensor?") for one in parameters):
        raise RequestError(
            f"{where}: optional tensors are not judged", hint="tasks whose inputs are all there are"
        )
    spans = span if isinstance(span, list) and span and isinstance(span[0], list) else [span] * len(shapes)
    plain = all(isinstance(each, list) and len(each) == 2 for each in spans)
    if (
        len(shapes) != len(tensors)
        or len(spans) != len(shapes)
        or not plain
        or not all(map(_is_shape, shapes))
    ):
        raise RequestError(
            f"{where}: one shape and one range of values for each of {', '.join(tensors)} are wanted"
        )
    types = types * len(shapes) if len(types) == 1 else types
    if len(types) != len(shapes) or not all(isinstance(each, str) for each in types):
        raise RequestError(f"{where}: one element type for each of {', '.join(tensors)} is wanted")
    inputs = tuple(
        Tensor(name, _NAMES.get(kind, kind), tuple(shape), float(low), float(high))
        for name, kind, shape, (low, high) in zip(tensors, types, shapes, spans, strict=True)
    )
    numbers = {name: value for name, value in attrs.items() if isinstance(value, bool | int | float)}
    scalars = tuple(Scalar(name, int(v) if isinstance(v, bool) else v) for name, v in numbers.items())
    fixed = {name: value for name, value in attrs.items() if name not in numbers}
    names = re.findall(r"Tensor\s+(\w+)", results) or ["y"]
    task = Task(
        f"{function}_{case}", inputs, tuple(Tensor(name, inputs[0].dtype, (1,)) for name in names),
        f"golden.py:{function}", scalars, rtol=2**-10 if inputs[0].kind.size == 2 else 1e-4, atol=1e-4,
        source=str(folder.absolute()), fixed=fixed,
    )  # fmt: skip
    return _with_output_shapes(task)


def _is_shape(shape: object) -> bool:
    return isinstance(shape, list) and all(isinstance(extent, int) and extent >= 0 for extent in shape)


def _with_output_shapes(task: Task) -> Task:
    """The outputs as large as the reference makes them."""
    from insight_trace.judge.inputs import made_inputs

    found = task.computed(made_inputs(task, b"shapes"))
    listed = list(found) if isinstance(found, tuple | list) else [found]
    names = (
        [one.name for one in task.outputs]
        if len(listed) == len(task.outputs)
        else [f"y{i}" for i in range(len(listed))]
    )
    outputs = tuple(
        Tensor(name, _element_type(value), tuple(int(n) for n in value.shape))
        for name, value in zip(names, listed, strict=True)
    )
    return replace(task, outputs=outputs)


def _element_type(value: Any) -> str:
    name = str(value.dtype).rpartition(".")[2]
    return _NAMES.get(name, name)


def _multi_kernel_bench(path: Path) -> Task:
    text = _text(path)
    for name in ("class Model", "def get_inputs", "def get_init_inputs"):
        if name not in text:
            raise RequestError(
                f"{path} is no reference of MultiKernelBench: it lacks `{name}`",
                hint="name a JSON file of ours, a task folder of cann-bench, or a reference file of MultiKernelBench",
            )
    module = _module(path)  # says which package is missing
    model = module.Model(*module.get_init_inputs())
    if any(True for _ in model.parameters()):
        raise RequestError(
            f"{path}: its model has weights, which a kernel's arguments do not show",
            hint="references whose inputs are all that they need are judged",
        )
    import inspect

    names = [name for name in inspect.signature(model.forward).parameters if name != "self"]
    values = module.get_inputs()
    if len(names) != len(values) or not all(hasattr(value, "shape") for value in values):
        raise RequestError(
            f"{path}: get_inputs gives something else than a tensor for each of {', '.join(names)}"
        )
    inputs = tuple(
        Tensor(name, _element_type(value), tuple(value.shape))
        for name, value in zip(names, values, strict=True)
    )
    result = model(*values)
    outputs = (Tensor("y", _element_type(result), tuple(result.shape)),)
    reference = f"{path.name}:Model"
    return Task(
        path.stem, inputs, outputs, reference, rtol=1e-4, atol=1e-4, source=str(path.absolute().parent)
    )


def names_of(task: Task) -> list[str]:
    """The parameters of a candidate in their order: inputs, outputs, scalars."""
    tensors = [tensor.name for tensor in (*task.inputs, *task.outputs)]
    return [*tensors, *(scalar.name for scalar in task.scalars)]
