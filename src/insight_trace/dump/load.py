"""load_dump: any dump of any schema as dispatches. Dispatches are put together when they are asked for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress, islice
from pathlib import Path
from typing import Any, overload

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from insight_trace.dump import checks
from insight_trace.dump.dispatches import Source, bare, build, group_key, task_number
from insight_trace.dump.dump_place import find_manifest, unified_beside
from insight_trace.dump.index import Building, DispatchColumns, IndexFacts, ManifestIndex, open_index
from insight_trace.dump.infer import Naming, name_dispatches
from insight_trace.dump.kernel_args import KernelArgsSource, build_kernel_dispatch
from insight_trace.dump.manifest_reader import Manifest, open_manifest
from insight_trace.dump.manifest_records import EmptyDispatch, KernelDispatch, Record
from insight_trace.dump.scalars import SLOT_MASK
from insight_trace.errors import InputError, RequestError
from insight_trace.model import Dispatch, Scene, TensorArg
from insight_trace.reading import prepared


class DumpDispatches(Sequence[Dispatch]):
    """The dispatches of a dump, each made when it is looked at, so that a large dump costs little to open."""

    def __init__(
        self, count: int, make: Callable[[int], Dispatch], columns: DispatchColumns | None = None
    ) -> None:
        self._count = count
        self._make = make
        self.columns = columns  # of a large dump: what selects a dispatch without making the others

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Dispatch: ...
    @overload
    def __getitem__(self, index: slice) -> list[Dispatch]: ...
    def __getitem__(self, index: int | slice) -> Dispatch | list[Dispatch]:
        if isinstance(index, slice):
            return [self._make(i) for i in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(f"dispatch {index} of {self._count}")
        return self._make(index % self._count)

    def __iter__(self) -> Iterator[Dispatch]:
        return map(self._make, range(self._count))


class Dump(msgspec.Struct, frozen=True):
    """Dispatches on disk, whatever schema they were written in."""

    path: Path  # of the manifest
    schema: str  # letter of docs/dump-formats.md, or "kernel_args"
    level: int | None  # dump_args_level, where recorded
    dispatches: Sequence[Dispatch]
    warnings: tuple[str, ...] = ()
    case: str = ""  # that was run, where recorded
    lost: int = 0  # records and payloads that the runtime counted and that are not there

    def number_of(self, dispatch: Dispatch) -> int:
        """Its place among the dispatches; of two with the same ids, the first."""
        columns = getattr(self.dispatches, "columns", None)
        if columns is not None:
            return int(columns.with_id(dispatch.dispatch_id, dispatch.task_id).argmax())
        wanted = (dispatch.dispatch_id, dispatch.task_id)
        return next(n for n, d in enumerate(self.dispatches) if (d.dispatch_id, d.task_id) == wanted)

    def earlier(self, dispatch: Dispatch, pointer: int) -> Iterator[Dispatch]:
        """The dispatches with a tensor at that address, from this one back to the first."""
        columns = getattr(self.dispatches, "columns", None)
        at = self.number_of(dispatch)
        users: Sequence[int] = range(at + 1)
        if columns is not None:
            users = [number for number in columns.using(pointer).tolist() if number <= at]
        for number in reversed(users):
            other = self.dispatches[number]
            if any(isinstance(a, TensorArg) and a.pointer == pointer for a in other.arguments):
                yield other

    def of_kernels(self, func_ids: Sequence[int] = ()) -> list[int]:
        """The numbers of the dispatches of exactly those members; without any, of all whose kernel is known."""
        columns = getattr(self.dispatches, "columns", None)
        if columns is not None:
            found: list[int] = columns.of_kernel(func_ids).nonzero()[0].tolist()
            return found
        members = set(func_ids)
        return [
            number
            for number, d in enumerate(self.dispatches)
            if d.func_ids and (not members or set(d.func_ids) == members)
        ]

    def kernels(self) -> dict[tuple[int, ...], int]:
        """The members of every kernel and mix that ran, and the number of its first dispatch; in that order."""
        columns = getattr(self.dispatches, "columns", None)
        if columns is not None:
            firsts = ((columns.func_ids[kernel], number) for kernel, number in columns.first_of_kernels())
        else:
            firsts = ((d.func_ids, number) for number, d in enumerate(self.dispatches))
        found: dict[tuple[int, ...], int] = {}
        for func_ids, number in firsts:
            found.setdefault(func_ids, number)
        return found

    def steps(self) -> Sequence[int]:
        """How many dispatches of the same members come before each."""
        columns = getattr(self.dispatches, "columns", None)
        if columns is not None:
            steps: Sequence[int] = columns.steps()
            return steps
        seen: dict[frozenset[int], int] = {}
        found = []
        for d in self.dispatches:
            kind = frozenset(d.func_ids)
            found.append(seen.get(kind, 0))
            seen[kind] = found[-1] + 1
        return found

    def forms(self, numbers: Sequence[int]) -> list[Hashable]:
        """What is equal for dispatches that take the same time, of each of those numbers."""
        columns = getattr(self.dispatches, "columns", None)
        if columns is not None:
            found: list[Hashable] = columns.forms[numbers].tolist()
            return found
        return [self.dispatches[number].form for number in numbers]

    def dispatch(
        self, *, func_ids: Sequence[int] = (), dispatch_id: int | None = None, task_id: int | None = None
    ) -> Dispatch:
        """The one dispatch of that kernel (or of exactly that set of mix members) and that id.

        Without an id the first dispatch of the kernel. RequestError names what there is instead.
        """
        ids_seen: list[str] = []
        func_seen: set[tuple[int, ...]] = set()
        columns = getattr(self.dispatches, "columns", None)
        if columns is not None:
            import numpy as np

            of_kernel, with_id = columns.of_kernel(func_ids), columns.with_id(dispatch_id, task_id)
            found = np.flatnonzero(of_kernel & with_id)
            if len(found):
                return self.dispatches[int(found[0])]
            ids_seen += [
                f"{columns.ids[i]} (task 0x{columns.tasks[i]:016x})" for i in np.flatnonzero(of_kernel)[:8]
            ]
            func_seen |= {columns.func_ids[k] for k in np.unique(columns.kernels[with_id])}
        for dispatch in self.dispatches if columns is None else ():
            same_id = dispatch_id in (None, dispatch.dispatch_id) and task_id in (None, dispatch.task_id)
            same_func = not func_ids or set(func_ids) == set(dispatch.func_ids)
            if same_id and same_func:
                return dispatch
            if same_func and len(ids_seen) < 8:
                ids_seen.append(f"{dispatch.dispatch_id} (task 0x{dispatch.task_id:016x})")
            if same_id:
                func_seen.add(dispatch.func_ids)
        wanted = [f"func id {','.join(map(str, func_ids))}"] if func_ids else []
        wanted += [f"dispatch id {dispatch_id}"] if dispatch_id is not None else []
        wanted += [f"task 0x{task_id:016x}"] if task_id is not None else []
        hint = "the dump holds no such kernel"
        if () in func_seen:
            hint = "the dump has no func ids and they could not be inferred: give the scene that was run"
        elif func_seen and dispatch_id is not None:
            ran = " or ".join(",".join(map(str, ids)) for ids in sorted(func_seen))
            hint = f"that dispatch ran func id {ran}"
        elif mix := next((ids for ids in sorted(func_seen) if set(func_ids) < set(ids)), None):
            together = ",".join(map(str, mix))
            hint = f"it is part of a mix, {together}: use --func-id {together}"
        elif ids_seen:
            hint = f"dispatches of that kernel: {', '.join(ids_seen)}"
        raise RequestError(
            f"no dispatch has {' and '.join(wanted) or 'anything'}", where=str(self.path), hint=hint
        )


def load_dump(path: str | Path, scene: Scene | None = None) -> Dump:
    """Reads a dump: its JSON file, its directory, or the run directory. `scene` names the kernels."""
    manifest_path = find_manifest(path)
    with open_manifest(manifest_path) as manifest:
        if manifest.key == "dispatches":
            return _load_kernel_args(manifest, scene)
        return _load_unified(manifest, scene)


def _load_unified(manifest: Manifest, scene: Scene | None) -> Dump:
    warnings: list[str] = []
    empty = _empty_dispatches(manifest)
    bin_path = checks.payload_file(manifest.path, manifest.header, warnings)
    bin_size = None if bin_path is None else bin_path.stat().st_size

    naming = Naming.of(scene)

    def made(lists_scalars: bool) -> Callable[[int, Sequence[tuple[int, Record]]], Dispatch]:
        source = Source(
            manifest.path, manifest.key, bin_path, bin_size or 0, empty=empty, lists_scalars=lists_scalars
        )
        return lambda number, found: build(number, found, source) if found else bare(empty[number], source)

    def schema(survey: checks.Survey) -> str:
        return schema_letter(manifest.header, manifest.key, survey)

    groups: ManifestIndex | _Groups
    index = open_index(manifest, Building(made(True), schema, empty, bin_size))
    if index is not None:
        groups, facts = index, index.facts
        columns = replace(index.columns, names=tuple(naming.name_of(*kernel) for kernel in facts.kernels))
    else:
        groups, facts = _read_whole(manifest, empty, bin_size, schema)
        columns = None
    warnings += facts.warnings
    dispatch_of = made(facts.lists_scalars)

    def make(number: int) -> Dispatch:
        return naming.named(dispatch_of(*groups.of(number)))

    dispatches: Sequence[Dispatch] = DumpDispatches(len(groups), make, columns)
    if any(not func_ids for func_ids, _ in facts.kernels):
        # Only a scene can tell, and only from all dispatches together.
        dispatches = name_dispatches(list(dispatches) if scene else dispatches, scene, warnings)
    level = manifest.header.get("dump_args_level")
    return Dump(
        manifest.path,
        facts.schema,
        level if isinstance(level, int) else None,
        dispatches,
        tuple(warnings),
        _case(manifest.header),
        _lost(manifest.header),
    )


def _case(header: Mapping[str, Any]) -> str:
    """The case that a dump is of, where its header says so."""
    case = header.get("case")
    return case if isinstance(case, str) else ""


def _lost(header: Mapping[str, Any]) -> int:
    """Records that the runtime dropped, and payloads that it overwrote."""
    counts = [header.get(key) for key in ("dropped_records", "dropped_overwrite")]
    return sum(count for count in counts if isinstance(count, int) and count > 0)


def _empty_dispatches(manifest: Manifest) -> dict[int, EmptyDispatch]:
    listed = manifest.header.get("empty_dispatches")
    if listed is None:
        return {}
    try:
        return {f.dispatch_id: f for f in msgspec.convert(listed, prepared(list[EmptyDispatch]))}
    except msgspec.ValidationError as error:
        raise InputError(str(error), where=f"{manifest.path}, key empty_dispatches") from None


def _read_whole(
    manifest: Manifest,
    empty: dict[int, EmptyDispatch],
    bin_size: int | None,
    schema: Callable[[checks.Survey], str],
) -> tuple[_Groups, IndexFacts]:
    """All records of a manifest that is small, or laid out as no runtime does it."""
    survey = checks.Survey(manifest.where)
    records: list[Record] = []
    for batch in manifest.batches(Record):
        survey.add(batch)
        records += batch
    groups = _Groups(records, empty, manifest.where)
    lacking = any(_lacks_func_id(records[i]) for i in groups.starts)
    facts = IndexFacts(
        tuple(survey.warnings(manifest.header, bin_size)),
        schema(survey),
        survey.lists_scalars,
        (((), ""),) if lacking else (),
    )
    return groups, facts


class _Groups:
    """Which records belong to which dispatch, in the order in which the file names them."""

    def __init__(
        self, records: Sequence[Record], empty: dict[int, EmptyDispatch], where: Callable[[int, str], str]
    ) -> None:
        self._records = records
        own_ids = bool(records) and records[0].dispatch_id is not UNSET
        keys = list(map(group_key, records)) if own_ids else [record.task_id for record in records]
        starts = [0] if keys else []
        starts += compress(range(1, len(keys)), map(operator.ne, keys, islice(keys, 1, None)))
        tasks = _task_numbers([keys[i] for i in starts], starts, where)
        self._ends = [*starts[1:], len(keys)]
        self.starts = starts
        self._ids: Sequence[int] = range(len(starts))
        self._runs: list[list[int]] | None = None  # None: every task stands together, as writers sort them
        if own_ids or empty or len(set(tasks)) < len(tasks):
            runs: dict[int, list[int]] = {}
            for number, task in enumerate(tasks):
                runs.setdefault(task, []).append(number)
            if own_ids or empty:
                for dispatch_id in empty:
                    runs.setdefault(dispatch_id, [])
                runs = dict(sorted(runs.items()))
                self._ids = list(runs)
            else:
                self._ids = range(len(runs))
            self._runs = list(runs.values())

    def __len__(self) -> int:
        return len(self._ids)

    def of(self, number: int) -> tuple[int, list[tuple[int, Record]]]:
        """A dispatch's id and its records, each with its place in the manifest."""
        runs = [number] if self._runs is None else self._runs[number]
        places = (i for run in runs for i in range(self.starts[run], self._ends[run]))
        return self._ids[number], [(i, self._records[i]) for i in places]


