"""Whether a trace shows the kernel at work, or one that found nothing to do.

A control tensor of zeros makes a loop turn no time, and the trace still looks fine. The `.pto` says how
many tile operations each kind of core must execute; a core that shows fewer instructions is named, with
the arguments that may be the cause. A kernel that only moves data is judged by its transfers.
"""

from __future__ import annotations

from insight_trace.model import CoreType
from insight_trace.profile.kernel_runner import CorePipes
from insight_trace.ptoas.planned_kernel import BufferArg, Content, ProfileKernel, ValueArg
from insight_trace.ptoas.pto_facts import CoreWork

# The 950's vector core shows a tile operation as a function that is pushed to its own pipes.
_WORK = {"CUBE": ("CUBE",), "VECTOR": ("VECTOR", "PUSHQ")}
_TRANSFERS = ("MTE1", "MTE2", "MTE3", "FIXPIPE")
_GUESSED = frozenset({"loop bound", "condition", "no use of it seen", "index", "valid length of a tile"})


def _count(core: CorePipes, pipes: tuple[str, ...]) -> int:
    return sum(core.instructions.get(pipe, 0) for pipe in pipes)


def _core_complaint(core: CorePipes, work: CoreWork, pipe: str, moves_only: bool) -> str:
    if moves_only:
        if _count(core, _TRANSFERS) == 0:
            return f"{core.core} moved no data"
        return ""
    done = _count(core, _WORK[pipe])
    if work.certain and done < work.certain:
        return (
            f"{core.core} executed {done} {pipe} instructions where the .pto asks for {work.certain} at least"
        )
    if work.written and not done:
        return f"{core.core} executed no {pipe} instruction"
    if not work.written and not done and _count(core, _TRANSFERS) == 0:
        return f"{core.core} did nothing but scalar and sync work"
    return ""


def suspects(kernel: ProfileKernel) -> tuple[str, ...]:
    """Arguments whose made-up value may have kept the kernel from its work, as flags to set them."""
    found = []
    for argument in kernel.arguments:
        if isinstance(argument, BufferArg):
            zero = argument.content is Content.ZERO and argument.why.startswith("use not seen")
            if zero or argument.content in (Content.CONSTANT, Content.INDEX):
                found.append(f"--input {argument.label}=FILE")
        elif isinstance(argument, ValueArg) and argument.why in _GUESSED and not argument.per_lane:
            found.append(f"--scalar {argument.label}=VALUE")
    return tuple(found)


def near_empty(kernel: ProfileKernel, pipes: tuple[CorePipes, ...]) -> str:
    """Why a trace counts as near-empty, core by core; "" for one that shows work."""
    if not kernel.has_operations:
        return "empty kernel: its .pto has no tile operation"
    complaints = []
    for core in pipes:
        cube = "cube" in core.core
        work, pipe = (kernel.cube, "CUBE") if cube else (kernel.vector, "VECTOR")
        complaints.append(_core_complaint(core, work, pipe, kernel.moves_only))
    expected = {CoreType.AIC: ("cube",), CoreType.AIV: ("vec",), CoreType.MIX: ("cube", "vec")}[kernel.kind]
    if pipes:
        for side in expected:
            if not any(side in core.core for core in pipes):
                complaints.append(f"no {side} core is in the trace")
    complaints = [complaint for complaint in complaints if complaint]
    if not complaints:
        return ""
    flags = suspects(kernel)
    remedy = f"; perhaps set {' or '.join(flags[:4])}" if flags else ""
    return f"degenerate: {'; '.join(complaints)}{remedy}"
