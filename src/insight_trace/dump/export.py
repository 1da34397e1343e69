"""Entries as files: .npy for NumPy, .txt to read, .csv for a table program."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.dtypes import scalar_value
from insight_trace.dump.entries import Entry, scalar_text
from insight_trace.dump.recorded_bytes import payload_array
from insight_trace.dump.statistics import DIGITS, element_text, elements
from insight_trace.model import Role, ScalarArg, TensorArg
from insight_trace.storage import whole_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROLE = {Role.INPUT: "in", Role.OUTPUT: "out", Role.INOUT: "inout", None: "arg"}
_PIECE = 1 << 14


def file_name(entry: Entry, form: str) -> str:
    """dispatch_<id>_task_<task>_<before|after>_<in|out|inout><slot>.<form>"""
    role = entry.argument.role if isinstance(entry.argument, TensorArg) else Role.INPUT
    d = entry.dispatch
    return (
        f"dispatch_{d.dispatch_id}_task_0x{d.task_id:016x}_{entry.stage.name.lower()}_"
        f"{_ROLE[role]}{entry.argument.slot}.{form}"
    )


def export_entry(entry: Entry, folder: Path, form: str) -> Path | None:
    """Writes one entry; None where nothing was recorded that could be written."""
    a = entry.argument
    if isinstance(a, TensorArg) and entry.payload is not None:
        array = payload_array(entry.payload, a.dtype, a.shape)
    elif isinstance(a, ScalarArg):
        array = None
    else:
        return None
    path = folder / file_name(entry, form)
    with whole_file(path, sync=False) as file:
        if form == "npy":
            _write_npy(file, a, array)
            return path
        text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
        for piece in _csv(entry, array) if form == "csv" else _txt(entry, array):
            text.write(piece)
        text.flush()
        text.detach()
    return path


def _write_npy(file: Any, argument: Any, array: NDArray[Any] | None) -> None:
    import numpy as np

    if array is None:
        value = scalar_value(argument.dtype, argument.bits)
        # 0 dimensions; a 64-bit pattern needs its own type, everything else finds it
        array = np.array(value, dtype=np.float32 if isinstance(value, float) else argument.dtype.numpy)
    elif array.dtype.kind == "V" and not array.dtype.name.startswith("void"):
        # NumPy files cannot name bf16, fp8 and fp4; all of their values are exact in 32 bits.
        array = array.astype(np.float32)
    np.save(file, array, allow_pickle=False)


def _header(entry: Entry) -> Iterator[str]:
    d, a = entry.dispatch, entry.argument
    yield f"# dispatch: {d.dispatch_id}\n# task_id: 0x{d.task_id:016x}\n# func_ids: {list(d.func_ids)}\n"
    yield f"# kernel: {d.kernel or 'not known'}\n# stage: {entry.stage.value}\n# slot: {a.slot}\n"
    if isinstance(a, TensorArg):
        role = "not recorded" if a.role is None else a.role.value
        yield f"# role: {role}\n# dtype: {a.dtype.name}\n# shape: {list(a.shape)}\n"
        yield f"# strides: {list(a.strides)}\n# start_offset: {a.start_offset}\n"
        if entry.payload is not None and entry.payload.truncated:
            yield "# truncated: the payload is cut off\n"


def _texts(entry: Entry, array: NDArray[Any]) -> Iterator[list[str]]:
    digits = DIGITS.get(entry.argument.dtype.name, 4) if isinstance(entry.argument, TensorArg) else 9
    flat = array.reshape(-1)
    for start in range(0, len(flat), _PIECE):
        yield [element_text(value, digits) for value in elements(flat[start : start + _PIECE])]


def _txt(entry: Entry, array: NDArray[Any] | None) -> Iterator[str]:
    yield from _header(entry)
    a = entry.argument
    if array is None:
        assert isinstance(a, ScalarArg)
        yield f"# dtype: {a.dtype.name}\n# value: {scalar_text(a)}\n"
        return
    width = max((len(text) for texts in _texts(entry, array) for text in texts), default=1)
    row = array.shape[-1] if array.ndim and array.shape[-1] else max(array.size, 1)
    yield "\n# Overview:\n"
    position = 0
    for texts in _texts(entry, array):
        for text in texts:
            position += 1
            yield f"{text:>{width}}" + ("\n" if position % row == 0 or position == array.size else " ")
    yield "\n# Detail:\n"
    yield from (f"[{', '.join(map(str, index))}] {text}\n" for index, text in _indexed(entry, array))


def _csv(entry: Entry, array: NDArray[Any] | None) -> Iterator[str]:
    a = entry.argument
    if array is None:
        assert isinstance(a, ScalarArg)
        yield f"value,bits\n{scalar_value(a.dtype, a.bits)},0x{a.bits:016x}\n"
        return
    yield ",".join([*(f"i{axis}" for axis in range(array.ndim)), "value"]) + "\n"
    for index, text in _indexed(entry, array):
        yield ",".join([*map(str, index), text]) + "\n"


def _indexed(entry: Entry, array: NDArray[Any]) -> Iterator[tuple[tuple[int, ...], str]]:
    import itertools

    flat_texts = (text for texts in _texts(entry, array) for text in texts)
    indices = itertools.product(*map(range, array.shape))
    return zip(indices, flat_texts, strict=True)
