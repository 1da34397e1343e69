"""One kernel of a C++ file with arguments by name: `kernel_entry(args)`, or a function with typed parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from insight_trace.arguments.slots import (
    CallerArray,
    Random,
    ReplayArguments,
    ReplayScalar,
    ReplaySlot,
    ReplayTensor,
    Zero,
    make_tensor,
)
from insight_trace.cache import content_key
from insight_trace.dtypes import DTYPES, DType, dtype_named
from insight_trace.errors import InputError, JobError, RequestError
from insight_trace.limits import RECORD_BYTES, SOURCE_BYTES, cut
from insight_trace.model import CoreType, Kernel, Payload, Role, Tier
from insight_trace.program.command_line import CommandLine, Input
from insight_trace.program.compile import CompileError, kernel_name, preprocess, reach_of
from insight_trace.program.core_kinds import declared, infer, vector_cores
from insight_trace.program.launches import rewrite_launches
from insight_trace.program.op_kernels import OpKernel, op_kernel
from insight_trace.ptoas.cpp_signature import CppFunction, CppParameter, parse_cpp
from insight_trace.reading import load_json, load_npy, regular_text
from insight_trace.scratch import scratch_folder
from insight_trace.simulate.embedded import ascendc
from insight_trace.simulate.embedded.compile_errors import first_error
from insight_trace.simulate.embedded.toolchain import PREPROCESSED, Toolchain
from insight_trace.simulate.embedded.typed_entry import ENTRY

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SLOT_ENTRY = "kernel_entry"
_ARRAY = re.compile(r"(\w+)\[([\d,x* ]*)\](?::(random|zero)(?::(\d+))?)?")
_SIDES = {"cube": CoreType.AIC, "vector": CoreType.AIV}
MEMBERS = {
    CoreType.AIC: ("cube",),
    CoreType.AIV: ("vector",),
    CoreType.MIX: ("cube", "vector", "vector"),
}
# C++ types whose values go through a slot; values of other types are written into the entry, where C++ converts them
_SCALARS = {
    "float": "FLOAT32", "half": "FLOAT16", "int": "INT32", "unsigned": "UINT32", "unsigned int": "UINT32", "long": "INT64",
    "size_t": "UINT64", "bool": "BOOL", "int8_t": "INT8", "uint8_t": "UINT8", "int16_t": "INT16", "uint16_t": "UINT16",
    "int32_t": "INT32", "uint32_t": "UINT32", "int64_t": "INT64", "uint64_t": "UINT64", "bfloat16_t": "BFLOAT16",
}  # fmt: skip

_MOST_TILING = 1 << 14  # bytes of an operator's tiling data that is given field by field

Value = Any  # a NumPy array, a number, or a mapping for a struct by value


class KernelFile(Struct, frozen=True):
    """A file, which of its functions runs, and how it is compiled."""

    path: Path
    entry: str | None = None  # a name, with template arguments where it is a template
    target: str = "a2a3"
    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    core: CoreType | None = None  # None: what the kernel does decides


class PlannedKernel(Struct, frozen=True):
    """Kernels by core, and their arguments."""

    name: str
    kernels: tuple[Kernel, ...]
    arguments: ReplayArguments
    names: tuple[str, ...]  # of the parameters


def plan_kernel(
    file: KernelFile,
    values: Mapping[str, Value] | Sequence[Value],
    *,
    blocks: int = 1,
    toolchain: Toolchain | None = None,
) -> PlannedKernel:
    """The kernel ready to simulate. `values` go by the parameters' names, or in their order."""
    return KernelPlanner(file, toolchain).plan(values, blocks=blocks)


