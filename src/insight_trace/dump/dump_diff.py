"""Two dumps, or a dump and a golden array, element by element within tolerances."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.dtypes import DType
from insight_trace.dump.entries import EntryFilter, plain_number, selected
from insight_trace.dump.recorded_bytes import payload_array, payload_bytes
from insight_trace.dump.statistics import elements
from insight_trace.errors import InputError, RequestError
from insight_trace.model import Argument, ContextArg, Dispatch, Payload, Role, ScalarArg, Stage, TensorArg
from insight_trace.reading import load_npy, open_regular

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PIECE = 1 << 20
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class DiffTolerance:
    """Elements are equal if |a - b| <= atol + rtol * |b|; NaN equals NaN. Both zero: equal bits, no less."""

    rtol: float = 0.0
    atol: float = 0.0


@dataclass(frozen=True, slots=True)
class ArgumentDifference:
    """One argument that differs: where, what, and the first element that does."""

    dispatch_id: int
    task_id: int
    kernel: str
    slot: int | None
    stage: Stage | None
    what: str
    element: tuple[int, ...] | None = None
    left: Any = None
    right: Any = None
    count: int = 0
    elements: int = 0
    largest: float | None = None

    def __str__(self) -> str:
        parts = [f"dispatch {self.dispatch_id}", f"task 0x{self.task_id:016x}"]
        parts += [self.kernel] if self.kernel else []
        parts += [] if self.slot is None else [f"slot {self.slot}"]
        parts += [] if self.stage is None else [self.stage.name.lower()]
        if self.element is None:
            return f"{' · '.join(parts)}: {self.what}"
        place = ",".join(map(str, self.element))
        largest = "" if self.largest is None else f", largest by {self.largest:.6g}"
        return (
            f"{' · '.join(parts)} · element [{place}]: {self.left} against {self.right} "
            f"({self.count:,} of {self.elements:,} elements differ{largest})"
        )

    def as_json(self) -> dict[str, Any]:
        row = asdict(self)
        row["task_id"] = f"0x{self.task_id:016x}"
        row["stage"] = None if self.stage is None else self.stage.value
        row["element"] = None if self.element is None else list(self.element)
        for key in ("left", "right", "largest"):
            row[key] = plain_number(row[key]) if isinstance(row[key], (int, float)) else row[key]
        return row


@dataclass(frozen=True, slots=True)
class DumpDiff:
    """Everything that differs, in the order of dispatches, and what could not be compared."""

    differences: tuple[ArgumentDifference, ...]
    dispatches: int
    payloads: int
    not_compared: tuple[str, ...]

    @property
    def equal(self) -> bool:
        return not self.differences

    def as_json(self) -> dict[str, Any]:
        return {
            "equal": self.equal,
            "dispatches": self.dispatches,
            "payloads": self.payloads,
            "not_compared": list(self.not_compared),
            "first": self.differences[0].as_json() if self.differences else None,
            "differences": [difference.as_json() for difference in self.differences],
        }

    def lines(self) -> Iterator[str]:
        """The answer for a person: equal, or the first dispatch that differs and what follows."""
        compared = f"{self.dispatches:,} dispatches, {self.payloads:,} payloads compared"
        if self.equal:
            yield f"equal      {compared}"
        else:
            yield f"differs    first at {self.differences[0]}"
            for difference in self.differences[1:_SHOWN]:
                yield f"           {difference}"
            if len(self.differences) > _SHOWN:
                yield f"           and {len(self.differences) - _SHOWN:,} more arguments"
            yield f"           {compared}"
        for note in self.not_compared:
            yield f"not compared: {note}"


def compare_dumps(
    left: Sequence[Dispatch], right: Sequence[Dispatch], tolerance: DiffTolerance | None = None
) -> DumpDiff:
    """Dispatches are paired by task; what one side's schema cannot say is not a difference."""
    tolerance = tolerance or DiffTolerance()
    partners: dict[int, list[Dispatch]] = defaultdict(list)
    for dispatch in right:
        partners[dispatch.task_id].append(dispatch)
    differences: list[ArgumentDifference] = []
    tally = _Tally()
    count = 0
    for one in left:
        waiting = partners.get(one.task_id)
        if not waiting:
            differences.append(_difference(one, "only in the first dump"))
            continue
        differences += _compare_dispatches(one, waiting.pop(0), tolerance, tally)
        count += 1
    rest = [dispatch for waiting in partners.values() for dispatch in waiting]
    differences += [_difference(dispatch, "only in the second dump") for dispatch in rest]
    return DumpDiff(tuple(differences), count, tally.payloads, tally.notes())


