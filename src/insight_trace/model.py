"""The nouns of the house: plain, frozen data that crosses from one package to the next.

Nothing here computes. NumPy is imported for typing only, so that a command which shows a help text
or an error never pays for it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from insight_trace.results import TracedResult

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from insight_trace.dtypes import DType

ARG_SLOTS = 50
LOCAL_CONTEXT_SLOT = 48
GLOBAL_CONTEXT_SLOT = 49
MAX_TENSOR_DIMS = 5


class CoreType(enum.StrEnum):
    """Which core runs a kernel: cube, vector, or a cube with its vector cores."""

    AIC = "aic"
    AIV = "aiv"
    MIX = "mix"


class Role(enum.StrEnum):
    """How a kernel uses a tensor."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"


class Stage(enum.StrEnum):
    """When a record was taken."""

    BEFORE = "before_dispatch"
    AFTER = "after_completion"


class Tier(enum.StrEnum):
    """How far a replayed tensor's content can be trusted."""

    EXACT = "exact"  # the recorded payload
    FILLED = "filled"  # what the user asked for
    RECONSTRUCTED = "reconstructed"  # from another record of the same buffer
    SYNTHETIC = "synthetic"  # zero or random
    OUTPUT = "output"  # written by the kernel, no content needed


# --- scenes -----------------------------------------------------------------------------------------


class Kernel(Struct, frozen=True):
    """One incore function of a scene, or a single kernel source."""

    name: str
    source: Path
    core_type: CoreType
    func_id: int | None = None
    signature: tuple[str, ...] | None = None  # "IN", "OUT", "INOUT", "SCALAR" by slot; None: not declared
    include_dirs: tuple[str, ...] = ()
    entry: str = "kernel_entry"
    written: Path | None = None  # what the user wrote, where `source` is only an entry around it


class Case(Struct, frozen=True):
    """One parameter set that a scene can run with."""

    name: str
    platforms: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    manual: bool | tuple[str, ...] = False
    skip_golden: bool = False


class Orchestration(Struct, frozen=True):
    """The function that submits a scene's tasks."""

    source: Path | None  # None: a Python function of the scene module itself
    function_name: str
    signature: tuple[str, ...] = ()
    config_name: str | None = None


class Scene(Struct, frozen=True):
    """What a scene module declares."""

    path: Path
    name: str
    class_name: str
    level: int
    runtime: str
    cases: tuple[Case, ...]
    kernels: tuple[Kernel, ...]
    orchestration: Orchestration | None
    rtol: float = 1e-5
    atol: float = 1e-5
    notes: tuple[str, ...] = ()  # what could not be read, and why


# --- dispatches -------------------------------------------------------------------------------------


class Payload(Struct, frozen=True):
    """Recorded bytes of a tensor's logical, row-major content. Nothing is read until it is asked for."""

    path: Path
    offset: int
    size: int
    truncated: bool = False


