"""One description of what kernels read: the C++ headers, both of them, are laid out as the packer packs."""

import subprocess

import pytest

from insight_trace.arguments.packing import (
    DESCRIPTOR,
    DESCRIPTOR_SIZE,
    GLOBAL_CONTEXT,
    GLOBAL_CONTEXT_SIZE,
    LOCAL_CONTEXT,
    LOCAL_CONTEXT_SIZE,
    offsets,
)
from insight_trace.capture.builds import HEADERS
from insight_trace.dtypes import DTYPES, TILE_ONLY_TYPES, dtype_named
from insight_trace.model import ARG_SLOTS, GLOBAL_CONTEXT_SLOT, LOCAL_CONTEXT_SLOT, MAX_TENSOR_DIMS
from insight_trace.simulate.embedded.compiler import find_compiler
from insight_trace.simulate.embedded.engine_objects import ENGINE, INCLUDE


def printed(tmp_path, text, folders):
    """What a program of these lines prints, compiled against our headers."""
    source, program = tmp_path / "layout.cpp", tmp_path / "layout"
    source.write_text(text)
    command = [*find_compiler().command, "-std=c++20", "-w", *(f"-I{folder}" for folder in folders)]
    done = subprocess.run([*command, source, "-o", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(line.split() for line in subprocess.check_output([program], text=True).splitlines())


def layout_lines(struct, layout):
    lines = [f'printf("{name} %zu\\n", offsetof({struct}, {name}));' for name in layout]
    return [*lines, f'printf("sizeof %zu\\n", sizeof({struct}));']


HEAD = "#include <cstddef>\n#include <cstdio>\n#include <cstdint>\n"


@pytest.mark.parametrize("side", ["kernel", "orchestration"])
def test_both_headers_have_the_tensor_descriptor_that_is_packed(tmp_path, side):
    folders = [INCLUDE] if side == "kernel" else [HEADERS, INCLUDE]
    lines = layout_lines("ChipTensor", DESCRIPTOR)
    lines.append('printf("dims %d\\n", int(MAX_TENSOR_DIMS));')
    found = printed(tmp_path, f'{HEAD}#include "tensor.h"\nint main() {{ {"".join(lines)} }}', folders)
    assert int(found.pop("dims")) == MAX_TENSOR_DIMS
    assert int(found.pop("sizeof")) == DESCRIPTOR_SIZE
    assert {name: int(at) for name, at in found.items()} == offsets(DESCRIPTOR)


@pytest.mark.parametrize(
    ("struct", "layout", "size"),
    [
        ("LocalContext", LOCAL_CONTEXT, LOCAL_CONTEXT_SIZE),
        ("GlobalContext", GLOBAL_CONTEXT, GLOBAL_CONTEXT_SIZE),
    ],
)
def test_the_contexts_are_where_kernels_look(tmp_path, struct, layout, size):
    lines = layout_lines(struct, layout)
    lines.append('printf("local %d\\n", SPMD_LOCAL_CONTEXT_INDEX);')
    lines.append('printf("global %d\\n", SPMD_GLOBAL_CONTEXT_INDEX);')
    found = printed(tmp_path, f'{HEAD}#include "intrinsic.h"\nint main() {{ {"".join(lines)} }}', [INCLUDE])
    assert int(found.pop("local")) == LOCAL_CONTEXT_SLOT
    assert int(found.pop("global")) == GLOBAL_CONTEXT_SLOT == ARG_SLOTS - 1
    assert int(found.pop("sizeof")) == size
    assert {name: int(at) for name, at in found.items()} == offsets(layout)


def test_every_header_has_the_element_types_of_the_table(tmp_path):
    names = [d.name for d in DTYPES]
    text = (
        HEAD
        + '#include "data_type.h"\nint main() {'
        + "".join(
            f'printf("{n} %d:%d:%s\\n", int(DataType::{n}), int(get_element_size(DataType::{n})), '
            f"get_dtype_name(DataType::{n}));"
            for n in names
        )
    )
    found = printed(
        tmp_path, text + ' printf("count %d\\n", int(DataType::DATA_TYPE_NUM)); }', [HEADERS, INCLUDE]
    )
    assert int(found.pop("count")) == len(DTYPES)
    assert found == {d.name: f"{d.code}:{d.size}:{d.name}" for d in DTYPES}


def test_the_engine_numbers_and_sizes_its_types_as_the_table_does(tmp_path):
    shorts = {"bool": "Bool", "hif8": "HiF8"}
    wanted = {d.short: d.code for d in DTYPES} | TILE_ONLY_TYPES
    text = (
        HEAD
        + '#include "elements.hpp"\nusing namespace insight_trace;\nusing namespace insight_trace::engine;\n'
    )
    text += "int main() {" + "".join(
        f'printf("{s} %d:%d\\n", int(Type::{shorts.get(s, s.upper())}), '
        f"type_size(Type::{shorts.get(s, s.upper())}));"
        for s in wanted
    )
    found = printed(tmp_path, text + ' printf("count %d\\n", kTypeCount); }', [ENGINE, INCLUDE])
    assert int(found.pop("count")) == len(wanted)
    for short, said in found.items():
        code, size = map(int, said.split(":"))
        assert code == wanted[short]
        dtype = dtype_named(short)
        assert size == (dtype.size if dtype and short not in TILE_ONLY_TYPES else 1)