class _Tally:
    def __init__(self) -> None:
        self.payloads = 0
        self.one_sided = 0
        self.scalars = 0
        self.unwritten = 0
        self.chains = UnwrittenContent()

    def notes(self) -> tuple[str, ...]:
        notes = []
        if self.one_sided:
            notes.append(f"{self.one_sided:,} payloads are in one dump only")
        if self.scalars:
            notes.append(f"{self.scalars:,} scalars: one dump's schema does not record scalars")
        if self.unwritten:
            notes.append(
                f"{self.unwritten:,} payloads differ only in bytes that no recorded dispatch wrote "
                "(memory of an output before it is filled)"
            )
        return tuple(notes)


def _difference(dispatch: Dispatch, what: str, slot: int | None = None) -> ArgumentDifference:
    return ArgumentDifference(dispatch.dispatch_id, dispatch.task_id, dispatch.kernel, slot, None, what)


def _compare_dispatches(
    one: Dispatch, other: Dispatch, tolerance: DiffTolerance, tally: _Tally
) -> Iterator[ArgumentDifference]:
    if one.func_ids and other.func_ids and one.func_ids != other.func_ids:
        yield _difference(one, f"func ids {list(one.func_ids)} against {list(other.func_ids)}")
    if one.block_count != other.block_count:
        yield _difference(one, f"{one.block_count} blocks against {other.block_count}")
    no_scalars = "scalars" in one.missing or "scalars" in other.missing
    left = {a.slot: a for a in one.arguments if not isinstance(a, ContextArg)}
    right = {a.slot: a for a in other.arguments if not isinstance(a, ContextArg)}
    for slot in sorted({*left, *right}):
        a, b = left.get(slot), right.get(slot)
        if a is None or b is None:
            if no_scalars and isinstance(a or b, ScalarArg):
                tally.scalars += 1
            else:
                yield _difference(one, f"only in the {'second' if a is None else 'first'} dump", slot)
        else:
            yield from _compare_arguments(one, a, b, tolerance, tally)


def _compare_arguments(
    dispatch: Dispatch, a: Argument, b: Argument, tolerance: DiffTolerance, tally: _Tally
) -> Iterator[ArgumentDifference]:
    if isinstance(a, ScalarArg) and isinstance(b, ScalarArg):
        if a.bits != b.bits:
            certain = "" if a.exact and b.exact else " (one of them not certain)"
            yield _difference(dispatch, f"bits 0x{a.bits:x} against 0x{b.bits:x}{certain}", a.slot)
        return
    if not (isinstance(a, TensorArg) and isinstance(b, TensorArg)):
        yield _difference(dispatch, "a tensor against a scalar", a.slot)
        return
    for name in ("dtype", "shape", "strides", "start_offset", "role"):
        x, y = getattr(a, name), getattr(b, name)
        if x != y and x is not None and y is not None:
            text = (f"{x.name} against {y.name}") if name == "dtype" else f"{x} against {y}"
            yield _difference(dispatch, f"{name} {text}", a.slot)
            if name in ("dtype", "shape"):
                return
    excused: dict[Stage, Any] = {}
    if a.role is Role.INOUT and b.role is Role.INOUT:
        roles = tuple(x.role for x in dispatch.arguments if isinstance(x, TensorArg))
        excused = tally.chains.of((a.slot, roles, a.dtype, a.shape, a.strides, a.start_offset), a, b)
    for stage in Stage:
        p, q = (a.before, b.before) if stage is Stage.BEFORE else (a.after, b.after)
        if p is None or q is None:
            tally.one_sided += (p is None) is not (q is None)
            continue
        tally.payloads += 1
        x, y = payload_array(p, a.dtype, a.shape), payload_array(q, b.dtype, b.shape)
        unwritten = excused.get(stage)
        found = compare_arrays(x, y, tolerance, unwritten)
        if found is None and unwritten is not None and unwritten.any():
            tally.unwritten += 1
        if found is not None:
            yield _element_difference(dispatch, a.slot, stage, found)


