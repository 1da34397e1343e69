"""Compiles and runs every kernel of a simpler checkout on the embedded core, and counts how each ended.

python tools/kernel_coverage.py --simpler PATH [--jobs N] [--only TEXT] [--seconds S] [--json]

Arguments are made up: a small tensor in a large sparse buffer for every slot that the source casts to one,
1 for every other slot. A communication context is rank 1's of a domain of two: the peer's window is the upper
half of every buffer. A kernel that waits for a signal is run again with that signal as its peers would have
left it. A kernel whose work waits for the other cores of its cluster runs together with the file of its name
for the other core type, where there is one. A kernel that has an endless loop in its text, and is ended by the
time limit, is counted apart.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from insight_trace.arguments.packing import DESCRIPTOR_SIZE
from insight_trace.arguments.slots import (
    CallerArray,
    Fill,
    Random,
    ReplayArguments,
    ReplayScalar,
    ReplaySlot,
    ReplayTensor,
    make_tensor,
)
from insight_trace.dtypes import DType, dtype_named
from insight_trace.errors import InsightTraceError
from insight_trace.model import CoreType, Kernel, Role, Tier
from insight_trace.outcome import Failure, Fault, Simulation
from insight_trace.scene.kernel_source import shape_of_source
from insight_trace.simulate.embedded.memory import BASE, GlobalMemory
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded
from insight_trace.simulate.embedded.toolchain import Toolchain

_ENTRY = re.compile(rb"void\s+kernel_entry\b")
_POINTER_SLOT = re.compile(
    r"(?:(?P<name>\w+)\s*=\s*)?reinterpret_cast<(?P<to>[^<>]*)\*\s*>\s*\(\s*args\s*\[\s*(?P<slot>\d+)\s*\]"
    r"|\w*tensor\w*(?:<[^<>;]*>)?\s*\(\s*args\s*,\s*(?P<called>\d+)\s*\)"
)
_ELEMENTS = re.compile(
    r"reinterpret_cast<(?:__gm__\s+)?(?P<type>\w+)\s*\*>\s*\(\s*(?P<name>\w+)\s*->\s*buffer"
)
_OTHER_CORES = re.compile(
    r"\b(TPUSH|TPOP|TSYNC|ffts_cross_core_sync|set_cross_core|wait_flag_dev|set_intra_block|wait_intra_block)\b"
)
_WAITS = re.compile(
    r"waits for the signal at (?P<at>0x\w+) in slot (?P<slot>\d+) to be (?:>=|==) (?P<value>\d+)"
)
_ENDLESS = re.compile(r"(?:while\s*\(\s*(?:true|1)\s*\)|for\s*\(\s*;\s*;\s*\))\s*(?:\{\s*\}|;)")
_FLOAT32, _INT32, _INT64 = (
    dtype for dtype in map(dtype_named, ("float32", "int32", "int64")) if dtype is not None
)
_SHAPE = (64, 64)
_BUFFER_BYTES = 1 << 30  # sparse: weights that a kernel addresses by fixed offsets lie in it
_PEER = _BUFFER_BYTES // 2  # from what a rank has to the same of its peer
_RANK, _RANKS, _MOST_RANKS = 1, 2, 64
_SPARE_SLOT = 40  # the first of those that hold what raw pointers lead to
_MOST_SIGNALS = 8
_RUNTIME_DIRS = ("runtime", "common")


@dataclass(frozen=True)
class Outcome:
    """How one kernel ended."""

    source: str  # relative to the checkout
    state: str  # ran, endless, unsupported or failed
    compiled: bool
    cause: str = ""
    place: str = ""
    fault: str = ""


def kernel_sources(root: Path) -> list[Path]:
    """Every C++ file that defines kernel_entry."""
    found = (path for path in root.rglob("*.cpp") if ".git" not in path.parts)
    return sorted(path for path in found if _ENTRY.search(path.read_bytes()))


def target_of(root: Path, source: Path) -> str:
    """The family that the checkout keeps the kernel under; what is for both counts as a2a3."""
    return "a5" if "a5" in source.relative_to(root).parts else "a2a3"


def include_dirs(root: Path, source: Path) -> tuple[str, ...]:
    """What simpler's own build puts on a kernel's include path, behind our headers."""
    target = target_of(root, source)
    known = {path.name for path in (root / "src" / target / "runtime").glob("*")}
    runtime = next((part for part in source.parts if part in known), "tensormap_and_ringbuffer")
    base = root / "src" / target
    dirs = [base / "runtime" / runtime / name for name in _RUNTIME_DIRS]
    dirs += [
        base / "platform" / "include",
        root / "src" / "common",
        root / "src" / "common" / "task_interface",
    ]
    return tuple(str(path) for path in dirs)


def core_types(source: Path, text: str) -> tuple[CoreType, ...]:
    """The cores that a source is for: its folder says, else the guards in it."""
    for core_type in (CoreType.AIC, CoreType.AIV):
        if core_type.value in source.parts:
            return (core_type,)
    guessed = CoreType.MIX if "mix" in source.parts else shape_of_source(text, None).core_type
    return (CoreType.AIC, CoreType.AIV) if guessed is CoreType.MIX else (guessed,)


def partner(source: Path, own: CoreType, other: CoreType) -> Path | None:
    """The member of the same mix on the other kind of core: the same name, in the other folder."""
    found = source.parent.parent / other.value / source.name.replace(own.value, other.value)
    return found if found.is_file() else None


def made_up_arguments(text: str) -> ReplayArguments:
    """Something in every slot that the source reads."""
    names: dict[str, int] = {}
    tensors: set[int] = set()
    raw: dict[int, str] = {}  # slots that are addresses of something else than a descriptor
    for match in _POINTER_SLOT.finditer(text):
        slot = int(match["slot"] or match["called"])
        if match["to"] and "Tensor" not in match["to"]:
            raw[slot] = match["to"] if "ctx" not in (match["name"] or "") else "CommContext"
            continue
        tensors.add(slot)
        if match["name"]:
            names[match["name"]] = slot
    types: dict[int, DType | None] = {}
    for match in _ELEMENTS.finditer(text):
        if match["name"] in names:
            types.setdefault(names[match["name"]], dtype_named(match["type"]))
    read = (set(shape_of_source(text, None).slots) | tensors) - set(raw)
    slots = [_slot(slot, slot in tensors, types.get(slot)) for slot in sorted(read)]
    return ReplayArguments((*slots, *_pointed_to(raw, slots)))


def _slot(slot: int, is_tensor: bool, dtype: DType | None) -> ReplaySlot:
    if not is_tensor:
        return _word(slot, 1)
    dtype = dtype or _FLOAT32
    content = Random(0) if dtype.is_float and dtype.size > 1 else Fill(1)
    return make_tensor(
        slot, dtype, _SHAPE, content, Tier.SYNTHETIC,
        role=Role.INOUT, recorded_size=_BUFFER_BYTES, origin="made up",
    )  # fmt: skip


def _word(slot: int, bits: int) -> ReplayScalar:
    return ReplayScalar(slot, _INT64, bits, Tier.SYNTHETIC, origin="made up")


def _pointed_to(raw: dict[int, str], before: list[ReplaySlot]) -> list[ReplaySlot]:
    """What raw pointers lead to, in slots of its own, and the pointers."""
    held: list[ReplayTensor] = []
    for i, (_, pointee) in enumerate(sorted(raw.items())):
        if "CommContext" in pointee:
            windows = [BASE + (rank - _RANK) % _RANKS * _PEER for rank in range(_RANKS)]
            windows += [0] * (_MOST_RANKS - _RANKS)
            words = [0, 0, _RANK | _RANKS << 32, _PEER, *windows, *windows]
            context = np.array(words, np.uint64).view(np.int64)
            held.append(make_tensor(_SPARE_SLOT + i, _INT64, context.shape, CallerArray(context), Tier.SYNTHETIC,
                                    role=Role.INOUT, origin="made up"))  # fmt: skip
        else:
            held.append(
                make_tensor(_SPARE_SLOT + i, _INT32, _SHAPE, Fill(1), Tier.SYNTHETIC,
                            role=Role.INOUT, recorded_size=_BUFFER_BYTES, origin="made up")
            )  # fmt: skip
    found = _addresses([slot for slot in before if isinstance(slot, ReplayTensor)] + held)
    pointers = [_word(slot, found[_SPARE_SLOT + i]) for i, slot in enumerate(sorted(raw))]
    return [*held, *pointers]


def _addresses(tensors: Iterable[ReplayTensor]) -> dict[int, int]:
    """Where a run puts what each slot holds: behind the array of arguments (less than a page) and descriptors."""
    tensors, memory = list(tensors), GlobalMemory()
    memory.reserve("arguments", 1)
    memory.reserve("descriptors", DESCRIPTOR_SIZE * max(1, len(tensors)))
    return {one.slot: memory.reserve("", one.declared_size, one.buffer_size).address for one in tensors}


def notified(arguments: ReplayArguments, slot: int, address: int, value: int) -> ReplayArguments:
    """The arguments with a slot's signals at a value, as peers that came this far would have left them."""
    offset = address - _addresses(arguments.tensors)[slot]

    def signalled(one: ReplaySlot) -> ReplaySlot:
        if not isinstance(one, ReplayTensor) or one.slot != slot:
            return one
        rows = offset // (_SHAPE[1] * one.dtype.size) + 1  # a signal may lie behind the data
        shape = (max(rows, *one.shape[:1]), _SHAPE[1])
        return make_tensor(
            slot, one.dtype, shape, Fill(value), Tier.SYNTHETIC,
            role=Role.INOUT, recorded_size=_BUFFER_BYTES, origin="made up",
        )  # fmt: skip

    return ReplayArguments(tuple(signalled(one) for one in arguments.slots))


