"""Cube and vector cores together: right results whatever the host does first, and deadlocks that explain themselves."""

import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from insight_trace.model import CoreType, Stall
from insight_trace.outcome import Fault, Simulation
from tests.simulate.dispatching import KERNELS, kernel, mix, outputs, run

TILES = 7
SEEDS = range(1, 51)


def _inputs() -> tuple[NDArray[np.float16], NDArray[np.float16], NDArray[np.float16], NDArray[np.float32]]:
    random = np.random.default_rng(7)

    def halves(rows: int) -> NDArray[np.float16]:
        return random.uniform(-1, 1, (rows, 64)).astype(np.float16)

    bias = random.uniform(-1, 1, (TILES * 64, 64)).astype(np.float32)
    return halves(TILES * 64), halves(64), halves(64), bias


def _ring(slots: int) -> NDArray[np.float32]:
    return np.zeros((slots * 64, 64), np.float32)


def _add(lanes: int, target: str = "a2a3", perturb: int = 0) -> Simulation:
    a, b, _, bias = _inputs()
    slots = [a, b, bias, np.zeros_like(bias), _ring(4), TILES]
    return run(mix("mix_add.cpp", lanes), slots, [3], target=target, perturb=perturb)


def _chain(lanes: int, target: str = "a2a3", perturb: int = 0, one: bool = False) -> Simulation:
    a, b, w, bias = _inputs()
    slots = [a, b, w, np.zeros_like(bias), _ring(8), _ring(4), TILES, int(one)]
    return run(mix("mix_chain.cpp", lanes), slots, [3], target=target, perturb=perturb)


def _expected(which: str) -> NDArray[np.float32]:
    a, b, w, bias = (array.astype(np.float64) for array in _inputs())
    if which == "add":
        return (a @ b + bias).astype(np.float32)
    return (np.maximum(a @ b, 0).astype(np.float16).astype(np.float64) @ w).astype(np.float32)


_KERNELS = {"add": _add, "chain": _chain}


def _times(simulation: Simulation) -> list[NDArray[np.int64]]:
    """When each instruction of each core ended, core by core in program order."""
    instructions = simulation.instructions
    return [instructions.end[instructions.core == core] for core in range(len(instructions.cores))]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("which", _KERNELS)
def test_tiles_pushed_between_cores_arrive_in_order(which: str, lanes: int, target: str) -> None:
    simulation = _KERNELS[which](lanes, target)
    np.testing.assert_allclose(outputs(simulation)[3], _expected(which), rtol=2e-3, atol=1e-2)


def test_a_pipe_with_the_unit_flag_needs_no_other_between_product_and_store(tmp_path: Path) -> None:
    text = (KERNELS / "mix_add.cpp").read_text(encoding="utf-8")
    for before, then in (
        ("sizeof(float), 4>", "sizeof(float), 4, 2, false, true>"),
        ("TMATMUL(", "TMATMUL<AccPhase::Final>("),
        ("set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);", ""),
        ("wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);", ""),
    ):
        assert before in text
        text = text.replace(before, then)
    source = tmp_path / "mix_add.cpp"
    source.write_text(text, encoding="utf-8")
    a, b, _, bias = _inputs()
    simulation = run(mix(source, 2), [a, b, bias, np.zeros_like(bias), _ring(4), TILES], [3])
    np.testing.assert_allclose(outputs(simulation)[3], _expected("add"), rtol=2e-3, atol=1e-2)
    rows = simulation.instructions
    names = np.array(rows.names)[rows.name]
    stores, products = names == "FIX_L0C_TO_OUT", names == "MMAD"
    assert (rows.start[stores] > rows.start[products]).all()
    assert (rows.end[stores] > rows.end[products]).all()


def test_what_is_not_split_waits_for_one_vector_core_of_two() -> None:
    simulation = _chain(2, "a5", one=True)
    np.testing.assert_allclose(outputs(simulation)[3], _expected("chain"), rtol=2e-3, atol=1e-2)


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("which", _KERNELS)
def test_neither_results_nor_times_depend_on_the_hosts_scheduling(which: str, lanes: int) -> None:
    calm = _KERNELS[which](lanes)
    for seed in SEEDS:
        perturbed = _KERNELS[which](lanes, perturb=seed)
        np.testing.assert_array_equal(outputs(perturbed)[3], outputs(calm)[3])
        for one, other in zip(_times(calm), _times(perturbed), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_wait_for_another_core_names_the_instruction_that_ended_it() -> None:
    instructions = _chain(2).instructions
    name = {text: i for i, text in enumerate(instructions.names)}
    waits = np.flatnonzero(instructions.name == name["WAIT_FLAG_DEV"])
    assert waits.size
    partners = instructions.partner[waits]
    assert (partners >= 0).all()
    assert (instructions.name[partners] == name["SET_CROSS_CORE"]).all()
    assert (instructions.core[partners] != instructions.core[waits]).all()
    assert (instructions.end[waits] > instructions.end[partners]).all()
    stalled = instructions.stall[waits] == Stall.CROSS_CORE
    assert stalled.any()


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_deadlocked_mix_ends_within_a_second_and_says_who_waits_for_what(lanes: int) -> None:
    run(mix("mix_deadlock.cpp", lanes), [np.zeros(16, np.int32)], [0])  # compiles
    began = time.monotonic()
    simulation = run(mix("mix_deadlock.cpp", lanes), [np.zeros(16, np.int32)], [0])
    took = time.monotonic() - began
    failure = simulation.failure
    assert failure
    assert failure.fault is Fault.KERNEL
    assert "core0.cubecore0 waits for cross-core flag 3 from the vector cores of core0" in failure.message
    assert "at mix_deadlock.cpp:7" in failure.message
    for lane in range(lanes):
        text = f"core0.veccore{lane} waits for cross-core flag 2 from core0.cubecore0 at mix_deadlock.cpp:10"
        assert text in failure.message
    assert (failure.file.endswith("mix_deadlock.cpp"), failure.line) == (True, 7)
    assert took < 10  # a second on an idle machine, far from the 60 s that a hang is given


@pytest.mark.parametrize("blocks", [1, 3])
def test_polling_for_what_nobody_will_write_is_a_deadlock_too(blocks: int) -> None:
    vector = kernel("poll_forever.cpp", CoreType.AIV)
    failure = run([vector], [np.zeros(16, np.int32), 1], [0], blocks).failure
    assert failure
    for block in range(blocks):
        assert f"core{block}.veccore0 polls 0x" in failure.message
    assert "in slot 0 at poll_forever.cpp:14" in failure.message


def test_scalar_atomics_of_all_blocks_add_up() -> None:
    vector = kernel("poll_forever.cpp", CoreType.AIV)
    for seed in range(5):
        simulation = run([vector], [np.zeros(16, np.int32), 0], [0], 8, perturb=seed)
        assert outputs(simulation)[0][0] == 8


def test_block_local_state_belongs_to_its_core() -> None:
    vector = kernel("state_per_core.cpp", CoreType.AIV)
    for seed in range(5):
        simulation = run([vector], [np.zeros(16, np.int32)], [0], 8, perturb=seed)
        np.testing.assert_array_equal(outputs(simulation)[0][:8], np.arange(100, 108))
