"""Where each dispatch of a large manifest stands, so that one of a million is read without the others.

The index is made in one pass and kept in the cache, under the manifest's place, size and times: a write changes
them. It needs one record on a line and the records of a dispatch together, as every runtime writes them; a manifest
of another layout has no index and is read whole.
"""

from __future__ import annotations

import contextlib
import hashlib
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import UNSET

from insight_trace.cache import Cache, content_key
from insight_trace.dump.checks import Survey
from insight_trace.dump.dispatches import group_key
from insight_trace.dump.entries import EntryFilter, recorded_bytes_of, stages_of
from insight_trace.dump.manifest_reader import Manifest, open_manifest
from insight_trace.dump.manifest_records import EmptyDispatch, Record
from insight_trace.errors import InputError
from insight_trace.model import Dispatch, TensorArg
from insight_trace.reading import prepared

if TYPE_CHECKING:
    from numpy.typing import NDArray

INDEXED_FROM = 8 << 20  # bytes of a manifest; a smaller one is read whole in less time than its index takes
_VERSION = 2
_RELEASE_AFTER = 64 << 20  # bytes read, after which what was read need not stay in memory
# by dispatch: its id, task, kernel (a place in `func_ids`), blocks, arguments, payload bytes, rows of
# `dump list --args`, form
_DISPATCH_COLUMNS = {
    "ids": "q",
    "tasks": "Q",
    "kernels": "i",
    "blocks": "q",
    "arguments": "i",
    "payload": "q",
    "entries": "i",
    "forms": "Q",
}
# by tensor that has an address: the address, and the place of its dispatch
_TENSOR_COLUMNS = {"pointers": "Q", "owners": "i"}


class DispatchColumns(msgspec.Struct, frozen=True):
    """What selects and lists dispatches, of all of them at once."""

    ids: NDArray[np.int64]
    tasks: NDArray[np.uint64]
    kernels: NDArray[np.int32]
    blocks: NDArray[np.int64]
    arguments: NDArray[np.int32]
    payload: NDArray[np.int64]
    entries: NDArray[np.int32]
    forms: NDArray[np.uint64]  # equal where `Dispatch.form` is
    pointers: NDArray[np.uint64]
    owners: NDArray[np.int32]
    func_ids: tuple[tuple[int, ...], ...]  # by the numbers in `kernels`
    names: tuple[str, ...]  # of the same kernels, where the dump or a scene has them

    def of_kernel(self, func_ids: Sequence[int]) -> NDArray[np.bool_]:
        """Which dispatches ran exactly those members; all of them where none is named."""
        wanted = [i for i, ids in enumerate(self.func_ids) if not func_ids or set(ids) == set(func_ids)]
        return np.isin(self.kernels, wanted)

    def selected(self, selection: EntryFilter) -> NDArray[np.int64]:
        """The numbers of the dispatches that a filter leaves."""
        kernels = [
            i
            for i, (func_ids, name) in enumerate(zip(self.func_ids, self.names, strict=True))
            if selection.has_kernel(func_ids, name)
        ]
        return np.flatnonzero(
            np.isin(self.kernels, kernels) & self.with_id(selection.dispatch_id, selection.task_id)
        )

    def steps(self) -> NDArray[np.int64]:
        """How many dispatches of the same members come before each."""
        kinds: dict[frozenset[int], int] = {}
        kind_of = np.array(
            [kinds.setdefault(frozenset(ids), len(kinds)) for ids in self.func_ids], dtype=np.int64
        )
        found, kind = np.zeros(len(self.ids), dtype=np.int64), kind_of[self.kernels]
        for number in range(len(kinds)):
            places = np.flatnonzero(kind == number)
            found[places] = np.arange(len(places))
        return found

    def first_of_kernels(self) -> list[tuple[int, int]]:
        """The kernels in the order in which they first ran, each with the number of that dispatch."""
        kernels, first = np.unique(self.kernels, return_index=True)
        return sorted(zip(kernels.tolist(), first.tolist(), strict=True), key=lambda found: found[1])

    def using(self, pointer: int) -> NDArray[np.int32]:
        """The numbers of the dispatches with a tensor at that address, in their order."""
        return np.unique(self.owners[self.pointers == np.uint64(pointer % 2**64)])

    def with_id(self, dispatch_id: int | None, task_id: int | None) -> NDArray[np.bool_]:
        """Which dispatches have that id and that task; None means any."""
        found = np.ones(len(self.ids), dtype=bool)
        if dispatch_id is not None:
            found &= self.ids == dispatch_id
        if task_id is not None:
            found &= self.tasks == np.uint64(task_id % 2**64)
        return found


