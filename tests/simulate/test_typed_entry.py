"""Kernels with parameters of their own run through a wrapper that takes them from the slots."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from insight_trace.errors import InputError, RequestError
from insight_trace.model import CoreType
from insight_trace.simulate.embedded.typed_entry import (
    BLOCK,
    ENTRY,
    Parameter,
    parse_parameters,
    wrapper_source,
)
from tests.simulate.dispatching import KERNELS, kernel, outputs, run


def test_a_typed_entry_gets_pointers_scalars_and_its_block(tmp_path: Path) -> None:
    parameters = [
        *parse_parameters("__gm__ float *x, __gm__ float *out, float factor"),
        Parameter("int32_t", hidden=BLOCK),
    ]
    source = tmp_path / "entry.cpp"
    source.write_text(wrapper_source(KERNELS / "typed_scale.cpp", "typed_scale", parameters))
    x = np.arange(4 * 64, dtype=np.float32).reshape(4, 64)
    bits = int(np.float32(1.5).view(np.uint32))
    entry = replace(kernel(source, CoreType.AIV), entry=ENTRY)
    simulation = run([entry], [x, np.zeros_like(x), bits], [1], 4)
    np.testing.assert_array_equal(outputs(simulation)[1], x * 1.5)
    assert "typed_scale.cpp" in "".join(simulation.instructions.stacks)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("__gm__ float *x", [Parameter("float", pointer=True)]),
        ("const __gm__ half* __restrict__ x, int n", [Parameter("half", pointer=True), Parameter("int")]),
        (
            "__gm__ bfloat16_t const *v1 /* , no */, uint64_t",
            [Parameter("bfloat16_t", pointer=True), Parameter("uint64_t")],
        ),
        ("unsigned int n, float // a, b\n", [Parameter("unsigned int"), Parameter("float")]),
    ],
)
def test_parameters_are_read_from_the_definition(text: str, expected: list[Parameter]) -> None:
    assert parse_parameters(text) == expected


def test_what_cannot_be_a_kernel_is_refused() -> None:
    with pytest.raises(RequestError, match="no name of a C"):
        wrapper_source(Path("k.cpp"), "f(); exit", [])
    with pytest.raises(RequestError, match="no type"):
        wrapper_source(Path("k.cpp"), "f", [Parameter("float) + system(0")])
    with pytest.raises(InputError, match="49 arguments"):
        wrapper_source(Path("k.cpp"), "f", [Parameter("float", pointer=True)] * 49)
