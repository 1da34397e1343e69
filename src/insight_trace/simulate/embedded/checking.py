"""What the runner's checker reported, as findings with lines, instructions and cores."""

from __future__ import annotations

from collections.abc import Sequence

from insight_trace.check.causes import lead_with_causes
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
from insight_trace.check.queues import in_words_of_queues
from insight_trace.check.tile_faults import tile_faults, unwritten_parts
from insight_trace.finding import Finding, Place, Severity
from insight_trace.model import Instructions, Pipe
from insight_trace.recording.flag_pairs import flag_at
from insight_trace.recording.kinds import FLAG_NAMES, SET_NAMES, works
from insight_trace.recording.operands import MEMORIES
from insight_trace.recording.pipes import ENGINE_PIPES, KERNEL_PIPES, PIPE_TEXT
from insight_trace.simulate.embedded.memory import Buffer
from insight_trace.simulate.embedded.runner import RunnerResult

_GM = MEMORIES.index("GM")
# pipes as kernels name them
_PIPES = dict(zip(ENGINE_PIPES, KERNEL_PIPES, strict=True))
_KERNEL_NAMES = dict(zip(PIPE_TEXT, KERNEL_PIPES, strict=True))


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
    parts = (
        unwritten_parts(instructions, buffer.name, buffer.address, buffer.view or buffer.size)
        for buffer in buffers
        if result.checked and buffer.only_output and buffer.address in result.wrote
    )
    unwritten += tuple(part for part in parts if part is not None)
    tiles = tile_faults(instructions, lambda row: place_of(row, instructions)) if result.checked else ()
    numbers = tuple(_born(row, instructions) for row in result.born if int(row[1]) in rows)
    notes = tuple(_redundant(row, instructions) for row in result.redundant if _costs(row, instructions))
    if len(result.tried) == 2 and result.tried[0] < result.tried[1]:
        notes += (untried(*result.tried),)
    order = {severity: number for number, severity in enumerate(SEVERITIES)}
    return (
        *in_words_of_queues(
            lead_with_causes((*tiles, *explain(sorted(seen, key=lambda one: order[one.severity]))))
        ),
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
        flag=_flag(row, instructions),
    )


def _flag(row: int, instructions: Instructions) -> tuple[str, str, str] | None:
    if instructions.names[instructions.name[row]] not in FLAG_NAMES:
        return None
    flag = flag_at(instructions, row)
    return (_KERNEL_NAMES[flag.source], _KERNEL_NAMES[flag.target], flag.event) if flag.known else None


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


def _costs(row: tuple[str, ...], instructions: Instructions) -> bool:
    """Whether to speak of what orders nothing: neither of what costs nothing, nor of what a kernel ends with."""
    sets, waits, executions, cycles = row
    rows = [int(number) for text in (sets, waits) if text != "-" for number in text.split(",")]
    rows = [number for number in rows if number < len(instructions)]
    if not rows or (cycles != "-" and int(cycles) <= int(executions)):
        return False  # a cycle for each is what issuing it takes
    alone = waits == "-" and instructions.names[instructions.name[rows[0]]] in SET_NAMES
    work = works(instructions).nonzero()[0]
    return not alone and bool(len(work)) and min(rows) < int(work[-1])


def _born(row: tuple[str, ...], instructions: Instructions) -> Finding:
    is_nan, last, op, line, column = row
    return born(place_of(int(last), instructions), op, is_nan == "1", int(line), int(column))
