"""Inputs of a task, made after its candidate was compiled, and what lies in outputs before a run."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from insight_trace.judge.task import Task, Tensor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def made_inputs(task: Task, seed: bytes) -> dict[str, NDArray[Any]]:
    """By name, the same for the same seed."""
    return {tensor.name: _drawn(tensor, _generator(seed, tensor.name)) for tensor in task.inputs}


def poison(tensor: Tensor, seed: bytes) -> NDArray[Any]:
    """Bytes that no kernel leaves by chance: floats are NaN with a number of their own in them."""
    import numpy as np

    draw = _generator(seed, f"poison {tensor.name}")
    kind = tensor.kind.numpy
    raw = draw.integers(1, 250, (*tensor.shape, kind.itemsize), np.uint8)
    if tensor.kind.is_float:
        raw[..., -1] = 0x7F
        if kind.itemsize > 1:
            raw[..., -2] |= 0xF0 if tensor.kind.name in ("FLOAT32", "BFLOAT16") else 0x7C
    return np.ascontiguousarray(raw).reshape(-1).view(kind).reshape(tensor.shape)


def seed_of(task: Task, text: bytes, number: int) -> bytes:
    """Of one set of inputs. The candidate's own text is part of it: its writer cannot know what it will be run on."""
    parts = (task.digest.encode(), hashlib.sha256(text).digest(), str(number).encode())
    return hashlib.sha256(b"\0".join(parts)).digest()


def _generator(seed: bytes, name: str) -> np.random.Generator:
    import numpy as np

    digest = hashlib.sha256(seed + name.encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))


def _drawn(tensor: Tensor, draw: np.random.Generator) -> NDArray[Any]:
    import numpy as np

    kind = tensor.kind
    if kind.is_float:
        return draw.uniform(tensor.low, tensor.high, tensor.shape).astype(np.float32).astype(kind.numpy)
    low, high = int(tensor.low), max(int(tensor.high), int(tensor.low) + 1)
    return draw.integers(low, high, tensor.shape).astype(kind.numpy)
