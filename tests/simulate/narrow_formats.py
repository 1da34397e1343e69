"""Floats of eight and four bits as their descriptions define them, for tests to hold the engine against."""

from dataclasses import replace

import ml_dtypes
import numpy as np

from insight_trace.dtypes import DType
from insight_trace.simulate.embedded.op_script import TileSpec
from tests.simulate.op_harness import FOUR_BITS, dtype, element_offsets

# types that no tensor descriptor names have the codes that the engine gives them
E4M3, E2M1 = dtype("float8_e4m3fn"), dtype("float4_e2m1fn")
E5M2 = DType("FP8E5M2", 15, 1, "uint8", "f8e5m2", "float8_e5m2_t", True)
HIF8 = DType("HIF8", 16, 1, "uint8", "hif8", "hifloat8_t", True)
E1M2 = DType("FP4E1M2", 17, 1, "uint8", "f4e1m2", "float4_e1m2x2_t", True)
E8M0 = dtype("float8_e8m0fnu")


def _hif8() -> np.ndarray:
    """Arxiv 2409.16626, tables 1 to 4: prefix, bits of exponent, bits of mantissa."""
    forms = {"11": (4, 1), "10": (3, 2), "01": (2, 3), "001": (1, 3), "0001": (0, 3)}
    values = np.full(256, np.nan)
    for code in range(256):
        sign, rest = -1.0 if code & 128 else 1.0, f"{code & 127:07b}"
        if rest.startswith("0000"):
            mantissa = int(rest[4:], 2)
            values[code] = sign * 2.0 ** (mantissa - 23) if mantissa else (np.nan if code else 0.0)
            continue
        prefix = next(p for p in forms if rest.startswith(p))
        width, mantissa_bits = forms[prefix]
        exponent_text, mantissa_text = rest[len(prefix) : len(prefix) + width], rest[len(prefix) + width :]
        assert len(mantissa_text) == mantissa_bits
        exponent = int("1" + exponent_text[1:], 2) * (-1 if exponent_text[:1] == "1" else 1) if width else 0
        if (exponent, mantissa_text) == (15, "1"):
            values[code] = sign * np.inf
        else:
            values[code] = sign * 2.0**exponent * (1 + int(mantissa_text, 2) / 2**mantissa_bits)
    return values


# what every code stands for
VALUES = {
    E4M3: np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64),
    E5M2: np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2).astype(np.float64),
    E2M1: np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64),
    # one bit of exponent with bias 1, two of mantissa: quarters up to 1.75
    E1M2: np.array([sign * i / 4 for sign in (1, -1) for i in range(8)]),
    HIF8: _hif8(),
}


def nearest(value: float, kind: DType, mode: str = "even") -> set[int]:
    """The codes that `value` may be rounded to: one, or both of zero's."""
    values = VALUES[kind]
    finite = np.flatnonzero(np.isfinite(values))
    order = finite[np.argsort(values[finite], kind="stable")]
    distinct = np.unique(values[finite])
    place = int(np.searchsorted(distinct, value))
    if place == 0 or place == len(distinct) or distinct[min(place, len(distinct) - 1)] == value:
        wanted = distinct[min(place, len(distinct) - 1)]
    else:
        low, high = distinct[place - 1], distinct[place]
        outer, inner = (high, low) if value > 0 else (low, high)
        if mode in ("floor", "ceil"):
            wanted = low if mode == "floor" else high
        elif mode == "trunc":
            wanted = inner
        elif value - low != high - value:
            wanted = low if value - low < high - value else high
        elif mode == "away":
            wanted = outer
        else:  # to the code whose last bit is zero
            wanted = next(v for v in (low, high) if not int(order[values[order] == v][0]) & 1)
    return {int(code) for code in finite[values[finite] == wanted]}


def narrow_tile(
    codes: np.ndarray,
    kind: DType,
    address: int = 0,
    *,
    layout: str = "ND",
    space: str = "ub",
    valid: tuple[int, int] | None = None,
    fractal: int = 512,
) -> TileSpec:
    """A tile of raw codes, two to a byte where they have four bits."""
    rows, cols = codes.shape
    spec = TileSpec(kind, rows, cols, address, space, layout, *(valid or (rows, cols)), fractal=fractal)
    flat = np.zeros(rows * cols, np.uint8)
    flat[element_offsets(spec)] = codes
    return replace(spec, data=packed(flat) if kind.code in FOUR_BITS else flat)


def packed(codes: np.ndarray) -> np.ndarray:
    return (codes[0::2] & 15) | (codes[1::2] << 4)


def unpacked(content: np.ndarray, count: int) -> np.ndarray:
    raw = content.view(np.uint8)[: count // 2]
    return np.stack([raw & 15, raw >> 4], axis=1).reshape(-1)


def codes_of(values: np.ndarray, kind: DType) -> np.ndarray:
    """Codes of values that the format has."""
    table = {value: code for code, value in reversed(list(enumerate(VALUES[kind]))) if np.isfinite(value)}
    return np.vectorize(table.__getitem__, otypes=[np.uint8])(values)
