"""Figures as aligned text: what `stats` prints and `summary.txt` holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from insight_trace.model import Confidence, Launch, MemoryUse, Trace
from insight_trace.recording.frames import short_frame
from insight_trace.results import Result, text_table
from insight_trace.trace.advice import Advice
from insight_trace.trace.stats import Stats

# With more cores than this a table of every core says less than the slowest one alone.
_CORES_SHOWN = 3


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def pipe_table(figures: Stats) -> list[str]:
    """The per-pipe breakdown, of every core or of the slowest one."""
    cycles = {core.core: core.cycles for core in figures.cores}
    shown = set(cycles) if len(cycles) <= _CORES_SHOWN else {figures.slowest}
    rows = [
        (
            pipe.core,
            pipe.pipe,
            f"{pipe.instructions:,}",
            f"{pipe.busy:,}",
            _share(pipe.busy, cycles[pipe.core]),
            f"{pipe.waiting:,}",
            f"{pipe.idle:,}",
        )
        for pipe in figures.pipes
        if pipe.core in shown
    ]
    head = ("core", "pipe", "instructions", "busy", "share", "waiting", "idle")
    lines = text_table(head, rows, frozenset((0, 1)))
    if len(cycles) > _CORES_SHOWN:
        lines.append(f"({len(cycles)} cores ran; the one that ended last is shown, --json has all)")
    return lines


def head_line(figures: Stats) -> str:
    chip = f" · {figures.soc_version}" if figures.soc_version else ""
    # a recording counts from the kernel's start, which its total in `replay` is from, too
    before = min((core.begin for core in figures.cores), default=0) if figures.memory is not None else 0
    started = f", {before:,} after the kernel's start" if before > 0 else ""
    return (
        f"{figures.cycles:,} cycles · {figures.micros:.3f} us at {figures.mhz:g} MHz{chip} · "
        f"{figures.instructions:,} instructions on {len(figures.cores)} "
        f"{'core' if len(figures.cores) == 1 else 'cores'}{started}"
    )


def around_lines(cycles: int, mhz: float, launch: Launch | None, memory: MemoryUse | None) -> list[str]:
    """What is around a kernel of so many cycles, and what it asked of the memory."""
    lines = []
    if launch is not None and (launch.around or launch.waves > 1):
        parts = [f"{cycles / mhz:.3f} us in the kernel"]
        if launch.around:
            before, after = launch.before / mhz, launch.after / mhz
            parts.append(f"{before:.3f} before it and {after:.3f} after it")
            parts.append(f"{(launch.around + cycles) / mhz:.3f} us in all")
        if launch.waves > 1:
            parts.append(f"{launch.waves} waves of blocks")
        lines.append(f"launch     {' · '.join(parts)}")
    if launch is not None and launch.waits_for_last > 0.02 * cycles:
        lines.append(
            f"tail       cores wait {launch.waits_for_last / mhz:.3f} us for the last one, on the average"
        )
    if launch is not None and launch.overfull:
        lines.append("warning    blocks wait for blocks that have no core: on a chip this never ends")
    if memory is not None and memory.asked:
        lines.append(
            f"memory     {memory.asked / 1e6:,.2f} MB asked of L2, {memory.hit_rate:.0%} found · "
            f"{memory.fetched / 1e6:,.2f} MB from HBM, {memory.written_back / 1e6:,.2f} MB back to it"
        )
    return lines


def _python(figures: Stats, frame: str) -> str:
    """The line of the user's Python behind a generated one."""
    python = figures.python.get(frame)
    return f" ({short_frame(python)})" if python else ""


