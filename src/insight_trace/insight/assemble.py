"""Puts gathered events together as a `Trace`: times to cycles, flags to rows, tables to columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from insight_trace.chips import known_clocks, load_chip
from insight_trace.errors import InputError
from insight_trace.insight.lanes import LANES
from insight_trace.insight.metrics import Lookup, Metrics
from insight_trace.insight.read_columns import EventColumns
from insight_trace.model import Counter, Instructions, Pipe, Trace
from insight_trace.recording.kinds import BARRIER, FLAG_NAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WARP = "WARP_"
_OVERHEAD_NAMES = ("cache_time", "ccu_time")


def assemble(
    gathered: EventColumns,
    metrics: Metrics | None,
    sources: Mapping[str, bytes],
    mhz: float | None,
    path: Path,
) -> Trace:
    flags, ends, partners = gathered.flags.whole()
    gathered.unread += gathered.flags.halves
    core, lane, name, stack, address, begin, lasting, moved = _joined(gathered, flags, ends)
    detail = gathered.detail + [gathered.flags.detail[row] for row in flags.tolist()]
    dropped = np.flatnonzero(np.isin(name, [gathered.names.get(each, -1) for each in _OVERHEAD_NAMES]))
    if len(dropped):
        # slices before an instruction, of the overhead metric; they are no executions
        kept = np.delete(np.arange(len(name)), dropped)
        core, lane, name, stack = core[kept], lane[kept], name[kept], stack[kept]
        address, begin, lasting, moved = address[kept], begin[kept], lasting[kept], moved[kept]
        detail = [detail[row] for row in kept.tolist()]
    warnings = list(gathered.warnings)
    if gathered.unread:
        warnings.append(f"{gathered.unread} events have a form that is not known and were left out")
    if len(begin) == 0:
        raise InputError("the timeline has no instruction", where=str(path), hint="nothing was executed")

    cores, core, pipe, warps = _places(gathered, core, lane, warnings)
    pc = _addresses(gathered, warnings)[address]
    names = list(gathered.names)
    lookup = None if metrics is None else Lookup(metrics, cores, core, pc)
    if mhz is None:
        mhz = _infer_clock(begin, lasting, lookup, _drawn_whole(names, name), warnings)
    if not np.isfinite(begin).all() or not np.isfinite(lasting).all() or _reach(begin, lasting) * mhz > 2**53:
        raise InputError(
            "the timeline has times that no run reaches",
            where=str(path),
            hint="it is damaged; export it again",
        )
    start = np.rint(begin * mhz).astype(np.int64)
    end = start + np.rint(np.maximum(lasting, 0) * mhz).astype(np.int64)
    flagged = np.arange(len(start)) >= len(start) - len(flags)
    end[flagged] = np.rint((begin + lasting)[flagged] * mhz).astype(np.int64)
    if len(start) and int(end.max()) > 1 << 23:
        warnings.append("times above 2**23 cycles are rounded: the files hold float32 microseconds")

    if warps.any():
        pipe = _warp_pipes(pipe, warps, pc, metrics)
    read_conflict = np.full(len(start), -1, dtype=np.int32)
    write_conflict = read_conflict.copy()
    utilisation = np.full(len(start), -1, dtype=np.float32)
    if lookup is not None:
        once = lookup.known & (lookup("Instructions Executed") == 1)
        hidden = once & ~_drawn_whole(names, name)
        start = np.where(hidden, np.clip(end - lookup("Cycles").astype(np.int64), 0, end), start)
        read_conflict = lookup("UB Read Conflict").astype(np.int32)
        write_conflict = lookup("UB Write Conflict").astype(np.int32)
        utilisation = lookup("Vector Utilization Percentage").astype(np.float32)
    if metrics is not None:
        pc, detail = _marks(names, name, pipe, pc, detail, metrics)

    order = np.lexsort((end, start, core))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    partner = np.full(len(order), -1, dtype=np.int64)
    base = len(order) - len(flags)
    waits, sets = partners + base
    partner[place[waits]] = place[sets]
    if len(names) > np.iinfo(np.uint16).max or len(cores) > np.iinfo(np.uint16).max:
        raise InputError(f"{len(names)} instruction names are more than a trace can hold", where=str(path))
    rows = order.tolist()
    return Trace(
        instructions=Instructions(
            cores=tuple(cores),
            names=tuple(names),
            stacks=tuple(gathered.stacks),
            core=core[order].astype(np.uint16),
            pipe=pipe[order].astype(np.uint8),
            name=name[order].astype(np.uint16),
            stack=stack[order].astype(np.uint32),
            pc=pc[order],
            start=start[order],
            end=end[order],
            detail=[detail[row] for row in rows],
            issue=start[order],
            process_bytes=moved[order],
            partner=partner,
            stall=np.zeros(len(order), dtype=np.uint8),
            read_conflict=read_conflict[order],
            write_conflict=write_conflict[order],
            utilisation=utilisation[order],
        ),
        mhz=mhz,
        sources=dict(sources),
        counters=_counters(gathered.counters),
        path=path,
        warnings=tuple(warnings),
    )


def _drawn_whole(names: Sequence[str], name: NDArray[Any]) -> NDArray[np.bool_]:
    """Rows whose slice is as long as their execution; barriers and flags are drawn shorter."""
    whole = np.array([each not in FLAG_NAMES and each != BARRIER for each in names], dtype=bool)
    chosen: NDArray[np.bool_] = whole[name]
    return chosen


def _joined(
    gathered: EventColumns, flags: NDArray[np.int64], ends: NDArray[np.float64]
) -> list[NDArray[Any]]:
    """Columns of slices and flags, one after the other."""
    columns = gathered.columns()
    if len(flags) == 0:
        return columns
    *added, begin = gathered.flag_columns(flags)
    added += [begin, ends - begin, np.full(len(flags), -1, dtype=np.int64)]
    return [np.concatenate(pair) for pair in zip(columns, added, strict=True)]


def _reach(begin: NDArray[Any], lasting: NDArray[Any]) -> float:
    """The time that lies farthest from zero."""
    return float(max(np.abs(begin).max(initial=0.0), np.abs(begin + lasting).max(initial=0.0)))


def _places(
    gathered: EventColumns, core: NDArray[Any], lane: NDArray[Any], warnings: list[str]
) -> tuple[list[str], NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Cores and pipes. In a core's own trace processes are pipes; elsewhere they are cores."""
    unknown: set[str] = set()

    def pipe_of(name: str) -> int:
        if name in LANES:
            return LANES[name]
        if not name.startswith(_WARP):
            unknown.add(name)
        return int(Pipe.ALL)

    processes, lanes = list(gathered.cores), list(gathered.lanes)
    if processes and all(isinstance(each, int) for each in processes):
        names = [gathered.process_names.get(each, "") for each in processes]
        pipes = np.array([pipe_of(each) for each in names], dtype=np.int64)[core]
        warps = np.array([each.startswith(_WARP) for each in names], dtype=bool)[core]
        cores, core = [gathered.default_core], np.zeros_like(core)
    else:
        cores = [str(each) for each in processes]
        pipes = np.array([pipe_of(str(each)) for each in lanes], dtype=np.int64)[lane]
        warps = np.array([str(each).startswith(_WARP) for each in lanes], dtype=bool)[lane]
    # scalar loads and stores are drawn on a lane of their own; the instruction is a scalar one
    pipes[pipes == Pipe.SCALARLDST] = Pipe.SCALAR
    if unknown:
        shown = ", ".join(sorted(unknown)[:5])
        warnings.append(f"lanes that are no pipe were read as ALL: {shown}")
    return cores, core, pipes, warps