def _task_numbers(keys: list[int | str], places: list[int], where: Callable[[int, str], str]) -> list[int]:
    try:
        # What every runtime writes, a hexadecimal number with its prefix, without a call for each.
        tasks = [int(key, 0) for key in keys]  # type: ignore[arg-type]
        if min(tasks, default=0) >= 0 and max(tasks, default=0) <= SLOT_MASK:
            return tasks
    except (TypeError, ValueError):
        pass
    return [
        task_number(key, partial(where, place, "task_id")) for key, place in zip(keys, places, strict=True)
    ]


def schema_letter(header: dict[str, Any], key: str, survey: checks.Survey) -> str:
    """Which of the schemas of docs/dump-formats.md a manifest follows, as near as its content tells."""
    first = survey.first
    if key == "tensors":
        if first is not None and first.subtask_id is not UNSET:
            return "C" if first.raw_shape is UNSET else ("A" if "timestamp" in header else "B")
        return "G" if survey.has_typed_scalars else ("F" if header.get("bin_file", "") is None else "D")
    if "dump_args_level" in header:
        return "L"
    if first is None or first.func_id is UNSET:
        return "I"
    return "J" if isinstance(first.func_id, int) else "K"


def _load_kernel_args(manifest: Manifest, scene: Scene | None) -> Dump:
    warnings: list[str] = []
    header = manifest.header
    bin_path = checks.payload_file(manifest.path, header, warnings) if header.get("bin_file") else None
    source = KernelArgsSource(manifest.path, bin_path)
    entries: list[KernelDispatch] = []
    for batch in manifest.batches(KernelDispatch):
        entries += batch
    dispatches = [build_kernel_dispatch(i, entry, source) for i, entry in enumerate(entries)]
    counted = {"total_dispatches": len(entries), "total_args": sum(len(e.args) for e in entries)}
    for key, there in counted.items():
        said = header.get(key)
        if isinstance(said, int) and said != there:
            warnings.append(f"{key} says {said:,}, the file holds {there:,}")
    if len({d.dispatch_id for d in dispatches}) < len(dispatches):
        warnings.append("some dispatch ids are there twice: the first of each is the one that an id selects")
    warnings += source.warnings[:8]
    if bin_path is None and "bin_file" not in header:
        beside = unified_beside(manifest.path)
        if beside is not None:
            dispatches = _with_payload_of(dispatches, beside, warnings)
    naming = Naming.of(scene)
    named = [naming.named(dispatch) for dispatch in dispatches]
    if any(not d.func_ids for d in named):
        named = list(name_dispatches(named, scene, warnings))
    return Dump(manifest.path, "kernel_args", None, named, tuple(warnings), _case(header), _lost(header))


