"""Recordings made to order, from two cores to seventy-two and millions of instructions, without a simulation.

A mix: in every block a cube core multiplies two tiles a round and hands the product over, and two vector cores
exponentiate and store it. One round is written down row by row; all others are the same columns, later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from insight_trace.model import Instructions, Operands, Pipe, Stall, Trace
from insight_trace.recording.detail import Details
from insight_trace.recording.operands import (
    CALL_FIELDS,
    FOOTPRINT_FIELDS,
    GEOMETRY_FIELDS,
    MEMORIES,
    NONE,
    OPERAND_FIELDS,
    TILE_FIELDS,
    Form,
)
from insight_trace.recording.store import Recording

CUBE_PATH, VECTOR_PATH = "kernels/aic_scores.cpp", "kernels/aiv_exponent.cpp"
CUBE_SOURCE = """// One product a round.
#include <pto/pto-inst.hpp>
void rounds() {
    TLOAD(leftL1, leftGlobal);
    TLOAD(rightL1, rightGlobal);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    TMOV(leftL0, leftL1);
    TMOV(rightL0, rightL1);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    TMATMUL(scores, leftL0, rightL0);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    TSTORE(scoresGlobal, scores);
}
"""
VECTOR_SOURCE = """// Exponents of one product a round.
#include <pto/pto-inst.hpp>
void rounds() {
    TLOAD(scoresUb, scoresGlobal);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(scaled, scoresUb, scale);
    TEXP(weights, scaled);
    TROWSUM(sums, weights, scratch);
    TADD(weights, weights, scaled);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(weightsGlobal, weights);
}
"""
_PIPES = {
    Pipe.SCALAR: 0,
    Pipe.VECTOR: 1,
    Pipe.CUBE: 2,
    Pipe.MTE1: 3,
    Pipe.MTE2: 4,
    Pipe.MTE3: 5,
    Pipe.FIXP: 7,
}
_GM_BASE = 1 << 45
_KIB = 1024
_ASKED, _MISSED = 128, 32  # of L2, requests of a transfer of a tile


@dataclass
class _Tables:
    """Texts and rows that columns number, each kept once."""

    numbers: dict[str, dict[Any, int]] = field(default_factory=dict)

    def __call__(self, table: str, row: Any) -> int:
        rows = self.numbers.setdefault(table, {})
        return rows.setdefault(row, len(rows))

    def of(self, table: str) -> list[Any]:
        return list(self.numbers.get(table, {}))


@dataclass
class _Round:
    """One round of one kind of core, row by row."""

    tables: _Tables
    path: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[int, int]] = field(default_factory=list)  # op, place in `lists`
    operands: list[tuple[int, int, int]] = field(default_factory=list)  # address, footprint, tile
    lists: list[int] = field(default_factory=list)
    sets: dict[tuple[Pipe, Pipe], int] = field(default_factory=dict)

    def tile(self, memory: str, address: int, rows: int, cols: int) -> tuple[str, int, int, int]:
        self.tables("tiles", (memory, address, rows, cols))
        return memory, address, rows, cols

    def call(self, op: str, tiles: Sequence[tuple[str, int, int, int]], lists: list[int]) -> None:
        self.calls.append((self.tables("ops", op), len(lists)))
        lists += [len(tiles), *(self.tables("tiles", tile) for tile in tiles)]

    def add(
        self,
        pipe: Pipe,
        name: str,
        start: int,
        end: int,
        line: int,
        *,
        touches: Sequence[tuple[int, int, tuple[str, int, int, int]]] = (),
        in_call: bool = False,
        geometry: tuple[Any, ...] | None = None,
        form: Form = Form.PLAIN,
        value: int = 0,
        moved: int = -1,
        partner: int = -1,
        conflict: int = -1,
        used: float = -1.0,
    ) -> int:
        if form is Form.TRANSFER:
            value = _ASKED | (_MISSED << 32 if name.startswith("MOV_OUT") else 0)
        first = len(self.operands)
        for which, role, tile in touches:
            memory, address, rows, cols = tile
            print_ = (MEMORIES.index(memory), role, which, rows * cols * 4)
            self.operands.append((address, self.tables("footprints", print_), self.tables("tiles", tile)))
        self.rows.append(
            {
                "pipe": int(pipe),
                "name": self.tables("names", name),
                "stack": self.tables("stacks", f"{self.path}:{line}"),
                "pc": 0x1000_0000 + 4 * (len(self.rows) + 1) + 0x1000 * (self.path == VECTOR_PATH),
                "issue": max(0, start - 6),
                "start": start,
                "end": end,
                "process_bytes": moved,
                "partner": partner,
                "stall": int(Stall.FLAG if partner >= 0 else Stall.NONE),
                "read_conflict": conflict,
                "write_conflict": 0 if conflict >= 0 else -1,
                "utilisation": used,
                "form": int(form),
                "value": value,
                "geometry": NONE if geometry is None else self.tables("geometries", geometry),
                "call": len(self.calls) - 1 if in_call else -1,
                "first": first,
                "count": len(touches),
            }
        )
        return len(self.rows) - 1

    def flag(self, source: Pipe, target: Pipe, raised: int, waits: tuple[int, int], line: int) -> None:
        value = _PIPES[source] | _PIPES[target] << 8
        row = self.add(source, "SET_FLAG", raised, raised + 1, line, form=Form.FLAG, value=value)
        begin, end = waits
        self.add(target, "WAIT_FLAG", begin, end, line + 1, form=Form.FLAG, value=value, partner=row)


CUBE_ROUND, VECTOR_ROUND = 1400, 1400  # cycles
ROWS_A_ROUND = 20 + 2 * 18  # of a block


def _cube(tables: _Tables, lists: list[int]) -> _Round:
    one = _Round(tables, CUBE_PATH)
    left, right = one.tile("L1", 0, 64, 64), one.tile("L1", 64 * _KIB, 64, 64)
    a, b, c = one.tile("L0A", 0, 64, 64), one.tile("L0B", 0, 64, 64), one.tile("L0C", 0, 64, 64)
    in_a, in_b, out = (one.tile("GM", _GM_BASE + place * 0x100000, 64, 64) for place in range(3))
    transfer = ("transfer", 64, 16384)
    for step in range(2):
        one.add(Pipe.SCALAR, "ADD_IMM", 1 + step, 2 + step, 3)
    for place, (tile, source, line) in enumerate(((left, in_a, 4), (right, in_b, 5))):
        one.call("TLOAD", [tile, source], lists)
        one.add(
            Pipe.MTE2, "MOV_OUT_TO_L1_MULTI_ND2NZ", 10 + 300 * place, 310 + 300 * place, line, in_call=True,
            touches=[(0, 2, tile), (1, 1, source)], geometry=transfer, form=Form.TRANSFER, moved=16384,
        )  # fmt: skip
    one.flag(Pipe.MTE2, Pipe.MTE1, 610, (20, 611), 6)
    for place, (tile, source, line) in enumerate(((a, left, 8), (b, right, 9))):
        one.call("TMOV", [tile, source], lists)
        for part in range(4):
            begin = 612 + 70 * (4 * place + part)
            one.add(
                Pipe.MTE1, "LOAD_2D", begin, begin + 70, line, in_call=True,
                touches=[(0, 2, tile), (1, 1, source)], geometry=("local", 4, 4096), form=Form.LOCAL,
            )  # fmt: skip
    one.flag(Pipe.MTE1, Pipe.CUBE, 1172, (612, 1173), 10)
    one.call("TMATMUL", [c, a, b], lists)
    one.add(
        Pipe.CUBE, "MMAD", 1174, 1290, 12, in_call=True, geometry=("multiply", 64, 64, 64),
        touches=[(0, 2, c), (1, 1, a), (2, 1, b)], form=Form.MULTIPLY,
    )  # fmt: skip
    one.flag(Pipe.CUBE, Pipe.FIXP, 1290, (1174, 1291), 13)
    one.call("TSTORE", [out, c], lists)
    one.add(
        Pipe.FIXP, "FIX_L0C_TO_OUT", 1292, 1390, 15, in_call=True, touches=[(0, 2, out), (1, 1, c)],
        geometry=transfer, form=Form.TRANSFER, moved=16384,
    )  # fmt: skip
    return one


def _vector(tables: _Tables, lists: list[int], overlap: bool) -> _Round:
    one = _Round(tables, VECTOR_PATH)
    scores, scaled = one.tile("UB", 0, 64, 64), one.tile("UB", 16 * _KIB, 64, 64)
    # a planner that reuses the scaled scores while they are still to be added
    weights = one.tile("UB", (24 if overlap else 32) * _KIB, 64, 64)
    sums, scratch = one.tile("UB", 64 * _KIB, 64, 8), one.tile("UB", 80 * _KIB, 64, 8)
    source, out = (one.tile("GM", _GM_BASE + place * 0x100000, 64, 64) for place in (2, 3))
    for step in range(2):
        one.add(Pipe.SCALAR, "ADD_IMM", 1 + step, 2 + step, 3)
    one.call("TLOAD", [scores, source], lists)
    one.add(
        Pipe.MTE2, "MOV_OUT_TO_UB_ALIGN", 10, 410, 4, in_call=True, touches=[(0, 2, scores), (1, 1, source)],
        geometry=("transfer", 64, 16384), form=Form.TRANSFER, moved=16384,
    )  # fmt: skip
    one.flag(Pipe.MTE2, Pipe.VECTOR, 410, (12, 411), 5)
    time = 412
    for op, name, line, tiles, repeat in (
        ("TMULS", "VMULS", 7, [scaled, scores], 2),
        ("TEXP", "VEXP", 8, [weights, scaled], 2),
        ("TROWSUM", "VCADD", 9, [sums, weights, scratch], 4),
        ("TADD", "VADD", 10, [weights, weights, scaled], 2),
    ):
        one.call(op, tiles, lists)
        for _ in range(repeat):
            touches = [(0, 2, tiles[0]), *((place, 1, tile) for place, tile in enumerate(tiles[1:], 1))]
            one.add(
                Pipe.VECTOR, name, time, time + 60, line, in_call=True, touches=touches, form=Form.VECTOR,
                geometry=("vector", 32, 2048), used=100.0, conflict=16 if name == "VADD" else 0,
            )  # fmt: skip
            time += 60
    one.flag(Pipe.VECTOR, Pipe.MTE3, time, (412, time + 1), 11)
    one.call("TSTORE", [out, weights], lists)
    one.add(
        Pipe.MTE3, "MOV_UB_TO_OUT_ALIGN", time + 2, time + 370, 13, in_call=True,
        touches=[(0, 2, out), (1, 1, weights)], geometry=("transfer", 64, 16384), form=Form.TRANSFER, moved=16384,
    )  # fmt: skip
    return one


def mix_recording(
    blocks: int = 1,
    rounds: int = 4,
    *,
    overlap: bool = False,
    seed: int | None = None,
    about: Mapping[str, Any] | None = None,
    **facts: Any,
) -> Recording:
    """`blocks` blocks of a cube core and two vector cores; later blocks do less rounds, down to two thirds.

    With a seed, rounds and instructions take unequal time, as they do where cores share a memory.
    """
    tables, lists = _Tables(), []
    tables("stacks", "")
    kinds = {"cube": _cube(tables, lists), "vec": _vector(tables, lists, overlap)}
    cores = [
        (f"core{block}.{name}", kind, max(1, rounds - rounds * block // (3 * blocks)), 40 * block)
        for block in range(blocks)
        for name, kind in (("cubecore0", "cube"), ("veccore0", "vec"), ("veccore1", "vec"))
    ]
    offsets = {"cube": 0, "vec": len(kinds["cube"].operands)}
    parts: dict[str, list[np.ndarray]] = {}
    calls: list[np.ndarray] = []
    row = call = 0
    for number, (_, kind, times, delay) in enumerate(cores):
        one = kinds[kind]
        size, made = len(one.rows), len(one.calls)
        turn = np.repeat(np.arange(times, dtype=np.int64), size)
        shift = (
            turn * (CUBE_ROUND if kind == "cube" else VECTOR_ROUND) + delay + (700 if kind == "vec" else 0)
        )
        columns = {key: np.tile([one_row[key] for one_row in one.rows], times) for key in one.rows[0]}
        if seed is not None:
            numbers = np.random.default_rng([seed, number])
            shift = shift + np.repeat(np.cumsum(numbers.integers(0, 400, times)), size)
            # a row never ends behind the start of the next one on its pipe, so that lanes stay lanes
            columns["end"] = columns["end"] - numbers.integers(0, 9, size * times) * (
                columns["end"] - columns["start"] > 20
            )
        for key in ("issue", "start", "end"):
            columns[key] = columns[key] + shift
        columns["partner"] = np.where(columns["partner"] >= 0, columns["partner"] + turn * size + row, -1)
        columns["call"] = np.where(columns["call"] >= 0, columns["call"] + turn * made + call, NONE)
        columns["first"] = columns["first"] + offsets[kind]
        columns["core"] = np.full(size * times, number)
        for key, values in columns.items():
            parts.setdefault(key, []).append(values)
        again = np.zeros(made * times, CALL_FIELDS)
        again["op"], again["tiles"] = (np.tile(column, times) for column in zip(*one.calls, strict=True))
        again["core"] = number
        calls.append(again)
        row, call = row + size * times, call + made * times
    whole = {key: np.concatenate(values) for key, values in parts.items()}
    operands = _operands(tables, whole, kinds, np.concatenate(calls), lists)
    types = {"core": "u2", "pipe": "u1", "name": "u2", "stack": "u4", "pc": "u8", "stall": "u1"}
    types |= {"read_conflict": "i4", "write_conflict": "i4", "utilisation": "f4"}
    keys = ("start", "end", "issue", "process_bytes", "partner")
    stream = Instructions(
        cores=tuple(name for name, *_ in cores),
        names=tuple(tables.of("names")),
        stacks=tuple(tables.of("stacks")),
        detail=Details(operands),
        operands=operands,
        **{key: whole[key].astype("i8") for key in keys},
        **{key: whole[key].astype(kind) for key, kind in types.items()},
    )
    sources = {CUBE_PATH: CUBE_SOURCE.encode(), VECTOR_PATH: VECTOR_SOURCE.encode()}
    trace = Trace(stream, 1850.0, "Ascend910B1", sources)
    kernels = tuple(
        {"name": name, "core_type": core, "func_id": place, "entry": "kernel_entry", "source": path}
        for place, (name, core, path) in enumerate(
            (("SCORES", "aic", CUBE_PATH), ("EXPONENT", "aiv", VECTOR_PATH))
        )
    )
    facts.setdefault("chip", {"name": "Ascend910B1", "mhz": 1850.0, "parameters": []})
    return Recording(trace, kernels, about={"preset": "device", **(about or {})}, **facts)


def _operands(
    tables: _Tables,
    whole: dict[str, np.ndarray],
    kinds: Mapping[str, _Round],
    calls: np.ndarray,
    lists: list[int],
) -> Operands:
    rows = np.array([one for kind in kinds.values() for one in kind.operands], OPERAND_FIELDS)
    footprints = np.zeros(len(tables.of("footprints")), FOOTPRINT_FIELDS)
    for number, (memory, role, which, size) in enumerate(tables.of("footprints")):
        entry = footprints[number]
        entry["memory"], entry["role"], entry["which"], entry["run"], entry["exact"] = (
            memory,
            role,
            which,
            size,
            1,
        )
        entry["count"] = 1
    tiles = np.zeros(len(tables.of("tiles")), TILE_FIELDS)
    for number, (memory, address, height, width) in enumerate(tables.of("tiles")):
        entry = tiles[number]
        entry["memory"], entry["address"] = MEMORIES.index(memory), address
        entry["rows"] = entry["valid_rows"] = height
        entry["cols"] = entry["valid_cols"] = width
    geometries = np.zeros(len(tables.of("geometries")), GEOMETRY_FIELDS)
    for number, (kind, *numbers) in enumerate(tables.of("geometries")):
        entry = geometries[number]
        entry["form"] = Form[kind.upper()]
        names = {"multiply": ("m", "k", "n"), "vector": ("repeat", "elements")}.get(kind, ("repeat", "bytes"))
        for name, value in zip(names, numbers, strict=True):
            entry[name] = value
    return Operands(
        times=np.stack([whole[key] for key in ("issue", "start", "end")], axis=1).astype("i8") * 1000,
        form=whole["form"].astype("u1"),
        value=whole["value"].astype("u8"),
        geometry=whole["geometry"].astype("u4"),
        call=whole["call"].astype("u4"),
        first=whole["first"].astype("u4"),
        count=whole["count"].astype("u4"),
        rows=rows,
        geometries=geometries,
        footprints=footprints,
        tiles=tiles,
        calls=calls,
        lists=np.array(lists, "u4"),
        ops=tuple(tables.of("ops")),
    )
