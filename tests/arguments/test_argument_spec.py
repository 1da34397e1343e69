"""A spec file becomes arguments, or every faulty entry is named."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from insight_trace.arguments.arg_spec import parse_arg_spec, read_arg_spec
from insight_trace.arguments.buffers import materialise, view_of
from insight_trace.errors import RequestError
from insight_trace.model import Role, Tier


def read(tmp_path, document):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(document))
    return read_arg_spec(path)


def tensor(index=0, **rest):
    return {
        "kind": "tensor",
        "index": index,
        "name": f"t{index}",
        "dtype": "FLOAT32",
        "shape": [2, 2],
        **rest,
    }


def scalar(index=1, **rest):
    return {"kind": "scalar", "index": index, "name": f"s{index}", "dtype": "INT32", "value": 3, **rest}


@pytest.mark.parametrize("wrap", [lambda args: args, lambda args: {"args": args}])
def test_a_list_and_an_object_with_args_mean_the_same(tmp_path, wrap):
    arguments = read(tmp_path, wrap([tensor(0, role="output"), scalar(1)]))
    assert arguments.at(0).tier is Tier.OUTPUT
    assert arguments.at(0).role is Role.OUTPUT
    assert arguments.at(1).bits == 3


@pytest.mark.parametrize(
    ("entry", "bits"),
    [
        (scalar(dtype="FLOAT32", value=1.0), 0x3F800000),
        (scalar(dtype="FLOAT32", value=1, pack_mode="bits"), 0x3F800000),
        (scalar(dtype="FLOAT32_BITS", value=0.5), 0x3F000000),
        (scalar(dtype="FLOAT32_BITS", value=2, pack_mode="value"), 0x40000000),
        (scalar(dtype="FLOAT32", value=3.0, pack_mode="value"), 3),
        (scalar(dtype="FLOAT32", value="0x3f800001"), 0x3F800001),
        (scalar(dtype="FLOAT16", value=1.0), 0x3C00),
        (scalar(dtype="BFLOAT16", value=1.0), 0x3F80),
        (scalar(dtype="INT32", value=-1), 0xFFFFFFFF),
        (scalar(dtype="INT64", value=-1), 2**64 - 1),
        (scalar(dtype="UINT64", value=2**64 - 1), 2**64 - 1),
        (scalar(dtype="UINT64", value=1065353216, pack_mode="bits"), 1065353216),
        (scalar(dtype="BOOL", value=True), 1),
        (scalar(dtype="int32", value=4.0), 4),
    ],
)
def test_scalars_are_packed_as_their_mode_says(tmp_path, entry, bits):
    assert read(tmp_path, [entry]).at(1).bits == bits


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_scalars_are_never_truncated(tmp_path_factory, value):
    entry = scalar(dtype="FLOAT32", value=value)
    bits = parse_arg_spec([entry], directory=tmp_path_factory.getbasetemp()).at(1).bits
    assert bits == int(np.float32(value).view(np.uint32))


def test_tensors_take_fill_file_random_and_zero(tmp_path):
    np.arange(4, dtype=np.float32).tofile(tmp_path / "x.bin")
    arguments = read(
        tmp_path,
        [
            tensor(0, fill=1.5),
            tensor(1, file="x.bin", strides=[4, 1]),
            tensor(2, fill="random", seed=3),
            tensor(3),
            tensor(4, dtype="INT32", fill="zero"),
        ],
    )
    tiers = [t.tier for t in arguments.tensors]
    assert tiers == [Tier.FILLED, Tier.EXACT, Tier.SYNTHETIC, Tier.SYNTHETIC, Tier.SYNTHETIC]
    assert view_of(arguments.at(0), materialise(arguments.at(0))).tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert materialise(arguments.at(1)).view(np.float32)[:6].tolist() == [0, 1, 0, 0, 2, 3]
    assert any("slot 4" in text for text in arguments.warnings)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (5, "an object is needed"),
        ({"index": 0}, "kind"),
        (tensor(kind="context"), "kind"),
        (tensor(index=-1), "negative"),
        (tensor(index=50), "outside"),
        (tensor(index=49), "context"),
        (tensor(index="0"), "index"),
        (tensor(index=True), "index"),
        (tensor(dtype="FLOAT99"), "FLOAT99"),
        (tensor(dtype=None), "dtype is missing"),
        (tensor(shape=None), "shape is missing"),
        (tensor(shape=[2, "x"]), "shape"),
        (tensor(shape=[1] * 6), "dimensions"),
        (tensor(strides=[1]), "strides"),
        (tensor(strides=[-1, 1]), "strides"),
        (tensor(start_offset=-1), "negative"),
        (tensor(role="reader"), "role"),
        (tensor(role=[]), "role"),
        (tensor(fill=1, file="x"), "contradict"),
        (tensor(file="absent.bin"), "absent.bin"),
        (tensor(fill="lots"), "fill"),
        (tensor(dtype="INT32", fill=1.5), "whole number"),
        (tensor(dtype="INT8", fill=300), "does not fit in INT8"),
        (tensor(dtype="UINT8", fill=-1), "does not fit in UINT8"),
        (tensor(dtype="FLOAT16", fill=1e9), "too large"),
        (tensor(fill="random", seed=-1), "seed"),
        (scalar(value=None), "value"),
        (scalar(value=1.5), "FLOAT32_BITS"),
        (scalar(value=2**31), "does not fit"),
        (scalar(value="one"), "bit pattern"),
        (scalar(value="0x1ffffffffffffffff"), "bit pattern"),
        (scalar(dtype="FLOAT32", value=1.5, pack_mode="value"), "fraction"),
        (scalar(pack_mode="guess"), "pack_mode"),
        (scalar(name=7), "name"),
    ],
)
def test_a_bad_entry_is_refused_and_says_what_is_wrong(tmp_path, entry, text):
    with pytest.raises(RequestError) as caught:
        read(tmp_path, [entry])
    assert text in str(caught.value)
    assert "entry 0" in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_file_that_does_not_fit_its_tensor_is_a_fault_of_the_entry(tmp_path):
    (tmp_path / "short.bin").write_bytes(b"\0" * 15)
    np.save(tmp_path / "ints.npy", np.zeros((2, 2), np.int64))
    with pytest.raises(RequestError) as caught:
        read(tmp_path, [tensor(0, file="short.bin"), tensor(1, file="ints.npy")])
    text = str(caught.value)
    assert "entry 0 (t0): file 'short.bin': the file has 15 bytes" in text
    assert "entry 1 (t1): file 'ints.npy': the file holds int64" in text


def test_every_bad_entry_is_named_at_once(tmp_path):
    with pytest.raises(RequestError) as caught:
        read(tmp_path, [tensor(0), tensor(1, dtype="X"), scalar(0), scalar(2, value=1.5), tensor(60)])
    text = str(caught.value)
    for expected in ("entry 1 (t1)", "entry 3 (s2)", "entry 4 (t60)", "slot 0 is given twice", "spec.json"):
        assert expected in text


def test_an_unknown_key_is_tolerated_with_a_note_that_guesses(tmp_path):
    arguments = read(tmp_path, [tensor(0, role="output", filll=1)])
    assert any("'filll'" in text and "'fill'" in text for text in arguments.warnings)


@pytest.mark.parametrize("content", ["", "{", "3", '{"arguments": []}', '"x"', "[" * 100_000, "\xff"])
def test_a_file_that_is_no_spec_is_refused(tmp_path, content):
    path = tmp_path / "spec.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(RequestError, match=r"spec\.json"):
        read_arg_spec(path)
    with pytest.raises(RequestError, match="cannot be read"):
        read_arg_spec(tmp_path / "absent.json")
