"""One kernel of two builds on the same data: run, checked, and compared in values, findings, synchronisation and time."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from insight_trace.arguments.slots import ReplayScalar
from insight_trace.check.suppressions import apply, in_sources
from insight_trace.dtypes import DTYPES
from insight_trace.errors import InsightTraceError, next_step
from insight_trace.finding import Finding, Place, Severity
from insight_trace.guard.difference import Cause, Figures, Grade, KernelDifference, Sites
from insight_trace.job import Job
from insight_trace.options import RunOptions
from insight_trace.outcome import Failure
from insight_trace.recording.frames import split_frame, user_frame
from insight_trace.recording.operands import MEMORIES, NONE, Form
from insight_trace.replay.pipeline import Execution, execute
from insight_trace.replay.verification import agreement, usual_size
from insight_trace.scratch import scratch_folder
from insight_trace.simulate.simulators import find_simulator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from insight_trace.debug.divergence import Divergence
    from insight_trace.model import Instructions

_MOST_VARIANTS = 4
_SHOWN_MEMORIES = ("UB", "L1", "L0A", "L0B", "L0C")
_GRADES = {Severity.ERROR: Grade.ERROR, Severity.WARNING: Grade.WARNING}


class Pair(Struct, frozen=True, eq=False):
    """A kernel of both builds, with jobs on the same data; a job that is None could not be made."""

    name: str
    name_b: str
    matched_by: str
    a: Job | None
    b: Job | None
    options: RunOptions
    data: str = ""
    problem_a: str = ""
    problem_b: str = ""
    same_data: bool = True
    variants: tuple[tuple[str, Job, Job], ...] = ()  # the same with other scalars, where they are no slots
    threshold: float = 0.01  # how much slower counts as slower, relative


class _Ran(Struct, frozen=True, eq=False):
    done: Execution
    findings: tuple[Finding, ...]

    @property
    def failure(self) -> Failure | None:
        return self.done.simulation.failure if self.done.simulation else None


def compare_pair(pair: Pair) -> KernelDifference:
    """The verdict of one pair."""
    shell = KernelDifference(
        pair.name, pair.name_b, Grade.UNJUDGED, "", matched_by=pair.matched_by, data=pair.data
    )
    if pair.a is None or pair.b is None:
        return _unjudged(pair, shell)
    try:
        a, b = _ran(pair.a, pair.options), _ran(pair.b, pair.options)
    except InsightTraceError as error:
        return replace(shell, sentence=f"`{pair.name}`: not judged: {error}")
    sync = _sync(a, b)
    causes = _causes(pair, a, b, sync)
    if not any(cause.grade is Grade.ERROR for cause in causes):
        causes = (*causes, *_on_other_scalars(pair, sync))
    figures = _figures(a), _figures(b)
    causes = tuple(sorted(causes, key=lambda cause: list(Grade).index(cause.grade)))
    fixed = _fixed(a, b)
    slower = _time(*figures, sync, pair)
    causes = (*causes, *([slower] if slower and slower.grade is Grade.SLOWER else []))
    grade = causes[0].grade if causes else slower.grade if slower else Grade.CHANGED
    if fixed and grade in (Grade.SLOWER, Grade.FASTER, Grade.CHANGED):
        grade = Grade.FIXED  # what orders an access takes its time
    found = replace(shell, grade=grade, causes=causes, fixed=fixed, sync=sync, a=figures[0], b=figures[1])
    return replace(found, sentence=_sentence(found, slower))


def _unjudged(pair: Pair, shell: KernelDifference) -> KernelDifference:
    """One of the two cannot even be begun with; where only the second cannot, that is an error of it."""
    if pair.problem_b and not pair.problem_a:
        cause = Cause("failure", Grade.ERROR, f"B cannot be run: {pair.problem_b}")
        sentence = f"`{pair.name}`: {cause.text}; A can"
        return replace(shell, grade=Grade.ERROR, causes=(cause,), sentence=sentence)
    said = pair.problem_a or pair.problem_b or "no data"
    which = "both builds" if pair.problem_a and pair.problem_b else "A" if pair.problem_a else "B"
    return replace(shell, sentence=f"`{pair.name}`: not judged, {which}: {said}")


def check_alone(name: str, job: Job, options: RunOptions) -> KernelDifference:
    """A kernel that only the second build has: what the checker says of it."""
    shell = KernelDifference("", name, Grade.NEW, f"`{name}`: new in B")
    try:
        ran = _ran(job, options)
    except InsightTraceError as error:
        return replace(shell, sentence=f"`{name}`: new in B; not judged: {error}")
    causes = [_failed(ran, None)] if ran.failure else []
    causes += [_of_finding(f, ran, None, ()) for f in ran.findings if f.severity is Severity.ERROR]
    if not causes:
        return replace(shell, sentence=f"`{name}`: new in B; no error", b=_figures(ran))
    said = f"`{name}`: new in B, with an error: {causes[0].text}"
    return replace(shell, grade=Grade.ERROR, sentence=said, causes=tuple(causes), b=_figures(ran))


# --- running ---------------------------------------------------------------------------------------------


def _ran(job: Job, options: RunOptions) -> _Ran:
    done = execute(job, options, simulator=find_simulator(options))
    assert done.simulation is not None
    kept, _, _ = apply(done.findings, in_sources(done.simulation.sources))
    return _Ran(done, tuple(kept))


def _causes(pair: Pair, a: _Ran, b: _Ran, sync: tuple[Sites, ...], data: str = "") -> tuple[Cause, ...]:
    found: list[Cause] = []
    if b.failure is not None:
        if a.failure is None or _same_failure(a.failure, b.failure) is False:
            found.append(_failed(b, a))
        else:
            both = f"neither runs to its end: {b.failure.message}"
            found.append(Cause("failure", Grade.UNJUDGED, both, b.failure.file, b.failure.line))
    elif a.failure is None and pair.same_data:
        values = _values(a, b)
        found += [values] if values else []
    if not data and not pair.same_data:
        found.append(
            Cause("signature", Grade.WARNING, "its parameters have changed: values are not compared")
        )
    for finding in _new_findings(a, b):
        # a dependence that a barrier ordered in the first build is worth a warning even where the checker only notes it
        if finding.severity in _GRADES or finding.category == "race-same-pipe":
            found.append(_of_finding(finding, b, a, sync))
    return tuple(replace(cause, data=data) for cause in found) if data else tuple(found)


def _on_other_scalars(pair: Pair, sync: tuple[Sites, ...]) -> tuple[Cause, ...]:
    """Paths that the pair's own data do not take: loops that turn no time, branches on a count."""
    assert pair.a is not None
    assert pair.b is not None
    for what, job_a, job_b in [*_variants(pair.a, pair.b), *pair.variants][:_MOST_VARIANTS]:
        try:
            a, b = _ran(job_a, pair.options), _ran(job_b, pair.options)
        except InsightTraceError:
            continue
        sites = sync if a.failure or b.failure else _sync(a, b)
        found = [c for c in _causes(pair, a, b, sites, what) if c.grade is Grade.ERROR]
        if found:
            return tuple(found)
    return ()


