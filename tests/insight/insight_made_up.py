"""Traces for tests: small ones with everything in them, and random ones."""

import numpy as np
from hypothesis import strategies as st
from msgspec.structs import replace

from insight_trace.model import Counter, Instructions, Pipe, Trace

CORES = ("core0.cubecore0", "core0.veccore0", "core0.veccore1")
NAMES = ("MOV_XD_IMM", "VADD", "MOV_OUT_TO_UB", "BAR", "SET_FLAG", "WAIT_FLAG", "MMAD")
FLAGS = ("PIPE:MTE2,TRIGGERPIPE:VEC,FLAGID:0,", "PIPE:VEC,TRIGGERPIPE:MTE3,FLAGID:1,")


def trace_of(rows, *, stacks=("",), names=NAMES, cores=CORES, mhz=1850.0, **more):
    """Rows are dicts with core, pipe, name, start, end and, where they matter, the other columns."""

    def column(key, default, kind):
        return np.array([row.get(key, default) for row in rows], dtype=kind)

    start = column("start", 0, np.int64)
    return Trace(
        instructions=Instructions(
            cores=cores,
            names=names,
            stacks=stacks,
            core=column("core", 1, np.uint16),
            pipe=column("pipe", int(Pipe.SCALAR), np.uint8),
            name=np.array([names.index(row["name"]) for row in rows], dtype=np.uint16),
            stack=column("stack", 0, np.uint32),
            pc=np.array(
                [row.get("pc", 0x1000 + 4 * place) for place, row in enumerate(rows)], dtype=np.uint64
            ),
            start=start,
            end=column("end", 1, np.int64),
            detail=[row.get("detail", "") for row in rows],
            issue=np.array([row.get("issue", row.get("start", 0)) for row in rows], dtype=np.int64),
            process_bytes=column("bytes", -1, np.int64),
            partner=column("partner", -1, np.int64),
            stall=np.zeros(len(rows), dtype=np.uint8),
            read_conflict=column("read", -1, np.int32),
            write_conflict=column("write", -1, np.int32),
            utilisation=column("used", -1, np.float32),
        ),
        mhz=mhz,
        **more,
    )


def small_trace():
    """Two vector cores and a cube core; a move, a flag pair, a barrier, sources, and a counter."""
    rows = []
    for core in (1, 2):
        base = len(rows)
        rows += [
            {
                "name": "MOV_XD_IMM",
                "start": 10,
                "end": 11,
                "detail": "XD:X29=0x7f80,IMM:0x7f80,",
                "pc": 0x1000,
            },
            {"name": "MOV_OUT_TO_UB", "pipe": int(Pipe.MTE2), "start": 12, "end": 300, "pc": 0x1004}
            | {"bytes": 4096, "detail": "XD:X0=0,XN:X1=0x1000,", "stack": 1, "issue": 11},
            {"name": "SET_FLAG", "pipe": int(Pipe.MTE2), "start": 13, "end": 301, "pc": 0x1008, "stack": 2}
            | {"detail": FLAGS[0]},
            {"name": "WAIT_FLAG", "pipe": int(Pipe.VECTOR), "start": 14, "end": 302, "pc": 0x100C, "stack": 2}
            | {"detail": FLAGS[0], "partner": base + 2},
            {"name": "VADD", "pipe": int(Pipe.VECTOR), "start": 302, "end": 330, "pc": 0x1010, "stack": 3}
            | {"used": 50.0, "read": 1, "write": 0, "detail": 'quoted "x",'},
            {
                "name": "BAR",
                "pipe": int(Pipe.ALL),
                "start": 200,
                "end": 331,
                "pc": 0x1014,
                "detail": "PIPE:ALL,",
            },
        ]
        for row in rows[base:]:
            row["core"] = core
    rows.append({"name": "MMAD", "pipe": int(Pipe.CUBE), "core": 0, "start": 5, "end": 90, "pc": 0x2000})
    return trace_of(
        rows,
        stacks=("", "/src/kernel.cpp:12\n/src/tile.hpp:9", "/src/kernel.cpp:13", "/src/kernel.cpp:9"),
        sources={"/src/kernel.cpp": b"int main() {}\n", "/src/tile.hpp": "// größe\n".encode()},
        counters=(Counter("GM_TO_UB", np.array([0, 1, 2]), np.array([0.0, 12.5, 0.0])),),
    )


