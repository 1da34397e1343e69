"""Makes one tile op of a kernel wrong, and asks `why --first-mismatch` and `diverge` which one it was.

python tools/inject_faults.py --scene examples/paged_attention/scene.py [--scene ...] [--faults N] [--seed S] [--json F]
python tools/inject_faults.py --checkout SIMPLER [--kernels N]      kernels of a checkout, on made-up arguments

A fault is a change of one line's operands while the kernel runs: another rounding mode, another element type, a row
less, a column less or more, a source in another buffer, another number. Faults that no output shows are drawn again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import insight_trace
from insight_trace.arguments.buffers import view_of
from insight_trace.arguments.slots import ReplayArguments, ReplayTensor
from insight_trace.debug.debug_session import Session, open_session
from insight_trace.debug.divergence import diverge
from insight_trace.debug.mismatch import wrong_outputs
from insight_trace.debug.tile_calls import TileCall, TileCalls
from insight_trace.debug.tile_layout import element_size, numpy_type
from insight_trace.debug.why import first_mismatch
from insight_trace.errors import InsightTraceError
from insight_trace.model import Kernel, Payload
from insight_trace.replay.recorded import recording_of
from insight_trace.replay.replaying import make_trace
from insight_trace.simulate.embedded.journaling import Change
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

_MOST_ROWS = 30_000
_DRAWS = 40  # for one fault that an output shows
KINDS = ("rounding", "type", "row", "valid", "buffer", "scale")


@dataclass(frozen=True)
class Fault:
    """One line of a kernel that is wrong."""

    kind: str
    file: str
    line: int
    op: str
    changes: tuple[Change, ...]


def sites(session: Session, calls: TileCalls) -> dict[tuple[str, int, str], list[TileCall]]:
    """Lines with a tile op, and their executions."""
    found: dict[tuple[str, int, str], list[TileCall]] = {}
    for number in range(len(calls)):
        call = calls[number]
        if call.first >= 0:
            found.setdefault((*session.place_of(call.first), call.op), []).append(call)
    return found


def faults(kind: str, executed: list[TileCall], calls: TileCalls, dice: random.Random) -> tuple[Change, ...]:
    """The changes of a fault of that kind, or none where the op cannot have it."""
    some = executed[0]
    changes: list[Change] = []
    if kind == "rounding" and some.op == "TCVT":
        operand, old = next((i, n) for i, n in some.numbers if n.type < 0)
        mode = dice.choice([m for m in (1, 2, 3, 4, 5) if m != old.value])
        changes = [Change(call.number, operand, "option", mode) for call in executed]
    elif kind == "type":
        others = {0: (2,), 1: (6, 3), 6: (1, 3), 2: (0,), 3: (1,)}
        old_type = some.tiles[-1][1].type
        if old_type in others and some.op not in ("TLOAD", "TSTORE", "TMOV"):
            new = dice.choice(others[old_type])
            changes = [
                Change(call.number, operand, "type", new)
                for call in executed
                for operand, given in enumerate(call.operands)
                if given.type == old_type
            ]
    elif kind in ("row", "valid"):
        field = "valid_rows" if kind == "row" else "valid_cols"
        by = -1 if kind == "row" else dice.choice((-1, 1))
        for call in executed:
            for operand, tile in call.tiles:
                value = getattr(tile, field) + by
                most = tile.rows if kind == "row" else tile.cols
                if not tile.in_global and 0 < value <= most and getattr(tile, field) > 1:
                    changes.append(Change(call.number, operand, field, value))
    elif kind == "buffer":
        sources = [(i, t) for i, t in some.tiles[1:] if not t.in_global]
        if sources:
            operand, tile = dice.choice(sources)
            size = tile.rows * tile.cols * element_size(tile.type)
            near = {
                other.address
                for number in range(len(calls))
                if calls[number].core == some.core
                for _, other in calls[number].tiles
                if other.memory == tile.memory and other.rows * other.cols * element_size(other.type) == size
            } - {tile.address}
            if near:
                address = dice.choice(sorted(near))
                changes = [
                    Change(call.number, operand, "address", address)
                    for call in executed
                    if call.operands[operand].address == tile.address
                ]
    elif kind == "scale":
        floats = [(i, n) for i, n in some.numbers if n.type in (0, 1, 6)]
        if floats:
            operand, number = dice.choice(floats)
            factor = dice.choice((0.5, 2.0, 1.25, 0.8, -1.0, 1.01))
            kind_ = numpy_type(number.type)
            value = np.array([number.value * factor if number.value else factor], np.float32).astype(kind_)
            bits = int.from_bytes(value.tobytes().ljust(8, b"\0"), "little")
            changes = [Change(call.number, operand, "scalar", bits) for call in executed]
    return tuple(changes)


def draw(session: Session, dice: random.Random) -> Fault | None:
    calls = TileCalls(session)
    known = sites(session, calls)
    kinds = list(KINDS)
    dice.shuffle(kinds)
    for kind in kinds:
        places = sorted(known)
        dice.shuffle(places)
        for place in places:
            changes = faults(kind, known[place], calls, dice)
            if changes:
                return Fault(kind, *place, changes)
    return None


def wrong_session(good: Session, fault: Fault, folder: Path) -> Session | None:
    """The run with the fault; None: it fails, or no output shows it."""
    folder.mkdir(parents=True)
    run = good.run(fault.changes)
    if run.failure is not None:
        return None
    about = dict(good.recording.about) | {
        "changes": [[c.call, c.operand, c.field, c.value] for c in fault.changes]
    }
    recording = recording_of(run, make_trace(run), good.kernels, good.arguments, (), about)
    session = Session(folder, recording, good.record, (good.kernels, good.arguments))
    return session if wrong_outputs(session, run) else None


def tried(good: Session, fault: Fault, bad: Session, seconds: float) -> dict[str, Any]:
    begin = time.perf_counter()
    said = first_mismatch(bad, seconds=seconds)
    middle = time.perf_counter()
    plain = first_mismatch(bad, seconds=0)
    between = time.perf_counter()
    parted = diverge(good, bad)
    named = parted.origin[0] if parted.origin else parted.first.a if parted.first else None
    place = (*good.place_of(named.first), named.op) if named is not None else None
    wanted = (fault.file, fault.line, fault.op)

    def rank(found: Any) -> int:
        lines = [(s.line, s.op) for s in found.suspects]  # the file is the workspace's copy
        key = (fault.line, fault.op)
        return lines.index(key) + 1 if key in lines else 0

    return {
        "kind": fault.kind, "op": fault.op, "line": fault.line, "rank": rank(said), "rank_without_runs": rank(plain),
        "runs": said.runs, "diverge": place == wanted, "why_seconds": round(middle - begin, 2),
        "diverge_seconds": round(time.perf_counter() - between, 2),
        "first": f"{said.suspects[0].op}:{said.suspects[0].line}" if said.suspects else "",
        "diverged": f"{place[2]}:{place[1]}" if place else "",
    }  # fmt: skip


def kernels(scene: Path, case: str | None, folder: Path, options: dict[str, Any]) -> Iterator[Session]:
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
            yield session
        except InsightTraceError as error:
            print(f"  {scene.parent.name} func {func_ids}: {error.what}", file=sys.stderr)


def of_checkout(root: Path, folder: Path, most: int) -> Iterator[Session]:
    """Kernels with arguments that are made up; what a run without fault leaves in them is what is expected."""
    import kernel_coverage

    found = 0
    for number, source in enumerate(kernel_coverage.kernel_sources(root)):
        text = source.read_text(encoding="utf-8", errors="replace")
        kinds = kernel_coverage.core_types(source, text)
        target = kernel_coverage.target_of(root, source)
        if len(kinds) != 1 or found >= most:
            continue
        kernel = Kernel(
            source.stem, source, kinds[0], include_dirs=kernel_coverage.include_dirs(root, source)
        )
        place = folder / str(number)
        place.mkdir()
        try:
            session = _made_up(kernel, kernel_coverage.made_up_arguments(text), target, place)
        except InsightTraceError:
            continue
        if session is not None:
            found += 1
            yield session


def _made_up(kernel: Kernel, arguments: ReplayArguments, target: str, place: Path) -> Session | None:
    run = run_embedded([kernel], arguments, EmbeddedOptions(seconds=5, target=target))
    if run.failure is not None or not 20 < len(run.instructions) < _MOST_ROWS:
        return None
    slots: list[Any] = []
    for item in arguments.slots:
        if isinstance(item, ReplayTensor):
            file = place / f"slot{item.slot}"
            file.write_bytes(np.ascontiguousarray(view_of(item, run.buffers[item.slot])).tobytes())
            item = dataclasses.replace(item, expected=Payload(file, 0, file.stat().st_size))
        slots.append(item)
    known = dataclasses.replace(arguments, slots=tuple(slots))
    recording = recording_of(run, make_trace(run), [kernel], known)
    session = Session(place, recording, {"target": target}, ((kernel,), known))
    session.journal()
    return session


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scene", action="append", default=[], metavar="SCENE[::CASE]")
    parser.add_argument("--checkout", type=Path, metavar="SIMPLER")
    parser.add_argument("--kernels", type=int, default=60, help="of the checkout (default: %(default)s)")
    parser.add_argument("--faults", type=int, default=5, help="of each kernel (default: %(default)s)")
    parser.add_argument("--target", choices=("a2a3", "a5"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0, help="of runs for one answer")
    parser.add_argument("--json", type=Path, metavar="F")
    options = parser.parse_args()
    more = {"target": options.target, "any_target": True} if options.target else {}
    results: list[dict[str, Any]] = []
    for text in options.scene:
        scene, _, case = text.partition("::")
        with tempfile.TemporaryDirectory() as folder:
            try:
                for session in kernels(Path(scene), case or None, Path(folder), more):
                    results += _of_kernel(session, Path(folder), options, text)
            except InsightTraceError as error:
                print(f"  {text}: {error.what}", file=sys.stderr)
    if options.checkout:
        with tempfile.TemporaryDirectory() as folder:
            for session in of_checkout(options.checkout.resolve(), Path(folder), options.kernels):
                source = Path(session.recording.kernels[0]["source"])
                name = str(source.relative_to(options.checkout.resolve()))
                results += _of_kernel(session, Path(folder), options, name)
    _show(results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return 0


def _of_kernel(
    session: Session, folder: Path, options: argparse.Namespace, scene: str
) -> list[dict[str, Any]]:
    name = session.recording.kernels[0]["name"]
    dice = random.Random(f"{options.seed} {scene} {name}")
    found, draws, seen = [], 0, set()
    while len(found) < options.faults and draws < _DRAWS:
        draws += 1
        fault = draw(session, dice)
        if fault is None:
            break
        if fault in seen:
            continue
        seen.add(fault)
        place = folder / f"fault-{session.workspace.name}-{name}-{draws}"
        bad = wrong_session(session, fault, place)
        if bad is None:
            continue
        result = {"scene": scene, "kernel": name} | tried(session, fault, bad, options.seconds)
        found.append(result)
        print(json.dumps(result), flush=True)
    return found


def _show(results: list[dict[str, Any]]) -> None:
    if not results:
        return
    count = len(results)

    def share(test: Any) -> str:
        hits = sum(map(test, results))
        return f"{hits} of {count} ({100 * hits / count:.1f} %)"

    print(f"faults                  {count}: {dict(Counter(r['kind'] for r in results))}")
    print(f"why, first              {share(lambda r: r['rank'] == 1)}")
    print(f"why, among three        {share(lambda r: 1 <= r['rank'] <= 3)}")
    print(f"without runs, first     {share(lambda r: r['rank_without_runs'] == 1)}")
    print(f"without runs, of three  {share(lambda r: 1 <= r['rank_without_runs'] <= 3)}")
    print(f"diverge names it        {share(lambda r: r['diverge'])}")


if __name__ == "__main__":
    sys.exit(main())