class KernelPlanner:
    """Plans one kernel for any values: what does not depend on them is read and translated once."""

    def __init__(self, file: KernelFile, toolchain: Toolchain | None = None) -> None:
        self.file = file
        self.toolchain = toolchain or Toolchain.find()
        self.path = file.path.resolve()
        try:
            text = regular_text(self.path, most=SOURCE_BYTES, errors="replace")
        except FileNotFoundError:
            raise RequestError(
                f"{file.path} does not exist", hint="give the C++ file that has the kernel"
            ) from None
        except OSError as error:
            raise InputError(
                f"the kernel's file cannot be read: {error.strerror}", where=str(file.path)
            ) from None
        self._function = _function(file, text)
        self._op = _op_of(file, self.toolchain)
        self._kernels: dict[str, tuple[Kernel, ...]] = {}  # by the text of their entry

    def plan(self, values: Mapping[str, Value] | Sequence[Value], *, blocks: int = 1) -> PlannedKernel:
        """The kernel with these arguments."""
        function = self._function
        if function is None:
            named, slots = _slots_in_order(values)
            if "" not in self._kernels:
                self._kernels[""] = _by_slot(self.file, self.path, self.toolchain)
            return PlannedKernel(self.path.stem, self._kernels[""], ReplayArguments(slots, blocks), named)
        names, given, passed = self._passed(function, values)
        called = kernel_name(self.file.entry or function.name)
        entry = _entry_text(called, passed, len(function.parameters))
        if entry not in self._kernels:
            sources, members = _translated(self.file, self.path, called, entry, self.toolchain)
            folders = _folders(self.path, self.file.include_dirs)
            self._kernels[entry] = tuple(
                Kernel(function.name, sources[side], _SIDES[side], include_dirs=folders, entry=ENTRY)
                for side in members
            )
        return PlannedKernel(function.name, self._kernels[entry], ReplayArguments(given, blocks), names)

    def _passed(
        self, function: CppFunction, values: Mapping[str, Value] | Sequence[Value]
    ) -> tuple[tuple[str, ...], tuple[ReplaySlot, ...], list[str]]:
        """The parameters' names, what goes into slots, and C++ that makes a variable of each parameter."""
        names = tuple(parameter.name for parameter in function.parameters)
        by_name = _by_name(values, names)
        slots: list[ReplaySlot] = []
        passed: list[str] = []
        for index, parameter in enumerate(function.parameters):
            if parameter.name not in by_name:
                raise RequestError(
                    f"{function.name} has a parameter '{parameter.name}' that no --arg gives",
                    hint=f"its parameters: {_described(function.parameters)}",
                )
            tiling = self._op.tiling if self._op else None
            passed.append(_taken(index, parameter, by_name[parameter.name], slots, tiling))
        return names, tuple(slots), passed


def _folders(path: Path, more: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([str(path.parent), *(str(Path(one).resolve()) for one in more)]))


def _function(file: KernelFile, text: str) -> CppFunction | None:
    """The function to run; None for `kernel_entry(args)`."""
    wanted = (file.entry or "").split("<", 1)[0].split("::")[-1].strip()
    text = _with_macros_of_kernels(text)
    found = {function.name: function for kernel in parse_cpp(text).kernels for function in kernel.functions}
    slot_entry = re.search(rf"\b{_SLOT_ENTRY}\s*\(", text) is not None
    if wanted == _SLOT_ENTRY or (not wanted and slot_entry):
        return None
    if wanted in found:
        return found[wanted]
    if wanted:
        function = _device_function(text, wanted)
        if function is not None:
            return function
    elif len(found) == 1:
        return next(iter(found.values()))
    listed = ", ".join([*found, *([_SLOT_ENTRY] if slot_entry else [])]) or "none"
    raise RequestError(
        f"there is no kernel '{wanted}' in the file" if wanted else "the file has several kernels, or none",
        where=str(file.path),
        hint=f"--entry names one; it has: {listed}",
    )


_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([\w \t,]*)\)((?:[^\n]*\\\n)*[^\n]*)", re.M)


def _with_macros_of_kernels(text: str) -> str:
    """A file that declares its kernels by a macro (`DECLARE(half)`), with what that makes of them."""
    made = text
    for name, listed, body in _MACRO.findall(text):
        if "__global__" not in body:
            continue
        parameters = [word.strip() for word in listed.split(",")]
        for call in re.finditer(rf"^[ \t]*{name}\(([^()\n]*)\)", text, re.M):
            given = dict(zip(parameters, (word.strip() for word in call[1].split(",")), strict=False))
            pieces: list[str] = re.split(r"(\w+)", body)
            words = "".join(given.get(piece, piece) for piece in pieces)
            made += "\n" + re.sub(r"\s*##\s*", "", words).replace("\\\n", "\n")
    return made


