"""AscendC kernels against the headers of an asc-devkit checkout: which sources need them, and where they are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from insight_trace.cache import Cache, content_key
from insight_trace.errors import RequestError
from insight_trace.simulate.embedded.engine_objects import INCLUDE

VARIABLE = "INSIGHT_TRACE_ASCENDC"
PRELUDE = INCLUDE / "insight_trace" / "ascendc_prelude.hpp"
# Of the families whose instructions the library's headers run on here.
FAMILIES = ("a2a3", "a5")
# where the library's own headers look for each other
_FOLDERS = (
    "", "include", "include/basic_api", "include/adv_api", "include/utils", "impl", "impl/basic_api",
)  # fmt: skip
_PLATFORM = "tiling/platform/platform_ascendc.h"
_ASCENDC = re.compile(
    r'^\s*#\s*include\s*[<"](?:kernel_operator\w*\.h|kernel_(?:tensor|tpipe|type)\.h|basic_api/\S+|lib/\S+_intf\.h|'
    r'adv_api/\S+|c_api/\S+|tiling/tiling_api\.h|kernel_tiling/kernel_tiling\.h|utils/debug/\S+)[">]',
    re.M,
)
_INCLUDED = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.M)


def checkout(named: Path | None) -> Path | None:
    """The asc-devkit checkout whose headers AscendC kernels compile against: what was named, else the environment's."""
    value = named or os.environ.get(VARIABLE)
    if not value:
        return None
    root = Path(value).absolute()
    if not (root / "include" / "kernel_operator.h").is_file() or not (root / "impl" / "basic_api").is_dir():
        raise RequestError(
            f"{root} is no checkout of asc-devkit: it has no include/kernel_operator.h with impl/basic_api",
            hint=f"name a checkout of asc-devkit with --ascendc-root or {VARIABLE}, or none: our own subset serves then",
        )
    return root


def name_checkout(root: Path | None) -> None:
    """What a command names holds for it and for every compiler that it starts."""
    if root is not None:
        os.environ[VARIABLE] = str(checkout(root))


def is_ascendc(source: Path, folders: Sequence[Path]) -> bool:
    """Whether a source, or a header of the user's own that it includes, asks for AscendC."""
    seen: set[Path] = set()
    wanted = [source]
    while wanted:
        path = wanted.pop()
        if path in seen or len(seen) > 2000:
            continue
        seen.add(path)
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if _ASCENDC.search(text):
            return True
        for name in _INCLUDED.findall(text):
            found = next((f / name for f in (path.parent, *folders) if (f / name).is_file()), None)
            if found:
                wanted.append(found.resolve())
    return False


class _Edit(NamedTuple):
    """What our compiler wants differently from the device's, in headers whose path has this word."""

    where: str
    found: re.Pattern[bytes]
    made: bytes


_EDITS = (
    # Two functions that differ only by the memory that their argument lies in are one without address spaces: a type of its
    # own stands for what lies in global memory.
    _Edit(
        "matmul",
        re.compile(rb"const __gm__ TCubeTiling\b"),
        b"const ::insight_trace::InGlobalMemory<TCubeTiling>",
    ),
    # Kernels and the library turn the address of a tensor into a pointer with a C cast and read through it.
    _Edit(
        "kernel_tensor_impl.h",
        re.compile(rb"return (this->address_\.bufferAddr \+ offset \* sizeof\(PrimType\));"),
        rb"return GetPhyType(TPosition(this->GetPosition())) == Hardware::UB ? ::insight_trace::on_chip_address(\1) : \1;",
    ),
    # A number of the host's type for half turns into a tensor at that address as readily as into a half; the device compiler
    # has a half of its own, which comes first.
    _Edit(
        "kernel_tensor.h",
        re.compile(rb"__aicore__ inline (LocalTensor<T>\(uint32_t addr\);)"),
        rb"explicit __aicore__ inline \1",
    ),
    # Where the linker of the device compiler puts what a function allocates: nothing lies before it.
    _Edit(
        "kernel_tensor_impl.h",
        re.compile(rb"extern __ubuf__ uint32_t dynamicStartUB\[\];\s+return [^;]+;"),
        b"return 0;",
    ),
    # One section holds the state of a core: variables that every source shares, and those of one, do not mix there.
    _Edit(
        "kernel_operator_vec_reduce_impl.h",
        re.compile(rb"__BLOCK_LOCAL__ static __inline__"),
        b"__BLOCK_LOCAL__ __inline__",
    ),
    # The runtime chooses the offset of addresses past L2: kPastL2 of the engine.
    _Edit("kernel_utils_macros.h", re.compile(rb"(g_opL2CacheHintCfg = \{)0\}"), rb"\1uint64_t(1) << 47}"),
    # What a kernel tells the loader stands in a section; two kinds of constants do not fit into one of ours.
    _Edit(
        "kernel_utils_macros.h",
        re.compile(rb'(__asc_feature_l2cache__\s+__attribute__\(\(used), section\("\.ascend\.meta"\)'),
        rb"\1",
    ),
    # Messages between the cores of a block lie in a memory of their own, whose addresses begin at 0, and are polled.
    _Edit(
        "kfc_comm.h",
        re.compile(rb"reinterpret_cast<(__ssbuf__ [^>]*)>\(0\)"),
        rb"reinterpret_cast<\1>(::insight_trace::shared_scratch())",
    ),
    *(
        _Edit(
            name, re.compile(rb"\bmsg->head(?=\)\)\) \{|;$)", re.M), b"::insight_trace::refreshed(msg)->head"
        )
        for name in ("kfc_comm_client.h", "kfc_comm_server.h")
    ),
    _Edit(
        "matmul_client.h", re.compile(rb"(while \(\W*)(\w+)(?=->valid)"), rb"\1::insight_trace::refreshed(\2)"
    ),
    # Where the words of IBSet and IBWait are looked at is said to the CPU model of two chips, and to us of all.
    _Edit(
        "kernel_operator_block_sync_intf_impl.h",
        re.compile(rb"#if __NPU_ARCH__ == 2201 \|\| __NPU_ARCH__ == 2002(?=\s+__ib_)"),
        b"#if 1",
    ),
    # The tensor API asks a pointer's type for its memory: a plain one is to global memory, and others are named with theirs
    # (program/on_chip_arrays.py).
    _Edit(
        "location_impl.h",
        re.compile(rb"typename LocationTypeCombo::locationType2Location::template Get<T>"),
        b"Location::GM",
    ),
    # The device compiler sees which loops an address register counts; the library names them only to its CPU model.
    _Edit(
        "kernel_reg_compute_addrreg_impl.h",
        re.compile(rb"#if defined\(ASCENDC_CPU_DEBUG\) && ASCENDC_CPU_DEBUG == 1(?=\s+return VagCpuSim)"),
        b"#if 1",
    ),
)


