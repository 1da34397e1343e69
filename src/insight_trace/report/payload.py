"""A trace as the page reads it: facts as JSON, instruction columns as raw little-endian arrays, core by core."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from insight_trace.model import Stall, Trace
from insight_trace.recording.cache_use import REQUEST, cache_use
from insight_trace.recording.flag_pairs import numbered_flags
from insight_trace.recording.frames import python_frame, split_frame, user_frames
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.operands import NONE
from insight_trace.recording.stream import PIECE, distinct, numbered_details, pieces, release
from insight_trace.recording.tile_lives import Lives, named_tiles, tile_lives
from insight_trace.report.page_rows import PageRows, Segment, load_strips, page_rows
from insight_trace.report.recorded_facts import estimates, part, recorded_facts, rows_of, shown_findings
from insight_trace.trace.advice import advise
from insight_trace.trace.clean import Clean, clean
from insight_trace.trace.instr_metrics import instruction_text
from insight_trace.trace.phases import mark_times
from insight_trace.trace.stats import Stats, stats
from insight_trace.trace.text import time_data

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Operand text beyond this, compressed, gives up the values of single executions and keeps the operands.
_DETAIL_LIMIT = 20 << 20
# Beyond so many rows a packed page must not take a minute to write.
_MANY_ROWS = 1_000_000
RECORD = "replay.json"  # what a replay writes into its workspace
_MOST_TEXTS = 1_000_000  # of operands: so many take seconds to spell
_ADDRESS_TABLE = 1 << 26  # addresses between the lowest and the highest that a table holds
_COLUMNS = (
    "steps", "length", "issued", "name", "stack", "pc", "bytes", "stall", "read", "write", "used", "critical", "asked",
    "missed", "op",
)  # fmt: skip
_BUCKETS = 2048  # of a core's load over the whole run


@dataclass(frozen=True, slots=True)
class Section:
    """More about single instructions: the detail beside the timeline shows it under a title of its own."""

    title: str
    # by row of the trace: lines of text, (text, row of the trace that a click on it leads to), and heat maps, rows of
    # digits from 0 to 9 with ! for what is no number
    entries: Mapping[int, Sequence[str | tuple[str, int] | list[str]]]


@dataclass(frozen=True, slots=True)
class PagePayload:
    """One run: what the page holds of it. Parts are compressed with zlib, and read when they are needed."""

    facts: dict[str, Any]  # to be written as JSON
    parts: Mapping[str, bytes]


def payload(
    trace: Trace, *, title: str, confidential: bool = False, sections: Sequence[Section] = ()
) -> PagePayload:
    """Everything the page shows of one run."""

    figures = stats(trace)
    cleaned = clean(trace, keep_scalar=True)
    rows = page_rows(trace, cleaned)
    recorded = recorded_facts(trace.path)
    flags, label = _flag_labels(cleaned)
    arrows = _arrows(trace, cleaned, rows, label)
    pcs = _Addresses(trace.instructions.pc, rows.rows)
    level = 6 if len(rows.rows) <= _MANY_ROWS else 3
    layout, ranges, parts = _core_parts(trace, figures, rows, pcs, level)
    strips, load = load_strips(trace, rows, _BUCKETS)
    lives = tile_lives(trace, named_tiles(rows_of(part(recorded, "about", "tiles"))))
    facts = {
        "title": title,
        "notes": list(cleaned.notes),
        "confidential": confidential,
        "columns": layout,
        "arrowColumns": layout_of(arrow_types := types_of(arrows)),
        "arrowCount": len(arrows["from"]),
        "segments": [_fields(segment) for segment in rows.segments],
        "ranges": ranges,
        "load": {"buckets": _BUCKETS, "strips": strips},
        "rows": len(rows.rows),
        "origin": int(trace.instructions.start.min()) if len(trace.instructions) else 0,
        "span": _span(trace),
        "names": list(trace.instructions.names),
        "frames": user_frames(trace.instructions.stacks),
        "stacks": [] if confidential else list(trace.instructions.stacks),
        "pcs": [f"0x{pc:x}" for pc in pcs.present.tolist()],
        "stalls": [stall.name.lower().replace("_", " ") for stall in Stall],
        "flags": flags,
        "sources": {} if confidential else _sources(trace),
        "lines": _lines(trace),
        "arrows": {
            "hidden": cleaned.arrows.hidden,
            "unanchored": cleaned.arrows.unanchored,
            "unpaired": cleaned.arrows.unpaired,
        },
        "findings": shown_findings(trace, recorded, rows),
        "sections": [] if confidential else [_section(trace, section, rows) for section in sections],
        "estimates": estimates(recorded),
        "checks": rows_of(part(recorded, "checks")),
        "marks": [asdict(mark) for mark in mark_times(trace)],
        "ops": _op_names(trace),
        "hotLines": [
            {**asdict(line), "what": "" if confidential else line.what} for line in figures.hot_lines[:8]
        ],
        "workspace": _workspace(trace.path),
        **_tile_facts(lives),
        **_figures(trace, figures, rows),
    }
    parts["load"] = zlib.compress(load.tobytes(), 6)
    parts["arrows"] = zlib.compress(end_to_end(arrows, arrow_types), level)
    if lives is not None:
        parts |= _life_parts(lives, rows, facts)
    for core, texts, spelled in _details(trace, rows, confidential, level):
        parts[f"details{core}"] = texts
        kind = narrowest(*bounds(spelled))
        next(one for one in ranges if one["core"] == core)["spelled"] = kind
        parts[f"spelled{core}"] = zlib.compress(end_to_end({"spelled": spelled}, {"spelled": kind}), level)
    return PagePayload(facts, parts)


def _fields(segment: Segment) -> dict[str, Any]:
    return {field.name: getattr(segment, field.name) for field in dataclasses.fields(segment)}


def _span(trace: Trace) -> int:
    """From the first start to the last end."""
    columns = trace.instructions
    return int(finish(columns).max() - columns.start.min()) if len(columns) else 0


def _flag_labels(cleaned: Clean) -> tuple[list[str], NDArray[np.int64]]:
    """How the flags of arrows are called, and by arrow which of these names its flag has."""
    import numpy as np

    flags, number = numbered_flags(cleaned.trace.instructions, cleaned.arrows.set_row)
    names = sorted({flag.label for flag in flags})
    return names, np.array([names.index(flag.label) for flag in flags], np.int64)[number]


class _Addresses:
    """Addresses of the rows that are drawn: each once, and the number of each row's."""

    def __init__(self, pc: NDArray[np.uint64], rows: NDArray[np.int64]) -> None:
        import numpy as np

        self._pc = pc
        self._low = pc.min() if len(pc) else np.uint64(0)
        self._table: NDArray[np.int64] | None = None
        if len(pc) and int(pc.max()) - int(self._low) < _ADDRESS_TABLE:
            seen = np.zeros(int(pc.max() - self._low) + 1, bool)
            for begin in range(0, len(rows), PIECE):
                seen[pc[rows[begin : begin + PIECE]] - self._low] = True
            self._table = np.cumsum(seen) - 1
            self.present: NDArray[np.uint64] = np.flatnonzero(seen).astype(np.uint64) + self._low
        else:
            self.present = distinct(pc[rows])

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        import numpy as np

        pc = self._pc[rows]
        return np.searchsorted(self.present, pc) if self._table is None else self._table[pc - self._low]