def _variants(a: Job, b: Job) -> list[tuple[str, Job, Job]]:
    """The pair with one whole number of its arguments as zero."""
    found = []
    for item in a.arguments.scalars:
        at_b = b.arguments.at(item.slot)
        if (
            item.dtype.is_float
            or not item.bits
            or not isinstance(at_b, ReplayScalar)
            or at_b.bits != item.bits
        ):
            continue
        zero = replace(item, bits=0)
        one, other = (replace(job, arguments=job.arguments.replaced(zero), dispatch=None) for job in (a, b))
        found.append((f"{item.name or f'slot {item.slot}'} = 0", one, other))
    return found


def _same_failure(a: Failure, b: Failure) -> bool:
    return (a.fault, a.limit, a.signal) == (b.fault, b.limit, b.signal)


def _failed(b: _Ran, a: _Ran | None) -> Cause:
    failure = b.failure
    assert failure is not None
    at = f" at line {failure.line}" if failure.line else ""
    what = "does not end in time" if failure.limit == "time" else f"fails{at}: {_first_line(failure.message)}"
    before = "; A runs to its end" if a is not None and a.failure is None else ""
    if a is not None and a.failure is not None:
        before = f"; A fails otherwise: {_first_line(a.failure.message)}"
    stuck = [f.fix for f in b.findings if f.category in ("deadlock", "wait-without-set") and f.fix]
    hint = stuck[0] if stuck else next_step(failure.fault, failure.limit, failure.log) or ""
    return Cause("failure", Grade.ERROR, f"{what}{before}", failure.file, failure.line, hint)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""


