"""Replay one recorded dispatch and write what MindStudio Insight opens.

insight-trace replay SCENE --case C --func-id 1 --dump-dir D --dispatch-id 5
insight-trace replay SCENE --case C --kernel SF --recipe
insight-trace replay WORKSPACE                      repeats an earlier replay
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from insight_trace.model import Simulation
    from insight_trace.replay.request import ReplayRequest
    from insight_trace.replay.running import Replay

_CORES_SHOWN = 3

RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scene", type=Path, metavar="SCENE", help="the scene module, or an earlier workspace")
    what = parser.add_argument_group("what to replay")
    what.add_argument("--case", metavar="C", help="case of the scene (default: its first)")
    what.add_argument("--func-id", metavar="A[,B,C]", help="the kernel, or the members of a mix")
    what.add_argument("--kernel", metavar="NAME", help="the kernel by its name or its source's stem")
    what.add_argument("--kernel-source", type=Path, metavar="PATH", help="the kernel by its source file")
    source = parser.add_argument_group("where its arguments come from (none of these: a capture of the case)")
    source.add_argument("--dump-dir", type=Path, metavar="D", help="a dump; needs --func-id")
    source.add_argument("--dispatch-id", type=int, metavar="K")
    source.add_argument("--task-id", metavar="T", help="a task of the dump, hex or decimal")
    source.add_argument("--arg-spec", type=Path, metavar="F", help="a JSON file of arguments")
    source.add_argument("--recipe", action="store_true", help="made from the case's parameters")
    source.add_argument("--set-arg", action="append", default=[], metavar="SLOT=VALUE")
    source.add_argument("--restore-arg", action="append", default=[], metavar="SLOT")
    source.add_argument("--fill", choices=("zero", "random"), help="content of tensors that have none")
    source.add_argument("--seed", type=int, help="of --fill random")
    how = parser.add_argument_group("how to run")
    how.add_argument("--simulator", default="auto", choices=("auto", "embedded", "msprof"))
    how.add_argument("--backend", choices=("simpler", "ptoas"), default="simpler", help=argparse.SUPPRESS)
    how.add_argument("--target", choices=("a2a3", "a5"))
    how.add_argument("--platform", metavar="P", help="a2a3, a2a3sim, a5 or a5sim")
    how.add_argument(
        "--any-target", action="store_true", help="also on a target that the scene does not name"
    )
    how.add_argument("--preset", default="device", choices=("device", "camodel"))
    how.add_argument("--soc-version", metavar="V", help="the chip, e.g. Ascend910B1")
    how.add_argument("--block-dim", type=int, metavar="N", help="blocks (default: as recorded)")
    how.add_argument(
        "--l2",
        choices=("cold", "warm", "trace"),
        help="what L2 holds at first: nothing, what the same run left, what earlier dispatches of the dump left",
    )
    how.add_argument(
        "--launch", choices=("task", "kernel"), help="a task of a scheduler, or a kernel launched by itself"
    )
    how.add_argument("--timing-only", action="store_true", help="instructions and times, no arithmetic")
    how.add_argument("--time-limit", type=float, default=60.0, metavar="S", help="seconds the kernel may run")
    how.add_argument("--check", action="store_true", help="print what the run revealed about the kernel")
    how.add_argument("--strict", action="store_true", help=argparse.SUPPRESS)  # a mismatch always fails now
    vendor = parser.add_argument_group("the vendor's simulator")
    vendor.add_argument("--cann-home", type=Path, metavar="P")
    vendor.add_argument("--cann-set-env", type=Path, metavar="P")
    vendor.add_argument("--pto-isa-root", type=Path, metavar="P")
    vendor.add_argument("--device", type=int, default=0)
    vendor.add_argument("--launch-count", type=int, default=1)
    vendor.add_argument("--timeout", type=int, default=120, metavar="MINUTES")
    vendor.add_argument("--hw-block-num", type=int, default=1, metavar="N")
    out = parser.add_argument_group("what to write")
    out.add_argument("-o", "--output", "--output-dir", type=Path, metavar="WORKSPACE", dest="output")
    out.add_argument(
        "--no-collect", "--dry-run", action="store_true", dest="no_collect", help="stop after the workspace"
    )
    out.add_argument(
        "--no-source", action="store_true", help="leave source text out of the Insight directory"
    )
    out.add_argument(
        "--dump-logs", action="store_true", help="also write logs that the vendor's exporter reads"
    )
    out.add_argument(
        "--force",
        action="store_true",
        help="replace an existing workspace",
    )
    out.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace.errors import RequestError
    from insight_trace.replay.running import replay_gathered, run_replay
    from insight_trace.replay.workspace import RECORD, read_record

    if options.backend == "ptoas":
        raise RequestError(
            "--backend ptoas profiles the kernels of a PyPTO build",
            hint="insight-trace profile --build-dir DIR",
        )
    progress = _progress(options)
    request = _request(options)
    if (options.scene / RECORD).is_file():
        selection, gathered, record = read_record(options.scene)
        replay = replay_gathered(_repeated(request, record), selection, gathered, progress)
    else:
        replay = run_replay(request, progress)
    if options.json:
        print(json.dumps(_as_json(replay), indent=2))
    else:
        _show(replay, options)
    if replay.mismatched and not options.json:
        print(f"insight-trace replay: {mismatch_text(replay)}", file=sys.stderr)
    return 1 if replay.mismatched else 0


def mismatch_text(replay: Replay) -> str:
    """What is different from the recording, and where to look next."""
    different = "; ".join(replay.differences) or "its inputs, members and blocks are those of the recording"
    return (
        "an output is not what was recorded\n"
        f"  {different}; `insight-trace why {replay.workspace} --first-mismatch` follows the first wrong element"
    )


def _request(options: argparse.Namespace) -> ReplayRequest:
    from insight_trace.arguments.overrides import parse_overrides
    from insight_trace.replay.request import ReplayRequest

    return ReplayRequest(
        scene=options.scene,
        case=options.case,
        func_ids=_numbers(options.func_id, "--func-id"),
        kernel=options.kernel,
        kernel_source=options.kernel_source,
        dump_dir=options.dump_dir,
        dispatch_id=options.dispatch_id,
        task_id=_task(options.task_id),
        arg_spec=options.arg_spec,
        recipe=options.recipe,
        overrides=parse_overrides(options.set_arg, options.restore_arg, options.fill, options.seed),
        simulator=options.simulator,
        target=options.target,
        platform=options.platform,
        preset=options.preset,
        soc_version=options.soc_version,
        any_target=options.any_target,
        block_dim=options.block_dim,
        timing_only=options.timing_only,
        l2=options.l2,
        launch=options.launch,
        seconds=options.time_limit,
        cann_home=options.cann_home,
        cann_set_env=options.cann_set_env,
        pto_isa_root=options.pto_isa_root,
        device=options.device,
        launch_count=options.launch_count,
        timeout_minutes=options.timeout,
        hardware_blocks=options.hw_block_num,
        output=options.output,
        collect=not options.no_collect,
        include_source=not options.no_source,
        dump_logs=options.dump_logs,
        force=options.force,
    )


def _repeated(request: ReplayRequest, record: dict[str, Any]) -> ReplayRequest:
    """The new request with what it leaves open taken from the record."""
    import dataclasses

    return dataclasses.replace(
        request,
        target=request.target or record.get("target"),
        soc_version=request.soc_version or record.get("soc_version"),
        simulator=request.simulator if request.simulator != "auto" else record.get("simulator") or "embedded",
        timing_only=request.timing_only or bool(record.get("timing_only")),
        l2=request.l2 or record.get("l2"),
        launch=request.launch or record.get("launch"),
    )


def _numbers(text: str | None, flag: str) -> tuple[int, ...]:
    from insight_trace.errors import RequestError

    if text is None:
        return ()
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise RequestError(f"{flag} '{text}' is not a number or a list like 0,1,2") from None


def _task(text: str | None) -> int | None:
    from insight_trace.errors import RequestError

    if text is None:
        return None
    try:
        return int(text, 0)
    except ValueError:
        raise RequestError(f"--task-id '{text}' is not a number", hint="e.g. 0x0000000200000005") from None


def _progress(options: argparse.Namespace) -> Callable[[str], None]:
    """One line that says what is being done, on a terminal only."""
    if options.json or not sys.stderr.isatty():
        return lambda _step: None

    def show(step: str) -> None:
        print(f"\r\033[K{step} …", end="", file=sys.stderr, flush=True)
        if step == "export":
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    return show


def _as_json(replay: Replay) -> dict[str, Any]:
    from insight_trace.arguments.slots import ReplayTensor

    return {
        "directory": str(replay.directory) if replay.directory else None,
        "workspace": str(replay.workspace),
        "simulator": replay.simulator,
        "cycles": replay.cycles,
        "outputs": [
            {"slot": c.slot, "status": str(c.status), "max_error": c.max_error, "why": c.why}
            for c in replay.checks
        ],
        "arguments": [
            {
                "slot": item.slot,
                "kind": "tensor" if isinstance(item, ReplayTensor) else "scalar",
                "dtype": item.dtype.name,
                "tier": str(item.tier),
            }
            for item in replay.arguments.slots
        ],
        "differences": list(replay.differences),
        "warnings": list(replay.warnings),
        "findings": list(replay.findings),
    }


def _show(replay: Replay, options: argparse.Namespace) -> None:
    from insight_trace.arguments.table import slot_table

    selection, dispatch = replay.selection, replay.dispatch
    case = f" · {selection.case.name}" if selection.case else ""
    for i, kernel in enumerate(selection.kernels):
        func = f", func {kernel.func_id}" if kernel.func_id is not None else ""
        label = f"scene      {selection.scene.name}{case} · " if i == 0 else "           + "
        print(f"{label}{kernel.name} ({kernel.core_type}{func}) · {_short(kernel.source)}")
    if dispatch is not None:
        inferred = f" · inferred: {', '.join(dispatch.inferred)}" if dispatch.inferred else ""
        blocks = f"{replay.arguments.block_count} block{'s' if replay.arguments.block_count > 1 else ''}"
        print(f"dispatch   {dispatch.dispatch_id} · task 0x{dispatch.task_id:016x} · {blocks}{inferred}")
    else:
        print(f"arguments  {replay.origin}")
    for line in slot_table(replay.arguments):
        print(f"           {line}")
    for warning in replay.warnings:
        print(f"warning    {warning}")
    if replay.simulation is not None and replay.simulation.printed:
        print(replay.simulation.printed, end="", file=sys.stderr)
    _show_result(replay)
    if options.check:
        for finding in replay.findings or ("nothing to remark",):
            print(f"found      {finding}")
    if replay.simulation is not None:
        _show_pipes(replay)
    if replay.directory is None:
        print(f"workspace  {replay.workspace}")
        return
    print(f"open       {replay.directory}/")


def _show_result(replay: Replay) -> None:
    simulation = replay.simulation
    if simulation is not None:
        micros = simulation.cycles / simulation.mhz
        print(
            f"simulated  {simulation.cycles:,} cycles · {micros:.3f} us at {simulation.mhz:.0f} MHz · "
            f"{simulation.soc_version} · {len(simulation.instructions):,} instructions · {_estimates(replay)}"
        )
        for line in around_lines(simulation):
            print(line)
    from insight_trace.arguments.verification import Status

    groups: dict[str, list[str]] = {}
    for check in replay.checks:
        groups.setdefault(str(check.status), []).append(check.text)
    for status in (Status.VERIFIED, Status.MISMATCH, Status.UNVERIFIABLE):
        if status in groups:
            print(f"{status:<10} {' · '.join(groups[status])}")


def around_lines(simulation: Simulation) -> list[str]:
    """What is around the kernel, and what it asked of the memory."""
    lines = []
    launch, memory = simulation.launch, simulation.memory
    if launch is not None and (launch.around or launch.waves > 1):
        whole = launch.around + simulation.cycles
        waves = f" · {launch.waves} waves of blocks" if launch.waves > 1 else ""
        lines.append(
            f"launch     {launch.around:,} cycles around the kernel, {whole / simulation.mhz:.3f} us with it{waves}"
        )
    if launch is not None and launch.overfull:
        lines.append("warning    blocks wait for blocks that have no core: on a chip this never ends")
    if memory is not None and memory.asked:
        lines.append(
            f"memory     {memory.asked / 1e6:,.2f} MB asked of L2, {memory.hit_rate:.0%} found · "
            f"{memory.fetched / 1e6:,.2f} MB from HBM, {memory.written_back / 1e6:,.2f} MB back to it"
        )
    return lines


def _estimates(replay: Replay) -> str:
    from insight_trace.chips import load_chip
    from insight_trace.simulate.embedded.estimates import estimate_share

    assert replay.simulation is not None
    soc = load_chip(replay.simulation.soc_version, preset=replay.preset)
    return estimate_share(replay.simulation, soc).text


def _show_pipes(replay: Replay) -> None:
    from insight_trace.replay.running import make_trace
    from insight_trace.trace.lanes import VECTOR_LANES
    from insight_trace.trace.pipes import pipes

    assert replay.simulation is not None
    by_core: dict[str, list[str]] = {}
    lanes = {pipe.name for pipe in VECTOR_LANES}  # VECTOR stands for them
    for pipe in pipes(make_trace(replay.simulation)):
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
