"""Builds as PyPTO leaves them, written from a few lines per kernel: ptoas/<kernel>.pto and .cpp.

A line of a body that begins with + stands in the first build only, one with - in the second only. `//!` marks the line of
the second build at which the cause must stand. Names of values are numbered as ptoas numbers them.
"""

import re
from dataclasses import dataclass
from pathlib import Path

HEAD = """\
#include "pto/pto-inst.hpp"
using namespace pto;
template <typename T, int R, int C> using Ub = Tile<TileType::Vec, T, R, C, BLayout::RowMajor, R, C>;
template <typename T, int R, int C>
using Gm = GlobalTensor<T, pto::Shape<1, 1, 1, R, C>, pto::Stride<R * C, R * C, R * C, C, 1>, pto::Layout::ND>;
template <int R, int C>
using Mat = Tile<TileType::Mat, half, R, C, BLayout::ColMajor, R, C, SLayout::RowMajor, 512>;
"""
TYPES = {"f32": "float", "f16": "half", "bf16": "bfloat16_t", "i32": "int32_t"}
_PARAMETER = re.compile(r"(\w+):(\w+)(?:\[(\d+),(\d+)\])?(!?)")


@dataclass(frozen=True)
class SmallKernel:
    """`parameters`: "x:f32[16,64] y:f32[16,64]! n:index", an output with !."""

    name: str
    parameters: str
    body: str
    kind: str = "vector"
    report: str = ""  # where the mistake was reported, and when
    cause: str = ""  # the kind of cause that the guard must name
    says: str = ""  # a word of its sentence

    def lines(self, second: bool) -> list[str]:
        """The body of one of the two builds."""
        drop = "+" if second else "-"
        return [line[1:] if line[:1] in "+-" else line for line in self.body.splitlines() if line[:1] != drop]

    def cpp(self, second: bool = False, first_number: int = 1, order: int = 1) -> str:
        """C++ as ptoas writes it; values are numbered from `first_number` on, up or down."""
        parameters = ", ".join(
            f"__gm__ {TYPES[kind]} *{name}" if rows else f"int64_t {name}"
            for name, kind, rows, _, _ in _PARAMETER.findall(self.parameters)
        )
        guard = "__DAV_VEC__" if self.kind == "vector" else "__DAV_CUBE__"
        mask = ["set_mask_norm();", "set_vector_mask(-1, -1);"] if self.kind == "vector" else []
        text = "\n".join(
            [
                f"AICORE void {self.name}({parameters}) {{",
                f"#if defined({guard})",
                *mask,
                *self.lines(second),
                "#endif",
                "    pipe_barrier(PIPE_ALL);",
                "}",
            ]
        )
        return HEAD + numbered(text, first_number, order) + "\n"

    def marked(self) -> int:
        """The line of the second build's C++ at which the cause stands; 0: nowhere."""
        lines = self.cpp(second=True).splitlines()
        return next((number for number, line in enumerate(lines, 1) if "//!" in line), 0)

    def pto(self) -> str:
        """What the profiler reads the sizes of the buffers from."""
        found = _PARAMETER.findall(self.parameters)
        types = ", ".join(
            f"%arg{i}: " + (f"!pto.ptr<{kind}>" if rows else "index")
            for i, (_, kind, rows, _, _) in enumerate(found)
        )
        sizes = sorted({int(size) for _, _, rows, cols, _ in found if rows for size in (rows, cols)} | {0, 1})
        lines = [f"    %c{size} = arith.constant {size} : index" for size in sizes]
        loops = []
        for i, (name, kind, rows, cols, out) in enumerate(found):
            if not rows:
                loops.append(f"    scf.for %i{i} = %c0 to %arg{i} step %c1 {{")
                continue
            view, part = f"!pto.tensor_view<?x?x{kind}>", f"!pto.partition_tensor_view<{rows}x{cols}x{kind}>"
            tile = f"!pto.tile_buf<loc={'vec' if self.kind == 'vector' else 'mat'}, dtype={kind}, rows={rows}, cols={cols}>"
            lines += [
                f"    %{name}_view = pto.make_tensor_view %arg{i}, shape = [%c{rows}, %c{cols}], "
                f"strides = [%c{cols}, %c1] : {view}",
                f"    %{name}_part = pto.partition_view %{name}_view, offsets = [%c0, %c0], sizes = [%c{rows}, %c{cols}] "
                f": {view} -> {part}",
                f"    %{name}_tile = pto.alloc_tile : {tile}",
                f"    pto.tstore ins(%{name}_tile : {tile}) outs(%{name}_part : {part})"
                if out
                else f"    pto.tload ins(%{name}_part : {part}) outs(%{name}_tile : {tile})",
            ]
        name, kind, rows, cols, _ = found[0]
        tile = f"!pto.tile_buf<loc=vec, dtype={kind}, rows={rows}, cols={cols}>"
        inside = [
            f"      pto.tadd ins(%{name}_tile, %{name}_tile : {tile}, {tile}) outs(%{name}_tile : {tile})"
        ]
        lines += [line for loop in loops for line in (loop, *inside, "    }")]
        return "\n".join(
            [
                'module attributes {pto.target_arch = "a2a3"} {',
                f"  func.func @{self.name}({types}) attributes "
                f"{{pto.kernel_kind = #pto.kernel_kind<{self.kind}>}} {{",
                *lines,
                "    return",
                "  }",
                "}",
                "",
            ]
        )


_DECLARED = re.compile(
    r"(?:>|\bint64_t|\bsize_t|\bfloat|\*)\s*([a-z]\w*)(?=\s*[(;,=)])|(?<=, )([a-z]\w*)(?=\s*[,;(])"
)


def numbered(text: str, first: int = 1, order: int = 1) -> str:
    """The text with every value called v1, v2, …, as an assembler calls them."""
    names = list(dict.fromkeys(one or other for one, other in _DECLARED.findall(text)))
    names = [name for name in names if name not in TYPES.values() and name != "half"]
    numbers = {name: first + i for i, name in enumerate(names[::order])}
    return re.sub(r"\b[a-z]\w*\b", lambda m: f"v{numbers[m[0]]}" if m[0] in numbers else m[0], text)


def write_build(folder: Path, kernels: dict[str, str], ptos: dict[str, str]) -> Path:
    """C++ and .pto by the kernels' names."""
    place = folder / "ptoas"
    place.mkdir(parents=True)
    for name, text in kernels.items():
        (place / f"{name}.cpp").write_text(text)
        (place / f"{name}.pto").write_text(ptos[name])
    return folder


def write_pair(folder: Path, kernels: list[SmallKernel]) -> tuple[Path, Path]:
    """Both builds of kernels; the second is numbered otherwise."""
    ptos = {kernel.name: kernel.pto() for kernel in kernels}
    first = write_build(folder / "A", {k.name: k.cpp() for k in kernels}, ptos)
    second = write_build(folder / "B", {k.name: k.cpp(second=True, first_number=5) for k in kernels}, ptos)
    return first, second
