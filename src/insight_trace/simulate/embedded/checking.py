"""What the runner's checker reported, as findings with lines, instructions and cores."""

from __future__ import annotations

from collections.abc import Sequence

from insight_trace.check.explain import KINDS, SEVERITIES, Seen, explain, redundant
from insight_trace.model import Finding, Instructions, Pipe, Place, Severity
from insight_trace.recording.operands import MEMORIES
from insight_trace.recording.pipes import ENGINE_PIPES, KERNEL_PIPES
from insight_trace.simulate.embedded.records import Site
from insight_trace.simulate.embedded.runner import RunnerResult

_GM = MEMORIES.index("GM")
# pipes as kernels name them
_PIPES = dict(zip(ENGINE_PIPES, KERNEL_PIPES, strict=True))


def findings_of(
    result: RunnerResult,
    instructions: Instructions,
    regions: Sequence[tuple[str, int, int, int]],
    sites: Sequence[Site],
) -> tuple[Finding, ...]:
    """Findings of one run, worst first; flags that were left over are always among them."""
    seen = [_seen(row, instructions, regions) for row in result.found]
    seen += [_left_over(row, instructions) for row in result.unused_flags]
    remarks = tuple(
        Finding("contract", Severity.NOTE, text, places=(Place(file, line, "", ""),))
        for file, line, text in dict.fromkeys(result.remarks)
    )
    notes = tuple(_redundant(row, sites) for row in result.redundant)
    order = {severity: number for number, severity in enumerate(SEVERITIES)}
    return explain(sorted(seen, key=lambda one: order[one.severity])) + remarks + notes


def place_of(row: int, instructions: Instructions) -> Place:
    """The executed instruction of a row, in the kernel's words."""
    frame = instructions.stacks[instructions.stack[row]].split("\n")[0]
    file, _, line = frame.rpartition(":")
    return Place(
        file,
        int(line) if line.isdecimal() else 0,
        instructions.names[instructions.name[row]],
        _PIPES.get(Pipe(instructions.pipe[row]), "V"),
        instructions.cores[instructions.core[row]],
        row,
    )


def _seen(
    row: tuple[int, ...], instructions: Instructions, regions: Sequence[tuple[str, int, int, int]]
) -> Seen:
    kind, severity, first, second, memory, _, first_writes, second_writes, begin, end, count = row
    buffer = ""
    if memory == _GM:
        for name, address, _, padded in regions:
            if address <= begin < address + padded:
                buffer, begin, end = name, begin - address, end - address
                break
    return Seen(
        KINDS[kind],
        SEVERITIES[severity],
        place_of(first, instructions) if first >= 0 else None,
        place_of(second, instructions),
        MEMORIES[memory],
        bool(first_writes),
        bool(second_writes),
        begin,
        end,
        count,
        buffer,
    )


def _left_over(row: tuple[int, ...], instructions: Instructions) -> Seen:
    count, last = row[-2:]
    place = place_of(last, instructions)
    return Seen("set-without-wait", Severity.WARNING, None, place, "", False, False, -1, -1, count)


def _redundant(row: tuple[str, ...], sites: Sequence[Site]) -> Finding:
    """Flags, or a barrier, without which everything that depends is still ordered."""
    _, sets, waits, _, executions = row
    places = [
        Place(site.file, site.line, site.name, KERNEL_PIPES[site.pipe])
        for text in (sets, waits)
        if text != "-"
        for site in (sites[int(number)] for number in text.split(","))
    ]
    return redundant(places, int(executions) // min(2, len(places)))
