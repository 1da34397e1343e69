"""From what the engine's checker saw to findings that a person can act on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from insight_trace.finding import Finding, Place, Severity
from insight_trace.outcome import Failure, Fault
from insight_trace.recording.kinds import FLAG_NAMES

# engine/check/checker.hpp, in its order
KINDS = (
    "race", "race-same-pipe", "race-cores", "unwritten-read", "unread-write", "gm-out-of-bounds", "misaligned",
    "tile-overlap", "double-set", "event-id", "barrier-scalar", "atomic-mix", "accumulator-unset",
    "set-without-wait", "library-scratch", "missing-dcci", "flag-overflow", "contract",
)  # fmt: skip
SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


class Seen(Struct, frozen=True):
    """One row of the engine's report."""

    kind: str
    severity: Severity
    first: Place | None  # the earlier access
    second: Place  # the later one
    memory: str
    first_writes: bool
    second_writes: bool
    begin: int
    end: int
    count: int
    buffer: str = ""  # the argument, where the memory is global
    cycles: int | None = None  # what it costs, where that was measured


def explain(seen: Sequence[Seen]) -> tuple[Finding, ...]:
    """One finding per row, worded."""
    return tuple(_finding(row) for row in seen)


def _finding(row: Seen) -> Finding:
    message, fix = _WORDS[row.kind](row)
    return Finding(
        category=row.kind,
        severity=row.severity,
        message=message,
        fix=fix,
        places=tuple(place for place in (row.first, row.second) if place is not None),
        memory="" if row.kind in _OF_NO_BYTES else row.memory,
        begin=-1 if row.kind in _OF_NO_BYTES else row.begin,
        end=-1 if row.kind in _OF_NO_BYTES else row.end,
        count=row.count,
        cycles=row.cycles,
    )


_OF_NO_BYTES = ("contract", "double-set", "event-id", "barrier-scalar", "set-without-wait", "flag-overflow")


def _bytes(row: Seen) -> str:
    where = f"{row.memory} 0x{row.begin:x}..0x{row.end:x}"
    return f"{where} ({row.buffer})" if row.buffer else where


def _does(writes: bool) -> str:
    return "writes" if writes else "reads"


def _flag(row: Seen) -> str:
    first, second = _both(row)
    pipes = f"PIPE_{first.pipe}, PIPE_{second.pipe}"
    return f"set_flag({pipes}, e) after line {first.line} and wait_flag({pipes}, e) before line {second.line}"


def _both(row: Seen) -> tuple[Place, Place]:
    assert row.first is not None, f"a {row.kind} has two places"
    return row.first, row.second


def _race(row: Seen) -> tuple[str, str]:
    first, second = _both(row)
    said = (
        f"{second.instruction} (line {second.line}, {second.pipe}) {_does(row.second_writes)} {_bytes(row)} and "
        f"{first.instruction} (line {first.line}, {first.pipe}) {_does(row.first_writes)} it, with nothing that "
        "orders them"
    )
    return said, _flag(row)


def _same_pipe(row: Seen) -> tuple[str, str]:
    first, second = _both(row)
    said = (
        f"{second.instruction} (line {second.line}) {_does(row.second_writes)} {_bytes(row)} that "
        f"{first.instruction} (line {first.line}) {_does(row.first_writes)} on the same pipe {second.pipe}, "
        "which lets instructions overlap"
    )
    return said, f"pipe_barrier(PIPE_{second.pipe}) before line {second.line}"


def _cores(row: Seen) -> tuple[str, str]:
    first, second = _both(row)
    said = (
        f"{second.core} {_does(row.second_writes)} {_bytes(row)} (line {second.line}, {second.pipe}) and "
        f"{first.core} {_does(row.first_writes)} it (line {first.line}, {first.pipe}), with nothing that orders "
        "the two cores"
    )
    fix = (
        f"signal on PIPE_{first.pipe} after line {first.line} and wait for that flag before line {second.line}, "
        "or give each core bytes of its own"
    )
    return said, fix


def _unwritten(row: Seen) -> tuple[str, str]:
    at = row.second
    return (
        f"{at.instruction} (line {at.line}, {at.pipe}) reads {_bytes(row)}, which nothing has written",
        "load or fill the whole tile first, or make its valid size what was written",
    )


def _unread(row: Seen) -> tuple[str, str]:
    at = row.second
    return (
        f"what {at.instruction} (line {at.line}, {at.pipe}) writes is never read",
        "remove it, or use its result",
    )