def _element_difference(
    dispatch: Dispatch, slot: int, stage: Stage, found: dict[str, Any]
) -> ArgumentDifference:
    return ArgumentDifference(
        dispatch.dispatch_id, dispatch.task_id, dispatch.kernel, slot, stage, "content", **found
    )


def compare_arrays(
    left: NDArray[Any], right: NDArray[Any], tolerance: DiffTolerance, excused: NDArray[Any] | None = None
) -> dict[str, Any] | None:
    """The first element that differs and how many do; None if none does. `excused` elements do not count."""
    import numpy as np

    if left.shape != right.shape:
        return {"element": (), "left": list(left.shape), "right": list(right.shape), "elements": left.size}
    a, b = left.reshape(-1), right.reshape(-1)
    count, first, largest = 0, -1, 0.0
    for start in range(0, len(a), _PIECE):
        x, y = a[start : start + _PIECE], b[start : start + _PIECE]
        if x.dtype == y.dtype and x.tobytes() == y.tobytes():
            continue
        wrong = _unequal(x, y, tolerance)
        if excused is not None:
            wrong &= ~excused[start : start + _PIECE]
        if wrong.any():
            gap = _largest_gap(x[wrong], y[wrong])
            if first < 0:
                first = start + int(np.argmax(wrong))
            count += int(wrong.sum())
            largest = max(largest, gap)
    if first < 0:
        return None
    index = tuple(int(i) for i in np.unravel_index(first, left.shape)) if left.ndim else ()
    return {
        "element": index,
        "left": elements(a[first : first + 1])[0],
        "right": elements(b[first : first + 1])[0],
        "count": count,
        "elements": len(a),
        "largest": largest,
    }


def _unequal(x: NDArray[Any], y: NDArray[Any], tolerance: DiffTolerance) -> NDArray[Any]:
    import numpy as np

    unknown = x.dtype.name.startswith("void")
    if x.dtype == y.dtype and (unknown or not (tolerance.rtol or tolerance.atol)):
        width = x.dtype.itemsize
        rows, others = (np.ascontiguousarray(a).view(np.uint8).reshape(-1, width) for a in (x, y))
        bits: NDArray[Any] = (rows != others).any(axis=1)
        return bits
    p, q = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(p - q)
        close = (p == q) | (gap <= tolerance.atol + tolerance.rtol * np.abs(q)) & np.isfinite(q)
    close |= np.isnan(p) & np.isnan(q)
    wrong: NDArray[Any] = ~close
    return wrong


def _largest_gap(x: NDArray[Any], y: NDArray[Any]) -> float:
    import numpy as np

    if x.dtype.name.startswith("void"):
        return 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(x.astype(np.float64) - y.astype(np.float64))
    finite = gap[np.isfinite(gap)]
    return float(finite.max()) if len(finite) else 0.0