# --- values ----------------------------------------------------------------------------------------------


def _values(a: _Ran, b: _Ran) -> Cause | None:
    """The first op whose result differs; an error unless all that differs is rounding by the same ops."""
    unlike = _unlike_outputs(a, b)
    if unlike is None:
        return None
    slot, name, index, values, count, close = unlike
    where = f"{name or f'slot {slot}'}[{','.join(map(str, index))}]"
    shown = f"{where} is {values[1]:.9g} where A has {values[0]:.9g} ({count:,} elements differ)"
    text, file, line, other_op = _first_op(a, b)
    if close and not other_op:
        said = f"values differ by rounding: {shown}" + (f"; first {text}" if text else "")
        return Cause("rounding", Grade.WARNING, said, file, line)
    return Cause("values", Grade.ERROR, f"{text}: {shown}" if text else f"values differ: {shown}", file, line)


def _unlike_outputs(
    a: _Ran, b: _Ran
) -> tuple[int, str, tuple[int, ...], tuple[float, float], int, bool] | None:
    """The first output that is not the same: slot, name, element, values, how many, and whether by rounding alone."""
    import numpy as np

    assert a.done.simulation is not None
    assert b.done.simulation is not None
    first = None
    close = True
    for tensor in a.done.job.arguments.tensors:
        got = (a.done.simulation.outputs.get(tensor.slot), b.done.simulation.outputs.get(tensor.slot))
        if got[0] is None or got[1] is None or got[0].shape != got[1].shape:
            continue
        one, other = (np.ascontiguousarray(each).reshape(-1) for each in got)
        if one.tobytes() == other.tobytes():
            continue
        unlike = _bits(one) != _bits(other)
        flat = int(np.argmax(unlike))
        index = tuple(int(i) for i in np.unravel_index(flat, got[0].shape or (1,)))
        _, _, agree = agreement(other, one, tensor.dtype, usual_size(one, tensor.dtype))
        close &= bool(agree.all())
        if first is None:
            values = float(np.float64(one[flat])), float(np.float64(other[flat]))
            first = (tensor.slot, tensor.name, index, values, int(unlike.sum()))
    return None if first is None else (*first, close)


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    return values.view(f"u{values.dtype.itemsize}")


def _first_op(a: _Ran, b: _Ran) -> tuple[str, str, int, bool]:
    """Words, file and line of the second build, and whether the op there does something else than in the first."""
    from insight_trace.debug.debug_session import Session
    from insight_trace.debug.divergence import diverge

    with scratch_folder("diff") as folder:
        sessions = []
        for name, ran in (("a", a), ("b", b)):
            assert ran.done.recording is not None
            assert ran.done.simulation is not None
            place = folder / name
            place.mkdir()
            job, simulation = ran.done.job, ran.done.simulation
            record = {"soc_version": simulation.chip_file or simulation.soc_version, "target": job.target}
            sessions.append(Session(place, ran.done.recording, record, (job.kernels, job.arguments)))
        try:
            found = diverge(sessions[0], sessions[1])
        except InsightTraceError:
            return "", "", 0, False
        return _diverged(found, sessions)