_texts = st.text(st.characters(codec="utf-8"), max_size=20)
_details = st.one_of(
    st.sampled_from(["", "XD:X0=0x1,", "Src:OUT,Dst:UB,", 'a"b', "},{", "\\", '",', "\x00\x01\n", "é€𝄞"]),
    _texts,
)
_frames = st.builds(
    lambda file, line: f"{file}:{line}",
    st.sampled_from(["/src/a b.cpp", "/src/ä.hpp", "/opt/ascend-toolkit/x.h", "C/{}.h", '/src/q".h']),
    st.integers(1, 500),
)
_ordinary_pipes = st.sampled_from(
    [Pipe.SCALAR, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.VECTOR, Pipe.CUBE, Pipe.FIXP]
)


@st.composite
def random_traces(draw):
    """Streams of instructions, flags, barriers and cache misses, with any text that a column can hold."""
    stacks = (
        "",
        *(
            ("\n".join(each))
            for each in draw(st.lists(st.lists(_frames, min_size=1, max_size=3), max_size=4))
        ),
    )
    names = (
        "SET_FLAG",
        "WAIT_FLAG",
        "BAR",
        "CACHEMISS",
        *draw(st.lists(_texts.filter(bool), min_size=1, max_size=4, unique=True)),
    )
    names = tuple(dict.fromkeys(names))
    plain = [name for name in names if name not in ("SET_FLAG", "WAIT_FLAG", "CACHEMISS")]
    mhz = draw(st.sampled_from([1850.0, 1800.0, 1650.0, 1000.0]))
    rows = []
    for _ in range(draw(st.integers(1, 25))):
        start = draw(st.integers(0, 1 << 22))
        row = {
            "core": draw(st.integers(0, 2)),
            "stack": draw(st.integers(0, len(stacks) - 1)),
            "start": start,
            "end": max(start + draw(st.integers(0, 3000)), 1),
            "pc": draw(st.integers(0, 12)) * 4 + 0x10F86000,
        }
        kind = draw(st.sampled_from(["plain", "plain", "plain", "set", "pair", "miss"])) if rows else "plain"
        if kind == "miss":
            row |= {
                "name": "CACHEMISS",
                "pipe": int(Pipe.CACHEMISS),
                "end": start + 1,
                "detail": "statusisMISS",
            }
        elif kind == "plain":
            row |= {"name": draw(st.sampled_from(plain)), "pipe": int(draw(_ordinary_pipes))}
            row |= {"detail": draw(_details), "bytes": draw(st.sampled_from([-1, 32, 4096]))}
        else:
            row |= {"name": "SET_FLAG", "pipe": int(Pipe.MTE2), "detail": draw(st.sampled_from(FLAGS))}
            row |= {"pc": 0x20000000 + 8 * len(rows), "end": row["end"] + 1}
            if kind == "pair":
                rows.append(row)
                row = {**row, "name": "WAIT_FLAG", "pipe": int(Pipe.VECTOR), "partner": len(rows) - 1}
                row |= {"pc": 0x20000000 + 8 * len(rows), "end": row["end"] + 1}
        rows.append(row)
    sources = {frame.rsplit(":", 1)[0]: b"text" for stack in stacks for frame in stack.split("\n") if frame}
    return trace_of(rows, stacks=stacks, names=names, mhz=mhz, sources=sources)


def as_drawn(trace):
    """What the files can hold of a trace: barriers are one cycle, flags not longer than they are drawn.

    A flag or barrier whose address ran once on its core keeps its start, since the table knows its cycles.
    """
    columns = trace.instructions
    start = columns.start.copy()
    for row in range(len(start)):
        name = columns.names[columns.name[row]]
        if name not in ("BAR", "SET_FLAG", "WAIT_FLAG"):
            continue
        same = (columns.core == columns.core[row]) & (columns.pc == columns.pc[row])
        same &= columns.pipe != Pipe.CACHEMISS
        if name == "BAR" and same.sum() > 1:
            start[row] = max(columns.end[row] - 1, 0)
    return replace(trace, instructions=replace(columns, start=start))


def rows_of(trace):
    """Rows as comparable tuples, in an order that does not depend on how they were stored."""
    columns = trace.instructions
    found = []
    for row in range(len(columns)):
        partner = int(columns.partner[row])
        found.append(
            (
                columns.cores[columns.core[row]],
                Pipe(int(columns.pipe[row])).name,
                columns.names[columns.name[row]],
                columns.stacks[columns.stack[row]],
                int(columns.pc[row]),
                int(columns.start[row]),
                int(columns.end[row]),
                columns.detail[row],
                int(columns.process_bytes[row]),
                None if partner < 0 else int(columns.pc[partner]),
            )
        )
    return sorted(found, key=repr)
