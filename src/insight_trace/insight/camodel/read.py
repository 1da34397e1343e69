"""A folder of core model logs to a trace: what the vendor's exporter does, without CANN."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from insight_trace.chips import LogFamily, find_chip, load_chip
from insight_trace.errors import InputError, RequestError
from insight_trace.insight.camodel.files import CoreLogs, core_logs, find_dump, lines_of, throughput_logs
from insight_trace.insight.camodel.lines import Line, is_repeated, parse_cache_miss, parse_line, warp_of
from insight_trace.insight.camodel.log_chip import require_default_chip
from insight_trace.insight.camodel.logged_operands import bank_conflicts, bytes_moved, vector_utilisation
from insight_trace.insight.camodel.marks import Mark, Marks
from insight_trace.insight.camodel.mover_logs import read_throughput
from insight_trace.insight.camodel.overhead import fetch_and_decode
from insight_trace.insight.camodel.pairing import Executed, pair_by_address, pair_by_id
from insight_trace.insight.camodel.registers import live_registers
from insight_trace.insight.camodel.sources import Symbols, read_sources
from insight_trace.insight.lanes import CACHE_MISS
from insight_trace.insight.prepared import Extras
from insight_trace.model import Instructions, Pipe, Trace
from insight_trace.recording.kinds import FLAG_NAMES

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
