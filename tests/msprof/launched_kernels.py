"""A build of kernels that tell what they were given, and the tile headers that let a host compiler take them."""

from pathlib import Path

from tests.ptoas.small_kernels import PTO

HEADER = """#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
struct half { uint16_t bits; };
struct bfloat16_t { uint16_t bits; };
inline int get_subblockid() { return 1; }
inline void saw(const char *what, double value) {
  if (std::FILE *file = std::fopen(std::getenv("STANDIN_SEEN"), "a")) {
    std::fprintf(file, "%s %.9g\\n", what, value);
    std::fclose(file);
  }
}
"""
# What PTOAS's own launcher includes of pto-isa's tests.
TEST_COMMON = """#pragma once
#include <cstddef>
#include <cstdio>
namespace PtoTestCommon {
inline bool ReadFile(const char *path, size_t &size, void *data, size_t room) {
  std::FILE *file = std::fopen(path, "rb");
  if (file == nullptr) return false;
  size = std::fread(data, 1, room, file);
  std::fclose(file);
  return size == room;
}
inline bool WriteFile(const char *, const void *, size_t) { return true; }
}
"""
HIDDEN = ", %__pypto_spmd_block_idx: i32, %__pypto_spmd_block_num: i32"
LANE = ", %__pypto_spmd_subblock_idx: i32"
TENSORS = "__gm__ float* v1, __gm__ float* v2"
INCLUDE = '#include "pto/pto-inst.hpp"\n'


def pto(name: str, more: str = "", kind: str = "vector") -> str:
    return PTO.replace("%NAME%", name).replace("%MORE%", more).replace("%KIND%", kind)


def tells(name: str, *values: str) -> str:
    return "{ " + " ".join(f'saw("{name}.{value}", {value});' for value in values) + " }\n"


def two(first: str, second: str) -> str:
    """Both functions in one module."""
    return first.rstrip().removesuffix("}") + second.partition("\n")[2]


KERNELS = {
    "plain": (f'extern "C" __global__ AICORE void plain({TENSORS}) ' + tells("plain", "v1[255]"), pto("plain")),
    "mangled": (f"__global__ AICORE void mangled({TENSORS}) " + tells("mangled", "v1[0]"), pto("mangled")),
    "bare": (
        f"AICORE void bare({TENSORS}, int32_t v3, int32_t v4) " + tells("bare", "v1[1]", "v3", "v4"),
        pto("bare", HIDDEN),
    ),
    "group_0": (
        f"AICORE void pair_aic({TENSORS}) " + tells("pair_aic", "v1[2]")
        + f"AICORE void pair_aiv({TENSORS}, int32_t v3) " + tells("pair_aiv", "v1[3]", "v3"),
        two(pto("pair_aic", kind="cube"), pto("pair_aiv", LANE)),
    ),
}  # fmt: skip


def write_build(build: Path, names: tuple[str, ...] = tuple(KERNELS)) -> Path:
    (build / "ptoas").mkdir(parents=True)
    for name in names:
        cpp, text = KERNELS[name]
        (build / "ptoas" / f"{name}.cpp").write_text(INCLUDE + cpp)
        (build / "ptoas" / f"{name}.pto").write_text(text)
    return build


def write_tile_headers(root: Path) -> Path:
    for name, text in (
        ("include/pto/pto-inst.hpp", HEADER),
        ("include/pto/common/constants.hpp", "#pragma once\n"),
        ("tests/common/test_common.h", TEST_COMMON),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root
