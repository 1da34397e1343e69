"""Kernels whose bottleneck is known, because it was built in: the first sentence of the advice names it."""

import numpy as np
import pytest

from insight_trace.model import CoreType, Trace
from insight_trace.outcome import Simulation
from insight_trace.trace.advice import Advice, advise
from insight_trace.trace.stats import stats
from tests.simulate.dispatching import kernel, run

# Forms of the two kernels.
ONE_BUFFER, BARRIER, SCALAR_WAITS, CONFLICTS, NARROW, SMALL, SAME = (1 << bit for bit in range(7))
HAND_OVER, BOTH_WAYS = 2, 4
TILE = 4096  # elements


def _trace(simulation: Simulation) -> Trace:
    assert simulation.failure is None, simulation.failure
    return Trace(
        simulation.instructions, simulation.mhz, simulation.soc_version,
        memory=simulation.memory, launch=simulation.launch,
    )  # fmt: skip


def vector(
    steps: int = 8,
    loads: int = 1,
    additions: int = 1,
    stores: int = 1,
    form: int = 0,
    scalars: int = 0,
    more: int = 1,
    blocks: int = 1,
    **options: object,
) -> Trace:
    """A loop on vector cores; block 0 makes `more` times as many steps."""
    each = TILE * max(1, loads)
    source = np.zeros(each if form & SAME else each * steps * more * blocks, np.float32)
    result = np.zeros(TILE * max(1, stores) * blocks, np.float32)
    slots = [source, result, steps, loads, additions, stores, form, scalars, more]
    kernels = [kernel("bottleneck_vector.cpp", CoreType.AIV)]
    return _trace(run(kernels, slots, [1], blocks, timing_only=True, **options))


def cube(
    steps: int = 8,
    loads: int = 1,
    moves: int = 1,
    products: int = 1,
    stores: int = 1,
    form: int = 0,
    additions: int = 1,
    lanes: int = 0,
    blocks: int = 1,
    **options: object,
) -> Trace:
    """A loop on cube cores, each with `lanes` vector cores that take its tiles."""
    source = np.zeros(TILE * steps * max(1, loads), np.float16)
    result = np.zeros(TILE * max(1, stores), np.float32)
    slots = [source, result, steps, loads, moves, products, stores, form, additions]
    members = [CoreType.AIC] + [CoreType.AIV] * lanes
    kernels = [kernel("bottleneck_cube.cpp", member) for member in members]
    return _trace(run(kernels, slots, [1], blocks, timing_only=True, **options))


