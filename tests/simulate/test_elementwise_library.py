"""Our instructions are those of the tile library itself: its headers are compiled over a recorder.

Needs a checkout of pto-isa (INSIGHT_TRACE_PTO_ISA); nothing of it is kept.
"""

import re
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from insight_trace.simulate.embedded.compiler import find_compiler
from insight_trace.simulate.embedded.engine_objects import INCLUDE
from tests.simulate.elementwise_cases import ROOM
from tests.simulate.op_harness import Option, dtype, run_tile_op, scalar, tile

HEADERS = [
    "TBinOp", "TBinSOp", "TMulS", "TSubS", "TAdd", "TMul", "TUnaryOp",
    "TDivS", "TExpandS", "TAnd", "TOr", "TXor", "TBitwiseSOp", "TAxpy",
    "TCvt", "TCmp", "TCmps", "TSel", "TSels", "TRem", "TRemS",
    "TFmod", "TFmodS", "TPow", "TPartAdd", "TPartMax", "TTri", "TFusedMulAdd",
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    op: str
    call: str  # of the library; t0, t1, ... are the tiles
    tiles: tuple[tuple[str, int, int, int, int], ...]  # type, rows, columns, valid rows, valid columns
    order: tuple[Any, ...] = field(default=(), hash=False)  # our operands; integers are tiles
    dynamic: bool = False


SHAPES = {  # by the size of an element: narrow, one repeat, ragged, several repeats, few long lines, one line
    4: [(16, 16), (16, 64), (4, 72), (16, 128), (2, 256), (1, 96)],
    2: [(16, 16), (16, 128), (4, 144), (16, 256), (2, 512), (1, 96)],
}


def valid_sizes(rows, cols):
    return dict.fromkeys([(rows, cols), (max(1, rows - 1), cols), (rows, cols - 3)])


def plain_cases():
    for kind in ("float32", "float16", "int32", "int16"):
        number, three = f"{dtype(kind).cpp}(2)", scalar(2, kind)
        real = "float" in kind
        ops = [
            ("TADD", "TADD_IMPL(t0, t1, t2)", 3, ()),
            ("TMULS", f"TMULS_IMPL(t0, t1, {number})", 2, (0, 1, three)),
        ]
        ops += [("TEXPANDS", f"TEXPANDS_IMPL(t0, {number})", 1, (0, three))]
        if real:
            ops += [
                ("TEXP", "TEXP_IMPL(t0, t1)", 2, ()),
                ("TRECIP", f"TDIVS_IMPL(t0, {dtype(kind).cpp}(1), t1)", 2, ()),
                ("TRSQRT", "TRSQRT_IMPL(t0, t1, t2)", 3, ()),
                ("TAXPY", f"TAXPY_IMPL(t0, t1, {number})", 2, (0, 1, three)),
            ]
        else:
            ops += [
                ("TAND", "TAND_IMPL(t0, t1, t2)", 3, ()),
                ("TNOT", "TNOT_IMPL(t0, t1)", 2, ()),
                ("TXOR", "TXOR_IMPL(t0, t1, t2, t3)", 4, ()),
                ("TSHLS", f"TSHLS_IMPL(t0, t1, {number})", 2, (0, 1, three)),
            ]
        for rows, cols in SHAPES[dtype(kind).size]:
            for valid in valid_sizes(rows, cols):
                for dynamic in (False, True):
                    for op, call, count, order in ops:
                        yield Case(op, call, ((kind, rows, cols, *valid),) * count, order, dynamic)


def conversion_cases():
    pairs = ["float32-float16", "float32-bfloat16", "float32-int16", "float32-int32", "float16-float32",
             "float16-int16", "float16-int8", "bfloat16-float32", "int32-float32", "int32-float16", "int64-int32",
             "int8-float16"]  # fmt: skip
    for source, to in (pair.split("-") for pair in pairs):
        for rows, cols, *valid in [(4, 160, 3, 160), (2, 256, 2, 200), (16, 32, 16, 20)]:
            tiles = (
                (to, rows, cols, *valid),
                (source, rows, cols, *valid),
                ("int32", rows, cols, rows, cols),
            )
            yield Case("TCVT", "TCVT_IMPL(t0, t1, RoundMode::CAST_RINT)", tiles[:2], (0, 1, Option(1)))
            yield Case(
                "TCVT",
                "TCVT_IMPL(t0, t1, t2, RoundMode::CAST_RINT, SaturationMode::OFF)",
                tiles,
                (0, 1, 2, Option(1), Option(1)),
            )


def other_cases():
    for rows, cols, *valid in [(16, 64, 16, 64), (4, 72, 4, 70), (3, 128, 2, 100), (1, 256, 1, 256)]:
        f, i = ("float32", rows, cols, *valid), ("int32", rows, cols, *valid)
        mask = ("uint8", rows + 1, 256, rows + 1, 256)
        yield Case("TCMP", "TCMP_IMPL(t0, t1, t2, CmpMode::LT)", (mask, f, f), (0, 1, 2, Option(2)))
        yield Case(
            "TCMPS", "TCMPS_IMPL(t0, t1, 0.0f, CmpMode::NE)", (mask, f), (0, 1, scalar(0.0), Option(1))
        )
        yield Case("TCMPS", "TCMPS_IMPL(t0, t1, t2, CmpMode::GT)", (mask, f, f), (0, 1, 2, Option(4)))
        yield Case("TSEL", "TSEL_IMPL(t0, t1, t2, t3, t4)", (f, mask, f, f, mask))
        yield Case("TSELS", "TSELS_IMPL(t0, t1, t2, t3, 1.0f)", (f, mask, f, mask), (0, 1, 2, 3, scalar(1.0)))
        for kind in (f, i):
            yield Case("TREM", "TREM_IMPL(t0, t1, t2, t3)", (kind,) * 4)
            number = scalar(3, kind[0])
            yield Case(
                "TREMS", f"TREMS_IMPL(t0, t1, {dtype(kind[0]).cpp}(3), t2)", (kind,) * 3, (0, 1, number, 2)
            )
        yield Case("TFMOD", "TFMOD_IMPL(t0, t1, t2)", (f,) * 3)
        yield Case("TFMODS", "TFMODS_IMPL(t0, t1, 3.0f)", (f,) * 2, (0, 1, scalar(3.0)))
        yield Case("TPOW", "TPOW_IMPL<PowAlgorithm::DEFAULT>(t0, t1, t2, t3)", (f,) * 4)
        yield Case(
            "TPOWS", "TPOWS_IMPL<PowAlgorithm::DEFAULT>(t0, t1, 2.0f, t2)", (f,) * 3, (0, 1, scalar(2.0), 2)
        )
        yield Case("TFUSEDMULADD", "TFUSEDMULADD_IMPL(t0, t1, t2)", (f,) * 3)
        for less in [(valid[0] - 1, valid[1]), (valid[0], valid[1] - 9)]:
            part = ("float32", rows, cols, *less)
            yield Case("TPARTADD", "TPARTADD_IMPL(t0, t1, t2)", (f, f, part))
            yield Case("TPARTMAX", "TPARTMAX_IMPL(t0, t1, t2)", (f, part, f))
        half = ("float16", rows, cols, *valid)
        yield Case("TAXPY", "TAXPY_IMPL(t0, t1, half(2))", (f, half), (0, 1, scalar(2, "float16")))
        yield Case("TTRI", "TTRI_IMPL<decltype(t0), 1>(t0, 1)", (f,), (0, scalar(1, "int32"), Option(1)))


CASES = [*plain_cases(), *conversion_cases(), *other_cases()]


def program(checkout: Path) -> str:
    """C++ that runs every case and prints what the library asked for, a line each."""
    sources = "".join(
        p.read_text(errors="replace") for p in sorted(checkout.glob("include/pto/npu/a2a3/*.hpp"))
    )
    conversions = sorted(set(re.findall(r"\bvconv_\w+(?=\()", sources)))
    lines = ['#include "library_recorder.hpp"', *(f'ONE_IN({name}, "VCONV")' for name in conversions)]
    lines += [f'#include "{checkout}/include/pto/common/utils.hpp"', "using namespace pto;"]
    lines += [f'#include "pto/npu/a2a3/{header}.hpp"' for header in HEADERS]
    for number, case in enumerate(CASES):
        lines.append(f"static void case{number}() {{")
        for i, (kind, rows, cols, *valid) in enumerate(case.tiles):
            static = (-1, -1) if case.dynamic else valid
            spelled = f"{dtype(kind).cpp}, {rows}, {cols}, BLayout::RowMajor, {static[0]}, {static[1]}"
            lines.append(f"Tile<TileType::Vec, {spelled}> t{i}; t{i}.assign({i * ROOM});")
            if case.dynamic:
                lines.append(f"t{i}.SetValidShape({valid[0]}, {valid[1]});")
        lines.append(f"{case.call};\n}}")
    lines.append("int main() {")
    for number in range(len(CASES)):
        lines.append(f'case{number}(); for (auto &s : said) printf("%s ", s.c_str()); puts("");')
        lines.append("said.clear(); count_mode = false;")
    return "\n".join([*lines, "}"])


@pytest.fixture(scope="module")
def library(pto_isa_checkout, tmp_path_factory):
    """What the library asks for, by case."""
    work = tmp_path_factory.mktemp("library")
    (work / "pto" / "npu").mkdir(parents=True)
    (work / "pto" / "npu" / "a2a3").symlink_to(pto_isa_checkout / "include" / "pto" / "npu" / "a2a3")
    (work / "pto" / "common").mkdir()
    (work / "pto" / "common" / "utils.hpp").symlink_to(pto_isa_checkout / "include/pto/common/utils.hpp")
    (work / "pto" / "common" / "debug.h").touch()
    (work / "program.cpp").write_text(program(pto_isa_checkout), encoding="utf-8")
    flags = [
        "-std=c++20",
        "-O0",
        "-w",
        "-fpermissive",
        f"-I{work}",  # a header that the library has is the library's
        f"-I{INCLUDE}",
        f"-I{Path(__file__).parent}",
    ]
    command = [*find_compiler().command, *flags, str(work / "program.cpp"), "-o", str(work / "program")]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, f"this checkout does not compile over the recorder: {built.stderr[:2000]}"
    lines = subprocess.run([work / "program"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split() for line in lines]


def ours(case: Case) -> list[str]:
    specs = [
        replace(tile(np.zeros((r, c)), i * ROOM, dtype_name=kind, valid=(vr, vc)), dynamic=3 * case.dynamic)
        for i, (kind, r, c, vr, vc) in enumerate(case.tiles)
    ]
    order = case.order or tuple(range(len(specs)))
    operands = [specs[o] if isinstance(o, int) else o for o in order]
    result = run_tile_op(case.op, *operands, timing_only=True)
    found = []
    for name, detail in zip(result.instructions, result.simulation.instructions.detail, strict=False):
        numbers = re.search(r"repeat:(\d+),stride:\d+/\d+/\d+/(\d+)", detail)
        if name not in ("LD_XD_XN_IMM", "ST_XD_XN_IMM"):  # the recorder does not see the scalar unit
            found.append(f"{name}:{numbers[1]}:{numbers[2]}" if numbers else name)
    return found


def same(mine: str, theirs: str) -> bool:
    if theirs.endswith(":counted") or theirs == "MOV_UB_TO_UB":
        return mine.split(":")[0] == theirs.split(":")[0]
    return mine == theirs


@pytest.mark.parametrize("op", dict.fromkeys(case.op for case in CASES))
def test_an_op_issues_what_the_library_asks_for(op, library):
    for case, theirs in zip(CASES, library, strict=True):
        if case.op != op:
            continue
        mine = ours(case)
        agree = len(mine) == len(theirs) and all(map(same, mine, theirs))
        assert agree, f"{case}\n  ours    {' '.join(mine)}\n  library {' '.join(theirs)}"
