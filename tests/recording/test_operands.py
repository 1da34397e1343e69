"""Which bytes an operand touches: against a slow walk, and against what the engine really changed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from insight_trace.dtypes import DTYPES
from insight_trace.errors import JobError
from insight_trace.model import Operands
from insight_trace.recording import byte_ranges, operand_rows
from insight_trace.recording.operands import (
    CALL_FIELDS,
    FOOTPRINT_FIELDS,
    GEOMETRY_FIELDS,
    MEMORIES,
    OPERAND_FIELDS,
    TILE_FIELDS,
    WRITES,
    Form,
    all_operands,
    instruction_of_operands,
)
from insight_trace.simulate.embedded.op_forms import OpRequest, operands_of
from insight_trace.simulate.embedded.op_script import TileSpec, run_op
from insight_trace.simulate.embedded.records import _FIELDS, Site, load_instructions
from insight_trace.simulate.embedded.simulator import EmbeddedOptions

_SPACES = {"ub": "UB", "l1": "L1", "l0a": "L0A", "l0b": "L0B", "l0c": "L0C", "bias": "BT"}


def table_of(footprints, rows):
    """Operands of a stream of one instruction."""
    return Operands(
        times=np.zeros((1, 3), np.int64),
        form=np.zeros(1, np.uint8),
        value=np.zeros(1, np.uint64),
        geometry=np.zeros(1, np.uint32),
        call=np.zeros(1, np.uint32),
        first=np.zeros(1, np.uint32),
        count=np.array([len(rows)], np.uint32),
        rows=np.array(rows, OPERAND_FIELDS),
        geometries=np.zeros(1, GEOMETRY_FIELDS),
        footprints=footprints,
        tiles=np.zeros(0, TILE_FIELDS),
        calls=np.zeros(0, CALL_FIELDS),
        lists=np.zeros(0, np.uint32),
        ops=(),
    )


def slow_bytes(footprint, address):
    """Byte by byte, as engine/record.hpp says it in words."""
    found, walked = set(), 0
    size = DTYPES[footprint["type"]].size
    mask = int(footprint["mask"][0]) | int(footprint["mask"][1]) << 64
    counts = footprint["count"].tolist()
    for outer in range(counts[0]):
        inside = 0
        for a in range(counts[1]):
            for b in range(counts[2]):
                for c in range(counts[3]):
                    place = [outer, a, b, c]
                    base = address + int(footprint["offset"])
                    base += sum(i * int(step) for i, step in zip(place, footprint["step"], strict=True))
                    for byte in range(int(footprint["run"])):
                        led = not footprint["lead"] or inside < footprint["lead"]
                        within = not footprint["total"] or walked < footprint["total"]
                        chosen = not mask or mask >> (inside // size) & 1
                        if led and within and chosen:
                            found.add(base + byte)
                        inside += 1
                        walked += 1
    return found


@st.composite
def footprints(draw):
    one = np.zeros((), FOOTPRINT_FIELDS)
    one["type"] = draw(st.sampled_from([0, 1, 4]))
    size = DTYPES[one["type"]].size
    one["run"] = size * draw(st.integers(0, 8))
    one["count"] = [draw(st.integers(0, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3)), 1]
    one["step"] = [draw(st.integers(-3, 40)) * size for _ in range(4)]
    one["offset"] = draw(st.integers(0, 64))
    if draw(st.booleans()):
        one["lead"] = draw(st.integers(0, 40))
    elif draw(st.booleans()):
        one["total"] = draw(st.integers(0, 60))
    elif draw(st.booleans()):
        one["mask"] = [draw(st.integers(0, 2**64 - 1)), draw(st.integers(0, 2**64 - 1))]
    return one


@given(st.lists(footprints(), min_size=1, max_size=4), st.lists(st.integers(0, 2**40), max_size=6))
def test_byte_ranges_are_those_of_a_walk_byte_by_byte(shapes, addresses):
    rows = [(1000 + address, place % len(shapes), 0) for place, address in enumerate(addresses)]
    operands = table_of(np.array(shapes, FOOTPRINT_FIELDS), rows)
    ranges = byte_ranges(operands, np.arange(len(rows)))
    assert (ranges.begin < ranges.end).all()
    for number, (address, shape, _) in enumerate(rows):
        mine = ranges.operand == number
        found = [
            byte
            for begin, end in zip(ranges.begin[mine].tolist(), ranges.end[mine].tolist(), strict=True)
            for byte in range(begin, end)
        ]
        assert set(found) == slow_bytes(shapes[shape], address)
        assert found == sorted(set(found)), "ranges of one operand are in order and do not overlap"


def changed_outside(name, target, dtype, rows=16, cols=96, valid_cols=80):
    """Bytes of tiles that an op changed, and that no instruction of it says it writes."""
    request = OpRequest(name, dtype, rows, cols, valid_cols=valid_cols)
    rng = np.random.default_rng(5)
    specs = [
        replace(spec, data=rng.integers(1, 100, spec.rows * spec.cols).astype(spec.dtype.numpy))
        if isinstance(spec, TileSpec)
        else spec
        for spec in operands_of(request, target)
    ]
    run = run_op(name, specs, EmbeddedOptions(target=target))
    assert run.simulation.failure is None, run.simulation.failure
    operands = run.simulation.instructions.operands
    touched = all_operands(operands)
    footprint = operands.footprints[operands.rows["footprint"][touched]]
    writes = (footprint["role"] & WRITES) > 0
    ranges = byte_ranges(operands, touched[writes])
    memory = footprint["memory"][writes][ranges.operand]
    outside, changes = [], 0
    for spec, after in zip(specs, run.contents, strict=True):
        if not isinstance(spec, TileSpec) or spec.space not in _SPACES:
            continue
        before = spec.data.view(np.uint8).reshape(-1)
        changed = np.flatnonzero(after.view(np.uint8).reshape(-1) != before) + spec.address
        changes += len(changed)
        mine = memory == MEMORIES.index(_SPACES[spec.space])
        covered = np.zeros(int(ranges.end.max()) + spec.address + spec.size, bool)
        for begin, end in zip(ranges.begin[mine].tolist(), ranges.end[mine].tolist(), strict=True):
            covered[begin:end] = True
        outside += changed[~covered[changed]].tolist()
    assert changes, "the op did something"
    return outside


_OPS = ["TADD", "TEXP", "TADDS", "TROWMAX", "TCOLSUM", "TROWEXPAND", "TMOV"]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("dtype", [DTYPES[0], DTYPES[1]], ids=lambda dtype: dtype.short)
@pytest.mark.parametrize("name", _OPS)
def test_an_op_changes_only_bytes_that_its_instructions_say_they_write(name, dtype, target):
    assert changed_outside(name, target, dtype) == []


def test_every_vector_instruction_names_its_mask_and_elements():
    request = OpRequest("TADD", DTYPES[0], 4, 96, valid_cols=72)
    run = run_op("TADD", operands_of(request))
    operands = run.simulation.instructions.operands
    vector = operands.form == Form.VECTOR
    geometry = operands.geometries[operands.geometry[vector]]
    lanes = [bin(low).count("1") + bin(high).count("1") for low, high in geometry["mask"].tolist()]
    each = [
        elements if counted else count * repeat
        for elements, counted, count, repeat in zip(
            geometry["elements"].tolist(),
            geometry["counted"].tolist(),
            lanes,
            geometry["repeat"].tolist(),
            strict=True,
        )
    ]
    assert each == geometry["elements"].tolist()
    assert sum(each) == 4 * 72


def test_operands_name_the_tile_they_lie_in():
    request = OpRequest("TADD", DTYPES[0], 4, 64)
    run = run_op("TADD", operands_of(request))
    operands = run.simulation.instructions.operands
    row = int(np.flatnonzero(operands.form == Form.VECTOR)[0])
    call = operands.calls[operands.call[row]]
    assert operands.ops[call["op"]] == "TADD"
    first = int(call["tiles"])
    tiles = operands.lists[first + 1 : first + 1 + operands.lists[first]]
    of_operands = operands.rows["tile"][list(operand_rows(operands, row))]
    assert of_operands.tolist() == tiles.tolist()
    assert operands.tiles["rows"][tiles].tolist() == [4, 4, 4]
    assert set(instruction_of_operands(operands)[:3].tolist()) <= set(range(len(operands.form)))


@pytest.mark.parametrize("wrong", ["", "order", "footprint", "pieces"])
def test_operands_that_a_kernel_wrote_over_are_told(wrong, tmp_path):
    rows, table = np.zeros(3, _FIELDS), np.zeros(4, OPERAND_FIELDS)
    rows["operands"] = 0, 2, 3
    footprints = np.zeros(1, FOOTPRINT_FIELDS)
    if wrong == "order":
        rows["operands"][1] = 9
    elif wrong == "footprint":
        table["footprint"][2] = 1
    elif wrong == "pieces":
        footprints["count"] = 1 << 20
    path = tmp_path / "records"
    for name, values in (("", rows), (".operands", table), (".footprints", footprints)):
        values.tofile(f"{path}{name}")
    sites = [Site("k.cpp", 1, "VADD", 1)]
    if not wrong:
        assert load_instructions(path, sites, ("core0.veccore0",)).operands.count.tolist() == [2, 1, 1]
        return
    with pytest.raises(JobError, match="wrote over the operands"):
        load_instructions(path, sites, ("core0.veccore0",))
