"""What operand values say about an instruction: bytes moved, vector lanes in use, bank conflicts.

Register fields as the vendor's exporter reads them for Ascend 910B, 910_93 and 310P.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from insight_trace.chips import LogFamily

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INT32 = 2**31 - 1
_UB_BLOCK = 32
_BLOCKS = 8
_VECTOR_BYTES = 255 * _BLOCKS * _UB_BLOCK  # what one instruction processes at most
_ELEMENT_COUNT_MODE = 1 << 56  # bit of the control register

_SIZES = {1: "S4 B4 U8 S8 B8 U8S8 B8U2 DEQ", 2: "U16 S16 B16 F16 F16F16 F16U2 BF16"}
_SIZES |= {4: "U32 S32 B32 B32S B32L F32 FMIX F16F32 BF16F32 F32F32", 8: "U64 S64 B64 F64", 0: "UNDEF"}
ELEMENT_SIZE = {name: size for size, names in _SIZES.items() for name in names.split()}
_ELEMENT_SIZE_310P = (1, 2, 4, 1, 4, 2, 4, 4, 4, 2)  # by the number in the log
_MEMORIES = frozenset({"L1", "L0A", "L0B", "L0C", "UB", "BT", "OUT"})

_UNARY_NAMES = (
    "LD_VAD VABS VADDS VBS16 VCBD VCONV VEXP VGATHER VLN VLRELU VMAXS VMERGECH VMINS VMULS VNOT VPADDING "
    "VREC VRELU VRPAC VRSQRT VSCATTER VSHL VSHR VSQRT VTRANSPOSE"
)
_BINARY_NAMES = (
    "VAADD VADD VADDDEQRELU VADDRELU VADDRELUCONV VAND VAXPY VCMP VDIV VIOU VMADD VMADDRELU VMAX VMIN VMLA "
    "VMUL VMULCONV VOR VSEL VSUB VSUBRELU VSUBRELUCONV"
)
_ONE_SOURCE = frozenset(_UNARY_NAMES.split())
_TWO_SOURCES = frozenset(_BINARY_NAMES.split())
_REDUCTIONS = frozenset(("VCADD", "VCGADD", "VCGMAX", "VCGMIN", "VCMAX", "VCMIN", "VCPADD"))
# no bank conflicts are worked out for these
_OTHERS = frozenset(("VDP", "VEXTRACT", "VMOVMASK_XN", "VMS4", "VREDUCE"))
_VECTOR = _ONE_SOURCE | _TWO_SOURCES | _REDUCTIONS | _OTHERS
_VECTOR_310P = frozenset(name.lower() for name in _VECTOR - {"LD_VAD", "VMOVMASK_XN"}) | {
    *("ldvad", "vmovemask_cmp_xn")
}


def _field(name: str, text: str) -> int | None:
    """The value of an operand such as `XM:X2=0x20010`, always hexadecimal."""
    match = re.search(rf"{name}:X[0-9]{{1,2}}=(?:0x)?([0-9a-f]{{1,16}})", text)
    return None if match is None else int(match[1], 16)


def _field_310p(name: str, text: str) -> int | None:
    match = re.search(rf"{name}Value:(?:0x)?([0-9a-f]{{1,16}})", text)
    return None if match is None else int(match[1], 16)


def _bits(value: int, start: int, length: int) -> int:
    return (value >> start) & ((1 << length) - 1)


def _word(name: str, text: str) -> str:
    match = re.search(rf"{name}:([A-Za-z0-9]+)", text)
    return "" if match is None else match[1]


class _Fields:
    """Operand values of one instruction; `all_of` is None unless every one is there."""

    def __init__(self, read: Callable[[str, str], int | None], names: dict[str, str], text: str) -> None:
        self._read, self._names, self.text = read, names, text

    def all_of(self, *names: str) -> tuple[int, ...] | None:
        values = tuple(self._read(self._names[name], self.text) for name in names)
        return None if None in values else values  # type: ignore[return-value]


def _load_2d(fields: _Fields) -> int | None:
    values = fields.all_of("XN", "XD", "XM")
    return None if values is None else 512 * _bits(values[2], 16, 8)


def _move(fields: _Fields) -> int | None:
    values = fields.all_of("XN", "XD", "XM")
    return None if values is None else _bits(values[2], 16, 16) * 32 * _bits(values[2], 4, 12)


def _mask(fields: _Fields) -> int | None:
    values = fields.all_of("XN", "XD", "XT")
    if values is None:
        return None
    config = values[2]
    return ((((config & 0x800) >> 4) | (config & 0x7F)) + 15) // 16 * 32


def _nd_to_nz(fields: _Fields) -> int | None:
    values = fields.all_of("XN", "XD", "XM", "XT")
    size = ELEMENT_SIZE.get(_word("Dtype", fields.text))
    if values is None or size is None:
        return None
    return _bits(values[2], 32, 16) * size * _bits(values[2], 16, 16)


def _aligned_move(fields: _Fields) -> int | None:
    values = fields.all_of("XN", "XD", "XM", "XT")
    match = re.search(r"Src:([A-Za-z]+)", fields.text)
    if values is None or match is None or match[1] not in _MEMORIES:
        return None
    length = _bits(values[2], 16, 21)
    if match[1] == "UB":
        length = -(-length // _UB_BLOCK) * _UB_BLOCK
    return length * _bits(values[2], 4, 12)


_QUANTISED_BITS = dict.fromkeys((1, 10, 11, 12, 13, 16), 16) | dict.fromkeys((8, 9, 23, 24), 8)
_QUANTISED_BITS |= dict.fromkeys((21, 22, 25, 26), 4)


def _fix_pipe(fields: _Fields) -> int | None:
    values = fields.all_of("XN", "XD", "XM", "XT")
    match = re.search(r"Dst:([A-Za-z]+)", fields.text)
    if values is None or match is None or match[1] not in _MEMORIES:
        return None
    _, _, xm, xt = values
    columns, rows = _bits(xm, 4, 12), _bits(xm, 16, 16)
    bits = _QUANTISED_BITS.get(_bits(xt, 34, 5), 32)
    if _bits(xt, 43, 1):
        return columns // 2 * rows if bits == 4 else columns * (bits // 8) * rows
    tiles = -(-columns // 16)
    # the vendor compares the source with "L0C32" but reads letters only, so no split is ever seen
    if bits in (4, 8):
        repeats = tiles // (4 if bits == 4 else 2)
        if bits == 8 and tiles % 2 == 0:
            return rows * 32 * repeats
        return rows * 16 * (2 * repeats + 1)
    return rows * bits // 8 // 2 * 32 * tiles


_MOVES: dict[str, Callable[[_Fields], int | None]] = {
    "LOAD_2D": _load_2d,
    "MOV_OUT_TO_UB": _move,
    "MOV_OUT_TO_L1": _move,
    "MOV_UB_TO_OUT": _move,
    "MOV_L1_TO_OUT": _move,
    "MOV_OUT_TO_L1_MULTI_ND2NZ": _nd_to_nz,
    "MOV_SRC_TO_DST_ALIGN": _aligned_move,
    "FIX_L0C_TO_DST": _fix_pipe,
}
_MOVES_310P: dict[str, Callable[[_Fields], int | None]] = {
    "load_out_to_l0a_2d": _load_2d,
    "load_out_to_l0b_2d": _load_2d,
    "load_out_to_l1_2d": _load_2d,
    "load_src_to_smask": _mask,
    "mov_out_to_ub": _move,
    "mov_out_to_l1": _move,
    "mov_ub_to_out": _move,
}
_NAMES = {name: name for name in ("XN", "XD", "XM", "XT", "XS")}
_NAMES_310P = {name: name.lower() for name in _NAMES}


def bytes_moved(family: LogFamily, name: str, detail: str) -> int:
    """Bytes that a move processes; 0 where they are not known."""
    if family.a2_or_a3:
        move = _MOVES.get(name)
        fields = _Fields(_field, _NAMES, detail)
    elif family is LogFamily.INFER:
        move = _MOVES_310P.get(name)
        fields = _Fields(_field_310p, _NAMES_310P, detail)
    else:
        return 0
    found = None if move is None else move(fields)
    return 0 if found is None or found > _INT32 else found


class _Memory(NamedTuple):
    address: int
    stride: int


def bank_conflicts(family: LogFamily, name: str, detail: str) -> tuple[int, int]:
    """Most blocks of one repeat beyond the first that fall into the same bank group: read, written."""
    if family is LogFamily.INFER:
        return _conflicts_310p(detail) if name in _VECTOR_310P else (-1, -1)
    if not family.a2_or_a3 or name not in _VECTOR or ELEMENT_SIZE.get(_word("Dtype", detail)) is None:
        return -1, -1
    target, one, two, config = (_field(field, detail) or 0 for field in ("XD", "XN", "XM", "XT"))
    if name in _ONE_SOURCE:
        sources = [_Memory(one, _bits(config, 16, 16))]
        written = _Memory(target, _bits(config, 0, 16))
    elif name in _TWO_SOURCES:
        sources = [_Memory(one, _bits(config, 8, 8)), _Memory(two, _bits(config, 16, 8))]
        written = _Memory(target, _bits(config, 0, 8))
    elif name in _REDUCTIONS:
        sources = [_Memory(one, _bits(config, 16, 16))]
        written = _Memory(target, 1)
    else:
        return -1, -1
    return _most_alike(sources), _most_alike([written])


def _conflicts_310p(detail: str) -> tuple[int, int]:
    def memory(address: str, stride: str, repeat: str) -> _Memory | None:
        place = re.search(rf"{address}:(?:0x)?([0-9a-f]{{1,16}})", detail)
        step = re.search(rf"{stride}:([0-9a-fx]+)", detail)
        again = re.search(rf"{repeat}:([0-9a-fx]+)", detail)
        if place is None or step is None or again is None:
            return None
        try:
            return _Memory(int(place[1], 16), int(step[1], 16 if step[1].startswith("0x") else 10))
        except ValueError:
            return None

    written = memory("dest_addr", "dst_stride", "dst_rep_stride")
    first = memory("src_addr", "src_stride", "src_rep_stride")
    if written is None or first is None or re.search(r"repeat:[0-9]+", detail) is None:
        return -1, -1
    second = memory("src1_addr", "src1_stride", "src1_rep_stride")
    return _most_alike([first] if second is None else [first, second]), _most_alike([written])


def _most_alike(memories: list[_Memory]) -> int:
    groups = [
        _bits(memory.address + block * memory.stride * _UB_BLOCK, 5, 4)
        for memory in memories
        for block in range(_BLOCKS)
    ]
    return max(groups.count(group) for group in groups) - 1


class _MaskState:
    """The vector mask, which earlier instructions set."""

    def __init__(self, family: LogFamily) -> None:
        self._a2 = family.a2_or_a3
        self._mask = [0, 0]
        self._counting = False

    def update(self, name: str, detail: str) -> None:
        if self._a2 and name == "MOVEMASK":
            match = re.search(r"XN:X[0-9]{1,2}=(?:0x)?([0-9a-f]{1,16}),Pos:([0-9])", detail)
            if match:
                self._mask[int(match[2] == "1")] = int(match[1], 16)
        elif self._a2 and name == "MOV_SPR_XN":
            match = re.search(r"SPR:CTRL,XN:X[0-9]{1,2}=(?:0x)?([0-9a-f]{1,16})", detail)
            if match and "SPR:ND_PARA" not in detail:
                self._counting = bool(int(match[1], 16) & _ELEMENT_COUNT_MODE)
        elif not self._a2 and name == "movemask":
            match = re.search(r"mask:([0-9]),X[0-9]{1,2}:(?:0x)?([0-9a-f]{1,16})", detail)
            if match:
                self._mask[int(match[1] == "1")] = int(match[2], 16)
        elif not self._a2 and name == "scalar_mov_xd_special":
            match = re.search(r"SPR_CTRL=(?:0x)?([0-9a-f]{1,16})", detail)
            if match:
                self._counting = bool(int(match[1], 16) & _ELEMENT_COUNT_MODE)

    def elements(self, repeats: int) -> int:
        if self._counting:
            return (self._mask[1] or self._mask[0]) & 0xFFFFFFFF
        return sum(mask.bit_count() for mask in self._mask) * repeats & 0xFFFFFFFF


def vector_utilisation(
    family: LogFamily, names: Sequence[str], details: Sequence[str]
) -> NDArray[np.float32]:
    """Percent of the lanes that each vector instruction uses; instructions in the vendor's order."""
    found = np.full(len(names), -1, dtype=np.float32)
    if not family.a2_or_a3 and family is not LogFamily.INFER:
        return found
    vector = _VECTOR if family.a2_or_a3 else _VECTOR_310P
    state = _MaskState(family)
    for row, (name, detail) in enumerate(zip(names, details, strict=True)):
        state.update(name, detail)
        if name not in vector:
            continue
        shape = _shape(detail, name) if family.a2_or_a3 else _shape_310p(detail)
        if shape is None:
            continue
        repeats, size = shape
        share = np.float32(state.elements(repeats)) * np.float32(size) / np.float32(_VECTOR_BYTES)
        found[row] = min(share * np.float32(100), np.float32(100))
    return found


def _shape(detail: str, name: str) -> tuple[int, int] | None:
    """Repeats and element size. Instructions of the last group all carry their repeats elsewhere."""
    config, size = _field("XT", detail), ELEMENT_SIZE.get(_word("Dtype", detail))
    if config is None or size is None:
        return None
    # the vendor's table has one entry for all five, the one that combines two fields and keeps eight bits
    return (_bits(config, 0, 8) if name in _OTHERS else _bits(config, 56, 8)), size


def _shape_310p(detail: str) -> tuple[int, int] | None:
    repeats = re.search(r"repeat:([0-9]+)", detail)
    kind = re.search(r"[Tt]ype(?:[:\s]{0,3})([0-9]+)", detail)
    if repeats is None or kind is None or int(kind[1]) >= len(_ELEMENT_SIZE_310P):
        return None
    return int(repeats[1]), _ELEMENT_SIZE_310P[int(kind[1])]
