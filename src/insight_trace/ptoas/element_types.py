"""Element types under the names of `.pto` text and of generated C++."""

from __future__ import annotations

import re

from insight_trace.dtypes import DType, dtype_named

_POINTER = re.compile(r"^!pto\.ptr<\s*([^,>\s]+)")
_MEMREF = re.compile(r"^memref<(?:(?:\d+|\?)x)*([a-zA-Z]\w*)")

# Names that the table of dtypes does not hold, with the type that has their size. Types of 8 bits and
# fewer that NumPy cannot compute with are carried as bytes.
_ALIASES = {
    "i1": "bool",
    "i4": "int8",
    "si4": "int8",
    "ui4": "uint8",
    "index": "int64",
    "si8": "int8",
    "si16": "int16",
    "si32": "int32",
    "si64": "int64",
    "ui8": "uint8",
    "ui16": "uint16",
    "ui32": "uint32",
    "ui64": "uint64",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "uint8",
    "f8e8m0fnu": "float8_e8m0fnu",
    "f8e8m0": "float8_e8m0fnu",
    "hif8": "uint8",
    "f4e2m1fn": "float4_e2m1fn",
    "f4e2m1x2": "float4_e2m1fn",
    "f4e1m2x2": "uint8",
    # C++
    "int": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
    "long": "int64",
    "long long": "int64",
    "size_t": "uint64",
    "float32_t": "float32",
    "float16_t": "float16",
    "__bf16": "bfloat16",
    "bfloat16": "bfloat16",
    "float8_e5m2_t": "uint8",
    "hifloat8_t": "uint8",
    "int4b_t": "int8",
    "float4_e1m2x2_t": "uint8",
    "char": "int8",
    "void": "uint8",
}


def element_type(name: str) -> DType | None:
    """The type of that name in `.pto` or C++ spelling; None for structures and unknown names."""
    plain = name.removeprefix("std::").removeprefix("pto::").strip()
    return dtype_named(_ALIASES.get(plain.casefold(), plain))


def pointee(type_: str) -> DType | None:
    """The element type behind `!pto.ptr<f32>` or a memref."""
    found = _POINTER.match(type_) or _MEMREF.match(type_)
    return element_type(found.group(1)) if found else None


def is_pointer(type_: str) -> bool:
    return type_.startswith(("!pto.ptr", "memref<"))