def golden_array(path: Path, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    """A golden file: .npy of that shape (or as many elements), or raw .bin of that type."""
    import math

    import numpy as np

    try:
        if path.suffix == ".npy":
            array: NDArray[Any] = load_npy(path)
        elif path.suffix == ".bin":
            with open_regular(path):
                pass
            array = np.memmap(path, dtype=np.uint8, mode="r")
            if array.size != math.prod(shape) * dtype.size:
                raise InputError(
                    f"{array.size} bytes, the tensor has {math.prod(shape) * dtype.size}", where=str(path)
                )
            array = array.view(dtype.numpy)
        else:
            raise RequestError(f"{path} is not a golden file", hint="give a .npy file or a raw .bin file")
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None
    if array.size != math.prod(shape):
        raise InputError(f"shape {list(array.shape)}, the tensor has {list(shape)}", where=str(path))
    return array.reshape(shape)


# --- content that no recorded dispatch wrote: memory of an output that was never filled


@dataclass(slots=True)
class _Chain:
    left: NDArray[Any]  # the first content on either side, a row of bytes per element
    right: NDArray[Any]
    unwritten: NDArray[np.bool_]


class UnwrittenContent:
    """Follows inout tensors of two dumps from dispatch to dispatch."""

    def __init__(self) -> None:
        self._chains: dict[Hashable, _Chain | None] = {}

    def of(self, key: Hashable, left: TensorArg, right: TensorArg) -> dict[Stage, NDArray[np.bool_]]:
        """The elements of each stage that nobody wrote on either side; empty where there are none."""
        payloads = [p for p in (left.before, left.after, right.before, right.after) if p is not None]
        if len(payloads) < 4 or any(p.truncated for p in payloads):
            return {}
        before, after, other_before, other_after = (_rows(p, left.dtype.size) for p in payloads)
        if key not in self._chains:
            different = (before != other_before).any(axis=1)
            if not different.any():
                self._chains[key] = None
                return {}
            untouched = (before == after).all(axis=1) & (other_before == other_after).all(axis=1)
            mask = different & untouched
            self._chains[key] = _Chain(before, other_before, mask)
            return {Stage.BEFORE: mask, Stage.AFTER: mask}
        chain = self._chains[key]
        if chain is None:
            return {}
        kept = chain.unwritten & _same(before, chain.left) & _same(other_before, chain.right)
        chain.unwritten = kept & _same(after, chain.left) & _same(other_after, chain.right)
        return {Stage.BEFORE: kept, Stage.AFTER: chain.unwritten}


def _rows(payload: Payload, width: int) -> NDArray[Any]:
    import numpy as np

    return np.frombuffer(payload_bytes(payload), dtype=np.uint8).reshape(-1, width)


def _same(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    result: NDArray[np.bool_] = (one == other).all(axis=1)
    return result


def compare_with_golden(
    dispatches: Sequence[Dispatch], selection: EntryFilter, golden: Path, tolerance: DiffTolerance
) -> DumpDiff:
    """Compares the one recorded tensor that is selected; where both stages were recorded, the later."""
    found = [
        entry
        for _, entries in selected(dispatches, selection)
        for entry in entries
        if isinstance(entry.argument, TensorArg) and entry.payload is not None
    ]
    after = [entry for entry in found if entry.stage is Stage.AFTER]
    same_place = {(entry.dispatch.dispatch_id, entry.argument.slot) for entry in found}
    if len(same_place) == 1 and after:
        found = after
    if len(found) != 1:
        raise RequestError(
            f"{len(found)} recorded tensors match; a golden file is compared with one",
            hint="select it with --dispatch-id, --slot and --stage",
        )
    entry = found[0]
    tensor, payload = entry.argument, entry.payload
    assert isinstance(tensor, TensorArg)
    assert payload is not None
    if payload.truncated:
        raise RequestError("the recorded tensor is cut off and cannot be compared", where=entry.label)
    recorded = payload_array(payload, tensor.dtype, tensor.shape)
    expected = golden_array(golden, tensor.dtype, tensor.shape)
    result = compare_arrays(recorded, expected, tolerance)
    d = entry.dispatch
    differences: tuple[ArgumentDifference, ...] = ()
    if result is not None:
        differences = (
            ArgumentDifference(
                d.dispatch_id, d.task_id, d.kernel, tensor.slot, entry.stage, "content", **result
            ),
        )
    return DumpDiff(differences, 1, 1, ())
