"""Numbers as the bytes a kernel reads, and back, with a refusal instead of a silent change."""

from __future__ import annotations

import math
import struct

from insight_trace.dtypes import DType


class DoesNotFitError(ValueError):
    """A number that the element type cannot hold; the text says why."""


def encode_element(dtype: DType, value: int | float | bool) -> bytes:
    """One element's little-endian bytes. Rounding to a float type is fine; anything else is refused."""
    if dtype.is_float:
        return _encode_float(dtype, value)
    return _encode_integer(dtype, value)


def decode_element(dtype: DType, raw: bytes) -> int | float | bool:
    """The number in one element's bytes."""
    if dtype.name == "BOOL":
        return raw[0] != 0
    if not dtype.is_float:
        return int.from_bytes(raw, "little", signed=not dtype.name.startswith("U"))
    if dtype.name in _STRUCT_FORMATS:
        return float(struct.unpack(_STRUCT_FORMATS[dtype.name], raw)[0])
    import numpy as np

    return float(np.frombuffer(raw, dtype.numpy)[0].astype(np.float32))


def scalar_bits(dtype: DType, value: int | float | bool) -> int:
    """A scalar slot's 64 bits: the element's bytes in the low end, zero above, as the runtime packs it."""
    return int.from_bytes(encode_element(dtype, value), "little")


def scalar_value(dtype: DType, bits: int) -> int | float | bool:
    """The number that a kernel reads from a scalar slot of that type."""
    return decode_element(dtype, bits.to_bytes(8, "little")[: dtype.size])


_STRUCT_FORMATS = {"FLOAT32": "<f", "FLOAT16": "<e"}


def _encode_integer(dtype: DType, value: int | float | bool) -> bytes:
    if isinstance(value, float):
        if not value.is_integer():  # also inf and nan
            raise DoesNotFitError(f"{value!r} is not a whole number, and {dtype.name} holds nothing else")
        value = int(value)
    number = int(value)
    low, high = integer_range(dtype)
    if not low <= number <= high:
        raise DoesNotFitError(f"{number} does not fit in {dtype.name} ({low} to {high})")
    return number.to_bytes(dtype.size, "little", signed=low < 0)


def integer_range(dtype: DType) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    if dtype.name == "BOOL":
        return 0, 1
    bits = dtype.size * 8
    if dtype.name.startswith("U"):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _encode_float(dtype: DType, value: int | float | bool) -> bytes:
    too_large = DoesNotFitError(f"{value!r} is too large for {dtype.name}")
    try:
        number = float(value)
        if dtype.name in _STRUCT_FORMATS:
            return struct.pack(_STRUCT_FORMATS[dtype.name], number)
    except OverflowError:
        raise too_large from None
    import numpy as np

    if math.isfinite(number) and abs(number) > _largest(dtype):
        raise too_large
    with np.errstate(all="ignore"):
        raw = np.array([number], np.float32).astype(dtype.numpy).tobytes()
    back = decode_element(dtype, raw)
    if math.isnan(number) != math.isnan(back) or math.isinf(number) != math.isinf(back):
        raise DoesNotFitError(f"{dtype.name} cannot hold {value!r}")
    return raw


def _largest(dtype: DType) -> float:
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype.numpy).max)  # type: ignore[no-untyped-call]
