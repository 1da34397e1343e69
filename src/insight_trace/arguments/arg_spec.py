"""Arguments from an `--arg-spec` file: a JSON list of entries, or {"args": [...]}. See docs/arg-spec.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from insight_trace.arguments.buffers import file_elements
from insight_trace.arguments.slots import (
    Content,
    Fill,
    FromFile,
    Random,
    ReplayArguments,
    ReplayScalar,
    ReplaySlot,
    Zero,
    geometry_problem,
    make_tensor,
    row_major,
    slot_problems,
)
from insight_trace.dtypes import (
    DTYPES,
    DoesNotFitError,
    DType,
    dtype_named,
    encode_element,
    integer_range,
    scalar_bits,
)
from insight_trace.errors import InputError, RequestError, did_you_mean
from insight_trace.model import Role, Tier
from insight_trace.reading import regular_text

_SHARED_KEYS = frozenset({"kind", "index", "name", "dtype", "comment"})
_TENSOR_KEYS = _SHARED_KEYS | {"shape", "strides", "start_offset", "role", "fill", "file", "seed"}
_SCALAR_KEYS = _SHARED_KEYS | {"value", "pack_mode", "role"}
_SPEC_LIMIT = 64 * 1024 * 1024


class _EntryError(ValueError):
    """One entry's fault; collected, so that all of them are told at once."""


def read_arg_spec(path: Path) -> ReplayArguments:
    """The arguments that a spec file describes. Relative files are beside the spec."""
    try:
        if path.stat().st_size > _SPEC_LIMIT:
            raise RequestError(f"{path.stat().st_size} bytes is not a spec", where=str(path))
        document = json.loads(regular_text(path, most=_SPEC_LIMIT))
    except OSError as error:
        raise RequestError(
            f"the spec cannot be read: {error.strerror}",
            where=str(path),
            hint="its form is docs/arg-spec.md; without one, arguments come from the scene's case",
        ) from None
    except (ValueError, RecursionError) as error:
        raise RequestError(
            f"the spec is not JSON: {error}",
            where=str(path),
            hint='a JSON list of slots, or an object with the list under "args": docs/arg-spec.md has an example',
        ) from None
    return parse_arg_spec(document, where=str(path), directory=path.parent)


def parse_arg_spec(document: object, *, where: str = "arg spec", directory: Path) -> ReplayArguments:
    """The same from a document that is already read."""
    entries = document.get("args") if isinstance(document, dict) else document
    if not isinstance(entries, list):
        raise RequestError(
            'a spec is a list of arguments, or an object with the list under "args"',
            where=where,
            hint='for example [{"kind": "tensor", "index": 0, "dtype": "FLOAT32", "shape": [16, 16]}]',
        )
    slots: list[ReplaySlot] = []
    problems: list[str] = []
    notes: list[str] = []
    for position, entry in enumerate(entries):
        label = _label(position, entry)
        try:
            slots.append(_entry(entry, directory))
        except _EntryError as error:
            problems.append(f"{label}: {error}")
        else:
            notes += [f"{label}: {text}" for text in _unknown_keys(entry)]
    problems += slot_problems([item.slot for item in slots])
    if problems:
        raise RequestError(_joined(problems), where=where, hint="docs/arg-spec.md shows every key")
    return ReplayArguments(tuple(slots), notes=tuple(notes))


