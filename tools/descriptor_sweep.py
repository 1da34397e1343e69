"""Runs every tile op with tiles at the last address of their memories that say more of themselves than they hold.

python tools/descriptor_sweep.py [--target a2a3|a5] [--only OP]... [--verbose]

Each tile of an op is moved to the end of its memory, and is then given one valid row or one valid column more than it
has; each tensor is given one row more than its tile. A run may end well, or with a fault of the kernel or of what is not
supported, in words. It must not crash, and must not be a bug of ours. With INSIGHT_TRACE_SANITIZE=address the same runs
show every access outside of a modelled memory.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from insight_trace.chips import load_chip
from insight_trace.dtypes import dtype_named
from insight_trace.errors import RequestError
from insight_trace.outcome import Fault
from insight_trace.simulate.embedded.op_script import GlobalSpec, Spec, TileSpec, run_op
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from insight_trace.simulate.embedded.toolchain import Toolchain
from tile_op_table import example_operands, families

_TYPES = ("float32", "float16", "int32", "int16", "int8", "uint8")
_CRASHED = ("touched address", "overflowed its stack", "crashed", "ended by signal")


@dataclass(frozen=True)
class Verdict:
    """How one op ended in one of its variants."""

    op: str
    variant: str
    end: str  # well, kernel, not_supported; anything else is ours to fix
    message: str = ""

    @property
    def is_ours(self) -> bool:
        return self.end not in ("well", "kernel", "not_supported")


def memory_sizes(target: str) -> dict[str, int]:
    """Bytes of each on-chip memory, by the names that operands use."""
    lines = [line.split("\t") for line in load_chip(target=target).job_lines]
    found = {
        words[1]: float(words[2]) for words in lines if len(words) > 2 and words[1].startswith("memory.")
    }
    names = {"ub": "ub", "l1": "l1", "l0a": "l0a", "l0b": "l0b", "l0c": "l0c", "bias": "bt"}
    return {space: int(found[f"memory.{name}"]) // 1000 for space, name in names.items()}


def operands_that_run(op: str, target: str, toolchain: Toolchain) -> list[Spec] | None:
    """Operands of the first element type that the op takes; None where it takes none of these."""
    for name in _TYPES:
        dtype = dtype_named(name)
        assert dtype is not None
        try:
            operands = example_operands(op, dtype, target=target)
        except RequestError:
            continue
        if run_op(op, operands, EmbeddedOptions(target=target), toolchain).simulation.failure is None:
            return operands
    return None


def variants(operands: Sequence[Spec], sizes: dict[str, int]) -> Iterator[tuple[str, list[Spec]]]:
    """The operands with one of them at its limit, in words."""
    for number, operand in enumerate(operands):
        changed: list[tuple[str, Spec]] = []
        if isinstance(operand, TileSpec):
            last = replace(operand, address=max(0, sizes[operand.space] - operand.size), dynamic=3)
            rows, cols = last.valid_rows or last.rows, last.valid_cols or last.cols
            changed = [
                (f"tile {number} at the end", last),
                (
                    f"tile {number} with a row more",
                    replace(last, valid_rows=max(rows, last.rows) + 1, valid_cols=cols),
                ),
                (
                    f"tile {number} with a column more",
                    replace(last, valid_rows=rows, valid_cols=max(cols, last.cols) + 1),
                ),
            ]
        elif isinstance(operand, GlobalSpec):
            longer = (*operand.shape[:3], operand.shape[3] + 1, operand.shape[4])
            changed = [(f"tensor {number} with a row more", replace(operand, shape=longer))]
        for words, other in changed:
            yield words, [other if i == number else one for i, one in enumerate(operands)]


def judge(op: str, words: str, operands: list[Spec], target: str, toolchain: Toolchain) -> Verdict:
    failure = run_op(op, operands, EmbeddedOptions(target=target), toolchain).simulation.failure
    if failure is None:
        return Verdict(op, words, "well")
    end = {Fault.KERNEL: "kernel", Fault.NOT_SUPPORTED: "not_supported"}.get(
        failure.fault, failure.fault.value
    )
    if any(word in failure.message for word in _CRASHED):
        end = "crash"
    return Verdict(op, words, end, failure.message)


def sweep(target: str, only: Sequence[str], toolchain: Toolchain) -> Iterator[Verdict]:
    sizes = memory_sizes(target)
    for _, ops in families():
        for op in ops:
            if only and op not in only:
                continue
            operands = operands_that_run(op, target, toolchain)
            for words, changed in variants(operands or [], sizes):
                yield judge(op, words, changed, target, toolchain)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", choices=("a2a3", "a5"), default="a2a3", help="family (a2a3)")
    parser.add_argument("--only", nargs="+", default=[], metavar="OP", help="these ops")
    parser.add_argument("--verbose", action="store_true", help="every run")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    ours = 0
    for verdict in sweep(options.target, options.only, Toolchain.find()):
        counts[verdict.end] += 1
        ours += verdict.is_ours
        if options.verbose or verdict.is_ours:
            print(f"{verdict.op}: {verdict.variant}: {verdict.end}: {verdict.message}", flush=True)
    words = " ".join(f"{end}={count}" for end, count in sorted(counts.items()))
    print(f"DESCRIPTORS {options.target} runs={counts.total()} {words}")
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main())