def _device_function(text: str, name: str) -> CppFunction | None:
    """A function that another kernel of the file calls, or a template: by its name alone."""
    for match in re.finditer(
        rf"\b(?:AICORE|__aicore__|aicore\]|__global__)[^;{{}}()]*\b{re.escape(name)}\s*\(", text
    ):
        marked = text[: match.start()] + "__global__ AICORE void " + text[match.end() - len(name) - 1 :]
        for kernel in parse_cpp(marked[match.start() :]).kernels:
            for function in kernel.functions:
                if function.name == name:
                    return function
    return None


def _by_name(values: Mapping[str, Value] | Sequence[Value], names: Sequence[str]) -> dict[str, Value]:
    if not isinstance(values, Mapping):
        if len(values) > len(names):
            raise RequestError(
                f"{len(values)} arguments are given; the kernel takes {len(names)}: {', '.join(names)}"
            )
        return dict(zip(names, values, strict=False))
    for name in values:
        if name not in names:
            raise RequestError(f"there is no parameter '{name}'", hint=f"there are: {', '.join(names)}")
    return dict(values)


def _described(parameters: Sequence[CppParameter]) -> str:
    return ", ".join(f"{p.type}{' *' if p.is_pointer else ' '}{p.name}" for p in parameters)


# --- arguments ------------------------------------------------------------------------------------------


def parse_value(text: str, name: str) -> Value:
    """`x.npy`, `f32[64,64]`, `f32[64]:random`, `4096`, `0.5`, `{"m": 3}` or `@struct.json`."""
    if text.endswith(".npy"):
        return _array_of(Path(text), name)
    if found := _ARRAY.fullmatch(text):
        dtype = dtype_named(found[1])
        if dtype is None:
            raise RequestError(
                f"there is no element type '{found[1]}'", hint="known: " + ", ".join(d.short for d in DTYPES)
            )
        shape = tuple(int(part) for part in re.split(r"[,x* ]+", found[2]) if part)
        if found[3] == "random":
            return _Filled(dtype, shape, int(found[4] or 0))
        return _Filled(dtype, shape, None)
    if text.startswith("@"):
        return load_json(Path(text[1:]), most=RECORD_BYTES)
    if text.startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RequestError(
                f"{name}: not JSON: {cut(str(error))}", hint=f"{name}='{{\"m\": 3}}', or {name}=@FILE.json"
            ) from None
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise RequestError(
            f"{name}: '{cut(text)}' is no argument",
            hint="a number, FILE.npy, TYPE[SHAPE] such as f32[64,64] or f32[64,64]:random, or a struct as JSON",
        ) from None


def _array_of(path: Path, name: str) -> NDArray[Any]:
    try:
        return load_npy(path)
    except FileNotFoundError:
        raise RequestError(
            f"{name}: {path} does not exist", hint=f"numpy.save makes one; or {name}=TYPE[SHAPE]:random"
        ) from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}", where=str(path)) from None


