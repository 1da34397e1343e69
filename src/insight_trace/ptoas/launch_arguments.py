"""Turns a kernel's signature and its `.pto` into arguments with sizes, values and reasons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from insight_trace.errors import InputError, RequestError
from insight_trace.model import Role
from insight_trace.ptoas.buffer_content import read_array
from insight_trace.ptoas.cpp_signature import CppKernel, CppParameter
from insight_trace.ptoas.element_types import element_type, is_pointer, pointee
from insight_trace.ptoas.extents import dimensions_beyond, extent_of
from insight_trace.ptoas.planned_kernel import BufferArg, Content, KernelArg, Purpose, ValueArg
from insight_trace.ptoas.pto_facts import Facts
from insight_trace.ptoas.pto_syntax import Module, Parameter
from insight_trace.ptoas.pto_walk import walk
from insight_trace.ptoas.scalar_values import DEFERRED_ARGS, SUBBLOCK, Choices, choose, is_integer

T = TypeVar("T")

MAX_BUFFER_BYTES = 1 << 40
_UNSEEN_BYTES = 1 << 20  # for memory that an operation uses in a way nobody here knows
_UNUSED_ELEMENTS = 64
_FFTS_ELEMENTS = 256
_MATRIX_RANGE = (-8, 7)  # small enough that sums of products stay exact in 32 bits
_WANTS_POSITIVE = frozenset(
    {"tlog", "tln", "tsqrt", "trsqrt", "tdiv", "trecip", "tdivs", "trowexpanddiv", "tpow"}
)
_STRUCTURES: Mapping[str, tuple[int, ...]] = {"MrgSortExecutedNumList": (128, 128, 128, 128)}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user set: values by argument name, files by argument name, the size of open dimensions."""

    dynamic_dim: int = 256
    scalars: Mapping[str, int | float] = field(default_factory=dict)
    inputs: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KernelArguments:
    arguments: tuple[KernelArg, ...]
    facts: Facts
    warnings: tuple[str, ...]


def friendly_names(facts: Facts) -> dict[str, str]:
    """Names that the user's program gave to tensors; PyPTO keeps them in the names of views."""
    found: dict[str, str] = {}
    for view in facts.views:
        name = re.sub(r"(__ssa_v\d+|__[a-z0-9_]*_v\d+)?_view(_\d+)?$", "", view.name)
        if name != view.name and name and view.argument not in found:
            # two versions of one tensor, as of an update in place, are two arguments
            taken = name in found.values()
            found[view.argument] = f"{name}.{view.argument}" if taken else name
    return found


def _matched(kernel: CppKernel, module: Module) -> tuple[tuple[str, ...], tuple[Parameter, ...]]:
    """The `.pto` functions of a kernel and the parameters they share."""
    names = tuple(function.name for function in kernel.functions)
    if len(names) == 1 and names[0] not in module.functions:
        public = [name for name, function in module.functions.items() if not function.private]
        if len(public) == 1:
            names = (public[0],)
    for name in names:
        if name not in module.functions:
            listed = ", ".join(f"@{n}" for n in module.functions) or "none"
            raise InputError(
                f"has no function @{name} for the kernel of that name; it has {listed}",
                where=module.where,
                hint="the .pto and the .cpp are of different builds; build the case again",
            )
    for name, function in zip(names, kernel.functions, strict=True):
        expected, found = len(module.functions[name].parameters), len(function.parameters)
        if expected != found:
            raise InputError(
                f"@{name} takes {expected} arguments, but the C++ function {function.name} takes {found}",
                where=module.where,
                hint="the .pto and the .cpp are of different builds; build the case again",
            )
    longest = max((module.functions[name].parameters for name in names), key=len)
    return names, longest


def _by_any_name(table: Mapping[str, T], *names: str) -> T | None:
    return next((table[name] for name in names if name in table), None)


