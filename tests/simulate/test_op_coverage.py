"""No tile op is left out on either family: each runs on both, and each is held against NumPy on both.

Three promises together. Every op of the tables runs here, once per family, and leaves the same bytes. Every op is named
in a test that compares with NumPy through the harness, which runs both families unless it is told one. And only the
tests named below tell it one by name: the features that one family alone has.
"""

import ast
import importlib.util
import sys
from collections import Counter
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import pytest

from insight_trace.outcome import Fault
from insight_trace.simulate.embedded.op_script import GlobalSpec, Option, TileSpec, op_numbers
from tests.simulate.narrow_formats import E4M3, E8M0, narrow_tile
from tests.simulate.op_harness import (
    TARGETS,
    Result,
    dtype,
    element_offsets,
    failure_of,
    run_tile_op,
    scalar,
    tile,
)

HERE = Path(__file__).parent
OPS = tuple(op_numbers())
# What the other family does not have: it must say so.
ONLY_ON = {
    **{"TPUSH": "a5", "TMATMUL_MX": "a5", "THISTOGRAM": "a5", "TRANDOM": "a5"},
    **{"TINTERLEAVE": "a5", "TDEINTERLEAVE": "a5"},
}
# What the families round in different places: relative difference.
ROUNDED_TWICE = {"TRSQRT": 1.5e-7}
# Tests of what one family has, which therefore name it.
OF_ONE_FAMILY = {
    "test_rearrange.py": "interleaving, which the 950 alone has, and whole blocks that a2a3 copies",
    "test_a5_functions.py": "functions, paths and memories of the 950",
    "test_a5_numbers.py": "ops that the 950 does in another way, or alone",
    "test_elementwise_bits.py": "masks that each family packs in its own way",
    "test_expand.py": "integers that the 950 alone divides",
    "test_library_sequences.py": "the sequences of the library of a2a3",
    "test_library_forms.py": "moves into the bias table that the 950 does in another way",
    "test_narrow_floats.py": "formats that only the 950 multiplies and converts",
    "test_kernel_surface.py": "kernels with scaled products",
    "test_checkout_mixes.py": "kernels that a checkout has for one family",
    "test_elementwise.py": "the end of each family's memory",
    "elementwise_cases.py": "bytes that a2a3 handles two by two",
    "test_elementwise_tiles.py": "whole blocks that a2a3 copies",
    "test_convert.py": "pairs that a2a3 lacks, and the bytes that its instructions name",
    "test_reduce.py": "scratch tiles of a2a3, its index of NaN, and infinities that the 950 keeps",
    "test_fillpad.py": "repeats as the library of a2a3 counts them",
    "test_descriptors.py": "tiles that say too much of themselves, as the library of a2a3 takes them",
    "test_op_coverage.py": "this one",
}
# Needs two cores, so a kernel calls it: test_mixes.py runs that on both families and compares with NumPy.
IN_A_KERNEL = {"TPUSH": "mix_chain.cpp"}


