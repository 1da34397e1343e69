"""A folder of core model logs to a trace: what the vendor's exporter does, without CANN."""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from insight_trace.chips import LogFamily, find_chip, load_chip
from insight_trace.errors import InputError, RequestError
from insight_trace.insight.camodel.files import CoreLogs, core_logs, find_dump, lines_of, throughput_logs
from insight_trace.insight.camodel.lines import (
    Line,
    active_threads,
    is_repeated,
    parse_cache_miss,
    parse_decode,
    parse_fetch,
    parse_line,
    warp_of,
)
from insight_trace.insight.camodel.logged_operands import bank_conflicts, bytes_moved, vector_utilisation
from insight_trace.insight.camodel.marks import Mark, Marks
from insight_trace.insight.camodel.mover_logs import read_throughput
from insight_trace.insight.camodel.registers import live_registers
from insight_trace.insight.camodel.sources import Symbols, read_sources
from insight_trace.insight.lanes import CACHE_MISS
from insight_trace.insight.prepared import Extras
from insight_trace.model import Instructions, Pipe, Trace
from insight_trace.recording.kinds import FLAG_NAMES
from insight_trace.recording.pipes import VECTOR_LANES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = re.compile(r"[A-Z0-9/:]{0,10}=([0-9xXa-fA-F]{0,4}),SPR:BLOCKID")
_SUB_BLOCK = re.compile(r"[A-Z0-9/:]{0,10}=([0-9xXa-fA-F]{0,4}),SPR:SUBBLOCKID")


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What to take from the logs."""

    soc_version: str = ""  # where it is not said, logs of the 950 and the 310P ask for it
    flags: bool = True  # SET and WAIT instructions
    overhead: bool = False
    throughput: bool = False
    core_ids: frozenset[int] = frozenset()  # empty: all
    source_root: Path | None = None  # where source files are looked for when their recorded path is gone


@dataclass(slots=True)
class _Core:
    name: str
    executed: list[Executed] = field(default_factory=list)
    misses: list[tuple[int, int, str]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    fetched: NDArray[np.int64] | None = None
    decoded: NDArray[np.int64] | None = None


def read_dump(path: Path, options: ExportOptions | None = None) -> tuple[Trace, Extras]:
    """The trace of a dump folder, and the facts that have no column. Warnings count what was not usable."""
    options = options or ExportOptions()
    chip = find_chip(options.soc_version) if options.soc_version else load_chip()
    if chip is None or chip.family.logs is None:
        raise RequestError(
            f"{options.soc_version!r} is not a chip that is known",
            hint="for example Ascend910B1, Ascend910_9382, Ascend310P3 or Ascend950PR_9599",
        )
    folder = find_dump(path)
    logs = list(core_logs(folder))
    if not options.soc_version:
        require_default_chip(logs, folder)
    family = chip.family.logs
    warnings: list[str] = []
    cores: dict[str, _Core] = {}
    for own in logs:
        core = _read_core(own, family, options, warnings)
        if core is None:
            continue
        if core.name in cores:
            warnings.append(f"{own.core}: its block is {core.name}, which another core has; its name is kept")
            core.name = own.core
        cores[core.name] = core
    if not cores:
        told = "; ".join(warnings[:3])
        raise InputError(
            f"no core has both starts and ends of instructions{': ' + told if told else ''}",
            where=str(folder),
            hint="both core*.instr_popped_log.dump and core*.instr_log.dump are needed",
        )
    counters = read_throughput(throughput_logs(folder), chip.mhz) if options.throughput else ()
    ordered = [cores[name] for name in sorted(cores)]
    symbols = Symbols.of(folder, _addresses(ordered), warnings)
    instructions, extras = _columns(ordered, family, symbols)
    trace = Trace(
        instructions=instructions,
        mhz=chip.mhz,
        soc_version=options.soc_version or chip.name,
        sources=read_sources(instructions.stacks, options.source_root),
        counters=counters,
        path=folder,
        warnings=tuple(warnings),
    )
    return trace, extras


def _read_core(
    logs: CoreLogs, family: LogFamily, options: ExportOptions, warnings: list[str]
) -> _Core | None:
    if not logs.starts or not logs.ends:
        absent = "instr_popped_log" if not logs.starts else "instr_log"
        warnings.append(f"{logs.core}: {absent} is missing or empty, the core is left out")
        return None
    by_id = family is LogFamily.A5
    starts, name, number = _read_starts(logs, family, options, by_id, warnings)
    if options.core_ids and number not in options.core_ids:
        return None
    ends, marks = _read_ends(logs, options, by_id, warnings)
    executed = pair_by_id(starts, ends) if by_id else pair_by_address(starts, ends)
    if not executed:
        warnings.append(f"{logs.core}: no start has an end, the core is left out")
        return None
    core = _Core(name, executed, marks=marks)
    caches = logs.caches(family)
    core.misses = [miss for line in lines_of(caches) if (miss := parse_cache_miss(line)) is not None]
    if options.overhead and family.a2_or_a3:
        core.fetched, core.decoded = fetch_and_decode(
            lines_of(caches),
            lines_of(logs.decodes),
            [each.line.pc for each in executed],
            [each.start for each in executed],
        )
    return core


def _read_starts(
    logs: CoreLogs, family: LogFamily, options: ExportOptions, by_id: bool, warnings: list[str]
) -> tuple[dict[int, list[Line]], str, int]:
    """Starts by address or id, the core's logical name and its number."""
    found: dict[int, list[Line]] = defaultdict(list)
    block = sub_block = -1
    kind = logs.core.rpartition(".")[2].rstrip("0123456789") if "." in logs.core else ""
    skipped = 0
    for text in lines_of(logs.starts):
        line = parse_line(text, popped=True)
        if line is None:
            skipped += bool(text.strip()) and not is_repeated(text)
            continue
        if (line.name in FLAG_NAMES and not options.flags) or (by_id and line.id < 0):
            continue
        found[line.id if by_id else line.pc].append(line)
        if family.a2_or_a3 and line.name == "MOV_XD_SPR":
            block = _register(_BLOCK, line.detail, block)
            sub_block = _register(_SUB_BLOCK, line.detail, sub_block)
    if skipped:
        warnings.append(f"{logs.core}: {skipped} lines of instr_popped_log are no instructions")
    own = int(re.match(r"core([0-9]+)", logs.core)[1])  # type: ignore[index]
    number = (block if block >= 0 else 0) if family.a2_or_a3 else own
    if kind == "cubecore" and block >= 0:
        return found, f"core{block}.cubecore0", number
    if kind and block >= 0 and sub_block >= 0:
        return found, f"core{block}.{kind}{sub_block}", number
    return found, logs.core, number


