"""A trace as the page reads it: facts as JSON, instruction columns as raw little-endian arrays."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from insight_trace.model import Stall, Trace
from insight_trace.recording.flag_pairs import flags_at
from insight_trace.recording.frames import python_frame, split_frame, user_frames
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.pipes import pipe_name
from insight_trace.recording.store import HEADER, beside
from insight_trace.recording.stream import details_of
from insight_trace.trace.advice import advise
from insight_trace.trace.clean import Clean, clean
from insight_trace.trace.instr_metrics import instruction_text
from insight_trace.trace.stats import Stats, stats

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Operand text beyond this, compressed, gives up the values of single executions and keeps the operands.
_DETAIL_LIMIT = 20 << 20


@dataclass(frozen=True, slots=True)
class Payload:
    """One run: what the page holds of it, each part compressed with zlib."""

    facts: dict[str, Any]  # to be written as JSON
    columns: bytes
    details: bytes  # a line per row


def payload(trace: Trace, *, title: str, confidential: bool = False) -> Payload:
    """Everything the page shows of one run."""
    import numpy as np

    figures = stats(trace)
    cleaned = clean(trace, keep_scalar=True)
    rows, segments = _segments(trace, cleaned)
    columns = _columns(trace, cleaned, figures, rows)
    layout, blob = _packed(columns)
    facts = {
        "title": title,
        "notes": list(cleaned.notes),
        "confidential": confidential,
        "layout": layout,
        "segments": segments,
        "rows": len(rows),
        "origin": int(trace.instructions.start.min()) if len(trace.instructions) else 0,
        "names": list(trace.instructions.names),
        "frames": user_frames(trace.instructions.stacks),
        "stacks": [] if confidential else list(trace.instructions.stacks),
        "pcs": [f"0x{pc:x}" for pc in np.unique(trace.instructions.pc[rows]).tolist()],
        "stalls": [stall.name.lower().replace("_", " ") for stall in Stall],
        "flags": sorted(set(_flag_labels(cleaned))),
        "sources": {} if confidential else _sources(trace),
        "lines": _lines(trace),
        "arrows": {
            "hidden": cleaned.arrows.hidden,
            "unanchored": cleaned.arrows.unanchored,
            "unpaired": cleaned.arrows.unpaired,
        },
        **_figures(trace, figures),
    }
    details = _details(trace, rows, confidential)
    return Payload(facts, zlib.compress(blob, 6), details)


def _flag_labels(cleaned: Clean) -> list[str]:
    """By arrow, how its flag is called."""
    return [flag.label for flag in flags_at(cleaned.trace.instructions, cleaned.arrows.set_row)]


def _segments(trace: Trace, cleaned: Clean) -> tuple[NDArray[np.int64], list[dict[str, Any]]]:
    """Rows in the page's order, lane by lane by start, and where each lane begins and ends.

    Waits and barriers are drawn under the work of their pipe; misses and control on lanes of their own.
    """
    import numpy as np

    instructions = trace.instructions
    kind = kinds(instructions)
    rest = np.flatnonzero(np.isin(kind, (Kind.WAIT, Kind.BARRIER, Kind.MISS, Kind.CONTROL)))
    group = instructions.core[rest].astype(np.int64) * 256 + instructions.pipe[rest]
    order = np.lexsort((rest, instructions.start[rest], group))
    rest, group = rest[order], group[order]
    rows = np.r_[cleaned.rows, rest].astype(np.int64)
    segments: list[dict[str, Any]] = []
    bounds = np.searchsorted(cleaned.lane, np.arange(len(cleaned.lanes) + 1))
    for index, lane in enumerate(cleaned.lanes):
        segments.append(
            {
                "core": lane.core,
                "pipe": pipe_name(lane.pipe),
                "part": lane.part,
                "label": lane.label,
                "wait": False,
                "first": int(bounds[index]),
                "past": int(bounds[index + 1]),
            }
        )
    offset = len(cleaned.rows)
    for key in np.unique(group).tolist():
        first, past = (int(np.searchsorted(group, key, side)) for side in ("left", "right"))
        pipe = pipe_name(key & 255)
        waits = bool(np.isin(kind[rest[first]], (Kind.WAIT, Kind.BARRIER)))
        segments.append(
            {
                "core": key >> 8,
                "pipe": pipe,
                "part": 0,
                "label": pipe,
                "wait": waits,
                "first": offset + first,
                "past": offset + past,
            }
        )
    return rows, segments


def _columns(
    trace: Trace, cleaned: Clean, figures: Stats, rows: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    import numpy as np

    instructions = trace.instructions
    start, end = instructions.start[rows], finish(instructions)[rows]
    place = np.full(len(instructions), -1, np.int64)
    place[rows] = np.arange(len(rows))
    on_path = np.zeros(len(instructions), np.uint8)
    on_path[figures.path.row[~figures.path.idle]] = 1
    _, pc = np.unique(instructions.pc[rows], return_inverse=True)
    arrows = cleaned.arrows
    texts = _flag_labels(cleaned)
    labels = {label: index for index, label in enumerate(sorted(set(texts)))}
    used = np.rint(np.maximum(-1, instructions.utilisation[rows])).astype(np.int16)
    return {
        "start": start,
        "length": end - start,
        "issued": start - instructions.issue[rows],
        "name": instructions.name[rows],
        "stack": instructions.stack[rows],
        "pc": pc,
        "bytes": np.maximum(0, instructions.process_bytes[rows]),
        "stall": instructions.stall[rows],
        "read": np.maximum(-1, instructions.read_conflict[rows]),
        "write": np.maximum(-1, instructions.write_conflict[rows]),
        "used": used,
        "critical": on_path[rows],
        "arrow_from": place[arrows.producer],
        "arrow_to": place[arrows.consumer],
        "arrow_wait": place[arrows.wait_row],
        "arrow_label": np.array([labels[text] for text in texts], np.int64),
    }


def _packed(columns: dict[str, NDArray[Any]]) -> tuple[list[dict[str, Any]], bytes]:
    """Columns end to end, each as differences in the narrowest type that holds it; times differ little."""
    import numpy as np

    layout: list[dict[str, Any]] = []
    parts: list[bytes] = []
    offset = 0
    for name, column in columns.items():
        values = column.astype(np.int64)
        by_difference = name in ("start", "arrow_from", "arrow_to", "arrow_wait")
        if by_difference and len(values):
            values = np.diff(values, prepend=0)
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        type_ = next(
            (
                candidate
                for candidate in ("u1", "i2", "u2", "i4")
                if np.iinfo(candidate).min <= low and high <= np.iinfo(candidate).max
            ),
            "f8",
        )
        data = values.astype("<" + type_).tobytes()
        layout.append(
            {"name": name, "type": type_, "count": len(values), "offset": offset, "diff": by_difference}
        )
        padding = -len(data) % 8
        parts.append(data + b"\0" * padding)
        offset += len(data) + padding
    return layout, b"".join(parts)


def _details(trace: Trace, rows: NDArray[np.int64], confidential: bool) -> bytes:
    detail = trace.instructions.detail
    if not confidential:
        packer = zlib.compressobj(6)
        parts = []
        for first in range(0, len(rows), 65536):
            lines = [text.replace("\n", " ") for text in details_of(detail, rows[first : first + 65536])]
            parts.append(packer.compress(("\n".join(lines) + "\n").encode("utf-8", "replace")))
        parts.append(packer.flush())
        packed = b"".join(parts)
        if len(packed) <= _DETAIL_LIMIT:
            return packed
    cache: dict[str, str] = {}
    lines = []
    for text in details_of(detail, rows):
        short = cache.get(text)
        if short is None:
            short = cache[text] = instruction_text("", text).strip().replace("\n", " ")
        lines.append(short)
    return zlib.compress(("\n".join(lines) + "\n").encode("utf-8", "replace"), 6)


def _sources(trace: Trace) -> dict[str, str]:
    return {path: content.decode("utf-8", "replace") for path, content in trace.sources.items()}


def _lines(trace: Trace) -> dict[str, dict[str, list[int]]]:
    """file -> line -> [cycles of work, cycles of waits, executions, conflict cycles]."""
    import numpy as np

    instructions = trace.instructions
    frames = user_frames(instructions.stacks)
    if not frames:
        return {}
    kind = kinds(instructions)
    length = finish(instructions) - instructions.start
    waits = np.isin(kind, (Kind.WAIT, Kind.BARRIER))
    work = np.isin(kind, (Kind.WORK, Kind.SCALAR))
    conflicts = np.maximum(0, instructions.read_conflict) + np.maximum(0, instructions.write_conflict)
    sums = [
        np.bincount(instructions.stack, weights=weights, minlength=len(frames))
        for weights in (length * work, length * waits, kind != Kind.MISS, conflicts)
    ]
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


# where a tile of `.pto` lies -> the memory's name
_MEMORIES = {"vec": "UB", "mat": "L1", "left": "L0A", "right": "L0B", "acc": "L0C"}


def _tiles(trace: Trace) -> list[dict[str, Any]]:
    """Names of tiles, where the recording beside the trace knows them from the user's program."""
    if trace.path is None:
        return []
    places = (trace.path, beside(trace.path), beside(trace.path.parent))
    header = next((place / HEADER for place in places if (place / HEADER).is_file()), None)
    if header is None:
        return []
    try:
        tiles = json.loads(header.read_text(encoding="utf-8"))["about"]["tiles"]
        return [
            {"name": str(t["name"]), "memory": _MEMORIES[t["memory"]], "address": int(t["address"])}
            for t in tiles
            if t["memory"] in _MEMORIES
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _figures(trace: Trace, figures: Stats) -> dict[str, Any]:
    return {
        "soc": figures.soc_version,
        "tiles": _tiles(trace),
        "mhz": figures.mhz,
        "cycles": figures.cycles,
        "micros": figures.micros,
        "instructions": figures.instructions,
        "coreNames": list(trace.instructions.cores),
        "cores": [asdict(core) for core in figures.cores],
        "slowest": figures.slowest,
        "pipes": [asdict(pipe) for pipe in figures.pipes],
        "waits": [asdict(wait) for wait in figures.waits[:50]],
        "hot": [asdict(item) for item in figures.hot_instructions],
        "traffic": [asdict(item) for item in figures.traffic],
        "arithmetic": [asdict(item) for item in figures.arithmetic],
        "critical": [asdict(share) for share in figures.critical],
        "advice": [asdict(advice) for advice in advise(trace, figures)],
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
