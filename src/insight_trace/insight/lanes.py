"""What the vendor's exporter fixes by name: lanes, colours, process codes of a core's own trace, clocks.

Source: the behaviour of msopprof d6c29df, as its output shows it.
"""

from __future__ import annotations

import re

from insight_trace.model import Pipe

LANES: dict[str, int] = {pipe.name: int(pipe) for pipe in Pipe}
WARP_LANE_BASE = 100

# Lanes that a recording has above its pipes, in this order; the vendor has none of them.
CRITICAL_PATH, TILE_OPS = "CRITICAL PATH", "TILE OPS"
ADDED_LANES = (CRITICAL_PATH, TILE_OPS)

# Scalar accesses to memory: the vendor draws them apart in a core's own trace, and a recording everywhere.
SCALAR_MEMORY = ("LD_", "ST_")

CACHE_MISS = "CACHEMISS"  # name of a cache-miss row; events and files show its address instead
COUNTER_PROCESS = "MTE Throughput"
THROUGHPUT = "throughput(MB/s)"

_PIPE_COLOURS = {
    "MTE1": "thread_state_running",
    "MTE2": "thread_state_iowait",
    "MTE3": "rail_response",
    "SCALAR": "startup",
    "SCALARLDST": "startup",
    "VECTOR": "cq_build_failed",
    "CUBE": "background_memory_dump",
    "FIXP": "thread_state_unknown",
    "FLOWCTRL": "cq_build_passed",
    "CACHEMISS": "thread_state_runnable",
    "ALL": "good",
    "USERMARK": "rail_load",
    "EVENT": "rail_animation",
    "SET_FLAG": "black",
    "WAIT_FLAG": "yellow",
    "set_event": "black",
    "wait_event": "yellow",
    "RVECEX": "thread_state_running",
    "RVECLP": "thread_state_iowait",
    "RVECST": "thread_state_runnable",
    "RVECLD": "startup",
    "PUSHQ": "thread_state_unknown",
    "RVECSU": "yellow",
}
_SIMT_COLOURS: dict[str, tuple[str, ...]] = {
    "thread_state_uninterruptible": ("FMNMX", "FMNMX_I", "FDIV", "FDIV_I"),
    "heap_dump_object_type": ("F2I", "I2F", "F2F", "FEXPDIF", "FMULSCVT"),
    "cq_build_attempt_passed": ("LD", "LDG", "LDS", "LDK", "ST"),
    "thread_state_runnable": ("FFMA", "FFMA_I", "FMUL", "FMUL_I", "MUFU"),
    "good": ("IMAD", "IMAD_I", "LEA", "LEA_HI_X", "SHF", "SHFI"),
    "thread_state_iowait": ("PLOP3", "LOP3", "LOP3_I", "ISETP", "ISETP_I"),
    "thread_state_running": ("IMUL", "IMUL_I", "IADD", "IADD_I"),
    "startup": ("STG", "STS", "STK", "IMNMX", "IMNMX_I"),
    "background_memory_dump": ("BAR.THREAD BLOCK", "JOIN", "MEMBAR", "FSETP", "FSETP_I"),
    "rail_response": ("ATOM", "RED"),
    "heap_dump_child_node_arrow": ("FADD", "FADD_I", "S2R", "MOVI", "END"),
}
_SIMT_COLOUR_OF = {f"SIMT_{name}": colour for colour, names in _SIMT_COLOURS.items() for name in names}

# Process ids of a core's own trace; every other pipe shares 0.
PROCESS_CODES = {
    "SCALAR": 10,
    "SCALARLDST": 20,
    "VECTOR": 30,
    "CUBE": 40,
    "MTE1": 50,
    "MTE2": 60,
    "MTE3": 70,
    "FIXP": 80,
    "FLOWCTRL": 90,
    "ALL": 100,
    "CACHEMISS": 110,
    "USERMARK": 120,
}

_CORE_NAME = re.compile(r"core(\d+)(?:\.(cubecore|veccore|mixcore)(\d+))?")


def pipe_colour(name: str) -> str:
    return _PIPE_COLOURS.get(name, "thread_state_stopped")


def simt_colour(instruction: str) -> str:
    return _SIMT_COLOUR_OF.get(instruction, "thread_state_unknown")


def core_order(core: str) -> int:
    """The sort index that puts each cube core before its vector cores."""
    match = _CORE_NAME.match(core)
    if match is None:
        return 0
    block = 3 * int(match[1])
    return block + 2 + int(match[3]) if match[2] == "veccore" else block + 1
