"""How long `time_many` takes: variants of a kernel of about 500 instructions, and how many of them single runs confirm.

    python benchmarks/time_many.py [--variants 1000] [--confirm 20]

CPU is that of this process and all that it started. Exits 1 if a single run gives other cycles.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

KERNEL = Path(__file__).resolve().parent.parent / "examples" / "kernels" / "rounds.cpp"


def cpu() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def single(candidate: object) -> int:
    """The cycles of a run alone."""
    from insight_trace.api.timing import Candidate, _values
    from insight_trace.program.kernel_file import KernelFile, plan_kernel
    from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

    assert isinstance(candidate, Candidate)
    macros = tuple(f"{name}={value}" for name, value in candidate.macros.items())
    planned = plan_kernel(
        KernelFile(Path(candidate.kernel), defines=macros), _values(candidate), blocks=candidate.blocks
    )
    how = EmbeddedOptions(candidate.soc_version, timing_only=True, launch="kernel")
    return run_embedded(planned.kernels, planned.arguments, how).cycles


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variants", type=int, default=1000)
    parser.add_argument("--confirm", type=int, default=20, help="single runs to compare with")
    options = parser.parse_args()
    from insight_trace import time_many, variants

    sizes = [f"f32[{size}]" for size in (16384, 24576, 32768, 65536)]
    works = range(4, 4 + -(-options.variants // 20))
    made = variants(KERNEL, {"x": sizes, "y": "f32[65536]", "rounds": range(2, 7), "work": works})[
        : options.variants
    ]
    time_many(made[:1])  # compiled, as after the first
    began, used = time.perf_counter(), cpu()
    found = time_many(made)
    took, used = time.perf_counter() - began, cpu() - used
    each = sum(one.instructions for one in found.times) / len(made)
    print(f"{found.summary()}; {each:,.0f} instructions each on average")
    print(
        f"{took:.2f} s by the clock, {used:.2f} s of CPU: {1000 * used / len(made):.2f} ms of CPU each "
        f"({1000 * used / sum(one.instructions for one in found.times) * 500:.2f} ms for 500 instructions)"
    )
    step = max(1, len(made) // max(1, options.confirm))
    checked = list(range(0, len(made), step))[: options.confirm]
    differ = [place for place in checked if single(made[place]) != found.times[place].cycles]
    print(f"{len(checked) - len(differ)} of {len(checked)} single runs give the same cycles")
    return 1 if differ or any(one.failure for one in found.times) else 0


if __name__ == "__main__":
    sys.exit(main())
