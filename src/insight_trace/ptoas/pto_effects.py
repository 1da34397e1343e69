"""What single operations of `.pto` mean for arguments: views, partitions, pipes, tiles.

`pto_walk` adds the control flow around them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from insight_trace.errors import InputError
from insight_trace.limits import cut
from insight_trace.ptoas.affine import Affine, bounded, unknown
from insight_trace.ptoas.pto_facts import Access, Binding, CoreWork, Facts, Length, Partition, Pointer, View
from insight_trace.ptoas.pto_syntax import Module, Operation

# A ring of the GM pipe has this many slots unless the text says otherwise (PTOAS, frontend pipe lowering).
_SLOTS_ONE_WAY = 8
_SLOTS_BOTH_WAYS = 4
# Tile operations that move or name data; every other `pto.t*` computes.
_MOVES = frozenset({
    "tload", "tstore", "tstore_fp", "tmov", "textract", "tinsert", "treshape", "tassign", "tprefetch", "tprint",
    "tsync", "tgetval", "tsetval", "tpush", "tpop", "tfree", "tpush_to_aiv", "tpush_to_aic", "tpop_from_aiv",
    "tpop_from_aic", "tfree_from_aiv", "tfree_from_aic", "tget_scale_addr", "tput", "tget", "tput_async", "tget_async",
    "tnotify", "twait", "ttest", "test_async_event",
})  # fmt: skip
_CUBE_WORK = ("pto.tmatmul", "pto.tgemv")
_TILE_SIZE = re.compile(r"\b(rows|cols)\s*=\s*([0-9]{1,15})\b")
_TILE_PLACE = re.compile(r"\bloc\s*=\s*(\w+)")
_MEMREF = re.compile(r"^memref<((?:(?:[0-9]{1,15}|\?)x)*)([a-z]\w*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PtoTile:
    rows: int
    cols: int
    sources: frozenset[str]  # arguments whose content is in it


Value = Affine | Pointer | tuple[View, ...] | PtoTile


@dataclass(slots=True)
class Scope:
    names: dict[str, Value]
    guarded: bool
    trips: int  # how often it certainly runs
    side: str
    calls: int


class Effects:
    """Values of names, and the operations that touch memory or tiles."""

    def __init__(
        self, module: Module, bindings: Mapping[str, Binding], steps: list[int] | None = None
    ) -> None:
        self.module = module
        self.bindings = bindings
        self.facts = Facts()
        self.steps = steps if steps is not None else [0]

    # --- values ---

    def number(self, scope: Scope, text: str) -> Affine:
        if text.startswith("%"):
            value = scope.names.get(text[1:])
            return value if isinstance(value, Affine) else unknown(text)
        try:
            return Affine(int(text, 0))
        except ValueError:
            return unknown(text)

    def numbers(self, scope: Scope, texts: tuple[str, ...] | None) -> tuple[Affine, ...]:
        return tuple(self.number(scope, text) for text in texts or ())

    def tile(self, scope: Scope, name: str) -> PtoTile:
        value = scope.names.get(name)
        return value if isinstance(value, PtoTile) else PtoTile(0, 0, frozenset())

    def argument(self, name: str, type_: str) -> Value:
        if type_.startswith("!pto.ptr"):
            return Pointer(name, Affine())
        memref = _MEMREF.match(type_)
        if memref:
            return (self.memref_view(name, memref.group(1)),)
        bound = self.bindings.get(name)
        if isinstance(bound, int):
            return Affine(bound, {}, frozenset({name}))
        if bound is not None:
            return unknown(name, frozenset({name}), bound[0], bound[1])
        if type_ == "i1":
            return unknown(name, frozenset({name}), 0, 1)
        return unknown(name, frozenset({name}))

    def memref_view(self, name: str, extents: str) -> View:
        """A memref argument declares its own shape; unknown strides are taken as those of a dense array."""
        shape = [Affine(int(e)) if e != "?" else unknown(name) for e in extents.split("x") if e]
        strides: list[Affine] = []
        step = Affine(1)
        for extent in reversed(shape):
            strides.insert(0, step)
            step = step * extent
        view = View(name, name, Affine(), tuple(shape), tuple(strides), 0)
        self.facts.views.append(view)
        return view

    def element(self, arguments: frozenset[str], label: str) -> Affine:
        """An integer that is read from memory: what the arguments were filled with."""
        limits = [bound for name in sorted(arguments) if (bound := self.bindings.get(name)) is not None]
        if not limits:
            return unknown(label, arguments)
        pairs = [(b, b) if isinstance(b, int) else b for b in limits]
        return unknown(label, arguments, min(p[0] for p in pairs), max(p[1] for p in pairs))

    # --- memory ---

    def view(self, op: Operation, scope: Scope) -> None:
        base = scope.names.get(op.values()[0]) if op.values() else None
        if not isinstance(base, Pointer):
            for result in op.results:
                scope.names[result] = unknown(result)
            return
        shape = self.numbers(scope, op.list_after("shape"))
        strides = self.numbers(scope, op.list_after("strides"))
        if not shape:
            raise InputError("make_tensor_view without a shape", where=f"{self.module.where}:{op.line}")
        if len(strides) != len(shape):
            dense: list[Affine] = []
            step = Affine(1)
            for extent in reversed(shape):
                dense.insert(0, step)
                step = step * extent
            strides = tuple(dense)
        view = View(op.results[0], base.argument, base.offset, shape, strides, op.line)
        self.facts.views.append(view)
        scope.names[op.results[0]] = (view,)

    def partition(self, op: Operation, scope: Scope) -> None:
        source = scope.names.get(op.values()[0]) if op.values() else None
        result = op.results[0] if op.results else ""
        if not isinstance(source, tuple):
            scope.names[result] = source if isinstance(source, PtoTile) else unknown(result)
            return
        offsets = self.numbers(scope, op.list_after("offsets"))
        sizes = self.numbers(scope, op.list_after("sizes"))
        for view in source:
            if len(offsets) == len(sizes) == len(view.strides):
                self.facts.partitions.append(Partition(view, offsets, sizes, op.line, scope.guarded))
        scope.names[result] = source

    def add_pointer(self, op: Operation, scope: Scope) -> None:
        names = op.values()
        base = scope.names.get(names[0]) if names else None
        if isinstance(base, Pointer) and len(names) > 1:
            scope.names[op.results[0]] = Pointer(
                base.argument, base.offset + self.number(scope, f"%{names[1]}")
            )

    def load_scalar(self, op: Operation, scope: Scope) -> None:
        names = op.values()
        base = scope.names.get(names[0]) if names else None
        if isinstance(base, Pointer) and len(names) > 1:
            place = base.offset + self.number(scope, f"%{names[1]}")
            self.facts.accesses.append(Access(base.argument, place + Affine(1), 0, op.line))
            self.facts.read_as_scalar.add(base.argument)
            scope.names[op.results[0]] = self.element(frozenset({base.argument}), op.results[0])

    def store_scalar(self, op: Operation, scope: Scope) -> None:
        names = op.values()
        base = scope.names.get(names[1]) if len(names) > 2 else None
        if isinstance(base, Pointer):
            place = base.offset + self.number(scope, f"%{names[2]}")
            self.facts.accesses.append(Access(base.argument, place + Affine(1), 0, op.line))
            self.facts.stored.add(base.argument)

    def pipe(self, op: Operation, scope: Scope) -> None:
        """A GM pipe's rings: slots x slot bytes, twice when data flows both ways."""
        for result in op.results:
            scope.names[result] = unknown(result)
        buffer = op.after("gm_slot_buffer")
        base = scope.names.get(buffer.text[1:]) if buffer and buffer.kind == "value" else None
        if base is None:
            candidates = [scope.names.get(name) for name in op.values()]
            base = next((value for value in candidates if isinstance(value, Pointer)), None)
        if not isinstance(base, Pointer):
            return
        sizes = {}
        for key, default in (("slot_size", 0), ("slot_num", 0), ("dir_mask", 1)):
            token = op.after(key)
            sizes[key] = self._size(token.text, op) if token and token.kind == "number" else default
        both = sizes["dir_mask"] == 3
        slots = sizes["slot_num"] or (_SLOTS_BOTH_WAYS if both else _SLOTS_ONE_WAY)
        size = sizes["slot_size"] * slots * (2 if both else 1)
        self.facts.accesses.append(Access(base.argument, base.offset, size, op.line))
        self.facts.pipes.add(base.argument)

    def _size(self, text: str, op: Operation) -> int:
        if not re.fullmatch(r"[0-9]{1,15}|0x[0-9a-fA-F]{1,12}", text):
            raise InputError(f"{cut(text)} is no size", where=f"{self.module.where}:{op.line}")
        return int(text, 16) if text.startswith("0x") else int(text)

    def ffts(self, op: Operation, scope: Scope) -> None:
        for name in op.values():
            base = scope.names.get(name)
            if isinstance(base, Pointer):
                self.facts.ffts.add(base.argument)
            elif isinstance(base, tuple):
                self.facts.ffts |= {view.argument for view in base}

    def note_opaque(self, op: Operation, scope: Scope) -> None:
        """A pointer that goes into an operation nobody here knows: its extent cannot be told."""
        for name in op.values():
            value = scope.names.get(name)
            if isinstance(value, Pointer):
                self.facts.opaque.setdefault(value.argument, op.name)

    # --- tiles ---

    def allocate(self, op: Operation, scope: Scope) -> None:
        type_ = next((t.text for t in reversed(op.tokens) if t.kind in ("type", "angle")), "")
        sizes = {key: int(value) for key, value in _TILE_SIZE.findall(type_)}
        self.place(type_)
        for key, size in (("valid_row", "rows"), ("valid_col", "cols")):
            token = op.after(key)
            if token and token.kind == "value" and size in sizes:
                self.facts.lengths.append(Length(self.number(scope, token.text), sizes[size], op.line))
        for result in op.results:
            scope.names[result] = PtoTile(sizes.get("rows", 0), sizes.get("cols", 0), frozenset())

    def valid_shape(self, op: Operation, scope: Scope) -> None:
        names = op.values()
        tile = self.tile(scope, names[0]) if names else PtoTile(0, 0, frozenset())
        for name, limit in zip(names[1:3], (tile.rows, tile.cols), strict=False):
            if limit:
                self.facts.lengths.append(Length(self.number(scope, f"%{name}"), limit, op.line))

    def place(self, type_: str) -> None:
        found = _TILE_PLACE.search(type_)
        if found:
            self.facts.places.add("vec" if found.group(1) == "ub" else found.group(1))

    def identity(self, op: Operation, scope: Scope) -> None:
        """The block that runs is block 0 of 1; a mix has two vector lanes."""
        limits = {
            "pto.get_block_idx": (0, 0),
            "pto.get_block_num": (1, 1),
            "pto.get_subblock_idx": (0, 1),
            "pto.get_subblock_num": (2, 2),
        }[op.name]
        for result in op.results:
            scope.names[result] = bounded(result, limits, ())

    def get_value(self, op: Operation, scope: Scope) -> None:
        names = [t.text[1:] for t in op.group("ins") if t.kind == "value"]
        sources = self.tile(scope, names[0]).sources if names else frozenset()
        for result in op.results:
            scope.names[result] = self.element(sources, result)
        self.facts.read_as_scalar |= sources

    def tile_operation(self, op: Operation, scope: Scope) -> None:
        """Books what moves between arguments and tiles, and counts what computes."""
        short = op.name[4:]
        self.facts.operations.add(short)
        self.note_opaque(op, scope)
        ins = [t.text[1:] for t in op.group("ins") if t.kind == "value"]
        outs = [t.text[1:] for t in op.group("outs") if t.kind == "value"]
        sources: set[str] = set()
        for name in ins:
            value = scope.names.get(name)
            if isinstance(value, tuple):
                found = {view.argument for view in value}
                self.facts.loaded |= found
                sources |= found
            elif isinstance(value, PtoTile):
                sources |= value.sources
        for name in outs:
            value = scope.names.get(name)
            if isinstance(value, tuple):
                self.facts.stored |= {view.argument for view in value}
            elif isinstance(value, PtoTile):
                scope.names[name] = PtoTile(value.rows, value.cols, frozenset(sources))
        for token in op.tokens:
            if token.kind in ("type", "angle"):
                self.place(token.text)
        if short == "tload" and any("loc=mat" in t.text for t in op.group("outs") if t.kind == "type"):
            self.facts.matrices |= sources
        for result in op.results:
            scope.names[result] = PtoTile(0, 0, frozenset(sources))
        if short in ("tgather", "tgatherb", "tscatter") and len(ins) > 1:
            self.indexed(scope, ins, outs)
        if short not in _MOVES:
            self.count(op.name, scope)

    def indexed(self, scope: Scope, ins: list[str], outs: list[str]) -> None:
        target = self.tile(scope, ins[0])
        index = self.tile(scope, ins[1])
        if index.sources and target.cols:
            self.facts.indices.append((index.sources, target.cols))
        elif index.sources and outs:
            self.facts.indices.append((index.sources, max(1, self.tile(scope, outs[0]).cols)))

    def memory_indexed(self, op: Operation, scope: Scope) -> None:
        """mgather / mscatter: tile elements say which row of a view is meant."""
        values = [t.text[1:] for t in (*op.group("ins"), *op.group("outs")) if t.kind == "value"]
        views = [v for name in values if isinstance(v := scope.names.get(name), tuple)]
        rows = [view.shape[0].low for group in views for view in group if view.shape]
        limit = min((row for row in rows if row), default=1)
        for name in values:
            tile = self.tile(scope, name)
            if tile.sources:
                self.facts.indices.append((tile.sources, limit))
        self.tile_operation(op, scope)

    def count(self, name: str, scope: Scope) -> None:
        if name.startswith(_CUBE_WORK):
            old = self.facts.cube
            self.facts.cube = CoreWork(old.written + 1, old.certain + scope.trips)
        else:
            old = self.facts.vector
            self.facts.vector = CoreWork(old.written + 1, old.certain + scope.trips)


STEPS: Mapping[str, Callable[[Effects, Operation, Scope], None]] = {
    "pto.make_tensor_view": Effects.view,
    "pto.partition_view": Effects.partition,
    "pto.subview": Effects.partition,
    "pto.addptr": Effects.add_pointer,
    "pto.load_scalar": Effects.load_scalar,
    "pto.store_scalar": Effects.store_scalar,
    "pto.set_ffts": Effects.ffts,
    "pto.alloc_tile": Effects.allocate,
    "pto.set_validshape": Effects.valid_shape,
    "pto.get_block_idx": Effects.identity,
    "pto.get_block_num": Effects.identity,
    "pto.get_subblock_idx": Effects.identity,
    "pto.get_subblock_num": Effects.identity,
    "pto.tgetval": Effects.get_value,
    "pto.mgather": Effects.memory_indexed,
    "pto.mscatter": Effects.memory_indexed,
}
