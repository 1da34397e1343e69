"""What a recording adds to the vendor's timeline: lanes above the pipes, arrows between tile ops and cores, findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct

from insight_trace.insight.encoding import (
    Integers,
    Micros,
    Picked,
    Pieces,
    Strings,
    Texts,
    floats,
    json_text,
    lay,
    micros,
)
from insight_trace.insight.prepared import Prepared, chunks
from insight_trace.model import Instructions, Pipe
from insight_trace.recording.kinds import CROSS_CORE_NAMES, FLAG_NAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_FINDINGS = 2000  # a timeline with more marks than this shows nothing any more
MOST_ARROWS = 20_000  # of one category: they are drawn all at once
# Insight takes a colour of twelve by the sum of the name's characters, Chrome by the name: these mean the same to both.
# Perfetto takes the colours of slices from their names; there each severity has its lane.
_SEVERITIES = {"error": "cq_build_failed", "warning": "rail_animation", "note": "yellow"}


class Spans(Struct, frozen=True, eq=False):
    """Slices of one lane that is no pipe, of all cores, and arrows between them."""

    lane: str
    colour: str
    core: NDArray[np.int64]  # of the trace's cores
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    names: list[str]
    args: list[dict[str, Any]]
    category: str = ""  # of its arrows
    arrows: NDArray[np.int64] | None = None  # rows of (from, to)


def _event(
    prepared: Prepared,
    core: int,
    lane: str,
    name: str,
    colour: str,
    span: tuple[int, int],
    args: dict[str, Any],
) -> bytes:
    ts, dur = floats(micros(np.array([span[0], max(0, span[1] - span[0])]), prepared.mhz))
    return b'{"args":%s,"cname":"%s","dur":%s,"name":"%s","ph":"X","pid":"%s","tid":"%s","ts":%s},' % (
        msgspec.json.encode(args),
        colour.encode(),
        dur,
        json_text(name),
        json_text(prepared.instructions.cores[core]),
        json_text(lane),
        ts,
    )


def span_events(prepared: Prepared, spans: Sequence[Spans]) -> Iterator[bytes | memoryview]:
    cores = Texts(map(json_text, prepared.instructions.cores))
    for each in spans:
        lane, mhz = json_text(each.lane), prepared.mhz
        colour, where = b',"cname":"%s","dur":' % each.colour.encode(), b'","tid":"%s","ts":' % lane
        for part in chunks(np.arange(len(each.core))):
            begin, lasting = each.begin[part], np.maximum(0, each.end[part] - each.begin[part])
            known = zip(part.tolist(), begin.tolist(), each.end[part].tolist(), strict=True)
            encoded = [
                msgspec.json.encode({**each.args[place], "cycles": finish - start, "start_cycle": start})
                for place, start, finish in known
            ]
            names = Strings([each.names[place] for place in part.tolist()])
            laid: list[Pieces] = [b'{"args":', encoded, colour, Micros(lasting, mhz), b',"name":"', names]
            laid += [b'","ph":"X","pid":"', Picked(cores, each.core[part]), where, Micros(begin, mhz), b"},"]
            yield lay(laid, len(part))
        if each.arrows is None:
            continue
        category = each.category.encode()
        head = b'{"cat":"%s","id":"%s_' % (category, category)
        for part in chunks(np.arange(min(len(each.arrows), MOST_ARROWS))):
            ids, laid = Integers(part), []
            for side, phase, times in ((0, b"s", each.end), (1, b"t", each.begin)):
                rows = each.arrows[part, side]
                laid += [head, ids, b'","name":"flow","ph":"%s","pid":"' % phase]
                laid += [Picked(cores, each.core[rows]), where, Micros(times[rows], mhz), b"},"]
            yield lay(laid, len(part))


def cross_core_flows(prepared: Prepared) -> Iterator[bytes | memoryview]:
    """Arrows of the flags between cores that the vendor's exporter does not draw: those of A2 and A3."""
    columns = prepared.instructions
    if not prepared.annotated:
        return
    drawn = np.array([name in FLAG_NAMES | CROSS_CORE_NAMES for name in columns.names], bool)[columns.name]
    waits = np.flatnonzero((columns.partner >= 0) & ~drawn)
    waits = waits[columns.core[columns.partner[waits]] != columns.core[waits]]
    waits = waits[:MOST_ARROWS]
    # one arrow leaves a set; it may release several cores
    number = np.sort(np.unique(columns.partner[waits], return_index=True)[1])
    lanes = [b"", *(pipe.name.encode() for pipe in Pipe)]
    cores = [json_text(core) for core in columns.cores]
    places = Texts([b'","pid":"%s","tid":"%s","ts":' % (core, lane) for core in cores for lane in lanes])
    for part in chunks(number):
        ids = Integers(part)
        laid: list[Pieces] = []
        for phase, rows in ((b"s", columns.partner[waits[part]]), (b"t", waits[part])):
            place = Picked(places, columns.core[rows].astype(np.int64) * len(lanes) + columns.pipe[rows])
            laid += [b'{"cat":"cross-core","id":"cross-core_', ids, b'","name":"flow","ph":"' + phase, place]
            laid += [Micros(columns.end[rows], prepared.mhz), b"},"]
        yield lay(laid, len(part))