def stats_text(figures: Stats, advice: Sequence[Advice]) -> str:
    """Everything a person wants to see first, the advice before the tables."""
    if not figures.cores:
        return "nothing ran: the trace holds no instruction\n"
    lines = [f"total      {head_line(figures)}"]
    if figures.confidence is not None:
        lines.append(f"expect     {figures.confidence.text}")
    lines += around_lines(figures.cycles, figures.mhz, figures.launch, figures.memory)
    lines += _section(
        "advice",
        [f"{i}. {item.text}{_python(figures, item.frame)}" for i, item in enumerate(advice, 1)]
        or ["nothing stands out"],
    )
    lines += ["", *pipe_table(figures)]
    path = [
        f"{item.pipe} {item.doing} {_share(item.cycles, figures.path.cycles)}"
        for item in figures.critical
        if item.cycles >= 0.01 * figures.path.cycles
    ]
    lines += _section("critical", [" · ".join(path)])
    lines += _section("phases", _phase_lines(figures))
    lines += _section("waits", _wait_lines(figures))
    lines += _section("overlap", _overlap_lines(figures))
    lines += _section("traffic", _traffic_lines(figures))
    lines += _section("roofs", _roof_lines(figures))
    hot = [
        (item.what, item.pipe, f"{item.cycles:,}", f"{item.count:,}", short_frame(item.frame))
        for item in figures.hot_instructions[:8]
        if item.cycles
    ]
    if hot:
        lines += [
            "",
            *text_table(("instruction", "pipe", "cycles", "executed", "line"), hot, frozenset((0, 1, 4))),
        ]
    hot_lines = [
        (
            f"{short_frame(item.frame)}{_python(figures, item.frame)}",
            f"{item.cycles:,}",
            f"{item.waiting:,}",
            item.what[:72],
        )
        for item in figures.hot_lines[:8]
        if item.cycles or item.waiting
    ]
    if hot_lines:
        lines += ["", *text_table(("line", "cycles", "waiting", "source"), hot_lines, frozenset((0, 3)))]
    return "\n".join(lines) + "\n"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    return [f"{title if index == 0 else '':<10} {line}" for index, line in enumerate(lines)]


def _phase_lines(figures: Stats) -> list[str]:
    return [
        f"{phase.name}: {phase.cycles:,} cycles ({_share(phase.cycles, figures.cycles)})"
        + (f", entered {phase.entered} {'time' if phase.entered == 1 else 'times'}" if phase.entered else "")
        for phase in figures.phases
    ]


def _wait_lines(figures: Stats) -> list[str]:
    cycles = {core.core: core.cycles for core in figures.cores}
    return [
        f"{wait.pipe} for {wait.waits_for}{f' on event {wait.event}' if wait.event else ''}: "
        f"{wait.cycles:,} cycles ({_share(wait.cycles, cycles[wait.core])}), "
        f"{short_frame(wait.frame) or wait.core}{', for the end' if wait.last else ''}"
        for wait in [wait for wait in figures.waits if wait.core == figures.slowest][:5]
    ]


def _overlap_lines(figures: Stats) -> list[str]:
    core = next(core for core in figures.cores if core.core == figures.slowest)
    pairs = [
        f"{pair.replace('+', ' with ')} {_share(cycles, core.cycles)}"
        for pair, cycles in core.overlap.items()
        if "SCALAR" not in pair
    ]
    return [" · ".join(pairs)] if pairs else []


def _traffic_lines(figures: Stats) -> list[str]:
    return [
        f"{item.path.replace('_TO_', '→')} {item.bytes:,} bytes in {item.transfers:,} "
        f"{'transfer' if item.transfers == 1 else 'transfers'}, {item.gb_per_s:.1f} GB/s"
        + (f" of {item.roof_gb_per_s:g}" if item.roof_gb_per_s else "")
        + (
            f", {1 - item.missed / item.requests:.0%} of it in L2"
            if item.requests and item.missed is not None
            else ""
        )
        for item in figures.traffic
    ]


