"""Programs of single hardware instructions on the modelled cores, without a kernel and without a compiler run.

What one instruction of a size costs, and how instructions, flags and barriers of a core meet, is asked here;
the runner executes the steps through the same calls that compiled kernels make.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from insight_trace.chips import instruction_pipes
from insight_trace.errors import JobError, RequestError
from insight_trace.model import CoreType
from insight_trace.outcome import Simulation
from insight_trace.simulate.embedded.checking import findings_of
from insight_trace.simulate.embedded.job_files import job_directory
from insight_trace.simulate.embedded.memory import GlobalMemory
from insight_trace.simulate.embedded.op_script import STEP_SIZE, pack_step
from insight_trace.simulate.embedded.records import load_instructions
from insight_trace.simulate.embedded.runner import run_job
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, chip_of, job_options, launch_of
from insight_trace.simulate.embedded.toolchain import Toolchain

_INSTRUCTION, _SET, _WAIT, _BARRIER, _SIGNAL, _AWAIT = range(3, 9)
_FROM_GM = 0x1000  # where transfers start in the one buffer there is: aligned, as tensors are


class On(IntEnum):
    """Pipes as instructions name them."""

    S = 0
    V = 1
    M = 2
    MTE1 = 3
    MTE2 = 4
    MTE3 = 5
    ALL = 6
    FIX = 7


@dataclass(frozen=True)
class Step:
    """One instruction of a program; the functions below make them."""

    kind: int
    a: int = 0
    b: int = 0
    c: int = 0
    number: int = 0
    touches_gm: bool = False

    def packed(self, buffer: int = 0) -> bytes:
        """For the runner; transfers begin in the buffer at this address."""
        gm = self.a + (buffer if self.touches_gm else 0)
        return pack_step(self.kind, 0, gm, self.b, self.c, self.number)


def _number(name: str) -> int:
    try:
        return instruction_pipes()[name][0]
    except KeyError:
        raise RequestError(f"there is no instruction '{name}'") from None


def vector(repeat: int, name: str = "VADDS") -> Step:
    """On whole repeats at one place, so that no banks conflict."""
    return Step(_INSTRUCTION, 0, repeat, 0, _number(name))


def transfer(name: str, size: int, bursts: int = 1, *, offset: int = 0) -> Step:
    """Between GM and the chip: `bursts` pieces of `size` bytes, from `offset` bytes past an aligned place."""
    return Step(_INSTRUCTION, _FROM_GM + offset, bursts, size, _number(name), touches_gm=True)


def move(name: str, size: int, repeat: int = 1) -> Step:
    """On the chip: `repeat` pieces of `size` bytes."""
    # the vector pipe is told the whole, the others a piece
    whole = size * repeat if instruction_pipes()[name][1] == "V" else size
    return Step(_INSTRUCTION, 0, repeat, whole, _number(name))


def multiply(m: int, k: int, n: int) -> Step:
    """Of half-precision matrices."""
    return Step(_INSTRUCTION, m, k, n, _number("MMAD"))


def scalar(cycles: int) -> Step:
    return Step(_INSTRUCTION, 0, 0, cycles * 1000, _number("NOP"))


def set_flag(source: On, target: On, event: int = 0) -> Step:
    return Step(_SET, source, target, event)


def wait_flag(source: On, target: On, event: int = 0) -> Step:
    return Step(_WAIT, source, target, event)


def barrier(pipe: On) -> Step:
    return Step(_BARRIER, pipe)


def signal(pipe: On, flag: int, mode: int = 2) -> Step:
    """A flag for other cores: mode 0 all of a kind, 1 the vector cores of a block, 2 cube to vector or back."""
    return Step(_SIGNAL, pipe, 1 | mode << 4 | flag << 8)


def wait_core(flag: int) -> Step:
    return Step(_AWAIT, On.S, flag)


def run_program(
    *programs: Sequence[Step],
    kinds: Sequence[CoreType] = (),
    blocks: int = 1,
    options: EmbeddedOptions | None = None,
    toolchain: Toolchain | None = None,
) -> Simulation:
    """Runs one program per core of a block, the same in every block; vector cores unless `kinds` says otherwise."""
    options = options or EmbeddedOptions()
    toolchain = toolchain or Toolchain.find()
    soc = chip_of(options)
    kinds = kinds or [CoreType.AIV] * len(programs)
    memory = GlobalMemory()
    args = memory.reserve("the args array", 64 * len(programs))
    scripts = [memory.reserve(f"program {i}", 8 + STEP_SIZE * len(p)) for i, p in enumerate(programs)]
    reach = max([0, *(s.a + s.b * s.c for p in programs for s in p if s.touches_gm)])
    buffer = memory.reserve("the transfers' buffer", reach)
    cores, core_lines = [], []
    for block in range(blocks):
        vectors = 0
        for i, kind in enumerate(kinds):
            cube = kind is CoreType.AIC
            lane = 0 if cube else vectors
            vectors += not cube
            cores.append(f"core{block}.cubecore0" if cube else f"core{block}.veccore{lane}")
            where = args.address + 64 * i
            kind_name = "aic" if cube else "aiv"
            core_lines.append(f"core\t0\t{kind_name}\t{block}\t{blocks}\t{lane}\t{where}\t{cores[-1]}")
    with job_directory() as directory:
        image = directory / "gm"
        memory.create(image)
        for i, (program, script) in enumerate(zip(programs, scripts, strict=True)):
            memory.write(args, 64 * i, struct.pack("<Q", script.address))
            packed = [step.packed(buffer.address) for step in program]
            memory.write(script, 0, struct.pack("<Q", len(program)) + b"".join(packed))
        lines = [
            *job_options(soc, options, directory, usual_l2="warm"),
            *memory.job_lines(image),
            "kernel\tbuiltin:op_script\top_script",
            *core_lines,
        ]
        result = run_job(toolchain.runner(), directory, lines, options.seconds)
        if not result.told:
            raise JobError(str(result.failure))
        instructions = load_instructions(directory / "records", result.sites, tuple(cores))
        return Simulation(
            outputs={},
            instructions=instructions,
            mhz=soc.mhz,
            soc_version=soc.name,
            failure=result.failure,
            findings=findings_of(result, instructions, ()),
            memory=result.memory,
            launch=launch_of(result, soc, options),
        )


def time_instruction(step: Step, options: EmbeddedOptions | None = None) -> int:
    """Cycles of one instruction that finds its core idle."""
    cube = dict(instruction_pipes().values())[step.number] in ("M", "MTE1", "FIX")
    run = run_program([step], kinds=[CoreType.AIC if cube else CoreType.AIV], options=options)
    columns = run.instructions
    return int(columns.end[0] - columns.start[0])


def time_move(name: str, size: int, options: EmbeddedOptions | None = None) -> int:
    """Cycles that one data movement of `size` bytes takes, by the instruction's name."""
    return time_instruction(transfer(name, size) if "OUT" in name else move(name, size), options)
