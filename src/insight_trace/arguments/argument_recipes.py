"""Arguments from a case's parameters alone, for kernels whose layout is known by name.

Built in: the four kernels of paged attention. `register_recipe` adds one for another kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from insight_trace.arguments.dispatch import NO_SCALARS
from insight_trace.arguments.slots import (
    Fill,
    Random,
    ReplayArguments,
    ReplayScalar,
    ReplayTensor,
    Zero,
    make_tensor,
    row_major,
)
from insight_trace.dtypes import DType, dtype_named, scalar_bits
from insight_trace.errors import RequestError
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
        import difflib

        near = difflib.get_close_matches(kernel_name.upper(), recipe_names(), n=1)
        guess = f"did you mean {near[0]}? " if near else ""
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
        self.dtype = _dtype(case.params.get("dtype", "bfloat16"), case)

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


def _dtype(name: object, case: Case) -> DType:
    dtype = dtype_named(name) if isinstance(name, str) else None
    if dtype is None:
        raise RequestError(f"case {case.name}: the dtype {name!r} is not known")
    return dtype


def _named(name: str) -> DType:
    dtype = dtype_named(name)
    assert dtype is not None
    return dtype


def _input(slot: int, name: str, dtype: DType, *shape: int, strides: tuple[int, ...] = ()) -> ReplayTensor:
    return make_tensor(
        slot,
        dtype,
        shape,
        Random(_SEED),
        Tier.SYNTHETIC,
        strides=strides or row_major(shape),
        role=Role.INPUT,
        name=name,
        origin=f"recipe, random, seed {_SEED}",
    )


def _output(slot: int, name: str, dtype: DType, *shape: int) -> ReplayTensor:
    return make_tensor(slot, dtype, shape, Zero(), Tier.OUTPUT, role=Role.OUTPUT, name=name, origin="output")


def _inout(slot: int, name: str, dtype: DType, *shape: int) -> ReplayTensor:
    return make_tensor(
        slot, dtype, shape, Zero(), Tier.SYNTHETIC, role=Role.INOUT, name=name, origin="recipe, zero"
    )


def _flag(slot: int, name: str, value: bool) -> ReplayScalar:
    return ReplayScalar(slot, _named("UINT64"), int(value), Tier.FILLED, name, "recipe")


def _qk(case: Case, step: int) -> ReplayArguments:
    s, f32 = _Sizes(case, step), _named("FLOAT32")
    return ReplayArguments(
        (
            _input(0, "qi", s.dtype, s.rows, s.dim),
            _input(1, "kj", s.dtype, s.block, s.dim),
            _output(2, "sij", f32, s.rows, s.block),
        )
    )


def _sf(case: Case, step: int) -> ReplayArguments:
    s, f32 = _Sizes(case, step), _named("FLOAT32")
    scale = ReplayScalar(4, f32, scalar_bits(f32, 1.0), Tier.FILLED, "scale", "recipe")
    return ReplayArguments(
        (
            _input(0, "sij_valid", f32, s.rows, s.valid, strides=(s.block, 1)),
            _output(1, "pij", s.dtype, s.rows, s.block),
            _output(2, "mij", f32, s.rows),
            _output(3, "lij", f32, s.rows),
            scale,
        )
    )


def _pv(case: Case, step: int) -> ReplayArguments:
    s, f32 = _Sizes(case, step), _named("FLOAT32")
    return ReplayArguments(
        (
            _input(0, "pij", s.dtype, s.rows, s.block),
            _input(1, "vj", s.dtype, s.block, s.dim),
            _output(2, "oi_new", f32, s.rows, s.dim),
        )
    )


def _up(case: Case, step: int) -> ReplayArguments:
    s, f32 = _Sizes(case, step), _named("FLOAT32")
    # The kernel divides by the row sums, so they must not be zero or change sign.
    sums = make_tensor(
        1,
        f32,
        (s.rows,),
        Fill(1.0),
        Tier.FILLED,
        role=Role.INPUT,
        name="lij",
        origin="recipe, filled with 1.0",
    )
    return ReplayArguments(
        (
            _input(0, "mij", f32, s.rows),
            sums,
            _input(2, "oi_new", f32, s.rows, s.dim),
            _inout(3, "mi", f32, s.rows),
            _inout(4, "li", f32, s.rows),
            _inout(5, "oi", f32, s.rows, s.dim),
            _inout(6, "dst", f32, s.rows, s.dim),
            _flag(7, "is_first", s.is_first),
            _flag(8, "is_last", s.is_last),
        )
    )


register_recipe("QK", _qk)
register_recipe("SF", _sf)
register_recipe("PV", _pv)
register_recipe("UP", _up)
