"""What the runner's checker reported, as findings with lines, instructions and cores."""

from __future__ import annotations

from collections.abc import Sequence

from insight_trace.check.explain import (
    KINDS,
    SEVERITIES,
    Seen,
    born,
    explain,
    output_unwritten,
    redundant,
    untried,
)
from insight_trace.finding import Finding, Place, Severity
from insight_trace.model import Instructions, Pipe
from insight_trace.recording.operands import MEMORIES
from insight_trace.recording.pipes import ENGINE_PIPES, KERNEL_PIPES
from insight_trace.simulate.embedded.memory import Buffer
from insight_trace.simulate.embedded.runner import RunnerResult

_GM = MEMORIES.index("GM")
# pipes as kernels name them
_PIPES = dict(zip(ENGINE_PIPES, KERNEL_PIPES, strict=True))


def findings_of(
    result: RunnerResult, instructions: Instructions, buffers: Sequence[Buffer]
) -> tuple[Finding, ...]:
    """Findings of one run, worst first; flags that were left over are always among them."""
    rows = range(len(instructions))
    seen = [
        _seen(row, instructions, buffers)
        for row in result.found
        if row[3] in rows and (row[2] < 0 or row[2] in rows) and row[0] < len(KINDS)
    ]
    seen += [_left_over(row, instructions) for row in result.unused_flags if row[-1] in rows]
    remarks = tuple(
        Finding("contract", Severity.NOTE, text, places=(Place(file, line, "", ""),))
        for file, line, text in dict.fromkeys(result.remarks)
    )
    unwritten = tuple(
        output_unwritten(buffer.name)
        for buffer in buffers
        if result.checked and buffer.only_output and buffer.address not in result.wrote
    )
    numbers = tuple(_born(row, instructions) for row in result.born if int(row[1]) in rows)
    notes = tuple(_redundant(row, instructions) for row in result.redundant)
    if len(result.tried) == 2 and result.tried[0] < result.tried[1]:
        notes += (untried(*result.tried),)
    order = {severity: number for number, severity in enumerate(SEVERITIES)}
    return (
        *explain(sorted(seen, key=lambda one: order[one.severity])),
        *numbers,
        *unwritten,
        *remarks,
        *notes,
    )


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


def _seen(row: tuple[int, ...], instructions: Instructions, buffers: Sequence[Buffer]) -> Seen:
    kind, severity, first, second, memory, _, first_writes, second_writes, begin, end, count = row
    buffer = ""
    if memory == _GM:
        for known in buffers:
            if known.address <= begin < known.address + known.padded:
                buffer, begin, end = known.name, begin - known.address, end - known.address
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


def _redundant(row: tuple[str, ...], instructions: Instructions) -> Finding:
    """Flags, or a barrier, without which everything that depends is still ordered."""
    sets, waits, executions, cycles = row
    places = [
        place_of(int(number), instructions)
        for text in (sets, waits)
        if text != "-"
        for number in text.split(",")
        if int(number) < len(instructions)
    ]
    price = None if cycles == "-" else int(cycles)
    return redundant(places, int(executions) // min(2, len(places)), price)


def _born(row: tuple[str, ...], instructions: Instructions) -> Finding:
    is_nan, last, op, line, column = row
    return born(place_of(int(last), instructions), op, is_nan == "1", int(line), int(column))