def members_of(source: Path, text: str) -> tuple[list[tuple[Path, CoreType]], str]:
    """The sources that run together with this one on a cluster, itself among them, and the text of them all."""
    members = [(source, core_type) for core_type in core_types(source, text)]
    if len(members) == 1 and _OTHER_CORES.search(text):
        own = members[0][1]
        other = CoreType.AIV if own is CoreType.AIC else CoreType.AIC
        beside = partner(source, own, other)
        if beside:
            members.append((beside, other))
            text += beside.read_text(encoding="utf-8", errors="replace")
    members += [member for member in members if len(members) == 2 and member[1] is CoreType.AIV]
    return members, text


def run_kernel(root: Path, source: Path, toolchain: Toolchain, options: EmbeddedOptions) -> Outcome:
    """Compiles and runs one kernel; whatever happens is an outcome."""
    place = str(source.relative_to(root))
    text = source.read_text(encoding="utf-8", errors="replace")
    dirs = include_dirs(root, source)
    options = replace(options, target=target_of(root, source))
    try:
        members, text = members_of(source, text)
        kernels = [Kernel(path.stem, path, core_type, include_dirs=dirs) for path, core_type in members]
        arguments = made_up_arguments(text)
        result = run_embedded(kernels, arguments, options, toolchain)
        for _ in range(_MOST_SIGNALS):
            waits = _WAITS.search(result.failure.message) if result.failure else None
            if waits is None:
                break
            arguments = notified(arguments, int(waits["slot"]), int(waits["at"], 16), int(waits["value"]))
            result = run_embedded(kernels, arguments, options, toolchain)
    except InsightTraceError as error:
        return Outcome(place, "failed", False, error.what, place, "input")
    return _outcome(place, result, endless=_ENDLESS.search(text) is not None)