def kernel_arguments(kernel: CppKernel, module: Module, wishes: Wishes) -> KernelArguments:
    """Every argument of a kernel, in launch order."""
    names, parameters = _matched(kernel, module)
    given: dict[str, int] = {}
    for parameter, cpp in zip(parameters, kernel.parameters, strict=True):
        value = _by_any_name(wishes.scalars, parameter.name, cpp.name)
        if value is not None and is_integer(parameter.type):
            given[parameter.name] = int(value)
    if wishes.inputs:
        given = _dimensions_of(module, names, parameters, kernel, wishes, given) | given
    choices = choose(module, names, parameters, dynamic_dim=wishes.dynamic_dim, given=given)
    friendly = friendly_names(choices.facts)
    warnings: list[str] = []
    arguments: list[KernelArg] = []
    for position, (parameter, cpp) in enumerate(zip(parameters, kernel.parameters, strict=True)):
        if is_pointer(parameter.type) != cpp.is_pointer:
            raise InputError(
                f"argument {position} is {parameter.type} here, but {cpp.type}{'*' * cpp.is_pointer} in C++",
                where=module.where,
                hint="the .pto and the .cpp are of different builds; build the case again",
            )
        label = friendly.get(parameter.name, parameter.name)
        if cpp.is_pointer:
            arguments.append(
                _buffer(position, parameter, cpp, label, choices, wishes, warnings, module.where)
            )
        else:
            arguments.append(_value(position, parameter, cpp, choices, wishes))
    warnings += _strays(choices.facts, friendly)
    warnings += _skipped(choices)
    return KernelArguments(tuple(arguments), choices.facts, tuple(warnings))


def _skipped(choices: Choices) -> list[str]:
    """Branches that values of our own choosing keep the kernel from."""
    found = []
    for line, deciding in dict.fromkeys(choices.facts.skipped):
        chosen = [n for n in sorted(deciding) if n in choices.values and choices.values[n].why != "given"]
        if chosen:
            who = ", ".join(f"{name} = {choices.values[name].binding}" for name in chosen)
            found.append(f".pto line {line}: a branch is not taken with {who}; set it with --scalar")
    return found


def _dimensions_of(
    module: Module,
    names: tuple[str, ...],
    parameters: tuple[Parameter, ...],
    kernel: CppKernel,
    wishes: Wishes,
    given: Mapping[str, int],
) -> dict[str, int]:
    """Open dimensions as the given arrays have them: a view whose size is an argument gets the array's."""
    facts = walk(module, names, parameters, dict(given))
    friendly = friendly_names(facts)
    cpp_names = {p.name: c.name for p, c in zip(parameters, kernel.parameters, strict=True)}
    found: dict[str, int] = {}
    for view in facts.views:
        label = friendly.get(view.argument, view.argument)
        file = _by_any_name(wishes.inputs, label, view.argument, cpp_names.get(view.argument, ""))
        if file is None or file.suffix not in (".npy", ".pt"):
            continue
        shape = read_array(file).shape
        if len(shape) != len(view.shape):
            continue
        for extent, size in zip(shape, view.shape, strict=True):
            if size.constant or len(size.terms) != 1 or len(size.sources) != 1:
                continue
            (name,), (factor,) = size.sources, size.terms.values()
            value, rest = divmod(extent, factor)
            if rest or found.setdefault(name, value) != value:
                other = (
                    f"another input makes {name} {found[name]}" if not rest else f"not a multiple of {factor}"
                )
                raise RequestError(f"has a dimension of {extent}: {other}", where=str(file))
    return found


def _strays(facts: Facts, friendly: Mapping[str, str]) -> list[str]:
    found = []
    for partition in facts.partitions:
        if dimensions_beyond(partition):
            name = friendly.get(partition.view.argument, partition.view.argument)
            who = sorted(frozenset().union(*(v.sources for v in (*partition.offsets, *partition.sizes))))
            cause = f"; {', '.join(who)} decide it, set with --scalar" if who else ""
            found.append(f".pto line {partition.line}: a partition of {name} ends outside of its view{cause}")
    return list(dict.fromkeys(found))


def _value(
    position: int, parameter: Parameter, cpp: CppParameter, choices: Choices, wishes: Wishes
) -> ValueArg:
    wish = _by_any_name(wishes.scalars, parameter.name, cpp.name)
    structure = _STRUCTURES.get(cpp.type.rpartition("::")[2])
    if structure is not None or element_type(cpp.type) is None:
        members = structure or ()
        why = "members of a merge list" if structure else "structure, zeroed"
        return ValueArg(position, cpp.name, parameter.name, cpp.type, members, why)
    if is_integer(parameter.type):
        choice = choices.values[parameter.name]
        low = choice.binding if isinstance(choice.binding, int) else choice.binding[0]
        return ValueArg(
            position,
            cpp.name,
            parameter.name,
            cpp.type,
            low,
            "vector lane" if parameter.name == SUBBLOCK and wish is None else choice.why,
            per_lane=parameter.name == SUBBLOCK and wish is None,
        )
    value = 1.0 if wish is None else float(wish)
    return ValueArg(
        position, cpp.name, parameter.name, cpp.type, value, "given" if wish is not None else "float"
    )


