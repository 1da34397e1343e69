"""Small kernels, written where the test stands that needs them."""

from pathlib import Path

HEAD = """\
#include <cstdint>
#include <pto/pto-inst.hpp>
#include "intrinsic.h"
#include "tensor.h"
using namespace pto;

using Line = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<64, 64, 64, 64, 1>>;
using LineTile = Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, 1, 64>;

inline __gm__ ChipTensor *tensor_in(__gm__ int64_t *args, int slot) {
    return reinterpret_cast<__gm__ ChipTensor *>(args[slot]);
}
inline __gm__ float *data_in(__gm__ int64_t *args, int slot) {
    return reinterpret_cast<__gm__ float *>(tensor_in(args, slot)->buffer.addr);
}
"""
ENTRY = 'extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {\n'


def write_kernel(folder: Path, body: str, *, before: str = "", name: str = "kernel.cpp") -> Path:
    """A source whose kernel_entry holds `body`."""
    path = folder / name
    path.write_text(f"{HEAD}{before}{ENTRY}{body}\n}}\n", encoding="utf-8")
    return path


def line_of(source: Path, text: str) -> int:
    """The number of the first line that holds `text`."""
    lines = source.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)