def _addresses(gathered: EventColumns, warnings: list[str]) -> NDArray[np.uint64]:
    found = np.zeros(len(gathered.addresses), dtype=np.uint64)
    bad = 0
    for place, text in enumerate(gathered.addresses):
        if text:
            try:
                found[place] = int(text, 16) & 0xFFFFFFFFFFFFFFFF
            except ValueError:
                bad += 1
    if bad:
        warnings.append(f"{bad} addresses are not hexadecimal and were read as 0")
    return found


def _warp_pipes(
    pipe: NDArray[Any], warps: NDArray[np.bool_], pc: NDArray[np.uint64], metrics: Metrics | None
) -> NDArray[Any]:
    """SIMT instructions lie on the lane of their warp; the table still knows their pipe."""
    if metrics is None:
        return pipe
    known = dict(zip(metrics.addresses.tolist(), metrics.pipes, strict=True))
    pipe = pipe.copy()
    for row in np.flatnonzero(warps).tolist():
        pipe[row] = LANES.get(known.get(int(pc[row]), ""), int(Pipe.ALL))
    return pipe


def _marks(
    names: list[str],
    name: NDArray[Any],
    pipe: NDArray[Any],
    pc: NDArray[np.uint64],
    detail: list[str],
    metrics: Metrics,
) -> tuple[NDArray[np.uint64], list[str]]:
    """User marks have no address in the timeline; a table that knows one address for the mark has it."""
    rows = np.flatnonzero(pipe == Pipe.USERMARK)
    if len(rows) == 0:
        return pc, detail
    addresses: dict[str, list[int]] = {}
    for place, (lane, source) in enumerate(zip(metrics.pipes, metrics.sources, strict=True)):
        if lane == Pipe.USERMARK.name:
            addresses.setdefault(" ".join(source.split(" ")[:2]), []).append(place)
    pc, detail = pc.copy(), list(detail)
    for row in rows.tolist():
        found = addresses.get(names[name[row]], [])
        if len(found) == 1:
            pc[row] = metrics.addresses[found[0]]
            detail[row] = detail[row] or metrics.details[found[0]]
    return pc, detail