def _past_tensor(row: Seen) -> tuple[str, str]:
    at = row.second
    what = "the argument" if row.severity is Severity.ERROR else "the argument's view, inside its buffer"
    return (
        f"{at.instruction} (line {at.line}, {at.pipe}) {_does(row.second_writes)} {_bytes(row)}, past the end of "
        f"{what}",
        "make the tile's valid size or the tensor's shape what the argument holds",
    )


def _misaligned(row: Seen) -> tuple[str, str]:
    at = row.second
    return (
        f"{at.instruction} (line {at.line}, {at.pipe}) uses {row.memory} 0x{row.begin:x}, which is no multiple of "
        "32 bytes",
        "place the tile at a multiple of 32 bytes (TASSIGN)",
    )


def _overlap(row: Seen) -> tuple[str, str]:
    first, second = _both(row)
    return (
        f"{second.instruction} (line {second.line}) reads {_bytes(row)} of its tile after {first.instruction} "
        f"(line {first.line}) has overwritten it through another tile",
        "place the two tiles apart, or write the first one again before it is used",
    )


def _double_set(row: Seen) -> tuple[str, str]:
    first, second = _both(row)
    sure = "" if row.severity is Severity.ERROR else "may be "
    return (
        f"the event of line {second.line} {sure}set again before the set of line {first.line} was waited for: the "
        "hardware has one bit and loses one of them",
        "use another event id for every set under way, or wait before setting again",
    )


def _event_id(row: Seen) -> tuple[str, str]:
    at = row.second
    return (
        f"line {at.line} uses an event id above 7, of which the hardware keeps the last three bits",
        "use EVENT_ID0 to EVENT_ID7",
    )


def _barrier_scalar(row: Seen) -> tuple[str, str]:
    at = row.second
    return (f"pipe_barrier(PIPE_S) at line {at.line} is an error on the chip", "remove it")


def _atomic_mix(row: Seen) -> tuple[str, str]:
    first, second = _both(row)
    return (
        f"line {first.line} and line {second.line} store to {_bytes(row)}, one of them atomically, in no order",
        "make both atomic, or order them",
    )


def _accumulator(row: Seen) -> tuple[str, str]:
    at = row.second
    return (
        f"{at.instruction} (line {at.line}) adds to {_bytes(row)}, which no matmul has initialised",
        "begin with TMATMUL (or a bias), and accumulate from the second part on",
    )


def _left_over(row: Seen) -> tuple[str, str]:
    at = row.second
    times = "once" if row.count == 1 else f"{row.count} times"
    between = at.instruction in ("SET_CROSS_CORE", "SET_INTRA_BLOCK")
    what = f"a flag for another core (from {at.core})" if between else "a flag"
    return (
        f"line {at.line} sets {what} {times} more than it is waited for: it stays set for the next kernel",
        "add the missing wait on every core that gets it, or remove the set"
        if between
        else "add the missing wait_flag, or remove the set_flag",
    )


def _scratch(row: Seen) -> tuple[str, str]:
    first, second = _both(row)
    return (
        f"{second.instruction} (line {second.line}) reads {_bytes(row)} of its tile after {first.instruction} "
        f"(line {first.line}) has overwritten it: the tile library keeps scratch of its own there",
        "keep tiles of the kernel below the library's scratch (the last 8 KiB of UB)",
    )


def _no_dcci(row: Seen) -> tuple[str, str]:
    first, second = _both(row)
    return (
        f"{second.core} reads {_bytes(row)} (line {second.line}, {second.pipe}) that the scalar unit of {first.core} "
        f"stored at line {first.line}: it is still in that core's cache",
        f"dcci the line and dsb(DSB_DDR) after line {first.line}, before the other side is told",
    )


def _overflow(row: Seen) -> tuple[str, str]:
    at = row.second
    return (
        f"line {at.line} raises a flag for another core {row.count} times before it is waited for: the counter "
        "holds 15",
        "wait for the other core from time to time, or use more flags",
    )


# engine/check/checker.hpp, Rule
_RULES: tuple[Callable[[Place, int], str], ...] = (
    lambda at, _: f"{at.instruction} runs on {at.pipe}, which {at.core} does not have",
    lambda at, value: f"a tile of {at.instruction} has a valid size of {value}, more than the tile has",
    lambda at, value: f"{at.instruction} moves {value} bursts, more than its field holds",
    lambda at, value: f"{at.instruction} moves bursts of {value} bytes, more than its field holds",
    lambda at, value: f"{at.instruction} has a repeat stride of {value} blocks; its field holds 255",
    lambda at, value: (
        f"{at.instruction} uses an address of 0x{value:x} in an L0 memory, no multiple of 512 bytes"
    ),
    lambda at, value: f"{at.instruction} multiplies a size of {value}; its field holds 4095",
)