def _core_parts(
    trace: Trace, figures: Stats, rows: PageRows, pcs: _Addresses, level: int
) -> tuple[list[dict[str, str]], list[dict[str, Any]], dict[str, bytes]]:
    """The columns core by core: their layout over all cores, where each core's rows lie with its own types, and the arrays.

    `before` of a core is the work of all rows before it.
    """
    import numpy as np

    instructions = trace.instructions
    on_path = np.zeros(len(instructions), np.uint8)
    on_path[figures.path.row[~figures.path.idle]] = 1
    # of L2, in its requests; a request is never 0, so 0 says that nobody knows
    asked, missed = np.zeros((2, len(instructions)), np.uint32)
    if (use := cache_use(instructions)) is not None:
        asked[use.rows], missed[use.rows] = use.asked, use.missed
    lanes: dict[int, list[int]] = {}
    for segment in rows.segments:
        lanes.setdefault(segment.core, []).append(segment.first)
    extent = dict.fromkeys(_COLUMNS, (0, 0))
    ranges: list[dict[str, Any]] = []
    parts: dict[str, bytes] = {}
    before = 0
    for core, first, past in rows.cores:
        chosen = rows.rows[first:past]
        start = instructions.start[chosen]
        steps = np.diff(start, prepend=0)
        steps[np.array(lanes[core]) - first] = 0  # the first of a lane stands in its segment
        length = np.maximum(start, instructions.end[chosen]) - start
        columns = {
            "steps": steps,
            "length": length,
            "issued": start - instructions.issue[chosen],
            "name": instructions.name[chosen],
            "stack": instructions.stack[chosen],
            "pc": pcs.of(chosen),
            "bytes": np.maximum(0, instructions.process_bytes[chosen]),
            "stall": instructions.stall[chosen],
            "read": np.maximum(-1, instructions.read_conflict[chosen]),
            "write": np.maximum(-1, instructions.write_conflict[chosen]),
            "used": np.rint(np.maximum(-1, instructions.utilisation[chosen])).astype(np.int16),
            "critical": on_path[chosen],
            "asked": asked[chosen],
            "missed": missed[chosen],
            "op": _ops(trace, chosen),
        }
        types = {}
        for name, column in columns.items():
            low, high = bounds(column)
            types[name] = narrowest(low, high)
            lowest, highest = extent[name]
            extent[name] = min(low, lowest), max(high, highest)
        ranges.append(
            {"core": core, "first": first, "past": past, "before": before, "types": list(types.values())}
        )
        before += int(length.sum())
        parts[f"core{core}"] = zlib.compress(end_to_end(columns, types), level)
    release(instructions)
    return layout_of({name: narrowest(*both) for name, both in extent.items()}), ranges, parts


