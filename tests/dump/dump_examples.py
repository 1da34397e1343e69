"""Dumps and scenes made for tests: small files in every schema, and random dispatches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from insight_trace.dtypes import DTYPES, dtype_named
from insight_trace.dump.recorded_bytes import payload_bytes
from insight_trace.model import Argument, ContextArg, CoreType, Dispatch, Payload, Role, ScalarArg, TensorArg

SCENE = """
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, scene_test


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestPagedAttention(SceneTestCase):
    RTOL = 1e-3
    ATOL = 1e-3
    CALLABLE = {
        "orchestration": {
            "source": "kernels/orch.cpp",
            "function_name": "entry",
            "signature": [D.IN] * 5 + [D.OUT],
        },
        "incores": [
            {"func_id": 0, "name": "QK", "source": "kernels/qk.cpp", "core_type": "aic",
             "signature": [D.IN, D.IN, D.OUT]},
            {"func_id": 1, "name": "SF", "source": "kernels/sf.cpp", "core_type": "aiv",
             "signature": [D.IN, D.OUT, D.OUT, D.OUT]},
            {"func_id": 2, "name": "PV", "source": "kernels/pv.cpp", "core_type": "aic",
             "signature": [D.IN, D.IN, D.OUT]},
            {"func_id": 3, "name": "UP", "source": "kernels/up.cpp", "core_type": "aiv",
             "signature": [D.IN, D.IN, D.IN] + [D.INOUT] * 4},
        ],
    }
    CASES = [{"name": "CaseSmall1", "platforms": ["a2a3sim", "a2a3"], "params": {"batch": 1}}]
"""


def scene_file(folder: Path) -> Path:
    """The paged-attention scene's declarations, without its kernels."""
    path = folder / "test_paged_attention.py"
    path.write_text(SCENE)
    return path


def record(**given: Any) -> dict[str, Any]:
    """One record of the newest schema; keys given as None are left out."""
    row: dict[str, Any] = {
        "task_id": "0x0000000200000001",
        "func_id": [1],
        "arg_index": 0,
        "role": "input",
        "stage": "before_dispatch",
        "kind": "tensor",
        "dtype": "FLOAT32",
        "is_contiguous": True,
        "shape": [4],
        "strides": [1],
        "start_offset": 0,
        "numel": 4,
        "bin_offset": 0,
        "bin_size": 0,
        "truncated": False,
        "overwritten": False,
    }
    row |= given
    return {key: value for key, value in row.items() if value is not ...}


def scalar(value: Any, dtype: str = "UINT64", **given: Any) -> dict[str, Any]:
    base = {"kind": "scalar", "dtype": dtype, "shape": [], "strides": [], "numel": 1, "value": value}
    return record(**(base | given))


def write(
    folder: Path, records: list[dict[str, Any]], *, payload: bytes | None = None, **header: Any
) -> Path:
    """A manifest in the newest form (or with `key="tensors"` its forerunners'), one record per line."""
    key = header.pop("key", "args")
    folder.mkdir(parents=True, exist_ok=True)
    name = "args_dump.json" if key == "args" else "tensor_dump.json"
    bin_name = None if payload is None else "args.bin"
    if payload is not None:
        (folder / "args.bin").write_bytes(payload)
    top = {f"total_{key}": len(records), "bin_file": bin_name} | header
    head = json.dumps({k: v for k, v in top.items() if v is not ...}, indent=2).removesuffix("\n}")
    body = ",\n".join("    " + json.dumps(r) for r in records)
    path = folder / name
    path.write_text(f'{head},\n  "{key}": [\n{body}\n  ]\n}}\n')
    return path


def content(dispatch: Dispatch) -> dict[tuple[int, str], bytes | None]:
    """The recorded bytes of every tensor."""
    return {
        (a.slot, name): None if payload is None else bytes(payload_bytes(payload))
        for a in dispatch.arguments
        if isinstance(a, TensorArg)
        for name, payload in (("before", a.before), ("after", a.after))
    }