def _contract(row: Seen) -> tuple[str, str]:
    at = row.second
    rule = _RULES[row.begin] if 0 <= row.begin < len(_RULES) else _RULES[0]
    return (
        f"{rule(at, row.end)} (line {at.line})",
        "use a form that the instruction set of the chip has",
    )


def redundant(places: Sequence[Place], count: int, cycles: int | None = None) -> Finding:
    """Synchronisation that orders nothing in this run; `cycles` is what the run saves without it."""
    barrier = places[0].instruction not in FLAG_NAMES
    lines = ", ".join(dict.fromkeys(str(place.line) for place in places))
    what = f"the barrier at line {lines}" if barrier else f"the flag of lines {lines}"
    cost = "" if cycles is None else f" and costs {cycles} cycles"
    return Finding(
        category="redundant-sync",
        severity=Severity.NOTE,
        message=f"{what} orders nothing that is not ordered anyway{cost}, for these inputs",
        fix="remove it, if it is not needed for other inputs",
        places=tuple(places),
        count=count,
        cycles=cycles,
    )


def untried(tried: int, there: int) -> Finding:
    """Of a long run not every flag and barrier is tried."""
    return Finding(
        category="sync-untried",
        severity=Severity.NOTE,
        message=f"{tried} of {there} flags and barriers were tried for redundancy, the strongest first: the run is long",
        fix="check a smaller case to have all of them tried",
    )


def failed(failure: Failure) -> tuple[Finding, ...]:
    """What a run that the kernel itself ended says about it; nothing where a limit or this machine ended it."""
    if failure.fault is not Fault.KERNEL or failure.limit:
        return ()
    message = failure.message
    if message.startswith("deadlock"):
        # a flag of one core that nothing sets is a missing set; the rest are circles
        nothing = "which nothing sets" in message
        category, fix = (
            ("wait-without-set", "add the set, or remove the wait")
            if nothing
            else ("deadlock", "let one of them go on before it waits")
        )
    elif message.startswith("GM access"):
        category, fix = "gm-out-of-bounds", "stay inside the argument"
    elif "goes past its" in message:
        category, fix = "on-chip-out-of-bounds", "place the tile so that all of it fits (TASSIGN)"
    else:
        category, fix = "contract", "use a form that the chip and its library have"
    place = Place(failure.file, failure.line, "", "")
    return (Finding(category, Severity.ERROR, message, fix, (place,) if failure.file else ()),)


def born(at: Place, op: str, is_nan: bool, row: int, column: int) -> Finding:
    """The op that made the first NaN, or the first infinity, out of numbers that were none."""
    what = "NaN" if is_nan else "infinity"
    return Finding(
        category="nan-born" if is_nan else "inf-born",
        severity=Severity.WARNING,
        message=f"{op} (line {at.line}, {at.instruction} on {at.core}) makes the first {what}, at row {row}, column "
        f"{column} of its result, out of numbers that were finite",
        fix="look at the inputs of this op at that element",
        places=(at,),
    )


def output_unwritten(name: str) -> Finding:
    """An output that the kernel leaves as it was."""
    return Finding(
        category="output-unwritten",
        severity=Severity.WARNING,
        message=f"{name} is an output, and nothing is written to it",
        fix="store the result there, or declare the argument as what it is",
    )


def stored_past(name: str, size: int, first: int) -> Finding:
    """Bytes past an argument's end that a run changed; only a checked run knows by which instruction."""
    return Finding(
        category="gm-out-of-bounds",
        severity=Severity.ERROR,
        message=f"the kernel stores past the end of {name} ({size:,} bytes): byte {first:,} has changed",
        fix="make the tile's valid size or the tensor's shape what the argument holds; a checked run (`check`, or "
        "`--check`) names the line",
    )


_WORDS: dict[str, Callable[[Seen], tuple[str, str]]] = {
    "race": _race, "race-same-pipe": _same_pipe, "race-cores": _cores, "unwritten-read": _unwritten,
    "unread-write": _unread, "gm-out-of-bounds": _past_tensor, "misaligned": _misaligned,
    "tile-overlap": _overlap, "double-set": _double_set, "event-id": _event_id,
    "barrier-scalar": _barrier_scalar, "atomic-mix": _atomic_mix, "accumulator-unset": _accumulator,
    "set-without-wait": _left_over, "library-scratch": _scratch, "missing-dcci": _no_dcci,
    "flag-overflow": _overflow, "contract": _contract,
}  # fmt: skip
