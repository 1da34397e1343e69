"""`instr_metrics.json`: one row per core and instruction, summed over its executions."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from insight_trace.model import Pipe, Trace
from insight_trace.recording.frames import user_frames
from insight_trace.recording.kinds import Kind, finish, kinds

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Codes of the container: 1 int, 3 text, 4 percentage.
COLUMN_TYPES = {
    "Address": 3,
    "AscendC Inner Code": 3,
    "Cycles": 1,
    "Instructions Executed": 1,
    "Pipe": 3,
    "Process Bytes": 1,
    "Source": 3,
    "Stall Cycles": 1,
    "UB Read Conflict": 1,
    "UB Write Conflict": 1,
    "Vector Utilization Percentage": 4,
}


def instruction_text(name: str, detail: str) -> str:
    """`MOV_XD_IMM XD:X29,IMM`: the instruction without the values of one execution."""
    parts = [part.split("=0x")[0].split(":0x")[0] for part in detail.split(",") if part]
    return f"{name} {','.join(parts)}".rstrip()


def metrics(trace: Trace) -> dict[str, list[dict[str, Any]]]:
    """Rows by core, each core's in the order of its addresses. -1 means that a column does not apply."""
    import numpy as np

    instructions = trace.instructions
    rows = np.flatnonzero(kinds(instructions) != Kind.MISS)
    by_core: dict[str, list[dict[str, Any]]] = {core: [] for core in instructions.cores}
    if not len(rows):
        return by_core
    _, pc = np.unique(instructions.pc[rows], return_inverse=True)
    key = (instructions.core[rows].astype(np.int64) * (int(pc.max()) + 1) + pc) * 65536
    key += instructions.name[rows]
    order = np.argsort(key, kind="stable")
    rows, key = rows[order], key[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])

    def total(values: NDArray[Any]) -> list[int]:
        return [int(value) for value in np.add.reduceat(values, first)]

    cycles = finish(instructions)[rows] - instructions.start[rows]
    stalled = np.maximum(0, instructions.start[rows] - instructions.issue[rows])
    utilisation = np.where(instructions.utilisation[rows] < 0, np.inf, instructions.utilisation[rows])
    lowest = np.minimum.reduceat(utilisation, first)
    moved = np.add.reduceat(np.maximum(0, instructions.process_bytes[rows]), first)
    frames = user_frames(instructions.stacks)
    columns = zip(
        rows[first].tolist(),
        total(cycles),
        total(np.ones(len(rows), np.int64)),
        np.where(moved == 0, -1, moved).tolist(),
        total(stalled),
        np.maximum.reduceat(instructions.read_conflict[rows], first).tolist(),
        np.maximum.reduceat(instructions.write_conflict[rows], first).tolist(),
        np.where(np.isinf(lowest), -1.0, lowest).tolist(),
        strict=True,
    )
    for row, spent, executed, bytes_, stall, read, write, lanes in columns:
        by_core[instructions.cores[instructions.core[row]]].append(
            {
                "address": f"0x{int(instructions.pc[row]):x}",
                "ascendc_inner_code": frames[instructions.stack[row]] if frames else "",
                "cycles": spent,
                "instructions_executed": executed,
                "pipe": _vendor_pipe(int(instructions.pipe[row])),
                "process_bytes": bytes_,
                "source": instruction_text(
                    instructions.names[instructions.name[row]], instructions.detail[row]
                ),
                "stall_cycles": stall,
                "ub_read_conflict": read,
                "ub_write_conflict": write,
                "vector_utilization_percentage": float(lanes),
            }
        )
    return by_core


def _vendor_pipe(pipe: int) -> str:
    try:
        return Pipe(pipe).name
    except ValueError:
        return str(pipe)


def write_metrics(trace: Trace, file: IO[bytes]) -> int:
    """Writes `instr_metrics.json` and returns the number of rows."""
    import msgspec

    by_core = metrics(trace)
    document = {
        "cores": list(by_core),
        "instructions": by_core,
        "column_types": {"Instructions": COLUMN_TYPES},
    }
    file.write(msgspec.json.encode(document))
    file.write(b"\n")
    return sum(map(len, by_core.values()))