def include_folders(root: Path, cache: Cache) -> list[Path]:
    """Where a compiler finds the library: headers that a toolkit generates, then the checkout's own, as links."""
    forwarded = _forwarded(root)

    def build(into: Path) -> None:
        for name, target in forwarded.items():
            place = into / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f'#pragma once\n#include "{target}"\n')
        definitions = sorted((root / "include" / "adv_api").rglob("*tilingdata.h"))
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in definitions]
        (into / "kernel_tiling").mkdir()
        (into / "kernel_tiling" / "kernel_tiling.h").write_text(tiling_structs(texts))
        for path in (*_headers(root), *sorted((root / "impl" / "adv_api").rglob("*.cpp"))):
            place = into / "tree" / path.relative_to(root)
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.exists():  # stood in for
                continue
            edits = [edit for edit in _EDITS if edit.where in place.parts]
            text = edited = path.read_bytes() if edits else b""
            for edit in edits:
                edited = edit.found.sub(edit.made, edited)
            if edited != text:
                place.write_bytes(edited)
            else:
                place.symlink_to(path)

    key = content_key([str(root), state(root), *map(str, forwarded.items()), Path(__file__).read_bytes()])
    made = cache.put("ascendc_headers", key, build)
    return [made, *((made / "tree" / folder) for folder in _FOLDERS)]


def _headers(root: Path) -> list[Path]:
    return [path for folder in ("include", "impl") for path in sorted((root / folder).rglob("*.h"))]


def state(root: Path) -> str:
    """Names the checkout's headers as they are now, by their times and sizes."""
    listed = []
    for path in _headers(root):
        known = path.stat()
        listed.append(f"{path} {known.st_size} {known.st_mtime_ns}")
    return content_key(listed)


def _forwarded(root: Path) -> dict[str, Path]:
    """Names under which a toolkit installs headers, and what they are in the checkout."""
    high_level = root / "include" / "adv_api"
    found = {
        "tiling/tiling_api.h": Path("include/adv_api/tiling_api.h"),
        f"tree/include/utils/{_PLATFORM}": Path(_PLATFORM),  # ours asks the simulated chip
        "tree/include/simt_api/cpp/kernel_simt_intf.h": Path(
            "insight_trace/ascendc_simt.hpp"
        ),  # refused there
    }
    for name in ("asc_simt.h", "common_functions.h", "cpp/kernel_simt_intf.h"):
        found[f"tree/include/simt_api/{name}"] = Path("insight_trace/ascendc_simt.hpp")  # refused there
    for path in sorted(high_level.rglob("*.h")):
        found[f"lib/{path.relative_to(high_level).as_posix()}"] = path.relative_to(root)
        found.setdefault(f"lib/{path.name}", path.relative_to(root))
        if path.parent.name == "matmul":  # as older toolkits have it
            found[f"lib/matrix/matmul/{path.name}"] = path.relative_to(root)
    return found


_DEFINITION = re.compile(
    r"^\s*(BEGIN_TILING_DATA_DEF|TILING_DATA_FIELD_DEF_ARR|TILING_DATA_FIELD_DEF_STRUCT|TILING_DATA_FIELD_DEF|"
    r"END_TILING_DATA_DEF)\b\s*(?:\(([^)]*)\))?",
    re.M,
)


def tiling_structs(texts: Iterable[str]) -> str:
    """The structs that tiling definitions describe, as kernels see them."""
    lines = ["#pragma once", "#include <cstdint>", "namespace AscendC {", "namespace tiling {"]
    names = []
    for text in texts:
        for kind, given in _DEFINITION.findall(text):
            words = [word.strip() for word in given.split(",")]
            if kind == "BEGIN_TILING_DATA_DEF":
                lines += ["#pragma pack(push, 8)", f"struct {words[0]} {{"]
                names.append(words[0])
            elif kind == "END_TILING_DATA_DEF":
                lines += ["};", "#pragma pack(pop)"]
            elif kind == "TILING_DATA_FIELD_DEF_ARR":
                lines.append(f"    {words[0]} {words[2]}[{words[1]}] = {{}};")
            elif kind == "TILING_DATA_FIELD_DEF_STRUCT":
                lines.append(f"    {words[0]} {words[1]};")
            else:
                lines.append(f"    {words[0]} {words[1]} = 0;")
    lines += ["} // namespace tiling", "} // namespace AscendC"]
    lines += [f"using AscendC::tiling::{name};" for name in names]
    return "\n".join(lines) + "\n"