def with_expected(planned: PlannedKernel, expected: Mapping[str, Path], folder: Path) -> PlannedKernel:
    """The kernel with what its arguments are to hold afterwards, by name; `folder` keeps that until it was compared."""
    import numpy as np

    tensors = {slot.name: slot for slot in planned.arguments.slots if isinstance(slot, ReplayTensor)}
    slots = {slot.slot: slot for slot in planned.arguments.slots}
    for name, path in expected.items():
        slot = tensors.get(name)
        if slot is None:
            raise RequestError(
                f"--expect {name}: the kernel has no tensor of that name",
                hint=f"there are: {', '.join(tensors) or 'none'}",
            )
        array, wanted = _array_of(path, f"--expect {name}"), slot.dtype.numpy
        if array.dtype.kind in "uV" and array.dtype.itemsize == slot.dtype.size:
            array = array.view(wanted)  # NumPy saves types of ml_dtypes as bytes
        if array.shape != slot.shape or not np.can_cast(array.dtype, wanted, "same_kind"):
            raise RequestError(
                f"--expect {name}: {path} is {array.dtype} {list(array.shape)}; {name} is "
                f"{slot.dtype.short} {list(slot.shape)}",
                hint="save what this tensor holds afterwards, in its shape",
            )
        raw = np.ascontiguousarray(array.astype(wanted)).tobytes()
        place = folder / f"slot_{slot.slot}"
        place.write_bytes(raw)
        slots[slot.slot] = replace(slot, role=Role.INOUT, expected=Payload(place, 0, len(raw)))
    return replace(planned, arguments=replace(planned.arguments, slots=tuple(slots.values())))


class _Filled(Struct, frozen=True):
    """An array that the kernel writes, or numbers from a seed."""

    dtype: DType
    shape: tuple[int, ...]
    seed: int | None


def _tensor(slot: int, name: str, value: Value) -> ReplaySlot:
    import numpy as np

    if isinstance(value, _Filled):
        made = value.seed is not None
        content = Random(value.seed) if value.seed is not None else Zero()
        return make_tensor(
            slot, value.dtype, value.shape, content, Tier.FILLED if made else Tier.OUTPUT, name=name,
            origin="random" if made else "zeros",
        )  # fmt: skip
    array = np.ascontiguousarray(_as_array(value))
    dtype = dtype_named(array.dtype.name)
    if dtype is None:
        raise RequestError(f"{name}: elements of type {array.dtype} are not simulated")
    return make_tensor(
        slot, dtype, tuple(array.shape), CallerArray(array), Tier.EXACT, name=name, origin="given"
    )