def _counters(series: Mapping[str, list[tuple[float, float]]]) -> tuple[Counter, ...]:
    return tuple(
        Counter(
            name=name,
            micros=np.array([ts for ts, _ in points], dtype=np.float64),
            megabytes_per_second=np.array([value for _, value in points], dtype=np.float64),
        )
        for name, points in series.items()
    )


_SAMPLE = 4096
_SNAP = 0.005


def _infer_clock(
    begin: NDArray[np.float64],
    lasting: NDArray[np.float64],
    lookup: Lookup | None,
    whole: NDArray[np.bool_],
    warnings: list[str],
) -> float:
    """MHz: cycles of the tables over durations of the slices, else the known clock that fits every time."""
    if lookup is not None:
        once = lookup.known & whole & (lookup("Instructions Executed") == 1) & (lasting > 0)
        cycles = lookup("Cycles")
        usable = np.flatnonzero(once & (cycles > 0))
        if len(usable):
            longest = usable[np.argsort(cycles[usable])[-32:]]
            ratio = float(np.median(cycles[longest] / lasting[longest]))
            return _snapped(ratio)
    times = _sample(begin, lasting)
    fitting = [mhz for mhz in known_clocks() if _fits(times, mhz)]
    if len(times) and fitting:
        return fitting[0]
    mhz = load_chip().mhz
    warnings.append(
        f"the clock is not known; times were read as cycles of {mhz:g} MHz (give mhz= to change it)"
    )
    return mhz


def _snapped(ratio: float) -> float:
    nearest = min(known_clocks(), key=lambda mhz: abs(mhz - ratio))
    if abs(nearest - ratio) <= 1e-4 * ratio:
        return nearest
    if abs(ratio - round(ratio)) <= 1e-5 * ratio and round(ratio) > 0:
        return float(round(ratio))
    return nearest if abs(nearest - ratio) <= _SNAP * ratio else round(ratio, 3)


def _sample(begin: NDArray[np.float64], lasting: NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.concatenate((begin[:_SAMPLE], lasting[:_SAMPLE]))
    return values[values > 0]


def _fits(times: NDArray[np.float64], mhz: float) -> bool:
    """Whether every time is a whole number of cycles, to the last bit of the float32 it was."""
    cycles: NDArray[Any] = np.rint(times * mhz)
    return bool(((cycles / mhz).astype(np.float32) == times.astype(np.float32)).all())
