"""Element types: one table for their names, codes, sizes and NumPy forms; numbers as their bytes, and back.

Codes and names are those of the tensor descriptor that kernels read (simpler, `data_type.h`).
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np


class DType(Struct, frozen=True):
    """One element type as dumps, descriptors, kernels and NumPy know it."""

    name: str  # as dumps write it, upper case
    code: int  # in the tensor descriptor
    size: int  # bytes per element
    numpy_name: str
    short: str  # as people read it in tables
    cpp: str  # as kernels spell it
    is_float: bool

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type; bf16 and fp8 come from ml_dtypes, which is imported only for them."""
        import numpy as np

        if self.numpy_name in _ML_DTYPES:
            import ml_dtypes

            extension: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.numpy_name))
            return extension
        return np.dtype(self.numpy_name)


_ML_DTYPES = frozenset({"bfloat16", "float8_e4m3fn", "float8_e8m0fnu", "float4_e2m1fn"})

DTYPES: tuple[DType, ...] = (
    DType("FLOAT32", 0, 4, "float32", "f32", "float", True),
    DType("FLOAT16", 1, 2, "float16", "f16", "half", True),
    DType("INT32", 2, 4, "int32", "i32", "int32_t", False),
    DType("INT16", 3, 2, "int16", "i16", "int16_t", False),
    DType("INT8", 4, 1, "int8", "i8", "int8_t", False),
    DType("UINT8", 5, 1, "uint8", "u8", "uint8_t", False),
    DType("BFLOAT16", 6, 2, "bfloat16", "bf16", "bfloat16_t", True),
    DType("INT64", 7, 8, "int64", "i64", "int64_t", False),
    DType("UINT64", 8, 8, "uint64", "u64", "uint64_t", False),
    DType("UINT16", 9, 2, "uint16", "u16", "uint16_t", False),
    DType("UINT32", 10, 4, "uint32", "u32", "uint32_t", False),
    DType("BOOL", 11, 1, "bool", "bool", "bool", False),
    DType("FP8E4M3FN", 12, 1, "float8_e4m3fn", "f8e4m3", "float8_e4m3_t", True),
    DType("FP8E8M0", 13, 1, "float8_e8m0fnu", "f8e8m0", "float8_e8m0_t", True),
    DType("FP4E2M1", 14, 1, "float4_e2m1fn", "f4e2m1", "float4_e2m1x2_t", True),
)

# Types that only tiles have, never a tensor: short name -> number in the engine (abi.hpp, Type).
TILE_ONLY_TYPES = {"f8e5m2": 15, "hif8": 16, "f4e1m2": 17, "i4": 18}

_BY_NAME = {d.name.casefold(): d for d in DTYPES}
_BY_NAME |= {d.short: d for d in DTYPES} | {d.cpp: d for d in DTYPES} | {d.numpy_name: d for d in DTYPES}
_BY_NAME |= {"fp32": DTYPES[0], "fp16": DTYPES[1], "float32_bits": DTYPES[0]}


def dtype_named(name: str) -> DType | None:
    """The type of that name in any case and any of its spellings, or None."""
    return _BY_NAME.get(name.casefold())


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
    """The number that a kernel reads from a scalar slot of that type: the low bytes of the slot, and no others."""
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