def _diverged(found: Divergence, sessions: Sequence[Any]) -> tuple[str, str, int, bool]:
    a, b = sessions
    origin = found.origin
    if origin is None and found.first is None:
        for session, alone, here in ((b, found.only_b, "B"), (a, found.only_a, "A")):
            if alone:
                row = session.call_rows(alone[0])[0]
                file, line = session.place_of(row) if row >= 0 else ("", 0)
                other = "A" if here == "B" else "B"
                text = f"{session.op_name(alone[0])} at line {line} of {here} is not in {other}"
                return text, file if here == "B" else "", line if here == "B" else 0, True
        return "", "", 0, False
    if origin is not None:
        calls = origin
    else:
        assert found.first is not None
        calls = (found.first.a, found.first.b)
    file, line = b.place_of(calls[1].first) if calls[1].first >= 0 else ("", 0)
    line_a = a.place_of(calls[0].first)[1] if calls[0].first >= 0 else 0
    if found.given:
        operands = "; ".join(found.given[:3])
        return (
            f"{calls[1].op} at line {line} takes other operands ({operands}; A line {line_a})",
            file,
            line,
            True,
        )
    left_out = [a.op_name(call) for call in found.only_a[:3]]
    added = [b.op_name(call) for call in found.only_b[:3]]
    more = "".join(
        f", {what} {', '.join(ops)}" for what, ops in (("A also has", left_out), ("B also has", added)) if ops
    )
    return (
        f"{calls[1].op} at line {line} gives another result (A line {line_a}{more})",
        file,
        line,
        bool(left_out or added),
    )


# --- findings --------------------------------------------------------------------------------------------


def _op_at(place: Place, ran: _Ran) -> str:
    """The tile op that issued an instruction; its own name outside of one."""
    assert ran.done.simulation is not None
    columns = ran.done.simulation.instructions
    if columns.operands is None or not 0 <= place.row < len(columns):
        return place.instruction
    call = int(columns.operands.call[place.row])
    if call == NONE:
        return place.instruction
    return columns.operands.ops[int(columns.operands.calls["op"][call])]


def _identity(finding: Finding, ran: _Ran) -> tuple[object, ...]:
    """The same for the same mistake wherever its lines and addresses are."""
    places = tuple((_op_at(p, ran), p.pipe, p.flag[:2] if p.flag else ()) for p in finding.places[:2])
    return (finding.category, str(finding.severity), places)


def _new_findings(a: _Ran, b: _Ran) -> list[Finding]:
    known = Counter(_identity(finding, a) for finding in a.findings)
    found = []
    for finding in b.findings:
        key = _identity(finding, b)
        if known[key]:
            known[key] -= 1
        else:
            found.append(finding)
    return found


def _fixed(a: _Ran, b: _Ran) -> tuple[str, ...]:
    if b.failure is not None:
        return ()
    said = [] if a.failure is None else [f"A fails: {_first_line(a.failure.message)}"]
    gone = [f.message for f in _new_findings(b, a) if f.severity is Severity.ERROR]
    return (*said, *gone)


def _of_finding(finding: Finding, b: _Ran, a: _Ran | None, sync: tuple[Sites, ...]) -> Cause:
    """A finding as what the second build no longer does."""
    last = _place_of(finding)
    text = finding.message
    if finding.category in ("race", "race-same-pipe") and len(finding.places) >= 2:
        text = _race_words(finding, b, compared=a is not None)
    elif a is not None:
        text = f"{text}; A has none"
    lost = _lost(finding, sync) if a is not None else ""
    return Cause(
        finding.category,
        _GRADES.get(finding.severity, Grade.WARNING),
        text + lost,
        last.file if last else "",
        last.line if last else 0,
        finding.fix,
        finding=finding,
    )


def _place_of(finding: Finding) -> Place | None:
    """The later access; a flag that leads a missing wait stands behind the two accesses."""
    accesses = [place for place in finding.places if place.flag is None] or list(finding.places)
    return accesses[1] if len(accesses) > 1 else accesses[-1] if accesses else None


