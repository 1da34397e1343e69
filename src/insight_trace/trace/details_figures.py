"""The figures of a run as Insight's Details page shows them: every number is one of `stats`, by block and core."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct
from msgspec.structs import replace

from insight_trace.dtypes import DTYPES
from insight_trace.insight import details_page as page
from insight_trace.insight.details_page import DetailsPage
from insight_trace.model import Instructions, Pipe, Trace
from insight_trace.recording.busy import CoreStats, PipeStats
from insight_trace.recording.cache_use import REQUEST
from insight_trace.recording.operands import NONE, Form
from insight_trace.recording.pipes import VECTOR_ARITHMETIC, core_order
from insight_trace.trace.advice import Advice, advise
from insight_trace.trace.cache_lines import cache_lines
from insight_trace.trace.details_roofs import ceilings, roofline
from insight_trace.trace.memory_paths import CorePath
from insight_trace.trace.shown_part import Shown
from insight_trace.trace.stats import Stats, stats
from insight_trace.trace.timeline_spans import cache_misses, timeline_spans

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GIB = 2**30
_MOST_REASONS = 20
_CORE = re.compile(r"core(\d+)\.(cube|vec)core(\d+)")
_ACTIVE = {"CUBE": "Cube All Active", "VECTOR": "Vector All Active"}
_PIPES = {"FIXPIPE": "FIXP", "SCALAR": "Scalar"}  # as the vendor's tables call them
_MEMORY_TOPICS = frozenset({"transfer", "l2"})

# Arrows of Insight's memory graphs by path, and the bytes that the vendor's profiler counts as one request there (msopprof
# device_defs.h): of A2 and A3, and of the 950. The second vector core has arrows of its own.
_ARROWS = {
    "910B": {
        "GM_TO_L1": (2, 256), "L1_TO_GM": (3, 128), "L1_TO_L0A": (4, 256), "L1_TO_L0B": (5, 128),
        "L0A_TO_CUBE": (6, 512), "L0B_TO_CUBE": (7, 512), "CUBE_TO_L0C": (8, 1024), "L0C_TO_L1": (9, 128),
        "L0C_TO_GM": (10, 128), "L0C_TO_CUBE": (11, 1024),
        "GM_TO_UB": (12, 128), "UB_TO_GM": (13, 128), "UB_TO_VEC": (14, 256), "VEC_TO_UB": (15, 256),
    },
    "910A5": {
        "GM_TO_L1": (2, 256), "L0A_TO_CUBE": (6, 64), "L0B_TO_CUBE": (7, 256), "CUBE_TO_L0C": (8, 1024),
        "L1_TO_L0A": (37, 256), "L1_TO_L0B": (38, 256), "L0C_TO_GM": (40, 128), "L0C_TO_L1": (41, 128),
        "GM_TO_UB": (12, 128), "UB_TO_GM": (13, 128), "UB_TO_VEC": (14, 256), "VEC_TO_UB": (15, 256),
    },
}  # fmt: skip
_HBM_TO_L2, _L0C_TO_FIXP = 0, 39


# Rows of a trace up to which a replay tries changes for its advice: it should not wait for that.
_MOST_TRIED = 10_000


class _Core(Struct, frozen=True):
    """One core that ran, with its figures."""

    block: int
    kind: str  # cube or vector
    index: int
    core: CoreStats
    pipes: tuple[PipeStats, ...]
    paths: tuple[CorePath, ...]
    types: tuple[TypeUse, ...] = ()  # what its unit worked on

    @property
    def label(self) -> str:
        return f"{self.kind}{self.index}"

    def asked(self, ends: str) -> tuple[int, int]:
        """Requests to L2 over paths from or to global memory, and those it did not have."""
        chosen = [path for path in self.paths if ends in path.path and path.requests is not None]
        return sum(path.requests or 0 for path in chosen), sum(path.missed or 0 for path in chosen)


def details_of(
    trace: Trace,
    kernels: Sequence[str],
    target: str,
    figures: Stats | None = None,
    shown: Shown | None = None,
) -> DetailsPage:
    """The page of a run of these kernels, on a chip of that family; `shown` is what its timeline has of it."""
    figures = figures or stats(trace)
    name, types = " + ".join(dict.fromkeys(kernels)), type_use(trace.instructions)
    found = details_figures(figures, advise(trace, figures, _MOST_TRIED), name, target, types)
    cache, why_not = cache_lines(trace.instructions)
    if why_not and found.memory_tables:
        said = [f"There is no Cache page: {why_not}."]
        tables = [replace(each, advice=[*each.advice, *said]) for each in found.memory_tables.table_per_block]
        found = replace(found, memory_tables=page.MemoryTables(tables))
    part, path = (shown.trace, shown.path) if shown else (trace, figures.path)
    missed = cache_misses(part)
    spans = (*timeline_spans(part, path), *((missed,) if missed else ()))
    return replace(found, cache=cache, spans=spans)


def details_figures(
    figures: Stats,
    advice: Sequence[Advice],
    name: str,
    target: str,
    types: Mapping[str, tuple[TypeUse, ...]] | None = None,
) -> DetailsPage:
    """The page of one run; empty where its cores are not those of a simulated dispatch."""
    advice = [replace(item, text=_lane_names(item.text)) for item in advice]
    cores = _cores(figures, types or {})
    if not cores or not figures.cycles:
        return DetailsPage()
    blocks: dict[int, list[_Core]] = defaultdict(list)
    for core in cores:
        blocks[core.block].append(core)
    several = any(len(members) > 1 for members in blocks.values())
    op_type = "mix" if several else cores[0].kind
    graph = "910A5" if target == "a5" else "910B"
    memory = [item.text for item in advice if item.topic in _MEMORY_TOPICS]
    compute = [item.text for item in advice if item.topic not in _MEMORY_TOPICS | {"balance"}]
    balance = "\n".join(item.text for item in advice if item.topic == "balance")
    bars = [load for core in cores for load in _bars(core, op_type)]
    rows = [load for core in cores for load in _rows(core, op_type, figures.mhz)]
    graphs = [_graph(number, blocks[number], op_type, graph, figures, compute) for number in sorted(blocks)]
    return DetailsPage(
        base=_base(figures, blocks, name, op_type),
        compute_bars=page.ComputeLoad(bars[: page.MOST_LOADS]),
        compute_rows=page.ComputeLoad(rows[: page.MOST_LOADS]),
        memory_graphs=page.MemoryGraphs(graphs),
        memory_tables=page.MemoryTables(
            [_tables(number, blocks[number], op_type, figures, memory) for number in sorted(blocks)]
        ),
        occupancy=_occupancy(figures, blocks, op_type, balance),
        roofline=roofline(figures, next((item.text for item in advice if item.topic == "bound"), "")),
        stalls=_stalls(figures),
    )


def _lane_names(text: str) -> str:
    """The pipes as the Timeline of the same file calls them."""
    return text.replace("FIXPIPE", "FIXP")


def _cores(figures: Stats, types: Mapping[str, tuple[TypeUse, ...]]) -> list[_Core]:
    pipes: dict[str, list[PipeStats]] = defaultdict(list)
    paths: dict[str, list[CorePath]] = defaultdict(list)
    for pipe in figures.pipes:
        pipes[pipe.core].append(pipe)
    for path in figures.paths:
        paths[path.core].append(path)
    found = []
    for core in sorted(figures.cores, key=lambda item: core_order(item.core)):
        match = _CORE.fullmatch(core.core)
        if match is None:
            return []
        kind = "cube" if match[2] == "cube" else "vector"
        of = tuple(pipes[core.core]), tuple(paths[core.core]), types.get(core.core, ())
        found.append(_Core(int(match[1]), kind, int(match[3]), core, *of))
    return found


def micros(cycles: int, figures: Stats) -> float:
    return round(cycles / figures.mhz, 3)


def percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 2) if whole else 0.0


def _base(figures: Stats, blocks: dict[int, list[_Core]], name: str, op_type: str) -> page.BaseInfo:
    info = (name, op_type, len(blocks), round(figures.micros, 3), figures.soc_version)
    if op_type != "mix":
        head = ["Block ID", "Core Type", "Duration (μs)"]
        rows = [
            page.BlockRow([str(number), core.kind, f"{micros(core.core.cycles, figures):g}"])
            for number, (core, *_) in sorted(blocks.items())
        ]
        return page.BaseInfo(*info, block_detail=page.BlockTable(head, rows, [len(rows) + 1, len(head)]))
    labels = ("cube0", "vector0", "vector1")
    head = ["Block ID", *(f"{label.capitalize()} Duration (μs)" for label in labels)]
    rows = []
    for number, members in sorted(blocks.items()):
        times = {core.label: f"{micros(core.core.cycles, figures):g}" for core in members}
        rows.append(page.BlockRow([str(number), *(times.get(label, page.NA) for label in labels)]))
    return page.BaseInfo(*info, mix_block_detail=page.BlockTable(head, rows, [len(rows) + 1, len(head)]))


def _bars(core: _Core, op_type: str) -> Iterable[page.Load]:
    """Busy pipes, the unit's own by what it worked on, too; names are the vendor's where it has one."""
    of = core.label if op_type == "mix" else op_type
    block = str(core.block)
    for pipe in core.pipes:
        name = _ACTIVE.get(pipe.pipe, _PIPES.get(pipe.pipe, pipe.pipe))
        if op_type == "mix":
            name = f"{name}{core.index}" if pipe.pipe == "VECTOR" else name
            name = name if pipe.pipe in _ACTIVE else f"{name} {core.label}"
        share = percent(pipe.busy, core.core.cycles)
        yield page.Load(block, of, name, page.PERCENT, share, pipe.busy)
    if core.kind == "cube":
        for use in core.types:
            yield page.Load(
                block, of, use.name, page.PERCENT, percent(use.cycles, core.core.cycles), use.cycles
            )


def _rows(core: _Core, op_type: str, mhz: float) -> Iterable[page.Load]:
    """One row a pipe, below it what its unit worked on: Insight shows about 16 of them."""
    of = core.label if op_type == "mix" else op_type
    block = str(core.block)
    for pipe in core.pipes:
        name = _ACTIVE.get(pipe.pipe, _PIPES.get(pipe.pipe, pipe.pipe))
        yield page.Load(block, of, name, page.INSTRUCTIONS, pipe.instructions)
        if pipe.pipe in _ACTIVE:
            for use in core.types:
                yield page.Load(block, of, use.name, page.INSTRUCTIONS, use.instructions)
                if use.conflicts:
                    name = f"{use.name} Bank Conflict"
                    yield page.Load(block, of, name, page.MICROSECONDS, round(use.conflicts / mhz, 3))
            name = f"{core.kind.capitalize()} Wait"
            yield page.Load(block, of, name, page.MICROSECONDS, round(pipe.waiting / mhz, 3))
    for name, ends in (("Data Size Read", "GM_TO_"), ("Data Size Written", "_TO_GM")):
        moved = sum(path.bytes for path in core.paths if ends in path.path)
        if moved:
            yield page.Load(block, of, name, page.BYTES, moved)


def _rate(moved: float, figures: Stats) -> float:
    """GiB a second over the duration of the whole operator, as the vendor counts."""
    return round(moved / (figures.micros * 1e-6) / GIB, 3)


def _peak(path: str, moved: int, figures: Stats) -> float | str:
    roof = ceilings(figures).get(path)
    return min(100.0, percent(moved / (figures.micros * 1e3), roof)) if roof else page.NA


def _graph(
    number: int, members: list[_Core], op_type: str, graph: str, figures: Stats, advice: list[str]
) -> page.MemoryGraph:
    units = []
    for core in members:
        shift = 4 if core.label == "vector1" else 0
        for path in core.paths:
            if path.path not in _ARROWS[graph]:
                continue
            arrow, size = _ARROWS[graph][path.path]
            units.append(
                page.PathLoad(
                    arrow + shift,
                    _rate(path.bytes, figures),
                    -(-path.bytes // size),
                    _peak(path.path, path.bytes, figures),
                )
            )
        out = sum(
            path.bytes for path in core.paths if path.path.startswith("L0C_TO_") and "CUBE" not in path.path
        )
        if graph == "910A5" and out:
            units.append(page.PathLoad(_L0C_TO_FIXP, _rate(out, figures), -(-out // REQUEST), page.NA))
    reads = [core.asked("GM_TO_") for core in members]
    asked = [core.asked("GM") for core in members]
    counted = any(path.requests is not None for core in members for path in core.paths)
    total, missed = sum(a for a, _ in asked), sum(m for _, m in asked)
    fetched = sum(m for _, m in reads)
    if counted:
        units.append(
            page.PathLoad(_HBM_TO_L2, _rate(fetched * REQUEST, figures), fetched, page.NA),
        )
    units.sort(key=lambda unit: unit.memory_path)
    used = {("Cube" if core.kind == "cube" else f"Vector{core.index or ''}"): _unit(core) for core in members}
    l2 = page.L2Use(total - missed, missed, total, percent(total - missed, total))
    return page.MemoryGraph(
        str(number),
        op_type,
        graph,
        advice,
        units,
        L2cache=l2 if counted and total else UNSET,
        **{name: use for name, use in used.items() if use is not None},
    )


def _unit(core: _Core) -> page.UnitUse | None:
    wanted = "CUBE" if core.kind == "cube" else "VECTOR"
    busy = next((pipe.busy for pipe in core.pipes if pipe.pipe == wanted), None)
    return None if busy is None else page.UnitUse(busy, core.core.cycles, percent(busy, core.core.cycles))


def _tables(
    number: int, members: list[_Core], op_type: str, figures: Stats, advice: list[str]
) -> page.BlockTables:
    found = []
    cache = []
    for name, ends in (("L2 Cache Read", "GM_TO_"), ("L2 Cache Write", "_TO_GM"), ("L2 Cache Total", "GM")):
        asked = sum(core.asked(ends)[0] for core in members)
        missed = sum(core.asked(ends)[1] for core in members)
        if asked:
            share = f"{percent(asked - missed, asked):g}"
            cache.append(page.NamedRow(name, [str(asked - missed), str(missed), str(asked), share]))
    if cache:
        found.append(_table("Cache", ["hit", "miss", "total", "hit rate(%)"], cache))
    for core in members:
        of = f" {core.label}" if op_type == "mix" else ""
        rows = [
            page.NamedRow(
                _PIPES.get(pipe.pipe, pipe.pipe),
                [
                    str(pipe.instructions),
                    str(pipe.busy),
                    str(pipe.waiting),
                    f"{percent(pipe.busy, core.core.cycles):g}",
                ],
            )
            for pipe in core.pipes
        ]
        found.append(_table(f"Pipe{of}", ["instructions", "cycle", "wait cycles", "active rate(%)"], rows))
        paths = [
            page.NamedRow(
                path.path.replace("_TO_", "→"),
                [
                    str(path.bytes),
                    str(path.instructions),
                    f"{_rate(path.bytes, figures):g}",
                    f"{peak:g}" if isinstance(peak := _peak(path.path, path.bytes, figures), float) else peak,
                ],
            )
            for path in core.paths
        ]
        if paths:
            found.append(
                _table(f"Paths{of}", ["bytes", "instructions", "throughput(GB/s)", "peak(%)"], paths)
            )
    return page.BlockTables(str(number), op_type, advice, found)


def _table(name: str, head: list[str], rows: list[page.NamedRow]) -> page.MemoryTable:
    return page.MemoryTable(name, ["", *head], rows, [len(rows), len(head)])


def _occupancy(
    figures: Stats, blocks: dict[int, list[_Core]], op_type: str, advice: str
) -> page.Occupancy | None:
    """Every block under the number that the Timeline has for it.

    Insight draws the entries of a vector kernel in pairs, block 25 as Vector1 of Core12, while the vendor's exporter
    names its timeline core25.veccore0. Under any other kind of kernel an entry keeps its number.
    """
    if max(blocks) >= page.MOST_CORES:
        return None
    loads = [
        page.CoreLoad(number, [_sub_core(core) for core in members])
        for number, members in sorted(blocks.items())
    ]
    return page.Occupancy(
        figures.soc_version, "mix" if op_type == "vector" and len(blocks) > 1 else op_type, advice, loads
    )


def _sub_core(core: _Core) -> page.SubCore:
    moved = sum(path.bytes for path in core.paths if "GM" in path.path)
    asked, missed = core.asked("GM")
    rate = percent(asked - missed, asked) if asked else UNSET
    return page.SubCore(core.index, core.kind, core.core.cycles, moved, rate)


def _stalls(figures: Stats) -> page.StallReasons | None:
    """Cycles that pipes of all cores waited, by what for; longest first."""
    sums: dict[str, int] = defaultdict(int)
    for wait in figures.waits:
        source, _, elsewhere = wait.waits_for.partition(" of ")
        what = f"{source} of another core" if elsewhere else source
        sums[_lane_names(f"{wait.pipe} waits for {what} (cycles)")] += wait.cycles
    if figures.conflict_cycles:
        sums["UB bank conflicts (cycles)"] = figures.conflict_cycles
    longest = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:_MOST_REASONS]
    return page.StallReasons(dict(longest)) if longest else None


# Names of the rows of msopprof's compute tables (basic_op_and_pmu.h).
_VECTOR = {"FLOAT32": "FP32", "FLOAT16": "FP16", "INT32": "S32", "INT16": "S16"}
_NAMES = ("Cube FP", "Cube INT", "Vector S32", "Vector FP32", "Vector FP16", "Vector S16", "Vector Misc")


class TypeUse(Struct, frozen=True):
    """One element type on one core."""

    name: str  # Cube FP, Vector FP32, …
    instructions: int
    cycles: int  # each instruction's own, which may overlap
    conflicts: int  # cycles in UB's banks


def type_use(instructions: Instructions) -> dict[str, tuple[TypeUse, ...]]:
    """By core, in the vendor's order; empty where operands are not known."""
    import numpy as np

    operands = instructions.operands
    if operands is None or not len(instructions):
        return {}
    vector = np.isin(instructions.pipe, VECTOR_ARITHMETIC) & (operands.form == Form.VECTOR)
    cube = (instructions.pipe == Pipe.CUBE) & (operands.form == Form.MULTIPLY)
    rows = np.flatnonzero((vector | cube) & (operands.geometry != NONE))
    if not len(rows):
        return {}
    kinds = operands.geometries["type"][operands.geometry[rows]]
    place = _places(cube[rows], kinds)
    key = instructions.core[rows].astype(np.int64) * len(_NAMES) + place
    length = instructions.end[rows] - instructions.start[rows]
    lost = np.maximum(0, instructions.read_conflict[rows]) + np.maximum(0, instructions.write_conflict[rows])
    found: dict[str, list[TypeUse]] = {}
    counts, cycles, conflicts = (np.bincount(key, weights=each) for each in (None, length, lost))
    for each in np.flatnonzero(counts).tolist():
        core = instructions.cores[each // len(_NAMES)]
        sums = int(counts[each]), int(cycles[each]), int(conflicts[each])
        found.setdefault(core, []).append(TypeUse(_NAMES[each % len(_NAMES)], *sums))
    return {core: tuple(uses) for core, uses in found.items()}


def _places(cube: NDArray[np.bool_], kinds: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Of every instruction, which of the names it counts under."""
    import numpy as np

    of_vector, of_cube = np.zeros((2, 256), np.int64)
    of_vector[:] = _NAMES.index("Vector Misc")
    for code, dtype in enumerate(DTYPES):
        of_cube[code] = 0 if dtype.is_float else 1
        if dtype.name in _VECTOR:
            of_vector[code] = _NAMES.index(f"Vector {_VECTOR[dtype.name]}")
    result: NDArray[np.int64] = np.where(cube, of_cube[kinds], of_vector[kinds])
    return result
