"""The recording as tables of SQL: what `sql_contents` holds, and views that join texts to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from insight_trace.model import Stall
from insight_trace.recording.kinds import Kind
from insight_trace.recording.operands import MEMORIES, Form, operands_of
from insight_trace.recording.pipes import pipe_name
from insight_trace.recording.store import Recording
from insight_trace.trace import sql_contents
from insight_trace.trace.sql_contents import Columns, Rows


@dataclass(frozen=True, slots=True)
class SqlTable:
    """One table: what its columns mean, and where they come from (one of `columns`, `rows`; `view` over both)."""

    what: str
    meaning: Mapping[str, str]  # by column
    view: str = ""
    needs: tuple[str, ...] = ()  # what the view reads
    columns: Callable[[Recording], Columns] | None = None
    rows: Callable[[Recording], Rows] | None = None
    types: tuple[str, ...] = ()  # of `rows`


_INSTRUCTIONS = """
select i.row, c.text as core, p.text as pipe, n.text as name, k.text as kind, f.file, f.line,
       i.issue as issue_cycle, i.start as start_cycle, i.finish as end_cycle, i.finish - i.start as cycles,
       case when i.bytes > 0 then i.bytes end as bytes, t.text as stall,
       case when i.partner >= 0 then i.partner end as partner,
       case when i.read_conflict >= 0 then i.read_conflict end as read_conflict,
       case when i.write_conflict >= 0 then i.write_conflict end as write_conflict,
       case when i.utilisation >= 0 then i.utilisation end as utilisation,
       o.text as form, case when i.call <> 4294967295 then i.call::bigint end as call,
       case when i.asked > 0 then i.asked end as l2_asked, case when i.asked > 0 then i.missed end as l2_missed
from _stream i join _core_names c on c.id = i.core join _pipe_names p on p.id = i.pipe
     join _names n on n.id = i.name join _kind_names k on k.id = i.kind join _frames f on f.id = i.stack
     join _stall_names t on t.id = i.stall join _form_names o on o.id = i.form
"""
_OPERANDS = """
select o.instruction, w.text as which, (f.role & 1) = 1 as reads, (f.role & 2) = 2 as writes, m.text as memory,
       case f.owner when 0 then 'own' when 1 then 'cube' else 'vector ' || (f.owner - 2) end as owner,
       o.address + f.low as begin_byte, o.address + f.high as end_byte, f.bytes, f.exact = 1 as exact,
       case when o.tile <> 4294967295 then o.tile::bigint end as tile
from _operands o join _footprints f on f.id = o.footprint join _memory_names m on m.id = f.memory
     join _which_names w on w.id = f.which
"""
_CALLS_VIEW = """
select c.call, n.text as op, min(i.core) as core, min(i.file) as file, min(i.line) as line, min(i.row) as first_row,
       count(*) as instructions, min(i.start_cycle) as start_cycle, max(i.end_cycle) as end_cycle,
       max(i.end_cycle) - min(i.start_cycle) as cycles
from _calls c join _op_names n on n.id = c.op join instructions i on i.call = c.call group by c.call, n.text
"""
_LINES = """
select i.file, i.line, trim(any_value(s.text)) as text,
       coalesce(sum(i.cycles) filter (i.kind in ('work', 'scalar')), 0)::bigint as cycles,
       coalesce(sum(i.cycles) filter (i.kind in ('wait', 'barrier')), 0)::bigint as waiting, count(*) as executed
from instructions i left join sources s on s.file = i.file and s.line = i.line
where i.file is not null group by i.file, i.line
"""
_FLAGS = """
select s.row as set_row, w.row as wait_row, s.core as set_core, s.pipe as set_by, w.core as core, w.pipe as pipe,
       s.file as set_file, s.line as set_line, w.file as file, w.line as line, w.cycles
from instructions w join instructions s on s.row = w.partner
"""
_LIVES = """
select c.text as core, p.name, p.memory, p.address, p.bytes, l.begin as start_cycle, l.end as end_cycle,
       l.first as first_row, l.last as last_row, l.written, o.name as overwritten_by
from _lives l join _places p on p.place = l.tile join _core_names c on c.id = l.core
     left join _places o on o.place = l.overlap
