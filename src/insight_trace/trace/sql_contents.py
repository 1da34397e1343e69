"""What the tables of SQL hold: large columns as they lie in memory, small facts as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from insight_trace.dtypes import DTYPES
from insight_trace.recording.busy import Cores
from insight_trace.recording.cache_use import cache_use
from insight_trace.recording.frames import split_frame, user_frames
from insight_trace.recording.kinds import finish, kinds
from insight_trace.recording.operands import (
    MEMORIES,
    all_operands,
    instruction_of_operands,
    operands_of,
    touched_bytes,
)
from insight_trace.recording.store import Recording
from insight_trace.recording.tile_lives import named_tiles, tile_lives, tile_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

Columns = Mapping[str, "NDArray[Any]"]
Rows = Iterable[tuple[Any, ...]]


def stream(recording: Recording) -> Columns:
    """Columns by instruction, none of them copied but the few that are worked out."""
    import numpy as np

    columns, operands = recording.instructions, operands_of(recording.instructions)
    asked, missed = np.zeros((2, len(columns)), np.int64)
    if (use := cache_use(columns)) is not None:
        asked[use.rows], missed[use.rows] = use.asked, use.missed
    return {
        "row": np.arange(len(columns), dtype=np.int64),
        "core": columns.core,
        "pipe": columns.pipe,
        "name": columns.name,
        "kind": kinds(columns),
        "stack": columns.stack,
        "issue": columns.issue,
        "start": columns.start,
        "finish": finish(columns),
        "bytes": columns.process_bytes,
        "partner": columns.partner,
        "stall": columns.stall,
        "read_conflict": columns.read_conflict,
        "write_conflict": columns.write_conflict,
        "utilisation": columns.utilisation,
        "form": operands.form,
        "value": operands.value,
        "call": operands.call,
        "asked": asked,
        "missed": missed,
    }


def operands(recording: Recording) -> Columns:
    operands = operands_of(recording.instructions)
    rows = operands.rows[all_operands(operands)]
    return {
        "instruction": instruction_of_operands(operands),
        "address": rows["address"],
        "footprint": rows["footprint"],
        "tile": rows["tile"],
    }


def footprints(recording: Recording) -> Columns:
    """The reach of each, from its address on, and how many bytes it touches in it."""
    import numpy as np

    prints = operands_of(recording.instructions).footprints
    ways = prints["step"] * (prints["count"].astype(np.int64) - 1)
    low = prints["offset"] + np.minimum(ways, 0).sum(axis=1)
    high = prints["offset"] + np.maximum(ways, 0).sum(axis=1) + prints["run"]
    names = ("memory", "role", "which", "exact", "owner")
    return {
        "id": np.arange(len(prints), dtype=np.int64),
        **{name: prints[name] for name in names},
        "low": low,
        "high": high,
        "bytes": touched_bytes(prints),
    }


def calls(recording: Recording) -> Columns:
    import numpy as np

    calls = operands_of(recording.instructions).calls
    return {"call": np.arange(len(calls), dtype=np.int64), "op": calls["op"]}


def lives(recording: Recording) -> Columns:
    lives = tile_lives(recording.trace, named_tiles(recording.about.get("tiles") or ()))
    if lives is None:
        operands_of(recording.instructions)  # says why there are none
        raise AssertionError
    names = ("core", "tile", "begin", "end", "first", "last", "overlap")
    return {name: getattr(lives, name) for name in names} | {"written": lives.written}


def places(recording: Recording) -> Rows:
    lives = tile_lives(recording.trace, named_tiles(recording.about.get("tiles") or ()))
    for number, tile in enumerate(lives.tiles if lives else ()):
        yield number, tile.name, tile.memory, tile.address, tile.bytes, tile.shape


def tiles(recording: Recording) -> Rows:
    operands = operands_of(recording.instructions)
    words = tile_words(recording.trace)
    known = named_tiles(recording.about.get("tiles") or ())
    for number, tile in enumerate(operands.tiles):
        memory, address, code = MEMORIES[tile["memory"]], int(tile["address"]), int(tile["type"])
        names = known.get((memory, address)) or words.get(number) or [""]
        kind = DTYPES[code].short if code < len(DTYPES) else None
        in_gm = memory == "GM"
        shape = tile["shape"].tolist() if in_gm else [int(tile["rows"]), int(tile["cols"])]
        valid = None if in_gm else f"[{tile['valid_rows']},{tile['valid_cols']}]"
        yield number, names[0] or None, memory, address, kind, f"[{','.join(map(str, shape))}]", valid


def frames(recording: Recording) -> Rows:
    for number, frame in enumerate(user_frames(recording.instructions.stacks)):
        path, line = split_frame(frame)
        yield number, path or None, line or None


def sources(recording: Recording) -> Rows:
    for path, content in recording.trace.sources.items():
        for number, text in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            yield path, number, text


def pipes(recording: Recording) -> Rows:
    for one in Cores(recording.trace).pipes:
        yield one.core, one.pipe, one.instructions, one.busy, one.waiting, one.idle


def cores(recording: Recording) -> Rows:
    for one in Cores(recording.trace).cores:
        yield one.core, one.begin, one.end, one.cycles, one.instructions, one.scalar_alone, one.nothing


def _objects(values: Iterable[Any]) -> list[Mapping[str, Any]]:
    """What a header has as objects; it may hold anything."""
    return [value for value in values if isinstance(value, Mapping)]


def findings(recording: Recording) -> Rows:
    keys = ("category", "severity", "message", "fix", "memory", "begin", "end", "count", "cycles")
    for number, finding in enumerate(_objects(recording.findings)):
        values = [finding.get(key) for key in keys]
        yield number, *(None if value in (-1, "") else value for value in values)


def finding_places(recording: Recording) -> Rows:
    for number, finding in enumerate(_objects(recording.findings)):
        for place in _objects(finding.get("places") or ()):
            row = place.get("row", -1)
            texts = (place.get(key) or None for key in ("file", "line", "instruction", "pipe", "core"))
            yield number, *texts, row if row >= 0 else None


def arguments(recording: Recording) -> Rows:
    for one in _objects(recording.arguments):
        shape = one.get("shape")
        text = f"[{','.join(map(str, shape))}]" if shape is not None else None
        keys = ("slot", "kind", "name", "dtype", "role", "tier", "origin", "address", "size", "bits")
        values = [one.get(key) for key in keys]
        yield *(None if value == "" else value for value in values), text


def checks(recording: Recording) -> Rows:
    for one in _objects(recording.checks):
        yield tuple(one.get(key) for key in ("slot", "status", "max_error", "wrong", "compared", "why"))


def kernels(recording: Recording) -> Rows:
    for one in _objects(recording.kernels):
        yield tuple(one.get(key) for key in ("name", "core_type", "func_id", "entry", "source"))


def run(recording: Recording) -> Rows:
    trace, about = recording.trace, recording.about
    cycles = Cores(trace).total
    interval = trace.confidence
    share = (about.get("estimates") or {}).get("share")
    yield (
        trace.soc_version, trace.mhz, cycles, cycles / trace.mhz, interval and interval.low, interval and interval.high,
        share, about.get("scene"), about.get("case"), about.get("target"), about.get("preset"),
        recording.versions.get("insight_trace"),
    )  # fmt: skip
