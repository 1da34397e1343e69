"""Arguments from a case's parameters alone, for kernels whose layout is known by name.

Built in: the four kernels of paged attention. `register_recipe` adds one for another kernel.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from insight_trace.arguments.dispatch import NO_SCALARS
from insight_trace.arguments.slots import (
    Content,
    Fill,
    Random,
    ReplayArguments,
    ReplayScalar,
    ReplaySlot,
    Zero,
    make_tensor,
    row_major,
)
from insight_trace.dtypes import dtype_named, scalar_bits
from insight_trace.errors import RequestError, did_you_mean
from insight_trace.model import Case, Role, Tier

# A case makes many dispatches of a kernel; the second argument says which of them, counted from 0.
Recipe = Callable[[Case, int], ReplayArguments]

_recipes: dict[str, Recipe] = {}


def register_recipe(kernel_name: str, recipe: Recipe) -> None:
    """Makes `--recipe` work for kernels of that name (any case). A name is registered once."""
    key = kernel_name.casefold()
    if key in _recipes:
        raise RequestError(f"there is a recipe for {kernel_name} already")
    _recipes[key] = recipe


def recipe_names() -> tuple[str, ...]:
    return tuple(sorted(name.upper() for name in _recipes))


def from_recipe(kernel_name: str, case: Case, step: int = 0) -> ReplayArguments:
    """The arguments that the recipe makes of the case's parameters for the kernel's dispatch `step`."""
    recipe = _recipes.get(kernel_name.casefold())
    if recipe is None:
        guess = did_you_mean(kernel_name.upper(), recipe_names(), "did you mean {}? ")
        raise RequestError(
            f"there is no recipe for the kernel {kernel_name}",
            hint=f"{guess}recipes exist for {', '.join(recipe_names())}; --arg-spec works for any kernel",
        )
    return recipe(case, step)


def with_missing_scalars(arguments: ReplayArguments, made: ReplayArguments) -> ReplayArguments:
    """Arguments of a dump that holds no scalars, with those that a recipe made for the same dispatch."""
    missing = [
        replace(scalar, tier=Tier.RECONSTRUCTED, origin="from the case's parameters")
        for scalar in made.scalars
        if arguments.at(scalar.slot) is None
    ]
    if not missing:
        return arguments
    notes = tuple(note for note in arguments.notes if note != NO_SCALARS)
    return replace(arguments.added(*missing), notes=notes)


# --- paged attention ----------------------------------------------------------------------------------
# Layouts of the example in simpler (paged_attention_orch.cpp): one query tile against one block of keys and
# values after the other, sequence by sequence. Data is random, scalars are those of the block.

_SEED = 0
_Q_TILE_LIMIT = 128  # rows of a query tile, as the orchestration cuts them


class _Sizes:
    """What the layouts need of a case; a parameter that is missing or no size is named."""

    def __init__(self, case: Case, step: int) -> None:
        self._case = case
        self.rows = min(self._size("num_heads"), _Q_TILE_LIMIT)
        self.dim = self._size("head_dim")
        self.block = self._size("block_size")
        self.valid, self.is_first, self.is_last = self._place(step)
        self.one = 1
        name = case.params.get("dtype", "bfloat16")
        dtype = dtype_named(name) if isinstance(name, str) else None
        if dtype is None:
            raise RequestError(f"case {case.name}: the dtype {name!r} is not known")
        self.dtype = dtype

    def _size(self, key: str) -> int:
        return _positive(self._case.params, key, self._case.name)

    def _lengths(self) -> Iterator[int]:
        """Of each sequence; a list that is too short is repeated, as the scene's inputs are."""
        batch = self._size("batch") if "batch" in self._case.params else 1
        listed = self._case.params.get("context_lens_list")
        if not isinstance(listed, list | tuple) or not listed:
            yield from itertools.repeat(self._size("context_len"), batch)
            return
        named = {f"context_lens_list[{i}]": value for i, value in enumerate(listed)}
        lengths = [_positive(named, key, self._case.name) for key in named]
        yield from itertools.islice(itertools.cycle(lengths), batch)

    def _place(self, step: int) -> tuple[int, bool, bool]:
        """Valid length of the step's block, and whether it is its sequence's first or last."""
        tiles = -(-self._size("num_heads") // _Q_TILE_LIMIT)
        before = 0
        for length in self._lengths():
            blocks = -(-length // self.block)
            if step < before + blocks * tiles:
                block = (step - before) % blocks
                return min(self.block, length - block * self.block), block == 0, block == blocks - 1
            before += blocks * tiles
        raise RequestError(
            f"case {self._case.name} makes {before} dispatches of this kernel; there is no number {step}"
        )


def _positive(params: Mapping[str, Any], key: str, case_name: str) -> int:
    value = params.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise RequestError(
            f"case {case_name}: the recipe needs a positive {key}, found {value!r}",
            hint="--arg-spec works without parameters",
        )
    return value


# kernel -> its slots in order: what it is, name, element type ("own": the case's), and the sizes of its shape. The update
# divides by the row sums lij, so they are ones: not zero, and of one sign.
_LAYOUTS: dict[str, str] = {
    "QK": "input qi own rows dim | input kj own block dim | output sij FLOAT32 rows block",
    "SF": "view sij_valid FLOAT32 rows valid | output pij own rows block | output mij FLOAT32 rows"
    " | output lij FLOAT32 rows | scalar scale FLOAT32 one",
    "PV": "input pij own rows block | input vj own block dim | output oi_new FLOAT32 rows dim",
    "UP": "input mij FLOAT32 rows | ones lij FLOAT32 rows | input oi_new FLOAT32 rows dim | inout mi FLOAT32 rows"
    " | inout li FLOAT32 rows | inout oi FLOAT32 rows dim | inout dst FLOAT32 rows dim"
    " | scalar is_first UINT64 is_first | scalar is_last UINT64 is_last",
}


def _paged_attention(layout: str, case: Case, step: int) -> ReplayArguments:
    sizes = _Sizes(case, step)
    slots = enumerate(layout.split(" | "))
    return ReplayArguments(tuple(_slot(slot, *text.split(), sizes=sizes) for slot, text in slots))


def _slot(slot: int, what: str, name: str, type_: str, *words: str, sizes: _Sizes) -> ReplaySlot:
    dtype = sizes.dtype if type_ == "own" else dtype_named(type_)
    assert dtype is not None
    shape = tuple(int(getattr(sizes, word)) for word in words)
    if what == "scalar":
        value = float(shape[0]) if dtype.is_float else shape[0]
        return ReplayScalar(slot, dtype, scalar_bits(dtype, value), Tier.FILLED, name, "recipe")
    contents: dict[str, tuple[Content, Tier, str]] = {
        "output": (Zero(), Tier.OUTPUT, "output"),
        "inout": (Zero(), Tier.SYNTHETIC, "recipe, zero"),
        "ones": (Fill(1.0), Tier.FILLED, "recipe, filled with 1.0"),
    }
    random = (Random(_SEED), Tier.SYNTHETIC, f"recipe, random, seed {_SEED}")
    content, tier, origin = contents.get(what, random)
    role = Role(what) if what in ("output", "inout") else Role.INPUT
    strides = (sizes.block, 1) if what == "view" else row_major(shape)
    return make_tensor(
        slot, dtype, shape, content, tier, strides=strides, role=role, name=name, origin=origin
    )


for _kernel, _layout in _LAYOUTS.items():
    register_recipe(_kernel, functools.partial(_paged_attention, _layout))
