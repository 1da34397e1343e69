"""Scalars: what a file prints for one, and the 64 bits that its slot held.

A slot holds a value's bytes, zero-extended to 64 bits. Dumps print it as a raw unsigned number, as a
number typed by its dtype (32-bit floats with six digits), or as null and "$Inf" where JSON has no number.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from insight_trace.dtypes import DType, dtype_named, integer_range, scalar_value

SLOT_MASK = 2**64 - 1
_NAN_BITS = 0x7FC00000
_PRINTED_DIGITS = 6  # the default precision of a C++ stream
_SPECIAL = {"$inf": math.inf, "-$inf": -math.inf, "inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def bits_of_value(value: Any, dtype: DType) -> tuple[int, bool]:
    """The slot's 64 bits for a printed value, and whether they are certain. ValueError says why not."""
    if value is None:
        return (_float_bits(math.nan, dtype) if dtype.is_float else 0), False
    if isinstance(value, bool):
        return int(value), True
    if isinstance(value, str):
        special = _SPECIAL.get(value.casefold())
        if special is None:
            return _integer_bits(int(value, 0), dtype), True
        if not dtype.is_float:
            raise ValueError(f"{value} cannot be a {dtype.name}")
        return _float_bits(special, dtype), not math.isnan(special)
    if isinstance(value, int) and not isinstance(value, bool):
        if dtype.name == "FLOAT32":
            # Since scalars are typed a float always prints a point; a bare number is the raw slot.
            return _integer_bits(value, _UINT64), True
        return _integer_bits(value, dtype), True
    if dtype.is_float:
        return _float_bits(value, dtype), _is_short(value)
    if value != int(value):
        raise ValueError(f"{value} cannot be a {dtype.name}")
    return _integer_bits(int(value), dtype), True


def printed_value(bits: int, dtype: DType) -> int | float | bool | str | None:
    """What the newest unified manifest prints for these bits: typed, with null and "$Inf" for floats."""
    if dtype.name not in ("FLOAT32", "INT32", "UINT32", "INT64", "BOOL"):
        return bits
    value = scalar_value(dtype, bits)
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("$Inf" if value > 0 else "-$Inf")
    return shortest_single(value) if isinstance(value, float) else value


def shortest_single(value: float) -> float:
    """The double whose text is the shortest that still reads back as the same 32-bit float."""
    for digits in (_PRINTED_DIGITS, 7, 8):
        short = float(f"{value:.{digits}g}")
        if struct.pack("<d", value) == struct.pack("<d", _single(short)):
            return short
    return float(f"{value:.9g}")


def _single(value: float) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _is_short(value: float) -> bool:
    """Whether a printed decimal stands for its nearest float: fewer digits than the printer would give."""
    return not math.isfinite(value) or float(f"{value:.{_PRINTED_DIGITS - 1}g}") == value


def _float_bits(value: float, dtype: DType) -> int:
    if dtype.name == "FLOAT32":
        if math.isnan(value):
            return _NAN_BITS
        bits: int = struct.unpack("<I", struct.pack("<f", _single(value)))[0]
        return bits
    import numpy as np

    return int.from_bytes(np.array([value], dtype=np.float64).astype(dtype.numpy).tobytes(), "little")


def _integer_bits(value: int, dtype: DType) -> int:
    if value < 0 and not dtype.is_float and (lowest := integer_range(dtype)[0]) < 0:
        if value < lowest:
            raise ValueError(f"{value} is out of range for {dtype.name}")
        return value & ((1 << 8 * dtype.size) - 1)
    if not 0 <= value <= SLOT_MASK:
        raise ValueError(f"{value} does not fit into a slot of 64 bits")
    return value


def _named(name: str) -> DType:
    found = dtype_named(name)
    assert found is not None
    return found


_UINT64 = _named("UINT64")
