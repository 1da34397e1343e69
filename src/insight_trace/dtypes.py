"""Element types: one table for their names, codes, sizes and NumPy forms.

Codes and names are those of the tensor descriptor that kernels read (simpler, `data_type.h`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class DType:
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

_BY_NAME = {d.name.casefold(): d for d in DTYPES}
_BY_NAME |= {d.short: d for d in DTYPES} | {d.cpp: d for d in DTYPES} | {d.numpy_name: d for d in DTYPES}
_BY_NAME |= {"fp32": DTYPES[0], "fp16": DTYPES[1], "float32_bits": DTYPES[0]}


def dtype_named(name: str) -> DType | None:
    """The type of that name in any case and any of its spellings, or None."""
    return _BY_NAME.get(name.casefold())
