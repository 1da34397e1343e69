"""A replay as people read it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from insight_trace.arguments.slots import ReplayArguments, ReplayScalar, ReplaySlot
from insight_trace.finding import Severity, finding_lines
from insight_trace.model import Tier
from insight_trace.results import text_table

if TYPE_CHECKING:
    from insight_trace.dump.load import Dump
    from insight_trace.model import Scene
    from insight_trace.replay.replaying import Replay

_CORES_SHOWN = 3


def show_source(typed: argparse.Namespace, place: Path) -> None:
    """Says of an earlier workspace which text of its kernel is repeated."""
    from insight_trace.replay.workspace import RECORD, source_line

    if (place / RECORD).is_file() and not typed.json:
        print(f"source     {source_line(place, current=not typed.as_recorded)}")


def mismatch_text(replay: Replay) -> str:
    """What is different from the recording, and where to look next."""
    different = "; ".join(replay.differences) or "its inputs, members and blocks are those of the recording"
    return (
        "an output is not what was recorded\n"
        f"  {different}; `insight-trace why {replay.workspace} --first-mismatch` names the lines that may have done it, "
        f"`insight-trace check {replay.workspace}` looks for races and bytes that nobody wrote"
    )


def task_lines(dump: Dump, scene: Scene) -> list[str]:
    """One line per task of a dump: id, members, blocks, and which of its tensors have content."""
    from insight_trace.model import TensorArg
    from insight_trace.replay.build_dump import kernel_names

    names = {k.func_id: k.name for k in scene.kernels} | kernel_names(dump.path)
    lines = [f"{'task':<18}  {'func':<8}  {'blocks':>6}  {'payload':>9}  kernels"]
    seen: set[int] = set()
    for dispatch in dump.dispatches:
        if dispatch.task_id in seen:
            continue
        seen.add(dispatch.task_id)
        tensors = [a for a in dispatch.arguments if isinstance(a, TensorArg)]
        filled = sum(a.before is not None or a.after is not None for a in tensors)
        ids = ",".join(map(str, dispatch.func_ids)) or "?"
        called = "+".join(names.get(f, str(f)) for f in dispatch.func_ids) or dispatch.kernel
        lines.append(
            f"0x{dispatch.task_id:016x}  {ids:<8}  {dispatch.block_count:>6}  "
            f"{f'{filled}/{len(tensors)}':>9}  {called}"
        )
    return lines


def show(replay: Replay, *, check: bool) -> None:
    """Prints it; the last line is what to open."""

    job, dispatch = replay.job, replay.dispatch
    case = f" · {job.case.name}" if job.case else ""
    scene = job.scene.name if job.scene else job.label
    for i, kernel in enumerate(job.kernels):
        func = f", func {kernel.func_id}" if kernel.func_id is not None else ""
        label = f"scene      {scene}{case} · " if i == 0 else "           + "
        print(f"{label}{kernel.name} ({kernel.core_type}{func}) · {_short(kernel.written or kernel.source)}")
    if dispatch is not None:
        inferred = f" · inferred: {', '.join(dispatch.inferred)}" if dispatch.inferred else ""
        blocks = f"{replay.arguments.block_count} block{'s' if replay.arguments.block_count > 1 else ''}"
        print(f"dispatch   {dispatch.dispatch_id} · task 0x{dispatch.task_id:016x} · {blocks}{inferred}")
    else:
        print(f"arguments  {job.origin}")
    for line in slot_table(replay.arguments):
        print(f"           {line}")
    for warning in replay.warnings:
        print(f"warning    {warning}")
    if replay.simulation is not None and replay.simulation.printed:
        print(replay.simulation.printed, end="", file=sys.stderr)
    _show_result(replay)
    shown = [finding for finding in replay.findings if check or finding.severity is Severity.ERROR]
    lines = [line for finding in shown for line in finding_lines(finding)]
    for line in lines or (["nothing to remark"] if check else []):
        print(f"found      {line}")
    if replay.simulation is not None:
        _show_pipes(replay)
    if replay.shadow is not None:
        from insight_trace.debug.shadow import shadow_lines

        print("\n".join(shadow_lines(replay.shadow)))
    if replay.directory is None:
        print(f"workspace  {replay.workspace}")
        return
    print(f"insight    import {replay.to_import}: the folder by itself has no Source and no Details")
    print(f"open       {replay.directory}/")


def _show_result(replay: Replay) -> None:
    from insight_trace.trace.text import around_lines

    simulation = replay.simulation
    if simulation is not None:
        micros = simulation.cycles / simulation.mhz
        print(
            f"simulated  {simulation.cycles:,} cycles · {micros:.3f} us at {simulation.mhz:.0f} MHz · "
            f"{simulation.soc_version} · {len(simulation.instructions):,} instructions · {_estimates(replay)}"
        )
        if trusted := replay.confidence:
            print(f"expect     {trusted.text}")
        for line in around_lines(simulation.cycles, simulation.mhz, simulation.launch, simulation.memory):
            print(line)
    from insight_trace.replay.verification import Status

    groups: dict[str, list[str]] = {}
    for check in replay.checks:
        groups.setdefault(str(check.status), []).append(check.text)
    for status in Status:
        if status in groups:
            print(f"{status:<10} {' · '.join(groups[status])}")


def _estimates(replay: Replay) -> str:
    from insight_trace.simulate.embedded.estimates import estimate_share
    from insight_trace.simulate.embedded.simulator import chip_that_ran

    assert replay.simulation is not None
    return estimate_share(replay.simulation, chip_that_ran(replay.simulation, replay.preset)).text


def _show_pipes(replay: Replay) -> None:
    from insight_trace.model import Trace
    from insight_trace.recording.busy import pipes
    from insight_trace.recording.pipes import VECTOR_LANES

    assert replay.simulation is not None
    by_core: dict[str, list[str]] = {}
    lanes = {pipe.name for pipe in VECTOR_LANES}  # VECTOR stands for them
    for pipe in pipes(Trace(replay.simulation.instructions, replay.simulation.mhz)):
        if pipe.pipe in lanes:
            continue
        share = pipe.busy / max(1, pipe.busy + pipe.waiting + pipe.idle)
        by_core.setdefault(pipe.core, []).append(f"{pipe.pipe} {share:.0%}")
    for core, shares in list(by_core.items())[:_CORES_SHOWN]:
        print(f"pipes      {'  '.join(shares)} · {core}")


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(Path(*path.parts[-3:]))


# --- the slot table that people read before a run


class SlotRow(Struct, frozen=True):
    """One line of the table, each cell as it is printed."""

    slot: int
    kind: str
    dtype: str
    shape: str
    value: str
    content: str
    name: str


def slot_rows(arguments: ReplayArguments) -> tuple[SlotRow, ...]:
    return tuple(_row(item) for item in arguments.slots)


def slot_table(arguments: ReplayArguments) -> list[str]:
    """The table's lines, aligned, heading first."""
    heading = ("slot", "kind", "dtype", "shape", "value", "content")
    rows = [(str(r.slot), r.kind, r.dtype, r.shape, r.value, r.content) for r in slot_rows(arguments)]
    return text_table(heading, rows, left=range(1, len(heading)))


def _row(item: ReplaySlot) -> SlotRow:
    if isinstance(item, ReplayScalar):
        content = f"{_content(item)}, bits {item.bits:#x}"
        return SlotRow(item.slot, "scalar", item.dtype.short, "", _number(item.value), content, item.name)
    shape = "[" + ",".join(map(str, item.shape)) + "]"
    if not item.is_contiguous:
        shape += " strides [" + ",".join(map(str, item.strides)) + "]"
    if item.start_offset:
        shape += f" at {item.start_offset}"
    return SlotRow(item.slot, "tensor", item.dtype.short, shape, "", _content(item), item.name)


def _content(item: ReplaySlot) -> str:
    if item.tier is Tier.OUTPUT or not item.origin:
        return item.tier.value
    return f"{item.tier.value}, {item.origin}"


def _number(value: int | float | bool) -> str:
    if isinstance(value, float):
        return f"{value:.9g}"
    return str(value).lower()
