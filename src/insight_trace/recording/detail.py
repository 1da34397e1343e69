"""Operands as text, spelled as the vendor's simulator does: the one place that does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

from insight_trace.dtypes import DTYPES
from insight_trace.model import Operands
from insight_trace.recording.operands import (
    MEMORIES,
    NONE,
    SRC1,
    Form,
    all_operands,
    instruction_of_operands,
)
from insight_trace.recording.pipes import PIPE_TEXT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TYPE_TEXT = {
    "FLOAT32": "F32", "FLOAT16": "F16", "BFLOAT16": "BF16", "INT64": "S64", "INT32": "S32", "INT16": "S16",
    "INT8": "S8", "UINT64": "U64", "UINT32": "U32", "UINT16": "U16", "UINT8": "U8",
}  # fmt: skip
_FOUR_BITS = frozenset({14, 17, 18})  # abi.hpp: F4E2M1, F4E1M2, I4
_ADDRESS = 0xFFFFFF  # as many bits as an on-chip address is shown with
_GM = MEMORIES.index("GM")
_GM_PLACE = 3
_UNUSED = 0xFFFFFFFFFFFFFFFF


def type_text(code: int) -> str:
    """An element type as operands name it."""
    if code in _FOUR_BITS:
        return "B4"
    return _TYPE_TEXT.get(DTYPES[code].name, "B8") if code < len(DTYPES) else "B8"


class Details(Sequence[str]):
    """Operand text per row, spelled when it is asked for."""

    def __init__(self, operands: Operands) -> None:
        self._operands = operands
        self._around: dict[int, tuple[int, str, str]] = {}
        self._addresses: NDArray[np.uint64] | None = None

    def __len__(self) -> int:
        return len(self._operands.form)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self.texts(range(*index.indices(len(self))))
        number = int(self._operands.geometry[index])
        if number == NONE:
            return _plain(int(self._operands.form[index]), int(self._operands.value[index]))
        return self._with_addresses(number, self._named_addresses()[index].tolist())

    def texts(self, rows: Iterable[int]) -> list[str]:
        """The text of several rows."""
        import numpy as np

        operands = self._operands
        chosen = np.fromiter(rows, np.int64)
        columns = (operands.form[chosen], operands.value[chosen], operands.geometry[chosen])
        form, value, geometry = (column.tolist() for column in columns)
        addresses = self._named_addresses()[chosen].tolist()
        return [
            _plain(kind, held) if number == NONE else self._with_addresses(number, where)
            for kind, held, number, where in zip(form, value, geometry, addresses, strict=True)
        ]

    def _named_addresses(self) -> NDArray[np.uint64]:
        """Result, two sources and GM of every row."""
        import numpy as np

        if self._addresses is None:
            operands = self._operands
            found = np.full((len(operands.form), 4), np.uint64(_UNUSED))
            rows = operands.rows[all_operands(operands)]
            footprint = operands.footprints[rows["footprint"]]
            in_gm = footprint["memory"] == _GM
            # of an operand in several parts the first one names it, so it is written last
            back = np.flatnonzero((footprint["which"] <= SRC1) | in_gm)[::-1]
            which = np.where(in_gm, _GM_PLACE, footprint["which"])[back]
            found[instruction_of_operands(operands)[back], which] = rows["address"][back]
            self._addresses = found
        return self._addresses

    def _with_addresses(self, number: int, where: Sequence[int]) -> str:
        around = self._around.get(number)
        if around is None:
            around = self._around[number] = _around(self._operands.geometries[number])
        form, before, after = around
        dst, src0, src1, gm = where
        if form == Form.TRANSFER:
            local = dst if dst != _UNUSED else src0
            return f"{before}GM:{gm:#x},local:{_shown(local):#x},{after}"
        if form == Form.VECTOR:
            text = f"{before}XD:{_shown(dst):#x},"
            if src0 != _UNUSED:
                text += f"XN:{src0 & _ADDRESS:#x},"
            return f"{text}XM:{src1 & _ADDRESS:#x},{after}" if src1 != _UNUSED else text + after
        text = f"{before}XD:{_shown(dst):#x},XN:{_shown(src0):#x},"
        return f"{text}XM:{_shown(src1):#x},{after}" if form == Form.MULTIPLY else text + after


def _shown(address: int) -> int:
    return 0 if address == _UNUSED else address & _ADDRESS


def _around(geometry: Any) -> tuple[int, str, str]:
    """The form, and what stands before and behind the addresses."""
    form = int(geometry["form"])
    repeat = min(int(geometry["repeat"]), 0xFFFF)
    if form == Form.VECTOR:
        strides = [*geometry["block_stride"].tolist(), *geometry["repeat_stride"].tolist()]
        text = "/".join(str(min(255, stride)) for stride in strides)
        after = f"repeat:{repeat},stride:{text},elements:{geometry['elements']},"
    elif form == Form.TRANSFER:
        after = f"bursts:{repeat},bytes:{min(int(geometry['bytes']), 0xFFFFFFFF)},"
    elif form == Form.MULTIPLY:
        after = f"M:{geometry['m']},K:{geometry['k']},N:{geometry['n']},"
    else:
        after = f"repeat:{repeat},bytes:{geometry['bytes']},"
    return form, f"dtype:{type_text(int(geometry['type']))},", after


def _plain(form: int, value: int) -> str:
    if form == Form.FLAG:
        source, target, event = value & 0xFF, value >> 8 & 0xFF, value >> 16
        return f"PIPE:{PIPE_TEXT[source]},TRIGGERPIPE:{PIPE_TEXT[target]},FLAGID:{event},"
    if form == Form.BARRIER:
        return f"PIPE:{PIPE_TEXT[value]},"
    if form == Form.FUNCTION:
        return f"loops:{value & 0xFFFFFFFF},rows:{value >> 32},"
    return f"value:{value:#x}," if value else ""
