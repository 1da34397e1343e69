"""A device's counters (PMU groups 1 and 4 to 8 of both families) beside what a simulation has of them.

Counters of accesses are requests: bytes over the path, in the size that the vendor's profiler takes for one request there
(msopprof device_defs.h), unless the column's name says that it counts instructions. What nothing here counts (victims of
L2, fetches and misses of instructions, the unit that issues inside a vector function) is shown alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from insight_trace.outcome import Simulation
from insight_trace.recording.cache_use import REQUEST
from insight_trace.recording.kinds import kinds
from insight_trace.trace.details_figures import type_use
from insight_trace.trace.memory_paths import memory_paths

if TYPE_CHECKING:
    from insight_trace.trace.memory_paths import CorePath

# Columns that count one thing together, of both families.
_L2_HITS = (
    "write_cache_hit", "r0_read_cache_hit", "r1_read_cache_hit",
    "bif_sc_pmu_ar_close_l2_hit_core", "bif_sc_pmu_aw_close_l2_hit_core",
)  # fmt: skip
_L2_MISSES = (
    "write_cache_miss_allocate", "r0_read_cache_miss_allocate", "r1_read_cache_miss_allocate",
    "bif_sc_pmu_ar_close_l2_miss_core", "bif_sc_pmu_aw_close_l2_miss_core",
)  # fmt: skip
_CONFLICTS = ("bankgroup_stall_cycles", "bank_stall_cycles", "stu_pmu_wctl_ub_cflt", "ldu_pmu_ib_ub_cflt")
NAMES = {
    **dict.fromkeys(_L2_HITS, "L2 hits"),
    **dict.fromkeys(_L2_MISSES, "L2 misses"),
    **dict.fromkeys(_CONFLICTS, "bank conflict cycles"),
    "main_read_req": "requests to memory, reads",
    "main_write_req": "requests to memory, writes",
    "main_mem_write_bw": "requests to memory, writes",
}

# Requests by the paths that they go over, and the bytes of one.
_REQUESTS: Mapping[str, tuple[tuple[str, int], ...]] = {
    "ub_read_req": (("UB_TO_VEC", 256), ("UB_TO_GM", 128)),
    "ub_write_req": (("VEC_TO_UB", 256), ("GM_TO_UB", 128)),
    "ub_read_bw_mte": (("UB_TO_GM", 128),),
    "ub_write_bw_mte": (("GM_TO_UB", 128),),
    "ub_read_bw_vector": (("UB_TO_VEC", 256),),
    "ub_write_bw_vector": (("VEC_TO_UB", 256),),
    "l1_read_req": (("L1_TO_L0A", 256), ("L1_TO_L0B", 128)),
    "l1_write_req": (("GM_TO_L1", 256), ("L0C_TO_L1", 128)),
    "l0a_read_req": (("L0A_TO_CUBE", 512),),
    "l0a_write_req": (("L1_TO_L0A", 256),),
    "l0b_read_req": (("L0B_TO_CUBE", 512),),
    "l0b_write_req": (("L1_TO_L0B", 128),),
    "l0c_read_req": (("L0C_TO_GM", 128), ("L0C_TO_L1", 128), ("L0C_TO_CUBE", 1024)),
    "l0c_write_req": (("CUBE_TO_L0C", 1024),),
    # the 950's, where the name says accesses
    "ub_pmu_vec_rd_ub_acc": (("UB_TO_VEC", 256),),
    "ub_pmu_vec_wr_ub_acc": (("VEC_TO_UB", 256),),
}
# Instructions by the paths that they use (the 950's groups 4, 5 and 7).
_INSTRUCTIONS: Mapping[str, tuple[str, ...]] = {
    "pmu_rd_l1_instr": ("L1_TO_L0A", "L1_TO_L0B"),
    "pmu_wr_l1_instr": ("GM_TO_L1", "L0C_TO_L1"),
    "pmu_wr_l0a_instr": ("L1_TO_L0A",),
    "pmu_wr_l0b_instr": ("L1_TO_L0B",),
    "cube_sc_pmu_read_l0a_instr": ("L0A_TO_CUBE",),
    "cube_sc_pmu_read_l0b_instr": ("L0B_TO_CUBE",),
    "cube_sc_pmu_read_l0c_instr": ("L0C_TO_CUBE",),
    "cube_sc_pmu_write_l0c_instr": ("CUBE_TO_L0C",),
    "fixp_rd_l0c_instr": ("L0C_TO_GM", "L0C_TO_L1", "L0C_TO_UB"),
    "pmu_fix_wr_ub_instr": ("L0C_TO_UB",),
    "mte_sc_pmu_write_acc_ub_instr_0": ("GM_TO_UB",),
    "mte_sc_pmu_read_acc_ub_instr_0": ("UB_TO_GM",),
    "bif_sc_pmu_read_main_instr_core": ("GM_TO_L1", "GM_TO_UB"),
    "bif_sc_pmu_write_main_instr_core": ("UB_TO_GM", "L0C_TO_GM", "L1_TO_GM"),
}
# Instructions executed by what they work on (group 1); a half's 64 lanes and its 128 are one here.
_EXECUTED = {
    "cube_fp16_exec": "Cube FP", "cube_int8_exec": "Cube INT", "vec_fp32_exec": "Vector FP32",
    "vec_fp16_128lane_exec": "Vector FP16", "vec_int32_exec": "Vector S32", "vec_misc_exec": "Vector Misc",
}  # fmt: skip
_BUSY = {"cube_fp_instr_busy": "Cube FP", "cube_int_instr_busy": "Cube INT"}


def counted(run: Simulation) -> dict[str, float]:
    """By column or by the name of columns that count together: the mean over the simulation's cores."""
    columns = run.instructions
    cores = max(1, len(columns.cores))
    conflicts = sum(
        int(column[column > 0].sum()) for column in (columns.read_conflict, columns.write_conflict)
    )
    found: dict[str, float] = {"bank conflict cycles": conflicts}
    if run.memory is not None:
        memory = run.memory
        found |= {
            "L2 hits": memory.hits / REQUEST,
            "L2 misses": (memory.asked - memory.hits) / REQUEST,
            "requests to memory, reads": memory.fetched / REQUEST,
            "requests to memory, writes": memory.written_back / REQUEST,
        }
    paths: dict[str, list[CorePath]] = defaultdict(list)
    for path in memory_paths(columns, kinds(columns)):
        paths[path.path].append(path)
    for name, over in _REQUESTS.items():
        found[name] = sum(path.bytes / size for of, size in over for path in paths[of])
    for name, through in _INSTRUCTIONS.items():
        found[name] = sum(path.instructions for of in through for path in paths[of])
    for name, reads in (("l2_read_req", True), ("l2_write_req", False), ("l2_write_bw", False)):
        over_l2 = [path for of, each in paths.items() if of.startswith("GM_TO_") is reads for path in each]
        found[name] = sum(path.requests or 0 for path in over_l2)
    uses = [use for each in type_use(columns).values() for use in each]
    for name, what in _EXECUTED.items():
        found[name] = sum(use.instructions for use in uses if use.name == what)
    for name, what in _BUSY.items():
        found[name] = sum(use.cycles for use in uses if use.name == what)
    return {name: value / cores for name, value in found.items()}
