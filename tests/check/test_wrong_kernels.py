"""Every kernel that is wrong on purpose gets exactly its finding, at its line; its fixed twin gets none."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from insight_trace.arguments.arrays import from_arrays
from insight_trace.finding import Finding, Severity
from insight_trace.model import CoreType, Kernel
from insight_trace.outcome import Simulation
from insight_trace.simulate.embedded.checked_run import run_checked
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from tests.check import wrong_cube_kernels, wrong_mix_kernels, wrong_vector_kernels
from tests.check.wrong_vector_kernels import WrongKernel
from tests.simulate.kernel_text import HEAD

_MARK = re.compile(r"//([!?]) ([a-z-]+)")
_SUITES = {
    "vector": (CoreType.AIV, "", wrong_vector_kernels.VECTOR),
    "cube": (CoreType.AIC, wrong_cube_kernels.HEAD, wrong_cube_kernels.CUBE),
    "mix": (None, wrong_mix_kernels.HEAD, wrong_mix_kernels.MIX),
    "blocks": (CoreType.AIV, "", wrong_mix_kernels.BLOCKS),
}
# what ends the run
_ENDS = {"deadlock", "wait-without-set", "on-chip-out-of-bounds", "gm-out-of-bounds", "contract"}
CASES = [
    pytest.param(suite, kernel, target, id=f"{suite}-{target}-{kernel.name.replace(' ', '-')}")
    for suite, (_, _, kernels) in _SUITES.items()
    for kernel in kernels
    for target in kernel.targets
]


@cache
def _source(folder: Path, suite: str, target: str) -> tuple[Path, dict[tuple[str, bool], tuple[int, int]]]:
    """All kernels of a suite in one file, chosen by the scalar in slot 3; and the lines of each."""
    _, head, kernels = _SUITES[suite]
    lines = (HEAD + head).splitlines()
    places = {}
    calls = []
    chosen = [(kernel, fixed) for kernel in kernels if target in kernel.targets for fixed in (False, True)]
    for number, (kernel, fixed) in enumerate(chosen):
        lines.append(f"static __aicore__ void kernel_{number}(__gm__ int64_t *args) {{")
        begin = len(lines) + 1
        lines += kernel.lines(fixed)
        places[kernel.name, fixed] = (number, begin)
        lines.append("}")
        calls.append(f"    if (args[3] == {number}) return kernel_{number}(args);")
    lines += ['extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {', *calls, "}"]
    path = folder / f"{suite}_{target}.cpp"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path, places


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("wrong")


def _run(
    folder: Path, suite: str, kernel: WrongKernel, target: str, fixed: bool, orders: int = 0
) -> Simulation:
    core_type, _, _ = _SUITES[suite]
    path, places = _source(folder, suite, target)
    number, _ = places[kernel.name, fixed]
    vector = core_type is CoreType.AIV
    slots = {
        0: np.ones(64 if vector else 1024, np.float32 if vector else np.float16),
        1: np.ones(64 if vector else 1024, np.float32 if vector else np.float16),
        2: np.zeros(64 * kernel.blocks if vector else 1024, np.float32),
        3: number,
        4: 0 if suite in ("vector", "cube") else np.zeros(8192, np.float32),
    }
    types = [core_type] if core_type else [CoreType.AIC, *[CoreType.AIV] * kernel.lanes]
    kernels = [Kernel("wrong", path, each) for each in types]
    arguments = from_arrays(slots, block_count=kernel.blocks)
    return run_checked(kernels, arguments, EmbeddedOptions(target=target), orders=orders)


def _line(finding: Finding) -> int:
    """Where it stands; 0 for what concerns an argument."""
    return finding.places[-1].line if finding.places else 0


def _serious(result: Simulation) -> list[Finding]:
    return [finding for finding in result.findings if finding.severity is not Severity.NOTE]


@pytest.mark.parametrize(("suite", "kernel", "target"), CASES)
def test_a_wrong_kernel_gets_its_finding_at_its_line(folder, suite, kernel, target):
    result = _run(folder, suite, kernel, target, fixed=False)
    _, places = _source(folder, suite, target)
    _, begin = places[kernel.name, False]
    must, may = set(), set()
    for number, line in enumerate(kernel.lines(False), begin):
        for how, category in _MARK.findall(line):
            (must if how == "!" else may).add((category, number))
    assert result.failure is None or {category for category, _ in must} & _ENDS, str(result.failure)
    found = {(finding.category, _line(finding)) for finding in result.findings}
    told = {(finding.category, _line(finding)) for finding in _serious(result)}
    assert must <= found, [str(finding) for finding in result.findings]
    assert told <= must | may, [str(finding) for finding in result.findings]


@pytest.mark.parametrize(("suite", "kernel", "target"), CASES)
def test_a_fixed_kernel_gets_none(folder, suite, kernel, target):
    result = _run(folder, suite, kernel, target, fixed=True)
    assert result.failure is None, str(result.failure)
    assert not _serious(result), [str(finding) for finding in _serious(result)]
    if any("//! unread-write" in line for line in kernel.lines(False)):  # a note
        assert "unread-write" not in {finding.category for finding in result.findings}


def test_other_orders_of_the_pipes_keep_to_unit_flags(folder):
    name = "a store that takes no part in the unit flag of its product"
    kernel = next(one for one in wrong_cube_kernels.CUBE if one.name == name)
    for fixed in (True, False):
        result = _run(folder, "cube", kernel, "a2a3", fixed, orders=6)
        changes = [finding for finding in result.findings if finding.category == "order-dependent"]
        assert bool(changes) is not fixed, [str(finding) for finding in result.findings]