def _as_array(value: Value) -> NDArray[Any]:
    """A NumPy array, or a torch tensor as one; bfloat16 comes from ml_dtypes."""
    import numpy as np

    if type(value).__module__.split(".")[0] != "torch":
        return np.asarray(value)
    tensor = value.detach().cpu().contiguous()
    if str(tensor.dtype) == "torch.bfloat16":
        import ml_dtypes
        import torch

        return np.asarray(tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return np.asarray(tensor.numpy())


def _taken(
    index: int, parameter: CppParameter, value: Value, slots: list[ReplaySlot], tiling: str | None = None
) -> str:
    """Adds what a parameter takes to the slots; C++ that makes the parameter's variable.

    `tiling`: the struct of an operator's tiling data, which lies in global memory.
    """
    slot = len(slots)
    variable = f"a{index}"
    declared_as = f"Parameters::at<{index}>"
    is_array = isinstance(value, _Filled) or (hasattr(value, "shape") and getattr(value, "ndim", 1) != 0)
    if isinstance(value, Mapping) and parameter.is_pointer and tiling:
        import numpy as np

        slots.append(_tensor(slot, parameter.name, np.zeros(_MOST_TILING, np.uint8)))
        lines = [f"    {tiling} {variable}_data{{}};"]
        _assign(f"{variable}_data", value, lines)
        lines += [
            f"    static_assert(sizeof({tiling}) <= {_MOST_TILING});",
            f"    {declared_as} {variable} = insight_trace_pointer<{declared_as}>(args[{slot}]);",
            f"    __builtin_memcpy((void *){variable}, &{variable}_data, sizeof({tiling}));",
        ]
        return "\n".join(lines)
    if isinstance(value, Mapping):
        lines = [f"    {declared_as} {variable}{{}};"]
        _assign(variable, value, lines)
        return "\n".join(lines)
    if is_array:
        if (
            not parameter.is_pointer
            and parameter.type not in ("GM_ADDR", "uint8_t")
            and "*" not in parameter.type
        ):
            raise RequestError(f"{parameter.name} is no pointer but {parameter.type}; it is given an array")
        slots.append(_tensor(slot, parameter.name, value))
        return f"    {declared_as} {variable} = insight_trace_pointer<{declared_as}>(args[{slot}]);"
    if parameter.is_pointer:
        if value in (0, None):
            return f"    {declared_as} {variable} = nullptr;"
        raise RequestError(
            f"{parameter.name} is a pointer; it is given {value!r}", hint="an array: FILE.npy or TYPE[SHAPE]"
        )
    number = value.item() if hasattr(value, "item") else value
    dtype = dtype_named(_SCALARS.get(parameter.type, ""))
    if dtype is None:
        return f"    {declared_as} {variable} = static_cast<{declared_as}>({number!r});"
    from insight_trace.dtypes import DoesNotFitError, encode_element

    try:
        bits = int.from_bytes(encode_element(dtype, number), "little")
    except (DoesNotFitError, ValueError, OverflowError) as error:
        raise RequestError(f"{parameter.name}: {error}") from None
    slots.append(ReplayScalar(slot, dtype, bits, Tier.EXACT, parameter.name, "given"))
    return f"    {declared_as} {variable} = insight_trace_scalar<{declared_as}>(args[{slot}]);"


def _assign(place: str, value: Value, lines: list[str]) -> None:
    """C++ assignments for a struct's fields; the compiler knows where they lie."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                raise RequestError(f"'{cut(name)}' is no name of a field")
            _assign(f"{place}.{name}", part, lines)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            _assign(f"{place}[{index}]", part, lines)
    elif isinstance(value, bool):
        lines.append(f"    {place} = {str(value).lower()};")
    elif isinstance(value, int | float):
        lines.append(f"    {place} = static_cast<std::decay_t<decltype({place})>>({value!r});")
    else:
        raise RequestError(
            f"{place}: {cut(repr(value))} is no number", hint="fields are numbers, lists and structs"
        )


_ENTRY = """
template <class... P> struct insight_trace_parameters {{
    template <std::size_t I> using at = std::tuple_element_t<I, std::tuple<std::remove_cv_t<P>...>>;
}};
template <class... P> insight_trace_parameters<P...> insight_trace_parameters_of(void (*)(P...));
// not instrumented: a launch hands its arguments over without a load
template <class P> __attribute__((no_sanitize("thread"), noinline)) P insight_trace_pointer(int64_t slot) {{
    auto *words = reinterpret_cast<const uint64_t *>(slot);
    return words ? (P)(words[0]) : (P) nullptr;
}}
template <class P> __attribute__((no_sanitize("thread"), noinline)) P insight_trace_scalar(int64_t slot) {{
    P value;
    __builtin_memcpy(&value, &slot, sizeof value);
    return value;
}}
extern "C" __attribute__((no_sanitize("thread"))) void {entry}(int64_t *args) {{
    (void)args;
    using Parameters = decltype(insight_trace_parameters_of(&{called}));
{body}
    {called}({passed});
}}
"""


def _entry_text(called: str, passed: Sequence[str], count: int) -> str:
    if not re.fullmatch(r"[\w:<>,\s*&()]+", called):
        raise RequestError(f"'{cut(called)}' is no name of a C++ function")
    return _ENTRY.format(
        entry=ENTRY,
        called=called,
        body="\n".join(passed),
        passed=", ".join(f"a{index}" for index in range(count)),
    )


# --- sources --------------------------------------------------------------------------------------------


def _line(file: KernelFile, toolchain: Toolchain) -> CommandLine:
    op = _op_of(file, toolchain)
    first = ["-include", str(keep_source(toolchain, "tiling", op.header))] if op else []
    defines = op.defines if op else file.defines
    flags = [*(f"-I{folder}" for folder in file.include_dirs), *(f"-D{define}" for define in defines), *first]
    return CommandLine(preprocessor=[f"-I{file.path.resolve().parent}", *flags], target=file.target)


def _op_of(file: KernelFile, toolchain: Toolchain) -> OpKernel | None:
    """What the build of custom operators generates around a source of theirs; it takes a checkout's headers."""
    folders = [Path(folder) for folder in file.include_dirs]
    path = file.path.resolve()
    if not toolchain.ascendc_root or not ascendc.is_ascendc(path, [path.parent, *folders]):
        return None
    return op_kernel(path, folders, file.defines)


def preprocessed(file: KernelFile, toolchain: Toolchain) -> dict[str, str]:
    """The file as it is for each kind of core, with everything that it includes."""
    path = file.path.resolve()
    line = _line(file, toolchain)
    line.kept.append("-std=gnu++17")
    texts = {}
    with scratch_folder("kernel") as place:
        for side in _SIDES:
            try:
                texts[side] = preprocess(toolchain, line, Input(str(path), True), side, place)
            except CompileError as error:
                raise _refused(error, path) from None
    return texts


def _translated(
    file: KernelFile, path: Path, called: str, entry: str, toolchain: Toolchain
) -> tuple[dict[str, Path], tuple[str, ...]]:
    """The source for each kind of core with an entry of ours behind it, and which cores a block of the kernel has."""
    texts = preprocessed(file, toolchain)
    name = called.split("<", 1)[0].split("::")[-1].strip()
    cube, vector = (reach_of(texts[side]) for side in _SIDES)
    kind = file.core or declared(texts["vector"], name) or infer(name, cube, vector)
    members = MEMBERS[kind][: 1 + vector_cores(name, texts["vector"], vector)]
    sources = {}
    for side in set(members):
        text = rewrite_launches(texts[side], host=True)[0] + f'\n# 1 "<entry of {name}>"\n' + entry
        sources[side] = keep_source(toolchain, f"{path.stem}_{side}", text)
    return sources, members


def keep_source(toolchain: Toolchain, stem: str, text: str) -> Path:
    """A translated source in the cache, in one place per text, so that what is compiled from it can be kept."""
    name = f"{stem}{PREPROCESSED}"

    def write(into: Path) -> None:
        (into / name).write_text(text, encoding="utf-8", errors="surrogateescape")

    return toolchain.cache.put("entry", content_key([text, name]), write) / name


def _refused(error: CompileError, path: Path) -> JobError:
    found = first_error(error.said, path)
    return JobError(f"the kernel does not compile: {found.message}", where=f"{found.file}:{found.line}")


def _slots_in_order(
    values: Mapping[str, Value] | Sequence[Value],
) -> tuple[tuple[str, ...], tuple[ReplaySlot, ...]]:
    """Names and slots of `kernel_entry(int64_t *args)`: in the order in which the arguments are given."""
    from insight_trace.dtypes import encode_element

    named = (
        list(values.items())
        if isinstance(values, Mapping)
        else [(f"arg{i}", v) for i, v in enumerate(values)]
    )
    slots: list[ReplaySlot] = []
    for slot, (name, value) in enumerate(named):
        if isinstance(value, _Filled) or bool(getattr(value, "ndim", False)):
            slots.append(_tensor(slot, name, value))
            continue
        number = value.item() if hasattr(value, "item") else value
        dtype = dtype_named("FLOAT32" if isinstance(number, float) else "INT64")
        assert dtype is not None
        bits = int.from_bytes(encode_element(dtype, number), "little")
        slots.append(ReplayScalar(slot, dtype, bits, Tier.EXACT, name, "given"))
    return tuple(name for name, _ in named), tuple(slots)


def _by_slot(file: KernelFile, path: Path, toolchain: Toolchain) -> tuple[Kernel, ...]:
    """The kernels of a file with `kernel_entry(int64_t *args)`."""
    kind = file.core
    texts = preprocessed(file, toolchain) if kind is None or file.defines else {}
    if kind is None:
        kind = infer(_SLOT_ENTRY, reach_of(texts["cube"]), reach_of(texts["vector"]))
    # macros are in the text; without any the file itself is compiled
    sources = dict.fromkeys(_SIDES, path)
    if file.defines:
        sources = {
            side: keep_source(toolchain, f"{path.stem}_{side}", texts[side]) for side in set(MEMBERS[kind])
        }
    folders = _folders(path, file.include_dirs)
    return tuple(
        Kernel(path.stem, sources[side], _SIDES[side], include_dirs=folders) for side in MEMBERS[kind]
    )