def _register(pattern: re.Pattern[str], detail: str, known: int) -> int:
    """The value that a special register was read with, the first time it is."""
    match = pattern.search(detail) if known < 0 else None
    if match is None:
        return known
    try:
        return int(match[1], 16)
    except ValueError:
        return known


def _read_ends(
    logs: CoreLogs, options: ExportOptions, by_id: bool, warnings: list[str]
) -> tuple[dict[int, list[Line]], list[Mark]]:
    found: dict[int, list[Line]] = defaultdict(list)
    marks = Marks()
    skipped = 0
    for text in lines_of(logs.ends):
        line = parse_line(text, popped=False)
        if line is None:
            skipped += bool(text.strip())
            continue
        if (line.name in FLAG_NAMES and not options.flags) or (by_id and line.id < 0):
            continue
        marks.feed(line)
        if line.pipe != Pipe.USERMARK:
            found[line.id if by_id else line.pc].append(line)
    if skipped:
        warnings.append(f"{logs.core}: {skipped} lines of instr_log are no instructions")
    spans, told = marks.finish()
    warnings += [f"{logs.core}: {text}" for text in told]
    return found, spans


def _addresses(cores: list[_Core]) -> set[int]:
    found: set[int] = set()
    for core in cores:
        found |= {each.line.pc for each in core.executed} | {pc for _, pc, _ in core.misses}
        found |= {mark.pc for mark in core.marks} | {mark.stop_pc for mark in core.marks if mark.stop_pc >= 0}
    return found


