"""The runner's instruction file as columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from insight_trace.dtypes import DTYPES
from insight_trace.errors import JobError
from insight_trace.model import Instructions, Pipe

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST_PC = 0x10000000

# engine/record.hpp
_FIELDS = [
    ("issue", "<i8"), ("start", "<i8"), ("end", "<i8"), ("site", "<u4"), ("core", "<u2"), ("stall", "u1"),
    ("form", "u1"), ("partner", "<u4"), ("bytes", "<u4"), ("a", "<u8"), ("dst", "<u4"), ("src0", "<u4"),
    ("src1", "<u4"), ("repeat", "<u2"), ("read_conflict", "<u2"),
]  # fmt: skip
ROW_BYTES = 64
_NO_PARTNER = 0xFFFFFFFF
_PLAIN, _FLAG, _BARRIER, _VECTOR, _TRANSFER, _LOCAL, _MULTIPLY, _SCALAR, _FUNCTION = range(9)

# abi.hpp PipeId: S V M MTE1 MTE2 MTE3 ALL FIX
_PIPES = [Pipe.SCALAR, Pipe.VECTOR, Pipe.CUBE, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.ALL, Pipe.FIXP]
# the same as the vendor's simulator spells them in operands
_PIPE_TEXT = ["SCALAR", "VEC", "CUBE", "MTE1", "MTE2", "MTE3", "ALL", "FIXP"]
_TYPE_TEXT = {
    "FLOAT32": "F32", "FLOAT16": "F16", "BFLOAT16": "BF16", "INT64": "S64", "INT32": "S32", "INT16": "S16",
    "INT8": "S8", "UINT64": "U64", "UINT32": "U32", "UINT16": "U16", "UINT8": "U8",
}  # fmt: skip
_FOUR_BITS = frozenset({14, 17, 18})  # abi.hpp: F4E2M1, F4E1M2, I4


# The vendor's simulator of the 950 family: a lane each for pushed functions, loads, stores and arithmetic, and names of
# its own for what works on vector registers.
_A5_LANES = {"VF": Pipe.PUSHQ, "VLD": Pipe.RVECLD, "VST": Pipe.RVECST}
_A5_NAMES = {
    "VF": "VF", "VCONV": "RV_VCVT_F2F", "VCONV_WIDE": "RV_VCVT_F2F", "VCONV_HALF": "RV_VCVT_F2F", "MOVEV": "RV_VDUP",
    "MOV_UB_TO_UB": "RV_VMOV", "VABS": "RV_VABS_FP", "MOV_OUT_TO_UB_ALIGN": "MOV_OUT_TO_UB_ALIGN_V2",
    "MOV_UB_TO_OUT_ALIGN": "MOV_UB_TO_OUT_ALIGN_V2",
}  # fmt: skip
_A5_TABLED = {shown: name for name, shown in reversed(_A5_NAMES.items())}
# instructions of the vector pipe that are not part of a function
_A5_VECTOR = frozenset({"SET_FLAG", "WAIT_FLAG", "BAR", "MOV_SPR_XN"})


def _type_text(code: int) -> str:
    if code in _FOUR_BITS:
        return "B4"
    return _TYPE_TEXT.get(DTYPES[code].name, "B8") if code < len(DTYPES) else "B8"


class Site:
    """A kernel line and the instruction it issues."""

    __slots__ = ("file", "line", "name", "pipe")

    def __init__(self, file: str, line: int, name: str, pipe: int) -> None:
        self.file, self.line, self.name, self.pipe = file, line, name, pipe


class Details(Sequence[str]):
    """Operand text per row, spelled when it is asked for."""

    def __init__(self, rows: NDArray[Any], names: list[str]) -> None:
        self._rows = rows
        self._names = names

    def __len__(self) -> int:
        return len(self._rows)

    def type_codes(self) -> NDArray[Any]:
        """The element type of every row that has one; 0 elsewhere, as of the first type."""
        codes: NDArray[Any] = (self._rows["dst"] >> 24).astype("u1")
        return codes

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [_spell(row) for row in self._rows[index].tolist()]
        return _spell(self._rows[index].tolist())


def _spell(row: tuple[Any, ...]) -> str:
    form, moved, a, dst, src0, src1, repeat = row[6], row[8], row[9], row[10], row[11], row[12], row[13]
    dtype = _type_text(dst >> 24)
    if form == _FLAG:
        source, target, event = a & 0xFF, a >> 8 & 0xFF, a >> 16
        return f"PIPE:{_PIPE_TEXT[source]},TRIGGERPIPE:{_PIPE_TEXT[target]},FLAGID:{event},"
    if form == _BARRIER:
        return f"PIPE:{_PIPE_TEXT[a]},"
    if form == _VECTOR:
        text = f"dtype:{dtype},XD:{dst & 0xFFFFFF:#x},"
        if src0 >> 24:
            text += f"XN:{src0 & 0xFFFFFF:#x},"
        if src1 >> 24:
            text += f"XM:{src1 & 0xFFFFFF:#x},"
        strides = "/".join(str(a >> shift & 0xFF) for shift in (0, 8, 16, 24, 32, 40))
        return f"{text}repeat:{repeat},stride:{strides},elements:{moved},"
    if form == _TRANSFER:
        return f"dtype:{dtype},GM:{a:#x},local:{dst & 0xFFFFFF:#x},bursts:{repeat},bytes:{moved},"
    if form == _LOCAL:
        return f"dtype:{dtype},XD:{dst & 0xFFFFFF:#x},XN:{src0 & 0xFFFFFF:#x},repeat:{repeat},bytes:{a},"
    if form == _MULTIPLY:
        m, k, n = a & 0xFFFFF, a >> 20 & 0xFFFFF, a >> 40
        where = f"XD:{dst & 0xFFFFFF:#x},XN:{src0 & 0xFFFFFF:#x},XM:{src1 & 0xFFFFFF:#x}"
        return f"dtype:{dtype},{where},M:{m},K:{k},N:{n},"
    if form == _FUNCTION:
        return f"loops:{a & 0xFFFFFFFF},rows:{a >> 32},"
    return f"value:{a:#x}," if a else ""


def _shown(site: Site, target: str) -> tuple[str, Pipe]:
    """Name and lane of an instruction, as the vendor's simulator of that family shows it."""
    lane = _PIPES[site.pipe]
    if target != "a5":
        return site.name, lane
    if lane is not Pipe.VECTOR or "CROSS_CORE" in site.name or "INTRA_BLOCK" in site.name:
        return _A5_NAMES.get(site.name, site.name), lane
    if site.name in _A5_VECTOR or site.name.startswith("WAIT_"):
        return site.name, lane
    return _A5_NAMES.get(site.name, f"RV_{site.name}"), _A5_LANES.get(site.name, Pipe.RVECEX)


