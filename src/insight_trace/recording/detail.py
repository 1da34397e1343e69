"""Operands as text, spelled as the vendor's simulator does: the one place that does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

from msgspec.structs import replace

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
_MOST_SPELLED = 1 << 16  # texts that are kept


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
        self._spelled: dict[tuple[int, ...], str] = {}

    def __len__(self) -> int:
        return len(self._operands.form)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self.texts(range(*index.indices(len(self))))
        return self.texts([range(len(self))[index]])[0]

    def texts(self, rows: Iterable[int]) -> list[str]:
        """The text of several rows. Loops name the same operands again and again, so that texts are kept for a while."""
        import numpy as np

        spelled = self._spelled
        chosen = rows if isinstance(rows, np.ndarray) else np.fromiter(rows, np.int64)
        key = self._keys(chosen)
        if len(spelled) > _MOST_SPELLED:
            spelled.clear()
        found = []
        for each in zip(*key.tolist(), strict=True):
            text = spelled.get(each)
            if text is None:
                number, *where = each
                text = _plain(*where[:2]) if number == NONE else self._with_addresses(number, where)
                spelled[each] = text
            found.append(text)
        return found

    def _keys(self, chosen: NDArray[np.int64]) -> NDArray[np.uint64]:
        """What the text of some rows is made of: geometry and addresses, or form and value."""
        import numpy as np

        operands = self._operands
        geometry = operands.geometry[chosen]
        plain = np.flatnonzero(geometry == NONE)
        key = np.empty((5, len(chosen)), np.uint64)
        key[0] = geometry
        key[1:] = self._named_addresses(chosen)
        key[1, plain], key[2, plain] = operands.form[chosen[plain]], operands.value[chosen[plain]]
        return key

    def numbered(self, rows: NDArray[np.int64], values: bool) -> tuple[list[str], NDArray[np.int64]]:
        """Each text once, in the order in which they first come, and which of them each row has.

        Without `values` rows that differ in addresses and values alone have the text of the first of them.
        """
        import numpy as np

        key = self._keys(rows)
        if not values:
            with_value = ~np.isin(key[1], (Form.FLAG, Form.BARRIER, Form.FUNCTION)) & (key[0] == NONE)
            key[2, with_value] = key[2, with_value] > 0
            named = key[0] != NONE
            key[1:, named] = np.where(key[1:, named] == _UNUSED, np.uint64(_UNUSED), np.uint64(0))
        mixed = np.zeros(len(rows), np.uint64)
        for part in key:
            mixed = (mixed ^ part) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
        _, first, index = np.unique(mixed, return_index=True, return_inverse=True)
        if (key != key[:, first[index]]).any():  # two keys are mixed to one number
            _, first, index = np.unique(key, axis=1, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return self.texts(rows[first[order]]), place[index.reshape(-1)]

    def _named_addresses(self, chosen: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Result, two sources and GM of some rows."""
        import numpy as np

        operands = self._operands
        found = np.full((4, len(chosen)), np.uint64(_UNUSED))
        of_chosen = replace(operands, first=operands.first[chosen], count=operands.count[chosen])
        rows = operands.rows[all_operands(of_chosen)]
        footprints = operands.footprints
        in_gm = (footprints["memory"] == _GM)[rows["footprint"]]
        named = footprints["which"][rows["footprint"]]
        # of an operand in several parts the first one names it, so it is written last
        back = np.flatnonzero((named <= SRC1) | in_gm)[::-1]
        which = np.where(in_gm, _GM_PLACE, named)[back]
        found[which, instruction_of_operands(of_chosen)[back]] = rows["address"][back]
        return found

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
