"""Kernels with parameters of their own run through a wrapper that takes them from the slots."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from insight_trace.errors import InputError, RequestError
from insight_trace.model import CoreType
from insight_trace.simulate.embedded.typed_entry import (
    BLOCK,
    ENTRY,
    EntryCall,
    EntryParameter,
    wrapper_source,
)
from tests.simulate.dispatching import KERNELS, kernel, outputs, run

POINTER, SCALAR = EntryParameter("float", pointer=True), EntryParameter("float")


@pytest.mark.parametrize("factor", [SCALAR, EntryParameter("float", literal="1.5f")])
def test_a_typed_entry_gets_pointers_scalars_and_its_block(tmp_path: Path, factor: EntryParameter) -> None:
    parameters = (POINTER, POINTER, factor, EntryParameter("int32_t", hidden=BLOCK))
    source = tmp_path / "entry.cpp"
    source.write_text(
        wrapper_source(
            str(KERNELS / "typed_scale.cpp"), [EntryCall("typed_scale", parameters, "__DAV_VEC__")]
        )
    )
    x = np.arange(4 * 64, dtype=np.float32).reshape(4, 64)
    bits = int(np.float32(1.5).view(np.uint32))
    entry = replace(kernel(source, CoreType.AIV), entry=ENTRY)
    simulation = run([entry], [x, np.zeros_like(x), bits], [1], 4)
    np.testing.assert_array_equal(outputs(simulation)[1], x * 1.5)
    assert "typed_scale.cpp" in "".join(simulation.instructions.stacks)


def test_what_cannot_be_a_kernel_is_refused() -> None:
    with pytest.raises(RequestError, match="no name of a C"):
        wrapper_source("k.cpp", [EntryCall("f(); exit", ())])
    with pytest.raises(RequestError, match="no name of a C"):
        wrapper_source("k.cpp", [EntryCall("f", (), "X)\n#error")])
    with pytest.raises(RequestError, match="no type"):
        wrapper_source("k.cpp", [EntryCall("f", (EntryParameter("float) + system(0"),))])
    with pytest.raises(InputError, match="49 arguments"):
        wrapper_source("k.cpp", [EntryCall("f", (POINTER,) * 49)])
    with pytest.raises(InputError, match="cannot stand in an #include"):
        wrapper_source('a"b.cpp', [EntryCall("f", ())])
