"""Turns a kernel's signature and its `.pto` into arguments with sizes, values and reasons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from insight_trace.errors import InputError, RequestError
from insight_trace.model import Role
from insight_trace.ptoas.affine import Affine
from insight_trace.ptoas.buffer_content import read_array
from insight_trace.ptoas.cpp_signature import CppKernel, CppParameter
from insight_trace.ptoas.element_types import element_type, is_pointer, pointee
from insight_trace.ptoas.planned_kernel import BufferArg, Content, KernelArg, Purpose, ValueArg
from insight_trace.ptoas.pto_facts import Binding, Facts, Partition, View
from insight_trace.ptoas.pto_syntax import Module, Parameter
from insight_trace.ptoas.pto_walk import walk

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


# --- values for a kernel's integers, by what the kernel does with them


# Hidden trailing arguments that PyPTO names; block 0 of 1 is the only block of a single-core launch.
HIDDEN_SCALARS: Mapping[str, Binding] = {
    "__pypto_spmd_block_idx": 0,
    "__pypto_spmd_block_num": 1,
    "__pypto_spmd_subblock_idx": (0, 1),
}
SUBBLOCK = "__pypto_spmd_subblock_idx"
DEFERRED_ARGS = "__pypto_deferred_raw_args"
_INTEGERS = frozenset({"index", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"})
_LOOP_TRIPS = (4, 3, 2, 1)
_INDEX_COUNTS = (16, 8, 4, 2)
_SWEEPS = 2


@dataclass(frozen=True, slots=True)
class Choice:
    binding: Binding
    why: str


@dataclass(frozen=True, slots=True)
class Choices:
    """What was chosen for each integer argument, and the facts that follow from it."""

    values: Mapping[str, Choice]  # scalars and integer tensors that a role was seen for
    facts: Facts


def is_integer(type_: str) -> bool:
    return type_ in _INTEGERS


def _roles(facts: Facts, parameter: Parameter, dynamic_dim: int) -> list[Choice]:
    """Values worth trying for one argument, best first."""
    name = parameter.name
    found: list[Choice] = []
    if any(name in v.sources for view in facts.views for v in (*view.shape, *view.strides)):
        found.append(Choice(dynamic_dim, "dynamic dimension"))
    limits = {length.limit for length in facts.lengths if name in length.value.sources}
    found += [Choice(limit, "valid length of a tile") for limit in sorted(limits, reverse=True)]
    for partition in facts.partitions:
        for size, extent in zip(partition.sizes, partition.view.shape, strict=True):
            if name in size.sources and extent.high is not None:
                found += [Choice(n, "length of a partition") for n in (min(extent.high, 16), 1)]
    for loop in facts.loops:
        if name in loop.upper.sources or name in loop.lower.sources:
            step = max(1, loop.step.constant)
            found += [Choice(trips * step, "loop bound") for trips in _LOOP_TRIPS]
            if step > 1:
                found += [Choice(trips, "loop bound") for trips in _LOOP_TRIPS]
    reached = [limit for names, limit in facts.indices if name in names]
    if reached:
        found.append(Choice((0, max(0, min(reached) - 1)), "index into a tile"))
    offsets = [v for p in facts.partitions for v in (*p.offsets, p.view.offset)]
    offsets += [access.elements for access in facts.accesses if access.elements is not None]
    if any(name in value.sources for value in offsets):
        if is_pointer(parameter.type):
            found += [Choice((0, count - 1), "index") for count in _INDEX_COUNTS]
        found.append(Choice(0, "index"))
    needed = [value for names, value in facts.guards if name in names]
    if needed:
        found.append(Choice(max(needed), "loop bound, by a guard"))
    if any(name in condition.sources for condition in facts.conditions):
        found += [Choice(1, "condition"), Choice(0, "condition")]
    return found


def _complaints(facts: Facts) -> int:
    """How many accesses leave their view, lengths their tile, or loops never turn."""
    bad = sum(dimensions_beyond(partition) for partition in facts.partitions)
    for partition in facts.partitions:
        bad += sum(size.high is not None and size.high <= 0 for size in partition.sizes)
    for length in facts.lengths:
        high = length.value.high
        bad += high is not None and not 0 < high <= length.limit
    bad += len(facts.skipped)
    for loop in facts.loops:
        bad += loop.most_trips == 0 and bool(loop.upper.sources)
    return bad


def choose(
    module: Module,
    functions: tuple[str, ...],
    parameters: tuple[Parameter, ...],
    *,
    dynamic_dim: int,
    given: Mapping[str, int],
) -> Choices:
    """Values for every integer argument; `given` ones stand as they are."""
    fixed: dict[str, Choice] = {}
    for parameter in parameters:
        if parameter.name in given:
            fixed[parameter.name] = Choice(given[parameter.name], "given")
        elif parameter.name in HIDDEN_SCALARS:
            fixed[parameter.name] = Choice(HIDDEN_SCALARS[parameter.name], "hidden argument, by its name")
    start = {name: choice.binding for name, choice in fixed.items()}
    open_facts = walk(module, functions, parameters, start)
    options: dict[str, list[Choice]] = {}
    for parameter in parameters:
        if parameter.name in fixed:
            continue
        if is_pointer(parameter.type):
            dtype = pointee(parameter.type)
            if dtype is None or dtype.is_float:
                continue
            roles = _roles(open_facts, parameter, dynamic_dim)
            if roles:
                options[parameter.name] = roles
        elif is_integer(parameter.type):
            roles = _roles(open_facts, parameter, dynamic_dim)
            options[parameter.name] = roles or [Choice(0, "no use of it seen")]
    chosen = fixed | {name: candidates[0] for name, candidates in options.items()}

    def attempt(values: Mapping[str, Choice]) -> Facts:
        return walk(module, functions, parameters, {name: c.binding for name, c in values.items()})

    facts = attempt(chosen)
    least = _complaints(facts)
    for _ in range(_SWEEPS):
        for name, candidates in options.items():
            for candidate in candidates:
                if not least:
                    return Choices(chosen, facts)
                trial = chosen | {name: candidate}
                found = attempt(trial)
                complaints = _complaints(found)
                if complaints < least:
                    chosen, facts, least = trial, found, complaints
    return Choices(chosen, facts)


@dataclass(frozen=True, slots=True)
class Extent:
    elements: int | None  # None: nothing says
    unbounded: tuple[int, ...]  # lines of accesses whose end only the run decides


def view_elements(view: View) -> int | None:
    """Elements up to the end of a view; 0 for an empty one."""
    return _end(
        view.offset, [(extent, stride) for extent, stride in zip(view.shape, view.strides, strict=True)]
    )


def partition_elements(partition: Partition) -> int | None:
    """Elements up to the end of a partition, at the largest offsets that its loops reach."""
    view = partition.view
    sizes = [offset + size for offset, size in zip(partition.offsets, partition.sizes, strict=True)]
    if any((size.high or 0) <= 0 for size in partition.sizes if size.high is not None):
        return 0
    return _end(view.offset, list(zip(sizes, view.strides, strict=True)))


def _end(offset: Affine, dimensions: list[tuple[Affine, Affine]]) -> int | None:
    # summed as one value before bounds are taken, so that terms which cancel do cancel
    last = offset
    for extent, stride in dimensions:
        if extent.high is not None and extent.high <= 0:
            return 0
        last = last + (extent - Affine(1)) * stride
    high = last.high
    return None if high is None else max(0, high + 1)


def extent_of(argument: str, facts: Facts, element_bytes: int) -> Extent:
    """The extent of one pointer argument."""
    known: list[int] = []
    unbounded: list[int] = []
    for view in facts.views:
        if view.argument == argument:
            elements = view_elements(view)
            known.append(elements) if elements is not None else unbounded.append(view.line)
    for partition in facts.partitions:
        if partition.view.argument == argument:
            elements = partition_elements(partition)
            known.append(elements) if elements is not None else unbounded.append(partition.line)
    for access in facts.accesses:
        if access.argument == argument and access.elements is not None:
            high = access.elements.high
            slots = -(-access.bytes_ // element_bytes)
            known.append(high + slots) if high is not None else unbounded.append(access.line)
    return Extent(max(known) if known else None, tuple(unbounded))


def dimensions_beyond(partition: Partition) -> int:
    """In how many dimensions a partition leaves its view for certain: it stands in no branch."""
    if partition.guarded:
        return 0
    count = 0
    for offset, size, extent in zip(partition.offsets, partition.sizes, partition.view.shape, strict=True):
        end = (offset + size).high
        past = end is not None and extent.high is not None and end > extent.high
        count += past or (offset.low is not None and offset.low < 0)
    return count