KNOWN = {
    # each pipe
    "loads": (lambda: vector(steps=12, loads=6, stores=0), "MTE2 works"),
    "stores": (lambda: vector(steps=12, loads=0, stores=6), "MTE3 works"),
    "additions": (lambda: vector(additions=40), "VECTOR works"),
    "scalar loads": (lambda: vector(scalars=10), "SCALAR works"),
    "products": (lambda: cube(products=30), "CUBE works"),
    "moves to L0": (lambda: cube(moves=30), "MTE1 works"),
    "stores of products": (lambda: cube(stores=8), "FIXPIPE works"),
    "loads of a cube core": (lambda: cube(loads=10), "MTE2 works"),
    "additions on the 950": (lambda: vector(additions=40, target="a5"), "VECTOR works"),
    "loads on the 950": (lambda: vector(steps=12, loads=6, stores=0, target="a5"), "MTE2 works"),
    # what makes a pipe's work long
    "bank conflicts": (lambda: vector(additions=40, form=CONFLICTS), "UB bank conflicts cost"),
    "empty lanes": (lambda: vector(additions=40, form=NARROW), "leave lanes empty"),
    "small loads": (lambda: vector(loads=30, form=SMALL), "GM→UB moves 32 bytes at a time"),
    # each wait
    "a buffer that is not free": (
        lambda: vector(steps=20, additions=14, stores=0, form=ONE_BUFFER),
        "MTE2 waits 48 % for VECTOR on event 0",
    ),
    "a load that comes late": (
        lambda: cube(steps=20, moves=6, products=8, stores=0, form=ONE_BUFFER),
        "MTE1 waits 47 % for MTE2",
    ),
    "barriers": (lambda: vector(steps=12, additions=24, stores=2, form=BARRIER), "at a barrier"),
    "a scalar unit that waits": (
        lambda: vector(steps=12, additions=16, form=SCALAR_WAITS),
        "SCALAR waits 84 % for VECTOR on event 7",
    ),
    "stores that are not overlapped": (
        lambda: vector(steps=12, additions=2, stores=4, form=ONE_BUFFER),
        "MTE3 makes 68 % of the critical path",
    ),
    # mixes
    "a cube core that multiplies": (
        lambda: cube(products=40, form=HAND_OVER, lanes=1),
        "CUBE of the cube core works",
    ),
    "a cube core that loads": (
        lambda: cube(loads=12, form=HAND_OVER, lanes=2),
        "MTE2 of the cube core works",
    ),
    "cube cores that load": (
        lambda: cube(loads=12, form=HAND_OVER, lanes=2, blocks=8),
        "MTE2 of the cube cores works 93 % of the time on all 8 cube cores",
    ),
    "a vector core that adds": (
        lambda: cube(form=HAND_OVER | BOTH_WAYS, lanes=1, additions=80),
        "VECTOR of the vector core makes",
    ),
    "handovers": (
        lambda: cube(steps=40, loads=0, moves=0, products=0, stores=0, form=HAND_OVER | BOTH_WAYS, lanes=1, additions=0),
        "handing over between cores takes",
    ),
    # many blocks
    "one block with five times the work": (
        lambda: vector(steps=6, loads=4, additions=10, blocks=8, more=5),
        "core0.veccore0 works 4.5 times as long as the other vector cores",
    ),
    "memory": (lambda: vector(steps=12, loads=6, stores=0, blocks=48), "48 cores share HBM"),
    "L2": (lambda: vector(steps=20, loads=6, stores=0, blocks=48, form=SAME, l2="warm"), "48 cores share L2"),
    "equal blocks": (lambda: vector(additions=40, blocks=8), "VECTOR works 85 % of the time on all 8 vector cores"),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_the_first_sentence_names_what_holds_the_kernel_up(name: str) -> None:
    make, words = KNOWN[name]
    trace = make()
    figures = stats(trace)
    advice = advise(trace, figures)
    assert words in advice[0].text, [item.text for item in advice]
    assert figures.path.cycles == figures.cycles
    _said_once(advice)


def _said_once(advice: tuple[Advice, ...]) -> None:
    """No two sentences are about the same thing at the same line."""
    texts = [item.text for item in advice]
    assert len(set(texts)) == len(texts)
    keys = [(item.topic, item.text.split(":")[0].split("%")[0], item.frame) for item in advice]
    assert len(set(keys)) == len(keys), texts


def test_there_are_enough_kernels() -> None:
    assert len(KNOWN) >= 25


def test_a_wait_for_another_core_names_its_partner() -> None:
    trace = cube(form=HAND_OVER | BOTH_WAYS, lanes=1, additions=80)
    waits = {wait.core: wait.waits_for for wait in stats(trace).waits if " of " in wait.waits_for}
    assert waits == {
        "core0.cubecore0": "MTE3 of core0.veccore0",
        "core0.veccore0": "FIXPIPE of core0.cubecore0",
    }


def test_the_path_goes_through_barriers_and_full_queues_to_the_work() -> None:
    for trace in (vector(steps=12, loads=6, stores=0), vector(steps=12, additions=24, form=BARRIER)):
        shares = {(share.pipe, share.doing): share.cycles for share in stats(trace).critical}
        worked = sum(cycles for (_, doing), cycles in shares.items() if doing == "work")
        assert worked > 0.95 * stats(trace).cycles, shares
