"""A recorded run's mix tasks, again: the same kernels, the same arguments, the same outputs."""

from pathlib import Path

from insight_trace.arguments.dispatch import from_dispatch
from insight_trace.dump.load import load_dump
from insight_trace.model import CoreType, Kernel
from insight_trace.replay.verification import Status, verify_outputs
from insight_trace.simulate.embedded.simulator import run_embedded

DUMP = "mixed_example_case2_args_dump_level2"
_FOLDER = "tests/st/a2a3/tensormap_and_ringbuffer/mixed_example/kernels"
_SOURCES = {
    0: ("aic/kernel_matmul.cpp", CoreType.AIC),
    1: ("aiv/kernel_add.cpp", CoreType.AIV),
    2: ("aiv/kernel_mul.cpp", CoreType.AIV),
    3: ("aiv/kernel_add_standalone.cpp", CoreType.AIV),
    4: ("aiv/kernel_mul_standalone.cpp", CoreType.AIV),
}


def _kernel(checkout: Path, func_id: int) -> Kernel:
    source, core_type = _SOURCES[func_id]
    return Kernel(Path(source).stem, checkout / _FOLDER / source, core_type, func_id)


def test_every_task_of_the_mixed_example_reproduces_its_outputs(
    shared_data: Path, simpler_checkout: Path
) -> None:
    dump = load_dump(shared_data / "dumps" / DUMP)
    seen = set()
    for dispatch in dump.dispatches:
        arguments = from_dispatch(dispatch, earlier=dump.earlier)
        simulation = run_embedded([_kernel(simpler_checkout, i) for i in dispatch.func_ids], arguments)
        assert simulation.failure is None, simulation.failure
        checks = verify_outputs(arguments, simulation.buffers)
        assert checks
        for check in checks:
            assert check.status is Status.VERIFIED, f"{dispatch.func_ids}: {check.text}"
        seen.add(dispatch.func_ids)
    assert seen >= {(0, 1, 2), (0, 1), (3, 4)}