@lru_cache(maxsize=1)
def _table():
    path = HERE.parents[1] / "tools" / "tile_op_table.py"
    spec = importlib.util.spec_from_file_location("tile_op_table", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _scaled_product():
    codes = np.full((16, 64), 0x38, np.uint8)
    ones = np.full((16, 2), 127, np.uint8)
    return (
        tile(np.zeros((16, 16), np.float32), layout="NZ", fractal=1024, space="l0c"),
        narrow_tile(codes, E4M3, layout="NZ", space="l0a"),
        narrow_tile(ones, E8M0, layout="ZZ", space="scale_left", fractal=32),
        narrow_tile(codes.T, E4M3, layout="ZN", space="l0b"),
        narrow_tile(ones.T, E8M0, layout="NN", space="scale_right", fractal=32),
    )


def _push():
    there = TileSpec(dtype("float32"), 16, 16, 0x100)
    acc = tile(np.ones((16, 16), np.float32), layout="NZ", fractal=1024, space="l0c")
    return there, acc, Option(0), Option(0), Option(0)


def _histogram():
    numbers = tile(np.zeros((2, 64), np.uint16), 0x4000)
    return tile(np.zeros((2, 256), np.uint32)), numbers, tile(np.zeros((32, 1), np.uint8), 0x6000), Option(1)


def _random():
    words = [scalar(word, "uint32") for word in range(6)]
    return (tile(np.zeros((2, 64), np.uint32)), Option(10), *words)


def _filled(operand, kind, seed):
    """Numbers in tiles of the op's own type; indices and masks stay zero, which every op takes."""
    if isinstance(operand, TileSpec) and operand.dtype == kind:
        flat = np.zeros(operand.rows * operand.cols, kind.numpy)
        matrix = np.random.default_rng(seed).integers(1, 9, (operand.rows, operand.cols))
        flat[element_offsets(operand)] = matrix.astype(kind.numpy)
        return replace(operand, data=flat)
    if isinstance(operand, GlobalSpec) and operand.dtype == kind:
        return replace(
            operand, data=np.random.default_rng(seed).integers(1, 9, operand.data.size).astype(kind.numpy)
        )
    return operand


def _operands(op: str, kind, target: str):
    alone = {"TMATMUL_MX": _scaled_product, "TPUSH": _push, "THISTOGRAM": _histogram, "TRANDOM": _random}
    made = alone.get(op)
    if made:
        return made()
    specs = _table().example_operands(op, kind, target=target)
    return tuple(_filled(spec, kind, seed) for seed, spec in enumerate(specs))


@lru_cache(maxsize=1)
def _first_types() -> dict[str, str]:
    """The first element type of each op, as its row of docs/tile-ops.md has it."""
    rows = (
        line.split("|")
        for line in (HERE.parents[1] / "docs/tile-ops.md").read_text().splitlines()
        if "|" in line
    )
    return {
        cells[1].strip(): next(name for name in cells[2].replace("a5:", "").split(",")).strip()
        for cells in rows
        if cells[1].strip() in OPS
    }


@cache
def _run(op: str, target: str, timing_only: bool = False) -> Result:
    kind = dtype("float32") if op in ONLY_ON else dtype(_first_types()[op])
    return run_tile_op(op, *_operands(op, kind, target), target=target, timing_only=timing_only)


@pytest.mark.parametrize("op", OPS)
def test_every_op_runs_on_both_families_and_leaves_the_same(op):
    if op in ONLY_ON:
        there = ONLY_ON[op]
        assert _run(op, there).instructions
        (other,) = set(TARGETS) - {there}
        failure = failure_of(op, *_operands(op, dtype("float32"), other), target=other)
        assert failure.fault is Fault.NOT_SUPPORTED
        return
    first, second = (_run(op, target) for target in TARGETS)
    assert len(first.run.contents) == len(second.run.contents)
    for index, operand in enumerate(first.operands):
        if isinstance(operand, TileSpec):  # their layouts differ, what they hold does not
            there = second.matrix(index)
            before, after = second.operands[index].data, second.run.contents[index]
            if index and (not after.any() if before is None else np.array_equal(after, before)):
                continue  # scratch and sources that the 950 leaves as they were
            np.testing.assert_allclose(first.matrix(index), there, rtol=ROUNDED_TWICE.get(op, 0))
        elif isinstance(operand, GlobalSpec):
            np.testing.assert_array_equal(first.buffer(index), second.buffer(index))
    if first.instructions and op != "TPRINT":
        assert second.instructions


@pytest.mark.parametrize("op", OPS)
def test_without_its_arithmetic_an_op_issues_the_same_at_the_same_times_and_writes_nothing(op):
    for target in (ONLY_ON[op],) if op in ONLY_ON else TARGETS:
        real, timed = _run(op, target), _run(op, target, timing_only=True)
        assert real.instructions == timed.instructions
        for column in ("start", "end"):
            one, other = (getattr(run.simulation.instructions, column) for run in (real, timed))
            np.testing.assert_array_equal(one, other)
        tiles = [operand for operand in timed.operands if isinstance(operand, TileSpec)]
        places = Counter((operand.space, operand.address) for operand in tiles)
        for operand, content in zip(timed.operands, timed.run.contents, strict=True):
            if isinstance(operand, TileSpec) and places[operand.space, operand.address] == 1:
                before = np.zeros_like(content) if operand.data is None else operand.data
                np.testing.assert_array_equal(content.view(np.uint8), before.view(np.uint8))
            elif isinstance(operand, GlobalSpec):
                np.testing.assert_array_equal(content, operand.data)


# What the 950's library computes in a loop: tiles loaded, then arithmetic; one store follows, and no mask, barrier or
# scalar access. Ops that are not here are loads, stores and moves, work of the cube, or what their body issues.
FUNCTIONS = {
    "TADD": "2 VADD", "TSUB": "2 VSUB", "TMUL": "2 VMUL", "TDIV": "2 VDIV", "TMAX": "2 VMAX", "TMIN": "2 VMIN",
    "TAND": "2 VAND", "TOR": "2 VOR", "TXOR": "2 VXOR", "TSHL": "2 VSHL", "TSHR": "2 VSHR",
    "TADDS": "1 VADDS", "TSUBS": "1 VADDS", "TMULS": "1 VMULS", "TDIVS": "1 VDIV", "TMAXS": "1 VMAXS",
    "TMINS": "1 VMINS", "TANDS": "1 VAND", "TORS": "1 VOR", "TXORS": "1 VXOR", "TSHLS": "1 VSHL", "TSHRS": "1 VSHR",
    "TEXP": "1 VEXP", "TLOG": "1 VLN", "TSQRT": "1 VSQRT", "TRSQRT": "1 VSQRT VDIV", "TRECIP": "1 VDIV",
    "TABS": "1 VABS_FP", "TNEG": "1 VMULS", "TNOT": "1 VNOT", "TRELU": "1 VRELU", "TLRELU": "1 VLRELU",
    "TPRELU": "2 VPRELU", "TSUBRELU": "2 VSUB VRELU", "TEXPANDS": "0 VDUP", "TSEL": "3 VSEL", "TSELS": "2 VSEL",
    "TCVT": "1 VCVT_F2F", "TADDRELUCONV": "2 VADD VMAXS VCVT_F2F", "TSUBRELUCONV": "2 VSUB VMAXS VCVT_F2F",
    "TADDDEQRELU": "2 VADD VCVT_F2F VMULS VMAXS", "TDEQUANT": "3 VCVT_F2F VSUB VMUL",
    "TPOW": "2 VABS_FP VLN VMUL VEXP VCMPVS VSEL", "TPOWS": "1 VABS_FP VLN VMULS VEXP VCMPVS VSEL",
    "TROWEXPAND": "1 VDUP", "TROWEXPANDADD": "2 VADD", "TROWEXPANDSUB": "2 VSUB", "TROWEXPANDMUL": "2 VMUL",
    "TROWEXPANDDIV": "2 VDIV", "TROWEXPANDMAX": "2 VMAX", "TROWEXPANDMIN": "2 VMIN", "TROWEXPANDEXPDIF": "2 VSUB VEXP",
    "TCOLEXPAND": "1 VDUP", "TCOLEXPANDADD": "2 VADD", "TCOLEXPANDSUB": "2 VSUB", "TCOLEXPANDMUL": "2 VMUL",
    "TCOLEXPANDDIV": "2 VDIV", "TCOLEXPANDMAX": "2 VMAX", "TCOLEXPANDMIN": "2 VMIN", "TCOLEXPANDEXPDIF": "2 VSUB VEXP",
    "TROWMAX": "1 VCMAX VMAX", "TROWMIN": "1 VCMIN VMIN", "TROWSUM": "1 VCADD VADD", "TROWPROD": "1 VMUL VINTLV VMUL",
    "TCOLMAX": "1 VMAX", "TCOLMIN": "1 VMIN", "TCOLSUM": "1 VADD", "TCOLPROD": "1 VMUL",
    "TSCATTER": "2 VDUP VSCATTER",
}  # fmt: skip


@pytest.mark.parametrize("op", FUNCTIONS)
def test_on_the_950_an_op_is_the_function_that_its_library_writes(op):
    loads, *steps = FUNCTIONS[op].split()
    found = [name for name in _run(op, "a5").instructions if name != "MOV_SPR_XN"]
    assert found == ["VF", *["RV_VLD"] * int(loads), *(f"RV_{step}" for step in steps), "RV_VST"]


def _trees() -> dict[str, ast.Module]:
    return {path.name: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("test_*.py"))}