"""

_NAMES = ("bigint", "varchar")


def _name_table(values: Callable[[Recording], Iterable[Any]]) -> SqlTable:
    return SqlTable(
        "", {"id": "", "text": ""}, rows=lambda recording: enumerate(values(recording)), types=_NAMES
    )


# Names that begin with _ are what the others are made of.
TABLES: dict[str, SqlTable] = {
    "run": SqlTable(
        "one row: what ran, and how long",
        {
            "chip": "its name",
            "mhz": "of the core's clock",
            "cycles": "from the first start to the last end",
            "micros": "the same in microseconds",
            "low": "the lower end of the 90 % interval of cycles on a chip",
            "high": "and less than these",
            "estimated": "share of the time that rests on estimated numbers",
            "scene": "where the kernel comes from",
            "case": "of the scene",
            "target": "a2a3 or a5",
            "preset": "device or camodel",
            "version": "of the program that recorded it",
        },
        rows=sql_contents.run,
        types=("varchar", "double", "bigint", "double", "bigint", "bigint", "double", *["varchar"] * 5),
    ),
    "instructions": SqlTable(
        "every executed instruction; rows of one core are in program order",
        {
            "row": "its number",
            "core": "core0.veccore0, …",
            "pipe": "MTE2, VECTOR, …",
            "name": "the mnemonic",
            "kind": "work, scalar, set, wait, barrier, miss, control, mark",
            "file": "of the kernel",
            "line": "of the file",
            "issue_cycle": "the scalar unit hands it over",
            "start_cycle": "its pipe takes it up",
            "end_cycle": "it is done",
            "cycles": "from start to end",
            "bytes": "to or from global memory",
            "stall": "why it started later than it was issued",
            "partner": "row of the set that ended this wait",
            "read_conflict": "cycles lost to banks",
            "write_conflict": "the same for writes",
            "utilisation": "vector lanes in use, percent",
            "form": "vector, transfer, multiply, flag, …",
            "call": "the tile op that issued it",
            "l2_asked": "requests of 128 bytes",
            "l2_missed": "those that L2 did not have",
        },
        view=_INSTRUCTIONS,
        needs=(
            *("_stream", "_core_names", "_pipe_names", "_names", "_kind_names", "_frames", "_stall_names"),
            "_form_names",
        ),
    ),
    "operands": SqlTable(
        "what instructions read and write",
        {
            "instruction": "its row",
            "which": "result, source, second source, further",
            "reads": "",
            "writes": "",
            "memory": "UB, L1, L0A, L0B, L0C, BT, FB, GM, …",
            "owner": "whose memory: own, or that of the block's cube core, vector 0, vector 1",
            "begin_byte": "the first byte that it may touch",
            "end_byte": "the byte behind the last",
            "bytes": "that it touches in between",
            "exact": "false: the data decide which of them",
            "tile": "row of `tiles`",
        },
        view=_OPERANDS,
        needs=("_operands", "_footprints", "_memory_names", "_which_names"),
    ),
    "tiles": SqlTable(
        "tiles and global tensors as tile ops name them",
        {
            "tile": "its number",
            "name": "in the kernel's source, or in a PyPTO program",
            "memory": "",
            "address": "",
            "dtype": "",
            "shape": "",
            "valid": "rows and columns that hold something",
        },
        rows=sql_contents.tiles,
        types=("bigint", "varchar", "varchar", "ubigint", "varchar", "varchar", "varchar"),
    ),
    "lives": SqlTable(
        "values on chip, from the first write to the last read",
        {
            "core": "",
            "name": "of the tile",
            "memory": "",
            "address": "",
            "bytes": "",
            "start_cycle": "of the first write",
            "end_cycle": "of the last read",
            "first_row": "the instruction that begins it",
            "last_row": "the one that ends it",
            "written": "false: a view of bytes that another tile wrote",
            "overwritten_by": "the tile that is written over it while it is still to be read",
        },
        view=_LIVES,
        needs=("_lives", "_places", "_core_names"),
    ),
    "calls": SqlTable(
        "every executed tile op",
        {
            "call": "its number",
            "op": "TLOAD, TADD, …",
            "core": "",
            "file": "",
            "line": "",
            "first_row": "its first instruction",
            "instructions": "how many it issued",
            "start_cycle": "",
            "end_cycle": "",
            "cycles": "from start to end",
        },
        view=_CALLS_VIEW,
        needs=("_calls", "_op_names", "instructions"),
    ),
    "lines": SqlTable(
        "lines of the kernel and what they cost",
        {
            "file": "",
            "line": "",
            "text": "of the source",
            "cycles": "of work, all cores together",
            "waiting": "cycles of waits and barriers",
            "executed": "instructions",
        },
        view=_LINES,
        needs=("instructions", "sources"),
    ),
    "flags": SqlTable(
        "flags that were waited for",
        {
            "set_row": "",
            "wait_row": "",
            "set_core": "",
            "set_by": "the pipe that raises it",
            "core": "that waits",
            "pipe": "that waits",
            "set_file": "",
            "set_line": "",
            "file": "of the wait",
            "line": "of the wait",
            "cycles": "that the wait took",
        },
        view=_FLAGS,
        needs=("instructions",),
    ),
    "pipes": SqlTable(
        "pipes of cores; busy + waiting + idle is the core's time",
        {"core": "", "pipe": "", "instructions": "", "busy": "cycles", "waiting": "cycles", "idle": "cycles"},
        rows=sql_contents.pipes,
        types=("varchar", "varchar", *["bigint"] * 4),
    ),
    "cores": SqlTable(
        "cores",
        {
            "core": "",
            "begin_cycle": "",
            "end_cycle": "",
            "cycles": "",
            "instructions": "",
            "scalar_alone": "cycles in which only the scalar unit worked",
            "nothing": "cycles in which no pipe worked",
        },
        rows=sql_contents.cores,
        types=("varchar", *["bigint"] * 6),
    ),
    "findings": SqlTable(
        "what the checker found (replay --check)",
        {
            "finding": "its number",
            "category": "",
            "severity": "error, warning, note",
            "message": "",
            "fix": "how to fix it",
            "memory": "",
            "begin_byte": "",
            "end_byte": "",
            "count": "how often",
            "cycles": "what it costs",
        },
        rows=sql_contents.findings,
        types=("bigint", *["varchar"] * 5, *["bigint"] * 4),
    ),
    "finding_places": SqlTable(
        "where findings are",
        {
            "finding": "",
            "file": "",
            "line": "",
            "instruction": "",
            "pipe": "",
            "core": "",
            "row": "of `instructions`",
        },
        rows=sql_contents.finding_places,
        types=("bigint", "varchar", "bigint", "varchar", "varchar", "varchar", "bigint"),
    ),
    "arguments": SqlTable(
        "arguments by slot",
        {
            "slot": "",
            "kind": "tensor or scalar",
            "name": "",
            "dtype": "",
            "role": "",
            "tier": "how far its content can be trusted",
            "origin": "",
            "address": "in global memory",
            "size": "bytes",
            "bits": "of a scalar",
            "shape": "",
        },
        rows=sql_contents.arguments,
        types=("bigint", *["varchar"] * 6, "ubigint", "bigint", "ubigint", "varchar"),
    ),
    "checks": SqlTable(
        "outputs against what was recorded",
        {"slot": "", "status": "", "max_error": "", "wrong": "elements", "compared": "elements", "why": ""},
        rows=sql_contents.checks,
        types=("bigint", "varchar", "double", "bigint", "bigint", "varchar"),
    ),
    "kernels": SqlTable(
        "kernels that ran",
        {"name": "", "core_type": "", "func_id": "", "entry": "", "source": ""},
        rows=sql_contents.kernels,
        types=("varchar", "varchar", "bigint", "varchar", "varchar"),
    ),
    "sources": SqlTable(
        "the text of the kernels",
        {"file": "", "line": "", "text": ""},
        rows=sql_contents.sources,
        types=("varchar", "bigint", "varchar"),
    ),
    "_stream": SqlTable("", {}, columns=sql_contents.stream),
    "_operands": SqlTable("", {}, columns=sql_contents.operands),
    "_footprints": SqlTable("", {}, columns=sql_contents.footprints),
    "_calls": SqlTable("", {}, columns=sql_contents.calls),
    "_lives": SqlTable("", {}, columns=sql_contents.lives),
    "_places": SqlTable(
        "",
        dict.fromkeys(("place", "name", "memory", "address", "bytes", "shape"), ""),
        rows=sql_contents.places,
        types=("bigint", "varchar", "varchar", "ubigint", "bigint", "varchar"),
    ),
    "_frames": SqlTable(
        "",
        {"id": "", "file": "", "line": ""},
        rows=sql_contents.frames,
        types=("bigint", "varchar", "bigint"),
    ),
    "_core_names": _name_table(lambda recording: recording.instructions.cores),
    "_names": _name_table(lambda recording: recording.instructions.names),
    "_pipe_names": _name_table(lambda _: [pipe_name(number) for number in range(256)]),
    "_kind_names": _name_table(lambda _: [kind.name.lower() for kind in Kind]),
    "_stall_names": _name_table(lambda _: [stall.name.lower() for stall in Stall]),
    "_form_names": _name_table(lambda _: [form.name.lower() for form in Form]),
    "_memory_names": _name_table(lambda _: MEMORIES),
    "_which_names": _name_table(lambda _: ("result", "source", "second source", "further")),
    "_op_names": _name_table(lambda recording: operands_of(recording.instructions).ops),
}
