"""Makes one tile op of a kernel wrong, and asks `why --first-mismatch` and `diverge` which one it was.

python tools/inject_faults.py --scene examples/paged_attention/scene.py [--scene ...] [--tree SIMPLER] [--tree examples]
python tools/inject_faults.py --tree SIMPLER --part 0 2 --json A; ... --part 1 2 --json B; ... --join A --join B

A kernel is a source with its arguments: those of a scene's dispatches, or of a tree's kernels, on arguments that are
made up. A fault changes the operands of one op while the kernel runs, in one execution of its line or in all: another
rounding mode, another element type, a row less, a valid size off by one, another buffer, another number. They share nothing
with the search. A fault that ends the run or that no output shows is counted and drawn again; none comes twice.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

import insight_trace
import kernel_coverage
from insight_trace.arguments.buffers import scatter, view_of
from insight_trace.arguments.slots import Random, Recorded, ReplayArguments, ReplayTensor, make_tensor
from insight_trace.debug.debug_session import Session, open_session
from insight_trace.debug.divergence import diverge
from insight_trace.debug.mismatch import wrong_outputs
from insight_trace.debug.tile_calls import TileCall, TileCalls
from insight_trace.debug.tile_layout import Tile, element_size, numpy_type, type_name
from insight_trace.debug.why import first_mismatch
from insight_trace.errors import InsightTraceError
from insight_trace.model import Kernel, Payload, Role
from insight_trace.replay.pipeline import make_trace, recording_of
from insight_trace.simulate.embedded.journaling import OperandChange
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

_DRAWS = 4  # of one kind in one kernel
_MOST_ROWS = 30_000
_SHAPE, _LARGE = (128, 1024), (2048, 2048)
_APART = 4096  # numbers by which slots differ
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SAME_SIZE = (("f32", "i32", "u32"), ("f16", "bf16", "i16", "u16"), ("i8", "u8"))
_FLOATS = ("f32", "f16", "bf16")
_ROUND_MODES = 7
_TYPES = 64
Result = dict[str, Any]


# --- kernels ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Subject:
    """A kernel with its arguments, run without fault: what it leaves in them is what is expected."""

    name: str
    identity: str  # the same for the same source, whatever its comments, on the same family
    session: Session


def identity_of(text: str, *more: str) -> str:
    plain = "".join(_COMMENT.sub(" ", text).split())
    return hashlib.sha256("\n".join((plain, *more)).encode()).hexdigest()[:16]


def of_scene(scene: Path, case: str | None, folder: Path, target: str | None) -> Iterator[Subject]:
    """One dispatch of each kind that a case of a scene has."""
    options: dict[str, Any] = {"target": target, "any_target": True} if target else {}
    capture = insight_trace.capture(scene, case=case, output=folder / "dump", golden=False)
    kinds: dict[tuple[int, ...], Any] = {}
    for dispatch in insight_trace.load_dump(capture.directory).dispatches:
        kinds.setdefault(dispatch.func_ids, dispatch)
    for number, (func_ids, dispatch) in enumerate(kinds.items()):
        try:
            replay = insight_trace.replay(
                scene, case=case, func_id=func_ids, dump_dir=capture.directory, simulator="embedded",
                dispatch_id=dispatch.dispatch_id, output=folder / f"replay{number}", **options,
            )  # fmt: skip
            session = open_session(replay.workspace)
            session.journal()
        except InsightTraceError as error:
            print(f"  {scene} func {func_ids}: {error.what}", file=sys.stderr)
            continue
        text = "\n".join(kernel.source.read_text(encoding="utf-8") for kernel in session.kernels)
        name = f"{scene.parent.name}::{case or ''} {'+'.join(kernel.name for kernel in session.kernels)}"
        yield Subject(name, identity_of(text, "scene", case or "", target or ""), session)


def of_tree(
    root: Path, folder: Path, dice: random.Random, part: tuple[int, int] = (0, 1)
) -> Iterator[Subject]:
    """Kernels of one core in a folder of sources, each once, in a random order; of so many parts of them one."""
    sources = kernel_coverage.kernel_sources(root)
    dice.shuffle(sources)
    known: set[str] = set()
    for number, source in enumerate(sources):
        text = source.read_text(encoding="utf-8", errors="replace")
        kinds = kernel_coverage.core_types(source, text)
        target = kernel_coverage.target_of(root, source)
        identity = identity_of(text, target)
        if len(kinds) != 1 or identity in known:
            continue
        known.add(identity)
        if int(identity, 16) % part[1] != part[0]:
            continue
        include = kernel_coverage.include_dirs(root, source)
        kernel = Kernel(source.stem, source, kinds[0], include_dirs=include)
        place = folder / str(number)
        place.mkdir()
        try:
            session = made_up(kernel, kernel_coverage.made_up_arguments(text), target, place, folder)
        except InsightTraceError:
            continue
        if session is not None:
            yield Subject(str(source.relative_to(root)), identity, session)


def _with_shapes(arguments: ReplayArguments, inputs: set[int], pool: Path) -> ReplayArguments:
    """Tensors of numbers hold more of them, those that are only read so many that a kernel hardly reads past them.

    What is the same everywhere hides what is wrong.
    """
    slots = []
    for item in arguments.slots:
        if isinstance(item, ReplayTensor) and isinstance(item.content, Random | Recorded):
            shape = _LARGE if item.slot in inputs else _SHAPE
            item = make_tensor(
                item.slot, item.dtype, shape, _numbers(item, shape, pool), item.tier, role=item.role,
                recorded_size=item.buffer_size, origin=item.origin,
            )  # fmt: skip
        slots.append(item)
    return replace(arguments, slots=tuple(slots))


def _numbers(item: ReplayTensor, shape: tuple[int, ...], pool: Path) -> Recorded:
    """From -1 to 1, of a file that all kernels share; each slot begins elsewhere in it."""
    size, most = item.dtype.size, math.prod(_LARGE) + 64 * _APART
    file = pool / item.dtype.name
    if not file.exists():
        values = np.random.default_rng(0).uniform(-1, 1, most).astype(np.float32)
        file.write_bytes(values.astype(item.dtype.numpy).tobytes())
    return Recorded(Payload(file, item.slot * _APART * size, math.prod(shape) * size))


def made_up(
    kernel: Kernel, arguments: ReplayArguments, target: str, place: Path, pool: Path
) -> Session | None:
    """The kernel on arguments that are made up; None: it does not run, or is too short or too long."""
    arguments = _with_shapes(arguments, set(), pool)
    run = run_embedded([kernel], arguments, EmbeddedOptions(seconds=5, target=target))
    if run.failure is not None or not 20 < len(run.instructions) < _MOST_ROWS:
        return None
    inputs = {t.slot for t in arguments.tensors if _before(t) == view_of(t, run.buffers[t.slot]).tobytes()}
    arguments = _with_shapes(arguments, inputs, pool)
    run = run_embedded([kernel], arguments, EmbeddedOptions(seconds=5, target=target))
    if run.failure is not None:
        return None
    slots: list[Any] = []
    for item in arguments.slots:
        if isinstance(item, ReplayTensor) and item.slot in inputs:
            item = replace(item, role=Role.INPUT)
        elif isinstance(item, ReplayTensor):
            file = place / f"slot{item.slot}"
            file.write_bytes(view_of(item, run.buffers[item.slot]).tobytes())
            item = replace(item, expected=Payload(file, 0, file.stat().st_size))
        slots.append(item)
    known = replace(arguments, slots=tuple(slots))
    recording = recording_of(run, make_trace(run), [kernel], known)
    session = Session(place, recording, {"target": target}, ((kernel,), known))
    session.journal()
    return session


def _before(tensor: ReplayTensor) -> bytes:
    held = np.zeros(tensor.extent * tensor.dtype.size, np.uint8)
    scatter(tensor, held)
    return view_of(tensor, held).tobytes()


# --- faults of a tile op: its operands changed while the kernel runs ----------------------------------------


@dataclass(frozen=True)
class Fault:
    """One op that is wrong, in one execution of its line or in all of them."""

    kind: str
    file: str
    line: int
    op: str
    text: str
    executions: int
    changes: tuple[OperandChange, ...]


Place = tuple[str, int, str]
Drawn = tuple[str, list[OperandChange]]


def sites(session: Session, calls: TileCalls) -> dict[Place, list[TileCall]]:
    """Lines with a tile op, and their executions."""
    found: dict[Place, list[TileCall]] = {}
    for number in range(len(calls)):
        call = calls[number]
        if call.first >= 0:
            found.setdefault((*session.place_of(call.first), call.op), []).append(call)
    return found


def draw(kind: str, session: Session, calls: TileCalls, dice: random.Random) -> Fault | None:
    """A fault of a kind in a random op that can have it."""
    known = sites(session, calls)
    places = sorted(known)
    dice.shuffle(places)
    for place in places:
        executed = known[place]
        if len(executed) > 1 and dice.random() < 0.5:
            executed = [dice.choice(executed)]
        text, changes = KINDS[kind](executed, calls, dice)
        if changes:
            return Fault(kind, *place, text, len({change.call for change in changes}), tuple(changes))
    return None


def _on_chip(call: TileCall) -> list[tuple[int, Tile]]:
    return [(operand, tile) for operand, tile in call.tiles if not tile.in_global]


def _some(call: TileCall, dice: random.Random) -> list[int]:
    """All tiles of an op, or one of them."""
    operands = [operand for operand, _ in _on_chip(call)]
    return operands if not operands or dice.random() < 0.5 else [dice.choice(operands)]


def _rounding(executed: Sequence[TileCall], _: TileCalls, dice: random.Random) -> Drawn:
    some = executed[0]
    options = [(operand, number) for operand, number in some.numbers if number.type < 0]
    if some.op != "TCVT" or not options:
        return "", []
    operand, old = options[0]
    mode = dice.choice([mode for mode in range(_ROUND_MODES) if mode != old.value])
    return f"mode {mode} for {old.value}", [
        OperandChange(call.number, operand, "option", mode) for call in executed
    ]


def _type(executed: Sequence[TileCall], _: TileCalls, dice: random.Random) -> Drawn:
    some = executed[0]
    tiles = _on_chip(some)
    if not tiles:
        return "", []
    old = dice.choice(tiles)[1].type
    family = next((names for names in _SAME_SIZE if type_name(old) in names), ())
    others = [code for code in range(_TYPES) if code != old and type_name(code) in family]
    if not others:
        return "", []
    new = dice.choice(others)
    chosen = {operand for operand, given in enumerate(some.operands) if given.type == old}
    chosen -= {operand for operand, tile in some.tiles if tile.in_global}
    if dice.random() < 0.5:
        chosen = {dice.choice(sorted(chosen))}
    changes = [
        OperandChange(call.number, operand, "type", new) for call in executed for operand in sorted(chosen)
    ]
    return f"{type_name(new)} for {type_name(old)}, operands {sorted(chosen)}", changes


def _sized(executed: Iterable[TileCall], chosen: Sequence[int], field: str, by: int) -> list[OperandChange]:
    changes = []
    for call in executed:
        for operand, tile in _on_chip(call):
            value = getattr(tile, field) + by
            most = tile.rows if field == "valid_rows" else tile.cols
            if operand in chosen and 0 < value <= most:
                changes.append(OperandChange(call.number, operand, field, value))
    return changes


def _row(executed: Sequence[TileCall], _: TileCalls, dice: random.Random) -> Drawn:
    chosen = _some(executed[0], dice)
    plain = all(tile.plain for _, tile in _on_chip(executed[0]))
    changes = _sized(executed, chosen, "valid_rows", -1)
    if not changes or not plain or dice.random() < 0.5:
        return f"the last row is dropped, operands {chosen}", changes
    moved = []
    for call in executed:
        for operand, tile in _on_chip(call):
            if operand in chosen and tile.valid_rows > 1:
                line = tile.cols * element_size(tile.type)
                moved.append(OperandChange(call.number, operand, "address", tile.address + line))
    return f"the first row is dropped, operands {chosen}", [*changes, *moved]


def _valid(executed: Sequence[TileCall], _: TileCalls, dice: random.Random) -> Drawn:
    field, by = dice.choice((("valid_cols", -1), ("valid_cols", 1), ("valid_rows", 1)))
    chosen = _some(executed[0], dice)
    return f"{field} {by:+}, operands {chosen}", _sized(executed, chosen, field, by)


def _buffer(executed: Sequence[TileCall], calls: TileCalls, dice: random.Random) -> Drawn:
    some = executed[0]
    tiles = _on_chip(some)
    if not tiles:
        return "", []
    operand, tile = dice.choice(tiles)
    others = {
        other.address
        for number in range(len(calls))
        if calls[number].core == some.core
        for _, other in calls[number].tiles
        if not other.in_global and other.memory == tile.memory
    } - {tile.address}
    if not others:
        return "", []
    address = dice.choice(sorted(others))
    changes = [
        OperandChange(call.number, operand, "address", address)
        for call in executed
        if call.operands[operand] == tile
    ]
    return f"operand {operand} at 0x{address:x} for 0x{tile.address:x}", changes


def _scale(executed: Sequence[TileCall], _: TileCalls, dice: random.Random) -> Drawn:
    numbers = [(i, n) for i, n in executed[0].numbers if n.type >= 0 and type_name(n.type) in _FLOATS]
    if not numbers:
        return "", []
    operand, number = dice.choice(numbers)
    factor = dice.choice((0.5, 2.0, -1.0, 1.01, 1 / 1.01, 2 ** dice.uniform(-3, 3)))
    with np.errstate(over="ignore"):
        value = np.array([number.value * factor if number.value else factor], np.float64).astype(np.float32)
    if not np.isfinite(value).all():
        return "", []
    bits = int.from_bytes(value.astype(numpy_type(number.type)).tobytes().ljust(8, b"\0"), "little")
    changes = [OperandChange(call.number, operand, "scalar", bits) for call in executed]
    return f"{float(value[0]):g} for {number.value:g}", changes


KINDS: dict[str, Callable[[Sequence[TileCall], TileCalls, random.Random], Drawn]] = {
    "rounding": _rounding, "type": _type, "row": _row, "valid": _valid, "buffer": _buffer, "scale": _scale,
}  # fmt: skip


# --- what finds them ----------------------------------------------------------------------------------------


def wrong_session(good: Session, fault: Fault, folder: Path) -> Session | str:
    """The run with the fault; or why there is none: it fails, or no output shows it."""
    run = good.run(fault.changes)
    if run.failure is not None:
        return "fails"
    about = dict(good.recording.about) | {
        "changes": [[c.call, c.operand, c.field, c.value] for c in fault.changes]
    }
    folder.mkdir()
    recording = recording_of(run, make_trace(run), good.kernels, good.arguments, (), about)
    session = Session(folder, recording, good.record, (good.kernels, good.arguments))
    return session if wrong_outputs(session, run) else "not seen"


def asked(good: Session, fault: Fault, bad: Session, seconds: float) -> Result:
    """What both commands say."""
    wanted = (fault.file, fault.line, fault.op)
    begin = time.perf_counter()
    plain = first_mismatch(bad, seconds=0)
    middle = time.perf_counter()
    said = first_mismatch(bad, seconds=seconds) if seconds > 0 else plain
    between = time.perf_counter()
    parted = diverge(good, bad)
    named = parted.origin[0] if parted.origin else parted.first.a if parted.first else None
    place = (*good.place_of(named.first), named.op) if named is not None else None

    def rank(found: Any) -> int:
        for number, one in enumerate(found.suspects, 1):
            # a workspace's copy of a kernel has a number before its name
            same_file = Path(one.file).name.endswith(Path(fault.file).name.lstrip("0123456789_"))
            if same_file and (one.line, one.op) == wanted[1:]:
                return number
        return 0

    first = said.suspects[0] if said.suspects else None
    return {
        "kind": fault.kind, "op": fault.op, "line": fault.line, "fault": fault.text, "executions": fault.executions,
        "rank": rank(said), "rank_without_runs": rank(plain), "suspects": len(said.suspects), "runs": said.runs,
        "diverge": place == wanted, "seconds": round(between - middle, 2), "seconds_without": round(middle - begin, 2),
        "first": f"{first.op}:{first.line} {first.fix} {first.explained:.2f}" if first else "",
        "diverged": f"{place[2]}:{place[1]}" if place else "",
    }  # fmt: skip


class Injection:
    """Faults in one kernel after the other, kinds that were rare so far first."""

    def __init__(self, seed: int, faults: int, seconds: float) -> None:
        self.results: list[Result] = []
        self.left_out: Counter[tuple[str, str]] = Counter()
        self.kernels: set[str] = set()
        self._seed, self._faults, self._seconds = seed, faults, seconds

    def of(self, subject: Subject) -> int:
        """How many faults of a kernel were looked for."""
        if subject.identity in self.kernels:
            return 0
        dice = random.Random(f"{self._seed} {subject.identity}")
        calls = TileCalls(subject.session)
        found, seen = 0, set()
        for kind in self._kinds(dice):
            for number in range(_DRAWS):
                fault = draw(kind, subject.session, calls, dice)
                if fault is None or found >= self._faults:
                    break
                if fault in seen:
                    continue
                seen.add(fault)
                folder = subject.session.workspace / f"fault-{kind}-{number}"
                bad = wrong_session(subject.session, fault, folder)
                if isinstance(bad, str):
                    self.left_out[kind, bad] += 1
                else:
                    answer = asked(subject.session, fault, bad, self._seconds)
                    self.results.append({"kernel": subject.name, "identity": subject.identity} | answer)
                    print(json.dumps(self.results[-1]), flush=True)
                    found += 1
                shutil.rmtree(folder, ignore_errors=True)
                if not isinstance(bad, str):
                    break
        if found:
            self.kernels.add(subject.identity)
        return found

    def join(self, other: dict[str, Any]) -> None:
        """Adds what another run found; of a kernel that both had the first."""
        fresh = [result for result in other["results"] if result["identity"] not in self.kernels]
        self.results += fresh
        self.kernels |= {result["identity"] for result in fresh}
        for kind, why, count in other["left_out"]:
            self.left_out[kind, why] += count

    def _kinds(self, dice: random.Random) -> list[str]:
        so_far = Counter(result["kind"] for result in self.results)
        return sorted(KINDS, key=lambda kind: (so_far[kind], dice.random()))

    def table(self) -> Iterator[str]:
        """How often each was right, by kind."""
        yield f"{'fault':<10}{'faults':>7}{'first':>8}{'three':>8}   without runs: first, three{'diverge':>10}   left out"
        for kind in [*KINDS, "all"]:
            mine = [r for r in self.results if kind in (r["kind"], "all")]
            if not mine:
                continue

            def share(key: str, most: int, of: list[Result] = mine) -> str:
                return f"{100 * sum(1 <= int(r[key]) <= most for r in of) / len(of):.1f} %"

            left = Counter[str]()
            for (of_kind, why), count in self.left_out.items():
                left[why] += count if kind in (of_kind, "all") else 0
            yield (
                f"{kind:<10}{len(mine):>7}{share('rank', 1):>8}{share('rank', 3):>8}"
                f"{share('rank_without_runs', 1):>23}{share('rank_without_runs', 3):>8}{share('diverge', 1):>9}   "
                f"{left['fails']} end the run, {left['not seen']} no output shows"
            )
        yield f"{len(self.kernels)} kernels, seed {self._seed}, {self._seconds:g} s of runs for an answer"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scene", action="append", default=[], metavar="SCENE[::CASE]")
    parser.add_argument(
        "--tree", action="append", type=Path, default=[], help="a folder of sources with kernel_entry"
    )
    parser.add_argument("--kernels", type=int, default=10_000, help="with a fault, of each tree")
    parser.add_argument("--faults", type=int, default=1, help="of each kernel (default: %(default)s)")
    parser.add_argument("--target", choices=("a2a3", "a5"), help="of scenes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0, help="of runs for one answer")
    parser.add_argument(
        "--part", type=int, nargs=2, default=(0, 1), metavar=("I", "N"), help="the Ith of N of a tree"
    )
    parser.add_argument(
        "--join", type=Path, action="append", default=[], help="results of another run (its --json)"
    )
    parser.add_argument("--json", type=Path, metavar="F")
    options = parser.parse_args()
    injection = Injection(options.seed, options.faults, options.seconds)
    for text in options.scene:
        scene, _, case = text.partition("::")
        with tempfile.TemporaryDirectory() as folder:
            try:
                for subject in of_scene(Path(scene), case or None, Path(folder), options.target):
                    injection.of(subject)
            except InsightTraceError as error:
                print(f"  {text}: {error.what}", file=sys.stderr)
    for root in options.tree:
        found = 0
        with tempfile.TemporaryDirectory() as folder:
            part = (options.part[0], options.part[1])
            for subject in of_tree(root.resolve(), Path(folder), random.Random(options.seed), part):
                found += injection.of(subject) > 0
                shutil.rmtree(subject.session.workspace, ignore_errors=True)
                if found >= options.kernels:
                    break
    for file in options.join:
        injection.join(json.loads(file.read_text()))
    if injection.results:
        print("\n".join(injection.table()))
    if options.json:
        left = [[*key, count] for key, count in injection.left_out.items()]
        options.json.write_text(json.dumps({"results": injection.results, "left_out": left}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