def _joined(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    return f"{len(problems)} faults\n" + "\n".join(f"    {problem}" for problem in problems)


def _label(position: int, entry: object) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return f"entry {position} ({name})" if isinstance(name, str) and name else f"entry {position}"


def _unknown_keys(entry: Mapping[str, Any]) -> list[str]:
    known = _SCALAR_KEYS if _kind(entry) == "scalar" else _TENSOR_KEYS
    texts = []
    for key in entry:
        if key not in known:
            guess = did_you_mean(key, known, ", did you mean '{}'?")
            texts.append(f"the key '{key}' has no meaning here{guess}")
    return texts


def _kind(entry: Mapping[str, Any]) -> object:
    return entry.get("kind", "tensor" if "shape" in entry else None)


def _entry(entry: object, directory: Path) -> ReplaySlot:
    if not isinstance(entry, dict):
        raise _EntryError(f"an object is needed, not {_json_kind(entry)}")
    kind = _kind(entry)
    if kind not in ("tensor", "scalar"):
        raise _EntryError(f"kind must be 'tensor' or 'scalar', not {json.dumps(kind)}")
    slot = _whole(entry, "index")
    problems = slot_problems([slot])
    if problems:
        raise _EntryError(problems[0])
    name = entry.get("name", "")
    if not isinstance(name, str):
        raise _EntryError("name must be a string")
    dtype = _dtype(entry)
    if kind == "scalar":
        return ReplayScalar(slot, dtype, _scalar_bits(entry, dtype), Tier.FILLED, name, "arg spec")
    return _tensor(entry, slot, dtype, name, directory)


def _dtype(entry: Mapping[str, Any]) -> DType:
    name = entry.get("dtype")
    if not isinstance(name, str):
        raise _EntryError("dtype is missing" if name is None else "dtype must be a string")
    dtype = dtype_named(name)
    if dtype is None:
        known = ", ".join(d.name for d in DTYPES)
        raise _EntryError(f"dtype {name!r} is not known; there are {known}, FLOAT32_BITS")
    return dtype


def _tensor(entry: Mapping[str, Any], slot: int, dtype: DType, name: str, directory: Path) -> ReplaySlot:
    shape = _whole_list(entry, "shape")
    if shape is None:
        raise _EntryError("shape is missing")
    strides = _whole_list(entry, "strides") if "strides" in entry else row_major(shape)
    start_offset = _whole(entry, "start_offset", 0)
    problem = geometry_problem(dtype, shape, strides or (), start_offset)
    if problem:
        raise _EntryError(problem)
    role = _spec_role(entry)
    content, tier, origin = _tensor_content(entry, dtype, role, directory)
    tensor = make_tensor(
        slot,
        dtype,
        shape,
        content,
        tier,
        strides=strides,
        start_offset=start_offset,
        role=role,
        name=name,
        origin=origin,
    )
    if isinstance(content, FromFile):
        try:
            file_elements(content.path, tensor)
        except InputError as error:
            raise _EntryError(f"file {entry['file']!r}: {error.what}") from None
    return tensor


def _spec_role(entry: Mapping[str, Any]) -> Role | None:
    value = entry.get("role")
    if value is None:
        return None
    try:
        return Role(value.casefold() if isinstance(value, str) else value)
    except ValueError:
        raise _EntryError(f"role must be 'input', 'output' or 'inout', not {json.dumps(value)}") from None


def _tensor_content(
    entry: Mapping[str, Any], dtype: DType, role: Role | None, directory: Path
) -> tuple[Content, Tier, str]:
    fill, file = entry.get("fill"), entry.get("file")
    if fill is not None and file is not None:
        raise _EntryError("fill and file contradict each other; give one of them")
    if file is not None:
        if not isinstance(file, str) or not file or "\0" in file:
            raise _EntryError("file must be a path")
        path = directory / file
        if not path.is_file():
            raise _EntryError(f"the file {file!r} does not exist beside the spec")
        return FromFile(path), Tier.EXACT, f"file {file}"
    if fill == "random":
        seed = _whole(entry, "seed", 0)
        if seed < 0:
            raise _EntryError("seed must not be negative")
        return Random(seed), Tier.SYNTHETIC, f"random, seed {seed}"
    if fill is None or fill == "zero":
        if role is Role.OUTPUT:
            return Zero(), Tier.OUTPUT, "output"
        return Zero(), Tier.SYNTHETIC, "zero"
    if not isinstance(fill, int | float):
        raise _EntryError(f"fill must be a number, 'zero' or 'random', not {json.dumps(fill)}")
    try:
        encode_element(dtype, fill)
    except DoesNotFitError as error:
        raise _EntryError(f"fill: {error}") from None
    return Fill(fill), Tier.FILLED, f"filled with {fill}"


def _scalar_bits(entry: Mapping[str, Any], dtype: DType) -> int:
    """The 64 bits, by `pack_mode`: "bits" is the element type's own representation, "value" a plain integer.

    Default: bits for float types, value for the others. Nothing is ever cut off: a fraction that should go
    into a plain integer is a fault of the entry.
    """
    if "value" not in entry:
        raise _EntryError("value is missing")
    value = entry["value"]
    named_bits = str(entry["dtype"]).casefold() == "float32_bits"
    mode = entry.get("pack_mode", "bits" if dtype.is_float else "value")
    if mode not in ("value", "bits"):
        raise _EntryError(f"pack_mode must be 'value' or 'bits', not {json.dumps(mode)}")
    if isinstance(value, str):
        return _bit_pattern(value)
    if not isinstance(value, int | float):
        raise _EntryError(
            f"value must be a number or a bit pattern like '0x3f800000', not {_json_kind(value)}"
        )
    try:
        if dtype.is_float and (named_bits or mode == "bits"):
            return scalar_bits(dtype, value)
        if dtype.is_float:
            return _plain_integer(value)
        return scalar_bits(dtype, value)
    except DoesNotFitError as error:
        hint = "; for a float's bits give dtype FLOAT32_BITS" if isinstance(value, float) else ""
        raise _EntryError(f"value: {error}{hint}") from None


def _plain_integer(value: int | float) -> int:
    int64 = dtype_named("INT64")
    assert int64 is not None
    if isinstance(value, float) and not value.is_integer():
        raise _EntryError(f"value {value!r} would lose its fraction with pack_mode 'value'; use 'bits'")
    low, high = integer_range(int64)
    if not low <= value <= high:
        raise _EntryError(f"value {value!r} does not fit in 64 bits")
    return int(value) & (2**64 - 1)


def _bit_pattern(text: str) -> int:
    try:
        bits = int(text, 0) if text.casefold().startswith("0x") else -1
    except ValueError:
        bits = -1
    if not 0 <= bits < 2**64:
        raise _EntryError(f"value {text!r} is not a bit pattern like '0x3f800000' of at most 64 bits")
    return bits


def _whole(entry: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = entry.get(key, default)
    if value is None:
        raise _EntryError(f"{key} is missing")
    if isinstance(value, bool) or not isinstance(value, int):
        raise _EntryError(f"{key} must be a whole number, not {json.dumps(value)}")
    return value


def _whole_list(entry: Mapping[str, Any], key: str) -> tuple[int, ...] | None:
    value = entry.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or any(isinstance(v, bool) or not isinstance(v, int) for v in value):
        raise _EntryError(f"{key} must be a list of whole numbers")
    return tuple(value)


def _json_kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")