def tabled_name(name: str) -> str:
    """The name under which a chip's tables time an instruction that a trace shows as `name`."""
    if name in _A5_TABLED:
        return _A5_TABLED[name]
    return name.removeprefix("RV_")


def _require_known(rows: NDArray[Any], sites: int, cores: int) -> None:
    """The runner shares its process with a kernel, which may have written over its rows."""
    if not len(rows):
        return
    site, core = int(rows["site"].max()), int(rows["core"].max())
    if site >= sites or core >= cores:
        raise JobError(
            f"the kernel wrote over the recorded instructions: site {site} of {sites}, core {core} of {cores}",
            hint="look for a store through a wild pointer in the kernel",
        )


def load_instructions(
    path: Path, sites: list[Site], cores: tuple[str, ...], target: str = "a2a3"
) -> Instructions:
    """Maps the runner's file; nothing is copied but the small columns that need another type."""
    import numpy as np

    size = path.stat().st_size
    dtype = np.dtype(_FIELDS)
    # a copy is quicker than a mapping for small streams, and outlives the file either way
    rows = np.fromfile(path, dtype) if size < 1 << 24 else np.memmap(path, dtype, "r")
    order = sorted(range(len(sites)), key=lambda i: (sites[i].file, sites[i].line, i))
    pc_of_site = np.zeros(max(1, len(sites)), np.uint64)
    pc_of_site[order] = FIRST_PC + 4 * np.arange(len(order), dtype=np.uint64)
    shown = [_shown(site, target) for site in sites]
    names = list(dict.fromkeys(name for name, _ in shown))
    stacks = list(dict.fromkeys(["", *(f"{s.file}:{s.line}" if s.file else "" for s in sites)]))
    name_index = {name: i for i, name in enumerate(names)}
    stack_index = {stack: i for i, stack in enumerate(stacks)}
    site_name = np.array([name_index[name] for name, _ in shown] or [0], np.uint16)
    site_stack = np.array(
        [stack_index[f"{s.file}:{s.line}" if s.file else ""] for s in sites] or [0], np.uint32
    )
    site_pipe = np.array([int(lane) for _, lane in shown] or [0], np.uint8)
    _require_known(rows, len(sites), len(cores))
    site = rows["site"]
    form = rows["form"]
    vector = form == _VECTOR
    moved = rows["bytes"].astype(np.int64)
    partner = rows["partner"].astype(np.int64)
    banked = vector & (target != "a5")  # nothing is known of the 950's banks, and -1 says so
    lanes = np.array([256 // max(1, d.size) for d in DTYPES] + [256] * (256 - len(DTYPES)))
    capacity = rows["repeat"].astype(np.float32) * lanes[rows["dst"] >> 24]
    utilisation = np.full(len(rows), -1.0, np.float32)
    np.divide(
        moved * np.float32(100), capacity, out=utilisation, where=vector & (capacity > 0), casting="unsafe"
    )
    return Instructions(
        cores=cores,
        names=tuple(names),
        stacks=tuple(stacks),
        core=rows["core"],
        pipe=site_pipe[site],
        name=site_name[site],
        stack=site_stack[site],
        pc=pc_of_site[site],
        start=rows["start"],
        end=rows["end"],
        detail=Details(rows, names),
        issue=rows["issue"],
        process_bytes=np.where(form == _TRANSFER, moved, -1),
        partner=np.where((partner == _NO_PARTNER) | vector, -1, partner),
        stall=rows["stall"],
        read_conflict=np.where(banked, rows["read_conflict"].astype(np.int32), -1).astype(np.int32),
        write_conflict=np.where(banked, partner, -1).astype(np.int32),
        utilisation=utilisation,
    )