def _calls(tree: ast.AST, name: str) -> list[ast.Call]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


def test_every_op_is_held_against_numpy_in_a_test_of_both_families():
    named: set[str] = set()
    for name, tree in _trees().items():
        if name == Path(__file__).name or not _calls(tree, "run_tile_op"):
            continue
        text = ast.dump(tree)
        if "assert_array_equal" not in text and "assert_allclose" not in text and not _calls(tree, "check"):
            continue
        named |= {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and node.value in op_numbers()
        }
    assert set(OPS) - named - set(IN_A_KERNEL) == set()
    for op, source in IN_A_KERNEL.items():
        assert f"{op}<" in (HERE.parent / "data" / "kernels" / source).read_text(encoding="utf-8")
        assert source in (HERE / "test_mixes.py").read_text(encoding="utf-8")


def test_no_test_of_ops_runs_one_family_but_those_that_say_why():
    for name, tree in _trees().items():
        assert not _calls(tree, "run_op"), f"{name} goes round the harness"
        for call in _calls(tree, "run_tile_op") + _calls(tree, "failure_of"):
            given = next((word.value for word in call.keywords if word.arg == "target"), None)
            if isinstance(given, ast.Constant):
                assert name in OF_ONE_FAMILY, f"{name}:{call.lineno} runs on {given.value} alone"


def test_tests_that_choose_a_family_choose_each():
    """A test with `target` as a parameter gets every family."""
    for name, tree in _trees().items():
        for test in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            if not test.name.startswith("test_") or "target" not in {arg.arg for arg in test.args.args}:
                continue
            chosen = [_families(mark) for mark in test.decorator_list if _chooses_target(mark)]
            assert set(TARGETS) in chosen, f"{name}: {test.name}"


def _chooses_target(mark: ast.expr) -> bool:
    """Whether this is pytest.mark.parametrize with `target` among its names, or a name that stands for one."""
    if isinstance(mark, ast.Name):
        return mark.id == "ON_BOTH"
    if not isinstance(mark, ast.Call) or not mark.args or not ast.unparse(mark.func).endswith("parametrize"):
        return False
    return any(
        isinstance(node, ast.Constant) and "target" in str(node.value).replace(" ", "").split(",")
        for node in ast.walk(mark.args[0])
    )


def _families(mark: ast.expr) -> set[str]:
    """The families among its values; TARGETS stands for all of them."""
    values = mark.args[1] if isinstance(mark, ast.Call) else mark
    nodes = list(ast.walk(values))
    if any(isinstance(node, ast.Name) and node.id in ("TARGETS", "ON_BOTH") for node in nodes):
        return set(TARGETS)
    return {str(node.value) for node in nodes if isinstance(node, ast.Constant)} & set(TARGETS)
