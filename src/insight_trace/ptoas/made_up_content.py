"""Reproducible content for a kernel's buffers. NumPy is all that this file needs.

The generated `golden.py` of a test case carries a copy of this file, so that a launcher's inputs and the
embedded simulator's are the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

CHUNK = 1 << 20  # elements per step: a large buffer is made piece by piece


def _generator(seed: int, position: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([seed, position]))


def _bfloat16(values: Any) -> Any:
    """float32 to the bits of bfloat16, ties to even."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _float_bits(kind: str, uniform: Any) -> Any:
    if kind == "float32":
        return uniform
    if kind == "float16":
        return uniform.astype(np.float16)
    if kind == "bfloat16":
        return _bfloat16(uniform)
    if kind == "float8_e8m0fnu":  # powers of two around one
        return (126 + (uniform > 0)).astype(np.uint8)
    if kind == "float4_e2m1fn":  # two values per byte, all of them finite
        return ((uniform * 127).astype(np.int16) & 0xFF).astype(np.uint8)
    # 8-bit floats: codes from 1/8 to just under 2, positive and finite in every format in use
    return (0x20 + (np.abs(uniform) * 31)).astype(np.uint8)


def pieces(
    kind: str, count: int, content: str, low: int, high: int, seed: int, position: int, positive: bool
) -> Iterator[Any]:
    """Arrays that, one after the other, are the buffer's content. `kind` is a NumPy type name."""
    generator = _generator(seed, position)
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        if content == "random":
            uniform = generator.random(size, dtype=np.float32)
            yield _float_bits(kind, uniform + np.float32(0.25) if positive else uniform * 2 - 1)
        elif content == "index":
            yield generator.integers(low, high, size=size, endpoint=True).astype(kind)
        elif content == "constant":
            yield np.full(size, low, dtype=kind)
        else:
            item = 2 if kind == "bfloat16" else 1 if kind.startswith(("float8", "float4")) else 0
            yield np.zeros(size, dtype=np.dtype(f"u{item}") if item else np.dtype(kind))