def finding_events(prepared: Prepared, findings: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
    """What the checker found, over each instruction that it names, on the lane of user marks."""
    for severity, row, span, name, args in _marks(prepared.instructions, findings):
        colour = _SEVERITIES.get(severity, "yellow")
        core = int(prepared.instructions.core[row])
        yield _event(prepared, core, "USERMARK", name, colour, span, args)


def finding_spans(columns: Instructions, findings: Sequence[Mapping[str, Any]]) -> tuple[Spans, ...]:
    """The same as a lane for each severity: for viewers that choose the colours of slices themselves."""
    marks = list(_marks(columns, findings))
    found = []
    for severity, colour in _SEVERITIES.items():
        mine = [mark for mark in marks if mark[0] == severity]
        if mine:
            _, rows, spans, names, args = zip(*mine, strict=True)
            begin, end = np.array(spans, np.int64).T
            core = columns.core[list(rows)].astype(np.int64)
            found.append(Spans(f"{severity}s", colour, core, begin, end, list(names), list(args)))
    return tuple(found)


def moved_findings(
    findings: Sequence[Mapping[str, Any]], place: NDArray[np.int64] | None
) -> Sequence[Mapping[str, Any]]:
    """Findings by rows of the part of a recording that is shown; `place` as in `Shown`."""
    if place is None:
        return findings

    def moved(at: Mapping[str, Any]) -> Mapping[str, Any]:
        row = int(at.get("row", -1))
        return {**at, "row": int(place[row]) if 0 <= row < len(place) else -1}

    return tuple({**each, "places": [moved(at) for at in each.get("places", ())]} for each in findings)


_Mark = tuple[str, int, tuple[int, int], str, dict[str, Any]]


def _marks(columns: Instructions, findings: Sequence[Mapping[str, Any]]) -> Iterator[_Mark]:
    """Of each place of each finding its severity, row, begin and end, name and arguments.

    `findings` as a recording keeps them; places that name no row of the recording are left out. Insight sorts
    arguments by their name, and what a person wants to know stands first.
    """
    written = 0
    for finding in findings:
        places = finding.get("places", ())
        lines = "\n".join(f"{place['file']}:{place['line']}" for place in places if place.get("file"))
        severity = str(finding["severity"])
        args = {
            "1 what": finding["message"],
            "2 fix": finding.get("fix", ""),
            "code": lines,
            "count": finding.get("count", 1),
            "severity": severity,
        }
        for place in places:
            row = int(place.get("row", -1))
            if not 0 <= row < len(columns) or written == MOST_FINDINGS:
                continue
            written += 1
            span = int(columns.start[row]), max(int(columns.start[row]) + 1, int(columns.end[row]))
            yield severity, row, span, f"{severity}: {finding['category']}", args
