"""Flags between the cube core and the vector cores of one block (Ascend 950).

The vendor draws them as B/E pairs named after the instruction, on the lane that the operand names. This
Insight release keeps their arrows and drops the slices.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from insight_trace.insight.encoding import floats, json_text, micros
from insight_trace.insight.lanes import pipe_colour
from insight_trace.insight.prepared import Prepared
from insight_trace.recording.kinds import CROSS_CORE_SETS

_IDS_PER_VECTOR_CORE = 16

Key = tuple[str, str, str, int]  # block, sub core, instruction, sync id


def _waiting_key(key: Key) -> Key:
    """The WAIT that a SET ends: a cube core addresses vector core 1 by sync ids from 16 on."""
    block, sub, name, sync = key
    wait = CROSS_CORE_SETS[name]
    if "cube" in sub:
        return block, f"veccore{int(sync >= _IDS_PER_VECTOR_CORE)}", wait, sync % _IDS_PER_VECTOR_CORE
    return block, "cubecore0", wait, sync + (0 if "0" in sub else _IDS_PER_VECTOR_CORE)


def cross_core_events(prepared: Prepared) -> Iterator[bytes]:
    """Pairs with their arrows first, then the flags that found no partner."""
    if not prepared.cross_core:
        return
    columns = prepared.instructions
    sets: dict[Key, list[int]] = {}
    waits: dict[Key, list[int]] = {}
    for core in prepared.cores:
        block, _, sub = columns.cores[core].partition(".")
        rows = prepared.ordered[core]
        for row in rows[prepared.is_cross_core[rows]].tolist():
            name = columns.names[columns.name[row]]
            group = sets if name in CROSS_CORE_SETS else waits
            group.setdefault((block, sub, name, prepared.cross_core[row][1]), []).append(row)
    number = 0
    drawn: set[int] = set()
    for key in sorted(sets):
        for set_row, wait_row in zip(sets[key], waits.get(_waiting_key(key), []), strict=False):
            flag = f"intra_{number}".encode()
            yield _flag(prepared, set_row, flag) + _flag(prepared, wait_row, flag)
            yield _flow(prepared, set_row, wait_row, flag)
            drawn |= {set_row, wait_row}
            number += 1
    for group in (sets, waits):
        for key in sorted(group):
            for row in group[key]:
                if row not in drawn:
                    yield _flag(prepared, row, f"intra_{number}".encode())
                    number += 1


def _place(prepared: Prepared, row: int) -> tuple[bytes, bytes]:
    columns = prepared.instructions
    return json_text(columns.cores[columns.core[row]]), prepared.cross_core[row][0].encode()


def _flag(prepared: Prepared, row: int, flag: bytes) -> bytes:
    columns = prepared.instructions
    name = columns.names[columns.name[row]]
    core, lane = _place(prepared, row)
    begin, end = floats(micros(np.array([columns.start[row], columns.end[row]]), prepared.mhz))
    args = b'{"code":"%s","detail":"%s","pc_addr":"0x%x"}' % (
        json_text(columns.stacks[columns.stack[row]]),
        json_text(columns.detail[row]),
        int(columns.pc[row]),
    )
    text = json_text(name)
    colours = pipe_colour(lane.decode()).encode(), pipe_colour(name).encode()
    event = b'{"args":%s,"cname":"%s","id":"%s","name":"%s","ph":"%s","pid":"%s","tid":"%s","ts":%s},'
    return event % (args, colours[0], flag, text, b"B", core, lane, begin) + event % (
        b"{}",
        colours[1],
        flag,
        text,
        b"E",
        core,
        lane,
        end,
    )


def _flow(prepared: Prepared, set_row: int, wait_row: int, flag: bytes) -> bytes:
    rows = np.array([set_row, wait_row])
    times = floats(micros(prepared.instructions.end[rows], prepared.mhz))
    (set_core, set_lane), (wait_core, wait_lane) = _place(prepared, set_row), _place(prepared, wait_row)
    event = b'{"cat":"%sTo%s","id":"%s","name":"flow","ph":"%s","pid":"%s","tid":"%s","ts":%s},'
    return event % (set_lane, wait_lane, flag, b"s", set_core, set_lane, times[0]) + event % (
        set_lane,
        wait_lane,
        flag,
        b"t",
        wait_core,
        wait_lane,
        times[1],
    )