def _outcome(place: str, result: Simulation, *, endless: bool) -> Outcome:
    failure = result.failure
    if failure is None:
        return Outcome(place, "ran", True)
    if endless and failure.message.startswith("still running after"):
        return Outcome(place, "endless", True, _cause(failure, True), failure.where or place)
    # a log is kept of what the compiler refused, and of nothing else
    compiled = not failure.log and not failure.message.startswith("the kernel does not compile")
    state = "unsupported" if failure.fault is Fault.NOT_SUPPORTED else "failed"
    return Outcome(
        place, state, compiled, _cause(failure, compiled), failure.where or place, failure.fault.value
    )


def _cause(failure: Failure, compiled: bool) -> str:
    """The message without what differs from one kernel to the next."""
    if not compiled:
        return failure.message
    text = re.sub(r"0x[0-9a-fA-F]+", "0x…", failure.message)
    text = re.sub(r" at [\w.]+:\d+", "", text)
    return re.sub(r"\b\d+\b", "N", text)


def causes(outcomes: Iterable[Outcome]) -> list[tuple[int, Outcome]]:
    """Outcomes that did not end well, grouped by cause, the most frequent first, with one example each."""
    groups: defaultdict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.state != "ran":
            groups[outcome.state, outcome.fault, outcome.cause].append(outcome)
    return sorted(
        ((len(group), min(group, key=lambda o: o.source)) for group in groups.values()),
        key=lambda item: (-item[0], item[1].cause),
    )


def summary(outcomes: list[Outcome]) -> str:
    count = {
        state: sum(o.state == state for o in outcomes)
        for state in ("ran", "endless", "unsupported", "failed")
    }
    compiled = sum(o.compiled for o in outcomes)
    return (
        f"KERNELS total={len(outcomes)} compiled={compiled} ran={count['ran']} endless={count['endless']} "
        f"unsupported={count['unsupported']} failed={count['failed']}"
    )


def _report(outcomes: list[Outcome]) -> Iterator[str]:
    for count, example in causes(outcomes):
        yield f"{count:5}  {example.state:<11} {example.fault:<13} {example.cause[:150]}"
        yield f"       e.g. {example.place}"
    ours = sum(o.fault == Fault.OUR_BUG for o in outcomes)
    yield f"crashes of the engine itself: {ours}"
    yield summary(outcomes)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simpler", type=Path, required=True, help="the checkout")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="kernels at a time")
    parser.add_argument("--only", default="", help="kernels whose path contains this text")
    parser.add_argument("--target", choices=("a2a3", "a5"), help="kernels of that family")
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit for one run")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per kernel, then the counts"
    )
    options = parser.parse_args(argv)
    root = options.simpler.resolve()
    if not root.is_dir():
        parser.error(f"--simpler: there is no directory {root}")
    sources = [
        path
        for path in kernel_sources(root)
        if options.only in str(path) and options.target in (None, target_of(root, path))
    ]
    toolchain = Toolchain.find()
    toolchain.runner()
    how = EmbeddedOptions(seconds=options.seconds)
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for outcome in pool.map(lambda source: run_kernel(root, source, toolchain, how), sources):
            outcomes.append(outcome)
            if options.json:
                print(json.dumps(dataclasses.asdict(outcome)), flush=True)
            elif sys.stderr.isatty():
                print(f"\r{len(outcomes)} of {len(sources)}", end="", file=sys.stderr)
    if options.json:
        print(summary(outcomes))
    else:
        print("\n".join(_report(outcomes)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
