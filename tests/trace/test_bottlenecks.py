"""Kernels whose bottleneck is known, because it was built in: the first sentence of the advice names it."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from insight_trace.model import CoreType, Kernel, Trace
from insight_trace.outcome import Simulation
from insight_trace.trace.advice import Advice, advise
from insight_trace.trace.stats import stats
from tests.simulate.dispatching import kernel, run

# Forms of the two kernels.
ONE_BUFFER, BARRIER, SCALAR_WAITS, CONFLICTS, NARROW, SMALL, SAME, FLAG_END = (1 << bit for bit in range(8))
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
    "small loads": (lambda: vector(loads=30, form=SMALL), "GM→UB moves 32 bytes at a time.*one transfer for all"),
    # each wait
    "a buffer that is not free": (
        lambda: vector(steps=20, additions=14, stores=0, form=ONE_BUFFER),
        r"MTE2 waits \d+ % for VECTOR on event 0 at .*: a second buffer",
    ),
    "a load that comes late": (
        lambda: cube(steps=20, moves=6, products=8, stores=0, form=ONE_BUFFER),
        r"MTE2 waits \d+ % for MTE1 .*: a second buffer",
    ),
    "barriers": (lambda: vector(steps=12, additions=24, stores=2, form=BARRIER), "at a barrier"),
    "a scalar unit that waits": (
        lambda: vector(steps=12, additions=16, form=SCALAR_WAITS),
        r"SCALAR waits \d+ % for VECTOR on event 7",
    ),
    "stores that are not overlapped": (
        lambda: vector(steps=12, additions=2, stores=4, form=ONE_BUFFER),
        r"VECTOR waits \d+ % for MTE3 .*: a second buffer for each",
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
        r"MTE2 of the cube cores works \d+ % of the time on all 8 cube cores",
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
        r"core0.veccore0 works \d.\d times as long as the other vector cores",
    ),
    "memory": (lambda: vector(steps=12, loads=6, stores=0, blocks=48), "48 cores share HBM"),
    "L2": (lambda: vector(steps=20, loads=6, stores=0, blocks=48, form=SAME, l2="warm"), "48 cores share L2"),
    "equal blocks": (lambda: vector(additions=40, blocks=8), r"VECTOR works \d+ % of the time on all 8 vector cores"),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_the_first_sentence_names_what_holds_the_kernel_up(name: str) -> None:
    make, words = KNOWN[name]
    trace = make()
    figures = stats(trace)
    advice = advise(trace, figures)
    assert re.search(words, advice[0].text), [item.text for item in advice]
    assert figures.path.cycles == figures.cycles
    _said_once(advice)
    for item in advice:
        assert item.frame, item
        assert item.row >= 0, item
        assert item.begin < item.end <= figures.cycles + 1, item
        assert item.saves <= figures.cycles


def _said_once(advice: tuple[Advice, ...]) -> None:
    """No two sentences are about the same thing at the same line."""
    texts = [item.text for item in advice]
    assert len(set(texts)) == len(texts)
    keys = [(item.topic, item.text.split(":")[0].split("%")[0], item.frame) for item in advice]
    assert len(set(keys)) == len(keys), texts


def test_there_are_enough_kernels() -> None:
    assert len(KNOWN) >= 25
    assert len(CHANGED) >= 15


@pytest.mark.parametrize("form", [0, ONE_BUFFER, CONFLICTS, SCALAR_WAITS])
def test_how_a_kernel_ends_does_not_change_its_path_or_its_advice(form: int) -> None:
    """A barrier of all pipes, or a flag of the last store to the scalar unit behind the flags of the loop."""
    found = []
    for end in (0, FLAG_END):
        trace = vector(steps=12, additions=6, stores=2, form=form | end)
        figures = stats(trace)
        shares = {(share.pipe, share.doing): share.cycles for share in figures.critical if share.cycles > 20}
        found.append((shares, [(a.topic, a.saves, a.row) for a in advise(trace, figures)]))
    assert {key: pytest.approx(value, abs=4) for key, value in found[0][0].items()} == found[1][0]
    for one, other in zip(found[0][1], found[1][1], strict=True):
        assert (one[0], one[2]) == (other[0], other[2])
        assert one[1] == pytest.approx(other[1], abs=4)


# What advice is about, the kernel as it is, and the kernel in which it was followed.
CHANGED: dict[str, tuple[str, Callable[[], Trace], Callable[[], Trace]]] = {
    f"{topic}: {text}": (topic, partial(kind, form=form, **options), partial(kind, form=after, **options))
    for topic, text, kind, options, form, after in (
        ("buffer", "much to add", vector, {"steps": 20, "additions": 14, "stores": 0}, ONE_BUFFER, 0),
        ("buffer", "little to add", vector, {"steps": 20, "additions": 8, "stores": 0}, ONE_BUFFER, 0),
        ("buffer", "a store", vector, {"steps": 20, "additions": 10}, ONE_BUFFER, 0),
        ("buffer", "many stores", vector, {"steps": 12, "additions": 2, "stores": 4}, ONE_BUFFER, 0),
        ("buffer", "two loads", vector, {"steps": 12, "loads": 2, "additions": 20}, ONE_BUFFER, 0),
        ("buffer", "on the 950", vector, {"steps": 16, "additions": 14, "target": "a5"}, ONE_BUFFER, 0),
        ("buffer", "eight blocks", vector, {"steps": 12, "additions": 14, "blocks": 8}, ONE_BUFFER, 0),
        ("buffer", "cube, moves", cube, {"steps": 20, "moves": 6, "products": 8, "stores": 0}, ONE_BUFFER, 0),
        ("buffer", "cube, stores", cube, {"steps": 12, "moves": 2, "products": 6}, ONE_BUFFER, 0),
        ("buffer", "cube, loads", cube, {"steps": 12, "loads": 2, "moves": 4, "products": 10}, ONE_BUFFER, 0),
        ("barrier", "much to add", vector, {"steps": 12, "additions": 24, "stores": 2}, BARRIER, 0),
        ("barrier", "little to add", vector, {"steps": 12, "additions": 8}, BARRIER, 0),
        ("barrier", "and one buffer", vector, {"steps": 12, "additions": 14}, BARRIER | ONE_BUFFER, 0),
        ("scalar-wait", "much to add", vector, {"steps": 12, "additions": 16}, SCALAR_WAITS, 0),
        ("scalar-wait", "little to add", vector, {"steps": 12, "additions": 6}, SCALAR_WAITS, 0),
        ("bank", "much to add", vector, {"additions": 40}, CONFLICTS, 0),
        ("bank", "little to add", vector, {"additions": 10}, CONFLICTS, 0),
    )
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
def test_the_advised_change_saves_what_was_said(name: str) -> None:
    topic, as_it_is, followed = CHANGED[name]
    before = as_it_is()
    figures = stats(before)
    advice = advise(before, figures)
    assert advice[0].topic in (topic, "bound"), [item.text for item in advice]
    assert advice[0].simulated
    saved = figures.cycles - stats(followed()).cycles
    assert advice[0].saves == pytest.approx(saved, rel=0.25), advice[0].text


def test_the_first_load_before_the_other_descriptors_saves_what_was_said(tmp_path: Path) -> None:
    source = (Path(__file__).parents[2] / "examples" / "kernels" / "vector_add.cpp").read_text()
    later = source.replace(
        "*left = elements(args[0]), *right = elements(args[1]), *out = elements(args[2]);",
        "*left = elements(args[0]), *right = nullptr, *out = nullptr;",
    )
    for name, slot in (("right", 1), ("out", 2)):
        use = next(line for line in later.splitlines() if f"({name} + done" in line)
        later = later.replace(use, "")
        read = f"        if (!{name}) {name} = elements(args[{slot}]);\n{use}\n"
        before = "TLOAD(b," if name == "right" else "TSTORE(result,"
        later = later.replace(f"        {before}", f"{read}        {before}")
    totals, said = [], 0
    for number, text in enumerate((source, later)):
        path = tmp_path / f"add{number}.cpp"
        path.write_text(text)
        values = np.ones(4096, np.float32)
        run_ = run([Kernel("add", path, CoreType.AIV)], [values, values, np.zeros_like(values)], [2])
        assert (run_.outputs[2] == 2).all()
        trace = _trace(run_)
        figures = stats(trace)
        totals.append(figures.cycles)
        if number == 0:
            first = advise(trace, figures)[0]
            assert first.topic == "prologue"
            assert first.frame.endswith("add0.cpp:43")
            said = first.saves
    assert said == pytest.approx(totals[0] - totals[1], rel=0.25)


def test_a_kernel_with_one_tile_is_not_advised_to_have_another() -> None:
    trace = vector(steps=1, additions=20, stores=1, form=ONE_BUFFER)
    assert not [item for item in advise(trace, stats(trace)) if item.topic in ("buffer", "barrier")]


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
