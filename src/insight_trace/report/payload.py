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
from insight_trace.recording.flag_pairs import flags_at
from insight_trace.recording.frames import python_frame, split_frame, user_frames
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.operands import NONE
from insight_trace.recording.stream import details_of, distinct
from insight_trace.recording.tile_lives import Lives, named_tiles, tile_lives
from insight_trace.report.page_arrays import differences, end_to_end, layout_of, types_of
from insight_trace.report.page_rows import PageRows, load_strips, page_rows, start_steps
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
    columns = _columns(trace, figures, rows)
    labels = _flag_labels(cleaned)
    arrows = _arrows(trace, cleaned, rows, labels)
    strips, load = load_strips(trace, rows, _BUCKETS)
    lives = tile_lives(trace, named_tiles(rows_of(part(recorded, "about", "tiles"))))
    facts = {
        "title": title,
        "notes": list(cleaned.notes),
        "confidential": confidential,
        "columns": layout_of(types := types_of(columns)),
        "arrowColumns": layout_of(arrow_types := types_of(arrows)),
        "arrowCount": len(arrows["from"]),
        "segments": [dataclasses.asdict(segment) for segment in rows.segments],
        "ranges": _ranges(rows, columns["length"]),
        "load": {"buckets": _BUCKETS, "strips": strips},
        "rows": len(rows.rows),
        "origin": int(trace.instructions.start.min()) if len(trace.instructions) else 0,
        "span": _span(trace),
        "names": list(trace.instructions.names),
        "frames": user_frames(trace.instructions.stacks),
        "stacks": [] if confidential else list(trace.instructions.stacks),
        "pcs": [f"0x{pc:x}" for pc in distinct(trace.instructions.pc[rows.rows]).tolist()],
        "stalls": [stall.name.lower().replace("_", " ") for stall in Stall],
        "flags": sorted(set(labels)),
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
    level = 6 if len(rows.rows) <= _MANY_ROWS else 3
    parts = {"load": zlib.compress(load.tobytes(), 6)}
    parts["arrows"] = zlib.compress(end_to_end(arrows, arrow_types), level)
    for core, first, past in rows.cores:
        mine = {name: column[first:past] for name, column in columns.items()}
        parts[f"core{core}"] = zlib.compress(end_to_end(mine, types), level)
    if lives is not None:
        parts |= _life_parts(lives, rows, facts)
    parts |= {f"details{core}": text for core, text in _details(trace, rows, confidential, level)}
    return PagePayload(facts, parts)


def _span(trace: Trace) -> int:
    """From the first start to the last end."""
    columns = trace.instructions
    return int(finish(columns).max() - columns.start.min()) if len(columns) else 0


def _flag_labels(cleaned: Clean) -> list[str]:
    """By arrow, how its flag is called."""
    flags = flags_at(cleaned.trace.instructions, cleaned.arrows.set_row)
    texts = {flag: flag.label for flag in set(flags)}
    return [texts[flag] for flag in flags]


def _ranges(rows: PageRows, length: NDArray[np.int64]) -> list[dict[str, int]]:
    """Where each core's rows lie, and the work of all rows before them."""
    import numpy as np

    before = np.r_[0, np.cumsum(length)]
    return [
        {"core": core, "first": first, "past": past, "before": int(before[first])}
        for core, first, past in rows.cores
    ]


def _columns(trace: Trace, figures: Stats, rows: PageRows) -> dict[str, NDArray[Any]]:
    import numpy as np

    instructions, chosen = trace.instructions, rows.rows
    start, end = instructions.start[chosen], finish(instructions)[chosen]
    on_path = np.zeros(len(instructions), np.uint8)
    on_path[figures.path.row[~figures.path.idle]] = 1
    _, pc = np.unique(instructions.pc[chosen], return_inverse=True)
    # of L2, in its requests; a request is never 0, so 0 says that nobody knows
    asked, missed = np.zeros((2, len(instructions)), np.int64)
    if (use := cache_use(instructions)) is not None:
        asked[use.rows], missed[use.rows] = use.asked, use.missed
    return {
        "steps": start_steps(rows, start),
        "length": end - start,
        "issued": start - instructions.issue[chosen],
        "name": instructions.name[chosen],
        "stack": instructions.stack[chosen],
        "pc": pc,
        "bytes": np.maximum(0, instructions.process_bytes[chosen]),
        "stall": instructions.stall[chosen],
        "read": np.maximum(-1, instructions.read_conflict[chosen]),
        "write": np.maximum(-1, instructions.write_conflict[chosen]),
        "used": np.rint(np.maximum(-1, instructions.utilisation[chosen])).astype(np.int16),
        "critical": on_path[chosen],
        "asked": asked[chosen],
        "missed": missed[chosen],
        "op": _ops(trace)[chosen],
    }


def _op_names(trace: Trace) -> list[str]:
    """What the column `op` names; its first entry stands for instructions outside of tile ops."""
    operands = trace.instructions.operands
    return ["", *(operands.ops if operands is not None else ())]


def _ops(trace: Trace) -> NDArray[np.int64]:
    """By row, the tile op that issued it: its place in `_op_names`."""
    import numpy as np

    operands = trace.instructions.operands
    if operands is None or not len(operands.calls):
        return np.zeros(len(trace.instructions), np.int64)
    known = operands.call != NONE
    number = operands.calls["op"][np.where(known, operands.call, 0)].astype(np.int64) + 1
    return np.where(known & (number <= len(operands.ops)), number, 0)


def _workspace(path: Path | None) -> str:
    """The folder that `why` takes, as `replay` wrote it around a trace; "" for a trace from elsewhere."""
    for folder in path.parents if path is not None else ():
        if (folder / RECORD).is_file():
            return folder.name
    return ""


def _arrows(trace: Trace, cleaned: Clean, rows: PageRows, texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Flags by the row they leave; the orders by target and by time come sorted, so that the page sorts nothing."""
    import numpy as np

    arrows = cleaned.arrows
    labels = {label: index for index, label in enumerate(sorted(set(texts)))}
    order = np.argsort(rows.place[arrows.producer], kind="stable")
    target = rows.place[arrows.consumer][order]
    leaves = finish(trace.instructions)[arrows.producer][order]
    by_time = np.argsort(leaves, kind="stable")
    return {
        "from": differences(rows.place[arrows.producer][order]),
        "to": target,
        "wait": rows.place[arrows.wait_row][order],
        "label": np.array([labels[text] for text in texts], np.int64)[order],
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


def _details(trace: Trace, rows: PageRows, confidential: bool, level: int) -> Iterator[tuple[int, bytes]]:
    """Operand text core by core, a line per row."""
    detail = trace.instructions.detail
    if not confidential:
        whole, size = [], 0
        for core, first, past in rows.cores:
            lines = (text.replace("\n", " ") for text in _texts(detail, rows.rows[first:past]))
            whole.append((core, _packed_lines(lines, level)))
            size += len(whole[-1][1])
            if size > _DETAIL_LIMIT:
                break
        else:
            yield from whole
            return
    cache: dict[str, str] = {}
    for core, first, past in rows.cores:
        yield core, _packed_lines(_short(_texts(detail, rows.rows[first:past]), cache), level)


def _texts(detail: Sequence[str], rows: NDArray[np.int64]) -> Iterator[str]:
    for first in range(0, len(rows), 65536):
        yield from details_of(detail, rows[first : first + 65536])


def _short(texts: Iterable[str], cache: dict[str, str]) -> Iterator[str]:
    for text in texts:
        short = cache.get(text)
        if short is None:
            short = cache[text] = instruction_text("", text).strip().replace("\n", " ")
        yield short


def _packed_lines(lines: Iterable[str], level: int) -> bytes:
    text = "\n".join(lines)
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