def without_places(dispatch: Dispatch) -> Dispatch:
    """The dispatch with payloads that no longer say in which file they lie."""
    from msgspec.structs import replace

    def moved(payload: Payload | None) -> Payload | None:
        return None if payload is None else Payload(Path(), 0, payload.size, payload.truncated)

    arguments = tuple(
        replace(a, before=moved(a.before), after=moved(a.after)) if isinstance(a, TensorArg) else a
        for a in dispatch.arguments
    )
    return replace(dispatch, arguments=arguments)


# --- random dispatches ----------------------------------------------------------------------------------

bits = st.one_of(
    st.integers(0, 2**64 - 1),
    st.sampled_from([0, 2**64 - 1, 0x7FC00000, 0x7F800000, 0xFF800000, 0x80000000, 0x3F800000, 0x7FA00001]),
)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
pointers = st.none() | st.integers(0, 2**64 - 1)
POOL = bytes(range(256)) * 64  # what payloads are cut from


@st.composite
def payloads(draw: st.DrawFn, pool: Path, size: int) -> Payload | None:
    if size == 0 or size > len(POOL) or draw(st.booleans()):
        return None
    return Payload(pool, draw(st.integers(0, len(POOL) - size)), size)


@st.composite
def tensors(draw: st.DrawFn, slot: int, pool: Path) -> TensorArg:
    dtype = draw(st.sampled_from(DTYPES))
    shape = tuple(draw(st.lists(st.integers(0, 6), max_size=5)))
    size = dtype.size
    for extent in shape:
        size *= extent
    return TensorArg(
        slot,
        dtype,
        shape,
        tuple(draw(st.integers(0, 2**32 - 1)) for _ in shape),
        draw(st.integers(0, 2**40)),
        draw(st.sampled_from([*Role, None])),
        draw(payloads(pool, size)),
        draw(payloads(pool, size)),
        draw(pointers),
        draw(st.none() | st.integers(0, 2**40)),
        draw(names),
    )


@st.composite
def arguments(draw: st.DrawFn, pool: Path) -> tuple[Argument, ...]:
    slots = sorted(draw(st.sets(st.integers(0, 47), max_size=6)))
    found: list[Argument] = []
    for slot in slots:
        if draw(st.booleans()):
            found.append(draw(tensors(slot, pool)))
        else:
            dtype = draw(st.sampled_from(DTYPES))
            found.append(
                ScalarArg(slot, dtype, draw(bits), draw(st.booleans()), draw(st.booleans()), draw(names))
            )
    if draw(st.booleans()):
        found += [ContextArg(48, draw(pointers), "local"), ContextArg(49, draw(pointers))]
    return tuple(found)


@st.composite
def dumps(draw: st.DrawFn, pool: Path) -> list[Dispatch]:
    small = st.none() | st.integers(0, 100)
    return [
        Dispatch(
            dispatch_id=number,
            task_id=draw(st.integers(0, 2**64 - 1)),
            arguments=draw(arguments(pool)),
            func_ids=tuple(draw(st.lists(st.integers(0, 40), max_size=3))),
            subtask_id=draw(small),
            core_type=draw(st.sampled_from([*CoreType, None])),
            core_id=draw(small),
            block_idx=draw(small),
            block_count=draw(st.integers(1, 48)),
            kernel=draw(names),
            inferred=tuple(draw(st.lists(st.sampled_from(["func_ids", "core_type"]), max_size=1))),
            missing=tuple(draw(st.lists(st.sampled_from(["scalars", "core_id"]), max_size=1))),
        )
        for number in range(draw(st.integers(0, 4)))
    ]


def dtype(name: str) -> Any:
    found = dtype_named(name)
    assert found is not None
    return found


def only(dump):
    assert len(dump.dispatches) == 1
    return dump.dispatches[0]


def of_slot(dispatch, slot):
    return next(a for a in dispatch.arguments if a.slot == slot)
