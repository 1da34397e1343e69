"""What holds for every stream that the engine writes."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from insight_trace.model import CoreType, Instructions, Pipe
from insight_trace.outcome import Simulation
from insight_trace.simulate.embedded.program import (
    On,
    Step,
    barrier,
    move,
    multiply,
    run_program,
    scalar,
    set_flag,
    transfer,
    vector,
    wait_flag,
)
from tests.simulate.example_runs import EXAMPLES, run_example
from tests.simulate.op_harness import TARGETS

_BURSTS = re.compile(r"bytes:(\d+),")


def _names(columns: Instructions) -> np.ndarray:
    return np.array(columns.names)[columns.name]


def _covered(start: np.ndarray, end: np.ndarray) -> int:
    """Cycles in which at least one of them ran; they come in the order of their starts."""
    covered, until = 0, 0
    for begins, ends in zip(start.tolist(), end.tolist(), strict=True):
        covered += max(0, ends - max(begins, until))
        until = max(until, ends)
    return covered


def assert_invariants(done: Simulation) -> None:
    columns = done.instructions
    names = _names(columns)
    start, end, issue = columns.start, columns.end, columns.issue
    assert (issue <= start).all()
    assert (start <= end).all()
    for core in range(len(columns.cores)):
        here = columns.core == core
        span = end[here].max()
        rows = np.flatnonzero(here)
        assert names[rows[-1]] == "END"
        assert end[rows[-1]] == span, "the core ends when everything on it has ended"
        assert (np.diff(issue[rows]) >= 0).all(), "the scalar unit issues in program order"
        works = ~np.isin(names[rows], ["SET_FLAG", "WAIT_FLAG", "BAR"])
        for pipe in Pipe:
            on_pipe = columns.pipe[rows] == int(pipe)
            mine = rows[on_pipe]
            assert (np.diff(start[mine]) >= 0).all(), "a pipe takes up its instructions in the order of issue"
            mine = rows[on_pipe & works]
            assert _covered(start[mine], end[mine]) <= span
        mine = rows[columns.pipe[rows] == int(Pipe.SCALAR)]
        assert (start[mine][1:] >= end[mine][:-1]).all(), "the scalar unit does one thing at a time"
    waits = np.flatnonzero(names == "WAIT_FLAG")
    partners = columns.partner[waits]
    assert (partners >= 0).all()
    assert (names[partners] == "SET_FLAG").all()
    assert (end[waits] >= end[partners]).all(), "a wait ends when its flag has been set"
    assert np.unique(partners).size == partners.size, "a set ends one wait"
    keys = [columns.detail[int(row)] for row in waits]
    assert keys == [columns.detail[int(row)] for row in partners]
    moved = np.flatnonzero(columns.process_bytes >= 0)
    described = sum(int(_BURSTS.search(columns.detail[int(row)])[1]) for row in moved)  # type: ignore[index]
    assert int(columns.process_bytes[moved].sum()) == described


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_stream_of_an_example_is_possible(name: str, target: str) -> None:
    assert_invariants(run_example(name, target=target))


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_computes_the_same_on_both_families(name: str) -> None:
    here, there = run_example(name), run_example(name, target="a5")
    assert here.outputs.keys() == there.outputs.keys()
    for slot, values in here.outputs.items():
        np.testing.assert_array_equal(there.outputs[slot], values)


@pytest.mark.parametrize("target", TARGETS)
def test_bytes_moved_are_those_of_the_tensors(target: str) -> None:
    columns = run_example("chain add", target=target).instructions
    moved = columns.process_bytes
    assert int(moved[moved >= 0].sum()) == 3 * 64 * 64 * 4
    columns = run_example("gemm", target=target).instructions
    names = _names(columns)
    tiles, steps = (256 // 128) * (512 // 256), 128 // 64
    assert int(columns.process_bytes[names == "FIX_L0C_TO_OUT"].sum()) == 256 * 512 * 4
    loaded = int(columns.process_bytes[names == "MOV_OUT_TO_L1_MULTI_ND2NZ"].sum())
    assert loaded == tiles * steps * (128 * 64 + 64 * 256) * 2


_VECTOR_PIPES = (On.S, On.V, On.MTE2, On.MTE3)
_CUBE_PIPES = (On.S, On.M, On.MTE1, On.MTE2, On.FIX)


def _steps(cube: bool) -> st.SearchStrategy[list[Step]]:
    """Programs whose flags are set before they are waited for, so that they end."""
    pipes = _CUBE_PIPES if cube else _VECTOR_PIPES
    size = st.integers(1, 1 << 15)
    work = [st.integers(1, 50).map(scalar)]
    if cube:
        small = st.integers(1, 128)
        work += [
            st.builds(multiply, small, small, small),
            size.map(lambda n: move("LOAD_L1_TO_L0A_2D", n)),
            size.map(lambda n: transfer("MOV_OUT_TO_L1", n)),
            size.map(lambda n: transfer("FIX_L0C_TO_OUT", n)),
        ]
    else:
        work += [
            st.integers(1, 255).map(vector),
            st.builds(
                lambda n, b: transfer("MOV_OUT_TO_UB_ALIGN", n, b), st.integers(1, 4096), st.integers(1, 8)
            ),
            st.builds(lambda n, o: transfer("MOV_UB_TO_OUT_ALIGN", n, offset=o), size, st.integers(0, 600)),
        ]
    pairs = st.tuples(st.sampled_from(pipes), st.sampled_from(pipes)).filter(lambda p: p[0] != p[1])
    flags = st.tuples(pairs, st.integers(0, 3)).map(lambda f: [set_flag(*f[0], f[1]), wait_flag(*f[0], f[1])])
    barriers = st.sampled_from([*(p for p in pipes if p is not On.S), On.ALL]).map(lambda p: [barrier(p)])
    one = st.one_of(*work).map(lambda step: [step])
    return st.lists(st.one_of(one, one, flags, barriers), min_size=1, max_size=60).map(
        lambda parts: [step for part in parts for step in part]
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.booleans().flatmap(lambda cube: st.tuples(st.just(cube), _steps(cube))))
def test_any_program_that_ends_is_possible_and_takes_the_same_time_again(
    drawn: tuple[bool, list[Step]],
) -> None:
    cube, steps = drawn
    kinds = [CoreType.AIC if cube else CoreType.AIV]
    done = run_program(steps, kinds=kinds)
    assert done.failure is None
    assert_invariants(done)
    again = run_program(steps, kinds=kinds)
    np.testing.assert_array_equal(done.instructions.end, again.instructions.end)
