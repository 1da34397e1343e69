"""Values for a kernel's integers, by what the kernel does with them.

A first walk leaves every integer open and shows what it decides: a dimension, a valid length, a loop's
end, an offset. Each role has values worth trying; the first that keeps every access inside its view and
every loop alive is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from insight_trace.ptoas.element_types import is_pointer, pointee
from insight_trace.ptoas.extents import dimensions_beyond
from insight_trace.ptoas.pto_facts import Binding, Facts
from insight_trace.ptoas.pto_syntax import Module, Parameter
from insight_trace.ptoas.pto_walk import walk

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
