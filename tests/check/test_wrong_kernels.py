"""Every kernel that is wrong on purpose gets exactly its finding, at its line; its mended twin gets none."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from insight_trace.arguments.given import from_arrays
from insight_trace.model import CoreType, Finding, Kernel, Severity, Simulation
from insight_trace.simulate.embedded.checked_run import run_checked
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from tests.check import wrong_cube_kernels, wrong_vector_kernels
from tests.check.wrong_vector_kernels import WrongKernel
from tests.simulate.kernel_text import HEAD

_MARK = re.compile(r"//([!?]) ([a-z-]+)")
_SUITES = {
    "vector": (CoreType.AIV, "", wrong_vector_kernels.VECTOR),
    "cube": (CoreType.AIC, wrong_cube_kernels.HEAD, wrong_cube_kernels.CUBE),
}
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
    chosen = [(kernel, mended) for kernel in kernels if target in kernel.targets for mended in (False, True)]
    for number, (kernel, mended) in enumerate(chosen):
        lines.append(f"static __aicore__ void kernel_{number}(__gm__ int64_t *args) {{")
        begin = len(lines) + 1
        lines += kernel.lines(mended)
        places[kernel.name, mended] = (number, begin)
        lines.append("}")
        calls.append(f"    if (args[3] == {number}) return kernel_{number}(args);")
    lines += ['extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {', *calls, "}"]
    path = folder / f"{suite}_{target}.cpp"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path, places


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("wrong")


def _run(folder: Path, suite: str, kernel: WrongKernel, target: str, mended: bool) -> Simulation:
    core_type, _, _ = _SUITES[suite]
    path, places = _source(folder, suite, target)
    number, _ = places[kernel.name, mended]
    kind = np.float16 if core_type is CoreType.AIC else np.float32
    size = 1024 if core_type is CoreType.AIC else 64
    slots = {
        0: np.ones(size, kind),
        1: np.ones(size, kind),
        2: np.zeros(size, np.float32),
        3: number,
        4: 0,
    }
    options = EmbeddedOptions(target=target)
    result = run_checked([Kernel("wrong", path, core_type)], from_arrays(slots), options)
    assert result.failure is None, str(result.failure)
    return result


def _serious(result: Simulation) -> list[Finding]:
    return [finding for finding in result.findings if finding.severity is not Severity.NOTE]


@pytest.mark.parametrize(("suite", "kernel", "target"), CASES)
def test_a_wrong_kernel_gets_its_finding_at_its_line(folder, suite, kernel, target):
    result = _run(folder, suite, kernel, target, mended=False)
    _, places = _source(folder, suite, target)
    _, begin = places[kernel.name, False]
    must, may = set(), set()
    for number, line in enumerate(kernel.lines(False), begin):
        for how, category in _MARK.findall(line):
            (must if how == "!" else may).add((category, number))
    found = {(finding.category, finding.places[-1].line) for finding in result.findings}
    told = {(finding.category, finding.places[-1].line) for finding in _serious(result)}
    assert must <= found, [str(finding) for finding in result.findings]
    assert told <= must | may, [str(finding) for finding in result.findings]


@pytest.mark.parametrize(("suite", "kernel", "target"), CASES)
def test_a_mended_kernel_gets_none(folder, suite, kernel, target):
    result = _run(folder, suite, kernel, target, mended=True)
    assert not _serious(result), [str(finding) for finding in _serious(result)]