def _op_names(trace: Trace) -> list[str]:
    """What the column `op` names; its first entry stands for instructions outside of tile ops."""
    operands = trace.instructions.operands
    return ["", *(operands.ops if operands is not None else ())]


def _ops(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """By row, the tile op that issued it: its place in `_op_names`."""
    import numpy as np

    operands = trace.instructions.operands
    if operands is None or not len(operands.calls):
        return np.zeros(len(rows), np.int64)
    call = operands.call[rows]
    known = call != NONE
    number = operands.calls["op"][np.where(known, call, 0)].astype(np.int64) + 1
    return np.where(known & (number <= len(operands.ops)), number, 0)


def _workspace(path: Path | None) -> str:
    """The folder that `why` takes, as `replay` wrote it around a trace; "" for a trace from elsewhere."""
    for folder in path.parents if path is not None else ():
        if (folder / RECORD).is_file():
            return folder.name
    return ""


def _arrows(
    trace: Trace, cleaned: Clean, rows: PageRows, label: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Flags by the row they leave; the orders by target and by time come sorted, so that the page sorts nothing."""
    import numpy as np

    arrows = cleaned.arrows
    order = np.argsort(rows.place[arrows.producer], kind="stable")
    target = rows.place[arrows.consumer][order]
    leaves = finish(trace.instructions)[arrows.producer][order]
    by_time = np.argsort(leaves, kind="stable")
    return {
        "from": differences(rows.place[arrows.producer][order]),
        "to": target,
        "wait": rows.place[arrows.wait_row][order],
        "label": label[order],
        "by_target": np.argsort(target, kind="stable"),
        "by_time": by_time,
        "times": differences(leaves[by_time]),
    }


def _section(trace: Trace, section: Section, rows: PageRows) -> dict[str, Any]:
    """Instructions of one op have the same lines: each text is written once."""
    known: dict[int, int] = {}
    texts: list[list[Any]] = []
    entries: dict[str, int] = {}
    for row, lines in section.entries.items():
        if id(lines) not in known:
            known[id(lines)] = len(texts)
            texts.append([_line(trace, line, rows) for line in lines])
        entries[str(rows.nearest(trace, row))] = known[id(lines)]
    return {"title": section.title, "texts": texts, "entries": entries}


def _line(trace: Trace, line: str | tuple[str, int] | list[str], rows: PageRows) -> Any:
    if isinstance(line, tuple):
        return {"text": line[0], "row": rows.nearest(trace, line[1])}
    return {"heat": line} if isinstance(line, list) else line


def _tile_facts(lives: Lives | None) -> dict[str, Any]:
    if lives is None:
        return {"tiles": [], "lives": {}}
    return {"tiles": [asdict(tile) for tile in lives.tiles], "lives": {}}


def _life_parts(lives: Lives, rows: PageRows, facts: dict[str, Any]) -> dict[str, bytes]:
    """Lives core by core; the facts say how many there are, and how many of them overlap."""
    columns = {
        "tile": lives.tile,
        "begin": lives.begin,
        "length": lives.end - lives.begin,
        "first": rows.place[lives.first],
        "last": rows.place[lives.last],
        "written": lives.written,
        "overlap": lives.overlap,
    }
    types = types_of(columns)
    facts["lifeColumns"] = layout_of(types)
    parts = {}
    for core, _, _ in rows.cores:
        mine = lives.core == core
        if mine.any():
            clobbered = int((lives.overlap[mine] >= 0).sum())
            facts["lives"][str(core)] = {"count": int(mine.sum()), "overlaps": clobbered}
            packed = end_to_end({name: column[mine] for name, column in columns.items()}, types)
            parts[f"lives{core}"] = zlib.compress(packed, 6)
    return parts


def _details(
    trace: Trace, rows: PageRows, confidential: bool, level: int
) -> Iterator[tuple[int, bytes, NDArray[np.int64]]]:
    """Operand text core by core: each text once, a line for each, and which of them each row has."""
    detail = trace.instructions.detail
    if not confidential:
        whole, size, count = [], 0, 0
        for core, first, past in rows.cores:
            texts, spelled = numbered_details(detail, rows.rows[first:past], values=True)
            whole.append((core, _packed_lines(texts, level), spelled))
            size += len(whole[-1][1])
            count += len(texts)
            if size > _DETAIL_LIMIT or count > _MOST_TEXTS:
                break
        else:
            yield from whole
            return
    cache: dict[str, str] = {}
    for core, first, past in rows.cores:
        texts, spelled = numbered_details(detail, rows.rows[first:past], values=False)
        yield core, _packed_lines(_short(texts, cache), level), spelled


def _short(texts: Iterable[str], cache: dict[str, str]) -> Iterator[str]:
    for text in texts:
        short = cache.get(text)
        if short is None:
            short = cache[text] = instruction_text("", text).strip()
        yield short


def _packed_lines(lines: Iterable[str], level: int) -> bytes:
    text = "\n".join(line.replace("\n", " ") for line in lines)
    return zlib.compress((text + "\n").encode("utf-8", "replace"), level)


def _sources(trace: Trace) -> dict[str, str]:
    return {path: content.decode("utf-8", "replace") for path, content in trace.sources.items()}


def _lines(trace: Trace) -> dict[str, dict[str, list[int]]]:
    """file -> line -> [cycles of work, cycles of waits, executions, conflict cycles]."""
    import numpy as np

    instructions = trace.instructions
    frames = user_frames(instructions.stacks)
    if not frames:
        return {}
    sums = np.zeros((4, len(frames)))
    for _, piece in pieces(instructions):
        kind = kinds(piece)
        length = finish(piece) - piece.start
        work = (kind == Kind.WORK) | (kind == Kind.SCALAR)
        waits = (kind == Kind.WAIT) | (kind == Kind.BARRIER)
        conflicts = np.maximum(0, piece.read_conflict) + np.maximum(0, piece.write_conflict)
        for place, weights in enumerate((length * work, length * waits, kind != Kind.MISS, conflicts)):
            sums[place] += np.bincount(piece.stack, weights=weights, minlength=len(frames))
    result: dict[str, dict[str, list[int]]] = {}
    for index, stack in enumerate(instructions.stacks):
        # the kernel's line, and the line of the user's Python that it was made of
        for frame in dict.fromkeys((frames[index], python_frame(stack))):
            path, line = split_frame(frame)
            if not line:
                continue
            entry = result.setdefault(path, {}).setdefault(str(line), [0, 0, 0, 0])
            for place, column in enumerate(sums):
                entry[place] += round(float(column[index]))
    return result


def _figures(trace: Trace, figures: Stats, rows: PageRows) -> dict[str, Any]:
    return {
        **time_data(figures.cycles, figures.confidence, figures.launch, figures.memory),
        "request": REQUEST,
        "soc": figures.soc_version,
        "mhz": figures.mhz,
        "cycles": figures.cycles,
        "micros": figures.micros,
        "instructions": figures.instructions,
        "coreNames": list(trace.instructions.cores),
        "cores": [asdict(core) for core in figures.cores],
        "slowest": figures.slowest,
        "pipes": [asdict(pipe) for pipe in figures.pipes],
        "phases": [asdict(phase) for phase in figures.phases],
        "waits": [asdict(wait) for wait in figures.waits[:50]],
        "hot": [asdict(item) for item in figures.hot_instructions],
        "traffic": [asdict(item) for item in figures.traffic],
        "arithmetic": [asdict(item) for item in figures.arithmetic],
        "critical": [asdict(share) for share in figures.critical],
        "advice": [
            {**asdict(advice), "row": rows.nearest(trace, advice.row)} for advice in advise(trace, figures)
        ],
        "conflictCycles": figures.conflict_cycles,
        "cacheMisses": figures.cache_misses,
        "roofs": {
            "chip": figures.roofs.chip,
            "exact": figures.roofs.exact,
            "memories": dict(figures.roofs.memories),
        },
        "counters": [
            {
                "name": counter.name,
                "micros": counter.micros.tolist(),
                "rate": counter.megabytes_per_second.tolist(),
            }
            for counter in trace.counters
        ],
    }


_TYPES = ("u1", "i2", "u2", "i4")


def bounds(values: NDArray[Any]) -> tuple[int, int]:
    return (int(values.min()), int(values.max())) if len(values) else (0, 0)


def narrowest(low: int, high: int) -> str:
    """The smallest type that holds all between; numbers beyond 31 bits are doubles, as in JavaScript."""
    import numpy as np

    fitting = (kind for kind in _TYPES if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return next(fitting, "f8")


def end_to_end(columns: Mapping[str, NDArray[Any]], types: Mapping[str, str]) -> bytes:
    """Each column in its type, padded to eight bytes."""
    parts = []
    for name, column in columns.items():
        data = column.astype("<" + types[name]).tobytes()
        parts.append(data + b"\0" * (-len(data) % 8))
    return b"".join(parts)


def types_of(columns: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    return {name: narrowest(*bounds(column)) for name, column in columns.items()}


def layout_of(types: Mapping[str, str]) -> list[dict[str, str]]:
    """Names and types in the order of the arrays; the script works out where each begins."""
    return [{"name": name, "type": kind} for name, kind in types.items()]


def differences(values: NDArray[Any]) -> NDArray[np.int64]:
    """From one value to the next, the first from 0: sorted numbers become small ones."""
    import numpy as np

    steps: NDArray[np.int64] = values.astype(np.int64)
    steps[1:] -= steps[:-1].copy()
    return steps