def _buffer(
    position: int,
    parameter: Parameter,
    cpp: CppParameter,
    label: str,
    choices: Choices,
    wishes: Wishes,
    warnings: list[str],
    where: str,
) -> BufferArg:
    facts, name = choices.facts, parameter.name
    dtype = pointee(parameter.type) or element_type(cpp.type)
    if dtype is None:
        raise InputError(f"argument {position} ({label}) has the unknown type {parameter.type}", where=where)
    extent = extent_of(name, facts, dtype.size)
    elements, size_why = extent.elements, ""
    purpose = Purpose.TENSOR
    if name in facts.pipes:
        purpose, size_why = Purpose.PIPE, "slots of the GM pipe"
    elif name in facts.ffts:
        purpose, size_why = Purpose.FFTS, "base of cross-core flags"
        elements = elements or _FFTS_ELEMENTS
    elif name == DEFERRED_ARGS:
        purpose, size_why = Purpose.WORKSPACE, "dispatch arguments"
        elements = elements or _UNUSED_ELEMENTS
    elif elements is None and name in facts.opaque:
        purpose, elements = Purpose.WORKSPACE, _UNSEEN_BYTES // dtype.size
        size_why = f"assumed: pto.{facts.opaque[name].removeprefix('pto.')} does not say"
        warnings.append(f"{label}: its size is assumed ({_UNSEEN_BYTES} bytes); {facts.opaque[name]} uses it")
    elif elements is None:
        elements, size_why = _UNUSED_ELEMENTS, "never read or written"
    if extent.unbounded and purpose is Purpose.TENSOR:
        lines = ", ".join(map(str, extent.unbounded[:3]))
        warnings.append(f"{label}: how far .pto line {lines} reaches is only known at run time")
    elements = max(elements or 0, 1)
    if elements * dtype.size > MAX_BUFFER_BYTES:
        raise InputError(
            f"{label} would need {elements * dtype.size} bytes",
            where=where,
            hint="choose a smaller --dynamic-dim, or set the scalars that decide it with --scalar",
        )
    stored, loaded = name in facts.stored, name in facts.loaded or name in facts.read_as_scalar
    role = {(True, True): Role.INOUT, (True, False): Role.OUTPUT, (False, True): Role.INPUT}.get(
        (stored, loaded)
    )
    content, low, high, why = _content(name, dtype.is_float, purpose, role, choices)
    file = _by_any_name(wishes.inputs, label, name, cpp.name)
    if file is not None:
        content, why = Content.FILE, "given"
    elif content is Content.ZERO and role in (Role.INPUT, Role.INOUT) and purpose is Purpose.TENSOR:
        warnings.append(
            f"{label}: an integer input of unseen use stays zero; give it content with --input {label}=FILE"
        )
    return BufferArg(
        position,
        cpp.name,
        label,
        dtype,
        elements,
        content,
        "; ".join(filter(None, (why, size_why))),
        role,
        purpose,
        low,
        high,
        file,
        positive=bool(_WANTS_POSITIVE & facts.operations),
    )


def _content(
    name: str, is_float: bool, purpose: Purpose, role: Role | None, choices: Choices
) -> tuple[Content, int, int, str]:
    if purpose is not Purpose.TENSOR:
        return Content.ZERO, 0, 0, purpose.value
    if role is Role.OUTPUT:
        return Content.ZERO, 0, 0, "output"
    if role is None:
        return Content.ZERO, 0, 0, "not used"
    if is_float:
        return Content.RANDOM, 0, 0, "random"
    choice = choices.values.get(name)
    if choice is not None:
        if isinstance(choice.binding, int):
            return Content.CONSTANT, choice.binding, choice.binding, choice.why
        return Content.INDEX, choice.binding[0], choice.binding[1], choice.why
    if name in choices.facts.matrices:
        return Content.INDEX, *_MATRIX_RANGE, "operand of a matrix product"
    return Content.ZERO, 0, 0, "use not seen"