def _columns(cores: list[_Core], family: LogFamily, symbols: Symbols) -> tuple[Instructions, Extras]:
    """Executions of each core in the vendor's order, then its cache misses, then its marks."""
    names: dict[str, int] = {}
    stacks: dict[str, int] = {}
    columns: dict[str, list[Any]] = defaultdict(list)
    fetched: list[NDArray[np.int64]] = []
    decoded: list[NDArray[np.int64]] = []

    def add(core: int, pipe: Pipe, name: str, stack: str, pc: int, start: int, end: int, detail: str) -> None:
        columns["core"].append(core)
        columns["pipe"].append(int(pipe))
        columns["name"].append(names.setdefault(name, len(names)))
        columns["stack"].append(stacks.setdefault(stack, len(stacks)))
        columns["pc"].append(pc)
        columns["start"].append(start)
        columns["end"].append(end)
        columns["detail"].append(detail)

    for number, core in enumerate(cores):
        order = [each.line.name for each in core.executed]
        details = [each.detail for each in core.executed]
        for each in core.executed:
            line = each.line
            add(
                *(number, line.pipe, line.name, symbols.stack(line.pc), line.pc),
                *(each.start, each.end, each.detail),
            )
        extra = len(core.misses) + len(core.marks)
        gpr = live_registers(family, order, details)
        columns["gpr"] += [0] * len(order) if gpr is None else gpr.tolist()
        columns["gpr"] += [0] * len(core.misses) + [-1] * len(core.marks)
        columns["warp"] += [warp_of(detail) for detail in details] + [-1] * extra
        columns["bytes"] += [bytes_moved(family, *key) or -1 for key in zip(order, details, strict=True)]
        conflicts = [bank_conflicts(family, *key) for key in zip(order, details, strict=True)]
        columns["read"] += [read for read, _ in conflicts] + [-1] * extra
        columns["write"] += [write for _, write in conflicts] + [-1] * extra
        columns["used"] += vector_utilisation(family, order, details).tolist() + [-1.0] * extra
        columns["bytes"] += [-1] * extra
        for tick, pc, detail in core.misses:
            add(number, Pipe.CACHEMISS, CACHE_MISS, symbols.stack(pc), pc, tick, tick + 1, detail)
        for mark in core.marks:
            begin, finish = symbols.stack(mark.pc), symbols.stack(mark.stop_pc)
            stack = f"{begin}\n\n{finish}" if begin and finish else ""
            add(number, Pipe.USERMARK, mark.name, stack, mark.pc, mark.start, mark.end, mark.detail)
        for ticks, known in ((fetched, core.fetched), (decoded, core.decoded)):
            own = np.full(len(order), -1, dtype=np.int64) if known is None else known
            ticks += [own, np.full(extra, -1, dtype=np.int64)]

    if len(names) > np.iinfo(np.uint16).max:
        raise InputError(f"{len(names)} different mnemonics are more than any chip has", where="logs")
    start = np.array(columns["start"], dtype=np.int64)
    rows = len(start)
    instructions = Instructions(
        cores=tuple(core.name for core in cores),
        names=tuple(names),
        stacks=tuple(stacks),
        core=np.array(columns["core"], dtype=np.uint16),
        pipe=np.array(columns["pipe"], dtype=np.uint8),
        name=np.array(columns["name"], dtype=np.uint16),
        stack=np.array(columns["stack"], dtype=np.uint32),
        pc=np.array(columns["pc"], dtype=np.uint64),
        start=start,
        end=np.array(columns["end"], dtype=np.int64),
        detail=columns["detail"],
        issue=start,
        process_bytes=np.array(columns["bytes"], dtype=np.int64),
        partner=np.full(rows, -1, dtype=np.int64),
        stall=np.zeros(rows, dtype=np.uint8),
        read_conflict=np.array(columns["read"], dtype=np.int32),
        write_conflict=np.array(columns["write"], dtype=np.int32),
        utilisation=np.array(columns["used"], dtype=np.float32),
    )
    overhead = any(core.fetched is not None for core in cores)
    extras = Extras(
        gpr=np.array(columns["gpr"], dtype=np.int32),
        warp=np.array(columns["warp"], dtype=np.int16) if any(w >= 0 for w in columns["warp"]) else None,
        fetched=np.concatenate(fetched) if overhead else None,
        decoded=np.concatenate(decoded) if overhead else None,
    )
    return instructions, extras


_LOOKED_AT = 500  # lines of each core: the 950 numbers every instruction
_INFER_NAMES = ("scalar_", "set_event", "wait_event")


def require_default_chip(cores: Iterable[CoreLogs], folder: Path) -> None:
    """Refuses logs that the usual chip cannot have written: chips of their family differ in their clock."""
    for core in cores:
        for text in islice(lines_of(core.starts), _LOOKED_AT):
            line = parse_line(text, popped=True)
            if line is None:
                continue
            if line.id >= 0 or Pipe(line.pipe) in VECTOR_LANES:
                what = "the lane" if line.id < 0 else "numbered instructions"
                shown = f" {Pipe(line.pipe).name}" if line.id < 0 else ""
                _ask(f"a 950 ({what}{shown})", ("Ascend950PR_9599", "Ascend950DT_950X"), folder)
            if line.name.startswith(_INFER_NAMES):
                _ask(f"a 310P (the name {line.name})", ("Ascend310P3", "Ascend310P5"), folder)