def _with_payload_of(dispatches: Sequence[Dispatch], beside: Path, warnings: list[str]) -> list[Dispatch]:
    """Content for arguments that have none, from the unified manifest's records of the same task."""
    try:
        unified = load_dump(beside)
    except (InputError, RequestError) as error:
        warnings.append(f"the payload beside it is left aside: {error.what}")
        return list(dispatches)
    tensors = {
        (d.task_id, a.slot): a for d in unified.dispatches for a in d.arguments if isinstance(a, TensorArg)
    }
    result = []
    for dispatch in dispatches:
        arguments = []
        for argument in dispatch.arguments:
            found = tensors.get((dispatch.task_id, argument.slot))
            if (
                isinstance(argument, TensorArg)
                and found is not None
                and (argument.dtype, argument.shape) == (found.dtype, found.shape)
            ):
                argument = replace(
                    argument,
                    strides=found.strides,
                    start_offset=found.start_offset,
                    role=argument.role or found.role,
                    before=argument.before or found.before,
                    after=argument.after or found.after,
                )
            arguments.append(argument)
        result.append(replace(dispatch, arguments=tuple(arguments)))
    return result


def stream_dispatches(path: str | Path, scene: Scene | None, warnings: list[str]) -> Iterator[Dispatch]:
    """Dispatches while the manifest is still being read; `warnings` is complete when they are.

    Where the kernels have to be inferred the whole dump is loaded first. Records of one task that do not
    stand together give one dispatch each time; load_dump joins them.
    """
    with open_manifest(find_manifest(path)) as manifest:
        naming = Naming.of(scene)
        waiting: list[tuple[int, Record]] = []
        source: Source | None = None
        position = number = 0
        survey = checks.Survey(manifest.where)
        for batch in manifest.batches(Record) if manifest.key != "dispatches" else ():
            survey.add(batch)
            if source is None:
                empty = _empty_dispatches(manifest)
                if empty or (scene is not None and batch and _lacks_func_id(batch[0])):
                    break
                bin_path = checks.payload_file(manifest.path, manifest.header, warnings)
                bin_bytes = bin_path.stat().st_size if bin_path is not None else 0
                source = Source(
                    manifest.path, manifest.key, bin_path, bin_bytes, lists_scalars=survey.lists_scalars
                )
            for record in batch:
                if waiting and group_key(waiting[0][1]) != group_key(record):
                    yield naming.named(build(_id_of(waiting[0][1], number), waiting, source))
                    waiting, number = [], number + 1
                waiting.append((position, record))
                position += 1
        else:
            if manifest.key != "dispatches":
                if waiting and source is not None:
                    yield naming.named(build(_id_of(waiting[0][1], number), waiting, source))
                if source is not None:
                    present = source.bin_path is not None
                    warnings += survey.warnings(manifest.header, source.bin_bytes if present else None)
                return
    dump = load_dump(path, scene)
    warnings[:] = dump.warnings
    yield from dump.dispatches


def _lacks_func_id(record: Record) -> bool:
    return record.func_id is UNSET or record.func_id in (-1, (-1,), ())


def _id_of(record: Record, number: int) -> int:
    return number if record.dispatch_id is UNSET else record.dispatch_id
