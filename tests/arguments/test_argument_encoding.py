"""Numbers become the bytes a kernel reads, or are refused."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insight_trace.dtypes import (
    DTYPES,
    DoesNotFitError,
    decode_element,
    dtype_named,
    encode_element,
    integer_range,
    scalar_bits,
    scalar_value,
)

INTEGERS = [d for d in DTYPES if not d.is_float]
FLOATS = [d for d in DTYPES if d.is_float]


@given(st.sampled_from(INTEGERS), st.data())
def test_every_integer_in_range_comes_back(dtype, data):
    low, high = integer_range(dtype)
    value = data.draw(st.integers(low, high))
    assert decode_element(dtype, encode_element(dtype, value)) == value
    assert scalar_value(dtype, scalar_bits(dtype, value)) == value


@given(st.sampled_from(INTEGERS), st.integers(1, 2**70))
def test_an_integer_out_of_range_is_refused(dtype, distance):
    low, high = integer_range(dtype)
    for value in (low - distance, high + distance):
        with pytest.raises(DoesNotFitError, match=dtype.name):
            encode_element(dtype, value)


@given(st.floats(width=32))
def test_every_float32_comes_back_bit_for_bit(value):
    f32 = dtype_named("FLOAT32")
    bits = scalar_bits(f32, value)
    assert bits >> 32 == 0
    back = scalar_value(f32, bits)
    assert struct.pack("<f", back) == struct.pack("<f", value)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_every_float_type_holds_one_and_its_own_width(dtype):
    raw = encode_element(dtype, 1.0)
    assert len(raw) == dtype.size
    assert decode_element(dtype, raw) == 1.0


@pytest.mark.parametrize("name", ["FLOAT32", "FLOAT16", "BFLOAT16", "FP8E4M3FN", "FP4E2M1"])
def test_a_float_too_large_for_its_type_is_refused_and_not_made_infinite(name):
    with pytest.raises(DoesNotFitError, match="too large"):
        encode_element(dtype_named(name), 1e300)
    with pytest.raises(DoesNotFitError, match="too large"):
        encode_element(dtype_named(name), 10**400)


def test_infinity_and_nan_pass_where_the_type_has_them_and_are_refused_where_not():
    assert decode_element(dtype_named("bf16"), encode_element(dtype_named("bf16"), math.inf)) == math.inf
    assert math.isnan(decode_element(dtype_named("f16"), encode_element(dtype_named("f16"), math.nan)))
    with pytest.raises(DoesNotFitError):
        encode_element(dtype_named("FP8E4M3FN"), math.inf)


def test_a_fraction_never_loses_its_fraction_in_an_integer():
    for value in (1.5, math.nan, math.inf):
        with pytest.raises(DoesNotFitError, match="whole number"):
            encode_element(dtype_named("INT32"), value)
    assert encode_element(dtype_named("INT32"), 2.0) == b"\2\0\0\0"


def test_a_negative_int32_scalar_is_zero_extended_as_the_runtime_packs_it():
    assert scalar_bits(dtype_named("INT32"), -1) == 0xFFFFFFFF
    assert scalar_value(dtype_named("INT32"), 0xFFFFFFFF) == -1


def test_only_the_bytes_of_its_type_count_in_a_scalar_slot():
    from insight_trace.dump.scalars import printed_value

    for bits, value in ((0x100, False), (0x101, True), (1, True), (0, False)):
        assert scalar_value(dtype_named("bool"), bits) is value  # as from_u64<bool> in a kernel
        assert printed_value(bits, dtype_named("bool")) is value
    assert scalar_value(dtype_named("i8"), 0x1FF) == -1