class TensorArg(Struct, frozen=True):
    """A tensor in one slot: the view a kernel gets, and what was recorded of it."""

    slot: int
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # elements
    start_offset: int = 0  # elements
    role: Role | None = None  # None: not recorded
    before: Payload | None = None
    after: Payload | None = None
    pointer: int | None = None
    buffer_size: int | None = None  # bytes of the whole buffer, where recorded
    name: str = ""

    @property
    def numel(self) -> int:
        product = 1
        for extent in self.shape:
            product *= extent
        return product

    @property
    def extent(self) -> int:
        """Elements from the buffer's start to the end of the view."""
        if self.numel == 0:
            return self.start_offset
        spans = ((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return self.start_offset + 1 + sum(spans)


class ScalarArg(Struct, frozen=True):
    """A scalar in one slot, as the 64 bits that the kernel reads."""

    slot: int
    dtype: DType
    bits: int  # 0 .. 2**64-1
    exact: bool = True  # False: a printed decimal did not give the bits back for certain
    ambiguous: bool = False
    name: str = ""


class ContextArg(Struct, frozen=True):
    """A context pointer that the runtime put in a slot; replay builds its own."""

    slot: int
    pointer: int | None = None
    name: str = ""


Argument = TensorArg | ScalarArg | ContextArg


class Dispatch(Struct, frozen=True):
    """One execution of one kernel, or of the members of a mix."""

    dispatch_id: int
    task_id: int
    arguments: tuple[Argument, ...]  # by slot
    func_ids: tuple[int, ...] = ()  # (): not recorded
    subtask_id: int | None = None
    core_type: CoreType | None = None
    core_id: int | None = None
    block_idx: int | None = None
    block_count: int = 1
    stage: Stage = Stage.BEFORE
    kernel: str = ""  # name, where known
    inferred: tuple[str, ...] = ()  # which of the above were inferred, not read
    missing: tuple[str, ...] = ()  # what the schema could not say

    @property
    def form(self) -> tuple[Any, ...]:
        """What must be equal for two dispatches to take the same time."""
        arguments = tuple(
            (a.slot, a.dtype.name, a.shape, a.strides)
            if isinstance(a, TensorArg)
            else (a.slot, getattr(a, "bits", None))
            for a in self.arguments
        )
        return (self.func_ids, self.block_count, arguments)


# --- instructions -----------------------------------------------------------------------------------


class Pipe(enum.IntEnum):
    """Lanes of a core under the names and in the order that MindStudio Insight shows them."""

    SCALAR = 1
    FLOWCTRL = 2
    MTE1 = 3
    CUBE = 4
    FIXP = 5
    MTE2 = 6
    VECTOR = 7
    MTE3 = 8
    CACHEMISS = 9
    SCALARLDST = 10
    ALL = 11
    USERMARK = 12
    EVENT = 13
    SET_FLAG = 14
    WAIT_FLAG = 15
    set_event = 16
    wait_event = 17
    RVECEX = 18
    RVECLP = 19
    RVECST = 20
    RVECLD = 21
    PUSHQ = 22
    RVECSU = 23


class Stall(enum.IntEnum):
    """Why an instruction started later than it was issued."""

    NONE = 0
    PIPE = 1  # the pipe was busy with earlier work
    QUEUE = 2  # the pipe's queue was full, so issue itself waited
    FLAG = 3  # a wait_flag; `partner` is the row of the set
    BARRIER = 4
    BANK = 5  # unified-buffer bank conflicts lengthened it
    BANDWIDTH = 6  # shared bandwidth lengthened it
    CROSS_CORE = 7  # a flag of another core; `partner` is its row


class Operands(Struct, frozen=True, eq=False):
    """What instructions work on: columns by row of the stream, and the tables that they index.

    `recording.operands` has the types of the tables and what can be asked of them.
    """

    times: NDArray[np.int64]  # issue, start, end in thousandths of a cycle
    form: NDArray[np.uint8]  # recording.operands.Form
    value: NDArray[np.uint64]  # of flags, barriers, registers and scalar accesses
    geometry: NDArray[np.uint32]  # row of `geometries`; NONE where the form has none
    call: NDArray[np.uint32]  # row of `calls`: the tile op that issued it; NONE outside of one
    first: NDArray[np.uint32]  # its operands are `count` rows of `rows` from here on
    count: NDArray[np.uint32]
    rows: NDArray[Any]
    geometries: NDArray[Any]
    footprints: NDArray[Any]
    tiles: NDArray[Any]
    calls: NDArray[Any]
    lists: NDArray[np.uint32]  # tiles of a call: a count, and as many rows of `tiles`
    ops: tuple[str, ...]  # names of tile ops, by number


class Instructions(Struct, frozen=True, eq=False):
    """Executed instructions, a column per fact and a row per execution.

    Rows are in program order per core. Times are cycles of the core's clock. -1 means "does not apply"
    in every optional column. `cores`, `names` and `stacks` are tables that columns index.
    """

    cores: tuple[str, ...]  # core0.cubecore0, core0.veccore0, …
    names: tuple[str, ...]  # mnemonics as the vendor's simulator prints them
    stacks: tuple[str, ...]  # "file:line" frames, innermost first, joined by "\n"; "" = unknown
    core: NDArray[np.uint16]
    pipe: NDArray[np.uint8]  # Pipe
    name: NDArray[np.uint16]
    stack: NDArray[np.uint32]
    pc: NDArray[np.uint64]
    start: NDArray[np.int64]  # the pipe takes it up
    end: NDArray[np.int64]
    detail: Sequence[str]  # operand text per row, blanks removed; may be made lazily
    issue: NDArray[np.int64]  # the scalar unit hands it to its pipe; = start where unknown
    process_bytes: NDArray[np.int64]  # bytes moved to or from GM
    partner: NDArray[np.int64]  # row of the SET_FLAG that ended this WAIT_FLAG
    stall: NDArray[np.uint8]  # Stall
    read_conflict: NDArray[np.int32]  # UB bank conflict cycles
    write_conflict: NDArray[np.int32]
    utilisation: NDArray[np.float32]  # vector lanes in use, percent
    operands: Operands | None = None  # None: the trace does not say more than `detail`

    def __len__(self) -> int:
        return len(self.start)


class Counter(Struct, frozen=True, eq=False):
    """A series of throughput samples; each holds until the next, and the last closes the series."""

    name: str  # GM_TO_UB, …
    micros: NDArray[np.float64]
    megabytes_per_second: NDArray[np.float64]


class Trace(TracedResult, Struct, frozen=True, eq=False):
    """One run as it is written to, or read from, an Insight directory."""

    instructions: Instructions
    mhz: float
    soc_version: str = ""
    sources: Mapping[str, bytes] = field(default_factory=dict)  # path as it stands in `stacks` -> text
    counters: tuple[Counter, ...] = ()
    path: Path | None = None
    warnings: tuple[str, ...] = ()
    origin: str = ""  # what was read: "recording", or the name of a file of an Insight directory
    # what only a simulation of ours knows
    memory: MemoryUse | None = None
    launch: Launch | None = None
    confidence: Confidence | None = None

    def summary(self) -> str:
        rows = self.instructions
        cycles = int(rows.end.max()) if len(rows) else 0
        cores = f"{len(rows.cores)} {'core' if len(rows.cores) == 1 else 'cores'}"
        where = self.path or self.soc_version
        return f"{len(rows):,} instructions on {cores} · {cycles:,} cycles at {self.mhz:g} MHz · {where}"

    def columns(self) -> Mapping[str, Any]:
        """One row per executed instruction."""
        from insight_trace import table

        return table(self)


# --- simulation -------------------------------------------------------------------------------------


class MemoryUse(Struct, frozen=True):
    """What a run asked of the chip's memory, in bytes of whole sectors."""

    asked: int
    hits: int  # of them, found in L2
    fetched: int  # read from memory
    written_back: int  # lines that made room

    @property
    def hit_rate(self) -> float:
        return self.hits / self.asked if self.asked else 1.0


class Launch(Struct, frozen=True):
    """What is around a kernel, in cycles, and when its cores ran."""

    before: int  # from the launch to its first block; 0 when it was not launched by itself
    after: int
    waves: int  # how often the cores took up blocks
    starts: tuple[int, ...]  # by core
    ends: tuple[int, ...]
    overfull: bool = False  # blocks waited for blocks that had no core: a chip would wait for ever
    first: bool = False  # launched for the first time: it fetches its code and looks up its pages

    @property
    def around(self) -> int:
        return self.before + self.after

    @property
    def waits_for_last(self) -> float:
        """Cycles that a core has nothing left to do before the last one ends, the mean over the cores."""
        if not self.ends:
            return 0.0
        first_end = min(self.ends)
        cores = max(1, sum(start < first_end for start in self.starts))  # the others came when one was free
        return max(self.ends) - sum(sorted(self.ends)[-cores:]) / cores


class Confidence(Struct, frozen=True):
    """The 90 % interval of the cycles that kernels of this kind take on a chip, where the model says this many."""

    cycles: int
    spread: float  # relative, to either side
    kind: str  # of kernel: cube, vector, mix
    rests_on: tuple[
        str, ...
    ] = ()  # what of the run no published kernel has tried; the spread is that much wider

    @property
    def low(self) -> int:
        return round(self.cycles / (1 + self.spread))

    @property
    def high(self) -> int:
        return round(self.cycles * (1 + self.spread))

    @property
    def text(self) -> str:
        told = f"{self.low:,} to {self.high:,} cycles on a chip (90 % interval of {self.kind} kernels)"
        return told + (f"; wider because of {' and '.join(self.rests_on)}" if self.rests_on else "")
