"""Live registers: how many general registers hold a value that is still read, instruction by instruction.

The vendor walks the instructions in the order of their addresses. A register lives from its writing (or,
if it is read first, from the start) to its last reading before it is written again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from insight_trace.chips import LogFamily

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PATTERNS = {
    LogFamily.INFER: re.compile(r"X([0-9]{1,2})|x[a-z]:0x([0-9]{1,2})|x[a-z]:([0-9]{1,2})|x\[([0-9]{1,2})\]"),
    LogFamily.A2: re.compile(r"X([0-9]{1,2})"),
    LogFamily.A3: re.compile(r"X([0-9]{1,2})"),
    LogFamily.A5: re.compile(r"R([a-z0-9]{1,2}):([0-9a-f]{1,2})\|R"),
}
_WRITES_FIRST = (
    "ADD SUB MUL MADD DIV REM MAX MIN SEL AND OR XOR CMPN LD_XD_XN LD_DDR SQRT NEG ABS NOT SHL SHR SBCNT SFF "
    "SBITSET CLZ SFLBITS CONV MOV_XD_XN MOV_XD_SPR SIGNEXT ZEROEXT INSERT_XD_XN INSERT_XD LD_XD_XN_IMM "
    "MOV_XD_IMM MOVK ADD_IMM MUL_IMM SUB_IMM LD_DEV_XD_XN_IMM12 MOVX8_XD_IMM LD_DEV"
)
_WRITES_FIRST_310P = (
    "add sub mul madd div mod max min sel and or xor cmpn ld ld_ddr sqrt neg abs not shl shr sbcnt sff "
    "sbitset clz sflbits conv mov_xd_xn mov_xd_special signext zeroext insert insert_ext ld_imm "
    "mov_xd_imme16 movk_xd_imme16 add_imm12 mul_imm12 sub_imm12 ld_ddr_imm movx8"
)
# instruction -> places of the registers that it writes, among all that it names
_WRITES_A2: dict[str, tuple[int, ...]] = dict.fromkeys(_WRITES_FIRST.split(), (0,))
_WRITES_A2 |= {"LDP_XI_XJ_XN": (0, 1), "ST_ATOMIC_IMM": (1,), "ST_DEV": (1,)}
_WRITES_310P: dict[str, tuple[int, ...]] = {f"scalar_{name}": (0,) for name in _WRITES_FIRST_310P.split()}
_WRITES_310P |= {"scalar_ldp": (0, 1)}
_WRITES = {LogFamily.A2: _WRITES_A2, LogFamily.A3: _WRITES_A2, LogFamily.INFER: _WRITES_310P}
_WRITES_FOUR = frozenset({"scalar_ld4", "scalar_ld4_imm", "LD4_XD_XN", "LD4_XD_XN_IMM"})
_GENERAL_REGISTERS = 32


def live_registers(
    family: LogFamily, names: Sequence[str], details: Sequence[str]
) -> NDArray[np.int32] | None:
    """Counts for instructions in the vendor's order, or None where the vendor counts nothing."""
    pattern = _PATTERNS.get(family)
    if pattern is None:
        return None
    size = len(names)
    change = np.zeros(size + 2, dtype=np.int64)  # corrections: registers that were dead in a range
    used: dict[str, int] = {}
    counts = np.zeros(size, dtype=np.int64)
    memory: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for row, key in enumerate(zip(names, details, strict=True)):
        known = memory.get(key)
        if known is None:
            known = memory[key] = _registers(family, pattern, *key)
        written, read = known
        for register in read:
            used[register] = row
        for register in written:
            last = used.get(register)
            if last is not None and last + 1 < row:
                change[last + 1] -= 1
                change[row] += 1
            used[register] = row
        counts[row] = len(used)
    for last in used.values():
        change[last + 1] -= 1
        change[size] += 1
    # the vendor's subtraction stops at zero
    live: NDArray[np.int32] = np.maximum(counts + np.cumsum(change)[:size], 0).astype(np.int32)
    return live


def _registers(
    family: LogFamily, pattern: re.Pattern[str], name: str, detail: str
) -> tuple[list[str], list[str]]:
    """Registers written and read."""
    if family is LogFamily.A5:
        found = pattern.findall(detail)
        written = [number for letter, number in found if letter.startswith("d")]
        return written, [number for letter, number in found if not letter.startswith("d")]
    registers = [group for match in pattern.finditer(detail) for group in match.groups() if group]
    if name in _WRITES_FOUR:
        if not registers:
            return [], []
        first = registers[0]
        if not first[1:].isdigit():
            return [], registers[1:]
        # the vendor takes the number without its first digit and puts an X in front, unlike everywhere else
        base = int(first[1:])
        return [f"X{(base + step) % _GENERAL_REGISTERS}" for step in range(4)], registers[1:]
    written = []
    for place in reversed(_WRITES[family].get(name, ())):
        if len(registers) > place:
            written.append(registers.pop(place))
    return written, registers
