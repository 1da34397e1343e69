"""From a build directory to kernels that are ready to run, or to the reason why one is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from insight_trace.chips import arch_named
from insight_trace.errors import InputError, InsightTraceError, RequestError, did_you_mean
from insight_trace.model import CoreType
from insight_trace.ptoas.cpp_signature import (
    CppFunction,
    CppKernel,
    CppParameter,
    CppSource,
    EntryForm,
    read_cpp,
)
from insight_trace.ptoas.discovery import KernelSource, unique_names
from insight_trace.ptoas.element_types import is_pointer, pointee
from insight_trace.ptoas.launch_arguments import Wishes, kernel_arguments
from insight_trace.ptoas.planned_kernel import BrokenKernel, KernelArg, PlannedKernel, ProfileKernel
from insight_trace.ptoas.pto_facts import Facts
from insight_trace.ptoas.pto_parser import read_pto
from insight_trace.ptoas.pto_syntax import Module
from insight_trace.scene.build_directory import recorded_arch

T = TypeVar("T")

DEFAULT_ARCH = "a2a3"
_CUBE_PLACES = frozenset({"mat", "left", "right", "acc", "bias", "scaling"})


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked for, besides the build itself."""

    target: str = ""  # "": as the build records it
    dynamic_dim: int = 256
    seed: int = 0
    scalars: Mapping[str, int | float] = field(default_factory=dict)  # "name" or "kernel:name"
    inputs: Mapping[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, path in self.inputs.items():
            if not path.is_file():
                raise RequestError(f"--input {key}: {path} is not a file")
        if self.seed < 0:
            raise RequestError("--seed: a seed is not negative")

    def wishes_for(self, kernel: str) -> Wishes:
        return Wishes(self.dynamic_dim, _for(kernel, self.scalars), _for(kernel, self.inputs))


def _for(kernel: str, table: Mapping[str, T]) -> dict[str, T]:
    general = {key: value for key, value in table.items() if ":" not in key}
    mine = {k.partition(":")[2]: v for k, v in table.items() if k.partition(":")[0] == kernel and ":" in k}
    return general | mine


@dataclass(frozen=True, slots=True)
class _Found:
    source: KernelSource
    kernel: CppKernel | None
    sections: frozenset[str]
    problem: str = ""


def kernels_of_pto(module: Module) -> tuple[CppKernel, ...]:
    """The kernels that an assembler would make of a module: public functions, halves of a mix together."""
    functions: dict[str, CppFunction] = {}
    for name, function in module.functions.items():
        if function.private or not function.body:
            continue
        parameters = []
        for index, parameter in enumerate(function.parameters):
            dtype = pointee(parameter.type)
            type_ = (
                dtype.cpp if dtype else {"index": "int64_t", "i1": "bool"}.get(parameter.type, parameter.type)
            )
            parameters.append(CppParameter(f"v{index + 1}", type_, is_pointer(parameter.type)))
        functions[name] = CppFunction(name, tuple(parameters), EntryForm.BARE, function.line)
    kernels = []
    for name, found in functions.items():
        base = name[:-4]
        if name.endswith("_aic") and f"{base}_aiv" in functions:
            kernels.append(CppKernel(base, (found, functions[f"{base}_aiv"])))
        elif not (name.endswith("_aiv") and f"{base}_aic" in functions):
            kernels.append(CppKernel(name, (found,)))
    return tuple(kernels)


def kind_of(facts: Facts, sections: frozenset[str] = frozenset()) -> CoreType:
    """Which cores a kernel runs on: as the `.pto` says, else by where its tiles live, else by its C++."""
    sides = set(facts.sides)
    if not sides:
        sides |= {"cube"} if facts.places & _CUBE_PLACES else set()
        sides |= {"vector"} if "vec" in facts.places else set()
    sides = sides or set(sections)
    if sides == {"cube"}:
        return CoreType.AIC
    return CoreType.MIX if "cube" in sides else CoreType.AIV


def _read(source: KernelSource) -> list[_Found]:
    if source.cpp is None:
        problem = (
            f"{source.path}: has no .cpp beside it\n"
            "  assemble it with `ptoas`: give --ptoas-bin PATH, or set PTOAS_ROOT"
        )
        return [_Found(source, None, frozenset(), problem)]
    try:
        cpp: CppSource = read_cpp(source.cpp)
    except InsightTraceError as error:
        return [_Found(source, None, frozenset(), str(error))]
    return [_Found(source, kernel, cpp.sections) for kernel in cpp.kernels]


def plan_kernels(
    sources: Sequence[KernelSource], build: Path, settings: Settings
) -> tuple[PlannedKernel, ...]:
    """Every kernel of the sources, in their order. One that cannot run does not stop the others."""
    found = [item for source in sources for item in _read(source)]
    in_file = Counter(item.source.path for item in found)
    entries = [
        item.kernel.name if item.kernel is not None and in_file[item.source.path] > 1 else ""
        for item in found
    ]
    names = unique_names([item.source for item in found], entries)
    return tuple(_planned(name, item, build, settings) for name, item in zip(names, found, strict=True))


def _planned(name: str, item: _Found, build: Path, settings: Settings) -> PlannedKernel:
    source, kernel = item.source, item.kernel
    if kernel is None:
        kind, arch, arguments = _told_by_pto(name, source, build, settings)
        return BrokenKernel(name, source.path, item.problem, kind, arch, arguments)
    assert source.cpp is not None
    try:
        if source.pto is None:
            raise InputError(
                "has no .pto beside it, so the sizes of its buffers are not known",
                where=str(source.cpp),
                hint=f"copy {source.cpp.stem}.pto of the same build next to it",
            )
        module = read_pto(source.pto)
        prepared = kernel_arguments(kernel, module, settings.wishes_for(name))
    except RequestError:
        raise  # what was given for it contradicts itself
    except InsightTraceError as error:
        return BrokenKernel(name, source.cpp, str(error), arch=settings.target or "?")
    arch, notes = _arch(module, source.cpp, build, settings)
    facts = prepared.facts
    return ProfileKernel(
        name,
        kernel.name,
        CoreType.MIX if len(kernel.functions) > 1 else kind_of(facts, item.sections),
        arch,
        source.cpp,
        source.pto,
        kernel.functions,
        prepared.arguments,
        facts.cube,
        facts.vector,
        settings.seed,
        (*notes, *prepared.warnings),
        has_operations=bool(facts.operations),
    )


def _told_by_pto(
    name: str, source: KernelSource, build: Path, settings: Settings
) -> tuple[str, str, tuple[KernelArg, ...]]:
    """Kind, target and arguments of a kernel that has no C++, as far as its `.pto` can be read."""
    if source.pto is None:
        return "?", settings.target or "?", ()
    try:
        module = read_pto(source.pto)
        kernels = kernels_of_pto(module)
        kinds = set()
        arguments: tuple[KernelArg, ...] = ()
        for kernel in kernels:
            prepared = kernel_arguments(kernel, module, settings.wishes_for(name))
            arguments = arguments or prepared.arguments
            kinds.add(CoreType.MIX if len(kernel.functions) > 1 else kind_of(prepared.facts))
    except InsightTraceError:
        return "?", settings.target or "?", ()
    kind = next(iter(kinds)).value if len(kinds) == 1 else "?"
    return kind, _arch(module, source.pto, build, settings)[0], arguments


def _arch(module: Module, source: Path, build: Path, settings: Settings) -> tuple[str, tuple[str, ...]]:
    said = arch_named(module.attributes.get("pto.target_arch", ""))
    said = said or arch_named(module.attributes.get("pto.device-spec", "")) or recorded_arch(source, build)
    if settings.target and said and said != settings.target:
        return settings.target, (f"built for {said}, run as {settings.target} because --target says so",)
    if settings.target or said:
        return settings.target or said, ()
    return DEFAULT_ARCH, (f"the build does not say its target; {DEFAULT_ARCH} is assumed, --target sets it",)


def select_kernels(planned: Sequence[PlannedKernel], wanted: Sequence[str]) -> tuple[PlannedKernel, ...]:
    """Kernels by name, file stem or function; a name that is none of a kernel is an error."""
    if not wanted:
        return tuple(planned)
    chosen: set[str] = set()
    for word in wanted:
        hits = [k.name for k in planned if k.name == word] or [
            k.name for k in planned if word in (k.source.stem, getattr(k, "entry", ""))
        ]
        if not hits:
            guess = did_you_mean(word, [k.name for k in planned])
            raise RequestError(
                f"--func {word}: the build has no such kernel", hint=f"{guess}--list-funcs lists them"
            )
        chosen |= set(hits)
    return tuple(kernel for kernel in planned if kernel.name in chosen)


def refuse_unused_names(planned: Sequence[PlannedKernel], settings: Settings) -> None:
    """A --scalar or --input that names no argument of any kernel is a mistake, not a wish."""
    known: set[str] = set()
    for kernel in planned:
        for argument in kernel.arguments:
            for name in (argument.name, argument.label):
                known |= {name, f"{kernel.name}:{name}"}
    for flag, table in (("--scalar", settings.scalars), ("--input", settings.inputs)):
        for name in table:
            if name not in known:
                raise RequestError(
                    f"{flag} {name}: no kernel of this run has an argument of that name",
                    hint="--list-funcs --json lists the arguments of each kernel",
                )