class IndexFacts(msgspec.Struct, frozen=True):
    """What an index keeps that is no column."""

    warnings: tuple[str, ...]
    schema: str
    lists_scalars: bool
    kernels: tuple[tuple[tuple[int, ...], str], ...]  # func ids and name of each that the dump has


class ManifestIndex:
    """An indexed manifest: its dispatches, and the records of each, decoded when they are asked for."""

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        def column(name: str) -> NDArray[Any]:
            found: NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r")
            return found

        self.facts = msgspec.json.decode((folder / "facts.json").read_bytes(), type=prepared(IndexFacts))
        columns = {name: column(name) for name in (*_DISPATCH_COLUMNS, *_TENSOR_COLUMNS)}
        self.columns = DispatchColumns(
            **columns,
            func_ids=tuple(func_ids for func_ids, _ in self.facts.kernels),
            names=tuple(name for _, name in self.facts.kernels),
        )
        self._lines, self._first = column("lines"), column("first")
        if len(self._first) != len(self.columns.ids) + 1 or self._first[-1] != len(self._lines) - 1:
            raise ValueError("the columns of an index do not fit each other")
        self._manifest = manifest
        self._decoder = msgspec.json.Decoder(prepared(list[Record]))

    def __len__(self) -> int:
        return len(self.columns.ids)

    def of(self, dispatch: int) -> tuple[int, list[tuple[int, Record]]]:
        """A dispatch's id and its records, each with its place in the manifest."""
        begin, end = int(self._first[dispatch]), int(self._first[dispatch + 1])
        text = self._manifest.text(int(self._lines[begin]), int(self._lines[end]))
        records = self._decoder.decode(b"[" + text.strip().removesuffix(b",") + b"]")
        return int(self.columns.ids[dispatch]), list(zip(range(begin, end), records, strict=True))


class _NoIndexError(Exception):
    """The manifest is laid out in a way that only a reader of the whole can follow."""


class Building(msgspec.Struct, frozen=True):
    """How dispatches come from records, as `load_dump` does it."""

    dispatch: Callable[[int, Sequence[tuple[int, Record]]], Dispatch]
    schema: Callable[[Survey], str]
    empty: dict[int, EmptyDispatch]
    bin_size: int | None


def open_index(manifest: Manifest, building: Building) -> ManifestIndex | None:
    """The index of a manifest, made now if it is not kept; None for one that is small or laid out otherwise."""
    facts = manifest.path.stat()
    if facts.st_size < INDEXED_FROM or not manifest.is_split:
        return None
    identity = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    place = str(manifest.path.resolve())
    key = content_key([f"index {_VERSION}", place, repr((identity, building.bin_size))])
    cache = Cache()
    with contextlib.suppress(_NoIndexError):
        for _ in range(2):
            folder = cache.put("dumps", key, lambda to: _write(to, manifest, building))
            try:
                return ManifestIndex(manifest, folder)
            except (OSError, ValueError, msgspec.MsgspecError):
                cache.drop(folder)  # something damaged it; the second time is the last
    return None