def _ask(family: str, names: tuple[str, ...], folder: Path) -> None:
    chips = [chip for name in names if (chip := find_chip(name))]
    examples = " or ".join(f"{chip.name} ({chip.mhz:g} MHz)" for chip in chips)
    raise RequestError(
        f"these are logs of {family}, whose chips have different clocks",
        where=str(folder),
        hint=f"say which chip wrote them: --soc-version {examples}",
    )


_PER_FETCH = 4
_WIDTH = 4


def fetch_and_decode(
    cache_lines: Iterable[str],
    decode_lines: Iterable[str],
    pcs: Sequence[int],
    starts: Sequence[int],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ticks for executions ordered by address and start; -1 where they are not known."""
    fetched = np.full(len(pcs), -1, dtype=np.int64)
    decoded = fetched.copy()
    fetches: dict[int, set[int]] = {}
    for line in cache_lines:
        found = parse_fetch(line)
        if found is not None:
            for step in range(_PER_FETCH):
                fetches.setdefault(found[1] + step * _WIDTH, set()).add(found[0])
    decodes: dict[int, list[int]] = {}
    for line in decode_lines:
        found = parse_decode(line)
        if found is not None:
            decodes.setdefault(found[1], []).append(found[0])
    if not fetches or not decodes:
        return fetched, decoded
    known = {pc: _last_fetches(ticks, sorted(fetches.get(pc, ()))) for pc, ticks in decodes.items()}
    used: dict[int, int] = {}
    given_up: set[int] = set()
    for row, (pc, start) in enumerate(zip(pcs, starts, strict=True)):
        if pc in given_up or pc not in decodes:
            continue
        number = used.get(pc, 0)
        if number >= len(decodes[pc]) or decodes[pc][number] > start:
            given_up.add(pc)
            continue
        used[pc] = number + 1
        if known[pc][number] >= 0:
            fetched[row], decoded[row] = known[pc][number], decodes[pc][number]
    return fetched, decoded


def _last_fetches(decodes: list[int], fetches: list[int]) -> list[int]:
    """For each decode the last fetch before it; from the first one without on, none."""
    found = [-1] * len(decodes)
    for row, tick in enumerate(decodes):
        place = bisect.bisect_left(fetches, tick)
        if place == 0:
            break
        found[row] = fetches[place - 1]
    return found


_MICRO_OPERATION_GAP = 8  # ends this close belong to one instruction


class Executed(NamedTuple):
    """One execution."""

    start: int
    end: int
    line: Line  # as it was issued
    detail: str


def _merged(start: Line, end: Line) -> Executed:
    threads = active_threads(end.detail)
    detail = start.detail if threads is None else f"{start.detail}, [threadNum:{threads}]"
    return Executed(start.tick, end.tick, start, detail)


def _collapsed(lines: list[Line], near: range) -> list[Line]:
    """Lines where one that follows the kept one by a distance in `near` takes its place."""
    kept = [lines[0]]
    for line in lines[1:]:
        if line.tick - kept[-1].tick in near:
            kept[-1] = line
        else:
            kept.append(line)
    return kept


def _fitted(starts: list[Line], ends: list[Line]) -> tuple[list[Line], list[Line]]:
    """Uneven lists made even: micro operations count once, what is left over is incomplete data."""
    if len(ends) > len(starts):
        ends = _collapsed(ends, range(0, _MICRO_OPERATION_GAP + 1))
    if len(ends) < len(starts):
        starts = _collapsed(starts, range(1, 2))
    return starts, ends


def pair_by_address(starts: dict[int, list[Line]], ends: dict[int, list[Line]]) -> list[Executed]:
    """The n-th start of an address belongs to its n-th end. Ordered by address and start."""
    found = []
    for pc, begun in starts.items():
        ended = ends.get(pc)
        if not ended:
            continue
        if len(begun) != len(ended):
            begun, ended = _fitted(begun, ended)
        found += [
            _merged(start, end) for start, end in zip(begun, ended, strict=False) if start.tick <= end.tick
        ]
    return sorted(found, key=lambda each: (each.line.pc, each.start))


def pair_by_id(starts: dict[int, list[Line]], ends: dict[int, list[Line]]) -> list[Executed]:
    """Ascend 950 numbers its instructions. Ordered by that number."""
    found = []
    for number in sorted(starts):
        for start, end in zip(starts[number], ends.get(number, []), strict=False):
            if start.tick <= end.tick:
                found.append(_merged(start, end))
    return found