def _race_words(finding: Finding, b: _Ran, *, compared: bool) -> str:
    first, second = finding.places[:2]
    where = f"race on {finding.memory} 0x{finding.begin:x}..0x{finding.end:x}" if finding.memory else "race"
    op, earlier = _op_at(second, b), _op_at(first, b)
    longer = "no longer waits" if compared else "does not wait"
    for_what = f"{first.pipe} ({earlier}, line {first.line})"
    if finding.category == "race-same-pipe":
        for_what = f"{earlier} (line {first.line}, same pipe {first.pipe})"
    return f"{op} at line {second.line} {longer} for {for_what}: {where}" + (
        "; A has none" if compared else ""
    )


def _lost(finding: Finding, sync: tuple[Sites, ...]) -> str:
    """What came and went of the synchronisation between the pipes of a finding."""
    pipes = set(finding.pipes)
    mine = [site for site in sync if pipes & set(site.what.split()[-1].split("→")) or "ALL" in site.what]
    said = " ".join(site.text for site in mine[:3])
    return f" [{said}]" if said else ""


# --- synchronisation -------------------------------------------------------------------------------------

_Event = tuple[tuple[str, ...], int]  # what, and its line


def _events(columns: Instructions) -> list[_Event]:
    """Tile ops and synchronisation by the order of first execution, each line once per kind of core."""
    import numpy as np

    from insight_trace.recording.flag_pairs import flag_at
    from insight_trace.recording.kinds import Kind, kinds

    operands = columns.operands
    if operands is None or not len(columns):
        return []
    kind = kinds(columns)
    sites = np.stack([columns.core, columns.stack, columns.name, columns.pipe, kind], axis=1).astype(np.int64)
    _, first = np.unique(sites, axis=0, return_index=True)
    frames = [split_frame(user_frame(stack))[1] for stack in columns.stacks]
    found: dict[tuple[object, ...], _Event] = {}
    for row in np.sort(first).tolist():
        side = "cube" if "cube" in columns.cores[int(columns.core[row])] else "vector"
        line = frames[int(columns.stack[row])]
        call = int(operands.call[row])
        if call != NONE:
            what: tuple[str, ...] = ("op", operands.ops[int(operands.calls["op"][call])])
        elif kind[row] in (Kind.SET, Kind.WAIT):
            flag = flag_at(columns, row)
            verb = "set_flag" if kind[row] == Kind.SET else "wait_flag"
            what = ("sync", f"{verb} {_pipe(flag.source)}→{_pipe(flag.target)}")
        elif kind[row] == Kind.BARRIER:
            what = ("sync", f"pipe_barrier {_barrier(columns, row)}")
        elif kind[row] == Kind.WORK:
            what = ("op", columns.names[int(columns.name[row])])
        else:
            continue
        found.setdefault((side, what, int(columns.stack[row])), ((side, *what), line))
    return list(found.values())


def _pipe(text: str) -> str:
    from insight_trace.recording.pipes import named_pipe

    name = named_pipe(text) if text else "?"
    return {"VECTOR": "V", "CUBE": "M", "FIXPIPE": "FIX", "FIXP": "FIX", "SCALAR": "S"}.get(name, name)


def _barrier(columns: Instructions, row: int) -> str:
    operands = columns.operands
    if operands is None or operands.form[row] != Form.BARRIER:
        return columns.detail[row]
    from insight_trace.recording.pipes import PIPE_TEXT

    return _pipe(PIPE_TEXT[int(operands.value[row]) & 0xFF])


def _sync(a: _Ran, b: _Ran) -> tuple[Sites, ...]:
    """Flags and barriers that came or went, by what stands around them."""
    assert a.done.simulation is not None
    assert b.done.simulation is not None
    left, right = _events(a.done.simulation.instructions), _events(b.done.simulation.instructions)
    lost: dict[str, list[int]] = {}
    gained: dict[str, list[int]] = {}
    matcher = difflib.SequenceMatcher(None, [e[0] for e in left], [e[0] for e in right], autojunk=False)
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        if tag == "equal":
            continue
        for events, into in ((left[a0:a1], lost), (right[b0:b1], gained)):
            for (_, kind, what), line in events:
                if kind == "sync":
                    into.setdefault(what, []).append(line)
    counts = [Counter(what for (_, kind, what), _ in events if kind == "sync") for events in (left, right)]
    return tuple(
        Sites(what, counts[0][what], counts[1][what], tuple(lost.get(what, ())), tuple(gained.get(what, ())))
        for what in sorted({*lost, *gained})
    )