def _write(folder: Path, manifest: Manifest, building: Building) -> None:
    survey = Survey(manifest.where)
    rows = _Rows(building)
    lines: list[NDArray[np.int64]] = []
    # opened anew: what was read is released, which must not slow down another reader
    with open_manifest(manifest.path) as passed:
        released = 0
        for begin, end, batch in passed.pieces(Record):
            found = passed.lines(begin, end)
            if len(found) != len(batch):
                raise _NoIndexError
            lines.append(found)
            rows.add(batch)
            survey.add(batch)
            if end - released > _RELEASE_AFTER:
                passed.release(end)
                released = end
    lines.append(np.array([manifest.end], dtype=np.int64))
    for name, column in rows.columns().items():
        np.save(folder / f"{name}.npy", column)
    np.save(folder / "lines.npy", np.concatenate(lines))
    facts = IndexFacts(
        tuple(survey.warnings(manifest.header, building.bin_size)),
        building.schema(survey),
        survey.lists_scalars,
        tuple(rows.kernels),
    )
    (folder / "facts.json").write_bytes(msgspec.json.encode(facts))


class _Rows:
    """The columns of dispatches as they come."""

    def __init__(self, building: Building) -> None:
        self._building = building
        kinds = {**_DISPATCH_COLUMNS, **_TENSOR_COLUMNS}
        self._columns = {name: array(kind) for name, kind in kinds.items()}
        self._first = array("q")
        self.kernels: dict[tuple[tuple[int, ...], str], int] = {}
        self._open: list[tuple[int, Record]] = []
        self._count = 0
        self._own_ids = False
        self._empty = dict(sorted(building.empty.items()))

    def add(self, batch: Sequence[Record]) -> None:
        if not self._count and batch:
            self._own_ids = batch[0].dispatch_id is not UNSET
            if self._empty and not self._own_ids:
                raise _NoIndexError
        records = self._open
        key: int | str | None = group_key(records[0][1]) if records else None
        for place, record in enumerate(batch, self._count):
            if (other := group_key(record)) != key:
                self._finish(records)
                records, key = [], other
            records.append((place, record))
        self._open = records
        self._count += len(batch)

    def _finish(self, records: list[tuple[int, Record]]) -> None:
        if not records:
            return
        first = records[0][1].dispatch_id
        if (first is not UNSET) != self._own_ids:
            raise _NoIndexError
        number = len(self._first) if first is UNSET else first
        while self._empty and (lowest := next(iter(self._empty))) <= number:
            self._append_empty(lowest, records[0][0])
        try:
            dispatch = self._building.dispatch(number, records)
        except InputError:
            raise _NoIndexError from None  # whoever asks for that dispatch is told
        self._append(dispatch, records[0][0])

    def _append_empty(self, number: int, place: int) -> None:
        if number in self._columns["ids"][-1:]:
            raise _NoIndexError
        del self._empty[number]
        self._append(self._building.dispatch(number, ()), place)

    def _append(self, dispatch: Dispatch, place: int) -> None:
        row = {
            "ids": dispatch.dispatch_id,
            "tasks": dispatch.task_id,
            "kernels": self.kernels.setdefault((dispatch.func_ids, dispatch.kernel), len(self.kernels)),
            "blocks": dispatch.block_count,
            "arguments": len(dispatch.arguments),
            "payload": recorded_bytes_of(dispatch),
            "entries": sum(len(stages_of(argument)) for argument in dispatch.arguments),
            "forms": _form_number(dispatch),
        }
        for argument in dispatch.arguments:
            if isinstance(argument, TensorArg) and argument.pointer:
                self._columns["pointers"].append(argument.pointer % 2**64)
                self._columns["owners"].append(len(self._first))
        for name, value in row.items():
            self._columns[name].append(value)
        self._first.append(place)

    def columns(self) -> dict[str, NDArray[Any]]:
        """All of them, once every record was added; each dispatch must be there once, in the order of ids."""
        self._finish(self._open)
        for number in list(self._empty):
            self._append_empty(number, self._count)
        self._first.append(self._count)
        made = {name: np.array(column) for name, column in self._columns.items()}
        keys = made["ids" if self._own_ids else "tasks"]
        apart = np.all(keys[1:] > keys[:-1]) if self._own_ids else len(np.unique(keys)) == len(keys)
        if not apart:
            raise _NoIndexError
        return made | {"first": np.array(self._first)}


def _form_number(dispatch: Dispatch) -> int:
    """The same in every process, which Python's own hash is not."""
    return int.from_bytes(hashlib.blake2b(repr(dispatch.form).encode(), digest_size=8).digest())