def _roof_lines(figures: Stats) -> list[str]:
    chip = figures.roofs.chip + ("" if figures.roofs.exact else ", which stands in for this chip")
    return [
        f"{item.unit}: {item.intensity:.2f} operations a byte, {item.giga_per_s:,.1f} G/s of "
        f"{item.reachable_giga_per_s:,.1f} reachable there ({item.bound} roof of {chip})"
        for item in figures.arithmetic
    ]


def time_data(
    cycles: int, confidence: Confidence | None, launch: Launch | None, memory: MemoryUse | None
) -> dict[str, Any]:
    """The total's interval, what is around the kernel, and what it asked of the memory; None where nobody knows."""
    trusted = confidence and {
        "low": confidence.low,
        "high": confidence.high,
        "kind": confidence.kind,
        "rests_on": list(confidence.rests_on),
    }
    around = launch and {
        **asdict(launch),
        "in_kernel": cycles,
        "around": launch.around,
        "waits_for_last": launch.waits_for_last,
    }
    return {"expected_cycles": trusted, "launch": around, "memory": memory and asdict(memory)}


def stats_data(trace: Trace, figures: Stats, advice: Sequence[Advice]) -> dict[str, Any]:
    """For `--json`: plain values only; the critical path by its pieces, the longest first."""
    names = trace.instructions.names
    path = figures.path
    length = path.end - path.begin
    longest = sorted(range(len(length)), key=lambda i: (-int(length[i]), i))[:50]
    return {
        "read_from": trace.origin,
        "soc_version": figures.soc_version,
        "mhz": figures.mhz,
        "cycles": figures.cycles,
        "micros": figures.micros,
        **time_data(figures.cycles, figures.confidence, figures.launch, figures.memory),
        "instructions": figures.instructions,
        "slowest_core": figures.slowest,
        "cores": [asdict(core) for core in figures.cores],
        "pipes": [asdict(pipe) for pipe in figures.pipes],
        "waits": [asdict(wait) for wait in figures.waits],
        "critical_path": {
            "cycles": path.cycles,
            "pieces": len(path.row),
            "shares": [asdict(share) for share in figures.critical],
            "longest": [
                {
                    "name": names[trace.instructions.name[path.row[i]]],
                    "begin": int(path.begin[i]),
                    "cycles": int(length[i]),
                    "idle": bool(path.idle[i]),
                }
                for i in longest
            ],
        },
        "hot_instructions": [asdict(item) for item in figures.hot_instructions],
        "hot_lines": [asdict(item) for item in figures.hot_lines],
        "traffic": [asdict(item) for item in figures.traffic],
        "phases": [asdict(phase) for phase in figures.phases],
        "paths": [asdict(item) for item in figures.paths],
        "arithmetic": [asdict(item) for item in figures.arithmetic],
        "roofs": {"chip": figures.roofs.chip, "exact": figures.roofs.exact},
        "python": dict(figures.python),
        "conflict_cycles": figures.conflict_cycles,
        "cache_misses": figures.cache_misses,
        "advice": [asdict(item) for item in advice],
        "warnings": list(trace.warnings),
    }


class StatsResult(Result, Struct, frozen=True, eq=False):
    """Where the cycles of a trace go, and what to fix first."""

    trace: Trace
    figures: Stats
    advice: tuple[Advice, ...]

    @property
    def cycles(self) -> int:
        return self.figures.cycles

    def summary(self) -> str:
        return head_line(self.figures)

    def columns(self) -> Mapping[str, Any]:
        """One row per pipe of each core."""
        names = ("core", "pipe", "instructions", "busy", "waiting", "idle")
        return {name: [getattr(pipe, name) for pipe in self.figures.pipes] for name in names}

    def data(self) -> dict[str, Any]:
        return stats_data(self.trace, self.figures, self.advice)

    def text(self) -> str:
        lines = [f"note       {warning}\n" for warning in self.trace.warnings]
        if self.trace.origin:
            lines.append(f"read from  {self.trace.origin}\n")
        return stats_text(self.figures, self.advice) + "".join(lines)