# --- figures ---------------------------------------------------------------------------------------------


def _figures(ran: _Ran) -> Figures | None:
    done = ran.done
    if done.recording is None or done.simulation is None:
        return None
    columns = done.simulation.instructions
    interval = done.recording.trace.confidence
    counts = Counter(f"{finding.severity.value} {finding.category}" for finding in ran.findings)
    cycles = done.simulation.cycles
    moved = columns.process_bytes
    return Figures(
        cycles,
        interval.low if interval else cycles,
        interval.high if interval else cycles,
        len(columns),
        int(moved[moved > 0].sum()),
        memory_use(columns),
        dict(sorted(counts.items())),
    )


def memory_use(columns: Instructions) -> dict[str, int]:
    """By on-chip memory the bytes that tiles of executed ops lie on."""
    import numpy as np

    from insight_trace.recording.intervals import union

    if columns.operands is None or not len(columns.operands.tiles):
        return {}
    tiles = columns.operands.tiles
    sizes = np.array([max(1, dtype.size) for dtype in DTYPES], np.int64)
    kinds = np.minimum(tiles["type"], len(sizes) - 1)
    bytes_ = tiles["rows"].astype(np.int64) * tiles["cols"] * sizes[kinds]
    begin = tiles["address"].astype(np.int64)
    found = {}
    for name in _SHOWN_MEMORIES:
        mine = (tiles["memory"] == MEMORIES.index(name)) & (bytes_ > 0)
        if mine.any():
            found[name] = int(union(begin[mine], begin[mine] + bytes_[mine]).length)
    return found


def _time(a: Figures | None, b: Figures | None, sync: tuple[Sites, ...], pair: Pair) -> Cause | None:
    """What is slower or faster, with the synchronisation that came or went as its cause."""
    if a is None or b is None or not a.cycles:
        return None
    change = b.cycles / a.cycles - 1
    if abs(change) <= pair.threshold:
        return None
    said = f"{a.cycles:,} cycles in A, {b.cycles:,} in B ({change:+.1%})"
    more = [site for site in sync if (site.gained if change > 0 else site.lost) and site.a != site.b]
    more.sort(key=lambda site: ("ALL" not in site.what, -abs(site.b - site.a)))
    if more:
        said += ": " + " ".join(site.text for site in more[:3])
    elif b.bytes_moved != a.bytes_moved:
        said += f": {a.bytes_moved:,} bytes moved in A, {b.bytes_moved:,} in B"
    elif b.instructions != a.instructions:
        said += f": {a.instructions:,} instructions in A, {b.instructions:,} in B"
    assert pair.b is not None
    kernel = pair.b.kernels[0]
    line = next((site.gained[0] for site in more if site.gained), 0)
    kind, grade = ("slower", Grade.SLOWER) if change > 0 else ("faster", Grade.FASTER)
    return Cause(kind, grade, said, str(kernel.written or kernel.source), line)


def _sentence(one: KernelDifference, time: Cause | None) -> str:
    name = f"`{one.name}`" if one.name == one.name_b else f"`{one.name}` (B: `{one.name_b}`)"
    if one.grade is Grade.FIXED:
        return f"{name}: fixed in B: {one.fixed[0]}" + (f"; {time.text}" if time else "")
    if one.causes:
        lead = one.causes[0]
        more = f"; and {len(one.causes) - 1} more" if len(one.causes) > 1 else ""
        data = f" (with {lead.data})" if lead.data else ""
        return f"{name}: {lead.text}{data}{more}"
    if time is not None:
        return f"{name}: {time.text}"
    sync = " ".join(site.text for site in one.sync[:3])
    return f"{name}: other code, same values, findings and cycles" + (f" [{sync}]" if sync else "")
